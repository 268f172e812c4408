"""Files of every format give the same table, and a bad one is told apart in a sentence."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import threading
import warnings

import numpy as np
import polars as pl
import pytest

from likely.core.errors import DataError, DomainError, FitWarning, LikelyError
from likely.data.cells import MISSING
from likely.data.csv_reader import looks_like_data, sniffed
from likely.data.read_table import read_table, stem
from likely.data.table import Table

ROWS = [("1.5", "red"), ("2", None), (None, "blue, dark")]
CSV = 'size,color\n1.5,red\n2,\nNA,"blue, dark"\n'


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.fixture
def stdin(monkeypatch):
    def fed(content):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return fed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("comma.csv", CSV),
        ("semicolon.csv", "size;color\n1.5;red\n2;\n?;blue, dark\n"),
        ("tab.tsv", "size\tcolor\n1.5\tred\n2\t\nnan\tblue, dark\n"),
        ("tab.csv", "size\tcolor\n1.5\tred\n2\t\nnan\tblue, dark\n"),
        ("bar.txt", "size|color\n1.5|red\n2|-\n|blue, dark\n"),
        ("bom.csv", "\ufeff" + CSV),
        ("crlf.csv", CSV.replace("\n", "\r\n")),
        ("no_last_newline.csv", CSV.rstrip("\n")),
        ("blanks.csv", 'size , color\n 1.5,red \n2 , N/A\n  , "blue, dark"\n'),
        ("blank_lines.csv", CSV.replace("\n", "\n\n")),
        ("leading_blank_lines.csv", "\n  \n" + CSV),
        ("blank_looking_lines.csv", CSV.replace("\n", "\n   \n")),
        ("quoted.csv", '"size","color"\n"1.5","red"\n"2",""\n"","blue, dark"\n'),
    ],
)
def test_spellings_of_one_table(write, name, text):
    frame = read_table(write(name, text))
    assert frame.columns == ["size", "color"] and frame.rows() == ROWS


def test_packed_files(write):
    assert read_table(write("a.csv.gz", gzip.compress(CSV.encode()))).rows() == ROWS
    lines = b'{"size": 1.5, "color": "red"}\n{"size": 2}\n'
    assert read_table(write("a.jsonl.gz", gzip.compress(lines))).rows() == [(1.5, "red"), (2.0, None)]
    array = gzip.compress(b'[{"size": 1}]')
    assert read_table(write("a.json.gz", array)).rows() == [(1,)]


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the zstd program")
def test_zstandard(write, tmp_path):
    subprocess.run(["zstd", "-q", str(write("a.csv", CSV))], check=True)
    assert read_table(tmp_path / "a.csv.zst").rows() == ROWS


def test_parquet_keeps_its_types(tmp_path):
    frame = pl.DataFrame({"x": [1, 2], "f": [0.5, float("nan")], "c": ["a", " NA "], "b": [True, None]})
    frame.write_parquet(tmp_path / "t.parquet")
    got = read_table(tmp_path / "t.parquet")
    assert got.schema["x"] == pl.Int64 and got.rows() == [(1, 0.5, "a", True), (2, None, None, None)]


def test_json_lines_and_arrays_agree(write):
    records = [{"a": 1, "b": "x"}, {"a": 2.5, "c": True}, {"b": "?"}]
    lines = "\n\n".join(json.dumps(record) for record in records)
    expected = [(1.0, "x", None), (2.5, None, True), (None, None, None)]
    assert read_table(write("t.jsonl", lines)).rows() == expected
    assert read_table(write("t.ndjson", lines)).rows() == expected
    assert read_table(write("t.json", json.dumps(records))).rows() == expected


def test_json_with_what_only_python_reads(write):
    with pytest.warns(
        FitWarning, match='column "b": it mixes nested values, numbers and strings: all are read as strings'
    ):
        frame = read_table(write("t.jsonl", '{"a": NaN, "b": 1}\n{"a": 2, "b": "x"}\n{"a": null, "b": [1]}\n'))
    assert frame["a"].to_list() == [None, 2.0, None] and frame["b"].to_list() == ["1", "x", "[1]"]


@pytest.mark.parametrize("odd", ["{}", "7", "1.0", "true"])
def test_one_odd_label_renames_no_other(write, odd):
    lines = f'{{"a": 1, "y": "p"}}\n{{"a": 2, "y": "q"}}\n{{"a": 3, "y": {odd}}}\n'
    with pytest.warns(FitWarning, match=r'column "y": it mixes .* and .*: all are read as strings'):
        assert read_table(write("t.jsonl", lines))["y"].to_list() == ["p", "q", odd]
    plain = '{"a": 1, "y": "p"}\n{"a": 2, "y": "7"}\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(write("t.jsonl", plain))["y"].to_list() == ["p", "7"]


@pytest.mark.parametrize("digits", [400, 5000])
def test_json_numbers_of_any_length_keep_their_digits(write, digits):
    one, two = "9" * digits, "8" * digits
    records = [f'{{"a": {number}}}' for number in (one, two)]
    for name, text in (("t.jsonl", "\n".join(records)), ("t.json", f"[{','.join(records)}]")):
        assert read_table(write(name, text))["a"].to_list() == [one, two]


def test_json_integers_beyond_64_bits(write):
    path = write("t.jsonl", f'{{"a": {2**63}, "b": {10**40}}}\n{{"a": 1, "b": 2}}\n{{"a": 3, "b": 5}}\n')
    table = Table.of(read_table(path), kinds={"a": "real", "b": "real"})
    assert table.frame["a"].to_list() == [2.0**63, 1, 3] and table.frame["b"].to_list() == [1e40, 2, 5]


def test_a_first_column_without_a_name_is_an_index(write):
    rows = "".join(f"{7 * i % 100},{i / 8},{'ab'[i % 2]}\n" for i in range(20))
    for head in (",x,y\n", '"",x,y\n'):
        frame = read_table(write("t.csv", head + rows))
        assert frame.columns == ["Unnamed: 0", "x", "y"] and frame.height == 20
        table = Table.of(frame, target="y")
        assert [c.name for c in table.used] == ["x"] and "has no name" in table.excluded["Unnamed: 0"]
    assert Table.of(frame, target="y", kinds={"Unnamed: 0": "real"}).frame.columns == ["Unnamed: 0", "x"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (CSV.encode(), ROWS),
        (b"size\tcolor\n1.5\tred\n", [("1.5", "red")]),
        (b' {"size": 1.5, "color": "red"}\n', [(1.5, "red")]),
        (b'[{"size": 1.5, "color": "red"}]', [(1.5, "red")]),
        (gzip.compress(CSV.encode(), mtime=0), ROWS),  # or the clock would stand in the name of the test
    ],
)
def test_standard_input_is_sniffed(stdin, content, expected):
    stdin(content)
    assert read_table("-").rows() == expected


def test_own_words_for_missing(write):
    path = write("t.csv", "x,y\n-999,a\n1,unknown\n")
    assert read_table(path, missing=["-999", "unknown"]).rows() == [(None, "a"), ("1", None)]
    assert read_table(path, missing="unknown").rows() == [("-999", "a"), ("1", None)]


def test_files_are_stacked_in_order_of_name(write, tmp_path):
    write("part-2.csv", "b,a\n4,3\n")
    write("part-1.csv", "a,b\n1,2\n")
    assert read_table(tmp_path / "part-*.csv").rows() == [("1", "2"), ("3", "4")]
    assert read_table([tmp_path / "part-2.csv", tmp_path / "part-1.csv"]).rows() == [("4", "3"), ("2", "1")]


def test_stacking_unlike_types_gives_words(write, tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    assert read_table([tmp_path / "t.parquet", write("t.csv", "a\nx\n")])["a"].to_list() == ["1", "x"]


def test_stacking_names_the_columns_that_differ(write):
    with pytest.raises(DataError, match=r'two.csv: columns must be those of .*one.csv, got "b", "c" in one of them'):
        read_table([write("one.csv", "a,b\n1,2\n"), write("two.csv", "a,c\n1,2\n")])


def test_columns_are_chosen(write):
    path = write("t.csv", "*,^x,x\n1,2,3\n")
    assert read_table(path, columns=["x", "*"]).rows() == [("3", "1")]
    with pytest.raises(DataError, match='there must be a column "Y": there are'):
        read_table(path, columns=["Y"])


def test_sql_over_files(write, tmp_path):
    wine = write("wine.csv", "id,size\n1,0.5\n2,?\n3,2.5\n")
    pl.DataFrame({"id": [1, 3], "price": [10, 30]}).write_parquet(tmp_path / "prices.parquet")
    sql = "select size, price from wine join prices using (id) where size > 1"
    assert read_table([wine, tmp_path / "prices.parquet"], sql=sql).rows() == [(2.5, 30)]
    assert read_table(wine, sql="select count(*) as n from data where size is null").rows() == [(1,)]
    assert read_table(wine, sql="select id from wine order by id desc")["id"].to_list() == [3, 2, 1]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("selec x", r"^sql: sql parser error"),
        ("select nothing from t", r"the tables are t \(a\); data \(a\)"),
        ("select * from t where a > 5", "the query must give rows, got none"),
    ],
)
def test_sql_that_fails(write, sql, told):
    with pytest.raises(DataError, match=told):
        read_table(write("t.csv", "a\n1\n"), sql=sql)


def test_sql_tables_of_one_name(write, tmp_path):
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match='table names must be unique, got "t" twice'):
        read_table([write("t.csv", "a\n1\n"), write("other/t.csv", "a\n1\n")], sql="select 1")


TORN = gzip.compress(np.random.default_rng(0).bytes(9999).hex(",").encode())[:500]
BAD = {
    "torn.csv.gz": (TORN, "cannot be read|empty"),
    "pattern.csv": ("a,^x$\n1,2\n", "may not have the form"),
    "empty.csv": ("", "a table with a header is needed, got an empty file"),
    "blank.csv": ("\n \n\n", "got an empty file"),
    "header_only.csv": ("a,b\n", "rows are needed, got a header and nothing below it"),
    "headerless.csv": ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "must be a header.*give it a header"),
    "headerless_whole.csv": ("5,9\n4,3\n", "must be a header"),
    "macintosh.csv": ("a,b\r1,2\r3,4\r", "the header must be a line, got a carriage return in it"),
    "twice.csv": ("a,b,a\n1,2,3\n", 'column names must be unique, got "a" twice'),
    "nameless.csv": ("a,,b,\n1,2,3,4\n", "every column needs a name, got none for column 2, 4"),
    "long_line.csv": ("a,b\n1,2\n3,4,5\n", "line 3 must have 2 fields as the header has, got 3"),
    "short_line.csv": ("a,b,c\n1,2,3\n\n4,5\n6,7,8\n", "line 4 must have 3 fields as the header has, got 2"),
    "short_after_quoted_lines.csv": ('a,b\n"x\ny",2\n3\n', "line 4 must have 2 fields"),
    "unclosed.csv": ('a,b\n1,2\n"3,4\n5,6\n', "line 3 must have 2 fields"),
    "title.csv": ("My table\na,b\n1,2\n", "line 2 must have 1 field as"),
    "latin.csv": ("a,b\n1,x\n2,é\n".encode("latin-1"), "must be UTF-8, line 3 is not: save the file as UTF-8"),
    "sixteen.csv": ("a,b\n1,é\n".encode("utf-16"), "must be UTF-8, line 1 is not"),
    "bad.parquet": (b"PAR1 not really", "the file must be Parquet"),
    "bad.jsonl": ('{"a": 1}\n\n{"a": \n', "line 3 must be JSON"),
    "nested.jsonl": (
        '{"a": 1}\n{"a": ' + "[" * 20_000 + "\n",
        "line 2 must be JSON, got more than 100 levels of nesting",
    ),
    "brackets.jsonl": (
        '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}\n",
        "line 1 must be JSON, got more than 100 levels of nesting",
    ),
    "objects.jsonl": ('{"a": ' * 1000 + "1" + "}" * 1000 + "\n", "line 1 must be JSON, got more than 100 levels"),
    "objects.json": ("[" + '{"a": ' * 1000 + "1" + "}" * 1000 + "]", "must hold JSON, got more than 100 levels"),
    "ragged.csv": ("a,b,c,y,9,9\n1,2,3,4,5,6\n", r"a header, got numbers in it \(9, 9\): give every column a name"),
    "nul.csv": ("a\0b,y\n1,2\n", r"may not have control characters, got 'a\\x00b'"),
    "escape.jsonl": ('{"a\\u001b[31m": 1}\n', r"may not have control characters, got 'a\\x1b"),
    "bare.jsonl": ('{"a": 1}\n7\n', "line 2 must be a record"),
    "none.jsonl": ("", "rows are needed"),
    "bad.json": ('{"a": [1, 2]}', "array of records"),
    "broken.json": ("[{", "the file must hold JSON"),
    "table.xlsx": (b"PK", "the file extension must be one of .*export it as CSV"),
    "table": ("a\n1\n", 'the file extension must be one of .*got none: pass format="csv"'),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(write, name):
    content, told = BAD[name]
    with pytest.raises(DataError, match=told) as caught:
        read_table(write(name, content))
    assert (
        (name in str(caught.value) or "table:" in str(caught.value))
        and str(caught.value).endswith(".")
        and "\n" not in str(caught.value)
    )


def test_no_file_a_folder_and_an_unknown_format(write, tmp_path):
    path = write("wine.csv", "a\n1\n")
    for near in ("wines.csv", "wine.cvs", "Wine.csv"):
        with pytest.raises(DataError, match=r'there is no such file: did you mean ".*wine.csv"\?$'):
            read_table(tmp_path / near)
    write("bin.csv", "a\n1\n")
    with pytest.raises(DataError, match=r"there is no such file\.$"):  # the same ending is no likeness
        read_table(tmp_path / "missing.csv")
    with pytest.raises(DataError, match="there is no such file"):
        read_table(str(tmp_path / "*.tsv"))
    with pytest.raises(DataError, match="a file is needed, got a folder"):
        read_table(tmp_path)
    with pytest.raises(DomainError, match="format must be one of 'csv', 'tsv'"):
        read_table(path, format="excel")
    with pytest.raises(LikelyError, match="a file is needed, got none"):
        read_table([])
    with pytest.raises(DataError, match="a file is needed, got ndarray"):
        read_table(np.zeros((2, 2)))


def test_format_stands_where_the_ending_says_nothing(write):
    assert read_table(write("table", "a;b\n1;2\n"), format="csv").rows() == [("1", "2")]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('a,b\n5" disk,2\n7" disk,3\n', [('5" disk', "2"), ('7" disk', "3")]),
        ('a,b\n"say ""yes""",2\n', [('say "yes"', "2")]),
        ('a,b\n"two\nlines",2\n', [("two\nlines", "2")]),
        ("a\n1\n\n3\n", [("1",), (None,), ("3",)]),
        (" \nname\nx\ny\n", [("x",), ("y",)]),
        ("x\n3,14\n2,71\n", [("3,14",), ("2,71",)]),
        ("a,b\n,\n1,2\n", [(None, None), ("1", "2")]),  # separators make a row, a blank line does not
    ],
)
def test_cells_that_are_easily_misread(write, text, cells):
    assert read_table(write("t.csv", text)).rows() == cells


