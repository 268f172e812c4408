"""The hazard matrix for mixtures: finite numbers and a valid model, or one sentence that says what to do.

RuntimeWarnings are errors: no bare LinAlgError, ZeroDivisionError, IndexError or warning may escape.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import likely as lk
from likely import Gaussian, Mixture, StoppingRule, fit
from tests.properties.compare import arrays_of
from tests.reliability.test_em_never_falls import correlations
from tests.reliability.test_hazards_of_estimators import ANSWERED, GAPS, REFUSED, changed, table

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::likely.FitWarning")


def mixture(covariance="full", n_components=3, **how):
    own = {"prior": how["prior"]} if how.get("prior", 0) is None else {}
    return lk.MixtureDensity(lk.GaussianDensity(covariance, **own), n_components, random_state=0, max_iter=30, **how)


DENSITIES = {
    **{kind: mixture(kind) for kind in ("full", "diagonal", "spherical", "pooled")},
    "one": mixture(n_components=1),
    "hard": mixture(hard=True),
    "likelihood": mixture(prior=None),
    "likelihood diagonal": mixture("diagonal", prior=None),
    "Dirichlet": mixture(prior=2.0),
    "sparse": mixture(prior=0.3),
    "many": mixture("diagonal", 50),
    "n_init": mixture(n_init=3),
    "random": mixture(init="random"),
    "split": mixture(init="split"),
    "mixture of mixtures": lk.MixtureDensity(mixture("diagonal", 2), 2, random_state=0, max_iter=30),
    "product": lk.MixtureDensity(lk.ProductDensity(lk.GaussianDensity()), 3, random_state=0, max_iter=30),
}
CLASSIFIERS = {
    "classes": lk.BayesClassifier(mixture("diagonal", 2)),
    "classes full": lk.BayesClassifier(mixture("full", 2)),
    "classes tied": lk.BayesClassifier(mixture("diagonal", 3, tie="all")),
    "classes one covariance": lk.BayesClassifier(mixture("full", 2, tie="covariance")),
    "classes pooled": lk.BayesClassifier(mixture("pooled", 2)),
}
ESTIMATORS = {**DENSITIES, **CLASSIFIERS, "clusterer": lk.MixtureClusterer(n_components=3, random_state=0, max_iter=30)}

MORE = {
    **ANSWERED,
    "all rows equal": changed(lambda X, y: (np.tile(X[:1], (40, 1)), y)),
    "one row": changed(lambda X, y: (X[:1], y[:1])),
    "three rows": changed(lambda X, y: (X[:3], y[:3])),
    "two points, many times": changed(lambda X, y: (np.repeat(X[:2], 20, axis=0), np.repeat(y[:2], 20))),
    "tiny scale 1e-100": changed(lambda X, y: (X * 1e-100, y)),
    "huge scale 1e100": changed(lambda X, y: (X * 1e100, y)),
    "offset of -1e8": changed(lambda X, y: (X - 1e8, y)),
    "integers": changed(lambda X, y: (np.round(X), y)),
    "rows on a line": changed(lambda X, y: (X[:, :1] * np.ones((1, 3)), y)),
    "many columns": changed(lambda X, y: (np.random.default_rng(5).standard_normal((40, 60)), y)),
}


def fitted(name, X, y):
    estimator = clone(ESTIMATORS[name])
    return estimator.fit(X, y) if name.startswith("classes") else estimator.fit(X)


def is_sound(estimator, X):
    """A valid model for any input: finite, weights that sum to 1, positive definite covariances, valid samples."""
    model = estimator.model_
    assert all(np.isfinite(a).all() for a in arrays_of(model) if a.dtype.kind == "f")
    assert (model.weights >= 0).all() and abs(model.weights.sum() - 1) < 1e-9
    assert all(np.linalg.eigvalsh(r).min() > 0 for r in correlations(model))
    scores = estimator.score_samples(X)
    assert np.isfinite(scores).all()
    assert np.isfinite(estimator.report_.objective) and str(estimator.report_)
    if hasattr(estimator, "predict_proba"):
        P = estimator.predict_proba(X)
        assert np.isfinite(P).all() and np.allclose(P.sum(axis=1), 1.0)
    rows = estimator.sample(5, random_state=0)
    rows = rows[0] if isinstance(rows, tuple) else rows
    rows = np.concatenate([np.ravel(rows[name]) for name in rows]) if hasattr(rows, "parts") else rows
    assert np.isfinite(np.asarray(rows, dtype=float)).all()


@pytest.mark.some_cases(70)
@pytest.mark.slow
@pytest.mark.parametrize("hazard", MORE)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hazards_that_have_an_answer(name, hazard):
    X, y = MORE[hazard]()
    is_sound(fitted(name, X, y), X)


@pytest.mark.some_cases(16)
@pytest.mark.slow
@pytest.mark.parametrize("hazard", GAPS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_missing_values_have_an_answer(name, hazard):
    X, y = GAPS[hazard]()
    if name == "product" and hazard == "a column never seen":
        with pytest.raises(lk.LikelyError, match="at least one row"):
            fitted(name, X, y)
        return
    is_sound(fitted(name, X, y), X)


@pytest.mark.some_cases(40)
@pytest.mark.slow
@pytest.mark.parametrize("hazard", REFUSED)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_hazards_that_are_refused(name, hazard):
    make, says = REFUSED[hazard]
    X, y = make()
    with pytest.raises((ValueError, TypeError), match=says):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            fitted(name, X, y)


@pytest.mark.parametrize("unit", [1e-160, 1e160])
@pytest.mark.parametrize("name", ["full", "diagonal", "spherical", "pooled", "likelihood", "classes", "clusterer"])
def test_spreads_whose_squares_are_no_numbers_are_refused(name, unit):
    X, y = table()
    with pytest.raises(lk.DataError, match=r"variance of column 0 .* rescale|overflow: rescale"):
        fitted(name, X * unit, y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_weight_at_all_is_refused(name):
    X, y = table()
    estimator = clone(ESTIMATORS[name])
    with pytest.raises(ValueError, match=r"weight|row"):
        how = {"sample_weight": np.zeros(len(X))}
        estimator.fit(X, y, **how) if name.startswith("classes") else estimator.fit(X, **how)


@pytest.mark.some_cases(10)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_far_rows_are_answered(name):
    X, y = table()
    m = fitted(name, X, y)
    far = np.array([[1e300] * 3, [-1e300, 0.0, 1e300], [1e160, 0.0, 0.0], [1e7, 1e7, -1e7]])
    scores = m.score_samples(far)
    assert not np.isnan(scores).any() and (scores < -1e3).all()
    if hasattr(m, "predict_proba"):
        assert np.isfinite(m.predict_proba(far)).all() and len(m.predict(far)) == 4


@pytest.mark.parametrize("name", ["full", "diagonal", "likelihood", "hard", "sparse"])
def test_more_components_than_points(name):
    X, _ = table(6)
    estimator = clone(ESTIMATORS[name]).set_params(n_components=20).fit(X)
    is_sound(estimator, X)
    assert len(estimator.weights_) == 20


def test_empty_components_are_reported():
    with pytest.warns(lk.FitWarning, match="components have no weight: use fewer components"):
        m = lk.MixtureDensity(n_components=4, random_state=0).fit(np.repeat([[0.0], [5.0]], 10, axis=0))
    assert len(m.report_.empty_components) >= 2 and "empty components" in str(m.report_)


def test_a_constant_column_is_named():
    X, _ = table()
    X[:, 1] = 7.0
    with pytest.warns(lk.FitWarning, match="MixtureDensity.*column 1 is constant over all data"):
        mixture().fit(X)


def test_the_least_variance_is_positive_in_any_units():
    """Columns in units a million times apart: what is reported is a variance still."""
    unit = 10.0 ** np.array([-6.0, -2.0, 2.0, 6.0])  # in this order a plain eigenvalue comes out negative
    for seed in range(20):
        a = np.random.default_rng(seed).standard_normal((4, 4))
        S = a @ a.T + 0.01 * np.eye(4)
        exact = 1 / np.linalg.eigvalsh(np.linalg.inv(S) / np.outer(unit, unit))[-1]
        distribution = Gaussian(np.zeros((1, 4)), S[None] * np.outer(unit, unit))
        assert Mixture([1.0], distribution).smallest_eigenvalue == pytest.approx(exact, rel=1e-6, abs=0.0)


def test_no_rows_are_scored_by_members_that_are_thin():
    thin = np.array([[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]])
    distribution = Gaussian(np.zeros((16, 2)), np.stack([thin] * 4 + [np.eye(2)] * 12))
    assert Mixture(np.full(16, 1 / 16), distribution).log_prob(np.empty((0, 2))).shape == (0,)


# --------------------------------------------------------------- singularities


@pytest.mark.parametrize("kind", ["full", "diagonal", "spherical"])
def test_a_prior_removes_the_collapse(kind):
    """A part that owns one point would have infinite likelihood; with the weak prior it has a spread."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal((60, 2)), [[8.0, 8.0]]])
    start = Mixture([0.9, 0.1], Gaussian([[0.0, 0.0], [8.0, 8.0]], {"full": np.stack([np.eye(2), 1e-4 * np.eye(2)]),
                    "diagonal": [[1.0, 1.0], [1e-4, 1e-4]], "spherical": [1.0, 1e-4]}[kind], kind=kind))  # fmt: skip
    report = fit(start, x, prior="weak", stop=StoppingRule(500, 1e-9)).require_converged()
    assert report.smallest_eigenvalue > 1e-3
    with pytest.warns(lk.FitWarning, match="a prior avoids this"):
        bare = fit(start, x, stop=StoppingRule(500, 1e-9))
    assert np.isfinite(bare.objective) and 0 < bare.smallest_eigenvalue < 1e-6


