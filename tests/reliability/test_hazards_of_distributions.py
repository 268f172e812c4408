"""Hazard matrix for distributions of counts, binary rows, shares and positive numbers, and what needs complete rows.

Each hazard ends in finite numbers or in one sentence of ours that names the culprit; RuntimeWarnings are errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import likely as lk

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")
N = 24


def positive(rng):
    return rng.gamma(2.0, 1.0, (N, 3)) + 0.01


def count(rng):
    return np.minimum(rng.poisson(3.0, (N, 3)), 9).astype(float)


def binary(rng):
    return (rng.random((N, 3)) < 0.4).astype(float)


def shares(rng):
    return rng.dirichlet([2.0, 3.0, 4.0], N)


def real(rng):
    return rng.normal(size=(N, 3))


DISTRIBUTIONS = {
    "exponential": (lk.ExponentialDensity(), positive),
    "waits to come": (lk.ExponentialDensity(predictive=True), positive),
    "chi-square": (lk.distributions.ChiSquareDensity(), positive),
    "gamma": (lk.GammaDensity(), positive),
    "beta": (lk.BetaDensity(), shares),
    "Dirichlet": (lk.DirichletDensity(), shares),
    "binomial": (lk.BinomialDensity(trials=9), count),
    "urn": (lk.BinomialDensity(trials=9, predictive=True), count),
    "beta-binomial": (lk.distributions.BetaBinomialDensity(trials=9), count),
    "negative binomial": (lk.NegativeBinomialDensity(), count),
    "Dirichlet-multinomial": (lk.distributions.DirichletMultinomialDensity(), count),
    "Walsh": (lk.distributions.WalshDensity(2), binary),
    "log Walsh": (lk.distributions.WalshDensity(2, log=True), binary),
    "Bahadur": (lk.distributions.BahadurDensity(), binary),
    "Chow": (lk.ChowLiuTreeDensity(), binary),
    "elliptical": (lk.distributions.EllipticalDensity(), real),
}
ESTIMATORS = {
    **DISTRIBUTIONS,
    **{
        f"classes: {name}": (lk.BayesClassifier(e), make)
        for name, (e, make) in DISTRIBUTIONS.items()
        if name != "beta-binomial"
    },
    "Fisher": (lk.FisherDiscriminant(), real),
    "correlation": (lk.NearestCentroidClassifier("correlation"), real),
    "lp centers": (lk.NearestCentroidClassifier("lp"), real),
    "whitened neighbors": (lk.KNeighborsClassifier(3, "mahalanobis"), real),
}


def put(at, value):
    def f(X):
        X[at] = value

    return f


EVERY = slice(None)
HAZARDS = {
    "plain": lambda X: None,
    "constant column": put((EVERY, 1), 1.0),
    "column of zeros": put((EVERY, 1), 0.0),
    "duplicate column": lambda X: X.__setitem__((EVERY, 1), X[:, 0]),
    "all the same": put(EVERY, 1.0),
    "two rows": lambda X: X[:2],
    "one row a class": lambda X: X[:2],
    "duplicated rows": lambda X: np.repeat(X[:2], 6, axis=0),
    "float32": lambda X: X.astype(np.float32),
    "big-endian": lambda X: X.astype(">f8"),
    "F-order": np.asfortranarray,
    "read-only": lambda X: X.setflags(write=False),
    "not contiguous": lambda X: np.repeat(X, 2, axis=0)[::2],
    "one column": lambda X: X[:, :1],
    "gaps": put((slice(0, N, 3), 1), np.nan),
    "a column never seen": put((EVERY, 1), np.nan),
    "a column never seen in a class": put((slice(0, N, 2), 1), np.nan),
    "a row never seen": put(0, np.nan),
    "an outlier": put((0, 0), 1e12),
    "a negative number": put((2, 1), -3.0),
    "a fraction": put((2, 1), 0.5),
    "infinity": put((4, 1), np.inf),
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "a vector": lambda X: X[:, 0],
    "complex": lambda X: X + 1j,
    "words": lambda X: np.array([["x", "1", "2"]] * len(X), dtype=object),
}
MUST_BE_REFUSED = {"infinity", "no rows", "no columns", "a vector", "complex", "words"}
MUST_BE_ANSWERED = {"plain", "float32", "big-endian", "F-order", "read-only", "not contiguous"}


def scores(estimator, X):
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.score_samples(X)


@pytest.mark.some_cases(160)
@pytest.mark.parametrize("hazard", HAZARDS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_answer_or_a_sentence(name, hazard):
    estimator, make = ESTIMATORS[name]
    X = make(np.random.default_rng(7))
    changed = HAZARDS[hazard](X)
    X = X if changed is None else changed
    y = np.arange(len(X)) % 2
    try:
        fitted = clone(estimator).fit(X, y)
        found = scores(fitted, X)
    except (lk.LikelyError, ValueError, TypeError) as refusal:
        assert not isinstance(refusal, np.linalg.LinAlgError) and hazard not in MUST_BE_ANSWERED
        assert len(str(refusal)) > 20  # a sentence
        if hazard == "infinity":
            assert "infinity" in str(refusal) or "inf" in str(refusal)
        return
    assert hazard not in MUST_BE_REFUSED and not np.isnan(found).any()
    possible = np.isfinite(found).all() or hazard == "a fraction"  # which no distribution of counts gives: p = 0
    assert possible or name in ("Walsh", "Bahadur")  # cut expansions may hold a row impossible
