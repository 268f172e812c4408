"""Robbins and Monro: a step along each observation's own slope, smaller every time, ends where the slopes cancel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, n_rows, weights
from likely.core.notes import tell, unheard
from likely.core.value import Value
from likely.errors import DataError, DomainError, LikelyError, sentence
from likely.families.free_parameters import FreeParameters

ME = "RobbinsMonro"
FIRST_DRAWS, DRAWS = 512, 128  # of the law itself, for its Fisher information: at first, and when it is looked at again
LONGEST = 1.0  # a step, in deviations of what one observation tells: outliers and bad starts cannot throw it away
FAR_OFF = 30.0  # deviations of one observation from which a start is no start, and the first rows make another
BLOCK = 512  # rows that make it, or that tell at the end whether the estimate has settled
UNSETTLED = 0.5, 10.0  # mean slope of the last rows, in deviations of one observation, and of their mean
ENDS = ("Triangular", "Uniform")  # laws whose likelihood has no slope at the ends that it learns
LATER = 1.0  # θ_n counts as n in the average: starts are forgotten as 1/N², for a third more variance than equal shares


@dataclass(frozen=True, eq=False)
class RunningEstimate(Value):
    """What stochastic approximation believes after `count` steps; `law` is the answer.

    >>> import likely as lk
    >>> lk.RobbinsMonro(lk.Gaussian([0.0], 1.0), power=1.0, average=False).run([[1.0], [2.0]]).count
    2
    """

    rule: Any  # the RobbinsMonro that made it
    theta: Array  # (P,): the last parameters, free of fences
    average: Array  # (P,): of all so far, later ones counting more
    fisher: Array  # (P, P): the information of one observation
    count: int

    @cached_property
    def law(self) -> Any:
        """The law at the averaged parameters, or at the last ones where averages were not asked for."""
        return self.rule.law if self.count == 0 else self.rule._free.law(self.answer)

    @property
    def answer(self) -> Array:
        """The parameters of that law, free of fences (P,)."""
        return self.average if self.rule.average else self.theta


@dataclass(frozen=True, eq=False)
class RobbinsMonro(Value):
    """Maximum likelihood from a stream, for any law whose parameters can be freed (Herbst 2.3.4).

    > θ_N = θ_{N−1} + a_{N−1} G⁻¹ ∂ log p(x_N | θ_{N−1}) / ∂θ,   a_{N−1} = step / (N + delay)^power

    θ holds logarithms of positive parameters, log-odds of probabilities, factors of covariances (`declare_free` adds
    laws). G is the Fisher information (`natural=True`, Amari's natural gradient), estimated from draws of the law
    itself, or the identity. Σa = ∞ and Σa² < ∞ need ½ < power ≤ 1. `average=True` reports the average of the path
    (Polyak and Ruppert), whose variance is near that of maximum likelihood. `learn` names parameters; others stay.

    `run` looks at its first rows (512 at most): where they lie 30 deviations or more from the start, maximum likelihood
    on them makes another. At the end it looks at the last rows and tells if their slopes do not cancel, so that the
    estimate has not settled. Rows that the law rules out are refused, and so are laws that are learnt by their ends,
    which have no slope there.

    It is followed like any learner (`lk.follow`, `lk.step`): a row is scored by the law before it, then learnt from.
    With natural=False, average=False, power=1 and step=σ² the mean of a Gaussian is the running mean, exactly.

    >>> import likely as lk
    >>> plain = {"natural": False, "average": False, "learn": ("mean",)}
    >>> rule = lk.RobbinsMonro(lk.Gaussian([0.0], 4.0), step=4.0, power=1.0, **plain)
    >>> rule.run([[1.0], [3.0], [8.0]]).law.mean.round(6)
    array([4.])
    """

    law: Any
    step: float = 1.0
    delay: float = 0.0
    power: float = 0.7
    learn: tuple[str, ...] = ()
    natural: bool = True
    average: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        learn = (self.learn,) if isinstance(self.learn, str) else tuple(self.learn)
        if not (self.step > 0 and math.isfinite(self.step) and self.delay >= 0 and math.isfinite(self.delay)):
            raise DomainError(sentence(ME, "step must be positive and delay not negative", (self.step, self.delay)))
        if not 0.5 < self.power <= 1:
            expected = "power must lie in (½, 1]: steps must add up to infinity, their squares must not"
            raise DomainError(sentence(ME, expected, self.power))
        if type(self.law).__name__ in ENDS:
            expected = "the likelihood must have a slope in every parameter"
            raise DomainError(sentence(ME, expected, f"{type(self.law).__name__}, learnt by its ends", "use its fit"))
        self._set(learn=learn, step=float(self.step), delay=float(self.delay), power=float(self.power))
        self._free  # noqa: B018  # what cannot be freed is refused now

    @cached_property
    def _free(self) -> FreeParameters:
        return FreeParameters(self.law, self.learn)

    # --------------------------------------------------------------- as a filter

    def initial(self) -> RunningEstimate:
        """The law as it was given."""
        theta = self._free.start
        fisher = self._information(theta, FIRST_DRAWS, 0) if self.natural else np.eye(len(theta))
        return RunningEstimate.trusted(rule=self, theta=theta, average=theta, fisher=fisher, count=0)

    def predict(self, belief: RunningEstimate) -> RunningEstimate:
        """Parameters do not move by themselves."""
        return belief

    def update(self, belief: RunningEstimate, y: Any, weight: float = 1.0) -> tuple[RunningEstimate, float]:
        """The estimate once a row, or a block of rows as one step, is seen; and the block's log p before."""
        x = self._rows(y)
        each, logs = self._free.scores_and_logs(belief.theta, x, belief.answer)
        _refuse_impossible(logs, x)
        slopes = each.mean(axis=0) * weight
        count = belief.count + 1
        theta = belief.theta + self._bounded(slopes, belief.fisher, self.step / (count + self.delay) ** self.power)
        fisher = belief.fisher
        if self.natural and count % max(1, count // 16) == 0:  # sixteen times while the stream doubles
            fisher = fisher + (self._information(theta, DRAWS, count) - fisher) / 8
        average = belief.average + (theta - belief.average) * (LATER + 1) / (count + LATER)
        after = RunningEstimate.trusted(rule=self, theta=theta, average=average, fisher=fisher, count=count)
        return after, float(logs.sum())

    def run(self, x: Any, weight: Any = None, batch: int = 1, belief: RunningEstimate | None = None) -> RunningEstimate:
        """The estimate after a whole table, `batch` rows a step, in their order.

        A whole weight of k visits a row k times; a fraction of a visit is a shorter step; 0 is absence.
        """
        if batch < 1 or batch != int(batch):
            raise DomainError(sentence(ME, "batch must be a whole number above 0", batch))
        at, share = _visits(x, weight)
        belief = self._started(x, at) if belief is None else belief
        for start in range(0, len(at), int(batch)):
            now = slice(start, start + int(batch))
            belief, _ = self.update(belief, _taken(x, at[now]), float(share[now].mean()))
        self._tell_unsettled(belief, x, at)
        return belief

    # ------------------------------------------------------------ starts and ends

    def _started(self, x: Any, at: Index) -> RunningEstimate:
        """The law as it was given, or what the first rows make of one that is far off."""
        start = self.initial()
        if not self.natural or not len(at):
            return start
        first = self._rows(_taken(x, at[:BLOCK]))
        slope = self._free.scores(start.theta, first).mean(axis=0)
        if self._deviations(slope, start.fisher) < FAR_OFF:
            return start
        theta = self._refitted(start.theta, first)
        return start.replace(theta=theta, average=theta, fisher=self._information(theta, FIRST_DRAWS, 0))

    def _refitted(self, theta: Array, x: Any) -> Array:
        """Maximum likelihood on a block, of what is learnt; θ itself where the law cannot, or there is none."""
        if not (hasattr(self.law, "collect") and hasattr(self.law, "refit")):
            return theta
        try:
            with unheard():
                found = FreeParameters(self.law.refit(self.law.collect(x)), self.learn).start
        except (LikelyError, np.linalg.LinAlgError):  # too few rows, or all alike
            return theta
        return found if found.shape == theta.shape and np.isfinite(found).all() else theta

    def _tell_unsettled(self, belief: RunningEstimate, x: Any, at: Index) -> None:
        last = at[-BLOCK:]
        if not self.natural or len(last) < 32:
            return
        slope = self._free.scores(belief.answer, self._rows(_taken(x, last))).mean(axis=0)
        away = self._deviations(slope, self._information(belief.answer, FIRST_DRAWS, belief.count))
        if away > UNSETTLED[0] and away * math.sqrt(len(last) / len(slope)) > UNSETTLED[1]:
            expected = "slopes of the last rows should cancel, so the estimate has not settled"
            tell(sentence(ME, expected, f"{away:.2g} deviations", "begin nearer, or see more rows"), stacklevel=3)

    @staticmethod
    def _deviations(slope: Array, fisher: Array) -> float:
        """A mean slope in deviations of what one observation tells."""
        return math.sqrt(max(float(slope @ _solved(fisher, slope)), 0.0))

    # -------------------------------------------------------------------- inside

    def _rows(self, y: Any) -> Any:
        """One row, or several, as a table."""
        if not isinstance(y, np.ndarray | list | tuple | int | float | str | np.generic):
            return y
        a = np.asarray(y)
        dim = getattr(self.law, "dim", None)
        if a.ndim == 0:
            return a.reshape(1)
        return a[None] if a.ndim == 1 and dim == len(a) and dim != 1 else a

    def _information(self, theta: Array, draws: int, count: int) -> Array:
        """The mean of g gᵀ over draws of the law at θ; keyed by the step, so that updates are pure."""
        x = self._free.law(theta).sample(draws, np.random.default_rng([self.seed, count]))
        g = self._free.scores(theta, x)
        return np.asarray(g.T @ g / len(g))

    def _bounded(self, slope: Array, fisher: Array, a: float) -> Array:
        if not self.natural:
            return a * slope
        step = _solved(fisher, slope)
        length = a * math.sqrt(max(float(slope @ step), 0.0))
        return np.asarray(a * step * min(1.0, LONGEST / max(length, 1e-300)))


def _solved(fisher: Array, slope: Array) -> Array:
    ridge = 1e-6 * max(float(np.trace(fisher)) / len(fisher), 1e-300)
    return np.asarray(np.linalg.solve(fisher + ridge * np.eye(len(fisher)), slope))


def _refuse_impossible(logs: Array, x: Any) -> None:
    if np.isneginf(logs).any():
        i = int(np.argmax(np.isneginf(logs)))
        expected = "rows must be possible under the law"
        raise DataError(sentence(ME, expected, f"{np.asarray(x)[i].tolist()}", "drop it, or take a law that allows it"))


def _visits(x: Any, weight: Any) -> tuple[Index, Array]:
    """Which row each visit takes, and what share of a visit it is."""
    n = n_rows(x)
    w = weights(weight, n, ME)
    if w is None:
        return np.arange(n), np.ones(n)
    if w.ndim != 1:
        raise DataError(sentence(ME, "weights must be one number a row", w.shape))
    times = np.ceil(w).astype(np.intp)
    return np.repeat(np.arange(n), times), np.repeat(w / np.maximum(times, 1), times)


def _taken(x: Any, at: Index) -> Any:
    return x[at] if hasattr(x, "shape") else np.asarray(x)[at]


__all__ = ["RobbinsMonro", "RunningEstimate"]
