"""PPCA and factor analysis: densities and transformers at once, with missing values, weights and streams."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition
from sklearn.base import clone

import likely as lk
from likely.core.em_loop import StoppingRule, fit
from likely.decomposition.estimators.factor_analysis import PPCA, FactorAnalysis
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.mixture.mixture import Mixture
from tests.cases import scikit_learn_checks

BOTH = [PPCA, FactorAnalysis]


@scikit_learn_checks(
    [PPCA(), PPCA(1, prior=None), PPCA(1, method="em"), FactorAnalysis(), FactorAnalysis(1, prior=None)]
)
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


def make_rows(rng, n=400, d=8, q=2):
    return rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + rng.normal(size=(n, d)) * rng.uniform(0.3, 0.8, d)


def with_gaps(X, rng, share=0.15):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def test_ppca_is_as_likely_as_scikit_learns(rng):
    X = make_rows(rng)
    ours, peer = PPCA(2, prior=None).fit(X), decomposition.PCA(2).fit(X)
    # scikit-learn divides by n − 1: what it scores is a little off the maximum
    assert ours.score(X) >= peer.score(X) and ours.score(X) == pytest.approx(peer.score(X), rel=1e-4)
    np.testing.assert_allclose(ours.covariance_ * 400 / 399, peer.get_covariance(), rtol=1e-9)


def test_factor_analysis_is_as_likely_as_scikit_learns(rng):
    X = make_rows(rng)
    peer = decomposition.FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(X)
    ours = FactorAnalysis(2, prior=None).fit(X)
    assert ours.score(X) >= peer.score(X) - 1e-6
    np.testing.assert_allclose(ours.covariance_, peer.get_covariance(), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_em_ends_at_the_closed_form(rng):
    X = make_rows(rng)
    for prior in (None, "weak"):
        closed = PPCA(2, prior=prior).fit(X)
        em = PPCA(2, prior=prior, method="em", max_iter=2000, tol=1e-12, random_state=3).fit(X)
        assert em.report_.converged and (np.diff(em.report_.trace) >= -1e-9).all()
        assert em.report_.objective == pytest.approx(closed.report_.objective, abs=1e-6)
        np.testing.assert_allclose(em.covariance_, closed.covariance_, atol=1e-3)
    gaps = with_gaps(X, rng)
    closed = PPCA(2, max_iter=2000, tol=1e-11).fit(gaps)
    em = PPCA(2, method="em", max_iter=5000, tol=1e-11, random_state=0).fit(gaps)
    np.testing.assert_allclose(em.covariance_, closed.covariance_, atol=1e-3)
    with pytest.warns(lk.FitWarning, match="not converged"):
        PPCA(2, method="em", max_iter=2).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
def test_the_number_of_factors_is_found(rng, kind):
    X = make_rows(rng, 1000, 10, 3)
    # one noise for all columns would need factors for the columns' own: give PPCA what it assumes
    X = (
        X
        if kind is FactorAnalysis
        else rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 10)) + 0.5 * rng.normal(size=(1000, 10))
    )
    assert kind().fit(X).n_components_ == 3
    assert kind().fit(with_gaps(X, rng, 0.05)).n_components_ == 3
    stream = kind()
    for part in np.array_split(X, [3, 200]):
        stream.partial_fit(part)
    assert stream.n_components_ == 3
    np.testing.assert_allclose(stream.covariance_, kind().fit(X).covariance_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", BOTH)
def test_chunks_equal_the_batch(rng, kind):
    X, w = make_rows(rng), rng.random(400)
    batch, stream = kind(2, prior=None).fit(X, sample_weight=w), kind(2, prior=None)
    for at in np.array_split(np.arange(400), 5):
        stream.partial_fit(X[at], sample_weight=w[at])
    np.testing.assert_allclose(stream.components_, batch.components_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(stream.noise_variance_, batch.noise_variance_, rtol=1e-9)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("gaps", [False, True])
def test_a_weight_is_a_repetition(rng, kind, gaps):
    X, times = make_rows(rng, 120, 5, 1), rng.integers(0, 3, 120)
    X = with_gaps(X, rng) if gaps else X
    made = kind(1, prior=None, max_iter=5000, tol=1e-12) if gaps else kind(1)
    a = made.fit(X, sample_weight=times).covariance_
    b = made.fit(np.repeat(X, times, axis=0)).covariance_
    np.testing.assert_allclose(a, b, rtol=1e-4 if gaps else 1e-9, atol=1e-5 if gaps else 1e-10)  # EM stops near


@pytest.mark.parametrize("kind", BOTH)
def test_missing_values_are_learned_from_and_filled(rng, kind):
    whole = make_rows(rng, 1000, 8, 2)
    X = with_gaps(whole, rng, 0.2)
    p = kind(2).fit(X)
    np.testing.assert_allclose(p.covariance_, np.cov(whole.T), atol=0.35)
    missing = np.isnan(X)
    guess = p.impute(X)
    np.testing.assert_array_equal(guess[~missing], X[~missing])
    assert ((guess - whole)[missing] ** 2).mean() < 0.6 * whole[missing].var()
    drawn = p.impute(X, random_state=0)
    assert 1.2 < ((drawn - whole)[missing] ** 2).mean() / ((guess - whole)[missing] ** 2).mean() < 3
    assert p.transform(X).shape == (1000, 2) and np.isfinite(p.transform(X)).all()
    np.testing.assert_allclose(p.score_samples(X), p.model_.gaussian.log_prob(X), rtol=1e-8)


@pytest.mark.parametrize("kind", BOTH)
def test_there_and_back(rng, kind):
    X = pd.DataFrame(make_rows(rng), columns=list("abcdefgh"))
    p = kind(2).set_output(transform="pandas").fit(X)
    Z = p.transform(X)
    assert Z.columns.tolist() == [f"{kind.__name__.lower()}{i}" for i in (0, 1)]
    np.testing.assert_allclose(p.inverse_transform(Z), p.model_.reconstruct(X.to_numpy()))


def test_columns_are_called_by_name(rng):
    X = pd.DataFrame(make_rows(rng), columns=list("abcdefgh"))
    X["a"] = 3.0
    with pytest.warns(lk.FitWarning, match="FactorAnalysis: column 'a' is"):
        FactorAnalysis(2).fit(X)


@pytest.mark.parametrize("density", [PPCA(2), FactorAnalysis(2)])
def test_one_for_each_class(rng, density):
    X = np.concatenate([make_rows(rng, 200, 12), make_rows(rng, 200, 12)])
    y = np.repeat(["a", "b"], 200)
    c = lk.BayesClassifier(density).fit(X, y)
    assert c.score(X, y) > 0.9
    assert isinstance(c.model_.components, FactorGaussian) and c.model_.components.members == 2


@pytest.mark.parametrize("density", [PPCA(1), FactorAnalysis(1)])
def test_a_mixture_of_them_finds_two_lines(rng, density):
    """Two crossing lines with noise: hidden labels, EM from a start that is half wrong."""
    lines = np.array([[1.0, 1.0, 0.2, 0.5], [1.0, -1.0, 0.5, -0.2]])
    label = np.arange(600) % 2
    X = 3 * rng.normal(size=(600, 1)) * lines[label] + 0.2 * rng.normal(size=(600, 4))
    start = Mixture([0.5, 0.5], density.blank_model(X, members=2))
    guess = np.where(rng.random(600) < 0.25, 1 - label, label)
    stats = start.collect(X, labels=guess)
    prior = start.weak_prior(stats)
    report = fit(start.refit(stats, prior), X, prior=prior, stop=StoppingRule(300, 1e-7))
    assert (np.diff(report.trace) >= -1e-7).all()
    assert (report.model.posterior(X).argmax(axis=1) == label).mean() > 0.9


def test_what_is_refused(rng):
    X = make_rows(rng, 20, 3, 1)
    with pytest.raises(lk.ShapeError, match="PPCA: at most 3 factors"):
        PPCA(4).fit(X)
    with pytest.raises(lk.DataError, match="finite"):
        PPCA(1).fit(np.where(np.arange(60).reshape(20, 3) == 5, np.inf, X))
    with pytest.raises(ValueError, match="n_components"):
        FactorAnalysis(-1).fit(X)


def test_oil_flow(data_dir):
    """12 measurements of a pipe: four factors a class tell the flows apart, and fill a third of the entries."""
    z = np.load(data_dir / "tables" / "oil_flow.npz")
    X, y = z["x_train"], z["y_train"]
    c = lk.BayesClassifier(PPCA(4)).fit(X, y)
    assert c.score(z["x_test"], z["y_test"]) > 0.95
    gaps = with_gaps(X, np.random.default_rng(0), 0.3)
    p = PPCA(4).fit(gaps)
    filled = p.impute(gaps)
    missing = np.isnan(gaps)
    assert ((filled - X)[missing] ** 2).mean() < 0.45 * ((X - X.mean(axis=0))[missing] ** 2).mean()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_digits_by_a_ppca_for_each(data_dir):
    """USPS: thirty factors a class (6.4 %) beat one covariance for all (11.5 %)."""
    z = np.load(data_dir / "digits" / "usps.npz")
    X, y, T, t = (z[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    X, T = X.reshape(-1, 256).astype(float), T.reshape(-1, 256).astype(float)
    error = 1 - lk.BayesClassifier(PPCA(30)).fit(X, y).score(T, t)
    assert error < 0.07


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("prior", ["weak", None])
def test_a_column_that_no_row_shows_has_no_say(rng, kind, prior):
    X = make_rows(rng, 400, 6, 2)
    more = np.insert(X, 3, np.nan, axis=1)
    rest = np.delete(np.arange(7), 3)
    for made in (kind(2, prior=prior), kind(prior=prior)):
        alone = made.fit(X)
        want, score, covariance = made.n_components_, alone.score(X), alone.covariance_
        with pytest.warns(lk.FitWarning, match=f"{kind.__name__}: column 3 is never observed"):
            made.fit(more)
        assert made.n_components_ == want and made.score(more) == pytest.approx(score, abs=1e-9)
        np.testing.assert_allclose(made.covariance_[np.ix_(rest, rest)], covariance, rtol=1e-9, atol=1e-10)
        assert not made.components_[:, 3].any()
        if kind is PPCA:
            assert made.covariance_[3, 3] == pytest.approx(made.noise_variance_)


def test_em_with_a_column_that_no_row_shows(rng):
    X = make_rows(rng, 300, 5, 1)
    with pytest.warns(lk.FitWarning, match="never observed|never"):
        closed = PPCA(1).fit(np.column_stack([X, np.full(300, np.nan)]))
    em = PPCA(1, method="em", random_state=0, max_iter=2000, tol=1e-10).fit(np.column_stack([X, np.full(300, np.nan)]))
    np.testing.assert_allclose(em.covariance_, closed.covariance_, atol=1e-3)
    assert (np.diff(em.report_.trace) >= -1e-9 * np.abs(em.report_.trace[:-1])).all()


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_a_class_that_never_saw_a_column(rng, prior):
    """Its other columns are learned as if that one were not there; a weak prior knows of it what other classes saw."""
    X, y = make_rows(rng, 600, 6, 2), np.repeat([0, 1], 300)
    X[:, 2] *= 30.0
    X[y == 1] += 3.0
    X[y == 1, 2] = np.nan
    model = lk.BayesClassifier(PPCA(2, prior=prior)).fit(X, y).model_.components.member(1)
    mine = np.delete(X[y == 1], 2, axis=1)
    alone = PPCA(2, prior=prior).fit(mine)
    at = [0, 1, 3, 4, 5]
    assert model.marginal(at).log_prob(mine).mean() == pytest.approx(alone.score(mine), abs=0.02 if prior else 1e-9)
    if prior is None:
        assert (
            float(model.noise_variance) == pytest.approx(alone.noise_variance_, rel=1e-9)
            and not model.loadings[2].any()
        )
    else:
        assert 1.0 < model.variance[2]


@pytest.mark.parametrize("scale", [1e-140, 1e-100, 1e-90, 1e90, 1e100, 1e140])
@pytest.mark.parametrize("prior", ["weak", None])
def test_em_over_the_factors_at_the_ends_of_the_numbers(rng, scale, prior):
    X = make_rows(rng, 200, 5, 2)
    made = PPCA(2, method="em", random_state=0, prior=prior, max_iter=1000)
    want = made.fit(X).covariance_
    far = made.fit(X * scale)
    np.testing.assert_allclose(far.covariance_ / scale / scale, want, rtol=1e-9, atol=1e-10)
    assert far.report_.converged and (np.diff(far.report_.trace) > 0).all()


def test_em_over_the_factors_does_not_take_a_step_down(rng, monkeypatch):
    X = make_rows(rng, 200, 5, 2)
    step = FactorGaussian.em_step
    monkeypatch.setattr(FactorGaussian, "em_step", lambda s, *a: step(s, *a).replace(noise_variance=np.asarray(1e-7)))
    with pytest.warns(lk.FitWarning, match="not converged: the next step would be worse"):
        p = PPCA(2, method="em", random_state=0).fit(X)
    assert p.noise_variance_ > 1e-7 and len(p.report_.trace) == 1


@pytest.mark.parametrize("kind", BOTH)
def test_where_nothing_moves_columns_together_there_is_no_factor(rng, kind):
    X = rng.normal(size=(500, 5))
    p = kind().fit(X)
    assert p.n_components_ == 0 and p.transform(X).shape == (500, 0) and p.components_.shape == (0, 5)
    assert kind().fit(with_gaps(X, rng)).n_components_ == 0
    assert kind().partial_fit(X[:250]).partial_fit(X[250:]).n_components_ == 0
    assert kind().fit(X[:, :1]).n_components_ == 0


@pytest.mark.parametrize("kind", BOTH)
def test_infinity_is_refused_by_row_and_column(rng, kind):
    X = make_rows(rng, 60, 4, 1)
    bad = X[:3].copy()
    bad[1, 2], bad[2, 0] = np.inf, np.nan
    for q in (0, 1):
        p = kind(q).fit(X)
        for verb in (p.impute, p.transform, p.score_samples, p.model_.reconstruct, p.model_.posterior):
            with pytest.raises(lk.DataError, match="inf at row 1, column 2"):
                verb(bad)
        with pytest.raises(lk.DataError, match="inf at row 1, column 2"):
            p.impute(bad, random_state=0)
    with pytest.raises(lk.DataError, match=rf"{kind.__name__}.*inf at row 1, column 2"):
        kind(1).fit(bad)


def test_nothing_observed_is_the_estimators_own_error():
    nothing = np.full((5, 3), np.nan)
    for made in (PPCA(1), PPCA(), PPCA(1, method="em"), FactorAnalysis(1), FactorAnalysis(prior=None)):
        for learn in (made.fit, made.partial_fit):
            words = "(something must be|at least one entry must have been) observed"
            with pytest.raises(lk.DataError, match=rf"^{type(made).__name__}: {words}"):
                learn(nothing)


def test_the_report_says_how_it_was_found(rng):
    X = make_rows(rng, 100, 4, 1)
    assert "closed form" in PPCA(1).fit(X).report_.reason
    assert "Newton" in FactorAnalysis(1).fit(X).report_.reason
    assert "Newton" in FactorAnalysis(1).partial_fit(X).report_.reason
    assert "closed form" in FactorAnalysis(0).fit(X).report_.reason
    assert "gain below" in FactorAnalysis(1).fit(with_gaps(X, rng)).report_.reason


@pytest.mark.parametrize("made", [PPCA(2), PPCA(), PPCA(2, method="em", random_state=0), FactorAnalysis(2)])
def test_order_and_copies_do_not_matter_to_em(rng, made):
    X, times = with_gaps(make_rows(rng, 3000, 6, 2), rng), rng.integers(1, 4, 3000)
    X, times = X[np.argsort(X[:, 0])], np.sort(times)  # the first rows look like no others
    a = made.fit(X, sample_weight=times).covariance_
    b = made.fit(np.repeat(X, times, axis=0)[rng.permutation(times.sum())]).covariance_
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def thin(n, seed):
    """Six columns that two causes move together, noise 0.01, and the same with 15 % of the entries missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ np.random.default_rng(7).normal(size=(2, 6)) + 0.1 * rng.normal(size=(n, 6))
    return X, with_gaps(X, rng)


