"""Blocks cover the rows once, in order, and never cross a part."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from likely import DataError, Ragged, ShapeError
from likely.core import Block, Blocks, Columns
from likely.core.blocks import BLOCKS, ROWS


@pytest.mark.slow
@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 4))
def test_blocks_cover_the_rows_in_order(n, rows, blocks):
    data = Blocks.of(np.arange(n), rows=rows, blocks=blocks)
    sizes = [[len(block) for block in part] for part in data.parts]
    flat = [size for part in sizes for size in part]
    assert [int(i) for block in data for i in block.x] == list(range(n))
    assert all(size == rows for size in flat[:-1]) and (not n or 0 < flat[-1] <= rows)
    assert all(len(part) == blocks for part in sizes[:-1]) and (not n or 0 < len(sizes[-1]) <= blocks)
    assert [block.start for block in data] == list(range(0, n, rows))


@given(st.lists(st.integers(0, 12), max_size=20), st.integers(1, 9), st.integers(1, 4))
def test_ragged_blocks_hold_whole_sequences_of_about_so_many_frames(lengths, rows, blocks):
    values = np.arange(sum(lengths))
    data = Blocks.of(Ragged(values, np.cumsum([0, *lengths])), rows=rows, blocks=blocks)
    held = [block.x.lengths.tolist() for block in data]
    assert [n for block in held for n in block] == lengths
    assert [int(v) for block in data for v in block.x.values] == list(range(sum(lengths)))
    assert all(block for block in held)
    # a block ends with the sequence that reaches the next multiple of `rows` frames
    assert all(sum(block[:-1]) < rows for block in held)
    assert all(len(list(part)) <= blocks for part in data.parts)


def test_the_usual_sizes():
    data = Blocks.of(np.zeros((ROWS * BLOCKS + 1, 1)))
    assert [len(list(part)) for part in data.parts] == [BLOCKS, 1]


def test_weight_given_and_label_are_cut_with_the_rows(rng):
    x, w, given_, labels = np.arange(10), rng.random(10), rng.random((10, 3)), np.arange(10) % 3
    blocks = list(Blocks.of(x, w, log_mask=given_, labels=labels, rows=4))
    for name, whole in (("weight", w), ("log_mask", given_), ("labels", labels)):
        assert np.array_equal(np.concatenate([getattr(b, name) for b in blocks]), whole)


def test_data_can_be_passed_over_again():
    data = Blocks.of(np.arange(5), rows=2)
    assert [b.x.tolist() for b in data] == [b.x.tolist() for b in data] == [[0, 1], [2, 3], [4]]


def test_blocks_pass_through():
    data = Blocks.of(np.arange(5))
    assert Blocks.of(data) is data
    with pytest.raises(DataError, match="carry their own weight"):
        Blocks.of(data, np.ones(5))


def test_rows_are_not_copied():
    x = np.zeros((10, 2))
    assert all(np.shares_memory(block.x, x) for block in Blocks.of(x, rows=3))


@pytest.mark.parametrize(
    ("x", "kind", "n"),
    [
        ([[1, 2], [3, 4]], np.ndarray, 2),
        ((1.0, 2.0), np.ndarray, 2),
        ([np.zeros(2), np.zeros(2)], np.ndarray, 2),
        ([[1, 2, 3], [4]], Ragged, 2),
        ([np.zeros((3, 2)), np.zeros((1, 2))], Ragged, 2),
        ([np.zeros((3, 2)), np.zeros((3, 2))], Ragged, 2),
        (["a", "bc"], np.ndarray, 2),
        ({"a": [1, 2, 3], "b": [4, 5, 6]}, Columns, 3),
        (Columns(a=[1, 2, 3]), Columns, 3),
        (scipy.sparse.csr_array(np.eye(4)), scipy.sparse.csr_array, 4),
    ],
)
def test_what_has_rows_becomes_blocks_of_rows(x, kind, n):
    (block,) = Blocks.of(x)
    assert isinstance(block.x, kind) and len(block) == n


def test_parts_can_be_read_when_asked_for():
    reads = []

    def reader(i):
        def read():
            reads.append(i)
            return [Block(np.full(2, i))]

        return read

    data = Blocks.read([reader(0), reader(1)])
    assert reads == [] and [b.x.tolist() for b in data] == [[0, 0], [1, 1]]
    assert data.first.x.tolist() == [0, 0] and reads == [0, 1, 0]


def test_the_first_block_with_rows():
    data = Blocks([[Block(np.zeros((0, 2)))], [Block(np.ones((1, 2)))]])
    assert data.first.x.tolist() == [[1, 1]]


@pytest.mark.parametrize("x", [np.zeros((0, 2)), [], Ragged.from_list([]), Columns(a=[])])
def test_no_rows_are_no_blocks(x):
    data = Blocks.of(x)
    assert list(data) == [] and len(data.parts) == 1
    with pytest.raises(DataError, match="at least one row is needed, got 0 rows"):
        _ = data.first


@pytest.mark.parametrize("make", [lambda: iter([1, 2]), lambda: (i for i in range(3)), lambda: map(int, "12")])
def test_a_stream_is_refused_and_pointed_to_online(make):
    for build in (Blocks, Blocks.of):
        with pytest.raises(DataError, match=r"re-iterable.*use lk\.online_em for a stream"):
            build(make())


@pytest.mark.parametrize("name", ["weight", "log_mask", "labels"])
def test_what_goes_with_the_rows_has_as_many(name):
    with pytest.raises(ShapeError, match=r"must have one entry per row \(3\)"):
        Blocks.of(np.zeros((3, 1)), **{name: np.zeros(2)})


@pytest.mark.parametrize(("x", "error"), [(3.0, ShapeError), ([[1, 2], 3], DataError)])
def test_what_has_no_rows_is_refused(x, error):
    with pytest.raises(error):
        Blocks.of(x)
