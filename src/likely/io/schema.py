"""What a file may hold: the table of classes, and what each field of a class must be.

A new class is one line in `TABLE`. The line gives the class by a literal import, so that no name from a file
ever chooses what is loaded, and a kind for each field that its annotation does not say: shapes, in letters
that mean the same size throughout a value, and texts, from a list. A class whose constructor checks nothing
(statistics) also names a check.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from likely.core.value import Value
from likely.errors import LikelyError
from likely.io.container import Refusal, short
from likely.io.nodes import inside

Sizes = dict[str, Any]  # what the letters of shapes stand for, so far

# ----------------------------------------------------------------------- kinds


class Kind(NamedTuple):
    """What a field must be: in words, and as a test that may bind letters of shapes."""

    words: str
    fits: Callable[[Any, Sizes], bool]


def numbers(shape: str = "?", dtype: type = np.float64, low: float = -np.inf) -> Kind:
    """An array of finite numbers ≥ low, in one of some shapes.

    Shapes are letters: "* d d" is (d, d), or (K, d, d) for a stack; "d | " is (d,) or (); "?" is any.
    """
    forms = [form.split() for form in shape.split("|")]

    def fits(x: Any, sizes: Sizes) -> bool:
        return (
            isinstance(x, np.ndarray) and x.dtype == dtype
            and (shape == "?" or any(_matches(x.shape, form, sizes) for form in forms))
            and _bounded(x, low)
        )  # fmt: skip

    rest = "" if shape == "?" else f" of shape {' or '.join('(' + ', '.join(form) + ')' for form in forms)}"
    return Kind(f"finite numbers ({np.dtype(dtype)}){rest}" + (f" from {low:g}" if low > -np.inf else ""), fits)


def _bounded(x: np.ndarray[Any, Any], low: float) -> bool:
    return not x.size or bool(low <= x.min() and x.max() < np.inf and x.min() > -np.inf)  # NaN fails each


def _matches(shape: tuple[int, ...], form: list[str], sizes: Sizes) -> bool:
    """Whether a shape has this form; letters and the stack * are bound at their first use."""
    stars = len(shape) - len(form) + 1 if "*" in form else 0
    if stars not in (0, 1) or len(shape) != len(form) - ("*" in form) + stars:
        return False
    lead = shape[:stars] if "*" in form else ()
    found = {**({"*": lead} if "*" in form else {})}
    for letter, size in zip([f for f in form if f != "*"], shape[stars:], strict=True):
        if found.setdefault(letter, size) != size:
            return False
    if any(sizes.get(name, size) != size for name, size in found.items()):
        return False
    sizes.update(found)
    return True
