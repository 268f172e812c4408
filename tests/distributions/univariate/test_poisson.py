"""The Poisson distribution against mpmath, SciPy and enumeration; its statistic against sums by hand."""

from __future__ import annotations

import tracemalloc
import warnings

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats

import likely as lk
from likely.core.errors import DataError, DomainError, ShapeError
from likely.distributions.statistics.counts import smallest
from likely.distributions.univariate.gamma import Gamma
from likely.distributions.univariate.poisson import Counts, Poisson
from likely.numerics import special as counts

EPS = float(np.finfo(float).eps)
STACK = np.array([[3.0, 0.5], [1.0, 7.0], [10.0, 2.0], [4.0, 4.0], [0.3, 0.2]])


def excess_bits(got: float, exact: mp.mpf, sensitivity: mp.mpf) -> float:
    """Wrong bits of a result beyond those that rounding the inputs alone would spoil."""
    error = abs(mp.mpf(float(got)) - exact)
    return float(mp.log(error / (EPS * (abs(exact) + sensitivity)), 2)) if error else -99.0


def exact_log_prob(x: float, rate: float) -> mp.mpf:
    return mp.mpf(x) * mp.log(mp.mpf(rate)) - mp.mpf(rate) - mp.loggamma(mp.mpf(x) + 1)


def some_counts(rate: float, rng: np.random.Generator) -> float:
    """A typical count, one of either tail, one at the peak, or any."""
    kinds = [rng.poisson(rate), rate * 10 ** rng.uniform(-2, 2), rate + rng.integers(-3, 4), 10 ** rng.uniform(0, 4.3)]
    return float(max(np.rint(kinds[rng.integers(4)]), 0.0))


def worst_bits(n: int) -> float:
    rng, worst = np.random.default_rng(1), -99.0
    with mp.workdps(50):
        for _ in range(n):
            rate = 10 ** rng.uniform(-6, 6)
            x = some_counts(rate, rng)
            exact = exact_log_prob(x, rate)
            if exact > -1e5:
                got = Poisson(rate).log_prob([x])[0]
                worst = max(worst, excess_bits(got, exact, abs(mp.mpf(x) - mp.mpf(rate))))
    return worst


def test_log_prob_is_right_to_the_last_bits():
    assert worst_bits(500) <= 2


@pytest.mark.campaign
def test_log_prob_is_right_to_the_last_bits_at_ten_thousand_points():
    assert worst_bits(10_000) <= 2


def test_the_naive_formula_would_not_be():
    with mp.workdps(50):
        x = rate = 1e6
        naive = x * np.log(rate) - rate - scipy.special.gammaln(x + 1)
        exact = exact_log_prob(x, rate)
        assert excess_bits(naive, exact, mp.mpf(0)) > 10
        assert excess_bits(Poisson(rate).log_prob([x])[0], exact, mp.mpf(0)) <= 2


def test_rates_beyond_all_reason_give_numbers():
    values = Poisson([[1e-320], [1e-300], [1e300], [1.7e308]]).log_prob([0.0, 1.0, 1e15])
    assert np.isfinite(values[:, :3]).all() and not np.isnan(values).any()
    assert values[1, 0] == pytest.approx(np.log(1e-320), rel=1e-12)


def test_what_is_no_count_is_impossible():
    distribution = Poisson([2.0, 0.0])
    assert distribution.log_prob([[1, 0], [1.5, 0], [-1, 0], [1, 1], [0, 0]]).tolist() == [
        np.log(2.0) - 2.0, -np.inf, -np.inf, -np.inf, -2.0,
    ]  # fmt: skip
    stack = Poisson([[2.0, 0.0]] * 4 + [[2.0, 1.0]])
    assert np.isfinite(stack.log_prob([[1, 1]]))[0].tolist() == [False] * 4 + [True]


def test_it_adds_up_to_one_over_all_counts():
    for rate in (1e-6, 0.3, 7.0, 250.0, 1e5):
        low, high = counts_around(rate)
        assert np.exp(Poisson(rate).log_prob(np.arange(low, high))).sum() == pytest.approx(1.0, abs=1e-13)


