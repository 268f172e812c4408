"""Markov-switching regression: a linear regression whose coefficients and noise follow a hidden Markov chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from likely.basis.polynomials import Identity
from likely.core import declared
from likely.core.arrays import Array, Index, Mask, weights
from likely.core.errors import DataError, sentence
from likely.core.job_size import is_small
from likely.core.ragged import Ragged
from likely.core.stats import Addable
from likely.core.value import Value, fill_cache
from likely.core.warnings import Note, warn
from likely.distributions.gaussian.moments import Moments
from likely.hmm.hmm import HMM
from likely.linear_model._loops import switching_m_step, switching_pass
from likely.linear_model.conditional import Conditional
from likely.linear_model.gaussian_regression import FLOOR, GaussianRegression
from likely.linear_model.least_squares import RegressionStats, _semidefinite_root
from likely.numerics.special import LOG_2PI

ZERO, SHARED, SWITCHING = 0, 1, 2  # roles of coefficients
CYCLES = 2  # of conditional maximization per M-step, where it has no closed form
SHORTEST = 1e-4  # of a step of the chain: shorter ones gain nothing that can be measured
LEAST_PIVOT = 1e-8  # of normal equations with unit diagonal: below it half of the digits are gone
EXACT = 1e8  # times the least variance: below it residuals have lost digits in sums of products
PRIOR_ROWS = 1.0  # rows that the noise of a weak prior counts as: with five, a quiet state is too loud
PRIOR_SHARE = 0.01  # of a row: the coefficients of a weak prior
PSEUDO_COUNTS = 1.0  # of transitions from each state, in a weak prior


@dataclass(frozen=True, eq=False)
class MarkovSwitchingRegression(Value):
    """Markov-switching regression y_t = β_{s_t}·g_t + ε_t, s_t a Markov chain, ε_t ~ N(0, σ²_{s_t})   (Hamilton 1994).

    With `ar` (K, p) it is the mean-adjusted autoregression of Hamilton (1989),
    y_t − β_{s_t}·g_t = Σ_i φ_i (y_{t−i} − β_{s_{t−i}}·g_{t−i}) + ε_t: a row depends on the states of p frames before,
    and the hidden Markov model `hmm` has the K^(p+1) runs (s_t, …, s_{t−p}) as its states.

    A sample is a sequence of rows, `Ragged(Columns(y=…, x=…))`, x = (g_t, g_{t−1}, …, g_{t−p}, y_{t−1}, …, y_{t−p}); a
    row whose y is NaN is unobserved.

    Parameters
    ----------
    initial : ndarray (K,)
        Distribution of the oldest state of the first run.
    transition : ndarray (K, K)
        Transition matrix; each row sums to 1.
    coefficients : ndarray (K, q)
        Coefficients β of each state.
    ar : ndarray (K, p)
        Coefficients φ of the autoregression of each state; without columns there is none.
    variance : ndarray (K,)
        Variance σ² of the noise of each state.
    roles : ndarray (q,)
        For each entry of β: 0 is fixed at 0, 1 shared by all states, 2 switches.
    shared_ar : bool
        Whether all states have one autoregression.
    tied : bool
        Whether all states have one noise variance.
    stationary : bool
        Whether the first state has the stationary distribution of the transition matrix.

    See Also
    --------
    SwitchingRegression : The estimator of these parameters.

    References
    ----------
    Hamilton, Time Series Analysis (1994), chapter 22.
    Hamilton, A new approach to the economic analysis of nonstationary time series, Econometrica 57 (1989).

    Examples
    --------
    >>> import numpy as np, likely as lk
    >>> stay, levels = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.0], [3.0]])
    >>> half, ones = np.array([0.5, 0.5]), np.ones(2)
    >>> model = MarkovSwitchingRegression(half, stay, levels, np.zeros((2, 0)), ones, roles=np.array([2.0]))
    >>> series = lk.Ragged(lk.core.Columns(y=[0.1, 2.9, 3.2], x=np.ones((3, 1))), [0, 3])
    >>> model.log_prob(series).round(4), model.hmm.viterbi(series).states.values
    (array([-5.7468]), array([0, 1, 1]))
    """

    initial: Annotated[Array, declared.numbers("K", 0)]  # (K,): of the oldest state of the first run
    transition: Annotated[Array, declared.numbers("K K", 0)]
    coefficients: Annotated[Array, declared.numbers("K q")]  # β
    ar: Annotated[Array, declared.numbers("?")]  # φ: (K, p); no columns: no autoregression
    variance: Annotated[Array, declared.numbers("K", 0)]  # σ²
    roles: Annotated[Array, declared.numbers("q", 0)]
    shared_ar: Annotated[bool, declared.flag] = False
    tied: Annotated[bool, declared.flag] = False  # one noise variance
    stationary: Annotated[bool, declared.flag] = True

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Probabilities must sum to 1, variances must be positive, and autoregressions have one row per state."""
        if fields["ar"].ndim != 2 or len(fields["ar"]) != len(fields["initial"]):
            return "ar must have one row per state"
        sums = [fields["initial"].sum(), *fields["transition"].sum(axis=1)]
        if not np.allclose(sums, 1.0):
            return "probabilities must sum to 1"
        return "" if (fields["variance"] > 0).all() else "variances must be positive"

    of_sequences = True
    takes_parts = True
    members = None
    dim = 1

    # ------------------------------------------------------------------ shape

    @property
    def states(self) -> int:
        """Number of states K."""
        return len(self.initial)

    @property
    def order(self) -> int:
        """Order p of the mean-adjusted autoregression; 0: none."""
        return self.ar.shape[1]

    @cached_property
    def runs(self) -> Index:
        """The states (E, p + 1) of each run, the newest first."""
        return np.stack(
            np.unravel_index(np.arange(self.states ** (self.order + 1)), (self.states,) * (self.order + 1)), 1
        )

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        K, switching = self.states, int((self.roles == SWITCHING).sum())
        free = K * switching + int((self.roles == SHARED).sum()) + (1 if self.shared_ar else K) * self.order
        return free + (1 if self.tied else K) + K * (K - 1) + (0 if self.stationary else K - 1)

    @property
    def smallest_eigenvalue(self) -> float:
        """The smallest noise variance."""
        return float(self.variance.min())

    # ---------------------------------------------------------------- density

    @cached_property
    def regressions(self) -> GaussianRegression:
        """The regression of each run on x: a stack of K^(p+1)."""
        W = -self.contrasts[:, :-1]
        return GaussianRegression.trusted(
            coefficients=W[:, None], covariance=self.variance[self.runs[:, 0]][:, None, None], basis=Identity(False)
        )

    @cached_property
    def run_probabilities(self) -> Array:
        """Distribution of the first run (E,): that of its oldest state, times transitions."""
        found = self.initial[self.runs[:, -1]]
        for i in range(self.order):
            found = found * self.transition[self.runs[:, i + 1], self.runs[:, i]]
        return np.asarray(found)

    @cached_property
    def hmm(self) -> HMM:
        """The hidden Markov model of the runs."""
        E, K = len(self.runs), self.states
        between = np.zeros((E, E))
        after = np.arange(K) * (E // K) + (np.arange(E) // K)[:, None] if self.order else np.tile(np.arange(K), (E, 1))
        between[np.arange(E)[:, None], after] = self.transition[self.runs[:, 0]]
        return HMM.trusted(
            initial=self.run_probabilities, transition=between, emission=Conditional.trusted(density=self.regressions),
            final=None,
        )  # fmt: skip

    def log_prob(self, x: Ragged) -> Array:
        """Conditional log-density log p(y | x) of each sequence.

        Parameters
        ----------
        x : Ragged
            Sequences of rows `Columns(y=…, x=…)`.

        Returns
        -------
        ndarray (n,)
            Log-density per sequence.
        """
        return self.hmm.log_prob(x)

    def in_words(self) -> str:
        """The number of states."""
        return f"a Markov-switching regression of {self.states} states"

    # --------------------------------------------------------------- learning

    def collect(self, x: Any, weight: Any = None) -> RegimeStats:
        """E-step: expected transitions, and expected moments of rows (x, y) in each run."""
        data = x if isinstance(x, PreparedRows) else PreparedRows.of(Ragged.of(x), weight)
        w = data.weight
        W, variance = self.contrasts, self.variance[self.runs[:, 0]]
        log_prob, first, pairs, frames, rows, sums, products = switching_pass(
            data.z, data.seen, data.offsets, w, np.column_stack([-W[:, :-1], -(W @ data.pivot)]), variance,
            self.run_probabilities, self.transition, self.order,
        )  # fmt: skip
        total = float(w @ log_prob)
        if not np.isfinite(total):
            return self._collect_by_hmm(data.sequences, w)
        return self._stats(first, pairs, frames, data.moments(rows, sums, products), total)

    def labeled(self, data: PreparedRows, labels: Index) -> RegimeStats:
        """Statistics of known states; before a series its first state is repeated.

        Parameters
        ----------
        data : PreparedRows
            All rows, about a pivot (`PreparedRows.of`).
        labels : array of int (T,)
            State of each row, from 0.

        Returns
        -------
        RegimeStats
            Sufficient statistics.
        """
        K, offsets, lengths = self.states, data.offsets, np.diff(data.offsets)
        frame, first = np.repeat(data.weight, lengths), np.repeat(offsets[:-1], lengths)
        at, run = np.arange(len(labels)), np.zeros(len(labels), dtype=np.intp)
        for i in range(self.order + 1):
            run = run * K + labels[np.maximum(at - i, first)]
        w = (frame * data.seen)[:, None] * (run[:, None] == np.arange(len(self.runs)))
        sides = (w[:, :, None] * data.z[:, None, :]).reshape(len(labels), -1)
        products = (sides.T @ data.z).reshape(len(self.runs), *data.z.shape[1:], -1)
        inside, begin = np.flatnonzero(at > first), offsets[:-1][lengths > 0]
        pairs = np.bincount(labels[inside - 1] * K + labels[inside], frame[inside], K * K).reshape(K, K)
        return RegimeStats.trusted(
            initial=np.bincount(labels[begin], frame[begin], K).astype(float), transition=pairs,
            counts=np.bincount(labels, frame, K).astype(float), entropy=np.zeros(()),
            emission=data.moments(w.sum(axis=0), sides.sum(axis=0).reshape(len(self.runs), -1), products),
        )  # fmt: skip

    def _collect_by_hmm(self, x: Ragged, w: Array) -> RegimeStats:
        """The same by the hidden Markov model of the runs: the slow version."""
        found, newest = self.hmm.collect(x, w), self.runs[:, 0]
        pairs = np.zeros((self.states, self.states))
        np.add.at(pairs, (newest[:, None], newest[None]), found.transition)
        stats = self._stats(found.initial, pairs, found.counts, found.emission)
        return stats.replace(entropy=found.entropy)

    def _stats(
        self, first: Array, pairs: Array, frames: Array, emission: RegressionStats, log_prob: float | None = None
    ) -> RegimeStats:
        """Statistics from expected first runs, later transitions and frames: transitions inside of first runs count."""
        for i in range(self.order):
            np.add.at(pairs, (self.runs[:, i + 1], self.runs[:, i]), first)
        K, order = self.states, self.order
        initial = first.reshape(-1, K).sum(axis=0) if order else first
        counts = frames.reshape(K, -1).sum(axis=1) if order else frames
        roots = stats_rows(emission)
        parts = {"initial": initial, "transition": pairs, "counts": counts, "emission": emission}
        entropy = 0.0 if log_prob is None else log_prob - self._expected_log(emission.rows, roots, pairs, initial)
        return fill_cache(RegimeStats.trusted(**parts, entropy=np.asarray(entropy)), roots=roots)

    def _expected_log(self, rows: Array, roots: Array, transition: Array, initial: Array) -> float:
        """Expected complete-data log-likelihood."""
        variance = self.variance[self.runs[:, 0]]
        value = -0.5 * float((rows * (LOG_2PI + np.log(variance)) + _squares(roots, self.contrasts) / variance).sum())
        return value + float(xlogy(transition, self.transition).sum() + xlogy(initial, self.initial).sum())

    @cached_property
    def contrasts(self) -> Array:
        """Vectors a (E, D + 1) with residual a·(x, y) in each run."""
        return self._contrasts(self.coefficients, self.ar)

    def _contrasts(self, coefficients: Array, ar: Array) -> Array:
        """The same of other parameters."""
        newest, p = self.runs[:, 0], self.order
        parts = [-coefficients[newest]]
        if p:
            phi = ar[newest]
            parts += [phi[:, [i]] * coefficients[self.runs[:, i + 1]] for i in range(p)]
            parts.append(-phi)
        return np.concatenate([*parts, np.ones((len(newest), 1))], axis=1)

    def objective(self, stats: RegimeStats, prior: Any = None) -> float:
        """Expected complete-data log-likelihood + entropy of the states + log prior: the EM lower bound."""
        value = self._expected_log(stats.emission.rows, stats.roots, stats.transition, stats.initial)
        return value + float(stats.entropy) + (0.0 if prior is None else prior.log_density(self))

    def refit(self, stats: RegimeStats, prior: Any = None) -> MarkovSwitchingRegression:
        """M-step, by conditional maximization where there is no closed form: the objective never falls.

        Given the noise variances and φ, the coefficients β solve a least-squares problem; given β, so does φ; given
        both, the variances are mean squares. A stationary chain takes damped steps, since its initial distribution
        depends on the transitions   (expectation–conditional maximization; Meng and Rubin 1993).
        """
        if prior is None and not stats.emission.total_weight > 0:
            expected = "at least one observed row with all its lags is needed"
            raise DataError(sentence("MarkovSwitchingRegression", expected, "none", "or give a prior"))
        initial, transition = self._chain_step(stats, prior)
        alternates = self.order > 0 or (not self.tied and bool((self.roles == SHARED).any()))
        cycles = CYCLES if alternates else 1
        beta, phi, variance = self._fast_steps(stats, prior, cycles) or self._steps(stats, prior, cycles)
        return self.replace(initial=initial, transition=transition, coefficients=beta, ar=phi, variance=variance)

    def _steps(self, stats: RegimeStats, prior: Any, cycles: int) -> tuple[Array, Array, Array]:
        """Conditional maximization by orthogonal factors, for any design."""
        beta, phi, variance = self.coefficients, self.ar, self.variance
        for _ in range(cycles):
            beta = self._coefficient_step(stats, phi, variance, prior)
            if self.order:
                phi = self._ar_step(stats.roots, beta, variance, prior)
            variance = self._variance_step(stats, beta, phi, prior)
        return beta, phi, variance

    def _fast_steps(self, stats: RegimeStats, prior: Any, cycles: int) -> tuple[Array, Array, Array] | None:
        """The same by normal equations, compiled; None where they are ill-conditioned, or a variance is near 0."""
        if is_small() or (stats.counts <= 0).any():
            return None
        beta, phi, variance = (np.array(part) for part in (self.coefficients, self.ar, self.variance))
        index = _free_index(self.states, tuple(self.roles.tolist()))
        q, p = beta.shape[1], self.order
        none = np.zeros((q, q)), np.zeros(q), np.zeros((p, p)), 0.0, 0.0
        found = switching_m_step(
            stats.emission.rows, stats.products, self.runs, index, beta, phi, variance, self.shared_ar, self.tied,
            cycles, none if prior is None else prior.precisions, LEAST_PIVOT,
        )  # fmt: skip
        return (beta, phi, variance) if found and (variance > EXACT * stats.least_variance).all() else None

    # -------------------------------------------------------- conditional maximization

    @property
    def _free(self) -> Array:
        """Map (K·q, F) from free coefficients to all: one per state, or one for all states."""
        return _free_coefficients(self.states, tuple(self.roles.tolist()))

    def _coefficient_step(self, stats: RegimeStats, ar: Array, variance: Array, prior: Any) -> Array:
        """β given φ and σ²: least squares over all runs at once."""
        (K, q), p, free, U = self.coefficients.shape, self.order, self._free, stats.roots
        if not free.shape[1]:
            return self.coefficients
        runs, (E, n) = self.runs, U.shape[:2]
        scale = (1.0 / np.sqrt(variance))[runs[:, 0]][:, None]
        target, design = U[:, :, -1], np.zeros((E, n, K, q))
        design[np.arange(E), :, runs[:, 0]] = U[:, :, :q]
        if p:
            phi = ar[runs[:, 0]]
            target = target - (U[:, :, (p + 1) * q : -1] @ phi[:, :, None])[:, :, 0]
            for i in range(1, p + 1):
                design[np.arange(E), :, runs[:, i]] -= phi[:, i - 1, None, None] * U[:, :, i * q : (i + 1) * q]
        A = (design.reshape(E, n, K * q) * scale[:, :, None]).reshape(E * n, K * q)
        b = (target * scale).ravel()
        if prior is not None:
            root = prior.coefficient_root
            A = np.concatenate([A, np.kron(np.eye(K), root)])
            b = np.concatenate([b, np.tile(root @ prior.coefficients, K)])
        found = (free @ solved(A @ free, b)).reshape(K, q)
        alone = stats.counts <= 0 if prior is None else None  # a state without rows keeps its coefficients
        if alone is not None and alone.any():
            found = np.where(alone[:, None] & (self.roles == SWITCHING), self.coefficients, found)
        return found

    def _ar_step(self, U: Array, coefficients: Array, variance: Array, prior: Any) -> Array:
        """φ given β and σ²: regression of deviations on deviations before."""
        (K, q), p, runs = self.coefficients.shape, self.order, self.runs
        E, n = U.shape[:2]
        deviations = [
            U[:, :, -1 if i == 0 else (p + 1) * q + i - 1]
            - (U[:, :, i * q : (i + 1) * q] @ coefficients[runs[:, i]][:, :, None])[:, :, 0]
            for i in range(p + 1)
        ]
        scale = (1.0 / np.sqrt(variance))[runs[:, 0]][:, None]
        lagged = np.stack(deviations[1:], axis=-1) * scale[:, :, None]  # (E, n, p)
        groups = 1 if self.shared_ar else K
        design = np.zeros((E, n, groups, p))
        design[np.arange(E), :, 0 if self.shared_ar else runs[:, 0]] = lagged
        A, b = design.reshape(E * n, groups * p), (deviations[0] * scale).ravel()
        if prior is not None:
            A = np.concatenate([A, np.kron(np.eye(groups), prior.ar_root)])
            b = np.concatenate([b, np.zeros(groups * p)])
        return np.array(np.broadcast_to(solved(A, b).reshape(groups, p), (K, p)))

    def _variance_step(self, stats: RegimeStats, coefficients: Array, ar: Array, prior: Any) -> Array:
        """σ² given the rest: mean squares of residuals, of all states or of each."""
        K = self.states
        squares = _squares(stats.roots, self._contrasts(coefficients, ar)).reshape(K, -1).sum(axis=1)
        rows = stats.emission.rows.reshape(K, -1).sum(axis=1)
        if self.tied:
            squares, rows = np.full(K, squares.sum()), np.full(K, rows.sum())
        if prior is not None:
            squares, rows = squares + prior.rows * prior.variance, rows + prior.rows
        found = np.where(rows > 0, squares / np.where(rows > 0, rows, 1.0), self.variance)
        least = stats.least_variance
        if (found < least).any():
            text = "rows of a state are fitted exactly: its noise variance was set to 1e-14 of the target's"
            warn(Note("MarkovSwitchingRegression", text))
            found = np.maximum(found, least)
        return found

    def _chain_step(self, stats: RegimeStats, prior: Any) -> tuple[Array, Array]:
        extra = 0.0 if prior is None else float(prior.pseudo_counts) / self.states
        counts, initial = stats.transition + extra * (self.transition > 0), stats.initial
        if self.stationary:
            A = stationary_step(counts, initial, self.transition)
            return stationary_distribution(A), A
        total = counts.sum(axis=1, keepdims=True)
        free = np.where(total > 0, counts / np.where(total > 0, total, 1.0), self.transition)
        initial = initial + extra * (self.initial > 0)
        return (initial / initial.sum() if initial.sum() > 0 else self.initial), free

    def weak_prior(self, stats: RegimeStats) -> RegimePrior:
        """Weakly informative prior: a hundredth of a row for coefficients, one for the noise of each state."""
        return weak_regime_prior(self, stats)


@dataclass(frozen=True, eq=False)
class RegimeStats(Addable, Value):
    """Expected sufficient statistics of a Markov-switching regression."""

    initial: Annotated[Array, declared.numbers("K", 0)]  # (K,): oldest states of first runs
    transition: Annotated[Array, declared.numbers("K K", 0)]
    counts: Annotated[Array, declared.numbers("K", 0)]  # (K,): frames in each state
    emission: Annotated[Any, declared.stats]  # RegressionStats of each run (E,)
    entropy: Annotated[Array, declared.numbers("*")]  # (): of the hidden states, in nats

    complete = False
    unit = "frame"

    @property
    def total_weight(self) -> float:
        """Weight of all frames."""
        return float(self.counts.sum())

    @cached_property
    def roots(self) -> Array:
        """Rows U (E, D + 2, D + 1) with UᵀU = Σ w z zᵀ of z = (x, y) in each run."""
        return stats_rows(self.emission)

    @cached_property
    def products(self) -> Array:
        """Sums of products Σ w z zᵀ (E, D + 1, D + 1) of z = (x, y) in each run."""
        sums = self.emission.sums
        return np.asarray(sums.scatter + sums.weight[:, None, None] * (sums.mean[:, :, None] * sums.mean[:, None, :]))

    @cached_property
    def least_variance(self) -> float:
        """Noise variances below it are rounding errors of an exact fit."""
        y = self.roots[:, :, -1]
        rows, mean = self.emission.rows, self.emission.sums.mean[:, -1]
        total = max(float(rows.sum()), 1e-300)
        center = float(rows @ mean) / total
        spread = (float((y[:, :-1] ** 2).sum()) + float(rows @ (mean - center) ** 2)) / total
        return FLOOR * (spread if spread > 0 else 1e-9 * max(center**2, 1.0))

    def __add__(self, other: RegimeStats) -> RegimeStats:
        names = ("initial", "transition", "counts", "emission", "entropy")
        return RegimeStats.trusted(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def __mul__(self, factor: float) -> RegimeStats:
        names = ("initial", "transition", "counts", "emission", "entropy")
        return RegimeStats.trusted(**{name: getattr(self, name) * factor for name in names})

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class RegimePrior(Value):
    """Prior of a Markov-switching regression, independent for coefficients, noise variances and transitions.

    Coefficients are Gaussian about `coefficients`, autoregressive ones about 0; noise variances count as `rows` rows of
    mean square `variance`; rows of the transition matrix have `pseudo_counts` in all.
    """

    coefficients: Annotated[Array, declared.numbers("q")]
    coefficient_root: Annotated[Array, declared.numbers("q q")]  # R with precision RᵀR
    ar_root: Annotated[Array, declared.numbers("?")]  # (p, p)
    variance: Annotated[Array, declared.numbers("*", 0)]  # ()
    rows: Annotated[Array, declared.numbers("*", 0)]  # ()
    pseudo_counts: Annotated[Array, declared.numbers("*", 0)]  # ()

    @cached_property
    def precisions(self) -> tuple[Array, Array, Array, float, float]:
        """Precision and center of coefficients, precision of autoregressions, rows and variance of the noise."""
        R, A = self.coefficient_root, self.ar_root
        return R.T @ R, np.array(self.coefficients), A.T @ A, float(self.rows), float(self.variance)

    def log_density(self, model: MarkovSwitchingRegression) -> float:
        """Log density of a model, up to a constant."""
        away = (model.coefficients - self.coefficients) @ self.coefficient_root.T
        phi = (model.ar[:1] if model.shared_ar else model.ar) @ self.ar_root.T
        variance = model.variance[:1] if model.tied else model.variance
        value = -0.5 * float((away**2).sum() + (phi**2).sum())
        value -= 0.5 * float(self.rows) * float((np.log(variance) + self.variance / variance).sum())
        share = float(self.pseudo_counts) / model.states
        value += share * float(np.log(model.transition[model.transition > 0]).sum())
        return value if model.stationary else value + share * float(np.log(model.initial[model.initial > 0]).sum())


def weak_regime_prior(model: MarkovSwitchingRegression, stats: RegimeStats) -> RegimePrior:
    """The weak prior for given statistics: about the regression of all rows, with their residual variance."""
    (_, q), p, U = model.coefficients.shape, model.order, stats.roots.reshape(-1, stats.roots.shape[-1])
    rows, spread = max(float(stats.emission.rows.sum()), 1e-300), stats.least_variance / FLOOR
    on = np.flatnonzero(model.roles > ZERO)
    center = np.zeros(q)
    center[on] = solved(U[:, on], U[:, -1])
    variance = max(float(_squares(stats.roots, model.contrasts).sum()) / rows, 1e-9 * spread)
    gram = U[:, :q].T @ U[:, :q] / rows
    gram[np.diag_indices(q)] += np.where(np.diagonal(gram) > 0, 1e-6 * np.diagonal(gram), 1.0)
    root = np.sqrt(PRIOR_SHARE / variance) * np.linalg.cholesky(gram).T
    lags = np.sqrt(PRIOR_SHARE * spread / variance) * np.eye(p)
    return RegimePrior.trusted(
        coefficients=center, coefficient_root=root, ar_root=lags, variance=np.asarray(variance),
        rows=np.asarray(PRIOR_ROWS), pseudo_counts=np.asarray(PSEUDO_COUNTS),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _runs(K: int, order: int) -> Index:
    shape = (K,) * (order + 1)
    return np.stack(np.unravel_index(np.arange(K ** len(shape)), shape), axis=1)


@lru_cache(maxsize=64)
def _free_coefficients(K: int, roles: tuple[float, ...]) -> Array:
    columns, q = [], len(roles)
    for j, role in enumerate(roles):
        own = np.zeros((K, K, q))
        own[np.arange(K), np.arange(K), j] = 1.0
        columns += list(own) if role == SWITCHING else [own.sum(axis=0)] if role == SHARED else []
    return np.stack([c.ravel() for c in columns], axis=1) if columns else np.zeros((K * q, 0))


@lru_cache(maxsize=64)
def _free_index(K: int, roles: tuple[float, ...]) -> Index:
    """The number of the free parameter of each coefficient (K, q), −1 for one fixed at 0."""
    free = _free_coefficients(K, roles)
    index = np.where(free.any(axis=1), free.argmax(axis=1) if free.shape[1] else 0, -1)
    return index.reshape(K, len(roles)).astype(np.intp)


class PreparedRows(NamedTuple):
    """Rows of sequences as the E-step takes them, about a pivot: made once for many passes."""

    z: Array  # (T, D + 1): x and y, less the pivot; 0 where y is unobserved
    seen: Mask  # (T,)
    offsets: Index
    pivot: Array  # (D + 1,)
    weight: Array  # (n,): of sequences
    sequences: Ragged

    @classmethod
    def of(cls, sequences: Ragged, weight: Any = None) -> PreparedRows:
        """Prepared rows of `Ragged(Columns(y=…, x=…))`."""
        w = weights(weight, len(sequences), "MarkovSwitchingRegression")
        w = np.ones(len(sequences)) if w is None else w
        y, x = np.ravel(sequences.values["y"]), sequences.values["x"]
        seen = ~np.isnan(y)
        z = np.column_stack([x, np.where(seen, y, 0.0)])
        pivot = z[seen].mean(axis=0) if seen.any() else np.zeros(z.shape[1])
        z = np.where(seen[:, None], z - pivot, 0.0)
        return cls(z, seen, np.asarray(sequences.offsets, dtype=np.intp), pivot, w, sequences)

    def moments(self, rows: Array, sums: Array, products: Array) -> RegressionStats:
        """Statistics from weights (E,), sums (E, D + 1) and sums of products (E, D + 1, D + 1) about the pivot."""
        rest = sums / np.where(rows > 0, rows, 1.0)[:, None]
        scatter = products - rows[:, None, None] * (rest[:, :, None] * rest[:, None, :])
        i = np.arange(scatter.shape[1])
        scatter[:, i, i] = np.maximum(scatter[:, i, i], 0.0)
        found = Moments.trusted(
            weight=rows, origin=self.pivot, shift=rest, scatter=scatter, entropy=np.zeros(len(rows)), complete=True
        )
        return RegressionStats.of(found, 1)


def _squares(U: Array, contrasts: Array) -> Array:
    """Sums of squared residuals of each run (E,)."""
    rest = (U @ contrasts[:, :, None])[:, :, 0]
    return np.asarray((rest * rest).sum(axis=1))


def stats_rows(stats: RegressionStats) -> Array:
    """Rows U (..., D + 2, D + 1) with UᵀU = Σ w z zᵀ of z = (x, y): a root of the scatter, and the mean."""
    sums = stats.sums
    mean = np.sqrt(sums.weight)[..., None, None] * sums.mean[..., None, :]
    return np.concatenate([_semidefinite_root(sums.scatter), mean], axis=-2)


def solved(A: Array, b: Array) -> Array:
    """Least squares with columns scaled to norm 1; of minimum norm where columns depend on each other."""
    norms = np.sqrt(np.einsum("ij,ij->j", A, A))
    norms[norms == 0] = 1.0
    return np.asarray(np.linalg.lstsq(A / norms, b, rcond=1e-12)[0] / norms)


def stationary_distribution(transition: Array) -> Array:
    """The distribution π with π A = π; one of them where the chain has several.

    >>> stationary_distribution(np.array([[0.9, 0.1], [0.3, 0.7]]))
    array([0.75, 0.25])
    """
    K = len(transition)
    if K == 2:
        found = np.array([transition[1, 0], transition[0, 1]])
        total = found[0] + found[1]
        return found / total if total > 0 else np.full(2, 0.5)
    A = np.eye(K) - transition.T
    A[-1] = 1.0
    b = np.zeros(K)
    b[-1] = 1.0
    try:
        found = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(A, b, rcond=None)[0]
    found = np.maximum(found, 0.0)
    return np.asarray(found / found.sum())


def stationary_step(counts: Array, first: Array, now: Array) -> Array:
    """Transitions with a higher Σ n_jk log a_jk + Σ r_k log π_k(A), π the stationary distribution of A, if there are.

    A step along the gradient, to relative frequencies of n_jk + a_jk ∂/∂a_jk Σ r_k log π_k(A), which are A itself at a
    maximum; it is shortened until the objective does not fall.
    """
    pi = stationary_distribution(now)
    reached = _chain_value(counts, first, now, pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = np.linalg.solve(np.eye(len(pi)) - now + pi, np.where(first > 0, first / pi, 0.0))
        more = counts + now * pi[:, None] * (pull - pull.min())
        target = more / more.sum(axis=1, keepdims=True)
        target = np.where(np.isfinite(target), target, now)
    step = 1.0
    while step > SHORTEST:
        new = now + step * (target - now)
        if _chain_value(counts, first, new, stationary_distribution(new)) >= reached:
            return np.asarray(new)
        step /= 4
    return now


def _chain_value(counts: Array, first: Array, A: Array, pi: Array) -> float:
    value = float(xlogy(counts, A).sum() + xlogy(first, pi).sum())
    return value if value == value else -np.inf
