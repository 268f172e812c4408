"""Posterior of the latent factors z given a row x of a factor model; missing entries are marginalized."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Mask, refuse_infinite
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.missing_patterns import observed

CHUNK = 1 << 20  # numbers of an intermediate array at a time


@dataclass(frozen=True, eq=False)
class Latent:
    """Latent factors of a model with mean (d,), loadings (d, q) and noise variances (d,).

    z | x is Gaussian with precision M = I + Σ_j w_j w_jᵀ/ψ_j over the observed columns j.
    """

    mean: Array
    loadings: Array
    noise: Array

    def posterior(self, x: Array) -> Gaussian:
        """Posterior of z per row: one covariance for all rows if no entry is missing, else one per row."""
        projected, mask = self._projected(x)
        covariance = self._covariance if mask is None else np.linalg.inv(self._precisions(mask))
        mean = np.einsum("...ij,nj->ni" if mask is None else "nij,nj->ni", covariance, projected)
        return Gaussian.trusted(mean=mean, covariance=np.array(covariance), kind="full")

    def means(self, x: Array) -> Array:
        """Posterior means E[z | x] per row (n, q)."""
        projected, mask = self._projected(x)
        if mask is None:
            return projected @ self._covariance
        out, step = np.empty_like(projected), max(1, CHUNK // max(self.loadings.shape[1] ** 2, 1))
        for a in range(0, len(x), step):
            at = slice(a, a + step)
            out[at] = np.linalg.solve(self._precisions(mask[at]), projected[at, :, None])[..., 0]
        return out

    def filled(self, x: Array, rng: Generator | None) -> Array:
        """Rows with missing entries filled: μ + W E[z | x], or with `rng` a sample of x_missing | x_observed."""
        refuse_infinite(x, "FactorGaussian")
        mask = observed(x)
        out = x.copy()
        incomplete = np.flatnonzero(~mask.all(axis=1))
        if not len(incomplete):
            return out
        rows = x[incomplete]
        if rng is None:
            imputed = self.mean + self.means(rows) @ self.loadings.T
        else:
            imputed = self.mean + self._sampled(rows, rng) @ self.loadings.T
            imputed += rng.standard_normal(imputed.shape) * np.sqrt(self.noise)
        out[incomplete] = np.where(mask[incomplete], rows, imputed)
        return out

    def _sampled(self, x: Array, rng: Generator) -> Array:
        """A sample of z | x per row (n, q), by the Cholesky factor of M = L Lᵀ: Cov(L⁻ᵀe) = M⁻¹."""
        projected, mask = self._projected(x)
        root = np.linalg.cholesky(self._precisions(observed(x) if mask is None else mask))
        noise = rng.standard_normal(projected.shape)
        half = np.linalg.solve(root, projected[:, :, None])
        return np.asarray(np.linalg.solve(np.swapaxes(root, 1, 2), half + noise[:, :, None])[..., 0])

    @cached_property
    def _covariance(self) -> Array:
        return np.linalg.inv(self._precisions(np.ones((1, len(self.mean)), bool))[0])

    def _precisions(self, mask: Mask) -> Array:
        """Posterior precisions M per row (n, q, q): one product with all w_j w_jᵀ/ψ_j."""
        d, q = self.loadings.shape
        outer = self._scaled_loadings[:, :, None] * self.loadings[:, None, :]
        return np.eye(q) + (mask.astype(np.float64) @ outer.reshape(d, -1)).reshape(len(mask), q, q)

    @cached_property
    def _scaled_loadings(self) -> Array:
        """Ψ⁻¹W (d, q)."""
        return self.loadings / self.noise[:, None]

    def _projected(self, x: Array) -> tuple[Array, Mask | None]:
        """WᵀΨ⁻¹(x − μ) over the observed columns (n, q), and the mask of these (n, d); None if all are observed."""
        centered = x - self.mean
        projected = centered @ self._scaled_loadings
        if projected.shape[1] and np.isfinite(projected).all():
            return projected, None
        refuse_infinite(x, "FactorGaussian")
        mask = observed(x)
        return np.where(mask, centered, 0.0) @ self._scaled_loadings, mask
