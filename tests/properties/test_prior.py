from __future__ import annotations

import pytest

from tests.properties.pairs import PAIRS
from tests.properties.prior import DISTRIBUTIONS


@pytest.mark.slow
@pytest.mark.parametrize(("distribution", "pair"), DISTRIBUTIONS.cases(PAIRS))
def test_prior(distribution, pair):
    distribution(pair)
