from __future__ import annotations

import tracemalloc
import warnings

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.optimize
import sklearn.linear_model
from scipy.stats import multivariate_normal

import likely as lk
from likely import DataError, DomainError, FitWarning, ShapeError
from likely.basis import Identity, OrthogonalPolynomial, Polynomial
from likely.linear_model import design_statistics

ALL = {
    "LinearRegression": lk.LinearRegression(),
    "Ridge": lk.Ridge(2.0),
    "Ridge-evidence": lk.Ridge("evidence"),
    "Ridge-loo": lk.Ridge("leave-one-out"),
    "evidence": lk.BayesianLinearRegression(),
    "evidence-penalized": lk.BayesianLinearRegression(penalize_constant=True),
    "ard": lk.BayesianLinearRegression(prior="ard"),
    "Gaussian": lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(4), 9.0), noise_variance=0.5),
    "Gaussian-beta": lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(4), 9.0)),
    "NormalGamma": lk.BayesianLinearRegression(prior=lk.priors.NormalGamma(np.zeros(4), 0.1, 2.0, 2.0)),
}
every = pytest.mark.parametrize("name", ALL)


def made(rng, n=80, targets=1):
    X = rng.standard_normal((n, 3)) * [1.0, 3.0, 0.5] + [0.0, 2.0, -1.0]
    W = np.array([[1.0, -0.5, 2.0], [0.0, 1.0, 0.5]])[:targets]
    y = 3.0 + X @ W.T + 0.7 * rng.standard_normal((n, targets))
    return X, y[:, 0] if targets == 1 else y


def fresh(name):
    return sklearn.base.clone(ALL[name])


# ----------------------------------------------------------------- promises


@every
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_chunks_equal_the_batch(rng, name, offset):
    if name == "Ridge-loo" or (offset and name in ("Gaussian", "Gaussian-beta", "NormalGamma", "evidence-penalized")):
        return  # leave-one-out needs all rows; a prior at 0 says that data at 1e8 are impossible
    X, y = made(rng)
    X, y = X + offset, y + offset
    whole, parts = fresh(name).fit(X, y), fresh(name)
    for at in (slice(0, 5), slice(5, 50), slice(50, 80)):
        parts.partial_fit(X[at], y[at])
    slopes = np.abs(whole.coef_).max()
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-12 * slopes)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(parts.predict(X, return_std=True)[1], whole.predict(X, return_std=True)[1], rtol=1e-8)


