"""Maximum-likelihood fit of the triangular distribution: for each mode at a value, the ends are a concave problem.

With the mode c at a value, s = 1/(c − a) and t = 1/(b − c), the log-likelihood is

    Σ_{x < c} w log(1 − s (c − x)) + Σ_{x > c} w log(1 − t (x − c)) + n (log s + log t − log(s + t)) + n log 2,

concave in (s, t): Newton's method finds the only maximum, for a grid of modes at once. For given ends, all modes are
scored in one pass (Oliver 1972). Of a few hundred values all are tried as modes; of more, a grid of quantiles, and then
the best modes for the ends found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask

GRID = 33  # modes at equally spaced quantiles, to begin with
FEW = 256  # values up to which every mode is tried
MANY = 1000  # values after thinning, for the grid
TRIES = 8  # best-scoring modes whose ends are optimized in each round
STEPS = 100  # maximum number of Newton steps


class Triangle(NamedTuple):
    """Ends and mode, and the mean log-likelihood (less log 2)."""

    low: float
    mode: int
    high: float
    score: float


def best_triangle(x: Array, weight: Array, low: float | None, high: float | None, old: tuple[float, float]) -> Triangle:
    """Maximum-likelihood triangle for at least two sorted values; fixed ends are given, `old` are ends to try."""
    w = weight / weight.sum()
    if low is not None and high is not None:  # nothing else is free: one pass scores all modes
        scores = modes_scored(x, w, low, high)
        return Triangle(low, int(scores.argmax()), high, float(scores.max()))
    if len(x) <= FEW:
        return best_of_modes(x, w, np.arange(len(x)), low, high)
    small, share = _thinned(x, w) if len(x) > 2 * MANY else (x, w)
    grid = np.searchsorted(np.cumsum(share), np.linspace(0, 1, GRID)).clip(0, len(small) - 1)
    begun = best_of_modes(small, share, np.unique(grid), low, high)
    ends = [(begun.low, begun.high)] + ([old] if old[0] < x[0] and x[-1] < old[1] else [])
    modes = np.concatenate([_largest(modes_scored(x, w, *each)) for each in ends])
    best = best_of_modes(x, w, np.unique(modes), low, high)
    while True:
        found = best_of_modes(x, w, _largest(modes_scored(x, w, best.low, best.high)), low, high)
        if not found.score > best.score:
            return best
        best = found


def _largest(scores: Array) -> Index:
    """The modes of the largest scores."""
    return np.argpartition(-scores, TRIES - 1)[:TRIES]


def _thinned(x: Array, w: Array) -> tuple[Array, Array]:
    """About a thousand weighted means of neighboring values in place of all; the extremes stay."""
    group = np.minimum((np.cumsum(w) * MANY).astype(np.intp), MANY - 1)
    group[0], group[-1] = -1, MANY
    start = np.flatnonzero(np.diff(group, prepend=-2))
    share = np.add.reduceat(w, start)
    return np.add.reduceat(w * x, start) / share, share


def modes_scored(x: Array, w: Array, low: float, high: float) -> Array:
    """Mean log-likelihood (less log 2) with the mode at each value, for given ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = np.log(x - low), np.log(high - x)
        up_to, from_ = np.cumsum(w * left) - w * left, np.cumsum((w * right)[::-1])[::-1] - w * right
        below = np.cumsum(w) - w
        above = np.maximum(1.0 - below - w, 0.0)
        rising, falling = up_to - below * left, from_ - above * right
    # an end on a value leaves no slope on its side: then only a mode there is possible
    rising[0], falling[-1] = 0.0, 0.0
    scores = rising + falling - np.log(high - low)
    return np.where(np.isnan(scores), -np.inf, scores)


