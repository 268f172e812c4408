"""EM begins, quasi-Newton goes on, EM confirms: variances that EM would creep toward are reached in a few passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from likely.core.arrays import Array
from likely.core.blocks import Block, Blocks
from likely.core.engine import Threads
from likely.core.fit_checkpoint import Progress
from likely.core.fit_loop import FALLS, INTERRUPTED, Keeper, Stop, fit, gather, units
from likely.core.fit_report import FitReport
from likely.core.warnings import said_once
from likely.statespace.linear.kalman_filter import series_of
from likely.statespace.linear.linear_em import LinearLearner, explained, objective
from likely.statespace.linear.linear_score import Coordinates, score
from likely.statespace.linear.linear_stats import LinearStats
from likely.statespace.linear.small_variances import Doubt, Look, doubt, raised

WARM = 10  # passes of EM first: nothing gains more at the beginning
NEARER = 0.01  # of tol: where the steps between end, so that EM's own gain is below it
LONGEST = 2.0  # step in θ: a variance changes by e⁴ at most
RISE = 1e-4  # share of the slope's promise that a step must keep
HALVINGS = 12
LAST = 4  # passes that a climb leaves to EM, which confirms, and to the look at small variances
WORTH = 1e-3  # nats that a variance near 0 must promise before it is raised
HEIGHTS = (1.0, 1 / 16, 1 / 256, 1 / 4096)  # of the data's own scale
SINGULAR = "the next step would be worse: a covariance is so nearly singular that rounding decides; a prior avoids this"
STUCK = "a variance near 0 should be greater, where its logarithm has no slope any more: begin with a greater {}"
BOLDER = 4.0  # longer steps where the slope does not fall: far from a maximum a variance's logarithm hardly matters


def learned(
    start: LinearLearner, data: Any, prior: Any = None, stop: Stop = Stop(500, 1e-8), checkpoint: Keeper | None = None
) -> FitReport:
    """The maximum that EM leads to, in fewer passes: each pass is one look at the data, and the objective never falls.

    `WARM` passes of EM, then steps by the exact slope of log p(y) (BFGS), each accepted only if the objective rises,
    and so on in turn until EM gains less than `tol` a frame where the slope promises no more. EM alone gains less
    a pass than is left to gain: the share of information that is hidden is the factor by which its errors shrink.
    A variance near 0, where both see no slope, is raised if log p rises with it, before this is called converged.

    A `checkpoint` is written at every step that rises. What was cut off goes on there: to the same bits during the
    first passes of EM, and later to the same maximum, since steps learn the curvature anew.

    >>> import likely as lk
    >>> nile = np.array([1120.0, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020])
    >>> level = lk.LinearGaussian.local_level(level_variance=1000.0, observation_variance=10000.0)
    >>> report = learned(LinearLearner.of(level, ["process_covariance", "observation_covariance"]), lk.Ragged.of(nile))
    >>> report.converged, report.iterations < 60
    (True, True)
    """
    with said_once():
        return _Run(start, Blocks.of(data, sequences=True), prior, stop, checkpoint).run()


def doubted(report: FitReport, data: Any, tol: float) -> FitReport:
    """A report of EM alone that does not call a variance settled which is only too near 0 to move."""
    if not report.converged:
        return report
    look = _pairs(Blocks.of(data, sequences=True).whole(), report)
    found = doubt(report.model.model, look, report.prior, report.model.structure, _worth(report, tol))
    if not found.lifts:
        return report
    return replace(report, converged=False, reason=STUCK.format(found.lifts[0].name))


def _worth(report: FitReport, tol: float) -> float:
    return max(10.0 * tol * units(report.stats), WORTH)


def _look(learner: LinearLearner, blocks: Blocks) -> LinearStats:
    stats: LinearStats = Threads().total(partial(gather, learner), blocks)
    return stats


def _pairs(blocks: Blocks, report: FitReport) -> Look:
    """Looks for moments and for those of what is expected alone; the report's own model has looked already."""

    def known(model: Any, block: Block) -> LinearStats:
        return explained(model, series_of(model, block.x), block.weight)

    def look(model: Any) -> tuple[LinearStats, LinearStats]:
        learner = report.model.replace(model=model)
        stats = report.stats if model is report.model.model else _look(learner, blocks)
        with np.errstate(all="ignore"):
            return stats, Threads().total(partial(known, model), blocks)

    return look


