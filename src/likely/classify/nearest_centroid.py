"""NearestCentroidClassifier: classification by the nearest class mean or median, with probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.classify.numeric_classifier_mixin import NumericClassifierMixin
from likely.classify.numeric_rows import plain_rows, row_weights, sound_rules
from likely.core.arrays import Array, Index, Mask, Rows, Targets
from likely.core.blocks import Blocks
from likely.core.description import Description, DescriptionTable
from likely.core.em_loop import StoppingRule, fit, gather
from likely.core.engine import Threads, map_rows, one_blas_thread
from likely.core.errors import DataError, sentence
from likely.core.sketch import Sketch
from likely.core.warnings import warn, warnings_discarded, warnings_renamed
from likely.decision.cost import CostLike
from likely.distributions.downdating import Canceled, without
from likely.distributions.gaussian.covariance_types import CovarianceKind
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_values_em import any_missing, warn_of_expected
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted, is_fitted, whole_state
from likely.estimation.class_labels import checked_labels, encoded, labels_among, warn_of_labels
from likely.estimation.decision_mixin import NOVELTY, RULES, UNIFORM, ClassPriorLike
from likely.estimation.novelty.novelty_score import alarm, exceeds
from likely.estimation.novelty.novelty_threshold import folds
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.neighbors.centroid_distances import Prototypes, laplace_rate, softmax_rate, weighted_medians
from likely.neighbors.distances import Metric, MetricName, PlainMetric, metric_words, plain_name

Centroid = Literal["mean", "median"]  # of each column
# metrics equivalent to Gaussians
KINDS: dict[str, CovarianceKind] = {"l2": "spherical", "scaled": "diagonal", "mahalanobis": "full"}


class NearestCentroidClassifier(NumericClassifierMixin, BaseEstimator):
    """Nearest-centroid classifier: argmin d(x, μ_c)   (Ney 2.5).

    Most metrics correspond to a density with estimated scale: l2 to Gaussians with one variance, scaled to one
    variance per column, mahalanobis to one covariance, l1 to Laplace distributions of one scale. These give
    posteriors, and missing entries (NaN) are integrated out. linf, lp and correlation use a softmax of −distance /
    temperature, with the maximum-likelihood temperature of the training labels; there a row with missing values is
    compared over its observed columns, and correlation needs complete rows.

    `partial_fit` adds statistics: means and variances exactly, except the covariance of mahalanobis with missing values
    (these are imputed by the model so far, with a warning). Medians, the scale of l1 and temperatures come
    from the same sketch in batches and streams, up to 10,000 distinct rows of smallest hash (`sample_`).

    Parameters
    ----------
    metric : {"l2", "scaled", "mahalanobis", "l1", "linf", "lp", "correlation"}
        The distance: "scaled" (columns over their standard deviation within classes), "mahalanobis" (covariance within
        classes), "lp" with the exponent `p`, "correlation" (1 − r of row and centroid).
    centroid : {"mean", "median"}
        Mean or median of each column.
    p : float
        Exponent of the metric "lp".
    class_prior : "uniform", array-like (C,) or dict, optional
        "uniform", so that only distances matter; None: relative frequencies; numbers, or a dict by label.
    novelty : float, optional
        A false-alarm rate: a row is novel if it is farther from its nearest centroid than all but that share of
        training rows (cross-validated).

    Attributes
    ----------
    centers_ : ndarray (C, d)
        Centroid of each class.
    covariance_ : ndarray (), (d,) or (d, d)
        Variance of all columns, variance per column, or covariance, within classes.
    rate_ : float
        Factor of the distance in log p(x | c), for metrics without a Gaussian; else 1.
    sample_ : ndarray (m, d + 1)
        Training rows that are kept, the class as last column.
    sample_weight_ : ndarray (m,)
        Weight of each of them.

    Examples
    --------
    >>> import likely as lk
    >>> X = [[0.0, 0.0], [0.0, 2.0], [6.0, 6.0], [8.0, 6.0]]
    >>> m = lk.NearestCentroidClassifier("l1").fit(X, ["a", "a", "b", "b"])
    >>> m.centers_.tolist(), m.predict([[1.0, 3.0]]).tolist()
    ([[0.0, 1.0], [7.0, 6.0]], ['a'])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "metric": [StrOptions(set(get_args(MetricName)))],
        "centroid": [StrOptions(set(get_args(Centroid)))],
        "p": [Interval(Real, 1, 64, closed="both")],
        "class_prior": [UNIFORM, "array-like", dict, None],
        **RULES, **NOVELTY,
    }  # fmt: skip
    _keeps_rows = True
    saved_attributes: tuple[str, ...] = (
        "centers_", "covariance_", "rate_", "sample_", "sample_weight_", "stats_", "classes_",
        "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, metric: MetricName = "l2", centroid: Centroid = "mean", *, p: float = 3.0,
        class_prior: ClassPriorLike = "uniform", cost: CostLike | None = None, reject_cost: float | None = None,
        reject_below: float | None = None, novelty: float | None = None,
    ) -> None:  # fmt: skip
        self.metric = metric
        self.centroid = centroid
        self.p = p
        self.class_prior = class_prior
        self.cost = cost
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.novelty = novelty

    # ----------------------------------------------------------------- learning

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Fit centroids and scales to rows X (n, d) with labels y (n,)."""
        x, targets, w = self._checked(X, y, sample_weight, reset=True)
        self.classes_, labels = encoded(targets)
        warn_of_labels(self.classes_, labels, type(self).__name__)
        blank = self._blank(x)
        with self._in_own_name():
            report = fit(blank, Blocks.of(x, w, labels=labels), prior="weak", stop=StoppingRule(100, 1e-6))
        if self._named == "mahalanobis" and any_missing(x):
            warn_of_expected(report, type(self).__name__)
        self._adopt(report.model, report.stats, Sketch.of(_with_class_column(x, labels), w))
        self._warn_of_novelty()
        return self

    def partial_fit(
        self, X: Rows, y: Targets, classes: Sequence[object] | NDArray[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Update with more rows: statistics are added. The first call may name all `classes`."""
        first = not hasattr(self, "stats_")
        x, targets, w = self._checked(X, y, sample_weight, reset=first)
        if first:
            named = targets if classes is None else checked_labels(classes, len(classes), type(self).__name__)
            self.classes_ = encoded(named)[0]
        labels = labels_among(targets, self.classes_, type(self).__name__)
        warn_of_labels(self.classes_, labels, type(self).__name__)
        distribution = self._blank(x) if first else self.learned_model_
        stats = Threads().total(lambda block: gather(distribution, block), Blocks.of(x, w, labels=labels))
        sketch = Sketch.of(_with_class_column(x, labels), w)
        if not first:
            stats, sketch = self.stats_ + stats, Sketch.of(self.sample_, self.sample_weight_) + sketch
        if self._named == "mahalanobis" and np.isnan(x).any():
            text = "a stream imputes missing values by the model so far, so that covariances are approximate"
            warn(f"{type(self).__name__}: {text}; fit all rows at once, or use metric='scaled'")
        with self._in_own_name():
            distribution = distribution.refit(stats, distribution.weak_prior(stats))
        return self._adopt(distribution, stats, sketch)

    def _in_own_name(self) -> Any:
        """Context manager: messages of the inner Gaussians are reported in the name of the classifier."""
        return warnings_renamed(type(self).__name__, "Gaussian")

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Array, Any, Array]:
        self._validate_params()
        if y is None:
            checked_labels(y, 0, type(self).__name__)
        x = plain_rows(self, X, reset=reset)
        labels = checked_labels(y, len(x), type(self).__name__)
        w = row_weights(self, sample_weight, x)
        if self._named == "correlation":
            Metric("correlation").prepare(x, type(self).__name__)
        here = w > 0
        return x[here], labels[here], w[here]

    def _blank(self, x: Array) -> Gaussian:
        return Gaussian.blank(x, kind=KINDS.get(self._named, "diagonal"), members=len(self.classes_), tied=True)

    def _adopt(self, distribution: Gaussian, stats: Any, sketch: Sketch) -> Self:
        self.stats_ = stats
        self.sample_, self.sample_weight_ = np.array(sketch.rows), np.array(sketch.weight)
        x, labels, w = self.sample_[:, :-1], self.sample_[:, -1].astype(np.intp), self.sample_weight_
        self.centers_, self.covariance_ = self._means(), np.array(distribution.covariance)
        fallback = distribution.mean  # a class, or a column of it, without observed values
        self.centers_ = np.where(np.isfinite(self.centers_), self.centers_, fallback)
        if self.centroid == "median":
            middle = weighted_medians(x, labels, w, len(self.classes_))
            middle = np.where(np.isnan(middle), self.centers_, middle)
            self.covariance_ = _scatter_about(self.covariance_, middle - self.centers_, self.class_count_)
            self.centers_ = middle
        self.rate_ = self._rate(x, labels, w)
        self.__dict__.pop("_usual", None)
        self._check_priors()
        return self

    @property
    def learned_model_(self) -> Gaussian:
        """The distribution that collects more rows; it imputes missing values."""
        means = self._means()
        return self._distribution_of(np.where(np.isnan(means), self.centers_, means), self.covariance_)

    def _means(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.array(self.stats_.mean)
        seen = np.broadcast_to(np.asarray(self.stats_.weight).reshape(len(means), -1) > 0, means.shape)
        return np.where(seen, means, np.nan)

    def _rate(self, x: Array, labels: Index, w: Array) -> float:
        """The rate of the distance, for metrics without a Gaussian."""
        if self._named in KINDS:
            return 1.0
        away = self._prototypes(1.0).distances(x)
        if self._named == "l1":
            return laplace_rate(away, labels, w, (~np.isnan(x)).sum(axis=1).astype(np.float64), x.shape[1])
        with np.errstate(divide="ignore"):
            return softmax_rate(away, labels, w, np.log(self.class_prior_))

    # ----------------------------------------------------------------------- prediction

    def _log_joint(self, rows: Array) -> Array:
        with np.errstate(divide="ignore"):
            prior = np.log(self.class_prior_)

        def evaluate(block: Any) -> Array:
            logs = self._scores(block) + prior
            logs = np.where(
                np.isneginf(logs).all(axis=1, keepdims=True), prior, logs
            )  # so far that all distances are equal
            logs = logs - logs.max(axis=1, keepdims=True)
            out: Array = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
            return out

        return np.asarray(map_rows(evaluate, rows, len(self.classes_)))

    def distances(self, X: Rows) -> Array:
        """Distance d(x, μ_c) of each row to the centroid of each class.

        Returns
        -------
        ndarray (n, C)
            Distances, in the order of `classes_`.
        """
        check_is_fitted(self)
        return self._prototypes(self.rate_).distances(plain_rows(self, X, reset=False))

    @property
    def distribution_(self) -> Gaussian | Prototypes:
        """The scoring distribution: a `Gaussian` stack with a shared covariance, or `Prototypes`."""
        check_is_fitted(self)
        return (
            self._distribution_of(self.centers_, self.covariance_)
            if self._named in KINDS
            else self._prototypes(self.rate_)
        )

    @property
    def class_count_(self) -> Array:
        """Weight of each class in training (C,)."""
        seen = np.asarray(getattr(self.stats_, "rows", self.stats_.weight))
        return seen if seen.ndim == 1 else seen.max(axis=1)

    @property
    def class_prior_(self) -> Array:
        """Class probabilities (C,)."""
        if self.class_prior is not None:
            return self._prior_for(self.class_prior)
        counts = np.maximum(self.class_count_, 1e-3 * self.class_count_.sum() / len(self.classes_))
        return counts / counts.sum()

    # ------------------------------------------------------------------- inside

    @property
    def _named(self) -> PlainMetric:
        """The canonical name of the metric: "euclidean" means l2, and so on."""
        return plain_name(self.metric)

    def _distribution_of(self, centers: Array, spread: Array) -> Gaussian:
        kind = KINDS.get(self._named, "diagonal")
        return Gaussian.trusted(mean=np.array(centers), covariance=np.array(spread), kind=kind)

    def _metric(self) -> Metric:
        if self._named == "scaled":
            return Metric("scaled", scale=np.sqrt(self.covariance_))
        return Metric(self._named, self.p, self.covariance_ if self._named == "mahalanobis" else None)

    def _prototypes(self, rate: float) -> Prototypes:
        return Prototypes.trusted(metric=self._metric(), centers=self.centers_, rate=rate)

    def _scores(self, x: Array) -> Array:
        if self._named in KINDS:
            return np.asarray(self._distribution_of(self.centers_, self.covariance_).log_prob(x), dtype=np.float64)
        return self._prototypes(self.rate_).scores(x)

    def _novel(self, X: Any, rate: float) -> tuple[Mask, Any]:
        limit = alarm(self.held_out_novelty_scores(), rate, type(self).__name__)
        away = self._prototypes(self.rate_).distances(plain_rows(self, X, reset=False)).min(axis=1)
        text = f"its nearest centroid is {{:.3g}} away, beyond {limit:.3g} of all but {100 * rate:g} % of training rows"
        return exceeds(away, limit), lambda i: text.format(away[i])

    def held_out_novelty_scores(self) -> Array:
        """Distance of each row of the sample to the nearest center, by what the other rows would have taught, and the
        rows' weights (2, m)."""
        if "_usual" not in self.__dict__:
            fold, usual = folds(self.sample_), np.empty(len(self.sample_))
            with warnings_discarded(), one_blas_thread():  # warnings of a fold need not hold for all rows
                for f in np.unique(fold):
                    here = fold == f
                    usual[here] = self._without(here)._prototypes(1.0).distances(self.sample_[here, :-1]).min(axis=1)
            self._usual = usual
        return np.stack([self._usual, self.sample_weight_])

    def _without(self, some: Mask) -> Self:
        """The fit without some rows of the sketch, by subtraction of statistics."""
        rest, distribution, other = ~some, self.learned_model_, copy(self)
        try:
            stats = without(self.stats_, self._collected(distribution, some))
        except Canceled:
            stats = self._collected(distribution, rest)
        if not (rest.any() and stats.total_weight > 0):
            return self
        distribution = distribution.refit(stats, distribution.weak_prior(stats))
        return other._adopt(distribution, stats, Sketch.of(self.sample_[rest], self.sample_weight_[rest]))

    def _collected(self, distribution: Gaussian, some: Mask) -> Any:
        labels = self.sample_[some, -1].astype(np.intp)
        return distribution.collect(self.sample_[some, :-1], self.sample_weight_[some], labels)

    def _compares(self) -> list[str]:
        distance = metric_words(self.metric, self.p)
        return [f"It compares with the {self.centroid} of each class", f"distance: {distance}"]

    def describe(self) -> Description:
        """Classes, centers, distance, and the decision rule; of an unfitted classifier, its settings."""
        if not is_fitted(self):
            return super().describe()
        rows = [(str(label), *center) for label, center in zip(self.classes_, self.centers_.tolist(), strict=True)]
        names = self.column_names()
        table = DescriptionTable("centers", ("class", *names), rows, dict.fromkeys(names, ".4g"), "classes")
        return super().describe().plus(tables=[table])

    def check_state(self) -> None:
        """After loading a file: the fitted attributes must be consistent."""
        if not (sound_rules(self) and self.centroid in get_args(Centroid)):
            raise DataError(sentence(type(self).__name__, "parameters must be valid"))
        if not whole_state(self):
            return
        labels, d = self.classes_, self.n_features_in_
        C = len(labels) if isinstance(labels, np.ndarray) and labels.ndim == 1 and type(d) is int else 0
        shape = {"spherical": (), "diagonal": (d,), "full": (d, d)}[KINDS.get(self._named, "diagonal")]
        arrays = (self.centers_, self.covariance_, self.sample_, self.sample_weight_)
        sound = isinstance(self.stats_, ColumnMoments | Moments)
        sound = sound and all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in arrays) and C > 0 and d > 0
        sound = sound and self.centers_.shape == (C, d) and self.covariance_.shape == shape and len(self.sample_) > 0
        sound = sound and self.sample_.shape == (len(self.sample_weight_), d + 1) and type(self.rate_) is float
        sound = sound and bool(np.isfinite(self.centers_).all() and 0 < self.rate_ < np.inf)
        sound = sound and bool((self.sample_weight_ > 0).all() and np.isin(self.sample_[:, -1], np.arange(C)).all())
        sound = sound and not np.isinf(self.sample_).any() and len(np.atleast_1d(self.stats_.weight)) == C
        sound = sound and bool(np.isfinite(self.covariance_).all() and 0 < np.sum(self.stats_.total_weight) < np.inf)
        if not sound:
            raise DataError(sentence(type(self).__name__, "the fitted attributes must be consistent"))
        if self._named in KINDS:
            Gaussian(self.centers_, self.covariance_, KINDS[self._named])
        self._metric()
        self._check_priors()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._named != "correlation"
        return tags


def _with_class_column(x: Array, labels: Index) -> Array:
    """Rows with their class as one more column, for the sketch."""
    return np.concatenate([x, labels[:, None].astype(np.float64)], axis=1)


def _scatter_about(spread: Array, moved: Array, counts: Array) -> Array:
    """The variance about shifted centroids: the second moment plus the squared shift."""
    share = counts / counts.sum()
    if spread.ndim == 2:
        return np.asarray(spread + (share[:, None] * moved).T @ moved)
    squares = share @ moved**2
    return np.asarray(spread + (squares if spread.ndim == 1 else squares.mean()))
