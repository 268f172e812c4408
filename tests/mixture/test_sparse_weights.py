"""Message length and the sparse prior of mixture weights."""

import numpy as np
import pytest

import likely as lk
from likely.mixture.mixture import level_counts
from likely.mixture.sparse_weights import FEW, Price, SparseWeights


def gaussians(kind: str, members: int = 3) -> lk.Gaussian:
    return lk.Gaussian.blank(np.random.default_rng(0).normal(size=(50, 4)), kind=kind, members=members)


@pytest.mark.parametrize(("kind", "own"), [("full", 14.0), ("diagonal", 8.0), ("spherical", 5.0)])
def test_parts_that_share_nothing_pay_for_all_their_parameters(kind: str, own: float) -> None:
    assert Price.of(gaussians(kind)) == Price(own, 0.0)
    assert Price.of(gaussians(kind, 1)) == Price(own, 0.0)


def test_a_shared_covariance_is_paid_for_once() -> None:
    tied = lk.Gaussian.blank(np.random.default_rng(0).normal(size=(50, 4)), kind="full", members=3, tied=True)
    assert Price.of(tied) == Price(4.0, 10.0)


def test_the_message_length_is_that_of_its_parts() -> None:
    """By hand: two parts of 30 and 70 rows with two parameters each, one shared, log-likelihood −200."""
    by_hand = np.log(30) + np.log(70) + (2 + 1) / 2 * np.log(100) + 200
    length = Price(2.0, 1.0).message_length(np.array([0.3, 0.7]), 100.0, -200.0)
    assert length == pytest.approx(by_hand, rel=1e-14)


def test_equal_parts_cost_what_bic_says_less_what_their_rows_cannot_tell() -> None:
    """BIC/2 counts log n for each parameter, a message log(n w): the difference is N/2 Σ log w."""
    n, k, own, likelihood = 1000.0, 4, 5.0, -1234.5
    half_bic = (k * own + k - 1) / 2 * np.log(n) - likelihood
    length = Price(own, 0.0).message_length(np.full(k, 1 / k), n, likelihood)
    assert length == pytest.approx(half_bic + own / 2 * k * np.log(1 / k) + 0.5 * np.log(n), rel=1e-13)


def test_a_tiny_part_is_no_cheaper_than_a_small_one() -> None:
    price = Price(2.0, 0.0)
    tiny, small = (price.message_length(np.array([c, 1000 - c]) / 1000, 1000.0, 0.0) for c in (2.0, FEW))
    assert tiny == pytest.approx(small, abs=0.02)  # the large part has ten rows more or less


def test_a_part_that_explains_fewer_rows_than_half_its_parameters_is_impossible() -> None:
    price = Price(10.0, 0.0)
    assert price.message_length(np.array([0.05, 0.95]), 100.0, 0.0) == np.inf
    assert np.isfinite(price.message_length(np.array([0.051, 0.949]), 100.0, 0.0))
    assert np.isfinite(price.message_length(np.ones(1), 3.0, 0.0))  # one part must do, however few rows there are


def test_no_average_part_is_emptied_at_the_start() -> None:
    np.testing.assert_array_equal(Price(4.0, 0.0).prior(3, 300.0).alpha, np.full(3, -1.0))
    prior = Price(1000.0, 0.0).prior(10, 200.0)
    assert (prior.alpha == 1 - 10.0).all()
    np.testing.assert_allclose(prior.update(level_counts(np.full(10, 20.0))).point().probs, 0.1)


def test_only_parts_that_pay_keep_weight() -> None:
    probs = SparseWeights.costing(3, 4.0).update(level_counts(np.array([2.0, 10.0, 24.0]))).point().probs
    np.testing.assert_allclose(probs, [0.0, 6 / 26, 20 / 26], atol=1e-11)
