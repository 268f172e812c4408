"""A mixture: which member a row came from is hidden, or, in a classifier, was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import xlogy

from likely.core.arrays import Array, Index, n_rows, owners, parameter, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.columns import Columns
from likely.core.engine import Threads, map_rows
from likely.core.stats import Addable
from likely.core.value import Value
from likely.errors import DataError, DomainError, ShapeError, sentence
from likely.families.gaussian import Gaussian
from likely.families.law import Law

SUM_TO_ONE = 1e-9
WHOLE = 16  # parts up to which any law may take many rows with owners at once: some need a number a row and part


@dataclass(frozen=True, eq=False)
class Mixture(Law):
    """p(x) = Σ_k w_k p_k(x), and p(k | x) = w_k p_k(x) / p(x)   (Ney 6.1, Herbst 7.3).

    `parts` is a stack of K members: a classifier has one a class. With labels given (`owner`) learning takes one
    pass; with labels hidden it is EM; with some of them given (`given`, a log-mask) it is both at once.
    Where a row is impossible under every member, the posterior is the prior.

    >>> import likely as lk
    >>> m = Mixture([0.5, 0.5], lk.Gaussian([[0.0], [4.0]], 1.0))
    >>> m.posterior([[0.0], [2.0]]).round(2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    weights: Array  # (K,)
    parts: Any  # a stack of K members

    def __post_init__(self) -> None:
        w = parameter(self.weights, "Mixture", "weights")
        members = getattr(self.parts, "members", None)
        if members is None or w.shape != (members,):
            expected = "parts must be a stack with one weight a member"
            raise ShapeError(sentence("Mixture", expected, f"{w.shape} weights, {members} members"))
        if (w < 0).any() or abs(w.sum() - 1) > SUM_TO_ONE:
            raise DomainError(sentence("Mixture", "weights must not be negative and sum to 1", w.tolist()))
        self._set(weights=w)

    @property
    def members(self) -> None:
        """None: a mixture is one density (its parts are the stack)."""

    @property
    def dim(self) -> int:
        """Number of columns of a row."""
        return int(self.parts.dim)

    @property
    def size(self) -> int:
        """Number of parts K."""
        return len(self.weights)

    @property
    def n_parameters(self) -> int:
        """Those of the parts, and K − 1 weights."""
        return int(self.parts.n_parameters) + self.size - 1

    @cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def with_weights(self, weights: Any) -> Mixture:
        """The same parts with other probabilities: a class prior changed after training."""
        return Mixture(weights, self.parts)

    # ---------------------------------------------------------------- density

    def log_joint(self, x: Any) -> Array:
        """log w_k p_k(x) of each row under each part (n, K)."""
        return self._over(x, self._joint, self.size)

    def log_prob(self, x: Any) -> Array:
        """log Σ_k w_k p_k(x) of each row (n,)."""
        return self._over(x, lambda block: _log_total(self._joint(block)), None)

    def log_posterior(self, x: Any) -> Array:
        """log p(k | x) of each row (n, K), in float64 whatever the rows are: costs weigh small probabilities."""
        return self._over(x, lambda block: self._settled(self._joint(block)), self.size, np.float64)

    def posterior(self, x: Any) -> Array:
        """p(k | x) of each row (n, K): one exponential each, where exp(log_posterior) would take two."""
        return self._over(x, lambda block: self._shares(self._joint(block)), self.size, np.float64)

    def _over(self, x: Any, f: Callable[[Any], Array], columns: int | None, dtype: Any = None) -> Array:
        x = _rows_like(x)
        n = n_rows(x)
        if n > ROWS and isinstance(self.parts, Gaussian):
            self.parts.prepare(n)
        return map_rows(f, x, columns, dtype)

    def most_probable(self, block: Any) -> Index:
        """The part of the largest posterior for each row of a block (n,)."""
        joint = self._joint(block)
        best = joint.argmax(axis=1)
        none = np.isneginf(joint[np.arange(len(best)), best])
        if none.any():  # no part can explain these: the prior decides
            best[none] = self.weights.argmax()
        return best

    def _joint(self, block: Any) -> Array:
        if isinstance(block, np.ndarray) and block.dtype == np.float32:
            block = block.astype(np.float64)
        out = self._score(block)
        out += self._log_weights
        return out

    @cached_property
    def _score(self) -> Callable[[Any], Array]:
        """log p_k(x) of a block's rows (n, K): what stays in cache needs no second cutting into blocks."""
        return getattr(self.parts, "log_prob_block", self.parts.log_prob)

    def _settled(self, joint: Array) -> Array:
        joint -= np.maximum.reduce(joint, axis=1, keepdims=True)
        joint -= np.log(np.add.reduce(np.exp(joint), axis=1, keepdims=True))
        return self._prior_where_none(joint, self._log_weights)

    def _shares(self, joint: Array) -> Array:
        with np.errstate(invalid="ignore"):
            joint -= np.maximum.reduce(joint, axis=1, keepdims=True)
            np.exp(joint, out=joint)
            joint /= np.add.reduce(joint, axis=1, keepdims=True)
        return self._prior_where_none(joint, self.weights)

    def _prior_where_none(self, posterior: Array, prior: Array) -> Array:
        none = np.isnan(posterior[:, 0]).nonzero()[0]  # −inf − (−inf): a row that no part can explain
        if len(none):
            posterior[none] = prior
        return posterior

    def sample(self, n: int, rng: Generator) -> Any:
        """n rows, each from a part drawn by weight."""
        return self.sample_labelled(n, rng)[0]

    def sample_labelled(self, n: int, rng: Generator) -> tuple[Any, Index]:
        """n rows, and the part that each came from."""
        label = np.sort(rng.choice(self.size, n, p=self.weights / self.weights.sum()))
        counts = np.bincount(label, minlength=self.size)
        draws = [self.parts.member(k).sample(int(c), rng) for k, c in enumerate(counts) if c]
        order = rng.permutation(n)
        return (_stacked(draws)[order] if draws else self.parts.member(0).sample(0, rng)), label[order]

    # --------------------------------------------------------------- learning

    takes_parts = True  # `collect` cuts them for itself, as suits its parts and what is known of the labels

    def collect(
        self, x: Any, weight: Any = None, owner: Index | None = None, given: Array | None = None
    ) -> MixtureStats:
        """Weight of each part, and the parts' statistics: of the rows that each owns, or of its share of every row.

        `owner` (n,) is the part that each row came from (−1: nobody); `given` (n, K) a log-mask, 0 where a row
        may come from a part and −inf where not. Without `owner` this is an E-step at this model.
        """
        n = n_rows(x)
        w = weights(weight, n, "Mixture")
        if w is not None and w.ndim == 2:
            raise ShapeError(sentence("Mixture", f"weight must have one entry a row ({n})", w.shape))
        whole = owner is not None and (isinstance(self.parts, Gaussian) or self.size <= WHOLE)
        if n > (ROWS * BLOCKS if whole else ROWS):
            blocks = Blocks.of(x, w, owner=owner, given=given)
            blocks = blocks.whole() if whole else blocks
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.owner, b.given), blocks)
        if owner is not None:
            return self._seen(x, w, owners(owner, n, self.size, "Mixture"))
        return self._hidden(x, w, given)

    def _seen(self, x: Any, w: Array | None, owner: Index) -> MixtureStats:
        counts = np.bincount(owner + 1, w, self.size + 1)[1:].astype(np.float64)  # the first are nobody's
        parts = self.parts.collect(x, w, owner=owner)
        return MixtureStats.trusted(counts=counts, parts=parts, entropy=np.zeros(()), seen=True)

    def _hidden(self, x: Any, w: Array | None, given: Array | None) -> MixtureStats:
        with np.errstate(all="ignore"):
            joint = self._joint(x)
            shares = self._shares(joint if given is None else joint + given)
        entropy = -xlogy(shares, shares).sum(axis=1)
        shares = shares if w is None else shares * w[:, None]
        total = entropy.sum() if w is None else entropy @ w
        parts = self.parts.collect(x, shares)
        return MixtureStats.trusted(counts=shares.sum(axis=0), parts=parts, entropy=np.asarray(total), seen=False)

    def refit(self, stats: MixtureStats, prior: Any = None) -> Mixture:
        """Weights by relative frequency (or their posterior mode), and each part from its own statistics."""
        total = stats.counts.sum()
        of_weights, of_parts = (None, None) if prior is None else (prior.weights, prior.parts)
        if of_weights is not None:
            w = of_weights.update(level_counts(stats.counts)).point("mode").probs
        elif total > 0:
            w = stats.counts / total
        else:
            raise DataError(sentence("Mixture", "at least one row with weight is needed", "none", "or give a prior"))
        return Mixture.trusted(weights=np.array(w), parts=self.parts.refit(stats.parts, of_parts))

    def objective(self, stats: MixtureStats, prior: Any = None) -> float:
        """Expected log-likelihood + entropy of the hidden labels + log prior."""
        of_parts = None if prior is None else prior.parts
        value = float(xlogy(stats.counts, self.weights).sum() + stats.entropy)
        value += float(self.parts.objective(stats.parts, of_parts))
        if prior is not None and prior.weights is not None:
            value += float(prior.weights.log_density(categorical(self.weights)))
        return value

    def weak_prior(self, stats: MixtureStats) -> Any:
        """The parts' weak prior; the weights, which counts determine well, have none."""
        from likely.models.mixture_prior import MixturePrior

        return MixturePrior(None, self.parts.weak_prior(stats.parts))


