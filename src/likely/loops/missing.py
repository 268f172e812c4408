"""Gaussian rows with gaps, pattern by pattern; every inner loop runs over the K members of a stack.

Rows are sorted by pattern: pattern p sees the columns `seen[p]` and holds rows `starts[p]:starts[p + 1]`.
Arrays of members have K as their last axis, so that the innermost loop is over independent outputs.
"""

from __future__ import annotations

import numpy as np

from likely.loops.compile import compiled


@compiled
def by_precision(u, seen, starts, precision, pulled, base, q, logdet):  # type: ignore[no-untyped-def]
    """Integrate gaps out of complete distances by small systems of the size of the gap.

    With z = x − μ and the gap's entries of x set to 0 on entry (q holds zᵀΛz of that), the marginal
    distance is q − gᵀ Λ_mm⁻¹ g, where g = (Λz)_m, and log det Σ_oo = log det Σ + log det Λ_mm.

    u (n, d), precision (d, d, K), pulled (d, K) = Λμ, base (K,) = log det Σ, q and logdet (n, K) are written.
    """
    d, K = pulled.shape
    gap = np.empty(d, np.int64)
    a = np.empty((d, d, K))
    g = np.empty((d, K))
    for p in range(len(seen)):
        m = 0
        for j in range(d):
            if not seen[p, j]:
                gap[m] = j
                m += 1
        for r in range(m):
            for c in range(r + 1):
                a[r, c, :] = precision[gap[r], gap[c], :]
        _factor(a, m, K)
        for r in range(m):
            for k in range(K):
                g[r, k] = a[r, r, k]
        for i in range(starts[p], starts[p + 1]):
            logdet[i, :] = base
        for r in range(m):
            for k in range(K):
                g[r, k] = 2.0 * np.log(g[r, k])
            for i in range(starts[p], starts[p + 1]):
                for k in range(K):
                    logdet[i, k] += g[r, k]
        for i in range(starts[p], starts[p + 1]):
            for r in range(m):
                for k in range(K):
                    g[r, k] = -pulled[gap[r], k]
                for j in range(d):
                    x = u[i, j]
                    if x != 0.0:
                        for k in range(K):
                            g[r, k] += precision[gap[r], j, k] * x
                for c in range(r):
                    for k in range(K):
                        g[r, k] -= a[r, c, k] * g[c, k]
                for k in range(K):
                    g[r, k] /= a[r, r, k]
                    q[i, k] -= g[r, k] * g[r, k]


@compiled
def by_covariance(u, seen, starts, mean, covariance, q, logdet):  # type: ignore[no-untyped-def]
    """Distances and determinants from a small Cholesky factor of each pattern's own covariance.

    u (n, d), mean (d, K), covariance (d, d, K); q and logdet (n, K) are written.
    """
    d, K = mean.shape
    at = np.empty(d, np.int64)
    a = np.empty((d, d, K))
    v = np.empty((d, K))
    total = np.empty(K)
    for p in range(len(seen)):
        o = 0
        for j in range(d):
            if seen[p, j]:
                at[o] = j
                o += 1
        for r in range(o):
            for c in range(r + 1):
                a[r, c, :] = covariance[at[r], at[c], :]
        _factor(a, o, K)
        total[:] = 0.0
        for r in range(o):
            for k in range(K):
                total[k] += 2.0 * np.log(a[r, r, k])
        for i in range(starts[p], starts[p + 1]):
            logdet[i, :] = total
            q[i, :] = 0.0
            for r in range(o):
                for k in range(K):
                    v[r, k] = u[i, at[r]] - mean[at[r], k]
                for c in range(r):
                    for k in range(K):
                        v[r, k] -= a[r, c, k] * v[c, k]
                for k in range(K):
                    v[r, k] /= a[r, r, k]
                    q[i, k] += v[r, k] * v[r, k]


@compiled
def fill(x, weight, seen, starts, mean, precision):  # type: ignore[no-untyped-def]
    """Conditional means in the gaps of rows x (n, d), for one Gaussian; x is filled in place.

    x_m = μ_m − Λ_mm⁻¹ Λ_mo (x_o − μ_o). Returns Σ w Cov[x_m | x_o] (d, d) and Σ w log det Λ_mm and Σ w |m|,
    from which the entropy of the gaps follows.
    """
    d = len(mean)
    gap = np.empty(d, np.int64)
    a = np.empty((d, d, 1))
    g = np.empty(d)
    inverse = np.empty((d, d))
    spread = np.zeros((d, d))
    determinant = 0.0
    entries = 0.0
    for p in range(len(seen)):
        m = 0
        for j in range(d):
            if not seen[p, j]:
                gap[m] = j
                m += 1
        for r in range(m):
            for c in range(r + 1):
                a[r, c, 0] = precision[gap[r], gap[c]]
        _factor(a, m, 1)
        total = 0.0
        for i in range(starts[p], starts[p + 1]):
            total += weight[i]
            for r in range(m):
                s = 0.0
                for j in range(d):
                    if seen[p, j]:
                        s -= precision[gap[r], j] * (x[i, j] - mean[j])
                for c in range(r):
                    s -= a[r, c, 0] * g[c]
                g[r] = s / a[r, r, 0]
            for r in range(m - 1, -1, -1):
                s = g[r]
                for c in range(r + 1, m):
                    s -= a[c, r, 0] * g[c]
                g[r] = s / a[r, r, 0]
            for r in range(m):
                x[i, gap[r]] = mean[gap[r]] + g[r]
        for b in range(m):  # columns of Λ_mm⁻¹
            for r in range(m):
                s = 1.0 if r == b else 0.0
                for c in range(r):
                    s -= a[r, c, 0] * g[c]
                g[r] = s / a[r, r, 0]
            for r in range(m - 1, -1, -1):
                s = g[r]
                for c in range(r + 1, m):
                    s -= a[c, r, 0] * g[c]
                g[r] = s / a[r, r, 0]
                inverse[r, b] = g[r]
        for r in range(m):
            determinant += 2.0 * total * np.log(a[r, r, 0])
            for c in range(m):
                spread[gap[r], gap[c]] += total * inverse[r, c]
        entries += total * m
    return spread, determinant, entries


@compiled
def _factor(a, m, K):  # type: ignore[no-untyped-def]
    """Cholesky factors in place of the leading m × m blocks of a (m, m, K), all members in step."""
    for r in range(m):
        for c in range(r + 1):
            for t in range(c):
                for k in range(K):
                    a[r, c, k] -= a[r, t, k] * a[c, t, k]
            if r == c:
                for k in range(K):
                    a[r, r, k] = np.sqrt(a[r, r, k])
            else:
                for k in range(K):
                    a[r, c, k] /= a[c, c, k]
