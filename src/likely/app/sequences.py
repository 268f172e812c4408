"""Sequences as commands read them: files become frames with kinds, and what is wrong with one is said by its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.app.sequence_job import SequenceJob
from likely.errors import DataError, sentence

if TYPE_CHECKING:
    from likely.core.ragged import Ragged
    from likely.data.sequences import Sequences

SHOWN = 8  # columns, classes or names that a line tells


@dataclass(frozen=True, eq=False)
class Material:
    """What was read: frames as models take them, and what is known of each sequence."""

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
        n = f"{len(self):,} sequence{'s' * (len(self) != 1)} of {span} frames"
        lines = [f"{', '.join(self.source)}: {n}, {int(lengths.sum()):,} in all"]
        lines.append(f"columns: {listed([f'{name} ({kind})' for name, kind in self.kinds.items()])}")
        if self.labels is not None:
            values, counts = np.unique(np.asarray(self.labels).astype(str), return_counts=True)
            lines.append(f"classes: {listed([f'{v} {c:,}' for v, c in zip(values, counts, strict=True)])}")
        if self.states is not None:
            known = float((self.states.values >= 0).mean())
            lines.append(f"states: {listed(self.state_names)}; known for {known:.0%} of frames")
        return "\n".join([*lines, *self.aside])


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
    from likely.data.sequences import read_sequences
    from likely.estimators.sequence_tables import kinds_found, laid_out

    roles = job.roles
    found = read_sequences(source_of(job.files), **roles, columns=list(job.columns) or None, missing=job.missing,
                           format=job.format)  # fmt: skip
    aside = {*job.drop, *(name for name, kind in job.kinds.items() if kind == "ignore")}
    aside |= set() if job.group is None else {job.group}
    kinds = _kinds(kinds_found(found.x, found.columns), job, aside)
    groups = None if job.group is None else _groups(job)
    states, names = (None, ()) if found.states is None else _numbered(found.states)
    material = Material(job.files, laid_out(found.x, found.columns, kinds), found.ids, kinds, found.labels,
                        found.weight, groups, states, names)  # fmt: skip
    material = _with_labels(_that_count(material))
    refuse_infinite(material)
    return material


def source_of(files: tuple[str, ...]) -> Any:
    """One path, or a list of several."""
    return files[0] if len(files) == 1 else list(files)


def _kinds(found: dict[str, str], job: SequenceJob, aside: set[str]) -> dict[str, str]:
    for name in [*job.kinds, *job.drop]:
        if name not in found:
            from likely.data.reading import did_you_mean

            raise DataError(sentence("--as, --drop", f'there must be a column "{name}"',
                                     remedy=did_you_mean(name, list(found))))  # fmt: skip
    asked = {name: "category" if kind == "binary" else kind for name, kind in job.kinds.items()}
    kinds = {name: asked.get(name, kind) for name, kind in found.items() if name not in aside}
    if not kinds:
        raise DataError(sentence("columns", "frames need at least one column", "none is left"))
    return kinds


def _groups(job: SequenceJob) -> Any:
    """The group of each sequence; one that says nothing is a group of its own."""
    from likely.data.sequences import read_sequences

    roles = {name: column for name, column in job.roles.items() if name in ("id", "time")}
    column = job.columns[0] if job.columns else job.group
    again = read_sequences(source_of(job.files), **roles, label=job.group, missing=job.missing, format=job.format,
                           columns=None if column == job.group else column)  # fmt: skip
    told = np.asarray(again.labels)
    missing = _missing(told)
    return np.array([f"alone {i}" if gone else str(label) for i, (label, gone) in
                     enumerate(zip(told.tolist(), missing.tolist(), strict=True))])  # fmt: skip


def _missing(labels: Any) -> Any:
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
        raise DataError(sentence("weight", "some sequence must have a weight above 0", "none"))
    words = f"{len(material) - len(here):,} sequences weigh nothing and were set aside"
    return replace(material.some(here), aside=(*material.aside, words))


def _with_labels(material: Material) -> Material:
    """Without sequences of no class, where classes are to be told apart."""
    if material.labels is None or material.states is not None:
        return replace(material, labels=None)
    missing = _missing(material.labels)
    if missing.all():
        raise DataError(sentence("target", "some sequence must have a label", "none"))
    if not missing.any():
        return material
    here = np.flatnonzero(~missing)
    words = f"{int(missing.sum()):,} sequences have no label and were set aside"
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
        expected = f"with {states} states a sequence needs at least {least} frames"
        raise DataError(sentence("--topology", expected, came, remedy))


def refuse_forbidden(material: Material, job: SequenceJob, states: int) -> None:
    """Known states must follow each other as the topology allows; where nothing is known, nothing is asked."""
    from likely.models.topology import Topology

    assert material.states is not None
    topology, known = Topology.of(job.topology, states), material.states.values
    first, last = material.x.offsets[:-1], material.x.offsets[1:] - 1
    inside = np.setdiff1d(np.arange(1, len(known)), first)
    then, here = known[inside], known[inside - 1]
    bad = inside[(here >= 0) & (then >= 0) & ~topology.moves[here, then]]
    if len(bad):
        _refuse_move(material, int(bad[0]), f"from {_called(material, known[bad[0] - 1])} to ")
    begins = first[(known[first] >= 0) & ~topology.starts[known[first]]]
    if len(begins):
        _refuse_move(material, int(begins[0]), "beginning with ")
    if topology.ends is not None:
        ending = last[(known[last] >= 0) & ~topology.ends[known[last]]]
        if len(ending):
            _refuse_move(material, int(ending[0]), "ending with ")


def _refuse_move(material: Material, row: int, how: str) -> None:
    assert material.states is not None
    i = int(np.searchsorted(material.x.offsets, row, side="right")) - 1
    came = f'{how}{_called(material, material.states.values[row])} in sequence "{material.ids[i]}"'
    came += f", frame {row - material.x.offsets[i]}"
    order = f"here states are ordered {', '.join(material.state_names[:SHOWN])}"
    raise DataError(sentence("--topology", "known states must follow each other as it allows", came,
                             f"{order}; --topology ergodic allows all"))  # fmt: skip


def _called(material: Material, state: Any) -> str:
    return f'"{material.state_names[int(state)]}"'


def shortest(job: SequenceJob, states: int) -> int:
    """The least number of frames that can pass through."""
    from likely.models.topology import Topology

    return Topology.of(job.topology, states).shortest


def read_for(
    model: Any, files: tuple[str, ...], *, id: str | None, time: str | None, missing: Any, format: str | None, tell: Any
) -> Sequences:
    """Sequences with the columns that a model knows; the id and time columns of its training, where they are there."""
    from likely.data.sequences import read_sequences

    learnt = model.schema["roles"]
    given = {"id": id or learnt.get("id"), "time": time or learnt.get("time")}
    for role, asked in (("id", id), ("time", time)):
        if given[role] is not None and asked is None and not _has_column(files, given[role]):
            then = "each file is one sequence" if role == "id" else "frames are taken as they come"
            tell(f'no column "{given[role]}", which was the {role} in training: {then}')
            given[role] = None
    columns = list(model.columns) if any(given.values()) else None  # else symbols and arrays have no names to ask for
    return read_sequences(source_of(files), **given, columns=columns, missing=missing, format=format)


def _has_column(files: tuple[str, ...], name: str) -> bool:
    """Whether the header of the first file has that name; what cannot be read is left to whoever reads it."""
    from pathlib import Path

    import polars as pl

    path = Path(files[0])
    path = next(iter(sorted(p for p in path.rglob("*") if p.is_file())), path) if path.is_dir() else path
    try:
        if path.suffix == ".parquet":
            return name in pl.read_parquet_schema(path)
        with open(path, encoding="utf-8") as stream:
            return name in stream.readline()
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError):
        return True
