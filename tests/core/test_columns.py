"""Named parts that are cut together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from likely import DataError, Ragged, ShapeError
from likely.core import Columns


@pytest.fixture
def columns():
    return Columns(
        size=np.arange(8.0).reshape(4, 2),
        color=["red", "blue", "red", "green"],
        walk=Ragged.from_list([[1], [2, 3], [], [4]]),
    )


def test_length_is_rows_and_iteration_is_names(columns):
    assert len(columns) == 4 and list(columns) == ["size", "color", "walk"]
    assert "size" in columns and "weight" not in columns
    assert repr(columns) == "Columns(4 rows: size, color, walk)"


@pytest.mark.parametrize("which", [slice(1, 3), np.array([False, True, True, False]), np.array([1, 2])])
def test_rows_are_taken_of_all_parts(columns, which):
    some = columns[which]
    assert len(some) == 2 and some["size"].tolist() == [[2, 3], [4, 5]] and some["color"].tolist() == ["blue", "red"]
    assert [s.tolist() for s in some["walk"]] == [[2, 3], []]


def test_parts_of_many_kinds():
    nested = Columns(inner=Columns(a=[1, 2]), frame=pd.Series([1.5, 2.5]), sparse=scipy.sparse.csr_array(np.eye(2)))
    assert nested[1:]["inner"]["a"].tolist() == [2] and nested["frame"].tolist() == [1.5, 2.5]
    assert nested[1:]["sparse"].shape == (1, 2)


def test_a_dict_is_converted_once(columns):
    assert Columns.of(columns) is columns
    assert Columns.of({"a": [1, 2], "b": [3, 4]})["b"].tolist() == [3, 4]


def test_no_rows():
    assert len(Columns(a=np.empty((0, 2)), b=[])) == 0


def test_float32_only_where_all_parts_are(columns):
    single = np.zeros(3, np.float32)
    assert Columns(a=single, b=single).dtype == np.float32
    assert Columns(a=single, b=np.zeros(3)).dtype == columns.dtype == np.float64


def test_unequal_parts_are_refused():
    with pytest.raises(ShapeError, match=r"same number of rows, got \{'a': 2, 'b': 3\}"):
        Columns(a=[1, 2], b=[1, 2, 3])


@pytest.mark.parametrize("make", [Columns, lambda: Columns.of(np.zeros((3, 2))), lambda: Columns.of([1, 2])])
def test_nothing_named_is_refused(make):
    with pytest.raises(DataError, match=r"Columns: .*named part"):
        make()
