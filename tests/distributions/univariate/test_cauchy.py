from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import likely as lk
from tests.distributions.digits import chances, log_uniform, places, worst_excess_bits, worst_relative


@pytest.mark.slow
def test_log_density_to_the_last_bits():
    rng, n = np.random.default_rng(1), 1000
    center, scale = places(rng, n), log_uniform(rng, -6, 6, n)
    x = center + rng.choice([-1.0, 1.0], n) * scale * log_uniform(rng, -8, 290, n)
    exact = lambda y, c, s: -mpmath.log(mpmath.pi * s * (1 + ((y - c) / s) ** 2))  # noqa: E731
    bits, least = worst_excess_bits(lk.distributions.Cauchy, exact, x, center, scale)
    print(f"Cauchy: worst {bits:.2f} excess wrong bits, log p from {least:.3g}")
    assert bits <= 4 and least < -1200  # numbers end before log p = −1e5


def exact_cdf(x, c, s):
    return mpmath.atan2(s, c - x) / mpmath.pi


def exact_quantile(p, c, s):
    return c - s * mpmath.cot(mpmath.pi * p)


def test_distribution_function_and_quantiles():
    rng, n = np.random.default_rng(2), 300
    center, scale = places(rng, n), log_uniform(rng, -6, 6, n)
    x = center + rng.choice([-1.0, 1.0], n) * scale * log_uniform(rng, -6, 200, n)
    assert worst_relative(lk.distributions.Cauchy, exact_cdf, "cdf", x, center, scale) <= 1e-9
    p = chances(rng, n)
    assert worst_relative(lk.distributions.Cauchy, exact_quantile, "quantile", p, center, scale, about=1) <= 1e-9
    assert worst_relative(lk.distributions.Cauchy, exact_quantile, "quantile", p, 0 * center, scale) <= 1e-9


def test_as_scipy_has_it(rng):
    distribution, other = lk.distributions.Cauchy(1.0, 2.0), stats.cauchy(1.0, 2.0)
    x = rng.normal(size=50) * 50
    np.testing.assert_allclose(distribution.log_prob(x), other.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(
        distribution.log_prob(x), lk.StudentT([1.0], [[4.0]], 1.0).log_prob(x[:, None]), rtol=1e-12
    )
    assert distribution.entropy() == pytest.approx(other.entropy())
    np.testing.assert_allclose(distribution.quantile([0.25, 0.75]), [-1.0, 3.0])


def test_one_outlier_pulls_alike_however_far_it_lies():
    x = np.random.default_rng(3).normal(size=59)
    near = lk.distributions.Cauchy.fit(np.append(x, 1e100))
    for far in (1e160, 1e300, 1.7e308):
        distribution = lk.distributions.Cauchy.fit(np.append(x, far))
        np.testing.assert_allclose([distribution.center, distribution.scale], [near.center, near.scale], rtol=1e-12)
        [last] = distribution.log_prob([far])
        exact = -mpmath.log(mpmath.pi) - 2 * mpmath.log(far) + mpmath.log(float(distribution.scale[0]))
        assert last == pytest.approx(float(exact), rel=1e-14)


def test_learned_in_any_unit():
    x = np.random.default_rng(4).standard_cauchy(60)
    distribution = lk.distributions.Cauchy.fit(x)
    for unit in (1e-305, 1e304):
        other = lk.distributions.Cauchy.fit(x * unit)
        np.testing.assert_allclose(
            [other.center / unit, other.scale / unit], [distribution.center, distribution.scale], rtol=1e-9
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 4, 7, 30, 400])
def test_maximum_likelihood_is_found(n):
    rng = np.random.default_rng(n)
    x, w = 5 + 3 * rng.standard_cauchy(n), 0.2 + rng.random(n)
    distribution = lk.distributions.Cauchy.fit(x, w)
    ours = w @ distribution.log_prob(x)
    lost = lambda t: -w @ stats.cauchy.logpdf(x, t[0], np.exp(t[1]))  # noqa: E731
    for start in ([np.median(x), 0.0], [x.mean(), 1.0], [x.min(), 2.0], [5.0, 1.1]):
        how = {"xatol": 1e-11, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000}
        found = optimize.minimize(lost, start, method="Nelder-Mead", options=how)
        assert ours >= -found.fun - 1e-9
        np.testing.assert_allclose(
            [distribution.center[0], distribution.scale[0]], [found.x[0], np.exp(found.x[1])], rtol=1e-5, atol=1e-6
        )
    # the gradient vanishes
    z = (x - distribution.center) / distribution.scale
    assert abs(w @ (z / (1 + z**2))) <= 1e-12 * w.sum() and abs(w @ ((z**2 - 1) / (z**2 + 1))) <= 1e-12 * w.sum()


@pytest.mark.parametrize(("shift", "unit"), [(0.0, 1e-100), (0.0, 1e100), (1e8, 1.0)])
def test_units_and_offsets_do_not_matter(shift, unit):
    x = np.random.default_rng(3).standard_cauchy(41)
    plain, moved = lk.distributions.Cauchy.fit(x), lk.distributions.Cauchy.fit(shift + unit * x)
    np.testing.assert_allclose(moved.center, shift + unit * plain.center, rtol=1e-12)
    np.testing.assert_allclose(moved.scale, unit * plain.scale, rtol=1e-6 if shift else 1e-12)


def test_outliers_do_not_drag_it_away():
    x = np.r_[np.random.default_rng(4).normal(size=80), np.full(20, 1e6) + np.arange(20)]
    assert abs(lk.distributions.Cauchy.fit(x).center[0]) < 0.5


@pytest.mark.parametrize("x", [[3.0], [3.0, 3.0], [3.0, 3.0, 3.0, 9.0], [3.0, 3.0, 5.0, 9.0], [0.0]])
def test_half_of_the_weight_on_one_value(x):
    distribution = lk.distributions.Cauchy.fit(x)
    assert distribution.center[0] == x[0] and 0 < distribution.scale[0] < 1e-3
    assert np.isfinite(distribution.log_prob(x)).all()


def test_two_values():
    distribution = lk.distributions.Cauchy.fit([1.0, 5.0])
    assert (distribution.center[0] - 3) ** 2 + distribution.scale[0] ** 2 == pytest.approx(
        4.0
    )  # a ridge: all of it is best


def test_divergence_is_the_integral():
    p, q = lk.distributions.Cauchy(0.0, 1.0), lk.distributions.Cauchy(0.7, 2.0)

    def f(t):
        x = [np.tan(t)]
        return np.exp(p.log_prob(x)[0]) * (1 + x[0] ** 2) * (p.log_prob(x)[0] - q.log_prob(x)[0])

    assert p.kl(q) == pytest.approx(integrate.quad(f, -np.pi / 2, np.pi / 2)[0], rel=1e-8)
    assert p.kl(q) == pytest.approx(q.kl(p))


def test_what_does_not_exist_is_refused():
    distribution = lk.distributions.Cauchy(0.0, 1.0)
    for missing in ("mean", "variance"):
        with pytest.raises(lk.DomainError, match=f"no {missing}"):
            getattr(distribution, missing)
    with pytest.raises(lk.DomainError, match="no moments"):
        lk.distributions.Cauchy.moments_fit([1.0, 2.0])
    filled = lk.impute(lk.distributions.Cauchy([1.0, 2.0], 1.0), np.array([[np.nan, 3.0]]))
    np.testing.assert_array_equal(filled, [[1.0, 3.0]])
