"""Anderson acceleration of EM: extrapolation of the last iterations to their limit.

Near the maximum EM converges linearly, and for degrees of freedom slowly: the objective may still be far below the
maximum when its gain is too small to measure. Anderson acceleration estimates the rate from the last few iterations. An
extrapolated point with a lower objective than the best so far is replaced by the plain EM step, so that the objective
never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.em_loop import FitStep
from likely.distributions.student_t.student_t_m_step import LARGEST_DOF, LEAST_DOF
from likely.numerics import spd

MEMORY = 6  # iterations that are used
PASSES = 500
STILL = 1e-9  # convergence tolerance of an extrapolated step, in units of the scale and of 1/ν
NOTHING = 1e-13  # the same, of a plain EM step
FARTHEST = 50.0  # in the same units: longer extrapolations are noise
SLACK = 1e-13  # of the objective: rounding error that is accepted as no decrease


class AcceleratedEM:
    """Accelerated EM of one distribution: `evaluate(model)` is an E-step over all rows with the objective.

    `m_step(step)` gives the next model of plain EM.
    """

    def __init__(
        self, evaluate: Callable[[Any], FitStep], m_step: Callable[[FitStep], Any] | None = None, passes: int = PASSES,
        tolerance: float = STILL,
    ) -> None:  # fmt: skip
        self.evaluate, self.m_step, self.passes, self.tolerance = evaluate, m_step or refitted, passes, tolerance
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
        return best, False

    def _decreased(self, here: FitStep, best: FitStep) -> bool:
        slack = SLACK * max(abs(best.objective), float(best.stats.total_weight))
        return not here.objective >= best.objective - slack

    def _extrapolated(self, model: Any, plain: Any) -> tuple[Any, bool]:
        """The extrapolated model, None if there is none; and whether the iteration has converged."""
        self.steps = [*self.steps, (model, plain)][-MEMORY:]
        pairs = [(as_vector(a, model), as_vector(b, model)) for a, b in self.steps]
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
        return from_vector(limit, model), bool(np.abs(limit - vectors[-1][0]).max() <= self.tolerance)


def refitted(step: FitStep) -> Any:
    """The M-step of plain EM."""
    return step.model.refit(step.stats, step.prior)


def as_vector(distribution: Any, unit: Any) -> Array | None:
    """Parameter vector: center, log-Cholesky factor of the scale and 1/ν, relative to those of `unit`."""
    deviation = np.sqrt(unit._shape.variance)
    kind = getattr(distribution, "kind", "full")
    parts = [((distribution.center - unit.center) / deviation).ravel()]
    if kind == "full":
        root = spd.cholesky(np.ascontiguousarray(distribution.scale))
        if root is None:
            return None
        i, j = np.tril_indices(distribution.dim, -1)
        diagonal = np.diagonal(root, axis1=-2, axis2=-1)
        parts += [np.log(diagonal / deviation).ravel(), (root / deviation[..., None])[..., i, j].ravel()]
    else:
        parts.append(0.5 * np.log(distribution.scale / unit.scale).ravel())
    if not getattr(distribution, "fixed_dof", True):
        parts.append((unit.dof / distribution.dof).ravel())
    return np.concatenate(parts)


def from_vector(vector: Array, unit: Any) -> Any:
    """The distribution with this parameter vector; degrees of freedom are clipped to their range."""
    deviation, shape = np.sqrt(unit._shape.variance), unit.center.shape
    size = unit.center.size
    changes: dict[str, Array] = {"center": unit.center + deviation * vector[:size].reshape(shape)}
    rest = vector[size:]
    if getattr(unit, "kind", "full") == "full":
        i, j = np.tril_indices(unit.dim, -1)
        root = np.zeros(unit.scale.shape)
        k = np.arange(unit.dim)
        root[..., k, k] = np.exp(rest[:size].reshape(shape)) * deviation
        below = rest[size : size + size * (unit.dim - 1) // 2].reshape((*shape[:-1], len(i)))
        root[..., i, j] = below * deviation[..., i]
        changes["scale"] = root @ np.swapaxes(root, -1, -2)
    else:
        changes["scale"] = unit.scale * np.exp(2 * rest[: unit.scale.size]).reshape(unit.scale.shape)
    if not getattr(unit, "fixed_dof", True):
        tails = rest[len(rest) - unit.dof.size :].reshape(unit.dof.shape)
        changes["dof"] = unit.dof / np.clip(tails, unit.dof / LARGEST_DOF, unit.dof / LEAST_DOF)
    return unit.replace(**changes)
