"""A table: measurements by kind, labels, weights, groups, times, and new data in the same form."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import likely as lk
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, FitWarning, ShapeError
from likely.data.dates import instants
from likely.data.table import Table
from likely.data.table_fingerprint import fingerprint
from likely.data.target_labels import labels
from likely.data.type_inference import as_frame, typed

CSV = """id,size,color,n,smokes,class,w,when,who
a1,1.5,red,0,Yes,good,1,2024-01-03,anna
a2,?,blue,3,no,bad,2.5,2024-01-01,anna
a3,-2,green,1,yes,,1,2024-01-02,ben
a4,4.25,,0,No,good,0,2024-02-01,ben
a5,0,red,7,no,bad,1,2024-03-01,carl
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text(CSV)
    return file


@pytest.fixture
def table(path):
    return Table.of(path, target="class", weight="w", group="who", time="when", ignore=["id"])


def test_roles_are_apart_and_unlabeled_rows_are_set_aside(table):
    assert [c.name for c in table.used] == ["size", "color", "n", "smokes"]
    assert table.y.tolist() == ["good", "bad", "good", "bad"] and table.unlabeled == 1
    assert table.row_numbers.tolist() == [1, 2, 4, 5] and len(table) == 4
    assert table.weight.tolist() == [1, 2.5, 0, 1] and table.group.tolist() == ["anna", "anna", "ben", "carl"]
    assert np.argsort(table.time).tolist() == [1, 0, 2, 3] and table.time.dtype == "datetime64[us]"
    assert table.class_counts == {"bad": 2, "good": 2} and table.roles.named()["weight"] == "w"
    assert table.excluded == {"id": "ignore: left out on request"}


def test_columns_know_themselves(table):
    size, color, n, smokes = table.used
    assert (size.kind, size.n_missing, size.range) == ("real", 1, (0.0, pytest.approx(5.75 / 3), 4.25))
    assert (color.kind, color.levels, color.n_missing) == ("category", ("blue", "red"), 1)
    assert (n.kind, n.distinct) == ("count", 3) and (smokes.kind, smokes.levels) == ("binary", ("no", "yes"))


def test_rows_are_columns_of_arrays(table):
    rows = table.rows()
    assert isinstance(rows, Columns) and list(rows) == ["size", "color", "n", "smokes"]
    np.testing.assert_array_equal(rows["size"], [1.5, np.nan, 4.25, 0.0])
    assert rows["color"].dtype == object and rows["color"].tolist() == ["red", "blue", None, "red"]
    assert rows["n"].dtype == np.float64 and rows["smokes"].tolist() == ["yes", "no", "no", "no"]
    assert dict(table.frame.schema) == {
        "size": pl.Float64, "color": pl.String, "n": pl.Int64, "smokes": pl.String,
    }  # fmt: skip


def test_it_tells_itself(table):
    lines = table.describe().splitlines()
    assert lines[0] == "4 rows, 9 columns" and lines[1] == "target: class (bad: 2, good: 2)"
    assert "1 rows without a label" in table.describe() and "id  ignore: left out on request" in lines[-1]
    plain = json.loads(json.dumps(table.as_dict()))
    assert plain["rows"] == 4 and plain["classes"] == {"bad": 2, "good": 2}
    assert plain["columns"][1]["range"] is None or plain["columns"][1]["range"][2] == 4.25


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "dict", "columns"])
def test_frames_of_others(kind):
    columns = {"x": [1.5, None, 2.5], "c": ["a", "b", None], "y": [1, 2, 1]}
    frame = pl.DataFrame(columns)
    given = {
        "polars": frame, "lazy": frame.lazy(), "pandas": pd.DataFrame(columns), "dict": columns,
        "columns": Columns(x=np.array([1.5, np.nan, 2.5]), c=np.array(["a", "b", None], object), y=np.array([1, 2, 1])),
    }[kind]  # fmt: skip
    table = Table.of(given, target="y")
    assert table.y.tolist() == [1, 2, 1] and table.y.dtype == np.int64
    np.testing.assert_array_equal(table.rows()["x"], [1.5, np.nan, 2.5])
    assert table.rows()["c"].tolist() == ["a", "b", None]


