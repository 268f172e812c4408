from __future__ import annotations

import pytest

from tests.laws.learnable import LAWS
from tests.laws.members import MEMBERS

pytestmark = pytest.mark.filterwarnings("ignore::likely.core.errors.FitWarning")  # one row is constant in all columns


@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS))
def test_learnable(law, member):
    law(member)


@pytest.mark.campaign
@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS, searches_only=True))
def test_learnable_at_length(law, member):
    law(member)