def best_of_modes(x: Array, w: Array, modes: Index, low: float | None, high: float | None) -> Triangle:
    """Best triangle with its mode at one of these values: the ends of all modes are optimized at once.

    The score is concave in (s, t), so it lies below its tangent plane: a mode whose tangent plane stays below the best
    score over all possible (s, t) is discarded.
    """
    deviation = x - x[modes, None]
    sides = np.stack([np.maximum(-deviation, 0.0), np.maximum(deviation, 0.0)], axis=1)  # (R, 2, m)
    far = sides.max(axis=2)
    known = [far[:, 0] if low is None else x[modes] - low, far[:, 1] if high is None else high - x[modes]]
    end = np.stack(known, axis=1)  # distances to the ends that are not free; 0 where the mode is an end
    free = np.array([low is None, high is None]) & (far > 0)
    with np.errstate(divide="ignore"):
        top = 1.0 / far
        at = np.where(free, 0.5 * top, np.where(end > 0, 1.0 / end, 1.0))
    best = Triangle(0.0, 0, 0.0, -np.inf)
    for turn in range(STEPS):
        value, first, second = _slopes(sides, w, at, free, end)
        with np.errstate(invalid="ignore"):
            gain = np.where(free, np.where(first > 0, first * (top / at - 1), -first), 0.0).sum(axis=1)
            step = _limited(at, top, first, np.where(free, at * _newton(first, second, free), 0.0), free)
        new = _line_search(sides, w, at, free, end, value, step)
        done = (np.abs(new - at) <= 1e-9 * at).all(axis=1) | (turn == STEPS - 1)  # quadratic: this step was exact
        if done.any():
            scores = np.where(done, _scores(sides, w, new, free, end), -np.inf)
            k = int(scores.argmax())
            if scores[k] > best.score:
                a, b = _ends(float(x[modes[k]]), new[k], free[k], end[k], low, high)
                best = Triangle(a, int(modes[k]), b, float(scores[k]))
        keep = ~done & (value + gain >= max(best.score, float(value.max())))
        if not keep.any():
            return best
        modes, sides, at, top, free, end = modes[keep], sides[keep], new[keep], top[keep], free[keep], end[keep]
    return best


def _ends(mode: float, at: Array, free: Mask, end: Array, low: float | None, high: float | None) -> tuple[float, float]:
    """The ends of one triangle."""
    width = np.where(free, 1.0 / at, end)
    return mode - float(width[0]) if low is None else low, mode + float(width[1]) if high is None else high


def _newton(first: Array, second: Array, free: Mask) -> Array:
    """Newton steps (R, 2) of the free parameters, relative to s and t."""
    own, cross = np.diagonal(second, axis1=1, axis2=2), second[:, :1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        separate = np.where(free & (own < 0), -first / own, 0.0)
        determinant = own.prod(axis=1, keepdims=True) - cross**2
        both = free.all(axis=1, keepdims=True) & (determinant > 0)
        return np.where(both, (cross * first[:, ::-1] - own[:, ::-1] * first) / determinant, separate)


def _limited(at: Array, top: Array, first: Array, step: Array, free: Mask) -> Array:
    """Steps (R, 2) limited to 0 … top: each side separately where that still ascends, else both by one factor.

    A side with a nearly flat score may ask for a step of any size: it must not limit the other one.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = 0.99 * np.where(step > 0, top - at, at) / np.abs(step)
        size = np.minimum(1.0, np.where(free & (step != 0), room, 1.0))
        cut = size * step
        up = (first * (cut / at)).sum(axis=1, keepdims=True) > 0
        return np.where(up, cut, size.min(axis=1, keepdims=True) * step)


def _line_search(sides: Array, w: Array, at: Array, free: Mask, end: Array, value: Array, step: Array) -> Array:
    """Backtracking line search: steps are halved until no score decreases."""
    size = np.ones(len(at))
    for _ in range(40):
        new = at + size[:, None] * step
        down = ~(_scores(sides, w, new, free, end) >= value - 1e-15 * np.abs(value))
        if not down.any():
            return np.asarray(new)
        size = np.where(down, 0.5 * size, size)
    return np.asarray(np.where(down[:, None], at, new))


def _scores(sides: Array, w: Array, at: Array, free: Mask, end: Array) -> Array:
    """Mean log-likelihoods (less log 2) (R,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(free, 1.0 / at, end).sum(axis=1)
        return np.asarray((np.log1p(-sides * at[..., None]) @ w).sum(axis=1) - np.log(width))


def _slopes(sides: Array, w: Array, at: Array, free: Mask, end: Array) -> tuple[Array, Array, Array]:
    """Scores (R,), gradients (R, 2) and Hessians (R, 2, 2) in (s, t), times s and t."""
    width = np.where(free, 1.0 / at, end)
    rest = width / width.sum(axis=1, keepdims=True)  # 1 − s/(s + t), without cancellation
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = sides * at[..., None]
        pull = lost / (1 - lost)
    second = np.repeat(rest.prod(axis=1), 4).reshape(-1, 2, 2)
    second[:, (0, 1), (0, 1)] = -rest * (2 - rest) - pull**2 @ w
    return _scores(sides, w, at, free, end), rest - pull @ w, second
