"""Equal rows: copies of one observation share a place, rows that are equal by chance do not."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.columns import Columns
from likely.core.ragged import Ragged
from likely.estimation.novelty.duplicate_rows import ranks
from likely.estimation.novelty.novelty_threshold import _some, folds

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")
RNG = np.random.default_rng(0)
WORDS = np.array(["red", "green", "blue"], dtype=object)
CONTINUOUS = {
    "numbers": RNG.normal(size=(40, 3)),
    "one column": RNG.normal(size=(40, 1)),
    "rounded": RNG.normal(size=(60, 3)).round(1),
    "a switch": np.column_stack([RNG.normal(size=40), RNG.integers(0, 2, 40)]),
    "gaps": np.where(RNG.random((60, 4)) < 0.1, np.nan, RNG.normal(size=(60, 4))),
    "parts": Columns(size=RNG.normal(size=(40, 2)), color=WORDS[RNG.integers(0, 3, 40)]),
}
DISCRETE = {
    "codes": RNG.integers(0, 4, (300, 2)),
    "codes as floats": RNG.integers(0, 4, (300, 3)).astype(float),
    "ages": RNG.integers(18, 70, (300, 1)),
    "half points": RNG.integers(0, 10, (300, 1)) / 2,
    "percentages": RNG.binomial(100, 0.4, (400, 1)) / 100,
    "words": WORDS[RNG.integers(0, 3, (300, 2))],
    "parts": Columns(grade=RNG.integers(0, 5, 300), color=WORDS[RNG.integers(0, 3, 300)]),
    "many zeros": np.where(RNG.random((300, 1)) < 0.5, 0.0, RNG.normal(size=(300, 1))),
}


def repeated(x, times):
    return x[np.repeat(np.arange(len(x)), times)]


@pytest.mark.parametrize("name", list(CONTINUOUS))
@pytest.mark.parametrize("times", [2, 3, 10])
def test_copies_share_a_place(name, times):
    x = CONTINUOUS[name]
    np.testing.assert_array_equal(ranks(repeated(x, times)), np.repeat(ranks(x), times))
    assert len(np.unique(ranks(x))) == len(x)  # without copies every row has its own
    assert len(np.unique(folds(repeated(x, times)))) == 10  # and no fold is empty


@pytest.mark.parametrize("name", list(DISCRETE))
def test_rows_that_are_equal_by_chance_do_not(name):
    x = DISCRETE[name]
    assert sorted(ranks(x).tolist()) == list(range(len(x)))


def test_sequences_and_sparse_rows():
    sparse = pytest.importorskip("scipy.sparse")
    for same, x in ((True, RNG.normal(size=(30, 4))), (False, RNG.integers(0, 2, (30, 4)))):
        every = repeated(x, 3)
        for rows in (sparse.csr_array(every), Ragged.of([row[:, None] for row in every])):
            assert (len(np.unique(ranks(rows))) == 30) == same


def test_some_of_many_rows_are_taken_with_all_their_copies():
    x = RNG.normal(size=(300, 2))
    for times in (1, 3):
        taken = np.bincount(np.repeat(np.arange(300), times)[_some(repeated(x, times), 100 * times)], minlength=300)
        assert set(taken.tolist()) == {0, times} and np.count_nonzero(taken) == 100


@pytest.mark.slow
@pytest.mark.parametrize("density", [lk.GaussianDensity("full"), lk.KernelDensity()])
def test_copies_of_rows_do_not_raise_the_rate_of_false_alarms(density):
    """Three copies of each of 40 rows in 8 columns: 22 % of new rows were novel where 5 % was stated."""
    rates = {1: [], 3: []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(40, 8)), rng.normal(size=(1000, 8))
        for times, found in rates.items():
            clf = lk.BayesClassifier(density).fit(repeated(X, times), np.repeat(np.arange(40) % 2, times))
            found.append(np.mean(clf.decide(new, novelty=0.05) == lk.NOVEL))
    assert np.mean(rates[3]) < 0.05 * 1.5
    assert np.mean(rates[3]) == pytest.approx(np.mean(rates[1]), abs=0.03)
