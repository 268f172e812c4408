"""Chi-square distribution with real degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import digamma, polygamma

from likely.core import declared
from likely.core.arrays import Array, PerMember
from likely.distributions.column_distribution import FeatureDistribution
from likely.distributions.distribution import in_units, lone
from likely.numerics.gamma_cdf import gamma_cdf, gamma_quantile
from likely.numerics.special import LOG_2, gamma_divergence, gamma_entropy, log_gamma_density, log_minus_digamma

SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class ChiSquare(FeatureDistribution):
    """Chi-square distribution.

    log p(x | D) = Σⱼ (D/2 − 1) log xⱼ − xⱼ/2 − log Γ(D/2) − D/2 log 2, in d independent columns.

    The gamma distribution of shape D/2 and rate ½: mean D, variance 2D, mode D − 2. D need not be an integer. Fitting
    refuses 0, which has no logarithm; there the density is 0 for D > 2, ½ for D = 2 and infinite below.

    Parameters
    ----------
    dof : array-like (d,) or (K, d)
        Degrees of freedom D.

    See Also
    --------
    Gamma : The general case.
    ChiSquareDensity : The estimator.

    References
    ----------
    Ney, lecture notes, 1.5 and 3.2.

    Examples
    --------
    >>> import likely as lk
    >>> ChiSquare([8.0, 16.0]).mode, np.exp(ChiSquare(8.0).log_prob([6.0])).round(5)
    (array([ 6., 14.]), array([0.11202]))
    """

    dof: Annotated[Array, declared.numbers("* d", 0)]  # D: (d,) or (K, d)

    _domains: ClassVar[dict[str, str]] = {"dof": "positive"}
    _support = "positive"
    _n_features = 2

    @staticmethod
    def _parameter_score(x: Array, dof: Array) -> tuple[Array, ...]:
        """∂ log p/∂ log ν."""
        return (0.5 * dof * (np.log(x) - LOG_2 - digamma(0.5 * dof)),)

    def _log_pdf(self, x: Array, dof: Array) -> Array:
        return np.where(x >= 0, log_gamma_density(np.maximum(x, 0.0), 0.5 * dof, 0.5), -np.inf)

    def _cdf(self, x: Array, dof: Array) -> Array:
        return gamma_cdf(0.5 * dof, 0.5 * np.maximum(x, 0.0))

    def _quantile(self, p: Array, dof: Array) -> Array:
        return 2.0 * gamma_quantile(0.5 * dof, p)

    def _draw(self, shape: tuple[int, ...], rng: Generator, dof: Array) -> Array:
        return np.maximum(2.0 * rng.standard_gamma(0.5 * dof, shape), SMALLEST)

    def _entropy(self, dof: Array) -> Array:
        return gamma_entropy(0.5 * dof) + LOG_2

    @property
    def mean(self) -> Array:
        """D."""
        return self.dof

    @property
    def variance(self) -> Array:
        """2 D."""
        return 2.0 * self.dof

    @property
    def mode(self) -> Array:
        """D − 2, 0 for D ≤ 2."""
        return np.maximum(self.dof - 2.0, 0.0)

    def kl(self, other: ChiSquare, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = Σⱼ log Γ(D'/2)/Γ(D/2) + (D − D')/2 ψ(D/2); member by member for stacks."""
        self._same_shape(other)
        return in_units(lone(gamma_divergence(0.5 * other.dof, 0.5 * self.dof).sum(axis=-1)), bits)

    # --------------------------------------------------------------- learning

    @classmethod
    def from_moments(cls, mean: Any, variance: ArrayLike | None = None) -> ChiSquare:
        """D is the mean; there is no second parameter for a variance."""
        return cls(mean)

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, **options: Any) -> ChiSquare:
        """D is the mean, an unbiased estimate."""
        return cls.moments_fit(x, weight)

    @classmethod
    def _plain(cls, d: int) -> ChiSquare:
        return cls.trusted(dof=np.ones(d))

    def _features(self, x: Array) -> list[Array]:
        return [np.log(x), x]

    def _from_means(self, means: list[Array]) -> dict[str, Array]:
        # the mean of log x is ψ(D/2) + log 2
        return {"dof": 2.0 * inverse_digamma(means[0] - LOG_2)}

    def _expected_log(self, means: list[Array], dof: Array) -> Array:
        from scipy.special import gammaln

        return (0.5 * dof - 1.0) * means[0] - 0.5 * means[1] - gammaln(0.5 * dof) - 0.5 * dof * LOG_2


def inverse_digamma(y: Any) -> Array:
    """a > 0 with ψ(a) = y, by Newton's method from Minka's initial value; convex, so five steps reach rounding.

    >>> inverse_digamma(digamma([0.01, 1.0, 50.0])).round(12)
    array([1.e-02, 1.e+00, 5.e+01])
    """
    y = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore"):
        a = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / np.where(y < -2.22, y + 0.5772156649, -1.0))
    for _ in range(6):
        # from 10 on, log a − gap(a) keeps the digits of a that ψ(a) shows; steps are relative: a stays positive
        residual = np.where(a > 1e3, np.log(a) - log_minus_digamma(a), digamma(a)) - y
        a = np.maximum(a - residual / polygamma(1, a), 0.1 * a)
    return np.asarray(a)
