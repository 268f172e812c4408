"""Viterbi recursion, k-best paths, backtracking, and backward sampling of state paths."""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, with_entry

MANY = 24  # states from which a sparse transition matrix may be faster,
FEW = 0.2  # where no more than this weights of its entries is possible


@with_entry
def _sparse_rows(matrix, zero, max_entries):  # type: ignore[no-untyped-def]
    """Compressed sparse rows (indptr, indices, data) of a matrix: the entries that differ from `zero`.

    `indptr` is empty where there are more than `max_entries`: then the dense matrix is faster.
    """
    rows, K = matrix.shape
    count = 0
    for i in range(rows):
        for j in range(K):
            count += matrix[i, j] != zero
    is_sparse = count <= max_entries
    indptr = np.zeros(rows + 1 if is_sparse else 0, dtype=np.uint64)  # unsigned: three times as fast as signed
    indices = np.empty(count if is_sparse else 0, dtype=np.uint64)
    data = np.empty(count if is_sparse else 0)
    p = 0
    for i in range(len(indptr) - 1):
        for j in range(K):
            if matrix[i, j] != zero:
                indices[p], data[p] = j, matrix[i, j]
                p += 1
        indptr[i + 1] = p
    return indptr, indices, data


@compiled
def advance(delta, first, transition, logs, backpointers):  # type: ignore[no-untyped-def]
    """Viterbi recursion δ_t(j) = max_i [δ_{t−1}(i) + log a_ij] + log b_j(x_t) over frames logs (T, K).

    `delta` (K,) holds δ before these frames and is overwritten; with `first` it holds the log initial probabilities.
    `backpointers` (T, K) are ψ_t(j), the maximizing i; of equal ones the lowest.
    """
    T, K = logs.shape
    new, argmax = np.empty(K), np.empty(K, dtype=np.int64)
    indptr, indices, data = _sparse_rows(transition.T, -np.inf, int(FEW * K * K) if K >= MANY else -1)
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                delta[j] += logs[0, j]
                backpointers[0, j] = -1
            continue
        new[:] = -np.inf
        argmax[:] = 0
        if len(indptr) > 0:
            _sparse_max_product(delta, indptr, indices, data, new, argmax)
        else:
            for i in range(K):
                delta_i, row = delta[i], transition[i]
                for j in range(K):
                    score = delta_i + row[j]
                    better = score > new[j]
                    new[j] = score if better else new[j]
                    argmax[j] = i if better else argmax[j]
        for j in range(K):
            delta[j] = new[j] + logs[t, j]
            backpointers[t, j] = argmax[j]


@compiled
def _sparse_max_product(delta, indptr, indices, data, new, argmax):  # type: ignore[no-untyped-def]
    """new[j] = max_i δ(i) + log a_ij over the possible transitions into each state j, and the maximizing i."""
    for j in range(len(new)):
        maximum, best = -np.inf, np.int64(0)
        for p in range(indptr[j], indptr[j + 1]):
            score = delta[indices[p]] + data[p]
            better = score > maximum
            maximum = score if better else maximum
            best = np.int64(indices[p]) if better else best
        new[j], argmax[j] = maximum, best


