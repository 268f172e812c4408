"""`likely card`: model card of a classifier, of clusters or of a density of reference rows, in Markdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from likely.cli.outputs import check_outputs
from likely.core.description import Code, Description, DescriptionTable
from likely.core.errors import ModelFileError, sentence
from likely.io.atomic_write import write_text

Facts = dict[str, Any]
Section = Callable[[Facts, Any, str], Description]
COLUMNS_OF_DATA = ("column", "kind", "missing", "distinct")


@click.command(epilog="\b\nExample:\n  likely card model.likely -o MODEL_CARD.md\n")
@click.argument("model")
@click.option("-o", "--output", "out", metavar="FILE", help="Write to a file.  [stdout]")
def card(model: str, out: str | None) -> None:
    """Write a model card in Markdown: data, model selection, performance, costs and limitations."""
    from likely.cli.open_model import card_as_written, classifier_of, cluster_model

    check_outputs({"-o": out}, [model])
    clusters, thing = cluster_model(model)
    _refuse_no_card(thing, model)
    loaded: Any = classifier_of(thing, model, "card") if clusters is None else clusters
    if not loaded.card:
        remedy = "make it with `likely fit` or `likely cluster`, which record how"
        raise ModelFileError(sentence(model, "the file holds no record of how the model was fitted", remedy=remedy))
    with card_as_written(model):
        text = described(loaded, model).to_markdown()
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)


def _refuse_no_card(thing: Any, path: str) -> None:
    """What has no classes and no columns by name, as a state-space model, has no record of how it was fitted."""
    from likely.cli.open_model import is_of_sequences
    from likely.estimation.decision_mixin import Deciding

    if not (hasattr(thing, "card") or isinstance(thing, Deciding) or is_of_sequences(thing)):
        expected, remedy = "cards are written for classifiers and clusters", "`likely show` describes this file"
        raise ModelFileError(sentence(path, expected, f"a {type(thing).__name__}", remedy))


def described(model: Any, path: str) -> Description:
    """The whole card: one section per topic."""
    facts, source = model.card, ", ".join(model.card["source"])
    task = facts.get("task", "classifier")
    title = facts["target"] if task == "classifier" else f"{task} in {source}"
    return Description(f"Model card: {title}", sections=[section(facts, model, path) for section in SECTIONS[task]])


def _interval(told: Facts | None, scale: float = 1, unit: str = "") -> str:
    if told is None or told.get("value") is None:
        return "not measurable"
    low, high = told.get("low"), told.get("high")
    ends = "" if low is None or high is None else f" ({low * scale:.4g} – {high * scale:.4g})"
    return f"{told['value'] * scale:.4g}{unit}{ends}"


# -------------------------------------------------------------------------- sections


def _classifier(facts: Facts, model: Any, path: str) -> Description:
    from likely.estimation.stored_data import what_is_kept

    chosen, held = next(line for line in facts["leaderboard"] if line["chosen"]), what_is_kept(model.classifier_)
    text = [
        f"A classifier of `{facts['target']}` ({len(model.classes_)} classes, {len(model.schema)} columns).",
        f"Model: **{chosen['name']}** ({facts['what'].rstrip('.')}).",
        *model.classifier_.describe().text,
    ]
    if held:
        text.append(f"The model file holds {held} of its training data: anyone with the file can read them.")
    if facts["calibrated"]:
        text.append(f"Its probabilities were {facts['calibrated']} on held-out rows.")
    return Description("What it is", [*text, _origin(facts, path)])


def _clusters(facts: Facts, model: Any, path: str) -> Description:
    return Description("What it is", [
        f"A mixture of {model.n_components_} components, one per cluster, over {len(model.schema)} columns.",
        "It gives the posterior probability of each cluster per row; it was fitted without labels.",
        _origin(facts, path),
    ])  # fmt: skip


def _density(facts: Facts, model: Any, path: str) -> Description:
    return Description("What it is", [
        f"A density of reference rows with {len(model.schema)} columns, for outlier detection.",
        f"It is a mixture of {facts['why']}.",
        "`likely novelty` marks rows of lower density than all but a given fraction of reference rows, and names",
        "the columns with the largest contributions.",
        _origin(facts, path),
    ])  # fmt: skip


def _origin(facts: Facts, path: str) -> str:
    return f"Made by {facts['made']}; file `{path}`."


def _intended_use(facts: Facts, model: Any, path: str) -> Description:
    return Description("Intended use", [
        f"Decisions about `{facts['target']}`, with the costs below, for rows from the same population.",
        "It gives posterior probabilities and the decision of least expected cost, and may reject.",
        "A person should review rejected rows, and rows marked as novel.",
    ])  # fmt: skip


def _data(facts: Facts, model: Any, path: str) -> Description:
    unlabeled = facts.get("unlabeled")
    aside = f", {unlabeled:,} more without a label were set aside" if unlabeled else ""
    text = [f"{', '.join(facts['source'])}: {facts['rows']:,} rows{aside}.", f"Fingerprint `{facts['fingerprint']}`."]
    roles = {role: name for role, name in facts.get("roles", {}).items() if role != "target"}
    if roles:
        text.append(f"Roles: {', '.join(f'{role} = {name}' for role, name in roles.items())}.")
    columns = [(c["name"], c["kind"], c["n_missing"], c["distinct"]) for c in facts["columns"]]
    tables = [DescriptionTable("", COLUMNS_OF_DATA, columns, most=None)]
    if "classes" in facts:
        tables = [DescriptionTable("", ("class", "rows"), list(facts["classes"].items()), most=None), *tables]
    if facts["set_aside"]:
        tables.append(DescriptionTable("", ("set aside", "reason"), list(facts["set_aside"].items()), most=None))
    return Description("Data", text, tables=tables)


def _selection(facts: Facts, model: Any, path: str) -> Description:
    rule = "One-standard-error rule: of the models within one standard error of the best, the simplest."
    text = [
        f"By {facts.get('criterion', 'cost')} on held-out rows ({facts['cv']}).",
        facts.get("rule") or rule,  # older files
        facts["verdict"],
        "± is one standard error; “tied” means within one standard error of the best, by paired differences.",
    ]
    rows = [
        (f"**{one['name']}**" if one["chosen"] else one["name"], _give_or_take(one, "cost"),
         _give_or_take(one, "behind"), one["error"], one["log_loss"], ", ".join(one.get("ties", ())), one["note"])
        for one in facts["leaderboard"]
    ]  # fmt: skip
    head = ("model", "cost per row", "behind the best", "error", "log-loss", "tied in", "note")
    table = DescriptionTable("", head, rows, {"error": ".4g", "log-loss": ".4g"}, most=None)
    return Description("How it was chosen", text, tables=[table])


def _give_or_take(line: Facts, name: str) -> str:
    value, se = line[name], line[f"{name}_se"]
    return "–" if value is None else f"{value:.4g}" if se is None else f"{value:.4g} ± {se:.2g}"


def _number_of_clusters(facts: Facts, model: Any, path: str) -> Description:
    choice, title = facts["choice"], "How the number was chosen"
    if choice is None:
        return Description(title, [f"{facts['why']}."])
    rows = list(zip(choice["numbers"], choice["bic"], choice["held_out"], strict=True))
    head = ("clusters", "BIC", "held-out log-likelihood, nats per row")
    table = DescriptionTable("", head, rows, {"BIC": ",.1f", head[2]: ".4f"}, most=None)
    notes = [f"A sparse Dirichlet prior on the weights left {choice['left_by_prior']}."]
    return Description(title, [f"{facts['why']}."], tables=[table], notes=notes)


def _performance(facts: Facts, model: Any, path: str) -> Description:
    told = facts["figures"]
    measures = [
        ("error without reject option", _interval(told["error"], 100, " %")),
        ("cost per row", _interval(told["decision_cost"])),
        ("rejected or given another action", _interval(told.get("unclassified", told["reject_rate"]), 100, " %")),
        ("error among the others", _interval(told["error_of_accepted"], 100, " %")),
        ("log-loss (nats)", _interval(told["log_loss"])), ("Brier score", _interval(told["brier"])),
        ("calibration error", f"{told['calibration_error']:.4g}"),
    ]  # fmt: skip
    by_class = [
        (one["label"], f"{one['weight']:,.6g}", *(_interval(one[name], 100, " %") for name in ("recall", "precision")))
        for one in told["by_class"]
    ]
    tables = [DescriptionTable("", ("measure", "value"), measures)]
    tables += [DescriptionTable("", ("class", "rows", "recall", "precision"), by_class, most=None)]
    text = [f"On {told['rows']:,} held-out rows; intervals are at 95 %.", f"Calibration: {told['calibration']}"]
    return Description("Performance", text, tables=tables)


def _costs(facts: Facts, model: Any, path: str) -> Description:
    from likely.estimation.novelty.novelty_score import support_in_words

    told, rate = facts["figures"], facts["novelty"]
    rows = [(action, *costs) for action, costs in zip(told["actions"], told["cost_table"], strict=True)]
    support = None if rate is None else "".join(support_in_words(model.classifier_.held_out_novelty_scores(), rate))
    rules = {
        "cost of rejecting": facts["reject_cost"],
        "rejects below a posterior probability of": facts["reject_below"],
        "rejects outliers (novel rows), at a false-alarm rate of": support,
    }
    found = {name: "not set" if value is None else value for name, value in rules.items()}
    prior = {"class prior": "as in the data" if facts["class_prior"] is None else str(facts["class_prior"])}
    table = DescriptionTable("", ("decision \\ truth", *map(str, told["classes"])), rows, most=None)
    return Description("Costs and reject options", facts={**found, **prior}, tables=[table])


def _profiles(facts: Facts, model: Any, path: str) -> Description:
    rows = [(c["cluster"], c["rows"], c["share"], ", ".join(c["profile"])) for c in facts["clusters"]]
    formats, sure = {"rows": ",.6g", "share": ".1%"}, facts["certainty"]
    text = [
        f"The most probable cluster of a row has probability {sure['mean']:.1%} on average;",
        f"it is below 0.8 in {sure['below_0.8']:.1%} of rows.",
    ]
    table = DescriptionTable("", ("cluster", "rows", "share", "what makes it different"), rows, formats, most=None)
    return Description("Clusters", text, tables=[table])


def _threshold(facts: Facts, model: Any, path: str) -> Description:
    from likely.automl.table_clusterer import threshold_words

    rows = model.held_out_novelty_[1].sum()
    rate = [f"A stated rate of false alarms holds down to about 1 in {rows + 1:,.0f}."] if rows else []
    return Description("Threshold", [f"The threshold is set by {threshold_words(model)}.", *rate])


def _cautions(facts: Facts, model: Any, path: str) -> Description:
    hazards = facts["hazards"]
    return Description("Cautions", [] if hazards else ["None."], notes=hazards)


LIMITATIONS = {
    "classifier": (
        "The figures hold for rows of the same population; if the class frequencies differ, set `--class-prior`.",
        "The model was chosen on the folds that measured it, so its figures are slightly optimistic.",
        "A category that did not occur in training counts as missing, and the row is marked novel.",
        "Whether a column may be used for this decision cannot be seen from these figures.",
    ),
    "clusters": (
        "A cluster is a component of this mixture. Whether it is a natural group cannot be seen from these figures.",
        "Other columns, units of counts or distributions may give other clusters.",
        "A row that fits no cluster still gets the most probable one: `likely novelty` marks such rows.",
    ),
    "density": (
        "The reference rows define what is normal: faults among them count as normal.",
        "A novel row is rare, not necessarily wrong; a normal row may still be wrong.",
        "A category that did not occur in training has infinite surprisal, whatever the rate.",
    ),
}
METHODS = {"classifier": "decide", "clusters": "predict", "density": "score_samples"}


def _limitations(facts: Facts, model: Any, path: str) -> Description:
    return Description("Limitations", notes=LIMITATIONS[facts.get("task", "classifier")])


def _reproduce(facts: Facts, model: Any, path: str) -> Description:
    """The command, the seed and the fingerprint of the data; and use of the model in Python."""
    method = METHODS[facts.get("task", "classifier")]
    found = {
        "command": Code(facts["command"]), "seed": facts["seed"], "fingerprint of the data": Code(facts["fingerprint"]),
        "in Python": Code(f"likely.load({path!r}).{method}(rows)"),
    }  # fmt: skip
    return Description("How to reproduce", ["Rows are a data frame with these columns, in any order."], found)


SECTIONS: dict[str, tuple[Section, ...]] = {
    "classifier": (_classifier, _intended_use, _data, _selection, _performance, _costs, _cautions, _limitations,
                   _reproduce),
    "clusters": (_clusters, _data, _number_of_clusters, _profiles, _cautions, _limitations, _reproduce),
    "density": (_density, _data, _threshold, _cautions, _limitations, _reproduce),
}  # fmt: skip
