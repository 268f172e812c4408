"""Decisions with names, refusals and reasons, for our classifiers and others'."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import LinearSVC

import likely as lk

P = np.array([[0.9, 0.1], [0.55, 0.45], [0.2, 0.8]])


def test_refusals_are_themselves():
    assert copy.deepcopy(lk.REJECT) is lk.REJECT and pickle.loads(pickle.dumps(lk.NOVEL)) is lk.NOVEL
    assert lk.REJECT != "REJECT" and lk.REJECT != -1 and lk.REJECT != lk.NOVEL and repr(lk.NOVEL) == "NOVEL"
    mixed = np.array([1, lk.REJECT, -1, lk.NOVEL, lk.REJECT], dtype=object)
    assert (mixed == lk.REJECT).sum() == 2 and np.unique(mixed).tolist() == [lk.NOVEL, lk.REJECT, -1, 1]
    assert sorted(["b", lk.REJECT, "a"]) == [lk.REJECT, "a", "b"]


def test_rows_of_the_table_without_a_classifier():
    assert lk.decide(P).tolist() == [0, 0, 1]
    assert lk.decide(P, reject_below=0.6).tolist() == [0, -1, 1]
    assert lk.decide(P, cost=[[0, 9], [1, 0], [0.5, 0.5]]).tolist() == ["action 1", "action 1", 1]


@pytest.mark.parametrize(
    ("posterior", "says"),
    [
        ([[0.5, 0.6]], "add to 1"), ([[np.nan, 1.0]], "row 0"), ([[1.5, -0.5]], "probabilities"), ([0.5, 0.5], "shape"),
        ([["a", "b"]], "numbers"),
    ],
)  # fmt: skip
def test_posteriors_that_are_none(posterior, says):
    with pytest.raises(lk.LikelyError, match=says):
        lk.decide(posterior)


def test_settings_out_of_range():
    with pytest.raises(lk.DomainError, match="reject_below"):
        lk.decide(P, reject_below=80)
    with pytest.raises(lk.DomainError, match="cost of rejection"):
        lk.decide(P, reject_cost=-1.0)
    with pytest.raises(lk.DomainError, match="need a classifier"):
        lk.decide(P, novelty=0.01)


def test_foreign_classifiers():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(2, 1, (50, 2))])
    y = np.repeat(["a", "b"], 50)
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    decided = lk.decide(forest, X, cost=[[0, 1], [1, 0]], reject_cost=0.3)
    proba = forest.predict_proba(X)
    sure = proba.max(axis=1) >= 0.7
    assert (decided[sure] == forest.classes_[proba.argmax(axis=1)][sure]).all()
    assert all(d is lk.REJECT for d in decided[~sure]) and (~sure).any()
    with pytest.raises(lk.DomainError, match="CalibratedClassifier"):
        lk.decide(LinearSVC().fit(X, y), X)
    with pytest.raises(lk.DomainError, match="p\\(x\\)"):
        lk.decide(forest, X, novelty=0.01)
    with pytest.raises(lk.DomainError, match="fit it"):
        lk.decide(RandomForestClassifier(), X)


def test_full_says_why():
    full = lk.decide(P, cost=[[0, 9], [1, 0]], reject_cost=0.5, full=True)
    assert full.choice.tolist() == [-1, -1, 1]
    assert full.expected_costs.shape == (3, 3) and np.allclose(full.cost, [0.5, 0.5, 0.2])
    assert full.runner_up.tolist() == [0, 1, 0] and np.allclose(full.runner_up_cost, [0.9, 0.55, 7.2])
    assert "rejection costs 0.5" in full.reasons[0] and full.reasons[2].startswith("expected cost 0.2")
    assert json.loads(json.dumps(list(full.records())))[0]["decision"] == -1
    assert "runner-up" in str(full)
    below = lk.decide(P, reject_below=0.7, full=True)
    assert "below 0.7" in below.reasons[1] and np.isnan(below.cost[1])


def test_rejecting_makes_objects_and_nothing_else_does():
    X, y = [[0.0], [1.0], [5.0], [6.0]], np.array([3, 3, 7, 7])
    clf = lk.BayesClassifier().fit(X, y)
    assert clf.decide(X).dtype == y.dtype and clf.decide(X, reject_below=0.0).dtype == object
    named = clf.decide(X, cost=lk.Cost([[0, 1], [1, 0], [-1, -1]], ["ask"]))
    assert named.tolist() == ["ask"] * 4
    assert clf.set_params(cost=[[0, 1], [1, 0], [-1, -1]]).predict(X).tolist() == [3, 3, 7, 7]  # never another action


def test_herbst_combination_of_two_tests():
    one = lk.change_prior([[0.96, 0.04]], [0.5, 0.5], [0.0004, 0.9996])
    assert one[0, 0] == pytest.approx(0.00951249, abs=1e-8)
    assert lk.combine_posteriors([one, one], [0.0004, 0.9996])[0, 0] == pytest.approx(0.18731707, abs=1e-7)
    assert lk.combine_posteriors([one] * 3, [0.0004, 0.9996])[0, 0] == pytest.approx(0.84690, abs=1e-5)


def test_combining_equals_one_model_of_all_measurements():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 4)) + y[:, None] * [1.0, -1.0, 0.5, 0.3]
    whole = lk.NaiveBayes().fit(X, y)
    parts = [lk.NaiveBayes().fit(X[:, c], y).predict_proba(X[:, c]) for c in ([0, 1], [2], [3])]
    assert np.allclose(lk.combine_posteriors(parts, whole.class_prior_), whole.predict_proba(X), atol=1e-12)


def test_a_changed_prior_equals_training_with_it():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], [250, 50])
    X = rng.normal(size=(300, 2)) + y[:, None]
    clf, even = lk.BayesClassifier().fit(X, y), lk.BayesClassifier(class_prior="uniform").fit(X, y)
    assert np.allclose(clf.with_class_prior([0.5, 0.5]).predict_proba(X), even.predict_proba(X), atol=1e-12)
    assert np.allclose(
        lk.change_prior(clf.predict_proba(X), clf.class_prior_, [0.5, 0.5]), even.predict_proba(X), atol=1e-12
    )
    assert (clf.decide(X, class_prior={0: 0.5, 1: 0.5}) == even.predict(X)).all()
    with pytest.raises(lk.LikelyError, match="add to 1"):
        clf.decide(X, class_prior=[0.5, 0.6])


def test_evidence_that_contradicts_itself_is_said():
    with pytest.raises(lk.DataError, match="row 1"):
        lk.combine_posteriors([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [0.5, 0.5])
    with pytest.raises(lk.DomainError, match="positive probability in training"):
        lk.change_prior([[1.0, 0.0]], [1.0, 0.0], [0.5, 0.5])


def test_a_rejection_by_threshold_names_the_most_probable_class():
    reason = lk.decide([[0.2, 0.45, 0.35]], reject_below=0.7, full=True).reasons[0]
    assert "class, 1," in reason and "0.45" in reason


def test_a_further_action_stands_where_the_posterior_is_low():
    assert lk.decide([[0.5, 0.5]], cost=[[0, 9], [9, 0], [1, 1]], reject_below=0.8).tolist() == ["action 1"]


def test_rejections_have_no_cost_of_their_own():
    decided = lk.decide([[0.5, 0.5], [0.9, 0.1]], reject_below=0.8)
    with pytest.raises(lk.DomainError, match="reject_cost"):
        lk.Cost([[0, 9], [9, 0]]).risk(decided, [1, 0])
    assert lk.Cost([[0, 9], [9, 0]]).risk(decided, [1, 0], reject_cost=2.0) == 1.0


def test_integers_may_name_actions():
    frame = pd.DataFrame([[1, 0], [0, 5]], index=[1, 0], columns=[0, 1])
    assert lk.Cost.of(frame, np.array([0, 1])).table.tolist() == [[0, 5], [1, 0]]


def test_an_action_is_not_a_class():
    with pytest.raises(lk.DomainError, match="which is a class"):
        lk.Cost([[0, 1], [1, 0], [1, 1]], ["a"], ["a", "b"])
    twice = lk.Cost([[0, 1], [1, 0], [1, 1]], ["reject"]).with_reject(0.5)
    assert len(set(twice.actions)) == 2


def test_reasons_say_that_the_cost_decided():
    full = lk.decide([[0.7, 0.3], [0.99, 0.01]], cost=[[0, 5], [1, 0]], full=True)
    words = "the most probable class is 0 (0.7), but deciding 1 costs less on average: 0.7 against 1.5"
    assert full.cost_decided(0) == words
    assert full.cost_decided(0) in full.reasons[0] and full.cost_decided(1) == ""
    asking = lk.decide([[0.6, 0.4]], cost=lk.Cost([[0, 9], [9, 0], [2, 2]], actions=["ask"]), full=True)
    assert "but deciding ask costs less on average: 2 against 3.6" in asking.cost_decided(0)
    assert lk.decide([[0.6, 0.4]], reject_cost=0.1, full=True).cost_decided(0) == ""


@pytest.mark.slow
def test_reasons_of_many_rows_take_moments():
    P = np.random.default_rng(0).dirichlet(np.ones(3), 20_000)
    assert len(list(lk.decide(P, reject_cost=0.4, full=True).records())) == 20_000  # quadratic, it took a minute


def test_rows_that_are_no_posteriors_are_refused():
    with pytest.raises(lk.DataError, match="add to 1"):
        lk.change_prior([[30.0, 1.0]], [0.5, 0.5], [0.1, 0.9])


def test_infinite_runners_up_are_no_next_best():
    told = lk.decide([[0.2, 0.3, 0.5]], cost=[[0, 1, np.inf], [1, 0, 2]], full=True).reasons[0]
    assert told == "expected cost 1.2; every other action, inf"