def counts_around(rate: float) -> tuple[float, float]:
    return max(0.0, np.floor(rate - 12 * np.sqrt(rate))), np.ceil(rate + 12 * np.sqrt(rate) + 30)


def test_a_stack_by_one_product_is_its_members_one_by_one(rng):
    x = rng.poisson(4.0, (300, 2)).astype(float)
    x[rng.random(x.shape) < 0.2] = np.nan
    members = np.stack([Poisson(rate).log_prob(x) for rate in STACK], axis=1)
    assert np.abs(Poisson(STACK).log_prob(x) - members).max() <= 1e-12


def test_rows_that_the_product_would_spoil_go_entry_by_entry(rng):
    rates = 1e6 * (1 + 1e-3 * np.arange(8.0))[:, None]
    x = rng.poisson(1e6, 50).astype(float)
    product, size = Poisson(rates)._by_product(x[:, None], np.ones((50, 1), bool))
    exact = np.stack([Poisson(rate).log_prob(x) for rate in rates], axis=1)
    assert np.abs(product - exact).max() > 1e-10  # so the choice matters here
    assert (8 * EPS * size > 1e-9).all() and np.array_equal(Poisson(rates).log_prob(x), exact)


def test_missing_values_leave_their_columns_out(rng):
    distribution = Poisson([3.0, 0.5, 8.0])
    x = rng.poisson(3.0, (40, 3)).astype(float)
    gap = x.copy()
    gap[:, 1] = np.nan
    assert np.array_equal(distribution.log_prob(gap), Poisson([3.0, 8.0]).log_prob(x[:, [0, 2]]))
    assert np.array_equal(distribution.log_prob(np.full((2, 3), np.nan)), [0.0, 0.0])
    seen = distribution.collect(gap)
    assert seen.weight.tolist() == [40.0, 0.0, 40.0] and seen.total[1] == 0.0 and seen.rows == 40.0


def test_infinity_is_named_by_row_and_column():
    x = np.ones((50_000, 2))
    x[40_001, 1] = np.inf
    for act in (Poisson([1.0, 1.0]).log_prob, Poisson([1.0, 1.0]).collect):
        with pytest.raises(DataError, match="row 40001, column 1"):
            act(x)


def test_negative_counts_are_named_by_row_and_column():
    x = np.ones((50_000, 2))
    x[40_001, 1] = -3
    with pytest.raises(DataError, match=r"-3\.0 at row 40001, column 1"):
        Poisson([1.0, 1.0]).collect(x)
    with pytest.raises(DataError, match=r"-3\.0 at row 1, column 0"):
        Poisson([1.0]).collect([1, -3])


def test_distribution_function_against_scipy_and_exact_sums():
    x = np.arange(-2.0, 60.0, 0.5)
    assert np.allclose(Poisson(11.3).cdf(x), scipy.stats.poisson(11.3).cdf(x), rtol=1e-12, atol=0)
    with mp.workdps(50):
        for rate, at in [(1e-6, 0), (0.2, 3), (40.0, 5), (1e3, 700), (1e6, 992_000), (1e6, 1_003_000)]:
            exact = mp.gammainc(at + 1, mp.mpf(rate), mp.inf, regularized=True)
            assert abs(float(Poisson(rate).cdf(at) / exact - 1)) <= 1e-11


def test_quantiles_are_the_smallest_count_that_reaches():
    p = np.concatenate([10.0 ** -np.arange(1.0, 200.0, 13.0), np.linspace(0.0, 0.999, 40)])
    for rate in (1e-6, 0.3, 9.0, 1e4, 1e6):
        distribution = Poisson(rate)
        x = distribution.quantile(p)
        assert (distribution.cdf(x) >= p).all() and ((distribution.cdf(x - 1) < p) | (x == 0)).all()
    for rate in (0.3, 9.0, 1e4, 1e6):
        at = np.floor(rate) + np.arange(3.0)
        assert np.array_equal(Poisson(rate).quantile(Poisson(rate).cdf(at)), at)
    assert Poisson(3.0).quantile([0.0, 1.0]).tolist() == [0.0, np.inf] and np.isnan(Poisson(3.0).quantile(1.5))
    assert Poisson(0.0).quantile([0.5, 1.0]).tolist() == [0.0, 0.0]
    assert Poisson([[1.0], [9.0]]).quantile([0.1, 0.5]).shape == (2, 2)
    with pytest.raises(DomainError, match="one column"):
        Poisson([1.0, 2.0]).cdf(1)


