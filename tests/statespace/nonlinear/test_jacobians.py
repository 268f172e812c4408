"""Central differences against analytic derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from likely.statespace.nonlinear.jacobians import displaced, slope


def curve(x):
    a, b, c = x.T
    return np.stack([np.hypot(a, b), np.arctan2(b, a), a * np.exp(c), np.sin(a * b)], axis=1)


def by_hand(x):
    a, b, c = x
    r = np.hypot(a, b)
    k = np.cos(a * b)
    return np.array([[a / r, b / r, 0], [-b / r**2, a / r**2, 0], [np.exp(c), 0, a * np.exp(c)], [b * k, a * k, 0]])


@pytest.mark.parametrize("spread", [1e-5, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("x", [[3.0, 2.0, 0.5], [-1.0, 0.1, -2.0], [0.2, -5.0, 0.0]])
def test_slopes(x, spread):
    x = np.array(x)
    points = displaced(x, np.full(3, spread))
    assert points.shape == (7, 3)
    z = curve(points)
    np.testing.assert_allclose(slope(points, z[1:4] - z[4:]), by_hand(x), atol=1e-6)


def test_far_from_the_origin_steps_stay_short():
    """Coordinates of a map: millions of meters, a beacon ten meters away."""
    x, beacon = np.array([5.2e6, 6.7e5]), np.array([5.2e6 + 6.0, 6.7e5 - 8.0])
    points = displaced(x, np.array([0.01, 0.01]))
    z = np.hypot(*(points - beacon).T)[:, None]
    np.testing.assert_allclose(slope(points, z[1:3] - z[3:]), [[-0.6, 0.8]], atol=1e-4)


@pytest.mark.parametrize("offset, least", [(1e7, 1e-6), (1e9, 1e-3)])
def test_steps_are_shorter_than_the_belief_is_wide(offset, least):
    """A beacon 1.1 m away, far from the origin: half of the digits would be a step of 15 m."""
    x = np.array([offset + 1.1])
    points = displaced(x, np.array([0.1]))
    assert (np.abs(points - x) < 0.1).all()
    z = np.hypot(points - offset, 0.5)
    expected = (x - offset) / np.hypot(x - offset, 0.5)
    np.testing.assert_allclose(slope(points, z[1:2] - z[2:]).ravel(), expected, atol=least)


def test_beliefs_narrower_than_numbers_still_have_slopes():
    points = displaced(np.array([1e16]), np.array([0.3]))
    np.testing.assert_allclose(slope(points, 0.9 * points[1:2] - 0.9 * points[2:]), [[0.9]], rtol=0.01)
