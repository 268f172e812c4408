"""A table of nothing but gaps is refused by every density, a column of them is told of; so are constants."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, FitWarning

ALL = [
    lk.LaplaceDensity, lk.distributions.CauchyDensity, lk.UniformDensity, lk.distributions.TriangularDensity,
    lk.ExponentialDensity,
    lk.distributions.ChiSquareDensity, lk.distributions.VonMisesDensity, lk.NegativeBinomialDensity, lk.GammaDensity,
    lk.BetaDensity,
    lk.BinomialDensity, lk.distributions.BetaBinomialDensity,
]  # fmt: skip


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:.*(trials|spread|constant)")
def test_columns_never_observed_are_reported_and_empty_tables_refused(kind):
    seen = [0.2, 0.4, 0.9] if kind is lk.BetaDensity else [1.0, 2.0, 9.0]
    with pytest.warns(FitWarning, match="x0 was never observed"):
        kind().fit(np.column_stack([np.full(3, np.nan), seen]))
    with pytest.raises(DataError, match="at least one entry"):
        kind().fit(np.full((3, 2), np.nan))


def test_several_constant_columns_are_said_of_in_the_plural():
    with pytest.warns(FitWarning, match="x0, x1 are constant"):
        lk.LaplaceDensity().fit(np.ones((3, 2)))


DENSITIES = [
    lk.BernoulliDensity(), lk.BetaDensity(), lk.distributions.CauchyDensity(), lk.ChowLiuTreeDensity(),
    lk.mixture.ContaminatedDensity(),
    lk.ExponentialDensity(), lk.GammaDensity(), lk.GaussianDensity(), lk.HistogramDensity(), lk.LaplaceDensity(),
    lk.MultinomialDensity(), lk.NegativeBinomialDensity(), lk.KNNDensity(), lk.KernelDensity(),
    lk.PoissonDensity(), lk.StudentTDensity(), lk.UniformDensity(), lk.distributions.VonMisesDensity(),
]  # fmt: skip


@pytest.mark.parametrize("density", DENSITIES, ids=lambda d: type(d).__name__)
def test_a_table_without_an_entry_is_refused(density):
    with pytest.raises(DataError, match=rf"^{type(density).__name__}: at least one entry must have been observed"):
        density.fit(np.full((5, 2), np.nan))


@pytest.mark.parametrize("density", DENSITIES, ids=lambda d: type(d).__name__)
def test_a_column_without_an_entry_is_reported_in_its_name(density):
    X = np.column_stack([[0.0, 1.0, 1.0, 0.0, 1.0], np.full(5, np.nan)])
    X[:, 0] = np.clip(X[:, 0], 0.2, 0.8) if isinstance(density, lk.BetaDensity) else X[:, 0]
    with pytest.warns(FitWarning) as said:
        density.fit(X)
    told = [str(note.message) for note in said if "never observed" in str(note.message)]
    assert len(told) == 1 and told[0].startswith(f"{type(density).__name__}: ")
