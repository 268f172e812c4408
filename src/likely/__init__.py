"""likely: densities in, decisions out.

Every model is a density. Learning adds up statistics. Deciding minimizes expected cost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likely._version import __version__

# Public names and where they live; each module is loaded when one of its names is first used,
# so that `import likely` costs little more than `import numpy`.
_HOMES = {
    "likely.alignment.barycenter": ["BarycenterResult", "barycenter"],
    "likely.alignment.dtw": ["Alignment", "dtw", "number_of_paths"],
    "likely.alignment.dtw_matrix": ["dtw_matrix"],
    "likely.alignment.estimator": ["DTWClassifier"],
    "likely.alignment.step_patterns": ["StepPattern"],
    "likely.alignment.subsequence": ["Matches", "subsequence"],
    "likely.automl.choose_states": ["StateChoice", "choose_states"],
    "likely.automl.sequence_models": ["SequenceClassifier", "SequenceDensity"],
    "likely.automl.table_classifier": ["TableClassifier"],
    "likely.automl.table_clusterer": ["TableClusterer"],
    "likely.classify.bayes": ["BayesClassifier"],
    "likely.classify.calibration.calibrated": ["CalibratedClassifier"],
    "likely.classify.fisher_discriminant": ["FisherDiscriminant"],
    "likely.classify.k_neighbors": ["KNeighborsClassifier"],
    "likely.classify.naive_bayes": ["NaiveBayes"],
    "likely.classify.nearest_centroid": ["NearestCentroidClassifier"],
    "likely.classify.prior_classifier": ["PriorClassifier"],
    "likely.cluster.hierarchy.dendrogram": ["Dendrogram"],
    "likely.cluster.hierarchy.dendrogram_cut": ["cut_curve"],
    "likely.cluster.hierarchy.estimator": ["AgglomerativeClustering"],
    "likely.cluster.hierarchy.linkage": ["linkage"],
    "likely.cluster.kmeans.centroids": ["Centroids"],
    "likely.cluster.kmeans.choose_k": ["choose_k"],
    "likely.cluster.kmeans.estimator": ["KMeans"],
    "likely.core.blocks": ["Block", "Blocks"],
    "likely.core.classifier": ["Classifier"],
    "likely.core.columns": ["Columns"],
    "likely.core.covariates": ["with_covariates"],
    "likely.core.density": ["Density", "Learnable"],
    "likely.core.engine": ["Engine", "Serial", "Threads"],
    "likely.core.errors": [
        "DataError", "DomainError", "FitWarning", "LikelyError", "ModelFileError", "NotConverged", "ShapeError",
    ],
    "likely.core.filter_protocol": ["step"],
    "likely.core.em_loop": ["FitStep", "Stop", "fit", "iterate"],
    "likely.core.fit_report": ["FitReport"],
    "likely.core.online_em": ["online"],
    "likely.core.prior": ["Prior"],
    "likely.core.ragged": ["Ragged"],
    "likely.core.sketch": ["Sketch"],
    "likely.core.stats": ["Stats"],
    "likely.data.read_sequences": ["Sequences", "read_sequences"],
    "likely.data.read_table": ["read_table"],
    "likely.data.table": ["Table"],
    "likely.data.wav": ["read_wav"],
    "likely.decision.boundary.boundary": ["Boundary", "decision_boundary"],
    "likely.decision.boundary.hyperplane": ["Hyperplane"],
    "likely.decision.combine": ["change_prior", "combine"],
    "likely.decision.cost": ["Cost"],
    "likely.decision.decide": ["Decisions", "decide"],
    "likely.decision.reject": ["NOVEL", "REJECT"],
    "likely.decision.sequential.cusum": ["Cusum"],
    "likely.decision.sequential.sprt": ["SPRT"],
    "likely.decision.theory.bayes_error": ["bayes_error"],
    "likely.decision.theory.density_bounds": ["bhattacharyya_bound", "chernoff_bound"],
    "likely.decision.theory.error_bounds": [
        "ErrorBounds", "bayes_error_from_neighbors", "cover_hart", "cross_entropy_bound", "error_bounds", "fano",
        "hellman_raviv", "squared_error_bound",
    ],
    "likely.decomposition.discriminant_subspace": ["DiscriminantSubspace"],
    "likely.decomposition.estimators.factor_analysis": ["FactorAnalysis", "PPCA"],
    "likely.decomposition.estimators.pca": ["PCA"],
    "likely.decomposition.principal_subspace": ["PrincipalSubspace"],
    "likely.density.estimators.histogram_density": ["HistogramDensity"],
    "likely.density.estimators.kernel_density": ["KernelDensity"],
    "likely.density.estimators.knn_density": ["KNNDensity"],
    "likely.density.histogram": ["Histogram"],
    "likely.density.kde": ["KDE", "coulomb_potential"],
    "likely.density.knn_balls": ["KNNBalls"],
    "likely.distributions.binary.bahadur": ["Bahadur"],
    "likely.distributions.binary.bernoulli": ["Bernoulli"],
    "likely.distributions.binary.log_linear": ["LogLinear"],
    "likely.distributions.binary.walsh": ["Walsh"],
    "likely.distributions.categorical.categorical": ["Categorical"],
    "likely.distributions.categorical.chow_liu": ["ChowLiuTree"],
    "likely.distributions.categorical.dirichlet": ["Dirichlet"],
    "likely.distributions.categorical.dirichlet_multinomial": ["DirichletMultinomial"],
    "likely.distributions.categorical.multinomial": ["Multinomial"],
    "likely.distributions.categorical.probability_table": ["ProbabilityTable"],
    "likely.distributions.elliptical.elliptical": ["Elliptical"],
    "likely.distributions.elliptical.estimator": ["EllipticalDensity"],
    "likely.distributions.entropy": ["entropy"],
    "likely.distributions.estimators.binary_densities": ["BahadurDensity", "BernoulliDensity", "WalshDensity"],
    "likely.distributions.estimators.categorical_densities": ["CategoricalDensity", "ChowLiuTreeDensity"],
    "likely.distributions.estimators.continuous_densities": [
        "BetaDensity", "CauchyDensity", "ChiSquareDensity", "DirichletDensity", "ExponentialDensity", "GammaDensity",
        "LaplaceDensity", "TriangularDensity", "UniformDensity", "VonMisesDensity",
    ],
    "likely.distributions.estimators.count_densities": [
        "BetaBinomialDensity", "BinomialDensity", "DirichletMultinomialDensity", "MultinomialDensity",
        "NegativeBinomialDensity", "PoissonDensity",
    ],
    "likely.distributions.estimators.product_density": ["ProductDensity"],
    "likely.distributions.gaussian.estimator": ["GaussianDensity"],
    "likely.distributions.gaussian.factor_gaussian": ["FactorGaussian"],
    "likely.distributions.gaussian.gaussian": ["Gaussian"],
    "likely.distributions.matrix.inverse_wishart": ["InverseWishart"],
    "likely.distributions.matrix.wishart": ["Wishart"],
    "likely.distributions.maxent.maximum_entropy": ["maximum_entropy"],
    "likely.distributions.maxent.maximum_entropy_distribution": ["MaximumEntropyDistribution"],
    "likely.distributions.priors.bilateral_pareto": ["BilateralPareto"],
    "likely.distributions.priors.covariance_given_mean": ["CovarianceGivenMean"],
    "likely.distributions.priors.direction_prior": ["DirectionPrior"],
    "likely.distributions.priors.mean_given_covariance": ["MeanGivenCovariance"],
    "likely.distributions.priors.multinomial_prior": ["MultinomialPrior"],
    "likely.distributions.priors.normal_gamma": ["NormalGamma"],
    "likely.distributions.priors.normal_inverse_gamma": ["NormalInverseGamma"],
    "likely.distributions.priors.normal_inverse_wishart": ["NormalInverseWishart"],
    "likely.distributions.priors.product_prior": ["ProductPrior"],
    "likely.distributions.priors.pseudo_data": ["EarlierData"],
    "likely.distributions.priors.pseudo_observations": ["EarlierRows"],
    "likely.distributions.priors.student_t_prior": ["StudentTPrior"],
    "likely.distributions.product": ["Product"],
    "likely.distributions.stacks.stack": ["Stack"],
    "likely.distributions.stacks.tied": ["Tied"],
    "likely.distributions.statistics.extremes": ["Extremes"],
    "likely.distributions.student_t.estimator": ["StudentTDensity"],
    "likely.distributions.student_t.student_t": ["StudentT"],
    "likely.distributions.sums.convolution": ["convolve", "sum_of"],
    "likely.distributions.sums.grid_distribution": ["GridDistribution"],
    "likely.distributions.sums.lattice_distribution": ["LatticeDistribution"],
    "likely.distributions.transforms.bijector": ["Bijector"],
    "likely.distributions.transforms.transformed": ["Transformed"],
    "likely.distributions.unconstrained_parameters": ["declare_constraints"],
    "likely.distributions.univariate.beta": ["Beta"],
    "likely.distributions.univariate.beta_binomial": ["BetaBinomial"],
    "likely.distributions.univariate.beta_negative_binomial": ["BetaNegativeBinomial"],
    "likely.distributions.univariate.binomial": ["Binomial"],
    "likely.distributions.univariate.cauchy": ["Cauchy"],
    "likely.distributions.univariate.chi_square": ["ChiSquare"],
    "likely.distributions.univariate.exponential": ["Exponential"],
    "likely.distributions.univariate.gamma": ["Gamma"],
    "likely.distributions.univariate.laplace": ["Laplace"],
    "likely.distributions.univariate.lomax": ["Lomax"],
    "likely.distributions.univariate.negative_binomial": ["NegativeBinomial"],
    "likely.distributions.univariate.poisson": ["Poisson"],
    "likely.distributions.univariate.triangular": ["Triangular"],
    "likely.distributions.univariate.uniform": ["Uniform"],
    "likely.distributions.univariate.uniform_predictive": ["UniformPredictive"],
    "likely.distributions.univariate.von_mises": ["VonMises"],
    "likely.distributions.univariate.von_mises_sum": ["VonMisesSum"],
    "likely.estimation.estimate": ["estimate"],
    "likely.features.histogram_equalization": ["equalize_histogram"],
    "likely.features.mfcc": ["MFCC"],
    "likely.hmm.estimators.hmm_density": ["HMMDensity"],
    "likely.hmm.hmm": ["HMM"],
    "likely.hmm.hmm_stats": ["HMMStats"],
    "likely.hmm.logistic_transition": ["LogisticPrior", "LogisticStats", "LogisticTransition"],
    "likely.hmm.priors": ["HMMPrior"],
    "likely.hmm.topology": ["Topology"],
    "likely.imputation.impute": ["impute"],
    "likely.inference.laplace_approximation": ["LaplaceApproximation", "laplace_approximation"],
    "likely.inference.robbins_monro": ["RobbinsMonro", "RunningEstimate"],
    "likely.inference.smc_sampler": ["SMCResult", "smc_sampler"],
    "likely.information.divergence": ["cross_entropy", "js_divergence", "kl_divergence"],
    "likely.information.mutual_information": ["conditional_entropy", "mutual_information"],
    "likely.io.checkpoint": ["Checkpoint"],
    "likely.io.follow_stream": ["follow"],
    "likely.io.model_files": ["load", "save"],
    "likely.language.bigram": ["Bigram", "learn_bigram"],
    "likely.language.transcript": ["Transcript"],
    "likely.language.word_network": ["WordNetwork"],
    "likely.metrics.clusterings": [
        "adjusted_mutual_information", "adjusted_rand_index", "best_matching", "contingency", "fowlkes_mallows",
        "normalized_mutual_information", "purity", "rand_index", "v_measure", "variation_of_information",
    ],
    "likely.metrics.confidence_intervals": ["proportion_interval"],
    "likely.metrics.evaluation": ["Evaluation"],
    "likely.metrics.goodness_of_fit": ["check_squared_distances", "shell_share"],
    "likely.metrics.high_dimensional_geometry": [
        "gaussian_shell", "hubness", "intrinsic_dimension", "relative_contrast", "ring_ratio",
    ],
    "likely.metrics.high_dimensions": ["HighDimensions", "high_dimensions"],
    "likely.metrics.operating_point": ["operating_threshold"],
    "likely.metrics.silhouette": ["calinski_harabasz", "davies_bouldin", "silhouette_score", "silhouette_samples"],
    "likely.metrics.unimodality": ["check_unimodality"],
    "likely.metrics.word_errors": ["WordErrors", "word_errors"],
    "likely.mixture.estimators.choose_components": ["ComponentChoice", "choose_components"],
    "likely.mixture.estimators.contaminated_density": ["ContaminatedDensity"],
    "likely.mixture.estimators.mixture_clusterer": ["MixtureClusterer"],
    "likely.mixture.estimators.mixture_density": ["MixtureDensity"],
    "likely.mixture.interpolation": ["FixedComponents", "interpolation_weights"],
    "likely.mixture.mixture": ["Mixture"],
    "likely.mixture.priors": ["MixturePrior"],
    "likely.mixture.scaled_copies": ["ScaledCopies"],
    "likely.mixture.sparse_weights": ["SparseWeights"],
    "likely.model_selection.cross_validation": ["evaluate"],
    "likely.model_selection.learning_curve": ["hughes_curve", "learning_curve"],
    "likely.neighbors.editing": ["condensed_nearest_neighbor", "edited_nearest_neighbors"],
    "likely.neighbors.nearest_neighbors": ["NeighborSearch"],
    "likely.numerics.stirling": ["log_stirling2"],
    "likely.recognizers.faults.fault_monitor": ["FaultMonitor"],
    "likely.recognizers.speech.spoken_words": ["SpokenWords"],
    "likely.recognizers.tracking.tracker": ["Track", "Tracker"],
    "likely.statespace.continuous.linear_sde": ["LinearSDE"],
    "likely.statespace.continuous.timed_belief": ["TimedBelief"],
    "likely.statespace.estimators.linear_gaussian_density": ["LinearGaussianDensity"],
    "likely.statespace.estimators.switching_density": ["SwitchingDensity"],
    "likely.statespace.linear.forecast": ["StateForecast"],
    "likely.statespace.linear.linear_em": ["LinearLearner", "LinearPrior"],
    "likely.statespace.linear.linear_gaussian": ["LinearGaussian"],
    "likely.statespace.linear.linear_stats": ["LinearStats"],
    "likely.statespace.linear.standard_errors": ["StandardErrors", "standard_errors"],
    "likely.statespace.linear.state_belief": ["StateBelief"],
    "likely.statespace.linear.sums_of_models": ["structural_components"],
    "likely.statespace.nonlinear.extended_kalman_filter": ["ExtendedFilter"],
    "likely.statespace.nonlinear.state_space": ["StateSpace"],
    "likely.statespace.nonlinear.unscented_kalman_filter": ["CubatureFilter", "UnscentedFilter"],
    "likely.statespace.particle.particle_belief": ["ParticleBelief"],
    "likely.statespace.particle.particle_filter": ["ParticleFilter", "ParticleRun"],
    "likely.statespace.particle.particle_smoother": ["SmoothedPaths"],
    "likely.statespace.switching.fault_alarms": ["fault_alarms"],
    "likely.statespace.switching.imm_filter": ["IMMFilter"],
    "likely.statespace.switching.rao_blackwellized_filter": ["RaoBlackwellizedFilter"],
    "likely.statespace.switching.switching_belief": ["SwitchingBelief"],
    "likely.statespace.switching.switching_em": ["SwitchingLearner", "SwitchingPrior"],
    "likely.statespace.switching.switching_linear": ["SwitchingLinearGaussian"],
    "likely.statespace.switching.switching_stats": ["SwitchingStats"],
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from likely.alignment.barycenter import BarycenterResult, barycenter
    from likely.alignment.dtw import Alignment, dtw, number_of_paths
    from likely.alignment.dtw_matrix import dtw_matrix
    from likely.alignment.estimator import DTWClassifier
    from likely.alignment.step_patterns import StepPattern
    from likely.alignment.subsequence import Matches, subsequence
    from likely.automl.choose_states import StateChoice, choose_states
    from likely.automl.sequence_models import SequenceClassifier, SequenceDensity
    from likely.automl.table_classifier import TableClassifier
    from likely.automl.table_clusterer import TableClusterer
    from likely.classify.bayes import BayesClassifier
    from likely.classify.calibration.calibrated import CalibratedClassifier
    from likely.classify.fisher_discriminant import FisherDiscriminant
    from likely.classify.k_neighbors import KNeighborsClassifier
    from likely.classify.naive_bayes import NaiveBayes
    from likely.classify.nearest_centroid import NearestCentroidClassifier
    from likely.classify.prior_classifier import PriorClassifier
    from likely.cluster.hierarchy.dendrogram import Dendrogram
    from likely.cluster.hierarchy.dendrogram_cut import cut_curve
    from likely.cluster.hierarchy.estimator import AgglomerativeClustering
    from likely.cluster.hierarchy.linkage import linkage
    from likely.cluster.kmeans.centroids import Centroids
    from likely.cluster.kmeans.choose_k import choose_k
    from likely.cluster.kmeans.estimator import KMeans
    from likely.core.blocks import Block, Blocks
    from likely.core.classifier import Classifier
    from likely.core.columns import Columns
    from likely.core.covariates import with_covariates
    from likely.core.density import Density, Learnable
    from likely.core.em_loop import FitStep, Stop, fit, iterate
    from likely.core.engine import Engine, Serial, Threads
    from likely.core.errors import (
        DataError,
        DomainError,
        FitWarning,
        LikelyError,
        ModelFileError,
        NotConverged,
        ShapeError,
    )
    from likely.core.filter_protocol import step
    from likely.core.fit_report import FitReport
    from likely.core.online_em import online
    from likely.core.prior import Prior
    from likely.core.ragged import Ragged
    from likely.core.sketch import Sketch
    from likely.core.stats import Stats
    from likely.data.read_sequences import Sequences, read_sequences
    from likely.data.read_table import read_table
    from likely.data.table import Table
    from likely.data.wav import read_wav
    from likely.decision.boundary.boundary import Boundary, decision_boundary
    from likely.decision.boundary.hyperplane import Hyperplane
    from likely.decision.combine import change_prior, combine
    from likely.decision.cost import Cost
    from likely.decision.decide import Decisions, decide
    from likely.decision.reject import NOVEL, REJECT
    from likely.decision.sequential.cusum import Cusum
    from likely.decision.sequential.sprt import SPRT
    from likely.decision.theory.bayes_error import bayes_error
    from likely.decision.theory.density_bounds import bhattacharyya_bound, chernoff_bound
    from likely.decision.theory.error_bounds import (
        ErrorBounds,
        bayes_error_from_neighbors,
        cover_hart,
        cross_entropy_bound,
        error_bounds,
        fano,
        hellman_raviv,
        squared_error_bound,
    )
    from likely.decomposition.discriminant_subspace import DiscriminantSubspace
    from likely.decomposition.estimators.factor_analysis import PPCA, FactorAnalysis
    from likely.decomposition.estimators.pca import PCA
    from likely.decomposition.principal_subspace import PrincipalSubspace
    from likely.density.estimators.histogram_density import HistogramDensity
    from likely.density.estimators.kernel_density import KernelDensity
    from likely.density.estimators.knn_density import KNNDensity
    from likely.density.histogram import Histogram
    from likely.density.kde import KDE, coulomb_potential
    from likely.density.knn_balls import KNNBalls
    from likely.distributions.binary.bahadur import Bahadur
    from likely.distributions.binary.bernoulli import Bernoulli
    from likely.distributions.binary.log_linear import LogLinear
    from likely.distributions.binary.walsh import Walsh
    from likely.distributions.categorical.categorical import Categorical
    from likely.distributions.categorical.chow_liu import ChowLiuTree
    from likely.distributions.categorical.dirichlet import Dirichlet
    from likely.distributions.categorical.dirichlet_multinomial import DirichletMultinomial
    from likely.distributions.categorical.multinomial import Multinomial
    from likely.distributions.categorical.probability_table import ProbabilityTable
    from likely.distributions.elliptical.elliptical import Elliptical
    from likely.distributions.elliptical.estimator import EllipticalDensity
    from likely.distributions.entropy import entropy
    from likely.distributions.estimators.binary_densities import BahadurDensity, BernoulliDensity, WalshDensity
    from likely.distributions.estimators.categorical_densities import CategoricalDensity, ChowLiuTreeDensity
    from likely.distributions.estimators.continuous_densities import (
        BetaDensity,
        CauchyDensity,
        ChiSquareDensity,
        DirichletDensity,
        ExponentialDensity,
        GammaDensity,
        LaplaceDensity,
        TriangularDensity,
        UniformDensity,
        VonMisesDensity,
    )
    from likely.distributions.estimators.count_densities import (
        BetaBinomialDensity,
        BinomialDensity,
        DirichletMultinomialDensity,
        MultinomialDensity,
        NegativeBinomialDensity,
        PoissonDensity,
    )
    from likely.distributions.estimators.product_density import ProductDensity
    from likely.distributions.gaussian.estimator import GaussianDensity
    from likely.distributions.gaussian.factor_gaussian import FactorGaussian
    from likely.distributions.gaussian.gaussian import Gaussian
    from likely.distributions.matrix.inverse_wishart import InverseWishart
    from likely.distributions.matrix.wishart import Wishart
    from likely.distributions.maxent.maximum_entropy import maximum_entropy
    from likely.distributions.maxent.maximum_entropy_distribution import MaximumEntropyDistribution
    from likely.distributions.priors.bilateral_pareto import BilateralPareto
    from likely.distributions.priors.covariance_given_mean import CovarianceGivenMean
    from likely.distributions.priors.direction_prior import DirectionPrior
    from likely.distributions.priors.mean_given_covariance import MeanGivenCovariance
    from likely.distributions.priors.multinomial_prior import MultinomialPrior
    from likely.distributions.priors.normal_gamma import NormalGamma
    from likely.distributions.priors.normal_inverse_gamma import NormalInverseGamma
    from likely.distributions.priors.normal_inverse_wishart import NormalInverseWishart
    from likely.distributions.priors.product_prior import ProductPrior
    from likely.distributions.priors.pseudo_data import EarlierData
    from likely.distributions.priors.pseudo_observations import EarlierRows
    from likely.distributions.priors.student_t_prior import StudentTPrior
    from likely.distributions.product import Product
    from likely.distributions.stacks.stack import Stack
    from likely.distributions.stacks.tied import Tied
    from likely.distributions.statistics.extremes import Extremes
    from likely.distributions.student_t.estimator import StudentTDensity
    from likely.distributions.student_t.student_t import StudentT
    from likely.distributions.sums.convolution import convolve, sum_of
    from likely.distributions.sums.grid_distribution import GridDistribution
    from likely.distributions.sums.lattice_distribution import LatticeDistribution
    from likely.distributions.transforms.bijector import Bijector
    from likely.distributions.transforms.transformed import Transformed
    from likely.distributions.unconstrained_parameters import declare_constraints
    from likely.distributions.univariate.beta import Beta
    from likely.distributions.univariate.beta_binomial import BetaBinomial
    from likely.distributions.univariate.beta_negative_binomial import BetaNegativeBinomial
    from likely.distributions.univariate.binomial import Binomial
    from likely.distributions.univariate.cauchy import Cauchy
    from likely.distributions.univariate.chi_square import ChiSquare
    from likely.distributions.univariate.exponential import Exponential
    from likely.distributions.univariate.gamma import Gamma
    from likely.distributions.univariate.laplace import Laplace
    from likely.distributions.univariate.lomax import Lomax
    from likely.distributions.univariate.negative_binomial import NegativeBinomial
    from likely.distributions.univariate.poisson import Poisson
    from likely.distributions.univariate.triangular import Triangular
    from likely.distributions.univariate.uniform import Uniform
    from likely.distributions.univariate.uniform_predictive import UniformPredictive
    from likely.distributions.univariate.von_mises import VonMises
    from likely.distributions.univariate.von_mises_sum import VonMisesSum
    from likely.estimation.estimate import estimate
    from likely.features.histogram_equalization import equalize_histogram
    from likely.features.mfcc import MFCC
    from likely.hmm.estimators.hmm_density import HMMDensity
    from likely.hmm.hmm import HMM
    from likely.hmm.hmm_stats import HMMStats
    from likely.hmm.logistic_transition import LogisticPrior, LogisticStats, LogisticTransition
    from likely.hmm.priors import HMMPrior
    from likely.hmm.topology import Topology
    from likely.imputation.impute import impute
    from likely.inference.laplace_approximation import LaplaceApproximation, laplace_approximation
    from likely.inference.robbins_monro import RobbinsMonro, RunningEstimate
    from likely.inference.smc_sampler import SMCResult, smc_sampler
    from likely.information.divergence import cross_entropy, js_divergence, kl_divergence
    from likely.information.mutual_information import conditional_entropy, mutual_information
    from likely.io.checkpoint import Checkpoint
    from likely.io.follow_stream import follow
    from likely.io.model_files import load, save
    from likely.language.bigram import Bigram, learn_bigram
    from likely.language.transcript import Transcript
    from likely.language.word_network import WordNetwork
    from likely.metrics.clusterings import (
        adjusted_mutual_information,
        adjusted_rand_index,
        best_matching,
        contingency,
        fowlkes_mallows,
        normalized_mutual_information,
        purity,
        rand_index,
        v_measure,
        variation_of_information,
    )
    from likely.metrics.confidence_intervals import proportion_interval
    from likely.metrics.evaluation import Evaluation
    from likely.metrics.goodness_of_fit import check_squared_distances, shell_share
    from likely.metrics.high_dimensional_geometry import (
        gaussian_shell,
        hubness,
        intrinsic_dimension,
        relative_contrast,
        ring_ratio,
    )
    from likely.metrics.high_dimensions import HighDimensions, high_dimensions
    from likely.metrics.operating_point import operating_threshold
    from likely.metrics.silhouette import calinski_harabasz, davies_bouldin, silhouette_samples, silhouette_score
    from likely.metrics.unimodality import check_unimodality
    from likely.metrics.word_errors import WordErrors, word_errors
    from likely.mixture.estimators.choose_components import ComponentChoice, choose_components
    from likely.mixture.estimators.contaminated_density import ContaminatedDensity
    from likely.mixture.estimators.mixture_clusterer import MixtureClusterer
    from likely.mixture.estimators.mixture_density import MixtureDensity
    from likely.mixture.interpolation import FixedComponents, interpolation_weights
    from likely.mixture.mixture import Mixture
    from likely.mixture.priors import MixturePrior
    from likely.mixture.scaled_copies import ScaledCopies
    from likely.mixture.sparse_weights import SparseWeights
    from likely.model_selection.cross_validation import evaluate
    from likely.model_selection.learning_curve import hughes_curve, learning_curve
    from likely.neighbors.editing import condensed_nearest_neighbor, edited_nearest_neighbors
    from likely.neighbors.nearest_neighbors import NeighborSearch
    from likely.numerics.stirling import log_stirling2
    from likely.recognizers.faults.fault_monitor import FaultMonitor
    from likely.recognizers.speech.spoken_words import SpokenWords
    from likely.recognizers.tracking.tracker import Track, Tracker
    from likely.statespace.continuous.linear_sde import LinearSDE
    from likely.statespace.continuous.timed_belief import TimedBelief
    from likely.statespace.estimators.linear_gaussian_density import LinearGaussianDensity
    from likely.statespace.estimators.switching_density import SwitchingDensity
    from likely.statespace.linear.forecast import StateForecast
    from likely.statespace.linear.linear_em import LinearLearner, LinearPrior
    from likely.statespace.linear.linear_gaussian import LinearGaussian
    from likely.statespace.linear.linear_stats import LinearStats
    from likely.statespace.linear.standard_errors import StandardErrors, standard_errors
    from likely.statespace.linear.state_belief import StateBelief
    from likely.statespace.linear.sums_of_models import structural_components
    from likely.statespace.nonlinear.extended_kalman_filter import ExtendedFilter
    from likely.statespace.nonlinear.state_space import StateSpace
    from likely.statespace.nonlinear.unscented_kalman_filter import CubatureFilter, UnscentedFilter
    from likely.statespace.particle.particle_belief import ParticleBelief
    from likely.statespace.particle.particle_filter import ParticleFilter, ParticleRun
    from likely.statespace.particle.particle_smoother import SmoothedPaths
    from likely.statespace.switching.fault_alarms import fault_alarms
    from likely.statespace.switching.imm_filter import IMMFilter
    from likely.statespace.switching.rao_blackwellized_filter import RaoBlackwellizedFilter
    from likely.statespace.switching.switching_belief import SwitchingBelief
    from likely.statespace.switching.switching_em import SwitchingLearner, SwitchingPrior
    from likely.statespace.switching.switching_linear import SwitchingLinearGaussian
    from likely.statespace.switching.switching_stats import SwitchingStats

__all__ = [
    "AgglomerativeClustering", "Alignment", "Bahadur", "BahadurDensity", "BarycenterResult", "BayesClassifier",
    "Bernoulli", "BernoulliDensity", "Beta", "BetaBinomial", "BetaBinomialDensity", "BetaDensity",
    "BetaNegativeBinomial", "Bigram", "Bijector", "BilateralPareto", "Binomial", "BinomialDensity", "Block", "Blocks",
    "Boundary", "CalibratedClassifier", "Categorical", "CategoricalDensity", "Cauchy", "CauchyDensity", "Centroids",
    "Checkpoint", "ChiSquare", "ChiSquareDensity", "ChowLiuTree", "ChowLiuTreeDensity", "Classifier", "Columns",
    "ComponentChoice", "ContaminatedDensity", "Cost", "CovarianceGivenMean", "CubatureFilter", "Cusum", "DTWClassifier",
    "DataError", "Decisions", "Dendrogram", "Density", "DirectionPrior", "Dirichlet", "DirichletDensity",
    "DirichletMultinomial", "DirichletMultinomialDensity", "DiscriminantSubspace", "DomainError", "EarlierData",
    "EarlierRows", "Elliptical", "EllipticalDensity",
    "Engine", "ErrorBounds", "Evaluation", "Exponential", "ExponentialDensity", "ExtendedFilter", "Extremes",
    "FactorAnalysis", "FactorGaussian", "FaultMonitor", "FisherDiscriminant", "FitReport", "FitStep", "FitWarning",
    "FixedComponents", "Gamma", "GammaDensity", "Gaussian", "GaussianDensity", "GridDistribution", "HMM", "HMMDensity",
    "HMMPrior", "HMMStats", "HighDimensions", "Histogram", "HistogramDensity", "Hyperplane", "IMMFilter",
    "InverseWishart", "KDE", "KMeans", "KNNBalls", "KNNDensity", "KNeighborsClassifier", "KernelDensity", "Laplace",
    "LaplaceApproximation", "LaplaceDensity", "LatticeDistribution", "Learnable", "LikelyError", "LinearGaussian",
    "LinearGaussianDensity", "LinearLearner", "LinearPrior", "LinearSDE", "LinearStats", "LogLinear", "LogisticPrior",
    "LogisticStats", "LogisticTransition", "Lomax", "MFCC",
    "Matches", "MaximumEntropyDistribution", "MeanGivenCovariance", "Mixture", "MixtureClusterer", "MixtureDensity",
    "MixturePrior", "ModelFileError", "Multinomial", "MultinomialDensity", "MultinomialPrior", "NOVEL", "NaiveBayes",
    "NearestCentroidClassifier", "NegativeBinomial", "NegativeBinomialDensity", "NeighborSearch", "NormalGamma",
    "NormalInverseGamma", "NormalInverseWishart", "NotConverged", "PCA", "PPCA", "ParticleBelief", "ParticleFilter",
    "ParticleRun", "Poisson", "PoissonDensity", "PrincipalSubspace", "Prior", "PriorClassifier", "ProbabilityTable",
    "Product", "ProductDensity", "ProductPrior", "REJECT", "Ragged", "RaoBlackwellizedFilter", "RobbinsMonro",
    "RunningEstimate", "SMCResult", "SPRT", "ScaledCopies", "SequenceClassifier", "SequenceDensity", "Sequences",
    "Serial", "ShapeError", "Sketch", "SmoothedPaths", "SparseWeights", "SpokenWords", "Stack", "StandardErrors",
    "StateBelief", "StateChoice", "StateForecast", "StateSpace", "Stats", "StepPattern", "Stop", "StudentT",
    "StudentTDensity", "StudentTPrior", "SwitchingBelief", "SwitchingDensity", "SwitchingLearner",
    "SwitchingLinearGaussian", "SwitchingPrior", "SwitchingStats", "Table", "TableClassifier", "TableClusterer",
    "Threads", "Tied", "TimedBelief", "Topology", "Track", "Tracker", "Transcript", "Transformed", "Triangular",
    "TriangularDensity", "Uniform", "UniformDensity", "UniformPredictive", "UnscentedFilter", "VonMises",
    "VonMisesDensity", "VonMisesSum", "Walsh", "WalshDensity", "Wishart", "WordErrors", "WordNetwork", "__version__",
    "adjusted_mutual_information", "adjusted_rand_index", "barycenter", "bayes_error", "bayes_error_from_neighbors",
    "best_matching", "bhattacharyya_bound", "calinski_harabasz", "change_prior", "check_squared_distances",
    "check_unimodality", "chernoff_bound", "choose_components", "choose_k", "choose_states", "combine",
    "condensed_nearest_neighbor", "conditional_entropy", "contingency", "convolve", "coulomb_potential", "cover_hart",
    "cross_entropy", "cross_entropy_bound", "cut_curve", "davies_bouldin", "decide", "decision_boundary",
    "declare_constraints", "dtw", "dtw_matrix", "edited_nearest_neighbors", "entropy", "equalize_histogram",
    "error_bounds", "estimate", "evaluate", "fano", "fault_alarms", "fit", "follow", "fowlkes_mallows",
    "gaussian_shell", "hellman_raviv", "high_dimensions", "hubness", "hughes_curve", "impute", "interpolation_weights",
    "intrinsic_dimension", "iterate", "js_divergence", "kl_divergence", "laplace_approximation", "learn_bigram",
    "learning_curve", "linkage", "load", "log_stirling2", "maximum_entropy", "mutual_information",
    "normalized_mutual_information", "number_of_paths", "online", "operating_threshold", "proportion_interval",
    "purity", "rand_index", "read_sequences", "read_table", "read_wav", "relative_contrast", "ring_ratio",
    "save", "shell_share", "silhouette_samples", "silhouette_score", "smc_sampler", "squared_error_bound",
    "standard_errors", "step", "structural_components", "subsequence", "sum_of", "v_measure",
    "variation_of_information", "with_covariates", "word_errors",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "plots":  # a folder of pictures, loaded when one is asked for
        return import_module("likely.plots")
    if name == "extend":  # base classes for distributions and estimators of other packages
        return import_module("likely.extend")
    home = _HOME.get(name)
    if home is None:
        hint = import_module("likely.core.foreign_names").hint(name)
        raise AttributeError(f"module 'likely' has no attribute {name!r}{hint}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
