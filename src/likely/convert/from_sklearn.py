"""Conversion of fitted estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import digamma

from likely.classify.bayes import BayesClassifier
from likely.classify.k_neighbors import KNeighborsClassifier
from likely.classify.naive_bayes import NaiveBayes
from likely.cluster.kmeans.centroids import Centroids
from likely.convert.foreign_models import KINDS, converter_of, fitted_attributes, normalized
from likely.core.arrays import Array
from likely.core.errors import DomainError, sentence
from likely.decomposition.principal_subspace import PrincipalSubspace
from likely.density.kde import KDE
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.multinomial import Multinomial
from likely.distributions.estimators.binary_densities import BernoulliDensity
from likely.distributions.estimators.categorical_densities import CategoricalDensity
from likely.distributions.estimators.count_densities import MultinomialDensity
from likely.distributions.gaussian.estimator import GaussianDensity
from likely.distributions.gaussian.factor_gaussian import FactorGaussian
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.product import Product
from likely.linear_model.gaussian_regression import COLUMNS, GaussianRegression
from likely.linear_model.priors import CoefficientsGivenNoise, RegressionPredictive
from likely.mixture.mixture import Mixture
from likely.mixture.priors import MixturePrior
from likely.neighbors.distances import SYNONYMS

ME = "from_sklearn"
NO_VOTE = 1e-300  # pseudo-votes: a class without a neighbor has probability 0 to rounding, as in scikit-learn
SURE = 1e-12  # variance of a known intercept relative to the noise: a precision matrix must be finite


def from_sklearn(model: Any, *, noise_variance: Any = None) -> Any:
    """Model with the parameters of a fitted estimator of scikit-learn, and with the same scores.

    Densities, projections and regressions become values, classifiers become fitted classifiers:

    ==================================================  ==========================================================
    scikit-learn                                        here
    ==================================================  ==========================================================
    GaussianMixture, BayesianGaussianMixture            `Mixture` of `Gaussian`
    KernelDensity                                       `KDE`
    FactorAnalysis                                      `FactorGaussian`
    PCA                                                 `PrincipalSubspace`
    KMeans, MiniBatchKMeans                             `Centroids`
    GaussianNB, BernoulliNB, CategoricalNB              `NaiveBayes`
    MultinomialNB                                       `BayesClassifier` of `MultinomialDensity`
    LinearDiscriminantAnalysis                          `BayesClassifier` of `GaussianDensity("pooled")`
    QuadraticDiscriminantAnalysis                       `BayesClassifier` of `GaussianDensity()`
    KNeighborsClassifier                                `KNeighborsClassifier`
    LinearRegression, Ridge, Lasso, ElasticNet, …CV     `GaussianRegression`, with the given `noise_variance`
    BayesianRidge, ARDRegression                        `RegressionPredictive`
    ==================================================  ==========================================================

    Scores are equal: `log_prob` to `score_samples`, `posterior` and `predict_proba` to `predict_proba`, `project` to
    `transform`, `assign` to `predict`, `given(X).mean` to `predict`. Two exceptions: `score_samples` of a
    BayesianGaussianMixture is not a log-density (its exponential does not integrate to one). The result has the
    same posterior probabilities, and `log_prob` differs from `score_samples` by a constant. A MultinomialNB leaves
    the multinomial coefficient out of its scores; posteriors are equal.

    Converted classifiers have no training statistics: they score and decide, `fit` learns anew, and `partial_fit`
    refuses. Nothing of scikit-learn remains in the result.

    Parameters
    ----------
    model : scikit-learn estimator
        A fitted one of the table.
    noise_variance : float or array of shape (m, m), optional
        Variance of the residuals of a linear regression, which its estimator does not store: the mean squared
        error of held-out rows, for example. Needed for these, and for no others.

    Returns
    -------
    Any
        See the table.

    Raises
    ------
    DomainError
        If the estimator has no equivalent; the message lists those that have one, or says what is missing.
    DataError
        If the estimator is not fitted.

    See Also
    --------
    from_hmmlearn, from_statsmodels, from_pykalman : The same for other libraries.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> theirs = GaussianMixture(2, random_state=0).fit(X)
    >>> ours = lk.from_sklearn(theirs)
    >>> bool(np.allclose(ours.log_prob(X), theirs.score_samples(X)))
    True
    """
    convert = converter_of(model, "sklearn", CONVERTERS, ME, REASONS)
    if convert is _linear_regression:
        return _linear_regression(model, noise_variance)
    if noise_variance is not None:
        expected = "noise_variance is for linear regressions that do not store it"
        raise DomainError(sentence(ME, expected, type(model).__name__, "leave it out"))
    return convert(model)


# ------------------------------------------------------------------------------ densities


def _gaussians(model: Any) -> Gaussian:
    means, covariances = fitted_attributes(model, "means_ covariances_", ME)
    return Gaussian(means, covariances, kind=KINDS[model.covariance_type])


def _gaussian_mixture(model: Any) -> Mixture:
    (weights,) = fitted_attributes(model, "weights_", ME)
    return Mixture(normalized(weights), _gaussians(model))


def _bayesian_mixture(model: Any) -> Mixture:
    """Weights that give the responsibilities of the variational posterior, which are those of Bishop 10.2.

    log ρ_k = E[log π_k] + ½ E[log |Λ_k|] − d/(2 β_k) − ½ E[(x − m_k)ᵀ ν_k W_k (x − m_k)] differs from the log-density
    of N(m_k, (ν_k W_k)⁻¹) by a constant per component, which goes into the weights.
    """
    concentration, kappa, dof = fitted_attributes(
        model, "weight_concentration_ mean_precision_ degrees_of_freedom_", ME
    )
    parts = _gaussians(model)
    kappa, dof = np.asarray(kappa, dtype=np.float64), np.asarray(dof, dtype=np.float64)
    d = parts.dim
    log_det = d * np.log(2.0) + digamma(0.5 * (dof[..., None] - np.arange(d))).sum(axis=-1)
    logs = _expected_log_weights(model, concentration) + 0.5 * (log_det - d * np.log(dof) - d / kappa)
    return Mixture(normalized(np.exp(logs - logs.max())), parts)


def _expected_log_weights(model: Any, concentration: Any) -> Array:
    """E[log π_k] under a Dirichlet distribution, or the stick-breaking one of a Dirichlet process."""
    if model.weight_concentration_prior_type == "dirichlet_distribution":
        alpha = np.asarray(concentration, dtype=np.float64)
        return np.asarray(digamma(alpha) - digamma(alpha.sum()))
    a, b = (np.asarray(part, dtype=np.float64) for part in concentration)
    both = digamma(a + b)
    rest = np.concatenate([[0.0], np.cumsum(digamma(b) - both)[:-1]])
    return np.asarray(digamma(a) - both + rest)


def _kernel_density(model: Any) -> KDE:
    tree, bandwidth = fitted_attributes(model, "tree_ bandwidth_", ME)
    if model.metric not in ("euclidean", "l2"):
        raise DomainError(sentence(ME, 'KernelDensity must have metric="euclidean"', repr(model.metric)))
    points, weight = np.asarray(tree.data), getattr(tree, "sample_weight", None)
    weight = None if weight is None else np.asarray(weight)
    return KDE(points, np.asarray(bandwidth, dtype=np.float64), kernel=model.kernel, weight=weight, tolerance=0.0)


def _factor_analysis(model: Any) -> FactorGaussian:
    mean, components, noise = fitted_attributes(model, "mean_ components_ noise_variance_", ME)
    return FactorGaussian(mean, np.transpose(components), noise, kind="diagonal")


# --------------------------------------------------------------- projections and clusters


def _pca(model: Any) -> PrincipalSubspace:
    names = "mean_ components_ explained_variance_ explained_variance_ratio_ n_samples_"
    mean, axes, variances, shares, n = fitted_attributes(model, names, ME)
    variances = np.asarray(variances, dtype=np.float64) * (n - 1) / n  # ours are divided by n
    share = float(np.sum(shares))
    rest = float(variances.sum()) * max(1.0 - share, 0.0) / share if share > 0 else 0.0
    return PrincipalSubspace(mean, axes, variances, np.asarray(rest))


def _kmeans(model: Any) -> Centroids:
    (centers,) = fitted_attributes(model, "cluster_centers_", ME)
    return Centroids(centers)


# ---------------------------------------------------------------------------- classifiers


def _classifier(model: Any, clf: BayesClassifier, density: Any, prior: Any, components: Any) -> BayesClassifier:
    """A fitted Bayes classifier with these class densities, and with the statistics of no rows."""
    classes, width = fitted_attributes(model, "classes_ n_features_in_", ME)
    for part in (clf, density):
        part.n_features_in_ = int(width)
        if hasattr(model, "feature_names_in_"):
            part.feature_names_in_ = np.array(model.feature_names_in_)
    clf.density_, clf.classes_, clf.n_iter_ = density, np.array(classes), 1
    clf.model_ = Mixture(normalized(prior), components)
    clf.stats_ = _of_no_rows(clf.model_)
    clf.prior_ = MixturePrior.trusted(weights=None, components=None)
    return clf


def _of_no_rows(model: Mixture) -> Any:
    one, member = model.sample_labeled(1, np.random.default_rng(0))
    return 0.0 * model.collect(one, labels=member)


def _gaussian_nb(model: Any) -> BayesClassifier:
    prior, mean, variance = fitted_attributes(model, "class_prior_ theta_ var_", ME)
    parts = Gaussian(mean, variance, kind="diagonal")
    return _classifier(model, NaiveBayes("gaussian"), GaussianDensity("diagonal"), prior, parts)


def _qda(model: Any) -> BayesClassifier:
    prior, mean, rotations, scalings = fitted_attributes(model, "priors_ means_ rotations_ scalings_", ME)
    covariances = np.stack([(R * S) @ R.T for R, S in zip(rotations, scalings, strict=True)])
    return _classifier(model, BayesClassifier(), GaussianDensity(), prior, Gaussian(mean, covariances, kind="full"))


def _lda(model: Any) -> BayesClassifier:
    prior, mean, coef = fitted_attributes(model, "priors_ means_ coef_", ME)
    if not hasattr(model, "covariance_"):
        expected = "a linear discriminant analysis must store its covariance"
        remedy = 'fit it with store_covariance=True, or solver="lsqr"'
        raise DomainError(sentence(ME, expected, f"solver={model.solver!r}", remedy))
    covariance = _implied_covariance(np.asarray(model.covariance_, dtype=np.float64), np.asarray(mean), coef)
    density = GaussianDensity("pooled")
    clf = BayesClassifier(GaussianDensity("pooled"))
    return _classifier(model, clf, density, prior, Gaussian(mean, covariance, kind="full"))


def _implied_covariance(covariance: Array, mean: Array, coef: Any) -> Array:
    """The covariance that the decision function has: the stored one, scaled.

    The solver "svd" stores the scatter over n and decides by that over n − C, for class frequencies as priors.
    """
    differences = mean[1:] - mean[:1]
    slopes = np.linalg.solve(covariance, differences.T).T  # Σ⁻¹(μ_c − μ_0)
    coef = np.asarray(coef, dtype=np.float64)
    taken = coef if len(coef) < len(mean) else coef[1:] - coef[:1]
    scale = float((slopes * taken).sum() / (slopes**2).sum())
    if not np.allclose(taken, scale * slopes, rtol=1e-8, atol=1e-8 * np.abs(taken).max()):
        expected = "the covariance of a linear discriminant analysis must be the one that it decides by"
        got, remedy = "another one (given priors, or collinear columns)", 'fit it with solver="lsqr"'
        raise DomainError(sentence(ME, expected, got, remedy))
    return covariance / scale


def _multinomial_nb(model: Any) -> BayesClassifier:
    prior, logs = fitted_attributes(model, "class_log_prior_ feature_log_prob_", ME)
    density = MultinomialDensity()
    parts = Multinomial(normalized(np.exp(logs)))
    return _classifier(model, BayesClassifier(MultinomialDensity()), density, np.exp(prior), parts)


def _bernoulli_nb(model: Any) -> BayesClassifier:
    prior, logs = fitted_attributes(model, "class_log_prior_ feature_log_prob_", ME)
    threshold = None if model.binarize is None else float(model.binarize)
    clf, density = NaiveBayes(BernoulliDensity(threshold=threshold)), BernoulliDensity(threshold=threshold)
    return _classifier(model, clf, density, np.exp(prior), Bernoulli(np.exp(logs)))


def _categorical_nb(model: Any) -> BayesClassifier:
    prior, logs = fitted_attributes(model, "class_log_prior_ feature_log_prob_", ME)
    columns = [Categorical(normalized(np.exp(of_column))) for of_column in logs]
    names = [str(name) for name in getattr(model, "feature_names_in_", range(len(columns)))]
    parts = columns[0] if len(columns) == 1 else Product(tuple(zip(names, columns, strict=True)))
    return _classifier(model, NaiveBayes("categorical"), CategoricalDensity(), np.exp(prior), parts)


def _k_neighbors(model: Any) -> KNeighborsClassifier:
    rows, labels, classes, metric = fitted_attributes(model, "_fit_X _y classes_ effective_metric_", ME)
    if metric not in SYNONYMS or model.weights not in ("uniform", "distance"):
        expected = f"metric must be one of {', '.join(SYNONYMS)}, and weights uniform or distance"
        raise DomainError(sentence(ME, expected, f"{metric!r} and {model.weights!r}"))
    if np.ndim(labels) != 1 or not isinstance(rows, np.ndarray):
        raise DomainError(sentence(ME, "one target and dense rows are needed"))
    p = float(getattr(model, "effective_metric_params_", {}).get("p", 2.0))
    found = KNeighborsClassifier(model.n_neighbors, SYNONYMS[metric], p=p, weights=model.weights, smoothing=NO_VOTE)
    return found.fit(rows, np.asarray(classes)[labels])


# ---------------------------------------------------------------------------- regressions


def _linear_regression(model: Any, noise_variance: Any) -> GaussianRegression:
    coef, intercept = fitted_attributes(model, "coef_ intercept_", ME)
    if noise_variance is None:
        expected, remedy = "a regression stores no variance of its residuals", "pass noise_variance="
        raise DomainError(sentence(ME, expected, type(model).__name__, remedy))
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    first = np.broadcast_to(np.asarray(intercept, dtype=np.float64), len(coef))
    return GaussianRegression(np.column_stack([first, coef]), noise_variance)


def _bayesian_regression(model: Any) -> RegressionPredictive:
    """The predictive density of the posterior of the coefficients; at the mean of the columns the height is known."""
    coef, sigma, alpha, intercept = fitted_attributes(model, "coef_ sigma_ alpha_ intercept_", ME)
    d, noise = len(coef), 1.0 / float(alpha)
    covariance = SURE * noise * np.eye(d)  # ARDRegression drops columns: their coefficients are 0
    kept = np.flatnonzero(model.lambda_ < model.threshold_lambda) if np.shape(sigma) != (d, d) else np.arange(d)
    covariance[np.ix_(kept, kept)] = sigma
    rows = np.zeros((d + 1, d + 1))  # their squares sum to the precision of (intercept, coefficients)
    rows[0] = np.append(1.0, np.broadcast_to(getattr(model, "X_offset_", 0.0), d)) / np.sqrt(SURE * noise)
    rows[1:, 1:] = np.linalg.inv(np.linalg.cholesky(covariance))
    root = np.linalg.qr(rows, mode="r")
    root *= np.sign(np.diagonal(root))[:, None]
    mean = np.append(float(intercept), coef)
    return CoefficientsGivenNoise.from_root(mean, root.T.copy(), np.asarray(noise), COLUMNS).predictive()


CONVERTERS: dict[str, Callable[..., Any]] = {
    "GaussianMixture": _gaussian_mixture, "BayesianGaussianMixture": _bayesian_mixture,
    "KernelDensity": _kernel_density, "FactorAnalysis": _factor_analysis, "PCA": _pca,
    "KMeans": _kmeans, "MiniBatchKMeans": _kmeans, "GaussianNB": _gaussian_nb, "MultinomialNB": _multinomial_nb,
    "BernoulliNB": _bernoulli_nb, "CategoricalNB": _categorical_nb, "LinearDiscriminantAnalysis": _lda,
    "QuadraticDiscriminantAnalysis": _qda, "KNeighborsClassifier": _k_neighbors,
    **dict.fromkeys(
        ("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV"), _linear_regression
    ),
    "BayesianRidge": _bayesian_regression, "ARDRegression": _bayesian_regression,
}  # fmt: skip
REASONS = {
    "ComplementNB": "its scores are not the likelihoods of a model",
    "Pipeline": "convert its last step, and give it the rows that the other steps make",
    "GridSearchCV": "convert its best_estimator_",
    "RandomizedSearchCV": "convert its best_estimator_",
}
