"""Cauchy distribution: heavy tails, neither mean nor variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.core.errors import DomainError, sentence
from likely.distributions.column_distribution import ValueDistribution
from likely.distributions.distribution import in_units, lone
from likely.distributions.symmetric_distribution import Centered
from likely.distributions.univariate.cauchy_fit import best_cauchy
from likely.numerics.special import LOG_2, LOG_PI


@dataclass(frozen=True, eq=False)
class Cauchy(Centered, ValueDistribution):
    """Cauchy distribution.

    log p(x | μ, s) = −Σⱼ log π sⱼ (1 + zⱼ²) with z = (x − μ) / s, in d independent columns   (Ney 1.5).

    Student's t distribution with one degree of freedom. It has no mean and no variance: `center` is the median, and the
    scale is half the interquartile range. The joint likelihood has one maximum (Copas 1975), found by
    Newton's method, unless half of the weight lies on one value: the scale estimate then goes to its floor.

    >>> Cauchy(0.0, 1.0).log_prob([0.0, 1.0]).round(4)
    array([-1.1447, -1.8379])
    """

    center: Annotated[Array, declared.numbers("* d")]  # μ: (d,) or (K, d)
    scale: Annotated[Array, declared.numbers("* d", 0)]  # s

    _domains: ClassVar[dict[str, str]] = {"center": "real", "scale": "positive"}
    _spreads: ClassVar[bool] = True

    @staticmethod
    def _parameter_score(x: Array, center: Array, scale: Array) -> tuple[Array, ...]:
        """∂ log p by the center and the log scale."""
        z = (x - center) / scale
        weight = 1 / (1 + z * z)
        return 2 * z * weight / scale, 1 - 2 * weight

    def _log_pdf(self, x: Array, center: Array, scale: Array) -> Array:
        deviation = np.abs(x - center)
        spread = np.pi * (scale + deviation * (deviation / scale))
        inside = (spread > 0) & (spread < np.inf)
        if np.all(inside):
            return np.asarray(-np.log(spread))
        # in logarithms, and in halves where the difference itself overflows
        log_deviation = np.where(np.isinf(deviation), LOG_2 + np.log(np.abs(0.5 * x - 0.5 * center)), np.log(deviation))
        far = LOG_PI + np.logaddexp(np.log(scale), 2 * log_deviation - np.log(scale))
        return -np.where(inside, np.log(spread), far)

    def _cdf(self, x: Array, center: Array, scale: Array) -> Array:
        return np.arctan2(scale, center - x) / np.pi

    def _quantile(self, p: Array, center: Array, scale: Array) -> Array:
        tail = np.minimum(p, 1.0 - p)
        far = scale / np.tan(np.pi * tail)
        near = scale * np.tan(np.pi * (p - 0.5))
        return center + np.where(tail > 0.25, near, np.where(p < 0.5, -far, far))

    def _draw(self, shape: tuple[int, ...], rng: Generator, center: Array, scale: Array) -> Array:
        return center + scale * rng.standard_cauchy(shape)

    def _entropy(self, center: Array, scale: Array) -> Array:
        return np.log(4 * np.pi) + np.log(scale)

    @property
    def mean(self) -> NoReturn:
        """Raises: the mean does not exist."""
        raise DomainError(sentence("Cauchy", "the distribution has no mean", remedy="use center, the median"))

    @property
    def variance(self) -> NoReturn:
        """Raises: the variance does not exist."""
        raise DomainError(
            sentence("Cauchy", "the distribution has no variance", remedy="use scale, half the interquartile range")
        )

    @property
    def expected(self) -> Array:
        """Value imputed for a missing entry: the median."""
        return self.center

    def kl(self, other: Cauchy, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log ((s + s')² + (μ − μ')²) / 4ss'   (Chyzak and Nielsen 2019); member by member."""
        self._same_shape(other)
        root = np.sqrt(self.scale) * np.sqrt(other.scale)
        with np.errstate(over="ignore"):
            deviation = np.hypot(self.scale - other.scale, self.center - other.center) / (2 * root)
            sum_ = np.hypot(0.5 * self.scale + 0.5 * other.scale, 0.5 * self.center - 0.5 * other.center)
            far = 2 * np.log(sum_) - np.log(self.scale) - np.log(other.scale)
            each = np.where(deviation < 1e100, np.log1p(deviation**2), far)
        return in_units(lone(each.sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> NoReturn:
        """Raises: there are no moments to match."""
        raise DomainError(sentence("Cauchy", "the distribution has no moments to match", remedy="use fit"))

    @classmethod
    def _plain(cls, d: int) -> Cauchy:
        return cls.trusted(center=np.zeros(d), scale=np.ones(d))

    def _from_values(self, values: Array, weight: Array, **old: float) -> dict[str, float]:
        center, scale = best_cauchy(values, weight)
        return {"center": center, "scale": scale}