@every
def test_a_weight_is_a_repetition_and_weight_0_absence(rng, name):
    X, y = made(rng)
    times = rng.integers(0, 4, 80)
    a = fresh(name).fit(X, y, sample_weight=times)
    b = fresh(name).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(a.coefficients_, b.coefficients_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(a.predict(X, return_std=True)[1], b.predict(X, return_std=True)[1], rtol=1e-10)


@every
def test_rows_without_a_target_do_not_count(rng, name):
    X, y = made(rng)
    hidden = y.copy()
    hidden[3:9] = np.nan
    kept = np.r_[0:3, 9:80]
    a, b = fresh(name).fit(X, hidden), fresh(name).fit(X[kept], y[kept])
    np.testing.assert_allclose(a.coefficients_, b.coefficients_, rtol=1e-12)


@every
def test_intervals_cover(rng, name):
    X, y = made(rng, 400)
    m = fresh(name).fit(X[:200], y[:200])
    low, high = m.interval(X[200:], 0.9)
    inside = ((low <= y[200:]) & (y[200:] <= high)).mean()
    assert 0.8 < inside < 0.98
    wide = m.interval(X[200:], 0.99)
    assert (wide[0] < low).all() and (wide[1] > high).all()
    lower, upper = m.predictive(X[200:]).interval(0.9)
    np.testing.assert_allclose(np.stack([lower, upper]), np.stack([low, high]), rtol=1e-12)


@every
def test_decisions_are_those_of_the_predictive(rng, name):
    X, y = made(rng)
    m = fresh(name).fit(X, y)
    np.testing.assert_allclose(m.decide(X), m.predict(X), rtol=1e-10)
    np.testing.assert_allclose(m.decide(X, "absolute"), m.predict(X), rtol=1e-10)
    low = m.decide(X, loss="asymmetric", over=3.0, under=1.0)
    np.testing.assert_allclose(low, m.predictive(X).quantile(0.25), rtol=1e-12)
    assert np.abs(m.decide(X[:5], lambda a, y: (a - y) ** 2) - m.predict(X[:5])).max() < 1e-5


@every
def test_saved_and_loaded(rng, name, tmp_path):
    X, y = made(rng)
    m = fresh(name).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    m.save(tmp_path / "m.likely")
    again = lk.load(tmp_path / "m.likely")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert again.predict(frame).tobytes() == m.predict(frame).tobytes()
    np.testing.assert_allclose(
        again.predict(frame, return_std=True)[1], m.predict(frame, return_std=True)[1], rtol=1e-12
    )
    assert str(again.summary()) == str(m.summary()) and "a" in str(m.summary())


@every
def test_several_targets_are_each_alone(rng, name):
    if name in ("NormalGamma",):
        return  # a prior of one target
    X, Y = made(rng, targets=2)
    both = fresh(name).fit(X, Y)
    assert both.predict(X).shape == (80, 2) and both.coef_.shape == (2, 3)
    if name != "Ridge-loo":  # one penalty for all targets
        for j in range(2):
            alone = fresh(name).fit(X, Y[:, j])
            np.testing.assert_allclose(both.predict(X)[:, j], alone.predict(X), rtol=1e-9)
            if name != "LinearRegression":  # whose t distribution of two targets has one degree of freedom less
                np.testing.assert_allclose(
                    both.predict(X, return_std=True)[1][:, j], alone.predict(X, return_std=True)[1], rtol=1e-8
                )
    assert both.interval(X)[0].shape == (80, 2) and both.decide(X, "absolute").shape == (80, 2)
    assert both.sample_functions(X, 3, 0).shape == (3, 80, 2)
    assert both.summary().sections[1].title == "target 1"


@every
def test_sampled_functions_follow_the_posterior(rng, name):
    X, y = made(rng)
    m = fresh(name).fit(X, y)
    f = m.sample_functions(X[:4], 4000, np.random.default_rng(1))
    np.testing.assert_allclose(f.mean(axis=0), m.predict(X[:4]), atol=6 * f.std(axis=0).max() / 60)
    noise = m.predict(X[:4], return_std=True)[1] ** 2 - f.var(axis=0)
    assert (noise > 0).all()


@every
def test_the_equivalent_kernel_predicts(rng, name):
    X, y = made(rng)
    m = fresh(name).fit(X, y)
    np.testing.assert_allclose(m.equivalent_kernel(X[:6], X) @ y, m.predict(X[:6]), rtol=1e-8)
    w, v = rng.uniform(0.5, 3.0, (2, len(y)))
    m.fit(X, y, sample_weight=w, relative_noise=v)
    np.testing.assert_allclose(m.equivalent_kernel(X[:6], X) @ (y * w / v), m.predict(X[:6]), rtol=1e-8)


@every
def test_joint_predictives_have_the_marginals(rng, name):
    X, y = made(rng)
    m = fresh(name).fit(X, y)
    joint, each = m.predictive(X[:5], joint=True), m.predictive(X[:5])
    np.testing.assert_allclose(joint.mean, each.mean[:, 0], rtol=1e-12)
    np.testing.assert_allclose(joint.variance, each.variance[:, 0], rtol=1e-10)


# -------------------------------------------------------------- one estimator


def test_least_squares_is_that_of_scikit_learn(rng):
    X, y = made(rng)
    w, peer = rng.random(80), sklearn.linear_model.LinearRegression()
    peer.fit(X, y, w)
    m = lk.LinearRegression().fit(X, y, sample_weight=w)
    np.testing.assert_allclose(m.coef_, peer.coef_, rtol=1e-11)
    assert m.intercept_ == pytest.approx(peer.intercept_, rel=1e-11) and m.score(X, y) == pytest.approx(
        peer.score(X, y)
    )


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 2.0, 1e4])
def test_ridge_is_that_of_scikit_learn(rng, alpha):
    X, y = made(rng)
    peer = sklearn.linear_model.Ridge(alpha, solver="svd").fit(X, y)
    m = lk.Ridge(alpha).fit(X, y)
    np.testing.assert_allclose(m.coef_, peer.coef_, rtol=1e-9)
    assert m.intercept_ == pytest.approx(peer.intercept_, rel=1e-10)
    np.testing.assert_allclose(m.path([alpha, 1.0])[0], m.coefficients_, rtol=1e-12)


def test_leave_one_out_is_exact(rng):
    X, y = made(rng, 25)
    alphas = [0.1, 3.0, 50.0]
    m = lk.Ridge("leave-one-out", alphas=alphas).fit(X, y)
    errors = np.zeros(3)
    for i in range(25):
        rest = np.arange(25) != i
        for a, alpha in enumerate(alphas):
            errors[a] += (lk.Ridge(alpha).fit(X[rest], y[rest]).predict(X[[i]])[0] - y[i]) ** 2 / 25
    np.testing.assert_allclose(m.leave_one_out_, errors, rtol=1e-9)
    assert m.alpha_ == alphas[int(errors.argmin())]
    w = rng.integers(1, 4, 25)
    weighted = lk.Ridge("leave-one-out", alphas=alphas).fit(X, y, sample_weight=w)
    copied = lk.Ridge("leave-one-out", alphas=alphas).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.leave_one_out_, copied.leave_one_out_, rtol=1e-10)


