"""Observations predicted from states: smoothed observations, one-step-ahead predictions, imputation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.covariates import with_covariates
from likely.core.errors import ShapeError, sentence
from likely.core.ragged import Ragged, is_single_sequence
from likely.numerics import covariance_roots, spd
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear import linear_e_step as moments
from likely.statespace.linear.kalman_filter import Series, States, series_of
from likely.statespace.linear.kalman_smoother import smooth_part
from likely.statespace.linear.linear_simulation import simulation_smoother
from likely.statespace.linear.sums_of_models import observed_covariance

ME = "LinearGaussian"


def observation_moments(model: Any, states: Any, inputs: Any) -> States:
    """Mean and covariance of the observations, from those of the states of one sequence."""
    mean, m, t = np.asarray(states.mean), model.matrices, np.arange(len(states.mean))
    C, R = (a[np.minimum(t, len(a) - 1)] for a in (m.C, model.observation_covariance.reshape(-1, model.dim, model.dim)))
    out = np.matmul(C, mean[:, :, None])[:, :, 0]
    if model.feedthrough is not None:
        series = series_of(model, np.full((len(mean), model.dim), np.nan), inputs)
        assert series.inputs is not None
        out = out + passes.added(series.inputs, model.feedthrough, series.offsets)
    return States(out, spd.symmetric(_propagated(C, np.asarray(states.covariance), R)), states.log_prob)


def one_step_predictions(model: Any, y: Any, inputs: Any) -> States:
    """One-step-ahead predictions: mean and covariance of y_t given y_1 … y_{t−1}, for one sequence."""
    series, found, first = series_of(model, y, inputs), model.filter(y, inputs), model.initial_belief()
    if not isinstance(found.mean, np.ndarray):
        got = f"{len(found.mean)} of them"
        raise ShapeError(sentence(f"{ME}.predictions", "one sequence is needed", got, "pass y[i]"))
    d, later = model.states, np.arange(1, len(series.y))
    A, Q = (a[np.minimum(later, len(a) - 1)] for a in (model.matrices.A, model.process_covariance.reshape(-1, d, d)))
    intercept = series.intercept[1:] if series.inputs is not None else series.intercept
    moved = np.matmul(A, found.mean[:-1, :, None])[:, :, 0] + intercept
    mean = np.concatenate([first.mean[None], moved])[: len(series.y)]
    covariance = np.concatenate([first.covariance[None], _propagated(A, found.covariance[:-1], Q)])[: len(series.y)]
    return observation_moments(model, States(mean, covariance, found.log_prob), inputs)


def _propagated(A: Array, P: Array, noise: Array) -> Array:
    """A P Aᵀ + noise; entries with infinite variance have covariance 0 with the others."""
    moved = observed_covariance(A, P)
    diffuse = np.isinf(np.diagonal(moved, axis1=1, axis2=2))
    return moved + np.where(diffuse[:, :, None] | diffuse[:, None, :], 0.0, noise)


def imputed(model: Any, y: Any, inputs: Any, rng: Generator | None = None) -> Any:
    """Missing entries replaced by their conditional expectation, given smoothed states and noise of observed entries.

    With a generator, by a draw: states by the simulation smoother, then the noise given that of observed entries.
    """
    series = series_of(model, y, inputs)
    mean = _path(model, y, inputs, series, rng)
    t = np.arange(len(series.y)) - np.repeat(series.offsets[:-1], np.diff(series.offsets))
    C, R = model.matrices.C, model.observation_covariance.reshape(-1, model.dim, model.dim)
    predicted = np.matmul(C[np.minimum(t, len(C) - 1)], mean[:, :, None])[:, :, 0]
    out, is_missing = series.y.copy(), np.isnan(series.y)
    for at, observed, noise in _groups(is_missing, t, R):
        regression, conditional_covariance = (
            moments.missing_regression(noise, observed) if len(observed) else (np.zeros((model.dim, 0)), noise)
        )
        missing = np.setdiff1d(np.arange(model.dim), observed)
        residuals = (series.y[at] - predicted[at])[:, observed]
        out[np.ix_(at, missing)] = (predicted[at] + residuals @ regression.T)[:, missing]
        if rng is not None:
            out[np.ix_(at, missing)] += (
                rng.standard_normal((len(at), model.dim)) @ covariance_roots.root(conditional_covariance)
            )[:, missing]
    if model.feedthrough is not None and series.inputs is not None:
        out = out + passes.added(series.inputs, model.feedthrough, series.offsets)
    return out if is_single_sequence(y) else Ragged(out, series.offsets)


def _groups(is_missing: Array, t: Index, R: Array) -> Iterator[tuple[Index, Index, Array]]:
    """Groups of incomplete frames with the same observed entries and noise covariance: frames, entries, covariance."""
    incomplete = np.flatnonzero(is_missing.any(axis=1))
    keys = np.column_stack([is_missing[incomplete], np.minimum(t[incomplete], len(R) - 1)])
    patterns, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    groups = np.split(incomplete[np.argsort(which.ravel(), kind="stable")], np.cumsum(counts)[:-1])
    for at, key in zip(groups, patterns, strict=False):  # no patterns, and one empty group, if nothing is missing
        yield at, np.flatnonzero(key[:-1] == 0), R[key[-1]]


def _path(model: Any, y: Any, inputs: Any, series: Series, rng: Generator | None) -> Array:
    """Smoothed means of the states of all frames, or draws from the simulation smoother."""
    if rng is None:
        found = passes.map_parts(lambda part, a: smooth_part(model, part, a, lag_one=False)[1], series)
        return np.concatenate([np.empty((0, model.states)), *found])
    whole = Ragged.of(y) if inputs is None else with_covariates(y, inputs)
    drawn = [simulation_smoother(model, one, 1, rng, None)[0] for one in whole if len(one)]
    return np.concatenate([np.empty((0, model.states)), *drawn])
