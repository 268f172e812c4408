"""Regressors of tables: encoding, missing cells, calibrated intervals, explanations, files, the choice."""

import json

import numpy as np
import polars as pl
import pytest

import likely as lk
from likely.automl import encoded_regressor
from likely.automl.encoded_regressor import BASES, EncodedRegressor
from likely.automl.model_comparison import Candidate, CandidateResult, compare_candidates, from_all_rows, ranked
from likely.automl.regression_candidates import REGRESSION_NAMES, regression_candidates
from likely.automl.regression_task import RegressionTask
from likely.automl.sklearn_baselines import regression_baselines
from likely.automl.table_regressor import TableRegressor
from likely.metrics.regression_evaluation import RegressionEvaluation


def houses(n=200, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    size, age, city = rng.uniform(20, 200, n), rng.gamma(2, 15, n), rng.choice(["Rome", "Oslo", "Kyiv"], n)
    price = 3.0 * size - age + np.select([city == "Oslo", city == "Rome"], [120.0, 60.0]) + 20 * rng.standard_normal(n)
    table = pl.DataFrame({"size": size, "age": age, "city": city})
    if gaps:
        drop = rng.random((n, 3)) < gaps
        table = table.with_columns(
            pl.when(pl.Series(drop[:, j])).then(None).otherwise(pl.col(name)).alias(name)
            for j, name in enumerate(table.columns)
        )
    return table, price


def test_encoded_least_squares_is_that_of_indicators():
    X, y = houses()
    m = EncodedRegressor(lk.LinearRegression()).fit(X, y)
    dummies = np.column_stack([X["size"], X["age"], X["city"] == "Oslo", X["city"] == "Rome"]).astype(float)
    own = lk.LinearRegression().fit(dummies, y)
    np.testing.assert_allclose(m.predict(X), own.predict(dummies), rtol=1e-9)
    np.testing.assert_allclose(m.predict(X, return_std=True)[1], own.predict(dummies, return_std=True)[1], rtol=1e-9)


@pytest.mark.parametrize("basis", BASES)
def test_bases_fit_predict_and_come_back_from_files(basis):
    from likely.io.model_files import dumps, loads

    X, y = houses(gaps=0.1)
    m = EncodedRegressor(lk.BayesianLinearRegression(), basis)
    if basis == "constant":
        m = EncodedRegressor(lk.LinearRegression(), basis)
        m.fit(X, y)
    else:
        with pytest.warns(lk.FitWarning, match="missing values of columns"):
            m.fit(X, y)
    again = loads(dumps(m))
    np.testing.assert_array_equal(again.predict(X, return_std=True), m.predict(X, return_std=True))
    assert np.isfinite(m.predict(X)).all() and (m.predict(X, return_std=True)[1] > 0).all()


def test_more_columns_than_rows_are_rotated_without_change(monkeypatch):
    rng = np.random.default_rng(0)
    X = pl.DataFrame(rng.standard_normal((30, 60)))
    y = X[:, :3].sum_horizontal().to_numpy() + 0.3 * rng.standard_normal(30)
    T = pl.DataFrame(rng.standard_normal((5, 60)), schema=X.columns)
    for regressor in (lk.BayesianLinearRegression(), lk.Ridge(2.0), lk.Ridge("leave-one-out")):
        rotated = EncodedRegressor(regressor).fit(X, y)
        assert rotated.rotation_.shape == (60, 29)
        with monkeypatch.context() as patch:
            patch.setattr(encoded_regressor, "_is_isotropic", lambda regressor: False)
            plain = EncodedRegressor(regressor).fit(X, y)
        np.testing.assert_allclose(rotated.predict(T, return_std=True), plain.predict(T, return_std=True), rtol=1e-8)


def test_units_offsets_and_copies_change_nothing():
    X, y = houses()
    m = TableRegressor().fit(X, y)
    other = X.with_columns(pl.col("size") * 1000 + 1e9)
    np.testing.assert_allclose(TableRegressor().fit(other, y).predict(other), m.predict(X), rtol=1e-6)
    np.testing.assert_allclose(TableRegressor().fit(X, y + 1e6).predict(X) - 1e6, m.predict(X), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("regressor", [None, EncodedRegressor(lk.neighbors.KNeighborsRegressor("leave-one-out"))])
def test_intervals_hold_on_new_rows(regressor):
    from scipy.stats import betabinom

    X, y = houses(300)
    T, t = houses(2000, seed=1)
    m = TableRegressor(regressor).fit(X, y)
    low, high = m.interval(T, 0.9)
    covered = ((low <= t) & (t <= high)).sum()
    a, b = betabinom(2000, 0.9 * 301, 0.1 * 301).ppf([0.005, 0.995])
    assert a <= covered <= b
    np.testing.assert_allclose(m.quantiles(T, [0.05, 0.95]), [low, high])


def test_decisions_minimize_the_loss_of_the_model():
    X, y = houses()
    m = TableRegressor(loss="asymmetric", over=3.0, under=1.0).fit(X, y)
    np.testing.assert_allclose(m.decide(X), m.quantiles(X, 0.25)[0])
    np.testing.assert_allclose(m.decide(X, "absolute"), m.quantiles(X, 0.5)[0])
    np.testing.assert_allclose(m.decide(X, "squared"), m.predict(X))


def test_contributions_add_up_and_are_coefficients_times_centered_values():
    X, y = houses()
    m = TableRegressor().fit(X, y)
    told = m.explain(X[:5])
    np.testing.assert_allclose(told.base + told.contributions.sum(axis=1), m.regressor_.predict(m.frame(X[:5])))
    inner, j = m.regressor_.regressor_, told.columns.index("size")
    centered = (X["size"][:5].to_numpy() - X["size"].mean()) / np.std(X["size"].to_numpy())
    np.testing.assert_allclose(told.contributions[:, j], inner.coef_[0] * centered, rtol=1e-6)
    splines = TableRegressor(EncodedRegressor(lk.BayesianLinearRegression(), "splines")).fit(X, y)
    own = splines.explain(X[:5])
    np.testing.assert_allclose(
        own.base + own.contributions.sum(axis=1), splines.regressor_.predict(splines.frame(X[:5]))
    )
    neighbors = TableRegressor(EncodedRegressor(lk.neighbors.KNeighborsRegressor())).fit(X, y)
    with pytest.raises(lk.DomainError, match="adds functions of single columns"):
        neighbors.explain(X[:2])


def test_unknown_levels_and_missing_cells_are_told_and_predicted():
    X, y = houses()
    m = TableRegressor().fit(X, y)
    new = {"size": [100.0, None], "age": [10.0, 20.0], "city": ["Lima", "Oslo"]}
    assert m.unseen(new)["city"].tolist() == [True, False]
    assert (
        np.isfinite(m.predict(new)).all()
        and m.predict(new, return_std=True)[1][1] > m.predict(new, return_std=True)[1][0]
    )


def test_files_and_descriptions(tmp_path):
    X, y = houses()
    m = TableRegressor().fit(X, y)
    m.save(tmp_path / "m.likely")
    again = lk.load(tmp_path / "m.likely")
    np.testing.assert_array_equal(again.quantiles(X, [0.1, 0.9]), m.quantiles(X, [0.1, 0.9]))
    assert "held-out rows" in m.describe().to_text() and "city=Oslo" in m.describe().to_text()


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = houses()
    m = TableRegressor().fit(X, y)
    before = m.predict(X)
    for bad in (y[:-1], np.where(np.arange(200) == 3, np.nan, y), ["a"] * 200):
        with pytest.raises(lk.DataError):
            m.fit(X, bad)
    np.testing.assert_array_equal(m.predict(X), before)


# --------------------------------------------------------------------------- the choice


def result(field, key, center, rank, baseline=False, scale=1.0):
    candidate = Candidate(key, key, "", rank, None, baseline=baseline)
    answers = np.column_stack([center, np.full(len(center), scale)])
    return field.result(candidate, answers, 0.0)


def test_the_rule_takes_the_simplest_of_the_tied():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(300)
    y = truth + rng.standard_normal(300)
    field = RegressionTask.of(pl.DataFrame({"x": truth}), y, 5)
    simple = result(field, "simple", truth + 0.02 * rng.standard_normal(300), 0)
    complex_ = result(field, "complex", truth, 1)
    bad = result(field, "bad", np.zeros(300), 2)
    rival = result(field, "rival", 0.5 * (truth + y), 9, baseline=True)
    contest = ranked(field, [simple, complex_, bad, rival])
    assert contest.winner.candidate.key == "simple" and contest.with_baselines.candidate.key == "rival"
    assert contest.criterion == "loss" and contest.tie_breaker == "log-score"
    assert "loss" in contest.winner.ties and not next(s for s in contest.results if s.candidate.key == "bad").ties
    with pytest.raises(lk.DomainError, match="criterion"):
        ranked(field, [simple], "cost")


def test_log_score_and_interval_score_may_decide():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 400)
    width = np.where(x > 0, 0.1, 2.0)
    y = width * rng.standard_normal(400)
    field = RegressionTask.of(pl.DataFrame({"x": x}), y, 5)
    flat = result(field, "flat", np.zeros(400), 0)
    candidate = Candidate("wide", "wide", "", 1, None)
    knows = field.result(candidate, np.column_stack([np.zeros(400), width]), 0.0)
    for criterion in ("log-score", "interval-score"):
        assert ranked(field, [flat, knows], criterion).winner.candidate.key == "wide"


def test_candidates_by_columns_and_rows():
    keys = [c.key for c in regression_candidates({"a": "real", "b": "category"}, 20, levels={"b": ["u", "v"]})]
    assert keys == ["mean", "linear", "ridge", "bayesian", "ard", "splines", "quadratic", "k-nearest-neighbors"]
    wide = [c.key for c in regression_candidates({f"x{j}": "real" for j in range(3000)}, 50)]
    assert wide == ["mean", "ridge", "bayesian", "k-nearest-neighbors"]
    every = regression_candidates({"a": "real", "b": "real"}, 1000) + regression_baselines({"a": "real"})
    assert [c.key for c in every] == list(REGRESSION_NAMES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_every_candidate_learns_a_table_with_gaps():
    X, y = houses(150, gaps=0.05)
    kinds = {"size": "real", "age": "real", "city": "category"}
    candidates = regression_candidates(kinds, 120, levels={"city": ["Kyiv", "Oslo", "Rome"]})
    field = RegressionTask.of(X, y, 3)
    contest = compare_candidates(field, candidates + regression_baselines(kinds))
    assert not [s.failure for s in contest.results if s.failure]
    found = {s.candidate.key: s for s in contest.results}
    assert found["linear"].by("loss") < 0.3 * found["mean"].by("loss")
    assert all(0.8 < s.evaluation.coverage.value < 0.98 for s in contest.results)
    fitted = from_all_rows(contest.winner.candidate.estimator, field)
    m = TableRegressor.from_fitted(fitted, {n: {"kind": k} for n, k in kinds.items()}, contest.winner.map)
    assert isinstance(contest.winner, CandidateResult) and isinstance(contest.winner.evaluation, RegressionEvaluation)
    assert json.loads(m.schema_) and m.predict(X).shape == (150,)
