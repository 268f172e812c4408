"""Gamma and Dirichlet shapes: the likelihood equations hold to rounding, for tiny and for huge shapes."""

from __future__ import annotations

import numpy as np
import pytest

from likely.numerics.gamma_dirichlet_shapes import dirichlet_shapes, gamma_shape
from likely.numerics.newton_ascent import Objective, newton_maximize
from likely.numerics.special import log_minus_digamma


def test_gamma_shapes_from_tiny_to_huge():
    a = 10.0 ** np.linspace(-8, 12, 81)
    assert np.abs(gamma_shape(log_minus_digamma(a)) / a - 1).max() <= 1e-14


@pytest.mark.parametrize("size", [2, 3, 30, 1000])
@pytest.mark.parametrize(("scale", "allowed"), [(1e-3, 1e-13), (1.0, 1e-13), (1e3, 1e-11), (1e6, 1e-5)])
def test_dirichlet_shapes_come_back(size, scale, allowed):
    alpha = scale * (np.random.default_rng(size).gamma(1, 1, size) + 0.01)
    mean_log = np.log(alpha / alpha.sum()) - log_minus_digamma(alpha) + log_minus_digamma(alpha.sum())
    assert np.abs(dirichlet_shapes(mean_log) / alpha - 1).max() <= allowed


def test_a_climb_stays_in_its_box_and_never_falls():
    heights = []

    def hill(t):
        height = -float(np.cosh(t - 3).sum())
        heights.append(height)
        return Objective(height, -np.sinh(t - 3), np.cosh(t - 3), 0.0, t)

    assert newton_maximize(hill, np.zeros(2), -5.0, 5.0) == pytest.approx([3.0, 3.0], abs=1e-12)
    assert newton_maximize(hill, np.zeros(2), -5.0, 2.0) == pytest.approx([2.0, 2.0], abs=0)


def test_where_the_hill_is_not_concave_the_climb_still_goes_up():
    """log of a Cauchy density is convex beyond its scale."""

    def hill(t):
        return Objective(
            -float(np.log1p(t**2).sum()), -2 * t / (1 + t**2), 2 * (1 - t**2) / (1 + t**2) ** 2, 0.0, np.zeros_like(t)
        )

    assert newton_maximize(hill, np.array([7.0]), -20.0, 20.0) == pytest.approx([0.0], abs=1e-9)
