"""Imputation of missing values in training rows from the most similar complete row."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DataError, sentence
from likely.core.warnings import warn
from likely.neighbors.distinct_rows import DistinctRows

STRIP = 512  # rows of one pattern of missing values per block of distances


def completed(stats: DistinctRows, whose: str) -> DistinctRows:
    """Distinct rows with missing values imputed; rows without any observed entry are dropped, new copies are merged."""
    if len(stats) and stats.missing is None:
        return stats
    rows = stats.values
    observed = ~np.isnan(rows).all(axis=1)
    if not observed.any():
        raise DataError(sentence(whose, "at least one row with weight and an observed entry is needed", "none"))
    labels = stats.labels[observed]
    return stats.merged(filled(rows[observed], labels, whose), stats.weight[observed], labels, stats.members)


def filled(rows: Array, labels: Index, whose: str) -> Array:
    """Rows (n, d) with missing values imputed from the nearest complete row (hot-deck imputation).

    Distances are over the observed columns, in standard deviations. Donors are the complete rows of the same label;
    where there are none, those of other labels; then the mean of each column (0 where it was never observed).

    >>> filled(np.array([[0.0, 1.0], [5.0, 9.0], [4.0, np.nan]]), np.zeros(3, int), "rows")
    array([[0., 1.],
           [5., 9.],
           [4., 9.]])
    """
    missing = np.isnan(rows)
    if not missing.any():
        return rows
    incomplete = np.flatnonzero(missing.any(axis=1))
    many = f"{len(incomplete)} distinct rows with missing values take"
    take = many if len(incomplete) > 1 else "one row with missing values takes"
    warn(f"{whose}: {take} them from the most similar rows")
    mean, deviation = _columns(rows, missing)
    white = (rows - mean) / deviation
    out = np.where(missing, mean, rows)
    complete = np.flatnonzero(~missing.any(axis=1))
    patterns, which = np.unique(missing[incomplete], axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        receivers = incomplete[np.ravel(which) == i]
        for k in np.unique(labels[receivers]):
            own = complete[labels[complete] == k]
            donors = own if len(own) else complete
            if len(donors):
                _impute(out, rows, white, receivers[labels[receivers] == k], donors, pattern)
    return out


def _columns(rows: Array, missing: Mask) -> tuple[Array, Array]:
    """Mean and standard deviation of the observed entries of each column; 0 and 1 where there are none."""
    with np.errstate(all="ignore"):
        count = (~missing).sum(axis=0)
        mean = np.where(count > 0, np.where(missing, 0.0, rows).sum(axis=0) / np.maximum(count, 1), 0.0)
        variance = (np.where(missing, 0.0, rows - mean) ** 2).sum(axis=0) / np.maximum(count, 1)
    return mean, np.where((variance > 0) & np.isfinite(variance), np.sqrt(variance), 1.0)


def _impute(out: Array, rows: Array, white: Array, receivers: Index, donors: Index, missing: Mask) -> None:
    """Fill in the missing columns of rows from their nearest donors in the observed columns."""
    observed = np.flatnonzero(~missing)
    given = white[np.ix_(donors, observed)]
    size = np.einsum("ij,ij->i", given, given)
    for start in range(0, len(receivers), STRIP):
        part = receivers[start : start + STRIP]
        nearest = donors[(size - 2.0 * (white[np.ix_(part, observed)] @ given.T)).argmin(axis=1)]
        out[np.ix_(part, np.flatnonzero(missing))] = rows[np.ix_(nearest, np.flatnonzero(missing))]
