from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

import likely as lk
from likely.distributions.univariate.chi_square import inverse_digamma
from tests.distributions.digits import chances, log_uniform, worst_excess_bits, worst_relative


def exact_log_prob(x, k):
    return (k / 2 - 1) * mpmath.log(x) - x / 2 - mpmath.loggamma(k / 2) - k / 2 * mpmath.log(2)


@pytest.mark.slow
def test_log_density_to_the_last_bits():
    rng, n = np.random.default_rng(1), 1000
    dof = log_uniform(rng, -6, 6, n)
    near = dof + rng.normal(size=n) * np.sqrt(2 * dof) * log_uniform(rng, -3, 1, n)
    far = np.where(rng.random(n) < 0.5, log_uniform(rng, -250, 0, n), dof + log_uniform(rng, 0, 5, n))
    x = np.where((rng.random(n) < 0.5) & (near > 0), near, far)
    bits, least = worst_excess_bits(lk.distributions.ChiSquare, exact_log_prob, x, dof)
    print(f"ChiSquare: worst {bits:.2f} excess wrong bits, log p from {least:.3g}")
    assert bits <= 4 and least < -1e5


def test_distribution_function_and_quantiles():
    rng, n = np.random.default_rng(2), 200
    dof = log_uniform(rng, -2, 4, n)
    x = np.maximum(dof + rng.uniform(-5, 8, n) * np.sqrt(2 * dof), dof * 1e-3)
    exact = lambda y, k: mpmath.gammainc(k / 2, 0, y / 2, regularized=True)  # noqa: E731
    assert worst_relative(lk.distributions.ChiSquare, exact, "cdf", x, dof) <= 1e-9
    p = np.clip(chances(rng, n), 1e-100, 1 - 1e-12)
    dof = np.maximum(dof, 1.0)
    found = np.array([lk.distributions.ChiSquare(k).quantile(q) for q, k in zip(p, dof, strict=True)])
    back = np.array([float(exact(mpmath.mpf(float(y)), mpmath.mpf(float(k)))) for y, k in zip(found, dof, strict=True)])
    # an error of the quantile is one of the probability, over the slope
    slope = found * np.exp([lk.distributions.ChiSquare(k).log_prob([y])[0] for y, k in zip(found, dof, strict=True)])
    assert (np.abs(back - p) / slope).max() <= 1e-9


def test_heights_of_the_notes():
    for dof, height in ((8.0, 0.11202), (16.0, 0.07450), (32.0, 0.05122), (64.0, 0.03573)):  # Ney 3.2
        distribution = lk.distributions.ChiSquare(dof)
        assert distribution.mean[0] == dof and distribution.variance[0] == 2 * dof and distribution.mode[0] == dof - 2
        assert np.exp(distribution.log_prob(distribution.mode)[0]) == pytest.approx(height, abs=5e-6)


def test_as_scipy_has_it(rng):
    distribution, other = lk.distributions.ChiSquare(3.5), stats.chi2(3.5)
    x = rng.chisquare(3.5, 50)
    np.testing.assert_allclose(distribution.log_prob(x), other.logpdf(x), rtol=1e-12)
    assert distribution.entropy() == pytest.approx(float(other.entropy()))
    np.testing.assert_allclose(distribution.median, other.median())


@pytest.mark.parametrize("dof", [0.05, 1.0, 3.7, 80.0, 1e5])
def test_maximum_likelihood_is_found(dof):
    rng = np.random.default_rng(7)
    x, w = rng.chisquare(dof, 200) + 1e-300, rng.random(200)
    distribution = lk.distributions.ChiSquare.fit(x, w)
    lost = lambda t: -w @ stats.chi2.logpdf(x, np.exp(t))  # noqa: E731
    found = optimize.minimize_scalar(lost, bounds=(np.log(dof) - 1, np.log(dof) + 1), options={"xatol": 1e-12})
    assert distribution.dof[0] == pytest.approx(np.exp(found.x), rel=1e-6)
    assert w @ distribution.log_prob(x) >= -found.fun - 1e-9 * abs(found.fun)


@pytest.mark.parametrize("a", [1e-8, 1e-3, 0.7, 3.0, 1e3, 1e8, 1e100])
def test_inverse_of_digamma(a):
    found = float(inverse_digamma(float(mpmath.digamma(mpmath.mpf(a)))))
    assert found == pytest.approx(a, rel=1e-12)


def test_zeros_are_scored_but_not_learned_from():
    assert lk.distributions.ChiSquare(0.5).log_prob([0.0]) == np.inf
    for bad in (0.0, -2.0):
        with pytest.raises(lk.DataError, match="row 1, column 0"):
            lk.distributions.ChiSquare.fit([1.0, bad])


def test_moments_and_unbiased():
    assert lk.distributions.ChiSquare.moments_fit([1.0, 2.0, 6.0]).dof[0] == 3.0
    assert lk.distributions.ChiSquare.unbiased_fit([1.0, 6.0], [2.0, 1.0]).dof[0] == pytest.approx(8 / 3)


def test_squared_distances_of_gaussian_rows(rng):
    x = rng.normal(size=(20_000, 16))
    assert lk.distributions.ChiSquare.fit((x**2).sum(axis=1)).dof[0] == pytest.approx(16, rel=0.02)


def test_the_density_at_zero():
    assert lk.distributions.ChiSquare([[1.0], [2.0], [4.0]]).log_prob([[0.0]]).tolist() == [
        [np.inf, np.log(0.5), -np.inf]
    ]
