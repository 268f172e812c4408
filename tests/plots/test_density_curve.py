from __future__ import annotations

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import likely as lk
from likely.plots.density_curve import plot_distribution


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_a_curve_is_the_density():
    ax = plot_distribution(lk.Laplace(1.0, 2.0), window=(-3.0, 5.0), label="here")
    x, p = ax.lines[0].get_data()
    np.testing.assert_allclose(p, np.exp(lk.Laplace(1.0, 2.0).log_prob(x)))
    assert ax.get_ylabel() == "density" and (x[0], x[-1]) == (-3.0, 5.0)


def test_counts_have_stems():
    ax = plot_distribution(lk.Poisson(3.0))
    x, p = ax.lines[0].get_data()
    assert (x == np.floor(x)).all() and p.sum() == pytest.approx(1.0, abs=0.01) and ax.get_ylabel() == "probability"


def test_the_axes_hold_all_curves():
    ax = plot_distribution(lk.Uniform(0.0, 3.0), window=(-1.0, 4.0))
    plot_distribution(lk.Uniform(1.0, 1.5), ax, window=(-1.0, 4.0))
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 2.0


def test_a_density_without_bound_is_cut():
    ax = plot_distribution(lk.distributions.ChiSquare(0.5), window=(0.0, 3.0))
    assert np.isfinite(ax.lines[0].get_data()[1]).all() and ax.get_ylim()[1] < 50


def test_refusals():
    for distribution in (lk.Laplace([0.0, 1.0], 1.0), lk.Laplace([[0.0], [1.0]], 1.0)):
        with pytest.raises(lk.DomainError, match="a single univariate distribution"):
            plot_distribution(distribution)
