"""Models of sequences in use: measured on new ones, read from pipes, several files, Python, folders of recordings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.cli.fitting.fit_job import Job
from likely.cli.fitting.sequence_data import BRIEF, SequenceData
from tests.cli.fitting.test_sequence_input import ROLES, kinds, table, walks
from tests.cli.tables import run, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """walks.csv and new.csv, a classifier, and a chain that was learned from one sequence without an id."""
    at = tmp_path_factory.mktemp("use")
    write(walks(), at / "walks.csv")
    write(walks(20, seed=7).with_columns(pl.col("who").str.replace("w", "n")), at / "new.csv")
    write(walks(1).sort("t").select("t", "x", "y"), at / "log.csv")
    gait = ("--target", "gait", "--columns", "x,y", "--n-states", 3, "--topology", "left-to-right")
    assert run("fit", at / "walks.csv", *ROLES, *gait, "-o", at / "gait.likely").exit_code == 0
    log = ("--sequences", "--time", "t", "--n-states", 2)
    assert run("fit", at / "log.csv", *log, "-o", at / "log.likely").exit_code == 0
    return at


# ---------------------------------------------------------------------------- measuring


@pytest.mark.slow
def test_evaluate_measures_on_labeled_new_sequences(folder):
    done = run("evaluate", folder / "gait.likely", folder / "new.csv", "--id", "who", "--time", "t", "--target", "gait",
               "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    read = lk.read_sequences(folder / "new.csv", id="who", time="t", columns=["x", "y"], label="gait")
    model = lk.load(folder / "gait.likely")
    P, truth = model.predict_proba(read), np.searchsorted(model.classes_, read.labels)
    assert facts["rows"] == 20 and facts["error"]["value"] == (P.argmax(axis=1) != truth).mean()
    assert facts["log_loss"]["value"] == pytest.approx(-np.log(P[np.arange(20), truth]).mean())
    told = run("evaluate", folder / "gait.likely", folder / "new.csv").stdout  # tasks as in training
    assert "20 sequences, 2 classes" in told and "of 20 sequences" in told and "rows" not in told


def test_evaluate_says_what_it_lacks(folder, tmp_path):
    odd = walks(4).with_columns(gait=pl.lit("sideways"))
    done = run("evaluate", folder / "gait.likely", write(odd, tmp_path / "odd.csv"))
    assert done.exit_code == 3 and '"sideways"' in done.stderr and 'sequence "w0' in done.stderr
    done = run("evaluate", folder / "log.likely", folder / "new.csv", "--target", "gait")
    assert done.exit_code == 3 and "a classifier is needed" in done.stderr
    done = run("evaluate", folder / "gait.likely", folder / "new.csv", "--sql", "select 1")
    assert done.exit_code == 2 and "--sql is for models of rows" in done.stderr


def test_evaluate_knows_the_training_sequences(folder):
    assert "these are the training sequences" in run("evaluate", folder / "gait.likely", folder / "walks.csv").stderr
    assert "training sequences" not in run("evaluate", folder / "gait.likely", folder / "new.csv").stderr


def test_commands_for_rows_name_the_one_for_sequences(folder, tmp_path):
    lk.save(lk.load(folder / "gait.likely").classifier_, tmp_path / "bayes.likely")
    for model in (folder / "gait.likely", folder / "log.likely", tmp_path / "bayes.likely"):
        done = run("predict", model, folder / "new.csv")
        assert done.exit_code == 4 and "likely decode" in done.stderr and "likely predict" in done.stderr


# -------------------------------------------------------------------- files and pipes


def test_an_id_of_two_files_is_two_sequences(folder, tmp_path):
    one, two = write(walks(4), tmp_path / "one.csv"), write(walks(4, seed=3), tmp_path / "two.csv")
    done = run("decode", folder / "gait.likely", one, two)
    assert table(done.stdout)["sequence"].sort().to_list() == [f"{f}:w0{i}" for f in ("one", "two") for i in range(4)]
    assert "two sequences" in done.stderr
    done = run("fit", one, two, *ROLES, "--columns", "x", "--n-states", 1, "-o", tmp_path / "m.likely", "--json")
    assert json.loads(done.stdout)["sequences"] == 8


def test_standard_input_is_a_file_like_others(folder):
    text = (folder / "log.csv").read_bytes()
    piped, named = run("decode", folder / "log.likely", "-", stdin=text), run("decode", folder / "log.likely",
                                                                             folder / "log.csv")  # fmt: skip
    assert piped.exit_code == 0, piped.stderr
    assert table(piped.stdout)["state"].equals(table(named.stdout)["state"])
    done = run("decode", folder / "gait.likely", "-", stdin=(folder / "new.csv").read_bytes())
    assert done.exit_code == 0 and table(done.stdout).height == 20
    done = run("decode", folder / "log.likely", "-", stdin=b"t,x,y\n0,much,1\n")
    assert done.exit_code == 3 and "/tmp" not in done.stderr and "--as" not in done.stderr


def test_the_time_column_comes_back_in_its_order(folder):
    got = table(run("decode", folder / "log.likely", folder / "log.csv").stdout)
    assert got.columns[:4] == ["sequence", "frame", "t", "state"] and got["t"].to_list() == sorted(got["t"].to_list())


def test_the_id_is_looked_for_among_names_not_letters(tmp_path):
    frame = walks(6).rename({"who": "id"})
    path = write(frame.select("id", "t", "x"), tmp_path / "w.csv")
    assert run("fit", path, "--sequences", "--id", "id", "--time", "t", "--n-states", 1, "-o",
               tmp_path / "m.likely").exit_code == 0  # fmt: skip
    wide = write(frame.select("x").with_columns(width=pl.lit(1.0)), tmp_path / "wide.csv")  # "width" holds "id"
    done = run("decode", tmp_path / "m.likely", wide)
    assert done.exit_code == 0 and 'no column "id"' in done.stderr and table(done.stdout)["sequence"].n_unique() == 1


# -------------------------------------------------------------------------- from Python


@pytest.mark.slow
def test_models_saved_from_python_take_columns_by_place(folder, tmp_path):
    read = lk.read_sequences(folder / "walks.csv", id="who", time="t", columns=["x", "y"], label="gait")
    chain = lk.HMMDensity(n_states=3, topology="left-to-right", random_state=0)
    bayes = lk.BayesClassifier(chain).fit(read.x, read.labels)
    models = {"bayes": bayes, "calibrated": lk.CalibratedClassifier(bayes, cv=3).fit(read.x, read.labels),
              "dtw": lk.DTWClassifier(3).fit(read.x, read.labels)}  # fmt: skip
    new = write(pl.read_csv(folder / "new.csv").select("who", "t", "x", "y"), tmp_path / "new.csv")
    values = lk.read_sequences(new, id="who", time="t").x
    for name, model in models.items():
        lk.save(model, tmp_path / f"{name}.likely")
        done = run("decode", tmp_path / f"{name}.likely", new, "--id", "who", "--time", "t")
        assert done.exit_code == 0, (name, done.stderr)
        assert table(done.stdout)["decision"].to_list() == model.predict(values).tolist()
        told = ("--id", "who", "--time", "t", "--columns", "x,y", "--target", "gait")
        assert run("evaluate", tmp_path / f"{name}.likely", folder / "new.csv", *told).exit_code == 0
    done = run("decode", tmp_path / "dtw.likely", new, "--id", "who", "--time", "t", "--novelty", 0.1)
    want = [str(choice) for choice in models["dtw"].decide(values, novelty=0.1)]
    assert done.exit_code == 0 and table(done.stdout)["decision"].to_list() == want
    done = run("decode", tmp_path / "dtw.likely", new, "--id", "who", "--time", "t", "--class-prior", "uniform")
    assert done.exit_code == 1 and "--class-prior" in done.stderr
    done = run("decode", tmp_path / "bayes.likely", new)  # who and t are columns then
    assert done.exit_code == 3 and "the model takes 2 columns" in done.stderr and "--columns" in done.stderr


def test_a_bare_chain_decodes(folder, tmp_path):
    numbers = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], lk.Gaussian([[0.0], [4.0]], 1.0))
    lk.save(numbers, tmp_path / "n.likely")
    got = table(run("decode", tmp_path / "n.likely", folder / "log.csv", "--time", "t", "--columns", "x").stdout)
    x = lk.read_sequences(folder / "log.csv", time="t", columns="x").x
    assert got["state"].to_list() == numbers.viterbi(x).states.values.tolist()
    letters = lk.HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]],
                     lk.Categorical([[0.9, 0.1], [0.1, 0.9]], levels=["a", "b"]))  # fmt: skip
    lk.save(letters, tmp_path / "l.likely")
    (tmp_path / "s.txt").write_text("a a a b b b z\n")
    done = run("decode", tmp_path / "l.likely", tmp_path / "s.txt")
    assert table(done.stdout)["state"].to_list() == [0, 0, 0, 1, 1, 1, 1] and '"z"' in done.stderr


# ----------------------------------------------------------------- nothing to learn from


def test_a_column_without_entries_is_set_aside(tmp_path):
    frame = walks(12).with_columns(never=pl.lit(None, dtype=pl.String))
    done = run("fit", write(frame, tmp_path / "w.csv"), *ROLES, "--target", "gait", "--columns", "x,never",
               "--n-states", 1, "--cv", 2, "-o", tmp_path / "m.likely", "--json")  # fmt: skip
    assert done.exit_code == 0 and kinds(json.loads(done.stdout)) == {"x": "real"}
    told = json.loads(done.stdout)
    assert told["excluded"] == {"never": "no entry at all"}
    assert 'Column "never" has no entry at all and was excluded.' in told["warnings"]
    assert 'column "never" has no entry' in done.stderr
    done = run("fit", tmp_path / "w.csv", *ROLES, "--target", "gait", "--columns", "never", "-o", tmp_path / "n.likely")
    assert done.exit_code == 3 and not (tmp_path / "n.likely").exists()


def test_where_no_model_learns_nothing_is_written(tmp_path):
    path = write(walks(12).with_columns(n=pl.col("x") - 50), tmp_path / "w.csv")
    done = run("fit", path, *ROLES, "--target", "gait", "--columns", "n", "--as", "n=count", "--n-states", 2, "-o",
               tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 3 and "nothing could be learned" in done.stderr and not (tmp_path / "m.likely").exists()


def test_one_sequence_a_class_cannot_be_tested(tmp_path):
    done = run("fit", write(walks(2), tmp_path / "w.csv"), *ROLES, "--target", "gait", "--columns", "x", "-o",
               tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 3 and "some can be held out" in done.stderr and not (tmp_path / "m.likely").exists()


def test_short_sequences_are_learned_with_one_state(tmp_path):
    frame = pl.DataFrame({"who": list("aabbccdd"), "x": np.arange(8.0), "kind": list("uuvvuuvv")})
    done = run("fit", write(frame, tmp_path / "w.csv"), "--sequences", "--id", "who", "--target", "kind", "--cv", 2,
               "-o", tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 0, done.stderr  # four frames a class


# --------------------------------------------------------------------------- choosing


@pytest.mark.slow
def test_without_a_topology_both_compete(folder, tmp_path):
    done = run("fit", folder / "walks.csv", *ROLES, "--target", "gait", "--columns", "x", "--n-states", 2, "--cv", 2,
               "--n-init", 2, "-o", tmp_path / "m.likely", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert {line["key"] for line in facts["leaderboard"]} == {"prior", "hmm-2", "hmm-2-left-to-right"}
    assert "--n-init 2" in facts["command"]
    fitted = lk.load(tmp_path / "m.likely").classifier_.density_
    assert fitted.n_init == 2 and fitted.tol == lk.HMMDensity().tol  # the winner is learned to the end


def test_fits_are_cut_short_for_numbers_only(folder, tmp_path):
    path = write(walks(6), tmp_path / "w.csv")
    numbers, mixed = (
        SequenceData.of(Job((str(path),), sequences=True, id="who", columns=names)) for names in (("x",), ("x", "mark"))
    )
    assert numbers.brief(BRIEF) == BRIEF and mixed.brief(BRIEF) == {}


def test_warnings_are_printed_without_source_lines(capsys):
    from likely.cli.main import _print_warning

    _print_warning(UserWarning("not\nconverged"), UserWarning, "somewhere.py", 7)
    assert capsys.readouterr().err == "likely: not converged\n"


def test_columns_that_look_like_tasks_are_reported(folder, tmp_path):
    path = write(walks(12).sort("who", "t"), tmp_path / "w.csv")
    done = run("fit", path, "--sequences", "--id", "who", "--columns", "t,x,gait", "--n-states", 1, "-o",
               tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 0 and "--time t" in done.stderr and "--target gait" in done.stderr
    assert "phase" not in done.stderr


def test_messages_speak_of_options(folder, tmp_path):
    for more, words in {
        ("--target", "gait"): "--id COL names the sequence of each row",
        ("--id", "who", "--target", "gate"): "--target: there must be a column",
        ("--id", "who", "--states-column", "fase"): "--states-column: there must be a column",
        ("--id", "who", "--group", "folk"): "--group: there must be a column",
    }.items():
        done = run("fit", folder / "walks.csv", "--sequences", *more, "--n-states", 1, "-o", tmp_path / "m.likely")
        assert done.exit_code == 3 and words in done.stderr, done.stderr


# ----------------------------------------------------------------------------- recordings


def glides(at: Path, n: int, seed: int) -> Path:
    """Sub-folders up and down, with n recordings each."""
    from scipy.io import wavfile

    rng, t = np.random.default_rng(seed), np.arange(3200) / 8000
    for word, (a, b) in {"up": (300, 900), "down": (900, 300)}.items():
        (at / word).mkdir(parents=True)
        for i in range(n):
            x = 0.5 * np.sin(2 * np.pi * (a + (b - a) * t) * t) + 0.002 * rng.normal(size=t.size)
            wavfile.write(at / word / f"{i}.wav", 8000, (x * 30000).astype(np.int16))
    return at


@pytest.mark.slow
def test_sub_folders_of_recordings_are_words(tmp_path):
    heard = glides(tmp_path / "heard", 4, 0)
    done = run("fit", heard, "--sequences", "--n-states", 3, "--n-components", 1, "-o", tmp_path / "w.likely", "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["classes"] == {"down": 4, "up": 4} and facts["figures"]["rows"] == 8
    assert facts["figures"]["error"]["value"] == 0 and "held-out recordings" in done.stderr
    new = glides(tmp_path / "new", 2, 1)
    got = table(run("decode", tmp_path / "w.likely", new, "--single").stdout)
    assert got["decision"].to_list() == ["down", "down", "up", "up"]
    told = run("evaluate", tmp_path / "w.likely", new).stdout
    assert "4 recordings, 2 classes" in told
    done = run("decode", tmp_path / "w.likely", new, "--per", "frame")
    assert done.exit_code == 2 and "--per frame is for states" in done.stderr
    assert run("fit", heard, "--sequences", "--id", "who", "-o", tmp_path / "m.likely").exit_code == 2
    once = glides(tmp_path / "once", 1, 2)
    done = run("fit", once, "--sequences", "--n-states", 3, "--n-components", 1, "-o", tmp_path / "m.likely")
    assert done.exit_code == 0 and "Not evaluated" in done.stderr


# --------------------------------------------------------------------------- aligning


def test_columns_of_other_names_are_matched_by_place(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    one, two = (write(pl.DataFrame(x, schema=names), tmp_path / f"{names[0]}.csv") for x, names in
                ((a, ["u", "v"]), (b, ["p", "q"])))  # fmt: skip
    done = run("align", one, two, "--json")
    assert json.loads(done.stdout)["distance"] == pytest.approx(lk.dtw(a, b).distance)
    assert "u with p" in done.stderr
