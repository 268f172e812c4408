"""Operations under which Gaussians are closed: marginal, conditional, affine map, sum, product, posterior.

Formulas: Bishop 2.3; Herbst 2.3–2.4, Crowley "Linear transforms", Worksheet 6 (see the errata). For a stack, each
operation is applied per member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.distributions.distribution import Distribution
from likely.numerics import spd

if TYPE_CHECKING:
    from likely.distributions.gaussian.gaussian import Gaussian


class Algebra(Distribution):
    """Marginals, conditionals, affine maps, sums, products and posteriors of a Gaussian."""

    mean: Array
    covariance: Array
    kind: str

    if TYPE_CHECKING:  # defined by Gaussian

        @property
        def dim(self) -> int: ...
        @property
        def covariance_matrix(self) -> Array: ...

    def marginal(self, columns: Sequence[int]) -> Gaussian:
        """Marginal distribution of `columns`: the corresponding entries of μ and Σ.

        >>> import likely as lk
        >>> lk.Gaussian([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]).marginal([2, 0])
        Gaussian(mean=[3.0, 1.0], covariance=[9.0, 1.0], kind='diagonal')
        """
        at = self._columns(columns)
        covariance = self.covariance
        if self.kind == "full":
            covariance = covariance[..., at[:, None], at]
        elif self.kind == "diagonal":
            covariance = covariance[..., at]
        return _gaussian(self.mean[..., at], covariance, self.kind)

    def condition(self, values: Mapping[int, Any]) -> Gaussian:
        """Conditional distribution of the other columns given values of some.

        Mean μ_a + Σ_ab Σ_bb⁻¹ (x_b − μ_b), covariance Σ_aa − Σ_ab Σ_bb⁻¹ Σ_ba. Vectors of n values give a stack of n
        members with one covariance: linear regression.

        References
        ----------
        Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.3.

        Examples
        --------
        >>> import likely as lk
        >>> g = lk.Gaussian([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]]).condition({1: 0.5})
        >>> g.mean.round(3).tolist(), g.covariance.round(3).tolist()
        ([0.4], [[0.36]])
        """
        b = self._columns(list(values))
        a = np.setdiff1d(np.arange(self.dim), b)
        if not len(a):
            expected = "at least one column must remain that is not conditioned on"
            raise ShapeError(sentence("Gaussian.condition", expected, "values of all columns"))
        given = _as_columns([parameter(v, "Gaussian.condition", "a value") for v in values.values()])
        self._check_rows(given, "Gaussian.condition", "a value must be a number or a vector")
        gain, residual_covariance = _regression(self._shared_matrix(), a, b)
        increment = np.einsum("...ij,...j->...i", gain, given - self.mean[..., b])
        return _gaussian(self.mean[..., a] + increment, residual_covariance, "full")

    def affine(self, matrix: ArrayLike, offset: ArrayLike = 0.0, noise: ArrayLike | None = None) -> Gaussian:
        """Distribution of y = A x + b + independent noise: N(Aμ + b, AΣAᵀ + R).

        With rank below m the covariance is singular, and the density is that on its support.

        Parameters
        ----------
        matrix : array-like (m, d)
            Matrix A.
        offset : array-like (m,), default 0.0
            Offset b.
        noise : array-like, optional
            Covariance R of the noise.

        Returns
        -------
        Gaussian
            The distribution of y.
        """
        A, b = self._map(matrix, offset, "Gaussian.affine")
        covariance = A @ self._shared_matrix() @ A.T
        if noise is not None:
            covariance = covariance + _noise(noise, len(A), "Gaussian.affine")
        mean = np.einsum("ij,...j->...i", A, self.mean) + b
        return _gaussian(mean, spd.symmetric(covariance), "full")

    def posterior(self, y: ArrayLike, matrix: ArrayLike, offset: ArrayLike = 0.0, noise: ArrayLike = 0.0) -> Gaussian:
        """Posterior of x given y = A x + b + noise: Bayes' theorem for linear Gaussian models.

        Gain K = ΣAᵀ(AΣAᵀ + R)⁻¹, mean μ + K(y − Aμ − b), covariance (I − KA)Σ(I − KA)ᵀ + KRKᵀ (Joseph form, positive
        semidefinite in floating point). Rows y (n, m) give a stack of n members with one covariance.

        Parameters
        ----------
        y : array-like (m,) or (n, m)
            Observations; rows give a stack of n members.
        matrix : array-like (m, d)
            Matrix A.
        offset : array-like (m,), default 0.0
            Offset b.
        noise : array-like, default 0.0
            Covariance R of the noise.

        Returns
        -------
        Gaussian
            The posterior of x.

        References
        ----------
        Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.3.2.
        """
        A, b = self._map(matrix, offset, "Gaussian.posterior")
        R, S = _noise(noise, len(A), "Gaussian.posterior"), self._shared_matrix()
        AS = A @ S
        gain = np.swapaxes(solve_psd(AS @ A.T + R, AS), -1, -2)
        shrink = np.eye(self.dim) - gain @ A
        covariance = shrink @ S @ np.swapaxes(shrink, -1, -2) + gain @ R @ np.swapaxes(gain, -1, -2)
        y = np.atleast_1d(parameter(y, "Gaussian.posterior", "y"))
        if y.shape[-1] != len(A):
            raise ShapeError(sentence("Gaussian.posterior", f"y must have {len(A)} entries", y.shape))
        self._check_rows(y, "Gaussian.posterior", "y must be one observation or rows of them")
        innovation = y - np.einsum("ij,...j->...i", A, self.mean) - b
        mean = self.mean + np.einsum("...ij,...j->...i", gain, innovation)
        return _gaussian(mean, spd.symmetric(covariance), "full")

    def sum(self, other: Gaussian) -> Gaussian:
        """Distribution of x + y for independent x and y (convolution): means and covariances add.

        Returns
        -------
        Gaussian
            The distribution of the sum.
        """
        self._check_same_shape(other, "sum")
        kind = self.kind if self.kind == other.kind else "full"
        if kind == "full":
            return _gaussian(self.mean + other.mean, self._shared_matrix() + other._shared_matrix(), kind)
        return _gaussian(self.mean + other.mean, self.covariance + other.covariance, kind)

    def noisy(self, noise: ArrayLike) -> Gaussian:
        """Distribution with additive measurement noise of covariance β: the convolution N(μ, Σ + β).

        Parameters
        ----------
        noise : float or array-like
            Covariance β of the noise: a number, (d,) or (d, d).

        Returns
        -------
        Gaussian
            The distribution with noise.

        References
        ----------
        Crowley, lecture notes.
        """
        return _gaussian(self.mean, self._shared_matrix() + _noise(noise, self.dim, "Gaussian.noisy"), "full")

    def log_spread_over_noise(self, noise: ArrayLike) -> Any:
        """Log ratio of generalized variances log(det Σ / det β), β the covariance of measurement noise.

        Far above 0 the covariance of the class determines the density; below 0 the noise dominates, and simpler
        methods do as well.

        Parameters
        ----------
        noise : float or array-like
            Covariance β of the noise: a number, (d,) or (d, d).

        Returns
        -------
        float or ndarray (K,)
            The logarithm; per member of a stack.

        References
        ----------
        Crowley, lecture notes.
        """
        beta = np.linalg.slogdet(_noise(noise, self.dim, "Gaussian.log_spread_over_noise"))
        if not beta.sign > 0:
            raise DomainError(sentence("Gaussian", "noise must be positive definite", "a singular covariance"))
        value = np.linalg.slogdet(self.covariance_matrix).logabsdet - beta.logabsdet
        return value if self.mean.ndim == 2 else float(value)

    def product(self, other: Gaussian) -> Gaussian:
        """Normalized product of two densities of the same x: precisions add, Σ⁻¹ = Σ₁⁻¹ + Σ₂⁻¹.

        Computed as Σ₁(Σ₁ + Σ₂)⁻¹Σ₂, so that one of the two may be singular, and either much larger than the other.

        Returns
        -------
        Gaussian
            The normalized product.
        """
        self._check_same_shape(other, "product")
        S1, S2 = self._shared_matrix(), other._shared_matrix()
        gain = np.swapaxes(solve_psd(S1 + S2, S1), -1, -2)
        mean = self.mean + np.einsum("...ij,...j->...i", gain, other.mean - self.mean)
        return _gaussian(mean, spd.symmetric(gain @ S2), "full")

    def log_overlap(self, other: Gaussian) -> Any:
        """Log overlap log ∫ p(x) q(x) dx = log N(μ₁ | μ₂, Σ₁ + Σ₂): the log normalization constant of `product`.

        Returns
        -------
        float or ndarray (K,)
            The logarithm of the integral; per member of a stack.
        """
        self._check_same_shape(other, "log_overlap")
        both = _gaussian(other.mean - self.mean, self._shared_matrix() + other._shared_matrix(), "full")
        value = both.log_prob(np.zeros((1, self.dim)))[0]
        return value if both.members else float(value)

    def principal_axes(self) -> tuple[Array, Array]:
        """Eigenvalues of Σ, largest first, and eigenvectors (principal axes) as columns.

        Σ = U Λ Uᵀ; in the coordinates y = Uᵀ(x − μ) the columns are independent and Δ² = yᵀΛ⁻¹y.

        Returns
        -------
        eigenvalues : ndarray (d,)
            Eigenvalues, largest first.
        eigenvectors : ndarray (d, d)
            Principal axes, one per column.

        References
        ----------
        Herbst and du Preez, lecture notes, 2.3.
        """
        values, vectors = np.linalg.eigh(self.covariance_matrix)
        return np.maximum(values[..., ::-1], 0.0), vectors[..., ::-1]

    def _shared_matrix(self) -> Array:
        """The covariance as full matrix: (d, d) if shared by all members, else (K, d, d)."""
        full = self.covariance_matrix
        rank = {"full": 2, "diagonal": 1, "spherical": 0}[self.kind]
        return np.array(full[0] if full.ndim == 3 and self.covariance.ndim == rank else full)

    def _check_same_shape(self, other: Gaussian, method: str) -> None:
        """Raise unless both have the same number of columns and, as stacks, of members."""
        sizes = {len(g.mean) for g in (self, other) if g.mean.ndim == 2}
        if other.dim != self.dim or len(sizes) > 1:
            expected = f"both must have {self.dim} columns, and stacks the same size: {self.mean.shape}"
            raise ShapeError(sentence(f"Gaussian.{method}", expected, other.mean.shape))

    def _check_rows(self, given: Array, whose: str, expected: str) -> None:
        """Raise unless `given` is (m,) or rows (n, m); for a stack, one row per member."""
        if given.ndim > 2 or (given.ndim == 2 and self.mean.ndim == 2 and len(given) != len(self.mean)):
            stack = f", one per member ({len(self.mean)})" if self.mean.ndim == 2 else ""
            raise ShapeError(sentence(whose, expected + stack, given.shape))

    def _map(self, matrix: Any, offset: Any, whose: str) -> tuple[Array, Array]:
        """Validated matrix A (m, d) and offset b: a number, (m,) or one per row."""
        A, b = np.atleast_2d(parameter(matrix, whose, "matrix")), parameter(offset, whose, "offset")
        if A.ndim > 2 or A.shape[1] != self.dim:
            raise ShapeError(sentence(whose, f"matrix must have shape (m, {self.dim})", A.shape))
        if b.ndim and b.shape[-1] != len(A):
            raise ShapeError(sentence(whose, f"offset must be a number or have {len(A)} entries", b.shape))
        self._check_rows(b, whose, "offset must be one vector or rows of them")
        return A, b

    def _columns(self, columns: Sequence[int]) -> Array:
        at = np.atleast_1d(np.asarray(columns))
        if at.dtype == bool:
            at = np.flatnonzero(at)
        if not len(at) or not np.issubdtype(at.dtype, np.integer) or len(set(at % self.dim)) < len(at):
            raise ShapeError(sentence("Gaussian", "columns must be distinct numbers", list(columns)))
        if (at >= self.dim).any() or (at < -self.dim).any():
            raise ShapeError(sentence("Gaussian", f"columns must lie in 0 … {self.dim - 1}", list(columns)))
        return at % self.dim


def _gaussian(mean: Array, covariance: Array, kind: str) -> Gaussian:
    from likely.distributions.gaussian.gaussian import Gaussian

    return Gaussian.trusted(mean=np.array(mean), covariance=np.array(covariance), kind=kind)


def _as_columns(values: list[Array]) -> Array:
    """Numbers and vectors of length n as the columns of (m,) or (n, m)."""
    try:
        return np.stack(np.broadcast_arrays(*values), axis=-1)
    except ValueError as error:
        shapes = [v.shape for v in values]
        expected = "vectors of values must have the same length"
        raise ShapeError(sentence("Gaussian.condition", expected, shapes)) from error


def _regression(covariance: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Regression coefficients Σ_ab Σ_bb⁻¹ and residual covariance Σ_aa − Σ_ab Σ_bb⁻¹ Σ_ba (Schur complement)."""
    Saa, Sab = covariance[..., a[:, None], a], covariance[..., a[:, None], b]
    gain = np.swapaxes(solve_psd(covariance[..., b[:, None], b], np.swapaxes(Sab, -1, -2)), -1, -2)
    return gain, spd.symmetric(Saa - gain @ np.swapaxes(Sab, -1, -2))


