from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import likely as lk
from likely import DataError, DomainError, FitWarning, ShapeError
from likely.linear_model import Conditional, GaussianRegression, MixtureRegression


def crossing(rng, n=300, noise=(0.3, 0.5)):
    """Two crossing lines."""
    x = rng.uniform(-2, 2, (n, 1))
    first = rng.random(n) < 0.4
    mean = np.where(first, 1 + 2 * x[:, 0], -1 - x[:, 0])
    return x, mean + np.where(first, *noise) * rng.standard_normal(n), first


def model(**how):
    return MixtureRegression(2, random_state=0, **how)


@pytest.mark.parametrize("init", ["auto", "residuals"])
@pytest.mark.parametrize("seed", range(3))
def test_crossing_lines_are_found(seed, init):
    x, y, first = crossing(np.random.default_rng(seed))
    m = MixtureRegression(2, init=init, random_state=seed).fit(x, y)
    k = int(m.coefficients_[:, 1].argmax())
    np.testing.assert_allclose(m.coefficients_[[k, 1 - k]], [[1, 2], [-1, -1]], atol=0.2)
    np.testing.assert_allclose(np.sqrt(m.noise_variance_)[[k, 1 - k]], [0.3, 0.5], rtol=0.25)
    assert m.report_.converged and ((m.posterior(x, y).argmax(axis=1) == k) == first).mean() > 0.88


@pytest.mark.slow
def test_five_lines_are_found():
    rng = np.random.default_rng(3)
    W = np.array([[0.0, 4.0], [0.0, -4.0], [8.0, 0.0], [-8.0, 1.0], [3.0, 9.0]])
    x, k = rng.uniform(-2, 2, (1000, 1)), rng.integers(0, 5, 1000)
    y = W[k, 0] + W[k, 1] * x[:, 0] + 0.2 * rng.standard_normal(1000)
    m = MixtureRegression(5, n_init=3, random_state=0).fit(x, y)
    found = m.coefficients_[np.lexsort(m.coefficients_.round().T)]
    np.testing.assert_allclose(found, W[np.lexsort(W.T)], atol=0.15)


@pytest.mark.slow
def test_answers_by_hand(rng):
    x, y, _ = crossing(rng)
    m = model().fit(x, y)
    w, sd = m.weights_, np.sqrt(m.noise_variance_)
    means = np.stack([a + b * x[:, 0] for a, b in m.coefficients_], axis=1)
    joint = np.log(w) + norm.logpdf(y[:, None], means, sd)
    np.testing.assert_allclose(m.log_prob(x, y), logsumexp(joint, axis=1), rtol=1e-10)
    np.testing.assert_allclose(m.posterior(x, y), np.exp(joint - logsumexp(joint, axis=1)[:, None]), atol=1e-12)
    np.testing.assert_allclose(m.predict(x), means @ w, rtol=1e-10)
    std = m.predict(x, return_std=True)[1]
    np.testing.assert_allclose(std**2, (sd**2 + means**2) @ w - (means @ w) ** 2, rtol=1e-10)
    density = m.predictive(x)
    assert density.members == len(x)
    np.testing.assert_allclose(density.mean[:, 0], m.predict(x))
    low, high = m.interval(x, 0.8)
    for end, p in ((low, 0.1), (high, 0.9)):
        np.testing.assert_allclose((w * norm.cdf(end[:, None], means, sd)).sum(axis=1), p, rtol=1e-9)
    np.testing.assert_allclose(m.decide(x), m.predict(x))
    median = m.decide(x, "absolute")
    np.testing.assert_allclose((w * norm.cdf(median[:, None], means, sd)).sum(axis=1), 0.5, rtol=1e-9)
    asymmetric = m.decide(x[:3], "asymmetric", over=3.0, under=1.0)
    by_loss = m.decide(x[:3], lambda a, t: np.where(a > t, 3.0 * (a - t), t - a))
    np.testing.assert_allclose(by_loss, asymmetric, atol=0.02)
    draws = np.stack([m.sample(x[:2], random_state=i) for i in range(2000)])
    np.testing.assert_allclose(draws.mean(axis=0), m.predict(x[:2]), atol=0.15)


