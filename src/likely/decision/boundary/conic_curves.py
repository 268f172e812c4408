"""Conic sections as polylines, clipped exactly to a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.decision.boundary.conic import Canonical


@dataclass(frozen=True)
class Branch:
    """One branch of a conic: from a parameter to points z (n, 2), and back."""

    point: Callable[[Array], Array]
    parameter: Callable[[Array], Array]
    closed: bool = False
    mine: Callable[[Array], Any] = lambda z: np.ones(len(z), dtype=bool)  # mask of points of the conic on this branch


def curves(form: Canonical, kind: str, n: int, window: Array) -> list[Array]:
    """Polylines (m, 2) in x of the conic inside the window (2, 2): one row (low, high) per column of x."""
    out = []
    for branch in _branches(form, kind):
        for low, high in _inside(form, branch, window):
            out.append(form.to_x(branch.point(np.linspace(low, high, n))))
    return out


def _branches(form: Canonical, kind: str) -> list[Branch]:
    if kind in ("ellipse", "circle"):
        return [_ellipse(form)]
    if kind == "hyperbola":
        return [_hyperbola(form, side) for side in (1.0, -1.0)]
    if kind == "parabola":
        return [_parabola(form)]
    return [_straight(at, along) for at, along in straight_lines(form, kind)]


def _ellipse(form: Canonical) -> Branch:
    top, axes = form.top, np.sqrt(-form.level / form.a)
    return Branch(
        lambda t: top + axes * np.stack([np.cos(t), np.sin(t)], axis=-1),
        lambda z: np.arctan2((z[:, 1] - top[1]) / axes[1], (z[:, 0] - top[0]) / axes[0]),
        closed=True,
    )


def _hyperbola(form: Canonical, side: float) -> Branch:
    """One of two branches: cosh along its axis, sinh along the other."""
    top, axes = form.top, np.sqrt(np.abs(form.level / form.a))
    j = 0 if -form.level / form.a[0] > 0 else 1
    k = 1 - j

    def point(t: Array) -> Array:
        z = np.empty((len(t), 2))
        z[:, j], z[:, k] = top[j] + side * axes[j] * np.cosh(t), top[k] + axes[k] * np.sinh(t)
        return z

    return Branch(
        point, lambda z: np.arcsinh((z[:, k] - top[k]) / axes[k]), mine=lambda z: side * (z[:, j] - top[j]) > 0
    )


def _parabola(form: Canonical) -> Branch:
    j = 0 if form.curved[0] else 1
    k, top = 1 - j, form.top

    def point(t: Array) -> Array:
        z = np.empty((len(t), 2))
        z[:, j], z[:, k] = top[j] + t, -(form.a[j] * t**2 + form.level) / form.b[k]
        return z

    return Branch(point, lambda z: z[:, j] - top[j])


def _straight(at: Array, along: Array) -> Branch:
    return Branch(lambda t: at + t[:, None] * along, lambda z: (z - at) @ along / (along @ along))


def straight_lines(form: Canonical, kind: str) -> list[tuple[Array, Array]]:
    """A point and a direction, in z, of each straight line of a degenerate conic."""
    if kind == "crossing lines":
        ratio = np.sqrt(-form.a[0] / form.a[1])
        return [(form.top, np.array([1.0, sign * ratio])) for sign in (1.0, -1.0)]
    if kind == "line" and not form.curved.any():
        return [(-form.c * form.b / (form.b @ form.b), np.array([-form.b[1], form.b[0]]))]
    if kind in ("parallel lines", "line"):
        j = int(form.curved.argmax())
        away = np.sqrt(max(-form.level / form.a[j], 0.0))
        e, along = np.eye(2)[j], np.eye(2)[1 - j]
        return [(form.top + side * away * e, along) for side in ((1.0, -1.0) if away else (0.0,))]
    return []


def _inside(form: Canonical, branch: Branch, window: Array) -> list[tuple[float, float]]:
    """Intervals of the parameter whose points lie in the window, from intersections with its edges."""
    inverse = np.linalg.inv(
        form.back / np.abs(form.back).max()
    )  # rows of x back into z, at a size that cannot overflow
    scale = np.abs(form.back).max()
    cuts = (
        branch.parameter(crossings)
        if len(crossings := _crossings(form, branch, window, inverse, scale))
        else np.empty(0)
    )
    cuts = np.unique(cuts[np.isfinite(cuts)])
    if not len(cuts):
        start = branch.point(np.zeros(1))
        return [(-np.pi, np.pi)] if branch.closed and _within(form.to_x(start), window)[0] else []
    ends = np.append(cuts, cuts[0] + 2 * np.pi) if branch.closed else cuts
    middle = branch.point(0.5 * (ends[1:] + ends[:-1]))
    keep = _within(form.to_x(middle), window)
    return [(float(a), float(b)) for a, b, k in zip(ends[:-1], ends[1:], keep, strict=True) if k]


def _crossings(form: Canonical, branch: Branch, window: Array, inverse: Array, scale: float) -> Array:
    """Points z (m, 2) of one branch on the four edges of the window."""
    corners = np.array([[window[0, i], window[1, j]] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))])
    z = ((corners - form.origin) / scale) @ inverse
    found = [_on_edge(form, z[i], z[(i + 1) % 4]) for i in range(4)]
    points = np.concatenate(found)
    return points[branch.mine(points)] if len(points) else points


def _on_edge(form: Canonical, start: Array, end: Array) -> Array:
    v = end - start
    A = float(form.a @ v**2)
    B = float((2 * form.a * start + form.b) @ v)
    c = float(form.value(start[None])[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        half = -0.5 * (B + (1.0 if B >= 0 else -1.0) * np.sqrt(np.float64(B * B - 4 * A * c)))
        s = np.array([np.float64(half) / A, np.float64(c) / half])
    s = s[np.isfinite(s) & (s >= 0) & (s <= 1)]
    return np.asarray(start + s[:, None] * v)


def _within(x: Array, window: Array) -> Any:
    slack = 1e-9 * (window[:, 1] - window[:, 0])
    return ((x >= window[:, 0] - slack) & (x <= window[:, 1] + slack)).all(axis=1)
