"""The picture of a tree shows its merges at their heights, and folds what would not be readable."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from likely.cluster.hierarchy.linkage import linkage
from likely.core.errors import DomainError, ShapeError
from likely.plots.dendrogram_plot import BRANCHES, plot_dendrogram


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def bars(ax):
    """Heights of the horizontal bars."""
    return sorted({round(float(s[1][1]), 9) for s in ax.collections[0].get_segments() if len(s) == 4})


def words(ax):
    return [t.get_text() for t in ax.get_xticklabels()]


def test_every_merge_is_a_bar_at_its_height(rng):
    tree = linkage(rng.normal(size=(20, 2)), "average")
    ax = plot_dendrogram(tree, labels=[f"row {i}" for i in range(20)])
    np.testing.assert_allclose(bars(ax), tree.heights, atol=1e-8)
    assert words(ax) == [f"row {i}" for i in tree.order]
    assert ax.get_ylabel() == "height (average)" and ax.get_title(loc="left") == "20 rows"
    assert not len(ax.collections[1].get_paths())


def test_a_large_tree_is_folded_and_no_row_is_lost(rng):
    tree = linkage(rng.normal(size=(3000, 2)))
    ax = plot_dendrogram(tree, max_branches=30)
    np.testing.assert_allclose(bars(ax), tree.heights[-29:], atol=1e-8)
    counts = [int(w.removesuffix(" rows").replace(",", "")) for w in words(ax) if w.endswith(" rows")]
    assert sum(counts) + sum(not w.endswith(" rows") for w in words(ax)) == 3000 and len(words(ax)) == 30


@pytest.mark.parametrize("cut, k", [(3, 3), (5.0, None)])
def test_a_cut_colors_clusters_and_draws_a_line_between(rng, cut, k):
    x = rng.normal(size=(60, 2)) + 10 * rng.integers(0, 3, (60, 1))
    tree = linkage(x)
    ax = plot_dendrogram(tree, cut=cut)
    k = k or int(tree.cut(height=cut).max()) + 1
    assert ax.get_title(loc="left") == f"60 rows, {k} clusters"
    line = ax.lines[0].get_ydata()[0]
    assert tree.heights[60 - k - 1] <= line <= tree.heights[60 - k]
    colors = {tuple(c) for c in ax.collections[0].get_colors().tolist()}
    assert len(colors) == min(k, 6) + 1


def test_on_given_axes(rng):
    _, ax = plt.subplots()
    assert plot_dendrogram(linkage(rng.normal(size=(5, 2))), ax) is ax


def test_inversions_are_said():
    tree = linkage([[0.0, 0.0], [1.0, 0.0], [0.5, 0.88]], "centroid")
    assert "1 inversions" in plot_dendrogram(tree, cut=2).get_title(loc="left")


@pytest.mark.parametrize("n", [1, 2])
def test_small_trees(n):
    ax = plot_dendrogram(linkage(np.arange(float(n))[:, None]), cut=1)
    ax.figure.canvas.draw()
    assert len(words(ax)) == n


def test_more_clusters_than_can_be_seen(rng):
    ax = plot_dendrogram(linkage(rng.normal(size=(500, 2))), cut=300)
    assert len(words(ax)) == BRANCHES


def test_errors(rng):
    tree = linkage(rng.normal(size=(5, 2)))
    with pytest.raises(ShapeError, match="labels must name each row"):
        plot_dendrogram(tree, labels=["a"])
    for cut in (0, 6, True):
        with pytest.raises(DomainError, match="cut"):
            plot_dendrogram(tree, cut=cut)
