"""A distribution in other coordinates: p(y) = p(x) |dx/dy|, so that probability stays where it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likely.core.arrays import Array, Index, n_rows, refuse_infinite, rows, sliceable, weights
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, sentence
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import Distribution, Estimate, in_units, lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.statistics.counts import one_column
from likely.distributions.support import Atoms, Line, integral, is_discrete, look
from likely.distributions.transforms.bijector import Bijector, FunctionChange
from likely.distributions.transforms.bijector_checks import (
    refuse_other_inverses,
    refuse_outside_domain,
    refuse_turns,
    spread_over,
)

ME = "Transformed"
FAR = 1e100  # where a distribution without ends is taken to end, for who looks for an inverse


@dataclass(frozen=True, eq=False)
class Transformed(Distribution):
    """The distribution of y = g(x) for x ~ distribution: log p(y) = log p_x(g⁻¹(y)) − log |det ∂g/∂x| (Herbst 1.2.2).

    g is a ready-made `Bijector`, which a file can keep, or a function of rows (n, d) → (n, d) that is one to one, with
    its `inverse` and `log_det_jacobian` = log |det ∂g/∂x| (n,) where you know them. In one column a monotone g needs
    neither. Of a discrete distribution the values move and their probabilities stay. The distribution inside may be a
    stack, and it may learn.

    >>> import likely as lk
    >>> lognormal = lk.Transformed(lk.Gaussian([0.0], 1.0), lk.Bijector.exp())
    >>> lognormal.log_prob([1.0, -1.0]).round(4), lognormal.quantile(0.5), round(lognormal.mean, 4)
    (array([-0.9189,    -inf]), array(1.), 1.6487)
    >>> lk.Transformed(lk.Gaussian([0.0], 1.0), np.sinh).cdf([0.0]).round(6)
    array([0.5])
    """

    distribution: Any
    bijector: Any

    def __init__(
        self, distribution: Any, forward: Any = None, inverse: Callable[[Array], Any] | None = None,
        log_det_jacobian: Callable[[Array], Any] | None = None, *, bijector: Any = None,
    ) -> None:  # fmt: skip
        if not (hasattr(distribution, "log_prob") and hasattr(distribution, "sample")):
            raise DomainError(sentence(ME, "a density is needed", type(distribution).__name__))
        given = forward if bijector is None else bijector
        if isinstance(given, str):
            given = Bijector(given)
        if not isinstance(given, Bijector | FunctionChange):
            if not callable(given):
                expected = "forward must be a Change, its name, or a function of rows"
                raise DomainError(sentence(ME, expected, type(given).__name__))
            given = _of_functions(distribution, given, inverse, log_det_jacobian)
        if isinstance(given, Bijector):
            refuse_outside_domain(distribution, given)
        self._set(distribution=distribution, bijector=given)

    # ------------------------------------------------------------------ shape

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(getattr(self.distribution, "dim", 1))

    @property
    def members(self) -> int | None:
        """Number of members of a stack; None for one distribution."""
        return getattr(self.distribution, "members", None)

    def member(self, k: int) -> Transformed:
        """One member of a stack."""
        return self.replace(distribution=self.distribution.member(k))

    def some(self, index: Any) -> Transformed:
        """Some members, as a stack."""
        return self.replace(distribution=self.distribution.some(index))

    @property
    def n_parameters(self) -> int:
        """Those of the distribution inside."""
        return int(self.distribution.n_parameters)

    @cached_property
    def _discrete(self) -> bool:
        return is_discrete(self.distribution if self.members is None else self.distribution.member(0))

    # ---------------------------------------------------------------- density

    def log_prob(self, y: Any) -> Array:
        """log p of rows (n, d): (n,), or (n, K) for a stack; −inf where no x leads."""
        y = sliceable(y, self.dim)

        def evaluate(block: Any) -> Array:
            x, impossible = self._inside(rows(block, self.dim, ME))
            with np.errstate(all="ignore"):
                logs = np.asarray(self.distribution.log_prob(x), dtype=np.float64)
                if not self._discrete:
                    slope = self.bijector.log_det_jacobian(x)
                    logs = logs - (slope[:, None] if logs.ndim == 2 else slope)
            logs[impossible] = -np.inf
            return logs

        return map_rows(evaluate, y, self.members)

    def _inside(self, y: Array) -> tuple[Array, Array]:
        """Rows x, and which rows no x leads to; of those all is said to be missing."""
        refuse_infinite(y, ME)
        gap = np.isnan(y)
        if gap.any() and not self.bijector.elementwise:
            i, j = np.argwhere(gap)[0]
            expected = "a change that mixes columns needs all of them"
            raise DataError(sentence(ME, expected, f"NaN at row {i}, column {j}", "impute first"))
        x = self.bijector.inverse(y)
        if self._discrete:
            whole = np.rint(x)
            x = np.where(np.abs(x - whole) <= 1e-9 * np.maximum(1.0, np.abs(whole)), whole, x)
        impossible = (~np.isfinite(x) & ~gap).any(axis=1)
        x[impossible] = np.nan
        return x, impossible

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack."""
        x = np.asarray(self.distribution.sample(n, rng), dtype=np.float64)
        flat = x.reshape(-1, self.dim)
        return self.bijector.forward(flat).reshape(x.shape if x.ndim > 1 else (n, 1))

    # ---------------------------------------------------------------- moments

    def cdf(self, y: Any) -> Array:
        """P(Y ≤ y) in one column; (n, K) for a stack."""
        self._one_column("cdf")
        z = one_column(y, None)
        flat = np.atleast_1d(z).reshape(-1, 1)
        x = self.bijector.inverse(flat)[:, 0]
        found = np.asarray(self.distribution.cdf(np.where(np.isnan(x), 0.0, x)), dtype=np.float64)
        if not self.bijector.rises:
            found = 1.0 - found
            if self._discrete:
                found = found + np.exp(self.distribution.log_prob(np.where(np.isnan(x), 0.0, x)[:, None]))
        beyond = np.where(flat[:, 0] > self._some_value, 1.0, 0.0)  # an y that cannot be lies below or above all others
        beyond = np.where(np.isnan(flat[:, 0]), np.nan, beyond)
        outside = np.isnan(x)[:, None] if found.ndim == 2 else np.isnan(x)
        out = np.where(outside, beyond[:, None] if found.ndim == 2 else beyond, found)
        return out.reshape((*np.shape(z), *out.shape[1:]))

    @cached_property
    def _some_value(self) -> float:
        return float(np.median(self.sample(65, np.random.default_rng(0)).ravel()))

    def quantile(self, p: Any) -> Array:
        """y with P(Y ≤ y) = p in one column; (n, K) for a stack."""
        self._one_column("quantile")
        p = np.asarray(p, dtype=np.float64)
        x = np.asarray(self.distribution.quantile(p if self.bijector.rises else 1.0 - p), dtype=np.float64)
        return self.bijector.forward(x.reshape(-1, 1)).reshape(x.shape)

    def _one_column(self, what: str) -> None:
        if self.dim != 1 or not hasattr(self.distribution, what):
            expected = f"{what} exists in one column, where the distribution inside has one"
            raise DomainError(sentence(ME, expected, f"{self.dim} columns of {type(self.distribution).__name__}"))

    @property
    def mean(self) -> Any:
        """E[y]: closed form for affine changes and the log-normal distribution, sums or quadrature for one column."""
        if isinstance(self.bijector, Bijector) and self.bijector.kind == "affine":
            inner = np.atleast_1d(np.asarray(self.distribution.mean, dtype=np.float64))
            return lone(self.bijector.forward(np.atleast_2d(inner)).reshape(inner.shape).squeeze())
        if self._lognormal:
            return lone(np.exp(self.distribution.mean + 0.5 * self.distribution.variance).squeeze())
        return self._expected(lambda y: y)

    @property
    def variance(self) -> Any:
        """E[(y − mean)²] of each column, likewise."""
        if isinstance(self.bijector, Bijector) and self.bijector.kind == "affine":
            c = self.bijector.scale
            spread = c**2 * np.asarray(self.distribution.variance) if c.ndim < 2 else np.diagonal(
                c @ self.distribution.covariance_matrix @ c.T, axis1=-2, axis2=-1)  # fmt: skip
            return lone(np.squeeze(spread))
        if self._lognormal:
            return lone(
                (
                    np.expm1(self.distribution.variance)
                    * np.exp(2 * self.distribution.mean + self.distribution.variance)
                ).squeeze()
            )
        mean = np.asarray(self.mean)
        return self._expected(lambda y: (y - mean) ** 2) if self.members is None else self._each("variance")

    @property
    def median(self) -> Any:
        """The y that half of the draws exceed."""
        return lone(np.squeeze(self.quantile(0.5)))

    def entropy(self, bits: bool = False) -> Any:
        """H[y] = H[x] + E[log |det ∂g/∂x|]; that of x itself where the distribution is discrete."""
        if self.members is not None:
            return in_units(np.array([self.member(k).entropy() for k in range(self.members)]), bits)
        return in_units(float(self._entropy_estimate(100_000, np.random.default_rng(0)).value), bits)

    def _entropy_estimate(self, n: int, rng: Generator) -> Estimate:
        """The same with its standard error, where the distribution inside or its mean slope is known by draws only."""
        from likely.distributions.entropy import added, entropy

        return added([entropy(self.distribution, n=n, rng=rng), self._mean_log_det_jacobian(n, rng)])

    def _mean_log_det_jacobian(self, n: int, rng: Generator) -> Estimate:
        """E[log |det ∂g/∂x|]; 0 of a discrete distribution, whose probabilities stay."""
        kind = self.bijector.kind if isinstance(self.bijector, Bijector) else ""
        if self._discrete:
            return Estimate(0.0, 0.0)
        if kind == "affine":
            return Estimate(float(self.bijector.log_det_jacobian(np.zeros((1, self.dim)))[0]), 0.0)
        if kind == "exp" and hasattr(self.distribution, "mean"):
            return Estimate(float(np.sum(self.distribution.mean)), 0.0)
        if self.dim == 1:
            return Estimate(self._expected_inside(lambda x: self.bijector.log_det_jacobian(x[:, None])), 0.0)
        slopes = self.bijector.log_det_jacobian(np.asarray(self.distribution.sample(n, rng), dtype=np.float64))
        return Estimate(float(slopes.mean()), float(slopes.std(ddof=1)) / math.sqrt(n))

    @property
    def _lognormal(self) -> bool:
        return (
            isinstance(self.distribution, Gaussian)
            and isinstance(self.bijector, Bijector)
            and self.bijector.kind == "exp"
        )

    def _each(self, name: str) -> Array:
        return np.array([getattr(self.member(k), name) for k in range(self.members or 0)])

    def _expected(self, f: Callable[[Array], Array]) -> Any:
        if self.members is not None:
            return self._each("mean")
        return self._expected_inside(lambda x: f(self.bijector.forward(x[:, None])[:, 0]))

    def _expected_inside(self, f: Callable[[Array], Array]) -> float:
        """E[f(x)] over the distribution inside, summed or integrated."""
        seen = look(self.distribution)
        if isinstance(seen, Atoms):
            values = np.asarray(seen.values, dtype=np.float64)
            return float(np.exp(seen.log_probs) @ f(values[:, 0] if values.ndim == 2 else values))
        found = integral(seen, self.distribution, lambda x, logs: f(x)) if isinstance(seen, Line) else None
        if found is None:
            remedy = "use expect, which draws"
            raise DomainError(sentence(ME, "moments are integrated in one column only", f"{self.dim}", remedy))
        return found[0]

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(cls, x: Any, distribution: Any = Gaussian, change: Any = "exp", **options: Any) -> Transformed:
        """A first model: the `change` of a blank distribution for the rows in its coordinates.

        >>> rows = np.exp([[0.0], [1.0], [2.0]])
        >>> Transformed.fit(rows, distribution=Gaussian, change="exp").distribution.mean
        array([1.])
        """
        change = Bijector(change) if isinstance(change, str) else change
        inner = change.inverse(rows(x, None, ME))
        return cls(distribution.blank(inner, **options), change)

    def collect(self, x: Any, weight: Any = None, labels: Index | None = None) -> TransformedStats:
        """What the distribution inside takes from the rows in its own coordinates, and how much they were stretched."""
        y = rows(x, self.dim, ME)
        w = weights(weight, n_rows(x), ME)
        inner, impossible = self._inside(y)
        if impossible.any():
            i = int(np.argmax(impossible))
            raise DataError(sentence(ME, "rows must lie where the change leads", f"{y[i].tolist()} at row {i}"))
        slope = np.zeros(len(y)) if self._discrete else self.bijector.log_det_jacobian(inner)
        named = {} if labels is None else {"labels": labels}
        return TransformedStats.trusted(
            components=self.distribution.collect(inner, w, **named), slope=_shared_out(slope, w, labels, self.members)
        )

    def refit(self, stats: TransformedStats, prior: Any = None) -> Transformed:
        """The same change of the distribution inside, refitted."""
        return self.replace(distribution=self.distribution.refit(stats.components, prior))

    def objective(self, stats: TransformedStats, prior: Any = None) -> float:
        """Log-likelihood of the rows as they came (+ log prior)."""
        return float(self.distribution.objective(stats.components, prior)) - float(np.sum(stats.slope))

    @property
    def log_smoothing(self) -> float:
        """That of the distribution before the change."""
        return float(getattr(self.distribution, "log_smoothing", 0.0))

    def weak_prior(self, stats: TransformedStats) -> Any:
        """That of the distribution inside."""
        return self.distribution.weak_prior(stats.components)


