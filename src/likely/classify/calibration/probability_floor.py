"""What a probability of 0 is worth, from a classifier that could not have counted so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.core.arrays import Array
from likely.core.value import Value


@dataclass(frozen=True, eq=False)
class Floor(Value):
    """What stands for a log-score of −inf: no classifier has counted far enough to say 0.

    Half of the smallest probability above 0, or below 1, among rows that were not trained on; where only 0 and 1 were
    seen, 1 / (N + 2). If −inf was not seen at all, it stands for the smallest score.
    """

    log: float
    clips: bool  # True: probabilities below it are 0 too

    @classmethod
    def of(cls, raw: Array, total: float, response: str) -> Floor:
        """Learn it from scores (n, C) of rows with that weight in total."""
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