POOL = ["a", "b c", "", 'q"q', '"', "x,y", "x;y", "two\nlines", " pad ", "NA", "1", "ü", "tab\tin", "|", 'end"', "\n"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_whatever_the_standard_writer_writes_is_read(write, separator, quoting):
    choose = random.Random(4)
    for trial in range(30):
        pool = POOL if trial % 2 else [cell for cell in POOL if '"' not in cell]
        rows = [choose.choices(pool, k=3) for _ in range(choose.choice([1, 7, 150]))]
        text = io.StringIO()
        csv.writer(text, delimiter=separator, quoting=quoting).writerows([["a", "b", "c"], *rows])
        trimmed = [[cell.strip() for cell in row] for row in rows]
        expected = [tuple(None if cell in MISSING else cell for cell in row) for row in trimmed]
        assert read_table(write("t.csv", text.getvalue())).rows() == expected


def test_headers_that_are_data_and_that_are_not():
    assert looks_like_data(["5.1", "setosa"]) and looks_like_data(["0", "0", "x"]) and looks_like_data(["-1", "a"])
    assert not looks_like_data(["0", "1", "2"]) and not looks_like_data(["2019", "2020", "name"])


def test_separator_of_one_column():
    assert sniffed(["x", "1", "2"]) not in ",;\t|" and sniffed(["a,b;c,d", "1,5;2,5"]) in ",;"


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[CSV])
    writer.start()
    assert read_table(pipe).rows() == ROWS
    writer.join()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_brackets_in_a_name_are_no_pattern(tmp_path, ending):
    frame, path = pl.DataFrame({"a": [1]}), tmp_path / f"t[1].{ending}"
    writers = {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "json": frame.write_json}
    with path.open("wb") as file:
        writers.get(ending, frame.write_parquet)(file)
    (tmp_path / f"t1.{ending}").write_text("another")
    assert [str(row[0]) for row in read_table(str(path)).rows()] == ["1"]


def test_stem():
    assert [stem(name) for name in ("a/b.csv", "b.tar.csv.gz", "x.y.parquet", "-")] == ["b", "b.tar", "x.y", "stdin"]


@pytest.mark.slow
def test_a_million_cells_are_read_at_once(write):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({f"x{i}": rng.normal(size=50_000).round(3) for i in range(20)})
    got = read_table(write("big.csv", frame.write_csv()))
    assert got.select(pl.all().cast(pl.Float64)).equals(frame)
