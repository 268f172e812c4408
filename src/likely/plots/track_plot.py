"""Plot of a track in the plane: measurements, estimated positions, covariance ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.errors import ShapeError, sentence
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ELLIPSES = 25  # that are drawn along a track


def plot_track(
    states: Any, ax: Axes | None = None, *, observed: ArrayLike | None = None, truth: Any = None,
    columns: tuple[int, int] = (0, 1), level: float = 0.9, ellipses: int = ELLIPSES, names: Sequence[str] = ("x", "y"),
    label: str = "estimate",
) -> Axes:  # fmt: skip
    """Plot the path of two entries of a state, with ellipses in which it lies with a given probability.

    Parameters
    ----------
    states : result
        The result of `filter`, `smooth` or a tracker's `run`: mean (T, d) and covariance (T, d, d).
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    observed : array-like (T, 2) or list of array-like (n_t, 2), optional
        Measurements, NaN where there were none, or scans.
    truth : array-like (T, 2), optional
        The true path.
    columns : tuple of int, default (0, 1)
        The two entries of the state.
    level : float, default 0.9
        Probability of an ellipse.
    ellipses : int
        Number of ellipses.
    names : sequence of str, default ("x", "y")
        Names of the axes.
    label : str, default "estimate"
        Label of the legend.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> walk = lk.LinearGaussian.constant_velocity(dim=2, dt=1.0, spectral_density=0.1, observation_variance=1.0)
    >>> y = np.cumsum(np.ones((20, 2)), axis=0)
    >>> plot_track(walk.smooth(y), observed=y).get_xlabel()
    'x'
    """
    mean, cov = np.asarray(states.mean), np.asarray(states.covariance)
    if (
        mean.ndim != 2
        or cov.shape != (*mean.shape, mean.shape[1])
        or not 0 <= min(columns) <= max(columns) < mean.shape[1]
    ):
        raise ShapeError(
            sentence(
                "plot_track",
                f"states must have mean (T, d) and covariance (T, d, d), with columns {tuple(columns)}",
                (mean.shape, cov.shape),
            )
        )
    at = list(columns)
    path, spread = mean[:, at], cov[:, at][:, :, at]
    with themed():
        ax = axes(ax, figsize=(6.4, 5.6))
        if observed is not None:
            dots = _dots(observed)
            ax.plot(dots[:, 0], dots[:, 1], ".", color=SOFT, markersize=3.5, label="measured", zorder=1)
        if truth is not None:
            real = np.asarray(truth)
            ax.plot(real[:, 0], real[:, 1], color=INK, linewidth=1.0, linestyle=":", label="true", zorder=2)
        ax.plot(path[:, 0], path[:, 1], color=PALETTE[0], linewidth=1.8, label=label, zorder=3)
        _ellipses(ax, path, spread, level, ellipses)
        ax.set(xlabel=names[0], ylabel=names[1])
        ax.set_aspect("equal", adjustable="box")
        ax.set_title(f"{len(mean):,} frames, ellipses hold {level:.0%}", loc="left")
        ax.legend(loc="best", fontsize=8)
    return ax


def _dots(observed: Any) -> Array:
    if isinstance(observed, list | tuple):
        scans = [
            np.asarray(s, dtype=np.float64).reshape(-1, np.shape(s)[-1] if np.ndim(s) else 1)
            for s in observed
            if np.size(s)
        ]
        return np.concatenate(scans)[:, :2] if scans else np.empty((0, 2))
    return np.asarray(observed, dtype=np.float64)[:, :2]


def _ellipses(ax: Any, path: Array, spread: Array, level: float, n: int) -> None:
    from matplotlib.patches import Ellipse

    size = float(np.sqrt(-2.0 * np.log1p(-level)))  # of a chi-square distribution with two degrees of freedom
    for t in np.unique(np.linspace(0, len(path) - 1, min(n, len(path))).astype(int)).tolist():
        if not np.isfinite(spread[t]).all():
            continue
        values, vectors = np.linalg.eigh(spread[t])
        wide = 2.0 * size * np.sqrt(np.maximum(values, 0.0))
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        shape = Ellipse(
            tuple(path[t]), wide[1], wide[0], angle=angle, facecolor=PALETTE[0], alpha=0.18, edgecolor=PALETTE[0]
        )
        ax.add_patch(shape)
