"""Smoother for observations without noise: the recursion of Durbin and Koopman, which divides by innovations only.

The Rauch–Tung–Striebel smoother regresses x_t on x_{t+1}. Where observations have no noise, some states are known
exactly, and the regression runs the dynamics backward: its rounding errors grow like those of A⁻¹. Here an adjoint
vector s_t carries what the later observations say, x̂_t = m_t + P_t s_t, through the stable dynamics of the filter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.numerics import spd

NOISELESS = 1e-13  # eigenvalues of the observation covariance, in units of its variances, that count as 0
GROWTH = 1e5  # of rounding errors: to 1e-11
REDUNDANT = 1e-13  # deviations of innovations, of the size of their terms: an observation that is known before


def is_noiseless(model: Any) -> bool:
    """True if the observation covariance is singular: some combination of observations has no noise."""
    R = model.observation_covariance
    s = spd.scales(R)
    has_none = (np.diagonal(R, axis1=-2, axis2=-1) == 0).any()
    return bool(has_none or np.linalg.eigvalsh(R / s[..., :, None] / s[..., None, :])[..., 0].min() <= NOISELESS)


def smooth_noiseless(
    model: Any, series: Any, filtered: Any, out: Array, cov: Array, lag: Array, to_m: Array, to_U: Array
) -> None:
    """Smoothed moments of all frames after the diffuse phase, into `out`, `cov` and `lag`.

    The mean and root of the last frame of the diffuse phase go to `to_m`, `to_U`, where they have room.
    """
    m, d = model.matrices, model.states
    A, N, C, R = (_at(a) for a in (m.A, m.N, m.C, m.R))
    for n in range(len(series.offsets) - 1):
        first, end = int(series.offsets[n]), int(series.offsets[n + 1])
        known = first + int(filtered.diffuse_end[n])
        if known >= end:
            continue
        s, M = np.zeros(d), np.zeros((d, d))  # what frames after f say about x_f, and how much
        for f in range(end - 1, known - 1, -1):
            U = filtered.roots[f]
            P = U.T @ U
            out[f] = filtered.means[f] + P @ s
            left = spd.symmetric(np.eye(d) - U @ M @ U.T)
            values, vectors = np.linalg.eigh(left)
            root = (np.sqrt(np.clip(values, 0.0, 1.0))[:, None] * vectors.T) @ U
            cov[f] = root.T @ root
            if f == known:
                if len(to_m):
                    to_m[n], to_U[n] = out[f], root
                break
            t = f - first
            a, before = A(t), filtered.roots[f - 1]
            intercept = series.intercept[f] if len(series.intercept) == len(series.y) else series.intercept[0]
            W = np.vstack([before @ a.T, N(t)])  # root of the predicted covariance
            seen = np.flatnonzero(~np.isnan(series.y[f]))
            if len(seen) and not np.isneginf(filtered.increments[f]):
                c, noise = C(t)[seen], R(t)[:, seen]
                G = W @ c.T
                gain = _pseudo_inverse(G, noise, np.linalg.norm(W, axis=0) @ np.abs(c).T)
                keep = np.eye(d) - W.T @ (G @ (gain @ c))
                s = c.T @ (gain @ (series.y[f, seen] - c @ (a @ filtered.means[f - 1] + intercept))) + keep.T @ s
                M = spd.symmetric(c.T @ gain @ c + keep.T @ M @ keep)
            if len(lag):
                lag[f] = a @ before.T @ before - W.T @ (W @ (M @ (a @ before.T @ before)))
            s, M = a.T @ s, spd.symmetric(a.T @ M @ a)


def is_unstable(model: Any, series: Any, filtered: Any) -> bool:
    """Whether rounding errors of the Rauch–Tung–Striebel recursion grow by more than `GROWTH` in one sequence.

    The error of x̂_{t+1} enters that of x̂_t by the gain J_t = P_t Aᵀ P_{t+1|t}⁻¹, and each frame adds its own. The other
    recursion is less accurate where the smoother reduces variances a lot, so it is used only where this one fails.
    """
    from likely.statespace.linear import _loops as kalman

    m, d, known = model.matrices, model.states, int(filtered.diffuse_end[0])
    deviations = np.linalg.norm(filtered.roots[known:], axis=1).max(axis=0, initial=0.0)
    size = np.abs(filtered.means[known:]).max(axis=0, initial=1e-300) + deviations
    constant, J, root = len(m.A) == len(m.N) == 1, np.zeros((d, d)), np.zeros((d, d))
    S = np.diag(size**2)  # covariance of the errors, in units of the rounding error of one frame
    for f in range(len(series.y) - 2, known - 1, -1):
        if not (constant and filtered.is_steady[f + 1] and f < len(series.y) - 2):
            kalman._smoother_gain_one(m.A, m.N, f + 1, np.array(filtered.roots[f]), J, root)
        S = J @ S @ J.T + np.diag(size**2)
        if not (np.diagonal(S) <= (GROWTH * size) ** 2).all():
            return True
    return False


def _at(a: Array) -> Any:
    """The matrix of frame t, of constant matrices (1, …) and of those of every frame (T, …)."""
    return lambda t: a[min(t, len(a) - 1)]


def _pseudo_inverse(G: Array, R: Array, size: Array) -> Array:
    """Inverse of the innovation covariance GᵀG + RᵀR; redundant observations, without variance of their own, get 0.

    `size` are the sizes of the terms whose sums the columns of G are.
    """
    F = G.T @ G + R.T @ R
    s = np.where(np.sqrt(np.diagonal(F)) > REDUNDANT * (size + np.linalg.norm(R, axis=0)), spd.scales(F), np.inf)
    return np.asarray(np.linalg.pinv(F / s[:, None] / s, rcond=REDUNDANT, hermitian=True) / s[:, None] / s)
