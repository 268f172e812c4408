from __future__ import annotations

import pytest

from tests.properties.pairs import PAIRS
from tests.properties.prior import PROPERTIES


@pytest.mark.slow
@pytest.mark.parametrize(("check", "pair"), PROPERTIES.cases(PAIRS))
def test_prior(check, pair):
    check(pair)
