"""Maximum-likelihood fit of the gamma distribution from the mean and the mean logarithm of each column."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.distributions.column_distribution import FeatureDistribution
from likely.distributions.statistics.positive_sums import PositiveSums, positive_sums
from likely.numerics.gamma_dirichlet_shapes import gamma_shape
from likely.numerics.special import deviance, log_poisson_peak, log_ratio

GRAIN = 1e-15  # log mean − mean log of a constant column, from rounding
ONE_VALUE = 1e-33  # a difference that is rounding alone


class GammaLearning(FeatureDistribution):
    """Maximum likelihood of shape and rate: log a − ψ(a) = log x̄ − mean log x, and b = a / x̄ (Minka's Newton steps).

    A 0 has no logarithm: fitting refuses it, by row and column. A constant column gets a deviation of 4e-8 times its
    value.
    """

    _domains: ClassVar[dict[str, str]] = {"shape": "positive", "rate": "positive"}
    _spreads: ClassVar[bool] = True
    _support = "positive"
    _n_features = 2
    _harmless = 1.0

    @classmethod
    def _plain(cls, d: int) -> Self:
        return cls.trusted(shape=np.ones(d), rate=np.ones(d))

    def _features(self, x: Array) -> list[Array]:
        return [x, np.log(x)]

    def _collected(self, z: Array, shares: Any) -> PositiveSums:  # type: ignore[override]
        return positive_sums(z, shares, self.members)

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        mean, gap = means
        shape = gamma_shape(np.where(gap > ONE_VALUE, gap, GRAIN * (1 + np.abs(np.log(mean)))))
        with np.errstate(over="ignore"):
            return {"shape": shape, "rate": shape / mean}

    def _expected_log(self, means: list[Array], shape: Array, rate: Array) -> Array:
        mean, gap = means
        with np.errstate(over="ignore"):
            height = log_poisson_peak(shape) + log_ratio(shape, mean) + gap
            return np.asarray(height - deviance(shape, rate * mean) - shape * gap)

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> Self:
        """The distribution with this mean and variance: a = m² / v, b = m / v."""
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        if not ((mean > 0) & (variance > 0)).all():
            raise DomainError(sentence("Gamma.from_moments", "mean and variance must be positive", (mean, variance)))
        shape, rate = np.broadcast_arrays(mean * (mean / variance), mean / variance)
        return cls.trusted(shape=np.array(np.atleast_1d(shape)), rate=np.array(np.atleast_1d(rate)))
