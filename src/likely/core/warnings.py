"""Warnings as notes: collected per thread, given names, deduplicated, and attributed to the caller's line.

Python's `catch_warnings` changes the filters of the whole process, and two threads that do so can leave them changed
permanently. So warnings go to a collector of the thread, and only the outermost one issues them. The warning points to
the line of user code that called the library.

A distribution knows its members and columns by number only. So a warning is a `Note` that keeps the numbers, and it
becomes text once, where the names of columns and classes are known.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from likely.core.errors import FitWarning, LikelyError, about_columns, enumerated

_collector: ContextVar[list[Note] | None] = ContextVar("listener", default=None)

# Packages whose frames are not user code: this library, and packages that call it back.
INTERNAL = {__name__.partition(".")[0], "numpy", "scipy", "contextlib", "functools", "concurrent", "threading"}


@dataclass(frozen=True)
class Note:
    """A warning that can still be given names.

    - **whose**: the class or function it is about.
    - **text**: the message; "{columns}" stands for the columns as its subject.
    - **members, columns**: numbers, or names where they are known; `noun` says what a member is.
    - **parts**: the components of products that contain it, the outermost first.

    >>> str(Note("Gaussian", "{columns} constant", members=(1,), columns=(0, 2)))
    'Gaussian (member 1): columns 0 and 2 are constant'
    >>> str(Note("Gaussian", "{columns} constant", columns=(0,)).with_columns(["size"]).called("PCA", "Gaussian"))
    "PCA: column 'size' is constant"
    """

    whose: str
    text: str
    members: tuple[int | str, ...] = ()
    columns: tuple[int | str, ...] = ()
    noun: str = "member"
    parts: tuple[str, ...] = ()
    category: type[Warning] = FitWarning

    @classmethod
    def of(cls, message: str, category: type[Warning] = FitWarning) -> Note:
        """The note of a message in the usual form, "whose: text"."""
        whose, colon, text = message.partition(": ")
        return cls(whose, text, category=category) if colon else cls("", message, category=category)

    def called(self, whose: str, *inner: str) -> Note:
        """The note of an estimator that contains one of the classes `inner`; a component of a product keeps its own."""
        return self if self.parts else replace(self, whose=_renamed(self.whose, whose, inner))

    def with_columns(self, names: Sequence[object]) -> Note:
        """The note with names in place of column numbers."""
        columns = (repr(str(names[j])) if isinstance(j, int) and j < len(names) else j for j in self.columns)
        return replace(self, columns=tuple(columns))

    def with_members(self, noun: str, names: Sequence[object] | None = None) -> Note:
        """The note with another noun for members, as "class", and with their names; the first noun given stays."""
        if self.noun != "member":
            return self
        members = self.members if names is None else tuple(repr(names[int(k)]) for k in self.members)
        return replace(self, noun=noun, members=members)

    def __str__(self) -> str:
        where = f" ({enumerated(self.noun, self.members)})" if self.members else ""
        text = self.text.replace("{columns}", about_columns(self.columns)) if self.columns else self.text
        whose = f"{self.whose}{where}: " if self.whose else ""
        return "".join([*(f"part {name!r}: " for name in self.parts), whose, text])


def warn(message: str | Note, category: type[Warning] = FitWarning) -> None:
    """Issue a warning at the line of user code that called the library; inside `warnings_once` it is deferred."""
    note, collected = message if isinstance(message, Note) else Note.of(message, category), _collector.get()
    if collected is None:
        warnings.warn(str(note), note.category, stacklevel=_frames_to_the_caller() + 1)
    else:
        collected.append(note)


def _frames_to_the_caller() -> int:
    """Number of frames from `warn` up to the first one of user code; 1 if there is none, as in a thread."""
    frame, away = sys._getframe(1).f_back, 1
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in INTERNAL:
            return away
        frame, away = frame.f_back, away + 1
    return 1


@contextmanager
def warnings_once(named: Callable[[Note], Note | None] = lambda note: note) -> Iterator[None]:
    """Context manager that collects warnings and issues each distinct one once at the end, named; None drops it."""
    with warnings_collected() as collected:
        yield
    for note in dict.fromkeys(collected):
        other = named(note)
        if other is not None:
            warn(other)


@contextmanager
def warnings_renamed(whose: str, *inner: str) -> Iterator[None]:
    """Context manager: messages that begin with one of the names `inner` begin with `whose`, the called object."""
    try:
        with warnings_once(lambda note: note.called(whose, *inner)):
            yield
    except LikelyError as error:
        error.args = tuple(_renamed(text, whose, inner) if isinstance(text, str) else text for text in error.args)
        raise


def _renamed(text: str, whose: str, inner: tuple[str, ...]) -> str:
    """A text that begins with one of the names `inner`, as a word, beginning with `whose`."""
    found = re.match(rf"({'|'.join(map(re.escape, inner))})\b", text) if inner else None
    return text if found is None else whose + text[found.end() :]


@contextmanager
def warnings_discarded() -> Iterator[None]:
    """Context manager that discards warnings, for code whose warnings are issued elsewhere."""
    with warnings_collected():
        yield


@contextmanager
def warnings_collected() -> Iterator[list[Note]]:
    """Context manager that keeps warnings in a list, for code that tells them in its own way."""
    collected: list[Note] = []
    before = _collector.set(collected)
    try:
        yield collected
    finally:
        _collector.reset(before)
