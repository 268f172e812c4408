"""Responsibilities of K components, in two passes around one exponential; NumPy takes ten passes.

The results equal those of the NumPy version in `mixture.responsibilities` bit for bit.
"""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def subtract_max(logs, top, floor):  # type: ignore[no-untyped-def]
    """Subtract the maximum over k from logs (K, n), store it in top (n,), and clip from below at `floor`."""
    K, n = logs.shape
    for r in range(n):
        top[r] = logs[0, r]
    for k in range(1, K):
        for r in range(n):
            top[r] = logs[k, r] if logs[k, r] > top[r] else top[r]
    for k in range(K):
        for r in range(n):
            low = logs[k, r] - top[r]
            logs[k, r] = low if low > floor else floor


@compiled
def normalize_to_weight(logs, resp, floor, weight, total, sum_r_log_r):  # type: ignore[no-untyped-def]
    """Normalize resp (K, n) = exp(logs) to sum to weight (n,); store Σ r_k and Σ r_k · log of each row.

    Entries clipped to `floor` become 0. A row without any keeps a total of 0; the caller handles it.
    """
    K, n = logs.shape
    for r in range(n):
        total[r] = 0.0
        sum_r_log_r[r] = 0.0
    for k in range(K):
        for r in range(n):
            r_k = resp[k, r] if logs[k, r] > floor else 0.0
            resp[k, r] = r_k
            total[r] += r_k
            sum_r_log_r[r] += r_k * logs[k, r]
    for k in range(K):
        for r in range(n):
            resp[k, r] *= weight[r] / total[r]
