"""Public names, each listed once: its namespace and the module that defines it.

`lk.Gaussian` is a name of the namespace "likely", `lk.metrics.purity` one of "likely.metrics". A module is imported
when one of its names is first used, so that `import likely` costs little more than `import numpy`. The stubs
`*.pyi` beside the namespaces are for type checkers and editors: `python -m tests.public_names` writes them from this
table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

PUBLIC: dict[str, dict[str, str]] = {
    "likely": {
        "likely.alignment.dtw": "dtw",
        "likely.alignment.estimator": "DTWClassifier",
        "likely.automl.choose_states": "choose_states",
        "likely.automl.table_classifier": "TableClassifier",
        "likely.classify.bayes": "BayesClassifier",
        "likely.classify.calibration.calibrated": "CalibratedClassifier",
        "likely.classify.fisher_discriminant": "FisherDiscriminant",
        "likely.classify.k_neighbors": "KNeighborsClassifier",
        "likely.classify.naive_bayes": "NaiveBayes",
        "likely.classify.nearest_centroid": "NearestCentroidClassifier",
        "likely.classify.prior_classifier": "PriorClassifier",
        "likely.cluster.hierarchy.estimator": "AgglomerativeClustering",
        "likely.cluster.kmeans.choose_k": "choose_k",
        "likely.cluster.kmeans.estimator": "KMeans",
        "likely.convert.from_hmmlearn": "from_hmmlearn",
        "likely.convert.from_pykalman": "from_pykalman",
        "likely.convert.from_sklearn": "from_sklearn",
        "likely.convert.from_statsmodels": "from_statsmodels",
        "likely.core.protocols": "Classifier ConditionalDensity Density Learnable Prior",
        "likely.core.em_loop": "StoppingRule fit",
        "likely.core.errors": "DataError DomainError FitWarning LikelyError ModelFileError NotConverged ShapeError",
        "likely.core.filter_protocol": "step",
        "likely.core.fit_report": "FitReport",
        "likely.core.online_em": "online_em",
        "likely.core.ragged": "Ragged",
        "likely.core.stats": "Stats",
        "likely.data.read_sequences": "Sequences read_sequences",
        "likely.data.read_table": "read_table",
        "likely.data.table": "Table",
        "likely.decision.boundary.boundary": "decision_boundary",
        "likely.decision.combine": "change_prior combine_posteriors",
        "likely.decision.cost": "Cost",
        "likely.decision.decide": "Decisions decide",
        "likely.decision.reject": "NOVEL REJECT",
        "likely.decision.theory.bayes_error": "bayes_error",
        "likely.decomposition.estimators.factor_analysis": "FactorAnalysis",
        "likely.decomposition.estimators.pca": "PCA",
        "likely.density.estimators.histogram_density": "HistogramDensity",
        "likely.density.estimators.kernel_density": "KernelDensity",
        "likely.density.estimators.knn_density": "KNNDensity",
        "likely.density.histogram": "Histogram",
        "likely.density.kde": "KDE",
        "likely.distributions.binary.bernoulli": "Bernoulli",
        "likely.distributions.categorical.categorical": "Categorical",
        "likely.distributions.categorical.dirichlet": "Dirichlet",
        "likely.distributions.categorical.multinomial": "Multinomial",
        "likely.distributions.entropy": "entropy",
        "likely.distributions.estimators.binary_densities": "BernoulliDensity",
        "likely.distributions.estimators.categorical_densities": "CategoricalDensity ChowLiuTreeDensity",
        "likely.distributions.estimators.continuous_densities": (
            "BetaDensity DirichletDensity ExponentialDensity GammaDensity LaplaceDensity UniformDensity"
        ),
        "likely.distributions.estimators.count_densities": (
            "BinomialDensity MultinomialDensity NegativeBinomialDensity PoissonDensity"
        ),
        "likely.distributions.estimators.product_density": "ProductDensity",
        "likely.distributions.gaussian.estimator": "GaussianDensity",
        "likely.distributions.gaussian.gaussian": "Gaussian",
        "likely.distributions.product": "Product",
        "likely.distributions.student_t.estimator": "StudentTDensity",
        "likely.distributions.student_t.student_t": "StudentT",
        "likely.distributions.univariate.beta": "Beta",
        "likely.distributions.univariate.binomial": "Binomial",
        "likely.distributions.univariate.exponential": "Exponential",
        "likely.distributions.univariate.gamma": "Gamma",
        "likely.distributions.univariate.laplace": "Laplace",
        "likely.distributions.univariate.negative_binomial": "NegativeBinomial",
        "likely.distributions.univariate.poisson": "Poisson",
        "likely.distributions.univariate.uniform": "Uniform",
        "likely.estimation.estimate": "estimate",
        "likely.hmm.estimators.hmm_density": "HMMDensity",
        "likely.hmm.hmm": "HMM",
        "likely.imputation.impute": "impute",
        "likely.information.divergence": "kl_divergence",
        "likely.information.mutual_information": "mutual_information",
        "likely.io.follow_stream": "follow",
        "likely.io.model_files": "load save",
        "likely.metrics.evaluation": "Evaluation",
        "likely.linear_model.estimators.bayesian_linear_regression": "BayesianLinearRegression",
        "likely.linear_model.estimators.linear_regression": "LinearRegression",
        "likely.linear_model.estimators.ridge": "Ridge",
        "likely.mixture.estimators.choose_components": "choose_components",
        "likely.mixture.estimators.mixture_clusterer": "MixtureClusterer",
        "likely.mixture.estimators.mixture_density": "MixtureDensity",
        "likely.mixture.mixture": "Mixture",
        "likely.model_selection.comparison": "compare",
        "likely.model_selection.conformal": "ConformalRegressor",
        "likely.model_selection.cross_validation": "evaluate",
        "likely.recognizers.faults.fault_monitor": "FaultMonitor",
        "likely.recognizers.tracking.tracker": "Tracker",
        "likely.statespace.continuous.linear_sde": "LinearSDE",
        "likely.statespace.estimators.linear_gaussian_density": "LinearGaussianDensity",
        "likely.statespace.estimators.switching_density": "SwitchingDensity",
        "likely.statespace.linear.linear_gaussian": "LinearGaussian",
        "likely.statespace.nonlinear.extended_kalman_filter": "ExtendedKalmanFilter",
        "likely.statespace.nonlinear.state_space": "StateSpace",
        "likely.statespace.nonlinear.unscented_kalman_filter": "UnscentedKalmanFilter",
        "likely.statespace.particle.particle_filter": "ParticleFilter",
        "likely.statespace.switching.switching_linear": "SwitchingLinearGaussian",
    },
    "likely.alignment": {
        "likely.alignment.barycenters": "BarycenterResult barycenter",
        "likely.alignment.dtw": "Alignment number_of_paths",
        "likely.alignment.pairwise_dtw": "dtw_matrix",
        "likely.alignment.step_patterns": "StepPattern",
        "likely.alignment.subsequence_search": "Matches subsequence_dtw",
    },
    "likely.automl": {
        "likely.automl.choose_states": "StateChoice",
        "likely.automl.encoded_regressor": "EncodedRegressor",
        "likely.automl.sequence_models": "SequenceClassifier SequenceDensity",
        "likely.automl.table_clusterer": "TableClusterer",
        "likely.automl.table_regressor": "RegressionExplanation TableRegressor",
    },
    "likely.basis": {
        "likely.basis.fourier": "Fourier",
        "likely.basis.function_basis": "FunctionBasis",
        "likely.basis.interactions": "Interactions",
        "likely.basis.localized_functions": "GaussianBasis SigmoidBasis",
        "likely.basis.one_hot": "OneHot",
        "likely.basis.per_column": "PerColumn",
        "likely.basis.polynomials": "Identity OrthogonalPolynomial Polynomial",
        "likely.basis.splines": "BSpline PiecewiseLinear",
    },
    "likely.cluster": {
        "likely.cluster.hierarchy.dendrogram": "Dendrogram",
        "likely.cluster.hierarchy.dendrogram_cut": "bic_curve",
        "likely.cluster.hierarchy.linkage": "linkage",
        "likely.cluster.kmeans.centroids": "Centroids",
        "likely.numerics.stirling": "log_stirling2",
    },
    "likely.core": {
        "likely.core.blocks": "Block Blocks",
        "likely.core.columns": "Columns",
        "likely.core.covariates": "with_covariates",
        "likely.core.description": "Description DescriptionTable",
        "likely.core.em_loop": "FitStep iterate",
        "likely.core.engine": "Engine Serial Threads",
        "likely.core.sketch": "Sketch",
        "likely.io.checkpoint": "Checkpoint",
    },
    "likely.decision": {
        "likely.decision.boundary.boundary": "Boundary",
        "likely.decision.boundary.hyperplane": "Hyperplane",
        "likely.decision.point_estimates": "point_estimate",
        "likely.decision.sequential.cusum": "CUSUM",
        "likely.decision.sequential.sprt": "SPRT",
        "likely.decision.theory.density_bounds": "bhattacharyya_bound chernoff_bound",
        "likely.decision.theory.error_bounds": (
            "ErrorBounds bayes_error_from_neighbors cover_hart_bound cross_entropy_bound error_bounds fano_bound "
            "hellman_raviv_bound squared_error_bound"
        ),
    },
    "likely.decomposition": {
        "likely.decomposition.discriminant_subspace": "DiscriminantSubspace",
        "likely.decomposition.estimators.factor_analysis": "PPCA",
        "likely.decomposition.principal_subspace": "PrincipalSubspace",
    },
    "likely.density": {
        "likely.density.kde": "coulomb_potential",
        "likely.density.knn_balls": "KNNBalls",
        "likely.features.histogram_equalization": "equalize_histogram",
    },
    "likely.distributions": {
        "likely.distributions.binary.bahadur": "Bahadur",
        "likely.distributions.binary.log_linear": "LogLinear",
        "likely.distributions.binary.walsh": "Walsh",
        "likely.distributions.categorical.chow_liu": "ChowLiuTree",
        "likely.distributions.categorical.dirichlet_multinomial": "DirichletMultinomial",
        "likely.distributions.categorical.probability_table": "ProbabilityTable",
        "likely.distributions.elliptical.elliptical": "Elliptical",
        "likely.distributions.elliptical.estimator": "EllipticalDensity",
        "likely.distributions.estimators.binary_densities": "BahadurDensity WalshDensity",
        "likely.distributions.estimators.continuous_densities": (
            "CauchyDensity ChiSquareDensity TriangularDensity VonMisesDensity"
        ),
        "likely.distributions.estimators.count_densities": "BetaBinomialDensity DirichletMultinomialDensity",
        "likely.distributions.gaussian.factor_gaussian": "FactorGaussian",
        "likely.distributions.matrix.inverse_wishart": "InverseWishart",
        "likely.distributions.matrix.wishart": "Wishart",
        "likely.distributions.maxent.maximum_entropy": "maximum_entropy",
        "likely.distributions.maxent.maximum_entropy_distribution": "MaximumEntropyDistribution",
        "likely.distributions.stacks.stack": "Stack",
        "likely.distributions.stacks.tied": "Tied",
        "likely.distributions.statistics.extremes": "MinMaxStats",
        "likely.distributions.sums.convolution": "convolve sum_of",
        "likely.distributions.sums.grid_distribution": "GridDistribution",
        "likely.distributions.sums.lattice_distribution": "LatticeDistribution",
        "likely.distributions.transforms.bijector": "Bijector",
        "likely.distributions.transforms.transformed": "Transformed",
        "likely.distributions.univariate.beta_binomial": "BetaBinomial",
        "likely.distributions.univariate.beta_negative_binomial": "BetaNegativeBinomial",
        "likely.distributions.univariate.cauchy": "Cauchy",
        "likely.distributions.univariate.chi_square": "ChiSquare",
        "likely.distributions.univariate.lomax": "Lomax",
        "likely.distributions.univariate.triangular": "Triangular",
        "likely.distributions.univariate.uniform_predictive": "UniformPredictive",
        "likely.distributions.univariate.von_mises": "VonMises",
        "likely.distributions.univariate.von_mises_sum": "VonMisesSum",
    },
    "likely.hmm": {
        "likely.hmm.hmm_stats": "HMMStats",
        "likely.hmm.logistic_transition": "LogisticStats LogisticTransition",
        "likely.hmm.topology": "Topology",
    },
    "likely.inference": {
        "likely.distributions.unconstrained_parameters": "declare_constraints",
        "likely.inference.laplace_method": "LaplaceApproximation laplace_approximation",
        "likely.inference.robbins_monro": "RobbinsMonro RunningEstimate",
        "likely.inference.sequential_monte_carlo": "SMCResult smc_sampler",
    },
    "likely.information": {
        "likely.information.divergence": "cross_entropy js_divergence",
        "likely.information.mutual_information": "conditional_entropy",
    },
    "likely.linear_model": {
        "likely.linear_model.conditional": "Conditional",
        "likely.linear_model.estimators.mixture_regression": "MixtureRegression",
        "likely.linear_model.estimators.switching_regression": "SwitchingRegression",
        "likely.linear_model.gaussian_regression": "GaussianRegression",
        "likely.linear_model.markov_switching": "MarkovSwitchingRegression",
        "likely.linear_model.priors": "RegressionPredictive",
    },
    "likely.metrics": {
        "likely.metrics.clusterings": (
            "adjusted_mutual_information adjusted_rand_index best_matching contingency_table fowlkes_mallows "
            "normalized_mutual_information purity rand_index v_measure variation_of_information"
        ),
        "likely.metrics.confidence_intervals": "proportion_interval",
        "likely.metrics.distances_in_high_dimensions": "DistanceDiagnostics distance_diagnostics",
        "likely.metrics.goodness_of_fit": "mahalanobis_goodness_of_fit shell_volume_fraction",
        "likely.metrics.high_dimensional_geometry": (
            "gaussian_shell hubness intrinsic_dimension relative_contrast shell_to_ball_ratio"
        ),
        "likely.metrics.operating_point": "operating_threshold",
        "likely.metrics.regression_evaluation": "RegressionEvaluation",
        "likely.metrics.silhouette": "calinski_harabasz davies_bouldin silhouette_samples silhouette_score",
        "likely.metrics.unimodality": "check_unimodality",
    },
    "likely.mixture": {
        "likely.mixture.estimators.choose_components": "ComponentChoice",
        "likely.mixture.estimators.contaminated_density": "ContaminatedDensity",
        "likely.mixture.interpolation": "FixedComponents interpolation_weights",
        "likely.mixture.scaled_copies": "ScaledCopies",
    },
    "likely.model_selection": {
        "likely.model_selection.comparison": "Comparison",
        "likely.model_selection.learning_curves": "hughes_curve learning_curve",
        "likely.model_selection.residual_distribution": "ResidualDistribution ResidualPredictive",
    },
    "likely.neighbors": {
        "likely.neighbors.editing": "condensed_nearest_neighbor edited_nearest_neighbors",
        "likely.neighbors.estimator": "KNeighborsRegressor",
        "likely.neighbors.nearest_neighbors": "NeighborSearch",
    },
    "likely.plots": {
        "likely.plots.boundary_plot": "plot_decision_boundary",
        "likely.plots.chow_liu_plot": "plot_chow_liu_tree",
        "likely.plots.decision_regions": "plot_decision_regions",
        "likely.plots.dendrogram_plot": "plot_dendrogram",
        "likely.plots.density_curve": "plot_distribution",
        "likely.plots.density_display": "DensityDisplay",
        "likely.plots.evaluation_display": "EvaluationDisplay",
        "likely.plots.fisher_plot": "plot_fisher_projection",
        "likely.plots.fit_trace": "plot_component_criteria plot_convergence",
        "likely.plots.particle_cloud": "plot_particles plot_regimes",
        "likely.plots.scree_display": "ScoresDisplay ScreeDisplay",
        "likely.plots.state_bands": "plot_state_estimates",
        "likely.plots.state_graph": "plot_transition_graph",
        "likely.plots.state_sequences": "plot_state_probabilities plot_trellis",
        "likely.plots.track_plot": "plot_track",
        "likely.plots.warping_plot": "plot_alignment plot_warping_path",
        "likely.plots.word_plot": "plot_word_segments",
    },
    "likely.priors": {
        "likely.distributions.priors.bilateral_pareto": "BilateralPareto",
        "likely.distributions.priors.covariance_given_mean": "CovarianceGivenMean",
        "likely.distributions.priors.direction_prior": "VonMisesPrior",
        "likely.distributions.priors.mean_given_covariance": "MeanGivenCovariance",
        "likely.distributions.priors.multinomial_prior": "MultinomialPrior",
        "likely.distributions.priors.normal_gamma": "NormalGamma",
        "likely.distributions.priors.normal_inverse_gamma": "NormalInverseGamma",
        "likely.distributions.priors.normal_inverse_wishart": "NormalInverseWishart",
        "likely.distributions.priors.product_prior": "ProductPrior",
        "likely.distributions.priors.pseudo_data": "PseudoData",
        "likely.distributions.priors.pseudo_observations": "PseudoObservations",
        "likely.distributions.priors.student_t_prior": "StudentTPrior",
        "likely.hmm.logistic_transition": "LogisticPrior",
        "likely.hmm.priors": "HMMPrior",
        "likely.linear_model.priors": "CoefficientsGivenNoise MatrixNormalInverseWishart",
        "likely.mixture.priors": "MixturePrior",
        "likely.mixture.sparse_weights": "SparseWeights",
        "likely.statespace.linear.linear_em": "LinearPrior",
        "likely.statespace.switching.switching_em": "SwitchingPrior",
    },
    "likely.speech": {
        "likely.data.wav": "read_wav",
        "likely.features.mfcc": "MFCC",
        "likely.language.bigram": "Bigram learn_bigram",
        "likely.language.transcript": "Transcript",
        "likely.language.word_network": "WordNetwork",
        "likely.metrics.word_error_rate": "WordErrors word_errors",
        "likely.recognizers.speech.spoken_words": "SpokenWords",
    },
    "likely.statespace": {
        "likely.recognizers.tracking.tracker": "Track",
        "likely.statespace.continuous.timed_belief": "TimedBelief",
        "likely.statespace.linear.forecast": "StateForecast",
        "likely.statespace.linear.linear_em": "ConstrainedLinearGaussian",
        "likely.statespace.linear.linear_stats": "LinearStats",
        "likely.statespace.linear.standard_errors": "StandardErrors standard_errors",
        "likely.statespace.linear.state_belief": "StateBelief",
        "likely.statespace.linear.sums_of_models": "structural_components",
        "likely.statespace.nonlinear.unscented_kalman_filter": "CubatureKalmanFilter",
        "likely.statespace.particle.particle_belief": "ParticleBelief",
        "likely.statespace.particle.particle_filter": "ParticleRun",
        "likely.statespace.particle.particle_smoother": "SmoothedPaths",
        "likely.statespace.switching.fault_alarms": "fault_alarms",
        "likely.statespace.switching.imm_filter": "IMMFilter",
        "likely.statespace.switching.rao_blackwellized_filter": "RaoBlackwellizedFilter",
        "likely.statespace.switching.switching_belief": "SwitchingBelief",
        "likely.statespace.switching.switching_em": "ConstrainedSwitchingLinearGaussian",
        "likely.statespace.switching.switching_stats": "SwitchingStats",
    },
}  # fmt: skip

# Classes without a public name that model files may hold: sufficient statistics, belief states, parts of models
STORED: dict[str, str] = {
    "likely.classify.calibration.calibration_maps": "IsotonicMap LogisticMap Temperature",
    "likely.classify.calibration.probability_floor": "Floor",
    "likely.cluster.hierarchy.dendrogram_cut": "BICCurve",
    "likely.cluster.kmeans.centroids": "CentroidStats",
    "likely.core.progress": "FollowedLines Following Progress",
    "likely.decision.sequential.alarm_filter": "AlarmBelief",
    "likely.density.histogram": "BinCounts",
    "likely.distributions.binary.bernoulli": "Trials",
    "likely.distributions.binary.sign_products": "SignSums",
    "likely.distributions.categorical.categorical": "LevelCounts",
    "likely.distributions.categorical.dirichlet_multinomial_counts": "DirichletMultinomialStats",
    "likely.distributions.categorical.multinomial": "MultinomialStats",
    "likely.distributions.categorical.pair_counts": "PairCounts",
    "likely.distributions.elliptical.weighted_rows": "WeightedRows",
    "likely.distributions.gaussian.moments": "ColumnMoments Moments",
    "likely.distributions.gaussian.scatter_qr": "ScatterRoot",
    "likely.distributions.matrix.matrix_rows": "MatrixSums",
    "likely.distributions.product": "ProductStats",
    "likely.distributions.stacks.stack": "StackStats",
    "likely.distributions.statistics.counts": "Counts",
    "likely.distributions.statistics.feature_sums": "FeatureSums",
    "likely.distributions.statistics.positive_sums": "PositiveSums",
    "likely.distributions.statistics.weighted_values": "WeightedValues",
    "likely.distributions.student_t.scale_statistics": "ScaleSums",
    "likely.distributions.transforms.transformed": "TransformedStats",
    "likely.distributions.univariate.binomial": "Successes",
    "likely.estimation.saved_steps": "Pipeline StandardScaler",
    "likely.hmm.hmm": "PendingTransition",
    "likely.linear_model.markov_switching": "RegimePrior RegimeStats",
    "likely.linear_model.least_squares": "GramStats RegressionStats",
    "likely.mixture.fixed_weights": "FixedWeights",
    "likely.mixture.interpolation": "FixedStats",
    "likely.mixture.mixture": "MixtureStats",
    "likely.neighbors.distinct_rows": "DistinctRows",
    "likely.recognizers.faults.fault_watch": "FaultBelief FaultWatch",
    "likely.recognizers.faults.sensor_dynamics": "SensorDynamics",
    "likely.recognizers.tracking.data_association": "DataAssociation TrackBelief",
    "likely.statespace.linear.diffuse_initialization": "DiffusePart",
    "likely.statespace.linear.linear_structure": "Structure",
}  # fmt: skip

HOMES = {  # namespace → name → module
    space: {name: module for module, names in modules.items() for name in names.split()}
    for space, modules in PUBLIC.items()
}
SPACES = {space.partition(".")[2] for space in PUBLIC} - {""} | {"extend"}
HOME = {  # of what files may hold, and of everything public but plots
    name: module
    for modules in [*(PUBLIC[space] for space in PUBLIC if space != "likely.plots"), STORED]
    for module, names in modules.items()
    for name in names.split()
}


def namespace(space: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the module that is a namespace.

    >>> __getattr__, __dir__, __all__ = namespace("likely.priors")
    >>> __getattr__("NormalGamma").__module__
    'likely.distributions.priors.normal_gamma'
    """
    homes = HOMES[space]
    every = sorted([*homes, *(SPACES if space == "likely" else ())])

    def get(name: str) -> Any:
        if name in homes:
            found = getattr(import_module(homes[name]), name)
            setattr(sys.modules[space], name, found)  # found directly from now on
            return found
        if space == "likely" and name in SPACES:
            return import_module(f"likely.{name}")
        raise AttributeError(f"module {space!r} has no attribute {name!r}{_hint(space, name)}")

    return get, lambda: every, every


def _hint(space: str, name: str) -> str:
    """Where the name lives, or its equivalent if it is another library's name; empty if unknown."""
    other = next((other for other, homes in HOMES.items() if name in homes and other != space), None)
    if other is not None:
        return f"; it is {other}.{name}"
    return str(import_module("likely.core.foreign_names").hint(name)) if space == "likely" else ""
