"""Reading of sequences for commands: typed frames; errors name the sequence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.cli.fitting.sequence_fit_job import SequenceJob
from likely.core.errors import DataError, LikelyError, sentence

if TYPE_CHECKING:
    from likely.core.ragged import Ragged
    from likely.data.read_sequences import Sequences

SHOWN = 8  # columns, classes or names that a line tells


@dataclass(frozen=True, eq=False)
class Material:
    """Sequences as read: frames as models take them, with labels, weights and states."""

    source: tuple[str, ...]
    x: Ragged
    ids: Any  # (n,)
    kinds: dict[str, str]  # column → "real", "count" or "category"
    labels: Any = None  # (n,): the class of each sequence
    weight: Any = None  # (n,)
    groups: Any = None  # (n,)
    states: Ragged | None = None  # numbers of states, −1 where unknown
    state_names: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()  # words on what was left out

    def __len__(self) -> int:
        return len(self.x)

    def some(self, which: Any) -> Material:
        """Some of the sequences."""

        def picked(name: str) -> Any:
            part = getattr(self, name)
            return None if part is None else part[which]

        return replace(
            self, x=self.x[which], ids=self.ids[which], labels=picked("labels"), weight=picked("weight"),
            groups=picked("groups"), states=picked("states"),
        )  # fmt: skip

    def describe(self) -> str:
        """The data in a few lines."""
        lengths = self.x.lengths
        span = " to ".join(f"{m:,}" for m in sorted({int(lengths.min()), int(lengths.max())}))
        n = f"{counted(len(self), 'sequence')} of {span} frame{'s' * (span != '1')}"
        lines = [f"{listed(self.source)}: {n}, {int(lengths.sum()):,} in all"]
        lines.append(f"columns: {listed([f'{name} ({kind})' for name, kind in self.kinds.items()])}")
        if self.labels is not None:
            values, counts = np.unique(np.asarray(self.labels).astype(str), return_counts=True)
            lines.append(f"classes: {listed([f'{v} {c:,}' for v, c in zip(values, counts, strict=True)])}")
        if self.states is not None:
            known = float((self.states.values >= 0).mean())
            lines.append(f"states: {listed(self.state_names)}; known for {known:.0%} of frames")
        return "\n".join([*lines, *self.aside])


def counted(n: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "frame"), counted(2000, "frame")
    ('1 frame', '2,000 frames')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"


def listed(words: Any) -> str:
    """Words with commas, the first few of many.

    >>> listed("abcdefghij")
    'a, b, c, d, e, f, g, h, … (10 in all)'
    """
    words = list(words)
    return ", ".join(words) if len(words) <= SHOWN else f"{', '.join(words[:SHOWN])}, … ({len(words)} in all)"


# ------------------------------------------------------------------------- reading


def read_material(job: SequenceJob) -> Material:
    """The sequences of a job, checked."""
    from likely.automl.sequence_models import kinds_found, laid_out, never_observed
    from likely.data.read_sequences import read_sequences

    with spooled(job.files) as files:
        with in_flags(job.id):
            found = read_sequences(source_of(files), **job.roles, columns=list(job.columns) or None,
                                   missing=job.missing, format=job.format)  # fmt: skip
        groups = None if job.group is None else _groups(job, files)
        again = renamed(found, job.id, files)
    aside = {*job.ignore, *(name for name, kind in job.kinds.items() if kind == "ignore")}
    aside |= set() if job.group is None else {job.group}
    empty = [name for name in never_observed(found.x, found.columns) if name not in aside]
    kinds = _kinds(kinds_found(found.x, found.columns), job, {*aside, *empty}, empty)
    states, names = (None, ()) if found.states is None else _numbered(found.states)
    words = [f'column "{name}" has no entry at all and was set aside' for name in empty]
    words += [*looks_like_time(found, kinds, job), *looks_like_label(found, kinds)]
    material = Material(job.files, laid_out(found.x, found.columns, kinds), found.ids, kinds, found.labels,
                        found.weight, groups, states, names, (*words, *again))  # fmt: skip
    material = _with_labels(_that_count(material))
    refuse_infinite(material)
    return material


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


TIMES = ("t", "time", "timestamp", "date", "datetime", "step", "frame", "index", "seconds", "sec", "ms")


def looks_like_time(found: Any, kinds: dict[str, str], job: SequenceJob) -> list[str]:
    """Note on a column that looks like a time: by its name, or because it increases in all sequences."""
    if job.time is not None or len(found.x.values) == len(found):
        return []
    inner = np.setdiff1d(np.arange(1, len(found.x.values)), found.x.offsets)
    notes = []
    for name, cells in _cells(found).items():
        rises = len(inner) > 1 and cells.dtype.kind in "iuf" and bool((cells[inner] > cells[inner - 1]).all())
        if name in kinds and (rises or name.lower() in TIMES):
            notes.append(f'column "{name}" looks like a time, and is a measurement here: --time {name} orders by it')
    return notes


def looks_like_label(found: Any, kinds: dict[str, str]) -> list[str]:
    """Note on a categorical column that is constant within each sequence, but not over all sequences."""
    if len(found) < 2 or len(found.x.values) < 2 * len(found) or found.labels is not None:
        return []
    inner = np.setdiff1d(np.arange(1, len(found.x.values)), found.x.offsets)
    notes = []
    for name, cells in _cells(found).items():
        same = name in kinds and cells.dtype.kind in "USO" and bool((cells[inner] == cells[inner - 1]).all())
        if same and len(set(cells.tolist())) > 1:
            words = "is the same in all frames of a sequence, as a class is"
            notes.append(f'column "{name}" {words}: --target {name}, or --ignore {name}')
    return notes


def _cells(found: Any) -> dict[str, Any]:
    from likely.core.columns import Columns

    values = found.x.values
    if isinstance(values, Columns):
        return {name: np.asarray(values[name]) for name in values}
    table = values[:, None] if values.ndim == 1 else values
    return {name: table[:, j] for j, name in enumerate(found.columns)}


def source_of(files: tuple[str, ...]) -> Any:
    """One path, or a list of several."""
    return files[0] if len(files) == 1 else list(files)


def _kinds(found: dict[str, str], job: SequenceJob, aside: set[str], empty: list[str]) -> dict[str, str]:
    for name in [*job.kinds, *job.ignore]:
        if name not in found:
            from likely.data.read_table import did_you_mean

            raise DataError(sentence("--as, --ignore", f'there must be a column "{name}"',
                                     remedy=did_you_mean(name, list(found))))  # fmt: skip
    asked = {name: "category" if kind == "binary" else kind for name, kind in job.kinds.items()}
    kinds = {name: asked.get(name, kind) for name, kind in found.items() if name not in aside}
    if not kinds:
        came = "no entry in any" if empty else "none"
        raise DataError(sentence("--columns", "frames need at least one column with entries", came))
    return kinds


def _groups(job: SequenceJob, files: tuple[str, ...]) -> Any:
    """The group of each sequence; a sequence without a group is its own group."""
    from likely.data.read_sequences import read_sequences

    roles = {name: column for name, column in job.roles.items() if name in ("id", "time")}
    column = job.columns[0] if job.columns else job.group
    with in_flags(job.id, "--group"):
        again = read_sequences(source_of(files), **roles, label=job.group, missing=job.missing, format=job.format,
                               columns=None if column == job.group else column)  # fmt: skip
    labels = np.asarray(again.labels)
    missing = missing_labels(labels)
    return np.array([f"alone {i}" if gone else str(label) for i, (label, gone) in
                     enumerate(zip(labels.tolist(), missing.tolist(), strict=True))])  # fmt: skip


def missing_labels(labels: Any) -> Any:
    """Which labels (n,) are None or NaN."""
    return np.array([label is None or label != label for label in np.asarray(labels).tolist()], dtype=bool)


def _numbered(states: Ragged) -> tuple[Ragged, tuple[str, ...]]:
    """State names as numbers, −1 where missing: numbers by size, words as they first come, which is how they follow."""
    from likely.core.ragged import Ragged

    cells = states.values.tolist()
    present = list(dict.fromkeys(cell for cell in cells if cell is not None and cell == cell))
    present = present if any(isinstance(name, str) for name in present) else sorted(present)
    if not present:
        raise DataError(sentence("--states-column", "some state must be known", "none"))
    place = {name: k for k, name in enumerate(present)}
    numbers = np.array([place.get(cell, -1) if cell == cell else -1 for cell in cells], dtype=np.intp)
    return Ragged(numbers, states.offsets), tuple(f"{n:g}" if isinstance(n, float) else str(n) for n in present)


def _that_count(material: Material) -> Material:
    """Without sequences that weigh nothing."""
    if material.weight is None or (material.weight > 0).all():
        return material
    here = np.flatnonzero(material.weight > 0)
    if not len(here):
        raise DataError(sentence("--weight", "some sequence must have a weight above 0", "none"))
    words = f"{counted(len(material) - len(here), 'sequence')} of no weight: set aside"
    return replace(material.some(here), aside=(*material.aside, words))


def _with_labels(material: Material) -> Material:
    """Without sequences of no class, if classes are needed."""
    if material.labels is None or material.states is not None:
        return replace(material, labels=None)
    missing = missing_labels(material.labels)
    if missing.all():
        raise DataError(sentence("--target", "some sequence must have a label", "none"))
    if not missing.any():
        return material
    here = np.flatnonzero(~missing)
    words = f"{counted(int(missing.sum()), 'sequence')} without a label: set aside"
    return replace(material.some(here), aside=(*material.aside, words))


# ------------------------------------------------------------------------ refusing


def refuse_infinite(material: Material) -> None:
    """Infinity is no measurement; the sequence is named as the user knows it."""
    from likely.core.columns import Columns

    values = material.x.values
    parts = values.parts if isinstance(values, Columns) else {None: values}
    for name, a in parts.items():
        if a.dtype.kind != "f" or not np.isinf(a).any():
            continue
        row, *column = np.argwhere(np.isinf(a))[0].tolist()
        i = int(np.searchsorted(material.x.offsets, row, side="right")) - 1
        which = name if name is not None else list(material.kinds)[column[0] if column else 0]
        place = f'infinity in sequence "{material.ids[i]}", frame {row - material.x.offsets[i]}'
        raise DataError(sentence(f'column "{which}"', "numbers must be finite", place, "leave the cell empty"))


def refuse_short(material: Material, job: SequenceJob, states: int) -> None:
    """Every sequence must be able to pass through the topology."""
    least = shortest(job, states)
    short = np.flatnonzero(material.x.lengths < least)
    if len(short):
        i, more = int(short[0]), f", and {len(short) - 1:,} more" if len(short) > 1 else ""
        came = f'"{material.ids[i]}" has {material.x.lengths[i]}{more}'
        remedy = "use fewer states, steps that skip such as --topology 0,1,2, or --topology ergodic"
        expected = f"with {counted(states, 'state')} a sequence needs at least {counted(least, 'frame')}"
        raise DataError(sentence("--topology", expected, came, remedy))


def refuse_forbidden(material: Material, job: SequenceJob, states: int) -> None:
    """Raise if known states contradict the topology; unknown states are not checked."""
    from likely.hmm.topology import Topology

    assert material.states is not None
    topology, known = Topology.of(job.settings["topology"], states), material.states.values
    first, last = material.x.offsets[:-1], material.x.offsets[1:] - 1
    inside = np.setdiff1d(np.arange(1, len(known)), first)
    then, here = known[inside], known[inside - 1]
    bad = inside[(here >= 0) & (then >= 0) & ~topology.transition[here, then]]
    if len(bad):
        _refuse_move(material, int(bad[0]), f"from {_state_name(material, known[bad[0] - 1])} to ")
    begins = first[(known[first] >= 0) & ~topology.initial[known[first]]]
    if len(begins):
        _refuse_move(material, int(begins[0]), "beginning with ")
    if topology.final is not None:
        ending = last[(known[last] >= 0) & ~topology.final[known[last]]]
        if len(ending):
            _refuse_move(material, int(ending[0]), "ending with ")


def _refuse_move(material: Material, row: int, how: str) -> None:
    assert material.states is not None
    i = int(np.searchsorted(material.x.offsets, row, side="right")) - 1
    came = f'{how}{_state_name(material, material.states.values[row])} in sequence "{material.ids[i]}"'
    came += f", frame {row - material.x.offsets[i]}"
    order = f"here states are ordered {', '.join(material.state_names[:SHOWN])}"
    raise DataError(sentence("--topology", "known states must follow each other as it allows", came,
                             f"{order}; --topology ergodic allows all"))  # fmt: skip


def _state_name(material: Material, state: Any) -> str:
    return f'"{material.state_names[int(state)]}"'


def shortest(job: SequenceJob, states: int) -> int:
    """The least number of frames that can pass through."""
    from likely.hmm.topology import Topology

    return Topology.of(job.settings["topology"], states).min_length


# ------------------------------------------------------------------ for a model


def read_for(model: Any, files: tuple[str, ...], settings: Mapping[str, Any], tell: Any) -> Sequences:
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
            tell(f'no column "{given[role]}", which was the {role} in training: {then}')
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
        tell(words)
    return found


def nameless(model: Any) -> bool:
    """Whether the columns of a model have numbers only."""
    kinds = list(model.columns)
    return not model.card and kinds in (["symbol"], [str(j) for j in range(len(kinds))])


def by_place(model: Any, found: Any, settings: Mapping[str, Any]) -> Any:
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
