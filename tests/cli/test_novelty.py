"""`likely novelty`: unlikely rows are marked at the stated rate, with the column that contributes most."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import likely as lk
from tests.cli.tables import run, write


def ordinary(n: int, seed: int) -> pl.DataFrame:
    """Two kinds of ordinary rows with heavy tails, a count, a color, and gaps."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 2, n)
    b = rng.standard_t(5, n) - k
    b[rng.random(n) < 0.1] = np.nan
    return pl.DataFrame({
        "a": 6 * k + rng.standard_t(5, n), "b": pl.Series(b).fill_nan(None), "visits": rng.poisson(3 + 4 * k),
        "color": np.where(rng.random(n) < 0.8, np.where(k, "red", "blue"), "green"),
    })  # fmt: skip


ODD = "a,b,visits,color\n99.5,0.5,3,blue\n0.5,0.5,90,blue\n0.5,0.5,3,ultraviolet\n,,,\n0.1,,3,blue\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("novelty")
    write(ordinary(400, 0), at / "normal.csv")
    write(ordinary(4000, 1), at / "more.csv")
    done = run("novelty", at / "more.csv", "--train", at / "normal.csv", "--rate", 0.05, "-o", at / "out.csv",
               "--save-model", at / "m.likely")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (at / "told.txt").write_text(done.stderr)
    return at


@pytest.mark.slow
def test_false_alarms_come_at_the_stated_rate(folder):
    found, text = pl.read_csv(folder / "out.csv"), (folder / "told.txt").read_text()
    rate = found["novel"].mean()
    assert 0.025 < rate < 0.085  # 400 rows set a level of 5 % to about ± 1.1 %
    assert f"of 4,000 rows are novel ({rate:.2%}); expected among reference rows: 5.00%" in text
    new = ["novel", "surprisal", "p_value", "top_column", "top_column_bits", "other_columns"]
    assert found.columns == ["a", "b", "visits", "color", *new]
    ordered = found.sort("p_value")
    assert ordered["novel"].to_list() == sorted(found["novel"].to_list(), reverse=True)
    assert (
        found.filter("novel")["top_column"].null_count() == 0
        and found.filter(~pl.col("novel"))["top_column"].count() == 0
    )


def test_the_top_column_is_named(folder):
    done = run("novelty", "-", "--model", folder / "m.likely", "--json", stdin=ODD)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["novel"] for row in rows] == [True, True, True, False, False]
    assert [row["top_column"] for row in rows] == ["a", "visits", "color", None, None]
    assert rows[0]["surprisal"] > 100 and rows[0]["top_column_bits"] == pytest.approx(rows[0]["surprisal"], rel=0.2)
    assert rows[2]["surprisal"] is None and rows[2]["p_value"] == pytest.approx(1 / 401)
    assert [row["surprisal_infinite"] for row in rows] == [False, False, True, False, False]
    assert "a = 99.5" in done.stderr and "∞" in done.stderr


def test_all_columns_are_ranked_also_beside_a_word_never_seen(folder):
    row = "a,b,visits,color\n99.5,-20.5,90,purple\n"
    told = json.loads(run("novelty", "-", "--model", folder / "m.likely", "--json", "-q", stdin=row).stdout)
    ranks = {name: np.inf if bits is None else bits for name, bits in told["ranking"].items()}
    assert next(iter(ranks)) == "color" == told["top_column"] and set(told["other_columns"]) == {"a", "b", "visits"}
    assert list(ranks.values()) == sorted(ranks.values(), reverse=True) and min(ranks.values()) > 20
    done = run("novelty", "-", "--model", folder / "m.likely", stdin=row)
    for cell in ("color = purple", "a = 99.5", "b = -20.5", "visits = 90"):
        assert cell in done.stderr
    cells = done.stdout.splitlines()[1].split(",")
    assert cells[5] == "inf" and cells[8] == "inf"


def test_what_cannot_be_is_the_only_top_column(folder):
    rows = "a,b,visits,color\n1e300,0.5,3,blue\n0.5,1e300,3,blue\n1e300,1e300,3,blue\n"
    done = run("novelty", "-", "--model", folder / "m.likely", "--json", "-q", stdin=rows)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["top_column"], row["other_columns"]) for row in found] == [("a", []), ("b", []), ("a", ["b"])]
    assert all(row["surprisal_infinite"] and row["novel"] for row in found)


def test_columns_of_the_new_names_are_kept_under_others(folder):
    row = "a,b,visits,color,ranking,novel\n99.5,0.5,3,blue,first,yes\n"
    told = json.loads(run("novelty", "-", "--model", folder / "m.likely", "--json", "-q", stdin=row).stdout)
    assert told["input ranking"] == "first" and told["input novel"] == "yes" and "a" in told["ranking"]


