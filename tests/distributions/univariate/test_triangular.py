from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import likely as lk
from likely.distributions.univariate.triangular_fit import best_of_modes, best_triangle
from tests.distributions.digits import log_uniform, places, worst_excess_bits, worst_relative


def points(n, seed):
    rng = np.random.default_rng(seed)
    low = places(rng, n)
    width = np.maximum(log_uniform(rng, -6, 6, n), 1e-9 * np.abs(low))
    high = low + width
    mode = np.clip(low + width * rng.choice([0.0, 1e-6, 0.3, 0.9999, 1.0], n), low, high)
    return rng, low, mode, high


def exact_log_prob(x, a, c, b):
    if x == c:
        return mpmath.log(2 / (b - a))
    side = (x - a) / (c - a) if x < c else (b - x) / (b - c)
    return mpmath.log(2 / (b - a)) + mpmath.log(side) if side > 0 else mpmath.mpf("-inf")


@pytest.mark.slow
def test_log_density_to_the_last_bits():
    rng, low, mode, high = points(1000, 1)
    share = np.where(rng.random(1000) < 0.5, log_uniform(rng, -14, 0, 1000), 1 - log_uniform(rng, -14, 0, 1000))
    x = low + share * (high - low)
    inside = (x > low) & (x < high)
    bits, _ = worst_excess_bits(lk.distributions.Triangular, exact_log_prob, *(a[inside] for a in (x, low, mode, high)))
    print(f"Triangular: worst {bits:.2f} excess wrong bits")
    assert bits <= 4


def exact_cdf(x, a, c, b):
    if x <= a or x >= b:
        return mpmath.mpf(1 if x >= b else 0)
    if x < c:
        return (x - a) ** 2 / ((b - a) * (c - a))
    return (c - a) / (b - a) if x == c else 1 - (b - x) ** 2 / ((b - a) * (b - c))


def exact_quantile(p, a, c, b):
    if p < (c - a) / (b - a):
        return a + mpmath.sqrt(p * (b - a) * (c - a))
    with mpmath.workdps(400):  # 1 − p must hold p
        return b - mpmath.sqrt((1 - p) * (b - a) * (b - c))


def test_distribution_function_and_quantiles():
    rng, low, mode, high = points(300, 2)
    x = low + rng.random(300) * (high - low)
    assert worst_relative(lk.distributions.Triangular, exact_cdf, "cdf", x, low, mode, high) <= 1e-9
    x = log_uniform(rng, -140, 0, 300)  # the lower tail of a triangle that begins at 0
    zero, one = np.zeros(300), np.ones(300)
    assert worst_relative(lk.distributions.Triangular, exact_cdf, "cdf", x, zero, 0.3 * one, one) <= 1e-9
    p = log_uniform(rng, -300, 0, 300)
    assert worst_relative(lk.distributions.Triangular, exact_quantile, "quantile", p, low, mode, high, about=1) <= 1e-9
    assert worst_relative(lk.distributions.Triangular, exact_quantile, "quantile", p, zero, 0.3 * one, one) <= 1e-9


def test_as_scipy_has_it():
    distribution, other = lk.distributions.Triangular(1.0, 2.0, 5.0), stats.triang(0.25, 1.0, 4.0)
    x = np.linspace(0.5, 5.5, 41)
    np.testing.assert_allclose(np.exp(distribution.log_prob(x)), other.pdf(x), atol=1e-14)
    np.testing.assert_allclose(
        [distribution.mean[0], distribution.variance[0], distribution.median[0]],
        [other.mean(), other.var(), other.median()],
    )
    assert distribution.entropy() == pytest.approx(float(other.entropy()))


