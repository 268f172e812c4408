"""Chains in time: sums and maxima over all paths through states, a frame after another.

Emission scores come in exponentiated, each frame's largest at 1 (`shift`), so that the loops only multiply and add.
What then falls below the smallest number is *lost*; the loops bound how much of the truth that could ever become, and
say so where the bound is not negligible: such a sequence is done again by the loops in logarithms, which lose nothing.

Where few states lead to each other, the loops follow arcs rather than rows of the table: the same sums without zeros.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, with_entry

LEAST = 1e-200  # a frame's total below that is too near the end of the range to be divided by
TINY = 1e-280  # products below that count as lost
HARMLESS = 1e-18  # share of a total that may be lost
HIDDEN = 1e20  # lost paths do not matter where others lead to the same states with so much more
MANY = 24  # states from which it may pay to follow arcs one by one,
FEW = 0.15  # where no more than this share of all pairs of states has one: else whole rows fill the vector lanes
RARE = 0.04  # the same for counting moves, against a product of matrices


@compiled
def shift(logs, top, size):  # type: ignore[no-untyped-def]
    """Each frame of logs (T, C·size) less its largest among the states of a chain, which goes to top (T, C)."""
    T, C = top.shape
    for t in range(T):
        for c in range(C):
            row = logs[t, c * size : (c + 1) * size]
            high = row[0]
            for k in range(1, size):
                high = row[k] if row[k] > high else high
            if high == -np.inf:
                top[t, c] = high
                continue  # −inf − (−inf) would be no number
            top[t, c] = high
            for k in range(size):
                row[k] -= high


@with_entry
def _arcs(table, nothing, most):  # type: ignore[no-untyped-def]
    """Rows of a table as lists: what is not `nothing` in row i stands at first[i] … first[i + 1] in (to, worth).

    No list (`first` is empty) where there is more than `most`: then the table itself is faster.
    """
    rows, K = table.shape
    count = 0
    for i in range(rows):
        for j in range(K):
            count += table[i, j] != nothing
    few = count <= most
    first = np.zeros(rows + 1 if few else 0, dtype=np.uint64)  # unsigned: three times as fast as an index with a sign
    to, worth = np.empty(count if few else 0, dtype=np.uint64), np.empty(count if few else 0)
    p = 0
    for i in range(len(first) - 1):
        for j in range(K):
            if table[i, j] != nothing:
                to[p], worth[p] = j, table[i, j]
                p += 1
        first[i + 1] = p
    return first, to, worth


@with_entry
def _most_arcs(table):  # type: ignore[no-untyped-def]
    """How many arcs a table (rows, K) may have to be followed one by one."""
    rows, K = table.shape
    return int(FEW * rows * K) if K >= MANY else -1


@compiled
def _along(now, first, to, worth, out):  # type: ignore[no-untyped-def]
    """Add to out what `now` sends along all arcs."""
    for i in range(len(out)):
        a = now[i]
        if a != 0.0:
            for p in range(first[i], first[i + 1]):
                out[to[p]] += a * worth[p]


@compiled
def _through(have, t, table, out):  # type: ignore[no-untyped-def]
    """out += have[t] @ table, four rows at a time: a short loop costs as much to begin as to run.

    Entries are named by number throughout: a row taken out of an array costs as much as eight products.
    """
    K = len(out)
    whole = K - K % 4
    for i in range(0, whole, 4):
        a, b, c, d = have[t, i], have[t, i + 1], have[t, i + 2], have[t, i + 3]
        for j in range(K):
            out[j] = out[j] + a * table[i, j] + b * table[i + 1, j] + c * table[i + 2, j] + d * table[i + 3, j]
    for i in range(whole, K):
        a = have[t, i]
        for j in range(K):
            out[j] += a * table[i, j]


@compiled
def likelihoods(initial, transition, final, entry, b, offsets, scale, finish, sound):  # type: ignore[no-untyped-def]
    """Totals over all paths of n sequences under C chains, no more: scale (T, C) a frame, finish (n, C) at the end.

    starts (C, K), moves (C, K, K), ends (C, K), b (T, C·K). entry (C, K) tells how a state is entered: inf never, 0 by
    arcs that keep their products in range, −1 also by thinner ones, so that even a prediction of 0 may have lost some.
    The probability of a sequence is the product of its scales and its finish; where `sound` (n, C) comes out false,
    numbers left their range and it must be found by logarithms.
    """
    C, K = initial.shape
    now, pred = np.empty((1, K)), np.empty(K)
    table = transition.reshape(C * K, K)
    first, to, worth = _arcs(table, 0.0, _most_arcs(table))
    for n in range(len(offsets) - 1):
        for c in range(C):
            finish[n, c], sound[n, c], lost, table_c = 1.0, True, 0.0, transition[c]
            for t in range(offsets[n], offsets[n + 1]):
                if t == offsets[n]:
                    pred[:] = initial[c]
                else:
                    pred[:] = 0.0
                    if len(first) > 0:
                        _along(now[0], first[c * K :], to, worth, pred)
                    else:
                        _through(now, 0, table_c, pred)
                below = 0
                for j in range(K):
                    now[0, j] = pred[j] * b[t, c * K + j]
                    below += (now[0, j] < TINY) & (pred[j] > entry[c, j])
                total = 0.0
                for j in range(K):
                    total += now[0, j]
                if not total > LEAST:
                    sound[n, c] = False
                    break
                one = 1.0 / total
                for j in range(K):
                    now[0, j] *= one
                scale[t, c] = total
                if below > 0 or lost > 0.0:
                    lost = _still_lost(lost, below, pred, entry[c]) * one
                    if lost > HARMLESS:
                        sound[n, c] = False
                        break
            if sound[n, c] and offsets[n + 1] > offsets[n]:
                total = 0.0
                for j in range(K):
                    total += now[0, j] * final[c, j]
                finish[n, c] = total
                if not total > LEAST or (lost > 0.0 and not total > lost / HARMLESS):
                    sound[n, c] = False


@compiled
def _still_lost(lost, below, pred, entry):  # type: ignore[no-untyped-def]
    """What is lost, with what this frame loses; nothing of before, where other paths hide it in every state."""
    if lost > 0.0:
        hidden = True
        for j in range(len(pred)):
            if entry[j] < np.inf and pred[j] < HIDDEN * lost:
                hidden = False
        if hidden:
            lost = 0.0
    return lost + below * TINY


@compiled
def forward(initial, transition, final, entry, b, offsets, alpha, scale, finish, sound, losses):  # type: ignore[no-untyped-def]
    """p(s_t | x_1 … x_t) in alpha (T, K) and p(x_t | x_1 … x_{t−1}) in scale (T,), of one chain; else as above.

    losses (n,) is what was lost before, and is renewed: a sequence may be given in pieces.
    """
    K = len(initial)
    pred = np.empty(K)
    first, to, worth = _arcs(transition, 0.0, _most_arcs(transition))
    for n in range(len(offsets) - 1):
        finish[n], sound[n], lost = 1.0, True, losses[n]
        for t in range(offsets[n], offsets[n + 1]):
            if t == offsets[n]:
                pred[:] = initial
            else:
                pred[:] = 0.0
                if len(first) > 0:
                    _along(alpha[t - 1], first, to, worth, pred)
                else:
                    _through(alpha, t - 1, transition, pred)
            below = 0
            for j in range(K):
                alpha[t, j] = pred[j] * b[t, j]
                below += (alpha[t, j] < TINY) & (pred[j] > entry[j])
            total = 0.0
            for j in range(K):
                total += alpha[t, j]
            if not total > LEAST:
                sound[n] = False
                break
            one = 1.0 / total
            for j in range(K):
                alpha[t, j] *= one
            scale[t] = total
            if below > 0 or lost > 0.0:
                lost = _still_lost(lost, below, pred, entry) * one
                if lost > HARMLESS:
                    sound[n] = False
                    break
        losses[n] = lost
        if sound[n] and offsets[n + 1] > offsets[n]:
            total = 0.0
            for j in range(K):
                total += alpha[offsets[n + 1] - 1, j] * final[j]
            finish[n] = total
            if not total > LEAST or (lost > 0.0 and not total > lost / HARMLESS):
                sound[n] = False


@compiled
def backward(back, final, b, offsets, weight, alpha, scale, finish, sound, gamma, ahead):  # type: ignore[no-untyped-def]
    """p(s_t | x) times the weight of its sequence in gamma (T, K), after `forward`; back is moves transposed.

    ahead (T, K) is what a state's future is worth, as seen from the frame before: with alpha of that frame and the
    moves between, it makes the probabilities of moves. Where gamma would not sum to 1, `sound` comes out false.
    """
    K = len(final)
    beta = np.empty(K)
    first, to, worth_of = _arcs(back, 0.0, _most_arcs(back))
    for n in range(len(offsets) - 1):
        if not sound[n]:
            continue
        w = weight[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if t == offsets[n + 1] - 1:
                for i in range(K):
                    beta[i] = final[i] / finish[n]
            else:
                beta[:] = 0.0
                if len(first) > 0:
                    _along(ahead[t + 1], first, to, worth_of, beta)
                else:
                    _through(ahead, t + 1, back, beta)
            one = 1.0 / scale[t]
            for i in range(K):
                worth = (
                    beta[i] if alpha[t, i] > 0.0 else 0.0
                )  # a state that cannot be has no future; its beta may overflow
                gamma[t, i] = alpha[t, i] * worth
                ahead[t, i] = worth * b[t, i] * one
            total = 0.0
            for i in range(K):
                total += gamma[t, i]
            if not abs(total - 1.0) < 1e-6:
                sound[n] = False
                break
        if not sound[n]:
            continue
        if w != 1.0:
            for t in range(offsets[n], offsets[n + 1]):
                for i in range(K):
                    gamma[t, i] *= w
                    ahead[t, i] *= w


@compiled
def between(transition, alpha, ahead, out):  # type: ignore[no-untyped-def]
    """Expected moves from frame to frame, Σ_t α_t(i) · ahead_{t+1}(j) times the arc, in out (K, K), by arcs alone.

    False, and nothing done, where a product of matrices is faster.
    """
    K = len(transition)
    first, to, worth = _arcs(transition, 0.0, int(RARE * K * K) if K >= MANY else -1)
    if len(first) == 0:
        return False
    used = np.zeros(len(to))
    for t in range(1, len(alpha)):
        now, then = alpha[t - 1], ahead[t]
        for i in range(K):
            a = now[i]
            if a != 0.0:
                for p in range(first[i], first[i + 1]):
                    used[p] += a * then[to[p]]
    out[:] = 0.0
    for i in range(K):
        for p in range(first[i], first[i + 1]):
            out[i, to[p]] = used[p] * worth[p]
    return True


@compiled
def smooth(back, final, b, offsets, scale, finish, sound, shares):  # type: ignore[no-untyped-def]
    """`backward` where moves are not asked for: what `forward` left in shares (T, K) becomes p(s_t | x)."""
    K = len(final)
    beta, ahead = np.empty(K), np.empty((1, K))
    first, to, worth_of = _arcs(back, 0.0, _most_arcs(back))
    for n in range(len(offsets) - 1):
        if not sound[n]:
            continue
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            if t == offsets[n + 1] - 1:
                for i in range(K):
                    beta[i] = final[i] / finish[n]
            else:
                beta[:] = 0.0
                if len(first) > 0:
                    _along(ahead[0], first, to, worth_of, beta)
                else:
                    _through(ahead, 0, back, beta)
            one = 1.0 / scale[t]
            for i in range(K):
                worth = beta[i] if shares[t, i] > 0.0 else 0.0
                shares[t, i] *= worth
                ahead[0, i] = worth * b[t, i] * one
            total = 0.0
            for i in range(K):
                total += shares[t, i]
            if not abs(total - 1.0) < 1e-6:
                sound[n] = False
                break


MAGIC = 6755399441055744.0  # 1.5 · 2⁵²: what is added to it is rounded to a whole number, found in its last bits
LOG2E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
NOTHING = -708.0  # its exponential is next to the smallest number


@with_entry
def _exponentials(x, whole):  # type: ignore[no-untyped-def]
    """x (n,) becomes exp(x), for x ≤ 0: 2^k times a polynomial of what is left; right to one unit in the last place.

    NumPy's is three times as fast, but to call it a thread needs the interpreter's lock, and two threads with many
    short calls wait for each other.
    """
    bits = whole.view(np.int64)
    for i in range(len(x)):
        v = x[i] if x[i] > NOTHING else NOTHING
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
        x[i] = p if x[i] > NOTHING else 0.0
    for i in range(len(x)):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(len(x)):
        x[i] *= whole[i]


@compiled
def visit(scores, way, back, entry, offsets, weight, frames, gamma, ends_of, total):  # type: ignore[no-untyped-def]
    """Forward, backward and all sums of some sequences in one call, from scores (K, T); False if any needs more care.

    way is (starts, moves, ends); frames (4, T, K) is room, of which [1] and [2] come out as alpha and ahead; gamma
    (T, K) becomes p(s_t | x) times weight (n,). ends_of (2, K) gains first and last states, total (1,)
    Σ weight · log p(x). Rows of ahead at which sequences begin are 0. Scores are left as they were.
    """
    initial, transition, final = way
    K, T = scores.shape
    n = len(offsets) - 1
    b, alpha, ahead, spare = frames[0], frames[1], frames[2], frames[3]
    top, scale, finish = np.empty(T), np.empty(T), np.empty(n)
    sound, lost = np.empty(n, dtype=np.bool_), np.zeros(n)
    for t in range(T):
        top[t] = scores[0, t]
    for k in range(1, K):
        for t in range(T):
            top[t] = scores[k, t] if scores[k, t] > top[t] else top[t]
    low = gamma.reshape(K, T)
    for k in range(K):
        for t in range(T):
            low[k, t] = scores[k, t] - top[t]
    _exponentials(low.reshape(K * T), spare.reshape(K * T))
    for t in range(T):
        for k in range(K):
            b[t, k] = low[k, t]
    forward(initial, transition, final, entry, b, offsets, alpha, scale, finish, sound, lost)
    backward(back, final, b, offsets, weight, alpha, scale, finish, sound, gamma, ahead)
    for i in range(n):
        if not sound[i]:
            return False
    for i in range(n):
        a, z = offsets[i], offsets[i + 1]
        if a == z:
            continue
        news, product = 0.0, finish[i]
        for t in range(a, z):
            news += top[t]
            product *= scale[t]  # at least LEAST each
            if product < 1e-100:
                news += np.log(product)
                product = 1.0
        total[0] += weight[i] * (news + np.log(product))
        for k in range(K):
            ends_of[0, k] += gamma[a, k]
            ends_of[1, k] += gamma[z - 1, k]
            ahead[a, k] = 0.0
    return True
