"""Sections of the report of a regressor: summary, residuals, coverage of intervals, partial effects, bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.metrics.regression_evaluation import loss_words
from likely.report.axes import Frame, axes, drawing, room_for, ticks, whole_percent
from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, count, counted, listed, number, percent, percent_range
from likely.report.page_blocks import absent, figure, pair, section, table
from likely.report.regression_study import Band, Effect, NumberCase, RegressionStudy
from likely.report.sections.data_section import data
from likely.report.sections.explanation_section import _cells

POINTS = 1500
BINS = 10
MOST_CASES = 12
THIN = "\u202f"


# ------------------------------------------------------------------------- summary


def regression_verdict(r: RegressionStudy) -> Markup:
    """The head of the page: title, origin, what the errors are in the target's units, and the figures."""
    study, e = r.study, r.evaluation
    files = clipped(listed([str(s) for s in study.source]), 200)
    parts = [files, f"target: {clipped(study.target, 60)}", counted(study.rows, study.unit), study.made]
    return tag(
        "header",
        tag("h1", clipped(study.title, 200)),
        tag("p", " · ".join(p for p in parts if p), class_="origin"),
        tag("p", _sentences(r), class_="verdict"),
        tag("p", _beside(r), class_="lead"),
        tag("dl", *_figures(r), class_="figures") if len(e) else "",
    )


def _sentences(r: RegressionStudy) -> Markup:
    e, study = r.evaluation, r.study
    name, target = study.winner.name if study.winner else "The model", clipped(study.target, 60)
    how = f", measured by {study.cv} on held-out rows" if study.cv else ""
    first = f" predicts “{target}” with a root mean squared error of {number(e.rmse.value, 4)}"
    span = f"95{THIN}% interval {number(e.rmse.low, 4)} to {number(e.rmse.high, 4)}"
    middle = number(float(np.median(np.abs(e.residuals))), 4)
    inside = f"{percent(e.coverage.value)} of targets lie in their {whole_percent(e.level)} intervals"
    wide = f"these are {number(e.mean_width, 4)} wide on average"
    more = f"Half of the predictions are within {middle} of the truth. {inside}; {wide}."
    return join([join([tag("strong", name), f"{first} ({span}){how}."]), more], " ")


def _beside(r: RegressionStudy) -> str:
    e = r.evaluation
    if r.ground is None:
        return f"The targets have a standard deviation of {number(r.spread, 4)}; R² is {number(e.r2)}."
    saved = 1 - e.rmse.value / r.ground if r.ground > 0 else 0.0
    less = f"{percent(saved)} less" if saved > 0 else "no more"
    mean = f"Predicting the mean of all targets has a root mean squared error of {number(r.ground, 4)}"
    return f"{mean}: the columns leave {less}."


def _figures(r: RegressionStudy) -> Iterator[Markup]:
    e = r.evaluation
    yield _figure("RMSE", number(e.rmse.value, 4), f"95{THIN}% interval {number(e.rmse.low)} to {number(e.rmse.high)}")
    yield _figure("mean absolute error", number(e.mae.value, 4), f"{number(e.mae.low)} to {number(e.mae.high)}")
    if e.loss != "squared":
        told = loss_words(e.loss, e.over, e.under)
        yield _figure("mean loss", number(e.mean_loss.value, 4), f"{told}; standard error {number(e.mean_loss.se, 2)}")
    yield _figure("R²", number(e.r2), "share of the variance that is explained")
    low, high = e.coverage.low, e.coverage.high
    yield _figure(
        f"coverage of {whole_percent(e.level)} intervals", percent(e.coverage.value), percent_range(low, high)
    )
    yield _figure("log score", number(e.log_score.value), "−log p(y | x), nats per row")


def _figure(name: str, value: str, note: str) -> Markup:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", note)))


def real_data(r: RegressionStudy) -> Markup:
    """The columns, with a histogram for each third of the target."""
    study = r.study
    known = f"{counted(study.rows, study.unit)} with a known “{clipped(study.target, 60)}”"
    known += f", {counted(len(study.columns), 'column')} used."
    left = f" {counted(study.rows_unlabeled, study.unit)} without one excluded." if study.rows_unlabeled else ""
    lead = f"{known}{left} Histograms compare rows with a low, middle and high target."
    return data(study, lead, "third of the target")


# ----------------------------------------------------------------------- residuals


