"""What is seen of hidden vectors: observations expected from states, before they came, and where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index
from likely.core.covariates import with_covariates
from likely.core.errors import ShapeError, sentence
from likely.core.ragged import Ragged
from likely.hmm.decoding import is_one
from likely.numerics import covariance_roots, spd
from likely.statespace.linear import kalman_filter as passes
from likely.statespace.linear import linear_e_step as moments
from likely.statespace.linear.kalman_filter import Series, States, series_of
from likely.statespace.linear.kalman_smoother import smoothed
from likely.statespace.linear.linear_simulation import drawn_states
from likely.statespace.linear.sums_of_models import seen_covariance

ME = "LinearGaussian"


def seen_of(model: Any, states: Any, inputs: Any) -> States:
    """Mean and covariance of observations, from those of states of one sequence."""
    mean, m, t = np.asarray(states.mean), model.matrices, np.arange(len(states.mean))
    C, R = (a[np.minimum(t, len(a) - 1)] for a in (m.C, model.observation_covariance.reshape(-1, model.dim, model.dim)))
    out = np.matmul(C, mean[:, :, None])[:, :, 0]
    if model.feedthrough is not None:
        series = series_of(model, np.full((len(mean), model.dim), np.nan), inputs)
        assert series.inputs is not None
        out = out + passes.added(series.inputs, model.feedthrough, series.offsets)
    return States(out, spd.symmetric(_spread(C, np.asarray(states.covariance), R)), states.log_prob)


def foreseen(model: Any, y: Any, inputs: Any) -> States:
    """Mean and covariance of each observation of one sequence, given those before it."""
    series, found, first = series_of(model, y, inputs), model.filter(y, inputs), model.initial_belief()
    if not isinstance(found.mean, np.ndarray):
        came = f"{len(found.mean)} of them"
        raise ShapeError(sentence(f"{ME}.predictions", "one sequence is needed", came, "pass y[i]"))
    d, later = model.states, np.arange(1, len(series.y))
    A, Q = (a[np.minimum(later, len(a) - 1)] for a in (model.matrices.A, model.process_covariance.reshape(-1, d, d)))
    push = series.push[1:] if series.inputs is not None else series.push
    moved = np.matmul(A, found.mean[:-1, :, None])[:, :, 0] + push
    mean = np.concatenate([first.mean[None], moved])[: len(series.y)]
    covariance = np.concatenate([first.covariance[None], _spread(A, found.covariance[:-1], Q)])[: len(series.y)]
    return seen_of(model, States(mean, covariance, found.log_prob), inputs)


def _spread(A: Array, P: Array, noise: Array) -> Array:
    """A P Aᵀ and the noise; what is infinite stays alone, without covariances."""
    moved = seen_covariance(A, P)
    open_ = np.isinf(np.diagonal(moved, axis1=1, axis2=2))
    return moved + np.where(open_[:, :, None] | open_[:, None, :], 0.0, noise)


def imputed(model: Any, y: Any, inputs: Any, rng: Generator | None = None) -> Any:
    """Missing entries by their expectation: what states say, and what the noise of entries that were seen says.

    With a generator by a draw: of the states given all that was seen, then of the noise given theirs.
    """
    series = series_of(model, y, inputs)
    mean = _path(model, y, inputs, series, rng)
    t = np.arange(len(series.y)) - np.repeat(series.offsets[:-1], np.diff(series.offsets))
    C, R = model.matrices.C, model.observation_covariance.reshape(-1, model.dim, model.dim)
    believed = np.matmul(C[np.minimum(t, len(C) - 1)], mean[:, :, None])[:, :, 0]
    out, hidden = series.y.copy(), np.isnan(series.y)
    for at, seen, noise in _alike(hidden, t, R):
        lift, left = moments.lift(noise, seen) if len(seen) else (np.zeros((model.dim, 0)), noise)
        gone = np.setdiff1d(np.arange(model.dim), seen)
        off = (series.y[at] - believed[at])[:, seen]
        out[np.ix_(at, gone)] = (believed[at] + off @ lift.T)[:, gone]
        if rng is not None:
            out[np.ix_(at, gone)] += (rng.standard_normal((len(at), model.dim)) @ covariance_roots.root(left))[:, gone]
    if model.feedthrough is not None and series.inputs is not None:
        out = out + passes.added(series.inputs, model.feedthrough, series.offsets)
    return out if is_one(y) else Ragged(out, series.offsets)


def _alike(hidden: Array, t: Index, R: Array) -> Iterator[tuple[Index, Index, Array]]:
    """Frames with gaps of which the same entries were seen with the same noise: frames, entries, the noise."""
    some = np.flatnonzero(hidden.any(axis=1))
    keys = np.column_stack([hidden[some], np.minimum(t[some], len(R) - 1)])
    patterns, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    groups = np.split(some[np.argsort(which.ravel(), kind="stable")], np.cumsum(counts)[:-1])
    for at, key in zip(groups, patterns, strict=False):  # no patterns, and one group of nothing, if there are no gaps
        yield at, np.flatnonzero(key[:-1] == 0), R[key[-1]]


def _path(model: Any, y: Any, inputs: Any, series: Series, rng: Generator | None) -> Array:
    """States of all frames: expected, or drawn sequence by sequence."""
    if rng is None:
        found = passes.in_parts(lambda part, a: smoothed(model, part, a, lag_one=False)[1], series)
        return np.concatenate([np.empty((0, model.states)), *found])
    whole = Ragged.of(y) if inputs is None else with_covariates(y, inputs)
    drawn = [drawn_states(model, one, 1, rng, None)[0] for one in whole if len(one)]
    return np.concatenate([np.empty((0, model.states)), *drawn])
