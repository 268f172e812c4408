"""Words and figures of a fit with real targets: leaderboard, verdict, warnings, and what the card keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from likely.cli.console import amount, nats
from likely.report.study import Contender

FEW = 19  # held-out rows below which 90 % intervals are extrapolated
NOT_SAVED = "for comparison; cannot be written to a model file"


def number_lines(contest: Any) -> list[list[str]]:
    """The leaderboard as cells of text, the best first."""
    from likely.core.description import clipped

    loss = {"squared": "mean squared"}.get(contest.winner.evaluation.loss, "mean loss")
    head = [
        "",
        "model",
        loss,
        "± s.e.",
        "difference",
        "± s.e.",
        "RMSE",
        "log score",
        "interval score",
        "coverage",
        "seconds",
    ]
    rows = [[*head, ""]]
    for s in contest.results:
        name = ["*" if s.candidate is contest.winner.candidate else "", s.candidate.name]
        e = s.evaluation
        if e is None:
            rows.append([*name, *[""] * 8, f"{s.seconds:.1f}", f"failed: {clipped(s.failure, 90)}"])
            continue
        cells = [
            amount(v) for v in (e.mean_loss.value, e.mean_loss.se, s.difference.value, s.difference.se, e.rmse.value)
        ]
        cells += [nats(e.log_score.value), amount(e.interval_score.value), f"{e.coverage.value:.1%}"]
        tied = f"tied in {', '.join(s.ties)}" if s.ties else ""
        rows.append([*name, *cells, f"{s.seconds:.1f}", "for comparison" if s.candidate.baseline else tied])
    return rows


def measured_in_words(e: Any, by: str) -> str:
    """The first measure of the rule with its standard error; of squared loss the RMSE with its interval."""
    from likely.metrics.regression_evaluation import loss_words

    if by == "loss" and e.loss == "squared":
        ends = f"95 % interval {amount(e.rmse.low)} to {amount(e.rmse.high)}"
        return f"has a root mean squared error of {amount(e.rmse.value)} ({ends})"
    names = {
        "loss": (f"a mean {loss_words(e.loss, e.over, e.under)}", e.mean_loss),
        "log-score": ("a log score", e.log_score),
        "interval-score": ("an interval score", e.interval_score),
    }
    words, mean = names[by]
    return f"has {words} of {amount(mean.value)} (standard error {amount(mean.se)})"


def chosen_for_numbers(contest: Any) -> dict[str, Any]:
    """Leaderboard and figures for the card."""
    from likely.core.description import plain

    e = contest.winner.evaluation
    lines = []
    for s in contest.results:
        told = {
            "key": s.candidate.key,
            "name": s.candidate.name,
            "what": s.candidate.what,
            "seconds": s.seconds,
            "chosen": s.candidate is contest.winner.candidate,
            "baseline": s.candidate.baseline,
            "failed": bool(s.failure),
            "ties": s.ties,
            "note": _note(s),
        }
        if s.evaluation is not None:
            own = s.evaluation
            told |= {
                "loss": own.mean_loss.value,
                "loss_se": own.mean_loss.se,
                "difference": s.difference.value,
                "difference_se": s.difference.se,
                "rmse": own.rmse.value,
                "mae": own.mae.value,
                "log_score": own.log_score.value,
                "interval_score": own.interval_score.value,
                "coverage": own.coverage.value,
            }
        lines.append(plain(told))
    rival = contest.with_baselines
    return {
        "leaderboard": lines,
        "figures": e.as_dict(),
        "loss": e.loss,
        "over": e.over,
        "under": e.under,
        "best_with_baselines": contest.winner.candidate.key if rival is None else rival.candidate.key,
        "density": "held-out residuals" if contest.winner.map is not None else "of the model itself",
    }


def _note(s: Any) -> str:
    return " ".join(part for part in (NOT_SAVED if s.candidate.baseline else "", s.failure) if part)


def number_contender(s: Any, chosen: bool) -> Contender:
    """A line of the leaderboard of the report."""
    name, e = s.candidate.name[0].upper() + s.candidate.name[1:], s.evaluation
    if e is None:
        return Contender(name, s.candidate.what, seconds=s.seconds, note=f"failed: {_note(s)}")
    return Contender(
        name,
        s.candidate.what,
        cost=e.mean_loss.value,
        cost_se=e.mean_loss.se,
        log_loss=e.log_score.value,
        seconds=s.seconds,
        chosen=chosen,
        note=_note(s),
        difference=s.difference.value,
        difference_se=s.difference.se,
        ties=s.ties,
        rmse=e.rmse.value,
        rmse_low=e.rmse.low,
        rmse_high=e.rmse.high,
        interval_score=e.interval_score.value,
        coverage=e.coverage.value,
    )


def hazards_of_numbers(field: Any, contest: Any) -> Iterator[str]:
    """Warnings about the result."""
    winner, e = contest.winner, contest.winner.evaluation
    for s in contest.results:
        if s.failure:
            yield f"{s.candidate.name} failed: {s.failure}"
    if len(e) < FEW:
        yield f"{len(e)} held-out {contest.unit}s are too few for intervals of 90 %: their ends are extrapolated."
    share = e.coverage
    if not share.low <= e.level <= share.high:
        ends = f"{share.low:.1%}–{share.high:.1%}"
        yield f"{e.level:.0%} intervals cover {share.value:.1%} of held-out {contest.unit}s ({ends})."
    rival = contest.baseline
    if rival is not None and rival.difference is not None and rival.difference.value < -2 * rival.difference.se:
        less = f"{rival.candidate.name} has a mean loss that is {amount(-rival.difference.value)} lower"
        yield f"{less[0].upper()}{less[1:]}: there is structure that none of the models of likely captures."
    ground = next((s for s in contest.results if s.candidate.key == "mean" and s.evaluation is not None), None)
    if ground is None:
        return
    if winner.candidate is ground.candidate:
        yield "No model has a clearly lower loss than the mean alone: the columns say little about the target."
    elif contest.criterion in ground.ties:
        yield "The mean alone has no larger loss, within one standard error: the columns hardly improve predictions."
