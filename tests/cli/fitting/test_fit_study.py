"""Reports, cards and explanations of sequences and recordings, by the commands that make those of tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import likely as lk
from tests.cli.fitting.test_sequence_input import ROLES, walks
from tests.cli.fitting.test_sequence_models_in_use import glides
from tests.cli.tables import mixed_frame, run, write
from tests.report.test_report import Page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """walks.csv, and a classifier and a chain of it with their reports."""
    at = tmp_path_factory.mktemp("study")
    write(walks(), at / "walks.csv")
    for name, more in {
        "gait": ("--target", "gait", "--columns", "x,y,mark", "--n-states", 2, "--reject-cost", 0.3, "--novelty", 0.1),
        "hidden": ("--columns", "x", "--n-states", 3),
        "phase": ("--states-column", "phase", "--columns", "x,mark"),
    }.items():
        done = run("fit", at / "walks.csv", *ROLES, *more, "-o", at / f"{name}.likely", "--report", at / f"{name}.html",
                   "--json")  # fmt: skip
        assert done.exit_code == 0, done.stderr
        (at / f"{name}.json").write_text(done.stdout)
    return at


def page_of(path: Path) -> tuple[Page, str]:
    page = Page(path.read_text(encoding="utf-8"))
    return page, " ".join(" ".join(page.words).split())


# ----------------------------------------------------------------------------- reports


def test_the_report_of_sequences_has_all_but_the_map(folder):
    page, words = page_of(folder / "gait.html")
    wanted = "data aside leaderboard confusion calibration roc coverage drivers worst reproduce".split()
    assert [name for name in page.ids if f"{name}-title" in page.ids] == wanted
    assert "24 sequences" in words and "held-out sequences" in words and "per sequence" in words
    assert "2 states per class" in words and "rows" not in words.replace("Rows are true classes", "")
    facts = json.loads((folder / "gait.json").read_text())
    assert facts["fingerprint"] in words and f"{facts['frames']:,} frames in all" in words
    assert facts["files"]["report"] == str(folder / "gait.html")


def test_importance_of_columns_of_sequences_is_the_cost_without_them(folder):
    """x alone tells the classes apart: only without it do costs rise."""
    from likely.cli.console import Console
    from likely.cli.fitting.fit_job import Job
    from likely.cli.fitting.fit_run import comparison_run, read_data
    from likely.cli.fitting.fit_study import study_of

    job = Job((str(folder / "walks.csv"),), "gait", True, "who", "t", columns=("x", "mark"), n_states=2, cv=3)
    study = study_of(comparison_run(read_data(job), Console(quiet=True)))
    rise = {driver.column: driver.increase for driver in study.importance}
    assert set(rise) == {"x", "mark"} and rise["x"] > 0.2 and abs(rise["mark"]) < 0.1
    assert study.unit == "sequence" and study.plane is None and study.frames == len(walks())
    assert {case.row for case in study.worst} <= set(walks()["who"]) and {"frames", "x", "mark"} == set(
        study.worst[0].cells
    )
    x, total = next(column for column in study.columns if column.name == "x"), len(walks())
    assert np.asarray(x.counts).sum() == total and x.missing == 0


def test_the_report_of_a_chain_is_its_card(folder):
    page, words = page_of(folder / "hidden.html")
    assert "hidden Markov model of sequences in" in words and "How the number of states was chosen" in words
    assert "It was given." in words and ("h1", {}) in page.tags
    _, known = page_of(folder / "phase.html")
    assert "States were known in training" in known


def test_evaluate_writes_a_report_of_sequences(folder, tmp_path):
    done = run("evaluate", folder / "gait.likely", folder / "walks.csv", "--report", tmp_path / "r.html")
    assert done.exit_code == 0, done.stderr
    _, words = page_of(tmp_path / "r.html")
    assert "gait.likely on walks.csv" in words and "24 sequences" in words and "Largest errors" in words


def test_rows_without_weight_are_not_in_the_report(tmp_path):
    """Rows of weight 0 are not there: the report wanted a label for each of them."""
    frame = mixed_frame(120).with_columns(w=pl.Series(np.arange(120) % 4 > 0).cast(int))
    done = run("fit", write(frame, tmp_path / "t.csv"), "--target", "sick", "--weight", "w", "--cv", 2,
               "--models", "naive-bayes", "-o", tmp_path / "m", "--report", tmp_path / "r.html")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "90 rows with a known" in page_of(tmp_path / "r.html")[1]


# ------------------------------------------------------------------------------- cards


def test_the_card_of_sequences_has_the_chapters_of_a_table(folder):
    text = run("card", folder / "gait.likely").stdout
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## What it is", "## Intended use", "## Data", "## How it was chosen", "## Performance",
        "## Costs and reject options", "## Warnings", "## Limitations", "## How to reproduce",
    ]  # fmt: skip
    facts = json.loads((folder / "gait.json").read_text())
    assert facts["fingerprint"] in text and facts["command"] in text and "| up | 12 |" in text
    assert "24 sequences of" in text and "| mark | category | 0 | 2 |" in text and "cost per sequence" in text
    assert "for rows" not in text and "novel sequences" in text


def test_the_card_of_a_chain_tells_its_states(folder):
    text = run("card", folder / "hidden.likely").stdout
    assert "with 3 states; frames have 1 column." in text and "## States" in text and "nats per frame" in text
    known = run("card", folder / "phase.likely").stdout
    assert "States were known in training" in known and "held-out frames" in known


def test_the_card_needs_a_record(folder, tmp_path):
    lk.save(lk.load(folder / "gait.likely").classifier_, tmp_path / "m")
    done = run("card", tmp_path / "m")
    assert done.exit_code == 4 and "no record of how" in done.stderr
    lk.save(lk.load(folder / "hidden.likely").model_, tmp_path / "m")
    assert "no record of how" in run("card", tmp_path / "m").stderr


# ------------------------------------------------------------------------ explanations


def test_explain_says_which_frames_of_a_sequence_decide(folder):
    done = run("explain", folder / "gait.likely", folder / "walks.csv", "--sequence", "w03", "--row", 1)
    assert done.exit_code == 0, done.stderr
    read = lk.read_sequences(folder / "walks.csv", id="who", time="t", columns=["x", "y", "mark"])
    assert done.stdout.startswith(f"sequence {read.ids[0]}: ") and "\nsequence w03: up" in done.stdout
    assert done.stdout.count("frames with the most evidence") == 2 and "all frames" in done.stdout
    (line,) = run(
        "explain", folder / "gait.likely", folder / "walks.csv", "--sequence", "w03", "--json"
    ).stdout.splitlines()
    told, frames = json.loads(line), walks().filter(pl.col("who") == "w03").sort("t")
    assert told["sequence"] == "w03" and len(told["frames"]) == len(frames)
    most = int(np.argmax(told["frames"]))
    assert frames["phase"][most] == "peak" and told["columns"][0]["column"] == "x"  # the peak tells up from down
    model = lk.load(folder / "gait.likely")
    at = read.ids.tolist().index("w03")
    joint = model.classifier_.model_.log_joint(model.classifier_._rows(model.frames(read)[at : at + 1]))[0]
    assert told["prior_log_odds_before"] + sum(told["frames"]) == pytest.approx(joint[1] - joint[0])


def test_explain_marks_sequences_with_unseen_levels(folder, tmp_path):
    odd = walks(2).with_columns(mark=pl.when(pl.col("t") == 2).then(pl.lit("z")).otherwise("mark"))
    done = run("explain", folder / "gait.likely", write(odd, tmp_path / "odd.csv"))
    assert 'novel: a value of "mark" was not seen in training' in done.stdout


def test_explain_says_what_it_cannot(folder, tmp_path):
    def explained(model, *more):
        done = run("explain", model, folder / "walks.csv", *more)
        return done.exit_code, done.stderr

    code, words = explained(folder / "gait.likely", "--sequence", "w99")
    assert code == 3 and 'there must be a sequence "w99"' in words
    code, words = explained(folder / "gait.likely", "--row", 25)
    assert code == 3 and "there are 24 sequences" in words
    code, words = explained(folder / "gait.likely", "--allow-missing")
    assert code == 2 and "--allow-missing is for models of rows" in words
    code, words = explained(folder / "hidden.likely")
    assert code == 3 and "a classifier is needed" in words
    x = [np.sin(np.arange(9.0) + i) for i in range(4)]
    lk.save(lk.DTWClassifier().fit(x, list("abab")), tmp_path / "dtw")
    code, words = explained(tmp_path / "dtw", "--columns", "x")
    assert code == 4 and "needs a hidden Markov model per class" in words


# ------------------------------------------------------------------------------ recordings


@pytest.mark.slow
def test_recordings_have_report_and_card_and_no_explanation(tmp_path):
    where = glides(tmp_path / "words", 6, 0)
    done = run("fit", where, "--sequences", "--n-states", 2, "--n-components", 1, "-o", tmp_path / "m.likely",
               "--report", tmp_path / "r.html")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    page, words = page_of(tmp_path / "r.html")
    assert "Deciding “word” from words" in words and "held-out recordings" in words
    assert "drivers" not in page.ids and "plane" not in page.ids and "worst" in page.ids and "/0.wav" in words
    card = run("card", tmp_path / "m.likely").stdout
    assert "A classifier of recordings by `word` (2 classes)." in card and "speakers, microphones" in card
    assert lk.load(tmp_path / "m.likely").card["fingerprint"] in card
    done = run("explain", tmp_path / "m.likely", where)
    assert done.exit_code == 4 and "takes a model of rows or sequences" in done.stderr
    done = run("evaluate", tmp_path / "m.likely", where, "--report", tmp_path / "e.html")
    assert done.exit_code == 0 and "these are the training recordings" in done.stderr and page_of(tmp_path / "e.html")
