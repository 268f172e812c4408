"""The only learning loop: collect, add, refit, until the objective settles, and an honest report."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from likely.core.blocks import Block, Blocks
from likely.core.engine import Engine, Threads
from likely.core.errors import DataError, DomainError, sentence
from likely.core.fit_checkpoint import Progress
from likely.core.fit_report import FitReport, Run
from likely.core.warnings import said_once

FALLS = 1e-8  # of the objective's size: what rounding may take away; EM itself never does
INTERRUPTED = "interrupted"
SETTLED = 100  # times the tolerance: by so much a rule's prior at the end may say otherwise than the one that stands
PATIENCE = 3  # passes in which rows set aside may be explained no better before we stop


@dataclass(frozen=True)
class Stop:
    """When to stop: the objective gained less than `tol` a unit of weight, or `max_iter` passes were made."""

    max_iter: int = 100
    tol: float = 1e-6

    def __post_init__(self) -> None:
        if self.max_iter < 1 or self.max_iter != int(self.max_iter) or not self.tol >= 0:
            raise DomainError(sentence("Stop", "max_iter must be whole and at least 1, tol not negative", self))


@dataclass(frozen=True, eq=False)
class Step:
    """One pass over the data: the model that looked, what it saw, and how well it explains it."""

    model: Any
    stats: Any
    objective: float
    prior: Any
    standing: bool = True  # False while a rule still makes another prior of each pass


class Keeper(Protocol):
    """Keeps the progress of a fit safe, as `lk.Checkpoint` does."""

    def load(self) -> Progress | None:
        """What was kept, None if nothing was."""
        ...

    def save(self, progress: Progress, /) -> None:
        """Keep it: whole or not at all."""
        ...


def gather(model: Any, block: Block, hard: bool = False) -> Any:
    """`collect` on a block, with whatever is known of its labels."""
    known: dict[str, Any] = {k: v for k, v in (("log_mask", block.log_mask), ("labels", block.labels)) if v is not None}
    if hard:
        known["hard"] = True
    return model.collect(block.x, block.weight, **known)


def units(stats: Any) -> float:
    """How many units a gain is divided by before it counts as none: rows, or frames of sequences."""
    return float(getattr(stats, "units", stats.total_weight))


def reached(model: Any, stats: Any, prior: Any) -> float:
    """What `refit` maximizes: the model's objective, and the log prior of a smoothing that it does by itself."""
    return float(model.objective(stats, prior) + getattr(model, "log_smoothing", 0.0))


def resolve_prior(model: Any, stats: Any, prior: Any) -> Any:
    """A rule becomes a prior once there are statistics to scale it: `"weak"`, or a function of (model, stats)."""
    if isinstance(prior, str):
        if prior != "weak":
            raise DomainError(sentence("fit", 'prior must be a Prior, "weak" or None', repr(prior)))
        return model.weak_prior(stats)
    prior = prior(model, stats) if callable(prior) else prior
    _suits(model, prior)
    return prior


def _suits(model: Any, prior: Any) -> None:
    """Refuse a prior of another distribution: priors name theirs; distributions made of others check their parts."""
    if prior is None or not getattr(model, "one_distribution", False):
        return
    me, whose = type(model).__name__, getattr(prior, "serves", None)
    if not hasattr(prior, "update"):
        raise DomainError(sentence(me, 'prior must be a Prior, "weak" or None', repr(prior)))
    if whose is not None and not any(base.__name__ in whose for base in type(model).__mro__):
        expected, remedy = f"{type(prior).__name__} is no prior of {me}", f"it is one of {', '.join(whose)}"
        raise DomainError(sentence(me, expected, remedy=remedy))


def iterate(
    model: Any, data: Any, *, prior: Any = None, engine: Engine | None = None, hard: bool = False,
    stop: Stop | None = None,
) -> Iterator[Step]:  # fmt: skip
    """Endless passes over re-iterable data: each yields the model with its statistics and objective.

    Progress bars, checkpoints and plots watch this iterator; `fit` is a loop over it. `hard` gives each row to the
    one label that explains it best (the maximum approximation), for models with hidden labels. Where rows have gaps
    and the prior is a rule such as "weak", steps of EM come before the first pass until the prior has settled, as
    `stop` says.
    """
    return (step for step in _passes(model, data, prior, engine, hard, stop or Stop()) if step.standing)


