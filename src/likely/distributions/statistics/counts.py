"""Sufficient statistics of count distributions, weights per member, and exact sums over integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse
from numpy.random import Generator

from likely.core import declared
from likely.core.arrays import Array, Index, numbers, parameter
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import Estimate
from likely.numerics.special import log_factorial

# -------------------------------------------------------- sufficient statistics


@dataclass(frozen=True, eq=False)
class Counts(Addable, Value):
    """Sufficient statistics of a Poisson distribution: weight and total count per column.

    Objectives and evidences are accurate to 10⁻¹⁶ of Σ w log x!: for counts of about 10⁵ and more that is less accurate
    than the sum of `log_prob`.
    """

    rows: Annotated[Array, declared.numbers("*", 0)]  # (...): weight of the rows
    weight: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): weight of the observed entries
    total: Annotated[Array, declared.numbers("* d", 0)]  # (..., d): Σ w x
    log_factorial: Annotated[Array, declared.numbers("*")]  # (...): Σ w log x!

    complete = True

    def __post_init__(self) -> None:
        parts = {name: parameter(part, "Counts", name) for name, part in self.field_values().items()}
        lead, shape = parts["rows"].shape, parts["total"].shape
        got = tuple(part.shape for part in parts.values())
        if len(lead) > 1 or len(shape) != len(lead) + 1 or got != (lead, (*lead, *shape[-1:]), shape, lead):
            raise ShapeError(sentence("Counts", "shapes must be (...), (..., d), (..., d) and (...)", got))
        if any((parts[name] < 0).any() for name in ("rows", "weight", "total")):
            raise DomainError(sentence("Counts", "weights and totals must not be negative"))
        self._set(**parts)

    @property
    def mean(self) -> Array:
        """Mean of the observed entries (..., d); 0 where the weight is 0."""
        return np.divide(self.total, self.weight, out=np.zeros_like(self.total), where=self.weight > 0)

    @property
    def total_weight(self) -> float:
        """Total weight of the rows of all members."""
        return float(np.sum(self.rows))

    def __add__(self, other: Counts) -> Self:
        own, others = self.field_values(), other.field_values()
        if self.total.shape != other.total.shape:
            raise ShapeError(sentence("Counts", f"both must have shape {self.total.shape}", other.total.shape))
        return self.trusted(**{name: np.asarray(own[name] + others[name]) for name in own})

    def __mul__(self, factor: float) -> Self:
        return self.trusted(**{name: np.asarray(part * factor) for name, part in self.field_values().items()})

    __rmul__ = __mul__

    def pooled(self) -> Counts:
        """Counts of the rows of all members together."""
        if self.rows.ndim == 0:
            return self
        return self.trusted(**{name: np.asarray(part.sum(axis=0)) for name, part in self.field_values().items()})

    def member(self, k: int) -> Counts:
        """The counts of one member of a stack."""
        return self.trusted(**{name: np.array(part[k]) for name, part in self.field_values().items()})


def count_rows(x: Array, shares: Any, members: int | None) -> Counts:
    """Sufficient statistics of rows (n, d), NaN for missing entries, under weights (m, n)."""
    rows = shares @ np.ones(len(x))
    observed = ~np.isnan(x)
    complete = bool(observed.all())
    counts = x if complete else np.where(observed, x, 0.0)
    weight = np.repeat(rows[:, None], x.shape[1], axis=1) if complete else shares @ observed.astype(np.float64)
    parts = (rows, weight, shares @ counts, shares @ log_factorial(counts).sum(axis=1))
    names = ("rows", "weight", "total", "log_factorial")
    return Counts.trusted(**{name: per_member(part, members) for name, part in zip(names, parts, strict=True)})


def member_weights(w: Array | None, labels: Any, n: int, members: int | None, whose: str) -> Any:
    """Weights (m, n) of n rows per member: m is 1 where all members have the same weights, else K."""
    if labels is not None:
        at = checked_labels(labels, n, members, whose)
        labeled = np.flatnonzero(at >= 0)
        weight = np.ones(n) if w is None else w
        return scipy.sparse.csr_array((weight[labeled], (at[labeled], labeled)), shape=(members, n))
    if w is None or w.ndim == 1:
        return np.ones((1, n)) if w is None else w[None]
    if w.shape[1] != members:
        expected = f"weight must have one column per member ({members})" if members else "weight must have one axis"
        raise ShapeError(sentence(whose, expected, w.shape))
    return np.ascontiguousarray(w.T)


def checked_labels(labels: Any, n: int, members: int | None, whose: str) -> Index:
    """Validated labels (n,): the member of each row, −1 for none."""
    at = np.asarray(labels)
    if members is None:
        raise DomainError(sentence(whose, "labels are for a stack", "one distribution"))
    if at.shape != (n,) or (n and not (np.issubdtype(at.dtype, np.integer) and -1 <= at.min() and at.max() < members)):
        raise ShapeError(sentence(whose, f"labels must be {n} integers from -1 to {members - 1}", at.shape))
    return at.astype(np.intp)


def per_member(part: Array, members: int | None) -> Array:
    """(m, ...) as (K, ...) for a stack, (...) for one distribution."""
    return np.array(part[0] if members is None else np.broadcast_to(part, (members, *part.shape[1:])))


def refuse_negative(x: Array, whose: str) -> None:
    """Raise for negative counts; the first is named by row and column."""
    bad = np.argwhere(x < 0)
    if len(bad):
        i, j = bad[0]
        got, remedy = f"{x[i, j]} at row {i}, column {j}", "correct it, or replace it by NaN"
        raise DataError(sentence(whose, "counts must not be negative", got, remedy))


# ------------------------------------------------------------------- exact sums


def smallest(reached: Callable[[Array], Any], start: Array) -> Array:
    """The smallest integer ≥ 0, per entry, from which `reached` holds; infinity if it never does."""
    low, high = np.full(start.shape, -1.0), np.maximum(np.floor(start), 1.0)
    while not (done := reached(high) | ~(high < 1e300)).all():
        low, high = np.where(done, low, high), np.where(done, high, 2 * high)
    high = np.where(high < 1e300, high, np.inf)
    while True:
        middle = np.floor(low + 0.5 * (high - low))
        if not (open_ := (middle > low) & (middle < high)).any():
            return high
        below = reached(middle)
        high, low = np.where(open_ & below, middle, high), np.where(open_ & ~below, middle, low)


LARGEST_SUM = 1 << 22  # terms of an exact sum; beyond it, Monte Carlo


def exact_expectation(distribution: Any, g: Callable[[Any], Any], low: Array, high: Array) -> Estimate | None:
    """Expectation Σ g(x) p(x) over the grid low … high (d,) of integers; None if it has too many points."""
    if np.prod(high - low + 1) > LARGEST_SUM:
        return None
    axes = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)), indexing="ij")
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    probability = np.exp(distribution.log_prob(grid))
    x = grid if distribution.members is None else np.repeat(grid[:, None], distribution.members, axis=1)
    return weighted_sum(g(x), probability)


def weighted_sum(values: Any, probability: Array) -> Estimate:
    """Σ p g with error 0: values (m, ...) under probabilities (m,) or (m, K); those of probability 0 are left out."""
    values = np.asarray(values, dtype=np.float64)
    p = np.broadcast_to(probability.reshape(probability.shape + (1,) * (values.ndim - probability.ndim)), values.shape)
    total = np.multiply(values, p, out=np.zeros_like(values), where=p > 0).sum(axis=0)
    return Estimate(total[()], np.zeros_like(total)[()])


def draw_counts(rate: Array, rng: Generator) -> Array:
    """Random Poisson counts of any rate; above 10¹⁵ by the normal distribution, equal up to rounding."""
    large = rate > 1e15
    counts = rng.poisson(np.where(large, 0.0, rate)).astype(np.float64)
    if large.any():
        noise = rng.standard_normal(rate.shape)
        counts = np.where(large, np.rint(rate + np.sqrt(rate) * noise), counts)
    return counts


def one_column(x: Any, members: int | None) -> Array:
    """Values for a univariate distribution: (n,) or (n, 1) as (n,), with a last axis that broadcasts to a stack."""
    z = numbers(x, "cdf")
    z = z[..., 0] if z.ndim > 1 and z.shape[-1] == 1 else z
    return z[..., None] if members else z
