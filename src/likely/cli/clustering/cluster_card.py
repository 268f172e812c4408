"""Model card of clusters, or of a density of reference rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from likely.cli.card import _safe, _warnings_section, reproduce, table


def cluster_markdown(model: Any, path: str) -> str:
    """The whole card; of a density of ordinary rows where that is what was learned."""
    facts = model.card
    dense = facts["task"] == "density"
    lines = [f"# Model card: {'density' if dense else 'clusters'} in {_safe(', '.join(facts['source']))}", ""]
    for section in DENSITY if dense else CLUSTERS:
        lines += [*section(facts, model, path), ""]
    return "\n".join(lines).rstrip() + "\n"


def _model_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## What it is"
    yield ""
    yield f"A mixture of {model.n_components_} components, one per cluster, over {len(model.schema)} columns."
    yield "It gives the posterior probability of each cluster per row; it was fitted without labels."
    yield f"Made by {facts['made']}; file `{path}`."


def _density_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## What it is"
    yield ""
    yield f"A density of reference rows with {len(model.schema)} columns, for outlier detection."
    yield f"It is a mixture of {facts['why']}."
    yield "`likely novelty` marks rows of lower density than all but a given fraction of reference rows, and names"
    yield "the columns with the largest contributions."
    yield f"Made by {facts['made']}; file `{path}`."


def _threshold_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Threshold"
    yield ""
    rows = model.held_out_surprise_[1].sum()
    yield f"The threshold is set by {set_by(model)}."
    if rows:
        yield f"A stated rate of false alarms holds down to about 1 in {rows + 1:,.0f}."


def set_by(model: Any) -> str:
    """How the threshold was set, as text."""
    from likely.estimation.novelty.novelty_threshold import MANY

    rows = model.held_out_surprise_.shape[1]
    if not rows:
        return "samples from the model, for lack of held-out rows: the rate holds only if the model fits"
    if model.card["rows"] > MANY:
        return f"{rows:,} of the training rows; with so many, the influence of each is negligible"
    return f"{rows:,} held-out rows (cross-validation)"


def _data_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
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


def _selection_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
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
    yield from table(["clusters", "BIC", "held-out log-likelihood, nats per row"], rows)
    yield ""
    yield f"A sparse Dirichlet prior on the weights left {choice['left_by_prior']}."


def _clusters_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Clusters"
    yield ""
    rows = [
        [c["cluster"], f"{c['rows']:,.6g}", f"{c['share']:.1%}", ", ".join(c["profile"])] for c in facts["clusters"]
    ]
    yield from table(["cluster", "rows", "share", "what makes it different"], rows)
    yield ""
    sure = facts["certainty"]
    yield f"The most probable cluster of a row has probability {sure['mean']:.1%} on average;"
    yield f"it is below 0.8 in {sure['below_0.8']:.1%} of rows."


def _limitations_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Limitations"
    yield ""
    yield "- A cluster is a component of this mixture. Whether it is a natural group cannot be"
    yield "  seen from these figures."
    yield "- Other columns, units of counts or distributions may give other clusters."
    yield "- A row that fits no cluster still gets the most probable one: `likely novelty` marks such rows."


def _density_limitations_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## Limitations"
    yield ""
    yield "- The reference rows define what is normal: faults among them count as normal."
    yield "- A novel row is rare, not necessarily wrong; a normal row may still be wrong."
    yield "- A category that did not occur in training has infinite surprisal, whatever the rate."


def _reproduce_section(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    return reproduce(facts, path, "score_samples" if facts["task"] == "density" else "predict")


CLUSTERS = (
    _model_section,
    _data_section,
    _selection_section,
    _clusters_section,
    _warnings_section,
    _limitations_section,
    _reproduce_section,
)
DENSITY = (
    _density_section,
    _data_section,
    _threshold_section,
    _warnings_section,
    _density_limitations_section,
    _reproduce_section,
)
