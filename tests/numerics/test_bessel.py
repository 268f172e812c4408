"""Ratios of Bessel functions against mpmath, from 10⁻⁸ to 10⁸."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from likely.numerics.bessel import bessel_ratio, bessel_ratio_complement, bessel_slope, concentration_of, log_i0_scaled

KAPPAS = 10.0 ** np.random.default_rng(0).uniform(-8, 8, 60)


def off(got: float, exact: mp.mpf) -> float:
    return float(abs((mp.mpf(float(got)) - exact) / exact))


@pytest.mark.parametrize("part", range(3))
def test_against_mpmath(part):
    with mp.workdps(50):
        for kappa in KAPPAS[part::3]:
            K = mp.mpf(float(kappa))
            zero, one = mp.besseli(0, K), mp.besseli(1, K)
            ratio = one / zero
            assert off(log_i0_scaled(kappa), mp.log(zero) - K) <= 1e-15
            assert off(bessel_ratio(kappa), ratio) <= 1e-14
            assert off(bessel_ratio_complement(kappa), 1 - ratio) <= 1e-13
            assert off(bessel_slope(kappa), 1 - ratio / K - ratio * ratio) <= 1e-11
            assert off(concentration_of(float(ratio), float(1 - ratio)), K) <= 1e-12


def test_the_way_back_at_the_ends():
    assert concentration_of(0.0) == 0.0
    assert concentration_of(1.0 - 1e-15) == pytest.approx(5e14, rel=0.2)
    assert log_i0_scaled(0.0) == 0.0 and log_i0_scaled(1e300) < -300
