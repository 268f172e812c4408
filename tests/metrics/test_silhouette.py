"""Silhouettes and ratios of spreads against scikit-learn's, and with weights against copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import metrics

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics import silhouette as separation
from likely.metrics.silhouette import calinski_harabasz, davies_bouldin, silhouette_samples, silhouette_score

PEERS = {
    silhouette_score: metrics.silhouette_score,
    davies_bouldin: metrics.davies_bouldin_score,
    calinski_harabasz: metrics.calinski_harabasz_score,
}


def clustered(rng, n=150):
    label = rng.integers(0, 4, n)
    return rng.normal(size=(n, 3)) + label[:, None] * [2.0, 0.0, 1.0], label


@pytest.mark.parametrize("score", PEERS, ids=lambda f: f.__name__)
def test_equals_scikit_learn(rng, score):
    x, label = clustered(rng)
    label[0] = 9  # a cluster of one row
    assert score(x, label) == pytest.approx(PEERS[score](x, label), rel=1e-12)
    assert score(x, [f"cluster {c}" for c in label]) == pytest.approx(PEERS[score](x, label), rel=1e-12)


@pytest.mark.parametrize("score", PEERS, ids=lambda f: f.__name__)
def test_a_weight_is_so_many_copies(rng, score):
    x, label = clustered(rng, 60)
    w = rng.integers(0, 4, 60)
    copied = score(np.repeat(x, w, axis=0), np.repeat(label, w))
    assert score(x, label, weight=w) == pytest.approx(copied, rel=1e-10)


def test_each_silhouette_in_strips(rng, monkeypatch):
    x, label = clustered(rng)
    monkeypatch.setattr(separation, "ENTRIES", 1000)
    np.testing.assert_allclose(silhouette_samples(x, label), metrics.silhouette_samples(x, label), rtol=1e-11)
    np.testing.assert_allclose(
        silhouette_samples(x, label, at=[5, 3]), metrics.silhouette_samples(x, label)[[5, 3]], rtol=1e-11
    )


@pytest.mark.parametrize("metric", ["cityblock", "cosine"])
def test_other_distances(rng, metric):
    x, label = clustered(rng)
    wanted = metrics.silhouette_score(x, label, metric=metric)
    assert silhouette_score(x, label, metric=metric) == pytest.approx(wanted, rel=1e-11)
    assert silhouette_score(cdist(x, x, metric), label, metric="precomputed") == pytest.approx(wanted, rel=1e-11)


def test_a_sample_estimates_the_mean(rng):
    x, label = clustered(rng, 2000)
    exact = silhouette_score(x, label)
    assert silhouette_score(x, label, sample=400, rng=0) == pytest.approx(exact, abs=0.03)
    assert silhouette_score(x, label, sample=9999, rng=0) == pytest.approx(exact, rel=1e-12)


def test_rows_that_are_all_the_same_are_not_divided_by_0():
    x, label = np.ones((4, 2)), [0, 0, 1, 1]
    assert (
        silhouette_score(x, label) == 0.0 and davies_bouldin(x, label) == 0.0 and calinski_harabasz(x, label) == np.inf
    )


def test_an_offset_does_not_matter(rng):
    x, label = clustered(rng)
    for score in (davies_bouldin, calinski_harabasz):
        assert score(x + 1e8, label) == pytest.approx(score(x, label), rel=1e-6)


@pytest.mark.parametrize("score", PEERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "x, label, error, match",
    [
        ([[0.0], [1.0], [2.0]], [0, 0, 0], DataError, "at least two clusters"),
        ([[0.0], [1.0], [2.0]], [0, 1, 2], DataError, "more rows than clusters"),
        ([[0.0], [1.0], [2.0]], [0, 1], ShapeError, "one label per row"),
        ([[0.0], [np.nan], [2.0]], [0, 1, 1], DataError, "complete"),
        ([[0.0], [np.inf], [2.0]], [0, 1, 1], DataError, "row 1"),
        ([[0.0], [1.0], [2.0]], [0, None, 1], DataError, "none at row 1"),
    ],
)
def test_errors(score, x, label, error, match):
    with pytest.raises(error, match=match):
        score(x, label)


def test_errors_of_settings(rng):
    with pytest.raises(DomainError, match="sample"):
        silhouette_score([[0.0], [1.0], [2.0]], [0, 0, 1], sample=0)
    with pytest.raises(ShapeError, match="square"):
        silhouette_score([[0.0], [1.0], [2.0]], [0, 0, 1], metric="precomputed")
    with pytest.raises(DataError, match="every cluster needs positive weight"):
        silhouette_score([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 2], weight=[1, 1, 1, 0])
