"""Digits: the density against 50 of them, and the fast form against the exact one."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

from likely import Gaussian
from likely.distributions.gaussian.mahalanobis import ALLOWED, Quadratic

mpmath.mp.dps = 50
EPS = np.finfo(float).eps
POINTS = 4_000


def half_ulp(a):
    return 0.5 * np.spacing(np.abs(a))


def excess_bits(found, exact, explained):
    """Wrong bits beyond those that rounding the inputs and the answer explains (TFP's measure)."""
    allowed = explained + half_ulp(found)
    error = np.array([float(abs(mpmath.mpf(float(f)) - e)) for f, e in zip(found, exact, strict=True)])
    return np.log2(np.maximum(error / allowed, 1.0))


def univariate(count, seed):
    """Means and variances of all sizes, and points in both tails down to log p = −10⁵ and beyond the mean's digits."""
    rng = np.random.default_rng(seed)
    mean = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-6, 6, count)
    mean[: count // 4] = 0.0
    variance = 10.0 ** rng.uniform(-12, 12, count)
    z = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-8, np.log10(447.0), count)
    return mean, variance, mean + z * np.sqrt(variance)


def exact_log_prob(mean, variance, x):
    out = []
    for m, v, y in zip(mean, variance, x, strict=True):
        m, v, y = mpmath.mpf(float(m)), mpmath.mpf(float(v)), mpmath.mpf(float(y))
        out.append(-(mpmath.log(2 * mpmath.pi * v) + (y - m) ** 2 / v) / 2)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_log_density_to_the_last_bits(kind):
    count = POINTS if kind == "full" else POINTS // 4
    mean, variance, x = univariate(count, 1)
    shape = {"full": (count, 1, 1), "diagonal": (count, 1), "spherical": (count,)}[kind]
    found = np.array(
        [Gaussian.trusted(mean=m, covariance=c, kind=kind).log_prob(y)[0]
         for m, c, y in zip(mean[:, None], list(variance.reshape(shape)), x[:, None, None], strict=True)]
    )  # fmt: skip
    z = (x - mean) / variance
    explained = np.abs(z) * (half_ulp(x) + half_ulp(mean)) + np.abs(z**2 - 1 / variance) / 2 * half_ulp(variance)
    bits = excess_bits(found, exact_log_prob(mean, variance, x), explained)
    print(f"{kind}: worst {bits.max():.2f} excess wrong bits on {count} points, log p from {found.min():.3g}")
    assert found.min() < -9e4 and bits.max() <= 4


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_log_density_of_several_columns_to_the_last_bits(d):
    rng = np.random.default_rng(d)
    worst = 0.0
    for _ in range(400):
        a = rng.standard_normal((d, d + 1))
        scale = 10.0 ** rng.uniform(-4, 4, d)
        S = a @ a.T * scale[:, None] * scale
        mean = rng.standard_normal(d) * scale
        x = mean + (10.0 ** rng.uniform(-3, 2.6)) * (np.linalg.cholesky(S) @ rng.standard_normal(d))
        M = mpmath.matrix(S.tolist())
        z = mpmath.matrix([mpmath.mpf(float(b)) - mpmath.mpf(float(c)) for b, c in zip(x, mean, strict=True)])
        q = (z.T * mpmath.inverse(M) * z)[0]
        exact = -(d * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(M)) + q) / 2
        inverse = np.linalg.inv(S)
        pull = inverse @ (x - mean)
        explained = np.abs(pull) @ (half_ulp(x) + half_ulp(mean))
        explained += 0.5 * (np.abs(np.outer(pull, pull) - inverse) * half_ulp(S)).sum()
        worst = max(worst, excess_bits(Gaussian(mean, S).log_prob(x[None]), [exact], explained)[0])
    print(f"{d} columns: worst {worst:.2f} excess wrong bits on 400 points")
    assert worst <= 4


