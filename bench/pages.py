"""How result pages are written: tables, and sections that can be made one by one."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from likely._version import __version__


def table(head: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    """A Markdown table."""
    rows = [list(head), ["---"] * len(list(head)), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows) + "\n"


def best_bold(values: Sequence[float], form: str = ".2f", largest: bool = False) -> list[str]:
    """Figures that are compared with each other as cells: the best, as it is printed, is bold.

    >>> best_bold([0.512, 0.509, 0.9]), best_bold([99.6, 99.8], ".1f", largest=True)
    (['**0.51**', '**0.51**', '0.90'], ['99.6', '**99.8**'])
    """
    best = format(max(values) if largest else min(values), form)
    return [f"**{cell}**" if cell == best else cell for cell in (format(value, form) for value in values)]


def conditions(*packages: str) -> str:
    """When, where and with which versions a page was made: its last lines."""
    root = Path(__file__).resolve().parents[1]
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True)
    others = [f"{name} {version(name)}" for name in ("numpy", "scipy", *packages) if _is_installed(name)]
    versions = ", ".join([f"likely {__version__}", *others])
    where = f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"Made on {time.strftime('%Y-%m-%d')} at commit `{git.stdout.strip()}`: {where}; {versions}.\n"


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def sections_of(path: Path) -> dict[str, str]:
    """The sections that a page has now."""
    text = path.read_text(encoding="utf8") if path.exists() else ""
    found = (part.split("\n", 1) for part in text.split("\n## ")[1:])
    return {title.strip(): body.strip() for title, body in found}


class Page(NamedTuple):
    """A page of sections, each made by a function of whether what takes minutes is wanted."""

    path: Path
    preface: str
    sections: Mapping[str, Callable[[bool], str]]
    data: Path

    def write(self, made: dict[str, str]) -> None:
        """The page with some sections made anew."""
        all_ = {**sections_of(self.path), **made}
        body = "".join(f"\n## {title}\n\n{all_[title]}\n" for title in self.sections if title in all_)
        self.path.write_text(self.preface + body, encoding="utf8")

    def main(self, name: str, about: str | None) -> None:
        """Print each section that is asked for as it is done, and keep the page up to date."""
        parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--only", default="", help="comma list: words that the names of sections contain")
        parser.add_argument("--slow", action="store_true", help="also what takes minutes")
        options = parser.parse_args()
        if not self.data.is_dir():
            sys.exit(f"{name}: no folder {self.data}: set LIKELY_DATA to the folder that holds the data.")
        wanted = [t for t in self.sections if any(word.lower() in t.lower() for word in options.only.split(","))]
        if not wanted:
            sys.exit(f"{name}: --only must name some of {', '.join(self.sections)}, got {options.only}.")
        for title in wanted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                body = self.sections[title](options.slow)
            body = f"{body.rstrip()}\n\n{conditions('scikit-learn', 'statsmodels', 'hmmlearn')}"
            print(f"\n## {title}\n\n{body}", flush=True)
            self.write({title: body})
