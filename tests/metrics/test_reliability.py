"""Reliability diagrams: bins against counting, parts that add up, and tests that keep their level."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics.confidence_intervals import proportion_interval
from likely.metrics.reliability import reliability


def forecasts(n=2000, seed=0, sharpen=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.beta(2, 2, n)
    happened = rng.random(n) < truth
    odds = sharpen * np.log(truth / (1 - truth))
    return 1 / (1 + np.exp(-odds)), happened


@pytest.mark.parametrize(("equal", "theirs"), [("width", "uniform"), ("count", "quantile")])
def test_bins_agree_with_scikit_learn(equal, theirs):
    p, y = forecasts()
    frequency, confidence = calibration_curve(y, p, n_bins=10, strategy=theirs)
    ours = reliability(p, y, bins=10, equal=equal)
    np.testing.assert_allclose(ours.confidence, confidence, atol=1e-3 if equal == "count" else 1e-12)
    np.testing.assert_allclose(ours.frequency, frequency, atol=6e-3 if equal == "count" else 1e-12)


def test_measures_are_what_counting_gives():
    p, y = forecasts()
    r = reliability(p, y, bins=5)
    which = np.minimum((p * 5).astype(int), 4)
    gaps = np.array([abs(y[which == b].mean() - p[which == b].mean()) for b in range(5)])
    sizes = np.bincount(which)
    assert r.ece == pytest.approx((sizes * gaps).sum() / len(p))
    assert r.maximum == pytest.approx(gaps.max())
    assert r.bias == pytest.approx(p.mean() - y.mean())
    assert (r.low[0], r.high[0]) == proportion_interval(y[which == 0].sum(), sizes[0])[1:]


def test_equal_forecasts_share_a_bin():
    p = np.repeat([0.2, 0.5, 0.9], [50, 30, 20])
    r = reliability(p, np.arange(100) % 2 == 0, bins=10, equal="count")
    np.testing.assert_allclose(r.confidence, [0.2, 0.5, 0.9])
    assert r.weight.tolist() == [50, 30, 20]


@pytest.mark.parametrize("equal", ["width", "count"])
def test_parts_add_up_to_the_proper_scores(equal):
    p, y = forecasts(sharpen=2.0)
    r = reliability(p, y, equal=equal)
    assert r.brier.score == pytest.approx(((p - y) ** 2).mean())
    assert r.log_loss.score == pytest.approx(-np.log(np.where(y, p, 1 - p)).mean())
    for parts in (r.brier, r.log_loss):
        total = parts.reliability - parts.resolution + parts.uncertainty + parts.within
        assert parts.score == pytest.approx(total)
        assert parts.reliability > 0 and parts.resolution > 0


def test_nothing_is_left_within_bins_of_equal_forecasts():
    p = np.repeat([0.2, 0.7], 50)
    r = reliability(p, np.arange(100) % 3 == 0)
    assert r.brier.within == pytest.approx(0, abs=1e-12)
    assert r.log_loss.within == pytest.approx(0, abs=1e-12)


def test_integer_weights_are_copies():
    p, y = forecasts(200)
    w = np.random.default_rng(1).integers(0, 4, 200)
    ours, copies = reliability(p, y, w), reliability(np.repeat(p, w), np.repeat(y, w))
    for name in ("confidence", "frequency", "low", "high", "weight"):
        np.testing.assert_allclose(getattr(ours, name), getattr(copies, name), rtol=1e-10)
    np.testing.assert_allclose(ours.spiegelhalter, copies.spiegelhalter)
    np.testing.assert_allclose(ours.chi2, copies.chi2)
    np.testing.assert_allclose(ours.log_loss, copies.log_loss, atol=1e-12)


def test_tests_keep_their_level_on_true_forecasts():
    found = [reliability(*forecasts(400, seed)) for seed in range(300)]
    for name in ("spiegelhalter", "chi2"):
        below = np.mean([getattr(r, name).p_value < 0.1 for r in found])
        assert 0.05 < below < 0.16  # 0.1 expected, standard error 0.017


def test_verdict_tells_boasting_from_truth():
    rng = np.random.default_rng(0)
    assert "do not contradict" in reliability(*forecasts()).verdict
    assert "overconfident" in reliability(np.full(500, 0.9), rng.random(500) < 0.7).verdict
    assert "underconfident" in reliability(np.full(500, 0.6), rng.random(500) < 0.8).verdict
    assert "overconfident" in reliability(*forecasts(sharpen=2.5)).verdict  # at both ends, by nothing on average
    assert "are off" in reliability(np.full(500, 0.5), rng.random(500) < 0.8).verdict


def test_certain_forecasts_are_judged_without_nan():
    right = reliability([0.0, 1.0, 1.0], [False, True, True])
    assert (right.ece, right.spiegelhalter, right.chi2.p_value) == (0.0, (0.0, 1.0), 1.0)
    wrong = reliability([0.0, 1.0, 1.0], [True, True, True])
    assert wrong.spiegelhalter.p_value == wrong.chi2.p_value == 0.0
    assert wrong.log_loss.score == np.inf and not np.isnan(wrong.log_loss).any()


def test_bad_input_is_named():
    with pytest.raises(ShapeError):
        reliability([0.1], [True, False])
    with pytest.raises(DataError, match="0 … 1"):
        reliability([0.1, 1.2], [True, False])
    with pytest.raises(DomainError, match="width"):
        reliability([0.1, 0.2], [True, False], equal="mass")
    with pytest.raises(DomainError, match="at least 1"):
        reliability([0.1, 0.2], [True, False], bins=0)
