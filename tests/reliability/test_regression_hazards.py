"""The hazard matrix of regressions: every hazard is answered with finite numbers, or refused in one sentence of ours.

RuntimeWarnings are errors: no bare LinAlgError, ZeroDivisionError or warning may escape.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import likely as lk
from likely.basis import Polynomial

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")
ESTIMATORS = {
    "least squares": lk.LinearRegression(),
    "polynomial": lk.LinearRegression(Polynomial(4)),
    "ridge": lk.Ridge(1.0),
    "ridge by evidence": lk.Ridge("evidence"),
    "ridge by leave-one-out": lk.Ridge("leave-one-out"),
    "evidence": lk.BayesianLinearRegression(),
    "evidence, penalized": lk.BayesianLinearRegression(penalize_constant=True),
    "relevance": lk.BayesianLinearRegression(prior="ard"),
    "Gaussian prior": lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(4), 4.0)),
    "NormalGamma": lk.BayesianLinearRegression(prior=lk.priors.NormalGamma(np.zeros(4), 1.0, 1.0, 1.0)),
    "mixture": lk.linear_model.MixtureRegression(random_state=0, max_iter=50),
    "mixture, maximum likelihood": lk.linear_model.MixtureRegression(
        3, tied_noise=True, prior=None, random_state=0, max_iter=50
    ),
}


def table(n=40):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3))
    return X, X @ [1.0, 2.0, 0.0] + rng.standard_normal(n)


def changed(**parts):
    X, y = table()
    for name, part in parts.items():
        X, y = part(X, y) if name == "both" else (part(X), y) if name == "X" else (X, part(y))
    return X, y


ANSWERED = {
    "a constant column": lambda: changed(X=lambda X: np.column_stack([X[:, :2], np.full(40, 7.0)])),
    "a column of zeros": lambda: changed(X=lambda X: X * [1.0, 1.0, 0.0]),
    "all columns constant": lambda: changed(X=lambda X: X * 0 + 3.0),
    "equal columns": lambda: changed(X=lambda X: X[:, [0, 0, 1]]),
    "nearly equal columns": lambda: changed(X=lambda X: np.column_stack([X[:, :2], X[:, 0] + 1e-12 * X[:, 1]])),
    "a constant target": lambda: changed(y=lambda y: y * 0 + 5.0),
    "a target of zeros": lambda: changed(y=lambda y: y * 0),
    "an exact fit": lambda: changed(both=lambda X, y: (X, X @ [1.0, 2.0, 3.0])),
    "two rows": lambda: changed(both=lambda X, y: (X[:2], y[:2])),
    "as many rows as functions": lambda: changed(both=lambda X, y: (X[:4], y[:4])),
    "equal rows": lambda: changed(both=lambda X, y: (np.repeat(X[:3], 10, axis=0), np.repeat(y[:3], 10))),
    "an outlier": lambda: changed(y=lambda y: np.r_[y[:-1], 1e12]),
    "a lever": lambda: changed(X=lambda X: np.vstack([X[:-1], [1e9, -1e9, 1e9]])),
    "an offset": lambda: changed(both=lambda X, y: (X + 1e8, y + 1e8)),
    "small units": lambda: changed(both=lambda X, y: (X * 1e-30, y * 1e-30)),
    "large units": lambda: changed(both=lambda X, y: (X * 1e30, y * 1e30)),
    "single precision": lambda: changed(both=lambda X, y: (X.astype(np.float32), y.astype(np.float32))),
    "integers": lambda: changed(both=lambda X, y: ((X * 10).astype(int), (y * 10).astype(int))),
    "many columns": lambda: (np.random.default_rng(2).standard_normal((10, 3)), np.arange(10.0)),
    "missing targets": lambda: changed(y=lambda y: np.where(np.arange(40) % 3 == 0, np.nan, y)),
}
WITHOUT_FREEDOM = {  # the only cases without a predictive density
    "least squares": ["two rows", "as many rows as functions"],
    "polynomial": ["two rows", "as many rows as functions", "many columns", "missing targets"],
    "ridge by leave-one-out": ["two rows"],
}
REFUSED = {
    "infinity in X": lambda: changed(X=lambda X: np.where(np.arange(120).reshape(40, 3) == 7, np.inf, X)),
    "infinity in y": lambda: changed(y=lambda y: np.where(np.arange(40) == 7, -np.inf, y)),
    "no target at all": lambda: changed(y=lambda y: y * np.nan),
    "text in X": lambda: (pd.DataFrame({"a": ["x", "y"]}), np.arange(2.0)),
    "text in y": lambda: changed(y=lambda y: np.full(40, "high", dtype=object)),
    "a target too short": lambda: changed(y=lambda y: y[:-1]),
    "three axes": lambda: changed(y=lambda y: y.reshape(40, 1, 1)),
    "squares that overflow": lambda: changed(X=lambda X: X * 1e200),
}


@pytest.mark.parametrize("hazard", ANSWERED)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hazards_that_have_an_answer(name, hazard):
    X, y = ANSWERED[hazard]()
    m = clone(ESTIMATORS[name])
    try:
        m.fit(X, y)
    except lk.LikelyError as error:
        assert str(error).startswith(type(m).__name__) or ":" in str(error)
        return
    assert np.isfinite(m.predict(X)).all()
    str(m.summary())
    try:
        mean, std = m.predict(X, return_std=True)
    except lk.LikelyError as error:  # without a residual degree of freedom
        told = "predictive density needs" if name in ("least squares", "polynomial") else "noise variance RSS/(n − γ)"
        assert told in str(error) and hazard in WITHOUT_FREEDOM[name]
        return
    assert np.isfinite(mean).all() and (std >= 0).all() and not np.isnan(std).any()


@pytest.mark.parametrize("hazard", REFUSED)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hazards_that_are_refused(name, hazard):
    X, y = REFUSED[hazard]()
    with pytest.raises(ValueError, match=r".{10}") as caught:
        clone(ESTIMATORS[name]).fit(X, y)
    assert not isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.parametrize(
    "hazard", ["a constant column", "a constant target", "an exact fit", "an outlier", "equal rows"]
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_ordinary_hazards_are_not_refused(name, hazard):
    X, y = ANSWERED[hazard]()
    assert np.isfinite(clone(ESTIMATORS[name]).fit(X, y).predict(X)).all()
