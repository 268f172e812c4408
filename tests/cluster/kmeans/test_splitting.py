"""Splitting gives any number of centers, the same every time, and never makes the criterion worse."""

from __future__ import annotations

import numpy as np
import pytest

from likely.cluster.kmeans.splitting import split


def test_any_number_of_centers_and_a_criterion_that_falls():
    x = np.random.default_rng(0).normal(size=(500, 3))
    inertia = [split(x, k).inertia for k in range(1, 9)]
    assert [split(x, k).model.members for k in (1, 3, 7)] == [1, 3, 7]
    assert inertia[0] == pytest.approx(((x - x.mean(axis=0)) ** 2).sum())
    assert (np.diff(inertia) < 0).all()


def test_separate_groups_are_found_in_any_units_without_chance():
    rng = np.random.default_rng(1)
    corners = np.array([[0.0, 0.0], [0.0, 9.0], [20.0, 0.0], [20.0, 9.0]])
    x = np.repeat(corners, 50, axis=0) + rng.normal(size=(200, 2))
    for scale in (1e-120, 1.0, 1e120):
        mean = split(x * scale, 4).model.mean / scale
        np.testing.assert_allclose(mean[np.lexsort(np.round(mean).T[::-1] // 5)], corners, atol=0.6)
    np.testing.assert_array_equal(split(x, 4).model.mean, split(x, 4).model.mean)


def test_the_cut_is_along_the_longest_axis():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 2)) * [1.0, 8.0]
    a, b = split(x, 2).model.mean
    assert abs(a - b)[1] > 5 * abs(a - b)[0]


def test_weights_are_copies_and_equal_rows_are_not_split():
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    np.testing.assert_allclose(split(x, 5, w).inertia, split(np.repeat(x, w, axis=0), 5).inertia)
    assert split(np.ones((9, 2)), 4).model.members == 1
    x[::4, 0] = np.nan
    assert split(x, 5).model.members == 5
