"""Compiled sums of kernels over a tree: near leaves are summed in vector lanes, far nodes are pruned by an error bound.

A leaf stores its points column by column (d, lanes), so that a query is compared with all of them at once. A sum is
stored as a shift and a total in each lane, log S = −½ shift + log Σ total, so that nothing underflows.

Kernels have numbers: 0 exp(−r²/2), 1 (1 + r²/a)^(−b/2), 2 exp(−r), 3 (1 − r^a)^b inside the unit ball, 4 the cube of
edge 1, 5 cos(πr/2) inside the unit ball.
"""

from __future__ import annotations

import math

import numpy as np

from likely.numerics.compile import compiled

MAGIC = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to an integer, which then stands in the lowest bits
HALF_PI = 0.5 * math.pi
LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHARE = 0.03  # of the error still allowed: the part that one pruned node may use
ROOM = 200.0  # how far the nearest leaf may be below the shift before the shift moves: exp(100) is still harmless


@compiled
def log_sums(x, coords, weight, low, high, node_weight, child, inv, code, a, b, tolerance, skip, out):  # type: ignore[no-untyped-def]
    """out (n,): log Σ_n w_n k(|x − y_n|² · inv) for whitened rows x (n, d), without the point at place skip[i].

    A node adds at most its weight times k at its box. It is pruned where that is a small part of the error still
    allowed; all that is pruned together stays below `tolerance` times the sum.
    """
    n = x.shape[0]
    lanes = coords.shape[2]
    g, t, total = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    bits = t.view(np.int64)
    stack, distance = np.empty(512, np.int64), np.empty(512)
    for i in range(n):
        for lane in range(lanes):
            total[lane] = 0.0
        shift, floor, depth, left_out, leaves = np.inf, -np.inf, 1, 0.0, 0
        stack[0], distance[0] = 0, _box_distance(x, i, low, high, 0, inv, code)
        while depth > 0:
            depth -= 1
            node = stack[depth]
            best = _log_kernel(distance[depth], code, a, b)
            if best == -np.inf:
                continue
            if best <= floor:  # the sum so far is e^floor: as a part of it, what the node can add at most
                part = node_weight[node] * math.exp(best - floor)
                if part <= SHARE * (tolerance - left_out):
                    left_out += part
                    continue
            if child[node, 0] >= 0:
                near, far = child[node, 0], child[node, 1]
                one, two = (
                    _box_distance(x, i, low, high, near, inv, code),
                    _box_distance(x, i, low, high, far, inv, code),
                )
                if two < one:
                    near, far, one, two = far, near, two, one
                stack[depth], distance[depth] = far, two  # the nearer one goes last, and so is taken next
                stack[depth + 1], distance[depth + 1] = near, one
                depth += 2
                continue
            leaf = -1 - child[node, 0]
            _distances(x, i, coords, leaf, inv, code, g)
            if skip[i] >= 0 and skip[i] // lanes == leaf:
                g[skip[i] % lanes] = np.inf
            if code >= 3:
                _add_plain(g, weight, leaf, code, a, b, total)
                floor = _log_total(total)
                continue
            _minus_two_log_kernel(g, code, a, b)
            if not -2.0 * best >= shift - ROOM:
                nearest = g[0]
                for lane in range(lanes):
                    nearest = g[lane] if g[lane] < nearest else nearest
                if nearest == np.inf:
                    continue
                if nearest < shift:
                    _rescale(total, 0.5 * (nearest - shift))
                    shift = nearest
            _add_exponentials(g, t, bits, weight, leaf, shift, tolerance > 0, total)
            leaves += 1
            if leaves <= 8 or leaves % 8 == 0:
                floor = _log_total(total) - 0.5 * shift
        out[i] = _log_total(total) if code >= 3 else _log_total(total) - 0.5 * shift if shift < np.inf else -np.inf


@compiled
def _box_distance(x, i, low, high, node, inv, code):  # type: ignore[no-untyped-def]
    """Squared distance from a row to the box of a node; for the cube, twice the largest difference, squared."""
    total = 0.0
    for j in range(x.shape[1]):
        v = x[i, j]
        away = max(low[node, j] - v, v - high[node, j], 0.0)
        total = max(total, 4.0 * away * away) if code == 4 else total + away * away
    return total * inv


