"""Uniform distribution on an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.core.errors import DomainError, sentence
from likely.core.protocols import AnyPrior
from likely.distributions.column_distribution import ColumnDistribution, refuse_few, unsigned_variance
from likely.distributions.distribution import in_units, lone
from likely.distributions.scale_floor import grain
from likely.distributions.statistics.extremes import MinMaxStats, extremes
from likely.numerics.special import LOG_2


@dataclass(frozen=True, eq=False)
class Uniform(ColumnDistribution):
    """Uniform distribution.

    log p(x | l, u) = −Σⱼ log(uⱼ − lⱼ) for lⱼ ≤ xⱼ ≤ uⱼ, in d independent columns.

    Maximum likelihood puts the ends on the extremes of the data, so that a new row just outside has density 0:
    `weak_prior` widens them by the mean spacing of the data, which is also the unbiased estimate, and
    `BilateralPareto`, the conjugate prior of both ends, has a predictive distribution with tails.

    Parameters
    ----------
    low : array-like (d,) or (K, d)
        Lower ends l.
    high : array-like (d,) or (K, d)
        Upper ends u.

    See Also
    --------
    UniformPredictive : The predictive distribution, which has tails.
    UniformDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 1.3.

    Examples
    --------
    >>> Uniform(0.0, 4.0).log_prob([1.0, 5.0]).round(4)
    array([-1.3863,    -inf])
    >>> Uniform.fit([1.0, 2.0, 4.0]).high, Uniform.unbiased_fit([1.0, 2.0, 4.0]).high
    (array([4.]), array([5.5]))
    """

    low: Annotated[Array, declared.numbers("* d")]  # l: (d,) or (K, d)
    high: Annotated[Array, declared.numbers("* d")]  # u

    _domains: ClassVar[dict[str, str]] = {"low": "real", "high": "real"}
    _spreads: ClassVar[bool] = True

    def _agree(self, **parts: Array) -> None:
        if not (parts["low"] < parts["high"]).all():
            raise DomainError(sentence("Uniform", "low must lie below high"))

    def _log_pdf(self, x: Array, low: Array, high: Array) -> Array:
        return np.where((x >= low) & (x <= high), -log_width(low, high), -np.inf)

    def _cdf(self, x: Array, low: Array, high: Array) -> Array:
        return np.clip((0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low), 0.0, 1.0)

    def _quantile(self, p: Array, low: Array, high: Array) -> Array:
        return along(low, high, p)

    def _draw(self, shape: tuple[int, ...], rng: Generator, low: Array, high: Array) -> Array:
        return along(low, high, rng.random(shape))

    def _entropy(self, low: Array, high: Array) -> Array:
        return log_width(low, high)

    @property
    def mean(self) -> Array:
        """(l + u) / 2."""
        return 0.5 * self.low + 0.5 * self.high

    @property
    def mode(self) -> Array:
        """The midpoint; every value of the interval is a mode."""
        return self.mean

    @property
    def variance(self) -> Array:
        """(u − l)² / 12."""
        with np.errstate(over="ignore"):  # overflows to infinity
            return np.asarray((0.5 * self.high - 0.5 * self.low) ** 2 / 3)

    def kl(self, other: Uniform, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log (u' − l')/(u − l); infinite unless other covers the interval."""
        self._same_shape(other)
        inside = (other.low <= self.low) & (self.high <= other.high)
        more = log_width(other.low, other.high) - log_width(self.low, self.high)
        return in_units(lone(np.where(inside, more, np.inf).sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> Uniform:
        """Ends √(3 variance) to both sides of the mean."""
        half = np.sqrt(3.0) * np.sqrt(unsigned_variance(variance, "Uniform"))
        return cls(np.asarray(mean) - half, np.asarray(mean) + half)

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> Uniform:
        """Ends (max − min)/(n − 1) beyond the extremes: the range is that of the data times (n + 1)/(n − 1)."""
        stats = cls.blank(x).collect(x, weight)
        refuse_few(stats.weight, 1.0, "Uniform")
        step = (stats.high - stats.low) / (stats.weight - 1.0)
        return cls(stats.low - step, stats.high + step)

    @classmethod
    def _plain(cls, d: int) -> Uniform:
        return cls.trusted(low=np.zeros(d), high=np.ones(d))

    def _collected(self, z: Array, shares: Any) -> MinMaxStats:
        return extremes(z, shares, self.members)

    def refit(self, stats: MinMaxStats, prior: AnyPrior | None = None) -> Self:
        """Ends at the extremes, or with a prior the posterior mode; a column without data keeps its ends."""
        self._fits(stats)
        if prior is not None:
            return prior.update(stats).point("mode")
        self._check(stats)
        low, high = apart(stats.low, stats.high)
        return self.replace(low=np.where(stats.seen, low, self.low), high=np.where(stats.seen, high, self.high))

    def objective(self, stats: MinMaxStats, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior): −inf if a value lies beyond the ends."""
        self._fits(stats)
        inside = (self.low <= stats.low) & (stats.high <= self.high)
        each = np.where(inside, -stats.weight * log_width(self.low, self.high), -np.inf)
        value = float(np.where(stats.seen, each, 0.0).sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: MinMaxStats) -> Any:
        """`BilateralPareto.weak`: ends beyond the extremes by the mean spacing of the data."""
        from likely.distributions.priors.bilateral_pareto import BilateralPareto

        return BilateralPareto.weak(stats)


def log_width(low: Array, high: Array) -> Array:
    """log(u − l), computed in halves so that the difference does not overflow."""
    return (
        np.asarray(LOG_2 + np.log(0.5 * high - 0.5 * low))
        if np.max(np.abs([low, high])) > 1e300
        else np.log(high - low)
    )


def along(low: Array, high: Array, share: Array) -> Array:
    """l + share (u − l), also where the difference overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = low + share * (high - low)
    return np.clip(np.where(np.isfinite(near), near, low * (1 - share) + high * share), low, high)


def apart(low: Array, high: Array) -> tuple[Array, Array]:
    """Ends that do not coincide: a constant column gets a width of 1e-8 of its absolute value."""
    one = low == high
    half = 0.5 * grain(low)
    return np.where(one, low - half, low), np.where(one, high + half, high)
