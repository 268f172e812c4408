"""Environments of the benchmark, and which library lives in which: the table `environments.toml`."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BASE = "base"


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """Environments with their libraries and the packages that are installed."""
    return tomllib.loads((HERE / "environments.toml").read_text(encoding="utf-8"))


def environment_of(peer: str) -> str:
    """The environment of a peer: its name begins with that of its library."""
    for name, entry in table().items():
        if peer.split("_")[0] in entry["libraries"]:
            return name
    raise KeyError(f"{peer}: no environment of {HERE / 'environments.toml'} has this library")


def python_of(name: str) -> Path | None:
    """The interpreter of an environment; None where it is not installed. That of the base is the running one."""
    if name == BASE:
        return Path(sys.executable)
    found = ROOT / ".env" / f"bench-{name}" / "bin" / "python"
    return found if found.exists() else None


def requirements(peers: Iterable[str]) -> list[str]:
    """Lines "NAME PACKAGE PACKAGE …" of the environments that these peers need, for the shell."""
    needed = {environment_of(peer) for peer in peers} - {BASE}
    return [" ".join([name, *entry["packages"]]) for name, entry in table().items() if name in needed]
