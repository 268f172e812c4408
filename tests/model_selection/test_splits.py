"""Folds keep together what belongs together, hold every class, and do not depend on the order of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

import likely as lk
from likely.estimation.foreign_tables import equal_rows, take_columns, take_rows
from likely.model_selection.splits import Copies, fold_of, make_splits


@pytest.fixture
def rows(rng):
    return rng.normal(size=(103, 3)), rng.integers(0, 3, 103)


def folds_by_row(splits, n):
    fold = fold_of(splits, n)
    assert fold is not None
    return fold


@pytest.mark.parametrize("cv", [2, 5, 7, None])
def test_every_row_is_tested_once_and_classes_keep_their_shares(rows, cv):
    X, y = rows
    splits = make_splits(X, y, cv)
    assert len(splits) == (cv or 5)
    assert (folds_by_row(splits, 103) >= 0).all()
    for split in splits:
        assert not set(split.train) & set(split.test)
        assert len(split.train) + len(split.test) == 103
    counts = np.array([np.bincount(y[split.test], minlength=3) for split in splits])
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_weights_are_copies_in_any_order(rows, rng):
    X, y = rows
    w = rng.integers(0, 4, 103)
    again = rng.permutation(np.repeat(np.arange(103), w))
    copies = Copies(X, y, w.astype(float)).written_out(5)
    weighted = folds_by_row(make_splits(copies.X, copies.labels, 5), len(copies.labels))
    repeated = folds_by_row(make_splits(X[again], y[again], 5), len(again))
    for row in range(103):  # which copy goes where does not matter
        assert sorted(weighted[copies.row == row]) == sorted(repeated[again == row])
    assert (folds_by_row(make_splits(X, y, 5, weight=w.astype(float)), 103)[w == 0] == -1).all()


def test_heavy_rows_do_not_unbalance_folds(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    w = rng.exponential(size=60) ** 2
    masses = [w[split.test].sum() for split in make_splits(X, y, 3, weight=w)]
    assert max(masses) < 1.25 * min(masses)


def test_groups_are_never_torn_apart(rows, rng):
    X, y = rows
    groups = rng.choice(list("abcdefghijklmnop"), 103)
    for split in make_splits(X, y, 4, groups=groups):
        assert not set(groups[split.train]) & set(groups[split.test])
        assert 15 <= len(split.test) <= 37


def test_a_table_of_categories_is_split_row_by_row():
    X = np.repeat([[0], [1]], 50, axis=0)
    splits = make_splits(X, np.arange(100) % 2, 5)
    assert len(splits) == 5
    assert all(len(np.unique(X[split.train])) == 2 for split in splits)


def test_leave_one_out_leaves_out_one_distinct_row(rows):
    X, y = rows
    twice = np.concatenate([X, X[:5]])
    splits = make_splits(twice, np.concatenate([y, y[:5]]), "leave-one-out")
    assert len(splits) == 103 and sorted(len(split.test) for split in splits) == [1] * 98 + [2] * 5


@pytest.mark.parametrize("cv", [5, 0.3, "leave-one-out"])
def test_equal_rows_stay_together(rows, rng, cv):
    X, y = rows
    w = rng.integers(0, 4, 103)
    copies = Copies(X, y, w.astype(float)).written_out(cv)
    for split in make_splits(copies.X, copies.labels, cv):
        assert not set(copies.row[split.train]) & set(copies.row[split.test])
    masses = [len(split.test) for split in make_splits(copies.X, copies.labels, 5)]
    assert max(masses) <= min(masses) + 10


def test_rows_of_measurements_with_few_digits_stay_together():
    X, y = load_iris(return_X_y=True)
    row = np.repeat(np.arange(150), 3)
    for split in make_splits(X[row], y[row], 5):
        assert not set(row[split.train]) & set(row[split.test])


def test_a_table_of_few_cells_is_split_row_by_row_whatever_its_type(rng):
    sex, rank, saved = rng.choice(["f", "m"], 200), rng.choice([1.0, 2.0, np.nan], 200), rng.integers(0, 2, 200)
    for X in (
        pd.DataFrame({"sex": sex, "class": rank}), pl.DataFrame({"sex": sex, "class": rank}),
        np.array([sex, rank], dtype=object).T, lk.core.Columns(sex=sex, rank=rank[:, None]),
    ):  # fmt: skip
        sizes = [len(split.test) for split in make_splits(X, saved, 5)]
        assert sizes == [40] * 5
    pixels = np.repeat(rng.integers(0, 17, (60, 64)), 2, axis=0)  # 17⁶⁴ combinations: copies
    for split in make_splits(pixels, np.zeros(120, int), 5):
        assert not set(split.train // 2) & set(split.test // 2)


def test_time_is_an_expanding_window(rng):
    time = rng.permutation(60) // 2  # each moment twice
    splits = make_splits(np.zeros((60, 1)), np.arange(60) % 2, "time", time=time)
    assert len(splits) == 5
    for split in splits:
        assert time[split.train].max() < time[split.test].min()
    first = min(time[split.test].min() for split in splits)
    assert (folds_by_row(splits, 60) == -1).sum() == (time < first).sum() == 10


def test_dates_are_times():
    days = np.array(["2024-01-01", "2024-01-03", "2024-01-02", "2024-01-04"], dtype="datetime64[D]")
    splits = make_splits(np.zeros((4, 1)), np.zeros(4, int), "time", time=days)
    assert splits[0].train.tolist() == [0] and splits[-1].test.tolist() == [3]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8])
def test_a_share_is_one_hold_out(rows, share):
    X, y = rows
    (split,) = make_splits(X, y, share)
    assert len(split.test) == pytest.approx(share * 103, abs=1)
    assert len(split.train) == 103 - len(split.test)
    assert np.abs(np.bincount(y[split.test]) - share * np.bincount(y)).max() <= 1.5


def test_splitters_of_others_are_taken_as_they_are(rows):
    X, y = rows
    ours, theirs = make_splits(X, y, KFold(4)), KFold(4).split(X)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.test, b[1])
    given = [(np.arange(50), np.arange(50, 103))]
    w = np.ones(103)
    w[[0, 60]] = 0
    (split,) = make_splits(X, y, given, weight=w)
    assert 0 not in split.train and 60 not in split.test and len(split.test) == 52


def test_seeds_shuffle(rows):
    X, y = rows
    a, b, c = (folds_by_row(make_splits(X, y, 5, seed=s), 103) for s in (0, 0, 1))
    assert (a == b).all() and (a != c).any()


@pytest.mark.parametrize("cv", [1, 0, -3, 1.5, 0.0, "loo", True])
def test_a_senseless_cv_is_refused(rows, cv):
    with pytest.raises(lk.DomainError, match="cv must be"):
        make_splits(*rows, cv)


def test_bad_input_is_named(rows):
    X, y = rows
    with pytest.raises(lk.ShapeError, match="groups"):
        make_splits(X, y, 5, groups=[1, 2])
    with pytest.raises(lk.ShapeError, match="time"):
        make_splits(X, y, "time", time=[1, 2])
    with pytest.raises(lk.DataError, match="row 4"):
        make_splits(X, y, "time", time=np.where(np.arange(103) == 4, np.nan, 1.0))
    with pytest.raises(lk.DataError, match="two different times"):
        make_splits(X, y, "time", time=np.zeros(103))
    with pytest.raises(lk.DataError, match="two rows or groups"):
        make_splits(X, y, 5, groups=np.zeros(103))
    with pytest.raises(lk.DataError, match="weight"):
        make_splits(X, y, 5, weight=np.zeros(103))


# ------------------------------------------------------------------------ tables


def kinds_of_tables():
    a = np.array([[1.0, 0.0], [np.nan, 2.0], [1.0, -0.0], [np.nan, 2.0], [3.0, 0.0]])
    yield "array", a
    yield "float32", a.astype(np.float32)
    yield "fortran", np.asfortranarray(a)
    yield "sparse", sp.csr_array(np.nan_to_num(a, nan=7.0))
    yield "pandas", pd.DataFrame(a, columns=["u", "v"]).assign(w=["x", None, "x", None, "y"])
    yield "polars", pl.DataFrame({"u": a[:, 0], "w": ["x", None, "x", None, "y"]})
    yield "columns", lk.core.Columns(u=a, w=["x", "z", "x", "z", "y"])
    yield "list", [["x", 1], ["y", 2], ["x", 1], ["y", 2], ["z", 3]]
    yield "strings", ["a", "b", "a", "b", "c"]
    yield "ragged", lk.Ragged.from_list([[1.0], [2.0, 3.0], [1.0], [2.0, 3.0], [2.0]])
    yield "dates", np.array([1, 2, 1, 2, 3], dtype="datetime64[D]")[:, None]


@pytest.mark.parametrize(("kind", "X"), list(kinds_of_tables()), ids=lambda v: v if isinstance(v, str) else "")
def test_equal_rows_are_found_in_any_table(kind, X):
    number = equal_rows(X)
    assert (number[:, None] == number).tolist() == (np.array([0, 1, 0, 1, 2])[:, None] == [0, 1, 0, 1, 2]).tolist()
    taken = take_rows(X, np.array([4, 0]))
    both = equal_rows(taken)
    assert both[0] != both[1]
    assert type(taken) is type(X)


@pytest.mark.slow
def test_numbers_do_not_collide(rng):
    grid = np.stack(np.meshgrid(*[np.arange(100.0)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(equal_rows(grid))) == len(grid)


def test_columns_are_taken_in_order(rng):
    X = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(take_columns(X, [2, 0]), X[:, [2, 0]])
    np.testing.assert_array_equal(take_columns(sp.csr_array(X), [2, 0]).toarray(), X[:, [2, 0]])
    assert list(take_columns(pd.DataFrame(X, columns=list("abc")), ["c", "a"]).columns) == ["c", "a"]
    assert list(take_columns(lk.core.Columns(a=X, b=X), ["b"])) == ["b"]


def test_time_and_groups_together_keep_groups_apart(rng):
    time, groups = np.repeat(np.arange(20), 6), rng.integers(0, 30, 120)
    splits = make_splits(np.zeros((120, 1)), np.arange(120) % 2, "time", time=time, groups=groups)
    for split in splits:
        assert time[split.train].max() < time[split.test].min()
        assert not set(groups[split.train]) & set(groups[split.test])
    with pytest.raises(ValueError, match="other groups"):
        make_splits(np.zeros((120, 1)), np.arange(120) % 2, "time", time=time, groups=np.zeros(120))
