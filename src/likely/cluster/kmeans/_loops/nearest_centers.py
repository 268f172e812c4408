"""Nearest centers of rows: matrix products with distance bounds, and exact distances near ties (compiled).

Scores are computed in single precision, in units in which rows are of size 1. Their error is bounded, and wherever two
centers lie within it the distances are computed in double precision, from differences. So the labels are those of the
plain formula, with ties going to the first center. Functions take a strip of rows: a call per row would cost
more than its distance.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled

STRIP = 496  # rows scored at a time: scores of 64 centers stay in the cache, without conflicts of cache lines
UP, DOWN = 1.000001, 0.999999  # bounds are stored in single precision: slack for rounding
LEAST = 1e-37  # and for overflow


@compiled
def _features(x, which, m, unit, origin, has_missing, own, features, size, length):  # type: ignore[no-untyped-def]
    """Features of the m rows `which`, one a column: what was seen of u = x · unit − origin, then where entries may be
    missing a mask, then where variances differ |u|². Also |u|² and the squared length of all features.
    """
    d = x.shape[1]
    for r in range(len(size)):
        size[r], length[r] = 0.0, 0.0
    for r in range(m):
        i = which[r]
        if has_missing:
            for j in range(d):
                u = x[i, j] * unit - origin[j]
                features[j, r] = u if u == u else 0.0
                features[d + j, r] = 1.0 if u == u else 0.0
        else:
            for j in range(d):
                features[j, r] = x[i, j] * unit - origin[j]
    for j in range(d):
        for r in range(m):
            size[r] += float(features[j, r]) * float(features[j, r])
    if own:
        for r in range(m):
            features[len(features) - 1, r] = size[r]
    for j in range(d, len(features)):
        for r in range(m):
            length[r] += float(features[j, r]) * float(features[j, r])
    for r in range(m):
        length[r] += size[r]


@compiled
def _scores(coef, half, features, scores, best, second, at):  # type: ignore[no-untyped-def]
    """The largest and second largest of coef · features − half over centers, and its center, for a strip of rows."""
    np.dot(coef, features, scores)
    n = scores.shape[1]
    for r in range(n):
        best[r] = -np.inf
        second[r] = -np.inf
        at[r] = 0
    for q in range(len(coef)):
        h = half[q]
        for r in range(n):
            v = scores[q, r] - h
            second[r] = max(second[r], min(v, best[r]))
            at[r] = q if v > best[r] else at[r]
            best[r] = max(v, best[r])


@compiled
def _bounds(size, length, best, second, noise, reach, height, error, above, below):  # type: ignore[no-untyped-def]
    """The error of each row's scores, and with it bounds on the distances to the best and to all other centers."""
    for r in range(len(size)):
        e = noise * (np.sqrt(length[r]) * reach + height + size[r])
        error[r] = e
        above[r] = np.sqrt(max(size[r] - 2.0 * (float(best[r]) - e), 0.0)) * UP + LEAST
        below[r] = np.sqrt(max(size[r] - 2.0 * (float(second[r]) + e), 0.0)) * DOWN


@compiled
def _recheck_near_ties(x, unit, centers, slope, price, scores, half, which, m, best, second, error, at, above, below):  # type: ignore[no-untyped-def]
    """Where other centers may be nearer, costs are computed from differences: the first of the smallest.

    The cost is slope · |x − c|² + price · (entries seen), over observed entries. Returns the number of such rows.
    """
    looked, d = 0, x.shape[1]
    for r in range(m):
        floor = float(best[r]) - 2.0 * error[r]
        if float(second[r]) < floor:
            continue
        looked += 1
        least, nearest, i = np.inf, np.inf, which[r]
        at[r], below[r] = 0, 0.0
        for q in range(len(centers)):
            if float(scores[q, r]) - float(half[q]) < floor:
                continue
            far, seen = 0.0, 0
            for j in range(d):
                z = x[i, j] * unit - centers[q, j] * unit
                if z == z:
                    far += z * z
                    seen += 1
            cost = slope[q] * far + price[q] * seen
            if cost < least:
                least, nearest, at[r] = cost, far, q
        above[r] = np.sqrt(nearest) * UP + LEAST
    return looked


@compiled
def _moves(x, weight, unit, origin, has_missing, which, m, at, labels, sums, seen, counts, facts):  # type: ignore[no-untyped-def]
    """Subtract relabeled rows from the old cluster's sums (−1 is none) and add them to the new one's.

    Without missing values a cluster's weight in each column is that of its rows, and `seen` is not updated.
    """
    d = x.shape[1]
    for r in range(m):
        i, new = which[r], at[r]
        old = labels[i]
        if new == old:
            continue
        w = weight[i] if len(weight) > 0 else 1.0
        labels[i] = new
        facts[0] += 1.0
        counts[new] += w
        if old >= 0:
            counts[old] -= w
        size = 0.0
        for j in range(d):
            u = x[i, j] * unit - origin[j]
            if u == u:
                sums[new, j] += w * u
                if old >= 0:
                    sums[old, j] -= w * u
                if has_missing:
                    seen[new, j] += w
                    if old >= 0:
                        seen[old, j] -= w
                size += u * u
        facts[3] += w * size if old < 0 else 0.0


