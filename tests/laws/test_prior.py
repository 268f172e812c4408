from __future__ import annotations

import pytest

from tests.laws.pairs import PAIRS
from tests.laws.prior import LAWS


@pytest.mark.slow
@pytest.mark.parametrize(("law", "pair"), LAWS.cases(PAIRS))
def test_prior(law, pair):
    law(pair)
