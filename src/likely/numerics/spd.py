"""Symmetric positive (semi-)definite matrices: factors, inverses and repairs that respect each column's scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtrtri

from likely.core.arrays import Array

EPS = float(np.finfo(np.float64).eps)


def symmetric(a: Array) -> Array:
    """The symmetric part of (..., d, d); exact for what is symmetric already."""
    return 0.5 * (a + np.swapaxes(a, -1, -2))


def is_symmetric(a: Array) -> bool:
    """Symmetric up to rounding, relative to the scale of its rows and columns."""
    s = np.sqrt(np.abs(np.diagonal(a, axis1=-2, axis2=-1)))
    return bool((np.abs(a - np.swapaxes(a, -1, -2)) <= 1e-8 * s[..., :, None] * s[..., None, :]).all())


def scales(a: Array) -> Array:
    """Square roots of the diagonal (..., d), 1 where it is 0: the units in which a matrix is a correlation."""
    v = np.diagonal(a, axis1=-2, axis2=-1)
    return np.sqrt(np.where(v > 0, v, 1.0))


def cholesky(a: Array) -> Array | None:
    """Lower factors of (..., d, d), or None if one is not safely positive definite.

    "Safely": no column's variance given the columns before it is lost in rounding. The test is made
    on the correlation matrix, so it does not depend on units.
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
    """Share of a column's variance that counts as nothing in d dimensions."""
    return 50 * d * EPS


def logdet(root: Array) -> Array:
    """log det of the matrix whose lower factor this is."""
    return 2.0 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)


def inverse_factor(root: Array) -> Array:
    """Inverse of lower triangular factors (..., d, d)."""
    d = root.shape[-1]
    flat = root.reshape(-1, d, d)
    if len(flat) > 2 * d:
        return _inverse_factors(flat).reshape(root.shape)
    # dtrtri, not solve_triangular: OpenBLAS wakes all threads for a 4 × 4 system, 8 ms where cores are busy
    return np.array([dtrtri(r, lower=1)[0] for r in flat]).reshape(root.shape)


def solve_factor(root: Array, z: Array) -> Array:
    """root⁻¹ zᵀ as (d, n), for rows z (n, d) that may be overwritten."""
    return np.asarray(dtrsm(1.0, root.T, z.T, lower=0, trans_a=1, overwrite_b=1)) if len(z) else z.T


def _inverse_factors(roots: Array) -> Array:
    """Row by row for many small factors (K, d, d) at once: d steps where LAPACK would need K calls."""
    out = np.zeros_like(roots)
    for i in range(roots.shape[-1]):
        out[:, i, i] = 1.0 / roots[:, i, i]
        out[:, i, :i] = -(roots[:, i, None, :i] @ out[:, :i, :i])[:, 0] * out[:, i, i, None]
    return out


def precision(root: Array) -> Array:
    """Inverse of the matrices whose lower factors these are."""
    w = inverse_factor(root)
    return np.swapaxes(w, -1, -2) @ w


def trace_form(w: Array, a: Array) -> Array:
    """tr(w a wᵀ) of (..., d, d) matrices: with w the inverse factor of Σ, tr(Σ⁻¹ a)."""
    return ((w @ a) * w).sum(axis=(-2, -1))


@dataclass(frozen=True, eq=False)
class Degenerate:
    """A covariance of rank r < d: it lives on a flat of r dimensions."""

    factor: Array  # (d, r): covariance = factor factorᵀ
    inverse: Array  # (d, r): (x − mean) @ inverse is white
    scale: Array  # (d,): units of the columns, 0 for those that do not vary
    logdet: float  # log of the product of the covariance's eigenvalues that are not 0

    def off(self, z: Array, size: Array) -> Array:
        """True for deviations (n, d) that do not lie on the flat; `size` (d,) is for columns that do not vary."""
        moves = self.scale > 0
        unit = self.scale[moves]
        rest = z - (z @ self.inverse) @ self.factor.T
        away = np.linalg.norm(rest[:, moves] / unit, axis=1) > 1e-7 * (1.0 + np.linalg.norm(z[:, moves] / unit, axis=1))
        return np.asarray(away | (np.abs(z[:, ~moves]) > 1e-12 * size[~moves]).any(axis=1))


def degenerate(a: Array) -> Degenerate | None:
    """The flat of a positive semi-definite matrix (d, d), or None if it is indefinite."""
    d = len(a)
    s = scales(a)
    values, vectors = np.linalg.eigh(symmetric(a / s[:, None] / s))
    bound = rank_tolerance(d) * max(float(values[-1]), 0.0) if d else 0.0
    if d and values[0] < -max(1e-9, bound) * max(float(values[-1]), 1e-300):
        return None
    keep = values > max(bound, 0.0)
    factor = s[:, None] * vectors[:, keep] * np.sqrt(values[keep])
    q, r = np.linalg.qr(factor)
    inverse = q @ np.linalg.inv(r).T if factor.shape[1] else factor
    scale = np.where(np.diagonal(a) > 0, s, 0.0)
    return Degenerate(factor, inverse, scale, float(2 * np.log(np.abs(np.diagonal(r))).sum()))


def is_semidefinite(a: Array) -> bool:
    """Whether a symmetric matrix (d, d) has no negative eigenvalue but for rounding, as `degenerate` sees it.

    A factor of the matrix with 1e-9 of its largest eigenvalue on the diagonal shows it in a tenth of the time that all
    eigenvalues take; where there is none, these decide.
    """
    if not a.any():
        return True
    s = scales(a)
    c = symmetric(a / s[:, None] / s)
    v = np.full(len(c), 1.0 / np.sqrt(len(c)))
    for _ in range(8):  # the quotient comes from below: what it allows is allowed
        w = c @ v
        largest, size = float(v @ w), float(np.linalg.norm(w))
        v = w / size if size else v
    c[np.diag_indices(len(c))] += 1e-9 * max(largest, 0.0)
    try:
        np.linalg.cholesky(c)
    except np.linalg.LinAlgError:
        return degenerate(a) is not None
    return True


def repaired(a: Array) -> tuple[Array, int]:
    """A positive definite neighbor of a semi-definite (d, d), and the rank that was found.

    Directions of the correlation matrix that carry less than 1e-9 of a column's variance get
    that much: enough for a safe factor, far below anything measured.
    """
    s = scales(a)
    values, vectors = np.linalg.eigh(symmetric(a / s[:, None] / s))
    rank = int((values > rank_tolerance(len(a)) * max(float(values[-1]), 1.0)).sum())
    lifted = (vectors * np.maximum(values, 1e-9)) @ vectors.T
    return symmetric(lifted * s[:, None] * s), rank
