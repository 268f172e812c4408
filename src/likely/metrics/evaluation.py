"""Evaluation of classifiers: error, cost, proper scores, confusion matrix, calibration, ROC, reject option."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from likely.core.arrays import Array, Index, Label, numbers, weights
from likely.core.description import Description
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.decision.cost import Cost, labels
from likely.metrics.confidence_intervals import (
    Interval,
    IntervalMethod,
    Mean,
    as_counts,
    mean,
    mean_over_clusters,
    weighted_proportion,
)
from likely.metrics.reliability import EqualBins, Reliability, reliability
from likely.metrics.risk_coverage import RiskCoverage, risk_coverage
from likely.metrics.roc import Det, EqualError, Roc, roc

SUM_TO_ONE = 1e-6


class ClassRates(NamedTuple):
    """Recall and precision of one class; a rate is None if there are no rows to count.

    Parameters
    ----------
    label : object
        The class.
    weight : float
        Weight of its rows.
    recall : Interval or None
        Share of its rows that are classified as it.
    precision : Interval or None
        Share of rows classified as it that are of this class.
    """

    label: Any
    weight: float
    recall: Interval | None
    precision: Interval | None


class Case(NamedTuple):
    """One of the worst rows of an evaluation.

    Parameters
    ----------
    row : int
        Row number.
    truth : object
        True class.
    predicted : object
        Predicted class.
    posterior_of_truth : float
        Posterior probability of the true class.
    posterior_of_predicted : float
        Posterior probability of the predicted class.
    """

    row: int
    truth: Any
    predicted: Any
    posterior_of_truth: float
    posterior_of_predicted: float


@dataclass(frozen=True, eq=False)
class Evaluation(Value):
    """Evaluation of a classifier from posteriors and true classes, with costs; every measure is a property.

    Parameters
    ----------
    log_posterior : array-like (n, C)
        Logarithms of p(c | x); −∞ is allowed.
    truth : array-like of int (n,)
        Index of the true class of each row.
    classes : array-like (C,)
        Class labels.
    cost : Cost, matrix or dict, optional
        Cost of each action (row) for each true class (column); None is 0/1 loss.
    weight : array-like (n,), optional
        Integer weights are frequencies; fractions are shares, and intervals then use the effective number of rows.
    fold : array-like of int (n,), optional
        The fold that tested the row.
    reject_cost : float, optional
        Cost of rejecting.
    score : array-like (n,), optional
        Log-density log p(x) of each row.
    cluster : array-like of int (n,), optional
        Rows of one cluster are not independent.
    unit : {"row", "sequence", "sound"}, default "row"
        What was classified.

    See Also
    --------
    EvaluationDisplay : Plots of an evaluation.

    References
    ----------
    Ney, lecture notes, 2.5; Herbst and du Preez, lecture notes, 1.5.

    Examples
    --------
    >>> e = Evaluation(np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]), [0, 1, 1], ["no", "yes"])
    >>> round(e.error.value, 4), e.confusion.tolist()
    (0.3333, [[1.0, 0.0], [1.0, 1.0]])
    """

    log_posterior: Array  # (n, C) log p(c | x), −∞ allowed
    truth: Index  # (n,) index of the true class
    classes: NDArray[Any]  # (C,) labels
    cost: Cost | None = None
    weight: Array | None = None  # (n,)
    fold: Index | None = None  # (n,) the fold that tested the row
    reject_cost: float | None = None
    score: Array | None = None  # (n,) log p(x)
    cluster: Index | None = None  # (n,) rows of one cluster are not independent
    unit: str = "row"  # what was classified: "row", "sequence" or "recording"

    def __post_init__(self) -> None:
        classes = labels(self.classes)
        log_posterior = _log_posteriors(self.log_posterior, classes)
        n = len(log_posterior)
        reject = None if self.reject_cost is None else float(self.reject_cost)
        cost = None if self.cost is None else Cost.of(self.cost, classes)
        self._set(
            log_posterior=log_posterior,
            truth=_integer(self.truth, n, "truth", len(classes)),
            classes=classes.copy(),
            cost=cost,
            weight=_weights(self.weight, n),
            fold=None if self.fold is None else _integer(self.fold, n, "fold"),
            reject_cost=reject,
            score=None if self.score is None else _scores(self.score, n),
            cluster=None if self.cluster is None else _integer(self.cluster, n, "cluster"),
        )
        if reject is not None:
            _ = self.costs  # validates the cost

    @classmethod
    def of(cls, log_posterior: Any, y: ArrayLike, classes: Sequence[object] | NDArray[Any], **more: Any) -> Evaluation:
        """From labels instead of indices: each label of y is looked up among the classes.

        Parameters
        ----------
        log_posterior : array-like (n, C)
            Logarithms of p(c | x).
        y : array-like (n,)
            True labels.
        classes : array-like (C,)
            Class labels, in the order of the columns.
        **more : settings
            Further fields by name: `cost`, `weight`, `fold`, ….
        """
        names = labels(classes)
        place = {c: i for i, c in enumerate(names.tolist())}
        cells = labels(y).tolist()
        unknown = [(i, c) for i, c in enumerate(cells) if c not in place]
        if unknown:
            got = f"{unknown[0][1]!r} at row {unknown[0][0]}"
            raise DataError(sentence("Evaluation", f"labels must be among the classes {names.tolist()[:12]}", got))
        return cls(log_posterior, np.array([place[c] for c in cells], dtype=np.intp), names, **more)

    def __len__(self) -> int:
        """Number of rows n."""
        return len(self.truth)

    def __repr__(self) -> str:
        found = f"error {self.error}" if self.costs.decides_classes else f"mean cost {self.mean_cost}"
        return f"Evaluation({len(self)} {self.unit}s, {len(self.classes)} classes, {found})"

    def __str__(self) -> str:
        return self.summary()

    # ------------------------------------------------------------------- decisions

    @cached_property
    def counts(self) -> Array:
        """Weights (n,) as counts: ones, frequencies, or shares that sum to the effective number of rows."""
        return as_counts(self.weight, len(self), "Evaluation")

    @cached_property
    def costs(self) -> Cost:
        """The cost table of all actions: classes, further actions, and rejection if it has a cost."""
        cost = self.cost or Cost.zero_one(len(self.classes))
        return cost if self.reject_cost is None else cost.with_reject(self.reject_cost)

    @property
    def actions(self) -> list[str]:
        """Names of the columns of `confusion` (A,)."""
        return [str(name) for name in self.costs.names(self.classes)]

    @cached_property
    def expected_cost(self) -> Array:
        """Expected cost of every action at each row (n, A)."""
        return self.costs.expected(self.log_posterior)

    @cached_property
    def predicted(self) -> Index:
        """The class of smallest expected cost (n,), never a rejection; ties go to the first."""
        return self.costs.predicted(np.exp(self.log_posterior))

    @cached_property
    def decided(self) -> Index:
        """The action of smallest expected cost (n,): a class, a further action, or rejection."""
        return self.expected_cost.argmin(axis=1)

    @cached_property
    def rejected(self) -> NDArray[np.bool_]:
        """Rows (n,) that were rejected; a further action of the cost table is a decision, not a rejection."""
        return self.decided >= self._own

    @property
    def _own(self) -> int:
        """Number of actions without rejection."""
        return len(self.costs.table) - (self.reject_cost is not None)

    @cached_property
    def _unrefused(self) -> Index:
        """The action of smallest expected cost (n,) other than rejection."""
        R = self.expected_cost[:, : self._own]
        return np.where(np.isinf(R).all(axis=1), self.predicted, R.argmin(axis=1))

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Whether the predicted class is not the true one (n,)."""
        return self.predicted != self.truth

    # ---------------------------------------------------------------- error and cost

    @property
    def error(self) -> Interval:
        """Error rate without rejection, with its exact 95 % interval.

        If no action of the cost table is a class, it is that of the most probable classes.
        """
        return self.error_at(0.95)

    def error_at(self, level: float, method: IntervalMethod = "exact") -> Interval:
        """The error rate at another confidence level, or with Wilson's interval.

        Parameters
        ----------
        level : float
            Confidence level.
        method : {"exact", "wilson"}, default "exact"
            Clopper–Pearson, or Wilson.

        Returns
        -------
        Interval
            The error rate and the ends of its interval.
        """
        return self._share(self.wrong, level, method)

    @property
    def mean_cost(self) -> Mean:
        """Mean cost of the actions without rejection, with standard errors over rows and over folds."""
        return self._mean(self.costs.table[self._unrefused, self.truth])

    @property
    def decision_cost(self) -> Mean:
        """Mean cost of the decisions including rejections: `mean_cost` if rejection has no cost."""
        return self._mean(self.costs.table[self.decided, self.truth])

    @property
    def reject_rate(self) -> Interval:
        """The share of rejected rows."""
        return self._share(self.rejected)

    @property
    def unclassified(self) -> Interval:
        """The share of rows without an assigned class: rejected, or a further action."""
        return self._share(self.decided >= len(self.classes))

    @property
    def error_of_accepted(self) -> Interval | None:
        """The error rate of rows with an assigned class; None without any."""
        taken = self.decided < len(self.classes)
        return weighted_proportion(self.decided[taken] != self.truth[taken], self.counts[taken])

    def _share(self, hit: Any, level: float = 0.95, method: IntervalMethod = "exact") -> Interval:
        if self.cluster is not None:
            found = self._mean(np.asarray(hit, dtype=np.float64), level)
            return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0))
        share = weighted_proportion(hit, self.counts, level, method)
        assert share is not None  # the constructor has checked that some row has weight
        return share

    def _mean(self, values: Array, level: float = 0.95) -> Mean:
        if self.cluster is None:
            return mean(values, self.counts, self.fold, level)
        return mean_over_clusters(values, self.counts, self.cluster, level)

    # ------------------------------------------------------------------ proper scores

    @cached_property
    def log_posterior_of_truth(self) -> Array:
        """Logarithm of p(true class | x) (n,)."""
        return np.take_along_axis(self.log_posterior, self.truth[:, None], axis=1)[:, 0]

    @property
    def log_loss(self) -> Mean:
        """Log-loss: mean of −log p(true class | x), in nats; infinite if a true class had posterior 0."""
        return self._mean(-self.log_posterior_of_truth)

    @property
    def impossible(self) -> Interval:
        """The share of rows whose true class had posterior 0: they alone make `log_loss` infinite."""
        return self._share(np.isneginf(self.log_posterior_of_truth))

    @property
    def brier(self) -> Mean:
        """Brier score: mean of Σ_c (p(c | x) − [c is true])², between 0 and 2 (summed over all classes)."""
        p = np.exp(self.log_posterior)
        own = np.exp(self.log_posterior_of_truth)
        return self._mean((p**2).sum(axis=1) - own**2 + (1 - own) ** 2)

    # ------------------------------------------------------------------------ tables

    @cached_property
    def confusion(self) -> Array:
        """Confusion matrix: weight of rows (C, A) by true class and action: classes, further actions, rejection."""
        return self._table(self.decided, len(self.costs.table))

    @property
    def confusion_cost(self) -> Array:
        """The cost in each cell of `confusion` (C, A)."""
        taken = self.confusion > 0
        return np.where(taken, self.confusion * np.where(taken, self.costs.table.T, 0.0), 0.0)

    @cached_property
    def confusion_predicted(self) -> Array:
        """Confusion matrix (C, C) of true and predicted class, without rejection."""
        return self._table(self.predicted, len(self.classes))

    def _table(self, decided: Index, actions: int) -> Array:
        shape = (len(self.classes), actions)
        weight = np.ones(len(self)) if self.weight is None else self.weight
        cells = np.bincount(self.truth * actions + decided, weight, shape[0] * shape[1])
        return cells.astype(np.float64).reshape(shape)

    @cached_property
    def by_class(self) -> tuple[ClassRates, ...]:
        """Weight, recall and precision of each class, from the predicted classes."""
        right, total = ~self.wrong, self.confusion_predicted.sum(axis=1)
        return tuple(
            ClassRates(c, float(total[i]), self._among(right, self.truth == i), self._among(right, self.predicted == i))
            for i, c in enumerate(self.classes.tolist())
        )

    def _among(self, hit: Any, here: Any) -> Interval | None:
        return weighted_proportion(hit[here], self.counts[here])

    def worst(self, k: int = 10) -> list[Case]:
        """The rows with the smallest posterior of their true class, worst first.

        Parameters
        ----------
        k : int, default 10
            Number of rows.

        Returns
        -------
        list of Case
            Row numbers, classes and posteriors.
        """
        order = np.argsort(self.log_posterior_of_truth, kind="stable")
        order = order[self.counts[order] > 0][:k]
        return [self._case(int(i)) for i in order]

    def _case(self, i: int) -> Case:
        truth, predicted = int(self.truth[i]), int(self.predicted[i])
        p, names = np.exp(self.log_posterior[i]), self.classes.tolist()
        return Case(i, names[truth], names[predicted], float(p[truth]), float(p[predicted]))

    # ------------------------------------------------------------------------ curves

    def calibration(self, bins: int = 10, equal: EqualBins = "width", of: Any = None) -> Reliability:
        """Reliability diagram: forecast probability against frequency, of the most probable class or of one class.

        Parameters
        ----------
        bins : int, default 10
            Number of bins.
        equal : {"width", "count"}, default "width"
            What all bins have in common.
        of : label, optional
            The class; None is the most probable class of each row.

        Returns
        -------
        Reliability
            Bins, calibration errors and tests.
        """
        if of is None:
            top = self.log_posterior.argmax(axis=1)
            return reliability(np.exp(self.log_posterior.max(axis=1)), top == self.truth, self.counts, bins, equal)
        c = self.class_index(of)
        return reliability(np.exp(self.log_posterior[:, c]), self.truth == c, self.counts, bins, equal)

    def class_calibration(self, bins: int = 10, equal: EqualBins = "width") -> tuple[Reliability, ...]:
        """The reliability diagram of each class.

        Parameters
        ----------
        bins : int, default 10
            Number of bins.
        equal : {"width", "count"}, default "width"
            What all bins have in common.

        Returns
        -------
        tuple of Reliability
            One per class.
        """
        return tuple(self.calibration(bins, equal, of=c) for c in self.classes.tolist())

    def log_odds(self, positive: Label) -> Array:
        """Log-odds log p(positive | x) − log p(another | x): the score of `roc`.

        Parameters
        ----------
        positive : label
            The class to detect.

        Returns
        -------
        ndarray (n,)
            One score per row.
        """
        c = self.class_index(positive)
        rest = np.delete(self.log_posterior, c, axis=1)
        if not rest.shape[1]:
            raise DomainError(sentence("Evaluation", "two classes are needed for a ROC curve", "one"))
        with np.errstate(divide="ignore"):
            return self.log_posterior[:, c] - (rest[:, 0] if rest.shape[1] == 1 else logsumexp(rest, axis=1))

    def roc(self, positive: Label) -> Roc:
        """ROC curve of one class: detection rate against false-alarm rate, over thresholds on its log-odds.

        Parameters
        ----------
        positive : label
            The class to detect.

        Returns
        -------
        Roc
            The curve.
        """
        return roc(self.log_odds(positive), self.truth == self.class_index(positive), self.weight)

    def det(self, positive: Label) -> Det:
        """Detection error tradeoff (DET) curve: misses against false alarms in normal deviates.

        Parameters
        ----------
        positive : label
            The class to detect.

        Returns
        -------
        Det
            The curve.
        """
        return self.roc(positive).det()

    def equal_error_rate(self, positive: Label, hull: bool = False) -> EqualError:
        """Equal error rate of one class, where false alarms and misses are equal.

        Parameters
        ----------
        positive : label
            The class to detect.
        hull : bool, default False
            Use the convex hull of the ROC curve, which randomized decisions between two thresholds can reach.

        Returns
        -------
        EqualError
            The rate, and the threshold nearest to it.
        """
        return self.roc(positive).equal_error(hull)

    def risk_coverage(self) -> RiskCoverage:
        """Risk-coverage curve: mean cost of accepted rows, rows with the largest expected cost rejected first.

        Returns
        -------
        RiskCoverage
            The curve.
        """
        doubt = self.expected_cost[:, : self._own].min(axis=1)
        return risk_coverage(doubt, self.costs.table[self._unrefused, self.truth], self.weight)

    def class_index(self, label: Label) -> int:
        """The index of a class by its label.

        Parameters
        ----------
        label : object
            The label, or its text.

        Returns
        -------
        int
            Position among `classes`.
        """
        names = self.classes.tolist()
        at = [i for i, c in enumerate(names) if c == label] or [i for i, c in enumerate(names) if str(c) == str(label)]
        if not at:
            raise DomainError(sentence("Evaluation", f"classes are {names[:12]}", repr(label)))
        return at[0]

    # ------------------------------------------------------------------------ output

    def describe(self) -> Description:
        """The main measures with their 95 % intervals, and recall and precision of each class."""
        from likely.metrics.evaluation_summary import described

        return described(self)

    def summary(self) -> str:
        """The description as text."""
        return self.describe().to_text(indented=True)

    def as_dict(self, points: int = 200) -> dict[str, Any]:
        """All measures and curves as plain lists and numbers, for JSON.

        Parameters
        ----------
        points : int, default 200
            Largest number of points per curve.

        Returns
        -------
        dict
            Measures and curves by name.
        """
        from likely.metrics.evaluation_summary import as_dict

        return as_dict(self, points)


