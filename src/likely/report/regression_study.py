"""Data of the report of a regressor, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from likely.report.study import Study

if TYPE_CHECKING:
    from likely.metrics.regression_evaluation import RegressionEvaluation


@dataclass(frozen=True)
class Effect:
    """Mean prediction of some rows with one column set to each value in turn (partial dependence)."""

    column: str
    values: tuple[Any, ...]  # numbers, or levels
    mean: Any  # (g,)
    error: Any  # (g,) standard error; NaN where not known
    seen: Any = ()  # values of some rows, for numbers
    shares: Any = ()  # of levels


@dataclass(frozen=True)
class Band:
    """Predictive intervals along one column of numbers, the other columns at typical values."""

    column: str
    xs: Any  # (g,)
    mean: Any  # (g,)
    levels: Mapping[float, tuple[Any, Any]]  # level → ends (g,)
    points: Any = None  # (m, 2) values and targets of some rows
    typical: Mapping[str, object] = field(default_factory=dict)  # the other columns


@dataclass(frozen=True)
class NumberCase:
    """A row whose target had the least predictive density."""

    row: int | str
    truth: float
    predicted: float
    low: float
    high: float
    cells: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class RegressionStudy:
    """Data, candidates and chosen regressor of one fit. `study` has thirds of the target as classes."""

    study: Study
    evaluation: RegressionEvaluation
    spread: float = 0.0  # standard deviation of the targets
    ground: float | None = None  # RMSE of the mean alone
    effects: tuple[Effect, ...] = ()
    no_effects: str = ""
    band: Band | None = None
    no_band: str = ""
    worst: tuple[NumberCase, ...] = ()
    density: str = "held-out residuals"
