"""Merging by any link is merging the closest pair by its definition, again and again."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.cluster import hierarchy as scipy_hierarchy
from scipy.spatial.distance import cdist, pdist, squareform

from likely.cluster.hierarchy import linkage as hierarchy
from likely.cluster.hierarchy import reciprocal_neighbors
from likely.cluster.hierarchy.linkage import linkage
from likely.cluster.hierarchy.linkage_criteria import LINKS
from likely.core import memory
from likely.core.errors import DataError, DomainError, FitWarning, ShapeError
from likely.distributions.gaussian.missing_values_em import em_moments, gaussian_of

SCIPY = ["single", "complete", "average", "weighted", "centroid", "median", "ward"]
DISTANCES = ["single", "complete", "average", "weighted", "sum"]


def cost(x):
    """n/2 log det(S/n + 1) of one cluster."""
    away = x - x.mean(axis=0)
    return 0.5 * len(x) * np.linalg.slogdet(away.T @ away / len(x) + np.eye(x.shape[1]))[1]


BY_DEFINITION = {
    "single": lambda a, b: cdist(a, b).min(),
    "complete": lambda a, b: cdist(a, b).max(),
    "average": lambda a, b: cdist(a, b).mean(),
    "sum": lambda a, b: cdist(a, b).sum(),
    "centroid": lambda a, b: np.linalg.norm(a.mean(axis=0) - b.mean(axis=0)),
    "coordinate-median": lambda a, b: np.linalg.norm(np.median(a, axis=0) - np.median(b, axis=0)),
    "ward": lambda a, b: np.sqrt(2 * len(a) * len(b) / (len(a) + len(b))) * np.linalg.norm(a.mean(0) - b.mean(0)),
    "likelihood": lambda a, b: cost(np.concatenate([a, b])) - cost(a) - cost(b),
}


def closest_first(x, between):
    """Heights and clusters of merging the closest pair, tried over all pairs each time."""
    clusters, heights, steps = [[i] for i in range(len(x))], [], []
    while len(clusters) > 1:
        pairs = [(i, j) for i in range(len(clusters)) for j in range(i)]
        tried = [between(x[clusters[i]], x[clusters[j]]) for i, j in pairs]
        i, j = pairs[int(np.argmin(tried))]
        heights.append(min(tried))
        clusters = [c for k, c in enumerate(clusters) if k not in (i, j)] + [clusters[i] + clusters[j]]
        steps.append(frozenset(map(frozenset, clusters)))
    return np.array(heights), steps


def partition(labels):
    return frozenset(frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels))


@pytest.mark.parametrize("link", BY_DEFINITION)
def test_equals_its_definition_over_all_pairs(rng, link):
    x = rng.normal(size=(24, 2)) + rng.integers(0, 3, (24, 1)) * 3.0
    tree = linkage(x, link)
    z = hierarchy._whitened_within(hierarchy._in_range(x)[0], np.ones(24), "full") if link == "likelihood" else x
    heights, steps = closest_first(z, BY_DEFINITION[link])
    np.testing.assert_allclose(tree.heights, heights, rtol=1e-9, atol=1e-12)
    assert [partition(tree.cut(k)) for k in range(23, 0, -1)] == steps


@pytest.mark.parametrize("link", SCIPY)
@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (200, 3), (150, 9)])
def test_equals_scipy(rng, link, shape):
    x = rng.normal(size=shape)
    np.testing.assert_allclose(linkage(x, link).linkage, scipy_hierarchy.linkage(x, link), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("link", SCIPY)
def test_equals_scipy_in_threads(rng, link, monkeypatch):
    monkeypatch.setattr(reciprocal_neighbors, "LONG", 0)
    monkeypatch.setattr(reciprocal_neighbors, "cores", lambda: 3)
    x = rng.normal(size=(97, 3))
    np.testing.assert_allclose(linkage(x, link).linkage, scipy_hierarchy.linkage(x, link), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("link", ["single", "complete", "average", "weighted"])
@pytest.mark.parametrize("metric", ["cityblock", "chebyshev", "cosine", "sqeuclidean"])
def test_other_metrics_equal_scipy(rng, link, metric):
    x = rng.normal(size=(60, 4))
    found, wanted = linkage(x, link, metric=metric), scipy_hierarchy.linkage(x, link, metric)
    np.testing.assert_allclose(found.linkage, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("link", DISTANCES)
def test_precomputed_distances_give_the_tree_of_the_rows(rng, link):
    x, w = rng.normal(size=(60, 4)), rng.integers(1, 4, 60)
    apart = squareform(pdist(x))
    before = apart.copy()
    found, wanted = linkage(apart, link, metric="precomputed", weight=w), linkage(x, link, weight=w)
    np.testing.assert_allclose(found.linkage, wanted.linkage, rtol=1e-10)
    np.testing.assert_array_equal(apart, before)


@pytest.mark.parametrize("link, covariance", [*((link, "full") for link in LINKS), ("likelihood", "diagonal")])
def test_a_weight_is_so_many_copies_merged_at_height_0(rng, link, covariance):
    x, w = rng.normal(size=(30, 3)), rng.integers(1, 5, 30)
    weighted = linkage(x, link, weight=w, covariance=covariance)
    copied = linkage(np.repeat(x, w, axis=0), link, covariance=covariance)
    extra = int(w.sum()) - 30
    np.testing.assert_allclose(copied.heights[extra:], weighted.heights, rtol=1e-9, atol=1e-12)
    assert not copied.heights[:extra].any()
    np.testing.assert_allclose(copied.counts[extra:], weighted.counts)
    assert partition(copied.cut(4)) == partition(np.repeat(weighted.cut(4), w))


@pytest.mark.parametrize("link", DISTANCES)
def test_fractions_of_weights_count(rng, link):
    x, w = rng.normal(size=(25, 2)), rng.integers(1, 5, 25)
    scale = {"sum": 1 / 64}.get(link, 1.0)
    np.testing.assert_allclose(
        linkage(x, link, weight=w / 8).heights, scale * linkage(x, link, weight=w).heights, rtol=1e-12
    )


def test_ward_adds_half_its_squared_height_to_the_squared_error(rng):
    x = rng.normal(size=(40, 3))
    tree = linkage(x)

    def error(k):
        label = tree.cut(k)
        return sum(((x[label == c] - x[label == c].mean(axis=0)) ** 2).sum() for c in range(k))

    errors = np.array([error(k) for k in range(40, 0, -1)])
    np.testing.assert_allclose(np.diff(errors), tree.heights**2 / 2, rtol=1e-9)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("d", [1, 2])
def test_rows_are_left_as_they_were(rng, link, d):
    x = rng.normal(size=(20, d))
    before = x.copy()
    first = linkage(x, link)
    np.testing.assert_array_equal(x, before)
    x.setflags(write=False)
    np.testing.assert_array_equal(linkage(x, link).linkage, first.linkage)


def test_likelihood_of_one_column_by_definition(rng):
    x = rng.normal(size=(20, 1)) + rng.integers(0, 3, (20, 1)) * 3.0
    z = hierarchy._whitened_within(hierarchy._in_range(x)[0], np.ones(20), "full")
    np.testing.assert_allclose(linkage(x, "likelihood").heights, closest_first(z, BY_DEFINITION["likelihood"])[0])
    np.testing.assert_allclose(np.corrcoef(x[:, 0], z[:, 0])[0, 1], 1.0)


def test_likelihood_merges_never_gain(rng):
    x = np.concatenate([rng.normal(0, s, (80, 3)) for s in (0.1, 1, 5)])
    assert (linkage(x, "likelihood").heights >= 0).all()


def test_likelihood_knows_shapes_that_distances_do_not(rng):
    """Two long parallel clouds: Ward cuts across, the likelihood along."""
    x = rng.normal(size=(200, 2)) * [8.0, 0.15] + np.repeat([[0.0, 0.0], [0.0, 2.5]], 100, axis=0)
    label = linkage(x, "likelihood").cut(2)
    assert partition(label) == partition(np.repeat([0, 1], 100))
    assert partition(linkage(x).cut(2)) != partition(label)


def test_large_likelihood_trees_begin_as_ward_and_say_so(rng, monkeypatch):
    x = rng.normal(size=(120, 2)) + rng.integers(0, 3, (120, 1)) * 20.0
    exact = linkage(x, "likelihood")
    monkeypatch.setitem(hierarchy.MOST, "full", 60)
    with pytest.warns(FitWarning, match="first 60 merges are Ward's"):
        tree = linkage(x, "likelihood")
    assert partition(tree.cut(3)) == partition(exact.cut(3))
    assert tree.heights.sum() == pytest.approx(exact.heights.sum(), rel=1e-9)  # all lead from rows to one cluster


def test_likelihood_of_many_columns_begins_with_fewer_clusters(rng, monkeypatch):
    assert hierarchy._most("full", 5) == 2_000
    assert hierarchy._most("full", 20) ** 2 * 20**3 <= hierarchy.DETERMINANTS < 1_200**2 * 20**3
    assert hierarchy._most("diagonal", 500) == 5_000
    monkeypatch.setattr(hierarchy, "DETERMINANTS", 50**2 * 4**3)
    x = rng.normal(size=(90, 4)) + 30.0 * rng.integers(0, 2, (90, 1))
    with pytest.warns(FitWarning, match="first 40 merges are Ward's"):
        tree = linkage(x, "likelihood")
    assert partition(tree.cut(2)) == partition(x[:, 0] > 15)


@pytest.mark.slow
def test_likelihood_of_two_thousand_rows_of_twenty_columns_takes_seconds(rng):
    x = rng.normal(size=(2_000, 20))
    linkage(x[:30], "likelihood")
    start = time.process_time()
    with pytest.warns(FitWarning, match="Ward"):
        linkage(x, "likelihood")
    assert time.process_time() - start < 12.0


@pytest.mark.parametrize("link", ["average", "single", "complete"])
def test_rows_without_any_entry_are_refused_by_number(rng, link):
    x = rng.normal(size=(9, 2))
    x[[2, 5]] = np.nan
    with pytest.raises(DataError, match="nothing but NaN in rows 2 and 5: drop these rows"):
        linkage(x, link)


# ------------------------------------------------------------------------ odd data


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(link, n):
    x = np.arange(2.0 * n).reshape(n, 2) ** 2
    tree = linkage(x, link)
    assert len(tree) == n and tree.merges.shape == (n - 1, 2)
    assert tree.cut(n).tolist() == list(range(n)) and tree.order.shape == (n,)


@pytest.mark.parametrize("link", LINKS)
def test_equal_rows_merge_at_height_0(link):
    tree = linkage(np.ones((7, 2)), link)
    assert not tree.heights.any() and len(np.unique(tree.cut(1))) == 1


@pytest.mark.parametrize("link", LINKS)
def test_a_grid_full_of_ties_gives_a_tree(link):
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    tree = linkage(grid, link)
    type(tree)(tree.merges, tree.heights, tree.weight)  # the constructor checks that it is one
    assert np.isfinite(tree.heights).all()
    if link == "single":
        np.testing.assert_allclose(tree.heights, 1.0)


@pytest.mark.parametrize("link", DISTANCES)
def test_distances_that_are_all_the_same_take_few_rounds(link, monkeypatch):
    calls = []
    look = reciprocal_neighbors._look_at_matrix
    monkeypatch.setattr(reciprocal_neighbors, "_look_at_matrix", lambda *a: (calls.append(1), look(*a))[1])
    tree = linkage(1.0 - np.eye(256), link, metric="precomputed")
    assert len(calls) <= 8 and len(tree) == 256


@pytest.mark.parametrize("link", ["ward", "average", "complete", "sum"])
def test_a_line_of_growing_gaps_merges_one_at_a_time(link):
    x = (1.1 ** np.arange(120.0))[:, None]
    wanted = closest_first(x[:30], BY_DEFINITION[link])[0]
    np.testing.assert_allclose(linkage(x[:30], link).heights, wanted, rtol=1e-10)
    assert (np.diff(linkage(x, link).heights) >= 0).all()


@pytest.mark.parametrize("link", [k for k in LINKS if k != "likelihood"])
@pytest.mark.parametrize("offset, scale", [(1e8, 1.0), (0.0, 1e-200), (0.0, 1e200)])
def test_offsets_and_units_do_not_matter(rng, link, offset, scale):
    x = np.round(rng.normal(size=(50, 3)) * 2**10) / 2**10
    plain, moved = linkage(x, link), linkage((x + offset) * scale, link)
    np.testing.assert_array_equal(moved.merges, plain.merges)
    np.testing.assert_allclose(moved.heights / scale, plain.heights, rtol=1e-7)


def test_the_full_likelihood_is_the_same_in_all_linear_coordinates(rng):
    x = rng.normal(size=(60, 3)) + rng.integers(0, 3, (60, 1)) * 4.0
    y = x @ np.diag([1e-3, 1.0, 1e6]) + 1e3
    np.testing.assert_allclose(linkage(x, "likelihood").heights, linkage(y, "likelihood").heights, rtol=1e-5)


@pytest.mark.parametrize("link", DISTANCES)
@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_missing_values_are_scaled_up_from_what_both_rows_have(rng, link, metric):
    from sklearn.metrics import pairwise_distances

    x = rng.normal(size=(40, 6))
    x[np.arange(40), rng.integers(0, 6, 40)] = np.nan  # up to two gaps a row: any two rows share two columns or more
    x[np.arange(40), rng.integers(0, 6, 40)] = np.nan
    if metric == "euclidean":
        apart = pairwise_distances(x, metric="nan_euclidean")
    else:
        both = np.abs(x[:, None] - x)
        apart = np.nansum(both, axis=2) * 6 / (~np.isnan(both)).sum(axis=2)
    np.fill_diagonal(apart, 0.0)
    wanted = linkage(apart, link, metric="precomputed")
    np.testing.assert_allclose(linkage(x, link, metric=metric).linkage, wanted.linkage, rtol=1e-10)


def test_pairs_without_a_common_column_get_the_mean_distance_and_are_reported():
    nan = np.nan
    with pytest.warns(FitWarning, match="1 pairs of rows have no column in common"):
        tree = linkage([[0.0, nan], [nan, 1.0], [3.0, 3.0]], "average")
    s = np.sqrt(2.0)
    np.testing.assert_allclose(tree.heights[0], 2 * s)  # row 1 and row 2; rows 0 and 2 are 3 s apart, the unknown 2.5 s
    np.testing.assert_allclose(tree.heights[1], (3 * s + 2.5 * s) / 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_ward_with_missing_values_merges_by_what_is_expected(rng):
    """As if each row had an axis of its own, as long as what is not known of it: SciPy's tree in so many columns."""
    x = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3))
    x[rng.random(x.shape) < 0.25] = np.nan
    x = x[~np.isnan(x).all(axis=1)]
    distribution = gaussian_of(em_moments(x, None, "test"))
    own, filled = np.zeros(len(x)), x.copy()
    for i, row in enumerate(x):
        g, o = np.isnan(row), ~np.isnan(row)
        slope = distribution.covariance[np.ix_(g, o)] @ np.linalg.inv(distribution.covariance[np.ix_(o, o)])
        filled[i, g] = distribution.mean[g] + slope @ (row[o] - distribution.mean[o])
        own[i] = np.trace(distribution.covariance[np.ix_(g, g)] - slope @ distribution.covariance[np.ix_(o, g)])
    wanted = scipy_hierarchy.linkage(np.hstack([filled, np.diag(np.sqrt(own))]), "ward")
    np.testing.assert_allclose(linkage(x, "ward").heights, wanted[:, 2], rtol=1e-9)
    w = rng.integers(1, 4, len(x))
    weighted, copies = linkage(x, weight=w.astype(float)), linkage(np.repeat(x, w, axis=0))
    np.testing.assert_allclose(weighted.heights, copies.heights[-len(x) + 1 :], rtol=1e-9)
    with pytest.raises(DataError, match="needs an observed entry"):
        linkage([[0.0, 1.0], [np.nan, np.nan], [1.0, np.nan]])


