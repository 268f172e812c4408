"""Maximum-likelihood fit of the triangular distribution: for each mode at a value, the ends are a concave problem.

With the mode c at a value, s = 1/(c − a) and t = 1/(b − c), the log-likelihood is

    Σ_{x < c} w log(1 − s (c − x)) + Σ_{x > c} w log(1 − t (x − c)) + n (log s + log t − log(s + t)) + n log 2,

concave in (s, t): Newton's method finds the only maximum. For given ends, all modes are scored in one pass
(Oliver 1972). Of a few hundred values all modes are tried; of more, coordinate ascent in modes and ends, multi-start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask

STARTS = 9  # initial modes, at equally spaced quantiles
MANY = 1000  # values after thinning, for initialization
FEW = 256  # values up to which every mode is tried
STEPS = 100  # maximum number of Newton steps
TRIES = 5  # best-scoring modes whose ends are optimized in each round


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
        return best_of_all(x, w, low, high)
    tried, near = [old] if old[0] < x[0] and x[-1] < old[1] else [], None
    if len(x) > 2 * MANY:
        near = best_triangle(*_thinned(x, w), low, high, old)
        tried, at = [*tried, (near.low, near.high)], np.empty(0, np.intp)
    else:
        at = np.searchsorted(np.cumsum(w), np.linspace(0, 1, STARTS)).clip(0, len(x) - 1)
    modes = {*at.tolist(), *(int(modes_scored(x, w, *ends).argmax()) for ends in tried)}
    begun = sorted((with_mode(x, w, r, low, high, near) for r in sorted(modes)), key=lambda one: -one.score)
    return max((_coordinate_ascent(x, w, one, low, high) for one in begun[:3]), key=lambda one: one.score)


def best_of_all(x: Array, w: Array, low: float | None, high: float | None) -> Triangle:
    """Best triangle over all modes: the ends of all modes are optimized at once.

    The score is concave in (s, t), so it lies below its tangent plane: a mode whose tangent plane stays below the best
    score over all possible (s, t) is discarded.
    """
    best = max((with_mode(x, w, r, low, high) for r in (0, len(x) - 1)), key=lambda one: one.score)
    modes = np.arange(1, len(x) - 1)
    deviation = x - x[modes, None]
    sides = np.stack([np.maximum(-deviation, 0.0), np.maximum(deviation, 0.0)], axis=1)  # (R, 2, m)
    free = np.array([low is None, high is None])
    far = np.stack([x[modes] - x[0], x[-1] - x[modes]], axis=1)
    ends = np.stack([x[modes] - (x[0] if low is None else low), (x[-1] if high is None else high) - x[modes]], axis=1)
    at, top = np.where(free, 0.5, 1.0) / ends, 1.0 / far
    for _ in range(STEPS):
        value, first, second = _all_slopes(sides, w, at)
        leader = int(value.argmax()) if len(value) else 0
        floor = max(best.score, float(value[leader]) if len(value) else best.score)
        gain = np.where(free, np.where(first > 0, first * (top / at - 1), -first), 0.0).sum(axis=1)
        keep = (value + gain > floor) & (gain > 1e-12)
        if len(value) and value[leader] > best.score:
            best = max(best, with_mode(x, w, int(modes[leader]), low, high), key=lambda one: one.score)
        if not keep.any():
            break
        modes, sides, at, top = modes[keep], sides[keep], at[keep], top[keep]
        step = _limited_steps(at, top, first[keep], at * _newton_steps(first[keep], second[keep], free))
        at = _line_search(sides, w, at, value[keep], step)
    return best


def _newton_steps(first: Array, second: Array, free: Mask) -> Array:
    """Newton steps (R, 2) of the free parameters, relative to s and t."""
    own, cross = np.diagonal(second, axis1=1, axis2=2), second[:, :1, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        separate = np.where(free & (own < 0), -first / own, 0.0)
        if not free.all():
            return separate
        determinant = own.prod(axis=1, keepdims=True) - cross**2
        return np.where(determinant > 0, (cross * first[:, ::-1] - own[:, ::-1] * first) / determinant, separate)


def _limited_steps(at: Array, top: Array, first: Array, step: Array) -> Array:
    """Steps (R, 2) limited to 0 … top: each side separately where that still ascends, else both by one factor.

    A side with a nearly flat score may ask for a step of any size: it must not limit the other one.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = 0.99 * np.where(step > 0, top - at, at) / np.abs(step)
        size = np.minimum(1.0, np.where(step == 0, 1.0, room))
        cut = size * step
        up = (first * (cut / at)).sum(axis=1, keepdims=True) > 0
        return np.where(up, cut, size.min(axis=1, keepdims=True) * step)


def _line_search(sides: Array, w: Array, at: Array, value: Array, step: Array) -> Array:
    """Backtracking line search: steps are halved until no score decreases."""
    size = np.ones(len(at))
    for _ in range(40):
        new = at + size[:, None] * step
        down = ~(_all_scores(sides, w, new) >= value - 1e-15 * np.abs(value))
        if not down.any():
            return np.asarray(new)
        size = np.where(down, 0.5 * size, size)
    return np.asarray(np.where(down[:, None], at, new))


def _all_scores(sides: Array, w: Array, at: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.log1p(-sides * at[..., None]) @ w).sum(axis=1) - np.log((1 / at).sum(axis=1)))


