"""One sequence too long to be held with all its scores: piece by piece forwards, and back again.

Forwards, only the belief at the end of each piece is kept. Backwards, each piece is filtered once more from there, and
what its future is worth comes from the piece after it. Memory is one piece, whatever the length: by probabilities, by
logarithms where those would leave the range of numbers, and for the best path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likely.core.arrays import Array, BadEntry, Index
from likely.core.ragged import Ragged
from likely.hmm import forward_backward
from likely.hmm.markov_chain import Ways

LONG = 2**16  # frames from which a sequence goes piece by piece
PIECE = 2**13
SCORES = 2**20  # of a piece, frames × states; a sequence of four times as many is long, too


def is_long(frames: int, states: int) -> bool:
    """True of a sequence that goes piece by piece."""
    return frames > LONG or frames * states > 4 * SCORES


class Frames:
    """A sequence and what is known of its states: scores of a piece at a time.

    `blind`: as if nothing had been seen. `best`: emissions that are mixtures count by their best part.
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
        """Their scores (T, K), and of some more frames: an array of one's own."""
        z = a + self.size + more
        known = None if self.known is None else self.known[a:z]
        return forward_backward.with_known(self._seen(Ragged.of(self.values[a:z]), a), known)

    def _seen(self, piece: Ragged, a: int) -> Array:
        if self.blind:
            return np.zeros((len(piece.values), self.model.states))
        try:
            return np.array(self.model._best_scores(piece) if self.best else self.model.scores(piece), order="C")
        except BadEntry as error:
            raise _later(error, a) from None

    @property
    def explained(self) -> bool:
        """False where some frame is impossible in every state."""
        return all(np.isfinite(self.scores(a).max(axis=1)).all() for a in self.begins)


def _later(error: Any, frames: int) -> Any:
    """The same bad entry, so many frames later in its sequence."""
    return type(error)(error.told, error.row, error.frame + frames) if hasattr(error, "frame") else error.after(frames)


# ------------------------------------------------------------- probabilities


class Filtered(NamedTuple):
    """A piece, filtered."""

    logs: Array  # (T, K): scores, as they came
    b: Array  # (T, K): their exponentials, the largest of each frame 1
    alpha: Array  # (T, K)
    scale: Array  # (T,)
    log_prob: float  # of its frames, given all before
    lost: Array  # (1,)


class _Entry(NamedTuple):
    """How a piece is entered."""

    begin: int
    enter: Array  # (K,): p(first state | all before)
    lost: Array  # (1,)


class Piece(NamedTuple):
    """What all paths say of a piece."""

    begin: int
    logs: Array  # (T, K)
    states: Array  # (T, K): p(s_t | x)
    transition: Array  # (K, K): expected, between its frames, and from its last one to the piece after it


Take = Callable[[Piece], None]


def _filtered(way: Ways, enter: Array, logs: Array, lost: Array) -> Filtered | None:
    """The forward pass over a piece that is entered with these probabilities; None where numbers leave their range."""
    from likely.hmm._loops import scaled_recursions as loops

    T, K = logs.shape
    top, b, alpha, scale = np.empty((T, 1)), logs.copy(), np.empty((T, K)), np.empty(T)
    finish, sound, lost = np.empty(1), np.empty(1, dtype=np.bool_), lost.copy()
    loops.shift(b, top, K)
    np.exp(b, out=b)
    loops.forward(enter, way.transition, np.ones(K), way.entry, b, np.array([0, T]), alpha, scale, finish, sound, lost)
    if not sound[0]:
        return None
    return Filtered(logs, b, alpha, scale, float(np.log(scale).sum() + top.sum()), lost)


def _forwards(frames: Frames, way: Ways) -> tuple[list[_Entry], float] | None:
    """How each piece is entered, and log p(x); None where logarithms are needed."""
    entries, total, enter, lost = [], 0.0, way.initial, np.zeros(1)
    for a in frames.begins:
        entries.append(_Entry(a, enter, lost))
        piece = _filtered(way, enter, frames.scores(a), lost)
        if piece is None:
            return None
        total, enter, lost = total + piece.log_prob, piece.alpha[-1] @ way.transition, piece.lost
    assert piece is not None  # there is at least one piece
    finish = float(piece.alpha[-1] @ way.final)
    enough = finish > 1e-200 and not finish * 1e-18 < lost[0]  # else what was lost might have been what counts
    return (entries, total + float(np.log(finish))) if enough else None


def _by_numbers(frames: Frames, take: Take) -> float | None:
    """log p(x), all pieces handed to `take` from the last to the first; None where logarithms are needed."""
    way = frames.model.chains[0].summed
    found = _forwards(frames, way)
    if found is None:
        return None
    back, worth, border = np.ascontiguousarray(way.transition.T), None, None
    for begin, enter, lost in reversed(found[0]):
        piece = _filtered(way, enter, frames.scores(begin), lost)
        if piece is None:
            return None
        worth = way.final / float(piece.alpha[-1] @ way.final) if worth is None else worth
        shares = _smoothed(piece, back, worth)
        if shares is None:
            return None
        gamma, ahead = shares
        transition = forward_backward.moves_between(way.transition, piece.alpha, ahead)
        if border is not None:
            transition += way.transition * np.outer(piece.alpha[-1], border)
        border, worth = ahead[0].copy(), way.transition @ ahead[0]
        take(Piece(begin, piece.logs, gamma, transition))
    return found[1]


