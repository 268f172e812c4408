"""A law of one column as a picture: a curve, or stems where only whole numbers can be."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.plots.theme import PALETTE, axes, themed

SHARE = 0.004  # of the probability that a window leaves out


def law_curve(law: Any, ax: Any = None, *, window: Any = None, label: str | None = None, colour: Any = None) -> Any:
    """Draw p(x) of a law of one column over `window`, or over all but 0.4 % of it. Returns the axes.

    >>> import likely as lk
    >>> law_curve(lk.Laplace(0.0, 1.0)).get_ylabel()
    'density'
    """
    if getattr(law, "dim", 1) != 1 or getattr(law, "members", None) is not None:
        remedy = "take member(k), and marginal([j])"
        raise DomainError(sentence("law_curve", "one law of one column can be drawn", type(law).__name__, remedy))
    low, high = _window(law) if window is None else (float(end) for end in window)
    whole = np.arange(np.ceil(low), np.floor(high) + 1)
    counted = len(whole) > 0 and not np.isfinite(law.log_prob(whole[:64, None] + 0.5)).any()
    x = whole if counted else np.linspace(low, high, 801)
    with themed():
        ax = axes(ax)
        top = ax.get_ylim()[1] if ax.lines else 0.0
        colour = PALETTE[len(ax.lines) % len(PALETTE)] if colour is None else colour
        p = _within_reason(np.exp(law.log_prob(x[:, None])))
        if counted:
            ax.vlines(x, 0.0, p, color=colour, lw=1.2, alpha=0.6)
            ax.plot(x, p, ls="", marker="o", ms=4, color=colour, label=label)
        else:
            ax.plot(x, p, color=colour, label=label)
        ax.set(ylabel="probability" if counted else "density", ylim=(0, max(top, 1.06 * float(p.max()))))
    return ax


def _window(law: Any) -> tuple[float, float]:
    if hasattr(law, "quantile"):
        low, high = (float(np.ravel(law.quantile(p))[0]) for p in (SHARE / 2, 1 - SHARE / 2))
    else:
        draws = np.asarray(law.sample(4000, np.random.default_rng(0)), dtype=np.float64)
        low, high = (float(q) for q in np.quantile(draws, (SHARE / 2, 1 - SHARE / 2)))
    room = 0.06 * (high - low)
    return low - room, high + room


def _within_reason(p: Array) -> Array:
    """Densities that grow beyond all bounds at an end are cut above the rest."""
    usual = 4 * np.quantile(p, 0.98)
    return np.minimum(p, usual) if usual > 0 else p
