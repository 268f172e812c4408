"""Bernoulli density: against scikit-learn's naive Bayes, sparse against dense, streams against batches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import BernoulliNB
from sklearn.utils import get_tags

import likely as lk
from likely.distributions.estimators.binary_densities import BernoulliDensity
from likely.distributions.univariate.beta import Beta

KINDS = [np.array, sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    return (rng.random((300, 25)) < rng.random((3, 25))[y]).astype(float), y


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_a_classifier_is_bernoulli_naive_bayes(answers, kind, alpha):
    X, y = answers
    w = np.random.default_rng(1).random(len(y))
    ours = lk.BayesClassifier(BernoulliDensity(prior=alpha)).fit(kind(X), y, sample_weight=w)
    theirs = BernoulliNB(alpha=alpha).fit(X, y, sample_weight=w)
    assert np.allclose(ours.predict_log_proba(kind(X)), theirs.predict_log_proba(X), atol=1e-10)
    assert np.allclose(np.log(ours.model_.components.probs), theirs.feature_log_prob_, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_rows_may_be_sparse(answers, kind):
    X, _ = answers
    a, b = BernoulliDensity().fit(kind(X)), BernoulliDensity().fit(X)
    assert np.allclose(a.probs_, b.probs_, rtol=1e-12) and np.allclose(a.score_samples(kind(X)), b.score_samples(X))
    assert get_tags(a).input_tags.sparse and a.sample(5, 0).shape == (5, 25)


def test_what_a_number_means(answers):
    X, _ = answers
    n = X.sum(axis=0)
    assert np.allclose(BernoulliDensity(prior=2.0).fit(X).probs_, (n + 2) / 304)
    assert np.allclose(BernoulliDensity(prior=None).fit(X).probs_, n / 300)
    assert np.allclose(BernoulliDensity().fit(X).probs_, n / 300)  # both seen in every column: the estimate stays
    assert np.allclose(BernoulliDensity(prior=Beta(3.0, 3.0)).fit(X).probs_, (n + 2) / 304)
    assert np.allclose(BernoulliDensity(prior=1.0, predictive=True).fit(X).probs_, (n + 1) / 302)
    assert np.allclose(BernoulliDensity(prior=1.0, predictive=True).fit(X).model_.probs, (n + 2) / 304)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=lambda k: k.__name__)
def test_streams_and_weights(answers, kind):
    X, _ = answers
    whole, stream = BernoulliDensity().fit(kind(X)), BernoulliDensity()
    for part in np.array_split(X, 7):
        stream.partial_fit(kind(part))
    assert np.allclose(stream.probs_, whole.probs_, rtol=1e-12)
    times = np.random.default_rng(2).integers(0, 4, len(X))
    weighted, copied = BernoulliDensity(), BernoulliDensity()
    weighted.fit(kind(X), sample_weight=times)
    copied.fit(kind(np.repeat(X, times, axis=0)))
    assert np.allclose(weighted.probs_, copied.probs_, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=lambda k: k.__name__)
def test_numbers_are_cut_at_the_threshold_and_a_warning_says_so(kind):
    X = np.array([[0.0, 3.0], [0.5, 0.0], [2.0, 1.0]])
    with pytest.warns(lk.FitWarning, match="x0, x1 are not all 0 and 1: numbers above 0 count as 1"):
        d = BernoulliDensity(prior=None).fit(kind(X))
    assert np.allclose(d.probs_, [2 / 3, 2 / 3])
    with pytest.warns(lk.FitWarning, match="above 1 count"):
        assert np.allclose(BernoulliDensity(prior=None, threshold=1.0).fit(kind(X)).probs_, [1 / 3, 1 / 3])
    with pytest.raises(lk.DataError, match=r"0 or 1.*row \d, column \d"):
        BernoulliDensity(threshold=None).fit(kind(X))


def test_thresholds_below_zero_need_dense_rows():
    X = np.array([[0.0, -3.0], [0.5, 0.0], [2.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.allclose(BernoulliDensity(prior=None, threshold=-1.0).fit(X).probs_, [1.0, 2 / 3])
        with pytest.raises(lk.DataError, match="dense"):
            BernoulliDensity(threshold=-1.0).fit(sp.csr_array(X))


def test_missing_values_and_infinities(answers):
    X = answers[0].copy()
    X[np.random.default_rng(3).random(X.shape) < 0.2] = np.nan
    d = BernoulliDensity(prior=None).fit(X)
    assert np.allclose(d.probs_, np.nanmean(X, axis=0)) and np.isfinite(d.score_samples(X)).all()
    with pytest.raises(lk.DataError, match="no missing values"):
        BernoulliDensity().fit(sp.csr_array(X))
    X[3, 2] = np.inf
    with pytest.raises(lk.DataError, match="row 3, column 2"):
        BernoulliDensity().fit(X)


def test_kinds_of_numbers(answers):
    X, _ = answers
    want = BernoulliDensity().fit(X)
    for kind in (bool, np.int8, np.float32):
        d = BernoulliDensity().fit(X.astype(kind))
        assert np.allclose(d.probs_, want.probs_)
    for rows in (X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        assert want.score_samples(rows).dtype == np.float32
