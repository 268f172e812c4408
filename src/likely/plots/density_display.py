"""Plots of densities: curve (1-D), contours of 50, 90 and 99 % mass (2-D), or a pair plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.arrays import Array, Rows
from likely.core.docstrings import complete
from likely.core.errors import DomainError, sentence
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.binary.binary_expansion import SignDistribution
from likely.distributions.categorical.categorical import Categorical
from likely.distributions.categorical.chow_liu import ChowLiuTree
from likely.distributions.univariate.poisson import Poisson
from likely.distributions.univariate.von_mises import VonMises
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONTENTS = (0.99, 0.9, 0.5)  # probability inside each contour, outermost first
FEW_LEVELS = (Bernoulli, ChowLiuTree, SignDistribution)  # distributions of columns that hold few values
FAR = 8.0  # spreads between the quartiles beyond which tails are not followed


@complete
@dataclass
class DensityDisplay:
    """Display of a density, with its data if given.

    `DensityDisplay.from_estimator(estimator, X)` draws a fitted estimator, as in scikit-learn; `from_model` draws a
    value.

    Parameters
    ----------
    model : density
        The density.
    X : array-like (n, d), optional
        Rows to draw with it.
    names : list of str, optional
        Names of the columns.

    Examples
    --------
    >>> import likely as lk
    >>> DensityDisplay.from_model(lk.Gaussian([0.0], 1.0), names=["height"]).ax_.get_xlabel()
    'height'
    """

    model: Any
    X: Any = None  # rows (n, d), or None
    names: list[str] | None = None
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Rows | None = None, *, ax: Axes | None = None, **style: Any,
    ) -> DensityDisplay:  # fmt: skip
        """Display of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A fitted density estimator.
        X : array-like (n, d), optional
            Rows to draw with it.
        **style : settings
            Settings of `plot`: `color`, `label`.
        """
        X = None if X is None else estimator.validate_rows(X, reset=False)
        return cls(estimator.model_, X, estimator.column_names()).plot(ax, **style)

    @classmethod
    def from_model(
        cls, model: Any, X: Any = None, *, names: Any = None, ax: Any = None, **style: Any
    ) -> DensityDisplay:
        """Display of a distribution.

        Parameters
        ----------
        model : density
            The density.
        X : array-like (n, d), optional
            Rows to draw with it.
        names : list of str, optional
            Names of the columns.
        **style : settings
            Settings of `plot`: `color`, `label`.
        """
        return cls(model, X, names).plot(ax, **style)

    def plot(self, ax: Axes | None = None, *, color: str = PALETTE[0], label: str | None = None) -> DensityDisplay:
        """Plot on the given axes, or on new ones: a curve, contours, or all pairs of columns.

        Parameters
        ----------
        color : color
            Color of the curve or contours.
        """
        width = 1 if isinstance(self.model, Categorical) else int(getattr(self.model, "dim", 1))
        names = self.names or [f"x{j}" for j in range(width)]
        if width > 2 and ax is None and hasattr(self.model, "marginal") and not _is_count(self.model):
            return self._pairs(names, color)
        _refuse_levels(self.model, width)
        ax = axes(ax)
        if isinstance(self.model, Categorical):
            _bars(ax, self.model.values.tolist(), self.model.probs, _shares(self.model, self.X), names[0], color, label)
        elif isinstance(self.model, FEW_LEVELS):
            _few(ax, self.model, self.X, names[0], color, label)
        elif _is_count(self.model) and width == 1:
            _counts(ax, self.model, self.X, names[0], color, label)
        elif width == 1:
            _curve(ax, self.model, self.X, names[0], color, label)
        elif width == 2:
            _contours(ax, self.model, self.X, names, color, label)
        else:
            expected = "plots need one or two columns, or a distribution with marginals on its own figure"
            raise DomainError(sentence("DensityDisplay", expected, f"{width} columns", "draw a marginal"))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _pairs(self, names: list[str], color: str) -> DensityDisplay:
        """Every pair of columns below the diagonal, every column on it."""
        d = len(names)
        with themed() as plt:
            self.figure_, grid = plt.subplots(d, d, figsize=(1.8 * d, 1.8 * d), layout="constrained", squeeze=False)
        for i, row in enumerate(grid):
            for j, ax in enumerate(row):
                self._cell(ax, i, j, names, color)
        self.ax_ = grid
        return self

    def _cell(self, ax: Any, i: int, j: int, names: list[str], color: str) -> None:
        d, rows = len(names), None if self.X is None else np.asarray(self.X)
        if j > i:
            ax.set_axis_off()
            return
        at = [i] if i == j else [j, i]
        model, seen = self.model.marginal(at), None if rows is None else rows[:, at]
        if i == j:
            _curve(ax, model, seen, names[i], color, None)
        else:
            _contours(ax, model, seen, [names[j], names[i]], color, None)
        ax.set(xlabel=names[j] if i == d - 1 else "", ylabel=names[i] if j == 0 and i else "")
        ax.tick_params(labelbottom=i == d - 1, labelleft=j == 0 and i > 0)


@complete
@dataclass
class TraceDisplay:
    """Display of the objective by EM iteration."""

    report: Any
    ax_: Any = None

    @classmethod
    def from_report(cls, report: Any, *, ax: Any = None) -> TraceDisplay:
        """Display of the trace of a `FitReport`."""
        return cls(report).plot(ax)

    def plot(self, ax: Any = None) -> TraceDisplay:
        """Plot on the given axes, or on new ones."""
        self.ax_ = ax = axes(ax, figsize=(6, 3.5))
        how = "converged" if self.report.converged else "not converged"
        ax.plot(range(len(self.report.trace)), self.report.trace, color=PALETTE[0], marker=".")
        ax.set(xlabel="refits", ylabel="objective", title=f"{how}: {self.report.reason}")
        return self


def _curve(ax: Any, model: Any, X: Any, name: str, color: str, label: str | None) -> None:
    rows = None if X is None else _turned(model, np.asarray(X, float).reshape(len(X), -1))[:, 0]
    x = _reach(model, rows)
    if rows is not None:
        ax.hist(rows[(rows >= x[0]) & (rows <= x[-1])], bins="auto", density=True, color=SOFT, alpha=0.5)
    ax.plot(x, np.exp(model.log_prob(x[:, None])), color=color, label=label)
    ax.set(xlabel=name, ylabel="density", ylim=(0, None))


def _reach(model: Any, rows: Array | None) -> Array:
    """Where a one-dimensional distribution is worth drawing: nearly all of it and of the rows, but no endless tails."""
    if isinstance(model, VonMises):
        return np.linspace(-np.pi, np.pi, 400)
    at = np.array([1e-3, 0.25, 0.75, 1 - 1e-3])
    if hasattr(model, "quantile"):
        low, first, third, high = (float(q) for q in model.quantile(at))
    else:
        low, first, third, high = np.quantile(model.sample(20_000, np.random.default_rng(0)), at).tolist()
    if rows is not None and np.isfinite(rows).any():
        low, high = min(low, np.nanmin(rows)), max(high, np.nanmax(rows))
    far = FAR * (third - first)
    return np.linspace(max(low, first - far), min(high, third + far), 400)


def _turned(model: Any, rows: Array) -> Array:
    """Angles within one turn; other rows as they are."""
    return np.angle(np.exp(1j * rows)) if isinstance(model, VonMises) else rows


def _contours(ax: Any, model: Any, X: Any, names: list[str], color: str, label: str | None) -> None:
    draws = _turned(model, model.sample(20_000, np.random.default_rng(0)))
    score = model.log_prob(draws)
    levels = (
        np.unique(np.quantile(score, 1 - np.array(CONTENTS))) - 1e-9
    )  # a flat distribution has one level, and lies on it
    if X is not None:
        rows = _turned(model, np.asarray(X, float))
        ax.scatter(rows[:, 0], rows[:, 1], s=9, color=color, alpha=0.45, linewidths=0)
    gx, gy = np.meshgrid(*_sides(model, draws[score >= levels[0]]))
    height = model.log_prob(np.column_stack([gx.ravel(), gy.ravel()])).reshape(gx.shape)
    height = np.maximum(height, levels[0] - 100.0)  # so that lines close where the distribution ends
    widths = (0.7, 1.1, 1.6)[-len(levels) :]
    ax.contour(gx, gy, height, levels=levels, colors=[color], linewidths=widths, linestyles="solid")
    ax.plot([], [], color=color, label=label)
    ax.set(xlabel=names[0], ylabel=names[1])


def _sides(model: Any, inside: Array) -> list[Array]:
    """The grid of each column: one turn, or what the outermost contour holds with a margin."""
    if isinstance(model, VonMises):
        return [np.linspace(-np.pi, np.pi, 161)] * 2
    low, high = inside.min(axis=0), inside.max(axis=0)
    margin = 0.08 * (high - low)
    return [np.linspace(low[j] - margin[j], high[j] + margin[j], 161) for j in range(2)]


def _is_count(model: Any) -> bool:
    return isinstance(model, Poisson) or getattr(model, "_support", "") == "count"


def _refuse_levels(model: Any, width: int) -> None:
    """Columns of few levels have no contours."""
    if width > 1 and isinstance(model, FEW_LEVELS):
        remedy = "plot one column, or the dependence tree: likely.plots.plot_chow_liu_tree"
        raise DomainError(sentence("DensityDisplay", "levels have no contours", f"{width} columns", remedy))


def _few(ax: Any, model: Any, X: Any, name: str, color: str, label: str | None) -> None:
    levels = np.asarray(model.levels[0]) if isinstance(model, ChowLiuTree) else np.array([0.0, 1.0])
    probs = np.exp(model.log_prob(levels[:, None]))
    _bars(ax, [f"{v:g}" for v in levels], probs, _of_levels(levels, X), name, color, label)


def _of_levels(levels: Array, X: Any) -> Array | None:
    """The share of each level among the rows."""
    if X is None:
        return None
    column = np.asarray(X, float).reshape(len(X), -1)[:, 0]
    return np.array([(column == v).sum() for v in levels]) / max(int((~np.isnan(column)).sum()), 1)


def _counts(ax: Any, model: Any, X: Any, name: str, color: str, label: str | None) -> None:
    rows = None if X is None else np.asarray(X, float).ravel()
    top = int(max(model.quantile(np.array([1 - 1e-4])).max(), 0 if rows is None else np.nanmax(rows, initial=0)))
    x = np.arange(top + 1)
    if rows is not None:
        seen = rows[~np.isnan(rows)]
        ax.bar(x, [(seen == v).mean() for v in x], color=SOFT, alpha=0.6, width=0.8)
    ax.plot(x, np.exp(model.log_prob(x[:, None])), "o-", color=color, ms=4, lw=0.8, label=label)
    ax.set(xlabel=name, ylabel="probability", ylim=(0, None))


def _bars(ax: Any, values: list[Any], probs: Array, seen: Array | None, name: str, color: str, label: Any) -> None:
    at = np.arange(len(values))
    if seen is not None:
        ax.bar(at, seen, color=SOFT, alpha=0.6, width=0.8)
    ax.plot(at, probs, "o", color=color, label=label)
    ax.vlines(at, 0, probs, color=color, lw=1)
    ax.set_xticks(at, [str(v) for v in values])
    ax.set(xlabel=name, ylabel="probability", ylim=(0, None))


def _shares(model: Categorical, X: Any) -> Array | None:
    if X is None:
        return None
    codes = model.encode(np.asarray(X).reshape(len(X), -1)[:, 0])
    return np.bincount(codes[codes >= 0], minlength=len(model.probs)) / max(int((codes >= 0).sum()), 1)


__all__ = ["CONTENTS", "INK", "DensityDisplay", "TraceDisplay"]
