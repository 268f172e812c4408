"""The only learning loop: collect, add, refit, until the objective settles, and an honest report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from likely.core.blocks import Block, Blocks
from likely.core.engine import Engine, Threads
from likely.core.notes import said_once
from likely.errors import DataError, DomainError, NotConverged, sentence


@dataclass(frozen=True)
class Stop:
    """When to stop: the objective gained less than `tol` a unit of weight, or `max_iter` passes were made."""

    max_iter: int = 100
    tol: float = 1e-6

    def __post_init__(self) -> None:
        if self.max_iter < 1 or not self.tol >= 0:
            raise DomainError(sentence("Stop", "max_iter must be at least 1 and tol not negative", self))


@dataclass(frozen=True, eq=False)
class Step:
    """One pass over the data: the model that looked, what it saw, and how well it explains it."""

    model: Any
    stats: Any
    objective: float
    prior: Any


@dataclass(frozen=True, eq=False)
class FitReport:
    """How a fit went. `converged` is True only if the objective settled; running out of passes is not that."""

    model: Any
    stats: Any
    prior: Any
    converged: bool
    reason: str
    trace: list[float] = field(repr=False)  # the objective after each pass, prior included

    @property
    def iterations(self) -> int:
        """Number of refits."""
        return len(self.trace) - (0 if self.stats.complete else 1)

    @property
    def objective(self) -> float:
        """What was maximised, at the model that is returned."""
        return self.trace[-1]

    def require_converged(self) -> FitReport:
        """This report, or an error if the objective had not settled."""
        if not self.converged:
            raise NotConverged(
                sentence("fit", "the objective must settle", self.reason, "allow more passes: Stop(max_iter=…)")
            )
        return self

    def __str__(self) -> str:
        how = "converged" if self.converged else "NOT converged"
        lines = [f"{type(self.model).__name__}: {how} after {self.iterations} refits: {self.reason}"]
        lines.append(
            f"objective {self.objective:.10g}" + (f" (from {self.trace[0]:.10g})" if len(self.trace) > 1 else "")
        )
        lines.append(f"prior {type(self.prior).__name__ if self.prior is not None else 'none (maximum likelihood)'}")
        return "\n".join(lines)


def gather(model: Any, block: Block) -> Any:
    """`collect` on a block, with whatever is known of its labels."""
    known = {k: v for k, v in (("given", block.given), ("owner", block.owner)) if v is not None}
    return model.collect(block.x, block.weight, **known)


def resolve_prior(model: Any, stats: Any, prior: Any) -> Any:
    """A rule becomes a prior once there are statistics to scale it: `"weak"`, or a function of (model, stats)."""
    if isinstance(prior, str):
        if prior != "weak":
            raise DomainError(sentence("fit", 'prior must be a Prior, "weak" or None', repr(prior)))
        return model.weak_prior(stats)
    return prior(model, stats) if callable(prior) else prior


def iterate(model: Any, data: Any, *, prior: Any = None, engine: Engine | None = None) -> Iterator[Step]:
    """Endless passes over re-iterable data: each yields the model with its statistics and objective.

    Progress bars, checkpoints and plots watch this iterator; `fit` is a loop over it.
    """
    blocks, engine = Blocks.of(data), engine or Threads()
    if getattr(model, "takes_parts", False):
        blocks = blocks.whole()
    while True:
        stats: Any = engine.total(partial(gather, model), blocks)
        prior = resolve_prior(model, stats, prior)
        yield Step(model, stats, model.objective(stats, prior), prior)
        model = model.refit(stats, prior)


def fit(
    model: Any, data: Any, *, prior: Any = None, engine: Engine | None = None, stop: Stop | None = None
) -> FitReport:
    """Improve a model on data until its objective settles.

    With complete data one pass is the maximum. With something hidden (missing entries, labels,
    states) this is the EM algorithm, and the objective never falls (Dempster, Laird and Rubin).
    Ctrl-C returns the best model so far with `converged=False`.
    """
    with said_once():
        return _fit(model, data, prior, engine, stop or Stop())


def _fit(model: Any, data: Any, prior: Any, engine: Engine | None, stop: Stop) -> FitReport:
    trace: list[float] = []
    best: Step | None = None
    try:
        for step in iterate(model, data, prior=prior, engine=engine):
            if step.stats.complete:
                return _closed_form(step)
            trace.append(step.objective)
            if best is not None and _settled(trace, step.stats, stop.tol):
                return FitReport(step.model, step.stats, step.prior, True, f"gain below {stop.tol:g} a row", trace)
            best = step
            if len(trace) > stop.max_iter:
                reason = f"{stop.max_iter} refits made, the objective still moving"
                return FitReport(step.model, step.stats, step.prior, False, reason, trace)
    except KeyboardInterrupt:
        if best is None:
            raise
        return FitReport(best.model, best.stats, best.prior, False, "interrupted", trace)
    raise DataError(sentence("fit", "data must give at least one pass", "none"))  # pragma: no cover


def _closed_form(step: Step) -> FitReport:
    model = step.model.refit(step.stats, step.prior)
    objective = model.objective(step.stats, step.prior)
    return FitReport(model, step.stats, step.prior, True, "closed form: nothing was hidden", [objective])


def _settled(trace: list[float], stats: Any, tol: float) -> bool:
    return bool(abs(trace[-1] - trace[-2]) <= tol * max(float(stats.total_weight), 1e-300))