@pytest.mark.slow
@pytest.mark.parametrize("made", [PPCA(2), PPCA(2, method="em", random_state=0), FactorAnalysis(2)])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_the_weak_prior_adds_no_noise_where_entries_are_missing(made):
    """A prior made of rows that a model without factors had filled doubled the noise, and more (0.018 for 0.0097)."""
    gaps, new = thin(200, 0)[1], thin(2000, 99)[0]
    weak = clone(made).fit(gaps)
    plain = clone(made).set_params(prior=None).fit(gaps)
    assert np.mean(weak.noise_variance_) < 1.1 * np.mean(plain.noise_variance_)
    assert weak.score(new) > plain.score(new) - 0.02


@pytest.mark.parametrize("made", [PPCA(2), FactorAnalysis(2), lk.GaussianDensity(), lk.StudentTDensity(dof=50.0)])
def test_a_stream_with_missing_values_learns_how_to_fill_them_from_its_first_rows(made):
    """One step from a first model without correlations would stay in the statistics: 1.1 nats per row and more."""
    gaps, new = thin(1000, 0)[1], thin(2000, 99)[0]
    stream = clone(made)
    for i in range(0, 1000, 200):
        stream.partial_fit(gaps[i : i + 200])
    assert stream.score(new) > clone(made).fit(gaps).score(new) - 0.05
