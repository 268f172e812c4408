"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.distributions.priors.bilateral_pareto import BilateralPareto as BilateralPareto
from likely.distributions.priors.covariance_given_mean import CovarianceGivenMean as CovarianceGivenMean
from likely.distributions.priors.direction_prior import VonMisesPrior as VonMisesPrior
from likely.distributions.priors.mean_given_covariance import MeanGivenCovariance as MeanGivenCovariance
from likely.distributions.priors.multinomial_prior import MultinomialPrior as MultinomialPrior
from likely.distributions.priors.normal_gamma import NormalGamma as NormalGamma
from likely.distributions.priors.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
from likely.distributions.priors.normal_inverse_wishart import NormalInverseWishart as NormalInverseWishart
from likely.distributions.priors.product_prior import ProductPrior as ProductPrior
from likely.distributions.priors.pseudo_data import PseudoData as PseudoData
from likely.distributions.priors.pseudo_observations import PseudoObservations as PseudoObservations
from likely.distributions.priors.student_t_prior import StudentTPrior as StudentTPrior
from likely.hmm.logistic_transition import LogisticPrior as LogisticPrior
from likely.hmm.priors import HMMPrior as HMMPrior
from likely.linear_model.priors import CoefficientsGivenNoise as CoefficientsGivenNoise
from likely.linear_model.priors import MatrixNormalInverseWishart as MatrixNormalInverseWishart
from likely.mixture.priors import MixturePrior as MixturePrior
from likely.mixture.sparse_weights import SparseWeights as SparseWeights
from likely.statespace.linear.linear_em import LinearPrior as LinearPrior
from likely.statespace.switching.switching_em import SwitchingPrior as SwitchingPrior
