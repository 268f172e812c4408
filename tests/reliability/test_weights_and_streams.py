"""Weights are copies, weight 0 is absence, chunks equal the batch: for distributions, model-free densities, distances.

Rows 1 to 3 of the reliability table: 1e-12 for closed forms, 1e-9 where fitting iterates, also 1e8 deviations from 0.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk

pytestmark = pytest.mark.filterwarnings("ignore::likely.FitWarning")
CLOSED, ITERATED = 1e-12, 1e-9
N = 60


def real(rng, y):
    return rng.normal(size=(N, 2)) * [1.0, 3.0] + y[:, None]


def positive(rng, y):
    return rng.gamma(3.0, 1.0, (N, 2)) * (1 + y[:, None]) + 0.01


def count(rng, y):
    return np.minimum(rng.poisson(2.0 + 3 * y[:, None], (N, 3)), 9).astype(float)


def binary(rng, y):
    return (rng.random((N, 4)) < 0.3 + 0.4 * y[:, None]).astype(float)


def shares(rng, y):
    return np.where(y[:, None], rng.dirichlet([2.0, 3.0, 4.0], N), rng.dirichlet([5.0, 1.0, 4.0], N))


def unit(rng, y):
    return rng.beta(2.0 + y[:, None], 3.0, (N, 2))


# name: (estimator, rows, tolerance, moves with an offset)
DENSITIES = {
    "uniform": (lk.UniformDensity(), real, CLOSED, True),
    "plateau": (lk.UniformDensity(predictive=True), real, CLOSED, True),
    "triangular": (lk.distributions.TriangularDensity(), real, ITERATED, True),
    "laplace": (lk.LaplaceDensity(), real, CLOSED, True),
    "cauchy": (lk.distributions.CauchyDensity(), real, ITERATED, True),
    "t": (lk.StudentTDensity(dof=4.0), real, ITERATED, True),
    "t of unknown dof": (lk.StudentTDensity(), real, ITERATED, True),
    "t independent": (lk.StudentTDensity("independent", dof=4.0), real, ITERATED, True),
    "elliptical": (lk.distributions.EllipticalDensity(), real, ITERATED, True),
    "von Mises": (lk.distributions.VonMisesDensity(), real, CLOSED, False),
    "exponential": (lk.ExponentialDensity(), positive, CLOSED, False),
    "waits to come": (lk.ExponentialDensity(predictive=True), positive, CLOSED, False),
    "chi-square": (lk.distributions.ChiSquareDensity(), positive, ITERATED, False),
    "gamma": (lk.GammaDensity(), positive, ITERATED, False),
    "beta": (lk.BetaDensity(), unit, ITERATED, False),
    "Dirichlet": (lk.DirichletDensity(), shares, ITERATED, False),
    "binomial": (lk.BinomialDensity(trials=9), count, CLOSED, False),
    "beta-binomial": (lk.distributions.BetaBinomialDensity(trials=9), count, ITERATED, False),
    "negative binomial": (lk.NegativeBinomialDensity(), count, ITERATED, False),
    "Dirichlet-multinomial": (lk.distributions.DirichletMultinomialDensity(), count, ITERATED, False),
    "Walsh": (lk.distributions.WalshDensity(2), binary, CLOSED, False),
    "log Walsh": (lk.distributions.WalshDensity(2, log=True), binary, ITERATED, False),
    "Bahadur": (lk.distributions.BahadurDensity(), binary, CLOSED, False),
    "Chow": (lk.ChowLiuTreeDensity(), binary, CLOSED, False),
    "windows": (lk.KernelDensity(relative_bandwidth=0.55), real, CLOSED, True),
    "windows, scale found": (lk.KernelDensity(), real, ITERATED, True),
    "windows, maximum": (lk.KernelDensity(kernel="elliptical", bandwidth="maximum"), real, ITERATED, True),
    "histogram": (lk.HistogramDensity(6), real, CLOSED, True),
    "balls": (lk.KNNDensity(3), real, CLOSED, True),
}
SLOW = ("elliptical", "t of unknown dof", "beta-binomial")  # seconds, and nothing new
CLASSIFIERS = {
    **{
        f"classes: {name}": (lk.BayesClassifier(how[0]), *how[1:])
        for name, how in DENSITIES.items()
        if name not in SLOW
    },
    "neighbors": (lk.KNeighborsClassifier(3), real, CLOSED, True),
    "neighbors, scaled": (lk.KNeighborsClassifier(3, "scaled", weights="distance"), real, ITERATED, True),
    "nearest center": (lk.NearestCentroidClassifier(), real, ITERATED, True),
    "nearest median": (lk.NearestCentroidClassifier("l1", "median"), real, ITERATED, True),
    "nearest center, whitened": (lk.NearestCentroidClassifier("mahalanobis"), real, ITERATED, True),
    "Fisher": (lk.FisherDiscriminant(), real, ITERATED, True),
}
ALL = {**DENSITIES, **CLASSIFIERS}


def case(name: str, offset: float = 0.0):
    estimator, make, tolerance, moves = ALL[name]
    rng, y = np.random.default_rng(len(name)), np.arange(N) % 2
    X = make(rng, y)
    return clone(estimator), X + offset if moves else X, y, tolerance


def scores(estimator, X):
    return estimator.predict_log_proba(X) if hasattr(estimator, "predict_log_proba") else estimator.score_samples(X)


def agree(a, b, X, tolerance):
    one, other = scores(a, X), scores(b, X)
    assert np.array_equal(np.isfinite(one), np.isfinite(other))
    at = np.isfinite(one)
    assert np.abs(one[at] - other[at]).max(initial=0.0) <= tolerance * max(1.0, np.abs(one[at]).max(initial=0.0)) * 10


@pytest.mark.some_cases(20)
@pytest.mark.parametrize("name", ALL)
def test_a_weight_is_so_many_copies_and_nothing_is_absence(name):
    estimator, X, y, tolerance = case(name)
    w = np.random.default_rng(1).integers(0, 4, N)
    weighted = clone(estimator).fit(X, y, sample_weight=w.astype(float))
    copies = clone(estimator).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    agree(weighted, copies, X, tolerance)


def streams(name: str) -> bool:
    """A t distribution has latent scales: one step per chunk in a stream. A histogram has the first chunk's edges."""
    return name.split(": ")[-1] not in ("t", "t of unknown dof", "t independent", "histogram")


