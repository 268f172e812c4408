"""Signed distances, by definition and at every size."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import likely as lk


def test_distance_is_to_the_nearest_point(rng):
    h, x = lk.decision.Hyperplane(rng.normal(size=4), 1.5), rng.normal(size=(30, 4))
    foot = h.project(x)
    np.testing.assert_allclose(h.distance(foot), 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(x - foot, axis=1), np.abs(h.distance(x)), rtol=1e-12)
    assert (h.side(x + 100 * h.direction) == 1).all() and (h.side(x - 100 * h.direction) == -1).all()


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1.0, 1e200])
def test_the_length_of_the_normal_does_not_matter(size):
    np.testing.assert_allclose(
        lk.decision.Hyperplane([3 * size, 4 * size], -5 * size).distance([[3, 4], [0, 0]]), [4, -1]
    )


def test_ney_2_3_from_a_shared_covariance():
    """Σ = I: the border halves the way between the means."""
    h = lk.decision_boundary(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([6.0, 8.0], 1.0)).hyperplane
    np.testing.assert_allclose(h.distance([[0.0, 0.0], [6.0, 8.0], [3.0, 4.0]]), [5, -5, 0], atol=1e-12)
    shifted = lk.decision_boundary(lk.Gaussian([0.0], 1.0), lk.Gaussian([2.0], 1.0), class_prior=[0.9, 0.1]).hyperplane
    np.testing.assert_allclose(shifted.distance([[1.0]]), np.log(9) / 2, rtol=1e-12)


def test_it_is_a_value():
    h = lk.decision.Hyperplane([1.0, 2.0], 3.0)
    assert copy.deepcopy(h).distance([[1, 1]]) == h.distance([[1, 1]])
    with pytest.raises(ValueError, match="read-only"):
        h.normal[0] = 2.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lk.decision.Hyperplane([0.0, 0.0]), "not be 0"),
        (lambda: lk.decision.Hyperplane([[1.0]]), "shape"),
        (lambda: lk.decision.Hyperplane([1.0, np.inf]), "finite"),
        (lambda: lk.decision.Hyperplane([1.0, 2.0]).distance([[1.0]]), "shape"),
        (lambda: lk.decision.Hyperplane([1.0, 2.0]).distance([[1.0, np.nan]]), "row 0, column 1"),
        (lambda: lk.decision.Hyperplane([1.0, 2.0]).distance([[1.0, np.inf]]), "row 0, column 1"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(lk.LikelyError, match=words):
        call()
