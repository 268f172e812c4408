"""Vectorized root finding by Chandrupatla's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likely.core.arrays import Array, Index

STEPS = 200


def crossings(f: Callable[[Array, Index], Array], low: Array, high: Array, close: float = 1e-15) -> Array:
    """Roots x (m,) between low and high of m functions with opposite signs there   (Chandrupatla 1997).

    f takes points and the indices of their functions. Inverse quadratic interpolation where it is safe, bisection
    elsewhere: about ten calls reach rounding.

    >>> crossings(lambda x, which: x**2 - np.array([2.0, 9.0])[which], np.zeros(2), np.full(2, 5.0)).round(6)
    array([1.414214, 3.      ])
    """
    at = np.arange(len(low))
    a, b = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    fa, fb = f(a, at), f(b, at)
    c, fc, t = a.copy(), fa.copy(), np.full(len(a), 0.5)
    out = np.where(np.abs(fa) < np.abs(fb), a, b)
    for _ in range(STEPS):
        if not len(at):
            break
        x = a + t * (b - a)
        fx = f(x, at)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        out[at] = best
        least = close * (1 + np.abs(best)) / np.maximum(np.abs(b - c), 1e-300)
        active = (least <= 0.5) & (fa != 0) & (np.abs(b - a) > 2 * close * (1 + np.abs(best)))
        with np.errstate(all="ignore"):
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            interpolated = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            t = np.where(safe & np.isfinite(interpolated), interpolated, 0.5)
        t = np.clip(t, np.minimum(least, 0.5), 1 - np.minimum(least, 0.5))
        at, a, b, c, fa, fb, fc, t = (part[active] for part in (at, a, b, c, fa, fb, fc, t))
    return out
