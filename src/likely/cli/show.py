"""`likely show`: description of a model file."""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps
from typing import Any

import click
import numpy as np

from likely.cli.console import clipped, columns
from likely.cli.describing.describe_classifiers import comparison, kept, kernel_or_neighbors
from likely.cli.describing.describe_model import account

SHOWN = 30  # columns, classes and fields that a terminal shows


@click.command(epilog="\b\nExample:\n  likely show model.likely\n")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Plot the state graph of a hidden Markov model (.png, .svg, .pdf).")
def show(model: str, as_json: bool, plot: str | None) -> None:
    """Describe a model file: type, classes, columns, parameters and decision rule."""
    if plot is not None:
        from likely.cli.figures import draw_model

        draw_model(model, plot)
    click.echo(told(model, as_json))


def told(model: str, as_json: bool) -> str:
    """Description of a model file, as JSON or as text."""
    from likely.cli.open_model import card_as_written
    from likely.io.model_files import describe, load

    outline = describe(model)
    thing = load(model)
    with card_as_written(model):
        return dumps(as_plain(outline, thing), indent=2) if as_json else "\n".join(lines(outline, thing))


def as_plain(outline: dict[str, Any], thing: Any) -> dict[str, Any]:
    """Outline of the file, with the card of a table classifier."""
    from likely.estimation.stored_data import what_is_kept
    from likely.metrics.evaluation_summary import plain

    more: dict[str, Any] = {}
    if hasattr(thing, "columns") and hasattr(thing, "card"):  # of sequences
        more = {"columns": thing.columns, "card": thing.card}
    elif hasattr(thing, "mixture_"):
        more = {"weights": plain(thing.weights_), "columns": thing.schema, "card": thing.card}
    elif hasattr(thing, "schema_"):
        more = {"classes": plain(thing.classes_), "class_prior": plain(thing.class_prior_), "columns": thing.schema,
                "card": thing.card}  # fmt: skip
    return {**plain(outline), **more, "holds": what_is_kept(thing) or "sums"}


def lines(outline: dict[str, Any], thing: Any) -> Iterator[str]:
    """The same as text."""
    yield from _description(outline, thing)
    yield from kept(thing)


def _description(outline: dict[str, Any], thing: Any) -> Iterator[str]:
    yield f"{type(thing).__name__}, written by likely {outline['likely']} (format {outline['format']})"
    if hasattr(thing, "mixture_"):
        yield from _clusters(thing)
        return
    known = account(thing)
    if known is not None:
        yield from known
        return
    inner = getattr(thing, "classifier_", thing)
    if hasattr(thing, "schema_"):
        yield from _origin(thing)
    if hasattr(inner, "classes_"):
        yield from _classifier(inner)
        yield from comparison(inner)
    if hasattr(thing, "schema_"):
        yield from _columns(thing.schema)
    if hasattr(inner, "classes_"):
        yield from _rules(inner, thing.card.get("calibrated") if hasattr(thing, "schema_") else None)
    elif hasattr(inner, "summary") and hasattr(inner, "model_"):
        yield str(inner.summary())
    else:
        if is_blank(thing):
            yield "not fitted: these are its settings"
        yield from _fields(outline["content"])


def is_blank(thing: Any) -> bool:
    """Whether it is an estimator that was not fitted."""
    return hasattr(thing, "get_params") and not any(name.endswith("_") for name in vars(thing))


def _clusters(model: Any) -> Iterator[str]:
    from likely.cli.clustering.cluster_card import set_by

    card, known = model.card, {c["cluster"]: c for c in model.card.get("clusters", [])}
    dense = card.get("task") == "density"
    what = "part" if dense else "cluster"
    if dense:
        yield "a density of reference rows for outlier detection: `likely novelty --model`"
    if card:
        yield f"learned from {', '.join(card['source'])}: {card['rows']:,} rows"
        yield f"a mixture of {card['why']}" if dense else card["why"]
    if dense:
        yield f"the threshold of the alarm is set by {set_by(model)}"
    yield ""
    yield f"{what}s"
    rows = [["", what, "share", *(["what makes it different"] if known else [])]]
    for k, share in enumerate(model.weights_.tolist()[:SHOWN], 1):
        profile = [clipped(", ".join(known.get(k, {}).get("profile", ())), 100)] if known else []
        rows.append(["", str(k), f"{share:.4f}", *profile])
    yield columns(rows, right=(1, 2))
    yield from _more(model.n_components_, f"{what}s")
    yield ""
    yield "parameters"
    yield from _parameters(model.mixture_.model_.components)
    yield from _columns(model.schema)


