"""One sequence too long to be held with all its scores: piece by piece forwards, and back again.

Forwards, only the belief at the end of each piece is kept. Backwards, each piece is filtered once more from there, and
what its future is worth comes from the piece after it. Memory is one piece, whatever the length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.ragged import Ragged
from likely.models import trellis
from likely.models.chain import Ways

LONG = 2**16  # frames from which a sequence goes piece by piece
PIECE = 2**13


class Filtered(NamedTuple):
    """A piece, filtered."""

    logs: Array  # (T, K): scores, as they came
    b: Array  # (T, K): their exponentials, the largest of each frame 1
    alpha: Array  # (T, K)
    scale: Array  # (T,)
    log_prob: float  # of its frames, given all before
    lost: Array  # (1,)


def log_prob(model: Any, values: Any) -> float:
    """log p(x) of one long sequence under one chain."""
    way, total = model.chains[0].summed, 0.0
    enter, lost = way.starts, np.zeros(1)
    for a in range(0, len(values), PIECE):
        piece = _filtered(way, enter, _scores(model, values, a, None), lost)
        if piece is None:
            return _by_logs(model, values)
        total, enter, lost = total + piece.log_prob, piece.alpha[-1] @ way.moves, piece.lost
    assert piece is not None  # there is at least one piece
    finish = float(piece.alpha[-1] @ way.ends)
    return total + float(np.log(finish)) if finish > 1e-200 else _by_logs(model, values)


def _scores(model: Any, values: Any, a: int, known: Any) -> Array:
    logs: Array = model.scores(Ragged.of(values[a : a + PIECE]))
    if known is not None:
        logs += known[a : a + PIECE]
    return logs


def _filtered(way: Ways, enter: Array, logs: Array, lost: Array) -> Filtered | None:
    """The forward pass over a piece that is entered with these probabilities; None where numbers leave their range."""
    from likely.loops import chains as loops

    T, K = logs.shape
    top, b, alpha, scale = np.empty((T, 1)), logs.copy(), np.empty((T, K)), np.empty(T)
    finish, sound, lost = np.empty(1), np.empty(1, dtype=np.bool_), lost.copy()
    loops.shift(b, top, K)
    np.exp(b, out=b)
    loops.forward(enter, way.moves, np.ones(K), way.entry, b, np.array([0, T]), alpha, scale, finish, sound, lost)
    if not sound[0]:
        return None
    return Filtered(logs, b, alpha, scale, float(np.log(scale).sum() + top.sum()), lost)


def _by_logs(model: Any, values: Any) -> float:
    """The same in logarithms, also piece by piece."""
    from likely.loops import log_chains as loops

    way, total = model.chains[0].logs, 0.0
    enter, free = way.starts, np.zeros(len(way.starts))
    for a in range(0, len(values), PIECE):
        logs = _scores(model, values, a, None)
        alpha, scale, whole = np.empty_like(logs), np.empty(len(logs)), np.empty(1)
        loops.forward(enter, way.moves, free, logs, np.array([0, len(logs)]), alpha, scale, whole)
        enter, total = np.logaddexp.reduce(alpha[-1][:, None] + way.moves, axis=0), total + float(scale.sum())
    return total + float(np.logaddexp.reduce(alpha[-1] + way.ends))


def collect(model: Any, values: Any, weight: Array, known: Any) -> Any:
    """Statistics of one long sequence; None where only logarithms would do."""
    chain = model.chains[0]
    way = chain.summed
    entered, total = _forwards(model, values, known)
    if entered is None:
        return None
    sums = _Sums(model, weight)
    worth = None  # of the future, for the states of a piece's last frame
    for i, a in reversed(list(enumerate(range(0, len(values), PIECE)))):
        piece = _filtered(way, entered[i].enter, _scores(model, values, a, known), entered[i].lost)
        if piece is None:
            return None
        if worth is None:
            finish = float(piece.alpha[-1] @ way.ends)
            if not finish > 1e-200:
                return None
            worth, total = way.ends / finish, total + float(np.log(finish))
        worth = sums.add(piece, values[a : a + PIECE], worth, first=a == 0)
        if worth is None:
            return None
    return sums.stats(total, known)


def _forwards(model: Any, values: Any, known: Any) -> tuple[Any, float]:
    """The probabilities with which each piece is entered, and log p of all frames; None where logarithms are needed."""
    way, total = model.chains[0].summed, 0.0
    enter, lost = way.starts, np.zeros(1)
    entered: list[Any] = []
    for a in range(0, len(values), PIECE):
        logs = _scores(model, values, a, known)
        entered.append(_Entry(enter, lost))
        piece = _filtered(way, enter, logs, lost)
        if piece is None:
            return None, 0.0
        total, enter, lost = total + piece.log_prob, piece.alpha[-1] @ way.moves, piece.lost
    return entered, total


class _Entry(NamedTuple):
    enter: Array
    lost: Array


class _Sums:
    """The statistics of pieces, added from the last to the first."""

    def __init__(self, model: Any, weight: Array) -> None:
        self.model, self.weight, self.way = model, weight, model.chains[0].summed
        K = model.states
        self.back = np.ascontiguousarray(self.way.moves.T)
        self.starts, self.ends, self.counts, self.moves = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros((K, K))
        self.parts: Any = None
        self.expected = 0.0
        self.border: Array | None = None  # what the first frame of the piece after is worth
        self.w = float(weight[0])

    def add(self, piece: Filtered, frames: Any, worth: Array, first: bool) -> Array | None:
        """One piece; what its first frame is worth to the states before it."""
        from likely.loops import chains as loops

        T, K = piece.alpha.shape
        gamma, ahead = np.empty((2, T, K))
        sound = np.ones(1, dtype=np.bool_)
        loops.backward(self.back, worth, piece.b, np.array([0, T]), self.weight, piece.alpha, piece.scale, np.ones(1),
                       sound, gamma, ahead)  # fmt: skip
        if not sound[0]:
            return None
        if self.border is None:
            self.ends += gamma[-1]
        else:
            self.moves += self.way.moves * np.outer(piece.alpha[-1], self.border)
        self.moves += self.way.moves * (piece.alpha[:-1].T @ ahead[1:])
        self.border = ahead[0].copy()
        if first:
            self.starts += gamma[0]
        self.counts += gamma.sum(axis=0)
        self.expected += trellis.expected(gamma, piece.logs)
        parts = self.model.emissions.collect(frames, gamma)
        self.parts = parts if self.parts is None else parts + self.parts
        return np.asarray(self.way.moves @ (ahead[0] / self.w if self.w > 0 else ahead[0]))

    def stats(self, total: float, known: Any) -> Any:
        chain = self.model.chains[0]
        uses = chain.uses(self.starts, self.moves, self.ends, 0.0)
        seen = (
            known is not None
            and len(chain.starts) == chain.states
            and bool((np.isfinite(known).sum(axis=1) == 1).all())
        )
        entropy = 0.0 if seen else self.w * total - self.expected - chain.expected_log(uses)
        return self.model.stats_of(uses, self.counts, self.parts, entropy, seen)
