"""Sigma points: exact moments up to their degree; covariances against the textbook's sums."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

import likely as lk
from likely.statespace.nonlinear.state_space import StateSpace
from likely.statespace.nonlinear.unscented_kalman_filter import (
    CubatureKalmanFilter,
    UnscentedKalmanFilter,
    cubature,
    regression,
    unscented,
    unscented_line,
    widened,
)

EPS = np.finfo(np.float64).eps


def moment(powers):
    """E Π ξ_j^powers_j of a white Gaussian: products of double factorials."""
    return float(np.prod([0 if k % 2 else np.prod(np.arange(k - 1, 0, -2)) for k in powers]))


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(
    "degree, make",
    [
        (3, lambda d: cubature(d, 3)),
        (5, lambda d: cubature(d, 5)),
        (3, lambda d: unscented(d, 1.0, 2.0, 0.0)),
        (3, lambda d: unscented(d, 0.5, 2.0, 1.0)),
    ],
)
def test_moments_are_exact_up_to_the_degree(d, degree, make):
    points, weights = make(d)
    assert weights.sum() == pytest.approx(1.0)
    for order in range(1, degree + 1):
        for which in combinations_with_replacement(range(d), order):
            powers = np.bincount(which, minlength=d)
            assert weights @ np.prod(points**powers, axis=1) == pytest.approx(moment(powers), abs=1e-9)


def test_the_next_even_degree_is_not_exact():
    points, weights = cubature(2, 3)
    assert weights @ points[:, 0] ** 4 != pytest.approx(3.0, abs=0.1)
    points, weights = cubature(2, 5)
    assert weights @ points[:, 0] ** 6 != pytest.approx(15.0, abs=0.1)


@pytest.mark.parametrize("alpha, beta, kappa", [(1.0, 2.0, 0.0), (1e-2, 2.0, 0.0), (1.0, 0.0, 1.0), (0.7, 0.1, 0.5)])
def test_unscented_covariance_is_that_of_the_weighted_sums(alpha, beta, kappa):
    rng, d = np.random.default_rng(1), 4
    rule = unscented(d, alpha, beta, kappa)
    z = np.exp(0.3 * rule.points @ rng.standard_normal((d, 3)))
    mean, slope, rest = unscented_line(rule, z - z[0], alpha, beta)
    for_covariance = rule.weights.copy()
    for_covariance[0] += 1 - alpha**2 + beta
    away = z - rule.weights @ z
    np.testing.assert_allclose(mean + z[0], rule.weights @ z, atol=1e-9)
    np.testing.assert_allclose(slope, rule.points.T @ (rule.weights[:, None] * away), atol=1e-9)
    want = away.T @ (for_covariance[:, None] * away)
    np.testing.assert_allclose(slope.T @ slope + rest.T @ rest, want, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("degree, d", [(3, 4), (5, 4), (5, 6)])
def test_cubature_covariance_is_that_of_the_weighted_sums(degree, d):
    rng = np.random.default_rng(2)
    rule = cubature(d, degree)
    z = np.exp(0.3 * rule.points @ rng.standard_normal((d, 2)))
    mean, slope, rest = regression(rule, z)
    away = z - rule.weights @ z
    np.testing.assert_allclose(mean, rule.weights @ z)
    np.testing.assert_allclose(slope.T @ slope + rest.T @ rest, away.T @ (rule.weights[:, None] * away), atol=1e-10)


def test_degree_five_is_closest_to_quadrature():
    """E sin(x), and the covariance of x with it, by a rule of 40 nodes."""
    x, w = hermegauss(40)
    w = w / w.sum()
    f = lambda x: np.sin(1.0 + 0.8 * x)  # noqa: E731
    error = {}
    for degree in (3, 5):
        rule = cubature(1, degree)
        mean, slope, _ = regression(rule, f(rule.points))
        error[degree] = abs(mean[0] - w @ f(x)), abs(slope[0, 0] - w @ (x * f(x)))
    assert max(error[5]) < 0.01 < min(error[3])


@pytest.mark.parametrize("make", [UnscentedKalmanFilter, CubatureKalmanFilter])
def test_covariances_that_depend_on_the_state_are_averaged(make):
    """y ~ N(0, x²) with x ~ N(2, 1) has variance E x² = 5, whatever the approximation."""
    m = StateSpace(
        lk.Gaussian([2.0], 1.0),
        lambda x: lk.Gaussian(x, 1.0),
        lambda x: lk.Gaussian(0 * x, x**2, kind="diagonal"),
    )
    f = make(m)
    belief, logp = f.update(f.initial_belief(), [1.0])
    assert logp == pytest.approx(-0.5 * (np.log(2 * np.pi * 5.0) + 1 / 5.0))
    assert belief.mean == pytest.approx([2.0])


@pytest.mark.parametrize(
    "f", [UnscentedKalmanFilter, lambda m: UnscentedKalmanFilter(m, alpha=1e-3), lambda m: CubatureKalmanFilter(m, 5)]
)
def test_the_square_of_a_gaussian_has_its_true_moments(f):
    m = StateSpace(lk.Gaussian([0.5], 0.3), lambda x: lk.Gaussian(x**2, 0.1), lambda x: lk.Gaussian(x, 1.0))
    ahead = f(m).predict(f(m).initial_belief())
    assert ahead.mean[0] == pytest.approx(0.25 + 0.3)
    assert ahead.covariance[0, 0] == pytest.approx(2 * 0.3**2 + 4 * 0.25 * 0.3 + 0.1, rel=1e-6)


def test_points_are_put_where_numbers_can_tell():
    root = np.array([[1e-9, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(widened(np.array([1e9, 5.0]), root).ravel(), [256 * EPS * 1e18, 1.0])
    assert (widened(np.zeros(2), root) == 1).all() and (widened(np.ones(2), 0 * root) == 1).all()
