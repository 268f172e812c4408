"""A picture of an utterance: the words where they were heard, as high as one may be sure of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.core.arrays import rows
from likely.models.transcript import Transcript
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed


def words(transcript: Transcript, x: Any = None, ax: Any = None) -> Any:
    """A bar for each word over its frames, as high as its confidence; x (T,) or (T, D) lies behind. Returns the axes.

    >>> heard = Transcript(("one", "two"), np.array([0, 9]), np.array([7, 20]), -31.5, np.array([0.99, 0.8]))
    >>> words(heard).get_title(loc="left")
    '2 words, log-probability -31.5'
    """
    sure = np.ones(len(transcript)) if transcript.confidence is None else transcript.confidence
    with themed():
        ax = axes(ax, figsize=(7.2, 2.6))
        widths = transcript.ends - transcript.begins
        colours = [PALETTE[i % 2] for i in range(len(widths))]
        ax.bar(transcript.begins, sure, widths, align="edge", color=colours, alpha=0.35, edgecolor=INK, linewidth=0.8)
        for word, middle in zip(transcript.words, transcript.begins + widths / 2, strict=True):
            ax.text(middle, 0.04, word, ha="center", va="bottom", color=INK)
        ax.set(ylim=(0.0, 1.05), xlabel="frame", ylabel="confidence" if transcript.confidence is not None else "")
        count = f"{len(transcript)} word{'s' * (len(transcript) != 1)}"
        ax.set_title(f"{count}, log-probability {transcript.log_prob:.6g}", loc="left")
        if x is not None:
            _behind(ax, rows(x, None, "words"))
    return ax


def _behind(ax: Any, frames: Any) -> None:
    """The frames on a scale of their own: curves if there are few columns, else an image."""
    back = ax.twinx()
    back.set(zorder=ax.get_zorder() - 1, yticks=[])
    back.spines["right"].set_visible(False)
    ax.patch.set_visible(False)
    if frames.shape[1] <= 3:
        back.plot(np.arange(len(frames)) + 0.5, frames, color=SOFT, linewidth=1.0)
    else:
        back.imshow(frames.T, origin="lower", aspect="auto", cmap="Greys", extent=(0, len(frames), 0, frames.shape[1]))
    ax.set_xlim(0, len(frames))
