"""Type inference of columns: numbers where the cells are numbers, strings elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from likely.core.errors import DataError, DomainError, ShapeError, by_caller, sentence
from likely.data.cells import as_kind, as_numbers, as_words, at_row, bad_cell, tidy, tokens
from likely.data.column_types import WISHES, are_answers
from likely.data.csv_reader import refuse_names
from likely.data.read_table import read_table, require


def typed(
    frame: pl.DataFrame, kinds: Mapping[str, str] | None = None, missing: str | Iterable[str] = ()
) -> pl.DataFrame:
    """Each column as numbers or strings; a cell that does not fit the type of its column is an error by row and column.

    - **kinds**: types given by the user: "real", "count", "binary", "category", or "ignore" to leave one out.

    >>> typed(pl.DataFrame({"x": ["1", "2"], "zip": ["01067", "80331"]}), {"x": "real"}).schema["x"]
    Int64
    """
    wishes = checked_wishes(kinds, frame.columns)
    kept = [column for column in tidy(frame, missing) if wishes.get(column.name) != "ignore"]
    return pl.DataFrame([typed_column(column, wishes.get(column.name), tokens(missing)) for column in kept])


def typed_column(column: pl.Series, wish: str | None, missing: tuple[str, ...] = ()) -> pl.Series:
    """One column of `typed`: a given type is used, else it is inferred from the cells."""
    if wish in ("category", "binary"):
        return as_words(column)
    numbers = as_numbers(column, missing=missing, strict=wish in ("real", "count"))
    if numbers is None:
        return column
    if wish == "count":
        refuse_no_counts(numbers)
    return numbers


def refuse_no_counts(numbers: pl.Series) -> None:
    """Raise an error unless values are non-negative integers."""
    wrong = (numbers % 1 != 0) | (numbers < 0)
    if wrong.any():
        raise bad_cell(numbers, wrong, "is not a count", as_kind(numbers.name, "real"))


def checked_wishes(kinds: Mapping[str, str] | None, names: list[str], whose: str = "") -> dict[str, str]:
    """Validated user-given types of columns: the columns must exist, the types must be known."""
    for name, wish in (kinds or {}).items():
        require(name, names, whose or by_caller("--as", "kinds"))
        if wish not in WISHES:
            expected = f'column "{name}" can be one of {", ".join(WISHES)}'
            raise DomainError(sentence(by_caller("--as", "kinds"), expected, repr(wish)))
    return dict(kinds or {})


def in_storage_type(column: pl.Series, kind: str, levels: Iterable[str] = ()) -> pl.Series:
    """A column in the storage type of its kind: Float64, Int64 for counts, String for levels."""
    levels = list(levels)
    if column.dtype == pl.Boolean and set(levels) == {"0", "1"}:
        column = column.cast(pl.Int8)
    if kind in ("binary", "category"):
        return as_words(column, lower=kind == "binary" and are_answers(levels))
    numbers = as_numbers(column, strict=True)
    assert numbers is not None  # strict either gives numbers or raises
    if kind == "count" and not ((numbers % 1) != 0).any():
        whole = numbers.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == numbers.null_count() else numbers.cast(pl.Float64)  # beyond 2⁶³
    return numbers.cast(pl.Float64)


def as_frame(
    source: Any, missing: str | Iterable[str] = (), sql: str | None = None, format: str | None = None,
    whose: str = "Table",
) -> pl.DataFrame:  # fmt: skip
    """A tidy data frame of anything that holds a table: files, Polars, pandas, a dict; messages name `whose`."""
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if hasattr(source, "columns") and not isinstance(source, pl.DataFrame):
        source = _foreign(source, whose)
    elif isinstance(source, Mapping):
        source = _side_by_side([_series(str(name), values) for name, values in source.items()], whose)
    if not isinstance(source, pl.DataFrame | str | Path | list | tuple):
        remedy = "pass a data frame, a dict of columns, or the path of a file"
        raise DataError(sentence(whose, "a table is needed", type(source).__name__, remedy))
    if not isinstance(source, pl.DataFrame):
        return read_table(source, sql=sql, format=format, missing=missing)
    refuse_names(source.columns, whose)
    if not source.height or not source.width:
        raise DataError(sentence(whose, "rows are needed", f"{source.height} rows of {source.width} columns"))
    columns = [_series(one.name, one.to_list()) if one.dtype == pl.Object else one for one in source]
    return tidy(pl.DataFrame(columns), missing)


def _foreign(frame: Any, whose: str) -> pl.DataFrame:
    """A data frame of another library, converted by column."""
    names = [str(name) for name in frame.columns]
    refuse_names(names, whose)
    return _side_by_side([_series(name, frame[own]) for name, own in zip(names, frame.columns, strict=True)], whose)


def _side_by_side(columns: list[pl.Series], whose: str) -> pl.DataFrame:
    lengths = {column.name: len(column) for column in columns}
    if len(set(lengths.values())) > 1:
        raise ShapeError(sentence(whose, "columns must have the same number of rows", lengths))
    return pl.DataFrame(columns)


def _series(name: str, values: Any) -> pl.Series:
    array = values.to_numpy() if hasattr(values, "to_numpy") else values
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "kind", "O") in "biufM" and dtype != np.longdouble:
        return pl.Series(name, array)
    cells = [None if _is_gap(value) else value for value in list(array)]
    types = {type(value) for value in cells} - {type(None)}
    if any(issubclass(one, str) for one in types):
        return _as_texts(name, cells)
    if types - {bool, np.bool_} and all(issubclass(one, Real | Decimal | np.bool_) for one in types):
        whole = all(issubclass(one, Integral | np.bool_) for one in types)
        return _integers(name, cells) if whole else _floats(name, cells)
    try:
        found = pl.Series(name, cells, strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError):
        return _as_texts(name, cells)
    return found if found.null_count() == sum(cell is None for cell in cells) else _as_texts(name, cells)


def _as_texts(name: str, cells: list[Any]) -> pl.Series:
    return pl.Series(name, [None if value is None else str(value) for value in cells], dtype=pl.String)


def _integers(name: str, cells: list[Any]) -> pl.Series:
    """Integers of any size with all their digits; as strings if no Polars type can hold them."""
    values = [None if value is None else int(value) for value in cells]
    present = [value for value in values if value is not None]
    for dtype, low, high in ((pl.Int64, -(2**63), 2**63), (pl.UInt64, 0, 2**64), (pl.Int128, -(2**127), 2**127)):
        if low <= min(present) and max(present) < high:
            return pl.Series(name, values, dtype=dtype)
    _floats(name, values)  # raises an error beyond their range
    return _as_texts(name, values)


def _floats(name: str, cells: list[Any]) -> pl.Series:
    return pl.Series(name, [_float(name, i, value) for i, value in enumerate(cells)], dtype=pl.Float64)


def _float(name: str, i: int, value: Any) -> float | None:
    if value is None:
        return None
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isinf(found) and not abs(value) == math.inf:
        raise at_row(i + 1, name, "the number is beyond the range of floats, ±1.8e308. Write it in another unit")
    return found


def _is_gap(value: Any) -> bool:
    """Whether a value is missing: None, NaN, or anything not equal to itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # the NaN of decimals cannot be compared
        return type(value).__name__ in ("NAType", "NaTType", "Decimal")
