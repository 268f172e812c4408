"""Tokens run through a network of words: each carries a score and remembers where its last word ended.

A *unit* is a word or a copy of the silence; its states lie at first[u] … first[u + 1], and arcs (logarithms) stand in
lists by the state they lead to. Where a unit ends, a token comes to the boundary context[u]; from boundary g words are
entered by lm[g], and silence copy C + g by `pause`. A boundary gets a link only where a token that passed it won a
state.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled

NEAR = 40.0  # terms of a sum that far below the largest, in nats, are below its last digit
FAINT = 1e-40  # boundaries that much below the best are left out of sums ...
SEEN = 1e-20  # ... which are found by logarithms where no more than that comes out


@compiled
def advance(  # type: ignore[no-untyped-def]
    first, context, arc_first, arc_from, arcs, starts, ends, column, lm, highest, pause, beam, logs, began,
    score, link, alive, enter, source, boundary, ended, before, record, what, until, back, used,
):  # fmt: skip
    """Pass all tokens through frames logs (T, …), the first of which is frame `began`; the number of links used.

    score, link (S,) are the tokens in the states, alive (U,) says where any are; enter (U,) what they get who enter
    a unit now, from boundary source (U,). boundary (G,) is the best token at each, ended (G,) the unit that it left,
    before (G,) its link then, record (G,) its own link once it has one. Links are (what ended, until which frame, link
    back).
    """
    C, U = lm.shape[1], len(context)
    new, held = np.empty(len(score)), np.empty(len(score), dtype=np.int32)
    for t in range(len(logs)):
        best = -np.inf
        for u in range(U):
            if not alive[u] and enter[u] == -np.inf:
                continue
            g, some = source[u], False
            for j in range(first[u], first[u + 1]):
                top, at = -np.inf, -1
                for r in range(arc_first[j], arc_first[j + 1]):
                    through = score[arc_from[r]] + arcs[r]
                    if through > top:
                        top, at = through, arc_from[r]
                begin = enter[u] + starts[j]
                if begin > top:
                    if record[g] < 0:
                        what[used], until[used], back[used] = ended[g], began + t, before[g]
                        record[g], used = used, used + 1
                    top, held[j] = begin, record[g]
                elif at >= 0:
                    held[j] = link[at]
                new[j] = top + logs[t, column[j]]
                some = some or new[j] > -np.inf
                best = new[j] if new[j] > best else best
            for j in range(first[u], first[u + 1]):
                score[j], link[j] = new[j], held[j]
            alive[u] = some
        least = best - beam
        _ends_of_units(first, context, ends, least, score, link, alive, boundary, ended, before)
        record[:] = -1
        _enter_words(boundary, lm, highest, least, enter, source)
        for u in range(C, U):
            enter[u], source[u] = boundary[context[u]] + pause, context[u]
            if enter[u] < least:
                enter[u] = -np.inf
    return used


@compiled
def _ends_of_units(first, context, ends, least, score, link, alive, boundary, ended, before):  # type: ignore[no-untyped-def]
    """Tokens below `least` are dropped; the best of those that leave their units come to the boundaries."""
    boundary[:] = -np.inf
    for u in range(len(context)):
        if not alive[u]:
            continue
        out, came, some = -np.inf, 0, False
        for j in range(first[u], first[u + 1]):
            if score[j] < least:
                score[j] = -np.inf
            some = some or score[j] > -np.inf
            whole = score[j] + ends[j]
            if whole > out:
                out, came = whole, link[j]
        alive[u] = some
        g = context[u]
        if out > boundary[g]:
            boundary[g], ended[g], before[g] = out, u, came


@compiled
def _enter_words(boundary, lm, highest, least, enter, source):  # type: ignore[no-untyped-def]
    """The best way into each word: enter[w] = max over g of boundary[g] + lm[g, w].

    The best boundary goes first; one that then cannot better the worst entry, whatever the word, is not looked at.
    """
    C, top = lm.shape[1], 0
    for g in range(1, len(boundary)):
        top = g if boundary[g] > boundary[top] else top
    have, row, worst = boundary[top], lm[top], np.inf
    for w in range(C):
        enter[w], source[w] = have + row[w], top
    for w in range(C):
        worst = enter[w] if enter[w] < worst else worst
    worst = least if least > worst else worst
    for g in range(len(boundary)):
        if g == top or not boundary[g] + highest[g] > worst:
            continue
        have, row = boundary[g], lm[g]
        for w in range(C):
            through = have + row[w]
            better = through > enter[w]
            enter[w] = through if better else enter[w]
            source[w] = g if better else source[w]
    for w in range(C):
        enter[w] = enter[w] if enter[w] >= least else -np.inf


# ------------------------------------------------------ several tokens in each place


@compiled
def advance_many(  # type: ignore[no-untyped-def]
    first, context, arc_first, arc_from, arcs, starts, ends, column, lm, highest, pause, logs, began,
    score, said, link, enter, enter_said, source, boundary, boundary_said, ended, before, record, what, until, back,
    used,
):  # fmt: skip
    """As `advance`, with k tokens in every state, entry and boundary, best first, no two of which said the same words.

    All that `advance` keeps has k columns; said (…, k) is the fingerprint of the words that a token has left behind,
    source (U, k) the boundary and place it came from, as one number. Exact: what follows a token that is dropped
    may follow k better ones as well.
    """
    k, C, U = score.shape[1], lm.shape[1], len(context)
    new, new_said, new_link = np.empty(score.shape), np.empty(score.shape, np.int64), np.empty(score.shape, np.int64)
    flat = record.ravel()
    for t in range(len(logs)):
        for u in range(U):
            for j in range(first[u], first[u + 1]):
                new[j] = -np.inf
                for r in range(arc_first[j], arc_first[j + 1]):
                    i = arc_from[r]
                    for q in range(k):
                        if not score[i, q] + arcs[r] > new[j, k - 1]:
                            break
                        _put(new[j], new_said[j], new_link[j], score[i, q] + arcs[r], said[i, q], link[i, q])
                for q in range(k):
                    if not enter[u, q] + starts[j] > new[j, k - 1]:
                        break
                    s = source[u, q]
                    if flat[s] < 0:
                        g, p = s // k, s % k
                        what[used], until[used], back[used] = ended[g, p], began + t, before[g, p]
                        flat[s], used = used, used + 1
                    _put(new[j], new_said[j], new_link[j], enter[u, q] + starts[j], enter_said[u, q], flat[s])
        boundary[:] = -np.inf
        for u in range(U):
            g = context[u]
            for j in range(first[u], first[u + 1]):
                for q in range(k):
                    score[j, q], said[j, q], link[j, q] = new[j, q] + logs[t, column[j]], new_said[j, q], new_link[j, q]
                    whole = score[j, q] + ends[j]
                    if whole > boundary[g, k - 1]:
                        text = _with_word(said[j, q], u) if u < C else said[j, q]
                        _put_two(boundary[g], boundary_said[g], ended[g], before[g], whole, text, u, link[j, q])
        flat[:] = -1
        _enter_many(boundary, boundary_said, lm, highest, enter, enter_said, source)
        for u in range(C, U):
            for q in range(k):
                g = context[u]
                enter[u, q], enter_said[u, q], source[u, q] = boundary[g, q] + pause, boundary_said[g, q], g * k + q
    return used


@compiled
def _enter_many(boundary, boundary_said, lm, highest, enter, enter_said, source):  # type: ignore[no-untyped-def]
    """The k best ways into each word; the best boundary first, as in `_enter_words`."""
    (G, k), C, top = boundary.shape, lm.shape[1], 0
    for g in range(1, G):
        top = g if boundary[g, 0] > boundary[top, 0] else top
    enter[:C] = -np.inf
    worst = -np.inf
    for n in range(G):
        g = top if n == 0 else n - 1 if n <= top else n
        if n > 0 and not boundary[g, 0] + highest[g] > worst:
            continue
        for w in range(C):
            for q in range(k):
                through = boundary[g, q] + lm[g, w]
                if not through > enter[w, k - 1]:
                    break
                _put(enter[w], enter_said[w], source[w], through, boundary_said[g, q], g * k + q)
        if n == 0:
            worst = enter[:C, k - 1].min()


@compiled
def _with_word(said, word):  # type: ignore[no-untyped-def]
    """The fingerprint of one more word: two remainders of 31 bits, so that products stay below 63."""
    high, low = said >> 31, said & 0x7FFFFFFF
    high = (high * 1103515245 + word + 1) % 2147483629
    low = (low * 1664525917 + word + 1) % 2147483587
    return (high << 31) | low


@compiled
def _put(scores, saids, links, score, said, link):  # type: ignore[no-untyped-def]
    """Put a token into a list in order; of two that said the same words the better stays."""
    r = _place(scores, saids, score, said)
    if r < 0:
        return
    while r > 0 and scores[r - 1] < score:
        scores[r], saids[r], links[r] = scores[r - 1], saids[r - 1], links[r - 1]
        r -= 1
    scores[r], saids[r], links[r] = score, said, link


@compiled
def _put_two(scores, saids, units, links, score, said, unit, link):  # type: ignore[no-untyped-def]
    """The same, where a token comes from a unit and a link."""
    r = _place(scores, saids, score, said)
    if r < 0:
        return
    while r > 0 and scores[r - 1] < score:
        scores[r], saids[r], units[r], links[r] = scores[r - 1], saids[r - 1], units[r - 1], links[r - 1]
        r -= 1
    scores[r], saids[r], units[r], links[r] = score, said, unit, link


@compiled
def _place(scores, saids, score, said):  # type: ignore[no-untyped-def]
    """The place that a new token takes away: of the same words, else the last; −1 where those are better."""
    for r in range(len(scores)):
        if scores[r] > -np.inf and saids[r] == said:
            return r if score > scores[r] else -1
    return len(scores) - 1 if score > scores[-1] else -1


# --------------------------------------------------------- sums in place of maxima


@compiled
def forward(  # type: ignore[no-untyped-def]
    first, context, arc_first, arc_from, arcs, starts, ends, column, shares, highest, way_first, way_from, ways, pause,
    logs, which, alpha, enter, boundary, kept,
):  # fmt: skip
    """log p(frames so far, state) in alpha (S,), summed over all ways; kept (T, …) holds it for unit which[t] alone.

    enter (U,) and boundary (G,) are what comes into units and to boundaries; all three are renewed frame by frame.
    shares (G, C) is exp(lm − highest); the ways in lm that are possible stand in lists by the word they lead to.
    """
    C, U = shares.shape[1], len(context)
    new, sums = np.empty(len(alpha)), np.empty(C)
    for t in range(len(logs)):
        for u in range(U):
            for j in range(first[u], first[u + 1]):
                top = enter[u] + starts[j]
                for r in range(arc_first[j], arc_first[j + 1]):
                    through = alpha[arc_from[r]] + arcs[r]
                    top = through if through > top else top
                total = _near(enter[u] + starts[j], top)
                for r in range(arc_first[j], arc_first[j + 1]):
                    total += _near(alpha[arc_from[r]] + arcs[r], top)
                new[j] = top + np.log(total) + logs[t, column[j]] if top > -np.inf else -np.inf
        alpha[:] = new
        boundary[:] = -np.inf
        for u in range(U):
            out = _log_sum(alpha[first[u] : first[u + 1]], ends[first[u] : first[u + 1]])
            boundary[context[u]] = _added(boundary[context[u]], out)
        if which[t] >= 0:
            a, z = first[which[t]], first[which[t] + 1]
            kept[t, : z - a] = alpha[a:z]
        _spread(boundary, shares, highest, way_first, way_from, ways, enter, sums)
        for u in range(C, U):
            enter[u] = boundary[context[u]] + pause


@compiled
def backward(  # type: ignore[no-untyped-def]
    first, context, out_first, out_to, arcs, starts, ends, column, shares_back, highest, way_first, way_to, ways, pause,
    logs, which, kept, total, ahead, onward, share,
):  # fmt: skip
    """p(a token is in unit which[t] at frame t | all frames) in share (T,), after `forward`, whose sum is `total`.

    ahead (S,) is what a state of the next frame is worth, that frame included; onward (G,) what a boundary is: both
    come in as they are after these frames, and are renewed. Arcs and ways stand by what they leave; shares_back has
    shape (C, G).
    """
    C, U = len(shares_back), len(context)
    beta, worth, sums = np.empty(len(ahead)), np.empty(U), np.empty(len(onward))
    for t in range(len(logs) - 1, -1, -1):
        for u in range(U):
            for j in range(first[u], first[u + 1]):
                top = ends[j] + onward[context[u]]
                for r in range(out_first[j], out_first[j + 1]):
                    through = ahead[out_to[r]] + arcs[r]
                    top = through if through > top else top
                if top == -np.inf:
                    beta[j] = top
                    continue
                part = _near(ends[j] + onward[context[u]], top)
                for r in range(out_first[j], out_first[j + 1]):
                    part += _near(ahead[out_to[r]] + arcs[r], top)
                beta[j] = top + np.log(part)
        share[t] = 0.0
        if which[t] >= 0:
            a, z = first[which[t]], first[which[t] + 1]
            for j in range(a, z):
                if kept[t, j - a] > -np.inf:
                    share[t] += np.exp(kept[t, j - a] + beta[j] - total)
        for j in range(len(ahead)):
            ahead[j] = beta[j] + logs[t, column[j]]
        for u in range(U):
            worth[u] = _log_sum(ahead[first[u] : first[u + 1]], starts[first[u] : first[u + 1]])
        _gathered(worth[:C], shares_back, highest, way_first, way_to, ways, onward, sums)
        for u in range(C, U):
            onward[context[u]] = _added(onward[context[u]], worth[u] + pause)


@compiled
def _spread(boundary, shares, highest, way_first, way_from, ways, enter, sums):  # type: ignore[no-untyped-def]
    """enter[w] = log Σ over g of exp(boundary[g] + lm[g, w]): products where they hold, else logarithms."""
    top = -np.inf
    for g in range(len(boundary)):
        here = boundary[g] + highest[g]
        top = here if here > top else top
    sums[:] = 0.0
    if top > -np.inf:
        for g in range(len(boundary)):
            much = np.exp(boundary[g] + highest[g] - top)
            if much > FAINT:
                row = shares[g]
                for w in range(len(sums)):
                    sums[w] += much * row[w]
    for w in range(len(sums)):
        if sums[w] > SEEN:
            enter[w] = top + np.log(sums[w])
        else:
            a, z = way_first[w], way_first[w + 1]
            enter[w] = _log_sum_at(boundary, way_from[a:z], ways[a:z])


@compiled
def _gathered(worth, shares_back, highest, way_first, way_to, ways, onward, sums):  # type: ignore[no-untyped-def]
    """onward[g] = log Σ over w of exp(lm[g, w] + worth[w]), likewise."""
    top = worth.max()
    sums[:] = 0.0
    if top > -np.inf:
        for w in range(len(worth)):
            much = np.exp(worth[w] - top)
            if much > FAINT:
                row = shares_back[w]
                for g in range(len(sums)):
                    sums[g] += much * row[g]
    for g in range(len(sums)):
        if sums[g] > SEEN:
            onward[g] = top + highest[g] + np.log(sums[g])
        else:
            a, z = way_first[g], way_first[g + 1]
            onward[g] = _log_sum_at(worth, way_to[a:z], ways[a:z])


@compiled
def _near(term, top):  # type: ignore[no-untyped-def]
    """exp(term − top), 0 where it would not show beside 1."""
    return np.exp(term - top) if term > top - NEAR else 0.0


@compiled
def _log_sum(a, b):  # type: ignore[no-untyped-def]
    """log Σ exp(a + b)."""
    top = -np.inf
    for i in range(len(a)):
        top = a[i] + b[i] if a[i] + b[i] > top else top
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(len(a)):
        total += _near(a[i] + b[i], top)
    return top + np.log(total)


@compiled
def _log_sum_at(a, at, b):  # type: ignore[no-untyped-def]
    """log Σ exp(a[at] + b)."""
    top = -np.inf
    for i in range(len(at)):
        term = a[at[i]] + b[i]
        top = term if term > top else top
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(len(at)):
        total += _near(a[at[i]] + b[i], top)
    return top + np.log(total)


@compiled
def _added(a, b):  # type: ignore[no-untyped-def]
    """log(exp a + exp b)."""
    high, low = (a, b) if a > b else (b, a)
    return high + np.log1p(np.exp(low - high)) if low > high - NEAR else high
