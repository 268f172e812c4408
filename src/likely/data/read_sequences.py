"""Reading sequences from files: long tables, one file per sequence, lines of symbols, FASTA records."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from likely.core.arrays import Array, Index, check_option
from likely.core.errors import DataError, DomainError, sentence
from likely.core.long_tables import first_appearances
from likely.core.ragged import Ragged
from likely.data.cells import tidy
from likely.data.column_roles import refuse_missing_values
from likely.data.csv_reader import SNIFFED_LINES, lines_of, looks_like_data, read_delimited, refuse_names, sniffed
from likely.data.read_table import (
    ENDINGS,
    PACKED,
    Named,
    TableFormat,
    chosen,
    matching,
    read_table,
    reader_of,
    stacked,
    taken,
)
from likely.data.symbol_files import SymbolSequences, as_cells, read_array, read_fasta, read_symbols
from likely.data.table_to_sequences import FrameRoles, cut
from likely.data.target_labels import Labels, labels

FASTA = ("fa", "fasta", "fna", "faa")
SymbolFormat = Literal["npy", "fasta", "symbols"]
SequenceFormat = Literal[TableFormat, SymbolFormat]
SYMBOLS: dict[str, Callable[[Path], SymbolSequences]] = {
    "npy": read_array,
    "fasta": read_fasta,
    "symbols": read_symbols,
}
FORMATS = ENDINGS | {"txt": "symbols", "npy": "npy"} | dict.fromkeys(FASTA, "fasta")
ASIDE = re.compile(r"(\.|readme|licen[cs]e|copying|citation)", re.IGNORECASE)  # other files found in data folders


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences with their ids, and optional labels, weights, states and times; what was not requested is None.

    Parameters
    ----------
    x : Ragged
        The n sequences.
    ids : ndarray (n,)
        Their names.
    labels : ndarray (n,), optional
        The class of each sequence, missing (None or NaN) where unknown.
    columns : tuple of str, optional
        Names of the columns of a frame.
    weight : ndarray (n,), optional
        Weight per sequence.
    states : Ragged, optional
        The label of each frame, missing where unknown.
    time : Ragged, optional
        The time of each frame, as written.

    See Also
    --------
    read_sequences : Sequences from files.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> both = lk.Sequences(lk.Ragged.from_list([[1.0, 2.0], [3.0]]), np.array(["a", "b"]))
    >>> len(both.x), both.ids.tolist()
    (2, ['a', 'b'])
    """

    x: Ragged
    ids: NDArray[Any]
    labels: Labels | None = None
    columns: tuple[str, ...] = ()
    weight: Array | None = None
    states: Ragged | None = None
    time: Ragged | None = None

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.x)

    def __repr__(self) -> str:
        more = [name for name in ("labels", "weight", "states") if getattr(self, name) is not None]
        return f"Sequences({self.x!r}{''.join(f', {name}' for name in more)})"


def read_sequences(
    path: Named | Sequence[Named],
    *,
    id: str | None = None,
    time: str | None = None,
    columns: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    states: str | None = None,
    missing: str | Iterable[str] = (),
    format: str | None = None,
) -> Sequences:
    r"""Read the sequences in a file or folder.

    A table has one row per frame (any file that `read_table` takes); the same id in two files means two sequences, and
    then all are named file:id. In a folder, a pattern or several paths every file is a sequence, named after the file;
    the names of subfolders are the labels. In a folder also .npy arrays; files without a header are accepted if they
    hold numbers. A .txt file has one sequence per line, symbols separated by blanks; FASTA (.fa, .fasta) one sequence
    of letters per record.

    Parameters
    ----------
    path : str, path or sequence of them
        A file, a folder, a pattern, or several.
    id : str, optional
        The column that identifies the sequence; without it a file is one sequence.
    time : str, optional
        The column that orders the frames of a sequence, numbers or dates (a stable sort).
    columns : str or sequence of str, optional
        The columns of a frame; None takes all without a role.
    label : str, optional
        The column of the class, constant within a sequence.
    weight : str, optional
        The column of the weight, constant within a sequence.
    states : str, optional
        The column with the label of each frame.
    missing : str or iterable of str, optional
        Further markers of missing values.
    format : str, optional
        File format, if the extension does not determine it.

    Returns
    -------
    Sequences
        The sequences and their ids; labels, weights, states and times where requested.

    See Also
    --------
    read_table : Tables.

    Examples
    --------
    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "walks.csv")
    >>> with open(file, "w") as f: _ = f.write("who,t,x\nann,2,5\nbob,1,6\nann,1,7\n")
    >>> walks = read_sequences(file, id="who", time="t")
    >>> walks.ids.tolist(), walks.x[0].tolist()
    (['ann', 'bob'], [7.0, 5.0])
    """
    roles = FrameRoles(id, time, label, weight, states)
    if id is not None:
        return _long_table(path, roles, columns, missing, format)
    files, home = _files(path)
    kind = _kind(files, format, is_table=bool(roles.named() or columns))
    if kind in SYMBOLS:
        return _of_symbols(files, home, kind, roles, columns, missing)
    return _of_tables(files, home, roles, columns, missing, format)


