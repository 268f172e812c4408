"""Checkpoint state of a fit: everything needed to resume after a crash with bitwise equal results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from likely.core import declared
from likely.core.arrays import Array
from likely.core.value import Value

LEAST = -float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Progress(Value):
    """A model, its objective and the history of the fit; `reason` is empty until the fit has ended."""

    model: Annotated[Any, declared.density]
    prior: Annotated[Any, declared.maybe(declared.prior)]
    trace: Annotated[Array, declared.numbers("?")]  # (t,): the objective of each model so far, this model's last
    held_out: Annotated[Array, declared.numbers("?")]  # (t,), or none: mean held-out log-likelihood
    # the model with the best held-out log-likelihood, if it is another
    best: Annotated[Any, declared.maybe(declared.density)]
    weight: Annotated[float, declared.number(0)]  # of all rows, to recognize the data
    reason: str = ""
    converged: bool = False
    early: bool = False
    standing: bool = True  # False while the prior was still recomputed in each pass; the trace is that of such passes

    @property
    def objectives(self) -> list[float]:
        """The trace, with −inf restored where the file holds a finite number."""
        return [float(x) if x > LEAST else -np.inf for x in self.trace]

    @classmethod
    def at(
        cls, model: Any, prior: Any, weight: float, trace: list[float], held_out: list[float], **more: Any
    ) -> Progress:
        """The progress of a run at a given model."""
        more = {"best": None, "reason": "", "converged": False, "early": False, "standing": True, **more}
        numbers = {"trace": _finite(trace), "held_out": _finite(held_out)}
        return cls.trusted(model=model, prior=prior, weight=float(weight), **numbers, **more)


def _finite(numbers: list[float]) -> Array:
    """Finite numbers for the file: an initial model may have log-likelihood −inf."""
    return np.nan_to_num(np.array(numbers, dtype=np.float64), neginf=LEAST)
