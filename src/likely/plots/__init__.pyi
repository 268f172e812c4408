"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.plots.boundary_plot import boundary_curve as boundary_curve
from likely.plots.chow_liu_plot import dependence_tree as dependence_tree
from likely.plots.decision_regions import decision_map as decision_map
from likely.plots.dendrogram_plot import dendrogram as dendrogram
from likely.plots.density_curve import distribution_curve as distribution_curve
from likely.plots.density_display import DensityDisplay as DensityDisplay
from likely.plots.evaluation_display import EvaluationDisplay as EvaluationDisplay
from likely.plots.fisher_plot import fisher_plane as fisher_plane
from likely.plots.fit_trace import component_criteria as component_criteria
from likely.plots.fit_trace import trace as trace
from likely.plots.particle_cloud import regimes as regimes
from likely.plots.particle_cloud import weighted_particles as weighted_particles
from likely.plots.scree_display import ScoresDisplay as ScoresDisplay
from likely.plots.scree_display import ScreeDisplay as ScreeDisplay
from likely.plots.state_bands import state_estimates as state_estimates
from likely.plots.state_graph import transition_graph as transition_graph
from likely.plots.state_sequences import state_probabilities as state_probabilities
from likely.plots.state_sequences import trellis as trellis
from likely.plots.track_plot import track as track
from likely.plots.warping_plot import alignment as alignment
from likely.plots.warping_plot import warping_path as warping_path
from likely.plots.word_plot import word_segments as word_segments
