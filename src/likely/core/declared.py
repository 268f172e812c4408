"""Declarations of fields: the shape, bounds and role of a field of a value, stated once where the field is.

    rate: Annotated[Array, declared.numbers("* d", low=0)]

The reader of model files checks fields by it. In shapes a letter means one size throughout the value, and * the axis of
a stack. A plain annotation (Array, Index, bool, str, int, float, a Literal type) declares itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from likely.core.arrays import Array
from likely.core.value import Value

Sizes = dict[str, Any]  # the sizes bound to letters of shapes so far


class Kind(NamedTuple):
    """The kind of a field: a description, and a test that may bind letters of shapes."""

    words: str
    fits: Callable[[Any, Sizes], bool]
    forms: tuple[tuple[str, ...], ...] = ()  # the shapes of an array, as letters


def numbers(
    shapes: str = "?", low: float = -np.inf, dtype: type = np.float64, high: float = np.nextafter(np.inf, 0)
) -> Kind:
    """An array of finite numbers ≥ `low`, in one of several shapes; `high` may be +inf.

    "* d d" is (d, d), or (K, d, d) for a stack; "* d | d" allows either; "" is one number; "?" is anything.
    """
    forms = [form.split() for form in shapes.split("|")]

    def fits(x: Any, sizes: Sizes) -> bool:
        if not isinstance(x, np.ndarray) or x.dtype != dtype:
            return False
        return (shapes == "?" or any(_matches(x.shape, form, sizes) for form in forms)) and _bounded(x, low, high)

    words = f"finite {np.dtype(dtype)} numbers" + (f" from {low:g}" if low > -np.inf else "")
    words = words if shapes == "?" else f"{words} in shape {' or '.join(map(_shown, forms))}"
    return Kind(words, fits, tuple(map(tuple, forms)))


def _shown(form: list[str]) -> str:
    return f"({', '.join('...' if letter == '*' else letter for letter in form)})"


def _bounded(x: Array, low: float, high: float) -> bool:
    if not x.size:
        return True
    least, most = x.min(), x.max()
    return bool(least >= low and least > -np.inf and most <= high)  # NaN fails each


def _matches(shape: tuple[int, ...], form: list[str], sizes: Sizes) -> bool:
    """Whether a shape has this form; letters, and the stack *, are bound at their first use."""
    stack = form[:1] == ["*"]
    lead = len(shape) - len(form) + stack
    if lead not in ((0, 1) if stack else (0,)) or 0 in shape:
        return False
    sides = zip(form, (shape[:lead], *shape[lead:]) if stack else shape, strict=True)
    found = dict(sizes)
    if any(found.setdefault(letter, size) != size for letter, size in sides):
        return False
    sizes.update(found)
    return True


def text(*choices: str) -> Kind:
    """A string, one of `choices` if given."""
    words = f"one of {', '.join(map(repr, choices))}" if choices else "a text"
    return Kind(words, lambda x, sizes: isinstance(x, str) and (not choices or x in choices))


def option(options: Any) -> Kind:
    """One of the strings of a Literal type."""
    return text(*get_args(options))


def number(low: float = -np.inf) -> Kind:
    """One plain finite number ≥ `low`."""
    return Kind(f"a finite number from {low:g}", lambda x, sizes: type(x) in (int, float) and low <= x < np.inf)


def maybe(kind: Kind) -> Kind:
    """None, or the given kind."""
    return Kind(f"{kind.words}, or null", lambda x, sizes: x is None or kind.fits(x, sizes))


def either(one: Kind, other: Kind) -> Kind:
    """One of two kinds."""
    words = f"{one.words}, or {other.words}"
    return Kind(words, lambda x, sizes: one.fits(x, sizes) or other.fits(x, sizes), one.forms + other.forms)


def value(words: str, *abilities: str) -> Kind:
    """A nested value with the given methods."""
    return Kind(words, lambda x, sizes: isinstance(x, Value) and all(hasattr(type(x), name) for name in abilities))


def of_class(name: str) -> Kind:
    """A nested value of one class of the table."""
    return Kind(f"a {name}", lambda x, sizes: isinstance(x, Value) and type(x).__name__ == name)


def items(kind: Kind) -> Kind:
    """A tuple of one or more of the given kind."""
    return Kind(f"a tuple, each {kind.words}", lambda x, sizes: _all(x) and all(kind.fits(y, sizes) for y in x))


def perhaps(kind: Kind) -> Kind:
    """A tuple of any number of the given kind."""
    return Kind(f"a tuple, each {kind.words}", lambda x, sizes: _empty(x) or items(kind).fits(x, sizes))


def pairs(kind: Kind) -> Kind:
    """A tuple of one or more (name, object), with unique names."""

    def fits(x: Any, sizes: Sizes) -> bool:
        named = _all(x) and all(_all(p) and len(p) == 2 and isinstance(p[0], str) for p in x)
        return named and len({name for name, _ in x}) == len(x) and all(kind.fits(y, sizes) for _, y in x)

    return Kind(f"a tuple of (name, {kind.words}) with each name once", fits)


def forms_of(*choices: str) -> Kind:
    """A tuple of (name, form), perhaps empty: a form is one of several strings, or an array of integers or booleans."""

    def fits(x: Any, sizes: Sizes) -> bool:
        form = Kind("", lambda y, _: y in choices if isinstance(y, str) else _marks(y))
        return _empty(x) or pairs(form).fits(x, sizes)

    return Kind(f"a tuple of (name, one of {', '.join(choices)} or an array)", fits)


def _marks(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "bi" and x.size > 0


def _empty(x: Any) -> bool:
    return isinstance(x, tuple) and not x  # comparing an array with () would be an error


def _all(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) > 0


flag = Kind("true or false", lambda x, sizes: type(x) is bool)
integer = Kind("an integer", lambda x, sizes: type(x) is int)
labels = Kind(
    "a 1-D array of labels, or null", lambda x, sizes: x is None or (isinstance(x, np.ndarray) and x.ndim == 1)
)
levels = Kind("a 1-D array of labels", lambda x, sizes: isinstance(x, np.ndarray) and x.ndim == 1)
texts = Kind("strings", lambda x, sizes: isinstance(x, tuple) and all(isinstance(y, str) for y in x))
density = value("a density", "log_prob", "sample", "members", "dim")
SEQUENCES = ("viterbi", "smooth", "structure")  # methods that only densities of sequences have
distribution = Kind(
    "a density of rows",
    lambda x, sizes: density.fits(x, sizes) and not any(hasattr(x, ability) for ability in SEQUENCES),
)
densities = Kind(
    "a density, or a tuple of them", lambda x, sizes: density.fits(x, sizes) or items(density).fits(x, sizes)
)
prior = value("a prior", "update", "point")
stats = value("statistics", "total_weight", "__add__")
belief = Kind("a belief", lambda x, sizes: x is None or isinstance(x, Value) or hasattr(x, "partial_fit"))
logs = Kind(
    "log-probabilities",
    lambda x, sizes: isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 1 and bool((x < np.inf).all()),
)
one_or_each = Kind(
    "a number, or one per state",
    lambda x, sizes: number(0).fits(x, sizes) or numbers("d", 0).fits(x, sizes),
)
rule_or_number = Kind("a text, or a number", lambda x, sizes: isinstance(x, str) or number(0).fits(x, sizes))
count = Kind("an integer from 0", lambda x, sizes: type(x) is int and x >= 0)
positive = Kind("an integer from 1", lambda x, sizes: type(x) is int and x >= 1)
distinct = Kind(
    "a 1-D array of distinct labels", lambda x, sizes: levels.fits(x, sizes) and len(set(x.tolist())) == len(x)
)
names = Kind(
    "a 1-D array of strings",
    lambda x, sizes: levels.fits(x, sizes) and all(isinstance(name, str) for name in x.tolist()),
)
rows = Kind(
    "float64 rows of numbers or NaN",
    lambda x, sizes: isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 2 and not np.isinf(x).any(),
)
end = Kind("a number, perhaps infinite", lambda x, sizes: type(x) is float and x == x)
octets = Kind("bytes", lambda x, sizes: isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == 1)
log_probabilities = logs
statistic = Kind("a number", lambda x, sizes: type(x) is float and x == x)
statistic_from_0 = Kind("a number from 0", lambda x, sizes: type(x) is float and x >= 0)

ANNOTATED = {  # kinds determined by the annotation alone
    "Array": numbers(), "Index": numbers(dtype=np.int64), "NDArray[np.intp]": numbers(dtype=np.int64),
    "bool": flag, "str": text(), "int": integer, "float": number(),
}  # fmt: skip


def declarations(cls: Any) -> dict[str, Kind]:
    """The declared kind of each field of a value's constructor."""
    return _declarations(cls)


