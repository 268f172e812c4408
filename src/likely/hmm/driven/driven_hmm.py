"""A hidden Markov model whose moves are driven by covariates: the weather, the hour, the dose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import xlogy

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
from likely.hmm.driven.driven_baum_welch import looked
from likely.hmm.driven.driven_decoding import Belief
from likely.hmm.driven.driven_pieces import Look
from likely.hmm.driven.driven_prior import DrivenPrior
from likely.hmm.driven.driven_stats import DrivenStats
from likely.hmm.driven.logistic_transitions import bound, log_row, log_transition, step
from likely.hmm.hmm import masks
from likely.hmm.markov_chain import SUM_TO_ONE
from likely.hmm.viterbi import emitted

FRAMES = 4096  # of a block at most
PIECE = 2**18  # numbers in the moves of a block: they stay in cache
FURTHER = 1.5  # times the step to the top of a bound that is too steep: up to twice it the bound still rises


@dataclass(frozen=True, eq=False)
class DrivenHMM(Distribution):
    """p(s_t = j | s_{t−1} = i, u_t) = exp(β_ij · (1, u_t)) / Σ_k exp(β_ik · (1, u_t)), over possible k.

    A row is a sequence of frames with covariates: `with_covariates(x, u)`, or the two side by side. The covariates are
    known, the frames explained: `log_prob` is log p(x | u). Covariates of a sequence's first frame drive nothing;
    elsewhere a missing one is an error. Entries of frames may be missing. `units` (2, p), a center and a scale, are
    those in which the coefficients are told: (u − center) / scale stands for u. Learning is a generalized EM: each
    step maximizes a lower bound of what the moves explain, so the likelihood never falls   (Böhning 1992).

    >>> import likely as lk
    >>> rain = np.array([[[0.0, 0.0], [-4.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]]])  # u = 1 moves state 0 on
    >>> h = DrivenHMM([1.0, 0.0], rain, lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> h.forecast([0.1, -0.2], 1, covariates=[1.0], past=[0.0, 0.0]).states.round(2)
    array([[0.02, 0.98]])
    """

    initial: Array  # (K,)
    coefficients: Array  # (K, K, p + 1): of 1 and the covariates; where a move is impossible, any number
    emission: Any  # a stack of K
    possible: NDArray[np.bool_] | None = None  # (K, K); None: all moves
    units: Array | None = None  # (2, p): center and scale of the covariates; None: as they are

    def __post_init__(self) -> None:
        initial, beta = (parameter(getattr(self, n), "DrivenHMM", n) for n in ("initial", "coefficients"))
        K, size = len(np.atleast_1d(initial)), getattr(self.emission, "members", None)
        if initial.ndim != 1 or beta.ndim != 3 or beta.shape[:2] != (K, K) or not beta.shape[2] or size != K:
            wanted = "starts (K,), coefficients (K, K, p + 1) and a stack of K emissions must go together"
            raise ShapeError(sentence("DrivenHMM", wanted, [initial.shape, beta.shape, size]))
        possible = np.ones((K, K), bool) if self.possible is None else np.array(self.possible, dtype=bool)
        if possible.shape != (K, K) or not possible.any(axis=1).all():
            wanted = f"possible must be a mask ({K}, {K}) with a way on from every state"
            raise DomainError(sentence("DrivenHMM", wanted, possible.astype(int).tolist()))
        if (initial < 0).any() or abs(initial.sum() - 1) > SUM_TO_ONE:
            raise DomainError(sentence("DrivenHMM", "starts must not be negative and sum to 1", initial.tolist()))
        units = None if self.units is None else parameter(self.units, "DrivenHMM", "units")
        if units is not None and (units.shape != (2, beta.shape[2] - 1) or not (units[1] > 0).all()):
            wanted = f"units must be center and scale (2, {beta.shape[2] - 1}), scales above 0"
            raise DomainError(sentence("DrivenHMM", wanted, units.tolist()))
        self._set(initial=initial, coefficients=beta, possible=possible, units=units)

    # ------------------------------------------------------------------ shape

    members = None  # stacks are not needed so far

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
        """Those of the emissions, of the starts, and of all ways on from a state but one."""
        ways = int(self._possible.sum() - self.states)
        return int(self.emission.n_parameters) + int((self.initial > 0).sum()) - 1 + ways * self.coefficients.shape[2]

    @property
    def smallest_eigenvalue(self) -> float | None:
        """The least variance in any direction of any emission, where they have covariances."""
        return getattr(self.emission, "smallest_eigenvalue", None)

    @property
    def _possible(self) -> Mask:
        return np.ones((self.states, self.states), bool) if self.possible is None else self.possible

    @property
    def _frames(self) -> int:
        """Frames of a block, or of a piece of a long sequence: their moves (T, K, K) stay small."""
        return max(64, min(FRAMES, PIECE // self.states**2))

    def raw_coefficients(self) -> Array:
        """The coefficients of (1, u) with u as it comes, whatever the units (K, K, p + 1)."""
        if self.units is None:
            return self.coefficients
        slopes = self.coefficients[:, :, 1:] / self.units[1]
        return np.concatenate([self.coefficients[:, :, :1] - (slopes @ self.units[0])[:, :, None], slopes], axis=2)

    # ---------------------------------------------------------------- density

    def transition(self, covariates: Any) -> Array:
        """p(next state | state) at given covariates (T, p): (T, K, K)."""
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
        out = decoding.log_probs(Look(self, driven))
        return out.astype(np.float32) if driven.frames.dtype == np.float32 else out

    def sample(self, n: int, rng: Generator, covariates: Any = None) -> Ragged:
        """n sequences drawn along given covariates, with which they come back as `with_covariates` makes them.

        `covariates` are n sequences (T_i, p), one for each, or a single one (T, p) for all: sequence i of the answer
        has T_i frames, `answer[i]["frames"]` (T_i, d) and `answer[i]["covariates"]` (T_i, p). The row of its first
        frame drives nothing.
        """
        if covariates is None:
            remedy = "say which: sample(n, rng, covariates=u)"
            raise DomainError(sentence("DrivenHMM.sample", "moves are driven by covariates", "none", remedy))
        u = Ragged.of(covariates).map(table)
        u = u[np.zeros(n, dtype=np.intp)] if len(u) == 1 else u
        if len(u) != n:
            raise ShapeError(sentence("DrivenHMM.sample", f"covariates of {n} sequences are needed", len(u)))
        return with_covariates(emitted(self.emission, self._paths(u, rng), rng), u)

    def _paths(self, u: Ragged, rng: Generator) -> Ragged:
        """All sequences a step at a time."""
        z, lengths = self._features(u.values, u.offsets), u.lengths
        path = np.empty(len(z), dtype=np.intp)
        state = rng.choice(self.states, len(u), p=self.initial / self.initial.sum())
        for t in range(int(lengths.max(initial=0))):
            alive = np.flatnonzero(lengths > t)
            at = u.offsets[alive] + t
            if t:
                own = state[alive]
                probs = np.exp(log_row(self.coefficients[own], self._possible[own], z[at]))
                heap = np.cumsum(probs, axis=1)
                state[alive] = (rng.random((len(alive), 1)) * heap[:, -1:] >= heap).sum(axis=1)
            path[at] = state[alive]
        return Ragged.trusted(values=path, offsets=u.offsets)

    # --------------------------------------------------------------- decoding

    def viterbi(self, x: Any, covariates: Any = None) -> Path:
        """The best path of states, and its joint log-probability with what was seen."""
        driven = apart(x, covariates)
        states, score = decoding.best_paths(Look(self, driven))
        return Path(states, float(score[0])) if is_one(x) else Path(Ragged(states, driven.frames.offsets), score)

    def k_best(self, x: Any, k: int, covariates: Any = None) -> list[Path]:
        """The k best paths of one sequence, best first; fewer where there are fewer."""
        if k < 1 or k != int(k):
            raise DomainError(sentence("DrivenHMM.k_best", "k must be a whole number above 0", k))
        driven = apart(x, covariates)
        decoding.one_of(driven, "k_best")
        return decoding.k_best(Look(self, driven), int(k))

    def posterior(self, x: Any, lag: int | None = None, covariates: Any = None) -> Any:
        """p(s_t | x, u) of every frame (T, K), a Ragged for many sequences; with a `lag`, from x_1 … x_{t + lag} only.

        `lag=0` is the causal filter: what was known at the time. Covariates up to there are taken as known. Frames that
        are impossible after those before them count as not observed, with a note, as in `HMM.posterior`.
        """
        whole = lag if lag is None else decoding.whole_lag(lag)
        driven = apart(x, covariates)
        look = Look(self, driven)
        out = decoding.smoothed(look)[0] if whole is None else decoding.lagged(look, whole)
        return out if is_one(x) else Ragged(out, driven.frames.offsets)

    def smooth(self, x: Any, covariates: Any = None) -> Smoothed:
        """`states`, as `posterior` gives them, and `log_prob` of the sequence, in one pass."""
        driven = apart(x, covariates)
        out, total = decoding.smoothed(Look(self, driven))
        return Smoothed(out, float(total[0])) if is_one(x) else Smoothed(Ragged(out, driven.frames.offsets), total)

    def drawn_states(self, x: Any, rng: Generator, covariates: Any = None) -> Index:
        """A path of states of each sequence, end to end (T,), drawn from p(s | x, u)."""
        return decoding.drawn(Look(self, apart(x, covariates)), rng)

    def forecast(self, x: Any, steps: int = 1, covariates: Any = None, past: Any = None) -> Forecast:
        """What comes 1 … steps frames after one sequence x (T, d), driven by the `covariates` (steps, p) to come.

        `past` (T, p) are the covariates of x, unless x has its own. In the answer `states` is (steps, K), `mean`
        (steps, d), and `answer[i]` the density of the observation i + 1 frames ahead; with p = 1, `covariates` may be
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
        now, out = decoding.last_filter(Look(self, driven)), np.empty((int(steps), self.states))
        for t, transition in enumerate(self.transition(covariates)):
            out[t] = now = now @ transition
        return Forecast.trusted(states=out, going=np.ones(int(steps)), emission=self.emission)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> Belief:
        """The first state, before any frame; no move leads to it."""
        return Belief.trusted(probs=self.initial.copy(), due=False)

    def predict(self, belief: Belief, covariates: Any = None) -> Belief:
        """The belief one frame on. Without covariates (p,) the move is due: `update` makes it, once they come."""
        if belief.due:
            expected = "a move is due already: its covariates must be known before the next"
            raise DomainError(sentence("DrivenHMM", expected, "another", "predict(belief, covariates)"))
        waiting = belief.replace(due=True)
        return waiting if covariates is None else decoding.moved(self, waiting, covariates)

    def update(self, belief: Belief, y: Any) -> tuple[Belief, float]:
        """The state once y is seen, and log p(frame | covariates, all before).

        y is a pair of a frame and the covariates (p,) of the move into it, or Columns of "frames" and "covariates".
        What cannot be leaves the belief as it was before the frame.
        """
        frame, u = decoding.observation(y, self.n_covariates)
        return decoding.seen(self, decoding.moved(self, belief, u), frame)

    # --------------------------------------------------------------- learning

    of_sequences = True
    hides_labels = True  # so that `fit(hard=True)` can take the best path of each sequence

    def collect(
        self, x: Any, weight: Any = None, log_mask: Any = None, hard: bool = False, covariates: Any = None
    ) -> DrivenStats:
        """Expected beginnings, emissions' statistics, and gradient and curvature of the moves, under p(s | x, u).

        `given`: what is known of the states, as `HMM.collect` takes it. `hard` takes the best path alone.
        """
        driven = apart(x, covariates)
        n = len(driven.frames)
        w = weights(weight, n, "DrivenHMM")
        w = np.ones(n) if w is None else w
        if w.ndim == 2:
            raise ShapeError(sentence("DrivenHMM", f"weight must have one entry per sequence ({n})", w.shape))
        known = None if log_mask is None else Ragged.of(log_mask)
        if known is not None and not np.array_equal(known.offsets, driven.frames.offsets):
            masks(known, driven.frames, self.states)  # refuses them
        look = Look(self, driven, known, hard)
        edges = look.stretches()
        if len(edges) <= 1:
            with one_blas_thread():
                return looked(look, 0, n, w, hard)
        pieces = Blocks.of(np.array(edges), rows=1, blocks=1)

        def one(block: Any) -> DrivenStats:
            a, b = block.x[0].tolist()
            return looked(look, a, b, w[a:b], hard)

        return Threads().total(one, pieces)

    def refit(self, stats: DrivenStats, prior: Any = None) -> DrivenHMM:
        """Emissions and starts as in any HMM; coefficients by the step of the lower bound. What cannot be stays so."""
        if prior is None and not stats.total_weight > 0:
            raise DataError(
                sentence("DrivenHMM", "at least one frame with weight is needed", "none", "or give a prior")
            )
        beta, gradient, curvature = stats.coefficients, stats.gradient, stats.curvature
        ridge, more = np.zeros(beta.shape[2]), np.zeros(self.states)
        if prior is not None:
            own = prior.evidence(beta, self._possible)
            gradient, curvature, ridge = gradient + own[0], curvature + own[1], prior.penalty
            more = prior.start_counts(self.initial)
        initial = np.where(self.initial > 0, stats.initial + more, 0.0)
        return self.replace(
            initial=initial / initial.sum() if initial.sum() > 0 else self.initial,
            coefficients=beta + FURTHER * step(beta, self._possible, gradient, curvature, ridge),
            emission=self.emission.refit(stats.emission, None if prior is None else prior.emission),
        )

    def objective(self, stats: DrivenStats, prior: Any = None) -> float:
        """A lower bound of log-likelihood + log prior, equal to it at the model that looked."""
        moved = float(stats.fitted) + bound(
            self.coefficients - stats.coefficients, self._possible, stats.gradient, stats.curvature
        )
        value = float(stats.entropy) + moved + float(xlogy(stats.initial, self.initial).sum())
        value += float(self.emission.objective(stats.emission, None if prior is None else prior.emission))
        if prior is None:
            return value
        return value + float(prior.log_density_of_moves(self.initial, self.coefficients, self._possible))

    @property
    def log_smoothing(self) -> float:
        """That of the emissions."""
        return float(getattr(self.emission, "log_smoothing", 0.0))

    def weak_prior(self, stats: DrivenStats) -> DrivenPrior:
        """Effects that are not enormous, one fictitious move from each state, and the emissions' weak prior."""
        return DrivenPrior.weak(stats.curvature, untied(self.emission).weak_prior(self.for_prior(stats)))

    def for_prior(self, stats: DrivenStats) -> Any:
        """The emissions' statistics that a weak prior is scaled by: a start is not taken at its word."""
        if self.states == 1 or hasattr(untied(self.emission), "for_prior"):
            return stats.emission
        return softened(stats.emission, 1, one_covariance(self.emission))
