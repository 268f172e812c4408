"""The fit loop: EM iterations (collect, add, refit) until the objective converges, and a convergence report."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from likely.core.blocks import Block, Blocks, size
from likely.core.engine import Engine, Threads
from likely.core.errors import DataError, DomainError, sentence
from likely.core.fit_report import FitReport, Run
from likely.core.job_size import fit_job
from likely.core.progress import CheckpointStore, Progress
from likely.core.warnings import warnings_once

FALLS = 1e-8  # relative decrease of the objective attributed to rounding; EM itself never decreases it
INTERRUPTED = "interrupted"
PRIOR_TOLERANCE = 100  # times the tolerance: allowed difference between the held prior and the rule's prior at the end
PATIENCE = 3  # passes without improvement of the held-out log-likelihood before early stopping


@dataclass(frozen=True)
class StoppingRule:
    """Stopping rule of iterations: the gain of the objective, and the number of passes.

    Parameters
    ----------
    max_iter : int, default 100
        Largest number of passes.
    tol : float, default 1e-6
        Iterations end when the objective gains less per unit of weight.

    See Also
    --------
    fit : Uses it.

    Examples
    --------
    >>> import likely as lk
    >>> x = [[0.0], [1.0], [9.0], [10.0]]
    >>> mixture = lk.Mixture([0.5, 0.5], lk.Gaussian([[2.0], [7.0]], [[[9.0]], [[9.0]]]))
    >>> lk.fit(mixture, x, prior="weak", stop=lk.StoppingRule(max_iter=1)).converged
    False
    """

    max_iter: int = 100
    tol: float = 1e-6

    def __post_init__(self) -> None:
        if self.max_iter < 1 or self.max_iter != int(self.max_iter) or not self.tol >= 0:
            raise DomainError(
                sentence("StoppingRule", "max_iter must be an integer and at least 1, tol not negative", self)
            )


@dataclass(frozen=True, eq=False)
class FitStep:
    """One pass over the data: the model, its statistics, the prior and the objective.

    Parameters
    ----------
    model : Learnable
        The model.
    stats : statistics
        Its statistics of the data.
    prior : Prior or None
        The prior.
    prior_is_fixed : bool, default True
        False while the prior is still recomputed in each pass.
    known_objective : float, optional
        The objective, where it is known already.

    See Also
    --------
    iterate : Yields them.

    Examples
    --------
    >>> import likely as lk
    >>> model = lk.Poisson(2.0)
    >>> step = lk.core.FitStep(model, model.collect([[1], [3]]), None)
    >>> round(step.objective, 4)
    -3.0192
    """

    model: Any
    stats: Any
    prior: Any
    prior_is_fixed: bool = True  # False while the prior is still recomputed in each pass
    known_objective: float | None = None  # the objective, where it is known already

    @cached_property
    def objective(self) -> float:
        """The objective of the model: its expected log-likelihood, with the entropy of what is hidden and log prior."""
        return reached(self.model, self.stats, self.prior) if self.known_objective is None else self.known_objective


def gather(model: Any, block: Block, hard: bool = False) -> Any:
    """`collect` on a block, with its label information."""
    optional = {"log_mask": block.log_mask, "labels": block.labels}
    label_arguments: dict[str, Any] = {name: value for name, value in optional.items() if value is not None}
    if hard:
        label_arguments["hard"] = True
    return model.collect(block.x, block.weight, **label_arguments)


def units(stats: Any) -> float:
    """The number of units that a gain is divided by: rows, or frames of sequences."""
    return float(getattr(stats, "units", stats.total_weight))


def reached(model: Any, stats: Any, prior: Any) -> float:
    """The objective of `refit`: the model's objective, plus the log prior of its built-in smoothing."""
    return float(model.objective(stats, prior) + getattr(model, "log_smoothing", 0.0))


