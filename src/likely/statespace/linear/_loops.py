"""Square-root Kalman filter, exact diffuse initialization, and Rauch–Tung–Striebel smoother: compiled loops.

A square root U of a covariance P is upper triangular with P = UᵀU. Every step is a QR factorization: the factors of the
terms of a sum are stacked (A P Aᵀ + Q is the stack of U Aᵀ and the root of Q), and Householder reflections make the
stack upper triangular. They preserve UᵀU, so no variance can become negative. Columns that depend linearly on earlier
ones get no pivot (echelon form), so covariances may be rank-deficient.

Letters: A transition, N root of the process covariance Q, C observation matrix, R root of the observation covariance, m
and U mean and root of the state (predicted or filtered, in place), e innovation, z whitened innovation, K gain, J gain
of the smoother, w stacked array with `pivots` and scratch row s. Diffuse initialization is the augmented filter (de
Jong 1991; Durbin and Koopman, ch. 5): x_0 = m0 + E δ with unknown δ = offset + B η; given η the state has mean m + M η,
and [G | g] is the square-root information array of η, |G η − g|². `n_free` coordinates of η are not yet fixed exactly.

Matrices have a leading axis of length 1 (constant) or of one entry per frame. Frames of all sequences are concatenated.
Where neither matrices nor the pattern of missing entries change, roots converge to the steady state; from there on only
means are computed.
"""

from __future__ import annotations

import math  # its logarithm has the same bits in plain Python and compiled; of pivots, which are above 0

import numpy as np

from likely.numerics.compile import compiled, compiled_for_size

ROUNDING = 4e-15**2  # share of a column's squared norm below which its residual is rounding: rank-deficient
UNDETERMINED = 1e-11**2  # the same for later divisors: rows that should agree differ by more than one rounding
TINY = 1e-300  # squared norm whose inverse would overflow
LARGER = 100.0  # rows are exchanged when the square of an entry is this many times that of the pivot row
STEADY = 4e-15  # change of a root, in units of the standard deviation, below which it has converged
OFF = 1e-8  # tolerance for an observation of zero innovation variance, relative to the sum of its absolute terms
HALF_LOG_2PI = 0.9189385332046727
NEGLIGIBLE = 1e-60  # share of the total weight below which a component adds nothing, and its squares would underflow


@compiled
def _copy1(a, to):  # type: ignore[no-untyped-def]
    """Entry by entry: an assignment to a slice takes seconds to compile, for the sake of its error message."""
    for i in range(a.shape[0]):
        to[i] = a[i]


@compiled
def _copy2(a, to):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            to[i, j] = a[i, j]


@compiled
def _copy3(a, to):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                to[i, j, k] = a[i, j, k]


@compiled
def _triangularize(w, r, c, pivots, s, tol):  # type: ignore[no-untyped-def]
    """QR factorization by Householder reflections: w[:r, :c] to echelon form with positive pivots; returns the rank.

    pivots[j] is the row of column j's pivot; negative where column j depends linearly on those before it (its squared
    residual is a share `tol` or smaller): −1 if the residual is exactly 0, else −2.
    """
    row = 0
    for j in range(c):
        above = 0.0
        for i in range(row):
            above += w[i, j] * w[i, j]
        top = w[row, j] if row < r else 0.0
        rest, most, largest_row = 0.0, top * top, row
        for i in range(row + 1, r):
            x = w[i, j] * w[i, j]
            rest += x
            if x > LARGER * most:
                most, largest_row = x, i
        norm2 = rest + top * top
        if not norm2 > tol * above:
            for i in range(row, r):
                w[i, j] = 0.0
            pivots[j] = -2 if norm2 > 0.0 else -1
            continue
        if largest_row > row:  # else the rounding errors of a large row would exceed the small rows above it
            for k in range(j, c):
                w[row, k], w[largest_row, k] = w[largest_row, k], w[row, k]
            top, rest = w[row, j], 0.0
            for i in range(row + 1, r):
                rest += w[i, j] * w[i, j]
        norm = np.sqrt(norm2)
        if not (rest > TINY or top < 0.0):  # no reflection is needed, and 1 / rest might overflow
            for i in range(row + 1, r):
                w[i, j] = 0.0
        else:
            v = top - norm if top <= 0.0 else -rest / (top + norm)
            beta = 2.0 / (v * v + rest)
            for k in range(j + 1, c):
                s[k] = v * w[row, k]
            for i in range(row + 1, r):
                x = w[i, j]
                if x != 0.0:
                    for k in range(j + 1, c):
                        s[k] += x * w[i, k]
            v *= beta
            for k in range(j + 1, c):
                w[row, k] -= v * s[k]
            for i in range(row + 1, r):
                x = w[i, j] * beta
                if x != 0.0:
                    for k in range(j + 1, c):
                        w[i, k] -= x * s[k]
                w[i, j] = 0.0
        w[row, j] = norm
        pivots[j] = row
        row += 1
    return row


@compiled_for_size
def _triangularize_rank_revealing(w, r, c, pivots, tol):  # type: ignore[no-untyped-def]
    """As `_triangularize`, for stacks with a pivot of −2: rank decisions by the largest magnitude of each entry so far.

    An entry that was never large has small rounding errors only (larger rows are used first), so that process noise of
    variance 1 is kept next to an initial variance of 1e30, while the rounding residual of large entries counts as 0.
    """
    magnitude = np.zeros((r, c))
    for i in range(r):
        for k in range(c):
            magnitude[i, k] = w[i, k] * w[i, k]
    row = 0
    for j in range(c):
        norm2, magnitude2, largest_row = 0.0, 0.0, row
        for i in range(row, r):
            norm2 += w[i, j] * w[i, j]
            magnitude2 += magnitude[i, j]
            if abs(w[i, j]) > abs(w[largest_row, j]):
                largest_row = i
        if not norm2 > tol * magnitude2:
            for i in range(row, r):
                w[i, j] = 0.0
            pivots[j] = -1
            continue
        for k in range(c):
            w[row, k], w[largest_row, k] = w[largest_row, k], w[row, k]
            magnitude[row, k], magnitude[largest_row, k] = magnitude[largest_row, k], magnitude[row, k]
        norm, top, rest = np.sqrt(norm2), w[row, j], 0.0
        for i in range(row + 1, r):
            rest += w[i, j] * w[i, j]
        if rest > TINY or top < 0.0:
            v = top - norm if top <= 0.0 else -rest / (top + norm)
            beta = 2.0 / (v * v + rest)
            for k in range(j + 1, c):
                x = v * w[row, k]
                size = abs(x)
                for i in range(row + 1, r):
                    x += w[i, j] * w[i, k]
                    size += abs(w[i, j] * w[i, k])
                w[row, k] -= v * beta * x
                for i in range(row + 1, r):
                    w[i, k] -= w[i, j] * beta * x
                    magnitude[i, k] = max(magnitude[i, k], (w[i, j] * beta * size) ** 2)
        for i in range(row + 1, r):
            w[i, j] = 0.0
        w[row, j] = norm
        pivots[j] = row
        row += 1
    return row


@compiled
def _rank_uncertain(pivots, c):  # type: ignore[no-untyped-def]
    """True if a dropped column residual may be more than rounding."""
    for j in range(c):
        if pivots[j] == -2:
            return True
    return False


@compiled
def _stack_prediction(A, ia, N, iq, U, w):  # type: ignore[no-untyped-def]
    """Stack of the prediction step: rows U Aᵀ, and the root of the process covariance."""
    d = U.shape[0]
    for i in range(d):
        for j in range(d):
            x = 0.0
            for k in range(i, d):
                x += U[i, k] * A[ia, j, k]
            w[i, j] = x
            w[d + i, j] = N[iq, i, j]


@compiled
def _predict(A, ia, N, iq, intercept, ip, m, U, w, pivots, s, e):  # type: ignore[no-untyped-def]
    """Prediction step: mean A m + intercept and root of A P Aᵀ + Q, in place."""
    d = m.shape[0]
    for i in range(d):
        e[i] = intercept[ip, i]
        for j in range(d):
            e[i] += A[ia, i, j] * m[j]
    for i in range(d):
        m[i] = e[i]
    _stack_prediction(A, ia, N, iq, U, w)
    rank = _triangularize(w, 2 * d, d, pivots, s, ROUNDING)
    if _rank_uncertain(pivots, d):
        _stack_prediction(A, ia, N, iq, U, w)
        rank = _triangularize_rank_revealing(w, 2 * d, d, pivots, ROUNDING)
    for i in range(d):
        for j in range(d):
            U[i, j] = w[i, j] if i < rank else 0.0


