"""Confusion matrix with costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from likely.core.arrays import Array
from likely.report.class_legend import FEW, marks
from likely.report.markers import OTHER, name
from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, count, number, percent
from likely.report.page_blocks import absent, scrolling, section, table
from likely.report.study import Study
from likely.report.style import HEAT

if TYPE_CHECKING:
    from likely.metrics.evaluation import Evaluation

MOST_PAIRS = 10
LEAD = "Rows are true classes, columns decisions: counts, fraction of the true class, and cost."


def confusion(study: Study) -> Markup:
    """The heat table, the costliest errors, and the table of costs that was given."""
    e = study.evaluation
    if e is None:
        return section("confusion", "Confusion matrix and costs", "", absent("The model was not evaluated."))
    parts = [heat(study, e), _pairs(study, e), _costs(study, e)]
    return section("confusion", "Confusion matrix and costs", LEAD, *parts)


def heat(study: Study, e: Evaluation) -> Markup:
    """Confusion matrix; if there are many classes, those whose errors cost most."""
    rows, columns = shown_classes(e)
    cut = len(rows) < len(e.classes)
    heads = [*(clipped(e.actions[a], 30) for a in columns), *(["other classes"] if cut else []), "cost"]
    head = tag("tr", tag("th", "True class", scope="col"), *(tag("th", h, scope="col") for h in heads))
    body = (_heat_row(study, e, c, columns, cut) for c in rows)
    caption = _cut_words(len(rows), len(e.classes)) if cut else f"Total cost: {number(e.confusion_cost.sum(), 4)}."
    drawn = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *body),
        class_="heat many" if len(columns) > 7 else "heat",
    )
    return scrolling(drawn, "Confusion matrix")


def shown_classes(e: Evaluation) -> tuple[list[int], list[int]]:
    """Rows and columns of the confusion matrix: all, or the classes with the costliest errors."""
    c = len(e.classes)
    if c <= FEW:
        return list(range(c)), list(range(len(e.actions)))
    wrong = off_diagonal(e.confusion_cost)
    price = wrong.sum(axis=1) + wrong[:, :c].sum(axis=0)
    worst = sorted(np.argsort(-price, kind="stable")[:FEW].tolist())
    return worst, [*worst, *range(c, len(e.actions))]


def off_diagonal(table: Array) -> Array:
    """The same with nothing where the decision was right."""
    out = np.array(table)
    np.fill_diagonal(out[:, : len(out)], 0.0)
    return out


def _cut_words(shown: int, total: int) -> str:
    return f"The {shown} of {total} classes whose errors cost most; the others are summed in one column."


def _heat_row(study: Study, e: Evaluation, c: int, columns: Sequence[int], cut: bool) -> Markup:
    counts, costs = e.confusion[c], e.confusion_cost[c]
    total = float(counts.sum())
    cells = [_cell(counts[a], costs[a] if priced(e) else 0.0, total, _kind(a, c, e)) for a in columns]
    if cut:
        left = np.setdiff1d(np.arange(len(counts)), columns)
        cells.append(_cell(counts[left].sum(), costs[left].sum() if priced(e) else 0.0, total, "wrong"))
    label = tag("th", _named(study, c), scope="row")
    return tag("tr", label, *cells, tag("td", number(costs.sum()) if costs.any() else "0"))


def _named(study: Study, c: int) -> Markup:
    """A class with its mark, where all classes have one."""
    return name(marks(study)[c] if len(study.classes) <= FEW else OTHER, str(study.classes[c]))


def priced(e: Evaluation) -> bool:
    """Whether costs were given; otherwise every error costs 1."""
    return e.cost is not None or e.reject_cost is not None


def _kind(decided: int, truth: int, e: Evaluation) -> str:
    if decided >= len(e.classes):
        return "handed"
    return "right" if decided == truth else "wrong"


def _cell(rows: float, cost: float, total: float, kind: str) -> Markup:
    if not rows:
        return tag("td", "0", class_="none")
    strength = f"--a:{100 * HEAT * np.sqrt(rows / total):.0f}%"  # the root shows rare mistakes, too
    lines = [
        tag("b", count(rows)),
        tag("small", percent(rows / total)),
        tag("small", f"cost {number(cost)}") if cost else "",
    ]
    return tag("td", *lines, class_=kind, style=strength)


def _pairs(study: Study, e: Evaluation) -> Markup | str:
    """The costliest errors, if the matrix is large."""
    ranked = list(costliest_errors(e))[:MOST_PAIRS]
    if len(e.classes) <= 4 or not ranked:
        return ""
    head = ["True class", "Decided", f"#{e.unit.capitalize()}s", "#Fraction of the class", "#Cost"]
    sums = e.confusion.sum(axis=1)
    lines = (
        [
            _named(study, c),
            clipped(e.actions[a], 40),
            count(e.confusion[c, a]),
            percent(e.confusion[c, a] / sums[c]),
            number(e.confusion_cost[c, a]),
        ]
        for c, a in ranked
    )
    return join([tag("h3", f"The {len(ranked)} costliest errors"), table(head, lines, label="Costliest errors")])


def costliest_errors(e: Evaluation) -> Iterator[tuple[int, int]]:
    """Pairs (true class, decision) of positive cost, costliest first, then by frequency."""
    cost, rows = off_diagonal(e.confusion_cost), off_diagonal(e.confusion)
    order = np.lexsort((-rows.ravel(), -cost.ravel()))
    for at in order[: (cost > 0).sum()].tolist():
        yield at // cost.shape[1], at % cost.shape[1]


def _costs(study: Study, e: Evaluation) -> Markup | str:
    """The costs that were given: actions by true classes."""
    if not priced(e) or len(e.classes) > FEW:
        return ""
    head = ["Decision", *(f"#{clipped(c, 30)}" for c in study.classes)]
    lines = ([clipped(a, 40), *(number(v) for v in row)] for a, row in zip(e.actions, e.costs.table, strict=True))
    title = tag("h3", "Cost matrix: decisions by true classes")
    return join([title, table(head, lines, label="Cost matrix", class_="tight")])