def solve_psd(a: Array, b: Array) -> Array:
    """a⁻¹ b for positive definite a, the minimum-norm solution where a is singular; leading axes broadcast."""
    a = np.ascontiguousarray(a)
    root = spd.cholesky(a)
    if root is not None:
        w = spd.inverse_factor(root)
        return np.asarray(np.swapaxes(w, -1, -2) @ (w @ b))
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not lead:
        s = spd.scales(a)  # after scaling, the numerical rank does not depend on the units of the columns
        inverse = np.linalg.pinv(a / s[:, None] / s, hermitian=True, rcond=1e-13)
        return np.asarray(inverse @ (b / s[:, None]) / s[:, None])
    a, b = np.broadcast_to(a, (*lead, *a.shape[-2:])), np.broadcast_to(b, (*lead, *b.shape[-2:]))
    return np.stack([solve_psd(one, other) for one, other in zip(a, b, strict=True)])


def _noise(noise: Any, d: int, whose: str) -> Array:
    """Noise covariance (d, d) from a number, a diagonal or a matrix."""
    R = parameter(noise, whose, "noise")
    if R.ndim < 2:
        if R.ndim == 1 and len(R) != d:
            raise ShapeError(sentence(whose, f"noise must be a number, ({d},) or ({d}, {d})", R.shape))
        R = np.diag(np.broadcast_to(R, (d,)))
    if R.shape != (d, d):
        raise ShapeError(sentence(whose, f"noise must be a number, ({d},) or ({d}, {d})", R.shape))
    if not spd.is_symmetric(R) or (np.diagonal(R) < 0).any() or np.linalg.eigvalsh(R)[0] < -1e-9 * np.abs(R).max():
        raise DomainError(sentence(whose, "noise must be a covariance: symmetric, without negative eigenvalues"))
    return R
