"""Histogram equalization: the notes' example, ranks, and matching."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import likely as lk


def test_the_example_of_the_notes():
    """4 levels, counts 4 2 1 1: the sum runs over r, not k (Herbst 1.2.2, example 3)."""
    image = np.array([[0, 0, 0, 0], [1, 1, 2, 3]], dtype=np.uint8)
    found = lk.density.equalize_histogram(image, levels=4)
    assert found.tolist() == [[0.5, 0.5, 0.5, 0.5], [0.75, 0.75, 0.875, 1.0]]
    assert np.array_equal(lk.density.equalize_histogram(image), found)  # levels that nobody uses do not matter


def test_many_grays_become_uniform_and_keep_their_order():
    rng = np.random.default_rng(0)
    image = np.clip(rng.normal(90, 12, (200, 300)), 0, 255).astype(np.uint8)
    found = lk.density.equalize_histogram(image)
    assert found.shape == image.shape
    assert stats.kstest(found.ravel(), "uniform").statistic < np.bincount(image.ravel()).max() / image.size + 1e-9
    assert np.array_equal(np.argsort(found.ravel(), kind="stable"), np.argsort(image.ravel(), kind="stable"))


def test_other_numbers_are_ranked_as_they_are():
    x = np.random.default_rng(1).normal(size=1000)
    assert lk.density.equalize_histogram(x) == pytest.approx(stats.rankdata(x) / 1000)
    assert lk.density.equalize_histogram([-5, 70000, -5], levels=None).tolist() == pytest.approx([2 / 3, 1.0, 2 / 3])


def test_matching_a_distribution_and_another_image():
    x = np.random.default_rng(2).exponential(size=5000)
    assert (
        stats.kstest(lk.density.equalize_histogram(x, to=lk.Gaussian([3.0], 4.0)), stats.norm(3.0, 2.0).cdf).pvalue
        > 0.99
    )
    other = np.random.default_rng(3).normal(size=777)
    found = lk.density.equalize_histogram(x, to=other)
    assert set(found) <= set(other)
    assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(other, [0.1, 0.5, 0.9]), abs=0.02)


def test_weights_and_missing_values():
    image = np.array([0.0, 0, 1, 2, np.nan])
    found = lk.density.equalize_histogram(image, levels=4, weight=[1, 1, 2, 0, 9])
    assert found[:4].tolist() == [0.5, 0.5, 1.0, 1.0] and np.isnan(found[4])
    assert (
        lk.density.equalize_histogram([0, 1, 1, 3], levels=4)[[0, 1]].tolist()
        == lk.density.equalize_histogram([0, 1, 3], 4, weight=[1, 2, 1])[:2].tolist()
    )


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: lk.density.equalize_histogram([0, 256]), "0 … 255"),
        (lambda: lk.density.equalize_histogram([-1, 2]), "0 … 255"),
        (lambda: lk.density.equalize_histogram([0.0, np.inf]), "infinity at"),
        (lambda: lk.density.equalize_histogram([]), "one pixel"),
        (lambda: lk.density.equalize_histogram([np.nan]), "one pixel"),
        (lambda: lk.density.equalize_histogram([0, 1], levels=0), "integer"),
        (lambda: lk.density.equalize_histogram([0, 1], weight=[1]), "shape of the image"),
        (lambda: lk.density.equalize_histogram("gray"), "numbers"),
        (lambda: lk.density.equalize_histogram([0, 1], weight=[0, 0]), "have positive weight"),
        (lambda: lk.density.equalize_histogram([0, 1], to=[]), "pixels"),
    ],
)
def test_refusals(wrong, match):
    with pytest.raises(lk.LikelyError, match=match):
        wrong()
