"""Prototype selection for nearest-neighbor classifiers: editing (noise) and condensing (redundancy)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from likely.core.arrays import Array, Index, Mask, check_option, weights
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.row_hashes import row_hashes
from likely.core.warnings import warn
from likely.distributions.categorical.categorical import is_missing
from likely.neighbors.distances import Metric, MetricName
from likely.neighbors.nearest_neighbors import NeighborSearch, _kind
from likely.neighbors.voting import Voters

Editing = Literal["wilson", "repeated", "all-k", "multiedit"]
Condensing = Literal["hart", "reduced"]
PARTS, UNCHANGED = 3, 3  # of multiedit: number of parts, and rounds without a change that end it


def edited_nearest_neighbors(
    X: ArrayLike,
    y: ArrayLike,
    n_neighbors: int = 3,
    *,
    method: Editing = "wilson",
    metric: MetricName | Metric = "l2",
    p: float = 2.0,
    weight: ArrayLike | None = None,
) -> Index:
    """Edited nearest neighbors: the rows whose neighbors agree with their class.

    A class that would lose all rows is kept unchanged, with a warning.

    Parameters
    ----------
    X : array-like (n, d)
        Rows.
    y : array-like (n,)
        Labels.
    n_neighbors : int, default 3
        Number of neighbors k.
    method : {"wilson", "repeated", "all-k", "multiedit"}, default "wilson"
        "wilson": rows whose class is the majority of their k nearest others (Wilson 1972); ties: the first class.
        "repeated": the same, repeated until nothing changes. "all-k": rows that 1, 2, … and k neighbors all agree with
        (Tomek 1976). "multiedit": rows are assigned to three parts by their hash, each part is edited by the nearest
        neighbor in the next one, and this is repeated until three rounds change nothing (Devijver and Kittler 1980). It
        removes most rows; the 1-nearest-neighbor rule with the rest approximates Bayes' rule.
    metric : str or Metric, default "l2"
        The distance: "l1", "l2", "linf", "lp", "scaled", "mahalanobis" or "correlation", or SciPy's names of the first
        four.
    p : float, default 2.0
        Exponent of "lp".
    weight : array-like (n,), optional
        A weight of w means w copies (of which multiedit uses one); rows of weight 0 are dropped.

    Returns
    -------
    ndarray of int
        Row numbers of the rows that are kept.

    See Also
    --------
    condensed_nearest_neighbor : Removes rows far from decision boundaries.

    References
    ----------
    Wilson (1972); Tomek (1976); Devijver and Kittler (1980).

    Examples
    --------
    >>> X, y = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [5.15]], [0, 0, 0, 1, 1, 1, 0]
    >>> edited_nearest_neighbors(X, y)
    array([0, 1, 2, 3, 4, 5])
    """
    check_option(method, Editing, "edited_nearest_neighbors", "method")
    x, labels, w, at = _labeled(X, y, weight, "edited_nearest_neighbors")
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, int | np.integer) or n_neighbors < 1:
        raise DomainError(sentence("edited_nearest_neighbors", "k must be an integer above 0", n_neighbors))
    search = NeighborSearch.of(x, metric, p=p, weight=w, labels=labels, whose="edited_nearest_neighbors")
    keep = {"wilson": _wilson, "repeated": _repeated, "all-k": _all_k, "multiedit": _multiedit}[method]
    return at[_no_class_lost(keep(search, labels, w, int(n_neighbors)), labels)]


def condensed_nearest_neighbor(
    X: ArrayLike, y: ArrayLike, *, method: Condensing = "hart", metric: MetricName | Metric = "l2", p: float = 2.0,
    weight: ArrayLike | None = None,
) -> Index:  # fmt: skip
    """Condensed nearest neighbor: a consistent subset of rows, by which all rows are classified correctly.

    Only identical rows of different classes can be misclassified by the subset. The size of a positive weight does not
    matter; rows of weight 0 are dropped. Rows near decision boundaries are kept, noise as well: use
    `edited_nearest_neighbors` first.

    Parameters
    ----------
    X : array-like (n, d)
        Rows.
    y : array-like (n,)
        Labels.
    method : {"hart", "reduced"}, default "hart"
        "hart": rows are added when the ones added before misclassify them, until none is (Hart 1968). They are visited
        in the order of their hashes, so that neither their own order nor duplicates matter. "reduced": then rows that
        are not needed for consistency are removed again, the last first (Gates 1972).
    metric : str or Metric, default "l2"
        The distance: "l1", "l2", "linf", "lp", "scaled", "mahalanobis" or "correlation", or SciPy's names of the first
        four.
    p : float, default 2.0
        Exponent of "lp".
    weight : array-like (n,), optional
        Weight per row.

    Returns
    -------
    ndarray of int
        Row numbers of the subset.

    See Also
    --------
    edited_nearest_neighbors : Removes noise.

    References
    ----------
    Hart (1968); Gates (1972); Duda, Hart and Stork (2001), chapter 4.

    Examples
    --------
    >>> len(condensed_nearest_neighbor([[0.0], [0.4], [1.0], [9.0], [9.5], [10.0]], ["a", "a", "a", "b", "b", "b"]))
    2
    """
    check_option(method, Condensing, "condensed_nearest_neighbor", "method")
    x, labels, w, at = _once(*_labeled(X, y, weight, "condensed_nearest_neighbor"))
    search = NeighborSearch.of(x, metric, p=p, weight=w, labels=labels, whose="condensed_nearest_neighbor")
    order = np.argsort(row_hashes(np.column_stack([x, labels])), kind="stable")
    there = _condensed(np.array(search.points)[order], search.metric.p, labels[order], method == "reduced")
    return np.sort(at[order[there]])


# ---------------------------------------------------------------------- editing


def _wilson(search: NeighborSearch, labels: Index, w: Array, k: int) -> Mask:
    votes, _ = Voters.trusted(search=search, labels=labels, weight=w, classes=int(labels.max()) + 1).votes_left_out(k)
    return np.asarray(votes.argmax(axis=1) == labels)


def _all_k(search: NeighborSearch, labels: Index, w: Array, k: int) -> Mask:
    return np.all([_wilson(search, labels, w, i) for i in range(1, k + 1)], axis=0)


def _repeated(search: NeighborSearch, labels: Index, w: Array, k: int) -> Mask:
    keep = np.ones(len(labels), dtype=bool)
    while True:
        here = np.flatnonzero(keep)
        agreed = _wilson(_part(search, here), labels[here], w[here], k) if len(here) > 1 else np.ones(len(here), bool)
        agreed = _no_class_lost(agreed, labels[here], quietly=True)
        if agreed.all():
            return keep
        keep[here[~agreed]] = False


def _multiedit(search: NeighborSearch, labels: Index, w: Array, k: int) -> Mask:
    keep, unchanged, hashes = np.ones(len(labels), dtype=bool), 0, row_hashes(search.points)
    round_ = 0
    while unchanged < UNCHANGED:
        here = np.flatnonzero(keep)
        lost = _one_round(search, labels, here, _dealt(hashes[here], round_))
        keep[lost] = False
        keep |= ~_still_there(keep, labels)[labels]  # a class that lost all rows is restored
        unchanged, round_ = (0 if len(lost) and not keep[lost].all() else unchanged + 1), round_ + 1
    return keep


def _dealt(hashes: Any, round_: int) -> Index:
    """The part of each row, by its hash; duplicates go to different parts."""
    mixed = hashes ^ np.uint64((0x9E3779B97F4A7C15 * (round_ + 1)) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    part = np.empty(len(hashes), dtype=np.intp)
    part[np.argsort(mixed, kind="stable")] = np.arange(len(hashes)) % PARTS
    return part


def _one_round(search: NeighborSearch, labels: Index, here: Index, part: Index) -> Index:
    """Rows whose nearest row in the next part is of another class."""
    lost = []
    for i in range(PARTS):
        mine, next_ = here[part == i], here[part == (i + 1) % PARTS]
        if len(mine) and len(next_):
            _, found = _part(search, next_)._found(search._as_queries(mine), np.full(len(mine), -1), 1)
            lost.append(mine[labels[next_[found[:, 0]]] != labels[mine]])
    return np.concatenate(lost) if lost else here[:0]


def _part(search: NeighborSearch, at: Index) -> NeighborSearch:
    """A search among a subset of rows, in the same coordinates."""
    from likely.neighbors.nearest_neighbors import _again

    return _again(search.metric, np.ascontiguousarray(search.points[at]), search.unit)


def _still_there(keep: Mask, labels: Index) -> Mask:
    return np.asarray(np.bincount(labels[keep], minlength=int(labels.max()) + 1) > 0)


def _no_class_lost(keep: Mask, labels: Index, quietly: bool = False) -> Mask:
    lost = np.flatnonzero(~_still_there(keep, labels))
    if not len(lost):
        return keep
    if not quietly:
        what = f"{len(lost)} classes would lose all rows and are kept unchanged"
        warn(f"edited_nearest_neighbors: {what}: they have no region of their own")
    return np.asarray(keep | np.isin(labels, lost))


# ------------------------------------------------------------------- condensing


def _condensed(points: Array, p: float, labels: Index, reduced: bool) -> Mask:
    """The mask of kept rows, visited in their order."""
    from likely.neighbors._loops.condensing_passes import grow_store, shrink_store

    n = len(labels)
    kind, label = _kind(p), labels.astype(np.int64)
    there, away, who = np.zeros(n, dtype=np.bool_), np.full(n, np.inf), np.full(n, n, dtype=np.int64)
    firsts = np.unique(label, return_index=True)[1].astype(np.int64)
    grow_store(points, label, firsts, kind, p, there, away, who)
    if reduced:
        shrink_store(points, label, kind, p, there, away, who)
    return there


# ----------------------------------------------------------------------- validation


def _labeled(X: Any, y: Any, weight: Any, whose: str) -> tuple[Array, Index, Array, Index]:
    """Rows with positive weight, with class codes, weights, and their row numbers."""
    from likely.core.arrays import refuse_infinite, rows

    x = rows(X, None, whose)
    refuse_infinite(x, whose)
    labels = np.asarray(y)
    if labels.shape != (len(x),):
        raise ShapeError(sentence(whose, f"y must have one label per row ({len(x)})", labels.shape))
    w = np.ones(len(x)) if weight is None else np.asarray(weights(weight, len(x), whose))
    if w.shape != (len(x),) or not (w > 0).any():
        raise ShapeError(sentence(whose, "weight must have one number per row, some positive", w.shape))
    at = np.flatnonzero(w > 0)
    return x[at], _all_labels(labels[at], whose), w[at], at


def _all_labels(labels: Any, whose: str) -> Index:
    """Class codes; every row must have a label."""
    for i, label in enumerate(labels.tolist() if labels.dtype.kind in "fO" else []):
        if is_missing(label):
            remedy = "leave out rows without a label"
            raise DataError(sentence(whose, "every row needs a label", f"{label} at row {i}", remedy))
    try:
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise DataError(sentence(whose, "labels must be of one type", kinds)) from error


def _once(x: Array, labels: Index, w: Array, at: Index) -> tuple[Array, Index, Array, Index]:
    """Duplicate rows of one class merged, at the position of the first, with their total weight."""
    whole = np.ascontiguousarray(np.column_stack([x, labels]) + 0.0)  # no −0
    same = np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))
    _, first, place = np.unique(whole.view(same).ravel(), return_index=True, return_inverse=True)
    total: Array = np.bincount(np.ravel(place), w, len(first)).astype(np.float64)
    order = np.argsort(first)
    first = first[order]
    return x[first], labels[first], total[order], at[first]
