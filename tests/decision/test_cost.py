"""The cheapest action, against counting by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest

import likely as lk


def by_enumeration(table, posterior):
    """The first action of least expected cost, in exact arithmetic."""
    best, least = None, None
    for a, row in enumerate(table):
        expected = sum(Fraction(float(c)) * Fraction(float(p)) for c, p in zip(row, posterior, strict=True))
        if least is None or expected < least:
            best, least = a, expected
    return best


def dyadic_posteriors(rng, n, C):
    """Posteriors in 1/64ths, so that products with whole costs are exact, and ties are real ties."""
    cuts = np.sort(rng.integers(0, 65, (n, C - 1)), axis=1)
    edges = np.concatenate([np.zeros((n, 1)), cuts, np.full((n, 1), 64)], axis=1)
    return np.diff(edges, axis=1) / 64


@pytest.mark.parametrize("seed", range(20))
def test_decisions_equal_enumeration_exactly(seed):
    rng = np.random.default_rng(seed)
    C, extra = int(rng.integers(1, 6)), int(rng.integers(0, 4))
    table = rng.integers(0, 9, (C + extra, C)).astype(float)
    P = dyadic_posteriors(rng, 60, C)
    expected = [by_enumeration(table, p) for p in P]
    assert lk.decide(P, cost=table, full=True).index.tolist() == expected
    called = [*range(C), *(f"action {i + 1}" for i in range(extra))]
    assert lk.decide(P, cost=table).tolist() == [called[a] for a in expected]


@pytest.mark.parametrize("seed", range(10))
def test_rejecting_equals_enumeration_exactly(seed):
    rng = np.random.default_rng(100 + seed)
    C = int(rng.integers(2, 6))
    table, price, below = rng.integers(0, 9, (C, C)).astype(float), float(rng.integers(0, 5)) / 4, 0.5
    P = dyadic_posteriors(rng, 80, C)
    with_row = np.concatenate([table, np.full((1, C), price)])
    by_cost = [a if (a := by_enumeration(with_row, p)) < C else -1 for p in P]
    assert lk.decide(P, cost=table, reject_cost=price).tolist() == by_cost
    both = [-1 if p.max() < below else a for a, p in zip(by_cost, P, strict=True)]
    assert lk.decide(P, cost=table, reject_cost=price, reject_below=below).tolist() == both


def test_zero_one_costs_choose_the_largest_posterior():
    P = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    assert (lk.decide(P) == P.argmax(axis=1)).all()
    assert (lk.Cost.zero_one(4).decide(np.log(P)) == P.argmax(axis=1)).all()


def test_chow_rule():
    """Refusing at cost r under 0/1 costs is refusing where the largest posterior is below 1 − r."""
    P = np.random.default_rng(1).dirichlet(np.ones(3), 500)
    assert (lk.decide(P, reject_cost=0.375) == lk.decide(P, reject_below=0.625)).all()


def test_risk_is_the_mean_cost():
    cost = lk.Cost([[0, 2], [5, 0], [1, 1]], actions=["ask"])
    assert cost.risk([0, 1, 2, 0], [0, 0, 1, 1]) == (0 + 5 + 1 + 2) / 4
    assert cost.risk([0, 1], [0, 0], weight=[3, 1]) == 5 / 4


def test_names_put_a_table_in_order():
    named = lk.Cost.named(["b", "ask", "a"], ["b", "a"], [[0, 7], [2, 2], [5, 0]])
    assert named.actions == ("ask",)
    there = lk.Cost.of(named, np.array(["a", "b"], dtype=object))
    assert there.table.tolist() == [[0, 5], [7, 0], [2, 2]]
    by_dict = lk.Cost.of({"a": {"a": 0, "b": 5}, "b": {"a": 7, "b": 0}, "ask": {"a": 2, "b": 2}}, ["a", "b"])
    assert by_dict.table.tolist() == there.table.tolist() and by_dict.actions == ("ask",)


def test_data_frames_say_costs():
    frame = pd.DataFrame([[0, 5], [7, 0]], index=["a", "b"], columns=["a", "b"])
    assert lk.Cost.of(frame, ["a", "b"]).table.tolist() == [[0, 5], [7, 0]]
    other = pl.DataFrame({"action": ["b", "a"], "a": [7.0, 0.0], "b": [0.0, 5.0]})
    assert lk.Cost.of(other, ["a", "b"]).table.tolist() == [[0, 5], [7, 0]]


def test_numbers_as_classes():
    named = lk.Cost.named(["0", "1"], ["0", "1"], [[0, 1], [2, 0]])
    assert lk.Cost.of(named, np.array([1, 0])).table.tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[0, 1, 2]], "2 classes"),
        ([[0, 1, 2], [1, 0, 2], [2, 1, 0]], "2 classes"),
        ([[0, -np.inf], [1, 0]], "or \\+inf"),
        ([[0, "x"], [1, 0]], "numbers"),
        ({"a": {"a": 0, "c": 1}, "c": {"a": 1, "c": 0}}, "classes"),
        ({"a": {"a": 0, "b": 1}}, "each class needs one action"),
        ({"a": 3}, "by name"),
    ],
)
def test_tables_that_are_none(given, says):
    with pytest.raises(lk.LikelyError, match=says):
        lk.Cost.of(given, ["a", "b"])


def test_values_are_frozen_and_saved(tmp_path):
    cost = lk.Cost([[0, 9], [1, 0], [2, 2]], ["ask"], np.array(["no", "yes"]))
    with pytest.raises(ValueError, match="read-only"):
        cost.table[0, 0] = 1
    lk.save(cost, tmp_path / "c.likely")
    again = lk.load(tmp_path / "c.likely")
    assert again.actions == ("ask",) and again.classes.tolist() == ["no", "yes"] and (again.table == cost.table).all()


def test_all_small_cases():
    """Every 2 × 2 table with costs 0 … 3 and every posterior in quarters."""
    for costs in product(range(4), repeat=4):
        table = np.array(costs, dtype=float).reshape(2, 2)
        for quarter in range(5):
            p = np.array([[quarter / 4, 1 - quarter / 4]])
            assert lk.decide(p, cost=table)[0] == by_enumeration(table, p[0])


@pytest.mark.parametrize("seed", range(20))
def test_fewer_actions_than_classes_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    table, P = rng.integers(0, 9, (2, 4)).astype(float), rng.dirichlet(np.ones(4), 30)
    expected = [by_enumeration(table, p) for p in P]
    assert lk.decide(P, cost=table).tolist() == [f"action {a + 1}" for a in expected]
    named = lk.Cost(table, actions=["go", "stop"], classes=["a", "b", "c", "d"])
    for full in (lk.decide(P, cost=named, full=True), lk.decide(P, cost=named.replace(classes=None), full=True)):
        assert full.choice.tolist() == [["go", "stop"][a] for a in expected]
        assert full.runner_up.tolist() == [["stop", "go"][a] for a in expected]


def test_unnamed_actions_are_called_alike_with_and_without_a_classifier():
    X, y = np.random.default_rng(0).normal(size=(200, 1)), np.repeat(["a", "b"], 100)
    X[100:] += 2.0
    clf, table = lk.BayesClassifier().fit(X, y), [[0.0, 9], [9, 0], [1, 1], [0.5, 2]]
    wanted = clf.decide(X, cost=table)
    assert {"a", "b", "action 1", "action 2"} == set(wanted)
    found = lk.decide(clf.predict_proba(X), cost=table)
    assert [clf.classes_[d] if isinstance(d, int) else d for d in found] == wanted.tolist()
    refusing = lk.decide([[0.5, 0.5], [1.0, 0.0]], cost=lk.Cost([[0, 9], [9, 0]], classes=["a", "b"]), reject_cost=1.0)
    assert refusing.tolist() == [lk.REJECT, "a"]


def test_names_are_no_rows_of_the_table():
    cost = lk.Cost([[0, 9], [9, 0], [2, 2]], actions=["ask"])
    done = lk.decide([[0.5, 0.5], [0.9, 0.1]], cost=cost, full=True)
    assert cost.risk(done.index, [0, 1]) == 5.5
    with pytest.raises(lk.DomainError, match="rows of the table, got names"):
        cost.risk(done.choice, [0, 1])


def test_actions_that_are_no_classes_in_a_classifier(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["sound", "worn", "broken"], 30)
    X = rng.normal(size=(90, 2)) + np.repeat([[0.0, 0.0], [4.0, 0.0], [8.0, 0.0]], 30, axis=0)
    costs = {"keep": {"sound": 0, "worn": 3, "broken": 9}, "repair": {"sound": 2, "worn": 0, "broken": 1}}
    clf = lk.BayesClassifier(cost=costs).fit(X, y)
    decided, P = clf.decide(X), clf.predict_proba(X)
    table = np.array([[costs[a][c] for c in clf.classes_] for a in costs])
    assert decided.tolist() == [list(costs)[i] for i in (P @ table.T).argmin(axis=1)]
    assert (clf.predict(X) == clf.classes_[P.argmax(axis=1)]).all()  # no row decides for a class
    lk.save(clf, tmp_path / "m.likely")
    assert (lk.load(tmp_path / "m.likely").decide(X) == decided).all()
    found = lk.evaluate(clf, X, y, cv=3)
    assert found.decision_cost.value < 0.5 and np.isfinite(found.confusion_cost).all()
    assert found.actions == ["broken", "sound", "worn", "keep", "repair"]


def test_infinite_costs():
    table = [[0, np.inf], [1, 0]]
    P = np.array([[0.999, 0.001], [1.0, 0.0], [0.0, 1.0]])
    assert lk.decide(P, cost=table).tolist() == [1, 0, 1]  # 0 times infinity is 0
    full = lk.decide(P, cost=table, full=True)
    assert full.expected_costs.tolist() == [[np.inf, 0.999], [0.0, 1.0], [np.inf, 0.0]]
    never = [[0, np.inf], [np.inf, 0]]
    with pytest.raises(lk.DomainError, match="none for row 1"):
        lk.decide(np.array([[1.0, 0.0], [0.5, 0.5]]), cost=never)
    assert lk.decide(np.array([[1.0, 0.0], [0.5, 0.5]]), cost=never, reject_cost=3.0).tolist() == [0, -1]


def test_a_class_that_must_never_be_decided():
    cost = {"a": {"a": np.inf, "b": np.inf}, "b": {"a": 1, "b": 0}, "ask": {"a": 2, "b": 2}}
    made = lk.Cost.of(cost, ["a", "b"])
    assert made.predicted(np.array([[0.9, 0.1]])).tolist() == [1] and made.decide(np.log([[0.9, 0.1]])).tolist() == [1]
    with pytest.raises(lk.DomainError, match="no action 'a'"):
        lk.Cost.of({"b": {"a": 1, "b": 0}}, ["a", "b"])
    with pytest.raises(lk.DomainError, match="costs must be finite here"):
        lk.bayes_error(lk.Gaussian([0.0], 1.0), lk.Gaussian([2.0], 1.0), cost=[[0, np.inf], [1, 0]])
    few = lk.bayes_error(*(lk.Gaussian([m], 1.0) for m in (0.0, 2.0, 2.0)), cost=[[0, 1, 1], [1, 0, 0]])
    two = lk.bayes_error(lk.Gaussian([0.0], 1.0), lk.Gaussian([2.0], 1.0), class_prior=[1 / 3, 2 / 3])
    assert abs(float(few) - float(two)) < 1e-6
