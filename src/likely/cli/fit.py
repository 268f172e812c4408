"""`likely fit`: compare and fit classifiers of a table or of sequences; model file and HTML report."""

from __future__ import annotations

from typing import Any

import click

from likely.cli import options
from likely.cli.console import Console
from likely.cli.fitting.fit_job import job_of

EPILOG = """\b
Examples:
  likely fit wine.csv --target class --report report.html
  likely fit wine.csv --target class --cost cost.csv --reject-cost 0.3
  likely fit --sql "select * from a join b using (id)" a.csv b.parquet --target y
  likely fit walks.csv --sequences --id who --time t --target gait --report r.html
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
@click.option(
    "-o", "--output", "out", default="model.likely", show_default=True, metavar="FILE", help="Model file to write."
)
@click.option("--report", metavar="FILE", help="Write an HTML report.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Random seed of folds and permutations.",
)
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="Number of threads.  [all cores]")
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress output on stderr.")
def fit(as_json: bool, quiet: bool, format_: str | None, **settings: Any) -> None:
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
    spoken words. For rows only: --sql, --models, --baselines and --cv time.
    """
    from likely.cli.fitting.fit_run import run_job
    from likely.cli.fitting.fit_text import print_summary
    from likely.cli.fitting.model_facts import card_of

    console = Console(quiet)
    fit_run = run_job(job_of({**settings, "format": format_}), console)
    print_summary(fit_run, console)
    if as_json:
        import json

        files = {"model": fit_run.job.out, "report": fit_run.job.report}
        click.echo(json.dumps({**card_of(fit_run), "files": files}, indent=2))
