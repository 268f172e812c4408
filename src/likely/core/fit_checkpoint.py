"""How far a fit has come: all that is needed to go on, after a crash, to the same bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.value import Value

LEAST = -float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Progress(Value):
    """A model that looked at the data, what it reached, and how it came there; `reason` is empty until the end."""

    model: Any
    prior: Any
    trace: Array  # (t,): the objective of each model so far, this one's last
    held_out: Array  # (t,), or none: mean log-likelihood of rows set aside
    best: Any  # the model that explained them best, where it is another
    weight: float  # of all rows, to know the data again
    reason: str = ""
    converged: bool = False
    early: bool = False
    standing: bool = True  # False while the prior was still made anew of each pass; the trace is that of such passes

    @property
    def objectives(self) -> list[float]:
        """The trace, with −inf where a file had to hold a number."""
        return [float(x) if x > LEAST else -np.inf for x in self.trace]

    @classmethod
    def at(
        cls, model: Any, prior: Any, weight: float, trace: list[float], held_out: list[float], **more: Any
    ) -> Progress:
        """The progress of a run at a model."""
        more = {"best": None, "reason": "", "converged": False, "early": False, "standing": True, **more}
        numbers = {"trace": _finite(trace), "held_out": _finite(held_out)}
        return cls.trusted(model=model, prior=prior, weight=float(weight), **numbers, **more)


def _finite(numbers: list[float]) -> Array:
    """Numbers that a file can hold: a first guess may make rows impossible."""
    return np.nan_to_num(np.array(numbers, dtype=np.float64), neginf=LEAST)
