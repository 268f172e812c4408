"""Polynomials against NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import chebyshev, hermite_e, legendre
from sklearn.preprocessing import PolynomialFeatures

import likely as lk

B = lk.basis


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_monomials_are_those_of_scikit_learn(degree, d, rng):
    x = rng.normal(size=(30, d))
    theirs = PolynomialFeatures(degree).fit(x)
    basis = B.Polynomial(degree)
    np.testing.assert_allclose(basis.design(x), theirs.transform(x), rtol=1e-13)
    columns = [f"x{j}" for j in range(d)]
    assert basis.names(columns) == theirs.get_feature_names_out().tolist()


def test_interactions_of_columns_are_those_of_scikit_learn(rng):
    x = rng.normal(size=(30, 4))
    for order in (2, 3, 9):
        theirs = PolynomialFeatures(min(order, 4), interaction_only=True).fit(x)
        basis = B.Interactions(order=order)
        np.testing.assert_allclose(basis.design(x), theirs.transform(x), rtol=1e-13)
        assert basis.names([f"x{j}" for j in range(4)]) == theirs.get_feature_names_out().tolist()


def test_powers_alone(rng):
    x = rng.normal(size=(30, 2))
    wanted = np.column_stack([np.ones(30), x, x**2, x**3])
    np.testing.assert_allclose(B.Polynomial(3, interactions=False).design(x), wanted, rtol=1e-13)
    assert B.Polynomial(2, interactions=False).names(["a", "b"]) == ["1", "a", "b", "a^2", "b^2"]


@pytest.mark.parametrize(
    ("kind", "vandermonde"),
    [("legendre", legendre.legvander), ("chebyshev", chebyshev.chebvander), ("hermite", hermite_e.hermevander)],
)
def test_orthogonal_polynomials_are_those_of_numpy(kind, vandermonde):
    t = np.linspace(-1, 1, 101)
    basis = B.OrthogonalPolynomial(30, kind, center=3.0, scale=2.0)
    np.testing.assert_allclose(basis.design(3 + 2 * t), vandermonde(t, 30), rtol=1e-9, atol=1e-12)
    two = B.OrthogonalPolynomial(3, kind, center=[0.0, 3.0], scale=[1.0, 2.0])
    wanted = np.hstack([np.ones((101, 1)), vandermonde(t, 3)[:, 1:], vandermonde(t, 3)[:, 1:]])
    np.testing.assert_allclose(two.design(np.column_stack([t, 3 + 2 * t])), wanted, rtol=1e-9, atol=1e-12)


def test_scaling_keeps_the_condition_number_far_from_zero():
    x = np.linspace(1e6, 1e6 + 1, 200)
    raw, scaled = B.Polynomial(5), B.Polynomial(5, scaled=True).fitted(x)
    orthogonal = B.OrthogonalPolynomial(20).fitted(x)
    assert np.linalg.cond(raw.design(x)) > 1e15
    assert np.linalg.cond(scaled.design(x)) < 200 and np.linalg.cond(orthogonal.design(x)) < 20
    assert scaled.center == pytest.approx([1e6 + 0.5]) and scaled.scale == pytest.approx([0.5])


def test_bad_settings_are_errors():
    with pytest.raises(lk.DomainError, match="Polynomial: degree must be an integer of at least 0, got -1"):
        B.Polynomial(-1)
    with pytest.raises(lk.DomainError, match="scale must be positive"):
        B.Polynomial(1, center=[0.0], scale=[0.0])
    with pytest.raises(lk.ShapeError, match="one number per column"):
        B.OrthogonalPolynomial(1, center=[0.0], scale=[1.0, 2.0])
    with pytest.raises(lk.DomainError, match="kind must be one of legendre, chebyshev, hermite"):
        B.OrthogonalPolynomial(1, "jacobi")
    with pytest.raises(lk.DomainError, match="at most 1,000,000 monomials, got 211,915,132: lower the degree"):
        B.Polynomial(9).design(np.zeros((1, 30)))
