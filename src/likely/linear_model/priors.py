"""Conjugate priors of linear regressions, for known and for unknown noise, and their predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from scipy.special import chdtri, multigammaln

from likely.core import declared
from likely.core.arrays import Array, check_option, parameter
from likely.core.columns import Columns
from likely.core.engine import map_rows
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value, fill_cache
from likely.distributions.distribution import lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.priors.normal_gamma import NormalGamma
from likely.distributions.priors.normal_inverse_gamma import NormalInverseGamma
from likely.distributions.stacks.one_row_per_member import draw_each, log_prob_each
from likely.distributions.student_t.student_t import StudentT
from likely.linear_model.gaussian_regression import COLUMNS, GaussianRegression
from likely.linear_model.least_squares import RegressionStats
from likely.numerics import spd
from likely.numerics.special import LOG_2PI, LOG_PI

BASIS = declared.value("a basis", "design", "n_functions")


@dataclass(frozen=True, eq=False)
class CoefficientsGivenNoise(Value):
    """Gaussian prior w ~ N(m, Λ⁻¹) of the coefficients of one target, with known noise variance (Bishop 3.3).

    The posterior of n rows has precision Λ + ΦᵀΦ/σ² and mean (Λ + ΦᵀΦ/σ²)⁻¹(Λ m + Φᵀy/σ²). A leading axis makes a
    stack.

    Parameters
    ----------
    mean : array-like (M,)
        Mean m of the coefficients.
    precision : float or array-like (M,) or (M, M)
        Precision Λ of the coefficients.
    noise_variance : float
        Known variance σ² of the noise.

    Examples
    --------
    >>> import likely as lk
    >>> prior = CoefficientsGivenNoise([0.0, 0.0], 2.0, 1 / 25)
    >>> post = prior.update(prior.point().collect([-0.05], [[0.5]]))
    >>> post.mean.round(4), np.sqrt(np.diagonal(post.covariance)).round(4)
    (array([-0.0376, -0.0188]), array([0.3522, 0.6372]))
    """

    serves = ("GaussianRegression",)  # distributions of which it is a prior

    mean: Annotated[Array, declared.numbers("* M")]  # m: (..., M)
    precision: Annotated[Array, declared.numbers("* M M")]  # Λ: (..., M, M)
    noise_variance: Annotated[Array, declared.numbers("*", 0)]  # σ²: (...)
    basis: Annotated[Any, BASIS] = COLUMNS

    def __post_init__(self) -> None:
        me = "CoefficientsGivenNoise"
        mean = np.atleast_1d(parameter(self.mean, me, "mean"))
        precision = _matrix(parameter(self.precision, me, "precision"), mean.shape[-1], me)
        noise = parameter(self.noise_variance, me, "noise_variance")
        if not (noise > 0).all():
            raise DomainError(sentence(me, "noise_variance must be positive", float(noise.min())))
        if not spd.is_symmetric(precision) or spd.cholesky(precision) is None:
            raise DomainError(sentence(me, "precision must be symmetric and positive definite"))
        self._set(mean=mean, precision=precision, noise_variance=noise)

    @property
    def targets(self) -> int:
        """Number of targets: one."""
        return 1

    @cached_property
    def _root(self) -> Array:
        """L, lower triangular, with Λ = L Lᵀ."""
        return _cholesky(self.precision, "CoefficientsGivenNoise", "precision")

    @property
    def covariance(self) -> Array:
        """Λ⁻¹ (..., M, M)."""
        return spd.precision(self._root)

    def update(self, stats: RegressionStats) -> CoefficientsGivenNoise:
        """Posterior given these statistics."""
        R = _checked_root(stats, self.mean.shape[-1], 1, "CoefficientsGivenNoise")
        R = R / np.sqrt(self.noise_variance)[..., None, None]
        root, mean, _ = _posterior(self._root, self.mean[..., None, :], R)
        return self._with(root, mean[..., 0, :])

    def _with(self, root: Array, mean: Array) -> CoefficientsGivenNoise:
        """The distribution with another mean and another root L of the precision."""
        noise = np.array(np.broadcast_to(self.noise_variance, mean.shape[:-1]))
        precision = spd.symmetric(root @ np.swapaxes(root, -1, -2))
        return fill_cache(self.replace(mean=mean, precision=precision, noise_variance=noise), _root=root)

    @classmethod
    def from_root(cls, mean: Array, root: Array, noise_variance: Array, basis: Any) -> CoefficientsGivenNoise:
        """The distribution with precision L Lᵀ; L keeps digits that the product loses.

        Parameters
        ----------
        mean : ndarray (M,)
            Mean of the coefficients.
        root : ndarray (M, M)
            Lower triangular factor L of the precision.
        noise_variance : float
            Known variance σ² of the noise.
        """
        blank = cls.trusted(mean=mean, precision=root, noise_variance=noise_variance, basis=basis)
        return blank._with(root, mean)

    def point(self, rule: PointRule = "mode") -> GaussianRegression:
        """The regression with the mean of the coefficients, which is their mode and median as well."""
        check_option(rule, PointRule, "CoefficientsGivenNoise", "rule")
        return self._at(self.mean)

    def _at(self, coefficients: Array) -> GaussianRegression:
        lead = coefficients.shape[:-1]
        variance = np.array(np.broadcast_to(self.noise_variance, lead))[..., None, None]
        return GaussianRegression.trusted(
            coefficients=coefficients[..., None, :].copy(), covariance=variance, basis=self.basis
        )

    def draw(self, rng: Generator) -> GaussianRegression:
        """A regression with coefficients sampled from this distribution."""
        noise = rng.standard_normal((*self.mean.shape, 1))
        return self._at(self.mean + _solve_transposed(self._root, noise)[..., 0])

    def predictive(self) -> RegressionPredictive:
        """Posterior predictive p(y | x), a Gaussian with variance σ² + φᵀΛ⁻¹φ."""
        return RegressionPredictive.trusted(posterior=self)

    def given(self, phi: Array, joint: bool = False) -> Gaussian:
        """Predictive of y at rows of basis functions: one Gaussian per row, or the joint one of all rows.

        Parameters
        ----------
        phi : ndarray (n, M)
            Values of the basis functions.
        """
        mean, half = phi @ self.mean, spd.inverse_factor(self._root) @ phi.T
        if joint:
            covariance = spd.symmetric(half.T @ half) + float(self.noise_variance) * np.eye(len(phi))
            return Gaussian.trusted(mean=mean, covariance=covariance, kind="full")
        variance = self.noise_variance + (half**2).sum(axis=0)
        return Gaussian.trusted(mean=mean[:, None], covariance=variance[:, None, None], kind="full")

    def log_evidence(self, stats: RegressionStats) -> Any:
        """Log marginal likelihood of the targets, coefficients integrated out; per member for a stack."""
        post = self.update(stats)
        distance = _residuals(stats, post.mean[..., None, :])[..., 0, 0] / self.noise_variance
        away = _times(self._root, post.mean - self.mean)
        value = stats.rows * (LOG_2PI + np.log(self.noise_variance)) + stats.log_noise + distance + (away**2).sum(-1)
        return lone(-0.5 * (value + spd.logdet(post._root) - spd.logdet(self._root)))

    def log_density(self, model: GaussianRegression) -> Any:
        """Log density of a regression's coefficients; one per member for a stack."""
        away = _times(self._root, model.coefficients[..., 0, :] - self.mean)
        M = self.mean.shape[-1]
        return lone(0.5 * (spd.logdet(self._root) - M * LOG_2PI - (away**2).sum(-1)))


