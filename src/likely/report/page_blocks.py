"""The building blocks of the page: a section, a table, a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from likely.report.markup import Markup, join, tag

NUMBER = "#"  # a heading that begins with it stands over numbers, which are aligned to the right


def section(name: str, title: str, lead: str, *content: object) -> Markup:
    """A section of the page with a title and an introductory sentence."""
    head = tag("h2", title, id=f"{name}-title")
    words = tag("p", lead, class_="lead") if lead else ""
    return tag("section", head, words, *content, id=name, aria_labelledby=f"{name}-title")


def absent(why: str) -> Markup:
    """Placeholder for what was not measured."""
    return tag("p", why, class_="absent")


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, label: str, class_: str = "",
    chosen: Sequence[bool] = (), foot: Sequence[object] = (),
) -> Markup:  # fmt: skip
    """A table whose first column names its rows; it scrolls by itself where the page is narrow."""
    sides = ["n" if title.startswith(NUMBER) else None for title in head]
    heading = tag(
        "tr", *(tag("th", t.removeprefix(NUMBER), scope="col", class_=s) for t, s in zip(head, sides, strict=True))
    )
    marked = [*chosen, *([False] * 10_000)]
    body = (_row(cells, sides, "chosen" if mark else None) for cells, mark in zip(rows, marked, strict=False))
    parts = [tag("thead", heading), tag("tbody", *body)]
    if foot:
        parts.append(tag("tfoot", tag("tr", *(tag("td", cell, class_=s) for cell, s in zip(foot, sides, strict=True)))))
    return scrolling(tag("table", *parts, class_=class_ or None), label)


def _row(cells: Sequence[object], sides: Sequence[str | None], class_: str | None) -> Markup:
    first, *rest = cells
    data = (tag("td", cell, class_=side) for cell, side in zip(rest, sides[1:], strict=True))
    return tag("tr", tag("th", first, scope="row"), *data, class_=class_)


def scrolling(content: Markup, label: str) -> Markup:
    """A place that scrolls sideways, also by keyboard."""
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex="0")


def figure(picture: object, caption: object = "", title: str = "", class_: str | None = None) -> Markup:
    """A picture, with a title above and words below."""
    parts = [tag("h3", title) if title else "", picture, tag("figcaption", caption) if caption else ""]
    return tag("figure", *parts, class_=class_)


def pair(*figures: object) -> Markup:
    """Figures side by side where there is room."""
    return tag("div", *figures, class_="pair")


def with_note(main: object, note: object) -> Markup:
    """A cell of two lines: a name and a note."""
    return join([main, tag("span", note, class_="sub") if note else ""])
