"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.model_selection.comparison import Comparison as Comparison
from likely.model_selection.learning_curves import hughes_curve as hughes_curve
from likely.model_selection.learning_curves import learning_curve as learning_curve
from likely.model_selection.residual_distribution import ResidualDistribution as ResidualDistribution
from likely.model_selection.residual_distribution import ResidualPredictive as ResidualPredictive