def resolve_prior(model: Any, stats: Any, prior: Any) -> Any:
    """The prior for the given statistics: a rule (`"weak"`, or a function of (model, stats)) is evaluated."""
    if isinstance(prior, str):
        if prior != "weak":
            raise DomainError(sentence("fit", 'prior must be a Prior, "weak" or None', repr(prior)))
        return model.weak_prior(stats)
    prior = prior(model, stats) if callable(prior) else prior
    _suits(model, prior)
    return prior


def _suits(model: Any, prior: Any) -> None:
    """Raise an error if the prior belongs to another distribution; composite distributions check their components."""
    if prior is None or not getattr(model, "one_distribution", False):
        return
    me, whose = type(model).__name__, getattr(prior, "serves", None)
    if not hasattr(prior, "update"):
        raise DomainError(sentence(me, 'prior must be a Prior, "weak" or None', repr(prior)))
    if whose is not None and not any(base.__name__ in whose for base in type(model).__mro__):
        expected, remedy = f"{type(prior).__name__} is not a prior of {me}", f"it is one of {', '.join(whose)}"
        raise DomainError(sentence(me, expected, remedy=remedy))


def iterate(
    model: Any, data: Any, *, prior: Any = None, engine: Engine | None = None, hard: bool = False,
    stop: StoppingRule | None = None,
) -> Iterator[FitStep]:  # fmt: skip
    """Unbounded EM iterations over re-iterable data.

    Progress bars, checkpoints and plots use this iterator; `fit` is a loop over it. Where rows have missing values and
    the prior is a rule such as "weak", EM steps come before the first pass until the prior has converged, as `stop`
    says.

    Parameters
    ----------
    model : Learnable
        The initial model.
    data : array-like, Ragged, Columns or Blocks
        Rows, or sequences.
    prior : Prior, {"weak"} or None
        Prior of the parameters; None is maximum likelihood.
    engine : Engine, optional
        What sums statistics of blocks; by default `Threads()`.
    hard : bool, default False
        Assign each row to its most probable label (hard EM), for models with latent labels.
    stop : StoppingRule, optional
        When the steps for the prior end.

    Returns
    -------
    iterator of FitStep
        Per pass, the model with its statistics and objective.

    See Also
    --------
    fit : A loop until convergence.

    Examples
    --------
    >>> import likely as lk
    >>> from itertools import islice
    >>> mixture = lk.Mixture([0.5, 0.5], lk.Gaussian([[2.0], [7.0]], [[[9.0]], [[9.0]]]))
    >>> steps = lk.core.iterate(mixture, [[0.0], [1.0], [9.0], [10.0]])
    >>> [round(step.objective, 2) for step in islice(steps, 3)]
    [-11.51, -10.23, -6.36]
    """
    return (step for step in _passes(model, data, prior, engine, hard, stop or StoppingRule()) if step.prior_is_fixed)


def _passes(
    model: Any, data: Any, prior: Any, engine: Engine | None, hard: bool, stop: StoppingRule, prior_passes: int = 0
) -> Iterator[FitStep]:
    """The same, with the passes in which the prior is still recomputed; `prior_passes` of them were made before."""
    if hard and not getattr(model, "hides_labels", False):
        expected = "hard=True is for models with latent labels, such as mixtures"
        raise DomainError(sentence("fit", expected, type(model).__name__))
    blocks, engine = Blocks.for_model(model, data), engine or Threads()
    if getattr(model, "takes_parts", False):
        blocks = blocks.whole()

    n = size(blocks)

    def collected(model: Any) -> Any:
        with fit_job(n, model, stop.max_iter):
            return engine.total(partial(gather, model, hard=hard), blocks)

    stats = collected(model)
    step = _step(model, stats, resolve_prior(model, stats, prior))
    if _depends_on_model(prior, stats):
        step = yield from _converging_prior(step, collected, prior, stop, prior_passes)
    while True:
        yield step
        model = step.model.refit(step.stats, step.prior)
        step = _step(model, collected(model), step.prior)


