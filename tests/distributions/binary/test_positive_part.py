"""Cut expansions as laws: the positive part adds up to one, and scores, draws, gaps and sums agree."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.numerics.walsh_hadamard import all_cells

pytestmark = pytest.mark.filterwarnings("ignore:.*not positive")
LAWS = {
    "Walsh": lambda: lk.Walsh.of([0.05, 0.05, 0.05, 0.85], order=1),
    "Bahadur": lambda: lk.Bahadur([0.9, 0.8, 0.9], [1.0, 0, 0, 0, 0.5, -0.3, 0.6]),
    "stack": lambda: lk.Walsh(np.array([[1.0, 0.9, 0.9, 0.2], [1.0, 0.0, 0.0, 0.5]]), 2),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_positive_part_is_a_law(name):
    law = LAWS[name]()
    cells = all_cells(law.dim)
    raw, p = law.value(cells), np.exp(law.log_prob(cells))
    assert (raw < 0).any()
    np.testing.assert_allclose(p, np.maximum(raw, 0) / np.maximum(raw, 0).sum(axis=0), rtol=1e-12)
    gaps = cells.copy()
    gaps[:, -1] = np.nan
    pairs = p.reshape(-1, 2, *p.shape[1:]).sum(axis=1)
    np.testing.assert_allclose(np.exp(law.log_prob(gaps))[::2], pairs, rtol=1e-12)
    assert np.allclose(law.expect(lambda x: np.ones(x.shape[:-1])).value, 1.0)
    drawn = law.sample(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean, atol=0.015)
    np.testing.assert_allclose(law.mean, np.tensordot(p.T, cells, 1), rtol=1e-12)


def test_a_law_against_itself_errs_by_half():
    law = LAWS["Walsh"]()
    assert float(lk.bayes_error(law, law)) == pytest.approx(0.5, abs=1e-12)


def test_beyond_all_cells_sums_are_refused():
    rng = np.random.default_rng(0)
    x = (rng.random((50, 24)) < 0.1).astype(float)
    law = lk.Walsh.fit(x)
    with pytest.raises(lk.DomainError, match="beyond 20 columns"):
        law.expect(lambda x: x[:, 0])
    with pytest.raises(lk.DomainError, match="beyond 20 columns"):
        lk.bayes_error(law, law)


def test_gaps_in_learning_are_told():
    x = np.array([[0.0, np.nan], [1, 1], [0, 1], [1, 0]])
    for law in (lk.Walsh, lk.Bahadur):
        with pytest.warns(lk.FitWarning, match="rows have gaps"):
            law.fit(x)


def test_a_negative_probability_is_named():
    with pytest.raises(lk.DomainError, match=r"-0\.5 in cell 1"):
        lk.Walsh.of([0.5, -0.5, 0.5, 0.5])
