"""Viterbi algorithm and list Viterbi: the most probable state paths.

The recursions are in `_loops/log_recursions.py`: `viterbi`, `backtrack`, `k_best`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index
from likely.hmm.markov_chain import Arcs
from likely.hmm.sequence_blocks import SequenceBlocks


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
        at = slice(int(data.offsets[a]), int(data.offsets[b]))
        if data.is_cut(a, b):
            states[at], score[a] = viterbi_in_pieces(data, a)
        else:
            part = data.block(a, b)
            states[at], score[a:b] = viterbi_of_scores(part.arcs, part.logs, part.seqs.offsets)

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


def viterbi_in_pieces(data: SequenceBlocks, i: int, unobserved: bool = False) -> Path:
    """Viterbi path of one long sequence: δ is stored at the borders of pieces, and backtracking computes each again."""
    from likely.hmm._loops import log_recursions as loops

    path, starts, delta, last = np.empty(int(data.frames.lengths[i]), dtype=np.intp), [], None, np.empty(1, np.intp)
    score = np.empty(1)

    def recur(a: int, z: int, delta: Array | None) -> tuple[Arcs, Array]:
        part = data.piece(i, a, z, unobserved)
        arcs = part.arcs.logs
        initial = arcs.initial if delta is None else (delta[:, None] + arcs.matrices[0]).max(axis=0)
        loops.viterbi(initial, arcs.matrices, arcs.final, part.logs, np.array([0, z - a]), last, score)
        return arcs, part.logs

    for a, z in data.pieces(i):
        starts.append((a, z, delta))
        delta = recur(a, z, delta)[1][-1].copy()
    final, total = last.copy(), float(score[0])
    for a, z, delta in reversed(starts):
        arcs, deltas = recur(a, z, delta)
        loops.backtrack(_transposed(arcs), deltas, np.array([0, z - a]), final, path[a:z])
        if delta is not None:
            final[0] = int((delta + arcs.matrices[0][:, path[a]]).argmax())
    return Path(path, total)


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
