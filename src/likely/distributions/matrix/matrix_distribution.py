"""Base class of the Wishart and inverse Wishart distributions: density, sufficient statistics, maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from likely.core import declared
from likely.core.arrays import Array, Index, n_rows, parameter, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.stats import Stats
from likely.distributions.distribution import Distribution
from likely.distributions.matrix.matrix_rows import Matrices, MatrixSums, matrices, matrix_sums
from likely.distributions.statistics.counts import member_weights
from likely.numerics import spd
from likely.numerics.special import (
    LOG_PI,
    deviance,
    gamma_divergence,
    gamma_excess,
    log_minus_digamma,
    log_poisson_peak,
)

LARGEST_DOF = 1e9  # upper bound of the degrees of freedom, where the distribution is practically a point mass


@dataclass(frozen=True, eq=False)
class MatrixDistribution(Distribution):
    """Base class of `Wishart` and `InverseWishart`. A leading axis of `scale` or `dof` makes a stack.

    Both log-densities are −(d + 1)/2 log det X − ν/2 Σ (λ − 1 − log λ) + a constant, with λ the eigenvalues of V⁻¹X/ν
    or X⁻¹Ψ/ν.
    """

    dof: Annotated[Array, declared.numbers("*", 0)]  # () or (K,): ν > d − 1
    scale: Annotated[Array, declared.numbers("* d d")]  # (d, d) or (K, d, d)

    _inverse: ClassVar[bool]  # True for the inverse Wishart distribution

    def __post_init__(self) -> None:
        me = type(self).__name__
        dof, scale = parameter(self.dof, me, "dof"), parameter(self.scale, me, "scale")
        scale = scale.reshape(1, 1) if scale.ndim == 0 else scale
        if scale.ndim not in (2, 3) or scale.shape[-1] != scale.shape[-2] or 0 in scale.shape or dof.ndim > 1:
            expected = "scale must be (d, d), or (K, d, d) for a stack, and dof a number or (K,)"
            raise ShapeError(sentence(me, expected, (scale.shape, dof.shape)))
        lead = np.broadcast_shapes(dof.shape, scale.shape[:-2]) if _fit(dof, scale) else None
        if lead is None:
            expected = "dof and scale must have the same number of members"
            raise ShapeError(sentence(me, expected, (dof.shape, scale.shape)))
        d = scale.shape[-1]
        if not (dof > d - 1).all():
            raise DomainError(sentence(me, f"dof must be above d − 1 = {d - 1}", float(dof.min())))
        if not spd.is_symmetric(scale) or not (np.diagonal(scale, axis1=-2, axis2=-1) > 0).all():
            raise DomainError(sentence(me, "scale must be symmetric and positive definite"))
        if spd.cholesky(scale) is None:
            raise DomainError(sentence(me, "scale must be positive definite", "a singular one"))
        scale = np.array(np.broadcast_to(scale, (*lead, d, d)))
        self._set(dof=np.array(np.broadcast_to(dof, lead)), scale=scale)

    # ------------------------------------------------------------------ shape

    @property
    def size(self) -> int:
        """Number of rows and columns d of a matrix."""
        return int(self.scale.shape[-1])

    @property
    def dim(self) -> int:
        """Number of entries d² of a flattened row."""
        return self.size**2

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.dof) if self.dof.ndim else None

    def member(self, k: int) -> Self:
        """One member of a stack."""
        return self.replace(dof=np.array(self.dof[k]), scale=self.scale[k].copy())

    def take(self, index: Any) -> Self:
        """Members `index` as a stack."""
        return self.replace(dof=self.dof[index], scale=self.scale[index])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: degrees of freedom and scales."""
        return (self.members or 1) * (1 + self.size * (self.size + 1) // 2)

    @cached_property
    def _root(self) -> Array:
        root = spd.cholesky(np.ascontiguousarray(self.scale))
        if root is None:
            raise DomainError(sentence(type(self).__name__, "scale must be positive definite", "a singular one"))
        return root

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(X) of matrices (n, d, d), or flattened (n, d²): (n,), or (n, K) for a stack.

        −inf where a matrix is not positive definite; a row of NaN is missing.
        """
        me, d = type(self).__name__, self.size
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)
        distributions = [self] if self.members is None else [self.member(k) for k in range(self.members)]

        def evaluate(block: Any) -> Array:
            rows = matrices(block, d, me)
            logs = [one._log_density(rows) for one in distributions]
            return logs[0] if self.members is None else np.stack(logs, axis=1)

        return map_rows(evaluate, x, self.members)

    def _log_density(self, rows: Matrices) -> Array:
        v, d = float(self.dof), self.size
        logdet = spd.logdet(rows.root)
        out = -0.5 * (d + 1) * logdet - 0.5 * v * self._deviance(rows) + matrix_constant(0.5 * v, d)
        return np.where(rows.seen, np.where(rows.inside, out, -np.inf), 0.0)

    def _deviance(self, rows: Matrices) -> Array:
        """Σ (λ − 1 − log λ) ≥ 0 per row."""
        v = float(self.dof)
        if self._inverse:
            return matrix_deviance(self.scale / v - rows.x, self._root / np.sqrt(v), rows.root)
        return matrix_deviance(rows.x / v - self.scale, rows.root / np.sqrt(v), self._root)

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None) -> Self:
        """Initial model: scale matrix identity, of the size of these matrices."""
        shape = np.shape(x)
        d = shape[1] if len(shape) == 3 else round(float(np.sqrt(shape[1]))) if len(shape) == 2 else 1
        lead = () if members is None else (members,)
        scale = np.array(np.broadcast_to(np.eye(d), (*lead, d, d)))
        return cls.trusted(dof=np.full(lead, d + 2.0), scale=scale)

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> MatrixSums:
        """Sufficient statistics Σ w, Σ w X, Σ w X⁻¹, Σ w log det X; `weight` (n,) or (n, K); `labels` (n,): members."""
        me, n = type(self).__name__, n_rows(x)
        w = weights(weight, n, me)
        if n > ROWS * BLOCKS:
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), Blocks.of(x, w, labels=labels))
        return matrix_sums(x, member_weights(w, labels, n, self.members, me), self.members, self.size, me)

    def refit(self, stats: MatrixSums, prior: AnyPrior | None = None) -> Self:
        """Maximum-likelihood estimate: scale in closed form, ν as the root of one equation; or the posterior mode."""
        self.statistics_in_kind(stats)
        if prior is not None:
            return prior.update(stats).point("mode")
        if not stats.total_weight > 0:
            me = type(self).__name__
            raise DataError(sentence(me, "at least one row with weight is needed", "none", "or give a prior"))
        has_rows = stats.weight > 0
        n = np.where(has_rows, stats.weight, 1.0)
        total = stats.inverse if self._inverse else stats.total
        mean = np.where(has_rows[..., None, None], total / n[..., None, None], np.eye(self.size))
        root = spd.cholesky(np.ascontiguousarray(spd.symmetric(mean)))
        if root is None:
            raise DataError(sentence(type(self).__name__, "the mean of the matrices must be positive definite"))
        lag = spd.logdet(root) - (-1.0 if self._inverse else 1.0) * stats.logdet / n
        dof = best_dof(np.maximum(lag, 0.0), self.size)
        by = np.asarray(dof)[..., None, None]
        scale = spd.symmetric(by * spd.precision(root)) if self._inverse else spd.symmetric(mean / by)
        old = (self.dof, self.scale)
        scale = np.where(has_rows[..., None, None], scale, old[1])
        return self.replace(dof=np.where(has_rows, dof, old[0]), scale=scale)

    def objective(self, stats: MatrixSums, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics (+ log prior)."""
        self.statistics_in_kind(stats)
        v, d, n = self.dof, self.size, stats.weight
        own = spd.logdet(self._root)
        w = spd.inverse_factor(self._root)
        if self._inverse:
            trace = (self.scale * stats.inverse).sum(axis=(-2, -1)) / v
            log_y = n * (own - d * np.log(v)) - stats.logdet
        else:
            trace = spd.trace_form(w, stats.total) / v
            log_y = stats.logdet - n * (own + d * np.log(v))
        logs = n * matrix_constant(0.5 * v, d) - 0.5 * (d + 1) * stats.logdet - 0.5 * v * (trace - n * d - log_y)
        value = float(np.sum(logs))
        return value if prior is None else value + float(np.sum(prior.log_density(self)))

    def weak_prior(self, stats: MatrixSums) -> Any:
        """Weakly informative prior: a tenth of a pseudo-observation with the pooled statistics."""
        from likely.distributions.priors.pseudo_data import PseudoData

        return PseudoData.weak(self, stats)

    def statistics_in_kind(self, stats: Stats) -> None:
        me = type(self).__name__
        if not isinstance(stats, MatrixSums) or stats.total.shape != self.scale.shape:
            got = getattr(getattr(stats, "total", None), "shape", type(stats).__name__)
            raise ShapeError(sentence(me, f"statistics of matrices of shape {self.scale.shape} are needed", got))


def _fit(dof: Array, scale: Array) -> bool:
    return dof.ndim == 0 or scale.ndim == 2 or len(dof) == len(scale) or 1 in (len(dof), len(scale))


def matrix_constant(a: Any, d: int) -> Array:
    """a d log a − a d − log Γ_d(a) for a = ν/2: the log normalization constant relative to λ = 1."""
    a = np.asarray(a, dtype=np.float64)
    i = np.arange(d)
    each = 0.5 * i * np.log(a)[..., None] - gamma_excess(a[..., None], -0.5 * i)
    return np.asarray(d * (log_poisson_peak(a) + np.log(a)) + each.sum(axis=-1) - 0.25 * d * (d - 1) * LOG_PI)


def matrix_deviance(apart: Array, one: Array, other: Array) -> Array:
    """Σ (λ − 1 − log λ) ≥ 0 for λ of B⁻¹A, given A − B and the Cholesky factors of A and B.

    Computed from λ − 1, and where a λ is near 0 from ratios of pivots: unlike two determinants, neither cancels.
    """
    inverse = spd.inverse_factor(other)
    e = spd.symmetric(inverse @ apart @ np.swapaxes(inverse, -1, -2))
    pivots = np.diagonal(one, axis1=-2, axis2=-1) / np.diagonal(other, axis1=-2, axis2=-1)
    out = np.trace(e, axis1=-2, axis2=-1) - 2 * np.log(pivots).sum(axis=-1)
    finite = np.asarray(np.isfinite(e).all(axis=(-2, -1)))
    excess = np.linalg.eigvalsh(np.where(finite[..., None, None], e, 0.0))  # λ − 1
    near = finite & (excess > -0.5).all(axis=-1)
    out = np.where(near, deviance(1.0, 1.0 + excess, -excess).sum(axis=-1), out)
    return np.asarray(np.maximum(out, 0.0))


def multidigamma(a: Any, d: int) -> Array:
    """Multivariate digamma function: derivative of log Γ_d, Σ ψ(a − i/2), i < d."""
    return np.asarray(digamma(np.asarray(a)[..., None] - 0.5 * np.arange(d)).sum(axis=-1))


def divergence_of_dof(b: Any, a: Any, d: int) -> Array:
    """Bregman divergence of log Γ_d: log Γ_d(b) − log Γ_d(a) − (b − a) ψ_d(a) ≥ 0."""
    i = 0.5 * np.arange(d)
    return gamma_divergence(np.asarray(b)[..., None] - i, np.asarray(a)[..., None] - i).sum(axis=-1)


def best_dof(lag: Array, d: int) -> Array:
    """Maximum-likelihood ν by bisection: root of d log(ν/2) − Σ ψ((ν − i)/2) = lag ≥ 0; the left side is decreasing."""
    i = np.arange(d)
    low, high = np.full(lag.shape, -50.0), np.full(lag.shape, np.log(LARGEST_DOF))

    def too_low(t: Array) -> Array:
        above = np.exp(t)[..., None]
        a = 0.5 * (above + (d - 1 - i))
        terms = log_minus_digamma(a) + np.log1p(i / (above + (d - 1 - i)))
        return np.asarray(terms.sum(axis=-1) > lag)

    for _ in range(200):
        middle = 0.5 * (low + high)
        if ((middle <= low) | (middle >= high)).all():
            break
        up = too_low(middle)
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return np.asarray(d - 1 + np.exp(low))


def bartlett(dof: Array, d: int, n: int, rng: np.random.Generator) -> Array:
    """Bartlett decomposition: lower triangular A (n, ..., d, d) with A Aᵀ ~ Wishart(ν, I)."""
    a = np.tril(rng.standard_normal((n, *dof.shape, d, d)), -1)
    i = np.arange(d)
    a[..., i, i] = np.sqrt(rng.chisquare(dof[..., None] - i, (n, *dof.shape, d)))
    return a
