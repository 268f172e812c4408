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
    "likely.core.learn": ["Step", "Stop", "fit", "iterate"],
    "likely.core.online": ["online"],
    "likely.core.prior": ["Prior"],
    "likely.core.ragged": ["Ragged"],
    "likely.core.report": ["FitReport"],
    "likely.core.stats": ["Stats"],
    "likely.data.cepstra": ["Cepstra"],
    "likely.data.reading": ["read"],
    "likely.data.sequences": ["Sequences", "read_sequences"],
    "likely.data.table": ["Table"],
    "likely.data.wav": ["read_wav"],
    "likely.decisions.combine": ["change_prior", "combine"],
    "likely.decisions.cost": ["Cost"],
    "likely.decisions.cusum": ["Cusum"],
    "likely.decisions.decide": ["Decisions", "decide"],
    "likely.decisions.distances": ["check_squared_distances", "shell_share"],
    "likely.decisions.evaluation": ["Evaluation"],
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
    "likely.errors": [
        "DataError", "DomainError", "FitWarning", "LikelyError", "ModelFileError", "NotConverged", "ShapeError",
    ],
    "likely.estimators.agglomerative": ["Agglomerative"],
    "likely.estimators.bayes": ["BayesClassifier"],
    "likely.estimators.bernoulli": ["BernoulliDensity"],
    "likely.estimators.calibrated": ["Calibrated"],
    "likely.estimators.categorical": ["CategoricalDensity"],
    "likely.estimators.choosing": ["ComponentChoice", "choose_components"],
    "likely.estimators.choosing_states": ["StateChoice", "choose_states"],
    "likely.estimators.clusterer": ["MixtureClusterer"],
    "likely.estimators.contaminated": ["ContaminatedDensity"],
    "likely.estimators.curves": ["hughes_curve", "learning_curve"],
    "likely.estimators.driven_hmm": ["DrivenHMMDensity"],
    "likely.estimators.dtw": ["DTWClassifier"],
    "likely.estimators.factors": ["FactorAnalysis", "PPCA"],
    "likely.estimators.following": ["follow"],
    "likely.estimators.frequencies": ["ClassFrequencies"],
    "likely.estimators.gaussian": ["GaussianDensity"],
    "likely.estimators.hmm": ["HMMDensity"],
    "likely.estimators.kmeans": ["KMeans"],
    "likely.estimators.linear_gaussian": ["LinearGaussianDensity"],
    "likely.estimators.mixture": ["MixtureDensity"],
    "likely.estimators.multinomial": ["MultinomialDensity"],
    "likely.estimators.naive_bayes": ["NaiveBayes"],
    "likely.estimators.pca": ["PCA"],
    "likely.estimators.poisson": ["PoissonDensity"],
    "likely.estimators.product": ["ProductDensity"],
    "likely.estimators.sequence_tables": ["SequenceClassifier", "SequenceDensity"],
    "likely.estimators.switching": ["SwitchingDensity"],
    "likely.estimators.table_classifier": ["TableClassifier"],
    "likely.estimators.table_clusterer": ["TableClusterer"],
    "likely.estimators.validation": ["evaluate"],
    "likely.families.bernoulli": ["Bernoulli"],
    "likely.families.categorical": ["Categorical"],
    "likely.families.dirichlet_multinomial": ["DirichletMultinomial"],
    "likely.families.factor_gaussian": ["FactorGaussian"],
    "likely.families.gaussian": ["Gaussian"],
    "likely.families.multinomial": ["Multinomial"],
    "likely.families.negative_binomial": ["NegativeBinomial"],
    "likely.families.poisson": ["Poisson"],
    "likely.families.probability_table": ["ProbabilityTable"],
    "likely.families.product": ["Product"],
    "likely.families.several": ["Several"],
    "likely.families.shared": ["Shared"],
    "likely.families.student_t": ["StudentT"],
    "likely.files": ["Checkpoint", "load", "save"],
    "likely.maths.stirling": ["bell", "log_stirling2", "stirling2"],
    "likely.models.barycentre": ["Barycentre", "barycentre"],
    "likely.models.centres": ["Centres"],
    "likely.models.choice_of_k": ["choose_k"],
    "likely.models.continuous": ["ContinuousLinear"],
    "likely.models.covariates": ["with_covariates"],
    "likely.models.cuts": ["cut_curve"],
    "likely.models.dendrogram": ["Dendrogram"],
    "likely.models.driven_hmm": ["DrivenHMM"],
    "likely.models.driven_prior": ["DrivenPrior"],
    "likely.models.driven_stats": ["DrivenStats"],
    "likely.models.emptying": ["SparseWeights"],
    "likely.models.extended": ["ExtendedFilter"],
    "likely.models.fixed": ["Fixed", "interpolate"],
    "likely.models.hierarchy": ["linkage"],
    "likely.models.hmm": ["HMM"],
    "likely.models.hmm_prior": ["HMMPrior"],
    "likely.models.hmm_stats": ["HMMStats"],
    "likely.models.imputing": ["impute"],
    "likely.models.interacting": ["InteractingModels"],
    "likely.models.linear_forecast": ["StateForecast"],
    "likely.models.linear_gaussian": ["LinearGaussian"],
    "likely.models.linear_learning": ["LinearLearner", "LinearPrior"],
    "likely.models.linear_stats": ["LinearStats"],
    "likely.models.mixture": ["Mixture"],
    "likely.models.mixture_prior": ["MixturePrior"],
    "likely.models.monte_carlo": ["MonteCarlo", "monte_carlo"],
    "likely.models.particle_belief": ["ParticleBelief"],
    "likely.models.particle_filter": ["ParticleFilter", "ParticleRun"],
    "likely.models.particle_smoothing": ["SmoothedPaths"],
    "likely.models.principal": ["Principal"],
    "likely.models.rao_blackwell": ["RaoBlackwell"],
    "likely.models.scaled": ["Scaled"],
    "likely.models.sigma_points": ["CubatureFilter", "UnscentedFilter"],
    "likely.models.sketch": ["Sketch"],
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
    "likely.priors.dirichlet": ["Dirichlet"],
    "likely.priors.earlier_rows": ["EarlierRows"],
    "likely.priors.gamma": ["Gamma"],
    "likely.priors.multinomial": ["MultinomialPrior"],
    "likely.priors.normal_inverse_gamma": ["NormalInverseGamma"],
    "likely.priors.normal_inverse_wishart": ["NormalInverseWishart"],
    "likely.priors.normal_mean": ["NormalMean"],
    "likely.priors.product": ["ProductPrior"],
    "likely.recognisers.fault_monitor": ["FaultMonitor"],
    "likely.recognisers.speech": ["SpokenWords"],
    "likely.recognisers.tracker": ["Track", "Tracker"],
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from likely.core.blocks import Block, Blocks
    from likely.core.classifier import Classifier
    from likely.core.columns import Columns
    from likely.core.density import Density, Learnable
    from likely.core.engine import Engine, Serial, Threads
    from likely.core.filter import step
    from likely.core.learn import Step, Stop, fit, iterate
    from likely.core.online import online
    from likely.core.prior import Prior
    from likely.core.ragged import Ragged
    from likely.core.report import FitReport
    from likely.core.stats import Stats
    from likely.data.cepstra import Cepstra
    from likely.data.reading import read
    from likely.data.sequences import Sequences, read_sequences
    from likely.data.table import Table
    from likely.data.wav import read_wav
    from likely.decisions.combine import change_prior, combine
    from likely.decisions.cost import Cost
    from likely.decisions.cusum import Cusum
    from likely.decisions.decide import Decisions, decide
    from likely.decisions.distances import check_squared_distances, shell_share
    from likely.decisions.evaluation import Evaluation
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
    from likely.errors import DataError, DomainError, FitWarning, LikelyError, ModelFileError, NotConverged, ShapeError
    from likely.estimators.agglomerative import Agglomerative
    from likely.estimators.bayes import BayesClassifier
    from likely.estimators.bernoulli import BernoulliDensity
    from likely.estimators.calibrated import Calibrated
    from likely.estimators.categorical import CategoricalDensity
    from likely.estimators.choosing import ComponentChoice, choose_components
    from likely.estimators.choosing_states import StateChoice, choose_states
    from likely.estimators.clusterer import MixtureClusterer
    from likely.estimators.contaminated import ContaminatedDensity
    from likely.estimators.curves import hughes_curve, learning_curve
    from likely.estimators.driven_hmm import DrivenHMMDensity
    from likely.estimators.dtw import DTWClassifier
    from likely.estimators.factors import PPCA, FactorAnalysis
    from likely.estimators.following import follow
    from likely.estimators.frequencies import ClassFrequencies
    from likely.estimators.gaussian import GaussianDensity
    from likely.estimators.hmm import HMMDensity
    from likely.estimators.kmeans import KMeans
    from likely.estimators.linear_gaussian import LinearGaussianDensity
    from likely.estimators.mixture import MixtureDensity
    from likely.estimators.multinomial import MultinomialDensity
    from likely.estimators.naive_bayes import NaiveBayes
    from likely.estimators.pca import PCA
    from likely.estimators.poisson import PoissonDensity
    from likely.estimators.product import ProductDensity
    from likely.estimators.sequence_tables import SequenceClassifier, SequenceDensity
    from likely.estimators.switching import SwitchingDensity
    from likely.estimators.table_classifier import TableClassifier
    from likely.estimators.table_clusterer import TableClusterer
    from likely.estimators.validation import evaluate
    from likely.families.bernoulli import Bernoulli
    from likely.families.categorical import Categorical
    from likely.families.dirichlet_multinomial import DirichletMultinomial
    from likely.families.factor_gaussian import FactorGaussian
    from likely.families.gaussian import Gaussian
    from likely.families.multinomial import Multinomial
    from likely.families.negative_binomial import NegativeBinomial
    from likely.families.poisson import Poisson
    from likely.families.probability_table import ProbabilityTable
    from likely.families.product import Product
    from likely.families.several import Several
    from likely.families.shared import Shared
    from likely.families.student_t import StudentT
    from likely.files import Checkpoint, load, save
    from likely.maths.stirling import bell, log_stirling2, stirling2
    from likely.models.barycentre import Barycentre, barycentre
    from likely.models.centres import Centres
    from likely.models.choice_of_k import choose_k
    from likely.models.continuous import ContinuousLinear
    from likely.models.covariates import with_covariates
    from likely.models.cuts import cut_curve
    from likely.models.dendrogram import Dendrogram
    from likely.models.driven_hmm import DrivenHMM
    from likely.models.driven_prior import DrivenPrior
    from likely.models.driven_stats import DrivenStats
    from likely.models.emptying import SparseWeights
    from likely.models.extended import ExtendedFilter
    from likely.models.fixed import Fixed, interpolate
    from likely.models.hierarchy import linkage
    from likely.models.hmm import HMM
    from likely.models.hmm_prior import HMMPrior
    from likely.models.hmm_stats import HMMStats
    from likely.models.imputing import impute
    from likely.models.interacting import InteractingModels
    from likely.models.linear_forecast import StateForecast
    from likely.models.linear_gaussian import LinearGaussian
    from likely.models.linear_learning import LinearLearner, LinearPrior
    from likely.models.linear_stats import LinearStats
    from likely.models.mixture import Mixture
    from likely.models.mixture_prior import MixturePrior
    from likely.models.monte_carlo import MonteCarlo, monte_carlo
    from likely.models.particle_belief import ParticleBelief
    from likely.models.particle_filter import ParticleFilter, ParticleRun
    from likely.models.particle_smoothing import SmoothedPaths
    from likely.models.principal import Principal
    from likely.models.rao_blackwell import RaoBlackwell
    from likely.models.scaled import Scaled
    from likely.models.sigma_points import CubatureFilter, UnscentedFilter
    from likely.models.sketch import Sketch
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
    from likely.priors.beta import Beta
    from likely.priors.dirichlet import Dirichlet
    from likely.priors.earlier_rows import EarlierRows
    from likely.priors.gamma import Gamma
    from likely.priors.multinomial import MultinomialPrior
    from likely.priors.normal_inverse_gamma import NormalInverseGamma
    from likely.priors.normal_inverse_wishart import NormalInverseWishart
    from likely.priors.normal_mean import NormalMean
    from likely.priors.product import ProductPrior
    from likely.recognisers.fault_monitor import FaultMonitor
    from likely.recognisers.speech import SpokenWords
    from likely.recognisers.tracker import Track, Tracker

