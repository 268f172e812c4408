"""Plot of a transcript: words over time, with height equal to their confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Array, Rows, rows
from likely.language.transcript import Transcript
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = 3  # columns of frames up to which they are drawn as curves, else as an image


def plot_word_segments(transcript: Transcript, x: Rows | None = None, ax: Axes | None = None) -> Axes:
    """Plot a bar for each word over its frames, as high as its confidence.

    Parameters
    ----------
    transcript : Transcript
        The result of decoding connected words.
    x : array-like (T,) or (T, D), optional
        The frames, in a strip below, where a line marks the borders of words.
    ax : matplotlib.axes.Axes or pair of them, optional
        Axes for the words, or for words and frames; None makes a new figure. On axes of the words alone, frames lie
        behind, pale.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the words.

    Examples
    --------
    >>> heard = Transcript(("one", "two"), np.array([0, 9]), np.array([7, 20]), -31.5, np.array([0.99, 0.8]))
    >>> plot_word_segments(heard).get_title(loc="left")
    '2 words, log-probability -31.5'
    """
    frames = None if x is None else rows(x, None, "plot_word_segments")
    with themed():
        ax, below = _places(ax, frames is not None)
        _bars(ax, transcript)
        count = f"{len(transcript)} word{'s' * (len(transcript) != 1)}"
        ax.set_title(f"{count}, log-probability {transcript.log_prob:.6g}", loc="left")
        if frames is not None:
            _frames(_behind(ax) if below is None else below, frames, 0.25 if below is None else 1.0)
            ax.set_xlim(0, len(frames))
        if below is not None:
            ax.set_xlabel("")
            below.set_xlabel("frame")
            for border in {*transcript.begins.tolist(), *transcript.ends.tolist()}:
                below.axvline(border, color=PALETTE[1], linewidth=1.0)
    return ax


def _places(ax: Any, frames: bool) -> tuple[Any, Any]:
    """Axes for words and for frames; those that were given, or new ones."""
    if ax is not None:
        return (ax, None) if hasattr(ax, "bar") else (ax[0], ax[1] if frames else None)
    if not frames:
        return axes(None, figsize=(7.2, 2.4)), None
    with themed() as plt:
        above, below = plt.subplots(2, 1, figsize=(7.2, 3.6), sharex=True, layout="constrained")[1]
        return above, below


def _bars(ax: Any, transcript: Transcript) -> None:
    sure = np.ones(len(transcript)) if transcript.confidence is None else transcript.confidence
    widths = transcript.ends - transcript.begins
    colors = [PALETTE[i % 2] for i in range(len(widths))]
    ax.bar(transcript.begins, sure, widths, align="edge", color=colors, alpha=0.35, edgecolor=INK, linewidth=0.8)
    on_white = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.2}
    for word, middle in zip(transcript.words, transcript.begins + widths / 2, strict=True):
        ax.text(middle, 0.06, str(word), ha="center", va="bottom", color=INK, weight="bold", bbox=on_white)
    ax.set(ylim=(0.0, 1.05), xlabel="frame", ylabel="confidence" if transcript.confidence is not None else "")
    if transcript.confidence is None:
        ax.set_yticks([])


def _behind(ax: Any) -> Any:
    """Axes behind others, with a scale of their own."""
    back = ax.twinx()
    back.set_zorder(ax.get_zorder() - 1)
    back.spines["right"].set_visible(False)
    ax.patch.set_visible(False)
    return back


def _frames(ax: Any, frames: Array, alpha: float) -> None:
    """Curves if there are few columns, else an image."""
    T, D = frames.shape
    ax.set_yticks([])
    if D <= CURVES:
        ax.plot(np.arange(T) + 0.5, frames, color=SOFT if alpha < 1 else INK, linewidth=1.0)
        return
    ax.set_ylabel(f"{D} columns" if alpha == 1 else "")
    extent = (0, T, 0, D)
    ax.imshow(
        frames.T, origin="lower", aspect="auto", cmap="Grays", interpolation="nearest", extent=extent, alpha=alpha
    )