def _all_slopes(sides: Array, w: Array, at: Array) -> tuple[Array, Array, Array]:
    """Scores (R,), gradients (R, 2) and Hessians (R, 2, 2) in (s, t), times s and t."""
    rest = at[:, ::-1] / at.sum(axis=1, keepdims=True)  # 1 − s/(s + t), without cancellation
    lost = sides * at[..., None]
    pull = lost / (1 - lost)
    second = np.repeat(rest.prod(axis=1), 4).reshape(-1, 2, 2)
    second[:, (0, 1), (0, 1)] = -rest * (2 - rest) - pull**2 @ w
    return _all_scores(sides, w, at), rest - pull @ w, second


def _thinned(x: Array, w: Array) -> tuple[Array, Array]:
    """About a thousand weighted means of neighboring values in place of all; the extremes stay."""
    group = np.minimum((np.cumsum(w) * MANY).astype(np.intp), MANY - 1)
    group[0], group[-1] = -1, MANY
    start = np.flatnonzero(np.diff(group, prepend=-2))
    share = np.add.reduceat(w, start)
    return np.add.reduceat(w * x, start) / share, share


def _coordinate_ascent(x: Array, w: Array, best: Triangle, low: float | None, high: float | None) -> Triangle:
    """Coordinate ascent in modes and ends, until neither improves."""
    tried: set[int] = {best.mode}
    while True:
        scores = modes_scored(x, w, best.low, best.high)
        new = [int(r) for r in _largest(scores, TRIES) if int(r) not in tried]
        tried.update(new)
        found = max([best, *(with_mode(x, w, r, low, high, best) for r in new)], key=lambda one: one.score)
        if found is best:
            return best
        best = found


def _largest(scores: Array, count: int) -> Index:
    count = min(count, len(scores))
    return np.argpartition(-scores, count - 1)[:count]


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


def with_mode(
    x: Array, w: Array, r: int, low: float | None, high: float | None, near: Triangle | None = None
) -> Triangle:
    """The best ends for the mode at value r; `near` is an initial triangle."""
    below, above = x[r] - x[:r], x[r + 1 :] - x[r]  # below is descending, above ascending
    free = np.array([low is None and r > 0, high is None and r < len(x) - 1])
    start = np.array(
        [_steepness(x[r], low, x[0], near and near.low), _steepness(x[r], high, x[-1], near and near.high)]
    )
    s, t, score = _newton((below, above), (w[:r], w[r + 1 :]), start, free)
    a = low if low is not None else float(x[r] - 1 / s if r else x[r])
    b = high if high is not None else float(x[r] + 1 / t if r < len(x) - 1 else x[r])
    return Triangle(a, r, b, score)


def _steepness(mode: float, known: float | None, farthest: float, guess: float | None) -> float:
    """Initial 1 / (mode − end): from the fixed end, from a guess beyond all values, or twice as far as these."""
    end = known if known is not None else guess
    if end is None or (known is None and not abs(mode - end) > abs(mode - farthest)):
        end = 2 * farthest - mode
    return float(1.0 / abs(mode - end)) if mode != end else np.inf


def _newton(
    deviation: tuple[Array, Array], w: tuple[Array, Array], at: Array, free: Mask
) -> tuple[float, float, float]:
    """Damped Newton method for the free ones of (s, t); infinite where a side has width 0."""
    value = _score(deviation, w, at)
    top = np.array([1.0 / d.max() if is_free else np.inf for d, is_free in zip(deviation, free, strict=True)])
    for _ in range(STEPS):
        first, second = _slopes(deviation, w, at)
        step = np.where(free, at, 0.0) * _newton_steps(first[None], second[None], free)[0]
        step = np.where(free, _limited_steps(at[None], top[None], first[None], step[None])[0], 0.0)
        size = 1.0
        while size > 1e-12 and not (found := _score(deviation, w, at + size * step)) >= value - 1e-15 * abs(value):
            size *= 0.5
        if size <= 1e-12:
            break
        at, value = at + size * step, found
        if (np.abs(step[free]) <= 1e-9 * at[free]).all():  # quadratic convergence: this step was exact
            break
    return float(at[0]), float(at[1]), float(value)


def _score(deviation: tuple[Array, Array], w: tuple[Array, Array], at: Array) -> float:
    s, t = at
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = sum(float(v @ np.log1p(-d * c)) for d, v, c in zip(deviation, w, (s, t), strict=True) if len(d))
    return sides - float(np.log(1 / s + 1 / t))


def _slopes(deviation: tuple[Array, Array], w: tuple[Array, Array], at: Array) -> tuple[Array, Array]:
    """Gradient and Hessian in (s, t), times s and t; rows of infinite parameters are not used."""
    rest = 1 / (1 + at / at[::-1])  # 1 − s/(s + t), without cancellation
    first, second = np.empty(2), np.full((2, 2), rest.prod())
    for j, (d, v, c) in enumerate(zip(deviation, w, at, strict=True)):
        lost = d * c if len(d) and np.isfinite(c) else np.zeros(len(d))
        pull = lost / (1 - lost)
        first[j] = rest[j] - v @ pull
        second[j, j] = -rest[j] * (2 - rest[j]) - v @ pull**2
    return first, second
