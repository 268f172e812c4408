"""Diagnosis of distances in high dimensions: relative contrast, hubness, intrinsic dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, refuse_infinite, rows, weights
from likely.core.errors import DataError, sentence
from likely.core.value import Value
from likely.metrics.high_dimensional_geometry import Dimension, Hubness, hubness, intrinsic_dimension, relative_contrast
from likely.neighbors.distances import Metric, MetricName
from likely.neighbors.nearest_neighbors import NeighborSearch, _Tree

MOST = 5000  # number of rows used: evenly spaced over all
QUERIES = 200  # rows whose distances to all others are computed
TOLD = 8.0  # dimension beyond which a few thousand rows give only a lower bound


@dataclass(frozen=True, eq=False)
class DistanceDiagnostics(Value):
    """Properties of the distances between rows; `str` or `verdict` interpret them.

    Parameters
    ----------
    rows : int
        Number of distinct complete rows used.
    columns : int
        Number of columns D.
    left_out : int
        Number of rows with missing values.
    copies : float
        Share of duplicate rows.
    contrast : float
        Median of (farthest − nearest) / nearest.
    spread : float
        Coefficient of variation of distances; about 1/√(2D) for D independent columns.
    hubs : Hubness
        How unevenly rows are neighbors of others.
    dimension : Dimension
        Intrinsic dimension; biased downward where it is large.
    at_least : bool, default False
        The dimension is a lower bound.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> found = lk.metrics.distance_diagnostics(np.random.default_rng(0).normal(size=(300, 2)))
    >>> found.columns, found.at_least, bool(abs(found.dimension.value - 2) < 0.5)
    (2, False, True)
    """

    rows: int  # number of distinct complete rows used
    columns: int
    left_out: int  # rows with missing values
    copies: float  # share of duplicate rows
    contrast: float  # median of (farthest − nearest) / nearest
    spread: float  # coefficient of variation of distances; about 1/√(2D) for D independent columns
    hubs: Hubness
    dimension: Dimension  # biased downward where it is large, and then a lower bound (`at_least`)
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """The interpretation in one or two sentences."""
        m, error = self.dimension
        size = f"{self.columns} columns vary like {m:.1f} ± {2 * error:.1g} independent ones"
        if self.at_least:
            size = f"{self.columns} columns vary like {m:.0f} independent ones or more: a lower bound"
        far = 1 + self.contrast
        if self.contrast < 1.0:
            found = f"Distances are not informative: the farthest row is {far:.1f} times as far as the nearest"
            advice = "; use fewer columns, or a model with a covariance"
        elif self.hubs.skewness > 2.0:
            found = f"Some rows are hubs, neighbors of many others ({self.hubs.largest:.0f} times as often as the mean)"
            advice = ", others of none; edit or condense rows, or use another metric"
        else:
            advice = ""
            found = f"Distances are informative: the farthest row is {far:.0f} times as far as the nearest"
        notes = f" {self.left_out} rows with missing values were dropped." if self.left_out else ""
        return f"{found}{advice}. {size}.{notes}"


def distance_diagnostics(
    X: ArrayLike,
    *,
    n_neighbors: int = 10,
    metric: MetricName | Metric = "scaled",
    p: float = 2.0,
    weight: ArrayLike | None = None,
    max_samples: int = MOST,
) -> DistanceDiagnostics:
    """Distance diagnostics of rows: contrast, hubs, intrinsic dimension.

    Duplicates and rows with missing values are dropped. The estimate of the dimension is too small for Gaussian rows,
    the more so the more dimensions there are: its bias for as many rows of independent columns is simulated and part of
    its error; beyond 8 dimensions it is a lower bound (`at_least`).

    Parameters
    ----------
    X : array-like (n, d)
        Rows.
    n_neighbors : int, default 10
        Number of neighbors for hubs and dimension.
    metric : {"scaled", "mahalanobis", "euclidean", "manhattan", "chebyshev", "minkowski"} or Metric, default "scaled"
        The distance; "scaled" divides columns by their standard deviation.
    p : float, default 2.0
        Exponent of "minkowski".
    weight : array-like (n,), optional
        Weight per row.
    max_samples : int, default 5000
        Of more rows, an evenly spaced subset is used.

    Returns
    -------
    DistanceDiagnostics
        The figures; printed, they are interpreted.

    See Also
    --------
    intrinsic_dimension : The dimension alone, from distances.
    hubness : Hubs alone, from neighbors.

    References
    ----------
    Ney, lecture notes, 3.2; Herbst and du Preez, lecture notes, 1.4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> flat = rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 30))  # a plane in thirty dimensions
    >>> report = distance_diagnostics(flat)
    >>> round(report.dimension.value), report.columns
    (2, 30)
    """
    x, left_out, copies = _distinct(X, weight, max_samples)
    if len(x) < 3:
        raise DataError(
            sentence("distance_diagnostics", "at least 3 distinct rows without missing values are needed", len(x))
        )
    search = NeighborSearch.of(x, metric, p=p, whose="distance_diagnostics")
    away, found = search.nearest_others(int(min(max(n_neighbors, 2), len(x) - 1)), whose="distance_diagnostics")
    contrast, spread = _to_all(search)
    dimension = _dimension(search, away)
    at_least = dimension.value > TOLD
    if not at_least:
        dimension = _with_bias(dimension, len(x), away.shape[1])
    return DistanceDiagnostics.trusted(
        rows=len(x), columns=x.shape[1], left_out=left_out, copies=copies, contrast=contrast, spread=spread,
        hubs=hubness(found, len(x)), dimension=dimension, at_least=at_least,
    )  # fmt: skip


def _distinct(X: Any, weight: Any, most: int) -> tuple[Array, int, float]:
    x = rows(X, None, "distance_diagnostics")
    refuse_infinite(x, "distance_diagnostics")
    w = weights(weight, len(x), "distance_diagnostics")
    there = np.ones(len(x), dtype=bool) if w is None else w > 0
    gaps = np.isnan(x).any(axis=1)
    whole = x[there & ~gaps]
    once = np.unique(whole, axis=0)
    pick: Index = np.unique(np.linspace(0, max(len(once) - 1, 0), min(len(once), most)).astype(np.intp))
    return once[pick], int((there & gaps).sum()), 1.0 - len(once) / max(len(whole), 1)


def _to_all(search: NeighborSearch) -> tuple[float, float]:
    """Median contrast and coefficient of variation of distances, of a sample of rows to all others."""
    n = len(search)
    at = np.unique(np.linspace(0, n - 1, min(n, QUERIES)).astype(np.intp))
    away, _ = search.nearest_others(n - 1, at)
    contrast = float(np.median(relative_contrast(away[:, 0], away[:, -1])))
    return contrast, float(np.mean(away.std(axis=1) / np.maximum(away.mean(axis=1), 1e-300)))


def _with_bias(found: Dimension, n: int, k: int) -> Dimension:
    """The estimate with its simulated bias for n Gaussian rows of as many independent columns as part of the error."""
    columns = max(round(found.value), 1)
    x = np.random.default_rng(0).standard_normal((n, columns))
    search = NeighborSearch.of(x)
    lacks = columns - _dimension(search, search.nearest_others(k)[0]).value
    return Dimension(found.value, float(np.hypot(found.error, lacks * found.value / columns)))


def _dimension(search: NeighborSearch, away: Array) -> Dimension:
    """From rows in tree order, where neighbors are adjacent; rows at distance 0 are dropped."""
    order = _Tree.order_of(np.array(search.points))
    away = away[order]
    apart = away[:, 0] > 0
    if apart.sum() < 2 or away.shape[1] < 2:
        return Dimension(0.0, np.inf)
    return intrinsic_dimension(away[apart])
