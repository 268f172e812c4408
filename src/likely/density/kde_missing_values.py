"""Rows with gaps among rows that remember everything: what one lacks, the most similar other lends."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DataError, sentence
from likely.core.warnings import tell
from likely.neighbors.distinct_rows import DistinctRows

STRIP = 512  # rows with one pattern that look for a donor at a time


def completed(stats: DistinctRows, whose: str) -> DistinctRows:
    """Distinct rows without gaps; rows of which nothing was seen say nothing, and what became a copy is merged."""
    if len(stats) and stats.gaps is None:
        return stats
    rows = stats.values
    some = ~np.isnan(rows).all(axis=1)
    if not some.any():
        raise DataError(sentence(whose, "at least one row with weight is needed", "none of which anything was seen"))
    labels = stats.labels[some]
    return stats._merged(filled(rows[some], labels, whose), stats.weight[some], labels, stats.members)


def filled(rows: Array, labels: Index, whose: str) -> Array:
    """Rows (n, d) without gaps: each takes what it lacks from the nearest row, in what both have seen, that has it.

    Distances are in deviations of the columns. Rows of the same label lend first; where none has all that is lacking,
    rows of the others; then each column lends its mean (0 where nobody ever saw it).

    >>> filled(np.array([[0.0, 1.0], [5.0, 9.0], [4.0, np.nan]]), np.zeros(3, int), "rows")
    array([[0., 1.],
           [5., 9.],
           [4., 9.]])
    """
    gaps = np.isnan(rows)
    if not gaps.any():
        return rows
    lacking = np.flatnonzero(gaps.any(axis=1))
    many = f"{len(lacking)} distinct rows with gaps take" if len(lacking) > 1 else "one row with gaps takes"
    tell(f"{whose}: {many} what is lacking from the most similar rows")
    middle, unit = _columns(rows, gaps)
    white = (rows - middle) / unit
    out = np.where(gaps, middle, rows)
    kinds, which = np.unique(gaps[lacking], axis=0, return_inverse=True)
    for i, gap in enumerate(kinds):
        mine = lacking[np.ravel(which) == i]
        able = np.flatnonzero(~gaps.any(axis=1))
        for k in np.unique(labels[mine]):
            asking = mine[labels[mine] == k]
            lenders = able[labels[able] == k] if (labels[able] == k).any() else able
            if len(lenders):
                _lend(out, rows, white, asking, lenders, gap)
    return out


def _columns(rows: Array, gaps: Mask) -> tuple[Array, Array]:
    """Mean and deviation of what was seen of each column; 0 and 1 where nothing was."""
    with np.errstate(all="ignore"):
        seen = (~gaps).sum(axis=0)
        mean = np.where(seen > 0, np.where(gaps, 0.0, rows).sum(axis=0) / np.maximum(seen, 1), 0.0)
        variance = (np.where(gaps, 0.0, rows - mean) ** 2).sum(axis=0) / np.maximum(seen, 1)
    return mean, np.where((variance > 0) & np.isfinite(variance), np.sqrt(variance), 1.0)


def _lend(out: Array, rows: Array, white: Array, asking: Index, lenders: Index, gap: Mask) -> None:
    seen = np.flatnonzero(~gap)
    theirs = white[np.ix_(lenders, seen)]
    size = np.einsum("ij,ij->i", theirs, theirs)
    for start in range(0, len(asking), STRIP):
        part = asking[start : start + STRIP]
        nearest = lenders[(size - 2.0 * (white[np.ix_(part, seen)] @ theirs.T)).argmin(axis=1)]
        out[np.ix_(part, np.flatnonzero(gap))] = rows[np.ix_(nearest, np.flatnonzero(gap))]
