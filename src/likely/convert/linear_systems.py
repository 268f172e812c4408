"""Linear-Gaussian models of other libraries: their convention of time, and intercepts as a constant state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.statespace.linear.linear_gaussian import LinearGaussian


class System(NamedTuple):
    """x_{t+1} = T_t x_t + c_t + N(0, Q_t), y_t = Z_t x_t + d_t + N(0, H_t); entries with an axis of time lead with it.

    Entry t of T, c and Q leads from frame t to frame t + 1.
    """

    transition: Array  # (d, d), or (T, d, d)
    state_intercept: Array  # (d,), or (T, d)
    process_covariance: Array  # (d, d), or (T, d, d)
    observation: Array  # (p, d), or (T, p, d)
    observation_intercept: Array  # (p,), or (T, p)
    observation_covariance: Array  # (p, p), or (T, p, p)
    initial_mean: Array  # (d,)
    initial_covariance: Array  # (d, d)
    diffuse: Array | None = None  # (d, q)

    def model(self) -> LinearGaussian:
        """The model in the convention of this library: entry t of the transition leads into frame t.

        Intercepts need one more state, the last one: it is the constant 1, and its coefficients are the intercepts.
        """
        system = self._with_constant() if self.state_intercept.any() or self.observation_intercept.any() else self
        return LinearGaussian(
            transition=_led_into(system.transition), process_covariance=_led_into(system.process_covariance),
            observation=system.observation, observation_covariance=system.observation_covariance,
            initial_mean=system.initial_mean, initial_covariance=system.initial_covariance, diffuse=system.diffuse,
        )  # fmt: skip

    def _with_constant(self) -> System:
        d = self.transition.shape[-1]
        transition = _bordered(self.transition, self.state_intercept)
        last = np.zeros((*transition.shape[:-2], 1, d + 1))
        last[..., 0, d] = 1.0
        return self._replace(
            transition=np.concatenate([transition, last], axis=-2),
            process_covariance=_padded(self.process_covariance),
            observation=_bordered(self.observation, self.observation_intercept),
            initial_mean=np.append(self.initial_mean, 1.0),
            initial_covariance=_padded(self.initial_covariance),
            diffuse=None if self.diffuse is None else np.pad(self.diffuse, ((0, 1), (0, 0))),
        )


def _bordered(matrix: Array, column: Array) -> Array:
    """The matrix with one more column; where one of both varies over time, both do."""
    if matrix.ndim == 2 and column.ndim == 2:
        matrix = np.broadcast_to(matrix, (len(column), *matrix.shape))
    column = np.broadcast_to(column, matrix.shape[:-1])
    return np.concatenate([matrix, column[..., None]], axis=-1)


def _padded(covariance: Array) -> Array:
    """The covariance with one more variable, which is constant."""
    return np.pad(covariance, [(0, 0)] * (covariance.ndim - 2) + [(0, 1), (0, 1)])


def _led_into(matrix: Array) -> Array:
    """Entries that lead out of frames as entries that lead into them; the first one is not used."""
    return matrix if matrix.ndim == 2 else np.concatenate([matrix[:1], matrix[:-1]])


def time_first(matrix: Any, axes: int) -> Array:
    """A matrix whose last axis is time, if it has one more than `axes`: with time first, or constant where it is."""
    a = np.asarray(matrix, dtype=np.float64)
    if a.ndim == axes:
        return a
    a = np.moveaxis(a, -1, 0)
    return np.ascontiguousarray(a[0] if (a == a[0]).all() else a)
