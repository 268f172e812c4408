"""Slopes by central differences: a little to both sides, all sides in one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.errors import DomainError, ShapeError, sentence

BESIDE = 1e-4  # of a standard deviation: truncation 1e-9, rounding 1e-12 where curves bend on the scale of the belief
CLOSEST = float(np.sqrt(np.finfo(np.float64).eps))  # of the state itself: half of its digits still differ


def steps(x: Array, spread: Array) -> Array:
    """How far to go to either side of x (d,), where each entry is known up to `spread` (d,)."""
    h = np.maximum(BESIDE * spread, CLOSEST * np.abs(x))
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


def given_slope(found: object, p: int, d: int, whose: str) -> Array:
    """A Jacobian that the user's function returned for a stack of one state: (1, p, d), or (p, d)."""
    a = np.asarray(found, dtype=np.float64)
    a = a[0] if a.ndim == 3 and len(a) == 1 else a
    if a.shape != (p, d):
        raise ShapeError(sentence(whose, f"a slope must have shape (1, {p}, {d}) or ({p}, {d})", a.shape))
    if not np.isfinite(a).all():
        raise DomainError(sentence(whose, "a slope must be finite", "NaN or infinity in it"))
    return a


def called(function: Callable[..., Any], x: Array, t: int, u: Any) -> Any:
    """function of as many of (x, t, u) as it takes."""
    try:
        takes = _takes(function)
    except TypeError:  # no hash
        takes = _takes.__wrapped__(function)
    return function(*(x, t, u)[:takes])


@lru_cache(maxsize=64)
def _takes(function: Callable[..., Any]) -> int:
    found = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in found):
        return 3
    needed = [p for p in found if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return max(1, min(len(needed), 3))
