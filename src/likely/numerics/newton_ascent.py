"""Newton's way up a smooth hill whose curvature is a diagonal and one product: a step costs no more than a slope."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Mask

ROUNDS = 200
SETTLED = 1e-9  # a Newton step of this size, a tenth of the one before: what is left is a hundredth of it or less
LONGEST = 2.0  # of a step, in each coordinate: these are logarithms of parameters
GRAIN = 1e-13  # of a height, by which it may fall: below it, rounding decides


class Spot(NamedTuple):
    """A point of a hill: its height, slope, and curvature −diag(sharp) + lift v vᵀ."""

    height: float
    slope: Array
    sharp: Array
    lift: float
    v: Array


def climb(hill: Callable[[Array], Spot], start: Array, low: float, high: float) -> Array:
    """The summit within a box, from a start in it; coordinates that press against the box stay at its edge.

    >>> def hill(t): return Spot(-float(((t - 1) ** 2).sum()), -2 * (t - 1), np.full(2, 2.0), 0.0, t)
    >>> climb(hill, np.array([0.0, 0.3]), -9.0, 0.5), climb(hill, np.zeros(2), -9.0, 9.0)
    (array([0.5, 0.5]), array([1., 1.]))
    """
    at, before = np.clip(start, low, high), np.inf
    spot = hill(at)
    for _ in range(ROUNDS):
        free = ~(((at <= low) & (spot.slope <= 0)) | ((at >= high) & (spot.slope >= 0)))
        if not free.any():
            break
        there, found = _stepped(hill, at, spot, _uphill(spot, free), low, high)
        moved = float(np.abs(there - at).max())
        at, spot = there, found
        size = 1 + float(np.abs(at).max())
        if moved <= 1e-15 * size or (moved <= SETTLED * size and not 0.1 * before < moved < 0.5 * before):
            break  # steps square their errors, until rounding moves them about
        before = moved
    return at


def _stepped(
    hill: Callable[[Array], Spot], at: Array, spot: Spot, step: Array, low: float, high: float
) -> tuple[Array, Spot]:
    """As far along a step as the hill does not fall."""
    step = step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(40):
        there = np.clip(at + step, low, high)
        found = hill(there)
        near = float(np.abs(there - at).max()) < 1e-6
        if found.height > spot.height or (near and found.height >= spot.height - GRAIN * abs(spot.height)):
            return there, found
        step = 0.25 * step
    return at, spot


def _uphill(spot: Spot, free: Mask) -> Array:
    """Newton's step among the free coordinates (Sherman and Morrison); without the product where that would go down."""
    sharp = np.maximum(np.abs(spot.sharp), np.maximum(np.abs(spot.slope) / LONGEST, 1e-290))
    slope, v = np.where(free, spot.slope, 0.0), np.where(free, spot.v, 0.0)
    plain, bent = slope / sharp, v / sharp
    rest = 1.0 - spot.lift * float(v @ bent)
    return plain if rest <= 1e-14 else plain + bent * (spot.lift * float(v @ plain) / rest)
