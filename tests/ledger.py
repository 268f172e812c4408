"""The ledger of promises: what is promised, what was measured, and which tests keep it.

`tests/ledger.toml` is the ledger. `python -m tests.ledger` writes its tables into docs/development/reliability.md.
`pytest --ledger` fails a whole run in which a promise had a test that did not pass.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "tests" / "ledger.toml"
CAMPAIGN = ROOT / "tests" / "campaign.toml"  # when each piece of the campaign passed
PROCESSOR = "another-processor"  # the piece that is no test file: all ordinary tests, as on an older processor
PAGE = ROOT / "docs" / "development" / "reliability.md"
GROUPS = ("answers", "files")
TABLE = re.compile(r"(?<=<!-- ledger: )(\w+)( -->\n).*?(?=<!-- end of ledger -->)", re.DOTALL)
NO_DATA = "no data"  # how the reason begins for which a test without the real data is skipped


@dataclass(frozen=True)
class Promise:
    """One row of the ledger.

    An id names a test function, `tests/x/test_y.py::test_z`, or some of its cases, `tests/x/test_y.py::test_z[case]`,
    where `*` in the case stands for any text.
    """

    group: str  # the table in which it stands
    promise: str
    measured: str  # by the tests that ./run test runs
    tests: tuple[str, ...]
    campaign_measured: str = ""
    campaign: tuple[str, ...] = ()  # ids of tests with the marker campaign, or another piece of it


def load(path: Path = LEDGER) -> list[Promise]:
    """All promises, in the order of the file.

    >>> {promise.group for promise in load()} == set(GROUPS)
    True
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["promise"]
    return [Promise(**{name: tuple(v) if isinstance(v, list) else v for name, v in e.items()}) for e in entries]


def split(name: str) -> tuple[str, str, str]:
    """File, function and case of an id; the case is empty where there is none.

    >>> split("tests/properties/test_stats.py::test_stats[Gaussian-chunks_are_the_batch]")
    ('tests/properties/test_stats.py', 'test_stats', 'Gaussian-chunks_are_the_batch')
    """
    function, _, case = name.partition("[")
    file, _, function = function.partition("::")
    return file, function, case.removesuffix("]")


def whole(name: str) -> str:
    """The id of the test function to which a case belongs.

    >>> whole("tests/x.py::test_y[a-b]")
    'tests/x.py::test_y'
    """
    return name.partition("[")[0]


@cache
def functions(path: Path) -> dict[str, bool]:
    """The test functions of a file, and whether each has the marker campaign; methods are called Class::test.

    >>> functions(ROOT / "tests/io/test_kill.py")
    {'test_ten_kills_leave_a_readable_file': False, 'test_two_hundred_kills_leave_a_readable_file': True}
    """
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    homes = [("", tree.body), *((f"{n.name}::", n.body) for n in tree.body if isinstance(n, ast.ClassDef))]
    return {
        f"{home}{n.name}": any(ast.unparse(d) == "pytest.mark.campaign" for d in n.decorator_list)
        for home, body in homes
        for n in body
        if isinstance(n, ast.FunctionDef) and n.name.startswith("test")
    }


def missing(promises: Iterable[Promise] | None = None) -> list[str]:
    """Ids of the ledger that no test has: the file or the function is not there.

    Files are read, not run, so the case in brackets is not checked.

    >>> gone = Promise("answers", "It flies.", "once", ("tests/ledger.py::test_flight",))
    >>> missing([gone])
    ['tests/ledger.py::test_flight']
    """
    ids = (name for p in (load() if promises is None else promises) for name in (*p.tests, *p.campaign))
    return [name for name in ids if name != PROCESSOR and split(name)[1] not in functions(ROOT / split(name)[0])]


# --------------------------------------------------------------------- the page


