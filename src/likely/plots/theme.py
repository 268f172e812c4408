"""Matplotlib style of the plots: plain axes, few colors, readable in gray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INK = "#22313f"
PALETTE = ("#1f6f8b", "#d1603d", "#5c8a3a", "#8a5aa8", "#c79a2c", "#5b6770")
SOFT = "#9fb3bf"

_STYLE: Any = {
    "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlelocation": "left", "axes.titlesize": 11, "axes.titlecolor": INK, "font.size": 9.5,
    "legend.frameon": False, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "figure.dpi": 120,
    "savefig.bbox": "tight",
}  # fmt: skip


@contextmanager
def themed() -> Iterator[Any]:
    """Inside, new figures look like ours; yields matplotlib's pyplot."""
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE):
        yield plt


def axes(ax: Any = None, **size: Any) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    with themed() as plt:
        return plt.subplots(layout="constrained", **size)[1]
