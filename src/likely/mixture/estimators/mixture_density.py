"""Mixture density estimation by the EM algorithm."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Rows, Seed, Targets, n_rows
from likely.core.blocks import Blocks
from likely.core.description import Description, DescriptionTable
from likely.core.em_loop import StoppingRule, best_of, fit
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import FitReport
from likely.core.protocols import PriorLike
from likely.core.row_hashes import row_hashes
from likely.core.sketch import Sketch, joined_rows
from likely.core.warnings import warn
from likely.distributions.categorical.sparse_counts import tallied
from likely.distributions.gaussian.estimator import SHRUNK, GaussianDensity
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.tied import Tied, untied
from likely.estimation.base_estimator import check_is_fitted
from likely.estimation.component import Traits
from likely.estimation.density_estimator import EM, PRIOR, DensityEstimator, a_density
from likely.estimation.fit_blocks import evenly, keeper, own_streams, seed_of
from likely.estimation.parameter_constraints import HasMethods, Interval, StrOptions
from likely.estimation.partial_fit import one_step
from likely.estimation.scikit_learn import clone, get_tags
from likely.estimation.sequence_validation import cut
from likely.metrics.clusterings import adjusted_rand_index
from likely.mixture.estimators.mixture_default_prior import MixturePriorRule
from likely.mixture.initialization import Initialization, from_responsibilities, grouped, grown, weights_from_counts
from likely.mixture.mixture import Mixture
from likely.mixture.reseeding import reseeded

Sketcher = Callable[[], Sketch]

TiedParameters = Literal["covariance", "covariance per class", "all"]
ONE_COVARIANCE = ("covariance", "covariance per class")  # tied covariances of Gaussian components
COMPARED = 2000  # rows of the sketch on which the clusterings of several initializations are compared
FEW = 5  # distinct rows per component from which `partial_fit` continues by single EM steps
SPREADS = ("standard deviation", "correlation")  # parameters that are not a location
RESEEDS = 3  # times that empty components are reseeded


class MixtureDensity(DensityEstimator):
    """Mixture density p(x) = Σ w_k p_k(x), fitted by EM.

    Missing entries (NaN) are integrated out. Each call of `partial_fit` makes one EM step.

    Parameters
    ----------
    component : DensityEstimator, optional
        The estimator of one component, any density: Gaussian (full, diagonal, spherical, pooled), `PPCA`,
        `FactorAnalysis`, categorical, multinomial, Poisson, Bernoulli, products of several kinds, another mixture.
        None: `GaussianDensity()`.
    n_components : int, default 1
        Number of components K.
    tie : {"covariance", "covariance per class", "all"}, optional
        What components share: None; "covariance": one covariance (full, diagonal or spherical, as given) for all
        components, also across the classes or states of several mixtures; "covariance per class": one per mixture;
        "all": the mixtures of several classes or states share all components, only weights differ.
    prior : {"weak"}, float, Prior or None, default "weak"
        "weak" keeps every component regular; None is maximum likelihood; a number α is a symmetric Dirichlet prior of
        the weights, α − 1 pseudo-counts per component (below 1, also below 0: components that explain fewer than 1 − α
        rows are removed), with weak priors for the components; a prior of the weights alone (`Dirichlet`,
        `SparseWeights`) likewise. A component's own number or `Prior` takes precedence. Or a `MixturePrior` for all.
    init : {"k-means++", "random", "split"}, Mixture or array-like, default "k-means++"
        "k-means++", "random" or "split" (starting from one component, the widest is split repeatedly), all on a sketch
        of the rows, so that order, copies and blocks do not matter; a `Mixture`; means (K, d); or responsibilities (n,
        K).
    n_init : int, default 1
        Number of initializations with different seeds; the best objective wins, and `report_` lists all.
    hard : bool, default False
        Hard EM (classification EM): each row belongs to its most probable component.
    early_stopping : float, optional
        Proportion of held-out rows; EM stops when their likelihood no longer improves.
    max_iter : int, default 100
        Largest number of EM iterations.
    tol : float, default 1e-6
        EM has converged when the objective gains less than this per row, in nats.
    random_state : int, Generator or None
        Seed of the initializations.

    Attributes
    ----------
    model_ : Mixture
        The fitted density.

    See Also
    --------
    Mixture : The distribution.
    choose_components : The number of components.
    MixtureClusterer : Clustering by a mixture.

    References
    ----------
    Bishop (2006), chapter 9; Dempster, Laird and Rubin (1977); Ney, lecture notes, 6.1; Herbst and du Preez, lecture
    notes, 7.3.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in (-4.0, 4.0)])
    >>> m = lk.MixtureDensity(lk.GaussianDensity("spherical"), 2, random_state=0).fit(X)
    >>> m.weights_.round(2), m.report_.converged
    (array([0.5, 0.5]), True)
    """

    _default_parts: ClassVar[dict[str, Any]] = {"component": GaussianDensity}
    _parameter_rules: ClassVar[dict[str, Any]] = {
        "component": [a_density("GaussianDensity() in MixtureDensity(GaussianDensity(), n_components=3)"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tie": [StrOptions(set(get_args(TiedParameters))), None],
        "prior": [*PRIOR, Interval(Real, None, None, closed="neither")],
        "init": [StrOptions(set(get_args(Initialization))), HasMethods(["log_prob", "log_joint"]), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "hard": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "early_stopping": [Interval(Real, 0, 1, closed="neither"), None],
        **EM,
    }

    def __init__(
        self, component: DensityEstimator | None = None, n_components: int = 1, *,
        tie: TiedParameters | None = None, prior: PriorLike | float = "weak",
        init: Initialization | Mixture | ArrayLike = "k-means++", n_init: int = 1, max_iter: int = 100,
        tol: float = 1e-6, hard: bool = False, random_state: Seed = None, early_stopping: float | None = None,
    ) -> None:  # fmt: skip
        self.component = component
        self.n_components = n_components
        self.tie = tie
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.hard = hard
        self.random_state = random_state
        self.early_stopping = early_stopping

    saved_attributes = (*DensityEstimator.saved_attributes, "component_", "is_online_")
    model_types = (Mixture,)
    member_noun = "component"

    @property
    def _size(self) -> int:
        """Number of components K."""
        return self.n_components

    # ----------------------------------------------------------------- learning

    def fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None, *, lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit to rows X (n, d); `y` is ignored. `checkpoint` is a file name: an interrupted fit resumes from it.

        Where components are densities of sequences, a row is a sequence: `lengths` cut them out of one long array.
        """
        self._validate_params()
        X = self._cut(X, lengths)
        X, weight = self.checked_rows(X, sample_weight, reset=True, y=y)
        self._refuse_emptiness(X)
        with self._named_columns():
            report = self.run_em(X, weight, checkpoint)
        self._warn_of(report)
        self.is_online_ = False
        self.__dict__.pop("_first_rows", None)
        return self._adopt(report)

    def _warn_of(self, report: FitReport) -> None:
        if not (report.converged or report.stopped_early):
            warn(f"{type(self).__name__}: not converged: {report.reason}; raise max_iter, or tol")
        if report.empty_components and not self._prior_removes_components:
            empty = f"{len(report.empty_components)} of {report.model.weights.size} components have no weight"
            warn(f"{type(self).__name__}: {empty}: use fewer components")

    @property
    def _prior_removes_components(self) -> bool:
        """True if the prior removes components on purpose."""
        weights = getattr(self.prior, "weights", self.prior)
        alpha = weights if isinstance(weights, Real) else getattr(weights, "alpha", 1.0)
        return bool(np.any(np.asarray(alpha) < 1))

    def _refuse_emptiness(self, X: Any) -> None:
        if not n_rows(X):
            raise DataError(sentence(type(self).__name__, "at least one row with weight is needed", "none"))

    def run_em(self, X: Any, weight: Any, checkpoint: Any = None) -> FitReport:
        rng = np.random.default_rng(seed_of(self.random_state))
        X, weight, aside = self._set_aside(X, weight)
        # a given initialization may do without
        sketch = cache(lambda: Sketch.of(X, weight, whose=type(self.component_).__name__))
        blank = self._blank_of_sketch(X, weight, sketch)

        prior = self.prior_rule()

        def learn(i: int, start: Mixture) -> FitReport:
            return self._em_from_initialization(
                start, X, weight, aside, sketch, prior, keeper(checkpoint, i, self.n_init)
            )

        def agree(models: list[Mixture], best: int) -> float:
            some = sketch().rows[: min(COMPARED, len(sketch()))]
            own = [m.log_joint(some).argmax(axis=1) for m in models]
            w = sketch().weight[: len(own[0])]
            return float(np.mean([adjusted_rand_index(own[best], o, w) for i, o in enumerate(own) if i != best]))

        return best_of(self._starts(blank, X, weight, sketch, rng), learn, agree)

    def _em_from_initialization(
        self, start: Mixture, X: Any, weight: Any, aside: Any, sketch: Sketcher, prior: Any, keeper: Any
    ) -> FitReport:
        """EM from one initialization; empty components are reseeded as long as that improves the objective."""
        stop, data = StoppingRule(self.max_iter, self.tol), evenly(tallied(X), weight)
        how = {"prior": prior, "stop": stop, "hard": self.hard, "held_out": aside}
        report = fit(start, data, checkpoint=keeper, **how)
        for _ in range(RESEEDS):
            if not report.empty_components or self._prior_removes_components or len(sketch()) <= self._size:
                break
            model = reseeded(report.model, sketch(), report.prior)
            better = fit(model, data, **how)
            if not better.objective > report.objective:
                break
            report = replace(better, reseeded=report.reseeded + len(report.empty_components))
        return report

    def _set_aside(self, X: Any, weight: Any) -> tuple[Any, Any, Any]:
        """Training rows and held-out rows for early stopping, chosen by content: copies stay together."""
        if self.early_stopping is None:
            return X, weight, None
        out = row_hashes(X) < np.uint64(self.early_stopping * 2.0**64)
        if out.all() or not out.any():
            expected = "early_stopping must leave rows on both sides"
            raise DataError(sentence(type(self).__name__, expected, f"{int(out.sum())} of {len(out)} held out"))
        w = (None, None) if weight is None else (weight[~out], weight[out])
        return X[np.flatnonzero(~out)], w[0], Blocks.of(X[np.flatnonzero(out)], w[1])

    # ------------------------------------------------------------------- starts

    def _starts(self, blank: Mixture, X: Any, weight: Any, sketch: Sketcher, rng: Generator) -> Any:
        """The initial model of each run; an initialization given by the user is used once."""
        if not isinstance(self.init, str):
            yield self._given_start(blank, X, weight, self._start_prior())
        elif self.init == "split" and not self.component_.traits.latent:  # deterministic: one run is enough
            yield grown(blank, sketch(), self._start_prior())
        else:
            for _ in range(self.n_init):
                group = grouped(blank.components, sketch(), self._size, rng, self.init)
                yield self._from_groups(blank, sketch().rows, sketch().weight, group, rng)

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Latent, and otherwise as the components."""
        component: Any = getattr(self, "component_", self.component)
        return Traits(latent=True) if component is None else replace(component.traits, latent=True, second_pass=False)

    def _initial_model(self, X: Any, weight: Any) -> Mixture:
        rng = np.random.default_rng(seed_of(self.random_state))
        sketch = cache(lambda: Sketch.of(X, weight, whose=type(self.component_).__name__))
        return next(iter(self._starts(self._blank_of_sketch(X, weight, sketch), X, weight, sketch, rng)))

    def _blank_of_sketch(self, X: Any, weight: Any, sketch: Sketcher) -> Mixture:
        """A blank model of the sketch, so that neither order nor copies matter; of all rows where that is required."""
        if self.traits.sketchable and not isinstance(self.init, Mixture):
            return self.blank_model(sketch().rows, None, sketch().weight)
        return self.blank_model(X, None, weight)

    def _from_groups(self, blank: Mixture, rows: Any, weight: Any, group: Index, rng: Generator) -> Mixture:
        """A mixture whose components are fitted to one cluster each; components that are mixtures cluster again."""
        components = self.component_.initialize(blank.components, rows, group, weight, rng)
        return Mixture.trusted(
            weights=weights_from_counts(blank, np.bincount(group, weight, blank.weights.size).astype(np.float64)),
            components=components,
        )

    def _given_start(self, blank: Mixture, X: Any, weight: Any, rule: Any) -> Mixture:
        start = self.init
        if isinstance(start, Mixture):
            if start.weights.shape != blank.weights.shape or start.dim != blank.dim:
                expected = f"init must be a Mixture of {self._size} components for {blank.dim} columns"
                raise ShapeError(sentence(type(self).__name__, expected, f"{start.size} of {start.dim} columns"))
            return start
        given = np.asarray(start, dtype=np.float64)
        K, d = self._size, blank.dim
        if not np.isfinite(given).all():
            raise DomainError(sentence(type(self).__name__, "init must be finite numbers", "NaN or infinity"))
        if given.shape == (K, d) and isinstance(blank.components, Gaussian):
            return Mixture.trusted(weights=blank.weights, components=blank.components.replace(mean=given))
        if given.shape == (n_rows(X), K):
            if (given < 0).any() or not (given.sum(axis=1) > 0).all():
                expected = "responsibilities must not be negative, and some must be positive in each row"
                raise DomainError(sentence(type(self).__name__, expected, float(given.min())))
            return from_responsibilities(blank, X, weight, given / given.sum(axis=1, keepdims=True), rule)
        expected = f"init must be means ({K}, {d}) of Gaussians, or responsibilities ({n_rows(X)}, {K})"
        raise ShapeError(sentence(type(self).__name__, expected, given.shape))

    def _start_prior(self) -> Any:
        """Weak priors for initial components, also where `prior` is None: no cluster is too small for them."""
        component = copy(self.component_)
        if component.prior is None:
            component.prior = "weak"
        return MixturePriorRule(component, "weak" if self.prior is None else self.prior)

    # ---------------------------------------------------------------- streaming

    def partial_fit(
        self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None, *,
        lengths: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """One EM step with more rows. Until there are five distinct rows per component, all are fitted as by `fit`.

        After `fit`, statistics simply add. In a stream from the beginning, statistics of early models are down-weighted
        (stochastic approximation, Robbins–Monro steps): each row counts less the more came after it.
        """
        self._validate_params()
        X = self._cut(X, lengths)
        first = not hasattr(self, "model_")
        X, weight = self.checked_rows(X, sample_weight, reset=first, y=y)
        self._refuse_emptiness(X)
        if first or hasattr(self, "_first_rows"):
            return self._begin_stream(X, weight, first)
        return self._adopt(one_step(self, X, weight))

    def _begin_stream(self, X: Any, weight: Any, first: bool) -> Self:
        """Fit again to all rows so far, as long as they are too few for stepwise EM."""
        so_far = Sketch.of(X, weight, whose=type(self.component_).__name__)
        so_far = so_far if first else self.__dict__["_first_rows"] + so_far
        data = (X, weight) if first else (so_far.rows, so_far.weight)
        with self._named_columns():
            self._adopt(self.run_em(*data))
        self.is_online_ = True
        self.__dict__.pop("_first_rows", None)
        if len(so_far) < FEW * self._size:
            self._first_rows = so_far
        return self

    def score_samples(self, X: Rows, lengths: ArrayLike | None = None) -> Any:
        """Log-density log p(x) of each row (n,)."""
        return super().score_samples(self._cut(X, lengths))

    def score(self, X: Rows, y: Targets | None = None, lengths: ArrayLike | None = None) -> float:
        """Mean log p(x) per row; `y` is ignored."""
        return super().score(self._cut(X, lengths), y)

    def _cut(self, X: Any, lengths: Any) -> Any:
        return X if lengths is None else cut(X, lengths, type(self).__name__, self.traits.sequences)

    def sample(self, n_samples: int = 1, random_state: Seed = None, length: Any = None) -> Any:
        """Rows drawn from the fitted density; of sequences without a final state, `length` gives their length."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        rows = (
            self.model_.sample(n_samples, rng) if length is None else self.model_.sample(n_samples, rng, length=length)
        )
        return self.decode_rows(rows)

    # --------------------------------------------------------- component estimators

    def decode_rows(self, rows: Any, like: Any = None) -> Any:
        return self.component_.decode_rows(rows, like)

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        if reset:
            self.component_ = GaussianDensity() if self.component is None else clone(self.component)
            self.component_._validate_params()
        self.component_.column_titles, self.component_.strict_support = self.column_titles, self.strict_support
        X = self.component_.validate_rows(X, reset)
        if reset:
            self.n_features_in_ = self.component_.n_features_in_
            self.__dict__.pop("feature_names_in_", None)
            if hasattr(self.component_, "feature_names_in_"):
                self.feature_names_in_ = self.component_.feature_names_in_
        return X

    def blank_model(self, X: Any, members: int | None = None, weight: Any = None) -> Mixture:
        K, C = self._size, members
        if C is None:
            return Mixture.trusted(weights=np.full(K, 1.0 / K), components=self._untied_components(X, K, weight))
        return Mixture.trusted(weights=np.full((C, K), 1.0 / K), components=self._tied(X, C, K, weight))

    def _untied_components(self, X: Any, size: int, weight: Any) -> Any:
        """Components of one mixture, or of several that share none; with one tied covariance if `tie` says so."""
        components = self.component_.blank_model(X, size, weight)
        if self.tie in ONE_COVARIANCE and not isinstance(components, Gaussian):
            got = type(self.component_).__name__
            raise DomainError(sentence(type(self).__name__, f'tie="{self.tie}" needs Gaussian components', got))
        if self.tie not in ONE_COVARIANCE:
            return components
        if getattr(self.component_, "covariance", None) in SHRUNK:
            got = f"GaussianDensity({self.component_.covariance!r})"
            expected = f'tie="{self.tie}" is redundant for these: components must be "full", "diagonal" or "spherical"'
            raise DomainError(sentence(type(self).__name__, expected, got))
        return Gaussian.blank(X[:4096], kind=components.kind, members=size, tied=True)

    def _tied(self, X: Any, C: int, K: int, weight: Any) -> Any:
        """The components of C mixtures, tied as `tie` says."""
        if self.tie == "all":
            return Tied(self.component_.blank_model(X, K, weight), np.tile(np.arange(K), C))
        components = self._untied_components(X, C * K, weight)
        if self.tie == "covariance" or not (isinstance(components, Gaussian) and components.tied):
            return components
        untied = Gaussian.blank(X[:4096], kind=components.kind, members=C * K)
        return Tied(untied, np.repeat(np.arange(C), K), "covariance")

    def prior_rule(self) -> Any:
        return MixturePriorRule(self.component_, self.prior)

    def scoring_model(self, model: Any, stats: Any, prior: Any, rows: Any = None, choose: bool = True) -> Any:
        of_parts = None if prior is None else prior.components
        if isinstance(model.components, Tied):
            components = self._finish_shared(model.components, stats.components, of_parts)
        else:
            components = self.component_.scoring_model(model.components, stats.components, of_parts)
        if components is model.components:
            return model
        return Mixture.trusted(weights=model.weights, components=components)

    def _finish_shared(self, shared: Tied, stats: Any, prior: Any) -> Tied:
        if shared.what == "all":
            inner = self.component_.scoring_model(shared.components, stats, prior)
            return shared if inner is shared.components else shared.replace(components=inner)
        if (
            getattr(self.component_, "predictive", None) is not None
            or getattr(self.component_, "noise", None) is not None
        ):
            expected = "predictive and noise do not go with covariances pooled within a class's mixture"
            raise DomainError(sentence(type(self).__name__, expected, remedy='use tie="covariance" or "full"'))
        return shared

    def extend_model(self, model: Any, stats: Any, X: Any) -> tuple[Any, Any]:
        inner = untied(model.components)
        components, of_parts = self.component_.extend_model(inner, stats.components, X)
        components = components if inner is model.components else model.components.replace(components=components)
        return model.replace(components=components), stats.replace(components=of_parts)

    def mask_unknown(self, X: Any, model: Any) -> tuple[Any, dict[str, Any]]:
        return self.component_.mask_unknown(X, untied(model.components))

    def column_names(self) -> list[str]:
        return self.component_.column_names()

    def initialize(self, blank: Any, X: Any, labels: Any, weight: Any, rng: Any, run: int = 0) -> Mixture:
        """Initial mixtures of a stack, one per label: the rows of each label are clustered."""
        if labels is None:
            return self._initial_model(X, weight)
        if self.early_stopping is not None:
            expected = "early_stopping is available for a single mixture, not in a classifier or inside another mixture"
            raise DomainError(sentence(type(self).__name__, expected, self.early_stopping))
        if not isinstance(self.init, str):
            expected = f"in a classifier, or inside another mixture, init must be one of {get_args(Initialization)}"
            raise DomainError(sentence(type(self).__name__, expected, type(self.init).__name__))
        if self.tie == "all":
            return self._started_together(blank, X, labels, weight, rng)
        each = (np.flatnonzero(labels == c) for c in range(len(blank.weights)))
        sketches = [Sketch.of(X[own_rows], None if weight is None else weight[own_rows]) for own_rows in each]
        streams = own_streams(rng, [sketch.hashes for sketch in sketches])
        groups = [
            c * self._size + grouped(blank.components, sketch, self._size, stream, self.init)
            for c, (sketch, stream) in enumerate(zip(sketches, streams, strict=True))
            if len(sketch)
        ]
        if not groups:
            raise DataError(sentence(type(self).__name__, "at least one row with weight is needed", "none"))
        return self._from_groups(blank, *joined_rows([s for s in sketches if len(s)]), np.concatenate(groups), rng)

    def _started_together(self, blank: Mixture, X: Any, labels: Index, weight: Any, rng: Generator) -> Mixture:
        """Shared components are initialized from all rows; the weights of each class from its own rows."""
        labeled, K = np.flatnonzero(labels >= 0), self._size
        w = np.ones(len(labeled)) if weight is None else np.asarray(weight)[labeled]
        sketch = Sketch.of(X[labeled], w)
        one = Mixture.trusted(weights=np.full(K, 1.0 / K), components=blank.components.components)
        group = grouped(one.components, sketch, K, rng, str(self.init))
        started = self._from_groups(one, sketch.rows, sketch.weight, group, rng)
        resp = started.posterior(X[labeled]) * w[:, None]
        counts = np.zeros(blank.weights.shape)
        np.add.at(counts, labels[labeled], resp)
        return Mixture.trusted(
            weights=weights_from_counts(blank, counts),
            components=blank.components.replace(components=started.components),
        )

    def accepts_model(self, model: Any, width: Any, members: int | None = None) -> bool:
        component = getattr(self, "component_", None)
        if not (isinstance(model, Mixture) and isinstance(component, DensityEstimator) and model.members == members):
            return False
        if getattr(component, "n_features_in_", None) != width:  # it validates the rows
            return False
        components = model.components
        if members is not None and isinstance(components, Tied):
            return component.accepts_model(components.components, width, components.components.members)
        return component.accepts_model(components, width, model.weights.size)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(GaussianDensity() if self.component is None else self.component).input_tags
        tags.input_tags.positive_only, tags.input_tags.categorical = inner.positive_only, inner.categorical
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags

    # -------------------------------------------------------------------- in use

    def describe(self, level: float = 0.95) -> Description:
        """The density, and the weight and location of each component."""
        found = super().describe(level)
        if not hasattr(self, "model_"):
            return found
        from likely.estimation.density_description import kind_words

        model, rows = self.learned_model_, found["parameters"].rows
        middles = [_location(rows, k) for k in range(model.size)]
        names = list(middles[0])
        cells = [(k, w, *(middles[k].get(n) for n in names)) for k, w in enumerate(model.weights.tolist())]
        formats = {**dict.fromkeys(names, ".4g"), "weight": ".4f"}
        table = DescriptionTable("components", ("component", "weight", *names), cells, formats, "components")
        text = f"a mixture of {model.size} components: {kind_words(untied(model.components))}"
        return replace(found, text=[text], tables=[table, *found.tables])

    @property
    def weights_(self) -> Array:
        """Weights of the components (K,)."""
        return self.model_.weights


def _location(rows: Any, k: int) -> dict[str, float]:
    """Means, rates or probabilities of component k, by the names of columns."""
    own = [row for row in rows if row.column.startswith(f"{k}: ") and row.parameter not in SPREADS]
    named = ((row.column.removeprefix(f"{k}: "), row) for row in own)
    return {name if row.parameter == "mean" else f"{name} {row.parameter}": row.estimate for name, row in named}
