"""Converted estimators of scikit-learn have its scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import cluster, decomposition, ensemble, naive_bayes, neighbors
from sklearn import linear_model as linear
from sklearn import mixture as mixtures
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

import likely as lk
from likely.core.errors import DataError, DomainError

KERNELS = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")
RNG = np.random.default_rng(7)
X = RNG.normal(size=(150, 3)) @ [[1.0, 0.4, 0.0], [0.0, 2.0, 0.3], [0.0, 0.0, 0.5]]
THREE = RNG.integers(0, 3, 150)
X[THREE == 2] += 1.5
TWO = np.where(X[:, 0] + RNG.normal(size=150) > 0, "high", "low")
COUNTS = RNG.poisson(np.exp(0.3 * X) + 1.0)
LEVELS = np.clip(np.round(np.abs(X)), 0, 3).astype(int)
Y = X @ [1.0, -2.0, 0.0] + 3.0 + 0.3 * RNG.normal(size=150)


def close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_gaussian_mixture(kind):
    theirs = mixtures.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    ours = lk.from_sklearn(theirs)
    close(ours.log_prob(X), theirs.score_samples(X))
    close(ours.posterior(X), theirs.predict_proba(X))


@pytest.mark.parametrize("prior", ["dirichlet_process", "dirichlet_distribution"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bayesian_mixture_has_its_posteriors_and_a_proper_density(kind, prior):
    theirs = mixtures.BayesianGaussianMixture(
        n_components=3, covariance_type=kind, weight_concentration_prior_type=prior, random_state=0, max_iter=20
    ).fit(X)
    ours = lk.from_sklearn(theirs)
    close(ours.posterior(X), theirs.predict_proba(X))
    differences = theirs.score_samples(X) - ours.log_prob(X)
    close(differences, np.full(len(X), differences[0]))
    assert ours.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_density(kernel, weighted):
    weight = RNG.random(len(X)) if weighted else None
    theirs = neighbors.KernelDensity(bandwidth=0.8, kernel=kernel).fit(X, sample_weight=weight)
    at = np.concatenate([X[:40] + 0.1, [[30.0, 0.0, 0.0]]])
    expected, found = theirs.score_samples(at), lk.from_sklearn(theirs).log_prob(at)
    there = np.isfinite(expected)
    assert (np.isfinite(found) == there).all()
    close(found[there], expected[there])


def test_factor_analysis():
    theirs = decomposition.FactorAnalysis(2).fit(X)
    close(lk.from_sklearn(theirs).log_prob(X), theirs.score_samples(X))


@pytest.mark.parametrize("components", [1, 2, 3])
def test_pca(components):
    theirs = decomposition.PCA(components).fit(X)
    ours = lk.from_sklearn(theirs)
    close(ours.project(X), theirs.transform(X))
    close(ours.reconstruct(X), theirs.inverse_transform(theirs.transform(X)))
    close(ours.shares, theirs.explained_variance_ratio_)


def test_whitening_differs_by_the_divisor_of_variances():
    theirs = decomposition.PCA(2, whiten=True).fit(X)
    n = len(X)
    close(lk.from_sklearn(theirs).whiten(X), theirs.transform(X) * np.sqrt(n / (n - 1)))


@pytest.mark.parametrize("estimator", [cluster.KMeans(4, n_init=1), cluster.MiniBatchKMeans(4, n_init=1)])
def test_k_means(estimator):
    theirs = estimator.set_params(random_state=0).fit(X)
    ours = lk.from_sklearn(theirs)
    assert (ours.assign(X) == theirs.predict(X)).all()
    close(ours.distances(X), theirs.transform(X))


CLASSIFIERS = {
    "GaussianNB": (naive_bayes.GaussianNB(), X),
    "GaussianNB, priors": (naive_bayes.GaussianNB(priors=[0.2, 0.8]), X),
    "MultinomialNB": (naive_bayes.MultinomialNB(alpha=0.5), COUNTS),
    "BernoulliNB": (naive_bayes.BernoulliNB(binarize=0.3), X),
    "BernoulliNB, binary": (naive_bayes.BernoulliNB(binarize=None), (X > 0).astype(float)),
    "CategoricalNB": (naive_bayes.CategoricalNB(), LEVELS),
    "LDA, svd": (LinearDiscriminantAnalysis(store_covariance=True), X),
    "LDA, lsqr": (LinearDiscriminantAnalysis("lsqr", shrinkage="auto"), X),
    "LDA, eigen": (LinearDiscriminantAnalysis("eigen"), X),
    "QDA": (QuadraticDiscriminantAnalysis(), X),
    "QDA, regularized": (QuadraticDiscriminantAnalysis(reg_param=0.2), X),
    "neighbors": (neighbors.KNeighborsClassifier(7), X),
    "neighbors, by distance": (neighbors.KNeighborsClassifier(7, weights="distance", p=1), X),
    "neighbors, p=3": (neighbors.KNeighborsClassifier(7, weights="distance", p=3), X),
    "neighbors, maximum": (neighbors.KNeighborsClassifier(4, metric="chebyshev"), X),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three"])
@pytest.mark.filterwarnings("ignore::likely.core.errors.FitWarning")
def test_classifiers(name, y, tmp_path):
    estimator, rows = CLASSIFIERS[name]
    if "priors" in name and y is THREE:
        estimator = naive_bayes.GaussianNB(priors=[0.2, 0.3, 0.5])
    theirs = estimator.fit(rows, y)
    at = rows[:60] + 0.01 if "neighbors" in name else rows[:60]  # no ties at distance 0
    ours = lk.from_sklearn(theirs)
    close(ours.predict_proba(at), theirs.predict_proba(at))
    assert (ours.predict(at) == theirs.predict(at)).all()
    assert set(ours.decide(at, reject_below=0.99)) <= {*theirs.classes_.tolist(), lk.REJECT}
    lk.save(ours, tmp_path / "model")
    close(lk.load(tmp_path / "model").predict_proba(at), theirs.predict_proba(at))
    assert "decides" in str(ours.describe())


def test_one_categorical_column():
    theirs = naive_bayes.CategoricalNB().fit(LEVELS[:, :1], TWO)
    close(lk.from_sklearn(theirs).predict_proba(LEVELS[:, :1]), theirs.predict_proba(LEVELS[:, :1]))


def test_names_of_columns_are_kept():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    ours = lk.from_sklearn(naive_bayes.GaussianNB().fit(table, TWO))
    assert ours.feature_names_in_.tolist() == ["a", "b", "c"]
    close(ours.predict_proba(table), ours.predict_proba(table[["c", "a", "b"]][["a", "b", "c"]]))


def test_converted_classifiers_learn_by_fit_only():
    ours = lk.from_sklearn(naive_bayes.GaussianNB().fit(X, TWO))
    with pytest.raises(DomainError, match="partial_fit needs the statistics of the rows before"):
        ours.partial_fit(X, TWO)
    with pytest.raises(DomainError, match="novelty needs rows for its threshold"):
        ours.decide(X, novelty=0.01)
    ours.fit(X, TWO).partial_fit(X, TWO)


@pytest.mark.parametrize("estimator", [linear.LinearRegression(), linear.Ridge(), linear.LassoCV()])
def test_regressions_with_a_given_variance(estimator):
    theirs = estimator.fit(X, Y)
    ours = lk.from_sklearn(theirs, noise_variance=0.09)
    close(ours.given(X).mean[:, 0], theirs.predict(X))
    close(ours.log_prob(Y, X), -0.5 * (np.log(2 * np.pi * 0.09) + (Y - theirs.predict(X)) ** 2 / 0.09))


def test_regressions_of_several_targets():
    both = np.column_stack([Y, X[:, 0]])
    theirs = linear.LinearRegression(fit_intercept=False).fit(X, both)
    close(lk.from_sklearn(theirs, noise_variance=np.eye(2)).given(X).mean, theirs.predict(X))


@pytest.mark.parametrize(
    "estimator",
    [
        linear.BayesianRidge(),
        linear.BayesianRidge(fit_intercept=False),
        linear.ARDRegression(),
        linear.ARDRegression(threshold_lambda=100.0),  # drops the third column
    ],
)
def test_bayesian_regressions(estimator):
    at = X + 5.0
    theirs = estimator.fit(at, Y)
    mean, deviation = theirs.predict(at, return_std=True)
    found = lk.from_sklearn(theirs).given(at)
    close(found.mean[:, 0], mean)
    close(np.sqrt(found.covariance[:, 0, 0]), deviation)


FOREST = ensemble.RandomForestClassifier(2)


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (FOREST, "one of GaussianMixture.*got RandomForestClassifier"),
        (naive_bayes.ComplementNB(), "not the likelihoods"),
        (make_pipeline(FOREST), "last step"),
        (object(), "builtins.object"),
        (LinearDiscriminantAnalysis(), "store_covariance=True"),
        (LinearDiscriminantAnalysis(priors=[0.1, 0.9], store_covariance=True), 'solver="lsqr"'),
        (neighbors.KernelDensity(metric="manhattan"), "euclidean"),
        (neighbors.KNeighborsClassifier(metric="cosine"), "manhattan"),
        (neighbors.KNeighborsClassifier(weights=np.negative), "uniform or distance"),
        (linear.LinearRegression(), "pass noise_variance="),
    ],
)
def test_what_has_no_equivalent_is_refused(estimator, says):
    labels = (TWO == "low").astype(int)
    if hasattr(estimator, "fit"):
        estimator.fit(np.abs(X), labels)
    with pytest.raises(DomainError, match=says):
        lk.from_sklearn(estimator)


def test_a_variance_is_for_regressions_only():
    theirs = cluster.KMeans(2, n_init=1).fit(X)
    with pytest.raises(DomainError, match="leave it out"):
        lk.from_sklearn(theirs, noise_variance=1.0)


def test_an_estimator_that_is_not_fitted_is_refused():
    with pytest.raises(DataError, match="GaussianMixture without weights_: fit it first"):
        lk.from_sklearn(mixtures.GaussianMixture(2))

