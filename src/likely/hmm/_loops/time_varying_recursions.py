"""Forward, backward and Viterbi recursions of an HMM with time-varying transition matrices.

transition (T, K, K) leads from the frame before into each frame; that of a sequence's first frame is not used.
Underflow is bounded as in `scaled_recursions`: a sequence where it could matter is computed again in logarithms. A
sequence may be given in pieces: `initial` is then the prediction for the first frame of the piece, and `beta_last` (K,)
the backward variable of its last frame.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled

LEAST = 1e-200  # a scaling factor below that is too near the end of the range to be divided by
TINY = 1e-280  # products below that count as underflow
NEGLIGIBLE = 1e-18  # share of a total that underflow may cost
DOMINATED = 1e20  # underflow does not matter where other paths to the same states have so much more probability


@compiled
def subtract_row_max(logs, possible):  # type: ignore[no-untyped-def]
    """Subtract the maximum of each row from transition scores (T, K, K); impossible transitions become −inf."""
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
    """Log-probabilities (T, K, K) of each row after `subtract_row_max`, and probs, which are exp(logs) on input.

    least (T,) is the smallest log-probability of a possible transition.
    """
    T, K, _ = logs.shape
    for t in range(T):
        small = 0.0
        for i in range(K):
            row, out = logs[t, i], probs[t, i]
            total = 0.0
            for j in range(K):
                total += out[j]
            shift, inverse = np.log(total), 1.0 / total
            for j in range(K):
                row[j] -= shift
                out[j] *= inverse
                small = row[j] if possible[i, j] and row[j] < small else small
        least[t] = small


@compiled
def _underflow_bound(underflow, n_underflows, predicted, reachable):  # type: ignore[no-untyped-def]
    """Bound on the mass lost by underflow up to this frame; reset where other paths dominate in every state."""
    if underflow > 0.0:
        dominated = True
        for j in range(len(predicted)):
            if reachable[j] and predicted[j] < DOMINATED * underflow:
                dominated = False
        if dominated:
            underflow = 0.0
    return underflow + n_underflows * TINY


@compiled
def forward(initial, transition, reachable, floor, b, offsets, alpha, scale, in_range, underflows):  # type: ignore[no-untyped-def]
    """Scaled forward variables p(s_t | x_1 … x_t) in alpha (T, K), scaling factors in scale (T,).

    scale_t = p(x_t | x_1 … x_{t−1}). b (T, K) are the exponentiated scores. `reachable` (K,) marks states that can be
    entered at all. floor (n,) is 0 where transition probabilities keep products in range, −1 where some are so small
    that even a prediction of 0 may be an underflow. Sequences with `in_range` (n,) false are skipped; those that
    underflow become so. underflows (n,) is the bound from earlier pieces and is updated.
    """
    K = len(initial)
    predicted = np.empty(K)
    for n in range(len(offsets) - 1):
        underflow = underflows[n]
        for t in range(offsets[n], offsets[n + 1]):
            if not in_range[n]:
                break
            if t == offsets[n]:
                predicted[:] = initial
            else:
                predicted[:] = 0.0
                for i in range(K):
                    a, row = alpha[t - 1, i], transition[t, i]
                    for j in range(K):
                        predicted[j] += a * row[j]
            n_underflows, total = 0, 0.0
            for j in range(K):
                alpha[t, j] = predicted[j] * b[t, j]
                n_underflows += (alpha[t, j] < TINY) & (predicted[j] > floor[n]) & reachable[j]
                total += alpha[t, j]
            if not total > LEAST:
                in_range[n] = False
                break
            inverse = 1.0 / total
            for j in range(K):
                alpha[t, j] *= inverse
            scale[t] = total
            if n_underflows > 0 or underflow > 0.0:
                underflow = _underflow_bound(underflow, n_underflows, predicted, reachable) * inverse
                if underflow > NEGLIGIBLE:
                    in_range[n] = False
        underflows[n] = underflow


@compiled
def backward(transition, beta_last, b, offsets, alpha, scale, in_range, gamma, b_beta):  # type: ignore[no-untyped-def]
    """Backward recursion after `forward`: p(s_t | x) in gamma (T, K), and b_beta (T, K) = b_j(x_t) β_t(j) / scale_t.

    ξ_t(i, j) = p(s_{t−1} = i, s_t = j | x) is alpha[t − 1, i] · transition[t, i, j] · b_beta[t, j].
    """
    K = alpha.shape[1]
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if not in_range[n]:
                break
            inverse, total = 1.0 / scale[t], 0.0
            for i in range(K):
                beta = beta_last[i]
                if t < offsets[n + 1] - 1:
                    beta = 0.0
                    for j in range(K):
                        beta += transition[t + 1, i, j] * b_beta[t + 1, j]
                beta = beta if alpha[t, i] > 0.0 else 0.0  # α = 0 contributes nothing; its β may overflow
                gamma[t, i] = alpha[t, i] * beta
                b_beta[t, i] = beta * b[t, i] * inverse
                total += gamma[t, i]
            if not abs(total - 1.0) < 1e-6:
                in_range[n] = False


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
def _subtract_max(row):  # type: ignore[no-untyped-def]
    """Subtract the maximum of a row from it and return the maximum: sums over many frames would lose digits."""
    high = -np.inf
    for term in row:
        high = term if term > high else high
    if high > -np.inf:
        for j in range(len(row)):
            row[j] -= high
    return high


@compiled
def log_forward(initial, transition, logs, offsets, alpha, scale):  # type: ignore[no-untyped-def]
    """Forward recursion in logarithms: log p(s_t | x_1 … x_t) in alpha (T, K), increments in scale (T,).

    scale_t = log p(x_t | x_1 … x_{t−1}). All inputs are logarithms. An impossible frame has scale −inf, and so have
    those after it.
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
def log_backward(transition, beta_last, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """Backward variables log β_t(i) = log p(x_{t+1} … x_T | s_t = i) in beta (T, K), less the maximum of each frame."""
    K = logs.shape[1]
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                beta[t, i] = beta_last[i]
                if t < offsets[n + 1] - 1:
                    for j in range(K):
                        terms[j] = transition[t + 1, i, j] + logs[t + 1, j] + beta[t + 1, j]
                    beta[t, i] = _log_sum(terms)
            _subtract_max(beta[t])


@compiled
def lagged(transition, logs, alpha, offsets, lag, out):  # type: ignore[no-untyped-def]
    """Fixed-lag smoothing: p(s_t | x_1 … x_{t + lag}) in out, from the logarithms alpha of `log_forward`.

    For each frame of alpha the backward recursion runs over the next `lag` frames only.
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
                _subtract_max(beta)
            for i in range(K):
                terms[i] = alpha[t, i] + beta[i]
            log_norm = _log_sum(terms)
            for i in range(K):
                out[t, i] = np.exp(terms[i] - log_norm)


@compiled
def backward_sampling(transition, beta_last, alpha, offsets, uniform, path):  # type: ignore[no-untyped-def]
    """Backward sampling in logarithms: one path per sequence from p(s | x), by uniform random numbers (T,).

    alpha (T, K) is log p(s_t | x_1 … x_t): where past and future disagree, the states that the future requires have
    probabilities far below the smallest number.
    """
    K = alpha.shape[1]
    weights = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                to_next = beta_last[i] if t == offsets[n + 1] - 1 else transition[t + 1, i, path[t + 1]]
                weights[i] = alpha[t, i] + to_next
            _subtract_max(weights)
            total = 0.0
            for i in range(K):
                weights[i] = np.exp(weights[i])
                total += weights[i]
            left, path[t] = uniform[t] * total, 0
            for i in range(K):
                if weights[i] > 0.0:
                    path[t] = i
                    left -= weights[i]
                    if left < 0.0:
                        break


@compiled
def advance(delta, first, transition, logs, backpointers):  # type: ignore[no-untyped-def]
    """Viterbi recursion over frames logs (T, K): δ_t(j) = max_i [δ_{t−1}(i) + log a_t(i, j)] + log b_j(x_t).

    `delta` (K,) holds δ before these frames and is overwritten; with `first` it holds the log initial probabilities.
    `backpointers` (T, K) are the maximizing i; of equal ones the lowest.
    """
    T, K = logs.shape
    new, argmax = np.empty(K), np.empty(K, dtype=np.int64)
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                delta[j] += logs[0, j]
                backpointers[0, j] = -1
            continue
        new[:] = -np.inf
        argmax[:] = 0
        for i in range(K):
            delta_i, row = delta[i], transition[t, i]
            for j in range(K):
                score = delta_i + row[j]
                better = score > new[j]
                new[j] = score if better else new[j]
                argmax[j] = i if better else argmax[j]
        for j in range(K):
            delta[j] = new[j] + logs[t, j]
            backpointers[t, j] = argmax[j]


@compiled
def viterbi(initial, transition, logs, offsets, backpointers, last, score):  # type: ignore[no-untyped-def]
    """Viterbi recursion in logarithms: best last state (n,), log-score (n,), and backpointers (T, K)."""
    delta = np.empty(len(initial))
    for n in range(len(offsets) - 1):
        a, z = offsets[n], offsets[n + 1]
        last[n], score[n] = 0, 0.0
        if z > a:
            delta[:] = initial
            advance(delta, True, transition[a:z], logs[a:z], backpointers[a:z])
            last[n] = np.argmax(delta)
            score[n] = delta[last[n]]


@compiled
def advance_k_best(delta, first, transition, logs, backpointers, ranks):  # type: ignore[no-untyped-def]
    """List Viterbi recursion: the k best partial paths into each state.

    delta is (K, k), backpointers and ranks are (T, K, k). A backpointer is the state before and the rank of the path
    there; with `first`, delta[:, 0] holds the log initial probabilities.
    """
    T, K = logs.shape
    k = delta.shape[1]
    new = np.empty((K, k))
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                delta[j, 0] += logs[0, j]
            continue
        new[:] = -np.inf
        for j in range(K):
            for i in range(K):
                for r in range(k):
                    score = delta[i, r] + transition[t, i, j]
                    if not score > new[j, k - 1]:
                        break
                    argmax = k - 1
                    while argmax > 0 and new[j, argmax - 1] < score:
                        new[j, argmax], backpointers[t, j, argmax] = new[j, argmax - 1], backpointers[t, j, argmax - 1]
                        ranks[t, j, argmax] = ranks[t, j, argmax - 1]
                        argmax -= 1
                    new[j, argmax], backpointers[t, j, argmax], ranks[t, j, argmax] = score, i, r
        for j in range(K):
            for r in range(k):
                delta[j, r] = new[j, r] + logs[t, j]
