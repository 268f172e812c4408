"""Pictures say what the model says: the right curve, the right content inside a contour, the right names."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.path import Path

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
from likely.plots.density_display import DensityDisplay, TraceDisplay


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


@pytest.mark.slow
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


CURVES = {
    "parzen": lambda rng: (lk.KernelDensity(), rng.normal(size=(80, 1))),
    "histogram": lambda rng: (lk.HistogramDensity(), rng.normal(size=(80, 1))),
    "t": lambda rng: (lk.StudentTDensity(), rng.standard_t(2, (80, 1))),
    "gamma": lambda rng: (lk.GammaDensity(), rng.gamma(2.0, 1.0, (80, 1))),
    "angles": lambda rng: (lk.distributions.VonMisesDensity(), rng.vonmises(3.0, 2.0, (80, 1)) + 2 * np.pi),
    "no quantiles": lambda rng: (lk.distributions.EllipticalDensity("logistic"), rng.normal(size=(80, 1))),
}


@pytest.mark.parametrize("case", CURVES)
def test_curves_of_every_distribution_hold_nearly_all_of_it(case, rng):
    estimator, X = CURVES[case](rng)
    ax = DensityDisplay.from_estimator(estimator.fit(X), X).ax_
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(y, np.exp(estimator.model_.log_prob(x[:, None])))
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.03)
    assert sum(bar.get_height() * bar.get_width() for bar in ax.patches) == pytest.approx(1.0)


def test_endless_tails_do_not_hide_the_middle(rng):
    cauchy = lk.distributions.Cauchy([0.0], [1.0])
    x, _ = DensityDisplay.from_model(cauchy, cauchy.sample(2000, rng)).ax_.lines[0].get_data()
    np.testing.assert_allclose([x[0], x[-1]], [-17.0, 17.0])  # quartiles at −1 and 1, and eight times their distance


@pytest.mark.parametrize("kind", ["parzen", "t", "histogram"])
def test_contours_of_other_distributions_hold_what_they_say(kind, rng):
    X = rng.normal(size=(300, 2))
    made = {
        "parzen": lk.KernelDensity(),
        "t": lk.StudentTDensity(dof=3),
        "histogram": lk.HistogramDensity(5, joint=True),
    }
    distribution = made[kind].fit(X).model_
    lines = DensityDisplay.from_model(distribution).ax_.collections[0]
    draws = distribution.sample(20_000, rng)
    shares = [(distribution.log_prob(draws) >= level).mean() for level in lines.levels]
    np.testing.assert_allclose(shares, [0.99, 0.9, 0.5], atol=0.15 if kind == "histogram" else 0.02)
    for path in lines.get_paths():  # lines that close: each piece ends where it begins
        assert all(np.allclose(piece[0], piece[-1]) for piece in path.to_polygons(closed_only=False))


def test_a_flat_distribution_is_a_frame(rng):
    ax = DensityDisplay.from_model(lk.Uniform([0.0, 0.0], [1.0, 2.0])).ax_
    (path,) = ax.collections[0].get_paths()
    np.testing.assert_allclose([path.vertices.min(), *path.vertices.max(axis=0)], [0.0, 1.0, 2.0], atol=0.03)


def test_counts_of_other_distributions_and_bits(rng):
    distribution = lk.NegativeBinomial([3.0], [0.4])
    x, y = DensityDisplay.from_model(distribution, distribution.sample(100, rng)).ax_.lines[0].get_data()
    np.testing.assert_allclose(y, np.exp(distribution.log_prob(x[:, None])))
    bars = DensityDisplay.from_model(lk.Bernoulli([0.3]), [[0.0], [1.0], [1.0], [np.nan]]).ax_.patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], [1 / 3, 2 / 3])
    with pytest.raises(lk.DomainError, match="plot_chow_liu_tree"):
        DensityDisplay.from_model(lk.Bernoulli([0.3, 0.5]))


def test_pairs_of_any_distribution_with_marginals(rng):
    X = rng.normal(size=(60, 3))
    assert DensityDisplay.from_estimator(lk.StudentTDensity().fit(X), X).ax_.shape == (3, 3)


def test_trace(rng):
    X = rng.normal(size=(100, 2))
    X[:10, 0] = np.nan
    report = lk.fit(lk.Gaussian.blank(X), X)
    line = TraceDisplay.from_report(report).ax_.lines[0]
    assert line.get_ydata().tolist() == report.trace