def test_ridge_by_evidence_is_the_ratio_of_the_bayesian_one(rng):
    X, y = made(rng)
    bayes = lk.BayesianLinearRegression().fit(X, y)
    ridge = lk.Ridge("evidence").fit(X, y)
    assert ridge.alpha_ == pytest.approx(bayes.alpha_ / bayes.beta_, rel=1e-9)
    np.testing.assert_allclose(ridge.coefficients_, bayes.coefficients_, rtol=1e-9)


@pytest.mark.parametrize("prior", ["evidence", "ard"])
def test_the_evidence_is_dense_algebra(rng, prior):
    X, y = made(rng, 30)
    m = lk.BayesianLinearRegression(prior=prior, penalize_constant=True).fit(X, y)
    phi = Identity().design(X)
    alpha = np.broadcast_to(m.alpha_, 4)
    used = np.isfinite(alpha)
    covariance = np.eye(30) / m.beta_ + (phi[:, used] / alpha[used]) @ phi[:, used].T
    assert m.log_evidence_ == pytest.approx(multivariate_normal(np.zeros(30), covariance).logpdf(y), rel=1e-9)


def test_a_flat_constant_is_the_limit_of_a_wide_prior(rng):
    X, y = made(rng, 30)
    m = lk.BayesianLinearRegression().fit(X, y)
    wide = 1e6
    phi, precision = Identity().design(X), np.array([1 / wide, *3 * [m.alpha_]])
    covariance = np.eye(30) / m.beta_ + (phi / precision) @ phi.T
    limit = multivariate_normal(np.zeros(30), covariance).logpdf(y) + 0.5 * np.log(2 * np.pi * wide)
    assert m.log_evidence_ == pytest.approx(limit, abs=1e-3)


def test_evidence_equals_bayesian_ridge(rng):
    X, y = made(rng)
    Xc, yc = X - X.mean(axis=0), y - y.mean()
    peer = sklearn.linear_model.BayesianRidge(
        fit_intercept=False, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-13, max_iter=3000
    ).fit(Xc, yc)
    m = lk.BayesianLinearRegression(Identity(constant=False)).fit(Xc, yc)
    assert (m.alpha_, m.beta_) == pytest.approx((peer.lambda_, peer.alpha_), rel=1e-8)
    np.testing.assert_allclose(m.coef_, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(m.predict(Xc, return_std=True)[1], peer.predict(Xc, return_std=True)[1], rtol=1e-8)


def test_the_line_of_the_notes():
    prior = lk.Gaussian(np.zeros(2), 0.5)
    m = lk.BayesianLinearRegression(prior=prior, noise_variance=1 / 25).fit([[0.5]], [-0.05])
    np.testing.assert_allclose(m.coefficients_, [-0.0375940, -0.0187970], atol=5e-8)
    np.testing.assert_allclose([row[2] for row in m.summary()["coefficients"].rows], [0.352222, 0.637193], atol=5e-7)


def sine(seed, n, noise):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    return x[:, None], np.sin(2 * np.pi * x) + noise * rng.standard_normal(n)


def test_the_evidence_chooses_a_cubic_for_a_sine():
    """Herbst 1.1 and 3.4.1, Bishop 1.1 and 3.5.1: sin 2πx at random x in [0, 1], noise 0.3, evidence of degrees 0 to 9.

    With orthogonal polynomials, and with powers of 2x − 1 and the fixed α = 5e-3 and known β of Bishop, the maximum is
    at degree 3 on at least 15 of 20 seeds (here 18 and 20).
    """
    best, fixed = [], []
    for seed in range(20):
        x, t = sine(seed, 25, 0.3)
        fits = [lk.BayesianLinearRegression(OrthogonalPolynomial(d)).fit(x, t) for d in range(10)]
        best.append(int(np.argmax([m.log_evidence_ for m in fits])))
        fixed.append(best_degree(2 * x - 1, t, 5e-3, 0.09))
    assert best.count(3) >= 15 and fixed.count(3) >= 15


def best_degree(x, t, alpha, noise):
    """The degree of largest evidence under w ~ N(0, 1/α) of all powers, with known noise."""
    priors = [lk.Gaussian(np.zeros(d + 1), 1 / alpha) for d in range(10)]
    models = [lk.BayesianLinearRegression(Polynomial(d), p, noise_variance=noise) for d, p in enumerate(priors)]
    fits = [model.fit(x, t) for model in models]
    return int(np.argmax([m.log_evidence_ for m in fits]))


def test_powers_of_the_unit_interval_favor_a_quartic():
    """The set-up of the notes to the letter, powers of x in [0, 1] under one α, does not give degree 3.

    The cubic nearest to the sine there has coefficients up to 33, improbable under the prior; a quartic with smaller
    ones fits as well, since powers on [0, 1] are nearly collinear. Degree 4 wins on most seeds, at Bishop's ten points
    as at 25.
    """
    ten, many = ([best_degree(*sine(seed, n, 0.3), 5e-3, 0.09) for seed in range(20)] for n in (10, 25))
    assert ten.count(4) > 10 > ten.count(3) and many.count(4) > 10 > many.count(3)


def test_automatic_relevance_determination_removes_what_says_nothing(rng):
    X = rng.standard_normal((200, 10))
    y = 2 * X[:, 0] - X[:, 4] + 0.5 * rng.standard_normal(200) + 1.0
    m = lk.BayesianLinearRegression(prior="ard").fit(X, y)
    assert m.alpha_.shape == (11,) and m.alpha_[0] == 0 and m.converged_
    assert (np.abs(m.coef_[[0, 4]]) > 0.8).all() and (m.coef_ == 0).sum() >= 4
    assert m.log_evidence_ > lk.BayesianLinearRegression().fit(X, y).log_evidence_


def test_known_relative_noise(rng):
    X, y = made(rng)
    v = rng.choice([0.25, 1.0, 4.0], 80)
    m = lk.LinearRegression().fit(X, y, relative_noise=v)
    peer = lk.LinearRegression().fit(X, y, sample_weight=1 / v)
    np.testing.assert_allclose(m.coefficients_, peer.coefficients_, rtol=1e-11)
    assert float(m.stats_.rows) == 80 and m.summary().facts["residual degrees of freedom"] == 76
    given = lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(4), 4.0), noise_variance=0.3)
    given.fit(X, y, relative_noise=v)
    phi = Identity().design(X)
    wanted = multivariate_normal(np.zeros(80), 0.3 * np.diag(v) + 4.0 * phi @ phi.T).logpdf(y)
    assert given.log_evidence_ == pytest.approx(wanted, rel=1e-9)
    with pytest.raises(DataError, match="positive number per row"):
        lk.LinearRegression().fit(X, y, relative_noise=-v)