def exact_entropy(rate: float) -> mp.mpf:
    low, high = (int(edge) for edge in counts_around(rate))
    logs, total = exact_log_prob(low, rate), mp.mpf(0)
    for k in range(low, high):
        total -= mp.exp(logs) * logs
        logs += mp.log(mp.mpf(rate)) - mp.log(k + 1)
    return total


def test_entropy_against_exact_sums():
    with mp.workdps(40):
        for rate in (1e-6, 0.01, 0.7, 3.3, 30.0, 900.0, 9999.0, 10_001.0):
            assert abs(float(Poisson(rate).entropy() / exact_entropy(rate) - 1)) <= 1e-12
    assert Poisson([0.7, 3.3]).entropy() == pytest.approx(Poisson(0.7).entropy() + Poisson(3.3).entropy(), rel=1e-15)
    assert Poisson(3.3).entropy(bits=True) * np.log(2) == pytest.approx(Poisson(3.3).entropy(), rel=1e-15)
    assert Poisson(0.0).entropy() == 0.0


def test_divergence_against_enumeration():
    p, q = Poisson([3.0, 0.5]), Poisson([2.0, 4.0])
    x = np.arange(80.0)
    each = [
        np.exp(Poisson(a).log_prob(x)) @ (Poisson(a).log_prob(x) - Poisson(b).log_prob(x))
        for a, b in [(3, 2), (0.5, 4)]
    ]
    assert p.kl(q) == pytest.approx(sum(each), rel=1e-13)
    assert Poisson(0.0).kl(Poisson(2.0)) == 2.0 and Poisson(2.0).kl(Poisson(0.0)) == np.inf
    assert Poisson(1e6).kl(Poisson(1e6 + 1)) == pytest.approx(0.5e-6, rel=1e-5)


def test_expectations_are_exact_sums():
    value, error = Poisson(2.5).expect(lambda x: x[..., 0] ** 2)
    assert value == pytest.approx(2.5 + 2.5**2, rel=1e-14) and error == 0
    assert Poisson([2.5, 4.0]).expect(lambda x: x[..., 0] * x[..., 1]).value == pytest.approx(10.0, rel=1e-13)
    assert np.allclose(Poisson(STACK).expect(lambda x: x.sum(axis=-1)).value, STACK.sum(axis=1), rtol=1e-12)
    assert Poisson(1e13).expect(lambda x: x[..., 0], n=1000).error > 0  # too many counts: draws


def test_draws_follow_the_distribution(rng):
    x = Poisson([[4.0, 0.5], [1e17, 3.0]]).sample(20_000, rng)
    assert x.shape == (20_000, 2, 2) and np.array_equal(x, np.rint(x))
    mean, deviation = x.mean(axis=0), np.sqrt(np.array([[4.0, 0.5], [1e17, 3.0]]))
    assert (np.abs(mean - deviation**2) <= 5 * deviation / np.sqrt(20_000)).all()
    assert np.allclose(x.std(axis=0), deviation, rtol=0.05)


# -------------------------------------------------------------------- learning


def test_the_statistic_holds_the_sums():
    s = Poisson([1.0, 1.0]).collect([[3, 0], [1, np.nan], [0.5, 2]], [1.0, 2.0, 4.0])
    assert s.rows == 7.0 and s.weight.tolist() == [7.0, 5.0] and s.total.tolist() == [7.0, 8.0]
    assert s.log_factorial == pytest.approx(np.log(6) + 4 * (scipy.special.gammaln(1.5) + np.log(2)), rel=1e-14)
    assert s.complete and s.total_weight == 7.0 and s.mean.tolist() == [1.0, 1.6]


def assert_same(a: Counts, b: Counts, tolerance: float = 1e-13) -> None:
    for name in ("rows", "weight", "total", "log_factorial"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=tolerance, atol=0)


