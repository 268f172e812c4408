"""Exact inference of switching models by enumeration of all regime paths, for short sequences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.errors import DataError, DomainError, sentence
from likely.numerics import spd
from likely.statespace.linear.kalman_filter import read_only
from likely.statespace.switching import switching_filter as passes

MOST = 2**20  # paths
MOST_NUMBERS = 2**25  # entries of all means and covariances together
ME = "SwitchingLinearGaussian.exact"


class ExactSwitching(NamedTuple):
    """Exact results for one sequence: filtered and smoothed regimes (T, K) and moments of the states."""

    filtered: Array  # (T, K): p(z_t | y_0 … y_t)
    regimes: Array  # (T, K): p(z_t | all frames)
    filtered_mean: Array  # (T, d)
    filtered_covariance: Array  # (T, d, d)
    mean: Array  # (T, d): given all frames
    covariance: Array  # (T, d, d)
    best: Index  # (T,): the most probable path
    log_prob: float


class _Level(NamedTuple):
    """All paths up to a frame; path i continues path i // K of the previous frame, in regime i % K."""

    means: Array
    covariances: Array
    weights: Array


def enumerated(model: Any, y: Any, inputs: Any) -> ExactSwitching:
    """Kalman filter along all paths, then backward pass."""
    series = passes.switched(model, y, inputs)
    T, K, d = len(series.each[0].y), model.n_regimes, model.states
    if len(series.offsets) != 2 or not T:
        got = f"{len(series.offsets) - 1} of {T} frames"
        raise DataError(sentence(ME, "one sequence of at least one frame is needed", got))
    if T * np.log2(K) > np.log2(MOST) or float(K) ** T * (d + d * d) > MOST_NUMBERS:
        remedy = "use RaoBlackwellizedFilter, or filter and smooth"
        raise DomainError(sentence(ME, f"at most {MOST} paths can be enumerated", f"{K}^{T}", remedy))
    levels, log_prob = _forward(model, series, T)
    return _backward(model, series, levels, log_prob)


def _forward(model: Any, series: passes.Switched, T: int) -> tuple[list[_Level], float]:
    from likely.statespace.linear import _loops as kalman

    s, K, total = model.stack, model.n_regimes, 0.0
    means, roots, logs, which = s.m.copy(), s.U.copy(), s.log_initial.copy(), np.arange(K)
    levels = []
    for t in range(T):
        if t:
            means, roots = np.repeat(means, K, axis=0), np.repeat(roots, K, axis=0)
            logs = (logs[:, None] + model.log_transition[which]).ravel()
            which = np.tile(np.arange(K), len(which))
        out = np.empty(len(which))
        intercept, frames = read_only(_intercepts(series, t)), read_only(_frames(series, t))
        kalman.step_many(s.A, s.N, s.C, s.R, intercept, frames, which, t > 0, means, roots, out)
        logs = logs + out
        top = float(logs.max())
        if top == -np.inf:
            got = f"density 0 of frame {t} in every regime"
            raise DataError(sentence(ME, "the sequence must have positive density", got))
        rest = float(np.log(np.exp(logs - top).sum()))
        total, logs = total + top + rest, (logs - top) - rest
        levels.append(_Level(means.copy(), np.swapaxes(roots, 1, 2) @ roots, np.exp(logs)))
    return levels, total


def _frames(series: passes.Switched, t: int) -> Array:
    """Frame t minus the effect of inputs, per regime (K, p)."""
    return np.stack([s.y[t] for s in series.each])


def _intercepts(series: passes.Switched, t: int) -> Array:
    return np.stack([s.intercept[t if s.inputs is not None else 0] for s in series.each])


def _backward(model: Any, series: passes.Switched, levels: list[_Level], log_prob: float) -> ExactSwitching:
    """Backward pass: given a path up to t + 1, x_t is linear in x_{t+1}, so moments over all continuations suffice."""
    K, T = model.n_regimes, len(levels)
    last = levels[-1]
    m, P, w = last.means, last.covariances, last.weights
    smoothed, shares = [_mixed(w, m, P)], [_by_regime(w, K)]
    for t in range(T - 2, -1, -1):
        m, P = _stepped_back(model, levels[t], _intercepts(series, t + 1), m, P)
        m, P, w = _gathered(w, m, P, K)
        smoothed.append(_mixed(w, m, P))
        shares.append(_by_regime(w, K))
    best = int(np.argmax(last.weights)) // K ** np.arange(T - 1, -1, -1) % K
    known = [_mixed(level.weights, level.means, level.covariances) for level in levels]
    return ExactSwitching(
        np.array([_by_regime(level.weights, K) for level in levels]), np.array(shares[::-1]),
        np.array([a for a, _ in known]), np.array([b for _, b in known]), np.array([a for a, _ in smoothed[::-1]]),
        np.array([b for _, b in smoothed[::-1]]), best, log_prob,
    )  # fmt: skip


def _stepped_back(model: Any, level: _Level, intercept: Array, m: Array, P: Array) -> tuple[Array, Array]:
    """Smoothed moments of x_t for every path up to t + 1."""
    K, n = model.n_regimes, len(level.weights)
    A, Q = (
        np.tile(np.stack([getattr(r, name) for r in model.regimes]), (n, 1, 1))
        for name in ("transition", "process_covariance")
    )
    was, cov = np.repeat(level.means, K, axis=0), np.repeat(level.covariances, K, axis=0)
    ahead = np.matmul(A, was[:, :, None])[:, :, 0] + np.tile(intercept, (n, 1))
    predicted = A @ cov @ np.swapaxes(A, 1, 2) + Q
    J = cov @ np.swapaxes(A, 1, 2) @ np.linalg.pinv(spd.symmetric(predicted), hermitian=True)
    mean = was + np.matmul(J, (m - ahead)[:, :, None])[:, :, 0]
    return mean, cov + J @ (P - predicted) @ np.swapaxes(J, 1, 2)


def _gathered(w: Array, m: Array, P: Array, K: int) -> tuple[Array, Array, Array]:
    """Moments of each path, averaged over its K continuations."""
    d, by = m.shape[1], w.reshape(-1, K)
    total = by.sum(axis=1)
    share = by / np.where(total > 0, total, 1.0)[:, None]
    m, P = m.reshape(-1, K, d), P.reshape(-1, K, d, d)
    mean = np.einsum("nk,nkd->nd", share, m)
    off = m - mean[:, None]
    return mean, np.einsum("nk,nkij->nij", share, P) + np.einsum("nk,nki,nkj->nij", share, off, off), total


def _mixed(w: Array, m: Array, P: Array) -> tuple[Array, Array]:
    mean = w @ m
    off = m - mean
    return mean, np.tensordot(w, P, axes=1) + (w[:, None] * off).T @ off


def _by_regime(w: Array, K: int) -> Array:
    return np.asarray(w.reshape(-1, K).sum(axis=0))
