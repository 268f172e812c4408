"""Escaping of text and building of HTML and SVG elements."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

EMPTY = frozenset({"meta", "br", "hr", "col", "circle", "line", "path", "rect", "polyline", "polygon", "use"})
CASED = {"viewbox": "viewBox", "patternunits": "patternUnits"}  # names that SVG spells with capitals
# what HTML forbids even when escaped: control characters, halves of surrogate pairs, noncharacters
_TURNING = "\u202a-\u202e\u2066-\u2069"  # these turn the text around them: a name could pose as another
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff" + _TURNING + "]")


class Markup(str):
    """Text that is markup already; any other text is escaped when it is put inside a tag."""

    __slots__ = ()


def safe(content: object) -> Markup:
    """Anything as markup: markup as it is, the rest escaped.

    >>> safe("<b> & co")
    '&lt;b&gt; &amp; co'
    """
    if isinstance(content, Markup):
        return content
    return Markup(escape(_FORBIDDEN.sub("\ufffd", str(content))))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Parts one after the other, each made safe."""
    return Markup(between.join(safe(part) for part in parts))


def tag(_name: str, *children: object, **attributes: Any) -> Markup:
    """An element. `class_` means class, `font_size` font-size; attributes that are None are left out.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    >>> tag("circle", cx=1.25, cy=2.0)
    '<circle cx="1.2" cy="2"/>'
    """
    opening = _name + "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if _name in EMPTY:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(children)}</{_name}>")


def _attribute(key: str, value: Any) -> str:
    name = key.rstrip("_").replace("_", "-")
    text = short(value) if isinstance(value, float) else str(value)
    return f' {CASED.get(name, name)}="{safe(text)}"'


def short(value: float) -> str:
    """A coordinate with one decimal, as short as it can be written.

    >>> short(12.04), short(0.55), short(-0.01)
    ('12', '0.6', '0')
    """
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text
