"""Principal component analysis: principal axes, explained variances and reconstruction error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, BadEntry, numbers, parameter, refuse_infinite, rows
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.distributions.gaussian.factor_fits import leading
from likely.distributions.gaussian.moments import Moments
from likely.distributions.gaussian.scatter_qr import ScatterRoot
from likely.numerics.eigenvectors import canonical_basis

CONSTANT = 1e-14  # share of a column's size: a smaller standard deviation is rounding error of a constant
SQUARED = 1e-13  # share of the largest variance below which eigenvalues of a scatter or Gram matrix are rounding
ROOTED = 1e-26  # the same for squared singular values of a square root of the scatter


@dataclass(frozen=True, eq=False)
class PrincipalSubspace(Value):
    """Principal subspace of principal component analysis (PCA): coordinates y = A (x − μ) along q principal axes.

    The axes are eigenvectors of the covariance about the mean (scatter over weight: divided by n), in order of
    descending variance; the entry of largest absolute value in each is positive. Among all linear maps to q numbers and
    back this one has the least mean squared error, the sum of the remaining variances (Karhunen–Loève transform).

    Parameters
    ----------
    mean : array-like (d,)
        The mean μ.
    axes : array-like (q, d)
        The axes A: orthonormal rows.
    variances : array-like (q,)
        Variance along each axis, descending.
    rest : float, default 0.0
        Variance in all other directions together.

    See Also
    --------
    PCA : The estimator.

    References
    ----------
    Bishop (2006), chapter 12; Herbst and du Preez, lecture notes, 6.1; Ney, lecture notes, 8.2.2.

    Examples
    --------
    >>> p = PrincipalSubspace([1.0, 1.0], [[0.8, 0.6]], [4.0], 1.0)
    >>> p.project([[1.8, 1.6]]), p.reconstruct([[1.8, 1.6]]), p.relative_error()
    (array([[1.]]), array([[1.8, 1.6]]), 0.2)
    """

    mean: Annotated[Array, declared.numbers("d")]  # (d,)
    axes: Annotated[Array, declared.numbers("q d")]  # (q, d), orthonormal rows
    variances: Annotated[Array, declared.numbers("q", 0)]  # (q,), descending
    rest: Annotated[Array, declared.numbers("", 0)] = 0.0  # type: ignore[assignment]  # (): variance in all other directions together

    def __post_init__(self) -> None:
        me = "PrincipalSubspace"
        mean = np.atleast_1d(parameter(self.mean, me, "mean"))
        axes, variances = parameter(self.axes, me, "axes"), parameter(self.variances, me, "variances")
        rest = parameter(self.rest, me, "rest")
        q = len(variances) if variances.ndim == 1 else -1
        if mean.ndim != 1 or axes.shape != (q, len(mean)) or rest.shape != ():
            shapes = (mean.shape, axes.shape, variances.shape)
            raise ShapeError(sentence(me, "mean (d,), axes (q, d) and variances (q,) are needed", shapes))
        if (variances < 0).any() or rest < 0 or (np.diff(variances) > 0).any():
            raise DomainError(sentence(me, "variances must be descending and not negative", variances.tolist()))
        if not np.allclose(axes @ axes.T, np.eye(q), atol=1e-8):
            raise DomainError(sentence(me, "axes must be orthonormal rows", remedy="orthogonalize them by QR"))
        self._set(mean=mean, axes=axes, variances=variances, rest=rest)

    @classmethod
    def of(cls, stats: Moments | ScatterRoot, components: int | float | None = None) -> PrincipalSubspace:
        """Principal axes from the sufficient statistics of rows.

        Parameters
        ----------
        stats : Moments or ScatterRoot
            Sufficient statistics.
        components : int or float, optional
            Number of axes, or (below 1) the proportion of variance that they must explain; None keeps all
            directions whose variance exceeds rounding.
        """
        return axes_of(stats, spectrum(stats, components), components)

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return len(self.mean)

    @property
    def total(self) -> float:
        """Total variance: the trace of the covariance."""
        return float(self.variances.sum() + self.rest)

    @property
    def shares(self) -> Array:
        """Explained variance ratio of each axis (q,)."""
        return self.variances / self.total if self.total > 0 else np.zeros_like(self.variances)

    def relative_error(self, components: int | None = None) -> float:
        """Proportion of the variance that the first axes do not explain.

        Parameters
        ----------
        components : int, optional
            Number of axes; all if None.

        Returns
        -------
        float
            Between 0 and 1.
        """
        q = len(self.variances) if components is None else int(components)
        if not 0 <= q <= len(self.variances):
            expected = f"components must lie in 0 … {len(self.variances)}"
            raise DomainError(sentence("PrincipalSubspace.relative_error", expected, components))
        return float((self.variances[q:].sum() + self.rest) / self.total) if self.total > 0 else 0.0

    def project(self, x: ArrayLike) -> Array:
        """Coordinates y = A (x − μ) along the axes.

        Returns
        -------
        ndarray (n, q)
            The coordinates.
        """
        x = x if hasattr(x, "shape") else numbers(x, "PrincipalSubspace")
        return map_rows(self._project, x, len(self.axes))

    def _project(self, block: Any) -> Array:
        x = rows(block, self.dim, "PrincipalSubspace")
        out = (x - self.mean) @ self.axes.T
        if not np.isfinite(out).all() or not len(self.axes):
            refuse_infinite(x, "PrincipalSubspace")
            refuse_missing_values(x, "PrincipalSubspace")
        return out

    def whiten(self, x: ArrayLike) -> Array:
        """Coordinates along the axes in units of their standard deviations: uncorrelated, variance 1.

        Returns
        -------
        ndarray (n, q)
            The whitened coordinates.
        """
        return self.project(x) / self._deviations

    @property
    def _deviations(self) -> Array:
        if not (self.variances > SQUARED**2 * self.total).all():
            q = int((self.variances > SQUARED**2 * self.total).sum())
            expected, remedy = "whitening needs a positive variance along every axis", f"keep {q} of them"
            raise DomainError(sentence("PrincipalSubspace", expected, f"{len(self.variances) - q} constant", remedy))
        return np.sqrt(self.variances)

    def restore(self, y: ArrayLike, white: bool = False) -> Array:
        """Reconstruct rows from coordinates: μ + Aᵀ y.

        Parameters
        ----------
        y : array-like (n, q)
            Coordinates.
        white : bool, default False
            The coordinates are whitened, and rescaled first.

        Returns
        -------
        ndarray (n, d)
            Rows.
        """
        y = rows(y, len(self.axes), "PrincipalSubspace")
        return np.asarray(self.mean + (y * self._deviations if white else y) @ self.axes)

    def reconstruct(self, x: ArrayLike) -> Array:
        """Projection of each row onto the principal subspace: μ + AᵀA (x − μ).

        Returns
        -------
        ndarray (n, d)
            The projected rows.
        """
        return self.restore(self.project(x))


class Spectrum(NamedTuple):
    """Eigenvalues of the scatter, descending, with eigenvectors as columns (d, k), and the trace."""

    values: Array
    vectors: Array
    total: float
    trust: float  # share of the largest eigenvalue below which others are rounding

    def sees(self, k: int) -> bool:
        """True if the k-th largest eigenvalue exceeds rounding."""
        return k == 0 or self.values[k - 1] > self.trust * self.values[0]


def spectrum(stats: Moments | ScatterRoot, components: Any = None, gram: bool = False) -> Spectrum:
    """Eigenvalues and eigenvectors of the scatter; only as many as requested where the number is given.

    Of a root: by its singular values, or with `gram` by the Gram matrix R Rᵀ of fewer rows than columns.
    """
    if not stats.total_weight > 0:
        raise DataError(sentence("PrincipalSubspace", "at least one row with weight is needed", "none"))
    if isinstance(stats, Moments):
        return _of_scatter(np.asarray(stats.scatter), components)
    return _of_gram(stats.root, components) if gram else _of_root(stats.root)


def _of_scatter(scatter: Array, components: Any) -> Spectrum:
    total, d = float(np.trace(scatter)), len(scatter)
    unit = total if total > 0 else 1.0
    values, vectors = leading(scatter / unit, _counted(components, d))
    return Spectrum(np.maximum(values, 0.0) * unit, vectors, total, SQUARED)


def _of_root(root: Array) -> Spectrum:
    unit = float(np.abs(root).max(initial=0.0)) or 1.0
    _, values, axes = np.linalg.svd(root / unit, full_matrices=False)
    squares = (values * unit) ** 2
    return Spectrum(squares, canonical_basis(squares, axes.T, ROOTED), float(squares.sum()), ROOTED)


def _of_gram(root: Array, components: Any) -> Spectrum:
    unit = float(np.abs(root).max(initial=0.0)) or 1.0
    small = root / unit
    values, left = leading(small @ small.T, _counted(components, len(root)))
    values = np.maximum(values, 0.0)
    vectors = small.T @ (left / np.sqrt(np.where(values > 0, values, 1.0)))
    reliable = int((values > SQUARED * values.max(initial=0.0)).sum())  # smaller ones give no reliable eigenvector
    vectors = np.concatenate(
        [canonical_basis(values[:reliable], vectors[:, :reliable], SQUARED), vectors[:, reliable:]], axis=1
    )
    return Spectrum(values * unit**2, vectors, float((root**2).sum()), SQUARED)


def dependent(stats: Moments) -> tuple[int, Array]:
    """Numerical rank of the standardized scatter, and a basis of its null space (d, m).

    A null direction is a linear combination of columns with variance next to 0: a sum of other columns, or a copy.
    Constant columns are excluded. Standardized columns are compared, so that units do not matter.

    >>> from likely.distributions.gaussian.moments import of_rows
    >>> x = np.array([[1.0, 1e-9, 1.0, 7.0], [2.0, 3e-9, 2.0, 7.0], [3.0, 1e-9, 3.0, 7.0], [9.0, 0.0, 9.0, 7.0]])
    >>> rank, nothing = dependent(of_rows(x, None, x[0]))
    >>> rank, nothing.shape, bool(np.ptp(x @ nothing) < 1e-14)
    (2, (4, 1), True)
    """
    variance, size = stats.variance, np.abs(stats.mean)
    at = np.flatnonzero(variance > (CONSTANT * size) ** 2)
    unit = np.sqrt(np.diagonal(stats.scatter)[at])
    values, vectors = np.linalg.eigh(stats.scatter[np.ix_(at, at)] / unit[:, None] / unit)
    flat = values <= SQUARED * values.max(initial=0.0)
    out = np.zeros((len(variance), int(flat.sum())))
    out[at] = vectors[:, flat] / unit[:, None] * np.sqrt(stats.total_weight)
    return len(at) - out.shape[1], out


def gram_loses_rank(root: Array) -> bool:
    """True if rows (n, d) have a direction that their Gram matrix (n, n) loses in rounding.

    >>> gram_loses_rank(np.diag([1.0, 1e-9])), gram_loses_rank(np.array([[1.0, 0.0, 2.0]] * 2))
    (True, False)
    """
    small = root / (float(np.abs(root).max(initial=0.0)) or 1.0)
    values, left = np.linalg.eigh(small @ small.T)
    left_over = left[:, values <= SQUARED * values[-1]].T @ small
    return bool((np.einsum("md,md->m", left_over, left_over) > ROOTED * values[-1]).any())


def _counted(components: Any, most: int) -> int:
    return min(int(components), most) if isinstance(components, int | np.integer) else most


def axes_of(stats: Moments | ScatterRoot, found: Spectrum, components: Any) -> PrincipalSubspace:
    """The requested principal axes of a spectrum."""
    n, q = stats.total_weight, number(found, components)
    rest = max(found.total - float(found.values[:q].sum()), 0.0)
    rest = rest if rest > 1e-15 * found.total * len(found.vectors) else 0.0
    return PrincipalSubspace.trusted(
        mean=stats.mean, axes=np.ascontiguousarray(found.vectors[:, :q].T), variances=found.values[:q] / n,
        rest=np.asarray(rest / n),
    )  # fmt: skip


def number(found: Spectrum, components: Any) -> int:
    """Number of axes: as given, the fewest that explain a proportion of the variance, or all above rounding."""
    if components is None:
        top = float(found.values[0]) if len(found.values) else 0.0
        return max(int((found.values > found.trust * top).sum()), 1)
    if isinstance(components, int | np.integer):
        if not 0 <= components <= len(found.values):
            expected = f"components must lie in 0 … {len(found.values)}, the smaller of rows and columns"
            raise DomainError(sentence("PrincipalSubspace", expected, components))
        return int(components)
    if not 0 < components < 1:
        raise DomainError(sentence("PrincipalSubspace", "a share of the variance must lie between 0 and 1", components))
    held = np.cumsum(found.values)
    return min(int(np.searchsorted(held, components * found.total * (1 - 1e-14))) + 1, len(held))


def refuse_missing_values(x: Array, whose: str, remedy: str = "use PPCA, which integrates missing entries out") -> None:
    """Raise for missing values, naming row and column: principal axes need complete rows."""
    bad = np.argwhere(np.isnan(x))
    if len(bad):
        i, j = bad[0]
        raise BadEntry(whose, "every entry must be observed", "NaN", int(i), int(j), remedy)
