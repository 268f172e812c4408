"""Data of a cluster report, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likely.report.study import Study


@dataclass(frozen=True)
class TraitRow:
    """A numeric column, or a level of a categorical column, in all rows and per cluster."""

    column: str
    level: str | None
    overall: float
    values: Any  # (K,) means, or shares of a level
    apart: Any  # (K,) differences to all rows, in units of their spread


@dataclass(frozen=True)
class Doubt:
    """A row that lies between two clusters."""

    row: str  # its name, or its number counted from 1
    first: int  # the most probable cluster, from 0
    second: int
    probability: float
    runner_up: float
    cells: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """Criteria by number of clusters: BIC, held-out likelihood, sparse prior."""

    numbers: tuple[int, ...]
    bic: Any  # (m,)
    held_out: Any  # (m,) nats per row; NaN where not measured
    held_out_error: Any  # (m,)
    left_by_prior: int | None
    best: Mapping[str, int]
    by: str


@dataclass(frozen=True)
class EMRun:
    """One run of EM."""

    objective: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class ClusterStudy:
    """Data, mixture and assignment of one run: the data of the report.

    `study` holds what every report has: title, files, columns, warnings, the map, and how to reproduce it; its
    classes are the clusters.
    """

    study: Study
    why: str  # number and shape, in words
    sizes: Any  # (K,)
    stories: tuple[tuple[str, ...], ...] = ()  # what makes each cluster different
    traits: tuple[TraitRow, ...] = ()
    certainty: Any = ()  # (n,) probability of each row's own cluster
    weight: Any = ()  # (n,)
    mean_certainty: float = 1.0
    unsure: float = 0.0  # share of rows below 0.8
    doubts: tuple[Doubt, ...] = ()
    choice: Choice | None = None
    trace: tuple[float, ...] = ()  # the objective after each step, nats per row
    reason: str = ""  # why learning stopped
    starts: tuple[EMRun, ...] = ()
    agreement: float | None = None
