"""DTW barycenter averaging (DBA): the mean of series under dynamic time warping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike

from likely.alignment.bands import Band, BandLike, band_of
from likely.alignment.dtw_grid import NOTHING, Grid, Route
from likely.alignment.local_costs import SQUARED
from likely.alignment.pairwise_dtw import Rules, distances
from likely.alignment.series import Series, all_series
from likely.alignment.step_patterns import StepPattern, StepPatternLike, step_pattern_of
from likely.core.arrays import Array, SequencesLike, parameter, weights
from likely.core.engine import cores, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.core.warnings import warn


@final
@dataclass(frozen=True, eq=False)
class BarycenterResult(Value):
    """A DTW barycenter, and how it was found.

    Parameters
    ----------
    mean : ndarray (T, D)
        The average series.
    trace : ndarray
        Inertia Σ w · (squared distance) before each iteration; it never increases.
    converged : bool
        Whether the decrease fell below the tolerance.
    reason : str
        Why iterations ended.

    Examples
    --------
    >>> barycenter([[0.0, 1.0, 0.0], [0.0, 3.0, 0.0]]).mean.ravel()
    array([0., 2., 0.])
    """

    mean: Array  # (T, D)
    trace: Array  # Σ w · (squared distance), per iteration
    converged: bool
    reason: str

    @property
    def inertia(self) -> float:
        """Σ w · (squared DTW distance) to the barycenter."""
        return float(self.trace[-1])


def barycenter(
    seqs: SequencesLike, *, weight: ArrayLike | None = None, init: ArrayLike | None = None, length: int | None = None,
    metric: Literal["sqeuclidean"] = "sqeuclidean", step_pattern: StepPatternLike = "unweighted",
    band: BandLike | None = None, max_iter: int = 100, tol: float = 1e-5,
) -> BarycenterResult:  # fmt: skip
    """DTW barycenter: the series of least weighted sum of squared DTW distances, by DBA.

    An iteration aligns every series with the average, then each frame of the average becomes the mean of all frames
    matched with it, weighted by their steps. Neither can increase the inertia; it converges to a minimum that may be
    local.

    Parameters
    ----------
    seqs : list of array-like (T,) or (T, D), Ragged or array
        The series; NaN is a missing value.
    weight : array-like (n,), optional
        Weight per series: a series of weight k counts k times.
    init : array-like (T, D), optional
        First average. By default the series nearest to the mean of all series resampled to their median length.
    length : int, optional
        Number of frames of the average.
    metric : {"sqeuclidean"}
        Local cost of two frames; only the one that the mean minimizes.
    step_pattern : str or StepPattern, default "unweighted"
        Step pattern as in `dtw`, where the average is the first series.
    band : float, int, str, tuple or array-like, optional
        Band as in `dtw`.
    max_iter : int, default 100
        Largest number of iterations.
    tol : float, default 1e-5
        Relative decrease of the inertia at convergence.

    Returns
    -------
    BarycenterResult
        The average, the inertia per iteration, and whether it converged.

    See Also
    --------
    dtw : The alignment of two series.

    References
    ----------
    Petitjean, Ketterlin and Gançarski (2011).

    Examples
    --------
    >>> b = barycenter([[0, 1, 2, 2], [0, 1, 1, 2], [0, 0, 1, 2]])
    >>> b.mean.ravel(), b.inertia, b.converged
    (array([0., 1., 2., 2.]), 0.0, True)
    """
    series = all_series(seqs, "barycenter")
    given = weights(weight, len(series), "barycenter")
    w = np.ones(len(series)) if given is None else given
    _check(w, max_iter, tol)
    settings = _Settings(step_pattern_of(step_pattern, "barycenter"), band_of(band, "barycenter"))
    _refuse_without_mean(metric)
    mean = _start(series, w, init, length)
    trace, converged, reason = [_Iteration.of(series, w, mean, settings)], False, f"{max_iter} iterations, the limit"
    for _ in range(max_iter):
        new = _Iteration.of(series, w, trace[-1].next, settings)
        if not new.inertia < trace[-1].inertia:
            converged, reason = True, "inertia no longer decreased"
            break
        trace.append(new)
        if trace[-2].inertia - new.inertia <= tol * trace[-2].inertia:
            converged, reason = True, f"inertia decreased by less than {tol:g} of it"
            break
    if not converged:
        warn(f"barycenter: not converged: {reason}; raise max_iter, or tol")
    inertia = np.array([p.inertia for p in trace])
    return BarycenterResult.trusted(mean=trace[-1].mean.copy(), trace=inertia, converged=converged, reason=reason)


class _Settings(NamedTuple):
    """Step pattern and band of the alignments with the average."""

    steps: StepPattern
    band: Band


@dataclass(frozen=True, eq=False)
class _Iteration:
    """One iteration: an average, its inertia, and the mean of the frames matched with it."""

    mean: Array
    inertia: float
    next: Array

    @classmethod
    def of(cls, series: Series, w: Array, mean: Array, settings: _Settings) -> _Iteration:
        total, weight, inertia = np.zeros(mean.shape), np.zeros(mean.shape), 0.0
        jobs = [i for i in range(len(series)) if w[i] > 0]
        for i, (cost, route, scale) in zip(
            jobs, ordered_map(lambda i: _matched(series, i, mean, settings), jobs, cores()), strict=True
        ):
            _add(route, series.one(i), w[i] * scale, total, weight)
            inertia += w[i] * cost
        with np.errstate(invalid="ignore"):
            better = np.where(weight > 0, total / weight, mean)  # frames without observed values keep theirs
        return cls(mean, inertia, better)


def _matched(series: Series, i: int, mean: Array, settings: _Settings) -> tuple[float, Route, float]:
    """Scaled cost of one series against the average, the path, and the scale."""
    no_missing = np.zeros(len(mean), dtype=bool)
    grid = Grid(mean, series.one(i), no_missing, series.missing_of(i), series.has_missing, SQUARED, NOTHING, *settings,
                False, False, f"barycenter (sequence {i})")  # fmt: skip
    last = grid.last_row()
    if not np.isfinite(last[-1]):
        raise DomainError(grid.error_message())
    scale = grid.missing_scale()
    return float(last[-1]) * scale, grid.route(len(last) - 1), scale


def _add(route: Route, x: Array, scale: float, total: Array, weight: Array) -> None:
    from likely.alignment import _loops as warp

    warp.add_along(route.path, route.weight, x, scale, total, weight)


# ---------------------------------------------------------------- initialization


def _start(series: Series, w: Array, start: Any, length: int | None) -> Array:
    if start is not None:
        return _given(start, length, series.values.shape[1])
    T = _median_length(series, w) if length is None else _integer(length)
    resampled = np.stack([_resampled(series.one(i), T) for i in range(len(series))])
    middle = np.average(resampled, axis=0, weights=w)
    positive = np.flatnonzero(w > 0)
    rules = Rules(SQUARED, True, whose="barycenter")
    center = Series(middle, np.array([0, T]), False, np.zeros(T, dtype=bool))
    closest = positive[int(np.argmin(distances(center, series, rules)[0, positive]))]
    one = series.one(int(closest))
    return _resampled(one, len(one) if length is None else T)


def _given(start: Any, length: int | None, D: int) -> Array:
    if length is not None:
        raise DomainError(sentence("barycenter", "init or length, not both", "both"))
    mean = parameter(start, "barycenter", "init")
    mean = mean[:, None] if mean.ndim == 1 else mean
    if mean.ndim != 2 or not len(mean) or mean.shape[1] != D:
        raise ShapeError(sentence("barycenter", f"init must have shape (T, {D})", mean.shape))
    return mean


def _resampled(x: Array, T: int) -> Array:
    """A series resampled to T equal steps from first to last frame; missing values are interpolated linearly."""
    at, out = np.linspace(0, len(x) - 1, T), np.empty((T, x.shape[1]))
    for d in range(x.shape[1]):
        observed = np.flatnonzero(~np.isnan(x[:, d]))
        out[:, d] = np.interp(at, observed, x[observed, d]) if len(observed) else 0.0
    return out


def _median_length(series: Series, w: Array) -> int:
    order = np.argsort(series.lengths, kind="stable")
    half = np.searchsorted(np.cumsum(w[order]), 0.5 * w.sum())
    return int(series.lengths[order[min(int(half), len(order) - 1)]])


# ------------------------------------------------------------------------ checks


def _refuse_without_mean(metric: Any) -> None:
    if not isinstance(metric, str) or metric != "sqeuclidean":
        got = "a function" if callable(metric) else repr(metric)
        expected = 'metric must be "sqeuclidean": a mean minimizes squared distances alone'
        remedy = "average by squared distances, and compare by other metrics with dtw_matrix"
        raise DomainError(sentence("barycenter", expected, got, remedy))


def _check(w: Array, max_iter: Any, tol: Any) -> None:
    if w.ndim != 1 or not w.sum() > 0:
        raise DataError(sentence("barycenter", "some weight must be positive, one per series", w.shape))
    if not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise DomainError(sentence("barycenter", "max_iter must be an integer from 1", max_iter))
    if not 0 <= tol < np.inf:
        raise DomainError(sentence("barycenter", "tol must be a number from 0", tol))


def _integer(length: Any) -> int:
    if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 1:
        raise DomainError(sentence("barycenter", "length must be an integer from 1", length))
    return int(length)