@compiled
def _observed_entries(y, f, observed):  # type: ignore[no-untyped-def]
    """Indices of the observed (not NaN) entries of frame f, written to `observed`; returns their number."""
    n = 0
    for j in range(y.shape[1]):
        if not np.isnan(y[f, j]):
            observed[n] = j
            n += 1
    return n


@compiled
def _stack_update(C, ic, R, ir, U, observed, o, w):  # type: ignore[no-untyped-def]
    """Stack of the update step: rows (root of R | 0) and (U Cᵀ | U), columns of observed entries first."""
    p, d = R.shape[1], U.shape[0]
    for i in range(p):
        for j in range(o):
            w[i, j] = R[ir, i, observed[j]]
        for j in range(d):
            w[i, o + j] = 0.0
    for i in range(d):
        for j in range(o):
            x = 0.0
            for k in range(i, d):
                x += U[i, k] * C[ic, observed[j], k]
            w[p + i, j] = x
        for j in range(d):
            w[p + i, o + j] = U[i, j]


@compiled
def _whiten(w, pivots, o, e, z, slack):  # type: ignore[no-untyped-def]
    """Whitened innovation z from Sᵀ z = e, S the triangular root of the innovation covariance; returns −Σ log pivots.

    Returns −inf where e lies outside the support of a singular innovation covariance.
    """
    found, rank = 0.0, 0
    for j in range(o):
        x = e[j]
        for k in range(rank):
            x -= w[k, j] * z[k]
        if pivots[j] >= 0:
            z[rank] = x / w[rank, j]
            found -= math.log(w[rank, j])
            rank += 1
        elif abs(x) > slack[j]:
            found = -np.inf
    return found


@compiled
def _innovation(y, f, C, ic, R, ir, m, U, w, pivots, s, observed, e, slack):  # type: ignore[no-untyped-def]
    """Innovation e = y − C m of frame f, its tolerance (slack), and the triangularized stack of the update.

    Returns the number of observed entries.
    """
    d, p = m.shape[0], y.shape[1]
    o = _observed_entries(y, f, observed)
    for j in range(o):
        x, size = y[f, observed[j]], abs(y[f, observed[j]])
        for k in range(d):
            x -= C[ic, observed[j], k] * m[k]
            size += abs(C[ic, observed[j], k] * m[k])
        e[j], slack[j] = x, OFF * size
    if o > 0:
        _stack_update(C, ic, R, ir, U, observed, o, w)
        _triangularize(w, p + d, o + d, pivots, s, ROUNDING)
        if _rank_uncertain(pivots, o + d):
            _stack_update(C, ic, R, ir, U, observed, o, w)
            _triangularize_rank_revealing(w, p + d, o + d, pivots, ROUNDING)
    return o


@compiled
def _update(y, f, C, ic, R, ir, m, U, w, pivots, s, observed, e, z, slack):  # type: ignore[no-untyped-def]
    """Update step with frame f: mean and root in place; returns log p(y_f | earlier) and how many entries are observed.

    The mean gains K e = (rows above the filtered root)ᵀ z. A frame of probability 0, or one whose log p overflows,
    leaves mean and root unchanged.
    """
    d, p = m.shape[0], y.shape[1]
    o = _innovation(y, f, C, ic, R, ir, m, U, w, pivots, s, observed, e, slack)
    if o == 0:
        return 0.0, 0
    found = _whiten(w, pivots, o, e, z, slack)
    rank = 0
    for j in range(o):
        if pivots[j] >= 0:
            found -= 0.5 * z[rank] * z[rank] + HALF_LOG_2PI
            rank += 1
    if not found > -np.inf:
        return -np.inf, o
    for i in range(rank):
        for k in range(d):
            m[k] += w[i, o + k] * z[i]
    _take_root(w, rank, p + d, o, U)
    return found, o


@compiled
def _take_root(w, first, last, column, U):  # type: ignore[no-untyped-def]
    """Copy the block of w from row `first` and column `column` on into the root U; rows from `last` on are zero."""
    d = U.shape[0]
    for i in range(d):
        for j in range(d):
            U[i, j] = w[first + i, column + j] if first + i < last else 0.0


@compiled
def _has_converged(U, last):  # type: ignore[no-untyped-def]
    """True if no entry of the root has changed by more than rounding since `last`: steady state."""
    d = U.shape[0]
    for j in range(d):
        size = 0.0
        for i in range(j + 1):
            size += U[i, j] * U[i, j]
        size = STEADY * np.sqrt(size)
        for i in range(j + 1):
            if abs(U[i, j] - last[i, j]) > size:
                return False
    return True


@compiled
def _steady_gain(w, pivots, p, d, K, V):  # type: ignore[no-untyped-def]
    """Steady-state Kalman gain K (d, p) and whitening matrix V (p, p); False for a singular innovation covariance."""
    for j in range(p):
        if pivots[j] < 0:
            return False
    for j in range(p):  # column j of the inverse of the lower triangular factor
        for i in range(p):
            x = 1.0 if i == j else 0.0
            for k in range(j, i):
                x -= w[k, i] * V[k, j]
            V[i, j] = x / w[i, i] if i >= j else 0.0
    for k in range(d):
        for j in range(p):
            x = 0.0
            for i in range(j, p):
                x += w[i, p + k] * V[i, j]
            K[k, j] = x
    return True


# ------------------------------------------------------------------ diffuse initialization


@compiled
def _log_volume(G, r, c, w, pivots, s):  # type: ignore[no-untyped-def]
    """½ log det of the information about δ so far: log of the volume that r rows of G span, c columns; and the rank."""
    for i in range(r):
        for j in range(c):
            w[j, i] = G[i, j]
    rank = _triangularize(w, c, r, pivots, s, UNDETERMINED)
    found = 0.0
    for j in range(r):
        if pivots[j] >= 0:
            found += math.log(w[pivots[j], j])
    return found, rank


@compiled
def _impose_constraint(X, row, rows, n_free, offset, B, G, M, m, h):  # type: ignore[no-untyped-def]
    """Impose the exact constraint cᵀη = r (row of X): reflect the coordinates so that c is along the first; drop it.

    δ = offset + B η with `n_free` coordinates η; M, the information array G and later rows of X are in terms of η.
    """
    q = M.shape[1]
    rest = 0.0
    for k in range(1, n_free):
        rest += X[row, k] * X[row, k]
    top = X[row, 0]
    norm = np.sqrt(top * top + rest)
    sign = -1.0 if top >= 0.0 else 1.0  # Householder sign that avoids cancellation
    h[0] = top - sign * norm
    for k in range(1, n_free):
        h[k] = X[row, k]
    beta = 2.0 / (h[0] * h[0] + rest)
    value = sign * X[row, q] / norm
    for i in range(M.shape[0]):
        _reflect_row(M, i, h, beta, n_free)
        m[i] += M[i, 0] * value
        _drop_first(M, i, n_free)
    for i in range(q):
        _reflect_row(B, i, h, beta, n_free)
        offset[i] += B[i, 0] * value
        _drop_first(B, i, n_free)
    for i in range(q + 1):
        _reflect_row(G, i, h, beta, n_free)
        G[i, q] -= G[i, 0] * value
        _drop_first(G, i, n_free)
    for i in range(row + 1, rows):
        _reflect_row(X, i, h, beta, n_free)
        X[i, q] -= X[i, 0] * value
        _drop_first(X, i, n_free)
    return -math.log(norm)


@compiled
def _drop_first(a, i, n):  # type: ignore[no-untyped-def]
    for k in range(n - 1):
        a[i, k] = a[i, k + 1]
    a[i, n - 1] = 0.0


@compiled
def _reflect_row(a, i, h, beta, n):  # type: ignore[no-untyped-def]
    x = 0.0
    for k in range(n):
        x += a[i, k] * h[k]
    x *= beta
    for k in range(n):
        a[i, k] -= x * h[k]


@compiled
def _copy_diffuse(m, U, M, B, offset, G, to_m, to_U, to_M, to_B, to_point, to_G):  # type: ignore[no-untyped-def]
    """Copy the state of the augmented filter."""
    _copy1(m, to_m)
    _copy2(U, to_U)
    _copy2(M, to_M)
    _copy2(B, to_B)
    _copy1(offset, to_point)
    _copy2(G, to_G)


