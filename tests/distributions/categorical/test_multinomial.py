"""Multinomial distribution against SciPy, mpmath and enumeration; sparse against dense rows; missing values by EM."""

from __future__ import annotations

import pickle
import warnings
from itertools import product

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import likely as lk
from likely.core.engine import Serial, Threads
from likely.core.errors import DataError, DomainError, FitWarning, ShapeError
from likely.distributions.categorical.multinomial import Multinomial, MultinomialStats, all_rows
from likely.distributions.categorical.sparse_counts import SparseRows, tallied
from tests.properties import density, learnable, stats
from tests.properties.members import Member

P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
KINDS = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix]


def words(n: int = 60, d: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.3, 1.0, d), (n, d)).astype(float)


def stack(d: int = 30, members: int = 4, seed: int = 1) -> Multinomial:
    return Multinomial(np.random.default_rng(seed).dirichlet(np.ones(d), members))


# --------------------------------------------------------------------- the distributions

# rows are scored given their total: a column alone, or the rows of all totals together, are not what it is a
# distribution of
OF_FREE_TOTALS = {"adds_up_to_one", "leaving_out_is_integrating", "samples_follow_the_density_column_by_column"}
MEMBERS = [
    Member("Multinomial", lambda: Multinomial(P[0], 5), ("count",) * 3, other=lambda: Multinomial(P[1], 5)),
    Member("Multinomial-stack", lambda: Multinomial(P, 4), ("count",) * 3, other=lambda: Multinomial(P[::-1], 4)),
    Member("Mixture", lambda: lk.Mixture([0.5, 0.5], Multinomial(P[1:3], 30)), ("count",) * 3, hidden=True),
]


def cases(suite):
    return [case for case in suite.cases(MEMBERS) if case.values[0].__name__ not in OF_FREE_TOTALS]


@pytest.mark.parametrize(
    ("distribution", "member"),
    [*cases(density.PROPERTIES), *cases(stats.PROPERTIES), *cases(learnable.PROPERTIES)],
)
def test_distributions(distribution, member):
    distribution(member)


# ------------------------------------------------------------------- the density


@pytest.mark.parametrize("total", [0, 1, 4, 7])
def test_rows_of_one_total_add_up_to_one(total):
    rows = all_rows(total, 3)
    assert len(rows) == (total + 1) * (total + 2) // 2 and (rows.sum(axis=1) == total).all()
    assert np.allclose(np.exp(Multinomial(P).log_prob(rows)).sum(axis=0), 1.0, atol=1e-13)


def test_it_is_scipys():
    rows = all_rows(6, 3)
    want = scipy.stats.multinomial(6, P[0]).logpmf(rows)
    assert np.allclose(Multinomial(P[0]).log_prob(rows), want, atol=1e-12)


def test_a_missing_value_is_the_distribution_of_what_was_seen_given_its_total():
    """By enumeration: p(x₀, x₂ | x₀ + x₂), from the joint distribution of all rows of a total."""
    rows, m = all_rows(7, 3), Multinomial(P[0], 7)
    p = np.exp(m.log_prob(rows))
    for a, b in ((2, 1), (0, 3), (3, 0)):
        same = rows[:, 0] + rows[:, 2] == a + b
        here = same & (rows[:, 0] == a)
        want = np.log(p[here].sum() / p[same].sum())
        assert m.log_prob([[a, np.nan, b]])[0] == pytest.approx(want, abs=1e-12)
    assert m.log_prob([[np.nan, 5, np.nan]])[0] == pytest.approx(0.0, abs=1e-12)


