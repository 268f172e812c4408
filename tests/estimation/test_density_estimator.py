"""What every density estimator does alike: chunks, weights, gaps, names, cloning, searching."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely as lk


def rows(kind: str, rng: np.random.Generator, n: int = 300):
    if kind == "counts":
        return rng.poisson([1.0, 4.0, 20.0], (n, 3)).astype(float)
    if kind == "levels":
        return rng.choice(np.array(["a", "b", "c"], dtype=object), (n, 2), p=[0.5, 0.3, 0.2])
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) + [1, 2, 3]


MEMBERS = [
    (lk.GaussianDensity(), "reals"),
    (lk.GaussianDensity("diagonal"), "reals"),
    (lk.GaussianDensity("spherical"), "reals"),
    (lk.GaussianDensity(prior=None), "reals"),
    (lk.PoissonDensity(), "counts"),
    (lk.PoissonDensity(prior=2.0), "counts"),
    (lk.CategoricalDensity(), "levels"),
    (lk.CategoricalDensity(prior=0.5), "levels"),
    (lk.ProductDensity(), "reals"),
    (lk.ProductDensity(lk.CategoricalDensity()), "levels"),
]
each = pytest.mark.parametrize(("estimator", "kind"), MEMBERS, ids=lambda v: repr(v) if not isinstance(v, str) else v)


@each
def test_chunks_equal_the_batch(estimator, kind, rng):
    X = rows(kind, rng)
    batch = clone(estimator).fit(X)
    chunks = clone(estimator)
    for part in np.array_split(X, 7):
        chunks.partial_fit(part)
    np.testing.assert_allclose(chunks.score_samples(X), batch.score_samples(X), rtol=1e-11)
    assert chunks.stats_.total_weight == pytest.approx(len(X), rel=1e-12)


@each
def test_weights_are_repetitions(estimator, kind, rng):
    X, w = rows(kind, rng), rng.integers(0, 4, 300)
    weighted = clone(estimator).fit(X, sample_weight=w)
    repeated = clone(estimator).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.score_samples(X[w > 0]), repeated.score_samples(X[w > 0]), rtol=1e-11)


@each
def test_samples_look_like_rows(estimator, kind, rng):
    X = rows(kind, rng)
    d = clone(estimator).fit(X)
    draws = d.sample(50, random_state=3)
    assert np.isfinite(d.score_samples(np.asarray(draws).reshape(50, -1))).all()
    assert (np.asarray(d.sample(50, random_state=3)) == np.asarray(draws)).all()


@each
def test_summary_speaks_three_languages(estimator, kind, rng):
    import json

    d = clone(estimator).fit(rows(kind, rng))
    s = d.summary()
    facts = json.loads(s.to_json())["facts"]
    assert facts["log-likelihood"] == pytest.approx(
        float(d.score_samples(rows(kind, np.random.default_rng(0))).size and d.model_.objective(d.stats_))
    )
    assert facts["BIC"] == pytest.approx(facts["parameters"] * np.log(300) - 2 * facts["log-likelihood"])
    assert str(s).startswith(type(d).__name__) and "<table" in s._repr_html_()
    for row in s["parameters"].rows:
        assert row.low is None or (row.low <= row.estimate + 0.1 * abs(row.estimate) and row.high >= row.low)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_bring_names(frame, rng):
    X = rng.normal(size=(100, 2))
    d = lk.GaussianDensity().fit(frame({"width": X[:, 0], "height": X[:, 1]}))
    np.testing.assert_array_equal(
        d.score_samples(frame({"width": X[:, 0], "height": X[:, 1]})), lk.GaussianDensity().fit(X).score_samples(X)
    )
    assert [r.column for r in d.summary()["parameters"].rows][:1] == ["width"]


def test_warning_names_the_column(rng):
    frame = pd.DataFrame({"width": rng.normal(size=50), "serial": np.full(50, 7.0)})
    with pytest.warns(lk.FitWarning, match="'serial' is constant over all data"):
        lk.GaussianDensity(prior=None).fit(frame)


def test_weak_prior_needs_no_warning(rng):
    X = np.column_stack([rng.normal(size=5), rng.normal(size=(5, 8))])  # fewer rows than columns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = lk.GaussianDensity().fit(X)
    assert np.isfinite(d.score_samples(X)).all()


def test_weak_prior_keeps_what_two_sensors_agree_on(rng):
    truth = rng.normal(size=300)
    X = np.column_stack([truth, truth + 0.01 * rng.normal(size=300)])
    weak, plain = lk.GaussianDensity().fit(X), lk.GaussianDensity(prior=None).fit(X)
    difference = np.array([[1.0], [-1.0]])
    spread = [float((difference.T @ d.covariance_ @ difference)[0, 0]) for d in (weak, plain)]
    assert spread[0] == pytest.approx(spread[1], rel=1e-3)


def test_several_constant_columns_are_said_in_the_plural(rng):
    X = np.column_stack([np.ones(9), rng.normal(size=9), np.zeros(9)])
    whole = "are constant over all data: their standard deviations were set to 1e-8 of their sizes"
    with pytest.warns(lk.FitWarning, match=f"^GaussianDensity: columns 0 and 2 {whole}"):
        lk.GaussianDensity().fit(X)
    with pytest.warns(lk.FitWarning, match=f"^GaussianDensity: columns 'a' and 'c' {whole}"):
        lk.GaussianDensity().fit(pd.DataFrame(X, columns=list("abc")))
    with pytest.warns(lk.FitWarning, match=rf"^BayesClassifier \(classes 'u' and 'v'\): columns 0 and 2 {whole}"):
        lk.BayesClassifier(lk.GaussianDensity(prior=None)).fit(X, list("uvuvuvuvu"))
    with pytest.warns(lk.FitWarning, match="columns 0, 1, 2, 3, 4 and 25 more are constant"):
        lk.GaussianDensity("diagonal").fit(np.column_stack([np.ones((9, 30)), X[:, 1]]))
    names = [f"x{i}" for i in range(31)]
    with pytest.warns(lk.FitWarning, match="columns 'x0', 'x1', 'x2', 'x3', 'x4' and 25 more are constant"):
        lk.GaussianDensity("diagonal").fit(pd.DataFrame(np.column_stack([np.ones((9, 30)), X[:, 1]]), columns=names))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_constant_column_is_said_with_a_prior_too(covariance, rng):
    with pytest.warns(lk.FitWarning, match="column 1 is constant over all data"):
        lk.GaussianDensity(covariance).fit(np.column_stack([rng.normal(size=50), np.full(50, 7.0)]))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("prior", ["weak", None])
def test_columns_hardly_seen_are_said(covariance, prior, rng):
    X = rng.normal(size=(60, 3))
    X[:, 1] = np.nan
    with pytest.warns(lk.FitWarning, match="column 1 is never observed") as said:
        d = lk.GaussianDensity(covariance, prior=prior).fit(X)
    assert len([w for w in said if "never" in str(w.message)]) == 1
    table = {(r.column, r.parameter): r for r in d.summary()["parameters"].rows}
    assert table["x1", "mean"].low is None and table["x0", "mean"].low is not None
    X[7, 1] = 1000.0
    with pytest.warns(lk.FitWarning, match="column 1 is observed once only"):
        lk.GaussianDensity(covariance, prior=prior).fit(X)


def test_intervals_count_what_was_seen(rng):
    X = rng.normal(size=(400, 2))
    X[16:, 1] = np.nan
    wide, narrow = (
        lk.GaussianDensity(c, prior=None, max_iter=500).fit(X).summary()["parameters"].rows
        for c in ("full", "diagonal")
    )
    for rows in (wide, narrow):
        reach = {r.column: r.high - r.low for r in rows if r.parameter == "mean"}
        assert 3 < reach["x1"] / reach["x0"] < 9  # √(400 / 16) = 5


def test_weak_prior_leaves_good_estimates_alone(rng):
    X = rng.normal(size=(2000, 4)) @ rng.normal(size=(4, 4))
    weak, plain = lk.GaussianDensity().fit(X), lk.GaussianDensity(prior=None).fit(X)
    np.testing.assert_allclose(weak.covariance_, plain.covariance_, rtol=2e-3)


def test_missing_values_are_learned_through(rng):
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 5000)
    X[rng.random(X.shape) < 0.3] = np.nan
    d = lk.GaussianDensity(max_iter=500).fit(X)
    assert d.report_.converged and d.n_iter_ > 1
    assert d.covariance_[0, 1] == pytest.approx(0.9, abs=0.05)


def test_running_out_of_iterations_is_said(rng):
    X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 500)
    X[rng.random(X.shape) < 0.3] = np.nan
    with pytest.warns(lk.FitWarning, match="not converged"):
        d = lk.GaussianDensity(max_iter=1, tol=0).fit(X)
    assert not d.report_.converged


def test_float32_stays_float32(rng):
    X = rng.normal(size=(200, 3)).astype(np.float32)
    scores = lk.GaussianDensity().fit(X).score_samples(X)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(
        scores, lk.GaussianDensity().fit(X.astype(float)).score_samples(X.astype(float)), rtol=1e-6
    )


def test_new_levels_may_arrive_late():
    d = lk.CategoricalDensity(prior=None).partial_fit([["b"], ["b"]]).partial_fit([["a"], ["c"]])
    assert d.model_.levels.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(d.model_.probs, [0.25, 0.5, 0.25])
    assert d.score_samples([["z"]])[0] == -np.inf


def test_missing_categories_do_not_count():
    d = lk.CategoricalDensity(prior=None).fit(np.array([["x"], [None], ["x"], ["y"]], dtype=object))
    np.testing.assert_allclose(d.model_.probs, [2 / 3, 1 / 3])


def mixed(rng, n=200):
    return lk.core.Columns(size=rng.normal(size=(n, 2)), visits=rng.poisson(3, n), color=rng.choice(["red", "blue"], n))


PARTS = [("size", lk.GaussianDensity()), ("visits", lk.PoissonDensity()), ("color", lk.CategoricalDensity())]


def test_product_of_unlike_parts(rng):
    X = mixed(rng)
    p = lk.ProductDensity(PARTS).fit(X)
    alone = [lk.GaussianDensity().fit(X["size"]).score_samples(X["size"])]
    alone += [lk.PoissonDensity().fit(X["visits"][:, None]).score_samples(X["visits"][:, None])]
    alone += [lk.CategoricalDensity().fit(X["color"][:, None]).score_samples(X["color"][:, None])]
    np.testing.assert_allclose(p.score_samples(X), sum(alone), rtol=1e-12)
    assert set(p.sample(4, 0)) == {"size", "visits", "color"}


def test_product_reads_frames_and_named_columns(rng):
    frame = pd.DataFrame(
        {
            "visits": rng.poisson(3, 50),
            "w": rng.normal(size=50),
            "h": rng.normal(size=50),
            "color": ["red", "blue"] * 25,
        }
    )
    parts = [
        ("visits", lk.PoissonDensity()),
        ("size", lk.GaussianDensity(), ["w", "h"]),
        ("color", lk.CategoricalDensity()),
    ]
    p = lk.ProductDensity(parts).fit(frame)
    q = lk.ProductDensity(parts).fit(pl.DataFrame(frame.to_dict("list")))
    np.testing.assert_array_equal(p.score_samples(frame), q.score_samples(pl.DataFrame(frame.to_dict("list"))))
    assert p.model_["size"].dim == 2


def test_a_part_without_its_column_is_named(rng):
    with pytest.raises(lk.DataError, match="color"):
        lk.ProductDensity(PARTS).fit(lk.core.Columns(size=rng.normal(size=(5, 2)), visits=[1, 2, 3, 4, 5]))


@pytest.mark.parametrize("columns", [[], np.array([0, 1]), [np.array([0, 1])]])
def test_a_component_of_a_product_has_columns(columns, rng):
    X, match = rng.normal(size=(9, 2)), "component 'both' must have a column or a list of columns, at least one, got "
    for table in (X, {0: X[:, 0], 1: X[:, 1]}):
        with pytest.raises(lk.DomainError, match=match):
            lk.ProductDensity([("both", lk.GaussianDensity(), columns)]).fit(table)


def test_nested_parameters_and_clone():
    p = lk.ProductDensity(PARTS)
    assert p.get_params()["size__covariance"] == "full"
    q = clone(p).set_params(size__covariance="diagonal", prior=None)
    assert q.components[0][1].covariance == "diagonal" and p.components[0][1].covariance == "full"
    assert clone(lk.ProductDensity(lk.GaussianDensity("diagonal"))).components.covariance == "diagonal"


def test_weak_inside_means_what_the_whole_says(rng):
    X = mixed(rng)
    ml = lk.ProductDensity(PARTS, prior=None).fit(X)
    np.testing.assert_allclose(ml.model_["visits"].rate, [X["visits"].mean()], rtol=1e-12)
    own = [
        ("size", lk.GaussianDensity()),
        ("visits", lk.PoissonDensity(prior=50.0)),
        ("color", lk.CategoricalDensity(prior=100.0)),
    ]
    kept = lk.ProductDensity(own, prior=None).fit(X)
    assert abs(kept.model_["color"].probs[0] - 0.5) < abs(ml.model_["color"].probs[0] - 0.5)


def test_search_and_cross_validation(rng):
    X = rng.normal(size=(120, 3)) @ rng.normal(size=(3, 3))
    search = GridSearchCV(lk.GaussianDensity(), {"covariance": ["full", "diagonal", "spherical"]}, cv=3).fit(X)
    assert search.best_params_["covariance"] == "full"
    assert cross_val_score(make_pipeline(StandardScaler(), lk.GaussianDensity()), X, cv=3).shape == (3,)


@pytest.mark.slow
def test_intervals_cover(rng):
    hits = {"mean": 0, "standard deviation": 0, "correlation": 0, "rate": 0}
    for _ in range(400):
        X = rng.multivariate_normal([1.0, 0.0], [[4.0, 1.2], [1.2, 1.0]], 25)
        table = {
            (r.column, r.parameter): r for r in lk.GaussianDensity(prior=None).fit(X).summary(0.9)["parameters"].rows
        }
        for (column, name), truth in {
            ("x0", "mean"): 1.0,
            ("x0", "standard deviation"): 2.0,
            ("x0, x1", "correlation"): 0.6,
        }.items():
            hits[name] += table[column, name].low <= truth <= table[column, name].high
        r = lk.PoissonDensity(prior=None).fit(rng.poisson(2.0, (25, 1))).summary(0.9)["parameters"].rows[0]
        hits["rate"] += r.low <= 2.0 <= r.high
    for name, count in hits.items():  # five standard errors of a binomial share around 90 %
        assert abs(count / 400 - 0.9) < 0.075 + 0.03 * (name == "rate"), (name, count)
