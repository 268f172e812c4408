"""Probabilistic PCA and factor analysis: Gaussians with low-rank plus diagonal covariance."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from likely.core.arrays import Array, Rows, Seed, Targets, refuse_infinite, rows
from likely.core.blocks import Block, Blocks
from likely.core.description import Description, DescriptionTable, loadings_words
from likely.core.em_loop import FALLS, StoppingRule, fit, gather, iterate, resolve_prior
from likely.core.engine import Threads
from likely.core.errors import DataError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import PriorLike
from likely.core.stats import Stats
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.factor_fits import em_start
from likely.distributions.gaussian.factor_gaussian import FactorGaussian, NoiseKind, of_columns, refuse_too_many
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.priors.pseudo_observations import PseudoObservations
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.scikit_learn import check_random_state

FACTORS = {"n_components": [Interval(Integral, 0, None, closed="left"), None], "prior": PRIOR, **EM}
LOOK = 4096  # rows for an initial Gaussian where nothing is missing
RANK = 1e-10  # of the largest eigenvalue: smaller ones count as 0
TRIED_BEYOND_BEST = 3  # numbers of factors tried after the best so far


class FactorDensity(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityEstimator):
    """Base of PPCA and FactorAnalysis: `model_` is a `FactorGaussian`, `transform` gives posterior means of factors."""

    model_types = (FactorGaussian,)
    _kind: NoiseKind

    def partial_fit(self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit with more rows: their statistics are added to those of all rows before."""
        super().partial_fit(X, y, sample_weight)
        if self.n_components is None:
            best = self._best_for(self.stats_)
            if best != self.n_components_:
                model = _with_factors(self.model_, best).refit(self.stats_, self.prior_)
                objective = model.objective(self.stats_, self.prior_)
                report = self.report_
                self._adopt(FitReport(model, report.stats, report.prior, report.converged, report.reason, [objective]))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Posterior means of the factors (n, q); missing entries are integrated out."""
        check_is_fitted(self)
        return self.model_.scores(self.validate_rows(X, reset=False))

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows reconstructed from factors (n, q), without noise: μ + W z."""
        check_is_fitted(self)
        return self.model_.mean + rows(X, self.n_components_, type(self).__name__) @ self.model_.loadings.T

    def describe(self, level: float = 0.95) -> Description:
        """The density, and the largest loadings of each factor."""
        found = super().describe(level)
        if not hasattr(self, "model_"):
            return found
        names = self.column_names()
        rows = [(j, loadings_words(axis, names)) for j, axis in enumerate(self.components_, 1)]
        return found.plus(
            tables=[DescriptionTable("factors", ("factor", "loadings"), rows, noun="factors")] if rows else []
        )

    @property
    def components_(self) -> Array:
        """The loadings (q, d), one row per factor."""
        return self.model_.loadings.T

    @property
    def noise_variance_(self) -> Any:
        """Noise variance: a number for PPCA, one per column (d,) for factor analysis."""
        return float(self.model_.noise_variance) if self._kind == "spherical" else self.model_.noise_variance

    @property
    def mean_(self) -> Array:
        """The learned mean (d,)."""
        return self.model_.mean

    @property
    def covariance_(self) -> Array:
        """The covariance (d, d): W Wᵀ + Ψ."""
        return self.model_.covariance_matrix

    @property
    def n_components_(self) -> int:
        """Number of factors."""
        return int(self.model_.factors)

    # ------------------------------------------------------------------- inside

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def blank_model(self, X: Any, members: int | None = None, weight: ArrayLike | None = None) -> FactorGaussian:
        return FactorGaussian.blank(X[:LOOK], factors=self._factors(X, None), kind=self._kind, members=members)

    def _initial_model(self, X: Any, weight: Any) -> FactorGaussian:
        return self.initialize(None, X, None, weight, None)  # which names rows that are not finite

    def initialize(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Any, run: int = 0) -> Any:
        """Mean and variance of each column; with missing values from all rows, so that order does not matter."""
        if labels is not None:
            return super().initialize(blank, X, labels, weight, rng, run)
        initial = self._initial_gaussian(X, weight, self._kind)
        loadings = np.zeros((X.shape[1], self._factors(X, weight)))
        return FactorGaussian.trusted(
            mean=initial.mean, loadings=loadings, noise_variance=initial.covariance, kind=self._kind
        )

    def _factors(self, X: Any, weight: Any) -> int:
        """Number of factors: as given, or the best by BIC."""
        number = self._best(X, weight) if self.n_components is None else int(self.n_components)
        refuse_too_many(number, X.shape[1], type(self).__name__)
        return number

    def _initial_gaussian(self, X: Any, weight: Any, kind: CovarianceKind) -> Gaussian:
        """Initial Gaussian; where nothing is missing, the result does not depend on it."""
        with np.errstate(all="ignore"):
            whole = np.isfinite(np.sum(X))
        if whole:
            return Gaussian.blank(X[:LOOK], kind=kind)
        refuse_infinite(X, type(self).__name__)
        if np.isnan(X).all():
            remedy = "at least one entry must be a number"
            raise DataError(sentence(type(self).__name__, "something must be observed", "nothing but NaN", remedy))
        return initial_gaussian(X, weight, kind)

    def extend_model(self, model: Any, stats: Stats, X: ArrayLike) -> tuple[Any, Any]:
        """Without missing values the search starts again, so that chunks give the same result as the batch."""
        if self._kind == "diagonal" and stats.complete and np.isfinite(np.sum(X)):
            model = model.replace(loadings=np.zeros_like(model.loadings))
        return model, stats

    def _best(self, X: Any, weight: Any) -> int:
        """Number of factors of least BIC, from the covariance of these rows, estimated by EM with missing values."""
        with warnings_discarded():
            start = self._initial_gaussian(X, weight, "full")
            found = fit(
                start, Blocks.of(X, weight), prior="weak", stop=StoppingRule(self.max_iter, max(self.tol, 1e-6))
            )
        return self._best_for(found.stats)

    def _best_for(self, stats: Any) -> int:
        n = max(stats.total_weight, 2.0)
        if self.prior is None or isinstance(self.prior, str):  # columns without observations are excluded
            stats = of_columns(stats, np.flatnonzero(stats.observed > 0))
        with warnings_discarded():
            return ppca_factors_by_bic(stats, n) if self._kind == "spherical" else factors_by_bic(stats, n, self.prior)


