"""Viterbi algorithm and list Viterbi: the most probable state paths.

The recursions are in `_loops/log_recursions.py`: `viterbi`, `backtrack`, `k_best`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.hmm.markov_chain import Arcs
from likely.hmm.sequence_blocks import Part, SequenceBlocks


class Path(NamedTuple):
    """A path of states and its joint log-probability with the observations; for many sequences a Ragged and (n,)."""

    states: Any  # (T,), or a Ragged of them
    log_prob: Any  # a number, or (n,)


def viterbi(data: SequenceBlocks) -> Path:
    """Viterbi path of each sequence, concatenated (T,), and log-probabilities (n,); −1 where no path is possible.

    References: Rabiner 1989, Herbst 9.6, Ney 7.2.2.
    """
    states, score = np.empty(len(data.frames.values), dtype=np.intp), np.empty(len(data.frames))

    def fill(a: int, b: int) -> None:
        begin, end = int(data.offsets[a]), int(data.offsets[b])
        if data.is_cut(a, b):
            pieces, score[a] = viterbi_in_pieces(data, a)
            for _, path, _ in pieces:
                states[end - len(path) : end] = path
                end -= len(path)
        else:
            part = data.block(a, b)
            states[begin:end], score[a:b] = viterbi_of_scores(part.arcs, part.logs, part.seqs.offsets)

    data.fill(fill)
    if np.isneginf(score).any():
        states[np.repeat(np.isneginf(score), data.frames.lengths)] = -1
    return Path(states, score)


def viterbi_of_scores(arcs: Arcs, logs: Array, offsets: Index) -> Path:
    """Viterbi algorithm on the scores log b (T, K) of all frames, which are overwritten."""
    from likely.hmm._loops import log_recursions as loops

    offsets, log_arcs = np.array(offsets), arcs.logs
    n = len(offsets) - 1
    path, last, score = np.empty(len(logs), dtype=np.intp), np.empty(n, dtype=np.intp), np.empty(n)
    loops.viterbi(log_arcs.initial, log_arcs.matrices, log_arcs.final, logs, offsets, last, score)
    loops.backtrack(_transposed(log_arcs), logs, offsets, last, path)
    score[np.diff(offsets) == 0] = log_arcs.empty
    return Path(path, score)


def viterbi_in_pieces(
    data: SequenceBlocks, i: int, unobserved: bool = False
) -> tuple[Iterator[tuple[Part, Index, int]], float]:
    """Viterbi path of one long sequence, piece by piece, last to first, and its log-probability.

    A piece comes with its states and the state before its first frame, −1 where the sequence begins. δ is stored at the
    borders of pieces, and backtracking computes each piece again, so memory is that of one piece.
    """
    from likely.hmm._loops import log_recursions as loops

    starts: list[tuple[int, int, Array | None]] = []
    delta, last, score = None, np.empty(1, np.intp), np.empty(1)

    def recur(a: int, z: int, delta: Array | None) -> tuple[Part, Arcs]:
        part = data.piece(i, a, z, unobserved)
        arcs = part.arcs.logs
        initial = arcs.initial if delta is None else (delta[:, None] + arcs.matrices[0]).max(axis=0)
        loops.viterbi(initial, arcs.matrices, arcs.final, part.logs, np.array([0, z - a]), last, score)
        return part, arcs

    def backtracked(state: Index) -> Iterator[tuple[Part, Index, int]]:
        for a, z, delta in reversed(starts):
            part, arcs = recur(a, z, delta)
            path = np.empty(z - a, dtype=np.intp)
            loops.backtrack(_transposed(arcs), part.logs, np.array([0, z - a]), state, path)
            state[0] = -1 if delta is None else int((delta + arcs.matrices[0][:, path[0]]).argmax())
            yield part, path, int(state[0])

    for a, z in data.pieces(i):
        starts.append((a, z, delta))
        delta = recur(a, z, delta)[0].logs[-1].copy()
    return backtracked(last.copy()), float(score[0])


def k_best(data: SequenceBlocks, k: int) -> list[Path]:
    """The k most probable paths of one sequence, best first; fewer where fewer are possible."""
    from likely.hmm._loops import log_recursions as loops

    score, path = np.empty(k), np.empty((k, len(data.frames.values)), dtype=np.intp)
    with np.errstate(all="ignore"):
        part = data.block(0, 1)
        arcs = part.arcs.logs
        loops.k_best(arcs.initial, arcs.matrices, arcs.final, part.logs, k, score, path)
    return [Path(p, float(s)) for p, s in zip(path, score, strict=True) if np.isfinite(s)]


def _transposed(arcs: Arcs) -> Array:
    return np.ascontiguousarray(arcs.matrices.transpose(0, 2, 1))
