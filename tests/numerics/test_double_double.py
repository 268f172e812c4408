from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from likely.numerics import double_double
from likely.numerics.double_double import DoubleDouble, exactly


def exact(a: DoubleDouble) -> list[Fraction]:
    return [Fraction(float(h)) + Fraction(float(low)) for h, low in zip(a.high.ravel(), a.low.ravel(), strict=True)]


def numbers(rng, n=50):
    high = rng.standard_normal(n) * 10.0 ** rng.integers(-20, 20, n)
    return DoubleDouble(high, high * rng.uniform(-1, 1, n) * 2.0**-54)


@pytest.mark.parametrize("verb", ["__add__", "__sub__", "__mul__", "__truediv__"])
def test_arithmetic_has_thirty_digits(rng, verb):
    a, b = numbers(rng), numbers(rng)
    for found, p, q in zip(exact(getattr(a, verb)(b)), exact(a), exact(b), strict=True):
        wanted = {"__add__": p + q, "__sub__": p - q, "__mul__": p * q, "__truediv__": p / q}[verb]
        assert abs(found - wanted) <= abs(wanted) * Fraction(1, 10**30)


def test_square_roots(rng):
    a = numbers(rng)
    a = DoubleDouble(np.abs(a.high), a.low * np.sign(a.high))
    root = a.sqrt()
    for found, wanted in zip(exact(root * root), exact(a), strict=True):
        assert abs(found - wanted) <= abs(wanted) * Fraction(1, 10**29)
    assert exactly(0.0).sqrt().high == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 60, 5000])
def test_gram_matrices_equal_rational_arithmetic(rng, weighted, n):
    x = rng.standard_normal((n, 3)) * [1.0, 1e-9, 1e8] + [0.0, 1.0, 1e8]
    w = rng.random(n) if weighted else None
    found = exact(double_double.gram(x, w))
    X = [[Fraction(v) for v in row] for row in x.tolist()]
    W = [Fraction(1)] * n if w is None else [Fraction(v) for v in w.tolist()]
    size = [max(abs(row[i]) for row in X) for i in range(3)]
    for i in range(3):
        for j in range(3):
            wanted = sum(w * row[i] * row[j] for w, row in zip(W, X, strict=True))
            assert abs(found[3 * i + j] - wanted) <= n * size[i] * size[j] * Fraction(1, 2**98)


def test_no_rows_and_no_columns():
    assert double_double.gram(np.empty((0, 2))).high.tolist() == [[0, 0], [0, 0]]
    assert double_double.gram(np.empty((3, 0))).high.shape == (0, 0)


def test_cholesky_and_back_substitution(rng):
    x = rng.standard_normal((30, 5)) @ np.diag([1.0, 1e-6, 1.0, 1e6, 1.0])
    root, dependent = double_double.cholesky(double_double.gram(x), 1e-14)
    wanted = np.linalg.qr(x, mode="r")
    assert not dependent.any()
    np.testing.assert_allclose(root.value(), wanted * np.sign(np.diagonal(wanted))[:, None], rtol=1e-12, atol=1e-20)
    b = exactly(rng.standard_normal((5, 2)))
    np.testing.assert_allclose(root.value() @ double_double.solve_upper(root, b).value(), b.high, rtol=1e-11)


def test_dependent_columns_are_found(rng):
    x = rng.integers(-9, 9, (30, 4)).astype(float)
    x[:, 2] = x[:, 0] - 2 * x[:, 1]
    root, dependent = double_double.cholesky(double_double.gram(x), 1e-14)
    assert dependent.tolist() == [False, False, True, False]
    assert (root.high[2] == 0).all()
    np.testing.assert_allclose(root.value().T @ root.value(), x.T @ x, atol=1e-9)