def _passes(
    model: Any, data: Any, prior: Any, engine: Engine | None, hard: bool, stop: Stop, looked: int = 0
) -> Iterator[Step]:
    """The same, with the passes in which the prior does not stand yet; so many of them have been made before."""
    if hard and not getattr(model, "hides_labels", False):
        expected = "hard=True is for models with hidden labels, such as mixtures"
        raise DomainError(sentence("fit", expected, type(model).__name__))
    blocks, engine = Blocks.for_model(model, data), engine or Threads()
    if getattr(model, "takes_parts", False):
        blocks = blocks.whole()

    def collected(model: Any) -> Any:
        return engine.total(partial(gather, model, hard=hard), blocks)

    stats = collected(model)
    step = _step(model, stats, resolve_prior(model, stats, prior))
    if _follows(prior, stats):
        step = yield from _settling(step, collected, prior, stop, looked)
    while True:
        yield step
        model = step.model.refit(step.stats, step.prior)
        step = _step(model, collected(model), step.prior)


def _step(model: Any, stats: Any, prior: Any) -> Step:
    return Step(model, stats, reached(model, stats, prior), prior)


def _follows(rule: Any, stats: Any) -> bool:
    """True if a rule makes the prior of statistics that are partly the model's own, because it filled gaps in.

    A first model knows no correlations, and a prior made of what it filled in would say that there are none.
    """
    return bool((isinstance(rule, str) or callable(rule)) and getattr(stats, "filled", False))


def _settling(
    step: Step, collected: Callable[[Any], Any], rule: Any, stop: Stop, looked: int
) -> Generator[Step, None, Step]:
    """Steps of EM, the rule applied again after each, until the new prior says the same of the model as the last.

    The last one stands from then on. The first pass under it is by a model that it made: what it allows, such as the
    least noise of factors, may be more than the prior before it allowed.
    """
    stands = step
    for _ in range(looked, stop.max_iter):
        yield replace(step, standing=False)
        model = step.model.refit(step.stats, step.prior)
        stands = _step(model, collected(model), step.prior)
        step = _step(model, stands.stats, resolve_prior(model, stands.stats, rule))
        if not abs(step.objective - stands.objective) > stop.tol * units(step.stats):
            break
    return stands


def fit(
    model: Any, data: Any, *, prior: Any = None, engine: Engine | None = None, stop: Stop | None = None,
    hard: bool = False, held_out: Any = None, checkpoint: Keeper | None = None,
) -> FitReport:  # fmt: skip
    """Improve a model on data until its objective settles.

    With complete data one pass is the maximum. With something hidden (missing entries, labels,
    states) this is the EM algorithm, and the objective never falls (Dempster, Laird and Rubin).

    - **hard**: the maximum approximation: each row belongs to the one label that explains it best.
    - **held_out**: other rows; learning stops when they are explained no better for three passes, and the model that
      explained them best is returned.
    - **checkpoint**: an `lk.Checkpoint`: progress is kept there, and a fit that was cut off goes on to the same bits.

    Where rows have gaps and the prior is a rule such as "weak", up to `max_iter` steps more come first, until the prior
    has settled; the report counts from there.

    Ctrl-C returns the best model so far with `converged=False`.

    >>> import likely as lk
    >>> x = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> report = fit(lk.Mixture([0.5, 0.5], lk.Gaussian([[2.0], [7.0]], [[[9.0]], [[9.0]]])), x, prior="weak")
    >>> report.converged, report.model.components.mean.round(1).ravel().tolist()
    (True, [0.5, 9.5])
    """
    with said_once():
        return _Climb(model, prior, stop or Stop(), held_out, checkpoint).run(data, engine, hard)


