"""One-step-ahead predictions against the joint Gaussian; innovations are white."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import ShapeError


def driven(T=6):
    rng = np.random.default_rng(3)
    A = 0.6 * rng.normal(size=(T, 2, 2))
    return lk.LinearGaussian(
        transition=A,
        process_covariance=np.eye(2),
        observation=rng.normal(size=(2, 2)),
        observation_covariance=np.eye(2),
        initial_mean=[1.0, 2.0],
        initial_covariance=2 * np.eye(2),
        control=rng.normal(size=(2, 1)),
        feedthrough=rng.normal(size=(2, 1)),
    )


def test_predictions_are_those_of_the_live_filter():
    m, rng = driven(), np.random.default_rng(0)
    y, u = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    y[2, 0] = np.nan
    found, belief, total = m.predictions(y, u), None, 0.0
    for t in range(6):
        belief = m.initial_belief() if belief is None else m.predict(belief, u[t])
        S = m.observation @ belief.covariance @ m.observation.T + m.observation_covariance
        np.testing.assert_allclose(found.mean[t], m.observation @ belief.mean + m.feedthrough @ u[t], atol=1e-12)
        np.testing.assert_allclose(found.covariance[t], S, atol=1e-12)
        seen = ~np.isnan(y[t])
        total += lk.Gaussian(found.mean[t][seen], S[np.ix_(seen, seen)]).log_prob(y[t][seen][None])[0]
        belief, _ = m.update(belief, y[t], u[t])
    assert total == pytest.approx(m.log_prob(y, u)[0], abs=1e-10)


def test_an_unknown_start_is_predicted_with_infinite_variance():
    trend = lk.LinearGaussian.local_trend(1.0, 0.1, 1.0)
    found = trend.predictions(np.arange(6.0))
    assert np.isinf(found.covariance[:2, 0, 0]).all() and np.isfinite(found.covariance[2:]).all()


def test_innovations_are_white_where_the_model_is_right():
    m = lk.LinearGaussian.ar([0.9], innovation_variance=1.0, observation_variance=0.5)
    y = m.sample(1, 0, length=20_000)[0]
    found = m.predictions(y)
    z = ((y - found.mean) / found.std)[:, 0]
    assert abs(z.var() - 1) < 0.05 and abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 0.03


def test_inputs_can_be_given_to_ready_made_models_and_learned():
    rng = np.random.default_rng(1)
    u = rng.normal(size=(400, 1))
    level = lk.LinearGaussian.local_level(level_variance=0.01, observation_variance=1.0)
    y = level.sample(1, rng, length=400)[0] + 3.0 * u
    est = lk.LinearGaussianDensity(level.with_inputs(feedthrough=[[0.0]]), learn=["feedthrough"]).fit([y], inputs=[u])
    assert est.model_.feedthrough.item() == pytest.approx(3.0, abs=0.2)


def test_a_list_of_rows_is_distinguished_from_sequences():
    with pytest.raises(ShapeError, match=r"np\.array"):
        lk.LinearGaussian.constant_velocity(dim=2).smooth([[1.0, 2.0], [2.0, 3.0]])


def test_filters_of_distributions_take_a_linear_model_as_it_is():
    m = lk.LinearGaussian.ar([0.9], innovation_variance=1.0, observation_variance=0.5)
    y = m.sample(1, 1, length=30)[0]
    exact = m.log_prob(y)[0]
    assert lk.ExtendedKalmanFilter(m).log_prob(y)[0] == pytest.approx(exact, abs=1e-8)
    assert lk.ParticleFilter(m, 4000, random_state=1).run(y).log_evidence == pytest.approx(exact, abs=1.0)
