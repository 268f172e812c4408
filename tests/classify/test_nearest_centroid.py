"""NearestCentroidClassifier: the nearest center, and posteriors of the density that each distance stands for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import laplace
from sklearn.neighbors import NearestCentroid

import likely as lk
from likely.estimation.novelty.novelty_threshold import folds
from likely.neighbors.distances import METRICS, Metric


def rows(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, d)) * [1.0, 2.0, 0.5] + 1.2 * y[:, None], y


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("center", ["mean", "median"])
def test_the_nearest_center_decides(metric, center):
    X, y = rows()
    m = lk.NearestCentroidClassifier(metric, center).fit(X, y)
    middle = np.array([getattr(np, center)(X[y == c], axis=0) for c in range(3)])
    np.testing.assert_allclose(m.centers_, middle, atol=1e-12)
    Q, _ = rows(80, seed=1)
    away = m._metric().between(Q, middle)
    np.testing.assert_allclose(m.distances(Q), away, rtol=1e-9)
    np.testing.assert_array_equal(m.predict(Q), away.argmin(axis=1))
    np.testing.assert_allclose(m.predict_proba(Q).sum(axis=1), 1.0)


def test_as_scikit_learns_centroids():
    X, y = rows()
    Q, _ = rows(80, seed=1)
    np.testing.assert_array_equal(
        lk.NearestCentroidClassifier().fit(X, y).predict(Q), NearestCentroid().fit(X, y).predict(Q)
    )
    by_median = NearestCentroid(metric="manhattan").fit(X, y)
    np.testing.assert_array_equal(
        lk.NearestCentroidClassifier("l1", "median").fit(X, y).predict(Q), by_median.predict(Q)
    )


def test_euclidean_distance_is_a_gaussian_with_one_variance():
    X, y = rows()
    Q, _ = rows(40, seed=1)
    m = lk.NearestCentroidClassifier("l2", class_prior=None).fit(X, y)
    variance = np.mean((X - m.centers_[y]) ** 2)
    expected = log_softmax(
        -((Q[:, None] - m.centers_) ** 2).sum(axis=2) / (2 * variance) + np.log(m.class_prior_), axis=1
    )
    np.testing.assert_allclose(m.log_posterior(Q), expected, rtol=1e-3)


def test_mahalanobis_distance_is_a_pooled_gaussian():
    X, y = rows()
    Q, _ = rows(40, seed=1)
    pooled = lk.BayesClassifier(lk.GaussianDensity("pooled"), class_prior="uniform").fit(X, y)
    ours = lk.NearestCentroidClassifier("mahalanobis").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(Q), pooled.predict_proba(Q), atol=1e-3)


def test_city_blocks_are_a_laplace_distribution():
    X, y = rows()
    Q, _ = rows(40, seed=1)
    m = lk.NearestCentroidClassifier("l1", "median").fit(X, y)
    width = np.abs(X - m.centers_[y]).mean()
    assert m.rate_ == pytest.approx(1 / width, rel=1e-12)
    scores = np.stack([laplace.logpdf(Q, c, width).sum(axis=1) for c in m.centers_], axis=1)
    np.testing.assert_allclose(m.log_posterior(Q), log_softmax(scores, axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["linf", "lp", "correlation"])
def test_temperature_is_of_maximum_likelihood(metric):
    X, y = rows()
    m = lk.NearestCentroidClassifier(metric).fit(X, y)
    away = m.distances(X)
    share = 1 / 301
    target = (1 - share) * np.eye(3)[y] + share / 3

    def loss(b):
        return -(target * log_softmax(-b * away, axis=1)).sum()

    best = minimize_scalar(loss, bounds=(1e-6, 100), method="bounded", options={"xatol": 1e-10})
    assert m.rate_ == pytest.approx(best.x, rel=1e-5)


def test_separable_classes_have_finite_posteriors():
    X, y = [[0.0, 1.0], [0.1, 1.0], [9.0, 8.0], [9.1, 8.0]], [0, 0, 1, 1]
    for metric in ("linf", "lp", "l1"):
        logs = lk.NearestCentroidClassifier(metric).fit(X, y).log_posterior(X)
        assert np.isfinite(logs).all() and (logs.argmax(axis=1) == y).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("center", ["mean", "median"])
def test_chunks_equal_the_batch_and_weights_are_copies(metric, center):
    X, y = rows(150)
    Q, _ = rows(30, seed=1)
    batch = lk.NearestCentroidClassifier(metric, center).fit(X, y).predict_proba(Q)
    parts = lk.NearestCentroidClassifier(metric, center)
    for i in range(0, 150, 40):
        parts.partial_fit(X[i : i + 40], y[i : i + 40], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.predict_proba(Q), batch, atol=1e-9)
    w = np.random.default_rng(2).integers(0, 4, 150)
    copies = np.repeat(np.arange(150), w)
    ours = lk.NearestCentroidClassifier(metric, center, class_prior=None).fit(X, y, w).predict_proba(Q)
    other = lk.NearestCentroidClassifier(metric, center, class_prior=None).fit(X[copies], y[copies]).predict_proba(Q)
    np.testing.assert_allclose(ours, other, atol=1e-8)


def test_missing_values_are_integrated_out():
    X, y = rows()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    Q = np.array([[0.5, np.nan, 1.0], [np.nan, np.nan, np.nan]])
    m = lk.NearestCentroidClassifier("scaled").fit(X, y)
    np.testing.assert_allclose(m.centers_, [np.nanmean(X[y == c], axis=0) for c in range(3)], atol=1e-12)
    z = ((Q[0] - m.centers_) ** 2 / m.covariance_)[:, [0, 2]].sum(axis=1)
    np.testing.assert_allclose(m.log_posterior(Q)[0], log_softmax(-z / 2), rtol=1e-9)
    for metric in ("l1", "l2", "scaled", "mahalanobis", "linf", "lp"):
        m = lk.NearestCentroidClassifier(metric).fit(X, y)
        np.testing.assert_allclose(m.predict_proba(Q)[1], 1 / 3, atol=1e-12)
    one = lk.NearestCentroidClassifier("l1").fit(X, y)
    z = np.abs(Q[0] - one.centers_)[:, [0, 2]].sum(axis=1)
    np.testing.assert_allclose(one.log_posterior(Q)[0], log_softmax(-one.rate_ * z), rtol=1e-9)
    with pytest.raises(lk.DataError, match="without missing values"):
        lk.NearestCentroidClassifier("correlation").fit(X, y)


def test_novel_rows_and_priors():
    X, y = rows(600)
    Q, _ = rows(3000, seed=1)
    m = lk.NearestCentroidClassifier("scaled").fit(X, y)
    assert 0.02 < np.mean([d is lk.NOVEL for d in m.decide(Q, novelty=0.05)]) < 0.09
    assert "nearest centroid" in m.decide([[99.0, 99.0, 99.0]], novelty=0.05, full=True).reasons[0]
    prior = [0.7, 0.2, 0.1]
    changed = lk.change_prior(m.predict_proba(Q), m.class_prior_, prior)
    np.testing.assert_allclose(m.with_class_prior(prior).predict_proba(Q), changed, rtol=1e-9)


def test_a_class_that_is_named_but_not_seen_does_no_harm():
    X, y = rows(30)
    m = lk.NearestCentroidClassifier().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert np.isfinite(m.predict_proba(X)).all()
    m.partial_fit(X[y == 2], y[y == 2])
    np.testing.assert_allclose(m.centers_, lk.NearestCentroidClassifier().fit(X, y).centers_, atol=1e-12)


def test_distribution_is_a_value():
    X, y = rows()
    distribution = lk.NearestCentroidClassifier("mahalanobis").fit(X, y).distribution_
    assert isinstance(distribution, lk.Gaussian) and distribution.members == 3
    assert Metric("l1").between([[0.0]], [[2.0]]) == 2.0


def test_the_width_of_l1_counts_what_was_seen():
    rng = np.random.default_rng(0)
    X, y = rng.laplace(size=(4000, 2)), np.arange(4000) % 2
    X[np.arange(4000), rng.integers(0, 2, 4000)] = np.nan
    assert lk.NearestCentroidClassifier("l1").fit(X, y).rate_ == pytest.approx(1.0, abs=0.05)


def test_a_stream_with_missing_values_says_that_it_is_approximate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), np.arange(50) % 2
    X[::5, 0] = np.nan
    with pytest.warns(lk.FitWarning, match="NearestCentroidClassifier: a stream imputes missing values"):
        lk.NearestCentroidClassifier("mahalanobis").partial_fit(X, y)
    X[:, 1] = 1.0
    with pytest.warns(lk.FitWarning, match="NearestCentroidClassifier: column 1 is constant"):
        lk.NearestCentroidClassifier("scaled").fit(X, y)


def overlapping(n, d, seed):
    rng = np.random.default_rng([seed, n, d])
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + y[:, None], y


@pytest.mark.some_cases(7)
@pytest.mark.parametrize("center", ["mean", "median"])
@pytest.mark.parametrize("metric", ["l2", "scaled", "mahalanobis", "l1", "linf", "lp", "correlation"])
def test_usual_distances_are_those_of_rows_left_out(metric, center):
    """Each fold's distances are those of a classifier that was fitted to the other rows alone."""
    X, y = overlapping(60, 4, 0)
    m = lk.NearestCentroidClassifier(metric, center).fit(X, y)
    rows, labels = m.sample_[:, :-1], m.sample_[:, -1]
    fold, expected = folds(m.sample_), np.empty(len(rows))
    for f in np.unique(fold):
        other = lk.NearestCentroidClassifier(metric, center).fit(rows[fold != f], labels[fold != f])
        expected[fold == f] = other.distances(rows[fold == f]).min(axis=1)
    assert np.allclose(m.held_out_novelty_scores()[0], expected, rtol=1e-6)


