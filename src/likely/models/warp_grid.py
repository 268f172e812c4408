"""The grid of two series: every way of matching them is a path through it, and the cheapest is found row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, Index, Mask
from likely.errors import DomainError, sentence
from likely.models.warp_bands import Band, band_rows
from likely.models.warp_steps import THREE, Steps

NOTHING = np.empty((0, 0))
NO_CODES = np.empty((0, 0), dtype=np.int8)


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
    steps: Steps
    band: Band
    open_begin: bool
    open_end: bool
    whose: str

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.a), len(self.b)) if not self.local.size else self.local.shape

    @property
    def seen_scale(self) -> float:
        """All frames over those of which something was seen: what was not seen is taken to cost as much."""
        bare = int(self.bare_a.sum() + self.bare_b.sum())
        frames = sum(self.shape)
        return frames / (frames - bare)

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

    def route(self, end: int) -> Route:
        """The cheapest path to the last row, column `end`: a byte a grid point of memory."""
        from likely.loops import warp

        n, m = self.shape
        path = np.empty((3 * (n + m), 2), dtype=np.int64)
        weight = np.ones(len(path))
        if self.steps == THREE and self.band.mask is None:
            lo, hi = self.rows()
            codes = np.empty((n, int((hi - lo).max())), dtype=np.int8)
            self._three(np.empty(m), codes, NOTHING)
            count = warp.trace_three(codes, lo, end, path)
        else:
            rule, codes = self.steps.compiled(), self._accumulated()[1]
            count = warp.trace_rule(codes, *rule[::2], end, path, weight, rule.weights, self.steps.start)
        return Route(path[:count][::-1].copy(), weight[:count][::-1].copy())

    def local_costs(self) -> Array:
        """The cost of each pair of frames (n, m); inf where the mask forbids it."""
        from likely.loops import warp

        costs = self.local
        if not costs.size:
            costs = np.empty(self.shape)
            warp.local_costs(self.a, self.b, self.kind, self.gaps, self.blank(), costs)
        return costs if self.band.mask is None else np.where(self.band.mask, costs, np.inf)

    def blank(self) -> float:
        """What two frames cost that have no entry in common: as much as others do on the average."""
        from likely.loops import warp

        if not self.gaps or self.a.shape[1] == 1:
            return 0.0
        return float(warp.typical_cost(self.a, self.b, self.kind))

    def complaint(self) -> str:
        """Why there is no path of finite cost."""
        n, m = self.shape
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

    def _three(self, last: Array, codes: Any, table: Array, limit: float = np.inf) -> bool:
        from likely.loops import warp

        lo, hi = self.rows()
        return bool(
            warp.three(
                self.a, self.b, self.local, self.kind, self.gaps, self.blank(), self.bare_a, self.bare_b, lo, hi,
                self.open_begin, limit, codes, table, last,
            )
        )  # fmt: skip

    def _accumulated(self) -> tuple[Array, Any]:
        from likely.loops import warp

        lo, hi = self.rows()
        table, codes = np.empty(self.shape), np.empty(self.shape, dtype=np.int8)
        rule = self.steps.compiled()
        warp.by_rule(
            self.local_costs(), *rule, self.steps.start, self.gaps, self.bare_a, self.bare_b, lo, hi, self.open_begin,
            table, codes,
        )  # fmt: skip
        return table, codes


def total_of(grid: Grid) -> tuple[float, int]:
    """The cost of the cheapest path, and the column where it ends; without one it is an error."""
    last = grid.last_row()
    end = grid.end_of(last)
    if not np.isfinite(last[end]):
        raise DomainError(grid.complaint())
    return float(last[end]), end
