"""Triangular square roots of covariances: U upper triangular with UᵀU = P, also for singular P."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd

NEGATIVE = 1e-9  # negative eigenvalues of the correlation matrix up to this share of the largest count as rounding


def root(a: Array) -> Array:
    """Upper triangular U (..., d, d) with UᵀU = a, for symmetric a that may be singular; see `is_covariance`."""
    lower = spd.cholesky(a)
    if lower is not None:
        return np.ascontiguousarray(np.swapaxes(lower, -1, -2))
    if a.ndim > 2:
        return np.stack([root(one) for one in a.reshape(-1, *a.shape[-2:])]).reshape(a.shape)
    s = spd.scales(a)
    values, vectors = np.linalg.eigh(a / s[:, None] / s[None, :])
    rank = values > spd.rank_tolerance(len(a)) * max(float(values[-1]), 0.0)
    rows = np.zeros_like(a)
    rows[: int(rank.sum())] = (vectors[:, rank] * np.sqrt(values[rank])).T * s
    upper = np.linalg.qr(rows, mode="r")
    upper[(np.diagonal(upper) < 0)] *= -1.0
    return np.ascontiguousarray(np.where(np.abs(upper) > 1e-15 * s, upper, 0.0))


def is_covariance(a: Array) -> bool:
    """True if symmetric and positive semi-definite up to rounding."""
    if not spd.is_symmetric(a):
        return False
    if spd.cholesky(a) is not None:
        return True
    s = spd.scales(a)
    if (np.diagonal(a, axis1=-2, axis2=-1) < 0).any():
        return False
    values = np.linalg.eigvalsh(a / s[..., :, None] / s[..., None, :])
    return bool((values.min(axis=-1) >= -NEGATIVE * np.maximum(values.max(axis=-1), 0.0)).all())


def square(u: Array) -> Array:
    """The covariance UᵀU, exactly symmetric."""
    return spd.symmetric(np.swapaxes(u, -1, -2) @ u)
