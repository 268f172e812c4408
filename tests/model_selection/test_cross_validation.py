"""Evaluation tests on what was not learned from: against scikit-learn's own cross-validation and by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedStratifiedKFold, ShuffleSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import likely as lk
from likely.classify.calibration.calibrated import CalibratedClassifier
from likely.core.errors import DataError, DomainError
from likely.model_selection.cross_validation import evaluate, out_of_fold

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)


def test_posteriors_are_those_of_cross_val_predict():
    held = out_of_fold(GaussianNB(), X, NAMES[Y], cv=KFold(5, shuffle=True, random_state=1))
    theirs = cross_val_predict(
        GaussianNB(), X, Y, cv=KFold(5, shuffle=True, random_state=1), method="predict_log_proba"
    )
    np.testing.assert_array_equal(held.row, np.arange(150))
    np.testing.assert_allclose(np.exp(held.log_posterior), np.exp(theirs), atol=1e-12)
    np.testing.assert_array_equal(held.truth, Y)
    assert held.classes.tolist() == NAMES.tolist()


def test_folds_are_stratified_and_known():
    e = evaluate(GaussianNB(), X, NAMES[Y], cv=5)
    assert len(e) == 150 and np.bincount(e.fold).tolist() == [30] * 5
    assert all(np.bincount(Y[e.fold == k]).tolist() == [10, 10, 10] for k in range(5))
    assert e.error.value < 0.08


@pytest.mark.slow
def test_leave_one_out_equals_scikit_learns():
    rows = np.unique(X, axis=0, return_index=True)[1]
    e = evaluate(GaussianNB(), X[rows], Y[rows], cv="leave-one-out")
    theirs = cross_val_predict(GaussianNB(), X[rows], Y[rows], cv=LeaveOneOut(), method="predict_proba")
    np.testing.assert_allclose(np.exp(e.log_posterior), theirs, atol=1e-9)


@pytest.mark.slow
def test_leave_one_out_from_statistics_equals_learning_anew():
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled"))
    rows = np.unique(X, axis=0, return_index=True)[1]
    fast = evaluate(clf, X[rows], Y[rows], cv="leave-one-out")
    slow = evaluate(clf, X[rows], Y[rows], cv=LeaveOneOut())
    np.testing.assert_allclose(fast.log_posterior, slow.log_posterior, rtol=1e-6, atol=1e-8)
    w = np.arange(len(rows)) % 3
    weighted = evaluate(clf, X[rows], Y[rows], cv="leave-one-out", sample_weight=w)
    assert len(weighted) == (w > 0).sum()


def test_time_tests_what_came_later(rng):
    order = rng.permutation(150)
    e = out_of_fold(GaussianNB(), X[order], Y[order], cv="time")
    assert e.row.min() == 25 and len(e.row) == 125
    by_hand = GaussianNB().fit(X[order][:25], Y[order][:25]).predict_proba(X[order][25:50])
    np.testing.assert_allclose(np.exp(e.log_posterior[:25]), by_hand, atol=1e-12)
    moment = rng.permutation(150)
    later = out_of_fold(GaussianNB(), X[order], Y[order], cv="time", time=moment)
    assert moment[later.row].min() == 25


def test_hold_out_and_repeated_splits():
    assert len(evaluate(GaussianNB(), X, Y, cv=0.2)) == 30
    repeated = out_of_fold(GaussianNB(), X, Y, cv=ShuffleSplit(4, test_size=15, random_state=0))
    assert len(repeated.row) == len(set(repeated.row)) < 60  # tested twice, counted once
    np.testing.assert_array_equal(repeated.truth, Y[repeated.row])


def test_groups_make_memory_useless(rng):
    groups = np.repeat(np.arange(50), 4)
    rows = 30 * rng.normal(size=(50, 3))[groups] + rng.normal(size=(200, 3))
    labels = rng.integers(0, 2, 50)[groups]
    tree = DecisionTreeClassifier(random_state=0)
    assert evaluate(tree, rows, labels).error.value < 0.25
    assert evaluate(tree, rows, labels, groups=groups).error.value > 0.3


def test_groups_reach_who_calibrates(rng):
    groups = np.repeat(np.arange(60), 4)
    rows = 30 * rng.normal(size=(60, 3))[groups] + rng.normal(size=(240, 3))
    labels = rng.integers(0, 2, 60)[groups]
    clf = CalibratedClassifier(DecisionTreeClassifier(random_state=0), "temperature")
    # folds of its own that tore groups apart would make it sure of what cannot be known
    assert evaluate(clf, rows, labels, groups=groups).log_loss.value < 0.8


def test_weights_are_copies(rng):
    w = rng.integers(0, 4, 150)
    again = rng.permutation(np.repeat(np.arange(150), w))
    weighted = evaluate(GaussianNB(), X, Y, sample_weight=w)
    repeated = evaluate(GaussianNB(), X[again], Y[again])
    assert weighted.error == pytest.approx(tuple(repeated.error), rel=1e-9)
    assert weighted.log_loss.value == pytest.approx(repeated.log_loss.value, rel=1e-6)
    assert weighted.mean_cost.value == pytest.approx(repeated.mean_cost.value, rel=1e-9)


def test_threads_change_nothing():
    a, b = (evaluate(lk.BayesClassifier(), X, Y, n_jobs=n).log_posterior for n in (1, 3))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["pandas", "polars", "list", "columns"])
def test_any_table_will_do(kind):
    names = ["a", "b", "c", "d"]
    rows = {
        "pandas": lambda: pd.DataFrame(X, columns=names, index=np.arange(150)[::-1]),
        "polars": lambda: pl.DataFrame(dict(zip(names, X.T, strict=True))),
        "list": lambda: X.tolist(),
        "columns": lambda: lk.core.Columns(size=X[:, :2], rest=X[:, 2:]),
    }[kind]()
    clf = GaussianNB()
    if kind == "columns":
        clf = lk.BayesClassifier(lk.ProductDensity([("size", lk.GaussianDensity()), ("rest", lk.GaussianDensity())]))
    plain = evaluate(GaussianNB(), X, NAMES[Y])
    e = evaluate(clf, rows, NAMES[Y].tolist())
    if kind != "columns":
        np.testing.assert_allclose(e.log_posterior, plain.log_posterior, rtol=1e-9, atol=1e-12)
    assert e.error.value < 0.08


def test_costs_are_the_estimators_own_unless_given():
    table = [[0, 5, 5], [1, 0, 1], [1, 1, 0]]
    clf = lk.BayesClassifier(cost=table, reject_cost=0.2)
    own, given = evaluate(clf, X, Y), evaluate(lk.BayesClassifier(), X, Y, cost=table, reject_cost=0.2)
    assert own.mean_cost.value == pytest.approx(given.mean_cost.value)
    assert own.reject_cost == 0.2 and own.cost is not None


def test_models_of_x_say_how_usual_a_row_is():
    e = evaluate(lk.BayesClassifier(), X, Y)
    assert e.score is not None and e.score.shape == (150,)
    assert evaluate(GaussianNB(), X, Y).score is None


def test_a_class_absent_from_training_is_named_and_has_posterior_0():
    labels = NAMES[Y]
    labels[3] = "lost"
    with pytest.warns(lk.FitWarning, match="class 'lost' is absent"):
        e = evaluate(GaussianNB(), X, labels)
    assert e.log_posterior[3, 0] == -np.inf
    assert e.predicted[3] != 0


@pytest.mark.slow
def test_calibrated_classifiers_are_evaluated_like_any():
    rows, labels = load_breast_cancer(return_X_y=True)
    plain = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=500))
    before, after = evaluate(plain, rows, labels, cv=3), evaluate(CalibratedClassifier(plain, cv=3), rows, labels, cv=3)
    assert after.log_loss.value < before.log_loss.value


def test_bad_input_is_named():
    with pytest.raises(lk.DomainError, match=r"lk\.CalibratedClassifier\(SVC"):
        evaluate(SVC(), X, Y)
    with pytest.raises(lk.DomainError, match="cv must be"):
        evaluate(GaussianNB(), X, Y, cv="twice")
    with pytest.raises(lk.DataError, match="one label per row"):
        evaluate(GaussianNB(), X, Y[:7])
    with pytest.raises(lk.DataError, match="label"):
        evaluate(GaussianNB(), X, np.where(Y == 1, np.nan, Y))
    with pytest.raises(ValueError, match="weights must contain"):
        evaluate(GaussianNB(), X, Y, sample_weight=np.zeros(150))


def test_repetition_makes_no_interval_narrower(rng):
    rows, noise = rng.normal(size=(90, 2)), rng.integers(0, 2, 90)
    once = evaluate(GaussianNB(), rows, noise, cv=5).error
    often = evaluate(
        GaussianNB(), rows, noise, cv=RepeatedStratifiedKFold(n_splits=5, n_repeats=10, random_state=0)
    ).error
    assert often.high - often.low > 0.9 * (once.high - once.low)


def test_a_table_of_cells_is_learned_from_copies(rng):
    """Equal rows are different cases: a tree that has seen every cell makes no mistake on new rows."""
    label, cell = rng.integers(0, 2, 64), rng.integers(0, 64, 800)
    rows = (cell[:, None] >> np.arange(6)) & 1
    tree = DecisionTreeClassifier(random_state=0)
    assert evaluate(tree, rows, label[cell]).error.value < 0.01
    assert CalibratedClassifier(tree).fit(rows, label[cell]).predict_proba(rows).max(axis=1).mean() > 0.95


# ------------------------------------------------------------- fitted already


def test_a_fitted_model_is_measured_as_it_is():
    train, test = np.arange(150) % 2 == 0, np.arange(150) % 2 == 1
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X[train], NAMES[Y[train]])
    e = evaluate(clf, X[test], NAMES[Y[test]], cv="prefit")
    np.testing.assert_allclose(np.exp(e.log_posterior), clf.predict_proba(X[test]), rtol=1e-12)
    assert len(e) == 75 and e.fold is None and e.truth.tolist() == Y[test].tolist()
    assert e.error.value == pytest.approx((clf.predict(X[test]) != NAMES[Y[test]]).mean())
    one = evaluate(clf, X[test][:5], NAMES[Y[test][:5]], cv="prefit", sample_weight=[1, 2, 1, 1, 1])
    assert one.classes.tolist() == NAMES.tolist() and one.counts.sum() == 6  # classes that the rows lack stay
    other = GaussianNB().fit(X[train], Y[train])
    wrong = evaluate(other, X[test], Y[test], cv="prefit").error.value
    assert wrong == pytest.approx(1 - other.score(X[test], Y[test]))
    words = evaluate(other, X[test], Y[test].astype(str), cv="prefit")  # labels that read alike
    assert words.truth.tolist() == Y[test].tolist()


def test_prefit_refuses_what_is_not_fitted_and_labels_that_are_not_known():
    with pytest.raises(DomainError, match="needs a fitted classifier, got GaussianNB"):
        evaluate(GaussianNB(), X, Y, cv="prefit")
    clf = GaussianNB().fit(X[Y < 2], Y[Y < 2])
    with pytest.raises(DataError, match=r"among the classes \[0, 1\], got 2 at row 100"):
        evaluate(clf, X, Y, cv="prefit")


def test_folds_of_a_fitted_model_are_not_silent():
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled")).fit(X, Y)
    with pytest.warns(lk.FitWarning, match=r'fitted already, but copies of it.*cv="prefit" evaluates it unchanged'):
        silent = evaluate(clf, X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = evaluate(clf, X, Y, cv=5)
        fresh = evaluate(lk.BayesClassifier(lk.GaussianDensity("pooled")), X, Y)
    assert silent.error == asked.error == fresh.error


@pytest.mark.slow
def test_copies_of_a_calibrated_table_are_calibrated_inside_folds():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    common = rng.normal(0, 1.6, 400) + y
    frame = pl.DataFrame({f"x{j}": common + rng.normal(0, 0.05, 400) for j in range(6)})  # naive Bayes is far too sure
    plain, softened = lk.TableClassifier().fit(frame, y), lk.TableClassifier(calibrate=True).fit(frame, y)
    assert plain.calibration_ is None and softened.calibration_ is not None
    around = lk.TableClassifier.from_fitted(softened.classifier_, softened.schema, softened.calibration_)
    losses = {name: evaluate(clf, frame, y, cv=5).log_loss.value
              for name, clf in {"plain": plain, "softened": softened, "around": around}.items()}  # fmt: skip
    assert losses["softened"] == losses["around"] < losses["plain"] - 0.2
    again = clone(softened)
    assert again.calibrate and not hasattr(again, "classifier_")


def test_copies_without_their_calibration_are_reported():
    clf = GaussianNB().fit(X, Y)
    clf.calibration_ = "a map"
    with pytest.warns(lk.FitWarning, match="copies of it are evaluated without calibration"):
        evaluate(clf, X, Y, cv=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "clf",
    [lk.BayesClassifier(calibration="temperature"), lk.CalibratedClassifier(GaussianNB(), "temperature", 3)],
    ids=repr,
)
def test_copies_that_are_calibrated_in_their_folds_are_not_told_of(clf):
    unfitted = evaluate(clf, X, Y, cv=5).log_loss.value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(clone(clf).fit(X, Y), X, Y, cv=5).log_loss.value == unfitted


def test_shares_of_weight_count_in_every_figure(rng):
    x, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    w = rng.random(60)
    how = {"cv": 3, "sample_weight": w, "random_state": 0}
    held = out_of_fold(GaussianNB(), x, y, **how)
    wrong = held.log_posterior.argmax(axis=1) != held.truth
    assert evaluate(GaussianNB(), x, y, **how).error.value == pytest.approx(np.average(wrong, weights=w[held.row]))
    assert abs(np.average(wrong, weights=w[held.row]) - wrong.mean()) > 1e-3
