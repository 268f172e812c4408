"""Splines against SciPy and scikit-learn, and what holds beyond the last knot."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline
from sklearn.preprocessing import SplineTransformer

import likely as lk

B = lk.basis
KNOTS = np.array([-1.0, 0.0, 0.3, 2.0, 5.0])


def clamped(degree):
    return np.concatenate([np.full(degree, KNOTS[0]), KNOTS, np.full(degree, KNOTS[-1])])


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
def test_b_splines_are_those_of_scipy(degree):
    x = np.concatenate([np.linspace(-1, 5, 201), KNOTS])
    wanted = BSpline.design_matrix(x, clamped(degree), degree).toarray()
    np.testing.assert_allclose(B.BSpline(KNOTS, degree, constant=False).design(x), wanted, atol=1e-14)
    with_constant = B.BSpline(KNOTS, degree).design(x)
    np.testing.assert_allclose(with_constant, np.column_stack([np.ones(len(x)), wanted[:, 1:]]), atol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize(("ours", "theirs"), [("linear", "linear"), ("constant", "constant")])
def test_predictions_are_those_of_scikit_learn_also_beyond_the_knots(degree, ours, theirs, rng):
    """The knots beyond the ends differ, so single functions do; the fitted curve is the same."""
    x, new = rng.uniform(0, 10, 80), np.linspace(-5, 15, 90)
    y = np.sin(x) + rng.normal(0, 0.1, 80)
    basis = B.BSpline(5, degree, "uniform", ours).fitted(x)
    other = SplineTransformer(5, degree=degree, extrapolation=theirs).fit(x[:, None])
    mine = basis.design(new) @ np.linalg.lstsq(basis.design(x), y, rcond=None)[0]
    peer = other.transform(new[:, None]) @ np.linalg.lstsq(other.transform(x[:, None]), y, rcond=None)[0]
    np.testing.assert_allclose(mine, peer, rtol=1e-7, atol=1e-8)
    assert basis.n_functions(1) == other.n_features_out_


def test_beyond_the_last_knot():
    x = np.array([-3.0, -1.0, 5.0, 9.0])
    linear = B.BSpline(KNOTS, 3, constant=False).design(x)
    np.testing.assert_allclose(linear.sum(axis=1), 1.0, atol=1e-13)
    slope = BSpline(clamped(3), np.eye(7), 3).derivative()(np.array([-1.0, 5.0]))
    np.testing.assert_allclose(linear[0] - linear[1], -2.0 * slope[0], atol=1e-13)
    np.testing.assert_allclose(linear[3] - linear[2], 4.0 * slope[1], atol=1e-13)
    constant = B.BSpline(KNOTS, 3, extrapolation="constant", constant=False).design(x)
    np.testing.assert_array_equal(constant[[0, 3]], constant[[1, 2]])
    with pytest.raises(lk.DataError, match=r"values must lie between -1 and 5, got -3.0 at row 0, column 0"):
        B.BSpline(KNOTS, 3, extrapolation="error").design(x)
    table = lk.core.Columns(age=x)
    with pytest.raises(lk.DataError, match=r"got -3.0 at row 0, column 'age'"):
        B.BSpline(KNOTS, 3, extrapolation="error").design(table)


def test_knots_at_quantiles(rng):
    x = rng.gamma(1.0, 1.0, 1001)
    (knots,) = B.BSpline(5).fitted(x).knots
    np.testing.assert_allclose(knots, np.quantile(x, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf"))
    (knots,) = B.PiecewiseLinear(3).fitted(x).knots
    np.testing.assert_allclose(knots, np.quantile(x, [0.25, 0.5, 0.75], method="inverted_cdf"))
    few = np.repeat([0.0, 1.0, 2.0], [90, 5, 5])
    assert [k.tolist() for k in B.BSpline(5).fitted(few).knots] == [[0.0, 2.0]]
    assert [k.tolist() for k in B.BSpline(5, placement="uniform").fitted(few).knots] == [[0.0, 0.5, 1.0, 1.5, 2.0]]
    assert [k.tolist() for k in B.PiecewiseLinear(3, "uniform").fitted(few).knots] == [[0.5, 1.0, 1.5]]


def test_columns_have_their_own_knots(rng):
    x = np.column_stack([np.arange(20.0), np.arange(20) % 3])
    basis = B.BSpline(6, 1).fitted(x)
    assert [len(k) for k in basis.knots] == [6, 3] and basis.n_functions(2) == 1 + 5 + 2
    assert basis.names(["a", "b"]) == ["1", *(f"bspline{k}(a)" for k in range(1, 6)), "bspline1(b)", "bspline2(b)"]
    shared = B.BSpline([0.0, 10.0, 20.0], 1)
    assert shared.design(x).shape == (20, 5)


def test_piecewise_linear_spans_the_b_splines_of_degree_one(rng):
    x = rng.uniform(-1, 5, 50)
    hinges, splines = B.PiecewiseLinear(KNOTS[1:-1]).design(x), B.BSpline(KNOTS, 1).design(x)
    both = np.hstack([hinges, splines])
    assert hinges.shape == splines.shape and np.linalg.matrix_rank(both) == hinges.shape[1]


def test_bad_settings_are_errors():
    with pytest.raises(lk.DomainError, match="knots must increase, got"):
        B.BSpline([0.0, 0.0, 1.0])
    with pytest.raises(lk.ShapeError, match="at least 2 numbers"):
        B.BSpline([0.0])
    with pytest.raises(lk.DomainError, match="the number of knots must be an integer of at least 2, got 1"):
        B.BSpline(1)
    with pytest.raises(lk.DomainError, match="extrapolation must be one of linear, constant, error, got 'periodic'"):
        B.BSpline(extrapolation="periodic")
    with pytest.raises(lk.DomainError, match="placement must be one of quantile, uniform"):
        B.PiecewiseLinear(3, "random")
