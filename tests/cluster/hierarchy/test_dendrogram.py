"""A tree is cut where one asks, in SciPy's sense, and refuses merges that form none."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.cluster import hierarchy as scipy_hierarchy

from likely.cluster.hierarchy.dendrogram import Dendrogram
from likely.cluster.hierarchy.linkage import linkage
from likely.core.errors import DataError, DomainError, ShapeError


def same(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(np.unique(a)) == len(np.unique(b))


@pytest.mark.parametrize("link", ["ward", "single", "average", "centroid", "median"])
def test_cuts_are_those_of_scipy(rng, link):
    tree = linkage(rng.normal(size=(80, 2)), link)
    for height in np.quantile(tree.heights, [0.0, 0.3, 0.8, 1.0]):
        assert same(tree.cut(height=height), scipy_hierarchy.fcluster(tree.linkage, height, "distance"))
    if not tree.inversions:
        for k in (1, 2, 7, 80):
            assert same(tree.cut(k), scipy_hierarchy.fcluster(tree.linkage, k, "maxclust"))


def test_every_k_has_k_clusters_numbered_by_their_first_rows(rng):
    tree = linkage(rng.normal(size=(40, 2)), "centroid")
    for k in range(1, 41):
        label = tree.cut(k)
        first = [int(np.argmax(label == c)) for c in range(k)]
        assert len(np.unique(label)) == k and first == sorted(first)


def test_inversions_are_counted(rng):
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.88]])  # the third is nearer to the middle than the first two are
    tree = linkage(x, "centroid")
    assert tree.inversions == 1 and "1 inversions" in repr(tree)
    assert len(np.unique(tree.cut(height=0.95))) == 3 and len(np.unique(tree.cut(height=1.0))) == 1
    assert linkage(x, "average").inversions == 0


def test_branches_do_not_cross_in_the_order(rng):
    tree = linkage(rng.normal(size=(50, 3)), "average")
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(50))
    for k in range(1, 51):
        label = tree.cut(k)[tree.order]
        assert (np.diff(label) != 0).sum() == k - 1


def test_scipy_takes_the_table(rng):
    tree = linkage(rng.normal(size=(50, 3)), weight=rng.integers(1, 9, 50))
    assert scipy_hierarchy.is_valid_linkage(tree.linkage)
    assert tree.linkage[-1, 3] == 50 and tree.counts[-1] == tree.weight.sum()


def test_a_tree_never_changes_and_survives_copies(rng):
    tree = linkage(rng.normal(size=(9, 2)))
    for twin in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        np.testing.assert_array_equal(twin.linkage, tree.linkage)
        assert not twin.heights.flags.writeable and twin.method == "ward"


@pytest.mark.parametrize(
    "merges, heights, weight, error",
    [
        ([[0, 1], [0, 2]], [1.0, 2.0], np.ones(3), DomainError),
        ([[0, 3], [1, 2]], [1.0, 2.0], np.ones(3), DomainError),
        ([[0, -1], [1, 2]], [1.0, 2.0], np.ones(3), DomainError),
        ([[0, 1]], [1.0, 2.0], np.ones(2), ShapeError),
        ([[0, 1]], [1.0], np.ones(3), ShapeError),
        ([[0, 1]], [1.0], [1.0, 0.0], DomainError),
        ([[0, 1]], [np.nan], np.ones(2), DomainError),
    ],
)
def test_what_is_no_tree_is_refused(merges, heights, weight, error):
    with pytest.raises(error, match="Dendrogram"):
        Dendrogram(merges, heights, weight)


@pytest.mark.parametrize("how", [{}, {"k": 0}, {"k": 4}, {"k": 1.5}, {"k": True}, {"k": 2, "height": 1.0}])
def test_cuts_that_make_no_sense(how):
    with pytest.raises(DomainError, match="cut"):
        linkage([[0.0], [1.0], [3.0]]).cut(**how)


def test_other_cuts_that_make_no_sense():
    tree = linkage([[0.0], [1.0], [3.0]])
    for how in ({"height": np.nan}, {"height": "low"}, {"criterion": "eye"}):
        with pytest.raises(DomainError, match="cut"):
            tree.cut(**how)
    with pytest.raises(DataError, match="needs the rows X"):
        tree.cut(criterion="likelihood")
