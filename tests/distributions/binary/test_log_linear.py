"""Log-linear distributions: likelihood against SciPy, missing values by EM, log Z beyond enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import likely as lk
from likely.distributions.binary import log_linear, log_linear_fit
from likely.distributions.binary.annealed_importance_sampling import TEMPERATURES, temperatures
from likely.distributions.binary.log_linear_fit import EXACT, all_log_cells, exact_log_z
from likely.distributions.binary.log_linear_pairs import forest, learned_pairs
from likely.distributions.binary.log_linear_update import chains_of, reweighted
from likely.distributions.binary.sign_products import number_of_sets, places
from likely.numerics.walsh_hadamard import all_cells, cells_of


def ising(d, seed=0, size=0.3):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=number_of_sets(d, 2)) * size
    return b


def test_maximum_likelihood_agrees_with_a_general_optimizer():
    rng = np.random.default_rng(1)
    x = lk.LogLinear.normalized(ising(4, 1), 4).sample(200, rng)
    distribution = lk.LogLinear.blank(x)
    stats = distribution.collect(x)
    better = distribution.refit(stats)

    def loss(b):
        return -lk.LogLinear.normalized(np.concatenate([[0.0], b]), 4).objective(stats)

    found = minimize(loss, np.zeros(10), method="BFGS", options={"gtol": 1e-8})
    assert better.objective(stats) >= -found.fun - 1e-9
    assert np.abs(better.weights[1:] - found.x).max() <= 1e-4
    assert better.objective(stats) == pytest.approx(better.log_prob(x).sum(), rel=1e-12)


@pytest.mark.campaign
@pytest.mark.slow
def test_many_sets_go_without_a_matrix():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(1 << 11) * 50)
    distribution = lk.LogLinear.even(11, 6)  # 1,486 sets by Newton's method
    many = lk.LogLinear.even(11, 7)  # 1,816 without a matrix
    x = all_cells(11)
    for one in (distribution, many):
        stats = one.collect(x, p)
        assert np.abs(one.refit(stats).collect(x, one.refit(stats).probabilities).mean - stats.mean).max() <= 1e-7


def test_without_a_matrix_the_weights_are_those_of_newtons_method(monkeypatch):
    p = np.random.default_rng(2).dirichlet(np.ones(1 << 6))
    distribution = lk.LogLinear.even(6, 3)
    stats = distribution.collect(all_cells(6), p)
    want = distribution.refit(stats).weights
    monkeypatch.setattr(log_linear_fit, "NEWTON", 10)
    assert np.allclose(distribution.refit(stats).weights, want, rtol=0, atol=1e-6)


def test_rows_with_missing_values_are_learned_by_em():
    rng = np.random.default_rng(3)
    truth = lk.LogLinear.normalized(ising(4, 3, 0.5), 4)
    x = truth.sample(4000, rng)
    x[rng.random(x.shape) < 0.2] = np.nan
    report = lk.fit(lk.LogLinear.blank(x), x, prior="weak", stop=lk.Stop(200, 1e-9))
    assert report.converged and (np.diff(report.trace) >= -1e-9).all()
    assert truth.kl(report.model) <= 0.01
    assert report.model.log_prob(x).sum() == pytest.approx(report.model.objective(report.model.collect(x)), rel=1e-10)


def test_what_never_varies_is_reported():
    x = np.array([[0.0, 0], [1, 1], [1, 1]])
    distribution = lk.LogLinear.blank(x)
    with pytest.warns(lk.FitWarning, match="are constant"):
        distribution.refit(distribution.collect(x))
    calm = distribution.refit(distribution.collect(x), distribution.weak_prior(distribution.collect(x)))
    assert np.isfinite(calm.weights).all() and np.abs(calm.weights[1:]).max() < 5


@pytest.mark.slow
@pytest.mark.parametrize("strength", [1.0, 2.0])
def test_a_spin_glass_is_climbed_as_high_as_all_cells_allow(strength):
    """The way of many columns, forced on few: nearly as good on other rows as exact maximum likelihood, or better."""
    d, n = 12, 1500
    truth = lk.LogLinear.normalized(ising(d, 4, strength / np.sqrt(d)), d)
    x = truth.sample(2 * n, np.random.default_rng(4))
    exact = lk.LogLinear.fit(x[:n], prior="weak")
    stats = exact.collect(x[:n])
    b, error, *_ = learned_pairs(exact.weak_prior(stats).update(stats).stats.mean, n, d)
    assert abs(-b[0] - exact_log_z(b, d, 2)) <= 4 * error + 1e-9 < 0.3
    climbed = lk.LogLinear.normalized(b, d)
    assert climbed.log_prob(x[n:]).mean() > exact.log_prob(x[n:]).mean() - 0.1
    assert truth.kl(climbed) < 0.15


def test_a_forest_is_the_distribution_of_its_pairs():
    d, rng = 9, np.random.default_rng(5)
    x = np.cumsum(rng.random((400, d)) < 0.2, axis=1) % 2.0
    mean = lk.LogLinear.blank(x).collect(x).mean
    found = forest(mean, 400.0, d)
    assert -found.weights[0] == pytest.approx(exact_log_z(found.weights, d, 2), abs=1e-9)
    assert np.count_nonzero(found.weights[d + 1 :]) == d - 1


def test_order_one_learns_each_column_from_what_it_shows():
    rng = np.random.default_rng(6)
    x = (rng.random((200, 30)) < 0.3).astype(float)
    x[rng.random(x.shape) < 0.3] = np.nan
    distribution = lk.LogLinear.fit(x, order=1)
    assert np.allclose(distribution.mean, np.nanmean(x, axis=0), atol=1e-12)
    assert distribution.objective(distribution.collect(x)) == pytest.approx(distribution.log_prob(x).sum(), rel=1e-12)


@pytest.mark.slow
@pytest.mark.campaign
def test_more_columns_than_cells_can_be_summed_over():
    rng = np.random.default_rng(7)
    x = (rng.random((400, 40)) < 0.3).astype(float)
    x[:, 1] = np.where(rng.random(400) < 0.8, x[:, 0], x[:, 1])
    distribution = lk.LogLinear.blank(x)
    assert distribution.dim > EXACT
    stats = distribution.collect(x)
    better = distribution.refit(stats, distribution.weak_prior(stats))
    assert 0 <= better.error < 0.2
    again = distribution.refit(stats, distribution.weak_prior(stats))
    assert again.weights.tobytes() == better.weights.tobytes()  # the same statistics give the same bits
    new = (rng.random((400, 40)) < 0.3).astype(float)
    new[:, 1] = np.where(rng.random(400) < 0.8, new[:, 0], new[:, 1])
    alone = lk.Bernoulli.fit(x, prior="weak")
    assert better.log_prob(new).mean() > alone.log_prob(new).mean()  # the copy is found, at the price of 780 couplings
    assert np.abs(better.sample(2000, rng).mean(axis=0) - x.mean(axis=0)).max() <= 0.1
    with pytest.raises(lk.DataError, match="missing values are integrated out in at most 20 columns"):
        better.log_prob(np.full((1, 40), np.nan))
    with pytest.raises(lk.DomainError, match="order is 1 or 2"):
        lk.LogLinear.blank(x, order=3)
    with pytest.raises(lk.DataError, match=r"constant.*prior"):
        distribution.refit(distribution.collect(np.ones((3, 40))))


def test_order_one_is_exact_for_any_number_of_columns():
    rng = np.random.default_rng(8)
    x = (rng.random((60, 300)) < 0.4).astype(float)
    distribution = lk.LogLinear.fit(x, prior="weak", order=1)
    assert distribution.error == 0
    broken = x.copy()
    broken[:, ::7] = np.nan
    want = lk.Bernoulli(distribution.mean).log_prob(broken)
    assert np.abs(distribution.log_prob(broken) - want).max() <= 1e-10


def test_a_distribution_that_is_not_normalized_is_refused():
    with pytest.raises(lk.DomainError, match="normalized"):
        lk.LogLinear([0.0, 0.1, 0.2, 0.3], 2)
    with pytest.raises(lk.ShapeError, match="one for each set"):
        lk.LogLinear.normalized([0.0, 0.1], 2)


def held_out(x):
    """Log-likelihood a row of pairs and of independent columns, on the second half of the rows."""
    half = len(x) // 2
    pairs, alone = lk.LogLinear.fit(x[:half], prior="weak"), lk.Bernoulli.fit(x[:half], prior="weak")
    return pairs, float(pairs.log_prob(x[half:]).mean()), float(alone.log_prob(x[half:]).mean())


@pytest.mark.slow
def test_two_prototypes_beyond_all_cells():
    rng = np.random.default_rng(0)
    p = np.where(rng.random((2, 21)) > 0.5, 0.95, 0.05)
    x = (rng.random((4000, 21)) < p[rng.integers(0, 2, 4000)]).astype(float)
    truth = np.logaddexp(*(lk.Bernoulli(one).log_prob(x[2000:]) for one in p)).mean() - np.log(2.0)
    distribution, found, alone = held_out(x)
    assert found > alone + 3 and found > truth - 0.5 and found < truth + 0.05 + 3 * distribution.error


@pytest.mark.slow
def test_a_chain_of_thirty_is_a_forest():
    rng = np.random.default_rng(1)
    same = rng.random((4000, 30)) < 0.9
    x = np.cumsum(~same, axis=1) % 2.0
    x = np.where(rng.random((4000, 1)) < 0.5, x, 1 - x)
    distribution, found, alone = held_out(x)
    truth = -np.log(2.0) + 29 * (0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert distribution.error < 0.1 and abs(found - truth) <= 0.3 and found > alone + 8


@pytest.mark.slow
@pytest.mark.campaign
def test_a_spin_glass_is_found_and_its_constant_is_honest():
    rng = np.random.default_rng(2)
    truth = lk.LogLinear.normalized(ising(24, 2, 0.15), 24)
    x = truth.sample(6000, rng)
    distribution, found, alone = held_out(x)
    best = float(truth.log_prob(x[3000:]).mean())
    assert found > best - 0.2 > alone + 0.5 and found < best + 3 * (distribution.error + truth.error) + 0.05


@pytest.mark.slow
def test_left_out_rows_would_choose_the_width_of_the_prior():
    """Noise is drawn to 0, and a strong coupling among it is not."""
    rng = np.random.default_rng(9)
    x = (rng.random((300, 30)) < 0.5).astype(float)
    x[:, 1] = np.where(rng.random(300) < 0.9, x[:, 0], 1 - x[:, 0])
    distribution = lk.LogLinear.fit(x, prior="weak")
    pairs = np.abs(distribution.weights[31:])
    assert pairs[0] > 0.8 and pairs[1:].mean() < 0.02  # noise alone would show 0.8/√300 = 0.046


@pytest.mark.slow
@pytest.mark.campaign
def test_few_rows_of_many_columns_do_not_invent_pairs():
    rng = np.random.default_rng(3)
    x = np.concatenate([np.eye(4)[rng.choice(4, 106, p=rng.dirichlet(np.full(4, 3.0)))] for _ in range(20)], axis=1)
    _, found, alone = held_out(x)
    assert found > alone - 2.0


def test_divergence_beyond_all_cells():
    one, two = lk.LogLinear.even(40, 1), lk.LogLinear.fit(np.eye(40), prior="weak", order=1)
    assert one.kl(one) == 0 and one.entropy() == pytest.approx(40 * np.log(2.0))
    want = sum(0.5 * np.log(0.5 / p) + 0.5 * np.log(0.5 / (1 - p)) for p in two.mean)
    assert one.kl(two) == pytest.approx(want, rel=1e-12)
    with pytest.raises(lk.DomainError, match="at most 20 columns"):
        lk.LogLinear.even(40).kl(lk.LogLinear.even(40))
    with pytest.raises(lk.ShapeError, match="both distributions must have 3 columns"):
        lk.LogLinear.even(3).kl(lk.LogLinear.even(4))


@pytest.mark.parametrize("order", [1, 2])
def test_cells_of_pairs_are_those_of_the_transform(order):
    b = np.random.default_rng(4).normal(size=number_of_sets(11, order))
    full = np.zeros(1 << 11)
    full[places(11, order)] = b
    assert np.allclose(all_log_cells(b, 11, order), cells_of(full), rtol=0, atol=1e-12)


def left_out(d, n, fold):
    """The distribution of all rows with its statistics, and those of all rows but some."""
    x = lk.LogLinear.normalized(ising(d, 5, 0.25), d).sample(n, np.random.default_rng(6))
    even = lk.LogLinear.even(d)
    everything, rest = even.collect(x), even.collect(x[fold:])
    prior = even.weak_prior(everything)
    return x[:fold], even.refit(everything, prior), prior.update(rest).stats, prior.update(everything).stats


def test_a_distribution_moved_a_little_is_the_one_that_is_learned_anew():
    x, distribution, rest, everything = left_out(10, 300, 30)
    near, anew = distribution.refit_from(rest, everything).log_prob(x), distribution.refit(rest).log_prob(x)
    moved = np.abs(distribution.log_prob(x) - anew).mean()
    assert moved > 0.1 and np.abs(near - anew).mean() <= 0.02 * moved


@pytest.mark.slow
def test_chains_that_follow_move_a_distribution_of_few_columns(monkeypatch):
    monkeypatch.setattr(log_linear, "EXACT", 5)
    x, distribution, rest, everything = left_out(10, 400, 80)
    near, anew = distribution.nearby(rest, everything), distribution.refit(rest)
    moved = np.abs(distribution.log_prob(x) - anew.log_prob(x)).mean()
    assert np.abs(near.log_prob(x) - anew.log_prob(x)).mean() <= 0.35 * moved
    assert near.weights[0] == pytest.approx(-exact_log_z(near.weights, 10, 2), abs=0.015)


def test_chains_follow_a_large_change_in_parts():
    chains, b = chains_of(np.zeros(number_of_sets(8, 2)), 8), ising(8, 5, 0.3)
    assert chains.follow(b[1:])[0] < 1.0
    grown = reweighted(chains_of(np.zeros(number_of_sets(8, 2)), 8), b[1:])
    assert grown == pytest.approx(exact_log_z(b, 8, 2) - 8 * np.log(2.0), abs=0.1)


@pytest.mark.campaign
@pytest.mark.slow
def test_chains_that_follow_move_a_distribution_of_many_columns():
    x, distribution, rest, everything = left_out(24, 400, 80)
    near, anew = distribution.refit_from(rest, everything), distribution.refit(rest)
    moved = np.abs(distribution.log_prob(x) - anew.log_prob(x)).mean()
    assert np.abs(near.log_prob(x) - anew.log_prob(x)).mean() <= 0.5 * moved
    assert near.weights[0] == pytest.approx(-exact_log_z(near.weights, 24, 2), abs=0.1)


@pytest.mark.campaign
@pytest.mark.slow
def test_a_distribution_whose_climb_is_forgotten_is_learned_anew():
    _, distribution, rest, everything = left_out(21, 100, 10)
    other = distribution.replace()
    assert np.array_equal(other.refit_from(rest, everything).weights, distribution.refit(rest).weights)


def test_weak_couplings_need_few_temperatures():
    d = 30
    b = np.zeros(number_of_sets(d, 2))
    assert temperatures(b, d) == 10
    b[d + 1 :] = 1.5 / d  # all alike: weak one by one, but together they make two hills
    assert temperatures(b, d) == TEMPERATURES


@pytest.mark.parametrize("make", [lk.LogLinear.normalized, lambda b, d: lk.LogLinear.normalized([b, -b], d)])
def test_variance_and_mode_are_those_of_all_cells(make):
    distribution = make(ising(5, 7, 0.6), 5)
    cells, p = all_cells(5), np.atleast_2d(distribution.probabilities)
    assert np.allclose(np.atleast_2d(distribution.variance), p @ cells**2 - (p @ cells) ** 2)
    assert np.array_equal(np.atleast_2d(distribution.mode), cells[p.argmax(axis=1)])


def test_the_mode_of_very_many_columns_is_refused_with_a_way_out():
    distribution = lk.LogLinear.even(21)
    assert not hasattr(distribution, "mode")
    with pytest.raises(AttributeError, match=r"all cells of at most 20 columns, got 21.*log_prob"):
        _ = distribution.mode
    assert lk.LogLinear.normalized([0.0, 1.0, -1.0] + [0.5] * 20, 22, 1).mode.tolist() == [1.0, 0.0] + [1.0] * 20


@pytest.mark.slow
def test_information_of_many_columns_comes_by_draws():
    d = 21
    b = ising(d, 8, 0.1)
    p, q = lk.LogLinear.normalized(b, d), lk.LogLinear.normalized(0.5 * b, d)
    logs = all_log_cells(p.weights, d, 2)
    other = all_log_cells(q.weights, d, 2)
    logs, other = (
        logs - exact_log_z(p.weights, d, 2) - p.weights[0],
        other - exact_log_z(q.weights, d, 2) - q.weights[0],
    )
    want = float(np.exp(logs) @ (logs - other))
    middle = np.logaddexp(logs, other) - np.log(2)
    js = 0.5 * float(np.exp(logs) @ (logs - middle) + np.exp(other) @ (other - middle))
    rng = np.random.default_rng(0)
    for found, exact in (
        (lk.kl_divergence(p, q, n=4000, rng=rng), want), (lk.js_divergence(p, q, n=4000, rng=rng), js),
        (lk.cross_entropy(p, q, n=4000, rng=rng), -float(np.exp(logs) @ other)),
        (lk.entropy(p, n=4000, rng=rng), -float(np.exp(logs) @ logs)),
    ):  # fmt: skip
        assert found.error > 0 and abs(found.value - exact) <= 4 * found.error + 0.05
    with pytest.raises(lk.DomainError, match=r"lk\.entropy\(distribution\)"):
        p.entropy()
    with pytest.raises(lk.DomainError, match=r"lk\.kl_divergence\(distribution, other\)"):
        p.kl(q)
