"""Table cells: numbers, strings or missing values; errors name row and column."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from likely.core.errors import DataError, by_caller, sentence

# Usual markers of missing values; compared after surrounding blanks are stripped.
MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", "?", "-"),
    *("NULL", "#N/A", "<NA>", "NaT"),  # databases, spreadsheets, data frames
)
MEANT_AS_NUMBERS = (
    0.8  # share of numbers among the present cells from which the other cells are mistakes rather than categories
)
FEWEST_NUMBERS = 5

# 3,14 and 1.234,5 and 1,234.5; $5 and 12 %: ambiguous number formats, which are not guessed
_COMMAS = r"(\d+,\d+|\d{1,3}(,\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})+,\d+)"
_SIGN = r"[%$€£¥]"
DRESSED = rf"^[-+]?({_COMMAS}|{_SIGN}\s*({_COMMAS}|[\d.]+)|({_COMMAS}|[\d.]+)\s*{_SIGN})$"


def tokens(missing: str | Iterable[Any]) -> tuple[str, ...]:
    """The user's own markers of missing values, as strings."""
    given = (missing,) if isinstance(missing, str) else missing
    return tuple(str(token).strip() for token in given)


def tidy(frame: pl.DataFrame, missing: str | Iterable[Any] = ()) -> pl.DataFrame:
    """Strings stripped of blanks, and all markers of missing values replaced by null.

    >>> tidy(pl.DataFrame({"x": [" 1", "?", "n/a!"]}), missing="n/a!")["x"].to_list()
    ['1', None, None]
    """
    own = tokens(missing)
    words = _trimmed(frame.select(_as_plain(column) for column in frame), [*MISSING, *own])
    return words.select(without_values(column, own) for column in words)


def _as_plain(column: pl.Series) -> pl.Series:
    """Categoricals as strings, decimals as numbers, NaN as null, nested values as printed."""
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        return printed(column)
    if column.dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    column = column.cast(pl.Float64) if column.dtype.is_decimal() else column
    return column.fill_nan(None) if column.dtype.is_float() else column


def printed(column: pl.Series) -> pl.Series:
    """Values that are neither numbers nor strings, as Python prints them."""
    values = [None if value is None else str(value) for value in column.to_list()]
    return pl.Series(column.name, values, dtype=pl.String)


def _trimmed(frame: pl.DataFrame, missing: list[str]) -> pl.DataFrame:
    """Stripped strings, null where missing; by position, since "*" as a name means all columns to Polars."""
    cells = [pl.nth(i).str.strip_chars() for i, dtype in enumerate(frame.dtypes) if dtype == pl.String]
    return frame.with_columns(pl.when(cell.is_in(missing).not_()).then(cell) for cell in cells)


def without_values(column: pl.Series, missing: tuple[str, ...]) -> pl.Series:
    """Numeric markers of missing values, such as -999, as null, however they are written."""
    if not missing or not column.dtype.is_numeric():
        return column
    values = pl.Series(missing, dtype=pl.String).cast(pl.Float64, strict=False).drop_nulls()
    return column.set(column.cast(pl.Float64).is_in(values.to_list()), None) if len(values) else column


def as_numbers(
    column: pl.Series, *, missing: tuple[str, ...] = (), strict: bool = False, learned: bool = False
) -> pl.Series | None:
    """A column as Int64 or Float64 with nulls, or None if it is not numeric.

    A column with at least 80 % numbers (and five) is numeric: the first other cell is then an error by row and column.
    `strict` requires numbers whatever their share; `learned`: the type was determined when a model was fitted.
    Infinity is always an error.

    >>> as_numbers(pl.Series("x", ["1", None, "2.5"])).to_list()
    [1.0, None, 2.5]
    >>> as_numbers(pl.Series("x", ["red", "blue"])) is None
    True
    """
    if column.dtype == pl.String:
        return _parsed(column, missing, strict, learned)
    if (column.dtype == pl.Boolean and strict) or column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if column.dtype == pl.Int64 or (column.dtype == pl.Float64 and math.isfinite(column.sum() or 0.0)):
        return column  # a sum that is finite has neither NaN nor infinity in it
    if column.dtype.is_integer():
        whole = column.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == column.null_count() else column.cast(pl.Float64)
    if column.dtype.is_numeric():
        return _finite(column.fill_nan(None), column, learned)
    if strict:
        raise _no_number(column, column.is_not_null(), learned)
    return None


def clean_numbers(column: pl.Series) -> pl.Series:
    """A numeric column if every present cell is a number (for queries); any other column unchanged."""
    if column.dtype != pl.String or column.null_count() == len(column):
        return column
    values = column.cast(pl.Float64, strict=False)
    if values.null_count() > column.null_count() or are_codes(column):
        return column
    return _integers_if_written_so(column, values)


def are_codes(column: pl.Series) -> bool:
    """Whether digits are a code of fixed width with leading zeros (01067, 80331), not a measurement."""
    first = next((cell for cell in column.head(100) if cell is not None), "0")
    if not first.isdigit():
        return False
    lengths = column.str.len_chars()
    if lengths.min() != lengths.max() or lengths.min() == 1:
        return False
    return bool(column.str.contains(r"^\d+$").all()) and bool(column.str.starts_with("0").any())


