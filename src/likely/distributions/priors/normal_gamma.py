"""Normal-gamma distribution: conjugate prior of mean and precision of Gaussian columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaincinv, gammaln

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter, refuse_infinite, rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import added, in_units, lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.priors.normal_inverse_gamma import NormalInverseGamma
from likely.distributions.student_t.student_t import StudentT
from likely.numerics.special import LOG_2PI, log_gamma_density, log_gamma_ratio

SMALLEST = 1e-290  # products below it lose digits, or are 0


@dataclass(frozen=True, eq=False)
class NormalGamma(Value):
    """Normal-gamma distribution: the conjugate prior of mean and precision per column.

    λ ~ Gamma(a, b), μ | λ ~ N(m, 1/κλ). It is `NormalInverseGamma` in the parameterization λ = 1/σ²: posterior,
    marginal likelihood and predictive agree; the mode does not, because densities change with the parameterization. As
    a density, a row is (μ₁ … μ_d, λ₁ … λ_d).

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Means m.
    kappa : array-like (d,) or (K, d)
        Pseudo-counts κ of the mean.
    shape : array-like (d,) or (K, d)
        Shapes a.
    rate : array-like (d,) or (K, d)
        Rates b.

    See Also
    --------
    NormalInverseGamma : The parameterization by variances.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.3.5.

    Examples
    --------
    >>> import likely as lk
    >>> post = NormalGamma(0.0, 1.0, 1.0, 1.0).update(lk.Gaussian([0.0], [1.0]).collect([[1.0], [3.0]]))
    >>> post.mean.round(4), post.kappa, post.shape, post.rate.round(4)
    (array([1.3333]), array([3.]), array([2.]), array([3.3333]))
    >>> NormalGamma(0.0, 1.0, 2.0, 1.0).log_prob([[0.0, 1.0]]).round(4)
    array([-1.9189])
    """

    serves = ("Gaussian",)  # distributions of which it is a prior

    mean: Annotated[Array, declared.numbers("* d")]  # m: (d,) or (K, d)
    kappa: Annotated[Array, declared.numbers("* d", 0)]  # κ: pseudo-counts of the mean
    shape: Annotated[Array, declared.numbers("* d", 0)]  # a
    rate: Annotated[Array, declared.numbers("* d", 0)]  # b

    def __post_init__(self) -> None:
        me = "NormalGamma"
        given = {name: parameter(part, me, name) for name, part in self.field_values().items()}
        try:
            fitted = np.broadcast_arrays(*(np.atleast_1d(part) for part in given.values()))
        except ValueError as error:
            got = tuple(part.shape for part in given.values())
            expected = "mean, kappa, shape and rate must have shapes that broadcast"
            raise ShapeError(sentence(me, expected, got)) from error
        if fitted[0].ndim > 2 or 0 in fitted[0].shape:
            raise ShapeError(sentence(me, "parameters must be numbers, (d,) or (K, d)", fitted[0].shape))
        parts = {name: np.array(part) for name, part in zip(given, fitted, strict=True)}
        for name in ("kappa", "shape", "rate"):
            if not (parts[name] > 0).all():
                raise DomainError(sentence(me, f"{name} must be positive", float(parts[name].min())))
        self._set(**parts)

    @property
    def dim(self) -> int:
        """Number of columns d of the Gaussian."""
        return int(self.mean.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.mean) if self.mean.ndim == 2 else None

    @property
    def kind(self) -> str:
        """The kind of covariance of which it is a prior."""
        return "diagonal"

    @cached_property
    def normal_inverse_gamma(self) -> NormalInverseGamma:
        """The same distribution in the parameterization (μ, σ²)."""
        return NormalInverseGamma.trusted(
            mean=self.mean, kappa=self.kappa, scale=2 * self.rate, dof=2 * self.shape, kind="diagonal", tied=False
        )

    @classmethod
    def weak(cls, stats: Moments | ColumnMoments) -> NormalGamma:
        """Weakly informative prior that keeps precisions finite: `NormalInverseGamma.weak` in this parameterization."""
        return cls._of(NormalInverseGamma.weak(stats))

    @classmethod
    def _of(cls, distribution: NormalInverseGamma) -> NormalGamma:
        return cls.trusted(
            mean=distribution.mean,
            kappa=distribution.kappa,
            shape=0.5 * distribution.dof,
            rate=0.5 * distribution.scale,
        )

    # ------------------------------------------------------------- as a prior

    def update(self, stats: Moments | ColumnMoments) -> NormalGamma:
        """Posterior given these statistics."""
        return self._of(self.normal_inverse_gamma.update(stats))

    def point(self, rule: PointRule = "mode") -> Gaussian:
        """A Gaussian with the "mode" (a − ½)/b, "mean" a/b or "median" of the precisions."""
        check_option(rule, PointRule, "NormalGamma", "rule")
        if rule == "mode":
            precision = (self.shape - 0.5) / self.rate
            if not (self.shape > 0.5).all():
                raise DomainError(sentence("NormalGamma", "the mode needs a shape above ½", float(self.shape.min())))
        elif rule == "mean":
            precision = self.shape / self.rate
        else:
            precision = gammaincinv(self.shape, 0.5) / self.rate
        return Gaussian.trusted(mean=self.mean, covariance=np.array(1 / precision), kind="diagonal")

    def draw(self, rng: Generator) -> Gaussian:
        """A Gaussian with parameters sampled from this distribution."""
        return self.normal_inverse_gamma.draw(rng)

    def predictive(self) -> StudentT:
        """Posterior predictive: independent t distributions, 2a degrees of freedom, squared scale b (κ + 1)/(a κ)."""
        return self.normal_inverse_gamma.predictive()

    def log_evidence(self, stats: Moments | ColumnMoments) -> PerMember:
        """Log marginal likelihood of the observed entries, parameters integrated out; one per member for a stack."""
        return self.normal_inverse_gamma.log_evidence(stats)

    def log_density(self, model: Gaussian) -> PerMember:
        """Log density of a Gaussian's mean and precision: that of (μ, σ²) with the Jacobian dσ² = σ⁴ dλ."""
        return lone(self.normal_inverse_gamma.log_density(model) + 2 * np.log(model.variance).sum(axis=-1))

    # ----------------------------------------------------------- as a density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density of rows (n, 2d) of means and precisions, or of Gaussians, one per member; −inf where λ ≤ 0."""
        if isinstance(x, Gaussian):
            return self.log_density(x)
        z = rows(x, 2 * self.dim, "NormalGamma")
        refuse_infinite(z, "NormalGamma")
        if np.isnan(z).any():
            expected = "a mean and its precision must both be observed"
            raise DomainError(sentence("NormalGamma", expected, f"NaN in row {int(np.argwhere(np.isnan(z))[0][0])}"))
        mu, lam = (part[:, None] for part in (z[:, : self.dim], z[:, self.dim :]))
        m, k, a, b = (np.atleast_2d(part) for part in (self.mean, self.kappa, self.shape, self.rate))
        at = np.where(lam > 0, lam, 1.0)
        with np.errstate(all="ignore"):
            normal = 0.5 * (_log_of_product(k, b) - LOG_2PI - _distance(mu - m, k, at))
            logs = np.where(lam > 0, _joined_gamma(at, a, b) + normal, -np.inf)
        out = added(logs)
        return out if self.members else out[:, 0]

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples: rows (n, 2d), or (n, K, 2d) for a stack."""
        lam = rng.standard_gamma(self.shape, (n, *self.shape.shape)) / self.rate
        mu = self.mean + rng.standard_normal(lam.shape) / np.sqrt(self.kappa * lam)
        return np.concatenate([mu, lam], axis=-1)

    @property
    def mean_row(self) -> Array:
        """Mean of rows: (m, a/b)."""
        return np.concatenate([self.mean, self.shape / self.rate], axis=-1)

    @property
    def mode_row(self) -> Array:
        """Mode of rows: (m, (a − ½)/b)."""
        return np.concatenate([self.mean, 1 / self.point("mode").variance], axis=-1)

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E log p(μ, λ), in closed form; one per member for a stack."""
        log_precision = digamma(self.shape) - np.log(self.rate)
        return in_units(lone(self.normal_inverse_gamma.entropy() + 2 * log_precision.sum(axis=-1)), bits)

    def kl(self, other: NormalGamma, bits: bool = False) -> PerMember:
        """KL(self ‖ other): invariant under the parameterization."""
        return self.normal_inverse_gamma.kl(other.normal_inverse_gamma, bits)


def _joined_gamma(lam: Array, a: Array, b: Array) -> Array:
    """Log gamma density of y = bλ times √λ of the normal density, of shape a + ½: no cancellation of log λ and log b.

    Where y underflows, its logarithm does not, and e^(−y) is 1.
    """
    y = b * lam
    near = log_gamma_density(y, a + 0.5, 1.0) + log_gamma_ratio(a, 0.5)
    return np.where(y > SMALLEST, near, (a - 0.5) * (np.log(b) + np.log(lam)) - gammaln(a))


def _log_of_product(k: Array, b: Array) -> Array:
    product = k * b
    return np.where((product > SMALLEST) & (product < np.inf), np.log(product), np.log(k) + np.log(b))


def _distance(delta: Array, k: Array, lam: Array) -> Array:
    """κλ(μ − m)², also where κλ or the square alone overflows."""
    plain = k * lam * delta**2
    return np.where(np.isfinite(plain), plain, (np.sqrt(k) * delta * np.sqrt(lam)) ** 2)
