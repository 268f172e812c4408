"""The hazard matrix for models of hidden vectors: finite numbers, or one sentence that says what to do.

A table is one sequence here. RuntimeWarnings are errors: no bare LinAlgError, IndexError or warning may escape.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk
from tests.properties.compare import arrays_of
from tests.reliability.test_hazards_of_estimators import ANSWERED, GAPS, REFUSED, changed, table

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")

ESTIMATORS = {
    "linear": lk.LinearGaussianDensity(max_iter=20),
    "linear likelihood": lk.LinearGaussianDensity(prior=None, max_iter=10),
    "linear two states": lk.LinearGaussianDensity(n_states=2, max_iter=10, accelerate=False),
    "switching": lk.SwitchingDensity(2, max_iter=5, random_state=0),
    "switching three": lk.SwitchingDensity(3, max_iter=3, random_state=0),
    "switching one": lk.SwitchingDensity(1, max_iter=3),
}
QUICK = ("linear", "switching")
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ESTIMATORS]
MORE = {
    **ANSWERED,
    "all frames equal": changed(lambda X, y: (np.tile(X[:1], (40, 1)), y)),
    "one frame": changed(lambda X, y: (X[:1], y[:1])),
    "three frames": changed(lambda X, y: (X[:3], y[:3])),
    "many short sequences": changed(lambda X, y: ([X[i : i + 1] for i in range(40)], y)),
    "sequences of unlike length, one empty": changed(lambda X, y: ([X[:1], X[:0], X[1:9], X[9:]], y)),
    "a vector": changed(lambda X, y: (X[:, 0], y)),
    "a level that jumps": changed(lambda X, y: (X + 100.0 * (np.arange(40) > 20)[:, None], y)),
}
NOT_OF_SEQUENCES = {"a vector", "three axes"}  # one sequence of single values, and sequences of one length


def fitted(name, X):
    return clone(ESTIMATORS[name]).fit(X)


def is_sound(estimator, X):
    assert all(np.isfinite(a).all() for a in arrays_of(estimator.model_) if a.dtype.kind == "f")
    assert np.isfinite(estimator.score_samples(X)).all()
    assert np.isfinite(estimator.report_.objective) and str(estimator.report_)
    assert np.isfinite(np.asarray(estimator.sample(2, random_state=0).values)).all()
    said = estimator.predict(X)
    assert np.isfinite(np.asarray(getattr(said, "values", said), dtype=float)).all()
    if hasattr(estimator, "predict_proba"):
        P = estimator.predict_proba(X)
        assert np.allclose(np.asarray(getattr(P, "values", P)).sum(axis=1), 1.0)


@pytest.mark.some_cases(25)
@pytest.mark.parametrize("hazard", MORE)
@pytest.mark.parametrize("name", EACH)
def test_hazards_that_have_an_answer(name, hazard):
    X, _ = MORE[hazard]()
    is_sound(fitted(name, X), X)


@pytest.mark.some_cases(14)
@pytest.mark.parametrize("hazard", GAPS)
@pytest.mark.parametrize("name", EACH)
def test_missing_values_have_an_answer(name, hazard):
    X, _ = GAPS[hazard]()
    is_sound(fitted(name, X), X)


@pytest.mark.parametrize("unit", [1e-160, 1e160])
@pytest.mark.parametrize("name", EACH)
def test_spreads_whose_squares_are_no_numbers_are_refused(name, unit):
    with pytest.raises(lk.DataError, match=r"deviation of column 0 must lie between .* change its units"):
        fitted(name, table()[0] * unit)


@pytest.mark.parametrize("hazard", [h for h in REFUSED if h not in NOT_OF_SEQUENCES])
@pytest.mark.parametrize("name", EACH)
def test_hazards_that_are_refused(name, hazard):
    make, says = REFUSED[hazard]
    X, _ = make()
    with pytest.raises((ValueError, TypeError), match=f"{says}|frame"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            fitted(name, X)


@pytest.mark.some_cases(6)
@pytest.mark.parametrize("far", [1e12, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("name", EACH[3:])
def test_far_frames_are_answered(name, far):
    X, _ = table()
    est = fitted(name, X)
    X[7, 1] = far
    assert np.allclose(est.predict_proba(X).sum(axis=1), 1.0) and not np.isnan(est.score_samples(X)).any()
    assert np.allclose(est.predict_proba(X, live=True).sum(axis=1), 1.0)
