"""Stirling numbers against their recurrence, against enumeration, and against known values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely.core.errors import DomainError
from likely.numerics.stirling import bell, log_bell, log_stirling2, stirling2


def partitions(n):
    """All clusterings of n things, as labels numbered by first use."""
    found = [[]]
    for _ in range(n):
        found = [[*p, k] for p in found for k in range(max(p, default=-1) + 2)]
    return found


def test_recurrence():
    for n in range(1, 40):
        for k in range(1, n + 1):
            assert stirling2(n, k) == k * stirling2(n - 1, k) + stirling2(n - 1, k - 1)


@pytest.mark.parametrize("n", range(9))
def test_enumeration(n):
    sizes = [max(p, default=-1) + 1 for p in partitions(n)]
    assert [stirling2(n, k) for k in range(n + 1)] == [sizes.count(k) for k in range(n + 1)]
    assert bell(n) == len(sizes)


def test_known_values():
    assert stirling2(100, 2) == 2**99 - 1  # Ney 6.2: 2^(N−1) − 1
    assert stirling2(10, 5) == 42525 and stirling2(20, 10) == 5917584964655
    assert stirling2(50, 49) == math.comb(50, 2)
    assert stirling2(0, 0) == 1 and stirling2(5, 0) == 0 and stirling2(3, 7) == 0
    assert bell(25) == 4638590332229999353


@pytest.mark.parametrize("n", [2, 3, 10, 57, 300])
def test_logs_of_exact_numbers(n):
    for k in {1, 2, 3, n // 3, n // 2, n - 2, n - 1, n} - {0, -1}:
        if stirling2(n, k):
            assert log_stirling2(n, k) == pytest.approx(math.log(stirling2(n, k)), rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("k", [2, 10, 9_990, 9_999])
def test_logs_for_ten_thousand_things(k):
    n = 10_000
    assert log_stirling2(n, k) == pytest.approx(math.log(exact(n, k)), rel=1e-12, abs=1e-9)


def exact(n, k):
    """S(n, k), counted from the nearer end: S(n, n − j) is a sum over few terms for small j."""
    if k < 100:
        return stirling2(n, k)
    row = [1] + [0] * (
        n - k
    )  # S(m, m − j) for j = 0, 1, …: S(m, m − j) = (m − j) S(m − 1, m − j) + S(m − 1, m − 1 − j)
    for m in range(1, n + 1):
        row = [row[0]] + [(m - j) * row[j - 1] + row[j] if m > j else 0 for j in range(1, n - k + 1)]
    return row[n - k]


def test_logs_add_up_to_bell():
    n = 400
    assert np.logaddexp.reduce([log_stirling2(n, k) for k in range(1, n + 1)]) == pytest.approx(log_bell(n), rel=1e-13)


def test_logs_of_bell_numbers():
    for n in (0, 1, 2, 10, 150, 400):
        assert log_bell(n) == pytest.approx(math.log(bell(n)), rel=1e-13, abs=1e-14)
    assert np.isfinite(log_bell(10**5)) and np.isfinite(log_stirling2(10**7, 10**3))


def test_nothing_and_too_much():
    assert log_stirling2(3, 4) == -np.inf and log_stirling2(3, 0) == -np.inf and log_stirling2(0, 0) == 0.0


@pytest.mark.parametrize("f", [stirling2, log_stirling2])
@pytest.mark.parametrize("bad", [-1, 2.0, True, "3"])
def test_only_whole_numbers(f, bad):
    with pytest.raises(DomainError, match="whole number"):
        f(bad, 2)
    with pytest.raises(DomainError, match="whole number"):
        f(2, bad)


def all_but(n, j):
    """S(n, n − j) = Σ_i C(n, i) B(i, i − j), B(i, m) the ways to part i things into m clusters of at least two."""
    counts = {(0, 0): 1}
    for i in range(1, 2 * j + 1):
        for m in range(1, i // 2 + 1):
            counts[i, m] = m * counts.get((i - 1, m), 0) + (i - 1) * counts.get((i - 2, m - 1), 0)
    return sum(math.comb(n, i) * counts.get((i, i - j), 0) for i in range(j, 2 * j + 1))


@pytest.mark.parametrize("n", [70, 1_000, 10**6, 10**8, 10**12])
@pytest.mark.parametrize("j", [1, 2, 3, 20, 64, 65, 66])
def test_logs_where_nearly_all_are_single(n, j):
    assert all_but(12, 5) == stirling2(12, 7)
    assert log_stirling2(n, n - j) == pytest.approx(math.log(all_but(n, j)), rel=2e-15)
