"""Bayes error: the smallest possible error rate (or risk) of a classification problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from likely.core.arrays import Array, Index
from likely.core.errors import DomainError, sentence
from likely.core.warnings import warn
from likely.decision.cost import CostLike
from likely.decision.posteriors import ClassPrior
from likely.decision.theory.bayes_error_integrals import in_the_plane, on_the_line, shared_covariance
from likely.decision.theory.decision_problem import Problem, problem
from likely.decision.theory.gaussian_pair_error import two_gaussians
from likely.distributions.binary.bernoulli import Bernoulli
from likely.distributions.distribution import Distribution, Estimate
from likely.distributions.univariate.poisson import Poisson

DRAWS = 100_000  # default number of samples
MOST = 20_000_000  # maximum number of samples
BATCH = 100_000  # samples per block
STATES = 2**21  # maximum number of terms
CLOSE = 1e-14  # difference below which probabilities are equal


def bayes_error(
    *distributions: Any, class_prior: ClassPrior | None = None,
    cost: CostLike | None = None, tolerance: float | None = None, n: int = DRAWS,
    rng: Generator | None = None,
) -> Estimate:  # fmt: skip
    """Bayes error (or, with costs, Bayes risk) ∫ min_a Σ_c L(a, c) p(c) p(x | c) dx.

    Closed forms and finite sums are exact: two Gaussians that share a covariance, Q(v/2) for equal
    priors; discrete distributions. One column with a cdf, two Gaussians in any number of columns, and more of them in a
    plane are integrated numerically. Elsewhere the smallest posterior cost is averaged over samples of each class.

    Parameters
    ----------
    *distributions : densities, Mixture or BayesClassifier
        Densities p(x | c), one per class; or one stack, one mixture, one fitted classifier. All of one kind:
        probabilities of values, or densities over the same columns.
    class_prior : array-like (C,), optional
        Class probabilities p(c); None: those of the mixture or classifier, else equal.
    cost : Cost, matrix (A, C) or dict, optional
        Cost L of each action (row) for each true class (column); None is 0/1.
    tolerance : float, optional
        Standard error to reach by Monte Carlo sampling.
    n : int
        Number of samples without a tolerance.
    rng : numpy.random.Generator, optional
        Random number generator of these samples.

    Returns
    -------
    Estimate
        The error or risk. Its `error` is 0 for closed forms, an estimate of the integration error for numerical
        integrals, and the standard error for sampling.

    See Also
    --------
    error_bounds : Lower and upper bounds.
    decision_boundary : Where the decision changes.

    References
    ----------
    Duda, Hart and Stork (2001), chapter 2; Ney, lecture notes, 2.2 and 2.5.

    Examples
    --------
    >>> import likely as lk
    >>> round(float(bayes_error(lk.Gaussian([0.0, 0.0], 1.0), lk.Gaussian([2.0, 0.0], 1.0))), 6)
    0.158655
    >>> round(float(bayes_error(lk.Poisson(1.0), lk.Poisson(4.0))), 6)
    0.159202
    """
    asked = problem(distributions, class_prior, cost, "bayes_error")
    _check(tolerance, n)
    _warn_of_scores(asked)
    if len(asked.distributions) == 1:
        return Estimate(float(asked.cost.table.min()), 0.0)
    asked = _possible(asked)
    for way in (shared_covariance, coins, on_the_line, by_expectations, two_gaussians, in_the_plane):
        found = way(asked)
        if found is not None and (tolerance is None or found.error <= tolerance):
            return found
    return by_draws(asked, tolerance, n, rng or np.random.default_rng(0))


def _warn_of_scores(asked: Problem) -> None:
    """Warn of densities that do not integrate to one: the result is not an error rate."""
    odd = [
        type(distribution).__name__
        for distribution in asked.distributions
        if not getattr(distribution, "integrates", True)
    ]
    if odd:
        remedy = "the value is not an error rate: use KernelDensity, or lk.evaluate on new rows"
        warn(sentence("bayes_error", "densities should integrate to one", f"{odd[0]}, which does not", remedy))


def _check(tolerance: Any, n: Any) -> None:
    number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if tolerance is not None and not (number and np.isfinite(tolerance) and tolerance > 0):
        raise DomainError(sentence("bayes_error", "tolerance must be positive", tolerance))
    if not (isinstance(n, int | np.integer) and n >= 2):
        raise DomainError(sentence("bayes_error", "n must be an integer of draws, 2 or more", n))


def _possible(asked: Problem) -> Problem:
    """The problem without classes of probability 0; their actions are kept."""
    at = np.flatnonzero(asked.prior > 0)
    if len(at) == len(asked.prior):
        return asked
    rest = np.setdiff1d(np.arange(len(asked.cost.table)), at)
    table = asked.cost.table[np.concatenate([at, rest])][:, at]
    cost = type(asked.cost).trusted(table=table, actions=tuple(f"action {k}" for k in rest), classes=None)
    return Problem(tuple(asked.distributions[k] for k in at), asked.prior[at], cost, np.arange(len(at)))


def by_draws(asked: Problem, tolerance: float | None, n: int, rng: Generator) -> Estimate:
    """Monte Carlo estimate, stratified by class, of the posterior expected cost."""
    sums = np.zeros((len(asked.distributions), 3))  # draws, Σ r, Σ r² of each class
    wanted = n
    while True:
        for k, distribution in enumerate(asked.distributions):
            size = max(round(float(asked.prior[k]) * min(wanted, BATCH)), 2)
            risk = np.asarray(asked.risk(distribution.sample(size, rng)), dtype=np.float64)
            sums[k] += size, risk.sum(), risk @ risk
        found = _estimate(asked, sums)
        done = sums[:, 0].sum()
        if (done >= n and tolerance is None) or (tolerance is not None and found.error <= tolerance):
            return found
        if done >= MOST:
            warn(f"bayes_error: tolerance {tolerance:.3g} not met by {MOST:,} samples: the error is {found.error:.3g}")
            return found
        wanted = BATCH if tolerance is not None else int(n - done)


def _estimate(asked: Problem, sums: Any) -> Estimate:
    """The stratified mean and its standard error, with an allowance for regions too rare to be sampled."""
    count, first, second = sums.T
    mean = first / count
    variance = np.maximum(second / count - mean**2, 0.0) / np.maximum(count - 1, 1)
    table = asked.cost.table
    table = np.where(np.isinf(table), table.min(axis=0), table)  # actions that are never taken cost nothing
    unseen = float((asked.prior * (table.max(axis=0) - table.min(axis=0)) / count).max())
    error = float(np.hypot(np.sqrt(asked.prior**2 @ variance), unseen))
    return Estimate(float(asked.prior @ mean), error)


def coins(asked: Problem) -> Estimate | None:
    """Independent Bernoulli columns: of columns with equal probabilities only the number of ones matters   (Ney 2.6.3).

    So D equal columns have D + 1 states, not 2^D. Columns that are mirrored (1 − p in every class) count as equal.
    """
    if not all(isinstance(distribution, Bernoulli) for distribution in asked.distributions):
        return None
    probs, many = _kinds(np.stack([distribution.probs for distribution in asked.distributions], axis=1))  # (G, C), (G,)
    if np.prod(many + 1.0) > STATES:
        return None
    log_probs = np.zeros((1, len(asked.distributions)))
    for p, m in zip(probs, many, strict=True):
        log_probs = (log_probs[:, None] + _binomial(int(m), p)[None]).reshape(-1, len(asked.distributions))
    return Estimate(asked.paid + float((np.exp(log_probs) @ asked.excess.T).min(axis=1).sum()), 0.0)


def _kinds(probs: Array) -> tuple[Array, Index]:
    """Distinct columns (G, C) and their multiplicities: columns with equal probabilities in all classes are dropped."""
    probs = probs[np.ptp(probs, axis=1) > 0]
    flipped = np.where(probs[:, :1] > 0.5, 1.0 - probs, probs)
    ambiguous = flipped[:, 0] == 0.5
    first = flipped[:, -1] > 0.5
    flipped = np.where((ambiguous & first)[:, None], 1.0 - flipped, flipped)
    _, at, many = np.unique(np.round(flipped / CLOSE), axis=0, return_index=True, return_counts=True)
    return flipped[at], many


def _binomial(m: int, p: Array) -> Array:
    """log of the binomial probabilities of 0 … m ones (m + 1, C)."""
    ones = np.arange(m + 1.0)[:, None]
    ways = gammaln(m + 1.0) - gammaln(ones + 1) - gammaln(m - ones + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(ones > 0, ones * np.log(p), 0.0)
        down = np.where(ones < m, (m - ones) * np.log1p(-p), 0.0)
    return ways + up + down


class _Drawn(Exception):
    """Raised if a distribution would sample: its expectations are not finite sums."""


class _NoDraws:
    """A stand-in for a random generator that raises `_Drawn` when used."""

    def __getattr__(self, name: str) -> Any:
        raise _Drawn


def by_expectations(asked: Problem) -> Estimate | None:
    """Σ_c p(c) E[risk(x) | c] by exact sums; None if a distribution would need sampling."""
    asked = _fewer_counts(asked)
    try:
        return Estimate(
            float(asked.prior @ [_summed(distribution, asked.risk) for distribution in asked.distributions]), 0.0
        )
    except _Drawn:
        return None


def _fewer_counts(asked: Problem) -> Problem:
    """Poisson columns with proportional rates in all classes are merged: only their sum matters."""
    if not all(isinstance(distribution, Poisson) for distribution in asked.distributions):
        return asked
    rates = np.stack([distribution.rate for distribution in asked.distributions], axis=1)  # (d, C)
    rates = rates[np.ptp(rates, axis=1) > 0]
    if not len(rates):
        return replace(asked, distributions=(Poisson(np.ones(1)),) * len(asked.distributions))
    ratios = np.round(rates / rates.max(axis=1, keepdims=True) / CLOSE)
    _, kind = np.unique(ratios, axis=0, return_inverse=True)
    merged = np.zeros((kind.max() + 1, len(asked.distributions)))
    np.add.at(merged, kind.ravel(), rates)
    return replace(asked, distributions=tuple(Poisson(rate) for rate in merged.T))


def _summed(distribution: Any, g: Any) -> float:
    """E[g(x)] by finite sums; of a mixture, by component."""
    weights: Any = getattr(distribution, "weights", None)
    parts: Any = getattr(distribution, "components", None)
    if weights is not None and getattr(parts, "members", None):
        return float(sum(w * _summed(parts.member(k), g) for k, w in enumerate(weights.tolist()) if w > 0))
    if getattr(type(distribution), "expect", Distribution.expect) is Distribution.expect:  # no exact expectation
        raise _Drawn
    found = distribution.expect(g, 1, _NoDraws())
    if found.error > 0:
        raise _Drawn
    return float(found)
