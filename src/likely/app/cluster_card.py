"""The model card of clusters: what they are, from which data, how chosen, how sure, and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from likely.app.card import _hazards, _safe, table


def cluster_markdown(model: Any, path: str) -> str:
    """The whole card."""
    facts = model.card
    lines = [f"# Model card: clusters in {_safe(', '.join(facts['source']))}", ""]
    for section in (_what, _data, _chosen, _clusters, _hazards, _limits, _reproduce):
        lines += [*section(facts, model, path), ""]
    return "\n".join(lines).rstrip() + "\n"


def _what(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## What it is"
    yield ""
    yield f"A mixture of {model.n_components_} parts over {len(model.schema)} columns: each part is a cluster."
    yield "It gives every row the probability of each cluster; which rows belong together, nobody told it."
    yield f"Made by {facts['made']}; file `{path}`."


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
    yield from table(["clusters", "BIC", "rows not learnt from, nats a row"], rows)
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
    yield "- A cluster is a region where rows are dense, as these laws describe it. Whether it is a kind of thing, no"
    yield "  figure here can say."
    yield "- Other columns, other units of a count, or another law of a column may give other clusters."
    yield "- A row that is like none of them still gets the nearest: `likely novelty` marks such rows."


def _reproduce(facts: dict[str, Any], model: Any, path: str) -> Iterator[str]:
    yield "## How to reproduce"
    yield ""
    yield "```"
    yield facts["command"]
    yield "```"
    yield ""
    yield f"Seed {facts['seed']}; the data's fingerprint must be `{facts['fingerprint']}`. In Python:"
    yield ""
    yield "```python"
    yield "import likely as lk"
    yield f"model = lk.load({path!r})"
    yield "model.predict(rows)  # a data frame with these columns, in any order"
    yield "```"
