"""All pairs of many series: one against two dozen at a time, on all cores, with the same bits whatever their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likely.alignment.bands import Band, band_of, refuse_apart
from likely.alignment.dtw_grid import NOTHING, Grid
from likely.alignment.local_costs import LocalCost, local_cost
from likely.alignment.series import Series, all_series, flag, same_width
from likely.alignment.step_patterns import THREE, StepPattern, rule_named
from likely.core.arrays import Array, Index
from likely.core.engine import cores, ordered_map
from likely.core.errors import DomainError, sentence

LANES = 24  # as in loops.warp, which would load the compiler
ROWS = 64  # series that a task compares with a block of others
SMALL = 10**6  # grid points up to which threads would take longer than they save


@dataclass(frozen=True, eq=False)
class Rules:
    """How pairs are to be warped: everything but the series."""

    kind: int
    rooted: bool
    steps: StepPattern = THREE
    band: Band = field(default_factory=Band)
    open_begin: bool = False
    open_end: bool = False
    whose: str = "dtw_matrix"
    cost: LocalCost | None = None  # where it is a function of one's own

    @classmethod
    def of(cls, meant: LocalCost, width: int, **how: Any) -> Rules:
        """Rules for a cost of frames with so many entries."""
        return cls(meant.of_width(width), meant.rooted, cost=None if meant.function is None else meant, **how)

    @property
    def plain(self) -> bool:
        """True if lanes can do it."""
        ends = self.open_begin or self.open_end
        return self.steps == THREE and self.cost is None and not ends and self.band.mask is None

    @property
    def even_handed(self) -> bool:
        """True if it does not matter which series comes first."""
        ends = self.open_begin or self.open_end
        return self.steps.even_handed and self.cost is None and not ends and self.band.mask is None

    def grid(self, one: Series, i: int, other: Series, j: int) -> Grid:
        """The grid of two of the series."""
        whose = f"{self.whose} (sequences {i} and {j})"
        a, b, bare_a, bare_b = one.one(i), other.one(j), one.bare_of(i), other.bare_of(j)
        local = NOTHING if self.cost is None else self.cost.matrix(a, b, bare_a, bare_b, whose)
        return Grid(
            a, b, bare_a, bare_b, one.gaps or other.gaps, self.kind, local, self.steps, self.band, self.open_begin,
            self.open_end, whose,
        )  # fmt: skip


def dtw_matrix(
    seqs: Any, others: Any = None, *, cost: Any = "absolute", step_pattern: Any = "three", band: Any = None,
    open_begin: bool = False, open_end: bool = False,
) -> Array:  # fmt: skip
    """Warping distances of all pairs: (n, n), or (n, m) to `others`; each is `dtw(a, b, …).distance` to the last bit.

    Sequences are a list of arrays (T,) or (T, D), a `Ragged`, rows of equal length (n, T), or an array (n, T, D); all
    settings are those of `dtw`. (Where one series is asked for, as in `dtw`, an array (n, T) is n frames of T entries.)
    With cost="squared" a distance is the root of the total, as other libraries have it.

    >>> dtw_matrix([[0, 1, 2], [0, 0, 1, 2], [1, 1]])
    array([[0., 0., 2.],
           [0., 0., 3.],
           [2., 3., 0.]])
    """
    meant, whose = local_cost(cost, "dtw_matrix"), "dtw_matrix"
    begin, end = flag(open_begin, "open_begin", whose), flag(open_end, "open_end", whose)
    rule, limits = rule_named(step_pattern, whose), band_of(band, whose)
    if (begin or end) and limits.closed and limits.mask is None:
        expected = "a band joins the corners, so open ends cannot have one"
        raise DomainError(sentence(whose, expected, repr(band), "pass a mask (n, m)"))
    one = all_series(seqs, whose)
    other = one if others is None else all_series(others, f"{whose} (others)")
    same_width(one, other, whose)
    rules = Rules.of(meant, one.values.shape[1], steps=rule, band=limits, open_begin=begin, open_end=end)
    one = meant.prepare(one, whose)
    other = one if others is None else meant.prepare(other, whose)
    return distances(one, other, rules)


def distances(one: Series, other: Series, rules: Rules) -> Array:
    """Distances (n, m) of prepared series; where both are the same object, each pair is looked at once."""
    totals = pair_totals(one, other, rules)
    bad = np.argwhere(~np.isfinite(totals))
    if len(bad):
        i, j = bad[0].tolist()
        raise DomainError(rules.grid(one, i, other, j).complaint())
    return np.sqrt(totals, out=totals) if rules.rooted else totals


def pair_totals(one: Series, other: Series, rules: Rules) -> Array:
    """Total costs (n, m), scaled for frames not seen, before any root; inf for no path, or numbers too large."""
    same = one is other and rules.even_handed
    if rules.band.mask is None:
        refuse_apart(rules.band, one.lengths, other.lengths, rules.whose)
    if rules.plain and not (one.gaps or other.gaps):
        return _by_lanes(one, other, rules, same)
    out = np.zeros((len(one), len(other)))
    _spread(lambda i: _one_row(one, i, other, rules, same, out), list(range(len(one))), one, other)
    return out + np.triu(out, 1).T if same else out


def _spread(run: Callable[[Any], None], tasks: list[Any], one: Series, other: Series) -> None:
    """Tasks that write to places of their own, in threads where that pays."""
    work = float(one.lengths.sum()) * float(other.lengths.sum())
    for _ in ordered_map(run, tasks, cores() if work > SMALL else 1):
        pass


def _one_row(one: Series, i: int, other: Series, rules: Rules, same: bool, out: Array) -> None:
    """One series against all others, pair by pair."""
    for j in range(i if same else 0, len(other)):
        total, _, scale = rules.grid(one, i, other, j).best()
        out[i, j] = total * max(scale, 1.0)


# ---------------------------------------------------------------------- in lanes


Task = tuple[Index, Index]  # some series against at most two dozen others


def _by_lanes(one: Series, other: Series, rules: Rules, same: bool) -> Array:
    """Totals in lanes of series that lie next to each other in length, put back in order."""
    first, rows = by_length(one)
    second, columns = (first, rows) if one is other else by_length(other)
    out = np.zeros((len(one), len(other)))
    _spread(lambda task: _run(task, first, second, rules, same, out), _tasks(first, second), one, other)
    if same:
        out += np.triu(out, 1).T
    back = np.empty_like(out)
    back[np.ix_(rows, columns)] = out
    return back


def _run(task: Task, first: Series, second: Series, rules: Rules, same: bool, out: Array) -> None:
    from likely.alignment import _loops as warp

    rows, columns = task
    warp.pair_block(
        first.values, first.offsets, rows, second.values, second.offsets, columns, rules.kind, *rules.band.plain, same,
        out,
    )  # fmt: skip


def _tasks(first: Series, second: Series) -> list[Task]:
    rows, columns = np.arange(len(first)), np.arange(len(second))
    return [(r, c) for c in _cut(columns, LANES) for r in _cut(rows, ROWS)]


def by_length(series: Series) -> tuple[Series, Index]:
    """The series in the order of their lengths, and that order."""
    order = np.argsort(series.lengths, kind="stable")
    if (np.diff(order) == 1).all():
        return series, order
    parts = [series.one(i) for i in order.tolist()]
    offsets = np.concatenate([[0], np.cumsum(series.lengths[order])])
    bare = np.concatenate([series.bare_of(i) for i in order.tolist()])
    return Series(np.concatenate(parts), offsets, series.gaps, bare), order


def _cut(order: Index, size: int) -> list[Index]:
    return [order[start : start + size] for start in range(0, len(order), size)]
