"""The Bernoulli distribution against SciPy and enumeration; sparse rows against dense ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.distributions.binary.bernoulli import Bernoulli, Trials
from likely.distributions.univariate.beta import Beta

P = np.array([[0.2, 0.5, 0.9], [0.6, 0.1, 0.7], [0.4, 0.8, 0.3]])
KINDS = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.coo_matrix]
ROWS = np.array(list(product([0.0, 1.0], repeat=3)))


def coins(n: int = 200, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n, d)) < rng.random(d)).astype(float)


def stack(d: int = 12) -> Bernoulli:
    return Bernoulli(np.random.default_rng(1).uniform(0.05, 0.95, (4, d)))


def test_it_is_scipys():
    want = sum(scipy.stats.bernoulli(p).logpmf(ROWS[:, j]) for j, p in enumerate(P[0]))
    assert np.allclose(Bernoulli(P[0]).log_prob(ROWS), want, atol=1e-14)
    assert np.allclose(np.exp(Bernoulli(P).log_prob(ROWS)).sum(axis=0), 1.0, atol=1e-14)


def test_certainty():
    """p = 0 and p = 1 leave one value possible, with no digit lost elsewhere."""
    b = Bernoulli([[0.0, 1.0, 0.3], [0.2, 0.5, 1.0], [0.0, 0.0, 1.0]])
    out = b.log_prob(ROWS)
    with np.errstate(divide="ignore"):
        for k, p in enumerate(b.probs):
            want = np.where(ROWS == 1, np.log(p), np.log1p(-p)).sum(axis=1)
            assert np.allclose(out[:, k], want, atol=1e-14)
    assert not np.isnan(out).any() and np.array_equal(b.log_prob(sp.csr_array(ROWS)), out)
    gap = ROWS.copy()
    gap[:, 1] = np.nan
    assert b.log_prob(gap)[:, 0] == pytest.approx(
        np.where(ROWS[:, 0] == 0, np.log(np.where(ROWS[:, 2], 0.3, 0.7)), -np.inf)
    )


def test_probabilities_near_the_edges():
    for p in (1e-300, 1e-17, 1e-3, 1 - 1e-15):
        got = Bernoulli(p).log_prob([0, 1])
        assert got[1] == pytest.approx(np.log(p), abs=1e-13) and got[0] == pytest.approx(np.log1p(-p), abs=1e-13)


@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.float32, np.float64])
def test_kinds_of_numbers(kind):
    want = Bernoulli(P).log_prob(ROWS)
    for rows in (ROWS.astype(kind), sp.csr_array(ROWS.astype(kind))):
        out = Bernoulli(P).log_prob(rows)
        assert np.allclose(out, want, rtol=1e-6) and (out.dtype == np.float32) == (kind is np.float32)
        assert np.allclose(Bernoulli(P).collect(rows).ones, ROWS.sum(axis=0))


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_sparse_rows_are_the_dense_ones(kind):
    x, b, rng = coins(), stack(), np.random.default_rng(2)
    assert np.allclose(b.log_prob(kind(x)), b.log_prob(x), atol=1e-12)
    assert np.allclose(b.member(0).log_prob(kind(x)), b.member(0).log_prob(x), atol=1e-12)
    for known in ({}, {"weight": rng.random(200)}, {"weight": rng.random((200, 4))},
                  {"labels": rng.integers(-1, 4, 200), "weight": rng.random(200)}):  # fmt: skip
        a, c = b.collect(kind(x), **known), b.collect(x, **known)
        for name in ("rows", "ones", "zeros"):
            assert np.allclose(getattr(a, name), getattr(c, name), rtol=1e-11)


def test_what_is_neither_0_nor_1():
    x = coins(5000)
    x[4444, 3] = 2.0
    for rows in (x, sp.csr_array(x)):
        out = stack().log_prob(rows)
        assert np.isneginf(out[4444]).all() and np.isfinite(np.delete(out, 4444, axis=0)).all()
        with pytest.raises(DataError, match=r"0 or 1.* got 2.0 at row 4444, column 3"):
            stack().collect(rows)
    x[4444, 3] = 0.5
    with pytest.raises(DataError, match="row 4444, column 3"):
        lk.fit(stack(), x)
    x[4444, 3] = np.nan
    assert np.isfinite(stack().log_prob(x)).all()
    with pytest.raises(DataError, match="no missing values"):
        stack().log_prob(sp.csr_array(x))


def test_all_alike_is_certain_whatever_the_weights():
    """Zeros are what is left of the weight: no rounding of it may remain."""
    w = np.random.default_rng(3).random(1000)
    for rows in (np.ones((1000, 2)), sp.csr_array(np.ones((1000, 2)))):
        assert np.array_equal(Bernoulli.fit(rows, w).probs, [1.0, 1.0])
    assert np.array_equal(Bernoulli.fit(np.zeros((1000, 2)), w).probs, [0.0, 0.0])


def test_frequencies_are_the_fit():
    x, w = coins(), np.random.default_rng(4).random(200)
    assert np.allclose(Bernoulli.fit(x, w).probs, w @ x / w.sum(), rtol=1e-12)
    x[::5, 2] = np.nan
    seen = ~np.isnan(x[:, 2])
    assert Bernoulli.fit(x, w).probs[2] == pytest.approx(w[seen] @ x[seen, 2] / w[seen].sum())
    x[:, 2] = np.nan
    assert Bernoulli.fit(x, w).probs[2] == 0.5


def test_moments_and_information():
    b = Bernoulli(P[0])
    p = np.exp(b.log_prob(ROWS))
    assert b.entropy() == pytest.approx(-(p * np.log(p)).sum(), rel=1e-13)
    q = Bernoulli(P[1])
    assert b.kl(q) == pytest.approx((p * (np.log(p) - q.log_prob(ROWS))).sum(), rel=1e-13)
    assert np.allclose(b.expect(lambda x: x).value, b.mean) and b.expect(lambda x: x).error.max() == 0
    assert np.allclose(b.expect(lambda x: (x - b.mean) ** 2).value, b.variance)
    assert Bernoulli([0.0, 1.0]).entropy() == 0.0 and b.mode.tolist() == [0.0, 0.0, 1.0]
    assert Bernoulli([0.5, 0.5]).entropy(bits=True) == pytest.approx(2.0)
    value, error = Bernoulli(np.full(40, 0.3)).expect(lambda x: x.sum(axis=-1), n=4000)
    assert abs(value - 12.0) < 5 * error


def test_some_members():
    b, x = Bernoulli(P), ROWS
    assert np.array_equal(b.take([2, 0]).probs, P[[2, 0]])
    stats = b.collect(x, np.random.default_rng(5).random((8, 3)))
    assert np.array_equal(stats.member(np.array([2, 0])).zeros, stats.zeros[[2, 0]])


def test_what_is_no_distribution_and_no_statistic():
    for bad in (-0.1, [0.5, 1.1], np.nan):
        with pytest.raises(DomainError):
            Bernoulli(bad)
    with pytest.raises(ShapeError):
        Bernoulli(np.ones((2, 2, 2)))
    with pytest.raises(ShapeError):
        Trials([1.0], [1.0], [1.0])
    with pytest.raises(DomainError):
        Trials(1.0, [-1.0], [1.0])
    with pytest.raises(ShapeError):
        Bernoulli(P).log_prob(sp.csr_array(np.ones((2, 4))))


def test_many_rows_go_through_threads():
    x = np.tile(coins(100), (700, 1))
    once = stack().collect(coins(100))
    for rows in (x, sp.csr_array(x)):
        assert np.allclose(stack().collect(rows).ones, 700 * once.ones, rtol=1e-13)
    x[66_000, 7] = 3
    with pytest.raises(DataError, match="row 66000, column 7"):
        stack().collect(x)


def test_a_mixture_with_a_prior_never_loses():
    x = coins(300)
    start = lk.Mixture(np.full(4, 0.25), stack())
    report = lk.fit(start, sp.csr_array(x), prior="weak", stop=lk.StoppingRule(100, 1e-9))
    assert (np.diff(report.trace) >= -1e-9 * abs(report.objective)).all()
    assert isinstance(report.prior.components, Beta) and np.isfinite(report.model.log_prob(x)).all()