def test_weights_are_repetitions_and_parts_add_up(rng):
    distribution = Poisson([2.0, 5.0])
    x, w = rng.poisson(4.0, (60, 2)).astype(float), rng.integers(0, 4, 60)
    x[3, 0] = np.nan
    assert_same(distribution.collect(x, w), distribution.collect(np.repeat(x, w, axis=0)))
    assert_same(distribution.collect(x[:20]) + distribution.collect(x[20:]), distribution.collect(x))
    assert_same(2.5 * distribution.collect(x), distribution.collect(x, np.full(60, 2.5)))
    assert_same(distribution.collect(x[:0]) + distribution.collect(x), distribution.collect(x), 0)


def test_large_inputs_are_split_and_give_the_same(rng):
    x = rng.poisson(4.0, (40_000, 2)).astype(float)
    distribution, stack = Poisson([2.0, 5.0]), Poisson(STACK)
    w, labels = rng.random((40_000, 5)), rng.integers(-1, 5, 40_000)
    assert_same(distribution.collect(x), distribution.collect(x[:20_000]) + distribution.collect(x[20_000:]))
    assert_same(stack.collect(x, w), stack.collect(x[:20_000], w[:20_000]) + stack.collect(x[20_000:], w[20_000:]))
    whole, halves = stack.collect(x, labels=labels), [slice(0, 20_000), slice(20_000, None)]
    assert_same(
        whole,
        stack.collect(x[halves[0]], labels=labels[halves[0]]) + stack.collect(x[halves[1]], labels=labels[halves[1]]),
    )
    assert (
        np.abs(distribution.log_prob(x) - np.concatenate([distribution.log_prob(x[h]) for h in halves])).max() <= 1e-14
    )


def test_members_of_a_stack_see_their_own_rows(rng):
    x, labels = rng.poisson(4.0, (50, 2)).astype(float), rng.integers(-1, 5, 50)
    x[7, 1] = np.nan
    stack, w = Poisson(STACK), rng.random((50, 5))
    for k in range(5):
        one = stack.member(k)
        assert_same(stack.collect(x, labels=labels).member(k), one.collect(x[labels == k]))
        assert_same(stack.collect(x, w[:, k], labels=labels).member(k), one.collect(x[labels == k], w[labels == k, k]))
        assert_same(stack.collect(x, w).member(k), one.collect(x, w[:, k]))
        assert_same(stack.collect(x, w[:, 0]).member(k), one.collect(x, w[:, 0]))
    assert_same(stack.collect(x, labels=labels).pooled(), Poisson([1.0, 1.0]).collect(x[labels >= 0]))


def test_refit_gives_the_mean():
    """Ney 3.4: the maximum-likelihood rate of a Poisson distribution is the mean of the counts."""
    assert Poisson.fit([2, 3, 7]).rate.tolist() == [4.0]
    assert Poisson.fit([[2, 0], [3, np.nan], [7, 3]], [1, 1, 2]).rate.tolist() == [4.75, 2.0]
    around = [Poisson(4.0 + d).objective(Poisson(1.0).collect([2, 3, 7])) for d in (-0.01, 0.0, 0.01)]
    assert around[1] == max(around)


def test_a_member_that_saw_nothing_keeps_its_rates(rng):
    x = rng.poisson(4.0, (50, 2)).astype(float)
    stack = Poisson(STACK)
    refitted = stack.refit(stack.collect(x, labels=np.zeros(50, int)))
    assert np.array_equal(refitted.rate[1:], STACK[1:]) and np.allclose(refitted.rate[0], x.mean(axis=0), rtol=1e-14)
    with pytest.raises(DataError, match="at least one row"):
        stack.refit(stack.collect(x, np.zeros(50)))
    assert np.isfinite(stack.refit(stack.collect(x[:0]), Gamma(2.0, 1.0)).rate).all()


def test_objective_is_the_sum_of_weighted_log_probs(rng):
    x, w = rng.poisson(4.0, (50, 2)).astype(float), rng.random((50, 5))
    x[rng.random(x.shape) < 0.2] = np.nan
    stack = Poisson(STACK)
    assert stack.objective(stack.collect(x, w)) == pytest.approx((w * stack.log_prob(x)).sum(), rel=1e-12)
    one, prior = Poisson([2.0, 5.0]), Gamma([2.0, 3.0], 1.0)
    wanted = w[:, 0] @ one.log_prob(x) + prior.log_density(one)
    assert one.objective(one.collect(x, w[:, 0]), prior) == pytest.approx(wanted, rel=1e-12)
    assert Poisson(0.0).objective(Poisson(0.0).collect([0, 0])) == 0.0


