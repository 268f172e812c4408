"""Forecasts and their intervals against the joint Gaussian of future frames; the steady state."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from tests.statespace.dense import Dense
from tests.statespace.linear.test_linear_gaussian import ONE, close, diffuse_problem, problem


@pytest.mark.parametrize("seed", range(0, 20, 2))
@pytest.mark.parametrize("make", [problem, diffuse_problem])
def test_forecasts_are_conditioning_of_frames_to_come(make, seed):
    model, y, u = make(seed)  # even seeds do not change with time
    steps, T = 3, len(y)
    future = None if u is None else np.random.default_rng(seed).normal(size=(steps, u.shape[1]))
    longer = np.vstack([y, np.full((steps, model.dim), np.nan)])
    oracle = Dense(model, longer, None if u is None else np.vstack([u, future]))
    mean, cov, _ = oracle.given() if model.diffuse is None else oracle.flat(model)
    ahead = model.forecast(y, steps, u, future)
    for i in range(steps):
        C, P = model.observation, oracle.block(cov, T + i)
        close(ahead.states[i], mean[T + i], 1e-9)
        close(ahead.state_covariance[i], P, 1e-9)
        seen = C @ mean[T + i] + (0.0 if u is None else model.feedthrough @ future[i])
        close(ahead.mean[i], seen, 1e-9)
        close(ahead.covariance[i], C @ P @ C.T + model.observation_covariance, 1e-9)


def test_a_forecast_from_a_belief_is_that_from_its_frames():
    model, y, _ = next(made for made in map(problem, range(0, 20, 2)) if made[2] is None)
    *_, (belief, _) = lk.follow(model, y)
    a, b = model.forecast(y, 4), model.forecast(steps=4, belief=belief)
    close(a.mean, b.mean, 1e-12)
    close(a.covariance, b.covariance, 1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_loops")
def test_intervals_hold_what_they_promise():
    """2,000 series, the 80 % interval of the third frame ahead: a binomial count, false alarms 1e-6."""
    model = lk.LinearGaussian(
        transition=[[0.9]],
        process_covariance=ONE,
        observation=ONE,
        observation_covariance=[[0.5]],
        initial_mean=[0.0],
        initial_covariance=ONE,
    )
    n, inside = 2000, 0
    for y in model.sample(n, np.random.default_rng(3), 13):
        low, high = model.forecast(y[:10], 3).interval(0.8)
        inside += int(low[2, 0] < y[12, 0] < high[2, 0])
    assert binom.ppf(5e-7, n, 0.8) <= inside <= binom.ppf(1 - 5e-7, n, 0.8)


def test_a_forecast_is_a_row_of_distributions():
    model = lk.LinearGaussian.local_level(1.0, 1.0)
    ahead = model.forecast([1.0, 2.0, 3.0], 2)
    assert len(ahead) == 2 and len(list(ahead)) == 2
    assert ahead[1].log_prob([[2.0]])[0] == pytest.approx(norm.logpdf(2.0, ahead.mean[1, 0], ahead.std[1, 0]))
    low, high = ahead.interval(0.5)
    assert high - ahead.mean == pytest.approx(norm.ppf(0.75) * ahead.std)
    assert ahead.mean - low == pytest.approx(high - ahead.mean)


def test_what_cannot_be_predicted():
    level = lk.LinearGaussian.local_level(1.0, 1.0)
    with pytest.raises(DataError, match="initial state must be determined"):
        level.forecast([np.nan], 1)
    with pytest.raises(DomainError, match="level must lie between 0 and 1"):
        level.forecast([1.0], 1).interval(1.0)
    with pytest.raises(DataError, match="one sequence"):
        level.forecast([[1.0], [2.0]], 1)
    driven = lk.LinearGaussian(
        transition=ONE,
        process_covariance=ONE,
        observation=ONE,
        observation_covariance=ONE,
        initial_mean=[0.0],
        initial_covariance=ONE,
        control=ONE,
    )
    with pytest.raises(DataError, match=r"inputs of the next 2 frames.*future="):
        driven.forecast([1.0], 2, inputs=[1.0])
    with pytest.raises(ShapeError, match=r"future must have shape \(2, 1\)"):
        driven.forecast([1.0], 2, inputs=[1.0], future=[1.0])
    short = lk.LinearGaussian(
        transition=np.ones((3, 1, 1)), process_covariance=ONE, observation=ONE, observation_covariance=ONE
    )
    with pytest.raises(DataError, match="matrices for 3 frames"):
        short.forecast([1.0, 2.0, 3.0], 1)
    with pytest.raises(DomainError, match="time-invariant"):
        short.steady_state()


def test_variances_stand_beside_standard_deviations():
    model = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=2.0)
    y = np.array([[1.0], [2.0], [np.nan], [1.5]])
    for found in (model.filter(y), model.smooth(y), model.forecast(y, 3)):
        np.testing.assert_allclose(found.variance, found.std**2)
        np.testing.assert_allclose(found.variance[..., 0], found.covariance[..., 0, 0])
    both = model.smooth([y, y[:2]])
    np.testing.assert_allclose(both.variance.values, both.std.values**2)
