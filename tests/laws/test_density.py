from __future__ import annotations

import pytest

from tests.laws.density import LAWS
from tests.laws.members import MEMBERS


@pytest.mark.parametrize(("law", "member"), LAWS.cases(MEMBERS))
def test_density(law, member):
    law(member)
