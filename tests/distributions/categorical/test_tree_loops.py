"""The compiled expected pair counts on a tree against enumeration."""

from __future__ import annotations

import itertools

import numpy as np

from likely.distributions.categorical._loops import add_expected_pairs


def test_pairs_of_a_small_tree():
    rng = np.random.default_rng(0)
    order, parent = np.array([1, 0, 2, 3]), np.array([1, -1, 1, 0])
    sizes = [2, 3, 2, 2]
    start = np.concatenate([[0], np.cumsum(sizes)])
    tables = np.zeros((4, 3, 3))
    for j, m in enumerate(sizes):
        tables[j, :, :m] = rng.dirichlet(np.ones(m), 3)
    tables[1] = tables[1, 0]
    out, want = np.zeros((9, 9)), np.zeros((9, 9))
    belief = np.zeros((1, 4, 3))
    for j, m in enumerate(sizes):
        belief[0, j, :m] = 1.0  # nothing was seen
    add_expected_pairs(order, parent, tables, belief, np.array([2.0]), start, out)
    for x in itertools.product(*map(range, sizes)):
        p = np.prod([tables[j, x[parent[j]] if parent[j] >= 0 else 0, x[j]] for j in range(4)])
        at = start[:-1] + x
        want[np.ix_(at, at)] += 2.0 * p
    assert np.allclose(out + out.T - np.diag(np.diagonal(out)), want, atol=1e-13)
