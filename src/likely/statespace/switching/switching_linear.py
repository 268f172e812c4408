"""A switching linear model: a Kalman model whose matrices are chosen by a hidden Markov chain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.distributions.distribution import Distribution
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.switching import switching_em as learning
from likely.statespace.switching import switching_filter as passes
from likely.statespace.switching.degenerate_regimes import incomparable
from likely.statespace.switching.imm_filter import IMMFilter
from likely.statespace.switching.switching_belief import SwitchingBelief
from likely.statespace.switching.switching_exact import ExactSwitching, enumerated
from likely.statespace.switching.switching_filter import Stack, SwitchingStates
from likely.statespace.switching.switching_simulation import simulate
from likely.statespace.switching.switching_stats import SwitchingStats

ME = "SwitchingLinearGaussian"


@dataclass(frozen=True, eq=False)
class SwitchingLinearGaussian(Distribution):
    """z_t ~ P(z_t | z_{t−1}),  x_t = A(z_t) x_{t−1} + F(z_t) u_t + w_t,  y_t = C(z_t) x_t + G(z_t) u_t + v_t.

    The jump Markov linear model (de Freitas 12). `regimes` are `LinearGaussian` of the same widths, constant in time;
    the first state is drawn from the start of whichever regime is first. `transition` (K, K) are P, rows add up to one;
    `initial` (K,) are p(z_0); None: the distribution to which moves settle if every regime returns again and again,
    else all regimes alike.

    The exact posterior has Kᵗ parts. `exact` enumerates them for short sequences; everything else keeps one Gaussian
    a regime (generalized pseudo-Bayes of order 2, `filter` and `log_prob`; expectation correction, `smooth`), which is
    an approximation, and `smooth` a somewhat too confident one. `log_prob` is the log of a proper density of sequences,
    near the model's; it is exact for one regime and for the first two frames. `RaoBlackwellizedFilter` gives unbiased
    evidence.

    Either all regimes should foresee a frame with some error, or all without: a regime without any noise gives it a
    probability where the others give a density, the two are no common measure, and a warning says so.

    >>> import likely as lk
    >>> quiet, wild = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.01, 25.0))
    >>> jump = SwitchingLinearGaussian([quiet, wild], [[0.9, 0.1], [0.1, 0.9]])
    >>> jump.smooth([0.0, 0.3, -0.2, 12.0, 12.1]).regimes.argmax(axis=1).tolist()
    [0, 0, 0, 1, 1]
    """

    regimes: tuple[LinearGaussian, ...]
    transition: Array  # (K, K)
    initial: Array = None  # type: ignore[assignment]  # (K,)

    def __post_init__(self) -> None:
        regimes = tuple(self.regimes)
        _refuse_unlike(regimes)
        transition = np.atleast_2d(parameter(self.transition, ME, "transition"))
        K = len(regimes)
        if transition.shape != (K, K):
            raise ShapeError(sentence(ME, f"moves must have shape ({K}, {K}), a row per regime", transition.shape))
        _refuse_no_distribution(transition, "every row of moves")
        initial = settled_distribution(transition) if self.initial is None else parameter(self.initial, ME, "initial")
        if initial.shape != (K,):
            raise ShapeError(sentence(ME, f"starts must have shape ({K},)", initial.shape))
        _refuse_no_distribution(initial[None], "initial")
        self._set(regimes=regimes, transition=transition, initial=initial)

    @classmethod
    def started(
        cls, regimes: Any, transition: Any, mean: Any, covariance: Any, initial: Any = None
    ) -> SwitchingLinearGaussian:
        """The same for regimes of which only moves and observations matter: all share this initial distribution.

        >>> import likely as lk
        >>> levels = [lk.LinearGaussian.local_level(level_variance=q, observation_variance=1.0) for q in (0.01, 9.0)]
        >>> model = SwitchingLinearGaussian.started(levels, [[0.9, 0.1], [0.5, 0.5]], [0.0], [[100.0]])
        >>> model.initial.round(3).tolist()
        [0.833, 0.167]
        """
        begun = [
            LinearGaussian(
                transition=m.transition,
                process_covariance=m.process_covariance,
                observation=m.observation,
                observation_covariance=m.observation_covariance,
                initial_mean=mean,
                initial_covariance=covariance,
                control=m.control,
                feedthrough=m.feedthrough,
            )
            for m in regimes
        ]
        return cls(tuple(begun), transition, initial)

    # ------------------------------------------------------------------ shape

    members = None
    hides_labels = False

    @property
    def n_regimes(self) -> int:
        """Number of regimes K."""
        return len(self.regimes)

    @property
    def states(self) -> int:
        """Number of entries d of the state."""
        return self.regimes[0].states

    @property
    def dim(self) -> int:
        """Number of columns p of a frame."""
        return self.regimes[0].dim

    @property
    def n_inputs(self) -> int:
        """Number of known inputs k."""
        return self.regimes[0].n_inputs

    @property
    def n_parameters(self) -> int:
        """Those of the regimes, and of every regime's ways on, and of the beginning, all but one."""
        ways = int(np.maximum((self.transition > 0).sum(axis=1) - 1, 0).sum() + (self.initial > 0).sum() - 1)
        return sum(m.n_parameters for m in self.regimes) + ways

    @property
    def smallest_eigenvalue(self) -> float:
        """The least variance of noise and observation in any direction of any regime."""
        return min(m.smallest_eigenvalue for m in self.regimes)

    @cached_property
    def stack(self) -> Stack:
        """All regimes side by side, as the loops take them."""
        each = [m.matrices for m in self.regimes]
        A, N, C, R = (np.concatenate([m[i] for m in each]) for i in range(4))
        m, U = (np.stack([m[i] for m in each]) for i in (4, 5))
        return Stack(np.array(self.transition), A, N, C, R, _logs(self.initial), m, U)

    @cached_property
    def incomparable(self) -> str:
        """What is said where one regime foresees observations exactly and another does not; "" where none does."""
        with np.errstate(all="ignore"):
            return incomparable(self.regimes)

    @cached_property
    def log_transition(self) -> Array:
        """log P (K, K)."""
        return _logs(self.transition)

    # ---------------------------------------------------------------- density

    def log_prob(self, y: Any, inputs: Any = None) -> Array:
        """log p(y) of each sequence (n,), by generalized pseudo-Bayes: approximate, see above."""
        seqs = Ragged.of(y)
        out = self._gpb2.log_prob(seqs, inputs)
        return out.astype(np.float32) if seqs.dtype == np.float32 else out

    def sample(self, n: int, rng: Generator, length: Any = None, inputs: Any = None) -> Ragged:
        """n sequences of observations of the given `length`, a number or one each."""
        return simulate(self, n, rng, length, inputs)[2]

    def simulate(self, n: int, rng: Generator, length: Any = None, inputs: Any = None) -> tuple[Ragged, Ragged, Ragged]:
        """Regimes, states and observations of n sequences."""
        return simulate(self, n, rng, length, inputs)

    # ------------------------------------------------------ what was the regime

    def filter(self, y: Any, inputs: Any = None, method: str = "gpb2") -> SwitchingStates:
        """p(z_t, x_t | y_0 … y_t) of every frame, approximately: all pairs of regimes ("gpb2"), or "imm"."""
        both = IMMFilter(self, method)._both
        return passes.states(self, y, inputs, both, smooths=False)

    def smooth(self, y: Any, inputs: Any = None) -> SwitchingStates:
        """p(z_t, x_t | all frames), approximately (Barber 2006)."""
        return passes.states(self, y, inputs, both=True, smooths=True)

    def exact(self, y: Any, inputs: Any = None) -> ExactSwitching:
        """All Kᵀ paths of one short sequence: regimes, states and evidence without approximation, the oracle."""
        return enumerated(self, y, inputs)

    # ----------------------------------------------------------------- filter

    @cached_property
    def _gpb2(self) -> IMMFilter:
        return IMMFilter(self, "gpb2")

    def initial_belief(self) -> SwitchingBelief:
        """The first state and regime, before any frame."""
        return self._gpb2.initial_belief()

    def predict(self, belief: SwitchingBelief, inputs: Any = None) -> SwitchingBelief:
        """State and regime one frame on, before that frame is seen."""
        return self._gpb2.predict(belief, inputs)

    def update(self, belief: SwitchingBelief, y: Any, inputs: Any = None) -> tuple[SwitchingBelief, float]:
        """State and regime once a frame y is seen, and the approximate log p(y | all before)."""
        return self._gpb2.update(belief, y, inputs)

    def frame(self, y: Any, inputs: Any = None) -> Array:
        """One frame as each regime sees it (K, p): without what inputs add to it."""
        row = self.regimes[0]._frame(y)
        if all(m.feedthrough is None for m in self.regimes):
            return np.repeat(row, self.n_regimes, axis=0)
        each = [row if m.feedthrough is None else row - m._input(inputs) @ m.feedthrough.T for m in self.regimes]
        return np.concatenate(each)

    def intercept(self, inputs: Any = None) -> Array:
        """What inputs of one frame add to the state in each regime (K, d)."""
        if all(m.control is None for m in self.regimes):
            return np.zeros((self.n_regimes, self.states))
        return np.concatenate([m._intercept(inputs, 0) for m in self.regimes])

    # --------------------------------------------------------------- learning

    of_sequences = True
    takes_parts = True

    def collect(self, y: Any, weight: Any = None, log_mask: Any = None, inputs: Any = None) -> SwitchingStats:
        """Expected moments of each regime and counts of moves, by `smooth`: an approximate E-step.

        `given` are regimes that are known: one per frame, −1 where not. Where all are, the E-step is exact.
        """
        return learning.collected(self, y, weight, log_mask, inputs)

    def refit(self, stats: SwitchingStats, prior: Any = None) -> SwitchingLinearGaussian:
        """The model that explains these moments best, all but its first state; `SwitchingLearner` learns parts."""
        return learning.refitted(self, stats, prior, learning.structures(self))

    def objective(self, stats: SwitchingStats, prior: Any = None) -> float:
        """The approximate log p(y) at the model that looked, plus the log prior."""
        return learning.objective(self, stats, prior)

    def weak_prior(self, stats: SwitchingStats) -> Any:
        """One frame's worth of what the first pass saw for each regime, and one move from each."""
        return learning.weak_prior(self, stats)


