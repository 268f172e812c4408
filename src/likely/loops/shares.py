"""Shares of a row among K members, in two sweeps around one exponential: what NumPy does in ten.

The numbers are those of the twin in `models.responsibilities`, to the last bit.
"""

from __future__ import annotations

from likely.loops.compile import compiled


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
def add_up(logs, shares, nothing, total, unsure):  # type: ignore[no-untyped-def]
    """Sums over members of exp(log) and exp(log) · log (n,); what was `nothing` has no share."""
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


@compiled
def scale(shares, factor):  # type: ignore[no-untyped-def]
    """shares (K, n) times factor (n,)."""
    K, n = shares.shape
    for k in range(K):
        for r in range(n):
            shares[k, r] *= factor[r]
