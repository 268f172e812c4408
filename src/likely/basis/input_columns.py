"""Columns of arrays, data frames and `Columns` as bases take them; errors name the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, BadEntry, all_finite, in_memory, is_gap, numbers
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence


def names_in(X: Any) -> list[str] | None:
    """The names of the columns of a data frame or of Columns; None of anything else."""
    if isinstance(X, Columns):
        return list(X)
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def checked_numbers(X: Any, whose: str, names: Sequence[str] | None = None) -> Array:
    """Rows of finite numbers (n, d); a vector is one column."""
    X = in_memory(X)
    if names_in(X) is not None:
        x = np.column_stack([numbers(cells, f"{whose} (column {name!r})") for name, cells in _named(X)])
    else:
        x = numbers(X.toarray() if hasattr(X, "toarray") else X, whose)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or not x.shape[1]:
        remedy = "pass one row per observation"
        raise ShapeError(sentence(whose, "rows must have shape (n, d) with at least one column", x.shape, remedy))
    if not all_finite(x):
        i, j = np.argwhere(~np.isfinite(x))[0].tolist()
        expected, remedy = "basis functions need finite numbers", "drop such rows, or impute them (lk.impute)"
        raise BadEntry(whose, expected, x[i, j], i, repr(names[j]) if names else j, remedy)
    return x


class Labels(NamedTuple):
    """Columns of categories, each an array (n,) of texts or of numbers."""

    columns: list[NDArray[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, number of columns."""
        return len(self.columns[0]), len(self.columns)

    def take(self, rows: Any) -> Labels:
        """The given rows."""
        return Labels([column[rows] for column in self.columns])


def checked_labels(X: Any, whose: str, names: Sequence[str] | None = None) -> Labels:
    """Columns of categories without missing entries."""
    X = in_memory(X)
    if names_in(X) is not None:
        columns = [cells for _, cells in _named(X)]
    else:
        table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
        if table.ndim not in (1, 2) or 0 in table.shape[1:]:
            expected = "rows must have shape (n, d) with at least one column"
            raise ShapeError(sentence(whose, expected, table.shape, "pass one row per observation"))
        columns = [table] if table.ndim == 1 else list(table.T)
    where = [repr(name) for name in names] if names else list(range(len(columns)))
    return Labels([_labels(cells, whose, where[j]) for j, cells in enumerate(columns)])


def _labels(cells: NDArray[Any], whose: str, column: Any) -> NDArray[Any]:
    gap = None
    if cells.dtype.kind == "O":
        items = cells.tolist()
        gap = next((i for i, cell in enumerate(items) if is_gap(cell)), None)
        if gap is None:
            cells = _of_one_type(items, whose, column)
    elif cells.dtype.kind == "f" and np.isnan(cells).any():
        gap = int(np.flatnonzero(np.isnan(cells))[0])
    if gap is not None:
        raise BadEntry(whose, "every row needs a level", cells[gap], gap, column, "drop such rows")
    return cells


def _of_one_type(items: list[Any], whose: str, column: Any) -> NDArray[Any]:
    """Objects as an array of texts, or of numbers."""
    if all(isinstance(cell, str) for cell in items):
        return np.array(items, dtype=str) if items else np.array([], dtype=str)
    if all(isinstance(cell, int | float | np.number | np.bool_) for cell in items):
        return np.array(items)
    kinds = sorted({type(cell).__name__ for cell in items})
    raise DataError(sentence(whose, f"levels of column {column} must be all texts or all numbers", ", ".join(kinds)))


def taken(X: Any, keys: Sequence[str | int], whose: str, known: Sequence[str] | None) -> tuple[Any, list[str]]:
    """The columns with these names or numbers, and their names; `known` are the names of an array's columns."""
    X = in_memory(X)
    names = names_in(X)
    if names is not None:
        chosen = [names[key] if isinstance(key, int) and -len(names) <= key < len(names) else key for key in keys]
        absent = next((key for key in chosen if key not in names), None)
        if absent is not None:
            expected = f"there must be a column {absent!r}"
            raise DataError(sentence(whose, expected, f"columns {', '.join(names[:12])}"))
        cells = dict(_named(X))
        return Columns({str(key): cells[str(key)] for key in chosen}), [str(key) for key in chosen]
    table = X if isinstance(X, np.ndarray) or hasattr(X, "toarray") else _plain_table(X)
    table = table[:, None] if table.ndim == 1 else table
    at = [_place(key, table.shape[1], whose, known) for key in keys]
    named = [
        str(key) if isinstance(key, str) else known[j] if known else f"x{j}" for key, j in zip(keys, at, strict=True)
    ]
    return table[:, at], named


def _plain_table(X: Any) -> NDArray[Any]:
    """Lists of rows as an array; of objects where not all cells are numbers."""
    table = np.asarray(X)
    return table if table.dtype.kind in "biuf" else np.asarray(X, dtype=object)


def _place(key: str | int, d: int, whose: str, known: Sequence[str] | None) -> int:
    if isinstance(key, str):
        if known is None:
            remedy = "pass a data frame, or use the numbers of columns"
            raise DataError(sentence(whose, f"column {key!r} must be found by its name", "an array", remedy))
        if len(known) != d:
            raise ShapeError(sentence(whose, f"rows must have the columns {', '.join(known[:12])}", f"{d} columns"))
        if key not in known:
            raise DataError(sentence(whose, f"there must be a column {key!r}", f"columns {', '.join(known[:12])}"))
        return list(known).index(key)
    if not -d <= key < d:
        raise ShapeError(sentence(whose, f"there must be a column {key}", f"{d} columns"))
    return key % d


def _named(X: Any) -> list[tuple[str, NDArray[Any]]]:
    """Names and cells of the columns of a data frame or of Columns."""
    if isinstance(X, Columns):
        return [(name, np.asarray(part)) for name, part in X.parts.items()]
    return [(str(name), np.asarray(X[name])) for name in X.columns]
