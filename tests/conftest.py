"""What all tests share: the data folder, a generator, and how hard Hypothesis searches."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from likely.core import job_size
from tests import ledger
from tests.cases import spread

ROOT = Path(__file__).resolve().parents[1]

pytest.register_assert_rewrite("tests.properties")

settings.register_profile("ci", derandomize=True, max_examples=30, deadline=None, print_blob=True)
settings.register_profile("campaign", max_examples=200, deadline=None, print_blob=True)
settings.load_profile("ci")  # ./run campaign asks for the other by --hypothesis-profile


def find_data() -> Path | None:
    """The folder of real data: LIKELY_DATA, else ../shared/data beside the project, else None."""
    asked = os.environ.get("LIKELY_DATA")
    folder = Path(asked) if asked else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; tests that need it are skipped where it is missing."""
    folder = find_data()
    if folder is None:
        pytest.skip("no data: set LIKELY_DATA to the folder that holds them")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that draws the same numbers in every test of every run."""
    return np.random.default_rng(20260)


@pytest.fixture
def compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fits run compiled, too, as with LIKELY_COMPILE=always: the same numbers to 1e-12 in a tenth of the time."""
    monkeypatch.setattr(job_size, "SMALL", 0.0)
    monkeypatch.setattr(job_size, "SHORT", 0.0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`./run test` asks for --ledger, `./run quick` for --few."""
    parser.addoption("--few", action="store_true", help="of tests with many cases, run a few, spread evenly")
    parser.addoption("--ledger", action="store_true", help="fail if a test that the ledger names did not pass")


def pytest_configure(config: pytest.Config) -> None:
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in usual.items():  # ignored in the background of a shell and under nohup; commands inherit it
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if config.getoption("--ledger") and not hasattr(config, "workerinput"):  # workers report to the controller
        config.pluginmanager.register(ledger.Watch(name for p in ledger.load() for name in p.tests), "ledger")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cases beyond those that `some_cases(n)` leaves are the campaign's; --few leaves fewer of every test."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.split("[", 1)[0], []).append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("some_cases")
        if mark is not None:
            _leave(cases, mark.args[0])
    if config.getoption("--few"):
        for cases in tests.values():
            ordinary = [case for case in cases if case.get_closest_marker("campaign") is None]
            _leave(ordinary, 2 + len(ordinary) // 30)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: tens of thousands of objects that stay."""
    gc.collect()
    gc.freeze()


def _leave(cases: list[pytest.Item], count: int) -> None:
    """Leave so many of the cases, spread evenly, to the ordinary run."""
    if len(cases) > count:
        kept = spread([_values(case) for case in cases], count)
        for i, case in enumerate(cases):
            if i not in kept:
                case.add_marker("campaign")


def _values(case: pytest.Item) -> set[tuple[str, int]]:
    """The values of a case's parameters; those of equal place in a list of values are one object in all cases."""
    return {(name, id(value)) for name, value in case.callspec.params.items()} if hasattr(case, "callspec") else set()
