"""Truncated expansions: the positive part sums to one, and log p, draws, missing values and sums agree."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.numerics.walsh_hadamard import all_cells

pytestmark = pytest.mark.filterwarnings("ignore:.*not positive")
DISTRIBUTIONS = {
    "Walsh": lambda: lk.distributions.Walsh.of([0.05, 0.05, 0.05, 0.85], order=1),
    "Bahadur": lambda: lk.distributions.Bahadur([0.9, 0.8, 0.9], [1.0, 0, 0, 0, 0.5, -0.3, 0.6]),
    "stack": lambda: lk.distributions.Walsh(np.array([[1.0, 0.9, 0.9, 0.2], [1.0, 0.0, 0.0, 0.5]]), 2),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_positive_part_is_a_distribution(name):
    distribution = DISTRIBUTIONS[name]()
    cells = all_cells(distribution.dim)
    raw, p = distribution.value(cells), np.exp(distribution.log_prob(cells))
    assert (raw < 0).any()
    np.testing.assert_allclose(p, np.maximum(raw, 0) / np.maximum(raw, 0).sum(axis=0), rtol=1e-12)
    gaps = cells.copy()
    gaps[:, -1] = np.nan
    pairs = p.reshape(-1, 2, *p.shape[1:]).sum(axis=1)
    np.testing.assert_allclose(np.exp(distribution.log_prob(gaps))[::2], pairs, rtol=1e-12)
    assert np.allclose(distribution.expect(lambda x: np.ones(x.shape[:-1])).value, 1.0)
    drawn = distribution.sample(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), distribution.mean, atol=0.015)
    np.testing.assert_allclose(distribution.mean, np.tensordot(p.T, cells, 1), rtol=1e-12)


def test_a_distribution_against_itself_errs_by_half():
    distribution = DISTRIBUTIONS["Walsh"]()
    assert float(lk.bayes_error(distribution, distribution)) == pytest.approx(0.5, abs=1e-12)


def test_beyond_all_cells_expansions_are_refused():
    x = (np.random.default_rng(0).random((50, 24)) < 0.1).astype(float)
    for make in (
        lk.distributions.Walsh.blank,
        lk.distributions.Bahadur.blank,
        lk.distributions.WalshDensity().fit,
        lk.distributions.BahadurDensity().fit,
    ):
        with pytest.raises(lk.DomainError, match=r"at most 20 columns .*order 2 of 24 columns: use ChowLiuTreeDensity"):
            make(x)
    with pytest.raises(lk.DomainError, match=r"order 1 of 24 columns: use ChowLiuTreeDensity or BernoulliDensity"):
        lk.distributions.Walsh.blank(x, order=1)  # it may be negative, too
    independent = lk.distributions.Bahadur.fit(x, order=1)
    drawn = independent.sample(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.mean(axis=0), x.mean(axis=0), atol=0.02)


def test_missing_values_in_learning_are_reported():
    x = np.array([[0.0, np.nan], [1, 1], [0, 1], [1, 0]])
    for distribution in (lk.distributions.Walsh, lk.distributions.Bahadur):
        with pytest.warns(lk.FitWarning, match="missing values: means are over"):
            distribution.fit(x)


def test_a_negative_probability_is_named():
    with pytest.raises(lk.DomainError, match=r"-0\.5 in cell 1"):
        lk.distributions.Walsh.of([0.5, -0.5, 0.5, 0.5])
