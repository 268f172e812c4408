"""Log-linear (Ising) model of at most 20 binary columns: all cells are summed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from likely.core import declared
from likely.core.arrays import Array, Mask, PerMember
from likely.core.errors import DomainError, ShapeError, sentence
from likely.core.protocols import AnyPrior
from likely.distributions.binary.binary_expansion import SignDistribution, width_of
from likely.distributions.binary.log_linear_fit import all_log_cells, exact_log_z, independent, most_likely
from likely.distributions.binary.positive_part import completions, rows_from_table
from likely.distributions.binary.sign_products import (
    EXACT,
    SignSums,
    checked_order,
    each_share,
    expanded,
    number_of_sets,
    places,
)
from likely.distributions.categorical.sparse_counts import rows_with_weight
from likely.distributions.distribution import in_units, lone
from likely.distributions.statistics.counts import per_member
from likely.numerics.walsh_hadamard import expectations


@dataclass(frozen=True, eq=False)
class LogLinear(SignDistribution):
    """Log-linear model of binary columns; of second order the Ising model.

    log p(x) = Σ_S b_S Π_{j ∈ S} (2xⱼ − 1), over sets S of at most `order` columns.

    A log-linear model with interactions up to that order; the first weight is −log Z. Order 1 is `Bernoulli`, order 2
    the Ising model (fully visible Boltzmann machine) of spins 2xⱼ − 1 with fields and couplings, order d any positive
    distribution.

    Everything is exact: all 2ᵈ cells are summed, maximum likelihood is a convex problem, and missing values (NaN) are
    integrated out. So orders above 1 take at most 20 columns; order 1, independent columns, any number. For pairs of
    more columns there is `ChowLiuTree`.

    Parameters
    ----------
    weights : array-like (M,) or (K, M)
        Weights b_S of all sets of at most `order` columns: first of the empty set (−log Z), then of single
        columns, pairs and larger sets.
    dim : int, default 1
        Number of columns d.
    order : int, default 2
        Largest number of columns of a set.

    See Also
    --------
    Walsh : Expansion of p(x) itself.
    ChowLiuTree : Pairs of more than 20 columns.
    WalshDensity : The estimator, with log=True.

    References
    ----------
    Ney, lecture notes, 2.6.2.

    Examples
    --------
    >>> distribution = LogLinear.normalized([0.0, 0.0, 0.0, 0.5], 2)       # two columns that like to be alike
    >>> np.exp(distribution.log_prob([[0, 0], [0, 1], [1, np.nan]])).round(4)
    array([0.3655, 0.1345, 0.5   ])
    """

    # (M,) or (K, M): −log Z, then fields of single columns, couplings of pairs, …
    weights: Annotated[Array, declared.numbers("* M")]
    dim: Annotated[int, declared.count] = 1
    order: Annotated[int, declared.count] = 2

    _arrays = ("weights",)

    def __post_init__(self) -> None:
        b, order = self._sized("weights", "LogLinear")
        self._set(weights=b, order=order)
        with np.errstate(all="ignore"):
            off = max(abs(_log_z(one, self.dim, order) + one[0]) for one in np.atleast_2d(b))
        if not off <= 1e-6 * (1.0 + float(np.abs(b).max())):
            remedy = "build it by LogLinear.normalized"
            raise DomainError(sentence("LogLinear", "the first weight must be −log Z", f"off by {off:.3g}", remedy))

    @classmethod
    def normalized(cls, weights: ArrayLike, dim: int, order: int = 2) -> LogLinear:
        """The distribution with these weights, with the first of them replaced by −log Z.

        Parameters
        ----------
        weights : array-like (M,) or (K, M)
            Weights of all sets of at most `order` columns.
        dim : int
            Number of columns.
        order : int, default 2
            Largest number of columns of a set.
        """
        b = np.array(weights, dtype=np.float64)
        b[..., 0] = 0.0
        b, order = cls.trusted(weights=b, dim=dim, order=order)._sized("weights", "LogLinear")
        b = np.array(b)
        for one in np.atleast_2d(b):
            one[0] = -_log_z(one, dim, order)
        return cls.trusted(weights=b, dim=dim, order=order)

    @classmethod
    def even(cls, dim: int, order: int = 2, members: int | None = None) -> LogLinear:
        """The uniform distribution over all cells.

        Parameters
        ----------
        dim : int
            Number of columns.
        order : int, default 2
            Largest number of columns of a set.
        """
        order = checked_order(dim, order, "LogLinear")
        b = np.zeros((*(() if members is None else (members,)), number_of_sets(dim, order)))
        b[..., 0] = -dim * np.log(2.0)
        return cls.trusted(weights=b, dim=dim, order=order)

    @classmethod
    def blank(cls, x: ArrayLike, members: int | None = None, order: int = 2) -> LogLinear:
        """Initial model: uniform, with as many columns as the rows have."""
        return cls.even(width_of(x, "LogLinear"), order, members)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: ArrayLike) -> Array:
        """Log-density log p(x) of rows. NaN is missing."""

        def score(z: Array, observed: Mask, binary: Mask) -> Array:
            out = expanded(z, np.atleast_2d(self.weights), self.order)
            incomplete = np.flatnonzero(~observed.all(axis=1))
            if len(incomplete):
                out[incomplete] = self._marginal(z[incomplete], observed[incomplete])
            return np.where(binary[:, None], out, -np.inf)

        return self._mapped(score, x)

    def _marginal(self, z: Array, observed: Mask) -> Array:
        """Log marginal probability of the observed entries of incomplete rows (n, K)."""
        out = np.zeros((len(z), self.members or 1))
        if self.order == 1:
            b = np.atleast_2d(self.weights)[:, 1:]
            return np.asarray(z @ b.T - observed @ np.logaddexp(b, -b).T)
        for some, cells in completions(z, observed, self.dim):
            for k, logs in enumerate(self._log_cells):
                out[some, k] = logsumexp(logs[cells], axis=1)
        out[~observed.any(axis=1)] = 0.0
        return out

    @cached_property
    def _log_cells(self) -> list[Array]:
        return [all_log_cells(one, self.dim, self.order) for one in np.atleast_2d(self.weights)]

    def _cell_sizes(self) -> Array:
        return np.stack(self._log_cells)

    @property
    def probabilities(self) -> Array:
        """Probabilities of all cells 0…00, 0…01, … (2ᵈ,), or (K, 2ᵈ) for a stack; for at most 20 columns."""
        if self.dim > EXACT:
            raise DomainError(sentence("LogLinear", f"cells are listed for at most {EXACT} columns", self.dim))
        cells = np.exp(np.stack(self._log_cells))
        return cells if self.members else cells[0]

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack."""
        each = [self._drawn(k, n, rng) for k in range(self.members or 1)]
        return np.stack(each, axis=1) if self.members else each[0]

    def _drawn(self, k: int, n: int, rng: Generator) -> Array:
        b = np.atleast_2d(self.weights)[k]
        if self.order == 1:
            return (rng.random((n, self.dim)) < 1.0 / (1.0 + np.exp(-2.0 * b[1:]))).astype(np.float64)
        return rows_from_table(np.exp(self._log_cells[k]), self.dim, n, rng)

    # ---------------------------------------------------------------- moments

    @cached_property
    def mean(self) -> Array:
        """Probability of a 1 in each column."""
        if self.order == 1:
            return 1.0 / (1.0 + np.exp(-2.0 * self.weights[..., 1:]))
        singles = 1 << np.arange(self.dim)[::-1]
        return 0.5 * (1.0 + expectations(self.probabilities)[..., singles])

    def entropy(self, bits: bool = False) -> PerMember:
        """−Σ p log p over all cells; one per member for a stack."""
        if self.order == 1:
            b = self.weights[..., 1:]
            return in_units(lone((np.logaddexp(b, -b) - b * np.tanh(b)).sum(axis=-1)), bits)
        p = self.probabilities
        logs = np.stack(self._log_cells) if self.members else self._log_cells[0]
        return in_units(lone(-(p * logs).sum(axis=-1)), bits)

    def kl(self, other: LogLinear, bits: bool = False) -> PerMember:
        """KL(self ‖ other) over all cells; member by member for stacks."""
        if other.dim != self.dim:
            raise ShapeError(sentence("LogLinear.kl", f"both distributions must have {self.dim} columns", other.dim))
        if self.order == other.order == 1:
            return in_units(lone(self._kl_of_coins(other)), bits)
        mine, yours = np.stack(self._log_cells), np.stack(other._log_cells)
        each = (np.exp(mine) * (mine - yours)).sum(axis=-1)
        return in_units(lone(each if self.members else each[0]), bits)

    def _kl_of_coins(self, other: LogLinear) -> Array:
        """Σⱼ E[z] (b − c) − log Z + log Z′ for order 1, where columns are independent."""
        b, c = self.weights[..., 1:], other.weights[..., 1:]
        each = np.tanh(b) * (b - c) - np.logaddexp(b, -b) + np.logaddexp(c, -c)
        return np.asarray(np.maximum(each, 0.0).sum(axis=-1))

    @property
    def n_parameters(self) -> int:
        """Free parameters: all weights but −log Z."""
        return int(self.weights[..., 1:].size)

    # --------------------------------------------------------------- learning

    def _summed(self, z: Array, observed: Mask, shares: Any) -> SignSums:
        whole = observed.all(axis=1)
        if whole.all() or self.order == 1:  # independent columns each use their observed entries
            return super()._summed(z, observed, shares)
        at, incomplete = np.flatnonzero(whole), np.flatnonzero(~whole & rows_with_weight(shares))
        stats = super()._summed(z[at], observed[at], shares[:, at])
        if not len(incomplete):
            return stats
        return stats + self._expected(z[incomplete], observed[incomplete], shares[:, incomplete])

    def _expected(self, z: Array, observed: Mask, shares: Any) -> SignSums:
        """Expected products of incomplete rows, and the entropy of their missing entries."""
        K, logs = self.members or 1, self._log_cells
        cells, entropy = np.zeros((K, 1 << self.dim)), np.zeros(K)
        share = np.stack(list(each_share(shares)))
        share = np.broadcast_to(share, (K, len(z)))
        for some, completing in completions(z, observed, self.dim):
            for k in range(K):
                part = logs[k][completing]
                whole = logsumexp(part, axis=1)
                p = np.exp(part - whole[:, None])
                np.add.at(cells[k], completing, share[k, some, None] * p)
                entropy[k] += share[k, some] @ (whole - (p * part).sum(axis=1))
        total = expectations(cells)[:, places(self.dim, self.order)]
        weight = np.repeat(share.sum(axis=1)[:, None], total.shape[1], axis=1)
        total = np.clip(total, -weight, weight)
        total[:, 0] = weight[:, 0]
        parts = {"weight": weight, "total": total, "entropy": entropy}
        parts = {name: per_member(part, self.members) for name, part in parts.items()}
        return SignSums.trusted(**parts, dim=self.dim, order=self.order, complete=False)

    def refit(self, stats: SignSums, prior: Any = None) -> LogLinear:
        """Maximum likelihood: the weights whose expectations equal the means of the data.

        >>> distribution = LogLinear.even(2)
        >>> better = distribution.refit(distribution.collect([[0, 0], [1, 1], [1, 1], [0, 1], [1, 0]]))
        >>> better.probabilities.round(6)
        array([0.2, 0.2, 0.2, 0.4])
        """
        if prior is not None:
            self._check(stats)
            return self.refit(prior.update(stats).stats)
        self._refuse_nothing(stats)
        each = zip(np.atleast_2d(stats.mean), np.atleast_2d(self.weights), np.atleast_1d(stats.rows), strict=True)
        found = np.stack([self._most_likely(mean, b) if n > 0 else b for mean, b, n in each])
        return self.replace(weights=found if self.members else found[0])

    def _most_likely(self, mean: Array, start: Array) -> Array:
        return independent(mean, self.dim) if self.order == 1 else most_likely(mean, start, self.dim, self.order)

    def objective(self, stats: SignSums, prior: AnyPrior | None = None) -> float:
        """Log-likelihood of the statistics, Σ_S b_S Σ w φ_S, plus the entropy of missing entries (+ log prior)."""
        self._check(stats)
        if self.order == 1:
            b = self.weights[..., 1:]
            each = b * stats.total[..., 1:] - np.logaddexp(b, -b) * stats.weight[..., 1:]
            value = float(each.sum())
        else:
            value = float((self.weights * stats.total).sum() + np.sum(stats.entropy))
        return value if prior is None else value + float(np.sum(prior.log_density(self)))


def _log_z(b: Array, d: int, order: int) -> float:
    """log Z of weights (M,)."""
    return float(np.logaddexp(b[1:], -b[1:]).sum()) if order == 1 else exact_log_z(b, d, order)
