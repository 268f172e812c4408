"""Chains whose moves change from frame to frame: the recursions of `chains`, with a table of moves for each frame.

moves (T, K, K) lead from the frame before to each frame; those of a sequence's first frame are not used. What numbers
lose is watched as in `chains`: a sequence whose loss could matter is done again in logarithms.
"""

from __future__ import annotations

import numpy as np

from likely.loops.compile import compiled

LEAST = 1e-200  # a frame's total below that is too near the end of the range to be divided by
TINY = 1e-280  # products below that count as lost
HARMLESS = 1e-18  # share of a total that may be lost
HIDDEN = 1e20  # lost paths do not matter where others lead to the same states with so much more


@compiled
def _still_lost(lost, below, pred, ever):  # type: ignore[no-untyped-def]
    """What is lost, with what this frame loses; nothing of before, where other paths hide it in every state."""
    if lost > 0.0:
        hidden = True
        for j in range(len(pred)):
            if ever[j] and pred[j] < HIDDEN * lost:
                hidden = False
        if hidden:
            lost = 0.0
    return lost + below * TINY


@compiled
def forward(starts, moves, ever, b, offsets, alpha, scale, sound):  # type: ignore[no-untyped-def]
    """p(s_t | x_1 … x_t) in alpha (T, K) and p(x_t | x_1 … x_{t−1}) in scale (T,), from scores b (T, K).

    Sequences that come in with `sound` (n,) false are passed over; those that leave the range come out so.
    """
    K = len(starts)
    pred = np.empty(K)
    for n in range(len(offsets) - 1):
        lost = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            if not sound[n]:
                break
            if t == offsets[n]:
                pred[:] = starts
            else:
                pred[:] = 0.0
                for i in range(K):
                    a, row = alpha[t - 1, i], moves[t, i]
                    for j in range(K):
                        pred[j] += a * row[j]
            below, total = 0, 0.0
            for j in range(K):
                alpha[t, j] = pred[j] * b[t, j]
                below += (alpha[t, j] < TINY) & (pred[j] > 0.0)
                total += alpha[t, j]
            if not total > LEAST:
                sound[n] = False
                break
            one = 1.0 / total
            for j in range(K):
                alpha[t, j] *= one
            scale[t] = total
            if below > 0 or lost > 0.0:
                lost = _still_lost(lost, below, pred, ever) * one
                if lost > HARMLESS:
                    sound[n] = False


@compiled
def backward(moves, b, offsets, alpha, scale, sound, gamma, ahead):  # type: ignore[no-untyped-def]
    """p(s_t | x) in gamma (T, K), after `forward`; ahead (T, K) is what a state's future is worth a frame earlier.

    p(s_{t−1} = i, s_t = j | x) is alpha[t − 1, i] moves[t, i, j] ahead[t, j].
    """
    K = alpha.shape[1]
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if not sound[n]:
                break
            one, total = 1.0 / scale[t], 0.0
            for i in range(K):
                worth = 1.0
                if t < offsets[n + 1] - 1:
                    worth = 0.0
                    for j in range(K):
                        worth += moves[t + 1, i, j] * ahead[t + 1, j]
                worth = worth if alpha[t, i] > 0.0 else 0.0  # a state that cannot be has no future; it may overflow
                gamma[t, i] = alpha[t, i] * worth
                ahead[t, i] = worth * b[t, i] * one
                total += gamma[t, i]
            if not abs(total - 1.0) < 1e-6:
                sound[n] = False


@compiled
def _log_sum(terms):  # type: ignore[no-untyped-def]
    """log Σ exp(terms)."""
    high = -np.inf
    for term in terms:
        high = term if term > high else high
    if high == -np.inf:
        return high
    total = 0.0
    for term in terms:
        total += np.exp(term - high)
    return high + np.log(total)


@compiled
def log_forward(starts, moves, logs, offsets, alpha, total):  # type: ignore[no-untyped-def]
    """log p(x_1 … x_t, s_t) in alpha (T, K), log p(x) in total (n,); all that comes in is logarithms."""
    K = len(starts)
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        total[n] = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            for j in range(K):
                if t == offsets[n]:
                    alpha[t, j] = starts[j] + logs[t, j]
                    continue
                for i in range(K):
                    terms[i] = alpha[t - 1, i] + moves[t, i, j]
                alpha[t, j] = _log_sum(terms) + logs[t, j]
            total[n] = _log_sum(alpha[t])


@compiled
def log_backward(moves, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """log p(x_{t+1} … x_T | s_t) in beta (T, K)."""
    K = logs.shape[1]
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                beta[t, i] = 0.0
                if t < offsets[n + 1] - 1:
                    for j in range(K):
                        terms[j] = moves[t + 1, i, j] + logs[t + 1, j] + beta[t + 1, j]
                    beta[t, i] = _log_sum(terms)


@compiled
def draw(moves, alpha, offsets, uniform, path):  # type: ignore[no-untyped-def]
    """A path of each sequence from p(s | x), the last state first, by uniform numbers (T,); alpha is `forward`'s."""
    K = alpha.shape[1]
    share = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            total = 0.0
            for i in range(K):
                share[i] = alpha[t, i] * (1.0 if t == offsets[n + 1] - 1 else moves[t + 1, i, path[t + 1]])
                total += share[i]
            left, path[t] = uniform[t] * total, 0
            for i in range(K):
                if share[i] > 0.0:
                    path[t] = i
                    left -= share[i]
                    if left < 0.0:
                        break


@compiled
def viterbi(starts, moves, logs, offsets, came, last, score):  # type: ignore[no-untyped-def]
    """The best last state (n,) and log-score (n,) of each sequence, and where paths came from (T, K); logarithms."""
    K = len(starts)
    best, new = np.empty(K), np.empty(K)
    for n in range(len(offsets) - 1):
        last[n], score[n] = 0, 0.0
        for t in range(offsets[n], offsets[n + 1]):
            for j in range(K):
                came[t, j], high = 0, -np.inf
                if t == offsets[n]:
                    high = starts[j]
                else:
                    for i in range(K):
                        through = best[i] + moves[t, i, j]
                        if through > high:
                            high, came[t, j] = through, i
                new[j] = high + logs[t, j]
            best[:] = new
        if offsets[n + 1] > offsets[n]:
            last[n] = np.argmax(best)
            score[n] = best[last[n]]