@compiled
def backtrack(backpointers, offsets, last, path):  # type: ignore[no-untyped-def]
    """Backtracking: follow the backpointers (T, K) from the last state (n,) of each sequence; path (T,)."""
    for n in range(len(offsets) - 1):
        state = last[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = state
            state = backpointers[t, state]


@compiled
def _max_product(delta, t, transition, out):  # type: ignore[no-untyped-def]
    """out[j] = max_i δ_t(i) + log a_ij, four rows at a time, as in `scaled_recursions._vector_matrix`."""
    K = len(out)
    full = K - K % 4
    for i in range(0, full, 4):
        a, b, c, d = delta[t, i], delta[t, i + 1], delta[t, i + 2], delta[t, i + 3]
        for j in range(K):
            w, x, y, z = (
                a + transition[i, j],
                b + transition[i + 1, j],
                c + transition[i + 2, j],
                d + transition[i + 3, j],
            )
            w = x if x > w else w
            y = z if z > y else y
            w = y if y > w else w
            out[j] = w if w > out[j] else out[j]
    for i in range(full, K):
        a = delta[t, i]
        for j in range(K):
            w = a + transition[i, j]
            out[j] = w if w > out[j] else out[j]


@compiled
def viterbi(initial, transition, final, scores, offsets, last, score):  # type: ignore[no-untyped-def]
    """Viterbi recursion: scores log b_j(x_t) (T, K) become δ_t(j); best last state (n,) and its log-score (n,).

    Only maxima are stored: `backtrack_by_scores` finds the backpointers again, for the states of the path alone.
    """
    K = len(initial)
    new, unused = np.empty(K), np.empty(K, dtype=np.int64)
    indptr, indices, data = _sparse_rows(transition.T, -np.inf, int(FEW * K * K) if K >= MANY else -1)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            if t == offsets[n]:
                for j in range(K):
                    scores[t, j] += initial[j]
                continue
            new[:] = -np.inf
            if len(indptr) > 0:
                _sparse_max_product(scores[t - 1], indptr, indices, data, new, unused)
            else:
                _max_product(scores, t - 1, transition, new)
            for j in range(K):
                scores[t, j] += new[j]
        last[n], score[n] = 0, -np.inf
        if offsets[n + 1] > offsets[n]:
            for j in range(K):
                total = scores[offsets[n + 1] - 1, j] + final[j]
                if total > score[n]:
                    last[n], score[n] = j, total


@compiled
def backtrack_by_scores(transposed, delta, offsets, last, path):  # type: ignore[no-untyped-def]
    """Backtracking without stored backpointers: paths (T,) from the last states (n,), by the δ_t of `viterbi`.

    `transposed` is the transposed log transition matrix. Of equal predecessors the lowest state wins.
    """
    K = delta.shape[1]
    for n in range(len(offsets) - 1):
        state = last[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = state
            if t > offsets[n]:
                maximum, predecessor = -np.inf, 0
                for i in range(K):
                    score = delta[t - 1, i] + transposed[state, i]
                    if score > maximum:
                        maximum, predecessor = score, i
                state = predecessor


@compiled
def k_best(initial, transition, final, logs, k, score, path):  # type: ignore[no-untyped-def]
    """List Viterbi: the k best paths (k, T) of one sequence and their log-scores (k,), −inf where there are fewer.

    Each state keeps its k best partial paths in order; a backpointer is the state before and the rank there.
    """
    T, K = logs.shape
    delta = np.full((K, k), -np.inf)
    backpointers, ranks = np.zeros((T, K, k), dtype=np.int32), np.zeros((T, K, k), dtype=np.int32)
    new = np.empty((K, k))
    indptr, indices, data = _sparse_rows(transition.T, -np.inf, K * K)
    for j in range(K):
        delta[j, 0] = initial[j] + logs[0, j]
    for t in range(1, T):
        for j in range(K):
            for r in range(k):
                new[j, r] = -np.inf
            for p in range(indptr[j], indptr[j + 1]):
                i = np.int64(indices[p])
                for r in range(k):
                    candidate = delta[i, r] + data[p]
                    if not candidate > new[j, k - 1]:
                        break
                    _insert(new[j], backpointers[t, j], ranks[t, j], candidate, i, r)
        for j in range(K):
            for r in range(k):
                delta[j, r] = new[j, r] + logs[t, j]
    score[:] = -np.inf
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


@compiled
def backward_sampling(transition, final, alpha, offsets, uniform, path, in_range):  # type: ignore[no-untyped-def]
    """Backward sampling: one path per sequence from p(s | x), the last state first, by uniform random numbers (T,).

    alpha (T, K) are the filtered probabilities of `scaled_recursions.forward`, for sequences that are `in_range` (n,);
    where no state can be sampled because of underflow, `in_range` becomes false and there is no path.
    """
    K = len(final)
    weights = np.empty(K)
    for n in range(len(offsets) - 1):
        t = offsets[n + 1] - 1
        while in_range[n] and t >= offsets[n]:
            for i in range(K):
                to_next = final[i] if t == offsets[n + 1] - 1 else transition[i, path[t + 1]]
                weights[i] = alpha[t, i] * to_next
            path[t] = _categorical_sample(weights, uniform[t])
            in_range[n] = path[t] >= 0
            t -= 1


@compiled
def log_backward_sampling(transition, final, alpha, offsets, uniform, path, in_range):  # type: ignore[no-untyped-def]
    """Backward sampling in logarithms, with alpha of `log_recursions.forward`: no underflow."""
    K = len(final)
    weights = np.empty(K)
    for n in range(len(offsets) - 1):
        t, in_range[n] = offsets[n + 1] - 1, True
        while in_range[n] and t >= offsets[n]:
            maximum = -np.inf
            for i in range(K):
                to_next = final[i] if t == offsets[n + 1] - 1 else transition[i, path[t + 1]]
                weights[i] = alpha[t, i] + to_next
                maximum = weights[i] if weights[i] > maximum else maximum
            for i in range(K):
                weights[i] = np.exp(weights[i] - maximum) if maximum > -np.inf else 0.0
            path[t] = _categorical_sample(weights, uniform[t])
            in_range[n] = path[t] >= 0
            t -= 1


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
