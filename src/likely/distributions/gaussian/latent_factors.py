"""What a row says of the hidden factors behind it; entries that are missing say nothing."""

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
    """mean (d,), loadings (d, q), noise (d,): z | x is Gaussian with precision M = I + Σ_{seen} w_j w_jᵀ/ψ_j."""

    mean: Array
    loadings: Array
    noise: Array

    def posterior(self, x: Array) -> Gaussian:
        """The distribution of z after each row: one covariance for all if nothing is missing, else one per row."""
        pull, seen = self._pull(x)
        covariance = self._covariance if seen is None else np.linalg.inv(self._precisions(seen))
        mean = np.einsum("...ij,nj->ni" if seen is None else "nij,nj->ni", covariance, pull)
        return Gaussian.trusted(mean=mean, covariance=np.array(covariance), kind="full")

    def means(self, x: Array) -> Array:
        """E[z | x] of each row (n, q)."""
        pull, seen = self._pull(x)
        if seen is None:
            return pull @ self._covariance
        out, step = np.empty_like(pull), max(1, CHUNK // max(self.loadings.shape[1] ** 2, 1))
        for a in range(0, len(x), step):
            at = slice(a, a + step)
            out[at] = np.linalg.solve(self._precisions(seen[at]), pull[at, :, None])[..., 0]
        return out

    def filled(self, x: Array, rng: Generator | None) -> Array:
        """Rows with gaps filled: μ + W E[z | x], or with `rng` a draw of what is missing given what was seen."""
        refuse_infinite(x, "FactorGaussian")
        seen = observed(x)
        out = x.copy()
        gaps = np.flatnonzero(~seen.all(axis=1))
        if not len(gaps):
            return out
        some = x[gaps]
        if rng is None:
            guess = self.mean + self.means(some) @ self.loadings.T
        else:
            guess = self.mean + self._drawn(some, rng) @ self.loadings.T
            guess += rng.standard_normal(guess.shape) * np.sqrt(self.noise)
        out[gaps] = np.where(seen[gaps], some, guess)
        return out

    def _drawn(self, x: Array, rng: Generator) -> Array:
        """A draw of z | x for each row (n, q), through the factor of M: cov(L⁻ᵀe) = M⁻¹."""
        pull, seen = self._pull(x)
        root = np.linalg.cholesky(self._precisions(observed(x) if seen is None else seen))
        noise = rng.standard_normal(pull.shape)
        half = np.linalg.solve(root, pull[:, :, None])
        return np.asarray(np.linalg.solve(np.swapaxes(root, 1, 2), half + noise[:, :, None])[..., 0])

    @cached_property
    def _covariance(self) -> Array:
        return np.linalg.inv(self._precisions(np.ones((1, len(self.mean)), bool))[0])

    def _precisions(self, seen: Mask) -> Array:
        """M of each row (n, q, q): one product with all w_j w_jᵀ/ψ_j."""
        d, q = self.loadings.shape
        each = self._pulling[:, :, None] * self.loadings[:, None, :]
        return np.eye(q) + (seen.astype(np.float64) @ each.reshape(d, -1)).reshape(len(seen), q, q)

    @cached_property
    def _pulling(self) -> Array:
        return self.loadings / self.noise[:, None]

    def _pull(self, x: Array) -> tuple[Array, Mask | None]:
        """WᵀΨ⁻¹(x − μ) over what was seen (n, q), and what that was (n, d); None if all."""
        away = x - self.mean
        pull = away @ self._pulling
        if pull.shape[1] and np.isfinite(pull).all():
            return pull, None
        refuse_infinite(x, "FactorGaussian")
        seen = observed(x)
        return np.where(seen, away, 0.0) @ self._pulling, seen
