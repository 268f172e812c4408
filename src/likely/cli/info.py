"""`likely info`: versions, libraries, threads and caches."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from likely._version import __version__

REQUIRED = (
    *("numpy", "scipy", "numba", "scikit-learn", "polars", "narwhals", "threadpoolctl"),
    *("safetensors", "click", "rich"),
)
OPTIONAL = ("matplotlib",)


@click.command()
@click.argument("model", required=False)
@click.option("--markdown", is_flag=True, help="Markdown table, for a bug report.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(model: str | None, markdown: bool, as_json: bool) -> None:
    """Print versions and system information for bug reports; for a MODEL file, the output of `likely show`."""
    if model is not None:
        _of_model(model, markdown, as_json)
        return
    if markdown and as_json:
        raise click.UsageError("--markdown and --json exclude each other: choose one.")
    facts = gather()
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo(as_markdown(facts) if markdown else as_text(facts))


def _of_model(model: str, markdown: bool, as_json: bool) -> None:
    from likely.cli.show import description

    if markdown:
        raise click.UsageError("--markdown is for what is installed: `likely card` writes about a model in Markdown.")
    click.echo(description(model, as_json))


def gather() -> dict[str, Any]:
    """All facts of `likely info`, as plain values."""
    return {
        "likely": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "cores": cores(),
        "dependencies": {name: installed(name) for name in REQUIRED},
        "extras": {name: installed(name) for name in OPTIONAL},
        "blas": blas(),
        "numba_cache": numba_cache(),
    }


def cores() -> int:
    """Number of cores that this process may use (a container may limit it)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def installed(name: str) -> str | None:
    """The version of a distribution, or None where it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def blas() -> list[dict[str, Any]]:
    """The BLAS libraries of NumPy and SciPy, as reported by threadpoolctl."""
    try:
        import numpy  # noqa: F401
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_info
    except ImportError:
        return []
    found = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    pools = [
        {
            "library": pool["internal_api"],
            "version": pool["version"],
            "architecture": pool.get("architecture"),
            "threads": pool["num_threads"],
        }
        for pool in found
    ]
    return sorted(pools, key=str)


def numba_cache() -> dict[str, Any]:
    """Cache folder of Numba; without one every process compiles again.

    Numba takes the first of its folders that it can write; so do we, but without loading it.
    """
    for folder in cache_folders():
        if can_write(folder):
            return {"writable": True, "folder": shorten(folder)}
    return {"writable": False, "folder": None}


def cache_folders() -> Iterator[Path]:
    """The folders that Numba tries, in its order: the one asked for, beside the code, the user's."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"])
    yield Path(__file__).parents[1]  # in folders of its own there, one beside each file of loops
    yield user_cache() / "numba"


def user_cache() -> Path:
    """The user's own cache folder on this system."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


def can_write(folder: Path) -> bool:
    """Whether files could be written to a folder, or the folder made where it is missing."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK)


def shorten(folder: Path) -> str:
    """A path with the home folder as ~, for reports that others will read."""
    home = os.path.expanduser("~")
    text = str(folder)
    return "~" + text[len(home) :] if text.startswith(home + os.sep) else text


def lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts as pairs of name and value."""
    for name in ("likely", "python", "platform", "cores"):
        yield name, str(facts[name])
    for name, number in (facts["dependencies"] | facts["extras"]).items():
        yield name, number or "not installed"
    for pool in facts["blas"]:
        kind = " ".join(str(pool[key]) for key in ("library", "version", "architecture") if pool[key])
        yield "BLAS", f"{kind}, threads: {pool['threads']}"
    cache = facts["numba_cache"]
    yield "Numba cache", f"writable: {cache['folder']}" if cache["writable"] else "not writable"


def as_text(facts: dict[str, Any]) -> str:
    """Two aligned columns."""
    pairs = list(lines(facts))
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in pairs)


def as_markdown(facts: dict[str, Any]) -> str:
    """Markdown table."""
    rows = (f"| {name} | {value} |" for name, value in lines(facts))
    return "\n".join(["| what | here |", "|---|---|", *rows])