def test_pandas_with_its_own_missing_values_and_categories():
    frame = pd.DataFrame(
        {
            "k": pd.array([1, None, 30], dtype="Int64"),
            "c": pd.Categorical(["u", "v", "w"]),
            0: pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
        }
    )
    table = Table.of(frame)
    assert [(c.name, c.kind) for c in table.columns][1:] == [("c", "category"), ("0", "date")]
    assert table.columns[0].n_missing == 1


def test_names_may_be_anything():
    names = ["*", "^x", "a b", "ü.", "{z}", "'"]
    data = {name: [0.5 + i, 1.5, 2.5] for i, name in enumerate(names)} | {"y": ["a", "b", "a"]}
    table = Table.of(pl.DataFrame(data), target="y")
    assert list(table.rows()) == names
    new = Table.like(table.schema(), pl.DataFrame(data).select(pl.nth(range(6, -1, -1))))
    assert new.frame.equals(table.frame)


# ------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["-1.0", "1.0", "-1.0"], [-1.0, 1.0, -1.0]),
        (["+1", "-1", "+1"], ["+1", "-1", "+1"]),
        (["01", "2", "01"], ["01", "2", "01"]),
        (["1", "2", "X"], ["1", "2", "X"]),
        (["007", "008", "007"], ["007", "008", "007"]),
        (["0.5", "1.5", "0.5"], ["0.5", "1.5", "0.5"]),
        ([True, False, True], ["true", "false", "true"]),
        ([1.0, 2.0, 1.0], [1.0, 2.0, 1.0]),
        ([1, 2, 1], [1, 2, 1]),
    ],
)
def test_labels(cells, expected):
    got = Table.of({"x": [0.5, 1.5, 2.5], "y": cells}, target="y").y
    assert list(map(str, got.tolist())) == list(map(str, expected)) and got.dtype.kind in "ifU"


def test_a_number_written_in_several_ways_is_one_class():
    with pytest.warns(FitWarning, match=r'column "y": 1 and 1.0 are the same number, and one label: 1'):
        got = Table.of({"x": [0.5, 1.5, 2.5], "y": ["1", "1.0", "2"]}, target="y").y
    assert got.tolist() == [1, 1, 2] and got.dtype.kind == "i"
    with pytest.warns(FitWarning, match=r"0.5 and 0.50 are the same number, and one label: 0.5"):
        assert Table.of({"x": [0.5, 1.5, 2.5], "y": ["0.5", "0.50", "2"]}, target="y").y.tolist() == [
            "0.5",
            "0.5",
            "2.0",
        ]
    with pytest.raises(DataError, match="two classes or more are needed"):
        Table.of({"x": [0.5, 1.5, 2.5], "y": ["1", "1.0", "1"]}, target="y")


def test_labels_are_spelled_as_the_classes_that_were_learned():
    column = pl.Series("y", ["1", "2", "1"])
    assert labels(column, classes=["1", "2", "X"]).tolist() == ["1", "2", "1"]
    assert labels(column, classes=np.array([1, 2])).tolist() == [1, 2, 1]
    assert labels(pl.Series("y", [0.5, 1.0]), classes=["0.5", "1"]).tolist() == ["0.5", "1"]
    assert labels(pl.Series("y", ["new"]), classes=["a", "b"]).tolist() == ["new"]
    for spelled in (["1", "-1"], ["1.0", "-1.0"], [1, -1], [1.0, -1.0]):
        assert str(labels(pl.Series("y", spelled), classes=[-1.0, 1.0]).tolist()) == "[1.0, -1.0]"
        assert str(labels(pl.Series("y", spelled), classes=[-1, 1]).tolist()) == "[1, -1]"
    assert labels(pl.Series("y", ["1", "7"]), classes=[-1.0, 1.0]).tolist() == [1.0, "7"]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([None, "NA", "?"] * 10, "labels are needed, got none: every cell is missing"),
        (["a", "a", None] * 10, 'two classes or more are needed, got one, "a"'),
        (np.linspace(0, 1, 30), "looks like a regression target, got 30 different values in 30 rows"),
        (np.arange(30), "looks like a regression target"),
        ([f"name {i}" for i in range(30)], "looks like an identifier or text"),
        (np.repeat(np.arange(0, 12.5, 0.5), 2)[:48].tolist() + [1.0] * 2, "looks like a regression target"),
    ],
)
def test_targets_that_cannot_be_learned(cells, told):
    x = np.random.default_rng(0).normal(size=len(cells))
    with pytest.raises(DataError, match=f'target "y": .*{told}'):
        Table.of({"x": x, "y": cells}, target="y")


