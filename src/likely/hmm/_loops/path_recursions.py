"""Best paths through states, and drawn ones: the same recursions with the largest term in place of the sum."""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, with_entry

MANY = 24  # states from which it may pay to follow arcs one by one,
FEW = 0.2  # where no more than this share of all pairs of states has one


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


@compiled
def advance(best, first, transition, logs, came):  # type: ignore[no-untyped-def]
    """Go on with the best paths into each state through frames logs (T, K); came (T, K) is where each came from.

    `best` (K,) holds the scores of the paths so far and is renewed; with `first` it holds those of beginning in a
    state. Of equal paths the one from the lowest state wins.
    """
    T, K = logs.shape
    new, at = np.empty(K), np.empty(K, dtype=np.int64)
    into, source, worth = _arcs(transition.T, -np.inf, int(FEW * K * K) if K >= MANY else -1)
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                best[j] += logs[0, j]
                came[0, j] = -1
            continue
        new[:] = -np.inf
        at[:] = 0
        if len(into) > 0:
            _along(best, into, source, worth, new, at)
        else:
            for i in range(K):
                have, row = best[i], transition[i]
                for j in range(K):
                    through = have + row[j]
                    better = through > new[j]
                    new[j] = through if better else new[j]
                    at[j] = i if better else at[j]
        for j in range(K):
            best[j] = new[j] + logs[t, j]
            came[t, j] = at[j]


@compiled
def _along(best, into, source, worth, new, at):  # type: ignore[no-untyped-def]
    """One step on by the arcs into each state: the best score, and where it came from."""
    for j in range(len(new)):
        high, whence = -np.inf, np.int64(0)
        for p in range(into[j], into[j + 1]):
            through = best[source[p]] + worth[p]
            better = through > high
            high = through if better else high
            whence = np.int64(source[p]) if better else whence
        new[j], at[j] = high, whence


@compiled
def trace(came, offsets, last, path):  # type: ignore[no-untyped-def]
    """Follow `came` back from the last state (n,) of each sequence: path (T,)."""
    for n in range(len(offsets) - 1):
        state = last[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = state
            state = came[t, state]


@compiled
def _best_through(have, t, table, out):  # type: ignore[no-untyped-def]
    """out = max over rows of have[t] + table, four at a time, as `chains._through` adds them."""
    K = len(out)
    whole = K - K % 4
    for i in range(0, whole, 4):
        a, b, c, d = have[t, i], have[t, i + 1], have[t, i + 2], have[t, i + 3]
        for j in range(K):
            w, x, y, z = a + table[i, j], b + table[i + 1, j], c + table[i + 2, j], d + table[i + 3, j]
            w = x if x > w else w
            y = z if z > y else y
            w = y if y > w else w
            out[j] = w if w > out[j] else out[j]
    for i in range(whole, K):
        a = have[t, i]
        for j in range(K):
            w = a + table[i, j]
            out[j] = w if w > out[j] else out[j]


@compiled
def viterbi(initial, transition, final, scores, offsets, last, score):  # type: ignore[no-untyped-def]
    """The best last state (n,) and log-score (n,) of each sequence; scores (T, K) become those of the best paths.

    Only maxima are kept: where a path came from is found again on the way back, for its own states alone (`retrace`).
    """
    K = len(initial)
    new, idle = np.empty(K), np.empty(K, dtype=np.int64)
    into, source, worth = _arcs(transition.T, -np.inf, int(FEW * K * K) if K >= MANY else -1)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n], offsets[n + 1]):
            if t == offsets[n]:
                for j in range(K):
                    scores[t, j] += initial[j]
                continue
            new[:] = -np.inf
            if len(into) > 0:
                _along(scores[t - 1], into, source, worth, new, idle)
            else:
                _best_through(scores, t - 1, transition, new)
            for j in range(K):
                scores[t, j] += new[j]
        last[n], score[n] = 0, -np.inf
        if offsets[n + 1] > offsets[n]:
            for j in range(K):
                whole = scores[offsets[n + 1] - 1, j] + final[j]
                if whole > score[n]:
                    last[n], score[n] = j, whole


