"""Centroids: the value of k-means (centers, assignment, sufficient statistics, refit)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likely.cluster.kmeans.kmeans_plus_plus import power_of_two, squared_distances
from likely.core import declared
from likely.core.arrays import Array, parameter, rows, weights
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.gaussian.moments import ColumnMoments
from likely.numerics.standardization import AffineMap

Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CentroidStats(Addable, Value):
    """Sufficient statistics of k-means: weight, mean and scatter of each cluster and column (k, d)."""

    moments: Annotated[ColumnMoments, declared.stats]

    complete = False  # labels are latent: they depend on the centers

    def __post_init__(self) -> None:
        if not isinstance(self.moments, ColumnMoments) or self.moments.shift.ndim != 2:
            expected, got = "ColumnMoments of a stack of clusters are needed", type(self.moments).__name__
            raise ShapeError(sentence("CentroidStats", expected, got, "collect with Centroids"))

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return self.moments.total_weight

    @property
    def counts(self) -> Array:
        """Weight of each cluster's rows (k,)."""
        return self.moments.rows

    @property
    def scatter(self) -> Array:
        """Σ w ‖x − mean‖² of each cluster over observed entries (k,)."""
        return np.asarray(self.moments.scatter.sum(axis=-1))

    @property
    def entries(self) -> Array:
        """Weight of the observed entries in each cluster (k,)."""
        return np.asarray(self.moments.weight.sum(axis=-1))

    def __add__(self, other: CentroidStats) -> CentroidStats:
        return CentroidStats.trusted(moments=self.moments + other.moments)

    def __mul__(self, factor: float) -> CentroidStats:
        return CentroidStats.trusted(moments=self.moments * factor)

    __rmul__ = __mul__

    def member(self, k: Any) -> CentroidStats:
        """The statistics of one cluster, or of several."""
        return CentroidStats.trusted(moments=self.moments.member(k))


