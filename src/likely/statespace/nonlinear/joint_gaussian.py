"""Conditioning of jointly Gaussian vectors in square-root form: one QR factorization, singular covariances included."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqrfp, dpotrf, dtrtrs

from likely.core.arrays import Array, Index, Mask
from likely.numerics import covariance_roots, spd
from likely.numerics.special import LOG_2PI

GRAIN = 8 * float(np.finfo(np.float64).eps)  # deviations below this share of the numbers they come from are rounding


class Sizes(NamedTuple):
    """Magnitudes of the numbers z was computed from, and the standard deviations of z that are only their rounding."""

    size: Array  # (p,)
    grain: Array  # (p,): standard deviations up to this are rounding; negative where none is


class Linear(NamedTuple):
    """Linearization z = mean + slopeᵀ ξ + e for a state x = m + rootᵀ ξ; ξ standard normal, Cov(e) = noiseᵀ noise."""

    mean: Array  # (p,)
    slope: Array  # (d, p)
    noise: Array  # (k, p), or (p,): standard deviations of independent entries
    sizes: Callable[[], Sizes]  # lazy: rarely needed
    noisy: Callable[[], bool] = lambda: False  # True if each entry of z has noise: no standard deviation is rounding

    def columns(self, at: Index | slice) -> Linear:
        """The linearization of some entries of z."""
        mean, slope, noise = self.mean[at], self.slope[:, at], self.noise[..., at]
        return Linear(mean, slope, noise, lambda: Sizes(*(a[at] for a in self.sizes())), self.noisy)

    @property
    def root(self) -> Array:
        """Triangular square root of the covariance of z."""
        return _factor(self.stacked(self.slope.shape[1]))

    def stacked(self, width: int) -> Array:
        """Slope stacked on noise (d + k, p), padded with columns of zeros to a width, in Fortran order."""
        (d, p), noise = self.slope.shape, self.noise
        n = d + len(noise)
        flat = np.zeros(n * width)
        columns = flat.reshape(width, n)
        columns[:p, :d] = self.slope.T
        if noise.ndim == 1:
            flat[d : n * p : n + 1] = noise
        else:
            columns[:p, d:] = noise.T
        return columns.T


class Conditioned(NamedTuple):
    """A state given z: mean and root of the covariance, log p(z), and the terms of the update."""

    mean: Array  # (d,)
    root: Array  # (d, d)
    log_prob: float
    slope: Array  # (d, p)
    weight: tuple[Array, Array] | None  # S and v with S weight = v; None if z was not used

    @property
    def white(self) -> Array:
        """The mean in whitened coordinates of the prior (d,): mean = m + rootᵀ white, with the prior's root."""
        if self.weight is None:
            return np.zeros(len(self.mean))
        S, v = self.weight
        return np.asarray(self.slope.dot(dtrtrs(S, v)[0]))


def triangular(rows: Array) -> Array:
    """Upper triangular R (d, d) with Rᵀ R = rowsᵀ rows and nonnegative diagonal, by Householder reflections.

    >>> triangular(np.array([[3.0], [4.0]])).tolist()
    [[5.0]]
    """
    return _factor(np.array(rows, order="F"))


def _factor(rows: Array) -> Array:
    """As `triangular`, for rows in Fortran order, which are overwritten."""
    n, d = rows.shape
    if n < d:
        rows = np.asfortranarray(np.concatenate([rows, np.zeros((d - n, d))]))
    # LAPACK directly: np.linalg.qr takes three times as long for small ones
    upper = dgeqrfp(rows, overwrite_a=1)[0][:d].copy()  # in C order, as the compiled loops take it
    np.putmask(upper, _below(d), 0.0)
    return upper


@lru_cache(maxsize=64)
def _below(d: int) -> Mask:
    return np.tril(np.ones((d, d), dtype=bool), -1)


def root_of(covariance: Array) -> Array:
    """Square root (d, d) of a positive semidefinite matrix, rootᵀ root; negative eigenvalues count as 0."""
    lower, failed = dpotrf(covariance, lower=1)  # LAPACK directly: np.linalg.cholesky takes four times as long
    return covariance_roots.root(covariance) if failed else np.asarray(lower.T)


