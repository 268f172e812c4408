"""Multinomial density: against scikit-learn's naive Bayes, sparse against dense, streams against batches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils import get_tags

import likely as lk
from likely.distributions.categorical.dirichlet import Dirichlet
from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
from likely.distributions.categorical.sparse_counts import tallied
from likely.distributions.estimators.count_densities import MultinomialDensity
from likely.distributions.priors.multinomial_prior import MultinomialPrior

KINDS = [np.array, sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    topics, y = rng.dirichlet(np.full(40, 0.3), 3), rng.integers(0, 3, 300)
    return np.stack([rng.multinomial(rng.poisson(12), topics[k]) for k in y]), np.array(["art", "distribution", "war"])[
        y
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("alpha", [1.0, 0.01, 2.0])
def test_a_classifier_is_multinomial_naive_bayes(texts, kind, alpha):
    X, y = texts
    w = np.random.default_rng(1).random(len(y))
    ours = lk.BayesClassifier(MultinomialDensity(prior=alpha)).fit(kind(X), y, sample_weight=w)
    theirs = MultinomialNB(alpha=alpha).fit(X, y, sample_weight=w)
    assert np.allclose(ours.predict_log_proba(kind(X)), theirs.predict_log_proba(X), atol=1e-10)
    assert np.array_equal(ours.predict(kind(X)), theirs.predict(X))
    assert np.allclose(np.log(ours.model_.components.probs), theirs.feature_log_prob_, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_rows_may_be_sparse(texts, kind):
    X, _ = texts
    a, b = MultinomialDensity().fit(kind(X)), MultinomialDensity().fit(X)
    assert np.allclose(a.probs_, b.probs_, rtol=1e-13) and np.allclose(a.score_samples(kind(X)), b.score_samples(X))
    assert a.model_.length == b.model_.length == round(X.sum() / len(X))
    assert a.sample(5, 0).shape == (5, 40) and get_tags(a).input_tags.sparse


def test_what_a_number_means(texts):
    X, _ = texts
    n = X.sum(axis=0)
    assert np.allclose(MultinomialDensity(prior=2.0).fit(X).probs_, (n + 2) / (n.sum() + 80))
    assert np.allclose(MultinomialDensity().fit(X).probs_, (n + 1 / 40) / (n.sum() + 1))
    assert np.allclose(MultinomialDensity(prior=None).fit(X).probs_, n / n.sum())
    by_distribution = [
        MultinomialDensity(prior=p).fit(X) for p in (Dirichlet(np.full(40, 3.0)), MultinomialPrior(np.full(40, 3.0)))
    ]
    assert all(np.allclose(d.probs_, (n + 2) / (n.sum() + 80)) for d in by_distribution)
    for bad in (0.0, -1.0, "strong"):
        with pytest.raises(ValueError, match="prior"):
            MultinomialDensity(prior=bad).fit(X)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=lambda k: k.__name__)
def test_streams_and_weights(texts, kind):
    X, _ = texts
    whole, stream = MultinomialDensity().fit(kind(X)), MultinomialDensity()
    for part in np.array_split(X, 7):
        stream.partial_fit(kind(part))
    assert np.allclose(stream.probs_, whole.probs_, rtol=1e-13)
    assert np.allclose(stream.stats_.constant, whole.stats_.constant, rtol=1e-12)
    times = np.random.default_rng(2).integers(0, 4, len(X))
    weighted, copied = (
        MultinomialDensity().fit(kind(X), sample_weight=times),
        MultinomialDensity().fit(kind(np.repeat(X, times, axis=0))),
    )
    assert np.allclose(weighted.probs_, copied.probs_, rtol=1e-13)


def test_integrated_out(texts):
    X, y = texts
    d = MultinomialDensity(prior=1.0, predictive=True).fit(X)
    assert isinstance(d.model_, DirichletMultinomial) and np.allclose(d.model_.alpha, 2.0 + X.sum(axis=0))
    clf = lk.BayesClassifier(MultinomialDensity(predictive=True)).fit(sp.csr_array(X), y)
    assert (clf.predict(X) == y).mean() > 0.9
    with pytest.raises(lk.DomainError, match="needs a prior"):
        MultinomialDensity(prior=None, predictive=True).fit(X)


def test_single_precision_comes_back(texts):
    X, _ = texts
    d = MultinomialDensity().fit(X)
    for rows in (X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        assert d.score_samples(rows).dtype == np.float32
        assert np.allclose(d.score_samples(rows), d.score_samples(X), rtol=1e-5)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=lambda k: k.__name__)
def test_what_is_wrong_is_named(texts, kind):
    X = texts[0].astype(float)
    X[7, 5] = -3
    with pytest.raises(lk.DataError, match=r"Negative values in data.*-3 at row 7, column 5"):
        MultinomialDensity().fit(kind(X))
    X[7, 5] = np.inf
    with pytest.raises(lk.DataError, match="row 7, column 5"):
        MultinomialDensity().fit(kind(X))
    X[7, 5] = 0.5
    with pytest.warns(lk.FitWarning, match="x5 is not all integers"):
        MultinomialDensity().fit(kind(X))
    with pytest.raises(ValueError, match="40 features"):
        MultinomialDensity().fit(kind(texts[0])).score_samples(kind(texts[0][:, :39]))


def test_missing_values_in_dense_rows_are_learned_and_in_sparse_rows_refused(texts):
    X = texts[0].astype(float)
    X[np.random.default_rng(3).random(X.shape) < 0.1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = MultinomialDensity(tol=1e-9).fit(X)
    assert d.n_iter_ > 1 and np.isfinite(d.score_samples(X)).all()
    with pytest.raises(lk.DataError, match=r"no missing values.*dense"):
        MultinomialDensity().fit(sp.csr_array(X))


def test_words_beside_other_columns(texts):
    X, y = texts
    rng = np.random.default_rng(4)
    rows = lk.core.Columns(real=rng.normal(size=(300, 2)) + (y == "war")[:, None], words=sp.csr_array(X))
    density = lk.ProductDensity([("real", lk.GaussianDensity("diagonal")), ("words", MultinomialDensity(prior=2.0))])
    fitted = clone(density).fit(rows)
    n = X.sum(axis=0)
    assert np.allclose(fitted.model_["words"].probs, (n + 2) / (n.sum() + 80))
    assert np.isfinite(fitted.score_samples(rows)).all()
    assert (lk.BayesClassifier(density).fit(rows, y).predict(rows) == y).mean() > 0.9


def test_what_crosses_the_border_is_scipys(texts):
    """Others look at these rows too; tallied rows may cross it as well."""
    X = sp.csr_array(texts[0])
    d = MultinomialDensity().fit(X)
    assert sp.issparse(d.validate_rows(sp.coo_array(X), reset=False))
    assert np.array_equal(d.score_samples(tallied(X)), d.score_samples(X))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [lk.MultinomialDensity, lk.distributions.DirichletMultinomialDensity])
def test_fractions_in_new_rows_are_reported_once(kind):
    x = np.array([[1.0, 2.0, 2.0], [2.0, 1.0, 0.0], [0.0, 4.0, 1.0], [5.0, 1.0, 3.0]])
    m, new = kind().fit(x), np.array([[1.0, 0.5, 2.0]])
    for verb in (m.score_samples, m.score):
        with pytest.warns(lk.FitWarning, match="column 1 is not all integers") as heard:
            verb(new)
        assert len(heard) == 1
    with pytest.warns(lk.FitWarning, match="not all integers") as heard:
        lk.MixtureDensity(kind(), 2, random_state=0).fit(np.tile(x + [0.0, 0.5, 0.0], (10, 1)))
    assert sum("integers" in str(note.message) for note in heard) == 1
