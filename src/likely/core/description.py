"""Descriptions of models: facts, tables and notes, with renderings as text, HTML, Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

ROWS = 30  # of a table, and sections of a kind, that are shown; JSON has all
COLUMNS = 10  # of a table
WIDEST = 6  # rows and columns of a matrix that is written out
LOADINGS = 3  # columns that a component is described by
NAMED = 4  # entries of a vector within a sentence
CELL, HEAD = 100, 24  # characters of a cell, and of the name of a column
NONE = "–"
NUMBER = (int, float, np.number)


class Code(str):
    """A text that is code: a command, a fingerprint."""


@dataclass(frozen=True)
class DescriptionTable:
    """Titled table of a description.

    Columns without any value are not shown.

    Parameters
    ----------
    title : str
        The title.
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Texts and numbers.
    formats : dict
        Format of the numbers per column, such as ".1%".
    noun : str, default "rows"
        What a row is.
    note : str
        A note below the table.
    most : int or None
        Number of rows that are shown; None: all of them, and all columns.

    See Also
    --------
    Description : What holds it.

    Examples
    --------
    >>> table = DescriptionTable("classes", ("class", "share"), [("a", 0.25), ("b", 0.75)], {"share": ".1%"})
    >>> print(*table.lines(), sep="\\n")
    class  share
    a      25.0%
    b      75.0%
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    formats: Mapping[str, str] = field(default_factory=dict)
    noun: str = "rows"
    note: str = ""
    most: int | None = ROWS

    def cells(self) -> list[list[str]]:
        """The head and the rows that are shown, as text.

        Returns
        -------
        list of lists of str
            Head and rows.
        """
        used = self._used()
        head = [self.head[j] if self.most is None else clipped(self.head[j], HEAD) for j in used]
        return [head, *([self._cell(row, j) for j in used] for row in self.rows[: self.most])]

    def right(self) -> tuple[int, ...]:
        """The shown columns with numbers only, which stand to the right.

        Returns
        -------
        tuple of int
            Positions of columns.
        """
        return tuple(i for i, j in enumerate(self._used()) if all(_is_number(row[j]) for row in self.rows))

    def rest(self) -> list[str]:
        """What is not shown, and the note.

        Returns
        -------
        list of str
            Sentences.
        """
        rows, wide = (self.rows[self.most :], self._used(None)[COLUMNS:]) if self.most else ((), ())
        left = ((len(rows), self.noun), (len(wide), "columns"))
        return [f"… and {n:,} more {noun}" for n, noun in left if n] + [self.note] * bool(self.note)

    def lines(self) -> list[str]:
        """The table as lines of text.

        Returns
        -------
        list of str
            Lines.
        """
        return [*columns(self.cells(), self.right()).split("\n"), *self.rest()]

    def to_html(self) -> str:
        """The table as HTML.

        Returns
        -------
        str
            HTML.
        """
        head, *body = self.cells()
        right, title = self.right(), f"<caption>{escape(self.title)}</caption>" if self.title else ""
        side = [' class="right"' if j in right else "" for j in range(len(head))]
        top = "".join(f"<th{side[j]}>{escape(cell)}</th>" for j, cell in enumerate(head))
        lines = ("".join(f"<td{side[j]}>{escape(cell)}</td>" for j, cell in enumerate(row)) for row in body)
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        rest = "".join(f"<p>{escape(text)}</p>" for text in self.rest())
        return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>{rest}"

    def markdown(self) -> Iterator[str]:
        """The table as lines of Markdown.

        Yields
        ------
        str
            The next line.

        Examples
        --------
        >>> print(*DescriptionTable("", ("class", "rows"), [("a|b", 3)]).markdown(), sep="\\n")
        | class | rows |
        |---|---|
        | a\\|b | 3 |
        """
        head, *body = self.cells()
        if self.title:
            yield from (f"**{safe(self.title)}**", "")
        yield f"| {' | '.join(map(safe, head))} |"
        yield "|" + "---|" * len(head)
        yield from (f"| {' | '.join(map(safe, row))} |" for row in body)
        if self.rest():
            yield from ("", *map(safe, self.rest()))

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, with all rows and columns.

        Returns
        -------
        dict
            Plain values.
        """
        rows = [[plain(cell) for cell in row] for row in self.rows]
        return {"title": self.title, "head": list(self.head), "rows": rows, "note": self.note}

    def _used(self, most: int | None = COLUMNS) -> list[int]:
        there = [j for j in range(len(self.head)) if not self.rows or any(row[j] is not None for row in self.rows)]
        return there if self.most is None else there[:most]

    def _cell(self, row: Sequence[Any], j: int) -> str:
        value, form = row[j], self.formats.get(self.head[j])
        text = format(value, form) if form and isinstance(value, NUMBER) else " ".join(shown(value))
        return text if self.most is None else clipped(text, CELL)


@dataclass(frozen=True)
class Description:
    """Description of a model: sentences, facts, tables, notes, and sections of the same form.

    `print` shows it as text, a notebook as HTML; `description["parameters"]` is the table of that title.

    Parameters
    ----------
    title : str
        The title.
    text : sequence of str
        Sentences.
    facts : dict
        Values by name.
    tables : sequence of DescriptionTable
        Tables.
    notes : sequence of str
        Notes.
    sections : sequence of Description
        Descriptions of parts.

    See Also
    --------
    DescriptionTable : A table.

    Examples
    --------
    >>> import likely as lk
    >>> d = lk.PoissonDensity(prior=None).fit([[1], [2], [6]]).describe()
    >>> d.facts["log-likelihood"], d["parameters"].rows[0].estimate
    (-6.3848..., 3.0)
    """

    title: str
    text: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[DescriptionTable] = ()
    notes: Sequence[str] = ()
    sections: Sequence[Description] = ()

    @classmethod
    def of_fields(cls, title: str, values: Mapping[str, Any]) -> Description:
        """Description of named values.

        Numbers and small arrays are facts, whatever has `describe` a section.

        Parameters
        ----------
        title : str
            The title.
        values : dict
            The values.
        """
        parts = {name: list(_described(name, value)) for name, value in values.items()}
        facts = {name: _fact(value) for name, value in values.items() if not parts[name]}
        return cls(title, facts=facts, sections=[one for found in parts.values() for one in found])

    def plus(
        self, *, title: str | None = None, text: Sequence[str] = (), facts: Mapping[str, Any] | None = None,
        tables: Sequence[DescriptionTable] = (), notes: Sequence[str] = (), sections: Sequence[Description] = (),
    ) -> Description:  # fmt: skip
        """The description with more text, facts, tables, notes or sections, each after its own; or another title.

        Parameters
        ----------
        title : str, optional
            Another title.
        text : sequence of str
            More sentences.
        facts : dict, optional
            More facts.
        tables : sequence of DescriptionTable
            More tables.
        notes : sequence of str
            More notes.
        sections : sequence of Description
            More sections.

        Returns
        -------
        Description
            The longer description.
        """
        return Description(
            self.title if title is None else title, (*self.text, *text), {**self.facts, **(facts or {})},
            (*self.tables, *tables), (*self.notes, *notes), (*self.sections, *sections),
        )  # fmt: skip

    def __getitem__(self, title: str) -> DescriptionTable:
        """The table of that title."""
        found = [table for table in self.tables if table.title == title]
        if not found:
            raise KeyError(f"{title!r}; there are {[table.title for table in self.tables]}")
        return found[0]

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_text(self, indented: bool = False) -> str:
        """The description as text.

        Parameters
        ----------
        indented : bool, default False
            Put all below the title two spaces to the right.

        Returns
        -------
        str
            Text.
        """
        below = _indented(self._lines()) if indented else ["=" * len(self.title), *self._lines()]
        return "\n".join([self.title, *below])

    def to_html(self, page: bool = False) -> str:
        """The description as HTML.

        Parameters
        ----------
        page : bool, default False
            A whole page instead of a fragment for a notebook.

        Returns
        -------
        str
            HTML.
        """
        inside = self._html(1 if page else 3)
        fragment = f'<div class="likely-description"><style>{_CSS}</style>{inside}</div>'
        return _PAGE.format(title=escape(self.title), body=fragment) if page else fragment

    def to_markdown(self, level: int = 1) -> str:
        """The description as Markdown.

        Parameters
        ----------
        level : int, default 1
            Level of the heading.

        Returns
        -------
        str
            Markdown.
        """
        return "\n".join(self._markdown(level)).rstrip() + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The description as plain Python values; NaN and infinity are None.

        Returns
        -------
        dict
            Plain values.
        """
        return {
            "title": self.title, "text": list(self.text), "facts": plain(dict(self.facts)),
            "tables": [table.to_dict() for table in self.tables], "notes": list(self.notes),
            "sections": [section.to_dict() for section in self.sections],
        }  # fmt: skip

    def to_json(self, indent: int | None = 2) -> str:
        """The description as JSON.

        Parameters
        ----------
        indent : int or None, default 2
            Indentation; None is one line.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def _lines(self) -> list[str]:
        """All below the title, as lines of text; blocks are separated by empty lines."""
        blocks = [[*self.text, *self._fact_lines()]]
        blocks += [[table.title, *_indented(table.lines())] if table.title else table.lines() for table in self.tables]
        blocks += [list(self.notes), *([s.to_text(indented=True)] for s in self.sections[:ROWS])]
        blocks += [self._more_sections()]
        return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")

    def _fact_lines(self) -> Iterator[str]:
        width = max(map(len, self.facts), default=0)
        for name, value in self.facts.items():
            for i, line in enumerate(shown(value)):
                yield f"{'' if i else name:<{width}}  {line}".rstrip()

    def _more_sections(self) -> list[str]:
        more = len(self.sections) - ROWS
        return [f"… and {more:,} more"] if more > 0 else []

    def _html(self, level: int) -> str:
        facts = "".join(f"<tr><th>{escape(name)}</th><td>{_cell_html(v)}</td></tr>" for name, v in self.facts.items())
        parts = [f"<h{level}>{escape(self.title)}</h{level}>", *(f"<div>{_inline(text)}</div>" for text in self.text)]
        parts += [f'<table class="facts">{facts}</table>'] if facts else []
        parts += [table.to_html() for table in self.tables]
        parts += [f"<p>{_inline(note)}</p>" for note in self.notes]
        parts += [f"<section>{section._html(min(level + 1, 6))}</section>" for section in self.sections[:ROWS]]
        return "".join([*parts, *(f"<p>{more}</p>" for more in self._more_sections())])

    def _markdown(self, level: int) -> Iterator[str]:
        yield from (f"{'#' * level} {safe(self.title)}", "")
        if self.text:
            yield from (*map(safe, self.text), "")
        if self.facts:
            yield from (*(f"- {safe(name)}: {_fact_markdown(value)}" for name, value in self.facts.items()), "")
        for table in self.tables:
            yield from (*table.markdown(), "")
        if self.notes:
            yield from (*(f"- {safe(note)}" for note in self.notes), "")
        for section in self.sections[:ROWS]:
            yield from section._markdown(level + 1)
        yield from self._more_sections()


class Described:
    """Base of what is shown by its description: `print` shows it as text, a notebook as HTML."""

    def describe(self) -> Description:
        """Sentences, facts and tables."""
        raise NotImplementedError  # abstract

    def __str__(self) -> str:
        return self.describe().to_text(indented=True)

    def _repr_html_(self) -> str:
        return self.describe().to_html()


# ------------------------------------------------------------------- pieces of text


def columns(rows: list[list[str]], right: tuple[int, ...] = ()) -> str:
    """Cells in aligned columns, those numbered in `right` to the right.

    >>> print(columns([["model", "cost"], ["full", "0.1"]], right=(1,)))
    model  cost
    full    0.1
    """
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    aligned = [
        [cell.rjust(widths[j]) if j in right else cell.ljust(widths[j]) for j, cell in enumerate(row)] for row in rows
    ]
    return "\n".join("  ".join(row).rstrip() for row in aligned)


def clipped(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shown(value: Any) -> list[str]:
    """A value as lines of text: a number with six digits, a list in one line, a matrix row by row.

    >>> shown(0.1 + 0.2), shown(12345), shown([1.0, 2.5]), shown([[0.25, 0.5], [0.5, 1.0]])
    (['0.3'], ['12,345'], ['1 2.5'], ['0.25  0.5', ' 0.5    1'])
    """
    if isinstance(value, list) and value and all(isinstance(row, list) and row for row in value):
        cells = [[" ".join(shown(x)) for x in row] for row in value]
        return columns(cells, tuple(range(len(cells[0])))).split("\n")
    if isinstance(value, list | tuple) and type(value).__str__ is object.__str__:  # an interval has words of its own
        words = [" ".join(shown(x)) for x in value]
        return [(", " if any(isinstance(x, str) for x in value) else " ").join(words) or NONE]
    if value is None or isinstance(value, bool):
        return [{None: NONE, True: "yes", False: "no"}[value]]
    if isinstance(value, float):
        return [f"{value + 0.0:.6g}"]
    return [f"{value:,}" if isinstance(value, int) else " ".join(str(value).split("\n"))]


def counted(n: float, what: str) -> str:
    """A count with its noun in singular or plural.

    >>> counted(1, "state"), counted(1200, "frame")
    ('1 state', '1,200 frames')
    """
    return f"{n:,.12g} {what}{'' if n == 1 else 's'}"


def safe(text: str) -> str:
    """A text in one line, without what Markdown would take for a table or for HTML."""
    return " ".join(str(text).replace("|", "\\|").replace("<", "&lt;").split())


def entries(a: Any) -> Any:
    """An array as lists if it is small; else its shape, with its diagonal, range or first entries as text.

    >>> entries(np.eye(2)), entries(np.eye(9)), entries(np.arange(40.0))
    ([[1.0, 0.0], [0.0, 1.0]], '9×9, diagonal 1 1 1 1 1 1 …', '40 values, from 0 to 39')
    """
    a = np.asarray(a)
    if (a.ndim < 2 and a.size <= COLUMNS) or (a.ndim == 2 and 0 < max(a.shape) <= WIDEST and a.size):
        return a.tolist()
    size = f"{a.size:,} values" if a.ndim == 1 else "×".join(map(str, a.shape))
    if a.dtype.kind not in "fiu":
        return f"{size}: {', '.join(map(str, a.ravel()[:WIDEST].tolist()))}{' …' * (a.size > WIDEST)}"
    if a.ndim == 2 and a.shape[0] == a.shape[1] and a.size:
        return f"{size}, diagonal {first_numbers(np.diagonal(a))}"
    known = a[~np.isnan(a)] if a.dtype.kind == "f" else a
    return f"{size}, from {known.min():.6g} to {known.max():.6g}" if known.size else size


def first_numbers(a: Any) -> str:
    """The first numbers of an array in a line."""
    line = " ".join(f"{x + 0.0:.6g}" for x in np.ravel(a)[:WIDEST].tolist())
    return line + (" …" if np.size(a) > WIDEST else "")


def vector_words(a: Any, names: list[str] | None = None) -> str:
    """The first numbers of a vector in a few words, with names if there is one per number.

    >>> vector_words(np.array([1.5, 2.0]), ["height", "width"]), vector_words(np.arange(9.0))
    ('height 1.5, width 2', '0, 1, 2, 3 …')
    """
    a = np.atleast_1d(np.asarray(a, dtype=np.float64)).ravel()
    titles = [f"{name} " for name in names] if names is not None and len(names) == len(a) else [""] * len(a)
    found = ", ".join(f"{title}{x + 0.0:.3g}" for title, x in list(zip(titles, a.tolist(), strict=True))[:NAMED])
    return found + (" …" if len(a) > NAMED else "")


def loadings_words(axis: Any, names: Sequence[str]) -> str:
    """The columns with the largest loadings of a component.

    >>> loadings_words(np.array([0.1, -0.8, 0.6]), ["a", "b", "c"])
    '-0.80 b, +0.60 c, +0.10 a'
    """
    largest = np.argsort(-np.abs(axis), kind="stable")[:LOADINGS]
    return ", ".join(f"{axis[j]:+.2f} {clipped(names[j], HEAD)}" for j in largest)


def plain(part: Any) -> Any:
    """Arrays, named tuples and NumPy scalars as JSON types; NaN and infinity as None.

    >>> plain({"a": np.array([1.0, np.inf])})
    {'a': [1.0, None]}
    """
    if isinstance(part, np.ndarray | np.generic):
        part = part.tolist()
    if hasattr(part, "_asdict"):
        part = part._asdict()
    if isinstance(part, dict):
        return {str(key): plain(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [plain(value) for value in part]
    if isinstance(part, float) and not np.isfinite(part):
        return None
    return part if isinstance(part, str | int | float | bool | type(None)) else str(part)


def _is_number(value: Any) -> bool:
    """Whether a cell holds a number or nothing."""
    return value is None or value == "" or isinstance(value, NUMBER)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)


def _described(name: str, value: Any) -> Iterator[Description]:
    """The sections of a field: one of a value, one per item of a tuple of values or of (name, value)."""
    if isinstance(value, tuple | list):
        for i, item in enumerate(value):
            pair = isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
            yield from _described(*(item if pair else (f"{name} {i}", item)))
    elif hasattr(value, "describe") and not isinstance(value, type):
        found = value.describe()
        yield found.plus(title=f"{name}: {found.title}")


def _fact(value: Any) -> Any:
    """What a field without a description of its own holds, as a fact."""
    if isinstance(value, np.ndarray | np.generic):
        return entries(value)
    if isinstance(value, tuple | list) and any(isinstance(x, np.ndarray | tuple | list) for x in value):
        return f"{len(value):,} arrays" if isinstance(value[0], np.ndarray) else clipped(repr(plain(value)), CELL)
    if isinstance(value, tuple | list):
        return plain(value[:ROWS]) + ["…"] * (len(value) > ROWS)
    return value if isinstance(value, str | int | float | bool | None) else clipped(" ".join(repr(value).split()), CELL)


def _cell_html(value: Any) -> str:
    text = "<br>".join(escape(line) for line in shown(value))
    return f"<code>{text}</code>" if isinstance(value, Code | list) else text


def _inline(text: str) -> str:
    """A sentence as HTML, `code` between backticks as such."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _fact_markdown(value: Any) -> str:
    text = "; ".join(" ".join(line.split()) for line in shown(value))
    return f"`{text}`" if isinstance(value, Code) else safe(text)


_CSS = (
    ".likely-description{font-family:system-ui,sans-serif;font-size:14px;font-variant-numeric:tabular-nums;"
    "max-width:60em}"
    ".likely-description table{border-collapse:collapse;margin:.6em 0}"
    ".likely-description caption{text-align:left;font-weight:600;padding:.2em 0}"
    ".likely-description th,.likely-description td{padding:.2em .9em .2em 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid #8884}"
    ".likely-description th{font-weight:600}.likely-description .right{text-align:right}"
    ".likely-description code{white-space:pre-wrap}"
    ".likely-description section section,.likely-description h3~section{margin-left:1.2em}"
    ".likely-description p{opacity:.75;margin:.2em 0}"
)
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    '<meta name="viewport" content="width=device-width"><style>:root{{color-scheme:light dark}}'
    "body{{margin:2em auto;max-width:62em;padding:0 1em}}</style></head><body>{body}</body></html>"
)
