"""Sequential model comparison: posterior probabilities of several filters on one stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.filter_protocol import playing
from likely.core.value import Value
from likely.decision.cost import Cost
from likely.decision.sequential.sprt import SPRT
from likely.io.follow_stream import follow


@dataclass(frozen=True, eq=False)
class RaceBelief(Value):
    """Posterior probabilities of the models, and the belief of each."""

    log_probs: Array  # (K,)
    beliefs: tuple[Any, ...]

    @property
    def probs(self) -> Array:
        """p(model | observations so far) (K,)."""
        return np.exp(self.log_probs)


class Race:
    """Filter over models: p(k | y) ∝ p(k) p_k(y | past), with predictive log-density log Σ_k p(k) p_k(y | past).

    `models` are filters, estimators of such or online learners; `prior` (K,) are their prior probabilities.

    >>> import likely as lk
    >>> calm, wild = (lk.HMM([1.0], [[1.0]], lk.Gaussian([[0.0]], spread)) for spread in (1.0, 9.0))
    >>> for belief, logp in lk.follow(Race([calm, wild]), [4.0, -5.0]): pass
    >>> belief.probs.round(3)
    array([0., 1.])
    """

    def __init__(self, models: Iterable[Any], prior: Any = None) -> None:
        self.models = tuple(playing(model) for model in models)
        K = len(self.models)
        if not K:
            raise ShapeError(sentence("Race", "at least one model is needed", "none"))
        self.prior = np.full(K, 1.0 / K) if prior is None else parameter(prior, "Race", "prior")
        if self.prior.shape != (K,) or (self.prior < 0).any() or abs(self.prior.sum() - 1) > 1e-8:
            expected = f"prior must be {K} probabilities that add to 1, one per model"
            raise DomainError(sentence("Race", expected, self.prior.tolist()))

    def initial_belief(self) -> RaceBelief:
        """The prior, and the initial belief of each model."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior)
        return RaceBelief.trusted(log_probs=logs, beliefs=tuple(model.initial_belief() for model in self.models))

    def predict(self, belief: RaceBelief) -> RaceBelief:
        """The predict step of each model; their probabilities do not change."""
        return belief.replace(beliefs=tuple(m.predict(b) for m, b in zip(self.models, belief.beliefs, strict=True)))

    def update(self, belief: RaceBelief, y: Any) -> tuple[RaceBelief, float]:
        """The update step of each model and of their probabilities; a y of density 0 under all models is ignored."""
        done = [model.update(b, y) for model, b in zip(self.models, belief.beliefs, strict=True)]
        logs = belief.log_probs + np.array([news for _, news in done])
        beliefs = tuple(after for after, _ in done)
        top = logs.max()
        if not np.isfinite(top):
            return belief.replace(beliefs=beliefs), float(top)
        logs = logs - top  # before the sum is subtracted: with numbers as large as 1e20 it would be lost in rounding
        total = np.log(np.exp(logs).sum())
        return RaceBelief.trusted(log_probs=logs - total, beliefs=beliefs), float(top + total)


class Finish(NamedTuple):
    """Result of a sequential comparison: the decision (a row of the cost table), the reason, and the sample size."""

    choice: int
    posterior: Array  # (K,)
    cost: float  # expected cost of the decision
    taken: int
    log_evidence: float
    stopped: bool  # False: the observations ended before the rule was satisfied


def race(
    models: Iterable[Any], observations: Iterable[Any], *, prior: Any = None, cost: Any = None, price: float = 0.01,
    test: SPRT | None = None,
) -> Finish:  # fmt: skip
    """Sequential decision between models of a stream, with as few observations as costs allow.

    `cost` (A, K), or anything that `Cost` understands: rows are actions, columns the true model; None: 0/1
    loss. It stops as soon as the smallest expected cost is at most the `price` of one more observation: then further
    observations cannot pay off. With a `test` of two models, Wald's limits are the stopping rule instead.

    >>> import likely as lk
    >>> fair, loaded = (lk.HMM([1.0], [[1.0]], lk.Categorical([p])) for p in ([0.5, 0.5], [0.2, 0.8]))
    >>> done = race([fair, loaded], [1] * 50, price=0.02)
    >>> done.choice, done.taken, done.stopped
    (1, 9, True)
    """
    contest = Race(models, prior)
    K = len(contest.models)
    table = Cost.of(cost, np.arange(K), named=False)
    if not price >= 0:
        raise DomainError(sentence("race", "the price of an observation must not be negative", price))
    if test is not None and K != 2:
        raise DomainError(sentence("race", "a probability-ratio test is between two models", K, "pass a price instead"))
    belief, taken, evidence = contest.initial_belief(), 0, 0.0
    if _over(belief, table, price, test, contest):
        return _finish(belief, table, test, contest, taken, evidence, True)
    for belief, news in follow(contest, observations):
        taken, evidence = taken + 1, evidence + news
        if _over(belief, table, price, test, contest):
            return _finish(belief, table, test, contest, taken, evidence, True)
    return _finish(belief, table, test, contest, taken, evidence, False)


def _over(belief: RaceBelief, cost: Cost, price: float, test: SPRT | None, contest: Race) -> bool:
    if test is not None:
        return _tested(belief, test, contest).verdict is not None
    return bool(cost.expected_of(belief.probs).min() <= price)


def _tested(belief: RaceBelief, test: SPRT, contest: Race) -> SPRT:
    """The test at the likelihood ratio so far: posterior odds over prior odds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.diff(belief.log_probs)[0] - np.diff(np.log(contest.prior))[0]
    return test.replace(total=test.total + float(np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf)))


def _finish(
    belief: RaceBelief, cost: Cost, test: SPRT | None, contest: Race, taken: int, evidence: float, over: bool
) -> Finish:
    risks = cost.expected_of(belief.probs)
    verdict = None if test is None else _tested(belief, test, contest).verdict
    choice = int(risks.argmin()) if verdict is None else verdict
    return Finish(choice, belief.probs, float(risks[choice]), taken, evidence, over)
