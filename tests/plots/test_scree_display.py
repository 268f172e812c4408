"""The pictures show the numbers: variances, errors and coordinates as they were learned."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from likely import DomainError, ShapeError
from likely.decomposition.estimators.factor_analysis import PPCA, FactorAnalysis
from likely.decomposition.estimators.pca import PCA
from likely.plots.scree_display import ScoresDisplay, ScreeDisplay


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 5)) * [5, 3, 2, 1, 1]


def test_scree(X):
    p = PCA().fit(X)
    d = ScreeDisplay.from_estimator(p)
    np.testing.assert_allclose(d.ax_[0].lines[0].get_ydata(), p.explained_variance_)
    np.testing.assert_allclose(d.ax_[1].lines[0].get_ydata()[1:], 1 - p.explained_variance_ratio_.cumsum(), atol=1e-12)
    assert d.ax_[1].lines[0].get_ydata()[0] == pytest.approx(1.0)
    again = ScreeDisplay.from_principal(p.principal_, ax=plt.subplots(1, 2)[1])
    assert again.figure_ is not d.figure_
    with pytest.raises(ShapeError, match="two axes"):
        ScreeDisplay.from_estimator(p, ax=plt.subplots()[1])


def test_scores(X):
    for model, word in ((PCA(3).fit(X), "axis"), (PPCA(3).fit(X), "factor")):
        d = ScoresDisplay.from_estimator(model, X, which=(0, 2))
        np.testing.assert_allclose(d.ax_.collections[0].get_offsets(), model.transform(X)[:, [0, 2]])
        assert d.ax_.get_xlabel() == f"{word} 1" and d.ax_.get_ylabel() == f"{word} 3"
        with pytest.raises(DomainError, match="3 coordinates"):
            ScoresDisplay.from_estimator(model, X, which=(0, 3))


def test_scores_by_label(X):
    labels = np.array(["dog", "cat"])[np.arange(60) % 2]
    d = ScoresDisplay.from_estimator(PCA(2).fit(X), X, labels)
    assert [t.get_text() for t in d.ax_.get_legend().get_texts()] == ["dog", "cat"]
    assert [len(c.get_offsets()) for c in d.ax_.collections] == [30, 30]
    with pytest.raises(ShapeError, match="one label per row"):
        ScoresDisplay.from_estimator(PCA(2).fit(X), X, labels[:3])


@pytest.mark.parametrize("model", [PPCA(2), FactorAnalysis(1), PPCA(0)])
def test_scree_of_a_density_is_that_of_its_covariance(X, model):
    d = ScreeDisplay.from_estimator(model.fit(X))
    np.testing.assert_allclose(d.principal.variances, np.linalg.eigvalsh(model.covariance_)[::-1], rtol=1e-10)
    assert d.errors[-1] == pytest.approx(0.0, abs=1e-12)


def test_scree_of_what_has_no_axes(X):
    for other in (PPCA(2), PCA(2), object()):
        with pytest.raises(DomainError, match="ScreeDisplay: a fitted PCA, PPCA or FactorAnalysis is needed"):
            ScreeDisplay.from_estimator(other)
