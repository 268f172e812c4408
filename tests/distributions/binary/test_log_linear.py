"""Log-linear distributions: likelihood against SciPy, missing values by EM, at most 20 columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import likely as lk
from likely.distributions.binary import log_linear_fit
from likely.distributions.binary.log_linear_fit import all_log_cells
from likely.distributions.binary.sign_products import number_of_sets, places
from likely.numerics.walsh_hadamard import all_cells, cells_of


def ising(d, seed=0, size=0.3):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=number_of_sets(d, 2)) * size
    return b


def test_maximum_likelihood_agrees_with_a_general_optimizer():
    rng = np.random.default_rng(1)
    x = lk.distributions.LogLinear.normalized(ising(4, 1), 4).sample(200, rng)
    distribution = lk.distributions.LogLinear.blank(x)
    stats = distribution.collect(x)
    better = distribution.refit(stats)

    def loss(b):
        return -lk.distributions.LogLinear.normalized(np.concatenate([[0.0], b]), 4).objective(stats)

    found = minimize(loss, np.zeros(10), method="BFGS", options={"gtol": 1e-8})
    assert better.objective(stats) >= -found.fun - 1e-9
    assert np.abs(better.weights[1:] - found.x).max() <= 1e-4
    assert better.objective(stats) == pytest.approx(better.log_prob(x).sum(), rel=1e-12)


@pytest.mark.campaign
@pytest.mark.slow
def test_many_sets_go_without_a_matrix():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(1 << 11) * 50)
    distribution = lk.distributions.LogLinear.even(11, 6)  # 1,486 sets by Newton's method
    many = lk.distributions.LogLinear.even(11, 7)  # 1,816 without a matrix
    x = all_cells(11)
    for one in (distribution, many):
        stats = one.collect(x, p)
        assert np.abs(one.refit(stats).collect(x, one.refit(stats).probabilities).mean - stats.mean).max() <= 1e-7


def test_without_a_matrix_the_weights_are_those_of_newtons_method(monkeypatch):
    p = np.random.default_rng(2).dirichlet(np.ones(1 << 6))
    distribution = lk.distributions.LogLinear.even(6, 3)
    stats = distribution.collect(all_cells(6), p)
    want = distribution.refit(stats).weights
    monkeypatch.setattr(log_linear_fit, "NEWTON", 10)
    assert np.allclose(distribution.refit(stats).weights, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("members", [None, 2])
def test_missing_values_of_rows_without_weight_are_absent(members):
    distribution = lk.distributions.LogLinear.even(3, members=members)
    x = np.array([[1.0, 0.0, 1.0], [np.nan, 1.0, 0.0], [0.0, 0.0, np.nan]])
    assert distribution.collect(x, [1.0, 0.0, 0.0]).complete and distribution.collect(x, np.zeros(3)).complete
    assert not distribution.collect(x, [1.0, 0.0, 2.0]).complete
    assert (distribution.collect(x) * 0.0).complete and not (distribution.collect(x) * 2.0).complete
    if members:
        assert distribution.collect(x, labels=np.array([1, -1, -1])).complete
        assert distribution.collect(x, np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])).complete
        assert not distribution.collect(x, np.array([[1.0, 2.0], [0.0, 0.5], [0.0, 0.0]])).complete


def test_rows_with_missing_values_are_learned_by_em():
    rng = np.random.default_rng(3)
    truth = lk.distributions.LogLinear.normalized(ising(4, 3, 0.5), 4)
    x = truth.sample(4000, rng)
    x[rng.random(x.shape) < 0.2] = np.nan
    report = lk.fit(lk.distributions.LogLinear.blank(x), x, prior="weak", stop=lk.StoppingRule(200, 1e-9))
    assert report.converged and (np.diff(report.trace) >= -1e-9).all()
    assert truth.kl(report.model) <= 0.01
    assert report.model.log_prob(x).sum() == pytest.approx(report.model.objective(report.model.collect(x)), rel=1e-10)


def test_what_never_varies_is_reported():
    x = np.array([[0.0, 0], [1, 1], [1, 1]])
    distribution = lk.distributions.LogLinear.blank(x)
    with pytest.warns(lk.FitWarning, match="are constant"):
        distribution.refit(distribution.collect(x))
    calm = distribution.refit(distribution.collect(x), distribution.weak_prior(distribution.collect(x)))
    assert np.isfinite(calm.weights).all() and np.abs(calm.weights[1:]).max() < 5


def test_order_one_learns_each_column_from_what_it_shows():
    rng = np.random.default_rng(6)
    x = (rng.random((200, 30)) < 0.3).astype(float)
    x[rng.random(x.shape) < 0.3] = np.nan
    distribution = lk.distributions.LogLinear.fit(x, order=1)
    assert np.allclose(distribution.mean, np.nanmean(x, axis=0), atol=1e-12)
    assert distribution.objective(distribution.collect(x)) == pytest.approx(distribution.log_prob(x).sum(), rel=1e-12)


def test_order_one_is_exact_for_any_number_of_columns():
    rng = np.random.default_rng(8)
    x = (rng.random((60, 300)) < 0.4).astype(float)
    distribution = lk.distributions.LogLinear.fit(x, prior="weak", order=1)
    assert distribution.mode.tolist() == (distribution.mean > 0.5).tolist()
    broken = x.copy()
    broken[:, ::7] = np.nan
    want = lk.Bernoulli(distribution.mean).log_prob(broken)
    assert np.abs(distribution.log_prob(broken) - want).max() <= 1e-10


def test_a_distribution_that_is_not_normalized_is_refused():
    with pytest.raises(lk.DomainError, match="normalized"):
        lk.distributions.LogLinear([0.0, 0.1, 0.2, 0.3], 2)
    with pytest.raises(lk.ShapeError, match="one for each set"):
        lk.distributions.LogLinear.normalized([0.0, 0.1], 2)


def test_divergence_beyond_all_cells():
    one, two = lk.distributions.LogLinear.even(40, 1), lk.distributions.LogLinear.fit(np.eye(40), prior="weak", order=1)
    assert one.kl(one) == 0 and one.entropy() == pytest.approx(40 * np.log(2.0))
    want = sum(0.5 * np.log(0.5 / p) + 0.5 * np.log(0.5 / (1 - p)) for p in two.mean)
    assert one.kl(two) == pytest.approx(want, rel=1e-12)
    with pytest.raises(lk.ShapeError, match="both distributions must have 3 columns"):
        lk.distributions.LogLinear.even(3).kl(lk.distributions.LogLinear.even(4))


@pytest.mark.parametrize("order", [1, 2])
def test_cells_of_pairs_are_those_of_the_transform(order):
    b = np.random.default_rng(4).normal(size=number_of_sets(11, order))
    full = np.zeros(1 << 11)
    full[places(11, order)] = b
    assert np.allclose(all_log_cells(b, 11, order), cells_of(full), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_pairs_of_very_many_columns_are_refused_with_a_way_out():
    x = np.eye(21)
    for make in (
        lambda: lk.distributions.LogLinear.blank(x), lambda: lk.distributions.LogLinear.even(21, 3),
        lambda: lk.distributions.LogLinear.normalized(ising(21), 21),
        lambda: lk.distributions.LogLinear(ising(21), 21), lambda: lk.distributions.WalshDensity(2, log=True).fit(x),
    ):  # fmt: skip
        with pytest.raises(lk.DomainError, match=r"at most 20 columns .*of 21 columns: use ChowLiuTreeDensity"):
            make()
    lk.distributions.LogLinear.fit(x[:, :20], prior="weak")


@pytest.mark.parametrize(
    "make", [lk.distributions.LogLinear.normalized, lambda b, d: lk.distributions.LogLinear.normalized([b, -b], d)]
)
def test_variance_and_mode_are_those_of_all_cells(make):
    distribution = make(ising(5, 7, 0.6), 5)
    cells, p = all_cells(5), np.atleast_2d(distribution.probabilities)
    assert np.allclose(np.atleast_2d(distribution.variance), p @ cells**2 - (p @ cells) ** 2)
    assert np.array_equal(np.atleast_2d(distribution.mode), cells[p.argmax(axis=1)])