def test_many_classes_are_learned_if_the_user_insists():
    data = {"x": np.linspace(0, 1, 600), "y": np.repeat(np.arange(300), 2)}
    with pytest.raises(DataError, match=r'set its type with kinds={"y": "category"}'):
        Table.of(data, target="y")
    assert len(Table.of(data, target="y", kinds={"y": "category"}).class_counts) == 300


def test_a_target_that_is_not_there(path):
    with pytest.raises(DataError, match=r'^target: there must be a column "Clas": did you mean "class"'):
        Table.of(path, target="Clas")
    with pytest.raises(DataError, match=r'there must be a column "zzz": there are "id", "size"'):
        Table.of(path, target="zzz")
    with pytest.raises(DataError, match=r'^weight: column "w" is the target already'):
        Table.of(path, target="w", weight="w")


# -------------------------------------------------------------------- other roles


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["1", "-2", "1"], 'row 2, column "w": a weight must be a finite number, not negative, got "-2"'),
        (["1", "1", "inf"], 'row 3, column "w": .* got "inf"'),
        (["1", "heavy", "1"], 'row 2, column "w": .* got "heavy"'),
        (["1", None, "1"], 'row 2, column "w": every row needs a weight'),
        (["0", "0", "0"], 'weight "w": some weight must be above zero'),
        ([None, "red", "blue"], 'weight "w": weights are numbers, got text such as "red"'),
    ],
)
def test_weights_that_are_none(cells, told):
    with pytest.raises(DataError, match=told):
        Table.of({"x": [0.5, 1.5, 2.5], "w": cells}, weight="w")


def test_groups_and_times_must_be_complete():
    with pytest.raises(DataError, match='row 2, column "g": every row needs a group'):
        Table.of({"x": [0.5, 1.5, 2.5], "g": ["a", None, "b"]}, group="g")
    with pytest.raises(DataError, match='row 3, column "t": every row needs a time'):
        Table.of({"x": [0.5, 1.5, 2.5], "t": ["2024-01-01", "2024-01-02", None]}, time="t")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2024-12-31", "2024-1-2"], ["2024-12-31", "2024-01-02"]),
        (["31/12/2024", "01/02/2024"], ["2024-12-31", "2024-02-01"]),
        (["12/31/2024", "01/02/2024"], ["2024-12-31", "2024-01-02"]),
        (["31.12.24", "1.2.24"], ["2024-12-31", "2024-02-01"]),
        (["31 Dec 2024", "1 Feb 2024"], ["2024-12-31", "2024-02-01"]),
        (["March 5, 2023", "May 10, 2024"], ["2023-03-05", "2024-05-10"]),
        (["2024-12", "2024-01"], ["2024-12-01", "2024-01-01"]),
        (["20241231", "20240201", "20240301"], ["2024-12-31", "2024-02-01", "2024-03-01"]),
        (["2024-12-31T10:30:00", "2024-01-02 08:00"], ["2024-12-31T10:30", "2024-01-02T08:00"]),
        (["2024-12-31T10:30:00Z", "2024-01-02T08:00:00+02:00"], ["2024-12-31T10:30", "2024-01-02T06:00"]),
        (["2024-12-31", "2024-01-02T08:00:00.5"], ["2024-12-31", "2024-01-02T08:00:00.5"]),
    ],
)
def test_dates_are_read(cells, expected):
    np.testing.assert_array_equal(instants(pl.Series("t", cells)), np.array(expected, "datetime64[us]"))


def test_times_that_are_no_dates():
    assert instants(pl.Series("t", ["12:30:00", "0:01", "1:00"])).tolist() == [45000, 60, 3600]
    assert instants(pl.Series("t", ["11:00 pm", "1:00 AM"])).tolist() == [23 * 3600, 3600]
    assert instants(pl.Series("t", ["3", "1.5"])).tolist() == [3, 1.5]
    with pytest.raises(DataError, match='row 2, column "t": "soon" is not a number'):
        instants(pl.Series("t", ["3", "soon"]))
    with pytest.raises(DataError, match='row 1, column "t": "31/02/2024" is not a date that can be read'):
        instants(pl.Series("t", ["31/02/2024", "1/1/2024"]))