def test_quantiles_of_a_stack_equal_those_of_its_members(rng):
    x, y, _ = crossing(rng)
    density, p = model().fit(x, y).predictive(x[:5]), np.array([0.0, 0.1, 0.5, 0.999, 1.0, 2.0])
    alone = np.stack([density.member(i).quantile(p) for i in range(5)], axis=-1)
    np.testing.assert_allclose(density.quantile(p), alone, rtol=1e-12)
    one = lk.Mixture([[1.0, 0.0]], lk.Gaussian([[0.0], [np.pi]], 1.0))
    np.testing.assert_allclose(one.quantile(0.9), norm.ppf(0.9), rtol=1e-12)


def test_one_component_is_least_squares(rng):
    x = rng.standard_normal((50, 2))
    y = x @ [1.0, 2.0] + rng.standard_normal(50)
    m, plain = MixtureRegression(1, prior=None).fit(x, y), lk.LinearRegression().fit(x, y)
    np.testing.assert_allclose(m.coefficients_[0], plain.coefficients_, rtol=1e-9)
    np.testing.assert_allclose(m.predict(x), plain.predict(x), rtol=1e-9)


@pytest.mark.slow
def test_order_and_copies_change_nothing(rng):
    x, y, _ = crossing(rng, 80)
    times, order = rng.integers(0, 4, 80), rng.permutation(80)
    a = model().fit(x, y, sample_weight=times)
    at = np.repeat(order, times[order])
    b = model().fit(x[at], y[at])
    assert np.array_equal(a.coefficients_, b.coefficients_) and np.array_equal(a.weights_, b.weights_)


@pytest.mark.slow
def test_many_rows_take_the_sketch_for_the_start_only(rng):
    x, y, _ = crossing(rng, 12_000)
    m = model(max_iter=50, tol=1e-6).fit(x, y)
    assert m.stats_.total_weight == pytest.approx(12_000)
    k = int(m.coefficients_[:, 1].argmax())
    np.testing.assert_allclose(m.coefficients_[[k, 1 - k]], [[1, 2], [-1, -1]], atol=0.05)


def test_rows_without_a_target_do_not_count(rng):
    x, y, _ = crossing(rng, 90)
    hidden = np.where(np.arange(90) % 4 == 0, np.nan, y)
    kept = ~np.isnan(hidden)
    a, b = model().fit(x, hidden), model().fit(x[kept], y[kept])
    assert np.array_equal(a.coefficients_, b.coefficients_)
    assert np.abs(a.log_prob(x, hidden)[~kept]).max() < 1e-15
    np.testing.assert_allclose(a.posterior(x, hidden)[~kept], np.tile(a.weights_, (23, 1)))


def test_several_targets_with_gaps(rng):
    x, y, first = crossing(rng)
    Y = np.stack([y, np.where(first, -x[:, 0], 3 + x[:, 0]) + 0.1 * rng.standard_normal(len(y))], axis=1)
    Y[::7, 0] = np.nan
    m = model().fit(x, Y)
    assert m.coefficients_.shape == (2, 2, 2) and m.predict(x).shape == Y.shape and m.noise_variance_.shape == (2, 2)
    assert ((m.posterior(x, Y)[:, 0] > 0.5) == first).mean() % 1.0 in (0.0, pytest.approx(1.0, abs=0.02))
    low, high = m.interval(x[:4])
    assert low.shape == (4, 2) and (low < high).all() and m.decide(x[:4], "absolute").shape == (4, 2)
    assert m.sample(x[:4], 0).shape == (4, 2)


def test_initializations(rng):
    x, y, first = crossing(rng)
    best = model().fit(x, y).log_prob(x, y).sum()
    given = np.stack([first, ~first], axis=1).astype(float)
    assert MixtureRegression(2, init=given).fit(x, y).log_prob(x, y).sum() == pytest.approx(
        best, abs=0.05
    )  # priors are scaled by the start
    start = lk.Mixture([0.5, 0.5], Conditional(GaussianRegression([[[0.5, 1.0]], [[-0.5, 0.0]]], [1.0, 1.0])))
    for tied in (False, True):
        m = MixtureRegression(2, init=start, tied_noise=tied).fit(x, y)
        assert m._density.tied == tied and m.report_.converged
    several = MixtureRegression(2, init="random", n_init=3, random_state=1).fit(x, y)
    assert len(several.report_.runs) == 3


