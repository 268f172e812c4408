"""The estimator cuts the tree of `linkage`, counts weights as copies, and is a real clusterer of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks

from likely.cluster.hierarchy.estimator import AgglomerativeClustering
from likely.cluster.hierarchy.linkage import linkage
from likely.cluster.hierarchy.linkage_criteria import LINKS
from likely.core.errors import DataError, DomainError, FitWarning
from likely.metrics.clusterings import adjusted_rand_index
from tests.cases import scikit_learn_checks

EVERY_LINK = [AgglomerativeClustering(2, linkage=link) for link in LINKS]
OTHERS = [AgglomerativeClustering(), AgglomerativeClustering(3, linkage="likelihood", covariance="diagonal"),
          AgglomerativeClustering(3, linkage="complete", metric="manhattan")]  # fmt: skip
NOT_YIELDED = [
    checks.check_dataframe_column_names_consistency,
    checks.check_param_validation,
    checks.check_inplace_ensure_writeable,
]


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@scikit_learn_checks([*EVERY_LINK, *OTHERS])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", NOT_YIELDED, ids=lambda c: c.__name__)
def test_check_that_is_not_yielded(check):
    check("AgglomerativeClustering", AgglomerativeClustering(2))


@pytest.fixture
def blobs(rng):
    label = rng.choice(3, 120, p=[0.5, 0.3, 0.2])
    return rng.normal(size=(120, 2)) + 8.0 * np.array([[0, 0], [1, 0], [0, 1]])[label], label


@pytest.mark.parametrize("link", ["ward", "single", "complete", "average"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_equals_scikit_learn(blobs, link, k):
    x, _ = blobs
    wanted = AgglomerativeClustering(k, linkage=link).fit_predict(x)
    assert adjusted_rand_index(AgglomerativeClustering(k, linkage=link).fit_predict(x), wanted) == 1.0


@pytest.mark.parametrize("link", [k for k in LINKS if k not in ("single", "sum")])
def test_without_any_setting_likelihood_finds_the_clusters(blobs, link):
    x, label = blobs
    found = AgglomerativeClustering(linkage=link).fit(x)
    assert found.n_clusters_ == 3 and adjusted_rand_index(found.labels_, label) == 1.0
    np.testing.assert_array_equal(found.predict(x), found.labels_)
    assert (
        adjusted_rand_index(AgglomerativeClustering(linkage=link, criterion="likelihood").fit_predict(x), label) == 1.0
    )


def test_clusters_are_numbered_from_the_heaviest(blobs):
    x, _ = blobs
    found = AgglomerativeClustering(5).fit(x)
    counts = np.bincount(found.labels_)
    assert (np.diff(counts) <= 0).all()
    for k in range(5):
        np.testing.assert_allclose(found.centers_[k], x[found.labels_ == k].mean(axis=0))


def test_height_cuts_as_the_tree_does(blobs):
    x, _ = blobs
    found = AgglomerativeClustering(distance_threshold=3.0, linkage="average").fit(x)
    assert adjusted_rand_index(found.labels_, linkage(x, "average").cut(height=3.0)) == 1.0
    assert found.n_clusters_ == found.labels_.max() + 1


def test_weights_are_copies_and_rows_without_weight_take_no_part(blobs, rng):
    x, _ = blobs
    w = rng.integers(0, 3, len(x))
    weighted = AgglomerativeClustering(4).fit(x, sample_weight=w)
    copied = AgglomerativeClustering(4).fit(np.repeat(x, w, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w), copied.labels_)
    np.testing.assert_allclose(weighted.centers_, copied.centers_)
    assert len(weighted.dendrogram_) == (w > 0).sum()
    np.testing.assert_array_equal(weighted.labels_[w == 0], weighted.predict(x[w == 0]))


def test_distances_given(blobs, rng):
    x, label = blobs
    apart, w = squareform(pdist(x)), rng.integers(0, 3, len(x))
    found = AgglomerativeClustering(3, linkage="average", metric="precomputed").fit(apart, sample_weight=w)
    assert adjusted_rand_index(found.labels_, label) == 1.0
    with pytest.raises(DomainError, match="distances only"):
        found.predict(apart)
    with pytest.raises(DomainError, match="pass n_clusters or distance_threshold"):
        AgglomerativeClustering(linkage="average", metric="precomputed").fit(apart)


def test_missing_values(blobs, rng):
    x, _ = blobs
    x[rng.choice(len(x), 15, replace=False), 0] = np.nan
    found = AgglomerativeClustering(3, linkage="complete")
    x[0] = [np.nan, 0.0]
    x[1] = [0.0, np.nan]
    with pytest.warns(FitWarning, match="no column in common"):
        found.fit(x)
    assert found.predict(x).shape == (len(x),) and not np.isnan(found.centers_).any()
    with pytest.raises(DataError, match="complete rows"):
        AgglomerativeClustering(3, linkage="centroid").fit(x)
    with pytest.raises(DataError, match="NaN at row 0"):
        AgglomerativeClustering(3, linkage="centroid").fit(np.nan_to_num(x)).predict([[np.nan, 0.0]])


def test_ward_with_missing_values_finds_what_complete_rows_show(blobs, rng):
    x, label = blobs
    x[rng.choice(len(x), 15, replace=False), 0] = np.nan
    with pytest.warns(FitWarning, match="linkage: entries are missing: .* found by EM"):
        found = AgglomerativeClustering(3).fit(x)
    assert adjusted_rand_index(found.labels_, label) > 0.8
    assert found.predict(x).shape == (len(x),) and not np.isnan(found.centers_).any()


def test_names_of_columns_pipelines_and_clones(blobs):
    x, label = blobs
    frame = pd.DataFrame(x, columns=["width", "height"])
    found = AgglomerativeClustering(3).fit(frame)
    assert list(found.feature_names_in_) == ["width", "height"]
    assert adjusted_rand_index(make_pipeline(StandardScaler(), clone(found)).fit_predict(frame), label) == 1.0


@pytest.mark.parametrize(
    "how, match",
    [
        ({"n_clusters": 2, "distance_threshold": 1.0}, "one of n_clusters, distance_threshold and by"),
        ({"n_clusters": 2, "criterion": "likelihood"}, "one of n_clusters, distance_threshold and by"),
        ({"n_clusters": 9}, "must not exceed the number of rows"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"linkage": "wards"}, "linkage"),
        ({"metric": "feet"}, "metric"),
        ({"metric": "cosine"}, "Euclidean"),
    ],
)
def test_errors(how, match):
    with pytest.raises(ValueError, match=match):
        AgglomerativeClustering(**how).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]])


def test_new_rows_with_missing_values_are_scaled_as_linkage_scales(rng):
    """A center that lacks a column is not nearer for it."""
    x = np.array([[0.0, 0.0], [0.1, 0.1], [3.0, np.nan], [3.1, np.nan]])
    model = AgglomerativeClustering(2, linkage="average").fit(x)
    near, far = model.labels_[0], model.labels_[2]
    assert near != far
    # to the first 1.4² + 1.4² = 3.92, to the other 2 · 1.6² = 5.12, without the scale 2.56
    np.testing.assert_array_equal(model.predict([[1.45, 1.45], [3.0, 0.0]]), [near, far])


@pytest.mark.parametrize("power", [-170, 170, -300])
def test_new_rows_of_any_size_find_their_center(rng, power):
    x = np.concatenate([rng.normal(0, 1, (20, 3)), rng.normal(20, 1, (20, 3))])
    model = AgglomerativeClustering(2).fit(x * 10.0**power)
    np.testing.assert_array_equal(model.predict(x * 10.0**power), model.labels_)


def test_small_and_large_clusters_side_by_side_each_find_their_rows():
    model = AgglomerativeClustering(3).fit([[0.0], [1.0], [1e200], [1.1e200], [-1e200], [-1.1e200]])
    small, high, low = model.labels_[[0, 2, 4]]
    wanted = [small, high, low, small, small]
    np.testing.assert_array_equal(model.predict([[0.4e200], [0.9e200], [-0.8e200], [3.0], [-1e-200]]), wanted)
