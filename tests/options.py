"""String options of everything public: found in annotations, as the values of their Literal types."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, get_args, get_origin

from tests.public_names import public_functions


class Option(NamedTuple):
    """A parameter that takes some strings, of a function, a constructor or a method."""

    owner: str  # "dtw", "KMeans", "Evaluation.error_at"
    name: str
    values: tuple[str, ...]


def string_options() -> Iterator[Option]:
    """Every parameter of a public name that a Literal type of strings is declared for; inherited methods once."""
    for owner, function in public_functions():
        yield from _of(owner, function)


def _of(owner: str, function: Callable[..., Any]) -> Iterator[Option]:
    names = vars(sys.modules[function.__module__])
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.annotation, str):
            values = tuple(_strings(ast.parse(parameter.annotation, mode="eval").body, names))
            if values:
                yield Option(owner, parameter.name, values)


def _strings(node: ast.expr, names: dict[str, Any]) -> Iterator[str]:
    """The strings of Literal types in an annotation: `Literal["a"]`, aliases, unions; Annotated by its first part."""
    if isinstance(node, ast.BinOp):
        yield from _strings(node.left, names)
        yield from _strings(node.right, names)
    elif isinstance(node, ast.Subscript):
        whole, head = ast.unparse(node), ast.unparse(node.value)
        if head == "Annotated" and isinstance(node.slice, ast.Tuple):
            yield from _strings(node.slice.elts[0], names)
        elif head == "Literal":
            yield from _texts(eval(whole, {**names, "Literal": Literal}))
    elif isinstance(node, ast.Name):
        found = names.get(node.id)
        if isinstance(found, str):  # an alias that is written as a string
            yield from _strings(ast.parse(found, mode="eval").body, names)
        else:
            yield from _texts(found)


def _texts(kind: Any) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield from (value for value in get_args(kind) if isinstance(value, str))
    elif get_origin(kind) is not tuple:
        for part in get_args(kind):
            yield from _texts(part)
