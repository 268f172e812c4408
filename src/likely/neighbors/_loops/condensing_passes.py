"""Which rows are enough for the nearest of them to decide all others: the loops of condensing.

Distances are sums as in `neighbors._loops.box_tree`, of entries that both rows have; of equals the smallest row number
wins.
"""

from __future__ import annotations

import numpy as np

from likely.neighbors._loops.box_tree import ABSOLUTE, LARGEST, SQUARED
from likely.numerics.compile import compiled


@compiled
def _apart(points, a, b, kind, p, limit):  # type: ignore[no-untyped-def]
    """How far two rows are apart, or infinity as soon as it is beyond the limit: sums only grow."""
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
    """Keep one more row, and tell all that it is nearer to."""
    there[row] = True
    for i in range(len(points)):
        total = _apart(points, i, row, kind, p, away[i])
        if total < away[i] or (total == away[i] and row < who[i]):
            away[i], who[i] = total, row


@compiled
def grow_store(points, labels, firsts, kind, p, there, away, who):  # type: ignore[no-untyped-def]
    """Hart's rule: rows join that those before decide wrongly, until none is; `there`, `away` and `who` are filled in.

    points (n, d), labels (n,), firsts (C,) rows to begin with; away (n,) infinity and who (n,) n at first.
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


@compiled
def shrink_store(points, labels, kind, p, there, away, who):  # type: ignore[no-untyped-def]
    """Gates' rule: the last rows first, those leave without which nothing is decided worse."""
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
                        total = _apart(points, i, other, kind, p, near[i])
                        if found[i] == n or total < near[i]:
                            near[i], found[i] = total, other
                spare = labels[found[i]] == labels[i] or labels[row] != labels[i]
        if not spare:
            there[row] = True
            continue
        for i in range(n):
            if who[i] == row:
                away[i], who[i] = near[i], found[i]
