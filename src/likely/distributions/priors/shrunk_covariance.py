"""Mode of the weak prior: pooled within-member covariance with shrunk correlations, and its mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likely.core.arrays import Array
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.gaussian.variance_floors import column_floor


def shrunk_within(stats: Moments, pooled: Moments, size: int, least: Callable[[float], float]) -> Array:
    """Pooled within-member covariance (d, d), correlations shrunk by a share (size/n)⁴, at least `least(n)`.

    Mixture components (`stats.per_component`) have one each: (K, d, d).

    n is the number of rows minus one per member. With missing entries, each column has its own n: the rows in which it
    is observed, times the share of observed entries, which is the mean number of rows in which it is observed together
    with another column, if entries are missing completely at random. A correlation is shrunk by the larger share of its
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
    """Mean of the weak prior: that of all rows, or for mixture components the mean of each.

    However few its pseudo-counts, a prior mean many standard deviations away from a component would inflate its
    covariance.
    """
    if not getattr(stats, "per_component", False):
        return pooled.mean
    weight = stats.weight if isinstance(stats, ColumnMoments) else stats.weight[:, None]
    return np.where(weight > 0, stats.mean, pooled.mean)
