"""A small linear-Gaussian model, and everything about it from one joint Gaussian: the oracle of particle filters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import likely as lk
from likely.models.state_space import StateSpace


@dataclass(frozen=True)
class Linear:
    """x_t = A x_{t−1} + w, y_t = C x_t + v, x_0 ~ N(m, P)."""

    A: np.ndarray
    Q: np.ndarray
    C: np.ndarray
    R: np.ndarray
    m: np.ndarray
    P: np.ndarray

    def laws(self) -> StateSpace:
        return StateSpace(
            lk.Gaussian(self.m, self.P),
            lambda x: lk.Gaussian(x @ self.A.T, self.Q),
            lambda x: lk.Gaussian(x @ self.C.T, self.R),
        )

    def simulate(self, T: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        run = self.laws().sample(1, np.random.default_rng(seed), T)
        return run.states[0], run.observations[0]

    def joint(self, T: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of (x_0, …, x_{T−1}) end to end."""
        d = len(self.m)
        mean, cov = [self.m], np.zeros((T * d, T * d))
        cov[:d, :d] = self.P
        for t in range(1, T):
            a, b = slice((t - 1) * d, t * d), slice(t * d, (t + 1) * d)
            mean.append(self.A @ mean[-1])
            cov[b, : t * d] = self.A @ cov[a, : t * d]
            cov[: t * d, b] = cov[b, : t * d].T
            cov[b, b] = self.A @ cov[a, a] @ self.A.T + self.Q
        return np.concatenate(mean), cov

    def given(self, y: np.ndarray, T: int | None = None) -> tuple[np.ndarray, np.ndarray, float]:
        """Mean (T, d) and covariance (T, d, d) of all states given y (NaN: not seen), and log p(y)."""
        T = len(y) if T is None else T
        d, p = len(self.m), len(self.C)
        mean, cov = self.joint(T)
        H = np.zeros((len(y) * p, T * d))
        for t in range(len(y)):
            H[t * p : (t + 1) * p, t * d : (t + 1) * d] = self.C
        noise = np.kron(np.eye(len(y)), self.R)
        seen = ~np.isnan(y.ravel())
        H, noise, z = H[seen], noise[np.ix_(seen, seen)], y.ravel()[seen]
        S = H @ cov @ H.T + noise
        away = z - H @ mean
        gain = np.linalg.solve(S, H @ cov).T
        log_prob = -0.5 * (len(z) * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + away @ np.linalg.solve(S, away))
        post = cov - gain @ H @ cov
        blocks = np.stack([post[t * d : (t + 1) * d, t * d : (t + 1) * d] for t in range(T)])
        return (mean + gain @ away).reshape(T, d), blocks, float(log_prob)

    def filtered(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Filter means (T, d), covariances, and the increments of log p(y) (T,)."""
        each = [self.given(y[: t + 1]) for t in range(len(y))]
        logs = np.array([e[2] for e in each])
        return np.stack([e[0][-1] for e in each]), np.stack([e[1][-1] for e in each]), np.diff(logs, prepend=0.0)


def level() -> Linear:
    """A random walk seen through noise."""
    one = np.eye(1)
    return Linear(one, 0.5 * one, one, 1.0 * one, np.zeros(1), 2.0 * one)


def turning(noise: float = 0.3) -> Linear:
    """Two states, one observation, correlated noise."""
    A = 0.95 * np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    return Linear(
        A, np.array([[0.3, 0.1], [0.1, 0.2]]), np.array([[1.0, 0.5]]), np.array([[noise]]), np.zeros(2), np.eye(2)
    )


def velocity() -> Linear:
    """Position and speed pushed by one number: the noise is singular."""
    g = np.array([[0.5], [1.0]])
    A = np.array([[1.0, 1.0], [0.0, 1.0]])
    return Linear(A, 0.2 * g @ g.T, np.array([[1.0, 0.0]]), np.array([[0.5]]), np.zeros(2), np.eye(2))
