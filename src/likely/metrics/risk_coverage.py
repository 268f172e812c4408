"""Risk-coverage curves of the reject option: the cost of accepted rows against their share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.metrics.roc import thin


class Acceptance(NamedTuple):
    """An acceptance rule: the largest doubt, the share accepted, and their mean cost."""

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, eq=False)
class RiskCoverage(Value):
    """Risk-coverage curve: mean cost of the accepted rows against their share.

    Parameters
    ----------
    threshold : ndarray (m,)
        Increasing thresholds: rows are accepted where doubt ≤ threshold.
    coverage : ndarray (m,)
        Share of accepted rows, increasing to 1.
    risk : ndarray (m,)
        Mean cost of accepted rows.

    References
    ----------
    Ney, lecture notes, 2.6 (reject option).

    Examples
    --------
    >>> curve = risk_coverage(doubt=[0.1, 0.2, 0.4, 0.4], cost=[0, 0, 1, 0])
    >>> curve.coverage, curve.risk.round(2)
    (array([0.25, 0.5 , 1.  ]), array([0.  , 0.  , 0.25]))
    """

    threshold: Array  # (m,) increasing: rows are accepted where doubt ≤ threshold
    coverage: Array  # (m,) increasing to 1
    risk: Array  # (m,)

    @property
    def area(self) -> float:
        """Area under the risk-coverage curve: Σ risk · step of coverage."""
        return float(self.risk @ np.diff(self.coverage, prepend=0.0))

    def reaching(self, risk: float) -> Acceptance:
        """The largest acceptance with mean cost within the given risk; coverage 0 if there is none."""
        within = np.flatnonzero(self.risk <= risk)
        return self._at(int(within[-1])) if len(within) else Acceptance(-np.inf, 0.0, 0.0)

    def covering(self, coverage: float) -> Acceptance:
        """The smallest acceptance with at least the given coverage."""
        if not 0 <= coverage <= 1:
            raise DomainError(sentence("RiskCoverage.covering", "coverage must lie in 0 … 1", coverage))
        # tolerance: 3 rows of 10 cover a share of 0.3 in spite of rounding
        return self._at(min(int(np.searchsorted(self.coverage, coverage - 1e-12)), len(self.coverage) - 1))

    def _at(self, i: int) -> Acceptance:
        return Acceptance(float(self.threshold[i]), float(self.coverage[i]), float(self.risk[i]))

    def thinned(self, points: int = 200) -> RiskCoverage:
        """At most the given number of points, including both ends, for plotting."""
        at = thin(self.coverage, np.zeros_like(self.coverage), points)
        return RiskCoverage.trusted(**{name: part[at] for name, part in self.field_values().items()})


def risk_coverage(doubt: Any, cost: Any, weight: Any = None) -> RiskCoverage:
    """Risk-coverage curve of rows with a doubt (n,), such as the expected cost, and an actual cost (n,)."""
    d, c = np.asarray(doubt, dtype=np.float64), np.asarray(cost, dtype=np.float64)
    if d.ndim != 1 or c.shape != d.shape or not len(d):
        expected = "doubt and cost must be of one length (n,), n > 0"
        raise ShapeError(sentence("risk_coverage", expected, f"{d.shape} and {c.shape}"))
    w = weights(weight, len(d), "risk_coverage")
    w = np.ones(len(d)) if w is None else w
    here = w > 0
    if not here.any() or np.isnan(d).any() or np.isnan(c).any():
        raise DataError(sentence("risk_coverage", "numbers and some weight are needed", "NaN, or no weight"))
    order = np.argsort(d[here], kind="stable")
    d, c, w = d[here][order], c[here][order], w[here][order]
    last = np.append(d[1:] != d[:-1], True)
    accepted = np.cumsum(w)[last]
    return RiskCoverage.trusted(
        threshold=d[last], coverage=accepted / accepted[-1], risk=np.cumsum(w * c)[last] / accepted
    )
