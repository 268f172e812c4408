"""Forecasts of a linear-Gaussian model, and the steady state of the Kalman filter (Riccati equation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from likely.core import declared
from likely.core.arrays import Array, numbers
from likely.core.description import counted
from likely.core.errors import DataError, DomainError, NotConverged, ShapeError, sentence
from likely.core.value import Value
from likely.distributions.gaussian.gaussian import Gaussian
from likely.numerics import covariance_roots, spd
from likely.statespace.linear.kalman_filter import read_only
from likely.statespace.linear.result_repr import SMALL, matrix_words

ME = "LinearGaussian"
CONVERGED = 1e-14  # change of a root per frame, in units of the standard deviation
FIRST = 200  # frames in which most models converge
AT_ONCE = 10_000  # frames between checks for a keyboard interrupt
UNOBSERVABLE = 1e-13  # smallest singular value, of columns of norm 1, that is rounding
NOT_DETECTABLE = "some direction is neither observed nor stable; use filter(y).covariance instead"


@dataclass(frozen=True, eq=False)
class StateForecast(Value):
    """Forecast of the states and observations 1 … steps frames ahead.

    `forecast[i]` is the predictive distribution of one observation, a Gaussian.

    Parameters
    ----------
    mean : ndarray (steps, p)
        Means of the observations.
    covariance : ndarray (steps, p, p)
        Covariances of the observations.
    states : ndarray (steps, d)
        Means of the states.
    state_covariance : ndarray (steps, d, d)
        Covariances of the states.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> ahead = walk.forecast([1.0, 1.0], 2)
    >>> [bound.round(2).tolist() for bound in ahead.interval(0.5)]
    [[[-0.29], [-0.48]], [[1.89], [2.08]]]
    """

    mean: Annotated[Array, declared.numbers("s p")]  # (steps, p)
    covariance: Annotated[Array, declared.numbers("s p p")]  # (steps, p, p)
    states: Annotated[Array, declared.numbers("s d")]  # (steps, d)
    state_covariance: Annotated[Array, declared.numbers("s d d")]  # (steps, d, d)

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that predictive variances are not negative."""
        spread = (fields["covariance"], fields["state_covariance"])
        least = min(float(np.diagonal(a, axis1=1, axis2=2).min()) for a in spread)
        return "" if least >= 0 else "variances must not be negative"

    def __len__(self) -> int:
        return len(self.mean)

    def __repr__(self) -> str:
        size = f"{counted(len(self), 'step')} of {counted(self.mean.shape[1], 'column')}"
        few = len(self) and self.mean.shape[1] <= SMALL
        ends = f", mean {matrix_words(self.mean[0])} … {matrix_words(self.mean[-1])}" if few else ""
        return f"StateForecast({size}{ends})"

    def __getitem__(self, step: int) -> Gaussian:
        """Predictive Gaussian of the observation `step + 1` frames ahead."""
        return Gaussian(self.mean[step], self.covariance[step])

    def __iter__(self) -> Iterator[Gaussian]:
        return (self[i] for i in range(len(self)))

    @property
    def std(self) -> Array:
        """Standard deviation of each observed column (steps, p)."""
        return np.sqrt(self.variance)

    @property
    def variance(self) -> Array:
        """Variance of each observed column (steps, p)."""
        return np.array(np.diagonal(self.covariance, axis1=1, axis2=2))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Prediction intervals: lower and upper bounds (steps, p) per column with this probability."""
        if not 0.0 < level < 1.0:
            raise DomainError(sentence("interval", "level must lie between 0 and 1", level))
        wide = float(ndtri(0.5 + 0.5 * level)) * self.std
        return self.mean - wide, self.mean + wide


def forecast_from(model: Any, belief: Any, steps: int, future: Any) -> StateForecast:
    """Forecast 1 … steps frames after a belief; inputs of these frames in `future` (steps, k)."""
    if belief.diffuse_part is not None:
        remedy = "filter more frames first, or give the model an initial covariance"
        expected = "the initial state must be determined by the observations"
        raise DataError(sentence(f"{ME}.forecast", expected, "a diffuse one", remedy))
    u = _future(model, steps, future)
    mean, cov = np.empty((steps, model.dim)), np.empty((steps, model.dim, model.dim))
    states, state_cov = np.empty((steps, model.states)), np.empty((steps, model.states, model.states))
    for i in range(steps):
        belief = model.predict(belief, None if u is None else u[i])
        C, R = (a if a.ndim == 2 else a[belief.time] for a in (model.observation, model.observation_covariance))
        states[i], state_cov[i] = belief.mean, belief.covariance
        projected_root = belief.root @ C.T
        mean[i], cov[i] = C @ belief.mean, spd.symmetric(projected_root.T @ projected_root + R)
        if model.feedthrough is not None and u is not None:
            mean[i] += (model.feedthrough if model.feedthrough.ndim == 2 else model.feedthrough[belief.time]) @ u[i]
    return StateForecast.trusted(mean=mean, covariance=cov, states=states, state_covariance=state_cov)


def _future(model: Any, steps: int, future: Any) -> Array | None:
    if not model.n_inputs:
        return None
    if future is None:
        raise DataError(
            sentence(f"{ME}.forecast", f"inputs of the next {steps} frames are needed", "none", "give future=")
        )
    u = numbers(future, ME).reshape(-1, model.n_inputs) if np.ndim(future) < 2 else numbers(future, ME)
    if u.shape != (steps, model.n_inputs):
        raise ShapeError(sentence(f"{ME}.forecast", f"future must have shape ({steps}, {model.n_inputs})", u.shape))
    return u


class Steady(NamedTuple):
    """Steady state of the Kalman filter: x̂ = x̂⁻ + gain (y − C x̂⁻), predicted and filtered covariance."""

    gain: Array  # (d, p)
    predicted: Array  # (d, d): covariance before an observation
    covariance: Array  # (d, d): covariance after it
    frames: int  # until convergence


def steady_state(model: Any, most: int = 1_000_000) -> Steady:
    """Iterate the covariances to convergence: the stabilizing solution of the discrete algebraic Riccati equation."""
    from likely.statespace.linear import _loops as kalman

    if model.length is not None:
        got = f"matrices for {model.length} frames"
        raise DomainError(sentence(f"{ME}.steady_state", "a time-invariant model is needed", got))
    _check_detectable(model)
    m, d, frames, change = model.matrices, model.states, 0, np.inf
    nothing, y = read_only(np.zeros((1, d))), read_only(np.zeros((1, model.dim)))
    U, ahead = np.array(covariance_roots.root(model.initial_covariance + np.eye(d) * _size(model))), np.empty((d, d))
    while frames < most and not change <= CONVERGED:
        iterate = kalman.iterate_riccati if frames else kalman.iterate_riccati.plain  # compiled only if it takes long
        more, change = iterate(
            m.A, m.N, m.C, m.R, nothing, y, U, ahead, min(AT_ONCE if frames else FIRST, most - frames)
        )
        frames += more
    if change <= CONVERGED:
        return Steady(_gain(model, ahead), covariance_roots.square(ahead), covariance_roots.square(U), frames)
    got = f"a standard deviation that still changes by a share of {change:.1e} per frame"
    expected = f"covariances must converge within {most} frames"
    raise NotConverged(sentence(f"{ME}.steady_state", expected, got, NOT_DETECTABLE))


def _check_detectable(model: Any) -> None:
    """Hautus test of detectability: an unobserved direction with |λ| ≥ 1 has no steady-state variance.

    It is v with A v = λ v and C v = 0: the columns of [A − λ I; C] are linearly dependent.
    """
    A, C = model.transition, model.observation / spd.scales(model.observation @ model.observation.T)[:, None]
    for value in np.linalg.eigvals(A):
        if abs(value) < 1.0 - 1e-12:
            continue
        test = np.vstack([A - value * np.eye(len(A)), C])
        size = np.sqrt((np.abs(test) ** 2).sum(axis=0))
        size[size == 0.0] = 1.0  # a column of zeros stays one
        if np.linalg.svd(test / size, compute_uv=False)[-1] < UNOBSERVABLE:
            got = f"an unobserved direction with eigenvalue modulus {abs(value):.6g}"
            expected = "every direction must be observed or stable (detectability)"
            raise NotConverged(sentence(f"{ME}.steady_state", expected, got, NOT_DETECTABLE))


def _size(model: Any) -> float:
    return float(max(np.trace(model.process_covariance), np.trace(model.observation_covariance), 1e-300)) / model.states


def _gain(model: Any, root: Array) -> Array:
    projected_root = root @ model.observation.T
    innovation_covariance = projected_root.T @ projected_root + model.observation_covariance
    s = spd.scales(innovation_covariance)
    return np.asarray(
        root.T
        @ projected_root
        / s
        @ np.linalg.pinv(innovation_covariance / s[:, None] / s[None, :], hermitian=True)
        / s
    )
