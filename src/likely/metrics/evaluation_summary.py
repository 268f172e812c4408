"""Summary of an evaluation as text and as plain lists for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.description import plain
from likely.metrics.reliability import Reliability

if TYPE_CHECKING:
    from likely.metrics.evaluation import Evaluation

MOST_CLASSES = 30  # maximum number of classes in the text table


def summary(e: Evaluation, unit: str = "row") -> str:
    """The main measures with their intervals, then one line per class; `unit` is what was classified."""
    return "\n".join([_heading(e, unit), *_measures(e), "", *_classes(e, unit)])


def _heading(e: Evaluation, unit: str) -> str:
    parts = [f"{len(e):,} {unit}s", f"{len(e.classes)} classes"]
    if e.weight is not None:
        parts.append(f"effective number of {unit}s {e.counts.sum():,.6g}")
    if e.fold is not None:
        parts.append(f"{len(np.unique(e.fold))} folds")
    return ", ".join(parts) + "; intervals are at 95 %"


def _measures(e: Evaluation) -> list[str]:
    lines = [("error", str(e.error))] if e.costs.decides_classes else []
    if e.cost is not None:
        lines.append(("mean cost", str(e.mean_cost)))
    if e.reject_cost is not None:
        lines += [("cost with rejection", str(e.decision_cost)), ("rejected", str(e.reject_rate))]
    if e.costs.decides_classes and len(e.costs.table) > len(e.classes):
        if e.cost is not None and e.cost.actions:
            lines.append(("no class assigned", str(e.unclassified)))
        if e.error_of_accepted is not None:
            lines.append(("error of accepted", str(e.error_of_accepted)))
    impossible = f", {e.impossible.value:.2%} of true classes had posterior 0" if e.impossible.value else ""
    lines += [("log-loss", str(e.log_loss) + impossible), ("Brier score", str(e.brier))]
    calibration = e.calibration()
    lines.append(("calibration error", f"{calibration.ece:.4f}  {calibration.verdict}"))
    if len(e.classes) == 2 and _both_there(e):
        curve = e.roc(e.classes[1])
        lines += [("area under ROC", f"{curve.auc:.4f}"), ("equal error rate", f"{curve.equal_error().rate:.4f}")]
    return [f"{name:<22}{value}" for name, value in lines]


def _both_there(e: Evaluation) -> bool:
    return bool((e.confusion.sum(axis=1) > 0).all())


def _classes(e: Evaluation, unit: str) -> list[str]:
    """Recall and precision of each class; if no action is a class, the shares of the actions."""
    if not e.costs.decides_classes:
        return _actions_of_classes(e, unit)
    rates = list(e.by_class)
    if len(rates) > MOST_CLASSES:
        rates = sorted(rates, key=lambda rate: -rate.weight)[:MOST_CLASSES]
    width = max(5, *(len(str(r.label)) for r in rates))
    lines = [f"{'class':<{width}}  {f'{unit}s':>9}  {'recall':<24}precision"]
    lines += [f"{r.label!s:<{width}}  {r.weight:>9,.6g}  {_rate(r.recall):<24}{_rate(r.precision)}" for r in rates]
    left = len(e.by_class) - len(rates)
    return [line.rstrip() for line in lines] + ([f"and {left} smaller classes"] if left else [])


def _actions_of_classes(e: Evaluation, unit: str) -> list[str]:
    names, total = e.actions[len(e.classes) :], e.confusion.sum(axis=1)
    order = np.argsort(-total, kind="stable")[:MOST_CLASSES] if len(total) > MOST_CLASSES else range(len(total))
    width, wide = max(5, *(len(str(c)) for c in e.classes)), max(6, *(len(name) for name in names))
    lines = [f"{'class':<{width}}  {f'{unit}s':>9}  " + "  ".join(f"{name:>{wide}}" for name in names)]
    for i in order:
        shares = e.confusion[i, len(e.classes) :] / total[i] if total[i] else np.full(len(names), np.nan)
        cells = "  ".join(f"{'–' if np.isnan(share) else f'{share:.4f}':>{wide}}" for share in shares)
        lines.append(f"{e.classes[i]!s:<{width}}  {total[i]:>9,.6g}  {cells}")
    left = len(total) - len(lines) + 1
    return lines + ([f"and {left} smaller classes"] if left else [])


def _rate(rate: Any) -> str:
    return "–" if rate is None else str(rate)


# --------------------------------------------------------------------------- JSON


def as_dict(e: Evaluation, points: int) -> dict[str, Any]:
    """All measures and curves; infinite or undefined values are None."""
    there = [c for c, w in zip(e.classes.tolist(), e.confusion.sum(axis=1), strict=True) if 0 < w < e.confusion.sum()]
    curves, accepted = {c: e.roc(c) for c in there}, e.risk_coverage()
    found = {
        "rows": len(e), "classes": e.classes, "actions": e.actions, "reject_cost": e.reject_cost,
        "cost_table": e.costs.table, "error": e.error if e.costs.decides_classes else None,
        "mean_cost": e.mean_cost, "decision_cost": e.decision_cost,
        "reject_rate": e.reject_rate, "unclassified": e.unclassified, "error_of_accepted": e.error_of_accepted,
        "log_loss": e.log_loss,
        "impossible": e.impossible, "brier": e.brier, "confusion": e.confusion, "confusion_cost": e.confusion_cost,
        "by_class": e.by_class, "calibration": calibration_dict(e.calibration()),
        "class_calibration": {str(c): calibration_dict(e.calibration(of=c)) for c in e.classes.tolist()},
        "roc": {str(c): {**curve.thinned(points).field_values(), "auc": curve.auc} for c, curve in curves.items()},
        "det": {str(c): curve.det().thinned(points).field_values() for c, curve in curves.items()},
        "equal_error_rate": {str(c): curve.equal_error() for c, curve in curves.items()},
        "risk_coverage": {**accepted.thinned(points).field_values(), "area": accepted.area},
        "worst": e.worst(10),
    }  # fmt: skip
    return {name: plain(part) for name, part in found.items()}


def calibration_dict(r: Reliability) -> dict[str, Any]:
    """One reliability diagram with its numbers."""
    return {**r.field_values(), "ece": r.ece, "maximum": r.maximum, "bias": r.bias, "verdict": r.verdict}
