"""`likely fit`: compare and fit classifiers or regressors of a table, or classifiers of sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from likely.cli import options
from likely.cli.console import Console, amount, figure, nats
from likely.cli.fitting.fit_job import job_of

EPILOG = """\b
Examples:
  likely fit wine.csv --target class --report report.html
  likely fit wine.csv --target class --cost cost.csv --reject-cost 0.3
  likely fit houses.csv --target price --report report.html
  likely fit houses.csv --target price --loss asymmetric --over 3 --under 1
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
Names for --models where the target is a number:
  mean, linear, ridge, bayesian, ard, splines, quadratic, k-nearest-neighbors,
  radial; for comparison boosting, forest.
mean: no column used. ridge: penalty by leave-one-out. bayesian: evidence. ard: a prior
precision per column. splines: smooth functions of single columns. quadratic: squares
and products. radial: Gaussian functions of all columns. Densities and intervals of all
are those of held-out residuals.
Models that do not apply to the table are skipped with a message.
"""


MOST = 12  # classes or states up to which a confusion is shown


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--target", metavar="NAME", help="Column to predict: class labels, or numbers.")
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="What the target is.  [regression: more than 20 different numbers with fractions, or with fewer than "
    "five rows each; more than 200; or nearly all different]",
)
@options.deciding
@options.losing
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
@click.option("--criterion", "--choose-by", "criterion",
              type=click.Choice(["cost", "log-loss", "error", "loss", "log-score", "interval-score"]),
              help="Selection criterion; ties are broken by log-loss (log score), then by simplicity.  [cost; of "
                   "numbers loss]")  # fmt: skip
@click.option("--baselines/--no-baselines", "baselines", default=None,
              help="Rows: also score scikit-learn models, for comparison.  [small tables]")  # fmt: skip
@click.option(
    "--calibrate/--no-calibrate",
    default=True,
    help="Calibrate probabilities if that lowers the log-loss; intervals of numbers by held-out residuals.  [yes]",
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
    """Compare classifiers or regressors on a table by cross-validation, choose one, and write it to a model file.

    Column types are inferred, and columns that cannot be features (IDs, constants) are excluded; both are reported.
    Models are compared by cross-validation with the one-standard-error rule: models whose mean cost is within one
    standard error of the lowest are tied; of these, those whose log-loss is within one standard error of the lowest;
    the simplest of them is chosen and refitted to all rows. Standard errors are those of paired differences per row.
    --criterion replaces the cost by log-loss or error. Costs are given by --cost and --reject-cost; without them every
    error costs 1.

    A target of many different numbers is one of regression (--task says otherwise). The same rule holds with the mean
    loss (--loss, squared by default) in place of the cost, and the log score −log p(y | x) in place of log-loss; the
    interval score of 90 % intervals is shown beside.

    FILE is CSV, TSV, Parquet, JSON lines or "-" for standard input; several files with the same columns are
    concatenated.

    With --sequences, FILE is a long table (one time step, or frame, per row; --id names the sequence), a folder or
    several files with one sequence each (sub-folders are the classes), lines of symbols (.txt) or FASTA. With
    --target, one hidden Markov model per class classifies whole sequences; without it, one hidden Markov model is
    fitted to all, and `likely decode` gives its states. A folder with sub-folders of WAV files gives a recognizer of
    spoken words. For rows only: --sql, --models, --baselines and --cv time.
    """
    from likely.cli.fitting.fit_run import run_job
    from likely.cli.fitting.model_facts import card_of

    console = Console(quiet)
    fit_run = run_job(job_of({**settings, "format": format_}), console)
    print_summary(fit_run, console)
    if as_json:
        import json

        files = {"model": fit_run.job.out, "report": fit_run.job.report}
        click.echo(json.dumps({**card_of(fit_run), "files": files}, indent=2))


# ------------------------------------------------------------------------- the text


def print_summary(fit_run: Any, console: Console) -> None:
    """Print how the model was chosen, how well it does, and warnings."""
    if fit_run.contest is not None:
        from likely.cli.fitting.model_facts import verdict

        console("\n" + leaderboard_text(fit_run.contest))
        console("\n" + verdict(fit_run.contest), bold=True)
        console("\n".join(_performance(fit_run.contest)))
    elif fit_run.field is None:
        console("\n" + "\n".join(_states(fit_run)))
    if fit_run.warnings:
        console("\nwarnings:")
        for warning in fit_run.warnings:
            console(f"  - {warning}")
    console(f"\nwritten: {', '.join(filter(None, (fit_run.job.out, fit_run.job.report)))}")


def leaderboard_text(contest: Any) -> str:
    """Leaderboard in aligned columns, the best first; marks the chosen model, ties and baselines."""
    from likely.core.description import columns

    if contest.tie_breaker == "log-score":
        from likely.cli.fitting.real_targets import number_lines

        return f"{columns(number_lines(contest), right=(2, 3, 4, 5, 6, 7, 8, 9, 10))}\n{_signs(contest)}"
    rows = [["", "model", "cost", "± s.e.", "difference", "± s.e.", "error", "log-loss", "seconds", ""]]
    rows += [_line(s, s.candidate is contest.winner.candidate) for s in contest.results]
    return f"{columns(rows, right=(2, 3, 4, 5, 6, 7, 8))}\n{_signs(contest)}"


def _signs(contest: Any) -> str:
    """Legend of the leaderboard."""
    difference = f"{contest.criterion} above the lowest, paired per {contest.unit}"
    second = contest.tie_breaker.replace("-score", " score")
    return (
        f"*: chosen. s.e.: one standard error. difference: {difference}.\n"
        f"tied: within one standard error of the best (in {second}: of the best of those tied in the first criterion)."
    )


def _line(result: Any, won: bool) -> list[str]:
    from likely.core.description import clipped

    candidate, e = result.candidate, result.evaluation
    name = ["*" if won else "", candidate.name]
    if e is None:
        return [*name, *[""] * 6, f"{result.seconds:.1f}", f"failed: {clipped(result.failure, 90)}"]
    cost, difference, loss = e.decision_cost, result.difference, e.log_loss.value
    error = cost.se if cost.se > 1e-9 * abs(cost.value) else 0.0  # of one cost for all rows, rounding is left
    figures = [figure(cost.value), figure(error), figure(difference.value), figure(difference.se)]
    figures += [f"{e.error.value:.4f}", nats(loss), f"{result.seconds:.1f}"]
    tied = f"tied in {', '.join(result.ties)}" if result.ties else ""
    return [*name, *figures, "for comparison" if candidate.baseline else tied]


def _performance(contest: Any) -> Iterator[str]:
    """Figures of the chosen model on held-out data."""
    from likely.cli.fitting.fit_run import TRIVIAL

    e = contest.winner.evaluation
    if len([s for s in contest.results if s.candidate.key not in TRIVIAL and not s.candidate.baseline]) > 1:
        yield "(the model was chosen on the same folds: its figures are slightly optimistic)"
    yield ""
    yield f"on {len(e):,} held-out {contest.unit}s; intervals are at 95 %"
    if contest.tie_breaker == "log-score":
        width = max(map(len, e.figures()))
        for name, f in e.figures().items():
            yield f"  {name:<{width}}  {amount(f.value)} ({amount(f.low)}–{amount(f.high)})"
        return
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

    >>> print(*confusion([[3, 0], [1, 2]], ["a", "b"], ["a", "b"]), sep="\\n")
    truth \\ decided  a  b
    a                3  0
    b                1  2
    """
    from likely.core.description import clipped, columns

    rows = [["truth \\ decided", *(clipped(str(name), 12) for name in decided)]]
    rows += [
        [clipped(str(name), 15), *(f"{value:g}" for value in line)] for name, line in zip(truths, table, strict=True)
    ]
    yield columns(rows, right=tuple(range(1, len(rows[0]))))


def _states(fit_run: Any) -> Iterator[str]:
    if fit_run.choice is not None:
        yield str(fit_run.choice)
        yield ""
    found_states = fit_run.found.get("decoded")
    if found_states is not None:
        yield from _decoded(found_states, fit_run.model.state_names)
    from likely.estimation.novelty.held_out_frames import support
    from likely.hmm.estimators.hmm_description import states_table

    yield from states_table(fit_run.model.density_, fit_run.model.state_names, list(fit_run.data.kinds)).lines()
    value = fit_run.found["log_likelihood_per_frame"]
    if value is not None:
        yield ""
        yield f"log-likelihood of the training sequences: {value:.4f} nats per frame"
    yield from support(fit_run.model.density_)


def _decoded(found_states: dict[str, Any], names: list[str]) -> Iterator[str]:
    rate = f"{found_states['right']:.4f} ({found_states['low']:.4f}–{found_states['high']:.4f})"
    yield f"accuracy of the Viterbi path on held-out frames with known states: {rate}"
    if len(names) <= MOST:
        yield from confusion(found_states["confusion"], names, names)
    yield ""
