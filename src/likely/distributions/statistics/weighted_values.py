"""Distinct values per column with their weights, for distributions without a fixed-size sufficient statistic.

As large as the data where all values differ, but merged like any statistic: neither order nor copies matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse

from likely.core import declared
from likely.core.arrays import Array, Index, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.statistics.counts import per_member

LONG = 256  # values per column from which each column is sorted separately
FEW = 16  # values per cell below which all cells are searched at once


@dataclass(frozen=True, eq=False)
class WeightedValues(Addable, Value):
    """Distinct values (m,) with their weights, sorted by cell (column j of member k is cell k d + j) and value."""

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    cell: Annotated[Index, declared.numbers("m", 0, np.intp)]  # (m,)
    value: Annotated[Array, declared.numbers("m")]  # (m,)
    each: Annotated[Array, declared.numbers("m", 0)]  # (m,): weight of each value, > 0

    complete = True

    def __post_init__(self) -> None:
        me = "WeightedValues"
        parts: dict[str, Any] = {n: parameter(getattr(self, n), me, n) for n in ("rows", "weight", "value", "each")}
        cell = np.asarray(self.cell)
        lead, shape, m = parts["rows"].shape, parts["weight"].shape, parts["value"].shape
        if len(lead) > 1 or len(shape) != len(lead) + 1 or shape[:-1] != lead:
            raise ShapeError(sentence(me, "rows (...) and weight (..., d) are needed", (lead, shape)))
        if len(m) != 1 or cell.shape != m or parts["each"].shape != m or cell.dtype.kind not in "iu":
            raise ShapeError(sentence(me, "cell, value and each must have the same shape (m,)", (cell.shape, m)))
        cell = cell.astype(np.intp)
        within = bool(((cell >= 0) & (cell < parts["weight"].size)).all())  # checked first: bincount allocates by it
        total = np.bincount(cell, parts["each"], parts["weight"].size) if within else np.empty(0)
        valid = (parts["each"] > 0).all() and within and (parts["rows"] >= 0).all()
        if not valid or not np.allclose(total, parts["weight"].ravel(), rtol=1e-9, atol=0.0):
            raise DomainError(sentence(me, "weights of values must add up to those of their columns"))
        order = np.lexsort((parts["value"], cell))
        if not np.array_equal(order, np.arange(len(cell))):
            raise DomainError(sentence(me, "values must be sorted by cell and value"))
        self._set(**parts, cell=cell)

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.rows))

    def cells(self) -> Iterator[tuple[int, Array, Array]]:
        """Each cell with data, its sorted values and their weights."""
        edges = np.searchsorted(self.cell, np.arange(self.weight.size + 1))
        for cell, (a, b) in enumerate(pairwise(edges.tolist())):
            if b > a:
                yield cell, self.value[a:b], self.each[a:b]

    def __add__(self, other: WeightedValues) -> Self:
        if self.weight.shape != other.weight.shape:
            raise ShapeError(
                sentence("WeightedValues", f"both must have shape {self.weight.shape}", other.weight.shape)
            )
        cell, value, each = merged(self, other)
        return self.trusted(
            rows=np.asarray(self.rows + other.rows), weight=np.asarray(self.weight + other.weight), cell=cell,
            value=value, each=each,
        )  # fmt: skip

    def __mul__(self, factor: float) -> Self:
        if not factor > 0:
            nothing = np.empty(0)
            return self.trusted(
                rows=self.rows * 0.0, weight=self.weight * 0.0, cell=np.empty(0, np.intp), value=nothing, each=nothing
            )
        parts = {name: np.asarray(getattr(self, name) * factor) for name in ("rows", "weight", "each")}
        return self.replace(**parts)

    __rmul__ = __mul__

    def pooled(self) -> Self:
        """Values of the rows of all members together."""
        if self.rows.ndim == 0:
            return self
        d = self.weight.shape[-1]
        return joined(type(self), np.asarray(self.rows.sum()), (d,), self.cell % d, self.value, self.each)

    def member(self, k: int) -> Self:
        """The values of one member of a stack."""
        d = self.weight.shape[-1]
        own = self.cell // d == k
        return self.trusted(
            rows=np.array(self.rows[k]), weight=np.array(self.weight[k]), cell=self.cell[own] - k * d,
            value=self.value[own], each=self.each[own],
        )  # fmt: skip


def weighted_values(z: Array, shares: Any, members: int | None) -> WeightedValues:
    """Statistics of rows (n, d), NaN for missing entries, under weights (m, n)."""
    n, d = z.shape
    total = per_member(np.asarray(shares @ np.ones(n)), members)
    table = scipy.sparse.csr_array(shares)
    if members is not None and table.shape[0] == 1:
        table = scipy.sparse.vstack([table] * members, format="csr")
    whose = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    cell = (whose[:, None] * d + np.arange(d)).ravel()
    value = z[table.indices].ravel()
    each = np.repeat(table.data, d)
    counts = ~np.isnan(value) & (each > 0)
    shape = (d,) if members is None else (members, d)
    return joined(WeightedValues, total, shape, cell[counts], value[counts], each[counts])


def sparse_values(matrix: Any, shares: Any, members: int | None) -> WeightedValues:
    """Statistics of sparse rows (n, d) under weights (m, n); entries that are not stored are 0."""
    n, d = matrix.shape
    total = per_member(np.asarray(shares @ np.ones(n)), members)
    table = scipy.sparse.csr_array(shares)
    cells, values, weights = [], [], []
    for k in range(table.shape[0]):
        at = slice(table.indptr[k], table.indptr[k + 1])
        counts = table.data[at] > 0
        own, each = matrix[table.indices[at][counts]], table.data[at][counts]
        nonzero = own.data != 0
        column, stored = own.indices[nonzero], np.repeat(each, np.diff(own.indptr))[nonzero]
        rest = np.where(np.bincount(column, minlength=d) < len(each), each.sum() - np.bincount(column, stored, d), 0.0)
        empty = np.flatnonzero(rest > 0)
        cells.append(k * d + np.concatenate([column, empty]))
        values.append(np.concatenate([own.data[nonzero], np.zeros(len(empty))]))
        weights.append(np.concatenate([stored, rest[empty]]))
    parts = [np.concatenate(part) for part in (cells, values, weights)]
    found = joined(WeightedValues, np.asarray(total), (table.shape[0], d), parts[0].astype(np.intp), *parts[1:])
    if members is None:
        return found.trusted(**{**found.field_values(), "weight": found.weight[0]})
    return found if table.shape[0] == members else side_by_side([found] * members).replace(rows=np.asarray(total))


def side_by_side(parts: list[WeightedValues]) -> WeightedValues:
    """Statistics of several stacks as those of one stack of all their members."""
    before = np.cumsum([0, *(part.weight.size for part in parts)])
    cells = [part.cell + int(start) for part, start in zip(parts, before[:-1], strict=True)]
    together = {n: np.concatenate([getattr(part, n) for part in parts]) for n in ("rows", "weight", "value", "each")}
    return WeightedValues.trusted(**together, cell=np.concatenate(cells))


def joined(cls: Any, rows: Array, shape: tuple[int, ...], cell: Index, value: Array, each: Array) -> Any:
    """Statistics of values in any order: sorted, weights of equal values summed."""
    value = value + 0.0  # −0 is 0
    order = sorted_by_cell(cell, value, int(np.prod(shape)))
    cell, value, each = cell[order], value[order], each[order]
    first = np.ones(len(cell), dtype=bool)
    first[1:] = (cell[1:] != cell[:-1]) | (value[1:] != value[:-1])
    if not first.all():
        start = np.flatnonzero(first)
        each, cell, value = np.add.reduceat(each, start), cell[start], value[start]
    weight = np.bincount(cell, each, int(np.prod(shape))).reshape(shape)
    return cls.trusted(rows=np.asarray(rows), weight=weight, cell=cell.astype(np.intp), value=value, each=each)


def sorted_by_cell(cell: Index, value: Array, cells: int) -> Index:
    """Sort order by cell, then value: long columns are sorted one by one, which is several times as fast."""
    if len(cell) < LONG * cells:
        return np.lexsort((value, cell))
    order = np.argsort(cell.astype(np.int16 if cells < 1 << 15 else np.int64), kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=cells))])
    for a, b in pairwise(edges.tolist()):
        order[a:b] = order[a:b][np.argsort(value[order[a:b]])]
    return order


def merged(one: WeightedValues, other: WeightedValues) -> tuple[Index, Array, Array]:
    """Cells, values and weights of two sorted statistics, merged without sorting again."""
    large, small = (one, other) if len(one.cell) >= len(other.cell) else (other, one)
    if len(small.cell) == 0:
        return large.cell, large.value, large.each
    at = _places(large, small)
    inside = np.minimum(at, len(large.cell) - 1)
    present = (large.cell[inside] == small.cell) & (large.value[inside] == small.value)
    each = large.each.copy()
    each[at[present]] += small.each[present]
    new = ~present
    inserted = at[new] + np.arange(int(new.sum()))
    old = np.ones(len(large.cell) + len(inserted), dtype=bool)
    old[inserted] = False
    pairs = ((large.cell, small.cell), (large.value, small.value), (each, small.each))
    cell, value, each = (_interleaved(a, b[new], old, inserted) for a, b in pairs)
    return cell, value, each


def _places(large: WeightedValues, small: WeightedValues) -> Index:
    """Insertion positions of the entries of the smaller statistic among those of the larger."""
    at = np.empty(len(small.cell), dtype=np.intp)
    cells, starts = np.unique(small.cell, return_index=True)
    if len(small.cell) < FEW * len(cells):
        return _bisected(large, small)
    for cell, (a, b) in zip(cells, pairwise([*starts.tolist(), len(at)]), strict=True):
        low, high = np.searchsorted(large.cell, [cell, cell + 1])
        at[a:b] = low + np.searchsorted(large.value[low:high], small.value[a:b])
    return at


def _bisected(large: WeightedValues, small: WeightedValues) -> Index:
    """`_places` by vectorized bisection, for many cells with few values each."""
    low, high = (np.searchsorted(large.cell, small.cell, side=side) for side in ("left", "right"))
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, len(large.value) - 1)
        below = large.value[middle] < small.value
        low, high = np.where(open_ & below, middle + 1, low), np.where(open_ & ~below, middle, high)
    return np.asarray(low, dtype=np.intp)


def _interleaved(a: Any, b: Any, old: Any, inserted: Index) -> Any:
    """a at the positions `old` and b at `inserted`."""
    out = np.empty(len(old), dtype=a.dtype)
    out[old], out[inserted] = a, b
    return out
