"""Any densities of the same rows, side by side."""

from __future__ import annotations

import numpy as np
import pytest

from likely import DataError, DomainError, Gaussian, Poisson, Product, ShapeError, StudentT, fit
from likely.core import Columns
from likely.distributions import Stack
from likely.priors import NormalInverseWishart


@pytest.fixture
def several():
    return Stack(
        [Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]), Gaussian([3.0, 3.0], [1.0, 2.0]), Gaussian([0.0, 3.0], 1.0)]
    )


def test_members_of_any_kind_score_the_same_rows(several, rng):
    mixed = Stack([*several.components, StudentT([1.0, 1.0], np.eye(2), 3.0)])
    x = rng.standard_normal((9, 2))
    x[2, 0] = np.nan
    assert mixed.members == 4 and mixed.dim == 2 and mixed.log_prob(x).shape == (9, 4)
    for k in range(4):
        assert np.array_equal(mixed.log_prob(x)[:, k], mixed.member(k).log_prob(x))
    assert mixed.sample(5, rng).shape == (5, 4, 2)


def test_products_can_stand_side_by_side(rng):
    one = Product({"a": Gaussian([0.0], 1.0), "b": Poisson(2.0)})
    s = Stack([one, Product({"a": Gaussian([5.0], 1.0), "b": Poisson(9.0)})])
    x = one.sample(6, rng)
    assert isinstance(s.sample(4, rng), Columns) and s.sample(4, rng)["a"].shape == (4, 2, 1)
    assert s.log_prob(x).shape == (6, 2)
    stats = s.collect(x, labels=[0, 0, 0, 1, 1, 1])
    assert s.refit(stats).member(0)["b"].rate == x["b"][:3].mean()


def test_each_member_learns_from_its_own_weights(several, rng):
    x, w = rng.standard_normal((40, 2)), rng.random((40, 3))
    fitted = several.refit(several.collect(x, w))
    for k, kind in enumerate(("full", "diagonal", "spherical")):
        want = Gaussian.fit(x, w[:, k], kind=kind)
        np.testing.assert_allclose(fitted.member(k).mean, want.mean, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(fitted.member(k).covariance, want.covariance, rtol=1e-11)
    assert several.collect(x.tolist(), labels=[0] * 40).member(0).weight == 40


def test_one_prior_for_all_or_one_each(several, rng):
    full = Stack([Gaussian([0.0, 0.0], np.eye(2)), Gaussian([1.0, 1.0], np.eye(2))])
    x, labels = rng.standard_normal((30, 2)), np.arange(30) % 2
    stats = full.collect(x, labels=labels)
    prior = NormalInverseWishart([0.0, 0.0], 1.0, np.eye(2), 5.0)
    for given in (prior, (prior, prior), [prior, prior]):
        fitted = full.refit(stats, given)
        np.testing.assert_allclose(fitted.member(1).mean, prior.update(stats.member(1)).mean)
    half = full.refit(stats, (prior, None))
    np.testing.assert_allclose(half.member(1).mean, x[labels == 1].mean(axis=0), atol=1e-14)
    weak = fit(full, x, prior="weak").prior
    assert len(weak) == 2 and isinstance(weak[0], NormalInverseWishart)
    terms = sum(full.member(k).objective(stats.member(k), prior) for k in range(2))
    assert full.objective(stats, prior) == pytest.approx(terms, rel=1e-14)


def test_moments_are_lists(several):
    assert [m.tolist() for m in several.mean] == [[0.0, 0.0], [3.0, 3.0], [0.0, 3.0]]
    assert several.n_parameters == 5 + 4 + 3
    assert several.entropy(bits=True)[2] == pytest.approx(several.components[2].entropy() / np.log(2))


@pytest.mark.parametrize("parts", [[], [3.0], [Gaussian(np.zeros((2, 2)), 1.0)]])
def test_members_are_lone_densities(parts):
    with pytest.raises(DomainError, match=r"^Stack: "):
        Stack(parts)


def test_what_does_not_fit_is_refused(several):
    x = np.zeros((4, 2))
    with pytest.raises(ShapeError, match=r"one column per member \(3\)"):
        several.collect(x, np.ones((4, 2)))
    with pytest.raises(DataError, match="labels must lie in 0 … 2"):
        several.collect(x, labels=[0, 1, 2, 3])
    with pytest.raises(DataError, match="weight is needed"):
        several.refit(several.collect(x, np.zeros(4)))