# ------------------------------------------------------------------- one long table


def _long_table(path: Any, roles: FrameRoles, columns: Any, missing: Any, format: str | None) -> Sequences:
    """Sequences of a long-format table with an id column."""
    assert roles.id is not None
    files, home = ([path], None) if str(path) == "-" else _files(path)
    needed = None if columns is None else _with_roles(columns, roles)
    parts = [(str(file), _narrowed(read_table(file, missing=missing, format=format), needed)) for file in files]
    frame, heights = stacked(parts), [part.height for _, part in parts]
    measured = roles.measured(frame, columns)
    refuse_missing_values(frame[roles.id], "every row needs an id")
    named = labels(frame[roles.id])
    whose, ids = first_appearances(named, roles.id)
    if len(heights) > 1:
        whose, ids = _of_their_files(whose, ids, np.repeat(np.arange(len(heights)), heights), _names(files, home))
    found = cut(frame, whose, roles, measured, missing)
    return Sequences(found.x, ids, found.labels, tuple(measured), found.weight, found.states, found.time)


def _narrowed(frame: pl.DataFrame, needed: list[str] | None) -> pl.DataFrame:
    """The required columns, if all are there; other columns may differ between files."""
    return frame if needed is None or not set(needed) <= set(frame.columns) else taken(frame, needed)


def _of_their_files(whose: Index, ids: NDArray[Any], file: Index, names: NDArray[Any]) -> tuple[Index, NDArray[Any]]:
    """Ids that occur in several files are different sequences, and are then prefixed by the file name."""
    pair, both = first_appearances(file * len(ids) + whose, "id")
    if len(both) == len(ids):
        return whose, ids
    return pair, np.array([f"{names[code // len(ids)]}:{ids[code % len(ids)]}" for code in both.tolist()])


# ------------------------------------------------------------------ a file each


def _of_tables(
    files: list[Path], home: Path | None, roles: FrameRoles, columns: Any, missing: Any, format: str | None
) -> Sequences:
    """Tables, one per sequence; column types are determined for all of them together."""
    asked = None if columns is None else _with_roles(columns, roles)
    parts = [(str(path), chosen(_table(path, format), asked)) for path in files]
    frame, heights = tidy(stacked(parts), missing), [part.height for _, part in parts]
    try:
        measured = roles.measured(frame, columns)
        found = cut(frame, np.repeat(np.arange(len(parts)), heights), roles, measured, missing)
    except DataError as error:
        raise _in_its_file(error, files, heights) from error
    known = found.labels if roles.label is not None else folder_labels(files, home)
    return Sequences(found.x, _names(files, home), known, tuple(measured), found.weight, found.states, found.time)


def _with_roles(columns: Any, roles: FrameRoles) -> list[str]:
    names = [columns] if isinstance(columns, str) else list(columns)
    return list(dict.fromkeys([*names, *roles.named().values()]))


def _table(path: Path, format: str | None) -> pl.DataFrame:
    """The table in a file; without a header, columns are numbered from 0."""
    kind = format or FORMATS.get(_ending(path), "")
    if kind in ("csv", "tsv") and (frame := _without_header(path, "\t" if kind == "tsv" else None)) is not None:
        return frame
    frame = reader_of(kind, str(path))(path, str(path))
    refuse_names(frame.columns, str(path))
    return frame


