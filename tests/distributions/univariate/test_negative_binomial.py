"""The negative binomial distribution against mpmath, SciPy and the mixture of Poisson distributions that it is."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse
import scipy.stats

from likely.core.errors import DataError, DomainError, FitWarning, ShapeError
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.negative_binomial import NegativeBinomial
from likely.distributions.univariate.poisson import Poisson

EPS = float(np.finfo(float).eps)


def exact_log_prob(x: float, r: float, p: float) -> mp.mpf:
    X, R, P = mp.mpf(x), mp.mpf(r), mp.mpf(p)
    return mp.loggamma(X + R) - mp.loggamma(R) - mp.loggamma(X + 1) + R * mp.log(P) + X * mp.log(1 - P)


def excess_bits(got: float, x: float, r: float, p: float) -> float:
    """Wrong bits beyond those that rounding r and p alone would spoil."""
    X, R, P, exact = mp.mpf(x), mp.mpf(r), mp.mpf(p), exact_log_prob(x, r, p)
    spoilt = abs(R * (mp.digamma(X + R) - mp.digamma(R) + mp.log(P))) + abs(R - X * P / (1 - P))
    error = abs(mp.mpf(float(got)) - exact)
    return float(mp.log(error / (EPS * (abs(exact) + spoilt)), 2)) if error else -99.0


def worst_bits(n: int) -> float:
    rng, worst = np.random.default_rng(2), -99.0
    with mp.workdps(50):
        for _ in range(n):
            r = 10 ** rng.uniform(-6, 6)
            p = 10 ** rng.uniform(-6, 0) if rng.random() < 0.5 else 1 - 10 ** rng.uniform(-6, -0.1)
            mean = r * (1 - p) / p
            kinds = [
                mean + rng.normal() * np.sqrt(mean / p),
                mean * 10 ** rng.uniform(-2, 2),
                rng.integers(5),
                10 ** rng.uniform(0, 6),
            ]
            x = float(max(np.rint(kinds[rng.integers(4)]), 0.0))
            if exact_log_prob(x, r, p) > -1e5:
                worst = max(worst, excess_bits(NegativeBinomial(r, p).log_prob([x])[0], x, r, p))
    return worst


@pytest.mark.slow
def test_log_prob_is_right_to_the_last_bits():
    assert worst_bits(400) <= 2


@pytest.mark.campaign
def test_log_prob_is_right_to_the_last_bits_at_ten_thousand_points():
    assert worst_bits(10_000) <= 2


def test_huge_sizes_become_a_poisson_distribution():
    x = np.arange(30.0)
    for size in (1e8, 1e12, 1e15):
        distribution = NegativeBinomial(size, size / (size + 7.0), 7.0 / (size + 7.0))
        assert np.abs(distribution.log_prob(x) - Poisson(7.0).log_prob(x)).max() <= 1e3 / size + 1e-13


def test_it_is_a_poisson_distribution_of_uncertain_rate():
    distribution = Gamma(2.5, 0.8).predictive()
    for x in (0.0, 3.0, 12.0):

        def joint(rate, x=x):
            return np.exp(Poisson(rate).log_prob([x])[0] + Gamma(2.5, 0.8).log_prob([rate])[0])

        wanted, _ = scipy.integrate.quad(joint, 0, 60, epsabs=0, epsrel=1e-11)
        assert np.exp(distribution.log_prob([x])[0]) == pytest.approx(wanted, rel=1e-10)


def test_against_scipy():
    distribution, peer = NegativeBinomial(3.7, 0.21), scipy.stats.nbinom(3.7, 0.21)
    x = np.arange(-1.0, 80.0)
    assert np.allclose(distribution.log_prob(x), peer.logpmf(x), rtol=1e-12) and np.allclose(
        distribution.cdf(x), peer.cdf(x), rtol=1e-12
    )
    assert distribution.mean == pytest.approx(peer.mean()) and distribution.variance == pytest.approx(peer.var())
    p = np.array([1e-8, 0.01, 0.3, 0.5, 0.99, 0.999999])
    assert np.array_equal(distribution.quantile(p), peer.ppf(p))
    assert distribution.entropy() == pytest.approx(float(peer.entropy()), rel=1e-6)  # SciPy's is a short sum


def test_the_mode_is_the_most_likely_count():
    for r, p in [(0.5, 0.2), (1.0, 0.5), (3.0, 0.3), (40.0, 0.8)]:
        distribution = NegativeBinomial(r, p)
        assert distribution.log_prob(distribution.mode[None])[0] == distribution.log_prob(np.arange(200.0)).max()


def test_missing_values_stacks_and_impossible_values():
    distribution = NegativeBinomial([2.0, 5.0], [0.3, 0.6])
    assert distribution.log_prob([[1, np.nan]])[0] == NegativeBinomial(2.0, 0.3).log_prob([1])[0]
    assert distribution.log_prob([[1.5, 0], [0, -1], [np.nan, np.nan]]).tolist() == [-np.inf, -np.inf, 0.0]
    stack = NegativeBinomial([[2.0, 5.0], [1.0, 9.0]], 0.4)
    x = np.array([[0.0, 3.0], [7.0, np.nan], [400.0, 2.0]])
    assert np.array_equal(stack.log_prob(x), np.stack([stack.member(k).log_prob(x) for k in range(2)], axis=1))
    assert NegativeBinomial(2.0, 1.0).log_prob([0, 1]).tolist() == [0.0, -np.inf]
    x = np.ones(50_000)
    x[41_000] = np.inf
    with pytest.raises(DataError, match="row 41000, column 0"):
        NegativeBinomial(2.0, 0.3).log_prob(x)


def test_lookup_and_formula_agree(rng):
    distribution, x = NegativeBinomial([2.0, 0.01], [0.3, 0.06]), rng.integers(0, 40, (500, 2)).astype(float)
    assert np.abs(distribution.log_prob(x) - [distribution.log_prob(row[None])[0] for row in x]).max() <= 1e-14


def test_quantiles_are_the_smallest_count_that_reaches():
    p = np.concatenate([10.0 ** -np.arange(1.0, 100.0, 9.0), np.linspace(0.0, 0.999, 30)])
    for r, prob in [(1e-6, 0.5), (0.4, 1e-3), (5.0, 0.3), (1e6, 0.9), (1e6, 1e-6)]:
        distribution = NegativeBinomial(r, prob)
        x = distribution.quantile(p)
        assert (distribution.cdf(x) >= p).all() and ((distribution.cdf(x - 1) < p) | (x == 0)).all()
    assert NegativeBinomial(2.0, 0.3).quantile([0.0, 1.0]).tolist() == [0.0, np.inf]


def exact_entropy(r: float, p: float) -> mp.mpf:
    logs, total, k = exact_log_prob(0, r, p), mp.mpf(0), 0
    while k < r * (1 - p) / p or mp.exp(logs) > mp.mpf(10) ** -22:
        total -= mp.exp(logs) * logs
        logs += mp.log((mp.mpf(r) + k) / (k + 1)) + mp.log(1 - mp.mpf(p))
        k += 1
    return total


def test_entropy_against_exact_sums_and_closed_form():
    with mp.workdps(25):
        for r, p in [(1e-4, 0.5), (0.3, 0.02), (2.5, 0.1), (60.0, 0.7)]:
            assert abs(float(NegativeBinomial(r, p).entropy() / exact_entropy(r, p) - 1)) <= 1e-13
        for p in (1e-3, 1e-5, 1e-6):  # r = 1 is geometric; the last two have too many counts for a sum
            P = mp.mpf(p)
            exact = -((1 - P) * mp.log(1 - P) + P * mp.log(P)) / P
            assert abs(float(NegativeBinomial(1.0, p).entropy() / exact - 1)) <= 1e-13
    # far from 0 it is nearly normal, of the distribution's own variance
    assert NegativeBinomial(1e6, 1e-4).entropy() == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 1e6 / 1e-8), rel=1e-5)


def test_quadrature_and_sum_agree(monkeypatch):
    distribution = NegativeBinomial([0.02, 3.0, 5e3], [1e-3, 2e-3, 0.1])
    summed = [
        distribution.replace(
            size=distribution.size[[j]], prob=distribution.prob[[j]], rest=distribution.rest[[j]]
        ).entropy()
        for j in range(3)
    ]
    monkeypatch.setattr("likely.distributions.univariate.negative_binomial.FEW", 1000)
    assert distribution.entropy() == pytest.approx(sum(summed), rel=1e-13)


def test_expectations_are_exact_sums():
    value, error = NegativeBinomial(3.0, 0.4).expect(lambda x: x[..., 0] ** 2)
    assert value == pytest.approx(3 * 0.6 / 0.16 + (3 * 0.6 / 0.4) ** 2, rel=1e-13) and error == 0
    stack = NegativeBinomial([[3.0], [0.5]], 0.4)
    assert np.allclose(stack.expect(lambda x: x[..., 0]).value, stack.mean[:, 0], rtol=1e-13)
    assert NegativeBinomial(1.0, 1e-9).expect(lambda x: x[..., 0], n=1000).error > 0  # too many counts: draws


def test_draws_follow_the_distribution(rng):
    distribution = NegativeBinomial([[3.0, 0.5], [40.0, 2.0]], 0.3)
    x = distribution.sample(20_000, rng)
    assert x.shape == (20_000, 2, 2)
    assert (np.abs(x.mean(axis=0) - distribution.mean) <= 5 * np.sqrt(distribution.variance / 20_000)).all()
    assert np.allclose(x.var(axis=0), distribution.variance, rtol=0.15)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: NegativeBinomial(0.0, 0.5), DomainError, "positive"),
        (lambda: NegativeBinomial(1.0, 0.0), DomainError, r"\(0, 1\]"),
        (lambda: NegativeBinomial(1.0, 1.5), DomainError, r"\(0, 1\]"),
        (lambda: NegativeBinomial(1.0, 0.5, 0.6), DomainError, "1 - prob"),
        (lambda: NegativeBinomial([1.0, 2.0], [0.5, 0.5, 0.5]), ShapeError, "broadcast"),
        (lambda: NegativeBinomial([1.0, 2.0], 0.5).cdf(1), DomainError, "one column"),
        (lambda: NegativeBinomial.fit([1, -2]), DataError, "row 1, column 0"),
        (lambda: NegativeBinomial.from_moments(3.0, 2.0), DomainError, "exceed the mean"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(("r", "p"), [(2.5, 0.3), (0.1, 0.02), (40.0, 0.8)])
def test_maximum_likelihood_against_a_search(r, p):
    x = scipy.stats.nbinom(r, p).rvs(1500, random_state=3).astype(float)
    found = NegativeBinomial.fit(x)
    assert found.mean[0] == pytest.approx(
        x.mean(), rel=1e-12
    )  # the mean of the best distribution is that of the counts

    def lost(t):
        return -scipy.stats.nbinom(np.exp(t), np.exp(t) / (np.exp(t) + x.mean())).logpmf(x).sum()

    best = scipy.optimize.minimize_scalar(lost, bracket=(np.log(r) - 1, np.log(r) + 1), tol=1e-12)
    assert found.log_prob(x).sum() == pytest.approx(-best.fun, rel=1e-10)
    assert np.log(found.size[0]) == pytest.approx(best.x, abs=1e-5)  # a summit is flat: √ of the digits of its height
    slope = (lost(np.log(found.size[0]) + 1e-4) - lost(np.log(found.size[0]) - 1e-4)) / 2e-4
    assert abs(slope) <= 1e-4


def test_counts_that_spread_too_little_get_a_poisson_distribution_and_a_note():
    x = np.array([3.0, 4.0, 3.0, 4.0, 5.0])
    with pytest.warns(FitWarning, match="not overdispersed"):
        found = NegativeBinomial.fit(x)
    assert np.isfinite(found.size).all() and found.poisson_like.all()
    assert np.abs(found.log_prob(x) - Poisson(x.mean()).log_prob(x)).max() <= 1e-6


def test_nothing_counted_and_weights():
    nothing = NegativeBinomial.fit(np.zeros(5))
    assert nothing.log_prob([0.0])[0] == 0.0
    weak = NegativeBinomial.fit(np.zeros(5), prior="weak")
    assert np.isfinite(weak.log_prob([0.0, 1.0, 2.0])).all()
    x = np.array([[0.0], [1.0], [9.0]])
    twice = NegativeBinomial.fit(np.repeat(x, [2, 0, 3], axis=0))
    assert NegativeBinomial.fit(x, [2.0, 0.0, 3.0]).size == pytest.approx(twice.size, rel=1e-12)
    assert NegativeBinomial.moments_fit(np.array([[0.0], [9.0]])).mean == pytest.approx([4.5])


@pytest.mark.parametrize("size", [[2.0, 0.5], [[2.0, 0.5], [1.0, 9.0]]], ids=["one", "stack"])
def test_sparse_rows_score_as_dense_ones(size):
    distribution, x = (
        NegativeBinomial(size, 0.4),
        np.array([[0.0, 3.0], [2.0, 0.0], [0.5, 1.0], [0.0, 0.0], [-1.0, 2.0]]),
    )
    found = distribution.log_prob(scipy.sparse.csr_array(x))
    np.testing.assert_allclose(found, distribution.log_prob(x), rtol=1e-13)
    assert np.isneginf(found[[2, 4]]).all() and np.isfinite(found[[0, 1, 3]]).all()  # of counts that are none, too
