"""How a fit went, told honestly: why it stopped, what it reached, and what a careful person would look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from likely.core.arrays import Array
from likely.core.errors import NotConverged, sentence

EMPTY = 1e-9  # share of all weight below which a component explains nothing
NEAR = 1e-5  # nats per row by which starts may differ that reached the same: each has a weak prior of its own scale
SHOWN = 8  # numbers of a list that are printed


class Run(NamedTuple):
    """One of several starts: what it reached, and how."""

    objective: float
    iterations: int
    converged: bool
    reason: str


@dataclass(frozen=True, eq=False)
class FitReport:
    """How a fit went. `converged` is True only if the objective settled; running out of passes is not that.

    >>> import likely as lk, numpy as np
    >>> print(lk.fit(lk.Gaussian([0.0], 1.0), np.array([[1.0], [3.0]])))
    Gaussian: converged after 1 refit: closed form: nothing was hidden
      objective            -2.837877066
      prior                none (maximum likelihood)
      smallest eigenvalue  1
    """

    model: Any
    stats: Any
    prior: Any
    converged: bool
    reason: str
    trace: list[float] = field(repr=False)  # the objective after each pass, prior included
    held_out: list[float] = field(default_factory=list, repr=False)  # mean log-likelihood of rows set aside
    stopped_early: bool = False  # on purpose: rows set aside were explained no better
    runs: tuple[Run, ...] = ()  # one for each start, where there were several
    agreement: float | None = None  # of the partitions that the starts led to: 1 if they are all the same
    reseeded: int = 0  # components that had died and were set anew
    streaming: bool = False  # one step of many: nobody asks it to settle

    @property
    def iterations(self) -> int:
        """Number of refits."""
        return len(self.trace) - (0 if self.stats.complete else 1)

    @property
    def objective(self) -> float:
        """What was maximized, at the model that is returned."""
        return self.trace[-1]

    @property
    def effective_counts(self) -> Array | None:
        """How many rows each component explains (K,), in weight; None for a model without components."""
        return getattr(self.stats, "counts", None)

    @property
    def smallest_eigenvalue(self) -> float | None:
        """The least variance in any direction of any covariance; None for a model without."""
        return getattr(self.model, "smallest_eigenvalue", None)

    @property
    def component_counts(self) -> Array | None:
        """Where each class or state has a mixture of its own (C, M): how many rows each component explains."""
        inner = getattr(getattr(self.stats, "components", None), "counts", None)
        return inner if inner is not None and np.ndim(inner) == 2 and hasattr(self.stats.components, "seen") else None

    @property
    def dead(self) -> list[int]:
        """Components that explain nothing, by number; of mixtures side by side, those of the first come first."""
        if self.component_counts is not None:
            counts = self.component_counts
            return np.flatnonzero(counts.ravel() <= EMPTY * max(float(counts.sum()), 1e-300)).tolist()
        weights = getattr(self.model, "weights", None)
        return [] if weights is None else np.flatnonzero(np.ravel(weights) <= EMPTY).tolist()

    @property
    def spread(self) -> float:
        """Difference between the best and the worst start, a row: in nats, where the objective is a likelihood."""
        reached = [run.objective for run in self.runs] or [self.objective]
        return (max(reached) - min(reached)) / max(float(self.stats.total_weight), 1e-300)

    def require_converged(self) -> FitReport:
        """This report, or an error if the objective had not settled."""
        if not self.converged:
            raise NotConverged(
                sentence("fit", "the objective must settle", self.reason, "allow more passes: Stop(max_iter=…)")
            )
        return self

    def __str__(self) -> str:
        how = "converged" if self.converged else "stopped early" if self.stopped_early else "NOT converged"
        lines = [f"{type(self.model).__name__}: {how} after {_count(self.iterations, 'refit')}: {self.reason}"]
        if self.streaming:
            lines = [f"{type(self.model).__name__}: learning from a stream: {self.reason}"]
        lines += [f"  {name:<20} {told}" for name, told in self._facts() if told]
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        start = f" (from {self.trace[0]:.10g})" if len(self.trace) > 1 else ""
        counts, least = self.effective_counts, self.smallest_eigenvalue
        return [
            ("objective", f"{self.objective:.10g}{start}"),
            ("prior", type(self.prior).__name__ if self.prior is not None else "none (maximum likelihood)"),
            ("held-out rows", f"{max(self.held_out):.6g} nats per row at best" if self.held_out else ""),
            ("effective counts", "" if counts is None or self.stats.complete else listed(np.ravel(counts))),
            ("their components", "" if self.component_counts is None else listed(self.component_counts.ravel())),
            ("smallest eigenvalue", "" if least is None else f"{least:.4g}"),
            ("dead components", ", ".join(map(str, self.dead))),
            ("set anew", _count(self.reseeded, "component") if self.reseeded else ""),
            ("starts", self._told_of_runs()),
        ]

    def _told_of_runs(self) -> str:
        if len(self.runs) < 2:
            return ""
        near = sum(self.objective - run.objective <= NEAR * self.stats.total_weight for run in self.runs)
        unsettled = sum(not run.converged for run in self.runs)
        told = f"{len(self.runs)}, {near} reached the best; the worst is {self.spread:.3g} a row below"
        told += "" if self.agreement is None else f"; partitions agree to {self.agreement:.2f}"
        return told + (f"; {unsettled} not converged" if unsettled else "")


def listed(numbers: Sequence[float] | Array) -> str:
    """Some numbers, the largest first where they are many."""
    some = sorted((float(x) for x in numbers), reverse=True) if len(numbers) > SHOWN else numbers
    told = ", ".join(f"{x:.4g}" for x in some[:SHOWN])
    return told + (f", … {some[-1]:.4g} ({len(some)} in all)" if len(some) > SHOWN else "")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
