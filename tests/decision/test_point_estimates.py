from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import likely as lk
from likely import DomainError
from likely.decision import point_estimate, point_estimates

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
        assert (np.abs(found - exact) <= 1e-6 * scale).all(), name
    np.testing.assert_allclose(point_estimate(density, losses["squared"][0]), np.ravel(density.mean), atol=1e-6)


@pytest.mark.parametrize("density", [NORMAL, HEAVY], ids=["Gaussian", "StudentT"])
@pytest.mark.parametrize(("over", "under"), [(1e6, 1.0), (1.0, 1e7)])
def test_estimates_may_lie_far_in_a_tail(density, over, under):
    exact = point_estimate(density, "asymmetric", over=over, under=under)
    found = point_estimate(density, lambda a, y: np.where(a > y, over * (a - y), under * (y - a)))
    np.testing.assert_allclose(found, exact, rtol=1e-4)


def test_heavy_tails_count():
    """Squared loss, twice as much above, under t with 2.2 degrees of freedom: a fifth of it lies beyond 1e-15."""
    density = lk.StudentT([[0.0]], [[[1.0]]], [2.2])
    found = point_estimate(density, lambda a, y: np.where(a > y, 2.0, 1.0) * (a - y) ** 2)
    t = scipy.stats.t(2.2)

    def slope(a):  # of half the expected loss, from partial means of t in closed form
        partial = t.pdf(a) * (2.2 + a**2) / 1.2  # ∫ y p(y) dy from a to infinity
        return 2 * (a * t.cdf(a) + partial) + a * t.sf(a) - partial

    assert found[0] == pytest.approx(scipy.optimize.brentq(slope, -3, 3, xtol=1e-12), abs=1e-6)


def test_exponential_loss_has_its_closed_form():
    found = point_estimate(NORMAL, lambda a, y: np.exp(0.5 * (a - y)) - 0.5 * (a - y))
    np.testing.assert_allclose(found, np.ravel(NORMAL.mean) - 0.25 * np.ravel(NORMAL.variance), atol=1e-6)


def test_blocks_of_members_change_nothing(monkeypatch):
    stack = lk.StudentT(np.arange(40.0)[:, None], np.linspace(0.5, 3.0, 40)[:, None, None], np.full(40, 4.0))
    whole = point_estimate(stack, lambda a, y: np.abs(a - y) ** 1.5)
    monkeypatch.setattr(point_estimates, "CELLS", 7 * point_estimates.NODES)
    np.testing.assert_allclose(point_estimate(stack, lambda a, y: np.abs(a - y) ** 1.5), whole, atol=1e-7)


def test_what_cannot_be_integrated_or_minimized_is_told():
    with pytest.warns(lk.FitWarning, match="the expected loss should be known to 0.0001; it is known to"):
        point_estimate(HEAVY, lambda a, y: (np.abs(a - y) > 0.3).astype(float))
    with pytest.raises(DomainError, match="the expected loss must have a minimum, got one that falls beyond"):
        point_estimate(NORMAL, lambda a, y: y - a)
    with pytest.raises(DomainError, match="some estimate must have a finite expected loss"):
        point_estimate(NORMAL, lambda a, y: np.full(y.shape, np.inf))


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
