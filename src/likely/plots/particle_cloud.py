"""Plots of particles over time and of regime probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.plots.state_sequences import state_colors, state_names
from likely.plots.theme import INK, PALETTE, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 60  # particles of a frame that are drawn
FRAMES = 400  # frames that are drawn


def plot_particles(
    result: Any, ax: Any = None, *, column: int = 0, observed: Any = None, truth: Any = None, name: str = "state"
) -> Any:
    """Plot the particles of each frame as dots, as many as their weights say, with the weighted mean.

    Parameters
    ----------
    result : ParticleRun
        The result of `ParticleFilter.run(y, keep=True)`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    column : int, default 0
        Entry of the state.
    observed : array-like (T,), optional
        Observations.
    truth : array-like (T,), optional
        The true state.
    name : str, default "state"
        Name of the entry.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import likely as lk
    >>> walk = lk.StateSpace(lk.Gaussian([0.0], 1.0), lambda x: lk.Gaussian(x, 1.0), lambda x: lk.Gaussian(x, 1.0))
    >>> plot_particles(lk.ParticleFilter(walk, 100, random_state=1).run([0.0, 1.0, 2.0])).get_xlabel()
    'frame'
    """
    if getattr(result, "particles", None) is None:
        raise DomainError(
            sentence("plot_particles", "the particles of a run are needed", "none were kept", "call run(y, keep=True)")
        )
    x, w = np.asarray(result.particles)[:, :, column], np.asarray(result.weights)
    T, n = x.shape
    frames = np.unique(np.linspace(0, T - 1, min(T, FRAMES)).astype(int))
    rng = np.random.default_rng(0)
    with themed():
        ax = axes(ax, figsize=(8.0, 3.4))
        many = min(n, DRAWN)
        drawn = np.stack([rng.choice(x[t], many, p=w[t] / w[t].sum()) for t in frames])
        at = np.repeat(frames[:, None], many, axis=1) + rng.uniform(-0.25, 0.25, drawn.shape)
        ax.scatter(at, drawn, s=4, color=PALETTE[0], alpha=0.22, linewidths=0, label="particles", rasterized=True)
        ax.plot(np.asarray(result.mean)[:, column], color=PALETTE[1], linewidth=1.6, label="mean")
        if truth is not None:
            ax.plot(np.asarray(truth).reshape(T, -1)[:, column], color=INK, linewidth=1.0, linestyle=":", label="true")
        if observed is not None:
            ax.plot(
                np.asarray(observed).reshape(T, -1)[:, 0], "x", color=INK, markersize=3, alpha=0.6, label="observed"
            )
        ax.set(xlabel="frame", ylabel=name, xlim=(-0.5, T - 0.5))
        title = f"{n:,} particles, {T:,} frames, log evidence {result.log_evidence:.5g}".replace("-", "−")
        ax.set_title(title, loc="left")
        for handle in ax.legend(loc="best", ncols=4, fontsize=8).legend_handles:
            handle.set_alpha(1.0)
    return ax


def plot_regimes(
    posterior: Any, y: ArrayLike | None = None, ax: Axes | None = None, *, names: Sequence[str] | None = None,
    truth: Any = None, times: ArrayLike | None = None,
) -> Axes:  # fmt: skip
    """Plot probabilities of regimes stacked over time, with the series above if it is given.

    Parameters
    ----------
    posterior : array-like (T, K) or result
        Probabilities, or the result of a run that has `regime_posterior`.
    y : array-like (T, d), optional
        The series.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; None makes a new figure.
    names : sequence of str, optional
        Names of the regimes.
    truth : array-like of int (T,), optional
        Numbers of the true regimes.
    times : array-like (T,), optional
        Times of the frames.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> plot_regimes(np.array([[0.9, 0.1], [0.2, 0.8]])).get_ylabel()
    'p(regime)'
    """
    shares = np.asarray(getattr(posterior, "regime_posterior", posterior), dtype=np.float64)
    if shares.ndim != 2 or not np.isfinite(shares).all():
        raise ShapeError(sentence("plot_regimes", "probabilities of regimes must have shape (T, K)", shares.shape))
    T, K = shares.shape
    t: Any = np.arange(T) if times is None else np.asarray(times)
    called = state_names(names, K, "plot_regimes")
    with themed():
        above, ax = _pair(ax, y)
        ax.stackplot(t, shares.T, colors=state_colors(K), alpha=0.6, labels=called, edgecolor="none")
        ax.set(xlabel="frame" if times is None else "time", ylabel="p(regime)", ylim=(0, 1), xlim=(t[0], t[-1]))
        if truth is not None:
            _truth(ax, t, np.asarray(truth), K)
        if above is not None:
            _signal(above, t, np.asarray(y, dtype=np.float64).reshape(T, -1))
        ax.legend(title="regime", loc="upper left", bbox_to_anchor=(1.0, 1.0), reverse=True)
    return ax


def _pair(ax: Any, y: Any) -> tuple[Any, Any]:
    if ax is not None:
        return (None, ax) if hasattr(ax, "plot") else (ax[0], ax[1])
    if y is None:
        return None, axes(None, figsize=(8.0, 2.6))
    with themed() as plt:
        return tuple(
            plt.subplots(2, 1, figsize=(8.0, 4.4), sharex=True, height_ratios=(1.2, 1), layout="constrained")[1]
        )


def _signal(ax: Any, t: Array, y: Array) -> None:
    for j in range(min(y.shape[1], len(PALETTE))):
        ax.plot(t, y[:, j], color=INK if y.shape[1] == 1 else PALETTE[j], linewidth=0.9, alpha=0.85)
    ax.set_ylabel("observed")


def _truth(ax: Any, t: Array, truth: Array, K: int) -> None:
    """A strip above in the colors of the true regimes."""
    colors = state_colors(K)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(truth)) + 1, [len(truth)]])
    for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        wide = t[min(b, len(t) - 1)] - t[a]
        ax.broken_barh([(t[a], wide)], (1.015, 0.045), color=colors[int(truth[a])], linewidth=0, clip_on=False)
