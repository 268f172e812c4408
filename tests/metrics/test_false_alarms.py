"""Thresholds from held-out frames: quantiles, tails, shares of evidence, weights that are copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from likely.metrics.false_alarms import (
    allowed_share,
    exceeding,
    predictive_threshold,
    quantile,
    rule_of_three,
    supported_rate,
    tail,
    tempered,
    upper_limit,
)

ONE = np.ones(1)


def test_quantiles() -> None:
    x = np.random.default_rng(0).normal(size=2000)
    assert quantile([x], ONE, 0.05) == np.sort(x)[1899]
    assert (x > quantile([x], ONE, 0.05)).mean() == 0.05
    assert quantile([np.zeros(50)], ONE, 0.1) == 0.0


def test_tails_are_predicted() -> None:
    x = np.random.default_rng(17).exponential(size=2000)
    assert abs(tail([x], ONE).threshold(1e-4) - np.log(1e4)) < 1.0
    assert 0.3e-4 < exceeding([x], ONE, np.log(1e4)) < 3e-4
    assert abs(exceeding([x], ONE, np.log(20.0)) - 0.05) < 0.02


def test_a_short_tail_is_believed_only_with_many_runs() -> None:
    x = np.random.default_rng(1).exponential(size=5000)
    few, many, long = [0.2 * x[:50]], [0.2 * x], [3.0 * x]
    beyond = [predictive_threshold(each, ONE, 0.01) - quantile(each, ONE, 0.1) for each in (few, many)]
    assert beyond[0] > 0.8 * np.log(10.0) and beyond[1] < 0.25 * np.log(10.0)
    assert abs(predictive_threshold(long, ONE, 0.01) - 3.0 * np.log(100.0)) < 1.5
    assert predictive_threshold(long, ONE, 0.5) == quantile(long, ONE, 0.5)


@pytest.mark.parametrize("n", [300, 1000])
def test_new_frames_exceed_the_threshold_as_often_as_stated(n) -> None:
    """Independent frames with the tail of a likelihood ratio: P(x > c) = e^−c, averaged over samples."""
    rng = np.random.default_rng(n)
    thresholds = [predictive_threshold([rng.exponential(size=n)], ONE, 0.01) for _ in range(300)]
    assert 0.0075 < np.exp(-np.array(thresholds)).mean() < 0.012


@pytest.mark.slow
def test_likelihood_ratios_exceed_as_seldom_as_stated() -> None:
    """A running odds of a change that never comes, in 2,000 frames, asked for 1 % of new ones."""
    rng, found = np.random.default_rng(2), []
    for _ in range(20):
        held, new = (np.log(_odds(rng.normal(-0.5, 1.0, n))) for n in (2000, 20_000))
        found.append((new > predictive_threshold([held], ONE, 0.01)).mean())
    assert 0.01 / 1.5 < np.mean(found) < 0.015 and np.quantile(found, 0.9) < 0.03


def _odds(z: np.ndarray, hazard: float = 1e-3, repair: float = 1e-2) -> np.ndarray:
    out, odds = np.empty(len(z)), hazard
    for t, one in enumerate(z):
        fault = odds / (1 + odds)
        fault = fault * (1 - repair) + (1 - fault) * hazard
        odds = out[t] = fault / (1 - fault) * np.exp(one)
    return out


def test_weights_are_copies() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=300), rng.normal(1.0, 2.0, 200)
    for f in (quantile, predictive_threshold, exceeding):
        np.testing.assert_allclose(f([a, b], np.array([2.0, 1.0]), 0.03), f([a, a, b], np.ones(3), 0.03))


def test_shares_of_evidence() -> None:
    z = np.random.default_rng(16).normal(-0.5, 1.0, 20_000)  # a true log-likelihood ratio of a shift by 1
    assert allowed_share([z], ONE) > 0.85
    assert 0.4 < allowed_share([2 * z], ONE) < 0.6
    assert allowed_share([z + 1.0], ONE) == 0.0
    assert allowed_share([], np.empty(0)) == 0.0


def test_a_part_is_tempered_by_the_others() -> None:
    """The one wild part does not lower its own evidence, but that of all others."""
    rng = np.random.default_rng(4)
    parts = [[rng.normal(-0.5, 1.0, (500, 1)) for _ in range(5)]]
    parts[0][2] = parts[0][2] + 1.0  # evidence for a fault in every frame
    (found,) = tempered(parts, ONE)
    shares = [float((f / z)[0, 0]) for f, z in zip(found, parts[0], strict=True)]
    assert shares[2] > 0.6 and max(np.delete(shares, 2)) < 0.3


def test_the_supported_rate_is_an_upper_limit() -> None:
    """Of white frames, the limit is below the true share in 5 % of samples, and not far above it, also beyond 1 / n."""
    rng = np.random.default_rng(4)
    for share, most in ((0.08, 1.6), (0.02, 2.0), (0.001, 4.0)):
        limits = [supported_rate([rng.exponential(size=400)], ONE, -np.log(share)) for _ in range(200)]
        assert np.mean(np.array(limits) < share) < 0.1
        assert np.median(limits) < most * share
    still = [rng.exponential(size=400)]
    assert supported_rate([np.zeros(300)], ONE, 1.0) == rule_of_three(300.0)
    twice = supported_rate(2 * still, np.ones(2), 3.0)
    np.testing.assert_allclose(supported_rate(still, np.array([2.0]), 3.0), twice)


def test_an_upper_limit_is_that_of_a_poisson_count() -> None:
    for events in (0, 1, 3, 20, 150):
        np.testing.assert_allclose(poisson.cdf(events, 2000.0 * upper_limit(events, 2000.0)), 0.05, rtol=1e-9)
    assert upper_limit(0.0, 300.0) == rule_of_three(300.0) and upper_limit(5.0, 2.0) == 1.0


def test_the_rule_of_three() -> None:
    np.testing.assert_allclose((1 - rule_of_three(300.0)) ** 300, 0.05, rtol=0.02)
    assert rule_of_three(0.5) == 1.0
