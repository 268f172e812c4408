"""The von Mises distribution against mpmath and SciPy, and wind directions in a chain."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.stats

import likely as lk

EPS = float(np.finfo(float).eps)


def exact_log_prob(x: float, m: float, k: float) -> mp.mpf:
    X, M, K = mp.mpf(x), mp.mpf(m), mp.mpf(k)
    return K * mp.cos(X - M) - mp.log(2 * mp.pi * mp.besseli(0, K))


def worst_bits(n: int) -> float:
    """Wrong bits beyond those that rounding x, μ and κ alone would spoil."""
    rng, worst = np.random.default_rng(3), -99.0
    with mp.workdps(50):
        for _ in range(n):
            m, k = rng.uniform(-4, 4), 10 ** rng.uniform(-6, 6)
            x = m + rng.uniform(-np.pi, np.pi) if rng.random() < 0.5 else m + rng.normal() / np.sqrt(k)
            exact = exact_log_prob(x, m, k)
            if exact < -1e5:
                continue
            K, away = mp.mpf(k), mp.mpf(x) - mp.mpf(m)
            ratio = mp.besseli(1, K) / mp.besseli(0, K)
            spoilt = K * abs(mp.sin(away)) * (abs(x) + abs(m)) + K * abs(mp.cos(away) - ratio)
            error = abs(mp.mpf(float(lk.distributions.VonMises(m, k).log_prob([x])[0])) - exact)
            bits = float(mp.log(error / (EPS * (abs(exact) + spoilt)), 2)) if error else -99.0
            worst = max(worst, bits)
    return worst


@pytest.mark.slow
def test_log_prob_is_right_to_the_last_bits():
    assert worst_bits(300) <= 4


@pytest.mark.campaign
def test_log_prob_is_right_to_the_last_bits_at_five_thousand_points():
    assert worst_bits(5000) <= 4


@pytest.mark.slow
def test_the_distribution_function_against_mpmath():
    rng, worst = np.random.default_rng(4), 0.0
    with mp.workdps(30):
        for _ in range(12):
            k = 10 ** rng.uniform(-4, 5)
            z = -min(abs(rng.normal()) * rng.choice([1, 3, 10]) / np.sqrt(k), 3.1)
            K, c = mp.mpf(k), mp.besseli(0, mp.mpf(k)) * 2 * mp.pi
            width = min(40 / (k * max(np.sin(-z), 1e-9)), 9 / np.sqrt(k), z + np.pi)
            start = -mp.pi if width >= z + np.pi else mp.mpf(z - width)
            points = [start + (mp.mpf(z) - start) * i / 60 for i in range(61)]
            exact = mp.quad(lambda t, K=K, c=c: mp.exp(K * mp.cos(t)) / c, points)
            worst = max(worst, float(abs(lk.distributions.VonMises(0.0, k).cdf([z])[0] / exact - 1)))
    assert worst <= 1e-11


def test_against_scipy():
    distribution, peer = lk.distributions.VonMises(0.5, 2.5), scipy.stats.vonmises(2.5, loc=0.5)
    x = np.linspace(0.5 - np.pi, 0.5 + np.pi, 41)
    assert np.allclose(distribution.log_prob(x), peer.logpdf(x), rtol=1e-13)
    assert np.allclose(distribution.cdf(x), peer.cdf(x), atol=1e-8)
    assert distribution.entropy() == pytest.approx(float(peer.entropy()), rel=1e-12)


def test_quantiles_and_distribution_function_undo_each_other():
    p = np.concatenate([10.0 ** -np.arange(1.0, 7.0), np.linspace(0.01, 0.99, 50)])
    for kappa in (0.0, 1e-8, 0.3, 5.0, 1e4, 1e8):
        distribution = lk.distributions.VonMises(-2.0, kappa)
        assert np.abs(distribution.cdf(distribution.quantile(p)) - p).max() <= 1e-12
        assert distribution.quantile([0.0, 1.0]) == pytest.approx([-2 - np.pi, -2 + np.pi])
    far = 10.0 ** -np.arange(10.0, 280.0, 30.0)
    distribution = lk.distributions.VonMises(0.0, 1e4)
    assert np.abs(distribution.cdf(distribution.quantile(far)) / far - 1).max() <= 1e-9
    assert distribution.cdf([-9.0, 9.0]).tolist() == [0.0, 1.0] and np.isnan(distribution.quantile([-0.1, 1.1])).all()


def test_whole_turns_make_no_difference(rng):
    distribution, x = lk.distributions.VonMises([0.3, -1.0], [4.0, 0.5]), rng.normal(size=(50, 2))
    assert np.allclose(
        distribution.log_prob(x), distribution.log_prob(x + 2 * np.pi * rng.integers(-5, 5, (50, 2))), atol=1e-12
    )


@pytest.mark.parametrize("kappa", [0.05, 1.0, 30.0, 1e4, 1e6])
def test_maximum_likelihood_is_that_of_scipy(kappa):
    x = lk.distributions.VonMises(3.0, kappa).sample(500, np.random.default_rng(1))[:, 0]
    found = lk.distributions.VonMises.fit(x)
    k, m, _ = scipy.stats.vonmises.fit(x, fscale=1)
    assert np.angle(np.exp(1j * (found.center[0] - m))) == pytest.approx(0.0, abs=1e-8)
    assert found.concentration[0] == pytest.approx(k, rel=1e-7)
    assert found.log_prob(x).sum() >= lk.distributions.VonMises(m, k).log_prob(x).sum() - 1e-8


def test_hazards_have_sensible_answers():
    for x in (np.full(5, 2.0), np.array([1.0]), np.full(4, 1e8), np.array([1e-100, 2e-100])):
        distribution = lk.distributions.VonMises.fit(x)
        assert np.isfinite(distribution.log_prob(x)).all() and np.isfinite(distribution.concentration).all()
    even = lk.distributions.VonMises.fit(np.linspace(0, 2 * np.pi, 9)[:-1])
    assert even.concentration[0] < 1e-7
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.distributions.VonMises.fit(np.array([1.0, np.inf]))
    with pytest.raises(lk.DomainError, match="not negative"):
        lk.distributions.VonMises(0.0, -1.0)
    with pytest.raises(lk.DomainError, match="circular variance"):
        lk.distributions.VonMises.from_moments(0.0, 1.5)


@pytest.mark.slow
def test_wind_in_a_chain(rng):
    """Three prevailing winds, two of them on either side of the cut of the angle, with gaps."""
    truth = lk.HMM(
        [1 / 3] * 3, np.full((3, 3), 0.03) + 0.91 * np.eye(3), lk.distributions.VonMises([[3.0], [-1.5], [0.8]], 8.0)
    )
    states, wind = [], []
    state = 0
    for _ in range(1500):
        state = int(rng.choice(3, p=truth.transition[state]))
        states.append(state)
        wind.append(float(truth.emission.member(state).sample(1, rng)[0, 0]))
    X = np.angle(np.exp(1j * np.array(wind)))[:, None]
    X[::17] = np.nan
    model = lk.HMMDensity(lk.distributions.VonMisesDensity(), n_states=3, random_state=0).fit(X)
    emissions = model.model_.emission
    order = [int(np.argmin(1 - np.cos(emissions.center[:, 0] - c))) for c in (3.0, -1.5, 0.8)]
    assert sorted(order) == [0, 1, 2]
    assert np.cos(emissions.center[order, 0] - [3.0, -1.5, 0.8]).min() > 0.99
    assert emissions.concentration[order, 0] == pytest.approx([8.0] * 3, rel=0.3)
    path = model.model_.viterbi(lk.Ragged.from_list([X])).states
    found = np.asarray(path.values if hasattr(path, "values") else path).ravel()
    back = np.argsort(order)
    assert (back[found] == np.array(states)).mean() > 0.95


def test_a_mixture_and_a_classifier_of_directions(rng):
    X = np.concatenate(
        [lk.distributions.VonMises(3.1, 20.0).sample(200, rng), lk.distributions.VonMises(0.0, 20.0).sample(200, rng)]
    )
    mixture = lk.MixtureDensity(lk.distributions.VonMisesDensity(), 2, random_state=0).fit(X)
    assert np.sort(np.cos(mixture.model_.components.center[:, 0])) == pytest.approx([-1.0, 1.0], abs=0.01)
    clf = lk.BayesClassifier(lk.distributions.VonMisesDensity()).fit(X, np.repeat([0, 1], 200))
    assert clf.score(X + 2 * np.pi, np.repeat([0, 1], 200)) > 0.99


@pytest.mark.slow
def test_the_sum_of_two_angles(rng):
    distribution = lk.distributions.VonMisesSum(0.4, 3.0, 1.5)
    x = np.linspace(0.4 - np.pi, 0.4 + np.pi, 2001)
    assert np.exp(distribution.log_prob(x[:-1])).sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-12)
    p = np.linspace(0.001, 0.999, 21)
    assert np.abs(distribution.cdf(distribution.quantile(p)) - p).max() <= 1e-12
    away = distribution.sample(200_000, rng)[:, 0] - 0.4
    assert 1 - np.cos(away).mean() == pytest.approx(distribution.variance[0], abs=0.01)
    sharp = lk.distributions.VonMisesSum(0.0, 1e6, 1e6)
    assert np.exp(sharp.log_prob([0.0])[0]) == pytest.approx(scipy.stats.norm(0, np.sqrt(2e-6)).pdf(0), rel=1e-5)


@pytest.mark.some_cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("kappa, belief", [(1e9, 1e9), (1e12, 3e10), (1e15, 1e15), (1e14, 1e16)])
def test_sharp_distributions_are_gaussians(kappa, belief):
    """Corrections are of the order 1/κ: beyond 10⁹ they are below what is asked for here."""
    p, z = np.array([1e-200, 1e-9, 0.3, 0.5]), np.array([0.0, 0.5, 3.0, 30.0])
    for distribution, deviation in (
        (lk.distributions.VonMises(0.0, kappa), 1 / np.sqrt(kappa)),
        (lk.distributions.VonMisesSum(0.0, kappa, belief), np.sqrt(1 / kappa + 1 / belief)),
    ):
        peer = scipy.stats.norm(0.0, deviation)
        assert np.allclose(distribution.log_prob(z * deviation), peer.logpdf(z * deviation), rtol=1e-7)
        assert np.allclose(distribution.cdf(-z * deviation), peer.cdf(-z * deviation), rtol=1e-5)
        assert np.allclose(distribution.quantile(p), peer.ppf(p), rtol=1e-6, atol=1e-12 * deviation)
        assert distribution.entropy() == pytest.approx(float(peer.entropy()), rel=1e-7)
