"""Rules for the bin edges of histograms: Sturges, Doane, Knuth and leave-one-out.

Doane's and Sturges' rules use the distinct values of a column. "knuth" and "leave-one-out" score the counts of the
bins, and no bin is narrower than the resolution of rounded values. "leave-one-out" leaves equal values out together,
whether they come as copies or as a weight: a copy would keep the bin of its own value full. Of rounded numbers, where
equal values are no copies, it leaves out one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import gammaln

from likely.core.arrays import Array, check_option, refuse_infinite, weights
from likely.core.errors import DomainError, sentence

BinRule = Literal["doane", "sturges", "knuth", "leave-one-out"]
MOST = 200  # largest number of bins of a column that a search tries
LEAST_WIDTH = 1e-8  # of its size: half the width of the one bin of a constant column
HALF = 0.5  # pseudo-counts per bin when a row is left out: Jeffreys' prior
LEVELS = 2000  # distinct values of a rounded column up to which bins hold integers of them


def edges_for(x: Array, bins: Any, joint: bool = False, weight: Any = None) -> list[Array]:
    """Edges of each column of rows (n, d): by the name of a rule, a number of bins, or edges that are given."""
    refuse_infinite(x, "Histogram")
    d, w = x.shape[1], weights(weight, len(x), "Histogram")
    if w is not None:
        w = w if w.ndim == 1 else w.sum(axis=1)
        x, w = x[w > 0], w[w > 0]  # a row without weight is not there
    if isinstance(bins, list | tuple) and len(bins) == d and all(np.ndim(b) == 1 for b in bins):
        return [np.asarray(b, dtype=np.float64) for b in bins]
    if np.ndim(bins) == 1:
        if d == 1 or np.size(bins) != d or np.asarray(bins).dtype.kind not in "iu":
            return [np.asarray(bins, dtype=np.float64)] * d
        return [_edges(c, int(b), w) for c, b in zip(x.T, bins, strict=True)]
    return [_edges(c, bins, w) for c in x.T]


def _edges(column: Array, bins: Any, weight: Array | None) -> Array:
    there = ~np.isnan(column)
    values, place = np.unique(column[there], return_inverse=True)
    if isinstance(bins, str) and bins in SCORES and len(values) > 1:
        counts = np.bincount(np.ravel(place), None if weight is None else weight[there], len(values))
        return _best(values, counts.astype(np.float64), SCORES[bins])
    return _even(values, _number(bins, values))


def _number(bins: Any, values: Array) -> int:
    if isinstance(bins, int | np.integer):
        if bins < 1:
            raise DomainError(sentence("Histogram", "at least one bin is needed", bins))
        return int(bins)
    check_option(bins, BinRule, "Histogram", "bins", "a number, or edges")
    return max(1, RULES[bins](values)) if len(values) > 1 else 1


def _even(values: Array, cells: int) -> Array:
    """Edges of equal-width bins from the smallest value to the largest."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = float(values[0]), float(values[-1])
    edges = np.linspace(low, high, cells + 1) if np.isfinite(high - low) else np.array([low, high])
    if high > low and (np.diff(edges) > 0).all():
        return edges
    wide = LEAST_WIDTH * (max(abs(low), abs(high)) or 1.0)
    return np.array([low - wide, high + wide])


def _sturges(values: Array) -> int:
    return int(np.ceil(np.log2(len(values)))) + 1


def _doane(values: Array) -> int:
    """Sturges' rule with more bins for skewed values (Doane 1976)."""
    n = len(values)
    z = values / np.abs(values).max() - (values / np.abs(values).max()).mean()
    deviation = np.sqrt((z**2).mean())
    if n < 3 or not deviation > 0:
        return _sturges(values)
    skew = abs(((z / deviation) ** 3).mean())
    unit = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return int(np.ceil(1 + np.log2(n) + np.log2(1 + skew / unit)))


def _best(values: Array, counts: Array, score: Callable[[_Counts, float], float]) -> Array:
    """The edges with the best score; of equal scores the fewest bins."""
    span, gap = float(values[-1] - values[0]), float(np.diff(values).min())
    if not (np.isfinite(span) and gap > 0):
        return _even(values, 1)
    levels = _levels(values, counts)
    candidates = list(_candidate_edges(values, levels))
    width = [float((edges[-1] - edges[0]) / (len(edges) - 1)) for edges in candidates]
    cells = (np.clip(np.searchsorted(e, values, side="right") - 1, 0, len(e) - 2) for e in candidates)
    counted = (_Counts.of(counts, c, len(e) - 1, levels) for c, e in zip(cells, candidates, strict=True))
    scores = [score(c, w / width[0]) for c, w in zip(counted, width, strict=True)]
    return candidates[int(np.argmax(scores))]


class _Counts(NamedTuple):
    """Counts of the bins; and for each value its count, that of its bin, and the rows that are left out with one."""

    cells: Array  # (C,)
    rows: Array  # (m,)
    here: Array  # (m,)
    out: Array  # (m,)

    @classmethod
    def of(cls, counts: Array, cell: Any, cells: int, levels: int) -> _Counts:
        per_bin = np.bincount(cell, counts, cells).astype(np.float64)
        return cls(per_bin, counts, per_bin[cell], np.minimum(counts, 1.0) if levels else counts)


def _candidate_edges(values: Array, levels: int) -> Iterator[Array]:
    """Edges of more and more equal-width bins; of rounded values, equally many in each bin."""
    span, gap = float(values[-1] - values[0]), float(np.diff(values).min())
    if levels:
        resolution = span / (levels - 1)
        sizes = {-(-levels // q): q for q in range(levels, 0, -1)}  # of equal numbers of bins the finest
        for cells, q in sizes.items():
            if cells <= MOST:
                yield values[0] - 0.5 * resolution + q * resolution * np.arange(cells + 1)
        return
    for cells in range(1, int(min(MOST, len(values), max(span / gap, 1.0))) + 1):
        edges = _even(values, cells)
        if len(edges) == cells + 1:
            yield edges


def _levels(values: Array, counts: Array) -> int:
    """Number of points of a regular grid that holds all values, if rows repeat; else 0."""
    steps = (values - values[0]) / float(np.diff(values).min())
    if not steps[-1] < LEVELS or not counts.sum() > len(values):
        return 0
    steps *= round(float(steps[-1])) / steps[-1]
    return round(float(steps[-1])) + 1 if (np.abs(steps - np.rint(steps)) < 1e-3).all() else 0


def _knuth(counted: _Counts, width: float) -> float:
    """Log-posterior of a number of bins (Knuth 2006), up to a constant."""
    counts, n, cells = counted.cells, counted.cells.sum(), len(counted.cells)
    value = -n * np.log(width) + gammaln(0.5 * cells) - cells * gammaln(0.5) - gammaln(n + 0.5 * cells)
    return float(value + gammaln(counts + 0.5).sum())


def _left_out(counted: _Counts, width: float) -> float:
    """Leave-one-out log-likelihood, with half of what is left out as pseudo-count per bin; up to a constant."""
    n, half = counted.cells.sum(), HALF * counted.out.mean()
    others = np.maximum(counted.here - counted.out, 0.0) + half
    total = np.maximum(n - counted.out, 0.0) + half * len(counted.cells)
    return float(counted.rows @ np.log(others / total) - n * np.log(width))


RULES: dict[str, Callable[[Array], int]] = {"doane": _doane, "sturges": _sturges}
SCORES: dict[str, Callable[[_Counts, float], float]] = {"knuth": _knuth, "leave-one-out": _left_out}
