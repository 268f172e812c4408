"""Observation times: validation, and time steps that are equal up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.core.warnings import warnings_discarded

DATES = "subtract a date and divide by a unit, as in (t - t[0]) / np.timedelta64(1, 'D')"


def clock(times: Any, whose: str) -> Array:
    """Validated nondecreasing times (T,); equal ones are two observations at once.

    >>> clock([0, 1, 1, 2.5], "LinearSDE").tolist()
    [0.0, 1.0, 1.0, 2.5]
    """
    t = moments(times, whose)
    back = np.flatnonzero(np.diff(t) < 0)
    if len(back):
        i = int(back[0])
        raise DataError(sentence(whose, "times must not decrease", f"{t[i + 1]:g} after {t[i]:g}", "sort rows by time"))
    return t


def moments(times: Any, whose: str) -> Array:
    """Times (m,) in any order, as finite numbers."""
    t = np.asarray(times)
    if t.dtype.kind in "mM" or (t.dtype == object and t.size and hasattr(t.flat[0], "year")):
        raise DataError(sentence(whose, "times must be numbers", "dates", DATES))
    try:
        t = t.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(sentence(whose, "times must be numbers", f"an array of {t.dtype}")) from error
    if t.ndim != 1:
        raise ShapeError(sentence(whose, "times must have shape (T,)", t.shape))
    if not np.isfinite(t).all():
        bad = int(np.flatnonzero(~np.isfinite(t))[0])
        raise DataError(sentence(whose, "times must be finite", f"{t[bad]} at row {bad}", "leave such rows out"))
    return t


def clocks(times: Any, series: Ragged, whose: str) -> Ragged:
    """One time per frame of each sequence; one array (T,) serves all sequences of that length."""
    if not len(series):
        raise DataError(sentence(whose, "at least one series is needed", "none"))
    if is_one_clock(times, whose):
        times = [moments(times, whose)] * len(series)
    with warnings_discarded():  # times may be series with an index of their own
        times_of = Ragged.of(times)
    if len(times_of) != len(series) or (times_of.lengths != series.lengths).any():
        expected = f"one time for each frame of {len(series)} sequences"
        raise ShapeError(
            sentence(whose, expected, f"{times_of.lengths[:5].tolist()} for {series.lengths[:5].tolist()}")
        )
    return Ragged.from_list([clock(t, whose) for t in times_of])


def is_one_clock(times: Any, whose: str) -> bool:
    """True for one array of times, False for several."""
    if not hasattr(times, "__len__") or isinstance(times, str):
        expected = "times must be an array (T,), or a list of such arrays"
        raise ShapeError(sentence(whose, expected, type(times).__name__))
    return not isinstance(times, Ragged) and (not len(times) or np.ndim(next(iter(times))) == 0)


def steps_between(times_of: Ragged) -> tuple[Array, Index]:
    """The distinct time steps (m,), and the index of the step to each frame (T,), −1 for a first frame.

    Steps that agree within the rounding of the largest time are one, their mean.

    >>> steps, which = steps_between(Ragged.of([np.arange(5) * 0.1, np.array([0.0, 2.0])]))
    >>> steps.round(12).tolist(), which.tolist()
    ([0.1, 2.0], [-1, 0, 0, 0, 0, -1, 1])
    """
    t = np.asarray(times_of.values, dtype=np.float64)
    which = np.full(len(t), -1, dtype=np.intp)
    later = np.ones(len(t), dtype=bool)
    later[times_of.offsets[:-1][times_of.lengths > 0]] = False
    found, back, counts = np.unique(np.diff(t, prepend=0.0)[later], return_inverse=True, return_counts=True)
    group = _alike(found, 4.0 * np.spacing(np.abs(t).max(initial=0.0)))
    which[later] = group[back]
    total = np.bincount(group, counts).astype(np.float64)
    return np.bincount(group, counts * found) / total if len(found) else found, which


def _alike(found: Array, near: float) -> Index:
    """Index of the group of nearly equal values in sorted steps; 0 is a group of its own."""
    new = (np.diff(found, prepend=-np.inf) > near) | (np.concatenate([[-1.0], found[:-1]]) == 0.0)
    return np.cumsum(new) - 1
