"""Sums of independent variables: known distributions, dice, triangles, and an error bound that holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import likely as lk
from likely.distributions.sums.convolution import folded, lattice_step

UNIT = lk.Beta(1.0, 1.0)
DICE = lk.Categorical(np.full(6, 1 / 6), levels=[1, 2, 3, 4, 5, 6])


def irwin_hall(n, x):
    return sum((-1) ** k * math.comb(n, k) * np.maximum(x - k, 0) ** n for k in range(n + 1)) / math.factorial(n)


def test_known_sums():
    assert lk.distributions.sum_of(
        lk.Gaussian([1.0], 3.0), lk.Gaussian([2.0], 4.0), weights=[2, -1]
    ).covariance.tolist() == [[16.0]]
    assert lk.distributions.sum_of(lk.Poisson(2.0), lk.Poisson(0.5), copies=[3, 2]).rate.tolist() == [7.0]
    assert lk.distributions.sum_of(lk.Gamma(2.0, 3.0), copies=5).shape.tolist() == [10.0]
    assert lk.distributions.sum_of(lk.Exponential(2.0), copies=4).rate.tolist() == [2.0]
    assert lk.distributions.sum_of(lk.Gamma(2.0, 3.0), lk.Gamma(1.0, 1.5), weights=[1.0, 0.5]).rate.tolist() == [3.0]
    assert lk.distributions.sum_of(lk.NegativeBinomial(2.0, 0.3), lk.NegativeBinomial(1.0, 0.3)).size.tolist() == [3.0]
    assert lk.distributions.sum_of(lk.Bernoulli(0.3), lk.Binomial(4.0, 0.3), copies=[2, 1]).trials.tolist() == [6.0]
    cauchy = lk.distributions.sum_of(
        lk.distributions.Cauchy(1.0, 2.0), lk.distributions.Cauchy(0.0, 1.0), weights=[-1.0, 3.0]
    )
    assert (cauchy.center.tolist(), cauchy.scale.tolist()) == ([-1.0], [5.0])
    assert lk.distributions.sum_of(lk.distributions.ChiSquare(3.0), copies=4).dof.tolist() == [12.0]
    plane = lk.distributions.sum_of(lk.Gaussian([1.0, 0.0], 1.0), copies=4)
    assert plane.mean.tolist() == [4.0, 0.0] and plane.covariance_matrix[0, 0] == 4.0
    assert lk.distributions.sum_of(DICE) is DICE


@pytest.mark.parametrize("n", [2, 3, 5, 12, 40])
def test_uniform_variables_against_irwin_and_hall(n):
    distribution = lk.distributions.sum_of(UNIT, copies=n, error=1e-8 if n < 20 else 1e-7)
    x = np.linspace(0, n, 101)
    truth = irwin_hall(n, x) if n < 20 else None
    if truth is not None:
        assert np.abs(distribution.cdf(x) - truth).max() <= distribution.error <= 1e-8
    assert distribution.mean == pytest.approx(n / 2, abs=1e-6)
    assert distribution.variance == pytest.approx(n / 12, abs=1e-5)
    assert distribution.log_prob([-0.1, n + 0.1]).tolist() == [-np.inf, -np.inf] or n > 12


def test_the_triangle():
    distribution, exact = lk.distributions.convolve(UNIT, UNIT), stats.triang(0.5, 0, 2)
    x = np.linspace(0.05, 1.95, 77)
    assert np.exp(distribution.log_prob(x)) == pytest.approx(exact.pdf(x), abs=2e-4)
    assert distribution.quantile([0.0, 0.125, 0.5, 1.0]) == pytest.approx([0.0, 0.5, 1.0, 2.0], abs=3e-4)
    draws = distribution.sample(20_000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(draws, exact.cdf).pvalue > 0.01


def test_grids_agree_with_known_sums():
    """The same distribution under a name that is not known goes through the grid."""
    for distribution, weights, exact in (
        (lk.Gaussian([1.0], 4.0), [1.0, 1.0], stats.norm(2.0, math.sqrt(8.0))),
        (lk.Gamma(2.0, 1.0), [1.0, 1.0], stats.gamma(4.0)),
    ):
        hidden = lk.distributions.Transformed(distribution, lk.distributions.Bijector.affine(1.0))
        found = lk.distributions.sum_of(hidden, hidden, weights=weights)
        x = exact.ppf(np.linspace(0.001, 0.999, 61))
        assert np.abs(found.cdf(x) - exact.cdf(x)).max() <= found.error <= 1e-8
        assert found.log_prob(x) == pytest.approx(exact.logpdf(x), abs=1e-4)


def test_laplace_is_a_difference_of_exponentials():
    found = lk.distributions.sum_of(lk.Exponential(1.0), lk.Exponential(1.0), weights=[1.0, -1.0])
    assert np.abs(found.cdf([0.3]) - lk.Laplace(0.0, 1.0).cdf([0.3])).max() <= found.error
    x = np.linspace(-5, 5, 41)
    assert np.abs(found.cdf(x) - stats.laplace().cdf(x)).max() <= found.error


def test_dice():
    two = lk.distributions.sum_of(DICE, DICE)
    assert (36 * np.exp(two.log_prob(np.arange(2, 13)))).round(9).tolist() == [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]
    assert two.log_prob([1, 13, 2.5]).tolist() == [-np.inf] * 3
    hundred = lk.distributions.sum_of(DICE, copies=100)
    assert hundred.mean == pytest.approx(350.0) and hundred.variance == pytest.approx(100 * 35 / 12)
    assert hundred.log_prob([100])[0] == pytest.approx(-100 * math.log(6))  # the smallest is right to the last digit
    assert hundred.cdf([600.0]) == 1.0 and hundred.quantile(0.5) == 350.0


def test_counts_of_unlike_distributions_against_enumeration():
    found = lk.distributions.sum_of(lk.Poisson(2.0), lk.NegativeBinomial(3.0, 0.4), weights=[-2, 1])
    i, j = np.meshgrid(np.arange(80), np.arange(200), indexing="ij")
    p = np.exp(lk.Poisson(2.0).log_prob(i.reshape(-1, 1)) + lk.NegativeBinomial(3.0, 0.4).log_prob(j.reshape(-1, 1)))
    for value in (-6, 0, 3, 11):
        assert np.exp(found.log_prob([value]))[0] == pytest.approx(p[(j - 2 * i).ravel() == value].sum(), rel=1e-9)


def test_values_without_a_common_step():
    found = lk.distributions.sum_of(
        lk.Categorical([0.5, 0.5], levels=[0.0, math.pi]), lk.Categorical([0.3, 0.7], levels=[0.0, 1.0])
    )
    assert found.levels.tolist() == pytest.approx([0.0, 1.0, math.pi, math.pi + 1])
    assert found.probs.tolist() == pytest.approx([0.15, 0.35, 0.15, 0.35])
    assert lattice_step([np.array([0.0, 1.0]), np.array([0.0, math.sqrt(2)])]) is None


def test_a_count_and_a_line():
    found = lk.distributions.sum_of(lk.Poisson(3.0), UNIT)
    p = stats.poisson(3.0)
    assert found.cdf([0.0, 0.5, 1.0, 2.5]) == pytest.approx([0.0, 0.5 * p.pmf(0), p.pmf(0), p.cdf(1) + 0.5 * p.pmf(2)])
    assert np.exp(found.log_prob([0.5, 1.5])) == pytest.approx(p.pmf([0, 1]))


@pytest.mark.slow
def test_mixtures_and_distributions_without_a_distribution_function():
    humps = lk.Mixture([0.3, 0.7], lk.Gaussian([[0.0], [5.0]], 1.0))
    found = lk.distributions.sum_of(humps, humps)
    parts = np.array([0.09, 0.42, 0.49]), np.array([0.0, 5.0, 10.0])
    for x in (-1.0, 2.5, 5.0, 9.0):
        exact = parts[0] @ stats.norm.cdf((x - parts[1]) / math.sqrt(2))
        assert found.cdf([x])[0] == pytest.approx(exact, abs=found.error)
    several = lk.Mixture(
        [0.5, 0.5], lk.distributions.Stack([lk.Gaussian([0.0], 1.0), lk.StudentT([3.0], [[1.0]], 30.0)])
    )
    assert lk.distributions.sum_of(several, UNIT).mean == pytest.approx(1.5 + 0.5, abs=1e-5)


def test_the_central_limit():
    """The distance to the Gaussian falls as 1/n for a symmetric distribution, and grows with no error of ours."""
    x = np.linspace(-3, 3, 61)
    gaps = []
    for n in (4, 16, 64):
        distribution = lk.distributions.sum_of(UNIT, copies=n)
        gaps.append(np.abs(distribution.cdf(n / 2 + math.sqrt(n / 12) * x) - stats.norm.cdf(x)).max())
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.1) and gaps[1] / gaps[2] == pytest.approx(4.0, rel=0.1)


@pytest.mark.slow
def test_tails_too_heavy_for_a_grid_are_reported():
    with pytest.warns(lk.FitWarning, match="error should not exceed"):
        found = lk.distributions.sum_of(lk.Gaussian([0.0], 1.0), lk.StudentT([0.0], [[1.0]], 1.0))
    t = np.linspace(-9, 9, 20_001)
    exact = (stats.cauchy.cdf(1.0 - t) * stats.norm.pdf(t)).sum() * (t[1] - t[0])
    assert found.cdf([1.0])[0] == pytest.approx(exact, abs=found.error)


def test_folding_by_fourier_agrees():
    rng = np.random.default_rng(0)
    a, b = rng.random(300), rng.random(200)
    import likely.distributions.sums.convolution as module

    direct = folded(a, b)
    before, module.PAIRS = module.PAIRS, 1
    try:
        assert folded(a, b) == pytest.approx(direct, rel=1e-12)
    finally:
        module.PAIRS = before


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: lk.distributions.sum_of(), "at least one distribution"),
        (lambda: lk.distributions.sum_of(UNIT, copies=1.5), "integers"),
        (lambda: lk.distributions.sum_of(UNIT, UNIT, weights=[1, 2, 3]), "weights must be one number"),
        (lambda: lk.distributions.sum_of(UNIT, weights=np.nan), "finite"),
        (lambda: lk.distributions.sum_of(lk.Beta([1.0, 2.0], 1.0), UNIT), "univariate distributions"),
        (lambda: lk.distributions.sum_of(lk.Poisson([1.0, 2.0]), lk.Poisson(1.0)), "one column"),
        (lambda: lk.distributions.sum_of(lk.Gaussian([[0.0], [1.0]], 1.0)), "stack"),
        (lambda: lk.distributions.sum_of(lk.Categorical([0.5, 0.5], levels=["a", "b"]), DICE), "numbers to be added"),
        (lambda: lk.distributions.sum_of(UNIT, UNIT, error=0.0), "between 0 and 1"),
        (lambda: lk.distributions.sum_of(3.0), "densities"),
    ],
)
def test_refusals(wrong, match):
    with pytest.raises(lk.LikelyError, match=match):
        wrong()


@pytest.mark.slow
def test_errors_hold_for_narrow_distributions_and_poles():
    """A distribution narrower than a cell, and densities that go to infinity at 0."""
    with pytest.warns(lk.FitWarning, match="error"):
        narrow = lk.distributions.sum_of(lk.Uniform(0.0, 1.0), lk.Uniform(0.0, 1e-6))
    assert abs(narrow.cdf([0.5])[0] - (0.5 - 5e-7)) <= narrow.error < 1e-5
    with pytest.warns(lk.FitWarning, match="error"):
        poles = lk.distributions.sum_of(lk.Gamma(0.1, 1.0), lk.Gamma(0.1, 1.0 + 1e-9))
    x = np.array([1e-9, 1e-7, 1e-6, 1e-5, 1e-3, 0.1, 1.0])
    assert np.abs(poles.cdf(x) - stats.gamma(0.2).cdf(x)).max() <= poles.error


def test_a_pole_beside_which_quartiles_vanish():
    """Half of Gamma(0.01, 1) lies below 10⁻³⁰, and its mean is 0.01."""
    with pytest.warns(lk.FitWarning, match="error"):
        found = lk.distributions.sum_of(lk.Gamma(0.01, 1.0), lk.Gaussian([0.0], 1.0))
    assert found.mean == pytest.approx(0.01, abs=1e-4)
    assert found.variance == pytest.approx(1.01, abs=1e-4)
    assert found.error < 1e-4
