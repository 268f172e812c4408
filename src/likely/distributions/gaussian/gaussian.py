"""Multivariate normal distribution: full, diagonal or spherical covariance, stacks, missing entries integrated out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from likely.core import declared
from likely.core.arrays import (
    Array,
    Index,
    PerMember,
    all_finite,
    check_option,
    checked_labels,
    n_rows,
    numbers,
    parameter,
    refuse_infinite,
    rows,
    sliceable,
    weights,
)
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.job_size import job
from likely.core.protocols import AnyPrior
from likely.core.stats import Stats
from likely.core.value import fill_cache
from likely.core.warnings import Note, warn
from likely.distributions.distribution import in_units, lone
from likely.distributions.gaussian import moments
from likely.distributions.gaussian.covariance_types import (
    KINDS,
    CovarianceKind,
    check_covariance,
    covariance_and_kind,
    covariance_score,
    whitened,
)
from likely.distributions.gaussian.gaussian_algebra import Algebra
from likely.distributions.gaussian.mahalanobis import Quadratic
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.gaussian.moments import ColumnMoments, Moments
from likely.distributions.gaussian.rows_by_label import gather_rows, rows_per_member, sum_over_slices
from likely.distributions.gaussian.variance_floors import column_floor, raise_to_floor, regularized, warn_of_unobserved
from likely.numerics import spd
from likely.numerics.special import LOG_2PI

BLANK_ROWS = 1024  # rows from which `blank` takes its mean and variance
SEGMENTS = 16  # members from which rows with labels may be summed in segments rather than member by member
SEGMENT_PRODUCTS = 20_000  # products of entries per member, below which they are: a call per member would cost more


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Algebra):
    """Multivariate normal distribution with mean μ and covariance Σ.

    log N(x | μ, Σ) = −½ [d log 2π + log det Σ + (x − μ)ᵀ Σ⁻¹ (x − μ)].

    One distribution, or a stack of K members. A covariance may be singular: the density is then that on its support μ +
    range(Σ), and −inf elsewhere. NaN entries of x are integrated out.

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Mean μ; (K, d) is a stack of K members.
    covariance : float or array-like, default 1.0
        Covariance Σ: a matrix, a vector (the diagonal) or a number (spherical). In a stack, one of shape (), (d,) or
        (d, d) is shared by all members; one per member has the leading axis K; diagonals (K, d) and numbers (K,) need
        `kind`.
    kind : {"full", "diagonal", "spherical"}, optional
        Kind of covariance; by default that of the shape of `covariance`.

    See Also
    --------
    GaussianDensity : The estimator.
    NormalInverseWishart : The conjugate prior.
    StudentT : Heavier tails.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.3; Ney, lecture notes, 1.4.

    Examples
    --------
    >>> g = Gaussian([0.0, 1.0], [[2.0, 0.3], [0.3, 1.0]])
    >>> g.log_prob([[0.0, 1.0], [0.5, np.nan]]).round(4)
    array([-2.1614, -1.328 ])
    """

    one_distribution = True  # a prior applies to all parameters or to none

    mean: Annotated[Array, declared.numbers("* d")]  # (d,) or (K, d)
    covariance: Array = 1.0  # type: ignore[assignment]  # full ([K,] d, d), diagonal ([K,] d), spherical ([K])
    kind: CovarianceKind = None  # type: ignore[assignment]

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that a covariance is stored in the shape of its kind."""
        return declared.shape_as_kind(fields, "mean", "covariance")

    def __post_init__(self) -> None:
        mean = parameter(self.mean, "Gaussian", "mean")
        mean = mean if mean.ndim else mean[None].copy()
        if mean.ndim > 2 or not mean.size:
            raise ShapeError(sentence("Gaussian", "mean must have shape (d,) or (K, d)", mean.shape))
        covariance, kind = covariance_and_kind(mean, parameter(self.covariance, "Gaussian", "covariance"), self.kind)
        check_covariance(covariance, kind)
        self._set(mean=mean, covariance=covariance, kind=kind, _is_finite=True)

    @cached_property
    def has_finite_moments(self) -> bool:
        """True if all parameters are finite. The constructor rejects others; a sum of distributions may overflow."""
        return all_finite(self.mean) and all_finite(self.covariance)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.mean.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.mean) if self.mean.ndim == 2 else None

    @property
    def tied(self) -> bool:
        """True for a stack with one covariance for all members."""
        return self.members is not None and self.covariance.ndim == KINDS[::-1].index(self.kind)

    def member(self, k: int) -> Gaussian:
        """One member of a stack."""
        covariance = self.covariance if self.tied else self.covariance[k]
        return Gaussian.trusted(mean=self.mean[k].copy(), covariance=np.array(covariance), kind=self.kind)

    def take(self, index: Any) -> Gaussian:
        """Members `index` as a stack that keeps its statistics about the same origin."""
        covariance = self.covariance if self.tied else self.covariance[index]
        part = Gaussian.trusted(mean=self.mean[index], covariance=np.array(covariance), kind=self.kind)
        return fill_cache(part, origin=self.origin)

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the covariances of all members."""
        if self.kind != "full":
            return float(self.covariance.min())
        if self.form.roots is None:
            return 0.0
        # through the inverse: in columns of unlike units the smallest eigenvalue is lost in the rounding of the largest
        largest = np.linalg.norm(spd.inverse_factor(self.form.roots), ord=2, axis=(-2, -1)).max()
        return float(1.0 / largest) ** 2

    @cached_property
    def form(self) -> Quadratic:
        """The quadratic form (x − μ)ᵀ Σ⁻¹ (x − μ) with its Cholesky factors, computed once."""
        covariance, d = self.covariance, self.dim
        if self.kind == "spherical":
            covariance = np.repeat(covariance[..., None], d, axis=-1)
        add_axis = self.members is None or self.tied
        return Quadratic(np.atleast_2d(self.mean), covariance[None] if add_axis else covariance, "Gaussian")

    # ---------------------------------------------------------------- density

    @staticmethod
    def _parameter_score(x: Array, mean: Array, covariance: Array) -> tuple[Array, ...]:
        """∂ log p by the mean and by the covariance, given as its Cholesky factor or as variances."""
        z, v = whitened(x, mean, covariance)
        return v, covariance_score(z, v, covariance, 1.0)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log N(x | μ, Σ) of rows. NaN entries are missing values."""
        x = sliceable(_rows_like(x), self.dim)
        with job(self.form.work(n_rows(x))):
            return map_rows(self.log_prob_block, x, self.members)

    def log_prob_block(self, block: Any) -> Array:
        """`log_prob` of one block of rows, called with NumPy's warnings off (as by `map_rows`).

        For a stack, the result is contiguous in memory per member.
        """
        z = rows(block, self.dim, "Gaussian")
        out = self.form.evaluate(z, -0.5, self._constant, self._natural)
        incomplete = self._incomplete_rows(z, out)
        if len(incomplete):
            out[incomplete] = self._log_marginal(z[incomplete])
        return out if self.mean.ndim == 2 else out[:, 0]

    def _incomplete_rows(self, x: Array, out: Array) -> Index:
        """Indices of rows with missing entries; infinite entries raise. Only rows with non-finite `out` are checked."""
        not_finite = (~np.isfinite(out[:, 0])).nonzero()[0]
        if len(not_finite):
            refuse_infinite(x[not_finite], "Gaussian", not_finite)
        return not_finite[np.isnan(out[not_finite, 0])]

    @cached_property
    def _constant(self) -> Array:
        return -0.5 * (self.form.rank * LOG_2PI + self.form.logdet)

    @cached_property
    def _natural(self) -> Array | None:
        return self.form.natural(-0.5, self._constant) if self.form.reach > 0 else None

    def _log_marginal(self, x: Array) -> Array:
        """Log-density log N(x_o | μ_o, Σ_oo) over the observed entries o of each row (n, K)."""
        q, logdet, n_observed = self.form.incomplete(x)
        return -0.5 * (q + logdet + (n_observed if n_observed.ndim == 2 else n_observed[:, None]) * LOG_2PI)

    def squared_distance(self, x: ArrayLike) -> Array:
        """Squared Mahalanobis distance (x − μ)ᵀ Σ⁻¹ (x − μ) of rows; missing entries are integrated out.

        Returns
        -------
        ndarray (n,)
            Squared distances; (n, K) for a stack.
        """
        zero = np.zeros(len(self.form.mean))

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Gaussian")
            out = self.form.complete(z, 1.0, zero)
            incomplete = self._incomplete_rows(z, out)
            if len(incomplete):
                out[incomplete] = self.form.incomplete(z[incomplete])[0]
            return np.maximum(out if self.members else out[:, 0], 0.0)

        return map_rows(evaluate, _rows_like(x), self.members)

    def mahalanobis(self, x: ArrayLike) -> Array:
        """Mahalanobis distance of rows: square root of `squared_distance`.

        Returns
        -------
        ndarray (n,)
            Distances; (n, K) for a stack.

        References
        ----------
        Herbst and du Preez, lecture notes, 2.3.
        """
        return np.sqrt(self.squared_distance(x))

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, d), or (n, K, d) for a stack: μ + L e with Σ = L Lᵀ and standard normal e."""
        K, d = np.atleast_2d(self.mean).shape
        noise = rng.standard_normal((n, K, d))
        out = self.form.mean + self._colored(noise)
        return out if self.members else out[:, 0]

    def _colored(self, noise: Array) -> Array:
        """Standard normal noise (n, K, d) times the Cholesky factor of each member."""
        if self.form.roots is None:
            K, supports = noise.shape[1], self.form.supports
            factors = [s.factor for s in supports] * (K if len(supports) < K else 1)
            return np.stack([noise[:, k, : f.shape[1]] @ f.T for k, f in enumerate(factors)], axis=1)
        if self.form.diagonal:
            return noise * self.form.roots
        return np.einsum("nkd,ked->nke", noise, np.broadcast_to(self.form.roots, (noise.shape[1], self.dim, self.dim)))

    # ---------------------------------------------------------------- moments

    @property
    def mode(self) -> Array:
        """Mode: the mean."""
        return self.mean

    @property
    def covariance_matrix(self) -> Array:
        """Covariance as a full matrix: (d, d), or (K, d, d) for a stack."""
        c = self.covariance
        if self.kind != "full":
            c = (c if self.kind == "diagonal" else c[..., None])[..., None] * np.eye(self.dim)
        return np.broadcast_to(c, (*self.mean.shape, self.dim))

    @property
    def median(self) -> Array:
        """Median per column: the mean."""
        return self.mean

    @property
    def variance(self) -> Array:
        """Variance per column, in the shape of the mean."""
        c = self.covariance
        if self.kind == "full":
            c = np.diagonal(c, axis1=-2, axis2=-1)
        return np.broadcast_to(c[..., None] if self.kind == "spherical" else c, self.mean.shape)

    def entropy(self, bits: bool = False) -> PerMember:
        """Differential entropy ½ log det 2πeΣ (Herbst 1.6), in nats or bits; one per member for a stack."""
        h = 0.5 * (self.form.rank * (LOG_2PI + 1) + self.form.logdet)
        return in_units(h if self.members else float(h[0]), bits)

    def kl(self, other: Gaussian, bits: bool = False) -> PerMember:
        """KL(self ‖ other) = ½ [tr(Σ₂⁻¹Σ₁) + Δᵀ Σ₂⁻¹ Δ − d + log det Σ₂ / det Σ₁], Δ = μ₂ − μ₁; per member."""
        self._check_same_shape(other, "kl")
        root = spd.cholesky(np.ascontiguousarray(other.covariance_matrix))
        if root is None or self.form.roots is None:
            raise DomainError(sentence("Gaussian.kl", "both covariances must be positive definite", "a singular one"))
        w = spd.inverse_factor(root)
        trace = spd.trace_form(w, self.covariance_matrix)
        delta = np.einsum("...ij,...j->...i", w, other.mean - self.mean)
        ratio = spd.logdet(root) - (self.form.logdet if self.members else self.form.logdet[0])
        return in_units(lone(0.5 * (trace + (delta**2).sum(-1) - self.dim + ratio)), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution function P(X ≤ x) in one dimension."""
        return np.asarray(ndtr(self._standardized(x)))

    def log_cdf(self, x: ArrayLike) -> Array:
        """Log of the cumulative distribution function in one dimension, accurate in the far tail.

        Parameters
        ----------
        x : array-like
            Points.

        Returns
        -------
        ndarray
            Log-probabilities log P(X ≤ x).
        """
        return np.asarray(log_ndtr(self._standardized(x)))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF) in one dimension; for a stack, (n, K)."""
        z = np.asarray(ndtri(np.asarray(p, dtype=np.float64)))
        mean, deviation = self._one_column()
        z = z[..., None] if self.members else z
        with np.errstate(invalid="ignore"):
            return np.where((deviation == 0) & ~np.isnan(z), mean, mean + deviation * z)

    def _standardized(self, x: Any) -> Array:
        """z = (x − μ) / σ of one column; +inf at the mean of a point mass, where the CDF is 1."""
        mean, deviation = self._one_column()
        z = numbers(x, "Gaussian")
        z = z[..., 0] if z.ndim > 1 and z.shape[-1] == 1 else z
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            delta = (z[..., None] if self.members else z) - mean
            return np.where((deviation == 0) & (delta == 0), np.inf, delta / deviation)

    def _one_column(self) -> tuple[Any, Any]:
        if self.dim != 1:
            expected = "cdf and quantile are defined for one column"
            raise DomainError(sentence("Gaussian", expected, f"{self.dim} columns", "take marginal([j]) first"))
        return self.mean[..., 0], np.sqrt(self.variance[..., 0])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: means, and the free entries of the covariances."""
        K, d = np.atleast_2d(self.mean).shape
        per_covariance = {"full": d * (d + 1) // 2, "diagonal": d, "spherical": 1}[self.kind]
        return K * d + (1 if self.tied else K) * per_covariance

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Any, kind: CovarianceKind = "full", members: int | None = None, tied: bool = False) -> Gaussian:
        """Initial model: mean and variance per column of the first rows, missing entries left out.

        Its mean also serves as the origin of the statistics. Correlations are 0.
        """
        check_option(kind, CovarianceKind, "Gaussian", "kind")
        z = rows(x[:BLANK_ROWS] if hasattr(x, "shape") else x, None, "Gaussian")
        refuse_infinite(z, "Gaussian")
        if z.shape[1] == 0:
            raise ShapeError(sentence("Gaussian", "at least one column is needed", z.shape))
        anchor = z[0] if len(z) else np.zeros(z.shape[1])
        stats = moments.columns_of_rows(z, None, np.where(np.isnan(anchor), 0.0, anchor))
        variance = stats.variance
        variance = np.where(variance > 0, variance, np.clip(np.abs(stats.mean), 1.0, 1e150) ** 2)
        covariance = np.diag(variance) if kind == "full" else variance if kind == "diagonal" else variance.mean()
        mean = stats.mean
        if members is not None:
            mean = np.repeat(mean[None], members, axis=0)
            covariance = covariance if tied else np.repeat(np.asarray(covariance)[None], members, axis=0)
        return Gaussian.trusted(mean=mean.copy(), covariance=np.array(covariance), kind=kind)

    @classmethod
    def from_moments(cls, mean: Any, variance: Any) -> Gaussian:
        """The Gaussian with this mean and variance: a number, (d,) or (d, d)."""
        return cls(mean, variance)

    @classmethod
    def moments_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, kind: CovarianceKind = "full") -> Gaussian:
        """Moment estimate: weighted mean and scatter over n, which is also the maximum-likelihood estimate.

        Parameters
        ----------
        kind : {"full", "diagonal", "spherical"}, default "full"
            Kind of covariance.
        """
        return cls.fit(x, weight, kind=kind)

    @classmethod
    def unbiased_fit(cls, x: ArrayLike, weight: ArrayLike | None = None, kind: CovarianceKind = "full") -> Gaussian:
        """Weighted mean and unbiased covariance, scatter / (n − 1), where weights count repetitions.

        Parameters
        ----------
        kind : {"full", "diagonal", "spherical"}, default "full"
            Kind of covariance.

        References
        ----------
        Ney, lecture notes, 3.4.

        Examples
        --------
        >>> Gaussian.unbiased_fit([[1.0], [3.0]]).covariance
        array([[2.]])
        """
        start = cls.blank(_rows_like(x), kind=kind)
        stats = start.collect(x, weight)
        if isinstance(stats, Moments) and not stats.complete:
            expected = "an unbiased covariance needs complete rows"
            remedy = 'leave rows with missing values out, or use kind="diagonal"'
            raise DataError(sentence("Gaussian", expected, "rows with missing values", remedy))
        return start.refit(stats, unbiased=True)

    @property
    def takes_parts(self) -> bool:
        """True where `collect` processes many rows in strips that fit the cache."""
        return self.members is None

    @cached_property
    def origin(self) -> Array:
        """Reference point of the statistics: means are stored as differences from it."""
        return np.atleast_2d(self.mean).mean(axis=0)

    def collect(self, x: Any, weight: ArrayLike | None = None, labels: Index | None = None) -> Any:
        """Sufficient statistics of rows (n, d): weight, mean and scatter.

        `weight` is (n,) or, for a stack, (n, K), such as responsibilities; `labels` (n,) is the member of each row
        (−1: none). Missing entries: a diagonal covariance leaves them out; a full one replaces them by their
        conditional expectation and adds their conditional covariance, so this is the E-step of EM at this model.
        """
        n = n_rows(x)
        w = weights(weight, n, "Gaussian")
        if n > (ROWS * BLOCKS if self.takes_parts or labels is not None else ROWS):
            blocks = Blocks.of(x, w, labels=labels)
            blocks = blocks.whole() if self.takes_parts or labels is not None else blocks
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels), blocks)
        if labels is not None:
            return self._by_label(x, w, labels)
        z = rows(x, self.dim, "Gaussian")
        if self.members and (w is None or w.ndim == 1):
            w = np.repeat((np.ones(n) if w is None else w)[:, None], self.members, axis=1)
        if w is not None and w.ndim == 2 and w.shape[1] != self.members:
            raise ShapeError(sentence("Gaussian", f"weight must have one column per member ({self.members})", w.shape))
        return self._full_stats(z, w) if self.kind == "full" else moments.columns_of_rows(z, w, self.origin)

    def _by_label(self, x: Any, w: Array | None, labels: Index) -> Moments | ColumnMoments:
        if self.members is None:
            raise DomainError(sentence("Gaussian", "labels are for a stack", "one distribution"))
        labels = checked_labels(labels, n_rows(x), self.members, "Gaussian")
        step = ROWS if self._in_segments else gather_rows(self.dim)

        def collect(at: slice) -> Any:
            z = rows(x[at] if len(labels) > step else x, self.dim, "Gaussian")
            return self._stats_per_label(z, None if w is None else w[at], labels[at], at.start)

        return sum_over_slices(len(labels), step, collect)

    @property
    def _in_segments(self) -> bool:
        """True if rows are summed in segments: many members with few rows each."""
        products = self.dim * gather_rows(self.dim) * (self.dim if self.kind == "full" else 1)
        return bool(self.members and self.members > SEGMENTS and products < SEGMENT_PRODUCTS * self.members)

    def _stats_per_label(self, x: Array, w: Array | None, labels: Index, start: int) -> Moments | ColumnMoments:
        """Statistics per member of labeled rows, sorted by label here; `start` is the index of the first of them."""
        assert self.members is not None
        if self._in_segments:
            stats = moments.of_labeled_rows(x, w, labels, self.members, self.origin, self.kind == "full")
            if stats is not None:
                return stats
        groups = rows_per_member(x, w, labels, self.members)
        return _stacked([self._of_member(k, *group, start) for k, group in enumerate(groups)])

    def _of_member(self, k: int, x: Array, w: Array | None, at: Index, start: int) -> Moments | ColumnMoments:
        """Statistics of the rows of member k, whose indices are `start + at`, about the origin of the stack."""
        if self.kind != "full":
            return moments.columns_of_rows(x, w, self.origin, at + start)
        stats = moments.of_rows(x, w, self.origin)
        if stats is not None:
            return stats
        refuse_infinite(x, "Gaussian", at + start)
        return fill_cache(self.member(k), origin=self.origin)._full_stats(x, w)

    def _full_stats(self, x: Array, w: Array | None) -> Moments:
        """Statistics with full scatter matrices: of complete rows directly, of incomplete rows by the E-step."""
        if w is None or w.ndim == 1:
            stats = moments.of_rows(x, w, self.origin)
        else:
            stats = moments.of_complete_rows(x, w, self.origin)
        if stats is not None:
            return stats
        mask = observed(x)
        refuse_infinite(x, "Gaussian")
        complete = mask.all(axis=1)
        incomplete = mask.any(axis=1) & ~complete
        if w is not None:
            incomplete &= (w if w.ndim == 1 else w.max(axis=1)) > 0
        if w is None or w.ndim == 1:
            stats = moments.of_rows(x[complete], None if w is None else w[complete], self.origin)
            if stats is None:
                raise moments.overflow()
        else:
            stats = moments.of_weighted_rows(x[complete], w[complete], self.origin)
        if not incomplete.any():
            return stats
        return stats + self._expected_stats(x[incomplete], None if w is None else w[incomplete])

    def _expected_stats(self, x: Array, w: Array | None) -> Moments:
        """E-step for rows with missing entries: E[x_m | x_o] is filled in, and Σ w Cov[x_m | x_o] is added."""
        from likely.distributions.gaussian._loops.missing_values import fill

        patterns = Patterns.of(observed(x))
        x = x[patterns.order] - self.origin  # relative to the origin, filled entries keep their digits at any offset
        w = np.ones(len(x)) if w is None else w[patterns.order]
        means, precisions = self.form.mean - self.origin, self._precisions
        out = []
        for k in range(len(means)):
            wk = np.ascontiguousarray(w if w.ndim == 1 else w[:, k])
            filled = x.copy()
            precision = precisions[min(k, len(precisions) - 1)]
            covariance, log_det, entries = fill(filled, wk, patterns.seen, patterns.starts, means[k], precision)
            stats = moments.of_rows(filled, wk, np.zeros(self.dim))
            if stats is None:
                raise moments.overflow()
            entropy = 0.5 * (entries * (LOG_2PI + 1) - log_det)
            parts = {"scatter": stats.scatter + covariance, "entropy": np.asarray(entropy), "complete": False}
            out.append(stats.replace(origin=self.origin, seen=wk @ observed(x), **parts))
        return moments.stacked(out) if self.members else out[0]

    @cached_property
    def _precisions(self) -> Array:
        roots = self.form.roots
        if roots is None:
            expected = "missing values need a covariance that is not singular"
            raise DomainError(sentence("Gaussian", expected, "a singular one"))
        return spd.precision(roots)

    def refit(self, stats: Any, prior: AnyPrior | None = None, unbiased: bool = False) -> Gaussian:
        """Maximum-likelihood estimate with the same kind of covariance, or with a prior the posterior mode (MAP).

        μ = Σ w x / Σ w and Σ = scatter / Σ w. A singular estimate is regularized just enough to be a density
        (`variance_floors`), and a warning says where and why.

        Parameters
        ----------
        unbiased : bool, default False
            Divide the scatter by weight − 1, where weights count repetitions.
        """
        stats = self.statistics_in_kind(stats)
        warn_of_unobserved(stats, prior)
        if prior is not None:
            separate = self.members is not None and not self.tied and self.kind != "spherical"
            regular = regularized(stats) if separate else stats  # one shared covariance favors none of the members
            return self.in_kind(self.prior_in_kind(prior).update(regular).point("mode"), stats.weight)
        if not (stats.weight > 0).any():
            raise DataError(sentence("Gaussian", "at least one row with weight is needed", "none", "or give a prior"))
        mean = stats.mean
        has_rows = (stats.weight > 0) if stats.weight.shape == mean.shape else (stats.weight > 0)[..., None]
        mean = np.where(has_rows, mean, self.mean)  # a member without rows keeps its parameters
        covariance = self._regularized(self._scatter_over_weight(stats, unbiased), stats)
        return Gaussian.trusted(mean=mean, covariance=covariance, kind=self.kind)

    def prior_in_kind(self, prior: Any) -> Any:
        """The prior for this kind of covariance; tied if the covariance is."""
        if getattr(prior, "kind", self.kind) != self.kind:
            expected = f"a {self.kind} covariance needs a prior for a {self.kind} covariance"
            raise DomainError(sentence("Gaussian", expected, f"{type(prior).__name__} for a {prior.kind} one"))
        return prior._as_tied() if self.tied and hasattr(prior, "tied") else prior

    def in_kind(self, model: Gaussian, weight: ArrayLike | None = None) -> Gaussian:
        """The point estimate of a prior, converted to the kind of covariance of this distribution.

        A prior with known covariance may have a simpler kind. Where all members share one covariance and the prior
        gives one to each, these are pooled, weighted by rows.
        """
        if model.kind == self.kind and model.tied == self.tied:
            return model
        if KINDS.index(self.kind) > KINDS.index(model.kind):
            expected = f"a {self.kind} covariance needs a prior for a {self.kind} covariance"
            raise DomainError(sentence("Gaussian", expected, f"one for a {model.kind} one"))
        covariance = model.covariance_matrix if self.kind == "full" else model.variance
        if self.tied:
            if (covariance != covariance[0]).any():
                rows = np.ones(len(covariance)) if weight is None else np.asarray(weight)
                rows = rows.reshape(len(covariance), -1).mean(axis=1) + 1e-3  # a member without rows still counts
                covariance = np.tensordot(rows / rows.sum(), covariance, axes=1)[None]
            covariance = covariance[0]
        return Gaussian.trusted(mean=model.mean, covariance=np.array(covariance), kind=self.kind)

    def statistics_in_kind(self, stats: Any) -> Any:
        """Check statistics and convert them: `Moments` for a full covariance, `ColumnMoments` for the others."""
        if self.kind != "full" and isinstance(stats, Moments):
            stats = stats.columns()
        if self.kind == "full" and not isinstance(stats, Moments):
            expected = "a full covariance needs Moments"
            raise ShapeError(sentence("Gaussian", expected, type(stats).__name__, "collect with a full Gaussian"))
        if stats.shift.shape != self.mean.shape:
            raise ShapeError(sentence("Gaussian", f"statistics must be of shape {self.mean.shape}", stats.shift.shape))
        return stats

    def _scatter_over_weight(self, stats: Any, unbiased: bool) -> Array:
        """Σ = scatter / weight in the shape of this kind; members without weight keep their covariance."""
        scatter, weight = stats.scatter, stats.weight
        if self.kind == "spherical":
            scatter, weight = scatter.sum(-1), weight.sum(-1)
        ddof = np.ones(np.shape(weight)) if self.kind != "spherical" else np.full(np.shape(weight), float(self.dim))
        if self.tied:
            scatter, weight, ddof = scatter.sum(axis=0), weight.sum(axis=0), ddof.sum(axis=0)
        weight = np.asarray(weight - ddof * unbiased)
        by = weight[..., None, None] if self.kind == "full" else weight
        if unbiased and not (weight > 0).all():
            raise DataError(sentence("Gaussian", "unbiased needs a weight above 1", float(np.min(weight)) + 1))
        return np.where(by > 0, scatter / np.where(by > 0, by, 1.0), self.covariance)

    def _regularized(self, covariance: Array, stats: Any) -> Array:
        """Covariances with variances raised to their floors and singular matrices repaired, with a warning for each."""
        floor = column_floor(stats.pooled())
        lead = covariance.shape[: covariance.ndim - KINDS[::-1].index(self.kind)]
        per_member = np.array(covariance.reshape(-1, *covariance.shape[len(lead) :]))
        notes: dict[Note, list[int]] = {}
        for k in range(len(per_member)):
            for note in raise_to_floor(per_member, k, floor, self.kind):
                notes.setdefault(note, []).append(k)
        for note, members in notes.items():
            warn(replace(note, members=tuple(members)) if self.members and not self.tied else note)
        return per_member.reshape(covariance.shape)

    def objective(self, stats: Stats, prior: AnyPrior | None = None) -> float:
        """EM objective: expected complete-data log-likelihood + entropy of the missing entries + log prior."""
        stats = self.statistics_in_kind(stats)
        value = float(np.sum(self._expected_log_prob(stats)))
        if isinstance(stats, Moments):
            value += float(stats.entropy.sum())
        if prior is not None:
            value += float(np.sum(self.prior_in_kind(prior).log_density(self)))
        return value

    def _expected_log_prob(self, stats: Any) -> Array:
        """Σ w E[log N(x | μ, Σ)] = −½ Σ [w (d log 2π + log det Σ + Δᵀ Σ⁻¹ Δ) + tr(Σ⁻¹ S)], Δ = mean − μ; per member."""
        if self.form.roots is None:
            expected = "objective needs a covariance that is not singular"
            raise DomainError(
                sentence("Gaussian", expected, "a singular one", "refit makes one, with a prior or without")
            )
        delta = stats.mean - self.mean
        if self.kind == "full":
            w = spd.inverse_factor(self.form.roots)
            w = w[0] if self.members is None else w
            trace = spd.trace_form(w, stats.scatter)
            distance = (np.einsum("...ij,...j->...i", w, delta) ** 2).sum(-1)
            logdet = self.form.logdet if self.members else self.form.logdet[0]
            return np.asarray(-0.5 * (stats.weight * (self.dim * LOG_2PI + logdet + distance) + trace))
        v = self.variance
        each = stats.weight * (LOG_2PI + np.log(v) + delta**2 / v) + stats.scatter / v
        return np.asarray(-0.5 * each.sum(axis=-1))

    def weak_prior(self, stats: Stats) -> Any:
        """Weakly informative conjugate prior: a few pseudo-observations, its covariance from the pooled data."""
        from likely.distributions.priors.weak_prior import weak_gaussian

        return weak_gaussian(self, stats)

    def __repr__(self) -> str:
        stack = f", {self.members} members{' with one covariance' if self.tied else ''}" if self.members else ""
        if self.mean.size > 8:
            return f"Gaussian({self.kind}, d={self.dim}{stack})"
        mean, covariance = six_digits(self.mean), six_digits(self.covariance)
        return f"Gaussian(mean={mean}, covariance={covariance}, kind={self.kind!r})"


def six_digits(a: Any) -> Any:
    """Numbers rounded to six significant digits, as nested lists, for a repr."""
    a = np.asarray(a, dtype=np.float64)
    return np.array([float(f"{v:.6g}") for v in a.ravel()]).reshape(a.shape).tolist()


def _stacked(parts: list[Any]) -> Any:
    """Statistics of members as those of one stack."""
    if isinstance(parts[0], Moments):
        return moments.stacked(parts)
    names = ("rows", "weight", "shift", "scatter")
    return ColumnMoments.trusted(
        origin=parts[0].origin, **{name: np.stack([getattr(p, name) for p in parts]) for name in names}
    )


def _rows_like(x: Any) -> Any:
    """Input whose rows can be sliced; lists become arrays."""
    return x if hasattr(x, "shape") else numbers(x, "Gaussian")
