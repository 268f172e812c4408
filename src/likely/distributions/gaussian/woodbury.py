"""Woodbury identity: Mahalanobis distances under the low-rank-plus-diagonal covariance W Wᵀ + Ψ.

With A = Ψ^{-1/2} W = U S Vᵀ and z = Ψ^{-1/2} (x − μ), the squared distance is |z|² − Σᵢ sᵢ²/(1 + sᵢ²) (uᵢᵀz)², without
the d × d matrix. All members of a stack need two matrix products together. Where the difference would cancel, the same
number is computed as |z − U Uᵀz|² + Σᵢ (uᵢᵀz)²/(1 + sᵢ²), a sum of squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likely.core.arrays import Array
from likely.numerics.spd import EPS

STRIP = 1 << 17  # numbers centered at a time: a megabyte, as for moments
ALLOWED = 1e-9  # absolute error of a distance that is accepted from the difference


@dataclass(frozen=True, eq=False)
class LowRank:
    """Means (K, d), loadings (K, d, q) and noise variances (K, d) of a stack."""

    mean: Array
    loadings: Array
    noise: Array

    @cached_property
    def svd(self) -> tuple[Array, Array]:
        """U (K, d, q) and s² (K, q) of the SVD of Ψ^{-1/2} W: factor directions and signal-to-noise ratios."""
        white = self.loadings / self._deviation[:, :, None]
        if not white.shape[-1]:
            return white, np.empty(white.shape[::2])
        u, s, _ = np.linalg.svd(white, full_matrices=False)
        return u, s**2

    @cached_property
    def _deviation(self) -> Array:
        return np.sqrt(self.noise)

    @cached_property
    def logdet(self) -> Array:
        """log det (W Wᵀ + Ψ) per member (K,): matrix determinant lemma."""
        return np.log(self.noise).sum(axis=1) + np.log1p(self.svd[1]).sum(axis=1)

    # ------------------------------------------------------------ distances

    def distance(self, x: Array) -> Array:
        """Squared distances of complete rows (n, d) to each member (n, K); NaN for rows with missing entries."""
        n, d = x.shape
        out = np.empty((n, len(self.mean)))
        step = max(256, STRIP // d)
        for a in range(0, n, step):
            out[a : a + step] = self._strip(x[a : a + step])
        return out

    def _strip(self, x: Array) -> Array:
        out, size = self._by_difference(x)
        cancels = (size * self._rounding > ALLOWED) & (size > 4.0 * out)
        for k in np.flatnonzero(cancels.any(axis=0)):
            rows = cancels[:, k]
            out[rows, k] = self.by_sum(x[rows], int(k))
        return out

    @cached_property
    def _rounding(self) -> float:
        return (16 + 2 * np.sqrt(self.mean.shape[1])) * EPS  # measured: at most 9 units at d = 8 … 784

    @cached_property
    def _products(self) -> tuple[Array, Array, Array, Array, Array]:
        """Coefficients of the difference form, about the mean of all means (origin).

        Precisions (d, K), linear terms and projections (d, K + K q), squared lengths of the means and projected means.
        """
        u, signal = self.svd
        origin = self.mean.mean(axis=0)
        center, precision = self.mean - origin, 1.0 / self.noise
        shrunk = u / self._deviation[:, :, None] * np.sqrt(signal / (1.0 + signal))[:, None, :]
        d = len(origin)
        linear = np.concatenate([-2.0 * (precision * center).T, shrunk.transpose(1, 0, 2).reshape(d, -1)], axis=1)
        projected = np.einsum("kd,kdq->kq", center, shrunk).ravel()
        return origin, np.ascontiguousarray(precision.T), linear, (precision * center**2).sum(axis=1), projected

    def _by_difference(self, x: Array) -> tuple[Array, Array]:
        """Squared distances (n, K) as a difference, and the size of its first term."""
        origin, precision, linear, length, projected = self._products
        n, K = len(x), len(self.mean)
        u = x - origin
        products = u @ linear
        squares = np.multiply(u, u, out=u) @ precision + length
        factors = products[:, K:]
        factors -= projected
        explained = np.einsum("nkq,nkq->nk", *[factors.reshape(n, K, -1)] * 2)
        return np.maximum(squares + products[:, :K] - explained, 0.0), squares

    def by_sum(self, x: Array, k: int) -> Array:
        """Squared distances of rows to member k as a sum of squares: the reference for the difference."""
        u, signal = self.svd
        z = (x - self.mean[k]) / self._deviation[k]
        factors = z @ u[k]
        z -= factors @ u[k].T
        return np.einsum("nd,nd->n", z, z) + (factors**2 / (1.0 + signal[k])).sum(axis=1)

    def trace(self, scatter: Array) -> Array:
        """tr((W Wᵀ + Ψ)⁻¹ S) per member (K,), for scatter matrices S (K, d, d)."""
        u, signal = self.svd
        total = (np.diagonal(scatter, axis1=1, axis2=2) / self.noise).sum(axis=1)
        shrunk = u / self._deviation[:, :, None] * np.sqrt(signal / (1.0 + signal))[:, None, :]
        return np.maximum(total - ((scatter @ shrunk) * shrunk).sum(axis=(1, 2)), 0.0)
