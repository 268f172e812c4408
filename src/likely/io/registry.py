"""The classes that model files may hold: one name per class, with the module that defines it."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from likely import names
from likely.core.declared import declarations
from likely.core.errors import DomainError, sentence
from likely.core.value import Value
from likely.io.container import Refusal

# Modules are imported when one of their classes is first needed, and no text in a file determines what is imported.
HOME = dict(names.HOME)
REGISTERED: dict[str, type[Any]] = {}  # classes of other packages

Class = TypeVar("Class", bound=type[Any])


def register(cls: Class) -> Class:
    """Make `lk.save` and `lk.load` know a class of your own: a value, or an estimator with `saved_attributes`.

    It holds for this process: whoever loads the file imports your module first. A file can never cause an import.
    Use it as a decorator. The fields of a value must be declared (`lk.extend.declared`).
    """
    name = cls.__name__
    if name in HOME or REGISTERED.get(name, cls).__module__ != cls.__module__:
        raise DomainError(sentence("register", "a class needs a name of its own", repr(name), "rename the class"))
    if _is_value(cls):
        try:
            declarations(cls)
        except TypeError as error:
            raise DomainError(str(error)) from None
    elif not _is_storable(cls):
        expected = "a dataclass derived from Distribution or Value, or an estimator derived from DensityEstimator"
        raise DomainError(sentence("register", expected, name))
    REGISTERED[name] = cls
    return cls


def class_of(name: str) -> type[Any] | None:
    """The class of that name, imported on first use if it is one of ours; None if no file may hold it."""
    found = REGISTERED.get(name) or (_imported(name) if name in HOME else None)
    return found if _is_storable(found) else None


def class_for(thing: Any) -> type[Any] | None:
    """The class under which a file holds a thing: its own, or the one that stands for it; None if no file may."""
    cls = class_of(type(thing).__name__)
    return cls if type(thing) in (cls, getattr(cls, "stands_for", None)) else None


def _is_storable(thing: Any) -> bool:
    """Whether it is an estimator with `saved_attributes`, or a value whose fields are all declared."""
    if not _is_value(thing):
        return isinstance(thing, type) and hasattr(thing, "saved_attributes")
    try:
        declarations(thing)
    except TypeError:
        return False
    return True


def _is_value(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Value) and is_dataclass(thing)


@cache
def _imported(name: str) -> Any:
    try:
        return getattr(import_module(HOME[name]), name)
    except ImportError as error:
        raise Refusal(f"{name} needs a package that can be loaded", f"no {error.name or 'such package'}") from error


def storable() -> list[str]:
    """The names of the classes that can be saved."""
    return sorted(name for name in [*HOME, *REGISTERED] if class_of(name) is not None)
