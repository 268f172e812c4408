"""The verdict: what the model does, how well, and beside what, before anything else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from likely.app.report.blocks import absent
from likely.app.report.markup import Markup, join, tag
from likely.app.report.study import Study
from likely.app.report.words import clipped, listed, number, percent, percent_range, rows

if TYPE_CHECKING:
    from likely.decisions.evaluation import Evaluation


def verdict(study: Study) -> Markup:
    """The head of the page: title, origin, the verdict in words, and its figures."""
    e = study.evaluation
    words = tag("p", sentences(study, e), class_="verdict") if e is not None else absent("The model was not evaluated.")
    beside = tag("p", baseline(e), class_="lead") if e is not None else ""
    return tag("header", tag("h1", clipped(study.title, 200)), tag("p", origin(study), class_="origin"), words, beside,
               tag("dl", *figures(e), class_="figures") if e is not None else "")  # fmt: skip


def origin(study: Study) -> str:
    """Where the data came from, and how large they are."""
    files = clipped(listed([str(s) for s in study.source]), 200)
    target = f"target: {clipped(study.target, 60)}"
    classes = f"{len(study.classes)} class{'' if len(study.classes) == 1 else 'es'}"
    parts = [files, target, rows(study.rows) if study.rows else "", classes, study.made]
    return " · ".join(part for part in parts if part)


def sentences(study: Study, e: Evaluation) -> Markup:
    """The verdict in plain words."""
    name = study.winner.name if study.winner else "The model"
    how = f", measured by {study.cv} on rows it had not seen" if study.cv else ""
    first = join([tag("strong", name), f" decides {_right_words(e)}{how}."])
    return join([first, *_cost_words(e), *_refusal_words(e)], " ")


def _right_words(e: Evaluation) -> str:
    """Right, wrong and handed on, which together are all rows; an interval where nothing is handed on."""
    if not may_refuse(e) or e.refused.value == 0:
        return f"{percent(1 - e.error.value)} of rows rightly ({percent_range(1 - e.error.high, 1 - e.error.low)})"
    kept = 1 - e.refused.value
    wrong = 0.0 if e.error_of_accepted is None else kept * e.error_of_accepted.value
    what = "refuses" if only_refuses(e) else "hands on"
    return f"{percent(kept - wrong)} of rows rightly and {percent(wrong)} wrongly, and {what} {percent(1 - kept)}"


def _cost_words(e: Evaluation) -> Iterator[str]:
    if e.cost is not None or may_refuse(e):
        yield f"Its decisions cost {number(e.decision_cost.value)} a row on average (± {number(spread(e), 2)})."


def _refusal_words(e: Evaluation) -> Iterator[str]:
    if not may_refuse(e):
        return
    kept = e.error_of_accepted
    if kept is None:
        yield "It decides no class at all: every row goes to another action or is refused."
    elif e.refused.value == 0:
        yield "It never had to refuse."
    else:
        forced = f"if it had to decide every row, {percent(1 - e.error.value)} would be right"
        span = percent_range(1 - e.error.high, 1 - e.error.low)
        yield f"Of the rows that it decides {percent(1 - kept.value)} are right; {forced} ({span})."


def may_refuse(e: Evaluation) -> bool:
    """Whether there are actions beyond the classes."""
    return len(e.costs.table) > len(e.classes)


def only_refuses(e: Evaluation) -> bool:
    """Whether refusing is the one action beside the classes."""
    return e.reject_cost is not None and len(e.costs.actions) == 1


def baseline(e: Evaluation) -> str:
    """What one would reach without looking at the columns: the best action that is always the same."""
    share = e.confusion.sum(axis=1) / e.confusion.sum()
    often = int(np.argmax(share))
    always = f"always answering “{_called(e, often)}” would be right in {percent(share[often])}"
    words = f"Without looking at any column, {always}"
    if e.cost is None and not may_refuse(e):
        return words + "."
    cost = e.costs.expected_of(share[None])[0]
    cheapest = int(np.argmin(cost))
    if cheapest == often:
        return f"{words}, at a cost of {number(cost[often])} a row."
    return f"{words}; the cheapest single answer, “{_called(e, cheapest)}”, would cost {number(cost[cheapest])} a row."


def _called(e: Evaluation, action: int) -> str:
    return clipped(e.actions[action], 40)


def figures(e: Evaluation) -> Iterator[Markup]:
    """The numbers that a reader looks for first."""
    yield _figure("right decisions", percent(1 - e.error.value), percent_range(1 - e.error.high, 1 - e.error.low))
    if e.cost is not None or may_refuse(e):
        yield _figure("cost a row", number(e.decision_cost.value), f"± {number(spread(e), 2)} standard error")
    if may_refuse(e):
        yield _figure(
            "refused" if only_refuses(e) else "handed on",
            percent(e.refused.value),
            percent_range(e.refused.low, e.refused.high),
        )
    yield _figure("log-loss", number(e.log_loss.value), "nats a row")
    yield _figure("calibration error", percent(e.calibration().ece), "confidence against frequency")


def spread(e: Evaluation) -> float:
    """The standard error of the cost: the larger of that over rows and that over folds."""
    return max(e.decision_cost.se, e.decision_cost.se_folds or 0.0)


def _figure(name: str, value: str, note: str) -> Markup:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", note)))
