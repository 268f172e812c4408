"""The short way over the border is taken only where the long one would change and say nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.validation import validate_data

from likely import CategoricalDensity, GaussianDensity
from likely.estimation.array_fast_path import is_plain, plain_frame

X = np.random.default_rng(0).standard_normal((30, 3))


def same_as_validated(fitted, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = validate_data(fitted, rows, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False)
    return out is rows


@pytest.mark.parametrize(
    "rows", [X[:1], X[:1].copy(), X, X[5:9], np.full((2, 3), np.nan), np.array([[np.inf, 0.0, 1.0]])]
)
def test_plain_rows_are_what_validation_gives_back(rows):
    fitted = GaussianDensity().fit(X)
    assert is_plain(rows, fitted) and same_as_validated(fitted, rows)


@pytest.mark.parametrize(
    "rows",
    [
        X.tolist(), X[:, :2], X[0], X[:0], X.astype(np.float32), X.astype(int), np.asfortranarray(X), X[:, ::-1],
        X.astype(">f8"), X.astype(object), np.ma.array(X), pd.DataFrame(X), X[None],
    ],
)  # fmt: skip
def test_everything_else_takes_the_long_way(rows):
    assert not is_plain(rows, GaussianDensity().fit(X))


def test_names_and_strangers_take_the_long_way():
    named = GaussianDensity().fit(pd.DataFrame(X, columns=list("abc")))
    assert not is_plain(X, named)  # scikit-learn warns of names that are missing
    assert not is_plain(X, GaussianDensity())


FRAME = pl.DataFrame({name: X[:, j] for j, name in enumerate("abc")})


@pytest.mark.parametrize("rows", [FRAME, FRAME[:1], FRAME[:3].with_columns(b=pl.lit(None, dtype=pl.Float64))], ids=str)
def test_frames_with_the_columns_of_training_are_what_validation_gives(rows):
    fitted = GaussianDensity().fit(FRAME)
    want = validate_data(fitted, rows, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False)
    found = plain_frame(rows, fitted)
    np.testing.assert_array_equal(found, want)
    assert found.strides == want.strides and found.dtype == want.dtype
    assert fitted.score_samples(rows).tobytes() == fitted.model_.log_prob(want).tobytes()


@pytest.mark.parametrize(
    "rows",
    [
        FRAME[["b", "a", "c"]], FRAME[["a", "b"]], FRAME.rename({"a": "x"}), FRAME.cast({"a": pl.Float32}), FRAME[:0],
        FRAME.cast({"a": pl.Int64}), FRAME.cast({"a": pl.String}), FRAME.lazy(), X,
        pd.DataFrame(X, columns=list("abc")),
    ],
)  # fmt: skip
def test_other_frames_take_the_long_way(rows):
    assert plain_frame(rows, GaussianDensity().fit(FRAME)) is None
    assert plain_frame(FRAME, GaussianDensity().fit(X)) is None  # scikit-learn warns of names that training had not


def test_words_in_an_array_are_what_validation_gives_back():
    words = np.array([["red", "x"], ["blue", None], ["red", "y"]], dtype=object)
    fitted = CategoricalDensity().fit(words)
    assert is_plain(words, fitted, object) and not is_plain(words[:, :1], fitted, object)
    assert validate_data(fitted, words, reset=False, dtype=None, ensure_all_finite=False) is words
