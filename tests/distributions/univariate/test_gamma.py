"""The gamma distribution as a density, and as conjugate prior of a Poisson rate."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.core.protocols import Prior
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.poisson import Poisson

EPS = float(np.finfo(float).eps)

# --------------------------------------------------------------------- the distribution


def worst_bits(n: int) -> float:
    """Wrong bits beyond those that rounding x, a and b alone would spoil."""
    rng, worst = np.random.default_rng(4), -99.0
    with mp.workdps(50):
        for _ in range(n):
            a, b = 10 ** rng.uniform(-6, 6, 2)
            kinds = [max(rng.gamma(a) / b, 1e-300), a / b * 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-12, 12)]
            x = float(kinds[rng.integers(3)])
            A, B, X = mp.mpf(a), mp.mpf(b), mp.mpf(x)
            exact = A * mp.log(B) - mp.loggamma(A) + (A - 1) * mp.log(X) - B * X
            if exact > -1e5:
                spoilt = abs(A - 1 - B * X) + abs(A - B * X) + abs(A * (mp.log(B * X) - mp.digamma(A)))
                error = abs(mp.mpf(float(Gamma(a, b).log_prob([x])[0])) - exact)
                worst = max(worst, float(mp.log(error / (EPS * (abs(exact) + spoilt)), 2)) if error else -99.0)
    return worst


def test_log_prob_is_right_to_the_last_bits():
    assert worst_bits(500) <= 2


@pytest.mark.campaign
def test_log_prob_is_right_to_the_last_bits_at_ten_thousand_points():
    assert worst_bits(10_000) <= 2


def test_edges_of_the_domain():
    distribution = Gamma([[0.5], [1.0], [2.0]], 3.0)
    assert distribution.log_prob([-1.0, 0.0]).tolist() == [[-np.inf] * 3, [np.inf, np.log(3.0), -np.inf]]
    assert np.isfinite(distribution.log_prob([5e-324])).all() and not np.isnan(distribution.log_prob([1.7e308])).any()
    assert Gamma([2.0, 3.0], 1.0).log_prob([[1.0, np.nan]])[0] == Gamma(2.0, 1.0).log_prob([1.0])[0]
    with pytest.raises(DataError, match="row 1, column 0"):
        Gamma(2.0, 1.0).log_prob([1.0, np.inf])


def test_against_scipy():
    distribution, peer = Gamma(3.7, 0.4), scipy.stats.gamma(3.7, scale=2.5)
    x = np.linspace(0.01, 60, 50)
    assert np.allclose(distribution.log_prob(x), peer.logpdf(x), rtol=1e-12) and np.allclose(
        distribution.cdf(x), peer.cdf(x), rtol=1e-12
    )
    assert distribution.cdf([-1.0, 0.0]).tolist() == [0.0, 0.0]
    p = np.array([1e-9, 0.1, 0.5, 0.99])
    assert np.allclose(distribution.quantile(p), peer.ppf(p), rtol=1e-12)
    assert distribution.median == pytest.approx(peer.median(), rel=1e-13)
    assert (distribution.mean[0], distribution.variance[0]) == pytest.approx((peer.mean(), peer.var()))
    assert distribution.entropy() == pytest.approx(peer.entropy(), rel=1e-13) and distribution.mode == pytest.approx(
        2.7 / 0.4
    )
    assert distribution.log_prob(distribution.mode[None])[0] >= distribution.log_prob(np.linspace(6, 7.5, 100)).max()
    both = Gamma([3.7, 1.0], [0.4, 2.0])
    assert np.allclose(
        both.log_prob(np.column_stack([x, x])), peer.logpdf(x) + scipy.stats.expon(scale=0.5).logpdf(x), rtol=1e-12
    )


def exact_lower(a: float, y: float) -> mp.mpf:
    """The regularized lower incomplete gamma function by its series, however long."""
    A, Y = mp.mpf(a), mp.mpf(y)
    total = term = mp.mpf(1)
    k = 1
    while term > total * mp.mpf(10) ** -25:
        term *= Y / (A + k)
        total += term
        k += 1
    return mp.exp(A * mp.log(Y) - Y - mp.loggamma(A + 1)) * total


@pytest.mark.some_cases(4)
@pytest.mark.parametrize("a", [1e-6, 0.03, 1.0, 50.0, 3e4, 6.5e5, 1e6])
def test_distribution_function_and_quantiles_in_the_lower_tail(a):
    """SciPy's gammainc keeps 8 digits at a = 656,080, five and a half deviations below the mean."""
    with mp.workdps(40):
        for sigmas in (0.5, 3.9, 4.1, 5.5, 8.0, 20.0):
            y = a - sigmas * np.sqrt(a)
            y = y if y > 0 else a * 10.0**-sigmas
            exact = exact_lower(a, y)
            if exact < 1e-300:
                continue
            assert abs(float(Gamma(a, 1.0).cdf(y) / exact - 1)) <= 1e-11
            if 1e-290 < exact < 0.999:
                assert float(Gamma(a, 1.0).quantile(float(exact))) == pytest.approx(y, rel=1e-9)