__all__ = [  # noqa: PLE0604, RUF100
    "Agglomerative", "Barycentre", "BayesClassifier", "Bernoulli", "BernoulliDensity", "Beta", "Bigram", "Block",
    "Blocks", "Calibrated", "Categorical", "CategoricalDensity", "Centres", "Cepstra", "Checkpoint",
    "ClassFrequencies", "Classifier", "Columns", "ComponentChoice", "ContaminatedDensity", "ContinuousLinear", "Cost",
    "CubatureFilter", "Cusum", "DTWClassifier", "DataError", "Decisions", "Dendrogram", "Density", "Dirichlet",
    "DirichletMultinomial", "DomainError", "DrivenHMM", "DrivenHMMDensity", "DrivenPrior", "DrivenStats",
    "EarlierRows", "Engine", "Evaluation", "ExtendedFilter", "FactorAnalysis", "FactorGaussian", "FaultMonitor",
    "FitReport", "FitWarning", "Fixed", "Gamma", "Gaussian", "GaussianDensity", "HMM", "HMMDensity", "HMMPrior",
    "HMMStats", "InteractingModels", "KMeans", "Learnable", "LikelyError", "LinearGaussian", "LinearGaussianDensity",
    "LinearLearner", "LinearPrior", "LinearStats", "Mixture", "MixtureClusterer", "MixtureDensity", "MixturePrior",
    "ModelFileError", "MonteCarlo", "Multinomial", "MultinomialDensity", "MultinomialPrior", "NOVEL", "NaiveBayes",
    "NegativeBinomial", "NormalInverseGamma", "NormalInverseWishart", "NormalMean", "NotConverged", "PCA", "PPCA",
    "ParticleBelief", "ParticleFilter", "ParticleRun", "Places", "Poisson", "PoissonDensity", "Principal", "Prior",
    "ProbabilityTable", "Product", "ProductDensity", "ProductPrior", "REJECT", "Race", "Ragged", "RaoBlackwell",
    "Scaled", "SequenceClassifier", "SequenceDensity", "Sequences", "SequentialTest", "Serial", "Several",
    "ShapeError", "Shared", "Sketch", "SmoothedPaths", "SparseWeights", "SpokenWords", "StandardErrors",
    "StateBelief", "StateChoice", "StateForecast", "StateSpace", "Stats", "Step", "Steps", "Stop", "StudentT",
    "SwitchingBelief", "SwitchingDensity", "SwitchingLearner", "SwitchingLinear", "SwitchingPrior", "SwitchingStats",
    "Table", "TableClassifier", "TableClusterer", "Threads", "TimedBelief", "Topology", "Track", "Tracker",
    "Transcript", "UnscentedFilter", "Warping", "WordErrors", "WordNetwork", "__version__",
    "adjusted_mutual_information", "adjusted_rand", "barycentre", "bell", "best_matching", "calinski_harabasz",
    "change_prior", "check_squared_distances", "check_unimodality", "choose_components", "choose_k", "choose_states",
    "combine", "components", "contingency", "cut_curve", "davies_bouldin", "decide", "dtw", "dtw_matrix", "evaluate",
    "fault_alarms", "fit", "follow", "fowlkes_mallows", "hughes_curve", "impute", "interpolate", "iterate",
    "learn_bigram", "learning_curve", "linkage", "load", "log_stirling2", "monte_carlo",
    "normalised_mutual_information", "number_of_paths", "online", "operating_threshold", "proportion", "purity",
    "race", "rand", "read", "read_sequences", "read_wav", "save", "shell_share", "silhouette", "silhouettes",
    "standard_errors", "step", "stirling2", "subsequence", "v_measure", "variation_of_information", "with_covariates",
    "word_errors",
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
