"""Text output of `likely fit --sequences`: model selection, performance, cautions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.cli.console import Console, clipped, columns

MOST = 12  # classes or states up to which a confusion is shown


def print_summary(fit_run: Any, console: Console) -> None:
    """The whole card."""
    console("\n" + "\n".join(_classified(fit_run) if fit_run.contest is not None else _described(fit_run)))
    if fit_run.hazards:
        console("\nbe careful:")
        for hazard in fit_run.hazards:
            console(f"  - {hazard}")
    console(f"\nwritten: {fit_run.job.out}")


def _classified(fit_run: Any) -> Iterator[str]:
    from likely.cli.fit import leaderboard_text

    e = fit_run.contest.winner.evaluation
    yield leaderboard_text(fit_run.contest)
    yield ""
    yield fit_run.found["verdict"].replace(" per row", " per sequence")
    if len([s for s in fit_run.contest.standings if s.candidate.key != "prior"]) > 1:
        chosen = "number of states" if fit_run.job.n_states is None else "model"
        yield f"(the {chosen} was chosen on the same folds: its figures are slightly optimistic)"
    yield ""
    yield f"on {len(e):,} held-out sequences; intervals are at 95 %"
    yield f"  error     {e.error}"
    yield f"  log-loss  {e.log_loss} nats"
    if fit_run.job.reject_cost is not None:
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


def _described(fit_run: Any) -> Iterator[str]:
    if fit_run.choice is not None:
        yield str(fit_run.choice)
        yield ""
    told = fit_run.found.get("decoded")
    if told is not None:
        yield from _decoded(told, fit_run.model.state_names)
    from likely.estimation.novelty.held_out_frames import support
    from likely.hmm.estimators.hmm_description import states_table

    yield from states_table(fit_run.model.density_, fit_run.model.state_names, list(fit_run.material.kinds)).lines()
    value = fit_run.found["log_likelihood_a_frame"]
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
