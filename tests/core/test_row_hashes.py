"""Equal rows have equal hashes, whatever holds them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from likely.core.columns import Columns
from likely.core.ragged import Ragged
from likely.core.row_hashes import _bits, _combined, row_hashes


def plain(a):
    """The definition: one column after another."""
    return _combined([bits for j in range(a.shape[1]) for bits in _bits(a[:, j])], len(a))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_blocks_of_numbers_hash_as_columns_do(dtype):
    a = (10 * np.random.default_rng(0).normal(size=(10_000, 5))).astype(dtype)
    if a.dtype.kind == "f":
        a[::7, 2], a[::5, 1] = np.nan, -0.0
    np.testing.assert_array_equal(row_hashes(a), plain(a))


def test_one_number_in_two_types_has_one_hash():
    a = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(row_hashes(a), row_hashes(a.astype(np.float32)))
    np.testing.assert_array_equal(row_hashes(np.array([[0.0]])), row_hashes(np.array([[-0.0]])))


def test_sparse_rows_hash_by_what_is_not_zero():
    a = sparse.random(40, 30, 0.1, format="csr", random_state=0)
    stored = a.tocoo()
    shuffled = np.random.default_rng(0).permutation(stored.nnz)
    again = sparse.coo_matrix((stored.data[shuffled], (stored.row[shuffled], stored.col[shuffled])), a.shape)
    zeros = sparse.csr_matrix(a + 0 * a)
    zeros.data[:3] = 0.0
    clean = zeros.copy()
    clean.eliminate_zeros()
    np.testing.assert_array_equal(row_hashes(a), row_hashes(again))
    np.testing.assert_array_equal(row_hashes(zeros), row_hashes(clean))
    dense = {tuple(row) for row in a.toarray()}
    assert len(np.unique(row_hashes(a))) == len(dense)


def test_duplicate_entries_of_a_sparse_matrix_are_added_first():
    twice = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([3, 3]), np.array([0, 2])), (1, 5))
    once = sparse.csr_matrix((np.array([3.0]), np.array([3]), np.array([0, 1])), (1, 5))
    assert row_hashes(twice) == row_hashes(once)


def test_sequences_hash_by_frames_and_their_order():
    h = row_hashes(Ragged.from_list([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0], []]))
    assert h[0] == h[2]
    assert len(np.unique(h)) == 4


def test_parts_of_unlike_kinds_hash_together():
    c = Columns(a=np.array([1, 1, 2]), b=np.array(["x", "x", "x"], object), s=sparse.eye(3, format="csr")[[0, 0, 1]])
    h = row_hashes(c)
    assert h[0] == h[1] != h[2]
