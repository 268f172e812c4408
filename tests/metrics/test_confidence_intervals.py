"""Rates and means: exact intervals, and weights that are copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from likely.core.errors import DataError, DomainError, ShapeError
from likely.metrics.confidence_intervals import as_counts, mean, proportion_interval, weighted_proportion


@pytest.mark.parametrize("method", ["exact", "wilson"])
@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (1, 10), (2, 178), (300, 10_000)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_proportion_agrees_with_scipy(k, n, level, method):
    ours = proportion_interval(k, n, level, method)
    theirs = scipy.stats.binomtest(k, n).proportion_ci(level, method)
    np.testing.assert_allclose(ours, (k / n, theirs.low, theirs.high), atol=1e-12)


def test_exact_interval_means_what_it_says():
    value, low, high = proportion_interval(3, 20)
    assert scipy.stats.binom.sf(2, 20, low) == pytest.approx(0.025)
    assert scipy.stats.binom.cdf(3, 20, high) == pytest.approx(0.025)
    assert low < value < high


def test_arrays_go_entry_by_entry():
    found = proportion_interval([1, 5], [10, 20])
    assert found.low.tolist() == [proportion_interval(1, 10).low, proportion_interval(5, 20).low]


@pytest.mark.parametrize(("k", "n"), [(-1, 10), (11, 10), (0, 0), (np.nan, 10)])
def test_impossible_counts_are_refused(k, n):
    with pytest.raises(DataError, match="0 ≤ wrong ≤ n"):
        proportion_interval(k, n)


def test_level_and_method_are_checked():
    with pytest.raises(DomainError, match="level"):
        proportion_interval(1, 2, 95)
    with pytest.raises(DomainError, match="'exact', 'wilson'"):
        proportion_interval(1, 2, method="wald")


# ------------------------------------------------------------------------ weights


def test_integer_weights_are_copies():
    hit, w = np.array([True, False, False, True]), np.array([3, 1, 0, 2])
    assert weighted_proportion(hit, as_counts(w, 4)) == proportion_interval(5, 6)
    values = np.array([1.0, 4.0, 9.0, 2.5])
    np.testing.assert_allclose(mean(values, w)[:4], mean(np.repeat(values, w))[:4], rtol=1e-14)


def test_scaling_shares_changes_nothing():
    rng = np.random.default_rng(0)
    values, w = rng.normal(size=30), rng.random(30)
    np.testing.assert_allclose(mean(values, w)[:4], mean(values, 1e-200 * w)[:4], rtol=1e-12)
    assert as_counts(w, 30).sum() == pytest.approx(w.sum() ** 2 / (w**2).sum())


def test_equal_shares_are_so_many_rows():
    np.testing.assert_allclose(mean([1.0, 2.0, 6.0], [0.1, 0.1, 0.1])[:4], mean([1.0, 2.0, 6.0])[:4], rtol=1e-12)


def test_rows_without_weight_may_be_anything():
    assert mean([1.0, 3.0, np.inf], [1, 1, 0]) == mean([1.0, 3.0])


def test_no_weight_at_all_is_refused():
    with pytest.raises(DataError, match="positive weight"):
        mean([1.0, 2.0], [0, 0])
    with pytest.raises(DataError, match="NaN at row 1"):
        mean([1.0, np.nan])
    with pytest.raises(DataError, match="at least one row"):
        mean([])
    with pytest.raises(ShapeError, match="one entry per row"):
        mean([1.0, 2.0], [1, 1, 1])
    assert weighted_proportion(np.zeros(2), np.zeros(2)) is None


# -------------------------------------------------------------------------- means


def test_mean_is_students():
    x = np.random.default_rng(1).exponential(size=25)
    low, high = scipy.stats.t.interval(0.95, 24, x.mean(), scipy.stats.sem(x))
    np.testing.assert_allclose(mean(x)[:4], (x.mean(), low, high, scipy.stats.sem(x)))


def test_standard_error_over_equal_folds_is_that_of_their_means():
    x, fold = np.random.default_rng(2).normal(size=40), np.arange(40) % 5
    means = [x[fold == f].mean() for f in range(5)]
    assert mean(x, fold=fold).se_folds == pytest.approx(np.std(means, ddof=1) / np.sqrt(5))


def test_what_cannot_be_known_is_infinite_not_nan():
    assert mean([2.0]) == (2.0, -np.inf, np.inf, np.inf, None)
    assert mean([1.0, np.inf]) == (np.inf, np.inf, np.inf, np.inf, None)
    assert mean([3.0, 3.0]) == (3.0, 3.0, 3.0, 0.0, None)
    assert mean([1.0, 2.0], fold=np.array([0, 0])).se_folds == np.inf
