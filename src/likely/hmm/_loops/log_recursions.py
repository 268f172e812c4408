"""Forward and backward recursions of an HMM in logarithms: slower than the scaled ones, and never underflow.

Transition matrices are sparse here: an impossible transition would cost an exponential of −∞.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, with_entry


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


@compiled
def _subtract_max(row):  # type: ignore[no-untyped-def]
    """Subtract the maximum of a row from it and return the maximum: sums over many frames would lose digits."""
    maximum = -np.inf
    for term in row:
        maximum = term if term > maximum else maximum
    if maximum > -np.inf:
        for j in range(len(row)):
            row[j] -= maximum
    return maximum


@compiled
def forward(initial, transition, final, logs, offsets, alpha, scale, total):  # type: ignore[no-untyped-def]
    """Forward variables log α_t(j) = log p(x_1 … x_t, s_t = j) − Σ_{u ≤ t} scale_u in alpha (T, K).

    The largest of each frame is 0; log p(x) is in total (n,). All inputs are logarithms; logs (T, K) are log b_j(x_t).
    For a piece of a sequence, `initial` is the prediction for its first frame.
    """
    K = len(initial)
    terms = np.empty(K)
    indptr, indices, data = _sparse_rows(transition.T.copy(), -np.inf, K * K)
    for n in range(len(offsets) - 1):
        total[n] = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            maximum = _subtract_max(logs[t])
            for j in range(K):
                if t == offsets[n]:
                    alpha[t, j] = initial[j] + logs[t, j]
                    continue
                a, z = indptr[j], indptr[j + 1]
                for p in range(a, z):
                    terms[p - a] = alpha[t - 1, indices[p]] + data[p]
                alpha[t, j] = _log_sum(terms[: np.int64(z - a)]) + logs[t, j]
            scale[t] = maximum + _subtract_max(alpha[t])
            total[n] += scale[t]
        if offsets[n + 1] > offsets[n]:
            for i in range(K):
                terms[i] = alpha[offsets[n + 1] - 1, i] + final[i]
            total[n] += _log_sum(terms)


@compiled
def backward(transition, final, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """Backward variables log β_t(i) = log p(x_{t+1} … x_T | s_t = i) in beta (T, K), less the maximum of each frame."""
    K = len(final)
    terms = np.empty(K)
    indptr, indices, data = _sparse_rows(transition, -np.inf, K * K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                if t == offsets[n + 1] - 1:
                    beta[t, i] = final[i]
                    continue
                a, z = indptr[i], indptr[i + 1]
                for p in range(a, z):
                    terms[p - a] = data[p] + logs[t + 1, indices[p]] + beta[t + 1, indices[p]]
                beta[t, i] = _log_sum(terms[: np.int64(z - a)])
            _subtract_max(beta[t])


@compiled
def expected_counts(transition, logs, offsets, alpha, beta, total, weight, gamma, transition_counts):  # type: ignore[no-untyped-def]
    """γ_t(i) in gamma (T, K) and Σ_t ξ_t(i, j), added to transition_counts (K, K), from alpha and beta."""
    K = len(transition)
    indptr, indices, data = _sparse_rows(transition, -np.inf, K * K)
    log_gamma, log_xi = np.empty(K), np.empty(len(indices))
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            if total[n] == -np.inf:
                gamma[t] = 0.0
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
                    log_xi[p] = alpha[t - 1, i] + data[p] + logs[t, indices[p]] + beta[t, indices[p]]
            log_norm = _log_sum(log_xi)
            for i in range(K):
                for p in range(indptr[i], indptr[i + 1]):
                    transition_counts[i, indices[p]] += weight[n] * np.exp(log_xi[p] - log_norm)