def _without_header(path: Path, separator: str | None) -> pl.DataFrame | None:
    """A table of numbers without a header; None if there is a header."""
    head = [line for line in lines_of(path, str(path), SNIFFED_LINES) if line.strip()]
    separator = separator or (sniffed(head) if head else None)
    fields = head[0].split(separator) if head else []
    if not fields or not looks_like_data([field.strip().strip('"') for field in fields]):
        return None
    header = (separator or ",").join(f"column {i}" for i in range(len(fields)))
    text = "\n".join([header, *lines_of(path, str(path))])
    try:
        frame = read_delimited(text.encode(), str(path), separator)
    except DataError as error:
        raise DataError(re.sub(r"\bline (\d+)", lambda m: f"line {int(m[1]) - 1}", str(error))) from error
    return frame.rename({name: name.removeprefix("column ") for name in frame.columns})


def _in_its_file(error: DataError, files: list[Path], heights: list[int]) -> DataError:
    """An error with the row number in its file instead of that in all files together."""
    found = re.match(r"row (\d+)(.*)", str(error), re.DOTALL)
    if found is None:
        return error
    before = np.cumsum([0, *heights])
    at = int(np.searchsorted(before, int(found[1]) - 1, side="right")) - 1
    return DataError(f"{files[at]}: row {int(found[1]) - before[at]}{found[2]}")


# ------------------------------------------------------------------- symbols, arrays


def _of_symbols(
    files: list[Path], home: Path | None, kind: str, roles: FrameRoles, columns: Any, missing: Any
) -> Sequences:
    """Files of arrays, lines or records, each with one or more sequences."""
    for role in [*roles.named(), *(["columns"] if columns is not None else [])]:
        raise DomainError(sentence(role, "only tables have columns", f"{files[0]}, {kind}", f"leave {role} out"))
    found = [SYMBOLS[kind](path) for path in files]
    _refuse_unlike(files, found)
    frames = np.concatenate([one.frames for one in found])
    x = Ragged.of(as_cells(frames, missing) if kind == "symbols" else frames, [m for one in found for m in one.lengths])
    known = folder_labels(files, home)
    repeats = [len(one.names) for one in found]
    names = ("symbol",) if x.values.ndim == 1 else tuple(map(str, range(x.values.shape[1])))
    return Sequences(x, _inner_names(files, home, found), None if known is None else known.repeat(repeats), names)


def _refuse_unlike(files: list[Path], found: list[SymbolSequences]) -> None:
    """Raise an error unless all arrays have the same number of columns and the same type."""
    wanted = found[0].frames
    for path, one in zip(files, found, strict=True):
        a = one.frames
        if a.shape[1:] != wanted.shape[1:] or (a.dtype.kind in "US") != (wanted.dtype.kind in "US"):
            expected = f"frames must be {wanted.dtype} of shape {wanted.shape[1:]}, as in {files[0]}"
            raise DataError(sentence(str(path), expected, f"{a.dtype} of shape {a.shape[1:]}"))


def _inner_names(files: list[Path], home: Path | None, found: list[SymbolSequences]) -> NDArray[Any]:
    """Names of the sequences within a single file; with several files, prefixed by the file name."""
    if len(files) == 1 and home is None and found[0].names != [""]:
        return np.array(found[0].names)
    outer = _names(files, home).tolist()
    both = zip(outer, found, strict=True)
    return np.array([f"{name}:{inner}".rstrip(":") for name, one in both for inner in one.names])


# ---------------------------------------------------------------------------- files


def _files(path: Any) -> tuple[list[Path], Path | None]:
    """The selected files, and the folder, if one was given."""
    sources = list(path) if isinstance(path, list | tuple) else [path]
    if not sources or not all(isinstance(one, str | Path) for one in sources):
        got = type(path).__name__ if sources else "none"
        raise DataError(sentence("read_sequences", "a file or folder is needed", got, "pass its path"))
    if len(sources) == 1 and Path(sources[0]).is_dir():
        return _inside(Path(sources[0])), Path(sources[0])
    return [file for one in sources for file in matching(one)], None