class _Climb:
    """One run of `fit`: what has been reached so far, and whether it is time to stop."""

    def __init__(self, model: Any, prior: Any, stop: Stop, held_out: Any, checkpoint: Keeper | None) -> None:
        self.model, self.prior, self.stop, self.checkpoint = model, prior, stop, checkpoint
        self.aside = None if held_out is None else Blocks.for_model(model, held_out)
        self.trace: list[float] = []
        self.held_out: list[float] = []
        self.last: Step | None = None
        self.best: Any = None  # the model that explains the rows set aside best
        self.asked = prior
        self.looks: list[float] = []  # objectives while the prior does not stand yet
        self.kept = checkpoint.load() if checkpoint else None
        if self.kept is not None:
            self._resume(self.kept)

    def run(self, data: Any, engine: Engine | None, hard: bool) -> FitReport:
        def passes(model: Any, prior: Any) -> Iterator[Step]:
            return _passes(model, data, prior, engine, hard, self.stop, len(self.looks))

        try:
            for step in passes(self.model, self.prior):
                report = self._after(step)
                if report is None:
                    continue
                if report.stopped_early and report.model is not step.model:
                    report = replace(report, stats=next(passes(report.model, report.prior)).stats)
                return self._noted(report)
        except KeyboardInterrupt:
            if self.last is None:
                raise
            report = self._final(self.last, False, INTERRUPTED)
            if report.model is not self.last.model:
                report = replace(report, stats=next(passes(report.model, report.prior)).stats)
            return report
        raise DataError(sentence("fit", "data must give at least one pass", "none"))  # pragma: no cover

    def _after(self, step: Step) -> FitReport | None:
        """The report, if this pass was the last."""
        if step.stats.complete:
            return _closed_form(step)
        kept, self.kept = self.kept, None
        if kept is not None:
            _same_data(step, kept)
        if not step.standing:
            self._look(step)
            return None
        if kept is not None:
            _same_prior(resolve_prior(step.model, step.stats, self.asked), kept.prior)
            if self._ended(kept):
                return replace(self._report(step, kept.converged, kept.reason, True), stopped_early=kept.early)
        if self._fell(step):
            if len(self.trace) > 1:
                return self._beyond_maximum()
            self.trace, self.held_out = [], []  # a start that no refit could have given is no mark to beat
        self.trace.append(step.objective)
        settled, self.last = self._settled(step), step
        if self.aside is not None and self._overlearned(step.model, self.aside):
            return self._early(step, f"rows set aside were explained no better in {PATIENCE} passes")
        if settled:
            return self._final(step, True, f"gain below {self.stop.tol:g} a {getattr(step.stats, 'unit', 'row')}")
        if len(self.trace) > self.stop.max_iter:
            return self._final(step, False, self._out_of_passes())
        self._keep(step.model, step)
        return None

    def _look(self, step: Step) -> None:
        """A pass before the prior stands: it is kept, and it is the answer if nothing comes after it."""
        self.looks.append(step.objective)
        self.last, self.best = step, step.model
        self._keep(step.model, step, best=None)

    def _final(self, step: Step, converged: bool, reason: str) -> FitReport:
        """The report of this pass, or of an earlier one that explained the rows set aside better."""
        if converged and not self._prior_settled(step):
            reason = f"{reason}; the prior was held after {self.stop.max_iter} passes, while it still moved"
        if self.aside is None or self.best is step.model:
            return self._report(step, converged, reason)
        return self._early(step, f"rows set aside were explained best some passes before; then: {reason}")

    def _prior_settled(self, step: Step) -> bool:
        """True unless a rule that follows the model has run out of passes before it gave the prior that stands."""
        if not _follows(self.asked, step.stats):
            return True
        now = reached(step.model, step.stats, resolve_prior(step.model, step.stats, self.asked))
        return bool(abs(now - step.objective) <= SETTLED * self.stop.tol * units(step.stats))

    def _out_of_passes(self) -> str:
        if np.isneginf(self.trace[-1]):
            return "some rows are impossible under every part, whatever is learned: the objective is −inf"
        many = "refit" if self.stop.max_iter == 1 else "refits"
        return f"{self.stop.max_iter} {many} made, the objective still moving"

    def _ended(self, kept: Progress) -> bool:
        """True if a run that is found again was at its end also by what is asked for now."""
        if not kept.converged:
            return kept.early
        gain = abs(float(kept.trace[-1] - kept.trace[-2])) if len(kept.trace) > 1 else 0.0
        return gain <= self.stop.tol * max(kept.weight, 1e-300)

    def _settled(self, step: Step) -> bool:
        if len(self.trace) < 2 or np.isneginf(self.trace[-2]):
            return False
        gain = abs(self.trace[-1] - self.trace[-2])
        return bool(gain <= self.stop.tol * max(units(step.stats), 1e-300))

    def _fell(self, step: Step) -> bool:
        """True if the objective is lower than before by more than rounding, as where a covariance met its floor."""
        if np.isnan(step.objective):
            told = "a number is not finite any more"
            raise DomainError(sentence("fit", "the objective must stay a number", told, 'give a prior, as "weak"'))
        before = self.trace[-1] if self.last is not None and self.last.standing else -np.inf
        return bool(step.objective < before - FALLS * max(abs(before), float(step.stats.total_weight)))

    def _beyond_maximum(self) -> FitReport:
        assert self.last is not None
        told = _why_worse(self.last.model, self.last.prior)
        return self._report(self.last, False, f"the next step would be worse: {told}")

    def _overlearned(self, model: Any, aside: Blocks) -> bool:
        self.held_out.append(mean_log_prob(model, aside))
        if self.held_out[-1] >= max(self.held_out):
            self.best = model
        return len(self.held_out) - 1 - self._best_at >= PATIENCE

    @property
    def _best_at(self) -> int:
        return len(self.held_out) - 1 - int(np.argmax(self.held_out[::-1]))

    def _early(self, step: Step, reason: str) -> FitReport:
        self.trace = self.trace[: self._best_at + 1]
        return replace(self._report(step, False, reason), model=self.best, stopped_early=True)

    def _report(self, step: Step, converged: bool, reason: str, again: bool = False) -> FitReport:
        if again or not step.standing:
            self.trace.append(step.objective)
        return FitReport(step.model, step.stats, step.prior, converged, reason, self.trace, self.held_out)

    # ------------------------------------------------------------- checkpoints

    def _resume(self, kept: Progress) -> None:
        """Go on at the model that looked last: it looks again, and must see the same."""
        _same_kind(self.model, kept.model)
        self.model, self.best = kept.model, kept.best
        if not kept.standing:
            self.looks = kept.objectives[:-1]
            return
        self.prior, self.trace = kept.prior, kept.objectives[:-1]
        self.held_out = kept.held_out.tolist() if kept.early else kept.held_out.tolist()[:-1]

    def _keep(self, model: Any, step: Step, **more: Any) -> None:
        if self.checkpoint:
            best = None if self.best is model else self.best
            weight = step.stats.total_weight
            more = {"best": best, "standing": step.standing, **more}
            trace = self.trace if step.standing else self.looks
            self.checkpoint.save(Progress.at(model, step.prior, weight, trace, self.held_out, **more))

    def _noted(self, report: FitReport) -> FitReport:
        """The report, kept as the end of this run."""
        if self.checkpoint and not report.stats.complete:
            step = Step(report.model, report.stats, report.objective, report.prior)
            end = {"reason": report.reason, "converged": report.converged, "early": report.stopped_early}
            self._keep(report.model, step, **end, best=None)
        return report


