"""Chains whose moves change from frame to frame: the recursions of `chains`, with a table of moves for each frame.

moves (T, K, K) lead from the frame before to each frame; those of a sequence's first frame are not used. What numbers
lose is watched as in `chains`: a sequence whose loss could matter is done again in logarithms. A sequence may be given
in pieces: what comes in as `initial` is then the prediction for the piece's first frame, and `after` (K,) what the
future is worth to the states of its last.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled

LEAST = 1e-200  # a frame's total below that is too near the end of the range to be divided by
TINY = 1e-280  # products below that count as lost
HARMLESS = 1e-18  # share of a total that may be lost
HIDDEN = 1e20  # lost paths do not matter where others lead to the same states with so much more


@compiled
def lower(logs, possible):  # type: ignore[no-untyped-def]
    """Scores of moves (T, K, K) less the largest of each row; those that are not possible (K, K) are −inf."""
    T, K, _ = logs.shape
    for t in range(T):
        for i in range(K):
            row, high = logs[t, i], -np.inf
            for j in range(K):
                row[j] = row[j] if possible[i, j] else -np.inf
                high = row[j] if row[j] > high else high
            for j in range(K):
                row[j] -= high


@compiled
def normalize(logs, possible, probs, least):  # type: ignore[no-untyped-def]
    """After `lower`: log-probabilities (T, K, K), each row by itself, and probs, which come in as exp of logs.

    least (T,) is the smallest log-probability of a possible move.
    """
    T, K, _ = logs.shape
    for t in range(T):
        small = 0.0
        for i in range(K):
            row, out = logs[t, i], probs[t, i]
            total = 0.0
            for j in range(K):
                total += out[j]
            shift, one = np.log(total), 1.0 / total
            for j in range(K):
                row[j] -= shift
                out[j] *= one
                small = row[j] if possible[i, j] and row[j] < small else small
        least[t] = small


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
def forward(initial, transition, ever, floor, b, offsets, alpha, scale, sound, losses):  # type: ignore[no-untyped-def]
    """p(s_t | x_1 … x_t) in alpha (T, K) and p(x_t | x_1 … x_{t−1}) in scale (T,), from scores b (T, K).

    `ever` (K,) says which states can be entered at all. floor (n,) is 0 where moves keep products in range, −1 where
    some are so thin that even a prediction of 0 may have lost something. Sequences that come in with `sound` (n,) false
    are passed over; those that leave the range come out so. losses (n,) were made before, and are renewed.
    """
    K = len(initial)
    pred = np.empty(K)
    for n in range(len(offsets) - 1):
        lost = losses[n]
        for t in range(offsets[n], offsets[n + 1]):
            if not sound[n]:
                break
            if t == offsets[n]:
                pred[:] = initial
            else:
                pred[:] = 0.0
                for i in range(K):
                    a, row = alpha[t - 1, i], transition[t, i]
                    for j in range(K):
                        pred[j] += a * row[j]
            below, total = 0, 0.0
            for j in range(K):
                alpha[t, j] = pred[j] * b[t, j]
                below += (alpha[t, j] < TINY) & (pred[j] > floor[n]) & ever[j]
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
        losses[n] = lost


@compiled
def backward(transition, after, b, offsets, alpha, scale, sound, gamma, ahead):  # type: ignore[no-untyped-def]
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
                worth = after[i]
                if t < offsets[n + 1] - 1:
                    worth = 0.0
                    for j in range(K):
                        worth += transition[t + 1, i, j] * ahead[t + 1, j]
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
def _below_its_largest(row):  # type: ignore[no-untyped-def]
    """Shift a row so that its largest is 0, and say by how much: sums of many frames would cost its last digits."""
    high = -np.inf
    for term in row:
        high = term if term > high else high
    if high > -np.inf:
        for j in range(len(row)):
            row[j] -= high
    return high


@compiled
def log_forward(initial, transition, logs, offsets, alpha, scale):  # type: ignore[no-untyped-def]
    """log p(s_t | x_1 … x_t) in alpha (T, K), and log p(x_t | x_1 … x_{t−1}) in scale (T,).

    All that comes in is logarithms. A frame that cannot be has scale −inf, and so have those after it.
    """
    K = len(initial)
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            for j in range(K):
                if t == offsets[n]:
                    alpha[t, j] = initial[j] + logs[t, j]
                    continue
                for i in range(K):
                    terms[i] = alpha[t - 1, i] + transition[t, i, j]
                alpha[t, j] = _log_sum(terms) + logs[t, j]
            scale[t] = _log_sum(alpha[t])
            if scale[t] > -np.inf:
                for j in range(K):
                    alpha[t, j] -= scale[t]


@compiled
def log_backward(transition, after, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """log p(x_{t+1} … x_T | s_t) in beta (T, K), less the largest of each frame."""
    K = logs.shape[1]
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                beta[t, i] = after[i]
                if t < offsets[n + 1] - 1:
                    for j in range(K):
                        terms[j] = transition[t + 1, i, j] + logs[t + 1, j] + beta[t + 1, j]
                    beta[t, i] = _log_sum(terms)
            _below_its_largest(beta[t])


@compiled
def lagged(transition, logs, alpha, offsets, lag, out):  # type: ignore[no-untyped-def]
    """p(s_t | x_1 … x_{t + lag}) in out, from the logarithms alpha of `log_forward`, for as many frames as it has.

    For each frame the backward recursion runs over the frames ahead that may be looked at, and no further.
    """
    K = logs.shape[1]
    terms, beta, new = np.empty(K), np.empty(K), np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], min(offsets[n + 1], len(alpha))):
            beta[:] = 0.0
            for s in range(min(t + lag, offsets[n + 1] - 1), t, -1):
                for i in range(K):
                    for j in range(K):
                        terms[j] = transition[s, i, j] + logs[s, j] + beta[j]
                    new[i] = _log_sum(terms)
                beta[:] = new
                _below_its_largest(beta)
            for i in range(K):
                terms[i] = alpha[t, i] + beta[i]
            whole = _log_sum(terms)
            for i in range(K):
                out[t, i] = np.exp(terms[i] - whole)


@compiled
def draw(transition, after, alpha, offsets, uniform, path):  # type: ignore[no-untyped-def]
    """A path of each sequence from p(s | x), the last state first, by uniform numbers (T,); all in logarithms.

    alpha (T, K) is log p(s_t | x_1 … x_t): where past and future disagree, the states that
    the future asks for lie far below the smallest number.
    """
    K = alpha.shape[1]
    share = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                onward = after[i] if t == offsets[n + 1] - 1 else transition[t + 1, i, path[t + 1]]
                share[i] = alpha[t, i] + onward
            _below_its_largest(share)
            total = 0.0
            for i in range(K):
                share[i] = np.exp(share[i])
                total += share[i]
            left, path[t] = uniform[t] * total, 0
            for i in range(K):
                if share[i] > 0.0:
                    path[t] = i
                    left -= share[i]
                    if left < 0.0:
                        break


@compiled
def advance(best, first, transition, logs, came):  # type: ignore[no-untyped-def]
    """Go on with the best paths into each state through frames logs (T, K); came (T, K) is where each came from.

    `best` (K,) holds the scores of the paths so far and is renewed; with `first` it holds those of beginning in a
    state. Of equal paths the one from the lowest state wins.
    """
    T, K = logs.shape
    new, at = np.empty(K), np.empty(K, dtype=np.int64)
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                best[j] += logs[0, j]
                came[0, j] = -1
            continue
        new[:] = -np.inf
        at[:] = 0
        for i in range(K):
            have, row = best[i], transition[t, i]
            for j in range(K):
                through = have + row[j]
                better = through > new[j]
                new[j] = through if better else new[j]
                at[j] = i if better else at[j]
        for j in range(K):
            best[j] = new[j] + logs[t, j]
            came[t, j] = at[j]


@compiled
def viterbi(initial, transition, logs, offsets, came, last, score):  # type: ignore[no-untyped-def]
    """The best last state (n,) and log-score (n,) of each sequence, and where paths came from (T, K); logarithms."""
    best = np.empty(len(initial))
    for n in range(len(offsets) - 1):
        a, z = offsets[n], offsets[n + 1]
        last[n], score[n] = 0, 0.0
        if z > a:
            best[:] = initial
            advance(best, True, transition[a:z], logs[a:z], came[a:z])
            last[n] = np.argmax(best)
            score[n] = best[last[n]]


@compiled
def advance_several(best, first, transition, logs, came, which):  # type: ignore[no-untyped-def]
    """As `advance`, with the k best paths into each state, in order: best (K, k), came and which (T, K, k).

    A path into a state is the state before, and which of that state's paths it was; with `first`, beginnings stand in
    best[:, 0].
    """
    T, K = logs.shape
    k = best.shape[1]
    new = np.empty((K, k))
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                best[j, 0] += logs[0, j]
            continue
        new[:] = -np.inf
        for j in range(K):
            for i in range(K):
                for r in range(k):
                    through = best[i, r] + transition[t, i, j]
                    if not through > new[j, k - 1]:
                        break
                    at = k - 1
                    while at > 0 and new[j, at - 1] < through:
                        new[j, at], came[t, j, at] = new[j, at - 1], came[t, j, at - 1]
                        which[t, j, at] = which[t, j, at - 1]
                        at -= 1
                    new[j, at], came[t, j, at], which[t, j, at] = through, i, r
        for j in range(K):
            for r in range(k):
                best[j, r] = new[j, r] + logs[t, j]
