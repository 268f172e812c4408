"""The model card of clusters: what they are, from which data, how chosen, how sure, and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from likely.cli.card import _hazards, _safe, reproduce, table


def cluster_markdown(model: Any, path: str) -> str:
    """The whole card; of a density of ordinary rows where that is what was learned."""
    facts = model.card
    dense = facts["task"] == "density"
    lines = [f"# Model card: {'ordinary rows' if dense else 'clusters'} in {_safe(', '.join(facts['source']))}", ""]
    for section in DENSITY if dense else CLUSTERS:
        lines += [*section(facts, model, path), ""]
    return "\n".join(lines).rstrip() + "\n"


def _what(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## What it is"
    yield ""
    yield f"A mixture of {model.n_components_} parts over {len(model.schema)} columns: each part is a cluster."
    yield "It gives every row the probability of each cluster; which rows belong together, nobody told it."
    yield f"Made by {facts['made']}; file `{path}`."


def _what_density(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## What it is"
    yield ""
    yield f"A density of ordinary rows: how likely a row of {len(model.schema)} columns is, as these rows were."
    yield f"It is a mixture of {facts['why']}."
    yield "`likely novelty` marks rows that are less likely than all but a given share of ordinary ones, and says"
    yield "which columns are to blame."
    yield f"Made by {facts['made']}; file `{path}`."


def _alarm(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## The alarm"
    yield ""
    rows = model.held_out_surprise_[1].sum()
    yield f"Its level is set by {set_by(model)}."
    if rows:
        yield f"A stated rate of false alarms holds down to about 1 in {rows + 1:,.0f}."


def set_by(model: Any) -> str:
    """What the alarm's level rests on, in words."""
    from likely.estimation.novelty.novelty_threshold import MANY

    rows = model.held_out_surprise_.shape[1]
    if not rows:
        return "draws of the model, for lack of rows that it had not learned from: rates hold as far as it fits"
    if model.card["rows"] > MANY:
        return f"{rows:,} of the ordinary rows; of so many the model hardly knows any one"
    return f"{rows:,} ordinary rows, each scored by a model that had not learned from it"


def _data(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Data"
    yield ""
    yield f"{', '.join(map(_safe, facts['source']))}: {facts['rows']:,} rows. Fingerprint `{facts['fingerprint']}`."
    yield ""
    columns = [[c["name"], c["kind"], f"{c['n_missing']:,}", f"{c['distinct']:,}"] for c in facts["columns"]]
    yield from table(["column", "kind", "missing", "distinct"], columns)
    if facts["set_aside"]:
        yield ""
        yield "Set aside:"
        yield from (f"- `{name}`: {_safe(reason)}" for name, reason in facts["set_aside"].items())


def _chosen(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## How the number was chosen"
    yield ""
    yield f"{facts['why']}."
    choice = facts["choice"]
    if choice is None:
        return
    yield ""
    rows = [
        [k, f"{bic:,.1f}", "–" if held is None else f"{held:.4f}"]
        for k, bic, held in zip(choice["numbers"], choice["bic"], choice["held_out"], strict=True)
    ]
    yield from table(["clusters", "BIC", "rows not learned from, nats per row"], rows)
    yield ""
    yield f"A sparse prior over the weights left {choice['left_by_prior']}."


def _clusters(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Clusters"
    yield ""
    rows = [
        [c["cluster"], f"{c['rows']:,.6g}", f"{c['share']:.1%}", ", ".join(c["profile"])] for c in facts["clusters"]
    ]
    yield from table(["cluster", "rows", "share", "what makes it different"], rows)
    yield ""
    sure = facts["certainty"]
    yield f"The cluster of a row is {sure['mean']:.1%} probable on average;"
    yield f"it is less than 80 % probable in {sure['below_0.8']:.1%} of rows."


def _limits(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield "- A cluster is a region where rows are dense under these distributions. Whether it is a kind of thing, no"
    yield "  figure here can say."
    yield "- Other columns, other units of a count, or another distribution of a column may give other clusters."
    yield "- A row that is like none of them still gets the nearest: `likely novelty` marks such rows."


def _limits_density(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield "- Ordinary is what these rows were: faults among them count as ordinary, and what they lack as novel."
    yield "- A novel row is rare, not wrong; an ordinary one may still be wrong."
    yield "- A word that was never seen is surprising beyond measure, whatever the rate."


def _reproduce(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    return reproduce(facts, path, "score_samples" if facts["task"] == "density" else "predict")


CLUSTERS = (_what, _data, _chosen, _clusters, _hazards, _limits, _reproduce)
DENSITY = (_what_density, _data, _alarm, _hazards, _limits_density, _reproduce)