def test_basis_and_names(rng):
    x = rng.uniform(-1, 1, 200)
    k = rng.integers(0, 2, 200)
    y = np.where(k, x**2, -(x**2)) + 0.02 * rng.standard_normal(200)
    m = MixtureRegression(2, lk.basis.Polynomial(2), random_state=0).fit(pd.DataFrame({"time": x}), y)
    assert m.function_names_ == ["1", "time", "time^2"] and "time^2" in str(m.summary())
    assert sorted(m.coefficients_[:, 2].round(1)) == [-1.0, 1.0]


@pytest.mark.slow
def test_streams(rng):
    x, y, _ = crossing(rng, 2000)
    m = model()
    for at in range(0, 2000, 200):
        m.partial_fit(x[at : at + 200], y[at : at + 200])
    k = int(m.coefficients_[:, 1].argmax())
    np.testing.assert_allclose(m.coefficients_[[k, 1 - k]], [[1, 2], [-1, -1]], atol=0.15)
    assert (
        m.stats_.total_weight == pytest.approx(2000)
        and m.report_.streaming
        and "log-likelihood" not in m.describe().facts
    )
    fitted = model().fit(x, y)
    added = fitted.stats_.total_weight
    assert fitted.partial_fit(x[:10], y[:10]).stats_.total_weight == pytest.approx(added + 10)


@pytest.mark.slow
def test_files(rng, tmp_path):
    x, y, _ = crossing(rng)
    for m in (model(), MixtureRegression(2, lk.basis.Polynomial(2), tied_noise=True, prior=None, random_state=0)):
        m.fit(x, y).save(tmp_path / "m.likely")
        again = lk.load(tmp_path / "m.likely")
        assert np.array_equal(again.predict(x), m.predict(x)) and np.array_equal(again.log_prob(x, y), m.log_prob(x, y))
        again.partial_fit(x[:20], y[:20])


def test_descriptions(rng):
    assert "not fitted" in str(MixtureRegression().describe())
    x, y, _ = crossing(rng)
    m = model().fit(x, y)
    facts = m.summary().facts
    assert facts["log-likelihood"] == pytest.approx(m.log_prob(x, y).sum(), rel=1e-9) and facts["parameters"] == 7
    assert "2 linear regressions" in str(m.describe())


def test_bad_input_is_refused(rng):
    x, y, _ = crossing(rng, 40)
    with pytest.raises(DataError, match="MixtureRegression: rows of X must be complete, got NaN at row 3"):
        model().fit(np.where(np.arange(40)[:, None] == 3, np.nan, x), y)
    with pytest.raises(DataError, match="at least one row"):
        model().fit(x, y * np.nan)
    with pytest.raises(ShapeError, match="responsibilities"):
        MixtureRegression(2, init=np.ones((3, 2))).fit(x, y)
    with pytest.raises(DomainError, match="negative"):
        MixtureRegression(2, init=-np.ones((40, 2))).fit(x, y)
    with pytest.raises(ShapeError, match="Mixture of Conditional regressions"):
        MixtureRegression(2, init=lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [1.0]], 1.0))).fit(x, y)
    m = model().fit(x, y)
    with pytest.raises(DataError, match="NaN at row 0"):
        m.predict([[np.nan]])
    with pytest.raises(ShapeError, match="1 targets, as before"):
        m.log_prob(x, np.stack([y, y], axis=1))
    with pytest.raises(DomainError, match="level"):
        m.interval(x, 1.5)
    with pytest.warns(FitWarning, match="not converged"):
        model(max_iter=1, tol=0.0).fit(x, y)


def test_more_components_than_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = MixtureRegression(4, random_state=0).fit([[0.0], [1.0]], [1.0, 2.0])
    assert np.isfinite(m.predict([[0.5]])).all()
