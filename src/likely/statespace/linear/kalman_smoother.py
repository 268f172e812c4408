"""The Rauch–Tung–Striebel smoother: states given all frames, those before and those after."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DataError, sentence
from likely.statespace.linear.kalman_filter import ME, Kept, Series, filtered, locked


def smoothed(model: Any, series: Series, before: int = 0, lag_one: bool = True) -> tuple[Kept, Array, Array, Array]:
    """Filter and smoother of a part: what was kept, means, covariances, lag-one covariances."""
    from likely.statespace.linear import _loops as kalman

    m, kept = model.matrices, filtered(model, series)
    refuse_unknown(kept, series, before)
    F, d = kept.means.shape
    out, cov, lag = np.empty((F, d)), np.empty((F, d, d)), np.empty((F if lag_one else 0, d, d))
    n = len(series.offsets) - 1 if (kept.tied > 0).any() else 0
    frames, back = (m.A, m.N, locked(series.push), locked(series.offsets), 0), (np.empty((n, d)), np.empty((n, d, d)))
    kalman.smooth_pass(*frames, kept.tied, kept.means, kept.roots, kept.same, out, cov, lag, *back)
    if n:
        kalman.smooth_diffuse_pass(*frames, kept.means, kept.tied, *kept.loose, *back, out, cov, lag)
    if lag_one:
        lag[series.offsets[:-1][np.diff(series.offsets) > 0]] = 0.0
    return kept, out, cov, lag


def refuse_unknown(kept: Kept, series: Series, before: int) -> None:
    """Sequences too short, or too empty, to say where their state began cannot be smoothed."""
    never = np.flatnonzero((kept.tied == np.diff(series.offsets)) & (np.diff(series.offsets) > 0))
    if len(never):
        came = f"sequence {before + int(never[0])} does not determine it"
        remedy = "give the model a covariance of its first state, or leave the sequence out"
        raise DataError(sentence(ME, "a diffuse start must be determined by what was seen", came, remedy))
