"""A singular estimate is lifted just enough to be a density, relative to each column's own scale, and says so."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, Mask
from likely.errors import DataError, sentence
from likely.families.moments import ColumnMoments, Moments
from likely.maths import spd

ROUNDING = 1e-14  # a standard deviation below this share of a column's size is what sums leave of a constant
TINY, HUGE = 1e-290, 1e300  # variances outside have lost digits to the ends of the number range


def column_floor(pooled: Moments | ColumnMoments) -> tuple[Array, Mask]:
    """Least variance of each column, and which columns are constant over all data.

    A column that is constant over all data gets a standard deviation of 1e-8 of its size (1e-8 if it
    is all zero); one that is constant for a member only, 1e-9 of the variance that all data show.
    """
    variance, size = pooled.variance, np.abs(pooled.mean)
    with np.errstate(over="ignore"):
        least = np.where(size > 0, 1e-8 * size, 1e-8) ** 2
        constant = variance <= np.where(size > 0, ROUNDING * size, 0.0) ** 2
    spread = np.where(constant, least, variance)
    odd = np.flatnonzero((spread < TINY) | (spread > HUGE))
    if len(odd):
        expected = f"the squared spread of column {odd[0]} must lie between {TINY:g} and {HUGE:g}"
        raise DataError(sentence("Gaussian", expected, float(spread[odd[0]]), "rescale the column"))
    return np.where(constant, least, 1e-9 * variance), constant


def lift(spread: Array, k: int, floor: tuple[Array, Mask], kind: str) -> tuple[int, str] | None:
    """Lift spread[k] in place to a safe density; say what was done, or None if nothing had to be."""
    least, constant = floor
    d = len(least)
    variance = np.diagonal(spread[k]) if kind == "full" else np.broadcast_to(spread[k], (d,))
    low: Mask = variance < least if kind != "spherical" else np.full(d, variance[0] < least.min())
    note = ""
    if low.any():
        note = _low_note(low, constant)
        if kind == "full":
            spread[k][np.diag_indices(d)] = np.where(low, least, variance)
        elif kind == "diagonal":
            spread[k] = np.where(low, least, variance)
        else:
            spread[k] = least.min()
    if kind == "full" and spd.cholesky(spread[k]) is None:
        spread[k], rank = spd.repaired(spread[k])
        note += (
            f"the covariance is singular (rank {rank} of {d}: columns depend on each other, or there are too few rows);"
        )
        note += " the missing directions got 1e-9 of a column's variance; "
    return (k, note + 'a prior avoids this (prior="weak")') if note else None


def _low_note(low: Mask, constant: Mask) -> str:
    always, here = np.flatnonzero(low & constant), np.flatnonzero(low & ~constant)
    note = ""
    if len(always):
        which = ", ".join(map(str, always))
        note += f"column {which} is constant over all data: its standard deviation was set to 1e-8 of its size; "
    if len(here):
        note += (
            f"column {', '.join(map(str, here))} is constant here: its variance was set to 1e-9 of that of all data; "
        )
    return note
