"""Exponential distribution of waiting times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.distributions.column_distribution import FeatureDistribution, refuse_few
from likely.distributions.distribution import in_units, lone
from likely.numerics.special import deviance


@dataclass(frozen=True, eq=False)
class Exponential(FeatureDistribution):
    """Exponential distribution of waiting times.

    log p(x | λ) = Σⱼ log λⱼ − λⱼ xⱼ for xⱼ ≥ 0, in d independent columns.

    The conjugate prior of its rate is `Gamma`.

    Parameters
    ----------
    rate : array-like (d,) or (K, d)
        Rates λ.

    See Also
    --------
    Gamma : The conjugate prior of the rate.
    Lomax : The predictive distribution.
    ExponentialDensity : The estimator.

    Examples
    --------
    >>> Exponential(2.0).log_prob([0.0, 1.0, -1.0]).round(4)
    array([ 0.6931, -1.3069,    -inf])
    """

    rate: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)

    _domains: ClassVar[dict[str, str]] = {"rate": "positive"}
    _limits: ClassVar[dict[str, tuple[float, str]]] = {"rate": (1e280, "0 or next to 0 throughout: no finite estimate")}
    _support = "unsigned"
    _n_features = 1

    @staticmethod
    def _parameter_score(x: Array, rate: Array) -> tuple[Array, ...]:
        """∂ log p/∂ log λ."""
        return (1 - rate * x,)

    def _log_pdf(self, x: Array, rate: Array) -> Array:
        return np.where(x >= 0, np.log(rate) - rate * x, -np.inf)

    def _cdf(self, x: Array, rate: Array) -> Array:
        return -np.expm1(-rate * np.maximum(x, 0.0))

    def _quantile(self, p: Array, rate: Array) -> Array:
        return -np.log1p(-p) / rate

    def _draw(self, shape: tuple[int, ...], rng: Generator, rate: Array) -> Array:
        return rng.standard_exponential(shape) / rate

    def _entropy(self, rate: Array) -> Array:
        return 1.0 - np.log(rate)

    @property
    def mean(self) -> Array:
        """1 / λ."""
        return 1.0 / self.rate

    @property
    def variance(self) -> Array:
        """1 / λ²."""
        return 1.0 / self.rate**2

    @property
    def mode(self) -> Array:
        """0."""
        return np.zeros_like(self.rate)

    def kl(self, other: Exponential, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log(λ/λ') + λ'/λ − 1; member by member for stacks."""
        self._same_shape(other)
        return in_units(lone((deviance(self.rate, other.rate) / self.rate).sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike | None = None) -> Exponential:
        """The distribution of this mean; it has no second parameter for a variance."""
        return cls(1.0 / np.asarray(mean, dtype=np.float64))

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Exponential:
        """Unbiased estimate λ = (n − 1) / Σ x: the ML estimate 1/mean is biased by the factor n / (n − 1)."""
        stats = cls.blank(x).collect(x, weight)
        refuse_few(stats.weight, 1.0, "Exponential")
        return cls((stats.weight - 1.0) / stats.sums[..., 0])

    def weak_prior(self, stats: Any) -> Any:
        """`Gamma.weak`: pooled pseudo-observations of total weight 0.1."""
        from likely.distributions.univariate.gamma import Gamma

        return Gamma.weak(stats)

    @classmethod
    def _plain(cls, d: int) -> Exponential:
        return cls.trusted(rate=np.ones(d))

    def _features(self, x: Array) -> list[Array]:
        return [x]

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        # all zero: the likelihood has no maximum; the largest finite rate
        return {"rate": 1.0 / np.maximum(means[0], 1e-300)}

    def _expected_log(self, means: list[Array], rate: Array) -> Array:
        return np.log(rate) - rate * means[0]
