"""Plot of a univariate distribution: a curve, or stems for a discrete one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.plots.theme import PALETTE, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARE = 0.004  # of the probability that a window leaves out


def plot_distribution(
    distribution: Any, ax: Axes | None = None, *, window: Any = None, label: str | None = None, color: Any = None
) -> Axes:
    """Plot p(x) of a univariate distribution.

    Parameters
    ----------
    distribution : distribution
        A univariate distribution, continuous or discrete.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    window : array-like (2,), optional
        Range of x; by default 99.6 % of the mass.
    label : str, optional
        Label of the legend.
    color : color, optional
        Color of the curve.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    DensityDisplay : Densities of one or more columns, with their data.

    Examples
    --------
    >>> import likely as lk
    >>> plot_distribution(lk.Laplace(0.0, 1.0)).get_ylabel()
    'density'
    """
    if getattr(distribution, "dim", 1) != 1 or getattr(distribution, "members", None) is not None:
        remedy = "take member(k), and marginal([j])"
        raise DomainError(
            sentence(
                "plot_distribution",
                "a single univariate distribution can be plotted",
                type(distribution).__name__,
                remedy,
            )
        )
    low, high = _window(distribution) if window is None else (float(end) for end in window)
    whole = np.arange(np.ceil(low), np.floor(high) + 1)
    counted = len(whole) > 0 and not np.isfinite(distribution.log_prob(whole[:64, None] + 0.5)).any()
    x = whole if counted else np.linspace(low, high, 801)
    with themed():
        ax = axes(ax)
        top = ax.get_ylim()[1] if ax.lines else 0.0
        color = PALETTE[len(ax.lines) % len(PALETTE)] if color is None else color
        p = _within_reason(np.exp(distribution.log_prob(x[:, None])))
        if counted:
            ax.vlines(x, 0.0, p, color=color, lw=1.2, alpha=0.6)
            ax.plot(x, p, ls="", marker="o", ms=4, color=color, label=label)
        else:
            ax.plot(x, p, color=color, label=label)
        ax.set(ylabel="probability" if counted else "density", ylim=(0, max(top, 1.06 * float(p.max()))))
    return ax


def _window(distribution: Any) -> tuple[float, float]:
    if hasattr(distribution, "quantile"):
        low, high = (float(np.ravel(distribution.quantile(p))[0]) for p in (SHARE / 2, 1 - SHARE / 2))
    else:
        draws = np.asarray(distribution.sample(4000, np.random.default_rng(0)), dtype=np.float64)
        low, high = (float(q) for q in np.quantile(draws, (SHARE / 2, 1 - SHARE / 2)))
    room = 0.06 * (high - low)
    return low - room, high + room


def _within_reason(p: Array) -> Array:
    """Densities that grow beyond all bounds at an end are cut above the rest."""
    usual = 4 * np.quantile(p, 0.98)
    return np.minimum(p, usual) if usual > 0 else p
