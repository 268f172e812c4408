"""Color, symbol and dash pattern of each class, the same in all charts."""

from __future__ import annotations

from collections.abc import Sequence

from likely.report.markup import Markup, short, tag
from likely.report.number_format import clipped

COLORS = 8  # --c0 … --c7 in the style sheet
OTHER = -1  # the mark of all classes that have none of their own
# symbols as strokes that start at their center: one path can hold hundreds of them
SYMBOLS = (
    "m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0",  # disc
    "m0-3.3l3.1 5.4h-6.2z",  # triangle
    "m-2.3-2.3h4.6v4.6h-4.6z",  # square
    "m0-3.5l3 3.5l-3 3.5l-3-3.5z",  # diamond
    "m-3.2 0h6.4m-3.2-3.2v6.4",  # plus
    "m-2.4-2.4l4.8 4.8m0-4.8l-4.8 4.8",  # cross
    "m0 3.3l3.1-5.4h-6.2z",  # triangle on its tip
    "m-3 0h6m-1.5-2.6l-3 5.2m3 0l-3-5.2",  # star
)
DASHES = ("none", "7 3", "2 2.5", "9 3 2 3", "5 2", "1 2", "12 3", "7 2 2 2 2 2")


def color(k: int) -> str:
    """The color of class k, as the style sheet names it.

    >>> color(1), color(9), color(OTHER)
    ('var(--c1)', 'var(--c1)', 'var(--soft)')
    """
    return "var(--soft)" if k == OTHER else f"var(--c{k % COLORS})"


def symbol(k: int) -> str:
    """The symbol of class k; classes that share a color have different ones."""
    return SYMBOLS[0] if k == OTHER else SYMBOLS[(k + k // COLORS) % len(SYMBOLS)]


def dash(k: int) -> str:
    """The dash of a curve of class k."""
    return DASHES[(k + k // COLORS) % len(DASHES)]


def scattered(x: Sequence[float], y: Sequence[float], k: int, **attributes: object) -> Markup:
    """Many symbols of class k as one path, in pixels."""
    d = "".join(f"M{short(a)} {short(b)}{symbol(k)}" for a, b in zip(x, y, strict=True))
    return tag("path", d=d, class_="symbol", style=f"--c:{color(k)}", **attributes)


def swatch(k: int) -> Markup:
    """The symbol of a class on its own, for legends and tables; the name stands beside it."""
    return tag("svg", scattered([6.0], [6.0], k), viewbox="0 0 12 12", class_="swatch", aria_hidden="true")


def line_swatch(k: int) -> Markup:
    """A piece of a class's curve, for legends."""
    stroke = tag("line", x1=0.0, x2=26.0, y1=6.0, y2=6.0, class_="curve", style=f"--c:{color(k)}",
                 stroke_dasharray=dash(k))  # fmt: skip
    return tag("svg", stroke, viewbox="0 0 26 12", class_="swatch long", aria_hidden="true")


def name(k: int, text: str, length: int = 40) -> Markup:
    """A class's symbol and name."""
    return tag("span", swatch(k) if k != OTHER else "", clipped(text, length), class_="name")


def legend(items: Sequence[tuple[int, str]], line: bool = False, more: Sequence[Markup] = ()) -> Markup:
    """Marks with their names, in a row that wraps."""
    mark = line_swatch if line else swatch
    return tag("ul", *(tag("li", mark(k), clipped(text, 48)) for k, text in items), *more, class_="legend")