def test_missing_entries_are_integrated_out_under_a_joint_gaussian(rng):
    X, y = made(rng, 4000)
    X[:, 2] = 0.8 * X[:, 0] + 0.2 * rng.standard_normal(4000)
    y = 1.0 + X @ [1.0, -0.5, 2.0] + 0.5 * rng.standard_normal(4000)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.2] = np.nan
    with pytest.warns(FitWarning, match="LinearRegression: entries are missing"):
        m = lk.LinearRegression().fit(gaps, y)
    np.testing.assert_allclose(m.coef_, [1.0, -0.5, 2.0], atol=0.15)
    assert m.method_ == "R factor of the scatter"
    mean, std = m.predict(gaps, return_std=True)
    incomplete = np.isnan(gaps).any(axis=1)
    assert std[incomplete].mean() > 1.2 * std[~incomplete].mean()
    z = (y - mean) / std
    assert abs(z.std() - 1) < 0.05 and np.allclose(m.predict(gaps), mean)
    named = pd.DataFrame(gaps, columns=list("abc"))
    with pytest.warns(FitWarning):
        np.testing.assert_allclose(lk.LinearRegression(Identity()).fit(named, y).coef_, m.coef_, rtol=1e-10)
    with pytest.raises(DataError, match=r"Polynomial needs complete rows.*column x"):
        lk.LinearRegression(Polynomial(2)).fit(gaps, y)
    with pytest.raises(DataError, match=r"Polynomial needs complete rows.*column x"):
        lk.LinearRegression(Polynomial(2)).fit(X, y).predict(gaps)
    with pytest.raises(DataError, match="relative_noise needs complete rows"):
        lk.LinearRegression().fit(gaps, y, relative_noise=np.ones(4000))
    with pytest.raises(DataError, match="a stream needs complete rows"):
        lk.LinearRegression().partial_fit(gaps, y)


def test_dependent_functions_are_named(rng):
    X, y = made(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=lambda f: f["a"] - f["b"])
    with pytest.warns(FitWarning, match="LinearRegression: column 'd' is a combination"):
        m = lk.LinearRegression().fit(frame, y)
    np.testing.assert_allclose(
        m.predict(frame), lk.LinearRegression().fit(frame[["a", "b", "c"]], y).predict(X), rtol=1e-9
    )
    alone = lk.LinearRegression().fit(frame[["a", "b", "c"]], y)
    both = m.predict(frame, return_std=True), alone.predict(frame[["a", "b", "c"]], return_std=True)
    np.testing.assert_allclose(*both, rtol=1e-9)
    np.testing.assert_allclose(m.interval(frame, 0.8), alone.interval(frame[["a", "b", "c"]], 0.8), rtol=1e-9)
    np.testing.assert_allclose(m.predictive(frame).mean[:, 0], m.predict(frame), rtol=1e-9)
    other = frame.assign(d=1.0)
    with pytest.raises(DomainError, match="'d' must be the combination of other functions that it was in training, go"):
        m.predictive(other)
    assert np.isfinite(m.predict(other)).all()


