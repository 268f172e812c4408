"""`likely align`: dynamic time warping of two sequences."""

from __future__ import annotations

from typing import Any

import click

from likely.cli import options
from likely.cli.outputs import STREAM, check_outputs
from likely.core.errors import DataError, sentence
from likely.io.atomic_write import write_text

EPILOG = """\b
Examples:
  likely align a.csv b.csv --columns height -o path.csv --plot path.png
  likely align walks.csv --id who --time t --ids ann bob --band 0.1
The path has one line per matched pair: the frames of A and B, counted from 0,
and their values.
"""


class BandType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Band: a fraction of the longer sequence, a number of frames, or "itakura"."""

    name = "0.1|5|itakura"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """What `dtw` takes."""
        if not isinstance(value, str) or value == "itakura":
            return value
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if value.isdigit():
            return int(value)
        if 0 < number < 1:
            return number
        self.fail(f'{value!r} is neither a fraction below 1, nor an integer of frames, nor "itakura".', param, ctx)


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="A [B]")
@click.option("--id", "id", metavar="COL", help="One long table: column with the sequence ID of each row.")
@click.option("--ids", nargs=2, metavar="A B", help="One long table: the IDs of the two sequences.")
@click.option("--time", metavar="COL", help="Column that orders the frames.")
@click.option("--columns", multiple=True, metavar="COL,...", callback=options.names_of,
              help="Numeric columns to compare; repeatable.  [all that no other option names]")  # fmt: skip
@click.option("--band", type=BandType(), help="Sakoe-Chiba band (fraction or frames) or Itakura parallelogram.  [none]")
@click.option("--metric", type=click.Choice(["cityblock", "sqeuclidean", "euclidean", "cosine"]), default="cityblock",
              show_default=True, help="Local distance between two frames.")  # fmt: skip
@click.option("--step-pattern", metavar="NAME", default="unweighted", show_default=True,
              help='Step pattern: unweighted, symmetric, asymmetric, "symmetric 1/2", "symmetric 1", …')  # fmt: skip
@click.option("--open-begin", is_flag=True, help="Subsequence alignment: the match may begin later in B.")
@click.option("--open-end", is_flag=True, help="Subsequence alignment: the match may end earlier in B.")
@click.option("--format", "format_", metavar="NAME", help="File format.  [by file extension]")
@click.option("--missing", multiple=True, metavar="TOKEN", help="Another token for a missing value; repeatable.")
@click.option("-o", "--output", "out", metavar="FILE|-", help="Write the warping path as CSV.")
@click.option("--plot", metavar="FILE", help="Plot the warping path (.png, .svg, .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def align(
    files: tuple[str, ...], id: str | None, ids: tuple[str, str] | None, time: str | None, columns: tuple[str, ...],
    format_: str | None, missing: tuple[str, ...], out: str | None, plot: str | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Align two sequences by dynamic time warping (DTW): print the distance and, on request, the warping path.

    A and B are files with one frame (time step) per row (CSV, TSV, Parquet, .npy, …), or two sequences of one long
    table. Missing values are left out of the local distance.
    """
    from likely.alignment.dtw import dtw
    from likely.cli.figures import check_picture, saved

    _usage(files, id, ids)
    check_outputs({"-o": out, "--plot": plot}, files)
    check_picture(plot)
    (a, b), names = _both(files, {"id": id, "time": time}, ids, columns, missing, format_)
    done = dtw(a, b, **how)
    if out is not None:
        text = path_csv(done, a, b, names)
        click.echo(text, nl=False) if out == STREAM else write_text(out, text)
    if plot is not None:
        from likely.plots.warping_plot import plot_warping_path

        saved(plot_warping_path(a, b, done).figure, plot)
    click.echo(_json(done) if as_json else figures_text(done), err=out == STREAM)


def _usage(files: tuple[str, ...], id: str | None, ids: tuple[str, str] | None) -> None:
    if len(files) > 2:
        raise click.UsageError("Two sequences are aligned: name two files, or one with --id COL --ids A B.")
    if (len(files) == 1) != (ids is not None) or (ids is not None and id is None):
        raise click.UsageError("Name two files, or one long table with --id COL --ids A B.")


def _both(
    files: tuple[str, ...], roles: dict[str, Any], ids: tuple[str, str] | None, columns: tuple[str, ...], missing: Any,
    format: str | None,
) -> tuple[tuple[Any, Any], tuple[str, ...]]:  # fmt: skip
    from likely.data.read_sequences import read_sequences

    asked: dict[str, Any] = {"columns": list(columns) or None, "missing": missing, "format": format, **roles}
    if ids is not None:
        found = read_sequences(files[0], **asked)
        return (_numbers(found, _place(found, ids[0])), _numbers(found, _place(found, ids[1]))), found.columns
    one, other = (read_sequences(file, **asked) for file in files)
    for file, found in zip(files, (one, other), strict=True):
        if len(found) != 1:
            remedy = "use --id and --ids with one long table"
            raise DataError(sentence(file, "a file must hold one sequence", len(found), remedy))
    if len(one.columns) != len(other.columns):
        expected = f"columns must be as many as those of {files[0]}: {', '.join(one.columns)}"
        raise DataError(sentence(files[1], expected, ", ".join(other.columns), "choose some with --columns"))
    if one.columns != other.columns:
        if set(one.columns) == set(other.columns):  # in another order: by name
            other = read_sequences(files[1], **{**asked, "columns": list(one.columns)})
        else:
            pairs = ", ".join(f"{a} with {b}" for a, b in zip(one.columns, other.columns, strict=True) if a != b)
            click.echo(f"columns are matched by their place: {pairs}", err=True)
    return (_numbers(one, 0), _numbers(other, 0)), one.columns


def _place(found: Any, name: str) -> int:
    """Index of the sequence with that ID, given as text or as a number."""
    at = [i for i, one in enumerate(found.ids.tolist()) if str(one) == name]
    if not at:
        from likely.data.read_table import did_you_mean

        raise DataError(sentence("--ids", f'there must be a sequence "{name}"',
                                 remedy=did_you_mean(name, [str(one) for one in found.ids.tolist()])))  # fmt: skip
    return at[0]


def _numbers(found: Any, i: int) -> Any:
    import numpy as np

    x = found.x[i]
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "biuf":
        words = "text among them" if not isinstance(x, np.ndarray) else "words"
        raise DataError(sentence("align", "frames must be numbers", words, "choose columns with --columns"))
    return x


def figures_text(done: Any) -> str:
    """The distance and related numbers, one per line."""
    n, m = done.shape
    lines = [("distance", f"{done.distance:.6g}"), ("per frame", f"{done.normalized:.6g}"),
             ("frames", f"{n:,} of A, {m:,} of B"), ("path", f"{len(done.path):,} pairs")]  # fmt: skip
    return "\n".join(f"{name:<9} {value}" for name, value in lines)


def _json(done: Any) -> str:
    import json

    return json.dumps({"distance": done.distance, "total": done.total, "normalized": done.normalized,
                       "frames": list(done.shape), "pairs": len(done.path)})  # fmt: skip


def path_csv(done: Any, a: Any, b: Any, names: tuple[str, ...]) -> str:
    """The matched frames and their values."""
    import polars as pl

    i, j = done.path[:, 0], done.path[:, 1]
    columns = [pl.Series("a", i), pl.Series("b", j)]
    for side, x, at in (("a", a, i), ("b", b, j)):
        table = x[:, None] if x.ndim == 1 else x
        columns += [pl.Series(f"{side} {name}", table[at, c]).fill_nan(None) for c, name in enumerate(names)]
    return pl.DataFrame(columns).write_csv()
