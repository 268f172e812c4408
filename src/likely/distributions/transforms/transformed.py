"""Transformed distribution y = g(x) by change of variables: p(y) = p(x) |dx/dy|."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likely.core import declared
from likely.core.arrays import Array, Index, PerMember, Rows, n_rows, refuse_infinite, rows, sliceable, weights
from likely.core.engine import map_rows
from likely.core.errors import DataError, DomainError, sentence
from likely.core.protocols import AnyDensity, AnyPrior
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import Distribution, Estimate, in_units, lone
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.statistics.counts import one_column
from likely.distributions.support import Atoms, Line, integral, is_discrete, look
from likely.distributions.transforms.bijector import Bijector, BijectorKind, FunctionBijector
from likely.distributions.transforms.bijector_checks import (
    points_of_support,
    refuse_nonmonotone,
    refuse_outside_domain,
    refuse_wrong_inverse,
)

ME = "Transformed"
AnyBijector = Bijector | FunctionBijector
FAR = 1e100  # bound of an infinite support in the numerical search for an inverse


@dataclass(frozen=True, eq=False)
class Transformed(Distribution):
    """Distribution of y = g(x), a change of variables.

    log p(y) = log p_x(g⁻¹(y)) − log |det ∂g/∂x|. For a discrete distribution the values are transformed and keep their
    probabilities. The base distribution may be a stack, and may be fitted.

    Parameters
    ----------
    distribution : distribution
        Distribution of x, one or a stack.
    forward : Bijector, str or callable
        The function g: a `Bijector` or its name, which can be saved, or a one-to-one function of rows (n, d) → (n, d).
    inverse : callable, optional
        The inverse of a function g; a monotone g of one column needs none.
    log_det_jacobian : callable, optional
        Logarithms log |det ∂g/∂x| (n,) of a function g; a monotone g of one column needs none.
    bijector : Bijector, optional
        Another name for `forward`.

    See Also
    --------
    Bijector : Built-in changes of variables.

    References
    ----------
    Herbst and du Preez, lecture notes, 1.2.2.

    Examples
    --------
    >>> import likely as lk
    >>> lognormal = lk.distributions.Transformed(lk.Gaussian([0.0], 1.0), lk.distributions.Bijector.exp())
    >>> lognormal.log_prob([1.0, -1.0]).round(4), lognormal.quantile(0.5), round(lognormal.mean, 4)
    (array([-0.9189,    -inf]), array(1.), 1.6487)
    >>> lk.distributions.Transformed(lk.Gaussian([0.0], 1.0), np.sinh).cdf([0.0]).round(6)
    array([0.5])
    """

    distribution: Annotated[Any, declared.distribution]
    bijector: Annotated[Any, declared.of_class("Bijector")]

    @staticmethod
    def inconsistency(fields: Mapping[str, Any]) -> str:
        """Check that a bijector of d columns belongs to a distribution of d columns."""
        widths = {
            int(fields["distribution"].dim),
            *(len(a) for a in (fields["bijector"].scale, fields["bijector"].shift) if a.ndim),
        }
        expected = f"distribution and bijector must have one number of columns, not {sorted(widths)}"
        return "" if len(widths) == 1 else expected

    def __init__(
        self, distribution: AnyDensity, forward: BijectorKind | AnyBijector | Callable[[Array], Array] | None = None,
        inverse: Callable[[Array], Array] | None = None, log_det_jacobian: Callable[[Array], Array] | None = None, *,
        bijector: AnyBijector | None = None,
    ) -> None:  # fmt: skip
        if not (hasattr(distribution, "log_prob") and hasattr(distribution, "sample")):
            raise DomainError(sentence(ME, "a density is needed", type(distribution).__name__))
        given = forward if bijector is None else bijector
        if isinstance(given, str):
            given = Bijector(given)
        if not isinstance(given, Bijector | FunctionBijector):
            if not callable(given):
                expected = "forward must be a Bijector, its name, or a function of rows"
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

    def take(self, index: ArrayLike) -> Transformed:
        """Members `index` as a stack."""
        return self.replace(distribution=self.distribution.take(index))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of the base distribution."""
        return int(self.distribution.n_parameters)

    @cached_property
    def _discrete(self) -> bool:
        return is_discrete(self.distribution if self.members is None else self.distribution.member(0))

    # ---------------------------------------------------------------- density

    def log_prob(self, y: ArrayLike) -> Array:
        """Log-density of rows (n, d): (n,), or (n, K) for a stack; −inf outside the image of g."""
        y = sliceable(y, self.dim)

        def evaluate(block: Any) -> Array:
            x, impossible = self._inverse(rows(block, self.dim, ME))
            with np.errstate(all="ignore"):
                logs = np.asarray(self.distribution.log_prob(x), dtype=np.float64)
                if not self._discrete:
                    log_det = self.bijector.log_det_jacobian(x)
                    logs = logs - (log_det[:, None] if logs.ndim == 2 else log_det)
            logs[impossible] = -np.inf
            return logs

        return map_rows(evaluate, y, self.members)

    def _inverse(self, y: Array) -> tuple[Array, Array]:
        """Rows x = g⁻¹(y), and a mask of rows outside the image of g, which are NaN in x."""
        refuse_infinite(y, ME)
        missing = np.isnan(y)
        if missing.any() and not self.bijector.elementwise:
            i, j = np.argwhere(missing)[0]
            expected = "a bijector that mixes columns needs complete rows"
            raise DataError(sentence(ME, expected, f"NaN at row {i}, column {j}", "impute first"))
        x = self.bijector.inverse(y)
        if self._discrete:
            whole = np.rint(x)
            x = np.where(np.abs(x - whole) <= 1e-9 * np.maximum(1.0, np.abs(whole)), whole, x)
        impossible = (~np.isfinite(x) & ~missing).any(axis=1)
        x[impossible] = np.nan
        return x, impossible

    def sample(self, n: int, rng: Generator) -> Array:
        """Random samples (n, d), or (n, K, d) for a stack."""
        x = np.asarray(self.distribution.sample(n, rng), dtype=np.float64)
        flat = x.reshape(-1, self.dim)
        return self.bijector.forward(flat).reshape(x.shape if x.ndim > 1 else (n, 1))

    # ---------------------------------------------------------------- moments

    def cdf(self, y: ArrayLike) -> Array:
        """Cumulative distribution function P(Y ≤ y) in one column; (n, K) for a stack."""
        self._one_column("cdf")
        z = one_column(y, None)
        flat = np.atleast_1d(z).reshape(-1, 1)
        x = self.bijector.inverse(flat)[:, 0]
        found = np.asarray(self.distribution.cdf(np.where(np.isnan(x), 0.0, x)), dtype=np.float64)
        if not self.bijector.is_increasing:
            found = 1.0 - found
            if self._discrete:
                found = found + np.exp(self.distribution.log_prob(np.where(np.isnan(x), 0.0, x)[:, None]))
        beyond = np.where(flat[:, 0] > self._some_value, 1.0, 0.0)  # outside the image: below or above all values
        beyond = np.where(np.isnan(flat[:, 0]), np.nan, beyond)
        outside = np.isnan(x)[:, None] if found.ndim == 2 else np.isnan(x)
        out = np.where(outside, beyond[:, None] if found.ndim == 2 else beyond, found)
        return out.reshape((*np.shape(z), *out.shape[1:]))

    @cached_property
    def _some_value(self) -> float:
        return float(np.median(self.sample(65, np.random.default_rng(0)).ravel()))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantile function (inverse CDF) in one column; (n, K) for a stack."""
        self._one_column("quantile")
        p = np.asarray(p, dtype=np.float64)
        x = np.asarray(self.distribution.quantile(p if self.bijector.is_increasing else 1.0 - p), dtype=np.float64)
        return self.bijector.forward(x.reshape(-1, 1)).reshape(x.shape)

    def _one_column(self, what: str) -> None:
        if self.dim != 1 or not hasattr(self.distribution, what):
            expected = f"{what} is defined for one column, if the base distribution has one"
            raise DomainError(sentence(ME, expected, f"{self.dim} columns of {type(self.distribution).__name__}"))

    @property
    def mean(self) -> PerMember:
        """Mean E[y]: closed form for affine transforms and the log-normal distribution, else sum or quadrature."""
        if isinstance(self.bijector, Bijector) and self.bijector.kind == "affine":
            inner = np.atleast_1d(np.asarray(self.distribution.mean, dtype=np.float64))
            return lone(self.bijector.forward(np.atleast_2d(inner)).reshape(inner.shape).squeeze())
        if self._lognormal:
            return lone(np.exp(self.distribution.mean + 0.5 * self.distribution.variance).squeeze())
        return self._expected(lambda y: y)

    @property
    def variance(self) -> PerMember:
        """Variance per column, computed like the mean."""
        if isinstance(self.bijector, Bijector) and self.bijector.kind == "affine":
            c = self.bijector.scale
            variance = c**2 * np.asarray(self.distribution.variance) if c.ndim < 2 else np.diagonal(
                c @ self.distribution.covariance_matrix @ c.T, axis1=-2, axis2=-1)  # fmt: skip
            return lone(np.squeeze(variance))
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
    def median(self) -> PerMember:
        """Median: g of the median of x."""
        return lone(np.squeeze(self.quantile(0.5)))

    def entropy(self, bits: bool = False) -> PerMember:
        """Entropy H[y] = H[x] + E[log |det ∂g/∂x|]; H[x] for a discrete distribution."""
        if self.members is not None:
            return in_units(np.array([self.member(k).entropy() for k in range(self.members)]), bits)
        return in_units(float(self._entropy_estimate(100_000, np.random.default_rng(0)).value), bits)

    def _entropy_estimate(self, n: int, rng: Generator) -> Estimate:
        """Entropy with its standard error, which is positive where a term is estimated by Monte Carlo."""
        from likely.distributions.entropy import added, entropy

        return added([entropy(self.distribution, n=n, rng=rng), self._mean_log_det_jacobian(n, rng)])

    def _mean_log_det_jacobian(self, n: int, rng: Generator) -> Estimate:
        """E[log |det ∂g/∂x|]; 0 for a discrete distribution."""
        kind = self.bijector.kind if isinstance(self.bijector, Bijector) else ""
        if self._discrete:
            return Estimate(0.0, 0.0)
        if kind == "affine":
            return Estimate(float(self.bijector.log_det_jacobian(np.zeros((1, self.dim)))[0]), 0.0)
        if kind == "exp" and hasattr(self.distribution, "mean"):
            return Estimate(float(np.sum(self.distribution.mean)), 0.0)
        if self.dim == 1:
            return Estimate(self._expected_inside(lambda x: self.bijector.log_det_jacobian(x[:, None])), 0.0)
        logs = self.bijector.log_det_jacobian(np.asarray(self.distribution.sample(n, rng), dtype=np.float64))
        return Estimate(float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(n))

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
        """E[f(x)] under the base distribution, by sum or quadrature."""
        support = look(self.distribution)
        if isinstance(support, Atoms):
            values = np.asarray(support.values, dtype=np.float64)
            return float(np.exp(support.log_probs) @ f(values[:, 0] if values.ndim == 2 else values))
        found = integral(support, self.distribution, lambda x, logs: f(x)) if isinstance(support, Line) else None
        if found is None:
            remedy = "use expect, which samples"
            raise DomainError(sentence(ME, "moments are integrated for one column only", f"{self.dim}", remedy))
        return found[0]

    # --------------------------------------------------------------- learning

    @classmethod
    def blank(
        cls, x: Rows, distribution: Any = Gaussian, change: BijectorKind | AnyBijector = "exp",
        **options: Any,
    ) -> Transformed:  # fmt: skip
        """Initial model: a blank base distribution for the inversely transformed rows, with bijector `change`.

        >>> rows = np.exp([[0.0], [1.0], [2.0]])
        >>> Transformed.fit(rows, distribution=Gaussian, change="exp").distribution.mean
        array([1.])
        """
        change = Bijector(change) if isinstance(change, str) else change
        inner = change.inverse(rows(x, None, ME))
        return cls(distribution.blank(inner, **options), change)

    def collect(self, x: Rows, weight: ArrayLike | None = None, labels: Index | None = None) -> TransformedStats:
        """Statistics of the base distribution for x = g⁻¹(y), and the sum of the log Jacobian determinants."""
        y = rows(x, self.dim, ME)
        w = weights(weight, n_rows(x), ME)
        inner, impossible = self._inverse(y)
        if impossible.any():
            i = int(np.argmax(impossible))
            raise DataError(sentence(ME, "rows must lie in the image of the bijector", f"{y[i].tolist()} at row {i}"))
        log_det = np.zeros(len(y)) if self._discrete else self.bijector.log_det_jacobian(inner)
        named = {} if labels is None else {"labels": labels}
        return TransformedStats.trusted(
            components=self.distribution.collect(inner, w, **named),
            slope=_weighted_sum(log_det, w, labels, self.members),
        )

    def refit(self, stats: TransformedStats, prior: AnyPrior | None = None) -> Transformed:
        """Refit of the base distribution; the bijector is unchanged."""
        return self.replace(distribution=self.distribution.refit(stats.components, prior))

    def objective(self, stats: TransformedStats, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the transformed rows (+ log prior)."""
        return float(self.distribution.objective(stats.components, prior)) - float(np.sum(stats.slope))

    @property
    def log_smoothing(self) -> float:
        """Log density of the smoothing of the base distribution."""
        return float(getattr(self.distribution, "log_smoothing", 0.0))

    def weak_prior(self, stats: TransformedStats) -> Any:
        """Weakly informative prior of the base distribution."""
        return self.distribution.weak_prior(stats.components)


