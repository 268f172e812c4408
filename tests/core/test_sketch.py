"""A sketch is a statistic: chunks, order and copies of rows leave no trace in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from likely.core.columns import Columns
from likely.core.errors import DomainError, LikelyError, ShapeError
from likely.core.ragged import Ragged
from likely.core.sketch import Sketch


def same(a, b):
    np.testing.assert_array_equal(a.hashes, b.hashes)
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-14)
    rows = [s.rows.toarray() if sparse.issparse(s.rows) else s.rows for s in (a, b)]
    if isinstance(rows[0], Columns):
        for name in rows[0]:
            np.testing.assert_array_equal(rows[0][name], rows[1][name])
    else:
        np.testing.assert_array_equal(*rows)


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return np.where(rng.random((5_000, 3)) < 0.05, np.nan, rng.integers(0, 12, (5_000, 3)).astype(float))


def test_it_holds_the_distinct_rows_of_smallest_hash(x):
    from likely.core.row_hashes import row_hashes

    s, h = Sketch.of(x, size=100), row_hashes(x)
    np.testing.assert_array_equal(s.hashes, np.unique(h)[:100])
    np.testing.assert_array_equal(s.weight, [(h == one).sum() for one in s.hashes])
    np.testing.assert_array_equal(row_hashes(s.rows), s.hashes)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=60), st.lists(st.integers(0, 30), max_size=60), st.integers(1, 25))
def test_it_is_a_commutative_monoid(first, second, size):
    a, b = (Sketch.of(np.array(v, dtype=float).reshape(-1, 1), size=size) for v in (first, second))
    whole = Sketch.of(np.array([*first, *second], dtype=float).reshape(-1, 1), size=size)
    same(a + b, whole)
    same(b + a, whole)
    same(a + Sketch.of(np.zeros((0, 1)), size=size), a)
    same(sum([a, b]), whole)


def test_many_chunks_in_any_order_are_one_batch(x):
    chunks = np.array_split(x, 37)
    order = np.random.default_rng(1).permutation(37)
    same(sum(Sketch.of(chunks[i], size=200) for i in order), Sketch.of(x, size=200))


def test_weights_are_copies_and_zero_is_absence(x):
    w = np.random.default_rng(2).integers(0, 4, len(x))
    same(Sketch.of(x, w, size=300), Sketch.of(np.repeat(x, w, axis=0), size=300))


def test_scaling_scales_weights_and_nothing_is_left_of_zero(x):
    s = Sketch.of(x, size=50)
    np.testing.assert_array_equal((s * 2.0).weight, 2 * s.weight)
    assert len(s * 0.0) == 0
    assert (0.5 * s).total_weight == s.total_weight / 2


@pytest.mark.parametrize("kind", ["categories", "columns", "sparse", "float32", "ragged"])
def test_all_kinds_of_rows(kind):
    rng = np.random.default_rng(3)
    colors = np.array(["red", "blue", None, "green"], dtype=object)[rng.integers(0, 4, 200)]
    counts = sparse.csr_matrix(rng.poisson(0.2, (200, 4)))
    kinds = {
        "categories": np.stack([colors, colors[::-1]], axis=1),
        "columns": Columns(v=rng.integers(0, 2, (200, 2)), c=colors),
        "sparse": counts,
        "float32": rng.integers(0, 3, (200, 2)).astype(np.float32),
        "ragged": Ragged.from_list([np.arange(n) for n in rng.integers(0, 5, 200)]),
    }
    rows = kinds[kind]
    whole, parts = Sketch.of(rows, size=10), Sketch.of(rows[:120], size=10) + Sketch.of(rows[120:], size=10)
    if kind == "ragged":
        np.testing.assert_array_equal(whole.rows.values, parts.rows.values)
        np.testing.assert_array_equal(whole.weight, parts.weight)
    else:
        same(whole, parts)
    assert kind != "float32" or whole.rows.dtype == np.float32


def test_minus_zero_is_kept_as_zero():
    s = Sketch.of(np.array([[-0.0], [0.0]]))
    assert len(s) == 1
    assert not np.signbit(s.rows).any()


def test_a_copy_of_every_row_keeps_enough_distinct_ones():
    x = np.repeat(np.arange(100.0), 1_000)[:, None]
    assert len(Sketch.of(x, size=60)) == 60


def test_what_it_refuses(x):
    with pytest.raises(DomainError, match="size"):
        Sketch.of(x, size=0)
    with pytest.raises(ShapeError, match="one number per row"):
        Sketch.of(x, np.ones((len(x), 2)))
    with pytest.raises(LikelyError, match="hashes must be increasing"):
        Sketch(np.zeros((2, 1)), np.ones(2), np.array([2, 1], dtype=np.uint64))
