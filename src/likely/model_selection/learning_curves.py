"""Learning curves (error against training size) and Hughes curves (error against number of features)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from likely.core.arrays import Array, Index, Rows, Seed, check_option
from likely.core.errors import DataError, DomainError, sentence
from likely.core.warnings import warnings_once
from likely.estimation.foreign_classifiers import checked_targets, fitted
from likely.estimation.foreign_tables import as_table, column_keys, take_columns, take_rows
from likely.estimation.parallel import in_threads
from likely.estimation.scikit_learn import check_random_state
from likely.metrics.confidence_intervals import as_counts, proportion_interval
from likely.model_selection.splits import Copies, Split, make_splits

POINTS = 8  # default number of points on a curve


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Training and test error, with intervals, against the number of rows or of columns; prints as a table.

    Every tested row counts once. A training row belongs to several folds, so its interval uses the size of one fold.
    """

    what: str  # "rows" or "columns"
    at: Index  # (k,)
    train_error: Array  # (k,)
    train_low: Array
    train_high: Array
    test_error: Array  # (k,)
    test_low: Array
    test_high: Array
    fold_error: Array  # (k, folds): test error of each fold

    @property
    def best(self) -> int:
        """The smallest number of rows or columns with the smallest test error."""
        return int(self.at[np.argmin(self.test_error)])

    def as_dict(self) -> dict[str, Any]:
        """All fields, as plain Python values."""
        names = ("at", "train_error", "train_low", "train_high", "test_error", "test_low", "test_high", "fold_error")
        return {"what": self.what, **{name: getattr(self, name).tolist() for name in names}}

    def __str__(self) -> str:
        head = f"{self.what:>9}  {'training error':>26}  {'test error':>26}"
        train = zip(self.train_error, self.train_low, self.train_high, strict=True)
        test = zip(self.test_error, self.test_low, self.test_high, strict=True)
        lines = [f"{n:>9}  {_shown(*a)}  {_shown(*b)}" for n, a, b in zip(self.at, train, test, strict=True)]
        return "\n".join([head, "-" * len(head), *lines])


def learning_curve(
    estimator: Any, X: Rows, y: ArrayLike, *, sizes: ArrayLike | None = None, cv: Any = 5,
    groups: ArrayLike | None = None, time: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    random_state: Seed = 0, n_jobs: int | None = None,
) -> ErrorCurve:  # fmt: skip
    """Learning curve: training and test error against the number of training rows   (Ney 3.6).

    Smaller training sets are subsets of larger ones, and stratified.

    Parameters
    ----------
    estimator : classifier
        Any classifier; it is not changed.
    X : array-like (n, d), data frame or sequences
        Samples, one per row.
    y : array-like (n,)
        Class labels.
    sizes : array-like, optional
        Numbers of rows, or shares of a training set between 0 and 1.
    cv : int, float, splitter, "leave-one-out" or "time"
        How rows are split, as in `evaluate`.
    groups : array-like (n,), optional
        Group of each row; rows of one group are never on both sides of a split.
    time : array-like (n,), optional
        Times of the rows, by which `cv="time"` orders them; None: the order of the rows.
    sample_weight : array-like (n,), optional
        Weight per sample: an integer k equals k copies, which are trained on or tested together.
    random_state : int, Generator or None
        Seed of the splits.
    n_jobs : int, optional
        Number of threads; None: one per core.

    Returns
    -------
    ErrorCurve
        Training and test errors `train_error` and `test_error` at the numbers `at`, with intervals; prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> curve = learning_curve(GaussianNB(), *load_iris(return_X_y=True), sizes=[9, 120])
    >>> curve.at.tolist(), bool(curve.test_error[-1] < 0.1)
    ([9, 120], True)
    """
    table = _Table.of(estimator, X, y, sample_weight, groups)
    seed, splits = table.split(cv, time, random_state)
    order = [_stratified_order(split.train, table.labels, seed + k) for k, split in enumerate(splits)]
    at = _sizes(sizes, min(map(len, order)), len(table.classes))

    def errors(n: int, k: int) -> _Errors:
        return table.errors(table.X, Split(np.sort(order[k][:n]), splits[k].test))

    return _curve("rows", at, len(splits), errors, n_jobs)


ColumnOrder = Literal["ranked", "random", "given"]


