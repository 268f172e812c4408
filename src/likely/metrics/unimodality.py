"""Test of unimodal classes: nearest neighbor against a classifier (McNemar's test)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from likely.core.arrays import Array, Index, Mask, refuse_infinite, rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value
from likely.metrics.confidence_intervals import Interval, as_counts, proportion_interval, shown_p
from likely.metrics.reliability import Statistic
from likely.neighbors.nearest_neighbors import nearest_other
from likely.numerics.spd import cholesky, solve_factor

TINY = 1e-300
TREE = 10  # columns up to which a tree is faster than all distances
WORK = 4 * 10**8  # number of distances computed directly: some seconds


@dataclass(frozen=True, eq=False)
class NeighborCheck(Value):
    """Error of the leave-one-out nearest neighbor against that of a classifier, on the same rows.

    Parameters
    ----------
    neighbor : Interval
        Error of the nearest neighbor.
    classifier : Interval
        Error of the classifier.
    mcnemar : Statistic
        McNemar: the smaller number of rows that only one of them classifies correctly, and its exact p-value.
    rows : float
        Effective number of rows.
    left_out : int
        Number of rows with missing values.
    twins : float
        Share of rows with an exact duplicate of the same class.
    """

    neighbor: Interval  # error of the nearest neighbor
    classifier: Interval  # error of the classifier
    mcnemar: Statistic  # McNemar: the smaller number of rows that only one of them classifies correctly; exact p
    rows: float  # effective number of rows
    left_out: int  # rows with missing values
    twins: float  # share of rows with an exact duplicate of the same class

    @property
    def verdict(self) -> str:
        """The result of the test as a sentence."""
        errors = f"nearest neighbor {self.neighbor.value:.1%}, classifier {self.classifier.value:.1%}"
        p = shown_p(self.mcnemar.p_value)
        if self.mcnemar.p_value >= 0.05:
            found = f"No sign of several modes: {errors} ({p})."
        elif self.neighbor.value < self.classifier.value:
            found = f"The nearest neighbor is better ({errors}, {p}): classes may have several modes; try mixtures."
        else:
            found = f"The classifier is better than the nearest neighbor ({errors}, {p}): its class densities fit."
        return found + self._reservations

    @property
    def _reservations(self) -> str:
        twins = f" {self.twins:.0%} of rows have an exact duplicate, which biases the neighbor's error downward."
        gaps = f" {self.left_out} rows with missing values were dropped."
        return (twins if self.twins > 0.05 else "") + (gaps if self.left_out else "")


def check_unimodality(
    X: ArrayLike, y: ArrayLike, decided: ArrayLike, *, covariance: ArrayLike | None = None,
    weight: ArrayLike | None = None, max_samples: int = 20_000,
) -> NeighborCheck:  # fmt: skip
    """Leave-one-out nearest neighbor against a classifier's decisions: a check for several modes per class.

    If classes are unimodal and the model fits, the neighbor cannot be better (its error is up to twice
    the Bayes error, Cover and Hart). Columns are scaled by the pooled deviation within classes.

    Parameters
    ----------
    X : array-like (n, d)
        Rows.
    y : array-like (n,)
        True labels.
    decided : array-like (n,)
        Labels that the classifier decided for.
    covariance : array-like (d, d), optional
        Whiten rows by this covariance instead of scaling columns.
    weight : array-like (n,), optional
        Weight per row.
    max_samples : int, default 20000
        Of more rows, an evenly spaced subset is used, and fewer (2,000 at least) where there are many rows of more than
        10 columns.

    Returns
    -------
    NeighborCheck
        Both errors and McNemar's test; `verdict` is a sentence.

    References
    ----------
    Ney, lecture notes, 3.5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 0.3, (60, 1)) for m in (-3, 0, 3)])  # the outer two are one class
    >>> y = np.repeat([0, 1, 0], 60)
    >>> check_unimodality(X, y, np.zeros(180, dtype=int)).verdict.split(":")[0]
    'The nearest neighbor is better (nearest neighbor 0.0%, classifier 33.3%, p < 0.001)'
    """
    x, label, called, w, left_out = _labeled(X, y, decided, weight)
    z = _scaled(x, label, w) if covariance is None else _whitened(x, covariance)
    tried = _tried(len(z), z.shape[1], max_samples)
    nearest, twin = _nearest_label(z, label, w, tried)
    n, right = w[tried], label[tried]
    near_wrong, wrong = nearest != right, called[tried] != right
    total = float(n.sum())
    return NeighborCheck.trusted(
        neighbor=proportion_interval(float(n @ near_wrong), total),
        classifier=proportion_interval(float(n @ wrong), total),
        mcnemar=mcnemar(float(n @ (~near_wrong & wrong)), float(n @ (near_wrong & ~wrong))),
        rows=total, left_out=left_out, twins=float(n @ twin) / total,
    )  # fmt: skip


def _tried(n: int, d: int, most: int) -> Index:
    """Evenly spaced row numbers."""
    count = min(most, n) if d <= TREE else min(most, n, max(2000, WORK // n))
    return np.unique(np.linspace(0, n - 1, count).round().astype(np.intp))


def mcnemar(first: float, second: float) -> Statistic:
    """McNemar's exact two-sided test: rows that only the first, and only the second classifier gets right.

    >>> round(mcnemar(1, 9).p_value, 6)
    0.021484
    """
    n, k = first + second, min(first, second)
    p = 1.0 if n == 0 else min(1.0, 2 * float(betainc(n - k, k + 1, 0.5)))  # P(K ≤ k | n, ½)
    return Statistic(float(k), p)


def _labeled(X: Any, y: Any, decided: Any, weight: Any) -> tuple[Array, Index, Index, Array, int]:
    """Complete rows of positive weight, with labels and decisions as codes of one list."""
    x = rows(X, None, "check_unimodality")
    refuse_infinite(x, "check_unimodality")
    labels, calls = np.asarray(y), np.asarray(decided)
    if labels.shape != (len(x),) or calls.shape != labels.shape:
        expected = f"y and decided must have one label per row ({len(x)})"
        raise ShapeError(sentence("check_unimodality", expected, f"{labels.shape} and {calls.shape}"))
    places = {c: i for i, c in enumerate(dict.fromkeys([*labels.tolist(), *calls.tolist()]))}
    codes, called = (np.array([places[c] for c in a.tolist()], dtype=np.intp) for a in (labels, calls))
    w = as_counts(weight, len(x), "check_unimodality")
    gaps = np.isnan(x).any(axis=1)
    here = ~gaps & (w > 0)
    if here.sum() < 2:
        expected = "at least two rows without missing values are needed"
        raise DataError(sentence("check_unimodality", expected, int(here.sum())))
    return x[here], codes[here], called[here], w[here], int((gaps & (w > 0)).sum())


def _scaled(x: Array, label: Index, w: Array) -> Array:
    """Columns divided by their pooled standard deviation within classes; where that is 0, by the overall one."""
    total = np.maximum(np.bincount(label, w), TINY)
    means = np.stack([np.bincount(label, w * column) for column in x.T], axis=1) / total[:, None]
    centered = x - np.average(x, axis=0, weights=w)
    within, whole = (np.sqrt(np.average(a**2, axis=0, weights=w)) for a in (x - means[label], centered))
    tiny = 1e-12 * np.maximum(np.abs(x).max(axis=0), TINY)
    scale = np.where(within > tiny, within, np.where(whole > tiny, whole, 1.0))
    return centered / scale


def _whitened(x: Array, covariance: Any) -> Array:
    a = np.asarray(covariance, dtype=np.float64)
    if a.shape != (x.shape[1], x.shape[1]):
        expected = f"covariance must have shape ({x.shape[1]}, {x.shape[1]})"
        raise ShapeError(sentence("check_unimodality", expected, a.shape))
    root = cholesky(a)
    if root is None:
        raise DomainError(sentence("check_unimodality", "covariance must be positive definite", "one that is not"))
    return np.ascontiguousarray(solve_factor(root, x - x.mean(axis=0)).T)


def _nearest_label(z: Array, label: Index, w: Array, tried: Index) -> tuple[Index, Mask]:
    """The label of the nearest other row, for some rows, and whether they have an exact duplicate of their own class.

    Rows at one point vote by weight. An integer weight w is w copies, of which one is left out; a fractional one
    is left out completely.
    """
    places, at = np.unique(z, axis=0, return_inverse=True)
    at = at.ravel()
    votes = np.zeros((len(places), int(label.max()) + 1))
    np.add.at(votes, (at, label), w)
    whole = bool((w == np.floor(w)).all())
    own = votes[at[tried]]
    own[np.arange(len(tried)), label[tried]] -= 1.0 if whole else w[tried]
    shared = own.sum(axis=1) > 1e-9
    twin = own[np.arange(len(tried)), label[tried]] > 1e-9
    out = own.argmax(axis=1)
    alone = np.flatnonzero(~shared)
    if len(alone) and len(places) > 1:
        out[alone] = votes[nearest_other(places, at[tried[alone]])[1]].argmax(axis=1)
    return out, twin
