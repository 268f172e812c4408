"""Scree plot, and scatter plot of the first two components or factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Rows
from likely.core.docstrings import complete
from likely.core.errors import DomainError, ShapeError, sentence
from likely.decomposition.principal_subspace import PrincipalSubspace
from likely.distributions.gaussian.factor_fits import leading
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@complete
@dataclass
class ScreeDisplay:
    """Scree plot: variance per principal component, and the fraction of unexplained variance.

    `ScreeDisplay.from_estimator(pca)` draws a fitted estimator, as in scikit-learn; `from_principal` draws a value.

    Parameters
    ----------
    principal : PrincipalSubspace
        The principal components.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> [ax.get_title() for ax in ScreeDisplay.from_estimator(lk.PCA().fit(X)).ax_]
    ['Variance per component', 'Unexplained variance']
    """

    principal: PrincipalSubspace
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> ScreeDisplay:
        """Display of a fitted `PCA`, or of the covariance of a fitted `PPCA` or `FactorAnalysis`.

        Parameters
        ----------
        estimator : PCA, PPCA or FactorAnalysis
            A fitted estimator.
        ax : pair of matplotlib.axes.Axes, optional
            Axes of the variances and of the errors; None makes a new figure.
        """
        return cls(_principal_of(estimator)).plot(ax)

    @classmethod
    def from_principal(cls, principal: PrincipalSubspace, *, ax: Axes | None = None) -> ScreeDisplay:
        """Display of principal components.

        Parameters
        ----------
        principal : PrincipalSubspace
            The principal components.
        ax : pair of matplotlib.axes.Axes, optional
            Axes of the variances and of the errors; None makes a new figure.
        """
        return cls(principal).plot(ax)

    @property
    def errors(self) -> Array:
        """Relative error after 0, 1, … q axes (q + 1,)."""
        return np.array([self.principal.relative_error(q) for q in range(len(self.principal.variances) + 1)])

    def plot(self, ax: Any = None) -> ScreeDisplay:
        """Plot on two given axes, or on a new figure.

        Parameters
        ----------
        ax : pair of matplotlib.axes.Axes, optional
            Axes of the variances and of the errors; None makes a new figure.
        """
        if ax is None:
            with themed() as plt:
                _, ax = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
        if np.shape(ax) != (2,):
            raise ShapeError(
                sentence("ScreeDisplay", "two axes are needed", np.shape(ax), "pass plt.subplots(1, 2)[1]")
            )
        q = len(self.principal.variances)
        ax[0].plot(np.arange(1, q + 1), self.principal.variances, color=PALETTE[0], marker=".")
        if q and self.principal.variances[-1] > 0:
            ax[0].set_yscale("log")
        ax[0].set(xlabel="axis", ylabel="variance", title="Variance per component")
        ax[1].plot(np.arange(q + 1), self.errors, color=PALETTE[1], marker=".")
        ax[1].set(xlabel="number of components", ylabel="relative error", title="Unexplained variance", ylim=(0, 1.02))
        self.ax_, self.figure_ = ax, ax[0].figure
        return self


def _principal_of(estimator: Any) -> PrincipalSubspace:
    """The principal axes that an estimator has learned, or those of its covariance."""
    principal = getattr(estimator, "principal_", None)
    if isinstance(principal, PrincipalSubspace):
        return principal
    covariance: Any = getattr(estimator, "covariance_", None) if hasattr(estimator, "model_") else None
    if np.ndim(covariance) != 2:
        remedy = "fit it first" if hasattr(estimator, "fit") else "pass an estimator"
        expected = "a fitted PCA, PPCA or FactorAnalysis is needed"
        raise DomainError(sentence("ScreeDisplay", expected, type(estimator).__name__, remedy))
    unit = float(np.diagonal(covariance).max())
    values, vectors = leading(np.asarray(covariance) / unit, len(covariance))
    return PrincipalSubspace(estimator.mean_, vectors.T, np.maximum(values, 0.0) * unit)


@complete
@dataclass
class ScoresDisplay:
    """Display of rows in the plane of two coordinates: principal components, or factors.

    Parameters
    ----------
    scores : array-like (n, 2)
        Coordinates.
    labels : array-like (n,), optional
        Labels, shown by color.
    names : tuple of str
        Names of the two coordinates.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> ScoresDisplay.from_estimator(lk.PCA(2).fit(X), X).ax_.get_xlabel()
    'axis 1'
    """

    scores: Array  # (n, q)
    labels: Any = None
    names: tuple[str, str] = ("component 1", "component 2")
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Rows, labels: ArrayLike | None = None, *, which: tuple[int, int] = (0, 1),
        ax: Axes | None = None,
    ) -> ScoresDisplay:  # fmt: skip
        """Transform rows by a fitted `PCA`, `PPCA` or `FactorAnalysis` and draw two of the coordinates.

        Parameters
        ----------
        estimator : PCA, PPCA or FactorAnalysis
            A fitted estimator.
        X : array-like (n, d)
            Rows.
        labels : array-like (n,), optional
            Labels, shown by color.
        which : tuple of int, default (0, 1)
            The two coordinates, counted from 0.
        """
        scores = np.asarray(estimator.transform(X))
        if max(which) >= scores.shape[1] or min(which) < 0:
            expected = f"which must name two of the {scores.shape[1]} coordinates, counted from 0"
            raise DomainError(sentence("ScoresDisplay", expected, which, "learn more components"))
        word = "axis" if hasattr(estimator, "principal_") else "factor"
        names = (f"{word} {which[0] + 1}", f"{word} {which[1] + 1}")
        return cls(scores[:, list(which)], labels, names).plot(ax)

    def plot(self, ax: Any = None) -> ScoresDisplay:
        """Plot on the given axes, or on new ones."""
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        if self.labels is None:
            ax.scatter(self.scores[:, 0], self.scores[:, 1], s=9, color=PALETTE[0], alpha=0.5, linewidths=0)
        else:
            self._by_label(ax, np.asarray(self.labels))
        ax.axhline(0, color=SOFT, lw=0.6, zorder=0)
        ax.axvline(0, color=SOFT, lw=0.6, zorder=0)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        return self

    def _by_label(self, ax: Any, labels: Any) -> None:
        if labels.shape != (len(self.scores),):
            expected = f"one label per row ({len(self.scores)}) is needed"
            raise ShapeError(sentence("ScoresDisplay", expected, labels.shape))
        for i, label in enumerate(dict.fromkeys(labels.tolist())):
            mine = self.scores[[other == label for other in labels.tolist()]]
            color = PALETTE[i % len(PALETTE)]
            ax.scatter(mine[:, 0], mine[:, 1], s=9, color=color, alpha=0.5, linewidths=0, label=str(label))
        ax.legend(labelcolor=INK)
