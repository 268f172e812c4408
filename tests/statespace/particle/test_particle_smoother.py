"""Backward simulation against the exact smoother."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.particle import particle_smoother
from likely.statespace.particle.particle_filter import ParticleFilter
from likely.statespace.particle.particle_smoother import backward_paths, log_peak
from tests.statespace.exact_states import level, turning, velocity


@pytest.mark.slow
@pytest.mark.parametrize("make", [level, turning])
@pytest.mark.parametrize("proposal", ["bootstrap", "guided"])
def test_moments_of_paths(make, proposal):
    m = make()
    _, y = m.simulate(12, 5)
    y[6] = np.nan
    mean, covariance, _ = m.given(y)
    found = ParticleFilter(m.distributions(), 10_000, proposal=proposal, random_state=1).smooth(y, 2000)
    deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    assert np.abs((found.mean - mean) / deviation).max() < 0.16  # 0.03 a path set and particles: five deviations
    scale = deviation[:, :, None] * deviation[:, None, :]
    assert np.abs((found.covariance - covariance) / scale).max() < 0.25
    low, high = found.quantile([0.1, 0.9])[:, :, 0].T
    assert np.abs((low + 1.2816 * deviation[:, 0] - mean[:, 0]) / deviation[:, 0]).max() < 0.25
    assert np.abs((high - 1.2816 * deviation[:, 0] - mean[:, 0]) / deviation[:, 0]).max() < 0.25
    assert found.quantile(0.5).shape == mean.shape and found.variance.shape == mean.shape


def test_paths_hang_together():
    """Lag-one covariances are those of the smoother: each path is one draw of all states together."""
    m = level()
    _, y = m.simulate(6, 4)
    found = ParticleFilter(m.distributions(), 4000, random_state=2).smooth(y, 4000).paths[:, :, 0]
    _, cov = m.joint(6)
    gain = cov @ np.linalg.inv(cov + np.eye(6))
    np.testing.assert_allclose(np.cov(found.T), cov - gain @ cov, atol=0.06)


def test_smoothing_is_no_genealogy():
    """After many resamplings ancestors of early frames are few; paths drawn backwards are many."""
    m = level()
    _, y = m.simulate(60, 4)
    f = ParticleFilter(m.distributions(), 300, ess_threshold=1.0)
    few = len(np.unique(f.run(y).genealogy()[:, 0]))
    assert few < 20 < 80 < len(np.unique(f.smooth(y, 300).paths[:, 0]))


@pytest.mark.slow
def test_rejection_and_looking_at_all_agree(monkeypatch):
    m = turning()
    _, y = m.simulate(5, 3)
    f = ParticleFilter(m.distributions(), 500, random_state=3)
    quick = f.smooth(y, 2000)
    monkeypatch.setattr(particle_smoother, "log_peak", lambda distribution: None)
    slow = f.smooth(y, 2000)
    error = np.sqrt(quick.variance * 2 / 2000)
    assert (np.abs(quick.mean - slow.mean) < 5 * error).all()
    np.testing.assert_allclose(quick.covariance, slow.covariance, atol=0.08)


def test_peaks():
    g = lk.Gaussian(np.zeros((3, 2)), np.array([1.0, 4.0, 0.25]), "spherical")
    assert log_peak(g) == pytest.approx(-np.log(2 * np.pi) - np.log(0.25))
    assert log_peak(lk.Gaussian(np.zeros((3, 2)), velocity().Q)) is None
    assert log_peak(lk.StudentT(np.zeros((3, 2)), 1.0, 4.0)) is None


@pytest.mark.slow
def test_other_distributions_and_singular_noise():
    tails = StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.StudentT(x, 0.3, 3.0), lambda x: lk.Gaussian(x, 0.5))
    y = np.array([0.2, 0.4, 3.0, 3.1])
    run = ParticleFilter(tails, 800).run(y)
    paths = ParticleFilter(tails, 800).smooth(y, 400)
    np.testing.assert_allclose(paths.mean[-1], run.mean[-1], atol=0.2)
    assert paths.mean[2, 0] > run.mean[2, 0]  # the last frame confirms the jump
    m = velocity()
    _, y = m.simulate(6, 1)
    found = ParticleFilter(m.distributions(), 3000).smooth(y, 200)
    path = found.paths
    pushed = path[:, 1:] - path[:, :-1] @ m.A.T
    np.testing.assert_allclose(pushed[..., 0], 0.5 * pushed[..., 1], atol=1e-6)  # every path obeys the model
    assert np.abs(found.mean - m.given(y)[0]).max() < 0.6


def test_the_same_paths_again_and_edges():
    f = ParticleFilter(level().distributions(), 100, random_state=5)
    a, b = f.smooth([0.1, 0.2], 7), f.smooth([0.1, 0.2], 7)
    np.testing.assert_array_equal(a.paths, b.paths)
    assert a.log_prob == a.log_evidence == f.run([0.1, 0.2]).log_evidence and "7 paths" in repr(a)
    assert [s.paths.shape for s in f.smooth([[0.1, 0.2], [0.3]], 4)] == [(4, 2, 1), (4, 1, 1)]
    with pytest.raises(DomainError, match="n_paths"):
        f.smooth([0.1], 0)
    with pytest.raises(DataError, match="at least one frame"):
        f.smooth(np.empty((0, 1)))


def test_driven_models():
    u = np.array([[0.0], [2.0], [-1.0]])
    model = StateSpace(
        lk.Gaussian([0.0], 1.0), lambda x, t, u: lk.Gaussian(x + u, 0.01), lambda x: lk.Gaussian(x, 0.01)
    )
    run = ParticleFilter(model, 2000).run([0.0, 2.0, 1.0], u)
    paths = backward_paths(model, run.beliefs, 500, u)
    np.testing.assert_allclose(paths.mean(0)[:, 0], [0.0, 2.0, 1.0], atol=0.05)
