"""Forward–backward algorithm of Markov-switching regressions, with the expected moments of rows in the same pass."""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled


@compiled
def switching_pass(z, seen, offsets, weight, coefficients, variance, initial, transition, order):  # type: ignore[no-untyped-def]
    """E-step of a Markov-switching regression with K states, whose rows depend on the states of `order` frames before.

    A state of the expanded chain is a run e = (s_t, s_{t−1}, …, s_{t−order}), the newest state first. z (T, D + 1) are
    rows of regressors and the target, about a pivot; `coefficients` (E, D + 2) are those of the regressors, and last
    the intercept that the pivot makes. Returns log p of each sequence, expected runs at first frames (E,), expected
    transitions between later frames (K, K), expected frames (E,), and, of frames whose target was observed, the
    weight (E,), sums (E, D + 1) and sums of products (E, D + 1, D + 1).
    """
    T, C = z.shape
    D, E, K = C - 1, len(initial), len(transition)
    block = E // K  # runs with the same newest state
    inner = max(block // K, 1)
    log_prob = np.zeros(len(offsets) - 1)
    first, pairs, frames, rows = np.zeros(E), np.zeros((K, K)), np.zeros(E), np.zeros(E)
    sums, products = np.zeros((E, C)), np.zeros((E, C, C))
    alpha, scaled = np.zeros((T, E)), np.zeros((T, E))  # filtered probabilities; densities over their scaling factor
    predicted, before, beta = np.zeros(E), np.zeros(E), np.zeros(E)
    constant = np.zeros(E)
    for e in range(E):
        constant[e] = -0.5 * (np.log(2 * np.pi) + np.log(variance[e]))
    for i in range(len(offsets) - 1):
        a, b = offsets[i], offsets[i + 1]
        total = 0.0
        for t in range(a, b):
            top = -np.inf
            for e in range(E):
                if t == a:
                    predicted[e] = initial[e]
                elif order == 0:
                    mass = 0.0
                    for j in range(K):
                        mass += alpha[t - 1, j] * transition[j, e]
                    predicted[e] = mass
                else:
                    run = e % block  # (s_{t−1}, …, s_{t−order})
                    mass = 0.0
                    for j in range(K):
                        mass += alpha[t - 1, run * K + j]
                    predicted[e] = mass * transition[run // inner, e // block]
                log = 0.0
                if seen[t]:
                    residual = z[t, D] - coefficients[e, D]
                    for d in range(D):
                        residual -= coefficients[e, d] * z[t, d]
                    log = constant[e] - 0.5 * residual * residual / variance[e]
                scaled[t, e] = log
                if predicted[e] > 0.0 and log > top:
                    top = log
            mass = 0.0
            for e in range(E):
                scaled[t, e] = np.exp(scaled[t, e] - top) if predicted[e] > 0.0 else 0.0
                alpha[t, e] = predicted[e] * scaled[t, e]
                mass += alpha[t, e]
            for e in range(E):
                alpha[t, e] /= mass
                scaled[t, e] /= mass
            total += top + np.log(mass)
        log_prob[i] = total
        for e in range(E):
            beta[e] = 1.0
        for t in range(b - 1, a - 1, -1):
            for e in range(E):
                gamma = weight[i] * alpha[t, e] * beta[e]
                frames[e] += gamma
                if t == a:
                    first[e] += gamma
                elif order > 0:
                    pairs[e % block // inner, e // block] += gamma
                if seen[t]:
                    rows[e] += gamma
                    for c in range(C):
                        share = gamma * z[t, c]
                        sums[e, c] += share
                        for d in range(c + 1):
                            products[e, c, d] += share * z[t, d]
            if t > a:
                for f in range(E):
                    mass = 0.0
                    if order == 0:
                        for k in range(K):
                            step = transition[f, k] * scaled[t, k] * beta[k]
                            mass += step
                            pairs[f, k] += weight[i] * alpha[t - 1, f] * step
                    else:
                        newest = f // block
                        for k in range(K):
                            e = k * block + f // K
                            mass += transition[newest, k] * scaled[t, e] * beta[e]
                    before[f] = mass
                for f in range(E):
                    beta[f] = before[f]
    for e in range(E):
        for c in range(C):
            for d in range(c):
                products[e, d, c] = products[e, c, d]
    return log_prob, first, pairs, frames, rows, sums, products


@compiled
def _solve(N, b, out, tolerance):  # type: ignore[no-untyped-def]
    """Solve N x = b by Cholesky's method with a unit diagonal; False where a pivot is below the tolerance."""
    F = len(b)
    scale = np.zeros(F)
    for i in range(F):
        if not N[i, i] > 0.0:
            return False
        scale[i] = 1.0 / np.sqrt(N[i, i])
    L = np.zeros((F, F))
    for i in range(F):
        for j in range(i + 1):
            total = N[i, j] * scale[i] * scale[j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if not total > tolerance:
                    return False
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(F):
        total = b[i] * scale[i]
        for k in range(i):
            total -= L[i, k] * out[k]
        out[i] = total / L[i, i]
    for i in range(F - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, F):
            total -= L[k, i] * out[k]
        out[i] = total / L[i, i]
    for i in range(F):
        out[i] *= scale[i]
    return True


@compiled
def _contrast(a, run, beta, phi):  # type: ignore[no-untyped-def]
    """The vector a (D + 1,) with residual a·(x, y) in a run of states."""
    q, p = beta.shape[1], phi.shape[1]
    newest = run[0]
    for j in range(q):
        a[j] = -beta[newest, j]
    for i in range(p):
        for j in range(q):
            a[(i + 1) * q + j] = phi[newest, i] * beta[run[i + 1], j]
        a[(p + 1) * q + i] = -phi[newest, i]
    a[(p + 1) * q + p] = 1.0


@compiled
def switching_m_step(rows, moments, runs, index, beta, phi, variance, shared_ar, tied, cycles, prior, tolerance):  # type: ignore[no-untyped-def]
    """Conditional maximization of coefficients, autoregressions and variances, which are overwritten.

    `moments` (E, D + 1, D + 1) are sums of products Σ w z zᵀ of z = (x, y) in each run; `index` (K, q) is the number of
    the free parameter of each coefficient, −1 for one fixed at 0. `prior` is a tuple of the precision and the center
    (q,) of coefficients, the precision of autoregressions, the rows and the variance of the noise; rows 0: none.
    Returns False, with parameters half changed, where normal equations are too ill-conditioned.
    """
    E, C, _ = moments.shape
    K, q = beta.shape
    p = phi.shape[1]
    precision, center, ar_precision, prior_rows, prior_variance = prior
    F = index.max() + 1
    groups = 1 if shared_ar else K
    N, b, found = np.zeros((F, F)), np.zeros(F), np.zeros(F)
    M, c, solved = np.zeros((groups * p, groups * p)), np.zeros(groups * p), np.zeros(groups * p)
    part, fixed = np.zeros((F, C)), np.zeros(C)  # derivatives of the contrast, and what does not depend
    lagged, first, a = np.zeros((p, C)), np.zeros(C), np.zeros(C)
    squares, total = np.zeros(K), np.zeros(K)
    for _ in range(cycles):
        if F > 0:
            for f in range(F):
                b[f] = 0.0
                for g in range(F):
                    N[f, g] = 0.0
            for e in range(E):
                newest = runs[e, 0]
                for d in range(C):
                    fixed[d] = 0.0
                    for f in range(F):
                        part[f, d] = 0.0
                fixed[C - 1] = 1.0
                for i in range(p):
                    fixed[(p + 1) * q + i] = -phi[newest, i]
                for i in range(p + 1):
                    size = 1.0 if i == 0 else -phi[newest, i - 1]
                    for j in range(q):
                        f = index[runs[e, i], j]
                        if f >= 0:
                            part[f, i * q + j] += size
                for f in range(F):
                    for d in range(C):
                        if part[f, d] != 0.0:
                            left = part[f, d] / variance[newest]
                            for h in range(C):
                                value = left * moments[e, d, h]
                                b[f] += value * fixed[h]
                                for g in range(f + 1):
                                    N[f, g] += value * part[g, h]
            if prior_rows > 0.0:
                for k in range(K):
                    for j in range(q):
                        f = index[k, j]
                        if f >= 0:
                            for h in range(q):
                                b[f] += precision[j, h] * center[h]
                                g = index[k, h]
                                if 0 <= g <= f:
                                    N[f, g] += precision[j, h]
            if not _solve(N, b, found, tolerance):
                return False
            for k in range(K):
                for j in range(q):
                    if index[k, j] >= 0:
                        beta[k, j] = found[index[k, j]]
        if p > 0:
            for f in range(groups * p):
                c[f] = 0.0
                for g in range(groups * p):
                    M[f, g] = 0.0
            for e in range(E):
                newest = runs[e, 0]
                group = 0 if shared_ar else newest
                for d in range(C):
                    first[d] = 0.0
                    for i in range(p):
                        lagged[i, d] = 0.0
                first[C - 1] = 1.0
                for j in range(q):
                    first[j] = -beta[newest, j]
                for i in range(p):
                    lagged[i, (p + 1) * q + i] = 1.0
                    for j in range(q):
                        lagged[i, (i + 1) * q + j] = -beta[runs[e, i + 1], j]
                for i in range(p):
                    for d in range(C):
                        if lagged[i, d] != 0.0:
                            left = lagged[i, d] / variance[newest]
                            for h in range(C):
                                value = left * moments[e, d, h]
                                c[group * p + i] += value * first[h]
                                for j in range(p):
                                    M[group * p + i, group * p + j] += value * lagged[j, h]
            if prior_rows > 0.0:
                for group in range(groups):
                    for i in range(p):
                        for j in range(p):
                            M[group * p + i, group * p + j] += ar_precision[i, j]
            if not _solve(M, c, solved, tolerance):
                return False
            for k in range(K):
                for i in range(p):
                    phi[k, i] = solved[(0 if shared_ar else k) * p + i]
        for k in range(K):
            squares[k] = total[k] = 0.0
        for e in range(E):
            k = 0 if tied else runs[e, 0]
            _contrast(a, runs[e], beta, phi)
            value = 0.0
            for d in range(C):
                inner = 0.0
                for h in range(C):
                    inner += moments[e, d, h] * a[h]
                value += a[d] * inner
            squares[k] += max(value, 0.0)
            total[k] += rows[e]
        for k in range(K):
            own = 0 if tied else k
            weight = total[own] + prior_rows
            if weight > 0.0:
                variance[k] = (squares[own] + prior_rows * prior_variance) / weight
    return True
