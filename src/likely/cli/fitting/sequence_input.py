"""Reading of sequences for the model of a file: columns by name or place; errors speak of options."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.description import counted
from likely.core.errors import DataError, LikelyError, sentence

if TYPE_CHECKING:
    from likely.data.read_sequences import Sequences

SHOWN = 8  # columns, classes or names that a line tells


def listed(words: Any) -> str:
    """Words with commas, the first few of many.

    >>> listed("abcdefghij")
    'a, b, c, d, e, f, g, h, … (10 in all)'
    """
    words = list(words)
    return ", ".join(words) if len(words) <= SHOWN else f"{', '.join(words[:SHOWN])}, … ({len(words)} in all)"


def frames_fingerprint(columns: Mapping[str, Any], lengths: Any) -> str:
    """The fingerprint of sequences: names, values (T,), and the sequence that each frame belongs to."""
    import polars as pl

    from likely.data.table_fingerprint import fingerprint

    cells = {name: a.tolist() if a.dtype == object else a for name, a in columns.items()}
    return fingerprint(pl.DataFrame({"": np.repeat(np.arange(len(lengths)), lengths), **cells}))


def renamed(found: Any, id: str | None, files: tuple[str, ...]) -> tuple[str, ...]:
    """Note on sequences of several files with the same ID."""
    from likely.data.read_sequences import all_files

    ids = [str(name) for name in found.ids.tolist()]
    if id is None or not all(":" in name for name in ids) or len(all_files(source_of(files))) < 2:
        return ()
    return (f'the same id in two files means two sequences: they are called "{found.ids[0]}" and so on',)


@contextmanager
def spooled(files: tuple[str, ...], symbols: bool = False) -> Iterator[tuple[str, ...]]:
    """Files that can be read twice: standard input and pipes are laid down in one, called by what they hold."""
    from tempfile import TemporaryDirectory

    if all(name != "-" and (Path(name).is_file() or Path(name).is_dir() or not Path(name).exists()) for name in files):
        yield files
        return
    with TemporaryDirectory() as folder:
        laid = [_as_file(name, Path(folder), symbols) for name in files]
        try:
            yield tuple(laid)
        except LikelyError as error:
            text = re.sub(re.escape(f"{folder}/standard input") + r"\.\w+", "standard input", str(error))
            raise type(error)(text) from error


def _as_file(name: str, folder: Path, symbols: bool) -> str:
    if name != "-" and (Path(name).is_file() or not Path(name).exists()):
        return name
    raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    called = "standard input" if name == "-" else Path(name).name
    path = folder / f"{called}.{_ending_of(raw, symbols)}"
    path.write_bytes(raw)
    return str(path)


STARTS = {b"PAR1": "parquet", b"RIFF": "wav", b"\x93NUM": "npy"}


def _ending_of(raw: bytes, symbols: bool) -> str:
    """What bytes are, by how they begin; text is a table, or lines of symbols for a model of these."""
    if raw[:4] in STARTS:
        return STARTS[raw[:4]]
    start = raw[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"{": "jsonl", b"[": "json", b">": "fa"}.get(start, "txt" if symbols else "csv")


FLAGS = {"id": "--id", "time": "--time", "states": "--states-column", "weight": "--weight", "columns": "--columns"}


@contextmanager
def in_flags(id: str | None, label: str = "--target", names: Mapping[str, str] = FLAGS) -> Iterator[None]:
    """Make errors about column roles name the command-line options."""
    try:
        yield
    except LikelyError as error:
        raise type(error)(_in_flags(str(error), id, {**names, "label": label})) from error


def _in_flags(text: str, id: str | None, names: Mapping[str, str]) -> str:
    head, colon, rest = text.partition(":")
    text = f"{names.get(head, head)}{colon}{rest}"
    text = re.sub(r"is the (\w+) already", lambda m: f"is {names.get(m[1], m[1])} already", text)
    text = re.sub(r"leave (\w+) out", lambda m: f"leave {names.get(m[1], m[1])} out", text)
    for ours, theirs in WORDS:
        text = text.replace(ours, theirs)
    if "--states-column" not in names.values():  # of a model, whose columns are what they are
        text = re.sub(r",? or (use )?--as [^.]*", "", text)
    if id is None and "the same in all rows of a sequence" in text:
        text = text.rstrip(".") + "; --id COL names the sequence of each row; without it a file is one sequence."
    return text


WORDS = (
    ("name it states if it belongs to frames", "--states-column is for what belongs to frames"),
    ("name it as time, or leave it out of columns", "name it with --time, or choose others with --columns"),
    ("say format= or keep it elsewhere", "say --format, or keep it elsewhere"),
    ("format must be one of", "--format must be one of"),
    ("read_sequences: ", ""),
)


def source_of(files: tuple[str, ...]) -> Any:
    """One path, or a list of several."""
    return files[0] if len(files) == 1 else list(files)


def missing_labels(labels: Any) -> Any:
    """Which labels (n,) are None or NaN."""
    return np.array([label is None or label != label for label in np.asarray(labels).tolist()], dtype=bool)


# ------------------------------------------------------------------ for a model


def sequences_for(model: Any, files: tuple[str, ...], settings: Mapping[str, Any], console: Any) -> Sequences:
    """The sequences of files for a model; its columns by name, or by position where they have no names."""
    with spooled(files, symbols=list(model.columns) == ["symbol"]) as there:
        return by_place(model, read_for(model, there, settings, console), settings)


def read_for(model: Any, files: tuple[str, ...], settings: Mapping[str, Any], console: Any) -> Sequences:
    """Sequences with the columns that a model knows; the id and time columns of its training, where they are there.

    Columns go by name; `--columns` names those of the files, in the order of the model's. A model without names takes
    all columns without a task as they come.
    """
    from likely.data.read_sequences import read_sequences

    learned = model.schema["roles"]
    given = {"id": settings["id"] or learned.get("id"), "time": settings["time"] or learned.get("time")}
    there = _columns_there(files, settings["format_"], bool(any(given.values()) or settings.get("columns")))
    for role in ("id", "time"):
        if given[role] is not None and settings[role] is None and there is not None and given[role] not in there:
            then = "each file is one sequence" if role == "id" else "frames are taken as they come"
            console(f'no column "{given[role]}", which was the {role} in training: {then}')
            given[role] = None
    asked = list(settings.get("columns") or ()) or None
    if asked is not None and len(asked) != len(model.columns):
        expected = f"the model takes {counted(len(model.columns), 'column')}"
        raise DataError(sentence("--columns", expected, len(asked), "name them in that order"))
    if asked is None and there is not None and not nameless(model):
        asked = list(model.columns)
        _refuse_absent(asked, there, given)
    more = {role: settings[role] for role in ("label", "weight") if settings.get(role)}
    with in_flags(given["id"], names={role: flag for role, flag in FLAGS.items() if role != "states"}):
        found = read_sequences(source_of(files), **given, **more, columns=asked, missing=settings["missing"],
                               format=settings["format_"])  # fmt: skip
    for words in renamed(found, given["id"], files):
        console(words)
    return found


def nameless(model: Any) -> bool:
    """Whether the columns of a model have numbers only."""
    kinds = list(model.columns)
    return not model.card and kinds in (["symbol"], [str(j) for j in range(len(kinds))])


def by_place(model: Any, found: Sequences, settings: Mapping[str, Any]) -> Sequences:
    """Sequences with the column names of the model, where columns are matched by position."""
    names, numbers = tuple(model.columns), tuple(map(str, range(len(model.columns))))
    placed = settings.get("columns") or nameless(model) or found.columns in (numbers, ("symbol",))
    if found.columns == names or not placed:
        return found
    if len(found.columns) != len(names):
        expected = f"the model takes {counted(len(names), 'column')}, which have no names"
        came = f"{len(found.columns)}: {listed(found.columns)}"
        raise DataError(sentence("sequences", expected, came, "choose with --columns, or say --id and --time"))
    x = found.x
    if hasattr(x.values, "parts"):
        from likely.core.columns import Columns
        from likely.core.ragged import Ragged

        x = Ragged.of(Columns(dict(zip(names, x.values.parts.values(), strict=True))), x.lengths)
    return replace(found, x=x, columns=names)


def _refuse_absent(asked: list[str], there: list[str], given: Mapping[str, Any]) -> None:
    absent = [name for name in asked if name not in there]
    if absent and not all(name.isdigit() for name in there):
        from likely.data.read_table import did_you_mean

        rest = [name for name in there if name not in given.values()]
        known = did_you_mean(absent[0], rest)
        remedy = known if known.endswith("?") else f"{known}; --columns says which stand for the model's"
        raise DataError(sentence("sequences", f'there must be a column "{absent[0]}"', remedy=remedy))


def _columns_there(files: tuple[str, ...], format: str | None, is_table: bool) -> list[str] | None:
    """The header of the first file; None if it has none or cannot be read."""
    import polars as pl

    from likely.data.csv_reader import looks_like_data
    from likely.data.read_sequences import all_files, columns_of

    try:
        names = columns_of(all_files(source_of(files))[0], format, is_table)
        return None if names is None or looks_like_data(names) else names
    except (LikelyError, OSError, pl.exceptions.PolarsError):
        return None
