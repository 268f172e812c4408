"""The nearest rows: every way to find them against a plain look at all distances, to the last bit and the last tie."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

import likely as lk
from likely.neighbors.distances import METRICS, Metric, sums
from likely.neighbors.nearest_neighbors import NeighborSearch, nearest_other


def plainly(search, queries, k, own=None):
    """Neighbors by sums over columns and a stable sort."""
    out = []
    for i, q in enumerate(queries):
        total = sums(np.array(search.points), q, search.metric.p)
        if own is not None:
            total[own[i]] = np.nan  # sorted behind infinity
        out.append(np.argsort(total, kind="stable")[:k])
    return np.array(out)


def rounded(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).round(1)  # with ties and copies


@pytest.mark.some_cases(18)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "m", "d"), [(1000, 200, 3), (700, 120, 40), (5, 4, 2), (65, 130, 2), (64, 3, 7)])
def test_found_as_by_looking_at_all(metric, n, m, d):
    search = NeighborSearch.of(rounded(n, d), metric, p=3.0)
    Q, k = rounded(m, d, 1), min(7, n)
    away, rows = search.nearest(Q, k)
    queries = search.metric.prepare(Q, "", asked=True) / search.unit
    if metric != "lp":  # powers of unlike libraries differ in the last bit, and so may ties
        np.testing.assert_array_equal(rows, plainly(search, queries, k))
    all_ = search.metric.between(Q, rounded(n, d))
    np.testing.assert_allclose(away, np.sort(all_, axis=1)[:, :k], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("metric", ["l1", "l2", "linf", "correlation"])
def test_each_row_among_the_others(metric):
    search = NeighborSearch.of(rounded(400, 3), metric)
    at = np.arange(0, 400, 7)
    rows = search.nearest_others(4, at)[1]
    np.testing.assert_array_equal(rows, plainly(search, search._as_queries(at), 4, own=at))
    assert not (rows == at[:, None]).any()
    np.testing.assert_array_equal(search.nearest_others(4)[1][at], rows)


def test_tree_and_products_give_the_same_bits():
    X, Q = rounded(3000, 30), rounded(400, 30, 1)
    search = NeighborSearch.of(X + 1e6)
    z = np.ascontiguousarray(Q + 1e6)
    own, part = np.full(400, -1, dtype=np.int64), np.arange(400)
    results = []
    for way in (search._by_products, None):
        away, rows = np.empty((400, 6)), np.empty((400, 6), dtype=np.int64)
        way(z, own, part, away, rows) if way else search.tree.search(z, part, own, 1, 2.0, away, rows)
        results.append((away.tobytes(), rows.tobytes()))
    assert results[0] == results[1]


def test_products_are_chosen_in_many_dimensions_and_a_tree_in_few(monkeypatch):
    used = []
    original = NeighborSearch._by_products
    monkeypatch.setattr(NeighborSearch, "_by_products", lambda *a: (used.append(1), original(*a))[1])
    rng = np.random.default_rng(0)
    for d, expected in ((2, False), (60, True)):
        used.clear()
        X, Q = rng.normal(size=(4000, d)), rng.normal(size=(300, d))
        away, rows = NeighborSearch.of(X).nearest(Q, 3)
        theirs = cKDTree(X).query(Q, k=3)
        np.testing.assert_array_equal(rows, theirs[1])
        np.testing.assert_allclose(away, theirs[0], rtol=1e-13)
        assert bool(used) is expected


@pytest.mark.parametrize("metric", ["l1", "l2", "linf", "lp", "scaled"])
def test_missing_values_are_made_up_for(metric):
    X, Q = rounded(200, 4), rounded(30, 4, 1)
    rng = np.random.default_rng(2)
    X[rng.random(X.shape) < 0.2] = np.nan
    Q[rng.random(Q.shape) < 0.2] = np.nan
    search = NeighborSearch.of(X, metric, p=3.0)
    away, rows = search.nearest(Q, 5)
    scale = search.metric.scale if metric == "scaled" else 1.0
    p = search.metric.p
    for q, found, nearest in zip(Q, away, rows, strict=True):
        z = np.abs(X - q) / scale
        seen = (~np.isnan(z)).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = (
                np.nansum(z**p, axis=1) * 4 / seen if p < np.inf else np.nanmax(np.where(np.isnan(z), -1, z), axis=1)
            )
        total = np.where(seen > 0, total, np.inf)
        expected = np.sort(total)[:5]
        np.testing.assert_allclose(found, expected if p == np.inf else expected ** (1 / p), rtol=1e-12)
        np.testing.assert_allclose(total[nearest], expected, rtol=1e-12)


def test_complete_queries_use_the_tree_beside_others_with_missing_values():
    X, Q = rounded(300, 3), rounded(40, 3, 1)
    holes = Q.copy()
    holes[::4, 1] = np.nan
    search = NeighborSearch.of(X)
    both, plain = search.nearest(holes, 3), search.nearest(Q, 3)
    complete = np.arange(40) % 4 > 0
    np.testing.assert_array_equal(both[1][complete], plain[1][complete])


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("metric", ["l1", "l2", "linf", "lp"])
def test_units_do_not_matter(metric, unit):
    X, Q = rounded(100, 3), rounded(20, 3, 1)
    away = NeighborSearch.of(X * unit, metric, p=3.0).nearest(Q * unit, 4)[0]
    expected = Metric(metric, 3.0).between(Q, X)
    np.testing.assert_allclose(away / unit, np.sort(expected, axis=1)[:, :4], rtol=1e-9)


def test_very_far_queries_still_have_neighbors():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    far = np.array([[1e300, 0.0], [-1e200, 0.0], [1e160, 1e160]])
    away, rows = NeighborSearch.of(X).nearest(far, 3)
    assert np.isfinite(away).all() and (np.sort(rows, axis=1) == [0, 1, 2]).all()


def test_mahalanobis_is_euclidean_after_whitening():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    X, Q = rng.normal(size=(500, 3)) @ A, rng.normal(size=(20, 3)) @ A
    cov = np.cov(X.T)
    away, _ = NeighborSearch.of(X, "mahalanobis", scale=cov).nearest(Q, 1)
    z = Q[:, None] - X
    expected = np.sqrt(np.einsum("mni,ij,mnj->mn", z, np.linalg.inv(cov), z)).min(axis=1)
    np.testing.assert_allclose(away[:, 0], expected, rtol=1e-10)


def test_correlation_is_one_minus_r_and_flat_rows_have_none():
    X = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [5.0, 5.0, 5.0], [1.0, 0.0, 1.0]])
    D = Metric("correlation").between(X, X)
    for i in (0, 1, 3):
        for j in (0, 1, 3):
            assert D[i, j] == pytest.approx(1 - np.corrcoef(X[i], X[j])[0, 1], abs=1e-14)
    assert (D[2] == 1.0).all() and (D[:, 2] == 1.0).all()
    away, rows = NeighborSearch.of(X, "correlation").nearest([[10.0, 20.0, 31.0]], 1)
    assert rows[0, 0] == 0 and away[0, 0] < 0.001


def test_copies_and_pickles_find_the_same():
    search = NeighborSearch.of(rounded(100, 3), "scaled")
    again = pickle.loads(pickle.dumps(search))
    Q = rounded(10, 3, 1)
    for a, b in zip(search.nearest(Q, 3), again.nearest(Q, 3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_bad_input_is_named():
    search = lk.neighbors.NeighborSearch.of([[0.0], [1.0]])
    with pytest.raises(lk.DomainError, match="k must be an integer from 1 to 2"):
        search.nearest([[0.0]], 3)
    with pytest.raises(lk.DataError, match="row 0, column 0"):
        search.nearest([[np.inf]], 1)
    with pytest.raises(lk.DomainError, match="metric must be one of"):
        lk.neighbors.NeighborSearch.of([[0.0], [1.0]], "cosine")
    with pytest.raises(lk.DomainError, match="linf"):
        lk.neighbors.NeighborSearch.of([[0.0], [1.0]], "lp", p=1000.0)
    with pytest.raises(lk.DataError, match="without missing values"):
        lk.neighbors.NeighborSearch.of([[0.0, 1.0], [1.0, 2.0]], "mahalanobis", scale=np.eye(2)).nearest(
            [[0.0, np.nan]], 1
        )
    with pytest.raises(lk.ShapeError, match="covariance"):
        lk.neighbors.NeighborSearch.of([[0.0, 1.0]], "mahalanobis", scale=[1.0, 2.0])
    with pytest.raises(lk.DomainError, match="positive definite"):
        lk.neighbors.NeighborSearch.of([[0.0, 1.0]], "mahalanobis", scale=np.ones((2, 2)))
    with pytest.raises(lk.DataError, match="at least one row"):
        lk.neighbors.NeighborSearch.of(np.empty((0, 2)))


@pytest.mark.parametrize("metric", ["l2", "l1", "scaled", "correlation"])
def test_queries_have_the_columns_of_the_points_and_k_of_them_exist(metric):
    search = lk.neighbors.NeighborSearch.of(np.random.default_rng(0).normal(size=(50, 3)), metric)
    for columns in (1, 2, 5):
        with pytest.raises(lk.ShapeError, match=r"\(n, 3\)"):
            search.nearest(np.zeros((4, columns)), 2)
    for k in (0, 51, 1.5, True):
        with pytest.raises(lk.DomainError, match="k must be an integer from 1 to 50"):
            search.nearest(np.eye(3), k)
    with pytest.raises(lk.DataError, match="row 1, column 2"):
        search.nearest([[0.0, 1.0, 2.0], [0.0, 1.0, np.inf]], 1)
    assert search.nearest(np.empty((0, 3)), 2)[1].shape == (0, 2)


def test_names_of_metrics_that_others_use():
    x = np.random.default_rng(0).normal(size=(60, 2))
    for other, ours in {"euclidean": "l2", "manhattan": "l1", "cityblock": "l1", "chebyshev": "linf"}.items():
        assert lk.neighbors.NeighborSearch.of(x, other).metric.name == ours
        for make in (lk.KNeighborsClassifier, lk.NearestCentroidClassifier):
            named, plain = (make(metric=m).fit(x, x[:, 0] > 0).predict_proba(x) for m in (other, ours))
            assert np.array_equal(named, plain)
        assert np.array_equal(
            lk.density.KNNBalls(x, 3, metric=other).log_prob(x), lk.density.KNNBalls(x, 3, metric=ours).log_prob(x)
        )
    with pytest.raises(lk.DomainError, match="'l1', 'l2', 'linf'"):
        lk.neighbors.NeighborSearch.of(x, "hamming")


def test_points_at_the_end_of_the_range_have_a_unit():
    from likely.neighbors.nearest_neighbors import _unit

    assert _unit(np.array([[1.7e308, 0.0]]), 2.0) == 2.0**1023
    assert _unit(np.array([[3.0]]), 2.0) == 1.0 and _unit(np.array([[8.0]]), 3.0) == 8.0


@pytest.mark.parametrize(("n", "d"), [(2, 1), (50, 3), (1200, 5)])
@pytest.mark.parametrize("p", [2.0, np.inf])
def test_the_nearest_other_row_is_the_same_by_both_trees(rng, n, d, p):
    x = rng.integers(0, 40, (n, d)).astype(float)  # some rows are equal
    away, who = nearest_other(x, p=p)
    apart = cdist(x, x, "euclidean" if p == 2.0 else "chebyshev")
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_allclose(away, apart.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(apart[np.arange(n), who], away, rtol=1e-12)
    some = np.array([1, 0])
    np.testing.assert_array_equal(nearest_other(x, some, p)[0], away[some])
