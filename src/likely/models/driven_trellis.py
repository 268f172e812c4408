"""All paths through states whose moves change with time: what is likely, given all that was seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.models.state_paths import BestPaths

FAR = -600.0  # log-probability of a move that numbers, not logarithms, are too coarse for


class Filtered(NamedTuple):
    """What each state is worth as frames come in; `sound` says for which sequences plain numbers sufficed."""

    alpha: Array  # (T, K): p(s_t | x_1 … x_t)
    log_prob: Array  # (n,): log p(x)
    sound: Mask  # (n,)
    scores: Array  # (T, K): exp of the scores, less each frame's largest
    scale: Array  # (T,)


class Smoothed(NamedTuple):
    """What is known of states and of moves once all is seen, in probabilities."""

    states: Array  # (T, K)
    moves: Array  # (T, K, K): from the frame before; 0 in the first frame of a sequence
    log_prob: Array  # (n,)


def filtered(starts: Array, moves: Array, logs: Array, offsets: Index) -> Filtered:
    """Forwards over log moves (T, K, K) and scores (T, K), scaled where that is safe, else in logarithms."""
    from likely.loops import chains, driven

    T, K = logs.shape
    top, b, alpha, scale = np.empty((T, 1)), logs.copy(), np.empty((T, K)), np.ones(T)
    chains.shift(b, top, K)
    b = np.exp(b, out=b)
    sound = ~_any_of(np.asarray(((moves < FAR) & np.isfinite(moves)).any(axis=(1, 2))), offsets)
    ever = (starts > 0) | np.isfinite(moves).any(axis=(0, 1))
    driven.forward(starts, np.exp(moves), ever, b, offsets, alpha, scale, sound)
    total = _sums(np.log(scale) + top[:, 0], offsets)
    bad = np.flatnonzero(~sound)
    if len(bad):
        frames, cut = frames_of(bad, offsets)
        exact, total[bad] = _log_forward(starts, moves[frames], logs[frames], cut)
        high = exact.max(axis=1, keepdims=True)
        shares = np.exp(exact - np.where(np.isneginf(high), 0.0, high))
        alpha[frames] = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return Filtered(alpha, total, sound, b, scale)


def smoothed(starts: Array, moves: Array, logs: Array, offsets: Index) -> Smoothed:
    """Forwards and backwards: p(s_t | x) and p(s_{t−1}, s_t | x); zeros for sequences that cannot be."""
    from likely.loops import driven

    found = filtered(starts, moves, logs, offsets)
    sound, probs = found.sound.copy(), np.exp(moves)
    gamma, ahead = np.zeros(logs.shape), np.zeros(logs.shape)
    driven.backward(probs, found.scores, offsets, found.alpha, found.scale, sound, gamma, ahead)
    pairs = np.zeros(moves.shape)
    pairs[1:] = found.alpha[:-1, :, None] * probs[1:] * ahead[1:, None, :]
    total = found.log_prob.copy()
    bad = np.flatnonzero(~sound)
    if len(bad):
        frames, cut = frames_of(bad, offsets)
        gamma[frames], pairs[frames], total[bad] = _by_logs(starts, moves[frames], logs[frames], cut)
    pairs[offsets[:-1][np.diff(offsets) > 0]] = 0.0
    return Smoothed(gamma, pairs, total)


def _by_logs(starts: Array, moves: Array, logs: Array, offsets: Index) -> tuple[Array, Array, Array]:
    from likely.loops import driven

    alpha, total = _log_forward(starts, moves, logs, offsets)
    beta, pairs = np.empty(logs.shape), np.zeros(moves.shape)
    driven.log_backward(moves, np.ascontiguousarray(logs), offsets, beta)
    each = np.repeat(total, np.diff(offsets))
    can = ~np.isneginf(each)
    gamma = np.where(can[:, None], np.exp(alpha + beta - each[:, None]), 0.0)
    onward = (logs + beta)[1:, None, :] - each[1:, None, None]
    pairs[1:] = np.where(can[1:, None, None], np.exp(alpha[:-1, :, None] + moves[1:] + onward), 0.0)
    return gamma, pairs, total


def _log_forward(starts: Array, moves: Array, logs: Array, offsets: Index) -> tuple[Array, Array]:
    from likely.loops import driven

    alpha, total = np.empty(logs.shape), np.empty(len(offsets) - 1)
    driven.log_forward(np.log(starts), moves, np.ascontiguousarray(logs), offsets, alpha, total)
    return alpha, total


def best_paths(starts: Array, moves: Array, logs: Array, offsets: Index) -> BestPaths:
    """The best path of each sequence   (Viterbi)."""
    from likely.loops import driven, paths

    n = len(offsets) - 1
    came, path = np.empty(logs.shape, dtype=np.int16), np.empty(len(logs), dtype=np.intp)
    last, score = np.empty(n, dtype=np.intp), np.empty(n)
    driven.viterbi(np.log(starts), moves, logs, offsets, came, last, score)
    paths.trace(came, offsets, last, path)
    return BestPaths(path, score)


def drawn_paths(starts: Array, moves: Array, logs: Array, offsets: Index, uniform: Array) -> Index:
    """A path of each sequence (T,) from p(s | x), by uniform numbers (T,)."""
    from likely.loops import driven

    path = np.empty(len(logs), dtype=np.intp)
    driven.draw(np.exp(moves), filtered(starts, moves, logs, offsets).alpha, offsets, uniform, path)
    return path


def _any_of(each: Mask, offsets: Index) -> Mask:
    """Which sequences have such a frame after their first, (n,)."""
    marked = each.copy()
    marked[offsets[:-1][np.diff(offsets) > 0]] = False
    count = np.concatenate([[0], np.cumsum(marked)])
    return np.asarray(count[offsets[1:]] > count[offsets[:-1]])


def _sums(each: Array, offsets: Index) -> Array:
    """Sums over the frames of each sequence (n,)."""
    there, out = np.diff(offsets) > 0, np.zeros(len(offsets) - 1)
    if there.any():
        out[there] = np.add.reduceat(each, offsets[:-1][there])
    return out


def frames_of(which: Index, offsets: Index) -> tuple[Index, Index]:
    """The frames of some sequences, and where each of those begins among them."""
    lengths = np.diff(offsets)[which]
    cut = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(offsets[which] - cut[:-1], lengths) + np.arange(cut[-1]), cut


def expected_score(shares: Array, logs: Array) -> float:
    """Σ share · log over what has a share."""
    return float(np.vdot(shares, np.where(shares > 0, logs, 0.0)))
