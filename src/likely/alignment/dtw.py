"""Dynamic time warping (DTW) of two series: distance, path, and warping along it.

The recursion is in `_loops.py`: `accumulate`, and `accumulate_three` for the usual three steps; `dtw_grid.py` calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from likely.alignment.bands import BandLike, band_of
from likely.alignment.dtw_grid import Grid, Route, total_of
from likely.alignment.local_costs import MetricLike, local_cost
from likely.alignment.series import flag, one_series, same_width
from likely.alignment.step_patterns import StepPatternLike, step_pattern_of
from likely.core.arrays import Array, Index, numbers
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value


@final
@dataclass(frozen=True, eq=False)
class Alignment(Value):
    """DTW alignment of two series: the result of `dtw`.

    `distance` and `total` are stored; the path and costs are computed on request.

    Parameters
    ----------
    total : float
        Sum of local costs on the path, each times its step weight.
    end : int
        The frame of b that the last frame of a is matched with.
    takes_root : bool
        True if the distance is the square root of the total.
    grid : Grid
        The local costs, steps and band.

    Examples
    --------
    >>> w = dtw([1, 0, 1, 2, 1], [1, 0, 2, 1])
    >>> w.total, w.path.tolist()
    (1.0, [[0, 0], [1, 1], [2, 1], [3, 2], [4, 3]])
    """

    total: float  # Σ of local costs on the path, each times its step weight
    end: int  # the frame of b that the last frame of a is matched with
    takes_root: bool  # True if the distance is the square root of the total
    grid: Grid

    @property
    def distance(self) -> float:
        """The total cost; for metric="sqeuclidean" its square root, which without warping is the Euclidean distance.

        With missing frames it is first scaled by the number of frames over the observed ones.
        """
        begin = int(self.path[0, 1]) if self.grid.depends_on_part else 0
        total = self.total * self.grid.missing_scale(begin, self.end)
        return float(np.sqrt(total)) if self.takes_root else total

    @cached_property
    def _route(self) -> Route:
        return self.grid.route(self.end)

    @property
    def path(self) -> Index:
        """Warping path (P, 2), in order: (i, j) matches a[i] with b[j]."""
        path = self._route.path
        path.setflags(write=False)
        return path

    @property
    def normalized(self) -> float:
        """Normalized cost: the total over the weights of its steps (n + m for symmetric patterns)."""
        weight = float(self._route.weight.sum())
        if not weight > 0:
            remedy = "give some step a weight above 0"
            raise DomainError(
                sentence("Alignment", "normalization needs a path with positive weight", "steps of weight 0", remedy)
            )
        return self.total / weight

    @cached_property
    def costs(self) -> Array:
        """Accumulated cost of the best path to each point of the grid (n, m); inf where none leads."""
        table = self.grid.accumulated()
        table.setflags(write=False)
        return table

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of frames (n, m)."""
        return self.grid.shape

    def warp_a(self, x: ArrayLike) -> Array:
        """Warp values along a to the time axis of b: the mean over matched frames.

        Parameters
        ----------
        x : array-like (n,) or (n, …)
            Values, one per frame of a.

        Returns
        -------
        ndarray (m,) or (m, …)
            Values, one per frame of b.

        Examples
        --------
        >>> dtw([1, 0, 1, 2, 1], [1, 0, 2, 1]).warp_a([1, 0, 1, 2, 1])
        array([1. , 0.5, 2. , 1. ])
        """
        return self._warped(x, 0)

    def warp_b(self, y: ArrayLike) -> Array:
        """Warp values along b to the time axis of a: the mean over matched frames.

        Parameters
        ----------
        y : array-like (m,) or (m, …)
            Values, one per frame of b.

        Returns
        -------
        ndarray (n,) or (n, …)
            Values, one per frame of a; NaN where no observed value is matched.

        Examples
        --------
        >>> dtw([1, 0, 1, 2, 1], [1, 0, 2, 1]).warp_b([1, 0, 2, 1])
        array([1., 0., 0., 2., 1.])
        """
        return self._warped(y, 1)

    def _warped(self, x: Any, side: int) -> Array:
        x = numbers(x, "Alignment")
        if x.ndim == 0 or len(x) != self.shape[side]:
            raise ShapeError(sentence("Alignment", f"values to be warped must have {self.shape[side]} frames", x.shape))
        flat, source, target = x.reshape(len(x), -1), self.path[:, side], self.path[:, 1 - side]
        observed = ~np.isnan(flat)
        total, count = np.zeros((2, self.shape[1 - side], flat.shape[1]))
        np.add.at(total, target, np.where(observed, flat, 0.0)[source])
        np.add.at(count, target, observed[source])
        with np.errstate(invalid="ignore"):
            return (total / count).reshape(-1, *x.shape[1:])

    def __repr__(self) -> str:
        n, m = self.shape
        return f"Alignment({n} × {m} frames, distance {self.distance:.6g})"


