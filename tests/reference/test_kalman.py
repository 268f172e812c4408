"""Filter and smoother from unknown starts against those of statsmodels; make_kalman.py made them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likely import LinearGaussian

REFERENCE = json.loads(Path(__file__).with_name("kalman.json").read_text())
CASES, STEP = REFERENCE["cases"], REFERENCE["step"]


def model_of(case):
    d, known = len(case["A"]), case["known"]
    covariance = np.diag([0.0] * (d - known) + [1.0] * known)
    return LinearGaussian(
        transition=case["A"],
        process_covariance=case["Q"],
        observation=case["C"],
        observation_covariance=case["R"],
        initial_mean=np.zeros(d),
        initial_covariance=covariance,
        diffuse=np.eye(d)[:, : d - known],
    )


@pytest.mark.parametrize("name", CASES)
def test_as_statsmodels_has_it(name):
    case = CASES[name]
    y = np.array(case["y"], dtype=float).reshape(-1, len(case["C"]))
    found = model_of(case).smooth(y)
    assert found.log_prob == pytest.approx(case["log_prob"], rel=1e-10)
    for mine, theirs in ((found.mean[::STEP], case["mean"]), (found.covariance[::STEP], case["covariance"])):
        size = np.abs(theirs).max()
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9 * size)
