"""Variable elimination for sparse Ising models: exact log Z and exact draws, minimum-degree order.

Eliminating a column with k neighbors leaves a table of 2ᵏ numbers over them (Bertelè and Brioschi 1972). Forests
leave tables of 2, a ladder of 4, a grid of 2^width; a complete graph leaves 2ᵈ, and is refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.distributions.binary.sign_products import pair_matrix, split_sizes

CELLS = 1 << 22  # numbers in all tables together


class FitStep(NamedTuple):
    """An eliminated column: its remaining neighbors (k,), and its log odds given their values (2, …, 2)."""

    column: int
    neighbors: tuple[int, ...]
    log_odds: Array


class Eliminated(NamedTuple):
    """log Z, and the conditional of each column given those eliminated after it."""

    log_z: float
    steps: list[FitStep]


def order_of(J: Array) -> list[tuple[int, tuple[int, ...]]] | None:
    """Minimum-degree elimination order, each column with its remaining neighbors; None where tables are too large."""
    adjacent = [set(np.flatnonzero(row).tolist()) for row in J]
    left, cost, out = set(range(len(J))), 0, []
    while left:
        v = min(left, key=lambda j: (len(adjacent[j]), j))
        cost += 2 << min(len(adjacent[v]), 60)
        if cost > CELLS:
            return None
        out.append((v, tuple(sorted(adjacent[v]))))
        for u in adjacent[v]:
            adjacent[u] |= adjacent[v]
            adjacent[u] -= {u, v}
        left.discard(v)
    return out


def eliminated(weights: Array, d: int) -> Eliminated | None:
    """log Z of fields and couplings (M,), exactly; None where the graph is too dense.

    >>> b = np.concatenate([[0.0], np.zeros(30), np.zeros(435)])
    >>> bool(np.isclose(eliminated(b, 30).log_z, 30 * np.log(2.0)))
    True
    """
    _, h, c = split_sizes(weights, d, 2)
    J = pair_matrix(c, d)
    J = J + J.T
    order = order_of(J)
    if order is None:
        return None
    log_z, steps, tables = 0.0, [], [_pair_table(J, i, j) for i, j in zip(*np.nonzero(np.triu(J)), strict=True)]
    for v, adjacent in order:
        mine = [one for one in tables if v in one[0]]
        tables = [one for one in tables if v not in one[0]]
        low, high = (_joined(mine, v, side, adjacent) + sign * h[v] for side, sign in ((0, -1.0), (1, 1.0)))
        summed = np.logaddexp(low, high)
        steps.append(FitStep(v, adjacent, high - low))
        if adjacent:
            tables.append((adjacent, summed))
        else:
            log_z += float(summed)
    return Eliminated(log_z, steps)


def _pair_table(J: Array, i: int, j: int) -> tuple[tuple[int, ...], Array]:
    return (int(i), int(j)), J[i, j] * np.array([[1.0, -1.0], [-1.0, 1.0]])


def _joined(tables: list[tuple[tuple[int, ...], Array]], v: int, side: int, adjacent: tuple[int, ...]) -> Array:
    """Sum of the tables at one value of column v, over the values of its neighbors (2, …, 2)."""
    out = np.zeros((2,) * len(adjacent))
    for names, table in tables:
        part = np.take(table, side, axis=names.index(v))
        rest = [u for u in names if u != v]
        out += part.reshape([2 if u in rest else 1 for u in adjacent])
    return out


def drawn_by_elimination(found: Eliminated, n: int, rng: Generator) -> Array:
    """Independent exact draws of zeros and ones (n, d): columns in reverse elimination order, given their neighbors."""
    d = len(found.steps)
    x: Index = np.zeros((n, d), dtype=np.intp)
    for v, adjacent, log_odds in reversed(found.steps):
        odds = log_odds[tuple(x[:, u] for u in adjacent)] if adjacent else np.full(n, float(log_odds))
        x[:, v] = rng.logistic(size=n) < odds
    return x.astype(np.float64)
