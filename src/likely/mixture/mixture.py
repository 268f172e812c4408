"""Finite mixture models: density, posterior probabilities of the components, and the E- and M-step of EM.

`collect` is the E-step, `refit` the M-step; the EM loop is `core/em_loop.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import xlogy

from likely.core import declared
from likely.core.arrays import Array, Index, Rows, checked_labels, n_rows, parameter, rows, sliceable, weights
from likely.core.blocks import BLOCKS, ROWS, Blocks
from likely.core.columns import Columns
from likely.core.engine import Threads, map_rows
from likely.core.errors import DataError, DomainError, ShapeError, sentence
from likely.core.fit_report import EMPTY
from likely.core.job_size import job
from likely.core.ragged import Ragged
from likely.core.stats import Addable
from likely.core.value import Value
from likely.distributions.distribution import REMEDIES, Distribution, NotKnown
from likely.distributions.downdating import less, without
from likely.distributions.gaussian.fused_em_sweep import shared_sweep
from likely.distributions.gaussian.gaussian import Gaussian
from likely.distributions.gaussian.moments import Moments
from likely.distributions.priors.initial_moments import softened
from likely.distributions.stacks.stack import side_by_side
from likely.distributions.stacks.stack_statistics import joined
from likely.distributions.stacks.tied import one_covariance, untied
from likely.distributions.statistics.counts import one_column
from likely.mixture.fixed_weights import FixedWeights
from likely.mixture.mixture_moments import (
    gaussian_quantiles,
    is_circular,
    mixed_cdf,
    mixed_covariance,
    mixed_mean,
    mixed_quantile,
    mixed_variance,
)
from likely.mixture.responsibilities import ResponsibilityAccumulator, weighted_responsibilities

SUM_TO_ONE = 1e-9
FLOOR = 1e-12  # weight of a component that a sparse prior has emptied
WHOLE = 16  # components up to which any distribution may take many labeled rows at once: some store (n, K) numbers


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """Mixture distribution of K components.

    p(x) = Σ_k w_k p_k(x), and p(k | x) = w_k p_k(x) / p(x).

    A classifier has one component per class. With given labels (`labels`) learning takes one pass; with hidden labels
    it is EM; with partially known labels (`log_mask`) it is semi-supervised EM. Where a row has density 0 under every
    component, the posterior is the prior. A stack of C mixtures, of M components each, has weights (C, M) over one
    stack of C·M: one mixture per class.

    Parameters
    ----------
    weights : array-like (K,) or (C, M)
        Weights of the components.
    components : stack
        Densities p_k: a stack of K, or C·M, members.

    See Also
    --------
    MixtureDensity : The estimator.
    MixturePrior : The prior.

    References
    ----------
    Bishop (2006), chapter 9; Ney, lecture notes, 6.1; Herbst and du Preez, lecture notes, 7.3.

    Examples
    --------
    >>> import likely as lk
    >>> m = Mixture([0.5, 0.5], lk.Gaussian([[0.0], [4.0]], 1.0))
    >>> m.posterior([[0.0], [2.0]]).round(2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    weights: Annotated[Array, declared.numbers("* K", 0)]  # (K,), or (C, M) for a stack of C mixtures
    components: Annotated[Any, declared.density]  # a stack of K, or C·M, members

    def __post_init__(self) -> None:
        w = parameter(self.weights, "Mixture", "weights")
        members = getattr(self.components, "members", None)
        if members is None or w.ndim not in (1, 2) or w.size != members or not members:
            expected = "components must be a stack with one weight per member"
            raise ShapeError(sentence("Mixture", expected, f"{w.shape} weights, {members} members"))
        if (w < 0).any() or (np.abs(w.sum(axis=-1) - 1) > SUM_TO_ONE).any():
            raise DomainError(sentence("Mixture", "weights must not be negative and sum to 1", w.tolist()))
        self._set(weights=w)

    def in_words(self) -> str:
        """The number and the kind of its components."""
        return f"a mixture of {self.size} components, each {self.components.in_words()}"

    def location_words(self, names: list[str] | None = None) -> str:
        """The number of components, and the mean of all."""
        return ", mean ".join(filter(None, [f"{self.size} components", super().location_words(names)]))

    @property
    def members(self) -> int | None:
        """Number of mixtures C in a stack; None for one mixture, whatever the number of its components."""
        return len(self.weights) if self.weights.ndim == 2 else None

    def member(self, c: int) -> Mixture:
        """One mixture of a stack.

        Parameters
        ----------
        c : int
            Position in the stack, from 0.
        """
        M = self.size
        return Mixture.trusted(
            weights=self.weights[c].copy(), components=self.components.take(np.arange(c * M, (c + 1) * M))
        )

    def take(self, index: Any) -> Mixture:
        """Some mixtures, as a stack."""
        if self.members is None:
            remedy = "take components: Mixture(weights, mixture.components.take(index))"
            raise DomainError(sentence("Mixture.take", "a stack of mixtures is needed", "one mixture", remedy))
        at = np.asarray(index)[:, None] * self.size + np.arange(self.size)
        return Mixture.trusted(weights=self.weights[index], components=self.components.take(at.ravel()))

    @property
    def smallest_eigenvalue(self) -> float | None:
        """The smallest eigenvalue of any component's covariance, where components have covariances."""
        return getattr(self.components, "smallest_eigenvalue", None)

    @property
    def of_sequences(self) -> bool:  # type: ignore[override]
        """Whether a row is a sequence, as the components define it."""
        return bool(getattr(self.components, "of_sequences", False))

    @property
    def dim(self) -> int:
        """Number of columns per row."""
        return int(self.components.dim)

    @property
    def size(self) -> int:
        """Number of components K of a mixture."""
        return int(self.weights.shape[-1])

    @property
    def n_parameters(self) -> int:
        """Free parameters of the components, and K − 1 weights per mixture."""
        return int(self.components.n_parameters) + (self.size - 1) * (self.members or 1)

    @cached_property
    def _log_weights(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.weights.ravel())

    def with_weights(self, weights: Any) -> Mixture:
        """The same components with other weights: class priors changed after training.

        Parameters
        ----------
        weights : array-like (K,) or (C, M)
            The new weights.

        Returns
        -------
        Mixture
            The new mixture.
        """
        return Mixture(weights, self.components)

    # ---------------------------------------------------------------- density

    def log_joint(self, x: Rows) -> Array:
        """Log joint density log w_k p_k(x) of each row under each component.

        Returns
        -------
        ndarray (n, K)
            Logarithms.
        """
        return self._map_rows(x, self.log_joint_block, self.weights.size)

    def log_prob(self, x: Rows) -> Array:
        """Log-density log Σ_k w_k p_k(x) of each row: (n,), or (n, C) for a stack."""
        return self._map_rows(x, self.log_prob_block, self.members)

    def log_prob_block(self, block: Any) -> Array:
        """The same for a block of rows that fits into the cache; the caller has set np.errstate to ignore."""
        joint = self.log_joint_block(block)
        return _logsumexp(joint) if self.members is None else self._log_prob_per_mixture(joint)

    def log_posterior(self, x: Rows) -> Array:
        """Log posterior probabilities log p(k | x) of each row, in float64 also for float32 rows.

        Returns
        -------
        ndarray (n, K)
            Logarithms; the exponentials of each row sum to 1.
        """
        self._require_single("log_posterior")
        return self._map_rows(
            x, lambda block: self.log_responsibilities(self.log_joint_block(block)), self.size, np.float64
        )

    def posterior(self, x: Rows) -> Array:
        """Posterior probabilities p(k | x) of each row.

        One exponential per entry; exp(log_posterior) would take two.

        Returns
        -------
        ndarray (n, K)
            Probabilities.
        """
        self._require_single("posterior")
        return self._map_rows(x, lambda block: self._shares(self.log_joint_block(block)), self.size, np.float64)

    def _require_single(self, doing: str) -> None:
        if self.members is not None:
            expected = f"{doing} is defined for one mixture"
            raise DomainError(sentence("Mixture", expected, f"a stack of {self.members}", "take member(c) first"))

    def _map_rows(self, x: Any, f: Callable[[Any], Array], columns: int | None, dtype: Any = None) -> Array:
        x = self._rows_like(x)
        x = sliceable(x, self.dim) if isinstance(x, np.ndarray | np.number) else x
        with job(self._work(n_rows(x))):
            return map_rows(f, x, columns, dtype)

    def _rows_like(self, x: Any) -> Any:
        """Data whose rows can be sliced: sequences where components are densities of sequences, else a table."""
        if self.of_sequences:
            return Ragged.of(x)
        if hasattr(x, "shape") or isinstance(x, Ragged):
            return x
        return Columns.of(x) if isinstance(x, dict) else np.asarray(x, dtype=np.float64)

    def most_probable(self, block: Any) -> Index:
        """The component of largest posterior probability for each row of a block.

        Returns
        -------
        ndarray of int (n,)
            Numbers of components.
        """
        joint = self.log_joint_block(block)
        best = joint.argmax(axis=1)
        none = np.isneginf(joint[np.arange(len(best)), best])
        if none.any():  # density 0 under every component: the prior decides
            best[none] = self.weights.argmax()
        return best

    def log_joint_block(self, block: Any) -> Array:
        z = _as_float64(block)
        if not self._scores_blocks:  # of another package, perhaps: its array may be cached, or read-only
            return np.asarray(self.components.log_prob(z) + self._log_weights)
        out: Array = self.components.log_prob_block(z)
        out += self._log_weights
        return out

    def _best_joint(self, block: Any) -> Array:
        """The same where components that are mixtures count by their own best component, as in hard EM."""
        if not getattr(self.components, "hides_labels", False):
            return self.log_joint_block(block)
        return np.asarray(self.components.best_log_prob(_as_float64(block)) + self._log_weights)

    def best_log_prob(self, block: Any) -> Array:
        """Log of the largest w_k p_k(x) of each row.

        Returns
        -------
        ndarray (n,)
            Logarithms; (n, C) for a stack of C mixtures.
        """
        joint = self._best_joint(block).reshape(-1, *self.weights.shape)
        return np.asarray(joint.max(axis=-1))

    @cached_property
    def _scores_blocks(self) -> bool:
        """Whether components have `log_prob_block`: of one block, without cutting it again, an array of its own."""
        return hasattr(self.components, "log_prob_block")

    def _log_prob_per_mixture(self, joint: Array) -> Array:
        """Log-density of each row under each mixture of a stack (n, C)."""
        logs = joint.T.reshape(len(self.weights), self.size, -1)
        top = logs.max(axis=1)
        logs -= top[:, None, :]
        total = np.log(np.exp(logs, out=logs).sum(axis=1)) + top
        return np.where(np.isneginf(top), -np.inf, total).T

    def log_responsibilities(self, joint: Array) -> Array:
        joint -= np.maximum.reduce(joint, axis=1, keepdims=True)
        joint -= np.log(np.add.reduce(np.exp(joint), axis=1, keepdims=True))
        return self._prior_where_impossible(joint, self._log_weights)

    def _shares(self, joint: Array) -> Array:
        with np.errstate(invalid="ignore"):
            joint -= np.maximum.reduce(joint, axis=1, keepdims=True)
            np.exp(joint, out=joint)
            joint /= np.add.reduce(joint, axis=1, keepdims=True)
        return self._prior_where_impossible(joint, self.weights)

    def _prior_where_impossible(self, posterior: Array, prior: Array) -> Array:
        none = np.isnan(posterior[:, 0]).nonzero()[0]  # −inf − (−inf): density 0 under every component
        if len(none):
            posterior[none] = prior
        return posterior

    def sample(self, n: int, rng: Generator, **how: Any) -> Any:
        """Random samples, each from a component drawn by weight; a stack gives (n, C, …)."""
        if self.members is not None:
            return side_by_side([self.member(c).sample(n, rng, **how) for c in range(self.members)])
        return self.sample_labeled(n, rng, **how)[0]

    def sample_labeled(self, n: int, rng: Generator, **how: Any) -> tuple[Any, Index]:
        """Random samples and the component of each.

        Returns
        -------
        samples : ndarray (n, d)
            Samples.
        labels : ndarray of int (n,)
            Components.
        """
        label = np.sort(rng.choice(self.size, n, p=self.weights / self.weights.sum()))
        counts = np.bincount(label, minlength=self.size)
        draws = [self.components.member(k).sample(int(c), rng, **how) for k, c in enumerate(counts) if c]
        order = rng.permutation(n)
        return (_stacked(draws)[order] if draws else self.components.member(0).sample(0, rng)), label[order]

    # ------------------------------------------------------- moments, quantiles

    @property
    def mean(self) -> Array:
        """Σ_k w_k E_k[x]: (d,), or (C, d) for a stack."""
        return mixed_mean(self.weights, self.components)

    @property
    def variance(self) -> Array:
        """Variance of each column, within and between components: (d,), or (C, d) for a stack."""
        return mixed_variance(self.weights, self.components)

    @property
    def covariance(self) -> Array:
        """Covariance, within and between components: (d, d), or (C, d, d) for a stack."""
        try:
            return mixed_covariance(self.weights, self.components)
        except DomainError as error:
            raise NotKnown(str(error)) from error

    @property
    def cdf(self) -> Callable[[Any], Array]:
        """P(X ≤ x) of numbers, for univariate components that have it; (n, C) for a stack.

        >>> import likely as lk
        >>> two = lk.Mixture([0.5, 0.5], lk.Gaussian([[0.0], [4.0]], 1.0))
        >>> two.cdf([2.0]), two.quantile(0.5).round(6).tolist(), two.mean, two.variance
        (array([0.5]), 2.0, array([2.]), array([5.]))
        """
        self._require_univariate("cdf")
        return lambda x: mixed_cdf(self.weights, self.components, one_column(x, None))

    @property
    def quantile(self) -> Callable[[Any], Array]:
        """The smallest x with P(X ≤ x) ≥ p, for univariate components that have it; (n, C) for a stack."""
        self._require_univariate("quantile")
        return self._quantile

    def _quantile(self, p: Any) -> Array:
        p = np.asarray(p, dtype=np.float64)
        if self.members is not None and isinstance(self.components, Gaussian):
            return gaussian_quantiles(self.weights, self.components, p)
        if self.members is not None:
            return np.stack([one._quantile(p) for one in self._mixtures], axis=-1)
        return mixed_quantile(self.weights, self.components, p)

    @property
    def median(self) -> Array:
        """The median of a univariate mixture: (1,), or (C, 1) for a stack."""
        self._require_univariate("median")
        return np.asarray(self._quantile(0.5))[..., None]

    def _require_univariate(self, name: str) -> None:
        """Raise `NotKnown`, so that `hasattr` is False, unless the components are univariate with cdf and quantile."""
        can = all(hasattr(self.components.member(0), verb) for verb in ("cdf", "quantile"))
        if self.dim != 1 or not can or is_circular(self.components):
            expected = f"{name} needs univariate components, not angles, that have cdf and quantile"
            got = f"{type(self.components).__name__} of {self.dim} columns"
            raise NotKnown(sentence("Mixture", expected, got, REMEDIES[name]))

    # --------------------------------------------------------------- learning

    takes_parts = True  # `collect` cuts blocks itself, depending on the components and on the labels
    hides_labels = True  # so that `fit(hard=True)` can assign each row to one component

    def collect(
        self, x: Rows, weight: ArrayLike | None = None, labels: Index | None = None, log_mask: Array | None = None,
        hard: bool = False,
    ) -> MixtureStats:  # fmt: skip
        """E-step: weights of the components, and their statistics of labeled rows or of rows times responsibilities.

        `labels` (n,) is the component of each row (−1: none); `log_mask` (n, K) is 0 where a row may come from a
        component and −inf where not. Without `labels` this is an E-step at this model, and `hard` assigns
        each row to its most probable component (hard EM). In a stack, `weight` (n, C) and `labels` refer to mixtures,
        whose components are hidden.
        """
        x = Ragged.of(x) if self.of_sequences else x
        n = n_rows(x)
        w = weights(weight, n, "Mixture")
        self._check_weight(w, n)
        with job(self._work(n)):
            return self._collect(x, w, labels, log_mask, hard)

    def _work(self, n: int) -> float:
        """Scalar operations for n rows, of the order of full covariances."""
        return float(n * self.weights.size * self.dim**2)

    def _collect(
        self, x: Any, w: Array | None, labels: Index | None, log_mask: Array | None, hard: bool
    ) -> MixtureStats:
        n = n_rows(x)
        if n <= ROWS * BLOCKS and labels is None and log_mask is None and not hard:
            stats = self._collect_in_one_pass(x, w)
            if stats is not None:
                return stats
        in_one_block = labels is not None and (isinstance(self.components, Gaussian) or self.size <= WHOLE)
        if n > (ROWS * BLOCKS if in_one_block else ROWS):
            blocks = Blocks.of(x, w, labels=labels, log_mask=log_mask)
            blocks = blocks.whole() if in_one_block else blocks
            return Threads().total(lambda b: self.collect(b.x, b.weight, b.labels, b.log_mask, hard), blocks)
        if labels is not None:
            labels = checked_labels(labels, n, self.members or self.size, "Mixture")
            collect = self._collect_stack_labeled if self.members else self._collect_labeled
            return collect(x, w, labels, hard)
        return self._collect_unlabeled(x, w, log_mask, hard)

    def _check_weight(self, w: Array | None, n: int) -> None:
        if w is not None and w.ndim == 2 and (self.members is None or w.shape[1] != self.members):
            wanted = f"one entry per row ({n})" if self.members is None else f"one column per mixture ({self.members})"
            raise ShapeError(sentence("Mixture", f"weight must have {wanted}", w.shape))

    def _collect_labeled(self, x: Any, w: Array | None, labels: Index, hard: bool) -> MixtureStats:
        counts = np.bincount(labels + 1, w, self.size + 1)[1:].astype(np.float64)  # label −1: no component
        components = self.components.collect(x, w, labels=labels, **self._hard_option(hard))
        return MixtureStats.trusted(counts=counts, components=components, entropy=np.zeros(()), seen=True)

    def _hard_option(self, hard: bool) -> dict[str, bool]:
        """The option `hard` for components that are mixtures themselves."""
        return {"hard": True} if hard and getattr(self.components, "hides_labels", False) else {}

    def _collect_stack_labeled(self, x: Any, w: Array | None, labels: Index, hard: bool) -> MixtureStats:
        """Collect each mixture of a stack from the rows of its own label."""
        out = []
        for c, one in enumerate(self._mixtures):
            own_rows = np.flatnonzero(labels == c)
            out.append(one.collect(x[own_rows], None if w is None else w[own_rows], hard=hard))
        return self.joined_stats([s.as_stack() for s in out])

    @cached_property
    def _mixtures(self) -> list[Mixture]:
        return [self.member(c) for c in range(self.members or 0)]

    def joined_stats(self, parts: list[MixtureStats]) -> MixtureStats:
        """Concatenated statistics of consecutive groups of members."""
        return MixtureStats.trusted(
            counts=np.concatenate([s.counts for s in parts]),
            components=joined(self.components, [s.components for s in parts]),
            entropy=np.concatenate([s.entropy for s in parts]),
            seen=all(s.seen for s in parts),
        )

    def _collect_unlabeled(self, x: Any, w: Array | None, log_mask: Array | None, hard: bool) -> MixtureStats:
        with np.errstate(all="ignore"):
            joint = self._best_joint(x) if hard else self.log_joint_block(x)
            joint = joint if log_mask is None else self._masked(joint, log_mask)
            if hard:
                return self._collect_hard(x, w, joint)
            resp, entropy = self._responsibilities(joint, w)
        components = self.components.collect(x, resp.T)
        counts = resp.sum(axis=1).reshape(self.weights.shape)
        return MixtureStats.trusted(counts=counts, components=components, entropy=entropy, seen=False)

    def _masked(self, joint: Array, log_mask: Array) -> Array:
        """The log-joint with a log-mask added; where no allowed component has a density, the weights replace it."""
        joint = joint + log_mask
        none = np.flatnonzero(np.isneginf(joint.max(axis=1)))
        if len(none):
            joint[none] = np.log(np.maximum(self.weights, 1e-300)) + log_mask[none]
        return joint

    def _collect_in_one_pass(self, x: Any, w: Array | None) -> MixtureStats | None:
        """E-step for a Gaussian mixture with quadratic features computed once; None where that does not apply."""
        if self.members is not None or not isinstance(self.components, Gaussian):
            return None
        z = rows(x, self.dim, "Mixture")
        accumulator = ResponsibilityAccumulator(len(z), w)
        with np.errstate(all="ignore"):
            components = shared_sweep(self.components, z, self._log_weights, accumulator.responsibilities)
        if components is None or not accumulator.all_possible:
            return None
        counts = np.array(components.weight if isinstance(components, Moments) else components.rows)
        entropy = np.asarray(accumulator.entropy(self.weights, []))
        return MixtureStats.trusted(counts=counts, components=components, entropy=entropy, seen=False)

    def _responsibilities(self, joint: Array, w: Array | None) -> tuple[Array, Array]:
        """Weighted responsibilities p(k | x) (K, n), and the entropies of labels, () or (C,); overwrites the joint."""
        logs = np.ascontiguousarray(joint.T)
        if self.members is None:
            resp, entropy = weighted_responsibilities(logs, self.weights, w)
            return resp, np.asarray(entropy)
        each = logs.reshape(self.members, self.size, -1)
        of = [w if w is None or w.ndim == 1 else np.ascontiguousarray(w[:, c]) for c in range(self.members)]
        out = [weighted_responsibilities(each[c], self.weights[c], of[c]) for c in range(self.members)]
        return np.concatenate([resp for resp, _ in out]), np.array([entropy for _, entropy in out])

    def _collect_hard(self, x: Any, w: Array | None, joint: Array) -> MixtureStats:
        """Hard EM (classification EM): each row belongs to its most probable component alone."""
        C, M, n = self.members or 1, self.size, len(joint)
        best = joint.T.reshape(C, M, n).argmax(axis=1)
        none = np.isneginf(np.take_along_axis(joint.T.reshape(C, M, n), best[:, None, :], axis=1)[:, 0])
        best = np.where(none, self.weights.reshape(C, M).argmax(axis=1)[:, None], best)
        if self.members is None:
            return self._collect_labeled(x, w, best[0], True).replace(seen=False)
        resp = np.zeros((C, M, n))
        np.put_along_axis(resp, best[:, None, :], 1.0, axis=1)
        if w is not None:
            resp *= w if w.ndim == 1 else w.T[:, None, :]
        components = self.components.collect(x, resp.reshape(C * M, n).T, **self._hard_option(True))
        return MixtureStats.trusted(counts=resp.sum(axis=2), components=components, entropy=np.zeros(C), seen=False)

    def refit(self, stats: MixtureStats, prior: Any = None) -> Mixture:
        """M-step: weights by relative frequency (or posterior mode), each component from its own statistics."""
        weight_prior, component_prior = (None, None) if prior is None else (prior.weights, prior.components)
        if weight_prior is None and not stats.counts.sum() > 0:
            raise DataError(sentence("Mixture", "at least one row with weight is needed", "none", "or give a prior"))
        if weight_prior is None:
            w = self._frequencies(stats.counts)
        elif isinstance(weight_prior, FixedWeights):
            w = np.array(np.broadcast_to(weight_prior.probs, self.weights.shape))
        else:
            w = weights_mode(weight_prior.alpha, stats.counts)
        return Mixture.trusted(weights=w, components=self.components.refit(stats.components, component_prior))

    def _frequencies(self, counts: Array) -> Array:
        total = counts.sum(axis=-1, keepdims=True)  # a mixture without data keeps its weights
        return np.where(total > 0, counts / np.where(total > 0, total, 1.0), self.weights)

    def objective(self, stats: MixtureStats, prior: Any = None) -> float:
        """Expected complete-data log-likelihood + entropy of the hidden labels + log prior."""
        component_prior = None if prior is None else prior.components
        value = float(xlogy(stats.counts, self.weights).sum() + stats.entropy.sum())
        value += float(self.components.objective(stats.components, component_prior))
        if prior is not None and prior.weights is not None:
            edge = np.where(np.asarray(getattr(prior.weights, "alpha", 1.0)) < 1, FLOOR, 0.0)  # as in `weights_mode`
            value += float(np.sum(prior.weights.log_density(categorical(np.maximum(self.weights, edge)))))
        return value

    def pruned(self, least: float = EMPTY) -> Mixture:
        """The mixture without components of negligible weight.

        Parameters
        ----------
        least : float
            Smallest weight of a component that remains.

        Returns
        -------
        Mixture
            The smaller mixture.
        """
        self._require_single("pruned")
        alive = np.flatnonzero(self.weights > least)
        if len(alive) == self.size:
            return self
        return Mixture.trusted(
            weights=self.weights[alive] / self.weights[alive].sum(), components=self.components.take(alive)
        )

    @property
    def log_smoothing(self) -> float:
        """log of the smoothing constant of the components."""
        return float(getattr(self.components, "log_smoothing", 0.0))

    def weak_prior(self, stats: MixtureStats) -> Any:
        """Weak prior of the components; the weights, which counts determine well, have none."""
        from likely.mixture.priors import MixturePrior

        return MixturePrior(None, self.components.weak_prior(self.for_prior(stats)))

    def for_prior(self, stats: MixtureStats) -> Any:
        """Statistics of the components that a weak prior is scaled by, softened where labels are hidden."""
        tied = untied(self.components) is not self.components
        if stats.seen or self.size == 1:  # with one component no label is hidden
            return stats.components
        return softened(stats.components, 1 if tied else self.members or 1, one_covariance(self.components))


@dataclass(frozen=True, eq=False)
class MixtureStats(Addable, Value):
    """Sufficient statistics of a mixture: the weight of each component, and each component's own statistics."""

    counts: Annotated[Array, declared.numbers("* K", 0)]  # (K,), or (C, M) for a stack
    components: Annotated[Any, declared.stats]
    entropy: Annotated[Array, declared.numbers("*")]  # () or (C,): of the hidden labels, in nats
    seen: bool = True  # the labels were observed

    @property
    def complete(self) -> bool:
        """True if neither labels nor entries were hidden."""
        return bool(self.seen and self.components.complete)

    @property
    def filled(self) -> bool:
        """True if components imputed missing values."""
        return bool(getattr(self.components, "filled", False))

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.counts.sum())

    @property
    def unit(self) -> str:
        """Name of the unit that gains are measured per: "row", or what the components count."""
        return str(getattr(self.components, "unit", "row"))

    @property
    def units(self) -> float:
        """Number of units: rows, or what the components count, such as frames of sequences."""
        return float(getattr(self.components, "units", self.total_weight))

    def __add__(self, other: MixtureStats) -> MixtureStats:
        return MixtureStats.trusted(
            counts=self.counts + other.counts, components=self.components + other.components,
            entropy=np.asarray(self.entropy + other.entropy), seen=self.seen and other.seen,
        )  # fmt: skip

    def __mul__(self, factor: float) -> MixtureStats:
        return self.replace(
            counts=self.counts * factor, components=self.components * factor, entropy=np.asarray(self.entropy * factor)
        )

    __rmul__ = __mul__

    def as_stack(self) -> MixtureStats:
        """One mixture's statistics as a stack of one."""
        return self.replace(counts=self.counts[None], entropy=self.entropy[None])

    def member(self, c: Any) -> MixtureStats:
        """The statistics of one mixture of a stack, or of several; components shared by mixtures are not separated."""
        M = self.counts.shape[-1]
        at = (np.asarray(c)[..., None] * M + np.arange(M)).ravel()
        components = self.components.member(at)
        return self.replace(counts=self.counts[c], components=components, entropy=np.asarray(self.entropy[c]))


