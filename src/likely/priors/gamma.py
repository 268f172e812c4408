"""The gamma law: what we believe of a rate before and after counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammainc, gammaincinv

from likely.core.arrays import Array, parameter, refuse_infinite, rows
from likely.core.engine import map_rows
from likely.errors import DomainError, ShapeError, sentence
from likely.families.counts import Counts, one_column
from likely.families.law import Law, in_units, lone
from likely.families.negative_binomial import NegativeBinomial
from likely.families.poisson import Poisson
from likely.maths.special import (
    deviance,
    digamma_gap,
    gamma_divergence,
    gamma_entropy,
    log_gamma_density,
    log_gamma_ratio,
    log_ratio,
    steadier,
)

WORTH = 0.1  # rows that the weak prior is worth


@dataclass(frozen=True, eq=False)
class Gamma(Law):
    """log p(x | a, b) = Σⱼ a log b − log Γ(a) + (a − 1) log xⱼ − b xⱼ: positive numbers in d independent columns.

    The conjugate prior of `Poisson` (Ney 3.8's scheme for counts): a − 1 events were counted in b rows
    before. Shapes and rates are numbers, (d,) or (K, d) for a stack. One prior serves all members of a stack
    of Poisson laws, and one of a single column all their columns.

    >>> post = Gamma(2.0, 1.0).update(Poisson(1.0).collect([3, 5]))
    >>> post.mean.round(4), post.point("mode").rate
    (array([3.3333]), array([3.]))
    """

    shape: Array  # a: (d,) or (K, d)
    rate: Array  # b

    def __post_init__(self) -> None:
        shape, rate = parameter(self.shape, "Gamma", "shape"), parameter(self.rate, "Gamma", "rate")
        try:
            shape, rate = (np.array(np.atleast_1d(a)) for a in np.broadcast_arrays(shape, rate))
        except ValueError as error:
            got = (shape.shape, rate.shape)
            raise ShapeError(sentence("Gamma", "shape and rate must fit each other", got)) from error
        if shape.ndim > 2 or 0 in shape.shape:
            raise ShapeError(sentence("Gamma", "shape and rate must be numbers, (d,) or (K, d)", shape.shape))
        if not ((shape > 0).all() and (rate > 0).all()):
            raise DomainError(sentence("Gamma", "shape and rate must be positive"))
        self._set(shape=shape, rate=rate)

    @classmethod
    def weak(cls, stats: Counts, worth: float = WORTH) -> Gamma:
        """A prior worth a tenth of a row, whose mode is the pooled mean: a lone column keeps its ML estimate.

        Where nothing was ever counted the mode is half an event in all rows: no rate becomes 0.
        """
        pooled = stats.pooled()
        mean = np.where(pooled.total > 0, pooled.mean, 0.5 / np.maximum(pooled.weight, 1.0))
        return cls.trusted(shape=1.0 + worth * mean, rate=np.full(mean.shape, worth))

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns d."""
        return int(self.shape.shape[-1])

    @property
    def members(self) -> int | None:
        """Number of members K of a stack; None for one value."""
        return len(self.shape) if self.shape.ndim == 2 else None

    def member(self, k: int) -> Gamma:
        """One member of a stack."""
        return Gamma.trusted(shape=self.shape[k].copy(), rate=self.rate[k].copy())

    # ---------------------------------------------------------------- the law

    def log_prob(self, x: Any) -> Array:
        """log p(x) for rows (n, d): (n,), or (n, K) for a stack; −inf for negative numbers. NaN is 'not observed'."""
        x = x if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)
        laws = list(zip(np.atleast_2d(self.shape), np.atleast_2d(self.rate), strict=True))

        def evaluate(block: Any) -> Array:
            z = rows(block, self.dim, "Gamma")
            if np.isinf(z).any():
                refuse_infinite(rows(x, self.dim, "Gamma"), "Gamma")
            each = [_log_density(z, *law).sum(axis=-1) for law in laws]
            return np.stack(each, axis=1) if self.members else each[0]

        return map_rows(evaluate, x, self.members)

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack; at least the smallest normal number, as the law has no 0."""
        draws = rng.standard_gamma(self.shape, (n, *self.shape.shape)) / self.rate
        return np.maximum(draws, np.finfo(np.float64).tiny)

    @property
    def mean(self) -> Array:
        """a / b."""
        return self.shape / self.rate

    @property
    def variance(self) -> Array:
        """a / b²."""
        return self.shape / self.rate / self.rate

    @property
    def mode(self) -> Array:
        """(a − 1) / b, 0 for a ≤ 1."""
        return np.maximum(self.shape - 1, 0.0) / self.rate

    @property
    def median(self) -> Array:
        """The number that half of the draws exceed, for each column."""
        return np.asarray(gammaincinv(self.shape, 0.5) / self.rate)

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x) for one column."""
        shape, rate = self._one_law()
        return lower_share(shape, rate * np.maximum(one_column(x, self.members), 0.0))

    def quantile(self, p: Any) -> Array:
        """x with P(X ≤ x) = p for one column; (n, K) for a stack."""
        shape, rate = self._one_law()
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(lower_point(shape, p[..., None] if self.members else p) / rate)

    def _one_law(self) -> tuple[Any, Any]:
        if self.dim != 1:
            raise DomainError(sentence("Gamma", "cdf and quantile are for one column", f"{self.dim} columns"))
        return self.shape[..., 0], self.rate[..., 0]

    def entropy(self, bits: bool = False) -> Any:
        """Σⱼ a − log b + log Γ(a) + (1 − a) ψ(a); one a member for a stack."""
        return in_units(lone((gamma_entropy(self.shape) - np.log(self.rate)).sum(axis=-1)), bits)

    def kl(self, other: Gamma, bits: bool = False) -> Any:
        """KL(self ‖ other) = Σⱼ log Γ(a')/Γ(a) + (a − a') ψ(a) + a' log(b/b') + a (b'/b − 1).

        Summed as divergences of shapes and of rates, which is exact for like laws, or as entropy and other's
        height at this mean, which is exact for unlike ones.
        """
        (a, b), (c, d) = (self.shape, self.rate), (other.shape, other.rate)
        like = gamma_divergence(c, a), a * deviance(b, d) / b, (a - c) * log_ratio(d, b)
        unlike = -gamma_entropy(a), np.log(b), -log_gamma_density(a / b, c, d), (c - 1) * digamma_gap(a)
        return in_units(lone(steadier(like, unlike).sum(axis=-1)), bits)

    @property
    def n_parameters(self) -> int:
        """Free parameters: a shape and a rate a column."""
        return 2 * int(self.shape.size)

    # -------------------------------------------------------------- the prior

    def update(self, stats: Counts) -> Gamma:
        """The posterior: shapes grow by what was counted, rates by the rows in which one looked."""
        self._fits(stats.total.shape, "statistics")
        return Gamma.trusted(shape=self.shape + stats.total, rate=self.rate + stats.weight)

    def point(self, rule: str = "mode") -> Poisson:
        """A Poisson law with the "mode" (a − 1)/b (0 for a ≤ 1), "mean" a/b or "median" of the rates."""
        if rule not in ("mode", "mean", "median"):
            raise DomainError(sentence("Gamma", 'rule must be "mode", "mean" or "median"', repr(rule)))
        return Poisson.trusted(rate=np.array(getattr(self, rule)))

    def draw(self, rng: Generator) -> Poisson:
        """A Poisson law with rates from this law."""
        return Poisson.trusted(rate=self.sample(1, rng)[0].copy())

    def predictive(self) -> NegativeBinomial:
        """One new row: negative binomial with size a and p = b / (b + 1)."""
        return NegativeBinomial.trusted(
            size=np.array(self.shape), prob=self.rate / (self.rate + 1), rest=1 / (self.rate + 1)
        )

    def log_evidence(self, stats: Counts) -> Any:
        """log p(the rows, one after another), rates integrated out; one a member for a stack.

        Σⱼ log Γ(a + n)/Γ(a) + a log b − (a + n) log(b + w) − Σ log x!, with n events in w rows.
        """
        self._fits(stats.total.shape, "statistics")
        a, b, n, w = self.shape, self.rate, stats.total, stats.weight
        terms = log_gamma_ratio(a, n) - a * np.log1p(w / b) - n * np.log(b + w)
        return lone(terms.sum(axis=-1) - stats.log_factorial)

    def log_density(self, model: Poisson) -> Any:
        """log p(the rates of a Poisson law); one a member for a stack."""
        self._fits(model.rate.shape, "a model")
        return lone(_log_density(model.rate, self.shape, self.rate).sum(axis=-1))

    def _fits(self, shape: tuple[int, ...], what: str) -> None:
        if self.dim not in (1, shape[-1]) or (self.members and shape[:-1] != (self.members,)):
            raise ShapeError(sentence("Gamma", f"{what} that fits {self.shape.shape} is needed", shape))