def dtw(
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    costs: ArrayLike | None = None,
    metric: MetricLike = "cityblock",
    step_pattern: StepPatternLike = "unweighted",
    band: BandLike | None = None,
    open_begin: bool = False,
    open_end: bool = False,
) -> Alignment:
    """Dynamic time warping of two series.

    D(i, j) = C(i, j) + min of D(i−1, j−1), D(i−1, j), D(i, j−1). Of equal steps the diagonal is
    preferred, then the one along a.

    Missing values are NaN. A cost is over the entries observed in both frames, scaled to all of them. A missing
    frame costs nothing and is matched once (cf. Yurtman et al. 2023). The distance is scaled by the number of frames
    over the observed ones. Two frames without a common entry have the mean cost. With open ends the part of b neither
    begins nor ends on a missing frame, and half of it must be observed.

    The distance takes memory for three rows of the grid (for other patterns and masks, the grid); the path one byte per
    grid point.

    Parameters
    ----------
    a, b : array-like (T,) or (T, D)
        The series.
    costs : array-like (n, m), optional
        A matrix of local costs instead of two series; infinity forbids a match. A step of weight 0
        passes through without a match.
    metric : {"cityblock", "sqeuclidean", "euclidean", "cosine"}, tuple or callable, default "cityblock"
        Local cost of two frames: Σ|z|, Σz², √Σz², cosine, ("mahalanobis", covariance), or a function that returns the
        matrix of costs (n, m) of frames a (n, D) and b (m, D), as SciPy's `cdist` does.
    step_pattern : str or StepPattern, default "unweighted"
        "unweighted" (`symmetric1` in R's dtw), or Sakoe and Chiba's "symmetric" (`symmetric2`) and "asymmetric", with
        slope limits "symmetric 1/2", "… 1", "… 2".
    band : float, int, str, tuple or array-like, optional
        A share of the longer series (0.1), a radius in frames (5), "itakura", ("itakura", slope), or a mask (n, m).
    open_begin, open_end : bool, default False
        All of a is matched, to a part of b that begins or ends anywhere.

    Returns
    -------
    Alignment
        `distance` is the total of the costs, for "sqeuclidean" its root; `path` are the matched frames.

    See Also
    --------
    dtw_matrix : Distances of all pairs.
    barycenter : The average of series.
    subsequence_dtw : A query in a long series.

    References
    ----------
    Sakoe and Chiba (1978); Rabiner and Juang (1993), chapter 4; Herbst and du Preez, lecture notes, 9.3.

    Examples
    --------
    >>> dtw([0, 1, 2, 3], [0, 0, 1, 2, 2, 3]).distance
    0.0
    """
    begin, end = flag(open_begin, "open_begin", "dtw"), flag(open_end, "open_end", "dtw")
    pattern, limits = step_pattern_of(step_pattern, "dtw"), band_of(band, "dtw")
    if (begin or end) and limits.closed and limits.mask is None:
        expected = "a band connects the corners, so open ends cannot have one"
        raise DomainError(sentence("dtw", expected, repr(band), "pass a mask (n, m)"))
    if costs is None:
        return _of_series(a, b, metric, (pattern, limits, begin, end, "dtw"))
    if a is not None or b is not None:
        raise DomainError(sentence("dtw", "either two series or a matrix of costs is needed", "both"))
    return _solved(_grid_of_costs(costs, (pattern, limits, begin, end, "dtw")), False)


def _of_series(a: Any, b: Any, metric: Any, settings: tuple[Any, ...]) -> Alignment:
    if a is None or b is None:
        raise DataError(sentence("dtw", "two series, or a matrix of costs, are needed", "None"))
    one, other, frame_cost = one_series(a, "dtw (a)"), one_series(b, "dtw (b)"), local_cost(metric, "dtw")
    same_width(one, other, "dtw")
    with np.errstate(over="ignore"):
        one, other = frame_cost.prepare(one, "dtw (a)"), frame_cost.prepare(other, "dtw (b)")
    # copies: the path is computed later, and the caller may change the arrays until then
    x, y, has_missing = one.values.copy(), other.values.copy(), one.has_missing or other.has_missing
    kind = frame_cost.of_width(x.shape[1])
    local = frame_cost.matrix(x, y, one.missing, other.missing, "dtw")
    return _solved(Grid(x, y, one.missing, other.missing, has_missing, kind, local, *settings), frame_cost.takes_root)


def _solved(grid: Grid, takes_root: bool) -> Alignment:
    total, end = total_of(grid)
    return Alignment.trusted(total=total, end=end, takes_root=takes_root, grid=grid)


def _grid_of_costs(costs: Any, settings: tuple[Any, ...]) -> Grid:
    local = numbers(costs, "dtw (costs)")
    if local.ndim != 2 or not local.size:
        raise ShapeError(sentence("dtw", "costs must have shape (n, m), with at least one point", local.shape))
    bad = np.argwhere(~(local > -np.inf))
    if len(bad):
        i, j = bad[0].tolist()
        remedy = "infinity forbids a point"
        raise DataError(sentence("dtw", "costs must be numbers", f"{local[i, j]} at row {i}, column {j}", remedy))
    local = local.copy()  # the path is computed later, and the caller may change the matrix until then
    n, m = local.shape
    no_missing = np.zeros(max(n, m), dtype=bool)
    empty = np.empty((0, 1))
    return Grid(empty, empty, no_missing[:n], no_missing[:m], False, 0, local, *settings)


def number_of_paths(n: int, m: int, diagonal: bool = True) -> int:
    """Number of warping paths through n × m grid points, from corner to corner, by steps of one frame.

    With N = n − 1 and M = m − 1 steps: Σ_s (N + M − s)! / ((N − s)! (M − s)! s!); without diagonals its first term.
    (The notes use the numbers of points instead of steps.)

    Parameters
    ----------
    n, m : int
        Numbers of frames of the two series.
    diagonal : bool, default True
        Allow diagonal steps.

    Returns
    -------
    int
        The number of paths.

    References
    ----------
    Herbst and du Preez, lecture notes, 9.3.

    Examples
    --------
    >>> number_of_paths(5, 4), number_of_paths(5, 4, diagonal=False)
    (129, 35)
    """
    for value in (n, m):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise DomainError(sentence("number_of_paths", "n and m must be integers from 1", value))
    N, M = int(n) - 1, int(m) - 1
    most = min(N, M) if diagonal else 0
    return sum(comb(N + M - s, s) * comb(N + M - 2 * s, N - s) for s in range(most + 1))