def _log_posteriors(given: Any, classes: NDArray[Any]) -> Array:
    a = numbers(given, "Evaluation")
    if a.ndim != 2 or a.shape[1] != len(classes) or classes.ndim != 1:
        raise ShapeError(sentence("Evaluation", f"log_posterior must have shape (n, {len(classes)})", a.shape))
    if not a.size:
        raise DataError(sentence("Evaluation", "at least one row is needed", "none"))
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~(np.abs(np.exp(a).sum(axis=1) - 1) <= SUM_TO_ONE))
    if len(bad):
        row = a[bad[0]]
        what = "NaN" if np.isnan(row).any() else f"a sum of {np.exp(np.minimum(row, 700.0)).sum():.6g}"
        remedy = "pass normalized log-posteriors (subtract the logsumexp over classes)"
        expected = "the posteriors of each row must be numbers that sum to 1"
        raise DataError(sentence("Evaluation", expected, f"{what} at row {bad[0]}", remedy))
    return a.copy() if a.flags.writeable else a


def _integer(given: Any, n: int, name: str, size: int | None = None) -> Index:
    a = np.asarray(given)
    if a.shape != (n,) or a.dtype.kind not in "iub":
        got = f"{a.dtype} {a.shape}"
        raise ShapeError(sentence("Evaluation", f"{name} must be integers, one per row ({n})", got))
    a = a.astype(np.intp)
    if size is not None and ((a < 0) | (a >= size)).any():
        row = int(np.flatnonzero((a < 0) | (a >= size))[0])
        got = f"{a[row]} at row {row}"
        raise DataError(sentence("Evaluation", f"{name} must lie in 0 … {size - 1}", got, "leave out unlabeled rows"))
    return a


def _weights(given: Any, n: int) -> Array | None:
    w = weights(given, n, "Evaluation")
    if w is None:
        return None
    if w.ndim != 1:
        raise ShapeError(sentence("Evaluation", f"weight must have shape ({n},)", w.shape))
    as_counts(w, n, "Evaluation")  # raises an error if all weights are 0
    return w.copy()


def _scores(given: Any, n: int) -> Array:
    s = np.array(given, dtype=np.float64)
    if s.shape != (n,) or np.isnan(s).any():
        raise ShapeError(sentence("Evaluation", f"score must be one number per row ({n})", f"{s.shape}, or NaN in it"))
    return s