@dataclass(frozen=True, eq=False)
class TransformedStats(Addable, Value):
    """Statistics of the distribution inside, and the sum of the log-slopes of the rows."""

    components: Any
    slope: Array  # () or (K,)

    @property
    def complete(self) -> bool:
        """Whether those inside are."""
        return bool(self.components.complete)

    @property
    def filled(self) -> bool:
        """True if parts filled gaps in."""
        return bool(getattr(self.components, "filled", False))

    @property
    def total_weight(self) -> float:
        """Weight of the rows."""
        return float(self.components.total_weight)

    def __add__(self, other: TransformedStats) -> TransformedStats:
        return TransformedStats.trusted(components=self.components + other.components, slope=self.slope + other.slope)

    def __mul__(self, factor: float) -> TransformedStats:
        return TransformedStats.trusted(components=self.components * factor, slope=self.slope * factor)

    __rmul__ = __mul__

    def pooled(self) -> TransformedStats:
        """All members as one."""
        return TransformedStats.trusted(components=self.components.pooled(), slope=np.asarray(self.slope.sum()))

    def member(self, k: int) -> TransformedStats:
        """The statistics of one member."""
        return TransformedStats.trusted(components=self.components.member(k), slope=np.asarray(self.slope[k]))


def _shared_out(slope: Array, w: Array | None, labels: Index | None, members: int | None) -> Array:
    """Σ w log-slope, for each member that saw the rows."""
    if members is None:
        return np.asarray(slope.sum() if w is None else w @ slope)
    if labels is not None:
        own = np.asarray(labels)
        return np.asarray(
            np.bincount(own[own >= 0], (slope if w is None else slope * w)[own >= 0], members), np.float64
        )
    if w is None or w.ndim == 1:
        return np.full(members, slope.sum() if w is None else w @ slope)
    return np.asarray(w.T @ slope)


