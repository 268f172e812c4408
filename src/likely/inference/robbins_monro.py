"""Stochastic approximation (Robbins and Monro): online maximum likelihood by stochastic (natural) gradient steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, n_rows, unmasked, weights
from likely.core.errors import DataError, DomainError, LikelyError, sentence
from likely.core.value import Value, fill_cache
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.log_density_gradients import FreeScores, formulas_of
from likely.distributions.unconstrained_parameters import FreeParameters

ME = "RobbinsMonro"
FIRST_DRAWS, DRAWS = (
    512,
    128,
)  # draws of the distribution for its Fisher information: at first, and when it is estimated again
LONGEST = 1.0  # longest step, in standard deviations of one observation's estimate: bounds the effect of outliers
FAR_OFF = 30.0  # mean score of the first rows, in such deviations, from which they give another initial value
BLOCK = 512  # rows for that initial value, and for the convergence check at the end
NOT_CONVERGED = 0.5, 10.0  # mean score of the last rows, in deviations of one observation, and of their mean
FIRST_LOOK = 256  # steps of a stream after which, and at each doubling, convergence is checked
ENDS = ("Triangular", "Uniform")  # distributions whose likelihood has no gradient at the bounds it learns
RIDGE = 1e-6  # of the information: regularizes directions without information
MOST = 10**8  # visits that weights may ask for: an hour, and some gigabytes
LEG = 4096  # steps of a table between two updates of the averaged path
Slopes = Callable[[Array, int, int, int], Array]


@dataclass(frozen=True, eq=False)
class RunningEstimate(Value):
    """State of a stochastic approximation; `distribution` is the estimate.

    Parameters
    ----------
    rule : RobbinsMonro
        The rule that made it.
    theta : ndarray (P,)
        The last unconstrained parameters.
    average : ndarray (P,)
        Weighted mean of all so far.
    fisher : ndarray (P, P)
        Fisher information of one observation.
    count : int
        Number of steps.
    drift : ndarray (P,)
        Mean score of about the last 512 steps.

    Examples
    --------
    >>> import likely as lk
    >>> lk.inference.RobbinsMonro(lk.Gaussian([0.0], 1.0), power=1.0, average=False).run([[1.0], [2.0]]).count
    2
    """

    rule: Annotated[Any, declared.of_class("RobbinsMonro")]  # the RobbinsMonro that made it
    theta: Annotated[Array, declared.numbers("P")]  # (P,): the last unconstrained parameters
    # (P,): weighted mean of all so far, θ_n with weight n: initial values decay as 1/N², for a third more variance
    average: Annotated[Array, declared.numbers("P")]
    fisher: Annotated[Array, declared.numbers("P P")]  # (P, P): Fisher information of one observation
    count: Annotated[int, declared.count]
    # (P,): mean score of about the last 512 steps
    drift: Annotated[Array, declared.numbers("?")] = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def distribution(self) -> Any:
        """The distribution at the averaged parameters, or at the last ones without averaging."""
        return self.rule.distribution if self.count == 0 else self.rule._free.distribution(self.estimate)

    @property
    def estimate(self) -> Array:
        """The unconstrained parameters of that distribution (P,)."""
        return self.average if self.rule.average else self.theta

    @cached_property
    def _solver(self) -> Array:
        """Regularized inverse of G, computed once for all steps that share G."""
        return _inverted(self.fisher)


@dataclass(frozen=True, eq=False)
class RobbinsMonro(Value):
    """Online maximum likelihood by stochastic approximation, for distributions with unconstrained parameters.

    θ_N = θ_{N−1} + a_{N−1} G⁻¹ ∂ log p(x_N | θ_{N−1}) / ∂θ,   a_{N−1} = step / (N + delay)^power

    θ holds logarithms of positive parameters, log-odds of probabilities, factors of covariances (`declare_constraints`
    adds distributions). G is the Fisher information, estimated from draws of the distribution itself, or the identity.

    natural=False is the original rule: the gradient itself times a. Then `step` has units, about one over the
    information of one row per parameter: a step ten times too long oscillates or diverges (with a warning, or an error
    if it overflows), one ten times too short is slow. Steps are not bounded and the initial value is not replaced;
    missing convergence is reported all the same. With average=False, power=1 and step=σ² the mean of a Gaussian is the
    running mean.

    With natural=True a step is never longer than one standard deviation, and `run` checks its first rows (512 at most):
    if they lie 30 deviations or more from the initial value, maximum likelihood on them gives another. At the end it
    warns if the mean score of the last rows is not near 0, so that the estimate has not converged. Rows of density 0
    are refused, and so are distributions that are learned by their bounds, where the likelihood has no gradient.

    It can be used online (`lk.follow`, `lk.step`): each row is first scored by the current distribution, then learned.
    In a stream convergence is checked after 256 steps, 512, 1024, ….

    Built-in distributions have analytic scores: some 30 µs per row of a table, and 250 µs for a full Gaussian of 10
    columns, which has 65 parameters; in a stream log p of each row takes another 0.2 ms. Rows with missing values and
    other distributions use finite differences (some milliseconds).

    Parameters
    ----------
    distribution : distribution
        The initial value.
    step : float, default 1.0
        Factor of the step lengths a.
    delay : float, default 0.0
        Added to N in the step lengths.
    power : float, default 0.7
        Exponent of the step lengths; Σa = ∞ and Σa² < ∞ need ½ < power ≤ 1.
    learn : sequence of str, optional
        Names of the learned parameters; the others stay fixed. By default all are learned.
    natural : bool, default True
        Divide by the Fisher information (Amari's natural gradient).
    average : bool, default True
        Report the average of the path (Polyak–Ruppert averaging), whose variance is near that of maximum likelihood.
    random_state : int, default 0
        Seed of the draws that estimate the Fisher information.

    References
    ----------
    Robbins and Monro (1951); Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.3.4.

    Examples
    --------
    >>> import likely as lk
    >>> plain = {"natural": False, "average": False, "learn": ("mean",)}
    >>> rule = lk.inference.RobbinsMonro(lk.Gaussian([0.0], 4.0), step=4.0, power=1.0, **plain)
    >>> rule.run([[1.0], [3.0], [8.0]]).distribution.mean.round(6)
    array([4.])
    """

    distribution: Annotated[Any, declared.distribution]
    step: Annotated[float, declared.number(0)] = 1.0
    delay: Annotated[float, declared.number(0)] = 0.0
    power: Annotated[float, declared.number(0)] = 0.7
    learn: Annotated[tuple[str, ...], declared.texts] = ()
    natural: bool = True
    average: bool = True
    random_state: Annotated[int, declared.count] = 0

    def __post_init__(self) -> None:
        learn = (self.learn,) if isinstance(self.learn, str) else tuple(self.learn)
        if not (self.step > 0 and math.isfinite(self.step) and self.delay >= 0 and math.isfinite(self.delay)):
            raise DomainError(sentence(ME, "step must be positive and delay not negative", (self.step, self.delay)))
        if not 0.5 < self.power <= 1:
            expected = "power must lie in (½, 1]: steps must add up to infinity, their squares must not"
            raise DomainError(sentence(ME, expected, self.power))
        if type(self.distribution).__name__ in ENDS:
            expected = "the likelihood must have a gradient in every parameter"
            raise DomainError(
                sentence(ME, expected, f"{type(self.distribution).__name__}, learned by its bounds", "use its fit")
            )
        self._set(learn=learn, step=float(self.step), delay=float(self.delay), power=float(self.power))
        self._free  # noqa: B018  # refuses distributions without unconstrained parameters

    @cached_property
    def _free(self) -> FreeParameters:
        return FreeParameters(self.distribution, self.learn)

    @cached_property
    def _formulas(self) -> FreeScores | None:
        return formulas_of(self._free)

    # --------------------------------------------------------------- as a filter

    def initial_belief(self) -> RunningEstimate:
        """The initial estimate: the given distribution."""
        theta = self._free.start
        fisher = self._information(theta, FIRST_DRAWS, 0) if self.natural else np.eye(len(theta))
        zero = np.zeros(len(theta))
        return RunningEstimate.trusted(rule=self, theta=theta, average=theta, fisher=fisher, count=0, drift=zero)

    def predict(self, belief: RunningEstimate) -> RunningEstimate:
        """Prediction step: parameters are constant."""
        return belief

    def update(self, belief: RunningEstimate, y: ArrayLike, weight: float = 1.0) -> tuple[RunningEstimate, float]:
        """Update step with a row, or a block of rows as one step; returns the estimate and the block's log p before."""
        x = self._rows(y)
        scores, logs = self._scores_and_logs(belief, x)
        after = self._after(belief, _mean(scores, weight))
        if self._has_diverged(after):
            self._warn_diverged(belief, after)
        elif after.count >= FIRST_LOOK and after.count & (after.count - 1) == 0:
            self._warn_drift(after)
        return after, float(logs.sum())

    def _after(self, belief: RunningEstimate, score: Array) -> RunningEstimate:
        """One gradient step with the mean score (P,)."""
        count = belief.count + 1
        theta = self._step(belief.theta, belief._solver, score, count)
        _refuse_infinite(float(theta.dot(theta)), count)
        drift = belief.drift if belief.drift.shape == score.shape else np.zeros(len(score))
        drift = drift + (score - drift) * (1 / min(count, BLOCK))
        average = belief.average + (theta - belief.average) * (2 / (count + 1))
        return self._next_estimate(belief, theta, average, drift, count)

    def _step(self, theta: Array, solver: Array, score: Array, count: int) -> Array:
        """θ after one step; tables take thousands of steps, so NumPy calls are few."""
        a = self.step / (count + self.delay) ** self.power
        if not self.natural:
            return np.asarray(theta + a * score)
        step = solver.dot(score)
        length = a * math.sqrt(max(score.dot(step), 0.0))
        step *= a if length <= LONGEST else a * LONGEST / length
        step += theta
        return np.asarray(step)

    def _next_estimate(
        self, belief: RunningEstimate, theta: Array, average: Array, drift: Array, count: int
    ) -> RunningEstimate:
        """The estimate at a later θ; at some steps the Fisher information is estimated again."""
        parts = {"rule": self, "theta": theta, "average": average, "drift": drift, "count": count}
        if count != self._next_look(count - 1):
            same = RunningEstimate.trusted(fisher=belief.fisher, **parts)
            return fill_cache(same, _solver=belief._solver)
        fresh = self._information(theta, DRAWS, count)
        return RunningEstimate.trusted(fisher=belief.fisher + (fresh - belief.fisher) / 8, **parts)

    def _next_look(self, count: int) -> int:
        """The next step that estimates the Fisher information: sixteen per doubling of the count; 0 for none."""
        if not self.natural:
            return 0
        return count + 1 if count < 16 else math.ceil(2 ** ((math.floor(16 * math.log2(count) + 1e-9) + 1) / 16) - 1e-9)

    def run(
        self, x: ArrayLike, weight: ArrayLike | None = None, batch: int = 1, belief: RunningEstimate | None = None
    ) -> RunningEstimate:
        """Estimate from a whole table, in the order of its rows.

        Parameters
        ----------
        x : array-like (n, d)
            Rows.
        weight : array-like (n,), optional
            An integer weight of k visits a row k times; a fraction of a visit is a shorter step; 0 is absence.
        batch : int, default 1
            Number of rows per step.
        belief : RunningEstimate, optional
            State to continue from.

        Returns
        -------
        RunningEstimate
            The state after all rows.
        """
        if batch < 1 or batch != int(batch):
            raise DomainError(sentence(ME, "batch must be an integer above 0", batch))
        x = _plain(x)
        at, share = _visits(x, weight)
        belief = before = self._initial_estimate(x, at) if belief is None else belief
        starts, scores_of, done = range(0, len(at), int(batch)), self._scores_of(x, at), 0
        while done < len(starts):
            leg = slice(done, done + min(max(self._next_look(belief.count) - belief.count, 1), LEG))
            edges = [(start, start + int(batch)) for start in starts[leg]]
            fractions = share[leg].tolist() if batch == 1 else [float(share[a:b].mean()) for a, b in edges]
            belief = self._run_steps(belief, scores_of, edges, fractions)
            done = leg.stop
        if self._has_diverged(belief):
            self._warn_diverged(before, belief)
        else:
            self._warn_unless_converged(belief, x, at)
        return belief

    def _run_steps(
        self, belief: RunningEstimate, scores_of: Slopes, edges: list[tuple[int, int]], shares: list[float]
    ) -> RunningEstimate:
        """Steps that share one Fisher information; the averaged path is updated once for all of them."""
        theta, solver, count, path, scores = belief.theta, belief._solver, belief.count, [], []
        for (start, stop), share in zip(edges, shares, strict=True):
            count += 1
            score = _mean(scores_of(theta, start, stop, count), share)
            theta = self._step(theta, solver, score, count)
            path.append(theta)
            scores.append(score)
        _refuse_infinite(float(theta.dot(theta)), count)
        n = np.arange(belief.count + 1.0, count + 1.0)
        before = belief.count * (belief.count + 1.0)
        average = (before * belief.average + 2 * (n @ np.array(path))) / (count * (count + 1.0))
        recent = np.array(scores[-BLOCK:])
        old = min(belief.count, BLOCK) - max(len(recent) - max(BLOCK - belief.count, 0), 0)
        drift = recent.sum(axis=0) / (len(recent) + max(old, 0))
        if old > 0 and belief.drift.shape == drift.shape:
            drift = drift + belief.drift * (old / (len(recent) + old))
        return self._next_estimate(belief, theta, average, drift, count)

    def _scores_of(self, x: Any, at: Index) -> Slopes:
        """(θ, start, stop, count) ↦ scores of these visits: analytic if available for these rows."""
        formulas = self._formulas
        found = formulas.table(x) if formulas is not None else None

        def differences(theta: Array, start: int, stop: int, count: int) -> Array:
            _refuse_infinite(float(theta.dot(theta)), count)
            rows = self._rows(_taken(x, at[start:stop]))
            scores, logs = self._free.scores_and_logs(theta, rows, theta)
            _refuse_impossible(logs, rows)
            return scores

        if found is None or formulas is None:
            return differences
        z, fine = found[0][at], found[1][at]
        whole, analytic, near = bool(fine.all()), formulas.scores, formulas.near

        def scores(theta: Array, start: int, stop: int, count: int) -> Array:
            if near(theta) and (whole or fine[start:stop].all()):
                return analytic(theta, z[start:stop])
            return differences(theta, start, stop, count)

        return scores

    # ------------------------------------------------------------ initial value and convergence

    def _initial_estimate(self, x: Any, at: Index) -> RunningEstimate:
        """The given distribution, or the maximum-likelihood estimate of the first rows if it is far off."""
        start = self.initial_belief()
        if not self.natural or not len(at):
            return start
        first = self._rows(_taken(x, at[:BLOCK]))
        score = self._scores(start.theta, first).mean(axis=0)
        if self._deviations(score, start.fisher) < FAR_OFF:
            return start
        theta = self._refitted(start.theta, first)
        return start.replace(theta=theta, average=theta, fisher=self._information(theta, FIRST_DRAWS, 0))

    def _refitted(self, theta: Array, x: Any) -> Array:
        """Maximum likelihood of the learned parameters on a block; θ itself if the distribution has none."""
        if not (hasattr(self.distribution, "collect") and hasattr(self.distribution, "refit")):
            return theta
        try:
            with warnings_discarded():
                found = FreeParameters(self.distribution.refit(self.distribution.collect(x)), self.learn).start
        except (LikelyError, np.linalg.LinAlgError):  # too few rows, or all alike
            return theta
        return found if found.shape == theta.shape and np.isfinite(found).all() else theta

    def _warn_unless_converged(self, belief: RunningEstimate, x: Any, at: Index) -> None:
        last = at[-BLOCK:]
        if len(last) >= 32:
            score = self._scores(belief.estimate, self._rows(_taken(x, last))).mean(axis=0)
            self._warn_score(score, belief, len(last))

    def _has_diverged(self, belief: RunningEstimate) -> bool:
        """Whether a parameter is beyond its bound, where distributions no longer change and scores vanish."""
        bounds = self._free.bounds
        return bool((np.abs(belief.theta) >= bounds).any() or (np.abs(belief.estimate) >= bounds).any())

    def _warn_diverged(self, before: RunningEstimate, belief: RunningEstimate) -> None:
        if not self._has_diverged(before):
            expected = "parameters must stay finite, but the run has diverged"
            remedy = "use a smaller step, or " + ("a better initial value" if self.natural else "natural=True")
            warn(sentence(ME, expected, f"one beyond it by step {belief.count}", remedy))

    def _warn_drift(self, belief: RunningEstimate) -> None:
        """The same for a stream, from the running mean of the scores."""
        self._warn_score(belief.drift, belief, min(belief.count, BLOCK))

    def _warn_score(self, score: Array, belief: RunningEstimate, rows: int) -> None:
        away = self._deviations(score, self._information(belief.estimate, FIRST_DRAWS, belief.count))
        if away > NOT_CONVERGED[0] and away * math.sqrt(rows / len(score)) > NOT_CONVERGED[1]:
            expected = "the mean score of the last rows should be near 0, so the estimate has not converged"
            remedy = "use a better initial value, or more rows" if self.natural else "change step, or use natural=True"
            warn(sentence(ME, expected, f"{away:.2g} deviations", remedy))

    @staticmethod
    def _deviations(score: Array, fisher: Array) -> float:
        """Length of a mean score in standard deviations of one observation's estimate."""
        return math.sqrt(max(float(score @ _inverted(fisher) @ score), 0.0))

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
        """Fisher information: the mean of g gᵀ over draws at θ; keyed by the step, so that updates are pure."""
        x = self._free.distribution(theta).sample(draws, np.random.default_rng([self.random_state, count]))
        g = self._scores(theta, x)
        return np.asarray(g.T @ g / len(g))

    def _scores(self, theta: Array, x: Any) -> Array:
        """Scores ∂ log p(x_i | θ) / ∂θ (n, P), analytic if available."""
        z = self._analytic_rows(x, theta)
        return self._free.scores(theta, x) if z is None else self._formulas.scores(theta, z)  # type: ignore[union-attr]

    def _scores_and_logs(self, belief: RunningEstimate, x: Any) -> tuple[Array, Array]:
        """The same at the last θ, and log p(x_i) under the estimate; rows of density 0 are refused."""
        z = self._analytic_rows(x, belief.theta, belief.estimate)
        if z is not None and self._formulas is not None:
            return self._formulas.scores(belief.theta, z), np.asarray(belief.distribution.log_prob(x))
        scores, logs = self._free.scores_and_logs(belief.theta, x, belief.estimate)
        _refuse_impossible(logs, x)
        return scores, logs

    def _analytic_rows(self, x: Any, *points: Array) -> Array | None:
        """Rows in the form of the analytic scores; None if not available, or a row has missing values or density 0."""
        formulas = self._formulas
        found = formulas.table(x) if formulas is not None else None
        if found is None or formulas is None or not found[1].all() or not all(map(formulas.near, points)):
            return None
        return found[0]


def _refuse_infinite(size: float, count: int) -> None:
    if not size < math.inf:
        raise DomainError(sentence(ME, "the path must stay finite", f"infinity at step {count}", "use a smaller step"))


def _mean(scores: Array, weight: float) -> Array:
    """Mean of scores (n, P), times a weight."""
    mean = scores[0] if len(scores) == 1 else scores.mean(axis=0)
    return mean if weight == 1 else mean * weight


def _inverted(fisher: Array) -> Array:
    """Regularized inverse (G + ridge)⁻¹, the ridge a millionth of the diagonal: independent of units."""
    deviation = np.sqrt(np.diagonal(fisher))
    unit = np.where(deviation > 0, deviation, 1.0)
    scaled = fisher / unit / unit[:, None]
    np.fill_diagonal(scaled, 1 + RIDGE)  # also for a parameter without information: its step is the score itself
    return np.asarray(np.linalg.inv(scaled) / unit / unit[:, None])


def _refuse_impossible(logs: Array, x: Any) -> None:
    if np.isneginf(logs).any():
        i = int(np.argmax(np.isneginf(logs)))
        expected = "rows must have positive density under the distribution"
        raise DataError(
            sentence(ME, expected, f"{np.asarray(x)[i].tolist()}", "drop it, or use a distribution with larger support")
        )


def _visits(x: Any, weight: Any) -> tuple[Index, Array]:
    """Row index of each visit, and its fraction of a visit."""
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
    """Lists, and data frames of numbers, as arrays; other tables unchanged."""
    if isinstance(x, list | tuple):
        return np.asarray(x)
    if not hasattr(x, "iloc"):
        return unmasked(x)
    a = np.asarray(x)
    return a if a.dtype.kind in "biuf" else x


def _taken(x: Any, at: Index) -> Any:
    """Rows by position, also of a data frame."""
    if hasattr(x, "iloc"):
        return x.iloc[at]
    return x[at] if hasattr(x, "shape") else np.asarray(x)[at]


__all__ = ["RobbinsMonro", "RunningEstimate"]
