"""Pool adjacent violators: where a rising curve would fall, neighbours share their mean."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array

SLOW = 0.9  # a pass that leaves more blocks than this share has begun to crawl: the stack then finishes


def pool_adjacent_violators(y: Array, weight: Array) -> tuple[Array, Array]:
    """The rising sequence nearest to y in weighted squares, as its blocks: (value, number of entries) of each.

    min Σ w_i (f_i − y_i)²  subject to f_1 ≤ f_2 ≤ …; whoever is not below its right neighbour shares its block, and
    the same holds of blocks. Passes over whole arrays do most of the pooling and a stack the rest, so the work is
    O(n) for any input.

    >>> value, size = pool_adjacent_violators(np.array([1.0, 3.0, 2.0, 4.0]), np.ones(4))
    >>> value, size
    (array([1. , 2.5, 4. ]), array([1, 2, 1]))
    """
    total, mass, size = y * weight, weight.astype(np.float64), np.ones(len(y), dtype=np.intp)
    while len(total) > 1:
        mean = total / mass
        starts = np.flatnonzero(np.concatenate([[True], mean[1:] > mean[:-1]]))
        if len(starts) == len(total):
            break
        crawling = len(starts) > SLOW * len(total)
        total, mass, size = (np.add.reduceat(part, starts) for part in (total, mass, size))
        if crawling:
            total, mass, size = _by_stack(total, mass, size)
            break
    return total / mass, size


def _by_stack(total: Array, mass: Array, size: Array) -> tuple[Array, Array, Array]:
    """One pass from the left that looks back: each entry is pushed once and merged at most once."""
    done: list[tuple[float, float, int]] = []
    for t, w, n in zip(total.tolist(), mass.tolist(), size.tolist(), strict=True):
        while done and done[-1][0] * w >= t * done[-1][1]:
            before = done.pop()
            t, w, n = t + before[0], w + before[1], n + before[2]
        done.append((t, w, n))
    pooled = np.array(done)
    return pooled[:, 0], pooled[:, 1], pooled[:, 2].astype(np.intp)
