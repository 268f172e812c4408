"""Dynamic time warping: two signals that tell the same story at different speeds, laid beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, final

import numpy as np

from likely.alignment.bands import band_of
from likely.alignment.dtw_grid import Grid, Route, total_of
from likely.alignment.local_costs import local_cost
from likely.alignment.series import flag, one_series, same_width
from likely.alignment.step_patterns import rule_named
from likely.core.arrays import Array, Index, numbers
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value


@final
@dataclass(frozen=True, eq=False)
class Alignment(Value):
    """How two series are matched at least cost. `distance` and `total` are known; what else is asked for is computed.

    >>> w = dtw([1, 0, 1, 2, 1], [1, 0, 2, 1])
    >>> w.total, w.path.tolist()
    (1.0, [[0, 0], [1, 1], [2, 1], [3, 2], [4, 3]])
    """

    total: float  # Σ of local costs on the path, each times the weight of its step
    end: int  # the frame of b that the last frame of a is matched with
    rooted: bool  # a distance is the root of a total
    grid: Grid

    @property
    def distance(self) -> float:
        """The total cost, for cost="squared" its square root: without any warping that is the Euclidean distance.

        Where whole frames were not observed it is first scaled by all frames over those seen.
        """
        begin = int(self.path[0, 1]) if self.grid.partly else 0
        total = self.total * self.grid.seen_scale(begin, self.end)
        return float(np.sqrt(total)) if self.rooted else total

    @cached_property
    def _route(self) -> Route:
        return self.grid.route(self.end)

    @property
    def path(self) -> Index:
        """The matched frames (P, 2), in order: (i, j) says that a[i] goes with b[j]."""
        path = self._route.path
        path.setflags(write=False)
        return path

    @property
    def normalized(self) -> float:
        """The mean local cost on the path: the total over the weights of its steps (n + m for symmetric rules)."""
        weight = float(self._route.weight.sum())
        if not weight > 0:
            remedy = "give some step a weight above 0"
            raise DomainError(
                sentence("Alignment", "a mean needs a path with some weight", "steps that weigh 0", remedy)
            )
        return self.total / weight

    @cached_property
    def costs(self) -> Array:
        """The cost of the best path to each point of the grid (n, m); inf where none leads."""
        table = self.grid.accumulated()
        table.setflags(write=False)
        return table

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of frames (n, m)."""
        return self.grid.shape

    def warp_a(self, x: Any) -> Array:
        """Something along a, (n,) or (n, …), on the clock of b: for each frame of b the mean of what is matched.

        >>> dtw([1, 0, 1, 2, 1], [1, 0, 2, 1]).warp_a([1, 0, 1, 2, 1])
        array([1. , 0.5, 2. , 1. ])
        """
        return self._warped(x, 0)

    def warp_b(self, y: Any) -> Array:
        """Something along b, (m,) or (m, …), on the clock of a; NaN where nothing observed is matched.

        >>> dtw([1, 0, 1, 2, 1], [1, 0, 2, 1]).warp_b([1, 0, 2, 1])
        array([1., 0., 0., 2., 1.])
        """
        return self._warped(y, 1)

    def _warped(self, x: Any, side: int) -> Array:
        x = numbers(x, "Alignment")
        if x.ndim == 0 or len(x) != self.shape[side]:
            raise ShapeError(sentence("Alignment", f"what is warped must have {self.shape[side]} frames", x.shape))
        flat, given, taken = x.reshape(len(x), -1), self.path[:, side], self.path[:, 1 - side]
        seen = ~np.isnan(flat)
        total, count = np.zeros((2, self.shape[1 - side], flat.shape[1]))
        np.add.at(total, taken, np.where(seen, flat, 0.0)[given])
        np.add.at(count, taken, seen[given])
        with np.errstate(invalid="ignore"):
            return (total / count).reshape(-1, *x.shape[1:])

    def __repr__(self) -> str:
        n, m = self.shape
        return f"Alignment({n} × {m} frames, distance {self.distance:.6g})"


