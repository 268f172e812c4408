"""Plots of an evaluation: confusion matrix, reliability diagram, ROC, DET and risk-coverage curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.core.docstrings import complete
from likely.metrics.evaluation import Evaluation
from likely.plots.theme import INK, PALETTE, SOFT, axes, themed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = 8  # classes that get a curve of their own
TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95)  # of a DET plot


@complete
@dataclass
class EvaluationDisplay:
    """Display of an `Evaluation`; each method plots on the given axes, or on new ones.

    `EvaluationDisplay.from_estimator(clf, X, y)` cross-validates first; `plot()` draws four of them.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`.

    See Also
    --------
    Evaluation : The measures themselves.

    Examples
    --------
    >>> import likely as lk, numpy as np
    >>> e = lk.Evaluation(np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), [0, 1, 1], ["no", "yes"])
    >>> EvaluationDisplay(e).risk_coverage().get_xlabel()
    'fraction of rows accepted (coverage)'
    """

    evaluation: Evaluation
    ax_: Any = None
    figure_: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **how: Any) -> EvaluationDisplay:
        """Evaluate a classifier by cross-validation and draw.

        Parameters
        ----------
        estimator : classifier
            Classifier; it need not be fitted.
        X : array-like (n, d)
            Rows.
        y : array-like (n,)
            Labels.
        **how : settings
            Settings of `evaluate`: `cv`, `cost`, ….
        """
        from likely.model_selection.cross_validation import evaluate

        return cls(evaluate(estimator, X, y, **how)).plot()

    def plot(self) -> EvaluationDisplay:
        """Confusion, calibration, ROC and risk against coverage on one figure."""
        with themed() as plt:
            self.figure_, grid = plt.subplots(2, 2, figsize=(10, 8.4), layout="constrained")
            for draw, ax in zip(
                (self.confusion, self.calibration, self.roc, self.risk_coverage), grid.flat, strict=True
            ):
                draw(ax)
        self.ax_ = grid
        return self

    def roc(self, ax: Axes | None = None) -> Axes:
        """ROC curves: detections against false alarms, one per class against the rest (one for two classes).

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ax = axes(ax)
        for label, color in self._positives():
            curve = self.evaluation.roc(label)
            ax.plot(curve.false_alarm, curve.detection, color=color, label=f"{label}: area {curve.auc:.3f}")
        ax.plot([0, 1], [0, 1], color=SOFT, lw=1, ls=":")
        ax.set(xlabel="false-alarm rate", ylabel="detection rate", title="ROC curve", aspect="equal")
        ax.legend(loc="lower right")
        return ax

    def det(self, ax: Axes | None = None) -> Axes:
        """DET curves: misses against false alarms in normal deviates, straight lines for Gaussian scores.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from scipy.special import ndtri

        ax = axes(ax)
        for label, color in self._positives():
            curve, equal = self.evaluation.det(label), self.evaluation.equal_error_rate(label)
            ax.plot(curve.false_alarm, curve.miss, color=color, label=f"{label}: equal error {equal.rate:.3f}")
        at, words = ndtri(TICKS), [f"{100 * t:g}" for t in TICKS]
        ax.set_xticks(at, words)
        ax.set_yticks(at, words)
        ax.set(xlabel="false-alarm rate, %", ylabel="miss rate, %", title="DET curve", aspect="equal",
               xlim=(at[0], at[-1]), ylim=(at[0], at[-1]))  # fmt: skip
        ax.legend()
        return ax

    def calibration(self, ax: Axes | None = None, bins: int = 10) -> Axes:
        """Reliability diagram: observed frequency against predicted probability.

        Parameters
        ----------
        bins : int, default 10
            Number of bins.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ax = axes(ax)
        found = self.evaluation.calibration(bins=bins)
        spread = np.abs(np.stack([found.frequency - found.low, found.high - found.frequency]))
        ax.plot([0, 1], [0, 1], color=SOFT, lw=1, ls=":")
        ax.errorbar(found.confidence, found.frequency, spread, fmt="o-", color=PALETTE[0], ms=4, lw=1, capsize=2)
        ax.set(xlabel="predicted probability", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1.02), aspect="equal",
               title=f"Reliability diagram (ECE {found.ece:.3f})")  # fmt: skip
        return ax

    def risk_coverage(self, ax: Axes | None = None) -> Axes:
        """Risk-coverage curve: mean cost of the accepted rows by their fraction, most confident first.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ax, curve = axes(ax), self.evaluation.risk_coverage().thinned()
        ax.plot(curve.coverage, curve.risk, color=PALETTE[0])
        ax.set(xlabel="fraction of rows accepted (coverage)", ylabel="mean cost of accepted rows (risk)",
               xlim=(0, 1), ylim=(0, None),
               title=f"Risk-coverage curve (area {curve.area:.3f})")  # fmt: skip
        return ax

    def confusion(self, ax: Axes | None = None) -> Axes:
        """Confusion matrix: fractions of each true class, with counts.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ax, counts = axes(ax), np.asarray(self.evaluation.confusion)
        total = counts.sum(axis=1, keepdims=True)
        share = counts / np.where(total > 0, total, 1.0)
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for (i, j), n in np.ndenumerate(counts):
            if n and counts.size <= 400:
                ax.text(j, i, f"{n:g}", ha="center", va="center", color="white" if share[i, j] > 0.5 else INK)
        names = [str(a) for a in self.evaluation.actions]
        ax.set_xticks(range(len(names)), names, rotation=30 if len(names) > 3 else 0)
        ax.set_yticks(range(len(counts)), [str(c) for c in self.evaluation.classes])
        ax.set(xlabel="decided", ylabel="true", title="Confusion")
        ax.spines[:].set_visible(False)
        return ax

    def _positives(self) -> list[tuple[Any, str]]:
        """Classes that get a curve, and its color; for two classes the second only."""
        classes = self.evaluation.classes.tolist()
        shown = classes[1:] if len(classes) == 2 else classes[:CURVES]
        return [(label, PALETTE[i % len(PALETTE)]) for i, label in enumerate(shown)]
