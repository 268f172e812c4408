"""Partition scores against scikit-learn's, against pairs counted one by one, and with weights against copies."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics import clusterings as p

SCORES = {
    p.rand_index: metrics.rand_score,
    p.adjusted_rand_index: metrics.adjusted_rand_score,
    p.fowlkes_mallows: metrics.fowlkes_mallows_score,
    p.mutual_information: metrics.mutual_info_score,
    p.normalized_mutual_information: metrics.normalized_mutual_info_score,
    p.adjusted_mutual_information: metrics.adjusted_mutual_info_score,
    p.v_measure: metrics.homogeneity_completeness_v_measure,
}
ALL = [*SCORES, p.variation_of_information, p.purity]
MEANS = ["arithmetic", "geometric", "min", "max"]


def two(rng, n=200, k=4, m=6):
    a = rng.integers(0, k, n)
    return a, np.where(rng.random(n) < 0.5, a, rng.integers(0, m, n))


@pytest.mark.parametrize("score", SCORES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n, k, m", [(200, 4, 6), (7, 3, 2), (2000, 30, 2), (50, 1, 5), (50, 5, 1), (9, 1, 1)])
def test_equals_scikit_learn(rng, score, n, k, m):
    a, b = two(rng, n, k, m)
    np.testing.assert_allclose(score(a, b), SCORES[score](a, b), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(score(a, a), SCORES[score](a, a), rtol=1e-12)


@pytest.mark.parametrize("score", SCORES, ids=lambda f: f.__name__)
def test_equals_scikit_learn_where_all_rows_are_alone(rng, score):
    a = np.arange(12)
    for b in (np.zeros(12), np.arange(12)[::-1], np.repeat([0, 1], 6)):
        np.testing.assert_allclose(score(a, b), SCORES[score](a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_means_of_entropies(rng, mean):
    a, b = two(rng)
    found = p.normalized_mutual_information(a, b, mean=mean), p.adjusted_mutual_information(a, b, mean=mean)
    assert found[0] == pytest.approx(metrics.normalized_mutual_info_score(a, b, average_method=mean), rel=1e-12)
    assert found[1] == pytest.approx(metrics.adjusted_mutual_info_score(a, b, average_method=mean), rel=1e-11)


@pytest.mark.parametrize("score", ALL, ids=lambda f: f.__name__)
def test_a_weight_is_so_many_copies(rng, score):
    a, b = two(rng, 60)
    w = rng.integers(0, 4, 60)
    np.testing.assert_allclose(score(a, b, w), score(np.repeat(a, w), np.repeat(b, w)), rtol=1e-12)


@pytest.mark.parametrize("score", ALL, ids=lambda f: f.__name__)
def test_names_do_not_matter(rng, score):
    a, b = two(rng, 60)
    names = np.array(["x", None, "z", "u", "v", "w"], dtype=object)
    names[1] = ("a", 1)
    texts = pd.Series([f"cluster {5 - c}" for c in b])
    np.testing.assert_allclose(score(list(names[a]), texts), score(a, b), rtol=1e-12)
    np.testing.assert_allclose(score(a.astype(float), b == 0), score(a, (b == 0).tolist()), rtol=1e-12)


def test_rand_by_counting_pairs(rng):
    a, b = two(rng, 20)
    agree = [(a[i] == a[j]) == (b[i] == b[j]) for i, j in combinations(range(20), 2)]
    assert p.rand_index(a, b) == pytest.approx(np.mean(agree), rel=1e-14)


def test_adjusted_information_is_0_by_chance_over_all_orders():
    a, b = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1])
    mean = np.mean([p.mutual_information(a, b[list(order)]) for order in permutations(range(6))])
    assert p._expected_information(np.array([3.0, 2.0, 1.0]), np.array([2.0, 4.0])) == pytest.approx(mean, rel=1e-12)


def test_variation_of_information_is_a_distance(rng):
    a, b = two(rng)
    c = rng.integers(0, 3, 200)
    d = p.variation_of_information
    assert d(a, b) == pytest.approx(d(b, a)) and d(a, a) == 0.0
    assert d(a, c) <= d(a, b) + d(b, c) + 1e-12
    joint = a * 100 + b
    entropy = metrics.mutual_info_score
    assert d(a, b) == pytest.approx(2 * entropy(joint, joint) - entropy(a, a) - entropy(b, b), rel=1e-10)


def test_purity_and_the_best_names(rng):
    a, b = two(rng, 100, 4, 4)
    wanted = sum(np.bincount(a[b == c]).max() for c in np.unique(b)) / 100
    assert p.purity(a, b) == pytest.approx(wanted)
    best = max(np.mean(a == np.array(order)[b]) for order in permutations(range(4)))
    names, accuracy = p.best_matching(a, b)
    assert accuracy == pytest.approx(best)
    assert np.mean([names[c] == t for c, t in zip(b.tolist(), a.tolist(), strict=True)]) == pytest.approx(best)


def test_clusters_without_a_class_have_no_name():
    names, accuracy = p.best_matching(["a", "a", "a"], [0, 1, 1])
    assert names == {1: "a"} and accuracy == pytest.approx(2 / 3)


def test_contingency_equals_scikit_learn(rng):
    a, b = two(rng)
    table, first, second = p.contingency_table(a, b)
    np.testing.assert_array_equal(table, metrics.cluster.contingency_matrix(a, b))
    assert first == np.unique(a).tolist() and second == np.unique(b).tolist()


def test_rows_without_weight_are_not_there():
    assert p.contingency_table(["a", "b", "c"], [0, 1, 0], [1, 0, 2])[1:] == (["a", "c"], [0])


@pytest.mark.parametrize("beta", [0.0, 0.3, 2.0])
def test_beta_of_v(rng, beta):
    a, b = two(rng)
    assert p.v_measure(a, b, beta=beta).v == pytest.approx(metrics.v_measure_score(a, b, beta=beta), rel=1e-12)


@pytest.mark.parametrize(
    "first, second, how, error, match",
    [
        ([0, 1], [0], {}, ShapeError, "2 and 1 labels"),
        ([], [], {}, DataError, "at least one row"),
        ([0, 1], [0, 1], {"weight": [0, 0]}, DataError, "at least one row"),
        ([0, 1], [0, 1], {"weight": [1, -1]}, DataError, "not negative"),
        ([0, 1], [0, 1], {"weight": [[1], [1]]}, ShapeError, "one entry per row"),
        ([0, np.nan], [0, 1], {}, DataError, "none at row 1"),
        ([0, None], [0, 1], {}, DataError, "none at row 1"),
        (np.zeros((2, 2)), [0, 1], {}, ShapeError, "labels must have shape"),
    ],
)
def test_errors(first, second, how, error, match):
    with pytest.raises(error, match=match):
        p.rand_index(first, second, **how)


def test_errors_of_settings():
    with pytest.raises(DomainError, match="integers"):
        p.adjusted_mutual_information([0, 1], [0, 1], [0.5, 1.0])
    with pytest.raises(DomainError, match="mean must be one of"):
        p.normalized_mutual_information([0, 1], [0, 1], mean="harmonic")
    with pytest.raises(DomainError, match="beta"):
        p.v_measure([0, 1], [0, 1], beta=-1)
