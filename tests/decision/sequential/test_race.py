"""Models side by side: probabilities from running evidence, and a decision as soon as waiting does not pay."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DomainError, ShapeError
from likely.decision.sequential.race import Race, race
from likely.decision.sequential.sprt import SPRT, log_ratios
from likely.io.follow_stream import follow


def at(mean: float) -> lk.HMM:
    return lk.HMM([1.0], [[1.0]], lk.Gaussian([[mean]], 1.0))


def chain(stay: float) -> lk.HMM:
    return lk.HMM([0.5, 0.5], [[stay, 1 - stay], [1 - stay, stay]], lk.Gaussian([[0.0], [3.0]], 1.0))


def test_probabilities_are_those_of_the_whole_evidence():
    models, prior = [chain(0.9), chain(0.5), chain(0.1)], np.array([0.2, 0.5, 0.3])
    x = models[0].sample(1, np.random.default_rng(0), length=40)[0].copy()
    x[7] = np.nan
    steps = list(follow(Race(models, prior), x))
    logs = np.log(prior) + [float(m.log_prob([x])[0]) for m in models]
    whole = np.logaddexp.reduce(logs)
    assert steps[-1][0].probs == pytest.approx(np.exp(logs - whole), rel=1e-9)
    assert sum(news for _, news in steps) == pytest.approx(whole, rel=1e-10)
    assert steps[-1][0].beliefs[1].probs == pytest.approx(models[1].posterior(x, lag=0)[-1], rel=1e-9)


def test_what_all_hold_for_impossible_changes_nothing():
    symbols = [lk.HMM([1.0], [[1.0]], lk.Categorical([[p, 1 - p, 0.0]])) for p in (0.2, 0.9)]
    (first, _), (second, news) = follow(Race(symbols), [0, 2])
    assert news == -np.inf and second.probs.tolist() == first.probs.tolist()
    certain = [lk.HMM([1.0], [[1.0]], lk.Categorical([[p, 1 - p]])) for p in (0.0, 1.0)]
    assert race(certain, [0]).posterior.tolist() == [0.0, 1.0]


def test_it_stops_where_waiting_does_not_pay():
    x = np.random.default_rng(1).normal(1.0, 1.0, 500)
    done = race([at(0.0), at(1.0)], x, price=0.01)
    odds = np.cumsum(log_ratios(x, 1.0))
    risk = 1 / (1 + np.exp(np.abs(odds)))  # a mistake costs 1
    assert done.stopped and done.choice == 1 and done.taken == int((risk <= 0.01).argmax()) + 1
    assert done.cost == pytest.approx(risk[done.taken - 1]) and done.cost <= 0.01
    dear = race([at(0.0), at(1.0)], x, price=0.2)
    assert dear.taken < done.taken
    assert race([at(0.0), at(1.0)], x, price=0.6).taken == 0  # not even one is worth it


def test_costs_change_the_decision_and_further_actions_count():
    x = np.random.default_rng(2).normal(0.5, 1.0, 3)
    cheap = race([at(0.0), at(1.0)], x, cost=[[0.0, 100.0], [1.0, 0.0]], price=0.0)
    assert not cheap.stopped and cheap.choice == 1 and cheap.taken == 3
    asked = race([at(0.0), at(1.0)], x, cost=[[0.0, 100.0], [100.0, 0.0], [2.0, 2.0]], price=2.0)
    assert asked.choice == 2 and asked.taken == 0 and asked.cost == 2.0


@pytest.mark.slow
def test_errors_of_the_price_rule_are_below_the_price():
    rng = np.random.default_rng(3)
    wrong = [race([at(0.0), at(1.0)], rng.normal(k, 1.0, 400), price=0.05).choice != k for k in (0, 1) * 150]
    assert np.mean(wrong) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_walds_limits_may_say_when_to_stop():
    x, test = np.random.default_rng(4).normal(1.0, 1.0, 300), SPRT(0.01, 0.01)
    done = race([at(0.0), at(1.0)], x, test=test, prior=[0.7, 0.3])  # the prior is no evidence
    expected = test.run(log_ratios(x, 1.0))
    assert (done.choice, done.taken) == (expected.verdict[0], expected.taken[0]) and done.stopped


def test_nonsense_is_refused():
    with pytest.raises(DomainError, match="between two models"):
        race([at(0.0)], [0.0], test=SPRT())
    with pytest.raises(DomainError, match="add to 1"):
        Race([at(0.0), at(1.0)], [0.5, 0.6])
    with pytest.raises(ShapeError, match="at least one"):
        Race([])
    with pytest.raises(DomainError, match="price"):
        race([at(0.0)], [0.0], price=-1.0)


@pytest.mark.parametrize("outlier", [1e7, 1e10, 1e150])
def test_an_outlier_leaves_probabilities_that_add_up_to_one(outlier):
    models = [lk.HMM([1.0], [[1.0]], lk.Gaussian([[m]], 1.0)) for m in (0.0, 1e-8, 2e-8)]
    for belief, _ in lk.follow(lk.Race(models), [0.0, outlier, 0.0]):
        assert belief.probs.sum() == pytest.approx(1.0, abs=1e-12)