def test_what_was_learned_is_kept_as_a_density_of_ordinary_rows(folder):
    assert f"written: {folder / 'out.csv'}, {folder / 'm.likely'}" in (folder / "told.txt").read_text()
    shown, card = run("show", folder / "m.likely").stdout, run("card", folder / "m.likely")
    assert "a density of reference rows" in shown and "400 rows" in shown and "cluster " not in shown
    assert card.exit_code == 0 and "# Model card: density in" in card.stdout
    chapters = [line for line in card.stdout.splitlines() if line.startswith("## ")]
    expected = ["What it is", "Data", "Threshold", "Warnings", "Limitations", "How to reproduce"]
    assert chapters == [f"## {title}" for title in expected]
    assert "set by 400 held-out rows" in card.stdout and "--train" in card.stdout and "## Clusters" not in card.stdout
    again = json.loads(run("show", folder / "m.likely", "--json").stdout)["card"]
    assert again["task"] == "density" and again["rows"] == 400


def test_help_says_what_becomes_of_a_word_never_seen():
    told = " ".join(run("novelty", "--help").stdout.split())
    assert "has infinite surprisal" in told
    told = " ".join(run("predict", "--help").stdout.split())
    assert "counts as missing" in told and "marked novel" in told


def test_surprise_is_bits_below_the_median_of_the_models_own_rows(folder):
    model = lk.load(folder / "m.likely")
    draws = model.mixture_.model_.sample(2048, np.random.default_rng(0))
    middle = np.median(model.mixture_.model_.log_prob(draws))
    row = "a,b,visits,color\n3.5,-2.5,9,green\n"
    found = json.loads(run("novelty", "-", "--model", folder / "m.likely", "--json", "-q", stdin=row).stdout)
    score = model.score_samples({"a": [3.5], "b": [-2.5], "visits": [9], "color": ["green"]})[0]
    assert found["surprisal"] == pytest.approx((middle - score) / np.log(2), rel=1e-9)


@pytest.mark.slow
def test_a_classifier_and_a_cluster_model_watch_too(tmp_path):
    frame = ordinary(300, 2).with_columns(y=pl.Series(["u", "v"] * 150))
    table = write(frame, tmp_path / "t.csv")
    run("fit", table, "--target", "y", "--models", "naive-bayes", "-q", "-o", tmp_path / "c.likely")
    run("cluster", table, "--n-components", 2, "--n-init", 1, "--ignore", "y", "-q", "-o", tmp_path / "o.csv",
        "--save-model", tmp_path / "k.likely")  # fmt: skip
    for model in ("c.likely", "k.likely"):
        done = run("novelty", "-", "--model", tmp_path / model, stdin=ODD)
        assert pl.read_csv(done.stdout.encode())["top_column"].to_list()[:3] == ["a", "visits", "color"], model


def test_a_density_from_python_sets_its_level_by_its_own_draws(tmp_path):
    frame = ordinary(300, 3).select("a", "b")
    lk.GaussianDensity("full").fit(frame).save(tmp_path / "g.likely")
    done = run("novelty", "-", "--model", tmp_path / "g.likely", stdin=ODD)
    assert pl.read_csv(done.stdout.encode())["novel"].to_list()[:2] == [True, False]
    assert "samples from the model" in done.stderr


@pytest.mark.slow
def test_many_columns_and_few_rows(tmp_path):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(30, 2))
    X = rng.normal(size=(90, 2)) @ W.T + 0.2 * rng.normal(size=(90, 30))
    names = [f"x{j}" for j in range(30)]
    table = write(pl.DataFrame(X, schema=names), tmp_path / "t.csv")
    odd = X[:2].copy()
    odd[0, 4] += 5.0  # within the column's range, but not with the others
    done = run("novelty", "-", "--train", table, stdin=pl.DataFrame(odd, schema=names).write_csv())
    found = pl.read_csv(done.stdout.encode())
    assert found["novel"].to_list() == [True, False] and found["top_column"][0] == "x4"
    assert "a few factors" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("args", "code", "words"), [
    (("t.csv",), 2, "give the reference"),
    (("t.csv", "--train", "t.csv", "--model", "m"), 2, "either --model FILE or --train FILE"),
    (("t.csv", "--model", "m", "--ignore", "a"), 2, "goes with --train"),
    (("t.csv", "--model", "m"), 4, "m: "),
    (("t.csv", "--train", "t.csv", "--rate", "2"), 2, "rate"),
    (("nosuch.csv", "--train", "t.csv", "--as", "color=ignore"), 3, "nosuch.csv"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(tmp_path, monkeypatch, args, code, words):
    write(ordinary(60, 0), tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    done = run("novelty", *args)
    assert done.exit_code == code and words in done.stderr


def test_a_missing_column_is_named_unless_it_may_be_missing(folder):
    rows = "a,b,visits\n99.5,0.5,3\n"
    done = run("novelty", "-", "--model", folder / "m.likely", stdin=rows)
    assert done.exit_code == 3 and '"color"' in done.stderr
    done = run("novelty", "-", "--model", folder / "m.likely", "--allow-missing", stdin=rows)
    assert pl.read_csv(done.stdout.encode())["novel"].to_list() == [True]


def test_class_frequencies_know_no_rows(tmp_path):
    table = write(ordinary(60, 0).with_columns(y=pl.Series(["u", "v"] * 30)), tmp_path / "t.csv")
    run("fit", table, "--target", "y", "--models", "prior", "-q", "-o", tmp_path / "m")
    done = run("novelty", table, "--model", tmp_path / "m")
    assert done.exit_code == 4 and "with a density of rows" in done.stderr
