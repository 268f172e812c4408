"""Annealed importance sampling: log Z and draws within their stated error of enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.distributions.binary.annealed_importance_sampling import (
    annealed,
    annealed_draws,
    annealed_enough,
    tell_of_error,
)
from likely.distributions.binary.log_linear_fit import exact_log_z
from likely.distributions.binary.sign_products import number_of_sets


def glass(d, strength, seed=0):
    """Fields, and couplings of variance strength²/d between all columns."""
    rng = np.random.default_rng(seed)
    b = rng.normal(size=number_of_sets(d, 2)) * strength / np.sqrt(d)
    b[1 : d + 1] = 0.2 * rng.normal(size=d)
    return b


def test_annealing_finds_the_constant_within_its_error():
    for seed in range(3):
        b = glass(12, 1.0, seed)
        found = annealed(b, 12, 400, np.random.default_rng(seed))
        assert 0 < found.error < 0.1
        assert abs(found.log_z - exact_log_z(b, 12, 2)) <= 4 * found.error


@pytest.mark.slow
@pytest.mark.parametrize("strength", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("d", [12, 16])
def test_spin_glasses_have_honest_constants(d, strength):
    off = []
    for seed in range(3):
        b = glass(d, strength, seed)
        found = annealed_enough(b, d, np.random.default_rng(seed))
        assert found.error < 0.15
        off.append((found.log_z - exact_log_z(b, d, 2)) / found.error)
    assert np.abs(off).max() <= 4.0 and np.mean(np.square(off)) <= 4.0


@pytest.mark.slow
@pytest.mark.parametrize("d", [20, 24])
def test_spin_glasses_of_sixteen_million_cells(d):
    b = glass(d, 2.0)
    found = annealed_enough(b, d, np.random.default_rng(0))
    assert found.error < 0.1 and abs(found.log_z - exact_log_z(b, d, 2)) <= 4 * found.error


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_draws_have_the_moments(strength):
    b = glass(10, strength, 5)
    distribution, n = lk.LogLinear.normalized(b, 10), 8_000
    z = annealed_draws(b, 10, n, np.random.default_rng(0))
    assert np.abs(0.5 * (1 + z.mean(axis=0)) - distribution.mean).max() <= 0.025
    assert np.abs(z.T @ z / n - exact_pairs(distribution)).max() <= 0.05


def exact_pairs(distribution):
    from likely.numerics.walsh_hadamard import all_cells

    cells = 2 * all_cells(distribution.dim) - 1
    return (cells * distribution.probabilities[:, None]).T @ cells


@pytest.mark.slow
def test_a_constant_that_is_not_known_is_reported():
    with pytest.warns(lk.FitWarning, match=r"log Z, and so every log p, has a standard error of 0.5 nats"):
        tell_of_error(0.5)
    with pytest.warns(lk.FitWarning, match="log Z"):
        lk.LogLinear.normalized(glass(250, 6.0), 250)
