"""KMeans: k-means clustering with the scikit-learn API, with weights, missing values and streams."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from likely.cluster.kmeans.assignment import KMeansData, refuse_empty_rows
from likely.cluster.kmeans.centroids import Centroids, CentroidStats
from likely.cluster.kmeans.kmeans import Initialization, Method, Variances, kmeans
from likely.cluster.kmeans.lloyd import Partition
from likely.core.arrays import Array, Rows, Seed
from likely.core.description import Description, counted
from likely.core.em_loop import StoppingRule
from likely.core.errors import DataError, sentence
from likely.core.fit_report import FitReport
from likely.core.sketch import SIZE, Sketch
from likely.core.warnings import warn
from likely.estimation.array_fast_path import is_plain
from likely.estimation.base_estimator import BaseEstimator, check_is_fitted
from likely.estimation.classifier_description import cluster_table
from likely.estimation.input_validation import numeric_rows, row_weights
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.scikit_learn import check_random_state


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """K-means clustering: each row belongs to the nearest center, each center is the mean of its rows.

    Minimizes Σ w ‖x − center‖² over observed entries: missing values (NaN) are ignored in distances and means.
    `partial_fit` assigns each chunk to the present centers and moves these to the mean of all rows so far
    (MacQueen 1967, in chunks).

    Parameters
    ----------
    n_clusters : int, default 8
        Number of clusters; fewer are found, with a warning, where fewer rows are distinct.
    init : {"k-means++", "random", "split"} or array-like (k, d), default "k-means++"
        Initialization: "k-means++" (greedy, on a sketch of the rows: independent of order, duplicates and chunks of
        rows), "random", "split" (from one center by splitting; no randomness), or centers.
    n_init : int, default 1
        Number of random initializations, of which the best is kept.
    method : {"batch", "exchange"}, default "batch"
        "exchange" then moves single rows while that decreases the criterion.
    variances : {"equal", "own"}, default "equal"
        "own" is one variance per cluster (spherical Gaussians, hard EM).
    max_iter : int, default 300
        Largest number of passes of "batch", of "own" and of "exchange".
    tol : float, default 1e-6
        Smallest relative decrease of the criterion per pass (0: until no row moves). With variances="own" the criterion
        is a log-likelihood, tol the smallest gain in nats per row; "exchange" continues until no row moves.
    random_state : int, Generator or None
        Seed of the initializations.

    Attributes
    ----------
    model_ : Centroids
        The fitted centers.
    labels_ : ndarray of int (n,)
        Cluster of each training row.
    inertia_ : float
        Weighted sum of squared distances to the centers.
    report_ : FitReport
        How the fit went: objective, iterations, why it stopped.

    See Also
    --------
    choose_k : The number of clusters.
    AgglomerativeClustering : Hierarchical clustering.

    References
    ----------
    Bishop (2006), chapter 9; Duda, Hart and Stork (2001), chapter 10; Ney, lecture notes, 6.2.2.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    >>> m = KMeans(2, random_state=0).fit(X)
    >>> m.inertia_, sorted(m.cluster_centers_.tolist())
    (1.0, [[0.0, 0.5], [9.0, 8.5]])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(get_args(Initialization))), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions(set(get_args(Method)))],
        "variances": [StrOptions(set(get_args(Variances)))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }
    # fitted attributes stored in a model file: not the labels of the rows
    saved_attributes: tuple[str, ...] = (
        "model_", "stats_", "inertia_", "n_iter_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    def __init__(
        self, n_clusters: int = 8, *, init: Initialization | ArrayLike = "k-means++", n_init: int = 1,
        method: Method = "batch", variances: Variances = "equal", max_iter: int = 300, tol: float = 1e-6,
        random_state: Seed = None,
    ) -> None:  # fmt: skip
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.method = method
        self.variances = variances
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster rows X (n, d); `y` is ignored."""
        self._validate_params()
        X, weight = self._checked(X, sample_weight, reset=True)
        found = self._found(X, weight)
        if not found.report.converged:
            warn(f"KMeans: not converged: {found.report.reason}")
        self.__dict__.pop("sketch_", None)
        return self._adopt(found)

    def partial_fit(self, X: Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update with more rows; until there are `n_clusters` distinct ones, they are stored for the initialization."""
        self._validate_params()
        first = not hasattr(self, "model_")
        rows, weight = self._checked(X, sample_weight, reset=first)
        if first or hasattr(self, "sketch_"):
            return self._begin(rows, weight)
        refuse_empty_rows(rows, "KMeans", slice(None) if weight is None else weight > 0)
        table = KMeansData.of(rows, weight)
        labels = table.labeled(self.model_)
        stats = self.stats_ + table.stats(self.model_, labels)
        model = self.model_.refit(stats)
        reason = "one step for each call of partial_fit"
        report = FitReport(model, stats, None, False, reason, [self.model_.objective(stats), model.objective(stats)])
        return self._adopt(Partition(report, labels))

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """The cluster of each row (n,)."""
        check_is_fitted(self)
        return self.model_.assign(self.validate_rows(X, reset=False))

    def fit_predict(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.int32]:  # fmt: skip
        """`fit`, and the cluster of each row (n,)."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def transform(self, X: ArrayLike) -> Array:
        """Distances to the centers (n, k), over observed entries."""
        check_is_fitted(self)
        return self.model_.distances(self.validate_rows(X, reset=False))

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus Σ w ‖x − own center‖²: larger is better."""
        check_is_fitted(self)
        X, weight = self._checked(X, sample_weight, reset=False)
        table = KMeansData.of(X, weight)
        equal = Centroids.trusted(mean=self.model_.mean, variance=None, typical=None)
        return equal.objective(table.stats(self.model_, table.labeled(self.model_)))

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model file that `lk.load` reads; labels of the rows are not in it."""
        from likely.io.model_files import save

        save(self, path)

    @property
    def cluster_centers_(self) -> Array:
        """The centers (k, d)."""
        return self.model_.mean

    @property
    def _n_features_out(self) -> int:
        return int(self.model_.members)

    # ------------------------------------------------------------------- inside

    def _found(self, X: Any, weight: Any) -> Partition:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        return kmeans(
            X, self.n_clusters, weight, init=self.init, n_init=self.n_init, method=self.method,
            variances=self.variances, stop=StoppingRule(self.max_iter, self.tol), rng=rng,
        )  # fmt: skip

    def _begin(self, X: Any, weight: Any) -> Self:
        """The first rows of a stream: fitted as a batch, with earlier ones while these were too few."""
        before: Sketch | None = self.__dict__.pop("sketch_", None)
        new = Sketch.of(X, weight, max(SIZE, self.n_clusters))
        known = new if before is None else new + before
        if not len(known):
            raise DataError(sentence("KMeans", "at least one row must have positive weight", "weights of 0"))
        if len(known) < self.n_clusters:
            self.sketch_ = known
            return self._adopt(_each_row_a_center(known, X))
        if before is not None:
            weight = np.ones(len(X)) if weight is None else weight
            X, weight = np.concatenate([before.rows, X]), np.concatenate([before.weight, weight])
        return self._adopt(self._found(X, weight))

    def validate_rows(self, X: ArrayLike, reset: bool = False) -> Any:
        if not reset and is_plain(X, self):
            return X
        return numeric_rows(self, X, reset, order="C")

    def _checked(self, X: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any]:
        X = self.validate_rows(X, reset=reset)
        if sample_weight is not None:
            sample_weight = row_weights(sample_weight, X)
        return X, sample_weight

    def _adopt(self, found: Partition) -> Self:
        self.report_, self.model_, self.stats_ = found.report, found.model, found.report.stats
        self.labels_, self.inertia_ = found.labels, found.inertia
        self.n_iter_ = max(found.refits, 1)
        return self

    def why_not_saved(self) -> tuple[str, str, str] | None:
        """The reason why there is no model file yet, and the remedy."""
        if not hasattr(self, "sketch_"):
            return None
        expected = f"a stream must have {self.n_clusters} distinct rows before its model is saved"
        return expected, f"{len(self.sketch_)}", "call partial_fit with more rows, or ask for fewer clusters"

    def describe(self) -> Description:
        """Clusters with their sizes and centers, and the inertia; of an unfitted estimator, its settings."""
        if not hasattr(self, "model_"):
            return super().describe()
        sizes, centers = self.stats_.counts, self.model_.mean
        text = [f"{len(centers)} clusters in {centers.shape[1]} columns, fitted to {counted(sizes.sum(), 'row')}"]
        inertia = f"inertia (within-cluster sum of squares): {self.inertia_:.6g}, after {self.n_iter_} iterations"
        return Description(type(self).__name__, [*text, inertia], tables=[cluster_table(self, sizes, centers)])

    def check_state(self) -> None:
        """After loading a file: centers and statistics must have consistent shapes."""
        model, stats = getattr(self, "model_", None), getattr(self, "stats_", None)
        if model is None and stats is None:
            return
        width = getattr(self, "n_features_in_", None)
        sound = isinstance(model, Centroids) and isinstance(stats, CentroidStats) and type(width) is int
        sound = sound and model.dim == width and stats.moments.shift.shape == model.mean.shape  # type: ignore[union-attr]
        sound = sound and isinstance(getattr(self, "inertia_", 0.0), float) and type(getattr(self, "n_iter_", 1)) is int
        if not sound:
            raise DataError(sentence("KMeans", "fitted attributes must be consistent", type(model).__name__))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _each_row_a_center(known: Sketch, X: Any) -> Partition:
    """The partition of few distinct rows, each of which is a center."""
    table = KMeansData.of(known.rows, known.weight)
    model = Centroids(np.where(np.isnan(known.rows), table.frame.inverse(np.zeros(known.rows.shape)), known.rows))
    stats = table.stats(model, table.labeled(model))
    reason = "too few distinct rows so far: each is a cluster"
    report = FitReport(model, stats, None, False, reason, [model.objective(stats)] * 2)
    return Partition(report, model.assign(X))
