"""A suite is the list of properties of every member of a role; a property is a function of a member that asserts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from tests.cases import rest_in_campaign

Property = Callable[[Any], None]
PHASES = tuple(Phase)  # what a search does; the test of seeded faults needs no smallest example


def search(*strategies: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """`given`, with 6 examples in CI, where every property runs for every member; all in the campaign."""
    asked = settings().max_examples
    return lambda f: settings(max_examples=asked if asked > 100 else 6, phases=PHASES)(given(*strategies)(f))


def always(member: Any) -> bool:
    return True


@dataclass(frozen=True)
class Entry:
    """A property, the members to whom it applies, and whether it searches for counterexamples."""

    check: Property
    when: Callable[[Any], bool]
    marks: tuple[Any, ...]
    searches: bool
    by_class: bool  # True: what it looks at depends on the class of the value, its kind, and whether it is a stack


@dataclass
class Suite:
    """Properties, each with the members to which it applies; what does not apply is not collected, never skipped."""

    entries: list[Entry] = field(default_factory=list)

    def add(
        self, when: Callable[[Any], bool] = always, marks: tuple[Any, ...] = (), searches: bool = False,
        by_class: bool = False,
    ) -> Callable[[Property], Property]:  # fmt: skip
        """Add a property, for those members for whom `when` holds."""

        def added(f: Property) -> Property:
            self.entries.append(Entry(f, when, marks, searches, by_class))
            return f

        return added

    def cases(self, members: Iterable[Any], searches_only: bool = False) -> list[Any]:
        """(property, member) for pytest.mark.parametrize; those `by_class` once per class, all in the campaign."""
        by_class = {e.check for e in self.entries if e.by_class}
        found = [
            pytest.param(e.check, m, id=f"{m.name}-{e.check.__name__}", marks=e.marks)
            for m in members
            for e in self.entries
            if e.when(m) and (e.searches or not searches_only)
        ]
        return rest_in_campaign(found, lambda check, m: (check, *_path(m)) if check in by_class else None)

    def check(self, member: Any) -> int:
        """Hold a member to every property that applies to it; returns how many there were."""
        mine = [e.check for e in self.entries if e.when(member)]
        for check in mine:
            check(member)
        return len(mine)


def _path(member: Any) -> tuple[Any, ...]:
    """What decides which code a member takes: its class, whether it is a stack, and the kind of its covariances."""
    value = member.value
    return type(value), member.stack, getattr(value, "kind", None), getattr(value, "tied", None)
