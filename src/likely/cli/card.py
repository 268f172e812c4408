"""`likely card`: model card of a classifier, regressor, clusters, hidden Markov model or density, in Markdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from likely.cli.outputs import check_outputs
from likely.core.description import Code, Description, DescriptionTable, counted
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
    from likely.cli.open_model import card_as_written
    from likely.io.model_files import load

    check_outputs({"-o": out}, [model])
    loaded: Any = load(model)
    _refuse_no_card(loaded, model)
    with card_as_written(model):
        text = described(loaded, model).to_markdown()
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)


def _refuse_no_card(thing: Any, path: str) -> None:
    """Raise for a file without a record: a model from Python, or one that has none, as a state-space model."""
    from likely.cli.open_model import is_of_sequences
    from likely.estimation.decision_mixin import Deciding

    if getattr(thing, "card", None):
        return
    if hasattr(thing, "card") or isinstance(thing, Deciding) or is_of_sequences(thing):
        remedy = "make it with `likely fit` or `likely cluster`, which record how"
        raise ModelFileError(sentence(path, "the file holds no record of how the model was fitted", remedy=remedy))
    expected = "cards are written for classifiers, clusters and hidden Markov models"
    raise ModelFileError(sentence(path, expected, f"a {type(thing).__name__}", "`likely show` describes this file"))


def described(model: Any, path: str) -> Description:
    """The whole card: one section per topic."""
    facts, source = model.card, ", ".join(model.card["source"])
    task = _task(facts)
    title = facts["target"] if task in ("classifier", "regression") else f"{NOUNS.get(task, task)} in {source}"
    return Description(f"Model card: {title}", sections=[section(facts, model, path) for section in SECTIONS[task]])


NOUNS = {"sequences": "hidden Markov model of sequences"}


def _task(facts: Facts) -> str:
    """What the model of a card does: whatever has figures decides, rows as sequences."""
    if facts.get("task") == "regression":
        return "regression"
    return "classifier" if "figures" in facts else str(facts.get("task", "classifier"))


def _unit(facts: Facts) -> str:
    """What it is about: "row", "sequence" or "recording"."""
    return str(facts.get("unit", "row"))


def _interval(measured: Facts | None, scale: float = 1, unit: str = "") -> str:
    if measured is None or measured.get("value") is None:
        return "not measurable"
    low, high = measured.get("low"), measured.get("high")
    ends = "" if low is None or high is None else f" ({low * scale:.4g} – {high * scale:.4g})"
    return f"{measured['value'] * scale:.4g}{unit}{ends}"


# -------------------------------------------------------------------------- sections


def _classifier(facts: Facts, model: Any, path: str) -> Description:
    from likely.estimation.stored_data import what_is_kept

    unit, held = _unit(facts), what_is_kept(model.classifier_)
    of = "" if unit == "row" else f" {unit}s by"
    columns = f", {counted(len(facts['columns']), 'column')}" if facts["columns"] else ""
    text = [f"A classifier of{of} `{facts['target']}` ({len(model.classes_)} classes{columns})."]
    chosen = next((line for line in facts.get("leaderboard", ()) if line["chosen"]), None)
    if chosen is not None:
        text.append(f"Model: **{chosen['name']}** ({facts['what'].rstrip('.')}).")
    text += model.classifier_.describe().text
    if held:
        text.append(f"The model file holds {held} of its training data: anyone with the file can read them.")
    if facts.get("calibrated"):
        text.append(f"Its probabilities were {facts['calibrated']} on held-out {unit}s.")
    return Description("What it is", [*text, _origin(facts, path)])


def _regressor(facts: Facts, model: Any, path: str) -> Description:
    from likely.estimation.stored_data import what_is_kept

    held, told = what_is_kept(model.regressor_), facts["targets"]
    text = [f"A regression of the number `{facts['target']}` on {counted(len(facts['columns']), 'column')}."]
    chosen = next((line for line in facts["leaderboard"] if line["chosen"]), None)
    if chosen is not None:
        text.append(f"Model: **{chosen['name']}** ({facts['what'].rstrip('.')}).")
    text.append(f"Targets lie between {told['low']:.6g} and {told['high']:.6g}, with mean {told['mean']:.6g}.")
    if held:
        text.append(f"The model file holds {held} of its training data: anyone with the file can read them.")
    text.append(f"Its predictive densities, and so its intervals, are those of {facts['density']}.")
    return Description("What it is", [*text, _origin(facts, path)])


def _regression_use(facts: Facts, model: Any, path: str) -> Description:
    from likely.metrics.regression_evaluation import loss_words

    return Description("Intended use", [
        f"Predictions of `{facts['target']}` for rows from the same population.",
        "It gives a mean, intervals of any level, quantiles, and decisions that minimize the "
        f"{loss_words(facts['loss'], facts['over'], facts['under'])}.",
    ])  # fmt: skip


def _regression_selection(facts: Facts, model: Any, path: str) -> Description:
    text = [
        f"By {facts['criterion'].replace('-score', ' score')} on held-out rows ({facts['cv']}).", facts["rule"],
        facts["verdict"],
        "± is one standard error; “tied” means within one standard error of the best, by paired differences.",
    ]  # fmt: skip
    rows = [
        (f"**{one['name']}**" if one["chosen"] else one["name"], _give_or_take(one, "loss"),
         _give_or_take(one, "difference"),
         *(one.get(name) for name in ("rmse", "log_score", "interval_score", "coverage")),
         ", ".join(one.get("ties", ())), one["note"])
        for one in facts["leaderboard"]
    ]  # fmt: skip
    head = (
        "model",
        "mean loss",
        "difference to the best",
        "RMSE",
        "log score",
        "interval score",
        "coverage",
        "tied in",
        "note",
    )
    formats = {**dict.fromkeys(("RMSE", "log score", "interval score"), ".5g"), "coverage": ".1%"}
    return Description("How it was chosen", text, tables=[DescriptionTable("", head, rows, formats, most=None)])


def _regression_performance(facts: Facts, model: Any, path: str) -> Description:
    told = facts["figures"]
    measures = [
        ("root mean squared error", _interval(told["rmse"])), ("mean absolute error", _interval(told["mae"])),
        ("mean loss", _interval(told["mean_loss"])), ("R²", "–" if told["r2"] is None else f"{told['r2']:.4g}"),
        ("log score (nats)", _interval(told["log_score"])), ("interval score", _interval(told["interval_score"])),
        (f"coverage of {told['level']:.0%} intervals", _interval(told["coverage"], 100, " %")),
        ("mean width of these", f"{told['mean_width']:.4g}"),
    ]  # fmt: skip
    curve = told["coverage_curve"]
    rows = list(zip(*(curve[name] for name in ("level", "share", "low", "high")), strict=True))
    head = ("level", "targets inside", "from", "to")
    tables = [DescriptionTable("", ("measure", "value"), measures),
              DescriptionTable("", head, rows, dict.fromkeys(head, ".1%"), most=None)]  # fmt: skip
    text = [f"On {told['rows']:,} held-out rows; intervals are at 95 %.", f"Calibration: {told['calibration']}"]
    return Description("Performance", text, tables=tables)


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


def _chain(facts: Facts, model: Any, path: str) -> Description:
    columns = counted(len(facts["columns"]), "column")
    return Description("What it is", [
        f"A hidden Markov model of sequences with {counted(len(model.state_names), 'state')}; frames have {columns}.",
        "It gives the states of a sequence (`likely decode`), and follows a stream frame by frame (`likely follow`).",
        _origin(facts, path),
    ])  # fmt: skip


def _origin(facts: Facts, path: str) -> str:
    return f"Made by {facts['made']}; file `{path}`."


def _intended_use(facts: Facts, model: Any, path: str) -> Description:
    unit = _unit(facts)
    return Description("Intended use", [
        f"Decisions about `{facts['target']}`, with the costs below, for {unit}s from the same population.",
        "It gives posterior probabilities and the decision of least expected cost, and may reject.",
        f"A person should review rejected {unit}s, and {unit}s marked as novel.",
    ])  # fmt: skip


def _data(facts: Facts, model: Any, path: str) -> Description:
    unlabeled, unit = facts.get("unlabeled"), _unit(facts)
    aside = f", {unlabeled:,} more without a label were excluded" if unlabeled else ""
    size = counted(facts[f"{unit}s"], unit)
    if "frames" in facts:
        size += f" of {' to '.join(f'{n:,}' for n in sorted(set(facts['lengths'])))} frames, {facts['frames']:,} in all"
    text = [f"{', '.join(facts['source'])}: {size}{aside}.", f"Fingerprint `{facts['fingerprint']}`."]
    roles = {role: name for role, name in facts.get("roles", {}).items() if role not in ("target", "label")}
    if roles:
        text.append(f"Roles: {', '.join(f'{role} = {name}' for role, name in roles.items())}.")
    columns = [(c["name"], c["kind"], c["n_missing"], c["distinct"]) for c in facts["columns"]]
    tables = [DescriptionTable("", COLUMNS_OF_DATA, columns, most=None)] if columns else []
    if facts.get("classes"):
        tables = [DescriptionTable("", ("class", f"{unit}s"), list(facts["classes"].items()), most=None), *tables]
    if facts["excluded"]:
        tables.append(DescriptionTable("", ("excluded", "reason"), list(facts["excluded"].items()), most=None))
    return Description("Data", text, tables=tables)


def _selection(facts: Facts, model: Any, path: str) -> Description:
    unit = _unit(facts)
    if "leaderboard" not in facts:
        return Description("How it was chosen", [f"It is the only model; it was not evaluated on held-out {unit}s."])
    rule = "One-standard-error rule: of the models within one standard error of the best, the simplest."
    text = [
        f"By {facts.get('criterion', 'cost')} on held-out {unit}s ({facts['cv']}).",
        facts.get("rule") or rule,  # older files
        facts["verdict"],
        "± is one standard error; “tied” means within one standard error of the best, by paired differences.",
    ]
    rows = [
        (f"**{one['name']}**" if one["chosen"] else one["name"], _give_or_take(one, "cost"),
         _give_or_take(one, "difference"), one["error"], one["log_loss"], ", ".join(one.get("ties", ())), one["note"])
        for one in facts["leaderboard"]
    ]  # fmt: skip
    head = ("model", f"cost per {unit}", "difference to the best", "error", "log-loss", "tied in", "note")
    table = DescriptionTable("", head, rows, {"error": ".4g", "log-loss": ".4g"}, most=None)
    return Description("How it was chosen", text, tables=[table])


def _give_or_take(line: Facts, name: str) -> str:
    value, se = line.get(name), line.get(f"{name}_se")
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


def _number_of_states(facts: Facts, model: Any, path: str) -> Description:
    title, choice = "How the number of states was chosen", facts.get("choice")
    if facts.get("decoded"):
        decoded = facts["decoded"]
        text = [f"States were known in training: {', '.join(model.state_names)}.",
                f"The Viterbi path has the known state in {100 * decoded['right']:.4g} % ({100 * decoded['low']:.4g} – "
                f"{100 * decoded['high']:.4g}) of {decoded['frames']:,} held-out frames."]  # fmt: skip
        rows = [(name, *line) for name, line in zip(model.state_names, decoded["confusion"], strict=True)]
        table = DescriptionTable("", ("truth \\ decoded", *model.state_names), rows, most=None)
        return Description(title, text, tables=[table])
    if choice is None:
        return Description(title, ["It was given."])
    rows = [(k, *found) for k, found in choice["held_out"].items()]
    head = ("states", "held-out log-likelihood, nats per frame", "± (difference to the best)")
    formats = dict.fromkeys(head[1:], ".4f")
    text = ["The smallest number whose held-out log-likelihood is within one standard error of the best."]
    return Description(title, text, tables=[DescriptionTable("", head, rows, formats, most=None)])


def _states(facts: Facts, model: Any, path: str) -> Description:
    from likely.estimation.novelty.held_out_frames import support
    from likely.hmm.estimators.hmm_description import states_table

    value = facts["log_likelihood_per_frame"]
    text = [] if value is None else [f"Log-likelihood of the training sequences: {value:.4f} nats per frame."]
    table = replace(states_table(model.density_, model.state_names, list(model.columns)), title="")
    return Description("States", [*text, *support(model.density_)], tables=[table])


def _performance(facts: Facts, model: Any, path: str) -> Description:
    figures, unit = facts["figures"], _unit(facts)
    if figures is None:
        return Description("Performance", [f"Not evaluated: there were too few {unit}s to hold some out."])
    measures = [
        ("error without reject option", _interval(figures["error"], 100, " %")),
        (f"cost per {unit}", _interval(figures["decision_cost"])),
        ("rejected or given another action", _interval(figures.get("unclassified", figures["reject_rate"]), 100, " %")),
        ("error among the others", _interval(figures["error_of_accepted"], 100, " %")),
        ("log-loss (nats)", _interval(figures["log_loss"])), ("Brier score", _interval(figures["brier"])),
        ("calibration error", f"{figures['calibration_error']:.4g}"),
    ]  # fmt: skip
    by_class = [
        (one["label"], f"{one['weight']:,.6g}", *(_interval(one[name], 100, " %") for name in ("recall", "precision")))
        for one in figures["by_class"]
    ]
    tables = [DescriptionTable("", ("measure", "value"), measures)]
    tables += [DescriptionTable("", ("class", f"{unit}s", "recall", "precision"), by_class, most=None)]
    text = [
        f"On {figures['rows']:,} held-out {unit}s; intervals are at 95 %.",
        f"Calibration: {figures['calibration']}",
    ]
    return Description("Performance", text, tables=tables)


def _costs(facts: Facts, model: Any, path: str) -> Description:
    from likely.estimation.novelty.novelty_score import support_in_words

    figures, rate = facts["figures"] or {"actions": (), "cost_table": (), "classes": ()}, facts["novelty"]
    rows = [(action, *costs) for action, costs in zip(figures["actions"], figures["cost_table"], strict=True)]
    support = None if rate is None else "".join(support_in_words(model.classifier_.held_out_novelty_scores(), rate))
    rules = {
        "cost of rejecting": facts["reject_cost"],
        "rejects below a posterior probability of": facts["reject_below"],
        f"rejects outliers (novel {_unit(facts)}s), at a false-alarm rate of": support,
    }
    found = {name: "not set" if value is None else value for name, value in rules.items()}
    prior = {"class prior": "as in the data" if facts["class_prior"] is None else str(facts["class_prior"])}
    table = DescriptionTable("", ("decision \\ truth", *map(str, figures["classes"])), rows, most=None)
    return Description("Costs and reject options", facts={**found, **prior}, tables=[table] * bool(rows))


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


def _warnings(facts: Facts, model: Any, path: str) -> Description:
    warnings = facts["warnings"]
    return Description("Warnings", [] if warnings else ["None."], notes=warnings)


LIMITATIONS = {
    "classifier": (
        "The figures hold for {unit}s of the same population; if the class frequencies differ, set `--class-prior`.",
        "The model was chosen on the folds that measured it, so its figures are slightly optimistic.",
        "A category that did not occur in training counts as missing, and the {unit} is marked novel.",
        "Whether a column may be used for this decision cannot be seen from these figures.",
    ),
    "regression": (
        "The figures hold for rows of the same population.",
        "The model was chosen on the folds that measured it, so its figures are slightly optimistic.",
        "Intervals have their coverage on average over rows, not for every kind of row.",
        "Beyond the range of the training rows a prediction is an extrapolation, and its interval may be too narrow.",
        "A category that did not occur in training counts as missing.",
    ),
    "recordings": (
        "The figures hold for speakers, microphones and noise as in training.",
        "A recording is decided to be one of these words: `--reject-below` and `--novelty` reject others.",
    ),
    "sequences": (
        "States are those of this model: whether they are states of the world cannot be seen from its likelihood.",
        "The chain forgets all but its state: longer memory needs `--order`, or `--durations`.",
        "A category that did not occur in training counts as missing.",
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
METHODS = {
    "classifier": "decide",
    "regression": "predict",
    "clusters": "predict",
    "density": "score_samples",
    "sequences": "predict",
}
GIVEN = {
    "row": "Rows are a data frame with these columns, in any order.",
    "sequence": "Sequences are what `likely.read_sequences` gives, or a list of arrays with these columns.",
    "recording": "Recordings are names of WAV files, or arrays of samples.",
}


def _limitations(facts: Facts, model: Any, path: str) -> Description:
    unit = _unit(facts)
    notes = LIMITATIONS["recordings" if unit == "recording" else _task(facts)]
    return Description("Limitations", notes=[note.format(unit=unit) for note in notes])


def _reproduce(facts: Facts, model: Any, path: str) -> Description:
    """The command, the seed and the fingerprint of the data; and use of the model in Python."""
    method, unit = METHODS[_task(facts)], _unit(facts)
    found = {
        "command": Code(facts["command"]), "seed": facts["seed"], "fingerprint of the data": Code(facts["fingerprint"]),
        "in Python": Code(f"likely.load({path!r}).{method}({unit}s)"),
    }  # fmt: skip
    return Description("How to reproduce", [GIVEN[unit]], found)


SECTIONS: dict[str, tuple[Section, ...]] = {
    "classifier": (_classifier, _intended_use, _data, _selection, _performance, _costs, _warnings, _limitations,
                   _reproduce),
    "regression": (_regressor, _regression_use, _data, _regression_selection, _regression_performance, _warnings,
                   _limitations, _reproduce),
    "clusters": (_clusters, _data, _number_of_clusters, _profiles, _warnings, _limitations, _reproduce),
    "density": (_density, _data, _threshold, _warnings, _limitations, _reproduce),
    "sequences": (_chain, _data, _number_of_states, _states, _warnings, _limitations, _reproduce),
}  # fmt: skip