def hughes_curve(
    estimator: Any, X: Rows, y: ArrayLike, *, columns_order: ColumnOrder | Sequence[Any] = "ranked",
    dims: ArrayLike | None = None, cv: Any = 5, groups: ArrayLike | None = None, time: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None, random_state: Seed = 0, n_jobs: int | None = None,
) -> ErrorCurve:  # fmt: skip
    """Error against the number of columns: with a fixed number of rows it falls, then rises   (Hughes; Ney 3.7).

    Parameters
    ----------
    estimator : classifier
        Any classifier; it is not changed.
    X : array-like (n, d), data frame or sequences
        Samples, one per row.
    y : array-like (n,)
        Class labels.
    columns_order : {"ranked", "random", "given"} or sequence of columns
        "ranked" (by the ratio of the variance between classes to that within, in each training set separately, without
        the test rows), "random" (another order in each fold), "given", or a list of columns.
    dims : array-like of int, optional
        Numbers of columns to try; None: 1, 2, 4 … all.
    cv : int, float, splitter, "leave-one-out" or "time"
        How rows are split, as in `evaluate`.
    groups : array-like (n,), optional
        Group of each row; rows of one group are never on both sides of a split.
    time : array-like (n,), optional
        Times of the rows, by which `cv="time"` orders them; None: the order of the rows.
    sample_weight : array-like (n,), optional
        Weight per sample: an integer k equals k copies, which are trained on or tested together.
    random_state : int, Generator or None
        Seed of the splits.
    n_jobs : int, optional
        Number of threads; None: one per core.

    Returns
    -------
    ErrorCurve
        Training and test errors `train_error` and `test_error` at the numbers `at`, with intervals; prints as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> curve = hughes_curve(GaussianNB(), *load_iris(return_X_y=True), dims=[1, 4])
    >>> curve.at.tolist(), bool(curve.test_error.max() < 0.1)
    ([1, 4], True)
    """
    table = _Table.of(estimator, X, y, sample_weight, groups)
    seed, splits = table.split(cv, time, random_state)
    orders = [_column_order(columns_order, table, split.train, seed + k) for k, split in enumerate(splits)]
    at = _dims(dims, len(orders[0]))

    def errors(d: int, k: int) -> _Errors:
        return table.errors(take_columns(table.X, orders[k][:d]), splits[k])

    return _curve("columns", at, len(splits), errors, n_jobs)


# --------------------------------------------------------------------- evaluation


@dataclass(frozen=True)
class _Errors:
    """Weight of misclassified rows and of all rows."""

    train_wrong: float
    train: float
    test_wrong: float
    test: float


@dataclass(frozen=True)
class _Table:
    """Rows with classes, weights and the classifier."""

    estimator: Any
    X: Any
    classes: NDArray[Any]
    labels: Index
    weight: Array | None
    count: Array  # (n,): counts of rows for intervals
    groups: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Table:
        X = as_table(X)
        classes, labels, weight = checked_targets(X, y, sample_weight, estimator)
        X, labels, weight, groups, _, _ = Copies(X, labels, weight, groups).written_out(None)
        return cls(estimator, X, classes, labels, weight, as_counts(weight, len(labels)), groups)

    def split(self, cv: Any, time: Any, random_state: Any) -> tuple[int, list[Split]]:
        seed = int(check_random_state(random_state).randint(2**31))
        splits = make_splits(self.X, self.labels, cv, weight=self.weight, groups=self.groups, time=time, seed=seed)
        return seed, [split for split in splits if len(split.test)]

    def errors(self, X: Any, split: Split) -> _Errors:
        model = fitted(self.estimator, X, self.classes[self.labels], self.weight, split.train, self.groups)
        return _Errors(*self._wrong(model, X, split.train), *self._wrong(model, X, split.test))

    def _wrong(self, model: Any, X: Any, rows: Index) -> tuple[float, float]:
        wrong = np.asarray(model.predict(take_rows(X, rows))) != self.classes[self.labels[rows]]
        return float(self.count[rows] @ wrong), float(self.count[rows].sum())


def _curve(what: str, at: Index, folds: int, errors: Callable[[int, int], _Errors], n_jobs: int | None) -> ErrorCurve:
    """Fit and test at every point and in every fold, then pool the folds."""
    jobs = [(int(n), k) for n in at for k in range(folds)]
    with warnings_once():
        done = in_threads(lambda job: errors(*job), jobs, n_jobs)
    parts = [np.array([getattr(e, name) for e in done]).reshape(len(at), folds) for name in _Errors.__annotations__]
    train_wrong, train, test_wrong, test = parts
    trained = proportion_interval(train_wrong.sum(axis=1) / folds, train.sum(axis=1) / folds)
    tested = proportion_interval(test_wrong.sum(axis=1), test.sum(axis=1))
    return ErrorCurve(what, at, *trained[:3], *tested[:3], test_wrong / test)


