"""Forward–backward and Viterbi algorithms for one sequence too long to store all its scores: piece by piece.

The forward pass stores only the filtered probabilities at the end of each piece. The backward pass filters each piece
again from there and takes β from the piece after it. Memory is one piece, whatever the length: in scaled probabilities,
in logarithms where those underflow, and for the Viterbi path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, BadEntry, Index
from likely.core.ragged import Ragged
from likely.hmm import forward_backward
from likely.hmm.markov_chain import Arcs

LONG = 2**16  # frames from which a sequence is processed piece by piece
PIECE = 2**13
SCORES = 2**20  # of a piece, frames × states; a sequence of four times as many is long, too


def is_long(frames: int, states: int) -> bool:
    """True if a sequence is processed piece by piece."""
    return frames > LONG or frames * states > 4 * SCORES


class Frames:
    """A sequence and the known states in it: scores of one piece at a time.

    `blind`: all frames are treated as missing. `best`: emissions that are mixtures count by their best component.
    """

    def __init__(self, model: Any, values: Any, known: Any = None, blind: bool = False, best: bool = False) -> None:
        self.model, self.values, self.known, self.blind, self.best = model, values, known, blind, best
        self.size = max(1, min(PIECE, SCORES // model.states))
        self.begins = range(0, len(values), self.size)

    def rows(self, a: int) -> Any:
        """Frames of the piece that begins at a, in double precision."""
        rows = self.values[a : a + self.size]
        return rows.astype(np.float64) if getattr(rows, "dtype", None) == np.float32 else rows

    def scores(self, a: int, more: int = 0) -> Array:
        """Scores log b (T, K) of a piece, and of `more` frames after it, as a new array."""
        z = a + self.size + more
        known = None if self.known is None else self.known[a:z]
        return forward_backward.apply_known_states(self._raw_scores(Ragged.of(self.values[a:z]), a), known)

    def _raw_scores(self, piece: Ragged, a: int) -> Array:
        if self.blind:
            return np.zeros((len(piece.values), self.model.states))
        try:
            return np.array(self.model._best_scores(piece) if self.best else self.model.scores(piece), order="C")
        except BadEntry as error:
            raise _shifted_error(error, a) from None

    @property
    def explained(self) -> bool:
        """False where some frame is impossible in every state."""
        return all(np.isfinite(self.scores(a).max(axis=1)).all() for a in self.begins)


def _shifted_error(error: Any, frames: int) -> Any:
    """The same bad entry, `frames` frames later in its sequence."""
    if hasattr(error, "frame"):
        return type(error)(error.details, error.row, error.frame + frames)
    return error.after(frames)


# ------------------------------------------------------------- probabilities


class Filtered(NamedTuple):
    """A piece after the forward pass."""

    logs: Array  # (T, K): scores log b
    b: Array  # (T, K): their exponentials, the largest of each frame 1
    alpha: Array  # (T, K)
    scale: Array  # (T,)
    log_prob: float  # of its frames, given all before
    underflow: Array  # (1,)


class _Entry(NamedTuple):
    """The state at the start of a piece."""

    begin: int
    initial: Array  # (K,): p(first state | all frames before)
    underflow: Array  # (1,)


class Piece(NamedTuple):
    """Smoothed probabilities and expected transitions of a piece."""

    begin: int
    logs: Array  # (T, K)
    states: Array  # (T, K): p(s_t | x)
    transition: Array  # (K, K): expected, between its frames, and from its last one to the piece after it


Take = Callable[[Piece], None]


def _filtered(arcs: Arcs, initial: Array, logs: Array, underflow: Array) -> Filtered | None:
    """Forward pass over a piece with these predicted probabilities of its first state; None on underflow."""
    from likely.hmm._loops import scaled_recursions as loops

    T, K = logs.shape
    log_max, b, alpha, scale = np.empty((T, 1)), logs.copy(), np.empty((T, K)), np.empty(T)
    termination, in_range, underflow = np.empty(1), np.empty(1, dtype=np.bool_), underflow.copy()
    loops.shift(b, log_max, K)
    np.exp(b, out=b)
    loops.forward(
        initial, arcs.transition, np.ones(K), arcs.entry, b, np.array([0, T]), alpha, scale, termination, in_range,
        underflow,
    )  # fmt: skip
    if not in_range[0]:
        return None
    return Filtered(logs, b, alpha, scale, float(np.log(scale).sum() + log_max.sum()), underflow)


def _forward_pass(frames: Frames, arcs: Arcs) -> tuple[list[_Entry], float] | None:
    """The start of each piece, and log p(x); None where logarithms are needed."""
    entries, total, initial, underflow = [], 0.0, arcs.initial, np.zeros(1)
    for a in frames.begins:
        entries.append(_Entry(a, initial, underflow))
        piece = _filtered(arcs, initial, frames.scores(a), underflow)
        if piece is None:
            return None
        total, initial, underflow = total + piece.log_prob, piece.alpha[-1] @ arcs.transition, piece.underflow
    assert piece is not None  # there is at least one piece
    termination = float(piece.alpha[-1] @ arcs.final)
    enough = (
        termination > 1e-200 and not termination * 1e-18 < underflow[0]
    )  # else the underflow might have been the larger part
    return (entries, total + float(np.log(termination))) if enough else None


def _scaled_pass(frames: Frames, take: Take) -> float | None:
    """log p(x), with all pieces passed to `take` from the last to the first; None where logarithms are needed."""
    arcs = frames.model.chains[0].summed
    found = _forward_pass(frames, arcs)
    if found is None:
        return None
    transposed, beta_last, next_b_beta = np.ascontiguousarray(arcs.transition.T), None, None
    for begin, initial, underflow in reversed(found[0]):
        piece = _filtered(arcs, initial, frames.scores(begin), underflow)
        if piece is None:
            return None
        beta_last = arcs.final / float(piece.alpha[-1] @ arcs.final) if beta_last is None else beta_last
        smoothed = _smoothed(piece, transposed, beta_last)
        if smoothed is None:
            return None
        gamma, b_beta = smoothed
        transition = forward_backward.expected_transitions(arcs.transition, piece.alpha, b_beta)
        if next_b_beta is not None:
            transition += arcs.transition * np.outer(piece.alpha[-1], next_b_beta)
        next_b_beta, beta_last = b_beta[0].copy(), arcs.transition @ b_beta[0]
        take(Piece(begin, piece.logs, gamma, transition))
    return found[1]


def _smoothed(piece: Filtered, transposed: Array, beta_last: Array) -> tuple[Array, Array] | None:
    """p(s_t | x), and b_beta of each frame; `beta_last` (K,) is β of the last frame, from all later pieces."""
    from likely.hmm._loops import scaled_recursions as loops

    T, K = piece.alpha.shape
    gamma, b_beta = np.empty((2, T, K))
    in_range, one = np.ones(1, dtype=np.bool_), np.ones(1)
    loops.backward(
        transposed, beta_last, piece.b, np.array([0, T]), one, piece.alpha, piece.scale, one, in_range, gamma, b_beta
    )
    return (gamma, b_beta) if in_range[0] else None


# ---------------------------------------------------------------- logarithms


def _log_forward_pass(frames: Frames, arcs: Arcs) -> tuple[list[tuple[int, Array]], float]:
    """The log-probabilities of the first state of each piece, up to a constant, and log p(x)."""
    entries, total, initial = [], 0.0, arcs.initial
    for a in frames.begins:
        entries.append((a, initial))
        alpha, scale = forward_backward.forward_logs(arcs._replace(initial=initial), frames.scores(a))
        total += float(scale.sum())
        if np.isneginf(total):
            return entries, total
        initial = np.logaddexp.reduce(alpha[-1][:, None] + arcs.transition, axis=0)
    return entries, total + float(np.logaddexp.reduce(alpha[-1] + arcs.final))


def _log_pass(frames: Frames, take: Take) -> float | None:
    """As `_scaled_pass`, in logarithms; None where the sequence is impossible."""
    arcs = frames.model.chains[0].logs
    if not frames.explained:
        return None
    entries, total = _log_forward_pass(frames, arcs)
    if np.isneginf(total):
        return None
    beta_last, after = arcs.final, None
    for begin, initial in reversed(entries):
        kept = frames.scores(begin)
        logs = kept.copy()
        alpha, _ = forward_backward.forward_logs(arcs._replace(initial=initial), logs)
        gamma, beta, transition = _log_smoothed(arcs, logs, alpha, beta_last)
        if after is not None:
            pairs = alpha[-1][:, None] + arcs.transition + after
            transition += np.exp(pairs - np.logaddexp.reduce(pairs, axis=None))
        after = logs[0] + beta[0]
        beta_last = np.logaddexp.reduce(arcs.transition + after, axis=1)
        take(Piece(begin, kept, gamma, transition))
    return total


def _log_smoothed(arcs: Arcs, logs: Array, alpha: Array, beta_last: Array) -> tuple[Array, Array, Array]:
    """p(s_t | x), log β_t, and expected transitions."""
    from likely.hmm._loops import log_recursions as loops

    cut, one = np.array([0, len(logs)]), np.ones(1)
    beta, gamma, transition = np.empty_like(logs), np.empty_like(logs), np.zeros_like(arcs.transition)
    loops.backward(arcs.transition, beta_last, logs, cut, beta)
    loops.expected_counts(arcs.transition, logs, cut, alpha, beta, np.zeros(1), one, gamma, transition)
    return gamma, beta, transition


# ------------------------------------------------------------- inference


def log_prob(model: Any, values: Any) -> float:
    """log p(x) of one long sequence under one chain."""
    frames, chain = Frames(model, values), model.chains[0]
    found = _forward_pass(frames, chain.summed)
    return found[1] if found is not None else _log_forward_pass(frames, chain.logs)[1]


def smooth(model: Any, values: Any, out: Array) -> float:
    """p(s_t | x) of one long sequence, filled into out (T, K), and log p(x): −inf, nothing filled, if impossible."""
    frames = Frames(model, values)

    def fill(piece: Piece) -> None:
        out[piece.begin : piece.begin + len(piece.states)] = piece.states

    total = _scaled_pass(frames, fill)
    total = _log_pass(frames, fill) if total is None else total
    return -np.inf if total is None else total


def filtered(model: Any, values: Any, out: Array) -> bool:
    """p(s_t | x_1 … x_t) of one long sequence, written to out (T, K); False if it is impossible."""
    frames, arcs = Frames(model, values), model.chains[0].summed
    initial, underflow = arcs.initial, np.zeros(1)
    for a in frames.begins:
        piece = _filtered(arcs, initial, frames.scores(a), underflow)
        if piece is None:
            return _log_filtered(frames, out)
        out[a : a + len(piece.alpha)] = piece.alpha
        initial, underflow = piece.alpha[-1] @ arcs.transition, piece.underflow
    return True


def lagged(model: Any, values: Any, lag: int, out: Array, fixed_lag: Callable[..., Array]) -> bool:
    """Fixed-lag smoothing of one long sequence, written to out (T, K); False where logarithms are needed.

    `fixed_lag` computes a piece from its frames and the next `lag` ones: (arcs, logs, alpha, sequence, lag).
    """
    frames, arcs = Frames(model, values), model.chains[0].summed
    initial, underflow = arcs.initial, np.zeros(1)
    for a in frames.begins:
        logs, size = frames.scores(a, lag), min(frames.size, len(values) - a)
        piece, window = _filtered(arcs, initial, logs[:size], underflow), _filtered(arcs, initial, logs, underflow)
        if piece is None or window is None:
            return False
        seq = Ragged(logs, np.array([0, len(logs)]))
        out[a : a + size] = fixed_lag(arcs._replace(initial=initial), logs, window.alpha, seq, lag)[:size]
        initial, underflow = piece.alpha[-1] @ arcs.transition, piece.underflow
    return True


def _log_filtered(frames: Frames, out: Array) -> bool:
    arcs = frames.model.chains[0].logs
    initial = arcs.initial
    for a in frames.begins:
        alpha, scale = forward_backward.forward_logs(arcs._replace(initial=initial), frames.scores(a))
        if np.isneginf(scale).any():
            return False
        gamma = np.exp(alpha)
        out[a : a + len(alpha)] = gamma / gamma.sum(axis=1, keepdims=True)
        initial = np.logaddexp.reduce(alpha[-1][:, None] + arcs.transition, axis=0)
    return True


def collect(model: Any, values: Any, weight: Array, known: Any, hard: bool = False) -> Any:
    """Sufficient statistics of one long sequence.

    An impossible sequence counts as if all its frames were missing, or not at all: the objective reports it.
    """
    w = float(weight[0])
    for blind in (False, True):
        frames = Frames(model, values, known, blind, hard)
        stats = _of_best_path(frames, w) if hard else _of_all_paths(frames, w)
        if stats is not None:
            return stats
    nothing, K = np.zeros((1, model.states)), model.states
    uses = model.chains[0].uses(np.zeros(K), np.zeros((K, K)), np.zeros(K), 0.0)
    return model.stats_of(uses, nothing[0], model.emission.collect(frames.rows(0)[:1], nothing), -np.inf, False)


def _of_all_paths(frames: Frames, w: float) -> Any:
    for algorithm in (_scaled_pass, _log_pass):
        sums = _Sums(frames, w)
        total = algorithm(frames, sums.add)
        if total is not None:
            return sums.stats(total)
    return None


class _Sums:
    """Sufficient statistics of pieces, added from the last to the first."""

    def __init__(self, frames: Frames, w: float) -> None:
        K = frames.model.states
        self.frames, self.w = frames, w
        self.initial, self.final, self.counts, self.transition = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((K, K))
        self.emission: Any = None
        self.expected = 0.0

    def add(self, piece: Piece) -> None:
        """Add the piece before those added so far."""
        gamma = piece.states if self.w == 1.0 else np.multiply(piece.states, self.w, out=piece.states)
        if self.emission is None:
            self.final += gamma[-1]
        self.initial = gamma[0].copy()
        self.transition += self.w * piece.transition
        self.counts += gamma.sum(axis=0)
        self.expected += forward_backward.expected_log(gamma, piece.logs)
        self.emission = _sum(self.frames.model.emission.collect(self.frames.rows(piece.begin), gamma), self.emission)

    def stats(self, total: float) -> Any:
        """The statistics of the sequence, once the first piece is added."""
        model = self.frames.model
        chain = model.chains[0]
        uses = chain.uses(self.initial, self.transition, self.final, 0.0)
        states_known = len(chain.initial) == chain.states and forward_backward.all_known(self.frames.known)
        entropy = 0.0 if states_known else self.w * total - self.expected - chain.expected_log(uses)
        return model.stats_of(uses, self.counts, self.emission, entropy, states_known)


def _sum(new: Any, old: Any) -> Any:
    return new if old is None else new + old


# ------------------------------------------------------------- Viterbi path


def _of_best_path(frames: Frames, w: float) -> Any:
    """Statistics along the Viterbi path: δ at the piece borders, then backtracking through each piece in reverse."""
    model, K = frames.model, frames.model.states
    chain = model.chains[0]
    arcs, entries = chain.best_logs, []
    delta = arcs.initial.copy()
    for a in frames.begins:
        entries.append((a, delta.copy()))
        _viterbi_step(arcs, delta, frames, a)
    last = int((delta + arcs.final).argmax())
    if np.isneginf(delta[last] + arcs.final[last]):
        return None
    transition, final, emission, after = np.zeros((K, K)), np.zeros(K), None, None
    final[last] = w
    hard_option = {"hard": True} if getattr(model.emission, "hides_labels", False) else {}
    counts = np.zeros(K)
    for a, delta in reversed(entries):
        path, last = _backtracked(_viterbi_step(arcs, delta, frames, a), last)
        pairs = path[:-1] * K + path[1:]
        transition += w * np.bincount(pairs, minlength=K * K).reshape(K, K)
        if after is not None:
            transition[path[-1], after] += w
        counts += w * np.bincount(path, minlength=K)
        emission = _sum(
            model.emission.collect(frames.rows(a), np.full(len(path), w), labels=path, **hard_option), emission
        )
        after = path[0]
    initial = np.zeros(K)
    initial[after] = w
    return model.stats_of(chain.best_uses(initial, transition, final, 0.0), counts, emission, 0.0, False)


def _viterbi_step(arcs: Arcs, delta: Array, frames: Frames, a: int) -> NDArray[np.int16]:
    """Viterbi recursion through a piece: δ is updated in place; returns the backpointers (T, K)."""
    from likely.hmm._loops import path_recursions as loops

    logs = frames.scores(a)
    backpointers = np.empty(logs.shape, dtype=np.int16)
    loops.advance(delta, a == 0, arcs.transition, logs, backpointers)
    return backpointers


def _backtracked(backpointers: NDArray[np.int16], last: int) -> tuple[Index, int]:
    """Backtracking through a piece from its last state: the path, and the state before it."""
    from likely.hmm._loops import path_recursions as loops

    path = np.empty(len(backpointers), dtype=np.intp)
    loops.backtrack(backpointers, np.array([0, len(backpointers)]), np.array([last]), path)
    return path, int(backpointers[0, path[0]])
