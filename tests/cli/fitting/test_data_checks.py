"""Hazards in a table and its costs: leaks, zeros for missing, odd costs."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from likely.automl.model_comparison import ComparisonTask
from likely.cli.fitting.data_checks import leaks, odd_costs, odd_zeros
from likely.decision.cost import Cost
from tests.cli.tables import run, write


def field_of(columns, y, cv=5):
    classes, labels = np.unique(y, return_inverse=True)
    return ComparisonTask.of(pl.DataFrame(columns), classes, labels, cv)


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng, y, {"a": rng.normal(y), "b": rng.normal(y), "word": rng.choice(["u", "v"], n)}


@pytest.mark.parametrize("cv", [5, 0.3, "leave-one-out"])
def test_a_column_that_tells_the_label_is_named(cv):
    rng, y, columns = rows()
    copies = {
        "number": y.astype(float), "words": np.where(y, "yes", "no"), "noisy": y + rng.normal(0, 0.01, 200),
        "gone": pl.Series(np.where(y, rng.normal(size=200), np.nan)).fill_nan(None),  # whether it is missing tells
    }  # fmt: skip
    for name, copy in copies.items():
        (told,) = leaks(field_of({**columns, name: copy}, y, cv))
        assert told.startswith(f'Column "{name}" alone predicts the label of 100.0%') and f'--ignore "{name}"' in told
    both = list(leaks(field_of({**columns, "one": y.astype(float), "two": y * 3.0}, y, cv)))
    assert len(both) == 2  # a copy of a leak does not hide it


def test_good_columns_rare_classes_and_few_rows_are_no_leak():
    rng, y, columns = rows()
    assert not list(leaks(field_of(columns, y)))
    easy = {f"x{j}": 10.0 * y + rng.normal(size=200) for j in range(3)}
    assert not list(leaks(field_of(easy, y)))  # all columns tell it: the task is easy
    rare = (np.arange(200) % 67 == 0).astype(int)
    assert not list(leaks(field_of(columns, rare)))  # always saying 0 is nearly right
    few = {name: np.asarray(column)[:30] for name, column in {**columns, "leak": y.astype(float)}.items()}
    assert not list(leaks(field_of(few, y[:30])))
    codes = {**columns, "code": [f"c{i}" for i in range(200)]}
    assert not list(leaks(field_of(codes, y)))  # a level a row says nothing of rows not seen


def test_zeros_that_stand_apart_are_suspected():
    rng = np.random.default_rng(0)
    weight = np.where(rng.random(400) < 0.3, 0.0, rng.normal(70, 10, 400).round(1))
    assert odd_zeros(pl.Series(weight)) == pytest.approx((weight == 0).mean())
    fine = {
        "from zero on": rng.exponential(1.0, 400) * (rng.random(400) < 0.7), "counts": rng.poisson(3, 400) * 1.0,
        "grades": rng.integers(0, 6, 400) * 10.0, "signed": np.where(rng.random(400) < 0.3, 0.0, rng.normal(size=400)),
        "percent": rng.integers(0, 101, 400) * 1.0, "none": rng.normal(70, 10, 400),
        "mostly": np.where(rng.random(400) < 0.9, 0.0, rng.normal(70, 10, 400)),
    }  # fmt: skip
    assert [name for name, column in fine.items() if odd_zeros(pl.Series(column))] == []


def test_zeros_of_pima_are_named(data_dir):
    table = pl.read_csv(data_dir / "tables" / "pima_keel.csv", infer_schema_length=None)
    assert [name for name in table.columns[:-1] if odd_zeros(table[name])] == ["x1", "x2", "x3", "x4", "x5"]


def test_odd_costs_are_reported():
    classes = np.array(["a", "b"])
    told = {
        name: " ".join(odd_costs(Cost(table, actions), classes))
        for name, table, actions in (
            ("usual", [[0, 5], [1, 0]], ()), ("asking", [[0, 5], [1, 0], [0.5, 0.5]], ("ask",)),
            ("gain", [[0, 1], [1, -5]], ()), ("trivial", [[0, -5], [1, 0]], ()), ("swapped", [[5, 0], [0, 1]], ()),
            ("dear", [[2, 5], [3, 0]], ()), ("useless", [[0, 5], [1, 0], [2, 6]], ("ask",)),
        )
    }  # fmt: skip
    assert told["usual"] == told["asking"] == ""
    assert 'deciding "b" where "b" is true costs -5' in told["gain"] and "cheapest whatever" not in told["gain"]
    assert 'Deciding "a" is cheapest whatever is true' in told["trivial"]
    assert 'Where "a" is true, deciding "b" costs less than deciding "a" (0 against 5)' in told["swapped"]
    assert told["dear"] == 'Deciding "a" costs 2 even where it is right: costs are taken as they stand.'
    assert 'Deciding "ask" is never the cheapest' in told["useless"]


@pytest.mark.slow
def test_fit_report_and_card_name_the_hazards(tmp_path):
    _, y, columns = rows()
    rng = np.random.default_rng(1)
    columns |= {"leak": y * 2.5, "bmi": np.where(rng.random(200) < 0.2, 0.0, rng.normal(30, 4, 200).round(2))}
    path = write(pl.DataFrame(columns).with_columns(pl.Series("y", np.where(y, "p", "q"))), tmp_path / "t.csv")
    (tmp_path / "cost.csv").write_text("action,p,q\np,0,-5\nq,1,0\n")
    done = run("fit", path, "--target", "y", "--cost", tmp_path / "cost.csv", "--models", "prior,naive-bayes",
               "-o", tmp_path / "m", "--report", tmp_path / "r.html", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    card, page = run("card", tmp_path / "m").stdout, (tmp_path / "r.html").read_text(encoding="utf-8")
    listed = " ".join(json.loads(done.stdout)["warnings"])
    for words in ("alone predicts the label of 100.0%", "Zeros may mean missing", "is cheapest whatever is true"):
        assert all(words in text for text in (done.stderr, page, card, listed))
    assert "say little about the target" not in done.stderr


@pytest.mark.slow
def test_a_calibration_that_gains_little_is_no_hazard(tmp_path):
    rng = np.random.default_rng(2)
    y = np.arange(400) % 2
    common = rng.normal(0, 1.6, 400) + y
    table = pl.DataFrame({f"x{j}": common + rng.normal(0, 0.05, 400) for j in range(6)})
    path = write(table.with_columns(pl.Series("y", np.where(y, "a", "b"))), tmp_path / "t.csv")
    for model, said in ("diagonal", True), ("pooled", False):  # one is far too sure
        done = run("fit", path, "--target", "y", "--models", model, "-o", tmp_path / "m", "--json")
        warnings = " ".join(json.loads(done.stdout)["warnings"])
        assert ("uncalibrated probabilities were poor" in warnings) == said
