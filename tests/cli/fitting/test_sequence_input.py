"""`likely fit --sequences` and `likely decode`: from a table of frames to states and classes, bad input in words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.cli.fitting.fit_job import Job
from tests.cli.tables import run, write

MIDDLES = {"up": 4.0, "down": -4.0}


def walks(n: int = 24, seed: int = 0) -> pl.DataFrame:
    """Sequences that rest, peak upwards or downwards, and rest; a mark that says little, and who walked."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        gait = "up" if i % 2 else "down"
        phases = [(p, m) for p, m in (("rest", 0.0), ("peak", MIDDLES[gait]), ("after", 0.0))
                  for _ in range(rng.integers(4, 8))]  # fmt: skip
        rows += [(f"w{i:02d}", t, rng.normal(m), rng.normal(), gait, phase, str(rng.choice(list("ab"))), f"p{i % 6}")
                 for t, (phase, m) in enumerate(phases)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["who", "t", "x", "y", "gait", "phase", "mark", "person"], orient="row")
    return frame.sample(fraction=1.0, shuffle=True, seed=1)  # --time has something to do


ROLES = ("--sequences", "--id", "who", "--time", "t")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """walks.csv, and the models that the command makes of it."""
    at = tmp_path_factory.mktemp("walks")
    write(walks(), at / "walks.csv")
    for name, more in {
        "gait": ("--target", "gait", "--columns", "x,y", "--n-states", 3, "--topology", "left-to-right"),
        "phase": ("--states-column", "phase", "--columns", "x,y,mark"),
        "hidden": ("--columns", "x", "--n-states", 3),
    }.items():
        done = run("fit", at / "walks.csv", *ROLES, *more, "-o", at / f"{name}.likely", "--json")
        assert done.exit_code == 0, done.stderr
        (at / f"{name}.json").write_text(done.stdout)
        (at / f"{name}.txt").write_text(done.stderr)
    return at


def kinds(facts: dict) -> dict[str, str]:
    return {column["name"]: column["kind"] for column in facts["columns"]}


def table(text: str) -> pl.DataFrame:
    return pl.read_csv(text.encode())


# ------------------------------------------------------------------------ with classes


@pytest.mark.slow
def test_classes_are_distinguished_and_measured_out_of_fold(folder):
    facts, text = json.loads((folder / "gait.json").read_text()), (folder / "gait.txt").read_text()
    assert facts["sequences"] == 24 and facts["classes"] == {"down": 12, "up": 12}
    assert facts["figures"]["error"]["value"] == 0 and facts["figures"]["rows"] == 24
    ground = next(line for line in facts["leaderboard"] if line["key"] == "prior")
    assert ground["cost"] >= 0.5
    assert "error     0.0000 (0.0000–0.1425)" in text and "truth \\ decided" in text and "per sequence" in text


def test_decode_gives_the_same_decisions_as_python(folder):
    done = run("decode", folder / "gait.likely", folder / "walks.csv", "--reject-below", 0.9)
    assert done.exit_code == 0, done.stderr
    got = table(done.stdout)
    read = lk.read_sequences(folder / "walks.csv", id="who", time="t", columns=["y", "x"])  # columns go by name
    model = lk.load(folder / "gait.likely")
    assert got["decision"].to_list() == [str(c) for c in model.decide(read, reject_below=0.9)]
    np.testing.assert_allclose(got["p(up)"], model.predict_proba(read)[:, 1])
    np.testing.assert_allclose(got["log_prob"], model.score_samples(read))
    truth = dict(walks().select("who", "gait").iter_rows())
    assert all(truth[who] == decision for who, decision in got.select("sequence", "decision").iter_rows())


def test_rejections_and_costs_are_those_of_other_tables(folder, tmp_path):
    rng = np.random.default_rng(5)
    neither = pl.DataFrame({"who": ["n"] * 15, "t": range(15), "x": rng.normal(0, 0.3, 15), "y": rng.normal(size=15)})
    path = write(neither, tmp_path / "new.csv")
    done = run("decode", folder / "gait.likely", path, "--reject-below", 0.99)
    row = table(done.stdout).row(0, named=True)
    assert row["decision"] == "REJECT" and "below 0.99" in row["reason"]
    (tmp_path / "cost.csv").write_text("action,up,down\nup,0,100\ndown,1,0\n")
    done = run("decode", folder / "gait.likely", path, "--cost", tmp_path / "cost.csv", "--reject-cost", 1e-9)
    assert table(done.stdout)["decision"].to_list() in (["REJECT"], ["down"])
    assert run("decode", folder / "gait.likely", path, "--novelty", 0.05).exit_code == 0


