"""Sequences of unequal length as one long array."""

from __future__ import annotations

import pickle
import time
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from likely import DataError, Ragged, ShapeError
from likely.core import Columns
from likely.core.errors import LikelyError
from likely.core.row_hashes import row_hashes


def some(lengths, width=2):
    values = np.arange(sum(lengths) * width, dtype=float).reshape(-1, width)
    return Ragged(values, np.cumsum([0, *lengths]))


@given(st.lists(st.integers(0, 4), max_size=8))
def test_a_list_goes_in_and_comes_out(lengths):
    sequences = [np.full((n, 2), float(i)) for i, n in enumerate(lengths)]
    r = Ragged.from_list(sequences)
    assert len(r) == len(lengths) and r.lengths.tolist() == lengths
    assert all(np.array_equal(a, b) for a, b in zip(r, sequences, strict=True))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_indexing_is_that_of_a_list(lengths, data):
    r, n = some(lengths), len(lengths)
    whole = list(r)
    i = data.draw(st.integers(-n, n - 1))
    assert np.array_equal(r[i], whole[i])
    which = data.draw(st.slices(n))
    assert_same(r[which], whole[which])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert_same(r[mask], [s for s, m in zip(whole, mask, strict=True) if m])
    picks = data.draw(st.lists(st.integers(-n, n - 1), max_size=6))
    assert_same(r[np.array(picks, int)], [whole[j] for j in picks])


def assert_same(r, sequences):
    assert isinstance(r, Ragged) and len(r) == len(sequences)
    assert all(np.array_equal(a, b) for a, b in zip(r, sequences, strict=True))


def test_a_slice_shares_memory_and_everything_is_read_only():
    r = some([2, 3, 1])
    assert np.shares_memory(r[1:].values, r.values)
    assert not r.values.flags.writeable and not r.offsets.flags.writeable


def test_the_givers_array_stays_writable():
    values = np.zeros((3, 2))
    Ragged(values, [0, 3])
    values[0] = 1.0


def test_frames_keep_their_kind():
    r = Ragged.from_list([np.array([1, 2], np.int8), np.array([3], np.int8)])
    assert r.values.dtype == np.int8 and r[1].tolist() == [3]


def test_a_slice_pickles_only_its_own_frames():
    r = some([1000, 2])
    again = pickle.loads(pickle.dumps(r[1:]))
    assert np.array_equal(again[0], r[1]) and len(pickle.dumps(r[1:])) < 1000


def test_index_past_the_end():
    with pytest.raises(IndexError):
        some([1, 2])[2]


@pytest.mark.parametrize(
    ("values", "offsets"),
    [
        (np.zeros(3), [0, 2]),
        (np.zeros(3), [1, 3]),
        (np.zeros(3), [0, 2, 1, 3]),
        (np.zeros(3), []),
        (np.zeros(3), [[0, 3]]),
        (np.float64(1.0), [0, 1]),
    ],
)
def test_offsets_must_fit(values, offsets):
    with pytest.raises(ShapeError, match="Ragged: offsets must"):
        Ragged(values, offsets)


@pytest.mark.parametrize("sequences", [[np.zeros((2, 2)), np.zeros((2, 3))], [np.zeros(2), np.zeros((2, 1))], [1.0]])
def test_sequences_must_have_frames_of_one_shape(sequences):
    with pytest.raises(ShapeError, match="Ragged: sequence"):
        Ragged.from_list(sequences)


# ------------------------------------------------------------------ unlike frames


def test_frames_may_have_names_and_unlike_kinds():
    c = Columns(size=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], color=["red", "blue", "red"])
    r = Ragged(c, [0, 1, 3])
    assert len(r) == 2 and r[1]["color"].tolist() == ["blue", "red"] and len(list(r)) == 2
    back = r[[1, 0]]
    assert back.values["size"].tolist() == [[3.0, 4.0], [5.0, 6.0], [1.0, 2.0]]
    assert back.offsets.tolist() == [0, 2, 3] and not back.values["size"].flags.writeable
    assert pickle.loads(pickle.dumps(r))[0]["color"].tolist() == ["red"]


