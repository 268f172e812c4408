"""The border: what comes in becomes float64 rows, or one sentence says why not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from likely import DataError, DomainError, LikelyError, ShapeError
from likely.core.arrays import (
    BadEntry,
    checked_labels,
    frozen,
    like_input,
    n_rows,
    numbers,
    parameter,
    refuse_infinite,
    rows,
    sliceable,
    unmasked,
    weights,
)


def test_frozen_is_the_same_memory_made_read_only():
    a = np.arange(3.0)
    assert frozen(a) is a and not a.flags.writeable


def test_frozen_copies_a_writable_view_so_that_its_label_stays_writable():
    labels = np.arange(6.0)
    kept = frozen(labels[::2])
    labels[0] = 99.0
    assert kept[0] == 0.0 and labels.flags.writeable


@pytest.mark.parametrize("value", [[[1, 2], [3]], "three", [object()], None])
def test_a_parameter_is_numbers_in_a_regular_shape(value):
    with pytest.raises(LikelyError, match="Distribution: size must be"):
        parameter(value, "Distribution", "size")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_parameter_is_finite(bad):
    with pytest.raises(DomainError, match="Distribution: size must be finite"):
        parameter([1.0, bad], "Distribution", "size")


def test_a_parameter_is_a_copy():
    mine = np.ones(2)
    theirs = parameter(mine, "Distribution", "size")
    mine[0] = 5.0
    assert theirs.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("x", "n"), [([1, 2, 3], 3), (np.zeros((4, 0)), 4), (np.zeros(0), 0), ([], 0), ("ab", 2), (range(5), 5)]
)
def test_rows_are_counted(x, n):
    assert n_rows(x) == n


@pytest.mark.parametrize("x", [3.0, np.float64(3.0), np.array(3.0), object()])
def test_what_has_no_rows_is_refused(x):
    with pytest.raises(ShapeError, match="data with rows"):
        n_rows(x)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6, dtype=np.int8).reshape(3, 2),
        np.arange(6, dtype=np.uint8).reshape(3, 2),
        np.arange(6, dtype=">f4").reshape(3, 2),
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.arange(12.0).reshape(6, 2)[::2] / 2.0 + np.array([0.0, 0.5]),
        [[0, 1], [2, 3], [4, 5]],
        [[np.float32(0), True], [2, 3.0], [4, 5]],
    ],
    ids=["int8", "uint8", "big-endian", "F-order", "strided", "list", "mixed"],
)
def test_rows_come_as_contiguous_float64(x):
    a = rows(x, 2, "Distribution")
    assert a.dtype == np.float64 and a.flags.c_contiguous and a.shape == (3, 2)


def test_rows_that_are_right_already_are_not_copied():
    x = np.zeros((3, 2))
    assert rows(x, 2, "Distribution") is x


@pytest.mark.parametrize(
    ("x", "columns", "error"),
    [
        (np.zeros((3, 2)), 3, ShapeError),
        (np.zeros((3, 2, 1)), None, ShapeError),
        (np.zeros(3), 2, ShapeError),
        (np.zeros((2, 2), complex), 2, DataError),
        ([1j], 1, DataError),
        ([[1, 2], [3]], 2, DataError),
        (["a", "b"], 1, DataError),
        ([None, {}], 1, DataError),
    ],
)
def test_rows_of_another_kind_are_refused(x, columns, error):
    with pytest.raises(error, match=r"^Distribution: rows must"):
        rows(x, columns, "Distribution")


def test_a_vector_is_one_column():
    assert rows([1, 2, 3], 1, "Distribution").shape == rows([1, 2, 3], None, "Distribution").shape == (3, 1)


@pytest.mark.parametrize("weight", [[0, 1, 2], np.ones((3, 4)), (0.5, 0.0, 2), np.zeros(3, bool)])
def test_weights_pass(weight):
    w = weights(weight, 3, "Distribution")
    assert w.dtype == np.float64 and np.array_equal(w, np.asarray(weight, float))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("weight", "error", "says"),
    [
        ([1, -1, 1], DataError, "-1.0 at row 1"),
        ([1, 1, np.nan], DataError, "nan at row 2"),
        ([np.inf, 1, 1], DataError, "inf at row 0"),
        ([np.inf, -np.inf, 1], DataError, "inf at row 0"),
        ([1e308, 1e308, 1e308], DataError, "a sum that overflows"),
        ([[1, 1], [1, -2], [1, 1]], DataError, "-2.0 at row 1"),
        ([1, 1], ShapeError, r"one entry per row \(3\), got \(2,\)"),
        (np.ones((3, 1, 1)), ShapeError, "one entry per row"),
        (2.0, ShapeError, "one entry per row"),
        (["a", "b", "c"], DataError, "must be numbers"),
    ],
)
def test_weights_are_refused_with_the_place(weight, error, says):
    with pytest.raises(error, match=says):
        weights(weight, 3, "Distribution")


def test_no_weight_is_none_and_no_rows_need_none():
    assert weights(None, 3, "Distribution") is None
    assert weights([], 0, "Distribution").shape == (0,)


def test_labels_are_integers_within_the_stack():
    assert checked_labels([0, 2, -1], 3, 3, "Distribution").tolist() == [0, 2, -1]
    assert checked_labels([], 0, 3, "Distribution").shape == (0,)


@pytest.mark.parametrize(
    ("labels", "error"),
    [([0, 3, 0], DataError), ([0, -2, 0], DataError), ([0, 1], ShapeError), ([0.0, 1.0, 0.0], ShapeError)],
)
def test_other_labels_are_refused(labels, error):
    with pytest.raises(error, match="Distribution: labels must"):
        checked_labels(labels, 3, 3, "Distribution")


def test_infinity_is_named_by_row_and_column():
    x = np.zeros((4, 3))
    x[2, 1] = -np.inf
    with pytest.raises(DataError, match="-inf at row 2, column 1"):
        refuse_infinite(x, "Distribution")
    with pytest.raises(DataError, match="-inf at row 17, column 1"):
        refuse_infinite(x, "Distribution", np.array([3, 5, 17, 19]))


def test_nan_is_no_infinity():
    refuse_infinite(np.array([[np.nan, 1e308]]), "Distribution")


def test_a_bad_entry_can_be_counted_from_further_back_and_pickled():
    error = BadEntry("Distribution", "values must be small", 7, 3, 1, "shrink it").after(100)
    again = pickle.loads(pickle.dumps(error))
    assert str(error) == str(again) == "Distribution: values must be small, got 7 at row 103, column 1: shrink it."


def test_only_float32_comes_back_as_float32():
    out = np.ones(2)
    assert like_input(out, np.zeros(2, np.float32)).dtype == np.float32
    assert like_input(out, np.zeros(2, np.int32)) is out and like_input(out, [1, 2]) is out


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (np.array([1.5, -999.0]), np.array([1.5, np.nan])),
        (np.array([1.5, -999.0], np.float32), np.array([1.5, np.nan], np.float32)),
        (np.array([3, -999]), np.array([3.0, np.nan])),
        (np.array([True, False]), np.array([True, None], dtype=object)),
        (np.array(["a", "b"]), np.array(["a", None], dtype=object)),
    ],
)
def test_what_is_masked_is_missing(cells, expected):
    out = unmasked(np.ma.masked_array(cells, [False, True]))
    assert type(out) is np.ndarray and out.dtype == expected.dtype and repr(out.tolist()) == repr(expected.tolist())
    assert unmasked(np.ma.masked_array(cells)).tolist() == cells.tolist()


def test_masked_dates_are_not_a_time_and_other_things_pass():
    when = np.ma.masked_array(np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"), [True, False])
    assert np.isnat(unmasked(when)).tolist() == [True, False]
    x = [1.0]
    assert unmasked(x) is x


def test_masked_entries_cross_the_border_as_nan():
    hidden = np.ma.masked_array([[1.0, -999.0], [2.0, 3.0]], [[False, True], [False, False]])
    assert np.array_equal(rows(hidden, 2, "Gaussian"), [[1.0, np.nan], [2.0, 3.0]], equal_nan=True)
    assert np.isnan(sliceable(hidden[:, 1], 1)).tolist() == [True, False]
    with pytest.raises(DataError, match="finite and not negative, got nan at row 1"):
        weights(np.ma.masked_array([1.0, 1.0], [False, True]), 2, "Gaussian")
    with pytest.raises(DomainError, match="mean must be finite"):
        parameter(np.ma.masked_array([1.0, 1.0], [False, True]), "Gaussian", "mean")
    with pytest.raises(ShapeError, match="integers"):
        checked_labels(np.ma.masked_array([0, 1], [False, True]), 2, 2, "Gaussian")


class NAType:  # as pandas' own is called
    def __float__(self):
        raise TypeError("not a number")


def test_objects_are_read_cell_by_cell():
    cells = np.array([[1, NAType()], [None, 2.5]], dtype=object)
    assert np.array_equal(numbers(cells, "Gaussian"), [[1.0, np.nan], [np.nan, 2.5]], equal_nan=True)
    with pytest.raises(DataError, match=r"with NaN for missing values, got 'red' at row 1, column 0"):
        numbers(np.array([[1.0, 2.0], ["red", 3.0]], dtype=object), "Gaussian")
    with pytest.raises(DataError, match=r"got rows of different lengths\.$"):
        numbers([[1.0, 2.0], [3.0]], "Gaussian")
    with pytest.raises(DataError, match=r"weights must be numbers, got list\.$"):
        weights(["a", "b"], 2, "Gaussian")
