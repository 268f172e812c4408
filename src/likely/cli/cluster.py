"""`likely cluster`: mixture-model clustering of a table, with a profile per cluster."""

from __future__ import annotations

from typing import Any

import click

from likely.cli import options
from likely.cli.console import Console
from likely.core.description import columns

EPILOG = """\b
Examples:
  likely cluster faithful.csv --report report.html
  likely cluster customers.parquet --id customer --n-components 5 --save-model model.likely
  likely predict model.likely new.csv
Columns of the output: those of the input, cluster (from 1, the largest first)
and probability.
"""


class Number(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number of clusters, or "auto"."""

    name = "auto|K"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """None where the number is to be chosen."""
        if value is None or value == "auto":
            return None
        if str(value).isdigit() and int(value) >= 1:
            return int(value)
        self.fail(f'{value!r} is neither "auto" nor a number of clusters, 1 or more.', param, ctx)


def names_of(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Column names, with commas between them or one at a time."""
    return tuple(name.strip() for one in given for name in one.split(",") if name.strip())


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--n-components", type=Number(), default="auto", show_default=True, help="Number of clusters (mixture components)."
)
@click.option("--criterion", type=click.Choice(["bic", "held-out", "prior"]), default="bic", show_default=True,
              help="Criterion that chooses the number: BIC, held-out likelihood, or a sparse prior.")  # fmt: skip
@click.option("--max-components", metavar="K", type=click.IntRange(1), default=10, show_default=True,
              help="Largest number to try; the search stops three beyond the lowest BIC.")  # fmt: skip
@click.option("--weight", metavar="COL", help="Column with sample weights; 2 counts as two copies.")
@click.option("--id", "id", metavar="COL", help="Column with row IDs; not a feature.")
@click.option("--ignore", multiple=True, metavar="COL,...", callback=names_of, help="Columns to leave out; repeatable.")
@options.reading
@click.option("--as", "kinds", multiple=True, metavar="NAME=KIND", callback=options.kinds_of,
              help="Type of a column: real, count, binary, category, ignore; repeatable.")  # fmt: skip
@click.option(
    "--n-init", metavar="N", type=click.IntRange(1), default=3, show_default=True, help="Number of initializations."
)
@click.option("--seed", metavar="N", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@click.option("-o", "--output", "out", default="clusters.csv", show_default=True, metavar="FILE|-",
              help="CSV output: rows with their clusters.")  # fmt: skip
@click.option("--save-model", metavar="FILE",
              help="Also write the fitted mixture to a model file, for `likely predict`.")  # fmt: skip
@click.option("--report", metavar="FILE", help="Write an HTML report.")
@click.option("--json", "as_json", is_flag=True, help="Print sizes, profiles and model selection as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress progress output on stderr.")
def cluster(as_json: bool, quiet: bool, format_: str | None, **given: Any) -> None:
    """Cluster the rows of a table with a mixture model, and describe how each cluster differs.

    Each cluster is one component of a mixture: real columns are jointly Gaussian in it, counts Poisson, categorical
    columns categorical; values may be missing. The number of clusters is chosen by BIC; the held-out log-likelihood and
    the number of components that a sparse Dirichlet prior leaves are shown for comparison. Larger numbers are tried
    until BIC has not decreased for three of them.

    FILE is CSV, TSV, Parquet, JSON lines or "-" for standard input; several files with the same columns are
    concatenated.
    """
    from likely.cli.clustering.cluster_run import ClusterJob, facts_of, found_clusters

    if as_json and given["out"] == "-":
        raise click.UsageError("--json and -o - would both write to standard output: name a file with -o.")
    console = Console(quiet)
    done = found_clusters(ClusterJob(format=format_, **given), console)
    print_summary(done, console)
    if as_json:
        import json

        click.echo(json.dumps(facts_of(done), indent=2))


def print_summary(c: Any, console: Console) -> None:
    """Print the number of clusters and why, sizes and profiles, certainty of the assignment, and warnings."""
    console(f"\n{c.found.why}", bold=True)
    console("\n" + profile_text(c))
    console(f"\ncertainty: the most probable cluster of a row has probability {c.mean_certainty:.3f} on average; "
         f"below 0.8 in {c.unsure:.1%} of rows")  # fmt: skip
    if c.warnings:
        console("\nwarnings:")
        for warning in c.warnings:
            console(f"  - {warning}")
    written = [file for file in (c.job.out, c.job.save_model, c.job.report) if file is not None and file != "-"]
    if written:
        console(f"\nwritten: {', '.join(written)}")


def profile_text(c: Any) -> str:
    """Aligned lines, one per cluster."""
    from likely.cli.clustering.cluster_profiles import trait_words

    rows = [["cluster", "rows", "share", "what makes it different"]]
    total = c.sizes.sum()
    for k, size in enumerate(c.sizes.tolist()):
        words = ", ".join(trait_words(c.traits, k)) or (
            "all rows" if len(c.sizes) == 1 else "close to the mean of all rows"
        )
        rows.append([str(k + 1), f"{size:,.6g}", f"{size / total:.1%}", words])
    return columns(rows, right=(0, 1, 2))
