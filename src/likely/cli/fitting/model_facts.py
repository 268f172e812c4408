"""Facts about a fit that go into the model file, the card and the JSON output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from likely.cli.console import amount, figure
from likely.report.study import Contender

if TYPE_CHECKING:
    from likely.automl.model_comparison import CandidateComparison, CandidateResult
    from likely.cli.fitting.fit_run import FitRun
    from likely.metrics.confidence_intervals import Mean
    from likely.metrics.evaluation import Evaluation

NOT_SAVED = "for comparison; cannot be written to a model file"


def card_of(fit_run: FitRun) -> dict[str, Any]:
    """What a model file remembers of how the model came about: data, selection, figures, warnings."""
    job = fit_run.job
    known = {
        "made": fit_run.made, "command": job.command, "seed": job.seed, "source": list(job.files), "target": job.target,
        **fit_run.data.facts(), "warnings": list(fit_run.warnings), **fit_run.found,
    }  # fmt: skip
    return known if fit_run.field is None else {**known, **_chosen(fit_run)}


def _chosen(fit_run: FitRun) -> dict[str, Any]:
    """How a classifier was chosen, and how it decides."""
    from likely.cli.fitting.fit_run import splits_in_words

    job, field, contest = fit_run.job, fit_run.field, fit_run.contest
    assert field is not None
    known = {name: getattr(job, name) for name in ("class_prior", "reject_cost", "reject_below", "novelty")}
    if contest is None:
        return {**known, "figures": None}
    winner = contest.winner
    selection = {
        "cv": splits_in_words(job, field), "chosen": winner.candidate.key, "what": winner.candidate.what,
        "criterion": contest.criterion, "rule": rule_words(contest.criterion, field.unit, contest.tie_breaker),
        "verdict": verdict(contest),
    }  # fmt: skip
    if contest.tie_breaker == "log-score":
        from likely.cli.fitting.real_targets import chosen_for_numbers

        return {**selection, **chosen_for_numbers(contest)}
    return {
        **known, **selection, "leaderboard": leaderboard(contest), "figures": figures(winner.evaluation),
        "calibrated": winner.calibration and winner.calibration.words,
    }  # fmt: skip


def figures(e: Evaluation) -> dict[str, Any]:
    """The main figures of an evaluation without its curves."""
    from likely.core.description import plain

    r = e.calibration()
    return {
        name: plain(value)
        for name, value in {
            "rows": len(e), "error": e.error, "mean_cost": e.mean_cost, "decision_cost": e.decision_cost,
            "reject_rate": e.reject_rate, "unclassified": e.unclassified, "error_of_accepted": e.error_of_accepted,
            "log_loss": e.log_loss, "brier": e.brier,
            "calibration_error": r.ece, "calibration": r.verdict, "by_class": e.by_class, "classes": e.classes,
            "actions": e.actions, "cost_table": e.costs.table, "confusion": e.confusion,
        }.items()
    }  # fmt: skip


def rule_words(criterion: str = "cost", unit: str = "row", second: str = "log-loss") -> str:
    """Description of the selection rule (see `model_comparison.judged`).

    >>> print(rule_words("log-loss").partition(". ")[0])
    Models whose log-loss is within one standard error of the lowest are kept; the simplest of them is chosen
    """
    first, second = plain_words(criterion), plain_words(second)
    kept = f"Models whose {first} is within one standard error of the lowest are kept"
    if first != second:
        kept += f"; of these, those whose {second} is within one standard error of the lowest among them"
    return f"{kept}; the simplest of them is chosen. Standard errors are those of paired differences per {unit}."


def plain_words(measure: str) -> str:
    """The name of a measure in a sentence.

    >>> plain_words("log-score"), plain_words("log-loss")
    ('log score', 'log-loss')
    """
    return measure.replace("-score", " score")


def contender(result: CandidateResult, chosen: bool) -> Contender:
    """A line of the leaderboard."""
    candidate, e = result.candidate, result.evaluation
    name = candidate.name[0].upper() + candidate.name[1:]
    note = " ".join(part for part in (NOT_SAVED if candidate.baseline else "", result.failure) if part)
    if e is None:
        return Contender(name, candidate.what, seconds=result.seconds, note=f"failed: {note}")
    known = [result.calibration.words if result.calibration is not None else "", note]
    difference = result.difference
    return Contender(
        name, candidate.what, e.decision_cost.value, e.decision_cost.se, e.error.value, e.error.low, e.error.high,
        log_loss=e.log_loss.value,
        seconds=result.seconds, chosen=chosen, note="; ".join(part for part in known if part),
        difference=None if difference is None else difference.value,
        difference_se=None if difference is None else difference.se,
        ties=result.ties,
    )  # fmt: skip


def leaderboard(contest: CandidateComparison) -> list[dict[str, Any]]:
    """The leaderboard as plain values, the best first."""
    from likely.core.description import plain

    lines = []
    for s in contest.results:
        known = vars(contender(s, s.candidate is contest.winner.candidate))
        above = s.loss_difference
        loss = {"loss_difference": above and above.value, "loss_difference_se": above and above.se}
        lines.append(
            plain(
                {"key": s.candidate.key, **known, **loss, "baseline": s.candidate.baseline, "failed": bool(s.failure)}
            )
        )
    return lines


def verdict(contest: CandidateComparison) -> str:
    """Which model was chosen, why, and what the baselines reached."""
    winner, by = contest.winner, contest.criterion
    name, alone = f"{winner.candidate.name[0].upper()}{winner.candidate.name[1:]}", len(contest.results) == 1
    words = [f"{name}{'' if alone else ' is chosen: it'} {_measured(winner, contest)}."]
    if winner.candidate is not contest.best.candidate:
        words += _why_not_the_best(contest)
    elif (beside := contest.next) is not None and beside.difference is not None:
        more = f"{'costs more' if by == 'cost' else 'is worse'} by {_amount(beside.difference, contest)}"
        words.append(f"The next, {beside.candidate.name}, {more if beside.difference.value else 'ties with it'}.")
    if (baseline := contest.baseline) is not None:
        told = f"For comparison, {baseline.candidate.name} {_measured(baseline, contest)}"
        wins = contest.tie_breaker == "log-score" and _best_baseline(contest)
        words.append(f"{told}; {wins or 'it cannot be written to a file'}.")
    return " ".join(words)


def _best_baseline(contest: CandidateComparison) -> str:
    """What is said where the rule would select a baseline."""
    found = contest.with_baselines
    if found is None or not found.candidate.baseline:
        return ""
    return f"by the same rule {found.candidate.name} would be chosen, but it cannot be written to a file"


def _why_not_the_best(contest: CandidateComparison) -> Iterator[str]:
    """Sentences on ties in the first criterion and in log-loss, and the simplest of the tied models."""
    winner, best, truest = contest.winner, contest.best, contest.truest
    by, second = contest.criterion, contest.tie_breaker
    assert winner.difference is not None and winner.loss_difference is not None  # only those tied are chosen
    title = "The one with the lowest cost" if by == "cost" else f"The one with the lowest {plain_words(by)}"
    less = f"{'costs less' if by == 'cost' else 'is better'} by {_amount(winner.difference, contest)}"
    near = f"{title}, {best.candidate.name}, {less}, which is within one standard error."
    yield (
        near if winner.difference.value else f"{best.candidate.name[0].upper()}{best.candidate.name[1:]} ties with it."
    )
    if by != second and winner.candidate is truest.candidate:
        tied = f"Of the {sum(by in s.ties for s in contest.results)} models within one standard error"
        yield f"{tied}, the chosen has the lowest {plain_words(second)} ({figure(winner.by(second))})."
    elif by != second and truest.candidate is not best.candidate:
        least = f"Of the models within one standard error, {truest.candidate.name} has the lowest {plain_words(second)}"
        yield f"{least}, {_amount(winner.loss_difference)} below the chosen; the chosen is the simpler one."
    else:
        yield "The chosen is the simpler one."


def _amount(difference: Mean, contest: CandidateComparison | None = None) -> str:
    shown = amount if contest is not None and contest.tie_breaker == "log-score" else figure
    return f"{shown(difference.value)} (standard error {shown(difference.se)})"


def _measured(result: CandidateResult, contest: CandidateComparison) -> str:
    """The first measure of the rule with its standard error or interval."""
    e, by = result.evaluation, contest.criterion
    assert e is not None  # only those measured are compared
    if by == "error":
        interval = f"95 % interval {figure(e.error.low)} to {figure(e.error.high)}"
        return f"has an error of {figure(e.error.value)} ({interval})"
    if by == "cost":
        cost = e.decision_cost
        return f"costs {figure(cost.value)} per {contest.unit} (standard error {figure(cost.se)})"
    if contest.tie_breaker == "log-score":
        from likely.cli.fitting.real_targets import measured_in_words

        return measured_in_words(e, by)
    return f"has a log-loss of {_amount(e.log_loss)}"
