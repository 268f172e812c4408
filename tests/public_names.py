"""Everything public, and the type stubs of the namespaces, which `python -m tests.public_names` writes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from likely.names import HOMES, PUBLIC, SPACES


def public() -> dict[str, Any]:
    """Every public object but plots, by its name without the namespace."""
    homes = [homes for space, homes in HOMES.items() if space != "likely.plots"]
    return {name: getattr(import_module(module), name) for each in homes for name, module in each.items()}


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
