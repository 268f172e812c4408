"""Markov-switching regression and autoregression of time series, fitted by accelerated EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from likely.basis.polynomials import Identity
from likely.core.arrays import Array, Index, numbers, refuse_infinite
from likely.core.blocks import Blocks
from likely.core.columns import Columns
from likely.core.description import Description
from likely.core.em_acceleration import AcceleratedEM
from likely.core.em_loop import FitStep, StoppingRule, best_of, fit, resolve_prior
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.job_size import job
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.sketch import Sketch
from likely.core.warnings import warn, warnings_discarded, warnings_once
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, whole_or_nothing, whole_state
from likely.estimation.density_estimator import EM
from likely.estimation.fit_blocks import seed_of
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.hmm.hmm import HMM
from likely.linear_model.estimators.switching_forecast import Forecast, forecast, mixtures
from likely.linear_model.estimators.switching_summary import switching_description
from likely.linear_model.markov_switching import (
    SHARED,
    SWITCHING,
    ZERO,
    MarkovSwitchingRegression,
    PreparedRows,
    RegimeStats,
    stationary_distribution,
)
from likely.linear_model.regression_starts import partitions

SHARES = ("constant", "regressors", "lags")
SHORT = 2  # EM iterations after which the best third of the candidates of an initialization is kept
CANDIDATES = 30  # EM iterations of all candidates together
LINES = 3  # partitions by residuals that compete in one initialization
STAY = 0.9  # initial probability to stay, mixed with the transitions of an initial partition
WINDOW = 5  # frames over which residuals are averaged for an initial partition
CLOSE = 1e-6  # accelerated EM has converged where its next step is shorter, in standard deviations and log-odds


class SwitchingRegression(BaseEstimator):
    """Markov-switching regression of a time series: coefficients and noise switch between K hidden states.

    y_t = β_{s_t}·(1, x_t, y_{t−1}, …, y_{t−p}) + ε_t, ε_t ~ N(0, σ²_{s_t}), where s_t is a Markov chain (Hamilton 1994,
    chapter 22). With `mean_adjusted`, the autoregression is one of deviations from a switching mean (Hamilton 1989):
    y_t − μ_{s_t} = Σ_i φ_i (y_{t−i} − μ_{s_{t−i}}) + ε_t, μ_{s_t} = β_{s_t}·(1, x_t).

    Parameters
    ----------
    n_states : int
        Number of states K (regimes).
    lags : int
        Number p of values before that are regressors. The first p values of a series are given: their density is not
        part of the likelihood.
    mean_adjusted : bool
        Whether lags are those of deviations from the mean of the state at that time.
    basis : Basis, optional
        Basis functions of the regressors X; None takes the columns. A constant is always apart from them.
    constant : bool
        Whether there is a constant.
    shared : sequence of {"constant", "regressors", "lags"}
        Coefficients that are the same in all states; all others switch.
    tied_noise : bool
        Whether all states have one noise variance.
    initial : {"stationary", "free"}
        Distribution of the first state: the stationary distribution of the transition matrix, or a free one.
    prior : "weak" or None
        "weak" keeps the noise of every state away from 0; None is maximum likelihood.
    init : "auto", MarkovSwitchingRegression, or array-like (T,)
        Initial partitions by level, volatility, residuals and chance, the best of which goes on; or initial states.
    n_init : int
        Number of initializations with different seeds; the best objective wins.
    max_iter, tol : int, float
        Maximum number of EM iterations; converged when the objective gains less than tol per frame.
    random_state : int, Generator or None
        Seed of the initializations.

    Attributes
    ----------
    model_ : HMM
        The fitted hidden Markov model; with `mean_adjusted` its states are runs (s_t, …, s_{t−p}).
    regimes_ : MarkovSwitchingRegression
        The same with its parameters by state.
    report_ : FitReport
        Convergence, and what each initialization reached.

    Notes
    -----
    NaN in a series is unobserved. The chain goes on through a gap, and the p rows after it, whose lags are missing, are
    not part of the likelihood, as the first p rows. An entry of X that is missing where the row counts is an error.

    References
    ----------
    Hamilton, A new approach to the economic analysis of nonstationary time series, Econometrica 57 (1989).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> state = np.repeat([0, 1, 0, 1], 50)
    >>> y = np.where(state, 3.0, 0.0) + rng.standard_normal(200)
    >>> m = SwitchingRegression(2, random_state=0).fit(y)
    >>> m.coefficients_.ravel().round(1), bool((m.viterbi(y) == state).mean() > 0.95)
    (array([0. , 2.9]), True)
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_states": [Interval(Integral, 1, None, closed="left")],
        "lags": [Interval(Integral, 0, None, closed="left")],
        "mean_adjusted": ["boolean"],
        "basis": "no_validation",
        "constant": ["boolean"],
        "shared": [list, tuple],
        "tied_noise": ["boolean"],
        "initial": [StrOptions({"stationary", "free"})],
        "prior": [StrOptions({"weak"}), None],
        "init": [StrOptions({"auto"}), HasMethods(["collect", "refit"]), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }
    saved_attributes: tuple[str, ...] = ("regimes_", "stats_", "prior_", "basis_", "n_iter_", "n_regressors_")

    def __init__(
        self, n_states: int = 2, lags: int = 0, *, mean_adjusted: bool = False, basis: Any = None,
        constant: bool = True, shared: Any = (), tied_noise: bool = False, initial: str = "stationary",
        prior: Any = "weak", init: Any = "auto", n_init: int = 1, max_iter: int = 1000, tol: float = 1e-9,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_states = n_states
        self.lags = lags
        self.mean_adjusted = mean_adjusted
        self.basis = basis
        self.constant = constant
        self.shared = shared
        self.tied_noise = tied_noise
        self.initial = initial
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # ---------------------------------------------------------------- fitting

    def fit(self, y: Any, X: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a series, or to several.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.
        sample_weight : array-like (n,), optional
            One number per series: k equals k copies.
        """
        self._validate_params()
        self._check_settings()
        with whole_or_nothing(self):
            self.__dict__.pop("model_", None)
            rows = self._rows(y, X, reset=True)
            weight = self._weights(sample_weight, len(rows))
            if np.isnan(rows.values["y"][np.repeat(weight > 0, rows.lengths)]).all():
                expected = f"at least one observed value with {self.lags} observed values before is needed"
                raise DataError(sentence(type(self).__name__, expected, "none"))
            whole = warnings_once(lambda note: note.called(type(self).__name__, "MarkovSwitchingRegression"))
            with whole, one_blas_thread():
                report = self._run_em(rows, weight)
            if not report.converged:
                warn(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
            self.report_, self.regimes_ = report, report.model
            self.stats_, self.prior_, self.n_iter_ = report.stats, report.prior, max(report.iterations, 1)
        return self

    def _check_settings(self) -> None:
        me = type(self).__name__
        unknown = [name for name in self.shared if name not in SHARES]
        if unknown:
            raise DomainError(sentence(me, f"shared must be among {', '.join(SHARES)}", unknown))
        if self.mean_adjusted and not self.lags:
            raise DomainError(sentence(me, "mean_adjusted is about lags", "lags=0", "give lags=1 or more"))
        runs = self.n_states ** (self.lags + 1) if self.mean_adjusted else self.n_states
        if runs > MOST_RUNS:
            expected = f"mean_adjusted has n_states ** (lags + 1) runs of states, at most {MOST_RUNS}"
            raise DomainError(sentence(me, expected, runs, "use fewer lags or states, or mean_adjusted=False"))

    def _weights(self, sample_weight: Any, n: int) -> Array:
        w = np.ones(n) if sample_weight is None else numbers(sample_weight, "sample_weight")
        if w.shape != (n,) or not ((w >= 0) & (w < np.inf)).all() or not w.sum() > 0:
            expected = f"sample_weight must be one non-negative number per series ({n}), not all 0"
            raise DataError(sentence(type(self).__name__, expected, w.shape if w.shape != (n,) else w.tolist()[:5]))
        return w

    # ------------------------------------------------------------------- rows

    def _rows(self, y: Any, X: Any, reset: bool) -> Ragged:
        """Sequences of rows (y, x) after the first `lags` values; NaN in y where a row does not count."""
        series, tables = self._series(y), self._tables(X)
        if reset:
            self.n_regressors_ = 0 if tables is None else tables[0].shape[1]
            places = None if tables is None else np.concatenate(tables)
            basis = Identity(False) if self.basis is None else self.basis
            self.basis_ = basis if places is None or self.basis is None else basis.fitted(places, None)
        self._check_tables(series, tables)
        parts = [self._rows_of(one, None if tables is None else tables[i]) for i, one in enumerate(series)]
        offsets = np.concatenate([[0], np.cumsum([len(a) for a, _ in parts])])
        values = Columns(y=np.concatenate([a for a, _ in parts]), x=np.concatenate([b for _, b in parts]))
        return Ragged.trusted(values=values, offsets=offsets)

    def _series(self, y: Any) -> list[Array]:
        me = type(self).__name__
        if y is None:
            raise DataError(f"{me} requires y to be passed, but the target y is None")
        each = [y] if _is_one(y) else [y[i] for i in range(len(y))] if isinstance(y, Ragged) else list(y)
        found = [numbers(one.to_numpy() if hasattr(one, "to_numpy") else one, me) for one in each]
        found = [a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for a in found]
        for a in found:
            if a.ndim != 1:
                raise ShapeError(sentence(me, "a series is a vector of numbers, or several are a list", a.shape))
            refuse_infinite(a[:, None], f"{me}: Input y contains infinity")
        return found

    def _tables(self, X: Any) -> list[Array] | None:
        if X is None:
            return None
        one = hasattr(X, "iloc") or (not isinstance(X, list | Ragged) and np.ndim(X) in (1, 2))
        each = [X] if one else [X[i] for i in range(len(X))]
        found = [numbers(one.to_numpy() if hasattr(one, "to_numpy") else one, type(self).__name__) for one in each]
        return [a[:, None] if a.ndim == 1 else a for a in found]

    def _check_tables(self, series: list[Array], tables: list[Array] | None) -> None:
        me, d = type(self).__name__, self.n_regressors_
        if tables is None and d:
            raise ShapeError(sentence(me, f"the {d} columns of X are needed", "none", "pass X="))
        if tables is None:
            return
        if len(tables) != len(series):
            raise ShapeError(sentence(me, f"X must have one table per series ({len(series)})", len(tables)))
        for a, b in zip(series, tables, strict=True):
            if b.shape != (len(a), d):
                raise ShapeError(sentence(me, f"X must have shape ({len(a)}, {d}), as the series", b.shape))

    def _rows_of(self, y: Array, X: Array | None) -> tuple[Array, Array]:
        """Rows of one series: y (T − p,) and x (T − p, D); rows with a missing lag are unobserved."""
        p, g = self.lags, self._functions(len(y), X)
        T = max(len(y) - p, 0)
        lagged = np.stack([y[p - i : p - i + T] for i in range(1, p + 1)], axis=1) if p else np.empty((T, 0))
        seen = ~(np.isnan(y[p:]) | np.isnan(lagged).any(axis=1))
        parts = [g[p - i : p - i + T] for i in range(p + 1)] if self.mean_adjusted else [g[p : p + T]]
        x = np.concatenate([*parts, lagged], axis=1)
        bad = np.argwhere(~np.isfinite(x[:, : x.shape[1] - p]) & seen[:, None])
        if len(bad):
            t = int(bad[0][0]) + p
            expected, remedy = "X must be finite where the series is observed", "fill it in (lk.impute)"
            raise DataError(sentence(type(self).__name__, expected, f"NaN or infinity at or before row {t}", remedy))
        return np.where(seen, y[p:], np.nan), np.where(np.isfinite(x), x, 0.0)

    def _functions(self, n: int, X: Array | None) -> Array:
        """Constant and basis functions of all rows (n, q); a constant of role 0 where there is none at all."""
        ones = np.ones((n, 1))
        if X is None:
            return ones
        whole = np.isfinite(X).all(axis=1)  # an entry may be missing where the series is, too
        design = np.full((n, self.basis_.n_functions(X.shape[1])), np.nan)
        design[whole] = self.basis_.design(X[whole])
        return np.concatenate([ones, design], axis=1)

    @property
    def _roles(self) -> Array:
        """The role of each coefficient: fixed at 0, shared or switching."""
        d = self.basis_.n_functions(self.n_regressors_) if self.n_regressors_ else 0
        role = {name: SHARED if name in self.shared else SWITCHING for name in SHARES}
        lags = [] if self.mean_adjusted else [role["lags"]] * self.lags
        return np.array([role["constant"] if self.constant else ZERO] + [role["regressors"]] * d + lags, dtype=float)

    # --------------------------------------------------------------------- EM

    def _run_em(self, rows: Ragged, weight: Array) -> FitReport:
        kept = weight > 0
        if not kept.all():
            rows, weight = rows[np.flatnonzero(kept)], weight[kept]
        data, rng = PreparedRows.of(rows, weight), np.random.default_rng(seed_of(self.random_state))
        blank = self._blank(data)
        visits = float(len(data.z)) * (self.max_iter + CANDIDATES)
        with job(8 * visits * len(blank.runs) * (data.z.shape[1] + 1) ** 2, visits):  # 8 operations per product
            return best_of(self._starts(blank, data, rng), lambda _, start: self._climb(start, data))

    def _climb(self, start: MarkovSwitchingRegression, data: PreparedRows) -> FitReport:
        """Accelerated EM from a start, then EM, which confirms convergence."""
        first = _evaluated(start, data, None)
        prior = None if self.prior is None else resolve_prior(start, first.stats, self.prior)
        first = replace(first, prior=prior)
        evaluate = partial(_evaluated, data=data, prior=prior)
        spent = self.max_iter - 2
        coordinates = _Coordinates(data, start)
        em = AcceleratedEM(coordinates.vector, coordinates.model, evaluate, passes=max(spent, 0), tolerance=CLOSE)
        found = em.run(first)[0] if spent > 0 else first
        left = max(self.max_iter - len(em.trace), 1)
        stop = StoppingRule(left, self.tol)
        report = fit(found.model, Blocks.of(data.sequences, data.weight), prior=prior, stop=stop)
        return replace(report, trace=[first.objective, *em.trace[:-1], *report.trace])

    def _blank(self, data: PreparedRows) -> MarkovSwitchingRegression:
        """One regression for all states: that of all rows."""
        K, roles, p = self.n_states, self._roles, self.lags if self.mean_adjusted else 0
        spread = float(np.var(data.z[data.seen, -1]))
        blank = MarkovSwitchingRegression.trusted(
            initial=np.full(K, 1.0 / K), transition=sticky(K), coefficients=np.zeros((K, len(roles))),
            ar=np.zeros((K, p)), variance=np.full(K, spread if spread > 0 else 1.0), roles=roles,
            shared_ar="lags" in self.shared, tied=self.tied_noise, stationary=self.initial == "stationary",
        )  # fmt: skip
        stats = blank.labeled(data, np.zeros(len(data.z), dtype=np.intp))
        for _ in range(3 if p else 1):
            found = blank.refit(stats, blank.weak_prior(stats))
            same = {name: np.repeat(getattr(found, name)[:1], K, axis=0) for name in ("coefficients", "ar", "variance")}
            blank = blank.replace(**same)
        return blank

    def _starts(
        self, blank: MarkovSwitchingRegression, data: PreparedRows, rng: Generator
    ) -> Iterator[MarkovSwitchingRegression]:
        """The initial model of each run: the best of several candidates, or what the user gave."""
        if isinstance(self.init, MarkovSwitchingRegression):
            yield self._given(blank)
        elif not isinstance(self.init, str):
            yield _from_labels(blank, data, self._given_labels(len(data.z)))
        elif self.n_states == 1:
            yield blank
        else:
            prior = blank.weak_prior(blank.labeled(data, np.zeros(len(data.z), dtype=np.intp)))
            for _ in range(self.n_init):
                with warnings_discarded():
                    groups = self._labels(blank, data, rng)
                    tried = [_evaluated(_from_labels(blank, data, g, prior), data, prior) for g in groups]
                    while len(tried) > 1:
                        tried = sorted((_advanced(one, data) for one in tried), key=_log_likelihood)
                        tried = tried[len(tried) - max(len(tried) // 3, 1) :]
                yield tried[0].model

    def _labels(self, blank: MarkovSwitchingRegression, data: PreparedRows, rng: Generator) -> Iterator[Index]:
        """Initial partitions: by level and volatility of residuals in a window, then as those of mixtures."""
        n, q, seen = len(data.z), blank.coefficients.shape[1], np.flatnonzero(data.seen)
        z = data.z[seen] + data.pivot
        y, x = z[:, -1], z[:, :q]
        residual = y - x @ blank.coefficients[0]
        level = np.convolve(residual, np.ones(WINDOW) / WINDOW, "same")
        size = np.convolve(residual**2, np.ones(2 * WINDOW + 1), "same")
        for feature in (level, size, residual):
            yield _spread_out(_quantile_groups(feature[: len(y)], self.n_states), seen, n)
        weight = np.repeat(data.weight, np.diff(data.offsets))[seen]
        sketch = Sketch.trusted(rows=None, weight=weight, hashes=np.arange(len(seen), dtype=np.uint64), size=len(seen))
        use = np.flatnonzero(blank.roles > ZERO) if (blank.roles > ZERO).any() else np.arange(1)
        for group in partitions(x[:, use], y[:, None], sketch, self.n_states, rng, lines=LINES):
            yield _spread_out(group, seen, n)

    def _given(self, blank: MarkovSwitchingRegression) -> MarkovSwitchingRegression:
        given = self.init
        for name in ("coefficients", "ar"):
            if getattr(given, name).shape != getattr(blank, name).shape:
                expected = f"init must have {name} {getattr(blank, name).shape}"
                raise ShapeError(sentence(type(self).__name__, expected, getattr(given, name).shape))
        names = ("initial", "transition", "coefficients", "ar", "variance")
        return blank.replace(**{name: np.array(getattr(given, name)) for name in names})

    def _given_labels(self, n: int) -> Index:
        given = [self.init] if _is_one(self.init) else list(self.init)
        labels = np.concatenate([np.asarray(one).ravel()[self.lags :] for one in given])
        if labels.shape != (n,) or labels.dtype.kind not in "iub" or not self._all_states(labels):
            expected = f"init must be a state 0 … {self.n_states - 1} of each frame"
            raise DataError(sentence(type(self).__name__, expected, f"{labels.dtype} {labels.shape}"))
        return labels.astype(np.intp)

    def _all_states(self, labels: Array) -> bool:
        return bool(len(labels) and labels.min() >= 0 and labels.max() < self.n_states)

    # ---------------------------------------------------------------- results

    @cached_property
    def model_(self) -> HMM:
        """The fitted hidden Markov model, of sequences that `rows` gives."""
        return self.regimes_.hmm

    @property
    def transition_(self) -> Array:
        """Transition matrix (K, K)."""
        return self.regimes_.transition

    @property
    def initial_(self) -> Array:
        """Distribution of the first state (K,)."""
        return self.regimes_.initial

    @property
    def coefficients_(self) -> Array:
        """Coefficients of each state (K, M): constant, basis functions, and lags unless they are mean-adjusted."""
        return self.regimes_.coefficients[:, 0 if self.constant else 1 :]

    @property
    def ar_(self) -> Array:
        """Coefficients of the lags of each state (K, p)."""
        if self.mean_adjusted:
            return self.regimes_.ar
        return self.regimes_.coefficients[:, self.regimes_.coefficients.shape[1] - self.lags :]

    @property
    def noise_variance_(self) -> Array:
        """Variance of the noise of each state (K,)."""
        return self.regimes_.variance

    @property
    def expected_durations_(self) -> Array:
        """Expected number of frames (K,) that the chain stays in each state, 1/(1 − a_kk)."""
        with np.errstate(divide="ignore"):
            return 1.0 / (1.0 - np.minimum(np.diagonal(self.transition_), 1.0))

    @property
    def coefficient_names_(self) -> list[str]:
        """Names of the coefficients."""
        columns = [f"x{i}" for i in range(self.n_regressors_)]
        names = list(self.basis_.names(columns)) if columns else []
        lags = [] if self.mean_adjusted else [f"lag {i}" for i in range(1, self.lags + 1)]
        return [*(["constant"] if self.constant else []), *names, *lags]

    def rows(self, y: Any, X: Any = None) -> Ragged:
        """The sequences that `model_` takes: rows (y, x) after the first `lags` values.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        Ragged
            One sequence per series.
        """
        check_is_fitted(self)
        return self._rows(y, X, reset=False)

    def log_prob(self, y: Any, X: Any = None) -> Any:
        """Log-density of each series, in nats, given its first `lags` values.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        float or ndarray (n,)
            A number for one series.
        """
        found = self.model_.log_prob(self.rows(y, X))
        return float(found[0]) if _is_one(y) else found

    def score(self, y: Any, X: Any = None) -> float:
        """Mean log-likelihood per observed row, in nats.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.
        """
        rows = self.rows(y, X)
        return float(self.model_.log_prob(rows).sum() / max(int((~np.isnan(rows.values["y"])).sum()), 1))

    def smooth(self, y: Any, X: Any = None) -> Any:
        """Smoothed probabilities p(s_t | all y) of each frame; NaN in the first `lags` frames.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        ndarray (T, K), or list of them
            Probabilities of the states.
        """
        return self._states(y, X, None)

    def filter(self, y: Any, X: Any = None) -> Any:
        """Filtered probabilities p(s_t | y_1 … y_t) of each frame; NaN in the first `lags` frames.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        ndarray (T, K), or list of them
            Probabilities of the states.
        """
        return self._states(y, X, 0)

    def _states(self, y: Any, X: Any, lag: int | None) -> Any:
        rows = self.rows(y, X)
        return self._by_series(y, rows, self._over_states(self.model_.posterior(rows, lag).values))

    def _over_states(self, runs: Array) -> Array:
        """Probabilities of the newest states (T, K) from those of runs (T, E)."""
        return np.asarray(runs.reshape(len(runs), self.n_states, -1).sum(axis=2))

    def viterbi(self, y: Any, X: Any = None) -> Any:
        """The most probable path of states; −1 in the first `lags` frames.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        ndarray of int (T,), or list of them
            State of each frame, from 0.
        """
        rows = self.rows(y, X)
        path = self.model_.viterbi(rows).states.values
        return self._by_series(y, rows, self.regimes_.runs[path, 0], -1)

    def _by_series(self, y: Any, rows: Ragged, values: Array, missing: Any = np.nan) -> Any:
        """Values of rows as arrays of each series, with the first `lags` frames missing."""
        lengths = [len(one) for one in self._series(y)]
        parts = []
        for i, n in enumerate(lengths):
            own = values[rows.offsets[i] : rows.offsets[i + 1]]
            parts.append(np.concatenate([np.full((n - len(own), *own.shape[1:]), missing, dtype=own.dtype), own]))
        return parts[0] if _is_one(y) else parts

    def predictive(self, y: Any, X: Any = None) -> Any:
        """One-step predictive densities p(y_t | y_1 … y_{t−1}) of the frames after the first `lags`.

        A stack of mixtures of Gaussians, one per frame; a list of them for several series. After a gap, where lags are
        missing, a frame has none, and those of y and X are NaN or 0 there: the density is meaningless.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        Mixture, or list of them
            A stack of densities, one per frame.
        """
        rows = self.rows(y, X)
        found = mixtures(self.regimes_, rows)
        if _is_one(y):
            return found
        return [found.take(np.arange(a, b)) for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]

    def predict(self, y: Any, X: Any = None) -> Any:
        """One-step predictions E[y_t | y_1 … y_{t−1}] of each frame; NaN in frames whose lags are missing.

        Parameters
        ----------
        y : array-like (T,), or list of them
            A series, or several; NaN is unobserved.
        X : array-like (T, d), or list of them, optional
            Regressors, one row per frame; one table per series.

        Returns
        -------
        ndarray (T,), or list of them
            Expected values.
        """
        rows = self.rows(y, X)
        mean = mixtures(self.regimes_, rows).mean[:, 0]
        known = self._known_lags(y)
        return self._by_series(y, rows, np.where(known, mean, np.nan))

    def _known_lags(self, y: Any) -> Array:
        """Whether all lags of each row were observed."""
        each = []
        for one in self._series(y):
            T = max(len(one) - self.lags, 0)
            gaps = [np.isnan(one[self.lags - i : self.lags - i + T]) for i in range(1, self.lags + 1)]
            each.append(~np.any(gaps, axis=0) if gaps else np.ones(T, dtype=bool))
        return np.concatenate(each)

    def forecast(self, y: Any, steps: int = 1, X: Any = None, future: Any = None) -> Forecast:
        """Predictive densities of the next values of one series.

        Their means and variances are exact. So are the densities, mixtures over the paths of states, as long as there
        are at most 1024 paths; beyond, paths that end in the same states are merged into one Gaussian each.

        Parameters
        ----------
        y : array-like (T,)
            The series; NaN is unobserved.
        steps : int, default 1
            Number of frames ahead.
        X : array-like (T, d), optional
            Regressors of the series.
        future : array-like (steps, d), optional
            Regressors of the next frames.

        Returns
        -------
        Forecast
            Means, standard deviations and densities of the next values.
        """
        check_is_fitted(self)
        if not _is_one(y):
            raise ShapeError(sentence(type(self).__name__, "forecast takes one series", "several"))
        return forecast(self, y, steps, X, future)

    def sample(self, length: int, X: Any = None, random_state: Any = None, burn_in: int = 100) -> tuple[Array, Index]:
        """A simulated series and its states.

        Parameters
        ----------
        length : int
            Number of frames.
        X : array-like (length, d), optional
            Regressors, where the model has any.
        burn_in : int, default 100
            Number of frames before, which are dropped.

        Returns
        -------
        y : ndarray (length,)
            The series.
        states : ndarray of int (length,)
            State of each frame, from 0.
        """
        check_is_fitted(self)
        rng, m, p = np.random.default_rng(seed_of(random_state)), self.regimes_, self.lags
        tables = self._tables(X)
        d = self.n_regressors_
        if (tables is None) != (d == 0) or (tables is not None and tables[0].shape != (length, d)):
            raise ShapeError(sentence(type(self).__name__, f"X must have shape ({length}, {d})", np.shape(X)))
        burn_in = burn_in if d == 0 else 0
        n = length + burn_in + p
        g = self._functions(n, None if tables is None else np.concatenate([np.repeat(tables[0][:1], p, 0), tables[0]]))
        q = g.shape[1]
        states = np.empty(n, dtype=np.intp)
        states[0] = rng.choice(self.n_states, p=m.initial)
        for t in range(1, n):
            states[t] = rng.choice(self.n_states, p=m.transition[states[t - 1]])
        level = (g * m.coefficients[states][:, :q]).sum(axis=1)
        y, noise = level.copy(), rng.standard_normal(n) * np.sqrt(m.variance[states])
        for t in range(p, n):
            before = y[t - p : t][::-1] - (level[t - p : t][::-1] if self.mean_adjusted else 0.0)
            y[t] = level[t] + self.ar_[states[t]] @ before + noise[t]
        return y[-length:], states[-length:]

    # -------------------------------------------------------------- description

    def describe(self) -> Description:
        """Parameters by state, transitions and durations; of an unfitted estimator, its settings."""
        return switching_description(self) if hasattr(self, "regimes_") else super().describe()

    def summary(self, y: Any = None, X: Any = None, level: float = 0.95) -> Description:
        """The description of the fit; with the series of training, also standard errors and intervals.

        Standard errors are those of the numerical Hessian of the log-likelihood. They are left out where it is not
        negative definite, as at a boundary of the parameters.
        """
        check_is_fitted(self)
        return switching_description(self, None if y is None else self.rows(y, X), level)

    def save(self, path: Any) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)

    def check_state(self) -> None:
        """After reading a file: the regimes and their statistics must fit together and to the settings."""
        if not whole_state(self):
            return
        regimes, stats = self.regimes_, self.stats_
        sound = isinstance(regimes, MarkovSwitchingRegression) and isinstance(stats, RegimeStats)
        sound = sound and type(self.n_regressors_) is int and type(self.n_iter_) is int
        sound = sound and hasattr(self.basis_, "design") and regimes.states == self.n_states
        sound = sound and regimes.order == (self.lags if self.mean_adjusted else 0)
        try:
            sound = sound and np.array_equal(regimes.roles, self._roles) and np.isfinite(regimes.objective(stats))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError(sentence(type(self).__name__, "what was learned must fit together", "others"))


MOST_RUNS = 4096  # runs of states of a mean-adjusted autoregression


def _advanced(step: FitStep, data: PreparedRows) -> FitStep:
    """A candidate after a few more EM iterations."""
    for _ in range(SHORT):
        step = _evaluated(step.model.refit(step.stats, step.prior), data, step.prior)
    return step


def _log_likelihood(step: FitStep) -> float:
    return float(step.model.objective(step.stats))


class _Coordinates:
    """Parameter vectors of models: coefficients in units of what they explain, log σ, and roots of probabilities.

    Near 0 a probability converges in its root as other parameters do, and in its logarithm not at all.
    """

    def __init__(self, data: PreparedRows, unit: MarkovSwitchingRegression) -> None:
        x, q = data.z[:, :-1] + data.pivot[:-1], unit.coefficients.shape[1]
        root = np.sqrt((x[data.seen, :q] ** 2).mean(axis=0))
        self.scale = np.where(root > 0, root, 1.0) / np.sqrt(unit.variance.max())
        self.known: dict[int, tuple[MarkovSwitchingRegression, Array | None]] = {}

    def vector(self, model: MarkovSwitchingRegression, unit: MarkovSwitchingRegression) -> Array | None:
        """Parameters as a vector, computed once per model."""
        found = self.known.get(id(model))
        if found is None:
            found = self.known[id(model)] = model, self._vector(model)
        return found[1]

    def _vector(self, model: MarkovSwitchingRegression) -> Array | None:
        beta = model.coefficients * self.scale
        roots = [2 * np.sqrt(model.transition), *([] if model.stationary else [2 * np.sqrt(model.initial)])]
        parts = [beta, model.ar, 0.5 * np.log(model.variance), *roots]
        found = np.concatenate([part.ravel() for part in parts])
        return found if np.isfinite(found).all() else None

    def model(self, vector: Array, unit: MarkovSwitchingRegression) -> MarkovSwitchingRegression:
        (K, q), p = unit.coefficients.shape, unit.order
        ends = np.cumsum([K * q, K * p, K, K * K])
        beta, ar, log_deviation, roots, first = np.split(vector, ends)
        A = _from_roots(roots.reshape(K, K))
        with np.errstate(over="ignore"):
            variance = np.clip(np.exp(2 * log_deviation), 1e-300, 1e300)
        return unit.replace(
            coefficients=beta.reshape(K, q) / self.scale,
            ar=ar.reshape(K, p), variance=variance, transition=A,
            initial=stationary_distribution(A) if unit.stationary else _from_roots(first),
        )  # fmt: skip


def _from_roots(roots: Array) -> Array:
    squares = np.maximum(roots, 0.0) ** 2
    total = squares.sum(axis=-1, keepdims=True)
    return np.where(total > 0, squares / np.where(total > 0, total, 1.0), 1.0 / squares.shape[-1])


def _evaluated(model: MarkovSwitchingRegression, data: PreparedRows, prior: Any) -> FitStep:
    return FitStep(model, model.collect(data), prior)


def _from_labels(
    blank: MarkovSwitchingRegression, data: PreparedRows, labels: Index, prior: Any = None
) -> MarkovSwitchingRegression:
    """The M-step with known states, with a weak prior: no state has too few rows for it."""
    stats = blank.labeled(data, labels)
    model, prior = blank, blank.weak_prior(stats) if prior is None else prior
    for _ in range(2 if blank.order else 1):
        model = model.refit(stats, prior)
    A = 0.5 * (model.transition + sticky(blank.states))
    return model.replace(transition=A, initial=stationary_distribution(A) if model.stationary else model.initial)


def sticky(K: int) -> Array:
    """Transition matrix (K, K) that stays with probability 0.9.

    >>> sticky(2).round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    return (
        np.full((K, K), (1 - STAY) / max(K - 1, 1)) + (STAY - (1 - STAY) / max(K - 1, 1)) * np.eye(K)
        if K > 1
        else np.ones((1, 1))
    )


def _quantile_groups(feature: Array, K: int) -> Index:
    """Groups of equal size by rank (n,)."""
    ranks = np.argsort(np.argsort(feature, kind="stable"), kind="stable")
    return ranks * K // max(len(feature), 1)


def _spread_out(group: Index, seen: Index, n: int) -> Index:
    """Groups of observed rows for all rows (n,): an unobserved row has that of the observed one before."""
    at = np.maximum(np.searchsorted(seen, np.arange(n), side="right") - 1, 0)
    return np.asarray(group, dtype=np.intp)[at]


def _is_one(y: Any) -> bool:
    """Whether y is one series: an array or column, or a list of numbers."""
    if isinstance(y, list | tuple):
        return not len(y) or np.ndim(y[0]) == 0
    return not isinstance(y, Ragged) and (hasattr(y, "to_numpy") or is_single_sequence(np.asarray(y)))
