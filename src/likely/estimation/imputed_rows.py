"""Imputed rows in the type of the input: only missing entries change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import unmasked
from likely.distributions.categorical.sparse_counts import is_sparse
from likely.imputation.impute import missing_cells


def filled_in(like: Any, table: Any, columns: Sequence[int] | None = None) -> Any:
    """`like` with its missing entries taken from `table`: a data frame, an array (a list becomes one), or sparse rows.

    `columns` are the indices of the table's columns in an array; observed values are unchanged.

    >>> filled_in(np.array([[1.0, np.nan]], np.float32), np.array([[7.0, 2.0]]))
    array([[1., 2.]], dtype=float32)
    """
    if is_sparse(like):
        return like.copy() if hasattr(like, "copy") else like
    if hasattr(like, "columns"):
        return filled_columns(like, {column: table[:, j] for j, column in enumerate(like.columns)})
    if not hasattr(like, "shape"):
        return table
    values = np.asarray(unmasked(like))
    out = np.array(values, copy=True)
    part = np.s_[:, columns] if columns is not None else ...
    cells = _filled(out[part], np.reshape(table, out[part].shape))
    out = out.astype(np.result_type(out, cells)) if cells.dtype != out.dtype else out
    out[part] = cells
    return out


def _filled(cells: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """Cells with missing ones from a table of their shape; strings among numbers give objects."""
    missing = missing_cells(cells)
    if not missing.any():
        return cells
    fits = cells.dtype == object or table.dtype.kind in "fiub"
    out = np.array(cells) if fits else cells.astype(object)
    out[missing] = table[missing]
    return out


def filled_columns(frame: Any, columns: Mapping[Any, Any]) -> Any:
    """A pandas or polars frame with imputed columns; types are kept if they can hold the new values.

    >>> import polars
    >>> filled_columns(polars.DataFrame({"n": [1, None]}), {"n": np.array([9.0, 2.0])})["n"].to_list()
    [1, 2]
    """
    columns = {name: np.asarray(cells).reshape(len(frame), -1)[:, 0] for name, cells in columns.items()}
    if hasattr(frame, "with_columns"):
        return frame.with_columns([_polars(frame[name], cells) for name, cells in columns.items()])
    names, out = list(frame.columns), frame.copy()
    for name, cells in columns.items():
        j = names.index(name)
        if frame.iloc[:, j].isna().any():
            out.isetitem(j, _pandas(frame.iloc[:, j], cells))
    return out


def _as_numbers(cells: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all numbers, as numbers."""
    if cells.dtype == object and all(isinstance(cell, Real) for cell in cells.tolist()):
        return np.array(cells.tolist())
    return cells


def _pandas(column: Any, cells: NDArray[Any]) -> Any:
    """An imputed pandas column; if its type cannot hold the values (1.5 visits) it becomes Float64, or objects."""
    at = np.flatnonzero(column.isna().to_numpy())
    new = _as_numbers(cells[at])
    numbers, plain = new.dtype.kind in "fiub", isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
    if plain and numbers:
        new = new.astype(column.dtype)
    # a column of NaN only may be imputed with strings
    kinds = [*([] if plain and not numbers else [column.dtype]), *(["Float64"] if numbers else []), object]
    for kind in kinds:
        try:
            out = column.astype(kind)
            out.iloc[at] = new
            return out
        except (TypeError, ValueError):
            continue
    return column  # objects hold anything


def _polars(column: Any, cells: NDArray[Any]) -> Any:
    """An imputed polars column; integers and booleans become Float64 if an expectation is neither."""
    import polars as pl

    seen = column.is_not_null()
    if column.dtype.is_float():
        seen = seen & column.is_not_nan()
    if seen.all():
        return column
    at = np.flatnonzero(~seen.to_numpy())
    new = pl.Series(column.name, _as_numbers(cells[at]).tolist())
    kind = _holding(column.dtype, new)
    place = np.zeros(len(cells), dtype=np.intp)
    place[at] = np.arange(len(at))
    return column.cast(kind).zip_with(seen, new.cast(kind).gather(place))


def _holding(kind: Any, new: Any) -> Any:
    """The polars type of a column that can also hold the new values."""
    import polars as pl

    if not new.dtype.is_float():
        return new.dtype if kind == pl.Null or (kind.is_numeric() and not new.dtype.is_numeric()) else kind
    whole = bool((new == new.floor()).all())
    if kind == pl.Boolean:
        return kind if whole and bool(new.is_in([0.0, 1.0]).all()) else pl.Float64
    if kind.is_integer():
        return kind if whole else pl.Float64
    return pl.Float64 if kind == pl.Null else kind
