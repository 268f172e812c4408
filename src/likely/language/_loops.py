"""Token passing through a word network (Viterbi, k-best), and its forward and backward recursions, compiled.

A *unit* is a word or a copy of the silence; its states are first[u] … first[u + 1] − 1, and its arcs (logarithms) are
stored by their target state. The end of a unit leads to the boundary context[u]; from boundary g words are entered with
log-probability lm[g], and silence copy C + g with `pause`. A boundary gets a traceback link only where a token that
passed it won a state.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, compiled_for_size

NEAR = 40.0  # terms of a sum that many nats below the largest are below its last digit
NEGLIGIBLE = 1e-40  # boundaries below this share of the best are left out of sums ...
SEEN = 1e-20  # ... which are computed in logarithms where the result is not above this


@compiled
def _fill(a, value):  # type: ignore[no-untyped-def]
    """Entry by entry: an assignment to a slice takes a second to compile, for its error message."""
    for i in range(len(a)):
        a[i] = value


@compiled
def _fill_rows(a, n, value):  # type: ignore[no-untyped-def]
    for i in range(n):
        for j in range(a.shape[1]):
            a[i, j] = value


@compiled
def advance(  # type: ignore[no-untyped-def]
    first, context, arc_first, arc_from, arcs, starts, ends, column, lm, highest, pause, beam, logs, first_frame,
    score, link, alive, enter, source, boundary, ended, before, record, link_unit, link_frame, link_back, used,
):  # fmt: skip
    """Token passing through frames logs (T, …), beginning with frame `first_frame`; returns the number of links used.

    score, link (S,) are the tokens in the states, alive (U,) marks units with any; enter (U,) is the score of entering
    a unit now, from boundary source (U,). boundary (G,) is the best token at each, ended (G,) the unit that it left,
    before (G,) its link then, record (G,) its own link once it has one. Links are (unit that ended, until which frame,
    previous link).
    """
    C, U = lm.shape[1], len(context)
    new, new_link = np.empty(len(score)), np.empty(len(score), dtype=np.int32)
    for t in range(len(logs)):
        best = -np.inf
        for u in range(U):
            if not alive[u] and enter[u] == -np.inf:
                continue
            g, is_active = source[u], False
            for j in range(first[u], first[u + 1]):
                maximum, at = -np.inf, -1
                for r in range(arc_first[j], arc_first[j + 1]):
                    candidate = score[arc_from[r]] + arcs[r]
                    if candidate > maximum:
                        maximum, at = candidate, arc_from[r]
                begin = enter[u] + starts[j]
                if begin > maximum:
                    if record[g] < 0:
                        link_unit[used], link_frame[used], link_back[used] = ended[g], first_frame + t, before[g]
                        record[g], used = used, used + 1
                    maximum, new_link[j] = begin, record[g]
                elif at >= 0:
                    new_link[j] = link[at]
                new[j] = maximum + logs[t, column[j]]
                is_active = is_active or new[j] > -np.inf
                best = new[j] if new[j] > best else best
            for j in range(first[u], first[u + 1]):
                score[j], link[j] = new[j], new_link[j]
            alive[u] = is_active
        least = best - beam
        _ends_of_units(first, context, ends, least, score, link, alive, boundary, ended, before)
        _fill(record, -1)
        _enter_words(boundary, lm, highest, least, enter, source)
        for u in range(C, U):
            enter[u], source[u] = boundary[context[u]] + pause, context[u]
            if enter[u] < least:
                enter[u] = -np.inf
    return used


@compiled
def _ends_of_units(first, context, ends, least, score, link, alive, boundary, ended, before):  # type: ignore[no-untyped-def]
    """Beam pruning below `least`; the best token that leaves each unit goes to its boundary."""
    _fill(boundary, -np.inf)
    for u in range(len(context)):
        if not alive[u]:
            continue
        out, exit_link, is_active = -np.inf, 0, False
        for j in range(first[u], first[u + 1]):
            if score[j] < least:
                score[j] = -np.inf
            is_active = is_active or score[j] > -np.inf
            total_score = score[j] + ends[j]
            if total_score > out:
                out, exit_link = total_score, link[j]
        alive[u] = is_active
        g = context[u]
        if out > boundary[g]:
            boundary[g], ended[g], before[g] = out, u, exit_link


@compiled
def _enter_words(boundary, lm, highest, least, enter, source):  # type: ignore[no-untyped-def]
    """Best entry into each word: enter[w] = max over g of boundary[g] + lm[g, w].

    The best boundary goes first; one that cannot improve the worst entry, whatever the word, is skipped.
    """
    C, maximum = lm.shape[1], 0
    for g in range(1, len(boundary)):
        maximum = g if boundary[g] > boundary[maximum] else maximum
    score_g, row, worst = boundary[maximum], lm[maximum], np.inf
    for w in range(C):
        enter[w], source[w] = score_g + row[w], maximum
    for w in range(C):
        worst = enter[w] if enter[w] < worst else worst
    worst = least if least > worst else worst
    for g in range(len(boundary)):
        if g == maximum or not boundary[g] + highest[g] > worst:
            continue
        score_g, row = boundary[g], lm[g]
        for w in range(C):
            candidate = score_g + row[w]
            better = candidate > enter[w]
            enter[w] = candidate if better else enter[w]
            source[w] = g if better else source[w]
    for w in range(C):
        enter[w] = enter[w] if enter[w] >= least else -np.inf


# ------------------------------------------------------ k-best token passing


@compiled_for_size
def advance_many(  # type: ignore[no-untyped-def]
    first, context, arc_first, arc_from, arcs, starts, ends, column, lm, highest, pause, logs, first_frame,
    score, history, link, enter, enter_history, source, boundary, boundary_history, ended, before, record,
    link_unit, link_frame, link_back, used,
):  # fmt: skip
    """As `advance`, with k tokens per state, entry and boundary, best first, no two with the same word history.

    All arrays of `advance` have k columns; history (…, k) is a hash of the words that a token has left behind, source
    (U, k) the boundary and rank it came from, as one number. Exact: what follows a dropped token may follow k better
    ones as well.
    """
    k, C, U = score.shape[1], lm.shape[1], len(context)
    new, new_history, new_link = np.empty(score.shape), np.empty(score.shape, np.int64), np.empty(score.shape, np.int64)
    flat_record = record.ravel()
    for t in range(len(logs)):
        for u in range(U):
            for j in range(first[u], first[u + 1]):
                new[j] = -np.inf
                for r in range(arc_first[j], arc_first[j + 1]):
                    i = arc_from[r]
                    for q in range(k):
                        if not score[i, q] + arcs[r] > new[j, k - 1]:
                            break
                        _insert(new[j], new_history[j], new_link[j], score[i, q] + arcs[r], history[i, q], link[i, q])
                for q in range(k):
                    if not enter[u, q] + starts[j] > new[j, k - 1]:
                        break
                    s = source[u, q]
                    if flat_record[s] < 0:
                        g, p = s // k, s % k
                        link_unit[used], link_frame[used], link_back[used] = ended[g, p], first_frame + t, before[g, p]
                        flat_record[s], used = used, used + 1
                    _insert(
                        new[j],
                        new_history[j],
                        new_link[j],
                        enter[u, q] + starts[j],
                        enter_history[u, q],
                        flat_record[s],
                    )
        _fill_rows(boundary, len(boundary), -np.inf)
        for u in range(U):
            g = context[u]
            for j in range(first[u], first[u + 1]):
                for q in range(k):
                    score[j, q], history[j, q], link[j, q] = (
                        new[j, q] + logs[t, column[j]],
                        new_history[j, q],
                        new_link[j, q],
                    )
                    total_score = score[j, q] + ends[j]
                    if total_score > boundary[g, k - 1]:
                        extended = _with_word(history[j, q], u) if u < C else history[j, q]
                        _insert_with_unit(
                            boundary[g], boundary_history[g], ended[g], before[g], total_score, extended, u, link[j, q]
                        )
        _fill(flat_record, -1)
        _enter_many(boundary, boundary_history, lm, highest, enter, enter_history, source)
        for u in range(C, U):
            for q in range(k):
                g = context[u]
                enter[u, q], enter_history[u, q], source[u, q] = (
                    boundary[g, q] + pause,
                    boundary_history[g, q],
                    g * k + q,
                )
    return used


@compiled
def _enter_many(boundary, boundary_history, lm, highest, enter, enter_history, source):  # type: ignore[no-untyped-def]
    """The k best entries into each word; the best boundary first, as in `_enter_words`."""
    (G, k), C, maximum = boundary.shape, lm.shape[1], 0
    for g in range(1, G):
        maximum = g if boundary[g, 0] > boundary[maximum, 0] else maximum
    _fill_rows(enter, C, -np.inf)
    worst = -np.inf
    for n in range(G):
        g = maximum if n == 0 else n - 1 if n <= maximum else n
        if n > 0 and not boundary[g, 0] + highest[g] > worst:
            continue
        for w in range(C):
            for q in range(k):
                candidate = boundary[g, q] + lm[g, w]
                if not candidate > enter[w, k - 1]:
                    break
                _insert(enter[w], enter_history[w], source[w], candidate, boundary_history[g, q], g * k + q)
        if n == 0:
            worst = np.inf
            for w in range(C):
                worst = enter[w, k - 1] if enter[w, k - 1] < worst else worst


@compiled
def _with_word(history, word):  # type: ignore[no-untyped-def]
    """The hash of a history extended by a word: two remainders of 31 bits, so that products stay below 63 bits."""
    larger, smaller = history >> 31, history & 0x7FFFFFFF
    larger = (larger * 1103515245 + word + 1) % 2147483629
    smaller = (smaller * 1664525917 + word + 1) % 2147483587
    return (larger << 31) | smaller


@compiled
def _insert(scores, histories, links, score, history, link):  # type: ignore[no-untyped-def]
    """Insert a token into a sorted list; of two with the same history the better stays."""
    r = _replaced_rank(scores, histories, score, history)
    if r < 0:
        return
    while r > 0 and scores[r - 1] < score:
        scores[r], histories[r], links[r] = scores[r - 1], histories[r - 1], links[r - 1]
        r -= 1
    scores[r], histories[r], links[r] = score, history, link


@compiled
def _insert_with_unit(scores, histories, units, links, score, history, unit, link):  # type: ignore[no-untyped-def]
    """Insert a token that comes from a unit and a link."""
    r = _replaced_rank(scores, histories, score, history)
    if r < 0:
        return
    while r > 0 and scores[r - 1] < score:
        scores[r], histories[r], units[r], links[r] = scores[r - 1], histories[r - 1], units[r - 1], links[r - 1]
        r -= 1
    scores[r], histories[r], units[r], links[r] = score, history, unit, link


@compiled
def _replaced_rank(scores, histories, score, history):  # type: ignore[no-untyped-def]
    """The rank that a new token replaces: that of the same history, else the last; −1 where that one is better."""
    for r in range(len(scores)):
        if scores[r] > -np.inf and histories[r] == history:
            return r if score > scores[r] else -1
    return len(scores) - 1 if score > scores[-1] else -1


# --------------------------------------------------------- forward and backward recursions


@compiled_for_size
def forward(  # type: ignore[no-untyped-def]
    first, context, arc_first, arc_from, arcs, starts, ends, column, lm_probs, highest, lm_indptr, lm_indices, lm_logs,
    pause, logs, which, alpha, enter, boundary, stored,
):  # fmt: skip
    """Forward recursion: log p(frames so far, state) in alpha (S,); stored (T, …) holds it for unit which[t].

    enter (U,) and boundary (G,) are the forward variables of unit entries and boundaries; all three are updated frame
    by frame. lm_probs (G, C) is exp(lm − highest); the possible entries of lm are stored sparsely by their target word.
    """
    C, U = lm_probs.shape[1], len(context)
    new, sums = np.empty(len(alpha)), np.empty(C)
    for t in range(len(logs)):
        for u in range(U):
            for j in range(first[u], first[u + 1]):
                maximum = enter[u] + starts[j]
                for r in range(arc_first[j], arc_first[j + 1]):
                    candidate = alpha[arc_from[r]] + arcs[r]
                    maximum = candidate if candidate > maximum else maximum
                total = _exp_below(enter[u] + starts[j], maximum)
                for r in range(arc_first[j], arc_first[j + 1]):
                    total += _exp_below(alpha[arc_from[r]] + arcs[r], maximum)
                new[j] = maximum + np.log(total) + logs[t, column[j]] if maximum > -np.inf else -np.inf
        for j in range(len(new)):
            alpha[j] = new[j]
        _fill(boundary, -np.inf)
        for u in range(U):
            out = _log_sum(alpha[first[u] : first[u + 1]], ends[first[u] : first[u + 1]])
            boundary[context[u]] = _log_add(boundary[context[u]], out)
        if which[t] >= 0:
            a, z = first[which[t]], first[which[t] + 1]
            for j in range(a, z):
                stored[t, j - a] = alpha[j]
        _forward_boundaries(boundary, lm_probs, highest, lm_indptr, lm_indices, lm_logs, enter, sums)
        for u in range(C, U):
            enter[u] = boundary[context[u]] + pause


@compiled_for_size
def backward(  # type: ignore[no-untyped-def]
    first, context, out_first, out_to, arcs, starts, ends, column, lm_probs, highest, lm_indptr, lm_indices, lm_logs,
    pause, logs, which, stored, total, b_beta, boundary_beta, posterior,
):  # fmt: skip
    """Backward recursion: posterior probability that unit which[t] is active at frame t in posterior (T,).

    `total` is log p(x) of `forward`. b_beta (S,) is log b β of the states of the next frame; boundary_beta (G,) is
    log β of the boundaries: both are given after these frames and updated. Arcs and lm entries are stored by their
    source; lm_probs has shape (C, G).
    """
    C, U = len(lm_probs), len(context)
    beta, entry_beta, sums = np.empty(len(b_beta)), np.empty(U), np.empty(len(boundary_beta))
    for t in range(len(logs) - 1, -1, -1):
        for u in range(U):
            for j in range(first[u], first[u + 1]):
                maximum = ends[j] + boundary_beta[context[u]]
                for r in range(out_first[j], out_first[j + 1]):
                    candidate = b_beta[out_to[r]] + arcs[r]
                    maximum = candidate if candidate > maximum else maximum
                if maximum == -np.inf:
                    beta[j] = maximum
                    continue
                part = _exp_below(ends[j] + boundary_beta[context[u]], maximum)
                for r in range(out_first[j], out_first[j + 1]):
                    part += _exp_below(b_beta[out_to[r]] + arcs[r], maximum)
                beta[j] = maximum + np.log(part)
        posterior[t] = 0.0
        if which[t] >= 0:
            a, z = first[which[t]], first[which[t] + 1]
            for j in range(a, z):
                if stored[t, j - a] > -np.inf:
                    posterior[t] += np.exp(stored[t, j - a] + beta[j] - total)
        for j in range(len(b_beta)):
            b_beta[j] = beta[j] + logs[t, column[j]]
        for u in range(U):
            entry_beta[u] = _log_sum(b_beta[first[u] : first[u + 1]], starts[first[u] : first[u + 1]])
        _backward_boundaries(entry_beta[:C], lm_probs, highest, lm_indptr, lm_indices, lm_logs, boundary_beta, sums)
        for u in range(C, U):
            boundary_beta[context[u]] = _log_add(boundary_beta[context[u]], entry_beta[u] + pause)


@compiled
def _forward_boundaries(boundary, lm_probs, highest, lm_indptr, lm_indices, lm_logs, enter, sums):  # type: ignore[no-untyped-def]
    """Forward step over boundaries: enter[w] = log Σ_g exp(boundary[g] + lm[g, w]), in logarithms on underflow."""
    maximum = -np.inf
    for g in range(len(boundary)):
        candidate = boundary[g] + highest[g]
        maximum = candidate if candidate > maximum else maximum
    _fill(sums, 0.0)
    if maximum > -np.inf:
        for g in range(len(boundary)):
            weight = np.exp(boundary[g] + highest[g] - maximum)
            if weight > NEGLIGIBLE:
                row = lm_probs[g]
                for w in range(len(sums)):
                    sums[w] += weight * row[w]
    for w in range(len(sums)):
        if sums[w] > SEEN:
            enter[w] = maximum + np.log(sums[w])
        else:
            a, z = lm_indptr[w], lm_indptr[w + 1]
            enter[w] = _log_sum_at(boundary, lm_indices[a:z], lm_logs[a:z])


@compiled
def _backward_boundaries(entry_beta, lm_probs, highest, lm_indptr, lm_indices, lm_logs, boundary_beta, sums):  # type: ignore[no-untyped-def]
    """Backward step over boundaries: boundary_beta[g] = log Σ_w exp(lm[g, w] + entry_beta[w])."""
    maximum = -np.inf
    for w in range(len(entry_beta)):
        maximum = entry_beta[w] if entry_beta[w] > maximum else maximum
    _fill(sums, 0.0)
    if maximum > -np.inf:
        for w in range(len(entry_beta)):
            weight = np.exp(entry_beta[w] - maximum)
            if weight > NEGLIGIBLE:
                row = lm_probs[w]
                for g in range(len(sums)):
                    sums[g] += weight * row[g]
    for g in range(len(sums)):
        if sums[g] > SEEN:
            boundary_beta[g] = maximum + highest[g] + np.log(sums[g])
        else:
            a, z = lm_indptr[g], lm_indptr[g + 1]
            boundary_beta[g] = _log_sum_at(entry_beta, lm_indices[a:z], lm_logs[a:z])


@compiled
def _exp_below(term, maximum):  # type: ignore[no-untyped-def]
    """exp(term − maximum), 0 where it is negligible next to 1."""
    return np.exp(term - maximum) if term > maximum - NEAR else 0.0


@compiled
def _log_sum(a, b):  # type: ignore[no-untyped-def]
    """log Σ exp(a + b)."""
    maximum = -np.inf
    for i in range(len(a)):
        maximum = a[i] + b[i] if a[i] + b[i] > maximum else maximum
    if maximum == -np.inf:
        return maximum
    total = 0.0
    for i in range(len(a)):
        total += _exp_below(a[i] + b[i], maximum)
    return maximum + np.log(total)


@compiled
def _log_sum_at(a, at, b):  # type: ignore[no-untyped-def]
    """log Σ exp(a[at] + b)."""
    maximum = -np.inf
    for i in range(len(at)):
        term = a[at[i]] + b[i]
        maximum = term if term > maximum else maximum
    if maximum == -np.inf:
        return maximum
    total = 0.0
    for i in range(len(at)):
        total += _exp_below(a[at[i]] + b[i], maximum)
    return maximum + np.log(total)


@compiled
def _log_add(a, b):  # type: ignore[no-untyped-def]
    """log(exp a + exp b)."""
    larger, smaller = (a, b) if a > b else (b, a)
    return larger + np.log1p(np.exp(smaller - larger)) if smaller > larger - NEAR else larger
