"""Sequential probability ratio test (SPRT, Wald)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.value import Value

OVERSHOOT = 0.5825971579390107  # −ζ(½)/√(2π): mean overshoot of a Gaussian random walk, in standard deviations


class Decided(NamedTuple):
    """Results of a sequential test on n series.

    Parameters
    ----------
    verdict : ndarray of int (n,)
        The hypothesis that is decided for, 0 or 1; −1 is none yet.
    n_observations : ndarray of int (n,)
        Number of observations until the decision.
    """

    verdict: Index
    n_observations: Index


class Operating(NamedTuple):
    """Operating characteristics of a sequential test.

    Parameters
    ----------
    power : float
        Probability of deciding for 1.
    size : float
        Expected number of observations.
    """

    power: float
    size: float


@dataclass(frozen=True, eq=False)
class SPRT(Value):
    """Sequential probability ratio test of two hypotheses.

    The log-likelihood ratio S_t = Σ log p₁(y_t | all before) / p₀(y_t | all before) decides for 1 above
    log (1 − β)/α, and for 0 below log β/(1 − α). Deciding for 1 where 0 is true has a probability of at most
    α/(1 − β), the other mistake of at most β/(1 − α); together they are at most α + β. No other test with these
    errors takes fewer observations on average. `step` returns the test after one more increment; a decision is
    final.

    Parameters
    ----------
    alpha : float, default 0.01
        Probability α of deciding for 1 where 0 is true.
    beta : float, default 0.01
        Probability β of deciding for 0 where 1 is true.
    total : float, default 0.0
        The log-likelihood ratio so far.
    n_observations : int, default 0
        Number of increments so far.

    See Also
    --------
    CUSUM : Test of a change at an unknown time.

    References
    ----------
    Wald (1945); Siegmund (1985), Sequential Analysis.

    Examples
    --------
    >>> test = SPRT(alpha=0.05, beta=0.1)
    >>> [round(limit, 3) for limit in test.thresholds]
    [-2.251, 2.89]
    >>> test.step(1.5).verdict, test.step(1.5).step(1.5).verdict
    (None, 1)
    """

    alpha: Annotated[float, declared.number(0)] = 0.01  # deciding for 1 where 0 is true
    beta: Annotated[float, declared.number(0)] = 0.01  # deciding for 0 where 1 is true
    total: Annotated[float, declared.statistic] = 0.0  # the log-likelihood ratio so far
    n_observations: Annotated[int, declared.count] = 0  # number of increments so far

    def __post_init__(self) -> None:
        if not (0 < self.alpha and 0 < self.beta and self.alpha + self.beta < 1):
            expected = "alpha and beta must be positive and sum to less than 1"
            raise DomainError(sentence("SPRT", expected, f"{self.alpha} and {self.beta}"))
        if np.isnan(self.total) or self.n_observations < 0:
            raise DomainError(sentence("SPRT", "total and n_observations must be numbers", f"{self.total}"))
        self._set(
            alpha=float(self.alpha),
            beta=float(self.beta),
            total=float(self.total),
            n_observations=int(self.n_observations),
        )

    @property
    def thresholds(self) -> tuple[float, float]:
        """The thresholds for deciding 0 and for deciding 1."""
        return float(np.log(self.beta / (1 - self.alpha))), float(np.log((1 - self.beta) / self.alpha))

    @property
    def verdict(self) -> int | None:
        """0, 1, or None as long as more observations are needed."""
        low, high = self.thresholds
        return 1 if self.total >= high else 0 if self.total <= low else None

    def step(self, increment: float) -> SPRT:
        """The test after one more observation.

        Parameters
        ----------
        increment : float
            Log-likelihood ratio log p₁(y)/p₀(y) of the observation; a missing one adds 0.

        Returns
        -------
        SPRT
            The new state.
        """
        if np.isnan(increment):
            expected = "an increment must be a number"
            raise DataError(sentence("SPRT", expected, increment, "pass 0 for what was not observed"))
        if self.verdict is not None:
            return self
        return self.replace(total=self.total + float(increment), n_observations=self.n_observations + 1)

    def run(self, increments: ArrayLike) -> Decided:
        """Results of the test on series of increments, from its present state.

        Parameters
        ----------
        increments : array-like (n, T) or (T,)
            Log-likelihood ratios log p₁(y)/p₀(y); a missing one adds 0.

        Returns
        -------
        Decided
            Decision and number of observations of each series.
        """
        z = _series(increments)
        low, high = self.thresholds
        with np.errstate(over="ignore", invalid="ignore"):  # ∞ − ∞: after the decision, not used
            walk = np.cumsum(np.concatenate([np.full((len(z), 1), self.total), z], axis=1), axis=1)
        over = (walk >= high) | (walk <= low)
        first = np.where(over.any(axis=1), over.argmax(axis=1), walk.shape[1] - 1)  # 0: it had decided before
        ended = walk[np.arange(len(walk)), first]
        verdict = np.where(ended >= high, 1, np.where(ended <= low, 0, -1))
        return Decided(verdict.astype(np.intp), (self.n_observations + first).astype(np.intp))

    def operating(self, shift: float, truth: float = 0.0) -> Operating:
        """Operating characteristics for N(0, 1) against N(shift, 1).

        With h = 1 − 2·truth and limits a < 0 < b extended by 0.583·shift, P(1) = (1 − e^{ha})/(e^{hb} − e^{ha}); where
        it stops, the walk is (0.583 + drift/4)·shift beyond its limits, and E[n] = (P(1) b + P(0) a)/E[increment]
        (Wald 1945; Siegmund 1985).

        Parameters
        ----------
        shift : float
            Difference of the means of the two hypotheses.
        truth : float, default 0.0
            The true mean, in units of `shift`.

        Returns
        -------
        Operating
            Probability of deciding for 1, and mean number of observations.

        Examples
        --------
        >>> test = SPRT(0.05, 0.05)
        >>> [round(float(x), 3) for x in test.operating(0.5, truth=0.0)]
        [0.038, 24.158]
        """
        if not shift > 0:
            raise DomainError(sentence("SPRT", "shift must be positive", shift, "change the sign of the data"))
        low, high = self.thresholds
        a, b = low - OVERSHOOT * shift, high + OVERSHOOT * shift
        h = 1 - 2 * truth
        if abs(h) < 1e-9:
            return Operating(float(-a / (b - a)), float(-a * b / shift**2))
        power = float(np.expm1(h * a) / (np.expm1(h * a) - np.expm1(h * b)))
        further = abs(h) * shift / 2 / 4 * shift
        reached = power * (b + further) + (1 - power) * (a - further)
        return Operating(power, float(reached / (-h * shift**2 / 2)))


def _series(increments: Any) -> Array:
    """Increments as (n, T); one series is n = 1."""
    try:
        z = np.asarray(increments, dtype=np.float64)
    except (TypeError, ValueError) as error:
        expected = "increments must be numbers, as many in each series"
        raise ShapeError(sentence("SPRT", expected, type(increments).__name__)) from error
    if z.ndim not in (1, 2):
        raise ShapeError(sentence("SPRT", "increments must have shape (T,) or (n, T)", z.shape))
    if np.isnan(z).any():
        expected = "increments must be numbers"
        raise DataError(sentence("SPRT", expected, "NaN", "pass 0 for what was not observed"))
    return np.atleast_2d(z)


def log_ratios(x: Any, shift: float) -> Array:
    """Log-likelihood ratios log N(x | shift, 1)/N(x | 0, 1) = shift·x − shift²/2, for standardized data.

    >>> log_ratios([0.0, 1.0], 1.0)
    array([-0.5,  0.5])
    """
    return shift * np.asarray(x, dtype=np.float64) - shift**2 / 2
