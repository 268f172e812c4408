"""Eigenvectors with unique bases and signs, independent of rounding."""

import numpy as np
import pytest

import likely as lk
from likely.numerics.eigenvectors import canonical_basis, with_canonical_signs


def orthogonal(d, rng):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_space_has_one_basis_whatever_vectors_it_came_with(seed):
    rng = np.random.default_rng(seed)
    vectors = orthogonal(6, rng)
    values = np.array([5.0, 3.0, 3.0, 3.0, 1.0, 1.0])
    first = canonical_basis(values, vectors)
    turned = vectors.copy()
    turned[:, 1:4] = vectors[:, 1:4] @ orthogonal(3, rng)
    turned[:, 4:] = vectors[:, 5:3:-1] * [-1.0, 1.0]
    again = canonical_basis(values + rng.normal(size=6) * 1e-15, turned)
    np.testing.assert_allclose(again, first, atol=1e-10)
    np.testing.assert_allclose(first.T @ first, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(first * values @ first.T, vectors * values @ vectors.T, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["equal", "in pairs", "frame"])
def test_a_large_space_has_one_basis_too(case):
    """Equal categories as indicator columns have such a space: all axes are equally near to it."""
    rng, d = np.random.default_rng(0), 300
    fixed = {"equal": np.ones((d, 1)), "in pairs": np.kron(np.eye(d // 2), np.ones((2, 1))), "frame": np.eye(d)[:, :9]}
    m = d - fixed[case].shape[1]
    space = np.linalg.qr(np.concatenate([fixed[case], rng.normal(size=(d, m))], axis=1))[0][:, -m:]
    frame = orthogonal(d, rng) * np.geomspace(1.0, 1e6, d) if case == "frame" else None
    first = canonical_basis(np.ones(m), space, frame=frame)
    np.testing.assert_allclose(canonical_basis(np.ones(m), space @ orthogonal(m, rng), frame=frame), first, atol=1e-8)
    np.testing.assert_allclose(first.T @ first, np.eye(m), atol=1e-12)
    np.testing.assert_allclose(first @ first.T, space @ space.T, atol=1e-12)
    if case == "equal":  # Gram–Schmidt of the first axes without their mean
        at = np.arange(m)
        np.testing.assert_allclose(first[at, at], np.sqrt((d - 1.0 - at) / (d - at)), atol=1e-10)
        assert np.abs(np.triu(first[:m], 1)).max() < 1e-10


def test_axes_at_equal_distance_are_taken_in_order():
    plane = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    for sign in (1.0, -1.0):
        found = canonical_basis(np.array([2.0, 2.0]), plane * [sign, 1.0] + 1e-16)
        np.testing.assert_allclose(found, np.eye(2), atol=1e-12)


def test_values_that_differ_are_left_alone():
    vectors = orthogonal(4, np.random.default_rng(0))
    np.testing.assert_array_equal(
        canonical_basis(np.array([1e12, 3.0, 2.0, 1.0]), vectors), with_canonical_signs(vectors)
    )
    np.testing.assert_array_equal(
        canonical_basis(np.array([1.0, 1.0 - 1e-6]), vectors[:, :2]), with_canonical_signs(vectors[:, :2])
    )


def test_equal_entries_do_not_let_rounding_choose_the_sign():
    for noise in (1e-15, -1e-15):
        assert with_canonical_signs(np.array([[-1.0], [1.0 + noise]]))[0, 0] == 1.0


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_fishers_axes_of_equal_ratios_are_those_of_the_columns(order):
    """Four classes at the corners of a square, in columns of unlike units: both ratios are equal."""
    means = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])[:, order] * [1.0, 100.0]
    from likely.decomposition.discriminant_subspace import DiscriminantSubspace

    axes = DiscriminantSubspace.of(np.diag([1.0, 1e4]), means * (1 + 1e-16), np.full(4, 0.25)).axes
    np.testing.assert_allclose(axes, [[1.0, 0.0], [0.0, 0.01]], atol=1e-9)


def test_principal_axes_of_equal_variances_are_those_of_the_columns():
    x = np.concatenate([np.eye(3), -np.eye(3)])[np.random.default_rng(0).permutation(6)] @ np.diag([1.0, 1.0, 2.0])
    for solver in (lk.PCA(), lk.PCA(2)):
        found = solver.fit(x).principal_.axes
        np.testing.assert_allclose(found, np.eye(3)[[2, 0, 1]][: len(found)], atol=1e-9)
