"""Log-linear (Ising) model of binary columns: exact up to 20 columns, beyond by Monte Carlo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from likely.core import declared
from likely.core.arrays import Array, Index, Mask
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.distributions.binary.annealed_importance_sampling import (
    SEED,
    annealed_draws,
    annealed_enough,
    tell_of_error,
)
from likely.distributions.binary.binary_expansion import SignDistribution, width_of
from likely.distributions.binary.log_linear_fit import EXACT, all_log_cells, exact_log_z, independent, most_likely
from likely.distributions.binary.log_linear_pairs import exact_candidates, learned_pairs
from likely.distributions.binary.log_linear_update import ENOUGH, Averages, chains_of, moved_pairs
from likely.distributions.binary.persistent_chains import PersistentChains
from likely.distributions.binary.positive_part import completions
from likely.distributions.binary.sign_products import (
    SignSums,
    checked_order,
    each_share,
    expanded,
    number_of_sets,
    places,
)
from likely.distributions.binary.variable_elimination import Eliminated, drawn_by_elimination, eliminated
from likely.distributions.distribution import in_units, lone
from likely.distributions.statistics.counts import per_member
from likely.numerics.walsh_hadamard import expectations


@dataclass(frozen=True, eq=False)
class LogLinear(SignDistribution):
    """Log-linear model of binary columns; of second order the Ising model.

    log p(x) = Σ_S b_S Π_{j ∈ S} (2xⱼ − 1), over sets S of at most `order` columns   (Ney 2.6.2).

    A log-linear model with interactions up to that order; the first weight is −log Z. Order 1 is `Bernoulli`, order 2
    the Ising model (fully visible Boltzmann machine) of spins 2xⱼ − 1 with fields and couplings, order d any positive
    distribution.

    **Up to 20 columns everything is exact**: all 2ᵈ cells are summed, maximum likelihood is a convex problem, and
    missing values (NaN) are integrated out. **With more columns**, order 1 is exact, too. Order 2 is fitted with
    persistent Gibbs chains under a heavy-tailed prior of the couplings, whose width is chosen by an estimate of the
    held-out likelihood; a Chow–Liu forest or independent columns are kept where they are estimated to be better. log Z
    is estimated by annealed importance sampling, and `error` is its standard error, with a warning above 0.2; for
    sparse coupling graphs it is exact, by variable elimination. Missing values and higher orders are refused.

    >>> distribution = LogLinear.normalized([0.0, 0.0, 0.0, 0.5], 2)       # two columns that like to be alike
    >>> np.exp(distribution.log_prob([[0, 0], [0, 1], [1, np.nan]])).round(4)
    array([0.3655, 0.1345, 0.5   ])
    """

    # (M,) or (K, M): −log Z, then fields of single columns, couplings of pairs, …
    weights: Annotated[Array, declared.numbers("* M")]
    dim: Annotated[int, declared.count] = 1
    order: Annotated[int, declared.count] = 2
    error: Annotated[Any, declared.numbers("*", 0)] = 0.0  # (...): standard error of log Z; 0 where it is exact

    _arrays = ("weights", "error")

    def __post_init__(self) -> None:
        b, order = self._sized("weights", "LogLinear")
        _refuse_high(self.dim, order)
        error = np.asarray(self.error, dtype=np.float64)
        error = np.zeros(b.shape[:-1]) if error.ndim == 0 and not error.any() else error
        if error.shape != b.shape[:-1] or not (np.isfinite(error).all() and (error >= 0).all()):
            raise DomainError(sentence("LogLinear", "error must be one nonnegative number per member", error.shape))
        self._set(weights=b, order=order, error=np.array(error))
        if self.dim <= EXACT or order == 1:
            with np.errstate(all="ignore"):
                off = max(abs(_log_z(one, self.dim, order) + one[0]) for one in np.atleast_2d(b))
            if not off <= 1e-6 * (1.0 + float(np.abs(b).max())):
                remedy = "build it by LogLinear.normalized"
                raise DomainError(sentence("LogLinear", "the first weight must be −log Z", f"off by {off:.3g}", remedy))

    @classmethod
    def normalized(cls, weights: Any, dim: int, order: int = 2) -> LogLinear:
        """The distribution with these weights (M,) or (K, M), with the first of them replaced by −log Z."""
        b = np.array(weights, dtype=np.float64)
        b[..., 0] = 0.0
        self = cls.trusted(weights=b, dim=dim, order=order, error=np.zeros(b.shape[:-1]))
        b, order = self._sized("weights", "LogLinear")
        _refuse_high(dim, order)
        found = [_normalized(one, dim, order) for one in np.atleast_2d(b)]
        return _stacked(found, dim, order, None if b.ndim == 1 else len(b))

    @classmethod
    def even(cls, dim: int, order: int = 2, members: int | None = None) -> LogLinear:
        """The uniform distribution over all cells."""
        order = checked_order(dim, order, "LogLinear")
        _refuse_high(dim, order)
        b = np.zeros((*(() if members is None else (members,)), number_of_sets(dim, order)))
        b[..., 0] = -dim * np.log(2.0)
        return cls.trusted(weights=b, dim=dim, order=order, error=np.zeros(b.shape[:-1]))

    @classmethod
    def blank(cls, x: Any, members: int | None = None, order: int = 2) -> LogLinear:
        """Initial model: uniform, with as many columns as the rows have."""
        return cls.even(width_of(x, "LogLinear"), order, members)

    # ---------------------------------------------------------------- density

    def log_prob(self, x: Any) -> Array:
        """log p(x) for rows (n, d): (n,), or (n, K) for a stack. NaN is missing."""

        def score(z: Array, observed: Mask, binary: Mask) -> Array:
            out = expanded(z, np.atleast_2d(self.weights), self.order)
            incomplete = np.flatnonzero(~observed.all(axis=1))
            if len(incomplete):
                out[incomplete] = self._marginal(z[incomplete], observed[incomplete])
            return np.where(binary[:, None], out, -np.inf)

        return self._mapped(score, x)

    def _marginal(self, z: Array, observed: Mask) -> Array:
        """log marginal probability of the observed entries of incomplete rows (n, K)."""
        out = np.zeros((len(z), self.members or 1))
        if self.order == 1:
            b = np.atleast_2d(self.weights)[:, 1:]
            return np.asarray(z @ b.T - observed @ np.logaddexp(b, -b).T)
        for some, cells in self._filled(z, observed):
            for k, logs in enumerate(self._log_cells):
                out[some, k] = logsumexp(logs[cells], axis=1)
        out[~observed.any(axis=1)] = 0.0
        return out

    def _filled(self, z: Array, observed: Mask) -> Iterator[tuple[Index, Index]]:
        """Groups of rows with the same missing entries, and the cells that complete them (n, 2^missing)."""
        self._refuse_gaps(z, observed)
        return completions(z, observed, self.dim)

    def _refuse_gaps(self, z: Array, observed: Mask) -> None:
        if self.dim > EXACT:
            j = int(np.argwhere(~observed)[0, 1])
            expected = f"missing values are integrated out in at most {EXACT} columns"
            remedy = "impute them first, or use ChowLiuTreeDensity or BernoulliDensity"
            raise DataError(sentence("LogLinear", expected, f"NaN in column {j} of {self.dim}", remedy))

    @cached_property
    def _log_cells(self) -> list[Array]:
        return [all_log_cells(one, self.dim, self.order) for one in np.atleast_2d(self.weights)]

    @cached_property
    def _eliminated(self) -> list[Eliminated | None]:
        """Variable elimination for each member, where the coupling graph is sparse enough."""
        return [eliminated(one, self.dim) for one in np.atleast_2d(self.weights)]

    def _cell_sizes(self) -> Array:
        return np.stack(self._log_cells)

    @property
    def probabilities(self) -> Array:
        """p of all cells 0…00, 0…01, … (2ᵈ,), or (K, 2ᵈ) for a stack; for at most 20 columns."""
        if self.dim > EXACT:
            raise DomainError(sentence("LogLinear", f"cells are listed for at most {EXACT} columns", self.dim))
        cells = np.exp(np.stack(self._log_cells))
        return cells if self.members else cells[0]

    def sample(self, n: int, rng: Generator) -> Array:
        """Draws (n, d), or (n, K, d) for a stack.

        Exact up to 20 columns, for order 1 and for sparse coupling graphs; else final states of annealed Gibbs chains,
        resampled by importance weight.
        """
        each = [self._drawn(k, n, rng) for k in range(self.members or 1)]
        return np.stack(each, axis=1) if self.members else each[0]

    def _drawn(self, k: int, n: int, rng: Generator) -> Array:
        b = np.atleast_2d(self.weights)[k]
        if self.order == 1:
            return (rng.random((n, self.dim)) < 1.0 / (1.0 + np.exp(-2.0 * b[1:]))).astype(np.float64)
        if self.dim > EXACT:
            exact = self._eliminated[k]
            if exact is not None:
                return drawn_by_elimination(exact, n, rng)
            return (annealed_draws(b, self.dim, n, rng) > 0).astype(np.float64)
        edges = np.cumsum(np.exp(self._log_cells[k]))
        at = np.minimum(np.searchsorted(edges, rng.random(n) * edges[-1], side="right"), len(edges) - 1)
        return ((at[:, None] >> np.arange(self.dim)[::-1]) & 1).astype(np.float64)

    # ---------------------------------------------------------------- moments

    @cached_property
    def mean(self) -> Array:
        """Probability of a 1 in each column; by Monte Carlo with more than 20 columns and order 2."""
        if self.order == 1:
            return 1.0 / (1.0 + np.exp(-2.0 * self.weights[..., 1:]))
        if self.dim > EXACT:
            return self.sample(1000, np.random.default_rng(SEED)).mean(axis=0)
        singles = 1 << np.arange(self.dim)[::-1]
        return 0.5 * (1.0 + expectations(self.probabilities)[..., singles])

    def entropy(self, bits: bool = False) -> Any:
        """−Σ p log p over all cells; one per member for a stack."""
        if self.order == 1:
            b = self.weights[..., 1:]
            return in_units(lone((np.logaddexp(b, -b) - b * np.tanh(b)).sum(axis=-1)), bits)
        if self.dim > EXACT:
            remedy = "lk.entropy(distribution) estimates it by Monte Carlo, with its error"
            expected = f"cells are summed for at most {EXACT} columns"
            raise DomainError(sentence("LogLinear.entropy", expected, self.dim, remedy))
        p = self.probabilities
        logs = np.stack(self._log_cells) if self.members else self._log_cells[0]
        return in_units(lone(-(p * logs).sum(axis=-1)), bits)

    def kl(self, other: LogLinear, bits: bool = False) -> Any:
        """KL(self ‖ other) over all cells; member by member for stacks."""
        if other.dim != self.dim:
            raise ShapeError(sentence("LogLinear.kl", f"both distributions must have {self.dim} columns", other.dim))
        if self.order == other.order == 1:
            return in_units(lone(self._kl_of_coins(other)), bits)
        if self.dim > EXACT:
            remedy = "lk.kl_divergence(distribution, other) estimates it by Monte Carlo, with its error"
            raise DomainError(
                sentence("LogLinear.kl", f"cells are summed for at most {EXACT} columns", self.dim, remedy)
            )
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
        at, incomplete = np.flatnonzero(whole), np.flatnonzero(~whole)
        self._refuse_gaps(z, observed)
        stats = super()._summed(z[at], observed[at], shares[:, at])
        return stats + self._expected(z[incomplete], observed[incomplete], shares[:, incomplete])

    def _expected(self, z: Array, observed: Mask, shares: Any) -> SignSums:
        """Expected products of incomplete rows, and the entropy of their missing entries."""
        K, logs = self.members or 1, self._log_cells
        cells, entropy = np.zeros((K, 1 << self.dim)), np.zeros(K)
        share = np.stack(list(each_share(shares)))
        share = np.broadcast_to(share, (K, len(z)))
        for some, completing in self._filled(z, observed):
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
        """Maximum likelihood: the weights whose expectations equal the means of the data (approximately beyond 20).

        >>> distribution = LogLinear.even(2)
        >>> better = distribution.refit(distribution.collect([[0, 0], [1, 1], [1, 1], [0, 1], [1, 0]]))
        >>> better.probabilities.round(6)
        array([0.2, 0.2, 0.2, 0.4])
        """
        if prior is not None:
            self._check(stats)
            return self.refit(prior.update(stats).stats)
        self._refuse_nothing(stats)
        mean, rows = np.atleast_2d(stats.mean), np.atleast_1d(stats.rows)
        old, error = np.atleast_2d(self.weights), np.atleast_1d(self.error)
        found = [
            _learned(m, float(n), b, self.dim, self.order) if n > 0 else (b, float(e), np.inf)
            for m, b, n, e in zip(mean, old, rows, error, strict=True)
        ]
        distribution = _stacked([(b, e) for b, e, _ in found], self.dim, self.order, self.members)
        distribution.__dict__["_precisions"] = [precision for *_, precision in found]
        return distribution

    _precisions: ClassVar[list[float] | None] = None  # of the selected prior, right after a fit

    def refit_from(self, stats: SignSums, before: SignSums) -> LogLinear:
        """The model refitted after a small change of the statistics from `before`, by a warm start.

        Newton's method continues from here, to 1e-5 nats per row; beyond 20 columns one Newton step with the covariance
        estimated from chains, under the selected prior.
        """
        if self.order == 1 or (self.dim > EXACT and self._precisions is None):
            return self.refit(stats)
        now, was = _averages(stats), _averages(before)
        found = [self._moved(k, now[k], was[k]) for k in range(self.members or 1)]
        return _stacked(found, self.dim, self.order, self.members)

    def _moved(self, k: int, now: Averages, was: Averages) -> tuple[Array, float]:
        b, error = np.atleast_2d(self.weights)[k], float(np.atleast_1d(self.error)[k])
        if not now.rows > 0:
            return b, error
        if self.dim <= EXACT:
            return most_likely(now.mean, b, self.dim, self.order, ENOUGH), 0.0
        chains, precision = self._persistent_chains[k]
        if chains is None:
            return exact_candidates(now.mean, now.rows, self.dim).weights, 0.0
        return moved_pairs(chains, -float(b[0]), precision, was, now), error

    @cached_property
    def _persistent_chains(self) -> list[tuple[PersistentChains | None, float]]:
        """For each member fitted by chains: the chains, and the precision of the prior."""
        each = zip(np.atleast_2d(self.weights), self._precisions or [], strict=True)
        return [(chains_of(one, self.dim) if np.isfinite(precision) else None, precision) for one, precision in each]

    def objective(self, stats: SignSums, prior: Any = None) -> float:
        """Log-likelihood of the statistics, Σ_S b_S Σ w φ_S, plus the entropy of missing entries (+ log prior)."""
        self._check(stats)
        if self.order == 1:
            b = self.weights[..., 1:]
            each = b * stats.total[..., 1:] - np.logaddexp(b, -b) * stats.weight[..., 1:]
            value = float(each.sum())
        else:
            value = float((self.weights * stats.total).sum() + np.sum(stats.entropy))
        return value if prior is None else value + float(np.sum(prior.log_density(self)))


def _refuse_high(d: int, order: int) -> None:
    if d > EXACT and order > 2:
        expected = f"with more than {EXACT} columns the order is 1 or 2"
        remedy = "lower the order, leave columns out, or use WalshDensity(log=False)"
        raise DomainError(sentence("LogLinear", expected, f"order {order} of {d} columns", remedy))


def _learned(mean: Array, n: float, start: Array, d: int, order: int) -> tuple[Array, float, float]:
    """Weights (M,) with −log Z first, the standard error of log Z, and the precision of the selected prior."""
    if order == 1:
        return independent(mean, d), 0.0, np.inf
    if d <= EXACT:
        return most_likely(mean, start, d, order), 0.0, np.inf
    found = learned_pairs(mean, n, d)
    return found.weights, found.error, found.precision


def _averages(stats: SignSums) -> list[Averages]:
    """The mean products of each member."""
    rows = np.atleast_1d(stats.rows).tolist()
    return [Averages(mean, n) for mean, n in zip(np.atleast_2d(stats.mean), rows, strict=True)]


def _log_z(b: Array, d: int, order: int) -> float:
    """log Z where it is exact: of order 1, or for few columns."""
    return float(np.logaddexp(b[1:], -b[1:]).sum()) if order == 1 else exact_log_z(b, d, order)


def _normalized(b: Array, d: int, order: int) -> tuple[Array, float]:
    b, error = b.copy(), 0.0
    if order == 1 or d <= EXACT:
        b[0] = -_log_z(b, d, order)
    elif (exact := eliminated(b, d)) is not None:
        b[0] = -exact.log_z
    else:
        found = annealed_enough(b, d, np.random.default_rng(SEED))
        b[0], error = -found.log_z, found.error
        tell_of_error(error)
    return b, error


def _stacked(found: list[tuple[Array, float]], d: int, order: int, members: int | None) -> LogLinear:
    b, error = np.stack([one for one, _ in found]), np.array([e for _, e in found])
    b, error = (b, error) if members else (b[0].copy(), np.array(error[0]))
    return LogLinear.trusted(weights=b, dim=d, order=order, error=error)
