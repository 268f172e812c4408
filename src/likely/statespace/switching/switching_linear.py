"""Switching linear-Gaussian model (jump Markov linear system): the regime is a hidden Markov chain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, SequencesLike, check_integer, parameter
from likely.core.description import Description
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.core.ragged import Ragged
from likely.distributions.distribution import Distribution
from likely.numerics import spd
from likely.statespace.linear.kalman_filter import read_only
from likely.statespace.linear.linear_description import switching_description
from likely.statespace.linear.linear_gaussian import LinearGaussian
from likely.statespace.linear.linear_simulation import _inputs_and_lengths
from likely.statespace.switching import switching_em as learning
from likely.statespace.switching import switching_filter as passes
from likely.statespace.switching.imm_filter import IMMFilter, Method
from likely.statespace.switching.switching_belief import SwitchingBelief
from likely.statespace.switching.switching_exact import ExactSwitching, enumerated
from likely.statespace.switching.switching_filter import RegimeMatrices, SwitchingStates
from likely.statespace.switching.switching_stats import SwitchingStats

ME = "SwitchingLinearGaussian"
INCOMPARABLE = (
    "SwitchingLinearGaussian: regime {} predicts some observation without any error, other regimes do not: "
    "their densities have no common dominating measure, so regime weights and evidence are not meaningful; give every "
    "regime some observation noise"
)


@dataclass(frozen=True, eq=False)
class SwitchingLinearGaussian(Distribution):
    """Switching linear-Gaussian model, or jump Markov linear system (de Freitas 12): the regime z_t is a Markov chain.

    z_t ~ P(z_t | z_{t−1}), x_t = A(z_t) x_{t−1} + F(z_t) u_t + w_t, y_t = C(z_t) x_t + G(z_t) u_t + v_t. The initial
    state has the initial distribution of the first regime.

    The exact posterior is a mixture of Kᵗ Gaussians. `exact` enumerates them for short sequences; everything else keeps
    one Gaussian per regime (generalized pseudo-Bayes of order 2 in `filter` and `log_prob`; expectation correction in
    `smooth`), which is an approximation, in `smooth` with slightly too small variances. `log_prob` is the log of a
    proper density of sequences, close to the model's; it is exact for one regime and for the first two frames.
    `RaoBlackwellizedFilter` gives an unbiased estimate of the evidence.

    Either all regimes should predict observations with some error, or none: a regime without any noise has no density
    with respect to the same measure as the others, and there is a warning.

    Parameters
    ----------
    regimes : sequence of LinearGaussian
        One model per regime, of the same dimensions, constant in time.
    transition : array-like (K, K)
        Transition matrix P of the regimes; rows add up to one.
    initial : array-like (K,), optional
        Distribution p(z_0) of the first regime; None: the stationary distribution if every regime is recurrent, else
        the uniform one.

    See Also
    --------
    SwitchingDensity : Learns the parameters.
    IMMFilter : Filters frame by frame.

    References
    ----------
    Murphy (2012), chapter 18; de Freitas, lecture notes, 12.

    Examples
    --------
    >>> import likely as lk
    >>> quiet, wild = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[1.0]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.01, 25.0))
    >>> jump = SwitchingLinearGaussian([quiet, wild], [[0.9, 0.1], [0.1, 0.9]])
    >>> jump.smooth([0.0, 0.3, -0.2, 12.0, 12.1]).regimes.argmax(axis=1).tolist()
    [0, 0, 0, 1, 1]
    """

    regimes: Annotated[tuple[LinearGaussian, ...], declared.items(declared.of_class("LinearGaussian"))]
    transition: Annotated[Array, declared.numbers("K K", 0)]  # (K, K)
    initial: Annotated[Array, declared.numbers("K", 0)] = None  # type: ignore[assignment]  # (K,)

    def __post_init__(self) -> None:
        regimes = tuple(self.regimes)
        _refuse_unlike(regimes)
        transition = np.atleast_2d(parameter(self.transition, ME, "transition"))
        K = len(regimes)
        if transition.shape != (K, K):
            raise ShapeError(
                sentence(ME, f"transition must have shape ({K}, {K}), one row per regime", transition.shape)
            )
        _refuse_no_distribution(transition, "every row of moves")
        initial = stationary_or_uniform(transition) if self.initial is None else parameter(self.initial, ME, "initial")
        if initial.shape != (K,):
            raise ShapeError(sentence(ME, f"initial must have shape ({K},)", initial.shape))
        _refuse_no_distribution(initial[None], "initial")
        self._set(regimes=regimes, transition=transition, initial=initial)

    def describe(self) -> Description:
        """Equations, transition matrix, and the matrices of all regimes and of each."""
        return switching_description(self)

    @classmethod
    def with_initial_state(
        cls, regimes: Any, transition: Any, initial_mean: Any, initial_covariance: Any, initial: Any = None
    ) -> SwitchingLinearGaussian:
        """A switching model whose regimes all share this initial distribution of the state.

        Parameters
        ----------
        regimes : sequence of LinearGaussian
            One model per regime.
        transition : array-like (K, K)
            Transition matrix of the regimes.
        initial_mean : array-like (d,)
            Mean of the initial state.
        initial_covariance : array-like (d, d)
            Covariance of the initial state.
        initial : array-like (K,), optional
            Distribution of the first regime.

        Examples
        --------
        >>> import likely as lk
        >>> levels = [lk.LinearGaussian.local_level(level_variance=q, observation_variance=1.0) for q in (0.01, 9.0)]
        >>> model = SwitchingLinearGaussian.with_initial_state(levels, [[0.9, 0.1], [0.5, 0.5]], [0.0], [[100.0]])
        >>> model.initial.round(3).tolist()
        [0.833, 0.167]
        """
        begun = [
            LinearGaussian(
                transition=m.transition,
                process_covariance=m.process_covariance,
                observation=m.observation,
                observation_covariance=m.observation_covariance,
                initial_mean=initial_mean,
                initial_covariance=initial_covariance,
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
        """Dimension d of the state."""
        return self.regimes[0].states

    @property
    def dim(self) -> int:
        """Number of observed columns p."""
        return self.regimes[0].dim

    @property
    def n_inputs(self) -> int:
        """Number of known inputs k."""
        return self.regimes[0].n_inputs

    @property
    def n_parameters(self) -> int:
        """Number of parameters: those of the regimes, and the free transition and initial probabilities."""
        ways = int(np.maximum((self.transition > 0).sum(axis=1) - 1, 0).sum() + (self.initial > 0).sum() - 1)
        return sum(m.n_parameters for m in self.regimes) + ways

    @property
    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of the process and observation covariances of all regimes."""
        return min(m.smallest_eigenvalue for m in self.regimes)

    @cached_property
    def stack(self) -> RegimeMatrices:
        """Matrices of all regimes stacked, as the compiled loops take them."""
        each = [m.matrices for m in self.regimes]
        A, N, C, R = (np.concatenate([m[i] for m in each]) for i in range(4))
        m, U = (np.stack([m[i] for m in each]) for i in (4, 5))
        return RegimeMatrices(*map(read_only, (np.array(self.transition), A, N, C, R, _logs(self.initial), m, U)))

    @cached_property
    def incomparable(self) -> str:
        """Warning if one regime predicts observations exactly and another does not; else ""."""
        with np.errstate(all="ignore"):
            return incomparable(self.regimes)

    @cached_property
    def log_transition(self) -> Array:
        """Logarithm of the transition matrix (K, K)."""
        return _logs(self.transition)

    # ---------------------------------------------------------------- density

    def log_prob(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Array:
        """Approximate log-likelihood log p(y) per sequence (n,), by generalized pseudo-Bayes."""
        seqs = Ragged.of(y)
        out = self._gpb2.log_prob(seqs, inputs)
        return out.astype(np.float32) if seqs.dtype == np.float32 else out

    def sample(
        self, n: int, rng: Generator, length: ArrayLike | None = None, inputs: SequencesLike | None = None
    ) -> Ragged:
        """Draw n sequences of observations of the given `length`, one number or one per sequence."""
        return simulate(self, n, rng, length, inputs)[2]

    def simulate(
        self, n: int, rng: Generator, length: ArrayLike | None = None, inputs: SequencesLike | None = None
    ) -> tuple[Ragged, Ragged, Ragged]:
        """Draw regimes, states and observations of n sequences.

        Parameters
        ----------
        n : int
            Number of sequences.

        Returns
        -------
        tuple of Ragged
            Regimes (T_i,), states (T_i, d) and observations (T_i, p).
        """
        return simulate(self, n, rng, length, inputs)

    # ------------------------------------------------------ regimes and states

    def filter(self, y: SequencesLike, inputs: SequencesLike | None = None, method: Method = "gpb2") -> SwitchingStates:
        """Approximate filter p(z_t, x_t | y_0 … y_t).

        Parameters
        ----------
        method : {"gpb2", "imm"}, default "gpb2"
            All pairs of regimes ("gpb2"), or "imm": see `IMMFilter`.
        """
        both = IMMFilter(self, method)._both
        return passes.states(self, y, inputs, both, smooths=False)

    def smooth(self, y: SequencesLike, inputs: SequencesLike | None = None) -> SwitchingStates:
        """Approximate smoother p(z_t, x_t | all frames) by expectation correction (Barber 2006)."""
        return passes.states(self, y, inputs, both=True, smooths=True)

    def exact(self, y: SequencesLike, inputs: SequencesLike | None = None) -> ExactSwitching:
        """Exact regimes, states and evidence of one short sequence, by enumeration of all Kᵀ paths.

        Parameters
        ----------
        y : array-like (T, p)
            One short sequence; NaN is a missing value.

        Returns
        -------
        ExactSwitching
            Posterior of regimes and states, and the evidence.
        """
        return enumerated(self, y, inputs)

    # ----------------------------------------------------------------- filter

    @cached_property
    def _gpb2(self) -> IMMFilter:
        return IMMFilter(self, "gpb2")

    def initial_belief(self) -> SwitchingBelief:
        """Belief of the initial state and regime, before any observation."""
        return self._gpb2.initial_belief()

    def predict(self, belief: SwitchingBelief, inputs: SequencesLike | None = None) -> SwitchingBelief:
        """Prediction step: the belief one frame later, before its observation."""
        return self._gpb2.predict(belief, inputs)

    def update(
        self, belief: SwitchingBelief, y: SequencesLike, inputs: SequencesLike | None = None
    ) -> tuple[SwitchingBelief, float]:
        """Update step: the belief given a frame y too, and the approximate log p(y | earlier frames)."""
        return self._gpb2.update(belief, y, inputs)

    def frame(self, y: SequencesLike, inputs: SequencesLike | None = None) -> Array:
        """One frame minus the effect of inputs, per regime (K, p).

        Parameters
        ----------
        y : array-like (p,)
            The observation.

        Returns
        -------
        ndarray (K, p)
            The frame for each regime.
        """
        row = self.regimes[0]._frame(y)
        self._check_inputs(inputs)
        if all(m.feedthrough is None for m in self.regimes):
            return np.repeat(row, self.n_regimes, axis=0)
        each = [row if m.feedthrough is None else row - m._input(inputs) @ m.feedthrough.T for m in self.regimes]
        return np.concatenate(each)

    def intercept(self, inputs: SequencesLike | None = None) -> Array:
        """State intercept, the effect of the inputs of one frame on the state, per regime (K, d).

        Returns
        -------
        ndarray (K, d)
            Intercept of each regime.
        """
        self._check_inputs(inputs)
        if all(m.control is None for m in self.regimes):
            return np.zeros((self.n_regimes, self.states))
        return np.concatenate([m._intercept(inputs, 0) for m in self.regimes])

    def _check_inputs(self, inputs: Any) -> None:
        """Refuse inputs that the regimes do not take, or of another size."""
        if inputs is not None:
            self.regimes[0]._input(inputs)

    # --------------------------------------------------------------- learning

    of_sequences = True
    takes_parts = True

    def collect(
        self, y: SequencesLike, weight: ArrayLike | None = None, log_mask: ArrayLike | None = None,
        inputs: SequencesLike | None = None,
    ) -> SwitchingStats:  # fmt: skip
        """Approximate E-step by `smooth`: expected statistics per regime and transition counts.

        `given` are regimes that are known: one per frame, −1 where not. Where all are, the E-step is exact.
        """
        return learning.e_step(self, y, weight, log_mask, inputs)

    def refit(self, stats: SwitchingStats, prior: AnyPrior | None = None) -> SwitchingLinearGaussian:
        """M-step for all parameters but the initial state; `ConstrainedSwitchingLinearGaussian` learns some of them."""
        return learning.m_step(self, stats, prior, learning.structures(self))

    def objective(self, stats: SwitchingStats, prior: AnyPrior | None = None) -> float:
        """Approximate EM objective: log p(y) at the model of the E-step, plus the log prior."""
        return learning.objective(self, stats, prior)

    def weak_prior(self, stats: SwitchingStats) -> Any:
        """Weak prior: the statistics of one average frame per regime, and one transition from each."""
        return learning.weak_prior(self, stats)


def stationary_or_uniform(transition: Array) -> Array:
    """Stationary distribution of the chain if every regime is recurrent, else the uniform one.

    >>> stationary_or_uniform(np.array([[0.9, 0.1], [0.3, 0.7]])).round(6).tolist()
    [0.75, 0.25]
    >>> stationary_or_uniform(np.array([[0.9, 0.1], [0.0, 1.0]])).tolist()
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
            remedy = "use another regime, or an input, for what changes"
            got = f"matrices for {m.length} frames"
            raise DomainError(sentence(ME, f"regime {k} must not change with time", got, remedy))
        if m.diffuse is not None:
            expected = f"regime {k} must have a proper initial distribution"
            remedy = f"use {ME}.with_initial_state, with a covariance of your choice"
            raise DomainError(sentence(ME, expected, "a diffuse one", remedy))
    widths = {(m.states, m.dim, m.n_inputs) for m in regimes}
    if len(widths) > 1:
        expected = "all regimes must have the same numbers of states, columns and inputs"
        raise ShapeError(sentence(ME, expected, sorted(widths)))


# -------------------------------------- regimes without a common dominating measure


def incomparable(regimes: Any) -> str:
    """A warning if the predictive covariances of the regimes have different supports, else "".

    >>> import likely as lk
    >>> exact, noisy = (lk.LinearGaussian(transition=[[1.0]], process_covariance=[[q]], observation=[[1.0]],
    ...     observation_covariance=[[q]], initial_mean=[0.0], initial_covariance=[[1.0]]) for q in (0.0, 1.0))
    >>> incomparable([exact, noisy])[:59], incomparable([exact, exact]), incomparable([noisy, noisy])
    ('SwitchingLinearGaussian: regime 0 predicts some observation', '', '')
    """
    spreads = [_predicted_covariance(m) for m in regimes]
    unit = np.sqrt(np.max([np.diagonal(S) for S in spreads], axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    ranks = [_rank(S) for S in spreads]
    together = _rank(np.sum([S / unit[:, None] / unit for S in spreads], axis=0))
    low = [k for k, rank in enumerate(ranks) if rank < together]
    return INCOMPARABLE.format(low[0]) if low else ""


def _predicted_covariance(m: Any) -> Array:
    """One-step predictive covariance (p, p) of the observation, d frames after an exactly known state."""
    A, Q, C, R = m.transition, m.process_covariance, m.observation, m.observation_covariance
    P = Q
    for _ in range(len(A)):
        gain = P @ C.T @ np.linalg.pinv(spd.symmetric(C @ P @ C.T + R), hermitian=True)
        P = spd.symmetric(A @ (P - gain @ C @ P) @ A.T + Q)
    return spd.symmetric(C @ P @ C.T + R)


def _rank(S: Array) -> int:
    """Rank of a covariance, independent of the units of its columns."""
    unit = np.sqrt(np.maximum(np.diagonal(S), 0.0))
    safe = np.where(unit > 0, unit, 1.0)
    values = np.linalg.eigvalsh(S / safe[:, None] / safe)
    return int((values > 1e-12).sum())


# ------------------------------------------------------------------ simulation


def simulate(model: Any, n: int, rng: Generator, length: Any, inputs: Any) -> tuple[Ragged, Ragged, Ragged]:
    """Draw regimes, states and observations of n sequences, frame by frame for all of them."""
    n = check_integer(n, f"{ME}.sample", "n")
    u, lengths = _inputs_and_lengths(model.regimes[0], n, length, inputs)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    F = int(offsets[-1])
    z, x, y = np.zeros(F, np.int64), np.empty((F, model.states)), np.empty((F, model.dim))
    for t in range(int(lengths.max(initial=0))):
        at = offsets[:-1][lengths > t] + t
        z[at] = _next(model.initial[None] if not t else model.transition[z[at - 1]], rng.random(len(at)))
        x[at] = _sample_next_states(model, z[at], x[at - 1] if t else None, None if u is None else u[at], rng)
    _observe(model, z, x, y, u, rng)
    return Ragged(z, offsets), Ragged(x, offsets), Ragged(y, offsets)


def _next(distributions: Array, u: Array) -> Index:
    reach = np.cumsum(distributions, axis=1)
    reach[:, -1] = np.inf
    return np.asarray((u[:, None] >= reach).sum(axis=1))


def _sample_next_states(model: Any, z: Index, before: Array | None, u: Array | None, rng: Generator) -> Array:
    s, noise = model.stack, rng.standard_normal((len(z), model.states))
    if before is None:
        return np.asarray(s.m[z] + np.einsum("ni,nij->nj", noise, s.U[z]))
    out = np.einsum("nij,nj->ni", s.A[z], before) + np.einsum("ni,nij->nj", noise, s.N[z])
    return out if u is None else out + _pushed(model, "control", z, u, model.states)


def _pushed(model: Any, name: str, z: Index, u: Array, width: int) -> Array:
    zero = np.zeros((width, u.shape[1]))
    by = np.stack([zero if getattr(m, name) is None else getattr(m, name) for m in model.regimes])
    return np.einsum("nij,nj->ni", by[z], u)


def _observe(model: Any, z: Index, x: Array, y: Array, u: Array | None, rng: Generator) -> None:
    s = model.stack
    y[:] = np.einsum("nij,nj->ni", s.C[z], x) + np.einsum("ni,nij->nj", rng.standard_normal(y.shape), s.R[z])
    if u is not None:
        y += _pushed(model, "feedthrough", z, u, model.dim)
