"""Symmetric positive (semi-)definite matrices: Cholesky factors, inverses and regularization, free of column scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtrtri

from likely.core.arrays import Array

EPS = float(np.finfo(np.float64).eps)


def symmetric(a: Array) -> Array:
    """The symmetric part of (..., d, d); exact for symmetric input."""
    return 0.5 * (a + np.swapaxes(a, -1, -2))


def is_symmetric(a: Array) -> bool:
    """True if symmetric up to rounding, relative to the scale of rows and columns."""
    s = np.sqrt(np.abs(np.diagonal(a, axis1=-2, axis2=-1)))
    return bool((np.abs(a - np.swapaxes(a, -1, -2)) <= 1e-8 * s[..., :, None] * s[..., None, :]).all())


def scales(a: Array) -> Array:
    """Square roots of the diagonal (..., d), 1 where it is 0: scaling by them gives a correlation matrix."""
    v = np.diagonal(a, axis1=-2, axis2=-1)
    return np.sqrt(np.where(v > 0, v, 1.0))


def cholesky(a: Array) -> Array | None:
    """Cholesky factors L (lower) of (..., d, d), or None if one is not numerically positive definite.

    The squared pivots of the correlation matrix, which are conditional variances given the columns before, must exceed
    `rank_tolerance`; the test does not depend on units.
    """
    s = scales(a)
    try:
        root = np.linalg.cholesky(a / s[..., :, None] / s[..., None, :])
    except np.linalg.LinAlgError:
        return None
    pivots = np.diagonal(root, axis1=-2, axis2=-1)
    if pivots.size and (pivots**2).min() <= rank_tolerance(a.shape[-1]):
        return None
    return root * s[..., :, None]


def rank_tolerance(d: int) -> float:
    """Relative pivot (share of a column's variance) below which a matrix of d dimensions counts as rank-deficient."""
    return 50 * d * EPS


def logdet(root: Array) -> Array:
    """Log-determinant of the matrix with this Cholesky factor."""
    return 2.0 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)


def inverse_factor(root: Array) -> Array:
    """Inverse of lower triangular (Cholesky) factors (..., d, d)."""
    d = root.shape[-1]
    flat = root.reshape(-1, d, d)
    if len(flat) > 2 * d:
        return _inverse_factors(flat).reshape(root.shape)
    # dtrtri, not solve_triangular: OpenBLAS wakes all threads for a 4 × 4 system, 8 ms where cores are busy
    return np.array([dtrtri(r, lower=1)[0] for r in flat]).reshape(root.shape)


def solve_factor(root: Array, z: Array) -> Array:
    """Forward substitution: L⁻¹ zᵀ as (d, n), for rows z (n, d) that may be overwritten."""
    return np.asarray(dtrsm(1.0, root.T, z.T, lower=0, trans_a=1, overwrite_b=1)) if len(z) else z.T


def _inverse_factors(roots: Array) -> Array:
    """Forward substitution row by row for many small factors (K, d, d): d steps where LAPACK needs K calls."""
    out = np.zeros_like(roots)
    for i in range(roots.shape[-1]):
        out[:, i, i] = 1.0 / roots[:, i, i]
        out[:, i, :i] = -(roots[:, i, None, :i] @ out[:, :i, :i])[:, 0] * out[:, i, i, None]
    return out


def precision(root: Array) -> Array:
    """Inverse of the matrices with these Cholesky factors."""
    w = inverse_factor(root)
    return np.swapaxes(w, -1, -2) @ w


def trace_form(w: Array, a: Array) -> Array:
    """tr(w a wᵀ) of (..., d, d) matrices: with w = L⁻¹ and Σ = L Lᵀ, this is tr(Σ⁻¹ a)."""
    return ((w @ a) * w).sum(axis=(-2, -1))


@dataclass(frozen=True, eq=False)
class Degenerate:
    """Singular covariance of rank r < d: a factor, its pseudo-inverse, and the log pseudo-determinant."""

    factor: Array  # (d, r): covariance = factor factorᵀ
    inverse: Array  # (d, r): (x − mean) @ inverse has unit covariance
    scale: Array  # (d,): standard deviations of the columns, 0 for constant ones
    logdet: float  # log pseudo-determinant: of the product of the nonzero eigenvalues

    def outside_range(self, z: Array, size: Array) -> Array:
        """True for deviations (n, d) outside the range of the covariance; `size` (d,) is for constant columns."""
        varies = self.scale > 0
        scale = self.scale[varies]
        residual = z - (z @ self.inverse) @ self.factor.T
        outside = np.linalg.norm(residual[:, varies] / scale, axis=1) > 1e-7 * (
            1.0 + np.linalg.norm(z[:, varies] / scale, axis=1)
        )
        return np.asarray(outside | (np.abs(z[:, ~varies]) > 1e-12 * size[~varies]).any(axis=1))


def rank_deficient_factor(a: Array) -> Degenerate | None:
    """Rank-deficient factorization of a positive semi-definite matrix (d, d), or None if it is indefinite."""
    d = len(a)
    s = scales(a)
    values, vectors = np.linalg.eigh(symmetric(a / s[:, None] / s))
    tolerance = rank_tolerance(d) * max(float(values[-1]), 0.0) if d else 0.0
    if d and values[0] < -max(1e-9, tolerance) * max(float(values[-1]), 1e-300):
        return None
    keep = values > max(tolerance, 0.0)
    factor = s[:, None] * vectors[:, keep] * np.sqrt(values[keep])
    q, r = np.linalg.qr(factor)
    inverse = q @ np.linalg.inv(r).T if factor.shape[1] else factor
    scale = np.where(np.diagonal(a) > 0, s, 0.0)
    return Degenerate(factor, inverse, scale, float(2 * np.log(np.abs(np.diagonal(r))).sum()))


def is_semidefinite(a: Array) -> bool:
    """True if a symmetric matrix (d, d) has no negative eigenvalue beyond rounding, as in `rank_deficient_factor`.

    A Cholesky factorization with 1e-9 of the largest eigenvalue added to the diagonal decides in a tenth of the time of
    an eigendecomposition; where it fails, the eigenvalues decide.
    """
    if not a.any():
        return True
    s = scales(a)
    c = symmetric(a / s[:, None] / s)
    v = np.full(len(c), 1.0 / np.sqrt(len(c)))
    for _ in range(8):  # power iteration; the Rayleigh quotient is a lower bound
        w = c @ v
        largest, size = float(v @ w), float(np.linalg.norm(w))
        v = w / size if size else v
    c[np.diag_indices(len(c))] += 1e-9 * max(largest, 0.0)
    try:
        np.linalg.cholesky(c)
    except np.linalg.LinAlgError:
        return rank_deficient_factor(a) is not None
    return True


def repaired(a: Array) -> tuple[Array, int]:
    """Positive definite matrix near a semi-definite one (d, d), and its numerical rank.

    Eigenvalues of the correlation matrix below 1e-9 are raised to it: enough for a Cholesky factor, far below
    measurement accuracy.
    """
    s = scales(a)
    values, vectors = np.linalg.eigh(symmetric(a / s[:, None] / s))
    rank = int((values > rank_tolerance(len(a)) * max(float(values[-1]), 1.0)).sum())
    regularized = (vectors * np.maximum(values, 1e-9)) @ vectors.T
    return symmetric(regularized * s[:, None] * s), rank
