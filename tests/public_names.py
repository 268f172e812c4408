"""Everything public, and the type stubs of the namespaces, which `python -m tests.public_names` writes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from likely.core import value
from likely.estimation import component
from likely.names import HOMES, PUBLIC, SPACES

INTERNAL = value.INTERNAL | component.INTERNAL  # methods that `dir` leaves out


def public(plots: bool = False) -> dict[str, Any]:
    """Every public object, by its name without the namespace; plots only where they are asked for."""
    homes = [homes for space, homes in HOMES.items() if plots or space != "likely.plots"]
    return {name: getattr(import_module(module), name) for each in homes for name, module in each.items()}


def public_functions(plots: bool = False, internal: bool = True) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, constructors, methods and properties, such as "dtw", "KMeans", "KMeans.fit"; inherited ones once.

    `internal`: also methods that `dir` leaves out.
    """
    seen = set()
    for name, thing in public(plots).items():
        functions = {name: thing}
        if inspect.isclass(thing):
            functions = {name: thing.__init__, **_methods(name, thing, internal)}
        for owner, function in functions.items():
            function = inspect.unwrap(function)
            if inspect.isfunction(function) and function not in seen and function.__module__.startswith("likely"):
                seen.add(function)
                yield owner, function


def _methods(name: str, cls: type, internal: bool) -> dict[str, Any]:
    shown = [m for m in dir(cls) if not m.startswith("_") and (internal or m not in INTERNAL)]
    found = {m: inspect.getattr_static(cls, m) for m in shown}
    plain = {method: _function(f) for method, f in found.items()}
    return {f"{name}.{method}": f for method, f in plain.items() if inspect.isfunction(f)}


def _function(attribute: Any) -> Any:
    if isinstance(attribute, classmethod | staticmethod):
        return attribute.__func__
    if isinstance(attribute, property):
        return attribute.fget
    return attribute.func if isinstance(attribute, cached_property) else attribute


def signature_parts() -> dict[str, str]:
    """The types of parameters and results in public signatures, by names such as "KMeans.fit: y"."""
    found = {}
    for owner, function in public_functions(plots=True, internal=False):
        signature = inspect.signature(function)
        kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        for part, kind in {**kinds, "result": signature.return_annotation}.items():
            if isinstance(kind, str):
                found[f"{owner}: {part}"] = kind
    return found


def untyped(parts: dict[str, str]) -> list[str]:
    """Those whose type contains Any."""
    return [name for name, kind in parts.items() if re.search(r"\bAny\b", kind)]


def stub(space: str) -> str:
    """The type stub of a namespace: every name imported from its module."""
    lines = ['"""Generated from likely/names.py by `python -m tests.public_names`."""', ""]
    if space == "likely":
        lines += [f"from likely import {name} as {name}" for name in sorted(SPACES)]
        lines += ["from likely._version import __version__ as __version__"]
    for module, names in PUBLIC[space].items():
        lines += [f"from {module} import {name} as {name}" for name in names.split()]
    return "\n".join(lines) + "\n"


def stub_path(space: str) -> Path:
    """The file of a namespace's stub, beside the module."""
    return Path(str(import_module(space).__file__)).with_suffix(".pyi")


if __name__ == "__main__":
    for each in PUBLIC:
        stub_path(each).write_text(stub(each), encoding="utf-8")
