"""Conditioning by one factorization against explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from likely.numerics import covariance_roots
from likely.statespace.nonlinear.joint_gaussian import (
    GRAIN,
    Linear,
    Sizes,
    backward_gain,
    condition,
    grain_of,
    joint,
    root_of,
    triangular,
)


def sizes_of(size):
    """What is computed from numbers of these sizes, and has no noise of its own."""
    return lambda: Sizes(size, GRAIN * size)


def problem(rng, d=4, p=3):
    near = Linear(
        rng.standard_normal(p), rng.standard_normal((d, p)), rng.standard_normal((p + 1, p)), sizes_of(np.ones(p))
    )
    return near, triangular(rng.standard_normal((d, d)))


def test_conditioning(rng):
    near, root = problem(rng)
    m, z = rng.standard_normal(4), rng.standard_normal(3)
    S = near.slope.T @ near.slope + near.noise.T @ near.noise
    cross = root.T @ near.slope
    found = condition(m, root, near, z - near.mean)
    np.testing.assert_allclose(found.mean, m + cross @ np.linalg.solve(S, z - near.mean))
    np.testing.assert_allclose(found.mean, m + found.white @ root)
    np.testing.assert_allclose(
        found.root.T @ found.root, root.T @ root - cross @ np.linalg.solve(S, cross.T), atol=1e-12
    )
    assert found.log_prob == pytest.approx(multivariate_normal(near.mean, S).logpdf(z))
    assert (np.tril(found.root, -1) == 0).all() and (found.root.diagonal() >= 0).all()
    np.testing.assert_allclose(near.root.T @ near.root, S)
    np.testing.assert_allclose(backward_gain(*joint(near, root)[:2]), np.linalg.solve(S, cross.T))


def test_on_a_flat(rng):
    """z₃ = z₁ + z₂ always: the third says nothing that the first two did not, and what contradicts is impossible."""
    near, root = problem(rng, p=2)
    both = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    flat = Linear(near.mean @ both, near.slope @ both, near.noise @ both, sizes_of(np.ones(3)))
    m, e = np.zeros(4), np.array([0.3, -0.2])
    two, three = condition(m, root, near, e), condition(m, root, flat, e @ both)
    np.testing.assert_allclose(three.mean, two.mean, atol=1e-9)
    np.testing.assert_allclose(three.root.T @ three.root, two.root.T @ two.root, atol=1e-9)
    S = flat.root.T @ flat.root
    assert three.log_prob == pytest.approx(multivariate_normal(np.zeros(3), S, allow_singular=True).logpdf(e @ both))
    assert condition(m, root, flat, e @ both + [0.0, 0.0, 0.1]).log_prob == -np.inf
    assert np.isfinite(backward_gain(*joint(flat, root)[:2])).all()


@pytest.mark.parametrize("at", [slice(1, 2), np.array([0, 2])])
@pytest.mark.parametrize("deviations", [[0.5, 1.0, 2.0], [0.5, 0.0, 0.0]])
def test_independent_noise_is_a_diagonal_factor(rng, at, deviations):
    near, root = problem(rng)
    short = near._replace(noise=np.array(deviations), slope=near.slope * np.sign(deviations)).columns(at)
    long = near._replace(noise=np.diag(deviations), slope=near.slope * np.sign(deviations)).columns(at)
    np.testing.assert_allclose(short.root, long.root, atol=1e-14)
    e = 0.1 * np.ones(len(short.mean)) * np.sign(short.noise)
    a, b = condition(np.zeros(4), root, short, e), condition(np.zeros(4), root, long, e)
    assert a.log_prob == pytest.approx(b.log_prob, abs=1e-12)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-12)
    np.testing.assert_allclose(covariance_roots.square(a.root), covariance_roots.square(b.root), atol=1e-12)


def test_roots(rng):
    a = rng.standard_normal((6, 4))
    np.testing.assert_allclose(triangular(a).T @ triangular(a), a.T @ a)
    np.testing.assert_allclose(triangular(a[:2]).T @ triangular(a[:2]), a[:2].T @ a[:2], atol=1e-12)
    for c in (a.T @ a, a[:2].T @ a[:2], np.zeros((3, 3)), np.diag([1e12, 0.0, 1e-12])):
        np.testing.assert_allclose(root_of(c).T @ root_of(c), c, rtol=1e-9, atol=1e-9)


def test_noise_of_a_distribution_is_no_rounding():
    """A deviation of 1e-9 about 1e9 is below the grain of numbers, and yet it is noise that somebody asked for."""
    one = np.ones((1, 1))
    near = Linear(np.array([1e9]), np.zeros((1, 1)), 1e-9 * one, sizes_of(np.array([1e9])))
    size = near.sizes().size
    wrapped = near._replace(sizes=lambda: Sizes(size, grain_of(size, 1e-18 * one)))
    assert condition(np.zeros(1), one, near, np.zeros(1)).log_prob == 0.0
    expected = -np.log(1e-9) - 0.5 * np.log(2 * np.pi)
    assert condition(np.zeros(1), one, wrapped, np.zeros(1)).log_prob == pytest.approx(expected)


@pytest.mark.parametrize("far", [1e200, 1e308])
@pytest.mark.parametrize("singular", [False, True])
def test_what_is_too_far_for_numbers_teaches_nothing(far, singular, recwarn):
    noise = np.array([[1e-3, 1e-3]]) if singular else 1e-3 * np.eye(2)
    near = Linear(np.zeros(2), np.zeros((1, 2)), noise, sizes_of(np.ones(2)))
    found = condition(np.zeros(1), np.ones((1, 1)), near, np.array([far, far]))
    assert found.log_prob == -np.inf and found.mean == 0 and found.root == 1 and not recwarn.list
