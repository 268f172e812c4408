"""The way up made short: steps of EM point to where they will end, and a few of them say where that is.

Near the top each step of EM closes a fixed share of what is left, and for degrees of freedom that share is small: a
gain too small to see may lie far below the maximum. Anderson's extrapolation reads the share off the last few steps. A
point that explains the rows worse than the best before is dropped for the plain step, so nothing is ever lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.fit_loop import Step
from likely.distributions.student_t.student_t_m_step import LARGEST_DOF, LEAST_DOF
from likely.numerics import spd

MEMORY = 6  # steps that are remembered
PASSES = 500
STILL = 1e-9  # an extrapolated step this small, in units of the scale and of 1/ν, is none
NOTHING = 1e-13  # the same, of a plain step
FARTHEST = 50.0  # in the same units: what leads farther is no guess but noise
SLACK = 1e-13  # of the objective's size: what rounding may take away


class Climb:
    """Extrapolated EM of one distribution: `look(model)` makes a pass over all rows and gives statistics and objective.

    `after(step)` is the plain next step from there.
    """

    def __init__(
        self, look: Callable[[Any], Step], after: Callable[[Step], Any] | None = None, passes: int = PASSES,
        still: float = STILL,
    ) -> None:  # fmt: skip
        self.look, self.after, self.passes, self.still = look, after or refitted, passes, still
        self.steps: list[tuple[Any, Any]] = []  # of EM: from one distribution to the next

    def run(self, first: Step) -> tuple[Step, bool]:
        """The best pass of all, and whether nothing moves any more."""
        here = best = first
        for _ in range(self.passes):
            aim = self.after(here)
            ahead, done = self._ahead(here.model, aim)
            if done:
                return here, True
            here = self.look(aim if ahead is None else ahead)
            if self._lost(here, best):
                if ahead is None:
                    return best, False
                self.steps, here = [], self.look(self.after(best))
            best = here if here.objective >= best.objective else best
        return best, False

    def _lost(self, here: Step, best: Step) -> bool:
        slack = SLACK * max(abs(best.objective), float(best.stats.total_weight))
        return not here.objective >= best.objective - slack

    def _ahead(self, model: Any, aim: Any) -> tuple[Any, bool]:
        """Where the last steps and this one lead, None if they do not say; and whether that is where we are."""
        self.steps = [*self.steps, (model, aim)][-MEMORY:]
        pairs = [(as_vector(a, model), as_vector(b, model)) for a, b in self.steps]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(known) < len(pairs):
            return None, False
        ends, ways = np.array([b for _, b in known]), np.array([b - a for a, b in known])
        if np.abs(ways[-1]).max() <= NOTHING:
            return None, True
        if len(known) < 2:
            return None, False
        share = np.linalg.lstsq(np.diff(ways, axis=0).T, ways[-1], rcond=1e-10)[0]
        to = ends[-1] - np.diff(ends, axis=0).T @ share
        if not np.abs(to - known[-1][0]).max() < FARTHEST:
            return None, False
        return from_vector(to, model), bool(np.abs(to - known[-1][0]).max() <= self.still)


def refitted(step: Step) -> Any:
    """The plain step of EM."""
    return step.model.refit(step.stats, step.prior)


def as_vector(distribution: Any, unit: Any) -> Array | None:
    """Center, logarithms of the scale's Cholesky factor and 1/ν, in the units of another such distribution."""
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
    """The distribution with such a vector; degrees of freedom stay within their ends."""
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
