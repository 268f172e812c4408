"""DTW grid of two series: accumulated costs, the cheapest path, and its backtracking.

The recursion is in `_loops.py`: `accumulate`, `accumulate_three`, and `backtrack` for the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.alignment.bands import Band, band_rows
from likely.alignment.step_patterns import UNWEIGHTED, StepPattern
from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DomainError, sentence

NOTHING = np.empty((0, 0))
NO_BACKPOINTERS = np.empty((0, 0), dtype=np.int8)
LEAST_OBSERVED = 0.5  # least share of observed frames in a part that a series is matched to


class Route(NamedTuple):
    """A warping path from its beginning, and the step weight of each of its points."""

    path: Index  # (P, 2)
    weight: Array  # (P,)


@dataclass(frozen=True, eq=False)
class Grid:
    """Two prepared series a (n, D), b (m, D), or a matrix of local costs, with step pattern, band and open ends."""

    a: Array
    b: Array
    missing_a: Mask
    missing_b: Mask
    has_missing: bool
    kind: int
    local: Array  # (n, m), or empty: costs are then computed from a and b
    steps: StepPattern
    band: Band
    open_begin: bool
    open_end: bool
    whose: str

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.a), len(self.b)) if not self.local.size else self.local.shape

    @property
    def depends_on_part(self) -> bool:
        """True if a is matched to a part of b and frames are missing: then the scale depends on the part."""
        return (self.open_begin or self.open_end) and bool(self.missing_a.any() or self.missing_b.any())

    def missing_scale(self, begin: int = 0, end: int | None = None) -> float:
        """Number of frames of a and b[begin : end + 1] over the observed ones: missing frames count as the average."""
        stop = self.shape[1] if end is None else end + 1
        return float(part_scale(self.missing_a, self.missing_b, np.array([begin]), np.array([stop]), 0.0)[0])

    def rows(self) -> tuple[Index, Index]:
        return band_rows(self.band, *self.shape, self.whose)

    def last_row(self, limit: float = np.inf) -> Array:
        """Accumulated costs of the last row (m,): memory for three rows with the three-step pattern."""
        if self.steps != UNWEIGHTED or self.band.mask is not None:
            return self._accumulated()[0][-1]
        last = np.empty(self.shape[1])
        self._accumulate_three(last, NO_BACKPOINTERS, NOTHING, limit)
        return last

    def accumulated(self) -> Array:
        """All accumulated costs (n, m); inf where no path leads."""
        return self._accumulated()[0]

    def end_of(self, last: Array) -> int:
        """The column in which the path ends: the last, or with an open end the cheapest."""
        return int(np.argmin(last)) if self.open_end else len(last) - 1

    def best(self) -> tuple[float, int, float]:
        """Total cost, last column and scale of the cheapest path; the cost is inf where there is none.

        With open ends and missing frames the scaled cost is minimized, over parts with enough observed frames.
        """
        if not self.depends_on_part:
            last = self.last_row()
            end = self.end_of(last)
            return float(last[end]), end, self.missing_scale()
        last, starts = self.ends()
        scale = part_scale(
            self.missing_a, self.missing_b, np.maximum(starts, 0), np.arange(1, len(last) + 1), LEAST_OBSERVED
        )
        scale[(starts < 0) | (self.open_end & self.missing_b)] = 0.0
        last[scale == 0.0] = np.inf
        end = self.end_of(last * np.maximum(scale, 1.0))
        return float(last[end]), end, float(scale[end])

    def route(self, end: int) -> Route:
        """Backtracking: the cheapest path to the last row, column `end`; one byte of memory per grid point."""
        from likely.alignment import _loops as warp

        n, m = self.shape
        path = np.empty((3 * (n + m), 2), dtype=np.int64)
        weight = np.ones(len(path))
        if self.steps == UNWEIGHTED and self.band.mask is None:
            count = warp.backtrack_three(self._backpointers(), self.rows()[0], end, path)
        else:
            rule, backpointers = self.steps.compiled(), self._accumulated()[1]
            count = warp.backtrack(backpointers, *rule[::2], end, path, weight, rule.weights, self.steps.start)
        return Route(path[:count][::-1].copy(), weight[:count][::-1].copy())

    def local_costs(self) -> Array:
        """Matrix of local costs (n, m); inf where the mask forbids a match."""
        from likely.alignment import _loops as warp

        costs = self.local
        if not costs.size:
            costs = np.empty(self.shape)
            warp.local_costs(self.a, self.b, self.kind, self.has_missing, self.blank(), costs)
        return costs if self.band.mask is None else np.where(self.band.mask, costs, np.inf)

    def blank(self) -> float:
        """Cost of two frames without a common observed entry: the mean of the others."""
        from likely.alignment import _loops as warp

        if not self.has_missing or self.local.size or self.a.shape[1] == 1:
            return 0.0
        return float(warp.typical_cost(self.a, self.b, self.kind))

    def error_message(self) -> str:
        """The error message where there is no path of finite cost."""
        n, m = self.shape
        if self.depends_on_part and np.isfinite(self.last_row()).any():
            expected = "half of the frames that a is matched to must be observed"
            return sentence(self.whose, expected, "fewer at every end", "leave missing frames out, or close the ends")
        without_costs = Grid(**{**vars(self), "local": np.zeros((n, m)), "kind": 0})
        last = without_costs._accumulated()[0][-1]
        if np.isfinite(last[without_costs.end_of(last)]):
            if self.local.size:
                return sentence(self.whose, "some path must have a finite cost", "infinite costs on all of them")
            remedy = "rescale the series first"
            return sentence(self.whose, "costs must not overflow", "infinity", remedy)
        return sentence(self.whose, f"there must be a path through {n} × {m} points", "none", self._remedy())

    def _remedy(self) -> str:
        if self.band.mask is not None:
            return "the mask must connect the corners by steps of one frame"
        if self.steps != UNWEIGHTED:
            return 'the lengths differ too much for this step pattern: use step_pattern="unweighted", or a wider band'
        return "missing frames are matched once: widen the band, or leave such frames out"

    def _backpointers(self) -> Any:
        """Backpointers of the three-step pattern (n, width), column j − lo[i]."""
        lo, hi = self.rows()
        backpointers = np.empty((self.shape[0], int((hi - lo).max())), dtype=np.int8)
        self._accumulate_three(np.empty(self.shape[1]), backpointers, NOTHING)
        return backpointers

    def ends(self) -> tuple[Array, Index]:
        """Accumulated costs of the last row (m,), and where in b the best path to each column begins; −1: nowhere."""
        from likely.alignment import _loops as warp

        last, starts = np.empty(self.shape[1]), np.empty(self.shape[1], dtype=np.int64)
        if self.steps == UNWEIGHTED and self.band.mask is None:  # open ends: no band, all columns have backpointers
            backpointers = np.empty(self.shape, dtype=np.int8)
            self._accumulate_three(last, backpointers, NOTHING)
        else:
            table, backpointers = self._accumulated()
            last = table[-1]
        warp.path_starts(backpointers, *self.steps.compiled()[::2], starts)
        return last, np.where(np.isfinite(last), starts, -1)

    def _accumulate_three(self, last: Array, backpointers: Any, table: Array, limit: float = np.inf) -> bool:
        from likely.alignment import _loops as warp

        lo, hi = self.rows()
        return bool(
            warp.accumulate_three(
                self.a, self.b, self.local, self.kind, self.has_missing, self.blank(), self.missing_a, self.missing_b,
                lo, hi, self.open_begin, limit, backpointers, table, last,
            )
        )  # fmt: skip

    def _accumulated(self) -> tuple[Array, Any]:
        from likely.alignment import _loops as warp

        lo, hi, local = *self.rows(), self.local_costs()
        if self.steps.skips:  # points outside the band are not matched, but a path may pass through
            j = np.arange(self.shape[1])
            local = np.where((j >= lo[:, None]) & (j < hi[:, None]), local, np.inf)
            lo, hi = np.zeros_like(lo), np.full_like(hi, self.shape[1])
        table, backpointers = np.empty(self.shape), np.empty(self.shape, dtype=np.int8)
        rule = self.steps.compiled()
        warp.accumulate(
            local, *rule, self.steps.start, self.has_missing, self.missing_a, self.missing_b, lo, hi, self.open_begin,
            table, backpointers,
        )  # fmt: skip
        return table, backpointers


def total_of(grid: Grid) -> tuple[float, int]:
    """Total cost of the cheapest path, and the column where it ends; raises if there is none."""
    total, end, _ = grid.best()
    if not np.isfinite(total):
        raise DomainError(grid.error_message())
    return total, end


def part_scale(missing_a: Mask, missing_b: Mask, starts: Index, stops: Index, least: float) -> Array:
    """Frames of a and of each part b[start:stop] over the observed ones; 0 where fewer than `least` are observed."""
    before = np.concatenate([[0], np.cumsum(missing_b)])
    length, n_missing = stops - starts, before[stops] - before[starts]
    frames = len(missing_a) + length
    scale = frames / (frames - n_missing - int(missing_a.sum()))
    return np.where(length - n_missing >= least * length, scale, 0.0)
