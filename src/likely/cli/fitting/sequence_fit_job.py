"""Options of `likely fit --sequences` as a frozen value, and the command line that reproduces them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click


@dataclass(frozen=True)
class SequenceJob:
    """Options of `likely fit --sequences`."""

    files: tuple[str, ...]
    target: str | None = None
    id: str | None = None
    time: str | None = None
    states_column: str | None = None
    weight: str | None = None
    group: str | None = None
    columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    n_states: int | None = None  # None: chosen
    topology: Any = None  # None: ergodic, or whichever decides better
    n_components: int | None = None  # None: 1, of sounds more
    covariance: str | None = None
    durations: int | None = None
    order: int = 1
    n_init: int = 1
    cost: str | None = None
    reject_cost: float | None = None
    reject_below: float | None = None
    novelty: float | None = None
    class_prior: str | None = None
    missing: tuple[str, ...] = ()
    format: str | None = None
    cv: Any = None
    calibrate: bool = True
    criterion: str = "cost"
    out: str = "model.likely"
    seed: int = 0
    jobs: int | None = None

    @property
    def splitting(self) -> Any:
        """How sequences are split, as `make_splits` takes it."""
        return 5 if self.cv is None else self.cv

    @property
    def roles(self) -> dict[str, str]:
        """Task → column, for the tasks that a column has."""
        named = {"id": self.id, "time": self.time, "label": self.target, "states": self.states_column,
                 "weight": self.weight}  # fmt: skip
        return {role: name for role, name in named.items() if name is not None}

    @property
    def settings(self) -> dict[str, Any]:
        """What an `HMMDensity` is built with, beside its columns and the number of states."""
        return {
            "topology": self.topology or "ergodic", "components": self.n_components or 1, "covariance": self.covariance,
            "durations": self.durations, "order": self.order, "n_init": self.n_init, "random_state": self.seed,
        }  # fmt: skip

    @property
    def command(self) -> str:
        """The command line that does the same.

        >>> SequenceJob(("walks.csv",), id="who", topology=(0, 1, 2), n_states=4).command
        'likely fit walks.csv --sequences --id who --topology 0,1,2 --n-states 4'
        """
        return shlex.join(["likely", "fit", *self.files, "--sequences", *self._options()])

    def _options(self) -> Iterator[str]:
        usual = SequenceJob(())
        for name in ("target", "id", "time", "states_column", "weight", "group", "topology", "n_states", "n_components",
                     "covariance", "durations", "order", "n_init", "cost", "reject_cost", "reject_below", "novelty",
                     "class_prior", "format", "cv", "criterion", "seed"):  # fmt: skip
            value = getattr(self, name)
            if value != getattr(usual, name):
                text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
                yield from (f"--{name.replace('_', '-')}", text)
        for name in ("columns", "ignore", "missing"):
            for one in getattr(self, name):
                yield from (f"--{name}", one)
        for name, kind in self.kinds.items():
            yield from ("--as", f"{name}={kind}")
        if self.out != usual.out:
            yield from ("-o", self.out)
        if not self.calibrate:
            yield "--no-calibrate"


ONLY_TABLES = {"sql": "--sql", "baselines": "--baselines", "report": "--report"}
ONLY_SEQUENCES = {
    "id": "--id", "states_column": "--states-column", "n_states": "--n-states", "topology": "--topology",
    "n_components": "--n-components", "covariance": "--covariance", "durations": "--durations", "order": "--order",
    "columns": "--columns", "n_init": "--n-init",
}  # fmt: skip


def refuse_for_tables(settings: Mapping[str, Any]) -> None:
    """Raise if an option is for sequences only."""
    for name, flag in ONLY_SEQUENCES.items():
        if settings.get(name) not in (None, ()):
            raise click.UsageError(f"{flag} is for sequences: add --sequences.")
    if settings.get("target") is None:
        raise click.UsageError(
            "Missing option '--target': the column with the class labels. (Optional with --sequences.)"
        )


def sequence_job(settings: Mapping[str, Any], format_: str | None) -> SequenceJob:
    """The job of these options; raises if an option is for tables only."""
    for name, flag in ONLY_TABLES.items():
        if settings.get(name) is not None:
            raise click.UsageError(f"{flag} is for tables of rows, not for --sequences.")
    if settings["models"] != "all":
        raise click.UsageError(
            "--models is for tables of rows; with --sequences use --n-states, --topology, --n-components."
        )
    if settings["cv"] == "time":
        raise click.UsageError("--cv time is for tables of rows; sequences are split whole: give a number of folds.")
    if settings["states_column"] and settings["target"]:
        raise click.UsageError("--states-column and --target exclude each other: states are known, or classes are.")
    if settings["durations"] and (settings["order"] or 1) > 1:
        raise click.UsageError("--durations and --order exclude each other: choose one.")
    aside = {*ONLY_TABLES, "models"}
    given = {name: value for name, value in settings.items() if name not in aside and value is not None}
    return SequenceJob(format=format_, **given)


def refuse_deciding(job: SequenceJob) -> None:
    """Raise if a decision rule was given without classes."""
    for name in ("cost", "reject_cost", "reject_below", "novelty", "class_prior"):
        if getattr(job, name) is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --target: without classes nothing is decided.")


def refuse_for_sounds(job: SequenceJob) -> None:
    """Raise if an option is for tables of frames: sounds have no columns."""
    if job.target is not None:
        raise click.UsageError("--target is for tables: the word of a sound is the sub-folder in which it lies.")
    usual = SequenceJob(())
    for name in ("id", "time", "states_column", "weight", "group", "columns", "ignore", "kinds", "missing", "format",
                 "durations", "order", "n_init"):  # fmt: skip
        if getattr(job, name) != getattr(usual, name):
            flag = {"kinds": "as"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"--{flag} is for tables of frames: these files are sounds.")
