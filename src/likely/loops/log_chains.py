"""The recursions of `chains` in logarithms: slower by the exponentials, and nothing is ever lost."""

from __future__ import annotations

import numpy as np

from likely.loops.compile import compiled


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
def forward(starts, moves, ends, logs, offsets, alpha, total):  # type: ignore[no-untyped-def]
    """log p(x_1 … x_t, s_t) in alpha (T, K) and log p(x) in total (n,); chain and frames are logarithms."""
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
                    terms[i] = alpha[t - 1, i] + moves[i, j]
                alpha[t, j] = _log_sum(terms) + logs[t, j]
        if offsets[n + 1] > offsets[n]:
            for i in range(K):
                terms[i] = alpha[offsets[n + 1] - 1, i] + ends[i]
            total[n] = _log_sum(terms)


@compiled
def backward(moves, ends, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """log p(x_{t+1} … x_T | s_t) in beta (T, K)."""
    K = len(ends)
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            for i in range(K):
                if t == offsets[n + 1] - 1:
                    beta[t, i] = ends[i]
                    continue
                for j in range(K):
                    terms[j] = moves[i, j] + logs[t + 1, j] + beta[t + 1, j]
                beta[t, i] = _log_sum(terms)


@compiled
def moved(moves, logs, offsets, alpha, beta, total, weight, out):  # type: ignore[no-untyped-def]
    """Expected moves between frames, added to out (K, K)."""
    K = len(moves)
    for n in range(len(offsets) - 1):
        if total[n] == -np.inf:
            continue
        for t in range(offsets[n] + 1, offsets[n + 1]):
            for i in range(K):
                for j in range(K):
                    log = alpha[t - 1, i] + moves[i, j] + logs[t, j] + beta[t, j] - total[n]
                    if log > -745.0:
                        out[i, j] += weight[n] * np.exp(log)
