"""What a model file remembers of how it came about: plain values, for cards, for JSON and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likely.app.report.study import Contender
from likely.app.talk import figure

if TYPE_CHECKING:
    from likely.app.journey import Journey
    from likely.decisions.evaluation import Evaluation
    from likely.estimators.contest import Contest, Standing

NOT_SAVED = "for comparison; cannot be written to a model file"


def card_of(journey: Journey) -> dict[str, Any]:
    """All that `likely card` writes about."""
    from likely.data.fingerprint import fingerprint

    job, table, e = journey.job, journey.table, journey.contest.winner.evaluation
    assert e is not None  # a winner was measured
    told, calibrated = table.as_dict(), journey.contest.winner.calibration
    return {
        "made": journey.made, "command": job.command, "seed": job.seed, "source": list(job.files),
        "target": job.target, "rows": told["rows"], "unlabelled": told["unlabelled"], "classes": told["classes"],
        "roles": told["roles"], "fingerprint": told["fingerprint"],
        "rows_fingerprint": fingerprint(journey.field.X),
        "columns": [{k: v for k, v in c.items() if k != "levels"} for c in told["columns"] if c["used"]],
        "set_aside": table.set_aside, "hazards": list(journey.hazards), "cv": journey.cv,
        "chosen": journey.contest.winner.rung.key, "what": journey.contest.winner.rung.what,
        "verdict": verdict(journey.contest), "leaderboard": leaderboard(journey.contest),
        "figures": figures(e),
        "calibrated": calibrated and calibrated.words, "class_prior": job.class_prior,
        "reject_cost": job.reject_cost, "reject_below": job.reject_below, "novelty": job.novelty,
    }  # fmt: skip


def figures(e: Evaluation) -> dict[str, Any]:
    """The main figures of an evaluation without its curves."""
    from likely.decisions.summary import plain

    r = e.calibration()
    return {
        name: plain(value)
        for name, value in {
            "rows": len(e), "error": e.error, "mean_cost": e.mean_cost, "decision_cost": e.decision_cost,
            "refused": e.refused, "error_of_accepted": e.error_of_accepted, "log_loss": e.log_loss, "brier": e.brier,
            "calibration_error": r.ece, "calibration": r.verdict, "by_class": e.by_class, "classes": e.classes,
            "actions": e.actions, "cost_table": e.costs.table, "confusion": e.confusion,
        }.items()
    }  # fmt: skip


def contender(standing: Standing, chosen: bool) -> Contender:
    """A line of the leaderboard."""
    rung, e = standing.rung, standing.evaluation
    name = rung.name[0].upper() + rung.name[1:]
    note = " ".join(part for part in (NOT_SAVED if rung.rival else "", standing.failure) if part)
    calibrated = f"{standing.calibration.words}; " if standing.calibration is not None else ""
    if e is None:
        return Contender(name, rung.what, seconds=standing.seconds, note=f"failed: {note}")
    told = standing.behind
    if told is not None and told.value != 0 and not rung.rival:
        note = f"{figure(told.value)} (± {figure(told.se)}) dearer than the cheapest, row by row"
    note = (calibrated + note).removesuffix("; ")
    return Contender(
        name, rung.what, e.decision_cost.value, e.decision_cost.se, *e.error, log_loss=e.log_loss.value,
        seconds=standing.seconds, chosen=chosen, note=note,
    )  # fmt: skip


def leaderboard(contest: Contest) -> list[dict[str, Any]]:
    """The leaderboard as plain values, cheapest first."""
    from likely.decisions.summary import plain

    lines = []
    for s in contest.standings:
        told = vars(contender(s, s.rung is contest.winner.rung))
        behind = {"behind": s.behind and s.behind.value, "behind_se": s.behind and s.behind.se}
        lines.append(plain({"key": s.rung.key, **told, **behind, "rival": s.rung.rival, "failed": bool(s.failure)}))
    return lines


def verdict(contest: Contest) -> str:
    """Which model won, by how much beside the next, and what the rivals reached."""
    winner, best = contest.winner, contest.best
    name, alone = f"{winner.rung.name[0].upper()}{winner.rung.name[1:]}", len(contest.standings) == 1
    words = [f"{name} costs {_cost(winner)} a row." if alone else f"{name} wins: it costs {_cost(winner)} a row."]
    if winner.rung is not best.rung and winner.behind is not None:
        less = f"less by {figure(winner.behind.value)}, with a standard error of {figure(winner.behind.se)}"
        words.append(f"The cheapest, {best.rung.name}, costs {_cost(best)}: {less}, so the simpler one is taken.")
    elif (beside := contest.next) is not None and beside.behind is not None:
        more = f"more by {figure(beside.behind.value)}, with a standard error of {figure(beside.behind.se)}"
        words.append(f"The next, {beside.rung.name}, costs {more if beside.behind.value else 'the same'}.")
    if (rival := contest.rival) is not None:
        words.append(f"For comparison, {rival.rung.name} costs {_cost(rival)}; it cannot be written to a model file.")
    return " ".join(words)


def _cost(standing: Standing) -> str:
    e = standing.evaluation
    assert e is not None  # only those measured are compared
    return f"{figure(e.decision_cost.value)} (± {figure(e.decision_cost.se)})"
