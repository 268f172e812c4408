"""Structural models against closed forms, against the joint Gaussian, and on well-known series."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov, toeplitz
from scipy.stats import multivariate_normal

from likely import LinearGaussian
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.ragged import Ragged
from likely.statespace.linear.sums_of_models import initial_of, structural_components
from tests.statespace.dense import smoothed

DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data") / "timeseries"


def walk(T, p=1, seed=0):
    y = np.cumsum(np.random.default_rng(seed).standard_normal((T, p)), axis=0)
    y[T // 3] = np.nan
    return y


def assert_smooths(model, y, tol=1e-8):
    """States and likelihood are those of one big Gaussian."""
    found, (mean, covariance, log_prob) = model.smooth(y), smoothed(model, y)
    np.testing.assert_allclose(found.mean, mean, rtol=tol, atol=tol)
    np.testing.assert_allclose(found.covariance, covariance, rtol=tol, atol=tol)
    assert found.log_prob == pytest.approx(log_prob, rel=1e-9, abs=1e-9)
    assert model.log_prob(y)[0] == pytest.approx(log_prob, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------- tracks


def test_constant_velocity_is_discretized_exactly():
    m = LinearGaussian.constant_velocity(dim=2, dt=0.1, spectral_density=[0.3, 0.6], observation_variance=[1.0, 4.0])
    h = 0.1
    block = np.array([[h**3 / 3, h**2 / 2], [h**2 / 2, h]])
    np.testing.assert_allclose(m.process_covariance, np.kron(block, np.diag([0.3, 0.6])), rtol=1e-15)
    np.testing.assert_array_equal(m.transition[:2], [[1, 0, h, 0], [0, 1, 0, h]])
    np.testing.assert_array_equal(m.observation, np.eye(2, 4))
    np.testing.assert_array_equal(m.observation_covariance, np.diag([1.0, 4.0]))


@pytest.mark.parametrize("name", ["constant_velocity", "constant_acceleration"])
def test_tracks_with_missing_values(name):
    model = getattr(LinearGaussian, name)(
        dim=2, dt=0.5, spectral_density=0.3, observation_variance=[[1.0, 0.4], [0.4, 2.0]]
    )
    y = walk(12, 2)
    y[7, 1] = np.nan
    assert_smooths(model, y)


def test_irregular_steps():
    t = np.sort(np.random.default_rng(0).random(9)) * 5
    model = LinearGaussian.constant_velocity(dt=np.diff(t), spectral_density=0.3)
    assert model.transition.shape == (9, 2, 2)
    np.testing.assert_array_equal(model.transition[1:, 0, 1], np.diff(t))
    assert_smooths(model, walk(9))


def test_two_observations_at_once():
    t = np.array([0.0, 1.0, 1.0, 2.0, 3.5])
    assert_smooths(
        LinearGaussian.constant_velocity(dt=np.diff(t), observation_variance=0.5), np.array([0.0, 1.0, 2.0, 1.0, 3.0])
    )


def test_one_step_of_twice_the_length_is_two_steps():
    one, two = (LinearGaussian.constant_acceleration(dt=h, spectral_density=2.0) for h in (0.2, 0.4))
    A, Q = one.transition, one.process_covariance
    np.testing.assert_allclose(A @ A, two.transition, rtol=1e-14)
    np.testing.assert_allclose(A @ Q @ A.T + Q, two.process_covariance, rtol=1e-13)


# ------------------------------------------------------------- levels and seasons


def test_levels_and_trends():
    assert_smooths(LinearGaussian.local_level(2.0, 3.0), walk(20))
    assert_smooths(LinearGaussian.local_level([[2.0, 1.0], [1.0, 2.0]], 3.0, dim=2), walk(15, 2))
    assert_smooths(LinearGaussian.local_trend(0.3, 0.1, 2.0), walk(20))
    assert_smooths(LinearGaussian.local_trend(0.0, 0.1, 2.0, dim=2), walk(12, 2))
    assert_smooths(LinearGaussian.local_trend(0.3, 0.0, 2.0, initial=([1.0, 0.0], [4.0, 0.1])), walk(20))


@pytest.mark.parametrize(
    "form, period", [("dummy", 4), ("trigonometric", 4), ("trigonometric", 5), ("trigonometric", 4.7)]
)
def test_seasons(form, period):
    season = LinearGaussian.seasonal(period, 0.2, 1.0, form=form)
    assert_smooths(season, walk(16))
    assert_smooths(season + LinearGaussian.local_level(0.5, 1.0), walk(16), tol=1e-7)


@pytest.mark.parametrize("period", [2, 3, 4, 7, 12])
def test_seasons_repeat_and_add_up_to_nothing(period):
    rng = np.random.default_rng(period)
    for form in ("dummy", "trigonometric"):
        m = LinearGaussian.seasonal(period, form=form)
        assert m.transition.shape == (period - 1, period - 1)
        x, seen = rng.standard_normal(period - 1), []
        for _ in range(2 * period):
            seen.append(float((m.observation @ x)[0]))
            x = m.transition @ x
        np.testing.assert_allclose(seen[:period], seen[period:], atol=1e-12)
        assert abs(sum(seen[:period])) < 1e-12


def test_a_fixed_season_is_the_same_in_both_forms():
    """Without noise, dummies and all waves span the same patterns, so smoothed seasons agree."""
    y = walk(40) + np.tile([3.0, -1.0, 0.0, -2.0], 10)[:, None]
    level = LinearGaussian.local_level(1.0, 0.5)
    found = []
    for form in ("dummy", "trigonometric"):
        season = LinearGaussian.seasonal(4, form=form)
        found.append(structural_components((level + season).smooth(y), level, season)[1])
    np.testing.assert_allclose(found[0].mean, found[1].mean, atol=1e-8)
    np.testing.assert_allclose(found[0].covariance, found[1].covariance, atol=1e-8)


def test_cycles():
    m = LinearGaussian.cycle(8, 0.9, cycle_variance=2.0, observation_variance=1.0)
    np.testing.assert_allclose(
        m.initial_covariance, solve_discrete_lyapunov(m.transition, m.process_covariance), rtol=1e-12, atol=1e-12
    )
    assert_smooths(m, walk(20))
    assert_smooths(LinearGaussian.cycle(8, 1.0, cycle_variance=2.0, observation_variance=1.0), walk(20))
    x = np.linalg.matrix_power(LinearGaussian.cycle(8, 1.0).transition, 8)
    np.testing.assert_allclose(x, np.eye(2), atol=1e-14)


# --------------------------------------------------------------- autoregressions


def test_autoregression_is_its_autocovariance():
    """log p of AR(2) by the Toeplitz matrix of its autocovariances, found from the Yule–Walker equations."""
    a, b, q = 0.6, -0.3, 2.0
    gamma = [q * (1 - b) / ((1 + b) * ((1 - b) ** 2 - a**2))]
    gamma.append(a * gamma[0] / (1 - b))
    for _ in range(10):
        gamma.append(a * gamma[-1] + b * gamma[-2])
    y = walk(12)[:, 0]
    y[4] = 0.3
    model = LinearGaussian.ar([a, b], innovation_variance=q)
    np.testing.assert_allclose(model.initial_covariance, toeplitz(gamma[:2]), rtol=1e-12)
    want = multivariate_normal(np.zeros(12), toeplitz(gamma[:12])).logpdf(y)
    assert model.log_prob(y)[0] == pytest.approx(want, rel=1e-10)
    noisy = multivariate_normal(np.full(12, 3.0), toeplitz(gamma[:12]) + 0.5 * np.eye(12)).logpdf(y)
    assert LinearGaussian.ar([a, b], q, observation_variance=0.5, mean=3.0).log_prob(y)[0] == pytest.approx(
        noisy, rel=1e-10
    )


def test_autoregression_about_an_unknown_mean():
    model = LinearGaussian.ar([0.5, 0.2], innovation_variance=1.0, observation_variance=0.1, mean=None)
    assert initial_of(model)[2].shape == (3, 1)
    y = walk(15) + 100.0
    assert_smooths(model, y)
    g = LinearGaussian.ar([0.5, 0.2], innovation_variance=1.0, observation_variance=0.1)
    V = np.zeros((15, 15))
    P, power = g.initial_covariance, np.eye(2)
    for k in range(15):
        V += (power @ P)[0, 0] * (np.eye(15, k=k) + np.eye(15, k=-k)) * (0.5 if k == 0 else 1.0)
        power = g.transition @ power
    seen = ~np.isnan(y[:, 0])
    W = np.linalg.inv((V + 0.1 * np.eye(15))[np.ix_(seen, seen)])
    best = (W @ y[seen, 0]).sum() / W.sum()
    np.testing.assert_allclose(model.smooth(y).mean[:, 2], best, rtol=1e-9)


def test_vector_autoregression():
    phi = np.array([[[0.5, 0.1], [0.0, 0.4]], [[-0.2, 0.0], [0.1, 0.1]]])
    model = LinearGaussian.ar(
        phi, innovation_variance=[[1.0, 0.3], [0.3, 2.0]], observation_variance=0.2, mean=[1.0, -1.0]
    )
    np.testing.assert_array_equal(model.transition[:2, :4], np.concatenate(phi, axis=1))
    assert_smooths(model, walk(10, 2))


def test_autoregression_that_does_not_settle_can_be_given_a_start():
    with pytest.raises(DomainError, match="unit circle"):
        LinearGaussian.ar([1.2, -0.2])
    model = LinearGaussian.ar([1.2, -0.2], observation_variance=1.0, initial=(0.0, 10.0))
    np.testing.assert_array_equal(model.initial_covariance, 10.0 * np.eye(2))
    assert_smooths(model, walk(10))
    about = LinearGaussian.ar(
        [1.2, -0.2], observation_variance=1.0, mean=5.0, initial=([0.0, 0.0, 5.0], [10.0, 10.0, 0.0])
    )
    assert_smooths(about, walk(10))


# ------------------------------------------------------------------------- sums


def test_sum_of_three():
    parts = [
        LinearGaussian.local_trend(0.1, 0.1, 1.0), LinearGaussian.seasonal(4, 0.2),
        LinearGaussian.ar([0.5], 0.3, observation_variance=0.5),
    ]  # fmt: skip
    model = parts[0] + parts[1] + parts[2]
    again = sum(parts)
    np.testing.assert_array_equal(model.transition, again.transition)
    np.testing.assert_array_equal(model.observation_covariance, [[1.5]])
    np.testing.assert_array_equal(model.observation, [[1, 0, 1, 0, 0, 1]])
    _, P, D = initial_of(model)
    assert np.linalg.matrix_rank(D) == 5
    np.testing.assert_allclose(P[5, 5], 0.3 / 0.75)
    y = walk(20)
    assert_smooths(model, y, tol=1e-7)
    found = model.smooth(y)
    signals = structural_components(found, *parts)
    total = sum(signal.mean for signal in signals)
    np.testing.assert_allclose(total, found.mean @ model.observation.T, atol=1e-12)
    np.testing.assert_allclose(signals[0].covariance[:, 0, 0], found.covariance[:, 0, 0])


def test_components_of_many_series():
    level, season = LinearGaussian.local_level(1.0, 1.0), LinearGaussian.seasonal(3, 0.1)
    many = [walk(9), walk(14, seed=1)]
    found = structural_components((level + season).smooth(many), level, season)
    assert isinstance(found[0].mean, Ragged)
    alone = structural_components((level + season).smooth(many[1]), level, season)
    np.testing.assert_allclose(found[1].mean[1], alone[1].mean, atol=1e-12)
    with pytest.raises(ShapeError, match="3 states"):
        structural_components((level + season).smooth(many[0]), level)


def test_filtered_components_before_the_start_is_known():
    level, season = LinearGaussian.local_level(1.0, 1.0), LinearGaussian.seasonal(3, 0.1)
    first = structural_components((level + season).filter(walk(9)), level, season)[0]
    assert np.isinf(first.covariance[0]).all()
    assert np.isfinite(first.covariance[-1]).all()


def test_sum_over_time():
    """A part that changes with time makes the sum do so; two must agree in length."""
    moving, still = LinearGaussian.constant_velocity(dt=[1.0, 2.0, 0.5, 1.0]), LinearGaussian.local_level(1.0, 1.0)
    both = moving + LinearGaussian.ar([0.5])
    assert both.transition.shape == (5, 3, 3)
    assert_smooths(both, np.array([0.0, 1.0, 3.0, 2.0, 5.0]))
    with pytest.raises(ShapeError, match="same number of frames"):
        moving + still + LinearGaussian.constant_velocity(dt=[1.0, 1.0])


def test_sum_shares_its_inputs():
    one = LinearGaussian(
        transition=[[0.5]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        control=[[2.0, 0.0]],
    )
    two = LinearGaussian(
        transition=[[0.5]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        feedthrough=[[0.0, 3.0]],
    )
    model = one + two + LinearGaussian.ar([0.1])
    np.testing.assert_array_equal(model.control, [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(model.feedthrough, [[0.0, 3.0]])
    other = LinearGaussian(
        transition=[[0.5]],
        process_covariance=[[1.0]],
        observation=[[1.0]],
        observation_covariance=[[1.0]],
        initial_mean=[0.0],
        initial_covariance=[[1.0]],
        control=[[2.0]],
    )
    with pytest.raises(ShapeError, match="same number of them"):
        one + other


def test_what_does_not_add():
    one = LinearGaussian.local_level()
    with pytest.raises(ShapeError, match="1 and 2"):
        one + LinearGaussian.local_level(dim=2)
    with pytest.raises(DomainError, match="adds to another"):
        one + 3.0
    with pytest.raises(DomainError, match="adds to another"):
        3.0 + one


# --------------------------------------------------------------------- bad input

BAD = [
    (lambda L: L.constant_velocity(dim=0), DomainError, "integer of at least 1"),
    (lambda L: L.constant_velocity(dim=1.5), DomainError, "integer"),
    (lambda L: L.constant_velocity(dim=2, spectral_density=[1.0, 2.0, 3.0]), ShapeError, "2 variances"),
    (lambda L: L.constant_velocity(spectral_density=-1.0), DomainError, "positive semidefinite"),
    (lambda L: L.constant_velocity(dt=[1.0, -1.0]), DomainError, "negative"),
    (lambda L: L.constant_velocity(dt=[[1.0]]), ShapeError, "T − 1"),
    (lambda L: L.constant_velocity(dt=np.nan), DomainError, "finite"),
    (lambda L: L.local_level(level_variance="much"), ShapeError, "numbers"),
    (lambda L: L.local_level([[1.0, 2.0], [2.0, 1.0]], dim=2), DomainError, "covariance"),
    (lambda L: L.local_level(initial=3.0), ShapeError, r"\(mean, covariance\)"),
    (lambda L: L.local_level(initial=([1.0, 2.0], 1.0)), ShapeError, r"shape \(1,\)"),
    (lambda L: L.seasonal(4.5), DomainError, "integer of at least 2"),
    (lambda L: L.seasonal(1), DomainError, "integer of at least 2"),
    (lambda L: L.seasonal(np.inf), DomainError, "finite"),
    (lambda L: L.seasonal(12, form="fourier"), DomainError, "'dummy', 'trigonometric'"),
    (lambda L: L.seasonal(12, form="trigonometric", harmonics=7), DomainError, "at most 6"),
    (lambda L: L.seasonal(12, harmonics=2), DomainError, "trigonometric"),
    (lambda L: L.cycle(1.5), DomainError, "at least 2"),
    (lambda L: L.cycle(5, 1.1), DomainError, "0 … 1"),
    (lambda L: L.ar([]), ShapeError, r"\(K,\)"),
    (lambda L: L.ar([[0.5, 0.1]]), ShapeError, r"\(K, p, p\)"),
    (lambda L: L.ar([0.5], mean=[1.0, 2.0]), ShapeError, "mean"),
]  # fmt: skip


@pytest.mark.parametrize("make, error, words", BAD)
def test_bad_input(make, error, words):
    with pytest.raises(error, match=words):
        make(LinearGaussian)


# --------------------------------------------------------------------- real data


def column(name):
    path = DATA / f"{name}.csv"
    if not path.exists():
        pytest.skip("no data: the series are not here")
    return np.array([float(line.split(",")[-1] or "nan") for line in path.read_text().split()[1:]])


def test_co2_through_its_missing_values():
    """The season of the years 1970–75, in which no week is missing, is found again where a tenth is taken out."""
    y = column("mauna_loa_co2_weekly")
    y = y[600:900]
    trend = LinearGaussian.local_trend(0.02, 1e-6, 0.05)
    season = LinearGaussian.seasonal(365.25 / 7, 1e-5, form="trigonometric", harmonics=3)
    whole = (trend + season).smooth(y)
    gone = np.random.default_rng(0).random(len(y)) < 0.1
    some = (trend + season).smooth(np.where(gone, np.nan, y))
    seen = some.mean @ (trend + season).observation.T
    both = gone & ~np.isnan(y)
    assert np.sqrt(np.mean((seen[both, 0] - y[both]) ** 2)) < 0.5  # ppm, where the season swings by 6
    up, _ = structural_components(whole, trend, season)
    assert 0.5 < (up.mean[-1, 0] - up.mean[0, 0]) / (300 * 7 / 365.25) < 2.0  # ppm a year


def test_an_infinite_value_is_named():
    with pytest.raises(DataError, match="frame 2"):
        LinearGaussian.local_level().smooth([1.0, 2.0, np.inf])
