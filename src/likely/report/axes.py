"""Axes of SVG charts: scales, ticks, grid lines and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from likely.core.arrays import Array
from likely.metrics.roc import thin
from likely.report.markup import Markup, join, short, tag
from likely.report.number_format import THIN, number

CURVE_POINTS = 200  # what the eye can tell apart in a chart of 400 pixels


@dataclass(frozen=True)
class Scale:
    """Values low..high laid on pixels start..end, after `warp` where that is given."""

    low: float
    high: float
    start: float
    end: float
    warp: Callable[[Array], Array] | None = None

    def __call__(self, values: Any) -> Array:
        """Pixels of values.

        >>> Scale(0, 10, 100, 200)([0, 5])
        array([100., 150.])
        """
        v = np.asarray(values, dtype=np.float64)
        low, high = np.array([self.low, self.high])
        if self.warp is not None:
            v, low, high = self.warp(v), *self.warp(np.array([low, high]))
        return self.start + (v - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True)
class Frame:
    """A drawing of a given size with two scales inside its margins."""

    width: float
    height: float
    x: Scale
    y: Scale

    @classmethod
    def of(
        cls, x: tuple[float, float], y: tuple[float, float], *, width: float = 460, height: float = 360,
        margins: tuple[float, float, float, float] = (14, 22, 46, 66), warp: Callable[[Array], Array] | None = None,
    ) -> Frame:  # fmt: skip
        """Scales for the ranges x and y; margins are top, right, bottom, left."""
        top, right, bottom, left = margins
        across = Scale(*roomy(*x), left, width - right, warp)
        return cls(width, height, across, Scale(*roomy(*y), height - bottom, top, warp))

    def points(self, x: Any, y: Any) -> str:
        """Coordinates of a curve as text, "12.3 45 13.1 44.2", thinned to what the eye can tell apart."""
        across, up = self.x(x), self.y(y)
        return " ".join(f"{short(across[i])} {short(up[i])}" for i in thin(across, up, CURVE_POINTS))

    def line(self, x: Any, y: Any, **attributes: Any) -> Markup:
        """A curve through points."""
        return tag("polyline", points=self.points(x, y), fill="none", **attributes)


def roomy(low: float, high: float) -> tuple[float, float]:
    """The same range, or a little room around a single value.

    >>> roomy(3, 3)
    (2.5, 3.5)
    """
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round places on a range: steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0, 1), ticks(0, 0.37)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.1, 0.2, 0.3])
    """
    low, high = roomy(low, high)
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def deviates(share: Array) -> Array:
    """Normal quantile of each rate (DET axis): Gaussian scores give straight lines."""
    return np.asarray(ndtri(np.clip(share, 1e-9, 1 - 1e-9)), dtype=np.float64)


def room_for(labels: Sequence[str]) -> float:
    """The left margin that tick labels need beside the name of the axis."""
    return 34.0 + 7.5 * max(map(len, labels), default=1)


def axes(
    frame: Frame, x_label: str, y_label: str, x_ticks: Sequence[float], y_ticks: Sequence[float], *,
    x_words: Callable[[float], str] = number, y_words: Callable[[float], str] = number,
) -> Markup:  # fmt: skip
    """Grid lines, tick labels and the name of each axis."""
    left, right = frame.x.start, frame.x.end
    bottom, top = frame.y.start, frame.y.end
    across = zip(frame.x(list(x_ticks)), x_ticks, strict=True)
    up = zip(frame.y(list(y_ticks)), y_ticks, strict=True)
    marks = [
        *(_x_tick(float(at), top, bottom, x_words(value)) for at, value in across),
        *(_y_tick(float(at), left, right, y_words(value)) for at, value in up),
        tag("text", x_label, x=(left + right) / 2, y=bottom + 37, class_="axis", text_anchor="middle"),
        _upright(y_label, 13.0, (top + bottom) / 2),
    ]
    return tag("g", *marks, class_="axes")


def _x_tick(x: float, top: float, bottom: float, words: str) -> Markup:
    return join([
        tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"),
        tag("text", words, x=x, y=bottom + 17, text_anchor="middle"),
    ])  # fmt: skip


def _y_tick(y: float, left: float, right: float, words: str) -> Markup:
    return join([
        tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid"),
        tag("text", words, x=left - 7, y=y + 4, text_anchor="end"),
    ])  # fmt: skip


def _upright(words: str, x: float, y: float) -> Markup:
    turn = f"translate({short(x)} {short(y)}) rotate(-90)"
    return tag("text", words, transform=turn, class_="axis", text_anchor="middle")


def drawing(width: float, height: float, label: str, *content: object, class_: str = "chart") -> Markup:
    """Inline SVG that scales with the page, with a text alternative."""
    return tag(
        "svg", *content, viewbox=f"0 0 {short(width)} {short(height)}", class_=class_, role="img", aria_label=label
    )


def whole_percent(share: float) -> str:
    """A tick label: no more digits than the tick has.

    >>> whole_percent(0.2), whole_percent(0.005), whole_percent(0.0001)
    ('20\\u202f%', '0.5\\u202f%', '0.01\\u202f%')
    """
    return f"{float(f'{share * 100:.6g}'):g}{THIN}%"
