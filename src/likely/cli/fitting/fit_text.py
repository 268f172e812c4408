"""Text output of `likely fit`: leaderboard, performance, cautions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.cli.console import Console, figure, nats
from likely.core.description import clipped, columns

MOST = 12  # classes or states up to which a confusion is shown


def print_summary(fit_run: Any, console: Console) -> None:
    """Print how the model was chosen, how well it does, and cautions."""
    if fit_run.contest is not None:
        from likely.cli.fitting.model_facts import verdict

        console("\n" + leaderboard_text(fit_run.contest))
        console("\n" + verdict(fit_run.contest), bold=True)
        console("\n".join(_performance(fit_run.contest)))
    elif fit_run.field is None:
        console("\n" + "\n".join(_states(fit_run)))
    if fit_run.hazards:
        console("\nbe careful:")
        for hazard in fit_run.hazards:
            console(f"  - {hazard}")
    console(f"\nwritten: {', '.join(filter(None, (fit_run.job.out, fit_run.job.report)))}")


def leaderboard_text(contest: Any) -> str:
    """Leaderboard in aligned columns, the best first; marks the chosen model, ties and baselines."""
    rows = [["", "model", "cost", "± s.e.", "behind", "± s.e.", "error", "log-loss", "seconds", ""]]
    rows += [_line(s, s.candidate is contest.winner.candidate) for s in contest.standings]
    return f"{columns(rows, right=(2, 3, 4, 5, 6, 7, 8))}\n{_signs(contest)}"


def _signs(contest: Any) -> str:
    """Legend of the leaderboard."""
    behind = f"{contest.criterion} above the lowest, paired per {contest.unit}"
    return (
        f"*: chosen. s.e.: one standard error. behind: {behind}.\n"
        "tied: within one standard error of the best (in log-loss: of the best of those tied in the first criterion)."
    )


def _line(standing: Any, won: bool) -> list[str]:
    candidate, e = standing.candidate, standing.evaluation
    name = ["*" if won else "", candidate.name]
    if e is None:
        return [*name, *[""] * 6, f"{standing.seconds:.1f}", f"failed: {clipped(standing.failure, 90)}"]
    cost, behind, loss = e.decision_cost, standing.behind, e.log_loss.value
    error = cost.se if cost.se > 1e-9 * abs(cost.value) else 0.0  # of one cost for all rows, rounding is left
    figures = [figure(cost.value), figure(error), figure(behind.value), figure(behind.se)]
    figures += [f"{e.error.value:.4f}", nats(loss), f"{standing.seconds:.1f}"]
    tied = f"tied in {', '.join(standing.ties)}" if standing.ties else ""
    return [*name, *figures, "for comparison" if candidate.baseline else tied]


def _performance(contest: Any) -> Iterator[str]:
    """Figures of the chosen model on held-out data."""
    e = contest.winner.evaluation
    if len([s for s in contest.standings if s.candidate.key != "prior" and not s.candidate.baseline]) > 1:
        yield "(the model was chosen on the same folds: its figures are slightly optimistic)"
    yield ""
    yield f"on {len(e):,} held-out {contest.unit}s; intervals are at 95 %"
    if e.costs.decides_classes:
        yield f"  error     {e.error}"
    yield f"  log-loss  {e.log_loss} nats"
    if e.reject_cost is not None:
        yield f"  rejected  {e.reject_rate}"
        if e.error_of_accepted is not None:
            yield f"  error among the rest {e.error_of_accepted}"
    if len(e.classes) <= MOST:
        yield ""
        yield from confusion(e.confusion, e.classes.tolist(), e.actions)


def confusion(table: Any, truths: Any, decided: Any) -> Iterator[str]:
    """Truth in rows, decisions in columns.

    >>> print(*confusion(np.array([[3, 0], [1, 2]]), ["a", "b"], ["a", "b"]), sep="\\n")
    truth \\ decided  a  b
    a                3  0
    b                1  2
    """
    rows = [["truth \\ decided", *(clipped(str(name), 12) for name in decided)]]
    rows += [
        [clipped(str(name), 15), *(f"{value:g}" for value in line)] for name, line in zip(truths, table, strict=True)
    ]
    yield columns(rows, right=tuple(range(1, len(rows[0]))))


def _states(fit_run: Any) -> Iterator[str]:
    if fit_run.choice is not None:
        yield str(fit_run.choice)
        yield ""
    told = fit_run.found.get("decoded")
    if told is not None:
        yield from _decoded(told, fit_run.model.state_names)
    from likely.estimation.novelty.held_out_frames import support
    from likely.hmm.estimators.hmm_description import states_table

    yield from states_table(fit_run.model.density_, fit_run.model.state_names, list(fit_run.data.kinds)).lines()
    value = fit_run.found["log_likelihood_per_frame"]
    if value is not None:
        yield ""
        yield f"log-likelihood of the training sequences: {value:.4f} nats per frame"
    yield from support(fit_run.model.density_)


def _decoded(told: dict[str, Any], names: list[str]) -> Iterator[str]:
    rate = f"{told['right']:.4f} ({told['low']:.4f}–{told['high']:.4f})"
    yield f"accuracy of the Viterbi path on held-out frames with known states: {rate}"
    if len(names) <= MOST:
        yield from confusion(np.array(told["confusion"]), names, names)
    yield ""
