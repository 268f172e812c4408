"""Sections of the cluster report: number, sizes, profiles, map and uncertain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from likely.report.axes import Frame, axes, drawing, room_for, ticks, whole_percent
from likely.report.class_legend import FEW, legend_items, marks
from likely.report.cluster_study import ClusterStudy, Doubt, TraitRow
from likely.report.decision_plane import plane_map
from likely.report.markers import OTHER, legend, name
from likely.report.markup import Markup, join, tag
from likely.report.number_format import NONE, clipped, count, counted, listed, number, percent
from likely.report.page_blocks import absent, figure, pair, scrolling, section, table
from likely.report.sections.data_section import data
from likely.report.sections.explanation_section import _cells, _plane_words
from likely.report.sections.verdict_section import _figure
from likely.report.style import HEAT

BINS = 20
MOST_TRAITS = 40
MOST_CLUSTERS = 12  # columns of the heat table
FULL_COLOR = 1.5  # spreads from the mean of all at which a cell is as strong as it gets


# ------------------------------------------------------------------------------- head


def head(c: ClusterStudy) -> Markup:
    """Title, origin, the answer in words, and its figures."""
    s = c.study
    origin = " · ".join(p for p in (clipped(listed(list(s.source)), 200), counted(s.rows), s.made) if p)
    return tag("header", tag("h1", clipped(s.title, 200)), tag("p", origin, class_="origin"),
               tag("p", _answer(c), class_="verdict"), tag("dl", *_figures(c), class_="figures"))  # fmt: skip


def _answer(c: ClusterStudy) -> Markup:
    k = len(c.sizes)
    number, _, rest = c.why.partition(": ")
    first = join([tag("strong", number[0].upper() + number[1:]), f": {rest}."])
    if k == 1:
        return join([first, " These columns do not separate groups of rows."])
    return join([first, f" The most probable cluster of a row has probability {percent(c.mean_certainty)} on average."])


def _figures(c: ClusterStudy) -> Iterator[Markup]:
    share = np.asarray(c.sizes) / max(float(np.sum(c.sizes)), 1e-300)
    yield _figure("clusters", str(len(c.sizes)), "mixture components")
    yield _figure("largest", percent(float(share.max())), counted(float(np.max(c.sizes))))
    yield _figure("smallest", percent(float(share.min())), counted(float(np.min(c.sizes))))
    yield _figure("certainty", percent(c.mean_certainty), "mean probability of the most probable cluster")
    yield _figure("uncertain rows", percent(c.unsure), "most probable cluster below 80\u202f%")


# ---------------------------------------------------------------------------- profiles


def profiles(c: ClusterStudy) -> Markup:
    """A line of words for each cluster, and the heat table."""
    lead = (
        "Means and proportions per cluster beside those of all rows. Blue is above all rows, orange below; the "
        f"color saturates at {FULL_COLOR:g} standard deviations."
    )
    if not c.traits:
        return section("profiles", "Cluster profiles", "", absent("No column is described here."))
    return section("profiles", "Cluster profiles", lead, _stories(c), heat(c))


def _stories(c: ClusterStudy) -> Markup:
    total = max(float(np.sum(c.sizes)), 1e-300)
    lines = (
        [_name(c, k), count(float(n)), percent(float(n) / total), ", ".join(words) or "close to the mean of all rows"]
        for k, (n, words) in enumerate(zip(c.sizes, c.stories, strict=True))
    )
    return table(
        ["Cluster", "#Rows", "#Share", "Differences from all rows"], lines, label="Clusters", class_="mid board"
    )


def _name(c: ClusterStudy, k: int) -> Markup:
    return name(marks(c.study)[k] if len(c.sizes) <= FEW else OTHER, c.study.classes[k])


def heat(c: ClusterStudy) -> Markup:
    """Traits by clusters, the most telling first."""
    shown, k = c.traits[:MOST_TRAITS], min(len(c.sizes), MOST_CLUSTERS)
    markers = marks(c.study) if len(c.sizes) <= FEW else [OTHER] * k
    heads = [*(name(markers[i], str(i + 1)) for i in range(k)), "all rows"]
    line = tag("tr", tag("th", "Column, by cluster", scope="col"), *(tag("th", h, scope="col") for h in heads))
    left = (
        [f"{len(c.traits) - len(shown)} further lines differ less and are not shown."]
        if len(c.traits) > len(shown)
        else []
    )
    left += [f"The {k} largest clusters."] if len(c.sizes) > k else []
    caption = tag("caption", " ".join(left)) if left else ""
    body = tag("tbody", *(_trait(t, k) for t in shown))
    return scrolling(tag("table", caption, tag("thead", line), body, class_="heat many"), "Profiles of the clusters")


def _trait(t: TraitRow, k: int) -> Markup:
    title = join([clipped(t.column, 40), *([tag("small", f" {clipped(t.level, 30)}")] if t.level is not None else [])])
    said = percent if t.level is not None else number
    words, overall = [said(float(v)) for v in t.values], said(t.overall)
    cells = (_cell(word, float(a)) for word, a in zip(words[:k], t.apart[:k], strict=True))
    return tag("tr", tag("th", title, scope="row"), *cells, tag("td", overall))


def _cell(words: str, apart: float) -> Markup:
    if words == NONE:
        return tag("td", NONE, class_="none")
    strength = f"--a:{100 * HEAT * min(abs(apart) / FULL_COLOR, 1.0):.0f}%"
    return tag("td", words, class_="right" if apart > 0 else "wrong", style=strength)


# -------------------------------------------------------------------------------- map


def cluster_map(c: ClusterStudy) -> Markup:
    """The clusters in the plane in which they lie furthest apart."""
    title, p = "Map of the clusters", c.study.plane
    if p is None or not len(p.points):
        return section("map", title, "", absent("No map: it needs two clusters and two numeric columns."))
    lead = (
        "The two linear discriminant directions of the clusters. Symbols are rows, "
        "the background is the most probable cluster; rings mark rows whose cluster is less than 80\u202f% "
        "probable."
    )
    names = c.study.classes if len(c.study.classes) <= FEW else ()
    picture = plane_map(p.points, p.truth, p.decided, marks(c.study), xs=p.xs, ys=p.ys, region=p.region,
                        labels=p.labels, names=names)  # fmt: skip
    key = legend([(mark, words.replace("other classes", "other clusters")) for mark, words in legend_items(c.study)])
    return section("map", title, lead, key, figure(picture, _plane_words(p), class_="wide"))


# --------------------------------------------------------------------------- certainty


def certainty(c: ClusterStudy) -> Markup:
    """How sure the assignment is, and the rows that lie between clusters."""
    title = "Certainty of the assignment"
    if len(c.sizes) == 1:
        return section("certainty", title, "", absent("There is one cluster."))
    known = (
        f"Every row has a posterior probability of each cluster; in {percent(c.unsure)} of rows none reaches 80\u202f%."
    )
    lead = f"{known} The most uncertain rows are listed." if c.doubts else known
    picture = figure(certainty_bars(c.certainty, c.weight, 1 / len(c.sizes)), class_="narrow")
    if not c.doubts:
        return section("certainty", title, lead, picture, tag("p", "No row is uncertain.", class_="note"))
    head = ["Row", "Cluster", "#Probability", "Next", "#Probability ", "Cells"]
    lines = (_doubt(c, d) for d in c.doubts)
    return section("certainty", title, lead, picture, table(head, lines, label="Uncertain rows"))


def _doubt(c: ClusterStudy, d: Doubt) -> list[object]:
    return [clipped(d.row, 40), _name(c, d.first), percent(d.probability), _name(c, d.second), percent(d.runner_up),
            _cells(list(d.cells.items()))]  # fmt: skip


# ------------------------------------------------------------------------ how it came about


def numbers(c: ClusterStudy) -> Markup:
    """The number of clusters, seen in three ways."""
    title, choice = "Number of clusters", c.choice
    if choice is None:
        return section("numbers", title, "", absent("The number of clusters was given, not chosen."))
    held = choice.best.get("held-out")
    words = {
        "bic": "the lowest BIC", "held-out": "the held-out likelihood",
        "prior": "a sparse prior",
    }[choice.by]  # fmt: skip
    lead = f"Three criteria; the number was chosen by {words}. Where they disagree, the number is ambiguous."
    above = np.asarray(choice.bic, dtype=np.float64)
    pictures = [
        figure(number_curve(choice.numbers, above - np.nanmin(above), choice.best["bic"], "BIC above its minimum"),
               "Lower is better: −2 log-likelihood plus a penalty per parameter.", "BIC"),
    ]  # fmt: skip
    if held is not None and np.isfinite(np.asarray(choice.held_out, dtype=np.float64)).any():
        picture = number_curve(choice.numbers, choice.held_out, held, "nats per row", errors=choice.held_out_error,
                               left=choice.left_by_prior)  # fmt: skip
        note = "Higher is better. Lines: one standard error of the difference to the best. The smallest within it wins."
        pictures.append(figure(picture, note, "Held-out log-likelihood"))
    return section("numbers", title, lead, pair(*pictures))


def learning(c: ClusterStudy) -> Markup:
    """How the objective rose, and whether other starts led to the same clusters."""
    lead = f"EM stopped because: {c.reason}." if c.reason else ""
    parts: list[Any] = [figure(trace_curve(c.trace), class_="narrow")] if len(c.trace) > 1 else []
    if len(c.starts) > 1:
        best = max(s.objective for s in c.starts)
        lines = (
            [str(i + 1), number(s.objective, 7), number(round(best - s.objective, 9), 2), count(s.iterations),
             "converged" if s.converged else "not converged"]
            for i, s in enumerate(c.starts)
        )  # fmt: skip
        head = ["Start", "#Objective, nats per row", "#Below the best", "#Steps", "Status"]
        parts += [tag("h3", "Starts"), table(head, lines, label="Starts", class_="tight")]
        if c.agreement is not None:
            words = "1 means that all initializations found the same clusters, 0 agreement by chance."
            parts.append(
                tag("p", f"Adjusted Rand index between initializations: {c.agreement:.2f}. {words}", class_="note")
            )
    return section("learning", "Convergence of EM", lead, *parts)


def cluster_data(c: ClusterStudy) -> Markup:
    """Every column that was used, with a histogram per cluster."""
    n = len(c.study.columns)
    lead = f"{counted(c.study.rows)}, {count(n)} column{'' if n == 1 else 's'} used."
    return data(c.study, lead, "cluster")


# ----------------------------------------------------------------------------- curves


def number_curve(
    numbers: Sequence[int], values: Any, chosen: int, what: str, *, errors: Any = None, left: int | None = None
) -> Markup:
    """A value for each number of clusters, the best ringed; `left` is what a sparse prior left, marked below.

    >>> number_curve([1, 2, 3], [9.0, 2.0, 4.0], 2, "BIC")[:4]
    '<svg'
    """
    values, reach = _finite(values), np.zeros(len(numbers)) if errors is None else np.nan_to_num(_finite(errors))
    known = np.isfinite(values)
    low, high = float(np.min((values - reach)[known])), float(np.max((values + reach)[known]))
    marks = ticks(low, high)
    last = max([*numbers, left or 0])
    frame = Frame.of(
        (0.5, last + 0.5), _padded(low, high), margins=(18, 22, 46, room_for([number(t, 4) for t in marks]))
    )
    grid = axes(frame, "clusters", what, integer_ticks(1, last), marks, y_words=lambda t: number(t, 4))
    at = np.asarray(numbers, dtype=np.float64)[known]
    drawn = [frame.line(at, values[known], class_="curve", style="--c:var(--c0)")] if len(at) > 1 else []
    drawn += _whiskers(frame, at, (values - reach)[known], (values + reach)[known]) if errors is not None else []
    drawn += [_dot(frame, x, y, "here" if x == chosen else "dot") for x, y in zip(at, values[known], strict=True)]
    prior = _prior_mark(frame, left) if left is not None else ""
    return drawing(460, 360, f"{what} of each number of clusters; the best is {chosen}", grid, prior, *drawn)


def integer_ticks(first: int, last: int) -> list[float]:
    """Integers to mark on an axis, not more than a dozen.

    >>> integer_ticks(1, 3)
    [1.0, 2.0, 3.0]
    """
    step = max(1, -(-(last - first + 1) // 12))
    return [float(k) for k in range(first, last + 1, step)]


def _finite(values: Any) -> Any:
    a = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(a), a, np.nan)


def _padded(low: float, high: float) -> tuple[float, float]:
    room = 0.06 * (high - low)
    return low - room, high + room


def _dot(frame: Frame, x: float, y: float, class_: str) -> Markup:
    return tag("circle", cx=float(frame.x(x)), cy=float(frame.y(y)), r=6.0 if class_ == "here" else 4.0, class_=class_)


def _whiskers(frame: Frame, x: Any, low: Any, high: Any) -> list[Markup]:
    return [
        tag("line", x1=float(a), x2=float(a), y1=float(b), y2=float(c), class_="whisker")
        for a, b, c in zip(frame.x(x), frame.y(low), frame.y(high), strict=True)
    ]


def _prior_mark(frame: Frame, left: int) -> Markup:
    x = float(frame.x(left))
    right = x > (frame.x.start + frame.x.end) / 2
    words = tag("text", f"a sparse prior leaves {left}", x=x + (-6 if right else 6), y=frame.y.end + 12,
                text_anchor="end" if right else "start")  # fmt: skip
    return join([tag("line", x1=x, x2=x, y1=frame.y.end, y2=frame.y.start, class_="ideal"), words])


def trace_curve(trace: Sequence[float]) -> Markup:
    """The objective after each EM iteration, in nats per row (monotone)."""
    values = np.asarray(trace, dtype=np.float64)
    marks = ticks(float(values.min()), float(values.max()))
    words: Callable[[float], str] = lambda t: number(t, 5)  # noqa: E731
    frame = Frame.of((0, max(len(values) - 1, 1)), _padded(float(values.min()), float(values.max())),
                     margins=(14, 22, 46, room_for([words(t) for t in marks])))  # fmt: skip
    steps = ticks(0, max(len(values) - 1, 1))
    grid = axes(frame, "EM iterations", "objective, nats per row", steps, marks, y_words=words)
    line = frame.line(np.arange(len(values)), values, class_="curve", style="--c:var(--c0)")
    return drawing(
        460, 360, f"The objective rose to {number(float(values[-1]), 5)} in {len(values) - 1} iterations", grid, line
    )


def certainty_bars(certainty: Any, weight: Any, fewest: float) -> Markup:
    """A histogram of the probability of each row's own cluster; it cannot be below one in the number of clusters."""
    low = np.floor(20 * fewest) / 20
    counts, edges = np.histogram(
        np.asarray(certainty), bins=np.linspace(low, 1.0, BINS + 1), weights=np.asarray(weight)
    )
    share = counts / max(float(counts.sum()), 1e-300)
    top = max(float(share.max()), 1e-9)
    marks = ticks(0, top)
    frame = Frame.of((low, 1), (0, 1.05 * top), margins=(14, 22, 46, room_for([whole_percent(t) for t in marks])))
    grid = axes(frame, "probability of the most probable cluster", "rows", ticks(low, 1), marks, x_words=whole_percent,
                y_words=whole_percent)  # fmt: skip
    left, right, tops = frame.x(edges[:-1]), frame.x(edges[1:]), frame.y(share)
    bars = [
        tag("rect", x=float(a) + 0.5, width=float(b - a) - 1, y=float(t), height=float(frame.y.start - t))
        for a, b, t in zip(left, right, tops, strict=True)
    ]
    return drawing(
        460, 360, "Posterior probability of the most probable cluster, over rows", grid, tag("g", *bars, class_="bars")
    )
