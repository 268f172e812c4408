from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.errors import DataError, FitWarning

ALL = [
    lk.LaplaceDensity, lk.CauchyDensity, lk.UniformDensity, lk.TriangularDensity, lk.ExponentialDensity,
    lk.ChiSquareDensity, lk.VonMisesDensity, lk.NegativeBinomialDensity, lk.GammaDensity, lk.BetaDensity,
    lk.BinomialDensity, lk.BetaBinomialDensity,
]  # fmt: skip


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:.*(trials|spread|constant)")
def test_columns_never_observed_are_told_and_empty_tables_refused(kind):
    seen = [0.2, 0.4, 0.9] if kind is lk.BetaDensity else [1.0, 2.0, 9.0]
    with pytest.warns(FitWarning, match="x0 was never observed"):
        kind().fit(np.column_stack([np.full(3, np.nan), seen]))
    with pytest.raises(DataError, match="at least one entry"):
        kind().fit(np.full((3, 2), np.nan))


def test_several_constant_columns_are_said_of_in_the_plural():
    with pytest.warns(FitWarning, match="x0, x1 are constant"):
        lk.LaplaceDensity().fit(np.ones((3, 2)))
