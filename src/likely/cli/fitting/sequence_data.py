"""Sequences as the data of `likely fit --sequences`: reading, candidate models, refusals that name the sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from likely.automl.sequence_models import by_name
from likely.cli.fitting.fit_job import Job
from likely.cli.fitting.sequence_input import (
    SHOWN,
    frames_fingerprint,
    in_flags,
    listed,
    missing_labels,
    renamed,
    source_of,
    spooled,
)
from likely.core.arrays import is_gap
from likely.core.description import counted
from likely.core.errors import DataError, sentence

if TYPE_CHECKING:
    from likely.automl.model_comparison import ComparisonTask
    from likely.cli.fitting.fit_study import Shown
    from likely.core.ragged import Ragged

STATES = (1, 2, 3, 5, 8)  # that are tried where nobody says how many
BRIEF = {"max_iter": 30, "tol": 1e-3}  # of learning where numbers are compared by decisions: the order stays
SHORT = 300  # frames that half of the sequences do not exceed where left-to-right chains are tried unasked
MANY_FRAMES = 50_000  # from which fits go side by side: with 3,700 frames two threads took 28 s, one 21 s
MOST_EXPANDED = 200  # states that durations or orders may be written out to, unasked
FRAMES_A_STATE = 5  # that a class must have for each state where their number is chosen


@dataclass(frozen=True, eq=False)
class SequenceData:
    """Sequences as read: frames as models take them, with labels, weights and states."""

    unit: ClassVar[str] = "sequence"
    task: ClassVar[str] = "classification"
    testable: ClassVar[bool] = True
    time: ClassVar[None] = None  # sequences are split whole
    job: Job
    X: Ragged
    ids: Any  # (n,)
    kinds: dict[str, str]  # column → "real", "count" or "category"
    y: Any = None  # (n,): the class of each sequence
    weight: Any = None  # (n,)
    groups: Any = None  # (n,)
    states: Ragged | None = None  # numbers of states, −1 where unknown
    state_names: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()  # words on what was left out
    excluded: Mapping[str, str] = field(default_factory=dict)  # columns that are not used, and why

    @classmethod
    def of(cls, job: Job) -> SequenceData:
        """The sequences of a job, checked."""
        from likely.automl.sequence_models import kinds_found, laid_out, never_observed
        from likely.data.read_sequences import read_sequences

        with spooled(job.files) as files:
            with in_flags(job.id):
                found = read_sequences(source_of(files), **job.roles, columns=list(job.columns) or None,
                                       missing=job.missing, format=job.format)  # fmt: skip
            groups = None if job.group is None else _groups(job, files)
            again = renamed(found, job.id, files)
        aside = {*_ignored(job), *([] if job.group is None else [job.group])}
        empty = [name for name in never_observed(found.x, found.columns) if name not in aside]
        kinds = _kinds(kinds_found(found.x, found.columns), job, {*aside, *empty}, empty)
        states, names = (None, ()) if found.states is None else _numbered(found.states)
        words = [f'column "{name}" has no entry at all and was excluded' for name in empty]
        words += [*looks_like_time(found, kinds, job), *looks_like_label(found, kinds)]
        data = cls(job, laid_out(found.x, found.columns, kinds), found.ids, kinds,
                   found.labels if states is None else None, found.weight, groups, states, names,
                   (*words, *again), {**_ignored(job), **dict.fromkeys(empty, "no entry at all")})  # fmt: skip
        if data.weight is not None:
            data = data._only(data.weight > 0, "--weight", "have a weight above 0", "of no weight")
        if data.y is not None:
            data = data._only(~missing_labels(data.y), "--target", "have a label", "without a label")
        refuse_infinite(data)
        if job.n_states is not None:
            refuse_short(data, job.n_states)
        return data

    def __len__(self) -> int:
        return len(self.X)

    def take(self, which: Any) -> SequenceData:
        """Some of the sequences."""
        parts = {name: getattr(self, name) for name in ("X", "ids", "y", "weight", "groups", "states")}
        return replace(self, **{name: part[which] for name, part in parts.items() if part is not None})

    def _only(self, there: Any, flag: str, needed: str, without: str) -> SequenceData:
        """The sequences that count, with a note on the others."""
        if there.all():
            return self
        if not there.any():
            raise DataError(sentence(flag, f"some sequence must {needed}", "none"))
        words = f"{counted(int((~there).sum()), 'sequence')} {without}: excluded"
        return replace(self.take(np.flatnonzero(there)), aside=(*self.aside, words))

    def describe(self) -> str:
        """The data in a few lines."""
        lengths = self.X.lengths
        span = " to ".join(f"{m:,}" for m in sorted({int(lengths.min()), int(lengths.max())}))
        n = f"{counted(len(self), 'sequence')} of {span} frame{'s' * (span != '1')}"
        lines = [f"{listed(self.job.files)}: {n}, {int(lengths.sum()):,} in all"]
        lines.append(f"columns: {listed([f'{name} ({kind})' for name, kind in self.kinds.items()])}")
        if self.y is not None:
            lines.append(f"classes: {listed([f'{c} {n:,}' for c, n in self.counts.items()])}")
        if self.states is not None:
            known = float((self.states.values >= 0).mean())
            lines.append(f"states: {listed(self.state_names)}; known for {known:.0%} of frames")
        return "\n".join([*lines, *self.aside])

    @property
    def counts(self) -> dict[str, int]:
        """Number of sequences of each class."""
        values, counts = np.unique(np.asarray([] if self.y is None else self.y).astype(str), return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))

    def facts(self) -> dict[str, Any]:
        """What a model card says about the data."""
        lengths, columns = self.X.lengths, by_name(self.X, list(self.kinds))
        return {
            "task": "sequences", "unit": self.unit, "sequences": len(self), "frames": int(lengths.sum()),
            "columns": [{"name": n, "kind": self.kinds[n], **missing_and_distinct(a)} for n, a in columns.items()],
            "lengths": [int(lengths.min()), int(lengths.max())], "roles": self.job.roles,
            "target": self.job.target or (None if self.y is None else "folder"), "classes": self.counts,
            "excluded": dict(self.excluded), "fingerprint": frames_fingerprint(columns, lengths),
        }  # fmt: skip

    def shown(self) -> Shown:
        """The sequences as a report shows them."""
        from likely.cli.fitting.fit_study import ShownSequences

        return ShownSequences(self.X, self.ids, self.kinds, self.excluded)

    @property
    def jobs(self) -> int | None:
        """Default number of parallel fits."""
        return self.job.jobs or (None if int(self.X.lengths.sum()) >= MANY_FRAMES else 1)

    def brief(self, how: dict[str, Any]) -> dict[str, Any]:
        """Settings of learning while models are compared: numbers alone are cut short.

        States of words may part slowly. Of 30 sequences of letters from 3 states, brief fits of 3 states looked no
        better than those of 2, so that 5 were chosen; with the usual time it was 3.
        """
        return {} if "category" in self.kinds.values() else how

    def candidates(self, field: ComparisonTask, rules: dict[str, Any]) -> tuple[list[Any], str, str]:
        """Class priors, and hidden Markov models with several numbers of states and topologies."""
        from likely.automl.sequence_candidates import chain_candidates

        several = sorted(np.bincount(field.labels).tolist())[-2:]
        if several[0] < 2:
            came = "one sequence of each" if several[1] < 2 else "two or more of one class only"
            remedy = "use more data; in Python, lk.BayesClassifier(lk.HMMDensity(…)).fit fits without a test"
            expected = "two classes need two sequences each, so that some can be held out"
            raise DataError(sentence("--target", expected, came, remedy))
        found = chain_candidates(
            self.kinds, numbers_of_states(self), rules, self.job.chain_settings, topologies(self),
            int(self.X.lengths.min()), self.brief(BRIEF),
        )  # fmt: skip
        return found, "", ""

    def model(self, classifier: Any, calibration: Any) -> Any:
        """The fitted classifier with these columns."""
        from likely.automl.sequence_models import SequenceClassifier

        return SequenceClassifier.from_fitted(classifier, self.kinds, self.job.roles, calibration)

    def warnings(self, field: ComparisonTask | None = None) -> Iterator[str]:
        """Warnings about the data: what was left out, and columns that look like something else."""
        yield from (f"{words[0].upper()}{words[1:]}." for words in self.aside)


def missing_and_distinct(cells: Any) -> dict[str, int]:
    """How many cells of a column are missing, and how many different ones there are.

    >>> missing_and_distinct(np.array(["a", None, "b", "a"], dtype=object))
    {'n_missing': 1, 'distinct': 2}
    """
    seen = [cell for cell in cells.tolist() if not is_gap(cell)]
    return {"n_missing": len(cells) - len(seen), "distinct": len(set(seen))}


def numbers_of_states(data: SequenceData) -> tuple[int, ...]:
    """Numbers of states to compare: the given one, or several that the sequence lengths allow."""
    job = data.job
    if job.n_states is not None:
        return (job.n_states,)
    least, frames = int(data.X.lengths.min()), int(data.X.lengths.sum())
    if data.y is not None:
        labels = np.unique(np.asarray(data.y).astype(str), return_inverse=True)[1]
        frames = int(np.bincount(labels, data.X.lengths).min())
    able = [K for K in STATES if shortest(job, K) <= least and (K == 1 or K * FRAMES_A_STATE <= frames)
            and max(K**job.order, K * (job.durations or 1)) <= MOST_EXPANDED]  # fmt: skip
    if not able:
        refuse_short(data, 1)
        expected = f"--durations {job.durations} would be expanded to more than {MOST_EXPANDED} states"
        raise DataError(sentence("--n-states", expected, remedy="say how many states"))
    return tuple(able)


def topologies(data: SequenceData) -> tuple[Any, ...]:
    """Topologies to compare: the given one, or ergodic, and left-to-right if sequences are many and short."""
    job = data.job
    if job.topology is not None:
        return (job.topology,)
    plain = job.order == 1 and job.durations is None
    many = len(data) >= 10 and float(np.median(data.X.lengths)) <= SHORT
    return ("ergodic", "left-to-right") if plain and many else ("ergodic",)


# ------------------------------------------------------------------------- reading


TIMES = ("t", "time", "timestamp", "date", "datetime", "step", "frame", "index", "seconds", "sec", "ms")


def looks_like_time(found: Any, kinds: dict[str, str], job: Job) -> list[str]:
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


def _kinds(found: dict[str, str], job: Job, aside: set[str], empty: list[str]) -> dict[str, str]:
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


def _ignored(job: Job) -> dict[str, str]:
    """Columns that the user leaves out."""
    asked = [*job.ignore, *(name for name, kind in job.kinds.items() if kind == "ignore")]
    return dict.fromkeys(asked, "left out by request")


def _groups(job: Job, files: tuple[str, ...]) -> Any:
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


# ------------------------------------------------------------------------ refusing


def refuse_infinite(data: SequenceData) -> None:
    """Infinity is no measurement; the sequence is named as the user knows it."""
    from likely.core.columns import Columns

    values = data.X.values
    parts = values.parts if isinstance(values, Columns) else {None: values}
    for name, a in parts.items():
        if a.dtype.kind != "f" or not np.isinf(a).any():
            continue
        row, *column = np.argwhere(np.isinf(a))[0].tolist()
        i = int(np.searchsorted(data.X.offsets, row, side="right")) - 1
        which = name if name is not None else list(data.kinds)[column[0] if column else 0]
        place = f'infinity in sequence "{data.ids[i]}", frame {row - data.X.offsets[i]}'
        raise DataError(sentence(f'column "{which}"', "numbers must be finite", place, "leave the cell empty"))


def refuse_short(data: SequenceData, states: int) -> None:
    """Every sequence must be able to pass through the topology."""
    least = shortest(data.job, states)
    short = np.flatnonzero(data.X.lengths < least)
    if len(short):
        i, more = int(short[0]), f", and {len(short) - 1:,} more" if len(short) > 1 else ""
        came = f'"{data.ids[i]}" has {data.X.lengths[i]}{more}'
        remedy = "use fewer states, steps that skip such as --topology 0,1,2, or --topology ergodic"
        expected = f"with {counted(states, 'state')} a sequence needs at least {counted(least, 'frame')}"
        raise DataError(sentence("--topology", expected, came, remedy))


def refuse_forbidden(data: SequenceData, states: int) -> None:
    """Raise if known states contradict the topology; unknown states are not checked."""
    from likely.hmm.topology import Topology

    assert data.states is not None
    topology, known = Topology.of(data.job.topology or "ergodic", states), data.states.values
    first, last = data.X.offsets[:-1], data.X.offsets[1:] - 1
    inside = np.setdiff1d(np.arange(1, len(known)), first)
    then, here = known[inside], known[inside - 1]
    bad = inside[(here >= 0) & (then >= 0) & ~topology.transition[here, then]]
    if len(bad):
        _refuse_move(data, int(bad[0]), f"from {_state_name(data, known[bad[0] - 1])} to ")
    begins = first[(known[first] >= 0) & ~topology.initial[known[first]]]
    if len(begins):
        _refuse_move(data, int(begins[0]), "beginning with ")
    if topology.final is not None:
        ending = last[(known[last] >= 0) & ~topology.final[known[last]]]
        if len(ending):
            _refuse_move(data, int(ending[0]), "ending with ")


def _refuse_move(data: SequenceData, row: int, how: str) -> None:
    assert data.states is not None
    i = int(np.searchsorted(data.X.offsets, row, side="right")) - 1
    came = f'{how}{_state_name(data, data.states.values[row])} in sequence "{data.ids[i]}"'
    came += f", frame {row - data.X.offsets[i]}"
    order = f"here states are ordered {', '.join(data.state_names[:SHOWN])}"
    raise DataError(sentence("--topology", "known states must follow each other as it allows", came,
                             f"{order}; --topology ergodic allows all"))  # fmt: skip


def _state_name(data: SequenceData, state: Any) -> str:
    return f'"{data.state_names[int(state)]}"'


def shortest(job: Job, states: int) -> int:
    """The least number of frames that can pass through."""
    from likely.hmm.topology import Topology

    return Topology.of(job.topology or "ergodic", states).min_length
