"""Base of filters by Gaussian approximation (assumed-density filters): they differ only in the linearization."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, check_integer, frozen, numbers, refuse_infinite
from likely.core.blocks import ROWS
from likely.core.docstrings import complete
from likely.core.engine import one_blas_thread
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.numerics import covariance_roots
from likely.statespace.linear.forecast import StateForecast
from likely.statespace.linear.kalman_filter import Smoothed, States
from likely.statespace.linear.state_belief import StateBelief
from likely.statespace.nonlinear.distribution_moments import DistributionMoments, distribution_moments
from likely.statespace.nonlinear.joint_gaussian import Conditioned, Linear, backward_gain, condition, joint, triangular


class ConditionalMoments(NamedTuple):
    """Conditional mean and covariance of z as a function of the state; z is the next state or the observation."""

    distribution: Callable[[Array, int, Any], Any]  # of states (N, d), frame, inputs
    angles: Sequence[int]  # columns of z that are
    what: str  # "transition" or "observation"
    whose: str  # the filter's name

    def at(self, x: Array, t: int, u: Any) -> DistributionMoments:
        """The moments of z for states (N, d) at frame t with inputs u."""
        found = distribution_moments(self.distribution(x, t, u), len(x), self.whose, self.what, t)
        if self.angles:
            of = "wrap_state" if self.what == "transition" else "wrap"
            _check_columns(self.angles, found.mean.shape[1], self.whose, of)
        return found


@complete
@dataclass(frozen=True, eq=False)
class GaussianFilter:
    """Base class of filters by Gaussian approximation; each subclass adds `linearize`, its linearization.

    A belief is N(mean, rootᵀ root). Prediction and update both need the joint distribution of the state x and of z, the
    next state or the observation, where x is Gaussian and z | x has moments that are nonlinear in x. `linearize`
    approximates z by a linear function of x with noise; the rest is exact, in square-root form, so covariances stay
    positive.
    """

    model: Any  # a StateSpace
    _: KW_ONLY
    wrap: Sequence[int] = ()  # columns of the observation that are angles, in radians
    wrap_state: Sequence[int] = ()  # columns of the state that are

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", getattr(self.model, "distributions", self.model))  # of a linear model
        if not all(
            hasattr(self.model, verb)
            for verb in ("initial_distribution", "transition_distribution", "observation_distribution")
        ):
            raise DomainError(sentence(self._name, "a StateSpace is needed", type(self.model).__name__))
        for name in ("wrap", "wrap_state"):
            columns = np.asarray(getattr(self, name))
            if columns.size and (columns.ndim != 1 or columns.dtype.kind not in "iu" or columns.min() < 0):
                expected = f"{name} must be indices of columns that are angles"
                raise DomainError(sentence(self._name, expected, getattr(self, name)))
            object.__setattr__(self, name, tuple(columns.tolist()))

    def linearize(self, mean: Array, root: Array, curve: ConditionalMoments, t: int, u: Any) -> Linear:
        """Linearization of z for x ~ N(mean, rootᵀ root), at frame t with inputs u."""
        raise NotImplementedError

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> StateBelief:
        """Belief of the initial state, before any observation."""
        mean, root = self._start
        return StateBelief.fresh(mean.copy(), root.copy(), 0)

    @cached_property
    def _start(self) -> tuple[Array, Array]:
        found = distribution_moments(self.model.initial_distribution(), 1, self._name, "initial", 0)
        _check_columns(self.wrap_state, len(found.first), self._name, "wrap_state")
        return frozen(turned(found.mean[0], self.wrap_state)), frozen(covariance_roots.root(found.first))

    def predict(self, belief: StateBelief, inputs: ArrayLike | None = None) -> StateBelief:
        """Prediction step: the belief one frame later; `inputs` are those of that frame, if the model takes any."""
        self.model.check_inputs(inputs)
        t = int(belief.time) + 1
        return StateBelief.fresh(*self._predicted(belief.mean, belief.root, t, inputs), t)

    def update(self, belief: StateBelief, y: ArrayLike, inputs: ArrayLike | None = None) -> tuple[StateBelief, float]:
        """Update step: the belief given y (p,) too, and log p(y | earlier frames).

        NaN entries are missing; if all are, nothing changes and log p is 0. A frame of probability 0 leaves the belief
        unchanged, with −inf.
        """
        y = self._one_frame(y)
        at = np.flatnonzero(~np.isnan(y))
        if not len(at):
            return belief, 0.0
        mean, root, log_prob = self._updated(belief.mean, belief.root, int(belief.time), y, at, inputs)
        return StateBelief.fresh(mean, root, belief.time), log_prob

    def _predicted(self, mean: Array, root: Array, t: int, u: Any) -> tuple[Array, Array]:
        """Predicted mean and root at frame t."""
        linearized = self._linearized_transition(mean, root, t, u)
        return frozen(turned(linearized.mean, self.wrap_state)), linearized.root

    def _updated(self, mean: Array, root: Array, t: int, y: Array, at: Index, u: Any) -> tuple[Array, Array, float]:
        """Updated mean and root, and log p, given the entries `at` of a frame y; at least one."""
        some = None if len(at) == len(y) else at if len(at) > 1 else slice(at[0], at[0] + 1)  # a view, not a copy
        found = self._conditioned(mean, root, t, y, some, u)
        return frozen(turned(found.mean, self.wrap_state)), found.root, found.log_prob

    def _linearized_transition(self, mean: Array, root: Array, t: int, u: Any) -> Linear:
        linearized = self.linearize(mean, root, self._transition, t, u)
        if len(linearized.mean) != len(mean):
            expected = f"the transition must give states of {len(mean)} columns"
            raise ShapeError(sentence(self._name, expected, len(linearized.mean)))
        return linearized

    def predicted_observation(self, mean: Array, root: Array, t: int, u: Any) -> Linear:
        return self.linearize(mean, root, self._observation, t, u)

    def _conditioned(self, mean: Array, root: Array, t: int, y: Array, at: Index | slice | None, u: Any) -> Conditioned:
        return self._condition_on(mean, root, self.predicted_observation(mean, root, t, u), y, at)

    def _condition_on(
        self, mean: Array, root: Array, linearized: Linear, y: Array, at: Index | slice | None, shift: Any = None
    ) -> Conditioned:
        """Update with the entries `at` of y (None: all) under one linearization; `shift` is added to the innovation."""
        self._check_length(y, linearized.mean)
        innovation = turned(y - linearized.mean, self.wrap)
        if shift is not None:
            innovation = innovation + shift
        if at is not None:
            linearized, innovation = linearized.columns(at), innovation[at]
        return condition(mean, root, linearized, innovation)

    # ------------------------------------------------------- functions of the user

    @cached_property
    def _transition(self) -> ConditionalMoments:
        return ConditionalMoments(self.model.transition_distribution, self.wrap_state, "transition", self._name)

    @cached_property
    def _observation(self) -> ConditionalMoments:
        return ConditionalMoments(self.model.observation_distribution, self.wrap, "observation", self._name)

    def _one_frame(self, y: Any) -> Array:
        a = numbers(y, self._name).ravel()
        if not a.size:
            raise ShapeError(sentence(self._name, "an observation must have at least one entry", np.shape(y)))
        if np.isinf(a).any():
            refuse_infinite(a[None], self._name)
        return a

    def _check_length(self, y: Array, mean: Array) -> None:
        if len(y) != len(mean):
            raise ShapeError(
                sentence(self._name, f"observations must have {len(mean)} entries, as the distribution", len(y))
            )

    @property
    def _name(self) -> str:
        return type(self).__name__

    # -------------------------------------------------------------- sequences

    def filter(self, y: ArrayLike, inputs: ArrayLike | None = None) -> States:
        """Filtered means and covariances, p(x_t | y_0 … y_t), per frame."""
        return States(*self._over(y, inputs, self._filtered))

    def smooth(self, y: ArrayLike, inputs: ArrayLike | None = None) -> Smoothed:
        """Smoothed means and covariances, p(x_t | all y): RTS smoother with the approximation's covariances."""
        return Smoothed(*self._over(y, inputs, self._smoothed))

    def log_prob(self, y: ArrayLike, inputs: ArrayLike | None = None) -> Array:
        """Approximate log-likelihood log p(y) per sequence (n,)."""
        seqs = Ragged.of(y)
        with one_blas_thread():
            return np.array(
                [sum(increment for *_, increment in self._steps(*both)) for both in self._pairs(seqs, inputs)]
            )

    def forecast(
        self, y: Any = None, steps: int = 1, inputs: Any = None, future: Any = None, belief: StateBelief | None = None
    ) -> StateForecast:
        """Forecast of states and observations 1 … steps frames after one sequence, or after a `belief`.

        `inputs` are those of y, `future` those of the forecast frames.

        Parameters
        ----------
        y : array-like (T, p), optional
            The sequence so far; NaN is a missing value.
        inputs : array-like (T, k), optional
            Known inputs of y.
        belief : StateBelief, optional
            Belief to go on from, instead of y.

        Returns
        -------
        StateForecast
            Distributions of states and observations.
        """
        whose = f"{self._name}.forecast"
        steps = check_integer(steps, whose, "steps", 1)
        if future is not None and len(future) != steps:
            raise ShapeError(sentence(whose, f"future must hold the inputs of {steps} frames", len(future)))
        belief, out = self.belief_after(y, inputs) if belief is None else belief, []
        for k in range(steps):
            u = None if future is None else future[k]
            belief = self.predict(belief, u)
            there = self.predicted_observation(belief.mean, belief.root, int(belief.time), u)
            out.append((there.mean, covariance_roots.square(there.root), belief.mean, belief.covariance))
        mean, covariance, states, of_states = (np.array(part) for part in zip(*out, strict=True))
        return StateForecast.trusted(mean=mean, covariance=covariance, states=states, state_covariance=of_states)

    def belief_after(self, y: ArrayLike, inputs: ArrayLike | None = None) -> StateBelief:
        """Filtered belief after one whole sequence, equal to the last one of `lk.follow`.

        Parameters
        ----------
        y : array-like (T, p)
            Observations; NaN is a missing value.

        Returns
        -------
        StateBelief
            The belief.
        """
        seqs = Ragged.of(y)
        if len(seqs) != 1 or not len(seqs.values):
            expected = "one sequence of at least one frame is needed"
            raise ShapeError(sentence(self._name, expected, repr(seqs)))
        with one_blas_thread():
            (both,) = self._pairs(seqs, inputs)
            *_, (mean, root, _) = self._steps(*both)
        return StateBelief.fresh(mean, root, len(seqs.values) - 1)

    def _over(self, y: Any, inputs: Any, one: Callable[[Any, Any], tuple[Any, ...]]) -> Iterator[Any]:
        """Results of `one` per sequence, concatenated: arrays become Ragged, numbers (n,)."""
        seqs = Ragged.of(y)
        with one_blas_thread():
            found = [one(*both) for both in self._pairs(seqs, inputs)]
        if is_single_sequence(y):
            return iter(found[0])
        none = one(np.empty((0, 1)), None)
        return (_together(parts, seqs) for parts in zip(none, *found, strict=True))

    def _pairs(self, seqs: Ragged, inputs: Any) -> Iterator[tuple[Any, Any]]:
        """Each sequence with its inputs."""
        frames = numbers(seqs.values, self._name)
        refuse_infinite(frames[:, None] if frames.ndim == 1 else frames, self._name)
        u = None if inputs is None else Ragged.of(inputs)
        if u is not None and not np.array_equal(u.lengths, seqs.lengths):
            raise ShapeError(sentence(self._name, f"inputs must be as long as the sequences {seqs!r}", repr(u)))
        return ((y, None if u is None else u[i]) for i, y in enumerate(seqs))

    def _steps(self, y: Any, inputs: Any) -> Iterator[tuple[Array, Array, float]]:
        """Filtered mean and root per frame, and log p(y_t | earlier frames)."""
        frames = numbers(y, self._name)
        frames = frames.reshape(len(frames), -1) if frames.size else frames
        if len(frames) and not frames.size:
            self._one_frame(frames[0])
        there = ~np.isnan(frames)
        any_observed = np.asarray(there.any(axis=-1)).tolist()
        mean, root = self._start
        for t, frame in enumerate(frames):
            u, increment = None if inputs is None else inputs[t], 0.0
            if t:
                mean, root = self._predicted(mean, root, t, u)
            if any_observed[t]:
                mean, root, increment = self._updated(mean, root, t, frame, there[t].nonzero()[0], u)
            yield mean, root, increment

    def _filtered(self, y: Any, inputs: Any) -> tuple[Array, Array, float]:
        d = len(self._start[0])
        mean, covariance, total = np.empty((len(y), d)), np.empty((len(y), d, d)), 0.0
        for t, (m, root, increment) in enumerate(self._steps(y, inputs)):
            mean[t], covariance[t] = m, root
            total += increment
        for a in range(0, len(y), ROWS):  # many at once: a product of two small matrices costs less than its call
            covariance[a : a + ROWS] = covariance_roots.square(covariance[a : a + ROWS])
        return mean, covariance, total

    def _smoothed(self, y: Any, inputs: Any) -> tuple[Array, Array, float, Array]:
        beliefs, total, d = [], 0.0, len(self._start[0])
        for t, (m, root, increment) in enumerate(self._steps(y, inputs)):
            beliefs.append(StateBelief.fresh(m, root, t))
            total += increment
        mean, covariance, lag_one = np.empty((len(y), d)), np.empty((len(y), d, d)), np.zeros((len(y), d, d))
        for t in range(len(y) - 1, -1, -1):
            if t == len(y) - 1:
                later = beliefs[t]
            else:
                later, gain = self.corrected(beliefs[t], later, None if inputs is None else inputs[t + 1])
                lag_one[t + 1] = covariance[t + 1] @ gain
            mean[t], covariance[t] = later.mean, covariance_roots.square(later.root)
        return mean, covariance, total, lag_one

    def corrected(self, belief: StateBelief, later: StateBelief, u: Any) -> tuple[StateBelief, Array]:
        """RTS step: smoothed belief of frame t from that of frame t + 1, and the smoother gain."""
        linearized = self._linearized_transition(belief.mean, belief.root, int(belief.time) + 1, u)
        S, C, rest = joint(linearized, belief.root)
        gain = backward_gain(S, C)
        mean = belief.mean + turned(later.mean - linearized.mean, self.wrap_state) @ gain
        root = triangular(np.concatenate([rest, later.root @ gain]))
        return StateBelief.fresh(turned(mean, self.wrap_state), root, int(belief.time)), gain


def _together(parts: tuple[Any, ...], seqs: Ragged) -> Any:
    if isinstance(parts[0], float):
        return np.array(parts[1:])
    return Ragged(np.concatenate(parts), seqs.offsets)


def turned(x: Array, columns: Sequence[int]) -> Array:
    """x (…, p) with its angles wrapped to [−π, π).

    >>> turned(np.array([7.0, 7.0]), [1]).round(3).tolist()
    [7.0, 0.717]
    """
    if not columns:
        return x
    x = x.copy()
    at = list(columns)
    x[..., at] = (x[..., at] + np.pi) % (2 * np.pi) - np.pi
    return x


def _check_columns(columns: Sequence[int], p: int, whose: str, name: str) -> None:
    if columns and max(columns) >= p:
        raise ShapeError(sentence(whose, f"{name} must be columns in 0 … {p - 1}", max(columns)))
