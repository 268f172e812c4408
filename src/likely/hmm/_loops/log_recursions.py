"""The recursions of `chains` in logarithms: slower by the exponentials, and nothing is ever lost.

They follow the arcs that there are: every other one would be an exponential of −∞.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, with_entry


@with_entry
def _arcs(table, nothing, most):  # type: ignore[no-untyped-def]
    """Rows of a table as lists: what is not `nothing` in row i stands at first[i] … first[i + 1] in (to, worth).

    No list (`first` is empty) where there is more than `most`: then the table itself is faster.
    """
    rows, K = table.shape
    count = 0
    for i in range(rows):
        for j in range(K):
            count += table[i, j] != nothing
    few = count <= most
    first = np.zeros(rows + 1 if few else 0, dtype=np.uint64)  # unsigned: three times as fast as an index with a sign
    to, worth = np.empty(count if few else 0, dtype=np.uint64), np.empty(count if few else 0)
    p = 0
    for i in range(len(first) - 1):
        for j in range(K):
            if table[i, j] != nothing:
                to[p], worth[p] = j, table[i, j]
                p += 1
        first[i + 1] = p
    return first, to, worth


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
def forward(initial, transition, final, logs, offsets, alpha, scale, total):  # type: ignore[no-untyped-def]
    """log p(x_1 … x_t, s_t), less what is in scale (T,) up to t, in alpha (T, K), the largest 0; log p(x) in total.

    Chain and frames are logarithms. The first frame of a piece of a sequence may be entered by any `initial`.
    """
    K = len(initial)
    terms = np.empty(K)
    first, source, worth = _arcs(transition.T.copy(), -np.inf, K * K)
    for n in range(len(offsets) - 1):
        total[n] = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            high = _below_its_largest(logs[t])
            for j in range(K):
                if t == offsets[n]:
                    alpha[t, j] = initial[j] + logs[t, j]
                    continue
                a, z = first[j], first[j + 1]
                for p in range(a, z):
                    terms[p - a] = alpha[t - 1, source[p]] + worth[p]
                alpha[t, j] = _log_sum(terms[: np.int64(z - a)]) + logs[t, j]
            scale[t] = high + _below_its_largest(alpha[t])
            total[n] += scale[t]
        if offsets[n + 1] > offsets[n]:
            for i in range(K):
                terms[i] = alpha[offsets[n + 1] - 1, i] + final[i]
            total[n] += _log_sum(terms)


@compiled
def backward(transition, final, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """log p(x_{t+1} … x_T | s_t) in beta (T, K), less the largest of each frame."""
    K = len(final)
    terms = np.empty(K)
    first, to, worth = _arcs(transition, -np.inf, K * K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                if t == offsets[n + 1] - 1:
                    beta[t, i] = final[i]
                    continue
                a, z = first[i], first[i + 1]
                for p in range(a, z):
                    terms[p - a] = worth[p] + logs[t + 1, to[p]] + beta[t + 1, to[p]]
                beta[t, i] = _log_sum(terms[: np.int64(z - a)])
            _below_its_largest(beta[t])


@compiled
def moved(transition, logs, offsets, alpha, beta, total, weight, gamma, out):  # type: ignore[no-untyped-def]
    """Expected states gamma (T, K), and moves between frames, added to out (K, K), after `forward` and `backward`."""
    K = len(transition)
    first, to, worth = _arcs(transition, -np.inf, K * K)
    states, pairs = np.empty(K), np.empty(len(to))
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            if total[n] == -np.inf:
                gamma[t] = 0.0
                continue
            for i in range(K):
                states[i] = alpha[t, i] + beta[t, i]
            whole = _log_sum(states)
            for i in range(K):
                gamma[t, i] = weight[n] * np.exp(states[i] - whole)
            if t == offsets[n]:
                continue
            for i in range(K):
                for p in range(first[i], first[i + 1]):
                    pairs[p] = alpha[t - 1, i] + worth[p] + logs[t, to[p]] + beta[t, to[p]]
            whole = _log_sum(pairs)
            for i in range(K):
                for p in range(first[i], first[i + 1]):
                    out[i, to[p]] += weight[n] * np.exp(pairs[p] - whole)
