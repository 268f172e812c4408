"""Sequences of unequal length as one long array."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely import Ragged, ShapeError


def some(lengths, width=2):
    values = np.arange(sum(lengths) * width, dtype=float).reshape(-1, width)
    return Ragged(values, np.cumsum([0, *lengths]))


@given(st.lists(st.integers(0, 4), max_size=8))
def test_a_list_goes_in_and_comes_out(lengths):
    sequences = [np.full((n, 2), float(i)) for i, n in enumerate(lengths)]
    r = Ragged.from_list(sequences)
    assert len(r) == len(lengths) and r.lengths.tolist() == lengths
    assert all(np.array_equal(a, b) for a, b in zip(r, sequences, strict=True))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_indexing_is_that_of_a_list(lengths, data):
    r, n = some(lengths), len(lengths)
    whole = list(r)
    i = data.draw(st.integers(-n, n - 1))
    assert np.array_equal(r[i], whole[i])
    which = data.draw(st.slices(n))
    assert_same(r[which], whole[which])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert_same(r[mask], [s for s, m in zip(whole, mask, strict=True) if m])
    picks = data.draw(st.lists(st.integers(-n, n - 1), max_size=6))
    assert_same(r[np.array(picks, int)], [whole[j] for j in picks])


def assert_same(r, sequences):
    assert isinstance(r, Ragged) and len(r) == len(sequences)
    assert all(np.array_equal(a, b) for a, b in zip(r, sequences, strict=True))


def test_a_slice_shares_memory_and_everything_is_read_only():
    r = some([2, 3, 1])
    assert np.shares_memory(r[1:].values, r.values)
    assert not r.values.flags.writeable and not r.offsets.flags.writeable


def test_the_givers_array_stays_writable():
    values = np.zeros((3, 2))
    Ragged(values, [0, 3])
    values[0] = 1.0


def test_frames_keep_their_kind():
    r = Ragged.from_list([np.array([1, 2], np.int8), np.array([3], np.int8)])
    assert r.values.dtype == np.int8 and r[1].tolist() == [3]


def test_a_slice_pickles_only_its_own_frames():
    r = some([1000, 2])
    again = pickle.loads(pickle.dumps(r[1:]))
    assert np.array_equal(again[0], r[1]) and len(pickle.dumps(r[1:])) < 1000


def test_index_past_the_end():
    with pytest.raises(IndexError):
        some([1, 2])[2]


@pytest.mark.parametrize(
    ("values", "offsets"),
    [
        (np.zeros(3), [0, 2]),
        (np.zeros(3), [1, 3]),
        (np.zeros(3), [0, 2, 1, 3]),
        (np.zeros(3), []),
        (np.zeros(3), [[0, 3]]),
        (np.float64(1.0), [0, 1]),
    ],
)
def test_offsets_must_fit(values, offsets):
    with pytest.raises(ShapeError, match="Ragged: offsets must"):
        Ragged(values, offsets)


@pytest.mark.parametrize("sequences", [[np.zeros((2, 2)), np.zeros((2, 3))], [np.zeros(2), np.zeros((2, 1))], [1.0]])
def test_sequences_must_have_frames_of_one_shape(sequences):
    with pytest.raises(ShapeError, match="Ragged: sequence"):
        Ragged.from_list(sequences)