@pytest.mark.slow
def test_without_prior_the_collapse_is_reported_and_nothing_is_nan():
    rng = np.random.default_rng(2)
    for seed in range(20):
        x = np.round(rng.standard_normal((12, 2)), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lk.FitWarning)
            m = lk.MixtureDensity(lk.GaussianDensity(prior=None), 5, prior=None, random_state=seed, max_iter=300).fit(x)
        is_sound(m, x)
        assert (np.diff(m.report_.trace) >= -1e-8 * np.maximum(np.abs(m.report_.trace[:-1]), 12)).all()


# ------------------------------------------------------------------ other families


def test_counts_that_are_none_and_words_never_used():
    x = np.array([[0, 3, 0], [0, 1, 0], [0, 0, 0], [0, 7, 0]], dtype=float)
    for component in (lk.PoissonDensity(), lk.MultinomialDensity(), lk.BernoulliDensity()):
        z = np.minimum(x, 1.0) if isinstance(component, lk.BernoulliDensity) else x
        for rows in (z, csr_matrix(z)):
            if not isinstance(component, lk.PoissonDensity) or isinstance(rows, np.ndarray):
                m = lk.MixtureDensity(component, 2, random_state=0).fit(rows)
                assert np.isfinite(m.score_samples(rows)).all() and np.isfinite(m.weights_).all()


