"""Pictures of evaluations show the numbers that were measured."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_iris

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
from likely.plots.evaluation_display import EvaluationDisplay


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_four_panels(iris):
    shown = EvaluationDisplay.from_estimator(lk.BayesClassifier(lk.GaussianDensity("pooled")), *iris)
    assert shown.ax_.shape == (2, 2) and shown.figure_.axes
    counts = [int(t.get_text()) for t in shown.ax_[0, 0].texts]
    assert sum(counts) == 150


def test_curves_are_the_measured_ones(iris):
    X, y = iris
    result = lk.evaluate(lk.NaiveBayes(), X[50:], y[50:])
    shown, measured = EvaluationDisplay(result), result.roc(2)
    np.testing.assert_allclose(shown.roc().lines[0].get_xdata(), measured.false_alarm)
    assert f"{measured.auc:.3f}" in shown.roc().get_legend().get_texts()[0].get_text()
    assert f"{result.equal_error_rate(2).rate:.3f}" in shown.det().get_legend().get_texts()[0].get_text()
    assert f"{result.calibration().ece:.3f}" in "".join(
        shown.calibration().get_title(loc=at) for at in ("left", "center")
    )
    np.testing.assert_allclose(shown.risk_coverage().lines[0].get_xdata()[-1], 1.0)


def test_confusion_is_shaded_by_shares_of_the_true_class(iris):
    X, y = iris
    result = lk.evaluate(lk.NaiveBayes(), X[20:], y[20:])
    shaded = np.asarray(EvaluationDisplay(result).confusion().images[0].get_array())
    np.testing.assert_allclose(shaded, result.confusion / np.bincount(y[20:])[:, None])
    assert (shaded.sum(axis=0) != 1).any()
