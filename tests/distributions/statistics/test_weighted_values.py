from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.distributions.statistics import weighted_values as module
from likely.distributions.univariate.triangular_fit import best_of_modes


def collected(distribution, x, weight=None):
    return distribution.collect(x, weight)


@pytest.mark.parametrize("rows", [40, 3000])  # sorted by one call, and column by column
def test_a_sum_of_parts_is_the_statistic_of_the_whole(rows):
    rng = np.random.default_rng(rows)
    distribution = lk.Laplace([0.0, 0.0, 0.0], 1.0)
    x = np.round(rng.normal(size=(rows, 3)), 1 if rows == 40 else 6)
    x[rng.random(x.shape) < 0.1] = np.nan
    weight = rng.integers(0, 4, rows).astype(float)
    whole = collected(distribution, x, weight)
    cuts = np.array_split(np.arange(rows), 7)
    parts = [collected(distribution, x[at], weight[at]) for at in cuts]
    for found in (sum(parts), sum(parts[::-1]), sum(parts[:3]) + sum(parts[3:])):
        assert np.array_equal(found.cell, whole.cell) and np.array_equal(found.value, whole.value)
        np.testing.assert_allclose(found.each, whole.each, rtol=1e-14)
        np.testing.assert_allclose(found.weight, whole.weight, rtol=1e-14)
        type(found)(**found.field_values())  # a sound value: sorted, each value once


def test_what_is_sorted_is_not_sorted_again(monkeypatch):
    distribution, rng = lk.Laplace(0.0, 1.0), np.random.default_rng(0)
    one, other = (collected(distribution, rng.normal(size=500)) for _ in range(2))

    def refuse(*_):
        raise AssertionError("sorted again")

    monkeypatch.setattr(module, "sorted_by_cell", refuse)
    assert len((one + other).value) == 1000


def test_a_column_that_only_one_part_has_seen():
    distribution = lk.Laplace([0.0, 0.0], 1.0)
    one, other = collected(distribution, [[1.0, np.nan]]), collected(distribution, [[np.nan, 2.0]])
    assert (one + other).value.tolist() == [1.0, 2.0]
    assert (other + one).cell.tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("low", [None, -0.1])
def test_every_mode_of_a_triangle_is_tried(low):
    rng = np.random.default_rng(7)
    for k in range(12):
        x = np.sort(rng.standard_cauchy(int(rng.integers(3, 60))) if k % 2 else rng.random(40) ** 3)
        x = np.unique((x - x[0]) / (x[-1] - x[0]))
        w = rng.dirichlet(np.ones(len(x)))
        best = max(best_of_modes(x, w, np.array([r]), low, None).score for r in range(len(x)))
        assert best_of_modes(x, w, np.arange(len(x)), low, None).score == pytest.approx(best, abs=1e-12)
