"""The Kalman filter and the Rauch–Tung–Striebel smoother in square roots: covariances are never formed, only turned.

A root U of a covariance P is upper triangular with P = UᵀU. Every step stacks what adds up (AP Aᵀ + Q is the stack of
U Aᵀ and the root of Q) and turns it to upper triangular form by reflections, which keep UᵀU and cannot make a variance
negative. Columns that depend on earlier ones get no pivot (echelon form), so covariances may be singular.

Matrices have a leading axis of length 1 (constant) or of one entry a frame. Frames of all sequences stand end to
end. Where neither matrices nor gaps change, roots settle; from there on only means are computed.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, with_entry

ROUNDING = 4e-15**2  # share of a column's squared length below which what is left of it is rounding
UNKNOWN = 1e-11**2  # the same for what is divided by later: rows that should agree differ by more than one rounding
TINY = 1e-300  # a squared length whose inverse would leave the range of numbers
LARGER = 100.0  # a row whose square is so much larger than that of the row above it takes its place
SETTLED = 4e-15  # change of a root, in units of the standard deviation, below which it has settled
OFF = 1e-8  # how far an observation may lie from the only possible value, in units of what it is made of
HALF_LOG_2PI = 0.9189385332046727
NEGLIGIBLE = 1e-60  # share of all weight below which a belief adds nothing, and its squares would underflow


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


@with_entry
def _turn(w, r, c, pivots, s, least):  # type: ignore[no-untyped-def]
    """Turn the first r rows of w, c columns, to upper echelon form with positive pivots; returns the rank.

    pivots[j] is the row of column j's pivot; negative where column j depends on those before it (what is left of its
    squared length is a share `least` or smaller): −1 if nothing is left, else −2.
    """
    row = 0
    for j in range(c):
        above = 0.0
        for i in range(row):
            above += w[i, j] * w[i, j]
        top = w[row, j] if row < r else 0.0
        rest, most, high = 0.0, top * top, row
        for i in range(row + 1, r):
            x = w[i, j] * w[i, j]
            rest += x
            if x > LARGER * most:
                most, high = x, i
        whole = rest + top * top
        if not whole > least * above:
            for i in range(row, r):
                w[i, j] = 0.0
            pivots[j] = -2 if whole > 0.0 else -1
            continue
        if high > row:  # else the rounding of a large row would drown the small ones above it
            for k in range(j, c):
                w[row, k], w[high, k] = w[high, k], w[row, k]
            top, rest = w[row, j], 0.0
            for i in range(row + 1, r):
                rest += w[i, j] * w[i, j]
        norm = np.sqrt(whole)
        if not (rest > TINY or top < 0.0):  # nothing to turn, and 1 / rest might be infinite
            for i in range(row + 1, r):
                w[i, j] = 0.0
        else:
            v = top - norm if top <= 0.0 else -rest / (top + norm)
            share = 2.0 / (v * v + rest)
            for k in range(j + 1, c):
                s[k] = v * w[row, k]
            for i in range(row + 1, r):
                x = w[i, j]
                if x != 0.0:
                    for k in range(j + 1, c):
                        s[k] += x * w[i, k]
            v *= share
            for k in range(j + 1, c):
                w[row, k] -= v * s[k]
            for i in range(row + 1, r):
                x = w[i, j] * share
                if x != 0.0:
                    for k in range(j + 1, c):
                        w[i, k] -= x * s[k]
                w[i, j] = 0.0
        w[row, j] = norm
        pivots[j] = row
        row += 1
    return row


@with_entry
def _turn_again(w, r, c, pivots, least):  # type: ignore[no-untyped-def]
    """As `turn`, where that met a −2: what is left of a column is compared with all that its own rows ever held of it.

    An entry that was never large has small errors only (larger rows are used first), so that noise of variance 1
    stays beside a start of variance 1e30, while what rounding left of large entries is nothing.
    """
    held = np.zeros((r, c))
    for i in range(r):
        for k in range(c):
            held[i, k] = w[i, k] * w[i, k]
    row = 0
    for j in range(c):
        whole, ever, high = 0.0, 0.0, row
        for i in range(row, r):
            whole += w[i, j] * w[i, j]
            ever += held[i, j]
            if abs(w[i, j]) > abs(w[high, j]):
                high = i
        if not whole > least * ever:
            for i in range(row, r):
                w[i, j] = 0.0
            pivots[j] = -1
            continue
        for k in range(c):
            w[row, k], w[high, k] = w[high, k], w[row, k]
            held[row, k], held[high, k] = held[high, k], held[row, k]
        norm, top, rest = np.sqrt(whole), w[row, j], 0.0
        for i in range(row + 1, r):
            rest += w[i, j] * w[i, j]
        if rest > TINY or top < 0.0:
            v = top - norm if top <= 0.0 else -rest / (top + norm)
            share = 2.0 / (v * v + rest)
            for k in range(j + 1, c):
                x = v * w[row, k]
                size = abs(x)
                for i in range(row + 1, r):
                    x += w[i, j] * w[i, k]
                    size += abs(w[i, j] * w[i, k])
                w[row, k] -= v * share * x
                for i in range(row + 1, r):
                    w[i, k] -= w[i, j] * share * x
                    held[i, k] = max(held[i, k], (w[i, j] * share * size) ** 2)
        for i in range(row + 1, r):
            w[i, j] = 0.0
        w[row, j] = norm
        pivots[j] = row
        row += 1
    return row


@compiled
def _doubtful(pivots, c):  # type: ignore[no-untyped-def]
    """True if a turn left out something that may be more than rounding."""
    for j in range(c):
        if pivots[j] == -2:
            return True
    return False


@compiled
def _stack_moved(A, ia, N, iq, U, w):  # type: ignore[no-untyped-def]
    """The array whose turning is the move: rows U Aᵀ, and the root of the noise."""
    d = U.shape[0]
    for i in range(d):
        for j in range(d):
            x = 0.0
            for k in range(i, d):
                x += U[i, k] * A[ia, j, k]
            w[i, j] = x
            w[d + i, j] = N[iq, i, j]


@compiled
def _predict(A, ia, N, iq, push, ip, m, U, w, pivots, s, e):  # type: ignore[no-untyped-def]
    """x → A x + push + noise: the mean in place, and the root."""
    d = m.shape[0]
    for i in range(d):
        e[i] = push[ip, i]
        for j in range(d):
            e[i] += A[ia, i, j] * m[j]
    for i in range(d):
        m[i] = e[i]
    _stack_moved(A, ia, N, iq, U, w)
    rank = _turn(w, 2 * d, d, pivots, s, ROUNDING)
    if _doubtful(pivots, d):
        _stack_moved(A, ia, N, iq, U, w)
        rank = _turn_again(w, 2 * d, d, pivots, ROUNDING)
    for i in range(d):
        for j in range(d):
            U[i, j] = w[i, j] if i < rank else 0.0


@compiled
def _seen(y, f, which):  # type: ignore[no-untyped-def]
    """The observed entries of frame f, and how many."""
    n = 0
    for j in range(y.shape[1]):
        if not np.isnan(y[f, j]):
            which[n] = j
            n += 1
    return n


@compiled
def _stack(C, ic, R, ir, U, which, o, w):  # type: ignore[no-untyped-def]
    """The array whose turning is the update: rows (root of R | 0) and (U Cᵀ | U), columns of what was seen first."""
    p, d = R.shape[1], U.shape[0]
    for i in range(p):
        for j in range(o):
            w[i, j] = R[ir, i, which[j]]
        for j in range(d):
            w[i, o + j] = 0.0
    for i in range(d):
        for j in range(o):
            x = 0.0
            for k in range(i, d):
                x += U[i, k] * C[ic, which[j], k]
            w[p + i, j] = x
        for j in range(d):
            w[p + i, o + j] = U[i, j]


@compiled
def _whiten(w, pivots, o, e, z, slack):  # type: ignore[no-untyped-def]
    """Solve for z in (the turned columns)ᵀ z = e; returns −Σ log pivots, or −inf where e is off the flat."""
    found, rank = 0.0, 0
    for j in range(o):
        x = e[j]
        for k in range(rank):
            x -= w[k, j] * z[k]
        if pivots[j] >= 0:
            z[rank] = x / w[rank, j]
            found -= np.log(w[rank, j])
            rank += 1
        elif abs(x) > slack[j]:
            found = -np.inf
    return found


@compiled
def _look(y, f, C, ic, R, ir, m, U, w, pivots, s, which, e, slack):  # type: ignore[no-untyped-def]
    """What of frame f was not foreseen (e), how exactly that can be told (slack), and the turned array of an update.

    Returns how many entries were seen.
    """
    d, p = m.shape[0], y.shape[1]
    o = _seen(y, f, which)
    for j in range(o):
        x, size = y[f, which[j]], abs(y[f, which[j]])
        for k in range(d):
            x -= C[ic, which[j], k] * m[k]
            size += abs(C[ic, which[j], k] * m[k])
        e[j], slack[j] = x, OFF * size
    if o > 0:
        _stack(C, ic, R, ir, U, which, o, w)
        _turn(w, p + d, o + d, pivots, s, ROUNDING)
        if _doubtful(pivots, o + d):
            _stack(C, ic, R, ir, U, which, o, w)
            _turn_again(w, p + d, o + d, pivots, ROUNDING)
    return o


@compiled
def _update(y, f, C, ic, R, ir, m, U, w, pivots, s, which, e, z, slack):  # type: ignore[no-untyped-def]
    """Take frame f into account: mean and root in place; returns log p(y | all before), and how many entries were seen.

    A frame of probability 0, or one whose log p is beyond the range of numbers, leaves both as they were.
    """
    d, p = m.shape[0], y.shape[1]
    o = _look(y, f, C, ic, R, ir, m, U, w, pivots, s, which, e, slack)
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
    """Rows of w from `first` on, columns from `column` on, as a root; of more rows the others are zero."""
    d = U.shape[0]
    for i in range(d):
        for j in range(d):
            U[i, j] = w[first + i, column + j] if first + i < last else 0.0


@compiled
def _settled(U, last):  # type: ignore[no-untyped-def]
    """True if no entry of the root has moved by more than rounding."""
    d = U.shape[0]
    for j in range(d):
        size = 0.0
        for i in range(j + 1):
            size += U[i, j] * U[i, j]
        size = SETTLED * np.sqrt(size)
        for i in range(j + 1):
            if abs(U[i, j] - last[i, j]) > size:
                return False
    return True


@compiled
def _gains(w, pivots, p, d, K, V):  # type: ignore[no-untyped-def]
    """The settled gain K (d, p) and whitening V (p, p); False where an observation is determined by others."""
    for j in range(p):
        if pivots[j] < 0:
            return False
    for j in range(p):  # column j of the inverse of the lower factor
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


# ------------------------------------------------------------------ unknown starts


@compiled
def _volume(G, r, c, w, pivots, s):  # type: ignore[no-untyped-def]
    """Log of the volume that r rows of G span, c columns: what is known of the start so far."""
    for i in range(r):
        for j in range(c):
            w[j, i] = G[i, j]
    rank = _turn(w, c, r, pivots, s, UNKNOWN)
    found = 0.0
    for j in range(r):
        if pivots[j] >= 0:
            found += np.log(w[pivots[j], j])
    return found, rank


@compiled
def _pin(X, row, rows, free, point, B, G, M, m, h):  # type: ignore[no-untyped-def]
    """cᵀη = r exactly (row of X): turn the free coordinates so that c is along the first, set that one and drop it.

    δ = point + B η, and `free` coordinates η are left; M, the rows G of what is known and later rows of X speak of η.
    """
    q = M.shape[1]
    rest = 0.0
    for k in range(1, free):
        rest += X[row, k] * X[row, k]
    top = X[row, 0]
    norm = np.sqrt(top * top + rest)
    sign = -1.0 if top >= 0.0 else 1.0  # the first axis is reflected away from c, so that nothing cancels
    h[0] = top - sign * norm
    for k in range(1, free):
        h[k] = X[row, k]
    share = 2.0 / (h[0] * h[0] + rest)
    value = sign * X[row, q] / norm
    for i in range(M.shape[0]):
        _reflect_row(M, i, h, share, free)
        m[i] += M[i, 0] * value
        _drop_first(M, i, free)
    for i in range(q):
        _reflect_row(B, i, h, share, free)
        point[i] += B[i, 0] * value
        _drop_first(B, i, free)
    for i in range(q + 1):
        _reflect_row(G, i, h, share, free)
        G[i, q] -= G[i, 0] * value
        _drop_first(G, i, free)
    for i in range(row + 1, rows):
        _reflect_row(X, i, h, share, free)
        X[i, q] -= X[i, 0] * value
        _drop_first(X, i, free)
    return -np.log(norm)


@compiled
def _drop_first(a, i, n):  # type: ignore[no-untyped-def]
    for k in range(n - 1):
        a[i, k] = a[i, k + 1]
    a[i, n - 1] = 0.0


@compiled
def _reflect_row(a, i, h, share, n):  # type: ignore[no-untyped-def]
    x = 0.0
    for k in range(n):
        x += a[i, k] * h[k]
    x *= share
    for k in range(n):
        a[i, k] -= x * h[k]


@compiled
def _copy_loose(m, U, M, B, point, G, to_m, to_U, to_M, to_B, to_point, to_G):  # type: ignore[no-untyped-def]
    """All that is known while the start is not."""
    _copy1(m, to_m)
    _copy2(U, to_U)
    _copy2(M, to_M)
    _copy2(B, to_B)
    _copy1(point, to_point)
    _copy2(G, to_G)


@compiled
def _move_columns(A, ia, M, free, s):  # type: ignore[no-untyped-def]
    """What η does to the state, one step on: M → A M."""
    d = M.shape[0]
    for a in range(free):
        for i in range(d):
            s[i] = 0.0
            for j in range(d):
                s[i] += A[ia, i, j] * M[j, a]
        for i in range(d):
            M[i, a] = s[i]


@compiled
def _loose_update(  # type: ignore[no-untyped-def]
    y, f, C, ic, R, ir, m, U, M, B, point, G, free, w, pivots, s, which, e, z, slack, Z, X, big, bigpivots
):
    """An update while the start is not yet known: all of it given η, and rows of what is learned about η.

    Returns log p up to what `_known` says of η, how many entries were seen, and how many coordinates of η are free.
    """
    d, q, p = m.shape[0], M.shape[1], y.shape[1]
    o = _look(y, f, C, ic, R, ir, m, U, w, pivots, s, which, e, slack)
    if o == 0:
        return 0.0, 0, free
    found, rank, exact = 0.0, 0, 0
    for j in range(o):  # each entry as x − gᵀη, whitened: a row of Z, or of X where it has no noise of its own
        x = e[j]
        for k in range(rank):
            x -= w[k, j] * z[k]
        scale = w[rank, j] if pivots[j] >= 0 else 1.0
        size = 0.0  # of the terms of g: what is left of them may be rounding
        for a in range(free):
            g = 0.0
            for k in range(d):
                part = C[ic, which[j], k] * M[k, a]
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
            if not abs(z[rank]) < np.inf:  # beyond the range of numbers
                return -np.inf, o, free
            found -= np.log(scale) + HALF_LOG_2PI
            rank += 1
        else:
            X[exact, q], slack[exact], e[exact] = x, slack[j], size
            exact += 1
    for i in range(rank):
        for k in range(d):
            m[k] += w[i, o + k] * z[i]
            for a in range(free):
                M[k, a] -= w[i, o + k] * Z[i, a]
    _take_root(w, rank, p + d, o, U)
    _gather(G, z, Z, rank, free, big, bigpivots, s)
    for i in range(exact):
        norm = 0.0
        for a in range(free):
            norm += X[i, a] * X[i, a]
        if norm > UNKNOWN * e[i]:
            found += _pin(X, i, exact, free, point, B, G, M, m, s) - HALF_LOG_2PI
            free -= 1
            _gather(G, z, Z, 0, free, big, bigpivots, s)
        elif abs(X[i, q]) > slack[i]:
            found = -np.inf
    return found, o, free


@compiled
def _gather(G, z, Z, rank, free, big, bigpivots, s):  # type: ignore[no-untyped-def]
    """Turn the rows [Z | z] into what is known of η."""
    q = G.shape[0] - 1
    for i in range(q + 1):
        for a in range(free):
            big[i, a] = G[i, a]
        big[i, free] = G[i, q]
    for i in range(rank):
        for a in range(free):
            big[q + 1 + i, a] = Z[i, a]
        big[q + 1 + i, free] = z[i]
    _turn(big, q + 1 + rank, free + 1, bigpivots, s, UNKNOWN)
    for i in range(q + 1):
        for a in range(q + 1):
            G[i, a] = 0.0
        for a in range(free):
            G[i, a] = big[i, a]
        G[i, q] = big[i, free]


@compiled
def _known(G, free, w, pivots, s):  # type: ignore[no-untyped-def]
    """What the rows of δ say in all: −½ρ² − log volume, and the rank."""
    q = G.shape[0] - 1
    rank = 0
    for i in range(free):
        size = 0.0
        for k in range(i, free):
            size += abs(G[i, k])
        if size > 0.0:
            rank = i + 1
    found, _ = _volume(G, rank, free, w, pivots, s)
    left = 0.0
    for i in range(rank, q + 1):
        left += G[i, q] * G[i, q]
    return -found - 0.5 * left, rank


@compiled
def _tie_down(m, U, M, B, point, G, free, delta, D, w, pivots, s):  # type: ignore[no-untyped-def]
    """All of δ is known now: its mean and root, and the state's, no longer given δ."""
    d, q = M.shape
    for i in range(q):
        delta[i] = point[i]
        for j in range(q):
            D[i, j] = 0.0
    for i in range(free - 1, -1, -1):  # η = G⁻¹ g
        x = G[i, q]
        for k in range(i + 1, free):
            x -= G[i, k] * s[k]
        s[i] = x / G[i, i]
    for i in range(q):
        for a in range(free):
            delta[i] += B[i, a] * s[a]
    for k in range(d):
        for a in range(free):
            m[k] += M[k, a] * s[a]
    for i in range(free):  # D = G⁻ᵀ Bᵀ, rows by forward substitution
        for j in range(q):
            x = B[j, i]
            for k in range(i):
                x -= G[k, i] * D[k, j]
            D[i, j] = x / G[i, i]
    for i in range(d):
        for j in range(d):
            w[i, j] = U[i, j]
    for i in range(free):  # M in the coordinates of the root: rows G⁻ᵀ Mᵀ
        for j in range(d):
            x = M[j, i]
            for k in range(i):
                x -= G[k, i] * w[d + k, j]
            w[d + i, j] = x / G[i, i]
    rank = _turn(w, d + free, d, pivots, s, ROUNDING)
    for i in range(d):
        for j in range(d):
            U[i, j] = w[i, j] if i < rank else 0.0


