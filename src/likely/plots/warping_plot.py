"""Plots of a DTW alignment: warping path with accumulated costs, and matched frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.alignment.dtw import Alignment
from likely.core.arrays import Array, numbers
from likely.core.errors import ShapeError, sentence
from likely.plots.state_sequences import own_scales, unlike
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MATCHES = 60  # lines between the two series that are drawn at most


def plot_warping_path(a: Any, b: Any, alignment: Alignment, ax: Axes | None = None) -> Axes:
    """Plot accumulated costs as an image with the warping path; a on the left, b below.

    Parameters
    ----------
    a, b : array-like (T,) or (T, d)
        The series.
    alignment : Alignment
        The result of `dtw(a, b)`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    plot_alignment : The series with matched frames joined.

    Examples
    --------
    >>> from likely.alignment.dtw import dtw
    >>> a, b = [1, 0, 1, 2, 1], [1, 0, 2, 1]
    >>> plot_warping_path(a, b, dtw(a, b)).get_title(loc="left")
    'distance 1, path of 5 points'
    """
    x, y = _checked(a, b, alignment, "plot_warping_path")
    with themed():
        ax = axes(ax, figsize=(5.6, 5.2))
        n, m = alignment.shape
        image = ax.imshow(
            np.ma.masked_invalid(alignment.costs), origin="lower", aspect="auto", cmap="Blues", interpolation="nearest",
            extent=(-0.5, m - 0.5, -0.5, n - 0.5),
        )  # fmt: skip
        ax.set_facecolor("#f1f3f4")  # points that no path may touch
        ax.plot(alignment.path[:, 1], alignment.path[:, 0], color=PALETTE[1], linewidth=1.8)
        ax.set_title(f"distance {alignment.distance:.4g}, path of {len(alignment.path):,} points", loc="left")
        ax.tick_params(labelleft=False, labelbottom=False, left=False, bottom=False)
        _beside(ax, x, y)
        ax.figure.colorbar(image, ax=ax, label="accumulated cost", shrink=0.8)
    return ax


def _beside(ax: Any, x: Array, y: Array) -> None:
    """The two series in strips of their own, on the axes of the image; columns of unlike scales are stretched."""
    if unlike(np.concatenate([x, y])):
        both = own_scales(np.concatenate([x, y]))
        x, y = both[: len(x)], both[len(x) :]
    left = ax.inset_axes((-0.22, 0.0, 0.2, 1.0), sharey=ax)
    below = ax.inset_axes((0.0, -0.22, 1.0, 0.2), sharex=ax)
    for column in range(x.shape[1]):
        color = PALETTE[0] if x.shape[1] == 1 else PALETTE[column % len(PALETTE)]
        left.plot(x[:, column], np.arange(len(x)), color=color, linewidth=1.1)
        below.plot(np.arange(len(y)), y[:, column], color=color, linewidth=1.1)
    left.invert_xaxis()  # large values point away from the image
    left.set(ylabel="frame of a", xticks=[])
    below.set(xlabel="frame of b", yticks=[])
    for side in (left, below):
        side.tick_params(labelleft=side is left, labelbottom=side is below)
        side.spines[["top", "right"]].set_visible(False)


def plot_alignment(a: Any, b: Any, alignment: Alignment, ax: Axes | None = None, *, column: int = 0) -> Axes:
    """Plot both series one above the other, matched frames joined by lines (at most 60 of them).

    Parameters
    ----------
    a, b : array-like (T,) or (T, d)
        The series.
    alignment : Alignment
        The result of `dtw(a, b)`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    column : int, default 0
        Of several columns, the one that is drawn; the title says which.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    plot_warping_path : The path in the matrix of costs.

    Examples
    --------
    >>> from likely.alignment.dtw import dtw
    >>> a, b = [1, 0, 1, 2, 1], [1, 0, 2, 1]
    >>> plot_alignment(a, b, dtw(a, b)).get_xlabel()
    'frame'
    """
    x, y = _checked(a, b, alignment, "plot_alignment")
    if not 0 <= column < x.shape[1]:
        raise ShapeError(sentence("plot_alignment", f"column must be from 0 to {x.shape[1] - 1}", column))
    u, v = x[:, column], y[:, column]
    lift = 1.15 * max(float(np.nanmax(v)) - float(np.nanmin(u)), 0.0) or 1.0
    with themed():
        ax = axes(ax, figsize=(7.0, 3.6))
        _joined(ax, u + lift, v, alignment.path)
        ax.plot(u + lift, color=PALETTE[0], linewidth=1.4, label="a")
        ax.plot(v, color=PALETTE[1], linewidth=1.4, label="b")
        ax.set(xlabel="frame", yticks=[])
        ax.spines["left"].set_visible(False)
        which = "" if x.shape[1] == 1 else f", column {column} of {x.shape[1]} (from 0)"
        ax.set_title(f"distance {alignment.distance:.4g}{which}", loc="left")
        ax.legend(loc="upper right", ncols=2, labelcolor=INK)
        ax.margins(y=0.18)
    return ax


def _joined(ax: Any, upper: Array, lower: Array, path: Any) -> None:
    from matplotlib.collections import LineCollection

    some = path[np.unique(np.linspace(0, len(path) - 1, min(MATCHES, len(path))).round().astype(int))]
    lines = [[(i, upper[i]), (j, lower[j])] for i, j in some.tolist()]
    ax.add_collection(LineCollection(lines, colors=SOFT, linewidths=0.7))


def _checked(a: Any, b: Any, alignment: Alignment, whose: str) -> tuple[Array, Array]:
    both = []
    for name, given, length in zip("ab", (a, b), alignment.shape, strict=True):
        x = numbers(given, whose)
        x = x[:, None] if x.ndim == 1 else x
        if x.ndim != 2 or len(x) != length:
            raise ShapeError(sentence(whose, f"{name} must be the series that was warped ({length})", x.shape))
        both.append(x)
    return both[0], both[1]
