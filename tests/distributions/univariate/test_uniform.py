from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

import likely as lk
from tests.distributions.digits import log_uniform, places, worst_excess_bits, worst_relative


def points(n, seed):
    rng = np.random.default_rng(seed)
    low = places(rng, n)
    high = low + np.maximum(log_uniform(rng, -6, 6, n), 1e-9 * np.abs(low))
    return rng, low, high


def test_log_density_to_the_last_bits():
    rng, low, high = points(500, 1)
    x = np.clip(low + rng.random(500) * (high - low), low, high)
    bits, _ = worst_excess_bits(lk.Uniform, lambda y, a, b: -mpmath.log(b - a), x, low, high)
    print(f"Uniform: worst {bits:.2f} excess wrong bits")
    assert bits <= 4


def test_distribution_function_and_quantiles():
    rng, low, high = points(300, 2)
    x = np.clip(low + log_uniform(rng, -300, 0, 300) * (high - low), low, high)
    assert worst_relative(lk.Uniform, lambda y, a, b: (y - a) / (b - a), "cdf", x, low, high) <= 1e-9
    p = log_uniform(rng, -300, 0, 300)
    assert worst_relative(lk.Uniform, lambda q, a, b: a + q * (b - a), "quantile", p, low, high, about=1) <= 1e-9


def test_as_scipy_has_it():
    distribution, other = lk.Uniform(1.0, 4.0), stats.uniform(1.0, 3.0)
    x = np.linspace(0, 5, 21)
    np.testing.assert_allclose(distribution.log_prob(x), other.logpdf(x))
    np.testing.assert_allclose(
        [distribution.mean[0], distribution.variance[0], distribution.median[0]],
        [other.mean(), other.var(), other.median()],
    )
    assert distribution.entropy() == pytest.approx(float(other.entropy()))


def test_maximum_likelihood_is_the_extremes(rng):
    x = rng.normal(size=(50, 2))
    distribution = lk.Uniform.fit(x)
    np.testing.assert_array_equal([distribution.low, distribution.high], [x.min(axis=0), x.max(axis=0)])
    loc, width = stats.uniform.fit(x[:, 0])
    np.testing.assert_allclose([distribution.low[0], distribution.high[0] - distribution.low[0]], [loc, width])
    assert lk.Uniform.fit(x, np.arange(50) > 9.0).low[0] == x[10:, 0].min()


def test_a_row_outside_is_impossible_unless_a_prior_widens():
    x = np.arange(11.0)
    assert lk.Uniform.fit(x).log_prob([10.5])[0] == -np.inf
    assert lk.Uniform.fit(x, prior="weak").log_prob([10.5])[0] == pytest.approx(-np.log(12.0))


@pytest.mark.slow
def test_unbiased_ends():
    rng = np.random.default_rng(0)
    distributions = [lk.Uniform.unbiased_fit(rng.uniform(2.0, 5.0, 6)) for _ in range(3000)]
    found = np.array([[distribution.low[0], distribution.high[0]] for distribution in distributions])
    assert (np.abs(found.mean(axis=0) - [2.0, 5.0]) <= 5 * found.std(axis=0) / np.sqrt(3000)).all()
    two = lk.Uniform.unbiased_fit([1.0, 3.0], [2.0, 2.0])
    np.testing.assert_allclose([two.low[0], two.high[0]], [1 - 2 / 3, 3 + 2 / 3])
    with pytest.raises(lk.DataError, match="more than 1 row"):
        lk.Uniform.unbiased_fit([3.0])


def test_moments(rng):
    x = rng.uniform(3, 7, 500)
    distribution = lk.Uniform.moments_fit(x)
    assert distribution.mean[0] == pytest.approx(x.mean()) and distribution.variance[0] == pytest.approx(x.var())


def test_divergence():
    p, q = lk.Uniform(0.0, 1.0), lk.Uniform(-1.0, 1.0)
    assert p.kl(q) == pytest.approx(np.log(2)) and q.kl(p) == np.inf


@pytest.mark.parametrize("x", [[3.0], [0.0, 0.0], [1e8], [-1e-100], [1e100, 2e100]])
def test_hazards(x):
    for prior in (None, "weak"):
        distribution = lk.Uniform.fit(x, prior=prior)
        assert distribution.low[0] < distribution.high[0] and np.isfinite(distribution.log_prob(x)).all()


def test_the_widest_range():
    assert lk.Uniform.fit([-1e308, 1e308]).log_prob([0.0])[0] == pytest.approx(-np.log(2) - 308 * np.log(10))
    with pytest.raises(lk.DataError, match="rescale the column"):
        lk.Uniform.fit([-1e308, 1e308], prior="weak")


def test_refusals():
    with pytest.raises(lk.DomainError, match="low must lie below high"):
        lk.Uniform(1.0, 1.0)
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.Uniform.fit([1.0, np.inf])
    with pytest.raises(lk.ShapeError, match="shapes that broadcast"):
        lk.Uniform([1.0, 2.0], [3.0, 4.0, 5.0])


def test_extremes_are_those_of_the_rows(rng):
    x, w = rng.normal(size=(30, 3)), rng.integers(0, 2, (30, 2)).astype(float)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:, 2] = np.nan
    stats_ = lk.Uniform(np.zeros((2, 3)), 1.0).collect(x, w)
    for k in range(2):
        mine = x[w[:, k] > 0, :2]
        np.testing.assert_array_equal(stats_.low[k, :2], np.nanmin(mine, axis=0))
        np.testing.assert_array_equal(stats_.high[k, :2], np.nanmax(mine, axis=0))
    assert not stats_.seen[:, 2].any() and not stats_.low[:, 2].any()
    with pytest.raises(lk.DomainError, match="low must not exceed"):
        lk.distributions.MinMaxStats(1.0, [1.0], [2.0], [1.0])


def test_cells_out_of_range_are_refused_before_anything_is_summed():
    from likely.distributions.statistics.weighted_values import WeightedValues

    for cell in (-1, 2**40):
        with pytest.raises(lk.DomainError, match="must add up"):
            WeightedValues(1.0, [1.0], [cell], [0.5], [1.0])
