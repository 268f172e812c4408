"""Train/test splits: stratified, grouped, leave-one-out, time-ordered and hold-out."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from likely.core.arrays import Array, Index
from likely.core.columns import Columns
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.ragged import Ragged
from likely.estimation.foreign_tables import equal_rows, take_rows

MOST = 20  # mean number of copies per row up to which they are expanded
LEVELS = 20  # different integers up to which a column counts as one of categories
HEAVY = 0.01  # the share of a class from which a unit could unbalance the folds


class Split(NamedTuple):
    """Row numbers of a training and a test set."""

    train: Index
    test: Index


class Copies(NamedTuple):
    """Rows as they are assigned to folds: an integer weight of k is k equal rows, also for who takes no weights."""

    X: Any
    labels: Index
    weight: Array | None
    groups: Any = None
    time: Any = None
    row: Index | None = None  # (m,): the row of each copy; None: the row itself

    def written_out(self, cv: Any) -> Copies:
        """One row per copy, where weights are integers and not too large; a splitter gets the original rows."""
        w = self.weight
        ours = cv is None or isinstance(cv, str | Real)
        if w is None or not ours or (w != np.floor(w)).any() or w.sum() > MOST * len(w):
            return self
        at = np.repeat(np.arange(len(w)), w.astype(np.intp))
        groups, time = (None if part is None else np.asarray(part)[at] for part in (self.groups, self.time))
        return Copies(take_rows(self.X, at), self.labels[at], None, groups, time, at)


def make_splits(
    X: Any, labels: Index, cv: Any, *, weight: Array | None = None, groups: Any = None, time: Any = None, seed: Any = 0,
    target: Array | None = None, equal_apart: bool = False,
) -> list[Split]:  # fmt: skip
    """The splits that `cv` specifies for rows X with classes `labels` (n,); rows of weight 0 are excluded.

    Weights are frequencies: one of k equals k copies of a row. Equal rows, written out or weighted, stay on one side of
    each split, so that no model is tested on a row that it has seen. The exception are tables of categories, where rows
    of different cases are equal by chance (`_by_chance`); there each row is a case of its own. `target` (n,) or (n, m),
    of regressions, belongs to the row; `equal_apart` treats all equal rows as cases of their own.

    - an integer: that many stratified folds; with `groups`, each group in one fold. The assignment
      depends on the content of the rows and the seed, not on their order.
    - "leave-one-out": each distinct row, or group, on its own.
    - "time": an expanding window; the last five sixths of the rows in the order of `time` in five blocks, each tested
      with the earlier rows as training set. Equal times are never split.
    - a share between 0 and 1: one hold-out set of that size, stratified and grouped.
    - anything that scikit-learn takes: a splitter, or an iterable of (train, test).
    """
    here = np.arange(len(labels)) if weight is None else np.flatnonzero(weight > 0)
    if not len(here):
        raise DataError(sentence("cross-validation", "at least one row with a weight is needed", "none"))
    if not isinstance(cv, str | Real) and cv is not None:
        return list(_foreign(X, labels, cv, groups, weight))
    if cv == "time":
        splits = [Split(here[a], here[b]) for a, b in _by_time(_ordered(time, len(labels))[here])]
        return (
            splits
            if groups is None
            else [_without_tested_groups(split, _checked_groups(groups, labels)) for split in splits]
        )
    if groups is None:
        unit = _distinct(X, target, labels, here, equal_apart)
    else:
        named = _checked_groups(groups, labels)[here].astype(str)
        unit = np.unique(named, return_inverse=True)[1].astype(np.intp)
    fold = _folds(unit, labels[here], None if weight is None else weight[here], cv, seed)
    return [Split(here[fold != k], here[fold == k]) for k in range(fold.max() + 1) if (fold == k).any()]


def fold_of(splits: list[Split], n: int) -> Index | None:
    """The split that tests a row (n,), −1 for none; None if a row is tested more than once."""
    fold = np.full(n, -1, dtype=np.intp)
    for k, split in enumerate(splits):
        if (fold[split.test] >= 0).any() or len(np.unique(split.test)) < len(split.test):
            return None
        fold[split.test] = k
    return fold


def _distinct(X: Any, target: Any, labels: Index, here: Index, apart: bool) -> Index:
    """Number (m,) of each row that counts, in the order of contents; equal rows share one unless they are cells."""
    content = equal_rows(X) if target is None else equal_rows(Columns(x=equal_rows(X), y=target))
    content, label = content[here], labels[here]
    order = np.lexsort((label, content))
    first = np.append(True, (np.diff(content[order]) != 0) | (np.diff(label[order]) != 0))
    if apart or (not first.all() and _by_chance([X, labels] if target is None else [X, target], len(here))):
        first[:] = True
    unit = np.empty(len(here), dtype=np.intp)
    unit[order] = np.cumsum(first) - 1
    return unit


def _by_chance(tables: list[Any], n: int) -> bool:
    """Whether n rows may be equal by chance: all columns hold categories, and there are at most n² combinations.

    Categories are text, bools, or at most 20 integers: one of several measurements hardly occurs twice.
    """
    log_cells = 0.0
    for column in (column for table in tables for column in _columns(table)):
        a = np.asarray(column)
        if a.ndim != 1:
            return False
        numeric = a.dtype.kind in "iuf"
        if numeric and (a.dtype.kind == "f" and (a[~np.isnan(a)] % 1).any()):
            return False
        levels = len(np.unique(a if a.dtype.kind in "biufmMUS" else a.astype(str)))
        if numeric and levels > LEVELS:
            return False
        log_cells += np.log(max(levels, 1))
    return bool(log_cells <= 2 * np.log(n))


def _columns(table: Any) -> Iterator[Any]:
    """The columns of an array, a frame or parts; sequences and sparse matrices give themselves, which are no column."""
    if isinstance(table, Columns):
        yield from (column for part in table.parts.values() for column in _columns(part))
    elif hasattr(table, "columns"):
        yield from (table[name] for name in table.columns)
    elif isinstance(table, Ragged) or issparse(table):
        yield np.empty((0, 0))
    else:
        a = np.asarray(table, dtype=object) if isinstance(table, list) else np.asarray(table)
        yield from [a] if a.ndim == 1 else a.reshape(len(a), -1).T


def _checked_groups(groups: Any, labels: Index) -> Any:
    groups = np.asarray(groups)
    if groups.shape != labels.shape:
        expected = f"groups must have one entry per row ({len(labels)})"
        raise ShapeError(sentence("cross-validation", expected, groups.shape))
    return groups


def _without_tested_groups(split: Split, groups: Any) -> Split:
    """The split without training rows of groups that it tests."""
    train = split.train[~np.isin(groups[split.train], groups[split.test])]
    if not len(train):
        expected, remedy = "each block needs earlier rows of other groups", "use groups or time, not both"
        raise DataError(sentence("cross-validation", expected, "none", remedy))
    return Split(train, split.test)


def _folds(unit: Index, labels: Index, weight: Array | None, cv: Any, seed: Any) -> Index:
    """The fold of each row (m,); −1 for rows that are never tested."""
    count = unit.max() + 1
    if cv == "leave-one-out":
        _refuse_one(count)
        return unit
    if isinstance(cv, Real) and 0 < float(cv) < 1:
        _refuse_one(count)
        return _dealt(unit, labels, weight, np.array([float(cv), 1 - float(cv)]), seed) * -1  # the second: never tested
    if cv is None or (isinstance(cv, Integral) and int(cv) >= 2):
        _refuse_one(count)
        folds = min(5 if cv is None else int(cv), count)
        return _dealt(unit, labels, weight, np.full(folds, 1 / folds), seed)
    expected = 'cv must be an integer from 2 on, "leave-one-out", "time", a share between 0 and 1, or a splitter'
    raise DomainError(sentence("cross-validation", expected, repr(cv)))


def _refuse_one(count: int) -> None:
    if count < 2:
        remedy = "pass more rows, or fewer of them in one group"
        raise DataError(sentence("cross-validation", "at least two rows or groups are needed", "one sample", remedy))


def _dealt(unit: Index, labels: Index, weight: Array | None, shares: Array, seed: Any) -> Index:
    """Stratified assignment of units to folds of the given sizes; it depends on contents and seed only."""
    C, count = int(labels.max()) + 1, int(unit.max()) + 1
    mass = np.bincount(unit * C + labels, weight, count * C).reshape(count, C)
    shuffled = np.random.default_rng(seed).permutation(count)
    part = mass / np.maximum(mass.sum(axis=0), 1e-300)
    heavy = (part.max(axis=1) > HEAVY) & (np.ptp(mass[mass > 0]) > 0)
    fold = np.empty(count, dtype=np.intp)
    fold[heavy] = _balanced(part, shuffled[heavy[shuffled]], shares)[heavy]
    light = shuffled[~heavy[shuffled]]
    fold[light[np.argsort(mass.argmax(axis=1)[light], kind="stable")]] = _turns(len(light), shares)
    return fold[unit]


def _turns(n: int, shares: Array) -> Index:
    """Fold of each unit in turn (n,): equal shares in rotation; two unequal ones as evenly as possible."""
    if np.ptp(shares) == 0:
        return np.arange(n) % len(shares)
    reached = np.floor(np.arange(n + 1) * shares[0] + 0.5)
    return np.where(np.diff(reached) > 0, 0, 1)


def _balanced(part: Array, shuffled: Index, shares: Array) -> Index:
    """Greedy assignment: the largest units first, each to the fold with least weight of its classes."""
    have, size = np.zeros((len(shares), part.shape[1])), np.zeros(len(shares))
    fold = np.empty(len(part), dtype=np.intp)
    for u in shuffled[np.argsort(-part.max(axis=1)[shuffled], kind="stable")]:
        full = ((have + part[u]) @ part[u] / part[u].sum() + 1e-6 * size) / shares
        fold[u] = k = int(np.argmin(full))
        have[k] += part[u]
        size[k] += part[u].sum()
    return fold


def _by_time(time: Any, blocks: int = 5) -> Iterator[Split]:
    """Blocks of equal size in the order of time, each tested after its training rows."""
    moments, at = np.unique(time, return_inverse=True)
    if len(moments) < 2:
        raise DataError(sentence("cross-validation", "at least two different times are needed", len(moments)))
    ahead = np.cumsum(np.bincount(at)) - np.bincount(at)  # rows before each time
    block = np.minimum(ahead * (blocks + 1) // len(at), blocks)
    block[0] = 0
    of_row = np.unique(block, return_inverse=True)[1][at]
    for k in range(1, of_row.max() + 1):
        yield Split(np.flatnonzero(of_row < k), np.flatnonzero(of_row == k))


def _ordered(time: Any, n: int) -> Any:
    """Times as a sortable array; without any, the order of the rows."""
    if time is None:
        return np.arange(n)
    time = np.asarray(time)
    if time.shape != (n,):
        raise ShapeError(sentence("cross-validation", f"time must have one entry per row ({n})", time.shape))
    missing = np.isnat(time) if time.dtype.kind in "mM" else time != time
    if np.any(missing):
        raise DataError(
            sentence("cross-validation", "every row needs a time", f"none at row {np.flatnonzero(missing)[0]}")
        )
    return time


def _foreign(X: Any, labels: Index, cv: Any, groups: Any, weight: Array | None) -> Iterator[Split]:
    """The splits of a scikit-learn splitter or an iterable, without rows of weight 0."""
    from sklearn.model_selection import check_cv

    counted = np.ones(len(labels), dtype=bool) if weight is None else weight > 0
    for train, test in check_cv(cv, labels, classifier=True).split(np.zeros((len(labels), 1)), labels, groups):
        train, test = (np.arange(len(labels))[part] for part in (train, test))
        yield Split(train[counted[train]], test[counted[test]])
