"""The sequences of one call in blocks: several short ones at once, a long one piece by piece.

Scores (T, K) and time-varying transition matrices (T, K, K) are computed where they are used, so that memory is that of
one block. The forward pass over a long sequence stores only the filtered probabilities at the end of each piece; the
backward pass filters each piece again from there and takes β from the piece after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, BadEntry, Index, Mask
from likely.core.blocks import runs
from likely.core.covariates import apart
from likely.core.engine import cores, one_blas_thread, ordered_map
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.hmm.forward_backward import Pass, Posterior, Start, Underflow, apply_known_states, frames_of
from likely.hmm.logistic_transition import LogisticTransition
from likely.hmm.markov_chain import SUM_TO_ONE, Arcs

FRAMES = 4096  # of a block: its scores and posteriors stay in cache
SCORES = 2**20  # of a block, frames × states
MATRICES = 2**18  # entries in the time-varying transition matrices of a block: they stay in cache
LONG = 2**18  # frames from which a sequence is processed piece by piece, and four times SCORES of them
PIECE = 2**13  # frames of a piece


class Part(NamedTuple):
    """Some sequences, or a piece of one, with what the recursions need of them."""

    seqs: Ragged
    logs: Array  # (T, K): scores log b
    arcs: Arcs
    z: Array | None  # (T, p + 1): features of covariates
    known: Any  # states (T,) or log-masks (T, K), or None
    begins: bool = True  # false for a later piece of a sequence
    ends: bool = True  # false for an earlier one


class SequenceBlocks(NamedTuple):
    """The sequences of one call under a model: frames, and what their transitions and states are known to depend on."""

    model: Any
    frames: Ragged
    covariates: Array | None = None  # (T, p), for transitions that depend on them
    matrices: Array | None = None  # (T, K, K): given transition matrices into each frame
    known: Ragged | None = None  # states (T,), −1 where unknown, or log-masks over them (T, K)
    best: bool = False  # for Viterbi paths: the best route through null states,
    hard: bool = False  # and in Viterbi training the best component of emissions that are mixtures

    @classmethod
    def of(cls, model: Any, x: Any, covariates: Any = None, transition: Any = None, **options: Any) -> SequenceBlocks:
        """Sequences x with covariates, or with transition matrices (T_i, K, K), where the model needs or takes them."""
        logistic = isinstance(model.transition, LogisticTransition)
        if transition is not None:
            seqs = Ragged.of(x)
            return cls(model, seqs, None, _matrices(model, transition, seqs, is_single_sequence(x)), **options)
        if logistic:
            driven = apart(x, covariates)
            return cls(model, driven.frames, driven.covariates, **options)
        if covariates is not None:
            remedy = "give it transition=LogisticTransition(coefficients)"
            raise DomainError(sentence("HMM", "constant transitions take no covariates", "covariates", remedy))
        return cls(model, Ragged.of(x), **options)

    def take(self, which: Any) -> SequenceBlocks:
        """Some of the sequences: a slice without step, or numbers."""
        at: Any
        if isinstance(which, slice):
            at = slice(int(self.offsets[which.start]), int(self.offsets[which.stop]))
        else:
            at = frames_of(which, self.offsets)[0]
        covariates, matrices = (None if a is None else a[at] for a in (self.covariates, self.matrices))
        known = None if self.known is None else self.known[which]
        return self._replace(frames=self.frames[which], covariates=covariates, matrices=matrices, known=known)

    @property
    def offsets(self) -> Index:
        """Offset of each sequence."""
        return self.frames.offsets

    @property
    def is_varying(self) -> bool:
        """True if transitions vary with time."""
        return self.covariates is not None or self.matrices is not None

    @property
    def rows(self) -> int:
        """Frames of a block."""
        if self.is_varying:
            return min(FRAMES, max(64, MATRICES // self.model.states**2))
        return max(64, min(FRAMES, SCORES // int(self.model.emission.members)))

    def is_long(self, i: int) -> bool:
        """True if a sequence is processed piece by piece."""
        T = int(self.frames.lengths[i])
        if self.is_varying:
            return T > 2 * self.rows
        return T > LONG or T * self.model.states > 4 * SCORES

    def is_cut(self, a: int, b: int) -> bool:
        """True if a block a … b − 1 is one long sequence."""
        return b - a == 1 and self.is_long(a)

    def blocks(self) -> list[tuple[int, int]]:
        """Runs of sequences that are processed together; one that is cut into pieces is alone."""
        n, few = len(self.frames), min(self.rows, LONG)  # frames among which no sequence is long
        if self.offsets[n] <= few:
            return [(0, n)] if n else []
        out = []
        for a, b in runs(self.frames, self.rows):
            long = [i for i in range(a, b) if self.is_long(i)] if self.offsets[b] - self.offsets[a] > few else []
            out += list(pairwise(sorted({a, b, *long, *(i + 1 for i in long)})))
        return out

    def fill(self, fill: Callable[[int, int], None]) -> None:
        """fill(a, b) for all blocks of sequences, on all cores."""

        def one(edges: tuple[int, int]) -> None:
            with np.errstate(all="ignore"):
                fill(*edges)

        blocks = self.blocks()
        if len(blocks) == 1 and self.offsets[-1] <= FRAMES:  # a call for one short sequence costs little
            return one(blocks[0])
        with one_blas_thread():
            for _ in ordered_map(one, blocks, cores()):
                pass

    # ---------------------------------------------------------- blocks and pieces

    def block(self, a: int, b: int, unobserved: Mask | None = None) -> Part:
        """Sequences a … b − 1; all frames of those marked in `unobserved` (b − a,) are treated as missing."""
        seqs, at = self.frames[a:b], slice(int(self.offsets[a]), int(self.offsets[b]))
        arcs, z = self._arcs(at, seqs.offsets, a, 0)
        logs = self._scores(seqs, a, 0)
        if unobserved is not None:
            logs[np.repeat(unobserved, seqs.lengths)] = 0.0
        known = None if self.known is None else self.known.values[at]
        return Part(seqs, apply_known_states(logs, known), arcs, z, known)

    def pieces(self, i: int) -> list[tuple[int, int]]:
        """Begin and end of the pieces of a long sequence, counted from its first frame."""
        T = int(self.frames.lengths[i])
        size = self.rows if self.is_varying else max(1, min(PIECE, SCORES // self.model.states))
        return list(pairwise([*range(0, T, size), T]))

    def piece(self, i: int, a: int, z: int, unobserved: bool = False) -> Part:
        """Frames a … z − 1 of sequence i; the final probabilities are those of its last piece."""
        first, T = int(self.offsets[i]), int(self.frames.lengths[i])
        at = slice(first + a, first + z)
        seqs = Ragged.trusted(values=self.frames.values[at], offsets=np.array([0, z - a]))
        arcs, features = self._arcs(at, seqs.offsets, i, a)
        arcs = arcs if z == T else arcs._replace(final=np.ones(len(arcs.final)))
        logs = np.zeros((z - a, self.model.states)) if unobserved else self._scores(seqs, i, a)
        known = None if self.known is None else self.known.values[at]
        return Part(seqs, apply_known_states(logs, known), arcs, features, known, a == 0, z == T)

    def _arcs(self, at: slice, offsets: Index, before: int, frame: int) -> tuple[Arcs, Array | None]:
        model = self.model
        if self.matrices is not None:
            probs = self.matrices[at]
            with np.errstate(divide="ignore"):
                return Arcs.varying(model.initial, probs, np.log(probs), np.any(probs > 0, axis=0)), None
        if self.covariates is not None:
            z = model.transition.features(self.covariates[at], offsets, before, frame)
            return model.transition.arcs(model.initial, z), z
        chain = model.chains[0]
        return chain.best if self.best else chain.summed, None

    def _scores(self, seqs: Ragged, before: int, frame: int) -> Array:
        try:
            return np.array(self.model._best_scores(seqs), order="C") if self.hard else self.model.scores(seqs)
        except BadEntry as error:
            raise _located(error, before, frame) from None

    # ------------------------------------------------------- one long sequence

    def forwards(self, i: int, method: Pass, unobserved: bool = False) -> Iterator[tuple[Part, Any]]:
        """The pieces of a long sequence with their forward passes, first to last."""
        start = None
        for a, z in self.pieces(i):
            part = self.piece(i, a, z, unobserved)
            forward = in_range(method(part.arcs, part.logs, part.seqs.offsets, start))
            yield part, forward
            start = forward.end

    def backwards(self, i: int, method: Pass, unobserved: bool = False) -> Iterator[tuple[Part, Any]]:
        """The pieces with their forward passes, last to first: each piece is filtered again from its start."""
        starts: list[Start | None] = [None]
        for _, forward in self.forwards(i, method, unobserved):
            starts.append(forward.end)
        for (a, z), start in reversed(list(zip(self.pieces(i), starts[:-1], strict=True))):
            part = self.piece(i, a, z, unobserved)
            yield part, in_range(method(part.arcs, part.logs, part.seqs.offsets, start))

    def smoothed(self, i: int, method: Pass, unobserved: bool = False) -> Iterator[tuple[Part, Posterior]]:
        """The posterior of a long sequence piece by piece, last to first; log p(x) is the sum of theirs."""
        beta_last = None
        for part, forward in self.backwards(i, method, unobserved):
            found, beta_last = forward.back(None, beta_last)
            in_range(forward)
            yield part, found


def in_range(forward: Any) -> Any:
    """The same pass; raises `Underflow`, which `scaled_or_log` handles, if it is out of range."""
    if not forward.in_range.all():
        raise Underflow
    return forward


def _matrices(model: Any, given: Any, seqs: Ragged, one: bool) -> Array:
    """Transition matrices into all frames (T, K, K), of one sequence or of several; first ones have no effect."""
    K, expected = model.states, "transition must have one matrix (K, K) per frame of each sequence"
    if model.members is not None or model.final is not None or len(model.initial) > K:
        refused = "time-varying transitions need a single chain without null states and final probabilities"
        raise DomainError(sentence("HMM", refused, "another"))
    parts = [given] if one else given if not isinstance(given, Ragged) else list(given)
    arrays = [np.asarray(part, dtype=np.float64) for part in parts]
    shapes = [a.shape for a in arrays]
    if shapes != [(T, K, K) for T in seqs.lengths.tolist()]:
        raise ShapeError(sentence("HMM", f"{expected}: (T, {K}, {K})", shapes[:3]))
    out = np.concatenate([np.empty((0, K, K)), *arrays])
    out[seqs.offsets[:-1][seqs.lengths > 0]] = 1.0 / K
    wrong = (out < 0).any(axis=(1, 2)) | ~(np.abs(out.sum(axis=2) - 1.0) <= SUM_TO_ONE).all(axis=1)
    if wrong.any():
        t = int(wrong.argmax())
        i = int(np.searchsorted(seqs.offsets, t, side="right")) - 1
        place = f"{out[t].tolist()} at sequence {i}, frame {t - int(seqs.offsets[i])}"
        raise DomainError(sentence("HMM", "rows of transition must not be negative and must sum to 1", place))
    return out


def _located(error: Any, sequence: int, frame: int) -> Any:
    """The same bad entry, counted from the first sequence, or from the first frame of one."""
    return type(error)(error.details, sequence + error.row, frame + error.frame)