Method = Literal["closed", "em"]


class PPCA(FactorDensity):
    """Probabilistic principal component analysis: x = W z + μ + isotropic noise.

    PCA with a likelihood: rows may have missing values (NaN), `score_samples` supports novelty detection,
    and it can be a component of a `MixtureDensity` or a class density of a `BayesClassifier`.

    Parameters
    ----------
    n_components : int, optional
        Number of factors; None takes the one of 0, 1, … with the least BIC for the given rows (0:
        no correlated columns, and `transform` gives no column).
    prior : {"weak"}, Prior or None, default "weak"
        "weak" keeps the covariance regular and leaves well-determined estimates as they are
        (`PseudoObservations.weak`); None is maximum likelihood; or a prior of a full Gaussian.
    method : {"closed", "em"}, default "closed"
        "closed" uses eigenvectors; "em" iterates over the latent factors and converges to the same optimum.
    max_iter : int, default 100
        Largest number of EM iterations, which missing values or `method="em"` require.
    tol : float, default 1e-6
        Iterations end when the objective rises by less, in nats per row.
    random_state : int, Generator or None
        Seed of the initialization of `method="em"`.

    Attributes
    ----------
    model_ : FactorGaussian
        The fitted density.

    See Also
    --------
    PCA : The axes without a likelihood.
    FactorAnalysis : One noise variance per column.

    References
    ----------
    Tipping and Bishop (1999); Bishop (2006), chapter 12; Herbst and du Preez, lecture notes, 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(500, 6))
    >>> p = PPCA().fit(X)
    >>> p.n_components_, round(p.noise_variance_, 3)
    (2, 0.01)
    """

    _kind = "spherical"
    _parameter_rules: ClassVar[dict[str, Any]] = {
        **FACTORS, "method": [StrOptions(set(get_args(Method)))], "random_state": ["random_state"],
    }  # fmt: skip

    def __init__(
        self, n_components: int | None = None, *, prior: PriorLike = "weak", method: Method = "closed",
        max_iter: int = 100, tol: float = 1e-6, random_state: Seed = None,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.prior = prior
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows X (n, d), NaN for missing values; `y` is ignored."""
        if self.method == "closed":
            return super().fit(X, y, sample_weight)
        self._validate_params()
        X, weight = self.checked_rows(X, sample_weight, reset=True)
        with self._named_columns():
            report = self._by_em(X, weight)
        if not report.converged:
            warn(f"PPCA: not converged: {report.reason}")
        return self._adopt(report)

    def _by_em(self, X: Any, weight: Any) -> FitReport:
        """EM with latent factors and missing values."""
        blocks, model = Blocks.of(X, weight), self.initialize(None, X, None, weight, None)
        first = next(iterate(model, blocks, prior=self.prior_rule(), stop=StoppingRule(self.max_iter, self.tol)))
        stats, prior = first.stats, first.prior
        model = self._start(model, stats)
        stats = _statistics_under(model, stats, blocks)
        trace = [model.objective(stats, prior)]
        for _ in range(self.max_iter):
            better = model.em_step(stats, prior)
            new_stats = _statistics_under(better, stats, blocks)
            trace.append(better.objective(new_stats, prior))
            if not trace[-1] >= trace[-2] - FALLS * max(abs(trace[-2]), stats.total_weight):
                reason = "the next step would be worse: the noise variance is at rounding level; use fewer factors"
                return FitReport(model, stats, prior, False, reason, trace[:-1])
            model, stats = better, new_stats
            if abs(trace[-1] - trace[-2]) <= self.tol * stats.total_weight:
                return FitReport(model, stats, prior, True, f"gain below {self.tol:g} per row", trace)
        reason = f"{self.max_iter} refits made, the objective still increasing"
        return FitReport(model, stats, prior, False, reason, trace)

    def _start(self, model: FactorGaussian, stats: Any) -> FactorGaussian:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        at = np.flatnonzero(stats.observed > 0)
        covariance = stats.scatter[np.ix_(at, at)] / max(stats.total_weight, 1e-300)
        if not np.trace(covariance) > 0:
            return model
        loadings = np.zeros_like(model.loadings)
        loadings[at], noise = em_start(covariance, model.factors, rng)
        return model.replace(mean=stats.mean, loadings=loadings, noise_variance=np.asarray(noise))


class FactorAnalysis(FactorDensity):
    """Factor analysis: x = W z + μ + noise with one noise variance per column.

    Unlike PPCA it is invariant to the columns' units. Loadings are those for which WᵀΨ⁻¹W is diagonal, the entry of
    largest absolute value in each positive. Newton's method finds the maximum
    (`distributions.gaussian.factor_fits`), in EM where rows have missing values.

    Parameters
    ----------
    n_components : int, optional
        Number of factors; None tries 0, 1, … until three in a row do not improve the BIC.
    prior : {"weak"}, Prior or None, default "weak"
        "weak" keeps the covariance regular and leaves well-determined estimates as they are
        (`PseudoObservations.weak`); None is maximum likelihood; or a prior of a full Gaussian.
    max_iter : int, default 100
        Largest number of iterations.
    tol : float, default 1e-6
        Iterations end when the objective rises by less, in nats per row.

    Attributes
    ----------
    model_ : FactorGaussian
        The fitted density.

    See Also
    --------
    PPCA : The same noise variance in every column.

    References
    ----------
    Bishop (2006), chapter 12.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1)) @ [[1.0, 2.0, -1.0]] + rng.normal(size=(2000, 3)) * [0.5, 1.0, 0.2]
    >>> FactorAnalysis(1).fit(X).noise_variance_.round(1)
    array([0.2, 1. , 0. ])
    """

    _kind = "diagonal"
    _parameter_rules: ClassVar[dict[str, Any]] = FACTORS

    def __init__(
        self, n_components: int | None = None, *, prior: PriorLike = "weak", max_iter: int = 100, tol: float = 1e-6
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def _adopt(self, report: FitReport, rows: Block | None = None) -> Self:
        """A closed form exists only without factors."""
        if report.stats.complete and report.model.factors:
            report = replace(report, reason="nothing was missing: Newton's method over the noise variances")
        return super()._adopt(report, rows)


def initial_gaussian(X: Any, weight: Any, kind: str) -> Gaussian:
    """Mean and variance of the observed entries of each column, over all rows; 0 and 1 where there are none."""
    near = Gaussian.blank(X[:LOOK], kind="diagonal")
    observed: Any = Threads().total(partial(gather, near), Blocks.of(X, weight))
    variance = np.where(observed.variance > 0, observed.variance, np.clip(np.abs(observed.mean), 1.0, 1e150) ** 2)
    some = observed.observed > 0
    spread = np.diag(variance) if kind == "full" else variance if kind == "diagonal" else variance[some].mean()
    return Gaussian.trusted(mean=np.where(some, observed.mean, 0.0), covariance=np.array(spread), kind=kind)


def _statistics_under(model: FactorGaussian, stats: Any, blocks: Blocks) -> Any:
    """Statistics of rows with missing values under a model; without missing values they do not depend on it."""
    return stats if stats.complete else Threads().total(partial(gather, model), blocks)


def _with_factors(model: FactorGaussian, number: int) -> FactorGaussian:
    """The same Gaussian with zero loadings for this number of factors."""
    return model.replace(loadings=np.zeros((*model.mean.shape, number)))


def ppca_factors_by_bic(stats: Any, n: float) -> int:
    """The number of factors of PPCA with the least BIC, from eigenvalues alone.

    For q factors log p = −½ n [Σ_{i ≤ q} log λᵢ + (d − q) log σ²] + a constant. A weak prior keeps eigenvalues
    positive where rows are few.
    """
    values = np.linalg.eigvalsh(PseudoObservations.weak(stats, 0).update(stats).point().covariance)[::-1]
    values = values[values > RANK * values[0]]  # a direction of variance 0 would make all others factors
    d = len(values)
    q = np.arange(max(min(d - 1, int(n) - 1), 0) + 1)
    rest = np.cumsum(values[::-1])[::-1][q] / (d - q)
    fit = -0.5 * n * (np.append(0.0, np.cumsum(np.log(values)))[q] + (d - q) * np.log(rest))
    return int(q[np.argmin((d * q - q * (q - 1) // 2) * np.log(n) - 2 * fit)])


def factors_by_bic(stats: Any, n: float, prior: Any) -> int:
    """The number of factors of factor analysis with the least BIC, of 0, 1, … until none improves.

    At most as many as a covariance identifies: (d − q)² ≥ d + q (Ledermann bound).
    """
    d = len(stats.shift)
    blank = FactorGaussian.trusted(
        mean=stats.mean, loadings=np.zeros((d, 1)), noise_variance=np.ones(d), kind="diagonal"
    )
    least, best = np.inf, 0
    for q in range(min(int(d + 0.5 - np.sqrt(2 * d + 0.25)), d - 1, int(n) - 1) + 1):
        model = _with_factors(blank, q)
        model = model.refit(stats, resolve_prior(model, stats, prior))
        bic = model.n_parameters * np.log(n) - 2 * model.objective(stats)
        if bic < least:
            least, best = bic, q
        elif q >= best + TRIED_BEYOND_BEST:
            break
    return best
