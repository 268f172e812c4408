"""Normal-inverse-gamma distribution: conjugate prior of mean and variance of a diagonal or spherical Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.random import Generator
from scipy.special import chdtri, digamma, gammaln

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import in_units, lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import ColumnMoments, Moments, refuse_expected, refuse_others
from likely.distributions.gaussian.variance_floors import column_floor, warn_of_constants
from likely.distributions.priors.shrunk_covariance import prior_mean
from likely.distributions.student_t.student_t import StudentT
from likely.numerics.special import LOG_2PI, LOG_PI, log_gamma_density

VarianceKind = Literal["diagonal", "spherical"]


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(Value):
    """Normal-inverse-gamma distribution: the conjugate prior of mean and variance per column.

    σ² ~ IG(ν/2, ψ/2), μ | σ² ~ N(m, σ²/κ): the diagonal form of the normal-inverse-Wishart distribution. Missing
    entries are left out: each column adds the rows in which it is observed.

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Means m.
    kappa : array-like (d,) or (K, d)
        Pseudo-counts κ of the mean.
    scale : array-like (d,) or (K, d)
        Scales ψ; a number or (K,) if spherical.
    dof : array-like (d,) or (K, d)
        Degrees of freedom ν; a number or (K,) if spherical.
    kind : {"diagonal", "spherical"}, default "diagonal"
        Variances per column, or one for all columns.
    tied : bool, default False
        A stack of K means with one set of variances.

    See Also
    --------
    NormalInverseWishart : Full covariance.
    NormalGamma : The parameterization by precisions.

    References
    ----------
    Murphy (2012), chapter 4.

    Examples
    --------
    >>> import likely as lk
    >>> g = lk.Gaussian([0.0, 0.0], [1.0, 1.0])
    >>> post = NormalInverseGamma([0.0, 0.0], 1.0, [1.0, 1.0], 3.0).update(g.collect([[1.0, 2.0], [3.0, np.nan]]))
    >>> post.mean.round(4), post.dof
    (array([1.3333, 1.    ]), array([5., 4.]))
    """

    serves = ("Gaussian",)  # distributions of which it is a prior

    mean: Annotated[Array, declared.numbers("* d")]  # (..., d)
    kappa: Annotated[Array, declared.numbers("* d", 0)]  # (..., d)
    scale: Annotated[Array, declared.numbers("* d | d | * | ", 0)]  # ψ: (..., d), or (...) for spherical
    dof: Annotated[Array, declared.numbers("* d | d | * | ", 0)]  # ν: as scale
    kind: VarianceKind = "diagonal"
    tied: bool = False

    def __post_init__(self) -> None:
        me = "NormalInverseGamma"
        check_option(self.kind, VarianceKind, me, "kind")
        mean = np.atleast_1d(parameter(self.mean, me, "mean"))
        kappa, scale, dof = (parameter(getattr(self, n), me, n) for n in ("kappa", "scale", "dof"))
        if not ((kappa > 0).all() and (scale > 0).all() and (dof > 0).all()):
            raise DomainError(sentence(me, "kappa, scale and dof must be positive"))
        shape = (
            (mean.shape[1:] if self.tied else mean.shape) if self.kind == "diagonal" else mean.shape[: -1 - self.tied]
        )
        try:
            kappa = np.array(np.broadcast_to(kappa, mean.shape))
            scale, dof = (np.array(np.broadcast_to(a, shape)) for a in (scale, dof))
        except ValueError as error:
            shapes = ", ".join(str(np.shape(a)) for a in (self.kappa, self.scale, self.dof))
            raise ShapeError(sentence(me, f"kappa, scale and dof must fit the mean {mean.shape}", shapes)) from error
        self._set(mean=mean, kappa=kappa, scale=scale, dof=dof)

    @classmethod
    def weak(
        cls, stats: Moments | ColumnMoments, kind: VarianceKind = "diagonal", means: int = 1
    ) -> NormalInverseGamma:
        """Weakly informative prior that keeps variances positive: its mode is the pooled within-member variance.

        It has c = 6 pseudo-counts per column, the minimum for a finite prior mean of a variance, and 0.01 for the mean.

        Parameters
        ----------
        kind : {"diagonal", "spherical"}, default "diagonal"
            Variances per column, or one for all columns.
        means : int, default 1
            Number of members that share the variances; c grows with it, so that the mode is unchanged.
        """
        check_option(kind, VarianceKind, "NormalInverseGamma.weak", "kind")
        columns = stats.columns() if isinstance(stats, Moments) else stats
        pooled = columns.pooled()
        if not (pooled.weight > 0).any():
            raise DomainError(sentence("NormalInverseGamma.weak", "statistics of at least one row are needed", "none"))
        least, observed = column_floor(pooled)[0], pooled.weight > 0
        warn_of_constants(pooled, kind)
        scatter, weight = columns.scatter.reshape(-1, len(least)).sum(axis=0), pooled.weight
        if getattr(columns, "per_component", False):  # one prior per component; one without rows has the pooled one
            own = columns.weight > 0
            scatter, weight = np.where(own, columns.scatter, scatter), np.where(own, columns.weight, weight)
        lead, d = scatter.shape[:-1], len(least)
        mean, kappa = prior_mean(columns, pooled), np.full(scatter.shape, 0.01)
        if kind == "spherical":  # one variance: that of all observed entries, including constant columns
            variance = np.maximum(scatter.sum(axis=-1) / weight.sum(axis=-1), least[observed].min())
            scale, dof = np.asarray((5.0 + d * means) * variance), np.full(lead, 3.0)
        else:
            variance = np.maximum(scatter / np.where(observed, weight, 1.0), least)
            scale, dof = (5.0 + means) * variance, np.full(scatter.shape, 3.0)
        return cls.trusted(mean=mean, kappa=kappa, scale=scale, dof=dof, kind=kind, tied=False)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.mean.shape[-1])

    def _over_members(self, a: Array) -> Array:
        """Sum over what shares a variance: columns (spherical), members (tied)."""
        if self.kind == "spherical":
            a = a.sum(axis=-1)
        return np.asarray(a.sum(axis=0) if self.tied and a.ndim > self.scale.ndim else a)

    def update(self, stats: Moments | ColumnMoments) -> NormalInverseGamma:
        """Posterior given these statistics."""
        refuse_others(stats, self.dim, "NormalInverseGamma")
        columns = stats.columns() if isinstance(stats, Moments) else stats
        n = columns.weight
        kappa = self.kappa + n
        delta = np.where(n > 0, (columns.origin - self.mean) + columns.shift, 0.0)
        mean = self.mean + delta * n / kappa
        added = columns.scatter + self.kappa * n / kappa * delta**2
        scale, dof = self.scale + self._over_members(added), self.dof + self._over_members(n)
        return self.replace(mean=mean, kappa=kappa, scale=np.asarray(scale), dof=np.asarray(dof))

    def _as_tied(self) -> NormalInverseGamma:
        """The prior for members with one covariance; for a stack the product of the densities of σ²:

        ψ = Σ ψ_k and ν = Σ ν_k + 2 (K − 1).
        """
        if self.tied or self.mean.ndim == 1:
            return self.replace(tied=True)
        dof = np.asarray(self.dof.sum(axis=0) + 2.0 * (len(self.mean) - 1))
        return self.replace(scale=np.asarray(self.scale.sum(axis=0)), dof=dof, tied=True)

    @property
    def _means_per_variance(self) -> int:
        members = len(self.mean) if self.tied and self.mean.ndim == 2 else 1
        return members * (self.dim if self.kind == "spherical" else 1)

    def point(self, rule: PointRule = "mode") -> Gaussian:
        """A Gaussian with the "mode" ψ/(ν + 3), "mean" ψ/(ν − 2) or "median" of the variances.

        (ν + 2 + number of means that share the variance, for the mode.)
        """
        check_option(rule, PointRule, "NormalInverseGamma", "rule")
        if rule == "mode":
            by = self.dof + 2 + self._means_per_variance
        elif rule == "mean":
            by = self.dof - 2
            if not (by > 0).all():
                raise DomainError(sentence("NormalInverseGamma", "the mean needs dof above 2", lone(np.min(self.dof))))
        else:
            by = chdtri(self.dof, 0.5)
        return Gaussian.trusted(mean=self.mean, covariance=np.array(self.scale / by), kind=self.kind)

    def draw(self, rng: Generator) -> Gaussian:
        """A Gaussian with parameters sampled from this distribution."""
        variance = self.scale / rng.chisquare(self.dof)
        by_column = variance[..., None] if self.kind == "spherical" else variance
        mean = self.mean + rng.standard_normal(self.mean.shape) * np.sqrt(by_column / self.kappa)
        return Gaussian.trusted(mean=mean, covariance=np.array(variance), kind=self.kind)

    def predictive(self) -> StudentT:
        """Posterior predictive: independent t (diagonal) or joint t distribution (spherical), ν degrees of freedom."""
        factor = (self.kappa + 1) / self.kappa
        if self.kind == "diagonal":
            scale, dof = self.scale / self.dof * factor, np.broadcast_to(self.dof, self.mean.shape)
            return StudentT(self.mean, scale, np.array(dof), kind="independent")
        scale = (self.scale / self.dof)[..., None] * factor
        return StudentT(self.mean, scale, np.broadcast_to(self.dof, self.mean.shape[:-1]), kind="diagonal")

    def log_evidence(self, stats: Moments | ColumnMoments) -> PerMember:
        """Log marginal likelihood: ratio of normalization constants of posterior and prior; per member for a stack."""
        refuse_expected(stats, "NormalInverseGamma")
        columns = stats.columns() if isinstance(stats, Moments) else stats
        post = self.update(columns)
        n = post.dof - self.dof
        value = gammaln(post.dof / 2) - gammaln(self.dof / 2) - 0.5 * LOG_PI * n
        value = value + 0.5 * (self.dof * np.log(self.scale) - post.dof * np.log(post.scale))
        means = 0.5 * (np.log(self.kappa) - np.log(post.kappa))
        if self.kind == "diagonal":
            value = value.sum(axis=-1)
        means = means.sum(axis=-1)
        return lone(value + (np.sum(means) if self.tied else means))

    def log_density(self, model: Gaussian) -> PerMember:
        """Log-density log p(μ, σ²) of a Gaussian's parameters; one per member for a stack (their sum where tied)."""
        if model.kind != self.kind:
            expected = f"a {self.kind} Gaussian is needed"
            raise DomainError(sentence("NormalInverseGamma", expected, f"a {model.kind} one"))
        variance = model.covariance
        half = 0.5 * self.scale  # ψ/2σ² has the gamma distribution of rate 1
        gamma = log_gamma_density(half / variance, 0.5 * self.dof, 1.0) + np.log(half) - 2 * np.log(variance)
        v = np.asarray(variance)[..., None] if self.kind == "spherical" else variance
        normal = -0.5 * (LOG_2PI - np.log(self.kappa) + np.log(v) + self.kappa * (model.mean - self.mean) ** 2 / v)
        gamma = gamma if self.kind == "spherical" else gamma.sum(axis=-1)
        normal = normal.sum(axis=-1)
        return lone(gamma + (np.sum(normal) if self.tied else normal))

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
            raise ShapeError(sentence("NormalInverseGamma.sample", "one distribution is needed", "a stack", "use draw"))
        repeated = {name: np.repeat(getattr(self, name)[None], n, axis=0) for name in ("mean", "kappa", "scale", "dof")}
        return self.replace(**repeated).draw(rng)

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −E[log p(μ, σ²)], in closed form; one per member for a stack."""
        return in_units(self._cross(self), bits)

    def kl(self, other: NormalInverseGamma, bits: bool = False) -> PerMember:
        """KL(self ‖ other) in closed form; per member for stacks."""
        return in_units(self._cross(other) - self._cross(self), bits)

    def _cross(self, other: NormalInverseGamma) -> Any:
        """Cross-entropy −E[log other(μ, σ²)] under this distribution, from E[log σ²] and E[1/σ²] = ν/ψ."""
        if self.tied or other.tied or self.kind != other.kind:
            raise DomainError(
                sentence("NormalInverseGamma", "entropy and kl need distributions of the same kind that are not tied")
            )
        half, inverse = 0.5 * other.dof, self.dof / self.scale
        log_variance = np.log(0.5 * self.scale) - digamma(0.5 * self.dof)
        gamma = (
            gammaln(half) - half * np.log(0.5 * other.scale) + (half + 1) * log_variance + 0.5 * other.scale * inverse
        )
        if self.kind == "spherical":
            log_variance, inverse = log_variance[..., None], inverse[..., None]
        distance = (self.mean - other.mean) ** 2 * inverse
        normal = LOG_2PI - np.log(other.kappa) + log_variance + other.kappa * (1 / self.kappa + distance)
        return lone((gamma if self.kind == "spherical" else gamma.sum(axis=-1)) + 0.5 * normal.sum(axis=-1))
