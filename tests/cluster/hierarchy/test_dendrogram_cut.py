"""The likelihood of each cut is that of its Gaussians, and the cut that BIC likes is the one that made the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from likely.cluster.hierarchy.dendrogram_cut import FLOOR, bic_curve
from likely.cluster.hierarchy.linkage import linkage
from likely.core.errors import DataError, DomainError, ShapeError


def by_hand(x, label, covariance):
    """log p(rows, labels), one SciPy Gaussian a cluster."""
    n, d = x.shape
    inside = [x[label == c] - x[label == c].mean(axis=0) for c in range(label.max() + 1)]
    pooled = sum(a.T @ a for a in inside) / n + FLOOR * np.eye(d)
    total = 0.0
    for a in inside:
        own = (a.T @ a + (d + 2) * pooled) / (len(a) + d + 2)
        spread = {"pooled": pooled, "full": own, "diagonal": np.diag(np.diag(own))}[covariance]
        total += multivariate_normal.logpdf(a, np.zeros(d), spread).sum() + len(a) * np.log(len(a) / n)
    return total


@pytest.mark.parametrize("covariance", ["pooled", "full", "diagonal"])
def test_likelihood_of_each_cut_by_hand(rng, covariance):
    x = rng.normal(size=(60, 2))
    x = (x - x.mean(axis=0)) / x.std(axis=0)  # the unit in which it is reported
    tree = linkage(x, "average")
    curve = bic_curve(tree, x, covariance=covariance, max_clusters=7)
    wanted = [by_hand(x, tree.cut(k), covariance) for k in range(1, 8)]
    np.testing.assert_allclose(curve.log_likelihood, wanted, rtol=1e-9)
    price = {"pooled": lambda k: 3, "full": lambda k: 3 * k, "diagonal": lambda k: 2 * k}[covariance]
    bic = [-2 * w + (k - 1 + 2 * k + price(k)) * np.log(60) for k, w in enumerate(wanted, 1)]
    np.testing.assert_allclose(curve.bic, bic, rtol=1e-9)


@pytest.mark.parametrize("link", ["ward", "average", "likelihood"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_number_of_clusters_that_made_the_rows_is_found(rng, link, k):
    x = rng.normal(size=(200, 3)) + 9.0 * np.arange(200)[:, None] % (9 * k)
    assert bic_curve(linkage(x, link), x).best == k


def test_weights_are_copies(rng):
    x, w = rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
    weighted = bic_curve(linkage(x, weight=w), x, max_clusters=6)
    y = np.repeat(x, w, axis=0)
    copied = bic_curve(linkage(y), y, max_clusters=6)
    np.testing.assert_allclose(weighted.bic, copied.bic, rtol=1e-9)


def test_units_and_constant_columns_do_not_matter(rng):
    x = rng.normal(size=(80, 2)) + 6 * rng.integers(0, 2, (80, 1))
    tree = linkage(x)
    y = np.column_stack([x * [1e-9, 1e9] + [0.0, 1e9], np.full(80, 7.0)])
    np.testing.assert_allclose(bic_curve(tree, y).bic, bic_curve(tree, x).bic, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_and_rows_that_are_all_the_same(n):
    for x in (np.arange(float(n))[:, None], np.ones((n, 2))):
        label = linkage(x).cut(criterion="likelihood", X=x)
        assert label.shape == (n,)
    assert label.max() == 0


def test_errors():
    tree = linkage([[0.0], [1.0], [3.0]])
    with pytest.raises(ShapeError, match="the 3 rows"):
        bic_curve(tree, [[0.0]])
    with pytest.raises(DataError, match="without missing values"):
        bic_curve(tree, [[0.0], [np.nan], [1.0]])
    with pytest.raises(DomainError, match="covariance"):
        bic_curve(tree, [[0.0], [1.0], [3.0]], covariance="round")
    with pytest.raises(DomainError, match="max_clusters"):
        bic_curve(tree, [[0.0], [1.0], [3.0]], max_clusters=0)


def test_iris_has_two_clear_clusters():
    from sklearn.datasets import load_iris

    x = load_iris().data
    curve = bic_curve(linkage(x, "likelihood"), x, covariance="full")
    assert curve.best == 2  # as Fraley and Raftery find by BIC with unrestricted covariances
