"""`likely show`: how rows are compared, with what, and whether the file gives rows away."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import likely as lk
from tests.cli.tables import run

HELD = "This file holds {} of its training data"
Y = np.repeat(["calm", "wild"], 30)


def rows() -> pl.DataFrame:
    X = np.random.default_rng(0).normal(size=(60, 3)) + 2.0 * (Y == "wild")[:, None]
    return pl.DataFrame(X, schema=["height", "width", "depth"])


def shown(path, made) -> str:
    lk.save(made, path)
    done = run("show", path)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("made", "words"), [
    (lk.KNeighborsClassifier(7, "manhattan"), ("nearest of 60 rows: k = 7\n", "l1 (sum", "count alike")),
    (lk.KNeighborsClassifier("leave-one-out", "lp", p=4.0, criterion="log"),
     ("leave-one-out cross-validation: largest", "p = 4")),
    (lk.KNeighborsClassifier(3, prototypes="edited", weights="distance"), ("(edited, of 60)", "count 1 / distance")),
    (
        lk.NearestCentroidClassifier("scaled", "median"),
        ("the median of each class", "scaled (columns", "centers", "height"),
    ),
    (
        lk.BayesClassifier(lk.KernelDensity(kernel="t", dof=5.0)),
        ("kernel t, 5 degrees", "bandwidth leave-one-out", "relative bandwidth\n"),
    ),
    (lk.BayesClassifier(lk.KernelDensity(kernel="elliptical")), ("kernel elliptical gaussian", "unit class")),
    (lk.BayesClassifier(lk.KNNDensity(4, metric="linf")), ("k 4", "metric linf, standardized columns")),
])  # fmt: skip
def test_show_tells_how_rows_are_compared_and_that_they_are_kept(tmp_path, made, words):
    text = shown(tmp_path / "m", made.fit(rows(), Y))
    assert all(word in text for word in (*words, HELD.format("rows"))), text


def test_show_describes_centers_and_kernels_as_they_are(tmp_path):
    near = lk.NearestCentroidClassifier().fit(rows(), Y)
    text = shown(tmp_path / "m", near)
    line = next(line for line in text.split("centers")[1].splitlines() if "wild" in line)
    assert [float(cell) for cell in line.split()[1:]] == pytest.approx(near.centers_[1], rel=5e-3)
    clf = lk.BayesClassifier(lk.KernelDensity()).fit(rows(), Y)
    lines = shown(tmp_path / "m", clf).split("relative bandwidth\n")[1].splitlines()[:2]
    told = [float(line.split()[-1]) for line in lines]
    assert told == pytest.approx(clf.model_.components.relative_bandwidth, rel=5e-3)


def test_show_tells_of_fishers_axes(tmp_path):
    clf = lk.FisherDiscriminant().fit(rows(), Y)
    text = shown(tmp_path / "m", clf)
    assert (
        f"{clf.ratios_[0]:.3g}" in text and "loadings" in text and " nan" not in text and "This file holds" not in text
    )


@pytest.mark.parametrize(("made", "held"), [
    (lk.KernelDensity(), "rows"), (lk.LaplaceDensity(), "values of columns"), (lk.GaussianDensity(), None),
    (lk.MixtureDensity(lk.LaplaceDensity(), 2, random_state=0), "values of columns"),
])  # fmt: skip
def test_show_says_what_a_file_gives_away(tmp_path, made, held):
    text = shown(tmp_path / "m", made.fit(rows()))
    assert (HELD.format(held) in text) if held else ("This file holds" not in text)
    assert json.loads(run("show", tmp_path / "m", "--json").stdout)["holds"] == (held or "sums")


def test_summaries_name_kernels_and_neighbors():
    facts = lk.KernelDensity(kernel="t", relative_bandwidth=0.7).fit(rows()).summary().facts
    assert (facts["kernel"], facts["bandwidth"], facts["unit"]) == ("t, 3 degrees of freedom", "fixed", "pooled")
    assert lk.KNNDensity(6).fit(rows()).summary().facts["k"] == "6"
    assert "kernel" not in lk.GaussianDensity().fit(rows()).summary().facts


def test_the_help_of_fit_names_models_by_distance():
    text = run("fit", "--help").stdout
    assert "nearest-centroid" in text and "k-nearest-neighbors" in text


def test_the_help_of_fit_names_every_model():
    from likely.automl.candidates import NAMES
    from likely.cli.fit import EPILOG

    listed = EPILOG.split("ordered from simple to complex:")[1].split("logistic.")[0] + "logistic"
    named = listed.replace("; for comparison", ",").replace("\n", " ").split(",")
    assert [name.strip() for name in named] == list(NAMES)  # in the order of the candidates


def test_show_tells_the_false_alarm_rate_that_the_rows_support(tmp_path):
    """It repeated the setting, 0.01, which 60 rows cannot set."""
    with pytest.warns(lk.FitWarning, match=r"0\.01 is too small for 60 rows; 0\.016 is used"):
        few = lk.BayesClassifier(novelty=0.01).fit(rows(), Y)
    text = shown(tmp_path / "m", few)
    assert "with a false-alarm rate of 0.016 (0.01 was requested; 60 rows support no less)" in text
    assert "with a false-alarm rate of 0.05\n" in shown(
        tmp_path / "m", lk.NearestCentroidClassifier(novelty=0.05).fit(rows(), Y)
    )