def test_the_method_follows_size_and_condition(rng, monkeypatch):
    X, y = made(rng, 500)
    assert lk.LinearRegression().fit(X, y).method_ == "Gram matrix in double-double"
    wanted = lk.LinearRegression().fit(X, y).coefficients_
    monkeypatch.setattr(design_statistics, "PRODUCTS", 0.0)
    m = lk.LinearRegression().fit(X, y)
    assert m.method_ == "R factor of the scatter"
    np.testing.assert_allclose(m.coefficients_, wanted, rtol=1e-13)
    near = np.column_stack([X, X[:, 0] + 1e-3 * rng.standard_normal(500)])
    m = lk.LinearRegression().fit(near, y)
    assert m.method_ == "R factor by QR" and 1e2 < m.condition_number_ < 1e5
    nearer = np.column_stack([X, X[:, 0] + 1e-7 * rng.standard_normal(500)])
    assert lk.LinearRegression().fit(nearer, y).method_ == "Gram matrix in double-double"
    for design in (near, nearer):
        monkeypatch.setattr(design_statistics, "PRODUCTS", 1e99)
        exact = lk.LinearRegression().fit(design, y).coefficients_
        monkeypatch.setattr(design_statistics, "PRODUCTS", 0.0)
        np.testing.assert_allclose(lk.LinearRegression().fit(design, y).coefficients_, exact, rtol=1e-9)
    assert "R factor" in str(m.summary())


@pytest.mark.parametrize(("spread", "method"), [(1.0, "R factor of the scatter"), (1e-3, "R factor by QR")])
def test_rows_are_added_to_what_fit_kept(rng, monkeypatch, spread, method):
    X, y = made(rng, 600)
    X = np.column_stack([X, X[:, 0] + spread * rng.standard_normal(600)])
    whole = lk.LinearRegression().fit(X, y)
    monkeypatch.setattr(design_statistics, "PRODUCTS", 0.0)
    m = lk.LinearRegression().fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert m.method_ == method
    np.testing.assert_allclose(m.coefficients_, whole.coefficients_, rtol=1e-9)
    np.testing.assert_allclose(m.standard_errors_, whole.standard_errors_, rtol=1e-9)


def test_a_stream_that_becomes_ill_conditioned_is_told(rng, monkeypatch):
    X, y = made(rng, 300)
    monkeypatch.setattr(design_statistics, "PRODUCTS", 0.0)
    m = lk.LinearRegression().fit(X[:50], y[:50])
    near = np.repeat(X[:, :1], 3, axis=1) * 1e4 + 1e-2 * X
    with pytest.warns(FitWarning, match=r"the condition number .* exceeds 100, and the R factor of the scatter of fit"):
        m.partial_fit(near, y)


def test_columns_far_from_0_are_as_fast_as_others(rng, monkeypatch):
    """Sums about the mean lose digits by the condition number of centered columns."""
    X, y = made(rng, 500)
    monkeypatch.setattr(design_statistics, "PRODUCTS", 0.0)
    far = lk.LinearRegression().fit(X + 1e4, y)
    assert far.condition_number_ > 1e3 and far.method_ == "R factor of the scatter"
    np.testing.assert_allclose(far.coef_, lk.LinearRegression().fit(X, y).coef_, rtol=1e-10)


@pytest.mark.parametrize("kind", ["pandas", "polars", "object", "list"])
def test_categories_of_any_table(rng, kind):
    city, size = rng.choice(["a", "b", "c"], 90), rng.uniform(1, 2, 90)
    y = 3.0 * (city == "b") - (city == "c") + 2.0 * size + 0.1 * rng.standard_normal(90)
    tables = {
        "pandas": pd.DataFrame({"city": city, "size": size}), "polars": pl.DataFrame({"city": city, "size": size}),
        "object": np.array([city, size], dtype=object).T, "list": np.array([city, size], dtype=object).T.tolist(),
    }  # fmt: skip
    X = tables[kind]
    names = ("city", "size") if kind in ("pandas", "polars") else (0, 1)
    basis = lk.basis.PerColumn({names[0]: lk.basis.OneHot(), names[1]: lk.basis.Polynomial(1)})
    wanted = np.linalg.lstsq(np.column_stack([np.ones(90), city == "b", city == "c", size]), y, rcond=None)[0]
    for model in (lk.LinearRegression(basis), lk.BayesianLinearRegression(basis)):
        m = model.fit(X, y)
        np.testing.assert_allclose(m.coefficients_, wanted, atol=0.2)
        assert m.predict(X).shape == m.predictive(X).mean[:, 0].shape == (90,)
    np.testing.assert_allclose(lk.LinearRegression(basis).fit(X, y).coefficients_, wanted, rtol=1e-9)
    weighted = lk.LinearRegression(basis).fit(X, y, sample_weight=np.arange(90) % 3)
    assert float(weighted.stats_.rows) == (np.arange(90) % 3).sum()


