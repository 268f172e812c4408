"""Rauch–Tung–Striebel smoother: means, covariances and lag-one covariances of the states given all frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, sentence
from likely.statespace.linear.kalman_filter import ME, FilterOutput, Series, filter_part, read_only


def smooth_part(
    model: Any, series: Series, before: int = 0, lag_one: bool = True
) -> tuple[FilterOutput, Array, Array, Array]:
    """Forward and backward pass over a part: filter output, smoothed means, covariances, lag-one covariances."""
    from likely.statespace.linear import _loops as kalman

    m, filtered = model.matrices, filter_part(model, series)
    refuse_unknown(filtered, series, before)
    F, d = filtered.means.shape
    out, cov, lag = np.empty((F, d)), np.empty((F, d, d)), np.empty((F if lag_one else 0, d, d))
    n = len(series.offsets) - 1 if (filtered.diffuse_end > 0).any() else 0
    frames, back = (
        (m.A, m.N, read_only(series.intercept), read_only(series.offsets), 0),
        (np.empty((n, d)), np.empty((n, d, d))),
    )
    kalman.smooth_pass(
        *frames, filtered.diffuse_end, filtered.means, filtered.roots, filtered.is_steady, out, cov, lag, *back
    )
    if n:
        kalman.smooth_diffuse_pass(
            *frames, filtered.means, filtered.diffuse_end, *filtered.diffuse_part, *back, out, cov, lag
        )
    if lag_one:
        lag[series.offsets[:-1][np.diff(series.offsets) > 0]] = 0.0
    return filtered, out, cov, lag


def refuse_unknown(filtered: FilterOutput, series: Series, before: int) -> None:
    """Refuse sequences whose observations do not determine the diffuse initial state: they cannot be smoothed."""
    never = np.flatnonzero((filtered.diffuse_end == np.diff(series.offsets)) & (np.diff(series.offsets) > 0))
    if len(never):
        got = f"sequence {before + int(never[0])} does not determine it"
        remedy = "give the model an initial covariance, or leave the sequence out"
        raise DataError(sentence(ME, "a diffuse initial state must be determined by the observations", got, remedy))
