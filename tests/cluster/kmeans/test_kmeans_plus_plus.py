"""Seeds are far apart, drawn with the right probabilities, and the same for copies and weights."""

from __future__ import annotations

import numpy as np
import pytest

from likely.cluster.kmeans.kmeans_plus_plus import at_random, filled, kmeans_plus_plus, squared_distances, standardized
from likely.core.errors import DataError, DomainError
from likely.core.sketch import Sketch


def test_squared_distances_are_exact_near_and_far():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(50, 4))
    u[10] = u[3] + 1e-9
    c = u[[3, 7]]
    np.testing.assert_allclose(squared_distances(u, c), ((u - c[:, None]) ** 2).sum(axis=2), rtol=1e-9, atol=0)
    assert squared_distances(u, c)[0, 3] == 0


@pytest.mark.slow
def test_the_first_seed_is_drawn_by_weight_and_the_second_by_distance():
    x = np.array([[0.0], [1.0], [3.0]])
    firsts = np.bincount([kmeans_plus_plus(x, [1.0, 2.0, 1.0], 1, np.random.default_rng(s))[0] for s in range(4000)])
    np.testing.assert_allclose(firsts / 4000, [0.25, 0.5, 0.25], atol=0.03)


def test_greedy_seeds_find_separate_groups():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(100 * i, 1, (50, 2)) for i in range(8)])
    for seed in range(20):
        assert len(set(kmeans_plus_plus(x, None, 8, np.random.default_rng(seed)) // 50)) == 8


def test_weights_equal_copies_to_the_bit_on_a_sketch():
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(300, 3)), rng.integers(0, 4, 300)
    copies = np.repeat(x, w, axis=0)[rng.permutation(w.sum())]
    a, b = Sketch.of(x, w), Sketch.of(copies)
    for seed in range(5):
        i, j = (kmeans_plus_plus(s.rows, s.weight, 10, np.random.default_rng(seed)) for s in (a, b))
        np.testing.assert_array_equal(a.rows[i], b.rows[j])


def test_fewer_distinct_rows_give_fewer_seeds_and_rows_without_weight_none():
    x = np.array([[1.0], [1.0], [2.0], [5.0]])
    assert sorted(x[kmeans_plus_plus(x, [1, 1, 1, 0], 4, np.random.default_rng(0)), 0]) == [1, 2]
    assert len(kmeans_plus_plus(np.full((7, 2), 1e8), None, 3, np.random.default_rng(0))) == 1


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1.0, 1e100, 1e150])
def test_seeds_know_no_units(scale):
    x = np.random.default_rng(3).normal(size=(200, 3))
    want = kmeans_plus_plus(x, None, 6, np.random.default_rng(0))
    np.testing.assert_array_equal(kmeans_plus_plus(x * scale, None, 6, np.random.default_rng(0)), want)
    np.testing.assert_array_equal(kmeans_plus_plus(x + 1e8, None, 6, np.random.default_rng(0)), want)


def test_what_kmeans_plus_plus_refuses():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="complete and finite"):
        kmeans_plus_plus([[np.nan]], None, 1, rng)
    with pytest.raises(DomainError, match="at least 1"):
        kmeans_plus_plus([[1.0]], None, 0, rng)
    with pytest.raises(DataError, match="weight"):
        kmeans_plus_plus([[1.0]], [0.0], 1, rng)


def test_random_rows_are_drawn_in_proportion_to_weight():
    w = np.array([1.0, 3.0, 0.0, 4.0])
    drawn = [at_random(w, 1, np.random.default_rng(s))[0] for s in range(4000)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, w / 8, atol=0.03)
    assert sorted(at_random(w, 4, np.random.default_rng(0))) == [0, 1, 3]


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150, 1e300])
def test_standardized_columns(scale):
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(500, 3)) * [1, 10, 100] * scale, rng.integers(0, 3, 500)
    x[::9, 1] = np.nan
    z = standardized(x, w)
    assert (z[::9, 1] == 0).all()
    seen = w @ ~np.isnan(x)
    np.testing.assert_allclose(w @ z / seen, 0, atol=1e-12)
    np.testing.assert_allclose(w @ z**2 / seen, 1, rtol=1e-12)


def test_standardized_at_a_large_offset_and_constant_columns():
    x = np.random.default_rng(5).integers(0, 100, (200, 2)).astype(float)
    np.testing.assert_allclose(standardized(x + 1e8), standardized(x), atol=1e-7)
    constant = np.full((5, 2), 0.1)
    constant[:, 1] = np.nan
    assert (standardized(constant) == 0).all()
    with pytest.raises(DataError, match="row 0, column 0"):
        standardized([[np.inf]])


def test_filled_leaves_what_was_seen():
    x = np.array([[1.0, np.nan], [np.nan, np.nan], [4.0, 2.0]])
    np.testing.assert_array_equal(filled(x, [1, 5, 2]), [[1, 2], [3, 2], [4, 2]])