@dataclass(frozen=True, eq=False)
class TransformedStats(Addable, Value):
    """Statistics of the base distribution, and the sum of the log Jacobian determinants of the rows."""

    components: Annotated[Any, declared.stats]
    slope: Annotated[Array, declared.numbers("*")]  # () or (K,): Σ w log |det ∂g/∂x|

    @property
    def complete(self) -> bool:
        """True if the base statistics are of complete rows."""
        return bool(self.components.complete)

    @property
    def filled(self) -> bool:
        """True if missing entries were filled by a model."""
        return bool(getattr(self.components, "filled", False))

    @property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return float(self.components.total_weight)

    def __add__(self, other: TransformedStats) -> TransformedStats:
        return TransformedStats.trusted(components=self.components + other.components, slope=self.slope + other.slope)

    def __mul__(self, factor: float) -> TransformedStats:
        return TransformedStats.trusted(components=self.components * factor, slope=self.slope * factor)

    __rmul__ = __mul__

    def pooled(self) -> TransformedStats:
        """Statistics of the rows of all members together."""
        return TransformedStats.trusted(components=self.components.pooled(), slope=np.asarray(self.slope.sum()))

    def member(self, k: int) -> TransformedStats:
        """The statistics of one member."""
        return TransformedStats.trusted(components=self.components.member(k), slope=np.asarray(self.slope[k]))


