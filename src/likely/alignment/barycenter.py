"""The average of series that run at different speeds: match all to it, average what is matched, match again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from likely.alignment.bands import Band, band_of
from likely.alignment.dtw_grid import NOTHING, Grid, Route
from likely.alignment.dtw_matrix import Rules, distances
from likely.alignment.local_costs import SQUARED
from likely.alignment.series import Series, all_series
from likely.alignment.step_patterns import StepPattern, rule_named
from likely.core.arrays import Array, parameter, weights
from likely.core.engine import cores, ordered_map
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.core.warnings import tell


@final
@dataclass(frozen=True, eq=False)
class BarycenterResult(Value):
    """An average series, and how it was reached: `trace` holds the inertia before each pass, and never rises.

    >>> barycenter([[0.0, 1.0, 0.0], [0.0, 3.0, 0.0]]).mean.ravel()
    array([0., 2., 0.])
    """

    mean: Array  # (T, D)
    trace: Array  # Σ w · (squared distance), pass by pass
    converged: bool
    reason: str

    @property
    def inertia(self) -> float:
        """Σ w · (squared warping distance) to the average."""
        return float(self.trace[-1])


def barycenter(
    seqs: Any, *, weight: Any = None, init: Any = None, length: int | None = None, cost: Any = "squared",
    step_pattern: Any = "three", band: Any = None, max_iter: int = 100, tol: float = 1e-5,
) -> BarycenterResult:  # fmt: skip
    """The series with the least weighted sum of squared warping distances, to be found by averaging (Petitjean 2011).

    A pass matches every series to the average, then each frame of the average becomes the mean of all frames matched
    with it, each as often as its step weighs. Neither half can raise the inertia; it ends in a minimum that may be
    local.

    - **weight** (n,): a series of weight k is k series. **gaps**: NaN is "not observed".
    - **init** (T, D), or **length**: frames of the average. By default it begins as that series which is nearest to
      the mean of all series stretched to one length (their median).
    - **step_pattern, band**: as in `dtw`, where the average is the first series. **cost**: "squared", for a mean has
      the least squared cost; of other costs it has not, and they are refused.
    - **tol**: a pass must lower the inertia by this share to go on.

    >>> b = barycenter([[0, 1, 2, 2], [0, 1, 1, 2], [0, 0, 1, 2]])
    >>> b.mean.ravel(), b.inertia, b.converged
    (array([0., 1., 2., 2.]), 0.0, True)
    """
    series = all_series(seqs, "barycenter")
    given = weights(weight, len(series), "barycenter")
    w = np.ones(len(series)) if given is None else given
    _check(w, max_iter, tol)
    how = _How(rule_named(step_pattern, "barycenter"), band_of(band, "barycenter"))
    _refuse_without_mean(cost)
    mean = _start(series, w, init, length)
    trace, converged, reason = [_Pass.of(series, w, mean, how)], False, f"{max_iter} passes, all that were allowed"
    for _ in range(max_iter):
        new = _Pass.of(series, w, trace[-1].next, how)
        if not new.inertia < trace[-1].inertia:
            converged, reason = True, "inertia fell no more"
            break
        trace.append(new)
        if trace[-2].inertia - new.inertia <= tol * trace[-2].inertia:
            converged, reason = True, f"inertia fell by less than {tol:g} of it"
            break
    if not converged:
        tell(f"barycenter: not converged: {reason}; raise max_iter, or tol")
    inertia = np.array([p.inertia for p in trace])
    return BarycenterResult.trusted(mean=trace[-1].mean.copy(), trace=inertia, converged=converged, reason=reason)


class _How(NamedTuple):
    """How series are matched to the average."""

    steps: StepPattern
    band: Band


@dataclass(frozen=True, eq=False)
class _Pass:
    """An average, what it costs, and the mean of what is matched with it."""

    mean: Array
    inertia: float
    next: Array

    @classmethod
    def of(cls, series: Series, w: Array, mean: Array, how: _How) -> _Pass:
        total, weight, inertia = np.zeros(mean.shape), np.zeros(mean.shape), 0.0
        jobs = [i for i in range(len(series)) if w[i] > 0]
        for i, (cost, route, scale) in zip(
            jobs, ordered_map(lambda i: _matched(series, i, mean, how), jobs, cores()), strict=True
        ):
            _add(route, series.one(i), w[i] * scale, total, weight)
            inertia += w[i] * cost
        with np.errstate(invalid="ignore"):
            better = np.where(weight > 0, total / weight, mean)  # what nobody saw stays
        return cls(mean, inertia, better)


def _matched(series: Series, i: int, mean: Array, how: _How) -> tuple[float, Route, float]:
    """Scaled cost of one series against the average, the path, and the scale."""
    none = np.zeros(len(mean), dtype=bool)
    grid = Grid(mean, series.one(i), none, series.bare_of(i), series.gaps, SQUARED, NOTHING, *how, False, False,
                f"barycenter (sequence {i})")  # fmt: skip
    last = grid.last_row()
    if not np.isfinite(last[-1]):
        raise DomainError(grid.complaint())
    scale = grid.seen_scale()
    return float(last[-1]) * scale, grid.route(len(last) - 1), scale


def _add(route: Route, x: Array, scale: float, total: Array, weight: Array) -> None:
    from likely.alignment import _loops as warp

    warp.add_along(route.path, route.weight, x, scale, total, weight)


# ---------------------------------------------------------------------- a start


def _start(series: Series, w: Array, start: Any, length: int | None) -> Array:
    if start is not None:
        return _given(start, length, series.values.shape[1])
    T = _median_length(series, w) if length is None else _whole(length)
    stretched = np.stack([_stretched(series.one(i), T) for i in range(len(series))])
    middle = np.average(stretched, axis=0, weights=w)
    there = np.flatnonzero(w > 0)
    rules = Rules(SQUARED, True, whose="barycenter")
    center = Series(middle, np.array([0, T]), False, np.zeros(T, dtype=bool))
    closest = there[int(np.argmin(distances(center, series, rules)[0, there]))]
    one = series.one(int(closest))
    return _stretched(one, len(one) if length is None else T)


def _given(start: Any, length: int | None, D: int) -> Array:
    if length is not None:
        raise DomainError(sentence("barycenter", "start or length, not both", "both"))
    mean = parameter(start, "barycenter", "init")
    mean = mean[:, None] if mean.ndim == 1 else mean
    if mean.ndim != 2 or not len(mean) or mean.shape[1] != D:
        raise ShapeError(sentence("barycenter", f"start must have shape (T, {D})", mean.shape))
    return mean


def _stretched(x: Array, T: int) -> Array:
    """A series at T equal steps from its first to its last frame; gaps are bridged by straight lines."""
    at, out = np.linspace(0, len(x) - 1, T), np.empty((T, x.shape[1]))
    for d in range(x.shape[1]):
        seen = np.flatnonzero(~np.isnan(x[:, d]))
        out[:, d] = np.interp(at, seen, x[seen, d]) if len(seen) else 0.0
    return out


def _median_length(series: Series, w: Array) -> int:
    order = np.argsort(series.lengths, kind="stable")
    half = np.searchsorted(np.cumsum(w[order]), 0.5 * w.sum())
    return int(series.lengths[order[min(int(half), len(order) - 1)]])


# ------------------------------------------------------------------------ checks


def _refuse_without_mean(cost: Any) -> None:
    if not isinstance(cost, str) or cost != "squared":
        got = "a function" if callable(cost) else repr(cost)
        expected = 'cost must be "squared": a mean minimizes squared costs alone'
        remedy = "average by squared costs, and compare by others with dtw_matrix"
        raise DomainError(sentence("barycenter", expected, got, remedy))


def _check(w: Array, max_iter: Any, tol: Any) -> None:
    if w.ndim != 1 or not w.sum() > 0:
        raise DataError(sentence("barycenter", "some weight must be positive, one per series", w.shape))
    if not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise DomainError(sentence("barycenter", "max_iter must be a whole number from 1", max_iter))
    if not 0 <= tol < np.inf:
        raise DomainError(sentence("barycenter", "tol must be a number from 0", tol))


def _whole(length: Any) -> int:
    if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 1:
        raise DomainError(sentence("barycenter", "length must be a whole number from 1", length))
    return int(length)
