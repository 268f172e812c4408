"""Balls of nearest neighbors against plain distances, and the k-nearest-neighbor rule that they give."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import likely as lk

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Q = RNG.normal(size=(50, 3)) * 2
VOLUME = {"l1": 8 / 6, "l2": 4 * np.pi / 3, "linf": 8.0}
ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


@pytest.mark.parametrize("metric", VOLUME)
@pytest.mark.parametrize("k", [1, 7, 200])
def test_the_density_is_k_over_n_times_the_volume(metric, k):
    far = np.sort(np.linalg.norm(Q[:, None] - X, axis=2, ord=ORDER[metric]), axis=1)[:, k - 1]
    got = lk.density.KNNBalls(X, k, metric=metric).log_prob(Q)
    assert np.allclose(got, np.log(k / (200 * VOLUME[metric] * far**3)), rtol=1e-12)


@pytest.mark.slow
def test_one_less_is_unbiased():
    """Over data sets of evenly spread points, (k − 1)/(N V) has the right mean, and k/(N V) has not."""
    rng = np.random.default_rng(1)
    found = {u: [] for u in (False, True)}
    for _ in range(600):
        x = rng.uniform(-1, 1, (200, 1))
        for u, each in found.items():
            each.append(np.exp(lk.density.KNNBalls(x, 4, unbiased=u).log_prob([[0.0]])[0]))
    assert np.mean(found[True]) == pytest.approx(0.5, abs=0.03) and np.mean(found[False]) > 0.6


def test_units_and_missing_values():
    unit = np.array([1.0, 10.0, 0.1])
    balls = lk.density.KNNBalls(X * unit, 5, unit=unit)
    assert np.allclose(balls.log_prob(Q * unit), lk.density.KNNBalls(X, 5).log_prob(Q) - np.log(unit).sum())
    gaps = Q.copy()
    gaps[:, 1] = np.nan
    assert np.allclose(
        lk.density.KNNBalls(X, 5).log_prob(gaps), lk.density.KNNBalls(X[:, [0, 2]], 5).log_prob(Q[:, [0, 2]])
    )


def test_weights_are_copies():
    times = RNG.integers(1, 4, 200)
    a = lk.KNNDensity(6).fit(X, sample_weight=times)
    b = lk.KNNDensity(6).fit(np.repeat(X, times, axis=0))
    assert np.allclose(a.score_samples(Q), b.score_samples(Q))
    half = lk.density.KNNBalls(X, 3, np.full(200, 0.5)).log_prob(Q)
    assert np.allclose(half, lk.density.KNNBalls(X, 6).log_prob(Q))


def test_many_columns_take_products():
    x, q = RNG.normal(size=(300, 20)), RNG.normal(size=(30, 20))
    far = np.sort(np.linalg.norm(q[:, None] - x, axis=2), axis=1)[:, 4]
    got = lk.density.KNNBalls(x, 5).log_prob(q)
    assert np.allclose(got - got[0], -20 * (np.log(far) - np.log(far[0])))


def test_k_copies_of_a_row_are_finite():
    assert np.isfinite(lk.KNNDensity(3).fit(np.repeat(X[:5], 4, axis=0)).score_samples(X)).all()
    assert np.isfinite(lk.density.KNNBalls(np.zeros((5, 1)), 3).log_prob([[0.0], [1.0]])).all()


@pytest.mark.parametrize("k", [1, 5, 8])
def test_one_ball_for_all_classes_is_the_rule_of_the_k_nearest(k):
    y = (X[:, 0] + 0.7 * RNG.normal(size=200) > 0).astype(int) + (X[:, 1] > 1)
    ours = lk.BayesClassifier(lk.KNNDensity(k, scaled=False, shared=True)).fit(X, y)
    theirs = KNeighborsClassifier(k).fit(X, y)
    assert np.allclose(ours.predict_proba(Q), theirs.predict_proba(Q))


def test_balls_of_their_own_give_the_nearest_neighbor_rule_for_one():
    y = (X[:, 0] > 0).astype(int)
    ours = lk.BayesClassifier(lk.KNNDensity(1, scaled=False)).fit(X, y)
    assert (ours.predict(Q) == KNeighborsClassifier(1).fit(X, y).predict(Q)).all()


@pytest.mark.parametrize("metric", VOLUME)
def test_draws_lie_in_balls_of_the_points(metric):
    balls = lk.density.KNNBalls(X, 4, metric=metric)
    draws = balls.sample(500, np.random.default_rng(2))
    reach = np.sort(np.linalg.norm(X[:, None] - X, axis=2, ord=ORDER[metric]), axis=1)[:, 3]
    away = np.linalg.norm(draws[:, None] - X, axis=2, ord=ORDER[metric])
    assert (away <= reach).any(axis=1).all() and balls.sample(0, np.random.default_rng(0)).shape == (0, 3)


def test_bad_balls_are_refused():
    for make, says in (
        (lambda: lk.density.KNNBalls(X, 0), "n_neighbors must be positive"),
        (lambda: lk.density.KNNBalls(X, 1, unbiased=True), "above 1"),
        (lambda: lk.density.KNNBalls(X, 1, metric="cosine"), "metric must be"),
        (lambda: lk.density.KNNBalls(X, 1, weight=[1.0]), "weight must have one entry per point"),
        (lambda: lk.density.KNNBalls(X, 1).log_prob([[0.0, np.inf, 0.0]]), "row 0, column 1"),
    ):
        with pytest.raises(lk.LikelyError, match=says):
            make()


def test_an_outlier_takes_no_digits_whatever_the_order():
    x = np.random.default_rng(0).normal(size=(200, 20))
    x[0, 0] = 1e9
    there, back = (lk.density.KNNBalls(a, 5).log_prob(x[1:20]) for a in (x, x[::-1]))
    fifth = np.sort(np.sqrt(((x[1:20, None] - x[None]) ** 2).sum(axis=2)), axis=1)[:, 4]
    lone = lk.density.KNNBalls(np.zeros((1, 20)), 1).log_prob(np.eye(20)[:1])[0]  # −log V of a ball of radius 1
    assert np.allclose(there, back, atol=1e-9) and np.allclose(
        there, lone + np.log(5 / 200) - 20 * np.log(fifth), atol=1e-6
    )


def test_points_without_weight_are_absent():
    x, w = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 3
    assert np.array_equal(
        lk.density.KNNBalls(x, 4, w).log_prob(x), lk.density.KNNBalls(x[w > 0], 4, w[w > 0]).log_prob(x)
    )
    stack = lk.density.KNNBalls(x, 4, w, edges=[0, 20, 40])
    assert np.array_equal(stack.member(1).log_prob(x), lk.density.KNNBalls(x[20:], 4, w[20:]).log_prob(x))
    for bad in (np.zeros(40), -1.0 * w):
        with pytest.raises(lk.DomainError, match="weights"):
            lk.density.KNNBalls(x, 4, bad)


def test_columns_that_are_not_there_and_whose_warning_it_is():
    x = np.random.default_rng(0).normal(size=(40, 2))
    for columns in ([99], [0.5], []):
        with pytest.raises(lk.DomainError, match="integers from 0 to 1"):
            lk.density.KNNBalls(x, 3).marginal(columns)
    x[:, 1] = 7.0
    with pytest.warns(lk.FitWarning, match="KNNDensity: column 1 is constant"):
        lk.KNNDensity(3).fit(x)
