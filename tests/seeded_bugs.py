"""Bugs that are put into a copy of the source, one at a time: the tests of every run must catch each of them.

`tests/seeded_bugs.toml` lists them. `python -m tests.seeded_bugs [id ...]` runs them and prints what caught each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "likely"
BUGS = ROOT / "tests" / "seeded_bugs.toml"
OTHER_SOURCE = 70  # exit code of a run that did not import the copy

# pytest in a process of its own, which writes the ids of failed tests as JSON; arguments: copy, file of ids, pytest's
RUN = f"""
import json, pathlib, sys
copy, failed, *arguments = sys.argv[1:]
try:
    import likely
except BaseException:
    sys.exit({OTHER_SOURCE})
if not pathlib.Path(likely.__file__).is_relative_to(copy):
    sys.exit({OTHER_SOURCE})
import pytest

class Failed:
    ids = []
    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.failed:
            self.ids.append(report.nodeid)

code = pytest.main(arguments, plugins=[Failed()])
pathlib.Path(failed).write_text(json.dumps(Failed.ids))
sys.exit(code)
"""


@dataclass(frozen=True)
class Bug:
    """One edit of one file, and the tests that a developer would run for its subject."""

    id: str
    subject: str
    file: str  # under src/likely
    old: str  # occurs once in the file
    new: str
    breaks: str
    tests: tuple[str, ...]  # files or folders under tests

    def put_into(self, package: Path) -> None:
        """Make the edit in a copy of the package."""
        path = package / Path(self.file).relative_to("src/likely")
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file}: {self.old!r} occurs {text.count(self.old)} times"
        edited = text.replace(self.old, self.new)
        compile(edited, str(path), "exec")
        path.write_text(edited, encoding="utf-8")


@dataclass(frozen=True)
class Outcome:
    """What pytest answered, and the first test that failed."""

    code: int
    failed: str
    output: str
    seconds: float

    @property
    def caught(self) -> bool:
        """A test ran and failed; errors of collection or of usage have other codes."""
        return self.code == 1 and bool(self.failed)


def load(path: Path = BUGS) -> list[Bug]:
    """All bugs, in the order of the file.

    >>> len({bug.id for bug in load()}) == len(load())
    True
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["bug"]
    return [Bug(**{name: tuple(v) if isinstance(v, list) else v for name, v in e.items()}) for e in entries]


def run_tests(tests: tuple[str, ...], folder: Path, more: tuple[str, ...] = ()) -> Outcome:
    """Run tests of this repository against the package in a folder, up to the first failure."""
    ids = folder / "failed.json"
    ids.unlink(missing_ok=True)
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", *more, *tests]
    env = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    env = {name: value for name, value in env.items() if not name.startswith(("PYTEST_", "NUMBA_CACHE_DIR"))}
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), str(ids), *arguments],
        cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    failed = json.loads(ids.read_text()) if ids.exists() else []
    return Outcome(done.returncode, failed[0] if failed else "", done.stdout, perf_counter() - began)


def seeded(bug: Bug, more: tuple[str, ...] = ()) -> Outcome:
    """Run the bug's tests against a copy of the source that has the bug.

    The copy keeps file times, so that compiled loops come from the cache but for those of the edited file. A test that
    fails without the bug, too, does not count: it is run once more without.
    """
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at).resolve()
        package = shutil.copytree(SOURCE, folder / "likely")
        bug.put_into(package)
        found = run_tests(bug.tests, folder, more)
        if found.caught:
            shutil.copy2(ROOT / bug.file, package / Path(bug.file).relative_to("src/likely"))
            sound = run_tests((found.failed,), folder, more)
            if sound.code != 0:
                return Outcome(sound.code, "", f"{found.failed} fails without the bug:\n{sound.output}", found.seconds)
    return found


def main(names: list[str]) -> int:
    """Run the bugs of these ids, or all; 1 if one of them survives."""
    survivors = 0
    for bug in load():
        if names and bug.id not in names:
            continue
        found = seeded(bug)
        survivors += not found.caught
        told = found.failed if found.caught else f"SURVIVES (exit code {found.code})\n{found.output[-2000:]}"
        print(f"{bug.id} · {bug.file} · {bug.breaks} · {told} · {found.seconds:.0f} s", flush=True)
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
