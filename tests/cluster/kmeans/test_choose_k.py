"""The curves are what their names say, and agree where the answer is plain."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from likely.cluster.kmeans.choose_k import choose_k
from likely.cluster.kmeans.kmeans import kmeans
from likely.core.errors import DataError, DomainError


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (80, 3)) for m in (0.0, 7.0, 14.0, 21.0)])


@pytest.mark.slow
def test_plain_groups_are_counted_by_every_curve(x):
    found = choose_k(x, range(1, 8), n_init=2)
    assert found.best == {"held_out": 4, "bic": 4, "calinski_harabasz": 4, "silhouette": 4}
    assert found.chosen == 4
    assert (np.diff(found.inertia) < 0).all()
    assert "BIC chooses k = 4" in str(found)
    assert str(found).count("*") == 5


@pytest.mark.slow
def test_curves_agree_with_scikit_learn(x):
    x = x / 32  # of size 1, so that the same seeds are drawn
    found = choose_k(x, [3, 5], n_init=1)
    for i, k in enumerate(found.k):
        labels = kmeans(x, int(k), rng=np.random.default_rng(0)).labels
        assert found.calinski_harabasz[i] == pytest.approx(metrics.calinski_harabasz_score(x, labels))
        assert found.silhouette[i] == pytest.approx(metrics.silhouette_score(x, labels))


@pytest.mark.slow
def test_one_cluster_has_the_likelihood_of_one_gaussian(x):
    found = choose_k(x, [1])
    n, d = x.shape
    variance = ((x - x.mean(axis=0)) ** 2).sum() / x.size
    assert found.bic[0] == pytest.approx(x.size * (np.log(2 * np.pi * variance) + 1) + (d + 1) * np.log(n))
    assert np.isnan(found.silhouette[0])
    assert "–" in str(found)


@pytest.mark.slow
def test_weights_are_copies(x):
    w = np.random.default_rng(1).integers(0, 3, len(x))
    a, b = choose_k(x, [2, 4], w), choose_k(np.repeat(x, w, axis=0), [2, 4])
    for name in ("inertia", "held_out", "bic", "calinski_harabasz", "silhouette"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-8)


@pytest.mark.slow
def test_noise_has_one_cluster():
    assert choose_k(np.random.default_rng(2).normal(size=(300, 5)), range(1, 6)).best["bic"] == 1


@pytest.mark.slow
def test_missing_values_and_few_distinct_rows_give_numbers():
    x = np.random.default_rng(3).integers(0, 2, (60, 3)).astype(float)
    x[::5, 0] = np.nan
    found = choose_k(x, range(1, 12))
    spread = found.inertia > 1e-9
    assert spread[:5].all() and not spread.all()
    np.testing.assert_array_equal(np.isfinite(found.bic), spread)
    np.testing.assert_array_equal(np.isfinite(found.held_out), spread)
    assert found.chosen in found.k[spread]


def test_what_it_refuses(x):
    with pytest.raises(DomainError, match="from 1 on"):
        choose_k(x, [0, 1])
    with pytest.raises(DataError, match="distinct"):
        choose_k(np.ones((50, 2)))
    for bad in ([1.5, 2.7], [2.0], ["2"], [True], []):
        with pytest.raises(DomainError, match="integers"):
            choose_k(x, bad)
    with pytest.raises(DomainError, match="are the same"):
        choose_k(x, [1], np.ones(len(x)), sample_weight=np.ones(len(x)))


@pytest.mark.slow
def test_each_row_a_center_is_no_answer():
    x = np.random.default_rng(0).normal(size=(6, 2))
    found = choose_k(x, range(1, 10))
    assert np.isnan(found.bic[5:]).all() and np.isnan(found.held_out[5:]).all() and np.isfinite(found.bic[:5]).all()
    assert found.chosen < 6 and all(k < 6 for k in found.best.values())
    only = choose_k(x, [6, 7])
    assert "cannot choose" in str(only) and only.best == {}
    with pytest.raises(DomainError, match="differ from their centers"):
        _ = only.chosen


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("power", [-500, -300, 1, 300])
def test_the_unit_of_measurement_decides_nothing(x, power):
    y = x[::4]
    a, b = choose_k(y, range(1, 6)), choose_k(np.ldexp(y, power), range(1, 6))
    assert a.best == b.best
    shift = power * np.log(2.0)
    np.testing.assert_allclose(b.bic - a.bic, 2 * y.size * shift, rtol=1e-9)
    np.testing.assert_allclose(a.held_out - b.held_out, y.shape[1] * shift, rtol=1e-9)
    np.testing.assert_allclose(b.inertia, np.ldexp(a.inertia, 2 * power), rtol=1e-12)


@pytest.mark.slow
def test_rows_set_aside_choose_the_least_k_within_one_error(x):
    found = choose_k(x, range(1, 8))
    top = int(np.argmax(found.held_out))
    within = found.held_out[top] - found.held_out <= found.held_out_error
    assert found.best["held_out"] == found.k[within].min() and found.held_out_error[top] == 0.0


def test_sample_weight_is_weight(x):
    w = np.random.default_rng(1).integers(1, 3, len(x)).astype(float)
    np.testing.assert_array_equal(choose_k(x, [2], w).bic, choose_k(x, [2], sample_weight=w).bic)
