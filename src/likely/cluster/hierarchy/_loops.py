"""Agglomerative clustering: compiled nearest-neighbor searches and updates of the distance matrix.

Points are columns, (d, m): differences to one point are then long vectors. Ties go to the smallest i xor j, which is
symmetric: so there is always a reciprocal pair, and on a grid there are many at once.
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, compiled_for_size

ADD, MEAN, LARGER, SMALLER = 0, 1, 2, 3  # update rules for two distances
CLEAR = 1.0 - 1e-9  # relative slack of a bound: rounding is below that
STRIP = 1024  # points at a time: their differences stay in the first cache


@compiled
def _fill(a, value):  # type: ignore[no-untyped-def]
    """Entry by entry: an assignment to a slice takes a second to compile, for its error message."""
    for i in range(len(a)):
        a[i] = value


@compiled
def _squares(points, i, start, stop, out):  # type: ignore[no-untyped-def]
    """out[: stop − start] = |points[:, start:stop] − points[:, i]|²."""
    d, m = points.shape[0], stop - start
    for j in range(m):
        out[j] = 0.0
    c = 0
    while c + 4 <= d:  # four columns a sweep: a quarter of the loads and stores of `out`
        p, q = points[c, start:stop], points[c + 1, start:stop]
        r, s = points[c + 2, start:stop], points[c + 3, start:stop]
        a, b, e, f = points[c, i], points[c + 1, i], points[c + 2, i], points[c + 3, i]
        for j in range(m):
            t, u, v, w = p[j] - a, q[j] - b, r[j] - e, s[j] - f
            out[j] += t * t + u * u + v * v + w * w
        c += 4
    while c < d:
        p, a = points[c, start:stop], points[c, i]
        for j in range(m):
            t = p[j] - a
            out[j] += t * t
        c += 1


@compiled
def nearest_points(points, thin, ward, todo, nearest, height):  # type: ignore[no-untyped-def]
    """For each i in todo its nearest other point and the distance: |Δ|², or for Ward |Δ|² / (1 / w_i + 1 / w_j).

    `thin` (m,) is 1 / w.
    """
    m = points.shape[1]
    apart = np.empty(STRIP)
    for i in todo:
        best, who, wi = np.inf, -1, thin[i]
        for start in range(0, m, STRIP):
            stop = min(start + STRIP, m)
            _squares(points, i, start, stop, apart)
            if ward:
                for j in range(stop - start):
                    apart[j] /= wi + thin[start + j]
            if start <= i < stop:
                apart[i - start] = np.inf
            for j in range(stop - start):
                if apart[j] <= best:
                    k = start + j
                    if apart[j] < best or who < 0 or (i ^ k) < (i ^ who):
                        best, who = apart[j], k
        nearest[i], height[i] = who, best


@compiled
def point_squares(points, i, out):  # type: ignore[no-untyped-def]
    """out (m,) = |points − points[:, i]|²."""
    for start in range(0, points.shape[1], STRIP):
        stop = min(start + STRIP, points.shape[1])
        _squares(points, i, start, stop, out[start:stop])


@compiled
def _join(how, a, b):  # type: ignore[no-untyped-def]
    if how == ADD:
        return a + b
    if how == MEAN:
        return 0.5 * (a + b)
    if how == LARGER:
        return a if a > b else b
    return a if a < b else b


@compiled
def _distances(points, factor, i, out):  # type: ignore[no-untyped-def]
    """out (n,) = |points − points[:, i]| · factor · factor[i]."""
    point_squares(points, i, out)
    f = factor[i]
    for j in range(len(out)):
        out[j] = np.sqrt(out[j]) * (f * factor[j])


@compiled
def fill(points, factor, how, first, merged, second, start, stop, out):  # type: ignore[no-untyped-def]
    """Rows start … stop of the matrix of Euclidean distances between clusters of one or two points.

    Cluster c has the point first[c]; those in `merged` have also the point in `second` (−1 for the others). `factor`
    (n,) is what a point's distances count: its weight, where distances are added.
    """
    one, two = np.empty(points.shape[1]), np.empty(points.shape[1])
    for r in range(start, stop):
        row = out[r]
        _distances(points, factor, first[r], one)
        if second[r] >= 0:
            _distances(points, factor, second[r], two)
            _join_rows(how, one, two, one)
        for c in range(len(first)):
            row[c] = one[first[c]]
        for c in merged:
            row[c] = _join(how, one[first[c]], one[second[c]])
        row[r] = np.inf


@compiled
def _join_rows(how, a, b, out):  # type: ignore[no-untyped-def]
    if how == ADD:  # one loop a case: a question inside would keep it from being a vector loop
        for c in range(len(out)):
            out[c] = a[c] + b[c]
    elif how == MEAN:
        for c in range(len(out)):
            out[c] = 0.5 * (a[c] + b[c])
    elif how == LARGER:
        for c in range(len(out)):
            out[c] = a[c] if a[c] > b[c] else b[c]
    else:
        for c in range(len(out)):
            out[c] = a[c] if a[c] < b[c] else b[c]


@compiled
def fold_columns(matrix, m, how, first, merged, second, start, stop):  # type: ignore[no-untyped-def]
    """In rows start … stop of m columns: c becomes first[c], joined for c in `merged` with second[c]."""
    old = np.empty(m)
    for r in range(start, stop):
        row = matrix[r]
        for c in range(m):
            old[c] = row[c]
        for c in range(len(first)):
            row[c] = old[first[c]]
        for c in merged:
            row[c] = _join(how, old[first[c]], old[second[c]])


@compiled
def fold_rows(matrix, how, first, second, start, stop):  # type: ignore[no-untyped-def]
    """In columns start … stop: row r becomes first[r] ≥ r, joined with its second where it has one (else −1)."""
    for r in range(len(first)):
        row, a = matrix[r, start:stop], matrix[first[r], start:stop]
        if second[r] >= 0:
            _join_rows(how, a, matrix[second[r], start:stop], row)
        elif first[r] != r:
            for c in range(len(row)):
                row[c] = a[c]
        if start <= r < stop:
            row[r - start] = np.inf


@compiled_for_size
def join_few(matrix, m, how, a, b):  # type: ignore[no-untyped-def]
    """Rows and columns a of the first m become those of a ∪ b; rows and columns b become infinite."""
    for q in range(len(a)):
        row, other = matrix[a[q], :m], matrix[b[q], :m]
        _join_rows(how, row, other, row)
        row[a[q]] = row[b[q]] = np.inf
        for j in range(m):
            matrix[j, a[q]] = row[j]
            matrix[j, b[q]] = np.inf
        _fill(other, np.inf)


@compiled
def nearest_entries(matrix, share, todo, nearest, height):  # type: ignore[no-untyped-def]
    """For each i in todo the column with the smallest matrix[i, j] · share[j], and that times share[i]."""
    m = len(share)
    for i in todo:
        best, who, row = np.inf, -1, matrix[i]
        for j in range(m):
            v = row[j] * share[j]
            if v <= best and j != i and (v < best or who < 0 or (i ^ j) < (i ^ who)):
                best, who = v, j
        nearest[i], height[i] = who, best * share[i]


@compiled
def merge_centers(points, weight, midway, nearest, near, merges, heights):  # type: ignore[no-untyped-def]
    """Merge the two closest centers repeatedly; points (d, n), weight, nearest and near (|Δ|²) are overwritten.

    The new center is the midpoint, or the weighted mean. A distance whose partner has merged stays as a lower bound
    (nearest −1), and is searched again if it becomes the smallest. The last slot fills the one that a merge leaves.
    """
    d, n = points.shape
    name, apart = np.arange(n), np.empty(n)
    for t in range(n - 1):
        m = n - t
        i = _least(near, m)
        while nearest[i] < 0:
            _squares(points, i, 0, m, apart)
            apart[i] = np.inf
            nearest[i] = _least(apart, m)
            near[i] = apart[nearest[i]]
            i = _least(near, m)
        a, b, last = min(i, nearest[i]), max(i, nearest[i]), m - 1
        merges[t, 0], merges[t, 1], heights[t] = name[a], name[b], np.sqrt(near[i])
        share = 0.5 if midway else weight[b] / (weight[a] + weight[b])
        for c in range(d):
            points[c, a] += share * (points[c, b] - points[c, a])
            points[c, b] = points[c, last]
        weight[a] += weight[b]
        name[a] = n + t
        weight[b], name[b], near[b], nearest[b] = weight[last], name[last], near[last], nearest[last]
        _squares(points, a, 0, last, apart)
        apart[a] = np.inf
        for j in range(last):
            if apart[j] <= near[j]:
                near[j], nearest[j] = apart[j], a
            elif nearest[j] == a or nearest[j] == b:
                nearest[j] = -1
            elif nearest[j] == last:
                nearest[j] = b
        nearest[a] = _least(apart, last)
        near[a] = apart[nearest[a]]


@compiled
def _least(values, m):  # type: ignore[no-untyped-def]
    """The index of the smallest of the first m values."""
    who = 0
    for j in range(1, m):
        if values[j] < values[who]:
            who = j
    return who


@compiled
def shortest_tree(points, one, other, square):  # type: ignore[no-untyped-def]
    """Minimum spanning tree of points (d, n) by Prim's algorithm: edges (one, other, |Δ|²); points are reordered."""
    d, n = points.shape
    name, near, link, apart = np.arange(n), np.empty(n), np.zeros(n, np.int64), np.empty(n)
    _fill(near, np.inf)
    for t in range(n - 1):
        m = n - t - 1  # the newest point of the tree stands at m, those outside before it
        _squares(points, m, 0, m, apart)
        best, who = np.inf, 0
        for j in range(m):
            if apart[j] < near[j]:
                near[j], link[j] = apart[j], name[m]
        for j in range(m):
            if near[j] < best:
                best, who = near[j], j
        one[t], other[t], square[t] = link[who], name[who], near[who]
        last = m - 1
        for c in range(d):
            points[c, who], points[c, last] = points[c, last], points[c, who]
        name[who], name[last] = name[last], name[who]
        near[who], link[who] = near[last], link[last]


