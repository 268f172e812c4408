"""Plot of the decision boundary between two Gaussian classes: ellipses, the conic, and its foci."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.errors import DomainError, sentence
from likely.decision.boundary.boundary import Boundary
from likely.distributions.gaussian.gaussian import Gaussian
from likely.plots.theme import INK, PALETTE, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {"none": "No boundary", "everywhere": "Equal everywhere"}
ROUNDS = (1.0, 2.0)  # standard deviations at which ellipses are drawn


def plot_decision_boundary(
    found: Boundary, ax: Axes | None = None, *, window: Any = None, names: Sequence[str] = ("first", "second")
) -> Axes:
    """Plot a decision boundary in two columns: regions, 1 and 2 σ ellipses, the curve.

    Parameters
    ----------
    found : Boundary
        The result of `decision_boundary`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    window : array-like (2, 2), optional
        Ranges ((x0, x1), (y0, y1)); by default the boundary's own `window()`.
    names : sequence of str, default ("first", "second")
        Names of the two classes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    decision_boundary : The boundary of two Gaussian classes.
    plot_decision_regions : Regions of any classifier.

    Examples
    --------
    >>> import likely as lk
    >>> found = lk.decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 0.0], [1.0, 4.0]))
    >>> plot_decision_boundary(found).get_title(loc="left")
    'Parabola'
    """
    if found.dim != 2:
        remedy = "take marginal([i, j]) of both distributions first"
        raise DomainError(sentence("plot_decision_boundary", "two columns can be plotted", f"{found.dim}", remedy))
    frame = found.window() if window is None else np.asarray(window, dtype=np.float64)
    with themed():
        ax = axes(ax)
        _sides(ax, found, frame)
        for distribution, color, name in zip((found.first, found.second), PALETTE, names, strict=False):
            _ellipses(ax, distribution, color, name)
        for line in found.points(400, frame):
            ax.plot(*line.T, color=INK, lw=1.6)
        if found.foci is not None:
            ax.plot(*found.foci.T, ls="", marker="x", color=INK, ms=5)
        ax.set(xlim=frame[0], ylim=frame[1], title=TITLES.get(found.kind, found.kind.capitalize()))
    return ax


def _sides(ax: Any, found: Boundary, frame: Any) -> None:
    """Pale decision regions."""
    x, y = (np.linspace(low, high, 240) for low, high in frame)
    grid = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)
    value = found.value(grid).reshape(len(y), len(x))
    for sign, color in ((1.0, PALETTE[0]), (-1.0, PALETTE[1])):
        if (sign * value > 0).any():
            ax.contourf(x, y, sign * value, levels=[0.0, np.inf], colors=[color], alpha=0.16)


def _ellipses(ax: Any, distribution: Gaussian, color: str, name: str) -> None:
    around = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    root = np.linalg.cholesky(distribution.covariance_matrix)
    for k, size in enumerate(ROUNDS):
        ax.plot(*(distribution.mean + size * circle @ root.T).T, color=color, lw=1.1, label=name if k == 0 else None)
    ax.plot(*distribution.mean, marker="o", color=color, ms=4)
