"""Multivariate Student-t distribution: density, sampling, moments, CDF, marginals and conditionals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln, digamma

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter, refuse_infinite, rows, sliceable
from likely.core.engine import map_rows
from likely.core.errors import DomainError, LikelyError, ShapeError, sentence
from likely.distributions.distribution import in_units, lone
from likely.distributions.gaussian.covariance_types import (
    KINDS,
    CovarianceKind,
    check_covariance,
    covariance_and_kind,
    covariance_score,
    whitened,
)
from likely.distributions.gaussian.gaussian import Gaussian, six_digits
from likely.distributions.gaussian.mahalanobis import Quadratic
from likely.distributions.statistics.counts import one_column
from likely.distributions.student_t.student_t_em import ScaleKind, StudentTEM
from likely.numerics.special import LOG_2PI, gamma_excess, log_minus_digamma

LARGE_DOF = 1e5  # from here on differences of digammas are a series


@dataclass(frozen=True, eq=False, repr=False, init=False)
class StudentT(StudentTEM):
    """Multivariate Student-t distribution with location μ, scale matrix S and ν degrees of freedom.

    log p(x) = log Γ((ν+d)/2)/Γ(ν/2) − d/2 log πν − ½ log det S − (ν+d)/2 log(1 + q/ν), q = (x − μ)ᵀ S⁻¹ (x − μ).

    The exponent is −(ν + d)/2, not the −(ν + 1)/2 of the notes. NaN entries of x are integrated out: marginals are t
    distributions with the same dof. `StudentT.fit(X)` estimates all parameters, `StudentT.fit(X, dof=4.0)` keeps the
    dof.

    Parameters
    ----------
    mean : array-like (d,) or (K, d)
        Location μ: the mean, where dof > 1.
    scale : float or array-like, default 1.0
        Scale matrix S (squared scales), in the shapes of a Gaussian's covariance; (d,) or (K, d) if "independent".
    dof : float or array-like
        Degrees of freedom ν: a number or (K,); (d,) or (K, d) if "independent".
    kind : {"full", "diagonal", "spherical", "independent"}, optional
        Kind of scale; "independent" is one univariate t distribution per column.
    center : array-like, optional
        Another name for `mean`.
    fixed_dof : bool, default False
        The degrees of freedom are not estimated.

    See Also
    --------
    Gaussian : Infinite degrees of freedom.
    StudentTDensity : The estimator.

    References
    ----------
    Bishop (2006), chapter 2; Ney, lecture notes, 1.5.

    Examples
    --------
    >>> StudentT([0.0, 1.0], [1.0, 4.0], 3.0).log_prob([[0.0, 1.0], [9.0, np.nan]]).round(4)
    array([-2.531 , -7.6653])
    """

    center: Annotated[Array, declared.numbers("* d")]  # (d,) or (K, d): the mean, where dof > 1
    scale: Array  # as a Gaussian's covariance; (d,) or (K, d) if independent
    dof: Annotated[Array, declared.numbers("* | * d", 0)]  # () or (K,); (d,) or (K, d) if independent
    kind: ScaleKind
    fixed_dof: bool = False  # dof is not estimated

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that a scale is stored in the shape of its kind."""
        return declared.shape_as_kind(fields, "center", "scale")

    def __init__(
        self, mean: ArrayLike | None = None, scale: ArrayLike = 1.0, dof: ArrayLike | None = None,
        kind: ScaleKind | None = None, *, center: ArrayLike | None = None, fixed_dof: bool = False,
    ) -> None:  # fmt: skip
        """`mean` and `center` are the same parameter; model files use `center`."""
        parts = {"mean": mean if center is None else center, "scale": scale, "dof": dof}
        if missing := [name for name, part in parts.items() if part is None]:
            raise DomainError(sentence("StudentT", f"{' and '.join(missing)} must be given"))
        mean, scale, dof = (parameter(part, "StudentT", name) for name, part in parts.items())
        self._set(center=np.atleast_1d(mean), scale=scale, dof=dof, kind=kind, fixed_dof=bool(fixed_dof))
        self.__post_init__()

    def __post_init__(self) -> None:
        mean, scale, dof = self.center, self.scale, self.dof
        if mean.ndim > 2 or 0 in mean.shape:
            raise ShapeError(sentence("StudentT", "mean must have shape (d,) or (K, d)", mean.shape))
        if not (dof > 0).all():
            raise DomainError(sentence("StudentT", "dof must be positive", float(dof.min())))
        if self.kind == "independent":
            scale, kind = _broadcast(scale, mean.shape, "scale"), "independent"
            if not (scale > 0).all():
                raise DomainError(sentence("StudentT", "squared scales must be positive", float(scale.min())))
        else:
            scale, kind = _scale_and_kind(mean, scale, self.kind)
        dof = _broadcast(dof, mean.shape if kind == "independent" else mean.shape[:-1], "dof")
        self._set(scale=scale, dof=dof, kind=kind)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.center.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.center) if self.center.ndim == 2 else None

    @property
    def tied(self) -> bool:
        """True for a stack with one scale for all members."""
        return self.kind != "independent" and self._shape.tied

    @cached_property
    def _shape(self) -> Gaussian:
        """The Gaussian with the same location and scale matrix: the limit ν → ∞."""
        kind = "diagonal" if self.kind == "independent" else self.kind
        return Gaussian.trusted(mean=self.center, covariance=self.scale, kind=kind)

    def member(self, k: int) -> StudentT:
        """One member of a stack."""
        scale = self.scale if self.tied else self.scale[k]
        return self.replace(center=self.center[k].copy(), scale=np.array(scale), dof=np.array(self.dof[k]))

    def take(self, index: Any) -> StudentT:
        """Members `index` as a stack."""
        scale = self.scale if self.tied else self.scale[index]
        return self.replace(center=self.center[index], scale=np.array(scale), dof=self.dof[index])

    # ---------------------------------------------------------------- density

    @staticmethod
    def _parameter_score(x: Array, center: Array, scale: Array, dof: Array) -> tuple[Array, ...]:
        """∂ log p by center, factor of the scale and log ν: one ν for all columns, or one per column."""
        z, v = whitened(x, center, scale)
        d, q = (1, z * z) if dof.ndim else (x.shape[1], (z * z).sum(axis=1, keepdims=True))
        weight = (dof + d) / (dof + q)
        log_dof = 0.5 * dof * (_digamma_difference(dof, d) - np.log1p(q / dof) + weight * q / dof)
        return weight * v, covariance_score(z, v, scale, weight), log_dof

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows. NaN entries are missing values."""
        x = sliceable(x, self.dim)

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "StudentT")
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, "StudentT"), "StudentT")
            out = self._by_column(z) if self.kind == "independent" else self._joint(z)
            return out if self.members else out[:, 0]

        return map_rows(evaluate, x, self.members)

    def _by_column(self, x: Array) -> Array:
        """Sum of the columns' univariate log-densities (n, K)."""
        out = []
        for m, s, v in zip(*(np.atleast_2d(a) for a in (self.center, self.scale, self.dof)), strict=True):
            with np.errstate(over="ignore", divide="ignore"):
                z = np.abs(x - m) / np.sqrt(s)
                logs = _log_constant(v, 1.0, np.log(s)) - 0.5 * _log_kernel(z * z, v, 1.0, 2 * np.log(z))
            out.append(np.where(np.isnan(x), 0.0, logs).sum(axis=1))
        return np.stack(out, axis=1)

    def _joint(self, x: Array) -> Array:
        """Joint log-density (n, K); marginal over the observed columns for rows with missing entries."""
        form, v = self._shape.form, np.atleast_1d(self.dof)
        q = np.maximum(form.complete(x, 1.0, np.zeros(len(form.mean)), self._natural), 0.0)
        incomplete = np.flatnonzero(np.isnan(q[:, 0]))
        out = self._log_constants - 0.5 * _log_kernel(q, v, form.rank)
        if len(incomplete):
            q[incomplete], logdet, o = form.incomplete(x[incomplete])
            o = o if o.ndim == 2 else o[:, None]
            out[incomplete] = _log_constant(v, o, logdet) - 0.5 * _log_kernel(q[incomplete], v, o)
        if np.isinf(q).any() and form.roots is not None:
            self._overflowed(x, q, out)
        return out

    @cached_property
    def _natural(self) -> Array | None:
        form = self._shape.form
        return form.natural(1.0, np.zeros(len(form.mean))) if form.reach > 0 else None

    @cached_property
    def _log_constants(self) -> Array:
        return _log_constant(np.atleast_1d(self.dof), self._shape.form.rank, self._shape.form.logdet)

    def _overflowed(self, x: Array, q: Array, out: Array) -> None:
        """Write the log-density of rows whose q overflows while log p is finite: log q from length and direction."""
        form = self._shape.form
        for k, v in enumerate(np.atleast_1d(self.dof)):
            far = np.flatnonzero(np.isinf(q[:, k]))
            if not len(far):
                continue
            z = 0.5 * x[far] - 0.5 * form.mean[k]  # halves: the difference must not overflow
            length = np.nanmax(np.abs(z), axis=1, initial=0.0)
            scale = form.covariance[[k if len(form.covariance) > 1 else 0]]
            direction = Quadratic(np.zeros((1, self.dim)), scale, "StudentT")
            part, logdet, o = direction.incomplete(z / length[:, None])
            log_q = np.log(part[:, 0]) + 2 * np.log(length) + np.log(4.0)
            out[far, k] = _log_constant(v, o, logdet[:, 0]) - 0.5 * _log_kernel(np.full(len(far), np.inf), v, o, log_q)

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, d), or (n, K, d) for a stack: Gaussian / √(gamma variate of mean 1) (scale mixture)."""
        noise = self._shape.replace(mean=np.zeros_like(self.center)).sample(n, rng)
        half = 0.5 * self.dof
        precision = np.maximum(rng.standard_gamma(half, (n, *half.shape)) / half, 1e-200)
        return self.center + noise / np.sqrt(precision if self.kind == "independent" else precision[..., None])

    # ---------------------------------------------------------------- moments

    @property
    def mode(self) -> Array:
        """Mode: the center."""
        return self.center

    @property
    def mean(self) -> Array:
        """Mean: the center; it exists for dof above 1."""
        self._exists("mean", 1.0)
        return self.center

    @property
    def covariance(self) -> Array:
        """Covariance ν/(ν − 2) S, in the shape of its kind; it exists for dof above 2."""
        self._exists("covariance", 2.0)
        factor = self.dof / (self.dof - 2)
        axes = 0 if self.kind == "independent" else KINDS[::-1].index(self.kind)
        return factor.reshape(factor.shape + (1,) * axes) * self.scale

    @property
    def median(self) -> Array:
        """Median per column: the center."""
        return self.center

    @property
    def variance(self) -> Array:
        """Variance per column, in the shape of the center; it exists for dof above 2."""
        self._exists("variance", 2.0)
        factor = self.dof / (self.dof - 2)
        return (factor if self.kind == "independent" else factor[..., None]) * self._shape.variance

    def _exists(self, what: str, above: float) -> None:
        if not (self.dof > above).all():
            expected = f"the {what} exists for dof above {above:g}"
            raise DomainError(sentence("StudentT", expected, float(self.dof.min()), "use mode, or quantile"))

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy −log p(μ) + (ν+d)/2 [ψ((ν+d)/2) − ψ(ν/2)]; one per member for a stack."""
        if self.kind == "independent":
            h = _entropy(self.dof, 1.0, np.log(self.scale)).sum(axis=-1)
        else:
            form = self._shape.form
            h = _entropy(np.atleast_1d(self.dof), form.rank, form.logdet)
            h = h if self.members else h[0]
        return in_units(lone(h), bits)

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution function P(X ≤ x) in one dimension."""
        center, deviation, dof = self._one_column()
        return _cdf((one_column(x, self.members) - center) / deviation, dof)

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF) in one dimension; for a stack, (n, K)."""
        center, deviation, dof = self._one_column()
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(center + deviation * _quantile(p[..., None] if self.members else p, dof))

    def _one_column(self) -> tuple[Any, Any, Any]:
        if self.dim != 1:
            expected = "cdf and quantile are defined for one column"
            raise DomainError(sentence("StudentT", expected, f"{self.dim} columns", "take marginal([j]) first"))
        dof = self.dof[..., 0] if self.kind == "independent" else self.dof
        return self.center[..., 0], np.sqrt(self._shape.variance[..., 0]), dof

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: centers, scales and degrees of freedom, unless these are fixed."""
        return self._shape.n_parameters + (0 if self.fixed_dof else int(self.dof.size))

    # ---------------------------------------------------------------- algebra

    def marginal(self, columns: Sequence[int]) -> StudentT:
        """Marginal distribution of `columns`: the corresponding entries of μ and S, the same dof.

        >>> StudentT([1.0, 2.0, 3.0], [1.0, 4.0, 9.0], 5.0).marginal([2])
        StudentT([3.0], scale=[9.0], dof=5.0, kind='diagonal')
        """
        with _own_name():
            part = self._shape.marginal(columns)
            dof = self.dof[..., self._shape._columns(columns)] if self.kind == "independent" else self.dof
        return self.replace(center=part.mean, scale=part.covariance, dof=np.array(dof))

    def condition(self, values: Mapping[int, Any]) -> StudentT:
        """Conditional distribution of the other columns given the values of o columns.

        Center and S as for a Gaussian, S times (ν + q)/(ν + o) with q the squared distance of the given values, and
        ν + o degrees of freedom: given outliers increase the scale. Vectors of n values give a stack of n members.

        Examples
        --------
        >>> t = StudentT([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 4.0).condition({1: 3.0})
        >>> t.mean.round(3).tolist(), t.scale.round(3).tolist(), t.dof.tolist()
        ([2.4], [[0.936]], 5.0)
        """
        with _own_name():
            part = self._shape.condition(values)
            known = self._shape.marginal(list(values))
        if self.kind == "independent":
            return self._others(list(values), part)
        given = np.stack(np.broadcast_arrays(*[np.asarray(v, dtype=np.float64) for v in values.values()]), axis=-1)
        q = known.squared_distance(np.atleast_2d(given))
        if self.members:
            q = np.diagonal(q) if given.ndim == 2 else q[0]
        elif given.ndim == 1:
            q = q[0]
        o = known.form.rank if self.members else known.form.rank[0]
        factor = np.asarray((self.dof + q) / (self.dof + o))
        dof = np.array(np.broadcast_to(self.dof + o, factor.shape))
        return self.replace(center=part.mean, scale=factor[..., None, None] * part.covariance, dof=dof, kind="full")

    def _others(self, known: Sequence[int], part: Gaussian) -> StudentT:
        """Conditional distribution of independent columns: their marginal."""
        left = np.setdiff1d(np.arange(self.dim), self._shape._columns(known))
        scale, dof = (np.broadcast_to(a[..., left], part.mean.shape).copy() for a in (self.scale, self.dof))
        return self.replace(center=part.mean, scale=scale, dof=dof)

    def __repr__(self) -> str:
        if self.center.size > 8:
            return f"StudentT({self.kind}, d={self.dim}{f', {self.members} members' if self.members else ''})"
        numbers = {"scale": self.scale, "dof": self.dof}
        parts = ", ".join(f"{name}={six_digits(part)}" for name, part in numbers.items())
        return f"StudentT({six_digits(self.center)}, {parts}, kind={self.kind!r})"


def _log_constant(v: Any, o: Any, logdet: Any) -> Array:
    """Log density at the center in o dimensions: that of the Gaussian, plus a term in ν that goes to 0 as ν grows."""
    return np.asarray(gamma_excess(0.5 * v, 0.5 * o) - 0.5 * (o * LOG_2PI + logdet))


def _log_kernel(q: Array, v: Any, o: Any, log_q: Array | None = None) -> Array:
    """(ν + o) log(1 + q/ν), also where q overflows or q/ν underflows."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        t = q / v
        out = np.where(t < 1e-200, (1 + o / v) * q, (v + o) * np.log1p(t))
        if np.isinf(t).any():
            out = np.where(np.isinf(t), (v + o) * ((np.log(q) if log_q is None else log_q) - np.log(v)), out)
    return np.asarray(out)


def _entropy(v: Array, o: Any, logdet: Any) -> Array:
    """Entropy, with ψ(a + o/2) − ψ(a) as a logarithm and two small differences: accurate also for ν = 10³⁰⁰."""
    a, b = 0.5 * v, 0.5 * (v + o)
    return np.asarray(b * (np.log1p(o / v) + log_minus_digamma(a) - log_minus_digamma(b)) - _log_constant(v, o, logdet))


FAR = 1e60  # squared distance over ν from which the tail equals a power law up to rounding
NORMAL = 1e20  # degrees of freedom from which the CDF equals the Gaussian's up to rounding


def _cdf(z: Any, v: Any) -> Array:
    """CDF P(T ≤ z), from the tail beyond |z|: ½ I_x(ν/2, ½) with x = 1/(1 + z²/ν), in the form accurate there."""
    z, v = np.broadcast_arrays(z, np.minimum(v, NORMAL))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        u = (z / np.sqrt(v)) ** 2
        middle = betainc(0.5, 0.5 * v, u / (1 + u))
        outside = np.where(u < 1, betaincc(0.5, 0.5 * v, u / (1 + u)), betainc(0.5 * v, 0.5, 1 / (1 + u)))
        # beyond 1, u / (1 + u) loses digits near 1: only the tail itself is accurate there
        tail = 0.5 * np.where((middle < 0.5) & (u < 1), 1 - middle, outside)
        power = np.exp(0.5 * v * (np.log(v) - 2 * np.log(np.abs(z))) - _log_tail(v))
    tail = np.where(u > FAR, power, tail)
    return np.asarray(np.where(z < 0, tail, 1 - tail))


def _quantile(p: Any, v: Any) -> Array:
    """Quantile z with P(T ≤ z) = p, from the tail that p lies in: the inverse of the three forms of `_cdf`."""
    p, v = np.broadcast_arrays(p, np.minimum(v, NORMAL))
    tail = np.minimum(p, 1 - p)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        y = np.where(tail < 0.25, betainccinv(0.5, 0.5 * v, 2 * tail), betaincinv(0.5, 0.5 * v, 1 - 2 * tail))
        x = betaincinv(0.5 * v, 0.5, 2 * tail)
        size = np.sqrt(np.where(y < 0.5, v * y / (1 - y), v * (1 - x) / x))
        log_x = 2 / v * (np.log(tail) + _log_tail(v))
        size = np.where(log_x < -np.log(FAR), np.exp(0.5 * (np.log(v) - log_x)), size)
    return np.asarray(np.where((p >= 0) & (p <= 1), np.where(p < 0.5, -size, size), np.nan))


def _log_tail(v: Array) -> Array:
    """log ν B(ν/2, ½) of the tail asymptotics P(T ≤ −z) = (ν/z²)^{ν/2} / ν B(ν/2, ½)."""
    return np.asarray(np.log(v) + betaln(0.5 * v, 0.5))


def _scale_and_kind(mean: Array, scale: Array, kind: CovarianceKind | None) -> tuple[Array, CovarianceKind]:
    """Validated scale in the shape of its kind, and the kind."""
    if kind is not None:
        check_option(kind, ScaleKind, "StudentT", "kind")
    with _own_name():
        scale, kind = covariance_and_kind(mean, scale, kind)
        check_covariance(scale, kind)
    return scale, kind


@contextmanager
def _own_name() -> Iterator[None]:
    """Rephrase errors of the Gaussian for a StudentT and its scale."""
    try:
        yield
    except LikelyError as error:
        text = str(error).replace("Gaussian", "StudentT").replace("covariance", "scale")
        raise type(error)(text) from None


def _broadcast(a: Array, shape: tuple[int, ...], name: str) -> Array:
    try:
        return np.array(np.broadcast_to(a, shape))
    except ValueError:
        raise ShapeError(sentence("StudentT", f"{name} must be a number or have shape {shape}", a.shape)) from None


def _digamma_difference(dof: Array, d: int) -> Array:
    """ψ((ν + d)/2) − ψ(ν/2) − d/ν; a series for large ν, where the difference would lose all digits."""
    if (dof < LARGE_DOF).all():
        return np.asarray(digamma(0.5 * (dof + d)) - digamma(0.5 * dof) - d / dof)
    e = d / dof
    far = e * e * (e / 3 - 0.5) + d / (dof * (dof + d)) + (1 / dof**2 - 1 / (dof + d) ** 2) / 3
    return np.where(dof < LARGE_DOF, digamma(0.5 * (dof + d)) - digamma(0.5 * dof) - d / dof, far)