def test_a_histogram_of_given_edges_streams():
    _, X, _, _ = case("histogram")
    edges = np.linspace(-12.0, 12.0, 9)
    whole, parts = lk.HistogramDensity([edges, edges]).fit(X), lk.HistogramDensity([edges, edges])
    for at in (slice(0, 17), slice(17, 40), slice(40, N)):
        parts.partial_fit(X[at])
    agree(whole, parts, X, CLOSED)


@pytest.mark.some_cases(26)
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("name", [n for n in ALL if hasattr(ALL[n][0], "partial_fit") and streams(n)])
def test_chunks_are_the_batch(name, offset):
    estimator, X, y, tolerance = case(name, offset)
    whole, parts = clone(estimator).fit(X, y), clone(estimator)
    more = {"classes": [0, 1]} if hasattr(estimator, "predict_proba") else {}
    for at in (slice(0, 17), slice(17, 40), slice(40, N)):
        parts.partial_fit(X[at], y[at], **more)
    agree(whole, parts, X, tolerance)


@pytest.mark.some_cases(20)
@pytest.mark.parametrize("name", ALL)
def test_the_order_of_rows_does_not_matter(name):
    estimator, X, y, tolerance = case(name)
    order = np.random.default_rng(2).permutation(N)
    agree(clone(estimator).fit(X, y), clone(estimator).fit(X[order], y[order]), X, tolerance)
