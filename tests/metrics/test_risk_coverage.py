"""Risk against coverage, by trying every threshold."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics.risk_coverage import risk_coverage


def brute(doubt, cost, w):
    points = []
    for t in np.unique(doubt):
        taken = doubt <= t
        points.append((t, w[taken].sum() / w.sum(), (w * cost)[taken].sum() / w[taken].sum()))
    return np.array(points).T


@pytest.mark.parametrize("seed", range(3))
def test_risk_coverage_is_that_of_every_threshold(seed):
    rng = np.random.default_rng(seed)
    doubt, cost, w = rng.integers(0, 30, 200) / 30, rng.exponential(size=200), rng.random(200)
    curve = risk_coverage(doubt, cost, w)
    np.testing.assert_allclose([curve.threshold, curve.coverage, curve.risk], brute(doubt, cost, w))
    for wished in (0.8, 1.0, 1.2):
        within = [p for p in brute(doubt, cost, w).T if p[2] <= wished]
        expected = max(within, key=lambda p: p[1]) if within else (-np.inf, 0, 0)
        np.testing.assert_allclose(curve.reaching(wished), expected)


def test_area_without_ties_is_the_mean_of_the_risks_so_far():
    rng = np.random.default_rng(5)
    doubt, wrong = rng.random(50), rng.random(50) < 0.3
    so_far = np.cumsum(wrong[np.argsort(doubt)]) / np.arange(1, 51)
    assert risk_coverage(doubt, wrong).area == pytest.approx(so_far.mean())


def test_covering_a_share_takes_no_more_rows_than_needed():
    curve = risk_coverage(np.arange(10) / 10, np.arange(10) % 2)
    assert curve.covering(0.3).coverage == pytest.approx(0.3)
    assert curve.covering(0.31).coverage == pytest.approx(0.4)
    assert curve.covering(1.0).risk == 0.5
    with pytest.raises(DomainError):
        curve.covering(1.2)


def test_risk_coverage_weights_are_copies():
    rng = np.random.default_rng(6)
    doubt, cost, w = rng.integers(0, 9, 40), rng.random(40), rng.integers(0, 4, 40)
    ours, copies = risk_coverage(doubt, cost, w), risk_coverage(np.repeat(doubt, w), np.repeat(cost, w))
    np.testing.assert_allclose(ours.risk, copies.risk)
    np.testing.assert_allclose(ours.coverage, copies.coverage)


def test_risk_coverage_names_bad_input():
    with pytest.raises(ShapeError):
        risk_coverage([1, 2], [1])
    with pytest.raises(DataError):
        risk_coverage([1, np.nan], [1, 1])