@compiled
def _hold(f, m, U, M, B, point, G, free, loose_m, loose_U, loose_M, loose_G):  # type: ignore[no-untyped-def]
    """Keep what is known at frame f, in terms of δ rather than of η."""
    d, q = M.shape
    for i in range(d):
        loose_m[f, i] = m[i]
        for j in range(d):
            loose_U[f, i, j] = U[i, j]
        for a in range(q):
            loose_M[f, i, a] = 0.0
            for k in range(free):
                loose_M[f, i, a] += M[i, k] * B[a, k]
            loose_m[f, i] -= loose_M[f, i, a] * point[a]  # the mean at δ = 0
    for i in range(q + 1):
        loose_G[f, i, q] = G[i, q]
        for a in range(q):
            x = 0.0
            for k in range(free):
                x += G[i, k] * B[a, k]
            loose_G[f, i, a] = x
            loose_G[f, i, q] += x * point[a]


# ------------------------------------------------------------------------- passes


@compiled
def _within(m, U):  # type: ignore[no-untyped-def]
    """True if mean and root are numbers: those of a state that explodes leave the range."""
    size = 0.0
    for i in range(m.shape[0]):
        size += 0.0 * m[i]
        for j in range(m.shape[0]):
            size += 0.0 * U[i, j]
    return size == 0.0


