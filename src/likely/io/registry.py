"""The classes that model files may hold: one name per class, with the module that defines it."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from likely.core.declared import declarations
from likely.core.errors import DomainError, sentence
from likely.core.value import Value
from likely.io.container import Refusal

# Modules are imported when one of their classes is first needed, and no text in a file determines what is imported.
HOMES: dict[str, tuple[str, ...]] = {
    "likely.alignment.estimator": ("DTWClassifier",),
    "likely.automl.sequence_models": ("SequenceClassifier", "SequenceDensity"),
    "likely.automl.table_classifier": ("TableClassifier",),
    "likely.automl.table_clusterer": ("TableClusterer",),
    "likely.classify.bayes": ("BayesClassifier",),
    "likely.classify.calibration.calibrated": ("CalibratedClassifier",),
    "likely.classify.calibration.calibration_maps": ("IsotonicMap", "LogisticMap", "Temperature"),
    "likely.classify.calibration.probability_floor": ("Floor",),
    "likely.classify.fisher_discriminant": ("FisherDiscriminant",),
    "likely.classify.k_neighbors": ("KNeighborsClassifier",),
    "likely.classify.naive_bayes": ("NaiveBayes",),
    "likely.classify.nearest_centroid": ("NearestCentroidClassifier",),
    "likely.classify.prior_classifier": ("PriorClassifier",),
    "likely.cluster.hierarchy.dendrogram": ("Dendrogram",),
    "likely.cluster.hierarchy.dendrogram_cut": ("CutCurve",),
    "likely.cluster.hierarchy.estimator": ("AgglomerativeClustering",),
    "likely.cluster.kmeans.centroids": ("CentroidStats", "Centroids"),
    "likely.cluster.kmeans.estimator": ("KMeans",),
    "likely.core.progress": ("FollowedLines", "Following", "Progress"),
    "likely.decision.boundary.boundary": ("Boundary",),
    "likely.decision.boundary.hyperplane": ("Hyperplane",),
    "likely.decision.cost": ("Cost",),
    "likely.decision.sequential.alarm_filter": ("AlarmBelief",),
    "likely.decision.sequential.cusum": ("Cusum",),
    "likely.decision.sequential.sprt": ("SPRT",),
    "likely.decomposition.discriminant_subspace": ("DiscriminantSubspace",),
    "likely.decomposition.estimators.factor_analysis": ("FactorAnalysis", "PPCA"),
    "likely.decomposition.estimators.pca": ("PCA",),
    "likely.decomposition.principal_subspace": ("PrincipalSubspace",),
    "likely.density.estimators.histogram_density": ("HistogramDensity",),
    "likely.density.estimators.kernel_density": ("KernelDensity",),
    "likely.density.estimators.knn_density": ("KNNDensity",),
    "likely.density.histogram": ("BinCounts", "Histogram"),
    "likely.density.kde": ("KDE",),
    "likely.density.knn_balls": ("KNNBalls",),
    "likely.distributions.binary.bahadur": ("Bahadur",),
    "likely.distributions.binary.bernoulli": ("Bernoulli", "Trials"),
    "likely.distributions.binary.log_linear": ("LogLinear",),
    "likely.distributions.binary.sign_products": ("SignSums",),
    "likely.distributions.binary.walsh": ("Walsh",),
    "likely.distributions.categorical.categorical": ("Categorical", "LevelCounts"),
    "likely.distributions.categorical.chow_liu": ("ChowLiuTree",),
    "likely.distributions.categorical.dirichlet": ("Dirichlet",),
    "likely.distributions.categorical.dirichlet_multinomial": ("DirichletMultinomial",),
    "likely.distributions.categorical.dirichlet_multinomial_counts": ("UrnCounts",),
    "likely.distributions.categorical.multinomial": ("Multinomial", "WordCounts"),
    "likely.distributions.categorical.pair_counts": ("PairCounts",),
    "likely.distributions.categorical.probability_table": ("ProbabilityTable",),
    "likely.distributions.elliptical.elliptical": ("Elliptical",),
    "likely.distributions.elliptical.estimator": ("EllipticalDensity",),
    "likely.distributions.elliptical.weighted_rows": ("WeightedRows",),
    "likely.distributions.estimators.binary_densities": ("BahadurDensity", "BernoulliDensity", "WalshDensity"),
    "likely.distributions.estimators.categorical_densities": ("CategoricalDensity", "ChowLiuTreeDensity"),
    "likely.distributions.estimators.continuous_densities": (
        "BetaDensity", "CauchyDensity", "ChiSquareDensity", "DirichletDensity", "ExponentialDensity", "GammaDensity",
        "LaplaceDensity", "TriangularDensity", "UniformDensity", "VonMisesDensity",
    ),
    "likely.distributions.estimators.count_densities": (
        "BetaBinomialDensity", "BinomialDensity", "DirichletMultinomialDensity", "MultinomialDensity",
        "NegativeBinomialDensity", "PoissonDensity",
    ),
    "likely.distributions.estimators.product_density": ("ProductDensity",),
    "likely.distributions.gaussian.estimator": ("GaussianDensity",),
    "likely.distributions.gaussian.factor_gaussian": ("FactorGaussian",),
    "likely.distributions.gaussian.gaussian": ("Gaussian",),
    "likely.distributions.gaussian.moments": ("ColumnMoments", "Moments"),
    "likely.distributions.gaussian.scatter_qr": ("ScatterRoot",),
    "likely.distributions.matrix.inverse_wishart": ("InverseWishart",),
    "likely.distributions.matrix.matrix_rows": ("MatrixSums",),
    "likely.distributions.matrix.wishart": ("Wishart",),
    "likely.distributions.maxent.maximum_entropy_distribution": ("MaximumEntropyDistribution",),
    "likely.distributions.priors.bilateral_pareto": ("BilateralPareto",),
    "likely.distributions.priors.covariance_given_mean": ("CovarianceGivenMean",),
    "likely.distributions.priors.direction_prior": ("DirectionPrior",),
    "likely.distributions.priors.mean_given_covariance": ("MeanGivenCovariance",),
    "likely.distributions.priors.multinomial_prior": ("MultinomialPrior",),
    "likely.distributions.priors.normal_gamma": ("NormalGamma",),
    "likely.distributions.priors.normal_inverse_gamma": ("NormalInverseGamma",),
    "likely.distributions.priors.normal_inverse_wishart": ("NormalInverseWishart",),
    "likely.distributions.priors.product_prior": ("ProductPrior",),
    "likely.distributions.priors.pseudo_data": ("EarlierData",),
    "likely.distributions.priors.pseudo_observations": ("EarlierRows",),
    "likely.distributions.priors.student_t_prior": ("StudentTPrior",),
    "likely.distributions.product": ("Product", "ProductStats"),
    "likely.distributions.stacks.stack": ("Stack", "StackStats"),
    "likely.distributions.stacks.tied": ("Tied",),
    "likely.distributions.statistics.counts": ("Counts",),
    "likely.distributions.statistics.extremes": ("Extremes",),
    "likely.distributions.statistics.feature_sums": ("FeatureSums",),
    "likely.distributions.statistics.positive_sums": ("PositiveSums",),
    "likely.distributions.statistics.weighted_values": ("WeightedValues",),
    "likely.distributions.student_t.estimator": ("StudentTDensity",),
    "likely.distributions.student_t.scale_statistics": ("ScaleSums",),
    "likely.distributions.student_t.student_t": ("StudentT",),
    "likely.distributions.sums.grid_distribution": ("GridDistribution",),
    "likely.distributions.sums.lattice_distribution": ("LatticeDistribution",),
    "likely.distributions.transforms.bijector": ("Bijector",),
    "likely.distributions.transforms.transformed": ("Transformed", "TransformedStats"),
    "likely.distributions.univariate.beta": ("Beta",),
    "likely.distributions.univariate.beta_binomial": ("BetaBinomial",),
    "likely.distributions.univariate.beta_negative_binomial": ("BetaNegativeBinomial",),
    "likely.distributions.univariate.binomial": ("Binomial", "Successes"),
    "likely.distributions.univariate.cauchy": ("Cauchy",),
    "likely.distributions.univariate.chi_square": ("ChiSquare",),
    "likely.distributions.univariate.exponential": ("Exponential",),
    "likely.distributions.univariate.gamma": ("Gamma",),
    "likely.distributions.univariate.laplace": ("Laplace",),
    "likely.distributions.univariate.lomax": ("Lomax",),
    "likely.distributions.univariate.negative_binomial": ("NegativeBinomial",),
    "likely.distributions.univariate.poisson": ("Poisson",),
    "likely.distributions.univariate.triangular": ("Triangular",),
    "likely.distributions.univariate.uniform": ("Uniform",),
    "likely.distributions.univariate.uniform_predictive": ("UniformPredictive",),
    "likely.distributions.univariate.von_mises": ("VonMises",),
    "likely.distributions.univariate.von_mises_sum": ("VonMisesSum",),
    "likely.features.mfcc": ("MFCC",),
    "likely.hmm.estimators.hmm_density": ("HMMDensity",),
    "likely.hmm.hmm": ("HMM", "DueTransition"),
    "likely.hmm.hmm_stats": ("HMMStats",),
    "likely.hmm.logistic_transition": ("LogisticTransition", "LogisticStats", "LogisticPrior"),
    "likely.hmm.priors": ("HMMPrior",),
    "likely.hmm.topology": ("Topology",),
    "likely.inference.robbins_monro": ("RobbinsMonro", "RunningEstimate"),
    "likely.language.word_network": ("WordNetwork",),
    "likely.mixture.estimators.contaminated_density": ("ContaminatedDensity",),
    "likely.mixture.estimators.mixture_clusterer": ("MixtureClusterer",),
    "likely.mixture.estimators.mixture_density": ("MixtureDensity",),
    "likely.mixture.fixed_weights": ("FixedWeights",),
    "likely.mixture.interpolation": ("FixedComponents", "FixedStats"),
    "likely.mixture.mixture": ("Mixture", "MixtureStats"),
    "likely.mixture.priors": ("MixturePrior",),
    "likely.mixture.scaled_copies": ("ScaledCopies",),
    "likely.mixture.sparse_weights": ("SparseWeights",),
    "likely.neighbors.distinct_rows": ("DistinctRows",),
    "likely.recognizers.faults.fault_monitor": ("FaultMonitor",),
    "likely.recognizers.faults.fault_watch": ("FaultBelief", "FaultWatch"),
    "likely.recognizers.faults.sensor_dynamics": ("SensorDynamics",),
    "likely.recognizers.speech.spoken_words": ("SpokenWords",),
    "likely.recognizers.tracking.data_association": ("DataAssociation", "TrackBelief"),
    "likely.recognizers.tracking.tracker": ("Tracker",),
    "likely.statespace.continuous.linear_sde": ("LinearSDE",),
    "likely.statespace.continuous.timed_belief": ("TimedBelief",),
    "likely.statespace.estimators.linear_gaussian_density": ("LinearGaussianDensity",),
    "likely.statespace.estimators.switching_density": ("SwitchingDensity",),
    "likely.statespace.linear.diffuse_initialization": ("DiffusePart",),
    "likely.statespace.linear.forecast": ("StateForecast",),
    "likely.statespace.linear.linear_em": ("LinearLearner", "LinearPrior"),
    "likely.statespace.linear.linear_gaussian": ("LinearGaussian",),
    "likely.statespace.linear.linear_stats": ("LinearStats",),
    "likely.statespace.linear.linear_structure": ("Structure",),
    "likely.statespace.linear.state_belief": ("StateBelief",),
    "likely.statespace.particle.particle_belief": ("ParticleBelief",),
    "likely.statespace.switching.imm_filter": ("IMMFilter",),
    "likely.statespace.switching.rao_blackwellized_filter": ("RaoBlackwellizedFilter",),
    "likely.statespace.switching.switching_belief": ("SwitchingBelief",),
    "likely.statespace.switching.switching_em": ("SwitchingPrior",),
    "likely.statespace.switching.switching_linear": ("SwitchingLinearGaussian",),
    "likely.statespace.switching.switching_stats": ("SwitchingStats",),
}  # fmt: skip

HOME = {name: module for module, names in HOMES.items() for name in names}
REGISTERED: dict[str, type[Any]] = {}  # classes of other packages

Class = TypeVar("Class", bound=type[Any])


def register(cls: Class) -> Class:
    """Make `lk.save` and `lk.load` know a class of your own: a value, or an estimator with `saved_attributes`.

    It holds for this process: whoever loads the file imports your module first. A file can never cause an import.
    Use it as a decorator. The fields of a value must be declared (`lk.extend.declared`).
    """
    name = cls.__name__
    if HOME.get(name, "") or REGISTERED.get(name, cls).__module__ != cls.__module__:
        raise DomainError(sentence("register", "a class needs a name of its own", repr(name), "rename the class"))
    if isinstance(cls, type) and issubclass(cls, Value) and is_dataclass(cls):
        try:
            declarations(cls)
        except TypeError as error:
            raise DomainError(str(error)) from None
    elif not hasattr(cls, "saved_attributes"):
        expected = "a dataclass derived from Distribution or Value, or an estimator derived from DensityEstimator"
        raise DomainError(sentence("register", expected, name))
    REGISTERED[name] = cls
    return cls


def class_of(name: str) -> type[Any] | None:
    """The class of that name, imported on first use if it is one of ours; None if it is not known."""
    return REGISTERED.get(name) or (_imported(name) if name in HOME else None)


@cache
def _imported(name: str) -> type[Any]:
    try:
        found: type[Any] = getattr(import_module(HOME[name]), name)
    except ImportError as error:
        raise Refusal(f"{name} needs a package that can be loaded", f"no {error.name or 'such package'}") from error
    return found


def names() -> list[str]:
    """The classes that can be saved."""
    return sorted([*HOME, *REGISTERED])