@dataclass(frozen=True, eq=False)
class MatrixNormalInverseWishart(Value):
    """Conjugate prior Σ ~ IW(Ψ, ν), W | Σ ~ MN(W₀, Σ, Λ⁻¹) of coefficients and noise covariance of m targets.

    For one target it is the normal-inverse-gamma distribution σ² ~ IG(ν/2, ψ/2), w | σ² ~ N(w₀, σ²Λ⁻¹), the same
    as the normal-gamma one of w and 1/σ² (Bishop exercise 3.12; Gelman et al., Bayesian Data Analysis 14.2).
    The posterior of n rows has precision Λ + ΦᵀΦ and ν + n degrees of freedom. A leading axis makes a stack.

    Parameters
    ----------
    mean : array-like (m, M)
        Mean W₀ of the coefficients.
    precision : float or array-like (M,) or (M, M)
        Precision Λ of the coefficients, relative to that of the noise.
    scale : float or array-like (m,) or (m, m)
        Scale matrix Ψ of the noise covariance.
    dof : float
        Degrees of freedom ν > m − 1 of the noise covariance.
    tied : bool
        Whether it is a stack of K coefficients with one noise covariance.

    Examples
    --------
    >>> prior = MatrixNormalInverseWishart([[0.0, 0.0]], 1.0, 1.0, 3.0)
    >>> post = prior.update(prior.point().collect([1.0, 2.0], [[0.0], [1.0]]))
    >>> post.mean.round(4), post.scale.round(4), post.dof
    (array([[0.8, 0.6]]), array([[2.4]]), array(5.))
    """

    serves = ("GaussianRegression",)  # distributions of which it is a prior

    mean: Annotated[Array, declared.numbers("* m M")]  # W₀: (..., m, M)
    precision: Annotated[Array, declared.numbers("* M M")]  # Λ: (..., M, M)
    scale: Annotated[Array, declared.numbers("* m m | m m")]  # Ψ: (..., m, m)
    dof: Annotated[Array, declared.numbers("* | ", 0)]  # ν > m − 1: (...)
    basis: Annotated[Any, BASIS] = COLUMNS
    tied: bool = False

    def __post_init__(self) -> None:
        me = "MatrixNormalInverseWishart"
        mean = np.atleast_2d(parameter(self.mean, me, "mean"))
        m, M = mean.shape[-2:]
        precision = _matrix(parameter(self.precision, me, "precision"), M, me)
        scale, dof = _matrix(parameter(self.scale, me, "scale"), m, me), parameter(self.dof, me, "dof")
        if not (dof > m - 1).all():
            raise DomainError(sentence(me, f"dof must be above {m - 1}", float(dof.min())))
        for name, part in (("precision", precision), ("scale", scale)):
            if not spd.is_symmetric(part) or spd.cholesky(part) is None:
                raise DomainError(sentence(me, f"{name} must be symmetric and positive definite"))
        self._set(mean=mean, precision=precision, scale=scale, dof=dof)

    @classmethod
    def of(cls, prior: Any, basis: Any) -> MatrixNormalInverseWishart:
        """The same prior as a `NormalGamma` or a spherical `NormalInverseGamma` of the coefficients of one target.

        Parameters
        ----------
        prior : NormalGamma or NormalInverseGamma
            The prior of M coefficients and one noise variance.
        """
        if isinstance(prior, NormalGamma):
            if np.ptp(prior.shape) or np.ptp(prior.rate):
                expected = "shape and rate must be one number each: there is one noise precision"
                raise DomainError(sentence("NormalGamma", expected, (prior.shape.tolist(), prior.rate.tolist())))
            scale, dof = 2 * prior.rate.ravel()[0], 2 * prior.shape.ravel()[0]
        elif isinstance(prior, NormalInverseGamma) and prior.kind == "spherical":
            scale, dof = prior.scale, prior.dof
        else:
            expected = "a prior of coefficients and noise must be NormalGamma or NormalInverseGamma(kind='spherical')"
            raise DomainError(sentence("regression", expected, type(prior).__name__))
        return cls(prior.mean, prior.kappa, scale, dof, basis)

    @property
    def targets(self) -> int:
        """Number of targets m."""
        return int(self.mean.shape[-2])

    @cached_property
    def _root(self) -> Array:
        return _cholesky(self.precision, "MatrixNormalInverseWishart", "precision")

    @cached_property
    def _scale_root(self) -> Array:
        return _cholesky(self.scale, "MatrixNormalInverseWishart", "scale")

    def _as_tied(self) -> MatrixNormalInverseWishart:
        """The prior for members with one noise covariance; for a stack the product of the densities of Σ."""
        if self.tied or self.scale.ndim == 2:
            return self.replace(tied=True)
        dof = self.dof.sum() + (len(self.dof) - 1) * (self.targets + 1)
        return self.replace(scale=self.scale.sum(axis=0), dof=np.asarray(dof), tied=True)

    def update(self, stats: RegressionStats) -> MatrixNormalInverseWishart:
        """Posterior given these statistics."""
        R = _checked_root(stats, self.mean.shape[-1], self.targets, "MatrixNormalInverseWishart")
        root, mean, rest = _posterior(self._root, self.mean, R)
        added, rows = np.swapaxes(rest, -1, -2) @ rest, stats.rows
        if self.tied and added.ndim == 3:
            added, rows = added.sum(axis=0), rows.sum()
        precision = spd.symmetric(root @ np.swapaxes(root, -1, -2))
        scale = spd.symmetric(self.scale + added)
        found = self.replace(mean=mean, precision=precision, scale=scale, dof=np.asarray(self.dof + rows))
        return fill_cache(found, _root=root)

    def point(self, rule: PointRule = "mode") -> GaussianRegression:
        """The regression at the "mode", "mean" or "median" of coefficients and noise covariance.

        Mode: Ψ/(ν + m + 1 + M). Mean: Ψ/(ν − m − 1). Median: the Σ proportional to Ψ whose variances are the medians
        of their marginal distributions.
        """
        check_option(rule, PointRule, "MatrixNormalInverseWishart", "rule")
        m, M = self.mean.shape[-2:]
        if rule == "mode":
            shared = len(self.mean) if self.tied and self.mean.ndim == 3 else 1
            by = self.dof + m + 1 + M * shared
        elif rule == "mean":
            by = self.dof - m - 1
            if not (by > 0).all():
                expected = f"the mean needs dof above {m + 1}"
                raise DomainError(sentence("MatrixNormalInverseWishart", expected, lone(np.min(self.dof))))
        else:
            by = chdtri(self.dof - m + 1, 0.5)
        covariance = self.scale / np.asarray(by)[..., None, None]
        if self.mean.ndim == 3 and not self.tied:
            covariance = np.broadcast_to(covariance, (*self.mean.shape[:-1], m))
        return GaussianRegression.trusted(coefficients=self.mean, covariance=np.array(covariance), basis=self.basis)

    def draw(self, rng: Generator) -> GaussianRegression:
        """A regression with parameters sampled from this distribution."""
        m, i = self.targets, np.arange(self.targets)
        lead = () if self.tied else self.mean.shape[:-2]
        a = np.tril(rng.standard_normal((*lead, m, m)), -1)
        a[..., i, i] = np.sqrt(rng.chisquare(np.broadcast_to(self.dof, lead)[..., None] - i))
        factor = self._scale_root @ np.swapaxes(np.linalg.inv(a), -1, -2)  # Σ = factor factorᵀ (Bartlett)
        noise = _solve_transposed(self._root, np.swapaxes(rng.standard_normal(self.mean.shape), -1, -2))
        coefficients = self.mean + factor @ np.swapaxes(noise, -1, -2)
        covariance = spd.symmetric(factor @ np.swapaxes(factor, -1, -2))
        return GaussianRegression.trusted(coefficients=coefficients, covariance=covariance, basis=self.basis)

    def predictive(self) -> RegressionPredictive:
        """Posterior predictive p(y | x): Student-t, ν − m + 1 degrees of freedom, scale Ψ(1 + φᵀΛ⁻¹φ)/(ν − m + 1)."""
        return RegressionPredictive.trusted(posterior=self)

    def given(self, phi: Array, joint: bool = False) -> StudentT:
        """Predictive of y at rows of basis functions: one t distribution per row, or the joint one of all.

        Parameters
        ----------
        phi : ndarray (n, M)
            Values of the basis functions.
        """
        mean, half = phi @ self.mean.T, spd.inverse_factor(self._root) @ phi.T
        dof = self.dof - self.targets + 1
        scale = self.scale / dof
        if joint:
            if self.targets > 1:
                expected = "the joint predictive is a t distribution for one target"
                raise DomainError(sentence("MatrixNormalInverseWishart", expected, f"{self.targets} targets"))
            shape = scale[0, 0] * (np.eye(len(phi)) + spd.symmetric(half.T @ half))
            return StudentT(mean[:, 0], shape, float(dof))
        factor = 1 + (half**2).sum(axis=0)
        return StudentT(mean, factor[:, None, None] * scale, np.full(len(phi), float(dof)), kind="full")

    def log_evidence(self, stats: RegressionStats) -> Any:
        """Log marginal likelihood: ratio of normalization constants of posterior and prior; per member for a stack."""
        post, m = self.update(stats), self.targets
        rows = np.sum(stats.rows) if self.tied else stats.rows
        value = multigammaln(post.dof / 2, m) - multigammaln(self.dof / 2, m) - 0.5 * m * LOG_PI * rows
        value = value + 0.5 * (self.dof * spd.logdet(self._scale_root) - post.dof * spd.logdet(post._scale_root))
        means = 0.5 * m * (spd.logdet(self._root) - spd.logdet(post._root) - stats.log_noise)
        return lone(value + (np.sum(means) if self.tied else means))

    def log_density(self, model: GaussianRegression) -> Any:
        """Log density of a regression's coefficients and noise covariance; one per member (their sum where tied)."""
        m, M = self.mean.shape[-2:]
        root: Array = np.asarray(np.linalg.cholesky(model.covariance), dtype=np.float64)
        logdet, w = spd.logdet(root), spd.inverse_factor(root)
        wishart = 0.5 * (self.dof * spd.logdet(self._scale_root) - self.dof * m * np.log(2.0))
        wishart = wishart - multigammaln(0.5 * self.dof, m) - 0.5 * (self.dof + m + 1) * logdet
        wishart = wishart - 0.5 * ((w @ self._scale_root) ** 2).sum(axis=(-2, -1))
        away = w @ (model.coefficients - self.mean) @ self._root
        normal = 0.5 * (m * (spd.logdet(self._root) - M * LOG_2PI) - M * logdet - (away**2).sum(axis=(-2, -1)))
        return lone(wishart + (np.sum(normal) if self.tied else normal))


