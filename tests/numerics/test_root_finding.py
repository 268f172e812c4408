"""Vectorized root finding."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from likely.numerics.root_finding import crossings


def test_as_brent_finds_them():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.1, 3.0, 50), rng.uniform(-2.0, 2.0, 50)

    def f(x, a, b):
        return np.expm1(a * (x - b)) + 1e-3 * (x - b) ** 3

    low, high = b - rng.uniform(0.1, 20.0, 50), b + rng.uniform(0.1, 20.0, 50)
    calls = []
    found = crossings(lambda x, at: calls.append(len(at)) or f(x, a[at], b[at]), low, high)
    each = zip(low, high, a, b, strict=True)
    theirs = [brentq(f, *ends, args=(p, q), xtol=1e-15, rtol=1e-15) for *ends, p, q in each]
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-13)
    assert sum(calls) < 30 * 50


def test_roots_at_the_ends_and_none_at_all():
    found = crossings(lambda x, at: x, np.array([0.0, -1.0, -3.0]), np.array([1.0, 0.0, 5.0]))
    np.testing.assert_allclose(found, 0.0, atol=1e-14)
    assert crossings(lambda x, at: x, np.empty(0), np.empty(0)).shape == (0,)
