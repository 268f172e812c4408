"""Sequences out of files: long tables, folders, symbols, letters."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely import DataError, DomainError, Ragged
from likely.data.read_sequences import Sequences, columns_of, read_sequences

DATA = Path(os.environ.get("LIKELY_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

LONG = pl.DataFrame(
    {
        "who": ["ann", "bob", "ann", "bob", "ann"],
        "t": [3, 1, 1, 2, 1],
        "x": [1.0, 2.0, 3.0, None, 5.0],
        "y": [1, 2, 3, 4, 5],
        "class": ["f", "m", "f", None, "f"],
        "w": [2.0, 0.5, 2.0, 0.5, 2.0],
        "state": ["up", None, "down", "up", "up"],
    }
)
ROLES = {"id": "who", "time": "t", "label": "class", "weight": "w", "states": "state"}


@pytest.fixture
def write(tmp_path):
    def writer(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writer


def same(sequences, expected):
    assert len(sequences) == len(expected)
    for a, b in zip(sequences, expected, strict=True):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------- long tables


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "csv.gz"])
def test_a_long_table_of_any_format(tmp_path, ending):
    path = tmp_path / f"walks.{ending}"
    if ending == "parquet":
        LONG.write_parquet(path)
    elif ending == "jsonl":
        LONG.write_ndjson(path)
    else:
        text = LONG.write_csv(separator="\t" if ending == "tsv" else ",").encode()
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    found = read_sequences(path, **ROLES)
    assert isinstance(found, Sequences) and len(found) == 2 and found.columns == ("x", "y")
    assert found.ids.tolist() == ["ann", "bob"] and found.labels.tolist() == ["f", "m"]
    assert found.weight.tolist() == [2.0, 0.5]
    same(found.x, [[[3.0, 3.0], [5.0, 5.0], [1.0, 1.0]], [[2.0, 2.0], [np.nan, 4.0]]])
    assert isinstance(found.states, Ragged) and [s.tolist() for s in found.states] == [
        ["down", "up", "up"],
        [None, "up"],
    ]
    assert repr(found) == "Sequences(Ragged(2 sequences of 2 to 3 frames, each 2 × float64), labels, weight, states)"


def test_columns_are_chosen_and_words_stay_words(write):
    path = write("t.csv", "id,size,color\n1,1.5,red\n2,2,NA\n1,?,blue\n")
    one = read_sequences(path, id="id", columns="size")
    assert one.columns == ("size",) and one.ids.tolist() == [1, 2]
    same(one.x, [[1.5, np.nan], [2.0]])
    words = read_sequences(path, id="id", columns=["color"])
    assert [s.tolist() for s in words.x] == [["red", "blue"], [None]]
    both = read_sequences(path, id="id")
    assert both.x[0]["color"].tolist() == ["red", "blue"] and both.labels is both.weight is both.states is None


def test_states_of_numbers_and_labels_that_are_missing(write):
    path = write("t.csv", "id,x,s,c\na,1,0,7\na,2,,\nb,3,1,\n")
    found = read_sequences(path, id="id", states="s", label="c")
    same(found.states, [[0.0, np.nan], [1.0]])
    np.testing.assert_array_equal(found.labels, [7.0, np.nan])
    whole = read_sequences(write("u.csv", "id,x,s\na,1,0\na,2,3\n"), id="id", states="s")
    assert whole.states.dtype == np.int64


def test_dates_order_frames_and_are_none_themselves(write):
    path = write("t.csv", "id,day,x\na,02/03/2024,1\na,31/01/2024,2\na,1/3/2024,3\n")
    assert read_sequences(path, id="id", time="day").x[0].tolist() == [2.0, 3.0, 1.0]
    with pytest.raises(DataError, match=r'column "day": frames hold .* dates such as .* name it as time'):
        read_sequences(path, id="id")


@pytest.mark.parametrize(
    ("text", "asked", "told"),
    [
        ("id,t,x\na,1,1\na,,2\n", {"time": "t"}, 'row 2, column "t": every row needs a time'),
        ("id,t,x\na,1,1\na,soon,2\n", {"time": "t"}, 'row 2, column "t": "soon" is not a number'),
        ("id,t,x\na,2024-01-01,1\na,2024-15-40,2\n", {"time": "t"}, 'row 2, column "t"|not a number'),
        ("id,x\na,1\n,2\n", {}, 'row 2, column "id": every row needs an id'),
        ("id,c,x\na,u,1\nb,u,1\na,v,2\n", {"label": "c"}, 'row 3, column "c": .*"v" and "u": name it states'),
        ("id,w,x\na,1,1\na,2,1\n", {"weight": "w"}, 'row 2, column "w": must be the same'),
        ("id,w,x\na,-1,1\n", {"weight": "w"}, "not negative"),
        ("id,x\na,1\n", {"time": "when"}, 'time: there must be a column "when"'),
        ("id,x\na,1\n", {"columns": ["xx"]}, 'columns: there must be a column "xx": did you mean "x"'),
        ("id,x\na,1\n", {"time": "id"}, 'time: column "id" is the id already'),
        ("id\na\n", {}, "at least one column"),
    ],
)
def test_what_is_wrong_with_a_long_table_is_reported(write, text, asked, told):
    with pytest.raises(DataError, match=told):
        read_sequences(write("t.csv", text), id="id", **asked)


def test_an_index_without_a_name_is_left_out(write):
    path = write("t.csv", ",who,x\n7,a,1\n3,a,2\n9,b,3\n")
    with pytest.warns(UserWarning, match="the first column has no name"):
        found = read_sequences(path, id="who")
    assert [rows.tolist() for rows in found.x] == [[1.0, 2.0], [3.0]]


def test_a_table_without_id_is_one_sequence(write):
    found = read_sequences(write("well.csv", "t,x\n2,1\n1,2\n"), time="t")
    assert found.ids.tolist() == ["well"] and found.labels is None
    same(found.x, [[2.0, 1.0]])


def test_an_id_of_two_files_is_two_sequences(write):
    write("part1.csv", "id,x\na,1\nb,2\n")
    pattern = write("part2.csv", "id,x,more\nb,3,9\n").parent / "part*.csv"
    for path in (pattern, pattern.parent):
        found = read_sequences(path, id="id", columns=["x"])  # other columns may differ
        same(found.x, [[1.0], [2.0], [3.0]])
        assert found.ids.tolist() == ["part1:a", "part1:b", "part2:b"]


def test_ids_that_differ_keep_their_names(write):
    write("part1.csv", "id,x\na,1\nb,2\n")
    found = read_sequences(write("part2.csv", "id,x\nc,3\nc,4\n").parent, id="id")
    assert found.ids.tolist() == ["a", "b", "c"]
    same(found.x, [[1.0], [2.0], [3.0, 4.0]])


def test_files_of_one_name_are_distinguished(write, tmp_path):
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "x.csv").write_text("v\n1\n")
    found = read_sequences([tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv"])
    assert len(set(found.ids.tolist())) == 2


def test_times_come_back_as_written_in_their_order(write):
    found = read_sequences(write("w.csv", "t,x\n2024-01-02,1\n2024-01-01,2\n"), time="t")
    assert found.time.values.tolist() == ["2024-01-01", "2024-01-02"]


def test_columns_of_reads_the_header_alone(write):
    assert columns_of(write("w.csv", 'width;"a;b"\n1;2\n')) == ["width", "a;b"]
    assert columns_of(write("s.txt", "a b c\n"), is_table=False) is None
    assert columns_of(write("e.csv", "")) is None


# ------------------------------------------------------------------------ folders


def test_files_in_sub_folders_are_labeled_by_them(write, tmp_path):
    write("speech/one/a.csv", "x,y\n1,2\n3,4\n")
    write("speech/two/a.csv", "y,x\n6,5\n")
    write("speech/.hidden/z.csv", "no\n")
    write("speech/README.md", "notes")
    found = read_sequences(tmp_path / "speech")
    assert found.ids.tolist() == ["one/a", "two/a"] and found.labels.tolist() == ["one", "two"]
    assert found.columns == ("x", "y")
    same(found.x, [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]])
    write("speech/c.csv", "x,y\n7,8\n")
    assert read_sequences(tmp_path / "speech").labels.tolist() == [None, "one", "two"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "npy"])
def test_a_flat_folder_of_numbers(write, tmp_path, ending):
    rng = np.random.default_rng(5)
    parts = [rng.normal(size=(n, 3)).round(3) for n in (4, 1, 6)]
    for i, part in enumerate(parts):
        rows = [("\t" if ending == "tsv" else ",").join(map(str, row)) for row in part]
        write(f"f/s{i}.{ending}", part if ending == "npy" else "\n".join(rows) + "\n")  # without a header
    found = read_sequences(tmp_path / "f")
    same(found.x, parts)
    assert found.labels is None and found.ids.tolist() == ["s0", "s1", "s2"] and found.columns == ("0", "1", "2")
    same(read_sequences(str(tmp_path / "f" / f"*.{ending}")).x, parts)
    same(read_sequences([tmp_path / "f" / f"s2.{ending}", tmp_path / "f" / f"s0.{ending}"]).x, [parts[2], parts[0]])


def test_tasks_of_columns_in_folders(write, tmp_path):
    write("f/a.csv", "t,x,c,s,extra\n2,1,u,p,1\n1,2,u,q,1\n")
    write("f/b.csv", "t,x,c,s\n1,3,v,\n")
    found = read_sequences(tmp_path / "f", time="t", label="c", states="s", columns=["x"])
    same(found.x, [[2.0, 1.0], [3.0]])
    assert found.labels.tolist() == ["u", "v"] and [s.tolist() for s in found.states] == [["q", "p"], [None]]


def test_float32_arrays_stay_so(write, tmp_path):
    write("f/a.npy", np.ones(3, np.float32))
    assert read_sequences(tmp_path / "f").x.dtype == np.float32


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a.csv": "x,y\n1,2\n", "b.csv": "x,z\n1,2\n"}, r'b\.csv: columns must be those of .*a\.csv.*"y", "z"'),
        ({"a.csv": "1.5,2\n1,2\n", "b.csv": "1.5,2,3\n"}, r'b\.csv: columns must be those of .*a\.csv.*"2"'),
        ({"a.csv": "1.5,2\n1,2\n1,2,3\n"}, r"a\.csv: line 3 must have 2 fields"),
        ({"a.npy": np.zeros((2, 2)), "b.npy": np.zeros((2, 3))}, r"b\.npy: frames must be .*\(2,\).*\(3,\)"),
        ({"a.npy": np.zeros((2, 2, 2))}, r"a\.npy: a file must hold one sequence"),
        ({"a.npy": b"no array"}, r"a\.npy: the file must be a plain"),
        ({"a.npy": np.zeros(2, complex)}, r"a\.npy: a file must hold"),
        ({"a.csv": "x\n1\n", "b.npy": np.zeros(2)}, r"b\.npy: files must be of one kind"),
        ({"a.csv": "x\n1\n", "b.doc": "?"}, r'b\.doc: the file extension must be .*, got "\.doc"'),
        ({"one/a.wav": b"RIFF"}, r"a\.wav: .*SpokenWords"),
        ({"a.csv": "", "b.csv": "x\n1\n"}, r"a\.csv: .*empty file"),
        ({"a.parquet": b"nonsense"}, r"a\.parquet: the file must be Parquet"),
        ({"a.csv": b"x\n\xff\xfe\n"}, r"a\.csv: text must be UTF-8, line 2"),
        ({"README": "notes"}, "a folder must hold files"),
    ],
)
def test_what_is_wrong_in_a_folder_names_the_file(write, tmp_path, files, told):
    for name, content in files.items():
        write(f"f/{name}", content)
    with pytest.raises(DataError, match=told):
        read_sequences(tmp_path / "f")


def test_a_bad_cell_is_named_by_its_own_file(write, tmp_path):
    write("f/a.csv", "x\n" + "1\n" * 20)
    write("f/b.csv", "x\n2\noops\n")
    with pytest.raises(DataError, match=r'b\.csv: row 2, column "x": "oops"'):
        read_sequences(tmp_path / "f")


def test_an_empty_folder_and_no_file(tmp_path):
    with pytest.raises(DataError, match="a folder must hold files, each a sequence, got none"):
        read_sequences(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_sequences(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="a file or folder is needed"):
        read_sequences(np.zeros(3))


# --------------------------------------------------------------- symbols and letters


def test_lines_of_symbols(write):
    path = write("w.txt", "rain sun  sun\n\nsun ? fog\n")
    found = read_sequences(path, missing="?")
    assert [s.tolist() for s in found.x] == [["rain", "sun", "sun"], ["sun", None, "fog"]]
    assert read_sequences(path).x[1].tolist() == ["sun", "?", "fog"]  # a word among words
    assert found.ids.tolist() == ["1", "3"] and found.labels is None and found.columns == ("symbol",)
    whole = read_sequences(write("n.txt", "0 1 2\n2\n")).x
    assert whole.dtype == np.int64 and whole[1].tolist() == [2]
    same(read_sequences(write("r.txt", "0.5 NA\n1e3\n")).x, [[0.5, np.nan], [1000.0]])
    assert read_sequences(write("p.csv", "a b\n"), format="symbols").x[0].tolist() == ["a", "b"]


def test_text_with_columns_is_a_table(write):
    found = read_sequences(write("t.txt", "id,x\na,1\nb,2\n"), id="id")
    same(found.x, [[1.0], [2.0]])


def test_letters_of_fasta(write, tmp_path):
    found = read_sequences(write("g.fasta", ">first a gene\nACGT\n AC\n;note\n>second\nTT\n\n"))
    assert found.ids.tolist() == ["first", "second"] and found.labels is None
    assert ["".join(s) for s in found.x] == ["ACGTAC", "TT"]
    write("genes/early/a.fa", ">g1\nAC\n>g2\nGT\n")
    write("genes/late/b.fa", ">g1\nT\n")
    nested = read_sequences(tmp_path / "genes")
    assert nested.ids.tolist() == ["early/a:g1", "early/a:g2", "late/b:g1"]
    assert nested.labels.tolist() == ["early", "early", "late"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("g.fa", "ACGT\n", r'g\.fa: line 1 must begin a record with ">"'),
        ("g.fa", ">a\n>b\nAC\n", 'none in "a"'),
        ("g.fa", "\n", "records .* are needed"),
        ("g.txt", "\n\n", r"g\.txt: lines of symbols are needed"),
    ],
)
def test_what_is_wrong_with_symbols(write, name, text, told):
    with pytest.raises(DataError, match=told):
        read_sequences(write(name, text))


def test_settings_that_make_no_sense(write):
    with pytest.raises(DomainError, match="time: only tables have columns"):
        read_sequences(write("g.fa", ">a\nAC\n"), time="t")
    with pytest.raises(DomainError, match="format must be one of"):
        read_sequences(write("a.csv", "x\n1\n"), format="xml")


# -------------------------------------------------------------------------- real data


def test_a_genome():
    path = DATA / "bio" / "lambda_phage.fa"
    if not path.exists():
        pytest.skip("no data")
    (genome,) = read_sequences(path).x
    assert len(genome) == 48502 and set(genome.tolist()) == set("ACGT")


def test_a_hundred_thousand_frames(tmp_path):
    rng = np.random.default_rng(2)
    n = 100_000
    frame = pl.DataFrame({"id": rng.integers(0, 5000, n), "t": rng.permutation(n), "x": rng.normal(size=n)})
    frame.write_csv(tmp_path / "big.csv")
    found = read_sequences(tmp_path / "big.csv", id="id", time="t")
    expected = frame.sort("t").group_by("id").agg("x").rows_by_key("id", unique=True)
    assert found.ids.tolist() == frame["id"].unique(maintain_order=True).to_list()
    assert all(found.x[i].tolist() == expected[one][0] for i, one in enumerate(found.ids.tolist()))