Posterior = CoefficientsGivenNoise | MatrixNormalInverseWishart


@dataclass(frozen=True, eq=False)
class RegressionPredictive(Value):
    """Predictive density p(y | x) of a regression whose parameters have a distribution, its posterior.

    >>> post = CoefficientsGivenNoise([1.0, 2.0], 4.0, 0.25)
    >>> post.predictive().given([[0.0], [2.0]]).variance.ravel()
    array([0.5, 1.5])
    """

    posterior: Annotated[Any, declared.prior]  # CoefficientsGivenNoise or MatrixNormalInverseWishart

    @property
    def members(self) -> int | None:
        """Number of members of a stack; None for one value."""
        return len(self.posterior.precision) if self.posterior.precision.ndim == 3 else None

    def member(self, k: int) -> RegressionPredictive:
        """One member of a stack."""
        fields = declared.stacked(self.posterior)
        return self.replace(posterior=self.posterior.replace(**{name: part[k] for name, part in fields.items()}))

    @property
    def targets(self) -> int:
        """Number of targets."""
        return int(self.posterior.targets)

    def design(self, x: Any) -> Array:
        """Values of the basis functions."""
        return self.posterior.point("mode").design(x)

    def given(self, x: Any, joint: bool = False) -> Any:
        """The densities of y at the rows of x, one member per row; `joint` is the joint density of all rows."""
        if self.members is not None:
            expected = "given(x) is defined for one posterior"
            raise DomainError(sentence("RegressionPredictive", expected, f"a stack of {self.members}", "use member(k)"))
        return self.posterior.given(self.design(x), joint)

    def log_prob(self, y: Any, x: Any) -> Array:
        """Predictive log-density log p(y | x) of each row.

        Parameters
        ----------
        y : array-like (n,) or (n, m)
            Targets; NaN is unobserved.
        """
        if self.members is not None:
            return np.stack([self.member(k).log_prob(y, x) for k in range(self.members)], axis=1)

        def evaluate(block: Any) -> Array:
            target = np.asarray(block["y"], dtype=np.float64).reshape(len(block), -1)
            seen = np.flatnonzero(~np.isnan(target).all(axis=1))
            out = np.zeros(len(target))
            if len(seen):
                out[seen] = log_prob_each(self.given(np.asarray(block["x"])[seen]), target[seen])
            return out

        return map_rows(evaluate, Columns(y=y, x=x), None)

    def sample(self, x: Any, rng: Generator) -> Array:
        """One independent sample of y for each row of x (n, m)."""
        return np.asarray(draw_each(self.given(x), rng))