def grain_of(size: Array, covariance: Array) -> Array:
    """Standard deviations (p,) that are rounding of numbers of this size; −1 where the distribution has noise.

    >>> grain_of(np.array([1e9, 1e9]), np.diag([1e-20, 0.0])).round(9).tolist()
    [-1.0, 1.776e-06]
    """
    return np.where(covariance.diagonal() > 0, -1.0, GRAIN * size)


def joint(linearized: Linear, root: Array) -> tuple[Array, Array, Array]:
    """Joint factorization S (p, p), C (p, d), R (d, d): cov z = SᵀS, cov(z, x) = SᵀC, cov(x | z) = RᵀR."""
    d, p = linearized.slope.shape
    rows = linearized.stacked(p + d)
    rows[:d, p:] = root
    whole = _factor(rows)
    return whole[:p, :p], whole[:p, p:], whole[p:, p:]


def is_safe(root: Array) -> bool:
    """True if no conditional variance of a column given earlier ones is lost in rounding: numerically full rank."""
    if len(root) == 1:
        return bool(root[0, 0])
    size = np.sqrt((root * root).sum(axis=0))
    return bool((np.abs(root.diagonal()) > 1e-7 * size).all())


def condition(mean: Array, root: Array, linearized: Linear, innovation: Array) -> Conditioned:
    """Update step given z = linearized.mean + innovation, in square-root form (Kailath, Sayed and Hassibi 2000, 12).

    A covariance of z may be singular: the density is then that on its support, and −inf outside, where the belief stays
    unchanged. It also stays unchanged where the density of z underflows to 0.
    """
    S, C, rest = joint(linearized, root)
    if not is_safe(S) or not (linearized.noisy() or (S.diagonal() > linearized.sizes().grain).all()):
        return _on_support(mean, root, linearized, innovation)
    v = dtrtrs(S, innovation, trans=1)[0]
    logs = -0.5 * (float(np.vdot(v, v)) + len(v) * LOG_2PI) - sum(map(math.log, S.diagonal().tolist()))
    if not math.isfinite(logs):
        return _unchanged(mean, root)
    return Conditioned(mean + v.dot(C), rest.copy(), logs, linearized.slope, (S, v))


def _unchanged(mean: Array, root: Array, log_prob: float = -np.inf) -> Conditioned:
    """The belief without an update."""
    return Conditioned(mean, root, log_prob, np.empty((len(mean), 0)), None)


def _on_support(mean: Array, root: Array, linearized: Linear, innovation: Array) -> Conditioned:
    """Update step with a singular covariance of z, on its support."""
    covariance, (size, grain) = linearized.root.T @ linearized.root, linearized.sizes()
    known = np.sqrt(covariance.diagonal()) <= grain
    covariance[known], covariance[:, known] = 0.0, 0.0
    flat = spd.rank_deficient_factor(covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        if flat is None or flat.outside_range(innovation[None], size + np.abs(linearized.mean))[0]:
            return _unchanged(mean, root)
        w = flat.inverse
        away = innovation @ w
    if not w.shape[1]:
        return _unchanged(mean, root, 0.0)
    none = Sizes(np.zeros(w.shape[1]), np.zeros(w.shape[1]))
    noise = np.diag(linearized.noise) if linearized.noise.ndim == 1 else linearized.noise
    white = Linear(linearized.mean @ w, linearized.slope @ w, noise @ w, lambda: none)
    found = condition(mean, root, white, away)
    return found._replace(log_prob=found.log_prob - 0.5 * flat.logdet)


def backward_gain(S: Array, C: Array) -> Array:
    """Smoother gain Jᵀ (p, d) with cov(x, z) = J cov(z)."""
    if is_safe(S):
        return spd.inverse_factor(S.T).T @ C
    return np.asarray(np.linalg.lstsq(S, C, rcond=None)[0], dtype=np.float64)
