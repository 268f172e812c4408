"""Anderson acceleration of EM: extrapolation of the last iterations to their limit.

Near the maximum EM converges linearly, with the share of missing information as its rate: the objective may still be
far below the maximum when its gain is too small to measure. Anderson acceleration estimates the rate from the last few
iterations. An extrapolated point with a lower objective than the best so far is replaced by the plain EM step, so that
the objective never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.em_loop import FitStep

MEMORY = 6  # iterations that are used
PASSES = 500
STILL = 1e-9  # convergence tolerance of an extrapolated step, in the units of the parameter vector
NOTHING = 1e-13  # the same, of a plain EM step
FARTHEST = 50.0  # in the same units: longer extrapolations are noise
SLACK = 1e-13  # of the objective: rounding error that is accepted as no decrease


class AcceleratedEM:
    """Accelerated EM of one model: `evaluate(model)` is an E-step over all rows with the objective.

    `as_vector(model, unit)` are the parameters of a model as a vector in units of another one, None if it has none;
    `from_vector(vector, unit)` is the model. `m_step(step)` gives the next model of plain EM.
    """

    def __init__(
        self, as_vector: Callable[[Any, Any], Array | None], from_vector: Callable[[Array, Any], Any],
        evaluate: Callable[[Any], FitStep], m_step: Callable[[FitStep], Any] | None = None, passes: int = PASSES,
        tolerance: float = STILL,
    ) -> None:  # fmt: skip
        self.as_vector, self.from_vector = as_vector, from_vector
        self.evaluate, self.m_step, self.passes, self.tolerance = evaluate, m_step or refitted, passes, tolerance
        self.trace: list[float] = []  # the objective of the best model after each pass
        self.steps: list[tuple[Any, Any]] = []  # of EM: a model and the next one

    def run(self, first: FitStep) -> tuple[FitStep, bool]:
        """The iteration with the highest objective, and whether it has converged."""
        here = best = first
        for _ in range(self.passes):
            plain = self.m_step(here)
            extrapolated, has_converged = self._extrapolated(here.model, plain)
            if has_converged:
                return here, True
            here = self.evaluate(plain if extrapolated is None else extrapolated)
            if self._decreased(here, best):
                if extrapolated is None:
                    return best, False
                self.steps, here = [], self.evaluate(self.m_step(best))
            best = here if here.objective >= best.objective else best
            self.trace.append(best.objective)
        return best, False

    def _decreased(self, here: FitStep, best: FitStep) -> bool:
        slack = SLACK * max(abs(best.objective), float(best.stats.total_weight))
        return not here.objective >= best.objective - slack

    def _extrapolated(self, model: Any, plain: Any) -> tuple[Any, bool]:
        """The extrapolated model, None if there is none; and whether the iteration has converged."""
        self.steps = [*self.steps, (model, plain)][-MEMORY:]
        pairs = [(self.as_vector(a, model), self.as_vector(b, model)) for a, b in self.steps]
        vectors = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(vectors) < len(pairs):
            return None, False
        iterates, residuals = np.array([b for _, b in vectors]), np.array([b - a for a, b in vectors])
        if np.abs(residuals[-1]).max() <= NOTHING:
            return None, True
        if len(vectors) < 2:
            return None, False
        coefficients = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=1e-10)[0]
        limit = iterates[-1] - np.diff(iterates, axis=0).T @ coefficients
        if not np.abs(limit - vectors[-1][0]).max() < FARTHEST:
            return None, False
        return self.from_vector(limit, model), bool(np.abs(limit - vectors[-1][0]).max() <= self.tolerance)


def refitted(step: FitStep) -> Any:
    """The M-step of plain EM."""
    return step.model.refit(step.stats, step.prior)