NODES, SHARES = np.polynomial.laguerre.laggauss(64)


def lower_share(a: Any, y: Any) -> Array:
    """P(Y ≤ y) for the gamma law of shape a and rate 1: SciPy's `gammainc`, mended where its series ends too soon.

    From a = 10⁴ on, more than four standard deviations below the mean (SciPy 1.17 keeps 8 digits there):
    y p(y) ∫ exp(−a t + y (1 − e⁻ᵗ)) dt, a Gauss–Laguerre sum in s = (a − y) t.
    """
    a, y = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(y, dtype=np.float64))
    short = (a > 1e4) & (y < a - 4 * np.sqrt(a)) & (y > 0)
    if not short.any():
        return np.asarray(gammainc(a, y))
    c, z = np.where(short, a, 4.0)[..., None], np.where(short, y, 1.0)[..., None]
    t = NODES / (c - z)
    sums = np.exp(-z * (np.expm1(-t) + t)) @ SHARES / (c - z)[..., 0]
    height = np.exp(log_gamma_density(z, c, 1.0)[..., 0])
    return np.asarray(np.where(short, height * z[..., 0] * sums, gammainc(a, y)))


def lower_point(a: Any, p: Any) -> Array:
    """y with `lower_share(a, y)` = p: SciPy's `gammaincinv`, and a Newton step where `gammainc` needed mending."""
    y = np.asarray(gammaincinv(a, p))
    short = (a > 1e4) & (p < 1e-3) & (p > 0)
    if not np.any(short):
        return y
    at = np.where(short, y, 1.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        step = (lower_share(a, at) - p) * np.exp(-log_gamma_density(at, a, 1.0))
    return np.where(short & np.isfinite(step), y - step, y)


def _log_density(x: Array, shape: Array, rate: Array) -> Array:
    """log p of each entry; 0 where it is NaN, −inf where it is negative."""
    inside = x >= 0
    value = log_gamma_density(np.where(inside, x, 1.0), shape, rate)
    return np.where(inside, value, np.where(np.isnan(x), 0.0, -np.inf))
