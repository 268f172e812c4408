"""Hidden Markov model with covariate-dependent transitions (input–output HMM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, Mask, parameter, weights
from likely.core.blocks import Blocks
from likely.core.covariates import apart, features, table, with_covariates
from likely.core.engine import Threads, one_blas_thread
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.distributions.distribution import Distribution
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.tied import one_covariance, untied
from likely.hmm.decoding import Forecast, Path, Smoothed, is_one
from likely.hmm.driven import driven_decoding as decoding
from likely.hmm.driven.driven_baum_welch import e_step
from likely.hmm.driven.driven_decoding import Belief
from likely.hmm.driven.driven_pieces import DrivenData
from likely.hmm.driven.driven_prior import DrivenPrior
from likely.hmm.driven.driven_stats import DrivenStats
from likely.hmm.driven.logistic_transitions import bound, log_row, log_transition, step
from likely.hmm.hmm import masks
from likely.hmm.markov_chain import SUM_TO_ONE
from likely.hmm.viterbi import emitted

FRAMES = 4096  # of a block at most
PIECE = 2**18  # entries in the transition matrices of a block: they stay in cache
FURTHER = 1.5  # over-relaxation of the bound's maximizing step: up to 2 the bound still rises


@dataclass(frozen=True, eq=False)
class DrivenHMM(Distribution):
    """Hidden Markov model whose transition probabilities depend on covariates (input–output HMM).

    p(s_t = j | s_{t−1} = i, u_t) = exp(β_ij · (1, u_t)) / Σ_k exp(β_ik · (1, u_t)), over possible k.

    A sample is a sequence of frames with covariates: `with_covariates(x, u)`, or the two as separate arguments. The
    model is conditional on the covariates: `log_prob` is log p(x | u). Covariates of a sequence's first frame have no
    effect; elsewhere a missing one is an error. Entries of frames may be missing. `units` (2, p), a center and a scale,
    standardize the covariates: the coefficients are those of (u − center) / scale. Learning is a generalized EM: each
    step maximizes a lower bound of the transition log-likelihood, so the likelihood never decreases   (Böhning 1992).

    >>> import likely as lk
    >>> rain = np.array([[[0.0, 0.0], [-4.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]]])  # u = 1 makes state 0 leave
    >>> h = DrivenHMM([1.0, 0.0], rain, lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> h.forecast([0.1, -0.2], 1, covariates=[1.0], past=[0.0, 0.0]).states.round(2)
    array([[0.02, 0.98]])
    """

    initial: Annotated[Array, declared.numbers("K", 0)]  # (K,)
    # (K, K, p + 1): of 1 and the covariates; arbitrary where a transition is impossible
    coefficients: Annotated[Array, declared.numbers("K K q")]
    emission: Annotated[Any, declared.distribution]  # a stack of K
    # (K, K); None: all transitions
    possible: Annotated[NDArray[np.bool_] | None, declared.numbers("K K", dtype=np.bool_)] = None
    # (2, p): center and scale of the covariates; None: as they are
    units: Annotated[Array | None, declared.maybe(declared.numbers("t p"))] = None

    def __post_init__(self) -> None:
        initial, beta = (parameter(getattr(self, n), "DrivenHMM", n) for n in ("initial", "coefficients"))
        K, size = len(np.atleast_1d(initial)), getattr(self.emission, "members", None)
        if initial.ndim != 1 or beta.ndim != 3 or beta.shape[:2] != (K, K) or not beta.shape[2] or size != K:
            wanted = "initial (K,), coefficients (K, K, p + 1) and a stack of K emissions must have matching shapes"
            raise ShapeError(sentence("DrivenHMM", wanted, [initial.shape, beta.shape, size]))
        possible = np.ones((K, K), bool) if self.possible is None else np.array(self.possible, dtype=bool)
        if possible.shape != (K, K) or not possible.any(axis=1).all():
            wanted = f"possible must be a mask ({K}, {K}) with a transition from every state"
            raise DomainError(sentence("DrivenHMM", wanted, possible.astype(int).tolist()))
        if (initial < 0).any() or abs(initial.sum() - 1) > SUM_TO_ONE:
            raise DomainError(sentence("DrivenHMM", "initial must not be negative and must sum to 1", initial.tolist()))
        units = None if self.units is None else parameter(self.units, "DrivenHMM", "units")
        if units is not None and (units.shape != (2, beta.shape[2] - 1) or not (units[1] > 0).all()):
            wanted = f"units must be center and scale (2, {beta.shape[2] - 1}), scales above 0"
            raise DomainError(sentence("DrivenHMM", wanted, units.tolist()))
        self._set(initial=initial, coefficients=beta, possible=possible, units=units)

    # ------------------------------------------------------------------ shape

    members = None  # never a stack

    @property
    def states(self) -> int:
        """Number of states K."""
        return len(self.initial)

    @property
    def dim(self) -> int:
        """Number of columns of a frame."""
        return int(self.emission.dim)

    @property
    def n_covariates(self) -> int:
        """Number of covariates p."""
        return int(self.coefficients.shape[2]) - 1

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of the emissions, the initial distribution and the transition coefficients."""
        free = int(self._possible.sum() - self.states)
        return int(self.emission.n_parameters) + int((self.initial > 0).sum()) - 1 + free * self.coefficients.shape[2]

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the emissions' covariances, where they have any."""
        return getattr(self.emission, "smallest_eigenvalue", None)

    @property
    def _possible(self) -> Mask:
        return np.ones((self.states, self.states), bool) if self.possible is None else self.possible

    @property
    def _frames(self) -> int:
        """Frames of a block, or of a piece of a long sequence: their transitions (T, K, K) stay small."""
        return max(64, min(FRAMES, PIECE // self.states**2))

    def raw_coefficients(self) -> Array:
        """The coefficients of (1, u) with unstandardized u (K, K, p + 1)."""
        if self.units is None:
            return self.coefficients
        slopes = self.coefficients[:, :, 1:] / self.units[1]
        return np.concatenate([self.coefficients[:, :, :1] - (slopes @ self.units[0])[:, :, None], slopes], axis=2)

    # ---------------------------------------------------------------- density

    def transition(self, covariates: Any) -> Array:
        """Transition matrices p(next state | state) at given covariates (T, p): (T, K, K)."""
        u = self._covariates(covariates)
        return np.exp(log_transition(self.coefficients, self._possible, self._features(u)))

    def _covariates(self, covariates: Any) -> Array:
        u = table(np.asarray(covariates, dtype=np.float64))
        if u.shape[1] != self.n_covariates and u.shape == (self.n_covariates, 1):
            u = u.T  # one row of several covariates
        self._check_width(u)
        return u

    def _check_width(self, u: Array) -> None:
        if u.ndim != 2 or u.shape[1] != self.n_covariates:
            raise ShapeError(sentence("DrivenHMM", f"covariates must have {self.n_covariates} columns", u.shape))

    def _features(self, u: Array, offsets: Index | None = None, before: int = 0, frame: int = 0) -> Array:
        self._check_width(u)
        return features(u, self.units, offsets, before, frame)

    def log_prob(self, x: Any, covariates: Any = None) -> Array:
        """log p(x | u) of each sequence (n,)."""
        driven = apart(x, covariates)
        out = decoding.log_probs(DrivenData(self, driven))
        return out.astype(np.float32) if driven.frames.dtype == np.float32 else out

    def sample(self, n: int, rng: Generator, covariates: Any = None) -> Ragged:
        """Sample n sequences given covariates; both are returned together, as by `with_covariates`.

        `covariates` are n sequences (T_i, p), or a single one (T, p) for all: sequence i of the result has T_i frames,
        `result[i]["frames"]` (T_i, d) and `result[i]["covariates"]` (T_i, p). The row of its first frame has no effect.
        """
        if covariates is None:
            remedy = "pass them: sample(n, rng, covariates=u)"
            raise DomainError(sentence("DrivenHMM.sample", "covariates are needed for the transitions", "none", remedy))
        u = Ragged.of(covariates).map(table)
        u = u[np.zeros(n, dtype=np.intp)] if len(u) == 1 else u
        if len(u) != n:
            raise ShapeError(sentence("DrivenHMM.sample", f"covariates of {n} sequences are needed", len(u)))
        return with_covariates(emitted(self.emission, self._paths(u, rng), rng), u)

    def _paths(self, u: Ragged, rng: Generator) -> Ragged:
        """Sample the state paths of all sequences step by step."""
        z, lengths = self._features(u.values, u.offsets), u.lengths
        path = np.empty(len(z), dtype=np.intp)
        state = rng.choice(self.states, len(u), p=self.initial / self.initial.sum())
        for t in range(int(lengths.max(initial=0))):
            alive = np.flatnonzero(lengths > t)
            at = u.offsets[alive] + t
            if t:
                own = state[alive]
                probs = np.exp(log_row(self.coefficients[own], self._possible[own], z[at]))
                cumulative = np.cumsum(probs, axis=1)
                state[alive] = (rng.random((len(alive), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
            path[at] = state[alive]
        return Ragged.trusted(values=path, offsets=u.offsets)

    # --------------------------------------------------------------- decoding

    def viterbi(self, x: Any, covariates: Any = None) -> Path:
        """Viterbi path, and its joint log-probability with the observations."""
        driven = apart(x, covariates)
        states, score = decoding.best_paths(DrivenData(self, driven))
        return Path(states, float(score[0])) if is_one(x) else Path(Ragged(states, driven.frames.offsets), score)

    def k_best(self, x: Any, k: int, covariates: Any = None) -> list[Path]:
        """The k most probable paths of one sequence, best first; fewer where fewer are possible."""
        if k < 1 or k != int(k):
            raise DomainError(sentence("DrivenHMM.k_best", "k must be a whole number above 0", k))
        driven = apart(x, covariates)
        decoding.one_of(driven, "k_best")
        return decoding.k_best(DrivenData(self, driven), int(k))

    def posterior(self, x: Any, lag: int | None = None, covariates: Any = None) -> Any:
        """Smoothed probabilities p(s_t | x, u) of every frame (T, K), a Ragged for many sequences.

        With a `lag` (fixed-lag smoothing) they are conditional on x_1 … x_{t + lag} only.

        `lag=0` gives the filtered (causal) probabilities. Covariates up to there are taken as known. Frames that are
        impossible after those before them count as missing, with a warning, as in `HMM.posterior`.
        """
        frames = lag if lag is None else decoding.whole_lag(lag)
        driven = apart(x, covariates)
        data = DrivenData(self, driven)
        out = decoding.smoothed(data)[0] if frames is None else decoding.lagged(data, frames)
        return out if is_one(x) else Ragged(out, driven.frames.offsets)

    def smooth(self, x: Any, covariates: Any = None) -> Smoothed:
        """Forward–backward algorithm: `states`, as `posterior` gives them, and `log_prob` of the sequence."""
        driven = apart(x, covariates)
        out, total = decoding.smoothed(DrivenData(self, driven))
        return Smoothed(out, float(total[0])) if is_one(x) else Smoothed(Ragged(out, driven.frames.offsets), total)

    def drawn_states(self, x: Any, rng: Generator, covariates: Any = None) -> Index:
        """Sample one state path per sequence, concatenated (T,), from p(s | x, u)."""
        return decoding.sample_states(DrivenData(self, apart(x, covariates)), rng)

    def forecast(self, x: Any, steps: int = 1, covariates: Any = None, past: Any = None) -> Forecast:
        """Forecast 1 … steps frames after one sequence x (T, d), given the `covariates` (steps, p) to come.

        `past` (T, p) are the covariates of x, unless x has its own. In the result `states` is (steps, K), `mean`
        (steps, d), and `result[i]` the density of the observation i + 1 frames ahead; with p = 1, `covariates` may be
        (steps,).
        """
        if steps < 1 or steps != int(steps):
            raise DomainError(sentence("DrivenHMM.forecast", "steps must be a whole number above 0", steps))
        if covariates is None or len(np.atleast_1d(covariates)) != steps:
            got = "none" if covariates is None else len(np.atleast_1d(covariates))
            raise ShapeError(
                sentence("DrivenHMM.forecast", f"the covariates of {steps} frames to come are needed", got)
            )
        driven = apart(x, past)
        decoding.one_of(driven, "forecast")
        now, out = decoding.last_filter(DrivenData(self, driven)), np.empty((int(steps), self.states))
        for t, transition in enumerate(self.transition(covariates)):
            out[t] = now = now @ transition
        return Forecast.trusted(states=out, going=np.ones(int(steps)), emission=self.emission)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> Belief:
        """Belief state before any frame: the initial distribution; no transition leads to it."""
        return Belief.trusted(probs=self.initial.copy(), due=False)

    def predict(self, belief: Belief, covariates: Any = None) -> Belief:
        """Prediction step of the filter; without covariates (p,) the transition is due, and `update` makes it."""
        if belief.due:
            expected = "a transition is due already: its covariates must be known before the next"
            raise DomainError(sentence("DrivenHMM", expected, "another", "predict(belief, covariates)"))
        waiting = belief.replace(due=True)
        return waiting if covariates is None else decoding.predicted(self, waiting, covariates)

    def update(self, belief: Belief, y: Any, covariates: Any = None) -> tuple[Belief, float]:
        """Update step of the filter: the belief state given y, and log p(frame | covariates, all before).

        `covariates` (p,) are those of the transition into the frame y. Without them y is a pair of both, or Columns of
        "frames" and "covariates". An impossible frame leaves the belief unchanged.
        """
        frame, u = decoding.observation(y, self.n_covariates) if covariates is None else (y, covariates)
        return decoding.updated(self, decoding.predicted(self, belief, u), frame)

    # --------------------------------------------------------------- learning

    of_sequences = True
    hides_labels = True  # so that `fit(hard=True)` can use the Viterbi path of each sequence

    def collect(
        self, x: Any, weight: Any = None, log_mask: Any = None, hard: bool = False, covariates: Any = None
    ) -> DrivenStats:
        """E-step: expected initial states, emission statistics, and gradient and curvature of the transition logits.

        `log_mask`: known states, as in `HMM.collect`. `hard` uses the Viterbi path alone (Viterbi training).
        """
        driven = apart(x, covariates)
        n = len(driven.frames)
        w = weights(weight, n, "DrivenHMM")
        w = np.ones(n) if w is None else w
        if w.ndim == 2:
            raise ShapeError(sentence("DrivenHMM", f"weight must have one entry per sequence ({n})", w.shape))
        known = None if log_mask is None else Ragged.of(log_mask)
        if known is not None and not np.array_equal(known.offsets, driven.frames.offsets):
            masks(known, driven.frames, self.states)  # raises
        data = DrivenData(self, driven, known, hard)
        edges = data.blocks()
        if len(edges) <= 1:
            with one_blas_thread():
                return e_step(data, 0, n, w, hard)
        pieces = Blocks.of(np.array(edges), rows=1, blocks=1)

        def one(block: Any) -> DrivenStats:
            a, b = block.x[0].tolist()
            return e_step(data, a, b, w[a:b], hard)

        return Threads().total(one, pieces)

    def refit(self, stats: DrivenStats, prior: Any = None) -> DrivenHMM:
        """M-step: emissions and initial distribution in closed form, coefficients by a step on the lower bound."""
        if prior is None and not stats.total_weight > 0:
            raise DataError(
                sentence("DrivenHMM", "at least one frame with weight is needed", "none", "or give a prior")
            )
        beta, gradient, curvature = stats.coefficients, stats.gradient, stats.curvature
        ridge, pseudo_counts = np.zeros(beta.shape[2]), np.zeros(self.states)
        if prior is not None:
            own = prior.evidence(beta, self._possible)
            gradient, curvature, ridge = gradient + own[0], curvature + own[1], prior.penalty
            pseudo_counts = prior.initial_counts(self.initial)
        initial = np.where(self.initial > 0, stats.initial + pseudo_counts, 0.0)
        return self.replace(
            initial=initial / initial.sum() if initial.sum() > 0 else self.initial,
            coefficients=beta + FURTHER * step(beta, self._possible, gradient, curvature, ridge),
            emission=self.emission.refit(stats.emission, None if prior is None else prior.emission),
        )

    def objective(self, stats: DrivenStats, prior: Any = None) -> float:
        """Lower bound of log-likelihood + log prior, equal to it at the model that collected the statistics."""
        transition_term = float(stats.fitted) + bound(
            self.coefficients - stats.coefficients, self._possible, stats.gradient, stats.curvature
        )
        value = float(stats.entropy) + transition_term + float(xlogy(stats.initial, self.initial).sum())
        value += float(self.emission.objective(stats.emission, None if prior is None else prior.emission))
        if prior is None:
            return value
        return value + float(prior.log_density_of_transitions(self.initial, self.coefficients, self._possible))

    @property
    def log_smoothing(self) -> float:
        """The smoothing term of the emissions."""
        return float(getattr(self.emission, "log_smoothing", 0.0))

    def weak_prior(self, stats: DrivenStats) -> DrivenPrior:
        """Weak prior: moderate effects of covariates, one pseudo-count per state, and the emissions' weak prior."""
        return DrivenPrior.weak(stats.curvature, untied(self.emission).weak_prior(self.for_prior(stats)))

    def for_prior(self, stats: DrivenStats) -> Any:
        """The emissions' statistics that scale a weak prior; those of an initialization are pooled first."""
        if self.states == 1 or hasattr(untied(self.emission), "for_prior"):
            return stats.emission
        return softened(stats.emission, 1, one_covariance(self.emission))
