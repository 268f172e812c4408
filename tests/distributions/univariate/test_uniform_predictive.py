from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import integrate

import likely as lk
from tests.distributions.digits import log_uniform, places, worst_excess_bits, worst_relative


def points(n, seed):
    rng = np.random.default_rng(seed)
    low = places(rng, n)
    high = low + np.maximum(log_uniform(rng, -6, 6, n), 1e-9 * np.abs(low))
    return rng, low, high, log_uniform(rng, -6, 6, n)


def exact_log_prob(x, a, b, s):
    beyond = max(a - x, x - b, mpmath.mpf(0))
    return -mpmath.log(b - a) - mpmath.log(1 + 2 / s) - (s + 1) * mpmath.log(1 + beyond / (b - a))


@pytest.mark.slow
def test_log_density_to_the_last_bits():
    rng, low, high, shape = points(700, 1)
    x = low + (high - low) * rng.choice([-1.0, 1.0], 700) * log_uniform(rng, -4, 6, 700)
    bits, least = worst_excess_bits(lk.distributions.UniformPredictive, exact_log_prob, x, low, high, shape)
    print(f"Plateau: worst {bits:.2f} excess wrong bits, log p from {least:.3g}")
    assert bits <= 4 and least < -1e5


def test_distribution_function_and_quantiles():
    rng, low, high, shape = points(300, 2)
    shape = np.clip(shape, 1e-2, 1e4)
    x = low - (high - low) * np.expm1(np.minimum(rng.uniform(0, 600, 300) / shape, 20.0))
    tail = lambda y, a, b, s: (1 + (a - y) / (b - a)) ** -s / (s + 2)  # noqa: E731
    assert worst_relative(lk.distributions.UniformPredictive, tail, "cdf", x, low, high, shape) <= 1e-9
    p, shape = log_uniform(rng, -100, -1, 300) / (shape + 2), np.maximum(shape, 1.0)
    back = lambda q, a, b, s: a - (b - a) * ((q * (s + 2)) ** (-1 / s) - 1)  # noqa: E731
    assert (
        worst_relative(lk.distributions.UniformPredictive, back, "quantile", p / 2, low, high, shape, about=1) <= 1e-9
    )


def test_moments_are_the_integrals():
    distribution = lk.distributions.UniformPredictive(0.0, 3.0, 5.0)
    f = lambda t, k: np.exp(distribution.log_prob([t])[0]) * (t - 1.5) ** k  # noqa: E731
    second = sum(integrate.quad(f, a, b, args=(2,))[0] for a, b in ((-np.inf, 0), (0, 3), (3, np.inf)))
    assert distribution.mean[0] == 1.5 and distribution.variance[0] == pytest.approx(second, rel=1e-6)
    with pytest.raises(lk.DomainError, match="mean exists"):
        _ = lk.distributions.UniformPredictive(0.0, 1.0, 0.5).mean
    assert lk.distributions.UniformPredictive(0.0, 1.0, 1.5).variance[0] == np.inf
