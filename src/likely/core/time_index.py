"""Checks of time indices: models of sequences assume equally spaced frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.warnings import warn

KINDS = ("DatetimeIndex", "TimedeltaIndex", "PeriodIndex")  # in pandas; a polars frame has no index
JITTER = 0.1  # tolerance relative to the median step: clocks are not exact
REMEDY = (
    "frames are assumed to be equally spaced: x.asfreq(...) inserts NaN for missing frames, and LinearSDE models"
    " irregularly spaced measurements"
)


def warn_of_uneven(sequences: Iterable[tuple[Any, Callable[[], str]]], whose: str) -> None:
    """Warn of the first sequence with an unevenly spaced time index; each comes with a function that returns its name.

    Equal steps are even, up to a tenth, and so is any frequency that pandas can infer: month starts, business days.

    >>> import pandas as pd, warnings
    >>> day = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-09"])
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     warn_of_uneven([(pd.Series([1.0, 2.0, 1.0, 3.0], day), lambda: "x")], "test")
    >>> str(heard[0].message)[:79]
    'test: the time index of x is uneven: a step of 6 days 00:00:00 after 2024-01-03'
    """
    for s, which in sequences:
        index: Any = getattr(s, "index", None)
        if type(index).__name__ not in KINDS or len(index) < 3:
            continue
        odd = _odd_step(index)
        if odd is not None:
            text = _step_words(index, odd)
            warn(f"{whose}: the time index of {which()} is uneven: {text}; {REMEDY}")
            return


def _odd_step(index: Any) -> int | None:
    """The index of the step that differs most from the median; None if the steps are even."""
    if index.hasnans:
        return int(np.flatnonzero(np.asarray(index.isna()))[0])
    steps: Array = np.diff(np.asarray(index.asi8)).astype(np.float64)
    if (steps <= 0).any():
        return int(steps.argmin())
    away = np.abs(steps - np.median(steps))
    if (away <= JITTER * np.median(steps)).all() or _has_frequency(index):
        return None
    return int(away.argmax())


def _has_frequency(index: Any) -> bool:
    """Whether pandas infers a calendar frequency."""
    return type(index).__name__ == "DatetimeIndex" and type(index)(index, freq="infer").freq is not None


def _step_words(index: Any, at: int) -> str:
    before, after = index[at], index[min(at + 1, len(index) - 1)]
    if before != before or after != after:  # NaT
        return "a time is missing"
    if after <= before:
        return f"{after} comes after {before} (x.sort_index() puts it in order)"
    step = after - before
    return f"a step of {getattr(step, 'n', step)} after {before}"
