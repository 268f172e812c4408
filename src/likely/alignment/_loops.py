"""Dynamic time warping, compiled: accumulated costs row by row, backtracking, lower bounds, subsequence search.

Every version adds the same numbers in the same order, so that they agree bit for bit. Two dozen alignments side by side
fill the vector lanes. Local costs of two frames: absolute Σ|z|, squared Σz², euclidean √Σz², over the entries observed
in both, scaled to all of them. A *missing* frame has no observed entry: it costs nothing, and is matched once (no step
along the other series stays on it).
"""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled, compiled_for_size

ABSOLUTE, SQUARED, EUCLIDEAN = 0, 1, 2
DIAGONAL, ALONG_A, ALONG_B, START = 0, 1, 2, 3  # backpointers: how a grid point was reached
NO_BAND, STRIP, SHARE, SLOPE = 0, 1, 2, 3  # kinds of bands: alignment.bands.Band
LANES = (
    24  # alignments in lockstep: 16 would be unrolled before vectorization (half as fast), 32 leave more lanes unused
)
CHECK_EVERY = 8  # rows between two checks for early abandoning


@compiled
def _fill(a, value):  # type: ignore[no-untyped-def]
    """Entry by entry, here and below: an assignment to a slice takes a second to compile, for its error message."""
    for i in range(len(a)):
        a[i] = value


@compiled
def _fill_rows(a, value):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = value


# ------------------------------------------------------------------ local costs


@compiled
def _cost_with_missing(x, y, kind, blank):  # type: ignore[no-untyped-def]
    """Local cost over the entries observed in both frames, scaled to all entries; `blank` if there are none."""
    D, n_observed, total, some_x, some_y = len(x), 0, 0.0, False, False
    for d in range(D):
        z = x[d] - y[d]
        some_x = some_x or x[d] == x[d]
        some_y = some_y or y[d] == y[d]
        if z == z:
            n_observed += 1
            total += abs(z) if kind == ABSOLUTE else z * z
    if n_observed == 0:
        return blank if some_x and some_y else 0.0
    total = total * D / n_observed if n_observed < D else total
    return np.sqrt(total) if kind == EUCLIDEAN else total


@compiled
def _cost_row(x, b, kind, has_missing, blank, low, high, out):  # type: ignore[no-untyped-def]
    """out[j] = cost of frame x (D,) against b[j] (m, D), for low ≤ j < high."""
    D = b.shape[1]
    if has_missing:
        for j in range(low, high):
            out[j] = _cost_with_missing(x, b[j], kind, blank)
    elif kind == ABSOLUTE:
        for j in range(low, high):
            total = 0.0
            for d in range(D):
                total += abs(x[d] - b[j, d])
            out[j] = total
    else:
        for j in range(low, high):
            total = 0.0
            for d in range(D):
                z = x[d] - b[j, d]
                total += z * z
            out[j] = np.sqrt(total) if kind == EUCLIDEAN else total


@compiled
def local_costs(a, b, kind, has_missing, blank, out):  # type: ignore[no-untyped-def]
    """Matrix of local costs out (n, m) of frames a (n, D) against b (m, D)."""
    for i in range(len(a)):
        _cost_row(a[i], b, kind, has_missing, blank, 0, len(b), out[i])


@compiled_for_size
def typical_cost(a, b, kind):  # type: ignore[no-untyped-def]
    """Mean cost of all pairs of frames with a common observed entry; 0 if there is none."""
    count, mean = 0, 0.0
    for i in range(len(a)):
        for j in range(len(b)):
            c = _cost_with_missing(a[i], b[j], kind, -1.0)
            bare = c == 0.0 and not _in_common(a[i], b[j])
            if c >= 0.0 and not bare:
                count += 1
                mean += (c - mean) / count
    return mean


@compiled
def _in_common(x, y):  # type: ignore[no-untyped-def]
    for d in range(len(x)):
        if x[d] == x[d] and y[d] == y[d]:
            return True
    return False


# -------------------------------------------------------------- one pair of series


