"""Pictures, one a function: `lk.plots.trace(report)`; matplotlib is loaded when the first is drawn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "density": ["DensityDisplay"], "evaluation": ["EvaluationDisplay"], "maps": ["decision_map"], "borders": ["border"],
    "learning": ["components", "trace"], "curves": ["law_curve"],
    "dependences": ["dependence_tree"], "discriminants": ["fisher_plane"],
    "trees": ["dendrogram"], "factors": ["ScoresDisplay", "ScreeDisplay"],
    "sequences": ["occupancy", "trellis"], "chains": ["chain"], "warping": ["alignment", "warping_path"],
    "transcripts": ["words"], "states": ["bands"], "tracks": ["track"], "clouds": ["cloud", "regimes"],
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from likely.plots.borders import border
    from likely.plots.chains import chain
    from likely.plots.clouds import cloud, regimes
    from likely.plots.curves import law_curve
    from likely.plots.density import DensityDisplay
    from likely.plots.dependences import dependence_tree
    from likely.plots.discriminants import fisher_plane
    from likely.plots.evaluation import EvaluationDisplay
    from likely.plots.factors import ScoresDisplay, ScreeDisplay
    from likely.plots.learning import components, trace
    from likely.plots.maps import decision_map
    from likely.plots.sequences import occupancy, trellis
    from likely.plots.states import bands
    from likely.plots.tracks import track
    from likely.plots.transcripts import words
    from likely.plots.trees import dendrogram
    from likely.plots.warping import alignment, warping_path

__all__ = [
    "DensityDisplay", "EvaluationDisplay", "ScoresDisplay", "ScreeDisplay", "alignment", "bands", "border", "chain",
    "cloud", "components", "decision_map", "dendrogram", "dependence_tree", "fisher_plane", "law_curve",
    "occupancy",
    "regimes", "trace", "track", "trellis", "warping_path", "words",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'likely.plots' has no attribute {name!r}")
    return getattr(import_module(f"likely.plots.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