def test_lists_of_columns_are_joined_part_by_part():
    r = Ragged.of([{"n": [1.0], "word": ["a"]}, {"n": [2.0, 3.0], "word": ["bcd", None]}])
    assert r.values["n"].tolist() == [1.0, 2.0, 3.0] and r.values["word"].tolist() == ["a", "bcd", None]
    assert np.unique(row_hashes(r[[0, 1, 0]])).size == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, object, "U3"])
def test_the_kind_of_values_is_kept(dtype):
    r = Ragged.of([np.array([1, 2]).astype(dtype), np.array([3]).astype(dtype)])
    assert r.dtype == r[::-1].dtype == r[[True, False]].dtype == np.dtype(dtype)


def test_many_sequences_are_picked_at_once():
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 5, 100_000)
    r = Ragged.of(rng.normal(size=(lengths.sum(), 2)), lengths)
    began = time.perf_counter()
    picked = r[rng.permutation(len(r))]
    assert time.perf_counter() - began < 0.5  # a list of arrays took 0.15 s on an idle machine, this 0.01
    assert picked.offsets[-1] == len(r.values) and np.isclose(picked.values.sum(), r.values.sum())


def test_an_empty_choice_and_an_odd_one():
    r = some([1, 2])
    assert len(r[[]]) == len(r[np.array([])]) == len(r[[False, False]]) == 0
    with pytest.raises(IndexError):
        r[[5]]
    with pytest.raises(ShapeError, match="an index must be"):
        r[np.zeros((2, 2), int)]


# -------------------------------------------------------------------- the border


ONE = {"numbers": [1, 2, 3], "vector": np.arange(3.0), "words": np.array(["a", "b", "c"]), "range": range(3)}
TWO = {
    "lists": [[1, 2], [3]],
    "equal lengths": [np.zeros(2), np.ones(2)],
    "tuple of words": (["rain", "sun"], ["sun"]),
    "matrices": [np.zeros((2, 3)), np.ones((1, 3))],
    "cube": np.zeros((2, 4, 3)),
    "objects": np.array([np.zeros(2), np.zeros(3)], dtype=object),
    "series": [pd.Series([1, None]), pd.Series([2.0])],
    "frames": [pd.DataFrame({"a": [1.0], "b": [2]}), pl.DataFrame({"a": [1.0], "b": [2]})],
    "ragged": Ragged.from_list([[1], [2]]),
}


@pytest.mark.parametrize("x", ONE.values(), ids=ONE)
def test_what_is_flat_is_one_sequence(x):
    r = Ragged.of(x)
    assert len(r) == 1 and r.values.shape == (3,) and r[0].tolist() == list(x)


@pytest.mark.parametrize("x", TWO.values(), ids=TWO)
def test_what_holds_sequences_is_several(x):
    r = Ragged.of(x)
    assert len(r) == 2
    for a, b in zip(r, x, strict=True):
        np.testing.assert_array_equal(a, np.asarray(b))


def test_a_matrix_is_one_sequence_or_is_cut():
    x = np.arange(10.0).reshape(5, 2)
    assert Ragged.of(x).lengths.tolist() == [5] and np.shares_memory(Ragged.of(x).values, x)
    for table in (x, pd.DataFrame(x), pl.DataFrame(x)):
        r = Ragged.of(table, [2, 0, 3])
        assert r[2].tolist() == x[2:].tolist() and r[1].shape == (0, 2)


def test_a_padded_cube_is_cut_to_its_lengths():
    x = np.arange(12.0).reshape(2, 3, 2)
    r = Ragged.of(x, [1, 3])
    assert_same(r, [x[0, :1], x[1]])


