"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.recognizers.tracking.tracker import Track as Track
from likely.statespace.continuous.timed_belief import TimedBelief as TimedBelief
from likely.statespace.linear.forecast import StateForecast as StateForecast
from likely.statespace.linear.linear_em import ConstrainedLinearGaussian as ConstrainedLinearGaussian
from likely.statespace.linear.linear_stats import LinearStats as LinearStats
from likely.statespace.linear.standard_errors import StandardErrors as StandardErrors
from likely.statespace.linear.standard_errors import standard_errors as standard_errors
from likely.statespace.linear.state_belief import StateBelief as StateBelief
from likely.statespace.linear.sums_of_models import structural_components as structural_components
from likely.statespace.nonlinear.unscented_kalman_filter import CubatureKalmanFilter as CubatureKalmanFilter
from likely.statespace.particle.particle_belief import ParticleBelief as ParticleBelief
from likely.statespace.particle.particle_filter import ParticleRun as ParticleRun
from likely.statespace.particle.particle_smoother import SmoothedPaths as SmoothedPaths
from likely.statespace.switching.fault_alarms import fault_alarms as fault_alarms
from likely.statespace.switching.imm_filter import IMMFilter as IMMFilter
from likely.statespace.switching.rao_blackwellized_filter import RaoBlackwellizedFilter as RaoBlackwellizedFilter
from likely.statespace.switching.switching_belief import SwitchingBelief as SwitchingBelief
from likely.statespace.switching.switching_em import ConstrainedSwitchingLinearGaussian as ConstrainedSwitchingLinearGaussian
from likely.statespace.switching.switching_stats import SwitchingStats as SwitchingStats
