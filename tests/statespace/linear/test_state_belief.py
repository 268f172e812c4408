"""StateBelief: a density of the state, also with a diffuse part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import likely as lk
from likely.core.errors import DomainError, ShapeError
from likely.statespace.linear.diffuse_initialization import DiffusePart, diffuse_moments
from likely.statespace.linear.state_belief import StateBelief

ROOT = np.array([[2.0, 0.5], [0.0, 1.0]])


def test_a_belief_is_a_gaussian():
    belief = StateBelief([1.0, 2.0], ROOT, 7)
    x = np.array([[0.0, 0.0], [1.0, 2.0], [5.0, -1.0]])
    want = multivariate_normal([1.0, 2.0], ROOT.T @ ROOT).logpdf(x)
    np.testing.assert_allclose(belief.log_prob(x), want, rtol=1e-13)
    assert belief.variance.tolist() == np.diagonal(ROOT.T @ ROOT).tolist() and belief.dim == 2
    draws = belief.sample(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(draws.T), ROOT.T @ ROOT, atol=0.2)


def test_a_gaussian_is_a_belief():
    distribution = lk.Gaussian([1.0, 2.0], [[4.0, 1.0], [1.0, 1.25]])
    belief = StateBelief.of(distribution, time=3)
    np.testing.assert_allclose(belief.covariance, distribution.covariance, rtol=1e-15)
    assert belief.time == 3 and not np.tril(belief.root, -1).any()
    flat = StateBelief.of(lk.Gaussian([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(flat.covariance, np.ones((2, 2)), rtol=1e-14)


def test_beliefs_that_cannot_be():
    with pytest.raises(ShapeError, match=r"mean must have shape \(d,\)"):
        StateBelief([1.0], ROOT)
    with pytest.raises(DomainError, match="upper triangular"):
        StateBelief([0.0, 0.0], ROOT.T)
    for time in (-1, 2**60, 1.5, True):
        with pytest.raises(DomainError, match="number of a frame"):
            StateBelief([0.0, 0.0], ROOT, time)
    two = lk.LinearGaussian(
        transition=np.eye(2), process_covariance=np.eye(2), observation=np.eye(2), observation_covariance=np.eye(2)
    )
    with pytest.raises(ShapeError, match="dimension of the state"):
        StateBelief([0.0], [[1.0]], 0, two.initial_belief().diffuse_part)
    for verb in (two.predict, lambda belief: two.update(belief, [0.0, 0.0])):
        with pytest.raises(ShapeError, match="a belief of 2 entries"):
            verb(StateBelief([0.0], [[1.0]]))
    with pytest.raises(DomainError, match="finite"):
        StateBelief([np.nan, 0.0], ROOT)


def test_a_diffuse_belief_has_no_density():
    belief = lk.LinearGaussian.local_level(1.0, 1.0).initial_belief()
    assert belief.variance.tolist() == [np.inf]
    with pytest.raises(DomainError, match="filter more observations first"):
        belief.log_prob([[0.0]])


def diffuse_part(loadings, rows):
    (d, q) = loadings.shape
    return DiffusePart.trusted(
        mean=np.zeros(d), root=np.zeros((d, d)), loadings=loadings, basis=np.eye(q), offset=np.zeros(q),
        information_root=rows, n_free=q, log_prob=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("unit", [1e-14, 1.0, 1e14])
def test_moments_of_a_partly_diffuse_state_in_any_units(unit):
    """η₁ is known to ±½, unit·η₂ to ±1: two states that each show one of them, and one that shows a third."""
    rows = np.zeros((4, 4))
    rows[0, 0], rows[1, 1], rows[0, 3], rows[1, 3] = 2.0, unit, 4.0, 3.0
    mean, cov = diffuse_moments(diffuse_part(np.eye(3), rows))
    np.testing.assert_allclose(mean[:2] * [1, unit], [2.0, 3.0], rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(cov)[:2] * [1, unit**2], [0.25, 1.0], rtol=1e-12)
    assert cov[2, 2] == np.inf and not cov[2, :2].any()
