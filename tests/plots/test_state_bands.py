"""Pictures of hidden vectors show what the models say: lines, bands, ellipses, dots and shares, by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.plots.particle_cloud import plot_particles, plot_regimes
from likely.plots.state_bands import plot_state_estimates
from likely.plots.track_plot import plot_track

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

LEVEL = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=1.0)
Y = np.array([0.0, 1.0, np.nan, 2.0, 1.5])


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def line(ax, label):
    return next(x for x in ax.get_lines() if x.get_label() == label)


def band(ax, label):
    return next(c for c in ax.collections if c.get_label() == label).get_paths()[0].vertices


def test_the_line_is_the_smoothed_signal_and_the_band_holds_the_level():
    ax, found = plot_state_estimates(LEVEL, Y, level=0.9), LEVEL.smooth(Y)
    np.testing.assert_allclose(line(ax, "estimate").get_ydata(), found.mean[:, 0])
    top = band(ax, "90% band")[:, 1].max()
    assert top == pytest.approx((found.mean[:, 0] + 1.6448536 * found.std[:, 0]).max())
    np.testing.assert_array_equal(line(ax, "observed").get_ydata(), Y)


def test_the_filter_is_drawn_with_no_look_ahead():
    ax = plot_state_estimates(LEVEL, Y, lag=0)
    np.testing.assert_allclose(line(ax, "estimate").get_ydata(), LEVEL.filter(Y).mean[:, 0])


def test_what_comes_is_the_forecast_of_observations():
    ax, ahead = plot_state_estimates(LEVEL, Y, ahead=3, level=0.5), LEVEL.forecast(Y, 3)
    low, high = ahead.interval(0.5)
    drawn = band(ax, "forecast of observations")
    assert (drawn[:, 1].min(), drawn[:, 1].max()) == pytest.approx((low.min(), high.max()))
    assert drawn[:, 0].max() == 7.0


def test_inputs_are_part_of_the_signal():
    m = lk.LinearGaussian(
        transition=[[1.0]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        feedthrough=[[5.0]],
    )
    u = np.array([[0.0], [1.0], [2.0]])
    ax = plot_state_estimates(m, [0.0, 5.0, 10.0], inputs=u, ahead=1, future=[[3.0]])
    np.testing.assert_allclose(
        line(ax, "estimate").get_ydata(), m.observed(m.smooth([0.0, 5.0, 10.0], u), u).mean[:, 0]
    )


def test_continuous_time_needs_its_times():
    m, times = (
        lk.LinearSDE.constant_velocity(dim=1, spectral_density=0.1, observation_variance=0.1),
        [0.0, 0.5, 3.0, 4.0],
    )
    ax = plot_state_estimates(m, np.array([0.0, 0.4, 3.1, 4.0]), times=times, ahead=2)
    np.testing.assert_allclose(line(ax, "estimate").get_ydata(), m.smooth([0.0, 0.4, 3.1, 4.0], times).mean[:, 0])
    with pytest.raises(DataError, match="needs times"):
        plot_state_estimates(m, [0.0, 1.0])


def test_states_may_be_drawn_instead():
    m = lk.LinearGaussian.local_trend(1.0, 0.1, 1.0)
    ax = plot_state_estimates(m, np.arange(8.0), states=1)
    np.testing.assert_allclose(line(ax, "estimate").get_ydata(), m.smooth(np.arange(8.0)).mean[:, 1])


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"model": object()}, DomainError),
        ({"times": [1.0]}, ShapeError),
        ({"names": ["a", "b"]}, ShapeError),
        ({"states": 3}, ShapeError),
        ({"states": 0, "ahead": 2}, DomainError),
        ({"y": [Y, Y]}, DataError),
    ],
)
def test_what_cannot_be_drawn_is_said(given, error):
    with pytest.raises(error):
        plot_state_estimates(**{"model": LEVEL, "y": Y, **given})


def test_ellipses_hold_the_stated_share():
    m = lk.LinearGaussian.constant_velocity(dim=2, dt=1.0, spectral_density=0.1, observation_variance=1.0)
    y = np.cumsum(np.ones((10, 2)), axis=0)
    found = m.smooth(y)
    ax = plot_track(found, observed=y, truth=y, level=0.9, ellipses=10)
    assert len(ax.patches) == 10
    widest = 2 * np.sqrt(-2 * np.log(0.1) * np.linalg.eigvalsh(found.covariance[0][:2, :2]).max())
    assert ax.patches[0].width == pytest.approx(widest)
    with pytest.raises(ShapeError, match="columns"):
        plot_track(found, columns=(0, 9))


def test_scans_of_any_number_are_dots():
    m = lk.LinearGaussian.constant_velocity(dim=2)
    ax = plot_track(m.smooth(np.ones((3, 2))), observed=[np.ones((2, 2)), np.empty((0, 2)), np.ones((1, 2))])
    assert len(line(ax, "measured").get_xdata()) == 3


def test_a_cloud_shows_the_weighted_mean():
    walk = lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 1.0), lambda x: lk.Gaussian(x, 1.0))
    run = lk.ParticleFilter(walk, 200, random_state=1).run([0.0, 1.0, 2.0])
    ax = plot_particles(run, truth=[0.0, 1.0, 2.0], observed=[0.0, 1.0, 2.0])
    np.testing.assert_array_equal(line(ax, "mean").get_ydata(), run.mean[:, 0])
    with pytest.raises(DomainError, match="keep=True"):
        plot_particles(lk.ParticleFilter(walk, 20).run([0.0], keep=False))


def test_regimes_are_stacked_to_one():
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    ax = plot_regimes(shares, y=[1.0, 2.0, 3.0], names=["calm", "wild"], truth=[0, 1, 1])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["wild", "calm"]
    tops = [c.get_paths()[0].vertices[:, 1].max() for c in ax.collections[:2]]
    assert tops == pytest.approx([0.9, 1.0])
    with pytest.raises(ShapeError):
        plot_regimes(np.ones(3))
