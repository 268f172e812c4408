"""The nearest neighbor against scikit-learn's, and as a test of several modes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics.goodness_of_fit import mahalanobis_goodness_of_fit
from likely.metrics.unimodality import check_unimodality, mcnemar


def blobs(n=300, d=3, seed=0, centers=((-1,), (1,))):
    """Classes that are sums of unit normal distributions about centers on the first axis."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(centers), n)
    x = rng.normal(size=(n, d))
    x[:, 0] += [rng.choice(centers[c]) for c in y]
    return x, y


def gaussian(x, y):
    return QuadraticDiscriminantAnalysis().fit(x, y).predict(x)


def slow_nearest(z, y):
    """Leave-one-out nearest neighbor, by all distances."""
    d2 = ((z[:, None] - z[None]) ** 2).sum(axis=2)
    np.fill_diagonal(d2, np.inf)
    return y[d2.argmin(axis=1)]


@pytest.mark.parametrize("d", [3, 14])
def test_error_is_that_of_all_distances(d):
    x, y = blobs(d=d)
    decided = gaussian(x, y)
    x = x * np.logspace(-3, 3, d) + 100.0
    within = np.sqrt(np.mean([(x[i] - x[y == y[i]].mean(axis=0)) ** 2 for i in range(len(x))], axis=0))
    wrong = slow_nearest(x / within, y) != y
    found = check_unimodality(x, y, decided)
    assert found.neighbor.value == pytest.approx(wrong.mean())
    only = (~wrong & (decided != y)).sum(), (wrong & (decided == y)).sum()
    assert found.mcnemar == mcnemar(*only)


@pytest.mark.slow
def test_error_agrees_with_scikit_learn_on_real_data():
    from sklearn.datasets import load_wine
    from sklearn.model_selection import LeaveOneOut, cross_val_predict

    x, y = load_wine(return_X_y=True)
    within = np.sqrt(np.mean([(x[i] - x[y == y[i]].mean(axis=0)) ** 2 for i in range(len(x))], axis=0))
    theirs = cross_val_predict(KNeighborsClassifier(1), x / within, y, cv=LeaveOneOut()) != y
    assert check_unimodality(x, y, y).neighbor.value == pytest.approx(theirs.mean())


def test_whitening_by_a_covariance():
    x, y = blobs(d=2)
    mix = np.array([[3.0, 1.0], [0.5, 2.0]])
    plain = check_unimodality(x, y, y, covariance=np.eye(2))
    mixed = check_unimodality(x @ mix.T, y, y, covariance=mix @ mix.T)
    assert plain.neighbor == mixed.neighbor


def test_several_modes_are_seen():
    x, y = blobs(600, centers=((-4, 4), (0,)), seed=1)
    found = check_unimodality(x, np.array(["ends", "middle"])[y], np.array(["ends", "middle"])[np.zeros_like(y)])
    assert "neighbor is better" in found.verdict and "several modes" in found.verdict
    x, y = blobs(600)
    assert "several modes; try" not in check_unimodality(x, y, gaussian(x, y)).verdict


def test_rows_with_missing_values_are_left_out_and_said():
    x, y = blobs(100)
    x[7, 1] = np.nan
    found = check_unimodality(x, y, y)
    assert found.left_out == 1 and found.rows == 99 and "1 rows with missing values" in found.verdict
    rest = np.arange(100) != 7
    assert found.neighbor == check_unimodality(x[rest], y[rest], y[rest]).neighbor


def test_integer_weights_are_copies():
    x, y = blobs(80)
    w = np.random.default_rng(4).integers(0, 3, 80)
    decided = gaussian(x, y)
    ours = check_unimodality(x, y, decided, weight=w)
    copies = check_unimodality(*(np.repeat(a, w, axis=0) for a in (x, y, decided)))
    assert ours.neighbor == copies.neighbor and ours.mcnemar == copies.mcnemar
    assert ours.twins == copies.twins > 0.05 and "exact duplicate" in ours.verdict


def test_rows_at_one_place_vote():
    x = np.array([[0.0]] * 5 + [[9.0]] * 3)
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = check_unimodality(x, y, y, covariance=np.eye(1))
    assert found.neighbor.value == pytest.approx(1 / 8)


def test_shares_are_left_out_whole():
    x, y = blobs(100)
    found = check_unimodality(x, y, y, weight=np.full(100, 0.25))
    assert found.neighbor.value == pytest.approx(check_unimodality(x, y, y).neighbor.value)
    assert found.twins == 0


def test_constant_columns_do_no_harm():
    x, y = blobs(100)
    wide = np.c_[x, np.full(100, 7.0), y * 5.0]
    assert check_unimodality(np.c_[x, np.full(100, 7.0)], y, y).neighbor == check_unimodality(x, y, y).neighbor
    assert check_unimodality(wide, y, y).neighbor.value < check_unimodality(x, y, y).neighbor.value


def test_many_rows_are_tried_in_part():
    x, y = blobs(3000)
    part = check_unimodality(x, y, y, max_samples=500)
    assert part.rows == 500
    assert part.neighbor.low < check_unimodality(x, y, y).neighbor.value < part.neighbor.high


@pytest.mark.parametrize(("a", "b"), [(1, 9), (0, 5), (12, 30), (4, 4), (0, 0)])
def test_mcnemar_is_the_binomial_test(a, b):
    expected = scipy.stats.binomtest(a, a + b).pvalue if a + b else 1.0
    assert mcnemar(a, b).p_value == pytest.approx(expected)


def test_bad_input_is_named():
    x, y = blobs(20)
    with pytest.raises(ShapeError, match="one label per row"):
        check_unimodality(x, y[:5], y)
    with pytest.raises(DomainError, match="positive definite"):
        check_unimodality(x, y, y, covariance=-np.eye(3))
    with pytest.raises(ShapeError, match=r"\(3, 3\)"):
        check_unimodality(x, y, y, covariance=np.eye(2))
    with pytest.raises(DataError, match="row 2, column 1"):
        check_unimodality(np.where(np.arange(60).reshape(20, 3) == 7, np.inf, x), y, y)
    with pytest.raises(DataError, match="two rows"):
        check_unimodality(x[:1], y[:1], y[:1])


# ------------------------------------------------------------------------ real data


def table(data_dir, name):
    """Columns and labels of a real table."""
    a = np.loadtxt(data_dir / "tables" / name, delimiter=",", skiprows=1)
    return a[:, :-1], a[:, -1].astype(int)


def test_bananas_have_no_gaussian_shape(data_dir):
    x, y = table(data_dir, "banana_keel.csv")
    found = check_unimodality(x, y, gaussian(x, y))
    assert found.neighbor.value < 0.14 < 0.35 < found.classifier.value
    assert "try mixtures" in found.verdict


@pytest.mark.slow
def test_two_normal_distributions_are_best_told_by_two_normal_distributions(data_dir):
    """Breiman's twonorm: the least possible error is 2.3 %, and a Gaussian classifier reaches it."""
    x, y = table(data_dir, "twonorm_keel.csv")
    found = check_unimodality(x, y, gaussian(x, y))
    assert found.classifier.low < 0.023 < found.classifier.high + 0.003
    assert "The classifier is better" in found.verdict
    for c in (0, 1):
        z = x[y == c] - x[y == c].mean(axis=0)
        d2 = np.einsum("ij,jk,ik->i", z, np.linalg.inv(np.cov(z.T)), z)
        assert "agree with χ² of 20" in mahalanobis_goodness_of_fit(d2, 20).verdict