def _smoothed(piece: Filtered, back: Array, worth: Array) -> tuple[Array, Array] | None:
    """p(s_t | x), and what each frame is worth to the states before it; `strength` (K,) is that of all later pieces."""
    from likely.hmm._loops import scaled_recursions as loops

    T, K = piece.alpha.shape
    gamma, ahead = np.empty((2, T, K))
    sound, one = np.ones(1, dtype=np.bool_), np.ones(1)
    loops.backward(back, worth, piece.b, np.array([0, T]), one, piece.alpha, piece.scale, one, sound, gamma, ahead)
    return (gamma, ahead) if sound[0] else None


# ---------------------------------------------------------------- logarithms


def _forwards_by_logs(frames: Frames, way: Ways) -> tuple[list[tuple[int, Array]], float]:
    """The log-probabilities with which each piece is entered, each less some number, and log p(x)."""
    entries, total, enter = [], 0.0, way.initial
    for a in frames.begins:
        entries.append((a, enter))
        alpha, scale = forward_backward.forward_logs(way._replace(initial=enter), frames.scores(a))
        total += float(scale.sum())
        if np.isneginf(total):
            return entries, total
        enter = np.logaddexp.reduce(alpha[-1][:, None] + way.transition, axis=0)
    return entries, total + float(np.logaddexp.reduce(alpha[-1] + way.final))


def _by_logs(frames: Frames, take: Take) -> float | None:
    """The same as `_by_numbers`; None where the sequence cannot be."""
    way = frames.model.chains[0].logs
    if not frames.explained:
        return None
    entries, total = _forwards_by_logs(frames, way)
    if np.isneginf(total):
        return None
    worth, after = way.final, None
    for begin, enter in reversed(entries):
        kept = frames.scores(begin)
        logs = kept.copy()
        alpha, _ = forward_backward.forward_logs(way._replace(initial=enter), logs)
        gamma, beta, transition = _smoothed_by_logs(way, logs, alpha, worth)
        if after is not None:
            pairs = alpha[-1][:, None] + way.transition + after
            transition += np.exp(pairs - np.logaddexp.reduce(pairs, axis=None))
        after = logs[0] + beta[0]
        worth = np.logaddexp.reduce(way.transition + after, axis=1)
        take(Piece(begin, kept, gamma, transition))
    return total


def _smoothed_by_logs(way: Ways, logs: Array, alpha: Array, worth: Array) -> tuple[Array, Array, Array]:
    """p(s_t | x), what the future is worth to each state, and expected moves."""
    from likely.hmm._loops import log_recursions as loops

    cut, one = np.array([0, len(logs)]), np.ones(1)
    beta, gamma, transition = np.empty_like(logs), np.empty_like(logs), np.zeros_like(way.transition)
    loops.backward(way.transition, worth, logs, cut, beta)
    loops.moved(way.transition, logs, cut, alpha, beta, np.zeros(1), one, gamma, transition)
    return gamma, beta, transition


# ------------------------------------------------------------- what is asked


def log_prob(model: Any, values: Any) -> float:
    """log p(x) of one long sequence under one chain."""
    frames, chain = Frames(model, values), model.chains[0]
    found = _forwards(frames, chain.summed)
    return found[1] if found is not None else _forwards_by_logs(frames, chain.logs)[1]


def smooth(model: Any, values: Any, out: Array) -> float:
    """p(s_t | x) of one long sequence, filled into out (T, K), and log p(x): −inf, nothing filled, if impossible."""
    frames = Frames(model, values)

    def fill(piece: Piece) -> None:
        out[piece.begin : piece.begin + len(piece.states)] = piece.states

    total = _by_numbers(frames, fill)
    total = _by_logs(frames, fill) if total is None else total
    return -np.inf if total is None else total


def filtered(model: Any, values: Any, out: Array) -> bool:
    """p(s_t | x_1 … x_t) of one long sequence, filled into out (T, K); False if it cannot be."""
    frames, way = Frames(model, values), model.chains[0].summed
    enter, lost = way.initial, np.zeros(1)
    for a in frames.begins:
        piece = _filtered(way, enter, frames.scores(a), lost)
        if piece is None:
            return _filtered_by_logs(frames, out)
        out[a : a + len(piece.alpha)] = piece.alpha
        enter, lost = piece.alpha[-1] @ way.transition, piece.lost
    return True


