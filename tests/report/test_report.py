"""The report: what it says is what was measured, and nothing from the data can break the page."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import likely as lk
from likely.core.errors import DataError, ShapeError
from likely.metrics.evaluation import Evaluation
from likely.report import Contender, Driver, Plane, Study, WorstCase, column_facts, report_html, write_report
from likely.report.axes import Frame, Scale, ticks
from likely.report.bars import whisker_scale
from likely.report.calibration_curves import ROCCurve, det, reliability, risk_coverage, roc
from likely.report.decision_plane import MOST_POINTS, MOST_RECTANGLES, borders, rectangles, simplified
from likely.report.markers import dash, symbol
from likely.report.markup import Markup, safe, tag
from likely.report.number_format import column, number, percent
from likely.report.page import SECTIONS
from likely.report.sections.confusion_section import costliest_errors, shown_classes
from likely.report.sections.verdict_section import spread
from likely.report.style import DARK, HEAT, LIGHT

VOID = {"meta", "br", "hr"}
SHAPES = {"circle", "line", "path", "rect", "polyline", "polygon", "use"}


class Page(HTMLParser):
    """A page read strictly: every tag is closed in its turn, every id stands once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(set(self.ids)) == len(self.ids)

    def handle_starttag(self, name, attributes):
        assert name not in SHAPES, f"<{name}> is not closed"
        self._seen(name, attributes)
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        assert name in VOID | SHAPES, f"<{name}/> is not an empty element"
        self._seen(name, attributes)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, words):
        if "style" not in self.open:
            self.words.append(words)

    def _seen(self, name, attributes):
        assert len({key for key, _ in attributes}) == len(attributes)
        self.tags.append((name, dict(attributes)))
        self.ids += [value for key, value in attributes if key == "id"]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag_name, attributes in self.tags if tag_name == name]


def evaluation(classes: int, n: int = 300, seed: int = 0, **more) -> Evaluation:
    """Posteriors that know something of the truth, every class among it."""
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(classes), rng.integers(0, classes, n - classes)]
    score = rng.normal(size=(n, classes)) + 2.5 * np.eye(classes)[truth]
    log_posterior = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    return Evaluation(log_posterior, truth, np.array([f"class {c}" for c in range(classes)], dtype=object), **more)


def study(classes: int = 3, columns: int = 4, n: int = 300, names=None, cells: int = 40, **more) -> Study:
    """A whole study about random rows."""
    e = evaluation(classes, n, **more)
    rng = np.random.default_rng(1)
    names = tuple(names or (f"class {c}" for c in range(classes)))
    x = rng.normal(size=(n, columns)) + e.truth[:, None]
    facts = [column_facts(f"x{j}", "real", x[:, j], e.truth, classes, weight=e.weight) for j in range(columns)]
    facts.append(column_facts("shade", "category", rng.choice(["red", "blue"], n), e.truth, classes))
    facts.append(column_facts("constant", "real", np.ones(n), e.truth, classes))
    region = rng.integers(-1, classes, (cells, cells))
    plane = Plane(x[:, :2], e.truth, e.decided, np.linspace(-3, 9, cells), np.linspace(-3, 9, cells), region,
                  ("x0 and x1", "x2"), (0.9, 0.1))  # fmt: skip
    model_candidates = (
        Contender("simple", "One spread for all.", 0.2, 0.02, 0.2, 0.15, 0.25, 0.5, 0.1, chosen=True),
        Contender("rich", "A spread for each.", 0.19, 0.02, 0.19, 0.14, 0.24, 0.4, 2.0),
        Contender("failed", note="it would not fit"),
    )
    worst = tuple(WorstCase(c.row + 1, str(c.truth), str(c.predicted), c.posterior_of_truth, {"x0": 1.5, "gap": None})
                  for c in e.worst(5))  # fmt: skip
    return Study(
        "A study", target="kind", classes=names, source=("data.csv",), rows=n, rows_unlabeled=2,
        columns=tuple(facts), excluded=(("id", "all different"),), warnings=("one class is small",),
        leaderboard=model_candidates, evaluation=e, cv="5-fold cross-validation",
        importance=tuple(Driver(f"x{j}", 0.1 / (j + 1), 0.01) for j in range(columns)), plane=plane, worst=worst,
        made="likely 1.0, today", command="likely fit data.csv --target kind", fingerprint="ab12", seed=7,
    )  # fmt: skip


