"""Predictive distribution of a uniform variable with unknown ends: a uniform center with Pareto tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.distributions.column_distribution import ColumnDistribution


@dataclass(frozen=True, eq=False)
class UniformPredictive(ColumnDistribution):
    """Posterior predictive distribution of uniform columns.

    log p(x | l, u, a) = Σⱼ log a/(a + 2) − log R − (a + 1) log(1 + t/R), with R = u − l and t the distance beyond.

    Constant from l to u, with probability a/(a + 2), and a Pareto tail of exponent a on each side: the predictive
    distribution of a `Uniform` variable under a `BilateralPareto` prior of its ends.

    Parameters
    ----------
    low : array-like (d,) or (K, d)
        Lower ends l of the constant part.
    high : array-like (d,) or (K, d)
        Upper ends u of the constant part.
    shape : array-like (d,) or (K, d)
        Exponents a of the tails.

    See Also
    --------
    Uniform : The same with known ends.
    BilateralPareto : The prior of the ends.

    Examples
    --------
    >>> UniformPredictive(0.0, 1.0, 8.0).log_prob([0.5, 2.0]).round(4)
    array([-0.2231, -6.4615])
    """

    low: Annotated[Array, declared.numbers("* d")]  # l: (d,) or (K, d)
    high: Annotated[Array, declared.numbers("* d")]  # u
    shape: Annotated[Array, declared.numbers("* d", 0)]  # a

    _domains: ClassVar[dict[str, str]] = {"low": "real", "high": "real", "shape": "positive"}

    def _agree(self, **parts: Array) -> None:
        if not (parts["low"] < parts["high"]).all():
            raise DomainError(sentence("UniformPredictive", "low must lie below high"))

    def _log_pdf(self, x: Array, low: Array, high: Array, shape: Array) -> Array:
        width = high - low
        beyond = np.maximum(np.maximum(low - x, x - high), 0.0)
        height = shape / (shape + 2) / width  # one logarithm: two of opposite sign would lose digits
        return np.log(height) - (shape + 1) * np.log1p(beyond / width)

    def _cdf(self, x: Array, low: Array, high: Array, shape: Array) -> Array:
        width, tail = high - low, 1 / (shape + 2)
        below = tail * np.exp(-shape * np.log1p(np.maximum(low - x, 0.0) / width))
        above = tail * np.exp(-shape * np.log1p(np.maximum(x - high, 0.0) / width))
        inside = tail + (1 - 2 * tail) * np.clip((x - low) / width, 0.0, 1.0)
        return np.where(x < low, below, np.where(x > high, 1 - above, inside))

    def _quantile(self, p: Array, low: Array, high: Array, shape: Array) -> Array:
        width, tail = high - low, 1 / (shape + 2)
        rare = np.minimum(np.minimum(p, 1 - p) / tail, 1.0)
        away = width * np.expm1(-np.log(rare) / shape)
        inside = low + width * (p - tail) / (1 - 2 * tail)
        return np.where(p < tail, low - away, np.where(1 - p < tail, high + away, np.clip(inside, low, high)))

    def _draw(self, *how: Any, **parts: Any) -> Array:
        largest = np.finfo(np.float64).max
        return np.clip(super()._draw(*how, **parts), -largest, largest)

    def _entropy(self, low: Array, high: Array, shape: Array) -> Array:
        return np.log(high - low) + np.log1p(2 / shape) + 2 * (shape + 1) / (shape * (shape + 2))

    @property
    def mode(self) -> Array:
        """The midpoint; every value from l to u is a mode."""
        return 0.5 * self.low + 0.5 * self.high

    @property
    def median(self) -> Array:
        """The midpoint."""
        return self.mode

    @property
    def mean(self) -> Array:
        """The midpoint for a above 1; otherwise the mean does not exist."""
        if not (self.shape > 1).all():
            got, remedy = float(self.shape.min()), "use median"
            raise DomainError(sentence("UniformPredictive", "the mean exists for a shape above 1", got, remedy))
        return self.mode

    @property
    def expected(self) -> Array:
        """Value imputed for a missing entry: the midpoint."""
        return self.mode

    @property
    def variance(self) -> Array:
        """R²/12 of the uniform center and E(R/2 + t)² of the tails, weighted; infinite for a ≤ 2."""
        a = np.where(self.shape > 2, self.shape, 3.0)
        inside, tails = a / 12, 2 * (0.25 + 1 / (a - 1) + 2 / ((a - 1) * (a - 2)))
        return np.where(self.shape > 2, (self.high - self.low) ** 2 * (inside + tails) / (a + 2), np.inf)
