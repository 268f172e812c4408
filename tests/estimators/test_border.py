"""What crosses the border wrongly is named: which column, which row, what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score

import likely as lk


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_is_named_by_column_and_row(frame):
    with pytest.raises(lk.DataError, match=r"column 'name' must be numbers, got 'abc' at row 1"):
        lk.GaussianDensity().fit(frame({"size": ["1", "2"], "name": ["3", "abc"]}))


def test_text_in_an_array_is_named():
    with pytest.raises(lk.DataError, match="column 1 must be numbers, got 'x' at row 0"):
        lk.GaussianDensity().fit([[1.0, "x"], [2.0, "y"]])


def test_infinity_is_named(rng):
    X = rng.normal(size=(9000, 3))
    X[8000, 2] = np.inf
    d = lk.GaussianDensity()
    with pytest.raises(lk.DataError, match="row 8000, column 2"):
        d.fit(X)
    with pytest.raises(lk.DataError, match="row 8000, column 2"):
        lk.GaussianDensity().fit(X[:10]).score_samples(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dates_are_no_numbers(frame):
    when = pd.date_range("2024-01-01", periods=3)
    table = frame({"when": when if frame is pd.DataFrame else when.to_pydatetime().tolist()})
    for estimator in (lk.GaussianDensity(), lk.CategoricalDensity()):
        with pytest.raises(lk.DataError, match="column 'when'"):
            estimator.fit(table)


def test_counts_that_are_none_are_said(rng):
    with pytest.warns(lk.FitWarning, match="x1 is not all whole numbers"):
        lk.PoissonDensity().fit(np.column_stack([rng.poisson(3, 20), rng.poisson(3, 20) + 0.5]))


def test_identifiers_are_suspected():
    with pytest.warns(lk.FitWarning, match="as many levels as rows"):
        lk.CategoricalDensity().fit(np.arange(50)[:, None])


def test_minus_one_is_no_level_that_was_seen():
    d = lk.CategoricalDensity().fit(np.array([0, 1, 2, 1])[:, None])
    assert d.score_samples([[-1], [5]]).tolist() == [-np.inf, -np.inf]


def test_columns_may_be_cross_validated_and_come_from_frames(rng):
    table = lk.Columns(pd.DataFrame({"a": rng.normal(size=60), "n": rng.poisson(3, 60)}))
    p = lk.ProductDensity([("a", lk.GaussianDensity()), ("n", lk.PoissonDensity())])
    assert np.isfinite(cross_val_score(p, table, cv=3)).all()


def test_a_column_that_is_not_there_is_named(rng):
    frame = pd.DataFrame({"a": rng.normal(size=9), "b": rng.normal(size=9)})
    with pytest.raises(lk.DataError, match="column 'c' is needed"):
        lk.ProductDensity([("x", lk.GaussianDensity(), ["a", "c"])]).fit(frame)
    p = lk.ProductDensity([("a", lk.GaussianDensity()), ("b", lk.GaussianDensity())]).fit(lk.Columns(frame))
    with pytest.raises(lk.DataError, match="column 'b' is needed"):
        p.score_samples(lk.Columns(a=frame["a"]))


def test_a_part_with_a_constant_is_named(rng):
    frame = pd.DataFrame({"a": rng.normal(size=9), "b": np.full(9, 7.0)})
    with pytest.warns(lk.FitWarning, match=r"part 'b': .*column 0 is constant") as said:
        lk.ProductDensity(lk.GaussianDensity("diagonal")).fit(frame)
    assert not any("part 'a'" in str(w.message) for w in said)


def test_a_missing_cell_among_texts_stays_missing():
    c = lk.Columns(colour=["red", None, "blue", float("nan")])
    np.testing.assert_allclose(lk.Categorical.fit(c["colour"]).probs, [0.5, 0.5])


def test_a_summary_without_prior_claims_none(rng):
    p = lk.ProductDensity(lk.GaussianDensity("diagonal"), prior=None).fit(rng.normal(size=(30, 2)))
    assert p.summary().facts["prior"].startswith("none") and not p.summary().notes


def test_em_says_it_once(rng):
    X = rng.normal(size=(4, 5))
    X[0, 0] = np.nan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lk.Gaussian.fit(X)
    texts = [str(w.message) for w in said]
    assert len(texts) == len(set(texts)) and any("singular" in t for t in texts)
    assert all(w.filename == __file__ or "law.py" in w.filename for w in said)
