"""Floor for probabilities of 0 from classifiers with a finite number of votes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Floor(Value):
    """The value that replaces a log-score of −inf.

    Half of the smallest probability above 0, or below 1, among held-out rows; if only 0 and 1 occur,
    1 / (N + 2). If −inf does not occur, the smallest score.
    """

    log: float
    clips: bool  # True: probabilities below it are 0 too

    @classmethod
    def of(cls, raw: Array, total: float, response: str) -> Floor:
        """The floor for scores (n, C) of rows with the given total weight."""
        finite = raw[np.isfinite(raw)]
        if response == "decision_function" or len(finite) == raw.size:
            return cls(float(finite.min(initial=0.0)), False)
        below = finite[finite < 0]
        rare = np.concatenate([below, np.log(-np.expm1(below))])
        smallest = float(rare.min()) - np.log(2) if rare.size else -np.log(total + 2)
        return cls(float(smallest), True)

    def applied(self, raw: Array) -> Array:
        """Finite scores."""
        return np.maximum(raw, self.log) if self.clips else np.where(np.isneginf(raw), self.log, raw)
