"""What holds for every basis: shapes, names, chunks, weights, placement, errors that name the column."""

from __future__ import annotations

import copy

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.core.value import Value
from likely.io import model_files

B = lk.basis
BASES = {
    "identity": B.Identity(),
    "polynomial": B.Polynomial(3),
    "powers": B.Polynomial(4, interactions=False),
    "scaled polynomial": B.Polynomial(3, scaled=True),
    "legendre": B.OrthogonalPolynomial(5),
    "chebyshev": B.OrthogonalPolynomial(5, "chebyshev"),
    "hermite": B.OrthogonalPolynomial(5, "hermite"),
    "gaussian": B.GaussianBasis(6),
    "gaussian of given width": B.GaussianBasis(6, 0.7),
    "radial": B.GaussianBasis([[0.0, 1.0], [2.0, 2.0], [1.0, -1.0]], joint=True),
    "sigmoid": B.SigmoidBasis(6),
    "fourier": B.Fourier(3),
    "fourier of a period": B.Fourier(3, 24.0),
    "cubic spline": B.BSpline(),
    "quadratic spline": B.BSpline(4, 2, "uniform", "constant"),
    "steps": B.BSpline(4, 0),
    "piecewise linear": B.PiecewiseLinear(3),
    "piecewise linear, uniform": B.PiecewiseLinear(3, "uniform"),
    "functions": B.FunctionBasis([np.cos, lambda x: x[:, 0] * x[:, 1]]),
    "one-hot": B.OneHot(unknown="zeros", constant=False),
    "columns": B.PerColumn({0: B.BSpline(), 1: B.OneHot(unknown="zeros", constant=False)}),
    "columns together": B.PerColumn({(0, 1): B.Polynomial(2), 1: B.Fourier(1)}, constant=False),
    "products of columns": B.Interactions(),
    "products of bases": B.Interactions([B.PerColumn({0: B.Polynomial(2)}), B.PerColumn({1: B.BSpline(3)})]),
    "products alone": B.Interactions([B.Fourier(1), B.Identity()], main_effects=False, constant=False),
}


def rows(rng, n=60):
    return np.round(rng.normal([1.0, 5.0], [2.0, 1.0], (n, 2)), 1)


def same(a, b):
    return (
        a.tobytes() == b.tobytes()
        if isinstance(a, np.ndarray)
        else len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, tuple)
        else all(same(getattr(a, name), getattr(b, name)) for name in a.field_values())
        if isinstance(a, Value)
        else a == b
    )


@pytest.mark.parametrize("name", BASES)
def test_design_counts_and_names_agree(name, rng):
    x = rows(rng)
    basis = BASES[name].fitted(x)
    design, names = basis.design(x), basis.names(["a", "b"])
    assert design.shape == (60, basis.n_functions(2)) and design.dtype == np.float64 and np.isfinite(design).all()
    assert len(names) == len(set(names)) == design.shape[1]
    assert (names[0] == "1") is basis.constant and (not basis.constant or (design[:, 0] == 1).all())
    if name not in ("columns", "columns together", "products alone", "one-hot"):  # some are there twice, or sum to 1
        assert np.linalg.matrix_rank(design) == design.shape[1]


