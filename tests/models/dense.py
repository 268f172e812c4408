"""The oracle of every linear-Gaussian algorithm: all states and observations of a sequence as one joint Gaussian."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag


def at(a, t):
    return a if a is None or a.ndim == 2 else a[t]


class Dense:
    """Joint law of x_0 … x_{T−1} (T d) and y_0 … y_{T−1}; a diffuse start gets variance `kappa`."""

    def __init__(self, model, y, u=None, kappa=0.0):
        self.T, self.d, self.p = len(y), model.states, model.dim
        d, T = self.d, self.T
        start = model.covariance + (0 if model.diffuse is None else kappa * model.diffuse @ model.diffuse.T)
        noises = [start, *[at(model.noise, t) for t in range(1, T)]]
        L = np.eye(T * d)
        for t in range(1, T):
            L[t * d : (t + 1) * d] += at(model.transition, t) @ L[(t - 1) * d : t * d]
            L[t * d : (t + 1) * d, t * d : (t + 1) * d] = np.eye(d)
        push = [model.mean]
        for t in range(1, T):
            push.append(at(model.control, t) @ u[t] if model.control is not None else np.zeros(d))
        self.mean = L @ np.concatenate(push)
        self.cov = L @ block_diag(*noises) @ L.T
        C = block_diag(*[at(model.emission, t) for t in range(T)])
        add = [at(model.feedthrough, t) @ u[t] if model.feedthrough is not None else np.zeros(self.p) for t in range(T)]
        self.y_mean = C @ self.mean + np.concatenate(add)
        self.y_cov = C @ self.cov @ C.T + block_diag(*[at(model.observation, t) for t in range(T)])
        self.cross = self.cov @ C.T
        self.y = np.asarray(y, float).reshape(-1)
        self.C = C

    def given(self, upto=None):
        """Mean (T, d), covariance (T d, T d) of the states given the seen entries of the first `upto` frames, and log p of them."""
        n = self.p * (self.T if upto is None else upto)
        seen = np.flatnonzero(~np.isnan(self.y[:n]))
        S, r = self.y_cov[np.ix_(seen, seen)], self.y[seen] - self.y_mean[seen]
        K = np.linalg.solve(S, self.cross[:, seen].T).T if len(seen) else np.zeros((len(self.cov), 0))
        mean = self.mean + K @ r
        cov = self.cov - K @ self.cross[:, seen].T
        sign, logdet = np.linalg.slogdet(S) if len(seen) else (1, 0.0)
        logp = -0.5 * (len(seen) * np.log(2 * np.pi) + logdet + r @ np.linalg.solve(S, r)) if len(seen) else 0.0
        return mean.reshape(self.T, self.d), cov, logp

    def block(self, cov, t, s=None):
        s = t if s is None else s
        return cov[t * self.d : (t + 1) * self.d, s * self.d : (s + 1) * self.d]

    def flat(self, model, upto=None):
        """The same with nothing known of the diffuse directions: their limit, by generalised least squares."""
        d, T = self.d, self.T
        X = np.zeros((T * d, model.diffuse.shape[1]))
        X[:d] = model.diffuse
        for t in range(1, T):
            X[t * d : (t + 1) * d] = at(model.transition, t) @ X[(t - 1) * d : t * d]
        n = self.p * (T if upto is None else upto)
        seen = np.flatnonzero(~np.isnan(self.y[:n]))
        S, r, Y = self.y_cov[np.ix_(seen, seen)], self.y[seen] - self.y_mean[seen], (self.C @ X)[seen]
        K = np.linalg.solve(S, self.cross[:, seen].T).T
        info = Y.T @ np.linalg.solve(S, Y)
        cov_delta = np.linalg.inv(info)
        delta = cov_delta @ Y.T @ np.linalg.solve(S, r)
        left = X - K @ Y
        mean = self.mean + X @ delta + K @ (r - Y @ delta)
        cov = self.cov - K @ self.cross[:, seen].T + left @ cov_delta @ left.T
        e = r - Y @ delta
        logp = -0.5 * (len(seen) * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + e @ np.linalg.solve(S, e))
        return mean.reshape(T, d), cov, logp - 0.5 * np.linalg.slogdet(info)[1]
