"""Measures of regressions against their definitions."""

import numpy as np
import pytest
from scipy import stats

import likely as lk
from likely.metrics.regression_evaluation import RegressionEvaluation, loss_of


def made(n=400, scale=1.0, seed=0, **how):
    rng = np.random.default_rng(seed)
    mean = rng.uniform(-3, 3, n)
    y = mean + rng.standard_normal(n)
    return RegressionEvaluation.of(lk.Gaussian(mean[:, None], np.full((n, 1), scale**2), "diagonal"), y, **how), mean, y


def test_measures_are_their_definitions():
    e, mean, y = made()
    assert e.rmse.value == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert e.mae.value == pytest.approx(np.mean(np.abs(y - mean)))
    assert e.log_score.value == pytest.approx(-stats.norm.logpdf(y, mean).mean())
    assert e.r2 == pytest.approx(1 - np.var(y - mean) / np.var(y), abs=0.02)
    low, high = mean - 1.6448536, mean + 1.6448536
    score = high - low + 20 * (np.maximum(low - y, 0) + np.maximum(y - high, 0))
    assert e.interval_score.value == pytest.approx(score.mean(), rel=1e-6)
    assert e.coverage.value == np.mean((low <= y) & (y <= high))
    np.testing.assert_allclose(e.pit, stats.norm.cdf(y - mean), atol=1e-12)


def test_predictive_of_t_distributions():
    t = lk.StudentT([[0.0], [2.0]], [[[1.0]], [[4.0]]], 5.0)
    e = RegressionEvaluation.of(t, [1.0, 1.0])
    np.testing.assert_allclose(e.pit, stats.t(5).cdf([1.0, -0.5]))
    np.testing.assert_allclose(e.log_prob, [stats.t(5).logpdf(1.0), stats.t(5, 2, 2).logpdf(1.0)])


@pytest.mark.parametrize(
    ("loss", "costs", "quantile"), [("absolute", {}, 0.5), ("asymmetric", {"over": 3.0, "under": 1.0}, 0.25)]
)
def test_decisions_minimize_the_loss(loss, costs, quantile):
    e, mean, y = made(20_000, loss=loss, **costs)
    np.testing.assert_allclose(e.decided, mean + stats.norm.ppf(quantile))
    for shift in (-0.2, 0.2):
        assert e.mean_loss.value < loss_of(e.decided + shift, y, loss, **costs).mean()


def test_wrong_densities_are_noticed_and_right_ones_are_not():
    assert "do not contradict" in made()[0].coverage_curve().verdict
    assert "differ from the data" in made(scale=0.5)[0].coverage_curve().verdict
    curve = made()[0].coverage_curve()
    assert ((curve.low <= curve.level) & (curve.level <= curve.high)).mean() > 0.8


def test_whole_weights_are_copies():
    rng = np.random.default_rng(0)
    mean, w = rng.standard_normal((50, 1)), np.arange(50) % 3
    y = mean[:, 0] + rng.standard_normal(50)
    a = RegressionEvaluation.of(lk.Gaussian(mean, np.ones((50, 1)), "diagonal"), y, weight=w)
    many = np.repeat(mean, w, axis=0)
    b = RegressionEvaluation.of(lk.Gaussian(many, np.ones((len(many), 1)), "diagonal"), np.repeat(y, w))
    for name in ("rmse", "mae", "log_score", "interval_score", "coverage"):
        np.testing.assert_allclose(getattr(a, name)[:3], getattr(b, name)[:3], rtol=1e-12)


def test_worst_rows_and_json():
    e, _, y = made(20)
    assert e.worst(1)[0].row == int(e.log_prob.argmin()) and e.worst(1)[0].truth == y[e.worst(1)[0].row]
    told = e.as_dict()
    assert told["rmse"]["value"] == e.rmse.value and len(told["worst"]) == 10
    assert "RMSE" in e.summary() and "coverage of 90% intervals" in str(e)


@pytest.mark.parametrize(
    ("how", "match"),
    [({"loss": "cubic"}, "must be one of"), ({"loss": "asymmetric"}, "needs both"), ({"over": 1.0}, "asymmetric"),
     ({"level": 1.0}, "between 0 and 1"), ({"loss": "asymmetric", "over": -1.0, "under": 1.0}, "positive")],
)  # fmt: skip
def test_bad_settings_are_told(how, match):
    with pytest.raises(lk.LikelyError, match=match):
        made(5, **how)


def test_evaluate_takes_regressors():
    from sklearn.linear_model import LinearRegression as Peer
    from sklearn.model_selection import KFold, cross_val_predict

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.standard_normal(80)
    folds = list(KFold(4).split(X))
    found = cross_val_predict(Peer(), X, y, cv=folds)
    own = lk.evaluate(lk.LinearRegression(), X, y, cv=folds)
    assert own.rmse.value == pytest.approx(np.sqrt(np.mean((found - y) ** 2)), rel=1e-9)
    peer = lk.evaluate(Peer(), X, y, cv=folds, loss="absolute")
    assert peer.rmse.value == pytest.approx(own.rmse.value, rel=1e-2) and 0.8 < peer.coverage.value <= 1
    prefit = lk.evaluate(lk.LinearRegression().fit(X, y), X, y, cv="prefit")
    assert prefit.rmse.value < own.rmse.value
    with pytest.raises(lk.DomainError, match="prefit"):
        lk.evaluate(Peer().fit(X, y), X, y, cv="prefit")
    with pytest.raises(lk.DomainError, match="for classifiers"):
        lk.evaluate(lk.LinearRegression(), X, y, reject_cost=0.5)
    with pytest.raises(lk.DataError, match="finite number"):
        lk.evaluate(lk.LinearRegression(), X, np.where(np.arange(80) == 3, np.nan, y))
