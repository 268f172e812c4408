"""What can go wrong, in words: whose it is, what was expected, what came, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_from_shell: ContextVar[bool] = ContextVar("from_shell", default=False)


class LikelyError(ValueError):
    """The base of every error that `likely` raises on purpose."""


class ShapeError(LikelyError):
    """An array has the wrong number of axes, rows or columns."""


class DomainError(LikelyError):
    """A parameter lies outside the domain of its distribution."""


class DataError(LikelyError):
    """The data hold something no model can use: infinite values, negative counts, nothing at all."""


class ModelFileError(LikelyError):
    """A model file is damaged, foreign, or of a kind that cannot be read here."""


class NotConverged(LikelyError, RuntimeError):
    """An iteration ended before its objective settled, and the caller asked for that to be an error."""


class FitWarning(UserWarning):
    """A model was fitted, but something in the data deserves a look; the sentence says what was done."""


def sentence(whose: str, expected: str, got: object = None, remedy: str = "") -> str:
    """Build the one form of message: whose, expected, got, and what to do.

    >>> sentence("Gaussian", "mean must have shape (3,)", (2,), "pass one number per column")
    'Gaussian: mean must have shape (3,), got (2,): pass one number per column.'
    >>> sentence("--target", 'there must be a column "clas"', remedy='did you mean "class"?')
    '--target: there must be a column "clas": did you mean "class"?'
    """
    text = f"{whose}: {expected}"
    if got is not None:
        text += f", got {got}"
    if remedy:
        text += f": {remedy}"
    return text if text.endswith("?") else text + "."


def unread(whose: str, error: BaseException) -> str:
    """The sentence about a file that cannot be read: there is none, the system refuses it, or it is damaged.

    >>> unread("a.csv", FileNotFoundError(2, "No such file or directory"))
    'a.csv: there is no such file.'
    >>> unread("a.csv", PermissionError(13, "Permission denied"))
    'a.csv: the file cannot be read: permission denied.'
    """
    if isinstance(error, FileNotFoundError):
        return sentence(whose, "there is no such file")
    why = str(getattr(error, "strerror", None) or "it is damaged, or of another kind")
    return sentence(whose, "the file cannot be read", remedy=why[:1].lower() + why[1:])


MANY = 20  # columns, members or classes up to which all are named


def enumerated(noun: str, which: Iterable[object]) -> str:
    """A noun and those that it stands for, as a sentence names them; of many, the first five.

    >>> enumerated("column", [3]), enumerated("column", [0, 3]), enumerated("class", ["'a'", "'b'", "'c'"])
    ('column 3', 'columns 0 and 3', "classes 'a', 'b' and 'c'")
    """
    shown = [str(one) for one in which]
    if len(shown) == 1:
        return f"{noun} {shown[0]}"
    if len(shown) > MANY:
        shown[5:] = [f"{len(shown) - 5} more"]
    return f"{_plural(noun)} {', '.join(shown[:-1])} and {shown[-1]}"


def about_columns(which: Iterable[object]) -> str:
    """Columns as the subject of a sentence.

    >>> about_columns([1]), about_columns([1, 2])
    ('column 1 is', 'columns 1 and 2 are')
    """
    told = enumerated("column", which)
    return f"{told} {'are' if told.startswith('columns') else 'is'}"


def by_name(text: str, noun: str, named: Callable[[int], str], called: str = "") -> str:
    """A text that `enumerated` things by number, with their names instead; `called` replaces the noun.

    >>> by_name("x: columns 0 and 2 are constant", "column", lambda j: repr("abc"[j]))
    "x: columns 'a' and 'c' are constant"
    """

    def renamed(found: re.Match[str]) -> str:
        told = re.sub(r"\d+(?!\d| more)", lambda number: named(int(number[0])), found[2])
        return f"{_plural(called or noun) if found[1] else called or noun} {told}"

    listed = r"\d+(?:(?:, | and )\d+)*(?: more)?(?=\)| (?:is|are|was|were)\b)"
    return re.sub(rf"\b{noun}(s?) ({listed})", renamed, text)


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


@contextmanager
def from_shell() -> Iterator[None]:
    """Inside, whoever reads a message called a command: it speaks of options rather than of arguments."""
    before = _from_shell.set(True)
    try:
        yield
    finally:
        _from_shell.reset(before)


def by_caller(option: str, argument: str) -> str:
    """An option of the command line where a command was called, and else what it is in Python.

    >>> by_caller("--target", "target")
    'target'
    >>> with from_shell(): by_caller("--target", "target")
    '--target'
    """
    return option if _from_shell.get() else argument