@compiled
def _predict_loadings(A, ia, M, n_free, s):  # type: ignore[no-untyped-def]
    """Prediction step of the diffuse loadings: M → A M."""
    d = M.shape[0]
    for a in range(n_free):
        for i in range(d):
            s[i] = 0.0
            for j in range(d):
                s[i] += A[ia, i, j] * M[j, a]
        for i in range(d):
            M[i, a] = s[i]


@compiled
def _diffuse_update(  # type: ignore[no-untyped-def]
    y, f, C, ic, R, ir, m, U, M, B, offset, G, n_free, w, pivots, s, observed, e, z, slack, Z, X, info_work, info_pivots
):
    """Update step during the diffuse phase: filtered moments given η, and information about η, in place.

    Returns log p up to the term of `_diffuse_log_prob`, the number of observed entries and the number of free
    coordinates of η.
    """
    d, q, p = m.shape[0], M.shape[1], y.shape[1]
    o = _innovation(y, f, C, ic, R, ir, m, U, w, pivots, s, observed, e, slack)
    if o == 0:
        return 0.0, 0, n_free
    found, rank, exact = 0.0, 0, 0
    for j in range(o):  # innovation x − gᵀη, whitened: a row of Z, or of X where it has no variance of its own
        x = e[j]
        for k in range(rank):
            x -= w[k, j] * z[k]
        scale = w[rank, j] if pivots[j] >= 0 else 1.0
        size = 0.0  # of the terms of g: their sum may be rounding
        for a in range(n_free):
            g = 0.0
            for k in range(d):
                part = C[ic, observed[j], k] * M[k, a]
                g += part
                size += part * part
            for k in range(rank):
                g -= w[k, j] * Z[k, a]
            if pivots[j] >= 0:
                Z[rank, a] = g / scale
            else:
                X[exact, a] = g
        if pivots[j] >= 0:
            z[rank] = x / scale
            if not abs(z[rank]) < np.inf:  # overflow
                return -np.inf, o, n_free
            found -= math.log(scale) + HALF_LOG_2PI
            rank += 1
        else:
            X[exact, q], slack[exact], e[exact] = x, slack[j], size
            exact += 1
    for i in range(rank):
        for k in range(d):
            m[k] += w[i, o + k] * z[i]
            for a in range(n_free):
                M[k, a] -= w[i, o + k] * Z[i, a]
    _take_root(w, rank, p + d, o, U)
    _add_information(G, z, Z, rank, n_free, info_work, info_pivots, s)
    for i in range(exact):
        norm = 0.0
        for a in range(n_free):
            norm += X[i, a] * X[i, a]
        if norm > UNDETERMINED * e[i]:
            found += _impose_constraint(X, i, exact, n_free, offset, B, G, M, m, s) - HALF_LOG_2PI
            n_free -= 1
            _add_information(G, z, Z, 0, n_free, info_work, info_pivots, s)
        elif abs(X[i, q]) > slack[i]:
            found = -np.inf
    return found, o, n_free


@compiled
def _add_information(G, z, Z, rank, n_free, info_work, info_pivots, s):  # type: ignore[no-untyped-def]
    """Add the rows [Z | z] to the square-root information array [G | g] of η (QR update)."""
    q = G.shape[0] - 1
    for i in range(q + 1):
        for a in range(n_free):
            info_work[i, a] = G[i, a]
        info_work[i, n_free] = G[i, q]
    for i in range(rank):
        for a in range(n_free):
            info_work[q + 1 + i, a] = Z[i, a]
        info_work[q + 1 + i, n_free] = z[i]
    _triangularize(info_work, q + 1 + rank, n_free + 1, info_pivots, s, UNDETERMINED)
    for i in range(q + 1):
        for a in range(q + 1):
            G[i, a] = 0.0
        for a in range(n_free):
            G[i, a] = info_work[i, a]
        G[i, q] = info_work[i, n_free]


@compiled
def _diffuse_log_prob(G, n_free, w, pivots, s):  # type: ignore[no-untyped-def]
    """Contribution of the information about δ to log p: −½ρ² − ½ log det (ρ² residual sum of squares); and the rank."""
    q = G.shape[0] - 1
    rank = 0
    for i in range(n_free):
        size = 0.0
        for k in range(i, n_free):
            size += abs(G[i, k])
        if size > 0.0:
            rank = i + 1
    found, _ = _log_volume(G, rank, n_free, w, pivots, s)
    left = 0.0
    for i in range(rank, q + 1):
        left += G[i, q] * G[i, q]
    return -found - 0.5 * left, rank


@compiled
def _collapse_diffuse(m, U, M, B, offset, G, n_free, delta, D, w, pivots, s):  # type: ignore[no-untyped-def]
    """Collapse of the augmented filter: G has full rank, so δ has mean and root, and so has the state, without δ."""
    d, q = M.shape
    for i in range(q):
        delta[i] = offset[i]
        for j in range(q):
            D[i, j] = 0.0
    for i in range(n_free - 1, -1, -1):  # η = G⁻¹ g
        x = G[i, q]
        for k in range(i + 1, n_free):
            x -= G[i, k] * s[k]
        s[i] = x / G[i, i]
    for i in range(q):
        for a in range(n_free):
            delta[i] += B[i, a] * s[a]
    for k in range(d):
        for a in range(n_free):
            m[k] += M[k, a] * s[a]
    for i in range(n_free):  # D = G⁻ᵀ Bᵀ, rows by forward substitution
        for j in range(q):
            x = B[j, i]
            for k in range(i):
                x -= G[k, i] * D[k, j]
            D[i, j] = x / G[i, i]
    for i in range(d):
        for j in range(d):
            w[i, j] = U[i, j]
    for i in range(n_free):  # root of M Cov(η) Mᵀ: rows G⁻ᵀ Mᵀ
        for j in range(d):
            x = M[j, i]
            for k in range(i):
                x -= G[k, i] * w[d + k, j]
            w[d + i, j] = x / G[i, i]
    rank = _triangularize(w, d + n_free, d, pivots, s, ROUNDING)
    for i in range(d):
        for j in range(d):
            U[i, j] = w[i, j] if i < rank else 0.0


@compiled
def _store_diffuse(f, m, U, M, B, offset, G, n_free, diffuse_m, diffuse_U, diffuse_M, diffuse_G):  # type: ignore[no-untyped-def]
    """Store the augmented filter at frame f for the smoother, in terms of δ rather than of η."""
    d, q = M.shape
    for i in range(d):
        diffuse_m[f, i] = m[i]
        for j in range(d):
            diffuse_U[f, i, j] = U[i, j]
        for a in range(q):
            diffuse_M[f, i, a] = 0.0
            for k in range(n_free):
                diffuse_M[f, i, a] += M[i, k] * B[a, k]
            diffuse_m[f, i] -= diffuse_M[f, i, a] * offset[a]  # the mean at δ = 0
    for i in range(q + 1):
        diffuse_G[f, i, q] = G[i, q]
        for a in range(q):
            x = 0.0
            for k in range(n_free):
                x += G[i, k] * B[a, k]
            diffuse_G[f, i, a] = x
            diffuse_G[f, i, q] += x * offset[a]


# ------------------------------------------------------------------------- passes


@compiled
def _is_finite(m, U):  # type: ignore[no-untyped-def]
    """True if mean and root are finite: those of an unstable state overflow."""
    size = 0.0
    for i in range(m.shape[0]):
        size += 0.0 * m[i]
        for j in range(m.shape[0]):
            size += 0.0 * U[i, j]
    return size == 0.0


@compiled
def _steady_step(A, C, intercept, ip, y, f, K, V, log_norm, m, predicted, e):  # type: ignore[no-untyped-def]
    """Steady-state filter step: mean in place, and log p; False, and nothing done, if entries are missing."""
    d, p = m.shape[0], y.shape[1]
    for j in range(p):
        if np.isnan(y[f, j]):
            return False, 0.0
    for i in range(d):
        x = intercept[ip, i]
        for j in range(d):
            x += A[0, i, j] * m[j]
        predicted[i] = x
    for j in range(p):
        x = y[f, j]
        for k in range(d):
            x -= C[0, j, k] * predicted[k]
        e[j] = x
    lp = 0.0
    for i in range(p):
        x = 0.0
        for j in range(i + 1):
            x += V[i, j] * e[j]
        lp += x * x
    lp = log_norm - 0.5 * lp
    if not lp > -np.inf:
        return False, 0.0
    for i in range(d):
        x = predicted[i]
        for j in range(p):
            x += K[i, j] * e[j]
        m[i] = x
    return True, lp


