"""Operating points: the threshold of minimum expected cost under priors and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.decision.cost import Cost, CostLike
from likely.decision.posteriors import ClassPrior
from likely.metrics.roc import roc


class OperatingPoint(NamedTuple):
    """A threshold: accept where score ≥ threshold.

    Parameters
    ----------
    threshold : float
        The threshold.
    expected_cost : float
        Its expected cost.
    false_alarm : float
        Share of negatives that are accepted.
    miss : float
        Share of positives that are not accepted.
    """

    threshold: float
    expected_cost: float
    false_alarm: float
    miss: float


@dataclass(frozen=True, eq=False)
class CostCurve(Value):
    """Expected cost of every threshold, from empirical error rates (Herbst 1.2.2)."""

    threshold: Array  # (m,) decreasing from +∞
    expected_cost: Array  # (m,)
    false_alarm: Array  # (m,)
    miss: Array  # (m,)

    @property
    def best(self) -> OperatingPoint:
        """The threshold of minimum cost, the highest of equal ones."""
        i = int(self.expected_cost.argmin())
        return OperatingPoint(*(float(part[i]) for part in self.field_values().values()))


def expected_cost_curve(
    scores: Any, truth: Any, class_prior: Any = None, cost: Any = None, weight: Any = None
) -> CostCurve:
    """Expected cost of each threshold on a score (n,): Σ_c p(c) Σ_a P(a | c) L(a, c).

    `truth` (n,) is True where a row is positive. `class_prior` is p(positive), or (p(negative), p(positive)); None
    means the sample's. `cost` is a table of actions × true classes, both (negative, positive); None means 0/1 loss.
    """
    curve, table = roc(scores, truth, weight), _table(cost)
    negative, positive = _prior(class_prior, truth, weight)
    alarm, miss = curve.false_alarm, curve.miss
    paid = negative * (alarm * table[1, 0] + (1 - alarm) * table[0, 0])
    paid = paid + positive * (miss * table[0, 1] + (1 - miss) * table[1, 1])
    return CostCurve.trusted(threshold=curve.threshold, expected_cost=paid, false_alarm=alarm, miss=miss)


def operating_threshold(
    scores: ArrayLike, truth: ArrayLike, class_prior: ClassPrior | None = None,
    cost: CostLike | None = None, weight: ArrayLike | None = None,
) -> OperatingPoint:  # fmt: skip
    """Threshold of minimum expected cost: Σ_c p(c) Σ_a P(a | c) L(a, c), from empirical error rates.

    Parameters
    ----------
    scores : array-like (n,)
        Scores that should be high for positives.
    truth : array-like of bool (n,)
        True where a row is positive.
    class_prior : float or array-like (2,), optional
        Probability p(positive), or (p(negative), p(positive)); None means the sample's.
    cost : Cost or matrix (2, 2), optional
        Cost of each action (row) for each true class (column), both (negative, positive); None is 0/1 loss.
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    OperatingPoint
        The threshold, its expected cost and error rates.

    References
    ----------
    Herbst and du Preez, lecture notes, 1.2.2.

    Examples
    --------
    >>> operating_threshold([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], class_prior=0.5, cost=[[0, 10], [1, 0]]).threshold
    0.4
    """
    return expected_cost_curve(scores, truth, class_prior, cost, weight).best


def equal_error_needed(prior: float, share: float = 0.5) -> float:
    """The equal error rate e at which a positive decision is right with probability `share` (Herbst 1.2.1).

    p (1 − e) / (p (1 − e) + (1 − p) e) = share; for every second rejection to be right, e must equal the prior.

    >>> round(equal_error_needed(0.0004), 12)
    0.0004
    """
    if not (0 < prior < 1 and 0 < share < 1):
        expected = "prior and share must lie between 0 and 1"
        raise DomainError(sentence("equal_error_needed", expected, f"{prior} and {share}"))
    wanted = prior * (1 - share)
    return float(wanted / (wanted + share * (1 - prior)))


def _table(cost: Any) -> Array:
    table = Cost.zero_one(2).table if cost is None else cost.table if isinstance(cost, Cost) else Cost(cost).table
    if table.shape != (2, 2):
        expected = "costs of a threshold are a table of 2 actions × 2 truths, (negative, positive)"
        raise ShapeError(sentence("operating_threshold", expected, f"shape {table.shape}"))
    return table


def _prior(given: Any, truth: Any, weight: Any) -> tuple[float, float]:
    """p(negative), p(positive)."""
    if given is None:
        positive = float(np.average(np.asarray(truth, dtype=np.float64), weights=weight))
        return 1 - positive, positive
    prior = np.asarray(given, dtype=np.float64)
    prior = np.array([1 - prior, prior]) if prior.ndim == 0 else prior
    if prior.shape != (2,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-9:
        expected = "class_prior must be p(positive), or two probabilities that sum to 1"
        raise DomainError(sentence("operating_threshold", expected, given))
    return float(prior[0]), float(prior[1])
