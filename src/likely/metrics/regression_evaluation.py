"""Evaluation of regressions: loss of decisions, RMSE, log score, interval score, coverage of intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import kolmogorov

from likely.core.arrays import Array, Index, numbers, weights
from likely.core.description import Description, DescriptionTable, plain
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.decision.point_estimates import LOSSES, point_estimate
from likely.distributions.stacks.one_row_per_member import cdf_each, log_prob_each
from likely.metrics.confidence_intervals import (
    Interval,
    Mean,
    as_counts,
    mean,
    mean_over_clusters,
    proportion_interval,
    shown_p,
    weighted_proportion,
)

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the curve of coverage
DOUBT = 0.01  # p-value below which intervals are said to be off


class CoverageCurve(NamedTuple):
    """Share of targets within central intervals of each level, with exact 95 % intervals, and a verdict."""

    level: Array  # (K,)
    share: Array  # (K,)
    low: Array  # (K,)
    high: Array  # (K,)
    verdict: str


class RegressionCase(NamedTuple):
    """One of the worst rows: row number, true value, estimate, interval, and log p(y | x)."""

    row: int
    truth: float
    decided: float
    low: float
    high: float
    log_prob: float


@dataclass(frozen=True, eq=False)
class RegressionEvaluation(Value):
    """Predictive densities and true targets of test rows; every measure is a property.

    Scores are losses: smaller is better. The log score is −log p(y | x); the interval score of an interval [l, u] of
    level 1 − α is u − l, plus 2/α times what y lies beyond an end (Gneiting and Raftery 2007). Intervals of means are
    Student's, over clusters where rows have some.

    Parameters
    ----------
    truth : array (n,)
        True targets.
    mean : array (n,)
        Means of the predictive densities.
    decided : array (n,)
        Estimates of least expected loss.
    low, high : arrays (n,)
        Ends of central intervals.
    log_prob : array (n,)
        Logarithm of the predictive density at the truth.
    pit : array (n,)
        Probability that the target is at most the truth (probability integral transform).
    level : float
        Level of the intervals.
    loss : {"squared", "absolute", "asymmetric"}
        Loss of the estimates.
    over, under : float, optional
        Loss per unit too high and too low, of "asymmetric".
    weight : array (n,), optional
        Weights of rows; integers are copies.
    fold, cluster : arrays (n,), optional
        The fold that tested a row; rows of one cluster are not independent.
    unit : str
        What messages call a row.

    Examples
    --------
    >>> import likely as lk
    >>> e = RegressionEvaluation.of(lk.Gaussian([[0.0], [1.0], [2.0]], 1.0), [0.0, 1.0, 5.0])
    >>> round(e.rmse.value, 4), round(e.coverage.value, 4)
    (1.7321, 0.6667)
    """

    truth: Array  # (n,)
    mean: Array  # (n,) of the predictive density
    decided: Array  # (n,) estimate of least expected loss
    low: Array  # (n,) ends of the central interval of that level
    high: Array  # (n,)
    log_prob: Array  # (n,) log p(y | x)
    pit: Array  # (n,) P(target ≤ y | x), the probability integral transform
    level: float = 0.9
    loss: str = "squared"
    over: float | None = None
    under: float | None = None
    weight: Array | None = None  # (n,)
    fold: Index | None = None  # (n,) the fold that tested the row
    cluster: Index | None = None  # (n,) rows of one cluster are not independent
    unit: str = "row"

    def __post_init__(self) -> None:
        parts = {n: numbers(getattr(self, n), "RegressionEvaluation") for n in JOINED}
        n = len(parts["truth"]) if parts["truth"].ndim == 1 else -1
        if n < 1 or any(part.shape != (n,) for part in parts.values()):
            shapes = {name: part.shape for name, part in parts.items()}
            raise ShapeError(sentence("RegressionEvaluation", "one number per row is needed, at least one row", shapes))
        odd = next((name for name, part in parts.items() if np.isnan(part).any()), None)
        if odd is not None:
            row = int(np.flatnonzero(np.isnan(parts[odd]))[0])
            raise DataError(sentence("RegressionEvaluation", f"{odd} must be numbers", f"NaN at row {row}"))
        check_loss(self.loss, self.over, self.under)
        if not 0 < self.level < 1:
            raise DomainError(sentence("RegressionEvaluation", "level must lie between 0 and 1", self.level))
        self._set(**parts, weight=weights(self.weight, n, "RegressionEvaluation"))

    @classmethod
    def of(
        cls, predictive: Any, y: ArrayLike, *, loss: str = "squared", over: float | None = None,
        under: float | None = None, level: float = 0.9, **more: Any,
    ) -> Self:  # fmt: skip
        """The evaluation of a stack of predictive densities at targets.

        Parameters
        ----------
        predictive : stack of univariate densities
            One density per row, as `predictive(X)` of a regressor gives them.
        y : array-like (n,)
            True targets.
        loss : {"squared", "absolute", "asymmetric"}
            What estimates minimize.
        over, under : float, optional
            Loss per unit too high and too low, of "asymmetric".
        level : float
            Level of the intervals.
        **more
            Further fields: weight, fold, cluster, unit.

        Returns
        -------
        RegressionEvaluation
            The evaluation.
        """
        check_loss(loss, over, under)
        if not 0 < level < 1:
            raise DomainError(sentence("RegressionEvaluation", "level must lie between 0 and 1", level))
        y = numbers(y, "RegressionEvaluation").ravel()
        low, high = np.asarray(predictive.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level])).reshape(2, -1)
        decided = point_estimate(predictive, loss, over=over, under=under)
        return cls(
            y, np.ravel(predictive.mean), decided, low, high, log_prob_each(predictive, y[:, None]),
            cdf_each(predictive, y), level, loss, over, under, **more,
        )  # fmt: skip

    def __len__(self) -> int:
        """Number of rows n."""
        return len(self.truth)

    def __repr__(self) -> str:
        return f"RegressionEvaluation({len(self)} {self.unit}s, RMSE {self.rmse})"

    def __str__(self) -> str:
        return self.summary()

    @cached_property
    def counts(self) -> Array:
        """Weights (n,) as counts: ones, frequencies, or shares that sum to the effective number of rows."""
        return as_counts(self.weight, len(self), "RegressionEvaluation")

    # ---------------------------------------------------------------------- rows

    @cached_property
    def losses(self) -> Array:
        """The loss of each decision (n,)."""
        return loss_of(self.decided, self.truth, self.loss, self.over, self.under)

    @cached_property
    def interval_scores(self) -> Array:
        """The interval score of each row (n,)."""
        beyond = np.maximum(self.low - self.truth, 0) + np.maximum(self.truth - self.high, 0)
        return self.high - self.low + 2 / (1 - self.level) * beyond

    @property
    def covered(self) -> Any:
        """Whether the target lies in the interval (n,)."""
        return (self.low <= self.truth) & (self.truth <= self.high)

    @property
    def residuals(self) -> Array:
        """Target minus predicted mean (n,)."""
        return self.truth - self.mean

    # ------------------------------------------------------------------ measures

    @cached_property
    def mean_loss(self) -> Mean:
        """Mean loss of the decisions."""
        return self._mean(self.losses)

    @cached_property
    def rmse(self) -> Interval:
        """Root mean squared error of the predicted means."""
        found = self._mean(self.residuals**2)
        return Interval(*(float(np.sqrt(max(v, 0.0))) for v in found[:3]))

    @cached_property
    def mae(self) -> Mean:
        """Mean absolute error of the predicted means."""
        return self._mean(np.abs(self.residuals))

    @cached_property
    def log_score(self) -> Mean:
        """Mean of −log p(y | x), in nats."""
        return self._mean(-self.log_prob)

    @cached_property
    def interval_score(self) -> Mean:
        """Mean interval score."""
        return self._mean(self.interval_scores)

    @cached_property
    def coverage(self) -> Interval:
        """Share of targets in their intervals, with its exact interval."""
        found = weighted_proportion(self.covered, self.counts)
        assert found is not None  # some row has a weight
        return found

    @property
    def mean_width(self) -> float:
        """Mean width of the intervals."""
        return float(np.average(self.high - self.low, weights=self.counts))

    @cached_property
    def r2(self) -> float:
        """Coefficient of determination: 1 − MSE / variance of the targets."""
        middle = np.average(self.truth, weights=self.counts)
        total = float(self.counts @ (self.truth - middle) ** 2)
        left = float(self.counts @ self.residuals**2)
        return 1 - left / total if total > 0 else float("nan")

    def coverage_curve(self, levels: ArrayLike = LEVELS) -> CoverageCurve:
        """Coverage of central intervals of several levels, by the probability integral transform.

        Parameters
        ----------
        levels : array-like (K,)
            Levels of intervals.

        Returns
        -------
        CoverageCurve
            Shares of targets inside, with 95 % intervals, and a verdict.
        """
        at = np.asarray(levels, dtype=np.float64)
        w, off = self.counts, 2 * np.abs(self.pit - 0.5)
        found = [proportion_interval(float(w @ (off <= one)), float(w.sum())) for one in at]
        share, low, high = (np.array([getattr(f, n) for f in found], dtype=np.float64) for n in Interval._fields)
        return CoverageCurve(at, share, low, high, self._verdict())

    def _verdict(self) -> str:
        """Whether the transforms could be uniform (Kolmogorov–Smirnov)."""
        order = np.argsort(self.pit)
        w = self.counts[order] / self.counts.sum()
        above = np.cumsum(w)
        gap = float(max(np.max(above - self.pit[order]), np.max(self.pit[order] - above + w)))
        p = float(kolmogorov(gap * np.sqrt(self.counts.sum())))
        share = f"{self.level:.0%} intervals cover {self.coverage.value:.1%} of targets"
        if self.counts.sum() < 20:
            return f"{share}; too few {self.unit}s to judge the predictive densities."
        if p < DOUBT:
            return f"{share}; the predictive densities differ from the data by up to {gap:.1%} ({shown_p(p)})."
        return f"{share}; the data do not contradict the predictive densities ({shown_p(p)})."

    def worst(self, n: int = 10) -> list[RegressionCase]:
        """The rows of least predictive density.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        list of RegressionCase
            The worst first.
        """
        order = np.argsort(self.log_prob, kind="stable")[:n].tolist()
        parts = (self.truth, self.decided, self.low, self.high, self.log_prob)
        return [RegressionCase._make([i, *(float(part[i]) for part in parts)]) for i in order]

    def _mean(self, values: Array) -> Mean:
        if self.cluster is not None:
            return mean_over_clusters(values, self.weight, self.cluster)
        return mean(values, self.weight, self.fold)

    # --------------------------------------------------------------------- words

    def describe(self) -> Description:
        """All measures with their intervals."""
        rows = [(name, f.value, f.low, f.high) for name, f in self.figures().items()]
        formats = dict.fromkeys(("value", "low", "high"), ".5g")
        table = DescriptionTable("", ("measure", "value", "low", "high"), rows, formats, most=None)
        head = f"{len(self):,} {self.unit}s; intervals of measures are at 95 %"
        return Description("Evaluation", [head], tables=[table], notes=[f"R² {self.r2:.4g}", self._verdict()])

    def figures(self) -> dict[str, Any]:
        """Measures by name.

        Returns
        -------
        dict
            Value and interval of each.
        """
        found = {"RMSE": self.rmse, "mean absolute error": self.mae}
        if self.loss != "squared":
            found[loss_words(self.loss, self.over, self.under)] = self.mean_loss
        return {
            **found, "log score (nats)": self.log_score, f"interval score ({self.level:.0%})": self.interval_score,
            f"coverage of {self.level:.0%} intervals": self.coverage,
        }  # fmt: skip

    def summary(self) -> str:
        """The measures as text."""
        return self.describe().to_text()

    def as_dict(self) -> dict[str, Any]:
        """All measures as plain values, for JSON; infinite values are None.

        Returns
        -------
        dict
            Measures, coverage by level, worst rows.
        """
        curve = self.coverage_curve()
        found = {
            "rows": len(self), "loss": self.loss, "over": self.over, "under": self.under, "level": self.level,
            "rmse": self.rmse, "mae": self.mae, "mean_loss": self.mean_loss, "r2": self.r2,
            "log_score": self.log_score, "interval_score": self.interval_score, "coverage": self.coverage,
            "mean_width": self.mean_width, "coverage_curve": curve._asdict(), "calibration": curve.verdict,
            "worst": self.worst(10),
        }  # fmt: skip
        return {name: plain(part) for name, part in found.items()}


JOINED = ("truth", "mean", "decided", "low", "high", "log_prob", "pit")  # arrays with one number per row


def loss_of(
    decided: Array, truth: Array, loss: str = "squared", over: float | None = None, under: float | None = None
) -> Array:
    """The loss of each decision: squared, absolute, or `over` per unit above the truth and `under` per unit below.

    >>> loss_of(np.array([2.0, 2.0]), np.array([1.0, 4.0]), "asymmetric", 3.0, 1.0)
    array([3., 2.])
    """
    check_loss(loss, over, under)
    error = np.asarray(decided) - np.asarray(truth)
    if loss == "squared":
        return np.asarray(error**2)
    if loss == "absolute":
        return np.abs(error)
    assert over is not None and under is not None  # checked
    return np.asarray(over * np.maximum(error, 0) + under * np.maximum(-error, 0))


def check_loss(loss: str, over: float | None, under: float | None) -> None:
    """Raise an error for an unknown loss, or for costs that do not belong to it."""
    if loss not in LOSSES:
        raise DomainError(sentence("loss", f"must be one of {', '.join(LOSSES)}", repr(loss)))
    given = [cost is not None for cost in (over, under)]
    if (loss == "asymmetric") != all(given) or (loss != "asymmetric" and any(given)):
        raise DomainError(sentence("loss", 'over and under are for loss="asymmetric", which needs both', repr(loss)))
    if loss == "asymmetric" and not all(0 < float(c) < np.inf for c in (over, under)):  # type: ignore[arg-type]
        raise DomainError(sentence("loss", "over and under must be positive numbers", (over, under)))


def loss_words(loss: str, over: float | None = None, under: float | None = None) -> str:
    """A loss in words.

    >>> loss_words("asymmetric", 3.0, 1.0)
    'asymmetric loss (3 per unit too high, 1 per unit too low)'
    """
    told = {"squared": "squared error", "absolute": "absolute error"}
    return told.get(loss) or f"asymmetric loss ({over:g} per unit too high, {under:g} per unit too low)"