# -------------------------------------------------------------------------- errors


@pytest.mark.parametrize("link", ["centroid", "median", "coordinate-median", "likelihood"])
def test_links_by_means_refuse_missing_values(link):
    with pytest.raises(DataError, match=r"needs complete rows, got NaN at row 1, column 0.*impute"):
        linkage([[0.0], [np.nan]], link)


@pytest.mark.parametrize(
    "given, how, error, match",
    [
        ([[1.0], [np.inf]], {}, DataError, "row 1, column 0"),
        (np.empty((0, 2)), {}, DataError, "at least one row"),
        (np.empty((2, 0)), {}, DataError, "at least one row"),
        ([[1.0], [2.0]], {"method": "wards"}, DomainError, "linkage must be one of 'single'"),
        ([[1.0], [2.0]], {"metric": "feet"}, DomainError, "metric must be one of"),
        ([[1.0], [2.0]], {"metric": "cosine"}, DomainError, "Euclidean"),
        ([[1.0], [2.0]], {"weight": [1.0, 0.0]}, DataError, "positive weight, got 0 at row 1"),
        ([[1.0], [2.0]], {"weight": [1.0]}, ShapeError, "one entry per row"),
        ([[1.0], [2.0]], {"method": "likelihood", "covariance": "round"}, DomainError, "one of 'full', 'diagonal'"),
        ([[0.0, 0.0], [1.0, 2.0]], {"method": "average", "metric": "cosine"}, DataError, "a row of zeros"),
        ([[1.0, np.nan], [1.0, 2.0]], {"method": "average", "metric": "cosine"}, DataError, "needs complete rows"),
        ([[0.0, 1.0]], {"method": "average", "metric": "precomputed"}, ShapeError, "square"),
        ([[0.0, 1.0], [2.0, 0.0]], {"method": "average", "metric": "precomputed"}, DataError, "symmetric"),
        ([[0.0, -1.0], [-1.0, 0.0]], {"method": "average", "metric": "precomputed"}, DataError, "not negative"),
        ([[0.0, 1.0], [1.0, 0.0]], {"metric": "precomputed"}, DomainError, "needs rows"),
        ([["a"], ["b"]], {}, DataError, "numbers"),
    ],
)
def test_errors_say_what_is_wrong(given, how, error, match):
    with pytest.raises(error, match=match):
        linkage(given, **how)


def test_too_little_memory_is_said_before_it_is_taken(monkeypatch, rng):
    monkeypatch.setattr(memory, "available_memory", lambda: 1e6)
    x = rng.normal(size=(2000, 2))
    with pytest.raises(DataError, match=r"distances takes .* GB of memory.*need no matrix"):
        linkage(x, "average")
    assert len(linkage(x, "ward")) == 2000


def test_room_is_a_positive_number():
    assert memory.available_memory() > 0


@pytest.mark.parametrize("link", ["average", "complete", "weighted"])
def test_rounds_of_one_pair_do_not_fold_the_matrix_each_time(link, monkeypatch):
    folds = []
    fold = reciprocal_neighbors._fold
    monkeypatch.setattr(reciprocal_neighbors, "_fold", lambda *a: (folds.append(1), fold(*a))[1])
    x = (1.01 ** np.arange(600.0))[:, None]
    np.testing.assert_allclose(linkage(x, link).heights, scipy_hierarchy.linkage(x, link)[:, 2], rtol=1e-9)
    assert len(folds) < 80