def _step(model: Any, stats: Any, prior: Any) -> FitStep:
    return FitStep(model, stats, prior)


def _depends_on_model(rule: Any, stats: Any) -> bool:
    """True if a rule computes the prior from statistics that depend on the model, because it imputed missing values.

    An initial model has no correlations, and a prior computed from its imputed values would have none either.
    """
    return bool((isinstance(rule, str) or callable(rule)) and getattr(stats, "filled", False))


def _converging_prior(
    step: FitStep, collected: Callable[[Any], Any], rule: Any, stop: StoppingRule, prior_passes: int
) -> Generator[FitStep, None, FitStep]:
    """EM steps, with the rule applied again after each, until the new prior gives the same objective as the last.

    The last prior is held from then on. The first pass with it uses a model that it produced, because its
    constraints, such as the noise floor of factor analysis, may differ from those of the prior before it.
    """
    held = step
    for _ in range(prior_passes, stop.max_iter):
        yield replace(step, prior_is_fixed=False)
        model = step.model.refit(step.stats, step.prior)
        held = _step(model, collected(model), step.prior)
        step = _step(model, held.stats, resolve_prior(model, held.stats, rule))
        if not abs(step.objective - held.objective) > stop.tol * units(step.stats):
            break
    return held


def fit(
    model: Any, data: Any, *, prior: Any = None, engine: Engine | None = None, stop: StoppingRule | None = None,
    hard: bool = False, held_out: Any = None, checkpoint: CheckpointStore | None = None,
) -> FitReport:  # fmt: skip
    """Fit a model to data: EM (or the closed form) until the objective converges.

    With complete data one pass gives the maximum. With latent variables (missing entries, labels,
    states) this is the EM algorithm, and the objective never falls (Dempster, Laird and Rubin).

    Where rows have missing values and the prior is a rule such as "weak", up to `max_iter` additional steps come first,
    until the prior has converged; the report counts from there.

    Ctrl-C returns the best model so far with `converged=False`.

    Parameters
    ----------
    model : Learnable
        The initial model.
    data : array-like, Ragged, Columns or Blocks
        Rows, or sequences.
    prior : Prior, {"weak"} or None
        Prior of the parameters; None is maximum likelihood.
    engine : Engine, optional
        What sums statistics of blocks; by default `Threads()`.
    stop : StoppingRule, optional
        When iterations end.
    hard : bool, default False
        Hard EM (Viterbi training): each row is assigned to its most probable label.
    held_out : array-like, optional
        Rows for early stopping: the fit stops when their log-likelihood has not improved for three passes, and the
        model with the best held-out log-likelihood is returned.
    checkpoint : Checkpoint, optional
        An `lk.core.Checkpoint` that saves progress; an interrupted fit resumes with the same bits.

    Returns
    -------
    FitReport
        The fitted model, its statistics, and how the fit went.

    See Also
    --------
    iterate : The passes, one by one.
    online_em : Learning from a stream.
    StoppingRule : When iterations end.

    References
    ----------
    Dempster, Laird and Rubin (1977); Bishop (2006), chapter 9.

    Examples
    --------
    >>> import likely as lk
    >>> x = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> report = fit(lk.Mixture([0.5, 0.5], lk.Gaussian([[2.0], [7.0]], [[[9.0]], [[9.0]]])), x, prior="weak")
    >>> report.converged, report.model.components.mean.round(1).ravel().tolist()
    (True, [0.5, 9.5])
    """
    with warnings_once():
        return _FitRun(model, prior, stop or StoppingRule(), held_out, checkpoint).run(data, engine, hard)