def _why_worse(model: Any, prior: Any) -> str:
    """What a step down comes from: what the model or its parts say of it, else what is known of its covariances."""
    own = getattr(model, "why_worse", None) or getattr(getattr(model, "components", None), "why_worse", None)
    if own is not None:
        return str(own)
    if prior is None or (hasattr(prior, "components") and prior.components is None):
        return "an estimate had to be lifted off a singularity; a prior avoids this"
    if getattr(model, "smallest_eigenvalue", None) is None:
        return "an estimate met the edge of what it may be, or rounding decides"
    return "a covariance is so nearly singular that rounding decides; leave out columns that others determine"


def _same_kind(asked: Any, kept: Any) -> None:
    """What was kept must be a model like the one that is asked for, else another one would come out of the fit."""
    if type(asked) is not type(kept) or asked.dim != kept.dim or asked.n_parameters != kept.n_parameters:
        expected = f"the model must be like the one asked for, a {_kind(asked)}"
        remedy = "resume with the settings that it was begun with, or delete the file"
        raise DataError(sentence("checkpoint", expected, f"a {_kind(kept)}", remedy))


def _kind(model: Any) -> str:
    return f"{type(model).__name__} of {model.n_parameters} parameters in {model.dim} columns"


def _same_data(step: Step, kept: Progress) -> None:
    weight, objective = float(step.stats.total_weight), kept.objectives[-1]
    slack = 1e-9 * max(abs(objective), 1.0)
    same = step.objective == objective or abs(step.objective - objective) <= slack
    if abs(weight - kept.weight) > 1e-9 * kept.weight or not same:
        remedy = "resume with the data and settings that it was begun with, or delete the file"
        came = f"objective {step.objective:.10g} for {objective:.10g}"
        raise DataError(sentence("checkpoint", "the same data must give the same objective", came, remedy))


