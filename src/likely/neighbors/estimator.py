"""KNeighborsRegressor: k-nearest-neighbor regression with a local Gaussian predictive density."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows, Targets, refuse_infinite
from likely.core.description import Description
from likely.core.errors import DataError, DomainError, sentence
from likely.decision.point_estimates import point_estimate
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_values_em import any_missing
from likely.estimation.base_estimator import (
    BaseEstimator,
    RegressorMixin,
    check_is_fitted,
    whole_or_nothing,
    whole_state,
)
from likely.estimation.foreign_tables import equal_rows
from likely.estimation.input_validation import numeric_rows, row_weights
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.neighbors.distances import METRICS, Metric, MetricName, metric_words, plain_name
from likely.neighbors.nearest_neighbors import NeighborSearch

CHOICES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 45, 70, 100)  # candidates of "leave-one-out"
POOLED = (0.5, 2.0, 8.0, 32.0, 128.0, np.inf)  # rows that the pooled variance may count beside the neighbors
LEFT_OUT = 10_000  # rows that are left out in turn, at most: evenly spaced over all
LEAST = 1e-14  # smallest variance, as a share of that of all targets


class KNeighborsRegressor(RegressorMixin, BaseEstimator):
    """Nearest-neighbor regression: the mean of the targets of the k nearest rows   (Bishop 2.5.2, Hastie et al. 2.3).

    Rows that are equal in X are one neighbor, whose target is their weighted mean: a row and its copies are left out
    together. The predictive density is a local Gaussian. Its variance lies between the variance v(x) of the neighbors'
    targets and s², the mean squared leave-one-out error: (m s² + k (1 + 1/k) v(x)) / (m + k), with the m of largest
    leave-one-out log density (m = ∞: one variance for all rows).

    Parameters
    ----------
    n_neighbors : int, "leave-one-out" or array-like of int
        The number k; "leave-one-out" takes the k of 1, 2, … 100 (or of the given numbers) with the least mean squared
        error.
    metric : str
        "l1", "l2", "linf", "lp" (with `p`), "scaled" (columns over their standard deviation), "mahalanobis" or
        "correlation". Rows with missing values (NaN) are compared over the columns that both have.
    p : float
        The power of "lp".
    weights : {"uniform", "distance"}
        "distance": votes count 1 / distance; a row at distance 0 alone counts.

    Attributes
    ----------
    `n_neighbors_` : int
        k.
    `left_out_scores_` : array (K, 2)
        k and mean squared leave-one-out error, where k was chosen.
    `noise_variance_` : float
        s².
    `pooled_rows_` : float
        m.

    Examples
    --------
    >>> m = KNeighborsRegressor(2).fit([[0.0], [1.0], [2.0], [8.0]], [0.0, 1.0, 2.0, 8.0])
    >>> m.predict([[0.4], [1.6]])
    array([0.5, 1.5])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"leave-one-out"}), "array-like"],
        "metric": [StrOptions(set(get_args(MetricName)))],
        "p": [Interval(Real, 1, 64, closed="both")],
        "weights": [StrOptions({"uniform", "distance"})],
    }
    _keeps_rows = True
    saved_attributes: tuple[str, ...] = (
        "rows_", "targets_", "scatter_", "weight_", "n_neighbors_", "noise_variance_", "pooled_rows_",
        "left_out_scores_", "scale_", "distribution_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, n_neighbors: Any = 5, metric: MetricName = "l2", *, p: float = 2.0, weights: str = "uniform"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.p = p
        self.weights = weights

    # ----------------------------------------------------------------- learning

    def fit(self, X: Rows, y: Targets, sample_weight: ArrayLike | None = None) -> Self:
        """Store rows X (n, d) and their targets y (n,)."""
        from sklearn.utils.validation import _check_y, check_consistent_length

        self._validate_params()
        with whole_or_nothing(self):
            x = self._numbers(X, reset=True)
            if y is None:
                raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            t = np.asarray(_check_y(y, multi_output=False, y_numeric=True, estimator=self), dtype=np.float64)
            check_consistent_length(x, t)
            w = np.ones(len(t)) if sample_weight is None else row_weights(sample_weight, x)
            self._store(x[w > 0], t[w > 0], w[w > 0])
        return self

    def _numbers(self, X: Any, reset: bool) -> Array:
        x = np.ascontiguousarray(numeric_rows(self, X, reset), dtype=np.float64)
        refuse_infinite(x, type(self).__name__)
        return x

    def _store(self, x: Array, t: Array, w: Array) -> None:
        """Distinct rows with total weight, mean target, and scatter of their targets."""
        _, first, at = np.unique(equal_rows(x), return_index=True, return_inverse=True)
        self.rows_, self.weight_ = x[first], np.bincount(at, w)
        lowest = t.min()  # sums about it lose no digits to a large offset
        self.targets_ = lowest + np.bincount(at, w * (t - lowest)) / self.weight_
        self.scatter_ = np.bincount(at, w * (t - self.targets_[at]) ** 2)
        for name in ("_search", "left_out_scores_", "scale_", "distribution_"):
            self.__dict__.pop(name, None)
        metric = Metric.learned(self.metric, x, w, p=self.p)
        if metric.scale is not None:
            self.scale_ = np.array(metric.scale)
        if metric.distribution is not None:
            self.distribution_ = metric.distribution
        middle = float(w @ (t - lowest)) / w.sum() + lowest
        least = LEAST * max(float(w @ (t - middle) ** 2) / w.sum(), np.finfo(float).tiny ** 0.5)
        choices = self._choices(len(self.rows_))
        if len(self.rows_) == 1:
            self.n_neighbors_, self.pooled_rows_ = 1, np.inf
            self.noise_variance_ = max(float(self.scatter_[0] / max(w.sum() - 1, 1.0)), least)
            return
        self._choose(choices, least)

    def _choices(self, rows: int) -> list[int]:
        asked = self.n_neighbors
        if isinstance(asked, Integral):
            return [min(int(asked), max(rows - 1, 1))]
        given = CHOICES if isinstance(asked, str) else [int(k) for k in np.ravel(np.asarray(asked))]
        if not len(given) or min(given) < 1:
            raise DomainError(sentence(type(self).__name__, "numbers of neighbors must be at least 1", asked))
        return sorted({k for k in given if k < rows} or {max(rows - 1, 1)})

    def _choose(self, choices: list[int], least: float) -> None:
        """k of least leave-one-out error, and how much the pooled variance counts."""
        m = len(self.rows_)
        asked = np.unique(np.linspace(0, m - 1, min(m, LEFT_OUT)).astype(np.intp))
        away, rows = self._tree.nearest_others(max(choices), asked, type(self).__name__)
        w, t, own = self.weight_[asked], self.targets_[asked], self.scatter_[asked]
        local = [self._local(away[:, :k], rows[:, :k]) for k in choices]
        errors = np.array([(w @ (t - mean) ** 2 + own.sum()) / w.sum() for mean, _, _ in local])
        best = int(np.argmin(errors))
        if not isinstance(self.n_neighbors, Integral):
            self.left_out_scores_ = np.column_stack([np.array(choices, dtype=np.float64), errors])
        self.n_neighbors_ = choices[best] if not isinstance(self.n_neighbors, Integral) else int(self.n_neighbors)
        self.noise_variance_ = max(float(errors[best]), least)
        mean, spread, votes = local[best]
        scores = []
        for pooled in POOLED:
            variance = self._mixed(spread, votes, pooled)
            scores.append(float(-(w @ np.log(variance) + ((w * (t - mean) ** 2 + own) / variance).sum())))
        self.pooled_rows_ = float(POOLED[int(np.argmax(scores))])

    @property
    def _tree(self) -> NeighborSearch:
        """The search structure, which is not stored in files."""
        if "_search" not in vars(self):
            known = getattr(self, "distribution_", None)
            unsure = known is not None and any_missing(self.rows_)
            metric = Metric(plain_name(self.metric), self.p, getattr(self, "scale_", None), known, unsure)
            self._search = NeighborSearch.of(self.rows_, metric, whose=type(self).__name__)
        found: NeighborSearch = self._search
        return found

    def _local(self, away: Array, rows: Any) -> tuple[Array, Array, Array]:
        """Mean and variance of the neighbors' targets, and the number of votes (n,)."""
        w, t = self.weight_[rows], self.targets_[rows]
        w = np.where(np.isfinite(away), w, 0.0)
        if self.weights == "distance":
            here = (away == 0).any(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                near = np.where(away > 0, away.min(axis=1, keepdims=True) / away, 0.0)
            w = w * np.where(here[:, None], away == 0, near)
        total = w.sum(axis=1)
        alone = total == 0  # no column in common with any: all rows are as near
        everything = float(self.weight_ @ self.targets_ / self.weight_.sum())
        total = np.where(alone, 1.0, total)
        low = t.min(axis=1)
        mean = np.where(alone, everything, low + (w * (t - low[:, None])).sum(axis=1) / total)
        scatter = (w * (t - mean[:, None]) ** 2).sum(axis=1) + (w * (self.scatter_ / self.weight_)[rows]).sum(axis=1)
        votes = total**2 / np.maximum((w**2).sum(axis=1), np.finfo(float).tiny)  # as many equal ones
        return mean, np.where(alone, 0.0, scatter / total), np.where(alone, 0.0, votes)

    def _mixed(self, spread: Array, votes: Array, pooled: float) -> Array:
        """Variance between that of the neighbors and the pooled one."""
        s = self.noise_variance_
        if not np.isfinite(pooled):
            return np.full(len(spread), s)
        return (pooled * s + (votes + 1) * spread) / (pooled + votes)

    # ----------------------------------------------------------------------- prediction

    def predict(self, X: Rows, return_std: bool = False) -> Any:
        """Expected targets (n,); with `return_std` also the standard deviations of the predictive density."""
        mean, variance = self._moments(X)
        return (mean, np.sqrt(variance)) if return_std else mean

    def predictive(self, X: Rows) -> Gaussian:
        """Predictive densities of the targets: a stack of Gaussians, one per row."""
        mean, variance = self._moments(X)
        return Gaussian.trusted(mean=mean[:, None], covariance=variance[:, None], kind="diagonal")

    def interval(self, X: Rows, level: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper ends (n,) of central predictive intervals."""
        if not 0 < level < 1:
            raise DomainError(sentence(type(self).__name__, "level must lie between 0 and 1", level))
        low, high = np.asarray(self.predictive(X).quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level])).reshape(2, -1)
        return low, high

    def decide(self, X: Rows, loss: Any = "squared", *, over: float | None = None, under: float | None = None) -> Array:
        """Estimates of least expected loss under the predictive density, as `LinearRegression.decide`.

        Parameters
        ----------
        X : array-like (n, d)
            Rows.
        loss : {"squared", "absolute", "asymmetric"} or callable
            What is minimized: the mean, the median, a quantile, or the minimizer of loss(estimate, truth).
        over, under : float, optional
            Loss per unit too high and too low, of "asymmetric".

        Returns
        -------
        array (n,)
            Estimates.
        """
        return point_estimate(self.predictive(X), loss, over=over, under=under)

    def kneighbors(self, X: Rows, n_neighbors: int | None = None) -> tuple[Array, Any]:
        """Nearest distinct rows (`rows_`), nearest first.

        Parameters
        ----------
        X : array-like (n, d)
            Rows.
        n_neighbors : int, optional
            Number of neighbors; None: `n_neighbors_`.

        Returns
        -------
        tuple of arrays (n, k)
            Distances, and numbers of rows.
        """
        check_is_fitted(self)
        k = min(self.n_neighbors_ if n_neighbors is None else n_neighbors, len(self.rows_))
        return self._tree.nearest(self._numbers(X, reset=False), k, type(self).__name__)

    def _moments(self, X: Any) -> tuple[Array, Array]:
        mean, spread, votes = self._local(*self.kneighbors(X))
        return mean, self._mixed(spread, votes, self.pooled_rows_)

    # -------------------------------------------------------------------- description

    def describe(self) -> Description:
        """Description of neighbors, metric and variance; of an unfitted estimator, its settings."""
        if "rows_" not in vars(self):
            return super().describe()
        facts = {
            "neighbors": self.n_neighbors_, "metric": metric_words(self.metric, self.p), "weights": self.weights,
            "distinct rows": len(self.rows_), "rows": float(self.weight_.sum()),
            "mean squared leave-one-out error": self.noise_variance_,
            "rows that the pooled variance counts": "all" if np.isinf(self.pooled_rows_) else self.pooled_rows_,
        }  # fmt: skip
        return Description(type(self).__name__, facts=facts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file that `lk.load` reads back."""
        from likely.io.model_files import save

        save(self, path)

    def check_state(self) -> None:
        """After reading a file: rows, targets and weights belong together."""
        if not whole_state(self, "left_out_scores_", "scale_", "distribution_"):
            return
        n, d = np.shape(self.rows_) if np.ndim(self.rows_) == 2 else (0, 0)
        each = [np.shape(part) == (n,) for part in (self.targets_, self.scatter_, self.weight_)]
        sound = n > 0 and all(each) and self.n_features_in_ == d
        sound = sound and type(self.n_neighbors_) is int and self.n_neighbors_ >= 1
        sound = sound and plain_name(self.metric) in METRICS and self.weights in ("uniform", "distance")
        sound = sound and all(isinstance(v, float) and v > 0 for v in (self.noise_variance_, self.pooled_rows_))
        sound = sound and isinstance(getattr(self, "distribution_", None), Gaussian | None)
        numbers = (self.targets_, self.scatter_, self.weight_)
        if not (sound and all(np.isfinite(part).all() for part in numbers)):
            raise DataError(sentence(type(self).__name__, "rows, targets and settings must be consistent"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
