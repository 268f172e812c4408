"""Distributions in other coordinates: against SciPy, against each other, and what they learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import likely as lk

X = np.array([0.1, 0.6, 1.0, 5.0])
BELL = lk.Gaussian([0.5], 0.64)


@pytest.mark.parametrize(
    ("distribution", "change", "exact"),
    [
        (BELL, lk.distributions.Bijector.exp(), stats.lognorm(0.8, scale=math.exp(0.5))),
        (BELL, lk.distributions.Bijector.affine(-2.0, 3.0), stats.norm(2.0, 1.6)),
        (lk.Gamma(2.0, 3.0), lk.distributions.Bijector.power(-1.0), stats.invgamma(2.0, scale=3.0)),
        (lk.Gamma(1.0, 1.0), lk.distributions.Bijector.power(0.5), stats.weibull_min(2.0)),
        (lk.Gamma(1.0, 1.0), lk.distributions.Bijector.log(), None),
        (lk.Beta(2.0, 3.0), lk.distributions.Bijector.logit(), None),
        (BELL, lk.distributions.Bijector.logistic(), None),
        (lk.Gamma(3.0, 1.0), lk.distributions.Bijector.box_cox(0.5), None),
        (lk.Gamma(3.0, 1.0), lk.distributions.Bijector.box_cox(0.0), None),
        (BELL, np.sinh, stats.johnsonsu(-0.625, 1.25)),
        (BELL, lambda x: -np.sinh(x), stats.johnsonsu(0.625, 1.25)),
    ],
)
def test_densities_and_distribution_functions(distribution, change, exact):
    found = lk.distributions.Transformed(distribution, change)
    y = np.asarray(found.quantile([0.05, 0.3, 0.5, 0.95]))
    assert found.cdf(y) == pytest.approx([0.05, 0.3, 0.5, 0.95], abs=1e-12)
    fine = np.linspace(*found.quantile([0.2, 0.8]), 4001)
    area = np.trapezoid(np.exp(found.log_prob(fine)), fine)
    assert area == pytest.approx(0.6, abs=1e-5)  # the density is the slope of the distribution function
    if exact is not None:
        assert found.log_prob(y) == pytest.approx(exact.logpdf(y), abs=1e-9)
        assert found.cdf(y) == pytest.approx(exact.cdf(y), abs=1e-12)
    draws = found.sample(4000, np.random.default_rng(0))[:, 0]
    assert stats.kstest(draws, lambda z: found.cdf(z)).pvalue > 1e-3


def test_moments_and_entropy():
    found, exact = lk.distributions.Transformed(BELL, "exp"), stats.lognorm(0.8, scale=math.exp(0.5))
    assert (found.mean, found.variance, found.median) == pytest.approx((exact.mean(), exact.var(), exact.median()))
    assert found.entropy() == pytest.approx(float(exact.entropy()))
    by_numbers = lk.distributions.Transformed(BELL, np.exp)
    assert (by_numbers.mean, by_numbers.variance) == pytest.approx((exact.mean(), exact.var()), rel=1e-8)
    assert by_numbers.entropy() == pytest.approx(float(exact.entropy()), abs=1e-8)
    turned = lk.distributions.Transformed(BELL, lk.distributions.Bijector.affine(-3.0, 1.0))
    assert (turned.mean, turned.variance) == pytest.approx((-0.5, 5.76))
    assert turned.entropy(bits=True) == pytest.approx((BELL.entropy() + math.log(3)) / math.log(2))
    weibull = lk.distributions.Transformed(lk.Gamma(1.0, 1.0), lk.distributions.Bijector.power(0.5))
    assert (weibull.mean, weibull.variance) == pytest.approx(stats.weibull_min(2.0).stats(), rel=1e-8)


def test_what_cannot_be_is_impossible_and_missing_values_stay_missing():
    found = lk.distributions.Transformed(lk.Gaussian([0.0, 1.0], 1.0), lk.distributions.Bijector.exp())
    logs = found.log_prob([[1.0, -1.0], [1.0, np.nan], [0.0, 1.0]])
    assert logs[0] == logs[2] == -np.inf
    assert logs[1] == pytest.approx(stats.lognorm(1.0).logpdf(1.0))
    assert lk.distributions.Transformed(BELL, "exp").cdf([-1.0, 0.0]).tolist() == [0.0, 0.0]
    assert lk.distributions.Transformed(BELL, "logistic").cdf([-0.1, 1.1]).tolist() == [0.0, 1.0]
    with pytest.raises(lk.DataError, match="row 1"):
        found.log_prob([[1.0, 1.0], [np.inf, 1.0]])


def test_matrices_and_functions_in_the_plane():
    distribution = lk.Gaussian([1.0, -1.0], [[2.0, 0.3], [0.3, 1.0]])
    A, b = np.array([[2.0, 1.0], [0.0, -1.0]]), np.array([1.0, 2.0])
    turned = lk.distributions.Transformed(distribution, lk.distributions.Bijector.affine(A, b))
    y = np.array([[0.0, 0.0], [3.0, 1.0]])
    assert turned.log_prob(y) == pytest.approx(distribution.affine(A, b).log_prob(y))
    assert turned.mean == pytest.approx(distribution.affine(A, b).mean)
    bent = lk.distributions.Transformed(distribution, lambda x: np.column_stack([x[:, 0] + x[:, 1] ** 3, 2 * x[:, 1]]),
                          lambda y: np.column_stack([y[:, 0] - (y[:, 1] / 2) ** 3, y[:, 1] / 2]))  # fmt: skip
    inside = np.column_stack([y[:, 0] - (y[:, 1] / 2) ** 3, y[:, 1] / 2])
    assert bent.log_prob(y) == pytest.approx(distribution.log_prob(inside) - math.log(2), abs=1e-8)
    with pytest.raises(lk.DataError, match="needs complete rows"):
        turned.log_prob([[np.nan, 1.0]])
    with pytest.raises(lk.DomainError, match="inverse must be given"):
        lk.distributions.Transformed(distribution, np.sinh).log_prob(y)


def test_discrete_distributions_keep_their_probabilities():
    found = lk.distributions.Transformed(lk.Poisson(3.0), lk.distributions.Bijector.affine(-2.0, 1.0))
    p = stats.poisson(3.0)
    assert found.log_prob([1.0, -1.0, -3.0, 0.0]) == pytest.approx([*p.logpmf([0, 1, 2]), -np.inf])
    assert found.cdf([-5.0]) == pytest.approx(p.sf(2))
    assert found.entropy() == pytest.approx(float(p.entropy()))
    assert (found.mean, found.variance) == pytest.approx((-5.0, 12.0))


def test_it_learns():
    x = np.random.default_rng(0).lognormal(1.0, 0.5, (1000, 1))
    found = lk.distributions.Transformed.fit(x, distribution=lk.Gaussian, change="exp")
    assert found.distribution.mean == pytest.approx(np.log(x).mean(axis=0))
    report = lk.fit(found, x)
    assert report.objective == pytest.approx(found.log_prob(x).sum())
    exact = stats.lognorm(math.sqrt(found.distribution.variance[0]), scale=math.exp(found.distribution.mean[0]))
    assert report.objective == pytest.approx(exact.logpdf(x[:, 0]).sum())
    w = np.arange(1000) % 3
    again = found.refit(found.collect(x, w.astype(float)))
    assert again.distribution.mean == pytest.approx(np.log(np.repeat(x, w, axis=0)).mean(axis=0))
    with pytest.raises(lk.DataError, match="row 1"):
        found.collect([[1.0], [-1.0]])
    mixture = lk.fit(
        lk.Mixture(
            [0.5, 0.5], lk.distributions.Transformed(lk.Gaussian([[0.0], [2.0]], 1.0), lk.distributions.Bijector.exp())
        ),
        x,
    )
    assert mixture.objective == pytest.approx(report.objective, abs=1.0)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: lk.distributions.Transformed(BELL, 3.0), "a Bijector, its name, or a function"),
        (lambda: lk.distributions.Transformed(3.0, "exp"), "density"),
        (lambda: lk.distributions.Bijector("curl"), "one of"),
        (lambda: lk.distributions.Bijector.affine(0.0), "must not be 0"),
        (lambda: lk.distributions.Bijector.affine([[1.0, 1.0], [1.0, 1.0]]), "invertible"),
        (lambda: lk.distributions.Bijector.power([[1.0]]), "scale must be"),
        (lambda: lk.distributions.Transformed(BELL, lambda x: x**2).cdf([1.0]), "monotone"),
        (lambda: lk.distributions.Transformed(lk.Gaussian([0.0, 0.0], 1.0), "exp").cdf([1.0]), "one column"),
    ],
)
def test_refusals(wrong, match):
    with pytest.raises(lk.LikelyError, match=match):
        wrong()


@pytest.mark.parametrize("turns", [np.square, np.sin, np.abs, lambda x: (x - 6.0) ** 2])
def test_functions_that_turn_are_refused_at_once(turns):
    """The last one turns at six deviations, which few draws would see."""
    with pytest.raises(lk.DomainError, match="must be monotone"):
        lk.distributions.Transformed(lk.Gaussian([0.0], 1.0), turns)
    assert lk.distributions.Transformed(lk.Gamma(2.0, 1.0), np.square).cdf([4.0]) == pytest.approx(
        stats.gamma(2.0).cdf(2.0)
    )


@pytest.mark.parametrize(
    ("distribution", "change", "outside"),
    [
        (lk.Gaussian([0.0], 1.0), "log", "0.5 outside"),
        (lk.Gaussian([0.0, 0.0], 1.0), "log", "outside"),
        (lk.Gamma(2.0, 1.0), "logit", "0.736 outside"),
        (lk.Poisson(1.0), "log", "0.368 outside"),
    ],
)
def test_distributions_with_weight_outside_of_the_domain_are_refused(distribution, change, outside):
    with pytest.raises(lk.DomainError, match=outside):
        lk.distributions.Transformed(distribution, change)


def test_functions_without_a_value_and_wrong_inverses_are_refused():
    bell = lk.Gaussian([0.0], 1.0)
    with pytest.raises(lk.DomainError, match="NaN"):
        lk.distributions.Transformed(bell, np.sqrt)
    with pytest.raises(lk.DomainError, match="undo forward"):
        lk.distributions.Transformed(bell, np.sinh, np.sinh)
    with pytest.raises(lk.DomainError, match="undo forward"):
        lk.distributions.Transformed(lk.Gaussian([0.0, 0.0], 1.0), np.square, np.sqrt)
    assert lk.distributions.Transformed(bell, np.tanh, np.arctanh).cdf([0.0]) == pytest.approx([0.5])


@pytest.mark.parametrize(("scale", "mean"), [(0.5, 4 / 3), (0.99, 1 / (1 - 0.99**2)), (1.0, math.inf), (2.0, math.inf)])
def test_means_that_lie_where_numbers_end(scale, mean):
    """E[eˣ] of a Laplace distribution is 1 / (1 − b²) for b < 1; near 1 most of it is where e^x overflows."""
    assert lk.distributions.Transformed(lk.Laplace(0.0, scale), "exp").mean == pytest.approx(mean, rel=1e-8)


def test_entropies_in_the_plane():
    distribution = lk.Gaussian([1.0, 2.0], [[1.0, 0.3], [0.3, 2.0]])
    assert lk.entropy(lk.distributions.Transformed(distribution, "exp")) == (
        pytest.approx(distribution.entropy() + 3.0),
        0.0,
    )
    bent, straight = lk.entropy(lk.distributions.Transformed(distribution, "logistic")), 0.0
    for mean, variance in zip(distribution.mean, distribution.variance, strict=True):
        alone = lk.Gaussian([mean], variance)
        straight += lk.distributions.Transformed(alone, "logistic").entropy() - alone.entropy()
    assert 0 < bent.error < 0.01
    assert abs(bent.value - distribution.entropy() - straight) < 4 * bent.error
