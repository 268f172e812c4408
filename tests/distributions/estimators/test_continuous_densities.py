"""Uniform, triangular, Laplace, Cauchy, chi-square and exponential columns as estimators: alone and inside others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import likely as lk
from likely.core.errors import DataError

REAL = {
    "uniform": lk.UniformDensity(),
    "uniform ML": lk.UniformDensity(prior=None),
    "uniform predictive": lk.UniformDensity(predictive=True),
    "triangular": lk.distributions.TriangularDensity(),
    "laplace": lk.LaplaceDensity(),
    "laplace ML": lk.LaplaceDensity(prior=None),
    "cauchy": lk.distributions.CauchyDensity(),
}
UNSIGNED = {
    "exponential": lk.ExponentialDensity(),
    "exponential predictive": lk.ExponentialDensity(predictive=True),
    "chi square": lk.distributions.ChiSquareDensity(),
}
ALL = {**REAL, **UNSIGNED}


def waits(n=200, d=2):
    return np.random.default_rng(0).exponential([1.0, 5.0][:d], (n, d)) + 0.01


@pytest.mark.parametrize("name", ALL)
def test_classes_are_distinguished(name):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    X = rng.gamma(4.0, 1.0, (400, 2)) * np.where(y, 4.0, 1.0)[:, None]
    clf = lk.BayesClassifier(ALL[name]).fit(X[:300], y[:300])
    P = clf.predict_proba(X[300:])
    assert np.isfinite(P).all() and clf.score(X[300:], y[300:]) > 0.75


@pytest.mark.parametrize("name", ALL)
def test_they_are_parts_of_products(name):
    est = lk.ProductDensity(ALL[name]).fit(waits())
    assert np.isfinite(est.score_samples(waits())).all()


@pytest.mark.parametrize("name", [n for n in ALL if "predictive" not in n])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_they_are_parts_of_mixtures(name):
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.gamma(9.0, 0.1, (150, 2)), 20 + rng.gamma(9.0, 1.0, (150, 2))])
    est = lk.MixtureDensity(ALL[name], 2, random_state=0).fit(X)
    trace = np.asarray(est.report_.trace)
    assert np.isfinite(est.score_samples(X)).all()
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    one = lk.MixtureDensity(ALL[name], 1, random_state=0).fit(X)
    assert est.score(X) > one.score(X)


@pytest.mark.parametrize("name", ["laplace", "cauchy", "exponential", "chi square"])
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
def test_they_are_emissions(name):
    rng = np.random.default_rng(3)
    states = np.cumsum(rng.random(300) < 0.05) % 2
    X = rng.gamma(9.0, 1.0, (300, 1)) * np.where(states, 10.0, 1.0)[:, None]
    est = lk.HMMDensity(ALL[name], n_states=2, random_state=0, max_iter=30).fit(X)
    assert np.isfinite(est.score_samples([X])).all()


@pytest.mark.parametrize("name", ALL)
def test_partial_fit_is_fit(name):
    X = waits()
    whole, parts = ALL[name].__class__(**ALL[name].get_params()).fit(X), ALL[name].__class__(**ALL[name].get_params())
    for i in range(0, 200, 50):
        parts.partial_fit(X[i : i + 50])
    np.testing.assert_allclose(parts.score_samples(X), whole.score_samples(X), rtol=1e-9)


@pytest.mark.some_cases(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_leaving_one_out_is_learning_without_it(name):
    X, y = waits(24), np.arange(24) % 2
    clf = lk.BayesClassifier(ALL[name])
    found = lk.evaluate(clf, X, y, cv="leave-one-out").log_posterior
    for i in (0, 7, int(X[:, 0].argmax()), int(X[:, 1].argmin())):
        rest = np.arange(24) != i
        alone = lk.BayesClassifier(ALL[name]).fit(X[rest], y[rest]).predict_proba(X[i : i + 1])
        np.testing.assert_allclose(np.exp(found[i]), alone[0], atol=1e-9)


HAZARDS = {
    "constant column": lambda X: X.__setitem__((slice(None), 1), 7.0),
    "column of zeros": lambda X: X.__setitem__((slice(None), 1), 0.0),
    "gaps": lambda X: X.__setitem__((slice(None, None, 3), 1), np.nan),
    "a column never seen": lambda X: X.__setitem__((slice(None), 1), np.nan),
    "an outlier": lambda X: X.__setitem__((0, 0), 1e12),
    "tiny": lambda X: X.__imul__(1e-100),
    "huge": lambda X: X.__imul__(1e100),
    "offset": lambda X: X.__iadd__(1e8),
}


@pytest.mark.some_cases(140)
@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")
@pytest.mark.parametrize("rows", [40, 2, 1])
@pytest.mark.parametrize("hazard", HAZARDS)
@pytest.mark.parametrize("name", ALL)
def test_hazards_have_an_answer(name, hazard, rows):
    X = waits(rows)
    HAZARDS[hazard](X)
    est = ALL[name].__class__(**ALL[name].get_params()).fit(X)
    assert np.isfinite(est.score_samples(X)).all()
    assert np.isfinite(est.impute(X)).all() and np.isfinite(est.sample(3, random_state=0)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")
@pytest.mark.parametrize("name", ALL)
def test_hazards_of_classes(name):
    X, y = waits(40), np.arange(40) % 2
    X[y == 1, 1] = 3.0  # constant in a class
    clf = lk.BayesClassifier(ALL[name]).fit(X, y)
    P = clf.predict_proba(np.concatenate([X, [[1e300, 1e300], [0.0, 3.0]]]))
    assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1)


def test_a_constant_column_is_reported():
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    with pytest.warns(lk.FitWarning, match="x1 is constant over all data"):
        lk.LaplaceDensity().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lk.ExponentialDensity().fit(X)


@pytest.mark.parametrize("name", ["Laplace", "Cauchy", "Uniform", "Triangular", "Gamma", "Beta", "VonMises"])
def test_a_constant_column_is_reported_once_by_the_distribution_and_by_the_estimator(name):
    X = np.array([[0.1, 0.5], [0.2, 0.5], [0.4, 0.5], [0.7, np.nan]])
    distribution, density = (getattr(lk if hasattr(lk, n) else lk.distributions, n) for n in (name, f"{name}Density"))
    asked = {
        "column 1 is": [
            lambda: distribution.fit(X), lambda: lk.estimate(distribution, X),
            lambda: distribution.fit(np.r_[X, [[0.1, 0.9]]], [1, 1, 1, 1, 0]),
        ],
        "x1 is": [lambda: density().fit(X)],
    }  # fmt: skip
    for subject, ways in asked.items():
        for way in ways:
            with pytest.warns(lk.FitWarning, match="constant over all data") as told:
                way()
            assert [str(note.message).split(": ")[1] for note in told] == [f"{subject} constant over all data"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distribution.fit(X[:, :1])


@pytest.mark.parametrize("distribution", [lk.Binomial, lk.distributions.BetaBinomial])
def test_trials_that_were_not_given_are_reported(distribution):
    for way in (lambda: distribution.fit([0, 1, 2]), lambda: lk.estimate(distribution, [0, 1, 2])):
        with pytest.warns(lk.FitWarning, match="trials were not given: the largest count"):
            assert way().trials.tolist() == [2]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*trials were not given")
        distribution.fit([0, 1, 2], trials=4)
        lk.estimate(distribution.fit([0, 1, 2], trials=4), [0, 1, 2])


def test_predictive_distributions():
    X = np.array([[1.0], [2.0], [6.0]])
    est = lk.ExponentialDensity(prior=lk.Gamma(2.0, 1.0), predictive=True).fit(X)
    assert isinstance(est.model_, lk.distributions.Lomax) and (est.model_.shape[0], est.model_.scale[0]) == (5.0, 10.0)
    assert est.rate_[0] == pytest.approx(4 / 10)
    beyond = lk.UniformDensity(predictive=True).fit(X).score_samples([[100.0]])
    assert np.isfinite(beyond).all() and np.isneginf(lk.UniformDensity().fit(X).score_samples([[100.0]])).all()
    with pytest.raises(lk.DomainError, match="needs a prior"):
        lk.UniformDensity(prior=None, predictive=True).fit(X)


def test_known_ends():
    est = lk.distributions.TriangularDensity(low=0.0, high=[8.0, 9.0]).fit([[1.0, 2.0], [2.0, 3.0], [4.0, 8.0]])
    np.testing.assert_array_equal(est.high_, [8.0, 9.0])
    with pytest.raises(lk.DomainError, match="one for each of 2 columns"):
        lk.distributions.TriangularDensity(low=[0.0, 0.0, 0.0]).fit([[1.0, 2.0], [2.0, 3.0]])
    with pytest.raises(lk.DataError, match="known ends"):
        lk.distributions.TriangularDensity(high=3.0).fit([[1.0], [5.0]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
@pytest.mark.filterwarnings("ignore")
def test_classifiers_of_sparse_counts(name):
    rng = np.random.default_rng(0)
    x, y = rng.poisson(rng.gamma(0.5, 2.0, (90, 12))).astype(float), rng.integers(0, 3, 90)
    w, s = rng.random(90) + 0.1, scipy.sparse.csr_array(x)
    density = {"poisson": lk.PoissonDensity, "negative-binomial": lk.NegativeBinomialDensity}[name]()
    for classifier in (lk.BayesClassifier(density), lk.NaiveBayes(density), lk.NaiveBayes(name)):
        dense = clone(classifier).fit(x, y, sample_weight=w)
        sparse = clone(classifier).fit(s, y, sample_weight=w)
        np.testing.assert_allclose(sparse.predict_proba(s), dense.predict_proba(x), rtol=1e-10, atol=1e-12)
        parts = clone(classifier).partial_fit(s[:50], y[:50], classes=[0, 1, 2]).partial_fit(s[50:], y[50:])
        whole = clone(classifier).fit(x, y)
        np.testing.assert_allclose(parts.predict_proba(s), whole.predict_proba(x), rtol=1e-9, atol=1e-12)
    mixture = lk.MixtureDensity(density, 2, random_state=0, max_iter=3).fit(s)
    assert np.isfinite(mixture.score_samples(s)).all()
    wide = scipy.sparse.hstack([s] * 8, format="csr")
    assert np.isfinite(lk.MixtureDensity(density, 2, random_state=0, max_iter=2).fit(wide).score_samples(wide)).all()
    with pytest.raises(DataError, match="Negative values in data"):
        clone(density).fit(-s)