def _stratified_order(train: Index, labels: Index, seed: int) -> Index:
    """An order of training rows whose every prefix is stratified, with each class at least once."""
    shuffled = np.random.default_rng(seed).permutation(train)
    place = np.empty(len(train))
    for c in np.unique(labels[train]):
        own = np.flatnonzero(labels[shuffled] == c)
        place[own] = np.arange(len(own)) / len(own)
    return shuffled[np.argsort(place, kind="stable")]


def _sizes(sizes: Any, most: int, classes: int) -> Index:
    """Increasing numbers of training rows, at most the smallest training set."""
    if sizes is None:
        return _rising(
            np.geomspace(min(max(5 * classes, most // 50), most), most, POINTS), most, "learning_curve", "sizes"
        )
    asked = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
    shares = np.issubdtype(np.asarray(sizes).dtype, np.floating) and (asked <= 1).all()
    return _rising(np.maximum(asked * most, 1) if shares else asked, most, "learning_curve", "sizes")


def _dims(dims: Any, most: int) -> Index:
    if dims is None:
        return _rising(np.append(2.0 ** np.arange(np.ceil(np.log2(max(most, 2)))), most), most, "hughes_curve", "dims")
    return _rising(np.atleast_1d(np.asarray(dims, dtype=np.float64)), most, "hughes_curve", "dims")


def _rising(asked: Array, most: int, whose: str, name: str) -> Index:
    bad = asked[~((asked >= 1) & (asked <= most + 0.5))]
    if bad.size or not asked.size:
        raise DomainError(sentence(whose, f"{name} must lie in 1 … {most}", bad[0] if bad.size else "none"))
    return np.unique(np.round(asked).astype(np.intp))


# ----------------------------------------------------------------------- columns


def _column_order(order: Any, table: _Table, train: Index, seed: int) -> list[Any]:
    """The columns from first to last."""
    keys = column_keys(table.X)
    if not isinstance(order, str):
        missing = [key for key in order if key not in keys]
        if missing or len(set(order)) < len(list(order)):
            expected = "columns_order must name columns of X, without repetition"
            raise DomainError(sentence("hughes_curve", expected, missing[0] if missing else list(order)))
        return list(order)
    check_option(order, ColumnOrder, "hughes_curve", "columns_order", "a list of columns")
    if order == "given":
        return keys
    if order == "random":
        return [keys[i] for i in np.random.default_rng(seed).permutation(len(keys))]
    separations = [_separation(table, key, train) for key in keys]
    return [keys[i] for i in np.argsort(np.negative(separations), kind="stable")]


def _separation(table: _Table, key: Any, train: Index) -> float:
    """Ratio of the variance between classes to that within, of one column in the training rows; NaN is ignored."""
    x, labels = _numbers(table.X, key)[train], table.labels[train]
    w = np.ones(len(train)) if table.weight is None else table.weight[train]
    seen = np.isfinite(x)
    x, labels, w = x[seen], labels[seen], w[seen]
    C = len(table.classes)
    mass = np.maximum(np.bincount(labels, w, C), 1e-300)
    middle = np.bincount(labels, w * x, C) / mass
    within = float(w @ (x - middle[labels]) ** 2)
    between = float(w @ (middle[labels] - w @ x / max(w.sum(), 1e-300)) ** 2)
    return between / within if within > 0 else (np.inf if between > 0 else 0.0)


def _numbers(X: Any, key: Any) -> Array:
    """One column as numbers."""
    part = take_columns(X, [key])
    part = part[key] if hasattr(part, "columns") or not hasattr(part, "shape") or hasattr(part, "components") else part
    try:
        cells = np.asarray(part.toarray() if issparse(part) else part, dtype=np.float64)
        return cells.reshape(len(cells), -1).mean(axis=1)
    except (TypeError, ValueError) as error:
        remedy = 'columns_order="random", "given" or a list of columns needs no numbers'
        raise DataError(
            sentence("hughes_curve", f"column {key!r} must be numbers to be ranked", remedy=remedy)
        ) from error


def _shown(value: float, low: float, high: float) -> str:
    return f"{value:.4f} ({low:.4f}–{high:.4f})".rjust(26)
