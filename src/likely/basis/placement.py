"""Placement of centers and knots by data: ranges, means and weighted quantiles of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array


def ranges(x: Array) -> tuple[Array, Array]:
    """Smallest and largest value of each column (d,), apart also for a constant one, and for one at 1e300."""
    low, high = x.min(axis=0), x.max(axis=0)
    flat = ~(high > low)
    half = np.where(flat, 0.5 * np.maximum(np.abs(low), 1.0), 0.0)  # a constant column: as wide as it is large
    return low - half, high + half


def middle_and_half(x: Array) -> tuple[Array, Array]:
    """Center and half width (d,) of the range of each column."""
    low, high = ranges(x)
    return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low


def mean_and_deviation(x: Array, weight: Array | None) -> tuple[Array, Array]:
    """Weighted mean and standard deviation (d,) of each column; the deviation of a constant one is 1."""
    share = np.full(len(x), 1.0 / len(x)) if weight is None else weight / weight.sum()
    mean = x[0] + share @ (x - x[0])
    deviation = np.sqrt(share @ (x - mean) ** 2)
    return mean, np.where(deviation > 0, deviation, 1.0)


def evenly(x: Array, count: int) -> Array:
    """`count` equally spaced points (count, d) over the range of each column; one point is its center."""
    low, high = ranges(x)
    share = np.linspace(0.0, 1.0, count)[:, None] if count > 1 else np.array([[0.5]])
    return (1.0 - share) * low + share * high


def quantiles(x: Array, weight: Array | None, shares: Any) -> Array:
    """Weighted quantiles (k, d): the smallest value below which, or at which, the share of the weight lies.

    An integer weight of m gives what m copies give.

    >>> quantiles(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 1.0, 2.0]), [0.0, 0.5, 0.6])[:, 0]
    array([1., 2., 3.])
    """
    w = np.ones(len(x)) if weight is None else weight
    out = np.empty((len(shares), x.shape[1]))
    for j, column in enumerate(x.T):
        order = np.argsort(column, kind="stable")
        reached = np.cumsum(w[order])
        wanted = np.asarray(shares) * reached[-1] * (1 - 1e-12)  # sums of weights are rounded
        out[:, j] = column[order][np.minimum(np.searchsorted(reached, wanted), len(x) - 1)]
    return out
