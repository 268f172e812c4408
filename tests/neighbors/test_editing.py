"""Editing and condensing: what is left decides as it should."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk


def overlapping(n=500, seed=0, apart=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(2 * n) % 2
    return rng.normal(size=(2 * n, 2)) + apart * y[:, None], y


def nearest_label(X, y, at, Q):
    return y[at][lk.neighbors.NeighborSearch.of(X[at]).nearest(Q, 1)[1][:, 0]]


def test_wilson_by_hand():
    X, y = overlapping(60)
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1, kind="stable")[:, :3]
    keep = np.flatnonzero((y[near].mean(axis=1) > 0.5) == y)
    np.testing.assert_array_equal(lk.neighbors.edited_nearest_neighbors(X, y, 3), keep)


def test_repeated_is_a_fixed_point_and_all_k_is_stricter():
    X, y = overlapping()
    once, again, strict = (
        lk.neighbors.edited_nearest_neighbors(X, y, 3, method=how) for how in ("wilson", "repeated", "all-k")
    )
    assert set(again) < set(once) and set(strict) < set(once)
    assert len(lk.neighbors.edited_nearest_neighbors(X[again], y[again], 3)) == len(again)
    expected = (
        set(lk.neighbors.edited_nearest_neighbors(X, y, 1))
        & set(lk.neighbors.edited_nearest_neighbors(X, y, 2))
        & set(once)
    )
    assert set(strict) == expected


@pytest.mark.parametrize("how", ["wilson", "repeated", "all-k", "multiedit"])
def test_editing_lowers_the_error_on_overlapping_classes(how):
    X, y = overlapping()
    Q, truth = overlapping(5000, seed=1)
    before = np.mean(nearest_label(X, y, np.arange(len(y)), Q) != truth)
    after = np.mean(nearest_label(X, y, lk.neighbors.edited_nearest_neighbors(X, y, 5, method=how), Q) != truth)
    best = 0.1444  # Q(1.5 √2 / 2)
    assert best - 0.01 < after < before - 0.03


@pytest.mark.slow
def test_multiedit_comes_near_to_bayes():
    X, y = overlapping(1000)
    Q, truth = overlapping(5000, seed=1)
    assert (
        np.mean(nearest_label(X, y, lk.neighbors.edited_nearest_neighbors(X, y, method="multiedit"), Q) != truth)
        < 0.1444 + 0.02
    )


@pytest.mark.parametrize("how", ["hart", "reduced"])
@pytest.mark.parametrize("metric", ["l2", "l1", "mahalanobis"])
def test_condensed_rows_decide_all_rows_rightly(how, metric):
    X, y = overlapping(200)
    at = lk.neighbors.condensed_nearest_neighbor(X, y, method=how, metric=metric)
    clf = lk.KNeighborsClassifier(1, metric, scale=None if metric != "mahalanobis" else np.cov(X.T))
    if metric == "mahalanobis":
        search = lk.neighbors.NeighborSearch.of(X, metric, labels=y)
        found = lk.neighbors.NeighborSearch.of(X[at], search.metric).nearest(X, 1)[1][:, 0]
        assert (y[at][found] == y).all()
    else:
        assert (clf.fit(X[at], y[at]).predict(X) == y).all()
    assert len(at) < 0.6 * len(y)


def test_reduced_is_smaller_and_nothing_in_it_is_spare():
    X, y = overlapping(100)
    hart, reduced = (
        lk.neighbors.condensed_nearest_neighbor(X, y),
        lk.neighbors.condensed_nearest_neighbor(X, y, method="reduced"),
    )
    assert set(reduced) < set(hart)
    for row in reduced:
        left = reduced[reduced != row]
        assert (nearest_label(X, y, left, X) != y).any()


def test_order_and_copies_do_not_matter():
    X, y = overlapping(100)
    order = np.random.default_rng(3).permutation(200)
    for found in (
        lk.neighbors.condensed_nearest_neighbor,
        lambda a, b: lk.neighbors.edited_nearest_neighbors(a, b, 3),
        lambda a, b: lk.neighbors.edited_nearest_neighbors(a, b, method="multiedit"),
    ):
        assert set(order[found(X[order], y[order])]) == set(found(X, y))
    copies = np.repeat(np.arange(200), 1 + np.arange(200) % 3)
    assert set(copies[lk.neighbors.condensed_nearest_neighbor(X[copies], y[copies])]) == set(
        lk.neighbors.condensed_nearest_neighbor(X, y)
    )


def test_integer_weights_are_copies():
    X, y = overlapping(100)
    w = np.random.default_rng(4).integers(0, 4, 200)
    copies = np.repeat(np.arange(200), w)
    for how in ("wilson", "all-k"):
        kept = lk.neighbors.edited_nearest_neighbors(X, y, 3, method=how, weight=w)
        assert set(kept) == set(copies[lk.neighbors.edited_nearest_neighbors(X[copies], y[copies], 3, method=how)])
    assert set(lk.neighbors.condensed_nearest_neighbor(X, y, weight=w)) == set(
        copies[lk.neighbors.condensed_nearest_neighbor(X[copies], y[copies])]
    )


def test_contradictions_end_and_a_class_is_never_lost():
    X, y = np.zeros((6, 1)), np.array([0, 1, 0, 1, 0, 1])
    assert len(lk.neighbors.condensed_nearest_neighbor(X, y)) <= 6
    X = np.concatenate([np.random.default_rng(0).normal(size=(30, 2)), [[0.0, 0.0]]])
    y = np.append(np.zeros(30, dtype=int), 1)
    for how in ("wilson", "repeated", "all-k"):
        with pytest.warns(lk.FitWarning, match="classes would lose all rows") if how != "repeated" else nothing():
            assert 30 in lk.neighbors.edited_nearest_neighbors(X, y, 3, method=how)
    assert 30 in lk.neighbors.edited_nearest_neighbors(X, y, 3, method="multiedit")


def nothing():
    from contextlib import nullcontext

    return nullcontext()


def test_missing_values_are_allowed_and_bad_input_is_named():
    X, y = overlapping(50)
    X[::7, 0] = np.nan
    assert (
        50 < len(lk.neighbors.edited_nearest_neighbors(X, y)) <= 100
        and len(lk.neighbors.condensed_nearest_neighbor(X, y)) < 100
    )
    with pytest.raises(lk.ShapeError, match="one label per row"):
        lk.neighbors.edited_nearest_neighbors(X, y[:-1])
    with pytest.raises(lk.DomainError, match="method must be"):
        lk.neighbors.edited_nearest_neighbors(X, y, method="some")
    with pytest.raises(lk.DomainError, match="method must be"):
        lk.neighbors.condensed_nearest_neighbor(X, y, method="some")
    with pytest.raises(lk.DomainError, match="k must be"):
        lk.neighbors.edited_nearest_neighbors(X, y, 0)
    with pytest.raises(lk.ShapeError, match="some positive"):
        lk.neighbors.edited_nearest_neighbors(X, y, weight=np.zeros(100))


def test_rows_at_one_place_with_two_classes_are_kept_once_each():
    X, y = np.zeros((9, 1)), np.array([0, 1, 1, 0, 1, 1, 0, 1, 1])
    assert lk.neighbors.condensed_nearest_neighbor(X, y).tolist() == [0, 1]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("metric", ["l2", "l1", "linf", "lp"])
def test_condensing_is_that_of_the_definition(metric, gaps):
    from likely.core.row_hashes import row_hashes
    from likely.neighbors.distances import Metric

    X, y = overlapping(60)
    if gaps:
        X[::9, 0] = np.nan
    order = np.argsort(row_hashes(np.column_stack([X, y])), kind="stable")
    away = Metric(metric, 3.0).between(X[order], X[order])
    label = y[order]
    kept = set(np.unique(label, return_index=True)[1].tolist())
    while True:
        before = len(kept)
        for i in range(len(label)):
            store = sorted(kept)
            if i not in kept and label[store[int(away[store, i].argmin())]] != label[i]:
                kept.add(i)
        if len(kept) == before:
            break
    assert set(lk.neighbors.condensed_nearest_neighbor(X, y, metric=metric, p=3.0)) == set(order[sorted(kept)])


def test_every_row_needs_a_label_of_one_kind():
    X = np.zeros((3, 1))
    for y, says in ((np.full(3, np.nan), "nan at row 0"), ([0.0, 1.0, np.nan], "row 2"), ([None, "a", "b"], "row 0")):
        with pytest.raises(lk.DataError, match=says):
            lk.neighbors.edited_nearest_neighbors(X, y)
    with pytest.raises(lk.DataError, match="one type"):
        lk.neighbors.condensed_nearest_neighbor(X, np.array(["a", 1, "b"], dtype=object))
