"""Triangular roots of covariances: exact, also for singular ones and in any units."""

from __future__ import annotations

import numpy as np
import pytest

from likely.numerics import covariance_roots

RNG = np.random.default_rng(0)


def covariance(d, rank, unit=1.0):
    b = RNG.normal(size=(d, rank)) * unit
    return b @ b.T


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
def test_a_root_squares_to_its_covariance(d, unit):
    for rank in range(1, d + 1):
        a = covariance(d, rank, unit)
        u = covariance_roots.root(a)
        assert not np.tril(u, -1).any() and u.flags.c_contiguous
        np.testing.assert_allclose(covariance_roots.square(u), a, rtol=1e-10, atol=1e-13 * unit**2 * d)


def test_nothing_has_a_root_of_nothing():
    assert not covariance_roots.root(np.zeros((3, 3))).any()


def test_columns_of_unlike_units():
    scale = np.array([1e-80, 1.0, 1e80])
    a = covariance(3, 2)
    u = covariance_roots.root(a * scale[:, None] * scale)
    np.testing.assert_allclose(covariance_roots.square(u) / scale[:, None] / scale, a, rtol=1e-9, atol=1e-12)


def test_stacks_of_regular_and_singular_ones():
    stack = np.stack([covariance(3, 3), covariance(3, 1), np.zeros((3, 3))])
    u = covariance_roots.root(stack)
    assert u.shape == stack.shape
    np.testing.assert_allclose(covariance_roots.square(u), stack, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("a", "right"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], True),
        ([[1.0, 1.0], [1.0, 1.0]], True),
        ([[1.0, 1.0 + 1e-12], [1.0 + 1e-12, 1.0]], True),  # rounding
        ([[1.0, 1.01], [1.01, 1.0]], False),
        ([[1.0, 0.5], [0.4, 1.0]], False),
        ([[-1e-30, 0.0], [0.0, 1.0]], False),
        ([[0.0, 1.0], [1.0, 1.0]], False),
    ],
)
def test_what_may_be_a_covariance(a, right):
    assert covariance_roots.is_covariance(np.array(a)) is right


def test_a_square_is_symmetric_to_the_bit():
    p = covariance_roots.square(np.triu(RNG.normal(size=(6, 6))))
    assert (p == p.T).all()
