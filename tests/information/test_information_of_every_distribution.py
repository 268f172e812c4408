"""Entropies and divergences of every distribution against sums and integrals of its density, and Monte Carlo."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

import likely as lk
from likely.distributions.statistics.expected_counts import NEAR, expected, urn_entropy, urn_kl
from tests.docs.distribution_tables import CASES

DRAWS = 20_000
COUNTS = ("Poisson", "NegativeBinomial", "BetaNegativeBinomial", "Bernoulli", "Binomial", "BetaBinomial", "Categorical")
LINES = {  # where the density of both has corners, and where it ends
    "Gaussian": (-12.0, 0.0, 1.0, 14.0), "Laplace": (-60.0, 0.0, 1.0, 80.0), "Triangular": (0.0, 0.3, 0.5, 1.0),
    "Uniform": (0.0, 1.0),
    "UniformPredictive": (-1e7, -1e4, -120.0, -1.0, 0.0, 3.0, 120.0, 1e4, 1e7), "Exponential": (0.0, 1.0, 30.0),
    "ChiSquare": (0.0, 1.0, 10.0, 120.0), "Gamma": (0.0, 0.1, 1.0, 30.0), "Beta": (0.0, 0.5, 1.0),
    "Elliptical": (-60.0, 0.0, 1.0, 80.0),
    "VonMises": (-math.pi, 0.0, 1.0, math.pi), "Lomax": (0.0, 1.0, 100.0, 1e6),
    "StudentT": (-1e4, -50.0, 0.0, 1.0, 50.0, 1e4), "Cauchy": (-1e9, -1e4, -50.0, 0.0, 1.0, 50.0, 1e4, 1e9),
    "Mixture": (-12.0, 0.0, 2.5, 5.0, 20.0),
}  # fmt: skip


def mean_of(distribution, g, name):
    """E g under a distribution of one column, by quadrature between corners or by a sum."""
    if name in COUNTS:
        x = np.arange(3.0 if name == "Categorical" else 1e6 if name == "BetaNegativeBinomial" else 400.0)
        logs = distribution.log_prob(x)
        return float(np.exp(logs[logs > -np.inf]) @ g(x[logs > -np.inf]))

    def f(x):
        logs = float(distribution.log_prob(np.array([[x]]))[0])
        return math.exp(logs) * float(g(np.array([x]))[0]) if logs > -700 else 0.0

    ends = LINES[name]
    return sum(quad(f, a, b, epsabs=1e-13, epsrel=1e-11, limit=400)[0] for a, b in pairwise(ends))


def logs(distribution):
    return lambda x: distribution.log_prob(x[:, None])


@pytest.mark.some_cases(6)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("name", [*COUNTS, *LINES])
def test_one_column_beside_its_own_sum_or_integral(name):
    distribution, other = CASES[name]()[0]
    p, q = logs(distribution), logs(other)
    loose = 1e-5 if name in ("Cauchy", "StudentT", "BetaNegativeBinomial") else 1e-8  # tails that the oracle cuts off
    assert lk.entropy(distribution).value == pytest.approx(mean_of(distribution, lambda x: -p(x), name), abs=loose)
    assert lk.kl_divergence(distribution, other).value == pytest.approx(
        mean_of(distribution, lambda x: p(x) - q(x), name), abs=loose
    )
    assert lk.kl_divergence(distribution, distribution).value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.some_cases(17)
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_distribution_beside_draws(name):
    for case in filter(None, CASES[name]()):
        x = case.distribution.sample(DRAWS, np.random.default_rng(1))
        p, q = case.distribution.log_prob(x), case.other.log_prob(x)
        for found, terms in ((lk.entropy(case.distribution, n=DRAWS), -p), (lk.kl_divergence(*case, n=DRAWS), p - q)):
            spread = math.hypot(terms.std() / math.sqrt(DRAWS), found.error)
            assert abs(found.value - terms.mean()) <= 5 * spread + 1e-9


# ------------------------------------------------------------------------- sums over counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "q"),
    [((2.5, 0.3), (2.5, 0.4)), ((2.5, 0.3), (5.0, 0.4)), ((0.5, 0.02), (3.0, 0.05)), ((50.0, 0.5), (60.0, 0.9))],
)
def test_divergence_of_negative_binomial_distributions_beside_high_precision(p, q):
    mp = pytest.importorskip("mpmath")

    def log(x, r, a):
        return mp.loggamma(x + r) - mp.loggamma(r) - mp.loggamma(x + 1) + r * mp.log(a) + x * mp.log1p(-mp.mpf(a))

    with mp.workdps(30):
        wanted = mp.fsum(mp.exp(log(x, *p)) * (log(x, *p) - log(x, *q)) for x in range(3000 if p[1] < 0.1 else 600))
    assert lk.NegativeBinomial(*p).kl(lk.NegativeBinomial(*q)) == pytest.approx(float(wanted), rel=1e-13)


def test_wide_negative_binomial_distributions_are_gamma_distributions():
    """r and p → 0: counts in units of 1/p have a gamma distribution."""
    found = lk.kl_divergence(lk.NegativeBinomial(2.5, 1e-7), lk.NegativeBinomial(5.0, 1e-7))
    assert found.error == 0
    assert found.value == pytest.approx(lk.Gamma(2.5, 1.0).kl(lk.Gamma(5.0, 1.0)), abs=1e-6)


def test_ends_of_the_negative_binomial_divergence():
    sure, open_ = lk.NegativeBinomial(2.0, 1.0), lk.NegativeBinomial(3.0, 0.5)
    assert sure.kl(open_) == pytest.approx(-3 * math.log(0.5))
    assert open_.kl(sure) == math.inf
    assert sure.kl(lk.NegativeBinomial(7.0, 1.0)) == 0.0
    both = lk.NegativeBinomial([[2.0, 3.0], [1.0, 4.0]], 0.5).kl(lk.NegativeBinomial([2.0, 5.0], 0.4))
    one = lk.NegativeBinomial([1.0, 4.0], 0.5).kl(lk.NegativeBinomial([2.0, 5.0], 0.4))
    assert both.shape == (2,) and both[1] == pytest.approx(one, rel=1e-14)


HEAVY = [((2.0, 0.5, 1.0), (2.0, 0.7, 2.0)), ((3.0, 0.05, 2.0), (1.0, 0.1, 2.0)), ((5e3, 3.0, 2e3), (4e3, 3.3, 2e3)),
         ((1e6, 1e6, 1e4), (1e6, 1.1e6, 1e4))]  # fmt: skip


@pytest.mark.parametrize(("p", "q"), HEAVY)
def test_heavy_tails_are_summed_to_their_end(p, q, monkeypatch):
    """However many counts are summed one by one, the whole is the same."""
    p, q = lk.distributions.BetaNegativeBinomial(*p), lk.distributions.BetaNegativeBinomial(*q)
    near = urn_entropy(p), urn_kl(p, q)
    monkeypatch.setattr("likely.distributions.statistics.expected_counts.NEAR", 16 * NEAR)
    assert (urn_entropy(p), urn_kl(p, q)) == pytest.approx(near, rel=1e-12, abs=1e-13)


def test_a_heavy_divergence_beside_high_precision():
    """Summed by Euler and Maclaurin in thirty digits."""
    found = lk.kl_divergence(
        lk.distributions.BetaNegativeBinomial(2.0, 0.5, 1.0), lk.distributions.BetaNegativeBinomial(2.0, 0.7, 2.0)
    )
    assert found == (pytest.approx(0.04934307289144365, rel=1e-12), 0.0)


@pytest.mark.slow
def test_columns_add_and_cross_entropies_follow():
    p, q = (lk.distributions.BetaNegativeBinomial([2.0, 1.0], a, 1.0) for a in (3.0, 4.0))
    each = [lk.kl_divergence(p.marginal([j]), q.marginal([j])).value for j in range(2)]
    assert lk.kl_divergence(p, q) == (pytest.approx(sum(each)), 0.0)
    assert lk.information.cross_entropy(p, q) == (pytest.approx(lk.entropy(p).value + sum(each)), 0.0)


def test_a_peak_far_out_is_summed():
    """A Poisson distribution of mean 9000, about a hundred wide: whole mass, mean and variance."""

    def log_p(x):
        return x * math.log(9e3) - 9e3 - gammaln(x + 1)

    assert expected(log_p, np.ones_like, 9e3, 2e4) == pytest.approx(1.0, rel=1e-10)
    assert expected(log_p, lambda x: (x - 9e3) ** 2, 9e3, 2e4) == pytest.approx(9e3, rel=1e-10)


@pytest.mark.parametrize("mean", [3000.0, 4000.0, 4080.0, 4300.0, 6000.0])
def test_a_narrow_peak_at_the_last_count_that_is_summed(mean):
    """Neither side of the border between sum and integral may cut a peak that is 64 counts wide."""
    x = np.arange(40_000.0)
    urn = lk.distributions.BetaNegativeBinomial(1e8, 1e9, 10 * mean)
    logs = urn.log_prob(x[:, None])
    assert lk.entropy(urn).value == pytest.approx(-(np.exp(logs) * logs).sum(), rel=1e-12)
    p, q = (lk.NegativeBinomial(r, r / (r + mean)) for r in (1e9, 1e4))
    first, other = (distribution.log_prob(x[:, None]) for distribution in (p, q))
    assert lk.kl_divergence(p, q).value == pytest.approx((np.exp(first) * (first - other)).sum(), rel=1e-11)
