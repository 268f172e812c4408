from __future__ import annotations

import pytest

from tests.properties.learnable import PROPERTIES
from tests.properties.members import MEMBERS

pytestmark = pytest.mark.filterwarnings("ignore::likely.core.errors.FitWarning")  # one row is constant in all columns


@pytest.mark.parametrize(("check", "member"), PROPERTIES.cases(MEMBERS))
def test_learnable(check, member):
    check(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("check", "member"), PROPERTIES.cases(MEMBERS, searches_only=True))
def test_learnable_at_length(check, member):
    check(member)