def _origin(model: Any) -> Iterator[str]:
    card = model.card
    if card:
        yield f"learned from {', '.join(card['source'])}: {card['rows']:,} rows, target {card['target']}"
        yield f"{card['verdict']}"
    yield f"model: {type(model.classifier_).__name__}" + (f" ({card['what'].rstrip('.')})" if card else "")


def _classifier(clf: Any) -> Iterator[str]:
    yield ""
    yield "classes"
    count = getattr(clf, "class_count_", None)
    rows = [["", "class", "probability", *(["weight in training"] if count is not None else [])]]
    for k, (label, p) in enumerate(list(zip(clf.classes_.tolist(), clf.class_prior_, strict=True))[:SHOWN]):
        rows.append(["", clipped(str(label), 40), f"{p:.4f}", *([f"{count[k]:,.6g}"] if count is not None else [])])
    yield columns(rows, right=(2, 3))
    yield from _more(len(clf.classes_), "classes")
    if hasattr(clf, "model_"):
        yield ""
        yield "parameters"
        yield from _parameters(clf.model_.components)


def _parameters(distribution: Any, indent: str = "  ") -> Iterator[str]:
    """Each distribution with the shapes of its parameters, components of products on their own lines."""
    if hasattr(distribution, "names") and hasattr(distribution, "components"):
        for name, part in distribution.components[:SHOWN]:
            yield f"{indent}{clipped(str(name), 30)}: {_distribution(part)}"
        yield from _more(len(distribution.components), "parts", indent)
    elif hasattr(distribution, "components"):  # a mixture a class, parts that classes share
        yield f"{indent}{_distribution(distribution)}"
        yield from _parameters(distribution.components, indent + "  ")
    else:
        yield f"{indent}{_distribution(distribution)}"


def _distribution(distribution: Any) -> str:
    fields = ((name, value) for name, value in vars(distribution).items() if not name.startswith("_"))
    shapes = [f"{n} {np.shape(v)}" for n, v in fields if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    kind = f" ({distribution.kind})" if isinstance(getattr(distribution, "kind", None), str) else ""
    return "; ".join(
        filter(None, [f"{type(distribution).__name__}{kind}: {', '.join(shapes)}", kernel_or_neighbors(distribution)])
    )


def _columns(schema: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "columns"
    rows = [["", "column", "kind", "levels"]]
    for name, entry in list(schema.items())[:SHOWN]:
        rows.append(["", clipped(name, 40), entry["kind"], clipped(", ".join(entry.get("levels", ())), 60)])
    yield columns(rows)
    yield from _more(len(schema), "columns")


def _rules(clf: Any, calibrated: str | None) -> Iterator[str]:
    """Decision rule: costs and reject options."""
    yield ""
    yield "decides"
    if getattr(clf, "cost", None) is None:
        yield "  every error costs 1"
    else:
        from likely.decision.cost import Cost

        cost = Cost.of(clf.cost, clf.classes_)
        head = ["", "cost of deciding", *(clipped(str(c), 16) for c in clf.classes_.tolist())]
        body = [["", clipped(str(a), 30), *(f"{v:g}" for v in row)]
                for a, row in zip(cost.names(clf.classes_).tolist(), cost.table, strict=True)]  # fmt: skip
        yield columns([head, *body[:SHOWN]], right=tuple(range(2, len(head))))
    words = {"reject_cost": "rejects where that is cheaper: rejecting costs {:g}",
             "reject_below": "rejects where the largest posterior probability is below {:g}"}  # fmt: skip
    told = [text.format(getattr(clf, name)) for name, text in words.items() if getattr(clf, name, None) is not None]
    if getattr(clf, "novelty", None) is not None:
        from likely.estimation.novelty.novelty_score import support_in_words

        rate, why = support_in_words(clf._left_out_surprises(), clf.novelty)
        told.append(f"rejects outliers (novel rows), with a false-alarm rate of {rate}{why}")
    yield from (f"  {text}" for text in told or ["never rejects"])
    if calibrated:
        yield f"  with probabilities that were {calibrated} on held-out rows"


def _fields(content: Any, indent: str = "  ") -> Iterator[str]:
    """Outline of any value, from the fields of the file."""
    for name, value in list(content.items())[:SHOWN]:
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _fields(value, indent + "  ")
        else:
            yield f"{indent}{name}: {clipped(str(value), 100)}"
    yield from _more(len(content), "fields", indent)


def _more(n: int, what: str, indent: str = "  ") -> Iterator[str]:
    if n > SHOWN:
        yield f"{indent}… and {n - SHOWN} more {what}"
