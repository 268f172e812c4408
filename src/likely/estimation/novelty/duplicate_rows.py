"""Detection of duplicated observations, as opposed to rows that are equal by chance.

A model that scores a held-out row must not have been fitted to duplicates of it. Rows of few possible values are
equal by chance: there, holding out all equals of a row would hold out a value that new rows often have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.core.columns import Columns
from likely.core.ragged import Ragged
from likely.core.row_hashes import Hashes, row_hashes

FEW = 10  # number of values of a column up to which one fold may hold all rows with a value
SHARE = (
    0.05  # share of distinct rows that must have duplicates: a single frequent row, such as all zeros, is not enough
)
STEP = 1.5  # smallest missing between the values of a column


def ranks(x: Any) -> Index:
    """Rank of each row (n,) in an order determined by content; duplicates of one observation share a rank.

    >>> ranks(np.array([[0.12, 3.4], [5.61, 7.8], [0.12, 3.4], [5.61, 7.8]])).tolist()
    [1, 0, 1, 0]
    >>> sorted(ranks(np.array([[0], [1], [0], [1]])).tolist())
    [0, 1, 2, 3]
    """
    hashes = row_hashes(x)
    _, first, which, count = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    if _are_copies(x, first, count):
        return np.asarray(which.ravel(), dtype=np.intp)
    out = np.empty(len(hashes), dtype=np.intp)
    out[np.argsort(hashes, kind="stable")] = np.arange(len(hashes))
    return out


def _are_copies(x: Any, distinct: Index, count: Index) -> bool:
    """Whether more of the distinct rows have duplicates than a neighbor: a row that differs by one step in one column.

    Where rows are equal by chance, such neighbors are at least as frequent. For text any other value is a step, and so
    it is for numbers of which there are few; for others it is the smallest gap between two values of the column.
    """
    equals, copied = int(np.count_nonzero(count > 1)), int(count[count > 1].sum())
    return copied > SHARE * count.sum() and equals > _neighbors(x, distinct, equals)


def _neighbors(x: Any, distinct: Index, enough: int) -> int:
    """How many of the distinct rows have a neighbor; counting stops at `enough`."""
    if isinstance(x, Ragged) or hasattr(x, "tocsr"):  # too long for columns: integers and strings repeat by chance
        values = x.values if isinstance(x, Ragged) else x.data
        return 0 if _has_fractions(values) else len(distinct)
    columns = [column[distinct] for column in _columns(x)]
    own = [_place(column, j) for j, column in enumerate(columns)]
    everything, near = np.sum(own, axis=0, dtype=np.uint64), np.zeros(len(distinct), dtype=bool)
    for column, hashes in zip(columns, own, strict=True):
        near |= _near(column, everything - hashes)
        if np.count_nonzero(near) >= enough:
            break
    return int(np.count_nonzero(near))


def _near(column: Any, others: Hashes) -> Mask:
    """Rows (n,) that equal another one except for one step in one column."""
    out = np.zeros(len(others), dtype=bool)
    values, step = _values(column)
    order = np.lexsort((values, others))
    with np.errstate(invalid="ignore"):
        alike = (np.diff(others[order]) == 0) & (np.diff(values[order]) <= step)
    out[order[:-1][alike]] = out[order[1:][alike]] = True
    return out


def _values(column: Any) -> tuple[Array, float]:
    """A column as numbers (n,), and the largest difference of one step."""
    if column.dtype.kind not in "biuf":
        return np.zeros(len(column)), 0.0
    values = np.asarray(column, dtype=np.float64)
    levels = np.unique(values[~np.isnan(values)])
    return (values, STEP * float(np.diff(levels).min())) if len(levels) > FEW else (np.zeros(len(values)), 0.0)


def _place(column: Any, j: int) -> Hashes:
    """Hashes (n,) of the entries of column j."""
    return row_hashes(Columns({"at": np.full(len(column), j), "value": column}))


def _columns(x: Any) -> list[Any]:
    if isinstance(x, Columns):
        return [column for part in x.parts.values() for column in _columns(part)]
    if isinstance(x, Ragged) or hasattr(x, "tocsr"):
        return [row_hashes(x).astype(str)]
    a = np.asarray(x)
    return list(a.reshape(len(a), -1).T)


def _has_fractions(values: Any) -> bool:
    if isinstance(values, Columns):
        return any(_has_fractions(part) for part in values.parts.values())
    a = np.asarray(values)
    return a.dtype.kind == "f" and bool((a[np.isfinite(a)] % 1 != 0).any())
