"""Responsibilities of K components, in two passes around one exponential; NumPy takes ten passes.

The results equal those of the NumPy version in `mixture.responsibilities` bit for bit.
"""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def drop(logs, top, nothing):  # type: ignore[no-untyped-def]
    """Subtract the maximum over k from logs (K, n), store it in top (n,), and clip from below at `nothing`."""
    K, n = logs.shape
    for r in range(n):
        top[r] = logs[0, r]
    for k in range(1, K):
        for r in range(n):
            top[r] = logs[k, r] if logs[k, r] > top[r] else top[r]
    for k in range(K):
        for r in range(n):
            low = logs[k, r] - top[r]
            logs[k, r] = low if low > nothing else nothing


@compiled
def share_out(logs, shares, nothing, weight, total, sum_r_log_r):  # type: ignore[no-untyped-def]
    """Normalize shares (K, n) = exp(logs) to sum to weight (n,); store Σ share and Σ share · log of each row.

    Entries clipped to `nothing` become 0. A row without any keeps a total of 0; the caller handles it.
    """
    K, n = logs.shape
    for r in range(n):
        total[r] = 0.0
        sum_r_log_r[r] = 0.0
    for k in range(K):
        for r in range(n):
            share = shares[k, r] if logs[k, r] > nothing else 0.0
            shares[k, r] = share
            total[r] += share
            sum_r_log_r[r] += share * logs[k, r]
    for k in range(K):
        for r in range(n):
            shares[k, r] *= weight[r] / total[r]
