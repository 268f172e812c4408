"""Linear stochastic differential equations: continuous-time state-space models with irregular observation times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, SequencesLike, parameter, rows
from likely.core.description import Description
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.core.value import Value, fill_cache
from likely.core.warnings import warnings_discarded
from likely.numerics import covariance_roots
from likely.numerics.sde_discretization import Discretizer
from likely.statespace.continuous.observation_times import clock, clocks, is_one_clock, moments, steps_between
from likely.statespace.continuous.sde_models import SDEModels
from likely.statespace.continuous.timed_belief import TimedBelief
from likely.statespace.linear.forecast import StateForecast
from likely.statespace.linear.kalman_filter import States, read_only
from likely.statespace.linear.linear_description import sde_description
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.linear.result_repr import linear_words
from likely.statespace.linear.sums_of_models import initial_of, observed_covariance

WHOSE = "LinearSDE"
LONG = 2048  # frames of a series from which threads are used
KEPT = 64  # lengths of steps whose matrices an online filter caches


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinearSDE(SDEModels, Value):
    """Linear SDE dx = F x dt + dβ, E[dβ dβᵀ] = Q_c dt, observed as y_i = C x(t_i) + v_i, v ~ N(0, R).

    `drift` F and `diffusion` Q_c (a spectral density: variance per unit of time) give the transition matrix and process
    covariance of every step between two observations, exactly (`numerics.sde_discretization`). The state at the first
    observation is N(initial_mean, initial_covariance), diffuse in the directions `diffuse` (d, q); with neither
    covariance nor diffuse, in all directions. Times are nondecreasing numbers; two equal ones are two observations at
    once. Many series are lists of y and of times.

    Parameters
    ----------
    drift : array-like (d, d)
        Drift matrix F.
    diffusion : array-like (d, d)
        Diffusion Q_c: the spectral density of dβ, positive semi-definite.
    observation : array-like (p, d)
        Observation matrix C.
    observation_covariance : array-like (p, p)
        Covariance R of the observation noise.
    initial_mean : array-like (d,), optional
        Mean of the state at the first observation; 0 by default.
    initial_covariance : array-like (d, d), optional
        Its covariance; without it and `diffuse`, all directions are diffuse.
    diffuse : array-like (d, q), optional
        Directions in which the variance of that state is infinite.

    See Also
    --------
    LinearGaussian : The model in discrete time.

    References
    ----------
    Särkkä and Solin (2019); Durbin and Koopman (2012).

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> m = lk.LinearSDE.matern(1.5, length_scale=2.0, variance=1.0, observation_variance=0.01)
    >>> float(m.smooth([0.0, 1.0, 0.5], times=[0.0, 0.7, 3.0], at=[1.5]).mean[0, 0].round(3))
    1.148
    """

    drift: Annotated[Array, declared.numbers("d d")]  # (d, d)
    diffusion: Annotated[Array, declared.numbers("d d")]  # (d, d), positive semi-definite
    observation: Annotated[Array, declared.numbers("p d")]  # (p, d)
    observation_covariance: Annotated[Array, declared.numbers("p p")]  # (p, p)
    initial_mean: Annotated[Array, declared.numbers("d")] = None  # type: ignore[assignment]  # (d,)
    initial_covariance: Annotated[Array, declared.numbers("d d")] = None  # type: ignore[assignment]  # (d, d)
    diffuse: Annotated[Array | None, declared.maybe(declared.numbers("d q"))] = None  # (d, q)

    def __post_init__(self) -> None:
        F, Qc = parameter(self.drift, WHOSE, "drift"), parameter(self.diffusion, WHOSE, "diffusion")
        d = len(F) if F.ndim == 2 else 0
        if not d or F.shape != (d, d) or Qc.shape != (d, d):
            expected = "drift and diffusion must have shape (d, d)"
            raise ShapeError(sentence(WHOSE, expected, [F.shape, Qc.shape]))
        if not covariance_roots.is_covariance(Qc):
            expected = "diffusion must be symmetric and positive semidefinite"
            raise DomainError(sentence(WHOSE, expected, Qc.tolist()))
        # the discrete-time model checks covariances, observation matrix and initial state
        one = LinearGaussian(
            transition=np.eye(d),
            process_covariance=Qc,
            observation=self.observation,
            observation_covariance=self.observation_covariance,
            initial_mean=self.initial_mean,
            initial_covariance=self.initial_covariance,
            diffuse=self.diffuse,
        )
        if one.observation.ndim == 3 or one.observation_covariance.ndim == 3:
            raise ShapeError(sentence(WHOSE, "observation (p, d) and observation_covariance (p, p) must be constant",
                                      [one.observation.shape, one.observation_covariance.shape]))  # fmt: skip
        self._set(
            drift=F,
            diffusion=Qc,
            observation=one.observation,
            observation_covariance=one.observation_covariance,
            initial_mean=one.initial_mean,
            initial_covariance=one.initial_covariance,
            diffuse=one.diffuse,
        )

    @property
    def dim(self) -> int:
        """Number of observed columns."""
        return int(self.observation.shape[0])

    @property
    def states(self) -> int:
        """Number of states d."""
        return len(self.drift)

    def __repr__(self) -> str:
        return linear_words(self, ("drift", "diffusion", "observation", "observation_covariance"))

    def describe(self) -> Description:
        """Equations, matrices and initial state."""
        return sde_description(self)

    # ---------------------------------------------------------- discrete time

    def at(self, times: ArrayLike) -> LinearGaussian:
        """Discretized model of observations at these times (T,): one transition matrix per frame.

        If all steps are equal the matrices have no leading axis.

        Returns
        -------
        LinearGaussian
            The model in discrete time.

        Examples
        --------
        >>> import likely as lk
        >>> lk.LinearSDE.wiener(spectral_density=2.0).at([0.0, 1.0, 4.0]).process_covariance.ravel().tolist()
        [0.0, 2.0, 6.0]
        """
        return self._models(Ragged.of(clock(times, WHOSE)))(0)

    def _models(self, times_of: Ragged) -> Callable[[int], LinearGaussian]:
        """Discretized model per sequence of times, made on demand; equal steps are computed once."""
        steps, which = steps_between(times_of)
        if len(steps) <= 1:
            return lambda i: self._over(float(steps.sum()))
        moves = self._discretized(np.append(steps, 0.0))  # the last one, index −1, is that of first frames
        return lambda i: self._discrete(*(M[which[times_of.offsets[i] : times_of.offsets[i + 1]]] for M in moves))

    @cached_property
    def _discretizer(self) -> Discretizer:
        return Discretizer.of(self.drift, self.diffusion)

    def _discretized(self, steps: Array) -> tuple[Array, Array, Array]:
        """Transition matrices, process covariances and their roots per step."""
        with np.errstate(over="ignore", invalid="ignore"):
            A, Q, U = self._discretizer.over(steps, root=True)
        bad = ~(np.isfinite(A) & np.isfinite(Q)).all(axis=(1, 2))
        if bad.any():
            expected = "an unstable drift must not overflow within a step"
            raise DomainError(sentence(WHOSE, expected, f"a step of {steps[bad].min():g}"))
        return A, Q, U

    def _discrete(self, A: Array, Q: Array, U: Array) -> LinearGaussian:
        """The model with these transition matrices and process covariances (T, d, d), and their roots."""
        out = self._zero_step.replace(transition=A, process_covariance=Q)
        return fill_cache(out, matrices=self._zero_step.matrices._replace(A=read_only(A), N=read_only(U)))

    @cached_property
    def _zero_step(self) -> LinearGaussian:
        """The model of simultaneous observations: no time step."""
        one, nothing = np.eye(self.states), np.zeros((self.states, self.states))
        return LinearGaussian(
            transition=one,
            process_covariance=nothing,
            observation=self.observation,
            observation_covariance=self.observation_covariance,
            initial_mean=self.initial_mean,
            initial_covariance=self.initial_covariance,
            diffuse=self.diffuse,
        )

    @cached_property
    def _lengths(self) -> dict[float, LinearGaussian]:
        return {}

    def _over(self, step: float) -> LinearGaussian:
        """The model with a constant time step; the last few are cached."""
        known = self._lengths.get(step)
        if known is None:
            A, Q, U = self._discretized(np.array([step]))
            known = self._zero_step.replace(transition=A[0], process_covariance=Q[0])
            fill_cache(known, matrices=self._zero_step.matrices._replace(A=read_only(A), N=read_only(U)))
            if len(self._lengths) >= KEPT:
                self._lengths.clear()
            self._lengths[step] = known
        return known

    # ---------------------------------------------------------------- density

    def log_prob(self, y: SequencesLike, times: SequencesLike) -> Array:
        """Log-likelihood log p(y) per series at its times (n,)."""
        series = self._series(y)
        model = self._models(clocks(times, series, WHOSE))
        each = _mapped(lambda i: model(i).log_prob(series[i]), series)
        return np.concatenate([np.empty(0), *each])

    def sample(self, n: int, rng: Generator, times: ArrayLike) -> Ragged:
        """Draw n series (a Ragged) at the times (T,)."""
        t = clock(times, WHOSE)
        return self.at(t).sample(n, rng, len(t))

    # ----------------------------------------------------------------- states

    def filter(self, y: SequencesLike, times: ArrayLike) -> Any:
        """Kalman filter: p(x(t_i) | y up to t_i) as `mean` (T, d), `covariance` (T, d, d), `log_prob`."""
        return self._asked(y, times, lambda m, x: m.filter(x))

    def smooth(self, y: SequencesLike, times: ArrayLike, at: ArrayLike | None = None) -> Any:
        """Smoother: p(x(t) | all observations) at the observation times, or at the times `at` (m,).

        `at` may lie between, after and (if the initial distribution is time-invariant) before the observation times.
        For many series it is one array for all, or a list of arrays.

        Parameters
        ----------
        at : array-like (m,), optional
            Times of the smoothed states; by default those of the observations.
        """
        if at is None:
            return self._asked(y, times, lambda m, x: m.smooth(x))
        return self._at_moments(y, times, at, lambda m, x: m.smooth(x))

    def forecast(self, y: SequencesLike, times: ArrayLike, at: ArrayLike) -> Any:
        """Forecast of states and observations at times `at` (m,), from the last time on; a list for many series.

        Parameters
        ----------
        y : array-like (T, p) or sequences
            Observations; NaN is a missing value.
        at : array-like (m,)
            Times of the forecasts.

        Returns
        -------
        StateForecast
            Distributions of states and observations; a list for many series.

        Examples
        --------
        >>> import likely as lk
        >>> model = lk.LinearSDE.wiener(spectral_density=2.0, observation_variance=1.0)
        >>> ahead = model.forecast([5.0, 5.0], [0.0, 1e-9], at=[3.0])
        >>> ahead.mean, ahead.covariance.round(6)
        (array([[5.]]), array([[[7.5]]]))
        """
        found = self._at_moments(y, times, at, lambda m, x: m.filter(x), ahead=True)
        if is_single_sequence(y):
            return self._ahead(found.mean, found.covariance)
        return [self._ahead(mean, P) for mean, P in zip(found.mean, found.covariance, strict=True)]

    def _ahead(self, mean: Array, P: Array) -> StateForecast:
        seen = observed_covariance(self.observation, P) + self.observation_covariance
        return StateForecast.trusted(
            mean=mean @ self.observation.T, covariance=seen, states=np.array(mean), state_covariance=np.array(P)
        )

    # -------------------------------------------------------------- series

    def _asked(self, y: Any, times: Any, ask: Callable[[LinearGaussian, Any], Any]) -> Any:
        series = self._series(y)
        model = self._models(clocks(times, series, WHOSE))
        if is_single_sequence(y):
            return ask(model(0), series[0])
        return _joined(_mapped(lambda i: ask(model(i), series[i]), series))

    def _series(self, y: Any) -> Ragged:
        """Series as a Ragged of frames (T, p)."""
        with warnings_discarded():  # this model is for irregular times
            return Ragged.of(y).map(lambda frames: rows(frames, self.dim, WHOSE))

    def _at_moments(
        self, y: Any, times: Any, at: Any, ask: Callable[[LinearGaussian, Any], Any], ahead: bool = False
    ) -> Any:
        """Results of `ask` at further times, which are inserted as frames of missing values."""
        series = self._series(y)
        times_of = clocks(times, series, WHOSE)
        at = [at] if isinstance(at, int | float | np.number) else at
        times_at = (
            [moments(at, WHOSE)] * len(series) if is_one_clock(at, WHOSE) else [moments(one, WHOSE) for one in at]
        )
        if len(times_at) != len(series):
            raise ShapeError(sentence(WHOSE, f"at must be one array, or one per series ({len(series)})", len(times_at)))

        def one(i: int) -> Any:
            t, x = times_of[i], series[i]
            if ahead and len(t) and len(times_at[i]) and times_at[i].min() < t[-1]:
                expected = f"times of a forecast must not lie before the last time {t[-1]:g}"
                raise DataError(sentence(WHOSE, expected, f"{times_at[i].min():g}", "use smooth(y, times, at)"))
            return self._between(t, x, times_at[i], ask)

        return one(0) if is_single_sequence(y) else _joined(_mapped(one, series))

    def _between(self, t: Array, x: Array, at: Array, ask: Callable[[LinearGaussian, Any], Any]) -> Any:
        early = bool(len(t) and len(at) and at.min() < t[0])
        if early:
            self._refuse_early(float(at.min()), float(t[0]))
        more = np.setdiff1d(at, t)
        order = np.argsort(np.concatenate([t, more]), kind="stable")
        every = np.concatenate([t, more])[order]
        frames = np.concatenate([x, np.full((len(more), self.dim), np.nan)])[order]
        found = ask(self.at(every), frames)
        here = np.searchsorted(every, at, side="right") - 1
        log_prob = float(self.at(t).log_prob(x)[0]) if early else found.log_prob
        return States(found.mean[here], found.covariance[here], log_prob)

    def _refuse_early(self, moment: float, first: float) -> None:
        """Refuse times before the first observation, unless the initial distribution is time-invariant."""
        if not self.initial_is_time_invariant:
            expected = f"times must not lie before the first one, {first:g}, at which the initial state is defined"
            remedy = "ask for later times, or begin the series with NaN at the earlier time"
            raise DomainError(sentence(WHOSE, expected, f"{moment:g}", remedy))

    @cached_property
    def initial_is_time_invariant(self) -> bool:
        """True if the initial distribution is time-invariant: stationary, diffuse, or both in parts.

        Outside the diffuse directions D the mean is constant (F m = 0), so is the covariance (F P + P Fᵀ + Q_c = 0),
        and D is an invariant subspace (F D lies in D).
        """
        (m, P, D), F = initial_of(self), self.drift
        U, s, _ = np.linalg.svd(D, full_matrices=True) if D.size else (np.eye(self.states), np.empty(0), None)
        N = U[:, int((s > 1e-12 * s.max(initial=0.0)).sum()) :]
        size = np.sqrt(np.maximum(np.diagonal(P), 1e-300))
        flow = N.T @ (F @ P + P @ F.T + self.diffusion) @ N
        scale = (
            np.abs(N.T) @ (np.abs(F) @ np.outer(size, size) + self.diffusion.diagonal() * np.eye(len(F))) @ np.abs(N)
        )
        still = (np.abs(flow) <= 1e-9 * (scale + scale.T)).all() and (
            np.abs(N.T @ F @ D) <= 1e-12 * (np.abs(N.T) @ np.abs(F) @ np.abs(D))
        ).all()
        return bool(still and (np.abs(N.T @ F @ m) <= 1e-12 * np.abs(F) @ np.abs(m) @ np.abs(N)).all())

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> TimedBelief:
        """Belief of the initial state, before any observation; its time is None."""
        return TimedBelief.trusted(state=self._zero_step.initial_belief(), time=None)

    continuous_time = True  # the inputs of a frame are its time

    def predict(self, belief: TimedBelief, inputs: SequencesLike | None = None) -> TimedBelief:
        """Prediction step to a later time, `inputs`; without a time the same belief."""
        if inputs is None:
            return belief
        t = _moment(inputs)
        if belief.time is None:
            return belief.replace(time=t)
        if t < belief.time:
            raise DataError(sentence(WHOSE, f"times must not decrease: the belief is at {belief.time:g}", f"{t:g}"))
        return TimedBelief.trusted(state=self._over(t - belief.time).predict(belief.state), time=t)

    def update(
        self, belief: TimedBelief, y: SequencesLike, inputs: SequencesLike | None = None
    ) -> tuple[TimedBelief, float]:
        """Update step with an observation y at the time `inputs`: the belief, and log p(y | earlier observations).

        >>> import likely as lk
        >>> model = lk.LinearSDE.ornstein_uhlenbeck(1.0, observation_variance=0.1)
        >>> for belief, logp in lk.follow(model, [0.3, 0.1, -0.6], inputs=[0.0, 0.8, 5.0]):
        ...     print(belief.time, belief.mean.round(2))
        0.0 [0.25]
        0.8 [0.1]
        5.0 [-0.5]
        """
        if inputs is None:
            raise DataError(sentence(WHOSE, "an observation needs its time", "none", "give inputs=, the time of each"))
        there = belief if belief.time == _moment(inputs) else self.predict(belief, inputs)
        state, increment = self._zero_step.update(there.state, y)
        return there.replace(state=state), increment


def _moment(time: Any) -> float:
    found = np.asarray(time).ravel() if np.ndim(time) else [time]
    if len(found) != 1:
        raise ShapeError(sentence(WHOSE, "the inputs of an observation are its time, one number", len(found)))
    return float(moments([found[0]], WHOSE)[0])


def _mapped(f: Callable[[int], Any], series: Ragged) -> list[Any]:
    """f of the index of each series; in threads if they are long enough."""
    n = len(series)
    with one_blas_thread():
        return list(ordered_map(f, range(n), cores() if len(series.values) > LONG * n else 1))


def _joined(results: list[Any]) -> Any:
    """Results of several series as one: Ragged of arrays per frame, (n,) of numbers."""
    kind = type(results[0])
    columns = zip(*results, strict=True)
    return kind(*(np.array(c) if np.ndim(c[0]) == 0 else Ragged.from_list(list(c)) for c in columns))
