"""AgglomerativeClustering: hierarchical clustering with the scikit-learn API."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin

from likely.cluster.hierarchy.dendrogram import Dendrogram
from likely.cluster.hierarchy.linkage import ALIASES, MergedCovariance, Metric, linkage
from likely.cluster.hierarchy.linkage_criteria import LINKS, Linkage
from likely.core.arrays import Array, Index, Rows, Targets, refuse_infinite
from likely.core.description import Description
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, sentence
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted
from likely.estimation.classifier_description import cluster_table
from likely.estimation.input_validation import numeric_rows, row_weights
from likely.estimation.parameter_constraints import Interval, StrOptions


class AgglomerativeClustering(ClusterMixin, BaseEstimator):
    """Agglomerative hierarchical clustering: merge the closest clusters, then cut the tree.

    One of `n_clusters`, `distance_threshold` and `criterion` says where to cut; by default the criterion.

    `predict` assigns a new row to the nearest of the cluster means, Euclidean, over the d_obs columns that both have,
    scaled by d / d_obs; a row of the training set may lie nearer to another cluster's mean than to its own. Rows may
    have missing entries (NaN) as `linkage` takes them, if `n_clusters` or `distance_threshold` says where to cut; a cut
    by likelihood needs complete rows.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters.
    linkage : str, default "ward"
        "ward", "single", "complete", "average", "weighted", "sum", "centroid", "median", "coordinate-median" or
        "likelihood": how the distance of clusters is measured (see `linkage`).
    metric : str, default "euclidean"
        Euclidean, another of SciPy's, or "precomputed" (X is then a matrix of distances).
    distance_threshold : float, optional
        Height at which the tree is cut.
    criterion : {"likelihood"}, optional
        Take the number of clusters with the smallest BIC of one Gaussian per cluster (`bic_curve`).
    covariance : {"full", "diagonal"}, default "full"
        Covariance of the clusters, for linkage "likelihood".

    Attributes
    ----------
    labels_ : ndarray of int (n,)
        Cluster of each training row, numbered by decreasing weight of the clusters.
    dendrogram_ : Dendrogram
        The tree of the rows with positive weight.
    n_clusters_ : int
        Number of clusters.
    centers_ : ndarray (k, d)
        Means of observed values, one per cluster.

    See Also
    --------
    linkage : The dendrogram alone.
    KMeans : Clusters about means.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 10; Ney, lecture notes, 6.2.3.

    Examples
    --------
    >>> from likely.cluster.hierarchy.estimator import AgglomerativeClustering
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.3], [5.1]]
    >>> a = AgglomerativeClustering(2, linkage="average").fit(X)
    >>> a.labels_, a.predict([[4.0]])
    (array([0, 0, 0, 1, 1, 1]), array([1]))
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "linkage": [StrOptions(set(get_args(Linkage)))], "metric": [StrOptions(set(get_args(Metric)))],
        "distance_threshold": [Interval(Real, None, None, closed="neither"), None],
        "criterion": [StrOptions({"likelihood"}), None], "covariance": [StrOptions(set(get_args(MergedCovariance)))],
    }  # fmt: skip

    # fitted attributes stored in a model file
    saved_attributes: tuple[str, ...] = (
        "labels_", "dendrogram_", "n_clusters_", "centers_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, n_clusters: int | None = None, *, linkage: Linkage = "ward", metric: Metric = "euclidean",
        distance_threshold: float | None = None, criterion: Literal["likelihood"] | None = None,
        covariance: MergedCovariance = "full",
    ) -> None:  # fmt: skip
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.distance_threshold = distance_threshold
        self.criterion = criterion
        self.covariance = covariance

    def fit(self, X: Rows, y: Targets | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster rows X (n, d), or the rows of a matrix of distances (n, n); `y` is ignored."""
        self._validate_params()
        self._check_cut()
        rows = self.validate_rows(X, reset=True)
        weight = _positive(sample_weight, rows)
        here = weight > 0
        seen = rows if here.all() else rows[here][:, here] if self._given_distances else rows[here]
        self.dendrogram_ = linkage(
            seen, self.linkage, metric=self.metric, weight=weight[here], covariance=self.covariance
        )
        label = self._cut(seen)
        self.__dict__.pop("centers_", None)
        if self._given_distances:
            label = _by_weight(label, weight[here])[label]
        else:
            centers = _means(seen, label, weight[here])
            rank = _by_weight(label, weight[here], centers)
            self.centers_, label = centers[np.argsort(rank)], rank[label]
        self.n_clusters_ = int(label.max()) + 1
        self.labels_ = label if here.all() else self._with_weightless(rows, here, label)
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Index:
        """The labels of the rows (n,)."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Rows) -> Index:
        """The cluster with the nearest mean for each row (n,), over the observed columns of the row."""
        check_is_fitted(self)
        if self._given_distances:
            remedy = "fit rows, or assign each new row to the cluster of its nearest neighbor"
            raise DomainError(
                sentence("AgglomerativeClustering", "predict needs cluster means", "distances only", remedy)
            )
        rows = self.validate_rows(X, reset=False)
        if not self._takes_gaps and np.isnan(rows).any():
            row = int(np.argwhere(np.isnan(rows))[0, 0])
            remedy = "impute first (GaussianDensity, PPCA)"
            raise DataError(
                sentence("AgglomerativeClustering", "rows must be complete, as in fit", f"NaN at row {row}", remedy)
            )
        return self._nearest(rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model file that `lk.load` reads."""
        from likely.io.model_files import save

        save(self, path)

    # ------------------------------------------------------------------- inside

    @property
    def _takes_gaps(self) -> bool:
        if self.linkage == "ward":  # a cut by likelihood needs complete rows
            return self.n_clusters is not None or self.distance_threshold is not None
        return LINKS[self.linkage].join is not None and self.metric in ("euclidean", "cityblock", *ALIASES)

    @property
    def _given_distances(self) -> bool:
        return self.metric == "precomputed"

    def _check_cut(self) -> None:
        given = [name for name in ("n_clusters", "distance_threshold", "criterion") if getattr(self, name) is not None]
        if len(given) > 1:
            raise DomainError(
                sentence(
                    "AgglomerativeClustering", "one of n_clusters, distance_threshold and by says where to cut", given
                )
            )
        if self._given_distances and given in ([], ["criterion"]):
            remedy = "pass n_clusters or distance_threshold"
            raise DomainError(
                sentence("AgglomerativeClustering", "a cut by likelihood needs rows", "distances", remedy)
            )

    def validate_rows(self, X: Any, reset: bool = False) -> Any:
        X = numeric_rows(self, X, reset, dtype=np.float64, order="C")
        refuse_infinite(X, "AgglomerativeClustering")
        return X

    def _cut(self, X: Array) -> Index:
        tree = self.dendrogram_
        if self.distance_threshold is not None:
            return tree.cut(height=self.distance_threshold)
        if self.n_clusters is None:
            return tree.cut(criterion="likelihood", X=X)
        if self.n_clusters > len(tree):
            expected = f"n_clusters must not exceed the number of rows ({len(tree)})"
            raise DomainError(sentence("AgglomerativeClustering", expected, self.n_clusters))
        return tree.cut(int(self.n_clusters))

    def _with_weightless(self, X: Array, here: Any, label: Index) -> Index:
        """Labels of all rows: rows of weight 0 do not take part, and are labeled like new ones."""
        labels = np.full(len(X), -1, dtype=np.intp)
        labels[here] = label
        if self._given_distances:
            labels[~here] = label[np.argmin(X[~here][:, here], axis=1)]
        else:
            labels[~here] = self._nearest(X[~here])
        return labels

    def _nearest(self, X: Array) -> Index:
        return map_rows(lambda x: _squares(x, self.centers_).argmin(axis=1), X, None, np.intp)

    def describe(self) -> Description:
        """Clusters with their sizes and centers, and the last merges; of an unfitted estimator, its settings."""
        if not hasattr(self, "labels_"):
            return super().describe()
        sizes, heights = np.bincount(self.labels_, minlength=self.n_clusters_), self.dendrogram_.heights[::-1][:5]
        last = ", ".join(f"{height:.3g}" for height in heights)
        text = [
            f"{self.n_clusters_} clusters of {len(self.labels_):,} rows, {self.linkage} linkage",
            f"heights of the last merges: {last}" if last else "a single row: nothing was merged",
        ]
        centers = getattr(self, "centers_", np.zeros((len(sizes), 0)))
        return Description(type(self).__name__, text, tables=[cluster_table(self, sizes, centers)])

    def check_state(self) -> None:
        """After loading a file: tree, labels and centers must be consistent."""
        if not hasattr(self, "labels_"):
            return
        tree: Any = getattr(self, "dendrogram_", None)
        k: Any = getattr(self, "n_clusters_", None)
        centers: Any = getattr(self, "centers_", None)
        labels, width = self.labels_, getattr(self, "n_features_in_", None)
        sound = isinstance(tree, Dendrogram) and type(k) is int and type(width) is int
        sound = sound and isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind == "i"
        sound = sound and len(labels) >= len(tree) and 1 <= k <= len(tree) and set(labels.tolist()) == set(range(k))
        if not self._given_distances:
            sound = sound and isinstance(centers, np.ndarray) and centers.shape == (k, width)
            sound = sound and centers.dtype == np.float64 and not np.isinf(centers).any()
        names = getattr(self, "feature_names_in_", None)
        if not sound or (names is not None and len(names) != width):
            raise DataError(sentence("AgglomerativeClustering", "fitted attributes must be consistent", "other parts"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.linkage in LINKS and self._takes_gaps
        tags.input_tags.pairwise = self._given_distances
        return tags


def _squares(x: Array, centers: Array) -> Array:
    """1 / d_obs Σ_obs (x − c)² (n, k) over common columns, infinite without any.

    Each row has its own unit, the largest column distance to its nearest center: so small distances do not underflow,
    and what overflows is far.
    """
    largest, seen = np.zeros((len(x), len(centers))), np.zeros((len(x), len(centers)))
    for column, center in zip(x.T, centers.T, strict=True):
        apart = abs(column[:, None] - center)
        largest, seen = np.fmax(largest, apart), seen + ~np.isnan(apart)
    largest[seen == 0] = np.inf
    unit = np.maximum(largest.min(axis=1, keepdims=True), np.finfo(float).tiny)
    total = np.zeros_like(largest)
    for column, center in zip(x.T, centers.T, strict=True):
        total += np.nan_to_num(((column[:, None] - center) / unit) ** 2, nan=0.0, posinf=np.inf)
    return np.where(seen > 0, total / np.maximum(seen, 1.0), np.inf)


def _positive(sample_weight: Any, X: Array) -> Array:
    if sample_weight is None:
        return np.ones(len(X))
    return row_weights(sample_weight, X)


def _by_weight(label: Index, weight: Array, centers: Array | None = None) -> Index:
    """The rank of each cluster (k,), largest weight first; ties by their centers, independent of the order of rows."""
    mass = np.bincount(label, weight)
    ties = [] if centers is None else list(centers.T[::-1])
    rank = np.empty(len(mass), dtype=np.intp)
    rank[np.lexsort([*ties, -mass])] = np.arange(len(mass))
    return rank


def _means(X: Array, label: Index, weight: Array) -> Array:
    """Means (k, d) of observed values; NaN where a cluster has none in a column."""
    seen = ~np.isnan(X)
    sums = [np.bincount(label, weight * np.where(s, x, 0.0)) for x, s in zip(X.T, seen.T, strict=True)]
    masses = [np.bincount(label, weight * s) for s in seen.T]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack(sums, axis=1) / np.stack(masses, axis=1)
