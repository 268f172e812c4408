"""What refusing buys: the fewer rows are decided, the less each decision costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.metrics.roc import thin


class Acceptance(NamedTuple):
    """What accepting rows up to a doubt gives: the largest doubt, the share accepted, and their mean cost."""

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, eq=False)
class RiskCoverage(Value):
    """Mean cost of the rows accepted against their share, as ever more doubtful ones are let in (Ney 2.6, refusal).

    >>> curve = risk_coverage(doubt=[0.1, 0.2, 0.4, 0.4], cost=[0, 0, 1, 0])
    >>> curve.coverage, curve.risk.round(2)
    (array([0.25, 0.5 , 1.  ]), array([0.  , 0.  , 0.25]))
    """

    threshold: Array  # (m,) rising: rows are accepted where doubt ≤ threshold
    coverage: Array  # (m,) rising to 1
    risk: Array  # (m,)

    @property
    def area(self) -> float:
        """Σ risk · step of coverage: the mean, over rows let in one by one, of the risk so far."""
        return float(self.risk @ np.diff(self.coverage, prepend=0.0))

    def reaching(self, risk: float) -> Acceptance:
        """The widest acceptance whose mean cost stays within a wished risk; coverage 0 where none does."""
        within = np.flatnonzero(self.risk <= risk)
        return self._at(int(within[-1])) if len(within) else Acceptance(-np.inf, 0.0, 0.0)

    def covering(self, coverage: float) -> Acceptance:
        """The narrowest acceptance of at least a wished share of rows."""
        if not 0 <= coverage <= 1:
            raise DomainError(sentence("RiskCoverage.covering", "coverage must lie in 0 … 1", coverage))
        # a share such as 0.3 is met by 3 rows of 10 whatever their sum was rounded to
        return self._at(min(int(np.searchsorted(self.coverage, coverage - 1e-12)), len(self.coverage) - 1))

    def _at(self, i: int) -> Acceptance:
        return Acceptance(float(self.threshold[i]), float(self.coverage[i]), float(self.risk[i]))

    def thinned(self, points: int = 200) -> RiskCoverage:
        """At most so many points, both ends among them: enough to draw it."""
        at = thin(self.coverage, np.zeros_like(self.coverage), points)
        return RiskCoverage.trusted(**{name: part[at] for name, part in self._field_values().items()})


def risk_coverage(doubt: Any, cost: Any, weight: Any = None) -> RiskCoverage:
    """The curve of rows with a doubt (n,), such as the least expected cost, and a cost (n,) that came true."""
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