@compiled
def accumulate_three(  # type: ignore[no-untyped-def]
    a, b, local, kind, has_missing, blank, missing_a, missing_b, lo, hi, open_begin, limit, backpointers, table, last
):
    """Accumulated costs with the three-step pattern; row i has columns lo[i] ≤ j < hi[i], both nondecreasing.

    `local` (n, m) are the local costs, or empty: then they are computed from a (n, D) and b (m, D). `open_begin`: a may
    begin anywhere in b, but not on a missing frame. `last` (m,) gets the last row, `backpointers` (n, width) the step
    to each point (column j − lo[i]) and `table` (n, m) all costs, where they are not empty. False once every point of a
    row is above `limit` (early abandoning).
    """
    given, store_backpointers, store_table = local.size > 0, backpointers.size > 0, table.size > 0
    n, m = len(lo), len(last)
    prev, cur, cost = np.empty(m + 1), np.empty(m + 1), np.empty(m)
    _fill(prev, np.inf)
    _fill(cur, np.inf)
    for i in range(n):
        low, high, least = lo[i], hi[i], np.inf
        if given:
            for j in range(low, high):
                cost[j] = local[i, j]
        else:
            _cost_row(a[i], b, kind, has_missing, blank, low, high, cost)
        cur[low] = np.inf
        for j in range(low, high):
            best, code = prev[j], DIAGONAL
            if i == 0 and ((j == 0 and not open_begin) or (open_begin and not (has_missing and missing_b[j]))):
                best, code = 0.0, START
            up, left = prev[j + 1], cur[j]
            if has_missing:
                up = np.inf if missing_b[j] else up
                left = np.inf if missing_a[i] else left
            if up < best:
                best, code = up, ALONG_A
            if left < best:
                best, code = left, ALONG_B
            best = cost[j] + best
            cur[j + 1] = best
            least = best if best < least else least
            if store_backpointers:
                backpointers[i, j - low] = code
            if store_table:
                table[i, j] = best
        if least > limit:
            return False
        prev, cur = cur, prev
    for j in range(m):
        last[j] = prev[j + 1] if j >= lo[n - 1] else np.inf
    return True


@compiled_for_size
def backtrack_three(backpointers, lo, end, path):  # type: ignore[no-untyped-def]
    """Backtracking from the last row, column `end`, into path (n + m, 2); returns the number of points."""
    i, j, count = len(lo) - 1, end, 0
    while True:
        path[count, 0], path[count, 1] = i, j
        count += 1
        code = backpointers[i, j - lo[i]]
        if code == START:
            return count
        if code != ALONG_B:
            i -= 1
        if code != ALONG_A:
            j -= 1


@compiled
def accumulate(  # type: ignore[no-untyped-def]
    local, moves, weights, counts, start, has_missing, missing_a, missing_b, lo, hi, open_begin, table, backpointers
):
    """Accumulated costs with any step pattern: the slow reference of `accumulate_three`, and used for other patterns.

    Production s is a sequence of counts[s] steps moves[s, t] = (di, dj) with weights[s, t], the last of which arrives.
    Points outside the band, and those of infinite cost, cannot be matched; a step of weight 0 only passes through them.
    `backpointers` (n, m) gets the production that reached each point, len(counts) for the start.
    """
    _fill_rows(table, np.inf)
    rules = len(counts)
    for i in range(len(lo)):
        for j in range(lo[i], hi[i]):
            best, code = np.inf, -1
            begins = (j == 0 and not open_begin) or (open_begin and not (has_missing and missing_b[j]))
            if i == 0 and begins and (start == 0.0 or local[i, j] < np.inf):
                best, code = start * local[i, j] if start > 0.0 else 0.0, rules
            for s in range(rules):
                p, q, added, allowed = i, j, 0.0, True
                for t in range(counts[s] - 1, -1, -1):
                    di, dj = moves[s, t, 0], moves[s, t, 1]
                    if has_missing and ((di == 0 and missing_a[p]) or (dj == 0 and missing_b[q])):
                        allowed = False
                    elif weights[s, t] > 0.0:
                        if q < lo[p] or q >= hi[p] or local[p, q] == np.inf:
                            allowed = False
                        else:
                            added += weights[s, t] * local[p, q]
                    p, q = p - di, q - dj
                    if p < 0 or q < 0 or not allowed:
                        allowed = False
                        break
                if allowed and table[p, q] + added < best:
                    best, code = table[p, q] + added, s
            table[i, j], backpointers[i, j] = best, code


