"""Who lives on: each point of a sorted list falls into the piece of the unit line that a weight owns."""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def choose(weights, points, out):  # type: ignore[no-untyped-def]
    """out (m,) = the i with Σ_{j<i} w_j ≤ p < Σ_{j≤i} w_j, for sorted points p (m,) in [0, 1) of the sum of weights.

    A weight of 0 is never chosen, also where rounding puts the last point at the very end.
    """
    total = 0.0
    last = 0
    for i in range(len(weights)):
        total += weights[i]
        if weights[i] > 0.0:
            last = i
    i = 0
    reach = weights[0]
    for j in range(len(points)):
        goal = points[j] * total
        while reach <= goal and i < last:
            i += 1
            reach += weights[i]
        out[j] = i


@compiled
def strata(weights, offsets, out):  # type: ignore[no-untyped-def]
    """`choose` for the points (k + offset_k) / n, one in each of n strata: no branch that the processor would mistake.

    Each weight writes its number where its copies begin, and what was left open is filled from the left.
    """
    n = len(offsets)
    total = 0.0
    last = 0
    for i in range(len(weights)):
        total += weights[i]
        last = i if weights[i] > 0.0 else last
    scale = n / total
    for k in range(n + 1):
        out[k] = 0
    reach = 0.0
    start = 0
    for i in range(last + 1):
        out[start] = i
        reach += weights[i]
        goal = reach * scale
        k = min(int(goal), n - 1)
        start = max(start, k + (1 if offsets[k] < goal - k else 0))
    for k in range(1, n):
        out[k] = max(out[k], out[k - 1])
