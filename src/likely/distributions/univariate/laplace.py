"""The Laplace law: two exponential tails back to back. Its centre is the median, not the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array
from likely.distributions.column_distribution import ValueLaw, unsigned_variance
from likely.distributions.distribution import in_units, lone
from likely.distributions.least_width import grain
from likely.distributions.symmetric import Centred
from likely.numerics.special import LOG_2, deviance, log_ratio


@dataclass(frozen=True, eq=False)
class Laplace(Centred, ValueLaw):
    """log p(x | μ, v) = −Σⱼ log 2vⱼ + |xⱼ − μⱼ| / vⱼ, in d independent columns   (Ney 1.5, 3.4).

    v is the scale, the mean absolute deviation; the variance is 2v². Maximum likelihood takes the median, and where
    a whole interval of values is one (an even number of rows), its middle.

    >>> law = Laplace.fit([1.0, 2.0, 4.0, 8.0, 16.0])
    >>> law.centre, law.scale
    (array([4.]), array([4.2]))
    """

    centre: Array  # μ: (d,) or (K, d)
    scale: Array  # v

    _domains: ClassVar[dict[str, str]] = {"centre": "real", "scale": "positive"}
    _spreads: ClassVar[bool] = True

    def _log_pdf(self, x: Array, centre: Array, scale: Array) -> Array:
        return -(np.abs(x - centre) / scale) - np.log(scale) - LOG_2

    def _cdf(self, x: Array, centre: Array, scale: Array) -> Array:
        tail = 0.5 * np.exp(-np.abs(x - centre) / scale)
        return np.where(x < centre, tail, 1.0 - tail)

    def _quantile(self, p: Array, centre: Array, scale: Array) -> Array:
        away = -scale * np.log(2.0 * np.minimum(p, 1.0 - p))
        return np.where(p < 0.5, centre - away, centre + away)

    def _draw(self, shape: tuple[int, ...], rng: Generator, centre: Array, scale: Array) -> Array:
        waits = rng.standard_exponential((2, *shape))
        return centre + scale * (waits[0] - waits[1])

    def _entropy(self, centre: Array, scale: Array) -> Array:
        return 1.0 + LOG_2 + np.log(scale)

    @property
    def variance(self) -> Array:
        """2 v²."""
        with np.errstate(over="ignore"):  # infinite where no number is large enough
            return np.asarray(2.0 * self.scale**2)

    def kl(self, other: Laplace, bits: bool = False) -> Any:
        """KL(self ‖ other) = Σⱼ log(v'/v) − 1 + (|μ − μ'| + v exp(−|μ − μ'|/v)) / v'; stacks go member by member."""
        self._same_shape(other)
        v, w = self.scale, other.scale
        apart = np.abs(self.centre - other.centre) / v
        value = deviance(w, v) / w + np.exp(log_ratio(v, w)) * (apart + np.expm1(-apart))
        return in_units(lone(value.sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: Any, variance: Any) -> Laplace:
        """The law of this mean, with v = √(variance / 2)."""
        return cls(mean, np.sqrt(0.5 * unsigned_variance(variance, "Laplace")))

    @classmethod
    def _plain(cls, d: int) -> Laplace:
        return cls.trusted(centre=np.zeros(d), scale=np.ones(d))

    def _from_values(self, values: Array, weight: Array, **old: float) -> dict[str, float]:
        centre = weighted_median(values, weight)
        scale = float(weight @ np.abs(values - centre) / weight.sum())
        return {"centre": centre, "scale": scale if scale > 0 else float(grain(centre))}


def weighted_median(values: Array, weight: Array) -> float:
    """The value with half of the weight on each side, of sorted values; the middle of all such values.

    >>> weighted_median(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0]))
    3.0
    """
    below = np.cumsum(weight)
    half, grain_of_sums = 0.5 * below[-1], 1e-12 * below[-1]
    at = int(np.searchsorted(below, half - grain_of_sums))
    reached = below[at] <= half + grain_of_sums
    return float(0.5 * values[at] + 0.5 * values[at + 1]) if reached and at + 1 < len(values) else float(values[at])
