"""The oracle of linear-Gaussian models: all states and observations of a series as one Gaussian, written out."""

from __future__ import annotations

import numpy as np

from likely.models.sums import start_of


def frame(a, t):
    """A matrix at frame t, whether it changes with time or not."""
    return a[t] if a.ndim == 3 else a


def joint(model, T):
    """Mean (T·d,), covariance and diffuse directions (T·d, q) of all states."""
    m, P, D = start_of(model)
    d = len(m)
    means, maps, cov = [m], [D], np.zeros((T * d, T * d))
    cov[:d, :d] = P
    for t in range(1, T):
        A, here, before = frame(model.transition, t), slice(t * d, t * d + d), slice(t * d - d, t * d)
        means.append(A @ means[-1])
        maps.append(A @ maps[-1])
        cov[here, : t * d] = A @ cov[before, : t * d]
        cov[: t * d, here] = cov[here, : t * d].T
        cov[here, here] = A @ cov[before, before] @ A.T + frame(model.noise, t)
    return np.concatenate(means), cov, np.concatenate(maps)


def smoothed(model, y):
    """Means (T, d), covariances (T, d, d) and exact diffuse log-likelihood of one series, NaN where nothing was seen.

    With κ the variance of the diffuse directions, log p + q/2 log κ has a limit: generalised least squares.
    """
    y = np.asarray(y, dtype=float)
    y = y[:, None] if y.ndim == 1 else y
    T, p = y.shape
    m, P, D = joint(model, T)
    d = len(m) // T
    Z, R = np.zeros((T * p, T * d)), np.zeros((T * p, T * p))
    for t in range(T):
        Z[t * p : t * p + p, t * d : t * d + d] = frame(model.emission, t)
        R[t * p : t * p + p, t * p : t * p + p] = frame(model.observation, t)
    at = np.flatnonzero(~np.isnan(y.ravel()))
    Z, V = Z[at], Z[at] @ P @ Z[at].T + R[np.ix_(at, at)]
    r, X, K = y.ravel()[at] - Z @ m, Z @ D, P @ Z.T
    W = np.linalg.inv(V)
    S = X.T @ W @ X
    b = np.linalg.solve(S, X.T @ W @ r) if D.shape[1] else np.zeros(0)
    rest = r - X @ b
    log_prob = -0.5 * (
        len(at) * np.log(2 * np.pi) + np.linalg.slogdet(V)[1] + np.linalg.slogdet(S)[1] + rest @ W @ rest
    )
    left = D - K @ W @ X
    cov = P - K @ W @ K.T + (left @ np.linalg.solve(S, left.T) if D.shape[1] else 0.0)
    mean = (m + D @ b + K @ W @ rest).reshape(T, d)
    return mean, np.stack([cov[t * d : t * d + d, t * d : t * d + d] for t in range(T)]), log_prob
