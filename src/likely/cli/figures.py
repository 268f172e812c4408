"""Plots written by commands, atomically."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, LikelyError, ModelFileError, sentence
from likely.io.atomic_write import bytes_written_whole

ENDINGS = (".png", ".svg", ".pdf")
CLASSES = 9  # whose chains fit into one picture


def check_picture(path: str | None, flag: str = "--plot") -> None:
    """Check the file extension, and that matplotlib is installed, before the work starts."""
    if path is None:
        return
    if Path(path).suffix.lower() not in ENDINGS:
        raise click.UsageError(f"{flag} {path}: the name must end in {', '.join(ENDINGS)}.")
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError as error:
        remedy = 'install it: pip install "likely[plot]"'
        raise LikelyError(sentence(flag, "plots need matplotlib", "none installed", remedy)) from error


def saved(figure: Any, path: str) -> None:
    """Write a figure to a file, atomically."""
    with bytes_written_whole(path) as stream:
        figure.savefig(stream, dpi=130, format=Path(path).suffix[1:].lower())


def draw_model(model: str, path: str) -> None:
    """The states of a model of sequences; of a classifier, those of each class."""
    from likely.io.model_files import load

    check_outputs({"--plot": path}, [model])
    check_picture(path)
    thing = load(model)
    thing = getattr(thing, "classifier_", thing)
    if type(getattr(thing, "density_", thing)).__name__ == "HMMDensity" and hasattr(thing, "classes_"):
        saved(_classes(thing), path)
        return
    chain = getattr(thing, "model_", thing)
    if type(chain).__name__ != "HMM":
        expected = "only hidden Markov models can be plotted"
        raise ModelFileError(sentence(model, expected, type(thing).__name__, "leave --plot out"))
    if chain.members is not None:
        raise DataError(sentence(model, "a single model can be plotted", f"a stack of {chain.members}"))
    from likely.plots.state_graph import plot_transition_graph as draw

    saved(draw(thing, names=getattr(thing, "state_names", None)).figure, path)


def _classes(clf: Any) -> Any:
    from likely.plots.state_graph import plot_transition_graph as draw
    from likely.plots.theme import themed

    shown = clf.classes_.tolist()[:CLASSES]
    wide = min(len(shown), 3 if clf.model_.components.states <= 6 else 1)
    high = -(-len(shown) // wide)
    with themed() as plt:
        figure, axes = plt.subplots(high, wide, figsize=(4.6 * wide if wide > 1 else 9.0, 3.6 * high),
                                    squeeze=False, layout="constrained")  # fmt: skip
        for c, ax in enumerate(axes.ravel()):
            ax.set_axis_off()
            if c < len(shown):
                draw(clf.model_.components.member(c), ax)
                ax.set_title(str(shown[c]), loc="left")
    return figure
