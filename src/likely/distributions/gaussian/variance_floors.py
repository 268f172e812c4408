"""A singular estimate is lifted just enough to be a density, relative to each column's own scale, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DataError, about_columns, sentence
from likely.core.warnings import tell
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.unobserved_columns import never_observed
from likely.numerics import spd

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
    never = ~(pooled.observed > 0)
    least, constant = np.where(never, 1.0, least), constant & ~never  # nothing is known: a standard normal
    spread = np.where(constant | never, least, variance)
    odd = np.flatnonzero((spread < TINY) | (spread > HUGE))
    if len(odd):
        expected = f"the squared spread of column {odd[0]} must lie between {TINY:g} and {HUGE:g}"
        raise DataError(sentence("Gaussian", expected, float(spread[odd[0]]), "rescale the column"))
    return np.where(constant | never, least, 1e-9 * variance), constant


FLAT = 1e-8  # of a column's variance: directions in which all rows together spread less have no spread
LEAST = 1e-7  # of it: what they get, so much that a prior adds nothing to speak of


def flats_lifted(stats: Any) -> Any:
    """Statistics in which directions that are flat over all data scatter a little, row by row, alike for all members.

    Such are constant columns, and sums of other columns. With a prior alone, a member's variance there would be what
    the prior makes of its number of rows: directions that say nothing would draw rows to large members, and let
    any number of parts seem better than one. Where gaps were filled by a model, columns that depend on each other may
    be its own work, and change from pass to pass: then constant columns alone are lifted, so that EM never falls.
    """
    pooled = stats.pooled()
    full = isinstance(stats, Moments)
    flat = full and not getattr(stats, "filled", False) and _has_flats(pooled)
    if (np.broadcast_to(pooled.variance, pooled.shift.shape) > 0).all() and not flat:
        return stats
    least, constant = column_floor(pooled)
    if not full:
        add = np.where(constant, least, 0.0)
        return stats.replace(scatter=stats.scatter + stats.weight * add) if constant.any() else stats
    lifted = np.where(constant, least, LEAST * pooled.variance if flat else 0.0)
    scatter = np.array(stats.scatter)
    at = np.flatnonzero(constant)
    scatter[..., at, :] = scatter[..., :, at] = 0.0
    i = np.arange(len(lifted))
    scatter[..., i, i] += stats.weight[..., None] * lifted
    return stats.replace(scatter=scatter)


def _has_flats(pooled: Moments) -> bool:
    """True if the columns that vary depend on each other."""
    variance = np.diagonal(pooled.scatter)
    at = np.flatnonzero(variance > 0)
    unit = np.sqrt(variance[at])
    with np.errstate(all="ignore"):
        R = pooled.scatter[np.ix_(at, at)] / unit[:, None] / unit
    R[np.diag_indices(len(at))] = 1.0 - FLAT
    return bool(len(at) and spd.cholesky(np.ascontiguousarray(R)) is None)


def warn_of_unseen(stats: Moments | ColumnMoments, prior: Any, whose: str = "Gaussian") -> None:
    """A column that was observed once or never has no spread of its own to learn: say so."""
    seen = stats.observed.reshape(-1, stats.shift.shape[-1]).sum(axis=0)
    total = np.sum(stats.weight if isinstance(stats, Moments) else stats.rows)
    never, once = np.flatnonzero((seen == 0) & (total > 0)), np.flatnonzero((seen > 0) & (seen <= 1) & (total >= 2))
    if len(never):
        tell(never_observed(whose, never, prior))
    if len(once):
        its, it = ("its", "it") if len(once) == 1 else ("their", "them")
        rest = f"{its} spread cannot be learned; leave {it} out"
        tell(f"{whose}: {about_columns(once)} observed once only: {rest}")


def warn_of_constants(pooled: Moments | ColumnMoments, kind: str = "full") -> None:
    """A prior cannot give a constant column a spread that the data do not show: say what was done."""
    seen = pooled.observed > 0
    constant = np.flatnonzero(column_floor(pooled)[1] & seen)
    if len(constant):
        note = constant_note(constant)
        if kind == "spherical" and len(constant) < seen.sum():
            which = about_columns(constant)
            note = f"{which} constant over all data: the one variance of all columns is smaller for it"
        tell(f"Gaussian: {note}")


def constant_note(at: Index) -> str:
    """Warning text about columns that are constant over all data."""
    done = "its standard deviation was set to 1e-8 of its size"
    if len(at) > 1:
        done = "their standard deviations were set to 1e-8 of their sizes"
    return f"{about_columns(at)} constant over all data: {done}"


def lift(spread: Array, k: int, floor: tuple[Array, Mask], kind: str) -> str:
    """Lift spread[k] in place to a safe density; say what was done, nothing if nothing had to be."""
    least, constant = floor
    d = len(least)
    variance = np.diagonal(spread[k]) if kind == "full" else np.broadcast_to(spread[k], (d,))
    low: Mask = variance < least if kind != "spherical" else np.full(d, variance[0] < least.min())
    notes = []
    if low.any():
        notes += _low_notes(low, constant)
        if kind == "full":
            spread[k][np.diag_indices(d)] = np.where(low, least, variance)
        elif kind == "diagonal":
            spread[k] = np.where(low, least, variance)
        else:
            spread[k] = least.min()
    if kind == "full" and spd.cholesky(spread[k]) is None:
        spread[k], rank = spd.repaired(spread[k])
        notes.append(
            f"the covariance is singular (rank {rank} of {d}: columns depend on each other, or rows are too few): "
            "the missing directions got 1e-9 of a column's variance; a prior avoids this"
        )
    return "; ".join(notes)


def _low_notes(low: Mask, constant: Mask) -> list[str]:
    always, here = np.flatnonzero(low & constant), np.flatnonzero(low & ~constant)
    notes = [constant_note(always)] if len(always) else []
    if len(here):
        done = "its variance was" if len(here) == 1 else "their variances were"
        done += " set to 1e-9 of that of all data; a prior avoids this"
        notes.append(f"{about_columns(here)} constant here: {done}")
    return notes