@compiled
def _sizes_of(coef, half):  # type: ignore[no-untyped-def]
    """The largest norm of a row of `coef`, and the largest |half|."""
    reach, height = 0.0, 0.0
    for q in range(len(coef)):
        norm = 0.0
        for j in range(coef.shape[1]):
            norm += float(coef[q, j]) * float(coef[q, j])
        reach, height = max(reach, np.sqrt(norm)), max(height, abs(float(half[q])))
    return reach, height


@compiled
def assign(  # type: ignore[no-untyped-def]
    x, weight, unit, origin, centers, slope, price, coef, half, has_missing, own, noise,
    labels, upper, lower, drift, others, safe, sums, seen, counts, facts,
):  # fmt: skip
    """Assign each row (n, d) to its nearest center; sums are updated by the rows that move.

    `upper` and `lower` (n,) bound the distance to the row's own and to every other center; empty arrays switch bounds
    off. `drift` (k,) is the distance that each center has moved since, `others` (k,) the largest of any other, `safe`
    (k,) half the distance to the nearest other center. `facts` counts: rows moved, rows checked twice, rows scored, Σ
    w |u|² of rows that had no label.
    """
    n, wide = len(x), coef.shape[1]
    features = np.zeros((wide, STRIP), coef.dtype)
    scores = np.empty((len(coef), STRIP), coef.dtype)
    best, second = np.empty(STRIP, coef.dtype), np.empty(STRIP, coef.dtype)
    at, which = np.empty(STRIP, np.int32), np.empty(STRIP, np.int64)
    size, length, error, above, below = np.zeros((5, STRIP))
    bounded = len(upper) > 0
    reach, height = _sizes_of(coef, half)
    noise = noise + 1e-15 * wide
    m = 0
    for i in range(n):
        old = labels[i]
        skip = False
        if bounded and old >= 0:
            u = (float(upper[i]) + drift[old]) * UP + LEAST
            low = max(float(lower[i]) - others[old], 0.0) * DOWN
            skip = u < max(low, safe[old])
            upper[i], lower[i] = u, low
        if not skip:
            which[m] = i
            m += 1
        if m == STRIP or (i == n - 1 and m > 0):
            _features(x, which, m, unit, origin, has_missing, own, features, size, length)
            _scores(coef, half, features, scores, best, second, at)
            _bounds(size, length, best, second, noise, reach, height, error, above, below)
            facts[1] += _recheck_near_ties(
                x, unit, centers, slope, price, scores, half, which, m, best, second, error, at, above, below
            )
            if bounded:
                for r in range(m):
                    upper[which[r]], lower[which[r]] = above[r], below[r]
            _moves(x, weight, unit, origin, has_missing, which, m, at, labels, sums, seen, counts, facts)
            facts[2] += m
            m = 0


@compiled
def moments_about(x, weight, unit, centers, labels, sums, squares, seen, counts):  # type: ignore[no-untyped-def]
    """Add Σ w z, Σ w z² and Σ w of z = (x − center) · unit, over observed entries, to each row's cluster."""
    weighted = len(weight) > 0
    for i in range(len(x)):
        q = labels[i]
        w = weight[i] if weighted else 1.0
        for j in range(x.shape[1]):
            z = x[i, j] * unit - centers[q, j] * unit
            if z == z:
                sums[q, j] += w * z
                squares[q, j] += w * z * z
                seen[q, j] += w
        counts[q] += w


@compiled
def costs(x, unit, centers, slope, price, labels, out):  # type: ignore[no-untyped-def]
    """The cost of each row at its own center, into out (n,)."""
    for i in range(len(x)):
        q, far, seen = labels[i], 0.0, 0
        for j in range(x.shape[1]):
            z = x[i, j] * unit - centers[q, j] * unit
            if z == z:
                far += z * z
                seen += 1
        out[i] = slope[q] * far + price[q] * seen


@compiled
def look(x, low, high):  # type: ignore[no-untyped-def]
    """Update minimum and maximum of each column; returns the number of NaN entries, and the row of an infinity."""
    missing, bad = 0, -1
    for i in range(len(x)):
        for j in range(x.shape[1]):
            v = x[i, j]
            if v != v:
                missing += 1
            elif abs(v) == np.inf:
                bad = i if bad < 0 else bad
            else:
                low[j], high[j] = min(low[j], v), max(high[j], v)
    return missing, bad
