"""Multinomial logistic transition probabilities that depend on covariates: their statistics, M-step and prior.

Coefficients are fitted by Böhning's lower bound of the log-likelihood: no step lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, SequencesLike, parameter
from likely.core.covariates import features, table
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.hmm.markov_chain import Arcs

CUTOFF = 1e-12  # of the largest eigenvalue: directions below it are in the null space of the covariates
FURTHER = 1.5  # over-relaxation of the bound's maximizing step: up to 2 the bound still rises
EFFECT = 2.5  # standard deviation of the log-odds that one standard deviation of a covariate may change


@dataclass(frozen=True, eq=False)
class LogisticTransition(Value):
    """Multinomial logistic transition probabilities that depend on covariates (input–output HMM).

    p(s_t = j | s_{t−1} = i, u_t) = exp(β_ij · (1, u_t)) / Σ_k exp(β_ik · (1, u_t)), over possible k.

    Only differences of coefficients between targets are identified.

    Parameters
    ----------
    coefficients : array-like (K, K, p + 1)
        Coefficients β of 1 and the covariates; arbitrary where a transition is impossible.
    possible : array-like of bool (K, K), optional
        Possible transitions; None is all of them.
    units : array-like (2, p), optional
        Center and scale that standardize the covariates: the coefficients are those of (u − center) / scale. None
        leaves them as they are.

    See Also
    --------
    HMM : The model whose `transition` it may be.

    References
    ----------
    Bengio and Frasconi (1995); Böhning (1992).

    Examples
    --------
    >>> rain = LogisticTransition([[[0.0, 0.0], [-4.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]]])  # u = 1 makes state 0 leave
    >>> rain.matrices([0.0, 1.0]).round(2).tolist()
    [[[0.98, 0.02], [0.5, 0.5]], [[0.02, 0.98], [0.5, 0.5]]]
    """

    # (K, K, p + 1): of 1 and the covariates; arbitrary where a transition is impossible
    coefficients: Annotated[Array, declared.numbers("K K q")]
    # (K, K); None: all transitions
    possible: Annotated[NDArray[np.bool_] | None, declared.numbers("K K", dtype=np.bool_)] = None
    # (2, p): center and scale of the covariates; None: as they are
    units: Annotated[Array | None, declared.maybe(declared.numbers("t p"))] = None

    def __post_init__(self) -> None:
        beta = parameter(self.coefficients, "LogisticTransition", "coefficients")
        if beta.ndim != 3 or beta.shape[0] != beta.shape[1] or not beta.size:
            raise ShapeError(sentence("LogisticTransition", "coefficients must have shape (K, K, p + 1)", beta.shape))
        K, p = len(beta), beta.shape[2] - 1
        possible = np.ones((K, K), bool) if self.possible is None else np.array(self.possible, dtype=bool)
        if possible.shape != (K, K) or not possible.any(axis=1).all():
            wanted = f"possible must be a mask ({K}, {K}) with a transition from every state"
            raise DomainError(sentence("LogisticTransition", wanted, possible.astype(int).tolist()))
        units = None if self.units is None else parameter(self.units, "LogisticTransition", "units")
        if units is not None and (units.shape != (2, p) or not (units[1] > 0).all()):
            wanted = f"units must be center and scale (2, {p}), scales above 0"
            raise DomainError(sentence("LogisticTransition", wanted, units.tolist()))
        self._set(coefficients=beta, possible=possible, units=units)

    @property
    def states(self) -> int:
        """Number of states K."""
        return len(self.coefficients)

    @property
    def n_covariates(self) -> int:
        """Number of covariates p."""
        return int(self.coefficients.shape[2]) - 1

    @property
    def n_parameters(self) -> int:
        """Number of free coefficients."""
        return int(self.mask.sum() - self.states) * int(self.coefficients.shape[2])

    @property
    def mask(self) -> Mask:
        """Possible transitions (K, K)."""
        assert self.possible is not None  # set by the constructor
        return self.possible

    def raw_coefficients(self) -> Array:
        """The coefficients of (1, u) with unstandardized u (K, K, p + 1).

        Returns
        -------
        ndarray (K, K, p + 1)
            Coefficients.
        """
        if self.units is None:
            return self.coefficients
        slopes = self.coefficients[:, :, 1:] / self.units[1]
        return np.concatenate([self.coefficients[:, :, :1] - (slopes @ self.units[0])[:, :, None], slopes], axis=2)

    # ------------------------------------------------------------ probabilities

    def matrices(self, covariates: SequencesLike) -> Array:
        """Transition matrices p(next state | state) at given covariates (T, p): (T, K, K).

        Parameters
        ----------
        covariates : array-like (T, p)
            Covariates, one row per frame.

        Returns
        -------
        ndarray (T, K, K)
            Transition matrices.
        """
        u = table(np.asarray(covariates, dtype=np.float64))
        if u.shape[1] != self.n_covariates and u.shape == (self.n_covariates, 1):
            u = u.T  # one row of several covariates
        return np.exp(log_transition(self.coefficients, self.mask, self.features(u)))

    def features(self, u: Array, offsets: Index | None = None, before: int = 0, frame: int = 0) -> Array:
        """Design matrix (1, u) in standardized units (T, p + 1); what is missing is named by sequence and frame.

        Parameters
        ----------
        u : ndarray (T, p)
            Covariates.
        offsets : ndarray of int, optional
            Where sequences begin and end.
        before : int, default 0
            Number of sequences before these, for error messages.
        frame : int, default 0
            Number of frames before these, for error messages.

        Returns
        -------
        ndarray (T, p + 1)
            Design matrix.
        """
        if u.ndim != 2 or u.shape[1] != self.n_covariates:
            raise ShapeError(sentence("HMM", f"covariates must have {self.n_covariates} columns", u.shape))
        return features(u, self.units, offsets, before, frame)

    def arcs(self, initial: Array, z: Array) -> Arcs:
        """The transitions into frames with features z (T, p + 1); `log_transition` is the slow reference.

        Parameters
        ----------
        initial : ndarray (K,)
            Initial distribution.
        z : ndarray (T, p + 1)
            Features.

        Returns
        -------
        Arcs
            Probabilities of the transitions and their logarithms.
        """
        from likely.hmm._loops import row_softmax as loops

        K, _, q = self.coefficients.shape
        logs = np.ascontiguousarray(z @ self.coefficients.reshape(K * K, q).T).reshape(len(z), K, K)
        allowed = np.array(self.mask)
        loops.subtract_row_max(logs, allowed)
        probs = np.exp(logs)
        loops.normalize(logs, probs)
        return Arcs.varying(initial, probs, logs, allowed)

    def sample(self, state: Index, z: Array, uniform: Array) -> Index:
        """The next state after each of n states, given their features z (n, p + 1) and uniform numbers (n, 1).

        Parameters
        ----------
        state : ndarray of int (n,)
            States before.
        z : ndarray (n, p + 1)
            Features.
        uniform : ndarray (n, 1)
            Uniform random numbers.

        Returns
        -------
        ndarray of int (n,)
            Next states.
        """
        probs = np.exp(_log_row(self.coefficients[state], self.mask[state], z))
        cumulative = np.cumsum(probs, axis=1)
        return np.asarray((uniform * cumulative[:, -1:] >= cumulative).sum(axis=1))

    # ----------------------------------------------------------------- learning

    def collect(self, xi: Array, arcs: Arcs, z: Array) -> LogisticStats:
        """Statistics of expected transitions ξ_t(i, j) (T, K, K), weighted, at features z (T, q).

        Parameters
        ----------
        xi : ndarray (T, K, K)
            Expected transitions, weighted.
        arcs : Arcs
            The transitions, as `arcs` returns them.
        z : ndarray (T, p + 1)
            Features.

        Returns
        -------
        LogisticStats
            Statistics at these coefficients.
        """
        (T, K), q = xi.shape[:2], z.shape[1]
        before = xi @ np.ones(K)  # γ_{t−1}(i), 0 at first frames
        excess = (xi - before[:, :, None] * arcs.transition).reshape(T, K * K)
        squares = (z[:, :, None] * z[:, None, :]).reshape(T, q * q)
        fitted = np.vdot(xi, np.where(xi > 0, arcs.log_transition, 0.0))
        return LogisticStats.trusted(
            fitted=np.asarray(fitted), gradient=(excess.T @ z).reshape(K, K, q),
            curvature=(before.T @ squares).reshape(K, q, q), coefficients=self.coefficients,
        )  # fmt: skip

    def collect_path(self, path: Index, before: Index, weight: Array, arcs: Arcs, z: Array) -> LogisticStats:
        """Statistics of one path (T,), taken as observed; before (T,) are the states before, −1 where there is none.

        Parameters
        ----------
        path : ndarray of int (T,)
            States.
        before : ndarray of int (T,)
            States before, −1 where there is none.
        weight : ndarray (T,)
            Weight per frame.
        arcs : Arcs
            The transitions, as `arcs` returns them.
        z : ndarray (T, p + 1)
            Features.

        Returns
        -------
        LogisticStats
            Statistics at these coefficients.
        """
        K, q = self.states, z.shape[1]
        gradient, curvature, fitted = np.zeros((K, K, q)), np.zeros((K, q, q)), 0.0
        for i in range(K):
            at = np.flatnonzero((before == i) & (weight > 0))
            w, own = weight[at], z[at]
            gradient[i] = (w[:, None] * (np.eye(K)[path[at]] - arcs.transition[at, i])).T @ own
            curvature[i] = (w[:, None] * own).T @ own
            fitted += float(w @ arcs.log_transition[at, i, path[at]])
        return LogisticStats.trusted(
            fitted=np.asarray(fitted), gradient=gradient, curvature=curvature, coefficients=self.coefficients
        )

    def refit(self, stats: LogisticStats, prior: LogisticPrior | None = None) -> LogisticTransition:
        """M-step: a step that raises the lower bound, from the coefficients at which the statistics were collected."""
        beta, gradient, curvature, ridge = stats.coefficients, stats.gradient, stats.curvature, np.zeros(1)
        if prior is not None:
            own = prior.gradient_and_curvature(beta, self.mask)
            gradient, curvature, ridge = gradient + own[0], curvature + own[1], prior.penalty
        ridge = np.broadcast_to(ridge, beta.shape[2:])
        return self.replace(coefficients=beta + FURTHER * step(beta, self.mask, gradient, curvature, ridge))

    def expected_log(self, stats: LogisticStats) -> float:
        """Lower bound of the expected log-probability of transitions, tight at the coefficients of the statistics.

        Returns
        -------
        float
            The lower bound in nats.
        """
        change = self.coefficients - stats.coefficients
        return float(stats.fitted) + bound(change, self.mask, stats.gradient, stats.curvature)


@dataclass(frozen=True, eq=False)
class LogisticStats(Addable, Value):
    """Gradient and curvature of the expected log-likelihood of transitions with covariates.

    A logistic model has no finite sufficient statistic, so transitions are summarized at the coefficients of the model
    that collected them: statistics at different coefficients do not add.

    Parameters
    ----------
    fitted : ndarray ()
        Expected log-probability of the transitions, at `coefficients`.
    gradient : ndarray (K, K, p + 1)
        Gradient of that.
    curvature : ndarray (K, p + 1, p + 1)
        Σ_t γ_{t−1}(i) z zᵀ per state i, with features z.
    coefficients : ndarray (K, K, p + 1)
        Coefficients of the model that collected.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> h = lk.HMM([0.5, 0.5], lk.hmm.LogisticTransition(np.zeros((2, 2, 2))), lk.Gaussian([[0.0], [9.0]], 1.0))
    >>> h.collect([[0.0, 9.0, 9.1]], covariates=[[0.0, 1.0, 1.0]]).transition.gradient[:, 1, 1].round(3)
    array([0.5, 0.5])
    """

    fitted: Annotated[Array, declared.numbers("")]  # (): expected log-probability of the transitions, at `coefficients`
    gradient: Annotated[Array, declared.numbers("K K q")]  # (K, K, p + 1): of that
    curvature: Annotated[Array, declared.numbers("K q q")]  # (K, p + 1, p + 1): Σ_t γ_{t−1}(i) z zᵀ
    coefficients: Annotated[Array, declared.numbers("K K q")]  # (K, K, p + 1): of the model that collected

    def __add__(self, other: LogisticStats) -> LogisticStats:
        if not np.array_equal(self.coefficients, other.coefficients):
            expected = "statistics must have been collected at the same coefficients to be added"
            raise DomainError(sentence("LogisticStats", expected, "others", "collect both with the same model"))
        return self.replace(
            fitted=np.asarray(self.fitted + other.fitted), gradient=self.gradient + other.gradient,
            curvature=self.curvature + other.curvature,
        )  # fmt: skip

    def __mul__(self, factor: float) -> LogisticStats:
        return self.replace(
            fitted=np.asarray(self.fitted * factor), gradient=self.gradient * factor, curvature=self.curvature * factor
        )

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class LogisticPrior(Value):
    """Gaussian prior of logistic transition coefficients, with pseudo-counts of transitions.

    β ~ N(0, 1/ridge), not the intercepts; `strength` pseudo-counts per state, spread over its possible transitions. The
    prior of transitions in an `HMMPrior`. The pseudo-counts are at covariates `center`; with constant covariates they
    are those of a Dirichlet prior. Up to a constant: log p(β) = −½ Σ ridge β² + strength Σ_i mean_j log p(j | i,
    center).

    Parameters
    ----------
    strength : float
        Pseudo-counts per state.
    center : array-like (p,)
        Covariates at which the pseudo-counts are, in the model's units.
    ridge : array-like (p,)
        Precision of the coefficients of each covariate.

    Examples
    --------
    >>> LogisticPrior(strength=1.0, center=[0.0], ridge=[0.16]).ridge
    array([0.16])
    """

    strength: Annotated[float, declared.number(0)]
    center: Annotated[Array, declared.numbers("p")]  # (p,): in the model's units
    ridge: Annotated[Array, declared.numbers("p", 0)]  # (p,)

    def __post_init__(self) -> None:
        center, ridge = (parameter(getattr(self, name), "LogisticPrior", name) for name in ("center", "ridge"))
        if center.ndim != 1 or center.shape != ridge.shape:
            shapes = [center.shape, ridge.shape]
            raise ShapeError(sentence("LogisticPrior", "center (p,) and ridge (p,) must have the same shape", shapes))
        if (ridge < 0).any() or not 0 <= self.strength < np.inf:
            got = [float(ridge.min(initial=0.0)), self.strength]
            raise DomainError(sentence("LogisticPrior", "ridge and strength must not be negative", got))
        self._set(strength=float(self.strength), center=center, ridge=ridge)

    @classmethod
    def weak(cls, stats: LogisticStats, strength: float = 1.0, effect: float = EFFECT) -> LogisticPrior:
        """Weak prior scaled by the variances of the covariates: one standard deviation changes log-odds by `effect`.

        Parameters
        ----------
        strength : float, default 1.0
            Pseudo-counts per state.
        effect : float, default 2.5
            Change of log-odds that one standard deviation of a covariate makes.
        """
        total = stats.curvature.sum(axis=0)
        mean = total[0, 1:] / max(total[0, 0], 1e-300)
        square = np.diag(total)[1:] / max(total[0, 0], 1e-300)
        variance = np.maximum(square - mean**2, 1e-12 * square)
        return cls(strength, mean, variance / effect**2)

    @property
    def penalty(self) -> Array:
        """Ridge penalty of every coefficient, 0 for the intercept (p + 1,)."""
        return np.concatenate([[0.0], self.ridge])

    def gradient_and_curvature(self, coefficients: Array, possible: Mask) -> tuple[Array, Array]:
        """Gradient and curvature of the pseudo-counts of transitions.

        Parameters
        ----------
        coefficients : ndarray (K, K, p + 1)
            Coefficients.
        possible : ndarray of bool (K, K)
            Possible transitions.

        Returns
        -------
        tuple of ndarray
            Gradient (K, K, p + 1) and curvature (K, p + 1, p + 1).
        """
        z = np.concatenate([[1.0], self.center])
        probs = np.exp(log_transition(coefficients, possible, z[None])[0])
        uniform = possible / possible.sum(axis=1, keepdims=True)
        gradient = self.strength * (uniform - probs)[:, :, None] * z
        return gradient, np.repeat((self.strength * np.outer(z, z))[None], len(possible), axis=0)

    def log_density(self, transition: LogisticTransition) -> float:
        """Log prior density of the coefficients, up to a constant.

        Parameters
        ----------
        transition : LogisticTransition
            Transitions with these coefficients.

        Returns
        -------
        float
            The log-density in nats.
        """
        coefficients, possible = transition.coefficients, transition.mask
        z = np.concatenate([[1.0], self.center])[None]
        uniform = possible / possible.sum(axis=1, keepdims=True)
        logs = np.where(possible, log_transition(coefficients, possible, z)[0], 0.0)
        squares = np.where(possible[:, :, None], coefficients**2, 0.0) @ self.penalty
        return self.strength * float((uniform * logs).sum()) - 0.5 * float(squares.sum())


def log_transition(coefficients: Array, possible: Mask, z: Array) -> Array:
    """log p(s_t = j | s_{t−1} = i, z_t) = β_ij · z_t − log Σ_k exp(β_ik · z_t), over possible k: (T, K, K).

    >>> log_transition(np.zeros((2, 2, 1)), np.array([[True, True], [False, True]]), np.ones((1, 1))).round(2).tolist()
    [[[-0.69, -0.69], [-inf, 0.0]]]
    """
    K, _, q = coefficients.shape
    logs = (z @ coefficients.reshape(K * K, q).T).reshape(len(z), K, K)
    logs[:, ~possible] = -np.inf
    logs -= logs.max(axis=2, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=2, keepdims=True))
    return logs


def _log_row(coefficients: Array, possible: Mask, z: Array) -> Array:
    """Log transition probabilities of one row per sample: coefficients (n, K, q), possible (n, K), z (n, q); (n, K)."""
    logs = np.where(possible, np.einsum("nkq,nq->nk", coefficients, z), -np.inf)
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def bound(change: Array, possible: Mask, gradient: Array, curvature: Array) -> float:
    """Lower bound of the gain of a change δ (K, K, q) of coefficients: g·δ − ½ δᵀBδ, B = ½ (I − 11ᵀ/m) ⊗ Σ γ z zᵀ.

    The negative Hessian of a multinomial logit of m outcomes is bounded by B   (Böhning 1992).
    """
    change = np.where(possible[:, :, None], change, 0.0)
    centered = _centered(change, possible)
    gain = float((gradient * change).sum())
    return gain - 0.25 * float(np.einsum("ijp,ipq,ijq->", centered, curvature, centered))


def step(coefficients: Array, possible: Mask, gradient: Array, curvature: Array, ridge: Array) -> Array:
    """The change (K, K, q) that maximizes the bound less ½ Σ ridge · β²: one small linear system per state.

    Along the mean over targets, which changes no probability, only the ridge acts: it takes the mean to 0.
    """
    beta = np.where(possible[:, :, None], coefficients, 0.0)
    penalized_gradient = np.where(possible[:, :, None], gradient - ridge * beta, 0.0)
    centered, out = _centered(penalized_gradient, possible), np.zeros_like(beta)
    for i in range(len(beta)):
        out[i] = _solved(0.5 * curvature[i] + np.diag(ridge), centered[i].T).T
    mean = beta.sum(axis=1) / possible.sum(axis=1)[:, None]
    out -= np.where(ridge > 0, mean, 0.0)[:, None, :]
    return np.where(possible[:, :, None], out, 0.0)


def _centered(a: Array, possible: Mask) -> Array:
    """Subtract the mean over the possible targets of each state."""
    mean = a.sum(axis=1) / possible.sum(axis=1)[:, None]
    return np.where(possible[:, :, None], a - mean[:, None, :], 0.0)


def _solved(matrix: Array, right: Array) -> Array:
    """Pseudo-inverse solution A⁺ b, scaled to a unit diagonal of A; components in the null space of A are 0."""
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0, scale, 1.0)
    inverse = np.linalg.pinv(matrix / scale[:, None] / scale, rcond=CUTOFF, hermitian=True)
    return np.asarray((inverse @ (right / scale[:, None])) / scale[:, None])