@compiled
def shortest_tree_of_matrix(matrix, one, other, height):  # type: ignore[no-untyped-def]
    """Minimum spanning tree of a matrix of distances (n, n)."""
    n = len(matrix)
    outside, near, link = np.arange(1, n), matrix[0, 1:].copy(), np.zeros(n - 1, np.int64)
    for t in range(n - 1):
        m = n - 1 - t
        who = 0
        for j in range(1, m):
            if near[j] < near[who]:
                who = j
        new = outside[who]
        one[t], other[t], height[t] = link[who], new, near[who]
        outside[who], near[who], link[who] = outside[m - 1], near[m - 1], link[m - 1]
        for j in range(m - 1):
            v = matrix[new, outside[j]]
            if v < near[j]:
                near[j], link[j] = v, new


@compiled_for_size
def trees_of_edges(one, other, merges):  # type: ignore[no-untyped-def]
    """Edges of the minimum spanning tree in order, as merges (n − 1, 2) of clusters: leaf i, or n + t for merge t."""
    n = len(one) + 1
    up = np.arange(2 * n - 1)
    for t in range(n - 1):
        for side in range(2):
            i = one[t] if side == 0 else other[t]
            while up[i] != i:
                up[i] = up[up[i]]  # path halving
                i = up[i]
            merges[t, side] = i
        up[merges[t, 0]] = up[merges[t, 1]] = n + t


