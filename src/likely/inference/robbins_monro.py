"""Robbins and Monro: a step along each observation's own slope, smaller every time, ends where the slopes cancel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, n_rows, unmasked, weights
from likely.core.errors import DataError, DomainError, LikelyError, sentence
from likely.core.value import Value
from likely.core.warnings import tell, unheard
from likely.distributions.score_functions import FreeScores, formulas_of
from likely.distributions.unconstrained_parameters import FreeParameters

ME = "RobbinsMonro"
FIRST_DRAWS, DRAWS = (
    512,
    128,
)  # of the distribution itself, for its Fisher information: at first, and when it is looked at again
LONGEST = 1.0  # a step, in deviations of what one observation tells: outliers and bad starts cannot throw it away
FAR_OFF = 30.0  # deviations of one observation from which a start is no start, and the first rows make another
BLOCK = 512  # rows that make it, or that tell at the end whether the estimate has settled
UNSETTLED = 0.5, 10.0  # mean slope of the last rows, in deviations of one observation, and of their mean
FIRST_LOOK = 256  # steps of a stream after which, and whenever they have doubled, it is told if it has not settled
ENDS = ("Triangular", "Uniform")  # distributions whose likelihood has no slope at the ends that it learns
RIDGE = 1e-6  # of the information: directions that rows do not tell of have none
MOST = 10**8  # visits that weights may ask for: an hour, and some gigabytes
LEG = 4096  # steps of a table between two averages of its path
Slopes = Callable[[Array, int, int, int], Array]


@dataclass(frozen=True, eq=False)
class RunningEstimate(Value):
    """What stochastic approximation believes after `count` steps; `distribution` is the answer.

    >>> import likely as lk
    >>> lk.RobbinsMonro(lk.Gaussian([0.0], 1.0), power=1.0, average=False).run([[1.0], [2.0]]).count
    2
    """

    rule: Any  # the RobbinsMonro that made it
    theta: Array  # (P,): the last parameters, free of fences
    # (P,): of all so far; θ_n counts n times: starts are forgotten as 1/N², for a third more variance than equal shares
    average: Array
    fisher: Array  # (P, P): the information of one observation
    count: int
    drift: Array = field(default_factory=lambda: np.zeros(0))  # (P,): mean slope of the last 512 steps or so

    @cached_property
    def distribution(self) -> Any:
        """The distribution at the averaged parameters, or at the last ones where averages were not asked for."""
        return self.rule.distribution if self.count == 0 else self.rule._free.distribution(self.answer)

    @property
    def answer(self) -> Array:
        """The parameters of that distribution, free of fences (P,)."""
        return self.average if self.rule.average else self.theta

    @cached_property
    def _solver(self) -> Array:
        """(G + a little)⁻¹: found once for all steps that share G."""
        return _inverted(self.fisher)


@dataclass(frozen=True, eq=False)
class RobbinsMonro(Value):
    """Maximum likelihood from a stream, for any distribution whose parameters can be freed (Herbst 2.3.4).

    > θ_N = θ_{N−1} + a_{N−1} G⁻¹ ∂ log p(x_N | θ_{N−1}) / ∂θ,   a_{N−1} = step / (N + delay)^power

    θ holds logarithms of positive parameters, log-odds of probabilities, factors of covariances (`declare_free` adds
    distributions). G is the Fisher information (`natural=True`, Amari's natural gradient), estimated from draws of the
    distribution itself, or the identity. Σa = ∞ and Σa² < ∞ need ½ < power ≤ 1. `average=True` reports the average of
    the path (Polyak and Ruppert), whose variance is near that of maximum likelihood. `learn` names parameters; others
    stay.

    natural=False is the rule as Robbins and Monro wrote it: the slope itself times a. Then `step` has units, about
    one over the information of one row in each parameter: a step ten times too long jumps about or leaves all
    bounds (which is told, or an error where no number is left), one ten times too short creeps. Nothing is bounded or
    begun anew; that it has not settled is told all the same. With average=False, power=1 and step=σ² the mean of a
    Gaussian is the running mean.

    With natural=True a step is never longer than one deviation, and `run` looks at its first rows (512 at most): where
    they lie 30 deviations or more from the start, maximum likelihood on them makes another. At the end it looks at the
    last rows and tells if their slopes do not cancel, so that the estimate has not settled. Rows that the distribution
    rules out are refused, and so are distributions that are learned by their ends, which have no slope there.

    It is followed like any learner (`lk.follow`, `lk.step`): a row is scored by the distribution before it, then
    learned from. A stream has no end to look at: whether slopes cancel is told after 256 steps, 512, 1024, ….

    Built-in distributions have formulas for slopes: some 30 µs a row, and 250 µs for a full Gaussian of 10 columns,
    which has 65 parameters. Rows with gaps and other distributions take differences (some milliseconds).

    >>> import likely as lk
    >>> plain = {"natural": False, "average": False, "learn": ("mean",)}
    >>> rule = lk.RobbinsMonro(lk.Gaussian([0.0], 4.0), step=4.0, power=1.0, **plain)
    >>> rule.run([[1.0], [3.0], [8.0]]).distribution.mean.round(6)
    array([4.])
    """

    distribution: Any
    step: float = 1.0
    delay: float = 0.0
    power: float = 0.7
    learn: tuple[str, ...] = ()
    natural: bool = True
    average: bool = True
    random_state: int = 0

    def __post_init__(self) -> None:
        learn = (self.learn,) if isinstance(self.learn, str) else tuple(self.learn)
        if not (self.step > 0 and math.isfinite(self.step) and self.delay >= 0 and math.isfinite(self.delay)):
            raise DomainError(sentence(ME, "step must be positive and delay not negative", (self.step, self.delay)))
        if not 0.5 < self.power <= 1:
            expected = "power must lie in (½, 1]: steps must add up to infinity, their squares must not"
            raise DomainError(sentence(ME, expected, self.power))
        if type(self.distribution).__name__ in ENDS:
            expected = "the likelihood must have a slope in every parameter"
            raise DomainError(
                sentence(ME, expected, f"{type(self.distribution).__name__}, learned by its ends", "use its fit")
            )
        self._set(learn=learn, step=float(self.step), delay=float(self.delay), power=float(self.power))
        self._free  # noqa: B018  # what cannot be freed is refused now

    @cached_property
    def _free(self) -> FreeParameters:
        return FreeParameters(self.distribution, self.learn)

    @cached_property
    def _formulas(self) -> FreeScores | None:
        return formulas_of(self._free)

    # --------------------------------------------------------------- as a filter

    def initial_belief(self) -> RunningEstimate:
        """The distribution as it was given."""
        theta = self._free.start
        fisher = self._information(theta, FIRST_DRAWS, 0) if self.natural else np.eye(len(theta))
        still = np.zeros(len(theta))
        return RunningEstimate.trusted(rule=self, theta=theta, average=theta, fisher=fisher, count=0, drift=still)

    def predict(self, belief: RunningEstimate) -> RunningEstimate:
        """Parameters do not move by themselves."""
        return belief

    def update(self, belief: RunningEstimate, y: Any, weight: float = 1.0) -> tuple[RunningEstimate, float]:
        """The estimate once a row, or a block of rows as one step, is seen; and the block's log p before."""
        x = self._rows(y)
        each, logs = self._scores_and_logs(belief.theta, x, belief.answer)
        after = self._after(belief, _mean(each, weight))
        if self._ran_away(after):
            self._tell_runaway(belief, after)
        elif after.count >= FIRST_LOOK and after.count & (after.count - 1) == 0:
            self._tell_drift(after)
        return after, float(logs.sum())

    def _after(self, belief: RunningEstimate, slope: Array) -> RunningEstimate:
        """One step along a slope (P,)."""
        count = belief.count + 1
        theta = self._step(belief.theta, belief._solver, slope, count)
        _refuse_endless(float(theta.dot(theta)), count)
        drift = belief.drift if belief.drift.shape == slope.shape else np.zeros(len(slope))
        drift = drift + (slope - drift) * (1 / min(count, BLOCK))
        average = belief.average + (theta - belief.average) * (2 / (count + 1))
        return self._further(belief, theta, average, drift, count)

    def _step(self, theta: Array, solver: Array, slope: Array, count: int) -> Array:
        """θ after one step; a table is thousands of them, and each NumPy call counts."""
        a = self.step / (count + self.delay) ** self.power
        if not self.natural:
            return np.asarray(theta + a * slope)
        step = solver.dot(slope)
        length = a * math.sqrt(max(slope.dot(step), 0.0))
        step *= a if length <= LONGEST else a * LONGEST / length
        step += theta
        return np.asarray(step)

    def _further(
        self, belief: RunningEstimate, theta: Array, average: Array, drift: Array, count: int
    ) -> RunningEstimate:
        """The estimate at a later θ; at times its information is looked at again."""
        parts = {"rule": self, "theta": theta, "average": average, "drift": drift, "count": count}
        if count != self._next_look(count - 1):
            return RunningEstimate.trusted(fisher=belief.fisher, _solver=belief._solver, **parts)
        fresh = self._information(theta, DRAWS, count)
        return RunningEstimate.trusted(fisher=belief.fisher + (fresh - belief.fisher) / 8, **parts)

    def _next_look(self, count: int) -> int:
        """The step after `count` that looks at the information: sixteen while a stream doubles; 0 for none."""
        if not self.natural:
            return 0
        return count + 1 if count < 16 else math.ceil(2 ** ((math.floor(16 * math.log2(count) + 1e-9) + 1) / 16) - 1e-9)

    def run(self, x: Any, weight: Any = None, batch: int = 1, belief: RunningEstimate | None = None) -> RunningEstimate:
        """The estimate after a whole table, `batch` rows per step, in their order.

        A whole weight of k visits a row k times; a fraction of a visit is a shorter step; 0 is absence.
        """
        if batch < 1 or batch != int(batch):
            raise DomainError(sentence(ME, "batch must be a whole number above 0", batch))
        x = _plain(x)
        at, share = _visits(x, weight)
        belief = before = self._started(x, at) if belief is None else belief
        starts, slopes_of, done = range(0, len(at), int(batch)), self._slopes_of(x, at), 0
        while done < len(starts):
            leg = slice(done, done + min(max(self._next_look(belief.count) - belief.count, 1), LEG))
            edges = [(start, start + int(batch)) for start in starts[leg]]
            each = share[leg].tolist() if batch == 1 else [float(share[a:b].mean()) for a, b in edges]
            belief = self._walked(belief, slopes_of, edges, each)
            done = leg.stop
        if self._ran_away(belief):
            self._tell_runaway(before, belief)
        else:
            self._tell_unsettled(belief, x, at)
        return belief

    def _walked(
        self, belief: RunningEstimate, slopes_of: Slopes, edges: list[tuple[int, int]], shares: list[float]
    ) -> RunningEstimate:
        """Some steps that share one information; averages of the path are taken of all of them together."""
        theta, solver, count, path, slopes = belief.theta, belief._solver, belief.count, [], []
        for (start, stop), share in zip(edges, shares, strict=True):
            count += 1
            slope = _mean(slopes_of(theta, start, stop, count), share)
            theta = self._step(theta, solver, slope, count)
            path.append(theta)
            slopes.append(slope)
        _refuse_endless(float(theta.dot(theta)), count)
        n = np.arange(belief.count + 1.0, count + 1.0)
        before = belief.count * (belief.count + 1.0)
        average = (before * belief.average + 2 * (n @ np.array(path))) / (count * (count + 1.0))
        recent = np.array(slopes[-BLOCK:])
        old = min(belief.count, BLOCK) - max(len(recent) - max(BLOCK - belief.count, 0), 0)
        drift = recent.sum(axis=0) / (len(recent) + max(old, 0))
        if old > 0 and belief.drift.shape == drift.shape:
            drift = drift + belief.drift * (old / (len(recent) + old))
        return self._further(belief, theta, average, drift, count)

    def _slopes_of(self, x: Any, at: Index) -> Slopes:
        """(θ, start, stop, count) ↦ slopes of these visits: by formula if there is one and the rows allow it."""
        formulas = self._formulas
        found = formulas.table(x) if formulas is not None else None

        def differences(theta: Array, start: int, stop: int, count: int) -> Array:
            _refuse_endless(float(theta.dot(theta)), count)
            rows = self._rows(_taken(x, at[start:stop]))
            each, logs = self._free.scores_and_logs(theta, rows, theta)
            _refuse_impossible(logs, rows)
            return each

        if found is None or formulas is None:
            return differences
        z, fine = found[0][at], found[1][at]
        whole, scores, near = bool(fine.all()), formulas.scores, formulas.near

        def slopes(theta: Array, start: int, stop: int, count: int) -> Array:
            if near(theta) and (whole or fine[start:stop].all()):
                return scores(theta, z[start:stop])
            return differences(theta, start, stop, count)

        return slopes

    # ------------------------------------------------------------ starts and ends

    def _started(self, x: Any, at: Index) -> RunningEstimate:
        """The distribution as it was given, or what the first rows make of one that is far off."""
        start = self.initial_belief()
        if not self.natural or not len(at):
            return start
        first = self._rows(_taken(x, at[:BLOCK]))
        slope = self._scores(start.theta, first).mean(axis=0)
        if self._deviations(slope, start.fisher) < FAR_OFF:
            return start
        theta = self._refitted(start.theta, first)
        return start.replace(theta=theta, average=theta, fisher=self._information(theta, FIRST_DRAWS, 0))

    def _refitted(self, theta: Array, x: Any) -> Array:
        """Maximum likelihood of the learned parameters on a block; θ itself if the distribution has none."""
        if not (hasattr(self.distribution, "collect") and hasattr(self.distribution, "refit")):
            return theta
        try:
            with unheard():
                found = FreeParameters(self.distribution.refit(self.distribution.collect(x)), self.learn).start
        except (LikelyError, np.linalg.LinAlgError):  # too few rows, or all alike
            return theta
        return found if found.shape == theta.shape and np.isfinite(found).all() else theta

    def _tell_unsettled(self, belief: RunningEstimate, x: Any, at: Index) -> None:
        last = at[-BLOCK:]
        if len(last) >= 32:
            slope = self._scores(belief.answer, self._rows(_taken(x, last))).mean(axis=0)
            self._tell_slope(slope, belief, len(last))

    def _ran_away(self, belief: RunningEstimate) -> bool:
        """Whether a parameter is beyond its bound, where distributions no longer change and slopes seem to cancel."""
        fences = self._free.fences
        return bool((np.abs(belief.theta) >= fences).any() or (np.abs(belief.answer) >= fences).any())

    def _tell_runaway(self, before: RunningEstimate, belief: RunningEstimate) -> None:
        if not self._ran_away(before):
            expected = "parameters must stay within the range of numbers, so the run has diverged"
            remedy = "begin nearer, or take a smaller step" if self.natural else "take a smaller step, or natural=True"
            tell(sentence(ME, expected, f"one beyond it by step {belief.count}", remedy))

    def _tell_drift(self, belief: RunningEstimate) -> None:
        """The same for a stream, whose last rows are gone: their mean slope was kept."""
        self._tell_slope(belief.drift, belief, min(belief.count, BLOCK))

    def _tell_slope(self, slope: Array, belief: RunningEstimate, rows: int) -> None:
        away = self._deviations(slope, self._information(belief.answer, FIRST_DRAWS, belief.count))
        if away > UNSETTLED[0] and away * math.sqrt(rows / len(slope)) > UNSETTLED[1]:
            expected = "slopes of the last rows should cancel, so the estimate has not settled"
            remedy = "begin nearer, or see more rows" if self.natural else "change step, or take natural=True"
            tell(sentence(ME, expected, f"{away:.2g} deviations", remedy))

    @staticmethod
    def _deviations(slope: Array, fisher: Array) -> float:
        """A mean slope in deviations of what one observation tells."""
        return math.sqrt(max(float(slope @ _inverted(fisher) @ slope), 0.0))

    # -------------------------------------------------------------------- inside

    def _rows(self, y: Any) -> Any:
        """One row, or several, as a table."""
        if not isinstance(y, np.ndarray | list | tuple | int | float | str | np.generic):
            return y
        a = np.asarray(unmasked(y))
        dim = getattr(self.distribution, "dim", None)
        if a.ndim == 0:
            return a.reshape(1)
        return a[None] if a.ndim == 1 and dim == len(a) and dim != 1 else a

    def _information(self, theta: Array, draws: int, count: int) -> Array:
        """The mean of g gᵀ over draws of the distribution at θ; keyed by the step, so that updates are pure."""
        x = self._free.distribution(theta).sample(draws, np.random.default_rng([self.random_state, count]))
        g = self._scores(theta, x)
        return np.asarray(g.T @ g / len(g))

    def _scores(self, theta: Array, x: Any) -> Array:
        """∂ log p(x_i | θ) / ∂θ (n, P), by formula where there is one."""
        z = self._clean(x, theta)
        return self._free.scores(theta, x) if z is None else self._formulas.scores(theta, z)  # type: ignore[union-attr]

    def _scores_and_logs(self, theta: Array, x: Any, point: Array) -> tuple[Array, Array]:
        """The same, and log p(x_i | point); rows that the distribution rules out are refused."""
        z = self._clean(x, theta, point)
        if z is not None and self._formulas is not None:
            return self._formulas.scores(theta, z), self._formulas.logs(point, z)
        each, logs = self._free.scores_and_logs(theta, x, point)
        _refuse_impossible(logs, x)
        return each, logs

    def _clean(self, x: Any, *points: Array) -> Array | None:
        """Rows as the formulas want them; None where there are none, or a row has a gap or cannot be."""
        formulas = self._formulas
        found = formulas.table(x) if formulas is not None else None
        if found is None or formulas is None or not found[1].all() or not all(map(formulas.near, points)):
            return None
        return found[0]


def _refuse_endless(size: float, count: int) -> None:
    if not size < math.inf:
        raise DomainError(sentence(ME, "the path must stay finite", f"infinity at step {count}", "take a smaller step"))


def _mean(slopes: Array, weight: float) -> Array:
    """The mean of slopes (n, P), times a weight."""
    mean = slopes[0] if len(slopes) == 1 else slopes.mean(axis=0)
    return mean if weight == 1 else mean * weight


def _inverted(fisher: Array) -> Array:
    """(G + a little)⁻¹: a millionth of what is known of each parameter, for parameters have unlike units."""
    known = np.sqrt(np.diagonal(fisher))
    unit = np.where(known > 0, known, 1.0)
    alike = fisher / unit / unit[:, None]
    np.fill_diagonal(alike, 1 + RIDGE)  # also of a parameter that no draw told of: its step is the slope itself
    return np.asarray(np.linalg.inv(alike) / unit / unit[:, None])


def _refuse_impossible(logs: Array, x: Any) -> None:
    if np.isneginf(logs).any():
        i = int(np.argmax(np.isneginf(logs)))
        expected = "rows must be possible under the distribution"
        raise DataError(
            sentence(ME, expected, f"{np.asarray(x)[i].tolist()}", "drop it, or take a distribution that allows it")
        )


def _visits(x: Any, weight: Any) -> tuple[Index, Array]:
    """Which row each visit takes, and what share of a visit it is."""
    n = n_rows(x)
    w = weights(weight, n, ME)
    if w is None:
        return np.arange(n), np.ones(n)
    if w.ndim != 1:
        raise DataError(sentence(ME, "weights must be one number per row", w.shape))
    visits = float(np.ceil(w).sum())
    if visits > MOST:
        expected, remedy = f"weights may add up to {MOST:,} visits of rows", "divide them by a number, or use fit"
        raise DataError(sentence(ME, expected, f"{visits:,.0f}" if visits < 1e15 else f"{visits:.3g}", remedy))
    times = np.ceil(w).astype(np.intp)
    return np.repeat(np.arange(n), times), np.repeat(w / np.maximum(times, 1), times)


def _plain(x: Any) -> Any:
    """Lists, and data frames of numbers, as arrays; other things that have rows as they are."""
    if isinstance(x, list | tuple):
        return np.asarray(x)
    if not hasattr(x, "iloc"):
        return unmasked(x)
    a = np.asarray(x)
    return a if a.dtype.kind in "biuf" else x


def _taken(x: Any, at: Index) -> Any:
    """Some rows, by their numbers: a data frame would look for their names."""
    if hasattr(x, "iloc"):
        return x.iloc[at]
    return x[at] if hasattr(x, "shape") else np.asarray(x)[at]


__all__ = ["RobbinsMonro", "RunningEstimate"]
