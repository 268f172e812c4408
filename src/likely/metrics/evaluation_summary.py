"""Description of an evaluation, and all its measures as plain lists for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.description import ROWS, Description, DescriptionTable, plain
from likely.metrics.reliability import Reliability

if TYPE_CHECKING:
    from likely.metrics.evaluation import Evaluation


def described(e: Evaluation) -> Description:
    """The main measures with their intervals as facts, then one line per class."""
    parts = [f"{len(e):,} {e.unit}s", f"{len(e.classes)} classes"]
    if e.weight is not None:
        parts.append(f"effective number of {e.unit}s {e.counts.sum():,.6g}")
    if e.fold is not None:
        parts.append(f"{len(np.unique(e.fold))} folds")
    return Description(f"{', '.join(parts)}; intervals are at 95 %", facts=_measures(e), tables=[_classes(e)])


def _measures(e: Evaluation) -> dict[str, Any]:
    found: dict[str, Any] = {"error": e.error} if e.costs.decides_classes else {}
    if e.cost is not None:
        found["mean cost"] = e.mean_cost
    if e.reject_cost is not None:
        found |= {"cost with rejection": e.decision_cost, "rejected": e.reject_rate}
    if e.costs.decides_classes and len(e.costs.table) > len(e.classes):
        if e.cost is not None and e.cost.actions:
            found["no class assigned"] = e.unclassified
        if e.error_of_accepted is not None:
            found["error of accepted"] = e.error_of_accepted
    found["log-loss"] = e.log_loss
    if e.impossible.value:
        found["infinite losses"] = f"{e.impossible.value:.2%} of true classes had posterior 0"
    calibration = e.calibration()
    found |= {
        "Brier score": e.brier,
        "calibration error": round(calibration.ece, 4),
        "calibration": calibration.verdict,
    }
    if len(e.classes) == 2 and (e.confusion.sum(axis=1) > 0).all():
        curve = e.roc(e.classes[1])
        found |= {"area under ROC": round(curve.auc, 4), "equal error rate": round(curve.equal_error().rate, 4)}
    return found


def _classes(e: Evaluation) -> DescriptionTable:
    """Recall and precision of each class; if no action is a class, the shares of the actions. Of many, the largest."""
    rows: list[tuple[Any, ...]]
    names, rows = ["recall", "precision"], [(str(c), n, recall, precise) for c, n, recall, precise in e.by_class]
    if not e.costs.decides_classes:
        names, table = e.actions[len(e.classes) :], e.confusion[:, len(e.classes) :]
        rows = [(str(c), n := float(row.sum()), *(x / n if n else None for x in row.tolist()))
                for c, row in zip(e.classes.tolist(), table, strict=True)]  # fmt: skip
    if len(rows) > ROWS:
        rows = sorted(rows, key=lambda row: -row[1])
    formats = {f"{e.unit}s": ",.6g", **dict.fromkeys(names, ".4f")}
    return DescriptionTable("", ("class", f"{e.unit}s", *names), rows, formats, noun="classes")


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