def test_several_targets_have_the_intervals_of_each_alone(rng):
    X, y = made(rng, 30)
    Y = np.column_stack([y, y**2, rng.standard_normal(30)])
    m = lk.LinearRegression().fit(X, Y)
    assert float(m.posterior_.dof) - 3 + 1 == 26
    low, high = m.interval(X, 0.9)
    for j in range(3):
        alone = lk.LinearRegression().fit(X, Y[:, j])
        np.testing.assert_allclose((low[:, j], high[:, j]), alone.interval(X, 0.9), rtol=1e-9)
        np.testing.assert_allclose(m.standard_errors_[j], alone.standard_errors_, rtol=1e-9)


def test_with_missing_entries_standard_errors_and_evidence_are_withheld(rng):
    """Expected moments count incomplete rows as if they were observed: nothing is said rather than too much."""
    X, y = made(rng, 300)
    X[rng.random(X.shape) < 0.3] = np.nan
    y[:100] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = (lk.LinearRegression(), lk.Ridge(), lk.BayesianLinearRegression())
        m, ridge, bayes = (model.fit(X, y) for model in models)
    assert float(m.stats_.rows) == 200
    for model, name in ((m, "standard_errors_"), (m, "covariance_"), (bayes, "log_evidence_")):
        assert not hasattr(model, name)
        with pytest.raises(DomainError, match="with missing entries of X the rows count as if they were observed"):
            getattr(model, name)
    for model in (m, ridge, bayes):
        assert all(row[2] is None for row in model.summary()["coefficients"].rows)
        assert "entries of X were missing" in str(model.summary()) and "AIC" not in model.summary().facts
        assert np.isfinite(model.interval(X[:5], 0.9)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bayes.fit(X[~np.isnan(X).any(axis=1)], y[~np.isnan(X).any(axis=1)]).log_evidence_ < 0
        found = lk.compare([bayes], X, y)
    assert np.isnan(found.log_evidence).all() and found.probabilities is None


@pytest.mark.parametrize("scale", [1e-20, 1e-7, 1e7])
@pytest.mark.parametrize("alpha", [1e-30, 1e-3, 1.0, 1e10])
def test_predictions_of_ridge_are_the_means_of_its_predictive(rng, scale, alpha):
    """Columns of unlike scales and penalties: no singular value is dropped because it is small."""
    X, y = made(rng)
    X = X * [1.0, scale, 1.0]
    m = lk.Ridge(alpha).fit(X, y)
    np.testing.assert_allclose(m.predictive(X).mean[:, 0], m.predict(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(m.path([alpha])[0], m.coefficients_, rtol=1e-12)
    with mpmath.workdps(80):
        phi = mpmath.matrix(Identity().design(X).tolist())
        penalty = mpmath.diag([0, alpha, alpha, alpha])
        want = phi * mpmath.lu_solve(phi.T * phi + penalty, phi.T * mpmath.matrix(y.tolist()))
    np.testing.assert_allclose(m.predict(X), [float(v) for v in want], rtol=1e-9, atol=1e-9)


def test_a_penalty_of_dependent_columns_has_the_solution_of_minimum_norm(rng, monkeypatch):
    X, y = made(rng)
    X = np.column_stack([X, X[:, 0]])
    for products in (1e8, 0.0):
        monkeypatch.setattr(design_statistics, "PRODUCTS", products)
        for alpha, error in ((1e-25, 1e-2), (1e-9, 1e-6)):  # rounding over the root of the penalty
            m = lk.Ridge(alpha).fit(X, y)
            assert m.coef_[0] == pytest.approx(m.coef_[3], rel=error)
            np.testing.assert_allclose(m.predictive(X).mean[:, 0], m.predict(X), rtol=1e-9)


def test_ridge_without_degrees_of_freedom_has_no_noise_variance():
    m = lk.Ridge(1.0).fit([[1.0, 2.0]], [3.0])
    assert m.predict([[1.0, 2.0]]) == pytest.approx([3.0]) and np.isinf(m.noise_variance_)
    with pytest.raises(DomainError, match=r"needs more rows than effective parameters γ, got 1 rows, γ = 1"):
        m.predict([[1.0, 2.0]], return_std=True)
    assert all(row[2] is None for row in m.summary()["coefficients"].rows)
    two = lk.Ridge(1.0).fit([[1.0], [2.0]], [3.0, 4.0])
    assert two.noise_variance_ > 1e-3 and np.isfinite(two.predict([[1.0]], return_std=True)[1]).all()


def test_values_whose_squares_are_0_are_refused(rng):
    X, y = made(rng)
    for bad in ((X * [1.0, 1e-170, 1.0], y), (X, 1e-170 * y)):
        with pytest.raises(DataError, match=r"must be at least 1e-290, got values up to .*e-1[67].*multiply it by"):
            lk.LinearRegression().fit(*bad)
    small = lk.LinearRegression().fit(1e-100 * X, 1e-100 * y)
    np.testing.assert_allclose(small.coef_, lk.LinearRegression().fit(X, y).coef_, rtol=1e-9)


def test_many_coefficients_take_no_cube_of_memory(rng):
    """Standard errors of 300 functions: a cube of their number would be 430 MB."""
    X = rng.standard_normal((700, 300))
    m = lk.LinearRegression().fit(X, X[:, 0] + rng.standard_normal(700))
    tracemalloc.start()
    found = m.standard_errors_
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    phi = Identity().design(X)
    variance = float(m.residual_scatter_[0, 0]) / (700 - 301)
    np.testing.assert_allclose(found, np.sqrt(variance * np.diagonal(np.linalg.inv(phi.T @ phi))), rtol=1e-9)


def test_an_exact_fit_is_said(rng):
    x = np.arange(10.0)[:, None]
    y = 3.0 + 2.0 * x[:, 0]
    m = lk.LinearRegression().fit(x, y)
    np.testing.assert_allclose(m.coefficients_, [3.0, 2.0], rtol=1e-15)
    assert m.residual_scatter_[0, 0] == 0 and "AIC" not in m.summary().facts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for other in (lk.BayesianLinearRegression(), lk.Ridge("evidence"), lk.Ridge("leave-one-out")):
            np.testing.assert_allclose(sklearn.base.clone(other).fit(x, y).predict(x), y, rtol=1e-5)
            assert np.isfinite(sklearn.base.clone(other).fit(x, y).predict(x, return_std=True)[1]).all()


def test_fewer_rows_than_functions(rng):
    X, y = made(rng, 3)
    with pytest.warns(FitWarning, match="combination"):
        m = lk.LinearRegression().fit(X, y)
    np.testing.assert_allclose(m.predict(X), y, rtol=1e-10)
    b = lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(4), 1.0), noise_variance=0.5).fit(X, y)
    assert np.isfinite(b.log_evidence_)


def test_bad_input_is_refused(rng):
    X, y = made(rng)
    with pytest.raises(ShapeError, match="prior of 4 coefficients"):
        lk.BayesianLinearRegression(prior=lk.Gaussian(np.zeros(3), 1.0)).fit(X, y)
    with pytest.raises(DomainError, match='prior must be "evidence"'):
        lk.BayesianLinearRegression(prior="flat").fit(X, y)
    with pytest.raises(DomainError, match="known noise variance"):
        lk.BayesianLinearRegression(noise_variance=1.0).fit(X, y)
    with pytest.raises(DomainError, match="NormalGamma or NormalInverseGamma"):
        lk.BayesianLinearRegression(prior=lk.Gamma(1.0, 1.0)).fit(X, y)
    with pytest.raises(ShapeError, match="one entry, or one row"):
        lk.LinearRegression().fit(X, y[:5])
    with pytest.raises(ValueError, match="at least one non-zero"):
        lk.LinearRegression().fit(X, y, sample_weight=np.zeros(80))
    with pytest.raises(DataError, match="all targets of a row"):
        lk.LinearRegression().fit(X, np.column_stack([y, np.r_[np.nan, y[1:]]]))
    with pytest.raises(DomainError, match="level"):
        lk.LinearRegression().fit(X, y).interval(X, 1.5)
    with pytest.raises(DomainError, match="penalties"):
        lk.Ridge().fit(X, y).path([-1.0])
    with pytest.raises(DomainError, match="alphas"):
        lk.Ridge("leave-one-out", alphas=[-1.0]).fit(X, y)
    with pytest.raises(DataError, match="at least one row with weight"):
        lk.LinearRegression().fit(X, np.full(80, np.nan))
    m = lk.LinearRegression().partial_fit(X, y)
    with pytest.raises(ShapeError, match="1 targets, as before"):
        m.partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(DomainError, match="joint predictive"):
        lk.LinearRegression().fit(X, np.column_stack([y, y + X[:, 0] ** 2])).predictive(X, joint=True)


@pytest.mark.parametrize("model", [lk.LinearRegression(), lk.Ridge(1.0), lk.BayesianLinearRegression()])
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, rng):
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=30)
    before = model.fit(X, y).predictive(X[:3])
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(ValueError):
            learn(X[:2] * [1.0, np.inf], y[:2])
        with pytest.raises(ValueError):
            learn(X[:2], [1.0, 2.0], sample_weight=[0.0, 0.0])
    with pytest.raises(DataError):
        model.fit(X[:2], [np.nan, np.nan])  # after the statistics were made
    after = model.predictive(X[:3])
    assert np.array_equal(before.mean, after.mean) and np.array_equal(before.variance, after.variance)


