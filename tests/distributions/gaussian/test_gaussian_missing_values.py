"""Rows with gaps: three routes to one density, an E-step against brute force, and an EM that only climbs."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from likely import FitWarning, Gaussian, StoppingRule, fit
from likely.core import Blocks, iterate
from likely.distributions.gaussian.missing_patterns import Patterns, observed
from likely.distributions.gaussian.moments import Moments


def spd(rng, d, K=None, spread=1.0):
    a = rng.standard_normal((*(() if K is None else (K,)), d, d + 1)) * np.exp(spread * rng.standard_normal((d, 1)))
    return a @ np.swapaxes(a, -1, -2)


def with_gaps(rng, x, share=0.4):
    x = x.copy()
    x[rng.random(x.shape) < share] = np.nan
    return x


def every_pattern(rng, d):
    """A few rows of each of the 2^d patterns."""
    masks = np.array(list(itertools.product([False, True], repeat=d)))
    x = rng.standard_normal((3 * len(masks), d)) * 2
    x[~np.repeat(masks, 3, axis=0)] = np.nan
    return rng.permutation(x)


def by_marginals(g, x):
    """Each row's density from the marginal of what it shows: the definition."""
    out = np.zeros(len(x))
    for i, row in enumerate(x):
        seen = np.flatnonzero(~np.isnan(row))
        if len(seen):
            out[i] = g.marginal(seen).log_prob(row[None, seen])[0]
    return out


# ----------------------------------------------------------------- the density


@pytest.mark.parametrize("K", [1, 2, 4, 9])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_three_routes_agree(rng, K, d):
    """Small systems of the gap's size, factors of what was seen, explicit marginals."""
    g = Gaussian(rng.standard_normal((K, d)), spd(rng, d, K))
    x = every_pattern(rng, d)
    want = np.stack([by_marginals(g.member(k), x) for k in range(K)], axis=1)
    gaps = np.isnan(x).any(axis=1)
    assert np.abs(g.log_prob(x) - want).max() <= 1e-9
    for quick in (True, False):
        q, logdet, seen = g.form.incomplete(x[gaps], quick=quick)
        found = -0.5 * (q + logdet + seen[:, None] * np.log(2 * np.pi))
        assert np.abs(found - want[gaps]).max() <= 1e-9


@pytest.mark.parametrize("kind", ["diagonal", "spherical"])
@pytest.mark.parametrize("tied", [True, False])
def test_independent_columns_leave_missing_values_out(rng, kind, tied):
    shape = {"diagonal": (4,), "spherical": ()}[kind]
    spread = 0.1 + rng.random(shape if tied else (5, *shape))
    g = Gaussian(rng.standard_normal((5, 4)), spread, kind=kind)
    x = every_pattern(rng, 4)
    want = np.stack([by_marginals(g.member(k), x) for k in range(5)], axis=1)
    assert np.abs(g.log_prob(x) - want).max() <= 1e-12 * np.abs(want).max()


def test_tied_stacks_with_missing_values(rng):
    g = Gaussian(rng.standard_normal((6, 4)), spd(rng, 4))
    x = every_pattern(rng, 4)
    want = np.stack([by_marginals(g.member(k), x) for k in range(6)], axis=1)
    assert np.abs(g.log_prob(x) - want).max() <= 1e-9


def test_far_rows_take_the_exact_route(rng):
    g = Gaussian(rng.standard_normal((5, 3)), spd(rng, 3, 5))
    x = rng.standard_normal((40, 3)) * 10.0 ** rng.uniform(0, 9, (40, 1))
    x[:, 0] = np.where(np.arange(40) % 2, np.nan, x[:, 0])
    want = np.stack([by_marginals(g.member(k), x) for k in range(5)], axis=1)
    assert (np.abs(g.log_prob(x) / want - 1)).max() <= 1e-9


