"""The binomial distribution and its predictive distributions against mpmath and SciPy."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import likely as lk
from likely.distributions.univariate import beta_binomial

EPS = float(np.finfo(float).eps)


def binomial_bits(n: int) -> float:
    rng, worst = np.random.default_rng(5), -99.0
    with mp.workdps(50):
        for _ in range(n):
            N = float(np.rint(10 ** rng.uniform(0, 6)))
            p = 10 ** rng.uniform(-6, -0.01) if rng.random() < 0.5 else 1 - 10 ** rng.uniform(-6, -0.1)
            x = float(np.clip(np.rint(N * p + rng.normal() * rng.choice([1, 5, 50]) * np.sqrt(N * p * (1 - p))), 0, N))
            X, P, M = mp.mpf(x), mp.mpf(p), mp.mpf(N)
            exact = mp.log(mp.binomial(M, X)) + X * mp.log(P) + (M - X) * mp.log(1 - P)
            if exact < -1e5:
                continue
            spoilt = abs(X - M * P) / (1 - P)
            error = abs(mp.mpf(float(lk.Binomial(N, p).log_prob([x])[0])) - exact)
            worst = max(worst, float(mp.log(error / (EPS * (abs(exact) + spoilt)), 2)) if error else -99.0)
    return worst


def test_log_prob_is_right_to_the_last_bits():
    assert binomial_bits(300) <= 4


def urn_bits(n: int) -> float:
    rng, worst = np.random.default_rng(6), -99.0
    with mp.workdps(50):
        for _ in range(n):
            N = float(np.rint(10 ** rng.uniform(0, 6)))
            a, b = 10 ** rng.uniform(-6, 6, 2)
            x = (
                float(np.rint(N * rng.beta(max(a, 1e-3), max(b, 1e-3))))
                if rng.random() < 0.7
                else float(rng.integers(N + 1))
            )
            X, A, B, M = mp.mpf(x), mp.mpf(float(a)), mp.mpf(float(b)), mp.mpf(N)
            exact = mp.log(mp.binomial(M, X)) + mp.log(mp.beta(X + A, M - X + B)) - mp.log(mp.beta(A, B))
            if exact < -1e5:
                continue
            da = A * (mp.digamma(X + A) - mp.digamma(A) - mp.digamma(M + A + B) + mp.digamma(A + B))
            db = B * (mp.digamma(M - X + B) - mp.digamma(B) - mp.digamma(M + A + B) + mp.digamma(A + B))
            error = abs(mp.mpf(float(lk.distributions.BetaBinomial(N, a, b).log_prob([x])[0])) - exact)
            size = EPS * (
                max(abs(exact), 1e-2) + abs(da) + abs(db)
            )  # next to certainty, a hundredth of a unit is the measure
            worst = max(worst, float(mp.log(error / size, 2)) if error else -99.0)
    return worst


@pytest.mark.slow
def test_log_prob_of_an_urn_is_right_to_the_last_bits():
    assert urn_bits(200) <= 4


def test_against_scipy():
    x = np.arange(-1.0, 13.0)
    for distribution, peer in (
        (lk.Binomial(11, 0.3), scipy.stats.binom(11, 0.3)),
        (lk.distributions.BetaBinomial(11, 0.4, 2.0), scipy.stats.betabinom(11, 0.4, 2.0)),
        (lk.distributions.BetaNegativeBinomial(3.0, 2.5, 4.0), scipy.stats.betanbinom(3.0, 2.5, 4.0)),
    ):
        assert np.allclose(distribution.log_prob(x), peer.logpmf(x), rtol=1e-12) and np.allclose(
            distribution.cdf(x), peer.cdf(x)
        )
        assert distribution.mean == pytest.approx(peer.mean()) and distribution.variance == pytest.approx(peer.var())
        p = np.array([1e-8, 0.01, 0.3, 0.5, 0.99])
        assert np.array_equal(distribution.quantile(p), peer.ppf(p))
        assert distribution.log_prob(distribution.mode[None])[0] == distribution.log_prob(np.arange(30.0)).max()
    assert lk.Binomial(11, 0.3).entropy() == pytest.approx(float(scipy.stats.binom(11, 0.3).entropy()), rel=1e-12)


def test_tails_and_ends():
    distribution = lk.Binomial(1000, 0.4)
    with mp.workdps(40):
        exact = sum(mp.binomial(1000, k) * mp.mpf(0.4) ** k * (1 - mp.mpf(0.4)) ** (1000 - k) for k in range(41))
    assert distribution.cdf([40.0])[0] == pytest.approx(float(exact), rel=1e-12)
    assert lk.Binomial(5, [[0.0], [1.0]]).log_prob([[0.0], [5.0]]).tolist() == [[0.0, -np.inf], [-np.inf, 0.0]]
    assert distribution.quantile([0.0, 1.0]).tolist() == [0.0, 1000.0]
    assert lk.distributions.BetaBinomial(1000, 40.0, 60.0).quantile([1.0]).tolist() == [1000.0]
    wide = lk.Binomial(1e9, 0.3).entropy()
    assert wide == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 1e9 * 0.21), abs=1e-8)


def test_maximum_likelihood_with_weights_and_missing_values():
    x = np.array([[1.0, 4.0], [2.0, np.nan], [0.0, 0.0]])
    distribution = lk.Binomial.fit(x, [1.0, 2.0, 0.0], trials=[3, 5])
    assert distribution.probs == pytest.approx([5 / 9, 4 / 5])
    assert lk.Binomial.fit(np.repeat(x, [1, 2, 0], axis=0), trials=[3, 5]).probs == pytest.approx(distribution.probs)
    assert lk.Binomial.fit([[2.0], [6.0]]).trials.tolist() == [6.0]
    with pytest.raises(lk.DataError, match=r"exceed the 3 trials.*row 1, column 0"):
        lk.Binomial.fit([[1.0], [4.0]], trials=3)
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.Binomial.fit([[1.0], [-4.0]], trials=3)


def test_a_stack_of_unlike_trials():
    stack = lk.Binomial([[3.0], [9.0]], 0.5)
    stats = stack.collect([[2.0], [8.0]], labels=[0, 1])
    assert stats.ones.ravel().tolist() == [2.0, 8.0] and stats.zeros.ravel().tolist() == [1.0, 1.0]
    want = lk.Binomial(3, 0.5).log_prob([2.0])[0] + lk.Binomial(9, 0.5).log_prob([8.0])[0]
    assert stack.objective(stats) == pytest.approx(want)
    with pytest.raises(lk.DataError, match="3 trials"):
        stack.collect([[8.0], [8.0]], labels=[0, 1])
    with pytest.raises(lk.ShapeError, match="the same trials"):
        lk.Binomial(3, 0.5).collect([1.0]) + lk.Binomial(4, 0.5).collect([1.0])


def test_other_estimates():
    x = lk.Binomial(40, 0.2).sample(20_000, np.random.default_rng(0))
    found = lk.Binomial.moments_fit(x)
    assert found.trials[0] == pytest.approx(40, abs=6) and found.mean[0] == pytest.approx(x.mean(), rel=0.02)
    assert lk.Binomial.unbiased_fit(x, trials=40).probs[0] == pytest.approx(x.mean() / 40)
    with pytest.raises(lk.DomainError, match="unknown trials"):
        lk.Binomial.unbiased_fit(x)
    with pytest.raises(lk.DomainError, match="variance must be below"):
        lk.Binomial.moments_fit([[0.0], [9.0]])


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (0.2, 0.1), (30.0, 10.0)])
def test_the_urn_is_learned_to_eight_digits(a, b):
    x = scipy.stats.betabinom(20, a, b).rvs(800, random_state=1).astype(float)
    found = lk.distributions.BetaBinomial.fit(x, trials=20)

    def lost(t):
        return -scipy.stats.betabinom(20, *np.exp(t)).logpmf(x).sum()

    best = scipy.optimize.minimize(
        lost, np.log([a, b]), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 2000}
    )
    assert found.log_prob(x).sum() >= -best.fun - 1e-8 * abs(best.fun)
    assert np.log([found.a[0], found.b[0]]) == pytest.approx(
        best.x, abs=2e-5
    )  # a summit is flat: √ of the heights' digits
    slope = scipy.optimize.approx_fprime(np.log([found.a[0], found.b[0]]), lost, 1e-6)
    assert np.abs(slope).max() <= 1e-2


def test_counts_that_say_little_give_finite_distributions():
    for x in ([0, 0, 0], [7, 7], [3], [0, 7, 0, 7], [3, 3, 4, 4]):
        distribution = lk.distributions.BetaBinomial.fit(np.array(x, float), trials=7)
        assert (
            np.isfinite(distribution.log_prob(np.array(x, float))).all()
            and (distribution.a > 0).all()
            and (distribution.b < np.inf).all()
        )
    spread = lk.distributions.BetaBinomial.fit(
        np.array([3.0, 3, 4, 4]), trials=7
    )  # no more than a binomial distribution's
    assert spread.variance[0] == pytest.approx(lk.Binomial(7, 0.5).variance[0], rel=1e-5)


@pytest.mark.slow
def test_what_a_beta_distribution_predicts(rng):
    post = lk.Beta(2.0, 3.0).update(lk.Binomial(4, 0.5).collect([1, 2, 4]))
    assert (post.a[0], post.b[0]) == (9.0, 8.0) and isinstance(post.predictive(), lk.distributions.BetaBinomial)
    x = np.arange(5.0)
    draws = np.mean([np.exp(post.draw(rng).log_prob(x)) for _ in range(1500)], axis=0)
    assert np.exp(post.predictive().log_prob(x)) == pytest.approx(draws, abs=0.02)
    coins = lk.Beta(2, 3).update(lk.Bernoulli(0.5).collect([0, 1, 1])).predictive()
    assert coins.probs[0] == pytest.approx(0.5)
    with pytest.raises(lk.DomainError, match="known"):
        lk.Beta(1.0, 1.0, "binomial")
    with pytest.raises(lk.DomainError, match="size of negative binomial"):
        lk.Beta(1.0, 1.0).update(lk.NegativeBinomial(2.0, 0.5).collect([1.0]))


def test_estimators():
    X = lk.Binomial([6, 20], [0.3, 0.8]).sample(500, np.random.default_rng(2))
    with pytest.warns(lk.FitWarning, match="trials were not given"):
        lk.BinomialDensity().fit(X)
    assert lk.BinomialDensity(trials=[6, 20]).fit(X).probs_ == pytest.approx([0.3, 0.8], abs=0.03)
    assert isinstance(lk.BinomialDensity(trials=20, predictive=True).fit(X).model_, lk.distributions.BetaBinomial)
    with pytest.raises(lk.DataError, match="one for each of the 2 columns"):
        lk.BinomialDensity(trials=[6, 20, 3]).fit(X)
    y = np.arange(500) % 2
    for density in (lk.BinomialDensity(trials=20), lk.distributions.BetaBinomialDensity(trials=20)):
        clf = lk.BayesClassifier(density).fit(X + y[:, None] * 0.0, y)
        assert clf.predict_proba(X).shape == (500, 2)


def test_the_urn_is_learned_in_few_steps_from_the_distribution_of_before(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.binomial(20, rng.beta([2.0, 6.0], [5.0, 2.0], (60, 2))).astype(float)
    w = rng.random(60)
    looks, hill = [], beta_binomial._objective
    monkeypatch.setattr(beta_binomial, "_objective", lambda *at: looks.append(1) or hill(*at))
    cold = lk.distributions.BetaBinomial.fit(x, w, trials=20)
    assert len(looks) <= 120  # two columns, fitted at the first look and again: it was 260
    stats, prior = cold.collect(x, w), cold.weak_prior(cold.collect(x, w))
    for given in (None, prior):
        looks.clear()
        warm = cold.refit(stats, given)
        assert len(looks) <= 20
        assert warm.objective(stats, given) >= cold.objective(stats, given) - 1e-10
    np.testing.assert_allclose([warm.a, warm.b], [cold.a, cold.b], rtol=1e-6)


def test_heights_of_the_hill_differ_as_likelihoods_do():
    rng = np.random.default_rng(1)
    x, w = np.arange(13.0), rng.random(13)
    plain = lk.distributions.BetaBinomial(12, 1.0, 1.0)
    stats = plain.collect(x, w)
    distributions = np.array([[0.3, 2.0], [5.0, 7.0], [1e-5, 40.0], [3e6, 8e6], [3.1e6, 8.1e6]])
    exact = [plain.replace(a=np.array([a]), b=np.array([b])).objective(stats) for a, b in distributions]
    ours = [beta_binomial._objective(np.log(distribution), x, w, 12.0).value for distribution in distributions]
    np.testing.assert_allclose(np.diff(ours), np.diff(exact), rtol=1e-9, atol=1e-11)
