"""A watch over rows: surprisal in bits, a level that keeps its word, and the column that contributes most."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import likely as lk
from likely.automl.novelty_detector import NoveltyDetector
from likely.automl.table_classifier import TableClassifier
from likely.automl.table_clusterer import TableClusterer
from likely.core.errors import DataError, DomainError

BITS = 1 / np.log(2)


def rows(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"a": rng.normal(size=n), "b": 1000.0 * rng.normal(size=n)})


def test_a_contribution_is_the_gain_beyond_an_ordinary_row_whatever_the_units():
    watch = NoveltyDetector.of_model(TableClusterer(1, n_init=1).fit(rows(400, 0)))
    odd = pl.DataFrame({"a": [6.0, 0.0, 6.0], "b": [0.0, 6000.0, None]})
    names, bits = watch.contributions(odd)
    assert names == ["a", "b", "a"]
    model = watch.estimator.model_
    mean, var = (
        model.components.mean[0],
        np.diagonal(np.atleast_2d(np.diag(model.components.covariance[0].ravel()[:2]))),
    )
    if model.components.covariance[0].ndim == 1:  # independent columns: the gain is −log p(a)
        expected = -norm(mean[0], np.sqrt(var[0])).logpdf(6.0)
        usual = -norm(0, np.sqrt(var[0])).logpdf(norm.ppf(0.75) * np.sqrt(var[0]))
        assert bits[0] == pytest.approx((expected - usual) * BITS, rel=0.02)


def test_every_column_is_ranked_missing_cells_last_and_words_never_seen_first():
    ordinary = rows(400, 0).with_columns(c=pl.Series(["x", "y"] * 200))
    watch = NoveltyDetector.of_model(TableClusterer(1, n_init=1).fit(ordinary))
    odd = pl.DataFrame({"a": [6.0, None, 1e300], "b": [9000.0, 9000.0, 0.0], "c": ["z", "x", "x"]})
    bits = dict(zip(watch.schema, watch.ranking(odd).T, strict=True))
    assert bits["c"][0] == np.inf and bits["b"][0] > bits["a"][0] > 10
    assert bits["a"][1] == -np.inf and bits["b"][1] == pytest.approx(bits["b"][0], rel=0.05)
    assert bits["a"][2] == np.inf and bits["b"][2] == 0 == bits["c"][2]
    assert watch.contributions(odd)[0] == ["c", "b", "a"]


def test_the_level_holds_and_p_values_agree():
    watch = NoveltyDetector.of_model(TableClusterer(1, n_init=1).fit(rows(500, 1)))
    look = watch.score(rows(20_000, 2))
    for rate in (0.02, 0.1):
        novel = look.novelty > watch.level(rate)
        assert novel.mean() == pytest.approx(rate, abs=3 * np.sqrt(rate / 500))
        assert (watch.p_value(look.novelty[novel]) <= rate + 1e-12).all()


def test_missing_values_have_their_own_ordinary_rows():
    watch = NoveltyDetector.of_model(TableClusterer(1, n_init=1).fit(rows(400, 3)))
    whole = watch.score(pl.DataFrame({"a": [0.0], "b": [0.0]})).bits[0]
    gap = watch.score(pl.DataFrame({"a": [0.0], "b": [None]}, schema={"a": pl.Float64, "b": pl.Float64})).bits[0]
    assert whole == pytest.approx(-np.log(2) * BITS, abs=0.15)  # a χ² of two degrees has its median at 2 log 2
    assert gap == pytest.approx(-(norm.ppf(0.75) ** 2) / 2 * BITS, abs=0.15)


def test_a_density_without_left_out_rows_uses_its_own_draws():
    X = rows(500, 4)
    density = lk.GaussianDensity("diagonal").fit(X)
    watch = NoveltyDetector.of_model(density, {"a": {"kind": "real"}, "b": {"kind": "real"}})
    assert (watch.score(rows(5000, 5)).novelty > watch.level(0.05)).mean() == pytest.approx(0.05, abs=0.02)


def test_a_classifier_watches_with_the_surprises_that_it_kept():
    X = rows(200, 6).with_columns(color=pl.Series(["red", "blue"] * 100))
    model = TableClassifier().fit(X, ["u", "v"] * 100)
    watch, strange = NoveltyDetector.of_model(model), pl.DataFrame({"a": [0.0], "b": [0.0], "color": ["ultraviolet"]})
    look = watch.score(strange)
    assert np.isinf(look.novelty[0]) and np.isfinite(look.bits[0]) and watch.contributions(strange)[0] == ["color"]
    assert '"color"' in look.why(0)
    np.testing.assert_allclose(watch.score(X).novelty, model.classifier_.novelty_score(X))


def test_what_cannot_watch_is_refused():
    with pytest.raises(DataError, match="with a density of rows"):
        NoveltyDetector.of_model(object())
    watch = NoveltyDetector.of_model(TableClusterer(1, n_init=1).fit(rows(60, 7)))
    for rate in (0.0, 1.0, np.nan):
        with pytest.raises(DomainError, match="rate"):
            watch.level(rate)