# ------------------------------------------------- dense algebra with weights and unlike noise


def weighted(rng):
    X, y = made(rng, 40)
    return X, y, rng.integers(1, 4, 40).astype(float), rng.choice([0.5, 1.0, 3.0], 40)


def test_the_equivalent_kernel_with_weights_and_relative_noise(rng):
    X, y, w, v = weighted(rng)
    prior = lk.Gaussian(np.zeros(4), 5.0)
    for m in (lk.BayesianLinearRegression(prior=prior, noise_variance=0.4), lk.Ridge(2.0), lk.LinearRegression()):
        m.fit(X, y, sample_weight=w, relative_noise=v)
        kernel = m.equivalent_kernel(X[:7], X)
        np.testing.assert_allclose(kernel @ (y * w / v), m.predict(X[:7]), rtol=1e-9)
    phi = Identity().design(X)
    m = lk.BayesianLinearRegression(prior=prior, noise_variance=0.4).fit(X, y, sample_weight=w, relative_noise=v)
    S = np.linalg.inv(np.eye(4) / 5.0 + phi.T @ (phi * (w / v)[:, None]) / 0.4)
    np.testing.assert_allclose(m.equivalent_kernel(X, X), phi @ S @ phi.T / 0.4, rtol=1e-9)
    draws = m.sample_functions(X[:3], 4000, rng=0)
    np.testing.assert_allclose(np.cov(draws.T), phi[:3] @ S @ phi[:3].T, atol=0.15 * (phi[:3] @ S @ phi[:3].T).max())