def dates(path: Path = CAMPAIGN) -> dict[str, str]:
    """The days on which pieces of the campaign passed last."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {piece: entry["date"] for piece, entry in entries.items()}


def page(text: str, promises: Iterable[Promise] | None = None, passed: dict[str, str] | None = None) -> str:
    """The text of the page with the tables of the ledger between their marks; `passed` as `dates` gives it.

    >>> one = Promise("answers", "Sums add.", "to 1e-12", ("tests/a.py::test_b", "tests/a.py::test_c"))
    >>> print(page("<!-- ledger: answers -->\\nold\\n<!-- end of ledger -->", [one]))
    <!-- ledger: answers -->
    <BLANKLINE>
    | promise | measured | kept by |
    |---|---|---|
    | Sums add. | to 1e-12 | `tests/a.py` (2) |
    <BLANKLINE>
    <!-- end of ledger -->
    """
    rows = load() if promises is None else list(promises)
    days = dates() if passed is None else passed
    return TABLE.sub(lambda m: f"{m[1]}{m[2]}\n{table((p for p in rows if p.group == m[1]), days)}\n\n", text)


def table(promises: Iterable[Promise], passed: dict[str, str]) -> str:
    """Promises as a table: what is promised, what was measured, and the files of the tests that keep it."""
    lines = ["| promise | measured | kept by |", "|---|---|---|"]
    for p in promises:
        lines.append(f"| {p.promise} | {measured(p, passed)} | {kept_by(p)} |")
    return "\n".join(lines)


def measured(p: Promise, passed: dict[str, str]) -> str:
    """What the ordinary tests and the campaign measured, in one cell, with the day since which the campaign passes.

    >>> measured(Promise("files", "", "20.", (), "200.", ("tests/a.py::b",)), {"tests/a.py": "2026-01-31"})
    '20. Campaign (2026-01-31): 200.'
    """
    if not p.campaign_measured:
        return p.measured
    pieces = {split(name)[0] for name in p.campaign}
    day = min(passed[piece] for piece in pieces) if pieces and pieces <= passed.keys() else ""
    return f"{p.measured} Campaign{f' ({day})' if day else ''}: {p.campaign_measured}"


def kept_by(p: Promise) -> str:
    """Files with the number of test functions, those of the campaign named as such.

    >>> kept_by(Promise("files", "", "", ("tests/a.py::b[1]", "tests/a.py::b[2]"), campaign=("tests/c.py::d",)))
    '`tests/a.py` (1), campaign: `tests/c.py` (1)'
    """
    campaign = counted(p.campaign)
    return ", ".join([*counted(p.tests), *([f"campaign: {campaign[0]}", *campaign[1:]] if campaign else [])])


def counted(ids: Iterable[str]) -> list[str]:
    """Files in order of first mention, each with the number of its test functions."""
    each = dict.fromkeys(whole(name) for name in ids if name != PROCESSOR)
    files = [split(name)[0] for name in each]
    return [f"`{file}` ({files.count(file)})" for file in dict.fromkeys(files)]


# ---------------------------------------------------------------- a whole run


class Watch:
    """A pytest plugin: fails a session in which a test id of the ledger had no case that passed.

    A test that was skipped for want of the real data is allowed and noted. Reports of workers arrive here as well.

    >>> watch = Watch(["tests/a.py::test_b", "tests/a.py::test_c[2*]"])
    >>> watch.take("tests/a.py::test_b[x]", passed=True)
    >>> watch.take("tests/a.py::test_c[1-y]", passed=True)
    >>> watch.unkept()
    ['tests/a.py::test_c[2*]']
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = list(dict.fromkeys(ids))
        self.functions = {whole(name) for name in self.ids}
        self.passed: dict[str, set[str]] = {}  # cases of each function
        self.without_data: dict[str, set[str]] = {}
        self.ended = False

    def take(self, name: str, passed: bool) -> None:
        """Note that a test passed or, if not, that its data were missing."""
        if whole(name) in self.functions:
            (self.passed if passed else self.without_data).setdefault(whole(name), set()).add(split(name)[2])

    def unkept(self) -> list[str]:
        """Ids of which no case passed, but for those whose data were missing."""
        return [name for name in self.ids if not is_among(name, self.passed) and not is_among(name, self.without_data)]

    def untried(self) -> list[str]:
        """Ids of which no case passed because the data were missing."""
        return [name for name in self.ids if not is_among(name, self.passed) and is_among(name, self.without_data)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.take(report.nodeid, passed=True)
        elif report.skipped and skipped_for(report).startswith(NO_DATA):
            self.take(report.nodeid, passed=False)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self.ended and self.unkept():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        unkept, untried = (self.unkept(), self.untried()) if self.ended else ([], [])
        if untried:
            terminalreporter.section("promises that were not tested for want of the real data")
            terminalreporter.write_line("\n".join(untried))
        if unkept:
            terminalreporter.section("promises of which no test passed", red=True)
            terminalreporter.write_line("\n".join(unkept))
            terminalreporter.write_line("tests/ledger.toml names them: mend the test, or the id if it was renamed")


def skipped_for(report: pytest.TestReport) -> str:
    """The reason for which a test was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return reason.removeprefix("Skipped: ")


def is_among(name: str, cases: dict[str, set[str]]) -> bool:
    """Whether some of these cases is one that the id names; an id without a case names all."""
    found, wanted = cases.get(whole(name)), split(name)[2]
    if not found or not wanted:
        return bool(found)
    pattern = re.compile(".*".join(map(re.escape, wanted.split("*"))), re.DOTALL)
    return any(pattern.fullmatch(case) for case in found)


def main() -> int:
    """Write the tables of the ledger into docs/development/reliability.md, unless an id has no test."""
    gone = missing()
    if gone:
        print("no such test:", *gone, sep="\n", file=sys.stderr)
        return 1
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
