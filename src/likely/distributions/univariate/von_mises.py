"""Von Mises distribution of angles, the circular analogue of the normal distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import i0e, i1e, ndtri

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.core.errors import DomainError, sentence
from likely.distributions.column_distribution import FeatureDistribution
from likely.distributions.distribution import in_units, lone
from likely.distributions.symmetric_distribution import Centered
from likely.numerics.bessel import bessel_ratio, bessel_ratio_complement, concentration_of, log_i0_scaled
from likely.numerics.special import LOG_2PI

GRAIN = 1e-15  # rounding error of the length of a mean unit vector
DROP = 45.0  # of log p: smaller densities are negligible in an integral
NODES, SHARES = np.polynomial.legendre.leggauss(64)
PIECE = 1 << 14  # angles that are integrated at once


@dataclass(frozen=True, eq=False)
class VonMises(Centered, FeatureDistribution):
    """Von Mises distribution of angles.

    log p(x | μ, κ) = Σⱼ κⱼ cos(xⱼ − μⱼ) − log 2π I₀(κⱼ): angles in radians, in d independent columns.

    Angles are any real numbers, and multiples of 2π make no difference to `log_prob`. As a distribution on the line it
    is one period, cut opposite the center: draws, `cdf` and `quantile` lie in μ − π … μ + π. κ = 0 is the uniform
    distribution. The conjugate prior of μ with κ known is a von Mises distribution again: `VonMisesPrior`. `log_prob`,
    `cdf` and `quantile` are accurate up to κ = 1e15, where the distribution is nearly Gaussian. What is *estimated* is
    the length of a mean unit vector, in double precision: κ has a relative error of about 2e-16 κ, which is 2e-6 at a
    standard deviation of 1e-5 radians and 2e-4 at 1e-6. Beyond κ = 5e14 it is clipped, with a warning.

    Parameters
    ----------
    center : array-like (d,) or (K, d)
        Mean directions μ, in radians.
    concentration : array-like (d,) or (K, d)
        Concentrations κ ≥ 0.

    See Also
    --------
    VonMisesPrior : The conjugate prior of the center.
    VonMisesDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2.

    Examples
    --------
    >>> VonMises(0.0, 2.0).log_prob([0.0, np.pi, 4 * np.pi]).round(4)
    array([-0.6619, -4.6619, -0.6619])
    """

    center: Annotated[Array, declared.numbers("* d")]  # μ: (d,) or (K, d)
    concentration: Annotated[Array, declared.numbers("* d", 0)]  # κ ≥ 0

    _domains: ClassVar[dict[str, str]] = {"center": "real", "concentration": "unsigned"}
    _spreads: ClassVar[bool] = True
    _support = "real"
    _n_features = 2
    _limits: ClassVar[dict[str, tuple[float, str]]] = {
        "concentration": (0.5 / GRAIN, "too narrow for the concentration to be estimated")
    }
    _harmless = 0.0

    @staticmethod
    def _parameter_score(x: Array, center: Array, concentration: Array) -> tuple[Array, ...]:
        """∂ log p by the center and log κ."""
        delta, k = x - center, concentration
        return k * np.sin(delta), k * (np.cos(delta) - i1e(k) / i0e(k))

    def _log_pdf(self, x: Array, center: Array, concentration: Array) -> Array:
        return -LOG_2PI - log_i0_scaled(concentration) - 2 * concentration * np.sin(0.5 * (x - center)) ** 2

    def _cdf(self, x: Array, center: Array, concentration: Array) -> Array:
        z, kappa = np.broadcast_arrays(x - center, concentration)
        below = lower_cdf(-np.minimum(np.abs(z), np.pi), kappa)
        return np.where(z <= 0, below, 1.0 - below)

    def _quantile(self, p: Array, center: Array, concentration: Array) -> Array:
        p, kappa = np.broadcast_arrays(p, concentration)
        z = lower_quantile(np.minimum(p, 1.0 - p), kappa)
        return np.asarray(center + np.where(p <= 0.5, z, -z))

    def _draw(self, shape: tuple[int, ...], rng: Generator, center: Array, concentration: Array) -> Array:
        """Rejection sampler of Best and Fisher, from NumPy."""
        # NumPy takes −0.0 for a negative number
        return np.asarray(center + rng.vonmises(0.0, np.abs(concentration), shape))

    def _entropy(self, center: Array, concentration: Array) -> Array:
        return LOG_2PI + log_i0_scaled(concentration) + concentration * bessel_ratio_complement(concentration)

    @property
    def variance(self) -> Array:
        """The circular variance 1 − I₁(κ) / I₀(κ): 0 for one direction, 1 for the uniform distribution."""
        return bessel_ratio_complement(self.concentration)

    @property
    def resultant(self) -> Array:
        """I₁(κ) / I₀(κ): the length of the mean unit vector."""
        return bessel_ratio(self.concentration)

    @property
    def _turn(self) -> tuple[float, float]:
        """The interval of the distribution on the line, of one column."""
        return float(self.center[0] - np.pi), float(self.center[0] + np.pi)

    def kl(self, other: VonMises, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = log I₀(κ')/I₀(κ) + A(κ) (κ − κ' cos(μ − μ')); member by member for stacks."""
        self._same_shape(other)
        a, b = self.concentration, other.concentration
        turned = 2 * b * bessel_ratio(a) * np.sin(0.5 * (self.center - other.center)) ** 2
        each = log_i0_scaled(b) - log_i0_scaled(a) + (b - a) * bessel_ratio_complement(a) + turned
        return in_units(lone(np.maximum(each, 0.0).sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def _plain(cls, d: int) -> VonMises:
        return cls.trusted(center=np.zeros(d), concentration=np.ones(d))

    def _features(self, x: Array) -> list[Array]:
        return [np.cos(x), np.sin(x)]

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        # one direction alone: the likelihood has no maximum; κ is limited by rounding
        ratio = np.minimum(np.hypot(*means), 1.0 - GRAIN)
        return {"center": np.arctan2(means[1], means[0]), "concentration": np.asarray(concentration_of(ratio))}

    def _expected_log(self, means: list[Array], center: Array, concentration: Array) -> Array:
        lack = 1.0 - means[0] * np.cos(center) - means[1] * np.sin(center)
        return -LOG_2PI - log_i0_scaled(concentration) - concentration * lack

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None) -> VonMises:  # type: ignore[override]
        """Matches mean direction and circular variance, which is maximum likelihood too."""
        return cls.fit(x, weight)

    @classmethod
    def from_moments(cls, mean: ArrayLike, variance: ArrayLike) -> VonMises:
        """The distribution with this mean direction and circular variance (in 0 … 1).

        >>> VonMises.from_moments(0.5, 0.25).concentration.round(4)
        array([2.3693])
        """
        variance = np.asarray(variance, dtype=np.float64)
        if not ((variance > 0) & (variance <= 1)).all():
            raise DomainError(sentence("VonMises", "the circular variance must lie in (0, 1]", variance))
        return cls(np.asarray(mean, dtype=np.float64), concentration_of(1.0 - variance, variance))


def lower_cdf(z: Array, kappa: Array) -> Array:
    """P(Z ≤ z) for −π ≤ z ≤ 0 about the center 0, to fourteen digits.

    p(z) ∫ exp(−2κ sin(|z| + v/2) sin(v/2)) dv over v from 0 to where log p has fallen by 45, or to −π: the exponent is
    a difference of cosines that does not cancel, and 64 Gauss–Legendre nodes are exact to rounding.
    """
    shape = np.shape(z)
    flat, k = np.ravel(z), np.ravel(kappa)
    parts = [_lower_share(flat[i : i + PIECE], k[i : i + PIECE]) for i in range(0, len(flat), PIECE)]
    return np.concatenate(parts).reshape(shape) if parts else np.empty(shape)


def _lower_share(z: Array, kappa: Array) -> Array:
    distance = -z
    with np.errstate(divide="ignore", over="ignore"):
        edge = np.minimum(np.sin(0.5 * distance) ** 2 + 0.5 * DROP / kappa, 1.0)
    length = np.minimum(2 * np.arcsin(np.sqrt(edge)), np.pi) - distance
    v = 0.5 * np.maximum(length, 0.0)[:, None] * (1 + NODES)
    drop = 2 * kappa[:, None] * np.sin(distance[:, None] + 0.5 * v) * np.sin(0.5 * v)
    height = -LOG_2PI - log_i0_scaled(kappa) - 2 * kappa * np.sin(0.5 * distance) ** 2
    return np.asarray(np.exp(height) * (np.exp(-drop) @ SHARES) * 0.5 * np.maximum(length, 0.0))


def lower_quantile(p: Array, kappa: Array) -> Array:
    """Inverse of `lower_cdf` for p ≤ ½: Newton's method for log P, with bisection outside the bracket."""
    shape = np.shape(p)
    p, kappa = np.ravel(p).astype(np.float64), np.ravel(kappa)
    with np.errstate(divide="ignore", invalid="ignore"):
        sine = np.where(p > 0, ndtri(p), -np.inf) / (2 * np.sqrt(kappa))
        z = np.where(kappa < 1, (2 * p - 1) * np.pi, 2 * np.arcsin(np.clip(sine, -1.0, 0.0)))
    z, low, high = np.clip(z, -np.pi, 0.0), np.full(p.shape, -np.pi), np.zeros(p.shape)
    open_ = np.flatnonzero(p > 0)
    for _ in range(100):
        if not len(open_):
            break
        at, goal, k = z[open_], p[open_], kappa[open_]
        share = lower_cdf(at, k)
        low[open_], high[open_] = np.where(share < goal, at, low[open_]), np.where(share >= goal, at, high[open_])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            height = -LOG_2PI - log_i0_scaled(k) - 2 * k * np.sin(0.5 * at) ** 2
            new = at - (np.log(share) - np.log(goal)) * share * np.exp(-height)
        inside = (new >= low[open_]) & (new <= high[open_])
        z[open_] = np.where(inside, new, 0.5 * (low[open_] + high[open_]))
        open_ = open_[np.abs(z[open_] - at) > 1e-14 * np.abs(at)]  # quadratic convergence
    return np.where(p > 0, z, -np.pi).reshape(shape)
