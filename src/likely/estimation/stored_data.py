"""Privacy of model files: whether training rows, or values of single columns, can be read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

ROWS = ("DistinctRows", "StoredPoints", "Sketch", "WeightedRows")  # classes that store rows unchanged
VALUES = ("WeightedValues",)  # classes that store values of columns, but not rows


def what_is_kept(estimator: Any) -> str:
    """What a fitted estimator stores: "rows", "values of columns", or "" for sums only.

    >>> import likely as lk
    >>> kinds = lk.KernelDensity(), lk.LaplaceDensity(), lk.GaussianDensity()
    >>> [what_is_kept(kind.fit([[0.0], [1.0], [3.0]])) for kind in kinds]
    ['rows', 'values of columns', '']
    """
    found = set(_found(estimator, 0))
    return "rows" if "rows" in found else "values of columns" if found else ""


def _found(thing: Any, depth: int) -> Iterator[str]:
    names = {kind.__name__ for kind in type(thing).__mro__}
    if names & set(ROWS) or getattr(thing, "_keeps_rows", False):
        yield "rows"
    elif names & set(VALUES):
        yield "values"
    elif depth < 16:
        for part in _stored_parts(thing):
            yield from _found(part, depth + 1)


def _stored_parts(thing: Any) -> Iterator[Any]:
    """The stored parts of an object."""
    if isinstance(thing, list | tuple):
        yield from thing
    elif isinstance(thing, dict):
        yield from thing.values()
    elif hasattr(thing, "saved_attributes"):
        yield from (getattr(thing, name) for name in thing.saved_attributes if name in vars(thing))
        fitted = (part for name, part in vars(thing).items() if name.endswith("_"))
        yield from (part for part in fitted if hasattr(part, "saved_attributes"))
    elif is_dataclass(thing):
        yield from (getattr(thing, field.name) for field in fields(thing))