NEVER = 1e20  # precision of a coefficient that is 0, in units of what the data tell about it


def penalized_posterior(stats: RegressionStats, alpha: Array, beta: float, basis: Any) -> CoefficientsGivenNoise:
    """Posterior of one target under the prior N(0, diag(α)⁻¹) and noise precision β.

    A coefficient with α = 0 has a flat prior, one with α infinite is 0.
    """
    root, mean = penalized(stats, alpha / beta)
    return CoefficientsGivenNoise.from_root(mean[0], np.sqrt(beta) * root, np.asarray(1 / beta), basis)


def penalized(stats: RegressionStats, penalty: Array) -> tuple[Array, Array]:
    """L (M, M) with L Lᵀ = ΦᵀΦ + diag(penalty), and the coefficients (m, M) of penalized least squares.

    A coefficient with an infinite penalty is 0.
    """
    M, R = len(penalty), stats.regular_root
    size = (R[:, :M] ** 2).sum(axis=0)
    out = np.isinf(penalty)
    finite = np.where(out, NEVER * np.where(size > 0, size, 1.0), penalty)
    root, mean, _ = _posterior(np.diag(np.sqrt(finite)), np.zeros((stats.targets, M)), R)
    return root, np.where(out, 0.0, mean)


def weak_regression_prior(model: GaussianRegression, stats: RegressionStats) -> MatrixNormalInverseWishart:
    """Weakly informative prior: its mode is the regression of the pooled rows and the pooled residual covariance.

    The coefficients count as a hundredth of a row with the spread of all rows, the noise as 2m + 3 + M rows, the least
    for which the mean of the noise covariance is finite.
    """
    pooled, m = stats.pooled(), model.targets
    if not pooled.total_weight > 0:
        expected = "statistics of at least one row are needed"
        raise DomainError(sentence("GaussianRegression.weak_prior", expected, "none"))
    found = pooled.solve()
    R, M = pooled.root, model.coefficients.shape[-1]
    phi = spd.symmetric(R[:M, :M].T @ R[:M, :M]) / pooled.rows
    phi[np.diag_indices(M)] += np.where(np.diagonal(phi) > 0, 1e-6 * np.diagonal(phi), 1.0)
    own = stats.solve().residual_scatter
    within = np.asarray(own.sum(axis=0) if own.ndim == 3 else own) / pooled.rows
    spread = pooled.target_scatter / pooled.rows
    least = np.where(spread > 0, 1e-9 * spread, 1e-16 * np.maximum(pooled.sums.mean[-m:] ** 2, 1.0))
    within = spd.symmetric(within) + np.diag(least)
    shared = model.members if model.tied and model.members else 1
    count = 2.0 * m + 3.0 + M * shared
    return MatrixNormalInverseWishart.trusted(
        mean=found.coefficients, precision=0.01 * phi, scale=count * within, dof=np.asarray(m + 2.0),
        basis=model.basis, tied=False,
    )  # fmt: skip


