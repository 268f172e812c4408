"""Curves for clusterings: criteria by number of clusters, EM objective, posterior probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from likely.report.axes import Frame, axes, drawing, room_for, ticks, whole_percent
from likely.report.markup import Markup, join, tag
from likely.report.number_format import number

BINS = 20


def number_curve(
    numbers: Sequence[int], values: Any, chosen: int, what: str, *, errors: Any = None, left: int | None = None
) -> Markup:
    """A value for each number of clusters, the best ringed; `left` is what a sparse prior left, marked below.

    >>> number_curve([1, 2, 3], [9.0, 2.0, 4.0], 2, "BIC")[:4]
    '<svg'
    """
    values, reach = _finite(values), np.zeros(len(numbers)) if errors is None else np.nan_to_num(_finite(errors))
    known = np.isfinite(values)
    low, high = float(np.min((values - reach)[known])), float(np.max((values + reach)[known]))
    marks = ticks(low, high)
    last = max([*numbers, left or 0])
    frame = Frame.of(
        (0.5, last + 0.5), _padded(low, high), margins=(18, 22, 46, room_for([number(t, 4) for t in marks]))
    )
    grid = axes(frame, "clusters", what, whole(1, last), marks, y_words=lambda t: number(t, 4))
    at = np.asarray(numbers, dtype=np.float64)[known]
    drawn = [frame.line(at, values[known], class_="curve", style="--c:var(--c0)")] if len(at) > 1 else []
    drawn += _whiskers(frame, at, (values - reach)[known], (values + reach)[known]) if errors is not None else []
    drawn += [_dot(frame, x, y, "here" if x == chosen else "dot") for x, y in zip(at, values[known], strict=True)]
    prior = _prior_mark(frame, left) if left is not None else ""
    return drawing(460, 360, f"{what} of each number of clusters; the best is {chosen}", grid, prior, *drawn)


def whole(first: int, last: int) -> list[float]:
    """Whole numbers to mark on an axis, not more than a dozen.

    >>> whole(1, 3)
    [1.0, 2.0, 3.0]
    """
    step = max(1, -(-(last - first + 1) // 12))
    return [float(k) for k in range(first, last + 1, step)]


def _finite(values: Any) -> Any:
    a = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(a), a, np.nan)


def _padded(low: float, high: float) -> tuple[float, float]:
    room = 0.06 * (high - low)
    return low - room, high + room


def _dot(frame: Frame, x: float, y: float, class_: str) -> Markup:
    return tag("circle", cx=float(frame.x(x)), cy=float(frame.y(y)), r=6.0 if class_ == "here" else 4.0, class_=class_)


def _whiskers(frame: Frame, x: Any, low: Any, high: Any) -> list[Markup]:
    return [
        tag("line", x1=float(a), x2=float(a), y1=float(b), y2=float(c), class_="whisker")
        for a, b, c in zip(frame.x(x), frame.y(low), frame.y(high), strict=True)
    ]


def _prior_mark(frame: Frame, left: int) -> Markup:
    x = float(frame.x(left))
    right = x > (frame.x.start + frame.x.end) / 2
    words = tag("text", f"a sparse prior leaves {left}", x=x + (-6 if right else 6), y=frame.y.end + 12,
                text_anchor="end" if right else "start")  # fmt: skip
    return join([tag("line", x1=x, x2=x, y1=frame.y.end, y2=frame.y.start, class_="ideal"), words])


def trace_curve(trace: Sequence[float]) -> Markup:
    """The objective after each EM iteration, in nats per row (monotone)."""
    values = np.asarray(trace, dtype=np.float64)
    marks = ticks(float(values.min()), float(values.max()))
    words: Callable[[float], str] = lambda t: number(t, 5)  # noqa: E731
    frame = Frame.of((0, max(len(values) - 1, 1)), _padded(float(values.min()), float(values.max())),
                     margins=(14, 22, 46, room_for([words(t) for t in marks])))  # fmt: skip
    steps = ticks(0, max(len(values) - 1, 1))
    grid = axes(frame, "EM iterations", "objective, nats per row", steps, marks, y_words=words)
    line = frame.line(np.arange(len(values)), values, class_="curve", style="--c:var(--c0)")
    return drawing(
        460, 360, f"The objective rose to {number(float(values[-1]), 5)} in {len(values) - 1} iterations", grid, line
    )


def certainty_bars(certainty: Any, weight: Any, fewest: float) -> Markup:
    """A histogram of the probability of each row's own cluster; it cannot be below one in the number of clusters."""
    low = np.floor(20 * fewest) / 20
    counts, edges = np.histogram(
        np.asarray(certainty), bins=np.linspace(low, 1.0, BINS + 1), weights=np.asarray(weight)
    )
    share = counts / max(float(counts.sum()), 1e-300)
    top = max(float(share.max()), 1e-9)
    marks = ticks(0, top)
    frame = Frame.of((low, 1), (0, 1.05 * top), margins=(14, 22, 46, room_for([whole_percent(t) for t in marks])))
    grid = axes(frame, "probability of the most probable cluster", "rows", ticks(low, 1), marks, x_words=whole_percent,
                y_words=whole_percent)  # fmt: skip
    left, right, tops = frame.x(edges[:-1]), frame.x(edges[1:]), frame.y(share)
    bars = [
        tag("rect", x=float(a) + 0.5, width=float(b - a) - 1, y=float(t), height=float(frame.y.start - t))
        for a, b, t in zip(left, right, tops, strict=True)
    ]
    return drawing(
        460, 360, "Posterior probability of the most probable cluster, over rows", grid, tag("g", *bars, class_="bars")
    )
