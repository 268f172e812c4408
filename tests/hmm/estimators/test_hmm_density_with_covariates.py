"""HMMDensity with covariates: units, weights, validation, and recovery of coefficients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import likely as lk
from likely.core.covariates import with_covariates
from likely.core.errors import DataError, DomainError
from likely.core.ragged import Ragged
from likely.hmm.estimators.hmm_density import HMMDensity


def simulated(n: int = 60, T: int = 60, seed: int = 0) -> tuple[list, list]:
    beta = np.zeros((2, 2, 2))
    beta[0, 1], beta[1, 0] = (-3.0, 2.0), (-2.0, -2.0)
    truth = lk.HMM([0.5, 0.5], lk.hmm.LogisticTransition(beta), lk.Gaussian([[0.0], [4.0]], 1.0))
    rng = np.random.default_rng(seed)
    u = [rng.normal(0, 1, (T, 1)) for _ in range(n)]
    x = truth.sample(n, rng, covariates=u)
    return [a["frames"] for a in x], u


X, U = simulated()


@pytest.fixture(scope="module")
def fitted() -> HMMDensity:
    return HMMDensity(lk.GaussianDensity(), 2, random_state=0).fit(X, covariates=U)


@pytest.mark.slow
def test_it_finds_what_drives(fitted: HMMDensity) -> None:
    low = int(fitted.model_.emission.mean[:, 0].argmin())
    beta, high = fitted.coefficients_, 1 - low
    assert_allclose(beta[low, high] - beta[low, low], [-3.0, 2.0], atol=0.4)
    assert_allclose(beta[high, low] - beta[high, high], [-2.0, -2.0], atol=0.4)
    assert fitted.report_.converged
    assert (np.diff(fitted.report_.trace) >= -1e-6).all()


@pytest.mark.slow
def test_it_explains_new_sequences_better_than_a_plain_chain(fitted: HMMDensity) -> None:
    x, u = simulated(seed=1)
    plain = lk.HMMDensity(lk.GaussianDensity(), 2, random_state=0).fit(X)
    assert fitted.score(x, covariates=u) > plain.score(x) + 2.0


@pytest.mark.slow
def test_units_of_covariates_do_not_matter(fitted: HMMDensity) -> None:
    other = clone(fitted).fit(X, covariates=[1e6 + 1e-3 * u for u in U])
    assert_allclose(other.score(X, covariates=[1e6 + 1e-3 * u for u in U]), fitted.score(X, covariates=U), rtol=1e-6)


@pytest.mark.slow
def test_weights_are_copies_and_zero_is_absence() -> None:
    w = np.array([2.0, 1.0, 0.0, 1.0] * 5)
    at = np.repeat(np.arange(20), w.astype(int))
    one = HMMDensity(lk.GaussianDensity(), 2, random_state=0, tol=1e-9, max_iter=600)
    a = clone(one).fit(X[:20], covariates=U[:20], sample_weight=w)
    b = clone(one).fit([X[i] for i in at], covariates=[U[i] for i in at])
    assert_allclose(a.score(X, covariates=U), b.score(X, covariates=U), rtol=1e-5)


@pytest.mark.slow
def test_frames_and_covariates_may_travel_together(fitted: HMMDensity) -> None:
    both = with_covariates(X, U)
    together = clone(fitted).fit(both)
    assert_allclose(together.score_samples(both), fitted.score_samples(X, covariates=U))
    assert len(cross_val_score(clone(fitted).set_params(max_iter=4, tol=1e-3), both, cv=3)) == 3


def test_answers_are_of_the_kind_that_was_asked(fitted: HMMDensity) -> None:
    one = fitted.predict(X[0], covariates=U[0])
    assert one.shape == (60,)
    assert isinstance(fitted.predict(X, covariates=U), Ragged)
    assert_allclose(fitted.predict_proba(X[0], covariates=U[0]).sum(axis=1), 1.0)
    drawn = fitted.sample(3, 0, covariates=U[:3])
    assert drawn[2]["frames"].shape == (60, 1)
    assert fitted.forecast(X[0], 2, covariates=[[0.0], [1.0]], past=U[0]).states.shape == (2, 2)


@pytest.mark.slow
def test_other_emissions_topologies_and_priors() -> None:
    words = [np.where(x[:, 0] > 2, "b", "a") for x in X[:20]]
    levels = HMMDensity(lk.CategoricalDensity(), 2, random_state=0, max_iter=10, tol=1e-3)
    assert np.isfinite(levels.fit(words, covariates=U[:20]).score(words, covariates=U[:20]))
    forward = HMMDensity(lk.GaussianDensity(), 3, topology="left-to-right", tol=1e-3).fit(X[:20], covariates=U[:20])
    assert np.allclose(np.tril(forward.model_.transition.matrices([[0.3]])[0], -1), 0)
    assert_allclose(forward.model_.initial, [1, 0, 0])
    loose = HMMDensity(n_states=2, prior=None, tol=1e-3, random_state=0).fit(X, covariates=U)
    firm = lk.priors.LogisticPrior(1.0, [0.0], [1e4])  # effects of about 0.01
    tight = HMMDensity(n_states=2, prior=firm, tol=1e-3, random_state=0).fit(X, covariates=U)
    assert np.abs(tight.coefficients_[:, :, 1]).max() < 0.1 < np.abs(loose.coefficients_[:, :, 1]).max()


@pytest.mark.slow
def test_missing_values_in_frames_are_integrated_out() -> None:
    rng = np.random.default_rng(5)
    x = [np.where(rng.random(a.shape) < 0.2, np.nan, a) for a in X]
    found = HMMDensity(n_states=2, random_state=0, tol=1e-4).fit(x, covariates=U)
    assert_allclose(np.sort(found.model_.emission.mean[:, 0]), [0.0, 4.0], atol=0.2)


def test_the_summary_tells_of_moves(fitted: HMMDensity) -> None:
    page = fitted.summary()
    told = {(row.column, row.parameter): row.estimate for row in page["parameters"].rows}
    beta = fitted.coefficients_
    assert_allclose(told["0 to 1", "log-odds by covariate 0"], beta[0, 1, 1] - beta[0, 0, 1])
    assert ("1: x0", "mean") in told
    assert_allclose(page.facts["log-likelihood"], fitted.score_samples(X, covariates=U).sum(), rtol=1e-9)
    assert "LogisticPrior" in str(page) and page.facts["covariates"] == 1


@pytest.mark.slow
def test_missing_values_are_filled_by_what_drives(fitted: HMMDensity) -> None:
    x = [a.copy() for a in X]
    x[0][10:20] = np.nan
    filled = fitted.impute(x, covariates=U)
    assert isinstance(filled, list)
    states = fitted.predict_proba(x[0], covariates=U[0])
    assert_allclose(filled[0][10:20], (states @ fitted.model_.emission.mean)[10:20])
    assert_allclose(filled[1], X[1])
    both = fitted.impute(with_covariates(x, U))
    assert_allclose(both[0]["frames"], filled[0])
    drawn = np.stack([fitted.impute(x[:1], s, covariates=U[:1])[0][10:20] for s in range(200)])
    assert_allclose(drawn.mean(axis=0), filled[0][10:20], atol=0.6)


def test_units_of_gain_and_of_statistics(fitted: HMMDensity) -> None:
    assert "gain below 1e-05 per frame" in fitted.report_.reason
    assert fitted.stats_.unit == "frame"
    assert_allclose([fitted.stats_.units, fitted.stats_.sequences], [sum(map(len, X)), len(X)])


def test_what_needs_constant_transitions_is_refused() -> None:
    for setting in ({"order": 2}, {"durations": 3}, {"emit": "transitions"}, {"final": True}):
        with pytest.raises(DomainError, match="a topology of emitting states alone"):
            HMMDensity(n_states=2, **setting).fit(X[:5], covariates=U[:5])
    plain = HMMDensity(n_states=2, random_state=0).fit(X[:5])
    with pytest.raises(AttributeError, match="fitted without covariates"):
        _ = plain.coefficients_
    with pytest.raises(DomainError, match="take no covariates"):
        plain.model_.log_prob(X[:5], U[:5])


@pytest.mark.slow
def test_one_long_array_may_be_cut(fitted: HMMDensity) -> None:
    lengths = [len(x) for x in X]
    long, drivers = np.concatenate(X), np.concatenate(U)
    cut = clone(fitted).fit(long, covariates=drivers, lengths=lengths)
    assert_allclose(cut.coefficients_, fitted.coefficients_)
    assert_allclose(cut.score_samples(long, lengths, covariates=drivers), fitted.score_samples(X, covariates=U))
    assert len(cut.predict(long, lengths, covariates=drivers)) == len(X)
    live = fitted.predict_proba(X, covariates=U, lag=0)
    assert_allclose(cut.predict_proba(long, lengths, lag=0, covariates=drivers).values, live.values)
    assert_allclose(live[0], fitted.model_.posterior(X[0], 0, U[0]))
    with pytest.raises(lk.LikelyError, match="lengths"):
        cut.fit(long, covariates=drivers, lengths=[10, 10])


@pytest.mark.slow
def test_known_states_are_kept(fitted: HMMDensity) -> None:
    path = fitted.predict(X, covariates=U)
    swapped = [np.where(np.arange(len(s)) % 2, -1, 1 - s) for s in path]  # every other one is known, by other numbers
    given = clone(fitted).fit(X, covariates=U, states=swapped)
    assert_allclose(given.model_.emission.mean, fitted.model_.emission.mean[::-1], atol=0.1)
    assert_allclose(given.coefficients_[::-1, ::-1, 1], fitted.coefficients_[:, :, 1], atol=0.3)
    w = np.r_[np.ones(30), np.zeros(30)]
    half = clone(fitted).fit(X, covariates=U, states=swapped, sample_weight=w)
    same = clone(fitted).fit(X[:30], covariates=U[:30], states=swapped[:30])
    assert_allclose(half.coefficients_, same.coefficients_, rtol=1e-6, atol=1e-8)
    with pytest.raises(lk.LikelyError, match="one entry per frame"):
        clone(fitted).fit(X, covariates=U, states=swapped[:3])
    with pytest.raises(lk.LikelyError, match="known states must be 0 … 1"):
        clone(fitted).fit(X, covariates=U, states=[s + 2 for s in path])


@pytest.mark.slow
def test_best_paths_alone_also_teach(fitted: HMMDensity) -> None:
    hard = clone(fitted).set_params(hard=True).fit(X, covariates=U)
    assert hard.report_.converged
    assert (np.diff(hard.report_.trace) >= -1e-6).all()
    assert_allclose(np.sort(hard.model_.emission.mean[:, 0]), [0.0, 4.0], atol=0.2)
    low = int(hard.model_.emission.mean[:, 0].argmin())
    beta = hard.coefficients_
    assert beta[low, 1 - low, 1] - beta[low, low, 1] > 1
    best = hard.model_.viterbi(X, U).log_prob.sum()
    assert_allclose(hard.model_.objective(hard.stats_), best, rtol=1e-9)


@pytest.mark.slow
def test_a_fit_that_was_cut_off_goes_on(fitted: HMMDensity, tmp_path: Path) -> None:
    kept = tmp_path / "progress"
    with pytest.warns(lk.FitWarning, match="not converged"):
        clone(fitted).set_params(max_iter=1).fit(X, covariates=U, checkpoint=kept)
    again = clone(fitted).fit(X, covariates=U, checkpoint=kept)
    assert_allclose(again.coefficients_, fitted.coefficients_, rtol=1e-10)
    assert again.report_.converged
    assert_allclose(again.report_.trace, fitted.report_.trace, rtol=1e-12)


@pytest.mark.slow
def test_what_is_wrong_is_said_in_words(fitted: HMMDensity) -> None:
    bad = [u.copy() for u in U]
    bad[3][7] = np.nan
    with pytest.raises(DataError, match="sequence 3, frame 7, column 0"):
        clone(fitted).fit(X, covariates=bad)
    with pytest.raises(DataError, match="every frame needs its covariates"):
        fitted.score(X)
    with pytest.raises(DomainError, match="needed at once"):
        fitted.partial_fit(X)
    clf = lk.BayesClassifier(HMMDensity(n_states=2, max_iter=2)).partial_fit(with_covariates(X, U), ["a", "b"] * 30)
    with pytest.raises(DomainError, match="needed at once"):
        clf.partial_fit(with_covariates(X, U), ["a", "b"] * 30)
    with pytest.warns(lk.FitWarning, match="not converged"):
        clone(fitted).set_params(max_iter=2, tol=0.0).fit(X, covariates=U)
