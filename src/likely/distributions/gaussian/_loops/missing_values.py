"""Compiled loops over missing-value patterns of Gaussian rows: marginal distances, conditional means and covariances.

Rows are sorted by pattern: pattern p has the observed columns `observed[p]` and rows `starts[p]:starts[p + 1]`.
Arrays of members have K as their last axis, so that the innermost loop is over independent outputs.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled


@compiled
def by_precision(u, observed, starts, precision, pulled, base, q, logdet):  # type: ignore[no-untyped-def]
    """Marginal squared distances from the precision matrix Λ, by systems of the size of the missing part m.

    With z = x − μ and the missing entries of x set to 0 on entry (q holds zᵀΛz of that), the marginal
    distance is q − gᵀ Λ_mm⁻¹ g, where g = (Λz)_m, and log det Σ_oo = log det Σ + log det Λ_mm.

    u (n, d), precision (d, d, K), pulled (d, K) = Λμ, base (K,) = log det Σ, q and logdet (n, K) are written.
    """
    d, K = pulled.shape
    missing, at = np.empty(d, np.int64), np.empty(d, np.int64)
    a, inverse, g = np.empty((d, d, K)), np.empty((d, K)), np.empty((d, K))
    total = np.empty(K)
    for p in range(len(observed)):
        m = _split(observed[p], at, missing)
        for r in range(m):
            for c in range(r + 1):
                for k in range(K):  # entry by entry: an assignment to a slice takes a second to compile
                    a[r, c, k] = precision[missing[r], missing[c], k]
        _factor(a, inverse, m, K)
        for k in range(K):
            total[k] = base[k]
        _add_logdet(a, m, K, total)
        for i in range(starts[p], starts[p + 1]):
            x, distance = u[i], q[i]
            for k in range(K):
                logdet[i, k] = total[k]
            for r in range(m):
                v, scale, offset = g[r], inverse[r], pulled[missing[r]]
                for k in range(K):
                    v[k] = -offset[k]
                _add_product(v, precision[missing[r]], x, at, d - m)
                for c in range(r):
                    row, w = a[r, c], g[c]
                    for k in range(K):
                        v[k] -= row[k] * w[k]
                for k in range(K):
                    v[k] *= scale[k]
                    distance[k] -= v[k] * v[k]


@compiled
def by_covariance(u, observed, starts, mean, covariance, q, logdet):  # type: ignore[no-untyped-def]
    """Marginal squared distances and log determinants by the Cholesky factor of Σ_oo of each pattern.

    u (n, d), mean (d, K), covariance (d, d, K); q and logdet (n, K) are written.
    """
    d, K = mean.shape
    at, missing = np.empty(d, np.int64), np.empty(d, np.int64)
    a, inverse, z = np.empty((d, d, K)), np.empty((d, K)), np.empty((d, K))
    total = np.empty(K)
    for p in range(len(observed)):
        o = d - _split(observed[p], at, missing)
        for r in range(o):
            for c in range(r + 1):
                for k in range(K):
                    a[r, c, k] = covariance[at[r], at[c], k]
        _factor(a, inverse, o, K)
        for k in range(K):
            total[k] = 0.0
        _add_logdet(a, o, K, total)
        for i in range(starts[p], starts[p + 1]):
            distance = q[i]
            for k in range(K):
                logdet[i, k], distance[k] = total[k], 0.0
            for r in range(o):
                v, scale, center, x = z[r], inverse[r], mean[at[r]], u[i, at[r]]
                for k in range(K):
                    v[k] = x - center[k]
                for c in range(r):
                    row, w = a[r, c], z[c]
                    for k in range(K):
                        v[k] -= row[k] * w[k]
                for k in range(K):
                    v[k] *= scale[k]
                    distance[k] += v[k] * v[k]


@compiled
def fill(x, weight, observed, starts, mean, precision):  # type: ignore[no-untyped-def]
    """Conditional means of the missing entries of rows x (n, d), for one Gaussian; x is filled in place.

    x_m = μ_m − Λ_mm⁻¹ Λ_mo (x_o − μ_o). Returns Σ w Cov[x_m | x_o] (d, d), Σ w log det Λ_mm and Σ w |m|, from which
    the entropy of the missing entries follows.
    """
    d = len(mean)
    missing = np.empty(d, np.int64)
    at = np.empty(d, np.int64)
    a, scale = np.empty((d, d, 1)), np.empty((d, 1))
    g = np.empty(d)
    inverse = np.empty((d, d))
    spread = np.zeros((d, d))
    determinant = 0.0
    entries = 0.0
    for p in range(len(observed)):
        m = _split(observed[p], at, missing)
        for r in range(m):
            for c in range(r + 1):
                a[r, c, 0] = precision[missing[r], missing[c]]
        _factor(a, scale, m, a.shape[2])  # not 1: a literal would be one more type to compile for
        total = 0.0
        for i in range(starts[p], starts[p + 1]):
            total += weight[i]
            for r in range(m):
                s = 0.0
                for j in range(d):
                    if observed[p, j]:
                        s -= precision[missing[r], j] * (x[i, j] - mean[j])
                for c in range(r):
                    s -= a[r, c, 0] * g[c]
                g[r] = s / a[r, r, 0]
            for r in range(m - 1, -1, -1):
                s = g[r]
                for c in range(r + 1, m):
                    s -= a[c, r, 0] * g[c]
                g[r] = s / a[r, r, 0]
            for r in range(m):
                x[i, missing[r]] = mean[missing[r]] + g[r]
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
                spread[missing[r], missing[c]] += total * inverse[r, c]
        entries += total * m
    return spread, determinant, entries


@compiled
def _split(observed, at, missing):  # type: ignore[no-untyped-def]
    """Write the observed columns into `at` and the missing ones into `missing`; the number of the latter."""
    m = 0
    for j in range(len(observed)):
        if observed[j]:
            at[j - m] = j
        else:
            missing[m] = j
            m += 1
    return m


@compiled
def _add_product(v, matrix, x, at, n):  # type: ignore[no-untyped-def]
    """v += Σ x_j matrix_j over the first n columns in `at`; four at a time, which halves the traffic of v."""
    K = len(v)
    whole = n - n % 4
    for j in range(0, whole, 4):
        j0, j1, j2, j3 = at[j], at[j + 1], at[j + 2], at[j + 3]
        m0, m1, m2, m3 = matrix[j0], matrix[j1], matrix[j2], matrix[j3]
        x0, x1, x2, x3 = x[j0], x[j1], x[j2], x[j3]
        for k in range(K):
            v[k] += (m0[k] * x0 + m1[k] * x1) + (m2[k] * x2 + m3[k] * x3)
    for j in range(whole, n):
        m0, x0 = matrix[at[j]], x[at[j]]
        for k in range(K):
            v[k] += m0[k] * x0


@compiled
def _factor(a, inverse, m, K):  # type: ignore[no-untyped-def]
    """Cholesky factors of the leading m × m blocks of a (m, m, K), in place, all members at once.

    The reciprocals of their diagonals go to `inverse` (m, K): a division costs ten products.
    """
    for r in range(m):
        for c in range(r + 1):
            x = a[r, c]
            for t in range(c):
                y, z = a[r, t], a[c, t]
                for k in range(K):
                    x[k] -= y[k] * z[k]
            scale = inverse[c]
            if r == c:
                for k in range(K):
                    x[k] = np.sqrt(x[k])
                    scale[k] = 1.0 / x[k]
            else:
                for k in range(K):
                    x[k] *= scale[k]


@compiled
def _add_logdet(a, m, K, total):  # type: ignore[no-untyped-def]
    """total += 2 Σ log a_rr, by the logarithm of products of up to 16 of them, which cannot overflow in frame units."""
    product = np.ones(K)
    for r in range(m):
        x = a[r, r]
        for k in range(K):
            product[k] *= x[k]
        if r % 16 == 15 or r == m - 1:
            for k in range(K):
                total[k] += 2.0 * np.log(product[k])
                product[k] = 1.0
