"""Mixtures of linear regressions, fitted by the EM algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from likely.basis.polynomials import Identity
from likely.core.arrays import Array, n_rows
from likely.core.blocks import Blocks
from likely.core.columns import Columns
from likely.core.description import Description, DescriptionTable, counted
from likely.core.em_loop import StoppingRule, best_of, fit, mean_log_prob, resolve_prior
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.sketch import Sketch
from likely.core.warnings import warn, warnings_discarded
from likely.distributions.gaussian.gaussian import Gaussian
from likely.estimation.base_estimator import check_is_fitted, whole_or_nothing, whole_state
from likely.estimation.density_estimator import EM, PRIOR
from likely.estimation.fit_blocks import seed_of
from likely.estimation.input_validation import row_weights
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.estimation.partial_fit import one_step
from likely.linear_model.conditional import Conditional
from likely.linear_model.estimators.predictive_regressor import PredictiveRegressor
from likely.linear_model.gaussian_regression import GaussianRegression
from likely.linear_model.regression_starts import partitions
from likely.mixture.initialization import from_responsibilities
from likely.mixture.mixture import Mixture, MixtureStats

STARTS = ("auto", "residuals", "k-means++", "random")
SHORT = StoppingRule(10, 0.0)  # EM iterations on the sketch by which candidates of one initialization are compared
FUNCTIONS = Identity(False)  # rows are basis functions already: they are computed once


class MixtureRegression(PredictiveRegressor):
    """Mixture of K linear regressions p(y | x) = Σ w_k N(y | W_k φ(x), Σ_k), fitted by EM: `model_` is a `Mixture`.

    Each row belongs to one of K regressions, and which one is not observed (latent classes; Bishop 14.5.1). The weights
    w_k do not depend on x.

    Parameters
    ----------
    n_components : int
        Number of regressions K.
    basis : Basis, optional
        Basis functions, such as `lk.basis.Polynomial(3)`; None takes the columns and a constant.
    tied_noise : bool
        Whether all regressions have one noise covariance.
    prior : "weak", MixturePrior or None
        "weak" keeps every component regular; None is maximum likelihood.
    init : {"auto", "residuals", "k-means++", "random"}, Mixture, or array-like (n, K)
        How rows are divided first: by the residuals of regressions through a few random rows each, by k-means of rows
        (φ, y), or at random; "auto" tries all of them. Of these candidates the best after ten iterations goes on.
        Or a `Mixture` of `Conditional` regressions, or responsibilities.
    n_init : int
        Number of initializations with different seeds; the best objective wins, and `report_` lists all.
    max_iter, tol : int, float
        Maximum number of EM iterations; converged when the objective gains less than tol per row.
    random_state : int, Generator or None
        Seed of the initializations.

    Attributes
    ----------
    model_ : Mixture
        The fitted conditional density, of rows `Columns(y=…, x=…)`.
    report_ : FitReport
        Convergence, and what each initialization reached.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1.0, 1.0, 40)
    >>> y = np.where(np.arange(40) % 2, 1.0 + x, -1.0 - x) + 0.01 * np.sin(9 * np.arange(40))
    >>> m = MixtureRegression(2, random_state=0).fit(x[:, None], y)
    >>> m.weights_.round(2), sorted(m.coefficients_[:, 1].round(2).tolist())
    (array([0.5, 0.5]), [-1.0, 1.0])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "basis": "no_validation",
        "tied_noise": ["boolean"],
        "prior": PRIOR,
        "init": [StrOptions(set(STARTS)), HasMethods(["log_prob", "log_joint"]), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        **EM,
    }
    saved_attributes: tuple[str, ...] = (
        "model_", "stats_", "prior_", "basis_", "one_target_", "is_online_", "n_iter_", "n_features_in_",
        "feature_names_in_",
    )  # fmt: skip
    hard = False

    def __init__(
        self, n_components: int = 2, basis: Any = None, *, tied_noise: bool = False, prior: Any = "weak",
        init: Any = "auto", n_init: int = 1, max_iter: int = 500, tol: float = 1e-7, random_state: Any = None,
    ) -> None:  # fmt: skip
        self.n_components = n_components
        self.basis = basis
        self.tied_noise = tied_noise
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X (n, d) and targets y (n,) or (n, m); rows whose target is NaN do not count.

        Some missing targets among several are integrated out. A `sample_weight` of k equals k copies of a row.
        """
        self._validate_params()
        with whole_or_nothing(self):
            rows, weight, given = self._training_rows(X, y, sample_weight, reset=True)
            with self._named(), one_blas_thread():
                report = self._run_em(rows, weight, given)
            self._warn_of(report)
            self.is_online_ = False
            self._adopt(report)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """One EM step with more rows; the first call is a `fit`.

        After `fit`, statistics simply add. In a stream from the beginning, statistics of early models are
        down-weighted: each row counts less the more came after it. A basis that is placed by data is placed by the
        first chunk.
        """
        if not hasattr(self, "model_"):
            self.fit(X, y, sample_weight)
            self.is_online_ = True
            return self
        self._validate_params()
        with whole_or_nothing(self):
            rows, weight, _ = self._training_rows(X, y, sample_weight, reset=False)
            with one_blas_thread():
                self._adopt(one_step(self, rows, weight))
        return self

    def _training_rows(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Columns, Any, Any]:
        """Rows (y, φ(x)) with weight and a target, their weights, and their responsibilities where `init` has them."""
        X = self._checked_rows(X, reset)
        y = self._checked_targets(y, n_rows(X), reset)
        weight = None if sample_weight is None else row_weights(sample_weight, X)
        kept = ~np.isnan(y).all(axis=1) if weight is None else (weight > 0) & ~np.isnan(y).all(axis=1)
        if not kept.any():
            expected = "at least one row with a target and weight is needed"
            raise DataError(sentence(type(self).__name__, expected, "none"))
        at = np.flatnonzero(kept)
        X, y = (X, y) if kept.all() else (X.iloc[at] if hasattr(X, "iloc") else X[at], y[at])
        weight = None if weight is None else weight[at]
        if reset:
            self.basis_ = Identity() if self.basis is None else self.basis.fitted(X, weight)
        self._refuse_missing(X)
        given = None if isinstance(self.init, str | Mixture) or not reset else self._responsibilities(len(kept), at)
        return Columns(y=y, x=self._design(X)), weight, given

    def _responsibilities(self, n: int, at: Any) -> Array:
        given = np.asarray(self.init, dtype=np.float64)
        if given.shape != (n, self.n_components):
            expected = f"init must be responsibilities ({n}, {self.n_components})"
            raise ShapeError(sentence(type(self).__name__, expected, given.shape))
        if not np.isfinite(given).all() or (given < 0).any() or not (given.sum(axis=1) > 0).all():
            expected = "responsibilities must not be negative, and some must be positive in each row"
            raise DomainError(sentence(type(self).__name__, expected, float(given.min())))
        return given[at] / given[at].sum(axis=1, keepdims=True)

    def _run_em(self, rows: Columns, weight: Any, given: Any) -> FitReport:
        rng, stop = np.random.default_rng(seed_of(self.random_state)), StoppingRule(self.max_iter, self.tol)
        sketch = Sketch.of(rows, weight, whose=type(self).__name__)
        # distinct rows with their weights where the sketch has all: neither order nor copies change a bit
        data = Blocks.of(sketch.rows, sketch.weight) if len(sketch) < sketch.size else Blocks.of(rows, weight)
        starts = self._starts(rows, weight, given, sketch, rng)
        return best_of(starts, lambda _, start: fit(start, data, prior=self.prior, stop=stop))

    def _starts(self, rows: Columns, weight: Any, given: Any, sketch: Sketch, rng: Generator) -> Iterator[Mixture]:
        """The initial model of each run: the best candidate of each, or the one that the user gave."""
        if isinstance(self.init, Mixture):
            yield self._given_start(rows)
            return
        blank = self._blank(sketch.rows)
        if given is not None:
            yield from_responsibilities(blank, rows, weight, given, "weak")
            return
        filled = np.where(np.isnan(sketch.rows["y"]), np.nanmean(sketch.rows["y"], axis=0), sketch.rows["y"])
        for _ in range(1 if self.n_components == 1 else self.n_init):
            how = "random" if self.n_components == 1 else self.init
            with warnings_discarded():
                yield max(
                    (
                        self._tried(blank, sketch, group)
                        for group in partitions(sketch.rows["x"], filled, sketch, self.n_components, rng, how)
                    ),
                    key=lambda model: mean_log_prob(model, Blocks.of(sketch.rows, sketch.weight)),
                )

    def _tried(self, blank: Mixture, sketch: Sketch, group: Any) -> Mixture:
        """A candidate after a few EM iterations on the sketch."""
        start = from_labels(blank, sketch.rows, sketch.weight, group)
        prior = "weak" if self.prior is None else self.prior
        return fit(start, Blocks.of(sketch.rows, sketch.weight), prior=prior, stop=SHORT).model

    def _blank(self, rows: Columns) -> Mixture:
        K = self.n_components
        one = GaussianRegression.blank(rows["y"], rows["x"], FUNCTIONS, K, self.tied_noise)
        return Mixture.trusted(weights=np.full(K, 1.0 / K), components=Conditional.trusted(density=one))

    def _given_start(self, rows: Columns) -> Mixture:
        model, blank = self.init, self._blank(rows)
        inner = getattr(model.components, "density", None)
        shape = blank.components.density.coefficients.shape
        if not isinstance(inner, GaussianRegression) or inner.coefficients.shape != shape or model.members is not None:
            expected = f"init must be a Mixture of Conditional regressions with coefficients {shape}"
            got = getattr(getattr(inner, "coefficients", None), "shape", type(model.components).__name__)
            raise ShapeError(sentence(type(self).__name__, expected, got))
        if inner.tied != self.tied_noise:
            inner = inner.replace(covariance=np.array(inner._covariances if inner.tied else inner.covariance[0]))
        return _with(model, inner.replace(basis=FUNCTIONS))

    def _warn_of(self, report: FitReport) -> None:
        if not report.converged:
            warn(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        if report.empty_components:
            empty = f"{len(report.empty_components)} of {self.n_components} components have no weight"
            warn(f"{type(self).__name__}: {empty}: use fewer components")

    def _adopt(self, report: FitReport) -> None:
        self.report_ = report
        self.stats_, self.prior_ = report.stats, report.prior
        self.n_iter_ = max(report.iterations, 1)
        self.model_ = _with(report.model, report.model.components.density.replace(basis=self.basis_))

    # ------------------------------------------------ what `one_step` asks for

    @property
    def learned_model_(self) -> Mixture:
        """The mixture of regressions on basis functions, as it learns."""
        return _with(self.model_, self._density.replace(basis=FUNCTIONS))

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        """The model and its statistics: more rows change neither levels nor columns."""
        return model, stats

    def prior_rule(self) -> Any:
        """The prior argument of `fit`."""
        return self.prior

    def _named_columns(self) -> Any:
        return self._named()

    # ---------------------------------------------------------------- results

    @property
    def _density(self) -> GaussianRegression:
        return self.model_.components.density

    @property
    def _n_targets(self) -> int:
        return self._density.targets

    @property
    def weights_(self) -> Array:
        """Weights of the components (K,)."""
        return self.model_.weights

    @property
    def coefficients_(self) -> Array:
        """Coefficients of the basis functions of each component: (K, M), or (K, m, M) for several targets."""
        W = self._density.coefficients
        return W[:, 0] if self.one_target_ else W

    @property
    def noise_variance_(self) -> Array:
        """Variance of the noise of each component: (K,), or (K, m) for several targets."""
        found = np.diagonal(self._density._covariances, axis1=-2, axis2=-1)
        return found[:, 0].copy() if self.one_target_ else found.copy()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Expected targets Σ w_k W_k φ(x); with `return_std` also standard deviations.

        Returns
        -------
        mean : ndarray (n,) or (n, m)
            Expected targets.
        std : ndarray (n,) or (n, m)
            Standard deviations of the predictive density, with `return_std`.
        """
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        self._refuse_missing(X)
        means, w = self._density._means(self._design(X)), self.weights_[:, None]  # (n, K, m)
        mean = (w * means).sum(axis=1)
        if not return_std:
            return mean[:, 0] if self.one_target_ else mean
        within = np.diagonal(self._density._covariances, axis1=-2, axis2=-1)
        std = np.sqrt((w * (within + (means - mean[:, None]) ** 2)).sum(axis=1))
        return (mean[:, 0], std[:, 0]) if self.one_target_ else (mean, std)

    def predictive(self, X: Any) -> Mixture:
        """Predictive densities of the targets at rows X: a stack of n mixtures of K Gaussians."""
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        self._refuse_missing(X)
        return self._mixtures_of(self._density._means(self._design(X)), self._density._covariances)

    def _mixtures_of(self, means: Array, covariances: Array) -> Mixture:
        n, K, m = means.shape
        covariance = np.broadcast_to(covariances, (n, K, m, m)).reshape(n * K, m, m)
        components = Gaussian.trusted(mean=means.reshape(n * K, m), covariance=covariance.copy(), kind="full")
        return Mixture.trusted(weights=np.repeat(self.weights_[None], n, axis=0), components=components)

    def _marginals(self, X: Any) -> list[Any]:
        found = self.predictive(X)
        if found.dim == 1:
            return [found]
        parts = [found.components.marginal([j]) for j in range(found.dim)]
        return [Mixture.trusted(weights=found.weights, components=part) for part in parts]

    def log_prob(self, X: Any, y: Any) -> Array:
        """Conditional log-density log p(y | x) of each row, in nats; 0 where no target is observed.

        Parameters
        ----------
        y : array-like (n,) or (n, m)
            Targets; NaN is unobserved.

        Returns
        -------
        ndarray (n,)
            Log-density per row.
        """
        return np.asarray(self.learned_model_.log_prob(self._pairs(X, y)))

    def posterior(self, X: Any, y: Any) -> Array:
        """Responsibilities p(k | x, y) of the components for each row; the weights where y is missing.

        Parameters
        ----------
        y : array-like (n,) or (n, m)
            Targets; NaN is unobserved.

        Returns
        -------
        ndarray (n, K)
            Responsibilities; each row sums to 1.
        """
        return np.asarray(self.learned_model_.posterior(self._pairs(X, y)))

    def sample(self, X: Any, random_state: Any = None) -> Array:
        """One sample of the targets for each row of X, in the shape of the predictions."""
        check_is_fitted(self)
        rng = np.random.default_rng(seed_of(random_state))
        each = self._density.sample(self._checked_rows(X, reset=False), rng)
        chosen = rng.choice(self.n_components, len(each), p=self.weights_)
        found = np.asarray(each[np.arange(len(each)), chosen])
        return found[:, 0] if self.one_target_ else found

    def _pairs(self, X: Any, y: Any) -> Columns:
        check_is_fitted(self)
        X = self._checked_rows(X, reset=False)
        self._refuse_missing(X)
        return Columns(y=self._checked_targets(y, n_rows(X), reset=False), x=self._design(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # -------------------------------------------------------------- description

    def describe(self) -> Description:
        """Weights, coefficients and noise of the components; of an unfitted estimator, its settings."""
        if not hasattr(self, "model_"):
            return super().describe()
        rows, n = self.stats_.total_weight, self.model_.n_parameters
        facts: dict[str, Any] = {"rows": rows, "parameters": n}
        if hasattr(self, "report_") and not self.report_.streaming:
            value = self._log_likelihood
            facts |= {"log-likelihood": value, "AIC": 2 * n - 2 * value, "BIC": n * np.log(rows) - 2 * value}
            how = "converged" if self.report_.converged else "NOT converged"
            facts["convergence"] = f"{how}: {self.report_.reason}"
        kind = "one noise covariance" if self.tied_noise else "a noise covariance each"
        text = [f"a mixture of {counted(self.n_components, 'linear regression')} with {kind}"]
        return Description(type(self).__name__, text, facts, [self._table(j) for j in range(self._n_targets)])

    @property
    def _log_likelihood(self) -> float:
        """log p(y | x) of the rows of training, from the objective without the prior."""
        return float(self.learned_model_.objective(self.stats_))

    def _table(self, j: int) -> DescriptionTable:
        W, noise = self._density.coefficients[:, j], self._density._covariances[:, j, j]
        names = self.function_names_
        cells = [(k, float(self.weights_[k]), *map(float, W[k]), float(np.sqrt(noise[k]))) for k in range(len(W))]
        head = ("component", "weight", *names, "noise sd")
        title = "components" if self.one_target_ else f"components: target {j}"
        return DescriptionTable(title, head, cells, {"weight": ".4f"}, "components")

    def summary(self) -> Description:
        """The description of the fit."""
        check_is_fitted(self)
        return self.describe()

    def check_state(self) -> None:
        """After reading a file: the mixture, its statistics and the basis must fit together."""
        if not whole_state(self):
            return
        model, stats, width = self.model_, self.stats_, self.n_features_in_
        inner: Any = getattr(getattr(model, "components", None), "density", None)
        sound = isinstance(model, Mixture) and isinstance(inner, GaussianRegression) and isinstance(stats, MixtureStats)
        sound = sound and model.members is None and model.size == self.n_components and type(width) is int
        sound = sound and type(self.one_target_) is bool and type(self.is_online_) is bool and type(self.n_iter_) is int
        sound = sound and hasattr(self.basis_, "design")
        sound = sound and self.basis_.n_functions(width) == inner.coefficients.shape[-1]
        sound = sound and (inner.targets == 1 or not self.one_target_)
        try:
            sound = sound and isinstance(self.learned_model_.objective(stats), float)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            expected = "what was learned, statistics and basis must fit together"
            raise DataError(sentence(type(self).__name__, expected, "others"))


def from_labels(blank: Mixture, rows: Columns, weight: Array, group: Any) -> Mixture:
    """Each component fitted to its group of rows, with weak priors: no group is too small for them."""
    stats = blank.components.collect(rows, weight, labels=group)
    components = blank.components.refit(stats, resolve_prior(blank.components, stats, "weak"))
    counts = np.bincount(group, weight, blank.size) + 1.0
    return Mixture.trusted(weights=counts / counts.sum(), components=components)


def _with(model: Mixture, density: GaussianRegression) -> Mixture:
    return Mixture.trusted(weights=model.weights, components=Conditional.trusted(density=density))