class _FitRun:
    """One run of `fit`: the progress so far and the stopping criteria."""

    def __init__(
        self, model: Any, prior: Any, stop: StoppingRule, held_out: Any, checkpoint: CheckpointStore | None
    ) -> None:
        self.model, self.prior, self.stop, self.checkpoint = model, prior, stop, checkpoint
        self.held_out_blocks = None if held_out is None else Blocks.for_model(model, held_out)
        self.trace: list[float] = []
        self.held_out: list[float] = []
        self.last: FitStep | None = None
        self.best: Any = None  # the model with the best held-out log-likelihood
        self.requested_prior = prior
        self.prior_trace: list[float] = []  # objectives of the passes before the prior is held
        self.kept = checkpoint.load(Progress) if checkpoint else None
        if self.kept is not None:
            self._resume(self.kept)

    def run(self, data: Any, engine: Engine | None, hard: bool) -> FitReport:
        def passes(model: Any, prior: Any) -> Iterator[FitStep]:
            return _passes(model, data, prior, engine, hard, self.stop, len(self.prior_trace))

        try:
            for step in passes(self.model, self.prior):
                report = self._after(step)
                if report is None:
                    continue
                if report.stopped_early and report.model is not step.model:
                    report = replace(report, stats=next(passes(report.model, report.prior)).stats)
                return self._saved(report)
        except KeyboardInterrupt:
            if self.last is None:
                raise
            report = self._final(self.last, False, INTERRUPTED)
            if report.model is not self.last.model:
                report = replace(report, stats=next(passes(report.model, report.prior)).stats)
            return report
        raise DataError(sentence("fit", "data must give at least one pass", "none"))  # pragma: no cover

    def _after(self, step: FitStep) -> FitReport | None:
        """The report, if this pass was the last one."""
        if step.stats.complete:
            return _closed_form(step)
        kept, self.kept = self.kept, None
        if kept is not None:
            _same_data(step, kept)
        if not step.prior_is_fixed:
            self._record_prior_pass(step)
            return None
        if kept is not None:
            _same_prior(resolve_prior(step.model, step.stats, self.requested_prior), kept.prior)
            if self._had_ended(kept):
                return replace(self._report(step, kept.converged, kept.reason, True), stopped_early=kept.early)
        if self._has_decreased(step):
            if len(self.trace) > 1:
                return self._before_decrease()
            self.trace, self.held_out = (
                [],
                [],
            )  # the initial model need not satisfy the constraints of refit: do not compare with it
        self.trace.append(step.objective)
        converged, self.last = self._has_converged(step), step
        if self.held_out_blocks is not None and self._is_overfitting(step.model, self.held_out_blocks):
            return self._stopped_early(step, f"the held-out log-likelihood did not improve in {PATIENCE} passes")
        if converged:
            return self._final(step, True, f"gain below {self.stop.tol:g} per {getattr(step.stats, 'unit', 'row')}")
        if len(self.trace) > self.stop.max_iter:
            return self._final(step, False, self._not_converged_reason())
        self._save_progress(step.model, step)
        return None

    def _record_prior_pass(self, step: FitStep) -> None:
        """Record a pass before the prior is held: it is the result if no pass follows."""
        self.prior_trace.append(step.objective)
        self.last, self.best = step, step.model
        self._save_progress(step.model, step, best=None)

    def _final(self, step: FitStep, converged: bool, reason: str) -> FitReport:
        """The report of this pass, or of an earlier one with a better held-out log-likelihood."""
        if converged and not self._prior_has_converged(step):
            reason = f"{reason}; the prior was held after {self.stop.max_iter} passes, while it still moved"
        if self.held_out_blocks is None or self.best is step.model:
            return self._report(step, converged, reason)
        return self._stopped_early(step, f"the held-out log-likelihood was best some passes before; then: {reason}")

    def _prior_has_converged(self, step: FitStep) -> bool:
        """False if a rule that depends on the model ran out of passes before its prior converged."""
        if not _depends_on_model(self.requested_prior, step.stats):
            return True
        now = reached(step.model, step.stats, resolve_prior(step.model, step.stats, self.requested_prior))
        return bool(abs(now - step.objective) <= PRIOR_TOLERANCE * self.stop.tol * units(step.stats))

    def _not_converged_reason(self) -> str:
        if np.isneginf(self.trace[-1]):
            return "some rows have density 0 under every component: the objective is −inf"
        many = "refit" if self.stop.max_iter == 1 else "refits"
        return f"{self.stop.max_iter} {many} made, the objective still moving"

    def _had_ended(self, kept: Progress) -> bool:
        """True if a resumed run had ended by the present stopping rule, too."""
        if not kept.converged:
            return kept.early
        gain = abs(float(kept.trace[-1] - kept.trace[-2])) if len(kept.trace) > 1 else 0.0
        return gain <= self.stop.tol * max(kept.weight, 1e-300)

    def _has_converged(self, step: FitStep) -> bool:
        if len(self.trace) < 2 or np.isneginf(self.trace[-2]):
            return False
        gain = abs(self.trace[-1] - self.trace[-2])
        return bool(gain <= self.stop.tol * max(units(step.stats), 1e-300))

    def _has_decreased(self, step: FitStep) -> bool:
        """True if the objective decreased by more than rounding, as where a covariance reached its floor."""
        if np.isnan(step.objective):
            got = "NaN"
            raise DomainError(sentence("fit", "the objective must be a number", got, 'use a prior, such as "weak"'))
        before = self.trace[-1] if self.last is not None and self.last.prior_is_fixed else -np.inf
        return bool(step.objective < before - FALLS * max(abs(before), float(step.stats.total_weight)))

    def _before_decrease(self) -> FitReport:
        assert self.last is not None
        why = _why_worse(self.last.model, self.last.prior)
        return self._report(self.last, False, f"the next step would be worse: {why}")

    def _is_overfitting(self, model: Any, held_out: Blocks) -> bool:
        self.held_out.append(mean_log_prob(model, held_out))
        if self.held_out[-1] >= max(self.held_out):
            self.best = model
        return len(self.held_out) - 1 - self._best_at >= PATIENCE

    @property
    def _best_at(self) -> int:
        return len(self.held_out) - 1 - int(np.argmax(self.held_out[::-1]))

    def _stopped_early(self, step: FitStep, reason: str) -> FitReport:
        self.trace = self.trace[: self._best_at + 1]
        return replace(self._report(step, False, reason), model=self.best, stopped_early=True)

    def _report(self, step: FitStep, converged: bool, reason: str, again: bool = False) -> FitReport:
        if again or not step.prior_is_fixed:
            self.trace.append(step.objective)
        return FitReport(step.model, step.stats, step.prior, converged, reason, self.trace, self.held_out)

    # ------------------------------------------------------------- checkpoints

    def _resume(self, kept: Progress) -> None:
        """Resume at the last model: its statistics are collected again and must give the same objective."""
        _same_kind(self.model, kept.model)
        self.model, self.best = kept.model, kept.best
        if not kept.prior_is_fixed:
            self.prior_trace = kept.objectives[:-1]
            return
        self.prior, self.trace = kept.prior, kept.objectives[:-1]
        self.held_out = kept.held_out.tolist() if kept.early else kept.held_out.tolist()[:-1]

    def _save_progress(self, model: Any, step: FitStep, **more: Any) -> None:
        if self.checkpoint:
            best = None if self.best is model else self.best
            weight = step.stats.total_weight
            more = {"best": best, "prior_is_fixed": step.prior_is_fixed, **more}
            trace = self.trace if step.prior_is_fixed else self.prior_trace
            self.checkpoint.save(Progress.at(model, step.prior, weight, trace, self.held_out, **more))

    def _saved(self, report: FitReport) -> FitReport:
        """The report, saved as the end of this run."""
        if self.checkpoint and not report.stats.complete:
            step = FitStep(report.model, report.stats, report.prior)
            end = {"reason": report.reason, "converged": report.converged, "early": report.stopped_early}
            self._save_progress(report.model, step, **end, best=None)
        return report