@compiled
def _store(f, m, U, lp, unchanged, means, roots, increments, is_steady):  # type: ignore[no-untyped-def]
    """Store filtered mean, root and log-likelihood increment of frame f, where the arrays have room."""
    if means.shape[0] > 0:
        for i in range(m.shape[0]):
            means[f, i] = m[i]
            for j in range(m.shape[0]):
                roots[f, i, j] = U[i, j]
    if increments.shape[0] > 0:
        increments[f] = lp
    if is_steady.shape[0] > 0:
        is_steady[f] = unchanged


@compiled
def filter_pass(A, N, C, R, intercept, y, offsets, m0, U0, begin, at, means, roots, is_steady, increments, total):  # type: ignore[no-untyped-def]
    """Kalman filter over every sequence n from frame at[n] on; moments before it are m0, U0, shared or per sequence.

    `begin` is the number of the first frame (0: m0 is that of x_0; else of the state one step before). Written, where
    the array has room: filtered `means` (F, d) and `roots`, `is_steady` (F,): root as in the frame before, `increments`
    (F,): log p(y_t | y_1 … y_{t−1}). `total` (n,), the log-likelihood, is added to; NaN where a state overflows.
    """
    d, p = m0.shape[1], y.shape[1]
    most = 2 * max(d, p) + 2
    w, pivots, s = np.zeros((most + d, most + d)), np.zeros(most + d, np.int64), np.zeros(most + d)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    m, U, last, predicted = np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    K, V = np.zeros((d, p)), np.zeros((p, p))
    constant = A.shape[0] == 1 and N.shape[0] == 1 and C.shape[0] == 1 and R.shape[0] == 1
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        of = n if m0.shape[0] > 1 else 0
        _copy1(m0[of], m)
        _copy2(U0[of], U)
        steady, before, log_norm = False, 0, 0.0
        sum_ = 0.0
        for f in range(first + at[n], end):
            t = f - first + begin
            ip = f if intercept.shape[0] == y.shape[0] else 0
            if steady:
                steady, lp = _steady_step(A, C, intercept, ip, y, f, K, V, log_norm, m, predicted, e)
                if steady:
                    sum_ += lp
                    _store(f, m, U, lp, 1, means, roots, increments, is_steady)
                    continue
            if t > 0:
                _predict(A, min(t, A.shape[0] - 1), N, min(t, N.shape[0] - 1), intercept, ip, m, U, w, pivots, s, e)
            ic, ir = min(t, C.shape[0] - 1), min(t, R.shape[0] - 1)
            lp, o = _update(y, f, C, ic, R, ir, m, U, w, pivots, s, observed, e, z, slack)
            sum_ += lp
            _store(f, m, U, lp, 0, means, roots, increments, is_steady)
            if constant:
                if o == p and before == p and _has_converged(U, last) and _steady_gain(w, pivots, p, d, K, V):
                    steady = True
                    log_norm = -p * HALF_LOG_2PI
                    for j in range(p):
                        log_norm -= math.log(w[j, j])
                _copy2(U, last)
                before = o if not np.isneginf(lp) else 0
        total[n] = total[n] + sum_ if _is_finite(m, U) else np.nan


@compiled_for_size
def diffuse_pass(  # type: ignore[no-untyped-def]
    A, N, C, R, intercept, y, offsets, m0, U0, E, begin, means, roots, is_steady, increments, total, diffuse_end,
    diffuse_m, diffuse_U, diffuse_M, delta, D, diffuse_G, to_m, to_U,
):  # fmt: skip
    """Diffuse phase of every sequence: the frames in which the initial state m0 + E δ is not yet determined.

    Stored per frame: the state given δ, diffuse_m + diffuse_M δ with root diffuse_U, and the information array
    diffuse_G = [G | g] of δ. `diffuse_end` (n,) is the frame, counted from the sequence's first, at which δ is
    determined and the augmented filter collapses, the length if never; then `delta`, `D` are mean and root of δ, and
    to_m, to_U (n, …) those of the state, from which `filter_pass` continues. All else as in `filter_pass`.
    """
    d, p, q = m0.shape[0], y.shape[1], E.shape[1]
    most = 2 * max(d, p) + 2 * q + 2
    w, pivots, s = np.zeros((most + d, most + d)), np.zeros(most + d, np.int64), np.zeros(most + d)
    info_work, info_pivots = np.zeros((2 * q + p + 2, 2 * q + 2)), np.zeros(2 * q + 2, np.int64)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    m, U, predicted = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    M, B, offset, G = np.zeros((d, q)), np.zeros((q, q)), np.zeros(q), np.zeros((q + 1, q + 1))
    Z, X = np.zeros((p, q)), np.zeros((p, q + 1))
    old_m, old_U, old_M, old_B, old_point, old_G = m.copy(), U.copy(), M.copy(), B.copy(), offset.copy(), G.copy()
    B0, point0, G0 = np.eye(q), offset.copy(), G.copy()
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        n_free, diffuse_lp, sum_ = q, 0.0, 0.0
        _copy_diffuse(m0, U0, E, B0, point0, G0, m, U, M, B, offset, G)
        diffuse_end[n] = end - first
        for f in range(first, end):
            t = f - first + begin
            ip = f if intercept.shape[0] == y.shape[0] else 0
            if t > 0:
                ia = min(t, A.shape[0] - 1)
                _predict(A, ia, N, min(t, N.shape[0] - 1), intercept, ip, m, U, w, pivots, s, e)
                _predict_loadings(A, ia, M, n_free, predicted)
            _copy_diffuse(m, U, M, B, offset, G, old_m, old_U, old_M, old_B, old_point, old_G)
            ic, ir = min(t, C.shape[0] - 1), min(t, R.shape[0] - 1)
            lp, _, left = _diffuse_update(
                y,
                f,
                C,
                ic,
                R,
                ir,
                m,
                U,
                M,
                B,
                offset,
                G,
                n_free,
                w,
                pivots,
                s,
                observed,
                e,
                z,
                slack,
                Z,
                X,
                info_work,
                info_pivots,
            )
            now, rank = _diffuse_log_prob(G, left, w, pivots, s)
            lp += now - diffuse_lp
            if lp > -np.inf:
                diffuse_lp, n_free = now, left
            else:  # probability 0: counts as missing
                _copy_diffuse(old_m, old_U, old_M, old_B, old_point, old_G, m, U, M, B, offset, G)
                lp, rank = -np.inf, -1
            if diffuse_m.shape[0] > 0:
                _store_diffuse(f, m, U, M, B, offset, G, n_free, diffuse_m, diffuse_U, diffuse_M, diffuse_G)
            sum_ += lp
            if rank == n_free:
                _collapse_diffuse(m, U, M, B, offset, G, n_free, delta[n], D[n], w, pivots, s)
                diffuse_end[n] = f - first
            _store(f, m, U, lp, 0, means, roots, increments, is_steady)
            if rank == n_free:
                break
        total[n] = sum_ if _is_finite(m, U) else np.nan
        _copy1(m, to_m[n])
        _copy2(U, to_U[n])
        if diffuse_end[n] == end - first:  # never determined: the coordinates fixed so far
            _copy1(offset, delta[n])


# --------------------------------------------------------------------- smoother (backward pass)


@compiled
def _stack_joint(A, ia, N, iq, U, w):  # type: ignore[no-untyped-def]
    """Stacked joint root of (x_{t+1}, x_t), before triangularization."""
    d = U.shape[0]
    _stack_prediction(A, ia, N, iq, U, w)
    for i in range(d):
        for j in range(d):
            w[i, d + j], w[d + i, d + j] = U[i, j], 0.0


