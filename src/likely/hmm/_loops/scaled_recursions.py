"""Forward and backward recursions of an HMM with scaling factors (Rabiner 1989, V.A), in probabilities.

Emission log-likelihoods are exponentiated beforehand, the largest of each frame at 1 (`shift`), so that the loops only
multiply and add. Products may underflow. The loops bound the probability mass that underflow can have cost; where the
bound is not negligible, the sequence is marked out of range and computed again by `log_recursions`.

Transitions are matrices (S, K, K): one of them (S = 1) for all frames, or one that leads into each frame (S = T), of
which that of a sequence's first frame is not used. One body serves both; the product with a matrix is written twice in
it, since a matrix chosen frame by frame costs a tenth. For few possible transitions, the loops use a sparse form of a
constant matrix: the same sums without zeros.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled

LEAST = 1e-200  # a scaling factor below that is too near the end of the range to be divided by
TINY = 1e-280  # products below that count as underflow
NEGLIGIBLE = 1e-18  # share of a total that underflow may cost
DOMINATED = 1e20  # underflow does not matter where other paths to the same states have so much more probability
MANY = 24  # states from which a sparse transition matrix may be faster,
FEW = 0.15  # where no more than this share of its entries is not zero: else whole rows fill the vector lanes
RARE = 0.04  # the same for expected transition counts, against a product of matrices


@compiled
def _fill(a, value):  # type: ignore[no-untyped-def]
    """Entry by entry: an assignment to a slice takes a second to compile, for its error message."""
    for i in range(len(a)):
        a[i] = value


@compiled
def shift(logs, log_max, size):  # type: ignore[no-untyped-def]
    """Subtract from each frame of logs (T, C·size) its maximum over the states of a chain, stored in log_max (T, C)."""
    T, C = log_max.shape
    for t in range(T):
        for c in range(C):
            row = logs[t, c * size : (c + 1) * size]
            maximum = row[0]
            for k in range(1, size):
                maximum = row[k] if row[k] > maximum else maximum
            if maximum == -np.inf:
                log_max[t, c] = maximum
                continue  # −inf − (−inf) would be no number
            log_max[t, c] = maximum
            for k in range(size):
                row[k] -= maximum


@compiled
def _sparse_rows(transition, share):  # type: ignore[no-untyped-def]
    """Compressed sparse rows (indptr, indices, data) of a constant transition matrix (1, K, K).

    `indptr` is empty where the dense matrix is faster: with fewer than MANY states, or a larger share of entries above
    0; and where transitions vary with time.
    """
    S, K, _ = transition.shape
    count = 0
    if S == 1 and K >= MANY:
        for i in range(K):
            for j in range(K):
                count += transition[0, i, j] != 0.0
    is_sparse = S == 1 and K >= MANY and count <= int(share * K * K)
    indptr = np.zeros(K + 1 if is_sparse else 0, dtype=np.uint64)  # unsigned: three times as fast as signed
    indices = np.empty(count if is_sparse else 0, dtype=np.uint64)
    data = np.empty(count if is_sparse else 0)
    p = 0
    for i in range(len(indptr) - 1):
        for j in range(K):
            if transition[0, i, j] != 0.0:
                indices[p], data[p] = j, transition[0, i, j]
                p += 1
        indptr[i + 1] = p
    return indptr, indices, data


@compiled
def _sparse_vector_matrix(vectors, t, indptr, indices, data, out):  # type: ignore[no-untyped-def]
    """out += vectors[t] @ matrix, for a sparse matrix."""
    for i in range(len(out)):
        a = vectors[t, i]
        if a != 0.0:
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p]] += a * data[p]


@compiled
def _vector_matrix(vectors, t, matrix, out):  # type: ignore[no-untyped-def]
    """out += vectors[t] @ matrix, four rows at a time: a short loop costs as much to begin as to run.

    Entries are addressed by number throughout: a row taken out of an array costs as much as eight products.
    """
    K = len(out)
    full = K - K % 4
    for i in range(0, full, 4):
        a, b, c, d = vectors[t, i], vectors[t, i + 1], vectors[t, i + 2], vectors[t, i + 3]
        for j in range(K):
            out[j] = out[j] + a * matrix[i, j] + b * matrix[i + 1, j] + c * matrix[i + 2, j] + d * matrix[i + 3, j]
    for i in range(full, K):
        a = vectors[t, i]
        for j in range(K):
            out[j] += a * matrix[i, j]


@compiled
def _underflow_bound(underflow, n_underflows, predicted, entry):  # type: ignore[no-untyped-def]
    """Bound on the mass lost by underflow up to this frame; reset where other paths dominate in every state."""
    if underflow > 0.0:
        dominated = True
        for j in range(len(predicted)):
            if entry[j] < np.inf and predicted[j] < DOMINATED * underflow:
                dominated = False
        if dominated:
            underflow = 0.0
    return underflow + n_underflows * TINY


@compiled
def forward(initial, transition, final, entry, b, c, offsets, alpha, scale, termination, in_range, underflows):  # type: ignore[no-untyped-def]
    """Scaled forward variables α_t(j) = p(s_t = j | x_1 … x_t) in alpha (T, K), scaling factors in scale (T,).

    scale_t = p(x_t | x_1 … x_{t−1}); p(x) is the product of the scaling factors and the termination sum
    Σ_i α_T(i) final_i in termination (n,). The exponentiated scores are b[:, c], those of chain c in b (T, C, K).

    entry (1, K), or (n, K) by sequence, is a threshold for underflow: inf for states that are never entered, 0 where
    transition probabilities keep products in range, −1 where some are so small that even a prediction of 0 may be an
    underflow. Sequences with `in_range` (n,) false are skipped; it becomes so for those that must be computed in
    logarithms. underflows (n,) is the bound from earlier pieces of a sequence and is updated: a sequence may be given
    in pieces.
    """
    K = len(initial)
    varying, matrix, predicted = len(transition) > 1, transition[0], np.empty(K)
    indptr, indices, data = _sparse_rows(transition, FEW)
    for n in range(len(offsets) - 1):
        termination[n], underflow = 1.0, underflows[n]
        threshold = entry[n if len(entry) > 1 else 0]
        for t in range(offsets[n], offsets[n + 1]):
            if not in_range[n]:
                break
            if t == offsets[n]:
                for j in range(K):
                    predicted[j] = initial[j]
            else:
                _fill(predicted, 0.0)
                if len(indptr) > 0:
                    _sparse_vector_matrix(alpha, t - 1, indptr, indices, data, predicted)
                elif varying:
                    _vector_matrix(alpha, t - 1, transition[t], predicted)
                else:
                    _vector_matrix(alpha, t - 1, matrix, predicted)
            n_underflows = 0
            for j in range(K):
                alpha[t, j] = predicted[j] * b[t, c, j]
                n_underflows += (alpha[t, j] < TINY) & (predicted[j] > threshold[j])
            total = 0.0
            for j in range(K):
                total += alpha[t, j]
            if not total > LEAST:
                in_range[n] = False
                break
            inverse = 1.0 / total
            for j in range(K):
                alpha[t, j] *= inverse
            scale[t] = total
            if n_underflows > 0 or underflow > 0.0:
                underflow = _underflow_bound(underflow, n_underflows, predicted, threshold) * inverse
                if underflow > NEGLIGIBLE:
                    in_range[n] = False
        underflows[n] = underflow
        if in_range[n] and offsets[n + 1] > offsets[n]:
            total = 0.0
            for j in range(K):
                total += alpha[offsets[n + 1] - 1, j] * final[j]
            termination[n] = total
            if not total > LEAST or (underflow > 0.0 and not total > underflow / NEGLIGIBLE):
                in_range[n] = False


@compiled
def likelihoods(initial, transition, final, entry, b, offsets, scale, termination, in_range):  # type: ignore[no-untyped-def]
    """`forward` for p(x) alone under each of C chains: scale (C, T), termination (C, n), in_range (C, n).

    initial (C, K), transition (C, K, K), final (C, K), entry (C, K), b (T, C, K).
    """
    C, K = initial.shape
    alpha, underflows = np.empty((len(b), K)), np.empty(len(offsets) - 1)
    for c in range(C):
        _fill(in_range[c], True)
        _fill(underflows, 0.0)
        forward(
            initial[c], transition[c : c + 1], final[c], entry[c : c + 1], b, c, offsets, alpha, scale[c],
            termination[c], in_range[c], underflows,
        )  # fmt: skip


@compiled
def backward(transposed, final, b, offsets, weight, alpha, scale, termination, in_range, gamma, b_beta):  # type: ignore[no-untyped-def]
    """Backward recursion: γ_t(i) = p(s_t = i | x) times weight (n,) in gamma (T, K), after `forward`.

    b_beta (T, K) is b_j(x_t) β_t(j) / scale_t, so ξ_t(i, j) = α_{t−1}(i) a_ij b_beta_t(j). `transposed` (S, K, K) are
    the transposed transition matrices. Where γ_t does not sum to 1, `in_range` becomes false.
    """
    K = len(final)
    varying, matrix, beta = len(transposed) > 1, transposed[0], np.empty(K)
    indptr, indices, data = _sparse_rows(transposed, FEW)
    for n in range(len(offsets) - 1):
        if not in_range[n]:
            continue
        w = weight[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if t == offsets[n + 1] - 1:
                for i in range(K):
                    beta[i] = final[i] / termination[n]
            else:
                _fill(beta, 0.0)
                if len(indptr) > 0:
                    _sparse_vector_matrix(b_beta, t + 1, indptr, indices, data, beta)
                elif varying:
                    _vector_matrix(b_beta, t + 1, transposed[t + 1], beta)
                else:
                    _vector_matrix(b_beta, t + 1, matrix, beta)
            inverse = 1.0 / scale[t]
            for i in range(K):
                beta_i = (
                    beta[i] if alpha[t, i] > 0.0 else 0.0
                )  # a state with α = 0 contributes nothing; its β may overflow
                gamma[t, i] = alpha[t, i] * beta_i
                b_beta[t, i] = beta_i * b[t, i] * inverse
            total = 0.0
            for i in range(K):
                total += gamma[t, i]
            if not abs(total - 1.0) < 1e-6:
                in_range[n] = False
                break
        if not in_range[n]:
            continue
        if w != 1.0:
            for t in range(offsets[n], offsets[n + 1]):
                for i in range(K):
                    gamma[t, i] *= w
                    b_beta[t, i] *= w


@compiled
def smooth(transposed, final, b, offsets, scale, termination, in_range, gamma):  # type: ignore[no-untyped-def]
    """`backward` without ξ, in place: the forward variables in gamma (T, K) become p(s_t | x).

    A body of its own, for a long sequence: `backward` needs twice the memory, and in place it takes a fifth longer,
    since arrays that may be the same keep it from using vector lanes.
    """
    K = len(final)
    varying, matrix, beta, b_beta = len(transposed) > 1, transposed[0], np.empty(K), np.empty((1, K))
    indptr, indices, data = _sparse_rows(transposed, FEW)
    for n in range(len(offsets) - 1):
        if not in_range[n]:
            continue
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if t == offsets[n + 1] - 1:
                for i in range(K):
                    beta[i] = final[i] / termination[n]
            else:
                _fill(beta, 0.0)
                if len(indptr) > 0:
                    _sparse_vector_matrix(b_beta, 0, indptr, indices, data, beta)
                elif varying:
                    _vector_matrix(b_beta, 0, transposed[t + 1], beta)
                else:
                    _vector_matrix(b_beta, 0, matrix, beta)
            inverse = 1.0 / scale[t]
            for i in range(K):
                beta_i = beta[i] if gamma[t, i] > 0.0 else 0.0
                gamma[t, i] *= beta_i
                b_beta[0, i] = beta_i * b[t, i] * inverse
            total = 0.0
            for i in range(K):
                total += gamma[t, i]
            if not abs(total - 1.0) < 1e-6:
                in_range[n] = False
                break


@compiled
def sparse_transition_counts(transition, alpha, b_beta, out):  # type: ignore[no-untyped-def]
    """Σ_t ξ_t(i, j) = a_ij Σ_t α_{t−1}(i) b_beta_t(j) in out (K, K), for a sparse transition matrix (1, K, K).

    Returns False, with nothing done, where a product of matrices is faster.
    """
    K = transition.shape[1]
    indptr, indices, data = _sparse_rows(transition, RARE)
    if len(indptr) == 0:
        return False
    sums = np.zeros(len(indices))
    for t in range(1, len(alpha)):
        alpha_t, b_beta_t = alpha[t - 1], b_beta[t]
        for i in range(K):
            a = alpha_t[i]
            if a != 0.0:
                for p in range(indptr[i], indptr[i + 1]):
                    sums[p] += a * b_beta_t[indices[p]]
    for i in range(K):
        _fill(out[i], 0.0)
        for p in range(indptr[i], indptr[i + 1]):
            out[i, indices[p]] = sums[p] * data[p]
    return True


MAGIC = 6755399441055744.0  # 1.5 · 2⁵²: what is added to it is rounded to an integer, found in its last bits
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
LEAST_LOG = -708.0  # its exponential is next to the smallest number


@compiled
def _exponentials(x, whole):  # type: ignore[no-untyped-def]
    """exp(x) in place for x (n,) ≤ 0: 2^k times a polynomial, correct to one unit in the last place.

    NumPy's is three times as fast, but to call it a thread needs the interpreter's lock, and two threads with many
    short calls wait for each other.
    """
    bits = whole.view(np.int64)
    for i in range(len(x)):
        v = x[i] if x[i] > LEAST_LOG else LEAST_LOG
        t = v * LOG2E + MAGIC
        whole[i] = t
        k = t - MAGIC
        r = (v - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        x[i] = p if x[i] > LEAST_LOG else 0.0
    for i in range(len(x)):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(len(x)):
        x[i] *= whole[i]


@compiled
def e_step(scores, chain, transposed, entry, offsets, weight, work, gamma, first_and_last, total):  # type: ignore[no-untyped-def]
    """E-step of some sequences from scores log b (K, T): forward, backward and all sums; False if any is out of range.

    chain is (initial, transition (1, K, K), final); work (4, T, K) is scratch space, of which [1] and [2] become alpha
    and b_beta; gamma (T, K) becomes p(s_t | x) times weight (n,). first_and_last (2, K) gains the expected first and
    last states, total (1,) gains Σ weight · log p(x). Rows of b_beta at which sequences begin are set to 0. Scores are
    left unchanged.
    """
    initial, transition, final = chain
    K, T = scores.shape
    n = len(offsets) - 1
    b, alpha, b_beta, exponents = work[0], work[1], work[2], work[3]
    log_max, scale, termination = np.empty(T), np.empty(T), np.empty(n)
    in_range, underflow = np.empty(n, dtype=np.bool_), np.zeros(n)
    _fill(in_range, True)
    for t in range(T):
        log_max[t] = scores[0, t]
    for k in range(1, K):
        for t in range(T):
            log_max[t] = scores[k, t] if scores[k, t] > log_max[t] else log_max[t]
    shifted = gamma.reshape(K, T)
    for k in range(K):
        for t in range(T):
            shifted[k, t] = scores[k, t] - log_max[t]
    _exponentials(shifted.reshape(K * T), exponents.reshape(K * T))
    for t in range(T):
        for k in range(K):
            b[t, k] = shifted[k, t]
    forward(
        initial,
        transition,
        final,
        entry,
        b.reshape(T, 1, K),
        0,
        offsets,
        alpha,
        scale,
        termination,
        in_range,
        underflow,
    )
    backward(transposed, final, b, offsets, weight, alpha, scale, termination, in_range, gamma, b_beta)
    for i in range(n):
        if not in_range[i]:
            return False
    for i in range(n):
        a, z = offsets[i], offsets[i + 1]
        if a == z:
            continue
        log_prob, product = 0.0, termination[i]
        for t in range(a, z):
            log_prob += log_max[t]
            product *= scale[t]  # at least LEAST each
            if product < 1e-100:
                log_prob += np.log(product)
                product = 1.0
        total[0] += weight[i] * (log_prob + np.log(product))
        for k in range(K):
            first_and_last[0, k] += gamma[a, k]
            first_and_last[1, k] += gamma[z - 1, k]
            b_beta[a, k] = 0.0
    return True
