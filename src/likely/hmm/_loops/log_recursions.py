"""Recursions of an HMM in logarithms: forward, backward, Viterbi, k-best paths, backward sampling of paths.

Forward and backward are slower than the scaled ones, and never underflow: their reference and fallback. Transitions are
matrices (S, K, K): one of them (S = 1) for all frames, or one that leads into each frame (S = T), of which that of a
sequence's first frame is not used. They are read by lists of possible transitions where an impossible one would cost
an exponential of −∞, and where few of many are possible.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, compiled_for_size

MANY = 24  # states from which lists of possible transitions may be faster for maxima,
FEW = 0.2  # where no more than this share of them is possible


@compiled
def _fill(a, value):  # type: ignore[no-untyped-def]
    """Entry by entry: an assignment to a slice takes a second to compile, for its error message."""
    for i in range(len(a)):
        a[i] = value


@compiled
def _possible(transition, max_entries, into):  # type: ignore[no-untyped-def]
    """The transitions that are possible in any matrix (S, K, K), by row: (indptr, indices); data is that of the first.

    With `into` by column: the transitions into each state. (`transpose` takes three seconds to compile.)
    `indptr` is empty where there are more than `max_entries`.
    """
    S, K, _ = transition.shape
    mask, count = np.zeros((K, K), dtype=np.bool_), 0
    for s in range(S):
        for i in range(K):
            for j in range(K):
                row, column = (j, i) if into else (i, j)
                if transition[s, i, j] != -np.inf and not mask[row, column]:
                    mask[row, column] = True
                    count += 1
    is_listed = count <= max_entries
    indptr = np.zeros(K + 1 if is_listed else 0, dtype=np.uint64)  # unsigned: three times as fast as signed
    indices = np.empty(count if is_listed else 0, dtype=np.uint64)
    data = np.empty(count if is_listed else 0)
    p = 0
    for i in range(len(indptr) - 1):
        for j in range(K):
            if mask[i, j]:
                indices[p], data[p] = j, transition[0, j, i] if into else transition[0, i, j]
                p += 1
        indptr[i + 1] = p
    return indptr, indices, data


@compiled
def _log_sum(terms):  # type: ignore[no-untyped-def]
    """log Σ exp(terms)."""
    maximum = -np.inf
    for term in terms:
        maximum = term if term > maximum else maximum
    if maximum == -np.inf:
        return maximum
    total = 0.0
    for term in terms:
        total += np.exp(term - maximum)
    return maximum + np.log(total)


# ---------------------------------------------------------- forward–backward


@compiled_for_size
def forward(initial, transition, final, logs, offsets, alpha, scale, total):  # type: ignore[no-untyped-def]
    """Forward variables log α_t(j) = log p(s_t = j | x_1 … x_t) in alpha (T, K), increments in scale (T,).

    scale_t = log p(x_t | x_1 … x_{t−1}); log p(x) is in total (n,). All inputs are logarithms; logs (T, K) are log
    b_j(x_t), the largest of each frame near 0. An impossible frame has scale −inf, and so have those after it. For a
    piece of a sequence, `initial` is the prediction for its first frame.
    """
    K = len(initial)
    varying, terms = len(transition) > 1, np.empty(K)
    indptr, indices, data = _possible(transition, K * K, True)
    for n in range(len(offsets) - 1):
        total[n] = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            for j in range(K):
                if t == offsets[n]:
                    alpha[t, j] = initial[j] + logs[t, j]
                    continue
                a, z = indptr[j], indptr[j + 1]
                for p in range(a, z):
                    arc = transition[t, indices[p], j] if varying else data[p]
                    terms[p - a] = alpha[t - 1, indices[p]] + arc
                alpha[t, j] = _log_sum(terms[: np.int64(z - a)]) + logs[t, j]
            scale[t] = _log_sum(alpha[t])
            total[n] += scale[t]
            if scale[t] > -np.inf:
                for j in range(K):
                    alpha[t, j] -= scale[t]
        if offsets[n + 1] > offsets[n]:
            for i in range(K):
                terms[i] = alpha[offsets[n + 1] - 1, i] + final[i]
            total[n] += _log_sum(terms)


@compiled_for_size
def backward(transition, final, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """Backward variables log β_t(i) = log p(x_{t+1} … x_T | s_t = i) in beta (T, K), less the maximum of each frame."""
    K = len(final)
    varying, terms = len(transition) > 1, np.empty(K)
    indptr, indices, data = _possible(transition, K * K, False)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            maximum = -np.inf
            for i in range(K):
                beta[t, i] = final[i]
                if t < offsets[n + 1] - 1:
                    a, z = indptr[i], indptr[i + 1]
                    for p in range(a, z):
                        arc = transition[t + 1, i, indices[p]] if varying else data[p]
                        terms[p - a] = arc + logs[t + 1, indices[p]] + beta[t + 1, indices[p]]
                    beta[t, i] = _log_sum(terms[: np.int64(z - a)])
                maximum = beta[t, i] if beta[t, i] > maximum else maximum
            if maximum > -np.inf:  # else sums over many frames would lose digits
                for i in range(K):
                    beta[t, i] -= maximum


@compiled_for_size
def expected_counts(transition, logs, offsets, alpha, beta, total, weight, gamma, transition_counts):  # type: ignore[no-untyped-def]
    """γ_t(i) in gamma (T, K) and ξ_t(i, j), from alpha and beta, times weight (n,).

    transition_counts (S, K, K) gains ξ_t of each frame, or with S = 1 their sum.
    """
    K = transition.shape[1]
    varying = len(transition) > 1
    indptr, indices, data = _possible(transition, K * K, False)
    log_gamma, log_xi = np.empty(K), np.empty(len(indices))
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            if total[n] == -np.inf:
                _fill(gamma[t], 0.0)
                continue
            for i in range(K):
                log_gamma[i] = alpha[t, i] + beta[t, i]
            log_norm = _log_sum(log_gamma)
            for i in range(K):
                gamma[t, i] = weight[n] * np.exp(log_gamma[i] - log_norm)
            if t == offsets[n]:
                continue
            for i in range(K):
                for p in range(indptr[i], indptr[i + 1]):
                    arc = transition[t, i, indices[p]] if varying else data[p]
                    log_xi[p] = alpha[t - 1, i] + arc + logs[t, indices[p]] + beta[t, indices[p]]
            log_norm = _log_sum(log_xi)
            for i in range(K):
                for p in range(indptr[i], indptr[i + 1]):
                    xi = weight[n] * np.exp(log_xi[p] - log_norm)
                    transition_counts[t if varying else 0, i, indices[p]] += xi


# ------------------------------------------------------------- Viterbi paths


@compiled
def _max_product(delta, t, matrix, out):  # type: ignore[no-untyped-def]
    """out[j] = max_i δ_t(i) + log a_ij, four rows at a time, as in `scaled_recursions._vector_matrix`."""
    K = len(out)
    full = K - K % 4
    for i in range(0, full, 4):
        a, b, c, d = delta[t, i], delta[t, i + 1], delta[t, i + 2], delta[t, i + 3]
        for j in range(K):
            w, x, y, z = (
                a + matrix[i, j],
                b + matrix[i + 1, j],
                c + matrix[i + 2, j],
                d + matrix[i + 3, j],
            )
            w = x if x > w else w
            y = z if z > y else y
            w = y if y > w else w
            out[j] = w if w > out[j] else out[j]
    for i in range(full, K):
        a = delta[t, i]
        for j in range(K):
            w = a + matrix[i, j]
            out[j] = w if w > out[j] else out[j]


@compiled
def _sparse_max_product(delta, t, indptr, indices, data, out):  # type: ignore[no-untyped-def]
    """The same over the possible transitions into each state, for a constant matrix."""
    for j in range(len(out)):
        maximum = -np.inf
        for p in range(indptr[j], indptr[j + 1]):
            score = delta[t, indices[p]] + data[p]
            maximum = score if score > maximum else maximum
        out[j] = maximum


@compiled
def viterbi(initial, transition, final, scores, offsets, last, score):  # type: ignore[no-untyped-def]
    """Viterbi recursion: scores log b_j(x_t) (T, K) become δ_t(j) = max_i [δ_{t−1}(i) + log a_ij] + log b_j(x_t).

    The best last state of each sequence is in last (n,), its log-score in score (n,). Only maxima are stored:
    `backtrack` finds the backpointers again, for the states of the path alone.
    """
    K = len(initial)
    varying, matrix, new = len(transition) > 1, transition[0], np.empty(K)
    most = int(FEW * K * K) if K >= MANY and not varying else -1
    indptr, indices, data = _possible(transition, most, True)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            if t == offsets[n]:
                for j in range(K):
                    scores[t, j] += initial[j]
                continue
            _fill(new, -np.inf)
            if len(indptr) > 0:
                _sparse_max_product(scores, t - 1, indptr, indices, data, new)
            elif varying:
                _max_product(scores, t - 1, transition[t], new)
            else:
                _max_product(scores, t - 1, matrix, new)
            for j in range(K):
                scores[t, j] += new[j]
        last[n], score[n] = 0, -np.inf
        if offsets[n + 1] > offsets[n]:
            for j in range(K):
                total = scores[offsets[n + 1] - 1, j] + final[j]
                if total > score[n]:
                    last[n], score[n] = j, total


@compiled_for_size
def backtrack(transposed, delta, offsets, last, path):  # type: ignore[no-untyped-def]
    """Backtracking: paths (T,) from the last states (n,), by the δ_t of `viterbi`.

    `transposed` (S, K, K) are the transposed log transition matrices. Of equal predecessors the lowest state wins.
    """
    K, varying = delta.shape[1], len(transposed) > 1
    for n in range(len(offsets) - 1):
        state = last[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = state
            if t > offsets[n]:
                maximum, predecessor, s = -np.inf, 0, t if varying else 0
                for i in range(K):
                    score = delta[t - 1, i] + transposed[s, state, i]
                    if score > maximum:
                        maximum, predecessor = score, i
                state = predecessor


@compiled
def k_best(initial, transition, final, logs, k, score, path):  # type: ignore[no-untyped-def]
    """List Viterbi: the k best paths (k, T) of one sequence and their log-scores (k,), −inf where there are fewer.

    Each state keeps its k best partial paths in order; a backpointer is the state before and the rank there.
    """
    T, K = logs.shape
    delta, varying = np.empty((K, k)), len(transition) > 1
    backpointers, ranks = np.zeros((T, K, k), dtype=np.int32), np.zeros((T, K, k), dtype=np.int32)
    new = np.empty((K, k))
    indptr, indices, data = _possible(transition, K * K, True)
    for j in range(K):
        _fill(delta[j], -np.inf)
        delta[j, 0] = initial[j] + logs[0, j]
    for t in range(1, T):
        for j in range(K):
            for r in range(k):
                new[j, r] = -np.inf
            for p in range(indptr[j], indptr[j + 1]):
                i = np.int64(indices[p])
                arc = transition[t, i, j] if varying else data[p]
                for r in range(k):
                    candidate = delta[i, r] + arc
                    if not candidate > new[j, k - 1]:
                        break
                    _insert(new[j], backpointers[t, j], ranks[t, j], candidate, i, r)
        for j in range(K):
            for r in range(k):
                delta[j, r] = new[j, r] + logs[t, j]
    _fill(score, -np.inf)
    state, rank = np.zeros(k, dtype=np.int32), np.zeros(k, dtype=np.int32)
    for j in range(K):
        for r in range(k):
            total = delta[j, r] + final[j]
            if not total > score[k - 1]:
                break
            _insert(score, state, rank, total, j, r)
    for p in range(k):
        j, r = state[p], rank[p]
        for t in range(T - 1, -1, -1):
            path[p, t] = j
            j, r = backpointers[t, j, r], ranks[t, j, r]


@compiled
def _insert(scores, states, ranks, score, state, rank):  # type: ignore[no-untyped-def]
    """Insert into a list in descending order and drop its last; among equals the earlier ones stay before."""
    r = len(scores) - 1
    while r > 0 and scores[r - 1] < score:
        scores[r], states[r], ranks[r] = scores[r - 1], states[r - 1], ranks[r - 1]
        r -= 1
    scores[r], states[r], ranks[r] = score, state, rank


# ------------------------------------------------------------- sampled paths


@compiled_for_size
def backward_sampling(transition, final, alpha, offsets, uniform, path):  # type: ignore[no-untyped-def]
    """Backward sampling: one path per sequence from p(s | x), the last state first, by uniform random numbers (T,).

    alpha (T, K) are the logarithms of `forward`, or those of the scaled one. Where no state is possible, path is −1.
    """
    K = len(final)
    varying, weights = len(transition) > 1, np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = -1
            if t < offsets[n + 1] - 1 and path[t + 1] < 0:
                continue
            maximum = -np.inf
            for i in range(K):
                if t == offsets[n + 1] - 1:
                    weights[i] = alpha[t, i] + final[i]
                else:
                    weights[i] = alpha[t, i] + transition[t + 1 if varying else 0, i, path[t + 1]]
                maximum = weights[i] if weights[i] > maximum else maximum
            if maximum > -np.inf:
                for i in range(K):
                    weights[i] = np.exp(weights[i] - maximum)
                path[t] = _categorical_sample(weights, uniform[t])


@compiled
def _categorical_sample(weights, uniform):  # type: ignore[no-untyped-def]
    """Sample an index by inversion of a uniform number, from weights that need not sum to 1; −1 if all are zero."""
    total = 0.0
    for one in weights:
        total += one
    left, chosen = uniform * total, -1
    for i in range(len(weights)):
        if weights[i] > 0.0:
            chosen = i
            left -= weights[i]
            if left < 0.0:
                break
    return chosen
