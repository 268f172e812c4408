"""The E-step of a linear-Gaussian model: expected second moments of residuals, from smoothed states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.numerics import spd
from likely.statespace.linear.kalman_filter import Series


class Path(NamedTuple):
    """Smoothed states of all frames of a part, and what each frame counts."""

    mean: Array  # (F, d)
    covariance: Array  # (F, d, d)
    lag: Array  # (F, d, d)
    weight: Array  # (F,)
    time: Index  # (F,): number of the frame in its sequence
    hidden: float = 1.0  # 0: what noise was in entries that were not seen is left out

    def of_means(self) -> Path:
        """The same means as if they were known: scatters of what was expected, without what stayed uncertain."""
        none = np.zeros_like(self.covariance)
        return self._replace(covariance=none, lag=none, hidden=0.0)


class Residuals(NamedTuple):
    """Weight, Σ E[r rᵀ], Σ E[r hᵀ], Σ E[h hᵀ], and the scatter in units of a covariance that changes."""

    count: Any
    scatter: Array
    cross: Array
    of: Array
    white: Array  # (2,): Σ tr S_t⁻¹ E[r rᵀ] × `size(S)`, and Σ rank S_t


ROUNDING = 1e-14  # of sums of covariances of states
STILL = np.zeros(2)  # where the covariance does not change


def moves(model: Any, series: Series, path: Path) -> Residuals:
    """Residuals of x_t about A x_{t−1} + F u_t."""
    now = np.flatnonzero(path.time > 0)
    was, w, d = now - 1, path.weight[now], model.states
    push = series.push[now] if series.inputs is not None else series.push
    h = _beside(path.mean[was], series, now)
    P, Q, L = path.covariance[now], path.covariance[was], path.lag[now]
    if model.transition.ndim == 2 and model.process_covariance.ndim == 2:
        A = model.transition
        r = path.mean[now] - path.mean[was] @ A.T - push
        P, Q, L = _sum(w, P), _sum(w, Q), _sum(w, L)
        scatter, cross = (w[:, None] * r).T @ r + P - L @ A.T - A @ L.T + A @ Q @ A.T, (w[:, None] * r).T @ h
        cross[:, :d] += L - A @ Q
        of = (w[:, None] * h).T @ h
        of[:d, :d] += Q
        below = _below_rounding(model.process_covariance, w.sum(), np.maximum(np.diagonal(P), np.diagonal(A @ Q @ A.T)))
        if below.any():  # moments say nothing there: as expected, which leaves the model as it is
            scatter[below], scatter[:, below] = (
                w.sum() * model.process_covariance[below],
                w.sum() * model.process_covariance[:, below],
            )
            cross[below] = 0.0
        return Residuals(w.sum(), spd.symmetric(scatter), cross, of, STILL)
    A = model.transition if model.transition.ndim == 2 else model.transition[path.time[now]]
    r = path.mean[now] - np.matmul(A, path.mean[was][:, :, None])[:, :, 0] - push
    LA = np.matmul(L, np.swapaxes(A, -1, -2))
    each = (
        r[:, :, None] * r[:, None, :]
        + P
        - LA
        - np.swapaxes(LA, 1, 2)
        + np.matmul(np.matmul(A, Q), np.swapaxes(A, -1, -2))
    )
    cross, of = (w[:, None] * r).T @ h, (w[:, None] * h).T @ h
    cross[:, :d] += _sum(w, L - np.matmul(A, Q))
    of[:d, :d] += _sum(w, Q)
    white = _in_units(model.process_covariance, path.time[now], each, w)
    return Residuals(w.sum(), spd.symmetric(_sum(w, each)), cross, of, white)


def _below_rounding(noise: Array, n: Any, of: Array) -> Any:
    """Variances smaller than the rounding of the covariances whose difference they are."""
    v = np.diagonal(noise)
    return (v > 0) & (n * v < ROUNDING * of)


def observations(model: Any, series: Series, path: Path) -> Residuals:
    """Residuals of y_t about C x_t + G u_t; entries that were not seen by their expectation given those that were."""
    p, h = model.dim, model.states + (0 if series.inputs is None else series.inputs.shape[1])
    total = Residuals(0.0, np.zeros((p, p)), np.zeros((p, h)), np.zeros((h, h)), STILL)
    hidden = np.isnan(series.y)
    if not hidden.any():
        return _added(total, _pattern(model, series, path, np.arange(len(series.y)), np.arange(p)))
    patterns, which = np.unique(hidden, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        if not pattern.all():
            some = _pattern(model, series, path, np.flatnonzero(which.ravel() == i), np.flatnonzero(~pattern))
            total = _added(total, some)
    return total


def _pattern(model: Any, series: Series, path: Path, at: Index, seen: Index) -> Residuals:
    """Frames `at`, of all of which the same entries were seen."""
    w, d, p = path.weight[at], model.states, model.dim
    g, P = _beside(path.mean[at], series, at), path.covariance[at]
    y = series.y[at][:, seen]
    if model.observation.ndim == 2 and model.observation_covariance.ndim == 2:
        C = model.observation[seen]
        r = y - path.mean[at] @ C.T
        P = _sum(w, P)
        scatter, cross = (w[:, None] * r).T @ r + C @ P @ C.T, (w[:, None] * r).T @ g
        cross[:, :d] -= C @ P
        of = (w[:, None] * g).T @ g
        of[:d, :d] += P
        if len(seen) < p:
            up, left = lift(model.observation_covariance, seen)
            scatter, cross = up @ scatter @ up.T + path.hidden * w.sum() * left, up @ cross
        return Residuals(w.sum(), spd.symmetric(scatter), cross, of, STILL)
    return _changing(model, path, at, y, g, seen)


def _changing(model: Any, path: Path, at: Index, y: Array, g: Array, seen: Index) -> Residuals:
    d, p = model.states, model.dim
    t, mean, P, w = path.time[at], path.mean[at], path.covariance[at], path.weight[at]
    C = (model.observation[None] if model.observation.ndim == 2 else model.observation[t])[:, seen]
    R = np.broadcast_to(
        model.observation_covariance if model.observation_covariance.ndim == 2 else model.observation_covariance[t],
        (len(t), p, p),
    )
    r = y - np.matmul(C, mean[:, :, None])[:, :, 0]
    CP = np.matmul(C, P)
    each = r[:, :, None] * r[:, None, :] + np.matmul(CP, np.swapaxes(C, 1, 2))
    by = r[:, :, None] * g[:, None, :]
    by[:, :, :d] -= CP
    if len(seen) < p:
        lifts = [lift(one, seen) for one in R]
        up, left = np.stack([a for a, _ in lifts]), np.stack([b for _, b in lifts])
        each, by = np.matmul(np.matmul(up, each), np.swapaxes(up, 1, 2)) + path.hidden * left, np.matmul(up, by)
    of = (w[:, None] * g).T @ g
    of[:d, :d] += _sum(w, P)
    white = _in_units(model.observation_covariance, t, each, w)
    return Residuals(w.sum(), spd.symmetric(_sum(w, each)), _sum(w, by), of, white)


def lift(R: Array, seen: Index) -> tuple[Array, Array]:
    """E[v | v_seen] = up v_seen, and the covariance of v that is left."""
    p = len(R)
    up, left = np.zeros((p, len(seen))), np.zeros((p, p))
    rest = np.setdiff1d(np.arange(p), seen)
    inside = R[np.ix_(seen, seen)]
    s = spd.scales(inside)
    gain = R[np.ix_(rest, seen)] / s @ np.linalg.pinv(inside / s[:, None] / s[None, :], hermitian=True) / s
    up[seen, np.arange(len(seen))], up[rest] = 1.0, gain
    left[np.ix_(rest, rest)] = spd.symmetric(R[np.ix_(rest, rest)] - gain @ R[np.ix_(seen, rest)])
    return up, left


def inverse(a: Array) -> tuple[Array, Array, Array]:
    """Pseudo-inverse, log of the pseudo-determinant and rank of covariances (..., d, d), in any units."""
    s = spd.scales(a)
    values, vectors = np.linalg.eigh(a / s[..., :, None] / s[..., None, :])
    some = values > spd.rank_tolerance(a.shape[-1]) * np.maximum(values[..., -1:], 1e-300)
    safe = np.where(some, values, 1.0)
    inv = (
        np.matmul(vectors * (some / safe)[..., None, :], np.swapaxes(vectors, -1, -2))
        / s[..., :, None]
        / s[..., None, :]
    )
    units = 2.0 * np.where(np.diagonal(a, axis1=-2, axis2=-1) > 0, np.log(s), 0.0).sum(axis=-1)
    return inv, np.log(safe).sum(axis=-1) + units, some.sum(axis=-1)


def size(covariance: Array) -> float:
    """The mean of all variances: what tells a covariance (T, d, d) from its multiples."""
    return float(np.diagonal(covariance, axis1=-2, axis2=-1).mean())


def _in_units(covariance: Array, t: Index, each: Array, w: Array) -> Array:
    if covariance.ndim == 2:
        return STILL
    inv, _, rank = inverse(covariance[t])
    return np.array([size(covariance) * (w * np.einsum("fij,fji->f", inv, each)).sum(), (w * rank).sum()])


def _beside(x: Array, series: Series, at: Index) -> Array:
    return x if series.inputs is None else np.hstack([x, series.inputs[at]])


def _sum(w: Array, a: Array) -> Array:
    return np.asarray(np.tensordot(w, a, axes=1)) if len(a) else np.zeros(a.shape[1:])


def _added(a: Residuals, b: Residuals) -> Residuals:
    return Residuals(*(x + y for x, y in zip(a, b, strict=True)))