# ------------------------------------------------------------------- kinds on demand


def test_the_user_has_the_last_word(path):
    kinds = {"n": "category", "size": "real", "color": "ignore", "id": "category"}
    table = Table.of(path, target="class", kinds=kinds, ignore=["when", "who", "w"])
    assert [c.kind for c in table.used] == ["category", "real", "category", "binary"]
    assert table.rows()["n"].tolist() == ["0", "3", "0", "7"] and "color" in table.excluded


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (
            {"color": "real"},
            'row 1, column "color": "red" is not a number. Use None in its place, or kinds={"color": "cat',
        ),
        ({"size": "count"}, 'row 1, column "size": "1.5" is not a count. Use .*kinds={"size": "real"}'),
        ({"sise": "real"}, 'kinds: there must be a column "sise": did you mean "size"'),
    ],
)
def test_wishes_that_cannot_be(path, kinds, told):
    with pytest.raises(DataError, match=told):
        Table.of(path, kinds=kinds)


def test_unknown_wishes_and_names(path):
    with pytest.raises(DomainError, match='column "size" can be one of real, count, binary, category, ignore'):
        Table.of(path, kinds={"size": "float"})
    with pytest.raises(DataError, match='there must be a column "nothing"'):
        Table.of(path, ignore=["nothing"])


def test_numbers_that_stand_for_missing():
    data = {"x": ["1.5", "-999", "-999.0", "2"], "k": [1, -999, 3, 4]}
    table = Table.of(data, missing="-999")
    assert [c.n_missing for c in table.columns] == [2, 1]


def test_rows_in_messages_are_those_of_the_file():
    data = {"x": [*map(str, range(9)), "oops"], "y": [None, None, None, *"abababa"]}
    with pytest.raises(DataError, match='row 10, column "x": "oops"'):
        Table.of(data, target="y")


def test_what_is_constant_where_labeled_is_set_aside():
    table = Table.of({"x": [1.5, 2, 3], "c": ["u", "u", "v"], "e": [None, None, 1], "y": ["a", "b", None]}, target="y")
    assert table.excluded == {"c": "constant: every value is u", "e": "empty: no cell has a value"}


def test_no_measurement_at_all():
    told = r'^Table: at least one column must be a measurement, got none: "k" is excluded \(every value is 1\)'
    with pytest.raises(DataError, match=told):
        Table.of({"k": [1, 1]})
    with pytest.raises(DataError, match="rows are needed, got 0 rows of 1 columns"):
        Table.of(pl.DataFrame({"x": []}))


def test_typed_gives_numbers_and_words():
    cells = {"x": ["1", " 2.5 "], "k": ["7", None], "c": ["u", "NA"], "d": ["a", "b"]}
    frame = typed(pl.DataFrame(cells), {"d": "ignore"})
    assert dict(frame.schema) == {"x": pl.Float64, "k": pl.Int64, "c": pl.String}
    assert frame.rows() == [(1.0, 7, "u"), (2.5, None, None)]


# ----------------------------------------------------------------------- new data


def test_new_data_take_the_learned_form(table):
    schema = json.loads(json.dumps(table.schema()))
    assert schema["size"] == {"kind": "real"} and schema["smokes"] == {"kind": "binary", "levels": ["no", "yes"]}
    new = Table.like(schema, {"n": ["2.5"], "smokes": ["YES"], "extra": [1], "color": ["mauve"], "size": [None]})
    assert new.frame.columns == ["size", "color", "n", "smokes"] and new.y is None
    assert [column[0] for column in new.rows().values()][1:] == ["mauve", 2.5, "yes"]
    assert np.isnan(new.rows()["size"][0])


def test_the_same_file_gives_the_same_rows(path, table):
    again = Table.like(table.schema(), path, target="class", weight="w")
    assert again.frame.equals(table.frame) and again.y.tolist() == table.y.tolist()
    assert again.unlabeled == 1 and again.weight.tolist() == table.weight.tolist()
    everything = Table.like(table.schema(), path)
    assert len(everything) == 5 and everything.y is None


