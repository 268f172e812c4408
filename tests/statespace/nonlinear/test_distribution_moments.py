"""Means and covariances of stacks of distributions, against draws of them and against formulas."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DomainError, ShapeError
from likely.statespace.nonlinear.distribution_moments import distribution_moments

MEAN = np.array([[1.0, 2.0], [0.5, 3.0], [2.0, 1.0]])


def written_out(found, n=3):
    return np.broadcast_to(found.covariance, (n, 2, 2))


@pytest.mark.parametrize(
    "distribution",
    [
        lk.Gaussian(MEAN, 0.5),
        lk.Gaussian(MEAN, [0.5, 2.0]),
        lk.Gaussian(MEAN, [[0.5, 0.2], [0.2, 2.0]]),
        lk.Gaussian(MEAN, [1.0, 2.0, 3.0], kind="spherical"),
        lk.Gaussian(MEAN, MEAN, kind="diagonal"),
        lk.Poisson(MEAN),
        lk.StudentT(MEAN, [[0.5, 0.2], [0.2, 2.0]], 9.0),
        lk.StudentT(MEAN, [0.5, 2.0], [9.0, 12.0, 15.0]),
        lk.Mixture(
            np.array([[0.9, 0.1]] * 3), lk.Gaussian(np.repeat(MEAN, 2, axis=0), np.tile([1.0, 9.0], 3), "spherical")
        ),
        lk.Mixture(np.array([[0.5, 0.5]] * 3), lk.Gaussian(np.arange(12.0).reshape(6, 2) % 5, 0.5)),
    ],
    ids=lambda distribution: type(distribution).__name__,
)
def test_moments_are_those_of_draws(distribution):
    found = distribution_moments(distribution, 3, "test", "transition", 1)
    draws = distribution.sample(60_000, np.random.default_rng(0))
    if isinstance(draws, list):
        draws = np.stack(draws, axis=1)
    for k in range(3):
        np.testing.assert_allclose(found.mean[k], draws[:, k].mean(axis=0), atol=0.05)
        want = np.cov(draws[:, k].T)
        np.testing.assert_allclose(written_out(found)[k], want, atol=0.05 * want.max())


ROOM = np.array([[[2.0, 0.5], [0.5, 1.0]], np.eye(2), np.eye(2)])


@pytest.mark.parametrize(
    ("distribution", "noisy"),
    [
        (lk.Gaussian(MEAN, 0.5), True),
        (lk.Gaussian(MEAN, 0.0), False),
        (lk.Gaussian(MEAN, [1.0, 2.0, 3.0], kind="spherical"), True),
        (lk.Gaussian(MEAN, [0.0, 2.0, 3.0], kind="spherical"), False),
        (lk.Gaussian(MEAN, [0.5, 0.0]), False),
        (lk.Gaussian(MEAN, MEAN, kind="diagonal"), True),
        (lk.Gaussian(MEAN, ROOM[0]), True),
        (lk.Gaussian(MEAN, ROOM), True),
        (lk.Gaussian(MEAN, [[1.0, 1.0], [1.0, 1.0]]), True),
        (lk.Gaussian(MEAN, [[1.0, 0.0], [0.0, 0.0]]), False),
        (lk.Poisson(MEAN), True),
    ],
)
def test_noise_of_the_first_distribution(distribution, noisy):
    found = distribution_moments(distribution, 3, "test", "transition", 1)
    root = found.noise()
    root = np.diag(root) if root.ndim == 1 else root
    np.testing.assert_allclose(root.T @ root, written_out(found)[0], atol=1e-12)
    np.testing.assert_array_equal(found.first, written_out(found)[0])
    assert found.noisy() is noisy


def test_shared_covariances_are_kept_once():
    assert distribution_moments(lk.Gaussian(MEAN, 0.5), 3, "test", "transition", 1).covariance.shape == (2, 2)


def test_counts_of_many_kinds():
    found = distribution_moments(lk.Multinomial([[0.2, 0.8]], length=5), 1, "test", "transition", 1)
    np.testing.assert_allclose(found.covariance[0], [[0.8, -0.8], [-0.8, 0.8]])


def test_a_sum_of_distributions_that_overflows_is_refused():
    wide = lk.Gaussian([[1e308]], 1.0)
    with pytest.raises(DomainError, match=r"test \(transition at frame 1\).*finite"), np.errstate(over="ignore"):
        distribution_moments(wide.sum(wide), 1, "test", "transition", 1)


def test_what_is_no_stack_of_moments():
    with pytest.raises(ShapeError, match="stack of 3"):
        distribution_moments(lk.Gaussian(MEAN[:2], 1.0), 3, "test", "transition", 1)
    with pytest.raises(ShapeError, match="stack of 3"):
        distribution_moments(lk.Gaussian(MEAN[0], 1.0), 3, "test", "transition", 1)
    with pytest.raises(DomainError, match="dof above 2"):
        distribution_moments(lk.StudentT(MEAN, 1.0, 2.0), 3, "test", "transition", 1)
    with pytest.raises(DomainError, match="no numeric mean"):
        distribution_moments("no distribution", 3, "test", "transition", 1)

    class Mine:
        mean = np.array([[np.nan]])
        variance = np.array([[1.0]])

    with pytest.raises(DomainError, match="finite"):
        distribution_moments(Mine(), 1, "test", "transition", 1)
