from __future__ import annotations

import pytest

from tests.properties.density import DISTRIBUTIONS
from tests.properties.members import MEMBERS


@pytest.mark.parametrize(("distribution", "member"), DISTRIBUTIONS.cases(MEMBERS))
def test_density(distribution, member):
    distribution(member)
