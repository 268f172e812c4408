"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.linear_model.conditional import Conditional as Conditional
from likely.linear_model.estimators.mixture_regression import MixtureRegression as MixtureRegression
from likely.linear_model.estimators.switching_regression import SwitchingRegression as SwitchingRegression
from likely.linear_model.gaussian_regression import GaussianRegression as GaussianRegression
from likely.linear_model.markov_switching import MarkovSwitchingRegression as MarkovSwitchingRegression
from likely.linear_model.priors import RegressionPredictive as RegressionPredictive
