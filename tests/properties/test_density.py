from __future__ import annotations

import pytest

from tests.properties.density import PROPERTIES
from tests.properties.members import MEMBERS


@pytest.mark.parametrize(("check", "member"), PROPERTIES.cases(MEMBERS))
def test_density(check, member):
    check(member)
