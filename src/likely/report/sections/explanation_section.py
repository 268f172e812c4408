"""Decision map, permutation importance and largest errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likely.report.bars import bars
from likely.report.class_legend import FEW, legend_items, marks
from likely.report.decision_plane import plane_map, ring_legend
from likely.report.markers import legend
from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, count, number, percent
from likely.report.page_blocks import absent, figure, section, table
from likely.report.study import Plane, Study, WorstCase

MOST_DRIVERS = 20
MOST_CASES = 15
MOST_CELLS = 8  # those of the columns that weigh most
CLOSEST = 5
LEADS = {
    "row": "Permutation importance: increase of the mean {} when the values of a column are shuffled among the rows.",
    "sequence": "Increase of the mean {} when a column is hidden from the model in all frames.",
}


def plane(study: Study) -> Markup:
    """The classes in the plane that separates them best."""
    title, p = "Map of the decisions", study.plane
    if study.unit != "row":  # their columns have a value per frame
        return Markup("")
    if p is None or not len(p.points):
        why = study.no_plane or "No plane to draw: it needs two classes and two directions."
        return section("plane", title, "", absent(why))
    known = f"{count(p.columns)} numeric columns" if p.columns else "columns"
    lead = (
        f"The two directions, among the {known}, that separate the class means best (linear discriminants). "
        "Colors and symbols are true classes; the background shows the decision."
    )
    names = study.classes if len(study.classes) <= FEW else ()
    picture = plane_map(p.points, p.truth, p.decided, marks(study), xs=p.xs, ys=p.ys, region=p.region,
                        labels=p.labels, names=names)  # fmt: skip
    refusals = bool(((np.asarray(p.decided) < 0) | (np.asarray(p.decided) >= len(study.classes))).any())
    key = legend(legend_items(study), more=ring_legend(refusals))
    return section("plane", title, lead, key, figure(picture, _plane_words(p), class_="wide"))


def _plane_words(p: Plane) -> Markup:
    words = [p.note] if p.note else []
    if p.share is not None and p.share[1] > 0:
        words.append(f"The axes carry {percent(p.share[0])} and {percent(p.share[1])} of the separation.")
    elif p.share is not None:
        words.append(
            "Two means differ along the first axis only; the second is the direction of largest remaining variance."
        )
    if p.region is not None and (np.asarray(p.region) < 0).any():
        words.append("Hatched: rejected.")
    return join(words, " ")


def drivers(study: Study) -> Markup:
    """Permutation importance of the columns."""
    title = "Feature importance"
    if study.unit == "recording":
        return Markup("")
    if not any(np.isfinite(d.increase) for d in study.importance):
        return section("drivers", title, "", absent("Feature importance was not computed."))
    ranked = sorted((d for d in study.importance if np.isfinite(d.increase)), key=lambda d: -d.increase)
    lead = LEADS[study.unit].format(study.losing)
    if not any(d.increase for d in ranked):
        alone = f"No column matters alone: without it the {study.losing} is the same."
        return section("drivers", title, lead, tag("p", alone))
    shown = ranked[:MOST_DRIVERS]
    unit = study.importance_unit or f"added {study.losing} per {study.unit}"
    picture = bars([d.column for d in shown], [d.increase for d in shown], [d.se for d in shown], unit)
    left = len(ranked) - len(shown)
    caption = "Lines are two standard errors; a bar whose line reaches zero may be due to chance." + (
        f" {left} less important columns are not shown." if left else ""
    )
    return section("drivers", title, lead, figure(picture, caption, class_="narrow"))


def worst(study: Study) -> Markup:
    """The rows on which the model was most wrong: typing errors, odd cases, or wrong labels."""
    title, what = "Largest errors", "Cells" if study.unit == "row" else "Means, or most frequent values"
    head = [study.unit.capitalize(), "True class", "Decided", "#Probability of the true class", what]
    if not study.worst:
        return section("worst", title, "", absent(f"No single {study.unit}s are listed."))
    wrong = [case for case in study.worst if case.truth != case.decided or case.posterior < 0.5]
    lead = (
        f"{study.unit.capitalize()}s whose true class had the lowest predicted probability: "
        "candidates for wrong labels and data errors."
        if wrong
        else f"No {study.unit} was misclassified; in these the true class had the lowest predicted probability."
    )
    shown = wrong[:MOST_CASES] or study.worst[:CLOSEST]
    wide = len(head) if any(case.cells for case in shown) else -1  # of recordings there is nothing to show
    lines = (_case(case, study)[:wide] for case in shown)
    return section("worst", title, lead, table(head[:wide], lines, label="Largest errors"))


def _case(case: WorstCase, study: Study) -> list[object]:
    weight = {d.column: d.increase for d in study.importance}
    cells = sorted(case.cells.items(), key=lambda cell: -weight.get(cell[0], 0.0))
    name = count(case.row) if isinstance(case.row, int) else clipped(case.row, 40)
    return [name, clipped(case.truth, 40), clipped(case.decided, 40), _small(case.posterior), _cells(cells)]


def _small(share: float) -> str:
    return percent(share) if share >= 1e-4 else "below 0.01\u202f%"


def _cells(pairs: Sequence[tuple[str, object]]) -> Markup:
    shown = (join([tag("b", clipped(key, 30)), " ", clipped(_word(value), 30)]) for key, value in pairs[:MOST_CELLS])
    more = f" and {len(pairs) - MOST_CELLS} more" if len(pairs) > MOST_CELLS else ""
    return tag("span", join(shown, ", "), more, class_="cells")


def _word(value: object) -> str:
    if value is None or value == "" or (isinstance(value, float) and np.isnan(value)):
        return "missing"
    return number(float(value), 4) if isinstance(value, float | np.floating) else str(value)
