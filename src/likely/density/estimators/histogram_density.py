"""Histogram density estimator: bin counts, and rules for the number of bins."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, get_args

from numpy.typing import ArrayLike

from likely.core.arrays import Array
from likely.core.blocks import Block
from likely.core.stats import Stats
from likely.density.histogram import Histogram
from likely.density.histogram_edges import BinRule
from likely.estimation.component import Traits
from likely.estimation.density_estimator import DensityEstimator
from likely.estimation.parameter_constraints import Interval, StrOptions
from likely.estimation.parameter_intervals import PARAMETER_ROWS, Row, of_share


class HistogramDensity(DensityEstimator):
    """Histogram density estimation.

    Edges are fixed by the first call, also of a stream: later rows outside have p = 0, with a warning; give edges for a
    stream. The classes of a classifier share their edges. NaN is a missing value; training a grid refuses it.

    Parameters
    ----------
    bins : {"doane", "sturges", "knuth", "leave-one-out"}, int or array-like, default "doane"
        Bins of a column: a rule ("knuth": the number of largest posterior probability; "leave-one-out": the largest
        leave-one-out log-likelihood, copies left out together), a number, one number per column, or edges: of all
        columns, or one list per column. "doane" and "sturges" use the distinct values of a column, the other two the
        counts of the bins; their bins are not finer than the values were rounded.
    joint : bool, default False
        Count combinations on a grid; else each column by itself, as if they were independent.
    pseudo_count : float, default 0.5
        Pseudo-counts per bin, so that no bin has probability 0; 0 for relative frequencies. They are a
        Dirichlet prior of the masses, and part of the objective where labels are missing.

    Attributes
    ----------
    model_ : Histogram
        The fitted density.
    bins_ : int or list of int
        Number of bins that a rule chose, per column.

    See Also
    --------
    KernelDensity : A smooth estimate.

    References
    ----------
    Bishop (2006), chapter 2; Herbst and du Preez, lecture notes, 2.5.

    Examples
    --------
    >>> import likely as lk
    >>> lk.HistogramDensity(bins=[0.0, 1.0, 2.0], pseudo_count=0.0).fit([[0.5], [0.6], [1.5], [0.1]]).model_.masses
    array([0.75, 0.25])
    """

    _parameter_rules: ClassVar[dict[str, Any]] = {
        "bins": [
            StrOptions(set(get_args(BinRule))), Interval(Integral, 1, None, closed="left"),
            "array-like", list,
        ],
        "joint": ["boolean"], "pseudo_count": [Interval(Real, 0, None, closed="left")],
    }  # fmt: skip

    def __init__(self, bins: BinRule | ArrayLike = "doane", *, joint: bool = False, pseudo_count: float = 0.5) -> None:
        self.bins = bins
        self.joint = joint
        self.pseudo_count = pseudo_count

    prior, max_iter, tol = None, 100, 1e-6  # there is no prior; only missing labels need iterations
    model_types = (Histogram,)
    traits = Traits(reports_unobserved=False, sketchable=False)  # the edges must include all rows

    def blank_model(self, X: ArrayLike, members: int | None = None, weight: ArrayLike | None = None) -> Histogram:
        bins = vars(self).get("bins_", self.bins)
        options = {"bins": bins, "joint": bool(self.joint), "pseudo_count": float(self.pseudo_count)}
        return Histogram.blank(X, members, weight=weight, **options)

    def validate_rows(self, X: ArrayLike, reset: bool = False) -> Any:
        if reset:
            self.__dict__.pop("bins_", None)
        return super().validate_rows(X, reset)

    def scoring_model(
        self, model: Any, stats: Stats, prior: Any, rows: Block | None = None, choose: bool = True
    ) -> Any:
        """The fitted model; the numbers of bins that a rule chose are kept in `bins_`, and folds use them again."""
        if choose and isinstance(self.bins, str):
            cells = model._bins.tolist()
            self.bins_ = cells if len(cells) > 1 else cells[0]
        return model

    def prior_rule(self) -> None:
        """The prior is given by `pseudo_count`."""

    @property
    def edges_(self) -> Array:
        """The bin edges of each column."""
        return self.learned_model_.column_edges

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not self.joint
        return tags


def _masses(model: Histogram, stats: Any, names: list[str], level: float) -> Iterator[Row]:
    """Probability of each bin of each column, with the Clopper–Pearson interval for independent columns."""
    for j, name in enumerate(names):
        part, edges = model.marginal([j]), model.column_edges[j]
        cells = slice(int(model._starts[j]), int(model._starts[j + 1]))
        counts = stats.counts[cells] if model.kind == "columns" or model.dim == 1 else [None] * len(part.masses)
        for i, (mass, count) in enumerate(zip(part.masses, counts, strict=True)):
            interval = (None, None) if count is None else of_share(float(count), float(sum(counts)), level)
            yield Row(name, f"P({edges[i]:.4g} … {edges[i + 1]:.4g})", float(mass), *interval)


PARAMETER_ROWS[Histogram] = _masses
