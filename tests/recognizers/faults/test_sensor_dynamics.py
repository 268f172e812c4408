"""Sensor dynamics against the equivalent linear Gaussian model and the simulated process."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from likely.core.errors import DomainError, ShapeError
from likely.recognizers.faults.sensor_dynamics import PairStats, SensorDynamics, chosen, filled, learned


def process(rng: np.random.Generator, T: int) -> np.ndarray:
    A, L = (
        np.array([[0.8, 0.1, 0.0], [0.0, 0.5, 0.2], [0.0, 0.0, -0.3]]),
        np.tril(np.full((3, 3), 0.5)) + 0.5 * np.eye(3),
    )
    x = np.zeros((T + 50, 3))
    for t in range(1, len(x)):
        x[t] = A @ x[t - 1] + L @ rng.normal(size=3)
    return x[50:]


def distribution() -> SensorDynamics:
    L = np.tril(np.full((3, 3), 0.5)) + 0.5 * np.eye(3)
    return SensorDynamics([1.0, 2.0, 3.0], [[0.8, 0.1, 0.0], [0.0, 0.5, 0.2], [0.0, 0.0, -0.3]], L @ L.T, 2 * np.eye(3))


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_frames_score_as_the_linear_gaussian_model(gaps: float) -> None:
    rng, one = np.random.default_rng(0), distribution()
    x = process(rng, 30) + one.mean
    x[rng.random(x.shape) < gaps] = np.nan
    before, spread, total = None, None, 0.0
    for row in x:
        found = one.after(before, spread, row)
        before, spread, total = found.frame, found.spread, total + found.log_prob
    np.testing.assert_allclose(total, one.linear.log_prob(x - one.mean)[0], rtol=1e-9)
    if not gaps:
        np.testing.assert_allclose(total - one.after(None, None, x[0]).log_prob, one.log_probs(x).sum(), rtol=1e-12)


def test_white_errors_are_white() -> None:
    x = process(np.random.default_rng(1), 4000)
    one = distribution().replace(mean=np.zeros(3))
    u = np.array([one.after(a, None, b).white for a, b in pairwise(x)])
    np.testing.assert_allclose(np.cov(u.T), np.eye(3), atol=0.08)


def test_the_process_is_learned() -> None:
    x = process(np.random.default_rng(2), 5000)
    found = chosen([x], np.ones(1))
    np.testing.assert_allclose(found.distribution.transition, distribution().transition, atol=0.06)
    np.testing.assert_allclose(found.distribution.noise_covariance, distribution().noise_covariance, atol=0.1)
    assert len(found.left_out) == 5


def test_sums_of_segments_add_and_weights_are_copies() -> None:
    a, b = process(np.random.default_rng(3), 40), process(np.random.default_rng(4), 30)
    both = PairStats.of(a, 2.0).plus(PairStats.of(b))
    three = PairStats.of(a).plus(PairStats.of(a)).plus(PairStats.of(b))
    one, other = learned(both, 0.03, 0.1), learned(three, 0.03, 0.1)
    np.testing.assert_allclose(one.transition, other.transition)
    np.testing.assert_allclose(one.noise_covariance, other.noise_covariance)


def test_noise_is_as_wide_as_frames_to_come_show() -> None:
    """Forty sensors from 120 frames: what was learned fits these too well, and the noise makes up for it."""
    rng = np.random.default_rng(5)
    found = chosen([rng.normal(size=(120, 40))], np.ones(1)).distribution
    new = rng.normal(size=(2000, 40)) - found.mean
    u = (new[1:] - new[:-1] @ found.transition.T) @ found.whitening.T
    assert 0.85 < np.mean(u**2) < 1.15


def test_missing_values_are_filled_by_what_goes_with_them() -> None:
    rng = np.random.default_rng(6)
    z = rng.normal(size=(300, 1))
    x = np.hstack([z, z + 0.1 * rng.normal(size=(300, 1))])
    holes = x.copy()
    holes[::7, 0] = np.nan
    assert np.abs(filled(holes)[::7, 0] - x[::7, 0]).mean() < 0.2
    np.testing.assert_array_equal(filled(x), x)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ShapeError):
        SensorDynamics([0.0], np.eye(2), np.eye(2), np.eye(2))
    with pytest.raises(DomainError, match="positive definite"):
        SensorDynamics([0.0], [[0.5]], [[-1.0]], [[1.0]])