@pytest.mark.parametrize(("metric", "d"), [("mahalanobis", 20), ("scaled", 20), ("l2", 5)])
def test_few_rows_raise_false_alarms_at_the_stated_rate(metric, d):
    """In sample, mahalanobis raised 25 % here."""
    rates = []
    for seed in range(6):
        X, y = overlapping(2120, d, seed)
        m = lk.NearestCentroidClassifier(metric, novelty=0.05).fit(X[:120], y[:120])
        rates.append(np.mean(m.decide(X[120:]) == lk.NOVEL))
    assert 0.05 / 1.7 < np.mean(rates) < 0.05 * 1.7


@pytest.mark.slow
def test_streams_and_missing_values_keep_the_rate_of_novelty():
    rates = []
    for seed in range(4):
        X, y = overlapping(2160, 12, seed)
        X[np.random.default_rng(seed).random(X.shape) < 0.05] = np.nan
        m = lk.NearestCentroidClassifier("scaled")
        for part in np.array_split(np.arange(160), 4):
            m.partial_fit(X[part], y[part], classes=[0, 1])
            m.decide(X[:1], novelty=0.05)  # what it keeps must not be what it knew then
        rates.append(np.mean(m.decide(X[160:], novelty=0.05) == lk.NOVEL))
    assert 0.03 < np.mean(rates) < 0.085


def test_missing_values_under_mahalanobis_are_reported_as_elsewhere():
    """Neighbors, Fisher's discriminant and PCA said that entries are missing; centers said nothing."""
    X, y = overlapping(80, 3, 0)
    X[::7, 1] = np.nan
    words = "entries are missing: moments are those expected under a Gaussian, found by EM"
    for kind in (lk.NearestCentroidClassifier, lk.KNeighborsClassifier):
        with pytest.warns(lk.FitWarning, match=f"^{kind.__name__}: {words}") as told:
            kind(metric="mahalanobis").fit(X, y)
        assert len([w for w in told if words in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.NearestCentroidClassifier("scaled").fit(X, y)
        lk.NearestCentroidClassifier("mahalanobis").fit(X[~np.isnan(X).any(axis=1)], y[~np.isnan(X).any(axis=1)])
