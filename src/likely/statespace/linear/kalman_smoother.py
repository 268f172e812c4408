"""Rauch–Tung–Striebel smoother: means, covariances and lag-one covariances of the states given all frames.

The recursion is in `_loops.py`: `smooth_pass`; that of short sequences is in `short_sequences.py`, and another one,
for observations without noise, in `disturbance_smoother.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, sentence
from likely.statespace.linear.disturbance_smoother import is_noiseless, is_unstable, smooth_noiseless
from likely.statespace.linear.kalman_filter import ME, FilterOutput, Series, equal_runs, filter_part, read_only
from likely.statespace.linear.short_sequences import loop_for, smooth_short


def smooth_part(
    model: Any, series: Series, before: int = 0, lag_one: bool = True
) -> tuple[FilterOutput, Array, Array, Array]:
    """Forward and backward pass over a part: filter output, smoothed means, covariances, lag-one covariances."""
    from likely.statespace.linear import _loops as kalman

    m, filtered = model.matrices, filter_part(model, series)
    refuse_undetermined_initial_state(filtered, series, before)
    F, d = filtered.means.shape
    out, cov, lag = np.empty((F, d)), np.empty((F, d, d)), np.empty((F if lag_one else 0, d, d))
    left = ~smooth_short(m, series, filtered, out, cov, lag)
    frames_left = int(np.diff(series.offsets)[left].sum())
    for a, b in equal_runs(left):
        if left[a]:
            at, part, some = slice(*series.offsets[[a, b]].tolist()), series.cut(a, b), filtered.cut(series, a, b)
            n = b - a if (some.diffuse_end > 0).any() else 0
            frames = m.A, m.N, read_only(part.intercept), read_only(part.offsets), 0
            back = np.empty((n, d)), np.empty((n, d, d))
            smooth_pass, smooth_diffuse_pass = (
                loop_for(loop, model, frames_left) for loop in (kalman.smooth_pass, kalman.smooth_diffuse_pass)
            )
            to = out[at], cov[at], lag[at]
            smooth_pass(*frames, some.diffuse_end, some.means, some.roots, some.is_steady, *to, *back)
            if n:
                smooth_diffuse_pass(*frames, some.means, some.diffuse_end, *some.diffuse_part, *back, *to)
    if is_noiseless(model):
        _smooth_unstable(model, series, filtered, out, cov, lag)
    if lag_one:
        lag[series.offsets[:-1][np.diff(series.offsets) > 0]] = 0.0
    return filtered, out, cov, lag


def _smooth_unstable(model: Any, series: Series, filtered: FilterOutput, out: Array, cov: Array, lag: Array) -> None:
    """Smooth sequences of observations without noise anew in which errors of the first recursion grow."""
    from likely.statespace.linear import _loops as kalman

    m, d = model.matrices, model.states
    for n in np.flatnonzero(np.diff(series.offsets) > 1).tolist():
        at = slice(*series.offsets[n : n + 2].tolist())
        part, some = series.cut(n, n + 1), filtered.cut(series, n, n + 1)
        if not is_unstable(model, part, some):
            continue
        is_diffuse = int(some.diffuse_end[0] > 0)
        back, to = (np.empty((is_diffuse, d)), np.empty((is_diffuse, d, d))), (out[at], cov[at], lag[at])
        smooth_noiseless(model, part, some, *to, *back)
        if is_diffuse:
            frames = m.A, m.N, read_only(part.intercept), read_only(part.offsets), 0
            diffuse = some.means, some.diffuse_end, *some.diffuse_part
            loop_for(kalman.smooth_diffuse_pass, model, len(part.y))(*frames, *diffuse, *back, *to)


def refuse_undetermined_initial_state(filtered: FilterOutput, series: Series, before: int) -> None:
    """Refuse sequences whose observations do not determine the diffuse initial state: they cannot be smoothed."""
    never = np.flatnonzero((filtered.diffuse_end == np.diff(series.offsets)) & (np.diff(series.offsets) > 0))
    if len(never):
        got = f"sequence {before + int(never[0])} does not determine it"
        remedy = "give the model an initial covariance, or leave the sequence out"
        raise DataError(sentence(ME, "a diffuse initial state must be determined by the observations", got, remedy))
