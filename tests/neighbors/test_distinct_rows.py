"""Distinct rows: order, blocks and copies do not matter, and what was added can be taken away."""

from __future__ import annotations

import numpy as np
import pytest

import likely as lk
from likely.distributions.downdating import without
from likely.neighbors.distinct_rows import DistinctRows, same_rows


def rows(seed=0, n=60):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (n, 2)).astype(float)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, rng.integers(0, 4, n).astype(float), rng.integers(-1, 3, n)


def same(a, b):
    assert np.array_equal(a.values, b.values, equal_nan=True) and np.allclose(a.weight, b.weight)
    assert (a.edges is None) == (b.edges is None) and (a.edges is None or np.array_equal(a.edges, b.edges))


@pytest.mark.parametrize("stacked", [False, True])
def test_a_commutative_monoid(stacked):
    x, w, labels = rows()
    how = {"labels": labels, "members": 3} if stacked else {}

    def of(part):
        return DistinctRows.of(x[part], w[part], **{k: v[part] if k == "labels" else v for k, v in how.items()})

    whole, perm = of(np.arange(60)), np.random.default_rng(1).permutation(60)
    same(of(perm), whole)
    same(of(perm[:20]) + of(perm[20:21]) + of(perm[21:]), whole)
    same(whole + of(np.arange(0)), whole)
    same(of(np.arange(0)) + whole, whole)
    same(whole * 0.5 + whole * 0.5, whole)
    assert len(whole * 0.0) == 0
    same(without(whole + of(perm[:9]), of(perm[:9])), whole)
    assert len(without(whole, whole)) == 0


def test_a_weight_is_a_number_of_copies():
    x, w, labels = rows(2)
    times = w.astype(int)
    same(DistinctRows.of(x, w), DistinctRows.of(np.repeat(x, times, axis=0)))
    by_label = DistinctRows.of(x, w, labels, 3)
    same(by_label, DistinctRows.of(x, w[:, None] * (labels[:, None] == np.arange(3)), members=3))
    same(by_label.member(1), DistinctRows.of(x[labels == 1], w[labels == 1]))
    same(DistinctRows.side_by_side([by_label.member(k) for k in range(3)]), by_label)


def test_rows_are_distinct():
    x, w, _ = rows(3)
    s = DistinctRows.of(x, w)
    kept = {tuple(r) for r in np.where(np.isnan(x[w > 0]), -1.0, x[w > 0]).tolist()}
    assert len(s) == len(kept) == len({tuple(r) for r in np.where(np.isnan(s.values), -1.0, s.values).tolist()})
    assert s.total_weight == w.sum()
    assert len(DistinctRows.of([[0.0], [-0.0]])) == 1


def test_same_rows():
    a = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert same_rows(a, a[::-1]).tolist() == [2, 1, 0] and same_rows(a[:0], a).tolist() == []


def test_bad_parts_are_refused():
    for make, says in (
        (lambda: DistinctRows(np.zeros((2, 1)), np.ones(3)), "one weight each"),
        (lambda: DistinctRows(np.zeros((2, 1)), [1.0, 0.0]), "positive"),
        (lambda: DistinctRows(np.zeros((2, 1)), np.ones(2), np.array([0, 1])), "edges"),
        (lambda: DistinctRows.of(np.zeros((2, 1))) + DistinctRows.of(np.zeros((2, 2))), "columns"),
        (lambda: DistinctRows.of([[np.inf]]), "row 0, column 0"),
    ):
        with pytest.raises(lk.LikelyError, match=says):
            make()
