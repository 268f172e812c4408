"""Variance floors: singular covariance estimates are regularized relative to each column's scale, with a warning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DataError, sentence
from likely.core.warnings import Note, warn
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.unobserved_columns import never_observed
from likely.numerics import spd

ROUNDING = 1e-14  # a standard deviation below this share of a column's absolute value is rounding error of a constant
TINY, HUGE = 1e-290, 1e300  # variances outside lose digits to underflow or overflow


def column_floor(pooled: Moments | ColumnMoments) -> tuple[Array, Mask]:
    """Variance floor per column, and a mask of the columns that are constant over all data.

    A column that is constant over all data gets a standard deviation of 1e-8 of its absolute value (1e-8 if it is
    0); one that is constant within a member only, 1e-9 of its variance over all data.
    """
    variance, size = pooled.variance, np.abs(pooled.mean)
    with np.errstate(over="ignore"):
        least = np.where(size > 0, 1e-8 * size, 1e-8) ** 2
        constant = variance <= np.where(size > 0, ROUNDING * size, 0.0) ** 2
    never = ~(pooled.observed > 0)
    least, constant = np.where(never, 1.0, least), constant & ~never  # a column never observed: standard normal
    checked = np.where(constant | never, least, variance)
    outside = np.flatnonzero((checked < TINY) | (checked > HUGE))
    if len(outside):
        expected = f"the variance of column {outside[0]} must lie between {TINY:g} and {HUGE:g}"
        raise DataError(sentence("Gaussian", expected, float(checked[outside[0]]), "rescale the column"))
    return np.where(constant | never, least, 1e-9 * variance), constant


SINGULAR = 1e-8  # of a column's variance: directions with a smaller variance over all rows count as null space
LEAST = 1e-7  # of it: the variance that they get, large enough that a prior adds nothing noticeable


def regularized(stats: Any) -> Any:
    """Statistics with a small scatter added per row in the null space of the pooled covariance, equal for all members.

    The null space comes from constant columns, and from columns that are linear combinations of others. With a prior
    alone, the variance of a member there would depend on its number of rows only: directions without information
    would assign rows to large members, and any number of components would seem better than one. Where missing entries
    were filled by a model, linear dependence may come from that model and change from iteration to iteration: then
    only constant columns are regularized, so that EM remains monotone.
    """
    pooled = stats.pooled()
    full = isinstance(stats, Moments)
    rank_deficient = full and not getattr(stats, "filled", False) and _is_rank_deficient(pooled)
    if (np.broadcast_to(pooled.variance, pooled.shift.shape) > 0).all() and not rank_deficient:
        return stats
    least, constant = column_floor(pooled)
    if not full:
        add = np.where(constant, least, 0.0)
        return stats.replace(scatter=stats.scatter + stats.weight * add) if constant.any() else stats
    added = np.where(constant, least, LEAST * pooled.variance if rank_deficient else 0.0)
    scatter = np.array(stats.scatter)
    at = np.flatnonzero(constant)
    scatter[..., at, :] = scatter[..., :, at] = 0.0
    i = np.arange(len(added))
    scatter[..., i, i] += stats.weight[..., None] * added
    return stats.replace(scatter=scatter)


def _is_rank_deficient(pooled: Moments) -> bool:
    """True if the columns that vary are linearly dependent: their correlation matrix is singular."""
    variance = np.diagonal(pooled.scatter)
    at = np.flatnonzero(variance > 0)
    unit = np.sqrt(variance[at])
    with np.errstate(all="ignore"):
        R = pooled.scatter[np.ix_(at, at)] / unit[:, None] / unit
    R[np.diag_indices(len(at))] = 1.0 - SINGULAR
    return bool(len(at) and spd.cholesky(np.ascontiguousarray(R)) is None)


def warn_of_unobserved(stats: Moments | ColumnMoments, prior: Any, whose: str = "Gaussian") -> None:
    """Warn of columns that were observed once or never: their variance cannot be estimated."""
    counts = stats.observed.reshape(-1, stats.shift.shape[-1]).sum(axis=0)
    total = np.sum(stats.weight if isinstance(stats, Moments) else stats.rows)
    never = np.flatnonzero((counts == 0) & (total > 0))
    once = np.flatnonzero((counts > 0) & (counts <= 1) & (total >= 2))
    if len(never):
        warn(never_observed(whose, never, prior))
    if len(once):
        its, it = ("its", "it") if len(once) == 1 else ("their", "them")
        rest = f"{its} variance cannot be estimated; leave {it} out"
        warn(Note(whose, f"{{columns}} observed once only: {rest}", columns=tuple(once.tolist())))


def warn_of_constants(pooled: Moments | ColumnMoments, kind: str = "full") -> None:
    """Warn of columns that are constant over all data, and of the variance that they get."""
    has_values = pooled.observed > 0
    constant = np.flatnonzero(column_floor(pooled)[1] & has_values)
    if len(constant):
        note = constant_note(constant)
        if kind == "spherical" and len(constant) < has_values.sum():
            text = "{columns} constant over all data: this reduces the one variance of all columns"
            note = replace(note, text=text)
        warn(note)


def constant_note(at: Index, whose: str = "Gaussian") -> Note:
    """Warning about columns that are constant over all data."""
    done = "its standard deviation was set to 1e-8 of its size"
    if len(at) > 1:
        done = "their standard deviations were set to 1e-8 of their sizes"
    return Note(whose, f"{{columns}} constant over all data: {done}", columns=tuple(at.tolist()))


def raise_to_floor(covariance: Array, k: int, floor: tuple[Array, Mask], kind: str) -> list[Note]:
    """Regularize covariance[k] in place to a positive definite one; notes of what was done."""
    least, constant = floor
    d = len(least)
    variance = np.diagonal(covariance[k]) if kind == "full" else np.broadcast_to(covariance[k], (d,))
    low: Mask = variance < least if kind != "spherical" else np.full(d, variance[0] < least.min())
    notes = []
    if low.any():
        notes += _low_notes(low, constant)
        if kind == "full":
            covariance[k][np.diag_indices(d)] = np.where(low, least, variance)
        elif kind == "diagonal":
            covariance[k] = np.where(low, least, variance)
        else:
            covariance[k] = least.min()
    if kind == "full" and spd.cholesky(covariance[k]) is None:
        covariance[k], rank = spd.repaired(covariance[k])
        why = f"rank {rank} of {d}: columns depend on each other, or rows are too few"
        done = "its null space got 1e-9 of a column's variance; a prior avoids this"
        notes.append(Note("Gaussian", f"the covariance is singular ({why}): {done}"))
    return notes


def _low_notes(low: Mask, constant: Mask) -> list[Note]:
    always, here = np.flatnonzero(low & constant), np.flatnonzero(low & ~constant)
    notes = [constant_note(always)] if len(always) else []
    if len(here):
        done = "its variance was" if len(here) == 1 else "their variances were"
        done += " set to 1e-9 of that of all data; a prior avoids this"
        notes.append(Note("Gaussian", f"{{columns}} constant here: {done}", columns=tuple(here.tolist())))
    return notes
