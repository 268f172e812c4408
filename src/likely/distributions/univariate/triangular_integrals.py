"""Integrals of a linear function times the logarithm of another."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from likely.core.arrays import Array

NODES, SHARES = np.polynomial.legendre.leggauss(24)
LIKE = 1 / 3  # ratio of heights above which Gauss–Legendre quadrature is exact to rounding; below, the closed form is


def mean_log_of_lines(cuts: Array, p: tuple[Array, Array], q: tuple[Array, Array]) -> Array:
    """Σ over pieces of ∫ p(x) log q(x) dx, both linear: cuts (m + 1, ...), heights (m, ...) at the pieces' ends."""
    width = np.diff(cuts, axis=0)
    p0, p1 = p
    q0, q1 = (np.maximum(end, 0.0) for end in q)
    small, large = np.minimum(q0, q1), np.maximum(q0, q1)
    like = small > LIKE * large
    each = np.where(like, _smooth(p0, p1, np.where(like, q0, 1.0), np.where(like, q1, 1.0)), 0.0)
    steep = ~like & (large > 0)
    each = np.where(steep, _steep(p0, p1, np.where(steep, q0, 0.0), np.where(steep, q1, 1.0)), each)
    return np.asarray(np.where(width > 0, width * each, 0.0).sum(axis=0))


def _smooth(p0: Array, p1: Array, q0: Array, q1: Array) -> Array:
    u = 0.5 * (NODES + 1)
    line, log = p0[..., None] * (1 - u) + p1[..., None] * u, np.log(q0[..., None] * (1 - u) + q1[..., None] * u)
    return np.asarray((line * log) @ (0.5 * SHARES))


def _steep(p0: Array, p1: Array, q0: Array, q1: Array) -> Array:
    """In q: ∫ (α + β q) log q dq / (q₁ − q₀), with p = α + β q."""
    rise = q1 - q0
    beta = (p1 - p0) / rise
    alpha = p0 - beta * q0
    first = xlogy(q1, q1) - xlogy(q0, q0) - rise
    second = 0.5 * (xlogy(q1 * q1, q1) - xlogy(q0 * q0, q0)) - 0.25 * (q1 + q0) * rise
    return np.asarray((alpha * first + beta * second) / rise)
