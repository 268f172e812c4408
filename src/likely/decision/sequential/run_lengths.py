"""Run lengths of CUSUM from samples of increments, by a Markov chain on a lattice."""

from __future__ import annotations

import numpy as np

from likely.core.arrays import Array
from likely.core.engine import one_blas_thread
from likely.core.errors import DomainError, sentence

COARSE, FINE, MOST = 100, 600, 1200  # lattice points between 0 and the threshold
WIDEST = 0.3  # lattice spacing, in standard deviations of an increment
FEW, MOST_STEPS = 200, 1e5  # maximum number of distinct values with a common unit, and of units in the largest


def lattice_threshold(draws: Array, wanted: float) -> float:
    """The smallest threshold with a mean run length of at least `wanted` increments between false alarms.

    Each increment is distributed over the two neighboring lattice points so that its mean is preserved, and the Markov
    chain is solved, L = (I − P)⁻¹ 1. If all increments are multiples of one unit this is exact; the mean run length
    then increases in steps, and is at least the requested one.

    >>> round(lattice_threshold(np.repeat([-1.0, 1.5], [3, 1]), 500.0), 2)  # 559.7 increments; 415.3 below 7.5
    7.75
    """
    with one_blas_thread():
        about = _about(draws, wanted)
        unit = common_unit(draws)
        return _least(draws, wanted, unit if unit and about <= unit * MOST else about / _points(draws, about))


def _about(draws: Array, wanted: float) -> float:
    """An approximate threshold, to a few percent."""
    low = high = float(np.abs(draws[np.isfinite(draws)]).max()) / 100
    while _coarse(draws, high) < wanted:
        low, high = high, 2 * high
        _points(draws, high)
    while high > 1.01 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if _coarse(draws, middle) < wanted else (low, middle)
    return high


def _coarse(draws: Array, threshold: float) -> float:
    return mean_run(_shares(draws, threshold / COARSE, COARSE), COARSE)


def _points(draws: Array, threshold: float) -> int:
    """The number of points, such that an increment moves the sum by several."""
    low, high = np.quantile(np.clip(draws, -threshold, threshold), [0.16, 0.84])
    spread = max((high - low) / 2, float(np.std(np.clip(draws, -threshold, threshold))))
    wanted = threshold / (WIDEST * spread)
    if wanted > MOST:
        expected = f"the sum must reach its threshold in some {WIDEST * MOST:.0f} typical steps"
        remedy = "make increments more negative while nothing has changed, or watch for a larger change"
        raise DomainError(sentence("CUSUM", expected, f"{threshold / spread:.0f}", remedy))
    return max(FINE, int(wanted))


def _least(draws: Array, wanted: float, width: float) -> float:
    """Half a step above the smallest point with a sufficient mean run length; by bisection, as it is monotone."""
    low, high = -1, 1
    while _run(draws, width, high) < wanted:
        low, high = high, 2 * high
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _run(draws, width, middle) < wanted else (low, middle)
    return (high + 0.5) * width


def _run(draws: Array, width: float, last: int) -> float:
    return mean_run(_shares(draws, width, last), last)


def _shares(draws: Array, width: float, last: int) -> Array:
    """P(an increment is k points), k = −last − 1 … last + 1; larger steps end at 0, or in an alarm."""
    most = last + 1
    at = np.clip(draws / width, -most, most)
    below = np.floor(at + 1e-6)
    above = np.maximum(at - below, 0.0)
    k = (below + most).astype(np.intp)
    size = 2 * most + 2
    return (np.bincount(k, 1 - above, size) + np.bincount(k + 1, above, size))[:-1] / len(draws)


def mean_run(shares: Array, last: int) -> float:
    """Mean number of increments until a sum on 0 … last, started and reflected at 0, exceeds `last`.

    >>> mean_run(np.array([0.5, 0.0, 0.5]), 0)  # up or down with a coin: two throws until the first up
    2.0
    """
    states = np.arange(last + 1)
    moves = shares[states - states[:, None] + last + 1]
    moves[:, 0] = np.cumsum(shares)[last + 1 - states]  # down to 0, or below
    try:
        found = float(np.linalg.solve(np.eye(last + 1) - moves, np.ones(last + 1))[0])
    except np.linalg.LinAlgError:  # no alarm at all
        return np.inf
    return found if found >= 1 else np.inf  # dominated by rounding


def common_unit(draws: Array) -> float:
    """The largest number of which all increments are multiples, to six digits; 0 if there is none.

    >>> round(common_unit(np.array([-0.1, 3.0, 0.25])), 6), common_unit(np.array([1.0, 2.0**0.5]))
    (0.05, 0.0)
    """
    values = np.unique(np.abs(draws[np.isfinite(draws)]))
    values = values[values > 0]
    if not 0 < len(values) <= FEW:
        return 0.0
    unit = 0.0
    for value in values.tolist():
        unit = _gcd(value, unit, 1e-9 * float(values[-1]))
    steps = values / unit
    whole = np.abs(steps - np.round(steps)) < 1e-6 * np.maximum(steps, 1)
    return unit if steps[-1] <= MOST_STEPS and whole.all() else 0.0


def _gcd(a: float, b: float, least: float) -> float:
    """Euclid's algorithm; remainders below `least` are rounding."""
    while b > least:
        a, b = b, abs(a - b * round(a / b))
    return a