@compiled
def _go_on(A, C, push, ip, y, f, K, V, volume, m, ahead, e):  # type: ignore[no-untyped-def]
    """One frame where roots have settled: the mean in place, and log p; False, and nothing done, where it cannot."""
    d, p = m.shape[0], y.shape[1]
    for j in range(p):
        if np.isnan(y[f, j]):
            return False, 0.0
    for i in range(d):
        x = push[ip, i]
        for j in range(d):
            x += A[0, i, j] * m[j]
        ahead[i] = x
    for j in range(p):
        x = y[f, j]
        for k in range(d):
            x -= C[0, j, k] * ahead[k]
        e[j] = x
    lp = 0.0
    for i in range(p):
        x = 0.0
        for j in range(i + 1):
            x += V[i, j] * e[j]
        lp += x * x
    lp = volume - 0.5 * lp
    if not lp > -np.inf:
        return False, 0.0
    for i in range(d):
        x = ahead[i]
        for j in range(p):
            x += K[i, j] * e[j]
        m[i] = x
    return True, lp


@compiled
def _keep(f, m, U, lp, unchanged, means, roots, news, same):  # type: ignore[no-untyped-def]
    """Write what is known of frame f, where the arrays have room."""
    if means.shape[0] > 0:
        for i in range(m.shape[0]):
            means[f, i] = m[i]
            for j in range(m.shape[0]):
                roots[f, i, j] = U[i, j]
    if news.shape[0] > 0:
        news[f] = lp
    if same.shape[0] > 0:
        same[f] = unchanged


