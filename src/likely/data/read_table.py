"""Reading tables: CSV, TSV, Parquet, JSON, and SQL queries over them, as Polars data frames."""

from __future__ import annotations

import glob
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any, Literal

import polars as pl

from likely.core.arrays import check_option
from likely.core.errors import DataError, by_caller, sentence
from likely.data.cells import clean_numbers, tidy
from likely.data.csv_reader import Source, first_line, read_delimited, refuse_names, why_unread
from likely.data.json_records import read_json, read_json_lines

Named = str | Path
Reader = Callable[[Source, str], pl.DataFrame]


def read_tabs(source: Source, whose: str) -> pl.DataFrame:
    """Tab-separated fields."""
    return read_delimited(source, whose, "\t")


def read_parquet(source: Source, whose: str) -> pl.DataFrame:
    """Typed columns of a Parquet file."""
    opened = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        frame = pl.read_parquet(opened, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(sentence(whose, "the file must be Parquet", why_unread(error))) from error
    if not frame.height or not frame.width:
        raise DataError(sentence(whose, "rows are needed", f"{frame.height} rows of {frame.width} columns"))
    return frame


TableFormat = Literal["csv", "tsv", "parquet", "jsonl", "json"]
READERS: dict[str, Reader] = {
    "csv": read_delimited,
    "tsv": read_tabs,
    "parquet": read_parquet,
    "jsonl": read_json_lines,
    "json": read_json,
}
ENDINGS = {"txt": "csv", "tab": "tsv", "pq": "parquet", "ndjson": "jsonl"} | {name: name for name in READERS}
PACKED = ("gz", "zst")


def read_table(
    source: Named | Sequence[Named],
    *,
    sql: str | None = None,
    format: str | None = None,
    missing: str | Iterable[str] = (),
    columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    r"""Read the table in a file, in several files (stacked), or in a query over them.

    Cells of text formats are strings, null where missing: `Table` infers their types.

    Parameters
    ----------
    source : str, path or sequence of them
        A path, a pattern such as `part-*.csv`, several of either, or "-" for standard input.
        CSV (separator detected), TSV, Parquet, JSON lines or a JSON array, by the file extension; also .gz and .zst.
    sql : str, optional
        A query; each source is a table named as its file without extension (a single one is also `data`).
    format : {"csv", "tsv", "parquet", "jsonl", "json"}, optional
        File format, if the extension does not determine it.
    missing : str or iterable of str, optional
        Further markers of missing values, besides empty, NA, NaN, null, ? and similar.
    columns : sequence of str, optional
        Read only these.

    Returns
    -------
    polars.DataFrame
        The rows.

    See Also
    --------
    Table : A table with inferred column types.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    >>> with open(path, "w") as file: _ = file.write("size;color\n1.5;red\nNA;blue\n")
    >>> read_table(path).rows()
    [('1.5', 'red'), (None, 'blue')]
    """
    sources = _listed(source)
    if sql is None:
        frame = stacked([part for one in sources for part in _frames_of(one, format)])
    else:
        frame = queried(sql, sources, format, missing)
    refuse_names(frame.columns, called(source))
    return tidy(chosen(frame, columns), missing)


def called(source: Any) -> str:
    """The name of a table in messages: its files, or "Table" without files.

    >>> called(["a.csv", "b.csv"]), called("-"), called({"x": [1]})
    ('a.csv, b.csv', 'standard input', 'Table')
    """
    sources = list(source) if isinstance(source, list | tuple) else [source]
    if not sources or not all(isinstance(one, str | Path) for one in sources):
        return "Table"
    return ", ".join("standard input" if str(one) == "-" else str(one) for one in sources)


def _listed(source: Any) -> list[Named]:
    sources = list(source) if isinstance(source, list | tuple) else [source]
    odd = [one for one in sources if not isinstance(one, str | Path)]
    if odd or not sources:
        got = type(odd[0]).__name__ if odd else "none"
        raise DataError(sentence("read_table", "a file is needed", got, "pass its path, or a data frame to Table.of"))
    return sources


def stacked(parts: list[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Files with the same columns, concatenated, columns in the order of the first."""
    (first, top), *others = parts
    for name, frame in others:
        if set(frame.columns) != set(top.columns):
            odd = ", ".join(f'"{column}"' for column in sorted(set(frame.columns) ^ set(top.columns)))
            raise DataError(sentence(name, f"columns must be those of {first}", f"{odd} in one of them only"))
    frames = [taken(frame, top.columns) for _, frame in parts]
    try:
        return pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError:  # strings and numbers: strings, as in a single CSV file
        return pl.concat([frame.cast(pl.String) for frame in frames])


def queried(sql: str, sources: Sequence[Named], format: str | None, missing: str | Iterable[str] = ()) -> pl.DataFrame:
    """The result of an SQL query; columns in which every present cell is a number are numeric in it."""
    tables: dict[str, pl.DataFrame] = {}
    for source in sources:
        name = stem(source)
        if name in tables:
            raise DataError(
                sentence(by_caller("--sql", "sql"), "table names must be unique", f'"{name}" twice', "rename a file")
            )
        frame = tidy(stacked(list(_frames_of(source, format))), missing)
        tables[name] = frame.select(clean_numbers(column) for column in frame)
    if len(tables) == 1:
        tables.setdefault("data", next(iter(tables.values())))
    return _answer(sql, tables)


def chosen(frame: pl.DataFrame, columns: Sequence[str] | None) -> pl.DataFrame:
    """The requested columns; a missing one is an error that suggests the nearest name."""
    for name in columns or ():
        require(name, frame.columns, "columns")
    return frame if columns is None else taken(frame, columns)


def taken(frame: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Columns by name: `select` would take "*" for all of them."""
    return pl.DataFrame([frame.get_column(name) for name in names])


def require(name: str, names: Sequence[str], whose: str) -> None:
    """Raise an error with similar names if a column does not exist."""
    if name not in names:
        expected, remedy = f'there must be a column "{name}"', did_you_mean(name, names)
        raise DataError(sentence(whose, expected, remedy=remedy))


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """A suggestion of the nearest names, or some of the existing names.

    >>> did_you_mean("clas", ["size", "Class"])
    'did you mean "Class"?'
    """
    lower = {known.lower(): known for known in reversed(names)}
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    if near:
        return "did you mean " + " or ".join(f'"{known}"' for known in near) + "?"
    shown = ", ".join(f'"{known}"' for known in names[:8])
    return f"there are {shown}" + (" …" if len(names) > 8 else "")


def stem(source: Named) -> str:
    """The name of a file as a table: without folders and known extensions.

    >>> stem("data/wine.csv.gz"), stem("-")
    ('wine', 'stdin')
    """
    if str(source) == "-":
        return "stdin"
    name = Path(source).name
    while Path(name).suffix[1:].lower() in (*PACKED, *ENDINGS):
        name = Path(name).stem
    return name


def _frames_of(source: Named, format: str | None) -> Iterable[tuple[str, pl.DataFrame]]:
    """Each file of a source, with its data frame."""
    if str(source) == "-":
        raw = sys.stdin.buffer.read()
        return [("standard input", reader_of(format or _format_of(raw), "standard input")(raw, "standard input"))]
    return [(str(path), _read_file(path, format)) for path in matching(source)]


def matching(source: Named) -> list[Path]:
    """The files of a path or pattern, sorted."""
    path = Path(source)
    if path.is_dir():
        pattern = f"{source}/*.csv"
        raise DataError(sentence(str(source), "a file is needed", "a folder", f"name its files, as in {pattern}"))
    if path.exists():
        return [path]
    found = sorted(Path(match) for match in glob.glob(str(source), recursive=True))
    files = [match for match in found if match.is_file()]
    if not files:
        near = _near(path)
        remedy = f'did you mean "{near}"?' if near else ""
        raise DataError(sentence(str(source), "there is no such file", remedy=remedy))
    return files


def reader_of(format: str, whose: str) -> Reader:
    """The reader of a format, by name."""
    check_option(format, TableFormat, whose, "format")
    return READERS[format]


def _read_file(path: Path, format: str | None) -> pl.DataFrame:
    """The table in a file, by its extension; a pipe can be read only once, so it is read completely."""
    if path.is_file():
        return reader_of(format or _format_by_ending(path), str(path))(path, str(path))
    raw = path.read_bytes()
    return reader_of(format or _format_of(raw), str(path))(raw, str(path))


def _format_by_ending(path: Path) -> str:
    endings = [suffix[1:].lower() for suffix in path.suffixes]
    if endings and endings[-1] in PACKED:
        endings.pop()
    ending = endings[-1] if endings else ""
    if ending not in ENDINGS:
        expected = f"the file extension must be one of .{', .'.join(ENDINGS)} (or those with .gz, .zst)"
        say = by_caller("use --format csv", 'pass format="csv"')
        remedy = "export it as CSV" if ending.startswith("xls") else f"{say} if that is what it is"
        raise DataError(sentence(str(path), expected, f'".{ending}"' if ending else "none", remedy))
    return ENDINGS[ending]


def _format_of(raw: bytes) -> str:
    """The format of standard input, by its first character."""
    start = raw[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()
    if raw[:4] == b"PAR1":
        return "parquet"
    return {b"{": "jsonl", b"[": "json"}.get(start[:1], "csv")


def _near(path: Path) -> Path | None:
    """The file in the same folder with the most similar name; extensions are not compared."""
    own = path.name.partition(".")[0].lower()
    for name in get_close_matches(path.name, _siblings(path), n=5):
        if SequenceMatcher(None, own, name.partition(".")[0].lower()).ratio() >= 0.7:
            return path.parent / name
    return None


def _siblings(path: Path) -> list[str]:
    try:
        return [other.name for other in path.parent.iterdir() if other.is_file()]
    except OSError:
        return []


def _answer(sql: str, tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    try:
        frame = pl.SQLContext(frames=tables).execute(sql, eager=True)
    except pl.exceptions.PolarsError as error:
        known = "; ".join(f"{name} ({', '.join(frame.columns)})" for name, frame in tables.items())
        raise DataError(
            sentence(by_caller("--sql", "sql"), first_line(error), remedy=f"the tables are {known}")
        ) from error
    if not frame.height or not frame.width:
        raise DataError(sentence(by_caller("--sql", "sql"), "the query must give rows", "none"))
    return frame
