"""`likely evaluate`: error, cost and calibration of a model on labeled test data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
@click.option("--id", "id", metavar="COL", help="Sequences: column with the sequence ID of each row.  [as in training]")
@click.option("--time", metavar="COL", help="Sequences: column that orders the frames.  [as in training]")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Sequences: input columns to use for the model's columns, in its order.  [by name]")  # fmt: skip
@options.deciding
@options.reading
@click.option("--allow-missing", is_flag=True, help="Treat an absent column as missing in all rows.")
@click.option("--report", metavar="FILE", help="Write an HTML report.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures and curves as JSON.")
def evaluate(
    model: str, files: tuple[str, ...], target: str | None, weight: str | None, sql: str | None, format_: str | None,
    missing: tuple[str, ...], allow_missing: bool, report: str | None, as_json: bool, id: str | None,
    time: str | None, columns: tuple[str, ...], **rules: Any,
) -> None:  # fmt: skip
    """Evaluate a model on labeled test data: error, cost and calibration with 95 % confidence intervals.

    A classifier of sequences (`likely fit --sequences --target`) is evaluated on whole sequences, with files as in
    `likely decode`; a recognizer of spoken words on a folder with sub-folders of WAV files.
    """
    from likely.automl.table_classifier import laid_out
    from likely.cli.fitting.open_sequence_model import is_of_sequences
    from likely.cli.open_model import classifier_of
    from likely.cli.predict import decision_rules
    from likely.data.table_fingerprint import fingerprint
    from likely.io.model_files import load

    check_outputs({"--report": report}, (model, *files, rules["cost"], rules["class_prior"]))
    thing = load(model)
    if is_of_sequences(thing):
        from likely.cli.fitting.evaluate_sequences import evaluate_sequences

        asked = {
            "target": target, "weight": weight, "sql": sql, "format_": format_, "missing": missing, "report": report,
            "allow_missing": allow_missing, "id": id, "time": time, "columns": columns, **rules,
        }  # fmt: skip
        click.echo(evaluate_sequences(thing, model, files, asked, as_json))
        return
    for flag, given in {"--id": id, "--time": time, "--columns": columns}.items():
        if given:
            raise click.UsageError(f"{flag} is for sequences: this file holds a classifier of rows.")
    loaded = classifier_of(thing, model, "evaluate")
    target = target or str(loaded.card.get("target") or "") or None
    if target is None:
        raise click.UsageError("name the column with the true labels: --target NAME")
    table = labeled(loaded, files, target, weight, (sql, format_, missing), allow_missing)
    how = decision_rules(loaded, rules)
    e, decisions = measured(loaded, table, how)
    if loaded.card.get("rows_fingerprint") == fingerprint(laid_out(table.frame, list(loaded.schema))):
        Console()("these are the training rows of the model: expect larger errors on others")
    tell_of_other_shares(e, loaded.class_prior_)
    if report is not None:
        _write_report(report, model, loaded, table, e, files, target)
    click.echo(_json(e, decisions) if as_json else f"{e.summary()}\n\n{told_of(decisions)}")


def tell_of_other_shares(e: Any, expected: Any, what: str = "rows") -> None:
    """Note for test data whose class frequencies differ clearly from the class prior of the model."""
    share = e.confusion.sum(axis=1) / e.confusion.sum()
    c = int(abs(share - expected).argmax())
    if abs(share[c] - expected[c]) > 0.1:
        there = f'class "{e.classes[c]}" is {share[c]:.0%} of these {what}, the model expects {expected[c]:.0%}'
        Console()(f"{there}: set the class prior with --class-prior")


def labeled(model: Any, files: Any, target: str, weight: str | None, how: Any, allow_missing: bool) -> Any:
    """The rows with a label, in the model's columns."""
    from likely.data.read_table import called, require
    from likely.data.table import Table
    from likely.data.type_inference import as_frame

    sql, format, missing = how
    frame = as_frame(list(files), missing, sql, format)
    require(target, frame.columns, "--target")
    return Table.like(
        model.schema, frame, target=target, weight=weight, missing=missing, allow_missing=allow_missing,
        classes=model.classes_.tolist(), whose=called(files),
    )  # fmt: skip


def measured(model: Any, table: Any, how: dict[str, Any]) -> tuple[Any, Any]:
    """The evaluation, and the decisions under all rules."""
    from likely.automl.table_classifier import Typed, laid_out
    from likely.metrics.evaluation import Evaluation

    rows, truth = Typed(laid_out(table.frame, list(model.schema))), _places(model, table)
    posterior = model.log_posterior(rows)
    if how.get("class_prior") is not None:
        with np.errstate(divide="ignore"):
            posterior = posterior + np.log(how["class_prior"]) - np.log(model.class_prior_)
        posterior -= np.logaddexp.reduce(posterior, axis=1, keepdims=True)
    cost = model.cost if how.get("cost") is None else how["cost"]
    price = model.reject_cost if how.get("reject_cost") is None else how["reject_cost"]
    e = Evaluation(posterior, truth, model.classes_, cost=cost, reject_cost=price, weight=table.weight)
    return e, model.decide(rows, full=True, **how)


def _places(model: Any, table: Any) -> Any:
    places = {c: i for i, c in enumerate(model.classes_.tolist())}
    strange = [(n, c) for n, c in zip(table.row_numbers.tolist(), table.y.tolist(), strict=True) if c not in places]
    if strange:
        expected = f"labels must be among the model's classes {', '.join(str(c) for c in list(places)[:12])}"
        raise DataError(sentence(f"row {strange[0][0]}", expected, f'"{strange[0][1]}"', "leave such rows out"))
    return np.array([places[c] for c in table.y.tolist()], dtype=np.intp)


def told_of(decisions: Any, what: str = "rows") -> str:
    """Number of rows classified, given another action, and rejected under all rules together."""
    n, at = len(decisions), decisions.index
    classes = len(decisions.classes)
    parts = {"got a class": ((at >= 0) & (at < classes)).sum(), "another action": (at >= classes).sum(),
             "rejected": (at == -1).sum(), "novel": (at == -2).sum()}  # fmt: skip
    shown = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"of {n:,} {what}, by all rules of the model together: {shown}"


def _json(e: Any, decisions: Any) -> str:
    import json

    refused = {"refused_rows": int((decisions.index == -1).sum()), "novel_rows": int((decisions.index == -2).sum())}
    return json.dumps({**e.as_dict(), **refused}, indent=2)


def _write_report(report: str, path: str, model: Any, table: Any, e: Any, files: Any, target: str) -> None:
    from likely.cli.fitting.fit_study import study_of_new
    from likely.report import report_html

    names = tuple(Path(f).name for f in files)
    facts = {
        "title": f"{Path(path).name} on {', '.join(names)}", "target": target, "source": names, "model_file": path,
        "command": f"likely evaluate {path} {' '.join(files)} --target {target} --report {report}",
        "made": model.card.get("made", ""), "cv": "",
    }  # fmt: skip
    write_text(report, report_html(study_of_new(model, table, e, e.truth, facts)))
