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


class Objective(NamedTuple):
    """Objective at a point: its value, gradient, and Hessian −diag(curvature) + rank_one · v vᵀ."""

    value: float
    gradient: Array
    curvature: Array
    rank_one: float
    v: Array


def newton_maximize(objective: Callable[[Array], Objective], start: Array, low: float, high: float) -> Array:
    """Maximize within a box by Newton's method; coordinates at an active bound stay there.

    >>> def objective(t): return Objective(-float(((t - 1) ** 2).sum()), -2 * (t - 1), np.full(2, 2.0), 0.0, t)
    >>> newton_maximize(objective, np.array([0.0, 0.3]), -9.0, 0.5), newton_maximize(objective, np.zeros(2), -9.0, 9.0)
    (array([0.5, 0.5]), array([1., 1.]))
    """
    at, last_move = np.clip(start, low, high), np.inf
    here = objective(at)
    for _ in range(ROUNDS):
        free = ~(((at <= low) & (here.gradient <= 0)) | ((at >= high) & (here.gradient >= 0)))
        if not free.any():
            break
        trial, there = _line_search(objective, at, here, _newton_step(here, free), low, high)
        moved = float(np.abs(trial - at).max())
        at, here = trial, there
        size = 1 + float(np.abs(at).max())
        if moved <= 1e-15 * size or (moved <= TOLERANCE * size and not 0.1 * last_move < moved < 0.5 * last_move):
            break  # convergence is quadratic, until rounding dominates
        last_move = moved
    return at


def _line_search(
    objective: Callable[[Array], Objective], at: Array, here: Objective, step: Array, low: float, high: float
) -> tuple[Array, Objective]:
    """Backtracking line search: the step is shortened until the objective does not decrease."""
    step = step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(40):
        trial = np.clip(at + step, low, high)
        there = objective(trial)
        near = float(np.abs(trial - at).max()) < 1e-6
        if there.value > here.value or (near and there.value >= here.value - ROUNDING * abs(here.value)):
            return trial, there
        step = 0.25 * step
    return at, here


def _newton_step(here: Objective, free: Mask) -> Array:
    """Newton step in the free coordinates (Sherman–Morrison); without the rank-one term where that is not an ascent."""
    curvature = np.maximum(np.abs(here.curvature), np.maximum(np.abs(here.gradient) / LONGEST, 1e-290))
    gradient, v = np.where(free, here.gradient, 0.0), np.where(free, here.v, 0.0)
    plain, bent = gradient / curvature, v / curvature
    rest = 1.0 - here.rank_one * float(v @ bent)
    return plain if rest <= 1e-14 else plain + bent * (here.rank_one * float(v @ plain) / rest)
