from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

import likely as lk
from tests.distributions.digits import chances, log_uniform, worst_excess_bits, worst_relative


def test_log_density_to_the_last_bits():
    rng, n = np.random.default_rng(1), 1000
    rate = log_uniform(rng, -6, 6, n)
    x = log_uniform(rng, -8, 5.1, n) / rate
    bits, least = worst_excess_bits(lk.Exponential, lambda y, r: mpmath.log(r) - r * y, x, rate)
    print(f"Exponential: worst {bits:.2f} excess wrong bits, log p from {least:.3g}")
    assert bits <= 4 and least < -1e5


def test_distribution_function_and_quantiles():
    rng, n = np.random.default_rng(2), 300
    rate = log_uniform(rng, -6, 6, n)
    x = log_uniform(rng, -100, 2, n) / rate
    assert worst_relative(lk.Exponential, lambda y, r: -mpmath.expm1(-r * y), "cdf", x, rate) <= 1e-9
    back = lambda p, r: -mpmath.log1p(-p) / r  # noqa: E731
    assert worst_relative(lk.Exponential, back, "quantile", chances(rng, n), rate) <= 1e-9


def test_as_scipy_has_it(rng):
    distribution, other = lk.Exponential(0.4), stats.expon(scale=2.5)
    x = rng.exponential(size=50)
    np.testing.assert_allclose(distribution.log_prob(x), other.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(
        [distribution.mean[0], distribution.variance[0], distribution.median[0]],
        [other.mean(), other.var(), other.median()],
    )
    assert distribution.entropy() == pytest.approx(float(other.entropy()))
    assert lk.Exponential.fit(x).rate[0] == pytest.approx(1 / stats.expon.fit(x, floc=0)[1], rel=1e-12)


@pytest.mark.slow
def test_unbiased_rate():
    rng = np.random.default_rng(0)
    found = [lk.Exponential.unbiased_fit(rng.exponential(0.5, 5)).rate[0] for _ in range(3000)]
    assert abs(np.mean(found) - 2.0) <= 5 * np.std(found) / np.sqrt(3000)
    assert lk.Exponential.unbiased_fit([1.0, 2.0, 6.0], [1, 1, 0]).rate[0] == pytest.approx(1 / 3)
    assert lk.Exponential.moments_fit([1.0, 2.0, 6.0]).rate[0] == pytest.approx(1 / 3)


def test_the_weak_prior_keeps_the_estimate_of_a_lone_column():
    x = [1.0, 2.0, 6.0]
    assert lk.Exponential.fit(x, prior="weak").rate[0] == pytest.approx(1 / 3, rel=1e-13)


@pytest.mark.parametrize("x", [[0.0], [0.0, 0.0], [1e-100], [1e100, 3e100], [1e8, 1e8 + 1]])
def test_hazards(x):
    for prior in (None, "weak"):
        distribution = lk.Exponential.fit(x, prior=prior)
        assert np.isfinite(distribution.rate).all() and np.isfinite(distribution.log_prob(x)).all()
