"""Plot of a state-space model: observations, smoothed or filtered mean, and credible bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from likely.core.arrays import Array
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.plots.theme import INK, PALETTE, SOFT, themed
from likely.statespace.linear.sums_of_models import observed_covariance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRIPS = 6  # columns that get a strip of their own
DOTS = 3000  # frames beyond which dots are drawn small and pale


def plot_state_estimates(
    model: Any, y: ArrayLike, ax: Axes | None = None, *, times: ArrayLike | None = None, states: Any = None,
    names: Sequence[str] | None = None, ahead: int = 0, level: float = 0.9, inputs: ArrayLike | None = None,
    future: ArrayLike | None = None, lag: int | None = None,
) -> Axes:  # fmt: skip
    """Plot a series with its smoothed signal, credible band and forecast.

    Up to six columns have a strip each.

    Parameters
    ----------
    model : LinearGaussian, LinearSDE, filter or estimator
        A model or filter with `smooth`, or an estimator that has learned one; a `LinearSDE` needs `times`.
    y : array-like (T, d)
        One sequence.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    times : array-like (T,), optional
        Times of the frames.
    states : sequence of int, optional
        Entries of the state to draw, instead of the signal C x in the columns of y.
    names : sequence of str, optional
        Names of what is drawn.
    ahead : int, default 0
        Number of frames to forecast; of a `LinearSDE` frames a mean step apart.
    level : float, default 0.9
        Probability that the bands cover.
    inputs : array-like (T, m), optional
        Known inputs (controls).
    future : array-like (ahead, m), optional
        Inputs of the frames to forecast.
    lag : int, optional
        Number of later frames that may be used: None all, 0 none (the filter).

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.LinearGaussian.local_level(level_variance=1.0, observation_variance=1.0)
    >>> plot_state_estimates(walk, [0.0, 1.0, 0.5, 2.0], ahead=2).get_xlabel()
    'frame'
    """
    model = getattr(model, "model_", model)
    if not hasattr(model, "smooth"):
        remedy = "as LinearGaussian, or a fitted LinearGaussianDensity"
        raise DomainError(
            sentence("plot_state_estimates", "a model that can smooth is needed", type(model).__name__, remedy)
        )
    if ahead and states is not None:
        raise DomainError(
            sentence("plot_state_estimates", "forecasts are plotted in the columns of y", "states", "leave ahead out")
        )
    ticking = not hasattr(model, "drift")
    if not ticking and times is None:
        raise DataError(
            sentence("plot_state_estimates", "a model in continuous time needs times", "none", "give times=")
        )
    found = _smoothed(model, y, inputs, lag, None if ticking else times)
    seen = np.asarray(y, dtype=np.float64).reshape(len(found.mean), -1)
    middle, spread = _signal(model, found, seen.shape[1], inputs) if states is None else _entries(found, states)
    t: Any = np.arange(len(middle)) if times is None else np.asarray(times)
    if len(t) != len(middle):
        raise ShapeError(
            sentence("plot_state_estimates", f"times must have one entry per frame ({len(middle)})", len(t))
        )
    called = _names(names, middle.shape[1], "state" if states is not None else "y")
    with themed():
        strips = _strips(ax, middle.shape[1])
        for j, strip in enumerate(strips):
            _strip(strip, t, seen[:, j] if states is None else None, middle[:, j], spread[:, j], level, j)
            strip.set_ylabel(called[j])
        if ahead:
            later = t[-1] + (t[-1] - t[0]) / max(len(t) - 1, 1) * np.arange(1, ahead + 1)
            given = (y, ahead, inputs, future) if ticking else (y, times, later)
            _ahead(_forecast(model, given, ticking), strips, later, level)
        strips[-1].set_xlabel("frame" if times is None else "time")
        strips[0].set_title(_title(found, level, lag), loc="left")
        strips[0].legend(loc="best", ncols=3, fontsize=8)
    return strips[0]


def _smoothed(model: Any, y: Any, inputs: Any, lag: int | None, times: Any) -> Any:
    if times is not None:
        return model.filter(y, times) if lag == 0 else model.smooth(y, times)
    if lag == 0:
        found = model.filter(y, inputs) if inputs is not None else model.filter(y)
    else:
        more = {name: value for name, value in (("inputs", inputs), ("lag", lag)) if value is not None}
        found = model.smooth(y, **more)
    if not isinstance(found.mean, np.ndarray):
        raise DataError(
            sentence("plot_state_estimates", "one sequence is needed", f"{len(found.mean)} of them", "pass y[i]")
        )
    return found


def _signal(model: Any, found: Any, p: int, inputs: Any) -> tuple[Array, Array]:
    """The noise-free observation C x + G u, and its standard deviation."""
    if not hasattr(model, "observation_covariance"):
        return _entries(found, range(min(p, found.mean.shape[1])))
    C = np.broadcast_to(model.observation, (len(found.mean), *model.observation.shape[-2:]))
    middle = np.einsum("tij,tj->ti", C, found.mean)
    if inputs is not None and getattr(model, "feedthrough", None) is not None:
        middle = model.observed(found, inputs).mean
    spread = np.diagonal(observed_covariance(C, found.covariance), axis1=1, axis2=2)
    return middle, np.sqrt(np.maximum(spread, 0.0))


def _entries(found: Any, states: Any) -> tuple[Array, Array]:
    at = np.atleast_1d(np.asarray(list(states) if not np.isscalar(states) else states, dtype=np.intp))
    if at.max(initial=0) >= found.mean.shape[1]:
        raise ShapeError(
            sentence("plot_state_estimates", f"states are numbered from 0 to {found.mean.shape[1] - 1}", at.tolist())
        )
    return found.mean[:, at], np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2)[:, at])


def _forecast(model: Any, given: tuple[Any, ...], ticking: bool) -> Any:
    if not ticking:
        return model.forecast(*given)
    y, ahead, inputs, future = given
    return model.forecast(y, ahead) if inputs is None and future is None else model.forecast(y, ahead, inputs, future)


def _strips(ax: Any, n: int) -> list[Any]:
    if ax is not None:
        given = list(np.atleast_1d(ax))
        if len(given) != min(n, STRIPS):
            raise ShapeError(
                sentence(
                    "plot_state_estimates",
                    f"one pair of axes for each of {min(n, STRIPS)} columns is needed",
                    len(given),
                )
            )
        return given
    n = min(n, STRIPS)
    with themed() as plt:
        made = plt.subplots(n, 1, figsize=(8.0, 0.8 + 2.2 * n), sharex=True, layout="constrained", squeeze=False)[1]
    return list(made[:, 0])


def _strip(ax: Any, t: Array, seen: Array | None, middle: Array, spread: Array, level: float, j: int) -> None:
    color, wide = PALETTE[j % len(PALETTE)], float(ndtri(0.5 + 0.5 * level))
    sure = np.isfinite(spread)
    low, high = (np.where(sure, middle + sign * wide * np.where(sure, spread, 0.0), np.nan) for sign in (-1, 1))
    if seen is not None:
        many = len(t) > DOTS
        ax.plot(t, seen, ".", color=INK, markersize=1.5 if many else 3.5, alpha=0.35 if many else 0.7, label="observed")
    ax.fill_between(t, low, high, color=color, alpha=0.22, linewidth=0, label=f"{level:.0%} band")
    ax.plot(t, middle, color=color, linewidth=1.6, label="estimate")


def _ahead(found: Any, strips: list[Any], later: Array, level: float) -> None:
    low, high = found.interval(level)
    for j, strip in enumerate(strips):
        strip.fill_between(
            later, low[:, j], high[:, j], color=SOFT, alpha=0.35, linewidth=0, label="forecast of observations"
        )
        strip.plot(later, found.mean[:, j], color=INK, linewidth=1.2, linestyle="--")


def _names(names: Any, n: int, what: str) -> list[str]:
    called = (
        [f"{what} {j}" if n > 1 else what for j in range(n)]
        if names is None
        else [names]
        if isinstance(names, str)
        else [str(x) for x in names]
    )
    if len(called) != n:
        raise ShapeError(sentence("plot_state_estimates", f"names must name each of {n} columns", len(called)))
    return called


def _title(found: Any, level: float, lag: int | None) -> str:
    how = "smoothed" if lag is None else "filtered" if lag == 0 else f"known {lag} frames later"
    return f"{len(found.mean):,} frames, {how}; log p = {found.log_prob:.5g}".replace("-", "−")
