"""Histograms learned from rows: counts of cells, and a rule for how many cells there are."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions

from likely.density.histogram import Histogram
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_intervals import PARAMETER_ROWS, Row, of_share


class HistogramDensity(DensityEstimator):
    """Learn a histogram: `model_` is a `Histogram` (Herbst 2.5).

    - **bins**: cells of a column: "doane", "sturges", "knuth" (the most probable number, given the rows),
      "leave-one-out" (rows that were left out, copies together, are most likely), a number, one number per column, or
      edges: of all columns, or a list of them. "doane" and "sturges" look at the distinct values of a column, the other
      two at how many rows each cell holds; they cut nothing finer than values were rounded.
    - **joint**: True counts combinations on a grid, False each column by itself, as if they were independent.
    - **pseudo_count**: rows added to each cell, so that no cell is impossible; 0 for relative frequencies. They are a
      Dirichlet prior of the masses, and part of the objective where labels are hidden.

    Edges are fixed by the first look, also of a stream: what comes later and lies outside has p = 0, and is told of;
    give edges for a stream. A classifier's classes share their edges. NaN is not observed; training a grid refuses it.

    >>> import likely as lk
    >>> lk.HistogramDensity(bins=[0.0, 1.0, 2.0], pseudo_count=0.0).fit([[0.5], [0.6], [1.5], [0.1]]).model_.masses
    array([0.75, 0.25])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "bins": [
            StrOptions({"doane", "sturges", "knuth", "leave-one-out"}), Interval(Integral, 1, None, closed="left"),
            "array-like", list,
        ],
        "joint": ["boolean"], "pseudo_count": [Interval(Real, 0, None, closed="left")],
    }  # fmt: skip

    def __init__(self, bins: Any = "doane", *, joint: bool = False, pseudo_count: float = 0.5) -> None:
        self.bins = bins
        self.joint = joint
        self.pseudo_count = pseudo_count

    prior, max_iter, tol = None, 100, 1e-6  # nothing is believed in advance; only hidden labels iterate
    _model_types = (Histogram,)
    _tells_of_gaps = False
    _looks_once = False  # the edges must hold all rows

    def _blank(self, X: Any, members: int | None = None) -> Histogram:
        return self._blank_for(X, members, None)

    def _blank_for(self, X: Any, members: int | None, weight: Any) -> Histogram:
        options = {"bins": self.bins, "joint": bool(self.joint), "pseudo_count": float(self.pseudo_count)}
        return Histogram.blank(X, members, weight=weight, **options)

    def _as_chosen(self, model: Histogram) -> Self:
        """As many cells a column as the model has, if a rule said how many; where they lie, rows decide."""
        if not isinstance(self.bins, str):
            return self
        other, cells = copy(self), model._bins.tolist()
        other.bins = cells if len(cells) > 1 else cells[0]
        return other

    def _prior_rule(self) -> None:
        """There is `count`, and no other prior."""

    @property
    def edges_(self) -> Any:
        """The edges of each column."""
        return self._learned.column_edges

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not self.joint
        return tags


def _masses(model: Histogram, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """The mass of each cell of each column, with Clopper and Pearson's interval for those that are independent."""
    for j, name in enumerate(names):
        part, edges = model.marginal([j]), model.column_edges[j]
        cells = slice(int(model._starts[j]), int(model._starts[j + 1]))
        counts = stats.counts[cells] if model.kind == "columns" or model.dim == 1 else [None] * len(part.masses)
        for i, (mass, count) in enumerate(zip(part.masses, counts, strict=True)):
            told = (None, None) if count is None else of_share(float(count), float(sum(counts)), level)
            yield Row(name, f"P({edges[i]:.4g} … {edges[i + 1]:.4g})", float(mass), *told)


PARAMETER_ROWS[Histogram] = _masses
