"""Bahadur–Lazarsfeld expansion: independent Bernoulli columns, corrected by correlations of second and higher order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, Mask, parameter
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.distributions.binary.binary_expansion import width_of
from likely.distributions.binary.positive_part import TruncatedExpansion
from likely.distributions.binary.sign_products import (
    SignSums,
    checked_order,
    expanded,
    number_of_sets,
    numbers_of,
    sets_of,
)
from likely.distributions.binary.walsh import warn_of_missing_values, warn_of_negative
from likely.numerics.walsh_hadamard import all_cells


@dataclass(frozen=True, eq=False)
class Bahadur(TruncatedExpansion):
    """Bahadur–Lazarsfeld expansion of the distribution of dependent binary columns.

    p(x) = Π pⱼ^xⱼ (1 − pⱼ)^(1−xⱼ) · (1 + Σ_{i<j} r_ij zᵢ zⱼ + Σ r_ijk zᵢ zⱼ z_k + …), z = (x − p)/√(p (1 − p)).

    r_S = E[Π_{j ∈ S} zⱼ] are the correlations of two and more columns. With sets of all d columns this is any
    distribution of binary columns; of order 1 it is `Bernoulli`. Truncated in between, **it can be negative**: `value`
    shows the expansion; the distribution is its positive part, as with `Walsh`. Missing entries (NaN) are summed out. A
    constant column (p = 0 or 1) has no correlations. Orders above 1 take at most 20 columns.

    Parameters
    ----------
    probs : array-like (d,) or (K, d)
        Probabilities of a 1.
    correlations : array-like (M,) or (K, M)
        Correlations r_S of all sets of at most `order` columns: 1 for the empty set, 0 for single columns, then those
        of pairs and larger sets.
    dim : int, optional
        Number of columns d; by default that of `probs`.
    order : int, default 2
        Largest number of columns of a set.

    See Also
    --------
    Walsh : Expansion without standardized columns.
    LogLinear : A model that stays positive.
    BahadurDensity : The estimator.

    References
    ----------
    Bahadur (1961); Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> distribution = Bahadur([0.5, 0.5], [1.0, 0.0, 0.0, 0.6])          # of the empty set, x₁, x₂ and the pair
    >>> distribution.value([[0, 0], [0, 1], [1, np.nan]])
    array([0.4, 0.1, 0.5])
    """

    probs: Annotated[Array, declared.numbers("* d", 0)]  # (d,) or (K, d)
    # (M,) or (K, M): 1 for the empty set, 0 for single columns, then pairs, …
    correlations: Annotated[Array, declared.numbers("* M")]
    dim: Annotated[int, declared.count] = 0
    order: Annotated[int, declared.count] = 2

    objective_name = "log-likelihood to second order"
    _arrays = ("probs", "correlations")

    def __post_init__(self) -> None:
        probs = parameter(self.probs, "Bahadur", "probs")
        if probs.ndim not in (1, 2) or 0 in probs.shape or self.dim not in (0, probs.shape[-1]):
            raise ShapeError(sentence("Bahadur", "probs must have shape (d,) or (K, d), and d be dim", probs.shape))
        if ((probs < 0) | (probs > 1)).any():
            raise DomainError(sentence("Bahadur", "probabilities must lie in 0 … 1", float(probs.min())))
        self._set(dim=int(probs.shape[-1]))
        r, order = self._sized("correlations", "Bahadur")
        if r.shape[:-1] != probs.shape[:-1]:
            raise ShapeError(sentence("Bahadur", "probs and correlations must have the same members", r.shape))
        if (r[..., 0] != 1).any() or (r[..., 1 : self.dim + 1] != 0).any():
            raise DomainError(sentence("Bahadur", "correlations begin with 1, then 0 for each single column"))
        self._set(probs=probs, correlations=r, order=order)

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, order: int = 2) -> Bahadur:
        """Initial model: independent columns with p = ½, as many as the rows have."""
        d = width_of(x, "Bahadur")
        order = checked_order(d, order, "Bahadur")
        lead = () if members is None else (members,)
        r = np.zeros((*lead, number_of_sets(d, order)))
        r[..., 0] = 1.0
        return cls.trusted(probs=np.full((*lead, d), 0.5), correlations=r, dim=d, order=order)

    # ---------------------------------------------------------------- density

    def value(self, x: ArrayLike) -> Array:
        """The expansion itself, possibly negative; NaN entries are summed out.

        Returns
        -------
        ndarray (n,)
            Values of the expansion; (n, K) for a stack of K members.
        """

        def score(z: Array, observed: Mask, binary: Mask) -> Array:
            return np.stack([np.exp(base) * sums for base, sums in self._each(z, observed, binary)], axis=1)

        return self._mapped(score, x)

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows; −inf where the expansion is not positive."""
        negative = 0
        cut = self._positive is not None

        def score(z: Array, observed: Mask, binary: Mask) -> Array:
            nonlocal negative
            if cut:
                p = self._from_cells(z, observed, binary)
                negative += int(((p <= 0) & binary[:, None]).any(axis=1).sum())
                with np.errstate(divide="ignore"):
                    return np.asarray(np.log(p))
            out, below = [], np.zeros(len(z), dtype=bool)
            for base, sums in self._each(z, observed, binary):
                below |= (sums <= 0) & np.isfinite(base)
                out.append(base + np.log(np.where(sums > 0, sums, 0.0)))
            negative += int(below.sum())
            return np.stack(out, axis=1)

        out = self._mapped(score, x)
        if negative:
            warn_of_negative("Bahadur", negative, self.members)
        return out

    def _each(self, z: Array, observed: Mask, binary: Mask) -> list[tuple[Array, Array]]:
        """For each member: log-probability under independence (n,), and the correction factor (n,)."""
        found = []
        for p, r in zip(np.atleast_2d(self.probs), np.atleast_2d(self.correlations), strict=True):
            with np.errstate(divide="ignore"):
                logs = np.where(z > 0, np.log(p), np.log1p(-p))
            base = np.where(observed, logs, 0.0).sum(axis=1)
            base[~binary] = -np.inf
            found.append((base, expanded(_standard(z, observed, p), r[None], self.order)[:, 0]))
        return found

    def _raw_cells(self) -> Array:
        return np.atleast_2d(self.value(all_cells(self.dim)).T)

    def _surely_positive(self) -> bool:
        return self.order == 1 or not self.correlations[..., self.dim + 1 :].any()

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack, from the positive part."""
        if self.order > 1:
            return super().sample(n, rng)
        return (rng.random((n, *self.probs.shape)) < self.probs).astype(np.float64)

    @property
    def mean(self) -> Array:
        """Probability of a 1 in each column."""
        found = self._mean_of_cells()
        return self.probs if found is None else found

    @property
    def n_parameters(self) -> int:
        """Free parameters: the probabilities and the correlations."""
        return int(self.probs.size + self.correlations[..., self.dim + 1 :].size)

    # --------------------------------------------------------------- learning

    def refit(self, stats: SignSums, prior: Any = None) -> Bahadur:
        """Relative frequencies, and means of products of standardized columns.

        >>> b = Bahadur.blank([[0, 0]])
        >>> b.refit(b.collect([[0, 0], [1, 1], [1, 1], [0, 0], [0, 1]])).correlations.round(4)
        array([1.    , 0.    , 0.    , 0.6667])
        """
        if prior is not None:
            self._check(stats)
            return self.refit(prior.update(stats).stats)
        self._refuse_nothing(stats)
        warn_of_missing_values(stats, "Bahadur")
        observed = stats.weight[..., 1 : self.dim + 1] > 0
        probs = np.where(observed, 0.5 * (1.0 + stats.mean[..., 1 : self.dim + 1]), self.probs)
        r = self.replace(probs=probs)._standardized(stats)
        r[..., 0], r[..., 1 : self.dim + 1] = 1.0, 0.0
        return self.replace(probs=self._kept(probs, stats, "probs"), correlations=self._kept(r, stats, "correlations"))

    def _standardized(self, stats: SignSums) -> Array:
        """Mean of Π zⱼ over the rows (..., M), z standardized by this distribution's probabilities.

        Π (sⱼ − mⱼ) over signs s is a sum of products of signs over the subsets of S.
        """
        raw, m = stats.mean, 2 * self.probs - 1
        raw[..., 0] = 1.0
        spread = np.sqrt(np.maximum(1 - m**2, 0.0))
        found = [raw[..., :1], np.zeros_like(m)]
        for sets in sets_of(self.dim, self.order)[1:]:
            found.append(_central(raw, m, sets, self.dim))
            scale = np.prod(spread[..., sets], axis=-1)
            found[-1] = np.divide(found[-1], scale, out=np.zeros_like(scale), where=scale > 0)
        out = np.concatenate(found, axis=-1)
        return np.where(stats.weight > 0, out, 0.0)

    def objective(self, stats: SignSums, prior: AnyPrior | None = None) -> float:
        """The log-likelihood to second order in r: Σ n₁ log p + n₀ log(1 − p) + N Σ_S (r_S r̂_S − ½ r_S²).

        r̂_S is the mean of Π z over the rows, where the sum over S has its maximum. A truncated expansion has no
        likelihood in terms of these statistics: it may be negative.
        """
        self._check(stats)
        n, s = stats.weight[..., 1 : self.dim + 1], stats.total[..., 1 : self.dim + 1]
        ones, zeros = 0.5 * (n + s), 0.5 * (n - s)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(zeros > 0, zeros * np.log1p(-self.probs), 0.0)
        value = float((xlogy(ones, self.probs) + rest).sum())
        r, found = self.correlations[..., self.dim + 1 :], self._standardized(stats)[..., self.dim + 1 :]
        value += float((stats.weight[..., self.dim + 1 :] * (r * found - 0.5 * r**2)).sum())
        return value if prior is None else value + float(np.sum(prior.log_density(self)))


def _standard(z: Array, observed: Mask, p: Array) -> Array:
    """(x − p)/√(p (1 − p)) from signs, 0 for missing values and constant columns."""
    spread = np.sqrt(p * (1 - p))
    safe = np.where(spread > 0, spread, 1.0)
    return np.where(observed & (spread > 0), (0.5 * (z + 1.0) - p) / safe, 0.0)


def _central(raw: Array, m: Array, sets: Any, d: int) -> Array:
    """E[Π (sⱼ − mⱼ)], expanded: Σ_{T ⊆ S} E[Π_T s] Π_{S∖T} (−m)."""
    size = sets.shape[1]
    out = np.zeros((*raw.shape[:-1], len(sets)))
    for k in range(size + 1):
        for kept in combinations(range(size), k):
            rest = [c for c in range(size) if c not in kept]
            out += raw[..., numbers_of(sets[:, list(kept)], d)] * np.prod(-m[..., sets[:, rest]], axis=-1)
    return out
