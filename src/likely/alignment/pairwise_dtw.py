"""DTW distances of all pairs of series, in vector lanes and on all cores; bit-for-bit reproducible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likely.alignment._loops import ABSOLUTE, EUCLIDEAN, LANES
from likely.alignment.bands import Band, BandLike, band_of, band_rows, refuse_disconnected
from likely.alignment.dtw_grid import NOTHING, Grid
from likely.alignment.local_costs import LocalCost, MetricLike, local_cost
from likely.alignment.series import Series, all_series, flag, same_width
from likely.alignment.step_patterns import UNWEIGHTED, StepPattern, StepPatternLike, step_pattern_of
from likely.core.arrays import Array, Index, SequencesLike
from likely.core.engine import cores, ordered_map
from likely.core.errors import DomainError, sentence
from likely.core.job_size import compiles_for

ROWS = 64  # series that a task compares with a block of others
SMALL = 10**6  # grid points up to which threads do not pay


@dataclass(frozen=True, eq=False)
class Rules:
    """Settings of DTW: everything but the series."""

    kind: int
    takes_root: bool
    steps: StepPattern = UNWEIGHTED
    band: Band = field(default_factory=Band)
    open_begin: bool = False
    open_end: bool = False
    whose: str = "dtw_matrix"
    cost: LocalCost | None = None  # for a user function

    @classmethod
    def of(cls, frame_cost: LocalCost, width: int, **settings: Any) -> Rules:
        """Settings for a local cost of frames with `width` entries."""
        return cls(
            frame_cost.of_width(width),
            frame_cost.takes_root,
            cost=None if frame_cost.function is None else frame_cost,
            **settings,
        )

    @property
    def plain(self) -> bool:
        """True if the vectorized version applies."""
        ends = self.open_begin or self.open_end
        return self.steps == UNWEIGHTED and self.cost is None and not ends and self.band.mask is None

    @property
    def is_symmetric(self) -> bool:
        """True if the distance is symmetric in the two series."""
        ends = self.open_begin or self.open_end
        return self.steps.is_symmetric and self.cost is None and not ends and self.band.mask is None

    def grid(self, one: Series, i: int, other: Series, j: int) -> Grid:
        """The grid of two of the series."""
        whose = f"{self.whose} (sequences {i} and {j})"
        a, b, missing_a, missing_b = one.one(i), other.one(j), one.missing_of(i), other.missing_of(j)
        local = NOTHING if self.cost is None else self.cost.matrix(a, b, missing_a, missing_b, whose)
        return Grid(
            a, b, missing_a, missing_b, one.has_missing or other.has_missing, self.kind, local, self.steps, self.band,
            self.open_begin, self.open_end, whose,
        )  # fmt: skip


def dtw_matrix(
    seqs: SequencesLike, others: Any = None, *, metric: MetricLike = "cityblock",
    step_pattern: StepPatternLike = "unweighted", band: BandLike | None = None, open_begin: bool = False,
    open_end: bool = False,
) -> Array:  # fmt: skip
    """DTW distances of all pairs of series; each is exactly `dtw(a, b, …).distance`.

    Sequences are a list of arrays (T,) or (T, D), a `Ragged`, rows of equal length (n, T), or an array (n, T, D).
    (For functions of one series, as `dtw`, an array (n, T) is n frames of T entries.)

    Parameters
    ----------
    seqs : list of array-like (T,) or (T, D), Ragged or array
        The series.
    others : list of array-like (T,) or (T, D), Ragged or array, optional
        Other series; None compares the series with each other.
    metric : str, tuple or callable, default "cityblock"
        Local cost of two frames, as in `dtw`; with "sqeuclidean" a distance is the square root of the total.
    step_pattern : str or StepPattern, default "unweighted"
        Step pattern as in `dtw`.
    band : float, int, str, tuple or array-like, optional
        Band as in `dtw`.
    open_begin, open_end : bool, default False
        All of a is matched, to a part of b that begins or ends anywhere.

    Returns
    -------
    ndarray (n, n) or (n, m)
        The distances.

    See Also
    --------
    dtw : The alignment of two series.

    Examples
    --------
    >>> dtw_matrix([[0, 1, 2], [0, 0, 1, 2], [1, 1]])
    array([[0., 0., 2.],
           [0., 0., 3.],
           [2., 3., 0.]])
    """
    frame_cost, whose = local_cost(metric, "dtw_matrix"), "dtw_matrix"
    begin, end = flag(open_begin, "open_begin", whose), flag(open_end, "open_end", whose)
    pattern, limits = step_pattern_of(step_pattern, whose), band_of(band, whose)
    if (begin or end) and limits.closed and limits.mask is None:
        expected = "a band connects the corners, so open ends cannot have one"
        raise DomainError(sentence(whose, expected, repr(band), "pass a mask (n, m)"))
    one = all_series(seqs, whose)
    other = one if others is None else all_series(others, f"{whose} (others)")
    same_width(one, other, whose)
    rules = Rules.of(frame_cost, one.values.shape[1], steps=pattern, band=limits, open_begin=begin, open_end=end)
    one = frame_cost.prepare(one, whose)
    other = one if others is None else frame_cost.prepare(other, whose)
    return distances(one, other, rules)


def distances(one: Series, other: Series, rules: Rules) -> Array:
    """Distances (n, m) of prepared series; where both are the same object, each pair is computed once."""
    totals = pair_totals(one, other, rules)
    bad = np.argwhere(~np.isfinite(totals))
    if len(bad):
        i, j = bad[0].tolist()
        raise DomainError(rules.grid(one, i, other, j).error_message())
    return np.sqrt(totals, out=totals) if rules.takes_root else totals


def pair_totals(one: Series, other: Series, rules: Rules) -> Array:
    """Total costs (n, m), scaled for missing frames, before any root; inf without a path, or on overflow."""
    same = one is other and rules.is_symmetric
    if rules.band.mask is None:
        refuse_disconnected(rules.band, one.lengths, other.lengths, rules.whose)
    if rules.plain and not (one.has_missing or other.has_missing):
        by = _by_lanes if compiles_for(numpy_work(one, other)) else _by_numpy
        return by(one, other, rules, same)
    out = np.zeros((len(one), len(other)))
    _run_all(lambda i: _one_row(one, i, other, rules, same, out), list(range(len(one))), one, other)
    return out + np.triu(out, 1).T if same else out


def _run_all(run: Callable[[Any], None], tasks: list[Any], one: Series, other: Series) -> None:
    """Run tasks that write to separate places, in threads where that pays."""
    work = float(one.lengths.sum()) * float(other.lengths.sum())
    for _ in ordered_map(run, tasks, cores() if work > SMALL else 1):
        pass


def _one_row(one: Series, i: int, other: Series, rules: Rules, same: bool, out: Array) -> None:
    """One series against all others, pair by pair."""
    for j in range(i if same else 0, len(other)):
        total, _, scale = rules.grid(one, i, other, j).best()
        out[i, j] = total * max(scale, 1.0)


def numpy_work(one: Series, other: Series) -> float:
    """Work of `_by_numpy`, of which a call of NumPy is ten operations."""
    return 30.0 * float(one.lengths.sum()) * float(other.lengths.max(initial=0))


def _by_numpy(one: Series, other: Series, rules: Rules, same: bool) -> Array:
    """Total costs, of each series with all others side by side: the bits of the compiled lanes."""
    out, lengths = np.zeros((len(one), len(other))), other.lengths
    places = other.offsets[:-1] + np.minimum(np.arange(lengths.max())[:, None], lengths - 1)  # padded by the last frame
    padded = other.values[places]  # (m, N, D)
    for i in range(len(one)):
        first = i + 1 if same else 0
        if first < len(other):
            out[i, first:] = _totals(one.one(i), padded[:, first:], lengths[first:], rules)
    return out + np.triu(out, 1).T if same else out


@np.errstate(over="ignore", invalid="ignore")
def _totals(a: Array, b: Array, lengths: Index, rules: Rules) -> Array:
    """Total costs (N,) of frames a (n, D) against b (m, N, D), in which series k ends after lengths[k] frames."""
    m, N, D = b.shape
    lo, hi = np.empty((2, len(a), N), np.int64)
    for length in np.unique(lengths):
        lo[:, lengths == length], hi[:, lengths == length] = (
            edge[:, None] for edge in band_rows(rules.band, len(a), int(length), rules.whose)
        )
    prev, columns = np.full((m + 1, N), np.inf), np.arange(m)[:, None]
    prev[0] = 0.0
    for i, x in enumerate(a):
        cost = np.zeros((m, N))
        for d in range(D):
            z = x[d] - b[:, :, d]
            cost += np.abs(z) if rules.kind == ABSOLUTE else z * z
        cost = np.sqrt(cost) if rules.kind == EUCLIDEAN else cost
        cost[(columns < lo[i]) | (columns >= hi[i])] = np.inf
        best, cur = np.minimum(prev[:-1], prev[1:]), np.full((m + 1, N), np.inf)
        for j in range(m):
            cur[j + 1] = cost[j] + np.minimum(best[j], cur[j])
        prev = cur
    return prev[lengths, np.arange(N)]


# ------------------------------------------------------------------ vector lanes


Task = tuple[Index, Index]  # some series against at most two dozen others


def _by_lanes(one: Series, other: Series, rules: Rules, same: bool) -> Array:
    """Total costs in vector lanes of series sorted by length, in the original order."""
    first, rows = by_length(one)
    second, columns = (first, rows) if one is other else by_length(other)
    out = np.zeros((len(one), len(other)))
    _run_all(lambda task: _run(task, first, second, rules, same, out), _tasks(first, second), one, other)
    if same:
        out += np.triu(out, 1).T
    ordered = np.empty_like(out)
    ordered[np.ix_(rows, columns)] = out
    return ordered


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
    """The series sorted by length, and that order."""
    order = np.argsort(series.lengths, kind="stable")
    if (np.diff(order) == 1).all():
        return series, order
    parts = [series.one(i) for i in order.tolist()]
    offsets = np.concatenate([[0], np.cumsum(series.lengths[order])])
    missing = np.concatenate([series.missing_of(i) for i in order.tolist()])
    return Series(np.concatenate(parts), offsets, series.has_missing, missing), order


def _cut(order: Index, size: int) -> list[Index]:
    return [order[start : start + size] for start in range(0, len(order), size)]
