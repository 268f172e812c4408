"""`likely predict` of a row imports scikit-learn, Numba and other large packages only where the model needs them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.automl.candidates import model_candidates
from likely.data.table import Table

N = 40
Y = np.where(np.arange(N) % 2, "a", "b")
NEVER = ("sklearn", "narwhals", "pandas", "joblib", "scipy.optimize", "scipy.stats", "scipy.spatial", "matplotlib")
SEARCHES = ("kernel-density", "k-nearest-neighbors")  # in a tree, whose loops are compiled
ASK = """
import contextlib, io, sys
from likely.cli.main import likely
rows, *models = sys.argv[1:]
for model in models:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        likely.main({command}, standalone_mode=False)
    assert out.getvalue().strip(), model
    print(model, *(name for name in {heavy} if name in sys.modules))
"""


def tables():
    rng = np.random.default_rng(0)
    numbers = {"size": rng.normal(size=N) + (Y == "a"), "weight": rng.normal(size=N)}
    words = {"color": rng.choice(["red", "blue", "green"], N), "shape": rng.choice(["round", "long"], N)}
    return {"numbers": numbers, "mixed": {**numbers, "visits": rng.poisson(3, N), **words}}


def imported(command, heavy, rows, models):
    """What each model has imported of the heavy packages, one model after the other in one process."""
    code = ASK.format(command=command, heavy=heavy)
    ran = subprocess.run(
        [sys.executable, "-c", code, str(rows), *map(str, models)], capture_output=True, text=True, check=True
    )
    return {line.split()[0]: line.split()[1:] for line in ran.stdout.splitlines()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", ["numbers", "mixed"])
def test_models_of_fit_score_a_row_without_scikit_learn(table, tmp_path):
    columns = tables()[table]
    kinds = {name: entry["kind"] for name, entry in Table.of(columns).schema().items()}
    pl.DataFrame(columns)[:1].write_csv(tmp_path / "row.csv")
    for candidate in model_candidates(kinds, rows=[N / 2, N / 2]):
        model = lk.TableClassifier(candidate.estimator, calibrate=candidate.key == "full").fit(columns, Y)
        model.save(tmp_path / f"{candidate.key}.likely")
    files = sorted(tmp_path.glob("*.likely"), key=lambda path: (path.stem in SEARCHES, path.stem))
    assert len(files) > 10
    found = imported('["predict", model, rows]', (*NEVER, "numba"), tmp_path / "row.csv", files)
    assert len(found) == len(files)
    for path, names in found.items():
        assert set(names) <= ({"numba"} if any(f"/{key}." in path for key in SEARCHES) else set()), path


@pytest.mark.slow
@pytest.mark.parametrize("command", ['["predict", model, rows, "--novelty", "0.05"]', '["explain", model, rows]'])
def test_a_classifier_saved_from_python_scores_a_row_without_scikit_learn(command, tmp_path):
    columns = tables()["numbers"]
    frame = pl.DataFrame(columns)
    frame[:1].write_csv(tmp_path / "row.csv")
    lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(frame, Y).save(tmp_path / "m.likely")
    found = imported(command, (*NEVER, "numba"), tmp_path / "row.csv", [tmp_path / "m.likely"])
    assert list(found.values()) == [[]]


@pytest.mark.slow
def test_a_model_is_loaded_and_shown_without_polars(tmp_path):
    lk.BayesClassifier().fit(pl.DataFrame(tables()["numbers"]), Y).save(tmp_path / "m.likely")
    frames = np.random.default_rng(0).normal(size=(40, 2))
    lk.HMMDensity(n_states=2, random_state=0).fit(frames).save(tmp_path / "h.likely")
    models = [tmp_path / "m.likely", tmp_path / "h.likely"]
    found = imported('["show", model]', (*NEVER, "numba", "polars"), tmp_path, models)
    assert list(found.values()) == [[], []]


@pytest.mark.slow
def test_a_loaded_classifier_predicts_without_scikit_learn(tmp_path):
    X = np.random.default_rng(0).normal(size=(N, 3))
    lk.BayesClassifier().fit(X, Y).save(tmp_path / "m.likely")
    code = (
        "import sys, numpy as np, likely as lk\n"
        "model = lk.load(sys.argv[1])\n"
        "model.predict(np.zeros((1, 3))), model.decide(np.zeros((1, 3)), reject_below=0.9, novelty=0.05)\n"
        f"print(*(name for name in {(*NEVER, 'numba', 'polars')} if name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.likely")], capture_output=True, text=True)
    assert (run.returncode, run.stdout.split()) == (0, []), run.stderr
