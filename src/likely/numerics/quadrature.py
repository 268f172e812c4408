"""Adaptive Gauss–Kronrod quadrature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likely.core.arrays import Array

# 15-point Kronrod rule on (−1, 1); every second node is one of the 7-point Gauss rule, which gives the error estimate
_HALF = [0.207784955007898468, 0.405845151377397167, 0.586087235467691130, 0.741531185599394440, 0.864864423359769073,
         0.949107912342758525, 0.991455371120812640]  # fmt: skip
_WIDE = [0.209482141084727828, 0.204432940075298892, 0.190350578064785410, 0.169004726639267903, 0.140653259715525919,
         0.104790010322250184, 0.063092092629978553, 0.022935322010529225]  # fmt: skip
_NARROW = [0.417959183673469388, 0.381830050505118945, 0.279705391489276668, 0.129484966168869693]
NODES: Array = np.array([-x for x in reversed(_HALF)] + [0.0] + _HALF)
KRONROD: Array = np.array(list(reversed(_WIDE[1:])) + _WIDE)
GAUSS: Array = np.array(list(reversed(_NARROW[1:])) + _NARROW)
MOST = 1 << 15  # intervals at one depth
DEEPEST = 52  # bisections: the number of mantissa bits
INSIDE = 1 - 1e-13  # how near to the ends of an interval f is evaluated
UNSEEN = 1 - NODES[-1]  # share of half an interval between its last node and its end
ENDLESS = 0.98  # ratio of what remains at a pole from one bisection to the next, above which the integral diverges


def _to_ends() -> Array:
    """Weights (15, 2) that extrapolate a polynomial from the nodes to the ends of an interval (Lagrange)."""
    apart = NODES[:, None] - NODES
    np.fill_diagonal(apart, 1.0)
    return np.stack(
        [[np.delete(end - NODES, i).prod() / apart[i].prod() for i in range(len(NODES))] for end in (-INSIDE, INSIDE)],
        axis=1,
    )


TO_ENDS: Array = _to_ends()


def integrate(f: Callable[[Array], Array], edges: Array, tolerance: float = 1e-12) -> tuple[float, float]:
    """Adaptive Gauss–Kronrod integral of f over intervals with these edges, and a bound of its error.

    f takes points (m,) and returns finite values (m,). Intervals with too large an error are bisected. A jump costs
    some forty bisections and no accuracy, also between the last node of an interval and its end: f is evaluated at
    the ends, too. The error is infinite where bisecting an interval at a pole leaves as much as before.

    >>> value, error = integrate(lambda x: np.where(x > 1 / 3, np.exp(-x), 0.0), np.array([0.0, 1.0, 50.0]))
    >>> bool(abs(value - np.exp(-1 / 3)) < 1e-12)
    True
    """
    left, right = edges[:-1], edges[1:]
    total = error = 0.0
    sizes: list[float] = []  # of the open intervals, per bisection
    for depth in range(DEEPEST + 1):
        fine, gauss_error, end_error = _with_error(f, left, right)
        allowed = tolerance * max(abs(total + float(fine.sum())), 1.0) / 64
        wrong = np.maximum(gauss_error, end_error) > allowed
        narrow = (right - left <= 1e-15 * np.maximum(np.abs(left), np.abs(right))) | (depth == DEEPEST)
        open_ = wrong & ~narrow
        if open_.sum() > MOST // 2:
            open_[:] = False
        sizes.append(float(np.abs(fine[wrong]).sum()))
        bound = np.where(
            wrong, gauss_error, np.maximum(gauss_error, end_error)
        )  # next to a pole the value at the end is not informative
        bound = np.where(wrong & narrow, np.maximum(gauss_error, np.abs(fine)), bound)  # nothing is known of the inside
        total, error = total + float(fine[~open_].sum()), error + float(bound[~open_].sum())
        if not open_.any():
            break
        middle = 0.5 * (left[open_] + right[open_])
        left, right = np.concatenate([left[open_], middle]), np.concatenate([middle, right[open_]])
    return total, error + _unresolved(sizes)


def _unresolved(sizes: list[float]) -> float:
    """Bound on the integral over intervals that bisection did not resolve: a geometric series."""
    if len(sizes) < 20 or not min(sizes[-6], sizes[-16]) > 0:  # the last five intervals hold single numbers
        return 0.0
    ratio = (sizes[-6] / sizes[-16]) ** (1 / 10)
    return sizes[-6] * max(1.0, ratio / (1 - ratio)) if ratio < ENDLESS else np.inf


def _with_error(f: Callable[[Array], Array], left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Kronrod rule on each interval, and its differences from the Gauss rule and from f at the ends."""
    half, middle = 0.5 * (right - left), 0.5 * (right + left)
    at = np.concatenate([NODES, [-INSIDE, INSIDE]])
    values = f((middle[:, None] + half[:, None] * at).ravel()).reshape(len(left), len(at))
    inner, ends = values[:, : len(NODES)], values[:, len(NODES) :]
    fine = half * (inner @ KRONROD)
    end_error = half * UNSEEN * np.abs(ends - inner @ TO_ENDS).sum(axis=1)
    return fine, np.abs(fine - half * (inner[:, 1::2] @ GAUSS)), end_error
