"""Reader of `likely follow`: lines as observations with their inputs and streams, and which lines are done."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likely.cli.following.follow_lines import (
    MISSING,
    BadLine,
    Layout,
    Lines,
    layout_of,
    number,
    refuse_absent,
    refuse_strangers,
    word,
)  # fmt: skip
from likely.core.errors import DataError, LikelyError, sentence

if TYPE_CHECKING:
    from likely.cli.console import Console
    from likely.cli.following.follow_models import Subject
    from likely.core.progress import FollowedLines


class ParsedLine(NamedTuple):
    """An observation from a line."""

    y: Any
    inputs: Any
    stream: str
    time: Any  # the cell of the time column


class ObservationReader:
    """Observations from lines, by the options of the command; the layout is that of the first line.

    `begin` is called with the reader once the layout of a new stream is known. Lines without an observation (blank
    ones, repeated headers) are passed over; those that cannot be used are an error, or skipped with `skip_bad`.
    """

    def __init__(
        self, subject: Subject, settings: Mapping[str, Any], lines: Lines, console: Console,
        kept: FollowedLines | None, begin: Callable[[ObservationReader], None],
    ) -> None:  # fmt: skip
        self.subject, self.settings, self.lines, self.console, self.begin = subject, settings, lines, console, begin
        self.missing = MISSING | frozenset(settings["missing"])
        self.layout: Layout | None = None
        self.header, self.rows, self.row = "", 0, ParsedLine(None, None, "", None)
        self.done = self.current = (lines.taken, lines.digest)  # before this row, and with it
        self.fresh = kept is None or not (kept.header or kept.names or kept.written)
        if kept is not None:
            self.header, self.rows = kept.header, kept.n_observations
            if kept.header:
                self._lay_out(layout_of(kept.header, False)[0])

    def __iter__(self) -> Iterator[ParsedLine]:
        for text in self.lines:
            at = (self.lines.taken, self.lines.digest)
            row = self._row(text)
            if row is not None:
                self.row, self.current, self.rows = row, at, self.rows + 1
                yield row
            self.done = at

    def position(self, taken: int) -> tuple[int, str]:
        """Number and digest of the lines that are done, where so many observations count."""
        return max(self.done, self.current) if taken == self.rows else self.done

    def refused(self, error: LikelyError) -> None:
        """Skip the row that the filter refuses, with a message, or raise its error."""
        self._complain(error)
        self.rows, self.done = self.rows - 1, self.current

    def _complain(self, error: LikelyError) -> None:
        complaint = f"{self.lines.whose}, line {self.lines.taken}: {error}"
        if not self.settings["skip_bad"]:
            raise DataError(complaint) from error
        self.console(f"{complaint} The line is skipped.")

    # -------------------------------------------------------------------- layout

    def _first(self, text: str) -> None:
        """Take the layout from the first line, which may be a header."""
        try:
            layout, is_header = layout_of(text, self.subject.nameless)
        except DataError as error:
            raise DataError(f"{self.lines.whose}, line {self.lines.taken}: {error}") from error
        self._lay_out(layout)
        self.header = text if is_header else ""
        if self.fresh:
            self.begin(self)

    def _lay_out(self, layout: Layout) -> None:
        """ID and time columns as in training, unless options say otherwise and if the columns exist."""
        learned = self.subject.roles
        there = {role: name for role, name in learned.items() if layout.names is None or name in layout.names}
        self.id, self.time = (self.settings[role] or there.get(role) for role in ("id", "time"))
        self.inputs: tuple[str, ...] = self.settings["inputs"]
        self.roles = [name for name in (self.id, self.time, *self.inputs) if name is not None]
        self.layout, self.columns = layout, self._wanted(layout)
        refuse_absent([*self.columns, *self.roles], layout, self.lines.whose)

    def _wanted(self, layout: Layout) -> list[str]:
        """The input columns used for the model's columns, in its order."""
        asked = list(self.settings["columns"])
        if asked or not self.subject.nameless or layout.names is None:
            return asked or list(self.subject.columns)
        rest = [name for name in layout.names if name not in self.roles]
        if len(rest) != len(self.subject.columns):
            expected = f"the model takes {len(self.subject.columns)} columns, which have no names"
            remedy = "choose with --columns, or say --id and --time"
            raise DataError(sentence(self.lines.whose, expected, f"{len(rest)}: {', '.join(rest[:8])}", remedy))
        return rest

    # ----------------------------------------------------------------------- rows

    def _row(self, text: str | None) -> ParsedLine | None:
        """The observation of a line; None where it has none, or is skipped."""
        if self.layout is None and text is not None and text.strip():
            self._first(text)
        layout = self.layout
        if layout is None or (text is not None and (layout.is_blank(text) or text == self.header)):
            return None
        try:
            if text is None:
                raise BadLine(sentence("text", "it must be UTF-8", remedy="save it as UTF-8"))
            cells = layout.cells(text)
            if layout.names is None:
                refuse_strangers(cells, self.columns, self.roles, bool(self.settings["columns"]))
            stream = "" if self.id is None else word(cells.get(self.id), frozenset()) or ""
            y = self.subject.observation({column: cells.get(column) for column in self.columns}, self.missing)
            return ParsedLine(y, self._inputs(cells), stream, None if self.time is None else cells.get(self.time))
        except LikelyError as error:
            self._complain(error)
            return None

    def _inputs(self, cells: Mapping[str, Any]) -> Any:
        """The time of a line for a model in continuous time, else its control inputs or covariates; None: none."""
        if self.subject.timed:
            expected = "a model in continuous time needs the time of each observation"
            return _known(cells, self.time, self.missing, expected)
        expected = "the model needs a value of each input"
        each = [_known(cells, name, self.missing, expected) for name in self.inputs]
        return np.array(each) if each else None


def _known(cells: Mapping[str, Any], name: Any, missing: frozenset[str], expected: str) -> float:
    """A number that may not be missing."""
    value = number(cells.get(name), name, missing)
    if math.isnan(value):
        raise BadLine(sentence(f'column "{name}"', expected, "none"))
    return value
