"""Markov-switching regressions against statsmodels: likelihoods, estimates, standard errors, states."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likely.linear_model import SwitchingRegression

REFERENCE = json.loads(Path(__file__).with_name("switching.json").read_text())
KINDS = ("n_states", "lags", "mean_adjusted", "shared", "tied_noise")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_fits_equal_those_of_statsmodels(name):
    told = REFERENCE[name]
    y, X = np.array(told["y"]), None if told["X"] is None else np.array(told["X"])
    settings = {key: told[key] for key in KINDS if key in told}
    m = SwitchingRegression(**settings, prior=None, random_state=0).fit(y, X)
    assert m.report_.converged and m.log_prob(y, X) >= told["llf"] - 1e-6
    wanted = dict(zip(told["names"], told["params"], strict=True))
    errors = dict(zip(told["names"], told["bse"], strict=True))
    theirs = np.array([wanted[f"const[{k}]"] for k in range(2)])
    order = np.argsort(m.coefficients_[:, 0])[np.argsort(np.argsort(theirs))]  # our state of each of theirs
    np.testing.assert_allclose(m.coefficients_[order, 0], theirs, rtol=5e-3, atol=5e-3)
    variance = [wanted.get(f"sigma2[{k}]", wanted.get("sigma2")) for k in range(2)]
    np.testing.assert_allclose(m.noise_variance_[order], variance, rtol=2e-2)
    A = m.transition_[np.ix_(order, order)]
    np.testing.assert_allclose(A[:, 0], [wanted["p[0->0]"], wanted["p[1->0]"]], atol=5e-3)
    np.testing.assert_allclose(m.expected_durations_[order], told["durations"], rtol=2e-2)
    p = m.lags
    for found, theirs in ((m.filter(y, X), told["filtered"]), (m.smooth(y, X), told["smoothed"])):
        np.testing.assert_allclose(found[p : p + 8, order], theirs, atol=1e-2)
    np.testing.assert_allclose(m.predict(y, X)[p : p + 8], told["predicted"], rtol=1e-2, atol=1e-2)
    table = m.summary(y, X)["parameters"]
    found = {row[0]: row[2] for row in table.rows}
    assert found["constant, state " + str(order[0])] == pytest.approx(errors["const[0]"], rel=0.03)
    assert found[f"transition {order[1]} to 0"] == pytest.approx(errors["p[1->0]"], rel=0.05)