@pytest.mark.parametrize("d", [2, 3])
def test_narrow_members_among_wide_ones_count_each_direction_once(rng, d):
    """Directions of small variance are left out of the product and added as squares: in marginals, too."""
    root = rng.normal(size=(5, d, d))
    root[0] *= 1e-4
    stack = Gaussian(rng.normal(size=(5, d)), root @ root.transpose(0, 2, 1))
    x = stack.mean[0] + 1e-4 * rng.normal(size=(20, d))
    x[:, -1] = np.nan
    want = np.stack([stack.member(k).marginal(list(range(d - 1))).log_prob(x[:, :-1]) for k in range(5)], axis=1)
    np.testing.assert_allclose(stack.log_prob(x), want, rtol=1e-9, atol=1e-8)


def test_more_than_64_columns(rng):
    """Patterns of many columns are told apart by bytes, not by one integer."""
    d = 70
    g = Gaussian(rng.standard_normal(d), spd(rng, d, spread=0.1))
    x = with_gaps(rng, g.sample(12, rng), 0.5)
    np.testing.assert_allclose(g.log_prob(x), by_marginals(g, x), rtol=1e-9)


@pytest.mark.parametrize("d", [3, 64, 65, 130])
def test_patterns_are_sorted_and_complete(rng, d):
    mask = rng.random((60, d)) < 0.5
    mask[30:] = mask[:30]
    p = Patterns.of(mask)
    assert sorted(p.order) == list(range(60)) and p.starts[-1] == 60
    assert np.array_equal(np.repeat(p.seen, np.diff(p.starts), axis=0), mask[p.order])
    assert len({row.tobytes() for row in p.seen}) == len(p.seen) == len({row.tobytes() for row in mask})
    assert np.array_equal(p.counts(), mask[p.order].sum(axis=1))
    few, rest = p.split(p.seen[:, 0])
    assert sorted([*few.order, *rest.order]) == list(range(60)) and mask[few.order, 0].all()


# ------------------------------------------------------------------- the E-step


def brute_force(g, x, w):
    """Expected first and second moments row by row, by dense conditioning."""
    d = g.dim
    first, second, entropy = np.zeros(d), np.zeros((d, d)), 0.0
    for row, weight in zip(x, w, strict=True):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        if not len(o):
            continue
        z, c = row.copy(), np.zeros((d, d))
        if len(m):
            rest = g.condition(dict(zip(o.tolist(), row[o], strict=True)))
            z[m], c[np.ix_(m, m)] = rest.mean, rest.covariance
            entropy += weight * rest.entropy()
        first += weight * z
        second += weight * (np.outer(z, z) + c)
    total = w[~np.isnan(x).all(axis=1)].sum()
    return total, first / total, second - np.outer(first, first) / total, entropy


