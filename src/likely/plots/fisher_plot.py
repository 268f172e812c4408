"""Plot of rows along the first two linear discriminant directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Rows, Targets
from likely.core.errors import DomainError, sentence
from likely.plots.theme import INK, PALETTE, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 300  # points of the map of decisions, each way


def plot_fisher_projection(fisher: Any, X: Rows, y: Targets, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Plot rows along the first two directions of Fisher's discriminant.

    Circles hold 90 % of a Gaussian class with identity covariance; the background has the color of the decided
    class. With one direction only, histograms are drawn.

    Parameters
    ----------
    fisher : FisherDiscriminant
        A fitted discriminant.
    X : array-like (n, d)
        Rows.
    y : array-like (n,)
        Labels.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    legend : bool, default True
        Draw a legend.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3
    >>> X = rng.normal(size=(60, 4)) + 3 * np.eye(4)[y]
    >>> plot_fisher_projection(lk.FisherDiscriminant().fit(X, y), X, y).get_xlabel().startswith("direction 1")
    True
    """
    if not hasattr(fisher, "axes_"):
        raise DomainError(
            sentence("plot_fisher_projection", "a fitted FisherDiscriminant is needed", type(fisher).__name__)
        )
    z, labels = np.asarray(fisher.transform(X), dtype=np.float64), np.asarray(y)
    colors = [PALETTE[k % len(PALETTE)] for k in range(len(fisher.classes_))]
    with themed():
        ax = axes(ax, figsize=(6.4, 4.8) if z.shape[1] > 1 else (6.4, 3.2))
        (_plane if z.shape[1] > 1 else _line)(ax, fisher, z, labels, colors)
        if legend:
            ax.legend(title="class")
    return ax


def _plane(ax: Any, fisher: Any, z: Any, labels: Any, colors: list[str]) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Circle

    centers, radius = fisher.axes_.centroids[:, :2], np.sqrt(-2 * np.log(0.1))
    ends = np.concatenate([z[:, :2], centers - radius, centers + radius])
    low, high = ends.min(axis=0) - 0.4, ends.max(axis=0) + 0.4
    grid = np.meshgrid(*(np.linspace(a, b, STEPS) for a, b in zip(low, high, strict=True)))
    at = np.stack([g.ravel() for g in grid], axis=1)
    with np.errstate(divide="ignore"):
        score = np.log(fisher.class_prior_) + at @ centers.T - 0.5 * (centers**2).sum(axis=1)
    best = score.argmax(axis=1).reshape(grid[0].shape)
    ax.imshow(best, extent=(low[0], high[0], low[1], high[1]), origin="lower", aspect="auto", alpha=0.13, zorder=0,
              cmap=ListedColormap(colors), vmin=-0.5, vmax=len(colors) - 0.5, interpolation="nearest")  # fmt: skip
    for k, (name, color) in enumerate(zip(fisher.classes_, colors, strict=True)):
        mine = labels == name
        ax.scatter(z[mine, 0], z[mine, 1], s=13, color=color, alpha=0.75, linewidths=0, label=str(name))
        ax.add_patch(Circle(tuple(centers[k]), radius, fill=False, color=INK, linewidth=0.8, alpha=0.7))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set(
        xlabel=f"direction 1 (λ = {_told(fisher.ratios_[0])})", ylabel=f"direction 2 (λ = {_told(fisher.ratios_[1])})"
    )


def _line(ax: Any, fisher: Any, z: Any, labels: Any, colors: list[str]) -> None:
    edges = np.histogram_bin_edges(z[:, 0], bins=min(40, max(8, len(z) // 12)))
    for name, color in zip(fisher.classes_, colors, strict=True):
        ax.hist(z[labels == name, 0], edges, color=color, alpha=0.6, label=str(name))
    ax.set(xlabel=f"direction 1 (λ = {_told(fisher.ratios_[0])})", ylabel="rows")


def _told(ratio: float) -> str:
    return "∞" if np.isinf(ratio) else f"{ratio:.3g}"
