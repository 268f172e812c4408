"""Description of fitted classifiers and clusterers: classes or clusters in tables, and the decision rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from likely.core.description import Description, DescriptionTable
from likely.decision.cost import Cost
from likely.estimation.novelty.novelty_score import support_in_words


def classifier_description(clf: Any) -> Description:
    """Classes and decision rule of a classifier; what it compares rows with is added by its class."""
    return Description(type(clf).__name__, tables=[class_table(clf)], sections=[_decision_rule(clf)])


def class_table(clf: Any, more: list[dict[str, str]] | None = None) -> DescriptionTable:
    """The classes with their probabilities, their weights in training if known, and further facts per class."""
    count = getattr(clf, "class_count_", None)
    names = list(dict.fromkeys(name for facts in more or () for name in facts))
    head = ("class", "probability", "weight in training", *names)
    rows = [
        (str(label), float(p), None if count is None else float(count[k]), *((more or [])[k][name] for name in names))
        for k, (label, p) in enumerate(zip(clf.classes_.tolist(), clf.class_prior_, strict=True))
    ]
    return DescriptionTable("classes", head, rows, {"probability": ".4f", "weight in training": ",.6g"}, "classes")


def cluster_table(estimator: Any, sizes: Any, centers: Any) -> DescriptionTable:
    """The clusters with their sizes, shares and centers."""
    names = estimator.column_names()[: centers.shape[1]]
    shares = sizes / max(sizes.sum(), 1e-300)
    each = zip(sizes.tolist(), shares.tolist(), centers.tolist(), strict=True)
    rows = [(k, size, share, *center) for k, (size, share, center) in enumerate(each)]
    formats = {**dict.fromkeys(names, ".4g"), "rows": ",.6g", "share": ".1%"}
    return DescriptionTable("clusters", ("cluster", "rows", "share", *names), rows, formats, "clusters")


def _decision_rule(clf: Any) -> Description:
    """Costs and reject options."""
    cost = getattr(clf, "cost", None)
    if cost is None:
        return Description("decides", ["every error costs 1", *_rejects(clf)])
    cost = Cost.of(cost, clf.classes_)
    rows = zip(cost.names(clf.classes_).tolist(), cost.table.tolist(), strict=True)
    head = ("cost of deciding", *map(str, clf.classes_.tolist()))
    table = DescriptionTable("", head, [(str(action), *costs) for action, costs in rows], noun="actions")
    return Description("decides", tables=[table], notes=list(_rejects(clf)))


def _rejects(clf: Any) -> Iterator[str]:
    reject_cost, reject_below = (getattr(clf, name, None) for name in ("reject_cost", "reject_below"))
    novelty = getattr(clf, "novelty", None)
    if reject_cost is not None:
        yield f"rejects where that is cheaper: rejecting costs {reject_cost:g}"
    if reject_below is not None:
        yield f"rejects where the largest posterior probability is below {reject_below:g}"
    if novelty is not None:
        rate, why = support_in_words(clf.held_out_novelty_scores(), novelty)
        yield f"rejects outliers (novel rows), with a false-alarm rate of {rate}{why}"
    if reject_cost is None and reject_below is None and novelty is None:
        yield "never rejects"
