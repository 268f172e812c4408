"""Blocks of sequences for an HMM with covariates: several short ones at once, a long one piece by piece.

The transition matrices (T, K, K) of all frames are computed where they are used, so that memory is that of one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, BadEntry, Index, Mask
from likely.core.blocks import runs
from likely.core.covariates import Driven
from likely.core.ragged import Ragged
from likely.hmm.baum_welch import in_double
from likely.hmm.driven.driven_forward_backward import Pass, PieceStart, Smoothed, check_range
from likely.hmm.driven.logistic_transitions import Transitions
from likely.hmm.hmm import BadFrame, masks

LONG = 2  # pieces of frames from which a sequence is cut


class Part(NamedTuple):
    """Some sequences, or a piece of one: frames, features (T, q), transitions (T, K, K) and scores (T, K)."""

    seqs: Ragged
    z: Array
    transition: Transitions
    logs: Array
    begins: bool = True  # false for a later piece of a sequence


class DrivenData(NamedTuple):
    """The sequences and settings of one pass over the data."""

    model: Any
    driven: Driven
    known: Ragged | None = None  # states (T,), −1 where unknown, or log-masks over them (T, K)
    best: bool = False  # emissions that are mixtures count by their best component

    @property
    def offsets(self) -> Index:
        """Offset of each sequence."""
        return self.driven.frames.offsets

    def blocks(self) -> list[tuple[int, int]]:
        """Runs of sequences that are processed together; one that is cut into pieces is alone."""
        long = np.flatnonzero(self.driven.frames.lengths > LONG * self.model._frames)
        out = []
        for a, b in runs(self.driven.frames, self.model._frames):
            inside = long[(long >= a) & (long < b)]
            out += list(pairwise(sorted({a, b, *inside.tolist(), *(inside + 1).tolist()})))
        return out

    def is_cut(self, a: int, b: int) -> bool:
        """True if a block is one long sequence."""
        return b - a == 1 and self.driven.frames.lengths[a] > LONG * self.model._frames

    def pieces(self, i: int) -> list[tuple[int, int]]:
        """Begin and end of the pieces of a long sequence, counted from its first frame."""
        T, size = int(self.driven.frames.lengths[i]), self.model._frames
        return list(pairwise([*range(0, T, size), T]))

    def block(self, a: int, b: int, unobserved: Mask | None = None) -> Part:
        """Sequences a … b − 1; all frames of those marked in `unobserved` (b − a,) are treated as missing."""
        seqs, at = self.driven.frames[a:b], slice(self.offsets[a], self.offsets[b])
        z = self.model._features(self.driven.covariates[at], seqs.offsets, a)
        logs = self._scores(seqs.values, seqs.offsets, a, 0)
        if unobserved is not None:
            logs[np.repeat(unobserved, seqs.lengths)] = 0.0
        return Part(seqs, z, self._transitions(z), self._masked(logs, at))

    def piece(self, i: int, a: int, z: int, unobserved: bool = False) -> Part:
        """Frames a … z − 1 of sequence i."""
        first = int(self.offsets[i])
        at, offsets = slice(first + a, first + z), np.array([0, z - a])
        frames = self.driven.frames.values[at]
        feats = self.model._features(self.driven.covariates[at], offsets, i, a)
        logs = self._scores(frames, offsets, i, a)
        if unobserved:
            logs[:] = 0.0
        return Part(
            Ragged.trusted(values=frames, offsets=offsets),
            feats,
            self._transitions(feats),
            self._masked(logs, at),
            a == 0,
        )

    def _transitions(self, z: Array) -> Transitions:
        return Transitions.of(self.model.coefficients, self.model._possible, z)

    def _scores(self, frames: Any, offsets: Index, before: int, frame: int) -> Array:
        distribution = self.model.emission
        score = getattr(distribution, "best_log_prob", distribution.log_prob) if self.best else distribution.log_prob
        try:
            return np.array(score(in_double(frames)), dtype=np.float64, order="C")
        except BadEntry as error:
            result = BadFrame.of(error, offsets)
            raise BadFrame(result.details, before + result.row, frame + result.frame) from None

    def _masked(self, logs: Array, at: slice) -> Array:
        if self.known is not None:
            given = Ragged.of(self.known.values[at])
            logs += masks(given, given, self.model.states).values
        return logs

    # ------------------------------------------------------- one long sequence

    def forwards(self, i: int, method: Pass, unobserved: bool = False) -> Iterator[tuple[Part, Any]]:
        """The pieces of a long sequence with their forward passes, first to last."""
        start = None
        for a, z in self.pieces(i):
            part = self.piece(i, a, z, unobserved)
            forward = self._forward(part, method, start)
            yield part, forward
            start = forward.end

    def backwards(self, i: int, method: Pass, unobserved: bool = False) -> Iterator[tuple[Part, Any]]:
        """The pieces with their forward passes, last to first: each piece is filtered again from its start."""
        start: list[PieceStart | None] = [None]
        for _, forward in self.forwards(i, method, unobserved):
            start.append(forward.end)
        for k, (a, z) in reversed(list(enumerate(self.pieces(i)))):
            part = self.piece(i, a, z, unobserved)
            yield part, self._forward(part, method, start[k])

    def _forward(self, part: Part, method: Pass, start: PieceStart | None) -> Any:
        return check_range(method(self.model.initial, part.transition, part.logs, part.seqs.offsets, start))

    def smoothed(self, i: int, method: Pass, unobserved: bool = False) -> Iterator[tuple[Part, Smoothed]]:
        """Smoothed probabilities of a long sequence piece by piece, last to first; log p(x) is the sum of theirs."""
        beta_last = None
        for part, forward in self.backwards(i, method, unobserved):
            result, beta_last = forward.back(beta_last)
            check_range(forward)
            yield part, result
