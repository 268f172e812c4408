"""Weighted least squares from additive statistics: moments, R factors, or Gram matrices in double-double.

All three are statistics of the augmented rows z = (φ(x), y) of basis functions and targets, and determine the R factor
of their QR decomposition, from which coefficients, residuals and evidence follow. They differ in digits and cost:

- `Moments`: float64 scatter about the mean, in stacks, for EM; digits are lost with the squared condition number.
- `ScatterRoot`: the R factor itself, merged by QR; digits are lost with the condition number.
- `GramStats`: Gram matrix in double-double; nothing is lost up to a condition number of 10¹⁵.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from likely.core import declared
from likely.core.arrays import Array, Mask
from likely.core.errors import ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.scatter_qr import ScatterRoot
from likely.numerics import double_double
from likely.numerics.double_double import DoubleDouble

# a column depends on those before it if no more of its norm remains than rounding of each kind of statistics leaves
TOLERANCE = {"Moments": 1e-7, "ScatterRoot": 1e-13, "GramStats": 1e-14}


@dataclass(frozen=True, eq=False)
class GramStats(Addable, Value):
    """Gram matrix Σ w z zᵀ of rows z = (1, φ(x), y) as an unevaluated sum high + low.

    >>> a, b = (gram_of_rows(np.array(z), None) for z in ([[1.0, 2.0]], [[3.0, 1e9]]))
    >>> float((a + b).high[2, 2] - 1e18), float((a + b).low[2, 2]), float((a + b).weight)
    (0.0, 4.0, 2.0)
    """

    high: Annotated[Array, declared.numbers("D D")]
    low: Annotated[Array, declared.numbers("D D")]

    complete = True

    @property
    def weight(self) -> Array:
        """Sum of the weights."""
        return self.high[0, 0] + self.low[0, 0]

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.weight)

    @property
    def sums(self) -> DoubleDouble:
        """Both parts, as one number."""
        return DoubleDouble(self.high, self.low)

    @property
    def mean(self) -> Array:
        """Weighted mean of φ and y (D,)."""
        return (self.sums.at((0, slice(1, None))) / self.sums.at((0, 0))).value()

    def __add__(self, other: GramStats) -> GramStats:
        if self.high.shape != other.high.shape:
            expected = f"both must have {len(self.high) - 1} columns"
            raise ShapeError(sentence("GramStats", expected, len(other.high) - 1))
        high, low = self.sums + other.sums
        return GramStats.trusted(high=high, low=low)

    def __mul__(self, factor: float) -> GramStats:
        high, low = self.sums * double_double.exactly(factor)
        return GramStats.trusted(high=high, low=low)

    __rmul__ = __mul__


def gram_of_rows(z: Array, weight: Array | None) -> GramStats | None:
    """Statistics of complete rows z = (φ, y); None if an entry is NaN or infinite, or sums overflow."""
    with np.errstate(all="ignore"):
        high, low = double_double.gram(np.concatenate([np.ones((len(z), 1)), z], axis=1), weight)
    if not (np.isfinite(high).all() and np.isfinite(low).all()):
        return None
    return GramStats.trusted(high=high, low=low)


@dataclass(frozen=True, eq=False)
class RegressionStats(Addable, Value):
    """Sufficient statistics of a linear regression: rows in weight, and sums over augmented rows (φ(x), y).

    Where rows have known relative noise variances v, the sums weight each row by w/v, and `log_noise` is Σ w log v.
    """

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): Σ w of the rows whose targets were observed
    sums: Annotated[Any, declared.stats]  # Moments (also a stack), ScatterRoot or GramStats of M + m columns
    targets: Annotated[int, declared.positive]  # m
    log_noise: Annotated[Array, declared.numbers("*")]  # (...): Σ w log v, in nats

    @classmethod
    def of(cls, sums: Any, targets: int, rows: Any = None, log_noise: Any = None) -> RegressionStats:
        """Statistics of rows with equal noise, unless `rows` and `log_noise` are given."""
        rows = np.asarray(sums.weight if rows is None else rows, dtype=np.float64)
        log_noise = np.zeros(rows.shape) if log_noise is None else np.asarray(log_noise, dtype=np.float64)
        return cls.trusted(rows=rows, sums=sums, targets=targets, log_noise=log_noise)

    def as_complete(self) -> RegressionStats:
        """The same sums, with expectations of missing targets taken as observed."""
        return self if self.complete else self.replace(sums=self.sums.replace(complete=True))

    @property
    def complete(self) -> bool:
        """True if all targets of the rows were observed, so that one `refit` is final."""
        return bool(self.sums.complete)

    @property
    def filled(self) -> bool:
        """True if targets were filled by a model."""
        return not self.complete

    @property
    def total_weight(self) -> float:
        """Weight of the rows of all members."""
        return float(np.sum(self.rows))

    @property
    def entropy(self) -> Array:
        """Entropy of the targets that were filled in, in nats."""
        return getattr(self.sums, "entropy", np.zeros(()))

    def __add__(self, other: RegressionStats) -> RegressionStats:
        mixed = type(self.sums) is not type(other.sums)
        if mixed and isinstance(self.sums, Moments | ScatterRoot | GramStats):
            expected = f"both must be {type(self.sums).__name__}"
            raise ShapeError(sentence("RegressionStats", expected, type(other.sums).__name__))
        return self.replace(
            rows=self.rows + other.rows, sums=self.sums + other.sums, log_noise=self.log_noise + other.log_noise
        )

    def __mul__(self, factor: float) -> RegressionStats:
        return self.replace(rows=self.rows * factor, sums=self.sums * factor, log_noise=self.log_noise * factor)

    __rmul__ = __mul__

    def pooled(self) -> RegressionStats:
        """Statistics of the rows of all members together."""
        if self.rows.ndim == 0:
            return self
        return self.replace(
            rows=np.asarray(self.rows.sum()), sums=self.sums.pooled(), log_noise=np.asarray(self.log_noise.sum())
        )

    def member(self, k: Any) -> RegressionStats:
        """The statistics of one member of a stack, or of several."""
        return self.replace(rows=self.rows[k], sums=self.sums.member(k), log_noise=self.log_noise[k])

    def of_target(self, j: int) -> RegressionStats:
        """The statistics of one of several targets."""
        first = self.sums.mean.shape[-1] - self.targets
        at = np.append(np.arange(first), first + j)
        if isinstance(self.sums, GramStats):
            at = np.append(0, at + 1)
            sums: Any = self.sums.replace(high=self.sums.high[np.ix_(at, at)], low=self.sums.low[np.ix_(at, at)])
        elif isinstance(self.sums, ScatterRoot):
            parts = {name: getattr(self.sums, name)[..., at] for name in ("origin", "shift", "root")}
            sums = self.sums.replace(**parts)
        else:
            sums = self.sums.replace(
                origin=self.sums.origin[at], shift=self.sums.shift[..., at],
                scatter=self.sums.scatter[..., at[:, None], at], seen=None,
            )  # fmt: skip
        return self.replace(sums=sums, targets=1)

    @cached_property
    def root(self) -> Array:
        """R (..., D, D), upper triangular, with RᵀR = Σ w z zᵀ of z = (φ, y)."""
        return root_of(self.sums)

    @cached_property
    def regular_root(self) -> Array:
        """The same, where basis functions that depend on those before them leave nothing, not rounding."""
        if isinstance(self.sums, GramStats):
            return self.root
        R, (_, _, dependent) = self.root.copy(), self.solve()
        i = np.arange(dependent.shape[-1])
        R[..., i, i] = np.where(dependent, 0.0, R[..., i, i])
        return R

    @cached_property
    def target_scatter(self) -> Array:
        """Σ w (y − ȳ)² of each target about its mean (..., m)."""
        if isinstance(self.sums, GramStats):
            first, square = self.sums.sums.at(0), DoubleDouble(*(np.diagonal(p) for p in self.sums.sums))
            if not self.rows > 0:
                return np.zeros(self.targets)
            return np.maximum((square - first * first / first.at(0)).value()[-self.targets :], 0.0)
        if isinstance(self.sums, ScatterRoot):
            return np.asarray((self.sums.root[:, -self.targets :] ** 2).sum(axis=0))
        return np.diagonal(self.sums.scatter, axis1=-2, axis2=-1)[..., -self.targets :]

    def solve(self) -> LeastSquares:
        """Coefficients of least squares and their residual scatter."""
        return solve(self)


class LeastSquares(NamedTuple):
    """Solution of weighted least squares; leading axes are those of the statistics."""

    coefficients: Array  # (..., m, M)
    residual_scatter: Array  # (..., m, m): Σ w (y − W φ)(y − W φ)ᵀ
    dependent: Mask  # (..., M): columns that depend on those before them; the solution of minimum norm was taken


def root_of(sums: Any) -> Array:
    """R (..., D, D) of moments, of an R factor about the mean, or of a Gram matrix."""
    if isinstance(sums, GramStats):
        root = double_double.cholesky(_without_ones(sums), TOLERANCE["GramStats"])[0]
        return root.value()
    if isinstance(sums, ScatterRoot):
        scatter = sums.root
        filler = np.zeros((max(len(sums.shift) - len(scatter), 0), len(sums.shift)))
        scatter = np.concatenate([scatter, filler])
    else:
        scatter = _semidefinite_root(sums.scatter)
    mean = np.sqrt(sums.weight)[..., None, None] * sums.mean[..., None, :]
    return np.asarray(np.linalg.qr(np.concatenate([mean, scatter], axis=-2), mode="r"))


def _without_ones(sums: GramStats) -> DoubleDouble:
    return sums.sums.at((slice(1, None), slice(1, None)))


def _semidefinite_root(scatter: Array) -> Array:
    """U (..., d, d) with UᵀU = scatter: Cholesky factors, or through eigenvalues where one is singular."""
    scale = np.sqrt(np.diagonal(scatter, axis1=-2, axis2=-1))
    unit = np.where(scale > 0, scale, 1.0)
    correlation = scatter / unit[..., :, None] / unit[..., None, :]
    i = np.arange(scatter.shape[-1])
    correlation[..., i, i] = 1.0  # also of constant columns
    try:
        root = np.swapaxes(np.linalg.cholesky(correlation), -1, -2)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(correlation)
        root = np.sqrt(np.maximum(values, 0.0))[..., :, None] * np.swapaxes(vectors, -1, -2)
    return root * scale[..., None, :]


def solve(stats: RegressionStats) -> LeastSquares:
    """Least squares: R₁₁ W = R₁₂, the residual scatter R₂₂ᵀR₂₂, in double-double for a Gram matrix.

    Where columns depend on each other, W has minimum norm.
    """
    m = stats.targets
    tolerance = TOLERANCE[type(stats.sums).__name__]
    if isinstance(stats.sums, GramStats):
        return _solve_gram(stats.sums, m, tolerance)
    R, M = stats.root, stats.root.shape[-1] - m
    R11, R12 = R[..., :M, :M], R[..., :M, M:]
    norms = _norms(R11, stats.sums)
    dependent = np.abs(np.diagonal(R11, axis1=-2, axis2=-1)) <= tolerance * norms
    safe = R11 + np.where(dependent, np.where(norms > 0, norms, 1.0), 0.0)[..., None] * np.eye(M)
    W = np.swapaxes(np.linalg.solve(safe, R12), -1, -2)
    for at in map(tuple, np.argwhere(dependent.any(axis=-1))):
        W[at] = _minimum_norm(R11[at], R12[at], tolerance).T
    rest = R @ np.concatenate([-np.swapaxes(W, -1, -2), np.broadcast_to(np.eye(m), (*W.shape[:-2], m, m))], axis=-2)
    return LeastSquares(W, np.swapaxes(rest, -1, -2) @ rest, dependent)


def _norms(R11: Array, sums: Moments | ScatterRoot) -> Array:
    """Norms of the basis functions (..., M), of which rounding is a share: about the mean if the first is constant."""
    squares = R11**2
    about = squares[..., 1:, :].sum(axis=-2)
    about[..., 0] = squares[..., 0, 0]
    return np.sqrt(np.where(np.asarray(_first_is_constant(sums))[..., None], about, squares.sum(axis=-2)))


def _first_is_constant(sums: Moments | ScatterRoot) -> Any:
    """Whether the first basis function has no scatter about its mean (...)."""
    return (sums.scatter[..., 0, 0] if isinstance(sums, Moments) else (sums.root[:, 0] ** 2).sum()) == 0


def _solve_gram(sums: GramStats, m: int, tolerance: float) -> LeastSquares:
    root, dependent = double_double.cholesky(_without_ones(sums), tolerance)
    M = len(root.high) - m
    free = np.flatnonzero(~dependent[:M])
    R22 = root.value()[M:, M:]
    W = np.zeros((M, m))
    inner = root.at(np.ix_(free, free))
    W[free] = double_double.solve_upper(inner, root.at(np.ix_(free, np.arange(M, M + m)))).value()
    if len(free) < M:
        R = root.value()
        W = _minimum_norm(R[:M, :M], R[:M, M:], tolerance)
    return LeastSquares(W.T, R22.T @ R22, dependent[:M])


def inverse_gram(stats: RegressionStats) -> Array:
    """(ΦᵀΦ)⁻¹ (M, M), the covariance of the coefficients over the noise variance; the pseudo-inverse if singular."""
    M = stats.root.shape[-1] - stats.targets
    if isinstance(stats.sums, GramStats):
        G = _without_ones(stats.sums).at((slice(0, M), slice(0, M)))
        root, dependent = double_double.cholesky(G, TOLERANCE["GramStats"])
        if not dependent.any():
            inverse = double_double.solve_upper(root, double_double.exactly(np.eye(M)))
            return _square(inverse)
    R = stats.root[:M, :M]
    if stats.solve().dependent.any():
        half = _minimum_norm(R, np.eye(M), TOLERANCE[type(stats.sums).__name__])
    else:
        half = np.asarray(np.linalg.inv(R), dtype=np.float64)
    return np.asarray(half @ half.T)


def _square(a: DoubleDouble) -> Array:
    """A Aᵀ (M, M) of a matrix in double-double, in units of its rows; of low parts only the products with high ones."""
    size = np.abs(a.high).max(axis=1, keepdims=True)
    size = 2.0 ** np.round(np.log2(np.where(size > 0, size, 1.0)))
    high, low = a.high / size, a.low / size
    cross = high @ low.T
    total = double_double.gram(np.ascontiguousarray(high.T)) + double_double.exactly(cross + cross.T)
    return np.asarray(total.value() * size * size.T)


def _minimum_norm(R: Array, b: Array, tolerance: float) -> Array:
    """The solution (M, m) of R w = b with the smallest norm; the rank is that of R with columns of norm 1."""
    norms = np.sqrt((R**2).sum(axis=0))
    unit = np.where(norms > 0, norms, 1.0)
    U, s, Vt = np.linalg.svd(R / unit)
    rank = int((s > tolerance * max(len(R), 1) * s[0]).sum()) if len(s) and s[0] > 0 else 0
    w = (Vt[:rank].T @ ((U.T @ b)[:rank] / s[:rank, None])) / unit[:, None]
    null = Vt[rank:].T / unit[:, None]
    return np.asarray(w - null @ np.linalg.lstsq(null, w, rcond=None)[0] if null.size else w)


def condition_number(stats: RegressionStats, centered: bool = False) -> float:
    """Condition number of the design matrix with columns of norm 1; infinite if columns depend on each other.

    `centered`: of columns about their means, if the first is constant. Sums about the mean lose digits by that one.
    """
    M = stats.root.shape[-1] - stats.targets
    R = stats.root[:M, :M]
    if centered and not isinstance(stats.sums, GramStats) and _first_is_constant(stats.sums):
        R = R[1:, 1:]
    norms = np.sqrt((R**2).sum(axis=0))
    if not (norms > 0).all():
        return float("inf")
    s = np.linalg.svd(R / norms, compute_uv=False)
    if not len(s):
        return 1.0
    return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")
