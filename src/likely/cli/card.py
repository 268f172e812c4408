"""`likely card`: model card of a classifier or of clusters, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from likely.cli.outputs import check_outputs
from likely.core.errors import ModelFileError, sentence
from likely.io.atomic_write import write_text

NO_CARD = frozenset({
    "LinearGaussian", "LinearSDE", "SwitchingLinearGaussian", "LinearGaussianDensity", "SwitchingDensity",
    "FaultMonitor", "Tracker",
})  # fmt: skip


@click.command(epilog="\b\nExample:\n  likely card model.likely -o MODEL_CARD.md\n")
@click.argument("model")
@click.option("-o", "--out", metavar="FILE", help="Write to a file.  [stdout]")
def card(model: str, out: str | None) -> None:
    """Write a model card in Markdown: data, model selection, performance, costs and limitations."""
    from likely.cli.clustering.cluster_card import cluster_markdown
    from likely.cli.open_model import card_as_written, classifier_of, cluster_model

    check_outputs({"-o": out}, [model])
    clusters, thing = cluster_model(model)
    _refuse_no_card(thing, model)
    loaded: Any = classifier_of(thing, model, "card") if clusters is None else clusters
    if not loaded.card:
        remedy = "make it with `likely fit` or `likely cluster`, which record how"
        raise ModelFileError(sentence(model, "the file holds no record of how the model was fitted", remedy=remedy))
    with card_as_written(model):
        text = markdown(loaded, model) if clusters is None else cluster_markdown(loaded, model)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)


def _refuse_no_card(thing: Any, path: str) -> None:
    """State-space models come from Python, without a record of how they were fitted."""
    kind = type(thing).__name__
    if kind in NO_CARD:
        expected, remedy = "cards are written for classifiers and clusters", "`likely show` describes this file"
        raise ModelFileError(sentence(path, expected, f"a {kind}", remedy))


def markdown(model: Any, path: str) -> str:
    """The whole card."""
    facts = model.card
    sections = (
        _model_section,
        _intended_use_section,
        _data_section,
        _selection_section,
        _performance_section,
        _costs_section,
        _warnings_section,
        _limitations_section,
        _reproduce_section,
    )
    lines = [f"# Model card: {_safe(facts['target'])}", ""]
    for section in sections:
        lines += [*section(facts, model, path), ""]
    return "\n".join(lines).rstrip() + "\n"


def table(head: list[str], rows: list[list[Any]]) -> Iterator[str]:
    """A table in Markdown.

    >>> print(*table(["class", "rows"], [["a|b", 3]]), sep="\\n")
    | class | rows |
    |---|---|
    | a\\|b | 3 |
    """
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(_safe(cell) for cell in row)} |"


def _safe(cell: Any) -> str:
    return " ".join(str(cell).replace("|", "\\|").replace("<", "&lt;").split())


def _interval(told: dict[str, Any] | None, scale: float = 1, unit: str = "") -> str:
    if told is None or told.get("value") is None:
        return "not measurable"
    low, high = told.get("low"), told.get("high")
    ends = "" if low is None or high is None else f" ({low * scale:.4g} – {high * scale:.4g})"
    return f"{told['value'] * scale:.4g}{unit}{ends}"


# -------------------------------------------------------------------------- sections


def _model_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## What it is"
    yield ""
    chosen = next(line for line in facts["leaderboard"] if line["chosen"])
    size = f"{len(model.classes_)} classes, {len(model.schema)} columns"
    yield f"A classifier of `{facts['target']}` ({size})."
    yield f"Model: **{chosen['name']}** ({facts['what'].rstrip('.')})."
    yield from _kind(model.classifier_)
    if facts["calibrated"]:
        yield f"Its probabilities were {facts['calibrated']} on held-out rows."
    yield f"Made by {facts['made']}; file `{path}`."


def _kind(classifier: Any) -> Iterator[str]:
    """How it computes posterior probabilities, and whether the file contains training rows."""
    from likely.estimation.stored_data import what_is_kept

    name, k, held = type(classifier).__name__, getattr(classifier, "n_neighbors_", None), what_is_kept(classifier)
    yield {
        "KNeighborsClassifier": f"It is a k-nearest-neighbors classifier: the {k} nearest training rows vote.",
        "NearestCentroidClassifier": "It is a nearest-centroid classifier: distances to class centers decide.",
        "PriorClassifier": "It uses no column: its posterior is the class prior.",
    }.get(name, "It is generative: one density per class, and Bayes' theorem.")
    if held:
        yield f"The model file holds {held} of its training data: anyone with the file can read them."


def _intended_use_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Intended use"
    yield ""
    yield f"Decisions about `{facts['target']}`, with the costs below, for rows from the same population."
    yield "It gives posterior probabilities and the decision of least expected cost, and may reject."
    yield "A person should review rejected rows, and rows marked as novel."


def _data_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Data"
    yield ""
    aside = f", {facts['unlabeled']:,} more without a label were set aside" if facts["unlabeled"] else ""
    yield f"{', '.join(map(_safe, facts['source']))}: {facts['rows']:,} rows{aside}."
    yield f"Fingerprint `{facts['fingerprint']}`."
    roles = {role: name for role, name in facts["roles"].items() if role != "target"}
    if roles:
        yield f"Roles: {', '.join(f'{role} = {_safe(name)}' for role, name in roles.items())}."
    yield ""
    yield from table(["class", "rows"], [[c, f"{n:,}"] for c, n in facts["classes"].items()])
    yield ""
    yield from table(
        ["column", "kind", "missing", "distinct"],
        [[c["name"], c["kind"], f"{c['n_missing']:,}", f"{c['distinct']:,}"] for c in facts["columns"]],
    )
    if facts["set_aside"]:
        yield ""
        yield "Set aside:"
        yield from (f"- `{name}`: {_safe(reason)}" for name, reason in facts["set_aside"].items())


def _selection_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## How it was chosen"
    yield ""
    yield f"By {facts.get('criterion', 'cost')} on held-out rows ({facts['cv']})."
    yield (
        facts.get("rule")
        or "One-standard-error rule: of the models within one standard error of the best, the simplest."
    )  # older files
    yield facts["verdict"]
    yield ""
    yield "± is one standard error; “tied” means within one standard error of the best, by paired differences."
    yield ""
    rows = [[("**" + line["name"] + "**") if line["chosen"] else line["name"], _give_or_take(line, "cost", "cost_se"),
             _give_or_take(line, "behind", "behind_se"), _number(line["error"]), _number(line["log_loss"]),
             ", ".join(line.get("ties", ())), line["note"]]
            for line in facts["leaderboard"]]  # fmt: skip
    yield from table(["model", "cost per row", "behind the best", "error", "log-loss", "tied in", "note"], rows)


def _give_or_take(line: dict[str, Any], name: str, se: str) -> str:
    return _number(line[name]) + ("" if line[name] is None or line[se] is None else f" ± {line[se]:.2g}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _performance_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    told = facts["figures"]
    yield "## Performance"
    yield ""
    yield f"On {told['rows']:,} held-out rows; intervals are at 95 %."
    yield ""
    yield from table(["measure", "value"], [
        ["error without reject option", _interval(told["error"], 100, " %")],
        ["cost per row", _interval(told["decision_cost"])],
        ["rejected or given another action", _interval(told.get("unclassified", told["reject_rate"]), 100, " %")],
        ["error among the others", _interval(told["error_of_accepted"], 100, " %")],
        ["log-loss (nats)", _interval(told["log_loss"])], ["Brier score", _interval(told["brier"])],
        ["calibration error", f"{told['calibration_error']:.4g}"],
    ])  # fmt: skip
    yield ""
    yield f"Calibration: {told['calibration']}"
    yield ""
    rows = [[r["label"], f"{r['weight']:,.6g}", _interval(r["recall"], 100, " %"), _interval(r["precision"], 100, " %")]
            for r in told["by_class"]]  # fmt: skip
    yield from table(["class", "rows", "recall", "precision"], rows)


def _costs_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    told = facts["figures"]
    yield "## Costs and reject options"
    yield ""
    rows = [[a, *(f"{v:g}" for v in row)] for a, row in zip(told["actions"], told["cost_table"], strict=True)]
    yield from table(["decision \\ truth", *(_safe(c) for c in told["classes"])], rows)
    yield ""
    yield f"Cost of rejecting: {_value_or_not_set(facts['reject_cost'])}."
    yield f"Rejects below a posterior probability of: {_value_or_not_set(facts['reject_below'])}."
    novelty = _false_alarms(facts["novelty"], model.classifier_)
    yield f"Rejects outliers (novel rows), at a false-alarm rate of: {novelty}."
    prior = "as in the data" if facts["class_prior"] is None else facts["class_prior"]
    yield f"Class prior: {_safe(prior)}."


def _value_or_not_set(value: float | None) -> str:
    return "not set" if value is None else f"{value:g}"


def _false_alarms(rate: float | None, classifier: Any) -> str:
    from likely.estimation.novelty.novelty_score import support_in_words

    return (
        _value_or_not_set(rate) if rate is None else "".join(support_in_words(classifier._left_out_surprises(), rate))
    )


def _warnings_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Cautions"
    yield ""
    yield from [f"- {_safe(hazard)}" for hazard in facts["hazards"]] or ["None."]


def _limitations_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Limitations"
    yield ""
    yield "- The figures hold for rows of the same population; if the class frequencies differ, set `--class-prior`."
    yield "- The model was chosen on the folds that measured it, so its figures are slightly optimistic."
    yield "- A category that did not occur in training counts as missing, and the row is marked novel."
    yield "- Whether a column may be used for this decision cannot be seen from these figures."


def _reproduce_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    return reproduce(facts, path, "decide")


def reproduce(facts: dict[str, Any], path: str, verb: str) -> Iterator[str]:
    """The command, the seed and the fingerprint of the data; and use of the model in Python."""
    yield "## How to reproduce"
    yield ""
    yield "```"
    yield facts["command"]
    yield "```"
    yield ""
    yield f"Seed {facts['seed']}; the fingerprint of the data must be `{facts['fingerprint']}`. In Python:"
    yield ""
    yield "```python"
    yield "import likely as lk"
    yield f"model = lk.load({path!r})"
    yield f"model.{verb}(rows)  # a data frame with these columns, in any order"
    yield "```"
