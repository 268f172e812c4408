"""Where in a long series does a short one occur? The same grid, open at both ends, with two columns in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from likely.alignment.bands import Band
from likely.alignment.dtw_grid import SEEN, Grid, place_scale
from likely.alignment.local_costs import LocalCost, local_cost
from likely.alignment.series import Series, one_series, same_width
from likely.alignment.step_patterns import THREE, StepPattern, rule_named
from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, sentence
from likely.core.value import Value


@final
@dataclass(frozen=True, eq=False)
class Matches(Value):
    """Where a query was found, best first: series[starts[r]:stops[r]] is the r-th place.

    >>> found = subsequence([1.0, 2.0, 3.0], [0.0, 0.0, 1.0, 2.0, 3.0, 0.0])
    >>> found.starts, found.stops
    (array([2]), array([5]))
    """

    starts: Index  # (k,)
    stops: Index  # (k,), the frame after the last
    distances: Array  # (k,)

    def __len__(self) -> int:
        return len(self.starts)


def subsequence(
    query: Any,
    series: Any,
    n_matches: int = 1,
    *,
    cost: Any = "absolute",
    step_pattern: Any = "three",
    most: float | None = None,
) -> Matches:
    """The k best places of a query (T, D) in a long series, which do not overlap; fewer if there are no more.

    All of the query is matched to a part of the series. The cheapest place comes first; then the cheapest of those that
    do not touch it, and so on; each is the best of all that end where it ends. `most` leaves out places of a larger
    distance. `cost` and `step_pattern` are those of `dtw`. Memory is some numbers per frame of the series; for other
    steps than three, and for a cost that is a function, it is the whole grid. Gaps are as in `dtw` with open ends: a
    place neither begins nor ends on a missing frame, and half of its frames must have been observed.

    >>> p = subsequence([1, 2, 1], [0, 0, 1, 2, 2, 1, 0, 0, 1, 2.5, 1], n_matches=2)
    >>> p.starts, p.stops, p.distances
    (array([2, 8]), array([ 6, 11]), array([0. , 0.5]))
    """
    if not isinstance(n_matches, int | np.integer) or isinstance(n_matches, bool) or n_matches < 1:
        raise DomainError(sentence("subsequence", "k must be a whole number from 1", n_matches))
    if most is not None and not most >= 0:
        raise DomainError(sentence("subsequence", "most must be a distance, or None", most))
    meant, rule = local_cost(cost, "subsequence"), rule_named(step_pattern, "subsequence")
    one, other = one_series(query, "subsequence (query)"), one_series(series, "subsequence (series)")
    same_width(one, other, "subsequence")
    one, other = meant.prepare(one, "subsequence (query)"), meant.prepare(other, "subsequence (series)")
    kind = meant.of_width(one.values.shape[1])
    if rule == THREE and meant.function is None:
        totals, starts = _ends(one, other, kind)
    else:
        totals, starts = _ends_of_grid(one, other, meant, rule)
    stops = np.arange(1, len(starts) + 1)
    scale = place_scale(one.bare, other.bare, starts, stops, SEEN)
    distances = np.where((scale > 0) & ~other.bare, totals * np.maximum(scale, 1.0), np.inf)
    distances = np.sqrt(distances) if meant.rooted else distances
    return _best(distances, starts, int(n_matches), np.inf if most is None else float(most))


def _ends(query: Series, series: Series, kind: int) -> tuple[Array, Index]:
    """For each frame of the series the total of the best place that ends there, and where it starts."""
    from likely.alignment import _loops as warp

    gaps = query.gaps or series.gaps
    totals, starts = np.empty(len(series.values)), np.empty(len(series.values), dtype=np.int64)
    blank = _blank(query, series, kind) if gaps else 0.0
    warp.places(query.values, series.values, kind, gaps, blank, query.bare, series.bare, totals, starts)
    if not np.isfinite(totals).any():
        remedy = "divide both by their size first"
        raise DomainError(sentence("subsequence", "costs must stay below the largest number", "infinity", remedy))
    return totals, starts


def _ends_of_grid(query: Series, series: Series, meant: LocalCost, rule: StepPattern) -> tuple[Array, Index]:
    """The same by any rule and cost, with the whole grid in memory."""
    x, y, gaps = query.values, series.values, query.gaps or series.gaps
    local = meant.matrix(x, y, query.bare, series.bare, "subsequence")
    kind = meant.of_width(x.shape[1])
    grid = Grid(x, y, query.bare, series.bare, gaps, kind, local, rule, Band(), True, True, "subsequence")
    totals, starts = grid.ends()
    if not np.isfinite(totals).any():
        raise DomainError(grid.complaint())
    return totals, np.maximum(starts, 0)


def _blank(query: Series, series: Series, kind: int) -> float:
    """What frames without a common entry cost: as others do, by some thousand frames of a long series."""
    from likely.alignment import _loops as warp

    some = series.values[:: max(1, len(series.values) // 5_000)]
    return float(warp.typical_cost(query.values, np.ascontiguousarray(some), kind)) if some.shape[1] > 1 else 0.0


def _best(distances: Array, starts: Index, k: int, most: float) -> Matches:
    """The cheapest, then the cheapest of what does not overlap it, and so on: n log n, whatever k."""
    from likely.alignment import _loops as warp

    stops = np.arange(1, len(starts) + 1)
    left = np.flatnonzero(np.isfinite(distances) & (distances <= most))
    order = left[np.argsort(distances[left], kind="stable")]
    found = np.empty(min(k, len(order)), dtype=np.int64)
    found = found[: warp.apart(order, starts, stops, k, found)] if len(order) else found
    return Matches.trusted(starts=starts[found], stops=stops[found], distances=distances[found])