def _why_worse(model: Any, prior: Any) -> str:
    """The reason for a decrease of the objective, from the model or its components, else from its covariances."""
    own = getattr(model, "why_worse", None) or getattr(getattr(model, "components", None), "why_worse", None)
    if own is not None:
        return str(own)
    if prior is None or (hasattr(prior, "components") and prior.components is None):
        return "a singular estimate had to be regularized; a prior avoids this"
    if getattr(model, "smallest_eigenvalue", None) is None:
        return "an estimate reached the boundary of its domain, or rounding errors dominate"
    return "a covariance is so nearly singular that rounding errors dominate; leave out linearly dependent columns"


def _same_kind(requested: Any, kept: Any) -> None:
    """Raise an error unless the saved model has the type and size of the requested one."""
    if type(requested) is not type(kept) or requested.dim != kept.dim or requested.n_parameters != kept.n_parameters:
        expected = f"the model must be like the requested one, a {_kind(requested)}"
        remedy = "resume with the original settings, or delete the file"
        raise DataError(sentence("checkpoint", expected, f"a {_kind(kept)}", remedy))


def _kind(model: Any) -> str:
    return f"{type(model).__name__} of {model.n_parameters} parameters in {model.dim} columns"


def _same_data(step: FitStep, kept: Progress) -> None:
    weight, objective = float(step.stats.total_weight), kept.objectives[-1]
    slack = 1e-9 * max(abs(objective), 1.0)
    same = step.objective == objective or abs(step.objective - objective) <= slack
    if abs(weight - kept.weight) > 1e-9 * kept.weight or not same:
        remedy = "resume with the original data and settings, or delete the file"
        got = f"objective {step.objective:.10g} instead of {objective:.10g}"
        raise DataError(sentence("checkpoint", "the same data must give the same objective", got, remedy))