def test_missing_values_and_words_stay_what_they_are():
    assert np.array_equal(Ragged.of([[1, None], [2]]).values, [1.0, np.nan, 2.0], equal_nan=True)
    mixed = Ragged.of([["a", float("nan")], [1.5]])
    assert mixed.values.tolist() == ["a", None, 1.5]
    assert Ragged.of([["a", "b"], []]).values.dtype.kind == "U"  # what is empty has no say
    assert Ragged.of([[], [1, 2]]).values.dtype.kind == "i"
    assert Ragged.of([[], np.zeros((2, 3))])[0].shape == (0, 3)
    assert Ragged.of([[], []]).lengths.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("x", "kind", "told"),
    [
        ([], DataError, "at least one sequence"),
        ((s for s in [[1]]), DataError, "iterator: pass list"),
        ("acgt", DataError, r"list\(text\)"),
        (["acgt", "ac"], DataError, r"\[list\(s\) for s in x\]"),
        (["acgt", [1]], DataError, "sequence 0 .* the text 'acgt'"),
        ([np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((1, 3))], ShapeError, r"sequence 2 .*\(2,\).* sequence 0"),
        ([np.zeros(2), np.zeros((2, 1))], ShapeError, "sequence 1"),
        ([np.zeros(2), 1.0], ShapeError, "sequence 1 .* the number 1.0"),
        ([[[1, 2], [3]]], ShapeError, "sequence 0 must have frames of equal length"),
        ([np.zeros((1, 2, 3))], ShapeError, r"sequence 0 .*\(1, 2, 3\)"),
        (np.zeros((1, 2, 3, 4)), ShapeError, "deeper"),
        ([np.zeros(2), np.zeros(2, complex)], DataError, "sequence 1 .*complex"),
        (np.zeros((2, 2), complex), DataError, "complex"),
        ([{1, 2}], DataError, "sequence 0 .*set"),
        ([{"a": [1]}, {"b": [1]}], ShapeError, "sequence 1 must have frames of parts a"),
        (csr_array(np.eye(3)), DataError, "csr_array"),
        (3.0, ShapeError, "the number 3.0"),
        (None, ShapeError, "NoneType"),
    ],
)
def test_what_is_no_sequences_is_reported_in_words(x, kind, told):
    with pytest.raises(kind, match=f"Ragged: .*{told}"):
        Ragged.of(x)


@pytest.mark.parametrize(
    ("x", "lengths", "told"),
    [
        (np.zeros((5, 2)), [2, 2], "add up to the number of frames, 5, got 4"),
        (np.zeros(5), [6, -1], "negative"),
        (np.zeros(5), [2.5, 2.5], "integers"),
        (np.zeros(5), 5, "one per sequence"),
        (np.zeros((2, 3, 1)), [4, 1], "up to 3"),
        (np.zeros((2, 3, 1)), [3], "2 numbers"),
        ([[1, 2]], [2], "already"),
        (Ragged.from_list([[1, 2]]), [2], "already"),
    ],
)
def test_lengths_must_fit(x, lengths, told):
    with pytest.raises(ShapeError, match=told):
        Ragged.of(x, lengths)


# ------------------------------------------------------------------------ tools


def test_map_joined_weights_and_repr():
    r = some([2, 0, 1])
    assert_same(r.map(lambda v: v[:, 0] + 1), [s[:, 0] + 1 for s in r])
    with pytest.raises(ShapeError, match="3 frames must return as many"):
        r.map(lambda v: v[:2])
    assert_same(Ragged.joined([r, r[1:1], r[2:]]), [*r, r[2]])
    assert r.weights(None) is None and r.weights([2, 5, 0.5]).tolist() == [2, 2, 0.5]
    with pytest.raises(ShapeError, match="one entry per row"):
        r.weights([1.0])
    assert repr(r) == "Ragged(3 sequences of 0 to 2 frames, each 2 × float64)"
    assert repr(Ragged.of([["a"]])) == "Ragged(1 sequence of 1 frames, each text)"
    assert repr(Ragged.from_list([])) == "Ragged(0 sequences of no frames, each float64)"


