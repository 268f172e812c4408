"""FisherDiscriminant against linear discriminant analysis; streams, weights, and data with hazards."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

import likely as lk
from tests.reliability.test_hazards_of_estimators import ANSWERED, GAPS, REFUSED, table


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("solver", ["eigen", "svd"])
def test_with_all_axes_it_is_linear_discriminant_analysis(load, solver):
    X, y = load(return_X_y=True)
    mine, peer = lk.FisherDiscriminant().fit(X, y), LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    tolerance = 1e-10 if solver == "eigen" else 0.02  # svd divides by n − K
    assert np.abs(mine.predict_proba(X) - peer.predict_proba(X)).max() <= tolerance
    assert np.array_equal(mine.predict(X), peer.predict(X))
    pooled = lk.BayesClassifier(lk.GaussianDensity("pooled", prior=None)).fit(X, y)
    assert np.abs(mine.predict_proba(X) - pooled.predict_proba(X)).max() <= 1e-10
    z, w = mine.transform(X), peer.transform(X)
    for j in range(z.shape[1]):  # the same axes, up to sign and n against n − K
        assert abs(np.corrcoef(z[:, j], w[:, j])[0, 1]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.slow
def test_constant_columns_of_digits():
    X, y = load_digits(return_X_y=True)
    mine, peer = lk.FisherDiscriminant().fit(X, y), LinearDiscriminantAnalysis().fit(X, y)
    assert mine.transform(X).shape == (1797, 9)
    assert (mine.predict(X) == peer.predict(X)).mean() > 0.999


def test_streams_weights_and_file(tmp_path):
    X, y = load_iris(return_X_y=True)
    whole = lk.FisherDiscriminant(1).fit(X, y)
    parts = lk.FisherDiscriminant(1)
    for a in range(0, 150, 37):
        parts.partial_fit(X[a : a + 37], y[a : a + 37], classes=[0, 1, 2])
    assert np.abs(whole.transform(X) - parts.transform(X)).max() <= 1e-11
    w = np.random.default_rng(0).integers(0, 3, 150)
    weighted = lk.FisherDiscriminant().fit(X, y, sample_weight=w)
    copies = lk.FisherDiscriminant().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert np.abs(weighted.transform(X) - copies.transform(X)).max() <= 1e-11
    lk.save(whole, tmp_path / "f.likely")
    assert lk.load(tmp_path / "f.likely").transform(X).tobytes() == whole.transform(X).tobytes()


def test_it_stands_in_a_pipeline_and_names_its_columns():
    X, y = load_wine(return_X_y=True)
    pipe = make_pipeline(lk.FisherDiscriminant(2), lk.BayesClassifier()).fit(X, y)
    assert pipe.score(X, y) > 0.98
    assert pipe[0].get_feature_names_out().tolist() == ["fisherdiscriminant0", "fisherdiscriminant1"]


def test_it_decides_with_costs_and_refuses():
    X, y = load_iris(return_X_y=True)
    f = lk.FisherDiscriminant(class_prior="uniform", reject_below=0.9).fit(X, y)
    assert sum(d is lk.REJECT for d in f.decide(X)) > 0
    with pytest.raises(lk.DomainError, match="novelty needs"):
        f.decide(X, novelty=0.1)
    assert f.criterion_ == pytest.approx(f.ratios_.sum())


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")
@pytest.mark.parametrize("hazard", ANSWERED)
def test_hazards_that_have_an_answer(hazard):
    X, y = ANSWERED[hazard]()
    P = lk.FisherDiscriminant().fit(X, y).predict_proba(X)
    assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("hazard", GAPS)
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_hazards_with_missing_values_have_an_answer_or_a_sentence(hazard):
    X, y = GAPS[hazard]()
    try:
        P = lk.FisherDiscriminant().fit(X, y).predict_proba(X)
    except lk.DataError as error:
        assert "must be observed in some row" in str(error) or "must vary" in str(error)
        assert hazard in ("a column never seen", "everything missing but one")
    else:
        assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1)


@pytest.mark.parametrize("axes", [None, 1])
@pytest.mark.parametrize("trained", ["complete", "gaps"])
def test_rows_with_missing_values_are_decided_and_placed_by_what_was_seen(axes, trained):
    """Against dense formulas: Gaussians of one covariance with means that differ along the axes, each row's own."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    holes = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    if trained == "gaps":
        with pytest.warns(lk.FitWarning, match="FisherDiscriminant: entries are missing: .* found by EM"):
            f = lk.FisherDiscriminant(axes).fit(holes, y)
    else:
        f = lk.FisherDiscriminant(axes).fit(X, y)
    W, n = f.stats_.scatter.sum(axis=0) / f.stats_.weight.sum(), len(X)
    m = f.stats_.weight @ f.stats_.mean / n
    B = f.axes_.axes
    means = m + (f.stats_.mean - m) @ B.T @ B @ W  # B W Bᵀ = 1
    logs, placed = np.empty((n, 3)), np.empty((n, len(B)))
    for i, x in enumerate(holes):
        g, o = np.isnan(x), ~np.isnan(x)
        inverse = np.linalg.inv(W[np.ix_(o, o)])
        away = x[o] - means[:, o]
        logs[i] = np.log(f.class_prior_) - 0.5 * np.einsum("ki,ij,kj->k", away, inverse, away)
        logs[i] -= np.logaddexp.reduce(logs[i])
        filled = np.repeat(x[None], 3, axis=0)
        filled[:, g] = means[:, g] + away @ inverse @ W[np.ix_(o, g)]
        placed[i] = np.exp(logs[i]) @ (filled - m) @ B.T
    np.testing.assert_allclose(np.exp(f.log_posterior(holes)), np.exp(logs), atol=1e-4)
    np.testing.assert_allclose(f.transform(holes), placed, atol=1e-3)
    assert f.score(holes, y) > 0.93
    empty = np.full((1, 4), np.nan)
    np.testing.assert_allclose(f.predict_proba(empty), f.class_prior_[None], atol=1e-12)
    together = f.predict_proba(np.vstack([X[:3], empty]))  # complete rows are what they are alone
    np.testing.assert_array_equal(together[:3], f.predict_proba(X[:3]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_a_stream_with_missing_values_comes_near_the_batch():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X, order = np.where(rng.random(X.shape) < 0.15, np.nan, X), rng.permutation(150)
    whole, stream = lk.FisherDiscriminant().fit(X, y), lk.FisherDiscriminant()
    for part in np.array_split(order, 3):
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(stream.ratios_, whole.ratios_, rtol=0.1)


@pytest.mark.parametrize("hazard", REFUSED)
def test_hazards_that_are_refused(hazard):
    make, says = REFUSED[hazard]
    X, y = make()
    with pytest.raises((ValueError, TypeError), match=says):
        lk.FisherDiscriminant().fit(X, y)


@pytest.mark.parametrize("unit", [1e-160, 1e160])
def test_spreads_whose_squares_are_no_numbers_are_refused(unit):
    X, y = table()
    with pytest.raises(lk.DataError, match="rescale"):
        lk.FisherDiscriminant().fit(X * unit, y)


def test_one_class_is_too_few():
    with pytest.raises(lk.DataError, match="at least two classes"):
        lk.FisherDiscriminant().fit([[1.0], [2.0]], [1, 1])


def test_what_cannot_be_had_is_reported():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    with pytest.raises(lk.DomainError, match="rows vary in no more directions"):
        lk.FisherDiscriminant(5, criterion="determinant").fit(X, y)
    thin = np.column_stack([X, X[:, 0] + 5e-7 * rng.normal(size=50)])
    with pytest.warns(lk.FitWarning, match="nearly singular"):
        lk.FisherDiscriminant().fit(thin, y)


def test_other_class_probabilities_move_posteriors_by_their_ratio():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [50, 30, 20])
    X = rng.normal(size=(100, 4)) + y[:, None]
    clf = lk.FisherDiscriminant().fit(X, y)
    other = clf.with_class_prior([0.2, 0.3, 0.5])
    expected = clf.log_posterior(X) + np.log(np.array([0.2, 0.3, 0.5]) / clf.class_prior_)
    expected -= np.logaddexp.reduce(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(other.log_posterior(X), expected, atol=1e-12)
    np.testing.assert_allclose(clf.class_prior_, [0.5, 0.3, 0.2])  # the first is as it was
