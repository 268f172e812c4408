"""The data of a comparison of regressors: targets, splits, loss, and densities from held-out residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.automl.candidates import Candidate
from likely.automl.model_comparison import CandidateResult, Comparable, clusters_of, compare_candidates, tested_splits
from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.decision.point_estimates import point_estimate
from likely.distributions.gaussian.gaussian import Gaussian
from likely.estimation.foreign_tables import equal_rows
from likely.metrics.regression_evaluation import RegressionEvaluation, loss_of
from likely.model_selection.residual_distribution import (
    ResidualDistribution,
    ResidualPredictive,
    center_and_scale,
    residuals_about,
    with_residuals_of_others,
)
from likely.model_selection.splits import Split


@dataclass(frozen=True)
class RegressionTask(Comparable):
    """Rows with real targets. The density of a tested row is that of the residuals of the other folds about it."""

    X: Any  # a data frame
    y: Array  # (n,)
    splits: list[Split]
    loss: str = "squared"
    over: float | None = None
    under: float | None = None
    weight: Array | None = None  # (n,)
    calibrate: bool = True
    cluster: Index | None = None  # (n,)
    unit: str = "row"
    level: float = 0.9

    measures = ("loss", "log-score", "interval-score")
    tie_breaker = "log-score"

    @classmethod
    def of(
        cls, X: Any, y: Array, cv: Any, *, groups: Any = None, time: Any = None, seed: int = 0,
        weight: Array | None = None, **more: Any,
    ) -> RegressionTask:  # fmt: skip
        """Rows with the splits of `cv` (see `make_splits`)."""
        rows = Columns(x=equal_rows(X), y=y)  # equal rows differ by their y, and are dealt in any order alike
        labels = np.zeros(len(y), dtype=np.intp)
        splits = tested_splits(rows, labels, cv, weight=weight, groups=groups, time=time, seed=seed)
        return cls(X, y, splits, weight=weight, cluster=clusters_of(groups), **more)

    @property
    def targets(self) -> Array:
        """The target of each row (n,)."""
        return self.y

    @property
    def labels(self) -> Index:
        """The third of the targets that each row belongs to (n,): classes for histograms and separation of columns."""
        return np.searchsorted(np.quantile(self.y, [1 / 3, 2 / 3]), self.y, side="left").astype(np.intp)

    @property
    def classes(self) -> Index:
        """The thirds."""
        return np.arange(3)

    def answers(self, model: Any, X: Any, split: Split) -> Array:
        """Prediction and standard deviation of each row (m, 2)."""
        return np.column_stack(center_and_scale(model, X))

    def losses_of(self, answers: Array, rows: Index, calibration: Any) -> Array:
        """The loss of the decisions about these rows (m,)."""
        predictive = self._predictive(answers, calibration)
        return loss_of(
            point_estimate(predictive, self.loss, over=self.over, under=self.under), self.y[rows], **self._loss
        )

    def result(self, candidate: Candidate, answers: Array, seconds: float) -> CandidateResult:
        """The result of a candidate: each row under the residuals of the other folds."""
        at = self.tested
        weight = None if self.weight is None else self.weight[at]
        calibrate = self.calibrate or candidate.baseline
        more: dict[str, Any] = {
            "weight": weight,
            "unit": self.unit,
            "fold": self.fold[at] if len(self.splits) > 1 else None,
            "cluster": None if self.cluster is None else self.cluster[at],
        }
        found = {"level": self.level, **self._loss, **more}
        if not calibrate:
            evaluation = RegressionEvaluation.of(self._predictive(answers[at], None), self.y[at], **found)
            return CandidateResult(candidate, evaluation, seconds)
        center, scale = answers[at].T
        evaluation = with_residuals_of_others(center, scale, self.y[at], **found)
        return CandidateResult(candidate, evaluation, seconds, map=residuals_about(center, scale, self.y[at], weight))

    @property
    def _loss(self) -> dict[str, Any]:
        return {"loss": self.loss, "over": self.over, "under": self.under}

    @staticmethod
    def _predictive(answers: Array, shape: ResidualDistribution | None) -> Any:
        center, scale = answers.T
        if shape is not None:
            return ResidualPredictive(center, scale, shape)
        return Gaussian.trusted(mean=center[:, None], covariance=(scale**2)[:, None], kind="diagonal")


def residuals_of(estimator: Any, X: Any, y: Array, weight: Any = None, cv: Any = 5) -> ResidualDistribution | None:
    """The distribution of held-out residuals of a regressor; None of a single row, which nothing can be held out of."""
    if len(y) < 2:
        return None
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    field = RegressionTask.of(X, y, cv, weight=w)
    found: ResidualDistribution = compare_candidates(
        field, [Candidate("own", "the model", "", 0, estimator)]
    ).winner.map
    return found