@cache
def _declarations(cls: Any) -> dict[str, Kind]:
    said = {f.name: _kind_of(cls, f.name, f.type) for f in fields(cls) if f.init}
    unsaid = [name for name, kind in said.items() if kind is None]
    if unsaid:
        raise TypeError(f"{cls.__name__}: {', '.join(unsaid)} must be declared: Annotated[..., lk.extend.declared....]")
    return {name: kind for name, kind in said.items() if kind is not None}


def _kind_of(cls: type[Value], name: str, annotation: Any) -> Kind | None:
    """The kind in an annotation, which is a string in modules that postpone them."""
    if isinstance(annotation, str):
        home = next(base for base in cls.__mro__ if name in vars(base).get("__annotations__", {}))
        if not annotation.startswith("Annotated["):
            alias = vars(sys.modules[home.__module__]).get(annotation)
            return option(alias) if get_origin(alias) is Literal else ANNOTATED.get(annotation)
        alone = type(name, (), {"__annotations__": {name: annotation}, "__module__": home.__module__})
        annotation = get_type_hints(alone, include_extras=True)[name]
    said = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((one for one in said if isinstance(one, Kind)), ANNOTATED.get(getattr(annotation, "__name__", "")))


def stacked(value: Value) -> dict[str, Array]:
    """The fields of a value that have the axis of a stack: those declared with a *, where it is there."""
    found = {}
    for name, kind in declarations(type(value)).items():
        x = getattr(value, name)
        if isinstance(x, np.ndarray) and any(form[:1] == ("*",) and x.ndim == len(form) for form in kind.forms):
            found[name] = x
    return found


def complaint(cls: type[Value], parts: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first field that is not as declared, and what it must be; None if all are."""
    sizes: Sizes = {}
    for name, kind in declarations(cls).items():
        if not kind.fits(parts[name], sizes):
            return name, kind.words
    return None


def shape_as_kind(fields: Mapping[str, Any], center: str, spread: str) -> str:
    """What is wrong with a covariance not stored in the shape of its kind: no file needs more memory than its size."""
    rank = {"full": 2, "diagonal": 1, "spherical": 0, "independent": fields[center].ndim}[fields["kind"]]
    spare = fields[spread].ndim - rank
    return "" if spare in (0, fields[center].ndim - 1) else f"{spread} must be {fields['kind']}"
