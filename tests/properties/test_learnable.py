from __future__ import annotations

import pytest

from tests.properties.learnable import DISTRIBUTIONS
from tests.properties.members import MEMBERS

pytestmark = pytest.mark.filterwarnings("ignore::likely.core.errors.FitWarning")  # one row is constant in all columns


@pytest.mark.parametrize(("distribution", "member"), DISTRIBUTIONS.cases(MEMBERS))
def test_learnable(distribution, member):
    distribution(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("distribution", "member"), DISTRIBUTIONS.cases(MEMBERS, searches_only=True))
def test_learnable_at_length(distribution, member):
    distribution(member)