def settled_distribution(transition: Array) -> Array:
    """The stationary distribution of a chain in which every regime returns again and again, else all alike.

    >>> settled_distribution(np.array([[0.9, 0.1], [0.3, 0.7]])).round(6).tolist()
    [0.75, 0.25]
    >>> settled_distribution(np.array([[0.9, 0.1], [0.0, 1.0]])).tolist()
    [0.5, 0.5]
    """
    K = len(transition)
    reach = np.linalg.matrix_power(((transition > 0) | np.eye(K, dtype=bool)).astype(np.float64), K) > 0
    if not reach.all():
        return np.full(K, 1.0 / K)
    equations = np.vstack([transition.T - np.eye(K), np.ones((1, K))])
    distribution = np.linalg.lstsq(equations, np.append(np.zeros(K), 1.0), rcond=None)[0]
    distribution = np.maximum(distribution, 0.0)
    return np.asarray(distribution / distribution.sum())


def _logs(a: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(a)


def _refuse_no_distribution(rows: Array, what: str) -> None:
    if (rows < 0).any() or (np.abs(rows.sum(axis=1) - 1.0) > 1e-8).any():
        bad = rows[int(np.argmax((rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1.0) > 1e-8)))]
        raise DomainError(sentence(ME, f"{what} must be probabilities that add up to one", bad.tolist()))


def _refuse_unlike(regimes: tuple[Any, ...]) -> None:
    if not regimes:
        raise DomainError(sentence(ME, "at least one regime is needed", "none"))
    for k, m in enumerate(regimes):
        if not isinstance(m, LinearGaussian):
            raise DomainError(sentence(ME, f"regime {k} must be a LinearGaussian", type(m).__name__))
        if m.length is not None:
            remedy = "make what changes another regime, or an input"
            got = f"matrices for {m.length} frames"
            raise DomainError(sentence(ME, f"regime {k} must not change with time", got, remedy))
        if m.diffuse is not None:
            expected = f"regime {k} must say where its state begins"
            started = "SwitchingLinearGaussian.started(regimes, moves, mean, covariance)"
            remedy = f"use {started}, with a covariance of your choice"
            raise DomainError(sentence(ME, expected, "a diffuse start", remedy))
    widths = {(m.states, m.dim, m.n_inputs) for m in regimes}
    if len(widths) > 1:
        expected = "all regimes must have as many states, columns and inputs"
        raise ShapeError(sentence(ME, expected, sorted(widths)))