@compiled_for_size
def backtrack(backpointers, moves, counts, end, path, weight, weights, start):  # type: ignore[no-untyped-def]
    """Backtracking for `accumulate`: all points within a production, with the weight of the step that reached each."""
    i, j, count = len(backpointers) - 1, end, 0
    while True:
        s = backpointers[i, j]
        if s == len(counts):
            path[count, 0], path[count, 1], weight[count] = i, j, start
            return count + 1
        for t in range(counts[s] - 1, -1, -1):
            path[count, 0], path[count, 1], weight[count] = i, j, weights[s, t]
            count += 1
            i, j = i - moves[s, t, 0], j - moves[s, t, 1]


@compiled_for_size
def path_starts(backpointers, moves, counts, starts):  # type: ignore[no-untyped-def]
    """starts[j] (m,): where in b the best path begins that ends in the last row, column j; −1 if there is none."""
    rules = len(counts)
    for end in range(len(starts)):
        i, j = len(backpointers) - 1, end
        s = backpointers[i, j]
        while 0 <= s < rules:
            for t in range(counts[s]):
                i, j = i - moves[s, t, 0], j - moves[s, t, 1]
            s = backpointers[i, j]
        starts[end] = j if s == rules else -1


# ---------------------------------------------------------------------------- bands


@compiled
def _radius(band_kind, size, n, m):  # type: ignore[no-untyped-def]
    """Radius of a Sakoe–Chiba band in frames of the longer series; a share may miss an integer by rounding."""
    return int(np.floor(size * max(n, m) + 1e-9)) if band_kind == SHARE else int(size)


