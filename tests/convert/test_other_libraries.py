"""Converters of models of hmmlearn, statsmodels and pykalman: recorded ones, and real ones where they are installed.

`tests/reference/make_converters.py` records the attributes and scores of fitted models. Stand-ins have the class names
and attributes that were recorded, so converters are tested without these libraries.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from tests.reference.make_converters import CASES, LENGTHS

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "converters.json").read_text())
CONVERTERS = {
    "hmmlearn": lk.from_hmmlearn, "statsmodels": lk.from_statsmodels, "pykalman": lk.from_pykalman,
}  # fmt: skip


def rebuilt(value):
    """Numbers as arrays, null in arrays as NaN, dicts as objects."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: rebuilt(part) for name, part in value.items()})
    return np.array(value, dtype=float) if isinstance(value, list) else value


def stand_in(case):
    """An object of a class of the same name and module, with the recorded attributes."""
    made = type(case["class"], (), {"__module__": case["module"]})()
    for name, value in case["attributes"].items():
        setattr(made, name, rebuilt(value))
    return made


def check(library, model, data, scores):
    """Equal scores, to 1e-10."""
    (check_states if library == "hmmlearn" else check_system)(model, data, scores)


def check_states(model, x, scores):
    sequences = lk.Ragged.of(x, LENGTHS)
    np.testing.assert_allclose(model.log_prob(sequences), scores["log_prob"], rtol=1e-10)
    np.testing.assert_allclose(model.posterior(sequences).values, scores["posterior"], atol=1e-10)
    np.testing.assert_allclose([model.viterbi(part).log_prob for part in sequences], scores["path"], rtol=1e-10)


def check_system(model, y, scores):
    before = beginning(model, scores["burn"]).log_prob(y[: scores["burn"]])[0] if scores["burn"] else 0.0
    assert model.log_prob(y)[0] - before == pytest.approx(scores["log_prob"], rel=1e-10)
    check_means(model.filter(y).mean[scores["first"] :], np.asarray(scores["filtered"])[scores["first"] :])
    if "smoothed" in scores:
        check_means(model.smooth(y).mean, scores["smoothed"])
    if "covariance" in scores:
        d = np.shape(scores["covariance"])[1]
        np.testing.assert_allclose(model.smooth(y).covariance[:, :d, :d], scores["covariance"], atol=1e-10)


def check_means(found, expected):
    """The last state, where there is one more, is the constant of the intercepts."""
    expected = np.asarray(expected)
    d = expected.shape[1]
    np.testing.assert_allclose(found[:, :d], expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert np.allclose(found[:, d:], 1.0, rtol=0, atol=1e-12)


def beginning(model, frames):
    """The model of the first frames of a time-varying one."""
    varying = {name: part[:frames] for name, part in model.field_values().items() if np.ndim(part) == 3}
    return model.replace(**varying)


@pytest.mark.parametrize(("library", "name"), [(lib, name) for lib in REFERENCE for name in REFERENCE[lib]["cases"]])
def test_recorded_models_are_converted(library, name):
    case = REFERENCE[library]["cases"][name]
    scores = {key: rebuilt(value) for key, value in case["scores"].items()}
    check(library, CONVERTERS[library](stand_in(case)), rebuilt(case["data"]), scores)


@pytest.mark.slow
@pytest.mark.parametrize("library", list(CASES))
def test_models_of_the_library_itself_are_converted(library):
    pytest.importorskip(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        for case in CASES[library]():
            check(library, CONVERTERS[library](case.model), case.data, case.scores)


@pytest.mark.parametrize("library", list(CASES))
def test_a_converted_model_is_saved_without_the_library(library, tmp_path):
    case = next(iter(REFERENCE[library]["cases"].values()))
    model, data = CONVERTERS[library](stand_in(case)), rebuilt(case["data"])
    lk.save(model, tmp_path / "model")
    np.testing.assert_array_equal(lk.load(tmp_path / "model").log_prob(data), model.log_prob(data))


def named(name, module, **attributes):
    made = type(name, (), {"__module__": module})()
    vars(made).update(attributes)
    return made


@pytest.mark.parametrize(
    ("convert", "model", "says"),
    [
        (lk.from_hmmlearn, named("VariationalGaussianHMM", "hmmlearn.vhmm"), "GaussianHMM.*bounds"),
        (lk.from_hmmlearn, object(), "CategoricalHMM.*builtins.object"),
        (lk.from_pykalman, named("UnscentedKalmanFilter", "pykalman.unscented"), "lk.UnscentedKalmanFilter"),
        (lk.from_statsmodels, named("OLSResults", "statsmodels.regression.linear_model"), "state-space model"),
        (lk.from_statsmodels, named("MarkovRegressionResults", "statsmodels.tsa.regime_switching"), "Markov chain"),
        (lk.from_statsmodels, 3.0, "builtins.float"),
    ],
)
def test_other_models_are_refused_with_a_list(convert, model, says):
    with pytest.raises(DomainError, match=says):
        convert(model)


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(DataError, match="GaussianHMM without startprob_: fit it first"):
        lk.from_hmmlearn(named("GaussianHMM", "hmmlearn.hmm"))


def test_a_subclass_of_the_user_is_converted():
    base = type("PoissonHMM", (), {"__module__": "hmmlearn.hmm"})
    mine = type("Mine", (base,), {"__module__": "mine"})()
    mine.startprob_, mine.transmat_, mine.lambdas_ = [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[1.0], [5.0]]
    assert lk.from_hmmlearn(mine).emission.rate.tolist() == [[1.0], [5.0]]


def test_the_initial_state_must_be_that_of_the_first_frame():
    case = REFERENCE["statsmodels"]["cases"]["VAR"]
    results = stand_in(case)
    results.filter_results.filter_timing = 1
    with pytest.raises(DomainError, match="timing_init_filtered"):
        lk.from_statsmodels(results)


def test_time_varying_matrices_are_for_one_number_of_frames():
    case = REFERENCE["pykalman"]["cases"]["time-varying"]
    model = stand_in(case)
    model.observation_matrices = model.observation_matrices[:5]
    with pytest.raises(ShapeError, match="one number of frames"):
        lk.from_pykalman(model)
