"""Condensing of the nearest-neighbor rule: compiled passes of Hart's and Gates' algorithms.

Distances are sums as in `neighbors._loops.kd_tree`, of entries that both rows have; ties go to the smallest row
number.
"""

from __future__ import annotations

import numpy as np

from likely.neighbors._loops.kd_tree import ABSOLUTE, LARGEST, SQUARED
from likely.numerics.compile import compiled, compiled_for_size


@compiled
def _distance(points, a, b, kind, p, limit):  # type: ignore[no-untyped-def]
    """Distance of two rows, or infinity as soon as it exceeds the limit: sums only grow."""
    d = points.shape[1]
    total, seen = 0.0, 0
    for j in range(d):
        z = abs(points[a, j] - points[b, j])
        if z == z:
            seen += 1
            if kind == SQUARED:
                total += z * z
            elif kind == ABSOLUTE:
                total += z
            elif kind == LARGEST:
                total = max(total, z)
            else:
                total += z**p
            if total > limit:
                return np.inf
    if seen == 0:
        return np.inf
    return total * d / seen if seen < d and kind != LARGEST else total


@compiled
def _keep(points, row, kind, p, there, away, who):  # type: ignore[no-untyped-def]
    """Add one row to the store, and update the nearest stored row of all rows."""
    there[row] = True
    for i in range(len(points)):
        total = _distance(points, i, row, kind, p, away[i])
        if total < away[i] or (total == away[i] and row < who[i]):
            away[i], who[i] = total, row


@compiled_for_size
def grow_store(points, labels, firsts, kind, p, there, away, who):  # type: ignore[no-untyped-def]
    """Hart's rule: add misclassified rows to the store until none is left; `there`, `away` and `who` are filled.

    points (n, d), labels (n,), firsts (C,) initial rows; away (n,) infinity and who (n,) n initially.
    """
    n = len(points)
    for row in firsts:
        _keep(points, row, kind, p, there, away, who)
    grown = True
    while grown:
        grown = False
        for row in range(n):
            if not there[row] and (who[row] == n or labels[who[row]] != labels[row]):
                _keep(points, row, kind, p, there, away, who)
                grown = True


@compiled_for_size
def shrink_store(points, labels, kind, p, there, away, who):  # type: ignore[no-untyped-def]
    """Gates' rule: remove rows, the last first, without which no row is misclassified."""
    n = len(points)
    near, found = np.empty(n), np.empty(n, dtype=np.int64)
    for row in range(n - 1, -1, -1):
        if not there[row]:
            continue
        there[row] = False
        spare = there.any()
        for i in range(n):
            if spare and who[i] == row:
                near[i], found[i] = np.inf, n
                for other in range(n):
                    if there[other]:
                        total = _distance(points, i, other, kind, p, near[i])
                        if found[i] == n or total < near[i]:
                            near[i], found[i] = total, other
                spare = labels[found[i]] == labels[i] or labels[row] != labels[i]
        if not spare:
            there[row] = True
            continue
        for i in range(n):
            if who[i] == row:
                away[i], who[i] = near[i], found[i]