@compiled
def _smoother_gain(A, ia, N, iq, U, w, pivots, s, J, cond, V):  # type: ignore[no-untyped-def]
    """Smoother gain J = P_t Aᵀ P_{t+1|t}⁻¹, and `cond`, the root of Cov(x_t | x_{t+1}, y_1 … y_t)."""
    d = U.shape[0]
    _stack_joint(A, ia, N, iq, U, w)
    _triangularize(w, 2 * d, 2 * d, pivots, s, UNDETERMINED)
    if _rank_uncertain(pivots, 2 * d):
        _stack_joint(A, ia, N, iq, U, w)
        _triangularize_rank_revealing(w, 2 * d, 2 * d, pivots, UNDETERMINED)
    _regress(w, pivots, d, d, J, V)
    rank = 0
    for j in range(d):
        if pivots[j] >= 0:
            rank += 1
    _take_root(w, rank, 2 * d, d, cond)


@compiled
def _regress(w, pivots, c, r, J, V):  # type: ignore[no-untyped-def]
    """Regression E[b | a] = J a from a triangular joint root of (a, b), a first; 0 for linearly dependent columns."""
    rank = 0
    for j in range(c):
        for i in range(r):
            J[i, j] = 0.0
    for j in range(c):
        if pivots[j] < 0:
            continue
        for i in range(rank + 1):  # V holds the rows of the inverse
            x = 1.0 if i == rank else 0.0
            for k in range(i, rank):
                x -= w[k, j] * V[k, i]
            V[rank, i] = x / w[rank, j]
        rank += 1
    column = 0
    for j in range(c):
        if pivots[j] < 0:
            continue
        for i in range(r):
            x = 0.0
            for k in range(column, rank):
                x += V[k, column] * w[k, c + i]
            J[i, j] = x
        column += 1


@compiled
def _square(U, r, d, out, f):  # type: ignore[no-untyped-def]
    """out[f] = UᵀU of the first r rows and d columns."""
    for i in range(d):
        for j in range(i + 1):
            x = 0.0
            for k in range(r):
                x += U[k, i] * U[k, j]
            out[f, i, j] = x
            out[f, j, i] = x


@compiled
def _stack_smoothed(U, r, J, cond, w, lag, f, keeps):  # type: ignore[no-untyped-def]
    """Stack of a smoothing step, (U Jᵀ, cond), in w; lag[f] = Cov(x_{t+1}, x_t) if `keeps`."""
    d = J.shape[0]
    for i in range(r):
        for j in range(d):
            x = 0.0
            for k in range(d):
                x += U[i, k] * J[j, k]
            w[i, j] = x
    for i in range(d):
        for j in range(d):
            w[r + i, j] = cond[i, j]
    if keeps:
        for i in range(d):
            for j in range(d):
                x = 0.0
                for k in range(r):
                    x += U[k, i] * w[k, j]
                lag[f, i, j] = x


