"""Exact nearest-neighbor search with a tree of bounding boxes (compiled).

Points are stored by leaf, each leaf a block (d, LANES) of columns, so that a query is compared with LANES points at
once, and a node tests the boxes of FAN children at once. Distances and bounds add the same kind of terms in the same
order, and rounding is monotone, so that a bound never exceeds a distance, not by one bit: the search is exact, and
ties go to the smallest row number. Distances are sums here: Σ|z|, Σz², max|z| or Σ|z|^p; callers take the root.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, compiled_for_size

ABSOLUTE, SQUARED, LARGEST, POWER = 0, 1, 2, 3  # terms of the distance sums
LANES = 64  # points per leaf: half the time of 32, whose loop is unrolled instead of vectorized
FAN = 8  # children per node, whose boxes are tested at once
LOOK = 16  # columns between two tests whether a whole leaf is too far


# --------------------------------------------------------------------- building


@compiled
def _widest(x, order, low, high):  # type: ignore[no-untyped-def]
    """The column in which these points have the largest range."""
    best, most = 0, -1.0
    for j in range(x.shape[1]):
        least = x[order[low], j]
        largest = least
        for i in range(low + 1, high):
            v = x[order[i], j]
            least = min(least, v)
            largest = max(largest, v)
        if largest - least > most:
            best, most = j, largest - least
    return best


@compiled
def _divide(x, order, low, high, at, j):  # type: ignore[no-untyped-def]
    """Quickselect: reorder so that column j of points before `at` is not above, and after not below, that at `at`."""
    high -= 1
    while low < high:
        a, b, c = x[order[low], j], x[order[(low + high) // 2], j], x[order[high], j]
        pivot = max(min(a, b), min(max(a, b), c))
        i, k = low, high
        while i <= k:
            while x[order[i], j] < pivot:
                i += 1
            while x[order[k], j] > pivot:
                k -= 1
            if i <= k:
                order[i], order[k] = order[k], order[i]
                i += 1
                k -= 1
        if at <= k:
            high = k
        elif at >= i:
            low = i
        else:
            return


@compiled_for_size
def grow(x, order):  # type: ignore[no-untyped-def]
    """Split points (n, d) recursively, each part in its widest column, into leaves of LANES points.

    order (n,) enters as 0 … n − 1 and is put in the order of the leaves. Every node but the last of its level is full,
    so that the children of node i are FAN·i and the following.
    """
    stack = np.empty((80, 2), np.int64)
    stack[0, 0], stack[0, 1], height = 0, (len(x) + LANES - 1) // LANES, 1
    while height > 0:
        height -= 1
        first, last = stack[height, 0], stack[height, 1]
        unit = 1
        while unit * FAN < last - first:
            unit *= FAN
        units = (last - first + unit - 1) // unit
        if units < 2:
            continue
        middle = first + (units + 1) // 2 * unit
        low, high = first * LANES, min(last * LANES, len(x))
        _divide(x, order, low, high, middle * LANES, _widest(x, order, low, high))
        stack[height, 0], stack[height, 1] = first, middle
        stack[height + 1, 0], stack[height + 1, 1] = middle, last
        height += 2


@compiled
def fill(x, order, blocks, rows, boxes, firsts):  # type: ignore[no-untyped-def]
    """Leaves as blocks (leaves, d, LANES), their row numbers (leaves, LANES), and boxes (nodes, 2, d, FAN).

    boxes[node, 0] and boxes[node, 1] are the lower and upper bounds of the node's children. firsts
    (levels + 1,) says where the nodes of each level begin; the children of node i of a level are FAN·i … of the next,
    and those of the last level are the leaves. Boxes enter as (∞, ∞): an absent child is infinitely far.
    """
    n, d, levels = len(x), x.shape[1], len(firsts) - 1
    for leaf in range(len(blocks)):
        size = min(LANES, n - leaf * LANES)
        parent, child = firsts[levels - 1] + leaf // FAN, leaf % FAN
        for i in range(LANES):
            rows[leaf, i] = order[leaf * LANES + i] if i < size else -1
        for j in range(d):
            least, largest = np.inf, -np.inf
            for i in range(LANES):
                v = x[rows[leaf, i], j] if i < size else np.inf  # an empty slot is infinitely far
                blocks[leaf, j, i] = v
                if i < size:
                    least = min(least, v)
                    largest = max(largest, v)
            boxes[parent, 0, j, child] = least
            boxes[parent, 1, j, child] = largest
    for level in range(levels - 2, -1, -1):
        for node in range(firsts[level + 1], firsts[level + 2]):
            parent, child = firsts[level] + (node - firsts[level + 1]) // FAN, (node - firsts[level + 1]) % FAN
            for j in range(d):
                least, largest = np.inf, -np.inf
                for c in range(FAN):
                    if boxes[node, 0, j, c] < np.inf:
                        least = min(least, boxes[node, 0, j, c])
                        largest = max(largest, boxes[node, 1, j, c])
                boxes[parent, 0, j, child] = least
                boxes[parent, 1, j, child] = largest


# --------------------------------------------------------------------- searching


@compiled
def _bounds(q, boxes, node, kind, p, out):  # type: ignore[no-untyped-def]
    """Lower bounds of the distance to the boxes of FAN children at once."""
    for c in range(FAN):
        out[c] = 0.0
    for j in range(len(q)):
        v = q[j]
        if kind == SQUARED:
            for c in range(FAN):
                z = max(max(boxes[node, 0, j, c] - v, v - boxes[node, 1, j, c]), 0.0)
                out[c] += z * z
        elif kind == ABSOLUTE:
            for c in range(FAN):
                out[c] += max(max(boxes[node, 0, j, c] - v, v - boxes[node, 1, j, c]), 0.0)
        elif kind == LARGEST:
            for c in range(FAN):
                out[c] = max(out[c], max(boxes[node, 0, j, c] - v, v - boxes[node, 1, j, c]))
        else:
            for c in range(FAN):
                z = max(max(boxes[node, 0, j, c] - v, v - boxes[node, 1, j, c]), 0.0)
                out[c] += z**p * (1.0 - 1e-12)  # rounding of powers may not be monotone


@compiled
def _measure(q, blocks, leaf, kind, p, limit, away):  # type: ignore[no-untyped-def]
    """Distances (LANES,) of a leaf's points; False once all are above `limit`."""
    d = len(q)
    for i in range(LANES):
        away[i] = 0.0
    for first in range(0, d, LOOK):
        last = min(first + LOOK, d)
        for j in range(first, last):
            v = q[j]
            if kind == SQUARED:
                for i in range(LANES):
                    z = blocks[leaf, j, i] - v
                    away[i] += z * z
            elif kind == ABSOLUTE:
                for i in range(LANES):
                    away[i] += abs(blocks[leaf, j, i] - v)
            elif kind == LARGEST:
                for i in range(LANES):
                    away[i] = max(away[i], abs(blocks[leaf, j, i] - v))
            else:
                for i in range(LANES):
                    away[i] += abs(blocks[leaf, j, i] - v) ** p
        if last < d:
            near = False
            for i in range(LANES):
                near = near or away[i] <= limit
            if not near:
                return False
    return True


