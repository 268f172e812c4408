"""The cheapest threshold against trying them all; Herbst's forgeries."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DomainError, ShapeError
from likely.decision.cost import Cost
from likely.distributions.categorical.probability_table import ProbabilityTable
from likely.metrics.operating_point import equal_error_needed, expected_cost_curve, operating_threshold


def example(seed, n=150):
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    return np.round(rng.normal(size=n) + truth, 1), truth, rng.random(n)


def paid(score, truth, w, t, prior, table):
    """Expected cost of a threshold, by counting."""
    says = (score >= t).astype(int)
    each = [np.average(np.asarray(table)[says[truth == c], c], weights=w[truth == c]) for c in (0, 1)]
    return (1 - prior) * each[0] + prior * each[1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", [0.0004, 0.3, 0.9])
@pytest.mark.parametrize("table", [[[0, 1], [1, 0]], [[0, 20], [1, 0]], [[-1, 5], [3, -2]]])
def test_no_threshold_is_cheaper(seed, prior, table):
    score, truth, w = example(seed)
    best = operating_threshold(score, truth, prior, table, w)
    costs = [paid(score, truth, w, t, prior, table) for t in (*np.unique(score), np.inf)]
    assert best.expected_cost == pytest.approx(min(costs))
    assert paid(score, truth, w, best.threshold, prior, table) == pytest.approx(best.expected_cost)
    assert best.false_alarm == pytest.approx(np.average(score[~truth] >= best.threshold, weights=w[~truth]))
    assert best.miss == pytest.approx(np.average(score[truth] < best.threshold, weights=w[truth]))


def test_curve_holds_every_threshold():
    score, truth, w = example(0)
    curve = expected_cost_curve(score, truth, 0.2, [[0, 4], [1, 0]], w)
    each = [paid(score, truth, w, t, 0.2, [[0, 4], [1, 0]]) for t in curve.threshold]
    np.testing.assert_allclose(curve.expected_cost, each)


def test_without_prior_and_costs_it_is_the_error_of_the_sample():
    score, truth, w = example(1)
    best = operating_threshold(score, truth, weight=w)
    errors = [np.average((score >= t) != truth, weights=w) for t in np.unique(score)]
    assert best.expected_cost == pytest.approx(min(errors))


def test_log_odds_have_their_threshold_where_bayes_puts_it():
    """Two normal distributions: the best threshold on the log-ratio is log of prior odds times cost ratio."""
    rng = np.random.default_rng(2)
    truth = np.repeat([False, True], 200_000)
    ratio = 2 * (rng.normal(size=400_000) + np.where(truth, 1, -1))
    best = operating_threshold(ratio, truth, class_prior=(0.7, 0.3), cost=Cost([[0, 5], [1, 0]]))
    assert best.threshold == pytest.approx(np.log(0.7 / 0.3 / 5), abs=0.1)


def test_where_positives_are_rare_no_false_alarm_is_worth_it():
    score, truth, _ = example(3)
    assert operating_threshold(score, truth, 1e-9).threshold > score[~truth].max()
    assert operating_threshold(-score, truth, 1e-9, [[0, 1], [1, 1]]).threshold == np.inf


@pytest.mark.parametrize("e", [0.0004, 0.04, 0.2])
def test_every_second_rejection_a_forgery_if_error_equals_prior(e):
    """Herbst 1.2.1: with 4 forgeries in 10,000 the equal error rate must be 0.0004."""
    rates = {"forged": {"reject": 1 - e, "accept": e}, "genuine": {"reject": e, "accept": 1 - e}}
    table = ProbabilityTable(S={"forged": e, "genuine": 1 - e}).times("M", given="S", rows=rates)
    assert table.condition(M="reject")["forged"] == pytest.approx(0.5)
    assert equal_error_needed(e) == pytest.approx(e)


def test_error_needed_for_another_share():
    e = equal_error_needed(0.01, 0.9)
    assert 0.01 * (1 - e) / (0.01 * (1 - e) + 0.99 * e) == pytest.approx(0.9)


def test_bad_input_is_named():
    with pytest.raises(DomainError, match="class_prior"):
        operating_threshold([0, 1], [0, 1], 1.5)
    with pytest.raises(DomainError, match="class_prior"):
        operating_threshold([0, 1], [0, 1], (0.5, 0.6))
    with pytest.raises(ShapeError, match="2 actions"):
        operating_threshold([0, 1], [0, 1], 0.5, np.zeros((3, 3)))
    with pytest.raises(DomainError, match="prior and share"):
        equal_error_needed(0.0)


def test_a_threshold_that_accepts_all_accepts_minus_infinity():
    found = operating_threshold([-np.inf, 1.0, 2.0], [1, 0, 1], class_prior=0.99)
    assert found.threshold == -np.inf and found.miss == 0.0
