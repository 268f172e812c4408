"""Map of the decision regions in a plane, with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.report.axes import Frame, axes, drawing, ticks
from likely.report.markers import OTHER, color, scattered
from likely.report.markup import Markup, join, short, tag
from likely.report.number_format import clipped

MOST_POINTS = 1500
MOST_CELLS = 320  # a side; finer than a screen shows at this size
MOST_RECTANGLES = 4000  # some 100 kB
SIZE = (620.0, 480.0)


def plane_map(
    points: Any, truth: Any, decided: Any, marks: Sequence[int], *,
    xs: Any = None, ys: Any = None, region: Any = None, labels: tuple[str, str] = ("", ""), names: Sequence[str] = (),
) -> Markup:  # fmt: skip
    """Rows as symbols of their true class, regions colored by the decision there, errors ringed.

    `marks` (C,) gives each class its mark, `names` a label at the middle of its points; points beyond
    `MOST_POINTS` are left out evenly.
    """
    points, truth, decided = subsample(np.asarray(points, dtype=np.float64), np.asarray(truth), np.asarray(decided))
    frame = Frame.of(_span(points[:, 0], xs), _span(points[:, 1], ys), width=SIZE[0], height=SIZE[1])
    points = np.clip(points, [frame.x.low, frame.y.low], [frame.x.high, frame.y.high])  # beyond the ground: on its edge
    grid = axes(
        frame, clipped(labels[0], 80), clipped(labels[1], 60), *(ticks(s.low, s.high) for s in (frame.x, frame.y))
    )
    back = regions(frame, region, marks) if region is not None else ""
    named = (decided >= 0) & (decided < max(len(marks), 1))
    rings = [_rings(frame, points[named & (truth != decided)], "ring"), _rings(frame, points[~named], "ring refused")]
    return drawing(
        *SIZE, "Map of the decisions in the plane that separates the classes best",
        _hatching(), back, grid, *rings, *_symbols(frame, points, truth, marks),
        *_labels(frame, points, truth, names), class_="chart map",
    )  # fmt: skip


def subsample(points: Array, truth: Any, decided: Any) -> tuple[Array, Any, Any]:
    """At most `MOST_POINTS` rows, evenly taken, of those that can be drawn."""
    keep = np.flatnonzero(np.isfinite(points).all(axis=1))
    if len(keep) > MOST_POINTS:
        keep = keep[np.linspace(0, len(keep) - 1, MOST_POINTS).astype(int)]
    return points[keep], truth[keep], decided[keep]


def _span(values: Array, cells: Any) -> tuple[float, float]:
    """What an axis shows: the cells where there are some, else the points and a little room."""
    if cells is not None and len(cells) > 1:
        half = (cells[1] - cells[0]) / 2
        return float(cells[0] - half), float(cells[-1] + half)
    if not len(values):
        return 0.0, 1.0
    room = 0.04 * float(np.ptp(values))
    return float(values.min()) - room, float(values.max()) + room


def regions(frame: Frame, region: Any, marks: Sequence[int]) -> Markup:
    """One path a decision, made of the largest rectangles that rows of cells merge into."""
    cells = simplified(np.asarray(region))
    x = np.round(np.linspace(frame.x.start, frame.x.end, cells.shape[1] + 1), 1)
    y = np.round(np.linspace(frame.y.start, frame.y.end, cells.shape[0] + 1), 1)
    paths: dict[str, list[str]] = {}
    for value, top, bottom, left, right in rectangles(cells):
        fill = color(marks[value]) if 0 <= value < len(marks) else "url(#refused)"
        side = f"M{short(x[left])} {short(y[top])}H{short(x[right])}V{short(y[bottom])}H{short(x[left])}z"
        paths.setdefault(fill, []).append(side)
    drawn = (tag("path", d="".join(parts), fill=fill) for fill, parts in paths.items())
    return join([tag("g", *drawn, class_="regions"), tag("path", d=borders(cells, x, y), class_="border")])


def borders(cells: Any, x: Any, y: Any) -> str:
    """Lines between cells of unlike value, as a path: two decisions may wear one color.

    >>> borders(np.array([[0, 1], [0, 1]]), [0.0, 5.0, 10.0], [0.0, 5.0, 10.0])
    'M5 0V10'
    """
    across = np.diff(cells, axis=0) != 0  # (ny − 1, nx)
    upright = (np.diff(cells, axis=1) != 0).T  # (nx − 1, ny)
    lines = [f"M{short(x[a])} {short(y[i + 1])}H{short(x[b])}" for i, row in enumerate(across) for a, b in _true(row)]
    lines += [f"M{short(x[i + 1])} {short(y[a])}V{short(y[b])}" for i, row in enumerate(upright) for a, b in _true(row)]
    return "".join(lines)


def _true(row: Any) -> Iterator[tuple[int, int]]:
    """Where runs of true entries begin and end."""
    return ((left, right) for value, left, right in _runs(row) if value)


def simplified(cells: Any) -> Any:
    """Every second cell, as often as it takes for the ground to be drawn with `MOST_RECTANGLES`."""
    while max(cells.shape) > MOST_CELLS or sum(1 for _ in rectangles(cells)) > MOST_RECTANGLES:
        cells = cells[::2, ::2]
    return cells


def rectangles(cells: Any) -> Iterator[tuple[int, int, int, int, int]]:
    """Cells of equal value merged: along rows first, then runs of equal ends over rows.

    Yields (value, first row, end row, first column, end column).

    >>> list(rectangles(np.array([[0, 0, 1], [0, 0, 1]])))
    [(0, 0, 2, 0, 2), (1, 0, 2, 2, 3)]
    """
    cells = np.asarray(cells)
    above: dict[tuple[int, int, int], int] = {}  # runs that still grow: where each began
    for i in range(len(cells) + 1):
        here = set(_runs(cells[i])) if i < len(cells) else set()
        for run in sorted(above.keys() - here):
            yield run[0], above.pop(run), i, run[1], run[2]
        for run in sorted(here - above.keys()):
            above[run] = i


def _runs(row: Any) -> Iterator[tuple[int, int, int]]:
    edges = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1, [len(row)]])
    for left, right in pairwise(edges):
        yield int(row[left]), int(left), int(right)


def _symbols(frame: Frame, points: Array, truth: Any, marks: Sequence[int]) -> Iterator[Markup]:
    """Symbols, a path for each mark; those without a mark of their own lie below."""
    marked = np.asarray(marks, dtype=int)[truth] if len(marks) else truth
    for k in sorted(set(marked.tolist()), key=lambda k: (k != OTHER, k)):
        mine = points[marked == k]
        yield scattered(frame.x(mine[:, 0]).tolist(), frame.y(mine[:, 1]).tolist(), k)


def _labels(frame: Frame, points: Array, truth: Any, names: Sequence[str]) -> Iterator[Markup]:
    """Each class's name at the median of its points."""
    for c, name in enumerate(names):
        if (truth == c).any():
            x, y = np.median(points[truth == c], axis=0)
            at = {"x": float(frame.x(x)), "y": float(frame.y(y)) + 4}
            yield tag("text", clipped(name, 16), **at, class_="callout", text_anchor="middle")


def _rings(frame: Frame, points: Array, class_: str) -> Markup:
    ring = "m-5.2 0a5.2 5.2 0 1 0 10.4 0a5.2 5.2 0 1 0-10.4 0"
    at = zip(frame.x(points[:, 0]).tolist(), frame.y(points[:, 1]).tolist(), strict=True)
    return tag("path", d="".join(f"M{short(a)} {short(b)}{ring}" for a, b in at), class_=class_)


def _hatching() -> Markup:
    stripe = tag("path", d="M0 7L7 0", class_="hatch")
    return tag("defs", tag("pattern", stripe, id="refused", width=7.0, height=7.0, patternunits="userSpaceOnUse"))


def ring_legend(refusals: bool) -> list[Markup]:
    """What the rings mean, as further items of a legend."""
    kinds = [("ring", "misclassified"), *([("ring refused", "rejected")] if refusals else [])]
    return [tag("li", _ring_swatch(class_), words) for class_, words in kinds]


def _ring_swatch(class_: str) -> Markup:
    ring = tag("circle", cx=6.0, cy=6.0, r=5.0, class_=class_)
    return tag("svg", ring, viewbox="0 0 12 12", class_="swatch", aria_hidden="true")
