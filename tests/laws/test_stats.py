from __future__ import annotations

import pytest

from tests.laws.members import MEMBERS
from tests.laws.stats import LAWS


@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS))
def test_stats(law, member):
    law(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS, searches_only=True))
def test_stats_at_length(law, member):
    law(member)
