"""Labels: what a table's target says, checked that it can be learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.data.cells import are_codes, is_whole, printed, shown
from likely.errors import DataError, sentence

Labels = NDArray[Any]

MOST_CLASSES = 200
MOST_FRACTIONS = 20  # classes that are numbers with fractions: more of them are a measurement


def label_numbers(column: pl.Series) -> pl.Series | None:
    """Labels that are all numbers, as numbers; None where they are words (or a code such as 007)."""
    if column.dtype.is_numeric():
        return column.fill_nan(None) if column.dtype.is_float() else column
    if column.dtype != pl.String or are_codes(column):
        return None
    values = column.cast(pl.Float64, strict=False)
    return None if values.null_count() > column.null_count() else values


def labels(column: pl.Series, classes: Sequence[Any] | None = None) -> Labels:
    """Labels without gaps as an array: whole numbers as int64, anything else as text.

    `classes` of a learnt model decide where given: labels that spell one of them are that one.

    >>> labels(pl.Series(["1", "2.0"])).tolist(), labels(pl.Series(["a", "1"])).tolist()
    ([1, 2], ['a', '1'])
    """
    if classes is not None and not all(isinstance(one, int | np.integer) for one in classes):
        return _spelt(column, [str(one) for one in classes])
    numbers = label_numbers(column)
    if numbers is None or not is_whole(numbers):
        return _text(column)
    whole = numbers.cast(pl.Int64, strict=False)  # none where infinite, or beyond 64 bits
    return _text(column) if whole.null_count() else whole.to_numpy().copy()


def refuse_unlearnable(column: pl.Series, whose: str, many: bool = False) -> None:
    """At least two classes, and not a measurement: `many` says that the user insists on categories."""
    present = column.drop_nulls()
    distinct = present.n_unique()
    if not len(present):
        raise DataError(sentence(whose, "labels are needed", "none: every cell is missing"))
    if distinct == 1:
        raise DataError(sentence(whose, "two classes or more are needed", f'one, "{shown(present[0])}"'))
    if not many:
        _refuse_measurement(present, distinct, whose)


def _refuse_measurement(present: pl.Series, distinct: int, whose: str) -> None:
    numbers = label_numbers(present)
    each_its_own = len(present) >= 10 and distinct > 0.9 * len(present)
    fractions = numbers is not None and distinct > MOST_FRACTIONS and not is_whole(numbers)
    if not (distinct > MOST_CLASSES or each_its_own or fractions):
        return
    kind = "a regression target" if numbers is not None else "an identifier or text"
    expected = f"classes are needed, with several rows each, and this looks like {kind}"
    remedy = f"choose another target, or insist with --as {present.name}=category"
    raise DataError(sentence(whose, expected, f"{distinct} different values in {len(present)} rows", remedy))


def _spelt(column: pl.Series, classes: list[str]) -> Labels:
    """Text labels; a number that spells a class another way (2 for 2.0) becomes that class."""
    by_value = {_value(one): one for one in classes}
    text = _text(column)
    known = set(classes)
    new = {one: by_value.get(_value(one), one) for one in set(text.tolist()) - known}
    return np.array([new.get(one, one) for one in text.tolist()], dtype=str) if new else text


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _text(column: pl.Series) -> Labels:
    words = printed(column) if column.dtype.is_temporal() else column.cast(pl.String)
    return np.array(words.to_list(), dtype=str)
