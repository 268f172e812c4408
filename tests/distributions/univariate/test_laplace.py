from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import likely as lk
from likely.distributions.univariate.laplace import weighted_median
from tests.distributions.digits import chances, log_uniform, places, worst_excess_bits, worst_relative


def points(n=1000):
    rng = np.random.default_rng(1)
    center, scale = places(rng, n), log_uniform(rng, -6, 6, n)
    return center + rng.choice([-1.0, 1.0], n) * scale * log_uniform(rng, -8, 5, n), center, scale


def test_log_density_to_the_last_bits():
    bits, least = worst_excess_bits(
        lk.Laplace, lambda x, c, s: -mpmath.log(2 * s) - abs(x - c) / s, *points()
    )  # fmt: skip
    print(f"Laplace: worst {bits:.2f} excess wrong bits, log p from {least:.3g}")
    assert bits <= 4 and least < -9e4


def exact_cdf(x, c, s):
    tail = mpmath.exp(-abs(x - c) / s) / 2
    return tail if x < c else 1 - tail


def exact_quantile(p, c, s):
    return c + s * mpmath.log(2 * p) if p < 0.5 else c - s * mpmath.log(2 * (1 - p))


def test_distribution_function_and_quantiles():
    rng, n = np.random.default_rng(2), 300
    center, scale = places(rng, n), log_uniform(rng, -6, 6, n)
    x = center + scale * rng.uniform(-650, 30, n)
    assert worst_relative(lk.Laplace, exact_cdf, "cdf", x, center, scale) <= 1e-9
    assert worst_relative(lk.Laplace, exact_quantile, "quantile", chances(rng, n), center, scale, about=1) <= 1e-9


def test_as_scipy_has_it(rng):
    distribution, other = lk.Laplace(1.0, 2.0), stats.laplace(1.0, 2.0)
    x = rng.normal(size=50) * 5
    np.testing.assert_allclose(distribution.log_prob(x), other.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(
        [distribution.mean[0], distribution.variance[0], distribution.median[0]],
        [other.mean(), other.var(), other.median()],
    )
    assert distribution.entropy() == pytest.approx(other.entropy())
    assert distribution.variance[0] == 8.0  # 2 v², not v²


def test_the_notes_sample():
    distribution = lk.Laplace.fit([1, 2, 4, 8, 16])  # Ney 3.4
    assert distribution.center[0] == 4 and distribution.scale[0] == pytest.approx(4.2, rel=1e-15)


def test_the_middle_of_the_median_interval():
    assert lk.Laplace.fit([1.0, 2.0, 6.0, 100.0]).center[0] == 4.0
    assert weighted_median(np.array([1.0, 5.0]), np.array([3.0, 1.0])) == 1.0
    # weights whose sum rounds: halves are still halves
    w = np.full(10, 0.1)
    assert weighted_median(np.arange(10.0), w) == 4.5


def test_no_other_parameters_are_better(rng):
    x, w = rng.standard_t(2, 101), rng.random(101)
    distribution = lk.Laplace.fit(x, w)
    best = w @ distribution.log_prob(x)
    for _ in range(200):
        near = lk.Laplace(distribution.center + 0.3 * rng.normal(), distribution.scale * np.exp(0.3 * rng.normal()))
        assert w @ near.log_prob(x) <= best + 1e-10
    plain = lk.Laplace.fit(x)
    np.testing.assert_allclose([plain.center[0], plain.scale[0]], stats.laplace.fit(x), rtol=1e-12)


@pytest.mark.parametrize(("shift", "unit"), [(0.0, 1e-100), (0.0, 1e100), (1e8, 1.0)])
def test_units_and_offsets_do_not_matter(shift, unit, rng):
    x = rng.normal(size=41)
    plain, moved = lk.Laplace.fit(x), lk.Laplace.fit(shift + unit * x)
    np.testing.assert_allclose(moved.center, shift + unit * plain.center, rtol=1e-14)
    np.testing.assert_allclose(moved.scale, unit * plain.scale, rtol=1e-7 if shift else 1e-13)


def test_divergence_is_the_integral():
    p, q = lk.Laplace(0.0, 1.0), lk.Laplace(0.7, 2.0)
    f = lambda t: np.exp(p.log_prob([t])[0]) * (p.log_prob([t])[0] - q.log_prob([t])[0])  # noqa: E731
    wanted = integrate.quad(f, -60, 60, points=[0.0, 0.7], limit=200)[0]
    assert p.kl(q) == pytest.approx(wanted, rel=1e-9)


def test_moments_and_no_unbiased_estimate(rng):
    x = rng.laplace(3.0, 2.0, 1000)
    distribution = lk.Laplace.moments_fit(x)
    assert distribution.mean[0] == pytest.approx(x.mean()) and distribution.variance[0] == pytest.approx(x.var())
    with pytest.raises(lk.DomainError, match="no unbiased estimate"):
        lk.Laplace.unbiased_fit(x)


def test_one_value_gets_a_small_scale():
    assert lk.Laplace.fit([7.0, 7.0]).scale[0] == pytest.approx(7e-8)
    assert lk.Laplace.fit([0.0]).scale[0] == 1e-8
