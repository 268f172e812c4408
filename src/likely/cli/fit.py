"""`likely fit`: compare and fit classifiers of a table or of sequences; model file and HTML report."""

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
cost.csv: the header names the true classes, the first column the decisions;
rows beyond the classes are further actions, such as "ask an expert".
Names for --models, ordered from simple to complex:
  prior, nearest-centroid, naive-bayes, naive-bayes-t, naive-bayes-categorical,
  chow-liu, spherical, diagonal, diagonal-t, laplace, pooled, pooled-mean,
  shrunk-pooled, shrunk-diagonal, full, full-t, student-t, diagonal-counts,
  pooled-counts, shrunk-pooled-counts, shrunk-diagonal-counts, full-counts,
  mixture-diagonal-2, mixture-diagonal-4, mixture-full-2, mixture-tied,
  mixture-full-4, kernel-density, k-nearest-neighbors; for comparison boosting,
  forest, logistic.
prior: class frequencies, no column used. pooled = LDA, full = QDA; shrunk-pooled,
shrunk-diagonal: class covariances shrunk toward the pooled one, toward its diagonal.
-t: posterior predictive (Student t). -counts: counts are treated as real numbers.
Models that do not apply to the table are skipped with a message.
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--target", metavar="NAME", help="Column with the class labels.")
@options.deciding
@click.option(
    "--group", metavar="COL", help="Column with groups: rows of one group are never in both training and test."
)
@click.option("--time", metavar="COL", help="Time column: test on rows later than the training rows; order of frames.")
@click.option("--weight", metavar="COL", help="Column with sample weights; 2 counts as two copies.")
@options.reading
@click.option("--as", "kinds", multiple=True, metavar="NAME=KIND", callback=options.kinds_of,
              help="Type of a column: real, count, binary, category, ignore; repeatable.")  # fmt: skip
@click.option("--ignore", multiple=True, metavar="NAME", help="Column to leave out; repeatable.")
@options.sequences
@click.option(
    "--cv", type=options.CrossValidation(), help="Number of folds, loo, time, or the fraction of one hold-out set.  [5]"
)
@click.option("--models", default="all", metavar="all|NAMES", help="Rows: models to compare, separated by commas.")
@click.option("--criterion", type=click.Choice(["cost", "log-loss", "error"]), default="cost", show_default=True,
              help="Selection criterion; ties are broken by log-loss, then by simplicity.")  # fmt: skip
@click.option("--baselines/--no-baselines", "baselines", default=None,
              help="Rows: also score scikit-learn models, for comparison.  [small tables]")  # fmt: skip
@click.option(
    "--calibrate/--no-calibrate", default=True, help="Calibrate probabilities if that lowers the log-loss.  [yes]"
)
@click.option("-o", "--out", default="model.likely", show_default=True, help="Model file to write.")
@click.option("--report", metavar="FILE", help="Rows: write an HTML report.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed of folds and permutations."
)
@click.option("--jobs", type=click.IntRange(1), help="Number of threads.  [all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress output on stderr.")
def fit(as_json: bool, quiet: bool, format_: str | None, sequences: bool, **settings: Any) -> None:
    """Compare classifiers on a table by cross-validation, choose one, and write it to a model file.

    Column types are inferred, and columns that cannot be features (IDs, constants) are set aside; both are reported.
    Models are compared by cross-validation with the one-standard-error rule: models whose mean cost is within one
    standard error of the lowest are tied; of these, those whose log-loss is within one standard error of the lowest;
    the simplest of them is chosen and refitted to all rows. Standard errors are those of paired differences per row.
    --criterion replaces the cost by log-loss or error. Costs are given by --cost and --reject-cost; without them every
    error costs 1.

    FILE is CSV, TSV, Parquet, JSON lines or "-" for standard input; several files with the same columns are
    concatenated.

    With --sequences, FILE is a long table (one time step, or frame, per row; --id names the sequence), a folder or
    several files with one sequence each (sub-folders are the classes), lines of symbols (.txt) or FASTA. With
    --target, one hidden Markov model per class classifies whole sequences; without it, one hidden Markov model is
    fitted to all, and `likely decode` gives its states. A folder with sub-folders of WAV files gives a recognizer of
    spoken words. For rows only: --sql, --models, --baselines, --report and --cv time.
    """
    from likely.cli.fitting.fit_run import run_job

    if sequences:
        _of_sequences(settings, format_, as_json, quiet)
        return
    refuse_for_tables(settings)
    settings = {name: value for name, value in settings.items() if name not in ONLY_SEQUENCES}
    if settings["cv"] == "time" and not settings["time"]:
        raise click.UsageError("--cv time needs --time COL: the column with the time of each row.")
    console = Console(quiet)
    job = Job(format=format_, **settings)
    fit_run = run_job(job, console)
    print_summary(fit_run, console)
    if as_json:
        import json

        click.echo(json.dumps(as_plain(fit_run), indent=2))


def _of_sequences(settings: dict[str, Any], format_: str | None, as_json: bool, quiet: bool) -> None:
    from likely.cli.fitting import sequence_fit_run, sequence_fit_text
    from likely.cli.fitting.sound_folders import are_sounds, learn_words

    console, job = Console(quiet), sequence_job(settings, format_)
    if job.format is None and are_sounds(job.files):
        facts = learn_words(job, console)
    else:
        fit_run = sequence_fit_run.run_job(job, console)
        sequence_fit_text.print_summary(fit_run, console)
        facts = fit_run.card
    if as_json:
        import json

        click.echo(json.dumps({**facts, "files": {"model": job.out}}, indent=2))


def print_summary(fit_run: Any, console: Console) -> None:
    """Print the leaderboard, the chosen model and cautions."""
    from likely.cli.fitting.model_facts import verdict

    console("\n" + leaderboard_text(fit_run.contest))
    console("\n" + verdict(fit_run.contest), bold=True)
    if fit_run.hazards:
        console("\nbe careful:")
        for hazard in fit_run.hazards:
            console(f"  - {hazard}")
    console(f"\nwritten: {fit_run.job.out}" + (f", {fit_run.job.report}" if fit_run.job.report else ""))


def leaderboard_text(contest: Any) -> str:
    """Leaderboard in aligned columns, the best first; marks the chosen model, ties and baselines."""
    rows = [["", "model", "cost", "± s.e.", "behind", "± s.e.", "error", "log-loss", "seconds", ""]]
    rows += [_line(s, s.candidate is contest.winner.candidate) for s in contest.standings]
    return f"{columns(rows, right=(2, 3, 4, 5, 6, 7, 8))}\n{_signs(contest)}"


def _signs(contest: Any) -> str:
    """Legend of the leaderboard."""
    return (
        f"*: chosen. s.e.: one standard error. behind: {contest.criterion} above the lowest, paired per row.\n"
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


def as_plain(fit_run: Any) -> dict[str, Any]:
    """The output of --json."""
    return {**fit_run.model.card, "files": {"model": fit_run.job.out, "report": fit_run.job.report}}
