"""Summary of the report: cost and accuracy of the model, beside trivial rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, counted, listed, number, percent, percent_range
from likely.report.page_blocks import absent
from likely.report.study import Study

if TYPE_CHECKING:
    from likely.metrics.evaluation import Evaluation


NOTHING_KNOWN = {"row": "any column", "sequence": "any frame", "recording": "listening"}
AGAINST = "with unequal costs, the decision of least expected cost is often not the most probable class"


def verdict(study: Study) -> Markup:
    """The head of the page: title, origin, the verdict in words, and its figures."""
    e = study.evaluation
    words = tag("p", sentences(study, e), class_="verdict") if e is not None else absent("The model was not evaluated.")
    beside = tag("p", baseline(e), class_="lead") if e is not None else ""
    return tag("header", tag("h1", clipped(study.title, 200)), tag("p", origin(study), class_="origin"), words, beside,
               tag("dl", *figures(e), class_="figures") if e is not None else "")  # fmt: skip


def origin(study: Study) -> str:
    """Source and size of the data."""
    files = clipped(listed([str(s) for s in study.source]), 200)
    target = f"target: {clipped(study.target, 60)}"
    classes = f"{len(study.classes)} class{'' if len(study.classes) == 1 else 'es'}"
    parts = [files, target, counted(study.rows, study.unit) if study.rows else "", classes, study.made]
    return " · ".join(part for part in parts if part)


def sentences(study: Study, e: Evaluation) -> Markup:
    """Summary sentences: the cost if costs were given, else the accuracy."""
    name = study.winner.name if study.winner else "The model"
    over = " on held-out rows" if study.unit == "row" else ""  # of others the cross-validation says it
    how = f", measured by {study.cv}{over}" if study.cv else ""
    if e.cost is None:
        first = join([tag("strong", name), f" classifies {_right_words(e)}{how}."])
        return join([first, *_cost_words(e), *_refusal_words(e)], " ")
    first = join([tag("strong", name), f" costs {number(e.decision_cost.value)} per {e.unit}; {_saved_words(e)}."])
    error = f"The cost has a standard error of {spread(e)}{how}."
    right = [f"It classifies {_right_words(e)}."] if e.costs.decides_classes else []
    return join([first, error, *right, *_refusal_words(e)], " ")


def _saved_words(e: Evaluation) -> str:
    """The cost beside that of the best action that is always the same."""
    action, cost = best_single(e)
    words = f"{_always(e, action)} would cost {number(cost)}"
    if cost <= 0 or e.decision_cost.value >= cost:
        return f"{words}, which is no more" if e.decision_cost.value >= cost else words
    return f"{words}: {_whole_percent(1 - e.decision_cost.value / cost)} saved"


def _whole_percent(share: float) -> str:
    return percent(share) if share < 0.01 or share > 0.99 else f"{100 * share:.0f}\u202f%"


def best_single(e: Evaluation) -> tuple[int, float]:
    """The best constant decision, and its cost per row."""
    cost = e.costs.expected_of((e.confusion.sum(axis=1) / e.confusion.sum())[None])[0]
    return int(np.argmin(cost)), float(cost.min())


def _right_words(e: Evaluation) -> str:
    """Fractions right, wrong and not classified, which add up to all rows; an interval if all are classified."""
    if not may_refuse(e) or e.unclassified.value == 0:
        return f"{percent(1 - e.error.value)} of {e.unit}s correctly ({_interval(1 - e.error.high, 1 - e.error.low)})"
    kept = 1 - e.unclassified.value
    wrong = 0.0 if e.error_of_accepted is None else kept * e.error_of_accepted.value
    what = "rejects" if only_refuses(e) else "decides otherwise for"
    return (
        f"{percent(kept - wrong)} of {e.unit}s correctly and {percent(wrong)} wrongly, and {what} {percent(1 - kept)}"
    )


def _interval(low: float, high: float) -> str:
    return f"95\u202f% interval {percent_range(low, high)}"


def _cost_words(e: Evaluation) -> Iterator[str]:
    if may_refuse(e):
        text = f"Its decisions cost {number(e.decision_cost.value)} per {e.unit} on average"
        yield f"{text} (standard error {spread(e)})."


def _refusal_words(e: Evaluation) -> Iterator[str]:
    if not may_refuse(e):
        return
    kept = e.error_of_accepted
    if kept is None:
        yield f"It assigns no class: every {e.unit} gets another action or is rejected."
    elif e.unclassified.value == 0:
        yield f"It rejected no {e.unit}."
    else:
        forced = f"without rejection, {percent(1 - e.error.value)} of all {e.unit}s would be right"
        span = _interval(1 - e.error.high, 1 - e.error.low)
        yield f"Of the accepted {e.unit}s {percent(1 - kept.value)} are right; {forced} ({span})."


def may_refuse(e: Evaluation) -> bool:
    """Whether there are actions beyond the classes."""
    return len(e.costs.table) > len(e.classes)


def only_refuses(e: Evaluation) -> bool:
    """Whether rejecting is the only action beside the classes."""
    return e.reject_cost is not None and len(e.costs.actions) == 1


def baseline(e: Evaluation) -> str:
    """What one would reach without looking at the columns, and what costs do to the share of right decisions."""
    if not e.costs.decides_classes:
        action, least = best_single(e)
        single = f"the cheapest constant decision, “{_called(e, action)}”, would cost {number(least)} per {e.unit}"
        return f"Without {NOTHING_KNOWN[e.unit]}, {single}."
    share = e.confusion.sum(axis=1) / e.confusion.sum()
    often = int(np.argmax(share))
    always = f"always answering “{_called(e, often)}” would be right in {percent(share[often])}"
    words = f"Without {NOTHING_KNOWN[e.unit]}, {always}"
    if e.cost is None and not may_refuse(e):
        return words + "."
    (cheapest, least), cost = best_single(e), float(e.costs.expected_of(share[None])[0, often])
    if e.cost is not None:  # the cheapest constant decision stands in the first sentence
        text = f"{words}{'' if cheapest == often else f', and cost {number(cost)} per {e.unit}'}."
        against = e.error.value > 1 - share[often] and e.decision_cost.value < cost
        return f"{text} That is more often right, but costs more: {AGAINST}." if against else text
    if cheapest == often:
        return f"{words}, at a cost of {number(cost)} per {e.unit}."
    return (
        f"{words}; the cheapest constant decision, “{_called(e, cheapest)}”, would cost {number(least)} per {e.unit}."
    )


def _always(e: Evaluation, action: int) -> str:
    """The same action for every row, in words."""
    if e.reject_cost is not None and action == len(e.costs.table) - 1:
        return "always rejecting"
    verb = "answering" if action < len(e.classes) else "choosing"
    return f"always {verb} “{_called(e, action)}”"


def _called(e: Evaluation, action: int) -> str:
    return clipped(e.actions[action], 40)


def figures(e: Evaluation) -> Iterator[Markup]:
    """The numbers that a reader looks for first; where costs were given, these first."""
    if e.cost is not None:
        action, cost = best_single(e)
        yield _cost_figure(e, f"{_always(e, action)}: {number(cost)}")
    right = _interval(1 - e.error.high, 1 - e.error.low)
    if e.costs.decides_classes:
        yield _figure("accuracy", percent(1 - e.error.value), right)
    if e.cost is None and may_refuse(e):
        yield _cost_figure(e)
    if may_refuse(e) and e.costs.decides_classes:
        yield _figure(
            "rejected" if only_refuses(e) else "passed on",
            percent(e.unclassified.value),
            _interval(e.unclassified.low, e.unclassified.high),
        )
    yield _figure("log-loss", number(e.log_loss.value), f"nats per {e.unit}")
    yield _figure("calibration error", percent(e.calibration().ece), "mean gap between probability and frequency (ECE)")


def _cost_figure(e: Evaluation, beside: str = "") -> Markup:
    error = f"standard error {spread(e)}"
    return _figure(f"cost per {e.unit}", number(e.decision_cost.value), f"{error}; {beside}" if beside else error)


def spread(e: Evaluation) -> str:
    """The standard error of the cost: the larger of that over rows and that over folds, and which it is."""
    rows, folds = e.decision_cost.se, e.decision_cost.se_folds or 0.0
    return f"{number(max(rows, folds), 2)} over {'folds' if folds > rows else f'{e.unit}s'}"


def _figure(name: str, value: str, note: str) -> Markup:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", note)))