@pytest.mark.parametrize("name", BASES)
def test_blocks_of_rows_give_what_all_rows_give(name, rng):
    x = rows(rng)
    basis = BASES[name].fitted(x)
    parts = np.concatenate([basis.design(x[:7]), basis.design(x[7:8]), basis.design(x[8:])])
    np.testing.assert_allclose(parts, basis.design(x), rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("name", BASES)
def test_a_weight_is_a_number_of_copies(name, rng):
    x, w = rows(rng), rng.integers(0, 4, 60)
    weighted, copied = BASES[name].fitted(x, w), BASES[name].fitted(np.repeat(x, w, axis=0))
    np.testing.assert_allclose(weighted.design(x), copied.design(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", BASES)
def test_a_fitted_basis_stays_as_it_is(name, rng):
    x = rows(rng)
    basis = BASES[name].fitted(x)
    assert basis.is_fitted and basis.fitted(100 * x) is basis
    if not BASES[name].is_fitted:
        for ask in (lambda b: b.design(x), lambda b: b.n_functions(2), lambda b: b.names(["a", "b"])):
            with pytest.raises(lk.DomainError, match=r"must be placed first.*call fitted\(X\)"):
                ask(BASES[name])


@pytest.mark.parametrize("name", BASES)
def test_a_basis_is_saved_and_copied_with_the_same_bits(name, rng):
    x = rows(rng)
    fitted = BASES[name].fitted(x)
    for basis in (BASES[name], fitted):
        assert same(copy.deepcopy(basis), basis)
        if name == "functions":
            with pytest.raises(lk.ModelFileError, match="FunctionBasis"):
                model_files.dumps(basis)
        else:
            assert same(model_files.loads(model_files.dumps(basis)), basis)
    assert str(fitted.describe())


@pytest.mark.parametrize("name", BASES)
def test_missing_and_infinite_entries_are_errors_that_name_the_column(name, rng):
    pd = pytest.importorskip("pandas")
    x = rows(rng)
    basis = BASES[name].fitted(x)
    categories = name in ("one-hot", "columns")
    for bad in (np.nan,) if categories else (np.nan, np.inf):
        wrong = x.copy()
        wrong[4, 1] = bad
        for fit_or_design in (basis.design, BASES[name].placed_by if not BASES[name].is_fitted else basis.design):
            with pytest.raises(lk.DataError, match=rf"{bad} at row 4, column '?x?1"):
                fit_or_design(wrong)
        with pytest.raises(lk.DataError, match=rf"{bad} at row 4, column 'size'"):
            basis.design(pd.DataFrame(wrong, columns=["age", "size"]))


@pytest.mark.parametrize("name", BASES)
def test_bad_shapes_are_errors(name, rng):
    basis = BASES[name].fitted(rows(rng))
    with pytest.raises(lk.LikelyError):
        basis.design(np.zeros((3, 2, 2)))
    with pytest.raises(lk.LikelyError):
        basis.design(np.zeros((3, 0)))
    with pytest.raises(lk.LikelyError):
        BASES["hermite"].fitted(np.zeros((0, 2)))
    with pytest.raises(lk.ShapeError, match="weight must have one"):
        BASES["hermite"].fitted(np.zeros((3, 2)), [1.0, 2.0])
    with pytest.raises(lk.DataError, match="at least one row"):
        BASES["hermite"].fitted(np.zeros((3, 2)), np.zeros(3))


def test_a_basis_of_two_columns_refuses_three(rng):
    for name in ("scaled polynomial", "legendre", "gaussian", "radial", "sigmoid", "cubic spline", "one-hot"):
        with pytest.raises(lk.ShapeError, match="2 columns"):
            BASES[name].fitted(rows(rng)).design(np.zeros((4, 3)))


def test_data_frames_lists_vectors_and_sparse_rows(rng):
    pd, pl, sparse = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("scipy.sparse")
    x = rows(rng)
    for basis in (B.Polynomial(2), B.BSpline(), B.PerColumn({1: B.Fourier(1), 0: B.Identity()})):
        wanted = basis.fitted(x).design(x)
        table = {"a": x[:, 0], "b": x[:, 1]}
        tables = (pd.DataFrame(table), pl.DataFrame(table), lk.core.Columns(table))
        for other in (*tables, x.tolist(), np.asfortranarray(x)):
            np.testing.assert_array_equal(basis.fitted(other).design(other), wanted)
        np.testing.assert_array_equal(basis.fitted(x).design(sparse.csr_array(x)), wanted)
    np.testing.assert_array_equal(B.Polynomial(2).design(x[:, 0]), B.Polynomial(2).design(x[:, :1]))


def test_a_constant_column_places_something_finite():
    for name in ("scaled polynomial", "legendre", "hermite", "gaussian", "sigmoid", "fourier", "cubic spline"):
        for value in (0.0, -3.0, 1e8, 1e300):
            x = np.full((5, 2), value)
            assert np.isfinite(BASES[name].fitted(x).design(x)).all(), name


def test_an_error_in_a_later_block_names_the_row_of_the_table():
    x = np.linspace(0.0, 1.0, 10_000)
    x[9_000] = 5.0
    with pytest.raises(lk.DataError, match=r"values must lie between 0 and 1, got 5.0 at row 9000, column 0"):
        B.BSpline([0.0, 1.0], extrapolation="error").design(x)
    levels = np.repeat(["a"], 10_000).astype("<U1")
    levels[8_500] = "b"
    with pytest.raises(lk.DataError, match=r"got 'b' at row 8500, column 0"):
        B.OneHot(["a"]).design(levels)


# ----------------------------------------------------------- in regressions

NUMBERS = {
    "polynomial": B.Polynomial(3), "orthogonal": B.OrthogonalPolynomial(3), "gaussian": B.GaussianBasis(5),
    "sigmoid": B.SigmoidBasis(5), "fourier": B.Fourier(2), "spline": B.BSpline(6),
    "piecewise linear": B.PiecewiseLinear(4), "functions": B.FunctionBasis([np.sin, np.cos]),
    "per column": B.PerColumn({0: B.Polynomial(2), 1: B.Fourier(1)}),
    "interactions": B.Interactions((B.PerColumn({0: B.Polynomial(2)}), B.PerColumn({1: B.OneHot()}))),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["numbers", "integers", "a constant column", "polars"])
@pytest.mark.parametrize("name", NUMBERS)
def test_every_basis_serves_a_regression_and_its_file(rng, name, kind, tmp_path):
    X = np.column_stack([rng.uniform(0, 3, 60), rng.integers(-1, 2, 60)])
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(60)
    far = np.array([[10.0, 1.0], [-5.0, -1.0]])
    if kind == "integers":
        X, far = np.round(X * [3, 1]).astype(int), far.astype(int)
    elif kind == "a constant column":
        X[:, 1] = far[:, 1] = 1.0
    elif kind == "polars":
        X, far = (pl.DataFrame({"a": part[:, 0], "b": part[:, 1]}) for part in (X, far))
    m = lk.BayesianLinearRegression(NUMBERS[name]).fit(X, y)
    mean, std = m.predict(far, return_std=True)  # extrapolation
    assert np.isfinite(m.predict(X)).all() and np.isfinite(mean).all() and (std > 0).all()
    path = tmp_path / "model"
    if name == "functions":
        with pytest.raises(lk.ModelFileError, match="basis cannot be saved"):
            m.save(path)
        return
    m.save(path)
    np.testing.assert_array_equal(lk.load(path).predict(far), mean)


def test_interactions_of_one_basis_are_refused():
    with pytest.raises(lk.DomainError, match="parts must be two or more bases"):
        B.Interactions(B.Polynomial(2))
