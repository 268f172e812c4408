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
def forward(starts, moves, ends, logs, offsets, alpha, scale, total):  # type: ignore[no-untyped-def]
    """log p(x_1 … x_t, s_t), less what is in scale (T,) up to t, in alpha (T, K), the largest 0; log p(x) in total.

    Chain and frames are logarithms. The first frame of a piece of a sequence may be entered by any `starts`.
    """
    K = len(starts)
    terms = np.empty(K)
    for n in range(len(offsets) - 1):
        total[n] = 0.0
        for t in range(offsets[n], offsets[n + 1]):
            high = _below_its_largest(logs[t])
            for j in range(K):
                if t == offsets[n]:
                    alpha[t, j] = starts[j] + logs[t, j]
                    continue
                for i in range(K):
                    terms[i] = alpha[t - 1, i] + moves[i, j]
                alpha[t, j] = _log_sum(terms) + logs[t, j]
            scale[t] = high + _below_its_largest(alpha[t])
            total[n] += scale[t]
        if offsets[n + 1] > offsets[n]:
            for i in range(K):
                terms[i] = alpha[offsets[n + 1] - 1, i] + ends[i]
            total[n] += _log_sum(terms)


@compiled
def backward(moves, ends, logs, offsets, beta):  # type: ignore[no-untyped-def]
    """log p(x_{t+1} … x_T | s_t) in beta (T, K), less the largest of each frame."""
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
            _below_its_largest(beta[t])


@compiled
def moved(moves, logs, offsets, alpha, beta, total, weight, gamma, out):  # type: ignore[no-untyped-def]
    """Expected states gamma (T, K), and moves between frames, added to out (K, K), after `forward` and `backward`."""
    K = len(moves)
    states, pairs = np.empty(K), np.empty(K * K)
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
                for j in range(K):
                    pairs[i * K + j] = alpha[t - 1, i] + moves[i, j] + logs[t, j] + beta[t, j]
            whole = _log_sum(pairs)
            for i in range(K):
                for j in range(K):
                    out[i, j] += weight[n] * np.exp(pairs[i * K + j] - whole)
