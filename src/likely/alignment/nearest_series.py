"""Nearest neighbors under DTW: lower bounds (LB_Kim, LB_Keogh) skip most alignments, exactly.

A path matches the first frames, the last frames, and every frame with something inside its band. So the cost of the
ends (LB_Kim), and of each frame against the envelope (LB_Keogh), in both directions, never exceeds the distance.
Candidates are taken in the order of their bounds, two dozen at a time, until the next bound exceeds the k-th neighbor;
alignments are abandoned early once a row exceeds it. The result is that of brute force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.alignment.bands import band_rows, refuse_disconnected
from likely.alignment.pairwise_dtw import SMALL, Rules, numpy_work, pair_totals
from likely.alignment.series import Series
from likely.alignment.step_patterns import UNWEIGHTED
from likely.core.arrays import Array, Index
from likely.core.engine import cores, ordered_map
from likely.core.errors import DomainError, sentence
from likely.core.job_size import compiles_for

PART = 8  # queries that a thread takes at a time


class NearestSeries(NamedTuple):
    """The k nearest of some series, nearest first; of equals the lower index comes first."""

    distances: Array  # (queries, k)
    indices: Index  # (queries, k)
    filled: float  # share of all alignments that were computed, at least in part


class Envelopes(NamedTuple):
    """Minimum and maximum within the band of each frame, or of the whole series."""

    low: Array
    high: Array


def nearest(queries: Series, known: Series, k: int, rules: Rules, leave_out: bool = False) -> NearestSeries:
    """The k nearest of `known` for each query; with `leave_out` both are the same, and none is its own neighbor."""
    if queries.has_missing or known.has_missing or not rules.plain or not compiles_for(numpy_work(queries, known)):
        return _brute(queries, known, k, rules, leave_out)
    refuse_disconnected(rules.band, queries.lengths, known.lengths, rules.whose)
    lo, hi = _rows(queries, known, rules)
    query_envelopes, known_envelopes = envelopes(queries, *_transposed(lo, hi)), envelopes(known, lo, hi)
    totals, indices = np.empty((len(queries), k)), np.empty((len(queries), k), dtype=np.int64)

    def run(start: int) -> float:
        from likely.alignment import _loops as warp

        n_computed = np.zeros(1)
        bounds = np.empty((min(start + PART, len(queries)) - start, len(known)))
        warp.lower_bounds(
            queries.values, queries.offsets, start, *query_envelopes, known.values, known.offsets, *known_envelopes,
            len(lo) > 0, rules.kind, bounds,
        )  # fmt: skip
        warp.search(
            queries.values, queries.offsets, start, known.values, known.offsets, bounds,
            bounds.argsort(axis=1, kind="stable"), rules.kind, *rules.band.plain, leave_out, totals, indices,
            n_computed,
        )  # fmt: skip
        return float(n_computed[0])

    work = float(queries.lengths.sum()) * float(known.lengths.sum())
    parts = range(0, len(queries), PART)
    filled = sum(ordered_map(run, parts, cores() if work > SMALL else 1))
    _refuse_infinite(totals, rules)
    return NearestSeries(_final(totals, rules), indices, filled / (len(queries) * len(known)))


def envelopes(series: Series, lo: Index, hi: Index) -> Envelopes:
    """Envelopes per frame (all frames, D) for rows of a band, or without rows one per series (n, D)."""
    from likely.alignment import _loops as warp

    if not len(lo):
        starts = series.offsets[:-1]
        return Envelopes(np.minimum.reduceat(series.values, starts), np.maximum.reduceat(series.values, starts))
    low, high = np.empty_like(series.values), np.empty_like(series.values)
    warp.envelope(series.values, series.offsets, lo, hi, low, high)
    return Envelopes(low, high)


def _rows(queries: Series, known: Series, rules: Rules) -> tuple[Index, Index]:
    """The rows of a band that is cut for one length; none where lengths differ: the whole series is then in reach."""
    T = int(queries.lengths[0])
    if not rules.band.closed or (queries.lengths != T).any() or (known.lengths != T).any():
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return band_rows(rules.band, T, T, rules.whose)


def _transposed(lo: Index, hi: Index) -> tuple[Index, Index]:
    """The rows of each column of a band."""
    j = np.arange(len(lo))
    return np.searchsorted(hi, j, side="right"), np.searchsorted(lo, j, side="right")


def _brute(queries: Series, known: Series, k: int, rules: Rules, leave_out: bool) -> NearestSeries:
    """Brute force over all distances: for missing values, masks, other step patterns, and cost functions."""
    totals = pair_totals(queries, known, rules)
    if leave_out:
        np.fill_diagonal(totals, np.inf)
    order = np.argsort(totals, axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(totals, order, 1)  # series that the step pattern cannot align are at infinity
    _refuse_infinite(near, rules)
    return NearestSeries(_final(near, rules), order, 1.0)


def _final(totals: Array, rules: Rules) -> Array:
    return np.sqrt(totals) if rules.takes_root else totals


def _refuse_infinite(totals: Array, rules: Rules) -> None:
    if np.isfinite(totals).all():
        return
    if rules.steps != UNWEIGHTED:
        i = int((~np.isfinite(totals)).any(axis=1).argmax())
        got = f"fewer for sequence {i}"
        remedy = 'the lengths differ too much for this step pattern: use step_pattern="unweighted", or fewer neighbors'
        raise DomainError(sentence(rules.whose, f"{totals.shape[1]} neighbors must be within reach", got, remedy))
    remedy = "rescale the series, or widen the band"
    raise DomainError(sentence(rules.whose, "distances must be finite", "infinity", remedy))