def test_new_data_may_lack_the_target_but_not_a_column(table):
    data = {"size": [1], "color": ["red"], "smokes": ["no"]}
    told = '^Table: the model needs column "n": .*; add it, with None where a value is not known'
    with pytest.raises(DataError, match=told):
        Table.like(table.schema(), data, target="class")
    new = Table.like(table.schema(), data, target="class", allow_missing=True)
    assert np.isnan(new.rows()["n"]).all() and new.y is None


def test_messages_name_the_file_or_who_was_called(table, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("size,color\n1,red\n")
    told = 'new.csv: the model needs columns "n" and "smokes": .*; add them, with None'
    with pytest.raises(DataError, match=told):
        Table.like({"n": {"kind": "real"}, "smokes": {"kind": "real"}}, path)
    with pytest.raises(DataError, match=r"^Watch: a table is needed, got int: pass a data frame"):
        Table.of(5, whose="Watch")
    with pytest.raises(ShapeError, match=r"^Watch: columns must have the same number of rows"):
        Table.of({"x": [1.5, 2.5], "y": ["a"]}, whose="Watch")


@pytest.mark.parametrize("digits", [20, 300])
def test_long_numbers_that_differ_are_not_called_constant(digits):
    cells = [str(10**digits + i) for i in range(12)]
    found = Table.of({"key": cells, "x": np.arange(12) / 7}).excluded["key"]
    assert found == "identifier: values differ only in digits beyond float precision"
    same = Table.of({"key": [cells[0]] * 12, "x": np.arange(12) / 7}).excluded["key"]
    assert same.startswith("constant: every value is 1e+")


def test_a_column_without_finite_numbers_may_be_left_out():
    with pytest.raises(DataError, match=r'is not a finite number. .*leave the column out with kinds={"x": "ignore"}'):
        Table.of({"x": ["1" + "0" * 400] * 12, "z": np.arange(12) / 7})


def test_new_cells_that_are_no_numbers(table):
    data = {"size": ["1", "2", "big"], "color": ["red"] * 3, "smokes": ["no"] * 3, "n": [1, 2, 3]}
    with pytest.raises(DataError, match=r'row 3, column "size": "big" is not a number. Use None in its place'):
        Table.like(table.schema(), data)
    assert np.isnan(Table.like(table.schema(), data, missing="big").rows()["size"][2])
    data["size"] = ["1", "inf", "3"]
    with pytest.raises(DataError, match='row 2, column "size": "inf" is not a finite number'):
        Table.like(table.schema(), data)


def test_levels_of_numbers_are_spelled_alike():
    table = Table.of({"k": ["0", "1", "0"], "x": [0.5, 1.5, 2.5]})
    for cells in (["1.0", "0"], [1.0, 0.0], [1, 0], [True, False]):
        assert Table.like(table.schema(), {"k": cells, "x": [1, 2]}).rows()["k"].tolist() == ["1", "0"]


def test_schemas_that_are_none():
    with pytest.raises(DomainError, match="a schema gives each column a kind"):
        Table.like({"x": {"kind": "text"}}, {"x": [1]})


def test_nested_values_are_words():
    frame = pl.DataFrame({"k": [[1, 2], [3], [1, 2]], "s": [{"a": 1}, {"a": 2}, None], "x": [0.5, 1.5, 2.5]})
    table = Table.of(frame)
    assert table.rows()["k"].tolist() == ["[1, 2]", "[3]", "[1, 2]"]
    assert Table.like(table.schema(), frame).frame.equals(table.frame)


def test_columns_of_unlike_length():
    with pytest.raises(ShapeError, match="columns must have the same number of rows"):
        Table.of({"x": [1.5, 2.5], "y": ["a"]})


# --------------------------------------------------------------------- fingerprints


def test_fingerprints_see_every_change():
    frame = pl.DataFrame({"x": [1.0, None], "c": ["ab", "c"]})
    others = [
        pl.DataFrame({"x": [1.0, 0.0], "c": ["ab", "c"]}),
        pl.DataFrame({"x": [1.0, None], "c": ["a", "bc"]}),
        pl.DataFrame({"x": [1.0, None], "c": ["ab", None]}),
        pl.DataFrame({"z": [1.0, None], "c": ["ab", "c"]}),
        pl.DataFrame({"c": ["ab", "c"], "x": [1.0, None]}),
        frame.reverse(),
    ]
    assert len({fingerprint(one) for one in [frame, *others]}) == 7
    assert fingerprint(frame) == fingerprint(frame.clone()) == "06a3021b10f42e16"  # kept, so that cards stay comparable


def test_fingerprint_of_a_table_includes_its_labels():
    x = {"x": [0.5, 1.5, 2.5]}
    prints = {Table.of(x | {"y": y}, target="y").fingerprint for y in (["a", "b", "a"], ["a", "b", "b"])}
    assert len(prints) == 2 and Table.of(x).fingerprint not in prints


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([10**40, 10**19, None, 3], [1e40, 1e19, None, 3]),
        ([3, 4, None, -(10**40)], [3, 4, None, -1e40]),
        ([3, 4, None, 10**25], [3, 4, None, 1e25]),
        ([10**40, 2.5, float("nan"), 1], [1e40, 2.5, None, 1]),
        ([np.int64(3), np.float32(2.5), None, 1], [3, 2.5, None, 1]),
        ([Decimal("1e40"), 3, Decimal("NaN"), Decimal("1.5")], [1e40, 3, None, 1.5]),
        ([Decimal("1.5"), 10**40, Decimal("sNaN"), 2], [1.5, 1e40, None, 2]),
        ([Fraction(1, 4), 10**40, None, 2], [0.25, 1e40, None, 2]),
        ([np.longdouble(1.5), 10**40, None, np.longdouble(2)], [1.5, 1e40, None, 2]),
        (["3", 10**40, None, "1"], [3, 1e40, None, 1]),
        ([True, 10**40, None, 2], [1, 1e40, None, 2]),
    ],
)
def test_numbers_of_any_type_and_size_are_read_as_they_are(cells, expected):
    """Polars makes what its type has no room for null."""
    objects = np.array(cells, dtype=object)
    own = pl.DataFrame([pl.Series("a", cells, dtype=pl.Object)])
    for source in ({"a": cells}, {"a": objects}, pd.DataFrame({"a": pd.Series(cells, dtype=object)}), own):
        assert typed(as_frame(source), {"a": "real"})["a"].to_list() == expected


