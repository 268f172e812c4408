"""Nearest neighbors under warping: bounds that cost a sweep tell which grids need not be filled at all.

A path matches the first frames, the last frames, and every frame with something inside its band. So what the ends
cost (Kim), and what each frame costs against the nearest value within reach (Keogh), in both directions, is never
more than the distance. Candidates are taken in the order of their bounds, two dozen at a time, until the next bound is
beyond the k-th neighbor; grids whose rows are all beyond it are left early. The answer is that of brute force.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.alignment.bands import band_rows, refuse_apart
from likely.alignment.dtw_matrix import SMALL, Rules, pair_totals
from likely.alignment.series import Series
from likely.alignment.step_patterns import THREE
from likely.core.arrays import Array, Index
from likely.core.engine import cores, ordered_map
from likely.core.errors import DomainError, sentence

PART = 8  # queries that a thread takes at a time


class Neighbors(NamedTuple):
    """The k nearest of some series, nearest first; of equals the lower index comes first."""

    distances: Array  # (queries, k)
    indices: Index  # (queries, k)
    filled: float  # share of all grids that had to be filled, in part at least


class Envelopes(NamedTuple):
    """The least and largest value within reach of each frame, or within the whole series."""

    low: Array
    high: Array


def nearest(queries: Series, known: Series, k: int, rules: Rules, leave_out: bool = False) -> Neighbors:
    """The k nearest of `known` for each query; with `leave_out` both are the same, and nobody is its own neighbor."""
    if queries.gaps or known.gaps or not rules.plain:
        return _brute(queries, known, k, rules, leave_out)
    refuse_apart(rules.band, queries.lengths, known.lengths, rules.whose)
    lo, hi = _rows(queries, known, rules)
    mine, theirs = envelopes(queries, *_turned(lo, hi)), envelopes(known, lo, hi)
    totals, indices = np.empty((len(queries), k)), np.empty((len(queries), k), dtype=np.int64)

    def run(start: int) -> float:
        from likely.alignment import _loops as warp

        spent = np.zeros(1)
        warp.search(
            queries.values, queries.offsets, start, min(start + PART, len(queries)), *mine, known.values, known.offsets,
            *theirs, len(lo) > 0, rules.kind, *rules.band.plain, leave_out, totals, indices, spent,
        )  # fmt: skip
        return float(spent[0])

    work = float(queries.lengths.sum()) * float(known.lengths.sum())
    parts = range(0, len(queries), PART)
    filled = sum(ordered_map(run, parts, cores() if work > SMALL else 1))
    _refuse_infinite(totals, rules)
    return Neighbors(_final(totals, rules), indices, filled / (len(queries) * len(known)))


def envelopes(series: Series, lo: Index, hi: Index) -> Envelopes:
    """Frame by frame (all frames, D) for rows of a band, or for no rows one frame a series (n, D)."""
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


def _turned(lo: Index, hi: Index) -> tuple[Index, Index]:
    """The rows that each column of a band takes."""
    j = np.arange(len(lo))
    return np.searchsorted(hi, j, side="right"), np.searchsorted(lo, j, side="right")


def _brute(queries: Series, known: Series, k: int, rules: Rules, leave_out: bool) -> Neighbors:
    """All distances, sorted: for gaps, masks, other steps, and costs that are functions."""
    totals = pair_totals(queries, known, rules)
    if leave_out:
        np.fill_diagonal(totals, np.inf)
    order = np.argsort(totals, axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(totals, order, 1)  # who cannot be reached by these steps is far
    _refuse_infinite(near, rules)
    return Neighbors(_final(near, rules), order, 1.0)


def _final(totals: Array, rules: Rules) -> Array:
    return np.sqrt(totals) if rules.rooted else totals


def _refuse_infinite(totals: Array, rules: Rules) -> None:
    if np.isfinite(totals).all():
        return
    if rules.steps != THREE:
        i = int((~np.isfinite(totals)).any(axis=1).argmax())
        got = f"fewer for sequence {i}"
        remedy = 'the lengths are too unlike for these steps: use steps="three", or a smaller k'
        raise DomainError(sentence(rules.whose, f"{totals.shape[1]} neighbors must be within reach", got, remedy))
    remedy = "divide the series by their size, or widen the band"
    raise DomainError(sentence(rules.whose, "distances must be finite", "infinity", remedy))
