"""Conformal intervals: equality with computations by hand, coverage, weights, files, scikit-learn's checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks as checks

import likely as lk
from likely.io import model_files
from likely.io.registry import REGISTERED
from likely.model_selection.conformal import conformal_quantile
from tests.cases import scikit_learn_checks

FALSE_ALARM = 1e-6


def line(rng, n=200, noise=1.0):
    X = rng.uniform(0, 10, (n, 1))
    return X, 2 * X[:, 0] + noise * rng.normal(size=n)


# ------------------------------------------------------------------ by hand


def by_rank(values, level):
    n = len(values)
    k = int(np.ceil(np.round((n + 1) * level, 9)))
    return np.sort(values)[k - 1] if k <= n else np.inf


def test_split_is_the_quantile_of_calibration_residuals(rng):
    X, y = line(rng)
    new = np.linspace(-2, 12, 30)[:, None]
    model = lk.ConformalRegressor(Ridge(), cv=0.3).fit(X, y)
    assert len(model.scores_) == 60 and len(model.estimators_) == 1
    calibration = [i for i in range(200) if np.isclose(y[i] - model.predict(X[i : i + 1])[0], model.scores_).any()]
    assert len(calibration) == 60
    training = np.setdiff1d(np.arange(200), calibration)
    own = Ridge().fit(X[training], y[training])
    np.testing.assert_allclose(model.predict(new), own.predict(new), rtol=1e-12)
    residuals = np.abs(y - own.predict(X))[calibration]
    for level in (0.1, 0.5, 0.9, 0.98):
        low, high = model.interval(new, level)
        np.testing.assert_allclose(high - own.predict(new), by_rank(residuals, level), rtol=1e-12)
        np.testing.assert_allclose(own.predict(new) - low, by_rank(residuals, level), rtol=1e-12)


@pytest.mark.parametrize("folds", [5, 60])
def test_cross_is_cv_plus(folds, rng, monkeypatch):
    X, y = line(rng, 60)
    new = np.linspace(-2, 12, 30)[:, None]
    cv = KFold(folds, shuffle=True, random_state=1)
    model = lk.ConformalRegressor(Ridge(), "cross", cv=cv).fit(X, y)
    centers, residuals = np.empty((30, 60)), np.empty(60)
    for train, test in cv.split(X):
        own = Ridge().fit(X[train], y[train])
        centers[:, test], residuals[test] = own.predict(new)[:, None], np.abs(y[test] - own.predict(X[test]))
    for level in (0.6, 0.9):
        monkeypatch.setattr("likely.model_selection.conformal.CELLS", 7 * 60 if level == 0.6 else 10**6)
        k = int(np.ceil(np.round(61 * level, 9)))
        down = int(np.floor(np.round(61 * (1 - level), 9)))
        low, high = model.interval(new, level)
        np.testing.assert_allclose(high, np.sort(centers + residuals, axis=1)[:, k - 1], rtol=1e-12)
        np.testing.assert_allclose(low, np.sort(centers - residuals, axis=1)[:, down - 1], rtol=1e-12)
    np.testing.assert_allclose(model.predict(new), np.median(centers, axis=1), rtol=1e-12)
    low, high = model.interval(new, 0.5)
    assert ((low <= model.predict(new)) & (model.predict(new) <= high)).all()


def test_leave_one_out_is_jackknife_plus(rng):
    X, y = line(rng, 25)
    model = lk.ConformalRegressor(LinearRegression(), "cross", cv="leave-one-out").fit(X, y)
    other = lk.ConformalRegressor(LinearRegression(), "cross", cv=KFold(25)).fit(X, y)
    np.testing.assert_allclose(model.interval(X, 0.8), other.interval(X, 0.8), rtol=1e-10)
    assert len(model.estimators_) == 25 and model.guaranteed_coverage(0.9) == pytest.approx(0.8)


def test_ranks_and_weights_of_the_quantile(rng):
    scores = rng.normal(size=9)
    for level in (0.1, 0.5, 0.9, 0.91):
        assert conformal_quantile(scores, np.ones(9), level) == by_rank(scores, level)
        w = rng.integers(1, 4, 9)
        assert conformal_quantile(scores, w.astype(float), level) == by_rank(np.repeat(scores, w), level)
        table = rng.normal(size=(4, 9))
        wanted = [by_rank(np.repeat(row, w), level) for row in table]
        np.testing.assert_array_equal(conformal_quantile(table, w.astype(float), level), wanted)


def test_tails_of_their_own(rng):
    X, y = line(rng, 300)
    model = lk.ConformalRegressor(Ridge(), symmetric=False).fit(X, y)
    low, high = model.interval(X[:5], 0.9)
    np.testing.assert_allclose(high - model.predict(X[:5]), by_rank(model.scores_, 0.95), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X[:5]) - low, by_rank(-model.scores_, 0.95), rtol=1e-12)


def test_scores_are_divided_by_the_standard_deviation(rng):
    X, y = line(rng, 300)
    model = lk.ConformalRegressor(BayesianRidge()).fit(X, y)
    inner = model.estimators_[0]
    mean, std = inner.predict(X, return_std=True)
    np.testing.assert_allclose(model.interval(X, 0.9)[1], mean + std * by_rank(np.abs(model.scores_), 0.9), rtol=1e-12)
    assert model.normalized_ and np.abs(model.scores_).mean() < 1.2
    plain = lk.ConformalRegressor(BayesianRidge(), normalized=False).fit(X, y)
    assert not plain.normalized_ and np.ptp(np.subtract(*plain.interval(X, 0.9))) < 1e-9
    assert lk.ConformalRegressor(make_pipeline(StandardScaler(), BayesianRidge())).fit(X, y).normalized_
    search = GridSearchCV(BayesianRidge(), {"tol": [1e-3]})  # whose predict takes no return_std
    assert not lk.ConformalRegressor(search).fit(X, y).normalized_
    assert not lk.ConformalRegressor(make_pipeline(Ridge())).fit(X, y).normalized_


def test_a_fitted_estimator_is_used_as_it_is(rng):
    X, y = line(rng, 300)
    own = Ridge().fit(X[:100], y[:100])
    model = lk.ConformalRegressor(own, cv="prefit").fit(X[100:], y[100:])
    assert model.estimators_ == [own] and len(model.scores_) == 200
    np.testing.assert_allclose(model.scores_, y[100:] - own.predict(X[100:]))


# ----------------------------------------------------------------- coverage


def most_by_chance(a: float, n: int, tests: int, fits: int) -> float:
    """How far the mean coverage of many fits lies from its expectation, but once in 1/FALSE_ALARM times.

    Given n calibration rows, the coverage is beta distributed with variance below a(1 − a)/(n + 2); the tests add
    a(1 − a)/tests. Bernstein's inequality for the mean over fits of variables in [0, 1].
    """
    t, variance = np.log(2 / FALSE_ALARM), a * (1 - a) * (1 / (n + 2) + 1 / tests)
    return float(np.sqrt(2 * t * variance / fits) + t / (3 * fits))


def mean_coverage(make, draw, level, fits, tests=400):
    inside, width = [], []
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        X, y = draw(rng, 200 + tests)
        model = make(seed).fit(X[:200], y[:200])
        low, high = model.interval(X[200:], level)
        inside.append((low <= y[200:]) & (y[200:] <= high))
        width.append((high - low).mean())
    return float(np.mean(inside)), float(np.mean(width))


def skewed(rng, n):
    X = rng.uniform(0, 10, (n, 2))
    return X, np.sin(X[:, 0]) + rng.gamma(0.5, 2.0, n)


@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_split_intervals_cover_as_the_theorem_says(level, symmetric):
    def make(seed):
        return lk.ConformalRegressor(Ridge(), cv=0.5, random_state=seed, symmetric=symmetric)

    fits, tests, n = 300, 400, 100
    covered, _ = mean_coverage(make, skewed, level, fits, tests)
    slack = most_by_chance(level, n, tests, fits)
    assert level - slack <= covered <= level + (1 if symmetric else 2) / (n + 1) + slack


@pytest.mark.slow
def test_cross_intervals_cover_more_than_the_theorem_says():
    def make(seed):
        return lk.ConformalRegressor(Ridge(), "cross", random_state=seed)

    covered, wide = mean_coverage(make, skewed, 0.9, 60)
    assert make(0).fit(*skewed(np.random.default_rng(0), 200)).guaranteed_coverage(0.9) < covered
    assert abs(covered - 0.9) < most_by_chance(0.9, 200, 400, 60) + 1 / 201
    _, split = mean_coverage(lambda seed: lk.ConformalRegressor(Ridge(), random_state=seed), skewed, 0.9, 60)
    assert wide < split * 1.02  # every row trains and calibrates


@pytest.mark.slow
def test_tails_of_skewed_noise_are_covered_each():
    n, below, above = 0, 0, 0
    for seed in range(100):
        X, y = skewed(np.random.default_rng(seed), 900)
        model = lk.ConformalRegressor(Ridge(), cv=0.5, symmetric=False, random_state=seed).fit(X[:400], y[:400])
        low, high = model.interval(X[400:], 0.9)
        below, above, n = below + (y[400:] < low).sum(), above + (y[400:] > high).sum(), n + 500
    slack = norm.isf(FALSE_ALARM) * np.sqrt(0.05 * 0.95 * (1 / 202 + 1 / 500) / 100)
    assert abs(below / n - 0.05) < slack + 1 / 201 and abs(above / n - 0.05) < slack + 1 / 201


@pytest.mark.slow
def test_normalized_intervals_cover_where_noise_grows(rng):
    class Growing(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.coef_ = float((y / (1 + X[:, 0])).mean())
            return self

        def predict(self, X, return_std=False):
            mean = self.coef_ * (1 + np.asarray(X)[:, 0])
            return (mean, 0.3 * (1 + np.asarray(X)[:, 0])) if return_std else mean

    X = rng.uniform(0, 10, (4000, 1))
    y = (1 + X[:, 0]) * (1 + 0.5 * rng.normal(size=4000))
    inside = {}
    for normalized in (True, False):
        model = lk.ConformalRegressor(Growing(), normalized=normalized).fit(X[:2000], y[:2000])
        low, high = model.interval(X[2000:], 0.9)
        at = [(X[2000:, 0] < 3), (X[2000:, 0] > 7)]
        inside[normalized] = [((low <= y[2000:]) & (y[2000:] <= high))[part].mean() for part in at]
    assert min(inside[True]) > 0.85 and inside[False][0] - inside[False][1] > 0.15


# ---------------------------------------------------- too few rows, weights, errors


def test_too_few_rows_give_infinite_intervals_and_a_warning(rng):
    X, y = line(rng, 40)
    model = lk.ConformalRegressor(Ridge()).fit(X, y)  # 10 rows calibrate
    with pytest.warns(
        lk.FitWarning, match=r"level 0.95 need 19 calibration rows, got 10: they are infinite; pass more"
    ):
        low, high = model.interval(X, 0.95)
    assert np.isneginf(low).all() and np.isposinf(high).all()
    assert np.isfinite(model.interval(X, 10 / 11)).all()
    with pytest.warns(lk.FitWarning, match="need 19 calibration rows"):
        assert np.isinf(lk.ConformalRegressor(Ridge(), "cross", cv=2).fit(X[:12], y[:12]).interval(X, 0.95)).all()


@pytest.mark.parametrize("method", ["split", "cross"])
def test_a_weight_is_a_number_of_copies(method, rng):
    X, y = line(rng, 60)
    w = rng.integers(0, 4, 60)
    weighted = lk.ConformalRegressor(Ridge(), method).fit(X, y, sample_weight=w)
    copied = lk.ConformalRegressor(Ridge(), method).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.interval(X, 0.8), copied.interval(X, 0.8), rtol=1e-9)


@pytest.mark.parametrize("method", ["split", "cross"])
def test_copies_of_a_row_do_not_train_and_calibrate(method, rng):
    from sklearn.neighbors import KNeighborsRegressor

    X, y = line(rng, 300)
    model = lk.ConformalRegressor(KNeighborsRegressor(1), method).fit(X[:200], y[:200], sample_weight=np.full(200, 3))
    low, high = model.interval(X[200:], 0.8)
    assert ((low <= y[200:]) & (y[200:] <= high)).mean() > 0.7


def test_the_order_of_rows_does_not_matter(rng):
    X, y = line(rng, 60)
    mixed = rng.permutation(60)
    for method in ("split", "cross"):
        model = lk.ConformalRegressor(Ridge(), method)
        one, other = clone(model).fit(X, y).interval(X, 0.8), clone(model).fit(X[mixed], y[mixed]).interval(X, 0.8)
        np.testing.assert_allclose(one, other, rtol=1e-9)
    first = lk.ConformalRegressor(Ridge(), random_state=1).fit(X, y)
    assert not np.allclose(first.interval(X, 0.8), lk.ConformalRegressor(Ridge()).fit(X, y).interval(X, 0.8))


def test_fractional_weights_and_estimators_without_weights(rng):
    from sklearn.neighbors import KNeighborsRegressor

    X, y = line(rng, 80)
    w = rng.uniform(0.5, 1.5, 80)
    model = lk.ConformalRegressor(Ridge()).fit(X, y, sample_weight=w)
    assert 10 < model.weight_.sum() < 20 and np.isfinite(model.interval(X, 0.8)).all()
    with pytest.warns(lk.FitWarning, match="KNeighborsRegressor takes no weights: they are used for the calibration"):
        lk.ConformalRegressor(KNeighborsRegressor()).fit(X, y, sample_weight=w)


def test_tables_of_other_libraries(rng):
    pd = pytest.importorskip("pandas")
    X, y = line(rng, 60)
    frame = pd.DataFrame(X, columns=["size"])
    model = lk.ConformalRegressor(RandomForestRegressor(5, random_state=0), "cross", cv=3).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["size"] and len(model.interval(frame, 0.8)[0]) == 60


def test_bad_settings_are_errors(rng):
    X, y = line(rng, 40)
    with pytest.raises(lk.DomainError, match=r"method=\"split\" takes one split, got 5: pass a share"):
        lk.ConformalRegressor(Ridge(), cv=5).fit(X, y)
    with pytest.raises(
        lk.DataError, match=r"y must be one target \(n,\), got \(40, 2\): use one ConformalRegressor per"
    ):
        lk.ConformalRegressor(Ridge()).fit(X, np.column_stack([y, y]))
    with pytest.raises(lk.DomainError, match=r"level must lie between 0 and 1, got 1.5"):
        lk.ConformalRegressor(Ridge()).fit(X, y).interval(X, 1.5)
    with pytest.raises(lk.DomainError, match="each row must calibrate at most once"):
        cv = [(np.arange(20), np.arange(20, 40)), (np.arange(10), np.arange(20, 40))]
        lk.ConformalRegressor(Ridge(), "cross", cv=cv).fit(X, y)
    with pytest.raises(ValueError, match="'method' parameter"):
        lk.ConformalRegressor(Ridge(), "jackknife").fit(X, y)


def test_describes_itself(rng):
    X, y = line(rng)
    text = str(lk.ConformalRegressor(Ridge(), "cross").fit(X, y).describe())
    assert "calibration rows" in text and "guaranteed coverage" in text and "0.9" in text
    assert "not fitted" in str(lk.ConformalRegressor(Ridge()).describe())


# -------------------------------------------------------------------- files


class MeanRegressor(RegressorMixin, BaseEstimator):
    """Predicts the mean; a regressor of another package that can be saved."""

    saved_attributes = ("mean_",)

    def fit(self, X: Any, y: Any) -> MeanRegressor:
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.mean_)


def test_saved_only_with_an_estimator_that_can_be(rng):
    X, y = line(rng, 60)
    told = "the estimator of a ConformalRegressor must be a model of likely to be saved, got sklearn.linear_model"
    for thing in (lk.ConformalRegressor(Ridge()), lk.ConformalRegressor(Ridge()).fit(X, y)):
        with pytest.raises(lk.ModelFileError, match=told):
            model_files.dumps(thing)
    lk.extend.register(MeanRegressor)
    try:
        for method in ("split", "cross"):
            model = lk.ConformalRegressor(MeanRegressor(), method).fit(X, y)
            again = model_files.loads(model_files.dumps(model))
            np.testing.assert_array_equal(again.interval(X, 0.8), model.interval(X, 0.8))
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            model.fold_ = model.fold_ + 99
            with pytest.raises(lk.ModelFileError, match="must be consistent"):
                model_files.dumps(model)
    finally:
        REGISTERED.pop("MeanRegressor")


# ---------------------------------------------------------- scikit-learn's checks

REGRESSORS = [
    lk.ConformalRegressor(Ridge()),
    lk.ConformalRegressor(BayesianRidge(), "cross", cv=3),
    lk.ConformalRegressor(Ridge(), symmetric=False),
]
SEVERAL = 'the check sets several splits, and "split" takes one'
OF_OBJECTS = "BayesianRidge gives no standard deviation for rows of objects"


def not_for(estimator):
    if estimator.method == "split":
        return {f"check_sample_weight_equivalence_on_{kind}_data": SEVERAL for kind in ("dense", "sparse")}
    return {"check_dtype_object": OF_OBJECTS}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@scikit_learn_checks(REGRESSORS, expected_failed_checks=not_for)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "check", [checks.check_dataframe_column_names_consistency, checks.check_param_validation], ids=lambda c: c.__name__
)
def test_check_that_is_not_yielded(check):
    check("ConformalRegressor", lk.ConformalRegressor(Ridge()))
