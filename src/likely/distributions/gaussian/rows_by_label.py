"""Grouping labeled rows: one sort by label makes the rows of each member contiguous."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.distributions.gaussian.moments import scratch

GATHER = 1 << 21  # numbers sorted at a time: after many short calls threads wait for each other
LEAST = 4096  # rows sorted at a time in very wide tables


def gather_rows(d: int) -> int:
    """Number of rows of d columns that are sorted at a time."""
    return max(LEAST, GATHER // max(d, 1))


def by_label(labels: Index, members: int) -> tuple[Index, Index]:
    """Row indices sorted by label (label −1 first), and the boundaries of the groups (members + 1,).

    >>> order, edges = by_label(np.array([1, -1, 0, 1]), 2)
    >>> order, edges
    (array([1, 2, 0, 3]), array([1, 2, 4]))
    """
    key = (labels + 1).astype(np.min_scalar_type(members))  # one or two bytes are sorted by counting
    order = np.argsort(key, kind="stable")
    return order, np.cumsum(np.bincount(key, minlength=members + 1))


def rows_per_member(x: Array, weight: Array | None, labels: Index, members: int) -> Iterator[tuple[Array, Any, Index]]:
    """Rows, weights and row indices of each member; the rows are valid until the next call."""
    order, edges = by_label(labels, members)
    ordered = np.take(x, order, axis=0, out=scratch("ordered", *x.shape), mode="clip")
    weight = None if weight is None else weight[order]
    for a, b in pairwise(edges):
        yield ordered[a:b], None if weight is None else weight[a:b], order[a:b]


def sum_over_slices(n: int, rows: int, collect: Callable[[slice], Any]) -> Any:
    """The sum of `collect` over consecutive slices of `rows` rows, in order."""
    total = collect(slice(0, rows))
    for a in range(rows, n, rows):
        total = total + collect(slice(a, a + rows))
    return total