@compiled
def filter_pass(A, N, C, R, push, y, offsets, m0, U0, begin, at, means, roots, same, news, total):  # type: ignore[no-untyped-def]
    """Filter every sequence n from its frame at[n] on; its belief before that is m0, U0, of all or one of each.

    `begin` is the number of the first frame (0: x_0 is the start; else the start is a step before). Written, where the
    array has room: filtered `means` (F, d) and `roots`, `same` (F,): root as in the frame before, `news` (F,)
    log p(y_t | before). `total` (n,) is added to; it is NaN where a state leaves the range of numbers.
    """
    d, p = m0.shape[1], y.shape[1]
    most = 2 * max(d, p) + 2
    w, pivots, s = np.zeros((most + d, most + d)), np.zeros(most + d, np.int64), np.zeros(most + d)
    which, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    m, U, last, ahead = np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    K, V = np.zeros((d, p)), np.zeros((p, p))
    constant = A.shape[0] == 1 and N.shape[0] == 1 and C.shape[0] == 1 and R.shape[0] == 1
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        of = n if m0.shape[0] > 1 else 0
        _copy1(m0[of], m)
        _copy2(U0[of], U)
        steady, before, volume = False, 0, 0.0
        sum_ = 0.0
        for f in range(first + at[n], end):
            t = f - first + begin
            ip = f if push.shape[0] == y.shape[0] else 0
            if steady:
                steady, lp = _go_on(A, C, push, ip, y, f, K, V, volume, m, ahead, e)
                if steady:
                    sum_ += lp
                    _keep(f, m, U, lp, 1, means, roots, news, same)
                    continue
            if t > 0:
                _predict(A, min(t, A.shape[0] - 1), N, min(t, N.shape[0] - 1), push, ip, m, U, w, pivots, s, e)
            ic, ir = min(t, C.shape[0] - 1), min(t, R.shape[0] - 1)
            lp, o = _update(y, f, C, ic, R, ir, m, U, w, pivots, s, which, e, z, slack)
            sum_ += lp
            _keep(f, m, U, lp, 0, means, roots, news, same)
            if constant:
                if o == p and before == p and _settled(U, last) and _gains(w, pivots, p, d, K, V):
                    steady = True
                    volume = -p * HALF_LOG_2PI
                    for j in range(p):
                        volume -= np.log(w[j, j])
                _copy2(U, last)
                before = o if not np.isneginf(lp) else 0
        total[n] = total[n] + sum_ if _within(m, U) else np.nan


@compiled
def diffuse_pass(  # type: ignore[no-untyped-def]
    A, N, C, R, push, y, offsets, m0, U0, E, begin, means, roots, same, news, total, tied, loose_m, loose_U, loose_M,
    delta, D, loose_G, to_m, to_U,
):  # fmt: skip
    """The first frames of every sequence, whose start m0 + E δ is not yet known; `filter_pass` goes on from there.

    Frame by frame, the state given δ: loose_m + loose_M δ with root loose_U, and rows loose_G = [G | g] of what is
    known of δ. `tied` (n,) is the frame, counted from the sequence's first, at which δ becomes known, its length if
    never; then `delta`, `D` are δ's mean and root, and to_m, to_U (n, …) mean and root of the state. All else as in
    `filter_pass`.
    """
    d, p, q = m0.shape[0], y.shape[1], E.shape[1]
    most = 2 * max(d, p) + 2 * q + 2
    w, pivots, s = np.zeros((most + d, most + d)), np.zeros(most + d, np.int64), np.zeros(most + d)
    big, bigpivots = np.zeros((2 * q + p + 2, 2 * q + 2)), np.zeros(2 * q + 2, np.int64)
    which, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    m, U, ahead = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    M, B, point, G = np.zeros((d, q)), np.zeros((q, q)), np.zeros(q), np.zeros((q + 1, q + 1))
    Z, X = np.zeros((p, q)), np.zeros((p, q + 1))
    old_m, old_U, old_M, old_B, old_point, old_G = m.copy(), U.copy(), M.copy(), B.copy(), point.copy(), G.copy()
    B0, point0, G0 = np.eye(q), point.copy(), G.copy()
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        free, known, sum_ = q, 0.0, 0.0
        _copy_loose(m0, U0, E, B0, point0, G0, m, U, M, B, point, G)
        tied[n] = end - first
        for f in range(first, end):
            t = f - first + begin
            ip = f if push.shape[0] == y.shape[0] else 0
            if t > 0:
                ia = min(t, A.shape[0] - 1)
                _predict(A, ia, N, min(t, N.shape[0] - 1), push, ip, m, U, w, pivots, s, e)
                _move_columns(A, ia, M, free, ahead)
            _copy_loose(m, U, M, B, point, G, old_m, old_U, old_M, old_B, old_point, old_G)
            ic, ir = min(t, C.shape[0] - 1), min(t, R.shape[0] - 1)
            lp, _, left = _loose_update(
                y, f, C, ic, R, ir, m, U, M, B, point, G, free, w, pivots, s, which, e, z, slack, Z, X, big, bigpivots
            )
            now, rank = _known(G, left, w, pivots, s)
            lp += now - known
            if lp > -np.inf:
                known, free = now, left
            else:  # it cannot be: nothing is learned from it
                _copy_loose(old_m, old_U, old_M, old_B, old_point, old_G, m, U, M, B, point, G)
                lp, rank = -np.inf, -1
            if loose_m.shape[0] > 0:
                _hold(f, m, U, M, B, point, G, free, loose_m, loose_U, loose_M, loose_G)
            sum_ += lp
            if rank == free:
                _tie_down(m, U, M, B, point, G, free, delta[n], D[n], w, pivots, s)
                tied[n] = f - first
            _keep(f, m, U, lp, 0, means, roots, news, same)
            if rank == free:
                break
        total[n] = sum_ if _within(m, U) else np.nan
        _copy1(m, to_m[n])
        _copy2(U, to_U[n])
        if tied[n] == end - first:  # never known: what the rows say of δ as far as they go
            _copy1(point, delta[n])


# --------------------------------------------------------------------- looking back


@compiled
def _stack_both(A, ia, N, iq, U, w):  # type: ignore[no-untyped-def]
    """The joint root of (x_{t+1}, x_t), not yet turned."""
    d = U.shape[0]
    _stack_moved(A, ia, N, iq, U, w)
    for i in range(d):
        for j in range(d):
            w[i, d + j], w[d + i, d + j] = U[i, j], 0.0


@compiled
def _backward(A, ia, N, iq, U, w, pivots, s, J, cond, V):  # type: ignore[no-untyped-def]
    """x_t given x_{t+1} and all before: the gain J of x_{t+1} − its prediction, and the root of what stays unknown."""
    d = U.shape[0]
    _stack_both(A, ia, N, iq, U, w)
    _turn(w, 2 * d, 2 * d, pivots, s, UNKNOWN)
    if _doubtful(pivots, 2 * d):
        _stack_both(A, ia, N, iq, U, w)
        _turn_again(w, 2 * d, 2 * d, pivots, UNKNOWN)
    _regress(w, pivots, d, d, J, V)
    rank = 0
    for j in range(d):
        if pivots[j] >= 0:
            rank += 1
    _take_root(w, rank, 2 * d, d, cond)


