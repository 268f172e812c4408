"""Moments and quantiles of mixtures against Monte Carlo, SciPy and the components' formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import likely as lk

W = np.array([0.3, 0.7])
PARTS = {
    "Gaussian": lambda: lk.Gaussian([[0.0, 1.0], [5.0, 0.0]], [[2.0, 0.5], [0.5, 1.0]]),
    "diagonal Gaussian": lambda: lk.Gaussian([[0.0, 1.0], [5.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], kind="diagonal"),
    "StudentT": lambda: lk.StudentT([[0.0, 1.0], [3.0, 2.0]], [[1.0, 0.2], [0.2, 1.0]], 9.0),
    "Laplace": lambda: lk.Laplace([[0.0, 1.0], [2.0, 3.0]], [[1.0, 2.0], [2.0, 3.0]]),
    "Poisson": lambda: lk.Poisson([[1.0, 4.0], [9.0, 2.0]]),
    "Bernoulli": lambda: lk.Bernoulli([[0.2, 0.7], [0.6, 0.1]]),
    "Dirichlet": lambda: lk.Dirichlet([[1.0, 2.0, 3.0], [4.0, 4.0, 1.0]]),
    "Stack": lambda: lk.distributions.Stack([lk.Gaussian([0.0, 1.0], 1.0), lk.StudentT([3.0, 0.0], 1.0, 9.0)]),
}
LINES = {
    "Gaussian": lambda: lk.Gaussian([[0.0], [5.0]], 1.0),
    "Cauchy": lambda: lk.distributions.Cauchy([[0.0], [2.0]], [[1.0], [2.0]]),
    "Uniform": lambda: lk.Uniform([[0.0], [5.0]], [[1.0], [9.0]]),
    "Gamma": lambda: lk.Gamma([[2.0], [3.0]], [[1.0], [0.1]]),
    "Poisson": lambda: lk.Poisson([[1.0], [9.0]]),
    "Binomial": lambda: lk.Binomial([[5], [9]], [[0.3], [0.6]]),
    "Categorical": lambda: lk.Categorical([[0.2, 0.8], [0.5, 0.5]]),
    "Stack": lambda: lk.distributions.Stack([lk.Gaussian([0.0], 1.0), lk.StudentT([3.0], [[1.0]], 5.0)]),
}


@pytest.mark.parametrize("name", PARTS)
def test_moments_are_those_of_draws(name):
    distribution = lk.Mixture(W, PARTS[name]())
    draws = distribution.sample(200_000, np.random.default_rng(0))
    want = np.cov(draws.T)
    unit = np.sqrt(np.diag(want))
    assert distribution.mean.shape == distribution.variance.shape == (distribution.dim,)
    assert np.abs((distribution.mean - draws.mean(axis=0)) / unit).max() < 0.01
    assert np.abs((distribution.covariance - want) / np.outer(unit, unit)).max() < 0.02
    np.testing.assert_allclose(distribution.variance, np.diag(distribution.covariance))


@pytest.mark.parametrize("name", LINES)
def test_quantiles_undo_the_distribution_function(name):
    distribution = lk.Mixture(W, LINES[name]())
    x = np.sort(distribution.sample(4001, np.random.default_rng(0)).ravel().astype(float))
    cdf = distribution.cdf(x)
    np.testing.assert_allclose(
        cdf, sum(w * distribution.components.member(k).cdf(x) for k, w in enumerate(W)), rtol=1e-12
    )
    p = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99])
    q = distribution.quantile(p)
    below = distribution.cdf(q - 1e-5 * (1 + np.abs(q)))
    assert (distribution.cdf(q) >= p).all() and (below <= p).all()
    assert np.median(x) == pytest.approx(
        distribution.median[0], abs=0.1 * np.subtract(*distribution.quantile([0.75, 0.25])) + 1e-9
    )
    assert np.isnan(distribution.quantile([-0.1, 1.1])).all()
    assert distribution.cdf(x[:5, None]).shape == (5,) and distribution.quantile(0.5).shape == ()


def test_quantiles_of_two_gaussians_are_scipys():
    distribution = lk.Mixture(W, lk.Gaussian([[0.0], [5.0]], [[[1.0]], [[4.0]]]))
    for p in (1e-12, 0.02, 0.31, 0.9):
        away = lambda x, p=p: 0.3 * norm.cdf(x) + 0.7 * norm.cdf(x, 5.0, 2.0) - p  # noqa: E731
        want = brentq(away, -60, 60, xtol=1e-13, rtol=1e-14)
        assert float(distribution.quantile(p)) == pytest.approx(want, rel=1e-10)
    assert distribution.quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf]


def test_a_stack_says_what_its_mixtures_say():
    stack = lk.Mixture([[0.3, 0.7], [0.5, 0.5]], lk.Gaussian([[0.0], [5.0], [1.0], [2.0]], 1.0))
    ones = [stack.member(c) for c in range(2)]
    for name in ("mean", "variance", "covariance", "median"):
        np.testing.assert_allclose(getattr(stack, name), np.stack([getattr(one, name) for one in ones]))
    p = [0.1, 0.4, 0.9]
    np.testing.assert_allclose(stack.cdf(p), np.stack([one.cdf(p) for one in ones], axis=1))
    np.testing.assert_allclose(stack.quantile(p), np.stack([one.quantile(p) for one in ones], axis=1))


def test_a_part_without_weight_does_not_count():
    distribution = lk.Mixture([1.0, 0.0], lk.distributions.Lomax([[3.0], [1.5]], [[2.0], [1.0]]))
    one = lk.distributions.Lomax([3.0], [2.0])
    assert distribution.variance == pytest.approx(one.variance) and distribution.median == pytest.approx(
        one.median, abs=1e-12
    )
    assert lk.Mixture([0.5, 0.5], distribution.components).variance == np.inf


def test_what_parts_do_not_know_a_mixture_does_not():
    assert not hasattr(lk.Mixture(W, LINES["Cauchy"]()), "mean")
    assert not hasattr(lk.Mixture(W, PARTS["Gaussian"]()), "cdf")
    for name in ("mean", "variance", "cdf", "median"):  # of angles: arrows would mix, not numbers
        assert not hasattr(lk.Mixture(W, lk.distributions.VonMises([[0.0], [2.0]], [[1.0], [2.0]])), name)
    with pytest.raises(lk.DomainError, match="no quantile"):
        lk.Mixture(W, PARTS["Gaussian"]()).quantile(0.5)


def test_distributions_on_grids_have_medians():
    grid, lattice = (
        lk.distributions.GridDistribution(0.0, 0.5, [0.1, 0.2, 0.3, 0.4]),
        lk.distributions.LatticeDistribution(1.0, 0.5, [0.2, 0.2, 0.6]),
    )
    assert grid.median == pytest.approx(float(grid.quantile(0.5))) and grid.cdf(grid.median) == pytest.approx(0.5)
    assert lattice.median == 2.0
