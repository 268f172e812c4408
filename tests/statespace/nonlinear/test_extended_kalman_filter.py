"""Extended Kalman filter: numerical and given Jacobians; the iterated update finds the mode."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import likely as lk
from likely.core.errors import DomainError, ShapeError
from likely.statespace.nonlinear.extended_kalman_filter import ExtendedKalmanFilter
from likely.statespace.nonlinear.state_space import StateSpace

KINDS = ("spherical", "diagonal", "full")
ROOT = Path(__file__).resolve().parents[3]
P = np.array([[4.0, 1.0], [1.0, 2.0]])
M = np.array([6.0, 5.0])


def polar(x):
    return np.stack([np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])], axis=1)


def polar_slope(x):
    r = np.hypot(x[:, 0], x[:, 1])
    return np.stack([x / r[:, None], np.stack([-x[:, 1], x[:, 0]], axis=1) / r[:, None] ** 2], axis=1)


def model(V, distribution=polar):
    return StateSpace(
        lk.Gaussian(M, P), lambda x: lk.Gaussian(np.sin(x), 0.1), lambda x: lk.Gaussian(distribution(x), V)
    )


def test_slopes_given_and_found_agree():
    y = np.random.default_rng(0).standard_normal((20, 2)) * 0.1 + [1.0, 0.5]
    found = ExtendedKalmanFilter(model([0.5, 0.01]))
    given = ExtendedKalmanFilter(
        model([0.5, 0.01]),
        observation_jacobian=polar_slope,
        transition_jacobian=lambda x: np.cos(x)[:, :, None] * np.eye(2),
    )
    np.testing.assert_allclose(found.smooth(y).mean, given.smooth(y).mean, atol=1e-7)
    np.testing.assert_allclose(found.filter(y).covariance, given.filter(y).covariance, atol=1e-7)


def by_matrices(mean, cov, Q, V, y):
    """The extended filter as textbooks have it, with matrices written out."""
    log_prob = 0.0
    for t, frame in enumerate(y):
        if t:
            F = np.diag(np.cos(mean))
            mean, cov = np.sin(mean), F @ cov @ F.T + Q
        at = np.flatnonzero(~np.isnan(frame))
        if len(at):
            H, expected = polar_slope(mean[None])[0][at], polar(mean[None])[0][at]
            S = H @ cov @ H.T + V[np.ix_(at, at)]
            log_prob += multivariate_normal(expected, S).logpdf(frame[at])
            K = np.linalg.solve(S, H @ cov).T
            mean, cov = mean + K @ (frame[at] - expected), cov - K @ H @ cov
        yield mean, cov, log_prob


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("V", [0.3, [0.5, 0.01], [[0.5, 0.03], [0.03, 0.01]]], ids=["spherical", "diagonal", "full"])
@pytest.mark.parametrize("stacked", [False, True])
def test_covariances_of_any_kind_are_those_of_matrices(V, stacked, iterations):
    """Frames observed in both entries, either and none; distributions with a shared covariance, and with their own."""
    y = np.random.default_rng(1).standard_normal((12, 2)) * 0.1 + [1.0, 0.5]
    y[2, 0] = y[5, 1] = y[7] = np.nan
    V, Q = np.array(V), np.array([0.1, 0.2])

    def seen(x):
        spread, kind = (np.stack([V] * len(x)), KINDS[V.ndim]) if stacked else (V, None)
        return lk.Gaussian(polar(x), spread, kind)

    m = StateSpace(lk.Gaussian(M, P), lambda x: lk.Gaussian(np.sin(x), Q), seen)
    f = ExtendedKalmanFilter(
        m, observation_jacobian=polar_slope, transition_jacobian=lambda x: np.cos(x)[:, :, None] * np.eye(2),
        iterations=iterations,
    )  # fmt: skip
    found, live = f.filter(y), list(lk.follow(f, y))
    assert found.log_prob == pytest.approx(sum(increment for _, increment in live), abs=1e-12)
    for t, (belief, _) in enumerate(live):
        np.testing.assert_allclose(found.mean[t], belief.mean, atol=1e-14)
        np.testing.assert_allclose(found.covariance[t], belief.covariance, atol=1e-14)
        assert (np.tril(belief.root, -1) == 0).all() and (belief.root.diagonal() >= 0).all()
    if iterations == 1:
        written_out = V * np.eye(2) if V.ndim < 2 else V
        want = list(by_matrices(M, P, np.diag(Q), written_out, y))
        np.testing.assert_allclose(found.mean, [mean for mean, _, _ in want], atol=1e-12)
        np.testing.assert_allclose(found.covariance, [cov for _, cov, _ in want], atol=1e-12)
        assert found.log_prob == pytest.approx(want[-1][2], abs=1e-11)


def test_frames_without_entries_are_refused():
    with pytest.raises(ShapeError, match="at least one entry"):
        ExtendedKalmanFilter(model(1.0)).filter(np.empty((3, 0)))


def test_slopes_may_take_time_and_inputs():
    m = StateSpace(lk.Gaussian([0.0], 1.0), lambda x, t, u: lk.Gaussian(t * x + u, 1.0), lambda x: lk.Gaussian(x, 1.0))
    y, u = np.array([1.0, -2.0, 0.5]), np.array([[0.1], [0.2], [0.3]])
    given = ExtendedKalmanFilter(m, transition_jacobian=lambda x, t, u: [[t]], observation_jacobian=lambda x: [[1.0]])
    np.testing.assert_allclose(given.filter(y, u).mean, ExtendedKalmanFilter(m).filter(y, u).mean, atol=1e-9)


def log_posterior(x, y, V):
    z = (y - polar(x[None])[0]) / np.sqrt(V)
    return -0.5 * (z @ z + (x - M) @ np.linalg.solve(P, x - M))


@pytest.mark.parametrize("y", [[7.0, 0.2], [9.0, 1.3], [3.0, -0.6]])
def test_the_iterated_update_finds_the_mode(y):
    y, V = np.array(y), np.array([0.01, 1e-4])
    f = ExtendedKalmanFilter(model(V), iterations=100)
    after, _ = f.update(f.initial_belief(), y)
    best = minimize(lambda x: -log_posterior(x, y, V), after.mean + 0.05, method="Nelder-Mead",
                    options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000})  # fmt: skip
    np.testing.assert_allclose(after.mean, best.x, atol=1e-6)
    once, _ = ExtendedKalmanFilter(model(V)).update(f.initial_belief(), y)
    assert log_posterior(after.mean, y, V) > log_posterior(once.mean, y, V)


def test_every_iteration_climbs():
    """Also where a plain Gauss–Newton step overshoots: arctan from afar sends it to and fro."""
    m = StateSpace(lk.Gaussian([3.0], 100.0), lambda x: lk.Gaussian(x, 1.0), lambda x: lk.Gaussian(np.arctan(x), 1e-4))

    def height(x):
        return -0.5 * ((0.1 - np.arctan(x)) ** 2 / 1e-4 + (x - 3.0) ** 2 / 100.0)

    heights = []
    for n in range(2, 12):
        f = ExtendedKalmanFilter(m, iterations=n)
        heights.append(height(f.update(f.initial_belief(), [0.1])[0].mean[0]))
    assert (np.diff(heights) >= -1e-9).all()
    assert heights[0] >= height(3.0)
    plain = ExtendedKalmanFilter(m).update(ExtendedKalmanFilter(m).initial_belief(), [0.1])[0].mean[0]
    assert height(plain) < height(3.0)
    assert f.update(f.initial_belief(), [0.1])[0].mean[0] == pytest.approx(np.tan(0.1), abs=1e-2)


@pytest.mark.parametrize(("curve", "y"), [(lambda x: np.sin(2 * x), -2.0), (lambda x: np.log1p(x**2), -2.0)])
def test_the_prior_shortens_steps(curve, y):
    """No state explains the observation: steps judged by the likelihood alone end beside the mode."""
    m = StateSpace(lk.Gaussian([-2.0], 1.0), lambda x: lk.Gaussian(x, 1.0), lambda x: lk.Gaussian(curve(x), 0.05))
    f = ExtendedKalmanFilter(m, iterations=60)
    x = f.update(f.initial_belief(), [y])[0].mean[0]
    height = [-0.5 * ((y - curve(z)) ** 2 / 0.05 + (z + 2.0) ** 2) for z in (x - 1e-5, x + 1e-5)]
    assert height[1] - height[0] == pytest.approx(0.0, abs=1e-7)  # 2e-5 times the slope of the log posterior


def test_counts_reach_the_mode_of_their_own_distribution():
    m = StateSpace(lk.Gaussian([1.0], 0.5), lambda x: lk.Gaussian(x, 0.1), lambda x: lk.Poisson(np.exp(x)))
    f = ExtendedKalmanFilter(m, iterations=60)
    after, _ = f.update(f.initial_belief(), [9.0])
    x = after.mean[0]
    assert 9.0 - np.exp(x) - (x - 1.0) / 0.5 == pytest.approx(0.0, abs=1e-6)  # the slope of the log posterior


def test_the_iterated_update_skips_what_is_missing():
    f = ExtendedKalmanFilter(model([0.5, 0.01]), iterations=50)
    only = ExtendedKalmanFilter(model(0.5, lambda x: polar(x)[:, :1]), iterations=50)
    here, increment = f.update(f.initial_belief(), [7.0, np.nan])
    there, same = only.update(only.initial_belief(), [7.0])
    np.testing.assert_allclose(here.mean, there.mean, atol=1e-9)
    assert increment == pytest.approx(same, abs=1e-8)


def test_slopes_that_cannot_be_used():
    with pytest.raises(DomainError, match="must be a function"):
        ExtendedKalmanFilter(model(1.0), observation_jacobian=np.eye(2))
    with pytest.raises(ShapeError, match="observation_jacobian at frame 0"):
        ExtendedKalmanFilter(model(1.0), observation_jacobian=lambda x: np.eye(3)).filter(np.zeros((1, 2)))
    with pytest.raises(DomainError, match="finite"):
        ExtendedKalmanFilter(model(1.0), observation_jacobian=lambda x: np.nan * np.eye(2)).filter(np.zeros((1, 2)))


@pytest.mark.slow
def test_a_robot_finds_its_way_by_ranges(data_dir, monkeypatch):
    """Plaza 1: the drifting odometry alone is 20.3 m off; with ranges it is less than 1 m, by evidence alone."""
    monkeypatch.syspath_prepend(ROOT / "bench")
    spec = importlib.util.spec_from_file_location("plaza", ROOT / "bench" / "plaza.py")
    plaza = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plaza)
    plaza.DATA = data_dir
    robot = plaza.load()
    u = robot.inputs["drifting"]
    assert plaza.rmse(plaza.integrated(u, robot.course["drifting"]), robot.truth) == pytest.approx(20.29, abs=0.01)
    f = ExtendedKalmanFilter(plaza.model(robot, "drifting", "a scale a beacon", plaza.START))
    assert plaza.rmse(f.filter(robot.ranges, u).mean, robot.truth) < 0.8


def test_a_distribution_cannot_change_the_belief_that_it_is_asked_about():
    def moved(x):
        x += 1.0
        return lk.Gaussian(x, 1.0)

    distributions = lk.StateSpace(lk.Gaussian([0.0], 1.0), moved, lambda x: lk.Gaussian(x, 1.0))
    f = ExtendedKalmanFilter(distributions, wrap_state=[0], transition_jacobian=lambda x: np.eye(1))
    for first in (np.nan, 0.1):
        with pytest.raises(ValueError, match="read-only"):
            f.filter([first, 0.0])
