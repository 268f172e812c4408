"""The leaderboard: who took part, what each would cost, and why the winner won."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from likely.app.report.axes import Scale
from likely.app.report.bars import whisker, whisker_axis, whisker_scale
from likely.app.report.blocks import absent, section, table, with_note
from likely.app.report.markup import Markup, join, tag
from likely.app.report.study import Contender, Study
from likely.app.report.words import clipped, column, number, percent, percent_range

LEAD = (
    "Models from simple to rich, each judged on rows that it had not seen. Of those within one standard error of the "
    "cheapest, the simplest is taken."
)


def leaderboard(study: Study) -> Markup:
    """Contenders, cheapest first, with their intervals on one scale."""
    if not study.leaderboard:
        return section("leaderboard", "Leaderboard", "", absent("No models were compared."))
    order = sorted(study.leaderboard, key=lambda c: math.inf if c.cost is None or math.isnan(c.cost) else c.cost)
    scale, band = _scale(order), one_standard_error(order)
    head = ["Model", "#Cost a row", "± 2 standard errors", "#Error", "#Log-loss", "#Seconds"]
    foot = ["", "", whisker_axis(scale), "", "", ""]
    drawn = table(
        head,
        _lines(order, scale, band),
        label="Leaderboard",
        class_="mid board",
        chosen=[c.chosen for c in order],
        foot=foot,
    )
    how = f" Judged by {study.cv}." if study.cv else ""
    shade = tag("p", "Shaded: within one standard error of the cheapest.", class_="note") if band else ""
    return section("leaderboard", "Leaderboard", LEAD + how, drawn, shade)


def one_standard_error(order: Sequence[Contender]) -> tuple[float, float] | None:
    """From the least cost to one standard error above it."""
    best = order[0]
    if best.cost is None or best.cost_se is None or not math.isfinite(best.cost + best.cost_se):
        return None
    return best.cost, best.cost + best.cost_se


def _scale(order: Sequence[Contender]) -> Scale:
    ends = [(c.cost, _reach(c)) for c in order if c.cost is not None and math.isfinite(c.cost)]
    return whisker_scale([v - r for v, r in ends], [v + r for v, r in ends])


def _reach(c: Contender) -> float:
    return 2 * c.cost_se if c.cost_se is not None and math.isfinite(c.cost_se) else 0.0


def _lines(order: Sequence[Contender], scale: Scale, band: tuple[float, float] | None) -> Iterator[list[object]]:
    costs, losses = column([c.cost for c in order], 3), column([c.log_loss for c in order])
    times = column([c.seconds for c in order], 1)
    for c, cost, loss, time in zip(order, costs, losses, times, strict=True):
        yield [_who(c), with_note(cost, _give_or_take(c)), _drawn(c, scale, band), _error(c), loss, time]


def _who(c: Contender) -> Markup:
    title = join([clipped(c.name, 80), tag("span", "chosen", class_="tag") if c.chosen else ""])
    return with_note(title, join([part for part in (c.what, c.note) if part], " · "))


def _give_or_take(c: Contender) -> str:
    if c.cost is None or c.cost_se is None:
        return ""
    return f"± {number(c.cost_se if c.cost_se > 1e-9 * abs(c.cost) else 0.0, 2)}"


def _drawn(c: Contender, scale: Scale, band: tuple[float, float] | None) -> object:
    if c.cost is None or not math.isfinite(c.cost):
        return ""
    label = f"{c.name}: cost {number(c.cost)}, two standard errors {number(_reach(c))}"
    return whisker(c.cost, c.cost - _reach(c), c.cost + _reach(c), scale, band, label)


def _error(c: Contender) -> Markup:
    interval = percent_range(c.error_low, c.error_high) if c.error_low is not None and c.error_high is not None else ""
    return with_note(percent(c.error), interval)
