"""Exceptions and the form of their messages: whose, expected, got, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_from_shell: ContextVar[bool] = ContextVar("from_shell", default=False)


class LikelyError(ValueError):
    """Base class of the errors that `likely` raises."""


class ShapeError(LikelyError):
    """An array has the wrong number of axes, rows or columns."""


class DomainError(LikelyError):
    """A parameter lies outside the domain of its distribution."""


class NotDetermined(DomainError, AttributeError):
    """A fitted attribute that this fit does not determine; `hasattr` is False."""


class DataError(LikelyError):
    """The data hold values that the model cannot use: infinite values, negative counts, no rows."""


class ModelFileError(LikelyError):
    """A model file is damaged, of another format, or of an unsupported version."""


class NotConverged(LikelyError, RuntimeError):
    """An iteration stopped before the objective converged, and the caller asked for an error in that case."""


class FitWarning(UserWarning):
    """A model was fitted, but the data need attention; the message says what was done."""


def sentence(whose: str, expected: str, got: object = None, remedy: str = "") -> str:
    """Build a message: whose, expected, got, remedy.

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
    """The message for a file that cannot be read: not found, refused by the system, or damaged.

    >>> unread("a.csv", FileNotFoundError(2, "No such file or directory"))
    'a.csv: there is no such file.'
    >>> unread("a.csv", PermissionError(13, "Permission denied"))
    'a.csv: the file cannot be read: permission denied.'
    """
    if isinstance(error, FileNotFoundError):
        return sentence(whose, "there is no such file")
    why = str(getattr(error, "strerror", None) or "it is damaged, or in another format")
    return sentence(whose, "the file cannot be read", remedy=why[:1].lower() + why[1:])


MANY = 20  # columns, members or classes up to which all are named


def enumerated(noun: str, which: Iterable[object]) -> str:
    """A noun with a list of names or numbers; of more than twenty, the first five.

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
    subject = enumerated("column", which)
    return f"{subject} {'are' if subject.startswith('columns') else 'is'}"


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


@contextmanager
def from_shell() -> Iterator[None]:
    """Context manager: messages name command-line options instead of Python arguments."""
    before = _from_shell.set(True)
    try:
        yield
    finally:
        _from_shell.reset(before)


def by_caller(option: str, argument: str) -> str:
    """The name of a command-line option inside `from_shell`, else of the Python argument.

    >>> by_caller("--target", "target")
    'target'
    >>> with from_shell(): by_caller("--target", "target")
    '--target'
    """
    return option if _from_shell.get() else argument