@compiled
def seen_distances(x, power, start, stop, out):  # type: ignore[no-untyped-def]
    """Rows start … stop of distances (d / d_obs Σ_obs |Δ|^p)^(1/p) over common columns, p 1 or 2; NaN without any."""
    n, d = x.shape
    for i in range(start, stop):
        for j in range(n):
            total, seen = 0.0, 0
            for c in range(d):
                e = abs(x[i, c] - x[j, c])
                if e == e:
                    total += e if power == 1 else e * e
                    seen += 1
            total = total * d / seen if seen else np.nan
            out[i, j] = np.sqrt(total) if power == 2 else total
        out[i, i] = 0.0


@compiled
def bound_losses(weight, mean, top, alive, start, stop, losses, exact):  # type: ignore[no-untyped-def]
    """Rows start … stop of lower bounds of the loss of merging i and j.

    The loss is cost(i ∪ j) − cost(i) − cost(j), the cost of a cluster n/2 log det(S/n + 1).

    With M = 1 + (S_i + S_j)/n and e between the means, log det is concave, and so the loss is at least

        n/2 log(1 + share/n eᵀ M⁻¹ e),     eᵀ M⁻¹ e ≥ |e|⁴ / eᵀ M e ≥ |e|² / (1 + (top_i + top_j)/n),

    `top` (m,) the largest eigenvalues of S. For two single rows this is the loss, and `exact` (m, m) says so.
    """
    m, d = mean.shape
    for i in range(start, stop):
        for j in range(m):
            losses[i, j], exact[i, j] = np.inf, True
            if alive[i] and alive[j] and i != j:
                n, apart = weight[i] + weight[j], 0.0
                for c in range(d):
                    apart += (mean[i, c] - mean[j, c]) * (mean[i, c] - mean[j, c])
                reach = 1.0 + (top[i] + top[j]) / n
                losses[i, j] = 0.5 * n * np.log1p(weight[i] * weight[j] / (n * n) * apart / reach)
                exact[i, j] = reach == 1.0


