"""Summaries of least squares against those of statsmodels; make_regression.py made them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import likely as lk
from likely.basis import Identity

REFERENCE = json.loads(Path(__file__).with_name("regression.json").read_text())
FACTS = {
    "R²": "rsquared", "adjusted R²": "rsquared_adj", "F": "fvalue", "p of F": "f_pvalue", "log-likelihood": "llf",
    "AIC": "aic", "BIC": "bic", "residual degrees of freedom": "df_resid", "residual standard error": "sigma",
}  # fmt: skip


def fitted(case):
    basis = None if case["constant"] else Identity(constant=False)
    X, y = np.array(case["X"]), np.array(case["y"])
    return lk.LinearRegression(basis).fit(X, y, relative_noise=case["variance"])


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("name", REFERENCE)
def test_summaries_equal_those_of_statsmodels(name):
    case = REFERENCE[name]
    m = fitted(case)
    found = m.summary(case["level"])
    for fact, theirs in FACTS.items():
        assert found.facts[fact] == pytest.approx(case[theirs], rel=1e-9), fact
    table = np.array([row[1:] for row in found["coefficients"].rows], dtype=float)
    wanted = np.column_stack([*(case[k] for k in ("params", "bse", "tvalues", "pvalues")), case["conf_int"]])
    np.testing.assert_allclose(table, wanted, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(m.covariance_, case["cov"], rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("name", ["with constant", "without constant"])
def test_prediction_intervals_equal_those_of_statsmodels(name):
    case = REFERENCE[name]
    m, new = fitted(case), np.array(case["new"])
    new = new[:, 1:] if case["constant"] else new
    np.testing.assert_allclose(m.predict(new), case["mean"], rtol=1e-12)
    np.testing.assert_allclose(np.stack(m.interval(new, case["level"]), axis=1), case["interval"], rtol=1e-10)
