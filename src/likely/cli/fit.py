"""`likely fit`: a table becomes a model that decides, and a page that says how well."""

from __future__ import annotations

from typing import Any

import click

from likely.cli import options
from likely.cli.console import Console, clipped, columns, figure, nats
from likely.cli.fitting.fit_job import Job
from likely.cli.fitting.sequence_fit_job import ONLY_SEQUENCES, refuse_for_tables, sequence_job

EPILOG = """\b
Examples:
  likely fit wine.csv --target class --report report.html
  likely fit wine.csv --target class --cost cost.csv --reject-cost 0.3
  likely fit --sql "select * from a join b using (id)" a.csv b.parquet --target y
  likely fit walks.csv --sequences --id who --time t --target gait
  likely fit digits/ --sequences -o digits.likely
cost.csv: the header names true classes, the first column actions;
rows beyond the classes are further actions, such as "ask an expert".
Names for --models, the same for every table, from simple to rich:
  frequencies, nearest-mean, naive-bayes, naive-bayes-t, naive-bayes-levels,
  chow-tree, spherical, diagonal, diagonal-t, laplace, pooled, pooled-mean,
  interpolated, emphasized, full, full-t, student-t, diagonal-counts,
  pooled-counts, interpolated-counts, emphasized-counts, full-counts,
  mixture-diagonal-2, mixture-diagonal-4, mixture-full-2, mixture-tied,
  mixture-full-4, parzen, neighbors; for comparison boosting, forest, logistic.
-t: parameters integrated out. -counts: counts are taken as numbers.
One that does not apply to the table is left out with a sentence.
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--target", metavar="NAME", help="The column to decide about.")
@options.deciding
@click.option("--group", metavar="COL", help="Rows of one group are never on both sides of a split.")
@click.option("--time", metavar="COL", help="When rows happened: test what came later than training, order frames.")
@click.option("--weight", metavar="COL", help="What a row counts; 2 is as much as two copies.")
@options.reading
@click.option("--as", "kinds", multiple=True, metavar="NAME=KIND", callback=options.kinds_of,
              help="What a column is: real, count, binary, category, ignore; repeatable.")  # fmt: skip
@click.option("--drop", multiple=True, metavar="NAME", help="A column to leave out; repeatable.")
@options.sequences
@click.option("--cv", type=options.CrossValidation(), help="Folds, loo, time, or the share of one hold-out.  [5]")
@click.option("--models", default="all", metavar="all|NAMES", help="Rows: models to compare, with commas between.")
@click.option("--choose-by", type=click.Choice(["cost", "log-loss", "error"]), default="cost", show_default=True,
              help="What models are chosen by; ties go to the least log-loss, then to the simplest.")  # fmt: skip
@click.option("--rivals/--no-rivals", default=None, help="Rows: compare with other libraries.  [small tables]")
@click.option("--calibrate/--no-calibrate", default=True, help="Soften probabilities that are too sure.  [yes]")
@click.option("-o", "--out", default="model.likely", show_default=True, help="The model file.")
@click.option("--report", metavar="FILE", help="Rows: write a report in HTML.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For folds and shuffles.")
@click.option("--jobs", type=click.IntRange(1), help="Threads.  [cores]")
@click.option("--json", "as_json", is_flag=True, help="The leaderboard as JSON on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr.")
def fit(as_json: bool, quiet: bool, format_: str | None, sequences: bool, **told: Any) -> None:
    """Compare models on a table, choose the simplest of the best, and write it to a file.

    Columns are typed and what cannot be a measurement is set aside, both in words. Models are compared on rows that
    they had not seen: those whose cost is within one standard error of the cheapest's are tied; of these, those whose
    log-loss is within one standard error of the least; the simplest of them is chosen, and learned once more from all
    rows. Standard errors are of paired differences, row by row. --choose-by puts log-loss or error in place of the
    cost. Cost is what decisions cost by --cost and --reject-cost; without them each mistake costs 1.

    FILE is CSV, TSV, Parquet, JSON lines or "-" for standard input; several files with the same columns are stacked.

    With --sequences, FILE is a long table (one frame per row, --id says whose), a folder or several files with a
    sequence each (sub-folders are the classes), lines of symbols (.txt) or FASTA. With a target, one hidden Markov
    model per class decides about whole sequences; without, one is learned of all, and `likely decode` finds its states.
    A folder with sub-folders of sounds (WAV) gives a recognizer of these words. For rows only: --sql, --models,
    --rivals, --report and --cv time.
    """
    from likely.cli.fitting.fit_run import travel

    if sequences:
        _of_sequences(told, format_, as_json, quiet)
        return
    refuse_for_tables(told)
    told = {name: value for name, value in told.items() if name not in ONLY_SEQUENCES}
    if told["cv"] == "time" and not told["time"]:
        raise click.UsageError("--cv time needs --time COL: the column that says when rows happened.")
    talk = Console(quiet)
    job = Job(format=format_, **told)
    fit_run = travel(job, talk)
    tell(fit_run, talk)
    if as_json:
        import json

        click.echo(json.dumps(as_plain(fit_run), indent=2))


def _of_sequences(told: dict[str, Any], format_: str | None, as_json: bool, quiet: bool) -> None:
    from likely.cli.fitting import sequence_fit_run, sequence_fit_text
    from likely.cli.fitting.sound_folders import are_sounds, learn_words

    talk, job = Console(quiet), sequence_job(told, format_)
    if job.format is None and are_sounds(job.files):
        facts = learn_words(job, talk)
    else:
        fit_run = sequence_fit_run.travel(job, talk)
        sequence_fit_text.tell(fit_run, talk)
        facts = fit_run.card
    if as_json:
        import json

        click.echo(json.dumps({**facts, "files": {"model": job.out}}, indent=2))


def tell(fit_run: Any, talk: Console) -> None:
    """The leaderboard, who won, and what to be careful about."""
    from likely.cli.fitting.model_facts import verdict

    talk("\n" + leaderboard_text(fit_run.contest))
    talk("\n" + verdict(fit_run.contest), bold=True)
    if fit_run.hazards:
        talk("\nbe careful:")
        for hazard in fit_run.hazards:
            talk(f"  - {hazard}")
    talk(f"\nwritten: {fit_run.job.out}" + (f", {fit_run.job.report}" if fit_run.job.report else ""))


def leaderboard_text(contest: Any) -> str:
    """Aligned columns, the best first; the chosen is marked, who is tied with the best, and who cannot win."""
    rows = [["", "model", "cost", "± s.e.", "behind", "± s.e.", "error", "log-loss", "seconds", ""]]
    rows += [_line(s, s.candidate is contest.winner.candidate) for s in contest.standings]
    return f"{columns(rows, right=(2, 3, 4, 5, 6, 7, 8))}\n{_signs(contest)}"


def _signs(contest: Any) -> str:
    """What the columns and words of the leaderboard mean."""
    best = {"cost": "the cheapest", "log-loss": "the least log-loss", "error": "the least error"}[contest.choose_by]
    return (
        f"*: chosen. s.e.: one standard error. behind: {contest.choose_by} above {best}, row by row.\n"
        "tied: within one standard error of the best (in log-loss: of the best of those tied before)."
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
    return [*name, *figures, "for comparison" if candidate.rival else tied]


def as_plain(fit_run: Any) -> dict[str, Any]:
    """What --json gives."""
    return {**fit_run.model.card, "files": {"model": fit_run.job.out, "report": fit_run.job.report}}
