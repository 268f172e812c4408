"""Page's test for a change: the evidence for it is added up, and begins again whenever it falls below nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from likely.core.arrays import Array, Index
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, sentence
from likely.core.value import Value
from likely.decision.sequential.run_lengths import lattice_threshold

CELLS = 200, 1200  # of the chain that run lengths are computed by: the Gaussian table is met to 4 digits
WIDEST = 0.3  # of a cell, in standard deviations of an increment
LONGEST = 1e12  # mean run lengths beyond it are lost in rounding

Distribution = Callable[[Array], Any]  # the distribution function of an increment


@dataclass(frozen=True, eq=False)
class Cusum(Value):
    """S_t = max(0, S_{t−1} + z_t) raises an alarm above the threshold   (Page 1954).

    z_t is log p(y_t | change) / p(y_t | no change), or anything that is negative on average before the change and
    positive after it. After an alarm the sum begins again with 0.

    >>> watch = Cusum.for_shift(1.0, false_alarm_every=930.9)
    >>> round(watch.threshold, 2)  # the textbook's 5 standard deviations
    5.0
    >>> watch.step(2.0).step(3.5).alarm
    True
    """

    threshold: float
    total: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.threshold < np.inf) or not self.total >= 0:
            expected = "the threshold must be positive and finite, the sum not negative"
            raise DomainError(sentence("Cusum", expected, f"{self.threshold} and {self.total}"))
        self._set(threshold=float(self.threshold), total=float(self.total))

    @classmethod
    def for_shift(cls, shift: float, false_alarm_every: float) -> Cusum:
        """To watch for a mean that rises from 0 to `shift` standard deviations, by `log_ratios(x, shift)`."""
        if not shift > 0:
            raise DomainError(sentence("Cusum", "shift must be positive", shift, "change the sign of the data"))
        return cls.for_distribution(lambda z: ndtr((z + shift**2 / 2) / shift), false_alarm_every)

    @classmethod
    def for_draws(cls, increments: Any, false_alarm_every: float) -> Cusum:
        """From increments (n,) that were seen, or drawn, while nothing had changed.

        Where they have few values, run lengths rise in steps: false alarms come as rarely as was asked for, or more so.

        >>> round(Cusum.for_draws([-1.0, -1.0, -1.0, 1.5], false_alarm_every=500).threshold, 2)
        7.75
        """
        z = np.asarray(increments, dtype=np.float64).ravel()
        if len(z) < 2 or np.isnan(z).any():
            expected = "two or more increments without a change are needed, all numbers"
            raise DataError(sentence("Cusum", expected, f"{len(z)}, {int(np.isnan(z).sum())} of them NaN"))
        wanted = _frequency(false_alarm_every)
        _refuse_drift(z)
        once = len(z) / int((z > 0).sum())
        if once >= wanted:
            raise _too_often(wanted, once)
        return cls(lattice_threshold(z, wanted))

    @classmethod
    def for_distribution(cls, distribution: Distribution, false_alarm_every: float) -> Cusum:
        """From the distribution function, a smooth one, of an increment while nothing has changed; its mean below 0."""
        return cls(threshold_for(distribution, false_alarm_every))

    @property
    def alarm(self) -> bool:
        """Whether the sum is above the threshold."""
        return self.total > self.threshold

    def step(self, increment: float) -> Cusum:
        """The sum after one more increment; what is not observed adds 0."""
        if np.isnan(increment):
            expected = "an increment must be a number"
            raise DataError(sentence("Cusum", expected, increment, "pass 0 for what was not observed"))
        before = 0.0 if self.alarm else self.total
        return self.replace(total=max(0.0, before + float(increment)))

    def run(self, increments: Any) -> Index:
        """Where a series of increments (T,) raises alarms: their places, from 0."""
        now, found = self, []
        for t, z in enumerate(np.asarray(increments, dtype=np.float64).tolist()):
            now = now.step(z)
            if now.alarm:
                found.append(t)
        return np.array(found, dtype=np.intp)


def run_length(threshold: float, distribution: Distribution, cells: int | None = None) -> float:
    """The mean number of increments until an alarm, from a sum of 0.

    The sum is followed through cells of width w with centers 0, w, …: a Markov chain that ends above the threshold,
    L = (I − P)⁻¹ 1   (Brook and Evans 1972). Two widths give what a vanishing one would, as errors fall with w².

    >>> two_sided = run_length(5.0, lambda z: ndtr(z + 0.5)) / 2  # Montgomery: 465
    >>> round(two_sided)
    465
    """
    cells = _cells(threshold, distribution) if cells is None else cells
    with one_blas_thread():  # the systems are small: two threads would mostly wait for each other
        fine, coarse = _chained(threshold, distribution, cells), _chained(threshold, distribution, cells // 2)
    better = fine + (fine - coarse) / 3
    return better if better >= 1 else fine


def _cells(threshold: float, distribution: Distribution) -> int:
    """So many cells that an increment moves the sum by several."""
    spread = (_quantile(distribution, 0.84) - _quantile(distribution, 0.16)) / 2
    wanted = threshold / (WIDEST * spread) if spread > 0 else 0
    if wanted > CELLS[1]:
        expected = f"the sum must reach its threshold in some {WIDEST * CELLS[1]:.0f} typical steps"
        remedy = "make increments negative on average while nothing has changed, or watch for a larger change"
        raise DomainError(sentence("Cusum", expected, f"{threshold / spread:.0f}", remedy))
    return max(CELLS[0], int(wanted))


def _quantile(distribution: Distribution, share: float) -> float:
    low, high = -1e6, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if distribution(np.array([middle]))[0] < share else (low, middle)
    return high


def _chained(threshold: float, distribution: Distribution, cells: int) -> float:
    w = 2 * threshold / (2 * cells - 1)
    edges: Array = w * (np.arange(-cells, cells, dtype=np.float64) + 0.5)
    below = np.asarray(distribution(edges), dtype=np.float64)  # P(increment ≤ edge)
    moves = np.diff(below)[np.arange(cells) - np.arange(cells)[:, None] + cells - 1]
    moves[:, 0] = below[cells - np.arange(cells)]  # whatever falls below the first cell's upper edge
    try:
        found = float(np.linalg.solve(np.eye(cells) - moves, np.ones(cells))[0])
    except np.linalg.LinAlgError:  # no alarm at all
        return np.inf
    return found if found >= 1 else np.inf  # lost in rounding


def threshold_for(distribution: Distribution, false_alarm_every: float) -> float:
    """The threshold at which alarms come once in so many increments, on average, while nothing has changed."""
    wanted = _frequency(false_alarm_every)
    if np.asarray(distribution(np.zeros(1)))[0] >= 1:
        raise _never()
    return _where(lambda h: float(np.log(run_length(h, distribution) / wanted)), wanted)


def _frequency(false_alarm_every: float) -> float:
    wanted = float(false_alarm_every)
    if not 1 < wanted <= LONGEST:
        expected = f"false_alarm_every must lie between 1 and {LONGEST:g}"
        raise DomainError(sentence("Cusum", expected, false_alarm_every))
    return wanted


def _refuse_drift(z: Array) -> None:
    """Without a change the sum must tend to 0, and yet be able to rise."""
    if not z.max() > 0:
        raise _never()
    with np.errstate(invalid="ignore"):
        mean = z.mean()
    if not mean < 0:
        expected = "increments must be negative on average while nothing has changed"
        remedy = "take an allowance off each, such as half the change that matters"
        raise DomainError(sentence("Cusum", expected, f"{mean:.3g}", remedy))


def _never() -> DomainError:
    expected = "some increments must be above 0 while nothing has changed, else no threshold has false alarms"
    return DomainError(sentence("Cusum", expected, "none", "set a threshold yourself: Cusum(threshold)"))


def _too_often(wanted: float, once: float) -> DomainError:
    expected = f"false alarms cannot come as often as once in {wanted:g}"
    return DomainError(sentence("Cusum", expected, f"once in {once:.3g} at most", "ask for fewer"))


def _where(excess: Callable[[float], float], wanted: float) -> float:
    """Where the logarithm of a run length, which rises almost as a line, is what it should be (false position)."""
    low, high = 1e-6, 1.0
    below, above = excess(low), excess(high)
    if below >= 0:
        raise _too_often(wanted, wanted * float(np.exp(below)))
    while above < 0:  # refused by `_cells`, where it would be too long a way
        low, below, high = high, above, 2 * high
        above = excess(high)
    moved = 0
    for _ in range(60):
        middle = low - below * (high - low) / (above - below) if np.isfinite(above) else (low + high) / 2
        found = excess(middle)
        if abs(found) < 1e-9 or high - low < 1e-12 * high:
            return middle
        if found < 0:  # an end that stays twice counts half, else it would stay for good (Illinois)
            low, below, above, moved = middle, found, above / 2 if moved < 0 else above, -1
        else:
            high, above, below, moved = middle, found, below / 2 if moved > 0 else below, 1
    return high