@pytest.mark.parametrize("cell", [10**400, Fraction(-(10**400)), Decimal("1e400")])
def test_numbers_beyond_floats_are_refused(cell):
    for cells in ([1, 2, cell], [1.5, 2, cell]):
        with pytest.raises(lk.DataError, match='row 3, column "a": the number is beyond the range of floats'):
            as_frame({"a": cells})


def test_cells_that_have_no_type_in_common_are_words():
    cells = [3, pd.Timestamp("2024-01-31"), None]
    for mixed in (cells, cells[::-1]):
        assert as_frame({"a": mixed})["a"].null_count() == 1


def test_huge_integers_are_no_missing_values_to_a_table_model():
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    frame = pd.DataFrame({"a": rng.normal(size=60) + 3 * y, "b": rng.normal(size=60)})
    model = lk.TableClassifier().fit(frame, y)
    new = pd.DataFrame({"a": pd.Series([10**40, 3], dtype=object), "b": [0.0, 0.0]})
    np.testing.assert_allclose(model.predict_proba(new), model.predict_proba(new.astype(float)))
    levels = [10**40 + int(v) * 10**37 for v in (10 * rng.normal(size=60) + 50 * y).round()]
    learned = lk.TableClassifier().fit(frame.assign(a=pd.Series(levels, dtype=object)), y)
    assert learned.score(frame.assign(a=pd.Series(levels, dtype=object)), y) > 0.9


def test_long_codes_stay_different_labels():
    long = [str(2**64 + i) for i in range(3)]
    column = pl.Series("y", long[:2] * 10)
    assert labels(column).tolist() == long[:2] * 10  # equal as floats
    assert labels(pl.Series("y", long), classes=long[:2]).tolist() == long
    table = Table.of({"x": np.random.default_rng(0).normal(size=20), "y": long[:2] * 10}, target="y")
    assert list(table.class_counts) == long[:2]
