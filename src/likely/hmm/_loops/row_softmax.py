"""Multinomial logistic transition probabilities of every frame: normalization of each row."""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled


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
def normalize(logs, probs):  # type: ignore[no-untyped-def]
    """Log-probabilities (T, K, K) of each row after `subtract_row_max`, and probs, which are exp(logs) on input."""
    T, K, _ = logs.shape
    for t in range(T):
        for i in range(K):
            row, out = logs[t, i], probs[t, i]
            total = 0.0
            for j in range(K):
                total += out[j]
            shift, inverse = np.log(total), 1.0 / total
            for j in range(K):
                row[j] -= shift
                out[j] *= inverse
