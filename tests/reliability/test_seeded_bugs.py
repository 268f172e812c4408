"""What runs every time catches bugs over all subjects: each is put into a copy of the source, one at a time."""

from __future__ import annotations

import pytest

from tests.seeded_bugs import ROOT, load, seeded

BUGS = load()


def test_every_bug_can_still_be_put_in() -> None:
    """A text that a change of the source removed is noticed here: the bug is then written anew for what replaced it."""
    for bug in BUGS:
        text = (ROOT / bug.file).read_text(encoding="utf-8")
        assert text.count(bug.old) == 1 and bug.new != bug.old, bug.id
        assert bug.tests and all((ROOT / name.split("::")[0]).exists() for name in bug.tests), bug.id
    assert len(BUGS) >= 50 and len({bug.id for bug in BUGS}) == len(BUGS)


@pytest.mark.campaign
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.id)
def test_a_seeded_bug_is_caught(bug) -> None:
    found = seeded(bug)
    told = f"No test of {bug.tests} noticed (exit code {found.code}):\n{found.output[-3000:]}"
    assert found.caught, f"{bug.breaks} {told}"
