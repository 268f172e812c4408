"""A hidden Markov model whose moves are driven by covariates: the weather, the hour, the dose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import xlogy

from likely.core.arrays import Array, BadEntry, Index, Mask, parameter, weights
from likely.core.blocks import Blocks, runs
from likely.core.engine import Threads, cores, one_blas_thread, ordered_map
from likely.core.ragged import Ragged
from likely.errors import DataError, DomainError, ShapeError, sentence
from likely.families.law import Law
from likely.families.shared import untied
from likely.models import driven_trellis as trellis
from likely.models.chain import SUM_TO_ONE
from likely.models.covariates import Driven, apart, features, table, with_covariates
from likely.models.decoding import Forecast, Path, is_one, one_sequence
from likely.models.driven_moves import bound, evidence, log_moves, log_row, step
from likely.models.driven_prior import DrivenPrior
from likely.models.driven_stats import DrivenStats
from likely.models.hmm import FRAMES, PIECE, BadFrame, _in_double, masks
from likely.models.softening import softened
from likely.models.state_paths import emitted

FURTHER = 1.5  # times the step to the top of a bound that is too steep: up to twice it the bound still rises


@dataclass(frozen=True, eq=False)
class DrivenHMM(Law):
    """p(s_t = j | s_{t−1} = i, u_t) = exp(β_ij · (1, u_t)) / Σ_k exp(β_ik · (1, u_t)), over possible k.

    A row is a sequence of frames with covariates: `with_covariates(x, u)`, or the two side by side. The covariates are
    known, the frames explained: `log_prob` is log p(x | u). Covariates of a sequence's first frame drive nothing;
    elsewhere a missing one is an error. Entries of frames may be missing. `units` (2, p), a centre and a scale, are
    those in which the coefficients are told: (u − centre) / scale stands for u. Learning is a generalised EM: each
    step maximises a lower bound of what the moves explain, so the likelihood never falls   (Böhning 1992).

    >>> import likely as lk
    >>> rain = np.array([[[0.0, 0.0], [-4.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]]])  # u = 1 moves state 0 on
    >>> h = DrivenHMM([1.0, 0.0], rain, lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> h.forecast([0.1, -0.2], 1, covariates=[1.0], past=[0.0, 0.0]).states.round(2)
    array([[0.02, 0.98]])
    """

    starts: Array  # (K,)
    coefficients: Array  # (K, K, p + 1): of 1 and the covariates; where a move is impossible, any number
    emissions: Any  # a stack of K
    possible: NDArray[np.bool_] | None = None  # (K, K); None: all moves
    units: Array | None = None  # (2, p): centre and scale of the covariates; None: as they are

    def __post_init__(self) -> None:
        starts, beta = (parameter(getattr(self, n), "DrivenHMM", n) for n in ("starts", "coefficients"))
        K, size = len(np.atleast_1d(starts)), getattr(self.emissions, "members", None)
        if starts.ndim != 1 or beta.ndim != 3 or beta.shape[:2] != (K, K) or not beta.shape[2] or size != K:
            wanted = "starts (K,), coefficients (K, K, p + 1) and a stack of K emissions must go together"
            raise ShapeError(sentence("DrivenHMM", wanted, [starts.shape, beta.shape, size]))
        possible = np.ones((K, K), bool) if self.possible is None else np.array(self.possible, dtype=bool)
        if possible.shape != (K, K) or not possible.any(axis=1).all():
            wanted = f"possible must be a mask ({K}, {K}) with a way on from every state"
            raise DomainError(sentence("DrivenHMM", wanted, possible.astype(int).tolist()))
        if (starts < 0).any() or abs(starts.sum() - 1) > SUM_TO_ONE:
            raise DomainError(sentence("DrivenHMM", "starts must not be negative and sum to 1", starts.tolist()))
        units = None if self.units is None else parameter(self.units, "DrivenHMM", "units")
        if units is not None and (units.shape != (2, beta.shape[2] - 1) or not (units[1] > 0).all()):
            wanted = f"units must be centre and scale (2, {beta.shape[2] - 1}), scales above 0"
            raise DomainError(sentence("DrivenHMM", wanted, units.tolist()))
        self._set(starts=starts, coefficients=beta, possible=possible, units=units)

    # ------------------------------------------------------------------ shape

    members = None  # stacks are not needed so far

    @property
    def states(self) -> int:
        """Number of states K."""
        return len(self.starts)

    @property
    def dim(self) -> int:
        """Number of columns of a frame."""
        return int(self.emissions.dim)

    @property
    def n_covariates(self) -> int:
        """Number of covariates p."""
        return int(self.coefficients.shape[2]) - 1

    @property
    def n_parameters(self) -> int:
        """Those of the emissions, of the starts, and of all ways on from a state but one."""
        ways = int(self._possible.sum() - self.states)
        return int(self.emissions.n_parameters) + int((self.starts > 0).sum()) - 1 + ways * self.coefficients.shape[2]

    @property
    def smallest_eigenvalue(self) -> float | None:
        """The least variance in any direction of any emission, where they have covariances."""
        return getattr(self.emissions, "smallest_eigenvalue", None)

    @property
    def _possible(self) -> Mask:
        return np.ones((self.states, self.states), bool) if self.possible is None else self.possible

    @property
    def _frames(self) -> int:
        """Frames of a block: their moves (T, K, K) stay small."""
        return max(64, min(FRAMES, PIECE // self.states**2))

    def raw_coefficients(self) -> Array:
        """The coefficients of (1, u) with u as it comes, whatever the units (K, K, p + 1)."""
        if self.units is None:
            return self.coefficients
        slopes = self.coefficients[:, :, 1:] / self.units[1]
        return np.concatenate([self.coefficients[:, :, :1] - (slopes @ self.units[0])[:, :, None], slopes], axis=2)

    # ---------------------------------------------------------------- density

    def moves(self, covariates: Any) -> Array:
        """p(next state | state) at given covariates (T, p): (T, K, K)."""
        u = self._covariates(covariates)
        return np.exp(log_moves(self.coefficients, self._possible, self._features(u)))

    def _covariates(self, covariates: Any) -> Array:
        u = table(np.asarray(covariates, dtype=np.float64))
        if u.shape[1] != self.n_covariates and u.shape == (self.n_covariates, 1):
            u = u.T  # one row of several covariates
        self._check_width(u)
        return u

    def _check_width(self, u: Array) -> None:
        if u.ndim != 2 or u.shape[1] != self.n_covariates:
            raise ShapeError(sentence("DrivenHMM", f"covariates must have {self.n_covariates} columns", u.shape))

    def _features(self, u: Array, offsets: Index | None = None, before: int = 0) -> Array:
        self._check_width(u)
        return features(u, self.units, offsets, before)

    def log_prob(self, x: Any, covariates: Any = None) -> Array:
        """log p(x | u) of each sequence (n,)."""
        driven = apart(x, covariates)
        out = np.empty(len(driven.frames))

        def fill(a: int, b: int, part: _Part) -> None:
            out[a:b] = trellis.filtered(self.starts, part.moves, part.logs, part.seqs.offsets).log_prob

        self._in_runs(driven, fill)
        return out.astype(np.float32) if driven.frames.dtype == np.float32 else out

    def _in_runs(self, driven: Driven, fill: Callable[[int, int, _Part], None]) -> None:
        def one(edges: tuple[int, int]) -> None:
            with np.errstate(all="ignore"):
                fill(*edges, self._part(driven, *edges))

        with one_blas_thread():
            for _ in ordered_map(one, runs(driven.frames, self._frames), cores()):
                pass

    def _part(self, driven: Driven, a: int, b: int) -> _Part:
        """Scores and log moves of the frames of some sequences."""
        seqs, at = driven.frames[a:b], slice(driven.frames.offsets[a], driven.frames.offsets[b])
        z = self._features(driven.covariates[at], seqs.offsets, a)
        return _Part(seqs, z, log_moves(self.coefficients, self._possible, z), self._scores(seqs, a))

    def _scores(self, seqs: Ragged, before: int) -> Array:
        try:
            logs = self.emissions.log_prob(_in_double(seqs.values))
        except BadEntry as error:
            raise BadFrame.of(error, seqs.offsets).after(before) from None
        return np.array(logs, dtype=np.float64, order="C")

    def sample(self, n: int, rng: Generator, covariates: Any = None) -> Ragged:
        """n sequences with their covariates: one for each sequence of `covariates`, or all along a single one."""
        if covariates is None:
            remedy = "say which: sample(n, rng, covariates=u)"
            raise DomainError(sentence("DrivenHMM.sample", "moves are driven by covariates", "none", remedy))
        u = Ragged.of(covariates).map(table)
        u = u[np.zeros(n, dtype=np.intp)] if len(u) == 1 else u
        if len(u) != n:
            raise ShapeError(sentence("DrivenHMM.sample", f"covariates of {n} sequences are needed", len(u)))
        return with_covariates(emitted(self.emissions, self._paths(u, rng), rng), u)

    def _paths(self, u: Ragged, rng: Generator) -> Ragged:
        """All sequences a step at a time."""
        z, lengths = self._features(u.values, u.offsets), u.lengths
        path = np.empty(len(z), dtype=np.intp)
        state = rng.choice(self.states, len(u), p=self.starts / self.starts.sum())
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

    def posterior(self, x: Any, covariates: Any = None) -> Any:
        """p(s_t | x, u) of every frame: (T, K), or a Ragged for many sequences."""
        driven = apart(x, covariates)
        out, offsets = np.empty((len(driven.covariates), self.states)), driven.frames.offsets

        def fill(a: int, b: int, part: _Part) -> None:
            found = trellis.smoothed(self.starts, part.moves, part.logs, part.seqs.offsets)
            self._refuse_impossible(found.log_prob, a)
            out[offsets[a] : offsets[b]] = found.states

        self._in_runs(driven, fill)
        return out if is_one(x) else Ragged(out, offsets)

    def _refuse_impossible(self, log_prob: Array, before: int) -> None:
        if np.isneginf(log_prob).any():
            whose = f"sequence {before + int(np.isneginf(log_prob).argmax())} is impossible under the model"
            raise DataError(sentence("DrivenHMM", "the states of what cannot be are not defined", whose))

    def viterbi(self, x: Any, covariates: Any = None) -> Path:
        """The best path of states, and its joint log-probability with what was seen."""
        driven = apart(x, covariates)
        offsets = driven.frames.offsets
        states, score = np.empty(len(driven.covariates), dtype=np.intp), np.empty(len(driven.frames))

        def fill(a: int, b: int, part: _Part) -> None:
            found = trellis.best_paths(self.starts, part.moves, part.logs, part.seqs.offsets)
            states[offsets[a] : offsets[b]], score[a:b] = found

        self._in_runs(driven, fill)
        return Path(states, float(score[0])) if is_one(x) else Path(Ragged(states, offsets), score)

    def drawn_states(self, x: Any, rng: Generator) -> Index:
        """A path of states of each sequence, end to end (T,), drawn from p(s | x, u)."""
        driven = apart(x)
        out, uniform = np.empty(len(driven.covariates), dtype=np.intp), rng.random(len(driven.covariates))

        def fill(a: int, b: int, part: _Part) -> None:
            at = slice(driven.frames.offsets[a], driven.frames.offsets[b])
            out[at] = trellis.drawn_paths(self.starts, part.moves, part.logs, part.seqs.offsets, uniform[at])

        self._in_runs(driven, fill)
        return out

    def forecast(self, x: Any, steps: int = 1, covariates: Any = None, past: Any = None) -> Forecast:
        """What comes 1 … steps frames after one sequence, driven by the `covariates` (steps, p) of those frames.

        `past` are the covariates of x, unless x has its own.
        """
        if steps < 1 or steps != int(steps):
            raise DomainError(sentence("DrivenHMM.forecast", "steps must be a whole number above 0", steps))
        if covariates is None or len(np.atleast_1d(covariates)) != steps:
            got = "none" if covariates is None else len(np.atleast_1d(covariates))
            raise ShapeError(
                sentence("DrivenHMM.forecast", f"the covariates of {steps} frames to come are needed", got)
            )
        driven = apart(x, past)
        one_sequence(driven.frames, "forecast")
        with np.errstate(all="ignore"):
            part = self._part(driven, 0, 1)
            found = trellis.filtered(self.starts, part.moves, part.logs, part.seqs.offsets)
        self._refuse_impossible(found.log_prob, 0)
        now, out = found.alpha[-1], np.empty((int(steps), self.states))
        for t, moves in enumerate(self.moves(covariates)):
            out[t] = now = now @ moves
        return Forecast.trusted(states=out, going=np.ones(int(steps)), emissions=self.emissions)

    # --------------------------------------------------------------- learning

    def collect(self, x: Any, weight: Any = None, given: Any = None, covariates: Any = None) -> DrivenStats:
        """Expected beginnings, emissions' statistics, and gradient and curvature of the moves, under p(s | x, u).

        `given`: what is known of the states, as `HMM.collect` takes it.
        """
        driven = apart(x, covariates)
        n = len(driven.frames)
        w = weights(weight, n, "DrivenHMM")
        w = np.ones(n) if w is None else w
        if w.ndim == 2:
            raise ShapeError(sentence("DrivenHMM", f"weight must have one entry a sequence ({n})", w.shape))
        known = None if given is None else masks(given, driven.frames, self.states)
        edges = runs(driven.frames, self._frames) or [(0, 0)]
        if len(edges) == 1:
            return self._looked(driven, 0, n, w, known)
        pieces = Blocks.of(np.array(edges), rows=1, blocks=1)
        return Threads().total(lambda block: self._looked(driven, block.x[0, 0], block.x[0, 1], w, known), pieces)

    def _looked(self, driven: Driven, a: int, b: int, w: Array, known: Ragged | None) -> DrivenStats:
        with np.errstate(all="ignore"):
            part, w = self._part(driven, int(a), int(b)), w[a:b]
            offsets = part.seqs.offsets
            logs = part.logs if known is None else part.logs + known[a:b].values
            found = trellis.smoothed(self.starts, part.moves, logs, offsets)
            cannot = np.isneginf(found.log_prob) & (w > 0)
            if cannot.any():  # as if nothing had been seen of them: the objective says what is wrong
                free = np.zeros_like(logs) if known is None else known[a:b].values
                logs = np.where(np.repeat(cannot, part.seqs.lengths)[:, None], free, logs)
                found = trellis.smoothed(self.starts, part.moves, logs, offsets)
                w = np.where(np.isneginf(found.log_prob), 0.0, w)
        lost = bool((w[cannot] == 0).any())
        return self._stats(part, logs, found, w, lost)

    def _stats(self, part: _Part, logs: Array, found: trellis.Smoothed, w: Array, lost: bool) -> DrivenStats:
        each = np.repeat(w, part.seqs.lengths)
        states, moved = found.states * each[:, None], found.moves * each[:, None, None]
        gradient, curvature = evidence(moved, moved.sum(axis=2), np.exp(part.moves), part.z)
        starts = states[part.seqs.offsets[:-1][part.seqs.lengths > 0]].sum(axis=0)
        fitted = float((moved * np.where(moved > 0, part.moves, 0.0)).sum())
        total = float(w @ np.where(w > 0, found.log_prob, 0.0)) - trellis.expected_score(states, logs)
        entropy = -np.inf if lost else total - fitted - float(xlogy(starts, self.starts).sum())
        return DrivenStats.trusted(
            starts=starts, counts=states.sum(axis=0), entropy=np.asarray(entropy), fitted=np.asarray(fitted),
            parts=self.emissions.collect(_in_double(part.seqs.values), states), gradient=gradient,
            curvature=curvature, coefficients=self.coefficients,
        )  # fmt: skip

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
            more = prior.start_counts(self.starts)
        starts = np.where(self.starts > 0, stats.starts + more, 0.0)
        return self.replace(
            starts=starts / starts.sum() if starts.sum() > 0 else self.starts,
            coefficients=beta + FURTHER * step(beta, self._possible, gradient, curvature, ridge),
            emissions=self.emissions.refit(stats.parts, None if prior is None else prior.parts),
        )

    def objective(self, stats: DrivenStats, prior: Any = None) -> float:
        """A lower bound of log-likelihood + log prior, equal to it at the model that looked."""
        moved = float(stats.fitted) + bound(
            self.coefficients - stats.coefficients, self._possible, stats.gradient, stats.curvature
        )
        value = float(stats.entropy) + moved + float(xlogy(stats.starts, self.starts).sum())
        value += float(self.emissions.objective(stats.parts, None if prior is None else prior.parts))
        if prior is None:
            return value
        return value + float(prior.log_density_of_moves(self.starts, self.coefficients, self._possible))

    def weak_prior(self, stats: DrivenStats) -> DrivenPrior:
        """Effects that are not enormous, one fictitious move from each state, and the emissions' weak prior."""
        return DrivenPrior.weak(stats.curvature, untied(self.emissions).weak_prior(self.for_prior(stats)))

    def for_prior(self, stats: DrivenStats) -> Any:
        """The emissions' statistics that a weak prior is scaled by: a start is not taken at its word."""
        if self.states == 1 or hasattr(untied(self.emissions), "for_prior"):
            return stats.parts
        return softened(stats.parts, 1)


class _Part:
    """Some sequences: their frames, features (T, q), log moves (T, K, K) and scores (T, K)."""

    def __init__(self, seqs: Ragged, z: Array, moves: Array, logs: Array) -> None:
        self.seqs, self.z, self.moves, self.logs = seqs, z, moves, logs
