"""Subtraction of sums of other packages: without(a + b, b) is a, or an error where digits are lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

from likely.distributions.downdating import Canceled, without
from likely.extend import AdditiveStats, Array, declared


@dataclass(frozen=True, eq=False)
class Sums(AdditiveStats):
    rows: Annotated[Array, declared.numbers("*", 0)]
    total: Annotated[Array, declared.numbers("* d")]


def sums(x):
    return Sums(np.array(float(len(x))), x.sum(axis=0))


def test_sums_subtract(rng):
    a, b = rng.normal(size=(50, 3)), rng.normal(size=(7, 3))
    rest, known = without(sums(a) + sums(b), sums(b)), sums(a)
    assert rest.rows == 50
    np.testing.assert_allclose(rest.total, known.total, rtol=1e-12, atol=1e-12)


def test_nothing_is_left_of_all(rng):
    x = rng.normal(size=(20, 2))
    rest = without(sums(x), sums(x[::-1]))
    assert rest.rows == 0 and not rest.total.any()


def test_lost_digits_are_an_error():
    small, large = np.array([[1e-9]]), np.array([[1.0]])
    with pytest.raises(Canceled):
        without(sums(small) + sums(large), sums(large))


def test_other_statistics_are_collected_anew():
    with pytest.raises(Canceled):
        without(object(), object())
