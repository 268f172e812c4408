"""E-step of a linear-Gaussian state-space model: expected second moments of residuals, from smoothed states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.numerics import spd
from likely.statespace.linear.kalman_filter import Series


class SmoothedPath(NamedTuple):
    """Smoothed means, covariances and lag-one covariances of all frames of a part, and the weight of each frame."""

    mean: Array  # (F, d)
    covariance: Array  # (F, d, d)
    lag: Array  # (F, d, d)
    weight: Array  # (F,)
    time: Index  # (F,): number of the frame in its sequence
    missing_noise: float = 1.0  # 0 leaves out the conditional variance of the noise of missing entries

    def without_covariance(self) -> SmoothedPath:
        """The same means with posterior covariances of 0: scatters of expectations only."""
        none = np.zeros_like(self.covariance)
        return self._replace(covariance=none, lag=none, missing_noise=0.0)


class Residuals(NamedTuple):
    """Moments of residuals r and regressors h: weight, Σ E[r rᵀ], Σ E[r hᵀ], Σ E[h hᵀ], and the whitened scatter."""

    count: Any
    scatter: Array
    cross: Array
    gram: Array
    whitened: Array  # (2,): Σ tr S_t⁻¹ E[r rᵀ] × `size(S)`, and Σ rank S_t


ROUNDING = 1e-14  # of sums of covariances of states
CONSTANT = np.zeros(2)  # whitened scatter of a covariance that does not vary with time: not needed


def transition_moments(model: Any, series: Series, path: SmoothedPath) -> Residuals:
    """Moments of the process residuals x_t − A x_{t−1} − F u_t."""
    now = np.flatnonzero(path.time > 0)
    was, w, d = now - 1, path.weight[now], model.states
    intercept = series.intercept[now] if series.inputs is not None else series.intercept
    h = _with_inputs(path.mean[was], series, now)
    P, Q, L = path.covariance[now], path.covariance[was], path.lag[now]
    if model.transition.ndim == 2 and model.process_covariance.ndim == 2:
        A = model.transition
        r = path.mean[now] - path.mean[was] @ A.T - intercept
        P, Q, L = _sum(w, P), _sum(w, Q), _sum(w, L)
        scatter, cross = (w[:, None] * r).T @ r + P - L @ A.T - A @ L.T + A @ Q @ A.T, (w[:, None] * r).T @ h
        cross[:, :d] += L - A @ Q
        gram = (w[:, None] * h).T @ h
        gram[:d, :d] += Q
        below = _below_rounding(model.process_covariance, w.sum(), np.maximum(np.diagonal(P), np.diagonal(A @ Q @ A.T)))
        if below.any():  # moments carry no information there: the model's expectation leaves the model unchanged
            scatter[below], scatter[:, below] = (
                w.sum() * model.process_covariance[below],
                w.sum() * model.process_covariance[:, below],
            )
            cross[below] = 0.0
        return Residuals(w.sum(), spd.symmetric(scatter), cross, gram, CONSTANT)
    A = model.transition if model.transition.ndim == 2 else model.transition[path.time[now]]
    r = path.mean[now] - np.matmul(A, path.mean[was][:, :, None])[:, :, 0] - intercept
    LA = np.matmul(L, np.swapaxes(A, -1, -2))
    scatters = (
        r[:, :, None] * r[:, None, :]
        + P
        - LA
        - np.swapaxes(LA, 1, 2)
        + np.matmul(np.matmul(A, Q), np.swapaxes(A, -1, -2))
    )
    cross, gram = (w[:, None] * r).T @ h, (w[:, None] * h).T @ h
    cross[:, :d] += _sum(w, L - np.matmul(A, Q))
    gram[:d, :d] += _sum(w, Q)
    whitened = _whitened(model.process_covariance, path.time[now], scatters, w)
    return Residuals(w.sum(), spd.symmetric(_sum(w, scatters)), cross, gram, whitened)


def _below_rounding(noise: Array, n: Any, terms: Array) -> Any:
    """Variances smaller than the rounding error of the covariances whose difference they are."""
    v = np.diagonal(noise)
    return (v > 0) & (n * v < ROUNDING * terms)


def observation_moments(model: Any, series: Series, path: SmoothedPath) -> Residuals:
    """Moments of the observation residuals y_t − C x_t − G u_t; missing entries enter by their conditional moments."""
    p, h = model.dim, model.states + (0 if series.inputs is None else series.inputs.shape[1])
    total = Residuals(0.0, np.zeros((p, p)), np.zeros((p, h)), np.zeros((h, h)), CONSTANT)
    missing = np.isnan(series.y)
    if not missing.any():
        return _plus(total, _pattern(model, series, path, np.arange(len(series.y)), np.arange(p)))
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        if not pattern.all():
            residuals = _pattern(model, series, path, np.flatnonzero(which.ravel() == i), np.flatnonzero(~pattern))
            total = _plus(total, residuals)
    return total


def _pattern(model: Any, series: Series, path: SmoothedPath, at: Index, observed: Index) -> Residuals:
    """Moments of the frames `at`, all with the same observed entries."""
    w, d, p = path.weight[at], model.states, model.dim
    g, P = _with_inputs(path.mean[at], series, at), path.covariance[at]
    y = series.y[at][:, observed]
    if model.observation.ndim == 2 and model.observation_covariance.ndim == 2:
        C = model.observation[observed]
        r = y - path.mean[at] @ C.T
        P = _sum(w, P)
        scatter, cross = (w[:, None] * r).T @ r + C @ P @ C.T, (w[:, None] * r).T @ g
        cross[:, :d] -= C @ P
        gram = (w[:, None] * g).T @ g
        gram[:d, :d] += P
        if len(observed) < p:
            B, conditional = missing_regression(model.observation_covariance, observed)
            scatter, cross = B @ scatter @ B.T + path.missing_noise * w.sum() * conditional, B @ cross
        return Residuals(w.sum(), spd.symmetric(scatter), cross, gram, CONSTANT)
    return _time_varying(model, path, at, y, g, observed)


def _time_varying(model: Any, path: SmoothedPath, at: Index, y: Array, g: Array, observed: Index) -> Residuals:
    d, p = model.states, model.dim
    t, mean, P, w = path.time[at], path.mean[at], path.covariance[at], path.weight[at]
    C = (model.observation[None] if model.observation.ndim == 2 else model.observation[t])[:, observed]
    R = np.broadcast_to(
        model.observation_covariance if model.observation_covariance.ndim == 2 else model.observation_covariance[t],
        (len(t), p, p),
    )
    r = y - np.matmul(C, mean[:, :, None])[:, :, 0]
    CP = np.matmul(C, P)
    scatters = r[:, :, None] * r[:, None, :] + np.matmul(CP, np.swapaxes(C, 1, 2))
    by = r[:, :, None] * g[:, None, :]
    by[:, :, :d] -= CP
    if len(observed) < p:
        regressions = [missing_regression(one, observed) for one in R]
        B, conditional = np.stack([a for a, _ in regressions]), np.stack([b for _, b in regressions])
        scatters, by = (
            np.matmul(np.matmul(B, scatters), np.swapaxes(B, 1, 2)) + path.missing_noise * conditional,
            np.matmul(B, by),
        )
    gram = (w[:, None] * g).T @ g
    gram[:d, :d] += _sum(w, P)
    whitened = _whitened(model.observation_covariance, t, scatters, w)
    return Residuals(w.sum(), spd.symmetric(_sum(w, scatters)), _sum(w, by), gram, whitened)


def missing_regression(R: Array, observed: Index) -> tuple[Array, Array]:
    """Regression of the noise v on its observed entries: E[v | v_o] = B v_o, and Cov(v | v_o)."""
    p = len(R)
    B, conditional = np.zeros((p, len(observed))), np.zeros((p, p))
    missing = np.setdiff1d(np.arange(p), observed)
    R_oo = R[np.ix_(observed, observed)]
    s = spd.scales(R_oo)
    gain = R[np.ix_(missing, observed)] / s @ np.linalg.pinv(R_oo / s[:, None] / s[None, :], hermitian=True) / s
    B[observed, np.arange(len(observed))], B[missing] = 1.0, gain
    conditional[np.ix_(missing, missing)] = spd.symmetric(
        R[np.ix_(missing, missing)] - gain @ R[np.ix_(observed, missing)]
    )
    return B, conditional


def pinv_logdet_rank(a: Array) -> tuple[Array, Array, Array]:
    """Pseudo-inverse, log pseudo-determinant and rank of covariances (..., d, d), independent of units."""
    s = spd.scales(a)
    values, vectors = np.linalg.eigh(a / s[..., :, None] / s[..., None, :])
    residuals = values > spd.rank_tolerance(a.shape[-1]) * np.maximum(values[..., -1:], 1e-300)
    safe = np.where(residuals, values, 1.0)
    inv = (
        np.matmul(vectors * (residuals / safe)[..., None, :], np.swapaxes(vectors, -1, -2))
        / s[..., :, None]
        / s[..., None, :]
    )
    units = 2.0 * np.where(np.diagonal(a, axis1=-2, axis2=-1) > 0, np.log(s), 0.0).sum(axis=-1)
    return inv, np.log(safe).sum(axis=-1) + units, residuals.sum(axis=-1)


def mean_variance(covariance: Array) -> float:
    """Mean of all variances: the scale of a time-varying covariance (T, d, d)."""
    return float(np.diagonal(covariance, axis1=-2, axis2=-1).mean())


def _whitened(covariance: Array, t: Index, scatters: Array, w: Array) -> Array:
    if covariance.ndim == 2:
        return CONSTANT
    inv, _, rank = pinv_logdet_rank(covariance[t])
    return np.array([mean_variance(covariance) * (w * np.einsum("fij,fji->f", inv, scatters)).sum(), (w * rank).sum()])


def _with_inputs(x: Array, series: Series, at: Index) -> Array:
    return x if series.inputs is None else np.hstack([x, series.inputs[at]])


def _sum(w: Array, a: Array) -> Array:
    return np.asarray(np.tensordot(w, a, axes=1)) if len(a) else np.zeros(a.shape[1:])


def _plus(a: Residuals, b: Residuals) -> Residuals:
    return Residuals(*(x + y for x, y in zip(a, b, strict=True)))
