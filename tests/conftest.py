"""What all tests share: the data folder, a generator, and how hard Hypothesis searches."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tests import ledger

ROOT = Path(__file__).resolve().parents[1]

pytest.register_assert_rewrite("tests.laws")

settings.register_profile("ci", derandomize=True, max_examples=50, deadline=None, print_blob=True)
settings.register_profile("campaign", max_examples=1000, deadline=None, print_blob=True)
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


FEW = 8  # cases of one test that --few keeps of many, at least


def pytest_addoption(parser: pytest.Parser) -> None:
    """`./run quick` asks for --few: of a test with many cases some, spread evenly, and of the rest a tenth.

    `./run test` asks for --ledger: every promise of tests/ledger.toml must have had a test that passed.
    """
    parser.addoption("--few", action="store_true", help="of tests with many cases, run about a tenth of them")
    parser.addoption("--ledger", action="store_true", help="fail if a test that the ledger names did not pass")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--ledger") and not hasattr(config, "workerinput"):  # workers report to the controller
        config.pluginmanager.register(ledger.Watch(name for p in ledger.load() for name in p.tests), "ledger")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--few"):
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.split("[", 1)[0], []).append(item)
    kept = {id(item) for cases in tests.values() for item in _spread(cases)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def _spread(cases: list[pytest.Item]) -> list[pytest.Item]:
    count = min(len(cases), FEW + len(cases) // 10)
    return [cases[i] for i in np.linspace(0, len(cases) - 1, count).astype(int)]