@pytest.mark.parametrize("d", [1, 2, 4])
def test_expected_moments_are_those_of_brute_force(rng, d):
    g = Gaussian(rng.standard_normal(d), spd(rng, d))
    x, w = every_pattern(rng, d), None
    w = rng.random(len(x))
    stats = g.collect(x, w)
    total, mean, scatter, entropy = brute_force(g, x, w)
    assert isinstance(stats, Moments) and stats.weight == pytest.approx(total, rel=1e-13)
    np.testing.assert_allclose(stats.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(stats.scatter, scatter, rtol=1e-9, atol=1e-9 * np.abs(scatter).max())
    assert stats.entropy == pytest.approx(entropy, rel=1e-10, abs=1e-12)
    assert stats.complete is (d == 1)  # in one column a gap is a row that says nothing


def test_stacks_expect_member_by_member(rng):
    g = Gaussian(rng.standard_normal((3, 3)), spd(rng, 3, 3))
    x = every_pattern(rng, 3)
    w = rng.random((len(x), 3))
    stats = g.collect(x, w)
    for k in range(3):
        _, mean, scatter, entropy = brute_force(g.member(k), x, w[:, k])
        np.testing.assert_allclose(stats.mean[k], mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(stats.scatter[k], scatter, rtol=1e-9, atol=1e-9 * np.abs(scatter).max())
        assert stats.entropy[k] == pytest.approx(entropy, rel=1e-10)


def test_expected_moments_keep_their_digits_at_an_offset(rng):
    """1e8 standard deviations from zero the E-step is the one at zero, to what the rows themselves hold."""
    g = Gaussian(np.zeros(3), spd(rng, 3, spread=0.1))
    x = np.round(with_gaps(rng, g.sample(200, rng), 0.3), 6)
    near, far = g.collect(x), Gaussian(g.mean + 2.0**27, g.covariance).collect(x + 2.0**27)
    grain = 2.0**-26  # what 2²⁷ + x rounds x to
    np.testing.assert_allclose(far.scatter, near.scatter, atol=4 * grain * np.abs(near.scatter).max())
    exact = Gaussian(g.mean, g.covariance).collect((x + 2.0**27) - 2.0**27)
    np.testing.assert_allclose(far.shift, exact.shift, atol=1e-12)
    np.testing.assert_allclose(far.scatter, exact.scatter, rtol=1e-12)
    assert far.entropy == pytest.approx(exact.entropy, rel=1e-13)


# ------------------------------------------------------------------------- EM


def thin(n, seed):
    """Six columns that two causes move together, with little noise: most of what is to be learned is correlation."""
    rng = np.random.default_rng(seed)
    causes = np.random.default_rng(7).normal(size=(2, 6))
    return rng.normal(size=(n, 2)) @ causes + 0.1 * rng.normal(size=(n, 6)), rng


@pytest.mark.parametrize("n", [50, 100, 200, 1000])
def test_the_weak_prior_costs_nothing_where_entries_are_missing(n):
    """Of 0.3 nats per row by maximum likelihood, a prior made of rows that a blank model had filled took 0.6."""
    x, rng = thin(n, 0)
    gappy, new = with_gaps(rng, x, 0.15), thin(2000, 99)[0]
    weak, plain = (fit(Gaussian.blank(gappy), gappy, prior=prior).model for prior in ("weak", None))
    assert weak.log_prob(new).mean() > plain.log_prob(new).mean() - 0.02


def test_the_weak_prior_keeps_few_rows_with_missing_values_regular():
    """Where maximum likelihood fails altogether: entries are too few for the correlations."""
    x, rng = thin(20, 1)
    gappy, new = with_gaps(rng, x, 0.4), thin(2000, 99)[0]
    assert fit(Gaussian.blank(gappy), gappy, prior="weak").model.log_prob(new).mean() > -12


def problems(count, seed=0):
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        d, n = int(rng.integers(2, 6)), int(rng.integers(12, 50))
        x = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * 10.0 ** rng.uniform(
            -3, 3, d
        ) + rng.standard_normal(d)
        yield with_gaps(rng, x, rng.uniform(0.05, 0.5))


def climbs(x, steps, prior=None):
    start = Gaussian.blank(x)
    seen = [step.objective for step, _ in zip(iterate(start, x, prior=prior), range(steps), strict=False)]
    falls = np.diff(seen) / np.maximum(np.abs(seen[1:]), 1.0)
    assert np.isfinite(seen).all()
    return float(falls.min())


def lowest(count, steps, prior, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return min(climbs(x, steps, prior) for x in problems(count, seed))


@pytest.mark.some_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("prior", [None, "weak"])
def test_em_only_climbs(prior):
    assert lowest(60, 12, prior) >= -1e-10


@pytest.mark.campaign
@pytest.mark.parametrize("prior", [None, "weak"])
def test_em_only_climbs_on_300_problems(prior):
    worst = lowest(300, 25, prior, seed=1)
    print(f"largest relative fall {-worst:.1e}")
    assert worst >= -1e-10


@pytest.mark.campaign
@pytest.mark.parametrize("prior", [None, "weak"])
def test_em_only_climbs_on_10_000_problems(prior):
    worst = lowest(10_000, 25, prior, seed=2)
    print(f"largest relative fall {-worst:.1e}")
    assert worst >= -1e-10


@pytest.mark.slow
@pytest.mark.parametrize("i", range(3))
def test_no_optimizer_finds_more(i):
    """The summit of EM against a quasi-Newton search over mean and Cholesky factor, from the same start."""
    rng = np.random.default_rng(i)
    d = 2 + i % 2
    x = with_gaps(rng, rng.standard_normal((60, d)) @ rng.standard_normal((d, d)), 0.25)
    report = fit(Gaussian.blank(x), x, stop=StoppingRule(5000, 1e-12)).require_converged()
    low = np.tril_indices(d)

    def loss(theta):
        root = np.zeros((d, d))
        root[low] = theta[d:]
        root[np.diag_indices(d)] = np.exp(np.diagonal(root))
        return -Gaussian(theta[:d], root @ root.T).log_prob(x).sum()

    start = np.concatenate([np.nanmean(x, axis=0), np.diag(np.log(np.nanstd(x, axis=0)))[low]])
    found = -minimize(loss, start, method="BFGS", options={"gtol": 1e-6}).fun
    assert report.objective >= found - 1e-7 * abs(found)


@pytest.mark.slow
def test_missing_values_at_random_do_not_bias(rng):
    """Rows that hide column 1 when column 0 is large: EM is right where leaving rows out is not."""
    truth = Gaussian([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])
    x = truth.sample(20_000, rng)
    x[x[:, 0] > 0, 1] = np.nan
    fitted = Gaussian.fit(x)
    assert truth.kl(fitted) < 2e-3
    assert truth.kl(Gaussian.fit(x[~np.isnan(x).any(axis=1)])) > 0.5


def test_the_order_of_rows_and_columns_does_not_matter(rng):
    g = Gaussian(rng.standard_normal(4), spd(rng, 4))
    x = with_gaps(rng, g.sample(50, rng))
    rows, columns = rng.permutation(50), rng.permutation(4)
    a, b = g.collect(x), g.marginal(columns).collect(x[rows][:, columns])
    np.testing.assert_allclose(b.scatter, a.scatter[np.ix_(columns, columns)], rtol=1e-11, atol=1e-11)
    assert b.entropy == pytest.approx(a.entropy, rel=1e-12)


def test_a_missing_value_in_every_row_is_enough(rng):
    """No complete row at all: pairs of columns still tell their covariances."""
    truth = Gaussian([1.0, 2.0, 3.0], spd(rng, 3, spread=0.1))
    x = truth.sample(9000, rng)
    x[np.arange(9000), np.arange(9000) % 3] = np.nan
    fitted = Gaussian.fit(x)
    assert truth.kl(fitted) < 0.01
    assert (observed(x).sum(axis=1) == 2).all()


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_weights_repetitions_and_chunks_agree_after_em(rng, offset):
    """Promises 2 and 3 for an iterated fit: 1e-9, in units of the spread, also 1e8 of them away."""
    g = Gaussian([0.0, 0.0, 0.0], spd(rng, 3, spread=0.1))
    x, times = with_gaps(rng, g.sample(150, rng), 0.25) + offset, rng.integers(0, 4, 150)
    start = Gaussian.blank(x)
    stop = StoppingRule(200, 1e-9)
    weighted = fit(start, Blocks.of(x, times), stop=stop)
    repeated = fit(start, np.repeat(x, times, axis=0), stop=stop)
    chunked = fit(start, Blocks.of(x, times, rows=7, blocks=2), stop=stop)
    unit = np.sqrt(weighted.model.variance)
    for other in (repeated, chunked):
        assert len(other.trace) == len(weighted.trace)
        assert np.abs(other.objective / weighted.objective - 1) <= 1e-9
        assert np.abs((other.model.covariance - weighted.model.covariance) / np.outer(unit, unit)).max() <= 1e-9
        grain = np.spacing(offset) * 2
        assert (np.abs(other.model.mean - weighted.model.mean) <= 1e-9 * unit + grain).all()
