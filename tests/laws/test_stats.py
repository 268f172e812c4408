from __future__ import annotations

import pytest

from tests.laws.stats import LAWS
from tests.laws.members import MEMBERS


@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS))
def test_stats(law, member):
    law(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS, searches_only=True))
def test_stats_at_length(law, member):
    law(member)
