"""Fixed-lag smoothing: the state of a frame from what was seen until a few frames later."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.statespace.linear.kalman_filter import Kept, Series, filtered, locked
from likely.statespace.linear.kalman_smoother import smoothed
from likely.statespace.linear.state_belief import Loose, loose_moments


def lagged(model: Any, series: Series, before: int, lag: int) -> tuple[Kept, Array, Array]:
    """Fixed-lag smoothing of a part: what was kept, means, covariances.

    Variances are infinite where the frames up to `lag` later do not yet say where the state began.
    """
    from likely.statespace.linear import _loops as kalman

    m, kept = model.matrices, filtered(model, series)
    out, cov = np.empty_like(kept.means), np.empty_like(kept.roots)
    push, offsets = locked(series.push), locked(series.offsets)
    kalman.lag_pass(m.A, m.N, push, offsets, 0, kept.means, kept.roots, kept.same, lag, out, cov)
    for n in np.flatnonzero(kept.tied > 0).tolist():
        a, b = series.offsets[n : n + 2].tolist()
        _before_known(model, series.cut(n, n + 1), int(kept.tied[n]), lag, out[a:b], cov[a:b])
    return kept, out, cov


def _before_known(model: Any, one: Series, tied: int, lag: int, out: Array, cov: Array) -> None:
    """Frames before the start was known, each from the frames up to `lag` later; of which some may know it."""
    last, length = min(tied, len(one.y)) - 1, len(one.y)
    so_far = _loose_beliefs(model, one, last) if min(lag, length - 1) < tied else []
    steps = [_step(model, belief, t + 1) for t, belief in enumerate(so_far)]
    for t in range(last + 1):
        end = min(t + lag, length - 1)
        if end < tied:
            out[t], cov[t] = loose_moments(_looked_back(model, one, so_far, steps, t, end))
            continue
        mean, spread = smoothed(model, _until(one, end + 1), lag_one=False)[1:3]
        out[t], cov[t] = mean[t], spread[t]


def _until(one: Series, end: int) -> Series:
    """The first frames of one sequence."""
    push = one.push if one.inputs is None else one.push[:end]
    return Series(one.y[:end], np.array([0, end]), push, None if one.inputs is None else one.inputs[:end])


def _loose_beliefs(model: Any, one: Series, last: int) -> list[Loose]:
    """What is known of state and start after each frame, up to frame `last`; the start is unknown in all of them."""
    found, belief = [], model.initial_belief()
    for t in range(last + 1):
        belief = belief if not t else model._moved(belief, np.ascontiguousarray(_push(one, t)))
        belief, _ = model._updated(belief, np.ascontiguousarray(one.y[t : t + 1]))
        found.append(belief.loose)
    return found


def _push(one: Series, t: int) -> Array:
    return one.push if one.inputs is None else one.push[t : t + 1]


def _step(model: Any, belief: Loose, t: int) -> tuple[Array, Array]:
    """Gain and root of what stays unknown, of x_{t−1} given x_t and the start."""
    from likely.statespace.linear import _loops as kalman

    m, d = model.matrices, model.states
    J, left = np.empty((d, d)), np.empty((d, d))
    kalman.smoother_gain_one(m.A, m.N, t, np.array(belief.root), J, left)
    return J, left


def _looked_back(
    model: Any, one: Series, so_far: list[Loose], steps: list[tuple[Array, Array]], t: int, end: int
) -> Loose:
    """x_t = mean + spread η given frames 0 … end, η as these know it: a smoother's steps back, given the start."""
    known, A = so_far[end], model.matrices.A
    mean, spread, root = known.mean, known.spread[:, : known.free], known.root
    for g in range(end - 1, t - 1, -1):
        (J, left), a = steps[g], A[min(g + 1, len(A) - 1)]
        m, M = _in_terms_of(known, so_far[g])
        mean = m + J @ (mean - _push(one, g + 1)[0] - a @ m)
        spread = M + J @ (spread - a @ M)
        root = np.linalg.qr(np.vstack([root @ J.T, left])).R
    wide = np.zeros_like(known.spread)
    wide[:, : known.free] = spread
    return known.replace(mean=mean, root=root, spread=wide)


def _in_terms_of(later: Loose, earlier: Loose) -> tuple[Array, Array]:
    """Mean and spread of an earlier state for the η of a later frame: δ = point + basis η is the same for both."""
    M, B = earlier.spread[:, : earlier.free], earlier.basis[:, : earlier.free]
    mean = earlier.mean + M @ (B.T @ (later.point - earlier.point))
    return mean, M @ (B.T @ later.basis[:, : later.free])
