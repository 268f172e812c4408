"""`likely evaluate`: error, cost and calibration of a model on labeled test data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from likely.cli import options
from likely.cli.console import Console
from likely.cli.outputs import check_outputs
from likely.core.errors import DataError, sentence
from likely.io.atomic_write import write_text

EPILOG = """\b
Examples:
  likely evaluate model.likely test.csv --report test.html
  likely evaluate gaits.likely new.csv --id who --time t --target gait
"""


@click.command(epilog=EPILOG)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...|-")
@click.option("--target", metavar="NAME", help="Column with the true labels.  [as in training]")
@click.option("--weight", metavar="COL", help="Column with sample weights.")
@options.frames
@options.deciding
@options.losing
@click.option("--level", metavar="P", type=options.Share(), help="Regression: level of the intervals.  [0.9]")
@options.reading
@click.option("--allow-missing", is_flag=True, help="Treat an absent column as missing in all rows.")
@click.option("--report", metavar="FILE", help="Write an HTML report.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures and curves as JSON.")
def evaluate(model: str, files: tuple[str, ...], report: str | None, as_json: bool, **settings: Any) -> None:
    """Evaluate a model on labeled test data: error, cost and calibration with 95 % confidence intervals.

    Of a model that predicts a number: RMSE, mean absolute error, log score, interval score and coverage.

    A classifier of sequences (`likely fit --sequences --target`) is evaluated on whole sequences, with files as in
    `likely decode`; a recognizer of spoken words on a folder with sub-folders of WAV files.
    """
    from likely.cli.open_model import is_regressor, refuse_others, unit_of
    from likely.cli.predict import classes_only, decision_rules
    from likely.io.model_files import load

    check_outputs({"--report": report}, (model, *files, settings["cost"], settings["class_prior"]))
    thing = load(model)
    unit = unit_of(thing)
    refuse_others(settings, unit)
    if is_regressor(thing):
        _evaluate_numbers(thing, model, files, report, as_json, settings)
        return
    classes_only(settings)
    found = {"row": _rows, "sequence": _sequences, "recording": _recordings}[unit](thing, model, files, settings)
    how = decision_rules(found.model, {name: settings[name] for name in options.RULES})
    e, decisions = measured(found, how, unit)
    note_shifted_class_frequencies(e, found.model.class_prior_, unit)
    if report is not None:
        _write_report(report, model, found, e, files)
    click.echo(_json(e, decisions) if as_json else f"{e.summary()}\n\n{told_of(decisions, unit)}")


def _evaluate_numbers(
    thing: Any, model: str, files: tuple[str, ...], report: str | None, as_json: bool, settings: Mapping[str, Any]
) -> None:
    """Print the figures of a regressor, and write its report."""
    from likely.cli.predict import number_rules
    from likely.metrics.regression_evaluation import RegressionEvaluation

    how = number_rules(thing, dict(settings))
    found = _rows_with_target(thing, files, settings, task="regression")
    loss = {"loss": how["loss"] or "squared", "over": how["over"], "under": how["under"]}
    e = RegressionEvaluation.of(
        thing.predictive(found.X), found.labels, level=how["level"], weight=found.weight, **loss
    )
    if report is not None:
        from likely.cli.fitting.regression_report import regression_study_of_new
        from likely.report import regression_html

        about = _about(report, model, found, files)
        write_text(report, regression_html(regression_study_of_new(thing, found.source, e, about)))
    import json

    click.echo(json.dumps(e.as_dict(), indent=2) if as_json else e.summary())


class Labeled(NamedTuple):
    """Labeled test data in the form of a model."""

    model: Any
    X: Any
    labels: Any  # (n,)
    names: Any  # (n,): what messages call each of X
    weight: Any  # (n,)
    source: Any  # the table, sequences or files
    target: str = "folder"


def _rows(thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any]) -> Labeled:
    from likely.cli.open_model import classifier_of

    loaded = classifier_of(thing, model, "evaluate")
    return _rows_with_target(loaded, files, settings, classes=loaded.classes_.tolist())


def _rows_with_target(loaded: Any, files: tuple[str, ...], settings: Mapping[str, Any], **kind: Any) -> Labeled:
    """The rows of a table that have a target, in the form of the model."""
    from likely.automl.table_classifier import Typed, laid_out
    from likely.data.read_table import called, require
    from likely.data.table import Table
    from likely.data.table_fingerprint import fingerprint
    from likely.data.type_inference import as_frame

    target = settings["target"] or str(loaded.card.get("target") or "")
    if not target:
        raise click.UsageError("name the column with the true labels: --target NAME")
    frame = as_frame(list(files), settings["missing"], settings["sql"], settings["format_"])
    require(target, frame.columns, "--target")
    table = Table.like(
        loaded.schema, frame, target=target, weight=settings["weight"], missing=settings["missing"],
        allow_missing=settings["allow_missing"], whose=called(files), **kind,
    )  # fmt: skip
    rows = laid_out(table.frame, list(loaded.schema))
    note_training_data(loaded.card.get("rows_fingerprint") == fingerprint(rows), "row")
    names = [f"row {n}" for n in table.row_numbers.tolist()]
    return Labeled(loaded, Typed(rows), table.y, names, table.weight, table, target)


def _sequences(thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any]) -> Labeled:
    from likely.automl.sequence_models import by_name
    from likely.cli.fitting.sequence_input import frames_fingerprint, missing_labels, sequences_for
    from likely.cli.open_model import sequence_classifier

    known, console = sequence_classifier(thing, model), Console()
    folder = len(files) == 1 and Path(files[0]).is_dir() and not settings["target"]
    target = settings["target"] or (None if folder else known.schema["roles"].get("label"))
    found = sequences_for(known, files, {**settings, "label": target}, console)
    if found.labels is None:
        raise click.UsageError(
            "name the column with the true labels: --target NAME (or name a folder with sub-folders)"
        )
    here = np.flatnonzero(~missing_labels(found.labels))
    if not len(here):
        raise DataError(sentence("--target", "some sequence must have a label", "none"))
    if len(here) < len(found):
        console(f"{len(found) - len(here):,} of {len(found):,} sequences have no label: left out")
    some = replace(found, x=found.x[here], ids=found.ids[here], labels=None, weight=None, states=None, time=None)
    columns = by_name(known.frames(some), list(known.columns))
    note_training_data(known.card.get("fingerprint") == frames_fingerprint(columns, some.x.lengths), "sequence")
    names = [f'sequence "{name}"' for name in some.ids.tolist()]
    weight = None if found.weight is None else found.weight[here]
    return Labeled(known, some, found.labels[here], names, weight, some, target or "folder")


def _recordings(thing: Any, model: str, files: tuple[str, ...], settings: Mapping[str, Any]) -> Labeled:
    from likely.cli.fitting.recording_data import files_fingerprint, words_of

    recordings, words = words_of(files)
    note_training_data(thing.card.get("fingerprint") == files_fingerprint(recordings), "recording")
    return Labeled(thing, list(recordings), np.array(words, dtype=object), recordings, None, recordings, "word")


def note_training_data(same: bool, unit: str) -> None:
    """Note for data that the model was fitted to."""
    if same:
        Console()(f"these are the training {unit}s of the model: expect larger errors on others")


def measured(found: Labeled, how: dict[str, Any], unit: str) -> tuple[Any, Any]:
    """The evaluation, and the decisions under all rules."""
    from likely.decision.combine import change_log_prior
    from likely.metrics.evaluation import Evaluation

    model, truth = found.model, _places(found, unit)
    posterior = model.log_posterior(found.X)
    if how.get("class_prior") is not None:
        posterior = change_log_prior(posterior, model.class_prior_, np.asarray(how["class_prior"]))
    cost = model.cost if how.get("cost") is None else how["cost"]
    price = model.reject_cost if how.get("reject_cost") is None else how["reject_cost"]
    e = Evaluation(posterior, truth, model.classes_, cost=cost, reject_cost=price, weight=found.weight, unit=unit)
    return e, model.decide(found.X, full=True, **how)


def _places(found: Labeled, unit: str) -> Any:
    """Index of each label among the classes; numbers and text that read alike are equal."""
    from likely.automl.sequence_models import as_text

    places = {as_text(c): i for i, c in enumerate(found.model.classes_.tolist())}
    labels = [as_text(label) for label in found.labels.tolist()]
    odd = next((i for i, label in enumerate(labels) if label not in places), None)
    if odd is not None:
        expected = f"labels must be among the model's classes {', '.join(list(places)[:12])}"
        raise DataError(sentence(found.names[odd], expected, f'"{labels[odd]}"', f"leave such {unit}s out"))
    return np.array([places[label] for label in labels], dtype=np.intp)


def note_shifted_class_frequencies(e: Any, expected: Any, unit: str) -> None:
    """Note for test data whose class frequencies differ clearly from the class prior of the model."""
    share = e.confusion.sum(axis=1) / e.confusion.sum()
    c = int(abs(share - expected).argmax())
    if abs(share[c] - expected[c]) > 0.1:
        there = f'class "{e.classes[c]}" is {share[c]:.0%} of these {unit}s, the model expects {expected[c]:.0%}'
        Console()(f"{there}: set the class prior with --class-prior")


def told_of(decisions: Any, unit: str = "row") -> str:
    """Number of rows classified, given another action, and rejected under all rules together."""
    n, at = len(decisions), decisions.index
    classes = len(decisions.classes)
    parts = {"got a class": ((at >= 0) & (at < classes)).sum(), "another action": (at >= classes).sum(),
             "rejected": (at == -1).sum(), "novel": (at == -2).sum()}  # fmt: skip
    shown = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"of {n:,} {unit}s, by all rules of the model together: {shown}"


def _json(e: Any, decisions: Any) -> str:
    import json

    refused = {"refused_rows": int((decisions.index == -1).sum()), "novel_rows": int((decisions.index == -2).sum())}
    return json.dumps({**e.as_dict(), **refused}, indent=2)


def _write_report(report: str, path: str, found: Labeled, e: Any, files: tuple[str, ...]) -> None:
    from likely.cli.fitting import fit_study
    from likely.report import report_html

    model, X = found.model, None
    if e.unit == "row":
        X = model.frame(found.source.frame)
        shown: fit_study.Shown = fit_study.ShownRows(found.source, list(X.columns))
    elif e.unit == "sequence":
        shown = fit_study.ShownSequences(model.frames(found.source), found.source.ids, model.columns)
    else:
        shown = fit_study.ShownRecordings(found.source)
    about = _about(report, path, found, files, named=e.unit == "row")
    write_text(report, report_html(fit_study.study_of_new(model, shown, X, e, found.weight, about)))


def _about(report: str, path: str, found: Labeled, files: tuple[str, ...], named: bool = True) -> dict[str, Any]:
    """Title and origin of a report."""
    names, target = tuple(Path(f).name for f in files), found.target
    said = f" --target {target}" if named else ""
    return {
        "title": f"{Path(path).name} on {', '.join(names)}", "target": target, "source": names, "model_file": path,
        "command": f"likely evaluate {path} {' '.join(files)}{said} --report {report}",
        "made": found.model.card.get("made", ""), "cv": "",
    }  # fmt: skip
