"""Hidden Markov model with any emission distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from likely.core import declared
from likely.core.arrays import Array, BadEntry, Index, checked_labels, parameter, unmasked, weights
from likely.core.blocks import BLOCKS, Blocks, runs
from likely.core.engine import Threads, cores, one_blas_thread, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.distribution import Distribution
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.stack_statistics import joined
from likely.distributions.stacks.tied import one_covariance, untied
from likely.hmm import forward_backward, long_sequences
from likely.hmm.baum_welch import e_step, in_double, m_step, viterbi_e_step
from likely.hmm.decoding import Forecast, Path, Smoothed, belief_over, decode, forecast, k_best, smooth, smoothed
from likely.hmm.gaussian_e_step import gaussian_e_step
from likely.hmm.hmm_stats import HMMStats
from likely.hmm.markov_chain import Chain, check_chain
from likely.hmm.viterbi import best_paths, emitted, sample_paths
from likely.mixture.embedding import by_thirds, embedded

FRAMES = 4096  # of a block: its scores and posteriors stay in cache
PIECE = 2**20  # scores (frames × states) in memory at a time, for chains of very many states


@dataclass(frozen=True, eq=False)
class HMM(Distribution):
    """Hidden Markov model with any emission density.

    p(x) = Σ over paths s of p(s₁) p(x₁ | s₁) Π p(s_t | s_{t−1}) p(x_t | s_t)   (Herbst 9.4, Ney 7.2).

    `initial` (N,) is the initial distribution, `transition` (N, N) the transition matrix. A sample is a sequence of
    frames: `Ragged`, a list of arrays, or one array. State k emits from member k of `emission`, any stack; the first
    state emits, too. `final` (N,) are exit probabilities, so that the lengths of sequences are modeled; without them, a
    sequence may stop anywhere. Where `initial` and `transition` are longer than the stack of emissions, the last states
    are *null states*, which emit nothing and take no time. A leading axis C makes a stack of C chains over one stack of
    C·K emissions.

    >>> import likely as lk
    >>> h = HMM([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], lk.Gaussian([[0.0], [5.0]], 1.0))
    >>> h.viterbi([0.1, -0.3, 4.8, 5.2]).states
    array([0, 0, 1, 1])
    """

    initial: Annotated[Array, declared.numbers("* N", 0)]  # (N,), or (C, N) for a stack
    transition: Annotated[Array, declared.numbers("* N N", 0)]  # (N, N), or (C, N, N)
    emission: Annotated[Any, declared.distribution]  # a stack of K, or C·K, members; the other N − K states are null
    # (N,), or (C, N): to the exit
    final: Annotated[Array | None, declared.maybe(declared.numbers("* N", 0))] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        initial, transition = parameter(self.initial, "HMM", "initial"), parameter(self.transition, "HMM", "transition")
        final = None if self.final is None else parameter(self.final, "HMM", "final")
        C, N = (1, *initial.shape)[-2:] if initial.ndim in (1, 2) else (0, 0)
        size = getattr(self.emission, "members", None)
        if not N or transition.shape != (*initial.shape, N) or (final is not None and final.shape != initial.shape):
            expected = "initial (N,), transition (N, N) and final (N,) must have matching shapes"
            raise ShapeError(
                sentence("HMM", expected, [initial.shape, transition.shape, None if final is None else final.shape])
            )
        if size is None or size % C or not 0 < size // C <= N:
            expected = f"emission must be a stack of at most {N} members per chain, one for each emitting state"
            raise ShapeError(sentence("HMM", expected, f"{size} members for {C} chains"))
        self._set(initial=initial, transition=transition, final=final)
        for chain in self.chains:
            check_chain(chain.initial, chain.transition, chain.final, chain.states)

    # ------------------------------------------------------------------ shape

    @property
    def members(self) -> int | None:
        """Number of chains C in a stack; None for one."""
        return len(self.initial) if self.initial.ndim == 2 else None

    @property
    def states(self) -> int:
        """Number of emitting states K of a chain."""
        return int(self.emission.members) // (self.members or 1)

    @property
    def dim(self) -> int:
        """Number of columns of a frame."""
        return int(self.emission.dim)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of the emissions, the initial distribution, transitions and final probabilities."""
        free = [(chain.initial > 0)[None].sum() - 1 for chain in self.chains]
        for chain in self.chains:
            on = (chain.transition > 0).sum(axis=1) + (0 if chain.final is None else chain.final > 0)
            free.append(np.maximum(on - 1, 0).sum())
        return int(self.emission.n_parameters) + int(sum(free))

    @property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest eigenvalue of the emissions' covariances, where they have any."""
        return getattr(self.emission, "smallest_eigenvalue", None)

    def member(self, c: int) -> HMM:
        """One chain of a stack."""
        at = np.arange(c * self.states, (c + 1) * self.states)
        return HMM.trusted(
            initial=self.initial[c].copy(), transition=self.transition[c].copy(), emission=self.emission.some(at),
            final=None if self.final is None else self.final[c].copy(),
        )  # fmt: skip

    def some(self, index: Any) -> HMM:
        """Some chains of the stack, as a stack."""
        if self.members is None:
            raise DomainError(sentence("HMM.some", "a stack of chains is needed", "one chain"))
        at = (np.asarray(index)[:, None] * self.states + np.arange(self.states)).ravel()
        return HMM.trusted(
            initial=self.initial[index], transition=self.transition[index], emission=self.emission.some(at),
            final=None if self.final is None else self.final[index],
        )  # fmt: skip

    @cached_property
    def chains(self) -> list[Chain]:
        """The Markov chain of each member, without its emissions."""
        final = [None] * (self.members or 1) if self.final is None else self.final.reshape(-1, self.initial.shape[-1])
        initial, K = self.initial.reshape(-1, self.initial.shape[-1]), self.states
        transition = self.transition.reshape(len(initial), *self.transition.shape[-2:])
        parts = zip(initial, transition, final, strict=True)
        return [
            Chain.trusted(
                initial=np.array(s), transition=np.array(m), final=None if e is None else np.array(e), states=K
            )
            for s, m, e in parts
        ]

    @cached_property
    def _member_list(self) -> list[HMM]:
        return [self.member(c) for c in range(self.members)] if self.members else [self]

    @cached_property
    def _arcs(self) -> list[Any]:
        return [chain.summed for chain in self.chains]

    def _require_one(self, doing: str) -> Chain:
        if self.members is not None:
            expected = f"{doing} needs a single chain"
            raise DomainError(sentence("HMM", expected, f"a stack of {self.members}", "take member(c) first"))
        return self.chains[0]

    # ---------------------------------------------------------------- density

    def log_prob(self, x: Any) -> Array:
        """log p(x) of each sequence: (n,), or (n, C) for a stack."""
        seqs = Ragged.of(x)
        n = len(seqs)
        out = np.empty((n, len(self.chains)))
        if len(seqs.values) <= FRAMES:
            out[:] = self._likelihoods(seqs)
        else:
            edges = runs(seqs, self._frames)
            with one_blas_thread():
                for a, part in ordered_map(
                    lambda ab: (ab[0], self._likelihoods(seqs[ab[0] : ab[1]], ab[0])), edges, cores()
                ):
                    out[a : a + len(part)] = part
        out = out if self.members else out[:, 0]
        return out.astype(np.float32) if seqs.dtype == np.float32 else out

    @property
    def _frames(self) -> int:
        """Frames of a block: fewer for very many states."""
        return max(64, min(FRAMES, PIECE // int(self.emission.members)))

    def _likelihoods(self, seqs: Ragged, before: int = 0) -> Array:
        with np.errstate(all="ignore"):
            if len(seqs) == 1 and long_sequences.is_long(len(seqs.values), self.states):
                return np.array([[long_sequences.log_prob(one, seqs.values) for one in self._member_list]])
            return forward_backward.log_likelihoods(self._arcs, self.scores(seqs, before), seqs.offsets)

    def scores(self, seqs: Ragged, before: int = 0) -> Array:
        """Emission log-likelihoods log p(x_t | state) of all frames under all states (T, C·K), as a new array."""
        try:
            logs = self.emission.log_prob(in_double(seqs.values))
        except BadEntry as error:
            raise BadFrame.of(error, seqs.offsets).after(before) from None
        own = isinstance(logs, np.ndarray) and logs.dtype == np.float64
        if own and logs.flags.owndata and logs.flags.writeable and logs.flags.c_contiguous:
            return logs  # not shared
        return np.array(logs, dtype=np.float64, order="C")

    def sample(self, n: int, rng: Generator, length: Any = None) -> Any:
        """Sample n sequences (a Ragged): until the chain exits, or of the given `length`, a number or one per sequence.

        For a stack, a list with the sequences of each chain.
        """
        if self.members is not None:
            return [one.sample(n, rng, length) for one in self._member_list]
        if length is not None:
            length = _lengths(length)
        return emitted(self.emission, sample_paths(self.chains[0], n, rng, length), rng)

    # --------------------------------------------------------------- decoding

    def viterbi(self, x: Any) -> Path:
        """Viterbi path: `states` (T,) and `log_prob`; for many sequences a Ragged and (n,).

        For an impossible sequence, log_prob is −inf and every state −1.
        """
        self._require_one("viterbi")
        return decode(self, x)

    def k_best(self, x: Any, k: int) -> list[Path]:
        """The k most probable paths of one sequence, best first; fewer where fewer are possible."""
        self._require_one("k_best")
        return k_best(self, x, k)

    def posterior(self, x: Any, lag: int | None = None) -> Any:
        """Smoothed probabilities p(s_t | x) of every frame (T, K), a Ragged for many sequences.

        With a `lag` (fixed-lag smoothing) they are conditional on x_1 … x_{t + lag} only.

        `lag=0` gives the filtered (causal) probabilities. A frame that is impossible after those before it counts as
        missing, as in `lk.step`, with a warning; so it changes nothing before it (with `lag=0`), and in no other
        sequence. Where a chain must have exited, no state is possible: all probabilities are 0.
        """
        self._require_one("posterior")
        return smoothed(self, x, lag)

    def smooth(self, x: Any) -> Smoothed:
        """Forward–backward algorithm: `states`, as `posterior` gives them, and `log_prob` of the sequence."""
        self._require_one("smooth")
        return smooth(self, x)

    def forecast(self, x: Any, steps: int = 1) -> Forecast:
        """Forecast of states and observations 1 … steps frames after a sequence, or after a belief state."""
        self._require_one("forecast")
        return forecast(self, x, steps)

    # ----------------------------------------------------------------- filter

    def initial_belief(self) -> Categorical:
        """Belief state before any frame: the initial distribution."""
        self._require_one("initial_belief")
        return _over_states(self._arcs[0].initial)

    def predict(self, belief: Categorical) -> Categorical:
        """Prediction step of the filter: the state one frame later, given that the sequence goes on."""
        return _over_states(belief_over(belief, self.states) @ self._arcs[0].transition)

    def update(self, belief: Categorical, y: Any) -> tuple[Categorical, float]:
        """Update step of the filter: the belief state given frame y, and log p(y | all before).

        An impossible frame leaves the belief unchanged.
        """
        logs = self.emission.log_prob(_one_frame(y, self.dim))[0]
        top = float(logs.max())
        if np.isneginf(top):
            return belief, top
        joint = belief.probs * np.exp(logs - top)
        total = float(joint.sum())
        if total < 1e-200:  # the states with high likelihood are impossible here
            return _updated_by_logs(belief, logs)
        return Categorical.trusted(probs=joint / total, levels=None), top + float(np.log(total))

    # --------------------------------------------------------------- learning

    of_sequences = True
    hides_labels = True  # so that `fit(hard=True)` can use the Viterbi path of each sequence
    takes_parts = True  # `collect` splits blocks itself, at the ends of sequences

    def collect(
        self, x: Any, weight: Any = None, labels: Index | None = None, log_mask: Any = None, hard: bool = False
    ) -> HMMStats:
        """E-step of Baum–Welch: expected counts of initial, transition and final states, and emission statistics.

        `log_mask` are known states: a Ragged (or list) of state numbers (T_i,), −1 where unknown, or of log-masks (T_i,
        K). `hard` uses the Viterbi path alone (Viterbi training). In a stack, `weight` (n, C) and `labels` (n,) refer
        to the chains.
        """
        seqs = Ragged.of(x)
        n = len(seqs)
        w = weights(weight, n, "HMM")
        if w is not None and w.ndim == 2 and (self.members is None or w.shape[1] != self.members):
            raise ShapeError(sentence("HMM", f"weight must have one entry per sequence ({n})", w.shape))
        known = None if log_mask is None else known_states(log_mask, seqs, self.states)
        if self.members is None:
            return self._collect(seqs, w, known, hard)
        if labels is not None:
            labels = checked_labels(labels, n, self.members, "HMM")
        out = []
        for c, one in enumerate(self._member_list):
            selected = slice(None) if labels is None else np.flatnonzero(labels == c)
            of = w if w is None or w.ndim == 1 else w[:, c]
            out.append(
                one.collect(
                    seqs[selected], None if of is None else of[selected], None, _subset(known, selected), hard
                ).as_stack()
            )
        return self.joined_stats(out)

    def _collect(self, seqs: Ragged, w: Array | None, known: Ragged | None, hard: bool) -> HMMStats:
        if len(seqs.values) > FRAMES * BLOCKS and len(seqs) > 1:
            blocks = Blocks.of(seqs, w, log_mask=known).whole()
            return Threads().total(lambda b: self._collect_part(b.x, b.weight, b.log_mask, hard), blocks)
        return self._collect_part(seqs, w, known, hard)

    def _collect_part(self, seqs: Ragged, w: Array | None, known: Ragged | None, hard: bool) -> HMMStats:
        w = np.ones(len(seqs)) if w is None else w
        if not (w > 0).all():
            kept = np.flatnonzero(w > 0)
            return _numbered(lambda: self._collect_part(seqs[kept], w[kept], _subset(known, kept), hard), kept)
        with np.errstate(all="ignore"):
            short = not long_sequences.is_long(int(seqs.lengths.max(initial=0)), self.states)
            stats = gaussian_e_step(self, seqs, w) if short and known is None and not hard else None
            if stats is not None:
                return stats
            edges = runs(seqs, self._frames)
            if len(edges) > 1:
                return reduce(add, (self._collect_run(seqs, w, known, hard, np.arange(a, b)) for a, b in edges))
            return self._collect_block(seqs, w, known, hard)

    def _collect_run(self, seqs: Ragged, w: Array, known: Ragged | None, hard: bool, at: Index) -> HMMStats:
        run = slice(int(at[0]), int(at[-1]) + 1)
        return _numbered(lambda: self._collect_block(seqs[run], w[run], _subset(known, run), hard), at)

    def _collect_block(self, seqs: Ragged, w: Array, known: Ragged | None, hard: bool) -> HMMStats:
        with np.errstate(all="ignore"):
            if len(seqs) == 1 and long_sequences.is_long(len(seqs.values), self.states):
                return long_sequences.collect(self, seqs.values, w, None if known is None else known.values, hard)
            return viterbi_e_step(self, seqs, w, known) if hard else e_step(self, seqs, w, known)

    def _best_scores(self, seqs: Ragged) -> Array:
        """Scores of frames where emissions that are mixtures count by their best component."""
        best = getattr(self.emission, "best_log_prob", None)
        return self.scores(seqs) if best is None else best(in_double(seqs.values))

    def best_log_prob(self, x: Any) -> Array:
        """Joint log-probability of the Viterbi path: (n,), or (n, C) for a stack."""
        seqs = Ragged.of(x)
        with np.errstate(all="ignore"):
            out = [one._viterbi_score(seqs) for one in self._member_list]
        return np.stack(out, axis=1) if self.members else out[0]

    def _viterbi_score(self, seqs: Ragged) -> Array:
        return best_paths(self.chains[0].best_logs, np.array(self._best_scores(seqs), order="C"), seqs.offsets).log_prob

    def stats_of(self, uses: Chain, counts: Array, emission: Any, entropy: float, seen: bool) -> HMMStats:
        """Sufficient statistics of one chain from its parts."""
        return HMMStats.trusted(
            initial=uses.initial, transition=uses.transition, final=uses.final, counts=counts, emission=emission,
            entropy=np.asarray(entropy), seen=seen,
        )  # fmt: skip

    def joined_stats(self, parts: list[HMMStats]) -> HMMStats:
        """Statistics of several groups of members as one stack."""
        names = ("initial", "transition", "final", "counts", "entropy")
        arrays = {name: np.concatenate([getattr(s, name) for s in parts]) for name in names}
        inner = joined(self.emission, [s.emission for s in parts])
        return HMMStats.trusted(**arrays, emission=inner, seen=all(s.seen for s in parts))

    def refit(self, stats: HMMStats, prior: Any = None) -> HMM:
        """M-step of Baum–Welch: relative frequencies (or posterior mode) of transitions, and the emissions' M-step.

        An impossible transition stays impossible; a state that was never left keeps its transition probabilities.
        """
        return m_step(self, stats, prior)

    def objective(self, stats: HMMStats, prior: Any = None) -> float:
        """Expected complete-data log-likelihood + entropy of the hidden states + log prior: the EM lower bound."""
        value = float(np.sum(stats.entropy)) + float(
            self.emission.objective(stats.emission, None if prior is None else prior.emission)
        )
        for c, chain in enumerate(self.chains):
            value += chain.expected_log(_uses_of(stats, c if self.members else None, chain.states))
        return value + (0.0 if prior is None else prior.log_density_of_transitions(self))

    @property
    def log_smoothing(self) -> float:
        """The smoothing term of the emissions."""
        return float(getattr(self.emission, "log_smoothing", 0.0))

    def weak_prior(self, stats: HMMStats) -> Any:
        """Weak prior: one pseudo-count per state and for the initial distribution, spread over possible transitions."""
        from likely.hmm.priors import HMMPrior

        return HMMPrior.weak(self, untied(self.emission).weak_prior(self.for_prior(stats)))

    def for_prior(self, stats: HMMStats) -> Any:
        """The emissions' statistics that scale a weak prior; those of an initialization are pooled first."""
        if stats.seen or self.states == 1 or hasattr(untied(self.emission), "for_prior"):
            return stats.emission
        tied = untied(self.emission) is not self.emission
        return softened(stats.emission, 1 if tied else self.members or 1, one_covariance(self.emission))


class BadFrame(BadEntry):
    """An entry that no model can use, named by sequence, frame and column."""

    def __init__(self, details: tuple[Any, ...], sequence: int, frame: int) -> None:
        whose, expected, value, _, column, remedy = details
        place = f"{value} at sequence {sequence}, frame {frame}, column {column}"
        DataError.__init__(self, sentence(whose, expected, place, remedy))
        self.details, self.row, self.frame = details, sequence, frame

    @classmethod
    def of(cls, error: BadEntry, offsets: Index) -> BadFrame:
        """The error for a row among the frames of all sequences."""
        sequence = int(np.searchsorted(offsets, error.row, side="right")) - 1
        return cls(error.details, sequence, error.row - int(offsets[sequence]))

    def __reduce__(self) -> tuple[Any, ...]:
        return BadFrame, (self.details, self.row, self.frame)

    def after(self, rows: int) -> BadFrame:
        """The same error, `rows` sequences later."""
        return BadFrame(self.details, rows + self.row, self.frame)

    def inside(self, part: str) -> BadFrame:
        """The same error, in a component of that name."""
        return BadFrame((f"{self.details[0]} ({part})", *self.details[1:]), self.row, self.frame)


def known_states(given: Any, seqs: Ragged, states: int) -> Ragged:
    """Validate known states of all frames: numbers (T,), −1 for unknown, or log-masks (T, K)."""
    known = Ragged.of(given)
    if (known.offsets.shape != seqs.offsets.shape) or (known.offsets != seqs.offsets).any():
        expected = "known states must have one entry per frame of each sequence"
        raise ShapeError(sentence("HMM", expected, f"{known!r} for {seqs!r}"))
    values: NDArray[Any] = known.values
    if values.ndim == 2 and values.shape[1] == states and values.dtype.kind == "f":
        if not ((values == 0) | np.isneginf(values)).all():
            raise DomainError(
                sentence("HMM", "a log-mask must be 0 where a state is possible, −inf where not", "others")
            )
        return known
    if values.size and (
        values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < -1 or values.max() >= states
    ):
        expected = f"known states must be 0 … {states - 1}, −1 where unknown, or log-masks of {states} columns"
        raise DomainError(sentence("HMM", expected, f"{values.dtype} {values.shape}"))
    return Ragged.trusted(values=values.astype(np.intp, copy=False).reshape(-1), offsets=seqs.offsets)


def masks(given: Any, seqs: Ragged, states: int) -> Ragged:
    """Known states as log-masks (T, K): 0 where a state is possible, −inf where not."""
    known = known_states(given, seqs, states)
    if known.values.ndim == 2:
        return known
    table = np.concatenate([np.where(np.eye(states, dtype=bool), 0.0, -np.inf), np.zeros((1, states))])
    return Ragged.trusted(values=table[known.values], offsets=seqs.offsets)


def _numbered(collect: Callable[[], HMMStats], at: Index) -> HMMStats:
    """Statistics of the sequences `at`, with their numbers in error messages."""
    try:
        return collect()
    except BadFrame as error:
        raise BadFrame(error.details, int(at[error.row]), error.frame) from None


def _subset(known: Ragged | None, which: Any) -> Any:
    return None if known is None else known[which]


def _uses_of(stats: HMMStats, c: int | None, states: int) -> Chain:
    pick: Callable[[Array], Array] = (lambda a: a) if c is None else (lambda a: a[c])
    return Chain.trusted(
        initial=pick(stats.initial), transition=pick(stats.transition), final=pick(stats.final), states=states
    )


def _over_states(probs: Array) -> Categorical:
    total = probs.sum()  # 0 where a chain must have exited: no state is possible, and any frame has log p −inf
    return Categorical.trusted(probs=probs / total if total > 0 else np.zeros(len(probs)), levels=None)


def _updated_by_logs(belief: Categorical, logs: Array) -> tuple[Categorical, float]:
    joint = np.log(belief.probs, where=belief.probs > 0, out=np.full(len(logs), -np.inf)) + logs
    top = float(joint.max())
    if np.isneginf(top):
        return belief, top
    probs = np.exp(joint - top)
    return Categorical.trusted(probs=probs / probs.sum(), levels=None), top + float(np.log(probs.sum()))


def _one_frame(y: Any, dim: int) -> Any:
    """One frame as one row."""
    if isinstance(y, dict):
        return {name: np.asarray(unmasked(part))[None] for name, part in y.items()}
    a = np.asarray(unmasked(y))
    row = a[None] if a.ndim == 0 or (a.ndim == 1 and dim > 1) else a
    if len(row) != 1 or row.ndim > 2:
        raise ShapeError(sentence("HMM", f"one frame of {dim} columns is needed", a.shape, "pass frames one by one"))
    return row


def _lengths(length: Any) -> Any:
    """Validate lengths of sequences to be sampled: whole numbers, not negative."""
    a = np.asarray(length)
    if a.dtype.kind not in "iu" or a.ndim > 1 or (a < 0).any():
        raise DomainError(
            sentence("HMM.sample", "length must be a whole number of frames, or one per sequence", repr(length))
        )
    return a


@embedded.register
def _(distribution: HMM, x: Any, weight: Array) -> Array:
    """Embed a sequence by the embeddings of its frames under the emissions."""
    return by_thirds(embedded(untied(distribution.emission), x.values, x.weights(weight)), x, weight)
