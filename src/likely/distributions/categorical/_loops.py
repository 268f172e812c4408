"""Expected pair counts on a tree given the observed entries: the downward pass of belief propagation."""

from __future__ import annotations

import numpy as np

from likely.numerics.compile import compiled_for_size


@compiled_for_size
def add_expected_pairs(order, parent, tables, belief, weight, start, out):  # type: ignore[no-untyped-def]
    """Add Σ w p(xᵢ = a, xⱼ = b | observed) to `out` (W, W), once for each pair; on the diagonal p(xⱼ = b | observed).

    `order` (d,) visits parents first; belief (n, d, L) is the upward message: the probability of the observed entries
    at and below a column, up to a scale; start (d + 1,) is the first level of each column. A column depends on all
    earlier ones through its parent: p(xᵢ, xⱼ) = Σ_c p(xᵢ, parent = c) p(xⱼ | c), given the observed entries.
    """
    n, d, L = belief.shape
    own, cond = np.zeros((d, L)), np.zeros((L, L))
    joint = np.zeros((d, d, L, L))
    for row in range(n):
        for place in range(d):
            j = order[place]
            above, size = parent[j], start[j + 1] - start[j]
            high = 1 if above < 0 else start[above + 1] - start[above]
            for c in range(high):
                total = 0.0
                for b in range(size):
                    cond[c, b] = tables[j, c, b] * belief[row, j, b]
                    total += cond[c, b]
                for b in range(size):
                    cond[c, b] = cond[c, b] / total if total > 0.0 else 0.0
            for b in range(size):
                own[j, b] = cond[0, b]
                if above >= 0:
                    own[j, b] = 0.0
                    for c in range(high):
                        own[j, b] += own[above, c] * cond[c, b]
                out[start[j] + b, start[j] + b] += weight[row] * own[j, b]
            for before in range(place):
                i = order[before]
                for a in range(start[i + 1] - start[i]):
                    for b in range(size):
                        p = 0.0
                        if own[i, a] > 0.0 and belief[row, j, b] > 0.0:
                            if above < 0:
                                p = own[i, a] * own[j, b]
                            elif i == above:
                                p = own[i, a] * cond[a, b]
                            else:
                                for c in range(high):
                                    p += joint[i, above, a, c] * cond[c, b]
                        joint[i, j, a, b] = p
                        joint[j, i, b, a] = p
                        out[start[i] + a, start[j] + b] += weight[row] * p
