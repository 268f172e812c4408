"""Jacobians by central differences, with all points in one call, or from a user's function."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array, all_finite
from likely.core.errors import DomainError, ShapeError, sentence
from likely.statespace.nonlinear.function_arguments import named

JACOBIAN_STEP = (
    1e-4  # step in standard deviations: truncation 1e-9, rounding 1e-12 if functions vary on the belief's scale
)
GRAIN = float(np.finfo(np.float64).eps)  # relative resolution of the state
CLOSEST = 256  # smallest step in units of the resolution: Jacobians to some thousandths if a belief is very narrow


def steps(x: Array, spread: Array) -> Array:
    """Step sizes of central differences at x (d,), with standard deviations `spread` (d,).

    Truncation grows as (h / spread)², rounding falls as grain / h: both are equal at h³ = grain · spread².
    """
    grain = GRAIN * np.abs(x)
    h = np.maximum(np.maximum(JACOBIAN_STEP * spread, np.cbrt(grain * spread) * np.cbrt(spread)), CLOSEST * grain)
    return np.where(h > 0, h, 1e-6)


def displaced(x: Array, spread: Array) -> Array:
    """x, and x plus and minus a step along each axis: (1 + 2d, d)."""
    h = np.diag(steps(x, spread))
    return np.concatenate([x[None], x + h, x - h])


def slope(points: Array, difference: Array) -> Array:
    """The Jacobian (p, d), error O(h²), from f(x + h e_j) − f(x − h e_j) (d, p) at the `displaced` points.

    >>> p = displaced(np.array([2.0]), np.array([1.0]))
    >>> slope(p, (p**3)[1:2] - (p**3)[2:3]).round(6)
    array([[12.]])
    """
    d = points.shape[1]
    apart = np.diagonal(points[1 : d + 1] - points[d + 1 :])  # steps after rounding
    return difference.T / apart


def given_slope(found: object, shape: tuple[int, int], whose: str, what: str, t: int) -> Array:
    """Validated Jacobian of the user's function for a stack of one state: (1, p, d), or (p, d).

    The other arguments are for error messages: the filter's name, "transition" or "observation", and the frame.
    """
    a = np.asarray(found, dtype=np.float64)
    a = a[0] if a.ndim == 3 and len(a) == 1 else a
    if a.shape != shape:
        expected = f"a Jacobian must have shape {(1, *shape)} or {shape}"
        raise ShapeError(sentence(named(whose, f"{what}_jacobian", t), expected, a.shape))
    if not all_finite(a):
        raise DomainError(sentence(named(whose, f"{what}_jacobian", t), "a Jacobian must be finite", "NaN or infinity"))
    return a
