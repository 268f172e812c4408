"""Curves against scikit-learn, and against counting at every threshold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from sklearn import metrics

from likely.core.errors import DataError, ShapeError
from likely.metrics.roc import roc, thin


def example(n=300, seed=0, ties=True, weighted=False):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    score = rng.normal(size=n) + positive
    score = np.round(score, 1) if ties else score
    return score, positive, rng.random(n) if weighted else None


# ---------------------------------------------------------------------------- ROC


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_roc_agrees_with_scikit_learn(ties, weighted):
    score, positive, w = example(ties=ties, weighted=weighted)
    ours = roc(score, positive, w)
    theirs = metrics.roc_curve(positive, score, sample_weight=w, drop_intermediate=False)
    for a, b in zip((ours.false_alarm, ours.detection, ours.threshold), theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert ours.auc == pytest.approx(metrics.roc_auc_score(positive, score, sample_weight=w), abs=1e-12)


def test_area_is_mann_and_whitneys_with_ties_half():
    score, positive, _ = example()
    above = scipy.stats.mannwhitneyu(score[positive], score[~positive]).statistic
    assert roc(score, positive).auc == pytest.approx(above / positive.sum() / (~positive).sum(), abs=1e-12)


def test_every_point_is_what_its_threshold_gives():
    score, positive, w = example(weighted=True)
    curve = roc(score, positive, w)
    for t, alarm, hit in zip(curve.threshold, curve.false_alarm, curve.detection, strict=True):
        taken = score >= t
        assert alarm == pytest.approx(w[taken & ~positive].sum() / w[~positive].sum())
        assert hit == pytest.approx(w[taken & positive].sum() / w[positive].sum())
    assert len(curve.threshold) == len(np.unique(score)) + 1


def test_weights_are_copies_and_zero_is_absence():
    score, positive, _ = example(60)
    w = np.random.default_rng(3).integers(0, 4, 60)
    ours, copies = roc(score, positive, w), roc(np.repeat(score, w), np.repeat(positive, w))
    np.testing.assert_allclose(ours.detection, copies.detection)
    np.testing.assert_allclose(ours.threshold, copies.threshold)


def test_partial_area_agrees_with_scikit_learn():
    score, positive, _ = example()
    limit = 0.2
    standard = metrics.roc_auc_score(positive, score, max_fpr=limit)
    low = 0.5 * limit**2
    ours = roc(score, positive).partial_auc(limit)
    assert 0.5 * (1 + (ours - low) / (limit - low)) == pytest.approx(standard, abs=1e-12)
    assert roc(score, positive).partial_auc(1.0) == pytest.approx(roc(score, positive).auc)


def test_threshold_for_a_share_of_false_alarms():
    score, positive, _ = example(ties=False)
    curve = roc(score, positive)
    t = curve.threshold_at(0.1)
    assert (score[~positive] >= t).mean() <= 0.1
    lower = score[score < t].max()
    assert (score[~positive] >= lower).mean() >= (score[~positive] >= t).mean()
    assert curve.threshold_at(0.0) > score[~positive].max()
    assert curve.detection_at(1.0) == 1.0


def test_infinite_scores_are_the_surest():
    curve = roc([np.inf, 1.0, -np.inf], [True, False, False])
    assert curve.false_alarm.tolist() == [0, 0, 0.5, 1] and curve.detection.tolist() == [0, 1, 1, 1]
    assert np.isposinf(curve.threshold).sum() == 1


@pytest.mark.parametrize(
    ("score", "truth", "error", "words"),
    [
        ([1, 2], [1, 1], DataError, "positive and negative rows"),
        ([1, np.nan], [0, 1], DataError, "row 1"),
        ([1, 2, 3], [0, 1], ShapeError, "one length"),
        ([1, 2], ["a", "b"], DataError, "True or False"),
    ],
)
def test_bad_input_is_named(score, truth, error, words):
    with pytest.raises(error, match=words):
        roc(score, truth)


# ---------------------------------------------------------------- equal error, DET


def gaussian_scores(rate, genuine=440, forged=264):
    """Scores at the quantiles of two normal distributions whose equal error rate is `rate`: Herbst's protocol."""
    d = scipy.stats.norm.isf(rate)
    q = [scipy.stats.norm.ppf((np.arange(n) + 0.5) / n) for n in (genuine, forged)]
    return np.concatenate([q[0] + d, q[1] - d]), np.repeat([True, False], [genuine, forged])


def test_equal_error_rate_of_four_per_cent():
    """Herbst 1.2.2: 22 × 20 genuine signatures, 22 × 12 forgeries, equal error rate 4 %."""
    score, genuine = gaussian_scores(0.04)
    found = roc(score, genuine).equal_error()
    assert found.rate == pytest.approx(0.04, abs=0.002)
    assert (score[~genuine] >= found.threshold).mean() == pytest.approx(0.04, abs=0.004)
    assert (score[genuine] < found.threshold).mean() == pytest.approx(0.04, abs=0.004)


@pytest.mark.parametrize("seed", range(5))
def test_equal_error_lies_on_the_segment_between_thresholds(seed):
    score, positive, _ = example(40, seed)
    curve = roc(score, positive)
    grid = np.linspace(0, 1, 200_001)
    at = np.interp(grid, np.arange(len(curve.miss)) / (len(curve.miss) - 1), curve.false_alarm - curve.miss)
    alarm = np.interp(grid, np.arange(len(curve.miss)) / (len(curve.miss) - 1), curve.false_alarm)
    assert curve.equal_error().rate == pytest.approx(alarm[np.abs(at).argmin()], abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_hull_is_above_concave_and_touches(seed):
    score, positive, _ = example(80, seed, ties=False)
    curve = roc(score, positive)
    hull = curve.hull()
    assert (np.interp(curve.false_alarm, hull.false_alarm, hull.detection) >= curve.detection - 1e-12).all()
    slopes = np.diff(hull.detection) / np.maximum(np.diff(hull.false_alarm), 1e-300)
    assert (np.diff(slopes) < 0).all()
    assert curve.equal_error(hull=True).rate <= curve.equal_error().rate + 1e-12
    assert hull.auc >= curve.auc


def test_perfect_and_hopeless_scores():
    assert roc([0.0, 1.0], [False, True]).equal_error().rate == 0.0
    assert roc([1.0, 0.0], [False, True]).equal_error().rate == 1.0
    assert roc([1.0, 1.0], [False, True]).equal_error().rate == 0.5


def test_det_of_gaussian_scores_is_a_line():
    score, genuine = gaussian_scores(0.04, 4000, 4000)
    det = roc(score, genuine).det()
    inner = np.abs(det.false_alarm_deviate) + np.abs(det.miss_deviate) < 6
    fit = np.polyfit(det.false_alarm_deviate[inner], det.miss_deviate[inner], 1)
    assert fit[0] == pytest.approx(-1, abs=0.02)
    np.testing.assert_allclose(scipy.stats.norm.cdf(det.miss_deviate), det.miss, atol=1e-12)
    assert len(det.thinned(50).miss) <= 50


def test_thinned_curves_keep_ends_and_area():
    score, positive, _ = example(20_000, ties=False)
    curve = roc(score, positive)
    few = curve.thinned(200)
    assert len(few.threshold) <= 200
    assert (few.false_alarm[0], few.detection[-1]) == (0.0, 1.0)
    assert few.auc == pytest.approx(curve.auc, abs=1e-3)
    assert thin(np.zeros(5), np.zeros(5), 3)[[0, -1]].tolist() == [0, 4]
