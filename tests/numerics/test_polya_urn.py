"""Dirichlet-multinomial log-probabilities against mpmath, also at the ends of the number range."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from likely.numerics.polya_urn import (
    category_deviance,
    category_factors,
    log_product,
    log_two_colors,
    nearly_certain,
    peak_factors,
    summation_error,
)


def exact(x, y, a, b):
    x, y, a, b = (mp.mpf(float(v)) for v in (x, y, a, b))
    ways = mp.loggamma(x + y + 1) - mp.loggamma(x + 1) - mp.loggamma(y + 1)
    return ways + mp.log(mp.beta(x + a, y + b)) - mp.log(mp.beta(a, b))


@pytest.mark.parametrize(
    "point",
    [
        (20.0, 3.0, 1818.634955368913, 289.42880616766746),  # logarithms of 7 each, and log p is −1.4
        (8.0, 0.0, 826473.1554788157, 9505.050530770488),
        (1.0, 123.0, 8.390370901825252, 1030.044454084201),
        (0.5, 2.25, 3.0, 1e-6),  # expected counts
        (1e6, 1e6, 1e6, 1e6),
        (0.0, 0.0, 2.0, 3.0),
    ],
)
def test_two_colors_keep_their_digits(point):
    x, y, a, b = point
    with mp.workdps(60):
        wanted = float(exact(*point))
    assert log_two_colors(x, y, x + y, a, b)[0] == pytest.approx(wanted, abs=1e-15, rel=8e-16)


def test_numbers_at_the_edge_of_their_range():
    assert log_two_colors(1.0, 1.0, 2.0, 1e300, 1e300)[0] == pytest.approx(np.log(0.5), rel=1e-15)
    assert log_two_colors(1.0, 0.0, 1.0, 1e-300, 1.0)[0] == pytest.approx(np.log(1e-300), rel=1e-15)
    assert np.isfinite(category_deviance(5.0, 1e200, 10.0, 3e200)) and category_deviance(5.0, 1e200, 15.0, 3e200) == 0.0


def test_a_color_that_was_not_drawn_waits_by_its_share():
    root, rest = category_factors(0.0, 2.5, 7.0, 4.0)
    assert root == 1.0 and rest == pytest.approx(-2.5 * np.log1p(7 / 4), rel=1e-15)


def test_products_out_of_range_are_sums_of_logarithms():
    roots = np.full((2, 400), 1e-3)
    roots[1] = 0.5
    found = log_product(roots, np.array([2.0, 1.0]), lambda z: z.prod(axis=1), lambda z: z.sum(axis=1))
    assert np.allclose(found, [400 * np.log(1e-3) - np.log(2.0), -400 * np.log(2.0)], rtol=1e-14)
    assert peak_factors(np.array(3.0), np.array(2.0))[0] > 0


def test_what_a_sum_lost():
    parts = np.array([[1.0, 2.0**-60, -1.0], [1e16, 1.0, 1.0]])
    rounded = parts.sum(axis=1)
    assert summation_error(parts, rounded).tolist() == [2.0**-60 - rounded[0], 10**16 + 2 - int(rounded[1])]


@pytest.mark.parametrize(
    ("n", "other", "one"),
    [(3.0, 1.0, 1e15), (0.3, 2.0, 1e15), (1e-6, 1e6, 1e13), (1e-8, 2.0, 0.5), (50.0, 30.0, 1e9), (1e-10, 1e-9, 1e-3),
     (5.0, 1e-4, 1e10), (1e6, 1e-12, 31.5), (1e-3, 1e-3, 32.5)],
)  # fmt: skip
def test_what_is_nearly_certain_keeps_all_digits(n, other, one):
    """log p of 10⁻¹⁵ is the chance of the contrary, where log p as a difference of numbers about 1 is noise."""
    with mp.workdps(90):
        m, a, b = (mp.mpf(v) for v in (n, other, one))
        wanted = mp.loggamma(b + m) + mp.loggamma(a + b) - mp.loggamma(b) - mp.loggamma(a + b + m)
    found = nearly_certain(np.array([-0.5, -7.0]), np.array([True, False]), other, one, n)
    assert found.tolist() == [pytest.approx(float(wanted), rel=1e-15), -7.0]


def test_what_is_not_certain_is_left_as_it_was():
    assert nearly_certain(np.array([-3.0]), np.array([True]), 5.0, 0.1, 9.0).tolist() == [-3.0]
    assert nearly_certain(np.array([-3.0]), np.array([True]), 0.5, 1e-3, 9.0).tolist() == [-3.0]
