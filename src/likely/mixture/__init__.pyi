"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.mixture.estimators.choose_components import ComponentChoice as ComponentChoice
from likely.mixture.estimators.contaminated_density import ContaminatedDensity as ContaminatedDensity
from likely.mixture.interpolation import FixedComponents as FixedComponents
from likely.mixture.interpolation import interpolation_weights as interpolation_weights
from likely.mixture.scaled_copies import ScaledCopies as ScaledCopies
