"""Two Gaussian vectors by one triangular factor: what is seen of the one says what to think of the other."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqrf

from likely.core.arrays import Array
from likely.maths import roots, spd
from likely.maths.special import LOG_2PI

GRAIN = 8 * float(np.finfo(np.float64).eps)  # deviations below this share of the numbers that they come from: rounding


class Linear(NamedTuple):
    """z = mean + slopeᵀ ξ + e of a state x = m + rootᵀ ξ, where ξ is white and e has covariance noiseᵀ noise."""

    mean: Array  # (p,)
    slope: Array  # (d, p)
    noise: Array  # (k, p)
    size: Array  # (p,): of the numbers that z was computed from
    grain: Array | None = None  # (p,): deviations up to this are their rounding, no variance; None: of that size

    def columns(self, which: Array) -> Linear:
        """The same for some entries of z."""
        grain = None if self.grain is None else self.grain[which]
        return Linear(self.mean[which], self.slope[:, which], self.noise[:, which], self.size[which], grain)

    @property
    def rounding(self) -> Array:
        """Standard deviations (p,) that say nothing."""
        return GRAIN * self.size if self.grain is None else self.grain

    @property
    def root(self) -> Array:
        """The triangular factor of the covariance of z."""
        return triangular(np.concatenate([self.slope, self.noise]))


class Seen(NamedTuple):
    """A state once z is seen: its mean and factor, where that lies in white coordinates, and log p(z)."""

    mean: Array  # (d,)
    root: Array  # (d, d)
    white: Array  # (d,): mean = m + rootᵀ white, with the factor from before
    log_prob: float


def triangular(rows: Array) -> Array:
    """The upper triangular R (d, d) with Rᵀ R = rowsᵀ rows and no negative diagonal: Householder, never a square.

    >>> triangular(np.array([[3.0], [4.0]])).tolist()
    [[5.0]]
    """
    n, d = rows.shape
    r = np.zeros((d, d))
    r[: min(n, d)] = dgeqrf(rows)[0][:d]  # LAPACK at first hand: np.linalg.qr takes three times as long for small ones
    r *= _upper(d)
    return np.where(r.diagonal() < 0, -1.0, 1.0)[:, None] * r


@lru_cache(maxsize=64)
def _upper(d: int) -> Array:
    return np.triu(np.ones((d, d)))


def root_of(covariance: Array) -> Array:
    """A factor (d, d) of a positive semi-definite matrix, rootᵀ root; directions below zero count as none."""
    try:
        return np.asarray(np.linalg.cholesky(covariance).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        return roots.root(covariance)


def grain_of(size: Array, covariance: Array) -> Array:
    """Deviations (p,) that are rounding of numbers of a size; none are where the law itself has noise.

    >>> grain_of(np.array([1e9, 1e9]), np.diag([1e-20, 0.0])).round(9).tolist()
    [-1.0, 1.776e-06]
    """
    return np.where(covariance.diagonal() > 0, -1.0, GRAIN * size)


def joint(near: Linear, root: Array) -> tuple[Array, Array, Array]:
    """S (p, p), C (p, d), R (d, d): cov z = SᵀS, cov(z, x) = SᵀC, cov(x | z) = RᵀR, from one factorisation."""
    p, k = near.slope.shape[1], len(near.noise)
    d = len(root)
    rows = np.zeros((d + k, p + d))
    rows[:d, :p], rows[:d, p:], rows[d:, :p] = near.slope, root, near.noise
    whole = triangular(rows)
    return whole[:p, :p], whole[:p, p:], whole[p:, p:]


def is_safe(root: Array) -> bool:
    """True if no column's variance given those before it is lost in rounding."""
    size = np.sqrt((root * root).sum(axis=0))
    return bool((np.abs(root.diagonal()) > 1e-7 * size).all())


def seen(mean: Array, root: Array, near: Linear, innovation: Array) -> Seen:
    """The state given z = near.mean + innovation   (Kalman 1960 in square roots; Kailath, Sayed and Hassibi 2000, 12).

    A covariance of z may be singular: the density is then that on its flat, and −inf off it, where nothing is learnt.
    Nor is anything where z is so far away that its density is 0 in numbers.
    """
    S, C, rest = joint(near, root)
    if not is_safe(S) or (S.diagonal() <= near.rounding).any():
        return _on_flat(mean, root, near, innovation)
    w = spd.inverse_factor(S.T)
    with np.errstate(over="ignore", invalid="ignore"):
        v = w @ innovation
        logs = float(-0.5 * (v @ v + len(v) * LOG_2PI) - np.log(S.diagonal()).sum())
    if not np.isfinite(logs):
        return _nothing(mean, root)
    return Seen(mean + v @ C, rest, near.slope @ (v @ w), logs)


def _nothing(mean: Array, root: Array, log_prob: float = -np.inf) -> Seen:
    """The belief as it was."""
    return Seen(mean, root, np.zeros(len(mean)), log_prob)


def _on_flat(mean: Array, root: Array, near: Linear, innovation: Array) -> Seen:
    """The same where some combination of z was known before it came."""
    covariance = near.root.T @ near.root
    known = np.sqrt(covariance.diagonal()) <= near.rounding
    covariance[known], covariance[:, known] = 0.0, 0.0
    flat = spd.degenerate(covariance)
    with np.errstate(over="ignore", invalid="ignore"):
        if flat is None or flat.off(innovation[None], near.size + np.abs(near.mean))[0]:
            return _nothing(mean, root)
        w = flat.inverse
        away = innovation @ w
    if not w.shape[1]:
        return _nothing(mean, root, 0.0)
    white = Linear(near.mean @ w, near.slope @ w, near.noise @ w, np.zeros(w.shape[1]))
    found = seen(mean, root, white, away)
    return found._replace(log_prob=found.log_prob - 0.5 * flat.logdet)


def backward_gain(S: Array, C: Array) -> Array:
    """Jᵀ (p, d) with cov(x, z) = J cov(z): how far a correction of z moves x."""
    if is_safe(S):
        return spd.inverse_factor(S.T).T @ C
    return np.asarray(np.linalg.lstsq(S, C, rcond=None)[0], dtype=np.float64)