@compiled
def retrace(back, best, offsets, last, path):  # type: ignore[no-untyped-def]
    """The paths (T,) that end in the last states (n,), by the scores that `viterbi` leaves; back is moves transposed.

    Of equal ways the one from the lowest state wins.
    """
    K = best.shape[1]
    for n in range(len(offsets) - 1):
        state = last[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = state
            if t > offsets[n]:
                high, whence = -np.inf, 0
                for i in range(K):
                    through = best[t - 1, i] + back[state, i]
                    if through > high:
                        high, whence = through, i
                state = whence


@compiled
def k_best(initial, transition, final, logs, k, score, path):  # type: ignore[no-untyped-def]
    """The k best paths (k, T) of one sequence, and their log-scores (k,): −inf where there are fewer.

    Every state keeps its k best ways in, in order; a way is the state before and which of that state's ways it was.
    """
    T, K = logs.shape
    best = np.full((K, k), -np.inf)
    came, which = np.zeros((T, K, k), dtype=np.int32), np.zeros((T, K, k), dtype=np.int32)
    new = np.empty((K, k))
    first, source, worth = _arcs(transition.T, -np.inf, K * K)
    for j in range(K):
        best[j, 0] = initial[j] + logs[0, j]
    for t in range(1, T):
        for j in range(K):
            for r in range(k):
                new[j, r] = -np.inf
            for p in range(first[j], first[j + 1]):
                i = np.int64(source[p])
                for r in range(k):
                    through = best[i, r] + worth[p]
                    if not through > new[j, k - 1]:
                        break
                    _insert(new[j], came[t, j], which[t, j], through, i, r)
        for j in range(K):
            for r in range(k):
                best[j, r] = new[j, r] + logs[t, j]
    score[:] = -np.inf
    state, way = np.zeros(k, dtype=np.int32), np.zeros(k, dtype=np.int32)
    for j in range(K):
        for r in range(k):
            whole = best[j, r] + final[j]
            if not whole > score[k - 1]:
                break
            _insert(score, state, way, whole, j, r)
    for p in range(k):
        j, r = state[p], way[p]
        for t in range(T - 1, -1, -1):
            path[p, t] = j
            j, r = came[t, j, r], which[t, j, r]


@compiled
def _insert(scores, states, ways, score, state, way):  # type: ignore[no-untyped-def]
    """Put one more into a list in order, the last drops out; of equals those that came first stay before."""
    r = len(scores) - 1
    while r > 0 and scores[r - 1] < score:
        scores[r], states[r], ways[r] = scores[r - 1], states[r - 1], ways[r - 1]
        r -= 1
    scores[r], states[r], ways[r] = score, state, way


@compiled
def draw(transition, final, alpha, offsets, uniform, path, sound):  # type: ignore[no-untyped-def]
    """A path of each sequence from p(s | x): the last state first, then each one before, by uniform numbers (T,).

    alpha (T, K) are the filtered probabilities that `chains.forward` leaves, of sequences that it found `sound` (n,);
    where none of them leads on after all, `sound` comes out false and there is no path.
    """
    K = len(final)
    share = np.empty(K)
    for n in range(len(offsets) - 1):
        t = offsets[n + 1] - 1
        while sound[n] and t >= offsets[n]:
            for i in range(K):
                onward = final[i] if t == offsets[n + 1] - 1 else transition[i, path[t + 1]]
                share[i] = alpha[t, i] * onward
            path[t] = _chosen(share, uniform[t])
            sound[n] = path[t] >= 0
            t -= 1


@compiled
def draw_by_logs(transition, final, alpha, offsets, uniform, path, sound):  # type: ignore[no-untyped-def]
    """The same where all is in logarithms, alpha as `log_chains.forward` leaves it: nothing that can be is lost."""
    K = len(final)
    share = np.empty(K)
    for n in range(len(offsets) - 1):
        t, sound[n] = offsets[n + 1] - 1, True
        while sound[n] and t >= offsets[n]:
            high = -np.inf
            for i in range(K):
                onward = final[i] if t == offsets[n + 1] - 1 else transition[i, path[t + 1]]
                share[i] = alpha[t, i] + onward
                high = share[i] if share[i] > high else high
            for i in range(K):
                share[i] = np.exp(share[i] - high) if high > -np.inf else 0.0
            path[t] = _chosen(share, uniform[t])
            sound[n] = path[t] >= 0
            t -= 1


@compiled
def _chosen(share, uniform):  # type: ignore[no-untyped-def]
    """The place of a uniform number among shares, which need not sum to 1; −1 where there are none."""
    total = 0.0
    for one in share:
        total += one
    left, chosen = uniform * total, -1
    for i in range(len(share)):
        if share[i] > 0.0:
            chosen = i
            left -= share[i]
            if left < 0.0:
                break
    return chosen
