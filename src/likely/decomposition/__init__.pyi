"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.decomposition.discriminant_subspace import DiscriminantSubspace as DiscriminantSubspace
from likely.decomposition.estimators.factor_analysis import PPCA as PPCA
from likely.decomposition.principal_subspace import PrincipalSubspace as PrincipalSubspace
