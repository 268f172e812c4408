"""Best paths through states, and drawn ones: the same recursions with the largest term in place of the sum."""

from __future__ import annotations

import numpy as np

from likely.loops.compile import compiled


@compiled
def advance(best, first, moves, logs, came):  # type: ignore[no-untyped-def]
    """Go on with the best paths into each state through frames logs (T, K); came (T, K) is where each came from.

    `best` (K,) holds the scores of the paths so far and is renewed; with `first` it holds those of beginning in a
    state. Of equal paths the one from the lowest state wins.
    """
    T, K = logs.shape
    new, at = np.empty(K), np.empty(K, dtype=np.int64)
    for t in range(T):
        if first and t == 0:
            for j in range(K):
                best[j] += logs[0, j]
                came[0, j] = -1
            continue
        new[:] = -np.inf
        at[:] = 0
        for i in range(K):
            have, row = best[i], moves[i]
            for j in range(K):
                through = have + row[j]
                better = through > new[j]
                new[j] = through if better else new[j]
                at[j] = i if better else at[j]
        for j in range(K):
            best[j] = new[j] + logs[t, j]
            came[t, j] = at[j]


@compiled
def trace(came, offsets, last, path):  # type: ignore[no-untyped-def]
    """Follow `came` back from the last state (n,) of each sequence: path (T,)."""
    for n in range(len(offsets) - 1):
        state = last[n]
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            path[t] = state
            state = came[t, state]


@compiled
def viterbi(starts, moves, ends, logs, offsets, came, last, score):  # type: ignore[no-untyped-def]
    """The best last state (n,) and log-score (n,) of each sequence, and where paths came from (T, K)."""
    K = len(starts)
    best = np.empty(K)
    for n in range(len(offsets) - 1):
        a, z = offsets[n], offsets[n + 1]
        best[:] = starts
        advance(best, True, moves, logs[a:z], came[a:z])
        last[n], score[n] = 0, -np.inf
        for j in range(K):
            whole = best[j] + ends[j]
            if whole > score[n]:
                last[n], score[n] = j, whole


@compiled
def k_best(starts, moves, ends, logs, k, score, path):  # type: ignore[no-untyped-def]
    """The k best paths (k, T) of one sequence, and their log-scores (k,): −inf where there are fewer.

    Every state keeps its k best ways in, in order; a way is the state before and which of that state's ways it was.
    """
    T, K = logs.shape
    best = np.full((K, k), -np.inf)
    came, which = np.zeros((T, K, k), dtype=np.int32), np.zeros((T, K, k), dtype=np.int32)
    new = np.empty((K, k))
    for j in range(K):
        best[j, 0] = starts[j] + logs[0, j]
    for t in range(1, T):
        for j in range(K):
            for r in range(k):
                new[j, r] = -np.inf
            for i in range(K):
                if moves[i, j] == -np.inf:
                    continue
                for r in range(k):
                    through = best[i, r] + moves[i, j]
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
            whole = best[j, r] + ends[j]
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
def draw(moves, ends, alpha, offsets, uniform, path):  # type: ignore[no-untyped-def]
    """A path of each sequence from p(s | x): the last state first, then each one before, by uniform numbers (T,).

    alpha (T, K) are the filtered probabilities that `chains.forward` leaves.
    """
    K = len(ends)
    share = np.empty(K)
    for n in range(len(offsets) - 1):
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            total = 0.0
            for i in range(K):
                onward = ends[i] if t == offsets[n + 1] - 1 else moves[i, path[t + 1]]
                share[i] = alpha[t, i] * onward
                total += share[i]
            left, chosen = uniform[t] * total, 0
            for i in range(K):
                if share[i] > 0.0:
                    chosen = i
                    left -= share[i]
                    if left < 0.0:
                        break
            path[t] = chosen
