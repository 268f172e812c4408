"""Pictures say what the model says: the right curve, the right content inside a contour, the right names."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.path import Path

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
from likely.plots.density import DensityDisplay, TraceDisplay


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_curve_is_the_density(rng):
    d = lk.GaussianDensity().fit(rng.normal(size=(200, 1)))
    line = DensityDisplay.from_estimator(d).ax_.lines[0]
    x, y = line.get_data()
    np.testing.assert_allclose(y, np.exp(d.model_.log_prob(x[:, None])))


def test_contours_hold_what_they_say(rng):
    g = lk.Gaussian([1.0, -2.0], [[2.0, 1.2], [1.2, 1.0]])
    ax = DensityDisplay.from_model(g, names=["width", "height"]).ax_
    draws = g.sample(20_000, rng)
    paths = ax.collections[0].get_paths()
    shares = [Path(p.vertices).contains_points(draws).mean() for p in paths]
    np.testing.assert_allclose(sorted(shares), [0.5, 0.9, 0.99], atol=0.02)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "height")


def test_three_columns_give_all_pairs(rng):
    X = rng.normal(size=(100, 3))
    d = lk.GaussianDensity().fit(X)
    shown = DensityDisplay.from_estimator(d, X)
    assert shown.ax_.shape == (3, 3)
    assert shown.ax_[2, 0].get_xlabel() == "x0" and shown.ax_[2, 0].get_ylabel() == "x2"


def test_counts_and_levels(rng):
    p = lk.PoissonDensity(prior=None).fit(rng.poisson(3.0, (200, 1)))
    x, y = DensityDisplay.from_estimator(p, rng.poisson(3.0, (50, 1))).ax_.lines[0].get_data()
    np.testing.assert_allclose(y, np.exp(p.model_.log_prob(x[:, None])))
    c = lk.CategoricalDensity(prior=None).fit(np.array([["a"], ["b"], ["b"]], dtype=object))
    ax = DensityDisplay.from_estimator(c, np.array([["a"], ["b"], ["b"]], dtype=object)).ax_
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b"]
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], [1 / 3, 2 / 3])


def test_what_cannot_be_drawn_is_said(rng):
    p = lk.PoissonDensity().fit(rng.poisson(3.0, (20, 3)))
    with pytest.raises(lk.DomainError, match="draw a marginal"):
        DensityDisplay.from_estimator(p)


def test_trace(rng):
    X = rng.normal(size=(100, 2))
    X[:10, 0] = np.nan
    report = lk.fit(lk.Gaussian.blank(X), X)
    line = TraceDisplay.from_report(report).ax_.lines[0]
    assert line.get_ydata().tolist() == report.trace
