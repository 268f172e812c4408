"""Initial linear-Gaussian model by subspace identification: principal components of lagged frames as states."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array, Index
from likely.core.errors import DataError, sentence
from likely.core.ragged import Ragged
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.linear.linear_structure import pinv_solve

NOISY = 0.1  # smallest initial noise variance, as a share of a column's variance: EM is slow near a variance of 0
STABLE = 0.98  # largest initial modulus of the eigenvalues of the transition matrix
CONSTANT = 1e-6  # standard deviation given to a constant column, relative to its size
NONE = 1e-10  # share of the largest component's variance below which a component is rounding and is dropped
ROUNDING = 1e-14  # standard deviation relative to a column's size below which the column is constant


def initial_model(x: Ragged, states: int, n_inputs: int = 0, weight: Any = None) -> LinearGaussian:
    """Initial model with `states` states, and a constant state 1 that carries the means of the columns.

    States are the principal components of frames t, t − 1, …, with as many lags as needed; the transition and
    observation matrices are regressions on them (a simple subspace method). Coefficients of inputs are 0.

    >>> y = np.sin(np.arange(200.0) / 3) + 5.0
    >>> guess = initial_model(Ragged.of(y[:, None]), 2)
    >>> guess.states, np.abs(np.angle(np.linalg.eigvals(guess.transition[:2, :2]))).round(2).tolist()
    (3, [0.33, 0.33])
    """
    y, w = np.asarray(x.values, dtype=np.float64), x.weights(weight)
    w = np.ones(len(y)) if w is None else w
    with np.errstate(all="ignore"):
        level, scale = _units(y, w)
    _refuse_extremes(scale)
    z = np.where(np.isnan(y), 0.0, (y - level) / scale)
    f = _factors(_windows(z, x.offsets, -(-states // y.shape[1])), w, states)
    now = np.setdiff1d(np.arange(len(z)), x.offsets[:-1])
    A = _stable(_regressed(f[now], f[now - 1], w[now]))
    C = _regressed(z, f, w)
    process_covariance = _residual_covariance(f[now] - f[now - 1] @ A.T, w[now], np.ones(states), NOISY)
    observation_covariance = _residual_covariance(z - f @ C.T, w, np.ones(y.shape[1]), NOISY)
    return _with_level(
        A,
        process_covariance,
        C * scale[:, None],
        np.diag(np.diagonal(observation_covariance)) * scale**2,
        level,
        n_inputs,
    )


def _units(y: Array, w: Array) -> tuple[Array, Array]:
    """Mean and standard deviation per column; a millionth of its size for a constant column."""
    nonzero = ~np.isnan(y)
    count = np.maximum(w @ nonzero, 1e-300)
    level = (w[:, None] * np.where(nonzero, y, 0.0)).sum(axis=0) / count
    deviations = np.where(nonzero, y - level, 0.0)
    scale = np.sqrt((w[:, None] * deviations**2).sum(axis=0) / count)
    is_constant = scale <= ROUNDING * np.abs(level)
    return level, np.where(is_constant, np.where(level == 0, CONSTANT, CONSTANT * np.abs(level)), scale)


def _refuse_extremes(scale: Array) -> None:
    """Refuse standard deviations whose squares overflow or underflow."""
    bad = np.flatnonzero(~((scale > 1e-150) & (scale < 1e150)))
    if len(bad):
        expected = f"the standard deviation of column {bad[0]} must lie between 1e-150 and 1e150"
        raise DataError(sentence("LinearGaussian", expected, float(scale[bad[0]]), "change its units"))


def _windows(z: Array, offsets: Index, frames: int) -> Array:
    """Lagged frames side by side; before the first frame of a sequence the first is repeated."""
    begin = np.repeat(offsets[:-1], np.diff(offsets))
    at = np.arange(len(z))
    return np.hstack([z[np.maximum(at - lag, begin)] for lag in range(frames)])


def _factors(windows: Array, w: Array, states: int) -> Array:
    """The leading principal components, scaled to variance 1; 0 for components of no variance."""
    total = max(float(w.sum()), 1e-300)
    values, vectors = np.linalg.eigh((w[:, None] * windows).T @ windows / total)
    leading = np.argsort(values)[::-1][:states]
    nonzero = values[leading] > NONE * max(float(values[-1]), 1e-300)
    return np.asarray(windows @ (vectors[:, leading] * nonzero) / np.sqrt(np.maximum(values[leading], NOISY**2)))


def _regressed(of: Array, on: Array, w: Array) -> Array:
    return pinv_solve((w[:, None] * on).T @ on, (w[:, None] * on).T @ of).T


def _stable(A: Array) -> Array:
    largest = float(np.abs(np.linalg.eigvals(A)).max(initial=0.0))
    return A if largest <= STABLE else A * (STABLE / largest)


def _residual_covariance(residuals: Array, w: Array, scales_of: Array, least: float) -> Array:
    covariance = (w[:, None] * residuals).T @ residuals / max(float(w.sum()), 1e-300)
    return covariance + least * np.diag(scales_of)


def _with_level(
    A: Array, process_covariance: Array, C: Array, observation_covariance: Array, level: Array, n_inputs: int
) -> LinearGaussian:
    d, p = len(A), len(C)
    padded = np.zeros((d + 1, d + 1))
    padded[:d, :d] = process_covariance
    transition, initial_covariance = np.eye(d + 1), np.diag([1.0] * d + [0.0])
    transition[:d, :d] = A
    inputs = (np.zeros((d + 1, n_inputs)), np.zeros((p, n_inputs))) if n_inputs else (None, None)
    mean = np.concatenate([np.zeros(d), [1.0]])
    return LinearGaussian(
        transition=transition, process_covariance=padded, observation=np.hstack([C, level[:, None]]),
        observation_covariance=observation_covariance, initial_mean=mean, initial_covariance=initial_covariance,
        control=inputs[0], feedthrough=inputs[1],
    )  # fmt: skip


def free_form(states: int, n_inputs: int) -> dict[str, Any]:
    """Constraints of such a model: all entries are free but those of the constant state."""
    free = np.zeros((states + 1, states + 1), dtype=bool)
    free[:states, :states] = True
    forms: dict[str, Any] = {"transition": free}
    if n_inputs:
        forms["control"] = np.repeat(np.arange(states + 1)[:, None] < states, n_inputs, axis=1)
    return forms
