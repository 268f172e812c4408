"""String options: every value of a Literal type is taken, another string is refused by a message that lists them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

import likely as lk
from likely.classify.naive_bayes import DISTRIBUTIONS, ColumnDistributionName
from tests.options import Option, string_options

ABC = np.repeat(["a", "b"], 6)
REAL = np.random.default_rng(0).normal(size=(12, 3)) + (ABC == "b")[:, None]
COUNTS = np.random.default_rng(1).poisson(2.0, (12, 2)).astype(float)
BINARY = (REAL > 0).astype(float)
SERIES = [np.sin(np.linspace(0.5, 3.0 + k, 8 + k)) + 1.5 for k in range(4)]
ROWS: dict[str, Any] = {  # rows that suit an estimator; real ones suit the others
    **dict.fromkeys(("BernoulliDensity", "WalshDensity", "BahadurDensity"), BINARY),
    **dict.fromkeys(("CategoricalDensity",), BINARY[:, :1]),
    **dict.fromkeys(("ChowLiuTreeDensity",), BINARY),
    **dict.fromkeys(("PoissonDensity", "NegativeBinomialDensity", "MultinomialDensity"), COUNTS),
    **dict.fromkeys(("BinomialDensity", "BetaBinomialDensity"), np.minimum(COUNTS, 5)),
    **dict.fromkeys(("DirichletMultinomialDensity",), COUNTS + 1),
    **dict.fromkeys(("ExponentialDensity", "GammaDensity", "ChiSquareDensity"), np.abs(REAL) + 0.1),
    **dict.fromkeys(("BetaDensity",), 1 / (1 + np.exp(-REAL))),
    **dict.fromkeys(("DirichletDensity",), np.exp(REAL) / np.exp(REAL).sum(axis=1, keepdims=True)),
    **dict.fromkeys(("HMMDensity",), SERIES),
}
MORE: dict[str, dict[str, Any]] = {  # settings that an estimator needs beside the option
    "BinomialDensity": {"trials": 5}, "BetaBinomialDensity": {"trials": 5}, "HMMDensity": {"n_states": 2},
    "KMeans": {"n_clusters": 2}, "FactorAnalysis": {"n_components": 1}, "PPCA": {"n_components": 1},
    "KNNDensity": {"n_neighbors": 3},
}  # fmt: skip


def fitted(name: str, **setting: Any) -> Any:
    """An estimator with this setting, learned from a few rows."""
    cls = getattr(lk, name, None) or next(
        getattr(space, name) for space in (lk.distributions, lk.decomposition, lk.mixture) if hasattr(space, name)
    )
    more = {**MORE.get(name, {}), **setting}
    if "max_iter" in cls().get_params():
        more.setdefault("max_iter", 3)
    return cls(**more).fit(ROWS.get(name, REAL), *([ABC] if name in CLASSIFIERS else []))


CLASSIFIERS = (
    *("BayesClassifier", "FisherDiscriminant", "KNeighborsClassifier", "NearestCentroidClassifier", "NaiveBayes"),
    "PriorClassifier", "TableClassifier",
)
WALK = lk.LinearGaussian(
    transition=[[1.0]], process_covariance=[[1.0]], observation=[[1.0]], observation_covariance=[[1.0]],
    initial_mean=[0.0], initial_covariance=[[1.0]],
)  # fmt: skip
WILD = WALK.replace(process_covariance=np.array([[9.0]]))
SWITCHING = lk.SwitchingLinearGaussian([WALK, WILD], [[0.9, 0.1], [0.1, 0.9]])
TWO = lk.Gaussian([[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
MOMENTS = lk.Gaussian.blank(REAL).collect(REAL)
TABLE = lk.distributions.ProbabilityTable.from_counts([[3.0, 4.0], [5.0, 6.0]], {"a": ["x", "y"], "b": ["u", "v"]})
JUDGED = lk.Evaluation(np.log(np.full((12, 2), 0.5)), np.repeat([0, 1], 6), np.array(["a", "b"]))
DISTANCES = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))


def clustered(X: Any, **setting: Any) -> Any:
    """Rows, or distances where these are meant."""
    return lk.cluster.linkage(DISTANCES if setting.get("metric") == "precomputed" else X, **setting)


def agglomerated(**setting: Any) -> Any:
    how = {"n_clusters": None if "criterion" in setting else 2, **setting}
    if setting.get("metric", "euclidean") != "euclidean":
        how["linkage"] = "average"
    return lk.AgglomerativeClustering(**how).fit(DISTANCES if setting.get("metric") == "precomputed" else np.abs(REAL))


def aligned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **setting: function(SERIES[0], SERIES[1], **setting)


def naive(**setting: Any) -> Any:
    """Rows of counts, or shares between 0 and 1, that suit the distribution of all columns."""
    shares = ("auto", "gaussian", "student-t", "laplace", "cauchy", "uniform", "triangular", "histogram", "exponential",
              "gamma", "chi-square", "beta", "von-mises")  # fmt: skip
    X = ROWS["BetaDensity"] if setting.get("distributions", "auto") in shares else BINARY
    return lk.NaiveBayes(**setting).fit(X, ABC)


def calibrated() -> Any:
    return lk.CalibratedClassifier(lk.FisherDiscriminant()).fit(REAL, ABC)


RECIPES: dict[str, Callable[..., Any]] = {
    "NaiveBayes": naive,
    "BayesClassifier.decide": lambda **s: fitted("BayesClassifier").decide(REAL, **s),
    "TableClassifier.decide": lambda **s: fitted("TableClassifier").decide(REAL, **s),
    **{
        f"{name}.with_class_prior": lambda name=name, **s: fitted(name).with_class_prior(**s)
        for name in ("BayesClassifier", "FisherDiscriminant", "KNeighborsClassifier")
    },
    "CalibratedClassifier.with_class_prior": lambda **s: calibrated().with_class_prior(**s),
    "CalibratedClassifier.decide": lambda **s: calibrated().decide(REAL, **s),
    "CalibratedClassifier": lambda **s: lk.CalibratedClassifier(lk.FisherDiscriminant(), **s).fit(REAL, ABC),
    "ConformalRegressor": lambda **s: lk.ConformalRegressor(lk.LinearRegression(), **s).fit(REAL[:, :1], REAL[:, 1]),
    "KNeighborsRegressor": lambda **s: lk.neighbors.KNeighborsRegressor(3, **s).fit(REAL, np.arange(float(len(REAL)))),
    "TableClusterer": lambda **s: lk.automl.TableClusterer(max_components=2, n_init=1, **s).fit(REAL),
    "dtw": aligned(lk.dtw),
    "dtw_matrix": lambda **s: lk.alignment.dtw_matrix(SERIES, **s),
    "subsequence_dtw": lambda **s: lk.alignment.subsequence_dtw(SERIES[0][:4], SERIES[1], **s),
    "barycenter": lambda **s: lk.alignment.barycenter(SERIES[:2], **s),
    "DTWClassifier": lambda **s: lk.DTWClassifier(**s).fit(SERIES, ["a", "a", "b", "b"]).predict(SERIES),
    "AgglomerativeClustering": agglomerated,
    "linkage": lambda **s: clustered(np.abs(REAL), **({"method": "average"} if "metric" in s else {}), **s),
    "bic_curve": lambda **s: lk.cluster.bic_curve(lk.cluster.linkage(REAL), REAL, **s),
    "Dendrogram.cut": lambda **s: lk.cluster.linkage(REAL).cut(X=REAL, **s),
    "choose_k": lambda **s: lk.choose_k(REAL, range(1, 3), n_init=1, **s),
    "Histogram": lambda **s: lk.Histogram([[0.0, 1.0]], [1.0], **s),
    "Histogram.blank": lambda **s: lk.Histogram.blank(REAL[:, :1], **s),
    "KDE": lambda **s: lk.KDE(REAL, 0.5, **s),
    "KDE.blank": lambda **s: lk.KDE.blank(REAL, **s),
    "KNNBalls": lambda **s: lk.density.KNNBalls(REAL, 2, **s),
    "KNNBalls.blank": lambda **s: lk.density.KNNBalls.blank(REAL, **s),
    "Gaussian": lambda kind: lk.Gaussian([0.0], 1.0, kind),
    "Gaussian.blank": lambda **s: lk.Gaussian.blank(REAL, **s),
    "Gaussian.moments_fit": lambda **s: lk.Gaussian.moments_fit(REAL, **s),
    "Gaussian.unbiased_fit": lambda **s: lk.Gaussian.unbiased_fit(REAL, **s),
    "StudentT": lambda kind: lk.StudentT([0.0], 1.0, [3.0] if kind == "independent" else 3.0, kind),
    "StudentT.blank": lambda **s: lk.StudentT.blank(REAL, **s),
    "StudentT.moments_fit": lambda **s: lk.StudentT.moments_fit(np.random.default_rng(0).standard_t(6, (60, 2)), **s),
    "FactorGaussian": lambda kind: lk.distributions.FactorGaussian([0.0], [[1.0]], 1.0, kind),
    "FactorGaussian.blank": lambda **s: lk.distributions.FactorGaussian.blank(REAL, **s),
    "Tied": lambda what: lk.distributions.Tied(TWO, [0, 1], what),
    "Bijector": lambda **s: lk.distributions.Bijector(**s),
    "Transformed": lambda forward: lk.distributions.Transformed(lk.Beta(2.0, 2.0), forward),
    "Transformed.blank": lambda change: lk.distributions.Transformed.blank([[0.3], [0.4]], change=change),
    "ProbabilityTable.independence_test": lambda **s: TABLE.independence_test("a", "b", **s),
    "Elliptical": lambda **s: lk.distributions.Elliptical(center=[0.0], **s),
    "Elliptical.blank": lambda **s: lk.distributions.Elliptical.blank(REAL, **s),
    "Beta": lambda likelihood: lk.Beta(1.0, 2.0, likelihood, None if likelihood == "bernoulli" else 3.0),
    "Gamma": lambda **s: lk.Gamma(1.0, 2.0, **s),
    "Triangular": lambda **s: lk.distributions.Triangular(0.0, 1.0, 2.0, **s),
    "NormalInverseGamma": lambda **s: lk.priors.NormalInverseGamma([0.0], 1.0, 1.0, 3.0, **s),
    "NormalInverseGamma.weak": lambda **s: lk.priors.NormalInverseGamma.weak(MOMENTS, **s),
    "PseudoObservations.weak": lambda **s: lk.priors.PseudoObservations.weak(MOMENTS, 1, **s),
    "Dirichlet.point": lambda **s: lk.Dirichlet([2.0, 3.0]).point(**s),
    "Beta.point": lambda **s: lk.Beta(2.0, 3.0).point(**s),
    "Gamma.point": lambda **s: lk.Gamma(2.0, 3.0).point(**s),
    "BilateralPareto.point": lambda **s: lk.priors.BilateralPareto([0.0], [1.0], 3.0).point(**s),
    "VonMisesPrior.point": lambda **s: lk.priors.VonMisesPrior(lk.distributions.VonMises(0.0, 1.0), 2.0).point(**s),
    "CoefficientsGivenNoise.point": lambda **s: lk.priors.CoefficientsGivenNoise(np.zeros(2), 1.0, 0.5).point(**s),
    "MatrixNormalInverseWishart.point": lambda **s: lk.priors.MatrixNormalInverseWishart(
        np.zeros((1, 2)), np.eye(2), [[1.0]], 4.0
    ).point(**s),
    "MeanGivenCovariance.point": lambda **s: lk.priors.MeanGivenCovariance(lk.Gaussian([0.0], 1.0), 1.0).point(**s),
    "NormalGamma.point": lambda **s: lk.priors.NormalGamma([0.0], 1.0, 2.0, 1.0).point(**s),
    "NormalInverseGamma.point": lambda **s: lk.priors.NormalInverseGamma([0.0], 1.0, 1.0, 3.0).point(**s),
    "NormalInverseWishart.point": lambda **s: lk.priors.NormalInverseWishart([0.0], 1.0, [[1.0]], 4.0).point(**s),
    "Topology.of": lambda **s: lk.hmm.Topology.of(states=3, **s),
    "Evaluation.calibration": lambda **s: JUDGED.calibration(**s),
    "Evaluation.class_calibration": lambda **s: JUDGED.class_calibration(**s),
    "Evaluation.error_at": lambda **s: JUDGED.error_at(0.9, **s),
    "proportion_interval": lambda **s: lk.metrics.proportion_interval(1, 5, **s),
    "normalized_mutual_information": lambda **s: lk.metrics.normalized_mutual_information(ABC, ABC[::-1], **s),
    "adjusted_mutual_information": lambda **s: lk.metrics.adjusted_mutual_information(ABC, np.tile(["a", "b"], 6), **s),
    "distance_diagnostics": lambda **s: lk.metrics.distance_diagnostics(REAL, **s),
    "condensed_nearest_neighbor": lambda **s: lk.neighbors.condensed_nearest_neighbor(REAL, ABC, **s),
    "edited_nearest_neighbors": lambda **s: lk.neighbors.edited_nearest_neighbors(REAL, ABC, **s),
    "NeighborSearch.of": lambda **s: lk.neighbors.NeighborSearch.of(REAL, **s),
    "hughes_curve": lambda **s: lk.model_selection.hughes_curve(
        lk.FisherDiscriminant(), REAL, ABC, cv=2, dims=[1], **s
    ),
    "smc_sampler": lambda **s: lk.inference.smc_sampler(
        lk.Gaussian([0.0], 1.0), likelihood=lambda x: -(x[:, 0] ** 2), n_particles=20, **s
    ),
    "ParticleFilter": lambda **s: lk.ParticleFilter(WALK, 10, **s),
    "IMMFilter": lambda **s: lk.statespace.IMMFilter(SWITCHING, **s),
    "RaoBlackwellizedFilter": lambda **s: lk.statespace.RaoBlackwellizedFilter(SWITCHING, 10, **s),
    "SwitchingLinearGaussian.filter": lambda **s: SWITCHING.filter([0.0, 1.0], **s),
    "LinearGaussian.seasonal": lambda **s: lk.LinearGaussian.seasonal(4, **s),
    "MFCC": lambda **s: lk.speech.MFCC(**s),
    "MultinomialPrior.point": lambda **s: lk.priors.MultinomialPrior(lk.Dirichlet([2.0, 3.0])).point(**s),
    "CovarianceGivenMean.point": lambda **s: lk.priors.CovarianceGivenMean(
        [0.0], lk.distributions.InverseWishart(4.0, [[1.0]])
    ).point(**s),
    "DiscriminantSubspace.criterion": lambda **s: lk.FisherDiscriminant().fit(REAL, ABC).axes_.criterion(**s),
}
NOT_HERE = {  # owner: why its options are not tried here
    "Prior.point": "a protocol",
    "StudentT.unbiased_fit": "always refused",
    **dict.fromkeys(("PseudoData.point", "PseudoObservations.point", "SparseWeights.point"), "has a mode only"),
    **dict.fromkeys(("StudentTPrior.point", "LinearPrior.point", "SwitchingPrior.point"), "has no point estimate"),
    **dict.fromkeys(("HMMPrior.point", "MixturePrior.point", "ProductPrior.point"), "is that of its parts"),
    "SwitchingDensity": "takes seconds: tests/statespace/estimators",
    "SpokenWords": "takes seconds: tests/recognizers/speech",
}
OPTIONS = [option for option in string_options() if option.owner not in NOT_HERE]


def use(option: Option, value: str) -> Any:
    """What the option belongs to, with this value."""
    recipe = RECIPES.get(option.owner) or (lambda **setting: fitted(option.owner, **setting))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recipe(**{option.name: value})


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: f"{option.owner}-{option.name}")
def test_every_value_of_an_option_is_taken(option: Option) -> None:
    for value in option.values:
        assert use(option, value) is not None


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: f"{option.owner}-{option.name}")
def test_another_string_is_refused_by_a_list_of_the_values(option: Option) -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        use(option, "no such option")
    message = str(refused.value).replace('"', "'")
    assert all(f"'{value}'" in message for value in option.values)


def test_distributions_of_naive_bayes_are_listed_once() -> None:
    assert {"auto", *DISTRIBUTIONS} == set(get_args(ColumnDistributionName))


def test_options_are_found() -> None:
    """The inspection finds aliases, unions, fields of values and inherited constructors."""
    found = {(option.owner, option.name) for option in string_options()}
    assert {("GaussianDensity", "covariance"), ("KDE", "rule"), ("dtw", "metric"), ("MFCC", "normalize")} <= found
    assert {("LinearGaussian.seasonal", "form"), ("HMMDensity", "topology"), ("LaplaceDensity", "prior")} <= found
    assert {("KNeighborsClassifier", "weights"), ("MixtureDensity", "init"), ("TableClusterer", "criterion")} <= found
    assert set(RECIPES) <= {owner for owner, _ in found}
    assert set(NOT_HERE) <= {owner for owner, _ in found}
