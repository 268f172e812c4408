"""The Dirichlet-multinomial distribution against SciPy, enumeration and its own construction."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.distributions.categorical import dirichlet_multinomial
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.multinomial import Multinomial, all_rows

ALPHA = np.array([[0.5, 1.0, 2.5], [3.0, 0.1, 7.0]])


def test_it_is_scipys():
    rows = all_rows(6, 3)
    want = scipy.stats.dirichlet_multinomial(ALPHA[0], 6).logpmf(rows.astype(int))
    assert np.allclose(DirichletMultinomial(ALPHA[0]).log_prob(rows), want, atol=1e-11)


def test_rows_of_one_total_add_up_to_one():
    assert np.allclose(np.exp(DirichletMultinomial(ALPHA).log_prob(all_rows(9, 3))).sum(axis=0), 1.0, atol=1e-12)


def test_a_missing_value_is_the_distribution_of_what_was_seen_given_its_total():
    rows, distribution = all_rows(8, 3), DirichletMultinomial(ALPHA[0], 8)
    p = np.exp(distribution.log_prob(rows))
    same = rows[:, 0] + rows[:, 2] == 5
    want = np.log(p[same & (rows[:, 0] == 2)].sum() / p[same].sum())
    assert distribution.log_prob([[2, np.nan, 3]])[0] == pytest.approx(want, abs=1e-12)
    assert distribution.log_prob([[np.nan] * 3])[0] == 0.0


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows_are_the_dense_ones(kind):
    x = np.random.default_rng(0).poisson(0.7, (300, 3)).astype(float)
    distribution = DirichletMultinomial(ALPHA)
    assert np.allclose(distribution.log_prob(kind(x)), distribution.log_prob(x), atol=1e-12)
    x[7, 1] = -1
    assert np.isneginf(distribution.log_prob(x)[7]).all() and np.isneginf(distribution.log_prob(kind(x))[7]).all()


def test_large_alpha_is_a_multinomial():
    rows, p = all_rows(5, 3), np.array([0.2, 0.3, 0.5])
    assert np.allclose(DirichletMultinomial(1e9 * p).log_prob(rows), Multinomial(p).log_prob(rows), atol=1e-6)


def test_moments_are_those_of_draws():
    distribution = DirichletMultinomial(ALPHA, 12)
    x = distribution.sample(40_000, np.random.default_rng(1))
    assert x.shape == (40_000, 2, 3) and (x.sum(axis=-1) == 12).all()
    assert (np.abs(x.mean(axis=0) - distribution.mean) < 5 * np.sqrt(distribution.variance / 40_000)).all()
    assert np.allclose(x.var(axis=0), distribution.variance, rtol=0.05)
    assert distribution.take([1]).members == 1 and distribution.member(1).dim == 3 and distribution.n_parameters == 6


def test_what_is_no_distribution_and_no_row():
    for bad in ([0.0, 1.0], [-1.0, 2.0], [np.inf, 1.0]):
        with pytest.raises(DomainError):
            DirichletMultinomial(bad)
    with pytest.raises(ShapeError):
        DirichletMultinomial(np.ones((1, 1, 1)))
    with pytest.raises(DomainError):
        DirichletMultinomial([1.0], 0.5)
    with pytest.raises(DataError, match="row 1, column 2"):
        DirichletMultinomial(ALPHA).log_prob([[1, 2, 3], [1, 2, np.inf]])


def test_dense_and_sparse_rows_keep_their_digits():
    """Hardly anything is left of logarithms of 10⁶: −1.5e-4 and −4.4e-7 by mpmath at 50 digits."""
    for alpha, row, wanted in (
        ([0.0094643096525145, 14.915851745497, 99767.80086143229], [0, 0, 1], -0.0001495893426537578),
        ([983.4393423115953, 0.0004221092767098477, 1.0911693666146973e-05], [1, 0, 0], -4.403127436673939e-07),
    ):
        distribution = DirichletMultinomial(alpha)
        for x in (np.array([row], dtype=float), sp.csr_array([row])):
            assert distribution.log_prob(x)[0] == pytest.approx(wanted, abs=6e-16)


@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_that_are_nearly_certain(as_rows):
    """One color alone, of which nearly all are: log p is minus the chance of any other."""
    x, alpha = np.array([[0.0, 5.0, 0.0], [0.0, 0.0, 0.0], [0.0, 4.0, 1.0]]), [1e-4, 1e10, 3e-5]
    found = DirichletMultinomial(alpha).log_prob(as_rows(x))
    assert found[0] == pytest.approx(-6.499999998699959e-14, rel=1e-14) and found[1] == 0.0
    assert np.exp(found[2]) == pytest.approx(5 * 3e-5 / 1e10, rel=1e-8)
    again = DirichletMultinomial([alpha, alpha]).log_prob(as_rows(x[:1]))
    assert again == pytest.approx(np.full((1, 2), found[0]), rel=1e-14)


@pytest.mark.parametrize("kind", ["values", "prior"])
def test_a_refit_goes_on_from_the_distribution_of_before(kind, monkeypatch):
    rng = np.random.default_rng(0)
    x = np.array([rng.multinomial(30, rng.dirichlet([1, 2, 3, 4, 5])) for _ in range(60)], dtype=float)
    distribution = lk.distributions.DirichletMultinomial.fit(x)
    stats = distribution.collect(x)
    prior = distribution.weak_prior(stats) if kind == "prior" else None
    distribution = distribution.refit(stats, prior)
    looks, hill = [], dirichlet_multinomial._objective
    monkeypatch.setattr(dirichlet_multinomial, "_objective", lambda *at: looks.append(1) or hill(*at))
    warm = distribution.refit(stats, prior)
    assert len(looks) <= 5 and warm.objective(stats, prior) >= distribution.objective(stats, prior) - 1e-10
    np.testing.assert_allclose(warm.alpha, distribution.alpha, rtol=1e-9)
