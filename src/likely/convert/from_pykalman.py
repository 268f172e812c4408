"""Conversion of Kalman filters of pykalman."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.convert.foreign_models import converter_of, fitted_attributes
from likely.convert.linear_systems import System
from likely.core.arrays import Array
from likely.core.errors import ShapeError, sentence
from likely.statespace.linear.linear_gaussian import LinearGaussian

ME = "from_pykalman"
MATRICES = (
    "transition_matrices transition_offsets transition_covariance observation_matrices observation_offsets "
    "observation_covariance initial_state_mean initial_state_covariance n_dim_state n_dim_obs"
)
BETWEEN_FRAMES = {"transition": 2, "state_intercept": 1, "process_covariance": 2}  # axes of constant ones
OF_FRAMES = {"observation": 2, "observation_intercept": 1, "observation_covariance": 2}


def from_pykalman(model: Any) -> LinearGaussian:
    """Linear-Gaussian state-space model with the parameters of a Kalman filter of pykalman.

    `log_prob`, `filter` and `smooth` of the result give the numbers of `loglikelihood`, `filter` and `smooth` of the
    model. Missing frames are NaN here, not masked. Parameters that are None have pykalman's defaults: identities,
    and zeros. Where offsets are not zero, the last state of the result is the constant 1. pykalman itself is not
    imported.

    Parameters
    ----------
    model : pykalman.KalmanFilter
        With constant matrices, or with time-varying ones for a series of known length.

    Returns
    -------
    LinearGaussian
        It is learned further by `lk.fit`, and a model file (`lk.save`) holds it without pykalman.

    Raises
    ------
    DomainError
        If the model is of another class.

    See Also
    --------
    from_statsmodels, from_hmmlearn, from_sklearn : The same for other libraries.

    Examples
    --------
    ::

        kf = pykalman.KalmanFilter(n_dim_state=2, n_dim_obs=1).em(y)
        model = lk.from_pykalman(kf)
        model.smooth(y).mean  # kf.smooth(y)[0]
    """
    converted: LinearGaussian = converter_of(model, "pykalman", {"KalmanFilter": _linear}, ME, REASONS)(model)
    return converted


def _linear(model: Any) -> LinearGaussian:
    A, b, Q, C, o, R, mean, covariance, d, p = fitted_attributes(model, MATRICES, ME)
    eye = np.eye(max(d, p))
    parts = System(
        transition=_or(A, eye[:d, :d], 2), state_intercept=_or(b, np.zeros(d), 1),
        process_covariance=_or(Q, eye[:d, :d], 2), observation=_or(C, eye[:p, :d], 2),
        observation_intercept=_or(o, np.zeros(p), 1), observation_covariance=_or(R, eye[:p, :p], 2),
        initial_mean=_or(mean, np.zeros(d), 1), initial_covariance=_or(covariance, eye[:d, :d], 2),
    )  # fmt: skip
    between = dict(_varying(parts, BETWEEN_FRAMES))  # T − 1 entries each
    lengths = {len(part) + 1 for part in between.values()} | {len(part) for _, part in _varying(parts, OF_FRAMES)}
    if len(lengths) > 1:
        raise ShapeError(sentence(ME, "time-varying matrices must be for one number of frames", sorted(lengths)))
    return parts._replace(**{name: _one_more(part) for name, part in between.items()}).model()


def _varying(parts: System, axes: dict[str, int]) -> list[tuple[str, Array]]:
    return [(name, part) for name, n in axes.items() if (part := getattr(parts, name)).ndim > n]


def _or(given: Any, default: Array, axes: int) -> Array:
    """A parameter with at least that many axes, or its default."""
    if given is None:
        return default
    a = np.asarray(given, dtype=np.float64)
    return a.reshape((1,) * (axes - a.ndim) + a.shape)


def _one_more(entries: Array) -> Array:
    """One entry per frame, of entries between frames; the last one leads beyond the series, and is not used."""
    return np.concatenate([entries, entries[-1:]])


_FUNCTIONS = "it is made of functions: give these to lk.UnscentedKalmanFilter"
REASONS = {"UnscentedKalmanFilter": _FUNCTIONS, "AdditiveUnscentedKalmanFilter": _FUNCTIONS}
