"""Two Gaussian vectors by one triangular factor: what is seen of the one says what to think of the other."""

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

GRAIN = 8 * float(np.finfo(np.float64).eps)  # deviations below this share of the numbers that they come from: rounding


class Sizes(NamedTuple):
    """Of the numbers that z was computed from, and which of its deviations are no more than their rounding."""

    size: Array  # (p,)
    grain: Array  # (p,): deviations up to this are rounding, no variance; negative where none is


class Linear(NamedTuple):
    """z = mean + slopeᵀ ξ + e of a state x = m + rootᵀ ξ, where ξ is white and e has covariance noiseᵀ noise."""

    mean: Array  # (p,)
    slope: Array  # (d, p)
    noise: Array  # (k, p), or (p,): standard deviations of independent entries
    sizes: Callable[[], Sizes]  # found when they are asked for: rarely
    noisy: Callable[[], bool] = lambda: False  # True: each entry of z has noise of its own: no deviation is rounding

    def columns(self, at: Index | slice) -> Linear:
        """The same for some entries of z."""
        mean, slope, noise = self.mean[at], self.slope[:, at], self.noise[..., at]
        return Linear(mean, slope, noise, lambda: Sizes(*(a[at] for a in self.sizes())), self.noisy)

    @property
    def root(self) -> Array:
        """The triangular factor of the covariance of z."""
        return _factor(self.stacked(self.slope.shape[1]))

    def stacked(self, width: int) -> Array:
        """The slope over the noise (d + k, p), and columns of zeros up to a width, in Fortran's order."""
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


class Seen(NamedTuple):
    """A state once z is seen: its mean and factor, log p(z), and the line and the numbers by which they were found."""

    mean: Array  # (d,)
    root: Array  # (d, d)
    log_prob: float
    slope: Array  # (d, p)
    weight: tuple[Array, Array] | None  # S and v with S weight = v; None: nothing was learned

    @property
    def white(self) -> Array:
        """Where the mean lies in white coordinates (d,): mean = m + rootᵀ white, with the factor from before."""
        if self.weight is None:
            return np.zeros(len(self.mean))
        S, v = self.weight
        return np.asarray(self.slope.dot(dtrtrs(S, v)[0]))


def triangular(rows: Array) -> Array:
    """The upper triangular R (d, d) with Rᵀ R = rowsᵀ rows and no negative diagonal: Householder, never a square.

    >>> triangular(np.array([[3.0], [4.0]])).tolist()
    [[5.0]]
    """
    return _factor(np.array(rows, order="F"))


def _factor(rows: Array) -> Array:
    """The same for rows in Fortran's order, which are overwritten."""
    n, d = rows.shape
    if n < d:
        rows = np.asfortranarray(np.concatenate([rows, np.zeros((d - n, d))]))
    # LAPACK directly: np.linalg.qr takes three times as long for small ones
    upper = dgeqrfp(rows, overwrite_a=1)[0][:d].copy()  # in C's order, as the compiled loops take it
    np.putmask(upper, _below(d), 0.0)
    return upper


@lru_cache(maxsize=64)
def _below(d: int) -> Mask:
    return np.tril(np.ones((d, d), dtype=bool), -1)


def root_of(covariance: Array) -> Array:
    """A factor (d, d) of a positive semi-definite matrix, rootᵀ root; directions below zero count as none."""
    lower, failed = dpotrf(covariance, lower=1)  # LAPACK directly: np.linalg.cholesky takes four times as long
    return covariance_roots.root(covariance) if failed else np.asarray(lower.T)


def grain_of(size: Array, covariance: Array) -> Array:
    """Deviations (p,) that are rounding of numbers of a size; none are where the distribution itself has noise.

    >>> grain_of(np.array([1e9, 1e9]), np.diag([1e-20, 0.0])).round(9).tolist()
    [-1.0, 1.776e-06]
    """
    return np.where(covariance.diagonal() > 0, -1.0, GRAIN * size)


def joint(near: Linear, root: Array) -> tuple[Array, Array, Array]:
    """S (p, p), C (p, d), R (d, d): cov z = SᵀS, cov(z, x) = SᵀC, cov(x | z) = RᵀR, from one factorization."""
    d, p = near.slope.shape
    rows = near.stacked(p + d)
    rows[:d, p:] = root
    whole = _factor(rows)
    return whole[:p, :p], whole[:p, p:], whole[p:, p:]


def is_safe(root: Array) -> bool:
    """True if no column's variance given those before it is lost in rounding."""
    if len(root) == 1:
        return bool(root[0, 0])
    size = np.sqrt((root * root).sum(axis=0))
    return bool((np.abs(root.diagonal()) > 1e-7 * size).all())


def seen(mean: Array, root: Array, near: Linear, innovation: Array) -> Seen:
    """The state given z = near.mean + innovation   (Kalman 1960 in square roots; Kailath, Sayed and Hassibi 2000, 12).

    A covariance of z may be singular: the density is then that on its flat, and −inf off it, where nothing is learned.
    Nor is anything where z is so far away that its density is 0 in numbers.
    """
    S, C, rest = joint(near, root)
    if not is_safe(S) or not (near.noisy() or (S.diagonal() > near.sizes().grain).all()):
        return _on_flat(mean, root, near, innovation)
    v = dtrtrs(S, innovation, trans=1)[0]
    logs = -0.5 * (float(np.vdot(v, v)) + len(v) * LOG_2PI) - sum(map(math.log, S.diagonal().tolist()))
    if not math.isfinite(logs):
        return _nothing(mean, root)
    return Seen(mean + v.dot(C), rest.copy(), logs, near.slope, (S, v))


def _nothing(mean: Array, root: Array, log_prob: float = -np.inf) -> Seen:
    """The belief as it was."""
    return Seen(mean, root, log_prob, np.empty((len(mean), 0)), None)


def _on_flat(mean: Array, root: Array, near: Linear, innovation: Array) -> Seen:
    """The same where some combination of z was known before it came."""
    covariance, (size, grain) = near.root.T @ near.root, near.sizes()
    known = np.sqrt(covariance.diagonal()) <= grain
    covariance[known], covariance[:, known] = 0.0, 0.0
    flat = spd.degenerate(covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        if flat is None or flat.off(innovation[None], size + np.abs(near.mean))[0]:
            return _nothing(mean, root)
        w = flat.inverse
        away = innovation @ w
    if not w.shape[1]:
        return _nothing(mean, root, 0.0)
    none = Sizes(np.zeros(w.shape[1]), np.zeros(w.shape[1]))
    noise = np.diag(near.noise) if near.noise.ndim == 1 else near.noise
    white = Linear(near.mean @ w, near.slope @ w, noise @ w, lambda: none)
    found = seen(mean, root, white, away)
    return found._replace(log_prob=found.log_prob - 0.5 * flat.logdet)


def backward_gain(S: Array, C: Array) -> Array:
    """Jᵀ (p, d) with cov(x, z) = J cov(z): how far a correction of z moves x."""
    if is_safe(S):
        return spd.inverse_factor(S.T).T @ C
    return np.asarray(np.linalg.lstsq(S, C, rcond=None)[0], dtype=np.float64)
