"""Slopes by central differences: a little to both sides, all sides in one call."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, all_finite
from likely.core.errors import DomainError, ShapeError, sentence
from likely.statespace.nonlinear.function_arguments import named

BESIDE = 1e-4  # of a standard deviation: truncation 1e-9, rounding 1e-12 where curves bend on the scale of the belief
GRAIN = float(np.finfo(np.float64).eps)  # of the state itself: what numbers can tell apart
CLOSEST = 256  # grains: slopes to some thousandths, where a belief is so narrow that no step is better


def steps(x: Array, spread: Array) -> Array:
    """How far to go to either side of x (d,), where each entry is known up to `spread` (d,).

    Truncation grows as (h / spread)², rounding falls as grain / h: they meet at h³ = grain · spread².
    """
    grain = GRAIN * np.abs(x)
    h = np.maximum(np.maximum(BESIDE * spread, np.cbrt(grain * spread) * np.cbrt(spread)), CLOSEST * grain)
    return np.where(h > 0, h, 1e-6)


def displaced(x: Array, spread: Array) -> Array:
    """x itself, and x moved forth and back along each axis: (1 + 2d, d)."""
    h = np.diag(steps(x, spread))
    return np.concatenate([x[None], x + h, x - h])


def slope(points: Array, difference: Array) -> Array:
    """The Jacobian (p, d), error O(h²), from f(x + h e_j) − f(x − h e_j) (d, p) at the `displaced` points.

    >>> p = displaced(np.array([2.0]), np.array([1.0]))
    >>> slope(p, (p**3)[1:2] - (p**3)[2:3]).round(6)
    array([[12.]])
    """
    d = points.shape[1]
    apart = np.diagonal(points[1 : d + 1] - points[d + 1 :])  # what was moved, not what was asked for
    return difference.T / apart


def given_slope(found: object, shape: tuple[int, int], whose: str, what: str, t: int) -> Array:
    """A Jacobian that the user's function returned for a stack of one state: (1, p, d), or (p, d).

    The rest is for errors: the filter's name, what this is the slope of ("transition" or "observation"), and the frame.
    """
    a = np.asarray(found, dtype=np.float64)
    a = a[0] if a.ndim == 3 and len(a) == 1 else a
    if a.shape != shape:
        expected = f"a slope must have shape {(1, *shape)} or {shape}"
        raise ShapeError(sentence(named(whose, f"{what}_slope", t), expected, a.shape))
    if not all_finite(a):
        raise DomainError(sentence(named(whose, f"{what}_slope", t), "a slope must be finite", "NaN or infinity in it"))
    return a
