from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats

import likely as lk
from likely import ConditionalDensity, DataError, DomainError, ShapeError, Stats
from likely.basis import Identity, Polynomial
from likely.core import Columns
from likely.linear_model import Conditional, GaussianRegression

NOISE = np.array([[0.5, 0.2], [0.2, 0.3]])


def two_targets(rng, n=200):
    x = rng.standard_normal((n, 3)) * [1.0, 5.0, 0.1] + 2.0
    true = GaussianRegression([[1.0, 2.0, -0.3, 4.0], [0.0, 0.5, 0.1, -8.0]], NOISE)
    return true, true.sample(x, rng), x


def test_it_plays_the_roles(rng):
    true, y, x = two_targets(rng)
    assert isinstance(true, ConditionalDensity) and isinstance(true.collect(y, x), Stats)
    assert isinstance(Conditional(true), lk.Learnable)


def test_log_prob_is_that_of_scipy(rng):
    true, y, x = two_targets(rng, 20)
    wanted = [scipy.stats.multivariate_normal(true.given(x).mean[i], NOISE).logpdf(y[i]) for i in range(20)]
    np.testing.assert_allclose(true.log_prob(y, x), wanted, rtol=1e-12)
    part = y.copy()
    part[3, 0] = np.nan
    part[4] = np.nan
    found = true.log_prob(part, x)
    assert found[4] == 0
    assert found[3] == pytest.approx(scipy.stats.norm(true.given(x).mean[3, 1], 0.3**0.5).logpdf(y[3, 1]))


def test_samples_follow_the_density(rng):
    one = GaussianRegression([[[1.0, 2.0]], [[0.0, -1.0]]], [0.25, 4.0])
    x = np.repeat([[3.0]], 50_000, axis=0)
    y = one.sample(x, rng)
    assert y.shape == (50_000, 2, 1)
    np.testing.assert_allclose(y.mean(axis=0).ravel(), [7.0, -3.0], atol=0.05)
    np.testing.assert_allclose(y.var(axis=0).ravel(), [0.25, 4.0], rtol=0.05)


@pytest.mark.parametrize("basis", [Identity(), Identity(constant=False), Polynomial(2)])
def test_refit_is_least_squares(rng, basis):
    x, y = rng.standard_normal((80, 2)) + [3.0, -1.0], rng.standard_normal((80, 2))
    w = rng.random(80)
    blank = GaussianRegression.blank(y, x, basis)
    fitted = blank.refit(blank.collect(y, x, w))
    phi, s = basis.design(x), np.sqrt(w)[:, None]
    wanted, *_ = np.linalg.lstsq(s * phi, s * y, rcond=None)
    np.testing.assert_allclose(fitted.coefficients, wanted.T, rtol=1e-10, atol=1e-12)
    rest = s * (y - phi @ wanted)
    np.testing.assert_allclose(fitted.covariance, rest.T @ rest / w.sum(), rtol=1e-11)


