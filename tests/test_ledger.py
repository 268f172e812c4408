"""Every promise has tests that exist, the page says what the ledger says, and a run without one of them fails."""

from __future__ import annotations

import pytest

from tests.ledger import GROUPS, PAGE, PROCESSOR, ROOT, Promise, Watch, functions, load, missing, page, split

pytest_plugins = ("pytester",)

PROMISES = load()


def is_campaign(name: str) -> bool:
    """Whether the function of an id has the marker campaign."""
    file, function, _ = split(name)
    return functions(ROOT / file)[function]


@pytest.mark.slow
def test_every_id_has_a_test():
    assert missing(PROMISES) == []


def test_ids_that_no_file_or_function_has_are_missing():
    some = Promise("answers", "", "", ("tests/no_file.py::test_x", "tests/test_ledger.py::test_no_function[a]"))
    mine = Promise("answers", "", "", ("tests/test_ledger.py::test_every_id_has_a_test[any case]",))
    assert missing([some, mine]) == list(some.tests)


def test_promises_are_complete():
    for p in PROMISES:
        assert p.group in GROUPS and p.promise.endswith(".") and p.measured.endswith("."), p
        assert "|" not in p.promise + p.measured + p.campaign_measured, p
        assert p.tests and len({*p.tests, *p.campaign}) == len(p.tests) + len(p.campaign), p
        assert not any(is_campaign(name) for name in p.tests), p
        for name in p.campaign:
            assert name == PROCESSOR or is_campaign(name) or split(name)[2], p  # a case may have its own marker
        assert p.campaign_measured or not p.campaign, p
    assert len({p.promise for p in PROMISES}) == len(PROMISES)


def test_the_page_is_what_the_ledger_makes_of_it():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text, PROMISES), "python -m tests.ledger writes it anew"
    assert all(f"\n| {p.promise} | " in text for p in PROMISES)


OLD = """# Title

<!-- ledger: answers -->
| stale |
<!-- end of ledger -->

text

<!-- ledger: files -->
<!-- end of ledger -->
end
"""
NEW = """# Title

<!-- ledger: answers -->

| promise | measured | kept by |
|---|---|---|
| A. | to 1e-9. Campaign (2026-01-31): to 1e-10. | `tests/a.py` (2), campaign: `tests/a.py` (1) |

<!-- end of ledger -->

text

<!-- ledger: files -->

| promise | measured | kept by |
|---|---|---|
| B. | once. | `tests/b.py` (1), `tests/c.py` (1) |

<!-- end of ledger -->
end
"""


def test_tables_stand_between_their_marks_and_the_rest_stays():
    one = Promise("answers", "A.", "to 1e-9.", ("tests/a.py::a", "tests/a.py::b[1]", "tests/a.py::b[2]"), "to 1e-10.",
                  ("tests/a.py::c",))  # fmt: skip
    two = Promise("files", "B.", "once.", ("tests/b.py::a", "tests/c.py::a"))
    passed = {"tests/a.py": "2026-01-31"}
    assert page(OLD, [two, one], passed) == NEW == page(NEW, [one, two], passed)


# ---------------------------------------------------------------- a whole run

SUITE = """
import pytest

@pytest.mark.parametrize("x", [1, 2])
def test_cases(x):
    assert x == 1

def test_passes(): pass

def test_fails(): assert False

@pytest.mark.skip(reason="no data: set LIKELY_DATA")
def test_data(): pass

@pytest.fixture
def folder():
    pytest.skip("no data: set LIKELY_DATA")

def test_data_of_a_fixture(folder): pass

@pytest.mark.skip(reason="needs a printer")
def test_printer(): pass

@pytest.mark.xfail
def test_expected(): assert False
"""
KEPT = ("test_cases", "test_cases[1]", "test_cases[*]", "test_passes")
UNTRIED = ("test_data", "test_data_of_a_fixture")
UNKEPT = ("test_cases[2]", "test_cases[1*2]", "test_fails", "test_printer", "test_expected", "test_gone")


@pytest.fixture
def watched(pytester, monkeypatch):
    """Run the suite above with some ids in the ledger: the plugin, and what pytest printed and returned."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=SUITE)

    def run(names, *args):
        watch = Watch(f"test_it.py::{name}" for name in names)
        return watch, pytester.runpytest_inprocess(*args, plugins=[watch])

    return run


def test_ids_of_which_no_case_passed_are_listed(watched):
    watch, ran = watched([*KEPT, *UNTRIED, *UNKEPT])
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    assert watch.unkept() == [f"test_it.py::{name}" for name in UNKEPT]
    assert watch.untried() == [f"test_it.py::{name}" for name in UNTRIED]
    ran.stdout.fnmatch_lines(["*not tested for want of the real data*", "test_it.py::test_data",
                              "*promises of which no test passed*", "test_it.py::test_fails", "test_it.py::test_gone",
                              "*tests/ledger.toml*"])  # fmt: skip


def test_a_run_of_which_nothing_else_failed_fails_for_an_id_that_did_not_run(watched):
    _, ran = watched(["test_passes", "test_gone"], "-k", "passes")
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.assert_outcomes(passed=1, deselected=7)


def test_a_run_that_keeps_all_passes_and_is_quiet(watched):
    _, ran = watched(["test_passes", "test_cases[1]"], "-k", "passes or 1")
    assert ran.ret == pytest.ExitCode.OK
    ran.stdout.no_fnmatch_line("=* promises *")


def test_missing_data_are_allowed_and_noted(watched):
    _, ran = watched(["test_passes", *UNTRIED], "-k", "passes or data")
    assert ran.ret == pytest.ExitCode.OK
    ran.stdout.fnmatch_lines(["*not tested for want of the real data*"])
    ran.stdout.no_fnmatch_line("*no test passed*")


def test_a_run_without_tests_says_nothing_of_promises(watched):
    _, ran = watched(["test_passes", "test_gone"], "-k", "nothing_of_that_name")
    assert ran.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    ran.stdout.no_fnmatch_line("=* promises *")
