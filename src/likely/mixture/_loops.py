"""Shares of a row among K members, in two sweeps around one exponential: what NumPy does in ten.

The numbers are those of the twin in `mixture.responsibilities`, to the last bit.
"""

from __future__ import annotations

from likely.numerics.compile import compiled


@compiled
def drop(logs, top, nothing):  # type: ignore[no-untyped-def]
    """logs (K, n) less the largest of each column, which goes to top (n,); what is below `nothing` becomes that."""
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
def share_out(logs, shares, nothing, weight, total, unsure):  # type: ignore[no-untyped-def]
    """shares (K, n) = exp(logs) become parts of weight (n,); sums of share and share · log go to the other two.

    What was `nothing` has no share. A column without any keeps a total of 0, for somebody else to decide.
    """
    K, n = logs.shape
    for r in range(n):
        total[r] = 0.0
        unsure[r] = 0.0
    for k in range(K):
        for r in range(n):
            share = shares[k, r] if logs[k, r] > nothing else 0.0
            shares[k, r] = share
            total[r] += share
            unsure[r] += share * logs[k, r]
    for k in range(K):
        for r in range(n):
            shares[k, r] *= weight[r] / total[r]