@compiled
def smooth_pass(A, N, intercept, offsets, begin, diffuse_end, means, roots, is_steady, out, cov, lag, to_m, to_U):  # type: ignore[no-untyped-def]
    """Backward pass of the RTS smoother: `out` (F, d), `cov` (F, d, d), lag[f] = Cov(x_f, x_{f−1}) if it has room.

    It ends at the last frame of the diffuse phase, whose mean and root go to `to_m`, `to_U` where they have room:
    `smooth_diffuse_pass` continues from there. Sequences whose initial state is not determined are skipped.
    """
    d, F = means.shape[1], means.shape[0]
    w, pivots, s = np.zeros((4 * d, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d)
    J, cond, V, U = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    m, predicted, last = np.zeros(d), np.zeros(d), np.zeros((d, d))
    constant, keeps = A.shape[0] == 1 and N.shape[0] == 1, lag.shape[0] > 0
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        if end == first or diffuse_end[n] == end - first:
            continue
        first_known = first + diffuse_end[n]
        _copy1(means[end - 1], m)
        _copy2(roots[end - 1], U)
        for i in range(d):
            out[end - 1, i] = m[i]
        _square(U, d, d, cov, end - 1)
        have_gain, converged = False, False
        for f in range(end - 2, first_known - 1, -1):
            t = f + 1 - first + begin
            ia, iq = min(t, A.shape[0] - 1), min(t, N.shape[0] - 1)
            ip = f + 1 if intercept.shape[0] == F else 0
            if not (have_gain and constant and is_steady[f + 1] == 1):
                _smoother_gain(A, ia, N, iq, roots[f], w, pivots, s, J, cond, V)
                have_gain, converged = True, False
            for i in range(d):
                x = intercept[ip, i]
                for j in range(d):
                    x += A[ia, i, j] * means[f, j]
                predicted[i] = m[i] - x
            for i in range(d):
                x = means[f, i]
                for j in range(d):
                    x += J[i, j] * predicted[j]
                s[i] = x
            for i in range(d):
                m[i] = s[i]
                out[f, i] = s[i]
            if converged:
                for i in range(d):
                    for j in range(d):
                        cov[f, i, j] = cov[f + 1, i, j]
                if keeps:
                    for i in range(d):
                        for j in range(d):
                            lag[f + 1, i, j] = lag[f + 2, i, j]
                continue
            _stack_smoothed(U, d, J, cond, w, lag, f + 1, keeps)
            _copy2(U, last)
            rank = _triangularize(w, 2 * d, d, pivots, s, ROUNDING)
            _take_root(w, 0, rank, 0, U)
            _square(U, d, d, cov, f)
            converged = constant and is_steady[f + 1] == 1 and f + 2 < end and _has_converged(U, last)
        if to_m.shape[0] > 0:
            _copy1(m, to_m[n])
            _copy2(U, to_U[n])


@compiled_for_size
def smooth_diffuse_pass(  # type: ignore[no-untyped-def]
    A,
    N,
    intercept,
    offsets,
    begin,
    means,
    diffuse_end,
    diffuse_m,
    diffuse_U,
    diffuse_M,
    delta,
    D,
    to_m,
    to_U,
    out,
    cov,
    lag,
):
    """Backward pass through the diffuse phase of sequences that needed more than their first frame for it."""
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        if 0 < diffuse_end[n] < end - first:
            _smooth_diffuse(
                A, N, intercept, begin, first, first + diffuse_end[n], means, diffuse_m, diffuse_U, diffuse_M,
                delta[n], D[n], to_m[n], to_U[n], out, cov, lag, lag.shape[0] > 0,
            )  # fmt: skip


@compiled
def _stack_diffuse(U, M, D, w):  # type: ignore[no-untyped-def]
    """Stacked joint root of a state and of δ, before triangularization: rows (U | 0) and (D Mᵀ | D)."""
    d, q = M.shape
    for i in range(d):
        for j in range(d + q):
            w[i, j] = U[i, j] if j < d else 0.0
    for i in range(q):
        for j in range(d):
            x = 0.0
            for k in range(q):
                x += D[i, k] * M[j, k]
            w[d + i, j] = x
        for j in range(q):
            w[d + i, d + j] = D[i, j]


@compiled
def _smooth_diffuse(  # type: ignore[no-untyped-def]
    A, N, intercept, begin, first, at, means, diffuse_m, diffuse_U, diffuse_M, delta, D, m, U, out, cov, lag, keeps
):
    """Smooth backward from frame `at`, the end of the diffuse phase, with the joint distribution of the state and δ."""
    d, q, F = means.shape[1], diffuse_M.shape[2], means.shape[0]
    c = d + q
    w, pivots, s = np.zeros((3 * c, 2 * c)), np.zeros(2 * c, np.int64), np.zeros(2 * c)
    J, cond, V, delta_gain, Vd = (
        np.zeros((d, d)),
        np.zeros((d, d)),
        np.zeros((c, c)),
        np.zeros((q, d)),
        np.zeros((c, c)),
    )
    joint, cond_delta, x, filtered, loadings_gain = (
        np.zeros((c, c)),
        np.zeros((c, c)),
        np.zeros(c),
        np.zeros(d),
        np.zeros((d, q)),
    )
    _stack_diffuse(diffuse_U[at], diffuse_M[at], D, w)
    _triangularize(w, c, c, pivots, s, UNDETERMINED)
    if _rank_uncertain(pivots, c):
        _stack_diffuse(diffuse_U[at], diffuse_M[at], D, w)
        _triangularize_rank_revealing(w, c, c, pivots, UNDETERMINED)
    _regress(w, pivots, d, q, delta_gain, Vd)
    rank = 0
    for j in range(d):
        if pivots[j] >= 0:
            rank += 1
    for i in range(c):  # root of Cov(δ | x)
        for j in range(q):
            cond_delta[i, j] = w[rank + i, d + j] if rank + i < c else 0.0
    for i in range(d):
        x[i] = m[i]
    for i in range(q):
        x[d + i] = delta[i]
        for k in range(d):
            x[d + i] += delta_gain[i, k] * (m[k] - means[at, k])
    for i in range(d):
        for j in range(d):
            w[i, j] = U[i, j]
        for j in range(q):
            w[i, d + j] = 0.0
            for k in range(d):
                w[i, d + j] += U[i, k] * delta_gain[j, k]
    for i in range(c):
        for j in range(c):
            w[d + i, j] = cond_delta[i, j - d] if j >= d else 0.0
    rank = _triangularize(w, d + c, c, pivots, s, ROUNDING)
    for i in range(c):
        for j in range(c):
            joint[i, j] = w[i, j] if i < rank else 0.0
    for f in range(at - 1, first - 1, -1):
        t = f + 1 - first + begin
        ia, iq = min(t, A.shape[0] - 1), min(t, N.shape[0] - 1)
        ip = f + 1 if intercept.shape[0] == F else 0
        _smoother_gain(A, ia, N, iq, diffuse_U[f], w, pivots, s, J, cond, V)
        for i in range(d):  # the filtered mean given δ, and the prediction error of x_{t+1}
            filtered[i] = diffuse_m[f, i]
            for k in range(q):
                filtered[i] += diffuse_M[f, i, k] * x[d + k]
        for i in range(d):
            s[i] = x[i] - intercept[ip, i]
            for k in range(d):
                s[i] -= A[ia, i, k] * filtered[k]
        for i in range(d):
            x[i] = filtered[i]
            for k in range(d):
                x[i] += J[i, k] * s[k]
            out[f, i] = x[i]
        for i in range(d):
            for a in range(q):
                s[a] = diffuse_M[f, i, a]
            for k in range(d):
                for j in range(d):
                    for a in range(q):
                        s[a] -= J[i, k] * A[ia, k, j] * diffuse_M[f, j, a]
            for a in range(q):
                loadings_gain[i, a] = s[a]
        for i in range(c):
            for j in range(d):
                g = 0.0
                for k in range(d):
                    g += joint[i, k] * J[j, k]
                for a in range(q):
                    g += joint[i, d + a] * loadings_gain[j, a]
                w[i, j] = g
            for a in range(q):
                w[i, d + a] = joint[i, d + a]
        if keeps:
            for i in range(d):
                for j in range(d):
                    g = 0.0
                    for k in range(c):
                        g += joint[k, i] * w[k, j]
                    lag[f + 1, i, j] = g
        for i in range(d):
            for j in range(c):
                w[c + i, j] = cond[i, j] if j < d else 0.0
        rank = _triangularize(w, c + d, c, pivots, s, ROUNDING)
        for i in range(c):
            for j in range(c):
                joint[i, j] = w[i, j] if i < rank else 0.0
        _square(joint, c, d, cov, f)


@compiled_for_size
def lag_pass(A, N, intercept, offsets, begin, means, roots, is_steady, lag, out, cov):  # type: ignore[no-untyped-def]
    """Fixed-lag smoother p(x_t | y_1 … y_{t + lag}): backward steps from `lag` frames later, or from the last frame."""
    d, F = means.shape[1], means.shape[0]
    w, pivots, s = np.zeros((2 * d, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d)
    V, U, m, none = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), np.zeros((0, d, d))
    constant = A.shape[0] == 1 and N.shape[0] == 1
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        length = end - first
        J, cond, predicted = np.zeros((length, d, d)), np.zeros((length, d, d)), np.zeros((length, d))
        for f in range(first, end - 1):
            t = f + 1 - first + begin
            ia, iq = min(t, A.shape[0] - 1), min(t, N.shape[0] - 1)
            ip = f + 1 if intercept.shape[0] == F else 0
            if constant and is_steady[f] == 1 and f > first:
                _copy2(J[f - first - 1], J[f - first])
                _copy2(cond[f - first - 1], cond[f - first])
            else:
                _smoother_gain(A, ia, N, iq, roots[f], w, pivots, s, J[f - first], cond[f - first], V)
            for i in range(d):
                x = intercept[ip, i]
                for j in range(d):
                    x += A[ia, i, j] * means[f, j]
                predicted[f - first, i] = x
        for f in range(first, end):
            at = min(f + lag, end - 1)
            _copy1(means[at], m)
            _copy2(roots[at], U)
            for g in range(at - 1, f - 1, -1):
                for i in range(d):
                    x = means[g, i]
                    for j in range(d):
                        x += J[g - first, i, j] * (m[j] - predicted[g - first, j])
                    s[i] = x
                for i in range(d):
                    m[i] = s[i]
                _stack_smoothed(U, d, J[g - first], cond[g - first], w, none, 0, False)
                rank = _triangularize(w, 2 * d, d, pivots, s, ROUNDING)
                _take_root(w, 0, rank, 0, U)
            for i in range(d):
                out[f, i] = m[i]
            _square(U, d, d, cov, f)


# ----------------------------------------------------------------------------- single steps


@compiled_for_size
def predict_one(A, N, intercept, t, m, U, to_m, to_U):  # type: ignore[no-untyped-def]
    """Prediction step of one belief, written to (to_m, to_U)."""
    d = m.shape[0]
    w, pivots, s, e = np.zeros((2 * d, d)), np.zeros(d, np.int64), np.zeros(d), np.zeros(d)
    _copy1(m, to_m)
    _copy2(U, to_U)
    _predict(A, min(t, A.shape[0] - 1), N, min(t, N.shape[0] - 1), intercept, 0, to_m, to_U, w, pivots, s, e)


@compiled_for_size
def update_one(y, C, R, t, m, U, to_m, to_U):  # type: ignore[no-untyped-def]
    """Update step of one belief with y (1, p), written to (to_m, to_U); returns log p(y | earlier frames)."""
    d, p = m.shape[0], y.shape[1]
    w, pivots, s = np.zeros((p + d, p + d)), np.zeros(p + d, np.int64), np.zeros(p + d)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(p), np.zeros(p), np.zeros(p)
    _copy1(m, to_m)
    _copy2(U, to_U)
    lp, _ = _update(
        y, 0, C, min(t, C.shape[0] - 1), R, min(t, R.shape[0] - 1), to_m, to_U, w, pivots, s, observed, e, z, slack
    )
    return lp


@compiled
def _smoother_gain_one(A, N, t, U, J, cond):  # type: ignore[no-untyped-def]
    """Smoother gain J of x_{t−1} (root U) given x_t, and the root `cond` of its conditional covariance."""
    d = U.shape[0]
    w, pivots, s, V = np.zeros((2 * d, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d), np.zeros((d, d))
    _smoother_gain(A, min(t, A.shape[0] - 1), N, min(t, N.shape[0] - 1), U, w, pivots, s, J, cond, V)


@compiled_for_size
def iterate_riccati(A, N, C, R, no_intercept, y, U, predicted, frames):  # type: ignore[no-untyped-def]
    """Riccati recursion of the roots, for complete frames, until convergence or `frames` steps.

    The filtered root U is changed in place, the predicted root is written to `predicted`; `no_intercept` (1, d) and y
    (1, p) are zeros. Returns the number of frames, and the last change of an entry in units of its standard deviation.
    """
    d, p, change = U.shape[0], y.shape[1], np.inf
    most = max(2 * d, p + d)
    w, pivots, s = np.zeros((most, p + d)), np.zeros(p + d, np.int64), np.zeros(p + d)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    m, last = np.zeros(d), np.zeros((d, d))
    for t in range(frames):
        _copy2(U, last)
        _predict(A, 0, N, 0, no_intercept, 0, m, U, w, pivots, s, e)
        _copy2(U, predicted)
        _update(y, 0, C, 0, R, 0, m, U, w, pivots, s, observed, e, z, slack)
        change = _relative_change(U, last)
        if change <= 1e-14:
            return t + 1, change
    return frames, change


@compiled
def _relative_change(U, last):  # type: ignore[no-untyped-def]
    """Largest change of an entry of a root, relative to its column's norm."""
    most = 0.0
    for j in range(U.shape[0]):
        size, moved = 0.0, 0.0
        for i in range(j + 1):
            size += U[i, j] * U[i, j]
            moved = max(moved, abs(U[i, j] - last[i, j]))
        if moved > 0.0:
            most = max(most, moved / np.sqrt(size))
    return most


@compiled_for_size
def step_many(A, N, C, R, intercept, y, which_model, predicts, m, U, out):  # type: ignore[no-untyped-def]
    """Filter step of many beliefs (n, d), each under its own model: predict if `predicts`, update; out (n,) log p(y).

    A (K, d, d), N, C, R: one entry per model; intercept (K, d): effect of inputs on the state; y (K, p): the
    observation minus their effect. In place.
    """
    n, d, p = m.shape[0], m.shape[1], y.shape[1]
    most = max(2 * d, p + d)
    w, pivots, s = np.zeros((most, p + 2 * d)), np.zeros(p + 2 * d, np.int64), np.zeros(p + 2 * d)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    for i in range(n):
        k = which_model[i]
        if predicts:
            _predict(A, k, N, k, intercept, k, m[i], U[i], w, pivots, s, e)
        out[i], _ = _update(y, k, C, k, R, k, m[i], U[i], w, pivots, s, observed, e, z, slack)


@compiled
def _diffuse_step(A, N, C, R, intercept, y, t, now_at, m, U, M, B, offset, G, n_free, diffuse_lp, to_m, to_U, delta, D):  # type: ignore[no-untyped-def]
    """One step of the augmented filter in the diffuse phase, all but to_*, delta and D in place.

    A negative t is an update at frame `now_at`, without a prediction.

    Returns log p, n_free, diffuse_lp, and whether the filter collapsed: then (to_m, to_U) is the belief.
    """
    d, p, q = m.shape[0], y.shape[1], M.shape[1]
    most = 2 * max(d, p) + 2 * q + 2 + d
    w, pivots, s = np.zeros((most, most)), np.zeros(most, np.int64), np.zeros(most)
    info_work, info_pivots = np.zeros((2 * q + p + 2, 2 * q + 2)), np.zeros(2 * q + 2, np.int64)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    Z, X = np.zeros((p, q)), np.zeros((p, q + 1))
    at = t if t > 0 else now_at
    if t > 0:
        _predict(A, min(at, A.shape[0] - 1), N, min(at, N.shape[0] - 1), intercept, 0, m, U, w, pivots, s, e)
        _predict_loadings(A, min(at, A.shape[0] - 1), M, n_free, s)
    ic, ir = min(at, C.shape[0] - 1), min(at, R.shape[0] - 1)
    lp, _, n_free = _diffuse_update(
        y,
        0,
        C,
        ic,
        R,
        ir,
        m,
        U,
        M,
        B,
        offset,
        G,
        n_free,
        w,
        pivots,
        s,
        observed,
        e,
        z,
        slack,
        Z,
        X,
        info_work,
        info_pivots,
    )
    now, rank = _diffuse_log_prob(G, n_free, w, pivots, s)
    _copy1(m, to_m)
    _copy2(U, to_U)
    if rank == n_free:
        _collapse_diffuse(to_m, to_U, M, B, offset, G, n_free, delta, D, w, pivots, s)
    return lp + now - diffuse_lp, n_free, now, rank == n_free


@compiled_for_size
def simulate_states(A, intercept, noise, offsets, initial, out):  # type: ignore[no-untyped-def]
    """States of simulated sequences: out[f] = A out[f − 1] + intercept + noise[f], from initial states (n, d)."""
    d = initial.shape[1]
    for n in range(offsets.shape[0] - 1):
        for f in range(offsets[n], offsets[n + 1]):
            t = f - offsets[n]
            for i in range(d):
                if t == 0:
                    out[f, i] = initial[n, i]
                    continue
                x = intercept[f if intercept.shape[0] == out.shape[0] else 0, i] + noise[f, i]
                for j in range(d):
                    x += A[min(t, A.shape[0] - 1), i, j] * out[f - 1, j]
                out[f, i] = x


# ------------------------------------------------------------------------- switching


@compiled
def _moment_match(weight, m, U, to_m, to_U, w, pivots, s):  # type: ignore[no-untyped-def]
    """Moment matching: a Gaussian mixture as one Gaussian; returns the total weight, writes nothing if it is 0."""
    d, total = m.shape[1], 0.0
    for i in range(weight.shape[0]):
        total += weight[i]
    if not total > 1e-300:  # ratios of smaller numbers would be inexact
        return 0.0
    for j in range(d):
        x = 0.0
        for i in range(weight.shape[0]):
            if weight[i] > NEGLIGIBLE * total:
                x += weight[i] / total * m[i, j]
        to_m[j] = x
    rows = 0
    for i in range(weight.shape[0]):
        if weight[i] > NEGLIGIBLE * total:
            r = np.sqrt(weight[i] / total)
            for j in range(d):
                w[rows, j] = r * (m[i, j] - to_m[j])
            for a in range(d):
                for j in range(d):
                    w[rows + 1 + a, j] = r * U[i, a, j]
            rows += d + 1
    rank = _triangularize(w, rows, d, pivots, s, ROUNDING)
    for i in range(d):
        for j in range(d):
            to_U[i, j] = w[i, j] if i < rank else 0.0
    return total


@compiled
def _by_regime(logw, regime, m, U, weight, to_log, to_m, to_U, w, pivots, s):  # type: ignore[no-untyped-def]
    """Collapse the components of each regime to one Gaussian per regime."""
    for k in range(to_m.shape[0]):
        for i in range(logw.shape[0]):
            weight[i] = np.exp(logw[i]) if regime[i] == k else 0.0
        to_log[k] = np.log(_moment_match(weight[: logw.shape[0]], m, U, to_m[k], to_U[k], w, pivots, s))


@compiled
def _interact(P, A, N, intercept, row, stride, both, logw, m, U, to_log, to_which, to_m, to_U, weight, w, pivots, s, e):  # type: ignore[no-untyped-def]
    """Prediction of K beliefs: one mixed belief per next regime (IMM), or with `both` all K² pairs (GPB2)."""
    K = m.shape[0]
    for j in range(K):
        if both:
            for i in range(K):
                at = i * K + j
                to_log[at] = logw[i] + np.log(P[i, j])
                to_which[at] = j
                _copy1(m[i], to_m[at])
                _copy2(U[i], to_U[at])
                _predict(A, j, N, j, intercept, row + stride * j, to_m[at], to_U[at], w, pivots, s, e)
            continue
        for i in range(K):
            weight[i] = np.exp(logw[i]) * P[i, j]
        _copy1(m[j], to_m[j])
        _copy2(U[j], to_U[j])
        to_log[j] = np.log(_moment_match(weight[:K], m, U, to_m[j], to_U[j], w, pivots, s))
        to_which[j] = j
        _predict(A, j, N, j, intercept, row + stride * j, to_m[j], to_U[j], w, pivots, s, e)


@compiled
def _update_weights(y, row, stride, C, R, mask, at, logw, regime, m, U, w, pivots, s, observed, e, z, slack):  # type: ignore[no-untyped-def]
    """Update step of weighted beliefs, weights times likelihoods, in place; returns log p(y | earlier frames)."""
    top = -np.inf
    for i in range(logw.shape[0]):
        k = regime[i]
        logw[i] += mask[at, k]
        if logw[i] > -np.inf:
            found, _ = _update(y, row + stride * k, C, k, R, k, m[i], U[i], w, pivots, s, observed, e, z, slack)
            logw[i] += found
        top = max(top, logw[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(logw.shape[0]):
        total += np.exp(logw[i] - top)
    for i in range(logw.shape[0]):  # not minus log p(y): next to that of an outlier, −1e14, digits of weights are lost
        logw[i] = (logw[i] - top) - np.log(total)
    return top + np.log(total)


@compiled_for_size
def update_many(y, C, R, logw, regime, m, U):  # type: ignore[no-untyped-def]
    """Update step of weighted beliefs in their regimes with y (K, p), in place; returns log p(y | earlier frames)."""
    d, p = m.shape[1], y.shape[1]
    w, pivots, s = np.zeros((p + d, p + d)), np.zeros(p + d, np.int64), np.zeros(p + d)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(p), np.zeros(p), np.zeros(p)
    none = np.zeros((1, y.shape[0]))
    return _update_weights(y, 0, 1, C, R, none, 0, logw, regime, m, U, w, pivots, s, observed, e, z, slack)


@compiled_for_size
def interact_once(P, A, N, intercept, both, logw, regime, m, U, to_log, to_which, to_m, to_U):  # type: ignore[no-untyped-def]
    """Prediction step of weighted beliefs, collapsed by regime if `both`; intercept (K, d)."""
    K, d, n = P.shape[0], m.shape[1], m.shape[0]
    most = max(n * (d + 1), 2 * d)
    w, pivots, s, e, weight = np.zeros((most, d)), np.zeros(d, np.int64), np.zeros(d), np.zeros(d), np.zeros(max(n, K))
    own_log, own_m, own_U = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    if both:
        _by_regime(logw, regime, m, U, weight, own_log, own_m, own_U, w, pivots, s)
    else:
        _copy1(logw, own_log)
        _copy2(m, own_m)
        _copy3(U, own_U)
    _interact(
        P, A, N, intercept, 0, 1, both, own_log, own_m, own_U, to_log, to_which, to_m, to_U, weight, w, pivots, s, e
    )


@compiled_for_size
def switch_pass(  # type: ignore[no-untyped-def]
    P, A, N, C, R, intercept, intercept_step, intercept_stride, y, stride, mask, offsets, start_log, start_m, start_U,
    both, own_log, own_m, own_U, increments, total,
):  # fmt: skip
    """Filter of a switching model (IMM or GPB2): weight, mean and root per regime, and log-likelihood increments.

    Regime k reads frame f in row f + stride · k of y, and the effect of inputs in row intercept_step · f +
    intercept_stride · k. At a frame of probability 0 the belief is the predicted one, and the sequence's total is −inf.
    """
    K, d, p = P.shape[0], A.shape[1], y.shape[1]
    n = K * K if both else K
    most = max(n * (d + 1), 2 * d, p + d)
    w, pivots, s = np.zeros((most, p + 2 * d)), np.zeros(p + 2 * d, np.int64), np.zeros(p + 2 * d)
    observed, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    v, logw, regime, m, U = np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros((n, d)), np.zeros((n, d, d))
    old_log, old_m, old_U = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
    for q in range(offsets.shape[0] - 1):
        total[q] = 0.0
        for f in range(offsets[q], offsets[q + 1]):
            c = n
            if f == offsets[q]:
                c = K
                for k in range(K):
                    logw[k], regime[k] = start_log[k], k
                _copy2(start_m, m)
                _copy3(start_U, U)
            else:
                _interact(P, A, N, intercept, intercept_step * f, intercept_stride, both, own_log[f - 1],
                          own_m[f - 1], own_U[f - 1], logw, regime, m, U, v, w, pivots, s, e)  # fmt: skip
            _copy1(logw, old_log)
            _copy2(m, old_m)
            _copy3(U, old_U)
            at = f if mask.shape[0] > 1 else 0
            increments[f] = _update_weights(
                y, f, stride, C, R, mask, at, logw[:c], regime[:c], m, U, w, pivots, s, observed, e, z, slack
            )
            if increments[f] == -np.inf:
                _copy1(old_log, logw)
                _copy2(old_m, m)
                _copy3(old_U, U)
            total[q] += increments[f]
            if both:
                _by_regime(logw[:c], regime[:c], m, U, v, own_log[f], own_m[f], own_U[f], w, pivots, s)
            else:
                _copy1(logw, own_log[f])
                _copy2(m, own_m[f])
                _copy3(U, own_U[f])


@compiled
def _log_predictive(A, k, N, intercept, row, x, m, U, w, pivots, s, e):  # type: ignore[no-untyped-def]
    """log N(x; A m + intercept, A P Aᵀ + Q) on the support of the covariance, without constants."""
    d = m.shape[0]
    for i in range(d):
        e[i] = x[i] - intercept[row, i]
        for j in range(d):
            e[i] -= A[k, i, j] * m[j]
    for i in range(d):
        for j in range(d):
            a = 0.0
            for b in range(i, d):
                a += U[i, b] * A[k, j, b]
            w[i, j] = a
            w[d + i, j] = N[k, i, j]
    _triangularize(w, 2 * d, d, pivots, s, ROUNDING)
    found, rank = 0.0, 0
    for j in range(d):
        if pivots[j] < 0:
            continue
        a = e[j]
        for b in range(rank):
            a -= w[b, j] * s[b]
        s[rank] = a / w[rank, j]
        found -= 0.5 * s[rank] * s[rank] + np.log(w[rank, j])
        rank += 1
    return found if found > -np.inf else -np.inf  # NaN, where distances leave the range of numbers


@compiled_for_size
def switch_back(  # type: ignore[no-untyped-def]
    P, A, N, intercept, intercept_step, intercept_stride, offsets, own_log, own_m, own_U, posterior, smoothed_m,
    smoothed_U, joint, pair_m, pair_P, pair_L,
):  # fmt: skip
    """Backward pass of a switching model: posterior (F, K), smoothed means and roots per regime.

    Regime j of the previous frame is weighted by its predictive density at the smoothed mean of regime k: expectation
    correction (Barber 2006).

    joint[f, j, k] is p(z_{f−1} = j, z_f = k | y); row (f K + j) K + k of pair_m and pair_P holds mean and covariance of
    x_{f−1} in that case, and of pair_L Cov(x_f, x_{f−1}).
    """
    K, d = P.shape[0], A.shape[1]
    most = max(K * (d + 1), 4 * d)
    w, pivots, s, V = np.zeros((most, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d), np.zeros((d, d))
    J, cond, v, e = np.zeros((d, d)), np.zeros((d, d)), np.zeros(K), np.zeros(d)
    pair_root, pair_mean = np.zeros((K, d, d)), np.zeros((K, d))
    for q in range(offsets.shape[0] - 1):
        first, end = offsets[q], offsets[q + 1]
        if end == first:
            continue
        for k in range(K):
            posterior[end - 1, k] = np.exp(own_log[end - 1, k])
        _copy2(own_m[end - 1], smoothed_m[end - 1])
        _copy3(own_U[end - 1], smoothed_U[end - 1])
        for f in range(end - 1, first, -1):
            for k in range(K):
                top, total = -np.inf, 0.0
                for j in range(K):
                    v[j], joint[f, j, k] = 0.0, own_log[f - 1, j] + np.log(P[j, k])
                    if joint[f, j, k] > -np.inf and posterior[f, k] > 0.0:
                        row = intercept_step * f + intercept_stride * k
                        mean, m, U = smoothed_m[f, k], own_m[f - 1, j], own_U[f - 1, j]
                        v[j] = _log_predictive(A, k, N, intercept, row, mean, m, U, w, pivots, s, e)
                    top = max(top, joint[f, j, k] + v[j])
                for j in range(K):  # where all densities underflow, transition probabilities alone decide
                    joint[f, j, k] = np.exp(joint[f, j, k] + (v[j] - top if top > -np.inf else 0.0))
                    total += joint[f, j, k]
                for j in range(K):
                    joint[f, j, k] = posterior[f, k] * joint[f, j, k] / total if total > 0.0 else 0.0
            for j in range(K):
                posterior[f - 1, j] = 0.0
                for k in range(K):
                    v[k] = joint[f, j, k]
                    posterior[f - 1, j] += v[k]
                    at = (f * K + j) * K + k
                    if not v[k] > 0.0:
                        for i in range(d):
                            pair_m[at, i] = 0.0
                            for a in range(d):
                                pair_P[at, i, a], pair_L[at, i, a] = 0.0, 0.0
                        continue
                    _smoother_gain(A, k, N, k, own_U[f - 1, j], w, pivots, s, J, cond, V)
                    for i in range(d):
                        s[i] = smoothed_m[f, k, i] - intercept[intercept_step * f + intercept_stride * k, i]
                        for a in range(d):
                            s[i] -= A[k, i, a] * own_m[f - 1, j, a]
                    for i in range(d):
                        x = own_m[f - 1, j, i]
                        for a in range(d):
                            x += J[i, a] * s[a]
                        pair_mean[k, i] = x
                        pair_m[at, i] = x
                    _stack_smoothed(smoothed_U[f, k], d, J, cond, w, pair_L, at, True)
                    rank = _triangularize(w, 2 * d, d, pivots, s, ROUNDING)
                    _take_root(w, 0, rank, 0, pair_root[k])
                    _square(pair_root[k], d, d, pair_P, at)
                if (
                    not _moment_match(v, pair_mean, pair_root, smoothed_m[f - 1, j], smoothed_U[f - 1, j], w, pivots, s)
                    > 0.0
                ):
                    _copy1(own_m[f - 1, j], smoothed_m[f - 1, j])
                    _copy2(own_U[f - 1, j], smoothed_U[f - 1, j])
