"""Categories, bases of single columns, interactions and functions of users."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder

import likely as lk

B = lk.basis


def test_indicators_are_those_of_scikit_learn(rng):
    x = np.column_stack([rng.choice(["red", "green", "blue"], 30), rng.choice(["s", "xl"], 30)]).astype(object)
    for drop, constant in ((None, False), ("first", True)):
        wanted = OneHotEncoder(drop=drop, sparse_output=False).fit_transform(x)
        basis = B.OneHot(constant=constant).fitted(x)
        np.testing.assert_array_equal(basis.design(x)[:, constant:], wanted)
        assert basis.n_functions(2) == wanted.shape[1] + constant


@pytest.mark.parametrize(
    ("levels", "x"),
    [
        (["b", "a"], np.array(["a", "b", "a"])),
        ([7, 3], [3, 7, 3]),
        ([2.5, 0.5], np.array([0.5, 2.5, 0.5])),
        ([True, False], [False, True, False]),
    ],
)
def test_given_levels_keep_their_order(levels, x):
    basis = B.OneHot(levels, constant=False)
    assert basis.design(x).tolist() == [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    assert B.OneHot(levels).design(x).tolist() == [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    assert basis.names(["g"]) == [f"g={level}" for level in levels]


def test_unknown_levels():
    basis = B.OneHot(["a", "b"])
    with pytest.raises(lk.DataError, match=r"levels must be among 'a', 'b', got 'c' at row 1, column 0: unknown"):
        basis.design(["a", "c"])
    with pytest.raises(lk.DataError, match=r"got 1 at row 0, column 'g'"):
        basis.design(lk.core.Columns(g=[1, 2]))
    taking = B.OneHot(["a", "b"], "zeros", constant=False)
    assert taking.design(["c", "b"]).tolist() == [[0.0, 0.0], [0.0, 1.0]]
    with pytest.raises(lk.DomainError, match='"zeros" needs constant=False, got constant=True: with a constant'):
        B.OneHot(unknown="zeros")


def test_bad_levels_are_errors():
    with pytest.raises(lk.DomainError, match="levels must differ"):
        B.OneHot(["a", "a"])
    with pytest.raises(lk.DataError, match="levels of column 0 must be all texts or all numbers, got float, str"):
        B.OneHot().fitted(np.array(["a", 1.0], dtype=object))
    with pytest.raises(lk.DataError, match="every row needs a level, got None at row 1, column 0: drop such rows"):
        B.OneHot().fitted(np.array(["a", None], dtype=object))
    with pytest.raises(lk.DomainError, match="unknown must be one of error, zeros"):
        B.OneHot(unknown="ignore")


def frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"age": [20.0, 30.0, 50.0], "city": ["Ulm", "Bonn", "Ulm"], "size": [1.0, 2.0, 3.0]})


def test_columns_by_name_and_by_number():
    basis = B.PerColumn({"city": B.OneHot(), "age": B.Polynomial(2)}).fitted(frame())
    wanted = [[1.0, 1.0, 20.0, 400.0], [1.0, 0.0, 30.0, 900.0], [1.0, 1.0, 50.0, 2500.0]]
    assert basis.design(frame()).tolist() == wanted
    assert basis.columns == ("age", "city", "size")
    assert basis.design(frame().to_numpy()).tolist() == wanted  # names hold for arrays once they are known
    assert basis.design(frame()[["size", "city", "age"]]).tolist() == wanted  # columns of a frame are found by name
    assert basis.names(["age", "city", "size"]) == ["1", "city=Ulm", "age", "age^2"]
    by_number = B.PerColumn({1: B.OneHot(), 0: B.Polynomial(2)}).fitted(frame().to_numpy())
    assert by_number.design(frame().to_numpy()).tolist() == wanted
    assert B.PerColumn({-1: B.Identity()}).design(frame().to_numpy()).tolist() == [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]


def test_columns_that_are_not_there():
    with pytest.raises(lk.DataError, match="PerColumn: there must be a column 'price', got columns age, city, size"):
        B.PerColumn({"price": B.Identity()}).fitted(frame())
    with pytest.raises(lk.DataError, match="column 'price' must be found by its name, got an array: pass a data frame"):
        B.PerColumn({"price": B.Identity()}).fitted(np.zeros((2, 2)))
    with pytest.raises(lk.ShapeError, match="there must be a column 5, got 2 columns"):
        B.PerColumn({5: B.Identity()}).design(np.zeros((2, 2)))
    with pytest.raises(lk.DataError, match=r"Polynomial \(column 'city'\): rows must be numbers"):
        B.PerColumn({"city": B.Polynomial(2)}).fitted(frame()).design(frame())
    with pytest.raises(lk.ShapeError, match="rows must have the columns age, city, size, got 2 columns"):
        B.PerColumn({"age": B.Identity()}).fitted(frame()).design(np.zeros((2, 2)))
    with pytest.raises(lk.DomainError, match="parts must map column names or numbers"):
        B.PerColumn({0: "identity"})


def test_a_two_way_table_has_the_right_rank(rng):
    x = np.column_stack([np.repeat(["a", "b", "c"], 4), np.tile(["u", "v"], 6)])
    parts = [B.PerColumn({0: B.OneHot()}), B.PerColumn({1: B.OneHot()})]
    basis = B.Interactions(parts).fitted(x)
    design = basis.design(x)
    assert design.shape[1] == basis.n_functions(2) == np.linalg.matrix_rank(design) == 6
    assert basis.names(["g", "h"]) == ["1", "g=b", "g=c", "h=v", "g=b h=v", "g=c h=v"]
    products = B.Interactions(parts, main_effects=False, constant=False).fitted(x).design(x)
    np.testing.assert_array_equal(products, design[:, [1, 2]] * design[:, [3]])


def test_slopes_that_differ_by_group():
    x = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    basis = B.Interactions([B.PerColumn({0: B.Identity()}), B.PerColumn({1: B.OneHot([0.0, 1.0])})])
    assert basis.design(x).tolist() == [[1, 1, 0, 0], [1, 2, 1, 2], [1, 3, 1, 3]]
    with pytest.raises(lk.DomainError, match="parts must be two or more bases"):
        B.Interactions([B.Identity()])


def test_functions_of_users():
    basis = B.FunctionBasis([np.sin, lambda x: x.prod(axis=1)]).fitted(np.ones((2, 3)))
    assert basis.outputs == (3, 1) and basis.names("abc") == ["1", "sin[0]", "sin[1]", "sin[2]", "f1"]
    assert B.FunctionBasis(np.sin, outputs=[2]).n_functions(2) == 3
    with pytest.raises(lk.ShapeError, match=r"FunctionBasis \(function 0, sum\): an array \(2,\)"):
        B.FunctionBasis(np.sum).fitted(np.ones((2, 3)))
    with pytest.raises(lk.DataError, match=r"\(function 0, log\): finite numbers must be returned, got others at row"):
        B.FunctionBasis(np.log).fitted([[1.0], [2.0]]).design([[1.0], [0.0]])
    with pytest.raises(lk.ShapeError, match="2 columns must be returned, as before, got 3"):
        B.FunctionBasis(np.exp, outputs=[2]).design(np.ones((2, 3)))
    with pytest.raises(lk.DomainError, match="functions must be callables"):
        B.FunctionBasis(["sin"])
