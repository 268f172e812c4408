"""KMeans is a real scikit-learn estimator, learns from streams, and comes back from a file as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks

import likely as lk
from likely.cluster.kmeans.estimator import KMeans
from likely.core.errors import DataError, FitWarning
from tests.cases import scikit_learn_checks

ESTIMATORS = [
    KMeans(),
    KMeans(3, method="exchange"),
    KMeans(3, variances="own"),
    KMeans(3, init="split"),
    KMeans(init="random", n_init=3),
    KMeans(2, method="exchange", variances="own"),
]
NOT_YIELDED = [
    checks.check_dataframe_column_names_consistency,
    checks.check_param_validation,
    checks.check_inplace_ensure_writeable,
    checks.check_transformer_get_feature_names_out,
    checks.check_transformer_get_feature_names_out_pandas,
    checks.check_set_output_transform,
    checks.check_set_output_transform_pandas,
    checks.check_global_output_transform_pandas,
]


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@scikit_learn_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", NOT_YIELDED, ids=lambda c: c.__name__)
def test_check_that_is_not_yielded(check):
    check("KMeans", KMeans(3))


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (200, 3)) for m in (0.0, 10.0, 20.0)])


def test_attributes_agree_with_one_another(X):
    m = KMeans(3, random_state=0).fit(X)
    near = m.transform(X)
    np.testing.assert_array_equal(near.argmin(axis=1), m.labels_)
    np.testing.assert_array_equal(m.predict(X), m.labels_)
    assert m.inertia_ == pytest.approx((near.min(axis=1) ** 2).sum())
    assert m.score(X) == pytest.approx(-m.inertia_)
    assert m.report_.converged
    assert m.report_.objective == pytest.approx(-m.inertia_)
    assert m.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]
    assert m.labels_.dtype == np.int32


def test_float32_stays_and_frames_are_taken(X):
    m = KMeans(3, random_state=0).fit(X.astype(np.float32))
    assert m.transform(X.astype(np.float32)).dtype == np.float32
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipe = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).set_output(transform="pandas")
    assert list(pipe.fit_transform(frame).columns) == ["kmeans0", "kmeans1", "kmeans2"]


def test_weights_and_order_do_not_matter_for_any_way_of_learning(X):
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, len(X))
    copies = np.repeat(X, w, axis=0)[rng.permutation(w.sum())]
    for estimator in ESTIMATORS:
        a = clone(estimator).set_params(random_state=3, n_clusters=5).fit(X, sample_weight=w)
        b = clone(estimator).set_params(random_state=3, n_clusters=5).fit(copies)
        np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, rtol=1e-7)
        assert a.inertia_ == pytest.approx(b.inertia_, rel=1e-9)


def test_missing_values_are_left_out(X):
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)
    X = X[~np.isnan(X).all(axis=1)]
    m = KMeans(3, n_init=3, random_state=0).fit(X)
    for k in range(3):
        np.testing.assert_allclose(m.cluster_centers_[k], np.nanmean(X[m.labels_ == k], axis=0))
    assert np.isfinite(m.transform(X)).all()


def test_several_starts_keep_the_best(X):
    many = KMeans(6, init="random", n_init=10, random_state=0).fit(X)
    reached = [run.objective for run in many.report_.runs]
    assert len(reached) == 10
    assert -many.inertia_ == pytest.approx(max(reached))
    assert many.report_.agreement < 1
    assert KMeans(3, n_init=4, random_state=0).fit(X).report_.agreement == 1
    assert "starts" in str(many.report_)


def test_a_stream_ends_at_the_means_of_what_each_center_was_given(X):
    order = np.random.default_rng(3).permutation(len(X))
    chunks = np.array_split(X[order], 12)
    m = KMeans(3, random_state=0)
    for chunk in chunks:
        m.partial_fit(chunk)
    assert m.stats_.total_weight == len(X)
    batch = KMeans(3, random_state=0).fit(X)
    np.testing.assert_allclose(np.sort(m.cluster_centers_, axis=0), np.sort(batch.cluster_centers_, axis=0), rtol=1e-9)


def test_a_stream_may_begin_with_fewer_rows_than_clusters(X):
    m = KMeans(4, random_state=0)
    m.partial_fit(X[:1]).partial_fit(X[:1])
    assert m.cluster_centers_.shape == (1, 3)
    m.partial_fit(X[200:202])
    assert len(m.cluster_centers_) == 3
    assert m.labels_.shape == (2,)
    m.partial_fit(X[400:405])
    assert len(m.cluster_centers_) == 4
    assert m.stats_.total_weight == 9
    m.partial_fit(X[:50])
    assert m.stats_.total_weight == 59


def test_a_stream_that_has_not_begun_has_no_file(X, tmp_path):
    m = KMeans(4).partial_fit(X[:2])
    assert "4 distinct rows" in m.why_not_saved()[0]
    assert m.partial_fit(X).why_not_saved() is None


def test_batch_then_stream(X):
    m = KMeans(3, random_state=0).fit(X[::2])
    before = m.cluster_centers_.copy()
    m.partial_fit(X[1::2])
    assert m.stats_.total_weight == len(X)
    assert (m.cluster_centers_ != before).any()


def test_what_it_says_and_refuses(X):
    with pytest.warns(FitWarning, match="not converged"):
        KMeans(20, max_iter=1, tol=0, random_state=0).fit(X)
    with pytest.warns(FitWarning, match="there are 1"):
        KMeans(3).fit(np.ones((5, 2)))
    with pytest.raises(DataError, match="3 centers"):
        KMeans(3, init=np.zeros((2, 3))).fit(X)
    with pytest.raises(DataError, match="row 2, column 1"):
        KMeans(1).fit([[0.0, 1.0], [1.0, 1.0], [1.0, np.inf]])
    with pytest.raises(ValueError, match="weights"):
        KMeans(1).fit(X, sample_weight=np.zeros(len(X)))


def test_a_file_gives_back_the_same_bits(X, tmp_path):
    for m in (KMeans(3, random_state=0).fit(X), KMeans(3, variances="own", random_state=0).fit(X)):
        m.save(tmp_path / "m.likely")
        back = lk.load(tmp_path / "m.likely")
        np.testing.assert_array_equal(back.transform(X), m.transform(X))
        np.testing.assert_array_equal(back.predict(X), m.predict(X))
        back.partial_fit(X[:9])
        assert back.stats_.total_weight == len(X) + 9


def test_a_far_row_does_not_end_learning_early():
    X = np.concatenate([np.random.default_rng(0).normal(size=(5_000, 2)), [[1e9, 0.0]]])
    quick, exact = KMeans(8, random_state=0).fit(X), KMeans(8, random_state=0, tol=0).fit(X)
    assert quick.n_iter_ > 10
    assert quick.inertia_ <= 1.001 * exact.inertia_


def test_streams_refuse_rows_without_any_entry():
    X = np.random.default_rng(0).normal(size=(40, 2))
    m = KMeans(3, random_state=0).partial_fit(X)
    with pytest.raises(DataError, match="nothing but NaN in row 1"):
        m.partial_fit([[0.0, 1.0], [np.nan, np.nan]])


@pytest.mark.parametrize("start", ["k-means++", "split"])
@pytest.mark.parametrize("far", [1e16, 1e20, 1e100, 1e140])
def test_an_outlier_takes_no_digits_from_the_other_rows(far, start):
    """About a mean that one row has moved to 1e18, all other rows were one point, and the criterion was wrong."""
    rng = np.random.default_rng(0)
    X = np.concatenate([[[far, far]], rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 8.0])
    found = KMeans(3, init=start, random_state=0).fit(X)
    assert sorted(np.bincount(found.labels_).tolist()) == [1, 40, 40]
    exact = sum(((X[a:b] - X[a:b].mean(axis=0)) ** 2).sum() for a, b in ((1, 41), (41, 81)))
    assert found.inertia_ == pytest.approx(exact, rel=1e-9)
    trace = np.array(found.report_.trace)
    assert (np.diff(trace) >= -1e-9 * abs(trace[1:])).all()


@pytest.mark.parametrize("far", [1e160, 1e200, 1e300])
def test_an_outlier_beside_which_squares_vanish_is_refused(far):
    X = np.concatenate([[[far, far]], np.random.default_rng(0).normal(size=(40, 2))])
    with pytest.raises(DataError, match="column 0 that are more than 1e140 times as large as these distances"):
        KMeans(3, random_state=0).fit(X)
    alike = KMeans(2, random_state=0).fit(np.array([[far], [1.0], [1.0]]))
    assert alike.inertia_ == 0.0 and sorted(np.bincount(alike.labels_)) == [1, 2]
