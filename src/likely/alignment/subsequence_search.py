"""Subsequence DTW: matches of a short query in a long series, with two columns of the grid in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from likely.alignment.bands import Band
from likely.alignment.dtw_grid import LEAST_OBSERVED, Grid, part_scale
from likely.alignment.local_costs import LocalCost, MetricLike, local_cost
from likely.alignment.series import Series, one_series, same_width
from likely.alignment.step_patterns import UNWEIGHTED, StepPattern, StepPatternLike, step_pattern_of
from likely.core.arrays import Array, Index, SequencesLike
from likely.core.errors import DomainError, sentence
from likely.core.value import Value


@final
@dataclass(frozen=True, eq=False)
class Matches(Value):
    """Matches of a query, best first: series[starts[r]:stops[r]] is the r-th match.

    Parameters
    ----------
    starts : ndarray of int (k,)
        First frame of each match.
    stops : ndarray of int (k,)
        The frame after the last of each match.
    distances : ndarray (k,)
        Distance of each match.

    Examples
    --------
    >>> found = subsequence_dtw([1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 2.0, 3.0, 0.0])
    >>> found.starts, found.stops
    (array([2]), array([5]))
    """

    starts: Index  # (k,)
    stops: Index  # (k,), the frame after the last
    distances: Array  # (k,)

    def __len__(self) -> int:
        return len(self.starts)


def subsequence_dtw(
    query: SequencesLike,
    series: SequencesLike,
    n_matches: int = 1,
    *,
    metric: MetricLike = "cityblock",
    step_pattern: StepPatternLike = "unweighted",
    max_distance: float | None = None,
) -> Matches:
    """The best non-overlapping matches of a query in a long series, by dynamic time warping.

    All of the query is matched to a part of the series. The cheapest match comes first; then the cheapest of those that
    do not overlap it, and so on; each is the best of all that end where it ends. Memory is a few numbers per frame of
    the series; for other step patterns than "unweighted", and for a metric that is a function, it is the whole grid.
    Missing values are as in `dtw` with open ends: a match neither begins nor ends on a missing frame, and half of its
    frames must be observed.

    Parameters
    ----------
    query : array-like (T,) or (T, D)
        The query.
    series : array-like (T,) or (T, D)
        The series.
    n_matches : int, default 1
        Largest number of matches.
    metric : str, tuple or callable, default "cityblock"
        Local cost of two frames, as in `dtw`.
    step_pattern : str or StepPattern, default "unweighted"
        Step pattern as in `dtw`.
    max_distance : float, optional
        Matches of a larger distance are left out.

    Returns
    -------
    Matches
        Ranges and distances, best first; fewer than `n_matches` if there are no more.

    See Also
    --------
    dtw : The alignment of two series.

    Examples
    --------
    >>> p = subsequence_dtw([1, 2, 1], [0, 0, 1, 2, 2, 1, 0, 0, 1, 2.5, 1], n_matches=2)
    >>> p.starts, p.stops, p.distances
    (array([2, 8]), array([ 6, 11]), array([0. , 0.5]))
    """
    if not isinstance(n_matches, int | np.integer) or isinstance(n_matches, bool) or n_matches < 1:
        raise DomainError(sentence("subsequence_dtw", "n_matches must be an integer from 1", n_matches))
    if max_distance is not None and not max_distance >= 0:
        raise DomainError(sentence("subsequence_dtw", "max_distance must be a distance, or None", max_distance))
    frame_cost, pattern = local_cost(metric, "subsequence_dtw"), step_pattern_of(step_pattern, "subsequence_dtw")
    one, other = one_series(query, "subsequence_dtw (query)"), one_series(series, "subsequence_dtw (series)")
    same_width(one, other, "subsequence_dtw")
    one, other = (
        frame_cost.prepare(one, "subsequence_dtw (query)"),
        frame_cost.prepare(other, "subsequence_dtw (series)"),
    )
    kind = frame_cost.of_width(one.values.shape[1])
    if pattern == UNWEIGHTED and frame_cost.function is None:
        totals, starts = _ends(one, other, kind)
    else:
        totals, starts = _ends_of_grid(one, other, frame_cost, pattern)
    stops = np.arange(1, len(starts) + 1)
    scale = part_scale(one.missing, other.missing, starts, stops, LEAST_OBSERVED)
    distances = np.where((scale > 0) & ~other.missing, totals * np.maximum(scale, 1.0), np.inf)
    distances = np.sqrt(distances) if frame_cost.takes_root else distances
    return _non_overlapping(distances, starts, int(n_matches), np.inf if max_distance is None else float(max_distance))


def _ends(query: Series, series: Series, kind: int) -> tuple[Array, Index]:
    """For each frame of the series the total cost of the best match that ends there, and its start."""
    from likely.alignment import _loops as warp

    has_missing = query.has_missing or series.has_missing
    totals, starts = np.empty(len(series.values)), np.empty(len(series.values), dtype=np.int64)
    blank = _blank(query, series, kind) if has_missing else 0.0
    warp.subsequence_costs(
        query.values, series.values, kind, has_missing, blank, query.missing, series.missing, totals, starts
    )
    if not np.isfinite(totals).any():
        remedy = "rescale both first"
        raise DomainError(sentence("subsequence_dtw", "costs must not overflow", "infinity", remedy))
    return totals, starts


def _ends_of_grid(query: Series, series: Series, frame_cost: LocalCost, pattern: StepPattern) -> tuple[Array, Index]:
    """As `_ends` for any step pattern and cost, with the whole grid in memory."""
    x, y, has_missing = query.values, series.values, query.has_missing or series.has_missing
    local = frame_cost.matrix(x, y, query.missing, series.missing, "subsequence_dtw")
    kind = frame_cost.of_width(x.shape[1])
    grid = Grid(
        x, y, query.missing, series.missing, has_missing, kind, local, pattern, Band(), True, True, "subsequence_dtw"
    )
    totals, starts = grid.ends()
    if not np.isfinite(totals).any():
        raise DomainError(grid.error_message())
    return totals, np.maximum(starts, 0)


def _blank(query: Series, series: Series, kind: int) -> float:
    """Cost of frames without a common observed entry: the mean of the others, from some thousand frames."""
    from likely.alignment import _loops as warp

    sample = series.values[:: max(1, len(series.values) // 5_000)]
    return float(warp.typical_cost(query.values, np.ascontiguousarray(sample), kind)) if sample.shape[1] > 1 else 0.0


def _non_overlapping(distances: Array, starts: Index, k: int, max_distance: float) -> Matches:
    """Greedy selection of non-overlapping matches: n log n, for any k."""
    from likely.alignment import _loops as warp

    stops = np.arange(1, len(starts) + 1)
    candidates = np.flatnonzero(np.isfinite(distances) & (distances <= max_distance))
    order = candidates[np.argsort(distances[candidates], kind="stable")]
    found = np.empty(min(k, len(order)), dtype=np.int64)
    found = found[: warp.non_overlapping(order, starts, stops, k, found)] if len(order) else found
    return Matches.trusted(starts=starts[found], stops=stops[found], distances=distances[found])
