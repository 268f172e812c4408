"""The loops of neighbors: a tree holds every point once, in boxes that hold them; each compiled for one signature."""

from __future__ import annotations

import numpy as np
import pytest

from likely.neighbors._loops import kd_tree as loops
from likely.neighbors.nearest_neighbors import NeighborSearch, _Tree

LOOPS = (loops.grow, loops.fill, loops.search, loops.settle, loops.search_with_gaps)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 511, 512, 513, 5000])
@pytest.mark.parametrize("d", [1, 4])
def test_every_point_stands_once_in_a_box_that_holds_it(n, d):
    x = np.random.default_rng(n).normal(size=(n, d)).round(1)
    tree = _Tree(x)
    there = tree.numbers >= 0
    np.testing.assert_array_equal(np.sort(tree.numbers[there]), np.arange(n))
    np.testing.assert_array_equal(tree.blocks.transpose(0, 2, 1)[there], x[tree.numbers[there]])
    last = tree.firsts[-2]
    for leaf in range(tree.leaves):
        box = tree.boxes[last + leaf // loops.FAN, :, :, leaf % loops.FAN]
        points = x[tree.numbers[leaf][there[leaf]]]
        np.testing.assert_array_equal(box, [points.min(axis=0), points.max(axis=0)])
    root = tree.boxes[0]
    known = np.isfinite(root[0, 0])
    np.testing.assert_array_equal(root[0][:, known].min(axis=1), x.min(axis=0))
    np.testing.assert_array_equal(root[1][:, known].max(axis=1), x.max(axis=0))


def test_a_tree_looks_at_few_leaves_in_few_dimensions():
    x = np.random.default_rng(0).random((20_000, 2))
    tree, k = _Tree(x), 5
    away, rows = np.empty((500, k)), np.empty((500, k), dtype=np.int64)
    looked = tree.search(x[:500].copy(), np.arange(500), np.full(500, -1), loops.SQUARED, 2.0, away, rows)
    assert looked / 500 < 5  # of 313
    np.testing.assert_array_equal(rows[:, 0], np.arange(500))


def test_equal_points_cost_no_endless_division():
    found = NeighborSearch.of(np.zeros((1000, 2))).nearest(np.zeros((3, 2)), 4)
    np.testing.assert_array_equal(found[1], [[0, 1, 2, 3]] * 3)


@pytest.mark.slow
def test_each_loop_is_compiled_once():
    x = np.random.default_rng(0).normal(size=(300, 40))
    gaps = np.where(np.random.default_rng(1).random(x.shape) < 0.1, np.nan, x)
    for metric in ("l1", "l2", "linf", "lp", "scaled", "correlation"):
        NeighborSearch.of(x, metric, p=3.0).nearest(x, 3)
        NeighborSearch.of(x.astype(np.float32), metric, p=3.0).nearest_others(3, [0, 5])
    NeighborSearch.of(gaps).nearest(gaps, 3)
    NeighborSearch.of(x).nearest(gaps, 3)
    if hasattr(loops.search, "signatures"):
        assert {f.__name__: len(f.dispatcher.signatures) for f in LOOPS} == {f.__name__: 1 for f in LOOPS}
