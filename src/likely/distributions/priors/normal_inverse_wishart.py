"""Normal-inverse-Wishart distribution: conjugate prior of mean and covariance of a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from scipy.special import chdtri, digamma, multigammaln

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import in_units, lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments, refuse_expected, refuse_others
from likely.distributions.gaussian.variance_floors import warn_of_constants
from likely.distributions.matrix.matrix_distribution import matrix_constant, matrix_deviance
from likely.distributions.priors.shrunk_covariance import prior_mean, shrunk_within
from likely.distributions.student_t.student_t import StudentT
from likely.numerics import spd
from likely.numerics.special import LOG_2PI, LOG_PI


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(Value):
    """Normal-inverse-Wishart distribution: the conjugate prior of mean and covariance of a Gaussian.

    Σ ~ IW(Ψ, ν), μ | Σ ~ N(m, Σ/κ). Posterior: κ + n, ν + n, m the weighted mean, and Ψ + S + κn/(κ + n) (x̄ − m)(x̄ −
    m)ᵀ. A leading axis makes a stack.

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Mean m.
    kappa : float or array-like (K,)
        Pseudo-counts κ of the mean.
    scale : array-like (d, d) or (K, d, d)
        Scale matrix Ψ.
    dof : float or array-like (K,)
        Degrees of freedom ν > d − 1.
    tied : bool, default False
        A stack of K means with one covariance: Ψ and ν are shared.

    See Also
    --------
    Gaussian : Its likelihood.
    NormalInverseGamma : Diagonal and spherical covariances.
    InverseWishart : The distribution of the covariance.

    References
    ----------
    Gelman et al. (2013), Bayesian Data Analysis, chapter 3; Murphy (2012), chapter 4.

    Examples
    --------
    >>> import likely as lk
    >>> x = np.array([[0.0], [2.0]])
    >>> g = lk.Gaussian([0.0], [[1.0]])
    >>> post = NormalInverseWishart([0.0], 1.0, [[1.0]], 3.0).update(g.collect(x))
    >>> post.mean.round(4), post.scale.round(4), post.predictive().dof
    (array([0.6667]), array([[3.6667]]), array(5.))
    """

    serves = ("Gaussian",)  # distributions of which it is a prior

    mean: Annotated[Array, declared.numbers("* d")]  # (..., d)
    kappa: Annotated[Array, declared.numbers("*", 0)]  # (...): κ, pseudo-counts of the mean
    scale: Annotated[Array, declared.numbers("* d d | d d")]  # (..., d, d): Ψ
    dof: Annotated[Array, declared.numbers("* | ", 0)]  # (...): ν > d − 1
    tied: bool = False

    def __post_init__(self) -> None:
        me = "NormalInverseWishart"
        mean = np.atleast_1d(parameter(self.mean, me, "mean"))
        kappa, dof = parameter(self.kappa, me, "kappa"), parameter(self.dof, me, "dof")
        scale = parameter(self.scale, me, "scale")
        d = mean.shape[-1]
        if scale.shape[-2:] != (d, d) or scale.ndim > 3 or mean.ndim > 2:
            raise ShapeError(
                sentence(me, f"scale must have shape ({d}, {d}), with K in front for a stack", scale.shape)
            )
        if not (kappa > 0).all() or not (dof > d - 1).all():
            raise DomainError(
                sentence(me, f"kappa must be positive and dof above {d - 1}", (kappa.tolist(), dof.tolist()))
            )
        if not spd.is_symmetric(scale) or spd.cholesky(scale) is None:
            raise DomainError(sentence(me, "scale must be symmetric and positive definite"))
        self._set(mean=mean, kappa=kappa, scale=scale, dof=dof)

    @classmethod
    def weak(cls, stats: Moments, means: int = 1) -> NormalInverseWishart:
        """Weakly informative prior that keeps covariance estimates regular.

        Its mode is the pooled within-member covariance, with c = 2d + 4 pseudo-counts, the minimum for a finite prior
        mean of the covariance, and 0.01 for the mean. So a single Gaussian keeps its estimate, and members with few
        rows are shrunk toward the pooled covariance. Correlations are shrunk by a share (d/n)⁴: not at all where rows
        are many, completely where there are fewer rows than columns, and at least so much that directions in the null
        space get 1e-9 of a column's variance. `means` is the number of members that share the covariance (c grows with
        it, so that the mode is unchanged). Mixture components have one prior each
        (`distributions.priors.initial_moments`).
        """
        pooled = stats.pooled()
        if not pooled.total_weight > 0:
            raise DomainError(
                sentence("NormalInverseWishart.weak", "statistics of at least one row are needed", "none")
            )
        warn_of_constants(pooled)
        d = len(pooled.shift)
        c = 2.0 * d + 3.0 + means
        shape = shrunk_within(stats, pooled, d, lambda n: 1e-9 * (n + c) / c)
        lead = shape.shape[:-2]
        return cls.trusted(
            mean=prior_mean(stats, pooled), kappa=np.full(lead, 0.01), scale=spd.symmetric(c * shape),
            dof=np.full(lead, d + 2.0), tied=False,
        )  # fmt: skip

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.mean.shape[-1])

    @cached_property
    def _root(self) -> Array:
        root = spd.cholesky(np.ascontiguousarray(self.scale))
        if root is None:
            raise DomainError(sentence("NormalInverseWishart", "scale must be positive definite", "a singular one"))
        return root

    def update(self, stats: Moments) -> NormalInverseWishart:
        """Posterior given these statistics."""
        refuse_others(stats, self.dim, "NormalInverseWishart", full=True)
        n = stats.weight
        kappa = self.kappa + n
        delta = (stats.origin - self.mean) + stats.shift  # not `stats.mean − mean`: the shift keeps its digits
        mean = self.mean + delta * (n / kappa)[..., None]
        between = (self.kappa * n / kappa)[..., None, None] * delta[..., :, None] * delta[..., None, :]
        added, rows = stats.scatter + between, n
        if self.tied and added.ndim == 3:
            added, rows = added.sum(axis=0), n.sum()
        return self.replace(
            mean=mean, kappa=np.asarray(kappa), scale=self.scale + added, dof=np.asarray(self.dof + rows)
        )

    def _as_tied(self) -> NormalInverseWishart:
        """The prior for members with one covariance; for a stack the product of the densities of Σ:

        Ψ = Σ Ψ_k and ν = Σ ν_k + (K − 1)(d + 1), the scatter and the rows of all members' priors together.
        """
        lead = np.broadcast_shapes(self.scale.shape[:-2], self.dof.shape)
        scale, dof = np.broadcast_to(self.scale, (*lead, self.dim, self.dim)), np.broadcast_to(self.dof, lead)
        if lead:
            scale, dof = scale.sum(axis=0), dof.sum() + (lead[0] - 1) * (self.dim + 1)
        return self.replace(scale=np.array(scale), dof=np.asarray(dof), tied=True)

    def point(self, rule: PointRule = "mode") -> Gaussian:
        """A Gaussian with the "mode", "mean" or "median" of the parameters.

        Mode of (μ, Σ): Ψ/(ν + d + 2). Mean: Ψ/(ν − d − 1), which needs ν > d + 1. Median: the Σ proportional
        to Ψ whose variances are the medians of their marginal distributions.
        """
        check_option(rule, PointRule, "NormalInverseWishart", "rule")
        d = self.dim
        if rule == "mode":
            by = self.dof + d + 1 + self._means_per_covariance
        elif rule == "mean":
            by = self.dof - d - 1
            if not (by > 0).all():
                raise DomainError(
                    sentence("NormalInverseWishart", f"the mean needs dof above {d + 1}", lone(np.min(self.dof)))
                )
        else:
            by = chdtri(self.dof - d + 1, 0.5)
        covariance = self.scale / np.asarray(by)[..., None, None]
        if self.mean.ndim == 2 and not self.tied:
            covariance = np.broadcast_to(covariance, (*self.mean.shape, d))
        return Gaussian.trusted(mean=self.mean, covariance=np.array(covariance), kind="full")

    @property
    def _means_per_covariance(self) -> int:
        return len(self.mean) if self.tied and self.mean.ndim == 2 else 1

    def draw(self, rng: Generator) -> Gaussian:
        """A Gaussian with parameters sampled from this distribution: Bartlett decomposition of the inverse Wishart."""
        d = self.dim
        lead = () if self.tied else np.broadcast_shapes(self.mean.shape[:-1], self.scale.shape[:-2])
        a = np.tril(rng.standard_normal((*lead, d, d)), -1)
        i = np.arange(d)
        a[..., i, i] = np.sqrt(rng.chisquare(np.broadcast_to(self.dof, lead)[..., None] - i))
        # W = (L⁻ᵀ A)(L⁻ᵀ A)ᵀ ~ Wishart(Ψ⁻¹, ν), so W⁻¹ = B Bᵀ with B = L A⁻ᵀ
        factor = self._root @ np.swapaxes(np.linalg.inv(a), -1, -2)
        noise = np.einsum("...ij,...j->...i", factor, rng.standard_normal(self.mean.shape))
        mean = self.mean + noise / np.sqrt(self.kappa)[..., None]
        return Gaussian.trusted(mean=mean, covariance=spd.symmetric(factor @ np.swapaxes(factor, -1, -2)), kind="full")

    def predictive(self) -> StudentT:
        """Posterior predictive: Student-t, ν − d + 1 degrees of freedom, center m, scale Ψ(κ + 1)/(κ(ν − d + 1))."""
        dof = self.dof - self.dim + 1
        factor = (self.kappa + 1) / (self.kappa * dof)
        scale = self.scale * factor[..., None, None]
        return StudentT(self.mean, scale, np.broadcast_to(dof, self.mean.shape[:-1]), kind="full")

    def log_evidence(self, stats: Moments) -> PerMember:
        """Log marginal likelihood: ratio of normalization constants of posterior and prior; per member for a stack."""
        refuse_expected(stats, "NormalInverseWishart")
        post, d = self.update(stats), self.dim
        rows = np.sum(stats.weight) if self.tied else stats.weight
        value = multigammaln(post.dof / 2, d) - multigammaln(self.dof / 2, d) - 0.5 * d * LOG_PI * rows
        value = value + 0.5 * (self.dof * spd.logdet(self._root) - post.dof * spd.logdet(post._root))
        means = 0.5 * d * (np.log(self.kappa) - np.log(post.kappa))
        return lone(value + (np.sum(means) if self.tied else means))

    def log_density(self, model: Gaussian) -> PerMember:
        """Log density of a Gaussian's parameters (μ, Σ); one per member for a stack (their sum where tied)."""
        d = self.dim
        covariance = model._shared_matrix() if self.tied else model.covariance_matrix
        root = spd.cholesky(np.ascontiguousarray(covariance))
        if root is None:
            raise DomainError(
                sentence("NormalInverseWishart", "the covariance must be positive definite", "a singular one")
            )
        w = spd.inverse_factor(root)
        logdet = spd.logdet(root)
        v = self.dof[..., None, None]
        deviance = matrix_deviance(self.scale / v - covariance, self._root / np.sqrt(v), root)
        wishart = matrix_constant(0.5 * self.dof, d) - 0.5 * (d + 1) * logdet - 0.5 * self.dof * deviance
        delta = np.einsum("...ij,...j->...i", w, model.mean - self.mean)
        normal = -0.5 * (d * (LOG_2PI - np.log(self.kappa)) + logdet + self.kappa * (delta**2).sum(-1))
        return lone(wishart + (np.sum(normal) if self.tied else normal))

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
        if self.mean.ndim > 1:
            raise ShapeError(
                sentence("NormalInverseWishart.sample", "one distribution is needed", "a stack", "use draw")
            )
        repeated = {name: np.repeat(getattr(self, name)[None], n, axis=0) for name in ("mean", "kappa", "scale", "dof")}
        return self.replace(**repeated).draw(rng)

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E[log p(μ, Σ)], in closed form; one per member for a stack."""
        return in_units(self._cross(self), bits)

    def kl(self, other: NormalInverseWishart, bits: bool = False) -> PerMember:
        """KL(self ‖ other) in closed form; per member for stacks."""
        return in_units(self._cross(other) - self._cross(self), bits)

    def _cross(self, other: NormalInverseWishart) -> Any:
        """Cross-entropy −E[log other(μ, Σ)] under this distribution, from E[log det Σ] and E[Σ⁻¹] = νΨ⁻¹."""
        if self.tied or other.tied:
            raise DomainError(sentence("NormalInverseWishart", "entropy and kl need distributions that are not tied"))
        d, half = self.dim, 0.5 * other.dof
        w = spd.inverse_factor(self._root)
        logdet = spd.logdet(self._root) - d * np.log(2) - _multidigamma(0.5 * self.dof, d)
        trace = spd.trace_form(w, other.scale)
        distance = (np.einsum("...ij,...j->...i", w, self.mean - other.mean) ** 2).sum(axis=-1)
        wishart = multigammaln(half, d) - half * (spd.logdet(other._root) - d * np.log(2))
        wishart = wishart + 0.5 * ((other.dof + d + 1) * logdet + self.dof * trace)
        normal = d * (LOG_2PI - np.log(other.kappa)) + logdet + other.kappa * (d / self.kappa + self.dof * distance)
        return lone(wishart + 0.5 * normal)


def _multidigamma(a: Array, d: int) -> Array:
    """Multivariate digamma function: Σ ψ(a − i/2), i < d."""
    return digamma(np.asarray(a)[..., None] - 0.5 * np.arange(d)).sum(axis=-1)
