"""`likely predict`: decisions in CSV or JSON lines, from files and pipes of any size."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from io import BytesIO

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.cli import batches
from tests.cli.tables import mixed_frame, run, wine_frame, write


def test_csv_has_decision_cost_posteriors_and_flags(wine_folder):
    done = run("predict", wine_folder / "model.likely", wine_folder / "wine.csv", "--keep", "hue,class")
    table = pl.read_csv(io.StringIO(done.stdout))
    assert table.columns == [
        *("hue", "class", "decision", "cost"), *("p(Barbera)", "p(Barolo)", "p(Grignolino)"), *("novel", "reason"),
    ]  # fmt: skip
    model = lk.load(wine_folder / "model.likely")
    assert table["decision"].to_list() == [str(c) for c in model.decide(wine_frame())]
    np.testing.assert_allclose(table.select("^p.*$").to_numpy(), model.predict_proba(wine_frame()), atol=1e-12)
    refused = table.filter(pl.col("decision") == "REJECT")
    assert refused["reason"].str.starts_with("rejected: ").all() and (refused["cost"] == 0.3).all()


def test_json_lines_from_a_pipe(wine_folder):
    text = wine_frame()[:3].write_csv()
    done = run("predict", wine_folder / "model.likely", "-", "--json", stdin=text)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["decision"] for line in lines] == ["Barolo"] * 3
    assert sum(lines[0]["posterior"].values()) == pytest.approx(1) and lines[0]["novel"] is False


def test_a_word_never_seen_counts_as_missing_and_is_novel(mixed_folder):
    rows = mixed_frame(6, 3).drop("sick")
    strange = rows.with_columns(pl.lit("ultraviolet").alias("color"))
    gap = rows.with_columns(pl.lit(None, dtype=pl.String).alias("color"))
    told = [
        [json.loads(line) for line in run(
            "predict", mixed_folder / "model.likely", "-", "--json", stdin=frame.write_csv()
        ).stdout.splitlines()]
        for frame in (strange, gap)
    ]  # fmt: skip
    assert all(line["novel"] and '"color" was not seen' in line["reason"] for line in told[0])
    assert not any(line["novel"] for line in told[1])
    assert [line["posterior"] for line in told[0]] == [line["posterior"] for line in told[1]]


def test_novel_rows_are_refused_where_asked(mixed_folder, tmp_path):
    frame = mixed_frame(20, 3).with_columns(size=pl.lit(1e6))
    done = run("predict", mixed_folder / "model.likely", write(frame, tmp_path / "n.csv"), "--novelty", 0.01)
    table = pl.read_csv(io.StringIO(done.stdout))
    assert set(table["decision"]) == {"NOVEL"} and table["novel"].all()
    assert table["reason"].str.starts_with("novel: ").all()


def test_other_costs_priors_and_thresholds(mixed_folder, tmp_path):
    rows = write(mixed_frame(60, 2), tmp_path / "r.csv")
    (tmp_path / "c.csv").write_text(",ill,well\nill,0,1\nwell,1000000,0\n")
    model = mixed_folder / "model.likely"

    def decisions(*options: object) -> set[str]:
        return set(pl.read_csv(io.StringIO(run("predict", model, rows, *options).stdout))["decision"])

    assert decisions("--cost", tmp_path / "c.csv") == {"ill"}
    assert decisions("--class-prior", "ill=0,well=1") == {"well"}
    assert decisions("--reject-below", 1.0) == {"REJECT"}
    assert decisions("--reject-cost", 0) == {"REJECT"}


@pytest.mark.slow
@pytest.mark.parametrize(("no", "yes"), [("-1.0", "1.0"), ("1", "2"), ("+1", "-1"), ('"no, thanks"', '"yes"')])
def test_labels_keep_the_spelling_of_the_file(tmp_path, no, yes):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 80)
    rows = "".join(f"{x:.3f},{yes if c else no}\n" for x, c in zip(rng.normal(3.0 * y), y, strict=True))
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}")
    (tmp_path / "c.csv").write_text(f"action,{no},{yes}\n{no},0,5\n{yes},1,0\n")
    model, table = tmp_path / "m.likely", tmp_path / "t.csv"
    done = run(
        "fit",
        table,
        "--target",
        "y",
        "--cost",
        tmp_path / "c.csv",
        "--models",
        "diagonal",
        "--no-baselines",
        "-o",
        model,
    )
    assert done.exit_code == 0, done.stderr
    written = pl.read_csv(io.StringIO(run("predict", model, table, "--proba").stdout), infer_schema=False)
    bare = [one.strip('"') for one in (no, yes)]
    assert set(written["decision"]) == set(bare) and {f"p({one})" for one in bare} <= set(written.columns)
    truth = pl.read_csv(table, infer_schema=False)["y"]
    assert (written["decision"] == truth).mean() > 0.8  # the same texts as in the file
    told = json.loads(run("evaluate", model, table, "--target", "y", "--json").stdout)
    assert set(map(str, told["classes"])) == set(bare)
    assert lk.load(model).score(pl.read_csv(table).drop("y"), lk.load(model).predict(pl.read_csv(table))) == 1.0


@pytest.mark.slow
def test_batches_equal_the_whole(mixed_folder, tmp_path, monkeypatch):
    frame = mixed_frame(500, 5)
    frame = frame.with_columns(pl.Series("note", ['a "quoted"\nline', "plain", "with, comma", None] * 125))
    path = write(frame, tmp_path / "big.csv")
    frame.write_parquet(tmp_path / "big.parquet")
    frame.write_ndjson(tmp_path / "big.jsonl")
    model = mixed_folder / "model.likely"
    whole = run("predict", model, path, "--keep", "id").stdout
    monkeypatch.setattr(batches, "PIECE", 1000)
    monkeypatch.setattr(batches, "ROWS", 7)
    for name in ("big.csv", "big.parquet", "big.jsonl"):
        assert run("predict", model, tmp_path / name, "--keep", "id").stdout == whole
    assert run("predict", model, "-", "--keep", "id", stdin=path.read_bytes()).stdout == whole
    assert len(whole.splitlines()) == 501


def test_errors_in_later_batches_name_the_row_of_the_file(mixed_folder, tmp_path, monkeypatch):
    lines = mixed_frame(300, 5).write_csv().splitlines()
    lines[250] = lines[250].replace(lines[250].split(",")[2], "wide", 1)
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(batches, "PIECE", 1500)
    done = run("predict", mixed_folder / "model.likely", tmp_path / "t.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 3 and 'row 250, column "width"' in done.stderr
    assert os.listdir(tmp_path) == ["t.csv"]


def test_output_files_are_whole(wine_folder, tmp_path):
    done = run("predict", wine_folder / "model.likely", wine_folder / "wine.csv", "-o", tmp_path / "out.csv")
    assert done.stdout == "" and pl.read_csv(tmp_path / "out.csv").height == 178
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_classifier_saved_from_python_knows_its_columns(tmp_path):
    frame = mixed_frame().drop("id")
    distributions = {"visits": "poisson"}
    clf = lk.NaiveBayes(distributions).fit(frame.drop("sick"), frame["sick"].to_numpy())
    clf.save(tmp_path / "nb.likely")
    done = run("predict", tmp_path / "nb.likely", write(mixed_frame(40, 9), tmp_path / "t.csv"))
    expected = clf.predict(mixed_frame(40, 9).drop("id", "sick"))
    assert pl.read_csv(io.StringIO(done.stdout))["decision"].to_list() == expected.tolist()


@pytest.mark.parametrize(
    ("change", "options", "code", "words"),
    [
        (lambda f: f.drop("hue"), (), 3, 'the model needs column "hue"'),
        (lambda f: f.with_columns(hue=pl.lit("blueish")), (), 3, 'row 1, column "hue": "blueish" is not a number'),
        (lambda f: f[:0], (), 3, "rows are needed"),
        (lambda f: f, ("--keep", "price"), 3, 'column "price"'),
        (lambda f: f, ("-o", "nowhere/out.csv"), 1, "make the folder first"),
        (lambda f: f, ("--novelty", "2"), 2, "--novelty"),
    ],
)
def test_bad_input(wine_folder, tmp_path, change, options, code, words):
    table = write(change(wine_frame()), tmp_path / "t.csv")
    done = run("predict", wine_folder / "model.likely", table, *options)
    assert (done.exit_code, done.stdout) == (code, "") and words in done.stderr


def test_missing_columns_may_be_allowed(wine_folder, tmp_path):
    table = write(wine_frame().drop("hue"), tmp_path / "t.csv")
    done = run("predict", wine_folder / "model.likely", table, "--allow-missing")
    decided = pl.read_csv(io.StringIO(done.stdout))["decision"]
    assert (decided == wine_frame()["class"]).mean() > 0.9


@pytest.mark.parametrize("what", ["density", "text", "nothing"])
def test_other_files_are_no_models(tmp_path, what):
    path = tmp_path / "m.likely"
    if what == "density":
        lk.save(lk.Gaussian([0.0], 1.0), path)
    elif what == "text":
        path.write_text("no model")
    done = run("predict", path, write(wine_frame(), tmp_path / "t.csv"))
    assert (done.exit_code, done.stdout) == (4, "") and "m.likely" in done.stderr


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly(wine_folder, tmp_path):
    big = write(pl.concat([wine_frame()] * 200), tmp_path / "big.csv")
    code = "from likely.cli.main import main; main()"
    args = [sys.executable, "-c", code, "predict", str(wine_folder / "model.likely"), str(big)]
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(timeout=60) == 141 and child.stderr.read() == b""
    child.stderr.close()


@pytest.mark.parametrize("line", ['{"a": 1, "note": "5\\"x"}', '1,5"x'])
def test_a_stray_quote_costs_no_time_and_no_rows(line, monkeypatch):
    """Records are cut in one pass: stepping back line by line took minutes for eight megabytes."""
    monkeypatch.setattr(batches, "RECORD", 1000)
    text = "\n".join([line, *["7,8"] * 200_000, ""]).encode()
    pieces = list(batches._pieces(BytesIO(text)))
    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces)
