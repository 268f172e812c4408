from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import likely as lk
from tests.distributions.digits import chances, log_uniform, worst_excess_bits, worst_relative


@pytest.mark.slow
def test_log_density_to_the_last_bits():
    rng, n = np.random.default_rng(1), 1000
    shape, scale = log_uniform(rng, -6, 6, n), log_uniform(rng, -6, 6, n)
    x = scale * log_uniform(rng, -8, 8, n)
    exact = lambda y, a, b: mpmath.log(a / b) - (a + 1) * mpmath.log(1 + y / b)  # noqa: E731
    bits, least = worst_excess_bits(lk.distributions.Lomax, exact, x, shape, scale)
    print(f"Lomax: worst {bits:.2f} excess wrong bits, log p from {least:.3g}")
    assert bits <= 4 and least < -1e5


def test_distribution_function_and_quantiles():
    rng, n = np.random.default_rng(2), 300
    shape, scale = log_uniform(rng, -6, 6, n), log_uniform(rng, -6, 6, n)
    x = scale * log_uniform(rng, -100, 8, n)
    exact = lambda y, a, b: -mpmath.expm1(-a * mpmath.log1p(y / b))  # noqa: E731
    assert worst_relative(lk.distributions.Lomax, exact, "cdf", x, shape, scale) <= 1e-9
    back = lambda p, a, b: b * mpmath.expm1(-mpmath.log1p(-p) / a)  # noqa: E731
    p, shape = chances(rng, n), np.maximum(shape, 0.1)
    assert worst_relative(lk.distributions.Lomax, back, "quantile", p, shape, scale) <= 1e-9


def test_as_scipy_has_it(rng):
    distribution, other = lk.distributions.Lomax(3.0, 2.0), stats.lomax(3.0, scale=2.0)
    x = rng.exponential(size=50)
    np.testing.assert_allclose(distribution.log_prob(x), other.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(
        [distribution.mean[0], distribution.variance[0], distribution.median[0]],
        [other.mean(), other.var(), other.median()],
    )
    assert distribution.entropy() == pytest.approx(float(other.entropy()))
    assert np.isinf(lk.distributions.Lomax(0.9, 1.0).mean[0]) and np.isinf(lk.distributions.Lomax(1.9, 1.0).variance[0])


@pytest.mark.parametrize(
    ("a", "b", "c", "d"), [(3, 1, 2, 1), (3, 1, 2, 5), (3, 5, 2, 1), (1.5, 100, 2, 1), (2, 1, 2, 300)]
)
def test_divergence_is_the_integral(a, b, c, d):
    p, q = lk.distributions.Lomax(float(a), float(b)), lk.distributions.Lomax(float(c), float(d))

    def f(t):
        x = [np.exp(t)]
        return np.exp(p.log_prob(x)[0] + t) * (p.log_prob(x)[0] - q.log_prob(x)[0])

    assert p.kl(q) == pytest.approx(integrate.quad(f, -30, 60, limit=400)[0], rel=1e-7)
    assert abs(p.kl(p)) <= 1e-13


def test_it_does_not_learn():
    with pytest.raises(lk.LikelyError):
        lk.distributions.Lomax.fit([1.0, 2.0])
