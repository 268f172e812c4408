"""All public names with their signatures: what a user can call, as a table that JSON can keep."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import likely as lk
from likely.core import value
from likely.estimation import component
from likely.estimation.base_estimator import Borrowed

INTERNAL = value.INTERNAL | component.INTERNAL  # what `dir` of an object leaves out

Api = dict[str, dict[str, Any]]  # name → kind, signature, members


def api() -> Api:
    """Every name of the package and of its public namespaces, such as `Gaussian` or `metrics.roc`."""
    out: Api = {}
    for name in lk.__all__:
        value = getattr(lk, name)
        if isinstance(value, ModuleType):
            out |= {f"{name}.{inner}": entry(getattr(value, inner)) for inner in value.__all__}
        else:
            out[name] = entry(value)
    return out


def entry(value: Any) -> dict[str, Any]:
    """Kind and signature; of a class also its public methods and properties."""
    if not callable(value):
        return {"kind": type(value).__name__}
    if not inspect.isclass(value):
        return {"kind": "function", "signature": signature(value)}
    members = {}
    for name in sorted(set(dir(value))):
        if not name.startswith("_") and name not in INTERNAL and hasattr(value, name) and _ours(value, name):
            found = inspect.getattr_static(value, name)
            found = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            members[name] = signature(found) if callable(found) else "property"
    return {"kind": "class", "signature": signature(value), "members": members}


def _ours(owner: type, name: str) -> bool:
    """Whether a class of this package defines the name: what others let us inherit or borrow is theirs to change."""
    home = next(base for base in owner.__mro__ if name in vars(base))
    return home.__module__.partition(".")[0] == "likely" and not isinstance(vars(home)[name], Borrowed)


def signature(value: Any) -> str:
    """Parameters with their kinds and defaults, without annotations.

    >>> signature(lambda a, /, b=1.0, *, c: None)
    '(a, /, b=1.0, *, c)'
    """
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(?)"
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    return re.sub(r"<[^<>]*(<lambda>)?[^<>]*>", "...", text)  # defaults whose address changes from run to run