@dataclass(frozen=True, eq=False)
class Centroids(Value):
    """Centers of k clusters; a row belongs to the nearest one, ties go to the first.

    The criterion is Σ w ‖x − mean‖² over observed entries: the limit of a mixture of spherical Gaussians with
    one small variance, missing values integrated out. With one variance per cluster it is
    Σ w (‖x − mean‖² / 2σ² + d/2 log σ²), a mixture of spherical Gaussians fitted by hard EM; each
    cluster then has one pseudo-observation of variance `typical`, so that none can shrink to a point.

    Parameters
    ----------
    mean : array-like (k, d)
        Centers.
    variance : array-like (k,), optional
        Variances σ², one per cluster.
    typical : float, optional
        Variance of the pseudo-observation of each cluster.

    See Also
    --------
    KMeans : The estimator.

    References
    ----------
    Bishop (2006), chapter 9; Ney, lecture notes, 6.2.2.

    Examples
    --------
    >>> c = Centroids([[0.0], [10.0]])
    >>> c.assign([[1.0], [9.0], [5.0]]).tolist()
    [0, 1, 0]
    >>> c.refit(c.collect([[1.0], [9.0], [11.0]])).mean.tolist()
    [[1.0], [10.0]]
    """

    mean: Annotated[Array, declared.numbers("K d")]  # (k, d)
    # (k,): one per cluster; None if all are equal
    variance: Annotated[Array | None, declared.maybe(declared.numbers("K", 0))] = None
    # (): variance of the pseudo-observation
    typical: Annotated[Array | None, declared.maybe(declared.numbers("", 0))] = None

    takes_parts = True

    def __post_init__(self) -> None:
        mean = parameter(self.mean, "Centroids", "mean")
        if mean.ndim != 2 or not mean.size:
            raise ShapeError(sentence("Centroids", "mean must have shape (k, d)", mean.shape, "one row per center"))
        self._set(mean=mean)
        if (self.variance is None) != (self.typical is None):
            raise DomainError(sentence("Centroids", "variance and typical must be given together", "one of them"))
        if self.variance is not None:
            variance = parameter(self.variance, "Centroids", "variance")
            typical = parameter(self.typical, "Centroids", "typical")
            if variance.shape != mean.shape[:1] or typical.shape != ():
                expected = f"variance must have shape ({len(mean)},), and typical be one number"
                raise ShapeError(sentence("Centroids", expected, f"{variance.shape} and {typical.shape}"))
            if not (variance > 0).all() or not typical > 0:
                raise DomainError(sentence("Centroids", "variances must be above 0", variance.min()))
            self._set(variance=variance, typical=typical)

    @property
    def members(self) -> int:
        """Number of centers k."""
        return len(self.mean)

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[1])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.mean.size + (0 if self.variance is None else self.members)

    def assign(self, x: ArrayLike) -> Labels:
        """The cluster of each row.

        Returns
        -------
        ndarray of int (n,)
            Numbers of clusters.
        """
        from likely.cluster.kmeans.assignment import KMeansData  # compiled loops are imported on first use

        return KMeansData.of(x, None, self.dim).labeled(self)

    def distances(self, x: ArrayLike) -> NDArray[Any]:
        """Distances ‖x − mean‖ over observed entries.

        Returns
        -------
        ndarray (n, k)
            Distances; float32 rows give float32.
        """
        x = x if isinstance(x, np.ndarray) else rows(x, self.dim, "Centroids")
        return map_rows(self._distances, x, self.members)

    def collect(self, x: ArrayLike, weight: ArrayLike | None = None) -> CentroidStats:
        """Assign rows (n, d) to their nearest centers, and collect the statistics of the clusters."""
        from likely.cluster.kmeans.assignment import KMeansData

        table = KMeansData.of(x, weight, self.dim)
        return table.stats(self, table.labeled(self))

    def refit(self, stats: CentroidStats, prior: None = None) -> Centroids:
        """Each center at the mean of its rows; a column without observed values is unchanged."""
        mean = np.where(stats.moments.weight > 0, stats.moments.mean, self.mean)
        if self.variance is None or self.typical is None:
            return self.replace(mean=mean)
        variance = (stats.scatter + self.dim * self.typical) / (stats.entries + self.dim)
        return self.replace(mean=mean, variance=variance)

    def objective(self, stats: CentroidStats, prior: None = None) -> float:
        """Minus the criterion at these centers, with fixed assignments."""
        m = stats.moments
        gone = np.where(m.weight > 0, m.mean - self.mean, 0.0)
        scatter = stats.scatter + (m.weight * gone**2).sum(axis=-1)
        if self.variance is None or self.typical is None:
            return -float(scatter.sum())
        cost = (scatter + self.dim * self.typical) / self.variance + (stats.entries + self.dim) * np.log(self.variance)
        return -0.5 * float(cost.sum())

    def with_variances(self, stats: CentroidStats) -> Centroids:
        """The same centers with one variance per cluster, shrunk to the common variance.

        Returns
        -------
        Centroids
            The new value.
        """
        total, seen = float(stats.scatter.sum()), float(stats.entries.sum())
        if not total > 0:
            expected, remedy = "rows must differ from their centers", 'use variances="equal", or fewer clusters'
            raise DataError(sentence("Centroids", expected, "no scatter at all", remedy))
        typical = np.asarray(total / seen)
        return Centroids.trusted(mean=self.mean, variance=np.full(self.members, typical), typical=typical).refit(stats)

    def take(self, index: Any) -> Centroids:
        """A subset of the centers."""
        return self.replace(mean=self.mean[index], variance=None if self.variance is None else self.variance[index])

    def _distances(self, x: Any) -> Array:
        x = rows(x, self.dim, "Centroids")
        frame = AffineMap.fitted_to(self.mean)
        u, c = frame.forward(x), frame.forward(self.mean)
        seen = ~np.isnan(u)
        if seen.all():
            size = float(power_of_two(max(abs(u).max(initial=0.0), abs(c).max())))
            return np.asarray(np.sqrt(squared_distances(u / size, c / size)).T * size / frame.unit)
        out = [np.sqrt((np.where(seen, u - center, 0.0) ** 2).sum(axis=1)) for center in c]
        return np.stack(out, axis=1) / frame.unit


def as_centers(start: Any, d: int, whose: str) -> Centroids:
    """Initial centers from an array or Centroids, with the number of columns checked."""
    centers = start if isinstance(start, Centroids) else Centroids(start)
    if centers.dim != d:
        raise ShapeError(sentence(whose, f"centers must have {d} columns, as the rows have", centers.dim))
    return centers


def row_weights(weight: Any, n: int, whose: str) -> Array | None:
    """Weights of n rows (n,), or None."""
    w = weights(weight, n, whose)
    if w is not None and w.ndim != 1:
        raise ShapeError(sentence(whose, "weight must have one number per row", w.shape))
    return w
