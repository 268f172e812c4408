"""A Gaussian with factors is the Gaussian that it equals, learns its own maximum, and knows its hidden factors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from likely import DataError, DomainError, FitWarning, Gaussian, ShapeError, StoppingRule, fit
from likely.core.blocks import Blocks
from likely.core.em_loop import iterate
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.mixture.mixture import Mixture


def some_distribution(rng, d, q, kind="spherical", members=None, noise=0.3):
    lead = () if members is None else (members,)
    variances = noise * (1 + rng.random(lead if kind == "spherical" else (*lead, d)))
    return FactorGaussian(rng.normal(size=(*lead, d)), rng.normal(size=(*lead, d, q)), variances, kind=kind)


def rows_of(rng, n, d, q, noise=0.5):
    return rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + noise * rng.normal(size=(n, d)) + rng.normal(size=d)


# ---------------------------------------------------------------------- density


@pytest.mark.parametrize("kind", ["spherical", "diagonal"])
@pytest.mark.parametrize(("d", "q"), [(1, 0), (1, 1), (3, 2), (4, 4), (20, 0), (20, 3), (20, 19), (200, 5)])
def test_density_is_that_of_the_covariance_written_out(rng, kind, d, q):
    f = some_distribution(rng, d, q, kind)
    x = f.sample(50, rng)
    want = multivariate_normal(f.mean, f.loadings @ f.loadings.T + np.diag(f.column_noise)).logpdf(x)
    np.testing.assert_allclose(f.log_prob(x), want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(f.gaussian.log_prob(x), want, rtol=1e-9, atol=1e-9)
    assert f.entropy() == pytest.approx(f.gaussian.entropy(), rel=1e-10)


def test_stacks_are_their_members(rng):
    f = some_distribution(rng, 30, 3, "diagonal", members=5)
    x = f.sample(7, rng).reshape(-1, 30)
    want = np.stack([f.member(k).log_prob(x) for k in range(5)], axis=1)
    np.testing.assert_allclose(f.log_prob(x), want, rtol=1e-11)
    np.testing.assert_array_equal(f.take(np.array([3, 1])).log_prob(x), f.take([3, 1]).log_prob(x))
    np.testing.assert_allclose(f.take([3, 1]).log_prob(x), want[:, [3, 1]], rtol=1e-11)


@pytest.mark.parametrize("q", [2, 9])
def test_a_missing_value_is_integrated_out(rng, q):
    f = some_distribution(rng, 12, q, "diagonal", members=3)
    x = f.sample(30, rng)[:, 0]
    x[rng.random(x.shape) < 0.4] = np.nan
    for i, row in enumerate(x):
        seen = np.flatnonzero(~np.isnan(row))
        for k in range(3):
            one = f.gaussian.member(k)
            want = one.marginal(seen).log_prob(row[None, seen])[0] if len(seen) else 0.0
            assert f.log_prob(x)[i, k] == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_marginals_have_no_more_factors_than_columns(rng):
    f = some_distribution(rng, 6, 3, "diagonal", members=2)
    for columns in ([4, 2], [0, 1, 2, 5]):
        part = f.marginal(columns)
        np.testing.assert_allclose(part.covariance_matrix, f.gaussian.marginal(columns).covariance, rtol=1e-12)
        assert part.factors == min(3, len(columns))


def test_noise_of_next_to_nothing_keeps_its_digits(rng):
    """The difference of squares loses them all; the sum of squares does not."""
    for k in range(3):
        f = some_distribution(rng, 40, 3, noise=10.0 ** (-3 * k))
        x = f.sample(200, rng)
        x[:20] += 100.0 * f.loadings[:, 0]  # far along a factor: |z|² is 1e10 times the distance
        by_sum = f._low.by_sum(x, 0)
        np.testing.assert_allclose(f._low.distance(x)[:, 0], by_sum, rtol=1e-8, atol=2e-9)


def test_an_offset_of_a_hundred_million_costs_nothing(rng):
    x = rows_of(rng, 200, 20, 2)
    far = 2.0**27
    near = FactorGaussian.fit(x, factors=2)
    there = FactorGaussian.fit(np.round(x * 2**10) / 2**10 + far, factors=2)
    here = FactorGaussian.fit(np.round(x * 2**10) / 2**10, factors=2)
    np.testing.assert_allclose(there.loadings, here.loadings, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(there.log_prob(np.round(x * 2**10) / 2**10 + far), here.log_prob(x), rtol=1e-2)
    assert there.noise_variance == pytest.approx(float(near.noise_variance), rel=1e-2)


def test_draws_have_its_moments(rng):
    f = some_distribution(rng, 4, 2, "diagonal", members=2)
    x = f.sample(200_000, rng)
    assert x.shape == (200_000, 2, 4)
    np.testing.assert_allclose(np.cov(x[:, 1].T), f.covariance_matrix[1], atol=0.08)


def test_what_it_refuses():
    with pytest.raises(ShapeError, match="at most 2 factors are possible for 2 columns"):
        FactorGaussian([0.0, 0.0], np.zeros((2, 3)), 1.0)
    with pytest.raises(DomainError, match="noise_variance must be positive"):
        FactorGaussian([0.0, 0.0], np.zeros((2, 1)), 0.0)
    with pytest.raises(ShapeError, match="loadings must have shape"):
        FactorGaussian([0.0, 0.0], np.zeros((3, 1)), 1.0)
    with pytest.raises(ShapeError, match="noise for mean"):
        FactorGaussian(np.zeros((3, 2)), np.zeros((3, 2, 1)), [1.0, 2.0])
    with pytest.raises(DomainError, match="kind must be one of"):
        FactorGaussian([0.0], [[1.0]], 1.0, kind="full")
    with pytest.raises(DataError, match="row 1, column 0"):
        FactorGaussian(np.zeros(9), np.zeros((9, 1)), 1.0).log_prob(with_infinity())
    with pytest.raises(DomainError, match="one distribution is needed"):
        FactorGaussian(np.zeros((2, 3)), np.zeros((2, 3, 1)), 1.0).posterior(np.zeros((1, 3)))


def with_infinity():
    x = np.zeros((3, 9))
    x[1, 0] = np.inf
    return x


# --------------------------------------------------------------------- learning


def log_likelihood(parameters, x, q, kind):
    d = x.shape[1]
    w, log_noise = parameters[: d * q].reshape(d, q), parameters[d * q :]
    c = w @ w.T + np.diag(np.broadcast_to(np.exp(log_noise), (d,)))
    return multivariate_normal(x.mean(axis=0), c).logpdf(x).sum()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spherical", "diagonal"])
def test_no_search_finds_a_better_one(rng, kind):
    x = rows_of(rng, 100, 7, 2)
    f = FactorGaussian.fit(x, factors=2, kind=kind)
    mine = f.log_prob(x).sum()
    start = np.concatenate([f.loadings.ravel(), np.log(np.atleast_1d(f.noise_variance))])
    best = max(
        -minimize(lambda p: -log_likelihood(p, x, 2, kind), s, method="BFGS").fun
        for s in (start, start + 0.3 * rng.normal(size=start.shape), rng.normal(size=start.shape))
    )
    assert mine >= best - 1e-6


def test_em_over_the_factors_ends_at_the_closed_form(rng):
    x = rows_of(rng, 300, 6, 2)
    f = FactorGaussian.blank(x, factors=2)
    stats = f.collect(x)
    closed = f.refit(stats)
    model = f.replace(loadings=rng.normal(size=(6, 2)))
    trace = [model.objective(stats)]
    for _ in range(400):
        model = model.em_step(stats)
        trace.append(model.objective(stats))
    assert (np.diff(trace) >= -1e-9 * abs(trace[-1])).all()
    assert trace[-1] == pytest.approx(closed.objective(stats), rel=1e-11)
    np.testing.assert_allclose(model.covariance_matrix, closed.covariance_matrix, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_the_objective_never_falls(rng):
    """80 problems: gaps, weights, one value or a stack, with and without the weak prior."""
    for trial in range(80):
        d, n = int(rng.integers(1, 8)), int(rng.integers(3, 40))
        q, members = int(rng.integers(0, d + 1)), (None, 2)[trial % 2]
        kind = ("spherical", "diagonal")[trial // 2 % 2]
        x, w = rows_of(rng, n, d, max(q, 1)), rng.random(n) + 0.01
        if trial % 3:
            x[rng.random(x.shape) < 0.2] = np.nan
        if members:
            w = w[:, None] * rng.random((n, members))
        model, prior = FactorGaussian.blank(x, factors=q, kind=kind, members=members), None
        for _ in range(4):
            stats = model.collect(x, w)
            prior = model.weak_prior(stats) if trial % 5 and prior is None else prior
            better = model.refit(stats, prior)
            before, after = model.objective(stats, prior), better.objective(stats, prior)
            assert np.isfinite(after) and after >= before - 1e-7 * (1 + abs(before)), (trial, before, after)
            model = better


def test_missing_values_by_em_beat_every_neighbor(rng):
    x = rows_of(rng, 80, 4, 1)
    x[rng.random(x.shape) < 0.2] = np.nan
    f = fit(FactorGaussian.blank(x, factors=1), x, stop=StoppingRule(5000, 1e-13)).require_converged().model
    best = f.log_prob(x).sum()
    for _ in range(50):
        step = 1e-3 * rng.normal(size=9)
        near = FactorGaussian(
            f.mean + step[:4], f.loadings + step[4:8, None], float(f.noise_variance) * np.exp(step[8])
        )
        assert near.log_prob(x).sum() < best + 1e-7


def test_turning_the_columns_turns_the_answer(rng):
    x = rows_of(rng, 200, 6, 2)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    a, b = FactorGaussian.fit(x, factors=2), FactorGaussian.fit(x @ turn.T, factors=2)
    np.testing.assert_allclose(b.covariance_matrix, turn @ a.covariance_matrix @ turn.T, rtol=1e-9, atol=1e-10)


def test_factor_analysis_does_not_care_about_units(rng):
    x, unit = rows_of(rng, 200, 6, 2), 10.0 ** np.array([0, 100, -100, 3, -5, 1])
    a, b = (FactorGaussian.fit(v, factors=2, kind="diagonal") for v in (x, x * unit))
    np.testing.assert_allclose(b.noise_variance / unit**2, a.noise_variance, rtol=1e-7)
    np.testing.assert_allclose(b.loadings / unit[:, None], a.loadings, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_scales_at_the_ends_of_the_numbers(rng, unit):
    x = rows_of(rng, 100, 20, 2)
    a, b = FactorGaussian.fit(x, factors=2), FactorGaussian.fit(x * unit, factors=2)
    np.testing.assert_allclose(b.loadings / unit, a.loadings, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(b.log_prob(x * unit) + 20 * np.log(unit), a.log_prob(x), rtol=1e-9)
    prior = b.weak_prior(b.collect(x * unit))
    assert np.isfinite(b.refit(b.collect(x * unit), prior).log_prob(x * unit)).all()


@pytest.mark.parametrize("kind", ["spherical", "diagonal"])
@pytest.mark.parametrize("prior", [None, "weak"])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_hazards_give_a_density_all_the_same(rng, kind, prior):
    x = rows_of(rng, 12, 6, 2)
    constant, copied, few = x.copy(), x.copy(), x[:2]
    constant[:, 2], copied[:, 3] = 7.0, copied[:, 0]
    for bad in (constant, copied, few, x[:1], np.zeros((5, 6)), np.repeat(x[:1], 9, axis=0)):
        for q in (0, 2, 6):
            f = FactorGaussian.fit(bad, factors=q, kind=kind, prior=prior)
            assert np.isfinite(f.log_prob(bad)).all() and (f.noise_variance > 0).all()
            assert np.isfinite(f.gaussian.log_prob(bad)).all()


def test_what_is_lifted_is_reported(rng):
    x = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 5))
    with pytest.warns(FitWarning, match="leave no noise"):
        FactorGaussian.fit(x, factors=2)
    with pytest.warns(FitWarning, match="columns 1, 2 and 4 are left without noise of their own"):
        constant = np.where(np.isin(np.arange(5), [2, 4]), 7.0, x + rng.normal(size=x.shape))
        FactorGaussian.fit(constant, factors=1, kind="diagonal")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FactorGaussian.fit(x, factors=2, prior="weak")


def test_a_weak_prior_leaves_many_rows_alone(rng):
    x = rows_of(rng, 20_000, 8, 2)
    for kind in ("spherical", "diagonal"):
        free, held = (FactorGaussian.fit(x, factors=2, kind=kind, prior=p) for p in (None, "weak"))
        np.testing.assert_allclose(held.covariance_matrix, free.covariance_matrix, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["spherical", "diagonal"])
def test_a_mixture_whose_members_own_three_rows_does_not_collapse(rng, kind):
    x = np.concatenate([rows_of(rng, 60, 6, 2), 50 + rng.normal(size=(1, 6)), -50 + rng.normal(size=(3, 6))])
    parts = FactorGaussian.blank(x, factors=2, kind=kind, members=3)
    labels = np.repeat([0, 1, 2], [60, 1, 3])
    start = Mixture(np.full(3, 1 / 3), parts)
    stats = start.collect(x, labels=labels)
    prior = start.weak_prior(stats)
    model = start.refit(stats, prior)
    report = fit(model, Blocks.of(x), prior=prior, stop=StoppingRule(200, 1e-8))
    assert np.isfinite(report.model.log_prob(x)).all()
    variance = np.diagonal(report.model.components.covariance_matrix, axis1=1, axis2=2)
    assert variance.min() > 0.02 * variance[0].min()
    assert (np.diff(report.trace) >= -1e-8 * abs(report.trace[-1])).all()


def test_members_without_rows_and_nothing_to_learn_from(rng):
    f = FactorGaussian.blank(rng.normal(size=(9, 3)), factors=1, members=2)
    g = f.refit(f.collect(rng.normal(size=(9, 3)), labels=np.zeros(9, int)))
    np.testing.assert_array_equal(g.loadings[1], f.loadings[1])
    with pytest.raises(DataError, match="weight is needed"):
        f.refit(f.collect(np.empty((0, 3))))
    with pytest.raises(ShapeError, match="Moments are needed"):
        diagonal = Gaussian(np.zeros((2, 3)), np.ones((2, 3)), kind="diagonal")
        f.refit(diagonal.collect(np.zeros((2, 3))))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [None, "weak"])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_the_objective_never_falls_where_columns_are_never_seen(rng, prior):
    """Of all rows, of one member's, and of a lone row (once it fell from 557.844 to 557.549)."""
    lone = np.array([[0.83, -3.62, np.nan]])
    nowhere = np.where(rng.random((40, 3)) < 0.2, np.nan, rng.normal(size=(40, 3)) * [1.0, 5.0, 2.0])
    nowhere[:, 2] = np.nan
    half = np.where(np.arange(40)[:, None] < 20, nowhere, rng.normal(size=(40, 3)) * [9.0, 0.1, 30.0])
    for x, labels in ((lone, None), (nowhere, None), (nowhere, np.arange(40) // 20), (half, np.arange(40) // 20)):
        for kind in ("spherical", "diagonal"):
            for q in (1, 2):
                start = Mixture([0.5, 0.5], some_distribution(rng, 3, q, kind, members=2))
                steps = iterate(start, Blocks.of(x, labels=labels), prior=prior)
                trace = [next(steps).objective for _ in range(7)]
                assert (np.diff(trace) >= -1e-9 * np.maximum(np.abs(trace[:-1]), len(x))).all()


def test_a_prior_that_knows_a_column_is_heard_where_rows_are_silent(rng):
    """The other columns are learned from the rows at once, though the start made far too much of that one."""
    x = rows_of(rng, 500, 5, 1)
    known = Gaussian.blank(x).weak_prior(Gaussian.blank(x).collect(x))
    x[:, 4] = np.nan
    start = FactorGaussian.blank(x, factors=1)
    with pytest.warns(FitWarning, match="never observed"):
        made = fit(
            start.replace(noise_variance=np.asarray(2500.0)), Blocks.of(x), prior=known, stop=StoppingRule(30)
        ).model
    alone = FactorGaussian.fit(x[:, :4], factors=1)
    assert made.marginal([0, 1, 2, 3]).log_prob(x[:, :4]).mean() > alone.log_prob(x[:, :4]).mean() - 1e-3
    assert abs(made.loadings[4, 0]) < 5


# --------------------------------------------------------------- hidden factors


def test_posterior_is_bayes(rng):
    """x and z together are one Gaussian: condition it."""
    f = some_distribution(rng, 5, 2, "diagonal")
    x = f.sample(6, rng)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[0] = f.mean
    w = f.loadings
    joint = Gaussian(np.append(f.mean, [0, 0]), np.block([[f.covariance_matrix, w], [w.T, np.eye(2)]]))
    post = f.posterior(x)
    for i, row in enumerate(x):
        seen = {j: v for j, v in enumerate(row) if not np.isnan(v)}
        want = joint.condition(seen)
        keep = [want.dim - 2, want.dim - 1]
        np.testing.assert_allclose(post.mean[i], want.mean[keep], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(post.covariance[i], want.covariance[np.ix_(keep, keep)], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(f.scores(x), post.mean, rtol=1e-9, atol=1e-12)
    complete = f.posterior(np.nan_to_num(x))
    assert complete.covariance.shape == (2, 2) and complete.members == 6


def test_imputation_is_conditioning(rng):
    f = some_distribution(rng, 4, 2)
    x = np.array([[0.3, np.nan, -1.0, np.nan]])
    want = f.gaussian.condition({0: 0.3, 2: -1.0})
    np.testing.assert_allclose(f.impute(x)[0, [1, 3]], want.mean, rtol=1e-9)
    draws = f.impute(np.repeat(x, 100_000, axis=0), rng)[:, [1, 3]]
    np.testing.assert_allclose(draws.mean(axis=0), want.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), want.covariance, atol=0.05)
    np.testing.assert_array_equal(f.impute(x)[0, [0, 2]], [0.3, -1.0])


def test_reconstruction_moves_toward_the_factors(rng):
    f = some_distribution(rng, 8, 2, noise=0.1)
    x = f.sample(500, rng)
    np.testing.assert_allclose(f.reconstruct(x), f.mean + f.scores(x) @ f.loadings.T)
    assert ((f.reconstruct(x) - x) ** 2).mean() < 0.3 < x.var()


def test_what_is_novel_has_low_density(rng):
    x = rows_of(rng, 500, 20, 3)
    f = FactorGaussian.fit(x, factors=3)
    odd = f.sample(200, rng) + 2.0 * rng.normal(size=(200, 20))
    assert (f.log_prob(odd) < np.quantile(f.log_prob(x), 0.05)).mean() > 0.99
