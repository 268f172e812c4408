"""The grid of two series: every way of matching them is a path through it, and the cheapest is found row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.alignment.bands import Band, band_rows
from likely.alignment.step_patterns import THREE, StepPattern
from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DomainError, sentence

NOTHING = np.empty((0, 0))
NO_CODES = np.empty((0, 0), dtype=np.int8)
SEEN = 0.5  # of the frames of a part that a series is matched to, at least so many must have been observed


class Route(NamedTuple):
    """A path, from its beginning, and the weight of each of its points."""

    path: Index  # (P, 2)
    weight: Array  # (P,)


@dataclass(frozen=True, eq=False)
class Grid:
    """Two prepared series a (n, D), b (m, D), or a matrix of local costs, with the rules of going through it."""

    a: Array
    b: Array
    bare_a: Mask
    bare_b: Mask
    gaps: bool
    kind: int
    local: Array  # (n, m), or empty: costs then come from a and b
    steps: StepPattern
    band: Band
    open_begin: bool
    open_end: bool
    whose: str

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.a), len(self.b)) if not self.local.size else self.local.shape

    @property
    def partly(self) -> bool:
        """True if a is matched to a part of b, and frames are missing: then it matters which part."""
        return (self.open_begin or self.open_end) and bool(self.bare_a.any() or self.bare_b.any())

    def seen_scale(self, begin: int = 0, end: int | None = None) -> float:
        """All frames of a and b[begin : end + 1] over those seen: what was not seen is taken to cost as much."""
        stop = self.shape[1] if end is None else end + 1
        return float(place_scale(self.bare_a, self.bare_b, np.array([begin]), np.array([stop]), 0.0)[0])

    def rows(self) -> tuple[Index, Index]:
        return band_rows(self.band, *self.shape, self.whose)

    def last_row(self, limit: float = np.inf) -> Array:
        """Accumulated costs of the last row (m,): memory for three rows where the rule is of three steps."""
        if self.steps != THREE or self.band.mask is not None:
            return self._accumulated()[0][-1]
        last = np.empty(self.shape[1])
        self._three(last, NO_CODES, NOTHING, limit)
        return last

    def accumulated(self) -> Array:
        """All accumulated costs (n, m); inf where no path leads."""
        return self._accumulated()[0]

    def end_of(self, last: Array) -> int:
        """The column in which the path ends: the last, or with an open end the cheapest."""
        return int(np.argmin(last)) if self.open_end else len(last) - 1

    def best(self) -> tuple[float, int, float]:
        """Total, last column and scale of the cheapest path; the total is inf where there is none.

        With open ends and gaps the scaled total counts, of parts of which enough was seen: to be matched to nothing
        is no match.
        """
        if not self.partly:
            last = self.last_row()
            end = self.end_of(last)
            return float(last[end]), end, self.seen_scale()
        last, starts = self.ends()
        scale = place_scale(self.bare_a, self.bare_b, np.maximum(starts, 0), np.arange(1, len(last) + 1), SEEN)
        scale[(starts < 0) | (self.open_end & self.bare_b)] = 0.0
        last[scale == 0.0] = np.inf
        end = self.end_of(last * np.maximum(scale, 1.0))
        return float(last[end]), end, float(scale[end])

    def route(self, end: int) -> Route:
        """The cheapest path to the last row, column `end`: a byte a grid point of memory."""
        from likely.alignment import _loops as warp

        n, m = self.shape
        path = np.empty((3 * (n + m), 2), dtype=np.int64)
        weight = np.ones(len(path))
        if self.steps == THREE and self.band.mask is None:
            count = warp.trace_three(self._codes(), self.rows()[0], end, path)
        else:
            rule, codes = self.steps.compiled(), self._accumulated()[1]
            count = warp.trace_rule(codes, *rule[::2], end, path, weight, rule.weights, self.steps.start)
        return Route(path[:count][::-1].copy(), weight[:count][::-1].copy())

    def local_costs(self) -> Array:
        """The cost of each pair of frames (n, m); inf where the mask forbids it."""
        from likely.alignment import _loops as warp

        costs = self.local
        if not costs.size:
            costs = np.empty(self.shape)
            warp.local_costs(self.a, self.b, self.kind, self.gaps, self.blank(), costs)
        return costs if self.band.mask is None else np.where(self.band.mask, costs, np.inf)

    def blank(self) -> float:
        """What two frames cost that have no entry in common: as much as others do on the average."""
        from likely.alignment import _loops as warp

        if not self.gaps or self.local.size or self.a.shape[1] == 1:
            return 0.0
        return float(warp.typical_cost(self.a, self.b, self.kind))

    def complaint(self) -> str:
        """Why there is no path of finite cost."""
        n, m = self.shape
        if self.partly and np.isfinite(self.last_row()).any():
            expected = "half of the frames that a is matched to must have been observed"
            return sentence(self.whose, expected, "fewer at every end", "leave missing frames out, or close the ends")
        nothing = Grid(**{**vars(self), "local": np.zeros((n, m)), "kind": 0})
        last = nothing._accumulated()[0][-1]
        if np.isfinite(last[nothing.end_of(last)]):
            if self.local.size:
                return sentence(self.whose, "some path must have a finite cost", "infinite costs on all of them")
            remedy = "divide the series by their size first"
            return sentence(self.whose, "costs must stay below the largest number", "infinity", remedy)
        return sentence(self.whose, f"there must be a path through {n} × {m} points", "none", self._remedy())

    def _remedy(self) -> str:
        if self.band.mask is not None:
            return "the mask must join the corners by steps of one frame"
        if self.steps != THREE:
            return 'the series are too unlike in length for these steps: use steps="three", or a wider band'
        return "frames that were not observed are matched once: widen the band, or leave such frames out"

    def _codes(self) -> Any:
        """How each point was reached by three steps (n, width), column j − lo[i]."""
        lo, hi = self.rows()
        codes = np.empty((self.shape[0], int((hi - lo).max())), dtype=np.int8)
        self._three(np.empty(self.shape[1]), codes, NOTHING)
        return codes

    def ends(self) -> tuple[Array, Index]:
        """Accumulated costs of the last row (m,), and where in b the best path to each column begins; −1: nowhere."""
        from likely.alignment import _loops as warp

        last, starts = np.empty(self.shape[1]), np.empty(self.shape[1], dtype=np.int64)
        if self.steps == THREE and self.band.mask is None:  # open ends have no band, so codes are of all columns
            codes = np.empty(self.shape, dtype=np.int8)
            self._three(last, codes, NOTHING)
        else:
            table, codes = self._accumulated()
            last = table[-1]
        warp.starts_of(codes, *self.steps.compiled()[::2], starts)
        return last, np.where(np.isfinite(last), starts, -1)

    def _three(self, last: Array, codes: Any, table: Array, limit: float = np.inf) -> bool:
        from likely.alignment import _loops as warp

        lo, hi = self.rows()
        return bool(
            warp.three(
                self.a, self.b, self.local, self.kind, self.gaps, self.blank(), self.bare_a, self.bare_b, lo, hi,
                self.open_begin, limit, codes, table, last,
            )
        )  # fmt: skip

    def _accumulated(self) -> tuple[Array, Any]:
        from likely.alignment import _loops as warp

        lo, hi, local = *self.rows(), self.local_costs()
        if self.steps.skips:  # what is outside the band is not matched, but a path may pass through
            j = np.arange(self.shape[1])
            local = np.where((j >= lo[:, None]) & (j < hi[:, None]), local, np.inf)
            lo, hi = np.zeros_like(lo), np.full_like(hi, self.shape[1])
        table, codes = np.empty(self.shape), np.empty(self.shape, dtype=np.int8)
        rule = self.steps.compiled()
        warp.by_rule(
            local, *rule, self.steps.start, self.gaps, self.bare_a, self.bare_b, lo, hi, self.open_begin,
            table, codes,
        )  # fmt: skip
        return table, codes


def total_of(grid: Grid) -> tuple[float, int]:
    """The cost of the cheapest path, and the column where it ends; without one it is an error."""
    total, end, _ = grid.best()
    if not np.isfinite(total):
        raise DomainError(grid.complaint())
    return total, end


def place_scale(bare_a: Mask, bare_b: Mask, starts: Index, stops: Index, least: float) -> Array:
    """All frames of a and of each part b[start:stop] over those seen; 0 where less than that share of it was."""
    before = np.concatenate([[0], np.cumsum(bare_b)])
    length, bare = stops - starts, before[stops] - before[starts]
    frames = len(bare_a) + length
    scale = frames / (frames - bare - int(bare_a.sum()))
    return np.where(length - bare >= least * length, scale, 0.0)
