"""Can distances be trusted here: are neighbors nearer than strangers, and how many dimensions are there really?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, refuse_infinite, rows, weights
from likely.core.errors import DataError, sentence
from likely.core.value import Value
from likely.metrics.high_dimensional_geometry import Dimension, Hubness, hubness, intrinsic_dimension, relative_contrast
from likely.neighbors.nearest_neighbors import NeighborSearch, _Tree

MOST = 5000  # rows that are looked at: spread evenly over all
QUERIES = 200  # rows whose distances to all others are taken
TOLD = 8.0  # dimensions beyond which a few thousand rows are too few to tell how many there are


@dataclass(frozen=True, eq=False)
class HighDimensions(Value):
    """What the distances between rows are like; `str` or `verdict` say what it means.

    >>> import likely as lk, numpy as np
    >>> found = lk.high_dimensions(np.random.default_rng(0).normal(size=(300, 2)))
    >>> found.columns, found.at_least, bool(abs(found.dimension.value - 2) < 0.5)
    (2, False, True)
    """

    rows: int  # distinct complete rows that were looked at
    columns: int
    left_out: int  # rows with gaps
    copies: float  # share of rows that repeat another one
    contrast: float  # median of (farthest − nearest) / nearest
    spread: float  # deviation of distances over their mean; 1/√(2D) or so for D independent columns
    hubs: Hubness
    dimension: Dimension  # too small where it is large, and then `at_least` so many
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """What it means, in a sentence or two."""
        m, error = self.dimension
        told = f"{self.columns} columns vary like {m:.1f} ± {2 * error:.1g} independent ones"
        if self.at_least:
            told = f"{self.columns} columns vary like {m:.0f} independent ones or more: neighbors are too far to tell"
        if self.contrast < 1.0:
            found = (
                f"Distances say little: the farthest row is only {1 + self.contrast:.1f} times as far as the nearest"
            )
            advice = "; use fewer columns, or a model with a covariance"
        elif self.hubs.skewness > 2.0:
            found = f"Some rows are everybody's neighbor ({self.hubs.largest:.0f} times as often as the mean)"
            advice = ", others nobody's; edit or condense rows, or use another metric"
        else:
            found, advice = f"Neighbors are near: strangers are up to {1 + self.contrast:.0f} times as far", ""
        notes = f" {self.left_out} rows with gaps were left out." if self.left_out else ""
        return f"{found}{advice}. {told}.{notes}"


def high_dimensions(
    X: Any, *, n_neighbors: int = 10, metric: Any = "scaled", p: float = 2.0, weight: Any = None, most: int = MOST
) -> HighDimensions:
    """A look at the geometry of rows (n, d): contrast, hubs, intrinsic dimension   (Ney 3.2, Herbst 1.4).

    Copies of a row count once and rows with gaps not at all; of more than `most` rows, so many spread evenly are
    looked at. Columns are divided by their deviation unless another `metric` is named. k neighbors show hubs and
    dimension. The estimate of the dimension is too small for Gaussian rows, the more so the more dimensions there are:
    what it lacks for as many rows of independent columns is simulated and part of its error; beyond 8 dimensions it is
    a lower bound (`at_least`).

    >>> rng = np.random.default_rng(0)
    >>> flat = rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 30))  # a plane in thirty dimensions
    >>> report = high_dimensions(flat)
    >>> round(report.dimension.value), report.columns
    (2, 30)
    """
    x, left_out, copies = _distinct(X, weight, most)
    if len(x) < 3:
        raise DataError(sentence("high_dimensions", "at least 3 distinct rows without gaps are needed", len(x)))
    search = NeighborSearch.of(x, metric, p=p, whose="high_dimensions")
    away, found = search.nearest_others(int(min(max(n_neighbors, 2), len(x) - 1)), whose="high_dimensions")
    contrast, spread = _to_all(search)
    dimension = _dimension(search, away)
    at_least = dimension.value > TOLD
    if not at_least:
        dimension = _with_bias(dimension, len(x), away.shape[1])
    return HighDimensions.trusted(
        rows=len(x), columns=x.shape[1], left_out=left_out, copies=copies, contrast=contrast, spread=spread,
        hubs=hubness(found, len(x)), dimension=dimension, at_least=at_least,
    )  # fmt: skip


def _distinct(X: Any, weight: Any, most: int) -> tuple[Array, int, float]:
    x = rows(X, None, "high_dimensions")
    refuse_infinite(x, "high_dimensions")
    w = weights(weight, len(x), "high_dimensions")
    there = np.ones(len(x), dtype=bool) if w is None else w > 0
    gaps = np.isnan(x).any(axis=1)
    whole = x[there & ~gaps]
    once = np.unique(whole, axis=0)
    pick: Index = np.unique(np.linspace(0, max(len(once) - 1, 0), min(len(once), most)).astype(np.intp))
    return once[pick], int((there & gaps).sum()), 1.0 - len(once) / max(len(whole), 1)


def _to_all(search: NeighborSearch) -> tuple[float, float]:
    """Median contrast and relative spread of distances, of some rows to all others."""
    n = len(search)
    at = np.unique(np.linspace(0, n - 1, min(n, QUERIES)).astype(np.intp))
    away, _ = search.nearest_others(n - 1, at)
    contrast = float(np.median(relative_contrast(away[:, 0], away[:, -1])))
    return contrast, float(np.mean(away.std(axis=1) / np.maximum(away.mean(axis=1), 1e-300)))


def _with_bias(found: Dimension, n: int, k: int) -> Dimension:
    """With what the estimate lacks for n Gaussian rows of about as many independent columns as part of its error."""
    columns = max(round(found.value), 1)
    x = np.random.default_rng(0).standard_normal((n, columns))
    search = NeighborSearch.of(x)
    lacks = columns - _dimension(search, search.nearest_others(k)[0]).value
    return Dimension(found.value, float(np.hypot(found.error, lacks * found.value / columns)))


def _dimension(search: NeighborSearch, away: Array) -> Dimension:
    """From rows in the order of a tree, where neighbors stand together; without those the metric cannot tell apart."""
    order = _Tree.order_of(np.array(search.points))
    away = away[order]
    apart = away[:, 0] > 0
    if apart.sum() < 2 or away.shape[1] < 2:
        return Dimension(0.0, np.inf)
    return intrinsic_dimension(away[apart])
