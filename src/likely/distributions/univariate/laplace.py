"""Laplace (double exponential) distribution, fitted by the median and the mean absolute deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.distributions.column_distribution import ValueDistribution, unsigned_variance
from likely.distributions.distribution import in_units, lone
from likely.distributions.scale_floor import grain
from likely.distributions.symmetric_distribution import Centered
from likely.numerics.special import LOG_2, deviance, log_ratio


@dataclass(frozen=True, eq=False)
class Laplace(Centered, ValueDistribution):
    """Laplace (double exponential) distribution.

    log p(x | μ, v) = −Σⱼ log 2vⱼ + |xⱼ − μⱼ| / vⱼ, in d independent columns.

    v is the scale, the mean absolute deviation; the variance is 2v². Maximum likelihood takes the median, and where
    the median is an interval (an even number of rows), its midpoint.

    Parameters
    ----------
    center : array-like (d,) or (K, d)
        Medians μ.
    scale : array-like (d,) or (K, d)
        Scales v.

    See Also
    --------
    LaplaceDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 1.5 and 3.4.

    Examples
    --------
    >>> distribution = Laplace.fit([1.0, 2.0, 4.0, 8.0, 16.0])
    >>> distribution.center, distribution.scale
    (array([4.]), array([4.2]))
    """

    center: Annotated[Array, declared.numbers("* d")]  # μ: (d,) or (K, d)
    scale: Annotated[Array, declared.numbers("* d", 0)]  # v

    _domains: ClassVar[dict[str, str]] = {"center": "real", "scale": "positive"}
    _spreads: ClassVar[bool] = True

    @staticmethod
    def _parameter_score(x: Array, center: Array, scale: Array) -> tuple[Array, ...]:
        """∂ log p by the center and the log scale."""
        return np.sign(x - center) / scale, np.abs(x - center) / scale - 1

    def _log_pdf(self, x: Array, center: Array, scale: Array) -> Array:
        return -(np.abs(x - center) / scale) - np.log(scale) - LOG_2

    def _cdf(self, x: Array, center: Array, scale: Array) -> Array:
        tail = 0.5 * np.exp(-np.abs(x - center) / scale)
        return np.where(x < center, tail, 1.0 - tail)

    def _quantile(self, p: Array, center: Array, scale: Array) -> Array:
        deviation = -scale * np.log(2.0 * np.minimum(p, 1.0 - p))
        return np.where(p < 0.5, center - deviation, center + deviation)

    def _draw(self, shape: tuple[int, ...], rng: Generator, center: Array, scale: Array) -> Array:
        waits = rng.standard_exponential((2, *shape))
        return center + scale * (waits[0] - waits[1])

    def _entropy(self, center: Array, scale: Array) -> Array:
        return 1.0 + LOG_2 + np.log(scale)

    @property
    def variance(self) -> Array:
        """2 v²."""
        with np.errstate(over="ignore"):  # overflows to infinity
            return np.asarray(2.0 * self.scale**2)

    def kl(self, other: Laplace, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log(v'/v) − 1 + (|μ − μ'| + v exp(−|μ − μ'|/v)) / v'; member by member for stacks."""
        self._same_shape(other)
        v, w = self.scale, other.scale
        distance = np.abs(self.center - other.center) / v
        value = deviance(w, v) / w + np.exp(log_ratio(v, w)) * (distance + np.expm1(-distance))
        return in_units(lone(value.sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: Any, variance: Any) -> Laplace:
        """The distribution of this mean, with v = √(variance / 2)."""
        return cls(mean, np.sqrt(0.5 * unsigned_variance(variance, "Laplace")))

    @classmethod
    def _plain(cls, d: int) -> Laplace:
        return cls.trusted(center=np.zeros(d), scale=np.ones(d))

    def _from_values(self, values: Array, weight: Array, **old: float) -> dict[str, float]:
        center = weighted_median(values, weight)
        scale = float(weight @ np.abs(values - center) / weight.sum())
        return {"center": center, "scale": scale if scale > 0 else float(grain(center))}


def weighted_median(values: Array, weight: Array) -> float:
    """Weighted median of sorted values; the midpoint where it is an interval.

    >>> weighted_median(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0]))
    3.0
    """
    below = np.cumsum(weight)
    half, grain_of_sums = 0.5 * below[-1], 1e-12 * below[-1]
    at = int(np.searchsorted(below, half - grain_of_sums))
    reached = below[at] <= half + grain_of_sums
    return float(0.5 * values[at] + 0.5 * values[at + 1]) if reached and at + 1 < len(values) else float(values[at])
