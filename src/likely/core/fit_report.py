"""FitReport: convergence, objective, effective counts and other diagnostics of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.description import Described, Description, counted
from likely.core.errors import NotConverged, sentence

EMPTY = 1e-9  # share of the total weight below which a component is empty
NEAR = 1e-5  # nats per row by which runs with the same optimum may differ: each has a weak prior of its own scale
SHOWN = 8  # maximum number of printed entries


class Run(NamedTuple):
    """One of several runs from different initial models: its objective and convergence."""

    objective: float
    iterations: int
    converged: bool
    reason: str


@dataclass(frozen=True, eq=False)
class FitReport(Described):
    """Result and diagnostics of a fit.

    Parameters
    ----------
    model : value
        The fitted model.
    stats : statistics
        Its statistics of the data.
    prior : Prior or None
        The prior that was used.
    converged : bool
        True only if the objective converged within `max_iter` passes.
    reason : str
        Why the fit ended.
    trace : list of float
        The objective after each pass, including the log prior.
    held_out : list of float
        Mean log-likelihood of held-out rows after each pass.
    stopped_early : bool, default False
        Early stopping: the held-out log-likelihood did not improve.
    runs : tuple of Run
        One per initial model, where there were several.
    agreement : float, optional
        Agreement of the partitions found by the runs: 1 if they are all the same.
    reseeded : int, default 0
        Number of empty components that were reinitialized.
    streaming : bool, default False
        One step of online learning: convergence is not expected.

    See Also
    --------
    fit : Returns it.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> print(lk.fit(lk.Gaussian([0.0], 1.0), np.array([[1.0], [3.0]])))
    Gaussian: converged after 1 refit: closed form: no latent variables
      objective            -2.837877066
      prior                none (maximum likelihood)
      smallest eigenvalue  1
    """

    model: Any
    stats: Any
    prior: Any
    converged: bool
    reason: str
    trace: list[float] = field(repr=False)  # the objective after each pass, including the log prior
    held_out: list[float] = field(default_factory=list, repr=False)  # mean log-likelihood of held-out rows
    stopped_early: bool = False  # early stopping: the held-out log-likelihood did not improve
    runs: tuple[Run, ...] = ()  # one per initial model, where there were several
    agreement: float | None = None  # of the partitions found by the runs: 1 if they are all the same
    reseeded: int = 0  # number of empty components that were reinitialized
    streaming: bool = False  # one step of online learning: convergence is not expected

    @property
    def iterations(self) -> int:
        """Number of refits."""
        return len(self.trace) - (0 if self.stats.complete else 1)

    @property
    def objective(self) -> float:
        """The maximized objective, at the returned model."""
        return self.trace[-1]

    @property
    def effective_counts(self) -> Array | None:
        """Effective number of rows per component (K,), in weight; None for a model without components."""
        return getattr(self.stats, "counts", None)

    @property
    def smallest_eigenvalue(self) -> float | None:
        """The smallest eigenvalue of any covariance; None for a model without covariances."""
        return getattr(self.model, "smallest_eigenvalue", None)

    @property
    def component_counts(self) -> Array | None:
        """Effective number of rows per component, where each class or state has a mixture of its own (C, M)."""
        inner = getattr(getattr(self.stats, "components", None), "counts", None)
        return inner if inner is not None and np.ndim(inner) == 2 and hasattr(self.stats.components, "seen") else None

    @property
    def empty_components(self) -> list[int]:
        """Indices of empty components; of several mixtures, those of the first come first."""
        if self.component_counts is not None:
            counts = self.component_counts
            return np.flatnonzero(counts.ravel() <= EMPTY * max(float(counts.sum()), 1e-300)).tolist()
        weights = getattr(self.model, "weights", None)
        return [] if weights is None else np.flatnonzero(np.ravel(weights) <= EMPTY).tolist()

    @property
    def spread(self) -> float:
        """Difference between the best and the worst run per row: in nats, where the objective is a likelihood."""
        reached = [run.objective for run in self.runs] or [self.objective]
        return (max(reached) - min(reached)) / max(float(self.stats.total_weight), 1e-300)

    def require_converged(self) -> FitReport:
        """This report, or an error if the objective did not converge.

        Returns
        -------
        FitReport
            This report.
        """
        if not self.converged:
            raise NotConverged(
                sentence(
                    "fit", "the objective must converge", self.reason, "allow more passes: StoppingRule(max_iter=…)"
                )
            )
        return self

    def describe(self) -> Description:
        """Convergence, objective, effective counts, and what several initial models reached.

        Returns
        -------
        Description
            Facts; prints as text, and renders as HTML or Markdown.
        """
        how = "converged" if self.converged else "stopped early" if self.stopped_early else "NOT converged"
        how = f"{how} after {counted(self.iterations, 'refit')}"
        title = f"{type(self.model).__name__}: {'learning from a stream' if self.streaming else how}: {self.reason}"
        begun = f" (from {self.trace[0]:.10g})" if len(self.trace) > 1 else ""
        counts, inner, least = self.effective_counts, self.component_counts, self.smallest_eigenvalue
        facts = {
            "objective": f"{self.objective:.10g}{begun}",
            "prior": type(self.prior).__name__ if self.prior is not None else "none (maximum likelihood)",
            "held-out rows": f"{max(self.held_out):.6g} nats per row at best" if self.held_out else "",
            "effective counts": "" if counts is None or self.stats.complete else listed(np.ravel(counts)),
            "their components": "" if inner is None else listed(inner.ravel()),
            "smallest eigenvalue": "" if least is None else f"{least:.4g}",
            "empty components": ", ".join(map(str, self.empty_components)),
            "set anew": counted(self.reseeded, "component") if self.reseeded else "",
            "starts": self._runs_summary(),
        }
        return Description(title, facts={name: text for name, text in facts.items() if text})

    def _runs_summary(self) -> str:
        if len(self.runs) < 2:
            return ""
        near = sum(self.objective - run.objective <= NEAR * self.stats.total_weight for run in self.runs)
        not_converged = sum(not run.converged for run in self.runs)
        text = f"{len(self.runs)}, {near} reached the best; the worst is {self.spread:.3g} per row below"
        text += "" if self.agreement is None else f"; partitions agree to {self.agreement:.2f}"
        return text + (f"; {not_converged} not converged" if not_converged else "")


def listed(numbers: Sequence[float] | Array) -> str:
    """Numbers as text, the largest first where there are many."""
    shown = sorted((float(x) for x in numbers), reverse=True) if len(numbers) > SHOWN else numbers
    text = ", ".join(f"{x:.4g}" for x in shown[:SHOWN])
    return text + (f", … {shown[-1]:.4g} ({len(shown)} in all)" if len(shown) > SHOWN else "")
