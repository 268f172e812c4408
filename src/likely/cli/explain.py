"""`likely explain`: contribution of each column, and of each frame of a sequence, to a decision or prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from likely.cli import options
from likely.core.errors import DataError, ModelFileError, sentence

EPILOG = """\b
Examples:
  likely explain model.likely new.csv --row 18 --row 20
  likely explain gaits.likely walks.csv --sequence w07
"""


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option("--row", "rows", metavar="N", type=click.IntRange(1), multiple=True,
              help="Number of the row or sequence, from 1; repeatable.  [1]")  # fmt: skip
@click.option("--sequence", multiple=True, metavar="ID", help="Sequences: ID of the sequence; repeatable.")
@options.frames
@options.reading
@click.option("--allow-missing", is_flag=True, help="Treat an absent column as missing in all rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def explain(model: str, files: tuple[str, ...], rows: tuple[int, ...], as_json: bool, **settings: Any) -> None:
    """Show how much each column adds to the log-odds of the decision, and the expected cost without it.

    The contribution of a column is conditional on all other columns. In naive Bayes these log-odds and those of the
    class prior add up to the log-odds of the uncalibrated posterior; in other models they need not, and a note says
    so. If the model is calibrated, posterior and log-odds are shown after calibration, where they need not add up;
    --json also gives those before it. For isotonic calibration, which is piecewise constant, log-odds are shown before
    calibration. If costs led to a class other than the most probable one, this is noted.

    For a classifier of sequences, a column is left out in all frames, and the frames with the largest log-odds are
    listed: log p(frame | frames before it, class). Those of all frames and of the class prior add up. All log-odds of
    sequences are shown before calibration. Files are given as in `likely decode`.

    Where the model predicts a number: what each column adds to it, against the mean of the column (coefficient × (value
    − mean) of a linear model). Models that are not sums of functions of single columns have no such parts.
    """
    from likely.cli.open_model import refuse_others, unit_of
    from likely.io.model_files import load

    thing = load(model)
    unit = unit_of(thing)
    if unit == "recording":
        remedy = "`likely decode --single` gives the probabilities of words"
        raise ModelFileError(
            sentence(model, "`likely explain` takes a model of rows or sequences", "recordings", remedy)
        )
    refuse_others(settings, unit)
    loaded, X, names = (_rows if unit == "row" else _sequences)(thing, model, files, settings)
    at = _asked(rows, settings["sequence"], names, unit)
    found, unseen = loaded.explain(X[at]), loaded.unseen(X[at])
    chosen = [names[i] for i in at]
    click.echo(_json(found, chosen, unit) if as_json else _text(found, chosen, unseen))


def _rows(thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any]) -> tuple[Any, Any, list[Any]]:
    """The classifier, the rows of a table, and their numbers."""
    from likely.cli.open_model import classifier_of, is_regressor
    from likely.data.table import Table

    loaded: Any = thing if is_regressor(thing) else classifier_of(thing, model, "explain")
    table = Table.like(
        loaded.schema, list(files), missing=settings["missing"], allow_missing=settings["allow_missing"],
        sql=settings["sql"], format=settings["format_"],
    )  # fmt: skip
    return loaded, table.frame, list(range(1, len(table) + 1))


def _sequences(
    thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any]
) -> tuple[Any, Any, list[Any]]:
    """The classifier, sequences as it takes them, and their IDs."""
    from likely.automl.sequence_models import SequenceClassifier
    from likely.cli.console import Console
    from likely.cli.fitting.sequence_input import sequences_for
    from likely.cli.open_model import sequence_classifier

    loaded = sequence_classifier(thing, model)
    if not isinstance(loaded, SequenceClassifier):
        remedy, kind = "`likely fit --sequences` writes one", type(loaded.classifier_).__name__
        raise ModelFileError(sentence(model, "an explanation needs a hidden Markov model per class", kind, remedy))
    found = sequences_for(loaded, files, settings, Console())
    return loaded, loaded.frames(found), [str(name) for name in found.ids.tolist()]


def _asked(rows: tuple[int, ...], ids: tuple[str, ...], names: Sequence[Any], unit: str) -> list[int]:
    """Indices of the rows or sequences that were asked for."""
    beyond = [row for row in rows if row > len(names)]
    if beyond:
        what = "the table has" if unit == "row" else "there are"
        expected, remedy = f"{what} {len(names):,} {unit}s", f"{unit}s count from 1"
        raise DataError(sentence(f"--row {beyond[0]}", expected, remedy=remedy))
    odd = next((name for name in ids if name not in names), None)
    if odd is not None:
        from likely.data.read_table import did_you_mean

        remedy = did_you_mean(odd, list(names))
        raise DataError(sentence("--sequence", f'there must be a sequence "{odd}"', remedy=remedy))
    return [row - 1 for row in rows] + [names.index(name) for name in ids] or [0]


def _text(found: Any, names: Sequence[Any], unseen: Mapping[str, Any]) -> str:
    pages = []
    for i, page in enumerate(found.pages(names)):
        columns = ", ".join(f'"{name}"' for name, mask in unseen.items() if mask[i])
        note = f"novel: a value of {columns} was not seen in training and counts as missing"
        pages.append(page.plus(notes=[note] * bool(columns)).to_text(indented=True))
    return "\n".join(["\n\n".join(pages), *filter(None, [found.note])])


def _json(found: Any, names: Sequence[Any], unit: str) -> str:
    import json

    return "\n".join(json.dumps({unit: name, **record}) for name, record in zip(names, found.records(), strict=True))
