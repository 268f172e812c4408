"""Exact diffuse log-likelihoods and smoothed levels against those of statsmodels; make_series.py made them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from likely import LinearGaussian

REFERENCE = json.loads(Path(__file__).with_name("series.json").read_text())
DATA = Path(os.environ.get("LIKELY_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "timeseries"


def column(name):
    path = DATA / f"{name}.csv"
    if not path.exists():
        pytest.skip("no data: set LIKELY_DATA to the folder that holds them")
    return np.array([float(line.split(",")[-1] or "nan") for line in path.read_text().split()[1:]])


def diffuse(model):
    """The same with an unknown start, which is how statsmodels starts cycles."""
    return LinearGaussian(
        transition=model.transition,
        process_covariance=model.process_covariance,
        observation=model.observation,
        observation_covariance=model.observation_covariance,
    )


L = LinearGaussian
TREND = lambda: L.local_trend(4e-4, 1e-6, 1e-3)  # noqa: E731
CASES = {
    "nile": lambda: (L.local_level(1469.0, 15099.0), column("Nile")),
    "nile with a cycle": lambda: (
        L.local_level(1469.0, 15099.0) + diffuse(L.cycle(7.5, 0.9, cycle_variance=30.0)), column("Nile")
    ),
    "air, dummies": lambda: (TREND() + L.seasonal(12, 6e-5), np.log(column("AirPassengers"))),
    "air, waves": lambda: (TREND() + L.seasonal(12, 1e-5, form="trigonometric"), np.log(column("AirPassengers"))),
    "co2": lambda: (
        L.local_trend(0.02, 1e-6, 0.05) + L.seasonal(52.1775 / 4, 1e-4, form="trigonometric", harmonics=3),
        column("mauna_loa_co2_weekly")[2:802:4],
    ),
    "huron": lambda: (L.ar([1.04, -0.25], 0.5), column("LakeHuron") - 579.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_statsmodels_has_it(name):
    model, y = CASES[name]()
    want = REFERENCE[name]
    found = model.smooth(y)
    assert found.log_prob == pytest.approx(want["log_prob"], rel=1e-9)
    if "level" in want:
        np.testing.assert_allclose(found.mean[:: max(1, len(y) // 10), 0], want["level"], rtol=1e-7)