def _same_prior(requested: Any, kept: Any) -> None:
    """Raise an error unless the saved prior is of the requested type; scales from the first pass are not compared."""
    distributions = [getattr(p, "weights", None) for p in (requested, kept)]
    alphas = [getattr(distribution, "alpha", None) for distribution in distributions]
    same = _kinds(requested) == _kinds(kept) and (alphas[0] is None or np.array_equal(alphas[0], np.asarray(alphas[1])))
    if not same:
        remedy = "resume with the original settings, or delete the file"
        expected = f"the prior must be the requested one, {_kinds(requested)}"
        raise DataError(sentence("checkpoint", expected, f"{_kinds(kept)}", remedy))


def _kinds(prior: Any) -> str:
    """The types of a prior and of its priors of weights and components."""
    if not hasattr(prior, "weights"):
        return "none" if prior is None else type(prior).__name__
    return f"{type(prior).__name__}({_kinds(prior.weights)}, {_kinds(prior.components)})"


def mean_log_prob(model: Any, data: Any) -> float:
    """Mean log-likelihood per row of weighted data."""
    total, weight = 0.0, 0.0
    for block in Blocks.for_model(model, data):
        log_probs = model.log_prob(block.x)
        total += float(log_probs.sum() if block.weight is None else log_probs @ block.weight)
        weight += float(len(log_probs) if block.weight is None else block.weight.sum())
    if not weight > 0:
        raise DataError(sentence("fit", "held-out rows must have positive total weight", "none"))
    return total / weight


def _closed_form(step: FitStep) -> FitReport:
    model = step.model.refit(step.stats, step.prior)
    objective = reached(model, step.stats, step.prior)
    return FitReport(model, step.stats, step.prior, True, "closed form: no latent variables", [objective])


def best_of(
    starts: Iterable[Any], learn: Callable[[int, Any], FitReport],
    agree: Callable[[list[Any], int], float] | None = None,
) -> FitReport:  # fmt: skip
    """The best of several runs, one from each initial model, with a summary of all runs.

    `agree(models, best)` measures how well the models of all runs agree with the best one.
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
