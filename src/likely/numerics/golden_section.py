"""Golden-section search for the minimum of a unimodal function (Kiefer 1953)."""

from __future__ import annotations

from collections.abc import Callable

GOLDEN = (5.0**0.5 - 1) / 2


def least(f: Callable[[float], float], low: float, high: float, width: float = 0.0, steps: int = 80) -> float:
    """Minimize f over low … high by golden-section search, until the bracket is `width` or after `steps` steps.

    >>> round(least(lambda x: (x - 0.3) ** 2, 0.0, 1.0), 6)
    0.3
    """
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    fa, fb = f(a), f(b)
    for _ in range(steps):
        if high - low <= width:
            break
        if fa <= fb:
            high, b, fb = b, a, fa
            a = high - GOLDEN * (high - low)
            fa = f(a)
        else:
            low, a, fa = a, b, fb
            b = low + GOLDEN * (high - low)
            fb = f(b)
    return 0.5 * (low + high)