@compiled
def _regress(w, pivots, c, r, J, V):  # type: ignore[no-untyped-def]
    """From a turned joint root of (a, b), a in the first c columns: E[b | a] = J a, zero where a depends on itself."""
    rank = 0
    for j in range(c):
        for i in range(r):
            J[i, j] = 0.0
    for j in range(c):
        if pivots[j] < 0:
            continue
        for i in range(rank + 1):  # column `rank` of the inverse is not yet complete: V holds the inverse's rows
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
def _step_back(U, r, J, cond, w, lag, f, keeps):  # type: ignore[no-untyped-def]
    """Stack (U Jᵀ, cond) in w; lag[f] = Cov(x_{t+1}, x_t) where it is kept."""
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
def smooth_pass(A, N, push, offsets, begin, tied, means, roots, same, out, cov, lag, to_m, to_U):  # type: ignore[no-untyped-def]
    """Smooth what `filter_pass` kept: means `out` (F, d), `cov` (F, d, d), lag[f] = Cov(x_f, x_{f−1}) if it has room.

    Back to the frame at which the start became known, whose mean and root go to `to_m`, `to_U` where they have room:
    `smooth_starts` goes on from there. Sequences whose start was never known are left alone.
    """
    d, F = means.shape[1], means.shape[0]
    w, pivots, s = np.zeros((4 * d, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d)
    J, cond, V, U = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    m, ahead, last = np.zeros(d), np.zeros(d), np.zeros((d, d))
    constant, keeps = A.shape[0] == 1 and N.shape[0] == 1, lag.shape[0] > 0
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        if end == first or tied[n] == end - first:
            continue
        least = first + tied[n]
        _copy1(means[end - 1], m)
        _copy2(roots[end - 1], U)
        for i in range(d):
            out[end - 1, i] = m[i]
        _square(U, d, d, cov, end - 1)
        have, settled = False, False
        for f in range(end - 2, least - 1, -1):
            t = f + 1 - first + begin
            ia, iq = min(t, A.shape[0] - 1), min(t, N.shape[0] - 1)
            ip = f + 1 if push.shape[0] == F else 0
            if not (have and constant and same[f + 1] == 1):
                _backward(A, ia, N, iq, roots[f], w, pivots, s, J, cond, V)
                have, settled = True, False
            for i in range(d):
                x = push[ip, i]
                for j in range(d):
                    x += A[ia, i, j] * means[f, j]
                ahead[i] = m[i] - x
            for i in range(d):
                x = means[f, i]
                for j in range(d):
                    x += J[i, j] * ahead[j]
                s[i] = x
            for i in range(d):
                m[i] = s[i]
                out[f, i] = s[i]
            if settled:
                for i in range(d):
                    for j in range(d):
                        cov[f, i, j] = cov[f + 1, i, j]
                if keeps:
                    for i in range(d):
                        for j in range(d):
                            lag[f + 1, i, j] = lag[f + 2, i, j]
                continue
            _step_back(U, d, J, cond, w, lag, f + 1, keeps)
            _copy2(U, last)
            rank = _turn(w, 2 * d, d, pivots, s, ROUNDING)
            _take_root(w, 0, rank, 0, U)
            _square(U, d, d, cov, f)
            settled = constant and same[f + 1] == 1 and f + 2 < end and _settled(U, last)
        if to_m.shape[0] > 0:
            _copy1(m, to_m[n])
            _copy2(U, to_U[n])


@compiled
def smooth_starts(  # type: ignore[no-untyped-def]
    A, N, push, offsets, begin, means, tied, loose_m, loose_U, loose_M, delta, D, to_m, to_U, out, cov, lag
):
    """Go on where `smooth_pass` ended, in sequences whose start became known after their first frame."""
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        if 0 < tied[n] < end - first:
            _smooth_start(
                A, N, push, begin, first, first + tied[n], means, loose_m, loose_U, loose_M, delta[n], D[n], to_m[n],
                to_U[n], out, cov, lag, lag.shape[0] > 0,
            )  # fmt: skip


@compiled
def _stack_start(U, M, D, w):  # type: ignore[no-untyped-def]
    """The joint root of a state and of δ, not yet turned: rows (U | 0) and (D Mᵀ | D)."""
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
def _smooth_start(  # type: ignore[no-untyped-def]
    A, N, push, begin, first, at, means, loose_m, loose_U, loose_M, delta, D, m, U, out, cov, lag, keeps
):
    """Go on back from frame `at`, where δ became known: the joint distribution of the state and δ is carried."""
    d, q, F = means.shape[1], loose_M.shape[2], means.shape[0]
    c = d + q
    w, pivots, s = np.zeros((3 * c, 2 * c)), np.zeros(2 * c, np.int64), np.zeros(2 * c)
    J, cond, V, Jd, Vd = np.zeros((d, d)), np.zeros((d, d)), np.zeros((c, c)), np.zeros((q, d)), np.zeros((c, c))
    joint, turned, x, base, H = np.zeros((c, c)), np.zeros((c, c)), np.zeros(c), np.zeros(d), np.zeros((d, q))
    _stack_start(loose_U[at], loose_M[at], D, w)
    _turn(w, c, c, pivots, s, UNKNOWN)
    if _doubtful(pivots, c):
        _stack_start(loose_U[at], loose_M[at], D, w)
        _turn_again(w, c, c, pivots, UNKNOWN)
    _regress(w, pivots, d, q, Jd, Vd)
    rank = 0
    for j in range(d):
        if pivots[j] >= 0:
            rank += 1
    for i in range(c):  # what stays unknown of δ once the state is known
        for j in range(q):
            turned[i, j] = w[rank + i, d + j] if rank + i < c else 0.0
    for i in range(d):
        x[i] = m[i]
    for i in range(q):
        x[d + i] = delta[i]
        for k in range(d):
            x[d + i] += Jd[i, k] * (m[k] - means[at, k])
    for i in range(d):
        for j in range(d):
            w[i, j] = U[i, j]
        for j in range(q):
            w[i, d + j] = 0.0
            for k in range(d):
                w[i, d + j] += U[i, k] * Jd[j, k]
    for i in range(c):
        for j in range(c):
            w[d + i, j] = turned[i, j - d] if j >= d else 0.0
    rank = _turn(w, d + c, c, pivots, s, ROUNDING)
    for i in range(c):
        for j in range(c):
            joint[i, j] = w[i, j] if i < rank else 0.0
    for f in range(at - 1, first - 1, -1):
        t = f + 1 - first + begin
        ia, iq = min(t, A.shape[0] - 1), min(t, N.shape[0] - 1)
        ip = f + 1 if push.shape[0] == F else 0
        _backward(A, ia, N, iq, loose_U[f], w, pivots, s, J, cond, V)
        for i in range(d):  # the filtered mean given δ, and what of x_{t+1} it does not foresee
            base[i] = loose_m[f, i]
            for k in range(q):
                base[i] += loose_M[f, i, k] * x[d + k]
        for i in range(d):
            s[i] = x[i] - push[ip, i]
            for k in range(d):
                s[i] -= A[ia, i, k] * base[k]
        for i in range(d):
            x[i] = base[i]
            for k in range(d):
                x[i] += J[i, k] * s[k]
            out[f, i] = x[i]
        for i in range(d):
            for a in range(q):
                s[a] = loose_M[f, i, a]
            for k in range(d):
                for j in range(d):
                    for a in range(q):
                        s[a] -= J[i, k] * A[ia, k, j] * loose_M[f, j, a]
            for a in range(q):
                H[i, a] = s[a]
        for i in range(c):
            for j in range(d):
                g = 0.0
                for k in range(d):
                    g += joint[i, k] * J[j, k]
                for a in range(q):
                    g += joint[i, d + a] * H[j, a]
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
        rank = _turn(w, c + d, c, pivots, s, ROUNDING)
        for i in range(c):
            for j in range(c):
                joint[i, j] = w[i, j] if i < rank else 0.0
        _square(joint, c, d, cov, f)


@compiled
def lag_pass(A, N, push, offsets, begin, means, roots, same, lag, out, cov):  # type: ignore[no-untyped-def]
    """p(x_t | y_1 … y_{t + lag}): each frame is stepped back to from `lag` frames later, or from the last one."""
    d, F = means.shape[1], means.shape[0]
    w, pivots, s = np.zeros((2 * d, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d)
    V, U, m, none = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), np.zeros((0, d, d))
    constant = A.shape[0] == 1 and N.shape[0] == 1
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        length = end - first
        J, cond, fore = np.zeros((length, d, d)), np.zeros((length, d, d)), np.zeros((length, d))
        for f in range(first, end - 1):
            t = f + 1 - first + begin
            ia, iq = min(t, A.shape[0] - 1), min(t, N.shape[0] - 1)
            ip = f + 1 if push.shape[0] == F else 0
            if constant and same[f] == 1 and f > first:
                _copy2(J[f - first - 1], J[f - first])
                _copy2(cond[f - first - 1], cond[f - first])
            else:
                _backward(A, ia, N, iq, roots[f], w, pivots, s, J[f - first], cond[f - first], V)
            for i in range(d):
                x = push[ip, i]
                for j in range(d):
                    x += A[ia, i, j] * means[f, j]
                fore[f - first, i] = x
        for f in range(first, end):
            at = min(f + lag, end - 1)
            _copy1(means[at], m)
            _copy2(roots[at], U)
            for g in range(at - 1, f - 1, -1):
                for i in range(d):
                    x = means[g, i]
                    for j in range(d):
                        x += J[g - first, i, j] * (m[j] - fore[g - first, j])
                    s[i] = x
                for i in range(d):
                    m[i] = s[i]
                _step_back(U, d, J[g - first], cond[g - first], w, none, 0, False)
                rank = _turn(w, 2 * d, d, pivots, s, ROUNDING)
                _take_root(w, 0, rank, 0, U)
            for i in range(d):
                out[f, i] = m[i]
            _square(U, d, d, cov, f)


# ----------------------------------------------------------------------------- live


@compiled
def predict_one(A, N, push, t, m, U, to_m, to_U):  # type: ignore[no-untyped-def]
    """One belief one step on, written to (to_m, to_U)."""
    d = m.shape[0]
    w, pivots, s, e = np.zeros((2 * d, d)), np.zeros(d, np.int64), np.zeros(d), np.zeros(d)
    _copy1(m, to_m)
    _copy2(U, to_U)
    _predict(A, min(t, A.shape[0] - 1), N, min(t, N.shape[0] - 1), push, 0, to_m, to_U, w, pivots, s, e)


@compiled
def update_one(y, C, R, t, m, U, to_m, to_U):  # type: ignore[no-untyped-def]
    """One belief once y (1, p) is seen, written to (to_m, to_U); returns log p(y | all before)."""
    d, p = m.shape[0], y.shape[1]
    w, pivots, s = np.zeros((p + d, p + d)), np.zeros(p + d, np.int64), np.zeros(p + d)
    which, e, z, slack = np.zeros(p, np.int64), np.zeros(p), np.zeros(p), np.zeros(p)
    _copy1(m, to_m)
    _copy2(U, to_U)
    lp, _ = _update(
        y, 0, C, min(t, C.shape[0] - 1), R, min(t, R.shape[0] - 1), to_m, to_U, w, pivots, s, which, e, z, slack
    )
    return lp


@compiled
def back_one(A, N, t, U, J, cond):  # type: ignore[no-untyped-def]
    """x_{t−1}, of root U, given x_t: gain J and the root of what stays unknown, written."""
    d = U.shape[0]
    w, pivots, s, V = np.zeros((2 * d, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d), np.zeros((d, d))
    _backward(A, min(t, A.shape[0] - 1), N, min(t, N.shape[0] - 1), U, w, pivots, s, J, cond, V)


@compiled
def settle(A, N, C, R, nothing, y, U, ahead, frames):  # type: ignore[no-untyped-def]
    """Roots alone, of complete frames, until they stand still or `frames` are over: U in place, `ahead` before it.

    `nothing` (1, d) and y (1, p) are zeros. Returns how many frames it took, and the last change of an entry in units
    of its standard deviation.
    """
    d, p, change = U.shape[0], y.shape[1], np.inf
    most = max(2 * d, p + d)
    w, pivots, s = np.zeros((most, p + d)), np.zeros(p + d, np.int64), np.zeros(p + d)
    which, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    m, last = np.zeros(d), np.zeros((d, d))
    for t in range(frames):
        _copy2(U, last)
        _predict(A, 0, N, 0, nothing, 0, m, U, w, pivots, s, e)
        _copy2(U, ahead)
        _update(y, 0, C, 0, R, 0, m, U, w, pivots, s, which, e, z, slack)
        change = _change(U, last)
        if change <= 1e-14:
            return t + 1, change
    return frames, change


@compiled
def _change(U, last):  # type: ignore[no-untyped-def]
    """The largest change of an entry of a root, in units of its column's length."""
    most = 0.0
    for j in range(U.shape[0]):
        size, moved = 0.0, 0.0
        for i in range(j + 1):
            size += U[i, j] * U[i, j]
            moved = max(moved, abs(U[i, j] - last[i, j]))
        if moved > 0.0:
            most = max(most, moved / np.sqrt(size))
    return most


@compiled
def step_many(A, N, C, R, push, y, which_model, moves, m, U, out):  # type: ignore[no-untyped-def]
    """Many beliefs (n, d), each under its own model: predicted where `moves`, then updated in place; out (n,) log p(y).

    A (K, d, d), N, C, R: one entry a model; push (K, d), y (K, p): what inputs add, the observation without them.
    """
    n, d, p = m.shape[0], m.shape[1], y.shape[1]
    most = max(2 * d, p + d)
    w, pivots, s = np.zeros((most, p + 2 * d)), np.zeros(p + 2 * d, np.int64), np.zeros(p + 2 * d)
    which, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    for i in range(n):
        k = which_model[i]
        if moves:
            _predict(A, k, N, k, push, k, m[i], U[i], w, pivots, s, e)
        out[i], _ = _update(y, k, C, k, R, k, m[i], U[i], w, pivots, s, which, e, z, slack)


@compiled
def loose_step(A, N, C, R, push, y, t, now_at, m, U, M, B, point, G, free, known, to_m, to_U, delta, D):  # type: ignore[no-untyped-def]
    """One step while the start is unknown, all but to_*, delta and D in place.

    A negative t is an update at frame `now_at`, without a move.

    Returns log p, free, known, and whether δ became known: then (to_m, to_U) is the belief.
    """
    d, p, q = m.shape[0], y.shape[1], M.shape[1]
    most = 2 * max(d, p) + 2 * q + 2 + d
    w, pivots, s = np.zeros((most, most)), np.zeros(most, np.int64), np.zeros(most)
    big, bigpivots = np.zeros((2 * q + p + 2, 2 * q + 2)), np.zeros(2 * q + 2, np.int64)
    which, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    Z, X = np.zeros((p, q)), np.zeros((p, q + 1))
    at = t if t > 0 else now_at
    if t > 0:
        _predict(A, min(at, A.shape[0] - 1), N, min(at, N.shape[0] - 1), push, 0, m, U, w, pivots, s, e)
        _move_columns(A, min(at, A.shape[0] - 1), M, free, s)
    ic, ir = min(at, C.shape[0] - 1), min(at, R.shape[0] - 1)
    lp, _, free = _loose_update(
        y, 0, C, ic, R, ir, m, U, M, B, point, G, free, w, pivots, s, which, e, z, slack, Z, X, big, bigpivots
    )
    now, rank = _known(G, free, w, pivots, s)
    _copy1(m, to_m)
    _copy2(U, to_U)
    if rank == free:
        _tie_down(to_m, to_U, M, B, point, G, free, delta, D, w, pivots, s)
    return lp + now - known, free, now, rank == free


@compiled
def advance(A, push, noise, offsets, starts, out):  # type: ignore[no-untyped-def]
    """States of simulated sequences: out[f] = A out[f − 1] + push + noise[f], from `starts` (n, d)."""
    d = starts.shape[1]
    for n in range(offsets.shape[0] - 1):
        for f in range(offsets[n], offsets[n + 1]):
            t = f - offsets[n]
            for i in range(d):
                if t == 0:
                    out[f, i] = starts[n, i]
                    continue
                x = push[f if push.shape[0] == out.shape[0] else 0, i] + noise[f, i]
                for j in range(d):
                    x += A[min(t, A.shape[0] - 1), i, j] * out[f - 1, j]
                out[f, i] = x


# ------------------------------------------------------------------------- switching


@compiled
def _collapse(v, m, U, to_m, to_U, w, pivots, s):  # type: ignore[no-untyped-def]
    """Beliefs with weights v as one of the same mean and covariance; returns Σ v, and writes nothing if it is 0."""
    d, total = m.shape[1], 0.0
    for i in range(v.shape[0]):
        total += v[i]
    if not total > 1e-300:  # shares of smaller numbers would be inexact
        return 0.0
    for j in range(d):
        x = 0.0
        for i in range(v.shape[0]):
            if v[i] > NEGLIGIBLE * total:
                x += v[i] / total * m[i, j]
        to_m[j] = x
    rows = 0
    for i in range(v.shape[0]):
        if v[i] > NEGLIGIBLE * total:
            r = np.sqrt(v[i] / total)
            for j in range(d):
                w[rows, j] = r * (m[i, j] - to_m[j])
            for a in range(d):
                for j in range(d):
                    w[rows + 1 + a, j] = r * U[i, a, j]
            rows += d + 1
    rank = _turn(w, rows, d, pivots, s, ROUNDING)
    for i in range(d):
        for j in range(d):
            to_U[i, j] = w[i, j] if i < rank else 0.0
    return total


@compiled
def _by_regime(logw, which, m, U, v, to_log, to_m, to_U, w, pivots, s):  # type: ignore[no-untyped-def]
    """One belief a regime, of all that are in it."""
    for k in range(to_m.shape[0]):
        for i in range(logw.shape[0]):
            v[i] = np.exp(logw[i]) if which[i] == k else 0.0
        to_log[k] = np.log(_collapse(v[: logw.shape[0]], m, U, to_m[k], to_U[k], w, pivots, s))


@compiled
def _interact(P, A, N, push, row, stride, both, logw, m, U, to_log, to_which, to_m, to_U, v, w, pivots, s, e):  # type: ignore[no-untyped-def]
    """K beliefs one step on: each successor from a blend of all (K of them), or `both`: all pairs (K² of them)."""
    K = m.shape[0]
    for j in range(K):
        if both:
            for i in range(K):
                at = i * K + j
                to_log[at] = logw[i] + np.log(P[i, j])
                to_which[at] = j
                _copy1(m[i], to_m[at])
                _copy2(U[i], to_U[at])
                _predict(A, j, N, j, push, row + stride * j, to_m[at], to_U[at], w, pivots, s, e)
            continue
        for i in range(K):
            v[i] = np.exp(logw[i]) * P[i, j]
        _copy1(m[j], to_m[j])
        _copy2(U[j], to_U[j])
        to_log[j] = np.log(_collapse(v[:K], m, U, to_m[j], to_U[j], w, pivots, s))
        to_which[j] = j
        _predict(A, j, N, j, push, row + stride * j, to_m[j], to_U[j], w, pivots, s, e)


@compiled
def _weigh(y, row, stride, C, R, mask, at, logw, which, m, U, w, pivots, s, seen, e, z, slack):  # type: ignore[no-untyped-def]
    """Beliefs updated and weighed by what they foresaw, in place; returns log p(y | all before)."""
    top = -np.inf
    for i in range(logw.shape[0]):
        k = which[i]
        logw[i] += mask[at, k]
        if logw[i] > -np.inf:
            found, _ = _update(y, row + stride * k, C, k, R, k, m[i], U[i], w, pivots, s, seen, e, z, slack)
            logw[i] += found
        top = max(top, logw[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(logw.shape[0]):
        total += np.exp(logw[i] - top)
    for i in range(logw.shape[0]):  # not less log p(y): beside an outlier's, −1e14, the digits of weights are lost
        logw[i] = (logw[i] - top) - np.log(total)
    return top + np.log(total)


@compiled
def weigh_many(y, C, R, logw, which, m, U):  # type: ignore[no-untyped-def]
    """Weighted beliefs in regimes `which` once y (K, p) is seen, in place; returns log p(y | all before)."""
    d, p = m.shape[1], y.shape[1]
    w, pivots, s = np.zeros((p + d, p + d)), np.zeros(p + d, np.int64), np.zeros(p + d)
    seen, e, z, slack = np.zeros(p, np.int64), np.zeros(p), np.zeros(p), np.zeros(p)
    none = np.zeros((1, y.shape[0]))
    return _weigh(y, 0, 1, C, R, none, 0, logw, which, m, U, w, pivots, s, seen, e, z, slack)


@compiled
def interact_once(P, A, N, push, both, logw, which, m, U, to_log, to_which, to_m, to_U):  # type: ignore[no-untyped-def]
    """Weighted beliefs, gathered by regime, one step on; push (K, d)."""
    K, d, n = P.shape[0], m.shape[1], m.shape[0]
    most = max(n * (d + 1), 2 * d)
    w, pivots, s, e, v = np.zeros((most, d)), np.zeros(d, np.int64), np.zeros(d), np.zeros(d), np.zeros(max(n, K))
    own_log, own_m, own_U = np.zeros(K), np.zeros((K, d)), np.zeros((K, d, d))
    if both:
        _by_regime(logw, which, m, U, v, own_log, own_m, own_U, w, pivots, s)
    else:
        _copy1(logw, own_log)
        _copy2(m, own_m)
        _copy3(U, own_U)
    _interact(P, A, N, push, 0, 1, both, own_log, own_m, own_U, to_log, to_which, to_m, to_U, v, w, pivots, s, e)


@compiled
def switch_pass(  # type: ignore[no-untyped-def]
    P, A, N, C, R, push, push_step, push_stride, y, stride, mask, offsets, start_log, start_m, start_U, both, own_log,
    own_m, own_U, news, total,
):  # fmt: skip
    """Filter sequences that switch: for every frame the weight, mean and root of each regime, and log p(y_t | before).

    Regime k finds frame f in row f + stride · k of y, and what inputs add in row push_step · f + push_stride · k. At
    a frame that cannot be, the belief is the one foreseen, and the sequence's total is −inf.
    """
    K, d, p = P.shape[0], A.shape[1], y.shape[1]
    n = K * K if both else K
    most = max(n * (d + 1), 2 * d, p + d)
    w, pivots, s = np.zeros((most, p + 2 * d)), np.zeros(p + 2 * d, np.int64), np.zeros(p + 2 * d)
    seen, e, z, slack = np.zeros(p, np.int64), np.zeros(max(p, d)), np.zeros(p), np.zeros(p)
    v, logw, which, m, U = np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros((n, d)), np.zeros((n, d, d))
    old_log, old_m, old_U = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
    for q in range(offsets.shape[0] - 1):
        total[q] = 0.0
        for f in range(offsets[q], offsets[q + 1]):
            c = n
            if f == offsets[q]:
                c = K
                for k in range(K):
                    logw[k], which[k] = start_log[k], k
                _copy2(start_m, m)
                _copy3(start_U, U)
            else:
                _interact(P, A, N, push, push_step * f, push_stride, both, own_log[f - 1], own_m[f - 1], own_U[f - 1],
                          logw, which, m, U, v, w, pivots, s, e)  # fmt: skip
            _copy1(logw, old_log)
            _copy2(m, old_m)
            _copy3(U, old_U)
            at = f if mask.shape[0] > 1 else 0
            news[f] = _weigh(y, f, stride, C, R, mask, at, logw[:c], which[:c], m, U, w, pivots, s, seen, e, z, slack)
            if news[f] == -np.inf:
                _copy1(old_log, logw)
                _copy2(old_m, m)
                _copy3(old_U, U)
            total[q] += news[f]
            if both:
                _by_regime(logw[:c], which[:c], m, U, v, own_log[f], own_m[f], own_U[f], w, pivots, s)
            else:
                _copy1(logw, own_log[f])
                _copy2(m, own_m[f])
                _copy3(U, own_U[f])


@compiled
def _foresaw(A, k, N, push, row, x, m, U, w, pivots, s, e):  # type: ignore[no-untyped-def]
    """log N(x; A m + push, A P Aᵀ + Q), without directions in which nothing can vary, and without constants."""
    d = m.shape[0]
    for i in range(d):
        e[i] = x[i] - push[row, i]
        for j in range(d):
            e[i] -= A[k, i, j] * m[j]
    for i in range(d):
        for j in range(d):
            a = 0.0
            for b in range(i, d):
                a += U[i, b] * A[k, j, b]
            w[i, j] = a
            w[d + i, j] = N[k, i, j]
    _turn(w, 2 * d, d, pivots, s, ROUNDING)
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


@compiled
def switch_back(  # type: ignore[no-untyped-def]
    P, A, N, push, push_step, push_stride, offsets, own_log, own_m, own_U, share, out_m, out_U, joint, pair_m, pair_P,
    pair_L,
):  # fmt: skip
    """Smooth what `switch_pass` kept: shares (F, K), means and roots of each regime given all frames.

    Regime j of the frame before is weighed by how well it foresaw the smoothed mean of regime k (Barber 2006).

    joint[f, j, k] is p(z_{f−1} = j, z_f = k); row (f K + j) K + k of pair_m and pair_P is x_{f−1} in that case, and of
    pair_L is Cov(x_f, x_{f−1}).
    """
    K, d = P.shape[0], A.shape[1]
    most = max(K * (d + 1), 4 * d)
    w, pivots, s, V = np.zeros((most, 2 * d)), np.zeros(2 * d, np.int64), np.zeros(2 * d), np.zeros((d, d))
    J, cond, v, e = np.zeros((d, d)), np.zeros((d, d)), np.zeros(K), np.zeros(d)
    root, middle = np.zeros((K, d, d)), np.zeros((K, d))
    for q in range(offsets.shape[0] - 1):
        first, end = offsets[q], offsets[q + 1]
        if end == first:
            continue
        for k in range(K):
            share[end - 1, k] = np.exp(own_log[end - 1, k])
        _copy2(own_m[end - 1], out_m[end - 1])
        _copy3(own_U[end - 1], out_U[end - 1])
        for f in range(end - 1, first, -1):
            for k in range(K):
                top, total = -np.inf, 0.0
                for j in range(K):
                    v[j], joint[f, j, k] = 0.0, own_log[f - 1, j] + np.log(P[j, k])
                    if joint[f, j, k] > -np.inf and share[f, k] > 0.0:
                        v[j] = _foresaw(A, k, N, push, push_step * f + push_stride * k, out_m[f, k], own_m[f - 1, j],
                                        own_U[f - 1, j], w, pivots, s, e)  # fmt: skip
                    top = max(top, joint[f, j, k] + v[j])
                for j in range(K):  # where all are too far to be told apart in numbers, moves alone decide
                    joint[f, j, k] = np.exp(joint[f, j, k] + (v[j] - top if top > -np.inf else 0.0))
                    total += joint[f, j, k]
                for j in range(K):
                    joint[f, j, k] = share[f, k] * joint[f, j, k] / total if total > 0.0 else 0.0
            for j in range(K):
                share[f - 1, j] = 0.0
                for k in range(K):
                    v[k] = joint[f, j, k]
                    share[f - 1, j] += v[k]
                    at = (f * K + j) * K + k
                    if not v[k] > 0.0:
                        for i in range(d):
                            pair_m[at, i] = 0.0
                            for a in range(d):
                                pair_P[at, i, a], pair_L[at, i, a] = 0.0, 0.0
                        continue
                    _backward(A, k, N, k, own_U[f - 1, j], w, pivots, s, J, cond, V)
                    for i in range(d):
                        s[i] = out_m[f, k, i] - push[push_step * f + push_stride * k, i]
                        for a in range(d):
                            s[i] -= A[k, i, a] * own_m[f - 1, j, a]
                    for i in range(d):
                        x = own_m[f - 1, j, i]
                        for a in range(d):
                            x += J[i, a] * s[a]
                        middle[k, i] = x
                        pair_m[at, i] = x
                    _step_back(out_U[f, k], d, J, cond, w, pair_L, at, True)
                    rank = _turn(w, 2 * d, d, pivots, s, ROUNDING)
                    _take_root(w, 0, rank, 0, root[k])
                    _square(root[k], d, d, pair_P, at)
                if not _collapse(v, middle, root, out_m[f - 1, j], out_U[f - 1, j], w, pivots, s) > 0.0:
                    _copy1(own_m[f - 1, j], out_m[f - 1, j])
                    _copy2(own_U[f - 1, j], out_U[f - 1, j])
