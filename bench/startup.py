"""What the first second costs: `import likely` beside `import numpy`, and the command before it does anything.

    python bench/startup.py

Each in a fresh process, the best of 10, after one that fills the file cache.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import NamedTuple

TIMES = 10


class Measure(NamedTuple):
    """A command, what is subtracted from its time, and the seconds that it should stay within."""

    name: str
    command: list[str]
    above: list[str] | None = None
    goal: float | None = None


class Timed(NamedTuple):
    """Seconds of a measure beside its goal."""

    name: str
    seconds: float
    goal: float | None

    @property
    def verdict(self) -> str:
        """Met, missed, or nothing where no goal was set."""
        if self.goal is None:
            return ""
        return "met" if self.seconds <= self.goal else "MISSED"


def python(code: str) -> list[str]:
    """A fresh interpreter that runs this and ends."""
    return [sys.executable, "-c", code]


def likely(argument: str) -> list[str]:
    """The command, as the script in this environment starts it."""
    return python(f"import sys; sys.argv = ['likely', '{argument}']; from likely.app.cli import main; sys.exit(main())")


NUMPY = python("import numpy")
MEASURES = [
    Measure("interpreter", python("pass")),
    Measure("import numpy", NUMPY),
    Measure("import likely, above numpy", python("import numpy, likely"), above=NUMPY, goal=0.1),
    Measure("likely.Gaussian, above numpy", python("import numpy, likely; likely.Gaussian"), above=NUMPY),
    Measure("likely --version", likely("--version"), goal=0.15),
    Measure("likely --help", likely("--help"), goal=0.3),
]


def seconds(command: list[str]) -> float:
    """Wall time of one fresh process, which must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def best(commands: list[list[str]], times: int = TIMES) -> list[float]:
    """Best time of each; they take turns, so that a busy minute falls on all of them."""
    for command in commands:
        seconds(command)
    rounds = [[seconds(command) for command in commands] for _ in range(times)]
    return [min(column) for column in zip(*rounds, strict=True)]


def measured(measures: list[Measure] = MEASURES, times: int = TIMES) -> list[Timed]:
    """All measures, each with its own base subtracted."""
    commands = [m.command for m in measures]
    took = dict(zip(map(tuple, commands), best(commands, times), strict=True))
    base = {m.name: took[tuple(m.above)] if m.above else 0.0 for m in measures}
    return [Timed(m.name, took[tuple(m.command)] - base[m.name], m.goal) for m in measures]


def rows(timed: list[Timed]) -> list[list[str]]:
    """The table, header first."""
    body = [[t.name, f"{t.seconds:.3f}", f"{t.goal:g}" if t.goal else "", t.verdict] for t in timed]
    return [["start-up", "seconds", "goal", "verdict"], *body]


if __name__ == "__main__":
    for line in rows(measured()):
        print(f"{line[0]:30} {line[1]:>8} {line[2]:>6}  {line[3]}")
