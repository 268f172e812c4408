"""The covariance that a weak prior has its mode at: that within members, with correlations shrunk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.gaussian.variance_floors import column_floor


def shrunk_within(stats: Moments, pooled: Moments, size: int, least: Callable[[float], float]) -> Array:
    """The pooled covariance within members (d, d), correlations shrunk by a share (size/n)⁴, at least `least(n)`.

    Of parts that a start has told apart (`stats.per_component`), each has its own: (K, d, d).

    n counts rows beyond one for each member. With gaps, each column has an n of its own: the rows in which it was
    seen, times the share of all entries that were seen, which is the number of rows that show it together with
    another column, on average, if entries are missing at random. A correlation is shrunk by the larger share of its
    two columns; the result is positive definite, because min(aᵢ, aⱼ) is a covariance (of a random walk).
    """

    def kept(n: float) -> float:
        return 1.0 - min(max(min(size / n, 1.0) ** 4 if n > 0 else 1.0, least(n)), 1.0)

    d = len(pooled.shift)
    within = stats.scatter.reshape(-1, d, d).sum(axis=0) / pooled.weight
    if getattr(stats, "per_component", False):
        n = stats.weight[:, None, None]
        within = np.where(n > 0, stats.scatter / np.where(n > 0, n, 1.0), within)
    counts = pooled.observed * np.mean(pooled.observed / pooled.weight)
    keep = np.array([kept(n) for n in np.maximum(counts - stats.weight.size, 0.0).tolist()])
    shape: Array = within * np.minimum.outer(keep, keep)
    i = np.arange(d)
    shape[..., i, i] = np.maximum(within[..., i, i], column_floor(pooled)[0])
    return shape


def prior_mean(stats: Moments | ColumnMoments, pooled: Moments | ColumnMoments) -> Array:
    """The mean that a weak prior has: that of all rows, or of parts that a start has told apart each one's own.

    However few rows it is worth, a mean that lies many standard deviations of a thin part away would widen that part.
    """
    if not getattr(stats, "per_component", False):
        return pooled.mean
    weight = stats.weight if isinstance(stats, ColumnMoments) else stats.weight[:, None]
    return np.where(weight > 0, stats.mean, pooled.mean)
