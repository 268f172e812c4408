"""Rows with labels: sort them once, and each member's rows stand side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.distributions.gaussian.moments import scratch

GATHER = 1 << 21  # numbers sorted at a time, a part of 32 columns: after many short calls threads wait for each other
LEAST = 4096  # rows sorted at a time in very wide tables


def gather_rows(d: int) -> int:
    """Rows of d columns that are sorted at a time."""
    return max(LEAST, GATHER // max(d, 1))


def by_label(labels: Index, members: int) -> tuple[Index, Index]:
    """Rows in the order of their labels (those of nobody first), and where each label's begin and end (members + 1,).

    >>> order, edges = by_label(np.array([1, -1, 0, 1]), 2)
    >>> order, edges
    (array([1, 2, 0, 3]), array([1, 2, 4]))
    """
    key = (labels + 1).astype(np.min_scalar_type(members))  # one or two bytes are sorted by counting
    order = np.argsort(key, kind="stable")
    return order, np.cumsum(np.bincount(key, minlength=members + 1))


def members_of(x: Array, weight: Array | None, labels: Index, members: int) -> Iterator[tuple[Array, Any, Index]]:
    """Each member's own rows, weights and their places in x; the rows stay valid until the next call."""
    order, edges = by_label(labels, members)
    ordered = np.take(x, order, axis=0, out=scratch("ordered", *x.shape), mode="clip")
    weight = None if weight is None else weight[order]
    for a, b in pairwise(edges):
        yield ordered[a:b], None if weight is None else weight[a:b], order[a:b]


def in_turns(n: int, rows: int, collect: Callable[[slice], Any]) -> Any:
    """The sum of `collect` over consecutive slices of `rows` rows, in order."""
    total = collect(slice(0, rows))
    for a in range(rows, n, rows):
        total = total + collect(slice(a, a + rows))
    return total
