"""Leaderboard: cross-validated measures per model, and paired differences to the best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from likely.report.axes import Scale
from likely.report.bars import whisker, whisker_axis, whisker_scale
from likely.report.markup import Markup, join, tag
from likely.report.number_format import clipped, column, number, percent, percent_range
from likely.report.page_blocks import absent, section, table, with_note
from likely.report.study import Contender, Study

BEST = {
    "cost": "the lowest cost", "log-loss": "the lowest log-loss", "error": "the lowest error",
    "loss": "the lowest loss", "log-score": "the lowest log score", "interval-score": "the lowest interval score",
}  # fmt: skip
OF_NUMBERS = ("loss", "log-score", "interval-score")


def leaderboard(study: Study) -> Markup:
    """Contenders, the best first, with their paired differences to the best on one scale."""
    if not study.leaderboard:
        return section("leaderboard", "Leaderboard", "", absent("No models were compared."))
    order = sorted(study.leaderboard, key=lambda c: _measure(c, study.criterion))
    scale, best = _scale(order), BEST[study.criterion]
    numbers = study.criterion in OF_NUMBERS
    head = ["Model", f"#Cost per {study.unit}", f"Difference to {best}", "#Error", "#Log-loss", "#Seconds"]
    if numbers:
        loss = [] if study.losing == "squared error" else ["#Mean loss"]
        head = [
            "Model",
            *loss,
            f"Difference to {best}",
            "#RMSE",
            "#Log score",
            "#Interval score",
            "#Coverage",
            "#Seconds",
        ]
    at = head.index(f"Difference to {best}")
    foot = [*[""] * at, whisker_axis(scale), *[""] * (len(head) - at - 1)]
    lines = _number_lines(order, scale, study) if numbers else _lines(order, scale, study)
    chosen = [c.chosen for c in order]
    drawn = table(head, lines, label="Leaderboard", class_="mid board", chosen=chosen, foot=foot)
    lead = f"Models from simple to complex, evaluated on held-out {study.unit}s."
    how = f" Measured by {study.cv}." if study.cv else ""
    return section("leaderboard", "Leaderboard", f"{lead}{how} {study.rule}".strip(), drawn, _legend(study, best))


def _legend(study: Study, best: str) -> Markup:
    """What the signs mean, by the rule that was used."""
    squared = study.criterion == "loss" and study.losing == "squared error"
    words = [] if squared else [f"± is one standard error over {study.unit}s."]
    of = "mean squared error" if squared else ""
    words.append(f"Lines: one standard error of the paired difference {f'of {of} ' if of else ''}to {best}.")
    if any(c.ties for c in study.leaderboard):
        words.append("Shaded: the difference is within it, so the model is tied with the best.")
    if study.criterion != "log-loss" and any("log-loss" in c.ties for c in study.leaderboard):
        words.append("“Tied” at a log-loss: within one standard error of the lowest among the shaded models.")
    if study.criterion == "loss" and any("log-score" in c.ties for c in study.leaderboard):
        words.append("“Tied” at a log score: within one standard error of the lowest among the shaded models.")
    if study.criterion in OF_NUMBERS:
        words.append(
            "In brackets below an RMSE: its 95\u202f% interval. Log score: −log p(y | x), nats. Interval score and "
            "coverage: of 90\u202f% intervals. In all of these but coverage less is better."
        )
    else:
        words.append("In brackets below an error: its 95\u202f% interval.")
    return tag("p", join(words, " "), class_="note")


def _measure(c: Contender, by: str) -> float:
    value = {"cost": c.cost, "log-loss": c.log_loss, "error": c.error, "loss": c.cost, "log-score": c.log_loss,
             "interval-score": c.interval_score}[by]  # fmt: skip
    return math.inf if value is None or math.isnan(value) else value


def _scale(order: Sequence[Contender]) -> Scale:
    ends = [(c.difference, _reach(c)) for c in order if c.difference is not None and math.isfinite(c.difference)]
    return whisker_scale([v - r for v, r in ends], [v + r for v, r in ends])


def _reach(c: Contender) -> float:
    return c.difference_se if c.difference_se is not None and math.isfinite(c.difference_se) else 0.0


def _lines(order: Sequence[Contender], scale: Scale, study: Study) -> Iterator[list[object]]:
    costs, losses = column([c.cost for c in order], 3), column([c.log_loss for c in order], 3)
    times = column([c.seconds for c in order], 1)
    for c, cost, loss, time in zip(order, costs, losses, times, strict=True):
        tied = "tied" if "log-loss" in c.ties and study.criterion != "log-loss" else ""
        drawn = _drawn(c, scale, study.criterion)
        yield [_who(c), with_note(cost, _give_or_take(c)), drawn, _error(c), with_note(loss, tied), time]


def _number_lines(order: Sequence[Contender], scale: Scale, study: Study) -> Iterator[list[object]]:
    for c in order:
        tied = "tied" if "log-score" in c.ties and study.criterion != "log-score" else ""
        ends = "" if c.rmse_low is None else f"({number(c.rmse_low)}–{number(c.rmse_high)})"
        loss = [] if study.losing == "squared error" else [with_note(number(c.cost, 4), _give_or_take(c))]
        yield [
            _who(c), *loss, _drawn(c, scale, study.criterion),
            with_note(number(c.rmse, 4), ends), with_note(number(c.log_loss, 4), tied), number(c.interval_score, 4),
            percent(c.coverage), number(c.seconds, 2),
        ]  # fmt: skip


def _who(c: Contender) -> Markup:
    title = join([clipped(c.name, 80), tag("span", "chosen", class_="tag") if c.chosen else ""])
    return with_note(title, join([part for part in (c.what, c.note) if part], " · "))


def _give_or_take(c: Contender) -> str:
    if c.cost is None or c.cost_se is None:
        return ""
    return f"± {number(c.cost_se if c.cost_se > 1e-9 * abs(c.cost) else 0.0, 2)}"


def _drawn(c: Contender, scale: Scale, by: str) -> object:
    if c.difference is None or not math.isfinite(c.difference):
        return ""
    tied = "tied with the best" if c.ties else "not tied"
    label = f"{c.name}: {by} above the best by {number(c.difference)}, standard error {number(_reach(c))}; {tied}"
    return whisker(c.difference, c.difference - _reach(c), c.difference + _reach(c), scale, label, shaded=bool(c.ties))


def _error(c: Contender) -> Markup:
    if c.error_low is None or c.error_high is None:
        return with_note(percent(c.error), "")
    return with_note(percent(c.error), f"({percent_range(c.error_low, c.error_high)})")
