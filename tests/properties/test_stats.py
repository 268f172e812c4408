from __future__ import annotations

import pytest

from tests.properties.members import MEMBERS
from tests.properties.stats import DISTRIBUTIONS


@pytest.mark.parametrize(("distribution", "member"), DISTRIBUTIONS.cases(MEMBERS))
def test_stats(distribution, member):
    distribution(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("distribution", "member"), DISTRIBUTIONS.cases(MEMBERS, searches_only=True))
def test_stats_at_length(distribution, member):
    distribution(member)