def test_scipy_alone_would_fail_that():
    with mp.workdps(40):
        assert abs(float(scipy.special.gammainc(656080.0, 651641.0) / exact_lower(656080.0, 651641.0) - 1)) > 1e-9


def test_entropy_and_divergence_keep_their_digits(rng):
    with mp.workdps(50):
        for _ in range(100):
            a, b, c, d = 10 ** rng.uniform(-6, 6, 4)
            if rng.random() < 0.5:
                c, d = a * (1 + 1e-4), b * (1 - 1e-4)
            A, B, C, D = (mp.mpf(float(v)) for v in (a, b, c, d))
            entropy = A - mp.log(B) + mp.loggamma(A) + (1 - A) * mp.digamma(A)
            assert abs(float(Gamma(a, b).entropy() - entropy)) <= 4e-15 * (
                1 + abs(float(mp.log(B))) + abs(float(entropy))
            )
            kl = (A - C) * mp.digamma(A) - mp.loggamma(A) + mp.loggamma(C) + C * mp.log(B / D) + A * (D - B) / B
            assert abs(float(Gamma(a, b).kl(Gamma(c, d)) - kl)) <= 1e-13 * float(kl) + 2e-14
    assert Gamma([2.0, 3.0], 1.0).kl(Gamma([4.0, 4.0], 2.0)) == pytest.approx(
        sum(Gamma(s, 1.0).kl(Gamma(4.0, 2.0)) for s in (2.0, 3.0))
    )


def test_divergence_is_the_integral():
    p, q = Gamma(3.0, 2.0), Gamma(1.5, 0.7)
    wanted, _ = scipy.integrate.quad(
        lambda x: np.exp(p.log_prob([x])[0]) * (p.log_prob([x])[0] - q.log_prob([x])[0]), 0, 40
    )
    assert p.kl(q) == pytest.approx(wanted, rel=1e-8)


def test_draws_follow_the_distribution(rng):
    distribution = Gamma([[3.0], [0.2]], [[2.0], [0.5]])
    x = distribution.sample(20_000, rng)
    assert x.shape == (20_000, 2, 1)
    for k in range(2):
        assert scipy.stats.kstest(x[:, k, 0], distribution.member(k).cdf).statistic <= 0.0191  # the DKW bound at 1e-6
    assert (Gamma(1e-6, 1.0).sample(50, rng) > 0).all()


# ------------------------------------------------------------------- the prior

STACK = Poisson([[3.0, 0.5], [1.0, 7.0], [4.0, 4.0]])


def stats_of(n, rng, distribution=STACK):
    x = rng.poisson(4.0, (n, 2)).astype(float)
    x[rng.random(x.shape) < 0.15] = np.nan
    return distribution.collect(x, rng.random((n, 3)) if distribution.members else rng.random(n))


def test_it_plays_the_role():
    assert isinstance(Gamma(1.0, 1.0), Prior)


@pytest.mark.parametrize(
    "prior", [Gamma([2.0, 0.5], [1.0, 3.0]), Gamma(2.0, 1.0), Gamma(np.arange(1.0, 7.0).reshape(3, 2), 2.0)]
)
def test_updating_twice_is_updating_with_the_sum(prior, rng):
    a, b = stats_of(30, rng), stats_of(20, rng)
    once, twice = prior.update(a + b), prior.update(a).update(b)
    assert once.shape.shape == (3, 2)
    assert np.allclose(once.shape, twice.shape, rtol=1e-13, atol=0)
    assert np.allclose(once.rate, twice.rate, rtol=1e-13, atol=0)
    first, second = prior.log_evidence(a), prior.update(a).log_evidence(b)
    assert np.allclose(prior.log_evidence(a + b), first + second, rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "rate", "level"),
    [(1.0, 1.0, 3.0), (0.01, 1e-3, 1.0), (7.3, 0.2, 40.0), (2.0, 1e5, 2.0), (50.0, 1e-6, 1e3)],
)
def test_evidence_is_the_product_of_predictives(shape, rate, level, rng):
    x = rng.poisson(level, (60, 2)).astype(float)
    x[rng.random(x.shape) < 0.15] = np.nan
    prior, distribution = Gamma([shape, 2 * shape], rate), Poisson([1.0, 1.0])
    one_by_one, now = [], prior
    for row in x:
        one_by_one.append(now.predictive().log_prob(row[None])[0])
        now = now.update(distribution.collect(row[None]))
    assert prior.log_evidence(distribution.collect(x)) == pytest.approx(np.sum(one_by_one), rel=1e-12)


def test_evidence_is_the_integral_over_rates():
    x, prior = np.array([3.0, 5.0, 1.0]), Gamma(2.0, 0.7)
    stats = Poisson(1.0).collect(x, [1.0, 2.0, 1.0])

    def joint(rate):
        return np.exp(Poisson(rate).objective(stats, prior))

    wanted, _ = scipy.integrate.quad(joint, 0, 40, epsabs=0, epsrel=1e-11)
    assert prior.log_evidence(stats) == pytest.approx(np.log(wanted), rel=1e-10)


