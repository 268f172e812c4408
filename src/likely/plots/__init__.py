"""Plots with matplotlib, one function each: `lk.plots.trace(report)`; matplotlib is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "density_display": ["DensityDisplay"], "evaluation_display": ["EvaluationDisplay"],
    "decision_regions": ["decision_map"], "boundary_plot": ["border"], "fit_trace": ["components", "trace"],
    "density_curve": ["distribution_curve"], "chow_liu_plot": ["dependence_tree"], "fisher_plot": ["fisher_plane"],
    "dendrogram_plot": ["dendrogram"], "scree_display": ["ScoresDisplay", "ScreeDisplay"],
    "state_sequences": ["occupancy", "trellis"], "state_graph": ["chain"],
    "warping_plot": ["alignment", "warping_path"], "word_plot": ["words"], "state_bands": ["bands"],
    "track_plot": ["track"], "particle_cloud": ["cloud", "regimes"],
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from likely.plots.boundary_plot import border
    from likely.plots.chow_liu_plot import dependence_tree
    from likely.plots.decision_regions import decision_map
    from likely.plots.dendrogram_plot import dendrogram
    from likely.plots.density_curve import distribution_curve
    from likely.plots.density_display import DensityDisplay
    from likely.plots.evaluation_display import EvaluationDisplay
    from likely.plots.fisher_plot import fisher_plane
    from likely.plots.fit_trace import components, trace
    from likely.plots.particle_cloud import cloud, regimes
    from likely.plots.scree_display import ScoresDisplay, ScreeDisplay
    from likely.plots.state_bands import bands
    from likely.plots.state_graph import chain
    from likely.plots.state_sequences import occupancy, trellis
    from likely.plots.track_plot import track
    from likely.plots.warping_plot import alignment, warping_path
    from likely.plots.word_plot import words

__all__ = [
    "DensityDisplay", "EvaluationDisplay", "ScoresDisplay", "ScreeDisplay", "alignment", "bands", "border", "chain",
    "cloud", "components", "decision_map", "dendrogram", "dependence_tree", "fisher_plane", "distribution_curve",
    "occupancy",
    "regimes", "trace", "track", "trellis", "warping_path", "words",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'likely.plots' has no attribute {name!r}")
    return getattr(import_module(f"likely.plots.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
