"""EM begins, quasi-Newton goes on, EM confirms: variances that EM would creep towards are reached in a few passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.blocks import Blocks
from likely.core.engine import Threads
from likely.core.learn import FALLS, INTERRUPTED, Stop, fit, gather, units
from likely.core.report import FitReport
from likely.models.linear_learning import LinearLearner, objective
from likely.models.linear_score import Coordinates, score
from likely.models.linear_stats import LinearStats

WARM = 10  # passes of EM first: nothing gains more at the beginning
NEARER = 0.01  # of tol: where the steps between end, so that EM's own gain is below it
LONGEST = 2.0  # step in θ: a variance changes by e⁴ at most
RISE = 1e-4  # share of the slope's promise that a step must keep
HALVINGS = 12
SINGULAR = "the next step would be worse: a covariance is so nearly singular that rounding decides; a prior avoids this"
BOLDER = 4.0  # longer steps where the slope does not fall: far from a maximum a variance's logarithm hardly matters


def learnt(
    start: LinearLearner, data: Any, prior: Any = None, stop: Stop = Stop(500, 1e-8), checkpoint: Any = None
) -> FitReport:
    """The maximum that EM leads to, in fewer passes: each pass is one look at the data, and the objective never falls.

    `WARM` passes of EM, then steps by the exact slope of log p(y) (BFGS), each accepted only if the objective rises,
    and so on in turn until EM gains less than `tol` a frame where the slope promises no more. EM alone gains less
    a pass than is left to gain: the share of information that is hidden is the factor by which its errors shrink.

    >>> import likely as lk
    >>> nile = np.array([1120.0, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020])
    >>> level = lk.LinearGaussian.local_level(noise=1000.0, observation=10000.0)
    >>> report = learnt(LinearLearner.of(level, ["noise", "observation"]), lk.Ragged.of(nile))
    >>> report.converged, report.iterations < 60
    (True, True)
    """
    blocks = Blocks.of(data)
    report = fit(start, blocks, prior=prior, stop=Stop(min(WARM, stop.max_iter), stop.tol), checkpoint=checkpoint)
    look = partial(_look, blocks=blocks.whole())
    trace, steep = list(report.trace), True
    while steep and np.isfinite(report.objective) and report.reason != INTERRUPTED:
        left = stop.max_iter - len(trace) + 1
        if left < 2:
            break
        better, climb = climbed(report, look, left - 1, stop.tol * NEARER)
        trace += climb
        few = Stop(max(min(WARM, left - len(climb)), 1), stop.tol)
        last = fit(better, blocks, prior=report.prior, stop=few)
        if last.trace[0] < trace[-1] - FALLS * max(abs(trace[-1]), units(last.stats)):
            return replace(report, model=better, stats=look(better), trace=trace, converged=False, reason=SINGULAR)
        report = last
        trace += report.trace
        steep = not report.converged or len(climb) >= left - 1
    return _told(report, trace, steep, stop)


def _told(report: FitReport, trace: list[float], steep: bool, stop: Stop) -> FitReport:
    """The report of all passes: where they ran out while the slope promised more, EM's own small gain is no end."""
    if report.reason == INTERRUPTED or len(trace) == len(report.trace):
        return report
    out = steep or not report.converged
    reason = f"{stop.max_iter} passes made, the objective still moving" if out else report.reason
    return replace(report, converged=not out, reason=reason, trace=trace)


def _look(learner: LinearLearner, blocks: Blocks) -> LinearStats:
    stats: LinearStats = Threads().total(partial(gather, learner), blocks)
    return stats


def climbed(
    report: FitReport, look: Callable[[LinearLearner], LinearStats], passes: int, tol: float
) -> tuple[LinearLearner, list[float]]:
    """The model after BFGS steps, and the best objective after each look; the model itself where nothing rises."""
    learner, prior = report.model, report.prior
    coordinates = Coordinates(learner.model, report.stats, learner.structure)
    if not len(coordinates):
        return learner, []
    climb = _Climb(coordinates, learner, look, prior, report.objective)
    climb.run(passes, tol * units(report.stats), max(units(report.stats), 1e-300))
    return climb.best, climb.trace


class _Climb:
    """A climb in θ: where it stands, what is known of the curvature, and what each look reached."""

    def __init__(self, coordinates: Coordinates, learner: LinearLearner, look: Any, prior: Any, reached: float) -> None:
        self.coordinates, self.best, self.look, self.prior = coordinates, learner, look, prior
        self.theta, self.reached = np.zeros(len(coordinates)), reached
        self.trace: list[float] = []

    def run(self, passes: int, tol: float, frames: float) -> None:
        """Steps until the slope promises less than `tol`, no step rises, or the passes are used up."""
        curvature = np.eye(len(self.theta)) / frames  # its inverse: complete frames would have just that
        slope = self._looked(self.theta)[1]
        while len(self.trace) < passes and np.isfinite(slope).all():
            step = _bounded(curvature @ slope)
            if slope @ step <= 2.0 * tol:
                return
            found = self._risen(slope, step, passes)
            if found is None:
                return
            moved, new = found
            curvature = _updated(curvature, moved, slope - new)
            slope = new

    def _risen(self, slope: Array, step: Array, passes: int) -> tuple[Array, Array] | None:
        """The longest of the step's halves that rises enough, and the slope there."""
        for _ in range(HALVINGS):
            if len(self.trace) >= passes:
                return None
            value, new = self._looked(self.theta + step)
            if value >= self.reached + RISE * float(slope @ step) and np.isfinite(new).all():
                self.theta, self.reached = self.theta + step, value
                self.best = self.best.replace(model=self.coordinates.at(self.theta))
                self.trace[-1] = value
                return step, new
            step = step / 2.0
        return None

    def _looked(self, theta: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            slope, stats = score(self.coordinates, self._collected, theta, self.prior)
            value = objective(self.coordinates.at(theta), stats, self.prior)
        self.trace.append(self.reached)
        return (value if np.isfinite(value) else -np.inf), slope

    def _collected(self, model: Any) -> LinearStats:
        return self.look(self.best.replace(model=model))


def _bounded(step: Array) -> Array:
    longest = float(np.abs(step).max(initial=0.0))
    return step if longest <= LONGEST else step * (LONGEST / longest)


def _updated(inverse: Array, moved: Array, fell: Array) -> Array:
    """BFGS: the inverse curvature after a step along which the slope fell by so much; where it rose, bolder steps."""
    along = float(moved @ fell)
    if along <= 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(fell)):
        return inverse * BOLDER
    away = np.eye(len(moved)) - np.outer(moved, fell) / along
    return away @ inverse @ away.T + np.outer(moved, moved) / along
