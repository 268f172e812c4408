"""Sequences as a driven chain looks at them: several short ones at once, a long one piece by piece.

Moves of every frame are a table (T, K, K). They are formed where they are used, so that memory is that of one piece.
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
from likely.hmm.driven.driven_forward_backward import Begun, Smoothed, Way, sound
from likely.hmm.driven.logistic_transitions import Moves
from likely.hmm.hmm import BadFrame, _in_double, masks

LONG = 2  # pieces' worth of frames from which a sequence is cut


class Part(NamedTuple):
    """Some sequences, or a piece of one: frames, features (T, q), moves (T, K, K) and scores (T, K)."""

    seqs: Ragged
    z: Array
    transition: Moves
    logs: Array
    begins: bool = True  # false where a sequence is gone on with


class Look(NamedTuple):
    """Which sequences are looked at, and how."""

    model: Any
    driven: Driven
    known: Ragged | None = None  # states (T,), −1 where unknown, or log-masks over them (T, K)
    best: bool = False  # emissions that are mixtures count by their best part

    @property
    def offsets(self) -> Index:
        """Where each sequence begins."""
        return self.driven.frames.offsets

    def stretches(self) -> list[tuple[int, int]]:
        """Runs of sequences that are looked at together; one that is to be cut stands alone."""
        long = np.flatnonzero(self.driven.frames.lengths > LONG * self.model._frames)
        out = []
        for a, b in runs(self.driven.frames, self.model._frames):
            mine = long[(long >= a) & (long < b)]
            out += list(pairwise(sorted({a, b, *mine.tolist(), *(mine + 1).tolist()})))
        return out

    def is_cut(self, a: int, b: int) -> bool:
        """True if a stretch is one long sequence."""
        return b - a == 1 and self.driven.frames.lengths[a] > LONG * self.model._frames

    def pieces(self, i: int) -> list[tuple[int, int]]:
        """Where the pieces of a long sequence begin and end, counted from its first frame."""
        T, size = int(self.driven.frames.lengths[i]), self.model._frames
        return list(pairwise([*range(0, T, size), T]))

    def whole(self, a: int, b: int, free: Mask | None = None) -> Part:
        """Sequences a … b − 1; those that are `free` (b − a,) as if nothing had been seen of them."""
        seqs, at = self.driven.frames[a:b], slice(self.offsets[a], self.offsets[b])
        z = self.model._features(self.driven.covariates[at], seqs.offsets, a)
        logs = self._scores(seqs.values, seqs.offsets, a, 0)
        if free is not None:
            logs[np.repeat(free, seqs.lengths)] = 0.0
        return Part(seqs, z, self._moves(z), self._masked(logs, at))

    def piece(self, i: int, a: int, z: int, free: bool = False) -> Part:
        """Frames a … z − 1 of sequence i."""
        first = int(self.offsets[i])
        at, offsets = slice(first + a, first + z), np.array([0, z - a])
        frames = self.driven.frames.values[at]
        feats = self.model._features(self.driven.covariates[at], offsets, i, a)
        logs = self._scores(frames, offsets, i, a)
        if free:
            logs[:] = 0.0
        return Part(
            Ragged.trusted(values=frames, offsets=offsets), feats, self._moves(feats), self._masked(logs, at), a == 0
        )

    def _moves(self, z: Array) -> Moves:
        return Moves.of(self.model.coefficients, self.model._possible, z)

    def _scores(self, frames: Any, offsets: Index, before: int, frame: int) -> Array:
        distribution = self.model.emission
        score = getattr(distribution, "best_log_prob", distribution.log_prob) if self.best else distribution.log_prob
        try:
            return np.array(score(_in_double(frames)), dtype=np.float64, order="C")
        except BadEntry as error:
            found = BadFrame.of(error, offsets)
            raise BadFrame(found.told, before + found.row, frame + found.frame) from None

    def _masked(self, logs: Array, at: slice) -> Array:
        if self.known is not None:
            given = Ragged.of(self.known.values[at])
            logs += masks(given, given, self.model.states).values
        return logs

    # ------------------------------------------------------- one long sequence

    def forwards(self, i: int, way: Way, free: bool = False) -> Iterator[tuple[Part, Any]]:
        """The pieces of a long sequence with their forward passes, the first one first."""
        begun = None
        for a, z in self.pieces(i):
            part = self.piece(i, a, z, free)
            passed = self._passed(part, way, begun)
            yield part, passed
            begun = passed.end

    def backwards(self, i: int, way: Way, free: bool = False) -> Iterator[tuple[Part, Any]]:
        """The same, the last one first: each piece is filtered once more from where it was entered."""
        begun: list[Begun | None] = [None]
        for _, passed in self.forwards(i, way, free):
            begun.append(passed.end)
        for k, (a, z) in reversed(list(enumerate(self.pieces(i)))):
            part = self.piece(i, a, z, free)
            yield part, self._passed(part, way, begun[k])

    def _passed(self, part: Part, way: Way, begun: Begun | None) -> Any:
        return sound(way(self.model.initial, part.transition, part.logs, part.seqs.offsets, begun))

    def smoothed(self, i: int, way: Way, free: bool = False) -> Iterator[tuple[Part, Smoothed]]:
        """What is known of a long sequence, a piece at a time, the last first; log p(x) is the sum of theirs."""
        after = None
        for part, passed in self.backwards(i, way, free):
            found, after = passed.back(after)
            sound(passed)
            yield part, found
