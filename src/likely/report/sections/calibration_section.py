"""Calibration, ROC and DET curves, risk-coverage curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likely.report.axes import whole_percent
from likely.report.calibration_curves import ROCCurve, det, reliability, risk_coverage, roc
from likely.report.class_legend import FEW, marks
from likely.report.markers import COLORS, legend
from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, column, number, percent
from likely.report.page_blocks import absent, figure, pair, section, table, with_note
from likely.report.sections.confusion_section import priced
from likely.report.sections.verdict_section import may_refuse
from likely.report.study import Study

if TYPE_CHECKING:
    from likely.metrics.evaluation import Evaluation
    from likely.metrics.roc import Roc

COVERED = (1.0, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5)
UNKNOWN = "The model was not evaluated."


def calibration(study: Study) -> Markup:
    """Reliability diagram and calibration scores."""
    e, title = study.evaluation, "Calibration"
    if e is None:
        return section("calibration", title, "", absent(UNKNOWN))
    r = e.calibration()
    picture = reliability(r.confidence, r.frequency, r.low, r.high, r.weight, np.linspace(0, 1, 11), e.unit)
    caption = (
        "Dots: observed frequency of the most probable class, with 95\u202f% intervals. "
        f"Bars: number of {e.unit}s with such a probability."
    )
    if priced(e):
        caption += " With costs, decisions may differ from the most probable class: this shows the probabilities alone."
    lead = (
        "Reliability diagram: predicted probability against observed frequency. Perfect calibration is the dashed line."
    )
    return section("calibration", title, lead, pair(figure(picture, caption), _scores(e)))


def _scores(e: Evaluation) -> Markup:
    """Calibration scores with explanations."""
    r = e.calibration()
    held = f"; {percent(e.impossible.value)} of true classes had probability zero" if e.impossible.value else ""
    lines = [
        (with_note("Expected calibration error (ECE)", "mean gap between probability and frequency"), percent(r.ece)),
        (with_note("Maximum calibration error", "largest gap of any bin"), percent(r.maximum)),
        (with_note("Log-loss", f"nats per {e.unit}; 0 is perfect{held}"), number(e.log_loss.value)),
        (
            with_note("Brier score", "squared error of the probabilities; 0 is perfect, 2 the worst"),
            number(e.brier.value),
        ),
    ]
    return tag(
        "div", table(["Measure", "#Value"], lines, label="Calibration in numbers"), tag("p", sentence_case(r.verdict))
    )


def sentence_case(words: str) -> str:
    """A clause as a sentence of its own.

    >>> sentence_case("well calibrated")
    'Well calibrated.'
    """
    words = words.strip()
    return words[:1].upper() + words[1:] + ("" if not words or words.endswith(".") else ".")


def trade_offs(study: Study) -> Markup:
    """Detections, false alarms and misses of each class."""
    title = "ROC and DET curves"
    e = study.evaluation
    curves = found_curves(e) if e is not None else {}
    if e is None or not curves:
        why = UNKNOWN if e is None else f"A curve needs {e.unit}s of a class and {e.unit}s of another."
        return section("roc", title, "", absent(why))
    shown = chosen_curves(curves)
    drawn = [
        ROCCurve(marker_of(study, c, i), curve.false_alarm, curve.detection)
        for i, (c, curve) in enumerate(shown.items())
    ]
    items = [(d.k, _curve_words(study, c, shown[c])) for d, c in zip(drawn, shown, strict=True)]
    lead = "One curve per class against the rest, over all thresholds on its posterior probability."
    left = tag("p", f"Shown: the {len(shown)} of {len(curves)} classes with the smallest area.", class_="note")
    return section(
        "roc", title, lead, left if len(shown) < len(curves) else "", legend(items, line=True),
        pair(figure(roc(drawn), "ROC: the nearer to the upper left corner, the better.", "ROC"),
             figure(det(drawn), "DET, on normal-deviate axes: lower left is better; on the dashed line the "
                    "miss rate equals the false-alarm rate.", "DET")),
    )  # fmt: skip


def found_curves(e: Evaluation) -> dict[int, Roc]:
    """ROC curves of the classes; for two classes that of the second."""
    total = e.confusion.sum(axis=1)
    there = [c for c in range(len(e.classes)) if 0 < total[c] < total.sum()]
    if len(e.classes) == 2:
        there = there[1:]
    return {c: e.roc(e.classes[c]) for c in there}


def chosen_curves(curves: dict[int, Roc]) -> dict[int, Roc]:
    """All curves, or of many those with the smallest area: where the trouble is."""
    worst = sorted(curves, key=lambda c: curves[c].auc)[: len(curves) if len(curves) <= FEW else COLORS]
    return {c: curves[c] for c in sorted(worst)}


def marker_of(study: Study, c: int, place: int) -> int:
    """The mark of a curve: the class's own, or of many classes the next free one."""
    return marks(study)[c] if len(study.classes) <= FEW else place


