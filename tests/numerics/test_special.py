"""Special functions against mpmath."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from likely.numerics.special import (
    SPLIT,
    count_by_count,
    deviance,
    log_gamma_density,
    log_multinomial_coefficient,
    log_poisson_peak,
    split_log_factorial,
    stirling_error,
)


def exact_stirling(z):
    z = mp.mpf(float(z))
    return mp.loggamma(z + 1) - (z + mp.mpf(1) / 2) * mp.log(z) + z - mp.log(2 * mp.pi) / 2


@pytest.mark.parametrize("low, high", [(0.0, 1.2), (1.0, 5.0)])  # by quotients, and by the series far out
def test_stirling_error(low, high, rng):
    z = 10 ** rng.uniform(low, high, 200) if low == 0 else 16 + 10 ** rng.uniform(low, high, 200)
    with mp.workdps(50):
        wanted = np.array([float(exact_stirling(v)) for v in z])
    assert np.abs(stirling_error(z) / wanted - 1).max() < 1e-15
    assert stirling_error(1e300) == pytest.approx(1 / 12e300, rel=1e-15)


def test_deviance_near_and_far(rng):
    m = 10 ** rng.uniform(-3, 3, 300)
    x = m * 10 ** (rng.choice([1.0, 0.01, 1e-6], 300) * rng.choice([-1.0, 1.0], 300))
    with mp.workdps(60):
        pairs = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, m, strict=True)]
        wanted = np.array([float(a * mp.log(a / b) - a + b) for a, b in pairs])
    assert np.abs(deviance(x, m) / wanted - 1).max() < 2e-15
    assert deviance([0.0, 1.5e308, 0.0], [2.0, 1.5e308, 0.0]).tolist() == [2.0, 0.0, 0.0]


def test_sums_of_split_factorials_are_exact_where_it_counts(rng):
    x = np.concatenate([np.arange(300.0), 10 ** rng.uniform(2, 6, 50).round(), rng.uniform(0, 900, 50)])
    parts = split_log_factorial(x)
    with mp.workdps(50):
        for v, part in zip(x, parts, strict=True):
            error = abs(mp.mpf(part.real) + mp.mpf(part.imag) - mp.loggamma(mp.mpf(float(v)) + 1))
            assert error < 1e-16 * max(float(v), 3.0)
    assert (parts.real * 2**23 == np.rint(parts.real * 2**23)).all()  # on a grid: sums have no rounding
    assert np.array_equal(split_log_factorial(np.arange(256.0)), SPLIT)


@pytest.mark.parametrize("counts", [[14868.0, 113.0, 662.0], [14.0, 234.0, 56.0], [3.5, 0.25, 900.75], [0.0, 0.0, 0.0]])
def test_log_ways_keeps_what_logarithms_of_factorials_lose(counts):
    total = sum(counts)
    with mp.workdps(50):
        wanted = mp.loggamma(mp.mpf(total) + 1) - sum(mp.loggamma(mp.mpf(v) + 1) for v in counts)
        error = abs(mp.mpf(float(log_multinomial_coefficient(np.array([counts]), np.array([total]))[0])) - wanted)
        assert error <= 3e-16 * max(total, 1.0)


def test_a_gamma_density_broadcasts_and_mixes_its_forms():
    x = np.array([[0.0, 1e-300, 0.3, 5.0, 1e300]]).T
    a, b = np.array([0.2, 1.0, 2.0, 3.0, 50.0]), np.array([2.0, 0.5, 1e-6, 1.0, 10.0])
    table = log_gamma_density(x, a, b)
    assert table.shape == (5, 5) and not np.isnan(table).any()
    each = [[float(log_gamma_density(v, c, d)) for c, d in zip(a, b, strict=True)] for v in x[:, 0]]
    assert np.array_equal(table, np.array(each))
    assert table[0].tolist() == [np.inf, np.log(0.5), -np.inf, -np.inf, -np.inf]


def test_a_peak_is_a_poisson_distribution_at_its_rate():
    x = np.array([0.0, 1e-3, 0.5, 1.0, 3.7, 15.9, 16.1, 1e6])
    with mp.workdps(50):
        X = [mp.mpf(float(v)) for v in x]
        wanted = [float(v * mp.log(v) - v - mp.loggamma(v + 1)) if v else 0.0 for v in X]
    assert np.allclose(log_poisson_peak(x), wanted, rtol=4e-16, atol=1e-16)


@pytest.mark.parametrize("rows", [1, 20])  # few rows are scored one by one, many by a table
def test_counts_that_are_not_whole_are_not_cut(rows):
    x = np.full((rows, 2), [0.5, 1.75])
    assert np.array_equal(count_by_count(x, lambda z, a: z * a, np.array([2.0, 4.0])), np.full((rows, 2), [1.0, 7.0]))