def _checked_root(stats: RegressionStats, M: int, m: int, whose: str) -> Array:
    """R (..., M + m, M + m) of statistics of m targets and M basis functions, all observed."""
    if not isinstance(stats, RegressionStats):
        remedy = "collect with a GaussianRegression"
        raise ShapeError(sentence(whose, "RegressionStats are needed", type(stats).__name__, remedy))
    if not stats.complete:
        expected = "a posterior in closed form needs complete rows"
        raise DomainError(sentence(whose, expected, "expected statistics of rows with missing entries"))
    R = stats.root
    if stats.targets != m or R.shape[-1] != M + m:
        expected = f"statistics of {m} targets and {M} basis functions are needed"
        raise ShapeError(sentence(whose, expected, f"{stats.targets} and {R.shape[-1] - stats.targets}"))
    return R


def _posterior(root: Array, mean: Array, R: Array) -> tuple[Array, Array, Array]:
    """L and W of the posterior with precision L Lᵀ + RᵀR, and the root of what the mean leaves, by one QR.

    The rows of the prior, Lᵀ(w − w₀), are put above those of the data, R₁₁w − R₁₂: no product is formed.
    """
    M = root.shape[-1]
    prior = np.swapaxes(root, -1, -2)
    above = np.concatenate([prior, prior @ np.swapaxes(mean, -1, -2)], axis=-1)
    lead = np.broadcast_shapes(above.shape[:-2], R.shape[:-2])
    both = [np.broadcast_to(part, (*lead, *part.shape[-2:])) for part in (above, R)]
    joint: Array = np.asarray(np.linalg.qr(np.concatenate(both, axis=-2), mode="r"))
    sign = np.where(np.diagonal(joint, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    joint = joint * sign[..., None]
    upper = joint[..., :M, :M]
    if not (np.diagonal(upper, axis1=-2, axis2=-1) > 0).all():
        raise DomainError(sentence("regression", "the precision must be positive definite", "a singular one"))
    mean = np.swapaxes(np.linalg.solve(upper, joint[..., :M, M:]), -1, -2)
    return np.ascontiguousarray(np.swapaxes(upper, -1, -2)), mean, joint[..., M:, M:]


def _residuals(stats: RegressionStats, mean: Array) -> Array:
    """Σ w (y − W φ)(y − W φ)ᵀ (..., m, m) at coefficients W (..., m, M), without cancellation."""
    m = mean.shape[-2]
    eye = np.broadcast_to(np.eye(m), (*mean.shape[:-2], m, m))
    rest = stats.root @ np.concatenate([-np.swapaxes(mean, -1, -2), eye], axis=-2)
    return np.asarray(np.swapaxes(rest, -1, -2) @ rest)


def _matrix(given: Array, d: int, whose: str) -> Array:
    """A matrix (..., d, d) from a number, a diagonal (d,), or matrices."""
    if given.ndim == 0:
        return given * np.eye(d)
    if given.shape == (d,) and d > 1:
        return np.diag(given)
    if given.shape == (1,):
        return given[:, None]
    if given.ndim > 3 or given.shape[-2:] != (d, d):
        expected = f"a matrix must be a number, a diagonal ({d},) or have shape ({d}, {d})"
        raise ShapeError(sentence(whose, expected, given.shape))
    return given


def _cholesky(a: Array, whose: str, name: str) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(a), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise DomainError(sentence(whose, f"{name} must be positive definite", "a singular one")) from error


def _solve_transposed(root: Array, b: Array) -> Array:
    """L⁻ᵀ b."""
    return np.asarray(np.linalg.solve(np.swapaxes(root, -1, -2), b))


def _times(root: Array, away: Array) -> Array:
    """Lᵀ v of vectors (..., M)."""
    return np.einsum("...ji,...j->...i", root, away)
