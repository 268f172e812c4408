"""Newton's method for maximization with a Hessian that is diagonal plus rank one, in a box."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Mask

ROUNDS = 200
TOLERANCE = (
    1e-9  # a Newton step of this size, a tenth of the one before: the remaining error is a hundredth of it or less
)
LONGEST = 2.0  # maximal step in each coordinate: these are logarithms of parameters
ROUNDING = 1e-13  # relative decrease of the objective that counts as rounding


class Spot(NamedTuple):
    """Objective at a point: its value, gradient, and Hessian −diag(sharp) + lift v vᵀ."""

    height: float
    slope: Array
    sharp: Array
    lift: float
    v: Array


def climb(hill: Callable[[Array], Spot], start: Array, low: float, high: float) -> Array:
    """Maximize within a box by Newton's method; coordinates at an active bound stay there.

    >>> def hill(t): return Spot(-float(((t - 1) ** 2).sum()), -2 * (t - 1), np.full(2, 2.0), 0.0, t)
    >>> climb(hill, np.array([0.0, 0.3]), -9.0, 0.5), climb(hill, np.zeros(2), -9.0, 9.0)
    (array([0.5, 0.5]), array([1., 1.]))
    """
    at, last_move = np.clip(start, low, high), np.inf
    spot = hill(at)
    for _ in range(ROUNDS):
        free = ~(((at <= low) & (spot.slope <= 0)) | ((at >= high) & (spot.slope >= 0)))
        if not free.any():
            break
        trial, trial_spot = _line_search(hill, at, spot, _newton_step(spot, free), low, high)
        moved = float(np.abs(trial - at).max())
        at, spot = trial, trial_spot
        size = 1 + float(np.abs(at).max())
        if moved <= 1e-15 * size or (moved <= TOLERANCE * size and not 0.1 * last_move < moved < 0.5 * last_move):
            break  # convergence is quadratic, until rounding dominates
        last_move = moved
    return at


def _line_search(
    hill: Callable[[Array], Spot], at: Array, spot: Spot, step: Array, low: float, high: float
) -> tuple[Array, Spot]:
    """Backtracking line search: the step is shortened until the objective does not decrease."""
    step = step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(40):
        trial = np.clip(at + step, low, high)
        trial_spot = hill(trial)
        near = float(np.abs(trial - at).max()) < 1e-6
        if trial_spot.height > spot.height or (near and trial_spot.height >= spot.height - ROUNDING * abs(spot.height)):
            return trial, trial_spot
        step = 0.25 * step
    return at, spot


def _newton_step(spot: Spot, free: Mask) -> Array:
    """Newton step in the free coordinates (Sherman–Morrison); without the rank-one term where that is not an ascent."""
    sharp = np.maximum(np.abs(spot.sharp), np.maximum(np.abs(spot.slope) / LONGEST, 1e-290))
    slope, v = np.where(free, spot.slope, 0.0), np.where(free, spot.v, 0.0)
    plain, bent = slope / sharp, v / sharp
    rest = 1.0 - spot.lift * float(v @ bent)
    return plain if rest <= 1e-14 else plain + bent * (spot.lift * float(v @ plain) / rest)