def lagged(model: Any, values: Any, lag: int, out: Array, shares: Callable[..., Array]) -> bool:
    """p(s_t | x_1 … x_{t + lag}) of one long sequence, filled into out (T, K); False where only logarithms would do.

    `shares` makes them of a piece and the frames that it may look ahead at: (way, logs, alpha, sequence, lag).
    """
    frames, way = Frames(model, values), model.chains[0].summed
    enter, lost = way.initial, np.zeros(1)
    for a in frames.begins:
        logs, size = frames.scores(a, lag), min(frames.size, len(values) - a)
        piece, window = _filtered(way, enter, logs[:size], lost), _filtered(way, enter, logs, lost)
        if piece is None or window is None:
            return False
        seq = Ragged(logs, np.array([0, len(logs)]))
        out[a : a + size] = shares(way._replace(initial=enter), logs, window.alpha, seq, lag)[:size]
        enter, lost = piece.alpha[-1] @ way.transition, piece.lost
    return True


def _filtered_by_logs(frames: Frames, out: Array) -> bool:
    way = frames.model.chains[0].logs
    enter = way.initial
    for a in frames.begins:
        alpha, scale = forward_backward.forward_logs(way._replace(initial=enter), frames.scores(a))
        if np.isneginf(scale).any():
            return False
        shares = np.exp(alpha)
        out[a : a + len(alpha)] = shares / shares.sum(axis=1, keepdims=True)
        enter = np.logaddexp.reduce(alpha[-1][:, None] + way.transition, axis=0)
    return True


def collect(model: Any, values: Any, weight: Array, known: Any, hard: bool = False) -> Any:
    """Statistics of one long sequence.

    One that cannot be counts as if nothing had been seen of it, or not at all: the objective says what is wrong.
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
    for way in (_by_numbers, _by_logs):
        sums = _Sums(frames, w)
        total = way(frames, sums.add)
        if total is not None:
            return sums.stats(total)
    return None


class _Sums:
    """The statistics of pieces, added from the last to the first."""

    def __init__(self, frames: Frames, w: float) -> None:
        K = frames.model.states
        self.frames, self.w = frames, w
        self.initial, self.final, self.counts, self.transition = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((K, K))
        self.parts: Any = None
        self.expected = 0.0

    def add(self, piece: Piece) -> None:
        """One more piece, before all others so far."""
        shares = piece.states if self.w == 1.0 else np.multiply(piece.states, self.w, out=piece.states)
        if self.parts is None:
            self.final += shares[-1]
        self.initial = shares[0].copy()
        self.transition += self.w * piece.transition
        self.counts += shares.sum(axis=0)
        self.expected += forward_backward.expected(shares, piece.logs)
        self.parts = _sum(self.frames.model.emission.collect(self.frames.rows(piece.begin), shares), self.parts)

    def stats(self, total: float) -> Any:
        """All of them, once the first piece is in."""
        model = self.frames.model
        chain = model.chains[0]
        uses = chain.uses(self.initial, self.transition, self.final, 0.0)
        seen = len(chain.initial) == chain.states and forward_backward.all_known(self.frames.known)
        entropy = 0.0 if seen else self.w * total - self.expected - chain.expected_log(uses)
        return model.stats_of(uses, self.counts, self.parts, entropy, seen)


def _sum(new: Any, old: Any) -> Any:
    return new if old is None else new + old


# ------------------------------------------------------------- the best path


def _of_best_path(frames: Frames, w: float) -> Any:
    """Statistics along the best path: scores of best paths at the borders, then each piece once more, from its end."""
    model, K = frames.model, frames.model.states
    chain = model.chains[0]
    way, entries = chain.best_logs, []
    best = way.initial.copy()
    for a in frames.begins:
        entries.append((a, best.copy()))
        _advanced(way, best, frames, a)
    last = int((best + way.final).argmax())
    if np.isneginf(best[last] + way.final[last]):
        return None
    transition, final, parts, after = np.zeros((K, K)), np.zeros(K), None, None
    final[last] = w
    deeper = {"hard": True} if getattr(model.emission, "hides_labels", False) else {}
    counts = np.zeros(K)
    for a, enter in reversed(entries):
        path, last = _traced(_advanced(way, enter, frames, a), last)
        pairs = path[:-1] * K + path[1:]
        transition += w * np.bincount(pairs, minlength=K * K).reshape(K, K)
        if after is not None:
            transition[path[-1], after] += w
        counts += w * np.bincount(path, minlength=K)
        parts = _sum(model.emission.collect(frames.rows(a), np.full(len(path), w), labels=path, **deeper), parts)
        after = path[0]
    initial = np.zeros(K)
    initial[after] = w
    return model.stats_of(chain.best_uses(initial, transition, final, 0.0), counts, parts, 0.0, False)


def _advanced(way: Ways, best: Array, frames: Frames, a: int) -> NDArray[np.int16]:
    """Go on with the best paths through a piece: `best` is renewed; where each came from (T, K)."""
    from likely.hmm._loops import path_recursions as loops

    logs = frames.scores(a)
    came = np.empty(logs.shape, dtype=np.int16)
    loops.advance(best, a == 0, way.transition, logs, came)
    return came


def _traced(came: NDArray[np.int16], last: int) -> tuple[Index, int]:
    """The path through a piece that ends in that state, and the state before it."""
    from likely.hmm._loops import path_recursions as loops

    path = np.empty(len(came), dtype=np.intp)
    loops.trace(came, np.array([0, len(came)]), np.array([last]), path)
    return path, int(came[0, path[0]])
