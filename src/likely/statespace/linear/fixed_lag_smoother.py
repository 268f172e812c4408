"""Fixed-lag smoother: p(x_t | y_1 … y_{t + lag})."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.statespace.linear.diffuse_initialization import DiffusePart, diffuse_moments
from likely.statespace.linear.kalman_filter import FilterOutput, Series, filter_part, read_only
from likely.statespace.linear.kalman_smoother import smooth_part


def fixed_lag_part(model: Any, series: Series, before: int, lag: int) -> tuple[FilterOutput, Array, Array]:
    """Fixed-lag smoother of a part: filter output, means, covariances.

    Variances are infinite where the frames up to t + lag do not yet determine a diffuse initial state.
    """
    from likely.statespace.linear import _loops as kalman

    m, filtered = model.matrices, filter_part(model, series)
    out, cov = np.empty_like(filtered.means), np.empty_like(filtered.roots)
    intercept, offsets = read_only(series.intercept), read_only(series.offsets)
    kalman.lag_pass(m.A, m.N, intercept, offsets, 0, filtered.means, filtered.roots, filtered.is_steady, lag, out, cov)
    for n in np.flatnonzero(filtered.diffuse_end > 0).tolist():
        a, b = series.offsets[n : n + 2].tolist()
        _smooth_diffuse_phase(model, series.cut(n, n + 1), int(filtered.diffuse_end[n]), lag, out[a:b], cov[a:b])
    return filtered, out, cov


def _smooth_diffuse_phase(model: Any, one: Series, diffuse_end: int, lag: int, out: Array, cov: Array) -> None:
    """Fixed-lag smoother in the diffuse phase; the frames up to t + lag may or may not end that phase."""
    last, length = min(diffuse_end, len(one.y)) - 1, len(one.y)
    so_far = _diffuse_beliefs(model, one, last) if min(lag, length - 1) < diffuse_end else []
    steps = [_step(model, belief, t + 1) for t, belief in enumerate(so_far)]
    for t in range(last + 1):
        end = min(t + lag, length - 1)
        if end < diffuse_end:
            out[t], cov[t] = diffuse_moments(_smoothed_part(model, one, so_far, steps, t, end))
            continue
        mean, covariance = smooth_part(model, _until(one, end + 1), lag_one=False)[1:3]
        out[t], cov[t] = mean[t], covariance[t]


def _until(one: Series, end: int) -> Series:
    """The first frames of one sequence."""
    intercept = one.intercept if one.inputs is None else one.intercept[:end]
    return Series(one.y[:end], np.array([0, end]), intercept, None if one.inputs is None else one.inputs[:end])


def _diffuse_beliefs(model: Any, one: Series, last: int) -> list[DiffusePart]:
    """Augmented filter (state given the diffuse δ, information about δ) after each frame of the diffuse phase."""
    found, belief = [], model.initial_belief()
    for t in range(last + 1):
        belief = belief if not t else model._predicted(belief, np.ascontiguousarray(_intercept(one, t)))
        belief, _ = model._updated(belief, np.ascontiguousarray(one.y[t : t + 1]))
        found.append(belief.diffuse_part)
    return found


def _intercept(one: Series, t: int) -> Array:
    return one.intercept if one.inputs is None else one.intercept[t : t + 1]


def _step(model: Any, belief: DiffusePart, t: int) -> tuple[Array, Array]:
    """Smoother gain of x_{t−1} given x_t and δ, and the root of its conditional covariance."""
    from likely.statespace.linear import _loops as kalman

    m, d = model.matrices, model.states
    J, left = np.empty((d, d)), np.empty((d, d))
    kalman._smoother_gain_one(m.A, m.N, t, np.array(belief.root), J, left)  # in plain Python: of few frames
    return J, left


def _smoothed_part(
    model: Any, one: Series, so_far: list[DiffusePart], steps: list[tuple[Array, Array]], t: int, end: int
) -> DiffusePart:
    """Backward pass given η from frame `end` to frame t: x_t = mean + loadings η given frames 0 … end."""
    last, A = so_far[end], model.matrices.A
    mean, loadings, root = last.mean, last.loadings[:, : last.n_free], last.root
    for g in range(end - 1, t - 1, -1):
        (J, left), a = steps[g], A[min(g + 1, len(A) - 1)]
        m, M = _in_later_coordinates(last, so_far[g])
        mean = m + J @ (mean - _intercept(one, g + 1)[0] - a @ m)
        loadings = M + J @ (loadings - a @ M)
        root = np.linalg.qr(np.vstack([root @ J.T, left])).R
    padded = np.zeros_like(last.loadings)
    padded[:, : last.n_free] = loadings
    return last.replace(mean=mean, root=root, loadings=padded)


def _in_later_coordinates(later: DiffusePart, earlier: DiffusePart) -> tuple[Array, Array]:
    """Mean and loadings of an earlier state in the η of a later frame: δ = offset + basis η is the same for both."""
    M, B = earlier.loadings[:, : earlier.n_free], earlier.basis[:, : earlier.n_free]
    mean = earlier.mean + M @ (B.T @ (later.offset - earlier.offset))
    return mean, M @ (B.T @ later.basis[:, : later.n_free])