@compiled
def _log_kernel(r2, code, a, b):  # type: ignore[no-untyped-def]
    if code == 0:
        return -0.5 * r2
    if code == 1:
        return -0.5 * b * math.log1p(r2 / a)
    if code == 2:
        return -math.sqrt(r2)
    if r2 > 1.0:
        return -np.inf
    if code == 5:
        return math.log(max(math.cos(HALF_PI * math.sqrt(r2)), 1e-300))
    return 0.0 if code == 4 else _log_ball(r2, a, b)


@compiled
def _log_ball(r2, a, b):  # type: ignore[no-untyped-def]
    return b * math.log(max(1.0 - r2 ** (0.5 * a), 1e-300))


@compiled
def _distances(x, i, coords, leaf, inv, code, g):  # type: ignore[no-untyped-def]
    """Squared distances g (lanes,) from a row to the points of a leaf."""
    d, lanes = coords.shape[1], coords.shape[2]
    root = math.sqrt(inv)
    for lane in range(lanes):
        g[lane] = 0.0
    for j in range(d):
        v = x[i, j]
        if code == 4:
            for lane in range(lanes):
                away = 2.0 * root * (v - coords[leaf, j, lane])
                g[lane] = max(g[lane], away * away)
        else:
            for lane in range(lanes):
                away = root * (v - coords[leaf, j, lane])
                g[lane] += away * away


@compiled
def _minus_two_log_kernel(g, code, a, b):  # type: ignore[no-untyped-def]
    """−2 log k of squared distances, in place."""
    if code == 1:
        for lane in range(len(g)):
            g[lane] = b * math.log1p(g[lane] / a)
    elif code == 2:
        for lane in range(len(g)):
            g[lane] = 2.0 * math.sqrt(g[lane])


@compiled
def _add_plain(g, weight, leaf, code, a, b, total):  # type: ignore[no-untyped-def]
    for lane in range(len(g)):
        if g[lane] <= 1.0 and weight[leaf, lane] > 0:
            k = 1.0 if code == 4 else (1.0 - g[lane] ** (0.5 * a)) ** b if code == 3 else _cosine(g[lane])
            total[lane] += weight[leaf, lane] * k


@compiled
def _cosine(r2):  # type: ignore[no-untyped-def]
    return max(math.cos(HALF_PI * math.sqrt(r2)), 0.0)


@compiled
def _rescale(total, by):  # type: ignore[no-untyped-def]
    factor = math.exp(by)
    for lane in range(len(total)):
        total[lane] *= factor


@compiled
def _add_exponentials(g, t, bits, weight, leaf, shift, brief, total):  # type: ignore[no-untyped-def]
    """total += w exp(½ (shift − g)): eᵗ = 2ᵏ · Taylor's series of what is left, all lanes at once.

    The series ends at r¹², below 2e-16; a `brief` one at r⁸, below 4e-10 of each term.
    """
    lanes = len(g)
    for lane in range(lanes):
        s = 0.5 * (shift - g[lane])
        s = s if s > -700.0 else -700.0
        g[lane] = s
        t[lane] = s * LOG2E + MAGIC
    for lane in range(lanes):
        k = t[lane] - MAGIC
        g[lane] = (g[lane] - k * LN2_HIGH) - k * LN2_LOW
    for lane in range(lanes):
        bits[lane] = (bits[lane] << 52) + (1023 << 52)
    if brief:
        for lane in range(lanes):
            r = g[lane]
            s = r * r
            p = (1.0 + r) + s * (0.5 + r * (1.0 / 6.0))
            q = (1.0 / 24.0 + r * (1.0 / 120.0)) + s * (1.0 / 720.0 + r * (1.0 / 5040.0) + s * (1.0 / 40320.0))
            total[lane] += weight[leaf, lane] * ((p + s * s * q) * t[lane])
        return
    for lane in range(lanes):
        r = g[lane]
        p = 1.0 / 39916800.0 + r * (1.0 / 479001600.0)
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
        total[lane] += weight[leaf, lane] * (p * t[lane])


@compiled
def _log_total(total):  # type: ignore[no-untyped-def]
    s = 0.0
    for lane in range(len(total)):
        s += total[lane]
    return math.log(s) if s > 0 else -np.inf
