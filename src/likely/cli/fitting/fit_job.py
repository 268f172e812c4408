"""Options of `likely fit` as a frozen value, and the command line that reproduces them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """Options of `likely fit`."""

    files: tuple[str, ...]
    target: str
    cost: str | None = None
    reject_cost: float | None = None
    reject_below: float | None = None
    novelty: float | None = None
    class_prior: str | None = None
    group: str | None = None
    time: str | None = None
    weight: str | None = None
    missing: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    sql: str | None = None
    format: str | None = None
    cv: Any = None  # None: by time where there is one, else five folds
    calibrate: bool = True
    models: str = "all"
    criterion: str = "cost"
    baselines: bool | None = None  # None: where the table is small
    out: str = "model.likely"
    report: str | None = None
    seed: int = 0
    jobs: int | None = None

    @property
    def splitting(self) -> Any:
        """How rows are split, as `make_splits` takes it."""
        return self.cv if self.cv is not None else "time" if self.time else 5

    @property
    def command(self) -> str:
        """The command line that does the same.

        >>> Job(("wine.csv",), "class", reject_cost=0.3).command
        'likely fit wine.csv --target class --reject-cost 0.3'
        """
        return shlex.join(["likely", "fit", *self.files, "--target", self.target, *self._options()])

    def _options(self) -> Iterator[str]:
        for name in ("cost", "reject_cost", "reject_below", "novelty", "class_prior", "group", "time", "weight", "sql",
                     "format", "cv", "report"):  # fmt: skip
            if getattr(self, name) is not None:
                yield from (f"--{name.replace('_', '-')}", str(getattr(self, name)))
        for name in ("missing", "ignore"):
            for value in getattr(self, name):
                yield from (f"--{name}", value)
        for name, kind in self.kinds.items():
            yield from ("--as", f"{name}={kind}")
        usual = Job((), "")
        for name, flag in (("models", "--models"), ("criterion", "--criterion"), ("out", "-o"), ("seed", "--seed")):
            if getattr(self, name) != getattr(usual, name):
                yield from (flag, str(getattr(self, name)))
        if not self.calibrate:
            yield "--no-calibrate"
        if self.baselines is not None:
            yield "--baselines" if self.baselines else "--no-baselines"


def splitting_words(cv: Any, splits: int, grouped: bool) -> str:
    """Description of the cross-validation.

    >>> splitting_words(5, 5, True)
    '5-fold cross-validation, groups kept together'
    """
    words = f"{splits}-fold stratified cross-validation"
    if cv == "leave-one-out":
        words = f"leave-one-out ({splits} fits)"
    elif cv == "time":
        words = f"{splits} blocks in time order, each tested with a model fitted to the blocks before"
    elif isinstance(cv, float):
        words = f"one hold-out set of {cv:.0%} of the rows"
    return (words.replace(" stratified", "") + ", groups kept together") if grouped else words
