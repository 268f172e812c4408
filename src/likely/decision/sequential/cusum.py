"""CUSUM (Page's test) for change detection, with thresholds for a given false-alarm rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from likely.core import declared
from likely.core.arrays import Array, Index
from likely.core.engine import one_blas_thread
from likely.core.errors import DataError, DomainError, sentence
from likely.core.value import Value
from likely.decision.sequential.run_lengths import lattice_threshold

CELLS = 200, 1200  # cells of the Markov chain for run lengths: the Gaussian table is reproduced to 4 digits
WIDEST = 0.3  # width of a cell, in standard deviations of an increment
LONGEST = 1e12  # larger mean run lengths are dominated by rounding

Distribution = Callable[[Array], Any]  # cumulative distribution function of an increment


@dataclass(frozen=True, eq=False)
class CUSUM(Value):
    """CUSUM test of a change: S_t = max(0, S_{t−1} + z_t) raises an alarm above the threshold.

    z_t is log p(y_t | change) / p(y_t | no change), or anything that is negative on average before the change and
    positive after it. After an alarm the sum is reset to 0.

    Parameters
    ----------
    threshold : float
        An alarm is raised above it.
    total : float, default 0.0
        The sum S_t so far.

    See Also
    --------
    SPRT : Sequential test of two hypotheses.

    References
    ----------
    Page (1954).

    Examples
    --------
    >>> watch = CUSUM.for_shift(1.0, false_alarm_every=930.9)
    >>> round(watch.threshold, 2)  # the textbook's 5 standard deviations
    5.0
    >>> watch.step(2.0).step(3.5).alarm
    True
    """

    threshold: Annotated[float, declared.number(0)]
    total: Annotated[float, declared.statistic_from_0] = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.threshold < np.inf) or not self.total >= 0:
            expected = "the threshold must be positive and finite, the sum not negative"
            raise DomainError(sentence("CUSUM", expected, f"{self.threshold} and {self.total}"))
        self._set(threshold=float(self.threshold), total=float(self.total))

    @classmethod
    def for_shift(cls, shift: float, false_alarm_every: float) -> CUSUM:
        """CUSUM for a mean that rises from 0 to `shift` standard deviations, by `log_ratios(x, shift)`.

        Parameters
        ----------
        shift : float
            Change of the mean, in standard deviations.
        false_alarm_every : float
            Mean number of increments between false alarms.
        """
        if not shift > 0:
            raise DomainError(sentence("CUSUM", "shift must be positive", shift, "change the sign of the data"))
        return cls.for_distribution(lambda z: ndtr((z + shift**2 / 2) / shift), false_alarm_every)

    @classmethod
    def for_draws(cls, increments: ArrayLike, false_alarm_every: float) -> CUSUM:
        """CUSUM with the threshold from increments that were observed, or simulated, without a change.

        If they have few distinct values, run lengths increase in steps: false alarms are as rare as requested, or
        rarer.

        Parameters
        ----------
        increments : array-like (n,)
            Increments without a change.
        false_alarm_every : float
            Mean number of increments between false alarms.

        Examples
        --------
        >>> round(CUSUM.for_draws([-1.0, -1.0, -1.0, 1.5], false_alarm_every=500).threshold, 2)
        7.75
        """
        z = np.asarray(increments, dtype=np.float64).ravel()
        if len(z) < 2 or np.isnan(z).any():
            expected = "two or more increments without a change are needed, all numbers"
            raise DataError(sentence("CUSUM", expected, f"{len(z)}, {int(np.isnan(z).sum())} of them NaN"))
        wanted = _frequency(false_alarm_every)
        _refuse_drift(z)
        once = len(z) / int((z > 0).sum())
        if once >= wanted:
            raise _too_often(wanted, once)
        return cls(lattice_threshold(z, wanted))

    @classmethod
    def for_distribution(cls, distribution: Distribution, false_alarm_every: float) -> CUSUM:
        """CUSUM with the threshold from the distribution of an increment without a change.

        Parameters
        ----------
        distribution : distribution
            Distribution of an increment without a change: of negative mean, with a smooth cdf.
        false_alarm_every : float
            Mean number of increments between false alarms.
        """
        return cls(threshold_for(distribution, false_alarm_every))

    @property
    def alarm(self) -> bool:
        """Whether the sum is above the threshold."""
        return self.total > self.threshold

    def step(self, increment: float) -> CUSUM:
        """The sum after one more increment.

        Parameters
        ----------
        increment : float
            Increment z_t; a missing one adds 0.

        Returns
        -------
        CUSUM
            The new state.
        """
        if np.isnan(increment):
            expected = "an increment must be a number"
            raise DataError(sentence("CUSUM", expected, increment, "pass 0 for a missing observation"))
        before = 0.0 if self.alarm else self.total
        return self.replace(total=max(0.0, before + float(increment)))

    def run(self, increments: ArrayLike) -> Index:
        """Alarms in a series of increments.

        Parameters
        ----------
        increments : array-like (T,)
            Increments z_t; a missing one adds 0.

        Returns
        -------
        ndarray of int
            Indices of the alarms, from 0.
        """
        now, found = self, []
        for t, z in enumerate(np.asarray(increments, dtype=np.float64).tolist()):
            now = now.step(z)
            if now.alarm:
                found.append(t)
        return np.array(found, dtype=np.intp)


def run_length(threshold: float, distribution: Distribution, cells: int | None = None) -> float:
    """Mean run length (ARL): the mean number of increments until an alarm, from a sum of 0.

    The sum is discretized into cells of width w with centers 0, w, …: a Markov chain absorbed above the threshold,
    L = (I − P)⁻¹ 1   (Brook and Evans 1972). Two widths are extrapolated to w = 0, as errors decrease with w².

    >>> two_sided = run_length(5.0, lambda z: ndtr(z + 0.5)) / 2  # Montgomery: 465
    >>> round(two_sided)
    465
    """
    cells = _cells(threshold, distribution) if cells is None else cells
    with one_blas_thread():  # the systems are small: threads would mostly wait for each other
        fine, coarse = _chained(threshold, distribution, cells), _chained(threshold, distribution, cells // 2)
    better = fine + (fine - coarse) / 3
    return better if better >= 1 else fine


def _cells(threshold: float, distribution: Distribution) -> int:
    """The number of cells, such that an increment moves the sum by several."""
    spread = (_quantile(distribution, 0.84) - _quantile(distribution, 0.16)) / 2
    wanted = threshold / (WIDEST * spread) if spread > 0 else 0
    if wanted > CELLS[1]:
        expected = f"the sum must reach its threshold in some {WIDEST * CELLS[1]:.0f} typical steps"
        remedy = "make increments negative on average while nothing has changed, or watch for a larger change"
        raise DomainError(sentence("CUSUM", expected, f"{threshold / spread:.0f}", remedy))
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
    moves[:, 0] = below[cells - np.arange(cells)]  # everything below the first cell's upper edge
    try:
        found = float(np.linalg.solve(np.eye(cells) - moves, np.ones(cells))[0])
    except np.linalg.LinAlgError:  # no alarm at all
        return np.inf
    return found if found >= 1 else np.inf  # dominated by rounding


def threshold_for(distribution: Distribution, false_alarm_every: float) -> float:
    """The threshold with a given mean number of increments between false alarms."""
    wanted = _frequency(false_alarm_every)
    if np.asarray(distribution(np.zeros(1)))[0] >= 1:
        raise _never()
    return _where(lambda h: float(np.log(run_length(h, distribution) / wanted)), wanted)


def _frequency(false_alarm_every: float) -> float:
    wanted = float(false_alarm_every)
    if not 1 < wanted <= LONGEST:
        expected = f"false_alarm_every must lie between 1 and {LONGEST:g}"
        raise DomainError(sentence("CUSUM", expected, false_alarm_every))
    return wanted


def _refuse_drift(z: Array) -> None:
    """Raise an error unless increments have a negative mean and can be positive, without a change."""
    if not z.max() > 0:
        raise _never()
    with np.errstate(invalid="ignore"):
        mean = z.mean()
    if not mean < 0:
        expected = "increments must be negative on average while nothing has changed"
        remedy = "subtract a reference value from each, such as half the relevant change"
        raise DomainError(sentence("CUSUM", expected, f"{mean:.3g}", remedy))


def _never() -> DomainError:
    expected = "some increments must be positive without a change, else no threshold has false alarms"
    return DomainError(sentence("CUSUM", expected, "none", "set a threshold yourself: CUSUM(threshold)"))


def _too_often(wanted: float, once: float) -> DomainError:
    expected = f"false alarms cannot come as often as once in {wanted:g}"
    return DomainError(sentence("CUSUM", expected, f"once in {once:.3g} at most", "ask for fewer"))


def _where(excess: Callable[[float], float], wanted: float) -> float:
    """Solve for the threshold by the false-position method on the log run length, which is nearly linear."""
    low, high = 1e-6, 1.0
    below, above = excess(low), excess(high)
    if below >= 0:
        raise _too_often(wanted, wanted * float(np.exp(below)))
    while above < 0:  # `_cells` raises an error if the threshold is too far
        low, below, high = high, above, 2 * high
        above = excess(high)
    moved = 0
    for _ in range(60):
        middle = low - below * (high - low) / (above - below) if np.isfinite(above) else (low + high) / 2
        found = excess(middle)
        if abs(found) < 1e-9 or high - low < 1e-12 * high:
            return middle
        if found < 0:  # Illinois modification: an end that stays twice is halved
            low, below, above, moved = middle, found, above / 2 if moved < 0 else above, -1
        else:
            high, above, below, moved = middle, found, below / 2 if moved > 0 else below, 1
    return high
