"""Walsh and Bahadur expansions against the notes' numbers and enumeration, with warnings of negative values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse

import likely as lk
from likely.distributions.binary.sign_products import SignSums, numbers_of, sets_of
from likely.numerics.walsh_hadamard import all_cells, cell_numbers

DISTRIBUTIONS = {
    "walsh": lk.distributions.Walsh,
    "bahadur": lk.distributions.Bahadur,
    "log walsh": lk.distributions.LogLinear,
}


def learned(distribution, x, order, w=None, **how):
    blank = distribution.blank(x, order=order, **how)
    return blank.refit(blank.collect(x, w))


def test_the_numbers_of_the_notes():
    """Ney 2.6.2 with p(00, 01, 10, 11) = (.4, .1, .2, .3)."""
    p = np.array([0.4, 0.1, 0.2, 0.3])
    distribution = lk.distributions.Walsh.of(p)
    assert np.allclose(distribution.coefficients, [0.25, 0.0, -0.05, 0.1], atol=1e-15)
    assert np.allclose(distribution.value(all_cells(2)), p, atol=1e-15)
    cut = lk.distributions.Walsh.of([0.05, 0.05, 0.05, 0.85], order=1)
    assert cut.value([[0, 0]])[0] == pytest.approx(-0.15, abs=1e-15)
    assert cut.value(all_cells(2)).sum() == pytest.approx(1.0, abs=1e-15)


def test_what_is_negative_is_reported():
    cut = lk.distributions.Walsh.of([0.05, 0.05, 0.05, 0.85], order=1)
    with pytest.warns(lk.FitWarning, match="1 row lies where the truncated expansion is not positive"):
        assert cut.log_prob([[0, 0], [1, 1]])[0] == -np.inf
    twins = learned(lk.distributions.Bahadur, np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 0, 0]]), 2)
    x = all_cells(3)
    assert (twins.value(x) < 0).any() and twins.value(x).sum() == pytest.approx(1.0)
    with pytest.warns(lk.FitWarning, match="Bahadur.*not positive"):
        found = twins.log_prob(x)
    assert np.array_equal(np.isneginf(found), twins.value(x) <= 0) and not np.isnan(found).any()


@pytest.mark.slow
@pytest.mark.some_cases(6)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, pytest.param(10, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_all_orders_together_reproduce_any_distribution(name, d):
    p = np.random.default_rng(d).dirichlet(np.ones(1 << d) * 3)
    x = all_cells(d)
    distribution = learned(DISTRIBUTIONS[name], x, d, p)
    assert np.abs(np.exp(distribution.log_prob(x)) - p).max() <= 1e-12


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_cut_distributions_add_up_and_keep_their_moments(name, order):
    rng = np.random.default_rng(order)
    p = rng.dirichlet(np.ones(64) * 20)
    x = all_cells(6)
    distribution = learned(DISTRIBUTIONS[name], x, order, p)
    q = distribution.value(x) if hasattr(distribution, "value") else np.exp(distribution.log_prob(x))
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    z = 2 * x - 1
    for sets in sets_of(6, order):  # all three match the expectations of what they hold
        phi = np.prod(z[:, sets], axis=2)
        assert np.abs(q @ phi - p @ phi).max() <= 1e-12


def test_order_one_is_bernoulli():
    rng = np.random.default_rng(0)
    x = (rng.random((200, 30)) < rng.random(30)).astype(float)
    want = lk.Bernoulli.fit(x).log_prob(x)
    for distribution in (lk.distributions.Bahadur, lk.distributions.LogLinear):
        assert np.abs(learned(distribution, x, 1).log_prob(x) - want).max() <= 1e-10


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_follow_the_cells(name):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(16) * 10)
    distribution, n = learned(DISTRIBUTIONS[name], all_cells(4), 2, p), 100_000
    q = np.maximum(
        distribution.value(all_cells(4)) if hasattr(distribution, "value") else distribution.probabilities, 0
    )
    found = np.bincount(cell_numbers(distribution.sample(n, rng)), minlength=16) / n
    assert np.abs(found - q).max() <= 5 * np.sqrt(q.max() / n)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_weights_are_copies_and_streams_are_batches(name):
    rng = np.random.default_rng(4)
    x, w = (rng.random((300, 5)) < 0.4).astype(float), rng.integers(0, 4, 300).astype(float)
    distribution = DISTRIBUTIONS[name].blank(x, order=3)
    whole = distribution.refit(distribution.collect(x, w))
    copies = distribution.refit(distribution.collect(np.repeat(x, w.astype(int), axis=0)))
    parts = distribution.refit(distribution.collect(x[:77], w[:77]) + distribution.collect(x[77:], w[77:]))
    for other in (copies, parts):
        for field in distribution._arrays:
            assert np.abs(getattr(other, field) - getattr(whole, field)).max() <= 1e-11


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_sparse_rows_and_stacks_are_what_they_stand_for(name):
    rng = np.random.default_rng(5)
    x, labels = (rng.random((80, 6)) < 0.3).astype(float), np.arange(80) % 3
    blank = DISTRIBUTIONS[name].blank(x, 3, 2)
    stack = blank.refit(
        blank.collect(scipy.sparse.csr_array(x), labels=labels), blank.weak_prior(blank.collect(x, labels=labels))
    )
    with np.errstate(all="ignore"), pytest.warns(lk.FitWarning) if name != "log walsh" else np.errstate():
        scores = stack.log_prob(scipy.sparse.csr_array(x))
        for k in range(3):
            assert np.allclose(stack.member(k).log_prob(x), scores[:, k], atol=1e-12)


def test_missing_values_sum_out_exactly():
    rng = np.random.default_rng(6)
    x = all_cells(5)
    p = rng.dirichlet(np.ones(32) * 10)
    for distribution in DISTRIBUTIONS.values():
        one = learned(distribution, x, 2, p)
        q = one.value(x) if hasattr(one, "value") else one.probabilities
        for row in ([np.nan, 1, 0, np.nan, 1], [np.nan] * 5, [1, np.nan, 1, 1, 1]):
            row = np.array(row, dtype=float)
            seen = ~np.isnan(row)
            want = q[(x[:, seen] == row[seen]).all(axis=1)].sum()
            assert np.exp(one.log_prob(row[None])[0]) == pytest.approx(want, abs=1e-13)


def test_with_missing_values_a_product_is_averaged_where_it_was_seen():
    x = np.array([[1.0, 1], [1, np.nan], [0, 0], [np.nan, 1]])
    distribution = learned(lk.distributions.Walsh, x, 2)
    assert np.allclose(distribution.expectations, [1.0, 1 / 3, 1 / 3, 1.0])


def test_sets_are_found_by_their_number():
    every = [s for size in sets_of(7, 4) for s in size]
    found = [int(numbers_of(np.array(s)[None], 7)[0]) for s in every]
    assert found == list(range(1, len(every) + 1))


def test_bad_input_is_named():
    distribution = lk.distributions.Walsh.blank(np.zeros((1, 3)))
    with pytest.raises(lk.DataError, match=r"0 or 1.*2\.0 at row 1, column 2"):
        distribution.collect([[0, 1, 1], [0, 1, 2]])
    with pytest.raises(lk.DataError, match=r"inf at row 0, column 1"):
        distribution.log_prob([[0, np.inf, 1]])
    assert distribution.log_prob([[0, 0.5, 1]])[0] == -np.inf
    with pytest.raises(lk.DomainError, match="at most 20 columns"):
        SignSums([1.0], [1.0], 0.0, 400, 3)
    with pytest.raises(lk.DomainError, match="sum to 1"):
        lk.distributions.Walsh.of([0.5, 0.6])
    with pytest.raises(lk.ShapeError, match="cells"):
        lk.distributions.Walsh.of([0.5, 0.2, 0.3])
    with pytest.raises(lk.DomainError, match="nor sums exceed"):
        SignSums([1.0, 1.0], [1.0, 2.0], 0.0, 1, 1)


@pytest.mark.parametrize("kind", [lk.distributions.Walsh, lk.distributions.Bahadur])
def test_variance_and_mode_are_those_of_the_positive_part(kind):
    x = (np.random.default_rng(0).random((60, 4)) < [0.9, 0.2, 0.6, 0.9]).astype(float)
    distribution = kind.fit(x)
    cells = all_cells(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = np.exp(distribution.log_prob(cells))
    assert np.allclose(distribution.variance, p @ cells**2 - (p @ cells) ** 2)
    assert np.array_equal(distribution.mode, cells[p.argmax()])