class _Kept:
    """A keeper for passes of EM among others: what they write is a part of the whole, and not yet its end."""

    def __init__(self, real: Keeper | None, before: list[float], kept: Progress | None = None) -> None:
        self.real, self.before, self.kept = real, list(before), kept

    def load(self) -> Progress | None:
        return self.kept

    def save(self, progress: Progress, /) -> None:
        if self.real is not None:
            trace = np.concatenate([self.before, progress.trace])
            self.real.save(progress.replace(trace=trace, reason="", converged=False))


class _Run:
    """EM, climb, EM …: what was reached, what each look reached, and how many looks are left."""

    def __init__(self, start: LinearLearner, blocks: Blocks, prior: Any, stop: Stop, checkpoint: Keeper | None) -> None:
        self.start, self.blocks, self.prior, self.stop, self.checkpoint = start, blocks, prior, stop, checkpoint
        self.whole = blocks.whole()
        self.trace: list[float] = []
        self.report: FitReport | None = None

    @property
    def left(self) -> int:
        """Looks that may still be made: one more than refits."""
        return self.stop.max_iter + 1 - len(self.trace)

    def run(self) -> FitReport:
        try:
            return self._noted(self._rounds())
        except KeyboardInterrupt:
            if self.report is None:
                raise
            return self._told(self.report, False, INTERRUPTED)

    def _rounds(self) -> FitReport:
        report, ended = self._begun()
        while not ended:
            report, ended = self._round(report)
        return report

    def _begun(self) -> tuple[FitReport, bool]:
        """The first passes of EM, or what was kept of an earlier run; True if that was its end."""
        kept = self.checkpoint.load() if self.checkpoint else None
        done = 0 if kept is None else len(kept.trace) - 1
        warm = WARM if self.stop.max_iter >= WARM + LAST else self.stop.max_iter
        first = Stop(min(max(warm, done), self.stop.max_iter), self.stop.tol)
        keeper = _Kept(self.checkpoint, [], kept) if self.checkpoint else None
        report = fit(self.start, self.blocks, prior=self.prior, stop=first, checkpoint=keeper)
        self.report, self.trace = report, list(report.trace)
        found = kept is not None and kept.converged and report.converged and len(report.trace) == len(kept.trace)
        still = not len(Coordinates(report.model.model, report.stats, report.model.structure))
        return report, found or still or report.reason == INTERRUPTED or not np.isfinite(report.objective)

    def _round(self, report: FitReport) -> tuple[FitReport, bool]:
        """Steps along the slope, passes of EM, and where both have settled a look at variances near 0."""
        if self.left < LAST:
            return self._cut_off(report), True
        climb = self._climbed(report)
        cut = self.left < LAST
        last = self._em(climb.best)
        if last.reason == INTERRUPTED:
            return self._told(last, False, INTERRUPTED), True
        if last.trace[0] < climb.reached - FALLS * max(abs(climb.reached), units(last.stats)):
            return self._told(replace(last, model=climb.best, stats=climb.stats), False, SINGULAR), True
        self.report = last
        self.trace += last.trace
        if not last.converged or cut or self.left < 1:
            return last, False
        return self._confirmed(last)

    def _climbed(self, report: FitReport) -> _Climb:
        look = partial(_look, blocks=self.whole)
        coordinates = Coordinates(report.model.model, report.stats, report.model.structure)
        climb = _Climb(coordinates, report, look, partial(self._rose, report))
        frames = units(report.stats)
        climb.run(self.left - LAST + 1, self.stop.tol * NEARER * frames, max(frames, 1e-300))
        self._said(climb)
        return climb

    def _rose(self, report: FitReport, climb: _Climb) -> None:
        """After each step that rose: what was reached can be found again."""
        self._said(climb)
        self.report = replace(report, model=climb.best, stats=climb.stats)
        self._keep(self.report)

    def _said(self, climb: _Climb) -> None:
        self.trace += climb.trace[len(climb.trace) - climb.unsaid :]
        climb.unsaid = 0

    def _em(self, learner: LinearLearner) -> FitReport:
        few = Stop(max(min(WARM, self.left - 2), 1), self.stop.tol)
        keeper = _Kept(self.checkpoint, self.trace) if self.checkpoint else None
        assert self.report is not None
        return fit(learner, self.blocks, prior=self.report.prior, stop=few, checkpoint=keeper)

    # ------------------------------------------------------------- variances near 0

    def _confirmed(self, report: FitReport) -> tuple[FitReport, bool]:
        """The end, unless a variance near 0 ought to be greater: then passes from there."""
        found = doubt(
            report.model.model, _pairs(self.whole, report), report.prior, report.model.structure,
            _worth(report, self.stop.tol), max(self.left // 2, 1),
        )  # fmt: skip
        self.trace += [self.trace[-1]] * min(2 * found.looks - 1, self.left)
        if not found.lifts:
            return (self._cut_off(report) if found.cut else self._told(report, True, report.reason)), True
        better = self._raised(report, found)
        if better is None:
            reason = STUCK.format(found.lifts[0].name)
            return self._told(report, False, reason), True
        self.report = better
        self._keep(better)
        if self.left < LAST:
            return better, False
        last = self._em(better.model)
        self.trace += last.trace
        self.report = last
        return last, last.reason == INTERRUPTED

    def _raised(self, report: FitReport, found: Doubt) -> FitReport | None:
        """The model with these variances raised, all of them or the best one, to where the objective is higher."""
        several = [found.lifts, found.lifts[:1]] if len(found.lifts) > 1 else [found.lifts]
        for height in HEIGHTS:
            for some in several:
                if self.left < 1:
                    return None
                model = raised(report.model.model, some, [1.0 + height / lift.share for lift in some])
                learner = report.model.replace(model=model)
                stats = _look(learner, self.whole)
                value = objective(model, stats, report.prior)
                if value > self.trace[-1] + self.stop.tol * units(stats):
                    self.trace.append(value)
                    return replace(report, model=learner, stats=stats)
                self.trace.append(self.trace[-1])
        return None

    # ------------------------------------------------------------------ the report

    def _cut_off(self, report: FitReport) -> FitReport:
        return self._told(report, False, f"{self.stop.max_iter} passes made, the objective still moving")

    def _told(self, report: FitReport, converged: bool, reason: str) -> FitReport:
        return replace(report, converged=converged, reason=reason, trace=list(self.trace))

    def _keep(self, report: FitReport, **end: Any) -> None:
        if self.checkpoint:
            weight = report.stats.total_weight
            self.checkpoint.save(Progress.at(report.model, report.prior, weight, self.trace, [], **end))

    def _noted(self, report: FitReport) -> FitReport:
        """The report, kept as the end of this run."""
        if report.reason != INTERRUPTED:
            self._keep(report, reason=report.reason, converged=report.converged)
        return report


class _Climb:
    """A climb in θ: where it stands, what is known of the curvature, and what each look reached."""

    def __init__(
        self, coordinates: Coordinates, report: FitReport, look: Callable[[LinearLearner], LinearStats],
        rose: Callable[[_Climb], None],
    ) -> None:  # fmt: skip
        self.coordinates, self.look, self.rose, self.prior = coordinates, look, rose, report.prior
        self.best, self.stats, self.reached = report.model, report.stats, report.objective
        self.theta = np.zeros(len(coordinates))
        self.trace: list[float] = []
        self.unsaid = 0  # looks since the last step that rose

    def run(self, passes: int, tol: float, frames: float) -> None:
        """Steps until the slope promises less than `tol`, no step rises, or the passes are used up."""
        curvature = np.eye(len(self.theta)) / frames  # its inverse: complete frames would have just that
        slope = self._slope()
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

    def _slope(self) -> Array:
        """At the beginning, from moments that EM has collected."""
        with np.errstate(all="ignore"):
            return score(self.coordinates, lambda _: self.stats, self.theta, self.prior)[0]

    def _risen(self, slope: Array, step: Array, passes: int) -> tuple[Array, Array] | None:
        """The longest of the step's halves that rises enough, and the slope there."""
        for _ in range(HALVINGS):
            if len(self.trace) >= passes:
                return None
            value, new, stats = self._looked(self.theta + step)
            if value >= self.reached + RISE * float(slope @ step) and np.isfinite(new).all():
                self.theta, self.reached, self.stats = self.theta + step, value, stats
                self.best = self.best.replace(model=self.coordinates.at(self.theta))
                self.trace[-1] = value
                self.rose(self)
                return step, new
            step = step / 2.0
        return None

    def _looked(self, theta: Array) -> tuple[float, Array, LinearStats]:
        with np.errstate(all="ignore"):
            slope, stats = score(self.coordinates, self._collected, theta, self.prior)
            value = objective(self.coordinates.at(theta), stats, self.prior)
        self.trace.append(self.reached)
        self.unsaid += 1
        return (value if np.isfinite(value) else -np.inf), slope, stats

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
