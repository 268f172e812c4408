"""Filters whose belief is Gaussian whatever the model: they differ only in how they draw a line through a curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, frozen, numbers, refuse_infinite
from likely.core.blocks import ROWS
from likely.core.engine import one_blas_thread
from likely.core.ragged import Ragged
from likely.errors import DomainError, ShapeError, sentence
from likely.maths import roots
from likely.models.decoding import is_one, whole
from likely.models.joint_gaussian import Linear, Seen, backward_gain, joint, seen, triangular
from likely.models.law_moments import LawMoments, law_moments
from likely.models.linear_filtering import Smoothed, States
from likely.models.linear_forecast import StateForecast
from likely.models.state_belief import StateBelief


class Curve(NamedTuple):
    """The moments of z as a function of the state, and what it is: "transition" or "observation", frame t, inputs u."""

    law: Callable[[Array, int, Any], Any]  # of states (N, d), frame, inputs
    angles: Sequence[int]  # columns of z that are
    what: str
    t: int
    u: Any
    whose: str  # the filter's name

    def __str__(self) -> str:
        return f"{self.whose} ({self.what} at frame {self.t})"

    def slope_name(self) -> str:
        """Whose slope an error is about."""
        return f"{self.whose} ({self.what}_slope at frame {self.t})"

    def at(self, x: Array) -> LawMoments:
        """The moments of z for states (N, d)."""
        found = law_moments(self.law(x, self.t, self.u), len(x), self)
        if self.angles:
            of = "wrap_state" if self.what == "transition" else "wrap"
            _check_columns(self.angles, found.mean.shape[1], self.whose, of)
        return found


@dataclass(frozen=True, eq=False)
class GaussianFilter:
    """What filters by Gaussian approximation share; each adds `near`, its line through a curve.

    A belief is N(mean, rootᵀ root). Moving it and seeing something both need the joint law of the state x and of
    z, the next state or the observation, when x is Gaussian and z | x has moments that are a curve in x. `near` makes
    z a linear function of x with noise; the rest is exact, in square roots, so covariances stay positive.
    """

    model: Any  # a StateSpace
    _: KW_ONLY
    wrap: Sequence[int] = ()  # columns of the observation that are angles, in radians
    wrap_state: Sequence[int] = ()  # columns of the state that are

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", getattr(self.model, "laws", self.model))  # of a linear model
        if not all(hasattr(self.model, verb) for verb in ("start", "moved", "observed")):
            raise DomainError(sentence(self._name, "a StateSpace is needed", type(self.model).__name__))
        for name in ("wrap", "wrap_state"):
            columns = np.asarray(getattr(self, name))
            if columns.size and (columns.ndim != 1 or columns.dtype.kind not in "iu" or columns.min() < 0):
                expected = f"{name} must be numbers of columns that are angles"
                raise DomainError(sentence(self._name, expected, getattr(self, name)))
            object.__setattr__(self, name, tuple(columns.tolist()))

    def near(self, mean: Array, root: Array, curve: Curve) -> Linear:
        """z as a linear function of x ~ N(mean, rootᵀ root)."""
        raise NotImplementedError

    # ----------------------------------------------------------------- filter

    def initial(self) -> StateBelief:
        """The first state, before anything was seen."""
        mean, root = self._start
        return _belief(mean.copy(), root.copy(), 0)

    @cached_property
    def _start(self) -> tuple[Array, Array]:
        found = law_moments(self.model.start(), 1, f"{self._name} (initial)")
        _check_columns(self.wrap_state, len(found.first), self._name, "wrap_state")
        return self._at_home(found.mean[0]), roots.root(found.first)

    def predict(self, belief: StateBelief, inputs: Any = None) -> StateBelief:
        """The state one frame on; `inputs` are those of that frame, where the model takes some."""
        near = self._moved(belief, inputs)
        return _belief(self._at_home(near.mean), near.root, int(belief.time) + 1)

    def update(self, belief: StateBelief, y: Any, inputs: Any = None) -> tuple[StateBelief, float]:
        """The state once y (p,) is seen, and log p(y | all before); what cannot be leaves the belief as it was.

        NaN entries were not observed; if all are, nothing changes and log p is 0.
        """
        y = self._one_frame(y)
        return self._updated(belief, y, np.flatnonzero(~np.isnan(y)), inputs)

    def _updated(self, belief: StateBelief, y: Array, at: Index, u: Any) -> tuple[StateBelief, float]:
        """The same for a frame of finite numbers and NaN, observed in the entries `at`."""
        if not len(at):
            return belief, 0.0
        found = self._seen(belief, y, at if len(at) < len(y) else None, u)
        return _belief(self._at_home(found.mean), found.root, belief.time), found.log_prob

    def _moved(self, belief: StateBelief, u: Any) -> Linear:
        t = int(belief.time) + 1
        near = self.near(belief.mean, belief.root, self._curve("transition", t, u))
        if len(near.mean) != len(belief.mean):
            expected = f"the transition must give states of {len(belief.mean)} columns"
            raise ShapeError(sentence(self._name, expected, len(near.mean)))
        return near

    def _observed(self, mean: Array, root: Array, t: int, u: Any) -> Linear:
        return self.near(mean, root, self._curve("observation", t, u))

    def _seen(self, belief: StateBelief, y: Array, at: Index | None, u: Any) -> Seen:
        return self._absorbed(belief, self._observed(belief.mean, belief.root, int(belief.time), u), y, at)

    def _absorbed(self, belief: StateBelief, near: Linear, y: Array, at: Index | None, shift: Any = None) -> Seen:
        """The state given the entries `at` of y (None: all), by one line; its mean lies `shift` lower than it says."""
        self._check_length(y, near.mean)
        innovation = turned(y - near.mean, self.wrap)
        if shift is not None:
            innovation = innovation + shift
        if at is not None:
            near, innovation = near.columns(at), innovation[at]
        return seen(belief.mean, belief.root, near, innovation)

    # ------------------------------------------------------- what the user wrote

    def _curve(self, what: str, t: int, u: Any) -> Curve:
        moves = what == "transition"
        law, angles = (self.model.moved, self.wrap_state) if moves else (self.model.observed, self.wrap)
        return Curve(law, angles, what, t, u, self._name)

    def _one_frame(self, y: Any) -> Array:
        a = numbers(y, self._name).ravel()
        if not a.size:
            raise ShapeError(sentence(self._name, "an observation must have at least one entry", np.shape(y)))
        if np.isinf(a).any():
            refuse_infinite(a[None], self._name)
        return a

    def _check_length(self, y: Array, mean: Array) -> None:
        if len(y) != len(mean):
            raise ShapeError(sentence(self._name, f"observations must have {len(mean)} entries, as the law", len(y)))

    def _at_home(self, mean: Array) -> Array:
        """Angles of the state in [−π, π)."""
        return turned(mean, self.wrap_state)

    @property
    def _name(self) -> str:
        return type(self).__name__

    # -------------------------------------------------------------- sequences

    def filter(self, y: Any, inputs: Any = None) -> States:
        """p(x_t | y_0 … y_t) of every frame: what was known at the time."""
        return States(*self._over(y, inputs, self._filtered))

    def smooth(self, y: Any, inputs: Any = None) -> Smoothed:
        """p(x_t | all y) of every frame   (Rauch, Tung and Striebel 1965, with the approximation's own covariances)."""
        return Smoothed(*self._over(y, inputs, self._smoothed))

    def log_prob(self, y: Any, inputs: Any = None) -> Array:
        """log p(y) of each sequence (n,), as far as the approximation goes."""
        seqs = Ragged.of(y)
        with one_blas_thread():
            return np.array([sum(news for _, news in self._beliefs(*both)) for both in self._pairs(seqs, inputs)])

    def forecast(
        self, y: Any = None, steps: int = 1, inputs: Any = None, future: Any = None, belief: StateBelief | None = None
    ) -> StateForecast:
        """States and observations 1 … steps frames after one sequence, or after a live `belief`.

        `inputs` are those of y, `future` those of the frames ahead.
        """
        whose = f"{self._name}.forecast"
        steps = whole(steps, 1, whose, "steps")
        if future is not None and len(future) != steps:
            raise ShapeError(sentence(whose, f"future must hold the inputs of {steps} frames", len(future)))
        belief, out = self.belief_after(y, inputs) if belief is None else belief, []
        for k in range(steps):
            u = None if future is None else future[k]
            belief = self.predict(belief, u)
            there = self._observed(belief.mean, belief.root, int(belief.time), u)
            out.append((there.mean, roots.square(there.root), belief.mean, belief.covariance))
        mean, covariance, states, of_states = (np.array(part) for part in zip(*out, strict=True))
        return StateForecast.trusted(mean=mean, covariance=covariance, states=states, state_covariance=of_states)

    def belief_after(self, y: Any, inputs: Any = None) -> StateBelief:
        """The belief after one whole sequence, as `lk.follow` would have left it."""
        seqs = Ragged.of(y)
        if len(seqs) != 1 or not len(seqs.values):
            expected = "one sequence of at least one frame is needed"
            raise ShapeError(sentence(self._name, expected, repr(seqs)))
        with one_blas_thread():
            (both,) = self._pairs(seqs, inputs)
            *_, (belief, _) = self._beliefs(*both)
        return belief

    def _over(self, y: Any, inputs: Any, one: Callable[[Any, Any], tuple[Any, ...]]) -> Iterator[Any]:
        """What `one` finds in each sequence, joined: arrays become Ragged, numbers (n,)."""
        seqs = Ragged.of(y)
        with one_blas_thread():
            found = [one(*both) for both in self._pairs(seqs, inputs)]
        if is_one(y):
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

    def _beliefs(self, y: Any, inputs: Any) -> Iterator[tuple[StateBelief, float]]:
        """The belief after every frame, and log p(y_t | all before)."""
        frames = numbers(y, self._name)
        frames = frames.reshape(len(frames), -1) if frames.size else frames
        if len(frames) and not frames.size:
            self._one_frame(frames[0])
        belief: StateBelief | None = None
        for t, (frame, there) in enumerate(zip(frames, ~np.isnan(frames), strict=True)):
            u = None if inputs is None else inputs[t]
            belief = self.initial() if belief is None else self.predict(belief, u)
            belief, news = self._updated(belief, frame, there.nonzero()[0], u)
            yield belief, news

    def _filtered(self, y: Any, inputs: Any) -> tuple[Array, Array, float]:
        d = len(self._start[0])
        mean, covariance, total = np.empty((len(y), d)), np.empty((len(y), d, d)), 0.0
        for t, (belief, news) in enumerate(self._beliefs(y, inputs)):
            mean[t], covariance[t] = belief.mean, belief.root
            total += news
        for a in range(0, len(y), ROWS):  # many at once: a product of two small matrices costs less than its call
            covariance[a : a + ROWS] = roots.square(covariance[a : a + ROWS])
        return mean, covariance, total

    def _smoothed(self, y: Any, inputs: Any) -> tuple[Array, Array, float, Array]:
        beliefs, total, d = [], 0.0, len(self._start[0])
        for belief, news in self._beliefs(y, inputs):
            beliefs.append(belief)
            total += news
        mean, covariance, lag_one = np.empty((len(y), d)), np.empty((len(y), d, d)), np.zeros((len(y), d, d))
        for t in range(len(y) - 1, -1, -1):
            if t == len(y) - 1:
                later = beliefs[t]
            else:
                later, gain = self._corrected(beliefs[t], later, None if inputs is None else inputs[t + 1])
                lag_one[t + 1] = covariance[t + 1] @ gain
            mean[t], covariance[t] = later.mean, roots.square(later.root)
        return mean, covariance, total, lag_one

    def _corrected(self, belief: StateBelief, later: StateBelief, u: Any) -> tuple[StateBelief, Array]:
        """The belief of frame t once that of frame t + 1 is known from all that was seen, and the gain."""
        near = self._moved(belief, u)
        S, C, rest = joint(near, belief.root)
        gain = backward_gain(S, C)
        mean = belief.mean + turned(later.mean - near.mean, self.wrap_state) @ gain
        root = triangular(np.concatenate([rest, later.root @ gain]))
        return _belief(self._at_home(mean), root, int(belief.time)), gain


def _belief(mean: Array, root: Array, time: int) -> StateBelief:
    return StateBelief.fresh(frozen(mean), root, time)


def _together(parts: tuple[Any, ...], seqs: Ragged) -> Any:
    if isinstance(parts[0], float):
        return np.array(parts[1:])
    return Ragged(np.concatenate(parts), seqs.offsets)


def turned(x: Array, columns: Sequence[int]) -> Array:
    """x (…, p) with its angles brought into [−π, π) by whole turns.

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
        raise ShapeError(sentence(whose, f"{name} must name columns 0 … {p - 1}", max(columns)))
