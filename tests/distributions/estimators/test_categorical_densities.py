"""Chow–Liu trees over columns of strings: the same as over their codes, and decoding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import likely as lk

WORDS = [["blue", "green", "red"], ["no", "yes"]]


def table(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n)]).astype(float)
    codes[::9, 0] = np.nan
    cells = np.full(codes.shape, None, dtype=object)
    for (i, j), code in np.ndenumerate(codes):
        cells[i, j] = None if np.isnan(code) else WORDS[j][int(code)]
    return codes, cells


def test_words_are_their_codes():
    codes, cells = table()
    plain, worded = lk.ChowLiuTreeDensity().fit(codes), lk.ChowLiuTreeDensity(words=WORDS).fit(cells)
    np.testing.assert_array_equal(worded.score_samples(cells), plain.score_samples(codes))
    framed = lk.ChowLiuTreeDensity(words=WORDS).fit(pd.DataFrame(cells, columns=["color", "smokes"]))
    np.testing.assert_array_equal(framed.model_.tables, plain.model_.tables)
    whole = np.array([all(cell is not None for cell in row) for row in cells])  # gaps are one step of EM a chunk
    parts = lk.ChowLiuTreeDensity(words=WORDS).partial_fit(cells[whole][:30]).partial_fit(cells[whole][30:])
    np.testing.assert_allclose(parts.model_.tables, lk.ChowLiuTreeDensity(words=WORDS).fit(cells[whole]).model_.tables)


def test_draws_and_filled_missing_values_are_words():
    _, cells = table()
    fitted = lk.ChowLiuTreeDensity(words=WORDS).fit(cells)
    assert set(fitted.sample(50, random_state=0).ravel()) <= {w for known in WORDS for w in known}
    filled = fitted.impute(cells, random_state=0)
    seen = np.array([cell is not None for cell in cells.ravel()]).reshape(cells.shape)
    assert (filled[seen] == cells[seen]).all() and set(filled[~seen]) <= set(WORDS[0])


def test_a_word_that_is_none_of_them_is_missing_to_a_classifier_and_impossible_to_a_density():
    _, cells = table()
    odd = np.array([["pink", "no"]], dtype=object)
    assert lk.ChowLiuTreeDensity(words=WORDS).fit(cells).score_samples(odd)[0] == -np.inf
    clf = lk.BayesClassifier(lk.ChowLiuTreeDensity(words=WORDS)).fit(cells, np.arange(80) % 2)
    gap = np.array([[None, "no"]], dtype=object)
    np.testing.assert_array_equal(clf.predict_proba(odd), clf.predict_proba(gap))


def test_what_is_wrong_is_said():
    _, cells = table()
    with pytest.raises(lk.DataError, match="words are given for 1 columns, got 2 columns"):
        lk.ChowLiuTreeDensity(words=WORDS[:1]).fit(cells)
    for bad in ([], ["blue", "red"], [["a", "a"], ["b"]], [[], ["b"]]):
        with pytest.raises(lk.DomainError, match="different words for each column"):
            lk.ChowLiuTreeDensity(words=bad).fit(cells)
