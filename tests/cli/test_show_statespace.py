"""`likely show`, `card` and `follow` of models with hidden vectors, and of what decides by them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import likely as lk
from tests.cli.fitting.test_sequence_input import table
from tests.cli.tables import run

NAMES = ("level", "track", "matern", "jump", "switching", "learned", "monitor", "tracker", "moving")


def sensors(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


@pytest.fixture(scope="module")
def models() -> dict[str, object]:
    level = lk.LinearGaussian.local_level(level_variance=1469.0, observation_variance=15099.0)
    quiet, wild = (
        lk.LinearGaussian(
            transition=[[1.0]],
            process_covariance=[[q]],
            observation=[[1.0]],
            observation_covariance=[[1.0]],
            initial_mean=[0.0],
            initial_covariance=[[1.0]],
        )
        for q in (0.125, 20.0)
    )
    jump = lk.SwitchingLinearGaussian([quiet, wild], [[0.95, 0.05], [0.1, 0.9]])
    y = jump.simulate(3, np.random.default_rng(0), 80)[2]
    known = np.vstack([sensors(300), sensors(60, 1) + [0.0, 0.0, 6.0]])
    frame = pl.DataFrame(known, schema=["flow", "heat", "load"])
    return {
        "level": level,
        "track": lk.LinearGaussian.constant_velocity(dim=4, dt=0.5, spectral_density=0.5, observation_variance=1.0),
        "matern": lk.LinearSDE.matern(1.5, length_scale=2.0, variance=1.0, observation_variance=0.01),
        "jump": jump,
        "switching": lk.SwitchingDensity([quiet, wild], learn=["process_covariance"], max_iter=3, tol=1e9).fit(y),
        "learned": lk.LinearGaussianDensity(level, learn=["process_covariance", "observation_covariance"]).fit(
            sensors(80)[:, :1].cumsum(0)
        ),
        "monitor": lk.FaultMonitor().fit(frame, ["normal"] * 300 + ["leak"] * 60),
        "tracker": lk.Tracker(
            dim=2,
            spectral_density=0.01,
            observation_variance=0.04,
            clutter_density=0.01,
            detection_probability=0.9,
            speed=2.0,
        ),
        "moving": lk.Tracker(lk.LinearSDE.constant_velocity(2, 1.0, 1.0)),
    }


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("states")
    for name, model in models.items():
        lk.save(model, at / f"{name}.likely")
    return at


def shown(folder: Path, name: str) -> str:
    done = run("show", folder / f"{name}.likely")
    assert done.exit_code == 0 and done.stderr == "", done.stderr
    return str(done.stdout)


# ------------------------------------------------------------------------------ show


@pytest.mark.slow
def test_a_small_linear_model_is_written_out(folder):
    text = shown(folder, "level")
    assert "a linear-Gaussian model: 1 state, 1 column" in text and "diffuse initial distribution" in text
    assert "process_covariance      1469\n" in text and "observation_covariance  15099" in text


@pytest.mark.slow
def test_a_large_one_is_reported_by_its_diagonal(folder):
    text = shown(folder, "track")
    assert "8 states, 4 columns" in text and "8×8, diagonal 1 1 1 1 1 1 …" in text
    assert "4×8, from 0 to 1" in text


def test_continuous_time_asks_for_times(folder):
    text = shown(folder, "matern")
    assert "in continuous time: 2 states, 1 column" in text and "--time COL" in text
    assert "mean 0 0 and standard deviation 1 0.866025" in text and "-0.75  -1.73205" in text


def test_regimes_with_what_they_share_once(folder):
    text = shown(folder, "jump")
    assert "2 regimes, 1 state, 1 column" in text and text.count("observation_covariance  1") == 1
    assert "regime 0\n  process_covariance  0.125" in text and "regime 1\n  process_covariance  20" in text
    assert ["1", "0.3333", "10", "0.1", "0.9"] in [line.split() for line in text.split("\n")]


def test_a_learned_switching_model(folder, models):
    text, est = shown(folder, "switching"), models["switching"]
    assert "SwitchingDensity: SwitchingLinearGaussian" in text and "process_covariance, transition, initial" in text
    assert f"{est.model_.regimes[1].process_covariance[0, 0]:.6g}" in text and "frames          240" in text
    facts = est.summary().facts
    assert facts["parameters"] == est.learned_model_.n_parameters and facts["converged"].startswith(("yes", "NO"))
    told = est.report_.objective - est.prior_.log_density(est.model_)
    assert facts["log-likelihood"] == pytest.approx(told, rel=1e-9)
    shares = [row.estimate for row in est.summary()["parameters"].rows if row.parameter == "share of frames"]
    assert sum(shares) == pytest.approx(1.0) and json.loads(est.summary().to_json())["facts"]["regimes"] == 2


def test_columns_that_would_be_empty_are_left_out(folder):
    text = shown(folder, "learned")
    assert "process_covariance[0, 0]" in text and "% from" not in text and "a linear-Gaussian model: 1 state" in text
    assert "95% from" in str(lk.PoissonDensity().fit([[1], [2], [6]]).summary())


def test_a_monitor_and_trackers(folder):
    text = shown(folder, "monitor")
    assert "3 sensors, 300 normal frames" in text and "Known faults: leak." in text
    assert "sensors  flow, heat, load" in text and "`likely follow` writes p(fault)" in text
    assert "clutter of 0.01" in shown(folder, "tracker") and "survival probability 0.99" in shown(folder, "tracker")
    assert "without clutter" in shown(folder, "moving") and "continuous time" in shown(folder, "moving")


@pytest.mark.parametrize("name", NAMES)
def test_there_is_no_card_and_json_is_json(folder, name):
    done = run("card", folder / f"{name}.likely")
    assert done.exit_code == 4 and done.stdout == ""
    assert "cards are written for classifiers, clusters and hidden Markov models, got a" in done.stderr
    assert json.loads(run("show", folder / f"{name}.likely", "--json").stdout)["likely"] == lk.__version__


# ---------------------------------------------------------------------------- follow


def fed(x: np.ndarray, names: str) -> str:
    return "\n".join([names, *(",".join(map(repr, row)) for row in x.tolist())]) + "\n"


def test_a_followed_monitor_says_what_it_decides(folder, models):
    x = np.vstack([sensors(20, 5), sensors(5, 6) + [0.0, 0.0, 6.0]])
    done = run("follow", folder / "monitor.likely", "-", stdin=fed(x, "flow,heat,load"))
    assert done.exit_code == 0, done.stderr
    out, seen = table(done.stdout), models["monitor"].watch(x)
    assert out.columns == ["frame", "p(fault)", "p(fault leak)", "alarm", "speaks", "bits", "surprisal"]
    assert out["p(fault)"].to_list() == pytest.approx(seen.fault.tolist(), rel=1e-12)
    assert out["p(fault leak)"].to_list() == pytest.approx(seen.posterior[:, 2].tolist(), rel=1e-12)
    assert [a == "yes" for a in out["alarm"].to_list()] == seen.alarm.tolist() and seen.alarm[-1]
    assert out["speaks"][-1] == "load" and out["bits"][-1] == pytest.approx(seen.contributions[-1].max())
    line = json.loads(
        run("follow", folder / "monitor.likely", "-", "--json", stdin=fed(x, "flow,heat,load")).stdout.split("\n")[24]
    )
    assert line["alarm"] is True and line["speaks"] == "load"


def test_a_followed_tracker_says_whether_there_is_a_target(folder, models):
    x = np.column_stack([np.arange(12.0), 0.5 * np.arange(12.0)])
    out = table(run("follow", folder / "tracker.likely", "-", stdin=fed(x, "x,y")).stdout)
    track = models["tracker"].run(x)
    assert out.columns[:5] == ["frame", "exists", "confirmed", "mean(0)", "mean(1)"]
    assert out["exists"].to_list() == pytest.approx(track.exists.tolist(), rel=1e-12)
    assert [c == "yes" for c in out["confirmed"].to_list()] == track.confirmed.tolist() and track.confirmed[-1]
    assert out["mean(1)"].to_list() == pytest.approx(track.mean[:, 1].tolist())
    assert out["sd(0)"].to_list() == pytest.approx(np.sqrt(track.covariance[:, 0, 0]).tolist())


def test_a_track_that_has_not_begun_is_nowhere(folder):
    out = run("follow", folder / "tracker.likely", "-", stdin="x,y\n,\n1.0,2.0\n").stdout.split("\n")
    assert out[1].startswith("0,0.0,no,,,,,") and "nan" not in "".join(out)


def test_a_tracker_in_continuous_time_takes_times(folder, models):
    t, x = np.array([0.0, 1.0, 1.5, 4.0]), np.array([[0.0, 0.0], [1.0, 2.0], [1.5, 3.0], [4.0, 8.0]])
    stdin = fed(np.column_stack([t, x]), "exists,x,y")  # a name that the output has too
    out = table(run("follow", folder / "moving.likely", "-", "--time", "exists", stdin=stdin).stdout)
    track = models["moving"].run(x, times=t)
    assert out.columns[:4] == ["frame", "input exists", "exists", "confirmed"]
    assert out["mean(3)"].to_list()[1:] == pytest.approx(track.mean[1:, 3].tolist())
    assert run("follow", folder / "moving.likely", "-", stdin=stdin).exit_code == 2


@pytest.mark.parametrize("option", [("--fault", "leak"), ("--false-alarm-every", "100")])
@pytest.mark.parametrize("name", ["monitor", "tracker"])
def test_who_decides_itself_needs_no_rule(folder, name, option):
    done = run("follow", folder / f"{name}.likely", "-", *option, stdin="flow,heat,load\n")
    assert done.exit_code == 2 and f"{option[0]} is for models without an alarm rule of their own" in done.stderr
    assert "has its own" in done.stderr and "leave it out" in done.stderr
