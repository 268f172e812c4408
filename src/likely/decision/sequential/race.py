"""Several models follow one stream side by side, until one more observation is not worth its price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.filter import follow, playing
from likely.core.value import Value
from likely.decision.cost import Cost
from likely.decision.sequential.sprt import SequentialTest


@dataclass(frozen=True, eq=False)
class RaceBelief(Value):
    """How probable each model is by now, and what each believes."""

    log_probs: Array  # (K,)
    beliefs: tuple[Any, ...]

    @property
    def probs(self) -> Array:
        """p(model | all so far) (K,)."""
        return np.exp(self.log_probs)


class Race:
    """A filter made of filters: p(k | y) ∝ p(k) p_k(y | all before), and the news is log Σ_k p(k) p_k(y | all before).

    `models` are filters, estimators of such or online learners; `prior` (K,) are their probabilities before.

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
            expected = f"prior must be {K} probabilities that add to 1, one for each model"
            raise DomainError(sentence("Race", expected, self.prior.tolist()))

    def initial_belief(self) -> RaceBelief:
        """The prior, and what each model believes before anything was seen."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior)
        return RaceBelief.trusted(log_probs=logs, beliefs=tuple(model.initial_belief() for model in self.models))

    def predict(self, belief: RaceBelief) -> RaceBelief:
        """Each model moves on; which of them is true does not change."""
        return belief.replace(beliefs=tuple(m.predict(b) for m, b in zip(self.models, belief.beliefs, strict=True)))

    def update(self, belief: RaceBelief, y: Any) -> tuple[RaceBelief, float]:
        """What y says about the models, and to each of them; what all hold for impossible changes no probability."""
        done = [model.update(b, y) for model, b in zip(self.models, belief.beliefs, strict=True)]
        logs = belief.log_probs + np.array([news for _, news in done])
        beliefs = tuple(after for after, _ in done)
        top = logs.max()
        if not np.isfinite(top):
            return belief.replace(beliefs=beliefs), float(top)
        logs = logs - top  # before the sum is taken off: of numbers as large as 1e20 it would be lost in rounding
        total = np.log(np.exp(logs).sum())
        return RaceBelief.trusted(log_probs=logs - total, beliefs=beliefs), float(top + total)


class Finish(NamedTuple):
    """How a race ended: what is decided (a row of the cost table), why one may, and after how many observations."""

    choice: int
    posterior: Array  # (K,)
    cost: float  # expected, of that decision
    taken: int
    log_evidence: float
    stopped: bool  # False: the observations ended before the rule was satisfied


def race(
    models: Iterable[Any], observations: Iterable[Any], *, prior: Any = None, cost: Any = None, price: float = 0.01,
    test: SequentialTest | None = None,
) -> Finish:  # fmt: skip
    """Decide which of several models makes a stream, with as few observations as costs allow.

    `cost` (A, K), or anything that `Cost` understands: rows are actions, columns the true model; None: a mistake costs
    1. It stops as soon as the least expected cost is at most the `price` of one more observation: then no further
    observation can pay for itself. With a `test` of two models, Wald's limits say when to stop instead.

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
        raise DomainError(sentence("race", "a probability-ratio test is between two models", K, "give a price instead"))
    belief, taken, evidence = contest.initial_belief(), 0, 0.0
    if _over(belief, table, price, test, contest):
        return _finish(belief, table, test, contest, taken, evidence, True)
    for belief, news in follow(contest, observations):
        taken, evidence = taken + 1, evidence + news
        if _over(belief, table, price, test, contest):
            return _finish(belief, table, test, contest, taken, evidence, True)
    return _finish(belief, table, test, contest, taken, evidence, False)


def _over(belief: RaceBelief, cost: Cost, price: float, test: SequentialTest | None, contest: Race) -> bool:
    if test is not None:
        return _tested(belief, test, contest).verdict is not None
    return bool(cost.expected_of(belief.probs).min() <= price)


def _tested(belief: RaceBelief, test: SequentialTest, contest: Race) -> SequentialTest:
    """The test at the likelihood ratio of all so far: posterior odds without the prior's."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.diff(belief.log_probs)[0] - np.diff(np.log(contest.prior))[0]
    return test.replace(total=test.total + float(np.nan_to_num(odds, nan=0.0, posinf=np.inf, neginf=-np.inf)))


def _finish(
    belief: RaceBelief, cost: Cost, test: SequentialTest | None, contest: Race, taken: int, evidence: float, over: bool
) -> Finish:
    risks = cost.expected_of(belief.probs)
    verdict = None if test is None else _tested(belief, test, contest).verdict
    choice = int(risks.argmin()) if verdict is None else verdict
    return Finish(choice, belief.probs, float(risks[choice]), taken, evidence, over)