def _curve_words(study: Study, c: int, curve: Roc) -> str:
    return (
        f"{clipped(study.classes[c], 24)}: area {number(curve.auc, 4)}, equal error {percent(curve.equal_error().rate)}"
    )


def coverage(study: Study) -> Markup:
    """Risk-coverage curve."""
    title = "Risk-coverage curve"
    e = study.evaluation
    if e is None:
        return section("coverage", title, "", absent(UNKNOWN))
    curve = e.risk_coverage()
    what = f"{'error among' if counts_errors(e) else 'mean cost of'} accepted {e.unit}s"
    point, words = operating_point(e)
    picture = risk_coverage(
        curve.coverage, curve.risk, point, what, words, whole_percent if counts_errors(e) else number, e.unit
    )
    lead = f"Selective classification: risk of the accepted {e.unit}s if the least confident ones are rejected."
    return section("coverage", title, lead, pair(figure(picture, _coverage_words(e)), _steps(e, what)))


def _steps(e: Evaluation, what: str) -> Markup:
    """The curve in a few round shares."""
    curve = e.risk_coverage()
    reached = [(share, curve.covering(share)) for share in COVERED]
    risks = [percent(at.risk) for _, at in reached] if counts_errors(e) else column([at.risk for _, at in reached])
    lines = ([whole_percent(share), risk] for (share, _), risk in zip(reached, risks, strict=True))
    return tag(
        "div",
        table(["Coverage, most confident first", f"#{what.capitalize()}"], lines, label="Risk by coverage"),
    )


def counts_errors(e: Evaluation) -> bool:
    """Whether costs are 0/1: then risk is an error rate, shown in percent."""
    return e.cost is None


def risk_words(e: Evaluation, risk: float) -> str:
    """A risk as an error rate or as a cost."""
    return f"{percent(risk)} wrong" if counts_errors(e) else f"cost {number(risk)}"


def operating_point(e: Evaluation) -> tuple[tuple[float, float], str]:
    """Operating point of the model: coverage, risk, and a label."""
    taken = ~e.rejected
    w = np.ones(len(e)) if e.weight is None else e.weight
    share = float(w[taken].sum() / w.sum())
    if not share:
        return (0.0, 0.0), f"every {e.unit} is rejected"
    risk = e.costs.risk(e.decided[taken], e.truth[taken], w[taken])
    return (share, risk), f"now: {percent(share)} accepted, {risk_words(e, risk)}"


def _coverage_words(e: Evaluation) -> Markup:
    curve = e.risk_coverage()
    half = curve.risk[-1] / 2
    reach = curve.reaching(half)
    words = [
        f"Of all {e.unit}s {percent(curve.risk[-1])} would be misclassified."
        if counts_errors(e)
        else f"Deciding every {e.unit} costs {number(curve.risk[-1])} each."
    ]
    if curve.risk[-1] > 0 and not reach.coverage:
        words.append("No coverage halves this.")
    elif curve.risk[-1] > 0:
        words.append(f"Half of that is reached at a coverage of {percent(reach.coverage)}.")
    if may_refuse(e):
        words.append("The dot is the rule with the given costs.")
    return join(words, " ")