@compiled
def _farther(d1, r1, d2, r2):  # type: ignore[no-untyped-def]
    return d1 > d2 or (d1 == d2 and r1 > r2)


@compiled
def _replace_farthest(away, rows, k, distance, row):  # type: ignore[no-untyped-def]
    """Replace the farthest of k neighbors (the root of a heap) by a nearer one."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= k:
            break
        if child + 1 < k and _farther(away[child + 1], rows[child + 1], away[child], rows[child]):
            child += 1
        if not _farther(away[child], rows[child], distance, row):
            break
        away[at], rows[at] = away[child], rows[child]
        at = child
    away[at], rows[at] = distance, row


@compiled
def _sort(away, rows):  # type: ignore[no-untyped-def]
    """Sort a heap, nearest first."""
    for last in range(len(away) - 1, 0, -1):
        distance, row = away[last], rows[last]
        away[last], rows[last] = away[0], rows[0]
        _replace_farthest(away, rows, last, distance, row)


@compiled
def _push(nodes, bounds, height, first, found, limit):  # type: ignore[no-untyped-def]
    """Push the children that may hold a nearer point onto the stack, the nearest on top; return the stack height."""
    top = height
    for c in range(FAN):
        bound = found[c]
        if bound <= limit and bound < np.inf:
            at = top
            while at > height and bounds[at - 1] < bound:
                bounds[at], nodes[at] = bounds[at - 1], nodes[at - 1]
                at -= 1
            bounds[at], nodes[at] = bound, first + c
            top += 1
    return top


@compiled
def search(queries, order, own, blocks, numbers, boxes, firsts, kind, p, away, rows):  # type: ignore[no-untyped-def]
    """Nearest neighbors of queries[order] among all points but row own[i] (−1: none); returns the visited leaves.

    queries (m, d), order (t,) and own (m,) whole; away (m, k) and rows (m, k) are filled, nearest first, at the
    indices in `order`. With fewer than k neighbors the rest is infinity, with a row number beyond all.
    """
    levels, total, looked = len(firsts) - 1, firsts[len(firsts) - 1], 0
    nodes, bounds = np.empty(FAN * (levels + 1), np.int64), np.empty(FAN * (levels + 1))
    lanes, found = np.empty(LANES), np.empty(FAN)
    for t in range(len(order)):
        query = order[t]
        q, near, who = queries[query], away[query], rows[query]
        for i in range(len(near)):
            near[i], who[i] = np.inf, numbers.size
        nodes[0], bounds[0], height = 0, 0.0, 1
        while height > 0:
            height -= 1
            node = nodes[height]
            if bounds[height] > near[0]:
                continue
            if node < total:
                level = 0
                while node >= firsts[level + 1]:
                    level += 1
                _bounds(q, boxes, node, kind, p, found)
                first = firsts[level + 1] + FAN * (node - firsts[level])  # leaves are numbered after all nodes
                height = _push(nodes, bounds, height, first, found, near[0])
                continue
            looked += 1
            leaf = node - total
            if not _measure(q, blocks, leaf, kind, p, near[0], lanes):
                continue
            for i in range(LANES):
                if lanes[i] <= near[0]:
                    row = numbers[leaf, i]
                    if row >= 0 and row != own[query] and _farther(near[0], who[0], lanes[i], row):
                        _replace_farthest(near, who, len(near), lanes[i], row)
        _sort(near, who)
    return looked


# -------------------------------------------------- by products, and with missing entries


@compiled
def settle(products, norms, slack, queries, own, known, away, rows):  # type: ignore[no-untyped-def]
    """Neighbors by squared distance from matrix products: near ties are computed again, exactly.

    products (m, n) are −2 q·x, norms (n,) are x·x, slack (m,) bounds twice the error of their sum; queries (m, d) and
    known (n, d) are used for exact distances; away and rows (m, k) are filled, nearest first.
    """
    n, d = known.shape
    for i in range(len(queries)):
        near, who = away[i], rows[i]
        k = len(near)
        for t in range(k):
            near[t], who[t] = np.inf, n
        for x in range(n):
            rough = products[i, x] + norms[x]
            if rough < near[0] and x != own[i]:
                _replace_farthest(near, who, k, rough, x)
        limit = near[0] + slack[i]
        for t in range(k):
            near[t], who[t] = np.inf, n
        for x in range(n):
            if products[i, x] + norms[x] <= limit and x != own[i]:
                total = 0.0
                for j in range(d):
                    z = known[x, j] - queries[i, j]
                    total += z * z
                if _farther(near[0], who[0], total, x):
                    _replace_farthest(near, who, k, total, x)
        _sort(near, who)


@compiled_for_size
def search_with_gaps(queries, own, known, kind, p, away, rows):  # type: ignore[no-untyped-def]
    """Neighbors by the entries that both have, sums scaled to all columns; infinitely far without common entries."""
    n, d = known.shape
    for i in range(len(queries)):
        near, who = away[i], rows[i]
        for t in range(len(near)):
            near[t], who[t] = np.inf, n
        for x in range(n):
            if x == own[i]:
                continue
            total, seen = 0.0, 0
            for j in range(d):
                z = abs(known[x, j] - queries[i, j])
                if z == z:
                    seen += 1
                    if kind == SQUARED:
                        total += z * z
                    elif kind == ABSOLUTE:
                        total += z
                    elif kind == LARGEST:
                        total = max(total, z)
                    else:
                        total += z**p
            if seen == 0:
                total = np.inf
            elif seen < d and kind != LARGEST:
                total = total * d / seen
            if _farther(near[0], who[0], total, x):
                _replace_farthest(near, who, len(near), total, x)
        _sort(near, who)
