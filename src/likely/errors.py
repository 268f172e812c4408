"""What can go wrong, in words: whose it is, what was expected, what came, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_from_shell: ContextVar[bool] = ContextVar("from_shell", default=False)


class LikelyError(ValueError):
    """The base of every error that `likely` raises on purpose."""


class ShapeError(LikelyError):
    """An array has the wrong number of axes, rows or columns."""


class DomainError(LikelyError):
    """A parameter lies outside the domain of its law."""


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