# ------------------------------------------------------------------------- the page


@pytest.mark.parametrize("classes", [1, 2, 3, 9, 12, 30])
@pytest.mark.parametrize("costs", [{}, {"reject_cost": 0.2}])
def test_page_is_well_formed_with_every_section(classes, costs):
    page = Page(report_html(study(classes, **costs)))
    for name, words, _ in SECTIONS:
        assert name in page.ids and words in page.text
    assert all((a.get("role") == "img" and a["aria-label"]) or a.get("aria-hidden") for a in page.all("svg"))
    assert all(a.get("scope") in {"row", "col"} for a in page.all("th"))
    assert page.all("html")[0]["lang"] == "en"
    assert {"utf-8"} <= {a.get("charset") for a in page.all("meta")}
    assert "viewport" in {a.get("name") for a in page.all("meta")}


@pytest.mark.parametrize("classes", [1, 2, 30])
def test_no_coordinate_is_lost(classes):
    text = report_html(study(classes, reject_cost=0.2))
    assert not re.search(r'="[^"]*\b(nan|inf)\b[^"]*"', text)


def test_nothing_is_loaded_and_nothing_runs():
    text = report_html(study())
    page = Page(text)
    assert "default-src 'none'" in next(a["content"] for a in page.all("meta") if "http-equiv" in a)
    assert not re.search(r"https?:|//[a-z]|@import|<script|javascript:", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#refused"}
    attributes = {key: value for _, found in page.tags for key, value in found.items()}
    assert not [key for key in attributes if key.startswith("on") or key in {"src", "srcset", "xlink:href"}]
    assert all(a["href"].startswith("#") and a["href"][1:] in page.ids for a in page.all("a"))


NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b\x00\x1b[31m\u202e", "日本語 ünïcødé 🍷")


def test_names_from_the_data_stay_text():
    s = study(4, names=NASTY)
    e = s.evaluation.replace(classes=np.array(NASTY, dtype=object))
    column = column_facts(NASTY[0], NASTY[1], list(NASTY) * 2, [0, 1, 2, 3] * 2, 4)
    case = WorstCase(1, NASTY[0], NASTY[1], 0.0, {NASTY[1]: NASTY[0]})
    s = replace(
        s, title=NASTY[0], target=NASTY[1], evaluation=e, source=NASTY, warnings=NASTY,
        excluded=((NASTY[0], NASTY[1]),),
        columns=(column,), leaderboard=(Contender(NASTY[0], NASTY[1], 0.1, 0.1, note=NASTY[2], chosen=True),),
        importance=(Driver(NASTY[0], 1.0),), worst=(case,), command=NASTY[1], made=NASTY[2], fingerprint=NASTY[0],
        snippet=NASTY[0], plane=replace(s.plane, labels=(NASTY[0], NASTY[1]), note=NASTY[0]),
        facts={NASTY[0]: NASTY[1]},
    )  # fmt: skip
    text = report_html(s)
    page = Page(text)
    assert "<script" not in text and "<img" not in text
    assert not {"script", "img"} & {name for name, _ in page.tags}
    assert not re.search("[\x00\x1b\u202e]", text)
    assert "日本語 ünïcødé 🍷" in page.text and "<script>alert(1)</script>" in page.text


def test_text_that_no_file_can_hold_is_replaced():
    assert safe("a\ud800b") == "a\ufffdb"
    report_html(replace(study(), title="half a pair \udcff")).encode("utf-8")


def test_a_study_with_nothing_in_it_says_so():
    page = Page(report_html(Study("empty", target="y", classes=("a", "b"))))
    assert {name for name, _, _ in SECTIONS} <= set(page.ids)
    assert page.text.count("was not evaluated") == 5
    assert "No models were compared" in page.text and "None." in page.text


@pytest.mark.parametrize("part", ["evaluation", "plane"])
def test_parts_that_are_missing_leave_the_rest(part):
    page = Page(report_html(replace(study(), **{part: None})))
    assert {name for name, _, _ in SECTIONS} <= set(page.ids)


def test_one_class_has_no_curve_but_a_page():
    text = Page(report_html(study(1))).text
    assert "A curve needs rows of a class and rows of another" in text


@pytest.mark.slow
def test_large_studies_stay_small_files():
    s = study(10, columns=20, n=100_000, cells=160, reject_cost=0.3)  # the ground is noise: the worst there is
    assert len(report_html(s).encode()) < 500_000


def test_long_lists_are_cut_and_say_so():
    names = tuple((f"column {i} " + "x" * 1000, "why " * 1000) for i in range(5000))
    s = replace(study(), excluded=names, warnings=tuple("hazard " * 500 for _ in range(900)), title="t" * 10_000)
    text = report_html(s)
    assert "4940 more are not listed" in text and "840 more are not listed" in text
    assert len(text.encode()) < 500_000


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "report.html"
    assert write_report(study(), target) == target
    before = target.read_bytes()
    assert before == report_html(study()).encode()  # the same study, the same bytes
    with pytest.raises(ShapeError, match="classes of the study"):
        write_report(replace(study(), classes=("one", "two")), target)
    assert target.read_bytes() == before and list(tmp_path.iterdir()) == [target]
    for bad in (tmp_path, tmp_path / "none" / "report.html"):
        with pytest.raises(DataError, match="folder"):
            write_report(study(), bad)


def test_parts_that_do_not_fit_are_named():
    s = study()
    with pytest.raises(ShapeError, match="'x0'"):
        report_html(replace(s, columns=(replace(s.columns[0], counts=np.ones((2, 5))),)))
    with pytest.raises(ShapeError, match="region"):
        report_html(replace(s, plane=replace(s.plane, region=np.zeros((3, 3), dtype=int))))
    with pytest.raises(ShapeError, match="two columns"):
        report_html(replace(s, plane=replace(s.plane, truth=[0])))
    with pytest.raises(ShapeError, match="indices of classes"):
        report_html(replace(s, plane=replace(s.plane, truth=s.plane.truth + 1)))


# --------------------------------------------------------------------- what it says


def test_the_verdict_is_what_was_measured():
    s = study(3, reject_cost=0.2)
    e, text = s.evaluation, Page(report_html(s)).text
    plain = text.replace("\u202f", " ")
    right, refused = np.mean(e.decided == e.truth), e.reject_rate.value
    shares = f"{100 * right:.1f} % of rows correctly and {100 * (1 - right - refused):.1f} % wrongly"
    assert f"simple classifies {shares}, and rejects {100 * refused:.1f} %" in plain
    assert f"without rejection, {100 * (1 - e.error.value):.1f} % of all rows would be right" in plain
    assert f"cost {number(e.decision_cost.value)} per row" in plain
    share = np.bincount(e.truth) / len(e)
    assert f"“class {share.argmax()}” would be right in {100 * share.max():.1f} %" in plain


def test_the_verdict_without_costs_speaks_of_errors_alone():
    text = Page(report_html(study(2))).text
    assert "per row on average" not in text and "rejects" not in text


def test_with_costs_the_verdict_begins_with_them():
    """Decisions that are often wrong may be cheap: the first sentence and the first figure say so."""
    s = study(2, cost=[[0, 8], [1, 0]], n=400)
    e, text = s.evaluation, report_html(s)
    plain = Page(text).text.replace("\u202f", " ")
    share = np.bincount(e.truth) / len(e)
    single = np.array([8 * share[1], share[0]])
    told = f"simple costs {number(e.decision_cost.value)} per row; always answering “class {single.argmin()}”"
    saved = 1 - e.decision_cost.value / single.min()
    assert f"{told} would cost {number(single.min())}: {100 * saved:.0f} % saved." in plain
    assert plain.index("costs") < plain.index("of rows correctly (95 % interval")
    tiles = re.findall(r"<dt>(.*?)</dt>", text)
    assert tiles[:2] == ["cost per row", "accuracy"]
    assert "this shows the probabilities alone" in plain  # the calibration figure


@pytest.mark.parametrize(
    ("more", "words"),
    [({"reject_cost": 0.2}, "always rejecting would cost 0.2"), ({}, "always choosing “ask” would cost 0.3")],
)
def test_the_best_single_action_need_not_be_an_answer(more, words):
    cost = lk.Cost([[0, 8], [8, 0], [0.3, 0.3]], actions=["ask"])
    assert words in Page(report_html(study(2, cost=cost, **more))).text


def test_what_saves_nothing_is_not_called_a_saving():
    e = evaluation(2, 100, cost=[[0, 8], [1, 0]])
    wrong = e.replace(log_posterior=e.log_posterior[:, ::-1])
    plain = Page(report_html(replace(study(2), evaluation=wrong))).text
    assert "which is no more" in plain and "saved" not in plain


def test_signs_say_what_they_are():
    plain = Page(report_html(study(3))).text.replace("\u202f", " ")
    assert "Ranges of percentages are 95 % confidence intervals; ± is one standard error." in plain
    assert "observed frequency of the most probable class, with 95 % intervals" in plain
    assert "this shows the probabilities alone" not in plain  # without costs they decide


def test_the_leaderboard_shades_who_is_tied():
    model_candidates = (
        Contender("best", cost=0.2, cost_se=0.03, difference=0.0, difference_se=0.0, ties=("cost",)),
        Contender(
            "tied", cost=0.21, cost_se=0.03, difference=0.01, difference_se=0.02, ties=("cost", "log-loss"), chosen=True
        ),
        Contender(
            "near", cost=0.215, cost_se=0.03, difference=0.015, difference_se=0.001
        ),  # within 0.03, but not by pairs
    )
    text = report_html(replace(study(), leaderboard=model_candidates, rule="The rule.")).split('id="leaderboard"')[1]
    board = text.split("</section>")[0]
    rows = re.findall(r"<tr.*?</tr>", board.split("<tbody>")[1].split("</tbody>")[0])
    assert ["band" in row for row in rows] == [True, True, False] and "The rule." in board
    assert [">tied</span>" in row for row in rows] == [False, True, False]


def test_cells_that_are_not_shown_are_counted():
    case = WorstCase(1, "a", "b", 0.1, {f"x{j}": float(j) for j in range(20)})
    assert "and 12 more" in report_html(replace(study(), worst=(case,)))


def cells_of(text: str) -> np.ndarray:
    """Counts in the heat table, as a reader sees them."""
    body = re.search(r'<table class="heat[^"]*">.*?<tbody>(.*?)</tbody>', text).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", body)
    return np.array([[int(re.search(r">([\d,]+)<", c + "<").group(1).replace(",", ""))
                      for c in re.findall(r"<td[^>]*(>.*?)</td>", row)[:-1]] for row in rows])  # fmt: skip


@pytest.mark.parametrize("classes", [2, 5, 12])
def test_the_confusion_table_shows_the_counts(classes):
    s = study(classes, n=2000, reject_cost=0.3)
    assert (cells_of(report_html(s)) == s.evaluation.confusion).all()


@pytest.mark.slow
def test_of_many_classes_the_rest_is_added_up():
    s = study(30, n=3000)
    shown = cells_of(report_html(s))
    assert shown.shape == (12, 13)
    e = s.evaluation
    chosen, _ = shown_classes(e)
    wrong = e.confusion - np.diag(np.diag(e.confusion))
    trouble = wrong.sum(axis=0) + wrong.sum(axis=1)
    assert trouble[chosen].min() >= np.delete(trouble, chosen).max()
    assert shown.sum(axis=1).tolist() == e.confusion[chosen].sum(axis=1).tolist()
    assert (shown[:, :12] == e.confusion[np.ix_(chosen, chosen)]).all()
    assert "The 12 of 30 classes" in report_html(s)


def test_dearest_mistakes_are_shares_of_the_true_class():
    truth = np.repeat(np.arange(5), [20, 5, 5, 5, 5])
    decided = np.where(np.arange(40) < 4, 1, truth)  # 4 of 20 rows; 16 are decided for that class
    e = Evaluation(np.log(0.05 + 0.75 * np.eye(5)[decided]), truth, np.array(list("abcde"), dtype=object))
    page = Page(report_html(Study("w", target="y", classes=tuple("abcde"), evaluation=e)))
    assert "a b 4 20.0 % 4" in page.text.split("costliest errors")[1]  # true class, decided, rows, share, cost


def test_dearest_mistakes_by_brute_force():
    e = evaluation(6, 500, cost=np.abs(np.subtract.outer(np.arange(6), np.arange(6))) ** 1.5)
    found = [e.confusion_cost[c, a] for c, a in costliest_errors(e)]
    every = [e.confusion_cost[c, a] for c in range(6) for a in range(6) if c != a and e.confusion_cost[c, a] > 0]
    assert found == sorted(every, reverse=True)


def test_weights_are_copies():
    e = evaluation(3, 60)
    copies = np.arange(60) % 3
    weighted = e.replace(weight=copies.astype(float))
    repeated = Evaluation(np.repeat(e.log_posterior, copies, 0), np.repeat(e.truth, copies), e.classes)
    blank = Study("w", target="y", classes=("a", "b", "c"))
    assert report_html(replace(blank, evaluation=weighted)) == report_html(replace(blank, evaluation=repeated))


def test_wrong_cases_come_before_near_ones():
    s = study()
    right = (WorstCase(5, "a", "a", 0.93, {}), WorstCase(9, "b", "b", 0.97, {}))
    assert "No row was misclassified" in report_html(replace(s, worst=right))
    mixed = report_html(replace(s, worst=(WorstCase(5, "a", "b", 0.1, {}), *right)))
    assert "data errors" in mixed and "97.0\u202f%" not in mixed.split('id="worst"')[1]


# ------------------------------------------------------------------------- columns


def test_column_facts_count_every_cell_once():
    rng = np.random.default_rng(0)
    x, labels = rng.standard_cauchy(5000), rng.integers(0, 3, 5000)
    x[:50] = np.nan
    facts = column_facts("x", "real", x, labels, 3)
    assert facts.missing == 50 and facts.counts.sum() == 4950
    assert facts.counts.sum(axis=1).tolist() == np.bincount(labels[50:]).tolist()
    inner = np.histogram(x[50:][labels[50:] == 1], facts.edges)[0]
    assert facts.counts[1][1:-1].tolist() == inner[1:-1].tolist()  # the end bins hold what lies beyond, too


def test_column_facts_take_weights_as_copies():
    x, labels, copies = np.array([1.0, 2.0, 2.0, np.nan]), np.array([0, 1, 0, 1]), np.array([3, 1, 2, 2])
    weighted = column_facts("x", "count", x, labels, 2, weight=copies)
    repeated = column_facts("x", "count", np.repeat(x, copies), np.repeat(labels, copies), 2)
    assert (weighted.counts == repeated.counts).all() and weighted.missing == repeated.missing == 2


@pytest.mark.parametrize(
    ("values", "words", "distinct"),
    [
        ([2.5, 2.5, 2.5], "always 2.5", 1),
        ([np.nan] * 3, "all values are missing", 0),
        ([None] * 3, "all values are missing", 0),
        ([True, False, True], "0 to 1; median 1", 2),
        (["a", "b", "a"], "a 66.7\u202f%, b 33.3\u202f%", 2),
    ],
)
def test_odd_columns_have_facts(values, words, distinct):
    facts = column_facts("x", "real", values, [0, 0, 1], 2)
    assert (facts.summary, facts.distinct) == (words, distinct)
    Page(report_html(Study("odd", target="y", classes=("a", "b"), rows=3, columns=(facts,))))


def test_rare_levels_are_added_up():
    levels = [f"level {i:03d}" for i in range(100) for _ in range(100 - i)]
    facts = column_facts("x", "category", levels, np.zeros(len(levels), dtype=int), 1)
    assert facts.distinct == 100 and len(facts.levels) == 12 and facts.levels[-1] == "89 others"
    assert facts.counts.sum() == len(levels)


def test_column_facts_name_the_column_that_does_not_fit():
    with pytest.raises(ShapeError, match="'x'"):
        column_facts("x", "real", [1.0, 2.0], [0], 1)


def test_of_very_many_columns_the_ones_that_weigh_most_are_shown():
    s = study(2, columns=100, n=120)
    text = Page(report_html(s)).text
    assert "42 further columns are not shown" in text and "x0 real" in text and "x99 real" not in text


# -------------------------------------------------------------------------- charts


@pytest.mark.parametrize("span", [(0, 1), (-3.7, 12.1), (1e-6, 5e-6), (4, 4), (-1e9, 3e9)])
def test_ticks_are_round_and_inside(span):
    found = ticks(*span)
    low, high = (span[0] - 0.5, span[1] + 0.5) if span[0] == span[1] else span
    step = np.diff(found)
    assert 3 <= len(found) <= 9 and low - 1e-9 * abs(low) <= found[0] and found[-1] <= high * (1 + 1e-9)
    assert np.allclose(step, step[0])
    assert round(step[0] / 10 ** np.floor(np.log10(step[0]) + 1e-9), 6) in {1, 2, 5}


def test_rectangles_cover_every_cell_once():
    rng = np.random.default_rng(3)
    cells = np.kron(rng.integers(-1, 3, (7, 9)), np.ones((3, 2), dtype=int))
    covered, values = np.zeros(cells.shape, dtype=int), np.full(cells.shape, -9)
    for value, top, bottom, left, right in rectangles(cells):
        covered[top:bottom, left:right] += 1
        values[top:bottom, left:right] = value
    assert (covered == 1).all() and (values == cells).all()


def test_borders_stand_between_unlike_cells():
    cells = np.random.default_rng(4).integers(0, 3, (6, 8))
    length = 0
    for x, y, way, end in re.findall(r"M(\d+) (\d+)([HV])(\d+)", borders(cells, range(9), range(7))):
        length += int(end) - int(x if way == "H" else y)
    assert length == (np.diff(cells, axis=0) != 0).sum() + (np.diff(cells, axis=1) != 0).sum()


def test_scales_meet_their_ends():
    scale = Scale(2, 4, 100, 300)
    assert scale([2, 3, 4]).tolist() == [100, 200, 300]
    frame = Frame.of((0, 1), (0, 1))
    assert frame.y(0) > frame.y(1)  # up the page


def test_reliability_draws_a_dot_for_each_bin_that_holds_rows():
    r = evaluation(3, 500).calibration()
    empty = np.r_[r.weight, 0.0], np.r_[r.confidence, 0.05], np.r_[r.frequency, np.nan]
    text = reliability(empty[1], empty[2], np.r_[r.low, np.nan], np.r_[r.high, np.nan], empty[0])
    assert text.count('class="dot"') == (r.weight > 0).sum()
    assert "nan" not in text


def test_curves_pass_through_what_was_measured():
    e = evaluation(2, 400)
    curve = e.roc(e.classes[1])
    drawn = re.search(
        r'<polyline points="([^"]*)"[^>]*class="curve"', roc([ROCCurve(0, curve.false_alarm, curve.detection)])
    )
    points = np.array(drawn.group(1).split(), dtype=float).reshape(-1, 2)
    frame = Frame.of((0, 1), (0, 1))
    every = np.column_stack([frame.x(curve.false_alarm), frame.y(curve.detection)])
    gap = np.abs(points[:, None] - every[None]).max(axis=2).min(axis=1)
    assert len(points) <= 200 and gap.max() <= 0.051  # a decimal of a pixel
    assert (
        points[0].tolist() == np.round(every[0], 1).tolist() and points[-1].tolist() == np.round(every[-1], 1).tolist()
    )


def test_perfect_and_hopeless_curves_can_be_drawn():
    perfect, hopeless = ROCCurve(0, [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]), ROCCurve(1, [0.0, 1.0], [0.0, 1.0])
    assert "perfect separation" in det([perfect]) and "perfect separation" not in det([perfect, hopeless])
    for text in (roc([perfect, hopeless]), det([hopeless]), risk_coverage([1.0], [0.0], None, "cost")):
        Page(text)
        assert "nan" not in text


def test_a_hopeless_contender_runs_off_the_scale():
    scale = whisker_scale([0.1, 0.1, 0.12, 0.9], [0.12, 0.13, 0.14, 100.0])
    assert scale.high < 1 and whisker_scale([], []).high == 1


def test_points_of_a_map_are_limited_and_missing_values_left_out():
    n = 5 * MOST_POINTS
    points = np.random.default_rng(0).normal(size=(n, 2))
    points[0] = np.nan
    s = Study("m", target="y", classes=("a", "b"), plane=Plane(points, np.arange(n) % 2, np.arange(n) % 2))
    text = report_html(s).split('id="plane"')[1].split("</section>")[0]
    drawn = sum(path.count("M") for path in re.findall(r'<path d="([^"]*)" class="symbol"', text.split("<figure")[1]))
    assert drawn == MOST_POINTS and not re.search(r"\bnan\b", text)


def test_points_beyond_the_ground_are_drawn_on_its_edge():
    plane = Plane(
        [[0.5, 0.5], [1e6, -1e6]], [0, 1], [0, 1], np.array([0.25, 0.75]), np.array([0.25, 0.75]), np.eye(2, dtype=int)
    )
    text = report_html(Study("m", target="y", classes=("a", "b"), plane=plane)).split("<figure")[1]
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())
    at = np.array([xy.split() for xy in re.findall(r"M([-\d.]+ [-\d.]+)m", text)], dtype=float)
    assert len(at) == 2 and (at >= 0).all() and (at <= [width, height]).all()


def test_a_ground_of_noise_is_drawn_more_coarsely():
    noise = np.random.default_rng(0).integers(0, 5, (300, 300))
    assert len(list(rectangles(simplified(noise)))) <= MOST_RECTANGLES
    calm = np.zeros((300, 300), dtype=int)
    assert simplified(calm).shape == calm.shape


# ------------------------------------------------------------------ looks and words


def luminance(color: str) -> float:
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mixed(color: str, ground: str, share: float) -> str:
    return "#" + "".join(
        f"{round(share * int(color[i : i + 2], 16) + (1 - share) * int(ground[i : i + 2], 16)):02x}" for i in (1, 3, 5)
    )


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_meets_aa(colors):
    for ground in ("page", "panel"):
        for words in ("ink", "quiet", "accent"):
            assert contrast(colors[words], colors[ground]) >= 4.5, (words, ground)
        for mark in ("soft", "good", "bad", *(f"c{k}" for k in range(8))):
            assert contrast(colors[mark], colors[ground]) >= 3, (mark, ground)
    for heat in ("good", "bad", "soft"):
        assert contrast(colors["ink"], mixed(colors[heat], colors["page"], HEAT)) >= 4.5, heat


def test_both_modes_know_the_same_names():
    assert LIGHT.keys() == DARK.keys()
    text = report_html(study(9))
    used = set(re.findall(r"var\(--([a-z0-9]+)\)", text)) - {"c", "a"}
    assert used <= LIGHT.keys()


def test_classes_are_distinguished_without_color():
    assert len({symbol(k) for k in range(8)}) == len({dash(k) for k in range(8)}) == 8
    assert all(symbol(k) != symbol(k + 8) and dash(k) != dash(k + 8) for k in range(8))


def test_numbers_read_well():
    assert percent(float("nan")) == "–" and percent(0.0) == "0\u202f%"
    assert number(float("inf")) == "∞" and number(0.0) == "0" and number(123456.0) == "123,456"
    assert column([float("nan"), 1.0, -1e-18, float("inf")]) == ["–", "1.0", "0.0", "∞"]


def test_tags_escape_what_is_not_markup():
    assert tag("b", "<i>", Markup("<i></i>"), title='"') == '<b title="&quot;">&lt;i&gt;<i></i></b>'


# --------------------------------------------------------------------- real numbers


def test_a_report_on_real_wines(tmp_path, data_dir):
    rows = np.genfromtxt(data_dir / "tables" / "wine_keel.csv", delimiter=",", skip_header=1)
    x, labels = rows[:, :-1], rows[:, -1].astype(int) - 1
    fold = np.arange(len(x)) % 5
    log_posterior = np.empty((len(x), 3))
    for f in range(5):
        seen = [x[(fold != f) & (labels == c)] for c in range(3)]
        score = np.column_stack(
            [(-0.5 * ((x[fold == f] - s.mean(0)) / s.std(0)) ** 2 - np.log(s.std(0))).sum(1) for s in seen]
        )
        log_posterior[fold == f] = score - np.logaddexp.reduce(score, axis=1, keepdims=True)
    e = Evaluation(log_posterior, labels, ["1", "2", "3"], fold=fold, reject_cost=0.1)
    columns = tuple(column_facts(f"x{j}", "real", x[:, j], labels, 3) for j in range(13))
    path = write_report(Study("wine", target="label", classes=("1", "2", "3"), rows=178, columns=columns, evaluation=e),
                        tmp_path / "wine.html")  # fmt: skip
    page = Page(path.read_text(encoding="utf-8"))
    assert "(59 rows)" in page.text and "(71 rows)" in page.text and "(48 rows)" in page.text
    assert 0.94 < 1 - e.error.value < 1 and percent(1 - e.error.value) in " ".join(page.words)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"reject_cost": 0.0}, "It assigns no class"),
        ({"reject_cost": 5.0}, "It rejected no row"),
        ({"cost": [[0, 9], [9, 0], [1, 1], [2, 0.1]]}, "always choosing “action 2” would cost"),
        ({"cost": [[0, 3], [8, 0]]}, "The cost has a standard error of"),
    ],
)
def test_every_kind_of_cost_has_its_words(costs, words):
    page = Page(report_html(study(2, **costs)))
    assert words in page.text


def test_a_standard_error_says_over_what():
    """That of the headline may be over folds, those of the leaderboard are over rows."""
    for folds, words in (None, "0.03 over rows"), (0.01, "0.03 over rows"), (0.05, "0.05 over folds"):
        assert spread(SimpleNamespace(unit="row", decision_cost=SimpleNamespace(se=0.03, se_folds=folds))) == words


def test_impossible_truths_are_reported():
    e = evaluation(2, 50)
    log_posterior = np.where(np.eye(2, dtype=bool)[e.truth], 0.0, -np.inf)
    log_posterior[0] = log_posterior[0][::-1]
    s = Study("sure", target="y", classes=("a", "b"), evaluation=e.replace(log_posterior=log_posterior))
    text = report_html(s)
    assert "∞" in text and "had probability zero" in Page(text).text and "nan" not in text
