"""What each column adds, against formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

import likely as lk
from likely.classify.calibration.calibration_maps import IsotonicMap, Temperature
from likely.classify.explanation import Explanation


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_naive_bayes_log_odds_add_up(iris):
    X, y = iris
    clf = lk.NaiveBayes().fit(X, y)
    why, L = clf.explain(X), clf.predict_log_proba(X)
    top = np.sort(L, axis=1)
    assert np.allclose(why.log_odds.sum(axis=1) + why.prior_log_odds, top[:, -1] - top[:, -2], atol=1e-9)


def test_log_odds_are_conditional_densities(iris):
    X, y = iris
    clf = lk.BayesClassifier().fit(X, y)
    why = clf.explain(X[60:61])
    a, b = (clf.model_.components.member(int(c)) for c in (why.decided[0], why.runner_up[0]))
    for j in range(4):
        rest = {i: X[60, i] for i in range(4) if i != j}
        by_hand = a.condition(rest).log_prob(X[60:61, [j]]) - b.condition(rest).log_prob(X[60:61, [j]])
        assert why.log_odds[0, j] == pytest.approx(by_hand[0], abs=1e-9)


def test_cost_changes_are_expected_costs_without_the_column(iris):
    X, y = iris
    cost = np.array([[0, 1, 9], [5, 0, 1], [1, 1, 0]])
    clf = lk.BayesClassifier(lk.GaussianDensity("pooled"), cost=cost).fit(X, y)
    why, with_all = clf.explain(X[70:90]), (clf.predict_proba(X[70:90]) @ cost.T).min(axis=1)
    for j in range(4):
        blind = X[70:90].copy()
        blind[:, j] = np.nan
        expected = clf.predict_proba(blind) @ cost.T
        assert np.allclose(why.cost_change[:, j], expected.min(axis=1) - with_all, atol=1e-12)
        assert (why.without[:, j] == clf.predict(blind)).all()


@pytest.mark.parametrize(
    "clf", [lk.KNeighborsClassifier(15, "scaled"), lk.NearestCentroidClassifier("scaled")], ids=repr
)
def test_distances_explain_by_leaving_columns_out(iris, clf):
    X, y = iris
    clf.fit(X, y)
    why, L = clf.explain(X[70:90]), clf.predict_log_proba(X[70:90])
    at = np.arange(20)
    for j in range(4):
        blind = X[70:90].copy()
        blind[:, j] = np.nan
        gain = L - clf.predict_log_proba(blind)
        assert np.allclose(why.log_odds[:, j], gain[at, why.decided] - gain[at, why.runner_up], atol=1e-9)
        assert (why.without[:, j] == clf.predict(blind)).all()
    assert np.abs(why.log_odds).max() > 0.1 and "class probabilities" in str(why)


def test_behind_a_map_the_map_has_the_last_word(iris):
    X, y = iris
    clf, map = lk.NaiveBayes().fit(X, y), Temperature(2.0, 3)
    why, plain = Explanation.of(clf, X, map), clf.explain(X)
    assert np.allclose(why.log_odds, plain.log_odds / 2.0, atol=1e-9)
    assert np.allclose(why.posterior, np.exp(map.log_posterior(clf.log_posterior(X))), atol=1e-12)
    assert np.allclose(why.prior_log_odds, plain.prior_log_odds / 2.0, atol=1e-9)


def test_before_calibration_naive_bayes_adds_up_to_the_uncalibrated_log_odds(iris):
    from likely.classify.calibration.calibration_maps import METHODS

    X, y = iris
    naive, full = lk.NaiveBayes().fit(X, y), lk.BayesClassifier().fit(X, y)
    steps = METHODS["isotonic"](naive.predict_log_proba(X), y, None)
    rows = X[[56, 70, 77, 106, 133]]
    why = Explanation.of(naive, rows, steps)
    L, at = naive.log_posterior(rows), np.arange(5)
    ours, theirs = np.searchsorted(naive.classes_, why.decided), np.searchsorted(naive.classes_, why.runner_up)
    np.testing.assert_allclose(why.prior_before + why.before.sum(axis=1), L[at, ours] - L[at, theirs], atol=1e-9)
    assert why.note.endswith("They add up to the log-odds of the uncalibrated posterior.")
    lapse = Explanation.of(naive, rows, Temperature(2.0, 3, 0.1))
    assert "Before calibration they add up to the log-odds of the uncalibrated posterior" in lapse.note
    assert json.loads(json.dumps(next(why.records())))["prior_log_odds_before"] == why.prior_before[0]
    assert Explanation.of(naive, rows, Temperature(2.0, 3)).note == naive.explain(rows).note == ""  # a linear map
    for other in (Explanation.of(full, rows, steps), full.explain(rows)):
        assert other.note.endswith("hey need not add up.")
    assert full.explain(rows).prior_before is None and "prior_log_odds_before" not in next(full.explain(rows).records())


def test_flat_steps_hide_no_column(iris):
    """Between two steps of an isotonic map a column that says much was shown as +0.000, and ranked last."""
    X, y = iris
    clf = lk.NaiveBayes().fit(X, y)
    steps = IsotonicMap([-9.0, -1.0, 1.0, 9.0] * 3, [0.1, 0.1, 0.8, 0.8] * 3, [0, 4, 8, 12])
    plain, why = clf.explain(X), Explanation.of(clf, X, steps)
    hidden = (np.abs(why.log_odds) < 5e-4) & (np.abs(plain.log_odds) > 1) & ~why.saturated[:, None]
    i, j = (int(k[0]) for k in np.nonzero(hidden))
    line = next(
        line for line in why.pages()[i].to_text(indented=True).splitlines() if line.startswith(f"  {why.columns[j]} ")
    )
    assert f"{why.before[i, j]:+.3f}" in line and "+0.000" not in line
    assert f"{why.prior_before[i]:+.3f}" in why.pages()[i].to_text(indented=True)
    assert why.ranking(i).tolist() == np.argsort(-np.abs(why.before[i]), kind="stable").tolist()
    assert why.note.startswith("Log-odds are those before calibration") and why.note in str(why)
    same = why.decided == plain.decided
    assert np.allclose(
        why.before[same & (why.runner_up == plain.runner_up)], plain.log_odds[same & (why.runner_up == plain.runner_up)]
    )


def test_mixed_tables_and_text():
    X = {"size": [1.0, 1.2, 3.0, 3.1], "color": ["red", "red", "blue", None]}
    why = lk.NaiveBayes().fit(X, ["a", "a", "b", "b"]).explain(X)
    assert why.columns == ["size", "color"] and why.log_odds[3, 1] == 0.0  # nothing was observed there
    text = str(why)
    assert "red" in text and "missing" in text and "class probabilities" in text
    assert json.loads(json.dumps(list(why.records())))[0]["columns"][0]["column"] == "size"


def test_one_class_has_no_runner_up():
    why = lk.BayesClassifier().fit([[0.0], [1.0], [2.0]], ["a"] * 3).explain([[1.0]])
    assert why.runner_up[0] == "a" and why.log_odds[0, 0] == 0.0


def test_a_saturated_calibration_is_reported(iris):
    from likely.classify.calibration.calibration_maps import METHODS

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 3)) + y[:, None] * [1.0, 0.5, 0.0]
    clf = lk.BayesClassifier().fit(X, y)
    steps = METHODS["isotonic"](clf.predict_log_proba(X), y, None)
    rows = np.array([[8.0, 8.0, 8.0], [0.1, 0.2, 0.3]])
    why, plain = Explanation.of(clf, rows, steps), Explanation.of(clf, rows)
    assert why.saturated.tolist() == [True, False] and not plain.saturated.any() and plain.before is None
    assert (why.log_odds[0] == 0).all() and np.allclose(why.before, plain.log_odds)
    flat, other = (page.to_text() for page in why.pages())
    assert flat.endswith("these log-odds are those before it") and "+22." in flat
    assert "saturated" not in other and "saturated" not in str(plain)
    first, second = why.records()
    assert first["saturated"] and not second["saturated"] and first["columns"][0]["log_odds_before"] > 20