def test_bayes_theorem_holds_at_every_rate(rng):
    """log p(λ) + log p(x | λ) − log p(x) = log p(λ | x)."""
    stats, prior = stats_of(20, rng), Gamma([2.0, 0.5], [1.0, 3.0])
    for k in range(3):
        one, mine = STACK.member(k), stats.member(k)
        left = one.objective(mine, prior) - prior.log_evidence(mine)
        assert left == pytest.approx(prior.update(mine).log_density(one), rel=1e-11)


def test_the_mode_maximizes_the_objective(rng):
    stats = stats_of(20, rng, Poisson([1.0, 1.0]))
    prior = Gamma([2.0, 3.0], [1.0, 3.0])
    best = Poisson([1.0, 1.0]).refit(stats, prior)
    for step in (0.999, 1.001):
        assert Poisson(best.rate * step).objective(stats, prior) < best.objective(stats, prior)


def test_points_are_those_of_the_distribution():
    distribution = Gamma([0.5, 3.0], [2.0, 4.0])
    assert distribution.point().rate.tolist() == [0.0, 0.5] and distribution.point("mean").rate.tolist() == [0.25, 0.75]
    assert np.allclose(
        distribution.point("median").rate, scipy.stats.gamma([0.5, 3.0], scale=[0.5, 0.25]).median(), rtol=1e-12
    )
    with pytest.raises(DomainError, match="rule"):
        distribution.point("middle")


def test_models_drawn_from_it_have_its_rates(rng):
    distribution = Gamma([[2.0, 30.0]], 4.0)
    draws = np.array([distribution.draw(rng).rate for _ in range(2000)])
    assert draws.shape == (2000, 1, 2)
    assert (np.abs(draws.mean(axis=0) - distribution.mean) <= 5 * np.sqrt(distribution.variance / 2000)).all()


def test_the_weak_prior_is_a_tenth_of_a_row():
    stats = Poisson([1.0, 1.0]).collect([[3, 0], [5, 0]])
    prior = Gamma.weak(stats)
    assert prior.rate.tolist() == [0.1, 0.1] and prior.point().rate[0] == pytest.approx(4.0, rel=1e-14)
    assert prior.update(stats).point().rate[0] == pytest.approx(4.0, rel=1e-14)
    assert 0 < prior.update(stats).point().rate[1] < 0.02  # never 0: an event must stay possible
    nothing = Gamma.weak(Poisson([1.0]).collect([]))
    assert nothing.point().rate[0] == pytest.approx(0.5)
    stack = STACK.collect([[3, 1], [5, 1], [1, 1]], labels=[0, 1, 1])
    assert Gamma.weak(stack).members is None and Gamma.weak(stack).point().rate[0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Gamma(0.0, 1.0), DomainError, "positive"),
        (lambda: Gamma(1.0, -1.0), DomainError, "positive"),
        (lambda: Gamma([1.0, 2.0], [1.0, 2.0, 3.0]), ShapeError, "broadcast"),
        (lambda: Gamma([1.0, 2.0], 1.0).cdf(1.0), DomainError, "one column"),
        (lambda: Gamma([1.0, 2.0, 3.0], 1.0).update(STACK.collect([[1, 2]])), ShapeError, r"fits \(3,\)"),
        (lambda: Gamma([[1.0, 2.0]], 1.0).update(STACK.collect([[1, 2]])), ShapeError, r"fits \(1, 2\)"),
        (lambda: Gamma([1.0, 2.0, 3.0], 1.0).log_density(STACK), ShapeError, r"fits \(3,\)"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_gamma_serves_waits_and_counts():
    prior = lk.Gamma(2.0, 1.0)
    waits = prior.update(lk.Exponential(1.0).collect([3.0, 5.0]))
    counts = prior.update(lk.Poisson(1.0).collect([3, 5]))
    assert waits.likelihood == "exponential" and (waits.shape[0], waits.rate[0]) == (4.0, 9.0)
    assert counts.likelihood == "poisson" and (counts.shape[0], counts.rate[0]) == (10.0, 3.0)
    assert isinstance(waits.predictive(), lk.distributions.Lomax) and isinstance(
        counts.predictive(), lk.NegativeBinomial
    )
    assert isinstance(waits.draw(np.random.default_rng(0)), lk.Exponential)
    with pytest.raises(lk.DomainError, match="likelihood must be"):
        lk.Gamma(1.0, 1.0, likelihood="normal")
    with pytest.raises(lk.DomainError, match="counts or of waiting times"):
        prior.update(lk.distributions.ChiSquare(1.0).collect([1.0]))
    with pytest.raises(lk.DomainError, match="must not be 0"):
        lk.Gamma(0.5, 1.0, likelihood="exponential").point("mode")


def test_the_weak_prior_of_waits():
    distribution = lk.Exponential([1.0, 1.0, 1.0])
    weak = lk.Gamma.weak(distribution.collect([[2.0, 0.0, np.nan], [4.0, 0.0, np.nan]]))
    assert weak.likelihood == "exponential"
    np.testing.assert_allclose(weak.mode[[0, 2]], [1 / 3, 1.0])
    assert np.isfinite(weak.mode).all() and np.isfinite(weak.point().log_prob([[1.0, 0.0, 1.0]])).all()