def _inside(folder: Path) -> list[Path]:
    """The files of a folder and its subfolders, sorted; hidden files, notes and licenses are ignored."""
    every = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in every if not any(ASIDE.match(part) for part in path.relative_to(folder).parts)]
    if not files:
        got = f"{len(every)} that are hidden or notes" if every else "none"
        raise DataError(sentence(str(folder), "a folder must hold files, each a sequence", got))
    return files


def _kind(files: list[Path], format: str | None, is_table: bool) -> str:
    """The common kind of all files: "table", or one of `SYMBOLS`; if columns have roles, text is a table."""
    if format is not None:
        check_option(format, SequenceFormat, "read_sequences", "format")
    kinds = [_kind_of(path, format, is_table) for path in files]
    odd = next((path for path, kind in zip(files, kinds, strict=True) if kind != kinds[0]), None)
    if odd is not None:
        remedy = f'name files of one kind, as in "{odd.parent}/*{odd.suffix}"'
        raise DataError(sentence(str(odd), f"files must be of one kind, as {files[0]} is", odd.suffix, remedy))
    return kinds[0]


def _kind_of(path: Path, format: str | None, is_table: bool) -> str:
    ending = _ending(path)
    if format is None and ending not in FORMATS:
        expected = f"the file extension must be one of .{', .'.join(FORMATS)}"
        remedy = "use lk.speech.SpokenWords for audio" if ending == "wav" else "pass format= or move the file"
        raise DataError(sentence(str(path), expected, f'".{ending}"' if ending else "none", remedy))
    kind = format or FORMATS[ending]
    return kind if kind in SYMBOLS and not (ending == "txt" and is_table and format is None) else "table"


def _ending(path: Path) -> str:
    endings = [suffix[1:].lower() for suffix in path.suffixes]
    if endings and endings[-1] in PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def _names(files: list[Path], home: Path | None) -> NDArray[Any]:
    """Names of files: paths within the given folder, or file names, without extensions."""
    shown = [path.relative_to(home) if home else Path(path.name) for path in files]
    names = [path.with_name(_bare(path)).as_posix() for path in shown]
    if len(set(names)) < len(names):  # equal names are distinguished by folder or extension
        names = [path.as_posix() for path in ([path.relative_to(home) for path in files] if home else files)]
    return np.array(names)


def _bare(path: Path) -> str:
    name = path.name
    while Path(name).suffix[1:].lower() in (*PACKED, *FORMATS) and Path(name).stem:
        name = Path(name).stem
    return name


def columns_of(file: Path, format: str | None = None, is_table: bool = True) -> list[str] | None:
    """The column names of a table, from its header alone if possible; None if it has none, or is empty.

    `is_table`: whether a .txt file is one.
    """
    if _kind_of(file, format, is_table) in SYMBOLS:
        return None
    kind = format or FORMATS[_ending(file)]
    if kind == "parquet":
        return list(pl.read_parquet_schema(file))
    if kind not in ("csv", "tsv", "symbols"):
        return read_table(file, format=format).columns
    head = [line for line in lines_of(file, str(file), SNIFFED_LINES) if line.strip()]
    if not head:
        return None
    separator = "\t" if kind == "tsv" else sniffed(head)
    return [name.strip() for name in next(csv.reader([head[0].removeprefix("\ufeff")], delimiter=separator))]


def all_files(path: Any) -> list[Path]:
    """The files of a path, a pattern, a folder or a list of these; at least one."""
    return _files(path)[0]


def folder_labels(files: Sequence[Path], home: Path | None) -> Labels | None:
    """The subfolder of each file (n,) as its label; None if all files lie in the folder itself.

    >>> folder_labels([Path("speech/one/a.csv"), Path("speech/two/b.csv")], Path("speech")).tolist()
    ['one', 'two']
    """
    if home is None:
        return None
    parents = [path.relative_to(home).parent.as_posix() for path in files]
    if set(parents) == {"."}:
        return None
    if "." in parents:
        return np.array([None if parent == "." else parent for parent in parents], dtype=object)
    return np.array(parents)