def test_what_cannot_happen():
    m = Multinomial([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    rows = np.array([[1, 2, 0], [1, 2, 1], [0, 0, 0], [-1, 2, 0], [0, np.nan, 3]])
    out = m.log_prob(rows)
    assert not np.isnan(out).any()
    assert np.isneginf(out).tolist() == [
        [False, False], [True, False], [False, False], [True, True], [True, False]
    ]  # fmt: skip
    assert np.array_equal(m.log_prob(sp.csr_array(rows[:4])), out[:4])
    assert m.objective(m.collect(rows[1:2])) == -np.inf


@pytest.mark.filterwarnings("ignore:.*not all integers")
def test_fractions_are_scored_with_gamma_functions():
    x, p = [0.5, 1.25, 2.0], P[0]
    want = (
        mp.loggamma(4.75) - sum(mp.loggamma(c + 1) for c in x) + sum(c * mp.log(q) for c, q in zip(x, p, strict=True))
    )
    assert Multinomial(p).log_prob([x])[0] == pytest.approx(float(want), abs=1e-12)
    assert Multinomial(p).log_prob(sp.csr_array([x]))[0] == pytest.approx(float(want), abs=1e-12)


def exact_log_prob(row: np.ndarray, p: np.ndarray) -> mp.mpf:
    each = (int(c) * mp.log(mp.mpf(q)) - mp.loggamma(int(c) + 1) for c, q in zip(row, p, strict=True))
    return mp.loggamma(int(row.sum()) + 1) + sum(each)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_many_counts_keep_their_digits(kind):
    p = np.array([0.125, 0.375, 0.25, 0.25])
    x = np.array([[1250013.0, 3749000.0, 2500987.0, 2500000.0], [10.0**6, 0.0, 0.0, 3 * 10.0**6]])
    with mp.workdps(40):
        exact = [exact_log_prob(row, p) for row in x]
    for distribution in (Multinomial(p), Multinomial([p, p[::-1]])):
        got = distribution.log_prob(kind(x)).reshape(2, -1)[:, 0]
        assert got == pytest.approx([float(e) for e in exact], rel=1e-13, abs=1e-10)
    with_gap = np.array([[1250013.0, np.nan, 2500987.0, np.nan]])
    want = Multinomial([1 / 3, 2 / 3]).log_prob([[1250013.0, 2500987.0]])
    assert Multinomial(p).log_prob(with_gap) == pytest.approx(want, abs=1e-9)


def test_entropy_and_divergence_by_enumeration():
    for total in (0, 1, 2, 9):
        rows, m = all_rows(total, 3), Multinomial(P, total)
        logs = m.log_prob(rows)
        assert np.allclose(m.entropy(), -(np.exp(logs) * logs).sum(axis=0), atol=1e-12)
        q = Multinomial(P[::-1], total)
        assert np.allclose(m.kl(q), (np.exp(logs) * (logs - q.log_prob(rows))).sum(axis=0), atol=1e-12)
    assert Multinomial([0.5, 0.5]).entropy(bits=True) == pytest.approx(1.0)


def test_moments_and_expectations():
    m = Multinomial(P[0], 6)
    assert np.allclose(m.expect(lambda x: x).value, m.mean, atol=1e-12)
    assert np.allclose(m.expect(lambda x: (x - m.mean) ** 2).value, m.variance, atol=1e-12)
    outer = m.expect(lambda x: (x - m.mean)[:, :, None] * (x - m.mean)[:, None, :]).value
    assert np.allclose(outer, m.covariance, atol=1e-12)
    assert np.allclose(Multinomial(P, 3).expect(lambda x: x).value, 3 * P, atol=1e-12)
    value, error = Multinomial(np.full(50, 0.02), 100).expect(lambda x: x[..., 0], n=4000)
    assert abs(value - 2.0) < 5 * error


def test_samples_have_the_length():
    x = Multinomial(P, 11).sample(20, np.random.default_rng(0))
    assert x.shape == (20, 4, 3) and (x.sum(axis=-1) == 11).all()


def test_what_is_no_distribution():
    for bad in ([0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0]):
        with pytest.raises(DomainError):
            Multinomial(bad)
    for bad in (0.5, [], np.ones((2, 2, 2)) / 2):
        with pytest.raises(ShapeError):
            Multinomial(bad)
    for length in (-1, 1.5, [1, 2], np.inf):
        with pytest.raises(DomainError):
            Multinomial([0.5, 0.5], length)


def test_some_members():
    m, x = Multinomial(P), words(9, 3)
    some = m.take([2, 0])
    assert np.array_equal(some.probs, P[[2, 0]]) and some.members == 2
    sums = m.collect(x, np.random.default_rng(0).random((9, 4)))
    part = sums.member(np.array([2, 0]))
    assert np.array_equal(part.counts, sums.counts[[2, 0]]) and part.constant.shape == (2,)
    assert some.objective(part) == pytest.approx(sum(m.member(k).objective(sums.member(k)) for k in (2, 0)))


# ------------------------------------------------------------------- sparse rows


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_sparse_rows_are_the_dense_ones(kind):
    x, m, rng = words(), stack(), np.random.default_rng(2)
    sparse = kind(x)
    assert np.allclose(m.log_prob(sparse), m.log_prob(x), atol=1e-11)
    assert np.allclose(m.member(1).log_prob(sparse), m.member(1).log_prob(x), atol=1e-11)
    w, labels = rng.random(60), rng.integers(-1, 4, 60)
    for known in (
        {},
        {"weight": w},
        {"weight": rng.random((60, 4))},
        {"labels": labels},
        {"labels": labels, "weight": w},
    ):
        a, b = m.collect(sparse, **known), m.collect(x, **known)
        for name in ("counts", "rows", "constant"):
            assert np.allclose(getattr(a, name), getattr(b, name), rtol=1e-12)
    assert Multinomial.blank(sparse, 4).length == Multinomial.blank(x, 4).length


def test_sparse_rows_are_never_dense():
    """10⁵ rows of 10⁵ columns would take 80 GB."""
    n = d = 100_000
    rng = np.random.default_rng(3)
    x = sp.csr_array((np.ones(3 * n), (np.repeat(np.arange(n), 3), rng.integers(0, d, 3 * n))), shape=(n, d))
    m = Multinomial.blank(x)
    better = m.refit(m.collect(x))
    assert better.probs.sum() == pytest.approx(1.0)
    assert np.isfinite(better.log_prob(x)).all() and better.objective(m.collect(x)) > m.objective(m.collect(x))


def test_duplicates_are_summed_and_nothing_is_changed():
    raw = sp.csr_array((np.array([1.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 3))
    kept = raw.data.copy(), raw.indices.copy()
    assert Multinomial(P[0]).log_prob(raw)[0] == pytest.approx(Multinomial(P[0]).log_prob([[2, 2, 0]])[0])
    assert np.array_equal(raw.data, kept[0]) and np.array_equal(raw.indices, kept[1])


def test_kinds_of_numbers():
    x = words(20, 3).astype(int)
    want = Multinomial(P).log_prob(x)
    for dtype in (bool, np.int32, np.uint8, np.int64, np.float64):
        seen = x.astype(dtype)
        assert np.allclose(Multinomial(P).log_prob(sp.csr_array(seen)), Multinomial(P).log_prob(seen), atol=1e-12)
    single = Multinomial(P).log_prob(sp.csr_array(x.astype(np.float32)))
    assert single.dtype == np.float32 and np.allclose(single, want, rtol=1e-6)
    with pytest.raises(DataError, match="real"):
        Multinomial(P).log_prob(sp.csr_array(x.astype(complex)))


def test_sparse_rows_that_are_wrong_are_named():
    x = sp.csr_array(words(5000, 30)).astype(float)
    at = x.indptr[4321]
    m, (row, column) = stack(), (4321, int(x.indices[at]))
    for bad, text in ((np.nan, "no missing values"), (np.inf, "finite")):
        x.data[at] = bad
        for attempt in (m.collect, m.log_prob):
            with pytest.raises(DataError, match=rf"{text}.* row {row}, column {column}"):
                attempt(x)
    x.data[at] = -2.0
    with pytest.raises(DataError, match=rf"negative, got -2.0 at row {row}, column {column}"):
        m.collect(x)
    assert np.isneginf(m.log_prob(x)[row]).all() and np.isfinite(m.log_prob(x)[:row]).all()
    with pytest.raises(ShapeError, match=r"\(n, 30\)"):
        m.log_prob(x[:, :29])


def test_rows_beyond_the_first_block_are_named():
    x = np.tile(words(100, 30), (700, 1))
    x[66_000, 7] = -1.0
    for rows in (x, sp.csr_array(x)):
        with pytest.raises(DataError, match="row 66000, column 7"):
            stack().collect(rows)


def test_engines_and_chunks_give_the_same_bits():
    x, m = sp.csr_array(np.tile(words(100, 30), (1400, 1))), stack()
    blocks = lk.core.Blocks.of(x)
    a, b = (e.total(lambda block: m.collect(block.x), blocks) for e in (Serial(), Threads(2)))
    assert a.counts.tobytes() == b.counts.tobytes() == m.collect(x).counts.tobytes()
    assert np.allclose(a.counts, 1400 * m.collect(words(100, 30)).counts, rtol=1e-12)


def test_tallied_rows_are_looked_at_once():
    x, m = sp.csr_array(words(5000, 30)), stack()
    rows = SparseRows.of(x).tallied()
    assert np.shares_memory(rows[100:200].log_coefficients, rows.log_coefficients)
    assert np.shares_memory(rows[100:200].matrix.data, x.data)
    assert np.array_equal(m.log_prob(rows), m.log_prob(x))
    for which in (slice(10, 20), slice(20, 10), slice(None, None, 7), np.array([3, 1]), np.arange(5000) % 3 == 0):
        assert np.allclose(m.log_prob(rows[which]), m.log_prob(x.toarray()[which]), atol=1e-11)
    assert np.array_equal(m.collect(rows[:99]).counts, m.collect(x[:99]).counts)


def test_sparse_rows_are_no_sequence():
    """NumPy would make an array without columns of them."""
    with pytest.raises(DataError, match="stay sparse"):
        np.asarray(SparseRows.of(sp.csr_array(words())))
    assert np.array_equal(SparseRows.of(sp.csr_array(words())).toarray(), words())


def test_named_parts_may_be_tallied():
    x = lk.core.Columns(size=np.zeros(60), words=sp.csr_array(words()))
    assert isinstance(tallied(x)["words"], SparseRows) and tallied(x)["size"] is x["size"]
    assert "log_coefficients" in tallied(x)[10:20]["words"].__dict__


def test_named_parts_may_be_sparse():
    x, rng = words(200, 30), np.random.default_rng(4)
    sizes = rng.normal(size=(200, 2))
    p = lk.Product({"size": lk.Gaussian([0.0, 0.0], 1.0), "words": stack().member(0)})
    sparse, dense = (lk.core.Columns(size=sizes, words=w) for w in (sp.csr_array(x), x))
    assert np.allclose(p.log_prob(sparse), p.log_prob(dense), atol=1e-11)
    assert np.allclose(p.refit(p.collect(sparse))["words"].probs, x.sum(axis=0) / x.sum())


# ---------------------------------------------------------------------- learning


def test_frequencies_are_the_fit():
    x, w = words(), np.random.default_rng(5).random(60)
    assert np.allclose(Multinomial.fit(x, w).probs, w @ x / (w @ x).sum(), rtol=1e-13)
    assert np.allclose(Multinomial.fit(sp.csr_array(x), w).probs, w @ x / (w @ x).sum(), rtol=1e-13)


def information(p: np.ndarray, length: int, missing: float) -> np.ndarray:
    """Fisher's, of one row in log p: over all patterns of gaps, N_seen times the covariance of one seen draw."""
    total = np.zeros((len(p), len(p)))
    for seen in product([False, True], repeat=len(p)):
        share, q = p[list(seen)].sum(), np.where(seen, p, 0.0)
        if share > 0:
            chance = missing ** (len(p) - sum(seen)) * (1 - missing) ** sum(seen)
            total += chance * length * (np.diag(q) - np.outer(q, q) / share)
    return total


def test_missing_values_are_learned_by_em():
    """Columns watched now and then: the estimate is as near as Fisher's information allows, and a summit."""
    rng = np.random.default_rng(6)
    truth = Multinomial([0.1, 0.2, 0.3, 0.4], 50)
    x = truth.sample(4000, rng)
    x[rng.random(x.shape) < 0.4] = np.nan
    report = lk.fit(Multinomial.blank(x), x, stop=lk.StoppingRule(2000, 1e-12)).require_converged()
    turn = np.diag(truth.probs) - np.outer(truth.probs, truth.probs)
    spread = np.sqrt(np.diag(turn @ np.linalg.pinv(4000 * information(truth.probs, 50, 0.4)) @ turn))
    assert spread.max() < 0.002 and (np.abs(report.model.probs - truth.probs) < density.SIGMAS * spread).all()
    assert not report.stats.complete and (np.diff(report.trace) >= -1e-9).all()
    assert report.objective == pytest.approx(report.model.log_prob(x).sum(), rel=1e-12)
    for _ in range(20):
        probs = report.model.probs * np.exp(0.01 * rng.standard_normal(4))
        assert Multinomial(probs / probs.sum()).log_prob(x).sum() < report.objective


def test_missing_values_for_each_member_and_label():
    x = words(40, 3)
    x[::3, 1] = np.nan
    m, labels = Multinomial(P), np.random.default_rng(7).integers(-1, 4, 40)
    by_label = m.collect(x, labels=labels)
    for k in range(4):
        alone = m.member(k).collect(x[labels == k])
        assert np.allclose(by_label.member(k).counts, alone.counts) and by_label.member(k).constant == pytest.approx(
            float(alone.constant)
        )
        assert np.allclose(m.collect(x).counts[k], m.member(k).collect(x).counts)


def test_columns_that_were_never_possible_stay_so():
    m = Multinomial([0.0, 0.4, 0.6])
    stats = m.collect([[np.nan, 2, 3], [0, np.nan, np.nan], [3, np.nan, np.nan]])
    assert np.isfinite(stats.counts).all() and np.isfinite(stats.constant)
    assert m.objective(stats) == -np.inf
    assert np.isfinite(m.refit(stats).log_prob([[1, 2, 3]])).all()


def test_rows_without_counts_say_nothing():
    m = Multinomial(P[0])
    stats = m.collect(np.zeros((4, 3)))
    assert stats.total_weight == 4 and np.array_equal(m.refit(stats).probs, m.probs)
    assert m.objective(stats) == 0.0 and np.array_equal(m.log_prob(np.zeros((2, 3))), [0.0, 0.0])


def test_statistics_are_checked_and_copied():
    with pytest.raises(DomainError):
        MultinomialStats([-1.0, 2.0], 1.0, 0.0)
    with pytest.raises(ShapeError):
        MultinomialStats([1.0, 2.0], [1.0], 0.0)
    a = Multinomial(P).collect(words(9, 3))
    assert pickle.loads(pickle.dumps(a)).counts.tobytes() == a.counts.tobytes()
    assert np.allclose(a.pooled().counts, 4 * words(9, 3).sum(axis=0))


def test_a_mixture_finds_topics():
    rng = np.random.default_rng(8)
    truth = np.stack([np.r_[np.full(20, 0.045), np.full(20, 0.005)], np.r_[np.full(20, 0.005), np.full(20, 0.045)]])
    label = rng.integers(0, 2, 400)
    x = sp.csr_array(np.stack([rng.multinomial(60, truth[k]) for k in label]))
    start = lk.Mixture([0.5, 0.5], Multinomial(rng.dirichlet(np.full(40, 20.0), 2)))
    report = lk.fit(start, x, prior="weak", stop=lk.StoppingRule(200, 1e-8)).require_converged()
    found = report.model.posterior(x).argmax(axis=1)
    assert max((found == label).mean(), (found != label).mean()) > 0.99
    assert (np.diff(report.trace) >= -1e-9 * abs(report.objective)).all()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_products_lose_no_more_than_the_probabilities_do(kind):
    """log 15643! is 135,000, of which −885 is left: to 2e-16 of the total, as the rounding of p allows."""
    p = [0.8642117472002523, 0.0009372059764590048, 0.1348510468232886]
    found = lk.Multinomial(np.array([p, p])).log_prob(kind([[14868.0, 113.0, 662.0]]))
    assert np.abs(found - -885.3054754560968).max() < 4e-16 * 15643


@pytest.mark.parametrize("distribution", [lk.Multinomial, lk.distributions.DirichletMultinomial])
def test_fractions_are_reported_once(distribution):
    x, told = (
        np.array([[1.0, 0.5, 2.0], [2.0, 1.0, 0.25]]),
        f"{distribution.__name__}: columns 1 and 2 are not all integers",
    )
    for rows in (x, sp.csr_array(x)):
        for verb in (
            distribution.fit,
            distribution(np.full(3, 1 / 3)).log_prob,
            distribution(np.full((2, 3), 1 / 3)).log_prob,
        ):
            with pytest.warns(FitWarning, match=told) as heard:
                verb(rows)
            assert len(heard) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (2 * np.rint(x), sp.csr_array(2 * np.rint(x))):
            distribution.fit(rows)
            distribution(np.full(3, 1 / 3)).log_prob(rows)