def test_a_posterior_is_continued_by_rows_of_unlike_noise(rng):
    X, y, w, v = weighted(rng)
    for prior in (lk.Gaussian(np.zeros(4), 5.0), lk.priors.NormalGamma(np.zeros(4), 0.1, 2.0, 2.0)):
        model = lk.BayesianLinearRegression(prior=prior, noise_variance=0.4 if isinstance(prior, lk.Gaussian) else None)
        whole = sklearn.base.clone(model).fit(X, y, sample_weight=w, relative_noise=v)
        parts = [
            sklearn.base.clone(model).fit(X[a], y[a], sample_weight=w[a], relative_noise=v[a])
            for a in (slice(0, 15), slice(15, 40))
        ]
        continued = parts[0].posterior_.update(parts[1].stats_)
        np.testing.assert_allclose(continued.mean, whole.posterior_.mean, rtol=1e-10)
        np.testing.assert_allclose(continued.precision, whole.posterior_.precision, rtol=1e-10)
        rest = parts[0].posterior_.log_evidence(parts[1].stats_)  # the chain rule
        assert parts[0].log_evidence_ + float(np.sum(rest)) == pytest.approx(whole.log_evidence_, rel=1e-11)


def test_relevance_has_at_least_the_evidence_of_scikit_learn(rng):
    X = rng.standard_normal((120, 8))
    y = X @ [2.0, -1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0] + 0.6 * rng.standard_normal(120)
    X, y = X - X.mean(axis=0), y - y.mean()
    flat = {"alpha_1": 0, "alpha_2": 0, "lambda_1": 0, "lambda_2": 0}
    peer = sklearn.linear_model.ARDRegression(fit_intercept=False, tol=1e-12, max_iter=5000, **flat).fit(X, y)
    m = lk.BayesianLinearRegression(Identity(constant=False), "ard").fit(X, y)

    def evidence(alpha, beta):
        used = np.isfinite(alpha) & (alpha < 1e8)
        covariance = np.eye(120) / beta + (X[:, used] / alpha[used]) @ X[:, used].T
        return multivariate_normal(np.zeros(120), covariance).logpdf(y)

    assert m.log_evidence_ == pytest.approx(evidence(m.alpha_, m.beta_), rel=1e-9)
    assert m.log_evidence_ >= evidence(peer.lambda_, peer.alpha_) - 1e-6
    used = np.isfinite(m.alpha_)
    assert used[[0, 1, 4]].all()
    np.testing.assert_allclose(m.coef_[[0, 1, 4]], peer.coef_[[0, 1, 4]], rtol=1e-2)

    def negative(logs):
        alpha = np.full(8, np.inf)
        alpha[used] = np.exp(logs[1:])
        return -evidence(alpha, np.exp(logs[0]))

    start = np.log(np.append(m.beta_, m.alpha_[used]))
    dense = scipy.optimize.minimize(negative, start + 0.5, method="BFGS", options={"gtol": 1e-6})
    assert -dense.fun == pytest.approx(m.log_evidence_, abs=1e-6)
