"""Chains in time: sums and maxima over all paths through states, a frame after another.

Emission scores come in exponentiated, each frame's largest at 1 (`shift`), so that the loops only multiply and add.
What then falls below the smallest number is *lost*; the loops bound how much of the truth that could ever become, and
say so where the bound is not negligible: such a sequence is done again by the loops in logarithms, which lose nothing.
"""

from __future__ import annotations

import numpy as np

from likely.loops.compile import compiled

LEAST = 1e-200  # a frame's total below that is too near the end of the range to be divided by
TINY = 1e-280  # products below that count as lost
HARMLESS = 1e-18  # share of a total that may be lost
HIDDEN = 1e20  # lost paths do not matter where others lead to the same states with so much more


@compiled
def shift(logs, top, size):  # type: ignore[no-untyped-def]
    """Each frame of logs (T, C·size) less its largest among the states of a chain, which goes to top (T, C)."""
    T, C = top.shape
    for t in range(T):
        for c in range(C):
            row = logs[t, c * size : (c + 1) * size]
            high = row[0]
            for k in range(1, size):
                high = row[k] if row[k] > high else high
            if high == -np.inf:
                top[t, c] = high
                continue  # −inf − (−inf) would be no number
            top[t, c] = high
            for k in range(size):
                row[k] -= high


@compiled
def likelihoods(starts, moves, ends, entry, b, offsets, scale, finish, sound):  # type: ignore[no-untyped-def]
    """Totals over all paths of n sequences under C chains, no more: scale (T, C) a frame, finish (n, C) at the end.

    starts (C, K), moves (C, K, K), ends (C, K), b (T, C·K). entry (C, K) tells how a state is entered: inf never, 0 by
    arcs that keep their products in range, −1 also by thinner ones, so that even a prediction of 0 may have lost some.
    The probability of a sequence is the product of its scales and its finish; where `sound` (n, C) comes out false,
    numbers left their range and it must be found by logarithms.
    """
    C, K = starts.shape
    now, pred = np.empty(K), np.empty(K)
    for n in range(len(offsets) - 1):
        for c in range(C):
            finish[n, c], sound[n, c], lost = 1.0, True, 0.0
            for t in range(offsets[n], offsets[n + 1]):
                if t == offsets[n]:
                    pred[:] = starts[c]
                else:
                    pred[:] = 0.0
                    for i in range(K):
                        a, row = now[i], moves[c, i]
                        for j in range(K):
                            pred[j] += a * row[j]
                here = b[t, c * K : (c + 1) * K]
                below = 0
                for j in range(K):
                    now[j] = pred[j] * here[j]
                    below += (now[j] < TINY) & (pred[j] > entry[c, j])
                total = 0.0
                for j in range(K):
                    total += now[j]
                if not total > LEAST:
                    sound[n, c] = False
                    break
                one = 1.0 / total
                for j in range(K):
                    now[j] *= one
                scale[t, c] = total
                if below > 0 or lost > 0.0:
                    lost = _still_lost(lost, below, pred, entry[c]) * one
                    if lost > HARMLESS:
                        sound[n, c] = False
                        break
            if sound[n, c] and offsets[n + 1] > offsets[n]:
                total = 0.0
                for j in range(K):
                    total += now[j] * ends[c, j]
                finish[n, c] = total
                if not total > LEAST or (lost > 0.0 and not total > lost / HARMLESS):
                    sound[n, c] = False


@compiled
def _still_lost(lost, below, pred, entry):  # type: ignore[no-untyped-def]
    """What is lost, with what this frame loses; nothing of before, where other paths hide it in every state."""
    if lost > 0.0:
        hidden = True
        for j in range(len(pred)):
            if entry[j] < np.inf and pred[j] < HIDDEN * lost:
                hidden = False
        if hidden:
            lost = 0.0
    return lost + below * TINY


@compiled
def forward(starts, moves, ends, entry, b, offsets, alpha, scale, finish, sound, losses):  # type: ignore[no-untyped-def]
    """p(s_t | x_1 … x_t) in alpha (T, K) and p(x_t | x_1 … x_{t−1}) in scale (T,), of one chain; else as above.

    losses (n,) is what was lost before, and is renewed: a sequence may be given in pieces.
    """
    K = len(starts)
    pred = np.empty(K)
    for n in range(len(offsets) - 1):
        finish[n], sound[n], lost = 1.0, True, losses[n]
        for t in range(offsets[n], offsets[n + 1]):
            now, here = alpha[t], b[t]
            if t == offsets[n]:
                pred[:] = starts
            else:
                pred[:] = 0.0
                for i in range(K):
                    a, row = alpha[t - 1, i], moves[i]
                    for j in range(K):
                        pred[j] += a * row[j]
            below = 0
            for j in range(K):
                now[j] = pred[j] * here[j]
                below += (now[j] < TINY) & (pred[j] > entry[j])
            total = 0.0
            for j in range(K):
                total += now[j]
            if not total > LEAST:
                sound[n] = False
                break
            one = 1.0 / total
            for j in range(K):
                now[j] *= one
            scale[t] = total
            if below > 0 or lost > 0.0:
                lost = _still_lost(lost, below, pred, entry) * one
                if lost > HARMLESS:
                    sound[n] = False
                    break
        losses[n] = lost
        if sound[n] and offsets[n + 1] > offsets[n]:
            total = 0.0
            for j in range(K):
                total += alpha[offsets[n + 1] - 1, j] * ends[j]
            finish[n] = total
            if not total > LEAST or (lost > 0.0 and not total > lost / HARMLESS):
                sound[n] = False


@compiled
def backward(back, ends, b, offsets, weight, alpha, scale, finish, sound, gamma, ahead):  # type: ignore[no-untyped-def]
    """p(s_t | x) times the weight of its sequence in gamma (T, K), after `forward`; back is moves transposed.

    ahead (T, K) is what a state's future is worth, as seen from the frame before: with alpha of that frame and the
    moves between, it makes the probabilities of moves. Where gamma would not sum to 1, `sound` comes out false.
    """
    K = len(ends)
    beta = np.empty(K)
    for n in range(len(offsets) - 1):
        if not sound[n]:
            continue
        w = weight[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if t == offsets[n + 1] - 1:
                for i in range(K):
                    beta[i] = ends[i] / finish[n]
            else:
                beta[:] = 0.0
                for j in range(K):
                    a, row = ahead[t + 1, j], back[j]
                    for i in range(K):
                        beta[i] += a * row[i]
            now, here, out, next_ = alpha[t], b[t], gamma[t], ahead[t]
            one = 1.0 / scale[t]
            for i in range(K):
                worth = beta[i] if now[i] > 0.0 else 0.0  # a state that cannot be has no future; its beta may overflow
                out[i] = now[i] * worth
                next_[i] = worth * here[i] * one
            total = 0.0
            for i in range(K):
                total += out[i]
            if not abs(total - 1.0) < 1e-6:
                sound[n] = False
                break
        if not sound[n]:
            continue
        for t in range(offsets[n], offsets[n + 1]):
            for i in range(K):
                gamma[t, i] *= w
                ahead[t, i] *= w
