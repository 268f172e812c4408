"""Long-format tables: one row per frame, with an id column for the sequence and a time column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Index, Mask, is_gap
from likely.core.columns import Columns
from likely.core.errors import DataError, ShapeError, sentence
from likely.core.ragged_input import NUMBERS, WORDS, Joined, cells, side_by_side, usable_names

WHOSE = "Ragged.from_table"
SPELLED: tuple[Any, ...] = (np.float64, np.dtype("datetime64[us]"))


def cut_by_id(table: Any, id: Any, time: Any, columns: Any) -> tuple[Joined, NDArray[Any]]:
    """Frames sorted by sequence and time, with lengths and column names; and the ids (n,)."""
    parts = _columns_of(table)
    chosen = _frame_columns(parts, id, time, columns)
    whose, ids = first_appearances(_existing_column(parts, id, "id"), f"id {id!r}")
    order = in_order(whose, None if time is None else _existing_column(parts, time, "time"), f"time {time!r}")
    frames = side_by_side({name: _reordered(parts[name], order) for name in chosen})
    lengths = np.bincount(whose, minlength=len(ids)).astype(np.intp)
    return Joined(frames, lengths, usable_names(tuple(chosen))), ids


def first_appearances(column: Any, which: str) -> tuple[Index, NDArray[Any]]:
    """The index of each row's id (T,) and the distinct ids, in order of first appearance.

    >>> number, ids = first_appearances(["b", "a", "b"], "id")
    >>> number.tolist(), ids.tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    a = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if a.ndim != 1 or not len(a):
        raise DataError(sentence(WHOSE, f"{which} must be a column with one entry per row", f"shape {a.shape}"))
    _refuse_missing(a, which, "every row needs one")
    if a.dtype.kind == "O":
        _refuse_unhashable(a, which)
        places: dict[Any, int] = {}
        number = np.array([places.setdefault(c, len(places)) for c in a.tolist()], dtype=np.intp)
        return number, _ids(list(places))
    distinct, first, number = np.unique(a, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[number], distinct[order]


def moments(column: Any, which: str) -> NDArray[Any]:
    """Times that can be sorted: numbers or dates; strings must be parsable (2024-12-31T08:00), else an error.

    >>> moments(["10", "9"], "time").tolist()
    [10.0, 9.0]
    """
    a = cells(column)
    _refuse_missing(a, which, "every row needs one")
    if a.dtype.kind not in WORDS:
        return a
    kind = next(
        (kind for kind in SPELLED if _is_spelled(a[:1], kind)), SPELLED[0]
    )  # the first cell determines the type
    if not _is_spelled(a, kind):
        row = next(i for i in range(len(a)) if not _is_spelled(a[i : i + 1], kind))
        expected = f"{which} must be numbers, or dates such as 2024-12-31"
        raise DataError(sentence(WHOSE, expected, f"{a[row]!r} at row {row}"))
    return a.astype(kind)


def in_order(whose: Index, time: Any, which: str = "time") -> Index | None:
    """The order of rows by sequence, then time (stable); None if they are sorted already.

    >>> in_order(np.array([0, 1, 0]), [2, 1, 1]).tolist()
    [2, 0, 1]
    """
    if time is None:
        return None if (np.diff(whose) >= 0).all() else np.argsort(whose, kind="stable")
    return np.lexsort((moments(time, which), whose)).astype(np.intp)


def _is_spelled(a: NDArray[Any], kind: Any) -> bool:
    try:
        return not np.isnat(a.astype(kind)).any() if kind != np.float64 else bool(np.isfinite(a.astype(kind)).all())
    except (TypeError, ValueError, OverflowError):
        return False


# -------------------------------------------------------------------- the table


def _columns_of(table: Any) -> Mapping[Any, Any]:
    """The columns of a data frame, a dict or a matrix, by name or number."""
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):
        table = table.collect()
    if isinstance(table, Mapping):
        return Columns.of(table).parts
    if hasattr(table, "columns"):
        names = list(table.columns)
        if len(set(names)) < len(names):
            raise DataError(sentence(WHOSE, "column names must be unique", names, "rename one"))
        return {name: table[name] for name in names}
    a = np.asarray(table)
    if a.ndim != 2:
        expected = "a table is needed: a data frame, a dict of columns, or a matrix"
        raise ShapeError(sentence(WHOSE, expected, f"{type(table).__name__} of shape {a.shape}"))
    return dict(enumerate(a.T))


def _frame_columns(parts: Mapping[Any, Any], id: Any, time: Any, columns: Any) -> list[Any]:
    """The columns of a frame: the requested ones, or all except id and time."""
    if columns is None:
        rest = [name for name in parts if name != id and (time is None or name != time)]
    else:
        rest = [columns] if isinstance(columns, str | int) or not isinstance(columns, Sequence) else list(columns)
    for name in rest:
        _existing_column(parts, name, "columns")
    if not rest:
        raise DataError(sentence(WHOSE, "frames need at least one column", "none except id and time"))
    return rest


def _existing_column(parts: Mapping[Any, Any], name: Any, role: str) -> Any:
    if name not in parts:
        names = ", ".join(map(repr, list(parts)[:8])) + (" …" if len(parts) > 8 else "")
        raise DataError(sentence(WHOSE, f"{role}: there must be a column {name!r}", remedy=f"there are {names}"))
    return parts[name]


def _reordered(part: Any, order: Index | None) -> Any:
    """One column in the given order: numbers as float64, strings and nested parts unchanged."""
    if not isinstance(part, Columns) and getattr(part, "ndim", 1) == 1 and not hasattr(part, "offsets"):
        part = cells(part)
    part = part if order is None else part[order]
    return part.astype(np.float64) if getattr(getattr(part, "dtype", None), "kind", "") in NUMBERS else part


# ------------------------------------------------------------------- missing values and ids


def _refuse_missing(a: NDArray[Any], which: str, needed: str) -> None:
    missing = _is_missing(a)
    if missing.any():
        row = int(missing.argmax())
        raise DataError(sentence(WHOSE, f"{which}: {needed}", f"none at row {row}", "fill it in, or drop the row"))


def _refuse_unhashable(a: NDArray[Any], which: str) -> None:
    odd = next((i for i, c in enumerate(a.tolist()) if not isinstance(c, Hashable)), None)
    if odd is not None:
        got = f"{type(a[odd]).__name__} at row {odd}"
        raise DataError(sentence(WHOSE, f"{which}: ids must be strings, numbers or other hashable values", got))


def _is_missing(a: NDArray[Any]) -> Mask:
    if a.dtype.kind == "O":
        return np.fromiter(map(is_gap, a.tolist()), dtype=np.bool_, count=len(a))
    if a.dtype.kind in "mM":
        return np.isnat(a)
    return np.isnan(a) if a.dtype.kind == "f" else np.zeros(len(a), dtype=np.bool_)


def _ids(distinct: list[Any]) -> NDArray[Any]:
    """Ids of one type as an array of that type, others as objects."""
    if len({type(one) for one in distinct}) == 1 and isinstance(distinct[0], str | int):
        return np.array(distinct)
    out = np.empty(len(distinct), dtype=object)
    out[:] = distinct
    return out
