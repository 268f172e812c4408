"""Reliability diagram, ROC, DET and risk-coverage curves as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from likely.report.axes import Frame, axes, deviates, drawing, room_for, ticks, whole_percent
from likely.report.markers import color, dash
from likely.report.markup import Markup, join, tag
from likely.report.number_format import number, percent

DET_TICKS = (0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8)


class ROCCurve(NamedTuple):
    """ROC curve of one class: false-alarm and detection rates."""

    k: int  # whose mark it wears
    false_alarm: Any  # (m,)
    detection: Any  # (m,)


def reliability(
    confidence: Any, frequency: Any, low: Any, high: Any, weight: Any, edges: Any = None, unit: str = "row"
) -> Markup:
    """How often the most probable class was the true one, by its probability; below, how many rows had it.

    >>> reliability([0.9], [0.8], [0.7], [0.9], [10.0])[:4]
    '<svg'
    """
    confidence, frequency, low, high, weight = _nonempty_bins(confidence, frequency, low, high, weight)
    frame = Frame.of((0, 1), (0, 1), height=330)
    tops = Frame.of((0, 1), (0, float(max(weight.max(initial=0.0), 1e-300))), height=420, margins=(298, 22, 46, 66))
    grid = axes(frame, "", "observed frequency", ticks(0, 1), ticks(0, 1), x_words=lambda _: "",
                y_words=whole_percent)  # fmt: skip
    below = axes(
        tops, "predicted probability of the most probable class", f"{unit}s", ticks(0, 1), [], x_words=whole_percent
    )
    ideal = frame.line([0, 1], [0, 1], class_="ideal")
    return drawing(
        460, 420, _reliability_words(confidence, frequency),
        grid, ideal, _intervals(frame, confidence, low, high), _dots(frame, confidence, frequency),
        below, _columns(tops, confidence, weight, edges),
    )  # fmt: skip


def _nonempty_bins(confidence: Any, *rest: Any) -> list[Any]:
    """Bins that hold something."""
    parts = [np.asarray(part, dtype=np.float64) for part in (confidence, *rest)]
    keep = (parts[-1] > 0) & np.isfinite(parts[0]) & np.isfinite(parts[1])
    return [part[keep] for part in parts]


def _reliability_words(confidence: Any, frequency: Any) -> str:
    pairs = (f"predicted {percent(c)}: observed {percent(f)}" for c, f in zip(confidence, frequency, strict=True))
    return "Reliability diagram. " + "; ".join(pairs)


def _intervals(frame: Frame, x: Any, low: Any, high: Any) -> Markup:
    at, lows, highs = frame.x(x), frame.y(low), frame.y(high)
    return join(
        tag("line", x1=float(a), x2=float(a), y1=float(b), y2=float(c), class_="whisker")
        for a, b, c in zip(at, lows, highs, strict=True)
        if np.isfinite([b, c]).all()
    )


def _dots(frame: Frame, x: Any, y: Any) -> Markup:
    return join(
        tag("circle", cx=float(a), cy=float(b), r=4.5, class_="dot")
        for a, b in zip(frame.x(x), frame.y(y), strict=True)
    )


def _columns(frame: Frame, center: Any, weight: Any, edges: Any) -> Markup:
    """Bars from the floor; without edges each is a little narrower than a tenth of the axis, around its mean."""
    if edges is None:
        left, right = np.clip(np.asarray(center) - 0.04, 0, 1), np.clip(np.asarray(center) + 0.04, 0, 1)
    else:
        bins = np.clip(np.searchsorted(edges, center, side="right") - 1, 0, len(edges) - 2)
        left, right = np.asarray(edges)[bins], np.asarray(edges)[bins + 1]
    x0, x1, top = frame.x(left), frame.x(right), frame.y(weight)
    bars = (
        tag("rect", x=float(a) + 0.5, width=max(float(b - a) - 1, 1.0), y=float(t), height=float(frame.y.start - t))
        for a, b, t in zip(x0, x1, top, strict=True)
    )
    return tag("g", *bars, class_="bars")


def roc(curves: Sequence[ROCCurve]) -> Markup:
    """Detections against false alarms: the nearer to the upper left corner, the better."""
    frame = Frame.of((0, 1), (0, 1))
    chance = frame.line([0, 1], [0, 1], class_="ideal")
    grid = axes(frame, "false alarms", "detections", ticks(0, 1), ticks(0, 1), x_words=whole_percent,
                y_words=whole_percent)  # fmt: skip
    lines = (_trade_off(frame, c.k, c.false_alarm, c.detection) for c in curves)
    return drawing(460, 360, "Detections against false alarms, one curve per class", grid, chance, *lines)


def det(curves: Sequence[ROCCurve]) -> Markup:
    """Misses against false alarms on normal-deviate axes: Gaussian scores give straight lines."""
    low = _least_share(curves)
    shown = [t for t in DET_TICKS if t >= low]
    frame = Frame.of((low, 0.8), (low, 0.8), warp=deviates, margins=(14, 22, 46, 72))
    grid = axes(frame, "false alarms", "misses", shown, shown, x_words=whole_percent, y_words=whole_percent)
    equal = frame.line([low, 0.8], [low, 0.8], class_="ideal")
    parts = [(c.k, *_inside(c, low, 0.8)) for c in curves]
    lines = [_trade_off(frame, *part) for part in parts if len(part[1])] or [_nothing(frame)]
    return drawing(460, 360, "Misses against false alarms on normal-deviate axes", grid, equal, *lines)


def _nothing(frame: Frame) -> Markup:
    """Text if all curves lie outside the axes."""
    middle = (frame.x.start + frame.x.end) / 2
    words = "perfect separation: a threshold avoids both kinds of error"
    return tag("text", words, x=middle, y=(frame.y.start + frame.y.end) / 2, class_="callout", text_anchor="middle")


def _least_share(curves: Sequence[ROCCurve]) -> float:
    """Where the axes of a DET chart begin: below the smallest share that was counted."""
    shares = np.concatenate([np.r_[c.false_alarm, 1 - np.asarray(c.detection)] for c in curves])
    least = shares[shares > 1e-12].min(initial=0.05)
    return max((t for t in DET_TICKS if t <= least), default=DET_TICKS[0])


def _inside(curve: ROCCurve, low: float, high: float) -> tuple[Any, Any]:
    """The part of a curve that the axes of a DET chart show."""
    alarm, miss = _dense(curve.false_alarm, 1 - np.asarray(curve.detection, dtype=np.float64))
    inside = np.flatnonzero((alarm >= low) & (alarm <= high) & (miss >= low) & (miss <= high))
    if not len(inside):
        return alarm[:0], miss[:0]
    part = slice(max(inside[0] - 1, 0), inside[-1] + 2)  # a point beyond each border: the curve runs up to it
    return alarm[part].clip(low, high), miss[part].clip(low, high)


def _dense(x: Any, y: Any) -> tuple[Any, Any]:
    """The same curve with points on its segments where it has few: straight lines of shares bend on these axes."""
    steps = max(1, 1000 // len(x))
    at = np.linspace(0, len(x) - 1, steps * (len(x) - 1) + 1)
    return np.interp(at, np.arange(len(x)), x), np.interp(at, np.arange(len(y)), y)


def _trade_off(frame: Frame, k: int, x: Any, y: Any) -> Markup:
    if len(x) == 1:  # a lone point still shows
        return tag("circle", cx=float(frame.x(x)[0]), cy=float(frame.y(y)[0]), r=4.0, style=f"fill:{color(k)}")
    return frame.line(x, y, class_="curve", style=f"--c:{color(k)}", stroke_dasharray=dash(k))


def risk_coverage(
    coverage: Any, risk: Any, point: tuple[float, float] | None, what: str, words: str = "",
    y_words: Callable[[float], str] = number, unit: str = "row",
) -> Markup:  # fmt: skip
    """Risk-coverage curve: mean cost of the accepted rows by their fraction; `point` marks the present rule."""
    top = float(np.r_[risk, [point[1]] if point else []].max(initial=0.0)) * 1.12 or 1.0
    marks = ticks(0, top)
    frame = Frame.of((0, 1), (0, top), margins=(14, 22, 46, room_for([y_words(t) for t in marks])))
    across = f"coverage (fraction of {unit}s accepted)"
    grid = axes(frame, across, what, ticks(0, 1), marks, x_words=whole_percent, y_words=y_words)
    line = frame.line(coverage, risk, class_="curve", style="--c:var(--c0)")
    marked = _operating(frame, point, words) if point else ""
    return drawing(460, 360, f"{what} against the share of {across}. {words}", grid, line, marked)


def _operating(frame: Frame, point: tuple[float, float], words: str) -> Markup:
    """The operating point, with its label on the free side."""
    x, y = float(frame.x(point[0])), float(frame.y(point[1]))
    end = x > (frame.x.start + frame.x.end) / 2
    above = y - frame.y.end > 24  # the curve mostly lies below its end
    text = tag("text", words, x=x + (-10 if end else 10), y=y + (-14 if above else 24), class_="callout",
               text_anchor="end" if end else "start")  # fmt: skip
    return join([tag("circle", cx=x, cy=y, r=5.5, class_="here"), text])