def dtw(
    a: Any = None,
    b: Any = None,
    *,
    costs: Any = None,
    cost: Any = "absolute",
    step_pattern: Any = "three",
    band: Any = None,
    open_begin: bool = False,
    open_end: bool = False,
) -> Alignment:
    """Match two series (T,) or (T, D) at least cost: TC(i, j) = C(i, j) + min TC of (i−1, j−1), (i−1, j), (i, j−1)
    (Herbst 9.3). Of equal steps the diagonal is preferred, then the one along a.

    - **cost** of two frames: "absolute" Σ|z|, "squared" Σz², "euclidean" √Σz², "cosine", ("mahalanobis", covariance),
      or a function that gives the matrix of costs (n, m) of frames a (n, D) and b (m, D), as SciPy's `cdist` does.
      `distance` is the total, for "squared" its root.
    - **costs**: a matrix of local costs (n, m) instead of two series; infinity forbids a match. A step of weight 0
      matches nothing, and passes through.
    - **step_pattern**: "three", or Sakoe and Chiba's "symmetric" and "asymmetric", with slope limits "symmetric 1/2",
      "… 1", "… 2", or a table of your own (`StepPattern`).
    - **band**: a share of the longer series (0.1), a radius in frames (5), "itakura", ("itakura", slope), a
      mask (n, m).
    - **open_begin, open_end**: all of a is matched, to a part of b.
    - **gaps**: NaN is "not observed". A cost is over the entries that both frames have, scaled to all of them. A frame
      without any costs nothing and is matched once: no path rests on it (cf. Yurtman et al. 2023). The distance is
      scaled by all frames over those seen. Two frames without a common entry cost as much as others on the average.
      With open ends the part of b neither begins nor ends on a missing frame, and half of it must have been observed.

    The distance takes memory for three rows of the grid (for other rules and masks, the grid); the path a byte a point.

    >>> dtw([0, 1, 2, 3], [0, 0, 1, 2, 2, 3]).distance
    0.0
    """
    begin, end = flag(open_begin, "open_begin", "dtw"), flag(open_end, "open_end", "dtw")
    rule, limits = rule_named(step_pattern, "dtw"), band_of(band, "dtw")
    if (begin or end) and limits.closed and limits.mask is None:
        expected = "a band joins the corners, so open ends cannot have one"
        raise DomainError(sentence("dtw", expected, repr(band), "pass a mask (n, m)"))
    if costs is None:
        return _of_series(a, b, cost, (rule, limits, begin, end, "dtw"))
    if a is not None or b is not None:
        raise DomainError(sentence("dtw", "two series or a matrix of costs is needed", "both"))
    return _solved(_grid_of_costs(costs, (rule, limits, begin, end, "dtw")), False)


def _of_series(a: Any, b: Any, cost: Any, how: tuple[Any, ...]) -> Alignment:
    if a is None or b is None:
        raise DataError(sentence("dtw", "two series, or a matrix of costs, are needed", "None"))
    one, other, meant = one_series(a, "dtw (a)"), one_series(b, "dtw (b)"), local_cost(cost, "dtw")
    same_width(one, other, "dtw")
    with np.errstate(over="ignore"):
        one, other = meant.prepare(one, "dtw (a)"), meant.prepare(other, "dtw (b)")
    # copies: the path is found later, and the caller may change his arrays until then
    x, y, gaps = one.values.copy(), other.values.copy(), one.gaps or other.gaps
    kind = meant.of_width(x.shape[1])
    local = meant.matrix(x, y, one.bare, other.bare, "dtw")
    return _solved(Grid(x, y, one.bare, other.bare, gaps, kind, local, *how), meant.rooted)


def _solved(grid: Grid, rooted: bool) -> Alignment:
    total, end = total_of(grid)
    return Alignment.trusted(total=total, end=end, rooted=rooted, grid=grid)


def _grid_of_costs(costs: Any, how: tuple[Any, ...]) -> Grid:
    local = numbers(costs, "dtw (costs)")
    if local.ndim != 2 or not local.size:
        raise ShapeError(sentence("dtw", "costs must have shape (n, m), with at least one point", local.shape))
    bad = np.argwhere(~(local > -np.inf))
    if len(bad):
        i, j = bad[0].tolist()
        remedy = "infinity forbids a point"
        raise DataError(sentence("dtw", "costs must be numbers", f"{local[i, j]} at row {i}, column {j}", remedy))
    local = local.copy()  # the path is found later, and the caller may change his matrix until then
    n, m = local.shape
    none = np.zeros(max(n, m), dtype=bool)
    empty = np.empty((0, 1))
    return Grid(empty, empty, none[:n], none[:m], False, 0, local, *how)


def number_of_paths(n: int, m: int, diagonal: bool = True) -> int:
    """How many paths lead through n × m grid points, from corner to corner, by steps of one frame   (Herbst 9.3).

    With N = n − 1 and M = m − 1 steps: Σ_s (N + M − s)! / ((N − s)! (M − s)! s!); without diagonals its first term.
    (The notes put the numbers of points where those of steps belong.)

    >>> number_of_paths(5, 4), number_of_paths(5, 4, diagonal=False)
    (129, 35)
    """
    for value in (n, m):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise DomainError(sentence("number_of_paths", "n and m must be whole numbers from 1", value))
    N, M = int(n) - 1, int(m) - 1
    most = min(N, M) if diagonal else 0
    return sum(comb(N + M - s, s) * comb(N + M - 2 * s, N - s) for s in range(most + 1))
