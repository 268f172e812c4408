"""Every estimator is a real scikit-learn estimator: all of its checks; those expected to fail say why."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags

import likely as lk
from likely.statespace.estimators.linear_gaussian_density import LinearGaussianDensity
from tests.cases import one_per_class, scikit_learn_checks

ESTIMATORS = [
    lk.GaussianDensity(),
    lk.GaussianDensity("diagonal"),
    lk.GaussianDensity("spherical"),
    lk.GaussianDensity("pooled"),
    lk.GaussianDensity(prior=None),
    lk.PoissonDensity(),
    lk.KernelDensity(),
    lk.KernelDensity(kernel="elliptical", bandwidth="maximum"),
    lk.KernelDensity(kernel="t", relative_bandwidth=0.55),
    lk.KernelDensity(kernel="cube"),
    lk.KernelDensity(kernel="cosine", bandwidth=2.0),
    lk.KernelDensity(kernel="epanechnikov", bandwidth="silverman"),
    lk.HistogramDensity(),
    lk.HistogramDensity(1, joint=True),  # a check has 30 columns: 3 cells each would be 10¹⁴ of them
    lk.KNNDensity(2),
    lk.PoissonDensity(prior=None),
    lk.CategoricalDensity(),
    lk.CategoricalDensity(prior=1.0),
    lk.ProductDensity(),
    lk.ProductDensity(lk.PoissonDensity()),
    lk.ProductDensity(lk.CategoricalDensity()),
    lk.GaussianDensity("shrunk-diagonal"),
    lk.GaussianDensity(predictive="all"),
    lk.PoissonDensity(predictive=True),
    lk.CategoricalDensity(predictive=True),
    lk.MultinomialDensity(),
    lk.StudentTDensity(),
    lk.StudentTDensity("independent", prior=None),
    lk.distributions.EllipticalDensity(),
    lk.distributions.EllipticalDensity("logistic", prior=None),
    lk.BernoulliDensity(),
    lk.ExponentialDensity(),
    lk.BinomialDensity(),
    lk.BinomialDensity(predictive=True),
    lk.distributions.BetaBinomialDensity(),
    lk.NegativeBinomialDensity(),
    lk.distributions.VonMisesDensity(),
    lk.GammaDensity(),
    lk.GammaDensity(prior=None),
    lk.BetaDensity(),
    lk.BetaDensity(low=-10.0, high=20.0),
    lk.DirichletDensity(),
    lk.distributions.DirichletMultinomialDensity(),
    lk.ExponentialDensity(predictive=True),
    lk.UniformDensity(),
    lk.UniformDensity(prior=None),
    lk.UniformDensity(predictive=True),
    lk.distributions.TriangularDensity(),
    lk.LaplaceDensity(),
    lk.LaplaceDensity(prior=None),
    lk.distributions.CauchyDensity(),
    lk.distributions.ChiSquareDensity(),
    lk.distributions.WalshDensity(),
    lk.distributions.WalshDensity(2, log=True),
    lk.distributions.BahadurDensity(),
    lk.ChowLiuTreeDensity(),
    lk.MixtureDensity(),
    lk.MixtureDensity(n_components=3, random_state=0),
    lk.MixtureDensity(lk.GaussianDensity("diagonal"), 3, random_state=0),
    lk.MixtureDensity(n_components=3, hard=True, random_state=0),
    lk.MixtureDensity(lk.MultinomialDensity(), 2, random_state=0),
    lk.MixtureDensity(lk.BernoulliDensity(), 2, random_state=0),
    lk.MixtureClusterer(n_components=2, random_state=0),
]

CLASSIFIERS = [
    lk.BayesClassifier(),
    lk.BayesClassifier(lk.GaussianDensity("diagonal")),
    lk.BayesClassifier(lk.GaussianDensity("pooled", prior=None)),
    lk.BayesClassifier(lk.GaussianDensity("pooled", pooling="class")),
    lk.BayesClassifier(lk.GaussianDensity("shrunk-pooled")),
    lk.BayesClassifier(lk.GaussianDensity("shrunk-diagonal")),
    lk.BayesClassifier(lk.GaussianDensity(predictive="all"), class_prior=1.0),
    lk.BayesClassifier(lk.GaussianDensity("pooled", predictive="mean", noise=0.01), class_prior="uniform"),
    lk.BayesClassifier(lk.PoissonDensity(predictive=True)),
    lk.BayesClassifier(lk.KernelDensity()),
    lk.BayesClassifier(lk.KernelDensity(kernel="exponential", bandwidth="maximum")),
    lk.BayesClassifier(lk.KernelDensity(unit="pooled")),
    lk.BayesClassifier(lk.HistogramDensity()),
    lk.BayesClassifier(lk.KNNDensity(3)),
    lk.BayesClassifier(lk.KNNDensity(3, shared=True)),
    lk.BayesClassifier(lk.ProductDensity(lk.CategoricalDensity())),
    lk.FisherDiscriminant(),
    lk.FisherDiscriminant(criterion="determinant", shrinkage=0.1),
    lk.KNeighborsClassifier(),
    lk.KNeighborsClassifier("leave-one-out", "l1", weights="distance", class_prior="uniform"),
    lk.KNeighborsClassifier(1, "mahalanobis", prototypes="condensed"),
    lk.KNeighborsClassifier(3, "scaled", prototypes="edited"),
    lk.NearestCentroidClassifier(),
    lk.NearestCentroidClassifier("l1", "median"),
    lk.NearestCentroidClassifier("mahalanobis", class_prior=None),
    lk.NearestCentroidClassifier("lp"),
    lk.BayesClassifier(lk.LaplaceDensity()),
    lk.BayesClassifier(lk.ExponentialDensity(predictive=True)),
    lk.BayesClassifier(lk.UniformDensity(predictive=True)),
    lk.NaiveBayes(),
    lk.NaiveBayes("poisson"),
    lk.NaiveBayes("categorical"),
    lk.BayesClassifier(lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2, random_state=0)),
    lk.BayesClassifier(lk.MixtureDensity(lk.GaussianDensity("diagonal"), 4, tie="all", random_state=0)),  # of 3 classes
]

SLOW_CLASSIFIERS = [  # whose densities are checked alone every time
    lk.BayesClassifier(lk.StudentTDensity()),
    lk.BayesClassifier(lk.distributions.WalshDensity(2, log=True)),
    lk.BayesClassifier(lk.ChowLiuTreeDensity()),
]

REGRESSORS = [
    lk.LinearRegression(),
    lk.LinearRegression(lk.basis.Polynomial(2)),
    lk.Ridge(),
    lk.Ridge("evidence"),
    lk.Ridge("leave-one-out"),
    lk.BayesianLinearRegression(),
    lk.BayesianLinearRegression(prior="ard"),
    lk.BayesianLinearRegression(lk.basis.Polynomial(2), penalize_constant=True),
    lk.linear_model.MixtureRegression(random_state=0),
    lk.linear_model.MixtureRegression(3, tied_noise=True, n_init=2, random_state=0, max_iter=50),
    lk.neighbors.KNeighborsRegressor(),
    lk.neighbors.KNeighborsRegressor("leave-one-out", "scaled", weights="distance"),
]

CHAINS = [
    lk.HMMDensity(),
    lk.HMMDensity(lk.GaussianDensity("diagonal"), n_states=2, random_state=0, max_iter=5),
    lk.HMMDensity(n_states=2, topology="cyclic", hard=True, random_state=0, max_iter=5),
    lk.HMMDensity(lk.MixtureDensity(lk.GaussianDensity("diagonal"), 2), n_states=2, random_state=0, max_iter=5),
    LinearGaussianDensity(max_iter=5),
    LinearGaussianDensity(n_states=2, prior=None, accelerate=False, max_iter=3),
    lk.SwitchingDensity(max_iter=2),
    lk.SwitchingDensity(3, prior=None, max_iter=3),
]
A_WEIGHT_A_SEQUENCE = "a matrix is one sequence and has one weight; the check gives one a row"
NOT_FOR_SEQUENCES = {
    "check_methods_sample_order_invariance": "the order of frames is what a chain is about",
    "check_methods_subset_invariance": "a part of a sequence has another history than the whole",
    "check_fit1d": "a vector is one sequence of single values, as symbols are",
    "check_sample_weights_pandas_series": A_WEIGHT_A_SEQUENCE,
    "check_sample_weights_not_an_array": A_WEIGHT_A_SEQUENCE,
    "check_sample_weights_list": A_WEIGHT_A_SEQUENCE,
    "check_sample_weights_shape": A_WEIGHT_A_SEQUENCE,
    "check_sample_weights_not_overwritten": A_WEIGHT_A_SEQUENCE,
    "check_all_zero_sample_weights_error": A_WEIGHT_A_SEQUENCE,
    "check_sample_weight_equivalence_on_dense_data": A_WEIGHT_A_SEQUENCE,
}

# defined by scikit-learn, but left out by check_estimator (the rest of these need predict or transform)
NOT_YIELDED = [
    checks.check_dataframe_column_names_consistency,
    checks.check_param_validation,
    checks.check_inplace_ensure_writeable,
]


FRACTIONS = "the check gives fractions whatever the tags say, and distributions of counts refuse them"
NOT_FOR_COUNTS = {
    "check_sample_weight_equivalence_on_dense_data": FRACTIONS,
    "check_sample_weight_equivalence_on_sparse_data": FRACTIONS,
    "check_classifiers_one_label_sample_weights": FRACTIONS,
}


def of_counts(estimator):
    """Whether an estimator takes integers from 0 on, and nothing else."""
    tags = get_tags(estimator).input_tags
    return tags.positive_only and tags.categorical


def not_for(estimator):
    """A full covariance is integrated out of complete rows only, as the tags say; scoring rows with NaN is exact."""
    if of_counts(estimator):
        first = {"check_positive_only_tag_during_fit": FRACTIONS}  # its first part has fractions, not negative numbers
        return NOT_FOR_COUNTS | (first if isinstance(estimator, lk.ProductDensity) else {})
    if isinstance(estimator, lk.distributions.WalshDensity | lk.distributions.BahadurDensity):
        few = "all cells of at most 20 columns are summed, and the check has 30"
        return {f"check_sample_weight_equivalence_on_{kind}_data": few for kind in ("dense", "sparse")}
    if isinstance(estimator, lk.Ridge) and estimator.alpha == "leave-one-out":
        return {"check_estimators_nan_inf": "rows to be left out must be complete, rows to be predicted need not"}
    density = getattr(estimator, "density", None)
    all_out = isinstance(density, lk.GaussianDensity) and density.predictive == "all" and density.covariance == "full"
    return {"check_estimators_nan_inf": "the check wants predict to refuse NaN"} if all_out else {}


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("estimator", [e for e in [*ESTIMATORS, *CLASSIFIERS] if of_counts(e)], ids=repr)
def test_weights_of_counts_are_copies(estimator, kind):
    if kind is csr_array and not get_tags(estimator).input_tags.sparse:
        pytest.skip("dense rows only")
    rng = np.random.default_rng(0)
    X, y, w = rng.poisson(3.0, (30, 3)).astype(float), np.arange(30) % 2, rng.integers(0, 4, 30)
    weighted = clone(estimator).fit(kind(X), y, sample_weight=w)
    copied = clone(estimator).fit(kind(np.repeat(X, w, axis=0)), np.repeat(y, w))
    ask = "predict_log_proba" if hasattr(estimator, "predict_log_proba") else "score_samples"
    np.testing.assert_allclose(getattr(weighted, ask)(kind(X)), getattr(copied, ask)(kind(X)), rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@scikit_learn_checks([*ESTIMATORS, *CLASSIFIERS, *REGRESSORS], expected_failed_checks=not_for)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@scikit_learn_checks(SLOW_CLASSIFIERS)
def test_scikit_learn_check_of_slow_classifiers(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likely.FitWarning")
@scikit_learn_checks(CHAINS, expected_failed_checks=lambda estimator: NOT_FOR_SEQUENCES)
def test_scikit_learn_check_of_one_sequence(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", NOT_YIELDED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", one_per_class([*ESTIMATORS, *REGRESSORS, *CHAINS]), ids=repr)
def test_check_that_is_not_yielded(estimator, check):
    check(type(estimator).__name__, estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", NOT_YIELDED, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", one_per_class(CLASSIFIERS), ids=repr)
def test_check_of_classifiers_that_is_not_yielded(estimator, check):
    check(type(estimator).__name__, estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", one_per_class([*CLASSIFIERS, *SLOW_CLASSIFIERS]), ids=repr)
def test_checks_of_classifiers_with_data_of_their_own(estimator):
    X, y = make_blobs(n_samples=60, random_state=0, cluster_std=0.1)
    X = np.round(20 * (X - X.min())) if get_tags(estimator).input_tags.positive_only else X
    name = type(estimator).__name__
    checks.check_classifiers_predictions(X, y, name, estimator)
    checks.check_classifiers_predictions(X, np.array(["a", "b", "c"], dtype=object)[y], name, estimator)
    checks.check_estimators_data_not_an_array(name, estimator, X, y, "NotAnArray")
    checks.check_estimators_data_not_an_array(name, estimator, X, y, "PandasDataframe")
