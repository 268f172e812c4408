"""KNeighborsRegressor: means and variances of neighbors, copies, choice of k."""

import numpy as np
import pytest

import likely as lk
from likely.neighbors.estimator import KNeighborsRegressor


def made(n=120, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_predictions_are_scikit_learns(k, weights):
    from sklearn.neighbors import KNeighborsRegressor as Peer

    X, y = made()
    T, _ = made(30, seed=1)
    peer = Peer(k, weights=weights).fit(X, y)
    np.testing.assert_allclose(
        KNeighborsRegressor(k, weights=weights).fit(X, y).predict(T), peer.predict(T), rtol=1e-12
    )


def test_leave_one_out_is_that_of_refits():
    X, y = made(40)
    m = KNeighborsRegressor([1, 3, 7]).fit(X, y)
    for k, error in m.left_out_scores_:
        out = [
            KNeighborsRegressor(int(k)).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0]
            for i in range(len(y))
        ]
        assert error == pytest.approx(np.mean((y - np.array(out)) ** 2), rel=1e-9)
    assert m.n_neighbors_ == m.left_out_scores_[m.left_out_scores_[:, 1].argmin(), 0]
    assert m.noise_variance_ == pytest.approx(m.left_out_scores_[:, 1].min())


def test_weights_are_copies_and_copies_are_left_out_together():
    X, y = made(30)
    w = np.arange(30) % 3
    weighted = KNeighborsRegressor("leave-one-out").fit(X, y, w)
    copied = KNeighborsRegressor("leave-one-out").fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict(X, return_std=True), copied.predict(X, return_std=True), rtol=1e-9)
    once, thrice = (KNeighborsRegressor("leave-one-out").fit(np.repeat(X, r, 0), np.repeat(y, r)) for r in (1, 3))
    assert once.n_neighbors_ == thrice.n_neighbors_
    np.testing.assert_allclose(once.predict(X), thrice.predict(X), rtol=1e-9)


def test_equal_rows_with_other_targets_have_their_mean_and_spread():
    X, y = np.array([[0.0], [0.0], [5.0], [9.0]]), np.array([1.0, 3.0, 10.0, 20.0])
    m = KNeighborsRegressor(1).fit(X, y)
    assert m.predict([[0.1]])[0] == 2.0
    assert m.scatter_.max() == 2.0


def test_local_variance_follows_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (2000, 1))
    y = np.where(X[:, 0] < 0.5, 0.1, 2.0) * rng.standard_normal(2000)
    m = KNeighborsRegressor(50).fit(X, y)
    quiet, loud = m.predict([[0.2], [0.8]], return_std=True)[1]
    assert quiet < 0.6 * loud and m.pooled_rows_ < np.inf
    low, high = m.interval([[0.8]], 0.9)
    assert low[0] < -2 < 2 < high[0]


@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_a_large_offset_of_the_target_changes_nothing_else(offset):
    X, y = made()
    a, b = KNeighborsRegressor(5).fit(X, y), KNeighborsRegressor(5).fit(X, y + offset)
    np.testing.assert_allclose(b.predict(X) - offset, a.predict(X), atol=4e-16 * abs(offset) * 4)


def test_missing_cells_and_single_rows():
    X, y = made(20)
    X[0, 0] = np.nan
    assert np.isfinite(KNeighborsRegressor(3).fit(X, y).predict([[np.nan, 0.0], [np.nan, np.nan]])).all()
    alone = KNeighborsRegressor("leave-one-out").fit([[1.0]], [7.0])
    mean, std = alone.predict([[3.0]], return_std=True)
    assert mean[0] == 7.0 and std[0] > 0


def test_files_give_it_back():
    X, y = made()
    for metric in ("scaled", "mahalanobis"):
        m = KNeighborsRegressor("leave-one-out", metric).fit(X, y)
        from likely.io.model_files import dumps, loads

        np.testing.assert_array_equal(loads(dumps(m)).predict(X, return_std=True), m.predict(X, return_std=True))


def test_bad_input_is_told():
    X, y = made(10)
    with pytest.raises(lk.LikelyError, match="at least 1"):
        KNeighborsRegressor([0, 3]).fit(X, y)
    with pytest.raises(ValueError, match="non-zero"):
        KNeighborsRegressor().fit(X, y, np.zeros(10))
    with pytest.raises(lk.LikelyError, match="between 0 and 1"):
        KNeighborsRegressor().fit(X, y).interval(X, 1.5)
