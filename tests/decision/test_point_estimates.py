from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely import DomainError
from likely.decision import point_estimate

NORMAL = lk.Gaussian([[0.0], [5.0], [-2.0]], [[[1.0]], [[4.0]], [[0.01]]])
HEAVY = lk.StudentT([[0.0], [3.0]], [[[1.0]], [[2.0]]], [5.0, 9.0])


@pytest.mark.parametrize("density", [NORMAL, HEAVY], ids=["Gaussian", "StudentT"])
def test_named_losses_and_their_functions_agree(density):
    """The closed forms are the minimizers that quadrature finds."""
    losses = {
        "squared": (lambda a, y: (a - y) ** 2, {}),
        "absolute": (lambda a, y: np.abs(a - y), {}),
        "asymmetric": (lambda a, y: np.where(a > y, 3.0 * (a - y), y - a), {"over": 3.0, "under": 1.0}),
    }
    for name, (function, costs) in losses.items():
        exact, found = point_estimate(density, name, **costs), point_estimate(density, function)
        scale = np.sqrt(np.ravel(density.variance))
        assert (np.abs(found - exact) <= 2e-2 * scale).all(), name
    np.testing.assert_allclose(point_estimate(density, losses["squared"][0]), np.ravel(density.mean), atol=1e-6)


def test_asymmetric_is_a_quantile():
    np.testing.assert_allclose(point_estimate(NORMAL, "asymmetric", over=3.0, under=1.0), NORMAL.quantile(0.25))
    np.testing.assert_allclose(point_estimate(NORMAL, "asymmetric", over=1.0, under=9.0), NORMAL.quantile(0.9))


def test_a_loss_with_two_valleys_finds_the_deeper():
    density = lk.Gaussian([[0.0]], [[[1.0]]])
    found = point_estimate(density, lambda a, y: (a - y) ** 2 - 5.0 * np.exp(-8.0 * (a - 3.0) ** 2))
    assert found[0] == pytest.approx(2.9, abs=0.1) or found[0] == pytest.approx(0.0, abs=1e-3)
    grid = np.linspace(-4, 4, 2001)
    risk = grid**2 + 1 - 5.0 * np.exp(-8.0 * (grid - 3.0) ** 2)
    at = float(found[0])
    assert at**2 + 1 - 5.0 * np.exp(-8.0 * (at - 3.0) ** 2) <= risk.min() + 1e-3


def test_bad_input_is_refused():
    with pytest.raises(DomainError, match="loss must be one of"):
        point_estimate(NORMAL, "cubic")
    with pytest.raises(DomainError, match="positive numbers"):
        point_estimate(NORMAL, "asymmetric", over=1.0)
    with pytest.raises(DomainError, match="over and under are for"):
        point_estimate(NORMAL, "squared", over=1.0)
    with pytest.raises(DomainError, match="univariate"):
        point_estimate(lk.Gaussian([0.0, 1.0], 1.0))
    with pytest.raises(DomainError, match="one number per pair"):
        point_estimate(NORMAL, lambda a, y: 1.0)
    with pytest.raises(DomainError, match="NaN"):
        point_estimate(NORMAL, lambda a, y: a * np.nan)