@without.register
def _(stats: MixtureStats, part: Any) -> Any:
    counts = less(stats.counts, part.counts)
    components = without(stats.components, part.components)
    return stats.replace(counts=counts, components=components, entropy=np.asarray(stats.entropy - part.entropy))


def weights_mode(alpha: Array, counts: Array) -> Array:
    """MAP weights (…, K): they maximize Σ (n_k + α_k − 1) log w_k.

    Where a sparse prior (α < 1) makes a coefficient negative, the maximum is on the boundary: the component is removed.
    Its weight is FLOOR, not 0, where the prior density would be infinite and objectives could not be compared.
    """
    gain = counts + (alpha - 1)
    if (np.asarray(alpha) >= 1).all():
        total = gain.sum(axis=-1, keepdims=True)
        even = np.ones_like(gain) / gain.shape[-1]
        return np.where(total > 0, gain / np.where(total > 0, total, 1.0), even)
    return np.apply_along_axis(_floored, -1, np.atleast_1d(gain))


def _floored(gain: Array) -> Array:
    alive = gain > 0
    if not alive.any():
        alive[gain.argmax()] = True
    while True:
        rest = 1.0 - FLOOR * (~alive).sum()
        total = gain[alive].sum()
        w = np.full(len(gain), FLOOR)
        w[alive] = rest * gain[alive] / total if total > 0 else rest / alive.sum()
        low = alive & (w < FLOOR)
        if not low.any():
            return w
        alive &= ~low


