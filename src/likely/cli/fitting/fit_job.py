"""Options of `likely fit` as a frozen value, and the command line that reproduces them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import click

from likely.cli.options import RULES


@dataclass(frozen=True)
class Job:
    """Options of `likely fit`, for rows and for sequences."""

    files: tuple[str, ...]
    target: str | None = None
    sequences: bool = False
    id: str | None = None
    time: str | None = None
    states_column: str | None = None
    weight: str | None = None
    group: str | None = None
    topology: Any = None  # None: ergodic, or whichever decides better
    n_states: int | None = None  # None: chosen
    n_components: int | None = None  # None: 1, of recordings more
    covariance: str | None = None
    durations: int | None = None
    order: int = 1
    n_init: int = 1
    cost: str | None = None
    reject_cost: float | None = None
    reject_below: float | None = None
    novelty: float | None = None
    class_prior: str | None = None
    sql: str | None = None
    format: str | None = None
    cv: Any = None  # None: by time where rows have one, else five folds
    models: str = "all"
    criterion: str | None = None  # None: the cost, of numbers the loss
    task: str | None = None  # None: as the target looks
    loss: str | None = None  # None: squared
    over: float | None = None
    under: float | None = None
    columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    out: str = "model.likely"
    report: str | None = None
    seed: int = 0
    calibrate: bool = True
    baselines: bool | None = None  # None: where the table is small
    jobs: int | None = None

    @property
    def splitting(self) -> Any:
        """How rows or sequences are split, as `make_splits` takes it."""
        return self.cv if self.cv is not None else "time" if self.time and not self.sequences else 5

    @property
    def roles(self) -> dict[str, str]:
        """Role → column of sequences, for the roles that a column has."""
        named = {"id": self.id, "time": self.time, "label": self.target, "states": self.states_column,
                 "weight": self.weight}  # fmt: skip
        return {role: name for role, name in named.items() if name is not None}

    @property
    def chain_settings(self) -> dict[str, Any]:
        """What an `HMMDensity` is built with, beside its columns and the number of states."""
        return {
            "topology": self.topology or "ergodic", "components": self.n_components or 1, "covariance": self.covariance,
            "durations": self.durations, "order": self.order, "n_init": self.n_init, "random_state": self.seed,
        }  # fmt: skip

    @property
    def command(self) -> str:
        """The command line that does the same.

        >>> Job(("wine.csv",), "class", reject_cost=0.3).command
        'likely fit wine.csv --target class --reject-cost 0.3'
        >>> Job(("walks.csv",), sequences=True, id="who", topology=(0, 1, 2), n_states=4).command
        'likely fit walks.csv --sequences --id who --topology 0,1,2 --n-states 4'
        """
        given = [part for name in self.given() if name != "jobs" for part in _words(name, getattr(self, name))]
        return shlex.join(["likely", "fit", *self.files, *given])

    def given(self) -> Iterator[str]:
        """The options that differ from the usual."""
        usual = Job(())
        yield from (f.name for f in fields(self)[1:] if getattr(self, f.name) != getattr(usual, f.name))


def flag_of(name: str) -> str:
    """The option of a field.

    >>> flag_of("reject_cost"), flag_of("kinds")
    ('--reject-cost', '--as')
    """
    return {"kinds": "--as", "out": "-o"}.get(name, f"--{name.replace('_', '-')}")


def _words(name: str, value: Any) -> list[str]:
    """An option on the command line."""
    if isinstance(value, bool):
        return [flag_of(name) if value else f"--no-{name}"]
    if name in ("columns", "ignore", "missing"):
        return [word for one in value for word in (flag_of(name), one)]
    if name == "kinds":
        return [word for column, kind in value.items() for word in ("--as", f"{column}={kind}")]
    return [flag_of(name), ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]


# ----------------------------------------------------------------------------- refusing

ONLY_ROWS = {
    "sql": "", "baselines": "", "models": "; use --n-states, --topology, --n-components", "task": "", "loss": "",
    "over": "", "under": "",
}  # fmt: skip
CRITERIA = {"classification": ("cost", "log-loss", "error"), "regression": ("loss", "log-score", "interval-score")}
OF_NUMBERS = ("loss", "over", "under")
ONLY_SEQUENCES = ("id", "states_column", "n_states", "topology", "n_components", "covariance", "durations", "order",
                  "columns", "n_init")  # fmt: skip
ONLY_FRAMES = ("id", "time", "states_column", "weight", "group", "columns", "ignore", "kinds", "missing", "format",
               "durations", "order", "n_init")  # fmt: skip


def job_of(settings: Mapping[str, Any]) -> Job:
    """The job of these options; raises for options that do not go together."""
    job = Job(**{name: value for name, value in settings.items() if value is not None})
    if job.sequences:
        _refuse_for_sequences(job)
        return job
    for name in job.given():
        if name in ONLY_SEQUENCES:
            raise click.UsageError(f"{flag_of(name)} is for sequences: add --sequences.")
    if job.target is None:
        raise click.UsageError("Missing option '--target': the column to predict. (Optional with --sequences.)")
    if job.loss == "asymmetric" and (job.over is None or job.under is None):
        raise click.UsageError("--loss asymmetric needs --over and --under: the loss per unit too high, and too low.")
    if job.loss != "asymmetric" and (job.over is not None or job.under is not None):
        raise click.UsageError("--over and --under are for --loss asymmetric.")
    if job.cv == "time" and not job.time:
        raise click.UsageError("--cv time needs --time COL: the column with the time of each row.")
    return job


def _refuse_for_sequences(job: Job) -> None:
    if job.criterion in CRITERIA["regression"]:
        raise click.UsageError(f"--criterion {job.criterion} is for regression: sequences have classes.")
    for name in job.given():
        if name in ONLY_ROWS:
            raise click.UsageError(f"{flag_of(name)} is for tables of rows, not for --sequences{ONLY_ROWS[name]}.")
    if job.cv == "time":
        raise click.UsageError("--cv time is for tables of rows; sequences are split whole: give a number of folds.")
    if job.states_column and job.target:
        raise click.UsageError("--states-column and --target exclude each other: states are known, or classes are.")
    if job.durations and job.order > 1:
        raise click.UsageError("--durations and --order exclude each other: choose one.")


def refuse_deciding(job: Job) -> None:
    """Raise if a decision rule was given without classes."""
    for name in RULES:
        if getattr(job, name) is not None:
            raise click.UsageError(f"{flag_of(name)} needs --target: without classes nothing is decided.")


def refuse_for_task(job: Job, task: str, why: str) -> None:
    """Raise if an option is for the other task."""
    other = "classification" if task == "regression" else "regression"
    wrong = RULES if task == "regression" else OF_NUMBERS
    given = [flag_of(name) for name in wrong if getattr(job, name) is not None]
    if job.criterion is not None and job.criterion not in CRITERIA[task]:
        given.append(f"--criterion {job.criterion}")
    if given:
        because = f" ({why})" if why else ""
        raise click.UsageError(
            f"{given[0]} is for {other}, and this is {task}{because}: leave it out, or use --task {other}."
        )


def refuse_for_recordings(job: Job) -> None:
    """Raise if an option is for tables of frames: recordings have no columns."""
    if job.target is not None:
        raise click.UsageError("--target is for tables: the word of a recording is the sub-folder in which it lies.")
    for name in job.given():
        if name in ONLY_FRAMES:
            raise click.UsageError(f"{flag_of(name)} is for tables of frames: these files are recordings.")


def splitting_words(cv: Any, splits: int, grouped: bool, unit: str = "row", stratified: bool = True) -> str:
    """Description of the cross-validation.

    >>> splitting_words(5, 5, True)
    '5-fold cross-validation, groups kept together'
    >>> splitting_words(5, 5, False, "sequence")
    '5-fold stratified cross-validation over sequences'
    """
    over = "" if unit == "row" else f" over {unit}s"
    words = f"{splits}-fold{' stratified' * stratified} cross-validation{over}"
    if cv == "leave-one-out":
        words = f"leave-one-out{over} ({splits} fits)"
    elif cv == "time":
        words = f"{splits} blocks in time order, each tested with a model fitted to the blocks before"
    elif isinstance(cv, float):
        words = f"one hold-out set of {cv:.0%} of the {unit}s"
    return (words.replace(" stratified", "") + ", groups kept together") if grouped else words