def _weighted_sum(log_det: Array, w: Array | None, labels: Index | None, members: int | None) -> Array:
    """Σ w log |det ∂g/∂x| per member."""
    if members is None:
        return np.asarray(log_det.sum() if w is None else w @ log_det)
    if labels is not None:
        own = np.asarray(labels)
        return np.asarray(
            np.bincount(own[own >= 0], (log_det if w is None else log_det * w)[own >= 0], members), np.float64
        )
    if w is None or w.ndim == 1:
        return np.full(members, log_det.sum() if w is None else w @ log_det)
    return np.asarray(w.T @ log_det)


def _of_functions(distribution: Any, forward: Any, inverse: Any, log_det_jacobian: Any) -> FunctionBijector:
    low, high = _ends(distribution) if inverse is None else (-FAR, FAR)
    change = FunctionBijector.trusted(
        function=forward, back=inverse, slope=log_det_jacobian, low=low, high=high, is_increasing=True
    )
    if int(getattr(distribution, "dim", 1)) == 1:
        refuse_nonmonotone(distribution, change)
        change = change.replace(is_increasing=_rises(distribution, change))
    refuse_wrong_inverse(distribution, change)
    return change


def _rises(distribution: Any, change: FunctionBijector) -> bool:
    one = distribution if getattr(distribution, "members", None) is None else distribution.member(0)
    a, b = change.forward(np.quantile(points_of_support(one), [0.25, 0.75])[:, None]).ravel()
    if not (math.isfinite(a) and math.isfinite(b)):
        raise DomainError(sentence(ME, "forward must be finite between the quartiles of the distribution", (a, b)))
    return bool(b >= a)


def _ends(distribution: Any) -> tuple[float, float]:
    """Bounds of the search for an inverse: the ends of the support, or ±FAR."""
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
