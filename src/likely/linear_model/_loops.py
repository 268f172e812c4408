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
