"""Small linear-Gaussian models as distributions, and what their joint Gaussian says: the oracle of particle filters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import likely as lk
from likely.statespace.nonlinear.state_space import StateSpace
from tests.statespace.dense import Dense


@dataclass(frozen=True)
class Linear:
    """x_t = A x_{t−1} + w, y_t = C x_t + v, x_0 ~ N(m, P); distributions written here, not taken from the library."""

    A: np.ndarray
    Q: np.ndarray
    C: np.ndarray
    R: np.ndarray
    m: np.ndarray
    P: np.ndarray

    def distributions(self) -> StateSpace:
        return StateSpace(
            lk.Gaussian(self.m, self.P),
            lambda x: lk.Gaussian(x @ self.A.T, self.Q),
            lambda x: lk.Gaussian(x @ self.C.T, self.R),
        )

    def simulate(self, T: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        run = self.distributions().sample(1, np.random.default_rng(seed), T)
        return run.states[0], run.observations[0]

    def joint(self, T: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of (x_0, …, x_{T−1}) end to end."""
        joint = self._dense(np.full((T, len(self.C)), np.nan))
        return joint.mean.astype(float), joint.cov.astype(float)

    def _dense(self, y: np.ndarray) -> Dense:
        return Dense(
            lk.LinearGaussian(
                transition=self.A,
                process_covariance=self.Q,
                observation=self.C,
                observation_covariance=self.R,
                initial_mean=self.m,
                initial_covariance=self.P,
            ),
            y,
        )

    def given(self, y: np.ndarray, T: int | None = None) -> tuple[np.ndarray, np.ndarray, float]:
        """Mean (T, d) and covariance (T, d, d) of all states given y (NaN: not seen), and log p(y)."""
        more = np.full(((len(y) if T is None else T) - len(y), len(self.C)), np.nan)
        joint = self._dense(np.concatenate([np.reshape(y, (len(y), -1)), more]))
        mean, cov, logp = joint.given()
        return mean, np.stack([joint.block(cov, t) for t in range(joint.T)]), logp

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