def test_a_stack_is_its_members_one_by_one(rng):
    _, y, x = two_targets(rng)
    stack = GaussianRegression(rng.standard_normal((3, 2, 4)), np.stack([NOISE, 2 * NOISE, np.eye(2)]))
    w = rng.random((200, 3))
    y[::7, 0] = np.nan
    stats = stack.collect(y, x, w)
    fitted = stack.refit(stats)
    for k in range(3):
        one = stack.member(k)
        alone = one.collect(y, x, w[:, k])
        np.testing.assert_allclose(stack.log_prob(y, x)[:, k], one.log_prob(y, x), rtol=1e-12)
        np.testing.assert_allclose(fitted.member(k).coefficients, one.refit(alone).coefficients, rtol=1e-9)
        np.testing.assert_allclose(fitted.member(k).covariance, one.refit(alone).covariance, rtol=1e-9)
        assert one.objective(alone) == pytest.approx(stack.take([k]).objective(stats.member([k])), rel=1e-12)
    labels = rng.integers(-1, 3, 200)
    labeled = stack.collect(y, x, labels=labels)
    for k in range(3):
        alone = stack.member(k).collect(y[labels == k], x[labels == k])
        np.testing.assert_allclose(
            labeled.member(k).root.T @ labeled.member(k).root, alone.root.T @ alone.root, rtol=1e-9
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_the_log_likelihood(rng, weighted):
    true, y, x = two_targets(rng, 50)
    y[5, 0] = y[9, 1] = np.nan
    y[10] = np.nan
    w = rng.random(50) if weighted else None
    stats = true.collect(y, x, w)
    wanted = true.log_prob(y, x) @ (np.ones(50) if w is None else w)
    assert true.objective(stats) == pytest.approx(wanted, rel=1e-11)
    assert not stats.complete


def test_missing_targets_are_a_marginal_likelihood_that_em_climbs(rng):
    true, y, x = two_targets(rng, 400)
    y[rng.random(y.shape) < 0.3] = np.nan
    rows = Columns(y=y, x=x)
    start = Conditional(GaussianRegression.blank(y, x))
    report = lk.fit(start, rows, stop=lk.StoppingRule(500, 1e-10))
    assert report.converged and (np.diff(report.trace) >= -1e-9).all()
    np.testing.assert_allclose(report.model.density.coefficients, true.coefficients, atol=0.9)
    best = report.model.log_prob(rows).sum()
    for _ in range(20):
        nudged = report.model.density.replace(
            coefficients=report.model.density.coefficients + 0.01 * rng.standard_normal((2, 4))
        )
        assert Conditional(nudged).log_prob(rows).sum() < best


def test_rows_without_a_target_do_not_count(rng):
    _, y, x = two_targets(rng, 60)
    hidden, gaps = y.copy(), x.copy()
    hidden[10:20] = np.nan
    gaps[10:20] = np.nan
    blank = GaussianRegression.blank(y, x)
    kept = np.r_[0:10, 20:60]
    a, b = blank.collect(hidden, gaps), blank.collect(y[kept], x[kept])
    assert a.rows == b.rows and np.array_equal(a.root, b.root)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_chunks_equal_the_batch(rng, offset):
    x = rng.standard_normal((500, 2)) + offset
    y = x @ [1.0, -2.0] + rng.standard_normal(500) + offset
    blank = GaussianRegression.blank(y, x)
    batch = blank.refit(blank.collect(y, x))
    cut = [0, 3, 100, 480, 500]
    chunks = blank.refit(sum(blank.collect(y[a:b], x[a:b]) for a, b in pairwise(cut)))
    np.testing.assert_allclose(chunks.coefficients[0, 1:], batch.coefficients[0, 1:], rtol=1e-12)
    np.testing.assert_allclose(chunks.covariance, batch.covariance, rtol=1e-12)
    # of the size of the terms that add up to the mean
    np.testing.assert_allclose(chunks.given(x).mean, batch.given(x).mean, rtol=1e-12, atol=1e-14 * (1 + offset))


def test_a_weight_is_a_repetition(rng):
    _, y, x = two_targets(rng, 40)
    times = rng.integers(0, 4, 40)
    blank = GaussianRegression.blank(y, x)
    a, b = blank.collect(y, x, times), blank.collect(np.repeat(y, times, axis=0), np.repeat(x, times, axis=0))
    np.testing.assert_allclose(blank.refit(a).coefficients, blank.refit(b).coefficients, rtol=1e-12)
    np.testing.assert_allclose(blank.refit(a).covariance, blank.refit(b).covariance, rtol=1e-12)


def test_dependent_basis_functions_get_minimum_norm_and_a_warning(rng):
    x = rng.standard_normal((50, 3))
    x[:, 2] = x[:, 0] + x[:, 1]
    y = x @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(50)
    blank = GaussianRegression(np.zeros((1, 4)), 1.0)
    with pytest.warns(lk.FitWarning, match="column 3 is a combination of those before"):
        fitted = blank.refit(blank.collect(y, x))
    wanted = np.linalg.lstsq(Identity().design(x), y, rcond=None)[0]
    np.testing.assert_allclose(fitted.coefficients[0], wanted, rtol=1e-8)


def test_an_exact_fit_has_a_density_and_a_warning():
    x = np.arange(10.0)[:, None]
    y = 3.0 + 2.0 * x[:, 0]
    blank = GaussianRegression.blank(y, x)
    with pytest.warns(lk.FitWarning, match="fitted exactly"):
        fitted = blank.refit(blank.collect(y, x))
    assert np.isfinite(fitted.log_prob(y, x)).all() and fitted.covariance > 0


def test_members_without_rows_stay(rng):
    _, y, x = two_targets(rng)
    stack = GaussianRegression(rng.standard_normal((2, 2, 4)), np.stack([NOISE, np.eye(2)]))
    w = np.stack([np.ones(200), np.zeros(200)], axis=1)
    fitted = stack.refit(stack.collect(y, x, w))
    assert np.array_equal(fitted.member(1).coefficients, stack.member(1).coefficients)
    assert np.array_equal(fitted.member(1).covariance, stack.member(1).covariance)


def test_a_shared_covariance_is_pooled(rng):
    x = rng.standard_normal((300, 1))
    labels = rng.integers(0, 2, 300)
    y = np.where(labels, 3 * x[:, 0], -x[:, 0]) + 0.5 * rng.standard_normal(300)
    tied = GaussianRegression([[[0.0, 1.0]], [[0.0, -1.0]]], 1.0)
    assert tied.tied and tied.n_parameters == 5
    fitted = tied.refit(tied.collect(y, x, labels=labels))
    apart = [GaussianRegression([0.0, 0.0], 1.0) for _ in range(2)]
    apart = [one.refit(one.collect(y[labels == k], x[labels == k])) for k, one in enumerate(apart)]
    pooled = sum(one.covariance * (labels == k).sum() for k, one in enumerate(apart)) / 300
    np.testing.assert_allclose(fitted.covariance, pooled, rtol=1e-12)
    assert fitted.take([1]).tied and fitted.member(0).covariance.shape == (1, 1)


@pytest.mark.parametrize("prior", [None, "weak"])
def test_a_mixture_of_regressions_is_a_mixture(rng, prior):
    n = 3000
    x = 2 * rng.standard_normal((n, 1)) + 1
    first = rng.random(n) < 0.4
    y = np.where(first, 1 + 2 * x[:, 0], -1 - 0.5 * x[:, 0]) + np.where(first, 0.3, 0.5) * rng.standard_normal(n)
    start = GaussianRegression([[[0.5, 1.0]], [[-0.5, 0.0]]], [1.0, 1.0])
    rows = Columns(y=y, x=x)
    report = lk.fit(lk.Mixture([0.5, 0.5], Conditional(start)), rows, prior=prior, stop=lk.StoppingRule(500, 1e-9))
    assert report.converged and (np.diff(report.trace) >= -1e-8).all()
    found = report.model.components.density
    np.testing.assert_allclose(report.model.weights, [0.4, 0.6], atol=0.03)
    np.testing.assert_allclose(found.coefficients[:, 0], [[1, 2], [-1, -0.5]], atol=0.05)
    np.testing.assert_allclose(found.covariance.ravel(), [0.09, 0.25], rtol=0.15)
    assert (report.model.posterior(rows)[:, 0].round() == first).mean() > 0.9


@pytest.mark.parametrize("tied", [False, True])
def test_a_markov_switching_regression_is_an_hmm(rng, tied):
    n = 3000
    transition = np.array([[0.95, 0.05], [0.1, 0.9]])
    state = [0]
    for u in rng.random(n - 1):
        state.append(int(u >= transition[state[-1], 0]))
    state, x = np.array(state), 2 * rng.standard_normal((n, 1)) + 1
    noise = np.array([0.4, 0.4]) if tied else np.array([0.3, 0.5])
    y = np.where(state == 0, 1 + 2 * x[:, 0], -1 - 0.5 * x[:, 0]) + noise[state] * rng.standard_normal(n)
    y[5:20] = np.nan
    sequences = lk.Ragged(Columns(y=y, x=x), [0, 1000, n])
    start = GaussianRegression([[[0.5, 1.0]], [[-0.5, 0.0]]], 1.0 if tied else [1.0, 1.0])
    model = lk.HMM([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], Conditional(start))
    report = lk.fit(model, sequences, stop=lk.StoppingRule(500, 1e-9))
    found = report.model.emission.density
    assert report.converged and (np.diff(report.trace) >= -1e-8).all() and found.tied == tied
    assert report.objective == pytest.approx(report.model.log_prob(sequences).sum(), rel=1e-10)
    np.testing.assert_allclose(report.model.transition, transition, atol=0.03)
    np.testing.assert_allclose(found.coefficients[:, 0], [[1, 2], [-1, -0.5]], atol=0.05)
    np.testing.assert_allclose(np.unique(found.covariance), np.unique(noise**2), rtol=0.15)
    assert (report.model.viterbi(sequences).states.values == state).mean() > 0.95


def test_a_stack_of_mixtures_of_regressions(rng):
    """Statistics of groups of members are joined."""
    x, labels = rng.standard_normal((200, 1)), rng.integers(0, 2, 200)
    y = x[:, 0] + labels + rng.standard_normal(200)
    parts = GaussianRegression(rng.standard_normal((4, 1, 2)), np.ones(4))
    mixtures = lk.Mixture(np.full((2, 2), 0.5), Conditional(parts))
    stats = mixtures.collect(Columns(y=y, x=x), labels=labels)
    alone = mixtures.member(1).collect(Columns(y=y[labels == 1], x=x[labels == 1]))
    np.testing.assert_allclose(stats.components.rows[2:], alone.components.rows, rtol=1e-12)
    assert mixtures.refit(stats).members == 2


def test_bad_input_is_refused(rng):
    one, x = GaussianRegression([1.0, 2.0], 0.5), np.ones((3, 1))
    with pytest.raises(ShapeError, match="one row per target"):
        one.log_prob([1.0, 2.0], x)
    with pytest.raises(ShapeError, match="2 basis functions"):
        one.log_prob([1.0], np.ones((1, 2)))
    with pytest.raises(DataError, match="row 1, column 0"):
        one.log_prob([1.0, 2.0, 3.0], [[1.0], [np.nan], [2.0]])
    with pytest.raises(DataError, match="row 2"):
        one.log_prob([1.0, 2.0, np.inf], x)
    with pytest.raises(DomainError, match="x has no distribution"):
        Conditional(one).sample(3, rng)
    with pytest.raises(DataError, match="parts y and x"):
        Conditional(one).log_prob(np.ones((3, 2)))
    with pytest.raises(DomainError, match="conditional density"):
        Conditional(lk.Gaussian([0.0], 1.0))
    with pytest.raises(DomainError, match="positive definite"):
        GaussianRegression([1.0], 0.0)
    with pytest.raises(ShapeError, match="covariance must be"):
        GaussianRegression([[1.0], [2.0]], np.eye(3))
    with pytest.raises(DataError, match="weight is needed"):
        one.refit(one.collect([1.0], [[1.0]], [0.0]))
    with pytest.raises(ShapeError, match="columns"):
        one.refit(GaussianRegression([1.0, 2.0, 3.0], 0.5).collect([1.0], [[1.0, 2.0]]))
    with pytest.raises(DomainError, match="take member"):
        GaussianRegression(np.ones((2, 1, 2)), 1.0).given(x)
    with pytest.raises(DomainError, match="labels are for a stack"):
        one.collect([1.0], [[1.0]], labels=[0])


def test_large_inputs_go_in_blocks(rng):
    n = 70_000
    x = rng.standard_normal((n, 2))
    y = x @ [1.0, 2.0] + rng.standard_normal(n)
    blank = GaussianRegression.blank(y, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = blank.refit(blank.collect(y, x))
    np.testing.assert_allclose(fitted.coefficients[0], [0, 1, 2], atol=0.02)
    assert fitted.log_prob(y, x).shape == (n,)
