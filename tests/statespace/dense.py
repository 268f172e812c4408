"""The oracle of every linear-Gaussian algorithm: all states and observations of a sequence as one joint Gaussian.

It computes in extended precision, so that what differs is not its own rounding.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

EXACT = np.longdouble
LOG_2PI = np.log(2 * EXACT(np.pi))


def at(a, t):
    return None if a is None else (a if a.ndim == 2 else a[t]).astype(EXACT)


def solved(a, b):
    """a⁻¹ b and log |det a|, by elimination."""
    n, logdet = len(a), EXACT(0)
    both = np.hstack([a, b]).astype(EXACT)
    for j in range(n):
        high = j + int(np.argmax(np.abs(both[j:, j])))
        both[[j, high]] = both[[high, j]]
        logdet += np.log(np.abs(both[j, j]))
        both[j] /= both[j, j]
        others = np.arange(n) != j
        both[others] -= both[others, j, None] * both[j]
    return both[:, n:], logdet


class Dense:
    """Joint distribution of x_0 … x_{T−1} (T d) and y_0 … y_{T−1}; a diffuse start gets variance `kappa`."""

    def __init__(self, model, y, u=None, kappa=0.0):
        self.T, self.d, self.p = len(y), model.states, model.dim
        d, T = self.d, self.T
        start = model.initial_covariance + (0 if model.diffuse is None else kappa * model.diffuse @ model.diffuse.T)
        noises = [start.astype(EXACT), *[at(model.process_covariance, t) for t in range(1, T)]]
        L = np.eye(T * d, dtype=EXACT)
        for t in range(1, T):
            L[t * d : (t + 1) * d] += at(model.transition, t) @ L[(t - 1) * d : t * d]
            L[t * d : (t + 1) * d, t * d : (t + 1) * d] = np.eye(d)
        push = [model.initial_mean.astype(EXACT)]
        for t in range(1, T):
            push.append(at(model.control, t) @ u[t] if model.control is not None else np.zeros(d))
        self.mean = L @ np.concatenate(push)
        self.cov = L @ block_diag(*noises) @ L.T
        C = block_diag(*[at(model.observation, t) for t in range(T)])
        add = [at(model.feedthrough, t) @ u[t] if model.feedthrough is not None else np.zeros(self.p) for t in range(T)]
        self.y_mean = C @ self.mean + np.concatenate(add)
        self.y_cov = C @ self.cov @ C.T + block_diag(*[at(model.observation_covariance, t) for t in range(T)])
        self.cross = self.cov @ C.T
        self.y = np.asarray(y, float).reshape(-1)
        self.C = C

    def given(self, upto=None):
        """Mean (T, d), covariance (T d, T d) of states given what the first `upto` frames show, and its log p."""
        seen = self._seen(upto)
        r, cross = self.y[seen] - self.y_mean[seen], self.cross[:, seen]
        by, logdet = solved(self.y_cov[np.ix_(seen, seen)], np.column_stack([r, cross.T]))
        logp = -0.5 * (len(seen) * LOG_2PI + logdet + r @ by[:, 0])
        return self._told(self.mean + cross @ by[:, 0], self.cov - cross @ by[:, 1:], logp)

    def flat(self, model, upto=None):
        """The same with nothing known of the diffuse directions: their limit, by generalized least squares."""
        d, T, seen = self.d, self.T, self._seen(upto)
        X = np.zeros((T * d, model.diffuse.shape[1]), dtype=EXACT)
        X[:d] = model.diffuse
        for t in range(1, T):
            X[t * d : (t + 1) * d] = at(model.transition, t) @ X[(t - 1) * d : t * d]
        r, Y, cross = self.y[seen] - self.y_mean[seen], (self.C @ X)[seen], self.cross[:, seen]
        q = Y.shape[1]
        by, logdet = solved(self.y_cov[np.ix_(seen, seen)], np.column_stack([r, Y, cross.T]))
        by_r, by_Y, by_cross = by[:, 0], by[:, 1 : 1 + q], by[:, 1 + q :]
        both, logdet_info = solved(Y.T @ by_Y, np.column_stack([Y.T @ by_r, np.eye(q)]))
        delta, cov_delta = both[:, 0], both[:, 1:]
        left = X - cross @ by_Y
        e = r - Y @ delta
        logp = -0.5 * (len(seen) * LOG_2PI + logdet + e @ (by_r - by_Y @ delta)) - 0.5 * logdet_info
        mean = self.mean + X @ delta + cross @ (by_r - by_Y @ delta)
        return self._told(mean, self.cov - cross @ by_cross + left @ cov_delta @ left.T, logp)

    def _seen(self, upto):
        return np.flatnonzero(~np.isnan(self.y[: self.p * (self.T if upto is None else upto)]))

    def _told(self, mean, cov, logp):
        return mean.reshape(self.T, self.d).astype(float), cov.astype(float), float(logp)

    def block(self, cov, t, s=None):
        s = t if s is None else s
        return cov[t * self.d : (t + 1) * self.d, s * self.d : (s + 1) * self.d]


def smoothed(model, y):
    """Means (T, d), covariances (T, d, d) and log p of one series, with an exactly diffuse start where it has one."""
    y = np.asarray(y, dtype=float)
    joint = Dense(model, y[:, None] if y.ndim == 1 else y)
    mean, cov, logp = joint.given() if model.diffuse is None else joint.flat(model)
    return mean, np.stack([joint.block(cov, t) for t in range(joint.T)]), logp
