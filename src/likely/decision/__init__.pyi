"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.decision.boundary.boundary import Boundary as Boundary
from likely.decision.boundary.hyperplane import Hyperplane as Hyperplane
from likely.decision.point_estimates import point_estimate as point_estimate
from likely.decision.sequential.cusum import CUSUM as CUSUM
from likely.decision.sequential.sprt import SPRT as SPRT
from likely.decision.theory.density_bounds import bhattacharyya_bound as bhattacharyya_bound
from likely.decision.theory.density_bounds import chernoff_bound as chernoff_bound
from likely.decision.theory.error_bounds import ErrorBounds as ErrorBounds
from likely.decision.theory.error_bounds import bayes_error_from_neighbors as bayes_error_from_neighbors
from likely.decision.theory.error_bounds import cover_hart_bound as cover_hart_bound
from likely.decision.theory.error_bounds import cross_entropy_bound as cross_entropy_bound
from likely.decision.theory.error_bounds import error_bounds as error_bounds
from likely.decision.theory.error_bounds import fano_bound as fano_bound
from likely.decision.theory.error_bounds import hellman_raviv_bound as hellman_raviv_bound
from likely.decision.theory.error_bounds import squared_error_bound as squared_error_bound
