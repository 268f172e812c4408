"""Data of a classifier report (`Study`), as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likely.metrics.evaluation import Evaluation


@dataclass(frozen=True)
class ColumnFacts:
    """One column of the data: type, missing values, and histograms per class."""

    name: str
    kind: str  # real, count, binary, category
    reason: str = ""  # why it was taken as that kind
    missing: float = 0  # cells that are not there
    distinct: int | None = None
    summary: str = ""  # "11.0 – 13.1 – 14.8"
    edges: Any = None  # (bins + 1,) of a number
    levels: tuple[str, ...] = ()  # of a category; counts then has a column each
    counts: Any = None  # (C, bins) rows in each class and bin


@dataclass(frozen=True)
class Contender:
    """Cross-validated results of one candidate model."""

    name: str
    what: str = ""  # one sentence
    cost: float | None = None  # expected cost per row
    cost_se: float | None = None
    error: float | None = None
    error_low: float | None = None
    error_high: float | None = None
    log_loss: float | None = None
    seconds: float | None = None
    chosen: bool = False
    note: str = ""  # why it failed, or what to know
    difference: float | None = None  # paired difference to the best in the measure that was chosen by
    difference_se: float | None = None  # its standard error
    ties: tuple[str, ...] = ()  # measures in which it is within one standard error of the best
    rmse: float | None = None  # of a regression; cost is then its mean loss, log_loss its log score
    rmse_low: float | None = None
    rmse_high: float | None = None
    interval_score: float | None = None
    coverage: float | None = None  # of 90 % intervals


@dataclass(frozen=True)
class Driver:
    """Permutation importance of a column: increase of the mean cost."""

    column: str
    increase: float  # of expected cost per row
    se: float | None = None


@dataclass(frozen=True)
class Plane:
    """The classes in a plane of two directions, with the decision at each grid point."""

    points: Any  # (n, 2)
    truth: Any  # (n,) index of the true class
    decided: Any  # (n,) index of the decided class; -1 refused, C and above another action
    xs: Any = None  # (nx,) centers of the cells
    ys: Any = None  # (ny,)
    region: Any = None  # (ny, nx) what is decided there
    labels: tuple[str, str] = ("first direction", "second direction")  # which columns weigh most
    share: tuple[float, float] | None = None  # of the separation that each axis carries
    note: str = ""  # what the regions leave out
    columns: int = 0  # of numbers, in which the plane lies


@dataclass(frozen=True)
class WorstCase:
    """A row, sequence or recording on which the model was most wrong."""

    row: int | str  # counted from 1, as in the file; of a sequence its ID
    truth: str
    decided: str
    posterior: float  # of the truth
    cells: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """Data, candidates and chosen model of one fit: the data of the report.

    Only `title`, `target` and `classes` are needed; what was not measured is said so on the page.

    >>> Study("wine", target="class", classes=("Barbera", "Barolo")).rows
    0
    """

    title: str
    target: str
    classes: tuple[str, ...]
    source: tuple[str, ...] = ()  # names of files
    rows: int = 0  # rows, sequences or recordings with a label
    rows_unlabeled: int = 0
    columns: tuple[ColumnFacts, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()  # (column, reason)
    warnings: tuple[str, ...] = ()  # warnings met
    leaderboard: tuple[Contender, ...] = ()
    evaluation: Evaluation | None = None  # of the winner, on rows that it had not seen
    cv: str = ""  # "5-fold stratified cross-validation"
    criterion: str = "cost"  # the first measure of the rule: cost, log-loss or error
    rule: str = ""  # how the winner was chosen, in words
    importance: tuple[Driver, ...] = ()
    plane: Plane | None = None
    no_plane: str = ""  # why there is none
    worst: tuple[WorstCase, ...] = ()
    made: str = ""  # version and date
    command: str = ""
    fingerprint: str = ""  # of the data
    seed: int | None = None
    model_file: str = "model.likely"
    snippet: str = ""  # Python that loads the model; empty means the usual three lines
    facts: Mapping[str, object] = field(default_factory=dict)  # anything else worth writing down: versions, machine
    unit: str = "row"  # what is classified: "row", "sequence" or "recording"
    frames: int = 0  # of all sequences together
    losing: str = "cost"  # what decisions lose: "cost", or the loss of a regression in words
    importance_unit: str = ""  # of the importance of columns; empty means the cost, or loss, per row

    @property
    def winner(self) -> Contender | None:
        """The chosen model."""
        return next((c for c in self.leaderboard if c.chosen), None)
