"""`likely fit`: from a table to a model, a report and a leaderboard, or one clear sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.cli.fitting.fit_job import Job, splitting_words
from tests.cli.tables import mixed_frame, run, wine_frame, write


@pytest.mark.slow
def test_leaderboard_says_who_won_and_by_how_much(wine_folder):
    told, text = json.loads((wine_folder / "fit.json").read_text()), (wine_folder / "fit.txt").read_text()
    assert told["rows"] == 178 and told["target"] == "class"
    (chosen,) = [line for line in told["leaderboard"] if line["chosen"]]
    assert chosen["key"] == told["chosen"] and chosen["cost"] < 0.05 < 0.29
    costs = [line["cost"] for line in told["leaderboard"]]
    assert costs == sorted(costs)
    best = told["leaderboard"][0]
    assert chosen["difference"] <= chosen["difference_se"] and best["difference"] == 0
    simpler = {line["key"]: line for line in told["leaderboard"]}
    assert simpler["spherical"]["difference"] > simpler["spherical"]["difference_se"]
    assert "is chosen: it costs" in text and "s.e.: one standard error" in text and "difference: cost above" in text
    assert "comparing 15 models: 5-fold stratified" in text and "alcohol" in text


def test_ties_go_to_the_least_log_loss(tmp_path):
    """Columns that lean on each other: naive Bayes decides as well as the pooled Gaussian, and is far too sure."""
    rng = np.random.default_rng(3)
    y = np.arange(120) % 2
    common = rng.normal(0, 1.6, 120) + y
    table = pl.DataFrame({f"x{j}": common + rng.normal(0, 0.05, 120) for j in range(6)})
    path = write(table.with_columns(pl.Series("y", np.where(y, "a", "b"))), tmp_path / "t.csv")
    asked = ("fit", path, "--target", "y", "--no-calibrate", "--models", "diagonal,pooled", "-o", tmp_path / "m.likely")
    done = run(*asked, "--json")
    lines = {line["key"]: line for line in json.loads(done.stdout)["leaderboard"]}
    naive, pooled = lines["diagonal"], lines["pooled"]
    assert "cost" in naive["ties"] and "log-loss" not in naive["ties"] and pooled["chosen"]
    assert naive["log_loss"] > pooled["log_loss"] + 0.2
    assert pooled["ties"] == ["cost", "log-loss"] and pooled["loss_difference"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("by", ["log-loss", "error"])
def test_the_first_measure_can_be_chosen(by, tmp_path):
    path = write(mixed_frame(), tmp_path / "t.csv")
    report, model = tmp_path / "r.html", tmp_path / "m.likely"
    models = ("--models", "prior,naive-bayes,pooled", "--criterion", by)
    done = run("fit", path, "--target", "sick", *models, "-o", model, "--report", report, "--json")
    told = json.loads(done.stdout)
    values = [line["log_loss" if by == "log-loss" else "error"] for line in told["leaderboard"]]
    assert values == sorted(values) and told["criterion"] == by and f"--criterion {by}" in told["command"]
    assert f"Models whose {by} is within one standard error of the lowest" in told["rule"]
    page = report.read_text(encoding="utf-8")
    assert f"Difference to the lowest {by}" in page and told["rule"] in page
    card = run("card", model).stdout
    assert told["rule"] in card and f"By {by} on held-out rows" in card and "± is one standard error" in card


def test_the_model_decides_with_its_costs(wine_folder):
    model, frame = lk.load(wine_folder / "model.likely"), wine_frame()
    decided = model.decide(frame)
    assert (decided == frame["class"].to_numpy()).mean() > 0.95
    assert model.cost.table.shape == (4, 3) and model.reject_cost == 0.3
    expected = np.concatenate([model.predict_proba(frame) @ model.cost.table.T, np.full((178, 1), 0.3)], axis=1)
    names = [*model.classes_.tolist(), "ask an expert", lk.REJECT]
    assert decided.tolist() == [names[i] for i in expected.argmin(axis=1)]


@pytest.mark.slow
def test_the_file_serves_frames_dicts_and_columns_in_any_order(wine_folder):
    model, frame = lk.load(wine_folder / "model.likely"), wine_frame()
    expected = model.predict_proba(frame)
    shuffled = frame.select(reversed(frame.columns))
    as_pandas = pytest.importorskip("pandas").DataFrame(frame.to_dict(as_series=False))
    for other in (shuffled, as_pandas, frame.to_dict(as_series=False)):
        assert np.array_equal(model.predict_proba(other), expected)
    columns = lk.core.Columns({name: frame[name].to_numpy() for name in frame.columns})
    assert np.array_equal(model.predict_proba(columns), expected)
    assert model.predict(frame[:3]).tolist() == ["Barolo"] * 3


def test_report_has_every_part(wine_folder):
    page = (wine_folder / "report.html").read_text(encoding="utf-8")
    assert len(page) < 500_000 and "ask an expert" in page and "flavanoids" in page
    for name in ("leaderboard", "confusion", "calibration", "plane", "drivers", "worst", "reproduce"):
        assert f'id="{name}"' in page
    assert "first direction: " in page and "not evaluated" not in page


@pytest.mark.slow
def test_the_map_is_left_out_where_words_separate_the_classes(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    numbers = {f"x{j}": rng.normal(0.3 * y) for j in range(10)}
    word = np.where(rng.random(200) < 0.9, np.where(y, "red", "blue"), "green")
    frame = pl.DataFrame({**numbers, "word": word, "y": np.where(y, "p", "q")})
    path = write(frame, tmp_path / "t.csv")
    for drop, words in (
        ((), "The map is left out: the 10 numeric columns"),
        (("--ignore", "word"), "The two directions"),
    ):
        asked = ("fit", path, "--target", "y", "--models", "naive-bayes", "--report", tmp_path / "r.html", *drop)
        done = run(*asked, "-o", tmp_path / "m.likely")
        assert done.exit_code == 0, done.stderr
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert words in page and "and 0" not in page.split('id="plane"')[1].split("</section>")[0]
        count = 3 if not drop else 2  # of 11 or 10 columns, 8 are shown
        assert f"and {count} more" in page


@pytest.mark.slow
def test_mixed_tables_name_what_is_set_aside(mixed_folder):
    told, said = json.loads((mixed_folder / "fit.json").read_text()), (mixed_folder / "fit.txt").read_text()
    assert "id" in told["excluded"] and "identifier" in said
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds == {"size": "real", "width": "real", "visits": "count", "color": "category", "smokes": "binary"}
    keys = {line["key"] for line in told["leaderboard"]}
    assert {"prior", "naive-bayes", "naive-bayes-t", "pooled", "full", "pooled-counts"} <= keys
    assert "full-t" not in keys and "needs rows without missing numbers: full, t predictive" in said
    assert told["figures"]["error"]["value"] < 0.25


@pytest.mark.slow
def test_one_list_of_models_serves_every_table(tmp_path):
    models = (
        "--models",
        "naive-bayes,pooled,k-nearest-neighbors",
        "--no-baselines",
        "-o",
        tmp_path / "m.likely",
        "--json",
    )
    numbers = run("fit", write(wine_frame(), tmp_path / "w.csv"), "--target", "class", *models)
    mixed = run("fit", write(mixed_frame(), tmp_path / "t.csv"), "--target", "sick", *models)
    assert {line["key"] for line in json.loads(numbers.stdout)["leaderboard"]} == {
        "diagonal",
        "pooled",
        "k-nearest-neighbors",
    }
    assert "all columns are numbers, so naive-bayes is the same model as diagonal" in numbers.stderr
    told = json.loads(mixed.stdout)
    assert {line["key"] for line in told["leaderboard"]} == {
        "naive-bayes",
        "pooled",
    } and "same model" not in mixed.stderr
    assert "left out, not for this table: k-nearest-neighbors needs numbers alone" in mixed.stderr
    assert any("neighbors needs" in warning for warning in told["warnings"])


@pytest.mark.slow
def test_baselines_take_part_but_cannot_win(tmp_path):
    rng = np.random.default_rng(0)  # an exclusive or: no single Gaussian a class sees it
    X = rng.normal(size=(200, 2))
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] * X[:, 1] > 0, "same", "other")})
    done = run("fit", write(frame, tmp_path / "t.csv"), "--target", "y", "-o", tmp_path / "m", "--json",
               "--models", "prior,diagonal,forest", "--cv", 2)  # fmt: skip
    told = json.loads(done.stdout)
    first = told["leaderboard"][0]
    assert first["key"] == "forest" and first["baseline"] and not first["chosen"]
    assert told["chosen"] in ("prior", "diagonal")
    assert any("Random forest costs" in warning for warning in told["warnings"])


@pytest.mark.slow
def test_a_mixture_wins_goes_into_the_file_and_is_left_out_where_it_is_too_slow(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lump = rng.integers(0, 4, 240)
    frame = pl.DataFrame({"a": 10.0 * lump + rng.normal(size=240), "b": rng.normal(size=240),
                          "y": np.where(lump % 2, "odd", "even")})  # fmt: skip
    table = write(frame, tmp_path / "t.csv")
    shared = ("fit", table, "--target", "y", "--no-baselines", "--json", "-o", tmp_path / "m")
    told = json.loads(run(*shared, "--models", "pooled,full,mixture-diagonal-2,mixture-full-2").stdout)
    assert told["chosen"].startswith("mixture-") and told["what"].startswith("Each class a mixture of")
    model = lk.load(tmp_path / "m")
    assert (model.predict(frame) == frame["y"].to_numpy()).mean() > 0.99
    monkeypatch.setattr("likely.automl.candidates.WORK", 1.0)
    told = json.loads(run(*shared).stdout)
    assert not any(line["key"].startswith("mixture-") for line in told["leaderboard"])
    assert any("--models student-t,mixture-diagonal-2," in warning for warning in told["warnings"])
    told = json.loads(run(*shared, "--models", "full,mixture-diagonal-2").stdout)
    assert told["chosen"] == "mixture-diagonal-2"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_file(tmp_path):
    table = write(mixed_frame(120), tmp_path / "t.csv")
    for name, jobs in (("a", 1), ("b", 2)):
        shared = ("--target", "sick", "--models", "naive-bayes,pooled,full")
        run("fit", table, *shared, "-q", "-o", tmp_path / name, "--jobs", jobs)
    a, b = lk.load(tmp_path / "a"), lk.load(tmp_path / "b")
    assert np.array_equal(a.predict_proba(mixed_frame(50, 1)), b.predict_proba(mixed_frame(50, 1)))


@pytest.mark.slow
def test_a_weight_of_two_is_two_copies(tmp_path):
    frame = wine_frame().with_columns(w=pl.Series([2, 1] * 89))
    write(frame, tmp_path / "w.csv")
    write(frame.select(pl.all().repeat_by("w").explode()).drop("w"), tmp_path / "twice.csv")
    shared = ("--target", "class", "--models", "pooled", "-q", "-o")
    run("fit", tmp_path / "w.csv", "--weight", "w", *shared, tmp_path / "a")
    run("fit", tmp_path / "twice.csv", *shared, tmp_path / "b")
    a, b = (lk.load(tmp_path / name).classifier_.predict_proba(wine_frame().drop("class")) for name in "ab")
    np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.slow
def test_the_seed_deals_the_folds(tmp_path):
    table = write(mixed_frame(60, 2), tmp_path / "t.csv")
    asked = ("fit", table, "--target", "sick", "--models", "naive-bayes", "--cv", 2, "-o", tmp_path / "m", "--json")
    found = [json.loads(run(*asked, "--no-calibrate", "--seed", seed).stdout)["leaderboard"] for seed in (1, 2)]
    one, other = (lines[0]["log_loss"] for lines in found)
    assert one != other


@pytest.mark.slow
def test_class_probabilities_in_use_count_for_the_model_and_its_figures(tmp_path):
    table = write(mixed_frame(), tmp_path / "t.csv")
    done = run("fit", table, "--target", "sick", "--models", "prior,naive-bayes", "-o", tmp_path / "m",
               "--class-prior", "ill=0.01,well=0.99", "--json")  # fmt: skip
    told, model = json.loads(done.stdout), lk.load(tmp_path / "m")
    assert model.class_prior_.tolist() == [0.01, 0.99]
    by = {line["key"]: line["error"] for line in told["leaderboard"]}
    assert by["prior"] == pytest.approx(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cv", "0.25"), "one hold-out set of 25%"),
        (("--group", "doctor"), "groups kept together"),
        (("--time", "day"), "in time order"),
        (("--cv", "3"), "3-fold stratified"),
    ],
)
def test_ways_to_split(tmp_path, options, words):
    frame = mixed_frame(90).with_columns(
        doctor=pl.Series([f"d{i % 9}" for i in range(90)]),
        day=pl.Series([f"2024-01-{1 + i // 4:02d}" for i in range(90)]),
    )
    table = write(frame, tmp_path / "t.csv")
    done = run("fit", table, "--target", "sick", "--models", "prior,naive-bayes", "-o", tmp_path / "m", *options)
    assert done.exit_code == 0 and words in done.stderr


def test_several_files_sql_and_other_formats(tmp_path):
    frame = mixed_frame(90)
    frame.select("id", "size", "sick").write_csv(tmp_path / "a.csv")
    frame.select("id", "color", "visits").write_parquet(tmp_path / "b.parquet")
    done = run("fit", tmp_path / "a.csv", tmp_path / "b.parquet", "--sql", "select * from a join b using (id)",
               "--target", "sick", "--models", "naive-bayes", "-o", tmp_path / "m", "--json")  # fmt: skip
    assert {c["name"] for c in json.loads(done.stdout)["columns"]} == {"size", "color", "visits"}


def test_a_class_with_one_row_is_named(tmp_path):
    frame = wine_frame().with_columns(
        pl.when(pl.int_range(178) == 3).then(pl.lit("Merlot")).otherwise("class").alias("class")
    )
    done = run("fit", write(frame, tmp_path / "t.csv"), "--target", "class", "--models", "pooled,diagonal",
               "-o", tmp_path / "m")  # fmt: skip
    assert done.exit_code == 0
    assert '"Merlot" (1)' in done.stderr and "Absent from the training rows" in done.stderr
    assert "Merlot" in lk.load(tmp_path / "m").classes_


@pytest.mark.slow
def test_a_useless_table_is_called_so(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "y": rng.choice(["u", "v"], 200)})
    done = run("fit", write(frame, tmp_path / "t.csv"), "--target", "y", "--no-baselines", "-o", tmp_path / "m",
               "--models", "prior,diagonal,full", "--report", tmp_path / "r.html")  # fmt: skip
    assert done.exit_code == 0 and "the columns say little about the target" in done.stderr
    assert lk.load(tmp_path / "m").predict(frame).shape == (200,)


def test_quiet_says_nothing(tmp_path):
    table = write(wine_frame(), tmp_path / "t.csv")
    done = run("fit", table, "--target", "class", "--models", "pooled", "-q", "-o", tmp_path / "m")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


# ------------------------------------------------------------------------- bad input

CASES = {
    "no such target": ((), "--target clas", 3, 'did you mean "class"'),
    "no such file": ((), "", 3, "there is no such file"),
    "empty": ("", "--target class", 3, "an empty file"),
    "header only": ("a,class\n", "--target class", 3, "a header and nothing below it"),
    "no label": ("a,class\n1,\n2,\n3,\n", "--target class", 3, "labels are needed"),
    "one class": ("a,class\n1,x\n2,x\n3,x\n", "--target class", 3, "two classes or more"),
    "infinite": ("a,b,class\n" + "1.5,2,x\n1.5,3,y\n" * 6 + "inf,2,x\n", "--target class", 3, 'row 13, column "a"'),
    "mixed": ("a,b,class\n" + "1.5,2,x\n1.7,3,y\n" * 6 + "oops,2,x\n", "--target class", 3, '--missing "oops"'),
    "ragged": ("a,b,class\n1,2,x\n1,2\n", "--target class", 3, "line 3"),
    "nothing to measure": ("class\nx\ny\n", "--target class", 3, "at least one column"),
    "unknown models": ((), "--target class --models nonsense", 2, "names of models are prior"),
    "only baselines": ((), "--target class --models forest", 3, "able to go into a model file"),
    "bad folds": ((), "--target class --cv 1", 2, "number of folds"),
    "bad kind": ((), "--target class --as hue=color", 2, "NAME=KIND"),
    "unknown column": ((), "--target class --as hui=real", 3, 'did you mean "hue"'),
    "drop unknown": ((), "--target class --ignore hui", 3, 'did you mean "hue"'),
    "no target": ((), "", 2, "Missing option '--target'"),
    "negative price": ((), "--target class --reject-cost -1", 2, "--reject-cost"),
    "bad prior": ((), "--target class --class-prior 0.5,0.6", 3, "--class-prior"),
    "no group": ((), "--target class --group doctor", 3, "--group"),
    "cost file": ((), "--target class --cost nowhere.csv", 3, "nowhere.csv"),
    "report folder": ((), "--target class --report nowhere/r.html", 1, "make the folder first"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_sentence_and_leaves_nothing(case, tmp_path, monkeypatch):
    content, options, code, words = CASES[case]
    monkeypatch.chdir(tmp_path)
    if content == ():
        write(wine_frame(), tmp_path / "t.csv")
    else:
        (tmp_path / "t.csv").write_text(content)
    before = set(os.listdir(tmp_path))
    file = "absent.csv" if case == "no such file" else "t.csv"
    options = "--target class" if case == "no such file" else options
    done = run("fit", file, *options.split(), "-q", "-o", "x.likely")
    assert done.exit_code == code and done.stdout == ""
    assert words in done.stderr and done.stderr.count("likely: ") <= 1
    assert set(os.listdir(tmp_path)) == before


def test_a_model_file_that_cannot_be_written_is_said_before_the_work(wine_folder, tmp_path):
    done = run("fit", wine_folder / "wine.csv", "--target", "class", "-o", tmp_path / "none" / "m")
    assert done.exit_code == 4 and "make the folder first" in done.stderr and "comparing" not in done.stderr


@pytest.mark.slow
def test_an_interrupt_ends_quietly_and_leaves_nothing(wine_folder, tmp_path):
    code = "from likely.cli.main import main; main()"
    args = ["fit", str(wine_folder / "wine.csv"), "--target", "class", "--cv", "loo", "-o", "m"]
    child = subprocess.Popen([sys.executable, "-c", code, *args], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    for line in child.stderr:
        if "comparing" in line:
            break
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    rest = child.communicate(timeout=30)[1]
    assert child.returncode == 130 and "Traceback" not in rest
    assert os.listdir(tmp_path) == []


# ----------------------------------------------------------------------------- words


def test_class_frequencies_alone_are_no_result(tmp_path, monkeypatch):
    from likely.automl import model_comparison

    run_split = model_comparison._run_split
    monkeypatch.setattr(
        "likely.automl.model_comparison._run_split",
        lambda field, candidate, split: (
            run_split(field, candidate, split)._replace(answers=None, failure="too odd")
            if candidate.key != "prior"
            else run_split(field, candidate, split)
        ),
    )
    asked = ("--target", "class", "--models", "prior,pooled", "--no-baselines", "-o", tmp_path / "m.likely")
    done = run("fit", write(wine_frame(), tmp_path / "w.csv"), *asked)
    assert done.exit_code == 3 and "nothing could be learned from these rows: too odd" in done.stderr
    assert not (tmp_path / "m.likely").exists()


def test_the_command_can_be_given_again():
    job = Job(("a b.csv",), "y", missing=("?!",), kinds={"x": "real"}, cv=3, baselines=False, seed=7, out="m")
    assert job.command == (
        "likely fit 'a b.csv' --target y --cv 3 --missing '?!' --as x=real -o m --seed 7 --no-baselines"
    )


def test_splits_in_words():
    assert splitting_words("leave-one-out", 178, False) == "leave-one-out (178 fits)"
    assert splitting_words("time", 5, False).startswith("5 blocks in time order")


@pytest.mark.slow
def test_a_table_of_thousands_of_columns_can_be_saved(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"a rather long name of a column, number {i}" for i in range(3000)]
    X = rng.normal(size=(12, 3000)).round(2)
    frame = pl.DataFrame({name: X[:, j] for j, name in enumerate(names)}).with_columns(pl.Series("y", ["a", "b"] * 6))
    frame.write_csv(tmp_path / "w.csv")
    out = tmp_path / "w.likely"
    done = run("fit", tmp_path / "w.csv", "--target", "y", "--models", "diagonal", "--no-baselines", "--cv", 2,
               "-o", out)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    again = lk.load(out)
    assert list(again.schema) == names and again.predict(frame).shape == (12,)


def test_names_that_no_file_could_hold_are_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("likely.io.container.MAX_NOTE", 1000)
    write(mixed_frame(60), tmp_path / "t.csv")
    done = run("fit", tmp_path / "t.csv", "--target", "sick", "-o", tmp_path / "m.likely")
    assert done.exit_code == 3 and "names and levels of columns may take 1,000 bytes" in done.stderr


def worded(columns: int) -> pl.DataFrame:
    cells = np.random.default_rng(0).choice(["red", "green", "blue"], (12, columns))
    return pl.DataFrame({f"c{j}": cells[:, j] for j in range(columns)})


@pytest.mark.slow
def test_more_columns_of_words_than_a_file_can_hold_are_refused_before_the_work(tmp_path, monkeypatch):
    path = write(worded(600).with_columns(pl.Series("y", ["a", "b"] * 6)), tmp_path / "t.csv")
    monkeypatch.setattr("likely.cli.fitting.fit_run.compared", lambda *args: pytest.fail("the work has begun"))
    done = run("fit", path, "--target", "y", "-o", tmp_path / "m.likely")
    assert done.exit_code == 3 and "t.csv: a model file can hold about 576 categorical columns, got 600" in done.stderr


def test_what_a_column_of_words_takes_of_a_file_is_as_expected():
    from likely.automl.candidates import model_candidates
    from likely.automl.table_classifier import TableClassifier
    from likely.cli.fitting.table_data import PARTS_OF_WORDS, described
    from likely.data.table import Table
    from likely.io import schema as schema_of_files
    from likely.io.json_nodes import Writer

    def taken(columns: int) -> tuple[int, int, int]:
        table = Table.of(worded(columns))
        schema = table.schema()
        naive = next(
            r for r in model_candidates({name: e["kind"] for name, e in schema.items()}) if r.key == "naive-bayes"
        )
        writer = Writer(schema_of_files)
        node = writer.node(TableClassifier.from_fitted(naive.estimator.fit(table.frame, ["a", "b"] * 6), schema))
        return writer.count, len(json.dumps(node)), described(table)

    few, many = taken(4), taken(8)
    assert many[0] - few[0] == 4 * PARTS_OF_WORDS
    assert many[2] - few[2] == pytest.approx(many[1] - few[1], rel=0.1)
