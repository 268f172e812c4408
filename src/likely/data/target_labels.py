"""Class labels of a table's target column, with checks that they can be learned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.core.errors import DataError, sentence
from likely.core.warnings import warn
from likely.data.cells import are_codes, are_integers, as_kind, printed, shown

Labels = NDArray[Any]

MOST_CLASSES = 200
LONG_CODE = r"^[-+]?\d{16,}$"  # a float holds 15 digits: longer codes would become equal
FEW_ROWS = 5  # rows per number below which more than 20 of them are a regression target
MOST_FRACTIONS = 20  # maximum number of classes with fractional labels: more of them are a regression target


def label_numbers(column: pl.Series) -> pl.Series | None:
    """Labels that are all numbers, as numbers; None if they are strings, or codes: 007, or too long for a float."""
    if column.dtype.is_numeric():
        return column.fill_nan(None) if column.dtype.is_float() else column
    if column.dtype != pl.String or are_codes(column) or column.str.contains(LONG_CODE).any():
        return None
    values = column.cast(pl.Float64, strict=False)
    return None if values.null_count() > column.null_count() else values


def labels(column: pl.Series, classes: Sequence[Any] | None = None) -> Labels:
    """Labels without missing values as an array: numbers that print as written (1, -1.0), anything else as strings.

    Numbers written in several ways (1 and 1.0) are one class, with a warning. `classes` of a fitted model take
    precedence: labels equal to one of them are mapped to it.

    >>> labels(pl.Series(["1", "2"])).tolist(), labels(pl.Series(["1.0", "2.0"])).tolist()
    ([1, 2], [1.0, 2.0])
    >>> labels(pl.Series(["+1", "-1"])).tolist(), labels(pl.Series(["a", "1"])).tolist()
    (['+1', '-1'], ['a', '1'])
    """
    if classes is not None:
        return _among(_text(column).tolist(), classes)
    numbers = label_numbers(column)
    if numbers is None:
        return _text(column)
    words, whole = column.cast(pl.String), _integer(numbers)
    for found in () if whole is None else (whole, numbers.cast(pl.Float64)):
        if (words == found.cast(pl.String)).all():
            return found.to_numpy().copy()
    if words.n_unique() == numbers.n_unique():
        return _text(column)
    values = numbers if whole is None else whole
    _warn_of_spellings(words, values)
    return _text(values) if whole is None else whole.to_numpy().copy()


def _integer(numbers: pl.Series) -> pl.Series | None:
    """Numbers as Int64, None if some are fractional, infinite or beyond 64 bits."""
    whole = numbers.cast(pl.Int64, strict=False) if are_integers(numbers) else None
    return None if whole is None or whole.null_count() else whole


def _warn_of_spellings(words: pl.Series, values: pl.Series) -> None:
    """Warn of labels that are the same number, written in several ways."""
    ways: dict[Any, list[str]] = {}
    for word, value in pl.DataFrame([words.alias("word"), values.alias("value")]).unique(maintain_order=True).rows():
        ways.setdefault(value, []).append(word)
    value, several = next((value, way) for value, way in ways.items() if len(way) > 1)
    what = f"{' and '.join(several)} are the same number, and one label: {value}"
    warn(sentence(f'column "{words.name}"', what, remedy="write each label in one way"))


def as_spelled(names: Sequence[str], classes: Sequence[Any]) -> list[str]:
    """Class names in the spelling of the classes: a number written in another way is mapped to its class.

    >>> as_spelled(["1", "-1.0", "x"], [-1.0, 1.0])
    ['1.0', '-1.0', 'x']
    """
    known = [str(one) for one in classes]
    values = [_value(one) for one in known]
    by_value = {value: one for value, one in zip(values, known, strict=True) if values.count(value) == 1}
    return [name if name in known else by_value.get(_value(name), name) for name in names]


def task_of(column: pl.Series, wish: str | None = None) -> tuple[str, str]:
    """Whether a target is one of classification or of regression, and why.

    Regression: numbers of more than 20 different values with fractions, or with fewer than five rows per value; of more
    than 200 different values; or of which nearly all differ. Everything else is classes. A type given by the user
    decides.

    >>> task_of(pl.Series("price", [float(i) + 0.5 for i in range(30)]))
    ('regression', '30 different numbers with fractions')
    >>> task_of(pl.Series("grade", [1, 2, 3] * 10))
    ('classification', '3 different values')
    """
    if wish in ("real", "count"):
        return "regression", "as requested"
    present = column.drop_nulls()
    if wish in ("category", "binary"):
        return "classification", "as requested"
    numbers = label_numbers(present)
    distinct = present.n_unique() if numbers is None else numbers.drop_nulls().n_unique()
    rare = distinct > MOST_FRACTIONS and len(present) < FEW_ROWS * distinct
    if numbers is not None and (rare or _is_measurement(numbers.drop_nulls(), distinct)):
        fractions = "" if are_integers(numbers) else " with fractions"
        return "regression", f"{distinct:,} different numbers{fractions}"
    return "classification", f"{distinct:,} different values"


def _is_measurement(values: pl.Series, distinct: int) -> bool:
    """Whether so many different numbers, or labels, are too many for classes."""
    each_its_own = len(values) >= 10 and distinct > 0.9 * len(values)
    fractions = values.dtype.is_numeric() and distinct > MOST_FRACTIONS and not are_integers(values)
    return distinct > MOST_CLASSES or each_its_own or fractions


def real_targets(column: pl.Series, whose: str, several: bool = True) -> pl.Series:
    """Targets of a regression as Float64, null where missing; other cells are an error by row and column.

    `several`: at least two different values are needed.
    """
    from likely.data.cells import as_numbers

    if not column.count():
        raise DataError(sentence(whose, "numbers are needed", "none: every cell is missing"))
    values = as_numbers(column, strict=True, learned=True)
    assert values is not None  # strict either gives numbers or raises
    values = values.cast(pl.Float64).fill_nan(None)
    present = values.drop_nulls()
    if several and len(present) and present.n_unique() == 1:
        remedy = "there is nothing to predict: name another column"
        raise DataError(sentence(whose, "at least two different numbers are needed", f"only {present[0]:g}", remedy))
    return values


def refuse_unlearnable(column: pl.Series, whose: str, many: bool = False) -> None:
    """Raise an error for fewer than two classes or a regression target; `many`: the user requested categories."""
    present = column.drop_nulls()
    numbers = label_numbers(present)
    distinct = present.n_unique() if numbers is None else numbers.n_unique()
    if not len(present):
        raise DataError(sentence(whose, "labels are needed", "none: every cell is missing"))
    if distinct == 1:
        raise DataError(sentence(whose, "two classes or more are needed", f'one, "{shown(present[0])}"'))
    if not many:
        _refuse_measurement(present, distinct, whose)


def _refuse_measurement(present: pl.Series, distinct: int, whose: str) -> None:
    numbers = label_numbers(present)
    if not _is_measurement(present if numbers is None else numbers, distinct):
        return
    kind = "a regression target" if numbers is not None else "an identifier or text"
    expected = f"classes are needed, with several rows each, and this looks like {kind}"
    remedy = f"choose another target, or set its type with {as_kind(present.name, 'category')}"
    raise DataError(sentence(whose, expected, f"{distinct} different values in {len(present)} rows", remedy))


def _among(text: list[str], classes: Sequence[Any]) -> Labels:
    """Labels mapped to the classes that they spell; others stay strings."""
    own = np.asarray(classes).tolist()
    known, words = {str(one): one for one in own}, list(dict.fromkeys(text))
    meant = {word: known.get(name, name) for word, name in zip(words, as_spelled(words, own), strict=True)}
    found = [meant[word] for word in text]
    return np.array(found, dtype=object if len({type(one) for one in found}) > 1 else None)


def _value(text: str) -> float | str:
    try:
        return text if re.fullmatch(LONG_CODE, text) else float(text)
    except ValueError:
        return text


def _text(column: pl.Series) -> Labels:
    words = printed(column) if column.dtype.is_temporal() else column.cast(pl.String)
    return np.array(words.to_list(), dtype=str)