@pytest.mark.parametrize(
    "component", [lk.PoissonDensity(), lk.MultinomialDensity(), lk.BernoulliDensity(threshold=None)], ids=repr
)
def test_what_are_no_counts_is_refused(component):
    for bad in (np.array([[1.0, -1.0], [0.0, 1.0]]), np.array([[1.0, np.inf], [0.0, 1.0]])):
        with pytest.raises(ValueError, match=r"negative|0 or 1|[Ii]nf|count"):
            lk.MixtureDensity(component, 2).fit(bad)
    with pytest.raises(ValueError, match=r"[Ii]nf"):
        lk.MixtureDensity(lk.BernoulliDensity(), 2).fit(np.array([[1.0, np.inf], [0.0, 1.0]]))


def test_a_row_that_no_part_can_explain_does_not_spoil_learning():
    """Without prior a Poisson part of rate 0 cannot explain a count: the others do."""
    x = np.array([[0.0]] * 20 + [[9.0]] * 20)
    m = lk.MixtureDensity(lk.PoissonDensity(prior=None), 2, prior=None, random_state=0).fit(x)
    np.testing.assert_allclose(np.sort(m.model_.components.rate[:, 0]), [0.0, 9.0], atol=1e-2)
    np.testing.assert_allclose(m.weights_, 0.5, atol=1e-2)
    assert np.isfinite(m.score_samples(x)).all()
