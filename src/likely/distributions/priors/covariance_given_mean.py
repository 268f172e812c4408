"""Conjugate prior of the covariance, or precision, of a Gaussian with known mean: (inverse) Wishart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from scipy.special import chdtri, multigammaln

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import in_units, lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments, refuse_expected, refuse_others
from likely.distributions.matrix.inverse_wishart import InverseWishart
from likely.distributions.matrix.wishart import Wishart
from likely.distributions.student_t.student_t import StudentT
from likely.numerics import spd
from likely.numerics.special import LOG_PI


@dataclass(frozen=True, eq=False)
class CovarianceGivenMean(Value):
    """Conjugate prior of a Gaussian's covariance, or precision, with known mean.

    x ~ N(m, Σ) with Σ ~ IW(ν, Ψ), or precision Σ⁻¹ ~ W(ν, V). Posterior: ν + n, and Ψ (or V⁻¹) + Σ (x − m)(x − m)ᵀ. The
    two are the same distribution in two parameterizations: modes and means differ, marginal likelihood and posterior
    predictive (a t distribution) agree.

    Parameters
    ----------
    mean : array-like (d,)
        The known mean m.
    distribution : InverseWishart or Wishart
        Distribution of the covariance, or of the precision.

    See Also
    --------
    NormalInverseWishart : Unknown mean.
    MeanGivenCovariance : Known covariance.

    References
    ----------
    Bishop (2006), chapter 2.

    Examples
    --------
    >>> import likely as lk
    >>> prior = CovarianceGivenMean([0.0], lk.distributions.InverseWishart(3.0, [[2.0]]))
    >>> post = prior.update(lk.Gaussian([0.0], [[1.0]]).collect([[1.0], [3.0]]))
    >>> post.distribution.dof, post.distribution.scale, post.predictive().scale
    (array(5.), array([[12.]]), array([[2.4]]))
    """

    serves = ("Gaussian",)  # distributions of which it is a prior

    mean: Annotated[Array, declared.numbers("d")]  # (d,): known
    distribution: Annotated[Any, declared.distribution]  # InverseWishart of the covariance, or Wishart of the precision

    def __post_init__(self) -> None:
        mean = np.atleast_1d(parameter(self.mean, "CovarianceGivenMean", "mean"))
        if not isinstance(self.distribution, InverseWishart | Wishart):
            expected = "distribution must be an InverseWishart of the covariance or a Wishart of the precision"
            raise DomainError(sentence("CovarianceGivenMean", expected, type(self.distribution).__name__))
        if mean.shape != (self.distribution.size,):
            raise ShapeError(
                sentence("CovarianceGivenMean", f"mean must have shape ({self.distribution.size},)", mean.shape)
            )
        self._set(mean=mean)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return len(self.mean)

    @property
    def kind(self) -> str:
        """The kind of covariance that it is a prior of."""
        return "full"

    @property
    def _of_precision(self) -> bool:
        return isinstance(self.distribution, Wishart)

    @property
    def _scatter(self) -> Array:
        """Ψ, in either parameterization."""
        return spd.symmetric(spd.precision(self.distribution._root)) if self._of_precision else self.distribution.scale

    def update(self, stats: Moments) -> CovarianceGivenMean:
        """Posterior given these statistics."""
        refuse_others(stats, self.dim, "CovarianceGivenMean", full=True)
        n = stats.weight
        delta = np.where((n > 0)[..., None], (stats.origin - self.mean) + stats.shift, 0.0)
        about = stats.scatter + n[..., None, None] * delta[..., :, None] * delta[..., None, :]
        scale = (
            _shrunk(self.distribution, about, n)
            if self._of_precision
            else spd.symmetric(self.distribution.scale + about)
        )
        return self.replace(
            distribution=self.distribution.replace(dof=np.asarray(self.distribution.dof + n), scale=np.array(scale))
        )

    def point(self, rule: PointRule = "mode") -> Gaussian:
        """A Gaussian with the "mode", "mean" or "median" of the covariance, or of the precision.

        Median: the matrix proportional to the scale whose diagonal has the medians of its marginal distributions.
        """
        check_option(rule, PointRule, "CovarianceGivenMean", "rule")
        if rule != "median":
            return self._at(getattr(self.distribution, rule))
        if self._of_precision:
            return self._at(self.distribution.scale * chdtri(self.distribution.dof, 0.5)[..., None, None])
        return self._at(self.distribution.scale / chdtri(self.distribution.dof - self.dim + 1, 0.5)[..., None, None])

    def _at(self, matrix: Array) -> Gaussian:
        """The Gaussian with this covariance, or this precision."""
        if self._of_precision:
            root = spd.cholesky(np.ascontiguousarray(matrix))
            if root is None:
                expected, got = "a precision of 0 has no covariance", f"dof {float(np.min(self.distribution.dof)):g}"
                raise DomainError(sentence("CovarianceGivenMean", expected, got, 'use the "mean"'))
            matrix = spd.symmetric(spd.precision(root))
        mean = np.array(np.broadcast_to(self.mean, (*matrix.shape[:-2], self.dim)))
        return Gaussian.trusted(mean=mean, covariance=np.array(matrix), kind="full")

    def draw(self, rng: Generator) -> Gaussian:
        """A Gaussian with a covariance sampled from this distribution."""
        return self._at(self.distribution.sample(1, rng)[0])

    def predictive(self) -> StudentT:
        """Posterior predictive: Student-t with ν − d + 1 degrees of freedom, center m, scale matrix Ψ/(ν − d + 1)."""
        dof, scatter = self.distribution.dof - self.dim + 1, self._scatter
        mean = np.broadcast_to(self.mean, (*scatter.shape[:-2], self.dim))
        return StudentT(mean, scatter / dof[..., None, None], dof, kind="full")

    def log_evidence(self, stats: Moments) -> PerMember:
        """Log marginal likelihood: ratio of normalization constants of posterior and prior; per member for a stack."""
        refuse_expected(stats, "CovarianceGivenMean")
        post, d = self.update(stats), self.dim
        value = multigammaln(0.5 * post.distribution.dof, d) - multigammaln(0.5 * self.distribution.dof, d)
        value = value - 0.5 * d * LOG_PI * stats.weight
        return lone(value + 0.5 * (self.distribution.dof * self._logdet - post.distribution.dof * post._logdet))

    @property
    def _logdet(self) -> Array:
        """log det Ψ."""
        own = spd.logdet(self.distribution._root)
        return -own if self._of_precision else own

    def log_density(self, model: Gaussian) -> PerMember:
        """Log-density of a Gaussian's covariance, or precision; one per member for a stack."""
        matrix = model.covariance_matrix
        root = spd.cholesky(np.ascontiguousarray(matrix))
        if root is None:
            raise DomainError(
                sentence("CovarianceGivenMean", "the covariance must be positive definite", "a singular one")
            )
        matrix = spd.symmetric(spd.precision(root)) if self._of_precision else matrix
        if matrix.ndim == 2:
            return float(np.ravel(self.distribution.log_prob(matrix[None]))[0])
        logs = self.distribution.log_prob(matrix)
        return logs if self.distribution.members is None else np.diagonal(logs)

    # ------------------------------------------------- as a distribution over Gaussians

    def log_prob(self, models: Gaussian) -> Any:
        """The density of Gaussians under this distribution, one per member: the same as `log_density`."""
        return self.log_density(models)

    def sample(self, n: int, rng: Generator) -> Gaussian:
        """Sampled Gaussians, as a stack.

        Returns
        -------
        Gaussian
            A stack of n members.
        """
        if self.distribution.members is not None:
            raise ShapeError(
                sentence("CovarianceGivenMean.sample", "one distribution is needed", "a stack", "use draw")
            )
        return self._at(self.distribution.sample(n, rng))

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy of the distribution of the matrix."""
        return in_units(self.distribution.entropy(), bits)

    def kl(self, other: CovarianceGivenMean, bits: bool = False) -> PerMember:
        """KL divergence of the distributions of the matrix."""
        return in_units(self.distribution.kl(other.distribution), bits)


def _shrunk(distribution: Wishart, about: Array, n: Array) -> Array:
    """(V⁻¹ + S)⁻¹ = L (I + LᵀSL)⁻¹ Lᵀ with V = L Lᵀ: no inverse of V, and V itself where there are no rows."""
    left = np.swapaxes(distribution._root, -1, -2)
    root: Array = np.linalg.cholesky(
        np.eye(distribution.size) + spd.symmetric(left @ about @ distribution._root)
    ).astype(np.float64)
    b = spd.inverse_factor(root) @ left
    return np.where((n > 0)[..., None, None], spd.symmetric(np.swapaxes(b, -1, -2) @ b), distribution.scale)
