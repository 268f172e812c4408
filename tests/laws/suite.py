"""A suite is the list of laws that every member of a role obeys; a law is a function of a member that asserts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

Law = Callable[[Any], None]


def always(member: Any) -> bool:
    return True


@dataclass
class Suite:
    """Laws, each with the members to which it applies; what does not apply is not collected, never skipped."""

    laws: list[tuple[Law, Callable[[Any], bool], tuple[Any, ...]]] = field(default_factory=list)

    def law(self, when: Callable[[Any], bool] = always, marks: tuple[Any, ...] = ()) -> Callable[[Law], Law]:
        """Add a law, for those members for whom `when` holds."""

        def add(f: Law) -> Law:
            self.laws.append((f, when, marks))
            return f

        return add

    def cases(self, members: Iterable[Any]) -> list[Any]:
        """(law, member) for pytest.mark.parametrize."""
        return [
            pytest.param(f, m, id=f"{m.name}-{f.__name__}", marks=marks)
            for m in members
            for f, when, marks in self.laws
            if when(m)
        ]

    def check(self, member: Any) -> int:
        """Hold a member to every law that applies to it; returns how many there were."""
        mine = [f for f, when, _ in self.laws if when(member)]
        for f in mine:
            f(member)
        return len(mine)