@dataclass(frozen=True, eq=False)
class MixtureStats(Addable, Value):
    """How much each part explains, and each part's own statistics."""

    counts: Array  # (K,)
    parts: Any
    entropy: Array  # (): of the hidden labels, in nats
    seen: bool = True  # the labels were given

    @property
    def complete(self) -> bool:
        """True if neither labels nor entries were hidden."""
        return bool(self.seen and self.parts.complete)

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.counts.sum())

    def __add__(self, other: MixtureStats) -> MixtureStats:
        return MixtureStats.trusted(
            counts=self.counts + other.counts, parts=self.parts + other.parts,
            entropy=np.asarray(self.entropy + other.entropy), seen=self.seen and other.seen,
        )  # fmt: skip

    def __mul__(self, factor: float) -> MixtureStats:
        return self.replace(
            counts=self.counts * factor, parts=self.parts * factor, entropy=np.asarray(self.entropy * factor)
        )

    __rmul__ = __mul__


def _log_total(joint: Array) -> Array:
    top = joint.max(axis=1)
    joint -= top[:, None]
    total = np.log(np.exp(joint, out=joint).sum(axis=1)) + top
    return np.where(np.isneginf(top), -np.inf, total)


def _stacked(draws: list[Any]) -> Any:
    if isinstance(draws[0], Columns):
        return Columns({name: _stacked([d[name] for d in draws]) for name in draws[0]})
    return np.concatenate(draws)


def level_counts(counts: Array) -> Any:
    """Weights of parts as counts of levels: what a Dirichlet law learns from."""
    from likely.families.categorical import LevelCounts

    return LevelCounts.trusted(counts=counts, rows=np.asarray(counts.sum()))


def categorical(probs: Array) -> Any:
    """Weights as a law over the parts."""
    from likely.families.categorical import Categorical

    return Categorical.trusted(probs=probs, levels=None)


def _rows_like(x: Any) -> Any:
    """Something with rows that can be sliced: a plain dict or list is converted."""
    if hasattr(x, "shape"):
        return x
    return Columns.of(x) if isinstance(x, dict) else np.asarray(x, dtype=np.float64)
