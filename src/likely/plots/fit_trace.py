"""Plots of a fit: objective by iteration, and criteria by number of components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.fit_report import FitReport
from likely.plots.theme import INK, PALETTE, SOFT, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

def plot_convergence(report: FitReport, ax: Axes | None = None, *, color: str = PALETTE[0]) -> Axes:
    """Plot the objective of a fit per iteration, in nats per row.

    Other initializations are marked at their final values. Held-out rows, if any, have their own curve.

    Parameters
    ----------
    report : FitReport
        The attribute `report_` of a fitted estimator.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    color : color
        Color of the curve.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk
    >>> fitted = lk.KMeans(2, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]])
    >>> plot_convergence(fitted.report_).get_ylabel()
    'objective, nats per row'
    """
    ax, weight = axes(ax), max(float(report.stats.total_weight), 1e-300)
    heights = np.asarray(report.trace) / weight
    finite = np.isfinite(heights)
    passes = np.arange(len(heights))
    ax.plot(
        passes[finite], heights[finite], color=color, marker="o" if len(heights) < 40 else None, ms=3, label="objective"
    )
    if report.held_out:
        ax.plot(np.arange(len(report.held_out)), report.held_out, color=PALETTE[1], ms=3, label="held-out rows")
    others = [run for run in report.runs if run.objective != report.objective]
    if others:
        at = [run.iterations for run in others], [run.objective / weight for run in others]
        ax.plot(*at, ls="", marker="x", color=SOFT, label=f"{len(others)} other initializations (final value)")
    how = "converged" if report.converged else "stopped early" if report.stopped_early else "NOT converged"
    ax.set(xlabel="refits", ylabel="objective, nats per row", title=f"{how}: {report.reason}")
    ax.title.set_color(INK if report.converged or report.stopped_early else PALETTE[3])
    if report.held_out or others:
        ax.legend(frameon=False, loc="center right")
    return ax


def plot_component_criteria(choice: Any, ax: Axes | None = None) -> Axes:
    """Plot BIC and held-out likelihood against the number of components, with what each would choose.

    Twice the message length, where a sparse prior came by, stands beside BIC: it has the same units.

    Parameters
    ----------
    choice : ComponentChoice
        The result of `choose_components`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 1))
    >>> choice = lk.choose_components(lk.MixtureDensity(), X, (1, 2))
    >>> plot_component_criteria(choice).get_ylabel()
    'BIC (lower is better)'
    """
    ax = axes(ax)
    if np.isfinite(choice.bic).any():
        ax.plot(choice.numbers, choice.bic, color=PALETTE[0], marker="o", ms=4)
        ax.set_ylabel("BIC (lower is better)", color=PALETTE[0])
    came_by = np.isfinite(choice.message_length)
    if came_by.any():
        at = np.asarray(choice.numbers)[came_by]
        ax.plot(
            at, 2 * choice.message_length[came_by], color=SOFT, ls=":", marker="^", ms=4, label="2 × message length"
        )
        ax.legend(frameon=False, loc="center right")
    if np.isfinite(choice.held_out).any():
        other = ax.twinx() if np.isfinite(choice.bic).any() else ax
        finite = np.isfinite(choice.held_out)
        at = np.asarray(choice.numbers)[finite]
        other.errorbar(at, choice.held_out[finite], choice.held_out_error[finite], color=PALETTE[1], marker="s", ms=4)
        other.set_ylabel("held-out, nats per row (higher is better)", color=PALETTE[1])
    for i, k in enumerate(choice.best.values()):
        ax.axvline(k + 0.06 * (i - 1), color=[PALETTE[0], PALETTE[1], SOFT][i % 3], lw=1, ls=["-", "--", ":"][i % 3])
    said = ", ".join(f"{k} by {'BIC' if way == 'bic' else way}" for way, k in choice.best.items())
    ax.set_xlabel(f"components (chosen: {said})")
    ax.set_xticks(choice.numbers)
    return ax
