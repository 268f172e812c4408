"""Gaussians, sigmoids and Fourier series by their formulas."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk

B = lk.basis


def test_gaussians_and_sigmoids_by_their_formulas(rng):
    x, c, s = rng.normal(size=(40, 2)), np.array([[0.0, 1.0], [0.5, 2.0], [1.5, -1.0]]), np.array([0.7, 2.0])
    t = [(x[:, [j]] - c[:, j]) / s[j] for j in (0, 1)]
    wanted = np.hstack([np.ones((40, 1)), *(np.exp(-0.5 * one**2) for one in t)])
    np.testing.assert_allclose(B.GaussianBasis(c, s).design(x), wanted, rtol=1e-14)
    wanted = np.hstack([np.ones((40, 1)), *(1 / (1 + np.exp(-one)) for one in t)])
    np.testing.assert_allclose(B.SigmoidBasis(c, s).design(x), wanted, rtol=1e-14)
    joint = B.GaussianBasis(c, s, joint=True, constant=False)
    np.testing.assert_allclose(joint.design(x), np.exp(-0.5 * (t[0] ** 2 + t[1] ** 2)), rtol=1e-14)
    assert joint.n_functions(2) == 3 and B.GaussianBasis(c, s).n_functions(2) == 7


def test_centers_are_spaced_over_the_range(rng):
    x = np.column_stack([rng.permutation(np.linspace(0, 9, 50)), rng.permutation(np.linspace(-1, 1, 50))])
    for kind in (B.GaussianBasis, B.SigmoidBasis):
        basis = kind(4).fitted(x)
        np.testing.assert_allclose(basis.centers, [[0, -1], [3, -1 / 3], [6, 1 / 3], [9, 1]], atol=1e-14)
        np.testing.assert_allclose(basis.width, [3, 2 / 3])
        np.testing.assert_allclose(kind(4, 0.5).fitted(x).width, [0.5, 0.5])
        one = kind(1).fitted(x)
        np.testing.assert_allclose(one.centers, [[4.5, 0.0]], atol=1e-14)
        np.testing.assert_allclose(one.width, [4.5, 1.0])


def test_the_width_of_joint_functions_is_the_distance_to_the_nearest_center():
    centers = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 100.0]])
    x = np.array([[0.0, 0.0], [2.0, 200.0]])
    basis = B.GaussianBasis(centers, joint=True).fitted(x)
    np.testing.assert_allclose(basis.width, np.array([2.0, 200.0]) * 0.5)


def test_far_values_neither_overflow_nor_warn():
    with np.errstate(all="raise", under="ignore"):
        assert B.SigmoidBasis([0.0], 1.0).design([-1e6, 1e6])[:, 1].tolist() == [0.0, 1.0]
        assert B.GaussianBasis([0.0], 1.0).design([1e6])[0, 1] == 0.0


def test_fourier_series_by_formula_also_far_from_zero():
    x = np.linspace(0, 3, 50)
    wanted = [f(2 * np.pi * k * x / 1.5) for k in (1, 2, 3) for f in (np.sin, np.cos)]
    basis = B.Fourier(3, 1.5, constant=False)
    np.testing.assert_allclose(basis.design(x), np.column_stack(wanted), atol=1e-14)
    far = 1.5 * 2.0**40  # an integer of periods
    np.testing.assert_allclose(basis.design(np.round(x, 3) + far), basis.design(np.round(x, 3)), atol=3e-3)
    grid = np.arange(0, 3, 0.25)
    np.testing.assert_allclose(B.Fourier(2, 4.0).design(grid + 2.0**40), B.Fourier(2, 4.0).design(grid), atol=1e-15)
    assert B.Fourier(1).fitted([2.0, 5.0]).period == pytest.approx([3.0])
    assert B.Fourier(1, 24).names(["hour"]) == ["1", "sin(2π 1 hour/24)", "cos(2π 1 hour/24)"]


def test_bad_settings_are_errors():
    with pytest.raises(lk.DomainError, match="width must be positive"):
        B.GaussianBasis([0.0], 0.0)
    with pytest.raises(lk.ShapeError, match="width must be one number, or one for each of 2 columns"):
        B.GaussianBasis([[0.0, 1.0]], [1.0, 2.0, 3.0])
    with pytest.raises(lk.DomainError, match=r"joint=True needs centers \(M, d\), got 5: pass rows of centers"):
        B.GaussianBasis(5, joint=True)
    with pytest.raises(lk.DomainError, match="at least 1, got 0"):
        B.SigmoidBasis(0)
    with pytest.raises(lk.DomainError, match="period must be positive"):
        B.Fourier(2, 0.0)
    with pytest.raises(lk.DomainError, match="order must be an integer of at least 1"):
        B.Fourier(0)