@pytest.mark.slow
def test_the_number_of_states_is_chosen_where_nobody_says_it(folder, tmp_path):
    done = run("fit", folder / "walks.csv", *ROLES, "--target", "gait", "--columns", "y", "-o", tmp_path / "m.likely",
               "--cv", 2, "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert {"hmm-1", "hmm-2", "hmm-8"} <= {line["key"] for line in facts["leaderboard"]}
    assert "(the model was chosen on the same folds" in done.stderr
    done = run("fit", folder / "walks.csv", *ROLES, "--target", "gait", "--columns", "x", "-o", tmp_path / "m.likely",
               "--cv", 2, "--n-states", 2)  # fmt: skip
    assert "(the model was chosen on the same folds" in done.stderr
    assert "say little" in " ".join(facts["warnings"])  # y is noise


@pytest.mark.slow
def test_sequences_are_chosen_by_the_same_rule(folder, tmp_path):
    asked = ("fit", folder / "walks.csv", *ROLES, "--target", "gait", "--columns", "x", "-o", tmp_path / "m.likely")
    done = run(*asked, "--cv", 2, "--topology", "ergodic", "--criterion", "log-loss", "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    tied = [line for line in facts["leaderboard"] if line["ties"] == ["log-loss"]]
    assert all((line["difference"] <= line["difference_se"]) == (line in tied) for line in facts["leaderboard"])
    assert any(line["chosen"] for line in tied) and "--criterion log-loss" in facts["command"]
    assert "log-loss" in facts["rule"] and "has a log-loss of" in facts["verdict"]


@pytest.mark.slow
def test_groups_stay_together(folder, tmp_path):
    done = run("fit", folder / "walks.csv", *ROLES, "--target", "gait", "--ignore", "phase", "--ignore", "mark",
               "--group", "person", "--n-states", 2, "--cv", 3, "-o", tmp_path / "m.likely", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert "groups kept together" in facts["cv"] and kinds(facts) == {"x": "real", "y": "real"}


def test_folders_are_classes(tmp_path):
    rng = np.random.default_rng(0)
    for gait, middle in MIDDLES.items():
        (tmp_path / "in" / gait).mkdir(parents=True)
        for i in range(6):
            np.save(tmp_path / "in" / gait / f"{i}.npy", rng.normal(middle, 1.0, (8, 2)))
    done = run("fit", tmp_path / "in", "--sequences", "--n-states", 1, "-o", tmp_path / "m.likely", "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["target"] == "folder" and facts["figures"]["error"]["value"] == 0
    done = run("decode", tmp_path / "m.likely", tmp_path / "in")
    assert table(done.stdout)["decision"].to_list() == ["down"] * 6 + ["up"] * 6


# --------------------------------------------------------------------- without classes


def test_known_states_are_learned_and_tested_out_of_fold(folder):
    facts, text = json.loads((folder / "phase.json").read_text()), (folder / "phase.txt").read_text()
    assert kinds(facts) == {"x": "real", "y": "real", "mark": "category"}
    told = facts["decoded"]
    frames = walks().height
    assert told["frames"] == frames and sum(map(sum, told["confusion"])) == frames
    right = sum(told["confusion"][k][k] for k in range(3)) / frames
    assert told["right"] == pytest.approx(right) and right > 0.85
    assert "known for 100% of frames" in text


@pytest.mark.parametrize("path", ["viterbi", "posterior", "filter"])
def test_states_of_frames_are_those_of_the_model(folder, path):
    done = run("decode", folder / "phase.likely", folder / "walks.csv", "--path", path, "--proba")
    assert done.exit_code == 0, done.stderr
    got = table(done.stdout)
    model = lk.load(folder / "phase.likely")
    read = lk.read_sequences(folder / "walks.csv", id="who", time="t", columns=["x", "y", "mark"])
    shares = model.predict_proba(read, lag=0 if path == "filter" else None).values
    states = model.predict(read).values if path == "viterbi" else shares.argmax(axis=1)
    assert got["state"].to_list() == [model.state_names[k] for k in states]
    np.testing.assert_allclose(got["probability"], shares[np.arange(len(states)), states])
    np.testing.assert_allclose(got.select(f"p({n})" for n in model.state_names).to_numpy(), shares)
    assert got["frame"].to_list() == [t for m in read.x.lengths for t in range(m)]


def test_each_sequence_has_its_log_probability_and_path(folder):
    got = table(run("decode", folder / "hidden.likely", folder / "walks.csv", "--per", "sequence").stdout)
    model, read = lk.load(folder / "hidden.likely"), lk.read_sequences(folder / "walks.csv", id="who", time="t",
                                                                       columns=["x"])  # fmt: skip
    np.testing.assert_allclose(got["log_prob"], model.model_.log_prob(read.x))
    np.testing.assert_allclose(got["log_prob of best path"], model.model_.viterbi(read.x).log_prob)
    lengths = [sum(int(run.split("×")[1]) for run in path.split()) for path in got["path"]]
    assert lengths == got["frames"].to_list() == read.x.lengths.tolist()


@pytest.mark.slow
def test_the_number_of_states_is_chosen_by_sequences_left_out(tmp_path):
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(list("ab"), 15)) + " " + " ".join(rng.choice(list("cd"), 15)) for _ in range(12)]
    (tmp_path / "s.txt").write_text("\n".join(lines))
    done = run("fit", tmp_path / "s.txt", "--sequences", "-o", tmp_path / "m.likely", "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["choice"]["states"] == facts["states"] == 2 and kinds(facts) == {"symbol": "category"}
    assert "nats per frame" in done.stderr and "paired difference to the best" in done.stderr
    (tmp_path / "new.txt").write_text("a b a c d d\na z c c\n")
    done = run("decode", tmp_path / "m.likely", tmp_path / "new.txt", "--per", "sequence")
    assert table(done.stdout).height == 2 and "not seen in training" in done.stderr and '"2"' in done.stderr


def test_a_sequence_that_cannot_be_keeps_its_line(folder, tmp_path):
    write(walks(6), tmp_path / "w.csv")
    done = run("fit", tmp_path / "w.csv", *ROLES, "--columns", "x", "--n-states", 4, "--topology", "left-to-right",
               "--durations", 9, "-o", tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    new = pl.DataFrame({"who": ["long"] * 12 + ["short"] * 2, "t": [*range(12), 0, 1], "x": [0.0] * 14})
    done = run("decode", tmp_path / "m.likely", write(new, tmp_path / "new.csv"))
    got = table(done.stdout)
    assert got.filter(pl.col("sequence") == "short")["state"].to_list() == [None, None]
    assert got.filter(pl.col("sequence") == "long")["state"].null_count() == 0
    assert "1 sequence of probability zero under the model" in done.stderr and '"short"' in done.stderr


def test_models_saved_from_python_decode_too(folder, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2)) + np.repeat([0, 5], 20)[:, None]
    lk.save(lk.HMMDensity(n_states=2, random_state=0).fit([x]), tmp_path / "h.likely")
    np.save(tmp_path / "x.npy", x)
    got = table(run("decode", tmp_path / "h.likely", tmp_path / "x.npy").stdout)
    assert got["state"].n_unique() == 2 and got["state"][:20].n_unique() == 1
    write(pl.DataFrame(x, schema=["left", "right"]), tmp_path / "x.csv")  # its columns have no names: they go by place
    assert table(run("decode", tmp_path / "h.likely", tmp_path / "x.csv").stdout)["state"].equals(got["state"])
    write(pl.DataFrame(x[:, :1], schema=["left"]), tmp_path / "one.csv")
    assert run("decode", tmp_path / "h.likely", tmp_path / "one.csv").exit_code == 3


def test_weights_are_copies(tmp_path):
    frame = walks(8).with_columns(pl.when(pl.col("who") == "w01").then(2.0).otherwise(1.0).alias("w"))
    again = frame.filter(pl.col("who") == "w01").with_columns(who=pl.lit("copy"))
    same = ("--columns", "x", "--n-states", 1)
    run("fit", write(frame, tmp_path / "a.csv"), *ROLES, *same, "--weight", "w", "-o", tmp_path / "a.likely")
    run("fit", write(pl.concat([frame, again]), tmp_path / "b.csv"), *ROLES, *same, "-o", tmp_path / "b.likely")
    a, b = (lk.load(tmp_path / f"{m}.likely").model_.emission.mean for m in "ab")
    np.testing.assert_allclose(a, b, rtol=1e-9)


# ----------------------------------------------------------------------------- speech


@pytest.mark.slow
def test_a_recognizer_writes_the_words_of_recordings(tmp_path, folder):
    from scipy.io import wavfile

    rng, t = np.random.default_rng(0), np.arange(3200) / 8000

    def glide(a, b):
        return 0.5 * np.sin(2 * np.pi * (a + (b - a) * t) * t) + 0.002 * rng.normal(size=t.size)

    recordings = [glide(*f) for f in [(300, 900), (900, 300)] for _ in range(5)]
    words = lk.speech.SpokenWords(n_states=4, n_components=1).fit(recordings, ["up"] * 5 + ["down"] * 5)
    lk.save(words, tmp_path / "w.likely")
    quiet = 0.002 * rng.normal(size=1600)
    said = {"one": glide(305, 890), "two": np.concatenate([glide(310, 880), quiet, glide(910, 290)])}
    for name, x in said.items():
        wavfile.write(tmp_path / f"{name}.wav", 8000, (x * 30000).astype(np.int16))
    files = [tmp_path / "one.wav", tmp_path / "two.wav"]
    got = table(run("decode", tmp_path / "w.likely", *files).stdout)
    assert got["words"].to_list() == [str(words.transcribe(str(f))) for f in files]
    lines = table(run("decode", tmp_path / "w.likely", *files, "--per", "word").stdout)
    assert " ".join(lines.filter(pl.col("file") == str(files[1]))["word"]) == got["words"][1]
    single = table(run("decode", tmp_path / "w.likely", files[0], "--single", "--reject-below", 0.5).stdout)
    assert single["decision"].to_list() in (["up"], ["REJECT"]) and single["probability"][0] > 0
    assert "add --single" in run("decode", tmp_path / "w.likely", files[0], "--reject-below", 0.5).stderr
    assert "is for tables" in run("decode", tmp_path / "w.likely", files[0], "--id", "who").stderr
    assert "is for recordings" in run("decode", folder / "gait.likely", folder / "walks.csv", "--single").stderr


# -------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "more, code, words",
    [
        (("--id", "whom"), 3, 'did you mean "who"?'),
        (("--id", "who", "--target", "mark"), 3, "must be the same in all rows of a sequence"),
        (("--id", "who", "--time", "t", "--columns", "x", "--n-states", 30, "--topology", "left-to-right"), 3,
         "a sequence needs at least 30 frames"),
        (("--id", "who", "--columns", "z"), 3, '"z"'),
        (("--id", "who", "--as", "z=real"), 3, '"z"'),
        (("--id", "who", "--columns", "mark", "--n-states", 2, "--n-components", 3), 1, "one column of words"),
        (("--id", "who", "--columns", "x", "--as", "x=count", "--n-states", 1), 3, "counts"),
        (("--id", "who", "--columns", "x", "--novelty", 0.1, "--n-states", 1), 2, "--novelty needs --target"),
        (("--id", "who", "--topology", "star"), 2, "neither one of ergodic"),
        (("--target", "gait", "--id", "who", "--states-column", "phase"), 2, "exclude each other"),
        (("--target", "gait", "--id", "who", "--models", "full"), 2, "--models is for tables"),
        (("--id", "who", "--sql", "select 1"), 2, "--sql is for tables"),
        (("--id", "who", "--cv", "time", "--target", "gait"), 2, "sequences are split whole"),
    ],
)  # fmt: skip
def test_bad_requests_are_answered_in_words(folder, tmp_path, more, code, words):
    done = run("fit", folder / "walks.csv", "--sequences", *more, "-o", tmp_path / "m.likely")
    assert done.exit_code == code and words in done.stderr and not (tmp_path / "m.likely").exists()


def test_states_that_cannot_follow_each_other_are_named(folder, tmp_path):
    back = walks(4).with_columns(phase=pl.col("phase").replace({"after": "rest"}))
    done = run("fit", write(back, tmp_path / "w.csv"), *ROLES, "--states-column", "phase", "--columns", "x",
               "--topology", "left-to-right", "-o", tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 3 and 'to "' in done.stderr and 'sequence "w' in done.stderr


def test_infinity_is_named_by_sequence_frame_and_column(tmp_path):
    frame = (
        walks(4)
        .sort("who", "t")
        .with_columns(
            x=pl.when((pl.col("who") == "w02") & (pl.col("t") == 3)).then(float("inf")).otherwise(pl.col("x"))
        )
    )
    done = run("fit", write(frame, tmp_path / "w.csv"), *ROLES, "--columns", "x", "--n-states", 1, "-o",
               tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 3 and "inf" in done.stderr


def test_options_of_sequences_need_the_flag_and_tables_a_target(folder):
    done = run("fit", folder / "walks.csv", "--target", "gait", "--n-states", 3)
    assert done.exit_code == 2 and "--n-states is for sequences" in done.stderr
    done = run("fit", folder / "walks.csv")
    assert done.exit_code == 2 and "--target" in done.stderr


def test_decode_refuses_what_a_model_does_not_have(folder, wine_folder, tmp_path):
    at = folder / "walks.csv"
    assert "is for states" in run("decode", folder / "gait.likely", at, "--path", "filter").stderr
    assert "is for classifiers" in run("decode", folder / "hidden.likely", at, "--cost", at).stderr
    done = run("decode", wine_folder / "model.likely", wine_folder / "wine.csv")
    assert done.exit_code == 4 and "a model of sequences is needed" in done.stderr
    words = pl.DataFrame({"who": ["a", "a"], "t": [0, 1], "x": ["much", "little"]})
    done = run("decode", folder / "hidden.likely", write(words, tmp_path / "w.csv"))
    assert done.exit_code == 3 and 'words such as "much"' in done.stderr
    done = run("decode", folder / "hidden.likely", at, "-o", at)
    assert done.exit_code == 3 and "would be overwritten" in done.stderr and at.exists()


def test_one_sequence_says_so(tmp_path):
    done = run("fit", write(walks(1).sort("t").select("x"), tmp_path / "w.csv"), "--sequences", "--n-states", 2, "-o",
               tmp_path / "m.likely")  # fmt: skip
    assert done.exit_code == 0 and "without --id a file is one sequence" in done.stderr


# ------------------------------------------------------------------- what files say


def test_show_and_info_tell_of_states_topology_and_emissions(folder, tmp_path):
    for command in ("show", "info"):
        told = run(command, folder / "phase.likely").stdout
        assert "3 states, ergodic" in told and "each state emits" in told and "peak" in told
    told = run("show", folder / "gait.likely").stdout
    assert "one density per class: a hidden Markov model of 3 states, left-to-right, its end is modeled" in told
    assert json.loads(run("show", folder / "phase.likely", "--json").stdout)["columns"]["mark"] == "category"


@pytest.mark.parametrize("name", ["phase", "gait"])
def test_show_draws_the_model(folder, tmp_path, name):
    pytest.importorskip("matplotlib")
    done = run("show", folder / f"{name}.likely", "--plot", tmp_path / "m.svg")
    assert done.exit_code == 0 and (tmp_path / "m.svg").read_text().count("<path") > 10
    done = run("show", folder / f"{name}.likely", "--plot", tmp_path / "m.doc")
    assert done.exit_code == 2 and ".png" in done.stderr


def test_the_command_can_be_repeated():
    job = Job(("a b.csv",), sequences=True, id="who", kinds={"x": "category"}, cv=3, calibrate=False, out="m.likely")
    assert job.command == "likely fit 'a b.csv' --sequences --id who --cv 3 --as x=category -o m.likely --no-calibrate"
