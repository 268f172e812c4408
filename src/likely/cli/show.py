"""`likely show`: description of a model file."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from typing import Any

import click

from likely.core.description import Description, plain


@click.command(epilog="\b\nExample:\n  likely show model.likely\n")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Plot the state graph of a hidden Markov model (.png, .svg, .pdf).")
def show(model: str, as_json: bool, plot: str | None) -> None:
    """Describe a model file: type, classes, columns, parameters and decision rule."""
    if plot is not None:
        from likely.cli.figures import draw_model

        draw_model(model, plot)
    click.echo(description(model, as_json))


def description(model: str, as_json: bool) -> str:
    """Description of a model file, as JSON or as text."""
    from likely.cli.open_model import card_as_written
    from likely.io.model_files import describe, load

    outline = describe(model)
    thing = load(model)
    with card_as_written(model):
        return dumps(as_plain(outline, thing), indent=2) if as_json else described(outline, thing).to_text()


def described(outline: dict[str, Any], thing: Any) -> Description:
    """The description of what is in a file, with the version that wrote it, and whether it holds training data."""
    from likely.estimation.stored_data import what_is_kept

    found, held = thing.describe(), what_is_kept(thing)
    written = f"written by likely {outline['likely']} (format {outline['format']})"
    notes = [f"This file holds {held} of its training data: anyone with the file can read them."] if held else []
    return replace(found, text=[written, *found.text]).plus(notes=notes)


def as_plain(outline: dict[str, Any], thing: Any) -> dict[str, Any]:
    """Outline and description of what is in a file, with its card."""
    from likely.estimation.stored_data import what_is_kept

    more: dict[str, Any] = {}
    if hasattr(thing, "card"):  # of a table, or of sequences
        columns = getattr(thing, "columns", None) or getattr(thing, "schema", None)
        more = {"columns": columns, "card": thing.card}
    return plain({**outline, "description": thing.describe().to_dict(), **more, "holds": what_is_kept(thing) or "sums"})
