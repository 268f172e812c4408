"""Simulated alarms: vectorized streams equal single ones; sampled distributions follow the regression posterior."""

from __future__ import annotations

import numpy as np
import pytest

from likely.recognizers.faults.fault_watch import FaultWatch
from likely.recognizers.faults.sensor_dynamics import SensorDynamics, chosen, plausible
from likely.recognizers.faults.simulated_alarms import odds_of_streams, simulated_alarms


def watch_of(normal: SensorDynamics, *faults: SensorDynamics, threshold: float = 0.0) -> FaultWatch:
    p, K = normal.dim, len(faults)
    shares = np.linspace(1.0, 0.5, 3 + K)
    return FaultWatch(
        np.zeros(p), np.ones(p), normal, faults, [0.0, 0.8, 0.95], [4.0, 0.25, 0.06], shares, 1.0,
        1e-3, 1e-2, 0.5 if K else 1.0, threshold, 100.0,
    )  # fmt: skip


@pytest.mark.parametrize("known", [0, 1])
def test_streams_at_a_time_are_those_one_by_one(known):
    rng = np.random.default_rng(0)
    distribution = SensorDynamics([0.1, -0.2], [[0.5, 0.1], [0.0, 0.7]], [[1.0, 0.3], [0.3, 0.6]], np.eye(2))
    fault = SensorDynamics([1.0, 0.0], 0.2 * np.eye(2), 2.0 * np.eye(2), 2.0 * np.eye(2))
    watch, x = (
        watch_of(distribution, *[fault] * known),
        rng.normal(size=(30, 3, 2)) * np.linspace(0.5, 3.0, 30)[:, None, None],
    )
    found = odds_of_streams(watch, iter(x))
    for b in range(3):
        belief = watch.initial_belief().replace(frame=x[0, b])
        for t in range(1, 30):
            belief, _ = watch.update(belief if t == 1 else watch.predict(belief), x[t, b])
            np.testing.assert_allclose(found[t - 1, b], belief.log_odds, rtol=1e-9, atol=1e-9)


def test_plausible_distributions_vary_as_estimates_do():
    """One sensor, memory 0.6, 1,000 frames: standard errors of memory, mean and noise, and their centers."""
    rng, n, a = np.random.default_rng(1), 1000, 0.6
    x = np.zeros((n + 100, 1))
    for t in range(1, len(x)):
        x[t] = a * x[t - 1] + rng.normal()
    found = chosen([x[100:]], np.ones(1))
    distributions = plausible(found, 4000, rng)
    noise = (distributions.root @ distributions.root.transpose(0, 2, 1)).ravel()
    assert distributions.transition.mean() == pytest.approx(found.distribution.transition[0, 0], abs=0.003)
    assert distributions.transition.std() == pytest.approx(np.sqrt((1 - a**2) / n), rel=0.15)
    assert distributions.mean.std() == pytest.approx(1 / (1 - a) / np.sqrt(n), rel=0.15)
    assert noise.mean() == pytest.approx(found.distribution.noise_covariance[0, 0], rel=0.02)
    assert noise.std() == pytest.approx(np.sqrt(2 / n), rel=0.2)
    frames = np.array(list(distributions.frames(found.distribution.initial_covariance, 2, 50, rng)))
    assert frames.shape == (50, 8000, 1) and frames[20:].var() == pytest.approx(1 / (1 - a**2), rel=0.1)


def test_no_plausible_distribution_wanders_more_slowly_than_the_frames_allow():
    """60 frames of 20 sensors: the errors of regression alone would make most distributions explode."""
    rng = np.random.default_rng(2)
    x = np.zeros((160, 20))
    for t in range(1, 160):
        x[t] = 0.9 * x[t - 1] + rng.normal(size=20)
    distributions = plausible(chosen([x[100:]], np.ones(1)), 50, rng)
    assert np.abs(np.linalg.eigvals(distributions.transition)).max() <= 0.9991
    assert all(np.isfinite(part).all() for part in distributions)


def test_a_ridge_narrows_plausible_distributions():
    """White frames: the errors of plain least squares are twice as large as a ridge of 3 leaves, or a stronger one."""
    rng = np.random.default_rng(4)
    found = chosen([rng.normal(size=(300, 3))], np.ones(1))._replace(ridge=3.0)
    distributions = plausible(found, 200, rng)
    assert (distributions.transition - found.distribution.transition).std() == pytest.approx(
        1 / np.sqrt(300 * (1 + 3.0)), rel=0.1
    )
    strongest, none = (plausible(found._replace(ridge=r), 3, np.random.default_rng(5)) for r in (3.0, np.inf))
    np.testing.assert_array_equal(strongest.transition, none.transition)


@pytest.mark.slow
def test_shares_of_simulated_alarms():
    found = chosen([np.random.default_rng(3).normal(size=(400, 2))], np.ones(1))
    always, never = (simulated_alarms(watch_of(found.distribution, threshold=c), found) for c in (-50.0, 50.0))
    assert (always, never) == (1.0, 0.0)
    few = simulated_alarms(watch_of(found.distribution, threshold=-1.0), found)
    more = simulated_alarms(watch_of(found.distribution, threshold=-2.0), found)
    assert 0 < few < more < 1
