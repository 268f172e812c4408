"""Cholesky factorization and triangular solves of many small matrices at once: each step is one vectorized operation.

The stack axis is last: K matrices are (d, d, K), vectors (d, K), and K = 1 broadcasts. LAPACK needs one call per
matrix, 60 ns to 300 ns each; here 10,000 factors of 2 × 2 cost as much as a handful of sums of 10,000 numbers.
"""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.numerics.spd import rank_tolerance


def members_last(a: Array) -> Array:
    """(K, ...) as a contiguous (..., K)."""
    return np.ascontiguousarray(np.moveaxis(a, 0, -1))


def roots(a: Array) -> Array | None:
    """Cholesky factors of (d, d, K), or None if one is not numerically positive definite (as in `spd.cholesky`).

    >>> roots(np.array([[[4.0], [2.0]], [[2.0], [5.0]]]))[..., 0].tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    d = len(a)
    out = np.zeros_like(a)
    for j in range(d):
        pivot = a[j, j] - sum(out[j, k] ** 2 for k in range(j))
        if not (pivot > rank_tolerance(d) * a[j, j]).all():  # NaN is not
            return None
        np.sqrt(pivot, out=out[j, j])
        for i in range(j + 1, d):
            out[i, j] = (a[i, j] - sum(out[i, k] * out[j, k] for k in range(j))) / out[j, j]
    return out


def solve(root: Array, z: Array) -> Array:
    """Forward substitution L⁻¹ z for vectors z (d, K) or matrices (d, m, K)."""
    v: list[Array] = []
    for i in range(len(root)):
        v.append((z[i] - sum(root[i, j] * v[j] for j in range(i))) / root[i, i])
    return np.stack(np.broadcast_arrays(*v))


def solve_transposed(root: Array, z: Array) -> Array:
    """Back substitution L⁻ᵀ z for vectors z (d, K) or matrices (d, m, K)."""
    d = len(root)
    v: dict[int, Array] = {}
    for i in range(d)[::-1]:
        v[i] = (z[i] - sum(root[j, i] * v[j] for j in range(i + 1, d))) / root[i, i]
    return np.stack(np.broadcast_arrays(*(v[i] for i in range(d))))


def apply(a: Array, z: Array) -> Array:
    """Matrix–vector products A z of (m, d, K) and (d, K); summed in fixed order, so bit-for-bit reproducible."""
    return np.stack([sum((a[i, j] * z[j] for j in range(1, len(z))), a[i, 0] * z[0]) for i in range(len(a))])


def logdet(root: Array) -> Array:
    """Log-determinants of the matrices with these Cholesky factors (K,)."""
    return 2.0 * sum((np.log(root[i, i]) for i in range(1, len(root))), np.log(root[0, 0]))