class NearestMean(ClassifierMixin, BaseEstimator):
    """Sequences by their mean frame: enough to see how scikit-learn cuts what it is given."""

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y):
        m = self._means(X)
        self.classes_ = np.unique(y)
        self.centers_ = np.array([m[np.asarray(y) == c].mean() for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[np.abs(self._means(X)[:, None] - self.centers_).argmin(1)]

    def _means(self, X):
        r = Ragged.of(X)
        return np.array([s.mean() for s in r]) ** self.power


@pytest.mark.parametrize("width", [None, 2])
@pytest.mark.parametrize("as_list", [True, False])
def test_scikit_learn_can_split_sequences(width, as_list):
    rng = np.random.default_rng(8)
    y = np.repeat([0, 1], 15)
    x = [
        5.0 * c + rng.normal(size=n if width is None else (n, width))
        for c, n in zip(y, rng.integers(2, 9, 30), strict=True)
    ]
    X = x if as_list else Ragged.of(x)
    assert cross_val_score(NearestMean(), X, y, cv=3, error_score="raise").min() > 0.9
    search = GridSearchCV(NearestMean(), {"power": [1.0, 3.0]}, cv=3, error_score="raise").fit(X, y)
    assert (search.predict(X) == y).mean() > 0.9
    train, test, _, labels = train_test_split(X, y, random_state=0)
    assert len(Ragged.of(train)) == 22 and len(Ragged.of(test)) == len(labels) == 8


# ------------------------------------------------------------------- long tables


LONG = {"who": ["b", "a", "b", "a", "b"], "t": [3, 1, 1, 0, 1], "x": [1.0, 2.0, 3.0, None, 5.0], "y": [1, 2, 3, 4, 5]}
TABLES = {
    "dict": LONG,
    "pandas": pd.DataFrame(LONG),
    "polars": pl.DataFrame(LONG),
    "lazy": pl.LazyFrame(LONG),
    "columns": Columns(LONG),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_long_table_is_cut_by_id_and_ordered_by_time(table):
    r, ids = Ragged.from_table(table, "who", "t")
    assert ids.tolist() == ["b", "a"] and r.dtype == np.float64
    assert r[0].tolist() == [[3.0, 3.0], [5.0, 5.0], [1.0, 1.0]]  # a tie keeps its order
    assert np.array_equal(r[1], [[np.nan, 4.0], [2.0, 2.0]], equal_nan=True)
    unordered, _ = Ragged.from_table(table, "who", columns="y")
    assert unordered.values.tolist() == [1.0, 3.0, 5.0, 2.0, 4.0] and unordered.lengths.tolist() == [3, 2]


def test_a_matrix_goes_by_number():
    r, ids = Ragged.from_table(np.array([[7, 1, 0.5], [3, 0, 0.6], [7, 0, 0.7]]), 0, 1)
    assert ids.tolist() == [7, 3] and r.values.tolist() == [0.7, 0.5, 0.6]
    r, _ = Ragged.from_table(np.arange(12).reshape(3, 4), 0, columns=[3, 1])
    assert r.values.tolist() == [[3.0, 1.0], [7.0, 5.0], [11.0, 9.0]]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=20))
def test_long_tables_are_grouped_as_python_would(rows):
    who, when = [f"s{a}" for a, _ in rows], [b for _, b in rows]
    r, ids = Ragged.from_table({"who": who, "t": when, "row": range(len(rows))}, "who", "t")
    assert ids.tolist() == list(dict.fromkeys(who))
    expected = [sorted((i for i, w in enumerate(who) if w == one), key=lambda i: when[i]) for one in ids]
    assert [s.tolist() for s in r] == expected


def test_words_stay_words_and_whole_ids_whole():
    table = pd.DataFrame({"id": [2**60 + 1, 2**60, 2**60 + 1], "w": ["a", None, "c"], "v": [1.0, 2.0, np.nan]})
    r, ids = Ragged.from_table(table, "id")
    assert ids.tolist() == [2**60 + 1, 2**60] and r[0]["w"].tolist() == ["a", "c"]
    words, _ = Ragged.from_table(table, "id", columns=["w"])
    assert words.values.tolist() == ["a", "c", None]
    parts = Columns(id=[1, 2, 1], m=np.arange(6.0).reshape(3, 2), c=["x", "y", "z"])
    r, _ = Ragged.from_table(parts, "id")
    assert r[0]["m"].tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert Ragged.from_table({"id": ["a", 1, "a"], "x": [1, 2, 3]}, "id")[1].tolist() == ["a", 1]


@pytest.mark.parametrize(
    "times",
    [
        ["10", "9", "11"],
        pd.to_datetime(["2024-03-01 10:00", "2024-03-01 09:00", "2024-03-02 00:00"]),
        pd.to_datetime(["2024-03-01 10:00", "2024-03-01 09:00", "2024-03-02 00:00"]).tz_localize("Europe/Berlin"),
        ["2024-10-01", "2024-09-30", "2024-10-02"],
        [datetime(2024, 1, 2), datetime(2024, 1, 1), datetime(2024, 1, 3)],
        [2.5, -1.0, np.inf],
    ],
)
def test_times_are_numbers_or_dates_however_written(times):
    r, _ = Ragged.from_table(pd.DataFrame({"id": [1, 1, 1], "t": times, "x": [1, 2, 3]}), "id", "t")
    assert r[0].tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("change", "asked", "told"),
    [
        ({"t": [1, None, 3]}, {}, "time 't': every row needs one, got none at row 1"),
        ({"t": [1, np.nan, 3]}, {}, "none at row 1"),
        ({"t": ["1", "2", "soon"]}, {}, "'soon' at row 2"),
        ({"t": ["2024-01-01", "later", "2024-01-02"]}, {}, "'later' at row 1"),
        ({"id": ["a", None, "b"]}, {}, "id 'id': every row needs one, got none at row 1"),
        ({}, {"id": "who"}, "id: there must be a column 'who'.*'id', 't', 'x'"),
        ({}, {"time": "when"}, "time: there must be a column 'when'"),
        ({}, {"columns": ["x", "z"]}, "columns: there must be a column 'z'"),
        ({}, {"columns": []}, "at least one column"),
        ({"x": [1, 2]}, {}, "same number of rows"),
        ({"id": [], "t": [], "x": []}, {}, "one entry per row"),
        ({"id": np.zeros((3, 2))}, {}, r"shape \(3, 2\)"),
        ({"id": pd.Series([1, [2], 3])}, {}, "list at row 1"),
    ],
)
def test_long_tables_that_cannot_be_cut(change, asked, told):
    table = {"id": [1, 1, 2], "t": [1, 2, 3], "x": [1.0, 2.0, 3.0]} | change
    with pytest.raises(LikelyError, match=told):
        Ragged.from_table(table, **({"id": "id", "time": "t"} | asked))


def test_names_of_columns_must_differ():
    with pytest.raises(DataError, match="column names must be unique"):
        Ragged.from_table(pd.DataFrame([[1, 2, 3]], columns=["id", "x", "x"]), "id")


def test_nullable_columns_of_every_kind():
    frame = pl.DataFrame(
        {"id": pl.Series(["a", "b"], dtype=pl.Categorical), "x": [Decimal("1.5"), None], "b": [None, True]}
    )
    r, ids = Ragged.from_table(frame, "id")
    assert ids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(r.values, [[1.5, np.nan], [np.nan, 1.0]])
    frame = pd.DataFrame({"id": pd.Categorical(["a", "b"]), "x": pd.array([1, None], dtype="Int64")})
    np.testing.assert_array_equal(Ragged.from_table(frame, "id")[0].values, [1.0, np.nan])


def test_a_vector_is_no_long_table():
    with pytest.raises(ShapeError, match="a table is needed"):
        Ragged.from_table([1, 2, 3], 0)