def _of_functions(distribution: Any, forward: Any, inverse: Any, log_det_jacobian: Any) -> FunctionChange:
    low, high = _ends(distribution) if inverse is None else (-FAR, FAR)
    change = FunctionChange.trusted(
        function=forward, back=inverse, slope=log_det_jacobian, low=low, high=high, rises=True
    )
    if int(getattr(distribution, "dim", 1)) == 1:
        refuse_turns(distribution, change)
        change = change.replace(rises=_rises(distribution, change))
    refuse_other_inverses(distribution, change)
    return change


def _rises(distribution: Any, change: FunctionChange) -> bool:
    one = distribution if getattr(distribution, "members", None) is None else distribution.member(0)
    a, b = change.forward(np.quantile(spread_over(one), [0.25, 0.75])[:, None]).ravel()
    if not (math.isfinite(a) and math.isfinite(b)):
        raise DomainError(sentence(ME, "forward must be finite where the distribution has its weight", (a, b)))
    return bool(b >= a)


def _ends(distribution: Any) -> tuple[float, float]:
    """Where an inverse is looked for: where the distribution ends, or far away."""
    if int(getattr(distribution, "dim", 1)) != 1:
        return -FAR, FAR
    ends = (
        np.asarray(distribution.quantile(np.array([0.0, 1.0])), dtype=np.float64)
        if hasattr(distribution, "quantile")
        else None
    )
    low, high = (-np.inf, np.inf) if ends is None else (float(np.min(ends)), float(np.max(ends)))
    return (low if math.isfinite(low) else -FAR), (high if math.isfinite(high) else FAR)


__all__ = ["Bijector", "Transformed", "TransformedStats"]
