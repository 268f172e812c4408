from __future__ import annotations

import pytest

from tests.properties.members import MEMBERS
from tests.properties.stats import PROPERTIES


@pytest.mark.parametrize(("check", "member"), PROPERTIES.cases(MEMBERS))
def test_stats(check, member):
    check(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("check", "member"), PROPERTIES.cases(MEMBERS, searches_only=True))
def test_stats_at_length(check, member):
    check(member)
