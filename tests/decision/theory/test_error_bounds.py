"""Bounds hold for random posteriors, and are met where they are said to be."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.decision.theory.error_bounds import ErrorBounds


@pytest.mark.parametrize(
    ("error", "classes", "bound"),
    [(0.1, 2, 0.18), (0.1, 3, 0.185), (0.1, 10, 0.18889), (0.25, 2, 0.375), (0.25, 3, 0.40625), (0.25, 10, 0.43056)],
)
def test_cover_and_hart_as_in_the_notes(error, classes, bound):
    assert round(lk.decision.cover_hart_bound(error, classes), 5) == bound
    np.testing.assert_allclose(
        lk.decision.bayes_error_from_neighbors(lk.decision.cover_hart_bound(error, classes), classes), error, rtol=1e-12
    )


def random_tables(rng, K, rows=40):
    """Posteriors from nearly certain to nearly even, some with zeros, and weights of rows."""
    for sharp in (0.05, 0.3, 1.0, 10.0):
        for _ in range(20):
            P = rng.dirichlet(np.full(K, sharp), rows)
            P[:3] = np.eye(K)[rng.integers(0, K, 3)]
            yield P / P.sum(axis=1, keepdims=True), rng.exponential(size=rows)


@pytest.mark.parametrize("K", [2, 3, 10])
def test_every_inequality_holds(rng, K):
    for P, w in random_tables(rng, K):
        b = lk.decision.error_bounds(P, weight=w)
        slack = 1e-12
        assert all(bound <= b.bayes + slack for bound in b.lower.values())
        assert all(bound >= b.bayes - slack for bound in b.upper.values())
        assert b.bayes - slack <= b.gini <= b.neighbors[1] + slack
        assert b.upper["Hellman–Raviv, ½ entropy in bits"] <= b.entropy + slack


@pytest.mark.parametrize("K", [2, 3, 10])
def test_models_that_are_wrong_still_bound_the_error(rng, K):
    """Labels in their exact shares: truth P, model Q; Ney 4.6 and 5.5 hold for every Q."""
    for P, w in random_tables(rng, K, 10):
        Q = rng.dirichlet(np.ones(K), 10)
        truth, weight, model = np.tile(np.arange(K), 10), (w[:, None] * P).ravel(), np.repeat(Q, K, axis=0)
        bayes = lk.decision.error_bounds(P, weight=w).bayes
        squared = lk.decision.squared_error_bound(model, truth, weight)
        assert squared >= bayes - 1e-12
        assert lk.decision.cross_entropy_bound(model, truth, weight) >= bayes - 1e-12
        extra = np.average(((P - Q) ** 2).sum(axis=1), weights=w)
        np.testing.assert_allclose(squared, lk.decision.error_bounds(P, weight=w).gini + extra, rtol=1e-10)


def test_equality_where_the_rest_is_even():
    """Ney 5.4, exercise 1: other classes equally likely, the same error everywhere."""
    for K in (2, 3, 7):
        P = np.full((5, K), 0.3 / (K - 1))
        P[:, 0] = 0.7
        b = lk.decision.error_bounds(P)
        np.testing.assert_allclose(b.gini, lk.decision.cover_hart_bound(b.bayes, K), rtol=1e-12)
        np.testing.assert_allclose(lk.decision.fano_bound(b.entropy, K), b.bayes, rtol=1e-9)
    halves = lk.decision.error_bounds([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(lk.decision.hellman_raviv_bound(halves.entropy), halves.bayes, rtol=1e-12)
    np.testing.assert_allclose(lk.decision.error_bounds(np.full((2, 4), 0.25)).bayes, 0.75)


def test_bounds_of_numbers_and_arrays():
    assert lk.decision.fano_bound(1.0, 2, bits=True) == pytest.approx(0.5) and lk.decision.fano_bound(0.0, 5) == 0.0
    np.testing.assert_allclose(lk.decision.cover_hart_bound([0.0, 0.5], 2), [0.0, 0.5])
    np.testing.assert_allclose(lk.decision.bayes_error_from_neighbors(1e-12, 2), 5e-13, rtol=1e-9)
    h = lk.decision.fano_bound(np.linspace(0, np.log(4), 9), 4)
    back = -h * np.log(np.where(h > 0, h, 1)) - (1 - h) * np.log1p(-h) + h * np.log(3)
    np.testing.assert_allclose(back, np.linspace(0, np.log(4), 9), atol=1e-12)
    assert lk.decision.cover_hart_bound(0.0, 1) == 0.0 and lk.decision.fano_bound(0.0, 1) == 0.0


def test_weights_are_repetitions(rng):
    P, w, truth = rng.dirichlet(np.ones(3), 6), np.array([1, 0, 2, 3, 1, 0]), np.array([0, 1, 2, 0, 1, 2])
    many = lk.decision.error_bounds(np.repeat(P, w, axis=0), truth=np.repeat(truth, w))
    once = lk.decision.error_bounds(P, truth=truth, weight=w)
    np.testing.assert_allclose(list(many.upper.values()), list(once.upper.values()), rtol=1e-12)


def test_labels_held_impossible_cost_everything_unless_they_weigh_nothing():
    P = [[1.0, 0.0], [0.5, 0.5]]
    assert lk.decision.cross_entropy_bound(P, [1, 0]) == np.inf
    assert lk.decision.cross_entropy_bound(P, [1, 0], weight=[0, 1]) == pytest.approx(np.log(2))


def test_distributions_and_classifiers_are_asked_about_their_own_draws(rng):
    a, b = lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 0.0], [1.0, 3.0])
    found, exact = (
        lk.decision.error_bounds(a, b, class_prior=[0.3, 0.7], rng=rng),
        lk.bayes_error(a, b, class_prior=[0.3, 0.7]),
    )
    assert abs(found.bayes - exact.value) < 0.005
    assert found.chernoff >= exact.value and found.bhattacharyya >= found.chernoff - 1e-12
    X = np.concatenate([a.sample(50, rng), b.sample(50, rng)])
    clf = lk.BayesClassifier().fit(X, np.repeat([0, 1], 50))
    assert abs(lk.decision.error_bounds(clf).bayes - lk.bayes_error(clf).value) < 0.005
    assert lk.decision.error_bounds(lk.Poisson([[1.0], [3.0], [9.0]])).chernoff is None
    assert "Bhattacharyya" in str(found) and isinstance(found, ErrorBounds)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lk.decision.cover_hart_bound(0.6, 2), "0 … 0.5"),
        (lambda: lk.decision.cover_hart_bound(-0.1, 2), "0 … 0.5"),
        (lambda: lk.decision.cover_hart_bound(0.1, 0), "1 or more"),
        (lambda: lk.decision.fano_bound(2.0, 2), "bits=True"),
        (lambda: lk.decision.hellman_raviv_bound(np.nan), "negative"),
        (lambda: lk.decision.error_bounds([[0.5, 0.6]]), "add to 1"),
        (lambda: lk.decision.error_bounds([[0.5, 0.5]], truth=[2]), "0 … 1"),
        (lambda: lk.decision.error_bounds([[0.5, 0.5]], truth=["a"]), "integers"),
        (lambda: lk.decision.error_bounds([[0.5, 0.5]], weight=[0.0]), "positive weight"),
        (lambda: lk.decision.error_bounds([[0.5, 0.5]], [[0.5, 0.5]]), "one array"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(lk.LikelyError, match=words):
        call()