@compiled
def _band_row(band_kind, size, n, m, i):  # type: ignore[no-untyped-def]
    """Columns low ≤ j < high of row i of n × m points: `alignment.bands.band_rows`, one row at a time."""
    if band_kind == NO_BAND or n == 1 or m == 1:
        return 0, m
    if band_kind == SLOPE:
        u = i / (n - 1)
        low = max(u / size, 1 - size * (1 - u)) * (m - 1)
        high = min(size * u, 1 - (1 - u) / size) * (m - 1)
        return max(int(np.ceil(low - 1e-9)), 0), min(int(np.floor(high + 1e-9)) + 1, m)
    along, reach = i * (m - 1), _radius(band_kind, size, n, m) * (min(n, m) - 1)
    return max(-((reach - along) // (n - 1)), 0), min((along + reach) // (n - 1) + 1, m)


@compiled
def _connected(band_kind, size, n, m):  # type: ignore[no-untyped-def]
    """True if the band leaves a path through n × m points."""
    if band_kind == NO_BAND or n == 1 or m == 1:
        return True
    if band_kind != SLOPE:
        radius = _radius(band_kind, size, n, m)
        if radius >= 1 and max(n, m) - 1 <= 2 * radius * (min(n, m) - 1):
            return True  # a step along the shorter series stays in the band: no need to check the rows
    low, high = _band_row(band_kind, size, n, m, 0)
    if low != 0:
        return False
    for i in range(1, n):
        begin, stop = _band_row(band_kind, size, n, m, i)
        if begin >= stop or begin > high:
            return False
        high = stop
    return high == m


@compiled_for_size
def not_connected(band_kind, size, lengths, others, found):  # type: ignore[no-untyped-def]
    """True if the band leaves no path between some two of these lengths; `found` (2,) gets the first pair."""
    for n in lengths:
        for m in others:
            if not _connected(band_kind, size, n, m):
                found[0], found[1] = n, m
                return True
    return False


# ------------------------------------------------------------ two dozen pairs at once


@compiled
def _lane_costs(x, b, kind, low, high, out):  # type: ignore[no-untyped-def]
    """out[j] (LANES,) = local costs of frame x (D,) against frames b[j] (D, LANES) of LANES series."""
    D = b.shape[1]
    for j in range(low, high):
        for k in range(LANES):
            out[j, k] = 0.0
        for d in range(D):
            if kind == ABSOLUTE:
                for k in range(LANES):
                    out[j, k] += abs(x[d] - b[j, d, k])
            else:
                for k in range(LANES):
                    z = x[d] - b[j, d, k]
                    out[j, k] += z * z
        if kind == EUCLIDEAN:
            for k in range(LANES):
                out[j, k] = np.sqrt(out[j, k])


@compiled
def _lane_row(cost, prev, cur, low, high):  # type: ignore[no-untyped-def]
    for j in range(low, high):
        for k in range(LANES):
            diagonal, up, left = prev[j, k], prev[j + 1, k], cur[j, k]
            best = diagonal if diagonal < up else up
            best = best if best < left else left
            cur[j + 1, k] = cost[j, k] + best


@compiled
def _lane_row_squared(x, b, prev, cur, low, high):  # type: ignore[no-untyped-def]
    for j in range(low, high):
        for k in range(LANES):
            z = x - b[j, k]
            diagonal, up, left = prev[j, k], prev[j + 1, k], cur[j, k]
            best = diagonal if diagonal < up else up
            best = best if best < left else left
            cur[j + 1, k] = z * z + best


@compiled
def _lane_row_absolute(x, b, prev, cur, low, high):  # type: ignore[no-untyped-def]
    for j in range(low, high):
        for k in range(LANES):
            z = abs(x - b[j, k])
            diagonal, up, left = prev[j, k], prev[j + 1, k], cur[j, k]
            best = diagonal if diagonal < up else up
            best = best if best < left else left
            cur[j + 1, k] = z + best


@compiled
def _can_abandon(row, low, high, limit):  # type: ignore[no-untyped-def]
    """Early abandoning: True if in every lane every point of the row is above the limit."""
    least = np.empty(LANES)
    _fill(least, np.inf)
    for j in range(low + 1, high + 1):
        for k in range(LANES):
            least[k] = row[j, k] if row[j, k] < least[k] else least[k]
    for k in range(LANES):
        if not least[k] > limit:
            return False
    return True


@compiled
def _lane_span(x, b, flat, kind, prev, cur, cost, low, high):  # type: ignore[no-untyped-def]
    """Columns low ≤ j < high of one row, in all lanes."""
    if b.shape[1] == 1 and kind == SQUARED:
        _lane_row_squared(x[0], flat, prev, cur, low, high)
    elif b.shape[1] == 1:
        _lane_row_absolute(x[0], flat, prev, cur, low, high)
    else:
        _lane_costs(x, b, kind, low, high, cost)
        _lane_row(cost, prev, cur, low, high)


@compiled
def _lane_edge(x, b, kind, prev, cur, cost, low, high, lo, hi):  # type: ignore[no-untyped-def]
    """One row where lane k has columns lo[k] ≤ j < hi[k] only: inf elsewhere."""
    if low >= high:
        return
    _lane_costs(x, b, kind, low, high, cost)
    for j in range(low, high):
        at = float(j)
        for k in range(LANES):
            diagonal, up, left = prev[j, k], prev[j + 1, k], cur[j, k]
            best = diagonal if diagonal < up else up
            best = best if best < left else left
            best = cost[j, k] + best
            best = best if at >= lo[k] else np.inf
            cur[j + 1, k] = best if at < hi[k] else np.inf


@compiled
def _lanes(a, b, ends, kind, band_kind, size, limit, prev, cur, cost, out):  # type: ignore[no-untyped-def]
    """Total costs of a (n, D) against LANES series b (m, D, LANES), each at its own end; inf where all exceed `limit`.

    Series shorter than m are padded; points beyond an end do not affect those before it. Where lengths differ, each
    lane has its own band: a row covers all of them, with inf where a lane has no point. prev, cur (m + 1, LANES) and
    cost (m, LANES; empty for one column without a band) are work arrays.
    """
    n, m, D = len(a), len(b), b.shape[1]
    flat = b.reshape(m, D * LANES)
    lo, hi = np.empty(LANES), np.empty(LANES)  # as numbers that vector lanes compare
    equal_lengths = True
    for k in range(1, LANES):
        equal_lengths = equal_lengths and (band_kind == NO_BAND or ends[k] == ends[0])
    _fill_rows(prev, np.inf)
    _fill_rows(cur, np.inf)
    _fill(prev[0], 0.0)
    for i in range(n):
        if equal_lengths:
            low, high = _band_row(band_kind, size, n, m, i)
            _fill(cur[low], np.inf)
            _lane_span(a[i], b, flat, kind, prev, cur, cost, low, high)
        else:
            low, high, middle, after = _all_rows(band_kind, size, n, ends, i, lo, hi)
            _fill(cur[low], np.inf)
            _lane_edge(a[i], b, kind, prev, cur, cost, low, middle, lo, hi)
            _lane_span(a[i], b, flat, kind, prev, cur, cost, middle, after)
            _lane_edge(a[i], b, kind, prev, cur, cost, after, high, lo, hi)
        if limit < np.inf and i % CHECK_EVERY == CHECK_EVERY - 1 and _can_abandon(cur, low, high, limit):
            _fill(out, np.inf)
            return
        prev, cur = cur, prev
        if i == 0:
            _fill(cur[0], np.inf)
    for k in range(LANES):
        out[k] = prev[ends[k], k]


@compiled
def _all_rows(band_kind, size, n, ends, i, lo, hi):  # type: ignore[no-untyped-def]
    """Row i of each lane's band into lo, hi (LANES,); the range that covers them all, and the range common to them."""
    low, high, before, last, first = 0, 0, -1, 0, 0
    for k in range(LANES):
        if ends[k] != before:  # lanes of equal length are adjacent
            before = ends[k]
            begin, stop = _band_row(band_kind, size, n, before, i)
            low = begin if k == 0 else min(low, begin)
            first = stop if k == 0 else min(first, stop)
            high, last = max(high, stop), max(last, begin)
        lo[k], hi[k] = begin, stop
    middle = min(last, high)
    return low, high, middle, max(first, middle)


@compiled
def _pack(values, offsets, which, count, b, ends):  # type: ignore[no-untyped-def]
    """Series `which` side by side in b (m, D, LANES), padded by their last frame; unused lanes repeat the first."""
    m, D, _ = b.shape
    for k in range(LANES):
        q = which[k] if k < count else which[0]
        begin, T = offsets[q], offsets[q + 1] - offsets[q]
        ends[k] = T
        for j in range(m):
            at = begin + (j if j < T else T - 1)
            for d in range(D):
                b[j, d, k] = values[at, d]


@compiled
def pair_block(values, offsets, rows, others, other_offsets, columns, kind, band_kind, size, above, out):  # type: ignore[no-untyped-def]
    """out[rows, columns]: total costs of some series against at most LANES others; `above`: only column > row.

    `band_kind` and `size` define the band; one that leaves no path between some of them must be refused before.
    """
    count, D = len(columns), values.shape[1]
    m = 0
    for k in range(count):
        m = max(m, other_offsets[columns[k] + 1] - other_offsets[columns[k]])
    b, ends, totals = np.empty((m, D, LANES)), np.empty(LANES, np.int64), np.empty(LANES)
    prev, cur = np.empty((m + 1, LANES)), np.empty((m + 1, LANES))
    cost = np.empty((m if D > 1 or band_kind != NO_BAND else 0, LANES))
    _pack(others, other_offsets, columns, count, b, ends)
    for r in range(len(rows)):
        q = rows[r]
        if above and columns[count - 1] <= q:
            continue
        a = values[offsets[q] : offsets[q + 1]]
        _lanes(a, b, ends, kind, band_kind, size, np.inf, prev, cur, cost, totals)
        for k in range(count):
            if not above or columns[k] > q:
                out[q, columns[k]] = totals[k]


# --------------------------------------------------------------- nearest neighbors


@compiled
def envelope(values, offsets, lo, hi, low, high):  # type: ignore[no-untyped-def]
    """Envelopes low, high (frames, D): minimum and maximum over frames lo[i] ≤ j < hi[i] of the same series."""
    for s in range(len(offsets) - 1):
        begin = offsets[s]
        for i in range(len(lo)):
            for d in range(values.shape[1]):
                least, most = np.inf, -np.inf
                for j in range(begin + lo[i], begin + hi[i]):
                    v = values[j, d]
                    least = v if v < least else least
                    most = v if v > most else most
                low[begin + i, d], high[begin + i, d] = least, most


@compiled
def _lb_keogh(x, low, high, kind):  # type: ignore[no-untyped-def]
    """LB_Keogh: Σ_i cost of x[i] against [low[i], high[i]]; one frame may serve all rows (Keogh 2005)."""
    total, one = 0.0, len(low) == 1
    for i in range(len(x)):
        j, part = 0 if one else i, 0.0
        for d in range(x.shape[1]):
            above, below = x[i, d] - high[j, d], low[j, d] - x[i, d]
            z = above if above > below else below
            z = z if z > 0.0 else 0.0
            part += z if kind == ABSOLUTE else z * z
        total += np.sqrt(part) if kind == EUCLIDEAN else part
    return total


@compiled
def _lb_kim(a, b, kind):  # type: ignore[no-untyped-def]
    """LB_Kim: costs of the first and of the last frames, which are on every path; one point if both have one frame."""
    first = _cost_with_missing(a[0], b[0], kind, 0.0)
    if len(a) == 1 and len(b) == 1:
        return first
    return first + _cost_with_missing(a[-1], b[-1], kind, 0.0)


@compiled
def lower_bounds(  # type: ignore[no-untyped-def]
    values, offsets, first, low, high, others, other_offsets, other_low, other_high, envelopes, kind, bounds
):
    """Lower bounds (queries, N) of the total costs between queries, from `first` on, and `others`.

    `low`, `high` are envelopes of all series: frame by frame (offsets as for the values), or one frame per series where
    `envelopes` is False.
    """
    for r in range(len(bounds)):
        q = first + r
        a = values[offsets[q] : offsets[q + 1]]
        s, e = (offsets[q], offsets[q + 1]) if envelopes else (q, q + 1)
        for c in range(bounds.shape[1]):
            y = others[other_offsets[c] : other_offsets[c + 1]]
            cs, ce = (other_offsets[c], other_offsets[c + 1]) if envelopes else (c, c + 1)
            bound = _lb_keogh(a, other_low[cs:ce], other_high[cs:ce], kind)
            bound = max(bound, _lb_keogh(y, low[s:e], high[s:e], kind), _lb_kim(a, y, kind))
            bounds[r, c] = bound * (1.0 - 1e-10)  # room for rounding of long sums


@compiled
def search(  # type: ignore[no-untyped-def]
    values, offsets, first, others, other_offsets, bounds, orders, kind, band_kind, size, leave_out, distances, which,
    n_computed,
):  # fmt: skip
    """Exact k nearest neighbors of queries, from `first` on, among `others`: total costs and indices (all queries, k).

    Nearest first; ties go to the lower index. `bounds` (queries, N) are lower bounds, `orders` sort them.
    `leave_out`: a query is not its own neighbor. `n_computed` gains the number of computed alignments.
    """
    N, D, k = len(other_offsets) - 1, values.shape[1], distances.shape[1]
    m = 0
    for c in range(N):
        m = max(m, other_offsets[c + 1] - other_offsets[c])
    b, ends, totals = np.empty((m, D, LANES)), np.empty(LANES, np.int64), np.empty(LANES)
    prev, cur, cost = np.empty((m + 1, LANES)), np.empty((m + 1, LANES)), np.empty((m, LANES))
    chosen = np.empty(LANES, np.int64)
    for row in range(len(bounds)):
        q, bound, order = first + row, bounds[row], orders[row]
        a = values[offsets[q] : offsets[q + 1]]
        best, at = distances[q], which[q]
        _fill(best, np.inf)
        _fill(at, N)
        position = 0
        while position < N:
            limit, count = best[k - 1], 0
            while position < N and count < LANES:
                c = order[position]
                if bound[c] > limit:
                    position = N
                    break
                position += 1
                if not (leave_out and c == q):
                    chosen[count] = c
                    count += 1
            if count == 0:
                break
            _pack(others, other_offsets, chosen, count, b, ends)
            _lanes(a, b, ends, kind, band_kind, size, limit, prev, cur, cost, totals)
            n_computed[0] += count
            for r in range(count):
                _insert(best, at, totals[r], chosen[r])


@compiled
def _insert(best, at, total, index):  # type: ignore[no-untyped-def]
    """Insert a neighbor into the sorted list; of equals the lower index comes first."""
    t = len(best)
    while t > 0 and (total < best[t - 1] or (total == best[t - 1] and index < at[t - 1])):
        t -= 1
    if t == len(best) or total == np.inf:
        return
    for r in range(len(best) - 1, t, -1):
        best[r], at[r] = best[r - 1], at[r - 1]
    best[t], at[t] = total, index


# ------------------------------------------------------- subsequence search


@compiled
def subsequence_costs(query, series, kind, has_missing, blank, missing_query, missing_series, totals, starts):  # type: ignore[no-untyped-def]
    """Subsequence DTW: for each frame t of a series the total cost of the best match that ends there, and its start.

    Two columns of the grid are in memory, for any length of the series.
    """
    n = len(query)
    prev, cur, cost = np.empty(n + 1), np.empty(n + 1), np.empty(n)
    _fill(prev, np.inf)
    _fill(cur, np.inf)
    prev_from, cur_from = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for t in range(len(series)):
        _cost_row(series[t], query, kind, has_missing, blank, 0, n, cost)
        for i in range(n):
            if i == 0 and not (has_missing and missing_series[t]):
                cur[1], cur_from[1] = cost[0], t
                continue
            if i == 0:  # no match begins on a missing frame
                cur[1], cur_from[1] = np.inf if missing_query[0] else prev[1], prev_from[1]
                continue
            best, begin = prev[i], prev_from[i]
            stay = np.inf if has_missing and missing_query[i] else prev[i + 1]
            up = np.inf if has_missing and missing_series[t] else cur[i]
            if stay < best:
                best, begin = stay, prev_from[i + 1]
            if up < best:
                best, begin = up, cur_from[i]
            cur[i + 1], cur_from[i + 1] = cost[i] + best, begin
        totals[t], starts[t] = cur[n], cur_from[n]
        prev, cur = cur, prev
        prev_from, cur_from = cur_from, prev_from


@compiled_for_size
def non_overlapping(order, starts, stops, k, found):  # type: ignore[no-untyped-def]
    """The first k matches of `order` that do not overlap, into found (k,); returns how many.

    Last frames of accepted matches are counted in a Fenwick tree (1994): a match does not overlap if it contains none
    of them, and its own last frame is not inside another match.
    """
    n = len(starts)
    inside, tree = np.zeros(n, np.bool_), np.zeros(n + 1, np.int64)
    count = 0
    for c in order:
        begin, last = starts[c], stops[c] - 1
        if inside[last] or _sum_to(tree, last + 1) > _sum_to(tree, begin):
            continue
        found[count] = c
        count += 1
        if count == k:
            break
        for t in range(begin, last + 1):
            inside[t] = True
        at = last + 1
        while at <= n:
            tree[at] += 1
            at += at & -at
    return count


@compiled
def _sum_to(tree, at):  # type: ignore[no-untyped-def]
    total = 0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


# --------------------------------------------------------------------- averaging


@compiled_for_size
def add_along(path, step_weight, x, scale, total, weight):  # type: ignore[no-untyped-def]
    """DBA step: add frames of x to the frames of the barycenter that they are matched with: total, weight (T, D).

    Points count by the weight of their step, `step_weight`. A frame with missing entries counts D / n_observed times in
    the cost, and likewise here; `scale` is the weight of the series.
    """
    D = x.shape[1]
    for p in range(len(path)):
        i, j = path[p, 0], path[p, 1]
        n_observed = 0
        for d in range(D):
            n_observed += 1 if x[j, d] == x[j, d] else 0
        if n_observed == 0 or step_weight[p] == 0.0:
            continue
        w = scale * step_weight[p] * D / n_observed
        for d in range(D):
            if x[j, d] == x[j, d]:
                total[i, d] += w * x[j, d]
                weight[i, d] += w
