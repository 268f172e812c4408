"""Conversion of fitted state-space models of statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.convert.foreign_models import fitted_attributes
from likely.convert.linear_systems import System, time_first
from likely.core.errors import DomainError, sentence
from likely.numerics import covariance_roots
from likely.statespace.linear.linear_gaussian import LinearGaussian

ME = "from_statsmodels"
MATRICES = (
    "transition state_intercept selection state_cov design obs_intercept obs_cov initial_state initial_state_cov "
    "initial_diffuse_state_cov filter_timing"
)
FILTERED = 1  # statsmodels' filter timing in which the initial state is that before the first frame


def from_statsmodels(results: Any) -> LinearGaussian:
    """Linear-Gaussian state-space model with the estimates of fitted results of statsmodels.

    Any model of `statsmodels.tsa.statespace` can be converted: `UnobservedComponents`, `SARIMAX` and `ARIMA`,
    `ExponentialSmoothing`, `VARMAX`, `DynamicFactor` and users' own, with stationary, known, approximate diffuse and
    exact diffuse initialization. `filter` of the result gives the filtered states of the results, and `smooth` the
    smoothed ones where observations have noise. Without it, as in ARIMA models, the backward recursion of `smooth` is
    unstable: use `filter` and `forecast`. `log_prob` is the log-likelihood of all frames; statsmodels leaves the first
    `loglikelihood_burn` frames out of `llf`: log_prob(y) − log_prob(y[:burn]) is that number. statsmodels itself is not
    imported.

    Intercepts (trends, regression on exogenous variables) need one more state, the last one, which is the
    constant 1. Where they vary over time, the model is one of the frames that were fitted.

    Parameters
    ----------
    results : statsmodels results
        Of `fit`, `smooth` or `filter` of a state-space model.

    Returns
    -------
    LinearGaussian
        A model file (`lk.save`) holds it without statsmodels.

    Raises
    ------
    DomainError
        If these are not results of a state-space model.

    See Also
    --------
    from_pykalman, from_hmmlearn, from_sklearn : The same for other libraries.

    References
    ----------
    Durbin and Koopman, Time Series Analysis by State Space Methods: exact diffuse initialization.

    Examples
    --------
    ::

        results = statsmodels.tsa.api.UnobservedComponents(y, "lltrend").fit()
        model = lk.from_statsmodels(results)
        model.smooth(y).mean  # results.smoothed_state.T
    """
    origin = type(results).__module__
    found = getattr(results, "filter_results", None)
    if origin.split(".")[0] != "statsmodels" or found is None:
        expected = "results of a state-space model of statsmodels are needed (SARIMAX(…).fit(), UnobservedComponents …)"
        raise DomainError(sentence(ME, expected, f"{origin}.{type(results).__qualname__}", _reason(origin)))
    T, c, S, Q, Z, o, H, mean, covariance, diffuse, timing = fitted_attributes(found, MATRICES, ME)
    if timing == FILTERED:
        expected, remedy = "the initial state must be that of the first frame", "set timing_init_filtered=False"
        raise DomainError(sentence(ME, expected, "timing_init_filtered", remedy))
    S = time_first(S, 2)
    return System(
        transition=time_first(T, 2), state_intercept=time_first(c, 1),
        process_covariance=S @ time_first(Q, 2) @ np.swapaxes(S, -1, -2), observation=time_first(Z, 2),
        observation_intercept=time_first(o, 1), observation_covariance=time_first(H, 2),
        initial_mean=np.asarray(mean, dtype=np.float64), initial_covariance=np.asarray(covariance, dtype=np.float64),
        diffuse=_directions(diffuse),
    ).model()  # fmt: skip


def _directions(diffuse: Any) -> Any:
    """Directions E (d, q) with E Eᵀ the diffuse part of the initial covariance; None if nothing is diffuse."""
    if diffuse is None or not np.any(diffuse):
        return None
    root = covariance_roots.root(np.asarray(diffuse, dtype=np.float64)).T
    return root[:, np.abs(root).max(axis=0) > 0]


def _reason(origin: str) -> str:
    if "regime_switching" in origin:
        return "its regimes are switched by a Markov chain, which is no linear-Gaussian model"
    return "only its state-space models have equivalents here" if origin.startswith("statsmodels") else ""