def test_distribution_function_in_both_tails():
    """≤ 1e-9 relative over parameters 1e-6 … 1e6, down to probabilities of 1e-300."""
    rng = np.random.default_rng(5)
    mean = rng.choice([-1, 1], 600) * 10.0 ** rng.uniform(-6, 6, 600)
    deviation = 10.0 ** rng.uniform(-6, 6, 600)
    x = mean + rng.uniform(-37.0, 8.0, 600) * deviation
    found = np.array([Gaussian([m], s**2).cdf(y) for m, s, y in zip(mean, deviation, x, strict=True)])
    logs = np.array([Gaussian([m], s**2).log_cdf(y) for m, s, y in zip(mean, deviation, x, strict=True)])
    variance = [mpmath.mpf(float(s**2)) for s in deviation]
    z = [
        (mpmath.mpf(float(y)) - mpmath.mpf(float(m))) / mpmath.sqrt(v)
        for m, v, y in zip(mean, variance, x, strict=True)
    ]
    exact = [mpmath.ncdf(t) for t in z]
    error = max(float(abs(f / e - 1)) for f, e in zip(found, exact, strict=True))
    log_error = max(float(abs(f / mpmath.log(e) - 1)) for f, e in zip(logs, exact, strict=True) if e < 0.5)
    print(f"cdf: worst relative error {error:.1e}, log_cdf {log_error:.1e}")
    assert error <= 1e-9 and log_error <= 1e-9


def test_log_distribution_function_far_below_the_smallest_number():
    g = Gaussian([0.0], 1.0)
    for z in (-40.0, -1e3, -1e6):
        exact = (
            mpmath.log(mpmath.ncdf(mpmath.mpf(z)))
            if z > -1e5
            else -(mpmath.mpf(z) ** 2) / 2 - mpmath.log(-z * mpmath.sqrt(2 * mpmath.pi))
        )
        assert g.log_cdf(z) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.slow
def test_quantiles_in_both_tails():
    rng = np.random.default_rng(6)
    p = np.concatenate(
        [10.0 ** rng.uniform(-300, -1, 200), rng.uniform(0.01, 0.99, 200), 1 - 10.0 ** rng.uniform(-15, -1, 100)]
    )
    mean, deviation = 10.0 ** rng.uniform(-6, 6, 500), 10.0 ** rng.uniform(-6, 6, 500)
    found = np.array([Gaussian([m], s**2).quantile(q) for m, s, q in zip(mean, deviation, p, strict=True)])
    worst = 0.0
    for f, m, s, q in zip(found, mean, deviation, p, strict=True):
        v = mpmath.sqrt(mpmath.mpf(float(s**2)))
        z = mpmath.findroot(
            lambda t, q=q: mpmath.log(mpmath.ncdf(t)) - mpmath.log(mpmath.mpf(float(q))), float(ndtri(q))
        )
        exact = mpmath.mpf(float(m)) + v * z
        # the sum m + σz may cancel; what is owed is σz to 1e-9 and the sum's own grain
        worst = max(worst, float(abs(f - exact) / (abs(v * z) + abs(mpmath.mpf(float(m))))))
    print(f"quantile: worst relative error {worst:.1e}")
    assert worst <= 1e-9


# ------------------------------------------------ the product against the factors


def stacks(count, seed):
    """Stacks of every make: scattered means, unlike scales of columns and members, strong correlations, offsets."""
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        K, d = int(rng.integers(4, 12)), int(rng.choice([1, 2, 3, 5, 8, 13, 40, 64]))
        a = rng.standard_normal((K, d, d + int(rng.integers(0, 3)))) * 10.0 ** rng.uniform(-2, 2, (K, 1, 1))
        S = a @ np.swapaxes(a, 1, 2) + 10.0 ** rng.uniform(-8, 0) * np.eye(d)
        unit = 10.0 ** rng.uniform(-5, 5, d)
        mean = (rng.standard_normal((K, d)) * 10.0 ** rng.uniform(-1, 3) + rng.choice([0.0, 1e6])) * unit
        S = S * unit[:, None] * unit
        kind = i % 3
        spread = (S, np.diagonal(S, axis1=1, axis2=2).copy(), S[:1])[kind]
        yield Quadratic(mean, spread, "test"), rng, unit


