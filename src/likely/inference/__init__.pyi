"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.distributions.unconstrained_parameters import declare_constraints as declare_constraints
from likely.inference.laplace_method import LaplaceApproximation as LaplaceApproximation
from likely.inference.laplace_method import laplace_approximation as laplace_approximation
from likely.inference.robbins_monro import RobbinsMonro as RobbinsMonro
from likely.inference.robbins_monro import RunningEstimate as RunningEstimate
from likely.inference.sequential_monte_carlo import SMCResult as SMCResult
from likely.inference.sequential_monte_carlo import smc_sampler as smc_sampler
