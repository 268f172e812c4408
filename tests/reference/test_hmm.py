"""Ten passes of Baum–Welch against those of hmmlearn; make_hmm.py made them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likely import HMM, Categorical, Gaussian, Ragged, StoppingRule, fit

REFERENCE = json.loads(Path(__file__).with_name("hmm.json").read_text())


def emissions(name, case):
    if name == "categorical":
        return Categorical(case["probs"])
    K, d = np.shape(case["means"])
    spread = np.full((K, d), 4.0) if name == "diag" else np.tile(4.0 * np.eye(d), (K, 1, 1))
    return Gaussian(case["means"], spread, kind="diagonal" if name == "diag" else "full")


@pytest.mark.parametrize("name", ["diag", "full", "categorical"])
def test_ten_passes(name):
    case = REFERENCE[name]
    want, x = case["learned"], Ragged.of(np.array(case["x"]), REFERENCE["lengths"])
    model = HMM(case["starts"], case["moves"], emissions(name, case))
    report = fit(model, x, stop=StoppingRule(REFERENCE["passes"], 0.0))
    found = report.model
    assert report.objective == pytest.approx(want["log_likelihood"], rel=1e-9)
    assert found.log_prob(x).sum() == pytest.approx(want["log_likelihood"], rel=1e-9)
    np.testing.assert_allclose(found.initial, want["starts"], atol=1e-9)
    np.testing.assert_allclose(found.transition, want["moves"], atol=1e-9)
    if name == "categorical":
        np.testing.assert_allclose(found.emission.probs, want["probs"], atol=1e-9)
    else:
        np.testing.assert_allclose(found.emission.mean, want["means"], atol=1e-9)
        np.testing.assert_allclose(found.emission.covariance_matrix, want["covariance"], atol=1e-8)
