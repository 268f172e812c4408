"""Writes converters.json: fitted models of hmmlearn, statsmodels and pykalman as their attributes, with their scores.

Run it where the libraries are installed: python tests/reference/make_converters.py
`tests/convert` rebuilds objects of the same class names with these attributes, and uses `cases` where a library is
installed.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LENGTHS = [9, 1, 14]
HMM = "startprob_ transmat_ "
SYSTEM = (
    "transition state_intercept selection state_cov design obs_intercept obs_cov initial_state initial_state_cov "
    "initial_diffuse_state_cov filter_timing"
)
FILTER = (
    "transition_matrices transition_offsets transition_covariance observation_matrices observation_offsets "
    "observation_covariance initial_state_mean initial_state_covariance n_dim_state n_dim_obs"
)


class Case(NamedTuple):
    """A fitted model, the attributes that a converter reads, data, and its scores."""

    name: str
    model: Any
    attributes: dict[str, Any]  # names of attributes; a nested object is a name with its own attributes
    data: Any
    scores: dict[str, Any]


def hmmlearn_cases() -> Iterator[Case]:
    from hmmlearn import hmm

    rng = np.random.default_rng(1)
    n = sum(LENGTHS)
    walk = np.cumsum(rng.standard_normal((n, 2)), axis=0).round(3)
    counts = rng.poisson(3.0, (n, 2))
    symbols = rng.integers(0, 4, (n, 1))
    trials = rng.multinomial(6, [0.2, 0.3, 0.5], n)
    for kind in ("full", "tied", "diag", "spherical"):
        model = hmm.GaussianHMM(3, kind, n_iter=3, random_state=0).fit(walk, LENGTHS)
        yield _hmm_case(f"GaussianHMM {kind}", model, "means_ covars_ covariance_type", walk)
    for kind in ("full", "tied", "diag", "spherical"):
        model = hmm.GMMHMM(2, 2, covariance_type=kind, n_iter=3, random_state=0).fit(walk, LENGTHS)
        yield _hmm_case(f"GMMHMM {kind}", model, "weights_ means_ covars_ covariance_type", walk)
    model = hmm.CategoricalHMM(3, n_iter=3, random_state=0).fit(symbols, LENGTHS)
    yield _hmm_case("CategoricalHMM", model, "emissionprob_", symbols)
    model = hmm.MultinomialHMM(2, n_trials=6, n_iter=3, random_state=0).fit(trials, LENGTHS)
    yield _hmm_case("MultinomialHMM", model, "emissionprob_ n_trials", trials)
    model = hmm.PoissonHMM(2, n_iter=3, random_state=0).fit(counts, LENGTHS)
    yield _hmm_case("PoissonHMM", model, "lambdas_", counts)


def _hmm_case(name: str, model: Any, attributes: str, x: np.ndarray) -> Case:
    bounds = np.cumsum([0, *LENGTHS])
    parts = [x[a:b] for a, b in pairwise(bounds)]
    scores = {
        "log_prob": [model.score(part) for part in parts],
        "posterior": model.predict_proba(x, LENGTHS),
        "path": [model.decode(part)[0] for part in parts],
    }
    return Case(name, model, dict.fromkeys((HMM + attributes).split()), x, scores)


def statsmodels_cases() -> Iterator[Case]:
    from statsmodels.tsa import api

    rng = np.random.default_rng(2)
    y = (10 + np.cumsum(rng.standard_normal(40)) + rng.standard_normal(40)).round(3)
    gaps = y.copy()
    gaps[[3, 17, 18]] = np.nan
    regressor = rng.standard_normal((40, 1)).round(3)
    two = np.column_stack([y, np.roll(y, 1) + rng.standard_normal(40)]).round(3)
    level = api.UnobservedComponents(gaps, "local level", use_exact_diffuse=True)
    yield _linear_case("local level, exact diffuse", level, [0.8, 0.5], gaps)
    trend = api.UnobservedComponents(y, "lltrend", use_exact_diffuse=True)
    yield _linear_case("local linear trend, exact diffuse", trend, [0.8, 0.3, 0.1], y)
    trend = api.UnobservedComponents(y, "lltrend")
    yield _linear_case("local linear trend, approximate diffuse", trend, [0.8, 0.3, 0.1], y)
    seasonal = api.UnobservedComponents(y, "local level", freq_seasonal=[{"period": 5}], use_exact_diffuse=True)
    yield _linear_case("seasonal, exact diffuse", seasonal, [0.8, 0.3, 0.1], y)
    exog = api.UnobservedComponents(y, "local level", exog=regressor)
    yield _linear_case("regression", exog, [0.8, 0.3, 1.5], y)
    arma = api.SARIMAX(gaps, order=(2, 0, 1), trend="c")
    yield _linear_case("ARMA with a constant, stationary", arma, [2.0, 0.5, 0.2, 0.3, 1.1], gaps)
    drift = api.SARIMAX(y, order=(1, 1, 1), trend="t")
    yield _linear_case("ARIMA with a drift", drift, [0.02, 0.4, 0.3, 1.1], y)
    concentrated = api.SARIMAX(y, order=(1, 0, 0), concentrate_scale=True)
    yield _linear_case("concentrated scale", concentrated, [0.7], y)
    airline = api.SARIMAX(y, order=(0, 1, 1), seasonal_order=(0, 1, 1, 4))
    yield _linear_case("seasonal ARIMA", airline, [-0.4, -0.3, 1.1], y)
    var = api.VARMAX(two, order=(1, 0), trend="c")
    yield _linear_case("VAR", var, [1.0, 2.0, 0.5, 0.1, 0.2, 0.4, 1.0, 0.2, 0.8], two)


def _linear_case(name: str, model: Any, parameters: list[float], y: np.ndarray) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = model.smooth(np.array(parameters))
    burn = int(results.loglikelihood_burn)
    first = max(burn, int(results.filter_results.nobs_diffuse))  # filtered states before it are not determined
    scores = {
        "log_prob": float(np.sum(results.llf_obs[burn:])), "burn": burn, "first": first,
        "filtered": results.filtered_state.T,
    }  # fmt: skip
    if results.filter_results.obs_cov.any():  # without noise the backward recursions of both lose digits
        scores["smoothed"] = results.smoothed_state.T
    return Case(name, results, {"filter_results": SYSTEM}, y, scores)


def pykalman_cases() -> Iterator[Case]:
    from pykalman import KalmanFilter

    rng = np.random.default_rng(3)
    y = np.cumsum(rng.standard_normal((20, 2)), axis=0).round(3)
    gaps = y.copy()
    gaps[[4, 11]] = np.nan
    A, C = [[1.0, 0.1], [-0.1, 0.9]], [[1.0, 0.2], [0.0, 1.0]]
    learned = KalmanFilter(A, C, n_dim_obs=2).em(y, n_iter=3)
    yield _filter_case("learned by EM", learned, y)
    yield _filter_case("defaults", KalmanFilter(n_dim_state=2, n_dim_obs=2), gaps)
    offsets = KalmanFilter(A, C, 0.5 * np.eye(2), np.eye(2), [0.3, -0.2], [1.0, 2.0], [1.0, -1.0], 2 * np.eye(2))
    yield _filter_case("offsets", offsets, gaps)
    transitions = np.array(A) * rng.uniform(0.8, 1.1, (19, 1, 1)).round(3)
    varying = KalmanFilter(
        transitions, np.array(C) * rng.uniform(0.5, 2, (20, 1, 1)).round(3),
        0.5 * np.eye(2), np.eye(2), rng.standard_normal((19, 2)).round(3), rng.standard_normal((20, 2)).round(3),
        [1.0, -1.0], 2 * np.eye(2),
    )  # fmt: skip
    yield _filter_case("time-varying", varying, y)


def _filter_case(name: str, model: Any, y: np.ndarray) -> Case:
    masked = np.ma.masked_invalid(y)
    mean, covariance = model.smooth(masked)
    scores = {
        "log_prob": float(model.loglikelihood(masked)), "burn": 0, "first": 0, "filtered": model.filter(masked)[0],
        "smoothed": mean, "covariance": covariance,
    }  # fmt: skip
    return Case(name, model, dict.fromkeys(FILTER.split()), y, scores)


CASES = {"hmmlearn": hmmlearn_cases, "statsmodels": statsmodels_cases, "pykalman": pykalman_cases}


def recorded(case: Case) -> dict[str, Any]:
    """What a stand-in needs: the names of the class, its attributes, data and scores."""
    first = next(cls for cls in type(case.model).__mro__ if cls.__module__.split(".")[0] in CASES)
    attributes = {
        name: _plain(getattr(case.model, name)) if inner is None
        else {part: _plain(getattr(getattr(case.model, name), part)) for part in inner.split()}
        for name, inner in case.attributes.items()
    }  # fmt: skip
    scores = {name: _plain(score) for name, score in case.scores.items()}
    return {
        "module": first.__module__, "class": first.__name__, "attributes": attributes, "data": _plain(case.data),
        "scores": scores,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """A value that JSON can hold; NaN is null."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, str | int | float | None):
        return value
    array = np.asarray(value)
    return np.where(np.isnan(array), None, array).tolist() if array.dtype.kind == "f" else array.tolist()


if __name__ == "__main__":
    from importlib.metadata import version

    made = {
        library: {
            "version": version(library), "lengths": LENGTHS, "cases": {case.name: recorded(case) for case in cases()}
        }
        for library, cases in CASES.items()
    }  # fmt: skip
    Path(__file__).with_name("converters.json").write_text(json.dumps(made) + "\n")
