"""Exchange (Hartigan) k-means: one compiled pass that moves single rows and updates means at once."""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled

LEAST = 1e-12  # minimum relative gain of a move: less is rounding, and could cycle


@compiled
def _cluster_cost(entries, scatter, lean, d):  # type: ignore[no-untyped-def]
    """A cluster's part of the criterion at its best variance; `lean` is d · typical, or 0 with equal variances."""
    if lean <= 0.0:
        return scatter
    return 0.5 * (entries + d) * np.log((max(scatter, 0.0) + lean) / (entries + d))


@compiled
def exchange_pass(u, weight, has_missing, lean, labels, mean, seen, rows, entries, scatter):  # type: ignore[no-untyped-def]
    """Visit each row once; returns the number of moved rows and the change of the criterion.

    Taking x out of a cluster lowers its scatter by Σ_j w n_j / (n_j − w) (x_j − m_j)², putting it into another raises
    that by Σ_j w n_j / (n_j + w) (x_j − m_j)², over the observed columns; n_j (k, d) is `seen`. `rows` (k,) are
    numbers of rows: the last one does not leave. Without `has_missing` all n_j of a cluster are equal.
    """
    n, d = u.shape
    k = len(mean)
    moved, change = 0, 0.0
    for i in range(n):
        q, w = labels[i], weight[i]
        if rows[q] == 1:
            continue
        out, known = 0.0, 0.0
        for j in range(d):
            z = u[i, j] - mean[q, j]
            if z == z:
                known += w
                if seen[q, j] > w * (1.0 + LEAST):
                    out += w * seen[q, j] / (seen[q, j] - w) * z * z
        gain = _cluster_cost(entries[q], scatter[q], lean, d) - _cluster_cost(
            entries[q] - known, scatter[q] - out, lean, d
        )
        if lean <= 0.0:
            gain = out
        least, into, best = np.inf, 0.0, q
        for p in range(k):
            if p == q:
                continue
            add = 0.0
            if has_missing:
                for j in range(d):
                    z = u[i, j] - mean[p, j]
                    if z == z:
                        add += seen[p, j] / (seen[p, j] + w) * z * z
            else:
                for j in range(d):
                    z = u[i, j] - mean[p, j]
                    add += z * z
                add *= seen[p, 0] / (seen[p, 0] + w)
            add *= w
            cost = add
            if lean > 0.0:
                cost = _cluster_cost(entries[p] + known, scatter[p] + add, lean, d) - _cluster_cost(
                    entries[p], scatter[p], lean, d
                )
            if cost < least:
                least, into, best = cost, add, p
        if not (least < gain - LEAST * (abs(gain) + abs(least))):
            continue
        for j in range(d):
            v = u[i, j]
            if v != v:
                continue
            left = seen[q, j] - w
            if left > w * LEAST:
                mean[q, j] -= w / left * (v - mean[q, j])
            seen[q, j] = left if left > w * LEAST else 0.0
            seen[best, j] += w
            mean[best, j] += w / seen[best, j] * (v - mean[best, j])
        rows[q] -= 1
        rows[best] += 1
        entries[q] -= known
        entries[best] += known
        scatter[q] -= out
        scatter[best] += into
        labels[i] = best
        moved += 1
        change += least - gain
    return moved, change