def _logsumexp(joint: Array) -> Array:
    top = joint.max(axis=1)
    joint -= top[:, None]
    total = np.log(np.exp(joint, out=joint).sum(axis=1)) + top
    return np.where(np.isneginf(top), -np.inf, total)


def _stacked(draws: list[Any]) -> Any:
    if isinstance(draws[0], Ragged):
        return Ragged.joined(draws)
    if isinstance(draws[0], Columns):
        return Columns({name: _stacked([d[name] for d in draws]) for name in draws[0]})
    return np.concatenate(draws)


def level_counts(counts: Array) -> Any:
    """Component weights as counts of levels: the statistics of a Dirichlet prior."""
    from likely.distributions.categorical.categorical import LevelCounts

    return LevelCounts.trusted(counts=counts, rows=np.asarray(counts.sum()))


def categorical(probs: Array) -> Any:
    """Weights as a categorical distribution over the components."""
    from likely.distributions.categorical.categorical import Categorical

    return Categorical.trusted(probs=probs, levels=None)


def _as_float64(block: Any) -> Any:
    """Rows in double precision: float32 log-densities would be rounded before they become responsibilities."""
    if isinstance(block, Columns) and block.dtype == np.float32:
        return Columns({name: _as_float64(part) for name, part in block.items()})
    return block.astype(np.float64) if isinstance(block, np.ndarray) and block.dtype == np.float32 else block