def _same_prior(asked: Any, kept: Any) -> None:
    """A prior of the kind that is asked for; what of it is scaled by the first pass is not compared."""
    distributions = [getattr(p, "weights", None) for p in (asked, kept)]
    alphas = [getattr(distribution, "alpha", None) for distribution in distributions]
    same = _kinds(asked) == _kinds(kept) and (alphas[0] is None or np.array_equal(alphas[0], np.asarray(alphas[1])))
    if not same:
        remedy = "resume with the settings that it was begun with, or delete the file"
        expected = f"the prior must be the one asked for, {_kinds(asked)}"
        raise DataError(sentence("checkpoint", expected, f"{_kinds(kept)}", remedy))


def _kinds(prior: Any) -> str:
    """Which prior, and which of weights and parts."""
    if not hasattr(prior, "weights"):
        return "none" if prior is None else type(prior).__name__
    return f"{type(prior).__name__}({_kinds(prior.weights)}, {_kinds(prior.components)})"


def mean_log_prob(model: Any, data: Any) -> float:
    """Mean log p(x) a row of weighted data."""
    total, weight = 0.0, 0.0
    for block in Blocks.for_model(model, data):
        each = model.log_prob(block.x)
        total += float(each.sum() if block.weight is None else each @ block.weight)
        weight += float(len(each) if block.weight is None else block.weight.sum())
    if not weight > 0:
        raise DataError(sentence("fit", "rows set aside must have weight", "none"))
    return total / weight


def _closed_form(step: Step) -> FitReport:
    model = step.model.refit(step.stats, step.prior)
    objective = reached(model, step.stats, step.prior)
    return FitReport(model, step.stats, step.prior, True, "closed form: nothing was hidden", [objective])


def best_of(
    starts: Iterable[Any], learn: Callable[[int, Any], FitReport],
    agree: Callable[[list[Any], int], float] | None = None,
) -> FitReport:  # fmt: skip
    """The best of several runs, one from each start, with a note of all: values need no saving and restoring.

    `agree(models, best)` says how far the models that the runs led to agree with the best of them.
    """
    reports: list[FitReport] = []
    for i, start in enumerate(starts):
        reports.append(learn(i, start))
        if reports[-1].reason.endswith(INTERRUPTED):
            break
    best = max(range(len(reports)), key=lambda i: reports[i].objective)
    runs = tuple(Run(r.objective, r.iterations, r.converged, r.reason) for r in reports)
    several = agree is not None and len(reports) > 1
    agreement = agree([r.model for r in reports], best) if several and agree is not None else None
    return replace(reports[best], runs=runs, agreement=agreement)
