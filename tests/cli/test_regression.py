"""Commands on a table whose target is a number."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_diabetes

import likely as lk
from tests.cli.tables import run, write


def frame() -> pl.DataFrame:
    data = load_diabetes(scaled=False)
    columns = {name: data.data[:, j] for j, name in enumerate(data.feature_names[:5])}
    sex = ["one" if v == 1 else "two" for v in columns.pop("sex")]
    return pl.DataFrame({**columns, "sex": sex, "progression": data.target})[:200]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """diabetes.csv, and the model and report that `likely fit` makes of it."""
    folder = tmp_path_factory.mktemp("diabetes")
    write(frame(), folder / "diabetes.csv")
    done = run("fit", folder / "diabetes.csv", "--target", "progression", "--no-baselines", "--cv", 3, "--models",
               "mean,linear,bayesian,splines", "-o", folder / "model.likely", "--report", folder / "report.html",
               "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (folder / "fit.json").write_text(done.stdout)
    (folder / "fit.txt").write_text(done.stderr)
    return folder


def test_fit_says_what_it_takes_the_target_for_and_what_it_chose(folder):
    text, told = (folder / "fit.txt").read_text(), json.loads((folder / "fit.json").read_text())
    assert (
        "regression: " in text and "different numbers" in text and "is chosen: it has a root mean squared error" in text
    )
    assert told["task"] == "regression" and told["criterion"] == "loss" and told["chosen"] in ("linear", "bayesian")
    assert {line["key"] for line in told["leaderboard"]} == {"mean", "linear", "bayesian", "splines"}
    assert told["figures"]["rows"] == 200 and 0.85 < told["figures"]["coverage"]["value"] < 0.96
    model = lk.load(folder / "model.likely")
    assert type(model).__name__ == "TableRegressor" and model.calibration_.rows == 200


def test_the_report_has_its_sections_and_no_script(folder):
    page = (folder / "report.html").read_text()
    for part in ("residuals", "calibration", "effects", "bands", "leaderboard", "worst", "drivers", "reproduce"):
        assert f'id="{part}"' in page
    assert (
        "<script" not in page
        and "root mean squared error of" in page
        and "nan" not in page.lower().replace("finance", "")
    )


def test_predict_writes_mean_interval_quantiles_and_decision(folder):
    args = ("predict", folder / "model.likely", folder / "diabetes.csv")
    how = ("--level", 0.8, "--quantiles", "0.1,0.9", "--loss", "asymmetric", "--over", 3, "--under", 1)
    done = run(*args, *how, "--keep", "bmi")
    table, model = pl.read_csv(io.StringIO(done.stdout)), lk.load(folder / "model.likely")
    assert table.columns == ["bmi", "mean", "low", "high", "decision", "q0.1", "q0.9", "novel", "reason"]
    np.testing.assert_allclose(table["mean"], model.predict(frame()))
    np.testing.assert_allclose(table.select("low", "high").to_numpy().T, model.interval(frame(), 0.8))
    np.testing.assert_allclose(table["decision"], model.quantiles(frame(), 0.25)[0])
    np.testing.assert_allclose(table["low"], table["q0.1"])
    lines = [json.loads(line) for line in run(*args, "--json").stdout.splitlines()]
    assert len(lines) == 200 and list(lines[0]) == ["mean", "low", "high", "novel", "reason"]


def test_a_level_that_was_not_seen_is_marked(folder, tmp_path):
    write(frame()[:2].with_columns(sex=pl.Series(["three", "one"])), tmp_path / "new.csv")
    table = pl.read_csv(io.StringIO(run("predict", folder / "model.likely", tmp_path / "new.csv").stdout))
    assert table["novel"].to_list() == [True, False] and '"sex"' in table["reason"][0]


def test_evaluate_explain_show_and_card(folder, tmp_path):
    done = run("evaluate", folder / "model.likely", folder / "diabetes.csv", "--json", "--report", tmp_path / "r.html")
    told = json.loads(done.stdout)
    assert told["rmse"]["value"] > 0 and "training rows" in done.stderr and (tmp_path / "r.html").exists()
    text = run("explain", folder / "model.likely", folder / "diabetes.csv", "--row", 2).stdout
    assert "bmi" in text and "all columns at their mean" in text
    record = json.loads(run("explain", folder / "model.likely", folder / "diabetes.csv", "--json").stdout)
    assert record["prediction"] == pytest.approx(record["base"] + sum(record["contributions"].values()), rel=1e-6)
    assert "held-out rows" in run("show", folder / "model.likely").stdout
    card = run("card", folder / "model.likely").stdout
    assert "A regression of the number `progression`" in card and "coverage of 90% intervals" in card


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (("novelty", "diabetes.csv", "--model", "model.likely"), "regression of the target alone"),
        (("predict", "model.likely", "diabetes.csv", "--novelty", "0.1"), "is for classifiers"),
        (("predict", "model.likely", "diabetes.csv", "--loss", "asymmetric"), "needs --over and --under"),
        (("predict", "model.likely", "diabetes.csv", "--quantiles", "2"), "between 0 and 1"),
        (("fit", "diabetes.csv", "--target", "progression", "--cost", "diabetes.csv"), "is for classification"),
        (("fit", "diabetes.csv", "--target", "sex", "--loss", "absolute"), "is for regression"),
        (("fit", "diabetes.csv", "--target", "sex", "--task", "regression"), "is not a number"),
        (("fit", "diabetes.csv", "--target", "progression", "--criterion", "error"), "is for classification"),
        (("fit", "diabetes.csv", "--target", "progression", "--over", "2"), "--loss asymmetric"),
        (("fit", "diabetes.csv", "--target", "progression", "--models", "full"), "names of models are mean, linear"),
    ],
)
def test_what_does_not_go_together_is_told(folder, args, match):
    named = [folder / a if a.endswith((".csv", ".likely")) else a for a in args]
    done = run(*named, *(("-o", folder / "x.likely") if args[0] == "fit" else ()))
    assert done.exit_code != 0 and match in done.stderr, done.stderr


def fitted(tmp_path, columns, *args):
    write(pl.DataFrame(columns), tmp_path / "t.csv")
    done = run("fit", tmp_path / "t.csv", "--target", "y", "--no-baselines", "-o", tmp_path / "m.likely", *args)
    return done, (lk.load(tmp_path / "m.likely") if done.exit_code == 0 else None)


X = np.random.default_rng(0).standard_normal(40)
Y = 2 * X + np.random.default_rng(1).standard_normal(40)


def test_a_constant_target_and_missing_targets(tmp_path):
    done, _ = fitted(tmp_path, {"x": X, "y": np.full(40, 3.5)}, "--task", "regression")
    assert done.exit_code == 3 and "at least two different numbers are needed, got only 3.5" in done.stderr
    done, model = fitted(tmp_path, {"x": X, "y": [None if i < 4 else v for i, v in enumerate(Y)]}, "--models", "linear")
    assert "4 rows without a target were excluded" in done.stderr and model.card["rows"] == 36


@pytest.mark.parametrize(
    ("y", "task"), [(Y, "regression"), (np.round(Y), "classification"), (np.arange(40) * 7, "regression")]
)
def test_the_target_decides_about_the_task(tmp_path, y, task):
    done, model = fitted(tmp_path, {"x": X, "y": y}, "--models", "mean" if task == "regression" else "prior")
    assert done.exit_code == 0 and ("Regressor" in type(model).__name__) == (task == "regression")


@pytest.mark.parametrize(
    ("columns", "args"),
    [
        ({"x": [1.0, 2.0, 3.0], "y": [1.5, 2.7, 9.1]}, ("--task", "regression")),
        ({"x": X + 1e12, "y": Y + 1e15}, ("--models", "mean,linear,bayesian")),
        (
            {"x": np.tile(X[:5], 8), "y": np.tile(Y[:5], 8)},
            ("--task", "regression", "--models", "linear,k-nearest-neighbors"),
        ),
        ({"x": X, "y": 3 * X + 1}, ("--models", "linear,bayesian,splines")),
        ({"x": X, "z": X, "y": Y}, ("--models", "linear,ridge")),
        (
            {"x": X, "when": [f"2024-01-{1 + i % 28:02d}" for i in range(40)], "y": Y},
            ("--time", "when", "--models", "ridge"),
        ),
        ({"x": X * 1e150, "y": Y * 1e150}, ("--models", "mean,bayesian")),
        ({"x": X, "w": np.arange(40) % 3, "y": Y}, ("--weight", "w", "--models", "linear,k-nearest-neighbors")),
    ],
    ids=["three rows", "offsets", "copies", "exact", "collinear", "time", "huge", "weights"],
)
def test_odd_tables_give_finite_answers(tmp_path, columns, args):
    done, model = fitted(tmp_path, columns, *args)
    assert done.exit_code == 0, done.stderr
    assert np.isfinite(model.predict(pl.DataFrame(columns))).all()
    assert np.isfinite(model.interval(pl.DataFrame(columns))).all() and "nan" not in done.stderr


def test_the_loss_decides_what_is_minimized(tmp_path):
    done, model = fitted(
        tmp_path, {"x": X, "y": Y}, "--models", "linear", "--loss", "asymmetric", "--over", 3, "--under", 1
    )
    assert "asymmetric loss (3 per unit too high, 1 per unit too low)" in done.stderr
    np.testing.assert_allclose(model.decide({"x": X}), model.quantiles({"x": X}, 0.25)[0])
    done, _ = fitted(tmp_path, {"x": X, "y": Y}, "--models", "linear,mean", "--choose-by", "interval-score")
    assert "has an interval score of" in done.stderr and "difference: interval-score" in done.stderr


@pytest.mark.slow
def test_a_rival_that_wins_is_said_and_ours_is_written(tmp_path):
    rng = np.random.default_rng(0)
    x, z = rng.uniform(0, 1, (2, 400))
    y = np.where((x > 0.5) ^ (z > 0.5), 5.0, 0.0) + 0.1 * rng.standard_normal(400)
    write(pl.DataFrame({"x": x, "z": z, "y": y}), tmp_path / "t.csv")
    done = run(
        "fit", tmp_path / "t.csv", "--target", "y", "--models", "mean,linear,boosting", "-o", tmp_path / "m.likely"
    )
    assert "by the same rule gradient boosting would be chosen, but it cannot be written to a file" in done.stderr
    assert "structure that none of the models of likely captures" in done.stderr
    assert lk.load(tmp_path / "m.likely").card["chosen"] in ("mean", "linear")
