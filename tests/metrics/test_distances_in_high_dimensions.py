"""The geometry of rows, as a report."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk


def test_a_plane_in_many_columns_has_two_dimensions():
    rng = np.random.default_rng(0)
    report = lk.metrics.distance_diagnostics(rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 30)))
    value, error = report.dimension
    assert value == pytest.approx(2, abs=0.15) and 0.005 < error < 0.1
    assert "30 columns vary like 2" in report.verdict and "Distances are informative" in report.verdict


@pytest.mark.slow
def test_many_independent_columns_leave_no_contrast():
    rng = np.random.default_rng(0)
    few, many = (lk.metrics.distance_diagnostics(rng.normal(size=(1000, d))) for d in (5, 300))
    assert few.contrast > 5 > 0.5 > many.contrast
    assert many.hubs.skewness > 3 > few.hubs.skewness
    assert "Distances are not informative" in many.verdict
    assert many.spread == pytest.approx(1 / np.sqrt(600), rel=0.3)
    middle = lk.metrics.distance_diagnostics(rng.normal(size=(3000, 20)))
    assert "rows are hubs" in middle.verdict


def test_missing_values_copies_and_weights():
    x = np.random.default_rng(0).normal(size=(300, 3))
    plain = lk.metrics.distance_diagnostics(x)
    twice = np.repeat(x, 2, axis=0)
    again = lk.metrics.distance_diagnostics(twice)
    assert again.dimension == plain.dimension and again.copies == 0.5
    some = lk.metrics.distance_diagnostics(x, weight=np.arange(300) % 2)
    assert some.rows == 150 and some.dimension == lk.metrics.distance_diagnostics(x[1::2]).dimension
    holes = np.concatenate([x, np.full((5, 3), np.nan)])
    found = lk.metrics.distance_diagnostics(holes)
    assert found.left_out == 5 and found.dimension == plain.dimension and "5 rows with missing values" in found.verdict


def test_few_rows_and_bad_ones():
    assert np.isfinite(lk.metrics.distance_diagnostics([[0.0], [1.0], [3.0]]).dimension.value)
    with pytest.raises(lk.DataError, match="at least 3 distinct rows"):
        lk.metrics.distance_diagnostics([[0.0], [0.0], [1.0]])
    with pytest.raises(lk.DataError, match="row 1, column 0"):
        lk.metrics.distance_diagnostics([[0.0], [np.inf], [1.0]])


@pytest.mark.slow
def test_the_error_of_a_dimension_holds_its_bias_and_a_large_one_is_a_lower_bound():
    rng = np.random.default_rng(5)
    for d in (2, 4, 8):
        value, error = lk.metrics.distance_diagnostics(rng.normal(size=(1000, d))).dimension
        assert abs(value - d) < 3 * error
    many = lk.metrics.distance_diagnostics(rng.normal(size=(1000, 100)))
    assert many.at_least and many.dimension.value < 100 and "independent ones or more" in many.verdict
