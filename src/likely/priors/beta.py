"""The beta law: what we believe of a coin before and after tossing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, betaincinv

from likely.core.arrays import Array, parameter, refuse_infinite, rows
from likely.core.engine import map_rows
from likely.errors import DomainError, ShapeError, sentence
from likely.families.bernoulli import Bernoulli, Trials
from likely.families.counts import one_column
from likely.families.law import Law, in_units, lone
from likely.maths.special import log_gamma_density, log_gamma_ratio
from likely.priors.dirichlet import Dirichlet

WORTH = 1.0  # rows that the weak prior is worth


@dataclass(frozen=True, eq=False)
class Beta(Law):
    """log p(x | a, b) = Σⱼ (a − 1) log xⱼ + (b − 1) log(1 − xⱼ) − log B(a, b) in d independent columns   (Herbst 2.1).

    The conjugate prior of `Bernoulli`: a − 1 ones and b − 1 zeros were seen before. Both are numbers, (d,) or
    (K, d) for a stack. One prior serves all members of a stack of Bernoulli laws, and one of a single column all
    their columns.

    >>> Beta(1.0, 1.0).update(Bernoulli(0.5).collect([1, 1, 1])).mean
    array([0.8])
    """

    a: Array  # (d,) or (K, d)
    b: Array

    def __post_init__(self) -> None:
        a, b = parameter(self.a, "Beta", "a"), parameter(self.b, "Beta", "b")
        try:
            a, b = (np.array(np.atleast_1d(part)) for part in np.broadcast_arrays(a, b))
        except ValueError as error:
            raise ShapeError(sentence("Beta", "a and b must fit each other", (a.shape, b.shape))) from error
        if a.ndim > 2 or 0 in a.shape:
            raise ShapeError(sentence("Beta", "a and b must be numbers, (d,) or (K, d)", a.shape))
        if not ((a > 0).all() and (b > 0).all()):
            raise DomainError(sentence("Beta", "a and b must be positive", float(min(a.min(), b.min()))))
        self._set(a=a, b=b)

    @classmethod
    def weak(cls, stats: Trials, worth: float = WORTH) -> Beta:
        """A prior worth one row, whose mode is the pooled mean: a lone column keeps its ML estimate.

        Where all rows agree the mode is half a row from the edge: no probability becomes 0 or 1.
        """
        pooled = stats.pooled()
        edge = 0.5 / (pooled.ones + pooled.zeros + 1.0)
        seen = pooled.ones + pooled.zeros > 0
        mean = np.where(seen, np.clip(pooled.mean, edge, 1.0 - edge), 0.5)
        return cls.trusted(a=1.0 + worth * mean, b=1.0 + worth * (1.0 - mean))

    @classmethod
    def symmetric(cls, columns: int, rows: float) -> Beta:
        """So many ones and as many zeros were seen in each column before: the mode is (n₁ + r) / (n + 2r)."""
        return cls(np.full(columns, 1.0 + rows), np.full(columns, 1.0 + rows))

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.a.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.a) if self.a.ndim == 2 else None

    def member(self, k: int) -> Beta:
        """One member of a stack."""
        return Beta.trusted(a=self.a[k].copy(), b=self.b[k].copy())

    def _pairs(self) -> Dirichlet:
        """Each column's law as that of (x, 1 − x), all in one stack."""
        return Dirichlet.trusted(alpha=np.stack([self.a.ravel(), self.b.ravel()], axis=1), levels=None)

    def _first(self, each: Any) -> Array:
        """The first of each pair, in the shape of the parameters."""
        return np.reshape(each[..., 0], (*each.shape[:-2], *self.a.shape)).copy()

    # ---------------------------------------------------------------- the law

    def log_prob(self, x: Any) -> Array:
        """log p(x) for rows (n, d): (n,), or (n, K) for a stack; −inf outside 0 … 1. NaN is 'not observed'."""
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)
        laws = list(zip(np.atleast_2d(self.a), np.atleast_2d(self.b), strict=True))

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Beta")
            refuse_infinite(z, "Beta")
            each = [_log_density(z, *law).sum(axis=-1) for law in laws]
            return np.stack(each, axis=1) if self.members else each[0]

        return map_rows(evaluate, x, self.members)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack; never quite 0 or 1, where the law may have a pole."""
        info = np.finfo(np.float64)
        return np.clip(self._first(self._pairs().sample(n, rng)), info.tiny, 1.0 - info.epsneg)

    @property
    def mean(self) -> Array:
        """a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Array:
        """m (1 − m) / (a + b + 1)."""
        whole = self.a + self.b
        return self.mean * (self.b / whole) / (whole + 1)

    @property
    def mode(self) -> Array:
        """(a − 1) / (a + b − 2); 0 for a ≤ 1 < b, 1 for b ≤ 1 < a, and the mean where there is no single summit."""
        return self._first(self._pairs().mode)

    @property
    def median(self) -> Array:
        """The number that half of the draws exceed, for each column."""
        return np.asarray(betaincinv(self.a, self.b, 0.5))

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x) for one column."""
        a, b = self._one_law()
        return np.asarray(betainc(a, b, np.clip(one_column(x, self.members), 0.0, 1.0)))

    def quantile(self, p: Any) -> Array:
        """The x with P(X ≤ x) = p, for one column; (n, K) for a stack."""
        a, b = self._one_law()
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(betaincinv(a, b, p[..., None] if self.members else p))

    def _one_law(self) -> tuple[Any, Any]:
        if self.dim != 1:
            raise DomainError(sentence("Beta", "cdf and quantile are for one column", f"{self.dim} columns"))
        return self.a[..., 0], self.b[..., 0]

    def entropy(self, bits: bool = False) -> Any:
        """log B(a, b) − (a − 1) ψ(a) − (b − 1) ψ(b) + (a + b − 2) ψ(a + b), summed; one a member for a stack."""
        return in_units(lone(np.reshape(self._pairs().entropy(), self.a.shape).sum(axis=-1)), bits)

    def kl(self, other: Beta, bits: bool = False) -> Any:
        """KL(self ‖ other), column by column as that of `Dirichlet`, summed; stacks go member by member."""
        return in_units(lone(np.reshape(self._pairs().kl(other._pairs()), self.a.shape).sum(axis=-1)), bits)

    @property
    def n_parameters(self) -> int:
        """Free parameters: two a column."""
        return 2 * int(self.a.size)

    # -------------------------------------------------------------- the prior

    def update(self, stats: Trials) -> Beta:
        """The posterior: ones add to a, zeros to b."""
        self._fits(stats.ones.shape, "statistics")
        return Beta.trusted(a=self.a + stats.ones, b=self.b + stats.zeros)

    def point(self, rule: str = "mode") -> Bernoulli:
        """A Bernoulli law with the "mode", "mean" or "median" of the probabilities."""
        if rule not in ("mode", "mean", "median"):
            raise DomainError(sentence("Beta", 'rule must be "mode", "mean" or "median"', repr(rule)))
        return Bernoulli.trusted(probs=np.array(getattr(self, rule)))

    def draw(self, rng: Generator) -> Bernoulli:
        """A Bernoulli law with probabilities from this law."""
        return Bernoulli.trusted(probs=self.sample(1, rng)[0].copy())

    def predictive(self) -> Bernoulli:
        """One new row: a 1 with probability a / (a + b) (Herbst 2.1)."""
        return self.point("mean")

    def log_evidence(self, stats: Trials) -> Any:
        """log p(the rows, one after another), probabilities integrated out; one a member for a stack.

        Σⱼ log B(a + n₁, b + n₀) / B(a, b).
        """
        self._fits(stats.ones.shape, "statistics")
        ones, zeros = stats.ones, stats.zeros
        terms = log_gamma_ratio(self.a, ones) + log_gamma_ratio(self.b, zeros)
        return lone((terms - log_gamma_ratio(self.a + self.b, ones + zeros)).sum(axis=-1))

    def log_density(self, model: Bernoulli) -> Any:
        """log p(the probabilities of a Bernoulli law); one a member for a stack."""
        self._fits(model.probs.shape, "a model")
        return lone(_log_density(model.probs, self.a, self.b).sum(axis=-1))

    def _fits(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(sentence("Beta", f"{what} that fits {self.a.shape} is needed", shape))


def _log_density(x: Array, a: Array, b: Array) -> Array:
    """log p of each entry; 0 where it is NaN, −inf outside 0 … 1.

    Gamma laws of x and 1 − x, at rate a + b, over that of their sum: it keeps its digits for large a and b.
    """
    inside = (x >= 0) & (x <= 1)
    at, whole = np.where(inside, x, 0.5), a + b
    with np.errstate(invalid="ignore"):
        value = log_gamma_density(at, a, whole) + log_gamma_density(1.0 - at, b, whole)
    value = value - log_gamma_density(1.0, whole, whole)
    return np.where(inside, np.where(np.isnan(value), -np.inf, value), np.where(np.isnan(x), 0.0, -np.inf))
