"""Sums of draws on a lattice: run lengths are those of enumeration and of simulation, units are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from likely.decision.sequential.cusum import run_length
from likely.decision.sequential.run_lengths import common_unit, lattice_threshold, mean_run


def test_a_coin_walks_as_known():
    for last in range(5):  # reflected at 0, up or down by 1: (last + 1)(last + 2) throws on average
        up_and_down = np.zeros(2 * last + 3)
        up_and_down[[last, last + 2]] = 0.5
        assert mean_run(up_and_down, last) == pytest.approx((last + 1) * (last + 2), rel=1e-12)


def test_what_never_rises_never_ends():
    assert mean_run(np.array([1.0, 0.0, 0.0]), 0) == np.inf


@pytest.mark.parametrize("every", [50.0, 1000.0, 1e6])
def test_many_draws_of_a_smooth_distribution_give_its_threshold(every):
    z = ndtri((np.arange(40_000) + 0.5) / 40_000) - 0.5  # the distribution itself, without chance
    h = lattice_threshold(z, every)
    assert run_length(h, lambda x: ndtr(x + 0.5)) == pytest.approx(every, rel=0.02)


def test_units_are_found_and_not_made_up():
    rng = np.random.default_rng(0)
    for unit in (0.1, 1 / 3, 7e-5, 2e6):
        steps = rng.integers(-40, 40, 300) * 2 + 1
        assert common_unit(unit * steps) == pytest.approx(unit, rel=1e-6)
    assert common_unit(rng.normal(size=100)) == 0 and common_unit(np.zeros(3)) == 0
    assert common_unit(np.array([-np.inf, 0.5, 1.5])) == 0.5