def worst_gap(count, seed):
    """Largest distance between the product and each member's own factor, on rows that the product takes."""
    worst, inside = 0.0, 0
    for form, rng, _ in stacks(count, seed):
        if form.reach <= 0:
            continue
        origin, unit = form.frame
        d = form.mean.shape[1]
        directions = rng.standard_normal((60, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # in the frame's units, most of them near the very edge of the reach, wherever that lies in white coordinates
        x = origin + directions * np.sqrt(form.reach) * rng.choice([0.999, 0.3, 0.1, 1e-2, 1e-4], (60, 1)) * unit
        with np.errstate(all="ignore"):
            product, length = form._by_product(x, form.natural(1.0, np.zeros(len(form.mean))))
            whole = form.complete(x, 1.0, np.zeros(len(form.mean)))
        near = length <= form.reach
        each = np.stack([form._distance(x[near], k) for k in range(len(form.mean))], axis=1)
        away = np.abs(np.delete(product[near] - each, form.thin, axis=1))
        worst = max(worst, float(away.max(initial=0.0)))
        thin = form.thin  # these go through white coordinates, and are compared with what they are themselves
        np.testing.assert_allclose(whole[near][:, thin], each[:, thin], rtol=1e-9, atol=ALLOWED)
        inside += int(near.sum())
    return worst, inside


@pytest.mark.slow
def test_the_product_keeps_its_promise_within_reach():
    worst, inside = worst_gap(300, 1)
    print(f"product against factors: worst {worst:.1e} on {inside} rows (allowed {ALLOWED:.0e})")
    assert inside > 5000 and worst <= ALLOWED


@pytest.mark.campaign
def test_the_product_keeps_its_promise_on_30_000_stacks():
    worst, inside = worst_gap(30_000, 2)
    print(f"product against factors: worst {worst:.1e} on {inside} rows")
    assert worst <= ALLOWED


def test_rows_beyond_the_reach_take_the_factors(rng):
    means = rng.standard_normal((5, 3))
    g = Gaussian(means, np.stack([np.eye(3) * 10.0 ** (-2 * k) for k in range(5)]))
    x = rng.standard_normal((50, 3)) * 10.0 ** rng.uniform(0, 12, (50, 1))
    each = np.stack([g.member(k).log_prob(x) for k in range(5)], axis=1)
    assert np.abs(g.log_prob(x) / each - 1).max() <= 1e-12


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("far", [1e3, 9e3, 1e6, 1e9])
@pytest.mark.parametrize("covariance", [np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 2.0])])
def test_members_with_one_spread_may_lie_far_apart(rng, K, far, covariance):
    """Near a member its own distance counts, not that between two large numbers; with gaps too."""
    means = rng.standard_normal((K, 2)) + far * np.arange(K)[:, None]
    g = Gaussian(means, covariance)
    x = np.repeat(means, 20, axis=0) + rng.standard_normal((20 * K, 2))
    for rows in (x, np.where(np.arange(2) == 0, np.nan, x)):
        each = np.stack([g.member(k).log_prob(rows) for k in range(K)], axis=1)
        assert (np.abs(g.log_prob(rows) - each) <= 1e-9 + 1e-12 * np.abs(each)).all()


def test_the_product_form_is_used(rng, monkeypatch):
    """Otherwise the two tests above would compare the factors with themselves."""
    g = Gaussian(rng.standard_normal((5, 3)), np.eye(3) * np.arange(1.0, 6.0)[:, None, None])
    monkeypatch.setattr(Quadratic, "by_factors", lambda *a: pytest.fail("factors were used"))
    assert g.form.reach > 0
    g.log_prob(rng.standard_normal((9, 3)))