def residuals(r: RegressionStudy) -> Markup:
    """Truth and residuals against the prediction."""
    e, target = r.evaluation, clipped(r.study.target, 40)
    some = _some(len(e))
    both = np.concatenate([e.mean, e.truth])
    left = _scatter(e.mean[some], e.truth[some], "predicted", f"true {target}", _span(both), _span(both), diagonal=True)
    centers, lines = _running(e.mean, e.residuals)
    right = _scatter(
        e.mean[some],
        e.residuals[some],
        "predicted",
        "true − predicted",
        _span(e.mean),
        _span(e.residuals),
        trend=(centers, lines),
    )
    shown = f" {count(len(some))} of {count(len(e))} rows are drawn." if len(some) < len(e) else ""
    captions = (
        f"Each point is a held-out row; on the dashed line the prediction is right.{shown}",
        "Solid: median of tenths of the rows. Shaded: where the middle 90\u202f% of them lie. A curve means that the "
        "model misses a trend; a funnel, that errors grow with the prediction.",
    )
    lead = "Held-out rows: what was predicted, what was true, and the differences."
    drawn = pair(figure(left, captions[0], "Truth and prediction"), figure(right, captions[1], "Residuals"))
    return section("residuals", "Residuals", lead, drawn)


def _some(n: int) -> Any:
    return np.sort(np.random.default_rng(0).permutation(n)[:POINTS])


def _span(values: Array) -> tuple[float, float]:
    """Range without the outermost thousandth on each side, with a little room."""
    low, high = np.quantile(values, [0.001, 0.999]) if len(values) > 200 else (values.min(), values.max())
    room = 0.04 * (high - low) or 0.5 * max(abs(float(high)), 1.0)
    return float(low - room), float(high + room)


def _few(across: tuple[float, float]) -> list[float]:
    """Ticks below a chart: fewer where their labels are long."""
    found = ticks(*across)
    return found if max(map(len, map(number, found)), default=0) <= 5 else ticks(*across, 3)