KINDS = {
    "triangles": lambda rng, n: rng.triangular(0, 0.3, 1, n),
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "ties": lambda rng, n: rng.integers(0, 6, n).astype(float),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.5, rng.normal(0, 1, n), rng.normal(20, 1, n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_what_all_modes_would(kind):
    rng = np.random.default_rng(1)
    for trial in range(20):
        x, count = np.unique(KINDS[kind](rng, rng.integers(2, 50)), return_counts=True)
        if len(x) < 2:
            continue
        w = count * rng.random(len(x))
        low = x[0] - 0.1 * rng.random() if trial % 3 == 0 else None
        high = x[-1] + 0.1 if trial % 4 == 0 else None
        brute = max(best_of_modes(x, w / w.sum(), np.array([r]), low, high).score for r in range(len(x)))
        assert best_triangle(x, w, low, high, (x[0] - 1, x[-1] + 1)).score >= brute - 1e-12


def test_ends_for_a_mode_are_the_best():
    rng = np.random.default_rng(2)
    for _ in range(5):
        x, w = np.sort(rng.triangular(0, 0.3, 1, 30)), rng.random(30)
        r, w = int(rng.integers(1, 29)), w / w.sum()
        found = best_of_modes(x, w, np.array([r]), None, None)

        def lost(t, x=x, w=w, r=r):
            a, b = x[0] - np.exp(t[0]), x[-1] + np.exp(t[1])
            return -w @ stats.triang.logpdf(x, (x[r] - a) / (b - a), a, b - a)

        wanted = optimize.minimize(lost, [-2, -2], method="Nelder-Mead", options={"xatol": 1e-11, "fatol": 1e-15})
        assert found.score + np.log(2) == pytest.approx(-wanted.fun, abs=1e-12)
        np.testing.assert_allclose(
            [found.low, found.high], [x[0] - np.exp(wanted.x[0]), x[-1] + np.exp(wanted.x[1])], atol=1e-7
        )


def test_large_data_are_searched_too():
    rng = np.random.default_rng(3)
    x = rng.triangular(-1, 3, 4, 20_000)
    distribution = lk.distributions.Triangular.fit(x)
    np.testing.assert_allclose([distribution.low[0], distribution.mode[0], distribution.high[0]], [-1, 3, 4], atol=0.1)
    truth = lk.distributions.Triangular(-1.0, 3.0, 4.0)
    assert distribution.log_prob(x).sum() >= truth.log_prob(x).sum()
    known = lk.distributions.Triangular.fit(x, low=-1.0, high=4.0)
    assert known.log_prob(x).sum() <= distribution.log_prob(x).sum()
    assert (known.low[0], known.high[0], known.known, known.n_parameters) == (-1.0, 4.0, "both", 1)


def test_known_ends_put_the_mode_on_a_value():
    x = np.array([1.0, 2.0, 4.0])
    distribution = lk.distributions.Triangular.fit(x, low=0.0, high=8.0)
    scores = [lk.distributions.Triangular(0.0, c, 8.0).log_prob(x).sum() for c in np.linspace(0.01, 7.99, 2000)]
    assert distribution.mode[0] in x and distribution.log_prob(x).sum() >= max(scores)
    with pytest.raises(lk.DataError, match=r"known ends.*row 1, column 0"):
        lk.distributions.Triangular.fit([1.0, 9.0], low=0.0, high=8.0)
    with pytest.raises(lk.DomainError, match="low must lie below high"):
        lk.distributions.Triangular.fit([1.0], low=3.0, high=2.0)


def test_divergence_is_the_integral():
    cases = [
        ((0, 0.2, 1), (-0.5, 0.7, 1)),
        ((0, 0, 1), (0, 1, 1)),
        ((0, 0.5, 1), (-9, 0.5, 9)),
        ((0, 0.3, 1), (0, 0.4, 1)),
    ]
    for one, two in cases:
        p, q = lk.distributions.Triangular(*map(float, one)), lk.distributions.Triangular(*map(float, two))

        def f(t, p=p, q=q):
            log_p = p.log_prob([t])[0]
            return np.exp(log_p) * (log_p - q.log_prob([t])[0]) if np.isfinite(log_p) else 0.0

        cuts = sorted({float(one[1]), float(two[1])} & set(np.linspace(0.01, 0.99, 99).round(2)))
        assert p.kl(q) == pytest.approx(integrate.quad(f, 0, 1, points=cuts or None, limit=400)[0], rel=1e-7)
    assert lk.distributions.Triangular(0.0, 0.5, 1.0).kl(lk.distributions.Triangular(0.1, 0.5, 1.0)) == np.inf


@pytest.mark.parametrize("x", [[3.0], [0.0, 0.0], [1e8, 1e8], [1e-100, 3e-100], [1e100, 2e100], [1e8, 1e8 + 1]])
def test_hazards(x):
    for prior in (None, "weak"):
        distribution = lk.distributions.Triangular.fit(x, prior=prior)
        assert distribution.low[0] < distribution.high[0] and np.isfinite(distribution.log_prob(x)).all()


@pytest.mark.parametrize("size", [1e10, 1e100, 1e200, 1e300])
def test_one_outlier_of_any_size(size):
    x = np.append(np.random.default_rng(3).normal(size=59), size)
    distribution = lk.distributions.Triangular.fit(x)
    # mode at the low end, and b = (1 + 1/60) of the range: the best of 59 values at 0 and one at 1
    best = 60 * (np.log(2) - np.log(61 / 60)) + np.log(1 / 61) - 60 * np.log(size)
    assert distribution.log_prob(x).sum() == pytest.approx(best, rel=1e-9)


def test_learned_in_any_unit():
    x = np.random.default_rng(3).normal(size=59)
    distribution = lk.distributions.Triangular.fit(x)
    for unit in (1e-300, 1e-305, 1e300):
        other = lk.distributions.Triangular.fit(x * unit)
        ours = [other.low / unit, other.mode / unit, other.high / unit]
        np.testing.assert_allclose(ours, [distribution.low, distribution.mode, distribution.high], rtol=1e-8)
        np.testing.assert_allclose(other.log_prob(x * unit) + np.log(unit), distribution.log_prob(x), rtol=1e-8)


def test_no_short_cuts():
    with pytest.raises(lk.DomainError):
        lk.distributions.Triangular.unbiased_fit([1.0, 2.0, 4.0])
    with pytest.raises(lk.DomainError, match="low ≤ mode ≤ high"):
        lk.distributions.Triangular(0.0, 2.0, 1.0)
    with pytest.raises(lk.DomainError, match="known must be"):
        lk.distributions.Triangular(0.0, 0.5, 1.0, known="middle")
