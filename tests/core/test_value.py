"""A value never changes: arrays are read-only, also after a copy or a pickle."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass
from functools import cached_property

import numpy as np
import pytest

from likely.core.value import Value, derived, fill_cache


@dataclass(frozen=True, eq=False)
class Pair(Value):
    a: np.ndarray
    b: str = "b"

    def __post_init__(self):
        self._set(a=np.array(self.a, float))

    @cached_property
    def total(self):
        return float(self.a.sum())


@dataclass(frozen=True, eq=False)
class Nested(Value):
    inner: Pair
    scale: float = 1.0


COPIES = {"pickle": lambda v: pickle.loads(pickle.dumps(v)), "deepcopy": copy.deepcopy, "copy": copy.copy}


@pytest.mark.parametrize("how", COPIES)
def test_copies_keep_bits_and_stay_read_only(how, rng):
    value = Nested(Pair(rng.standard_normal(5), "x"), 2.5)
    again = COPIES[how](value)
    assert type(again) is Nested and again.scale == 2.5 and again.inner.b == "x"
    assert again.inner.a.tobytes() == value.inner.a.tobytes()
    assert not again.inner.a.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        again.inner.a[0] = 1.0


def test_fields_cannot_be_set():
    with pytest.raises(FrozenInstanceError):
        Pair([1.0]).b = "other"


def test_the_constructor_does_not_freeze_what_it_was_given():
    mine = np.ones(3)
    value = Pair(mine)
    mine[0] = 7.0
    assert value.a.tolist() == [1.0, 1.0, 1.0]


def test_trusted_looks_at_nothing_and_freezes():
    value = Pair.trusted(a=np.arange(3), b=5)
    assert value.b == 5 and value.a.dtype.kind == "i" and not value.a.flags.writeable


def test_replace_exchanges_some_parts():
    value = Pair([1.0, 2.0])
    other = value.replace(b="c")
    assert other.b == "c" and other.a is value.a and value.b == "b"


def test_a_copy_forgets_what_was_cached():
    value = Pair([1.0])
    value.__dict__["cached"] = 1
    assert "cached" not in pickle.loads(pickle.dumps(value)).__dict__


def test_values_are_compared_and_hashed_by_identity():
    a, b = Pair([1.0]), Pair([1.0])
    assert a == a and a != b and len({a, b}) == 2


def test_repr_is_short_for_large_arrays():
    assert repr(Pair([1.0, 0.12345678])) == "Pair(a=[1.    , 0.1235])"  # b is as usual
    assert repr(Pair(np.zeros((20, 3)), "c")) == "Pair(a=<20×3 float64>, b='c')"


def test_caches_are_declared_and_end_with_the_value():
    value = fill_cache(Pair([1.0, 2.0]), total=3.0)
    assert value.total == 3.0
    assert fill_cache(value, total=5.0).replace(b="c").total == 3.0  # a copy starts without caches
    assert all(make(value).total == 3.0 for make in COPIES.values())
    with pytest.raises(TypeError, match="Pair declares no cached property 'sum'"):
        fill_cache(value, sum=1.0)
    with pytest.raises(TypeError, match="declares no cached property 'a'"):
        fill_cache(value, a=np.zeros(2))  # a field is no cache


def test_what_is_derived_is_made_once_per_value():
    made = []
    value = Pair([1.0])
    assert derived(value, lambda v: v.a[0]) == 1.0

    def counted(v):
        made.append(v)
        return None

    assert derived(value, counted) is None and derived(value, counted) is None and made == [value]
    derived(value.replace(b="c"), counted)
    assert len(made) == 2
