"""Bilateral Pareto distribution: conjugate prior of both endpoints of a uniform distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, PerMember, check_option, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.protocols import PointRule
from likely.core.value import Value
from likely.distributions.distribution import lone
from likely.distributions.scale_floor import grain
from likely.distributions.statistics.extremes import MinMaxStats
from likely.distributions.univariate.uniform import Uniform, log_width
from likely.distributions.univariate.uniform_predictive import UniformPredictive

STRENGTH = 0.1  # pseudo-counts of the weak prior
FARTHEST = 1e307  # largest range of a column, so that endpoints beyond the data do not overflow


@dataclass(frozen=True, eq=False)
class BilateralPareto(Value):
    """Bilateral Pareto distribution: the conjugate prior of both endpoints of `Uniform`.

    log p(l, u) = Σⱼ log a(a + 1) + a log(u₀ − l₀) − (a + 2) log(u − l) for l ≤ l₀ and u ≥ u₀: a pseudo-counts between
    l₀ and u₀. One prior applies to all members, and one of a single column to all columns. Both endpoints are unknown
    (with one known, the prior is a Pareto distribution).

    Parameters
    ----------
    low : array-like (d,) or (K, d)
        Lower ends l₀.
    high : array-like (d,) or (K, d)
        Upper ends u₀.
    shape : array-like (d,) or (K, d)
        Pseudo-counts a.

    See Also
    --------
    Uniform : Its likelihood.
    UniformPredictive : The predictive distribution.

    References
    ----------
    DeGroot (1970).

    Examples
    --------
    >>> post = BilateralPareto(0.0, 1.0, 1.0).update(Uniform(0.0, 1.0).collect([0.5, 3.0]))
    >>> post.low, post.high, post.shape
    (array([0.]), array([3.]), array([3.]))
    """

    serves = ("Uniform",)  # distributions of which it is a prior

    low: Annotated[Array, declared.numbers("* d")]  # l₀: (d,) or (K, d)
    high: Annotated[Array, declared.numbers("* d")]  # u₀
    shape: Annotated[Array, declared.numbers("* d", 0)]  # a

    def __post_init__(self) -> None:
        me = "BilateralPareto"
        given = {name: parameter(part, me, name) for name, part in self.field_values().items()}
        try:
            fitted = np.broadcast_arrays(*(np.atleast_1d(part) for part in given.values()))
        except ValueError as error:
            got = tuple(part.shape for part in given.values())
            raise ShapeError(sentence(me, "low, high and shape must have shapes that broadcast", got)) from error
        if fitted[0].ndim > 2 or 0 in fitted[0].shape:
            raise ShapeError(sentence(me, "low, high and shape must be numbers, (d,) or (K, d)", fitted[0].shape))
        parts = {name: np.array(part) for name, part in zip(given, fitted, strict=True)}
        if not ((parts["shape"] > 0).all() and (parts["low"] < parts["high"]).all()):
            raise DomainError(sentence(me, "shape must be positive, and low below high"))
        self._set(**parts)

    @classmethod
    def weak(cls, stats: MinMaxStats, strength: float = STRENGTH) -> BilateralPareto:
        """Weakly informative prior of 0.1 pseudo-counts, its mode the unbiased estimate: (max − min)/(n − 1) outside.

        One prior per member of a stack. A member with a single value gets a share of the range of all rows, and where
        these are all equal, 1e-8 of their absolute value.
        """
        whole = stats.pooled()
        if not whole.total_weight > 0:
            raise DomainError(sentence("BilateralPareto.weak", "statistics of at least one row are needed", "none"))
        with np.errstate(over="ignore"):
            span = np.where(whole.low < whole.high, whole.high - whole.low, grain(whole.low))
        far = np.flatnonzero(span > FARTHEST)
        if len(far):
            expected = f"the range of column {far[0]} must be at most {FARTHEST:g}"
            raise DataError(sentence("Uniform", expected, float(span[far[0]]), "rescale the column"))
        low, high = (np.where(stats.seen, a, b) for a, b in ((stats.low, whole.low), (stats.high, whole.high)))
        n = np.maximum(np.where(stats.seen, stats.weight, whole.weight), 1.0)
        step = np.where(low < high, (high - low) / np.maximum(n - 1.0, 1.0), 0.5 * span / n)
        never = np.broadcast_to(~whole.seen, low.shape)  # a column without observed entries: 0 … 1
        return cls.trusted(
            low=np.where(never, 0.0, low - step),
            high=np.where(never, 1.0, high + step),
            shape=np.full(low.shape, strength),
        )

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.shape.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.shape) if self.shape.ndim == 2 else None

    def member(self, k: int) -> BilateralPareto:
        """One member of a stack."""
        return self.replace(**{name: part[k].copy() for name, part in self.field_values().items()})

    # ------------------------------------------------------ prior and posterior

    def update(self, stats: MinMaxStats) -> BilateralPareto:
        """Posterior: shape plus the weight of the rows, endpoints at the extremes of prior and data."""
        self._fits(stats.weight.shape, "statistics")
        low, high = self._with(stats)
        return self.trusted(low=low, high=high, shape=self.shape + stats.weight)

    def _with(self, stats: MinMaxStats) -> tuple[Array, Array]:
        low = np.where(stats.seen, np.minimum(self.low, stats.low), self.low)
        return low, np.where(stats.seen, np.maximum(self.high, stats.high), self.high)

    def point(self, rule: PointRule = "mode") -> Uniform:
        """Uniform distribution at the "mode" (l₀, u₀), "mean" (R/(a − 1) outside, a > 1) or "median" of endpoints."""
        check_option(rule, PointRule, "BilateralPareto", "rule")
        if rule == "mean" and not (self.shape > 1).all():
            raise DomainError(sentence("BilateralPareto", "the mean needs a shape above 1", float(self.shape.min())))
        beyond = {"mode": 0.0 * self.shape, "median": np.expm1(np.log(2.0) / self.shape)}
        share = beyond[rule] if rule in beyond else 1 / (self.shape - 1)
        step = share * (self.high - self.low)
        return Uniform.trusted(low=self.low - step, high=self.high + step)

    def draw(self, rng: Generator) -> Uniform:
        """Uniform distribution with endpoints sampled from the prior: u₀ − l is Pareto, and so is u − l given l."""
        first, second = rng.standard_exponential((2, *self.shape.shape))
        low = self.high - (self.high - self.low) * np.exp(first / self.shape)
        return Uniform.trusted(low=low, high=low + (self.high - low) * np.exp(second / (self.shape + 1)))

    def predictive(self) -> UniformPredictive:
        """Posterior predictive distribution of one row: constant between the endpoints, with Pareto tails."""
        return UniformPredictive.trusted(low=np.array(self.low), high=np.array(self.high), shape=np.array(self.shape))

    def log_evidence(self, stats: MinMaxStats) -> PerMember:
        """Log marginal likelihood of the rows, endpoints integrated out; one per member for a stack.

        Σⱼ log a(a + 1)/((a + n)(a + n + 1)) + a log R₀ − (a + n) log R, with the range R of prior and data together.
        """
        self._fits(stats.weight.shape, "statistics")
        a, n, (low, high) = self.shape, stats.weight, self._with(stats)
        wider = log_width(low, high) - log_width(self.low, self.high)
        each = -np.log1p(n / a) - np.log1p(n / (a + 1)) - a * wider - n * log_width(low, high)
        return lone(each.sum(axis=-1))

    def log_density(self, model: Uniform) -> PerMember:
        """Log density of the endpoints of a uniform distribution, −inf inside l₀ … u₀; one per member for a stack."""
        self._fits(model.low.shape, "a model")
        a, width = self.shape, log_width(model.low, model.high)
        each = np.log(a) + np.log1p(a) + a * (log_width(self.low, self.high) - width) - 2 * width
        outside = (model.low <= self.low) & (model.high >= self.high)
        return lone(np.where(outside, each, -np.inf).sum(axis=-1))

    def _fits(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(sentence("BilateralPareto", f"{what} that fits {self.shape.shape} is needed", shape))
