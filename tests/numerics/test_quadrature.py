"""Adaptive quadrature: smooth integrands, jumps, poles, and reliable error bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gamma

from likely.numerics.quadrature import GAUSS, KRONROD, NODES, integrate


def test_rules_integrate_polynomials_exactly():
    for power in range(0, 23, 2):
        assert KRONROD @ NODES**power == pytest.approx(2 / (power + 1), rel=1e-14)
    for power in range(0, 14, 2):
        assert GAUSS @ NODES[1::2] ** power == pytest.approx(2 / (power + 1), rel=1e-14)


@pytest.mark.parametrize("jump", [0.1234567, 1 / 3, 0.87, 0.998, 0.9999, 1 - 1e-9, 1e-3, 1e-7])
def test_a_jump_costs_no_accuracy(jump):
    value, error = integrate(lambda x: np.where(x < jump, 1.0, 0.0), np.array([0.0, 1.0]))
    assert abs(value - jump) <= max(error, 1e-13) and error <= 1e-10  # also between the last node and the end


@pytest.mark.parametrize("pole", [0.0, 1 / 3, 1.0])
def test_what_has_no_integral_has_no_bound(pole):
    def power(x, a):
        away = np.abs(x - pole)
        return np.where(away > 0, np.where(away > 0, away, 1.0) ** -a, 0.0)

    assert integrate(lambda x: power(x, 1.0), np.array([0.0, 1.0]))[1] == np.inf
    value, error = integrate(lambda x: power(x, 0.5), np.array([0.0, 1.0]))
    assert abs(value - 2 * (np.sqrt(pole) + np.sqrt(1 - pole))) <= error <= 1e-4


def test_a_singular_end():
    value, error = integrate(lambda x: np.exp(-x) / np.sqrt(x), np.array([0.0, 1.0, 60.0]), 1e-10)
    assert abs(value - gamma(0.5)) <= 1e-6
    assert error < 1e-4
