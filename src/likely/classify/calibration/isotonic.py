"""Isotonic regression by the pool-adjacent-violators algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index

SLOW = 0.9  # if a pass leaves more than this share of blocks, the stack algorithm takes over


def pool_adjacent_violators(y: Array, weight: Array) -> tuple[Array, Index]:
    """Isotonic regression of y in weighted least squares, as blocks: (value, number of entries) of each.

    min Σ w_i (f_i − y_i)²  subject to f_1 ≤ f_2 ≤ …; violating neighbors are pooled, and so are blocks. Vectorized
    passes do most of the pooling and a stack the rest, so the cost is O(n) for any input.

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


def _by_stack(total: Array, mass: Array, size: Index) -> tuple[Array, Array, Index]:
    """One pass with a stack: each entry is pushed once and merged at most once."""
    done: list[tuple[float, float, int]] = []
    for t, w, n in zip(total.tolist(), mass.tolist(), size.tolist(), strict=True):
        while done and done[-1][0] * w >= t * done[-1][1]:
            before = done.pop()
            t, w, n = t + before[0], w + before[1], n + before[2]
        done.append((t, w, n))
    totals, masses, sizes = zip(*done, strict=True)
    return np.array(totals), np.array(masses), np.array(sizes, dtype=np.intp)


def rising_curve(x: Array, is_member: Any, weight: Array) -> tuple[Array, Array]:
    """Knots and levels of the increasing curve x ↦ p(member), with one pseudo-observation at either end.

    >>> rising_curve(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 0, 1, 1]), np.ones(4))
    (array([0., 1., 2., 3.]), array([0.333, 0.333, 0.667, 0.667]))
    """
    at, mass, hits = _merged(x, np.asarray(is_member, dtype=np.float64), weight)
    ends = np.concatenate([[1.0], hits / mass, [0.0]]), np.concatenate([[1.0], mass, [1.0]])
    value, size = pool_adjacent_violators(*ends)
    level = np.repeat(value, size)[1:-1]
    return _corners(at, level)


def _corners(at: Array, level: Array) -> tuple[Array, Array]:
    """The first and last knot of each step: the others lie on the line between."""
    first = np.concatenate([[True], level[1:] != level[:-1]])
    last = np.concatenate([first[1:], [True]])
    kept = first | last
    return at[kept], level[kept]


def _merged(x: Array, hit: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Distinct sorted x, with the weight and the weighted positives at each."""
    at, where = np.unique(x, return_inverse=True)
    mass, hits = (np.asarray(np.bincount(where, w, len(at)), dtype=np.float64) for w in (weight, weight * hit))
    return at, mass, hits
