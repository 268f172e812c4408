"""General state-space model given by distributions: initial, transition and observation distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core.arrays import Array, all_finite, check_integer
from likely.core.docstrings import complete
from likely.core.errors import DataError, DomainError, LikelyError, ShapeError, sentence
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.stacks.one_row_per_member import draw_each
from likely.statespace.nonlinear.function_arguments import DISTRIBUTION, wrapped

ASKED = {"transition": "_transition", "observation": "_observation"}  # the functions as such of everything: `wrapped`


class Simulated(NamedTuple):
    """Simulated states (n, T, d) and observations (n, T, p)."""

    states: Array
    observations: Any


@complete
@dataclass(frozen=True, eq=False)
class StateSpace:
    """State-space model: x_0 ~ initial; x_t ~ transition(x_{t−1}); y_t ~ observation(x_t)   (de Freitas 13).

    The functions `transition` and `observation` take states (N, d) and return a stack of N members, one for each state;
    members may share one covariance. Functions of two arguments also get t, the number of the frame that is reached
    (from 0), functions of three the known inputs u of that frame; `lambda x, *, u: …` gets u alone.

    Parameters
    ----------
    initial : density or callable
        Distribution of the initial state, or a function without arguments that returns it.
    transition : callable
        Function of states (N, d) that returns the distributions of the next states.
    observation : callable
        Function of states (N, d) that returns the distributions of the observations.

    See Also
    --------
    ParticleFilter : Filters by weighted particles.
    UnscentedKalmanFilter : Filters by a Gaussian approximation.

    References
    ----------
    Särkkä (2013); Murphy (2012), chapter 18; de Freitas, lecture notes, 13.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> sv = StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(0.9 * x, 0.1), lambda x: lk.Gaussian(x, 1.0))
    >>> sv.transition_distribution(np.array([[1.0], [2.0]]), 1).mean.ravel()
    array([0.9, 1.8])
    """

    initial: Any
    transition: Callable[..., Any]
    observation: Callable[..., Any]

    def __post_init__(self) -> None:
        for name in ("transition", "observation"):
            function = getattr(self, name)
            if not callable(function):
                expected = f"{name} must be a function of states that returns a stack of distributions"
                raise DomainError(sentence("StateSpace", expected, type(function).__name__))
            object.__setattr__(self, ASKED[name], wrapped(function, DISTRIBUTION, f"StateSpace.{name}"))
        if not (_is_distribution(self.initial) or callable(self.initial)):
            expected = "initial must be a density, or a function that gives one"
            raise DomainError(sentence("StateSpace", expected, type(self.initial).__name__))

    def initial_distribution(self) -> Any:
        """The initial distribution.

        Returns
        -------
        density
            The distribution.
        """
        distribution = self.initial if _is_distribution(self.initial) else self.initial()
        if not _is_distribution(distribution) or getattr(distribution, "members", None) is not None:
            got = (
                f"a stack of {distribution.members}" if _is_distribution(distribution) else type(distribution).__name__
            )
            raise DomainError(sentence("StateSpace.initial", "one density is needed", got, "mean (d,), not (N, d)"))
        return distribution

    def transition_distribution(self, x: Array, t: int, u: ArrayLike | None = None) -> Any:
        """The transition distribution of x_t for each of the states x_{t−1} (N, d).

        Parameters
        ----------
        x : ndarray (N, d)
            States x_{t−1}.
        t : int
            Number of the frame that is reached, from 0.
        u : array-like, optional
            Known inputs of that frame.

        Returns
        -------
        density
            Stack of N members.
        """
        return self._distribution("transition", x, t, u)

    def observation_distribution(self, x: Array, t: int, u: ArrayLike | None = None) -> Any:
        """The observation distribution of y_t for each of the states x_t (N, d).

        Parameters
        ----------
        x : ndarray (N, d)
            States x_t.
        t : int
            Number of the frame, from 0.
        u : array-like, optional
            Known inputs of that frame.

        Returns
        -------
        density
            Stack of N members.
        """
        return self._distribution("observation", x, t, u)

    def _distribution(self, name: str, x: Array, t: int, u: Any) -> Any:
        try:
            distribution = self.__dict__[ASKED[name]](x, t, u)
        except LikelyError as error:  # invalid parameters of a distribution: name the function and the frame
            raise DataError(f"StateSpace.{name} at frame {t}: {error}") from error
        members = getattr(distribution, "members", len(x))
        if (members != len(x) and not (members is None and len(x) == 1)) or not _is_distribution(distribution):
            _refuse(name, distribution, len(x), t)
        return distribution

    def check_inputs(self, inputs: ArrayLike) -> None:
        """Refuse inputs if neither function takes any."""
        if inputs is not None and not any(self.__dict__[name].knows_inputs for name in ASKED.values()):
            expected, remedy = "neither transition nor observation takes inputs u", "leave inputs out"
            raise DomainError(sentence("StateSpace", expected, "some", remedy))

    def sample_initial(self, n: int, rng: Generator) -> Array:
        """Draw n initial states (n, d).

        Returns
        -------
        ndarray (n, d)
            States.
        """
        return as_states(self.initial_distribution().sample(n, rng), n, "StateSpace.initial")

    def sample_transition(self, x: Array, t: int, u: ArrayLike | None, rng: Generator) -> Array:
        """Draw one x_t (N, d) for each x_{t−1} (N, d).

        Parameters
        ----------
        x : ndarray (N, d)
            States x_{t−1}.
        t : int
            Number of the frame that is reached, from 0.
        u : array-like or None
            Known inputs of that frame.

        Returns
        -------
        ndarray (N, d)
            States x_t.
        """
        drawn = draw_each(self.transition_distribution(x, t, u), rng)
        return as_states(drawn, len(x), f"StateSpace.transition at frame {t}", x.shape[1])

    def sample(self, n: int, rng: Generator, length: int, inputs: Any = None) -> Simulated:
        """Simulate n sequences of `length` frames: states (n, T, d) and observations (n, T, p).

        Parameters
        ----------
        n : int
            Number of sequences.
        length : int
            Number of frames.

        Returns
        -------
        Simulated
            States (n, length, d) and observations (n, length, p).

        Examples
        --------
        >>> import likely as lk
        >>> walk = StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 1.0), lambda x: lk.Poisson(np.exp(x)))
        >>> walk.sample(5, np.random.default_rng(0), length=7).observations.shape
        (5, 7, 1)
        """
        check_integer(length, "StateSpace.sample", "length", 1)
        if inputs is not None and len(inputs) < length:
            expected = f"inputs must have one row for each of {length} frames"
            raise ShapeError(sentence("StateSpace.sample", expected, len(inputs)))
        states: list[Array] = []
        seen: list[Array] = []
        for t in range(length):
            u = None if inputs is None else inputs[t]
            states.append(self.sample_initial(n, rng) if t == 0 else self.sample_transition(states[-1], t, u, rng))
            seen.append(np.reshape(draw_each(self.observation_distribution(states[-1], t, u), rng), (n, -1)))
        return Simulated(np.stack(states, axis=1), np.stack(seen, axis=1))


def as_states(draw: Any, n: int, whose: str, d: int | None = None) -> Array:
    """Validated draws as states (n, d) of finite numbers."""
    try:
        a = np.asarray(draw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        expected = "states must be numbers"
        raise DataError(sentence(whose, expected, type(draw).__name__, "number the levels: 0, 1, 2, …")) from error
    a = a.reshape(n, -1) if a.ndim < 2 and a.size % n == 0 else a
    if a.ndim != 2 or len(a) != n or (d is not None and a.shape[1] != d):
        raise ShapeError(sentence(whose, f"states must have shape ({n}, {'d' if d is None else d})", a.shape))
    if not all_finite(a):
        raise DataError(
            sentence(whose, "states must be finite", "NaN or infinity", "check the distribution's parameters")
        )
    return a


def _is_distribution(distribution: Any) -> bool:
    return isinstance(distribution, Gaussian) or (hasattr(distribution, "log_prob") and hasattr(distribution, "sample"))


def _refuse(name: str, distribution: Any, n: int, t: int) -> None:
    whose = f"StateSpace.{name} at frame {t}"
    if not _is_distribution(distribution):
        raise DomainError(sentence(whose, "a stack of distributions must be returned", type(distribution).__name__))
    got = "one distribution" if distribution.members is None else f"{distribution.members} members"
    remedy = "the parameter that depends on the state needs a leading axis, such as a mean of shape (N, d)"
    raise ShapeError(sentence(whose, f"a stack of {n} members, one for each state, must be returned", got, remedy))


def as_distributions(model: Any) -> StateSpace:
    """A linear-Gaussian model as a general state-space model; its initial state must not be diffuse.

    >>> import likely as lk, numpy as np
    >>> walk = lk.LinearGaussian(transition=[[1.0]], process_covariance=[[1.0]], observation=[[2.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]])
    >>> as_distributions(walk).observation_distribution(np.array([[3.0]]), 0).mean
    array([[6.]])
    """
    if model.diffuse is not None:
        remedy = "give the model an initial covariance"
        raise DomainError(sentence("StateSpace", "a proper initial distribution is needed", "a diffuse one", remedy))

    def part(name: str, t: int) -> Any:
        a = getattr(model, name)
        return a if a is None or a.ndim == 2 else a[t]

    def distribution(x: Array, t: int, u: Any, by: str, of: str, inputs: str) -> Gaussian:
        mean, F = x @ part(by, t).T, part(inputs, t)
        if F is not None:
            mean = mean + F @ np.asarray(u, dtype=np.float64)
        return Gaussian(mean, part(of, t))

    moves = ("transition", "process_covariance", "control")
    shows = ("observation", "observation_covariance", "feedthrough")
    first = Gaussian(model.initial_mean, model.initial_covariance)
    if not model.n_inputs:
        return StateSpace(
            first, lambda x, t: distribution(x, t, None, *moves), lambda x, t: distribution(x, t, None, *shows)
        )
    return StateSpace(
        first, lambda x, t, u: distribution(x, t, u, *moves), lambda x, t, u: distribution(x, t, u, *shows)
    )
