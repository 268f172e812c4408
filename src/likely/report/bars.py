"""Bars, error bars and small histograms on a common scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.report.axes import Frame, Scale, drawing, roomy, ticks
from likely.report.markers import color
from likely.report.markup import Markup, join, short, tag
from likely.report.number_format import clipped, number

CELL = (170.0, 26.0)  # a whisker in a table's cell, width and height


def whisker_scale(lows: Sequence[float], highs: Sequence[float]) -> Scale:
    """Common scale of a column of error bars; a model far worse than the rest runs off it.

    >>> whisker_scale([-0.1, 0.2], [0.2, 0.3]).high
    0.3
    """
    low, high = min([0.0, *lows]), max([*highs], default=1.0)
    usual = float(np.median(highs)) if len(highs) else 1.0
    most = low + 4 * (usual - low)
    return Scale(*roomy(low, most if 0 < usual - low and high > most else high), 12, CELL[0] - 8)


def whisker(value: float, low: float, high: float, scale: Scale, label: str, shaded: bool = False) -> Markup:
    """A difference with its interval beside a line at zero, optionally on a shaded background."""
    width, height = CELL
    at, start, end = (float(v) for v in np.clip(scale([value, low, high]), 2, width - 2))
    off = scale(value) > width
    mark = (
        tag("path", d=f"M{short(width - 9)} 8l6 5l-6 5", class_="beyond")
        if off
        else tag("circle", cx=at, cy=height / 2, r=4.0, class_="dot")
    )
    line = "" if off else tag("line", x1=start, x2=end, y1=height / 2, y2=height / 2, class_="whisker")
    ground = tag("rect", x=0.0, width=width, y=0.0, height=height, class_="band") if shaded else ""
    zero = tag("line", x1=float(scale(0.0)), x2=float(scale(0.0)), y1=0.0, y2=height, class_="zero")
    return drawing(width, height, label, ground, zero, line, mark, class_="cell")


def whisker_axis(scale: Scale) -> Markup:
    """The scale of a column of error bars, for the foot of the table."""
    marks: list[object] = [tag("line", x1=2.0, x2=CELL[0] - 2, y1=0.5, y2=0.5, class_="tick")]
    for t in ticks(scale.low, scale.high, 3):
        x = float(scale(t))
        if 10 <= x <= CELL[0] - 10:
            marks.append(tag("line", x1=x, x2=x, y1=0.0, y2=5.0, class_="tick"))
            marks.append(tag("text", number(t), x=x, y=18.0, text_anchor="middle"))
    return drawing(CELL[0], 22.0, "scale of the column", *marks, class_="cell")


def bars(names: Sequence[str], values: Sequence[float], errors: Sequence[float | None], what: str) -> Markup:
    """Horizontal bars with whiskers of two standard errors, longest first as given."""
    reach = [2 * e if e is not None and np.isfinite(e) else 0.0 for e in errors]
    low = min([0.0, *(v - r for v, r in zip(values, reach, strict=True))])
    high = max([0.0, *(v + r for v, r in zip(values, reach, strict=True))])
    height = 26.0 * len(names) + 50
    frame = Frame.of((low, high), (0, len(names)), height=height, margins=(6, 16, 44, 158))
    grid = _bar_axis(frame, what, low, high)
    drawn = (_bar(frame, i, *row) for i, row in enumerate(zip(names, values, reach, strict=True)))
    words = "; ".join(f"{clipped(n, 60)}: {number(v)}" for n, v in zip(names, values, strict=True))
    return drawing(460, height, f"{what}. {words}", grid, *drawn)


def _bar_axis(frame: Frame, what: str, low: float, high: float) -> Markup:
    bottom, top = frame.y.start, frame.y.end
    marks: list[object] = [tag("text", what, x=(frame.x.start + frame.x.end) / 2, y=bottom + 37, class_="axis",
                               text_anchor="middle")]  # fmt: skip
    for t in ticks(low, high, 4):
        x = float(frame.x(t))
        marks.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="zero" if t == 0 else "grid"))
        marks.append(tag("text", number(t), x=x, y=bottom + 17, text_anchor="middle"))
    return tag("g", *marks, class_="axes")


def _bar(frame: Frame, i: int, name: str, value: float, reach: float) -> Markup:
    center = frame.y.end + 26 * i + 13
    zero, end, low, high = (float(v) for v in frame.x([0, value, value - reach, value + reach]))
    parts = [
        tag(
            "text",
            tag("title", clipped(name, 200)),
            clipped(name, 21),
            x=frame.x.start - 10,
            y=center + 4,
            text_anchor="end",
        ),
        tag("rect", x=min(zero, end), width=max(abs(end - zero), 0.8), y=center - 8, height=16.0, rx=2.0),
    ]
    if reach:
        parts.append(tag("line", x1=low, x2=high, y1=center, y2=center, class_="whisker"))
    return tag("g", *parts, class_="bars")


def ridges(counts: Any, marks: Sequence[int], label: str, apart: bool = False) -> Markup:
    """Small histograms of one column, one per class, on a common axis.

    counts (C, bins); each row is drawn to its own height, so that shapes compare and not sizes. Levels of a
    category stand apart, bins of a number touch.
    """
    table = np.nan_to_num(np.atleast_2d(np.asarray(counts, dtype=np.float64)))
    step, width = 15.0, 150.0
    floors = step * np.arange(1, len(table) + 1) - 1
    rows = (_ridge(row, k, floor, width, apart) for row, k, floor in zip(table, marks, floors.tolist(), strict=True))
    return drawing(width, step * len(table) + 1, label, *rows, class_="spark")


def _ridge(row: Array, k: int, floor: float, width: float, apart: bool) -> Markup:
    """One histogram as one path of steps."""
    base = tag("line", x1=0.0, x2=width, y1=floor, y2=floor, class_="grid")
    most = float(row.max(initial=0.0))
    if not most > 0:
        return base
    tops = (floor - 13.0 * row / most).tolist()
    edges = np.linspace(0.0, width, len(row) + 1).tolist()
    gap = min(2.0, 0.25 * edges[1]) if apart else 0.0
    d = "".join(_step(*sides, top, floor, gap) for sides, top in zip(pairwise(edges), tops, strict=True))
    return join([base, tag("path", d=f"M0 {short(floor)}{d}V{short(floor)}z", style=f"--c:{color(k)}", class_="ridge")])


def _step(left: float, right: float, top: float, floor: float, gap: float) -> str:
    back = f"V{short(floor)}H{short(right)}" if gap else ""
    return f"V{short(top)}H{short(right - gap)}{back}"