def bad_cell(column: pl.Series, where: pl.Series, problem: str, *ways_out: str) -> DataError:
    """The error for the first cell of a mask, by row (from 1) and column, with remedies."""
    at = int(where.fill_null(False).arg_max() or 0)
    value = column[at]
    ways = ", or ".join(way for way in (*_as_missing(value), *ways_out) if way)
    if ways:
        ways = f". Correct{ways.removeprefix('correct')}" if ways.startswith("correct") else f". Use {ways}"
    return at_row(at + 1, column.name, f'"{shown(value)}" {problem}{ways}')


def as_kind(name: str, kind: str) -> str:
    """How a user specifies the type of a column: a command-line option or an argument."""
    return by_caller(f"--as {shlex.quote(f'{name}={kind}')}", f'kinds={{"{name}": "{kind}"}}')


def at_row(row: int, column: str, what: str) -> DataError:
    """An error message for one cell: row 18, column "petal_width": ..."""
    return DataError(sentence(f'row {row}, column "{column}"', what))


def _as_missing(value: Any) -> tuple[str, ...]:
    if value is None or shown(value) != str(value):
        return ()
    return (by_caller(f'--missing "{value}"', "None in its place"),)


def shown(value: Any) -> str:
    """A cell in a message: on one line, and truncated.

    >>> shown("two\\nlines and much, much more text")
    'two lines and much, much more…'
    """
    text = " ".join(str(value).split())
    return text if len(text) <= 30 else text[:29].rstrip() + "…"


def _no_number(column: pl.Series, where: pl.Series, learned: bool) -> DataError:
    ways = () if learned else (as_kind(column.name, "category"),)
    return bad_cell(column, where, "is not a number", *ways)


def _parsed(column: pl.Series, missing: tuple[str, ...], strict: bool, learned: bool) -> pl.Series | None:
    present = len(column) - column.null_count()
    values = column.cast(pl.Float64, strict=False)
    good = present - (values.null_count() - column.null_count())
    if not strict and not _meant_as_numbers(column, good, present):
        return None
    if good < present:
        raise _no_number(column, values.is_null() & column.is_not_null(), learned)
    if not math.isfinite(values.sum() or 0.0):
        values = _finite(values.fill_nan(None), column, learned)
    return _integers_if_written_so(column, without_values(values, missing))


def _meant_as_numbers(column: pl.Series, good: int, present: int) -> bool:
    if good == present:
        return present > 0 and not are_codes(column)
    if good >= FEWEST_NUMBERS and good >= MEANT_AS_NUMBERS * present:
        return True
    _refuse_ambiguous_numbers(column, present)
    return False


def _refuse_ambiguous_numbers(column: pl.Series, present: int) -> None:
    """Raise an error for 3,14 or 12 %: their meaning is ambiguous and not guessed."""
    dressed = column.str.contains(DRESSED).fill_null(False)
    if present >= FEWEST_NUMBERS and int(dressed.sum()) >= MEANT_AS_NUMBERS * present:
        at = int(dressed.arg_max() or 0)
        problem = f'"{shown(column[at])}" looks like a number with a comma or a sign, which is not guessed'
        raise at_row(
            at + 1, column.name, f"{problem}. Write plain numbers (3.14), or use {as_kind(column.name, 'category')}"
        )


def _finite(values: pl.Series, cells: pl.Series, learned: bool) -> pl.Series:
    if values.dtype.is_float() and values.is_infinite().any():
        leave = as_kind(cells.name, "ignore")
        ways = ("correct the cell",) if learned else ("correct the cell", f"leave the column out with {leave}")
        raise bad_cell(cells, values.is_infinite(), "is not a finite number", *ways)
    return values


def _integers_if_written_so(cells: pl.Series, values: pl.Series) -> pl.Series:
    """Int64 if every cell is written as an integer, so that long keys keep their digits."""
    if not are_integers(values):
        return values
    whole = cells.set(values.is_null(), None).cast(pl.Int64, strict=False)
    return whole if whole.null_count() == values.null_count() else values


def are_integers(values: pl.Series) -> bool:
    """Whether all present numbers are integers: 3 and 3.0, but not 3.5."""
    if values.dtype.is_integer():
        return True
    numbers = values.cast(pl.Float64).to_numpy()  # missing values are NaN
    return not (numbers != np.round(numbers))[~np.isnan(numbers)].any()


def as_words(column: pl.Series, lower: bool = False) -> pl.Series:
    """Any column as strings: "true" and "false", "3" for 3 and 3.0, so that each level has one spelling."""
    if column.dtype.is_float() and are_integers(column):
        whole = column.cast(pl.Int64, strict=False)
        column = whole if whole.null_count() == column.null_count() else column  # unchanged beyond 2⁶³
    words = column.cast(pl.String).str.replace(r"^([-+]?\d+)\.0+$", "$1")
    return words.str.to_lowercase() if lower else words