def test_the_weak_prior_leaves_a_lone_column_as_it_is(rng):
    x = rng.poisson(4.0, (50, 2)).astype(float)
    distribution = Poisson([1.0, 1.0])
    stats = distribution.collect(x)
    assert np.allclose(distribution.refit(stats, distribution.weak_prior(stats)).rate, x.mean(axis=0), rtol=1e-13)
    assert np.allclose(Poisson.fit(x, prior="weak").rate, x.mean(axis=0), rtol=1e-13)


def test_single_precision_comes_back():
    assert Poisson(3.0).log_prob(np.array([1, 2], np.float32)).dtype == np.float32
    assert Poisson(3.0).log_prob(np.array([1, 2], np.uint8)).dtype == np.float64


def test_a_first_look_skips_missing_values_and_never_gives_zero():
    assert Poisson.blank([[0, 2], [0, np.nan], [0, 4]]).rate.tolist() == [1.0, 3.0]
    assert Poisson.blank([[0, 2]], members=3).rate.shape == (3, 2)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Poisson(-1.0), DomainError, "must not be negative"),
        (lambda: Poisson([1.0, np.nan]), DomainError, "finite"),
        (lambda: Poisson(np.ones((2, 2, 2))), ShapeError, r"\(K, d\)"),
        (lambda: Poisson([]), ShapeError, r"\(0,\)"),
        (lambda: Poisson([1.0, 2.0]).log_prob([[1.0]]), ShapeError, r"\(n, 2\)"),
        (lambda: Poisson([1.0]).collect([1, 2], np.ones((2, 2))), ShapeError, "one axis"),
        (lambda: Poisson(STACK).collect(np.ones((2, 2)), np.ones((2, 3))), ShapeError, r"per member \(5\)"),
        (lambda: Poisson(STACK).collect(np.ones((2, 2)), labels=[0, 5]), ShapeError, "from -1 to 4"),
        (lambda: Poisson([1.0]).collect([1, 2], labels=[0, 0]), DomainError, "for a stack"),
        (lambda: Poisson([1.0]).refit(Poisson([1.0, 2.0]).collect([[1, 2]])), ShapeError, r"\(1,\), got \(2,\)"),
        (lambda: Counts(1.0, [1.0], [-1.0], 0.0), DomainError, "negative"),
        (lambda: Counts(1.0, [1.0], [1.0, 2.0], 0.0), ShapeError, "shapes"),
        (lambda: Poisson([1.0]).collect([1]) + Poisson([1.0, 2.0]).collect([[1, 2]]), ShapeError, "both"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()


# ------------------------------------------------------ functions that keep digits


def relative(got, exact) -> float:
    return abs(float((mp.mpf(float(got)) - exact) / exact))


@pytest.mark.slow
def test_special_functions_against_mpmath(rng):
    with mp.workdps(60):
        for _ in range(200):
            a = 10 ** rng.uniform(-6, 6)
            b = a * 10 ** rng.uniform(-3, 3) if rng.random() < 0.5 else a * (1 + 10 ** rng.uniform(-8, -1))
            A, B = mp.mpf(a), mp.mpf(b)
            assert relative(counts.deviance(a, b), A * mp.log(A / B) - A + B) <= 2e-15
            height = A * mp.log(A) - A - mp.loggamma(A + 1)
            assert abs(float(counts.log_poisson_peak(a) - height)) <= 2e-15 * abs(float(height)) + 3e-16
            assert relative(counts.log_minus_digamma(a), mp.log(A) - mp.digamma(A)) <= 4e-14
            excess = mp.loggamma(A + B) - mp.loggamma(A) - B * mp.log(A)
            assert abs(float(counts.gamma_excess(a, b) - excess)) <= 4e-15 * (1 + abs(float(excess)))
            rise = A + mp.loggamma(A) + (1 - A) * mp.digamma(A)
            assert abs(float(counts.gamma_entropy(a) - rise)) <= 4e-15 * (1 + abs(float(rise)))
            part = mp.loggamma(B) - mp.loggamma(A) - (B - A) * mp.digamma(A)
            assert abs(float(counts.gamma_divergence(b, a) - part)) <= 1e-14 * float(part) + 1e-16


def test_stirling_error_of_small_and_large_numbers():
    with mp.workdps(60):
        for z in (1.0, 1.5, 2.0, 9.99, 10.0, 10.01, 123.4, 1e6):
            Z = mp.mpf(z)
            exact = mp.loggamma(Z + 1) - (Z + mp.mpf(1) / 2) * mp.log(Z) + Z - mp.log(2 * mp.pi) / 2
            assert relative(counts.stirling_error(z), exact) <= 1e-15


def test_the_smallest_count_is_found_at_any_size():
    wanted = np.array([0.0, 1.0, 7.0, 12345.0, 2.0**40, np.inf])
    assert np.array_equal(smallest(lambda x: x >= wanted, np.full(6, 3.0)), wanted)


@pytest.mark.parametrize("distribution", [lk.Poisson, lk.NegativeBinomial])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows_are_scored_and_learned_as_dense_ones(distribution, kind):
    rng = np.random.default_rng(0)
    x = rng.poisson(rng.gamma(0.4, 3.0, (60, 9))).astype(float)
    x[:, 4], x[:, 5] = 0.0, rng.poisson(1e6, 60)  # nothing counted, and nothing 0
    w, labels = rng.random(60), rng.integers(-1, 5, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = distribution.fit(x, w, prior="weak")
        np.testing.assert_allclose(distribution.fit(kind(x), w, prior="weak").mean, one.mean, rtol=1e-12)
        stack = distribution.blank(x, 5)
        many = stack.refit(
            stack.collect(x, labels=labels), one.weak_prior(one.collect(x)) if distribution is lk.Poisson else None
        )
    for model in (one, many):
        dense, sparse = model.log_prob(x), model.log_prob(kind(x))
        np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-12)
    for how in ({"labels": labels}, {"weight": w}, {"weight": rng.random((60, 5))}):
        ours, theirs = many.collect(kind(x), **how), many.collect(x, **how)
        for name, part in theirs.field_values().items():
            np.testing.assert_allclose(getattr(ours, name), part, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("distribution", [lk.Poisson(np.full(3, 0.5)), lk.NegativeBinomial(np.full(3, 2.0), 0.5)])
def test_sparse_rows_that_are_no_counts(distribution):
    odd = sp.csr_array([[0.0, 1.5, 0.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(np.isneginf(distribution.log_prob(odd)), [True, False, True])
    np.testing.assert_allclose(distribution.log_prob(odd), distribution.log_prob(odd.toarray()))
    with pytest.raises(DataError, match=r"counts must not be negative, got -1.0 at row 2, column 0"):
        distribution.collect(odd)
    with pytest.raises(DataError, match=r"counts must be integers, got 1.5 at row 0, column 1"):
        type(distribution).fit(odd[:2])
    with pytest.raises(DataError, match="sparse rows must have no missing values"):
        distribution.log_prob(sp.csr_array([[np.nan, 0.0, 0.0]]))


def test_a_rate_of_zero_allows_no_stored_count():
    x = sp.csr_array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    for rates in ([0.0, 2.0], np.repeat([[0.0, 2.0]], 6, axis=0)):
        np.testing.assert_allclose(lk.Poisson(rates).log_prob(x), lk.Poisson(rates).log_prob(x.toarray()))


@pytest.mark.parametrize("distribution", [lk.Poisson, lk.NegativeBinomial])
def test_wide_sparse_rows_are_never_dense(distribution):
    rng = np.random.default_rng(0)
    n, d, m = 500, 40_000, 5000  # 160 MB, were they dense
    x = sp.coo_array((np.ones(m), (rng.integers(0, n, m), rng.integers(0, d, m))), shape=(n, d)).tocsr()
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = distribution.fit(x, prior="weak")
        assert np.isfinite(model.log_prob(x)).all()
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()
