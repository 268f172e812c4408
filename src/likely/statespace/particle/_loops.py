"""Resampling by inversion of the cumulative weights: compiled loops."""

from __future__ import annotations

from likely.numerics.compile import compiled_for_size


@compiled_for_size
def choose(weights, points, out):  # type: ignore[no-untyped-def]
    """Inverse of the cumulative weights: out (m,) = the i with Σ_{j<i} w_j ≤ p < Σ_{j≤i} w_j, for sorted p in [0, 1).

    Points p (m,) are relative to the sum of weights. A weight of 0 is never chosen, not even if the last point is
    rounded to 1.
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


@compiled_for_size
def strata(weights, offsets, out):  # type: ignore[no-untyped-def]
    """`choose` for the points (k + offset_k) / n, one in each of n strata: without unpredictable branches.

    Each weight writes its index where its copies begin, and the entries in between are filled from the left.
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