@compiled_for_size
def spread_losses(i, swallowed, losses, exact):  # type: ignore[no-untyped-def]
    """Copy row i to column i; the cluster that i absorbed is removed."""
    for j in range(len(losses)):
        losses[j, i], exact[j, i] = losses[i, j], exact[i, j]
        losses[j, swallowed], exact[j, swallowed] = np.inf, True
        losses[swallowed, j], exact[swallowed, j] = np.inf, True


@compiled
def refine_losses(weight, mean, scatter, cost, top, i, near, losses, exact):  # type: ignore[no-untyped-def]
    """Make row i exact where it matters: at its minimum, and where a bound is not above near[j] (m,)."""
    m, d = mean.shape
    e, through, s = np.empty(d), np.empty(d), np.empty((d, d))
    least, first = np.inf, _least(losses[i], m)
    for j in range(m):
        if exact[i, j]:
            least = min(least, losses[i, j])
    for turn in range(-1, m):  # the most promising first: its exact loss may make others unnecessary
        j = first if turn < 0 else turn
        if exact[i, j] or losses[i, j] * CLEAR > max(least, near[j]):
            continue
        n = weight[i] + weight[j]
        share = weight[i] * weight[j] / n
        apart = _mean_difference(mean, i, j, e)
        known = max(losses[i, j], _better_bound(scatter[i], scatter[j], e, apart, share, n, through))
        if known * CLEAR <= max(least, near[j]):
            known = max(0.5 * n * _log_det_of_both(scatter[i], scatter[j], e, share, n, s) - cost[i] - cost[j], 0.0)
            least = min(least, known)
            exact[i, j] = exact[j, i] = True
        losses[i, j] = losses[j, i] = known


@compiled
def _better_bound(one, other, e, apart, share, n, through):  # type: ignore[no-untyped-def]
    """n/2 log(1 + share/n |e|⁴ / eᵀ M e)."""
    d = len(e)
    for b in range(d):
        through[b] = 0.0
    for a in range(d):
        for b in range(d):
            through[b] += e[a] * (one[a, b] + other[a, b])
    total = 0.0
    for b in range(d):
        total += through[b] * e[b]
    return 0.5 * n * np.log1p(share / n * apart * apart / max(apart + total / n, 1e-300))


@compiled
def _log_det_of_both(one, other, e, share, n, s):  # type: ignore[no-untyped-def]
    """log det(1 + (S_i + S_j + share e eᵀ) / n), using s (d, d) as workspace."""
    d, thin = len(e), 1.0 / n
    for a in range(d):
        f = share * e[a]
        for b in range(a, d):
            s[a, b] = (one[a, b] + other[a, b] + f * e[b]) * thin
        s[a, a] += 1.0
    return _log_det(s)


@compiled
def _mean_difference(mean, i, j, e):  # type: ignore[no-untyped-def]
    """Store mean[i] − mean[j] in e (d,); returns |e|²."""
    total = 0.0
    for a in range(len(e)):
        e[a] = mean[i, a] - mean[j, a]
        total += e[a] * e[a]
    return total


@compiled
def _log_det(s):  # type: ignore[no-untyped-def]
    """log det of a positive definite matrix by Gaussian elimination of its upper triangle."""
    d, total, product = len(s), 0.0, 1.0
    for k in range(d):
        product *= s[k, k]
        if product > 1e150 or product < 1e-150:  # one logarithm for many pivots
            total += np.log(product)
            product = 1.0
        for a in range(k + 1, d):
            f = s[k, a] / s[k, k]
            for b in range(a, d):
                s[a, b] -= f * s[k, b]
    return total + np.log(product)


@compiled
def diagonal_losses(weight, mean, scatter, cost, alive, i, out):  # type: ignore[no-untyped-def]
    """Losses of merging i with each j, cost(i ∪ j) − cost(i) − cost(j), for diagonal covariances: scatter (m, d)."""
    m, d = mean.shape
    for j in range(m):
        if not alive[j] or j == i:
            out[j] = np.inf
            continue
        n = weight[i] + weight[j]
        share = weight[i] * weight[j] / n
        total, product = 0.0, 1.0
        for a in range(d):
            e = mean[i, a] - mean[j, a]
            product *= (scatter[i, a] + scatter[j, a] + share * e * e) / n + 1.0
            if product > 1e150:  # one logarithm for many columns
                total += np.log(product)
                product = 1.0
        out[j] = 0.5 * n * (total + np.log(product)) - cost[i] - cost[j]
