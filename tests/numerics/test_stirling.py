"""Stirling numbers against their recurrence, against enumeration, and against known values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely.core.errors import DomainError
from likely.numerics.stirling import log_stirling2


def stirling2(n, k):
    """1/k! Σ_j (−1)^(k−j) C(k, j) jⁿ, an exact integer."""
    return sum((-1) ** (k - j) * math.comb(k, j) * j**n for j in range(k + 1)) // math.factorial(k)


def partitions(n):
    """All clusterings of n things, as labels numbered by first use."""
    found = [[]]
    for _ in range(n):
        found = [[*p, k] for p in found for k in range(max(p, default=-1) + 2)]
    return found


@pytest.mark.parametrize("n", range(9))
def test_enumeration(n):
    sizes = [max(p, default=-1) + 1 for p in partitions(n)]
    found = np.exp([log_stirling2(n, k) for k in range(n + 1)])
    assert found == pytest.approx([sizes.count(k) for k in range(n + 1)], rel=1e-12)


def test_known_values():
    known = {(100, 2): 2**99 - 1, (10, 5): 42525, (20, 10): 5917584964655, (50, 49): math.comb(50, 2)}  # Ney 6.2
    for (n, k), count in known.items():
        assert log_stirling2(n, k) == pytest.approx(math.log(count), rel=1e-13)


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


@pytest.mark.slow
def test_recurrence():
    n = 400  # S(n, k) = k S(n − 1, k) + S(n − 1, k − 1)
    for k in range(1, n + 1):
        want = np.logaddexp(math.log(k) + log_stirling2(n - 1, k), log_stirling2(n - 1, k - 1))
        assert log_stirling2(n, k) == pytest.approx(want, rel=1e-12)
    assert np.isfinite(log_stirling2(10**7, 10**3))


def test_nothing_and_too_much():
    assert log_stirling2(3, 4) == -np.inf and log_stirling2(3, 0) == -np.inf and log_stirling2(0, 0) == 0.0


@pytest.mark.parametrize("bad", [-1, 2.0, True, "3"])
def test_only_integers(bad):
    with pytest.raises(DomainError, match="integer"):
        log_stirling2(bad, 2)
    with pytest.raises(DomainError, match="integer"):
        log_stirling2(2, bad)


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
