"""Arguments of user functions: each is called with as many of (x, t, u) as its signature takes, in this order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import Any

from likely.core.errors import DataError, DomainError, LikelyError, sentence

DISTRIBUTION = ("x", "t", "u")  # states, number of the frame, inputs of that frame
PROPOSAL = ("x", "y", "t", "u")


def named(whose: str, what: str, t: int) -> str:
    """A filter's name with the function and the frame that an error is about."""
    return f"{whose} ({what} at frame {t})"


@dataclass(frozen=True, eq=False)
class FunctionWrapper:
    """Wrapper that takes all arguments and passes on those in the signature of the user's function."""

    function: Callable[..., Any]
    count: int  # of positional arguments
    names: tuple[tuple[str, int], ...]  # keyword arguments, and their positions
    whose: str
    knows_inputs: bool

    def __call__(self, *known: Any) -> Any:
        try:
            if not self.names:
                return self.function(*known[: self.count])
            return self.function(*known[: self.count], **{name: known[at] for name, at in self.names})
        except LikelyError:
            raise
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            if known[-1] is not None or not self.knows_inputs:
                raise
            expected, remedy = "it takes inputs u, and none were given", "pass inputs=, one row per frame"
            raise DataError(sentence(self.whose, expected, remedy=remedy)) from error


def wrapped(function: Callable[..., Any], known: tuple[str, ...], whose: str) -> FunctionWrapper:
    """Wrap a function to be called with all of `known`, the last of which are the inputs u.

    Arguments without a default are passed by position. Arguments with one of the known names are also passed if they
    are keyword-only or None by default. Another default value is ambiguous and is refused.

    >>> wrapped(lambda x, t: t, DISTRIBUTION, "test")("states", 7, None)
    7
    >>> wrapped(lambda x, *, u: u, DISTRIBUTION, "test")("states", 7, 0.5)
    0.5
    """
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature: a function of the states
        return FunctionWrapper(function, 1, (), whose, False)
    everything = any(p.kind is p.VAR_POSITIONAL for p in found)
    count = len(known) if everything else sum(_is_ordinal(p) and p.default is p.empty for p in found)
    _refuse_number(count, found, known, whose)
    bound = function.keywords if isinstance(function, partial) else {}
    names = tuple((p.name, known.index(p.name)) for p in found if _by_name(p, known, bound, whose))
    return FunctionWrapper(function, count, names, whose, count == len(known) or known[-1] in dict(names))


def _is_ordinal(p: Parameter) -> bool:
    return p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)


def _by_name(p: Parameter, known: tuple[str, ...], bound: dict[str, Any], whose: str) -> bool:
    """Whether a parameter is passed by keyword."""
    if p.default is p.empty:
        if p.kind is p.KEYWORD_ONLY and p.name not in known:
            expected = f"a function may take {', '.join(known)} and nothing else without a default"
            raise DomainError(sentence(whose, expected, f"{p.name} without one"))
        return p.kind is p.KEYWORD_ONLY
    if p.name not in known[1:] or p.name in bound or p.kind is p.POSITIONAL_ONLY:
        return False
    if p.default is not None:
        remedy = "remove the default, or rename the parameter"
        raise DomainError(sentence(whose, f"{p.name} is set for every frame", f"{p.name}={p.default!r}", remedy))
    return True


def _refuse_number(count: int, found: list[Parameter], known: tuple[str, ...], whose: str) -> None:
    if count > len(known) or not any(_is_ordinal(p) or p.kind is p.VAR_POSITIONAL for p in found):
        expected = f"a function of ({', '.join(known)}), or of the first of them, is needed"
        raise DomainError(sentence(whose, expected, f"one of ({', '.join(str(p) for p in found)})"))
