"""Generated from likely/names.py by `python -m tests.public_names`."""

from likely.plots.boundary_plot import plot_decision_boundary as plot_decision_boundary
from likely.plots.chow_liu_plot import plot_chow_liu_tree as plot_chow_liu_tree
from likely.plots.decision_regions import plot_decision_regions as plot_decision_regions
from likely.plots.dendrogram_plot import plot_dendrogram as plot_dendrogram
from likely.plots.density_curve import plot_distribution as plot_distribution
from likely.plots.density_display import DensityDisplay as DensityDisplay
from likely.plots.evaluation_display import EvaluationDisplay as EvaluationDisplay
from likely.plots.fisher_plot import plot_fisher_projection as plot_fisher_projection
from likely.plots.fit_trace import plot_component_criteria as plot_component_criteria
from likely.plots.fit_trace import plot_convergence as plot_convergence
from likely.plots.particle_cloud import plot_particles as plot_particles
from likely.plots.particle_cloud import plot_regimes as plot_regimes
from likely.plots.scree_display import ScoresDisplay as ScoresDisplay
from likely.plots.scree_display import ScreeDisplay as ScreeDisplay
from likely.plots.state_bands import plot_state_estimates as plot_state_estimates
from likely.plots.state_graph import plot_transition_graph as plot_transition_graph
from likely.plots.state_sequences import plot_state_probabilities as plot_state_probabilities
from likely.plots.state_sequences import plot_trellis as plot_trellis
from likely.plots.track_plot import plot_track as plot_track
from likely.plots.warping_plot import plot_alignment as plot_alignment
from likely.plots.warping_plot import plot_warping_path as plot_warping_path
from likely.plots.word_plot import plot_word_segments as plot_word_segments
