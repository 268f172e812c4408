"""likely: densities in, decisions out.

Every model is a density. Learning adds up statistics. Deciding minimises expected cost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from likely._version import __version__

# Public names and where they live; each module is loaded when one of its names is first used,
# so that `import likely` costs little more than `import numpy`.
_HOMES = {
    "likely.core.blocks": ["Block", "Blocks"],
    "likely.core.classifier": ["Classifier"],
    "likely.core.columns": ["Columns"],
    "likely.core.density": ["Density", "Learnable"],
    "likely.core.engine": ["Engine", "Serial", "Threads"],
    "likely.core.filter": ["step"],
    "likely.core.fit_loop": ["Step", "Stop", "fit", "iterate"],
    "likely.core.online": ["online"],
    "likely.core.prior": ["Prior"],
    "likely.core.ragged": ["Ragged"],
    "likely.core.fit_report": ["FitReport"],
    "likely.core.stats": ["Stats"],
    "likely.features.mfcc": ["Cepstra"],
    "likely.features.histogram_equalization": ["equalise"],
    "likely.data.read_table": ["read"],
    "likely.data.read_sequences": ["Sequences", "read_sequences"],
    "likely.data.table": ["Table"],
    "likely.data.wav": ["read_wav"],
    "likely.decisions.bayes_error": ["bayes_error"],
    "likely.decisions.boundary": ["Boundary", "boundary"],
    "likely.decisions.combine": ["change_prior", "combine"],
    "likely.decisions.cost": ["Cost"],
    "likely.decisions.cusum": ["Cusum"],
    "likely.decisions.decide": ["Decisions", "decide"],
    "likely.decisions.density_bounds": ["bhattacharyya", "chernoff"],
    "likely.decisions.distances": ["check_squared_distances", "shell_share"],
    "likely.decisions.error_bounds": [
        "ErrorBounds", "bayes_from_neighbours", "cover_hart", "cross_entropy_bound", "error_bounds", "fano",
        "hellman_raviv", "squared_error_bound",
    ],
    "likely.decisions.evaluation": ["Evaluation"],
    "likely.decisions.geometry": [
        "gaussian_shell", "hubness", "intrinsic_dimension", "relative_contrast", "ring_ratio",
    ],
    "likely.decisions.hyperplane": ["Hyperplane"],
    "likely.decisions.intervals": ["proportion"],
    "likely.decisions.neighbours": ["check_unimodality"],
    "likely.decisions.operating": ["operating_threshold"],
    "likely.decisions.partitions": [
        "adjusted_mutual_information", "adjusted_rand", "best_matching", "contingency", "fowlkes_mallows",
        "normalised_mutual_information", "purity", "rand", "v_measure", "variation_of_information",
    ],
    "likely.decisions.race": ["Race", "race"],
    "likely.decisions.refusals": ["NOVEL", "REJECT"],
    "likely.decisions.separation": ["calinski_harabasz", "davies_bouldin", "silhouette", "silhouettes"],
    "likely.decisions.sequential": ["SequentialTest"],
    "likely.decisions.word_errors": ["WordErrors", "word_errors"],
    "likely.core.errors": [
        "DataError", "DomainError", "FitWarning", "LikelyError", "ModelFileError", "NotConverged", "ShapeError",
    ],
    "likely.estimators.agglomerative": ["Agglomerative"],
    "likely.estimators.bahadur": ["BahadurDensity"],
    "likely.estimators.bayes": ["BayesClassifier"],
    "likely.estimators.bernoulli": ["BernoulliDensity"],
    "likely.estimators.beta": ["BetaDensity"],
    "likely.estimators.beta_binomial": ["BetaBinomialDensity"],
    "likely.estimators.binomial": ["BinomialDensity"],
    "likely.estimators.calibrated": ["Calibrated"],
    "likely.estimators.categorical": ["CategoricalDensity"],
    "likely.estimators.cauchy": ["CauchyDensity"],
    "likely.estimators.chi_square": ["ChiSquareDensity"],
    "likely.estimators.choosing": ["ComponentChoice", "choose_components"],
    "likely.estimators.choosing_states": ["StateChoice", "choose_states"],
    "likely.estimators.chow_tree": ["ChowTreeDensity"],
    "likely.estimators.clusterer": ["MixtureClusterer"],
    "likely.estimators.contaminated": ["ContaminatedDensity"],
    "likely.estimators.curves": ["hughes_curve", "learning_curve"],
    "likely.estimators.dirichlet": ["DirichletDensity"],
    "likely.estimators.dirichlet_multinomial": ["DirichletMultinomialDensity"],
    "likely.estimators.distances": ["DistanceClassifier"],
    "likely.estimators.driven_hmm": ["DrivenHMMDensity"],
    "likely.estimators.dtw": ["DTWClassifier"],
    "likely.estimators.elliptical": ["EllipticalDensity"],
    "likely.estimators.exponential": ["ExponentialDensity"],
    "likely.estimators.factors": ["FactorAnalysis", "PPCA"],
    "likely.estimators.fisher": ["FisherDiscriminant"],
    "likely.io.follow_stream": ["follow"],
    "likely.estimators.frequencies": ["ClassFrequencies"],
    "likely.estimators.gamma": ["GammaDensity"],
    "likely.estimators.gaussian": ["GaussianDensity"],
    "likely.estimators.histogram": ["HistogramDensity"],
    "likely.estimators.hmm": ["HMMDensity"],
    "likely.estimators.kmeans": ["KMeans"],
    "likely.estimators.laplace": ["LaplaceDensity"],
    "likely.estimators.linear_gaussian": ["LinearGaussianDensity"],
    "likely.estimators.mixture": ["MixtureDensity"],
    "likely.estimators.multinomial": ["MultinomialDensity"],
    "likely.estimators.naive_bayes": ["NaiveBayes"],
    "likely.estimators.negative_binomial": ["NegativeBinomialDensity"],
    "likely.estimators.neighbour_density": ["NeighbourDensity"],
    "likely.estimators.neighbours": ["NearestNeighbours"],
    "likely.estimators.parzen": ["ParzenDensity"],
    "likely.estimators.pca": ["PCA"],
    "likely.estimators.poisson": ["PoissonDensity"],
    "likely.estimators.product": ["ProductDensity"],
    "likely.estimators.sequence_tables": ["SequenceClassifier", "SequenceDensity"],
    "likely.estimators.student_t": ["StudentTDensity"],
    "likely.estimators.switching": ["SwitchingDensity"],
    "likely.estimators.table_classifier": ["TableClassifier"],
    "likely.estimators.table_clusterer": ["TableClusterer"],
    "likely.estimators.triangular": ["TriangularDensity"],
    "likely.estimators.uniform": ["UniformDensity"],
    "likely.estimators.validation": ["evaluate"],
    "likely.estimators.von_mises": ["VonMisesDensity"],
    "likely.estimators.walsh": ["WalshDensity"],
    "likely.families.bahadur": ["Bahadur"],
    "likely.families.bernoulli": ["Bernoulli"],
    "likely.families.beta_binomial": ["BetaBinomial"],
    "likely.families.beta_negative_binomial": ["BetaNegativeBinomial"],
    "likely.families.binomial": ["Binomial"],
    "likely.families.categorical": ["Categorical"],
    "likely.families.cauchy": ["Cauchy"],
    "likely.families.change": ["Change"],
    "likely.families.chi_square": ["ChiSquare"],
    "likely.families.chow_tree": ["ChowTree"],
    "likely.families.dirichlet_multinomial": ["DirichletMultinomial"],
    "likely.families.elliptical": ["Elliptical"],
    "likely.families.entropy": ["entropy"],
    "likely.families.exponential": ["Exponential"],
    "likely.families.extremes": ["Extremes"],
    "likely.families.factor_gaussian": ["FactorGaussian"],
    "likely.families.free_parameters": ["declare_free"],
    "likely.families.gaussian": ["Gaussian"],
    "likely.families.grid_law": ["GridLaw"],
    "likely.families.information": ["cross_entropy", "js_divergence", "kl"],
    "likely.families.inverse_wishart": ["InverseWishart"],
    "likely.families.joint_information": ["conditional_entropy", "mutual_information"],
    "likely.families.laplace_law": ["Laplace"],
    "likely.families.lattice_law": ["LatticeLaw"],
    "likely.families.log_walsh": ["LogWalsh"],
    "likely.families.lomax": ["Lomax"],
    "likely.families.maximum_entropy_law": ["MaximumEntropyLaw"],
    "likely.families.multinomial": ["Multinomial"],
    "likely.families.negative_binomial": ["NegativeBinomial"],
    "likely.families.plateau": ["Plateau"],
    "likely.families.poisson": ["Poisson"],
    "likely.families.probability_table": ["ProbabilityTable"],
    "likely.families.product": ["Product"],
    "likely.families.several": ["Several"],
    "likely.families.shared": ["Shared"],
    "likely.families.student_t": ["StudentT"],
    "likely.families.transformed": ["Transformed"],
    "likely.families.triangular": ["Triangular"],
    "likely.families.uniform": ["Uniform"],
    "likely.families.von_mises": ["VonMises"],
    "likely.families.von_mises_sum": ["VonMisesSum"],
    "likely.families.walsh": ["Walsh"],
    "likely.families.wishart": ["Wishart"],
    "likely.io.model_files": ["Checkpoint", "load", "save"],
    "likely.numerics.stirling": ["bell", "log_stirling2", "stirling2"],
    "likely.models.barycentre": ["Barycentre", "barycentre"],
    "likely.models.centres": ["Centres"],
    "likely.models.choice_of_k": ["choose_k"],
    "likely.models.continuous": ["ContinuousLinear"],
    "likely.models.convolution": ["convolve", "sum_of"],
    "likely.core.covariates": ["with_covariates"],
    "likely.models.cuts": ["cut_curve"],
    "likely.models.dendrogram": ["Dendrogram"],
    "likely.models.driven_hmm": ["DrivenHMM"],
    "likely.models.driven_prior": ["DrivenPrior"],
    "likely.models.driven_stats": ["DrivenStats"],
    "likely.models.editing": ["condense", "edit"],
    "likely.models.emptying": ["SparseWeights"],
    "likely.models.estimating": ["estimate"],
    "likely.models.extended": ["ExtendedFilter"],
    "likely.models.fisher": ["FisherAxes"],
    "likely.models.fixed": ["Fixed", "interpolate"],
    "likely.models.hierarchy": ["linkage"],
    "likely.models.high_dimensions": ["HighDimensions", "high_dimensions"],
    "likely.models.histogram": ["Histogram"],
    "likely.models.hmm": ["HMM"],
    "likely.models.hmm_prior": ["HMMPrior"],
    "likely.models.hmm_stats": ["HMMStats"],
    "likely.models.imputing": ["impute"],
    "likely.models.interacting": ["InteractingModels"],
    "likely.models.laplace_approximation": ["LaplaceApproximation", "laplace"],
    "likely.models.linear_forecast": ["StateForecast"],
    "likely.models.linear_gaussian": ["LinearGaussian"],
    "likely.models.linear_learning": ["LinearLearner", "LinearPrior"],
    "likely.models.linear_stats": ["LinearStats"],
    "likely.models.maximum_entropy": ["maximum_entropy"],
    "likely.models.mixture": ["Mixture"],
    "likely.models.mixture_prior": ["MixturePrior"],
    "likely.models.monte_carlo": ["MonteCarlo", "monte_carlo"],
    "likely.models.neighbour_density": ["NeighbourBalls"],
    "likely.models.neighbour_search": ["NeighbourSearch"],
    "likely.models.particle_belief": ["ParticleBelief"],
    "likely.models.particle_filter": ["ParticleFilter", "ParticleRun"],
    "likely.models.particle_smoothing": ["SmoothedPaths"],
    "likely.models.parzen": ["Parzen", "coulomb_potential"],
    "likely.models.principal": ["Principal"],
    "likely.models.rao_blackwell": ["RaoBlackwell"],
    "likely.models.robbins_monro": ["RobbinsMonro", "RunningEstimate"],
    "likely.models.scaled": ["Scaled"],
    "likely.models.sigma_points": ["CubatureFilter", "UnscentedFilter"],
    "likely.core.sketch": ["Sketch"],
    "likely.models.standard_errors": ["StandardErrors", "standard_errors"],
    "likely.models.state_belief": ["StateBelief"],
    "likely.models.state_space": ["StateSpace"],
    "likely.models.sums": ["components"],
    "likely.models.switching": ["SwitchingLinear"],
    "likely.models.switching_alarms": ["fault_alarms"],
    "likely.models.switching_belief": ["SwitchingBelief"],
    "likely.models.switching_learning": ["SwitchingLearner", "SwitchingPrior"],
    "likely.models.switching_stats": ["SwitchingStats"],
    "likely.models.timed_belief": ["TimedBelief"],
    "likely.models.topology": ["Topology"],
    "likely.models.transcript": ["Transcript"],
    "likely.models.warp_pairs": ["dtw_matrix"],
    "likely.models.warp_places": ["Places", "subsequence"],
    "likely.models.warp_steps": ["Steps"],
    "likely.models.warping": ["Warping", "dtw", "number_of_paths"],
    "likely.models.word_grammar": ["Bigram", "learn_bigram"],
    "likely.models.word_network": ["WordNetwork"],
    "likely.priors.beta": ["Beta"],
    "likely.priors.bilateral_pareto": ["BilateralPareto"],
    "likely.priors.direction": ["DirectionPrior"],
    "likely.priors.dirichlet": ["Dirichlet"],
    "likely.priors.earlier_data": ["EarlierData"],
    "likely.priors.earlier_rows": ["EarlierRows"],
    "likely.priors.gamma": ["Gamma"],
    "likely.priors.known_mean": ["KnownMean"],
    "likely.priors.multinomial": ["MultinomialPrior"],
    "likely.priors.normal_gamma": ["NormalGamma"],
    "likely.priors.normal_inverse_gamma": ["NormalInverseGamma"],
    "likely.priors.normal_inverse_wishart": ["NormalInverseWishart"],
    "likely.priors.normal_mean": ["NormalMean"],
    "likely.priors.product": ["ProductPrior"],
    "likely.priors.student_t": ["StudentTPrior"],
    "likely.recognisers.fault_monitor": ["FaultMonitor"],
    "likely.recognisers.speech": ["SpokenWords"],
    "likely.recognisers.tracker": ["Track", "Tracker"],
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from likely.core.blocks import Block, Blocks
    from likely.core.classifier import Classifier
    from likely.core.columns import Columns
    from likely.core.covariates import with_covariates
    from likely.core.density import Density, Learnable
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
    from likely.core.filter import step
    from likely.core.fit_loop import Step, Stop, fit, iterate
    from likely.core.fit_report import FitReport
    from likely.core.online import online
    from likely.core.prior import Prior
    from likely.core.ragged import Ragged
    from likely.core.sketch import Sketch
    from likely.core.stats import Stats
    from likely.data.read_sequences import Sequences, read_sequences
    from likely.data.read_table import read
    from likely.data.table import Table
    from likely.data.wav import read_wav
    from likely.decisions.bayes_error import bayes_error
    from likely.decisions.boundary import Boundary, boundary
    from likely.decisions.combine import change_prior, combine
    from likely.decisions.cost import Cost
    from likely.decisions.cusum import Cusum
    from likely.decisions.decide import Decisions, decide
    from likely.decisions.density_bounds import bhattacharyya, chernoff
    from likely.decisions.distances import check_squared_distances, shell_share
    from likely.decisions.error_bounds import (
        ErrorBounds,
        bayes_from_neighbours,
        cover_hart,
        cross_entropy_bound,
        error_bounds,
        fano,
        hellman_raviv,
        squared_error_bound,
    )
    from likely.decisions.evaluation import Evaluation
    from likely.decisions.geometry import gaussian_shell, hubness, intrinsic_dimension, relative_contrast, ring_ratio
    from likely.decisions.hyperplane import Hyperplane
    from likely.decisions.intervals import proportion
    from likely.decisions.neighbours import check_unimodality
    from likely.decisions.operating import operating_threshold
    from likely.decisions.partitions import (
        adjusted_mutual_information,
        adjusted_rand,
        best_matching,
        contingency,
        fowlkes_mallows,
        normalised_mutual_information,
        purity,
        rand,
        v_measure,
        variation_of_information,
    )
    from likely.decisions.race import Race, race
    from likely.decisions.refusals import NOVEL, REJECT
    from likely.decisions.separation import calinski_harabasz, davies_bouldin, silhouette, silhouettes
    from likely.decisions.sequential import SequentialTest
    from likely.decisions.word_errors import WordErrors, word_errors
    from likely.estimators.agglomerative import Agglomerative
    from likely.estimators.bahadur import BahadurDensity
    from likely.estimators.bayes import BayesClassifier
    from likely.estimators.bernoulli import BernoulliDensity
    from likely.estimators.beta import BetaDensity
    from likely.estimators.beta_binomial import BetaBinomialDensity
    from likely.estimators.binomial import BinomialDensity
    from likely.estimators.calibrated import Calibrated
    from likely.estimators.categorical import CategoricalDensity
    from likely.estimators.cauchy import CauchyDensity
    from likely.estimators.chi_square import ChiSquareDensity
    from likely.estimators.choosing import ComponentChoice, choose_components
    from likely.estimators.choosing_states import StateChoice, choose_states
    from likely.estimators.chow_tree import ChowTreeDensity
    from likely.estimators.clusterer import MixtureClusterer
    from likely.estimators.contaminated import ContaminatedDensity
    from likely.estimators.curves import hughes_curve, learning_curve
    from likely.estimators.dirichlet import DirichletDensity
    from likely.estimators.dirichlet_multinomial import DirichletMultinomialDensity
    from likely.estimators.distances import DistanceClassifier
    from likely.estimators.driven_hmm import DrivenHMMDensity
    from likely.estimators.dtw import DTWClassifier
    from likely.estimators.elliptical import EllipticalDensity
    from likely.estimators.exponential import ExponentialDensity
    from likely.estimators.factors import PPCA, FactorAnalysis
    from likely.estimators.fisher import FisherDiscriminant
    from likely.estimators.frequencies import ClassFrequencies
    from likely.estimators.gamma import GammaDensity
    from likely.estimators.gaussian import GaussianDensity
    from likely.estimators.histogram import HistogramDensity
    from likely.estimators.hmm import HMMDensity
    from likely.estimators.kmeans import KMeans
    from likely.estimators.laplace import LaplaceDensity
    from likely.estimators.linear_gaussian import LinearGaussianDensity
    from likely.estimators.mixture import MixtureDensity
    from likely.estimators.multinomial import MultinomialDensity
    from likely.estimators.naive_bayes import NaiveBayes
    from likely.estimators.negative_binomial import NegativeBinomialDensity
    from likely.estimators.neighbour_density import NeighbourDensity
    from likely.estimators.neighbours import NearestNeighbours
    from likely.estimators.parzen import ParzenDensity
    from likely.estimators.pca import PCA
    from likely.estimators.poisson import PoissonDensity
    from likely.estimators.product import ProductDensity
    from likely.estimators.sequence_tables import SequenceClassifier, SequenceDensity
    from likely.estimators.student_t import StudentTDensity
    from likely.estimators.switching import SwitchingDensity
    from likely.estimators.table_classifier import TableClassifier
    from likely.estimators.table_clusterer import TableClusterer
    from likely.estimators.triangular import TriangularDensity
    from likely.estimators.uniform import UniformDensity
    from likely.estimators.validation import evaluate
    from likely.estimators.von_mises import VonMisesDensity
    from likely.estimators.walsh import WalshDensity
    from likely.families.bahadur import Bahadur
    from likely.families.bernoulli import Bernoulli
    from likely.families.beta_binomial import BetaBinomial
    from likely.families.beta_negative_binomial import BetaNegativeBinomial
    from likely.families.binomial import Binomial
    from likely.families.categorical import Categorical
    from likely.families.cauchy import Cauchy
    from likely.families.change import Change
    from likely.families.chi_square import ChiSquare
    from likely.families.chow_tree import ChowTree
    from likely.families.dirichlet_multinomial import DirichletMultinomial
    from likely.families.elliptical import Elliptical
    from likely.families.entropy import entropy
    from likely.families.exponential import Exponential
    from likely.families.extremes import Extremes
    from likely.families.factor_gaussian import FactorGaussian
    from likely.families.free_parameters import declare_free
    from likely.families.gaussian import Gaussian
    from likely.families.grid_law import GridLaw
    from likely.families.information import cross_entropy, js_divergence, kl
    from likely.families.inverse_wishart import InverseWishart
    from likely.families.joint_information import conditional_entropy, mutual_information
    from likely.families.laplace_law import Laplace
    from likely.families.lattice_law import LatticeLaw
    from likely.families.log_walsh import LogWalsh
    from likely.families.lomax import Lomax
    from likely.families.maximum_entropy_law import MaximumEntropyLaw
    from likely.families.multinomial import Multinomial
    from likely.families.negative_binomial import NegativeBinomial
    from likely.families.plateau import Plateau
    from likely.families.poisson import Poisson
    from likely.families.probability_table import ProbabilityTable
    from likely.families.product import Product
    from likely.families.several import Several
    from likely.families.shared import Shared
    from likely.families.student_t import StudentT
    from likely.families.transformed import Transformed
    from likely.families.triangular import Triangular
    from likely.families.uniform import Uniform
    from likely.families.von_mises import VonMises
    from likely.families.von_mises_sum import VonMisesSum
    from likely.families.walsh import Walsh
    from likely.families.wishart import Wishart
    from likely.features.histogram_equalization import equalise
    from likely.features.mfcc import Cepstra
    from likely.io.follow_stream import follow
    from likely.io.model_files import Checkpoint, load, save
    from likely.models.barycentre import Barycentre, barycentre
    from likely.models.centres import Centres
    from likely.models.choice_of_k import choose_k
    from likely.models.continuous import ContinuousLinear
    from likely.models.convolution import convolve, sum_of
    from likely.models.cuts import cut_curve
    from likely.models.dendrogram import Dendrogram
    from likely.models.driven_hmm import DrivenHMM
    from likely.models.driven_prior import DrivenPrior
    from likely.models.driven_stats import DrivenStats
    from likely.models.editing import condense, edit
    from likely.models.emptying import SparseWeights
    from likely.models.estimating import estimate
    from likely.models.extended import ExtendedFilter
    from likely.models.fisher import FisherAxes
    from likely.models.fixed import Fixed, interpolate
    from likely.models.hierarchy import linkage
    from likely.models.high_dimensions import HighDimensions, high_dimensions
    from likely.models.histogram import Histogram
    from likely.models.hmm import HMM
    from likely.models.hmm_prior import HMMPrior
    from likely.models.hmm_stats import HMMStats
    from likely.models.imputing import impute
    from likely.models.interacting import InteractingModels
    from likely.models.laplace_approximation import LaplaceApproximation, laplace
    from likely.models.linear_forecast import StateForecast
    from likely.models.linear_gaussian import LinearGaussian
    from likely.models.linear_learning import LinearLearner, LinearPrior
    from likely.models.linear_stats import LinearStats
    from likely.models.maximum_entropy import maximum_entropy
    from likely.models.mixture import Mixture
    from likely.models.mixture_prior import MixturePrior
    from likely.models.monte_carlo import MonteCarlo, monte_carlo
    from likely.models.neighbour_density import NeighbourBalls
    from likely.models.neighbour_search import NeighbourSearch
    from likely.models.particle_belief import ParticleBelief
    from likely.models.particle_filter import ParticleFilter, ParticleRun
    from likely.models.particle_smoothing import SmoothedPaths
    from likely.models.parzen import Parzen, coulomb_potential
    from likely.models.principal import Principal
    from likely.models.rao_blackwell import RaoBlackwell
    from likely.models.robbins_monro import RobbinsMonro, RunningEstimate
    from likely.models.scaled import Scaled
    from likely.models.sigma_points import CubatureFilter, UnscentedFilter
    from likely.models.standard_errors import StandardErrors, standard_errors
    from likely.models.state_belief import StateBelief
    from likely.models.state_space import StateSpace
    from likely.models.sums import components
    from likely.models.switching import SwitchingLinear
    from likely.models.switching_alarms import fault_alarms
    from likely.models.switching_belief import SwitchingBelief
    from likely.models.switching_learning import SwitchingLearner, SwitchingPrior
    from likely.models.switching_stats import SwitchingStats
    from likely.models.timed_belief import TimedBelief
    from likely.models.topology import Topology
    from likely.models.transcript import Transcript
    from likely.models.warp_pairs import dtw_matrix
    from likely.models.warp_places import Places, subsequence
    from likely.models.warp_steps import Steps
    from likely.models.warping import Warping, dtw, number_of_paths
    from likely.models.word_grammar import Bigram, learn_bigram
    from likely.models.word_network import WordNetwork
    from likely.numerics.stirling import bell, log_stirling2, stirling2
    from likely.priors.beta import Beta
    from likely.priors.bilateral_pareto import BilateralPareto
    from likely.priors.direction import DirectionPrior
    from likely.priors.dirichlet import Dirichlet
    from likely.priors.earlier_data import EarlierData
    from likely.priors.earlier_rows import EarlierRows
    from likely.priors.gamma import Gamma
    from likely.priors.known_mean import KnownMean
    from likely.priors.multinomial import MultinomialPrior
    from likely.priors.normal_gamma import NormalGamma
    from likely.priors.normal_inverse_gamma import NormalInverseGamma
    from likely.priors.normal_inverse_wishart import NormalInverseWishart
    from likely.priors.normal_mean import NormalMean
    from likely.priors.product import ProductPrior
    from likely.priors.student_t import StudentTPrior
    from likely.recognisers.fault_monitor import FaultMonitor
    from likely.recognisers.speech import SpokenWords
    from likely.recognisers.tracker import Track, Tracker

__all__ = [  # noqa: PLE0604, RUF100
    "Agglomerative", "Bahadur", "BahadurDensity", "Barycentre", "BayesClassifier", "Bernoulli", "BernoulliDensity",
    "Beta", "BetaBinomial", "BetaBinomialDensity", "BetaDensity", "BetaNegativeBinomial", "Bigram", "BilateralPareto",
    "Binomial", "BinomialDensity", "Block", "Blocks", "Boundary", "Calibrated", "Categorical", "CategoricalDensity",
    "Cauchy", "CauchyDensity", "Centres", "Cepstra", "Change", "Checkpoint", "ChiSquare", "ChiSquareDensity",
    "ChowTree", "ChowTreeDensity", "ClassFrequencies", "Classifier", "Columns", "ComponentChoice",
    "ContaminatedDensity", "ContinuousLinear", "Cost", "CubatureFilter", "Cusum", "DTWClassifier", "DataError",
    "Decisions", "Dendrogram", "Density", "DirectionPrior", "Dirichlet", "DirichletDensity", "DirichletMultinomial",
    "DirichletMultinomialDensity", "DistanceClassifier", "DomainError", "DrivenHMM", "DrivenHMMDensity",
    "DrivenPrior", "DrivenStats", "EarlierData", "EarlierRows", "Elliptical", "EllipticalDensity", "Engine",
    "ErrorBounds", "Evaluation", "Exponential", "ExponentialDensity", "ExtendedFilter", "Extremes", "FactorAnalysis",
    "FactorGaussian", "FaultMonitor", "FisherAxes", "FisherDiscriminant", "FitReport", "FitWarning", "Fixed", "Gamma",
    "GammaDensity", "Gaussian", "GaussianDensity", "GridLaw", "HMM", "HMMDensity", "HMMPrior", "HMMStats",
    "HighDimensions", "Histogram", "HistogramDensity", "Hyperplane", "InteractingModels", "InverseWishart", "KMeans",
    "KnownMean", "Laplace", "LaplaceApproximation", "LaplaceDensity", "LatticeLaw", "Learnable", "LikelyError",
    "LinearGaussian", "LinearGaussianDensity", "LinearLearner", "LinearPrior", "LinearStats", "LogWalsh", "Lomax",
    "MaximumEntropyLaw", "Mixture", "MixtureClusterer", "MixtureDensity", "MixturePrior", "ModelFileError",
    "MonteCarlo", "Multinomial", "MultinomialDensity", "MultinomialPrior", "NOVEL", "NaiveBayes", "NearestNeighbours",
    "NegativeBinomial", "NegativeBinomialDensity", "NeighbourBalls", "NeighbourDensity", "NeighbourSearch",
    "NormalGamma", "NormalInverseGamma", "NormalInverseWishart", "NormalMean", "NotConverged", "PCA", "PPCA",
    "ParticleBelief", "ParticleFilter", "ParticleRun", "Parzen", "ParzenDensity", "Places", "Plateau", "Poisson",
    "PoissonDensity", "Principal", "Prior", "ProbabilityTable", "Product", "ProductDensity", "ProductPrior", "REJECT",
    "Race", "Ragged", "RaoBlackwell", "RobbinsMonro", "RunningEstimate", "Scaled", "SequenceClassifier",
    "SequenceDensity", "Sequences", "SequentialTest", "Serial", "Several", "ShapeError", "Shared", "Sketch",
    "SmoothedPaths", "SparseWeights", "SpokenWords", "StandardErrors", "StateBelief", "StateChoice", "StateForecast",
    "StateSpace", "Stats", "Step", "Steps", "Stop", "StudentT", "StudentTDensity", "StudentTPrior", "SwitchingBelief",
    "SwitchingDensity", "SwitchingLearner", "SwitchingLinear", "SwitchingPrior", "SwitchingStats", "Table",
    "TableClassifier", "TableClusterer", "Threads", "TimedBelief", "Topology", "Track", "Tracker", "Transcript",
    "Transformed", "Triangular", "TriangularDensity", "Uniform", "UniformDensity", "UnscentedFilter", "VonMises",
    "VonMisesDensity", "VonMisesSum", "Walsh", "WalshDensity", "Warping", "Wishart", "WordErrors", "WordNetwork",
    "__version__", "adjusted_mutual_information", "adjusted_rand", "barycentre", "bayes_error",
    "bayes_from_neighbours", "bell", "best_matching", "bhattacharyya", "boundary", "calinski_harabasz",
    "change_prior", "check_squared_distances", "check_unimodality", "chernoff", "choose_components", "choose_k",
    "choose_states", "combine", "components", "condense", "conditional_entropy", "contingency", "convolve",
    "coulomb_potential", "cover_hart", "cross_entropy", "cross_entropy_bound", "cut_curve", "davies_bouldin",
    "decide", "declare_free", "dtw", "dtw_matrix", "edit", "entropy", "equalise", "error_bounds", "estimate",
    "evaluate", "fano", "fault_alarms", "fit", "follow", "fowlkes_mallows", "gaussian_shell", "hellman_raviv",
    "high_dimensions", "hubness", "hughes_curve", "impute", "interpolate", "intrinsic_dimension", "iterate",
    "js_divergence", "kl", "laplace", "learn_bigram", "learning_curve", "linkage", "load", "log_stirling2",
    "maximum_entropy", "monte_carlo", "mutual_information", "normalised_mutual_information", "number_of_paths",
    "online", "operating_threshold", "proportion", "purity", "race", "rand", "read", "read_sequences", "read_wav",
    "relative_contrast", "ring_ratio", "save", "shell_share", "silhouette", "silhouettes", "squared_error_bound",
    "standard_errors", "step", "stirling2", "subsequence", "sum_of", "v_measure", "variation_of_information",
    "with_covariates", "word_errors",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "plots":  # a folder of pictures, loaded when one is asked for
        return import_module("likely.plots")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'likely' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
