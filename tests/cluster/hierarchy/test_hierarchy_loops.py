"""The loops of merging against dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from likely.cluster.hierarchy import _loops as loops

JOINS = {loops.ADD: np.add, loops.MEAN: lambda a, b: (a + b) / 2, loops.LARGER: np.maximum, loops.SMALLER: np.minimum}


def joined(how, matrix, first, second):
    """Columns, then rows, joined with their partners."""
    for _ in range(2):
        other = np.where((second >= 0)[:, None], matrix[second], matrix[first])
        merged = np.where((second >= 0)[:, None], JOINS[how](matrix[first], other), matrix[first])
        matrix = merged.T
    np.fill_diagonal(matrix, np.inf)
    return matrix


@pytest.mark.parametrize("d", [1, 3, 4, 7, 9])
@pytest.mark.parametrize("ward", [False, True])
def test_nearest_points(rng, d, ward):
    x, w = rng.normal(size=(1100 if d == 3 else 60, d)), rng.random(1100)[: 1100 if d == 3 else 60] + 0.5
    m = len(x)
    apart = cdist(x, x, "sqeuclidean") * (w[:, None] * w / (w[:, None] + w) if ward else 1.0)
    np.fill_diagonal(apart, np.inf)
    todo = np.arange(0, m, 7)
    nearest, height = np.full(m, -5), np.full(m, -5.0)
    loops.nearest_points(np.ascontiguousarray(x.T), 1 / w, ward, todo, nearest, height)
    np.testing.assert_array_equal(nearest[todo], apart.argmin(axis=1)[todo])
    np.testing.assert_allclose(height[todo], apart.min(axis=1)[todo], rtol=1e-12)
    assert (np.delete(nearest, todo) == -5).all()


def test_ties_go_to_the_smallest_xor():
    nearest, height = np.zeros(8, dtype=np.int64), np.zeros(8)
    loops.nearest_points(np.arange(8.0)[None], np.ones(8), False, np.arange(8), nearest, height)
    np.testing.assert_array_equal(nearest, np.arange(8) ^ 1)
    equal = np.full((8, 8), 2.0)
    np.fill_diagonal(equal, np.inf)
    loops.nearest_entries(equal, np.ones(8), np.arange(8), nearest, height)
    np.testing.assert_array_equal(nearest, np.arange(8) ^ 1)


@pytest.mark.parametrize("how", JOINS)
def test_fill_and_fold(rng, how):
    x, factor = rng.normal(size=(30, 3)), rng.random(30)
    second = np.full(30, -1)
    second[[0, 3, 11]] = [9, 4, 29]
    kept = np.setdiff1d(np.arange(30), [9, 4, 29])
    second, merged = second[kept], np.flatnonzero(second[kept] >= 0)
    matrix = cdist(x, x) * np.outer(factor, factor)
    wanted = joined(how, matrix, kept, second)
    out = np.empty((27, 27))
    for part in ((0, 11), (11, 27)):
        loops.fill(np.ascontiguousarray(x.T), factor, how, kept, merged, second, *part, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-12)
    for part in ((0, 13), (13, 30)):
        loops.fold_columns(matrix, 30, how, kept, merged, second, *part)
    for part in ((0, 5), (5, 27)):
        loops.fold_rows(matrix, how, kept, second, *part)
    np.testing.assert_allclose(matrix[:27, :27], wanted, rtol=1e-12)


@pytest.mark.parametrize("how", JOINS)
def test_a_few_merges_in_place(rng, how):
    apart = rng.random((12, 12))
    apart += apart.T
    np.fill_diagonal(apart, np.inf)
    second = np.full(12, -1)
    second[[1, 5]] = [7, 6]
    kept = np.setdiff1d(np.arange(12), [6, 7])
    wanted = joined(how, apart, kept, second[kept])
    loops.join_few(apart, 12, how, np.array([1, 5]), np.array([7, 6]))
    np.testing.assert_allclose(apart[np.ix_(kept, kept)], wanted, rtol=1e-14)
    assert np.isinf(apart[[6, 7]]).all() and np.isinf(apart[:, [6, 7]]).all()


def test_nearest_entries_share(rng):
    matrix, share = rng.random((20, 20)), rng.random(20)
    np.fill_diagonal(matrix, np.inf)
    nearest, height = np.zeros(20, dtype=np.int64), np.zeros(20)
    loops.nearest_entries(matrix, share, np.arange(20), nearest, height)
    scaled = matrix * share * share[:, None]
    np.testing.assert_array_equal(nearest, scaled.argmin(axis=1))
    np.testing.assert_allclose(height, scaled.min(axis=1))


def test_shortest_trees_are_as_short_as_scipys(rng):
    x = rng.normal(size=(50, 3))
    apart = cdist(x, x)
    wanted = np.sort(minimum_spanning_tree(apart).data)
    one, other, square = np.empty(49, dtype=np.int64), np.empty(49, dtype=np.int64), np.empty(49)
    loops.shortest_tree(np.array(x.T, order="C"), one, other, square)
    np.testing.assert_allclose(np.sort(np.sqrt(square)), wanted)
    np.testing.assert_allclose(apart[one, other], np.sqrt(square))
    loops.shortest_tree_of_matrix(apart, one, other, square)
    np.testing.assert_allclose(np.sort(square), wanted)
    np.testing.assert_allclose(apart[one, other], square)


def test_edges_become_merges():
    merges = np.empty((3, 2), dtype=np.int64)
    loops.trees_of_edges(np.array([0, 2, 1]), np.array([1, 3, 3]), merges)
    assert merges.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_distances_over_missing_values(rng):
    x = rng.normal(size=(30, 5))
    x[rng.random(x.shape) < 0.5] = np.nan
    out = np.empty((30, 30))
    loops.seen_distances(x, 2, 0, 30, out)
    wanted = pairwise_distances(x, metric="nan_euclidean")
    np.fill_diagonal(wanted, 0.0)
    np.testing.assert_allclose(out, wanted)


@pytest.mark.parametrize("full", [True, False])
def test_losses_of_likelihood(rng, full):
    groups = [rng.normal(size=(n, 3)) for n in (1, 4, 9, 2)]
    w, mean = np.array([float(len(g)) for g in groups]), np.stack([g.mean(axis=0) for g in groups])

    def scatter(g):
        s = (g - g.mean(axis=0)).T @ (g - g.mean(axis=0))
        return s if full else np.diag(s)

    def cost(g):
        s = scatter(g) / len(g)
        return 0.5 * len(g) * (np.linalg.slogdet(s + np.eye(3))[1] if full else np.log1p(s).sum())

    costs, out = np.array([cost(g) for g in groups]), np.empty(4)
    alive = np.array([True, True, True, False])
    scatters = np.stack([scatter(g) for g in groups])
    if full:
        losses, exact = np.empty((4, 4)), np.empty((4, 4), dtype=bool)
        top = np.linalg.eigvalsh(scatters)[:, -1]
        top[0] = 0.0
        loops.bound_losses(w, mean, top, alive, 0, 4, losses, exact)
        bounds = losses[1].copy()
        loops.refine_losses(w, mean, scatters, costs, top, 1, np.full(4, np.inf), losses, exact)
        assert exact[1].all() and (bounds[[0, 2]] < losses[1, [0, 2]]).all()
        np.testing.assert_array_equal(losses[1], losses[:, 1])
        out = losses[1]
    else:
        loops.diagonal_losses(w, mean, scatters, costs, alive, 1, out)
    wanted = [cost(np.concatenate([groups[1], groups[j]])) - costs[1] - costs[j] for j in (0, 2)]
    np.testing.assert_allclose(out[[0, 2]], wanted, rtol=1e-12)
    assert np.isinf(out[[1, 3]]).all()


def test_bounds_of_losses_are_below_and_only_what_matters_is_made_exact(rng):
    """Random clusters of one to twelve rows: bounds hold, and the least of a row is that of all determinants."""
    groups = [rng.normal(rng.normal(size=4), 1.0, (n, 4)) for n in rng.integers(1, 13, 40)]
    w, mean = np.array([float(len(g)) for g in groups]), np.stack([g.mean(axis=0) for g in groups])
    scatters = np.stack([(g - m).T @ (g - m) for g, m in zip(groups, mean, strict=True)])
    spectra = np.maximum(np.linalg.eigvalsh(scatters), 0.0) * (w > 1)[:, None]
    costs, top = 0.5 * w * np.log1p(spectra / w[:, None]).sum(axis=1), spectra[:, -1]
    bounds, sure = np.empty((40, 40)), np.empty((40, 40), dtype=bool)
    loops.bound_losses(w, mean, top, np.ones(40, dtype=bool), 0, 40, bounds, sure)
    np.testing.assert_array_equal(sure, np.equal.outer(w, w) & (w == 1) | np.eye(40, dtype=bool))
    full, every = bounds.copy(), sure.copy()
    some, known = bounds.copy(), sure.copy()
    for i in range(40):
        args = w, mean, scatters, costs, top, i
        loops.refine_losses(*args, np.full(40, np.inf), full, every)
        loops.refine_losses(*args, np.full(40, -np.inf), some, known)
    assert every.all() and known.mean() < 0.5
    assert (bounds <= full * (1 + 1e-9)).all()
    np.testing.assert_allclose(some.min(axis=1), full.min(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(some.argmin(axis=1), full.argmin(axis=1))