def _running(x: Array, y: Array) -> tuple[Array, Array]:
    """Centers of tenths of the rows by x, and their 5 %, 50 % and 95 % quantiles of y (3, k)."""
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, min(BINS, max(len(x) // 8, 1))) if len(part)]
    centers = np.array([np.median(x[part]) for part in parts])
    return centers, np.array([np.quantile(y[part], [0.05, 0.5, 0.95]) for part in parts]).T


def _scatter(
    x: Array,
    y: Array,
    x_label: str,
    y_label: str,
    across: tuple[float, float],
    up: tuple[float, float],
    *,
    diagonal: bool = False,
    trend: Any = None,
) -> Markup:
    y_ticks = ticks(*up)
    frame = Frame.of(across, up, margins=(14, 18, 46, room_for([number(t) for t in y_ticks])))
    inside = (x >= across[0]) & (x <= across[1]) & (y >= up[0]) & (y <= up[1])
    dots = tag(
        "g",
        *(
            tag("circle", cx=float(a), cy=float(b), r=2.6)
            for a, b in zip(frame.x(x[inside]), frame.y(y[inside]), strict=True)
        ),
        class_="points",
    )
    grid = axes(frame, x_label, y_label, _few(across), y_ticks)
    if diagonal:
        low, high = max(across[0], up[0]), min(across[1], up[1])
        line: object = frame.line([low, high], [low, high], class_="ideal")
    else:
        line = frame.line(list(across), [0.0, 0.0], class_="ideal")
    more: list[object] = []
    if trend is not None and len(trend[0]) > 1:
        at, (low_, middle, high_) = trend
        more = [
            _ribbon(frame, at, np.clip(low_, *up), np.clip(high_, *up), "wide-band"),
            frame.line(at, np.clip(middle, *up), class_="trend"),
        ]
    return drawing(460, 360, f"{y_label} against {x_label}, {len(x)} rows", grid, *more[:1], dots, line, *more[1:])


def _ribbon(frame: Frame, x: Any, low: Any, high: Any, class_: str) -> Markup:
    across = np.concatenate([frame.x(x), frame.x(x)[::-1]])
    up = np.concatenate([frame.y(high), frame.y(low)[::-1]])
    corners = " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(across, up, strict=True))
    return tag("polygon", points=corners, class_=class_)


# --------------------------------------------------------------------- calibration


def interval_calibration(r: RegressionStudy) -> Markup:
    """Coverage against the level, and the histogram of the probability integral transform."""
    e = r.evaluation
    curve = e.coverage_curve()
    frame = Frame.of((0, 1), (0, 1))
    grid = axes(
        frame,
        "level of the interval",
        "targets inside",
        ticks(0, 1),
        ticks(0, 1),
        x_words=whole_percent,
        y_words=whole_percent,
    )
    marks = [
        tag("line", x1=float(x), x2=float(x), y1=float(a), y2=float(b), class_="whisker")
        for x, a, b in zip(frame.x(curve.level), frame.y(curve.low), frame.y(curve.high), strict=True)
    ]
    dots = [
        tag("circle", cx=float(x), cy=float(y), r=4.5, class_="dot")
        for x, y in zip(frame.x(curve.level), frame.y(curve.share), strict=True)
    ]
    words = "; ".join(f"{percent(a)}: {percent(b)}" for a, b in zip(curve.level, curve.share, strict=True))
    left = drawing(
        460, 360, f"Coverage by level. {words}", grid, frame.line([0, 1], [0, 1], class_="ideal"), *marks, *dots
    )
    captions = (
        f"Dots: share of held-out targets in central intervals of each level, with 95{THIN}% intervals. On the dashed "
        "line intervals hold what they promise.",
        "Where the target lies within its predictive density. All bars should be equally high; between the red lines "
        f"95{THIN}% of bars would lie. A valley in the middle means intervals that are too narrow, a hill too wide, a "
        "slope a bias.",
    )
    lead = f"Intervals are those of {r.density}. {curve.verdict}"
    drawn = pair(figure(left, captions[0], "Coverage"), figure(_pit(e), captions[1], "Probability integral transform"))
    return section("calibration", "Intervals", lead, drawn)


def _pit(e: Any) -> Markup:
    from scipy.stats import binom

    n = float(e.counts.sum())
    shares = np.histogram(e.pit, np.linspace(0, 1, BINS + 1), weights=e.counts)[0] / n
    low, high = binom.ppf([0.025, 0.975], max(round(n), 1), 1 / BINS) / max(round(n), 1)
    top = 1.1 * max(float(shares.max()), float(high))
    frame = Frame.of((0, 1), (0, top))
    grid = axes(frame, "P(target ≤ truth)", "share of rows", ticks(0, 1), ticks(0, top), y_words=whole_percent)
    bars = tag(
        "g",
        *(
            tag(
                "rect",
                x=float(frame.x(k / BINS)) + 1,
                width=float(frame.x(1 / BINS) - frame.x(0)) - 2,
                y=float(frame.y(s)),
                height=float(frame.y(0) - frame.y(s)),
            )
            for k, s in enumerate(shares)
        ),
        class_="bars",
    )
    lines = [frame.line([0, 1], [v, v], class_="limit") for v in (low, high)]
    words = ", ".join(percent(float(s)) for s in shares)
    return drawing(
        460, 360, f"Shares of rows by tenths of the probability integral transform: {words}", grid, bars, *lines
    )


# ------------------------------------------------------------------ effects and bands


def effects(r: RegressionStudy) -> Markup:
    """Mean prediction along each of the most important columns."""
    title = "Partial effects"
    if not r.effects:
        return section("effects", title, "", absent(r.no_effects)) if r.no_effects else Markup("")
    lead = (
        "Mean prediction if all rows had the same value in one column and their own in the others, for the most "
        "important columns. Effects of columns that depend on each other may be of rows that never occur."
    )
    low = min(float(np.min(e.mean - _reach(e))) for e in r.effects)
    high = max(float(np.max(e.mean + _reach(e))) for e in r.effects)
    room = 0.05 * (high - low) or 0.5 * max(abs(high), 1.0)
    drawn = [_effect(e, (low - room, high + room), clipped(r.study.target, 40)) for e in r.effects]
    words = (
        "Shaded, or lines at a level: two standard errors, from fits without each fold in turn. "
        "Strokes: values that occur. One vertical scale for all."
    )
    return section("effects", title, lead, pair(*drawn), tag("p", words, class_="note"))


def _reach(e: Effect) -> Array:
    return np.nan_to_num(2 * np.asarray(e.error, dtype=np.float64))


def _effect(e: Effect, up: tuple[float, float], target: str) -> Markup:
    y_ticks = ticks(*up)
    left = room_for([number(t) for t in y_ticks])
    name, reach = clipped(e.column, 40), _reach(e)
    if isinstance(e.values[0], str):
        picture = _levels(e, up, y_ticks, left, target)
    else:
        xs = np.asarray(e.values, dtype=np.float64)
        frame = Frame.of((float(xs[0]), float(xs[-1])), up, height=300, margins=(14, 18, 46, left))
        grid = axes(frame, name, f"mean prediction of {target}", _few((float(xs[0]), float(xs[-1]))), y_ticks)
        rug = [
            tag("line", x1=float(x), x2=float(x), y1=frame.y.start, y2=frame.y.start - 6, class_="rug")
            for x in frame.x(np.asarray(e.seen, dtype=np.float64))
            if frame.x.start <= x <= frame.x.end
        ]
        label = f"Partial effect of {name}: from {number(float(e.mean[0]))} to {number(float(e.mean[-1]))}"
        picture = drawing(
            460,
            300,
            label,
            grid,
            _ribbon(frame, xs, e.mean - reach, e.mean + reach, "wide-band"),
            *rug,
            frame.line(xs, e.mean, class_="trend"),
        )
    return figure(picture, "", name)


def _levels(e: Effect, up: tuple[float, float], y_ticks: Sequence[float], left: float, target: str) -> Markup:
    n, reach = len(e.values), _reach(e)
    frame = Frame.of((0, n), up, height=300, margins=(14, 18, 46, left))
    grid = axes(frame, "", f"mean prediction of {target}", [], y_ticks)
    marks: list[object] = []
    for k, (level, value, wide) in enumerate(zip(e.values, e.mean, reach, strict=True)):
        x = float(frame.x(k + 0.5))
        ends = [float(v) for v in frame.y([value - wide, value + wide])]
        marks += [
            tag("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_="whisker"),
            tag("circle", cx=x, cy=float(frame.y(value)), r=4.5, class_="dot"),
            tag("text", clipped(level, max(5, 60 // n)), x=x, y=frame.y.start + 17, text_anchor="middle"),
        ]
    words = "; ".join(f"{clipped(v, 30)}: {number(float(m))}" for v, m in zip(e.values, e.mean, strict=True))
    return drawing(460, 300, f"Partial effect of {e.column}. {words}", grid, *marks)


def bands(r: RegressionStudy) -> Markup:
    """Predictive intervals along one column."""
    title, b = "Predictive bands", r.band
    if b is None:
        return section("bands", title, "", absent(r.no_band)) if r.no_band else Markup("")
    wide = max(b.levels)
    ends = [v for pair_ in b.levels.values() for part in pair_ for v in (float(np.min(part)), float(np.max(part)))]
    points = np.empty((0, 2)) if b.points is None else np.asarray(b.points)
    up = _span(np.concatenate([np.array(ends), points[:, 1]]))
    y_ticks = ticks(*up)
    frame = Frame.of(
        (float(b.xs[0]), float(b.xs[-1])),
        up,
        width=760,
        height=380,
        margins=(14, 18, 46, room_for([number(t) for t in y_ticks])),
    )
    name, target = clipped(b.column, 40), clipped(r.study.target, 40)
    grid = axes(frame, name, target, ticks(float(b.xs[0]), float(b.xs[-1]), 8), y_ticks)
    ribbons = [
        _ribbon(frame, b.xs, np.clip(low, *up), np.clip(high, *up), "wide-band" if level == wide else "narrow-band")
        for level, (low, high) in sorted(b.levels.items(), reverse=True)
    ]
    inside = (points[:, 0] >= b.xs[0]) & (points[:, 0] <= b.xs[-1]) & (points[:, 1] >= up[0]) & (points[:, 1] <= up[1])
    dots = tag(
        "g",
        *(
            tag("circle", cx=float(x), cy=float(y), r=2.4)
            for x, y in zip(frame.x(points[inside, 0]), frame.y(points[inside, 1]), strict=True)
        ),
        class_="points",
    )
    picture = drawing(
        760,
        380,
        f"Predictive bands of {target} along {name}",
        grid,
        *ribbons,
        dots,
        frame.line(b.xs, np.clip(b.mean, *up), class_="trend"),
    )
    levels = " and ".join(whole_percent(level) for level in sorted(b.levels))
    caption = f"Line: mean prediction. Shaded: {levels} intervals."
    if len(points):
        caption += " Points: rows of the data, which differ in the other columns too: more of them may lie outside."
    return section("bands", title, _held(b), figure(picture, caption, class_="wide"))


def _held(b: Band) -> str:
    if not b.typical:
        return "What the model predicts along its only column."
    shown = [f"{clipped(k, 24)} {_word(v)}" for k, v in list(b.typical.items())[:6]]
    more = f" and {len(b.typical) - 6} more" if len(b.typical) > 6 else ""
    others = f"the others at their median or most frequent value ({', '.join(shown)}{more})"
    return f"The most important column of numbers, {others}."


def _word(value: object) -> str:
    return number(float(value)) if isinstance(value, float | int) else clipped(value, 20)


# ------------------------------------------------------------------- largest errors


def largest_errors(r: RegressionStudy) -> Markup:
    """The rows whose target was least expected."""
    title = "Largest errors"
    if not r.worst:
        return Markup("")
    head = ["Row", "#True", "#Predicted", f"#{whole_percent(r.evaluation.level)} interval", "Cells"]
    lead = "Rows whose target had the lowest predictive density: candidates for typing errors and unusual cases."
    lines = (_case(case, r) for case in r.worst[:MOST_CASES])
    return section("worst", title, lead, table(head, lines, label="Largest errors"))


def _case(case: NumberCase, r: RegressionStudy) -> list[object]:
    weight = {d.column: d.increase for d in r.study.importance}
    cells = sorted(case.cells.items(), key=lambda cell: -weight.get(cell[0], 0.0))
    name = count(case.row) if isinstance(case.row, int) else clipped(case.row, 40)
    span = f"{number(case.low, 4)} to {number(case.high, 4)}"
    return [name, number(case.truth, 4), number(case.predicted, 4), span, _cells(cells)]
